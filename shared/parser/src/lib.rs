//! The calls that a model wrote into its answer: every fenced `tool` block, and every call in it.
//!
//! ````text
//! I fetch the page first.
//!
//! ```tool
//! return wget("https://example.com", {timeoutMs: 5_000});
//! ```
//! ````
//!
//! A block holds calls, one after the other: a tool's name and its arguments in parentheses, with or without `return`, `await`,
//! semicolons and comments. Arguments are JavaScript literals. Nothing is ever executed: what would have to be (a variable, a
//! sum, `${…}`, a call as an argument) is refused with a sentence that says what to write instead.
//!
//! Calls come out up to the first statement that cannot be read, in the whole answer. What stands behind it may be a part of it:
//! of a branch, of a definition, of a text that was left open, which may hold the very fence that seems to end its block. So
//! nothing behind it comes out, nor do later blocks. That costs a model no message: it has to write another one anyway.
//!
//! Where a fence stands is `CommonMark`'s to say, with liberties, for models write as they please:
//! - calls may begin behind the word `tool`, on the same line;
//! - a block may end behind its last call, on the same line;
//! - a block that was not closed ends where the next `tool` block of at least as many back-ticks begins;
//! - a fence may stand behind a text, if a word and nothing else stands behind it;
//! - a block may be closed by fewer marks, if what follows is neither in it nor a call;
//! - a fence without a word hides no `tool` block that is as long, if it holds nothing else.
//!
//! A fence of another language hides what is inside of it. A longer fence holds shorter ones: in a back-tick string of a block
//! that was opened with four, a line that begins with three is text. What the model quotes is not read: see [`Parsed::quoted`].
//!
//! Every input takes time linear in its length, and no more stack than [`DEEPEST`] values inside each other need.

mod answers;
mod cursor;
mod elements;
mod fences;
mod marks;
mod numbers;
mod place;
mod quotations;
mod reading;
mod report;
mod statements;
mod strings;
mod values;
mod work;

use std::{borrow::Cow, fmt};

use serde_json::Value;

pub use answers::{Block, Found, Place, blocks, values};
pub use values::DEEPEST;

/// What was found in an answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Parsed {
    /// In the order in which they stand in the answer. What is malformed is the last: nothing behind it is read.
    pub entries: Vec<Entry>,
    /// How many tool blocks were read, empty ones included.
    pub blocks: usize,
    /// The line of the tool fence that the end of the answer found open, if all behind it could be read: it may have been cut
    /// short.
    pub unclosed: Option<usize>,
    /// The line of the first tool block that was passed over because it is quoted. A block is quoted if it is indented as code is
    /// (by four columns or more, except within a list's item), stands behind `>`, or stands within something else: another block,
    /// an element of any name, a comment of HTML, `CDATA`, marks of quotation, `~~`, or a thought (also before `</think>`).
    pub quoted: Option<usize>,
}

/// A statement of a tool block.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    Call(ToolCall),
    Malformed(Malformed),
}

/// A call as it was written; whether there is such a tool, and whether the arguments fit it, is for others to say.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    pub name: String,
    /// As written, by position. `undefined` is `null` here and in lists; as a member it is left out. What JSON cannot hold
    /// becomes what JavaScript sends: half of a surrogate pair is U+FFFD, and `1.0` and `1e3` are whole numbers.
    pub arguments: Vec<Value>,
    /// Where the name stands in the answer: from 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
}

/// A statement that is no call. [`Display`](fmt::Display) is one sentence for the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Malformed {
    /// Where it goes wrong, in the answer: from 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// What could stand there, and what to write instead.
    pub expected: Cow<'static, str>,
    /// What stands there, cut short with `…`; empty at the end of the block.
    pub text: String,
    /// Whose call it was going to be, if that could be read.
    pub name: Option<String>,
    /// Whether the answer ended before it was to be seen.
    pub is_cut: bool,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: ", self.line, self.column)?;
        if let Some(name) = &self.name {
            write!(f, "in the call of {name}, ")?;
        }
        write!(f, "expected {}, found ", self.expected)?;
        if self.text.is_empty() { f.write_str("the end of the block") } else { write!(f, "`{}`", self.text) }
    }
}

/// Finds the tool blocks of an answer and the calls in them, up to the first statement that cannot be read.
pub fn parse(text: &str) -> Parsed {
    reading::parse(text)
}

#[cfg(test)]
mod tests;
