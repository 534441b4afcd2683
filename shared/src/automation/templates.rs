//! Templates in texts: `Alert: {{event.text}} from {{event.user}}`.
//!
//! One that is the whole text keeps the type of its value; text around it makes text. There are no blocks, helpers or filters.

use std::borrow::Cow;

use jiff::{SignedDuration, Zoned, civil::Weekday, tz::TimeZone};
use serde_json::{Map, Value};

use super::{
    conditions::{Condition, Explanation},
    diagnostics::Code,
    path::Path,
};
use crate::{cut::cut, models::Timestamp};

/// What stands for a value that is not there.
pub const NO_DATA: &str = "[No available data]";

/// Of a template that is shown, in bytes.
const LONGEST_EXCERPT: usize = 80;
/// Bytes of a value that a clause is compared with.
const LARGEST_COMPARED: usize = 200_000;
/// Faults of one text that are told.
const MOST_FAULTS: usize = 5;

/// The names of dates and times that always are there, without `_utc` and `_local`.
const DATES: [&str; 11] = [
    "today",
    "tomorrow",
    "yesterday",
    "two_days_ago",
    "this_week_start",
    "this_week_end",
    "now",
    "now_minus_1h",
    "now_minus_6h",
    "now_minus_12h",
    "now_minus_24h",
];

/// Every name of a date or time: `today`, `today_utc`, `today_local`, …
pub(super) fn date_names() -> impl Iterator<Item = String> {
    DATES.iter().flat_map(|name| ["", "_utc", "_local"].map(|zone| format!("{name}{zone}")))
}

pub(super) fn is_date(name: &str) -> bool {
    DATES.contains(&in_which_zone(name).0)
}

fn in_which_zone(name: &str) -> (&str, bool) {
    match name.strip_suffix("_utc") {
        Some(name) => (name, true),
        None => (name.strip_suffix("_local").unwrap_or(name), false),
    }
}

/// A text with its templates.
#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq)]
enum Part {
    Text(String),
    Path(Path),
}

/// What is wrong with a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub code: Code,
    /// The template as it was written, cut.
    pub excerpt: String,
    /// To follow the excerpt.
    pub problem: String,
}

impl Template {
    /// Reads a text once from its beginning to its end; what is faulty is left out of the parts.
    pub fn parse(text: &str) -> (Self, Vec<Fault>) {
        let (mut parts, mut faults, mut rest) = (Vec::new(), Vec::new(), text);
        while let Some((before, opened)) = rest.split_once("{{") {
            if faults.len() >= MOST_FAULTS {
                break;
            }
            if !before.is_empty() {
                parts.push(Part::Text(before.to_owned()));
            }
            let Some((inside, after)) = opened.split_once("}}") else {
                faults.push(fault(Code::UnclosedTemplate, &format!("{{{{{opened}"), "has no }} at its end"));
                return (Self { parts }, faults);
            };
            match read(inside) {
                Ok(path) => parts.push(Part::Path(path)),
                Err((code, problem)) => faults.push(fault(code, &format!("{{{{{inside}}}}}"), &problem)),
            }
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        (Self { parts }, faults)
    }

    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.parts.iter().filter_map(|part| match part {
            Part::Path(path) => Some(path),
            Part::Text(_) => None,
        })
    }

    /// The path, if it is the whole text.
    pub fn lone(&self) -> Option<&Path> {
        match &self.parts[..] {
            [Part::Path(path)] => Some(path),
            _ => None,
        }
    }

    /// The value of the text.
    fn evaluate(&self, data: &Data<'_>, room: &mut Room) -> Result<Value, TooLarge> {
        if let Some(path) = self.lone() {
            let value = data.get(path).unwrap_or_else(|| NO_DATA.into());
            room.take(&value)?;
            return Ok(value);
        }
        let mut whole = String::new();
        for part in &self.parts {
            let text = match part {
                Part::Text(text) => Cow::Borrowed(text.as_str()),
                Part::Path(path) => match data.get(path) {
                    None | Some(Value::Null) => NO_DATA.into(),
                    Some(Value::String(text)) => text.into(),
                    Some(other) => other.to_string().into(),
                },
            };
            room.take_bytes(text.len())?;
            whole.push_str(&text);
        }
        Ok(whole.into())
    }
}

