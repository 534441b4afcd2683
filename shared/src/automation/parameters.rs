//! The parameters of an action, held against the tool's JSON schema with their templates understood.
//!
//! A template that is the whole value has the type of what it leads to; text around it makes text. So a value that is only known
//! when the automation runs is checked as far as its type is known, and what is not known is said once for each action.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{
    diagnostics::{Code, Diagnostic, Diagnostics, child},
    nearest,
    scope::{Knowledge, Scope, followed, type_of, types},
    templates::Template,
};
use crate::{fields::kind, json_schema::JsonSchema};

/// Values that could not be checked and are named.
const MOST_NAMED: usize = 5;

/// What of a parameter is known before the automation runs.
#[derive(Debug, Clone, Copy)]
enum Spot<'a> {
    /// A template alone.
    Lone(Knowledge<'a>),
    /// Templates within text.
    Text,
    /// Something is wrong with its template, which has been told.
    Faulty,
}

/// Values with templates, by their pointer within the parameters.
type Spots<'a> = BTreeMap<String, Spot<'a>>;

/// Notes every template that leads to nothing in `value`, which stands at `pointer`. Gives the value as far as it is known, and
/// where it is not.
fn filled<'a>(
    value: &Value,
    (pointer, within): (&str, &str),
    scope: &Scope<'a>,
    spots: &mut Spots<'a>,
    diagnostics: &mut Diagnostics,
) -> Value {
    match value {
        Value::String(text) if text.contains("{{") => {
            let (template, fine) = check_text(text, pointer, scope, diagnostics);
            let (spot, known) = match (template.lone(), fine) {
                (_, None) => (Spot::Faulty, Value::Null),
                (Some(_), Some(knowledge)) => match knowledge {
                    Knowledge::Value(value) => return value.clone(),
                    Knowledge::Like(value) => (Spot::Lone(knowledge), value.clone()),
                    other => (Spot::Lone(other), Value::Null),
                },
                (None, Some(_)) => (Spot::Text, value.clone()),
            };
            spots.insert(within.to_owned(), spot);
            known
        }
        Value::Array(items) => {
            let item = |(index, item): (usize, &Value)| {
                let step = index.to_string();
                filled(item, (&child(pointer, &step), &child(within, &step)), scope, spots, diagnostics)
            };
            items.iter().enumerate().map(item).collect()
        }
        Value::Object(members) => {
            let mut known = Map::new();
            for (name, value) in members {
                let places = (child(pointer, name), child(within, name));
                if name.contains("{{") {
                    let message = "The name of a member is a template, and names are used as they stand.";
                    let hint = "Write the name itself, and use templates in values.";
                    diagnostics.push(Diagnostic::error(Code::TemplateNotAllowed, &places.0, message, hint));
                }
                known.insert(name.clone(), filled(value, (&places.0, &places.1), scope, spots, diagnostics));
            }
            Value::Object(known)
        }
        other => other.clone(),
    }
}

/// Notes what is wrong with the templates of a text. Gives what is known of the value of a template that is the whole text; none
/// if something is wrong.
pub(super) fn check_text<'a>(
    text: &str,
    pointer: &str,
    scope: &Scope<'a>,
    diagnostics: &mut Diagnostics,
) -> (Template, Option<Knowledge<'a>>) {
    let (template, faults) = Template::parse(text);
    let mut fine = faults.is_empty();
    for fault in faults {
        let message = format!("The template {} {}.", fault.excerpt, fault.problem);
        let hint = match fault.code {
            Code::HandlebarsBlock => {
                "Use plain {{path}} templates; for a choice use the condition of an action, for a list give it as a whole."
            }
            Code::UnclosedTemplate => "Close it with }}, or leave {{ out.",
            Code::NestedTemplate => "Write one path: {{a.b}}.",
            _ => "Write a path, for example {{event.text}} or {{rows[0].name}}; there are no helpers and no filters.",
        };
        diagnostics.push(Diagnostic::error(fault.code, pointer, message, hint).found(&fault.excerpt.into()));
    }
    let mut known = Knowledge::Nothing;
    for path in template.paths() {
        match scope.look_up(path) {
            Ok(knowledge) => known = knowledge,
            Err(wrong) => {
                fine = false;
                diagnostics.push(wrong.at(pointer, &format!("{{{{{}}}}}", path.as_str())));
            }
        }
    }
    (template, fine.then_some(known))
}

