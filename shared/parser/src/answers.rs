//! What a text gives as an answer: the values that are written out in it, in whatever stands around them.

use std::collections::HashSet;

use memchr::{memchr, memchr3};
use serde_json::Value;

use crate::{
    Malformed,
    cursor::{Cursor, Parse},
    fences::{Behind, Fences, behind},
    quotations::without_thoughts,
    report::Report,
    work::look_at,
};

/// Places with a comment behind them at which a value is looked for in vain.
const MOST_COMMENTED: usize = 16;

/// A block of a text, whatever its language is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Block<'t> {
    /// What stands behind the marks of its fence; empty if nothing does.
    pub word: &'t str,
    pub inside: &'t str,
    /// Of the fence, from 1.
    pub line: usize,
    /// The first byte of the inside.
    begin: usize,
}

/// The blocks of a text, one behind the other: also those that are quoted.
pub fn blocks(text: &str) -> Vec<Block<'_>> {
    let (mut fences, mut places, mut blocks, mut from) = (Fences::new(text), Report::new(text), Vec::new(), 0);
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

/// A value that is written out in a text, in JSON or as JavaScript writes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    pub value: Value,
    pub place: Place,
    /// Where it begins: from 1.
    pub line: usize,
}

/// Where a value stands; what comes first is the likeliest to be meant as the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// It is the whole text.
    Whole,
    /// It is the whole of a block.
    Block,
    /// It begins somewhere in the text.
    Within,
    /// It is the last line.
    Line,
}

/// The values of a text in their order, but for what the model only thought and what it gives to a call of another function
/// than `answers`; and what is wrong with the last one that cannot be read. What is the whole text is the only one.
pub fn values(text: &str, answers: &str) -> (Vec<Found>, Option<Malformed>) {
    let seen = without_thoughts(text);
    let mut search = Search { text: &seen, answers, report: Report::new(text), found: Vec::new(), problem: None };
    // What is a value as it stands has no thoughts: `</think>` is a part of its text then.
    let as_it_stands = Search { text, answers, report: Report::new(text), found: Vec::new(), problem: None };
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
        .map(|problem| Report::new(text).malformed(problem.at, text.len(), problem.expected, None, false));
    (search.found, malformed)
}

struct Search<'t> {
    text: &'t str,
    answers: &'t str,
    report: Report<'t>,
    found: Vec<Found>,
    problem: Option<Box<crate::cursor::Problem>>,
}

impl Search<'_> {
    fn add(&mut self, value: Value, place: Place, at: usize) {
        let line = self.report.line(at);
        self.found.push(Found { value, place, line });
    }

    /// The only value between two places.
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

    /// The objects and lists between two places. A bracket that was found to have no end is not tried again, so that nothing is
    /// read more than twice.
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
                    // What a comment may hide is looked at again and again.
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

    /// Whether a name stands before the parenthesis, which is not that of the call that gives the answer.
    fn is_call(&self, at: usize) -> bool {
        let before = self.text.get(..at).unwrap_or_default();
        let is_name = before.ends_with(|last: char| last.is_alphanumeric() || matches!(last, '_' | '$'));
        is_name && !before.ends_with(self.answers)
    }
}
