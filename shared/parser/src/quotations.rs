//! Quotations by the model: indented code, text after `>`, and content of elements.
//!
//! Prose is searched only up to a fence.

use std::borrow::Cow;

use memchr::{memchr, memmem, memrchr2};

use crate::{
    elements::Elements,
    fences::{Fence, blanks, line_of_first},
    work::look_at,
};

/// Code begins at this column, in `CommonMark`.
const CODE_COLUMN: usize = 4;

pub(crate) struct Quotations<'t> {
    text: &'t str,
    /// The offset searched so far for elements.
    searched: usize,
    /// The end of the last element, and of the last section, whose content has no elements.
    end: usize,
    section: usize,
    elements: Option<Elements>,
}

impl<'t> Quotations<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, searched: 0, end: 0, section: 0, elements: None }
    }

    /// Skips the part before `from`, which is inside a block.
    pub(crate) fn go_on(&mut self, from: usize) {
        self.searched = self.searched.max(from);
    }

    /// Whether a fence is quoted. Calls must have ascending offsets.
    pub(crate) fn hold(&mut self, fence: &Fence) -> bool {
        let (line, start) = (fence.line, fence.start);
        self.search(start);
        self.end > start || is_behind_mark_or_indented(self.text.as_bytes(), line)
    }

    /// Reads the elements that begin before `start`.
    fn search(&mut self, start: usize) {
        let (text, bytes) = (self.text, self.text.as_bytes());
        let between = bytes.get(self.searched..start).unwrap_or_default();
        let found = memchr(b'<', between);
        look_at(found.unwrap_or(between.len()));
        if found.is_some() {
            let elements = self.elements.get_or_insert_with(|| Elements::of(text));
            while let Some(element) = elements.next(self.searched).filter(|element| element.start < start) {
                self.searched = element.start + 1;
                if element.start >= self.section
                    && let Some(end) = elements.end(bytes, element, element.start < self.end)
                {
                    self.end = self.end.max(end);
                    self.section = if element.is_section() { end } else { self.section };
                }
            }
        }
        self.searched = self.searched.max(start);
    }
}

/// Whether a line is quoted by `>`, also within a list item, or is indented as code rather than as content of a list item.
fn is_behind_mark_or_indented(bytes: &[u8], line: usize) -> bool {
    let (before, rest) = bytes.split_at_checked(line).unwrap_or_default();
    let indent = blanks(rest);
    let column = columns(rest.get(..indent).unwrap_or_default());
    if column < CODE_COLUMN {
        let mut content = rest;
        while let Some(length) = item_marker(content) {
            look_at(length);
            content = content.get(length..).unwrap_or_default();
        }
        return content.get(blanks(content)) == Some(&b'>');
    }
    let before = before.trim_ascii_end();
    let item = memrchr2(b'\n', b'\r', before).map_or(before, |end| before.get(end + 1..).unwrap_or_default());
    look_at(bytes.len() - rest.len() - before.len() + item.len());
    !content_column(item).is_some_and(|content| (content..content + CODE_COLUMN).contains(&column))
}

/// Bytes before the content of a list item, if the line begins one.
fn item_marker(line: &[u8]) -> Option<usize> {
    let (indent, item) = line.split_at_checked(blanks(line))?;
    let digits = item.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let marker = match item.get(digits)? {
        b'-' | b'*' | b'+' if digits == 0 => 1,
        b'.' | b')' if (1..=9).contains(&digits) => digits + 1,
        _ => return None,
    };
    let gap = blanks(item.get(marker..)?);
    // Five or more blanks make code within the item.
    (1..=CODE_COLUMN).contains(&gap).then(|| indent.len() + marker + gap)
}

/// The column of a list item's content, if the line begins one.
fn content_column(line: &[u8]) -> Option<usize> {
    let (indent, length) = (blanks(line), item_marker(line)?);
    Some(columns(line.get(..indent)?) + length - indent)
}

/// The width of blanks; a tab advances to a multiple of four.
fn columns(blanks: &[u8]) -> usize {
    look_at(blanks.len());
    blanks.iter().fold(0, |column, byte| match byte {
        b'\t' => column / CODE_COLUMN * CODE_COLUMN + CODE_COLUMN,
        b' ' => column + 1,
        _ => column,
    })
}

/// Blanks out thoughts, so that offsets stay valid. A value around a thought becomes unreadable.
pub(crate) fn without_thoughts(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let (mut thoughts, mut open): (Vec<(usize, usize)>, Option<usize>) = (Vec::new(), None);
    look_at(bytes.len());
    for at in memmem::find_iter(bytes, b"think") {
        let (before, behind) = bytes.split_at_checked(at).unwrap_or_default();
        let behind = behind.strip_prefix(b"thinking").or_else(|| behind.strip_prefix(b"think"));
        let Some(behind) = behind.and_then(|behind| behind.strip_prefix(b">")) else { continue };
        let end = bytes.len() - behind.len();
        if before.ends_with(b"</") && (open.is_some() || thoughts.is_empty()) {
            thoughts.push((open.take().unwrap_or_default(), end));
        } else if before.ends_with(b"<") {
            open.get_or_insert(at - 1);
        }
    }
    thoughts.extend(open.filter(|at| line_of_first(bytes, *at).is_some()).map(|at| (at, bytes.len())));
    if thoughts.is_empty() {
        return text.into();
    }
    let (mut seen, mut from) = (String::with_capacity(text.len()), 0);
    for (begin, end) in thoughts {
        seen.push_str(text.get(from..begin).unwrap_or_default());
        seen.push('\n');
        seen.extend(std::iter::repeat_n(' ', end - begin - 1));
        from = end;
    }
    seen.push_str(text.get(from..).unwrap_or_default());
    seen.into()
}
