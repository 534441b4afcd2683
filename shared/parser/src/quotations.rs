//! What a model quotes instead of saying it: code that is indented, comments of HTML, and elements that hold what others said,
//! above all the `<result>` in which it was given a page. Prose is searched for them only up to a fence.

use memchr::{memchr, memmem, memrchr2};

use crate::{
    fences::{is_blank, line_of_first},
    work::look_at,
};

/// From here on a line is code, in `CommonMark`.
const CODE_COLUMN: usize = 4;

/// What begins a quotation behind `<`, and whether it is an element, which ends with `</` and its name.
const KINDS: [(&[u8], bool); 5] =
    [(b"result", true), (b"error", true), (b"blockquote", true), (b"pre", true), (b"!--", false)];

pub(crate) struct Quotations<'t> {
    bytes: &'t [u8],
    /// How far was searched for what begins a quotation.
    searched: usize,
    /// Where the last one ends.
    end: usize,
    /// For each kind: whether none ends any more.
    endless: [bool; KINDS.len()],
}

impl<'t> Quotations<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { bytes: text.as_bytes(), searched: 0, end: 0, endless: [false; KINDS.len()] }
    }

    /// Nothing before `from` begins a quotation: it stands in a block.
    pub(crate) fn go_on(&mut self, from: usize) {
        self.searched = self.searched.max(from);
    }

    /// Whether what begins at `start`, the first thing in its line, is quoted. `start` is not before the last one asked for.
    pub(crate) fn hold(&mut self, line: usize, start: usize) -> bool {
        while self.end <= start {
            let from = self.searched.max(self.end);
            let between = self.bytes.get(from..start).unwrap_or_default();
            let found = memchr(b'<', between);
            look_at(found.unwrap_or(between.len()));
            let Some(found) = found else {
                self.searched = start.max(from);
                return is_indented_code(self.bytes, line, start);
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

/// Whether a line is indented as code is, and not as what belongs to the item of a list before it.
fn is_indented_code(bytes: &[u8], line: usize, start: usize) -> bool {
    let column = columns(bytes.get(line..start).unwrap_or_default());
    if column < CODE_COLUMN {
        return false;
    }
    let before = bytes.get(..line).unwrap_or_default();
    let blank = before.iter().rev().take_while(|byte| is_blank(**byte) || matches!(byte, b'\n' | b'\r')).count();
    let before = before.get(..before.len() - blank).unwrap_or_default();
    let item = memrchr2(b'\n', b'\r', before).map_or(before, |end| before.get(end + 1..).unwrap_or_default());
    look_at(blank + item.len());
    !content_column(item).is_some_and(|content| (content..content + CODE_COLUMN).contains(&column))
}

/// Where the content of a list's item begins, if the line begins one.
fn content_column(line: &[u8]) -> Option<usize> {
    let indent = line.iter().take_while(|byte| is_blank(**byte)).count();
    let (blanks, item) = line.split_at_checked(indent)?;
    let digits = item.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let marker = match item.get(digits)? {
        b'-' | b'*' | b'+' if digits == 0 => 1,
        b'.' | b')' if (1..=9).contains(&digits) => digits + 1,
        _ => return None,
    };
    let behind = item.get(marker..)?;
    let gap = behind.iter().take_while(|byte| is_blank(**byte)).count();
    // Five and more are code within the item.
    (1..=CODE_COLUMN).contains(&gap).then(|| columns(blanks) + marker + gap)
}

/// How wide blanks are: a tab goes to the next column of four.
fn columns(blanks: &[u8]) -> usize {
    look_at(blanks.len());
    blanks.iter().fold(
        0,
        |column, byte| if *byte == b'\t' { column / CODE_COLUMN * CODE_COLUMN + CODE_COLUMN } else { column + 1 },
    )
}
