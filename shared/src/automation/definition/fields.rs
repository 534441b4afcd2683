//! Strict JSON objects (`fields.rs`) for definitions: each mistake becomes a diagnostic.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use super::{
    diagnostics::{Code, Diagnostic, Diagnostics},
    repair::RepairStep,
};
use crate::{
    automation::nearest,
    fields::{StrictObject, kind},
};

/// Where each field belongs, for misplaced ones.
const PLACES: [(&str, &[&str]); 6] = [
    ("the definition itself", &["name", "description", "trigger_type", "trigger_config", "actions", "variables"]),
    ("the definition itself", &["fingerprints", "prompt", "tools", "quotas", "approvals"]),
    ("trigger_config", &["service", "hook", "event_type", "filters", "source_tool", "tool_params", "items"]),
    ("trigger_config", &["polling_interval_minutes", "filter", "aggregation_mode", "interval", "cron", "not_on"]),
    ("trigger_config", &["time_of_day", "day_of_week", "timezone", "run_at"]),
    (
        "an action",
        &["tool", "parameters", "output_as", "condition", "approval", "timeout_seconds", "on_error", "retries"],
    ),
];

/// Each field with other names for it, for hints.
const OTHER_NAMES: [(&str, &[&str]); 10] = [
    ("cron", &["schedule", "expression", "cron_expression"]),
    ("not_on", &["except", "exclude", "holidays"]),
    ("time_of_day", &["time", "at", "hour"]),
    ("day_of_week", &["day", "weekday"]),
    ("timezone", &["tz", "time_zone"]),
    ("interval", &["frequency"]),
    ("when", &["if", "condition"]),
    ("otherwise", &["else", "default"]),
    ("until", &["till"]),
    ("as", &["item"]),
];

/// Each value with other words for it, for hints.
const OTHER_VALUES: [(&str, &[&str]); 5] = [
    ("daily", &["day"]),
    ("weekly", &["week"]),
    ("1hr", &["hour", "hourly"]),
    ("stop", &["abort", "halt"]),
    ("continue", &["ignore", "skip"]),
];

