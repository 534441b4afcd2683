//! Redacts values and cuts them to a budget.

use serde_json::{Map, Number, Value};

use super::{
    DEEPEST, HIDDEN, SECRET, WINDOW,
    hidden_texts::{HiddenTexts, is_hidden},
    marks::Paths,
    patterns::{clean, without_secrets},
};
use crate::cut::{cut, cut_to, instead_of};

/// Text examined, as a multiple of the bytes that may be kept.
const WINDOWS: usize = 8;
/// Bytes.
const LONGEST_NAME: usize = 160;
const MOST_NAMES: usize = 50;

/// Walks a value, and keeps the permitted parts while the budget lasts.
pub(super) struct Redactor<'a> {
    pub(super) hidden: &'a HiddenTexts,
    /// Bytes, not counting markers.
    pub(super) left: usize,
    /// Shows phone numbers and e-mail addresses.
    pub(super) people: bool,
}

impl Redactor<'_> {
    pub(super) fn value(&mut self, value: &Value, marks: &Paths<'_>, depth: usize) -> Value {
        match value {
            _ if marks.marked() => HIDDEN.into(),
            Value::Null | Value::Bool(_) => {
                self.take(4);
                value.clone()
            }
            Value::Number(number) => self.number(number),
            Value::String(text) => self.text(text).into(),
            Value::Array(_) | Value::Object(_) if depth >= DEEPEST => instead_of("deeper levels").into(),
            Value::Array(items) => {
                let mut kept = Vec::new();
                for item in items {
                    if self.left == 0 {
                        kept.push(more(items.len() - kept.len()).into());
                        break;
                    }
                    self.take(2);
                    kept.push(self.value(item, marks, depth + 1));
                }
                Value::Array(kept)
            }
            Value::Object(members) => Value::Object(self.members(members, marks, depth, |_name| None)),
        }
    }

    /// `instead`: a replacement by member name, for any value.
    pub(super) fn members(
        &mut self,
        members: &Map<String, Value>,
        marks: &Paths<'_>,
        depth: usize,
        instead: impl Fn(&str) -> Option<&'static str>,
    ) -> Map<String, Value> {
        let mut kept = Map::new();
        for (index, (name, value)) in members.iter().enumerate() {
            if self.left == 0 {
                kept.insert("…".into(), more(members.len() - index).into());
                break;
            }
            let marks = marks.within(name);
            let value = match value {
                _ if let Some(instead) = instead(name) => instead.into(),
                _ if !marks.marked() && is_hidden(name, value) => SECRET.into(),
                _ => self.value(value, &marks, depth + 1),
            };
            let mut shown = self.name(name);
            if kept.contains_key(&shown) {
                // Two names became equal by redaction.
                shown = format!("{shown} {index}");
            }
            kept.insert(shown, value);
        }
        kept
    }

    pub(super) fn names(&mut self, names: &[String]) -> Vec<String> {
        let mut kept: Vec<String> = names.iter().take(MOST_NAMES).map(|name| self.name(name)).collect();
        kept.extend(names.len().checked_sub(MOST_NAMES + 1).map(|beyond| more(beyond + 1)));
        kept
    }

    /// DynamoDB allows no empty names.
    fn name(&mut self, name: &str) -> String {
        self.take(name.len().clamp(4, LONGEST_NAME));
        let kept = cut(self.clean(window(name, WINDOW)), LONGEST_NAME);
        if kept.is_empty() { "[no name]".into() } else { kept }
    }

    /// Keeps a number that is no phone number and that DynamoDB can store.
    fn number(&mut self, number: &Number) -> Value {
        let text = number.to_string();
        self.take(text.len());
        let size = number.as_f64().map_or(f64::INFINITY, f64::abs);
        // Coordinates and measures have decimal places, phone numbers in JSON do not.
        let measure = number.is_f64() && (1e-6..1e5).contains(&size) && size.fract() != 0.0;
        let clean = if measure { self.hidden.replaced(&text) } else { self.clean(window(&text, WINDOW)) };
        let storable = size == 0.0 || (1e-130..=9.9e125).contains(&size);
        if clean == text && storable { number.clone().into() } else { clean.into() }
    }

    pub(super) fn text(&mut self, text: &str) -> String {
        let seen = window(text, WINDOW.min(self.left.saturating_mul(WINDOWS)));
        let kept = self.clean(seen);
        let room = self.left;
        self.take(kept.len().max(4));
        if seen.len() == text.len() && kept.len() <= room {
            return kept;
        }
        let whole = kept.len() + text.len() - seen.len();
        cut_to(kept, room, whole)
    }

    fn clean(&self, text: &str) -> String {
        let text = self.hidden.replaced(text);
        if self.people { without_secrets(&text) } else { clean(&text) }
    }

    fn take(&mut self, bytes: usize) {
        self.left = self.left.saturating_sub(bytes);
    }
}

fn more(members: usize) -> String {
    instead_of(format_args!("{members} more"))
}

/// The examined beginning of a text. Ends between words, because half a phone number could not be recognized.
pub(super) fn window(text: &str, most: usize) -> &str {
    if text.len() <= most {
        return text;
    }
    let (beginning, _) = text.split_at(text.floor_char_boundary(most));
    let (surely, last) = beginning.split_at(beginning.floor_char_boundary(most - most / 8));
    let whole =
        last.rfind(char::is_whitespace).map_or(surely, |end| beginning.get(..surely.len() + end).unwrap_or(surely));
    whole.trim_end_matches(|c: char| !c.is_alphabetic())
}
