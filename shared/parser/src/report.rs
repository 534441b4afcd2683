//! What is found, as it is found.

use std::borrow::Cow;

use crate::{Entry, Malformed, Parsed, ToolCall, place::Place};

/// So many malformed statements are told one by one; one more entry says how many there are beside them.
pub const MOST_MALFORMED: usize = 50;

/// Characters of what stood in the wrong place; enough to find it.
const LONGEST_TEXT: usize = 48;

pub(crate) struct Report<'t> {
    text: &'t str,
    place: Place<'t>,
    parsed: Parsed,
    malformed: usize,
    /// Where in the entries the rest is told of.
    rest: Option<usize>,
}

impl<'t> Report<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, place: Place::new(text), parsed: Parsed::default(), malformed: 0, rest: None }
    }

    pub(crate) fn block(&mut self) {
        self.parsed.blocks += 1;
    }

    /// The block whose fence stands at `fence` was open at the end of the answer.
    pub(crate) fn unclosed(&mut self, line: usize) {
        self.parsed.unclosed = Some(line);
    }

    /// The line of `at`, which is not before what was reported last.
    pub(crate) fn line(&mut self, at: usize) -> usize {
        self.place.of(at).0
    }

    pub(crate) fn entries(&self) -> usize {
        self.parsed.entries.len() + self.malformed
    }

    pub(crate) fn call(&mut self, at: usize, mut call: ToolCall) {
        (call.line, call.column) = self.place.of(at);
        self.parsed.entries.push(Entry::Call(call));
    }

    /// That something else was expected where the text is that begins at `at`; the block ends at `end`.
    pub(crate) fn malformed(&mut self, at: usize, end: usize, expected: Cow<'static, str>, name: Option<&str>) {
        self.malformed += 1;
        if self.malformed > MOST_MALFORMED + 1 {
            return;
        }
        if self.malformed > MOST_MALFORMED {
            self.rest = Some(self.parsed.entries.len());
        }
        let (line, column) = self.place.of(at);
        let text = excerpt(self.text.get(at..end).unwrap_or_default());
        let name = name.map(str::to_owned);
        self.parsed.entries.push(Entry::Malformed(Malformed { line, column, expected, text, name }));
    }

    pub(crate) fn parsed(mut self) -> Parsed {
        if let Some(Entry::Malformed(rest)) = self.rest.and_then(|rest| self.parsed.entries.get_mut(rest)) {
            let more = self.malformed - MOST_MALFORMED;
            rest.expected = format!("calls from here on, too (statements that are none: {more} more)").into();
            rest.name = None;
        }
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
