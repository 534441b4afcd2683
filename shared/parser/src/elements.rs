//! Finds elements, comments, `CDATA` and processing instructions in a text.
//!
//! Runs once, and only for a text with a tag before a tool block.

use std::collections::HashMap;

use memchr::{memchr, memchr_iter, memchr2, memmem, memrchr2};

use crate::{
    fences::{blanks, line_of_first},
    work::look_at,
};

/// Beginnings of sections after `<`, with their ends.
const SECTIONS: [(&[u8], &[u8]); 3] = [(b"!--", b"-->"), (b"![CDATA[", b"]]>"), (b"?", b"?>")];

/// Elements with no end tag, or an optional one.
const WITHOUT_END: &str =
    "area base br col embed hr img input link meta source track wbr p li dt dd td th tr thead tbody option";

/// Unclosed elements that extend to the end of the answer if they begin a line. Other elements must be alone on that line.
const OURS: &str = "think thinking result error blockquote pre";

pub(crate) struct Element {
    pub(crate) start: usize,
    /// Index into `Elements::strays`; `None` for a section.
    name: Option<usize>,
    /// The offset after its end.
    end: Option<usize>,
    /// Whether it extends to the end of the answer if unclosed.
    lasts: bool,
}

#[derive(Default)]
pub(crate) struct Elements {
    /// By offset.
    openings: Vec<Element>,
    /// Per name: offsets after end tags without a beginning.
    strays: Vec<Vec<usize>>,
}

impl Elements {
    pub(crate) fn of(text: &str) -> Self {
        let bytes = text.as_bytes();
        let mut search =
            Search { bytes, elements: Self::default(), names: HashMap::new(), open: Vec::new(), ends: [None; 3] };
        let mut line = 0;
        while let Some(found) = memchr(b'<', bytes.get(line..).unwrap_or_default()) {
            let before = bytes.get(line..line + found).unwrap_or_default();
            let begin = line + memrchr2(b'\n', b'\r', before).map_or(0, |end| end + 1);
            let rest = bytes.get(begin..).unwrap_or_default();
            let end = begin + memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
            look_at(found + 2 * (end - begin));
            search.line(text, begin, end);
            line = end;
        }
        search.elements
    }

    /// The first element at or after `from`.
    pub(crate) fn next(&self, from: usize) -> Option<&Element> {
        let at = self.openings.partition_point(|element| element.start < from);
        self.openings.get(at)
    }

    /// The end of an element. An end tag inside a block or comment counts only if there is no other.
    pub(crate) fn end(&self, bytes: &[u8], element: &Element, is_within: bool) -> Option<usize> {
        let Some(end) = element.end else { return (element.lasts && !is_within).then_some(usize::MAX) };
        let strays = element.name.and_then(|name| self.strays.get(name)).filter(|_| !is_within);
        let next = strays.and_then(|strays| strays.get(strays.partition_point(|stray| *stray <= end)));
        Some(match next {
            Some(next) if is_hidden(bytes.get(element.start + 1..end).unwrap_or_default()) => *next,
            _ => end,
        })
    }
}

impl Element {
    pub(crate) fn is_section(&self) -> bool {
        self.name.is_none()
    }
}

/// Whether a block or comment is open at the end of the text.
fn is_hidden(text: &[u8]) -> bool {
    look_at(2 * text.len());
    let lines = text.split(|byte| matches!(byte, b'\n' | b'\r')).skip(1);
    let fences = lines.filter(|line| {
        let line = line.get(blanks(line)..).unwrap_or_default();
        line.starts_with(b"```") || line.starts_with(b"~~~")
    });
    let comment = memmem::rfind(text, b"<!--").and_then(|at| text.get(at..));
    !fences.count().is_multiple_of(2) || comment.is_some_and(|comment| memmem::find(comment, b"-->").is_none())
}

struct Search<'t> {
    bytes: &'t [u8],
    elements: Elements,
    /// Indexes of names, in lower case.
    names: HashMap<String, usize>,
    /// Per name: the open elements.
    open: Vec<Vec<usize>>,
    /// Per kind of section: the latest end found; `usize::MAX` if there are no more.
    ends: [Option<usize>; SECTIONS.len()],
}

