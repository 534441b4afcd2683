//! What a model quotes or thinks instead of saying it: code that is indented, what stands behind `>`, comments of HTML, and
//! elements that hold what others said, above all the `<result>` in which it was given a page. Prose is searched for them only
//! up to a fence.

use std::borrow::Cow;

use memchr::{memchr, memmem, memrchr2};

use crate::{
    fences::{Fence, blanks, line_of_first},
    work::look_at,
};

/// From here on a line is code, in `CommonMark`.
const CODE_COLUMN: usize = 4;

/// What begins a quotation behind `<`, and whether it is an element, which ends with `</` and its name.
const KINDS: [(&[u8], bool); 7] = [
    (b"think", true),
    (b"thinking", true),
    (b"result", true),
    (b"error", true),
    (b"blockquote", true),
    (b"pre", true),
    (b"!--", false),
];

pub(crate) struct Quotations<'t> {
    bytes: &'t [u8],
    /// How far was searched for what begins a quotation.
    searched: usize,
    /// Where the last one ends.
    end: usize,
    /// For each kind: whether none ends any more.
    endless: [bool; KINDS.len()],
    /// Where a thought ends that the answer begins with, though nothing says so but its end; once it was looked for.
    thought: Option<usize>,
}

impl<'t> Quotations<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { bytes: text.as_bytes(), searched: 0, end: 0, endless: [false; KINDS.len()], thought: None }
    }

    /// Nothing before `from` begins a quotation: it stands in a block.
    pub(crate) fn go_on(&mut self, from: usize) {
        self.searched = self.searched.max(from);
    }

    /// Where the thought ends that the answer begins with, if its end stands behind the first fence, which is at `fence`, and
    /// nothing before it that begins one.
    pub(crate) fn thought(&mut self, fence: usize) -> usize {
        let rest = self.bytes.get(fence..).unwrap_or_default();
        *self.thought.get_or_insert_with(|| {
            let end = memmem::find(rest, b"</think").map_or(0, |end| fence + end);
            let before = self.bytes.get(..end).unwrap_or_default();
            look_at(before.len() + if end == 0 { rest.len() } else { end - fence });
            if memmem::find(before, b"<think").is_some() { 0 } else { end }
        })
    }

    /// Whether what a fence begins is quoted. It is not before the last one asked for.
    pub(crate) fn hold(&mut self, fence: &Fence) -> bool {
        let (line, start) = (fence.line, fence.start);
        while self.end <= start {
            let from = self.searched.max(self.end);
            let between = self.bytes.get(from..start).unwrap_or_default();
            let found = memchr(b'<', between);
            look_at(found.unwrap_or(between.len()));
            let Some(found) = found else {
                self.searched = start.max(from);
                return is_behind_mark_or_indented(self.bytes, line);
            };
            self.searched = from + found + 1;
            if let Some(end) = self.end_of(from + found) {
                self.end = end;
            }
        }
        true
    }

    /// Where the quotation ends that `<` at `start` begins. One that does not end goes to the end of the answer if its line
    /// begins with it, as ours do; else it is but spoken of.
    fn end_of(&mut self, start: usize) -> Option<usize> {
        let behind = self.bytes.get(start + 1..)?;
        let kind = KINDS.iter().position(|(name, is_element)| begins_with(behind, name, *is_element))?;
        let (name, is_element) = KINDS.get(kind)?;
        let endless = self.endless.get_mut(kind)?;
        if !*endless {
            let length = if *is_element { end_of_element(behind, name) } else { end_of_comment(behind) };
            if let Some(length) = length {
                return Some(start + 1 + length);
            }
            *endless = true;
        }
        line_of_first(self.bytes, start).map(|_line| usize::MAX)
    }
}

fn begins_with(text: &[u8], name: &[u8], is_element: bool) -> bool {
    look_at(name.len());
    let is_named = text.get(..name.len()).is_some_and(|begins| begins.eq_ignore_ascii_case(name));
    let goes_on = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    is_named && !(is_element && text.get(name.len()).is_some_and(goes_on))
}

fn end_of_comment(text: &[u8]) -> Option<usize> {
    let found = memmem::find(text, b"-->");
    look_at(found.unwrap_or(text.len()));
    Some(found? + 3)
}

fn end_of_element(text: &[u8], name: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let rest = text.get(from..)?;
        let found = memmem::find(rest, b"</");
        look_at(found.unwrap_or(rest.len()));
        from += found? + 2;
        if begins_with(text.get(from..)?, name, true) {
            return Some(from + name.len());
        }
    }
}

/// Whether a line is quoted by `>`, or indented as code is and not as what belongs to the item of a list before it.
fn is_behind_mark_or_indented(bytes: &[u8], line: usize) -> bool {
    let (before, rest) = bytes.split_at_checked(line).unwrap_or_default();
    let indent = blanks(rest);
    let column = columns(rest.get(..indent).unwrap_or_default());
    if column < CODE_COLUMN {
        return rest.get(indent) == Some(&b'>');
    }
    let before = before.trim_ascii_end();
    let item = memrchr2(b'\n', b'\r', before).map_or(before, |end| before.get(end + 1..).unwrap_or_default());
    look_at(bytes.len() - rest.len() - before.len() + item.len());
    !content_column(item).is_some_and(|content| (content..content + CODE_COLUMN).contains(&column))
}

/// Where the content of a list's item begins, if the line begins one.
fn content_column(line: &[u8]) -> Option<usize> {
    let (indent, item) = line.split_at_checked(blanks(line))?;
    let digits = item.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let marker = match item.get(digits)? {
        b'-' | b'*' | b'+' if digits == 0 => 1,
        b'.' | b')' if (1..=9).contains(&digits) => digits + 1,
        _ => return None,
    };
    let gap = blanks(item.get(marker..)?);
    // Five and more are code within the item.
    (1..=CODE_COLUMN).contains(&gap).then(|| columns(indent) + marker + gap)
}

/// How wide blanks are: a tab goes to the next column of four.
fn columns(blanks: &[u8]) -> usize {
    look_at(blanks.len());
    blanks.iter().fold(0, |column, byte| match byte {
        b'\t' => column / CODE_COLUMN * CODE_COLUMN + CODE_COLUMN,
        b' ' => column + 1,
        _ => column,
    })
}

/// A text without what the model thought, each byte where it was. A value that a thought stands in cannot be read any more.
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
