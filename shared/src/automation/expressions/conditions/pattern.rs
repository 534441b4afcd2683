//! Regular expressions of `matches`, without look-around and back-references: their time is linear in the text.

use regex_lite::{Error, Regex, RegexBuilder};

/// Bytes of a regular expression.
pub(super) const LONGEST: usize = 300;
/// Bytes of the compiled program, which bound its time per byte of text: the largest, and the step at which sizes are told apart.
const LARGEST: usize = 20_000;
const SMALLEST: usize = 512;
/// Bytes of a program that cost as much as scanning a byte of text, measured for programs of up to [`COMPACT`] bytes. The cost
/// per byte rises with the size beyond.
const PER_BYTE: usize = 8;
const COMPACT: usize = 4_096;
/// Cost of compiling, per byte of the program.
const COMPILING: usize = 4;

#[derive(Debug, Clone)]
pub struct Pattern {
    regex: Regex,
    /// Bytes of the program, rounded up.
    size: usize,
}

impl Pattern {
    /// `case_insensitive` is for ASCII letters.
    ///
    /// # Errors
    /// If it cannot be read, or the program is too large.
    pub(super) fn compile(text: &str, case_insensitive: bool) -> Result<Self, Error> {
        let mut size = SMALLEST;
        loop {
            // The size of a program is known only by the limit it keeps.
            match RegexBuilder::new(text).case_insensitive(case_insensitive).size_limit(size).build() {
                Ok(regex) => return Ok(Self { regex, size }),
                Err(why) if size >= LARGEST => return Err(why),
                Err(_too_large) => size = (2 * size).min(LARGEST),
            }
        }
    }

    pub(super) fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// Cost per byte of text, relative to scanning it.
    pub(super) const fn cost(&self) -> usize {
        self.size / PER_BYTE * self.size.div_ceil(COMPACT)
    }

    pub(super) const fn cost_of_compiling(&self) -> usize {
        COMPILING * self.size
    }
}

/// Its clause has the case.
impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.regex.as_str() == other.regex.as_str()
    }
}
