//! Numbers as they are written: 0.3 is a multiple of 0.1, and 1.0 is 1.

use std::{cmp::Ordering, fmt};

use serde_json::Number;

/// `digits * 10^exponent`, without trailing zeros in `digits`: equal numbers are equal fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Decimal {
    negative: bool,
    /// At most 20 of them: those of a `u64`, or the 17 that tell one `f64` from the next.
    digits: u128,
    exponent: i32,
}

impl Decimal {
    pub(super) fn of(number: &Number) -> Self {
        let text = number.to_string();
        let (negative, text) = text.strip_prefix('-').map_or((false, text.as_str()), |text| (true, text));
        let (written, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = written.split_once('.').unwrap_or((written, ""));
        let mut exponent: i32 = exponent.parse().unwrap_or(0);
        let mut digits: u128 = 0;
        let mut zeros = 0;
        for (index, digit) in whole.chars().chain(fraction.chars()).filter_map(|digit| digit.to_digit(10)).enumerate() {
            if index >= whole.len() {
                exponent -= 1;
            }
            zeros += 1;
            if digit > 0 {
                // Only now are the zeros before it known not to be trailing ones.
                digits = digits.saturating_mul(10_u128.saturating_pow(zeros)).saturating_add(digit.into());
                zeros = 0;
            }
        }
        if digits == 0 {
            return Self { negative: false, digits: 0, exponent: 0 };
        }
        Self { negative, digits, exponent: exponent.saturating_add_unsigned(zeros) }
    }

    pub(super) const fn is_positive(self) -> bool {
        !self.negative && self.digits > 0
    }

    /// As a whole number, if it is one of a size that matters.
    pub(super) fn whole(self) -> Option<i128> {
        let scale = 10_i128.checked_pow(u32::try_from(self.exponent).ok()?)?;
        let whole = i128::try_from(self.digits).ok()?.checked_mul(scale)?;
        Some(if self.negative { -whole } else { whole })
    }

    /// `factor` must be positive.
    pub(super) fn is_multiple_of(self, factor: Self) -> bool {
        let shift = self.exponent - factor.exponent;
        if shift < 0 {
            // Twenty digits without trailing zeros are no multiple of a greater power of ten.
            let scale = 10_u128.checked_pow(shift.unsigned_abs()).and_then(|scale| factor.digits.checked_mul(scale));
            return self.digits == 0 || scale.is_some_and(|scale| self.digits.is_multiple_of(scale));
        }
        // digits * 10^shift modulo the factor's digits, by squaring; each product of two 64-bit numbers fits.
        let modulus = factor.digits;
        let (mut rest, mut power, mut shift) = (self.digits % modulus, 10 % modulus, shift);
        while shift > 0 {
            if shift % 2 == 1 {
                rest = rest * power % modulus;
            }
            power = power * power % modulus;
            shift /= 2;
        }
        rest == 0
    }

    fn magnitude(self, other: Self) -> Ordering {
        match (self.digits, other.digits) {
            (0, _) | (_, 0) => self.digits.cmp(&other.digits),
            (own, others) => {
                let (length, other_length) = (own.ilog10(), others.ilog10());
                let orders = |exponent: i32, length: u32| exponent.saturating_add_unsigned(length);
                let aligned = |digits: u128, length: u32, to: u32| {
                    digits.saturating_mul(10_u128.saturating_pow(to.saturating_sub(length)))
                };
                orders(self.exponent, length)
                    .cmp(&orders(other.exponent, other_length))
                    .then_with(|| aligned(own, length, other_length).cmp(&aligned(others, other_length, length)))
            }
        }
    }
}

/// The same text for equal numbers.
impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}e{}", if self.negative { "-" } else { "" }, self.digits, self.exponent)
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.negative, other.negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => self.magnitude(*other),
            (true, true) => other.magnitude(*self),
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Whether two numbers are the same, however written.
pub(super) fn same(one: &Number, other: &Number) -> bool {
    one == other || ((one.is_f64() || other.is_f64()) && Decimal::of(one) == Decimal::of(other))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn decimal(value: &serde_json::Value) -> Decimal {
        Decimal::of(value.as_number().unwrap())
    }

    #[test]
    fn a_multiple_is_told_by_the_digits_that_were_written() {
        for (number, factor, multiple) in [
            (json!(0.3), json!(0.1), true),
            (json!(19.99), json!(0.01), true),
            (json!(4.35), json!(0.1), false),
            (json!(0.0075), json!(0.0001), true),
            (json!(0.00751), json!(0.0001), false),
            (json!(-7), json!(3.5), true),
            (json!(0), json!(1e300), true),
            (json!(1e308), json!(0.5), true),
            (json!(1e308), json!(0.123_456_789), false),
            (json!(1e-300), json!(1e300), false),
            (json!(u64::MAX), json!(u64::MAX), true),
            (json!(u64::MAX), json!(2), false),
        ] {
            assert_eq!(decimal(&number).is_multiple_of(decimal(&factor)), multiple, "{number} of {factor}");
        }
    }

    #[test]
    fn a_number_is_whole_or_not() {
        for (number, whole) in [
            (json!(3.0), Some(3)),
            (json!(-120), Some(-120)),
            (json!(0.0), Some(0)),
            (json!(1.5), None),
            (json!(i64::MIN), Some(i64::MIN.into())),
            (json!(u64::MAX), Some(u64::MAX.into())),
            (json!(1e300), None),
        ] {
            assert_eq!(decimal(&number).whole(), whole, "{number}");
        }
    }

    proptest! {
        #[test]
        fn whole_numbers_keep_their_order(one: i64, other: i64, near in -3..3_i64) {
            for other in [other, one.saturating_add(near), i64::MIN, i64::MAX, 0] {
                prop_assert_eq!(decimal(&json!(one)).cmp(&decimal(&json!(other))), one.cmp(&other));
            }
        }

        #[test]
        fn fractions_keep_their_order(one in any::<f64>().prop_filter("finite", |one| one.is_finite()), factor in -2.0..2.0_f64) {
            for other in [0.0, one * factor, one.next_up(), one + 1.0].into_iter().filter(|other| other.is_finite()) {
                prop_assert_eq!(decimal(&json!(one)).partial_cmp(&decimal(&json!(other))), one.partial_cmp(&other));
            }
        }
    }
}
