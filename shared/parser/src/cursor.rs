//! Where the parser is in a tool block, what stands there, and what went wrong.

use std::borrow::Cow;

use memchr::{memchr2, memmem};

use crate::{
    fences::{Bearing, Behind, Fence, Fences, bearing, behind, line_of_first, run},
    work::look_at,
};

pub(crate) type Parse<T> = Result<T, Box<Problem>>;

/// Something else was expected.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) at: usize,
    pub(crate) expected: Cow<'static, str>,
}

/// A position in a tool block, or in a part of a text that is no block.
///
/// A block's end is found as the parser gets there: what is known ends at the next line that begins with a fence, and only
/// when that limit is reached is it looked at. So a block that ends early leaves nothing that was searched in vain.
pub(crate) struct Cursor<'t, 'f> {
    pub(crate) text: &'t str,
    pub(crate) bytes: &'t [u8],
    pub(crate) at: usize,
    /// The answer to the limit: nothing at or behind it is looked at yet.
    known: &'t [u8],
    /// Where the brackets stand that are open.
    pub(crate) open: Vec<usize>,
    block: Option<(&'f mut Fences<'t>, Fence)>,
    /// The fence whose line begins at the limit; none at the end of the answer.
    next: Option<Fence>,
    /// What the limit is, once the block is known to end there.
    end: Option<Bearing>,
    /// Whether something was looked for behind the end of the answer.
    pub(crate) is_over: bool,
    pub(crate) has_comment: bool,
}

impl<'t, 'f> Cursor<'t, 'f> {
    pub(crate) fn new(text: &'t str, fences: &'f mut Fences<'t>, opening: &Fence, at: usize) -> Self {
        let next = fences.first_of(opening.mark, at);
        let known = to_fence(text.as_bytes(), next);
        Self { known, next, block: Some((fences, *opening)), ..Self::within(text, at, text.len()) }
    }

    /// In `text` between two places.
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

    /// The byte here; none at the end of the block.
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

    /// Moves the limit on; false if it is the end of the block.
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

    /// The block's end was reached: where to go on, and whether it was the end of the answer.
    pub(crate) fn behind_block(&self) -> (usize, bool) {
        match (self.next, self.end) {
            (Some(fence), Some(Bearing::Closes)) => (fence.end, false),
            (Some(fence), _) => (fence.line, false),
            (None, _) => (self.text.len(), true),
        }
    }

    /// Marks that close the block here, behind a call on the same line or on a line of their own; where they end.
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

    /// Whether a call seems to stand there.
    fn is_call_at(&self, at: usize) -> bool {
        let mut here = Self::within(self.text, at, self.text.len());
        let word = here.blanks().ok().and_then(|_line_ended| here.identifier());
        matches!(word, Some("return" | "await")) || word.is_some() && here.ahead_by(0) == Some(b'(')
    }

    /// Goes into the tool block that begins here, if it is a shorter one within this one. Gives the fence of this one.
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

    /// The byte that many behind this one, if it is known to be in the block: lines are known to their end.
    #[inline]
    pub(crate) fn ahead_by(&self, count: usize) -> Option<u8> {
        self.known.get(self.at + count).copied()
    }

    /// What is known to be in the block; to the end of the line at least.
    #[inline]
    pub(crate) fn ahead(&self) -> &'t [u8] {
        self.known.get(self.at..).unwrap_or_default()
    }

    /// The character here, which is not at the limit.
    pub(crate) fn character(&self) -> Option<char> {
        self.text.get(self.at..).and_then(|rest| rest.chars().next())
    }

    /// Goes over blanks, ends of lines and comments; true if a line ended.
    ///
    /// # Errors
    /// A comment is not closed.
    #[inline]
    pub(crate) fn blanks(&mut self) -> Parse<bool> {
        // Mostly there is one blank, or none: that much is read where it is asked for.
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
                // A comment of Python's: to JavaScript it is nothing at all.
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

    /// Over `// …` to the end of the line, before it. To JavaScript it ends at U+2028, too, where no reader sees an end.
    fn pass_line(&mut self) {
        self.has_comment = true;
        let line = self.ahead();
        let length = memchr2(b'\n', b'\r', line).unwrap_or(line.len());
        look_at(length);
        self.at += length;
    }

    /// Over `/* … */`; true if a line ends in it.
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

    /// The identifier here, if there is one.
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

    /// Whether a character stands here that would lengthen a number or a name.
    pub(crate) fn at_identifier_part(&self) -> bool {
        match self.ahead_by(0) {
            Some(0x80..) => self.character().is_some_and(is_identifier_character),
            Some(byte) => is_identifier_part(byte),
            None => false,
        }
    }

    /// Whether three marks or more are the first thing in the line here: they were meant for a fence, though they are none.
    pub(crate) fn at_marks(&self) -> bool {
        let marks = self.ahead_by(0).filter(|mark| matches!(mark, b'`' | b'~')).map(|mark| run(self.ahead(), mark));
        marks.is_some_and(|marks| marks >= 3) && line_of_first(self.bytes, self.at).is_some()
    }

    /// A problem here.
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

/// What JavaScript takes for a blank, beyond ASCII.
fn is_blank_character(character: char) -> bool {
    character == '\u{FEFF}' || character.is_whitespace() && character != '\u{85}'
}

/// What ends a line in JavaScript; text is in lines of `\n` and `\r` alone for all else.
fn is_end_of_line(character: char) -> bool {
    matches!(character, '\n' | '\r' | '\u{2028}' | '\u{2029}')
}

/// `ID_Continue`, and the two joiners that JavaScript adds.
fn is_identifier_character(character: char) -> bool {
    unicode_ident::is_xid_continue(character) || matches!(character, '\u{200C}' | '\u{200D}')
}
