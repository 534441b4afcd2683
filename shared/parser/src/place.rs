//! Lines and columns of offsets, counted in one pass.

use memchr::{memchr, memchr_iter, memrchr2};

use crate::work::look_at;

/// The position counted so far.
pub(crate) struct Place<'t> {
    bytes: &'t [u8],
    at: usize,
    line: usize,
    column: usize,
}

impl<'t> Place<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { bytes: text.as_bytes(), at: 0, line: 1, column: 1 }
    }

    /// Line and column of `at`; calls must have ascending offsets.
    pub(crate) fn of(&mut self, at: usize) -> (usize, usize) {
        let passed = self.bytes.get(self.at..at).unwrap_or_default();
        look_at(passed.len());
        let breaks = self.breaks(passed);
        let mut last_line = passed;
        if breaks > 0 {
            let end = memrchr2(b'\n', b'\r', passed).map_or(0, |last| last + 1);
            last_line = passed.get(end..).unwrap_or_default();
            (self.line, self.column) = (self.line + breaks, 1);
        }
        self.column += characters(last_line);
        self.at = self.at.max(at);
        (self.line, self.column)
    }

    /// Counts line ends: LF, CRLF, and CR alone.
    fn breaks(&self, passed: &[u8]) -> usize {
        let feeds = memchr_iter(b'\n', passed).count();
        if memchr(b'\r', passed).is_none() {
            return feeds;
        }
        let next = self.bytes.get(self.at + 1..).unwrap_or_default().iter().chain([&0]);
        feeds + passed.iter().zip(next).filter(|&(&byte, &next)| byte == b'\r' && next != b'\n').count()
    }
}

/// Counts characters by their first UTF-8 bytes.
fn characters(bytes: &[u8]) -> usize {
    bytes.iter().filter(|&&byte| byte & 0xC0 != 0x80).count()
}
