//! Validates the parameters of an action, templates included, against the tool's JSON schema.
//!
//! A template that is the whole value has the type of its target; within other text it yields text. A value unknown until the run
//! is checked as far as its type is known, and one diagnostic per action names the unchecked values.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Map, Value};

use super::{
    known::UsableTool,
    scope::{Knowledge, Scope, followed, type_of, types},
    values_in_words::{example, repair, words},
};
use crate::{
    automation::{
        definition::{
            LARGEST_DEFINITION,
            diagnostics::{Code, Diagnostic, Diagnostics, Severity, child},
        },
        expressions::{path::Path, templates::Template},
        nearest,
    },
    catalogue::{coerce_to_schema, may_become},
    fields::kind,
    json_schema::{JsonSchema, extent},
};

/// Unchecked values named in a diagnostic.
const MOST_NAMED: usize = 5;
/// Bytes of variables and examples substituted for templates; further templates stay unchecked.
const MOST_FILLED_IN: usize = LARGEST_DEFINITION;

#[derive(Debug, Clone, Copy)]
enum Spot<'a> {
    Lone(Knowledge<'a>),
    Text,
    /// A faulty template, reported already.
    Faulty,
}

#[derive(Debug, Default)]
struct Filling<'a> {
    /// Values with templates, by pointer within the parameters.
    spots: BTreeMap<String, Spot<'a>>,
    /// Paths of the variables behind values, by pointer within the parameters.
    variables: BTreeMap<String, String>,
    bytes: usize,
}

impl Filling<'_> {
    /// `None` once the limit is reached.
    fn copy(&mut self, value: &Value) -> Option<Value> {
        self.bytes += extent(value).1;
        (self.bytes <= MOST_FILLED_IN).then(|| value.clone())
    }
}

fn is_json_with_templates(text: &str) -> bool {
    let text = text.trim_start();
    (text.starts_with('[') || (text.starts_with('{') && !text.starts_with("{{"))) && text.contains("\"{{")
}

/// Reports every template in `value` that resolves to nothing. Returns the value as far as it is known, and records unknown
/// places in `filling`.
fn filled<'a>(
    value: &Value,
    (pointer, within): (&str, &str),
    scope: &Scope<'a>,
    filling: &mut Filling<'a>,
    diagnostics: &mut Diagnostics,
) -> Value {
    match value {
        Value::String(text) if text.contains("{{") => {
            let (template, fine) = check_text(text, pointer, scope, diagnostics);
            if is_json_with_templates(text) {
                let message = "This is JSON text with templates in it, and a quote in one of their values breaks it.";
                let hint =
                    "Give the list or object itself, with the templates as its texts, if the parameter takes one.";
                diagnostics.push(Diagnostic::warning(Code::InvalidTemplate, pointer, message, hint));
            }
            let (spot, known) = match (template.lone(), fine) {
                (_, None) => (Spot::Faulty, Value::Null),
                (Some(path), Some(knowledge)) => match knowledge {
                    Knowledge::Value(value) => match filling.copy(value) {
                        Some(copy) => {
                            filling.variables.insert(within.to_owned(), path.as_str().to_owned());
                            return copy;
                        }
                        None => (Spot::Lone(knowledge), Value::Null),
                    },
                    Knowledge::Like(value) => (Spot::Lone(knowledge), filling.copy(value).unwrap_or_default()),
                    other => (Spot::Lone(other), Value::Null),
                },
                (None, Some(_)) if template.is_expression() => (Spot::Lone(Knowledge::Nothing), Value::Null),
                (None, Some(_)) => (Spot::Text, value.clone()),
            };
            filling.spots.insert(within.to_owned(), spot);
            known
        }
        Value::Array(items) => {
            let item = |(index, item): (usize, &Value)| {
                let step = index.to_string();
                filled(item, (&child(pointer, &step), &child(within, &step)), scope, filling, diagnostics)
            };
            items.iter().enumerate().map(item).collect()
        }
        Value::Object(members) => {
            let mut known = Map::new();
            for (name, value) in members {
                let places = (child(pointer, name), child(within, name));
                if name.contains("{{") {
                    let message = "The name of a member is a template, but templates in names are not filled in.";
                    let hint = "Write the name itself, and use templates in values.";
                    diagnostics.push(Diagnostic::error(Code::TemplateNotAllowed, &places.0, message, hint));
                }
                known.insert(name.clone(), filled(value, (&places.0, &places.1), scope, filling, diagnostics));
            }
            Value::Object(known)
        }
        other => other.clone(),
    }
}

