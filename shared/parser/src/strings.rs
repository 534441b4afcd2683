//! Strings, with all JavaScript escapes.

use memchr::{memchr, memchr3};

use crate::{
    cursor::{Cursor, Parse},
    fences::{line_of_first, run},
    work::look_at,
};

impl Cursor<'_, '_> {
    /// A string in `'` or `"`; ends on its line.
    pub(crate) fn quoted(&mut self, quote: u8) -> Parse<String> {
        let start = self.at;
        self.at += 1;
        let mut value = String::new();
        loop {
            let from = self.at;
            if self.peek().is_some() {
                self.at += plain(self.ahead(), quote);
            }
            let piece = self.text.get(from..self.at).unwrap_or_default();
            match self.ahead_by(0) {
                Some(end) if end == quote => {
                    self.at += 1;
                    if value.is_empty() {
                        return Ok(piece.to_owned());
                    }
                    value.push_str(piece);
                    return Ok(value);
                }
                Some(b'\\') => {
                    value.push_str(piece);
                    self.escape(&mut value)?;
                }
                _ => {
                    self.peek();
                    self.at = start;
                    let quote = char::from(quote);
                    return self.expected(format!(
                        "`{quote}` at the end of the text, before the end of the line (`\\n` for a new line, or back-ticks)"
                    ));
                }
            }
        }
    }

    /// A string in back-ticks, over any number of lines.
    pub(crate) fn back_ticked(&mut self) -> Parse<String> {
        let start = self.at;
        self.at += 1;
        let mut value = String::new();
        while self.peek().is_some() {
            let ahead = self.ahead();
            let found = memchr3(b'`', b'\\', b'$', ahead);
            look_at(found.unwrap_or(ahead.len()));
            let length = found.unwrap_or(ahead.len());
            let piece = self.text.get(self.at..self.at + length).unwrap_or_default();
            push_lines(&mut value, piece);
            self.at += length;
            match self.ahead_by(0) {
                None => {}
                Some(b'\\') => self.escape(&mut value)?,
                Some(b'$') if self.ahead_by(1) == Some(b'{') => {
                    return self.expected(
                        "text without `${…}`: a value must be written out (`\\${` for the characters themselves)",
                    );
                }
                Some(b'$') => {
                    value.push('$');
                    self.at += 1;
                }
                Some(_) => match self.fence_in_text(start) {
                    None => {
                        self.at += 1;
                        return Ok(value);
                    }
                    Some(marks) => {
                        value.push_str(self.text.get(self.at..self.at + marks).unwrap_or_default());
                        self.at += marks;
                    }
                },
            }
        }
        self.at = start;
        self.expected(
            "a back-tick at the end of the text (a line of back-ticks inside of it ends the block: begin the block with more of them)",
        )
    }

    /// The length of a fence inside the string, if the back-ticks here are one. For JavaScript the string would end there, and
    /// the following text could not be valid.
    fn fence_in_text(&self, start: usize) -> Option<usize> {
        let marks = run(self.ahead(), b'`');
        if marks < 3 || line_of_first(self.bytes, self.at)? <= start {
            return None;
        }
        let behind = self.ahead().get(marks..).unwrap_or_default();
        let found = memchr3(b'`', b'\n', b'\r', behind);
        look_at(found.unwrap_or(behind.len()));
        found.is_some_and(|found| behind.get(found) != Some(&b'`')).then_some(marks)
    }

    fn escape(&mut self, value: &mut String) -> Parse<()> {
        self.at += 1;
        let character = match self.ahead_by(0) {
            Some(b'n') => '\n',
            Some(b't') => '\t',
            Some(b'r') => '\r',
            Some(b'b') => '\u{8}',
            Some(b'v') => '\u{B}',
            Some(b'f') => '\u{C}',
            Some(b'0') if !self.ahead_by(1).is_some_and(|next| next.is_ascii_digit()) => '\0',
            Some(b'0'..=b'9') => return self.expected("no digit after `\\`: write `\\xHH`"),
            Some(b'x') => return self.hexadecimal(value),
            Some(b'u') => return self.unicode(value),
            Some(b'\r') => {
                self.at += if self.ahead_by(1) == Some(b'\n') { 2 } else { 1 };
                return Ok(());
            }
            Some(b'\n') => {
                self.at += 1;
                return Ok(());
            }
            // JavaScript's other two line ends.
            Some(_) => match self.character() {
                Some(end @ ('\u{2028}' | '\u{2029}')) => {
                    self.at += end.len_utf8();
                    return Ok(());
                }
                Some(itself) => itself,
                None => return Ok(()),
            },
            None => return self.expected("something after `\\`"),
        };
        // Only single-letter escapes differ from their character, and both have one byte.
        self.at += character.len_utf8();
        value.push(character);
        Ok(())
    }

