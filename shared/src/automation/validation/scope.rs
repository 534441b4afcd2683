//! The paths available at one place of a definition, and the knowledge about their values.

use std::{collections::BTreeMap, fmt};

use serde_json::{Map, Value};

use crate::automation::{
    definition::{
        diagnostics::{Code, Diagnostic, Severity},
        steps::{Step, outputs_of},
    },
    expressions::{
        data::{date_names, is_date},
        path::{Path, PathStep},
    },
    nearest,
};
use crate::webhooks::ANY_EVENT;

const USER: [&str; 5] = ["id", "email", "timezone", "phone", "name"];
/// `$ref`s followed per path.
const MOST_REFERENCES: usize = 10;
/// Names compared for a hint, and bytes of each.
const MOST_NEAR: usize = 500;
const LONGEST_NEAR: usize = 200;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Knowledge<'a> {
    Value(&'a Value),
    Like(&'a Value),
    Schema(&'a Value),
    Text,
    Nothing,
    /// As `Nothing`, for a reason that is reported elsewhere.
    ToldElsewhere,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum TriggerData<'a> {
    None,
    /// A manual run brings any data, reached only as `trigger_data.…`.
    Given,
    /// Documented paths with their descriptions, and perhaps an example event.
    Fields {
        of: &'a str,
        fields: &'a BTreeMap<String, String>,
        example: Option<&'a Value>,
    },
    /// Sample items; other items may have other fields.
    Items {
        of: Sample<'a>,
        items: &'a [Value],
    },
    /// Items of a polled tool together: `{items, count}`, or `{items, count, text}` in a summary.
    Several {
        summary: bool,
    },
    /// Unknown, for a reason that is reported elsewhere.
    Unknown,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Sample<'a> {
    /// Of the polled tool.
    Answer(&'a str),
    /// Events of this type that came.
    Events(&'a str),
}

impl fmt::Display for Sample<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answer(tool) => write!(f, "the answer of {tool}"),
            Self::Events(ANY_EVENT) => f.write_str("the sample of events"),
            Self::Events(event) => write!(f, "the sample of {event} events"),
        }
    }
}

impl TriggerData<'_> {
    /// Fields of the object that groups several items.
    fn fields_of_several(summary: bool) -> Vec<&'static str> {
        if summary { vec!["count", "items", "text"] } else { vec!["count", "items"] }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Output<'a> {
    pub(super) name: &'a str,
    /// JSON schema, if it says anything.
    pub(super) returns: Option<&'a Value>,
}

#[derive(Debug, Clone)]
pub(super) struct Scope<'a> {
    pub(super) variables: &'a Map<String, Value>,
    pub(super) outputs: Vec<Output<'a>>,
    /// This step with those after it, of each level; the innermost is the last.
    pub(super) later: Vec<&'a [Step]>,
    /// Id of this action, if the place is in one.
    pub(super) action: Option<&'a str>,
    /// Variables or outputs could not be parsed, so an unknown name may be one of them.
    pub(super) unsure: bool,
    pub(super) trigger: TriggerData<'a>,
    /// Items of lists by name, in loops and in a condition about a list; the innermost is the last.
    pub(super) items: Vec<(&'a str, Item<'a>)>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Item<'a> {
    Samples(&'a [Value]),
    Schema(&'a Value),
    Unknown,
}

/// A mistake in a path: its diagnostic without the place. Near names are searched only if it is reported.
pub(super) struct WrongPath<'a> {
    pub(super) severity: Severity,
    code: Code,
    message: String,
    hint: String,
    /// The unknown name, and the names available there.
    written: String,
    names: Vec<&'a str>,
    prefix: String,
    /// The whole path, if the names are root names.
    whole: Option<String>,
}

impl<'a> WrongPath<'a> {
    fn new(code: Code, message: String, hint: impl Into<String>) -> Self {
        let (written, names, prefix) = (String::new(), Vec::new(), String::new());
        Self { severity: Severity::Error, code, message, hint: hint.into(), written, names, prefix, whole: None }
    }

