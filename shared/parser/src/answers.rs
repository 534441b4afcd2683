//! Finds values written in a text, as candidates for an answer.

use std::collections::HashSet;

use memchr::{memchr, memchr3};
use serde_json::Value;

use crate::{
    Malformed,
    collector::Collector,
    cursor::{Cursor, Parse},
    fences::{Behind, Fences, behind},
    quotations::without_thoughts,
    work::look_at,
};

/// Failed attempts with comments before the search stops.
const MOST_COMMENTED: usize = 16;

/// A fenced block of any language.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Block<'t> {
    /// The text after the opening marks; may be empty.
    pub word: &'t str,
    pub inside: &'t str,
    /// The line of the fence, from 1.
    pub line: usize,
    /// Offset of the inside.
    begin: usize,
}

/// All blocks of a text in sequence, including quoted ones.
pub fn blocks(text: &str) -> Vec<Block<'_>> {
    let (mut fences, mut places, mut blocks, mut from) = (Fences::new(text), Collector::new(text), Vec::new(), 0);
    while let Some(fence) = fences.opening(from) {
        let line = text.get(fence.end..).and_then(|rest| rest.lines().next()).unwrap_or_default();
        let begin = fence.end + line.len();
        let (end, behind) = fences.closing(&fence, behind(text.as_bytes(), &fence) != Behind::Nothing);
        let inside = text.get(begin..end).unwrap_or_default();
        blocks.push(Block { word: line.trim_matches([' ', '\t', '*']), inside, line: places.line(fence.start), begin });
        from = behind;
    }
    blocks
}

/// A value in JSON or JavaScript notation.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    pub value: Value,
    pub place: Place,
    /// The line of its beginning, from 1.
    pub line: usize,
}

/// The place of a value; earlier variants are likelier to be the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The whole text.
    Whole,
    /// The whole content of a block.
    Block,
    /// Anywhere in the text.
    Within,
    /// The last line.
    Line,
}

/// The values of a text in order, and the mistake in the last unreadable one. Thoughts are skipped, and so are arguments of calls
/// to functions other than `answers`. If the whole text is a value, it is the only one.
pub fn values(text: &str, answers: &str) -> (Vec<Found>, Option<Malformed>) {
    let seen = without_thoughts(text);
    let mut search = Search { text: &seen, answers, report: Collector::new(text), found: Vec::new(), problem: None };
    // If the raw text is a value, `</think>` can only be a part of a string.
    let as_it_stands = Search { text, answers, report: Collector::new(text), found: Vec::new(), problem: None };
    if let Ok(value) = as_it_stands.whole(0, text.len()).or_else(|_| search.whole(0, seen.len())) {
        search.found.push(Found { value, place: Place::Whole, line: 1 });
        return (search.found, None);
    }
    let mut from = 0;
    for Block { inside, begin, .. } in blocks(&seen) {
        search.within(from, begin);
        from = begin + inside.len();
        match search.whole(begin, from) {
            Ok(value) => search.add(value, Place::Block, begin),
            Err(_no_value) => search.within(begin, from),
        }
    }
    search.within(from, seen.len());
    let last = seen.trim_end().rfind(['\n', '\r']).map_or(0, |end| end + 1);
    if let Ok(value) = serde_json::from_str::<Value>(seen.get(last..).unwrap_or_default())
        && !value.is_array()
        && !value.is_object()
    {
        search.add(value, Place::Line, last);
    }
    let malformed = search
        .problem
        .map(|problem| Collector::new(text).malformed(problem.at, text.len(), problem.expected, None, false));
    (search.found, malformed)
}

struct Search<'t> {
    text: &'t str,
    answers: &'t str,
    report: Collector<'t>,
    found: Vec<Found>,
    problem: Option<Box<crate::cursor::Problem>>,
}

impl Search<'_> {
    fn add(&mut self, value: Value, place: Place, at: usize) {
        let line = self.report.line(at);
        self.found.push(Found { value, place, line });
    }

    /// The value that fills the range.
    fn whole(&self, begin: usize, end: usize) -> Parse<Value> {
        let mut cursor = Cursor::within(self.text, begin, end);
        cursor.blanks()?;
        if let Ok(value) = serde_json::from_str(self.text.get(cursor.at..end).unwrap_or_default()) {
            return Ok(value);
        }
        let mut value = Value::Null;
        cursor.value(&mut value)?;
        cursor.blanks()?;
        if cursor.peek().is_some() { cursor.expected("nothing behind the value") } else { Ok(value) }
    }

    /// The objects and lists in a range. A bracket without an end is not tried again, so nothing is read more than twice.
    fn within(&mut self, begin: usize, end: usize) {
        let (bytes, mut at, mut open, mut closes, mut commented) =
            (self.text.as_bytes(), begin, HashSet::new(), true, 0);
        let ahead = |at: usize| bytes.get(at..end).unwrap_or_default();
        while let Some(found) = memchr3(b'{', b'[', b'(', ahead(at)) {
            look_at(found);
            let begin = at + found;
            at = begin + 1;
            let mut cursor = Cursor::within(self.text, begin, end);
            let read = if bytes.get(begin) != Some(&b'(') {
                if open.contains(&begin) {
                    continue;
                }
                let mut value = Value::Null;
                cursor.value(&mut value).map(|_is_value| Some(value))
            } else if self.is_call(begin) {
                cursor.arguments().map(|_arguments| None)
            } else {
                continue;
            };
            match read {
                Ok(value) => {
                    at = cursor.at;
                    if let Some(value) = value {
                        self.add(value, Place::Within, begin);
                    }
                }
                Err(problem) => {
                    // Text hidden by comments may be read many times, so the number of attempts is bounded.
                    commented += usize::from(cursor.has_comment);
                    if commented > MOST_COMMENTED {
                        break;
                    }
                    if closes && bytes.get(begin) == Some(&b'(') {
                        let closing = memchr(b')', ahead(problem.at));
                        look_at(closing.unwrap_or(ahead(problem.at).len()));
                        closes = closing.is_some();
                        at = closing.map_or(at, |closing| problem.at + closing);
                    }
                    open.extend(cursor.open);
                    if bytes.get(begin) == Some(&b'{') {
                        self.problem = Some(problem);
                    }
                }
            }
        }
        look_at(ahead(at).len());
    }

    /// Whether the parenthesis at `at` belongs to a call of another function than `answers`.
    fn is_call(&self, at: usize) -> bool {
        let before = self.text.get(..at).unwrap_or_default();
        let is_name = before.ends_with(|last: char| last.is_alphanumeric() || matches!(last, '_' | '$'));
        is_name && !before.ends_with(self.answers)
    }
}
