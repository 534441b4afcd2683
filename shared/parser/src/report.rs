//! What is found, as it is found.

use std::borrow::Cow;

use crate::{Entry, Malformed, Parsed, ToolCall, place::Place};

/// Characters of what stood in the wrong place; enough to find it.
const LONGEST_TEXT: usize = 48;

pub(crate) struct Report<'t> {
    text: &'t str,
    place: Place<'t>,
    parsed: Parsed,
}

impl<'t> Report<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, place: Place::new(text), parsed: Parsed::default() }
    }

    pub(crate) fn block(&mut self) {
        self.parsed.blocks += 1;
    }

    /// The block whose fence stands at `fence` was open at the end of the answer.
    pub(crate) fn unclosed(&mut self, line: usize) {
        self.parsed.unclosed = Some(line);
    }

    /// A tool block that begins at `start` is quoted.
    pub(crate) fn quoted(&mut self, start: usize) {
        if self.parsed.quoted.is_none() {
            self.parsed.quoted = Some(Place::new(self.text).of(start).0);
        }
    }

    /// The line of `at`, which is not before what was reported last.
    pub(crate) fn line(&mut self, at: usize) -> usize {
        self.place.of(at).0
    }

    pub(crate) fn call(&mut self, at: usize, mut call: ToolCall) {
        (call.line, call.column) = self.place.of(at);
        self.parsed.entries.push(Entry::Call(call));
    }

    pub(crate) fn entries(&self) -> usize {
        self.parsed.entries.len()
    }

    /// Takes back what was reported behind the first entries.
    pub(crate) fn forget(&mut self, behind: usize) {
        self.parsed.entries.truncate(behind);
    }

    /// That something else was expected where the text is that begins at `at`; the block ends at `end`.
    pub(crate) fn malformed(
        &mut self,
        at: usize,
        end: usize,
        expected: Cow<'static, str>,
        name: Option<&str>,
        is_cut: bool,
    ) {
        let (line, column) = self.place.of(at);
        let text = excerpt(self.text.get(at..end).unwrap_or_default());
        let name = name.map(str::to_owned);
        self.parsed.entries.push(Entry::Malformed(Malformed { line, column, expected, text, name, is_cut }));
    }

    pub(crate) fn parsed(self) -> Parsed {
        self.parsed
    }
}

/// The beginning of a line.
fn excerpt(text: &str) -> String {
    let mut end = 0;
    for (count, (at, character)) in text.char_indices().enumerate() {
        if matches!(character, '\n' | '\r') {
            break;
        }
        if count == LONGEST_TEXT {
            return text.get(..end).unwrap_or_default().trim_end().to_owned() + "…";
        }
        end = at + character.len_utf8();
    }
    text.get(..end).unwrap_or_default().trim_end().to_owned()
}
