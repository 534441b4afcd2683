//! Collects the results of parsing.

use std::borrow::Cow;

use crate::{Entry, Malformed, Parsed, ToolCall, place::Place};

/// Characters of the text at a mistake; enough to find it.
const LONGEST_TEXT: usize = 48;

pub(crate) struct Collector<'t> {
    text: &'t str,
    place: Place<'t>,
    pub(crate) parsed: Parsed,
}

impl<'t> Collector<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, place: Place::new(text), parsed: Parsed::default() }
    }

    /// The line of `at`; calls must have ascending offsets.
    pub(crate) fn line(&mut self, at: usize) -> usize {
        self.place.of(at).0
    }

    pub(crate) fn call(&mut self, at: usize, mut call: ToolCall) {
        (call.line, call.column) = self.place.of(at);
        self.parsed.entries.push(Entry::Call(call));
    }

    /// Records a mistake at `at`, in a block that ends at `end`.
    pub(crate) fn malformed(
        &mut self,
        at: usize,
        end: usize,
        expected: Cow<'static, str>,
        name: Option<&str>,
        is_cut: bool,
    ) -> Malformed {
        let (line, column) = self.place.of(at);
        let text = excerpt(self.text.get(at..end).unwrap_or_default());
        let name = name.map(str::to_owned);
        Malformed { line, column, expected, text, name, is_cut }
    }
}

pub(crate) fn excerpt(text: &str) -> String {
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
