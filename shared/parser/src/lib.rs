//! Parser of tool calls in a model's answer: fenced `tool` blocks and the calls within.
//!
//! ````text
//! I fetch the page first.
//!
//! ```tool
//! return wget("https://example.com", {timeoutMs: 5_000});
//! ```
//! ````
//!
//! A block holds calls in sequence: a tool's name and its arguments in parentheses, with or without `return`, `await`, semicolons
//! and comments. Arguments are JavaScript literals. Nothing is ever executed: anything to evaluate (a variable, a sum, `${…}`, a
//! call as an argument) is rejected with a sentence that names the alternative.
//!
//! Calls are returned up to the first unreadable statement of the whole answer. Later text may belong to that statement: to a
//! branch, to a definition, or to an open string that contains the apparent closing fence. So no later call or block is returned.
//! This costs no extra message, because the model must write another one anyway.
//!
//! Fences follow `CommonMark`, with liberties for the habits of models:
//! - calls may begin after the word `tool`, on the same line;
//! - a block may end after its last call, on the same line;
//! - an unclosed block ends where the next `tool` block with at least as many back-ticks begins;
//! - a fence may follow text on its line, if only a word follows it;
//! - fewer marks may close a block, if the text after them is neither in the block nor a call;
//! - a fence without a word hides no `tool` block of the same length, if it contains nothing else.
//!
//! A fence of another language hides its content. A longer fence contains shorter ones: in a back-tick string of a block opened
//! with four marks, a line that begins with three is text. Quoted blocks are skipped: see [`Parsed::quoted`].
//!
//! Time is linear in the input, and the stack is bounded by [`DEEPEST`] nested values.

mod answers;
mod collector;
mod cursor;
mod elements;
mod fences;
mod marks;
mod numbers;
mod place;
mod quotations;
mod reading;
mod statements;
mod strings;
mod values;
mod work;

use std::{borrow::Cow, fmt};

use serde_json::Value;

pub use answers::{Block, Found, Place, blocks, values};
pub use values::DEEPEST;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Parsed {
    /// In the order of the answer. A malformed entry is the last one: reading stops there.
    pub entries: Vec<Entry>,
    /// Tool blocks read, including empty ones.
    pub blocks: usize,
    /// The line of a tool fence still open at the end of the answer, if its content was readable; the answer may be truncated.
    pub unclosed: Option<usize>,
    /// The line of the first tool block skipped as quoted. Quoted blocks are indented as code (by four columns or more, except
    /// within a list item), follow `>`, or are inside another block, an element of any name, an HTML comment, `CDATA`, quotation
    /// marks, `~~`, or a thought (also before `</think>`).
    pub quoted: Option<usize>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    Call(ToolCall),
    Malformed(Malformed),
}

/// A call as written. Callers check whether the tool exists and the arguments fit.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    pub name: String,
    /// By position. `undefined` is `null` here and in lists, and is omitted as a member. Values without a JSON form become
    /// JavaScript's serialization: half of a surrogate pair is U+FFFD, and `1.0` and `1e3` are whole numbers.
    pub arguments: Vec<Value>,
    /// The line of the name, from 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
}

/// An unreadable statement. [`Display`](fmt::Display) gives one sentence for the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Malformed {
    /// The line of the mistake in the answer, from 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// The allowed syntax, and the suggested replacement.
    pub expected: Cow<'static, str>,
    /// The text at the mistake, cut with `…`; empty at the end of the block.
    pub text: String,
    /// The name of the attempted call, if readable.
    pub name: Option<String>,
    /// Whether the answer ended before the mistake was certain.
    pub is_cut: bool,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: ", self.line, self.column)?;
        if let Some(name) = &self.name {
            write!(f, "in the call of {}, ", collector::excerpt(name))?;
        }
        write!(f, "expected {}, found ", self.expected)?;
        if self.text.is_empty() { f.write_str("the end of the block") } else { write!(f, "`{}`", self.text) }
    }
}

/// Parses the tool blocks of an answer, up to the first unreadable statement.
pub fn parse(text: &str) -> Parsed {
    reading::parse(text)
}

#[cfg(test)]
mod tests;