/// Templates whose values are too large together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLarge;

/// Bytes that may still be filled in.
struct Room(usize);

impl Room {
    fn take_bytes(&mut self, bytes: usize) -> Result<(), TooLarge> {
        self.0 = self.0.checked_sub(bytes).ok_or(TooLarge)?;
        Ok(())
    }

    fn take(&mut self, value: &Value) -> Result<(), TooLarge> {
        self.take_bytes(match value {
            Value::String(text) => text.len(),
            other => other.to_string().len(),
        })
    }
}

/// A value with the values of its templates in place, at any depth. Names of members stay as they are.
pub fn filled_in(value: &Value, data: &Data<'_>) -> Value {
    filled_in_within(value, data, usize::MAX).unwrap_or_default()
}

/// As [`filled_in`], with at most so many bytes of values: a short template may stand for a long text, many times.
///
/// # Errors
/// If there are more.
pub fn filled_in_within(value: &Value, data: &Data<'_>, bytes: usize) -> Result<Value, TooLarge> {
    fill(value, data, &mut Room(bytes))
}

fn fill(value: &Value, data: &Data<'_>, room: &mut Room) -> Result<Value, TooLarge> {
    match value {
        Value::String(text) if text.contains("{{") => Template::parse(text).0.evaluate(data, room),
        Value::Array(items) => items.iter().map(|item| fill(item, data, room)).collect(),
        Value::Object(members) => {
            members.iter().map(|(name, value)| Ok((name.clone(), fill(value, data, room)?))).collect()
        }
        other => {
            room.take(other)?;
            Ok(other.clone())
        }
    }
}

fn fault(code: Code, excerpt: &str, problem: &str) -> Fault {
    Fault { code, excerpt: cut(excerpt.to_owned(), LONGEST_EXCERPT), problem: problem.to_owned() }
}

fn read(inside: &str) -> Result<Path, (Code, String)> {
    let plain = inside.trim();
    if inside.contains("{{") {
        return Err((Code::NestedTemplate, "has a template within a template".to_owned()));
    }
    let block = plain.starts_with(['#', '/', '^', '>', '!', '&', '{']) || plain == "else" || plain.starts_with("else ");
    if block {
        return Err((Code::HandlebarsBlock, "is a Handlebars block".to_owned()));
    }
    Path::parse(plain).map_err(|problem| (Code::InvalidTemplate, format!("is no path: it {problem}")))
}

/// What paths lead into when an automation runs.
#[derive(Debug, Clone)]
pub struct Data<'a> {
    /// They win over everything else.
    pub variables: &'a Map<String, Value>,
    /// What the actions gave back so far, by `output_as`.
    pub outputs: &'a Map<String, Value>,
    /// Its members also stand at the root.
    pub trigger_data: &'a Value,
    /// `{id, email, timezone, phone, name}`
    pub user: &'a Value,
    pub now: Timestamp,
    /// The user's.
    pub zone: TimeZone,
}