    fn among(self, written: &str, names: Vec<&'a str>, prefix: &str) -> Self {
        Self { written: written.to_owned(), names, prefix: prefix.to_owned(), ..self }
    }

    fn perhaps(self) -> Self {
        Self { severity: Severity::Warning, ..self }
    }

    pub(super) fn at(self, pointer: &str, found: &str) -> Diagnostic {
        let near: Vec<&str> =
            self.names.iter().copied().filter(|name| name.len() <= LONGEST_NEAR).take(MOST_NEAR).collect();
        let among = |written: &str| nearest(written, near.iter().copied()).map(|name| format!("{}{name}", self.prefix));
        let rest =
            self.whole.as_deref().and_then(|whole| whole.strip_prefix(self.written.as_str())).unwrap_or_default();
        let below = |name: String| name + rest;
        let meaning = match &self.whole {
            None if near.is_empty() => None,
            None => among(&self.written),
            Some(whole) => {
                let root = among(&self.written);
                // A near root keeps what was written below it.
                let field = among(whole).filter(|field| root.as_ref() != Some(field));
                field.or_else(|| root.map(below)).or_else(|| {
                    let dates: Vec<String> = date_names().collect();
                    nearest(&self.written, dates.iter().map(String::as_str)).map(str::to_owned)
                })
            }
        };
        let allowed = self.names.iter().map(|name| format!("{}{name}", self.prefix));
        let error = Diagnostic::error(self.code, pointer, self.message, self.hint);
        let error = Diagnostic { severity: self.severity, ..error };
        error.found(&found.into()).allowed(allowed).meaning(meaning.as_deref())
    }
}

impl<'a> Scope<'a> {
    /// Before any action.
    pub(super) fn of(variables: &'a Map<String, Value>, trigger: TriggerData<'a>) -> Self {
        let (outputs, later, items) = (Vec::new(), Vec::new(), Vec::new());
        Self { variables, outputs, later, action: None, unsure: false, trigger, items }
    }

    pub(super) fn look_up(&self, path: &Path) -> Result<Knowledge<'a>, Box<WrongPath<'a>>> {
        let Some((first, rest)) = path.steps().split_first() else { return Ok(Knowledge::Nothing) };
        let name = first.name();
        if let Some((_, item)) = self.items.iter().rev().find(|(item, _)| *item == name) {
            return item.look_up(rest, path);
        }
        if let Some(value) = self.variables.get(name) {
            let found = Path::follow(rest, value).map(Knowledge::Value);
            return found.ok_or_else(|| Box::new(nothing_at(path, &format!("the variable {name}"), value, rest)));
        }
        if let Some(output) = self.outputs.iter().find(|output| output.name == name) {
            return output.returns.map_or(Ok(Knowledge::Nothing), |schema| below(schema, rest, path));
        }
        match name {
            "trigger_data" => self.in_trigger(path, rest, true),
            "user" => user(path, rest),
            "event_data" => {
                let rest: Vec<&str> = rest.iter().map(PathStep::name).collect();
                let message = "There is no event_data.".to_owned();
                let hint = format!("Write {{{{trigger_data.{}}}}}: the event stands in trigger_data.", rest.join("."));
                Err(Box::new(WrongPath::new(Code::EventData, message, hint)))
            }
            name if is_date(name) && rest.is_empty() => Ok(Knowledge::Text),
            name if is_date(name) => {
                let message = format!("{name} is text and has no fields.");
                Err(Box::new(WrongPath::new(Code::UnknownPath, message, format!("Write {name} alone."))))
            }
            _ => self.elsewhere(path),
        }
    }

