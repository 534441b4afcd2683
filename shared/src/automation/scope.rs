//! What a path may lead into at one place of a definition, and what is known of the value there.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{
    diagnostics::{Code, Diagnostic},
    nearest,
    path::{Path, Step},
    templates::{date_names, is_date},
};

const USER: [&str; 5] = ["id", "email", "timezone", "phone", "name"];
/// `$ref`s that are followed to find out what stands at a path.
const MOST_REFERENCES: usize = 10;

/// What is known of a value before the automation runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Knowledge<'a> {
    /// It is this.
    Value(&'a Value),
    /// It is of the type of this example.
    Like(&'a Value),
    /// It fits this JSON schema.
    Schema(&'a Value),
    Text,
    Nothing,
    /// Nothing, for a reason that is a diagnostic of its own.
    ToldElsewhere,
}

/// What stands in `trigger_data`.
#[derive(Debug, Clone, Copy)]
pub(super) enum TriggerData<'a> {
    /// Nothing: a schedule brings no data.
    None,
    /// Whatever somebody gives who starts it by hand; only reached as `trigger_data.…`.
    Given,
    /// Paths of fields with what stands there, and perhaps a whole event.
    Fields { of: &'a str, fields: &'a BTreeMap<String, String>, example: Option<&'a Value> },
    /// Like the answer of the tool that is polled.
    Like { of: &'a str, item: &'a Value },
    /// Nobody knows; the reason is a diagnostic elsewhere.
    Unknown,
}

/// What an action gives back.
#[derive(Debug, Clone, Copy)]
pub(super) struct Output<'a> {
    pub(super) name: &'a str,
    /// Its JSON schema, if that says anything.
    pub(super) returns: Option<&'a Value>,
}

#[derive(Debug, Clone)]
pub(super) struct Scope<'a> {
    pub(super) variables: &'a Map<String, Value>,
    /// Of the actions before this place.
    pub(super) outputs: Vec<Output<'a>>,
    /// Outputs of this action and later ones, with the ids of their actions.
    pub(super) later: Vec<(&'a str, &'a str)>,
    pub(super) trigger: TriggerData<'a>,
}

/// What is wrong with a path: everything of the diagnostic but its place.
pub(super) struct WrongPath {
    pub(super) code: Code,
    message: String,
    hint: String,
    allowed: Vec<String>,
    meaning: Option<String>,
}

impl WrongPath {
    fn new(code: Code, message: String, hint: impl Into<String>) -> Self {
        Self { code, message, hint: hint.into(), allowed: Vec::new(), meaning: None }
    }

    fn among(mut self, written: &str, names: Vec<String>, prefix: &str) -> Self {
        let nearest = nearest(written, names.iter().map(String::as_str));
        self.meaning = nearest.map(|nearest| format!("{prefix}{nearest}"));
        self.allowed = names.into_iter().map(|name| format!("{prefix}{name}")).collect();
        self
    }

    pub(super) fn at(self, pointer: &str, found: &str) -> Diagnostic {
        let error = Diagnostic::error(self.code, pointer, self.message, self.hint);
        error.found(&found.into()).allowed(self.allowed).meaning(self.meaning.as_deref())
    }
}