impl Data<'_> {
    /// Whether a condition holds, and why. A value that is a template for nothing is null, so that nothing is compared with what
    /// stands for a missing value.
    pub fn explain(&self, condition: &Condition) -> Explanation {
        let compared = |value: &Value| match value {
            Value::String(text) if text.contains("{{") => match Template::parse(text).0.lone() {
                Some(path) => self.get(path).unwrap_or_default(),
                None => filled_in_within(value, self, LARGEST_COMPARED).unwrap_or_default(),
            },
            value => filled_in_within(value, self, LARGEST_COMPARED).unwrap_or_default(),
        };
        condition.explained(&|path| self.get(path), &compared)
    }

    /// The value at a path.
    pub fn get(&self, path: &Path) -> Option<Value> {
        let (first, rest) = path.steps().split_first()?;
        let name = first.name();
        let from = |value: &Value| Path::follow(rest, value).cloned();
        if let Some(value) = self.variables.get(name).or_else(|| self.outputs.get(name)) {
            return from(value);
        }
        match name {
            "trigger_data" => from(self.trigger_data),
            "user" => from(self.user),
            name if is_date(name) => rest.is_empty().then(|| self.date(name)).flatten().map(Value::from),
            _ => Path::follow(path.steps(), self.trigger_data).cloned(),
        }
    }

    /// `2026-11-22` for a day, `2026-11-22T06:41:35+01:00` for a moment; in UTC `2026-11-22T05:41:35Z`.
    fn date(&self, name: &str) -> Option<String> {
        let (name, utc) = in_which_zone(name);
        let zone = if utc { TimeZone::UTC } else { self.zone.clone() };
        let now = jiff::Timestamp::from_millisecond(self.now.as_millis()).ok()?.to_zoned(zone);
        let hours = |hours: i64| now.checked_sub(SignedDuration::from_hours(hours)).ok().map(|then| moment(&then, utc));
        let day = |days: i64| {
            let date = now.date().checked_add(jiff::Span::new().try_days(days).ok()?).ok()?;
            Some(date.to_string())
        };
        let since_monday = i64::from(now.date().weekday().since(Weekday::Monday));
        match name {
            "today" => day(0),
            "tomorrow" => day(1),
            "yesterday" => day(-1),
            "two_days_ago" => day(-2),
            "this_week_start" => day(-since_monday),
            "this_week_end" => day(6 - since_monday),
            "now" => hours(0),
            "now_minus_1h" => hours(1),
            "now_minus_6h" => hours(6),
            "now_minus_12h" => hours(12),
            "now_minus_24h" => hours(24),
            _ => None,
        }
    }
}