/// Reports mistakes in the templates of a text. The knowledge is `None` unless a single, valid template is the whole text.
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
                "Use plain {{path}} templates; for a choice use a condition or choose, for a list for_each or the list as a whole."
            }
            Code::UnclosedTemplate => "Close it with }}, or leave {{ out.",
            Code::NestedTemplate => "Write one template: {{a.b}} or {{a.b + c}}.",
            _ => {
                "Write a path, for example {{event.text}} or {{rows[0].name}}, or an expression, for example \
                 {{(total / 100) | round(2)}}; docs/automations.md lists the filters."
            }
        };
        diagnostics.push(Diagnostic::error(fault.code, pointer, message, hint).found(&fault.excerpt.into()));
    }
    let mut known = Knowledge::Nothing;
    let mut looked_up = HashSet::new();
    for path in template.paths().filter(|path| looked_up.insert(path.as_str())) {
        match check_path(path, (pointer, &format!("{{{{{}}}}}", path.as_str())), scope, diagnostics) {
            Some(knowledge) => known = knowledge,
            None => fine = false,
        }
    }
    (template, fine.then_some(known))
}

/// The knowledge about the value at a path. A path to nothing is reported, and gives `None`. Once the limit of diagnostics is
/// reached nothing is searched: each mistake would be compared with all names.
pub(super) fn check_path<'a>(
    path: &Path,
    (pointer, found): (&str, &str),
    scope: &Scope<'a>,
    diagnostics: &mut Diagnostics,
) -> Option<Knowledge<'a>> {
    if diagnostics.is_full_of(Severity::Error) {
        diagnostics.there_may_be_more();
        return None;
    }
    match scope.look_up(path) {
        Ok(knowledge) => Some(knowledge),
        Err(wrong) => {
            let severity = wrong.severity;
            if diagnostics.is_full_of(severity) {
                diagnostics.there_may_be_more();
            } else {
                diagnostics.push(wrong.at(pointer, found));
            }
            (severity == Severity::Warning).then_some(Knowledge::ToldElsewhere)
        }
    }
}

pub(super) fn check_texts(value: &Value, pointer: &str, scope: &Scope<'_>, diagnostics: &mut Diagnostics) {
    filled(value, (pointer, ""), scope, &mut Filling::default(), diagnostics);
}

/// As [`check`], for a tool with an unknown schema: checks templates only.
pub(super) fn check_templates(
    parameters: &Map<String, Value>,
    pointer: &str,
    scope: &Scope<'_>,
    diagnostics: &mut Diagnostics,
) {
    for (name, value) in parameters {
        check_texts(value, &child(pointer, name), scope, diagnostics);
    }
}

pub(super) fn check(
    (name, tool): (&str, &UsableTool),
    parameters: &Map<String, Value>,
    pointer: &str,
    scope: &Scope<'_>,
    diagnostics: &mut Diagnostics,
) {
    let schema = &tool.parameters;
    // Only calls of service tools correct obvious mistakes of form.
    let of_service = tool.service.is_some();
    let properties = schema.get("properties").and_then(Value::as_object);
    let mut filling = Filling::default();
    let mut given = Map::new();
    for (name, value) in parameters {
        let places = (child(pointer, name), child("", name));
        let known = filled(value, (&places.0, &places.1), scope, &mut filling, diagnostics);
        // Null and empty text mean absent: for optional parameters, and for all parameters of the organization's own tools.
        let is_nothing = (known.is_null() || known.as_str() == Some("")) && !filling.spots.contains_key(&places.1);
        if !is_nothing || (of_service && required(schema).any(|required| required == name)) {
            let property = properties.and_then(|properties| properties.get(name)).filter(|_| of_service);
            given.insert(
                name.clone(),
                property.map_or_else(|| known.clone(), |property| coerce_to_schema(property, &known)),
            );
        }
    }
    // The tool call fills in defaults.
    for name in required(schema) {
        let property = properties.and_then(|properties| properties.get(name));
        if let Some(default) = property.and_then(|property| followed(schema, property).get("default")) {
            given.entry(name).or_insert_with(|| default.clone());
        }
    }
    let given = Value::Object(given);
    let mut walk = Walk {
        tool: name,
        root: schema,
        of_service,
        pointer,
        filling: &filling,
        told: Vec::new(),
        unchecked: Vec::new(),
        diagnostics,
    };
    walk.value(schema, &given, "", false);
    walk.rest(tool.schema.as_deref(), &given);
    let Walk { unchecked, .. } = walk;
    if !unchecked.is_empty() {
        let mut named: Vec<String> = unchecked.iter().take(MOST_NAMED).map(|place| shown(place)).collect();
        if unchecked.len() > MOST_NAMED {
            named.push(format!("{} more", unchecked.len() - MOST_NAMED));
        }
        let message = format!("The value of {} is known only when the automation runs.", named.join(", "));
        let hint = format!("Check that it fits {name}.");
        diagnostics.push(Diagnostic::warning(Code::NotChecked, pointer, message, hint));
    }
}