/// As [`check`], for a tool whose schema nothing is known of: templates alone.
pub(super) fn check_templates(
    parameters: &Map<String, Value>,
    pointer: &str,
    scope: &Scope<'_>,
    diagnostics: &mut Diagnostics,
) {
    for (name, value) in parameters {
        filled(value, (&child(pointer, name), ""), scope, &mut Spots::new(), diagnostics);
    }
}

/// Holds `parameters`, which stand at `pointer`, against the schema of `tool`.
pub(super) fn check(
    (tool, schema, compiled): (&str, &Value, Option<&JsonSchema>),
    parameters: &Map<String, Value>,
    pointer: &str,
    scope: &Scope<'_>,
    diagnostics: &mut Diagnostics,
) {
    let mut spots = Spots::new();
    let mut given = Map::new();
    for (name, value) in parameters {
        let places = (child(pointer, name), child("", name));
        let known = filled(value, (&places.0, &places.1), scope, &mut spots, diagnostics);
        // To an optional one, null and an empty text are as good as nothing.
        let is_required = required(schema).any(|required| required == name);
        if is_required || !(value.is_null() || value.as_str() == Some("")) {
            given.insert(name.clone(), known);
        }
    }
    let given = Value::Object(given);
    let mut walk =
        Walk { tool, root: schema, pointer, spots: &spots, told: Vec::new(), unchecked: Vec::new(), diagnostics };
    walk.value(schema, &given, "");
    walk.rest(compiled, &given);
    let Walk { unchecked, .. } = walk;
    if !unchecked.is_empty() {
        let mut named: Vec<String> = unchecked.iter().take(MOST_NAMED).map(|place| shown(place)).collect();
        if unchecked.len() > MOST_NAMED {
            named.push(format!("{} more", unchecked.len() - MOST_NAMED));
        }
        let message = format!("What {} will be is only known when the automation runs.", named.join(", "));
        let hint = format!("Make sure that it fits what {tool} expects; nothing need be changed otherwise.");
        diagnostics.push(Diagnostic::warning(Code::NotChecked, pointer, message, hint));
    }
}

/// `/rows/0/name` as `rows[0].name` would be long: `rows/0/name`.
fn shown(within: &str) -> String {
    within.trim_start_matches('/').to_owned()
}

fn required(schema: &Value) -> impl Iterator<Item = &str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

struct Walk<'w, 'a, 'd> {
    tool: &'w str,
    root: &'w Value,
    pointer: &'w str,
    spots: &'w Spots<'a>,
    /// Where something is wrong already.
    told: Vec<String>,
    /// What could not be checked.
    unchecked: Vec<String>,
    diagnostics: &'d mut Diagnostics,
}

