//! The parser's position in a tool block.

use std::borrow::Cow;

use memchr::{memchr2, memmem};

use crate::{
    fences::{Bearing, Behind, Fence, Fences, bearing, behind, line_of_first, run},
    work::look_at,
};

pub(crate) type Parse<T> = Result<T, Box<Problem>>;

#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) at: usize,
    pub(crate) expected: Cow<'static, str>,
}

/// A position in a tool block, or in other text.
///
/// The block's end is found lazily: the known part ends at the next line that begins with a fence, and that fence is examined
/// only when the position reaches it. So a block that ends early causes no wasted search.
pub(crate) struct Cursor<'t, 'f> {
    pub(crate) text: &'t str,
    pub(crate) bytes: &'t [u8],
    pub(crate) at: usize,
    /// The answer up to the limit; no later byte was read yet.
    known: &'t [u8],
    /// Offsets of the open brackets.
    pub(crate) open: Vec<usize>,
    block: Option<(&'f mut Fences<'t>, Fence)>,
    /// The fence at the limit; `None` at the end of the answer.
    next: Option<Fence>,
    /// Set once the block is known to end at the limit.
    end: Option<Bearing>,
    /// Whether parsing reached the end of the answer.
    pub(crate) is_over: bool,
    pub(crate) has_comment: bool,
}

impl<'t, 'f> Cursor<'t, 'f> {
    pub(crate) fn new(text: &'t str, fences: &'f mut Fences<'t>, opening: &Fence, at: usize) -> Self {
        let next = fences.first_of(opening.mark, at);
        let known = to_fence(text.as_bytes(), next);
        Self { known, next, block: Some((fences, *opening)), ..Self::within(text, at, text.len()) }
    }

    /// In `text` from `at` to `end`.
    pub(crate) fn within(text: &'t str, at: usize, end: usize) -> Self {
        let bytes = text.as_bytes();
        let known = bytes.get(..end).unwrap_or(bytes);
        Self {
            text,
            bytes,
            at,
            known,
            open: Vec::new(),
            block: None,
            next: None,
            end: None,
            is_over: false,
            has_comment: false,
        }
    }

    pub(crate) fn limit(&self) -> usize {
        self.known.len()
    }

    /// The current byte; `None` at the end of the block.
    #[inline]
    pub(crate) fn peek(&mut self) -> Option<u8> {
        look_at(1);
        match self.known.get(self.at) {
            Some(byte) => Some(*byte),
            None => self.peek_behind_limit(),
        }
    }

    #[cold]
    fn peek_behind_limit(&mut self) -> Option<u8> {
        while self.at >= self.limit() {
            if !self.more() {
                self.is_over = self.next.is_none();
                return None;
            }
        }
        self.bytes.get(self.at).copied()
    }

    /// Extends the limit. Returns false if it is the end of the block.
    pub(crate) fn more(&mut self) -> bool {
        let (Some(fence), Some((fences, opening)), None) = (self.next, &mut self.block, self.end) else {
            return false;
        };
        let bearing = bearing(self.bytes, opening, &fence);
        if bearing != Bearing::Inside {
            self.end = Some(bearing);
            return false;
        }
        self.next = fences.first_of(opening.mark, fence.end);
        self.known = to_fence(self.bytes, self.next);
        true
    }

    /// After the block: the offset to continue at, and whether it is the end of the answer.
    pub(crate) fn behind_block(&self) -> (usize, bool) {
        match (self.next, self.end) {
            (Some(fence), Some(Bearing::Closes)) => (fence.end, false),
            (Some(fence), _) => (fence.line, false),
            (None, _) => (self.text.len(), true),
        }
    }

    /// The end of closing marks here, after a call on the same line or on their own line.
    pub(crate) fn closing_here(&mut self) -> Option<usize> {
        let mark = self.peek()?;
        let (fences, opening) = self.block.as_mut().filter(|(_, opening)| opening.mark == mark)?;
        let end = self.at + run(self.known.get(self.at..)?, mark);
        if end - self.at >= opening.length() {
            return Some(end);
        }
        let short = fences.first_of(mark, self.at).filter(|fence| fence.start == self.at)?;
        (fences.closes_short(opening, &short) && !self.is_call_at(end)).then_some(end)
    }

    /// Whether a call seems to begin at `at`.
    fn is_call_at(&self, at: usize) -> bool {
        let mut here = Self::within(self.text, at, self.text.len());
        let word = here.blanks().ok().and_then(|_line_ended| here.identifier());
        matches!(word, Some("return" | "await")) || word.is_some() && here.ahead_by(0) == Some(b'(')
    }

    /// Enters a shorter tool block that begins here, and returns the outer fence.
    pub(crate) fn enter_doubled(&mut self) -> Option<Fence> {
        let mark = self.ahead_by(0)?;
        let (fences, opening) = self.block.as_mut().filter(|(_, opening)| opening.mark == mark)?;
        let inner = fences.first_of(mark, self.at).filter(|inner| inner.start == self.at)?;
        let Behind::Tool(calls) = behind(self.bytes, &inner) else { return None };
        let outer = std::mem::replace(opening, inner);
        self.next = fences.first_of(mark, inner.end);
        (self.at, self.known) = (calls, to_fence(self.bytes, self.next));
        Some(outer)
    }

    /// The byte at that distance, if known to be in the block. Lines are known to their end.
    #[inline]
    pub(crate) fn ahead_by(&self, count: usize) -> Option<u8> {
        self.known.get(self.at + count).copied()
    }