impl<'a> Scope<'a> {
    /// What is known of the value at a path.
    pub(super) fn look_up(&self, path: &Path) -> Result<Knowledge<'a>, Box<WrongPath>> {
        let Some((first, rest)) = path.steps().split_first() else { return Ok(Knowledge::Nothing) };
        let name = first.name();
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
                let rest: Vec<&str> = rest.iter().map(Step::name).collect();
                let message = "There is no event_data.".to_owned();
                let hint = format!("Write {{{{trigger_data.{}}}}}: the event stands in trigger_data.", rest.join("."));
                Err(Box::new(WrongPath::new(Code::EventData, message, hint)))
            }
            name if is_date(name) && rest.is_empty() => Ok(Knowledge::Text),
            name if is_date(name) => {
                let message = format!("{name} is text, and nothing is below it.");
                Err(Box::new(WrongPath::new(Code::UnknownPath, message, format!("Write {name} alone."))))
            }
            _ => self.elsewhere(path),
        }
    }

    /// A path whose first name stands for none of the things that always are there.
    fn elsewhere(&self, path: &Path) -> Result<Knowledge<'a>, Box<WrongPath>> {
        let name = path.first();
        if let Some((_, action)) = self.later.iter().find(|(later, _)| *later == name) {
            let message = format!("{name} is the output of the action {action}, which has not run by then.");
            let hint = format!("Move the action {action} before this one, or use an output of an earlier action.");
            return Err(Box::new(WrongPath::new(Code::OutputNotYet, message, hint)));
        }
        let in_trigger = match self.trigger {
            TriggerData::Fields { .. } | TriggerData::Like { .. } => self.in_trigger(path, path.steps(), false),
            // It may be one of its fields.
            TriggerData::Unknown => return Ok(Knowledge::ToldElsewhere),
            TriggerData::None | TriggerData::Given => Err(Box::new(self.nothing_named(path))),
        };
        in_trigger.map_err(|wrong| if self.names_a_field(path) { wrong } else { Box::new(self.nothing_named(path)) })
    }

    /// Whether its first step is also that of a field.
    fn names_a_field(&self, path: &Path) -> bool {
        match self.trigger {
            TriggerData::Fields { fields, .. } => {
                fields.keys().any(|field| Path::parse(field).is_ok_and(|field| field.first() == path.first()))
            }
            TriggerData::Like { item, .. } => item.get(path.first()).is_some(),
            _ => false,
        }
    }

    fn nothing_named(&self, path: &Path) -> WrongPath {
        let name = path.first();
        let given = matches!(self.trigger, TriggerData::Given);
        let message = format!("Nothing is called {name} here.");
        let hint = if given {
            format!(
                "Write trigger_data.{} if whoever starts it gives that, or define the variable {name}.",
                path.as_str()
            )
        } else {
            "Use a field of the trigger, the output_as of an earlier action, a variable, a date or user.".to_owned()
        };
        let wrong = WrongPath::new(Code::UnknownPath, message, hint);
        let mut names = self.names();
        let whole = nearest(path.as_str(), names.iter().map(String::as_str)).map(str::to_owned);
        let dates: Vec<String> = date_names().collect();
        let near_date = nearest(name, dates.iter().map(String::as_str)).map(str::to_owned);
        names.extend(["trigger_data", "user.email", "today", "now"].map(str::to_owned));
        let mut wrong = wrong.among(name, names, "");
        wrong.meaning = whole.or(wrong.meaning).or(near_date);
        wrong
    }

    /// What its author may have meant: variables, outputs and fields.
    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.variables.keys().cloned().collect();
        names.extend(self.outputs.iter().map(|output| output.name.to_owned()));
        match self.trigger {
            TriggerData::Fields { fields, .. } => names.extend(fields.keys().cloned()),
            TriggerData::Like { item, .. } => {
                names.extend(item.as_object().into_iter().flatten().map(|(name, _)| name.clone()))
            }
            _ => {}
        }
        names
    }

    fn in_trigger(&self, path: &Path, steps: &[Step], prefixed: bool) -> Result<Knowledge<'a>, Box<WrongPath>> {
        let prefix = if prefixed { "trigger_data." } else { "" };
        match self.trigger {
            TriggerData::None => {
                let message = "A schedule brings no trigger_data.".to_owned();
                let hint = "Let an action fetch the data and use its output_as, or choose another trigger.";
                Err(Box::new(WrongPath::new(Code::UnknownPath, message, hint)))
            }
            TriggerData::Given => Ok(Knowledge::Nothing),
            TriggerData::Unknown => Ok(Knowledge::ToldElsewhere),
            TriggerData::Like { of, item } => Path::follow(steps, item)
                .map(Knowledge::Like)
                .ok_or_else(|| Box::new(nothing_at(path, &format!("the answer of {of}"), item, steps))),
            TriggerData::Fields { of, fields, example } => in_fields(fields, example, steps).ok_or_else(|| {
                let written: Vec<&str> = steps.iter().map(Step::name).collect();
                let message = format!("The event {of} has no field {}.", written.join("."));
                let wrong = WrongPath::new(Code::UnknownPath, message, "Use one of the event's fields.");
                Box::new(wrong.among(&written.join("."), fields.keys().cloned().collect(), prefix))
            }),
        }
    }
}