/// `/rows/0/name` without its slash; shorter than `rows[0].name`.
fn shown(within: &str) -> String {
    if within.is_empty() { "all of them together".to_owned() } else { within.trim_start_matches('/').to_owned() }
}

/// Whether all the schema's rules beside `properties` concern only the presence of members.
fn asks_for_presence_only(schema: &Value) -> bool {
    let Some(keywords) = schema.as_object() else { return true };
    keywords.iter().all(|(keyword, value)| match keyword.as_str() {
        "allOf" | "anyOf" | "oneOf" => value.as_array().is_some_and(|schemas| {
            schemas.iter().all(|schema| schema.get("properties").is_none() && asks_for_presence_only(schema))
        }),
        "not" => value.get("properties").is_none() && asks_for_presence_only(value),
        "if" | "then" | "else" | "propertyNames" | "patternProperties" | "dependentSchemas" | "const" | "enum"
        | "$ref" => false,
        _ => true,
    })
}

fn required(schema: &Value) -> impl Iterator<Item = &str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

struct Walk<'w, 'a, 'd> {
    tool: &'w str,
    root: &'w Value,
    of_service: bool,
    pointer: &'w str,
    filling: &'w Filling<'a>,
    told: Vec<String>,
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

    /// Checks the keywords behind most mistakes; [`Walk::rest`] checks all others. `put_right`: the tool call corrects obvious
    /// mistakes of form here.
    fn value(&mut self, written: &Value, value: &Value, within: &str, put_right: bool) {
        let schema = followed(self.root, written);
        let allowed = types(schema);
        if let Some(spot) = self.filling.spots.get(within) {
            self.spot(*spot, (schema, put_right.then_some(written)), &allowed, within);
            return;
        }
        let nullable = schema.get("nullable") == Some(&Value::Bool(true));
        let is_taken = allowed.is_empty() || fits(value, &allowed) || nullable && value.is_null();
        if !is_taken {
            let expected = words(&allowed);
            let message = format!("{} takes {expected} here, and this is {}.", self.tool, kind(value));
            let repair = match self.filling.variables.get(within) {
                Some(variable) => {
                    format!("Change the variable {variable}, or use another: {}", repair(value, &allowed))
                }
                // Null means absent for an optional parameter.
                None if value.is_null() && within.rfind('/') == Some(0) => {
                    format!("Write {expected}: the parameter is required.")
                }
                None => repair(value, &allowed),
            };
            let error = Diagnostic::error(Code::WrongType, self.place(within), message, repair);
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
                        self.value(of_items, item, &child(within, index.to_string()), put_right);
                    }
                }
            }
            _ => {}
        }
    }

    /// Checks a value with a template by its type, if that is known.
    fn spot(&mut self, spot: Spot<'_>, (schema, put_right): (&Value, Option<&Value>), allowed: &[&str], within: &str) {
        let list_hint = "Put it into a list: [\"{{path}}\"].";
        let in_list = allowed.contains(&"array") && !allowed.contains(&"string");
        match spot {
            Spot::Faulty | Spot::Lone(Knowledge::ToldElsewhere) => self.told.push(within.to_owned()),
            Spot::Text => {
                if put_right.is_some_and(|written| may_become(written, "string")) {
                    let noted = if in_list { &mut self.told } else { &mut self.unchecked };
                    noted.push(within.to_owned());
                } else if !allowed.is_empty() && !allowed.contains(&"string") {
                    let expected = words(allowed);
                    let message =
                        format!("Text around a template makes text, and {} takes {expected} here.", self.tool);
                    let hint = if in_list {
                        list_hint
                    } else {
                        "Write the template alone, \"{{path}}\": then the value keeps its type."
                    };
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
                    match put_right.map_or(Becomes::Nothing, |written| becomes(knowledge, written, allowed)) {
                        Becomes::ThisType => return,
                        Becomes::Perhaps => return self.unchecked.push(within.to_owned()),
                        Becomes::Nothing => {}
                    }
                    let (found, expected) = (words(&known), words(allowed));
                    let message = format!("The template leads to {found}, and {} takes {expected} here.", self.tool);
                    let hint = match allowed.contains(&"string") {
                        true => "Put text around it to make it text, or use another path.",
                        false if in_list => list_hint,
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
        let message = format!("{} does not accept this value here.", self.tool);
        let error = Diagnostic::error(Code::NotAllowed, self.place(within), message, "Use an allowed value.");
        self.tell(within, error.found(value).allowed(names.clone()).meaning(meant));
    }

    fn members(&mut self, schema: &Value, members: &Map<String, Value>, within: &str) {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
            self.missing(schema, members, within);
            return;
        };
        let open = matches!(schema.get("additionalProperties"), Some(Value::Bool(true) | Value::Object(_)))
            || schema.get("patternProperties").is_some();
        let is_top = within.is_empty();
        for (name, value) in members {
            let within = child(within, name);
            match properties.get(name) {
                Some(property) => self.value(property, value, &within, self.of_service && is_top),
                None if open => {}
                None if self.diagnostics.is_full_of(Severity::Error) => self.diagnostics.there_may_be_more(),
                None => {
                    let meant = nearest(
                        name,
                        properties.keys().map(String::as_str).filter(|known| !members.contains_key(*known)),
                    );
                    let message = format!("{} has no parameter {}.", self.tool, crate::cut::cut(name.clone(), 60));
                    let hint = "Leave it out, or use an allowed value.";
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
            // The tool call fills in the default.
            if property.get("default").is_some() {
                self.told.push(within);
                continue;
            }
            let expected = words(&types(property));
            let message = format!("{} needs {name}, and it is missing.", self.tool);
            let hint = format!("Add \"{name}\": {}.", example(property));
            let mut error = Diagnostic::error(Code::MissingParameter, self.place(&within), message, hint);
            if let Some(described) = property.get("description").and_then(Value::as_str) {
                error.hint = format!("{} It is: {}", error.hint, crate::cut::cut(described.to_owned(), 200));
            }
            self.tell(&within, error.expected(expected));
        }
    }

    fn rest(&mut self, compiled: Option<&JsonSchema>, given: &Value) {
        let Some(compiled) = compiled else { return };
        for violation in compiled.validate(given) {
            let within = violation.pointer;
            if within.is_empty() {
                // A violation on the whole object would only repeat a reported one.
                if !self.told.is_empty() {
                    continue;
                }
                if !self.filling.spots.is_empty() && !asks_for_presence_only(self.root) {
                    self.unchecked.push(within);
                    continue;
                }
            }
            let related = |other: &str| is_within(&within, other) || is_within(other, &within);
            if !within.is_empty() && self.told.iter().any(|told| related(told)) {
                continue;
            }
            // The type of this template was checked already.
            if matches!(self.filling.spots.get(&within), Some(Spot::Lone(known)) if !known.types().is_empty()) {
                continue;
            }
            if !within.is_empty() && self.filling.spots.keys().any(|spot| related(spot)) {
                self.unchecked.push(within);
                continue;
            }
            let found = given.pointer(&within);
            let what = if within.is_empty() { "What is given" } else { "This value" };
            let message = format!("{what} {}.", violation.problem);
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

/// The conversion of a value of another type by a call of a service tool.
enum Becomes {
    ThisType,
    Perhaps,
    Nothing,
}

fn becomes(knowledge: Knowledge<'_>, written: &Value, allowed: &[&str]) -> Becomes {
    let known = knowledge.types();
    match knowledge {
        Knowledge::Value(value) | Knowledge::Like(value) => {
            if fits(&coerce_to_schema(written, value), allowed) {
                Becomes::ThisType
            } else {
                Becomes::Nothing
            }
        }
        _ if !known.iter().any(|known| may_become(written, known)) => Becomes::Nothing,
        // Any number becomes text, and any text becomes a list item.
        _ if allowed.contains(&"string") || (allowed.contains(&"array") && known == ["string"]) => Becomes::ThisType,
        Knowledge::Text => Becomes::Nothing,
        _ => Becomes::Perhaps,
    }
}

fn may_be(known: &str, allowed: &[&str]) -> bool {
    match known {
        "integer" => allowed.contains(&"integer") || allowed.contains(&"number"),
        "number" => allowed.contains(&"number") || allowed.contains(&"integer"),
        other => allowed.contains(&other),
    }
}