    /// A path whose root is no built-in name.
    fn elsewhere(&self, path: &Path) -> Result<Knowledge<'a>, Box<WrongPath<'a>>> {
        let name = path.first();
        if self.has_field(name) {
            return self.in_trigger(path, path.steps(), false);
        }
        let mut later = self.later.iter().rev().flat_map(|steps| outputs_of(steps));
        if let Some((_, action)) = later.find(|(later, _)| *later == name) {
            if self.action == Some(action) {
                let message = format!("{name} is the output of this action itself, which has not run by then.");
                let hint = "Use an output of an earlier action, or a field of the trigger.";
                return Err(Box::new(WrongPath::new(Code::OutputNotYet, message, hint)));
            }
            let message = format!("{name} is the output of the action {action}, which has not run by then.");
            let hint = format!("Move the action {action} before this one, or use an output of an earlier action.");
            return Err(Box::new(WrongPath::new(Code::OutputNotYet, message, hint)));
        }
        match self.trigger {
            // The name may be a field of the trigger.
            TriggerData::Unknown => Ok(Knowledge::ToldElsewhere),
            _ if self.unsure => Ok(Knowledge::ToldElsewhere),
            TriggerData::Items { .. } => Err(Box::new(self.nothing_named(path).perhaps())),
            TriggerData::Fields { .. } | TriggerData::Several { .. } | TriggerData::None | TriggerData::Given => {
                Err(Box::new(self.nothing_named(path)))
            }
        }
    }

    /// Whether `name` is the path of a field of the trigger, or its beginning.
    pub(super) fn has_field(&self, name: &str) -> bool {
        match self.trigger {
            TriggerData::Fields { fields, .. } => fields.keys().any(|field| {
                let rest = field.strip_prefix(name);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
            }),
            TriggerData::Items { items, .. } => items.iter().any(|item| item.get(name).is_some()),
            TriggerData::Several { summary } => TriggerData::fields_of_several(summary).contains(&name),
            _ => false,
        }
    }

    /// Whether the trigger's fields come from a description rather than a sample.
    pub(super) fn has_described_fields(&self) -> bool {
        matches!(self.trigger, TriggerData::Fields { .. } | TriggerData::Several { .. })
    }

    fn nothing_named(&self, path: &Path) -> WrongPath<'a> {
        let name = path.first();
        let given = matches!(self.trigger, TriggerData::Given);
        let message = format!("{name} is not defined here.");
        let hint = if given {
            format!(
                "Write trigger_data.{} if the run is started with that field, or define the variable {name}.",
                path.as_str()
            )
        } else {
            "Use a field of the trigger, the output_as of an earlier action, a variable, a date or user.".to_owned()
        };
        let wrong = WrongPath::new(Code::UnknownPath, message, hint);
        let mut names = self.names();
        names.extend(["trigger_data", "user.email", "today", "now"]);
        WrongPath { whole: Some(path.as_str().to_owned()), ..wrong.among(name, names, "") }
    }

    /// Candidates for a near-name hint: variables, outputs and fields.
    fn names(&self) -> Vec<&'a str> {
        let mut names: Vec<&'a str> = self.variables.keys().map(String::as_str).collect();
        names.extend(self.outputs.iter().map(|output| output.name));
        names.extend(self.items.iter().map(|(name, _)| *name));
        match self.trigger {
            TriggerData::Fields { fields, .. } => names.extend(fields.keys().map(String::as_str)),
            TriggerData::Items { items, .. } => {
                let members = items.first().and_then(Value::as_object);
                names.extend(members.into_iter().flatten().map(|(name, _)| name.as_str()));
            }
            TriggerData::Several { summary } => names.extend(TriggerData::fields_of_several(summary)),
            _ => {}
        }
        names
    }

    fn in_trigger(&self, path: &Path, steps: &[PathStep], prefixed: bool) -> Result<Knowledge<'a>, Box<WrongPath<'a>>> {
        let prefix = if prefixed { "trigger_data." } else { "" };
        match self.trigger {
            TriggerData::None => {
                let message = "A schedule brings no trigger_data.".to_owned();
                let hint = "Let an action fetch the data and use its output_as, or choose another trigger.";
                Err(Box::new(WrongPath::new(Code::UnknownPath, message, hint)))
            }
            TriggerData::Given => Ok(Knowledge::Nothing),
            TriggerData::Unknown => Ok(Knowledge::ToldElsewhere),
            TriggerData::Several { summary } => in_several(summary, steps, prefix),
            TriggerData::Items { of, items } => in_sample(items, steps).ok_or_else(|| {
                let item = items.first().unwrap_or(&Value::Null);
                Box::new(nothing_at(path, &of.to_string(), item, steps).perhaps())
            }),
            TriggerData::Fields { of, fields, example } => in_fields(fields, example, steps).ok_or_else(|| {
                let written: Vec<&str> = steps.iter().map(PathStep::name).collect();
                let message = format!("The event {of} has no field {}.", written.join("."));
                let wrong = WrongPath::new(Code::UnknownPath, message, "Use one of the event's fields.");
                Box::new(wrong.among(&written.join("."), fields.keys().map(String::as_str).collect(), prefix))
            }),
        }
    }
}