    /// The known rest of the block, at least to the end of the line.
    #[inline]
    pub(crate) fn ahead(&self) -> &'t [u8] {
        self.known.get(self.at..).unwrap_or_default()
    }

    /// The current character; must not be at the limit.
    pub(crate) fn character(&self) -> Option<char> {
        self.text.get(self.at..).and_then(|rest| rest.chars().next())
    }

    /// Skips blanks, line ends and comments. Returns true if a line ended.
    ///
    /// # Errors
    /// An unclosed comment.
    #[inline]
    pub(crate) fn blanks(&mut self) -> Parse<bool> {
        // Fast path: usually there is at most one blank.
        self.at += usize::from(self.peek() == Some(b' '));
        match self.ahead_by(0) {
            Some(b'!' | b'"' | b'$'..=b'.' | b'0'..=b'~') => Ok(false),
            _ => self.more_blanks(),
        }
    }

    #[inline(never)] // or `blanks` is not inlined
    fn more_blanks(&mut self) -> Parse<bool> {
        let mut ended = false;
        loop {
            match self.peek() {
                Some(b' ' | b'\t' | 0x0B | 0x0C) => self.at += 1,
                Some(b'\n' | b'\r') => {
                    self.at += 1;
                    ended = true;
                }
                // A Python comment, which is no JavaScript.
                Some(b'#') if self.ahead_by(1) == Some(b' ') => self.pass_line(),
                Some(b'/') => match self.ahead_by(1) {
                    Some(b'/') => self.pass_line(),
                    Some(b'*') => ended |= self.comment()?,
                    _ => return Ok(ended),
                },
                Some(0x80..) => match self.character() {
                    Some(character) if is_blank_character(character) => {
                        self.at += character.len_utf8();
                        ended |= is_end_of_line(character);
                    }
                    _ => return Ok(ended),
                },
                _ => return Ok(ended),
            }
        }
    }

    /// Skips `// …` to the end of the line. For JavaScript U+2028 also ends it, but no reader sees that.
    fn pass_line(&mut self) {
        self.has_comment = true;
        let line = self.ahead();
        let length = memchr2(b'\n', b'\r', line).unwrap_or(line.len());
        look_at(length);
        self.at += length;
    }

    /// Skips `/* … */`. Returns true if it contains a line end.
    fn comment(&mut self) -> Parse<bool> {
        self.has_comment = true;
        let start = self.at;
        self.at += 2;
        while self.peek().is_some() {
            let ahead = self.ahead();
            let found = memmem::find(ahead, b"*/");
            look_at(found.unwrap_or(ahead.len()));
            if let Some(found) = found {
                self.at += found + 2;
                return Ok(self.text.get(start..self.at).unwrap_or_default().contains(is_end_of_line));
            }
            self.at = self.limit();
        }
        self.at = start;
        self.expected("`*/` at the end of the comment")
    }

    #[inline]
    pub(crate) fn identifier(&mut self) -> Option<&'t str> {
        let start = self.at;
        match self.peek()? {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' => {}
            0x80.. if self.character().is_some_and(unicode_ident::is_xid_start) => {}
            _ => return None,
        }
        loop {
            let ascii = self.ahead().iter().take_while(|byte| is_identifier_part(**byte)).count();
            look_at(ascii);
            self.at += ascii;
            match self.ahead_by(0) {
                Some(0x80..) => match self.character() {
                    Some(character) if is_identifier_character(character) => self.at += character.len_utf8(),
                    _ => break,
                },
                _ => break,
            }
        }
        self.text.get(start..self.at)
    }

    /// Whether the next character would extend a number or name.
    pub(crate) fn at_identifier_part(&self) -> bool {
        match self.ahead_by(0) {
            Some(0x80..) => self.character().is_some_and(is_identifier_character),
            Some(byte) => is_identifier_part(byte),
            None => false,
        }
    }

    /// Whether the line begins with three or more marks here: an attempted fence.
    pub(crate) fn at_marks(&self) -> bool {
        let marks = self.ahead_by(0).filter(|mark| matches!(mark, b'`' | b'~')).map(|mark| run(self.ahead(), mark));
        marks.is_some_and(|marks| marks >= 3) && line_of_first(self.bytes, self.at).is_some()
    }

    #[cold]
    pub(crate) fn expected<T>(&mut self, expected: impl Into<Cow<'static, str>>) -> Parse<T> {
        Err(Box::new(Problem { at: self.at, expected: expected.into() }))
    }
}

fn to_fence(bytes: &[u8], next: Option<Fence>) -> &[u8] {
    next.and_then(|fence| bytes.get(..fence.line)).unwrap_or(bytes)
}

#[inline]
fn is_identifier_part(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$'
}

/// JavaScript's blanks beyond ASCII.
fn is_blank_character(character: char) -> bool {
    character == '\u{FEFF}' || character.is_whitespace() && character != '\u{85}'
}

/// JavaScript's line ends; elsewhere in this crate only `\n` and `\r` end a line.
fn is_end_of_line(character: char) -> bool {
    matches!(character, '\n' | '\r' | '\u{2028}' | '\u{2029}')
}

/// `ID_Continue`, and the two joiners that JavaScript adds.
fn is_identifier_character(character: char) -> bool {
    unicode_ident::is_xid_continue(character) || matches!(character, '\u{200C}' | '\u{200D}')
}
