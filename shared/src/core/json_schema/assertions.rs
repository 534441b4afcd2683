//! Keywords with our own implementation.
//!
//! `format` must mean the same as for a tool's arguments. The crate's `uniqueItems` has unbounded time and does not name the
//! equal items. `contentMediaType` is only an annotation in the drafts.

use std::{collections::HashMap, fmt::Write};

use jsonschema::{Keyword, ValidationError};
use serde::de::IgnoredAny;
use serde_json::Value;

use super::format;

/// `format`, for text and numbers.
pub(super) struct Format(pub(super) String);

impl Format {
    fn problem(&self, value: &Value) -> Option<String> {
        let Self(format) = self;
        match value {
            Value::String(text) if !format::has(format, text) => {
                Some(format!("must be a valid {format}{}", format::example(format)))
            }
            Value::Number(number) if !format::has_number(format, number) => {
                Some(format!("must be a valid {format}, not {number}"))
            }
            _ => None,
        }
    }
}

impl<'i> Keyword<'i> for Format {
    fn validate(&self, instance: &'i Value) -> Result<(), ValidationError<'i>> {
        self.problem(instance).map_or(Ok(()), |problem| Err(ValidationError::custom(problem)))
    }

    fn is_valid(&self, instance: &'i Value) -> bool {
        self.problem(instance).is_none()
    }
}

pub(super) struct UniqueItems(pub(super) bool);

impl<'i> Keyword<'i> for UniqueItems {
    fn validate(&self, instance: &'i Value) -> Result<(), ValidationError<'i>> {
        if self.is_valid(instance) { Ok(()) } else { Err(ValidationError::custom("")) }
    }

    fn is_valid(&self, instance: &'i Value) -> bool {
        !self.0 || duplicates(instance).next().is_none()
    }
}

/// `contentMediaType: application/json`: text that contains JSON.
pub(super) struct JsonText;

impl JsonText {
    fn problem(value: &Value) -> Option<String> {
        let error = serde_json::from_str::<IgnoredAny>(value.as_str()?).err()?;
        Some(format!("must be JSON as text; it cannot be read at line {} column {}", error.line(), error.column()))
    }
}

impl<'i> Keyword<'i> for JsonText {
    fn validate(&self, instance: &'i Value) -> Result<(), ValidationError<'i>> {
        Self::problem(instance).map_or(Ok(()), |problem| Err(ValidationError::custom(problem)))
    }

    fn is_valid(&self, instance: &'i Value) -> bool {
        Self::problem(instance).is_none()
    }
}

/// Indexes of items equal to an earlier one: the earlier index, then their own.
pub(super) fn duplicates(list: &Value) -> impl Iterator<Item = (usize, usize)> {
    let mut seen = HashMap::new();
    let items = list.as_array().map(Vec::as_slice).unwrap_or_default();
    items.iter().enumerate().filter_map(move |(index, item)| {
        let mut key = String::new();
        write_canonical(item, &mut key);
        let first = *seen.entry(key).or_insert(index);
        (first != index).then_some((first, index))
    })
}

/// Writes the same text for equal values only: 1 equals 1.0, and the order of members is irrelevant.
fn write_canonical(value: &Value, text: &mut String) {
    match value {
        Value::Number(number) => {
            let _ = match format::whole(number) {
                Some(whole) => write!(text, "{whole}"),
                None => write!(text, "{number}"),
            };
        }
        Value::Array(items) => {
            text.push('[');
            for item in items {
                write_canonical(item, text);
                text.push(',');
            }
            text.push(']');
        }
        Value::Object(members) => {
            text.push('{');
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            for (name, member) in members {
                let _ = write!(text, "{}:", Value::from(name.as_str()));
                write_canonical(member, text);
                text.push(',');
            }
            text.push('}');
        }
        other => {
            let _ = write!(text, "{other}");
        }
    }
}