    /// `\xHH`; the cursor is on the `x`.
    fn hexadecimal(&mut self, value: &mut String) -> Parse<()> {
        match (self.digit_ahead(1), self.digit_ahead(2)) {
            (Some(high), Some(low)) => {
                self.at += 3;
                value.extend(char::from_u32(high * 16 + low));
                Ok(())
            }
            _ => self.expected("two hexadecimal digits after `\\x`"),
        }
    }

    /// `\uHHHH` or `\u{…}`, with its second half if it is a surrogate pair; the cursor is on the `u`. An unpaired half becomes
    /// U+FFFD, as when JavaScript text is sent as UTF-8.
    fn unicode(&mut self, value: &mut String) -> Parse<()> {
        let code = self.code()?;
        if (0xD800..0xDC00).contains(&code) && self.ahead_by(0) == Some(b'\\') && self.ahead_by(1) == Some(b'u') {
            let behind_first = self.at;
            self.at += 1;
            let second = self.code()?;
            if (0xDC00..0xE000).contains(&second) {
                value.extend(char::from_u32(0x10000 + ((code - 0xD800) << 10) + (second - 0xDC00)));
                return Ok(());
            }
            self.at = behind_first;
        }
        value.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
        Ok(())
    }

    fn code(&mut self) -> Parse<u32> {
        const EXPECTED: &str = "four hexadecimal digits after `\\u`, or up to `10FFFF` in `\\u{…}`";
        let mut code = 0;
        if self.ahead_by(1) != Some(b'{') {
            for place in 1..=4 {
                let Some(digit) = self.digit_ahead(place) else { return self.expected(EXPECTED) };
                code = code * 16 + digit;
            }
            self.at += 5;
            return Ok(code);
        }
        let escape = self.at;
        self.at += 2;
        let digits = self.at;
        while let Some(digit) = self.digit_ahead(0) {
            look_at(1);
            code = (code * 16 + digit).min(0x11_0000);
            self.at += 1;
        }
        if self.ahead_by(0) != Some(b'}') || self.at == digits || code > 0x10_FFFF {
            self.at = escape;
            return self.expected(EXPECTED);
        }
        self.at += 1;
        Ok(code)
    }

    fn digit_ahead(&self, by: usize) -> Option<u32> {
        self.ahead_by(by).and_then(|byte| char::from(byte).to_digit(16))
    }
}

/// Bytes before the quote, a backslash or the line end. Reads eight bytes at a time: most strings are too short for a vectorised
/// search.
fn plain(bytes: &[u8], quote: u8) -> usize {
    const EACH: u64 = 0x0101_0101_0101_0101;
    const HIGHEST: u64 = EACH << 7;
    let ends = [quote, b'\\', b'\n', b'\r'];
    let mut length = 0;
    while let Some(eight) = bytes.get(length..).and_then(<[u8]>::first_chunk) {
        let eight = u64::from_le_bytes(*eight);
        // Sets the highest bit of each matching byte. The borrow may mark bytes after a match, never before it.
        let found = ends.iter().fold(0, |found, end| {
            let zero = eight ^ (EACH * u64::from(*end));
            found | zero.wrapping_sub(EACH) & !zero & HIGHEST
        });
        if found != 0 {
            length += found.trailing_zeros() as usize / 8;
            look_at(length + 1);
            return length;
        }
        length += 8;
    }
    let rest = bytes.get(length..).unwrap_or_default();
    length += rest.iter().take_while(|byte| !ends.contains(byte)).count();
    look_at(length);
    length
}

/// Normalizes line ends to LF.
fn push_lines(value: &mut String, piece: &str) {
    let mut rest = piece;
    while let Some((line, behind)) = memchr(b'\r', rest.as_bytes()).and_then(|end| rest.split_at_checked(end)) {
        value.push_str(line);
        value.push('\n');
        rest = behind.strip_prefix("\r\n").or_else(|| behind.strip_prefix('\r')).unwrap_or_default();
    }
    look_at(piece.len());
    value.push_str(rest);
}
