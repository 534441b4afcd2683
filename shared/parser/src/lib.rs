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
//! sum, `${…}`, a call as an argument) is refused with a sentence that says what to write instead, and the calls beside it
//! still come out.
//!
//! Where a fence stands is `CommonMark`'s to say, with four liberties, for models write as they please:
//! - a fence may be indented by any number of blanks;
//! - calls may begin behind the word `tool`, on the same line;
//! - a block may end behind its last call, on the same line;
//! - a block that was not closed ends where the next `tool` block of at least as many back-ticks begins.
//!
//! A fence of another language hides what is inside of it. A longer fence holds shorter ones: in a back-tick string of a block
//! that was opened with four, a line that begins with three is text.
//!
//! Every input takes time linear in its length, and no more stack than [`DEEPEST`] values inside each other need.

mod cursor;
mod fences;
mod numbers;
mod place;
mod report;
mod statements;
mod strings;
mod values;
mod work;

use std::{borrow::Cow, fmt};

use serde_json::Value;

pub use report::MOST_MALFORMED;
pub use values::DEEPEST;

use crate::{fences::Fences, report::Report};

/// What was found in an answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Parsed {
    /// In the order in which they stand in the answer.
    pub entries: Vec<Entry>,
    /// How many tool blocks there are, empty ones included.
    pub blocks: usize,
    /// The line of the tool fence that the end of the answer found open: it may have been cut short.
    pub unclosed: Option<usize>,
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

/// Finds every tool block of an answer and every call in it.
pub fn parse(text: &str) -> Parsed {
    let mut report = Report::new(text);
    let mut fences = Fences::new(text);
    let mut from = 0;
    while let Some(opening) = fences.opening(from) {
        from = match opening.calls {
            Some(calls) => statements::block(text, &mut fences, &opening.fence, calls, &mut report),
            None => fences.behind_closing(&opening.fence),
        };
    }
    report.parsed()
}

#[cfg(test)]
mod tests;