/// Only the list `items` has values below it.
fn in_several<'a>(summary: bool, steps: &[PathStep], prefix: &str) -> Result<Knowledge<'a>, Box<WrongPath<'a>>> {
    let Some((first, rest)) = steps.split_first() else { return Ok(Knowledge::Nothing) };
    let fields = TriggerData::fields_of_several(summary);
    let name = first.name();
    if !fields.contains(&name) {
        let message = format!("A group of items has no {name}.");
        let hint = format!("Use a field of an item; {prefix}items[0].{name} is that of the first item.");
        let wrong = WrongPath::new(Code::UnknownPath, message, hint);
        return Err(Box::new(wrong.among(name, fields, prefix)));
    }
    match (name, rest.first()) {
        ("text", None) => Ok(Knowledge::Text),
        (_, None) => Ok(Knowledge::Nothing),
        ("items", Some(step)) if step.is_index() => Ok(Knowledge::Nothing),
        ("items", Some(step)) => {
            let message = format!("{prefix}items is a list, and has no {}.", step.name());
            let hint = format!("Write {prefix}items[0].{} for that of the first item.", step.name());
            Err(Box::new(WrongPath::new(Code::UnknownPath, message, hint)))
        }
        (name, Some(_)) => {
            let message = format!("There is nothing below {prefix}{name}.");
            Err(Box::new(WrongPath::new(Code::UnknownPath, message, format!("Write {prefix}{name} alone."))))
        }
    }
}

/// Accepts the path of a field, of an object that contains fields, or below a field that may hold more.
fn in_fields<'a>(
    fields: &'a BTreeMap<String, String>,
    example: Option<&'a Value>,
    steps: &[PathStep],
) -> Option<Knowledge<'a>> {
    let like = example.and_then(|example| Path::follow(steps, example)).filter(|value| !value.is_null());
    let known = like.map_or(Knowledge::Nothing, Knowledge::Like);
    if steps.is_empty() {
        return Some(known);
    }
    let same = |one: &[PathStep], other: &[PathStep]| {
        one.len() <= other.len()
            && one
                .iter()
                .zip(other)
                .all(|(one, other)| one.name() == other.name() || (one.is_index() && other.is_index()))
    };
    let parsed = |field: &String| Path::parse(field).ok();
    if fields.keys().filter_map(parsed).any(|field| same(steps, field.steps())) || like.is_some() {
        return Some(known);
    }
    fields.keys().filter_map(parsed).find(|field| same(field.steps(), steps))?;
    let may_go_on = example.is_none_or(|example| may_lead_on(example, steps));
    may_go_on.then_some(Knowledge::Nothing)
}