fn moment(at: &Zoned, utc: bool) -> String {
    at.strftime(if utc { "%Y-%m-%dT%H:%M:%SZ" } else { "%Y-%m-%dT%H:%M:%S%:z" }).to_string()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn value(text: &str) -> Value {
        let variables = json!({"team": "ops", "limit": 5, "event": {"user": "from variables"}});
        let outputs = json!({"found": {"rows": [{"n": 1}, {"n": 2}], "ok": true}, "team": "from outputs"});
        let trigger = json!({"event": {"text": "urgent"}, "score": 7, "empty": null, "found": "from the trigger"});
        let user = json!({"name": "Ada", "timezone": "Europe/Berlin"});
        let data = Data {
            variables: variables.as_object().unwrap(),
            outputs: outputs.as_object().unwrap(),
            trigger_data: &trigger,
            user: &user,
            // A Sunday; 23:30 UTC is the Monday in Berlin.
            now: "2026-11-22T23:30:05Z".parse().unwrap(),
            zone: TimeZone::get("Europe/Berlin").unwrap(),
        };
        filled_in(&json!({"deep": [text]}), &data)["deep"][0].clone()
    }

    #[test]
    fn a_template_that_is_the_whole_text_keeps_the_type_and_text_around_it_makes_text() {
        for (text, expected) in [
            ("{{score}}", json!(7)),
            ("{{ score }}", json!(7)),
            ("{{trigger_data.score}}", json!(7)),
            ("{{limit}}", json!(5)),
            ("Score {{score}}!", json!("Score 7!")),
            ("{{score}}{{limit}}", json!("75")),
            ("{{found.rows}}", json!([{"n": 1}, {"n": 2}])),
            ("rows: {{found.rows}}", json!(r#"rows: [{"n":1},{"n":2}]"#)),
            ("{{found.rows[-1].n}}", json!(2)),
            ("{{found.rows.0.n}}", json!(1)),
            ("{{found.ok}}", json!(true)),
            ("{{user.name}} {{team}}", json!("Ada ops")),
            ("{{event.user}}", json!("from variables")),
            ("{{trigger_data.event.text}}", json!("urgent")),
            ("{{event.text}}", json!(NO_DATA)),
            ("{{nothing.there}}", json!(NO_DATA)),
            ("<{{nothing}}> <{{empty}}>", json!("<[No available data]> <[No available data]>")),
            ("{{empty}}", json!(null)),
            ("no template }} here {", json!("no template }} here {")),
        ] {
            assert_eq!(value(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_filled_in_has_a_bound() {
        let (variables, outputs) = (json!({"long": "x".repeat(1_000)}), Map::new());
        let data = Data {
            variables: variables.as_object().unwrap(),
            outputs: &outputs,
            trigger_data: &Value::Null,
            user: &Value::Null,
            now: "2026-11-22T23:30:05Z".parse().unwrap(),
            zone: TimeZone::UTC,
        };
        for value in [json!({"a": ["{{long}}", "{{long}}"]}), json!("{{long}}{{long}}"), json!("<{{long}} {{long}}>")] {
            assert_eq!(filled_in_within(&value, &data, 1_999), Err(TooLarge), "{value}");
            assert!(filled_in_within(&value, &data, 2_010).is_ok(), "{value}");
        }
    }

    #[test]
    fn dates_are_the_users_unless_they_say_utc() {
        for (name, expected) in [
            ("today", "2026-11-23"),
            ("today_local", "2026-11-23"),
            ("today_utc", "2026-11-22"),
            ("tomorrow", "2026-11-24"),
            ("yesterday", "2026-11-22"),
            ("two_days_ago", "2026-11-21"),
            ("this_week_start", "2026-11-23"),
            ("this_week_end", "2026-11-29"),
            ("this_week_start_utc", "2026-11-16"),
            ("this_week_end_utc", "2026-11-22"),
            ("now", "2026-11-23T00:30:05+01:00"),
            ("now_utc", "2026-11-22T23:30:05Z"),
            ("now_minus_1h_utc", "2026-11-22T22:30:05Z"),
            ("now_minus_24h_local", "2026-11-22T00:30:05+01:00"),
        ] {
            assert_eq!(value(&format!("{{{{{name}}}}}")), json!(expected), "{name}");
        }
        assert_eq!(date_names().filter(|name| is_date(name)).count(), 33);
        assert!(!is_date("today_tomorrow") && !is_date("_utc"));
    }

    #[test]
    fn what_is_no_template_is_told_as_what_it_is() {
        for (text, code) in [
            ("{{#each items}}", Code::HandlebarsBlock),
            ("{{/each}}", Code::HandlebarsBlock),
            ("{{else}}", Code::HandlebarsBlock),
            ("{{> partial}}", Code::HandlebarsBlock),
            ("{{{raw}}}", Code::HandlebarsBlock),
            ("Hello {{name", Code::UnclosedTemplate),
            ("{{ a {{b}} }}", Code::NestedTemplate),
            ("{{}}", Code::InvalidTemplate),
            ("{{upper name}}", Code::InvalidTemplate),
            ("{{name | upper}}", Code::InvalidTemplate),
            ("{{a + b}}", Code::InvalidTemplate),
        ] {
            let (_, faults) = Template::parse(text);
            assert_eq!(faults.first().map(|fault| fault.code), Some(code), "{text}");
        }
        // However much of it there is.
        let (_, faults) = Template::parse(&"{{".repeat(500_000));
        assert_eq!(faults.len(), 1);
        let (_, faults) = Template::parse(&"{{a b}}".repeat(100_000));
        assert_eq!(faults.len(), MOST_FAULTS);
        assert!(faults.iter().all(|fault| fault.excerpt.len() < 200));
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "[a{}\\[\\]. #]{0,40}") {
            let (template, faults) = Template::parse(&text);
            prop_assert!(faults.len() <= MOST_FAULTS);
            prop_assert!(template.parts.len() <= text.len() + 1);
        }
    }
}
