//! Numbers in all JavaScript notations: whole numbers exact up to 64 bits, others as doubles.

use std::borrow::Cow;

use serde_json::Number;

use crate::{
    cursor::{Cursor, Parse},
    work::look_at,
};

const TOO_LONG: &str = "a whole number of at most 64 bits (or text in quotes)";

#[derive(Debug, Clone, Copy, PartialEq)]
enum Literal {
    Whole(u64),
    Double(f64),
}

impl<'t> Cursor<'t, '_> {
    /// `start`: offset of the sign.
    pub(crate) fn number(&mut self, start: usize, negative: bool) -> Parse<Number> {
        let value = match self.literal(start)? {
            Literal::Whole(0) => Some(Number::from(0)),
            Literal::Whole(whole) if !negative => Some(Number::from(whole)),
            Literal::Whole(whole) => match 0_i64.checked_sub_unsigned(whole) {
                Some(whole) => Some(Number::from(whole)),
                None => json_double(-nearest(whole)),
            },
            Literal::Double(double) => json_double(if negative { -double } else { double }),
        };
        match value {
            Some(value) => Ok(value),
            None => self.expected_in_number(start, "a smaller number: JSON has no `Infinity`"),
        }
    }

    /// A whole number as a member name.
    pub(crate) fn number_as_key(&mut self) -> Parse<String> {
        let start = self.at;
        match self.literal(start)? {
            Literal::Whole(whole) => Ok(whole.to_string()),
            Literal::Double(_) => self.expected_in_number(start, "a key in quotes: this is no whole number"),
        }
    }

    fn literal(&mut self, start: usize) -> Parse<Literal> {
        let literal = match (self.ahead_by(0), self.ahead_by(1)) {
            (Some(b'0'), Some(b'x' | b'X')) => self.whole_of(start, 16)?,
            (Some(b'0'), Some(b'o' | b'O')) => self.whole_of(start, 8)?,
            (Some(b'0'), Some(b'b' | b'B')) => self.whole_of(start, 2)?,
            (Some(b'0'), Some(b'0'..=b'9' | b'_')) => {
                return self.expected_in_number(start, "a number that does not begin with 0 (or text in quotes)");
            }
            _ => self.decimal(start)?,
        };
        if self.at_identifier_part() {
            return self.expected_in_number(start, "a number and nothing behind it (or text in quotes)");
        }
        Ok(literal)
    }

    fn decimal(&mut self, start: usize) -> Parse<Literal> {
        let from = self.at;
        let mut separated = self.digits(start, 10)?;
        let whole = self.at;
        if self.ahead_by(0) == Some(b'n') && whole > from {
            let digits = self.digits_between(from, whole, separated);
            self.at += 1;
            return match digits.parse() {
                Ok(whole) => Ok(Literal::Whole(whole)),
                Err(_) => self.expected_in_number(start, TOO_LONG),
            };
        }
        if self.ahead_by(0) == Some(b'.') {
            self.at += 1;
            separated |= self.digits(start, 10)?;
            if whole == from && self.at == whole + 1 {
                return self.expected_in_number(start, "a digit beside `.`");
            }
        }
        if matches!(self.ahead_by(0), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.ahead_by(0), Some(b'+' | b'-')) {
                self.at += 1;
            }
            let exponent = self.at;
            separated |= self.digits(start, 10)?;
            if self.at == exponent {
                return self.expected_in_number(start, "digits in the exponent");
            }
        }
        let digits = self.digits_between(from, self.at, separated);
        if self.at == whole
            && let Ok(whole) = digits.parse()
        {
            return Ok(Literal::Whole(whole));
        }
        match digits.parse() {
            Ok(double) => Ok(Literal::Double(double)),
            Err(_) => self.expected_in_number(start, "a number"),
        }
    }

    fn whole_of(&mut self, start: usize, radix: u32) -> Parse<Literal> {
        self.at += 2;
        let from = self.at;
        let separated = self.digits(start, radix)?;
        if self.at == from {
            return self.expected_in_number(start, "digits of the number");
        }
        let digits = self.digits_between(from, self.at, separated);
        self.at += usize::from(self.ahead_by(0) == Some(b'n'));
        match u64::from_str_radix(&digits, radix) {
            Ok(whole) => Ok(Literal::Whole(whole)),
            Err(_) => self.expected_in_number(start, TOO_LONG),
        }
    }

    /// Skips digits, and returns whether there are separators.
    fn digits(&mut self, start: usize, radix: u32) -> Parse<bool> {
        let (mut separated, mut after_digit) = (false, false);
        loop {
            look_at(1);
            match self.ahead_by(0) {
                Some(b'_') if after_digit => (separated, after_digit) = (true, false),
                Some(byte) if char::from(byte).is_digit(radix) => after_digit = true,
                next => {
                    if next == Some(b'_') || separated && !after_digit {
                        return self.expected_in_number(start, "a digit on either side of each `_`");
                    }
                    return Ok(separated);
                }
            }
            self.at += 1;
        }
    }

    fn digits_between(&self, from: usize, to: usize, separated: bool) -> Cow<'t, str> {
        look_at(to - from);
        let digits = self.text.get(from..to).unwrap_or_default();
        if separated { digits.replace('_', "").into() } else { digits.into() }
    }

    #[cold]
    fn expected_in_number<T>(&mut self, start: usize, expected: &'static str) -> Parse<T> {
        self.at = start;
        self.expected(expected)
    }
}

#[expect(clippy::cast_precision_loss, reason = "the nearest double is what JavaScript has")]
fn nearest(whole: u64) -> f64 {
    whole as f64
}

/// A double, as a whole number if it is one: `1.0` and `1e3` are 1 and 1000 in JavaScript. `None` if JSON lacks the number.
fn json_double(double: f64) -> Option<Number> {
    const WHOLE: std::ops::Range<f64> = -9_223_372_036_854_775_808.0..18_446_744_073_709_551_616.0;
    if double.fract() == 0.0 && WHOLE.contains(&double) {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is whole and fits")]
        let number = if double < 0.0 { Number::from(double as i64) } else { Number::from(double as u64) };
        return Some(number);
    }
    Number::from_f64(double)
}