/// Whether a value like `example` may have something at these steps: text and numbers have no members, and list items need an
/// index.
fn may_lead_on(example: &Value, steps: &[PathStep]) -> bool {
    let mut at = example;
    for step in steps {
        match (at, step.into(at)) {
            (Value::Null, _) | (Value::Object(_), None) => return true,
            (Value::Array(_), None) => return step.is_index(),
            (_, Some(below)) => at = below,
            (_, None) => return false,
        }
    }
    true
}

/// Knowledge from sample items; `None` if no item has a value there.
fn in_sample<'a>(items: &'a [Value], steps: &[PathStep]) -> Option<Knowledge<'a>> {
    let found: Vec<&Value> =
        items.iter().filter_map(|item| Path::follow(steps, item)).filter(|value| !value.is_null()).collect();
    if let Some(first) = found.first() {
        let alike = found.iter().all(|other| type_of(other) == type_of(first));
        return Some(if alike { Knowledge::Like(first) } else { Knowledge::Nothing });
    }
    let ends_in_null = |item: &Value| {
        let mut at = Some(item);
        let mut null = item.is_null();
        for step in steps {
            at = at.and_then(|at| step.into(at));
            null |= at.is_some_and(Value::is_null);
        }
        null
    };
    items.iter().any(ends_in_null).then_some(Knowledge::Nothing)
}

fn user<'a>(path: &Path, rest: &[PathStep]) -> Result<Knowledge<'a>, Box<WrongPath<'a>>> {
    match rest {
        [] => Ok(Knowledge::Nothing),
        [field] if USER.contains(&field.name()) => Ok(Knowledge::Text),
        [field, ..] => {
            let message = format!("A user has no {}.", path.as_str().trim_start_matches("user."));
            let wrong = WrongPath::new(Code::UnknownPath, message, "Use an allowed value.");
            Err(Box::new(wrong.among(field.name(), USER.into(), "user.")))
        }
    }
}

fn nothing_at<'a>(path: &Path, what: &str, value: &'a Value, steps: &[PathStep]) -> WrongPath<'a> {
    let reached = (0..steps.len()).rev().find_map(|count| {
        let (before, after) = steps.split_at_checked(count)?;
        Some((Path::follow(before, value)?, before, after.first()?))
    });
    let message = format!("{what} has nothing at {}.", path.as_str());
    let message = message.chars().next().map_or_else(String::new, |letter| letter.to_uppercase().to_string())
        + message.get(1..).unwrap_or_default();
    let wrong = WrongPath::new(Code::UnknownPath, message, "Use an existing name.");
    match reached {
        Some((Value::Object(members), before, missing)) => {
            let written = path.steps().len() - steps.len();
            let prefix: Vec<&str> = path
                .steps()
                .iter()
                .take(written)
                .map(PathStep::name)
                .chain(before.iter().map(PathStep::name))
                .collect();
            let prefix = if prefix.is_empty() { String::new() } else { format!("{}.", prefix.join(".")) };
            wrong.among(missing.name(), members.keys().map(String::as_str).collect(), &prefix)
        }
        _ => wrong,
    }
}

