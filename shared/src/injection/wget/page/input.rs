//! The input of html5gum: pieces, joined where it looks ahead.

use std::{cell::Cell, convert::Infallible};

use html5gum::Reader;

/// Longer runs of letters are no tag name; html5gum would buffer them as a possible one.
const LONGEST_RUN: usize = 256;

pub(super) struct Input<'e, F> {
    next: F,
    pub(super) buffer: Vec<u8>,
    at: usize,
    /// Consecutive letters read one by one.
    letters: usize,
    /// Set when enough text was written; the page then ends.
    enough: &'e Cell<bool>,
}

impl<'e, F: FnMut() -> Option<String>> Input<'e, F> {
    pub(super) fn new(next: F, enough: &'e Cell<bool>) -> Self {
        Self { next, buffer: Vec::new(), at: 0, letters: 0, enough }
    }

    fn left(&self) -> &[u8] {
        self.buffer.get(self.at..).unwrap_or_default()
    }

    /// Waits for `bytes` bytes; false at the end of the page.
    fn have(&mut self, bytes: usize) -> bool {
        if self.enough.get() {
            return false;
        }
        while self.left().len() < bytes {
            let Some(piece) = (self.next)() else { return false };
            if self.left().is_empty() {
                self.buffer = piece.into_bytes();
            } else {
                self.buffer.drain(..self.at);
                self.buffer.extend_from_slice(piece.as_bytes());
            }
            self.at = 0;
        }
        true
    }

    // The library calls these from a hundred places, always inlined.

    #[inline(never)]
    fn byte(&mut self) -> Option<u8> {
        if !self.have(1) {
            return None;
        }
        let byte = self.left().first().copied()?;
        self.letters = if byte.is_ascii_alphabetic() { self.letters + 1 } else { 0 };
        if self.letters > LONGEST_RUN {
            self.letters = 0;
            return Some(b' ');
        }
        self.at += 1;
        Some(byte)
    }

    #[inline(never)]
    fn run(&mut self, ends: &[u8]) -> Option<&[u8]> {
        if !self.have(1) {
            return None;
        }
        self.letters = 0;
        let left = self.left();
        let length = left.iter().position(|byte| ends.contains(byte)).unwrap_or(left.len()).max(1);
        self.at += length;
        self.buffer.get(self.at - length..self.at)
    }

    #[inline(never)]
    fn accept(&mut self, text: &[u8], case_sensitive: bool) -> bool {
        // Decide early if the known bytes already differ.
        let known = self.left().len().min(text.len());
        let equal =
            |left: &[u8], text: &[u8]| if case_sensitive { left == text } else { left.eq_ignore_ascii_case(text) };
        let begins =
            matches!((self.left().get(..known), text.get(..known)), (Some(left), Some(text)) if equal(left, text));
        let accepted =
            begins && self.have(text.len()) && self.left().get(..text.len()).is_some_and(|left| equal(left, text));
        if accepted {
            self.at += text.len();
        }
        accepted
    }
}

impl<F: FnMut() -> Option<String>> Reader for &mut Input<'_, F> {
    type Error = Infallible;

    #[inline]
    fn read_byte(&mut self) -> Result<Option<u8>, Infallible> {
        Ok(self.byte())
    }

    #[inline]
    fn try_read_string(&mut self, text: &[u8], case_sensitive: bool) -> Result<bool, Infallible> {
        Ok(self.accept(text, case_sensitive))
    }

    #[inline]
    fn read_until<'b>(&'b mut self, ends: &[u8], _: &'b mut [u8; 4]) -> Result<Option<&'b [u8]>, Infallible> {
        Ok(self.run(ends))
    }
}
