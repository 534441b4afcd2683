//! The repair of a diagnostic as JSON Patch (RFC 6902), where one repair is likely.

use serde::Serialize;
use serde_json::Value;

use super::{
    diagnostics::{Code, Diagnostic, child},
    schedule::cron::CronExpression,
};
use crate::{
    automation::{
        expressions::{filters, templates::Template},
        nearest,
    },
    described::Described,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Described)]
#[serde(rename_all = "snake_case")]
pub enum RepairKind {
    Add,
    Replace,
    Move,
}

/// One operation of a JSON Patch on the definition.
#[derive(Debug, Clone, PartialEq, Serialize, Described)]
pub struct RepairStep {
    pub op: RepairKind,
    /// JSON pointer.
    pub path: String,
    /// Where `move` takes the value from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
}

impl RepairStep {
    pub(in crate::automation) fn add(path: impl Into<String>, value: impl Into<Value>) -> Self {
        Self { op: RepairKind::Add, path: path.into(), from: None, value: Some(value.into()) }
    }

    pub(in crate::automation) fn replace(path: impl Into<String>, value: impl Into<Value>) -> Self {
        Self { op: RepairKind::Replace, ..Self::add(path, value) }
    }

    fn rename(from: &str, name: &str) -> Self {
        let parent = from.rsplit_once('/').map_or("", |(parent, _)| parent);
        Self { op: RepairKind::Move, path: child(parent, name), from: Some(from.to_owned()), value: None }
    }
}

/// Adds the repair that follows from the diagnostic and the value at its place.
pub(super) fn add_repair(diagnostic: &mut Diagnostic, definition: &Value) {
    if !diagnostic.repair.is_empty() {
        return;
    }
    if diagnostic.code == Code::UnknownPath && diagnostic.did_you_mean.is_none() {
        name_the_item(diagnostic, definition);
    } else if let Some(step) = step_for(diagnostic, definition) {
        diagnostic.repair.push(step);
    }
}

fn step_for(diagnostic: &Diagnostic, definition: &Value) -> Option<RepairStep> {
    let pointer = &diagnostic.pointer;
    let meant = diagnostic.did_you_mean.as_deref();
    if let (Code::UnknownField | Code::UnknownParameter, Some(meant)) = (diagnostic.code, meant) {
        let step = RepairStep::rename(pointer, meant);
        return definition.pointer(&step.path).is_none().then_some(step);
    }
    let text = definition.pointer(pointer)?.as_str()?;
    let found = diagnostic.found.as_ref().and_then(Value::as_str).unwrap_or_default();
    let repaired = match (diagnostic.code, meant) {
        (Code::WrongType, None) => {
            let value = serde_json::from_str::<Value>(text).ok()?;
            let fits = match diagnostic.expected.as_deref()? {
                "a whole number" => value.is_u64(),
                "a number" => value.is_number(),
                "true or false" => value.is_boolean(),
                _ => false,
            };
            return fits.then(|| RepairStep::replace(pointer, value));
        }
        (Code::UnclosedTemplate, _) if text.ends_with(found) => format!("{}}}}}", text.trim_end_matches('}')),
        (Code::InvalidTemplate, _) => text.replace(found, &with_known_filters(found)?),
        (Code::InvalidValue, None) if pointer.starts_with("/trigger_config/cron") => without_seconds(text)?,
        (Code::UnknownPath, Some(meant)) => {
            with_path(text, found.trim_start_matches("{{").trim_end_matches("}}").trim(), meant)?
        }
        (_, Some(meant)) if text == found => meant.to_owned(),
        _ => return None,
    };
    Some(RepairStep::replace(pointer, repaired))
}