/// Knowledge from a JSON schema. A forbidden member is an error; an unlisted one is only unknown, unless `additionalProperties`
/// is `false`.
fn below<'a>(schema: &'a Value, steps: &[PathStep], path: &Path) -> Result<Knowledge<'a>, Box<WrongPath<'a>>> {
    let mut at = followed(schema, schema);
    for (index, step) in steps.iter().enumerate() {
        let properties = at.get("properties").and_then(Value::as_object);
        if let Some(property) = properties.and_then(|properties| properties.get(step.name())) {
            at = followed(schema, property);
            continue;
        }
        let allowed = types(at);
        let may_be = |kind: &str| allowed.is_empty() || allowed.contains(&kind);
        if step.is_index() && may_be("array") {
            match at.get("items").filter(|items| items.is_object()) {
                Some(items) => at = followed(schema, items),
                None => return Ok(Knowledge::Nothing),
            }
            continue;
        }
        let written = path.steps().len() - steps.len() + index;
        let before: Vec<&str> = path.steps().iter().take(written).map(PathStep::name).collect();
        let before = before.join(".");
        if !may_be("object") {
            let (what, hint) = if allowed.contains(&"array") {
                ("a list", format!("Write {before}[0].{} for its first item.", step.name()))
            } else {
                ("no object", format!("Write {before}: there is nothing below it."))
            };
            let message = format!("The output is {what} at {before}, so nothing is at {}.", path.as_str());
            return Err(Box::new(WrongPath::new(Code::UnknownPath, message, hint)));
        }
        let others = at.get("additionalProperties");
        if let Some(others) = others.filter(|others| others.is_object()) {
            at = followed(schema, others);
            continue;
        }
        let combined =
            ["patternProperties", "allOf", "anyOf", "oneOf", "if"].iter().any(|name| at.get(*name).is_some());
        let closed = others == Some(&Value::Bool(false));
        let names: Vec<&str> = properties.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        if combined || (!closed && names.is_empty()) || others == Some(&Value::Bool(true)) {
            return Ok(Knowledge::Nothing);
        }
        let (message, hint) = if closed {
            (format!("The output has no {}.", path.as_str()), "Use an existing member.")
        } else {
            (
                format!("The output is not known to have {}.", path.as_str()),
                "Use a known member, unless you have seen this one.",
            )
        };
        let wrong = WrongPath::new(Code::UnknownPath, message, hint).among(step.name(), names, &format!("{before}."));
        return Err(Box::new(if closed { wrong } else { wrong.perhaps() }));
    }
    Ok(Knowledge::Schema(at))
}

/// Follows `$ref` within `root`.
pub(super) fn followed<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let mut at = schema;
    for _ in 0..MOST_REFERENCES {
        let Some(reference) = at.get("$ref").and_then(Value::as_str) else { return at };
        let Some(target) = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer)) else { return at };
        at = target;
    }
    at
}

/// The types that a JSON schema allows; empty if it has no `type`.
pub(super) fn types(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// JSON Schema type; a whole number is an `integer`.
pub(super) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_i64() || number.is_u64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

impl<'a> Item<'a> {
    fn look_up(self, steps: &[PathStep], path: &Path) -> Result<Knowledge<'a>, Box<WrongPath<'a>>> {
        match self {
            Self::Unknown => Ok(Knowledge::Nothing),
            Self::Schema(schema) => below(schema, steps, path),
            Self::Samples(items) => in_sample(items, steps).ok_or_else(|| {
                let first = items.first().unwrap_or(&Value::Null);
                Box::new(nothing_at(path, "an item of the list", first, steps).perhaps())
            }),
        }
    }
}

impl<'a> Knowledge<'a> {
    pub(super) fn item(self) -> Item<'a> {
        match self {
            Self::Value(Value::Array(items)) | Self::Like(Value::Array(items)) if !items.is_empty() => {
                Item::Samples(items)
            }
            Self::Schema(schema) => match schema.get("items").filter(|items| items.is_object()) {
                // A reference leads to the root of the schema, which is not known here.
                Some(items) if items.get("$ref").is_none() => Item::Schema(items),
                _ => Item::Unknown,
            },
            _ => Item::Unknown,
        }
    }

    pub(super) fn is_list_of_objects(self) -> bool {
        match self {
            Self::Value(Value::Array(items)) | Self::Like(Value::Array(items)) => {
                !items.is_empty() && items.iter().all(Value::is_object)
            }
            Self::Schema(schema) => schema.get("items").is_some_and(|items| types(items) == ["object"]),
            _ => false,
        }
    }

    /// Possible types; empty if unknown.
    pub(super) fn types(self) -> Vec<&'a str> {
        match self {
            Self::Value(value) | Self::Like(value) => vec![type_of(value)],
            Self::Schema(schema) => types(schema),
            Self::Text => vec!["string"],
            Self::Nothing | Self::ToldElsewhere => Vec::new(),
        }
    }
}