impl Search<'_> {
    /// Reads the tags of a line, except those in code.
    fn line(&mut self, text: &str, begin: usize, end: usize) {
        let line = self.bytes.get(begin..end).unwrap_or_default();
        let (mut ticks, mut runs, mut after) = (Vec::new(), 0, None);
        for at in memchr_iter(b'`', line) {
            if after != Some(at) {
                ticks.push(at);
            }
            after = Some(at + 1);
        }
        for at in memchr_iter(b'<', line) {
            while ticks.get(runs).is_some_and(|tick| *tick < at) {
                runs += 1;
            }
            if runs % 2 == 0 || runs == ticks.len() {
                self.tag(text, begin + at);
            }
        }
    }

    fn tag(&mut self, text: &str, start: usize) {
        let behind = self.bytes.get(start + 1..).unwrap_or_default();
        if let Some(kind) = SECTIONS.iter().position(|(begin, _end)| behind.starts_with(begin)) {
            let end = self.end_of_section(kind, start + 1);
            let lasts = line_of_first(self.bytes, start).is_some();
            self.elements.openings.push(Element { start, name: None, end, lasts });
            return;
        }
        let is_end = behind.first() == Some(&b'/');
        let from = start + 1 + usize::from(is_end);
        let rest = self.bytes.get(from..).unwrap_or_default();
        let is_part =
            |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':') || !byte.is_ascii();
        let length = rest.iter().take_while(is_part).count();
        look_at(length + 1);
        let Some(name) = text.get(from..from + length).map(str::to_ascii_lowercase) else { return };
        let goes_on = rest.get(length).is_none_or(|byte| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>'));
        if !name.starts_with(|first: char| first.is_alphabetic()) || name.ends_with(':') {
            return;
        }
        if is_end {
            let number = self.number(name);
            match self.open.get_mut(number).and_then(Vec::pop).and_then(|at| self.elements.openings.get_mut(at)) {
                Some(element) => element.end = Some(from + length),
                None => self.elements.strays.get_mut(number).into_iter().for_each(|strays| strays.push(from + length)),
            }
            return;
        }
        let tag = rest.get(length..).unwrap_or_default();
        let end = memchr2(b'<', b'>', tag);
        look_at(end.unwrap_or(tag.len()));
        let end = end.filter(|end| tag.get(*end) == Some(&b'>'));
        let is_empty = end.and_then(|end| tag.get(..end)).is_some_and(|tag| tag.ends_with(b"/"));
        if !goes_on || is_empty {
            return;
        }
        let is_among = |names: &str| names.split(' ').any(|one| one == name);
        let is_alone = || end.is_some_and(|end| is_last(tag.get(end + 1..).unwrap_or_default()));
        let lasts =
            line_of_first(self.bytes, start).is_some() && (is_among(OURS) || !is_among(WITHOUT_END) && is_alone());
        let number = self.number(name);
        self.open.get_mut(number).into_iter().for_each(|open| open.push(self.elements.openings.len()));
        self.elements.openings.push(Element { start, name: Some(number), end: None, lasts });
    }

    fn number(&mut self, name: String) -> usize {
        let next = self.open.len();
        let number = *self.names.entry(name).or_insert(next);
        if number == next {
            self.open.push(Vec::new());
            self.elements.strays.push(Vec::new());
        }
        number
    }

    fn end_of_section(&mut self, kind: usize, from: usize) -> Option<usize> {
        let ((_, mark), known) = (SECTIONS.get(kind)?, self.ends.get_mut(kind)?);
        if known.is_none_or(|end| end < from) {
            let rest = self.bytes.get(from..)?;
            let found = memmem::find(rest, mark);
            look_at(found.unwrap_or(rest.len()));
            *known = Some(found.map_or(usize::MAX, |found| from + found + mark.len()));
        }
        known.filter(|end| *end != usize::MAX)
    }
}

/// Whether the rest of the line is blank.
fn is_last(rest: &[u8]) -> bool {
    matches!(rest.get(blanks(rest)), None | Some(b'\n' | b'\r'))
}