impl Walk<'_, '_, '_> {
    fn tell(&mut self, within: &str, diagnostic: Diagnostic) {
        self.told.push(within.to_owned());
        self.diagnostics.push(diagnostic);
    }

    fn place(&self, within: &str) -> String {
        format!("{}{within}", self.pointer)
    }

    /// The keywords that say what most mistakes are about; [`Walk::rest`] has all others.
    fn value(&mut self, schema: &Value, value: &Value, within: &str) {
        let schema = followed(self.root, schema);
        let allowed = types(schema);
        if let Some(spot) = self.spots.get(within) {
            self.spot(*spot, schema, &allowed, within);
            return;
        }
        let nullable = schema.get("nullable") == Some(&Value::Bool(true));
        if !allowed.is_empty() && !fits(value, &allowed) && !(nullable && value.is_null()) {
            let expected = words(&allowed);
            let message = format!("{} takes {expected} here, and this is {}.", self.tool, kind(value));
            let error = Diagnostic::error(Code::WrongType, self.place(within), message, repair(value, &allowed));
            self.tell(within, error.found(value).expected(expected));
            return;
        }
        if let Some(options) = schema.get("enum").and_then(Value::as_array)
            && !options.contains(value)
        {
            self.not_allowed(options, value, within);
            return;
        }
        match value {
            Value::Object(members) => self.members(schema, members, within),
            Value::Array(items) => {
                if let Some(of_items) = schema.get("items").filter(|items| items.is_object()) {
                    for (index, item) in items.iter().enumerate() {
                        self.value(of_items, item, &child(within, index.to_string()));
                    }
                }
            }
            _ => {}
        }
    }

    /// A value with a template, of which only the type can be known.
    fn spot(&mut self, spot: Spot<'_>, schema: &Value, allowed: &[&str], within: &str) {
        match spot {
            Spot::Faulty | Spot::Lone(Knowledge::ToldElsewhere) => self.told.push(within.to_owned()),
            Spot::Text => {
                if !allowed.is_empty() && !allowed.contains(&"string") {
                    let expected = words(allowed);
                    let message =
                        format!("Text around a template makes text, and {} takes {expected} here.", self.tool);
                    let hint = "Write the template alone, \"{{path}}\": then the value keeps its type.";
                    let error = Diagnostic::error(Code::WrongType, self.place(within), message, hint);
                    self.tell(within, error.expected(expected));
                } else if ["enum", "pattern", "format", "maxLength", "minLength"]
                    .iter()
                    .any(|name| schema.get(*name).is_some())
                {
                    self.unchecked.push(within.to_owned());
                }
            }
            Spot::Lone(knowledge) => {
                let known = knowledge.types();
                if known.is_empty() || known == ["null"] {
                    self.unchecked.push(within.to_owned());
                } else if !allowed.is_empty() && !known.iter().any(|known| may_be(known, allowed)) {
                    let (found, expected) = (words(&known), words(allowed));
                    let message = format!("The template leads to {found}, and {} takes {expected} here.", self.tool);
                    let hint = match allowed.contains(&"string") {
                        true => "Put text around it to make it text, or use another path.",
                        false => "Use a path to a value of that type.",
                    };
                    let error = Diagnostic::error(Code::WrongType, self.place(within), message, hint);
                    self.tell(within, error.found(&found.into()).expected(expected));
                }
            }
        }
    }

    fn not_allowed(&mut self, options: &[Value], value: &Value, within: &str) {
        let names: Vec<String> =
            options.iter().map(|option| option.as_str().map_or_else(|| option.to_string(), str::to_owned)).collect();
        let meant = value.as_str().and_then(|written| nearest(written, names.iter().map(String::as_str)));
        let message = format!("{} does not take this value here.", self.tool);
        let error = Diagnostic::error(Code::NotAllowed, self.place(within), message, "Use one of those allowed.");
        self.tell(within, error.found(value).allowed(names.clone()).meaning(meant));
    }

    fn members(&mut self, schema: &Value, members: &Map<String, Value>, within: &str) {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
            self.missing(schema, members, within);
            return;
        };
        let open = matches!(schema.get("additionalProperties"), Some(Value::Bool(true) | Value::Object(_)))
            || schema.get("patternProperties").is_some();
        for (name, value) in members {
            let within = child(within, name);
            match properties.get(name) {
                Some(property) => self.value(property, value, &within),
                None if open => {}
                None => {
                    let meant = nearest(
                        name,
                        properties.keys().map(String::as_str).filter(|known| !members.contains_key(*known)),
                    );
                    let message = format!("{} has no parameter {}.", self.tool, crate::cut::cut(name.clone(), 60));
                    let hint = "Leave it out, or use one of those allowed.";
                    let error = Diagnostic::error(Code::UnknownParameter, self.place(&within), message, hint);
                    self.tell(&within, error.allowed(properties.keys().cloned()).meaning(meant));
                }
            }
        }
        self.missing(schema, members, within);
    }

    fn missing(&mut self, schema: &Value, members: &Map<String, Value>, within: &str) {
        let properties = schema.get("properties").and_then(Value::as_object);
        for name in required(schema).filter(|name| !members.contains_key(*name)) {
            let property = properties.and_then(|properties| properties.get(name)).unwrap_or(&Value::Null);
            let property = followed(self.root, property);
            let within = child(within, name);
            // What is absent has its default when the tool is called.
            if property.get("default").is_some() {
                self.told.push(within);
                continue;
            }
            let expected = words(&types(property));
            let message = format!("{} needs {name}, and it is missing.", self.tool);
            let hint = format!("Add \"{name}\": {}.", example(property));
            let error =
                Diagnostic::error(Code::MissingParameter, self.place(&within), message, hint).expected(expected);
            let described = property.get("description").and_then(Value::as_str);
            let error = match described {
                Some(described) => Diagnostic {
                    hint: format!("{} It is: {}", error.hint, crate::cut::cut(described.to_owned(), 200)),
                    ..error
                },
                None => error,
            };
            self.tell(&within, error);
        }
    }

    /// Everything else that the schema says, of what is known.
    fn rest(&mut self, compiled: Option<&JsonSchema>, given: &Value) {
        let Some(compiled) = compiled else { return };
        for violation in compiled.validate(given) {
            let within = violation.pointer;
            let related = |other: &str| is_within(&within, other) || is_within(other, &within);
            if self.told.iter().any(|told| related(told)) {
                continue;
            }
            // Of a template whose type is known, the type has been checked.
            if matches!(self.spots.get(&within), Some(Spot::Lone(known)) if !known.types().is_empty()) {
                continue;
            }
            if self.spots.keys().any(|spot| related(spot)) {
                self.unchecked.push(within);
                continue;
            }
            let found = given.pointer(&within);
            let message = format!("This value {}.", violation.problem);
            let hint = format!("Change it so that it fits the schema of {}.", self.tool);
            let error = Diagnostic::error(Code::InvalidParameter, self.place(&within), message, hint);
            self.diagnostics.push(match found {
                Some(found) if !within.is_empty() => error.found(found),
                _ => error,
            });
        }
        self.unchecked.sort();
        self.unchecked.dedup();
    }
}

