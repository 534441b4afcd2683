//! Comparison of a clause's values; the only place that decides whether it holds.
//!
//! `docs/automations.md` has the rules for authors. There is no further conversion of types: values that cannot be compared do
//! not match.

use std::{borrow::Cow, cmp::Ordering};

use jiff::{civil::DateTime, fmt::temporal::Pieces, tz::Offset};
use serde_json::Value;

use super::{Clause, Operator};

/// Bytes of a text tried as a moment.
const LONGEST_MOMENT: usize = 40;

impl Clause {
    /// Whether the clause holds; case-insensitive clauses pass both values in lower case, except for `matches`. For a missing or
    /// null value only `!=`, `not_contains`, `not_exists`, `is_empty`, `none`, and `==` with null hold. `any`, `all` and `none`
    /// are decided item by item, in `decision.rs`.
    pub(super) fn compares(&self, found: Option<&Value>, value: &Value) -> bool {
        let Some(found) = found.filter(|found| !found.is_null()) else {
            return match self.operator {
                Operator::NotExists | Operator::NotContains | Operator::IsEmpty => true,
                Operator::NotEqual => !value.is_null(),
                Operator::Equal => value.is_null(),
                _ => false,
            };
        };
        let lowers = self.case_insensitive;
        let ordered = || order(found, value);
        match self.operator {
            Operator::Less => ordered() == Some(Ordering::Less),
            Operator::Greater => ordered() == Some(Ordering::Greater),
            Operator::AtMost => matches!(ordered(), Some(Ordering::Less | Ordering::Equal)),
            Operator::AtLeast => matches!(ordered(), Some(Ordering::Greater | Ordering::Equal)),
            Operator::Equal => equal(found, value),
            Operator::NotEqual => !equal(found, value),
            Operator::Contains => contains(found, value, lowers),
            Operator::NotContains => !contains(found, value, lowers),
            Operator::ContainsAny => match value {
                Value::Array(wanted) => wanted.iter().any(|wanted| contains(found, wanted, lowers)),
                // A template may resolve to a single value.
                wanted => contains(found, wanted, lowers),
            },
            Operator::StartsWith => texts(found, value).is_some_and(|(found, value)| found.starts_with(&*value)),
            Operator::EndsWith => texts(found, value).is_some_and(|(found, value)| found.ends_with(&*value)),
            Operator::Matches => {
                self.pattern.as_ref().zip(as_text(found)).is_some_and(|(pattern, text)| pattern.is_match(&text))
            }
            Operator::In => match value {
                Value::Array(wanted) => wanted.iter().any(|wanted| equal(found, wanted)),
                wanted => equal(found, wanted),
            },
            Operator::Between => match value.as_array().map(Vec::as_slice) {
                Some([low, high]) => in_order(low, found) && in_order(found, high),
                _ => false,
            },
            Operator::IsEmpty => match found {
                Value::String(text) => text.trim().is_empty(),
                Value::Array(items) => items.is_empty(),
                Value::Object(members) => members.is_empty(),
                _ => false,
            },
            Operator::Exists => true,
            Operator::NotExists | Operator::Any | Operator::All | Operator::None => false,
        }
    }
}

/// Whether both have an order, and the first is not the greater one.
pub(super) fn in_order(one: &Value, other: &Value) -> bool {
    matches!(order(one, other), Some(Ordering::Less | Ordering::Equal))
}

/// A number or numeric text; whole numbers are exact.
#[derive(Clone, Copy)]
enum Number {
    Whole(i128),
    Real(f64),
}

impl Number {
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Number(number) => {
                let whole = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
                whole.map(Self::Whole).or_else(|| number.as_f64().map(Self::Real))
            }
            Value::String(text) => {
                let text = text.trim();
                let real = || text.parse().ok().filter(|number: &f64| number.is_finite()).map(Self::Real);
                text.parse().ok().map(Self::Whole).or_else(real)
            }
            _ => None,
        }
    }

    fn order(self, other: Self) -> Option<Ordering> {
        #[expect(clippy::cast_precision_loss, reason = "beside a number with a fraction the last digits do not count")]
        let real = |number: Self| match number {
            Self::Whole(whole) => whole as f64,
            Self::Real(real) => real,
        };
        match (self, other) {
            (Self::Whole(one), Self::Whole(other)) => Some(one.cmp(&other)),
            (one, other) => real(one).partial_cmp(&real(other)),
        }
    }
}