/// The known name that is likely to be meant: the one that `others` has for it, else the nearest.
fn meant<'n>(written: &str, others: &[(&'n str, &[&str])], known: &[&'n str]) -> Option<&'n str> {
    let other = others.iter().find(|(meant, others)| others.contains(&written) && known.contains(meant));
    other.map(|(meant, _)| *meant).or_else(|| nearest(written, known.iter().copied()))
}

const MOST_UNKNOWN: usize = 20;

/// An object of a definition, with places as JSON pointers.
pub(in crate::automation) type Members<'a, 'd> = StrictObject<'a, 'd, Diagnostics>;

impl<'a, 'd> Members<'a, 'd> {
    /// `None`, with a diagnostic, if `value` is no object.
    pub(in crate::automation) fn of(value: &'a Value, pointer: &str, diagnostics: &'d mut Diagnostics) -> Option<Self> {
        if let Value::Object(object) = value {
            return Some(Self::below_pointer(object, pointer.to_owned(), diagnostics));
        }
        diagnostics.push(wrong_type(pointer, value, "an object", "{...}"));
        None
    }

    pub(super) fn error(&mut self, code: Code, name: &str, message: impl Into<String>, hint: impl Into<String>) {
        let diagnostic = Diagnostic::error(code, self.path(name), message, hint);
        self.report.push(match self.present(name) {
            Some(found) => diagnostic.found(found),
            None => diagnostic,
        });
    }

    pub(super) fn present(&self, name: &str) -> Option<&'a Value> {
        self.given(name).filter(|value| !value.is_null())
    }

    /// As [`StrictObject::get`], for a field or its alias.
    pub(super) fn get_either(&mut self, name: &'static str, alias: &'static str) -> (&'static str, Option<&'a Value>) {
        match (self.get(name), self.get(alias)) {
            (Some(value), None) => (name, Some(value)),
            (Some(value), Some(_)) => {
                let message = format!("{alias} is another name of {name}, and both are given.");
                self.error(Code::DuplicateField, alias, message, format!("Keep {name} and leave {alias} out."));
                (name, Some(value))
            }
            (None, Some(value)) => (alias, Some(value)),
            (None, None) => (name, None),
        }
    }

    /// `example`: JSON text of an allowed value.
    pub(in crate::automation) fn required(&mut self, name: &'static str, example: &str) -> Option<&'a Value> {
        let value = self.get(name);
        if value.is_none() {
            self.missing(name, example);
        }
        value
    }

    pub(super) fn missing(&mut self, name: &str, example: &str) {
        let hint = format!("Add \"{name}\": {example}.");
        let mut error =
            Diagnostic::error(Code::MissingField, self.path(name), format!("{name} is required and missing."), hint);
        // A number may be taken over as it stands, a name may not.
        if let Ok(number) = example.parse::<u64>() {
            error.repair = vec![RepairStep::add(self.path(name), number)];
        }
        self.report.push(error);
    }

    /// Text that is not blank, with at most `longest` characters.
    pub(super) fn text(&mut self, name: &'static str, longest: usize, example: &str) -> Option<String> {
        let value = self.get(name)?;
        self.as_text(name, value, longest, example)
    }

    pub(super) fn as_text(&mut self, name: &str, value: &Value, longest: usize, example: &str) -> Option<String> {
        let Some(text) = value.as_str() else {
            self.report.push(wrong_type(&self.path(name), value, "text", example));
            return None;
        };
        let text = text.trim();
        if text.is_empty() {
            self.error(Code::InvalidValue, name, format!("{name} is blank."), format!("Write for example {example}."));
            return None;
        }
        let length = text.chars().count();
        if length > longest {
            let message = format!("{name} has {length} characters; the limit is {longest}.");
            self.error(Code::InvalidValue, name, message, "Shorten it.");
            return None;
        }
        Some(text.to_owned())
    }

    pub(super) fn required_text(&mut self, name: &'static str, longest: usize, example: &str) -> Option<String> {
        let value = self.required(name, example)?;
        self.as_text(name, value, longest, example)
    }

    pub(in crate::automation) fn boolean(&mut self, name: &'static str) -> bool {
        let Some(value) = self.get(name) else { return false };
        value.as_bool().unwrap_or_else(|| {
            self.report.push(wrong_type(&self.path(name), value, "true or false", "true"));
            false
        })
    }

    pub(super) fn whole(&mut self, name: &'static str, bounds: &RangeInclusive<u64>, example: &str) -> Option<u64> {
        let value = self.get(name)?;
        let Some(number) = value.as_u64().or_else(|| value.is_i64().then_some(0)) else {
            self.report.push(wrong_type(&self.path(name), value, "a whole number", example));
            return None;
        };
        if !bounds.contains(&number) || value.as_u64().is_none() {
            let message = format!("{name} must be from {} to {}.", bounds.start(), bounds.end());
            let hint = format!("Write for example {example}.");
            let error = Diagnostic::error(Code::InvalidValue, self.path(name), message, hint);
            let nearest = number.clamp(*bounds.start(), *bounds.end());
            self.report.push(error.found(value).instead(nearest));
            return None;
        }
        Some(number)
    }

    pub(super) fn one_of(&mut self, name: &'static str, allowed: &[&'static str]) -> Option<&'static str> {
        let value = self.get(name)?;
        let given = value.as_str();
        if let Some(found) = given.and_then(|given| allowed.iter().find(|allowed| **allowed == given)) {
            return Some(found);
        }
        let meant = given.and_then(|given| meant(given, &OTHER_VALUES, allowed));
        let message = format!("This is not a valid value of {name}.");
        let error = Diagnostic::error(Code::InvalidValue, self.path(name), message, "Use an allowed value.");
        self.report.push(error.found(value).allowed(allowed.iter().copied()).meaning(meant));
        None
    }

    pub(super) fn object(&mut self, name: &'static str, example: &str) -> Option<&'a Map<String, Value>> {
        let value = self.get(name)?;
        self.as_object(name, value, example)
    }

    pub(super) fn as_object(&mut self, name: &str, value: &'a Value, example: &str) -> Option<&'a Map<String, Value>> {
        let object = value.as_object();
        if object.is_none() {
            self.report.push(wrong_type(&self.path(name), value, "an object", example));
        }
        object
    }

    /// Reports fields that have no meaning in this combination.
    pub(super) fn refuse(&mut self, names: &[&'static str], because: &str) {
        for name in names {
            self.unlist([*name]);
            if self.get(name).is_some() {
                let message = format!("{name} has no meaning here: {because}.");
                self.error(Code::UnknownField, name, message, "Leave it out.");
            }
        }
    }

    pub(in crate::automation) fn finish(&mut self) {
        let (unknown, known) = self.unknown();
        let pointer = self.place().to_owned();
        for (name, value) in unknown.into_iter().take(MOST_UNKNOWN) {
            let nearest = meant(name, &OTHER_NAMES, &known);
            let belongs = PLACES.iter().find(|(_, fields)| fields.contains(&name.as_str())).map(|(place, _)| *place);
            let hint = match belongs {
                Some("trigger_config") if pointer == "/trigger_config" => {
                    "Leave it out: it has no meaning with this trigger_type.".to_owned()
                }
                Some("an action") if pointer.starts_with("/actions/") => "Leave it out.".to_owned(),
                Some(place) => format!("Move it to {place}, or leave it out."),
                None if !pointer.starts_with("/actions/") => "Leave it out.".to_owned(),
                None => "Leave it out; a tool's arguments go into the parameters of its action.".to_owned(),
            };
            let message = format!("There is no field {} here.", crate::cut::cut(name.clone(), 60));
            let error = Diagnostic::error(Code::UnknownField, self.path(name), message, hint);
            self.report.push(error.found(value).allowed(known.iter().copied()).meaning(nearest));
        }
    }
}

pub(super) fn wrong_type(pointer: &str, value: &Value, expected: &str, example: &str) -> Diagnostic {
    let message = format!("Expected {expected}, but this is {}.", kind(value));
    let error = Diagnostic::error(Code::WrongType, pointer, message, format!("Write for example {example}."));
    error.found(value).expected(expected)
}