/// The text with `meant` in place of each `path`; `None` without such a path.
fn with_path(text: &str, path: &str, meant: &str) -> Option<String> {
    let belongs = |letter: char| letter.is_alphanumeric() || "_-.[]".contains(letter);
    let (mut repaired, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once(path).filter(|_| !path.is_empty()) {
        let apart = !before.ends_with(belongs) && !after.starts_with(|letter| belongs(letter) && letter != '.');
        repaired.push_str(before);
        repaired.push_str(if apart { meant } else { path });
        rest = after;
    }
    repaired.push_str(rest);
    (repaired != text).then_some(repaired)
}

/// The template with the nearest names of filters that do not exist, if it can be read then.
fn with_known_filters(template: &str) -> Option<String> {
    let mut parts = template.split('|');
    let mut repaired = parts.next()?.to_owned();
    for part in parts {
        let start = part.len() - part.trim_start().len();
        let (blank, part) = part.split_at(start);
        let end = part.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(part.len());
        let (name, arguments) = part.split_at(end);
        let known = filters::exists(name).then_some(name).or_else(|| nearest(name, filters::names()))?;
        repaired.extend(["|", blank, known, arguments]);
    }
    (repaired != template && Template::parse(&repaired).1.is_empty()).then_some(repaired)
}

/// An expression of five fields for one with seconds at its beginning, or with `?` for any day.
fn without_seconds(cron: &str) -> Option<String> {
    let fields: Vec<&str> = cron.split_whitespace().map(|field| if field == "?" { "*" } else { field }).collect();
    let five = match &fields[..] {
        ["0" | "00", five @ ..] if five.len() == 5 => five.join(" "),
        all => all.join(" "),
    };
    (five != cron && CronExpression::parse(&five).is_ok()).then_some(five)
}

/// An unknown name in a loop that does not name its item is likely to be the item's.
fn name_the_item(diagnostic: &mut Diagnostic, definition: &Value) {
    let found = diagnostic.found.as_ref().and_then(Value::as_str).unwrap_or_default();
    let path = found.trim_start_matches("{{").trim();
    let end = path.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(path.len());
    let name = path.get(..end).filter(|name| !name.is_empty()).map(str::to_owned);
    let inside = [
        diagnostic.pointer.strip_suffix("/key"),
        diagnostic.pointer.rfind("/actions/").and_then(|end| diagnostic.pointer.get(..end)),
    ];
    let a_loop = inside.into_iter().flatten().find(|place| {
        let members = definition.pointer(place).filter(|members| members.get("for_each").is_some());
        members.is_some_and(|members| members.get("as").is_none())
    });
    if let (Some(name), Some(a_loop)) = (name, a_loop) {
        diagnostic.hint = format!("Add \"as\": \"{name}\" to the loop if it is the item's name. {}", diagnostic.hint);
        diagnostic.repair.push(RepairStep::add(format!("{a_loop}/as"), name));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_whole_path_is_replaced() {
        for (text, path, meant, repaired) in [
            ("{{event.txt}} of {{event.txt.x}}", "event.txt", "event.text", Some("{{event.text}} of {{event.text.x}}")),
            ("{{found.event.txt}}", "event.txt", "event.text", None),
            ("{{event.txts}}", "event.txt", "event.text", None),
            ("{{a | join(sep)}}", "sep", "separator", Some("{{a | join(separator)}}")),
            ("{{x}}", "", "y", None),
        ] {
            assert_eq!(with_path(text, path, meant).as_deref(), repaired, "{text}");
        }
    }

    #[test]
    fn a_repair_is_one_that_can_be_read() {
        assert_eq!(without_seconds("0 0 9 * * MON-FRI").as_deref(), Some("0 9 * * MON-FRI"));
        assert_eq!(without_seconds("0 0 9 ? * MON").as_deref(), Some("0 9 * * MON"));
        assert_eq!(without_seconds("*/10 0 9 * * MON"), None, "seconds are meant");
        assert_eq!(without_seconds("0 0 99 * * MON"), None);
        assert_eq!(with_known_filters("{{name | uper | trim}}").as_deref(), Some("{{name | upper | trim}}"));
        assert_eq!(with_known_filters("{{name | frobnicate}}"), None);
        assert_eq!(with_known_filters("{{name | uper(}}"), None);
    }

    #[test]
    fn a_rename_does_not_overwrite() {
        let error = || Diagnostic::error(Code::UnknownField, "/actions/0/else", "M.", "H.").meaning(Some("otherwise"));
        let mut diagnostic = error();
        add_repair(&mut diagnostic, &json!({"actions": [{"else": []}]}));
        let step = diagnostic.repair.pop().unwrap();
        assert_eq!((step.op, step.path.as_str()), (RepairKind::Move, "/actions/0/otherwise"));
        let mut diagnostic = error();
        add_repair(&mut diagnostic, &json!({"actions": [{"else": [], "otherwise": []}]}));
        assert!(diagnostic.repair.is_empty());
    }
}