/// Whether `inner` is this place or one below it.
fn is_within(inner: &str, outer: &str) -> bool {
    inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn fits(value: &Value, allowed: &[&str]) -> bool {
    match type_of(value) {
        "number" => {
            let whole = value.as_f64().is_some_and(|number| number.fract() == 0.0);
            allowed.contains(&"number") || (whole && allowed.contains(&"integer"))
        }
        kind => may_be(kind, allowed),
    }
}

/// Whether a value of a type may be one of those allowed.
fn may_be(known: &str, allowed: &[&str]) -> bool {
    match known {
        "integer" => allowed.contains(&"integer") || allowed.contains(&"number"),
        "number" => allowed.contains(&"number") || allowed.contains(&"integer"),
        other => allowed.contains(&other),
    }
}

fn words(types: &[&str]) -> String {
    let word = |name: &&str| {
        match *name {
            "string" => "text",
            "integer" => "a whole number",
            "number" => "a number",
            "boolean" => "true or false",
            "array" => "a list",
            "object" => "an object",
            "null" => "null",
            other => other,
        }
        .to_owned()
    };
    let words: Vec<String> = types.iter().map(word).collect();
    if words.is_empty() { "a value".to_owned() } else { words.join(" or ") }
}

/// What to write in place of a value of the wrong type.
fn repair(value: &Value, allowed: &[&str]) -> String {
    let allows = |name: &str| allowed.contains(&name);
    match value {
        Value::String(text) => {
            let text = text.trim();
            let number = text.parse::<f64>().is_ok_and(f64::is_finite);
            if number && (allows("number") || (allows("integer") && !text.contains(['.', 'e', 'E']))) {
                return format!("Write {text} without quotes.");
            }
            if allows("boolean") && (text == "true" || text == "false") {
                return format!("Write {text} without quotes.");
            }
            if allows("array") {
                return "Put it into a list: [\"...\"].".to_owned();
            }
            if allows("object") && text.starts_with('{') {
                return "Write the object itself, not its JSON as text.".to_owned();
            }
        }
        Value::Number(_) | Value::Bool(_) if allows("string") => return format!("Write \"{value}\" with quotes."),
        Value::Number(_) if allows("integer") => return "Write a number without decimals.".to_owned(),
        Value::Object(_) | Value::Array(_) if allows("string") => return "Write it as JSON in a text.".to_owned(),
        Value::Null => return "Leave it out, or write a value.".to_owned(),
        _ => {}
    }
    format!("Write {}.", words(allowed))
}

/// JSON text of what a parameter may be.
fn example(schema: &Value) -> String {
    let given = schema.get("example").or_else(|| schema.get("examples")?.get(0)).or_else(|| schema.get("const"));
    let given = given.or_else(|| schema.get("enum")?.get(0));
    if let Some(given) = given {
        return crate::cut::cut(given.to_string(), 100);
    }
    match types(schema).first().copied().unwrap_or("string") {
        "integer" | "number" => "1",
        "boolean" => "true",
        "array" => "[...]",
        "object" => "{...}",
        _ => "\"...\"",
    }
    .to_owned()
}