/// A path is good if it is a field's, leads to an object that fields are in, or goes on below a field that may hold more.
fn in_fields<'a>(
    fields: &'a BTreeMap<String, String>,
    example: Option<&'a Value>,
    steps: &[Step],
) -> Option<Knowledge<'a>> {
    let like = example.and_then(|example| Path::follow(steps, example)).filter(|value| !value.is_null());
    let known = like.map_or(Knowledge::Nothing, Knowledge::Like);
    if steps.is_empty() {
        return Some(known);
    }
    let same = |one: &[Step], other: &[Step]| {
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
    let below = fields.keys().filter_map(parsed).find(|field| same(field.steps(), steps))?;
    let holds_more = match example.and_then(|example| Path::follow(below.steps(), example)) {
        Some(Value::Object(_) | Value::Array(_) | Value::Null) | None => true,
        Some(_) => false,
    };
    holds_more.then_some(Knowledge::Nothing)
}

fn user<'a>(path: &Path, rest: &[Step]) -> Result<Knowledge<'a>, Box<WrongPath>> {
    match rest {
        [] => Ok(Knowledge::Nothing),
        [field] if USER.contains(&field.name()) => Ok(Knowledge::Text),
        [field, ..] => {
            let message = format!("A user has no {}.", path.as_str().trim_start_matches("user."));
            let wrong = WrongPath::new(Code::UnknownPath, message, "Use one of those allowed.");
            Err(Box::new(wrong.among(field.name(), USER.map(str::to_owned).into(), "user.")))
        }
    }
}

/// A path that leads to nothing within a value.
fn nothing_at(path: &Path, what: &str, value: &Value, steps: &[Step]) -> WrongPath {
    let reached = (0..steps.len()).rev().find_map(|count| {
        let (before, after) = steps.split_at_checked(count)?;
        Some((Path::follow(before, value)?, before, after.first()?))
    });
    let message = format!("{what} has nothing at {}.", path.as_str());
    let message = message.chars().next().map_or_else(String::new, |letter| letter.to_uppercase().to_string())
        + message.get(1..).unwrap_or_default();
    let wrong = WrongPath::new(Code::UnknownPath, message, "Use a name that is there.");
    match reached {
        Some((Value::Object(members), before, missing)) => {
            let written = path.steps().len() - steps.len();
            let prefix: Vec<&str> =
                path.steps().iter().take(written).map(Step::name).chain(before.iter().map(Step::name)).collect();
            let prefix = if prefix.is_empty() { String::new() } else { format!("{}.", prefix.join(".")) };
            wrong.among(missing.name(), members.keys().cloned().collect(), &prefix)
        }
        _ => wrong,
    }
}

/// What a JSON schema says of the value at a path below it. Only what it forbids is wrong.
fn below<'a>(schema: &'a Value, steps: &[Step], path: &Path) -> Result<Knowledge<'a>, Box<WrongPath>> {
    let mut at = followed(schema, schema);
    for step in steps {
        let properties = at.get("properties").and_then(Value::as_object);
        let open = at.get("additionalProperties") == Some(&Value::Bool(true)) || at.get("patternProperties").is_some();
        at = match (properties.and_then(|properties| properties.get(step.name())), at.get("items")) {
            (Some(property), _) => followed(schema, property),
            (None, Some(items)) if step.is_index() => followed(schema, items),
            (None, _) => match properties {
                Some(properties) if !open && !properties.is_empty() => {
                    let message = format!("The output has nothing at {}.", path.as_str());
                    let wrong = WrongPath::new(Code::UnknownPath, message, "Use one of the members that it has.");
                    let before = path.steps().iter().take_while(|one| *one != step).map(Step::name).collect::<Vec<_>>();
                    let names = properties.keys().cloned().collect();
                    return Err(Box::new(wrong.among(step.name(), names, &format!("{}.", before.join(".")))));
                }
                _ => return Ok(Knowledge::Nothing),
            },
        };
    }
    Ok(Knowledge::Schema(at))
}

/// The schema itself, or the one that it refers to within `root`.
pub(super) fn followed<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let mut at = schema;
    for _ in 0..MOST_REFERENCES {
        let Some(reference) = at.get("$ref").and_then(Value::as_str) else { return at };
        let Some(target) = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer)) else { return at };
        at = target;
    }
    at
}

/// The types that a JSON schema allows; none if it does not say.
pub(super) fn types(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// The JSON schema type of a value; a whole number is an `integer`.
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

impl<'a> Knowledge<'a> {
    /// The types that the value may have; none if that is not known.
    pub(super) fn types(self) -> Vec<&'a str> {
        match self {
            Self::Value(value) | Self::Like(value) => vec![type_of(value)],
            Self::Schema(schema) => types(schema),
            Self::Text => vec!["string"],
            Self::Nothing | Self::ToldElsewhere => Vec::new(),
        }
    }
}