pub(in crate::automation) fn is_number(value: &Value) -> bool {
    Number::of(value).is_some()
}

/// A date or time in ISO 8601. A date is its first moment.
struct Moment {
    at: DateTime,
    offset: Option<Offset>,
}

impl Moment {
    fn of(value: &Value) -> Option<Self> {
        let text = value.as_str()?.trim();
        let begins = |text: &str| {
            let mut bytes = text.bytes();
            bytes.by_ref().take(4).all(|byte| byte.is_ascii_digit()) && bytes.next() == Some(b'-')
        };
        if text.len() > LONGEST_MOMENT || !begins(text) {
            return None;
        }
        let pieces = Pieces::parse(text).ok().filter(|pieces| pieces.time_zone_annotation().is_none())?;
        let at = pieces.date().to_datetime(pieces.time().unwrap_or_default());
        Some(Self { at, offset: pieces.to_numeric_offset() })
    }

    /// Compares as instants. A missing offset is taken from the other moment.
    fn order(&self, other: &Self) -> Ordering {
        let instant = |moment: &Self| moment.offset?.to_timestamp(moment.at).ok();
        match (instant(self), instant(other)) {
            (Some(one), Some(other)) => one.cmp(&other),
            _ => self.at.cmp(&other.at),
        }
    }
}

fn as_boolean(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(boolean) => Some(*boolean),
        Value::String(text) => match text.trim() {
            text if text.eq_ignore_ascii_case("true") => Some(true),
            text if text.eq_ignore_ascii_case("false") => Some(false),
            _ => None,
        },
        _ => None,
    }
}

/// A scalar as text; `None` for lists, objects and null.
fn as_text(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(text.into()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string().into()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn texts<'v>(one: &'v Value, other: &'v Value) -> Option<(Cow<'v, str>, Cow<'v, str>)> {
    as_text(one).zip(as_text(other))
}

/// `lowers`: compare lower-cased; member names still have their original case.
fn contains(found: &Value, wanted: &Value, lowers: bool) -> bool {
    match found {
        Value::Array(items) => items.iter().any(|item| equal(item, wanted)),
        Value::Object(members) => as_text(wanted).is_some_and(|wanted| {
            members.keys().any(|name| if lowers { name.to_lowercase() == *wanted } else { *name == wanted })
        }),
        found => texts(found, wanted).is_some_and(|(found, wanted)| found.contains(&*wanted)),
    }
}

fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        // Two texts compare as numbers only if spelled alike: "007" is not "7".
        (Value::String(one_text), Value::String(other_text)) => {
            let moments = || Moment::of(one).zip(Moment::of(other));
            one_text == other_text || moments().is_some_and(|(one, other)| one.order(&other) == Ordering::Equal)
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| equal(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let same = |(name, value)| other.get(name).is_some_and(|other| equal(value, other));
            one.len() == other.len() && one.iter().all(same)
        }
        (Value::Bool(_), _) | (_, Value::Bool(_)) => as_boolean(one).is_some_and(|one| as_boolean(other) == Some(one)),
        _ if one == other => true,
        _ => Number::of(one).zip(Number::of(other)).and_then(|(one, other)| one.order(other)) == Some(Ordering::Equal),
    }
}

/// Order: numbers by value, dates by time, other texts by code point.
fn order(one: &Value, other: &Value) -> Option<Ordering> {
    if let (Some(one), Some(other)) = (Number::of(one), Number::of(other)) {
        return one.order(other);
    }
    let (one_text, other_text) = (one.as_str()?, other.as_str()?);
    match (Moment::of(one), Moment::of(other)) {
        (Some(one), Some(other)) => Some(one.order(&other)),
        _ => Some(one_text.cmp(other_text)),
    }
}
