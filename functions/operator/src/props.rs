//! Derives the JSON Schema of a tool's arguments from a Pipedream component's props.
//!
//! | prop | schema |
//! |---|---|
//! | `string`, `integer`, `boolean` | the type; `min` and `max` bound an integer |
//! | `object` | an object with any members |
//! | `any` | any type but null, written out: some clients drop an empty schema |
//! | `T[]` | a list of `T` |
//! | `options` | `enum` of the values, their labels in the description; a long list is described, not enumerated |
//! | `remoteOptions` | the plain type: the account's values are unknown |
//! | no `optional` | required; with a `default` it is sent with that by default |
//! | `app` | none: the account that acts; exactly one |
//! | `alert`, `dir`, `data_store`, `$.interface.*`, `$.service.db` | none: the platform fills them |
//! | hidden, disabled, read-only | none, unless the overlay shows it |
//! | secret, by mark or by name | none: a model never has one |
//! | optional with `reloadProps` | none, unless the overlay shows it: the reloaded props are unknown |
//! | required with `reloadProps`; `sql`, `http_request`; a required prop that nobody can fill | the tool is refused |
//!
//! Facts that are only in a component's code go into a hand-written [`Overlay`].

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::{Map, Value, json};
use shared::{
    error::Problems,
    fields::{Fields, pointer_step},
    models::Binding,
    redaction,
};

use crate::plain_text::plain;

/// A longer `enum` costs more than it helps.
const MOST_OPTIONS: usize = 50;
const MOST_OPTION_BYTES: usize = 2_000;
/// Examples from a longer list.
const SHOWN_OPTIONS: usize = 5;
/// Bytes of a prop's description.
const LONGEST_DESCRIPTION: usize = 500;

/// Forms of a secret, as the last word of its name.
const FORMS: [&str; 5] = ["base64", "file", "json", "pem", "text"];

/// Verbs that contradict a claim to only read.
const ACTING: [&str; 5] = ["create", "add", "update", "delete", "send"];

/// A component as Pipedream describes it; in a file of the catalogue its `configurable_props` are called `props`.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Component {
    pub(crate) key: String,
    pub(crate) version: String,
    #[serde(alias = "configurable_props")]
    pub(crate) props: Vec<Prop>,
    pub(crate) annotations: Option<Annotations>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Annotations {
    pub(crate) read_only_hint: Option<bool>,
    pub(crate) destructive_hint: Option<bool>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Prop {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    label: Option<String>,
    description: Option<String>,
    optional: Option<bool>,
    default: Option<Value>,
    options: Option<Vec<Value>>,
    min: Option<Value>,
    max: Option<Value>,
    remote_options: Option<bool>,
    reload_props: Option<bool>,
    hidden: Option<bool>,
    disabled: Option<bool>,
    read_only: Option<bool>,
    secret: Option<Value>,
    format: Option<String>,
}

impl Prop {
    /// Whether a run without it fails.
    fn is_required(&self) -> bool {
        self.optional != Some(true) && self.default.is_none()
    }

    fn is_secret(&self) -> bool {
        let marked = !matches!(self.secret, None | Some(Value::Null | Value::Bool(false)));
        // `serviceAccountKeyJson` is a key in a form of its own.
        let words = redaction::words(&self.name);
        let in_a_form = words.split_last().is_some_and(|(last, name)| {
            FORMS.contains(&last.as_str()) && !name.is_empty() && redaction::is_secret(&name.join("_"))
        });
        marked || in_a_form || redaction::is_secret(&self.name)
    }

    /// Whether the component hides it from its form.
    fn is_out_of_sight(&self) -> bool {
        [self.hidden, self.disabled, self.read_only].contains(&Some(true))
    }
}

/// Facts about a component that its props lack, by hand.
#[derive(Debug, Clone, Default)]
pub(crate) struct Overlay {
    /// Keywords for the schemas of arguments, by argument; `null` removes a keyword.
    properties: BTreeMap<String, Map<String, Value>>,
    required: BTreeSet<String>,
    /// Hidden or reloading props that become arguments.
    show: BTreeSet<String>,
    /// Optional props that become no arguments.
    hide: BTreeSet<String>,
    /// Props that are always sent with these values.
    fixed: Map<String, Value>,
    dependent_required: Option<Value>,
}

impl Overlay {
    pub(crate) fn read(value: &Value, pointer: &str, problems: &mut Problems) -> Self {
        let mut overlay = Self::default();
        let Some(mut fields) = Fields::at_pointer(value, pointer, problems) else { return overlay };
        for (name, keywords) in fields.members("properties") {
            let Value::Object(keywords) = keywords else {
                let place = format!("{}/{}", fields.path("properties"), pointer_step(name));
                fields.problems().add(place, "must be an object: keywords of JSON Schema");
                continue;
            };
            overlay.properties.insert(name.clone(), keywords.clone());
        }
        overlay.required = names(&mut fields, "required");
        overlay.show = names(&mut fields, "show");
        overlay.hide = names(&mut fields, "hide");
        overlay.fixed =
            fields.members("fixed").into_iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        overlay.dependent_required = fields.get("dependentRequired").cloned();
        fields.finish();
        overlay
    }

    /// All names in it, with their member.
    fn names(&self) -> impl Iterator<Item = (&'static str, &String)> {
        let of = |member: &'static str| move |name| (member, name);
        let dependent = self.dependent_required.as_ref().and_then(Value::as_object).into_iter().flatten();
        (self.properties.keys().map(of("properties")))
            .chain(self.required.iter().map(of("required")))
            .chain(self.show.iter().map(of("show")))
            .chain(self.hide.iter().map(of("hide")))
            .chain(self.fixed.keys().map(of("fixed")))
            .chain(dependent.map(|(name, _)| ("dependentRequired", name)))
    }
}

fn names(fields: &mut Fields<'_>, member: &'static str) -> BTreeSet<String> {
    fields.texts(member, "names of props", usize::MAX).unwrap_or_default().into_iter().collect()
}

/// A component as a tool.
#[derive(Debug, Clone)]
pub(crate) struct Derived {
    pub(crate) parameters: Value,
    pub(crate) binding: Binding,
    pub(crate) effect: bool,
    pub(crate) destructive: bool,
}

/// The treatment of a prop.
enum Fate {
    Account,
    /// No argument: the platform fills it, or it stays empty.
    LeftOut,
    Fixed(Value),
    Argument(Value),
}

/// Derives the tool of a component. Problems get `pointer`, the tool's.
pub(crate) fn derive(
    component: &Component,
    overlay: &Overlay,
    pointer: &str,
    problems: &mut Problems,
) -> Option<Derived> {
    let before = problems.iter().count();
    let (mut accounts, mut properties, mut required) = (Vec::new(), Map::new(), Vec::new());
    let mut fixed = Map::new();
    let mut seen = BTreeSet::new();
    for (index, prop) in component.props.iter().enumerate() {
        let place = format!("{pointer}/component/props/{index}");
        if !seen.insert(prop.name.as_str()) {
            problems.add(place, format!("has the name {} of an earlier prop", prop.name));
            continue;
        }
        match fate(prop, overlay) {
            Ok(Fate::Account) => accounts.push(prop.name.as_str()),
            Ok(Fate::LeftOut) => {}
            Ok(Fate::Fixed(value)) => drop(fixed.insert(prop.name.clone(), value)),
            Ok(Fate::Argument(mut schema)) => {
                if let (Some(changes), Some(schema)) = (overlay.properties.get(&prop.name), schema.as_object_mut()) {
                    change(schema, changes);
                }
                // A prop with a default is sent in any case; a model that leaves it out gets the default.
                let is_sent = prop.optional != Some(true) && (prop.is_required() || schema.get("default").is_some());
                if is_sent || overlay.required.contains(&prop.name) {
                    required.push(prop.name.as_str());
                }
                properties.insert(prop.name.clone(), schema);
            }
            Err(why) => problems.add(place, why),
        }
    }
    for (member, name) in overlay.names() {
        let is_argument = properties.contains_key(name);
        let place = || format!("{pointer}/overlay/{member}/{}", pointer_step(name));
        if !seen.contains(name.as_str()) {
            problems.add(place(), format!("{name} is not a prop of {} {}", component.key, component.version));
        } else if !is_argument && matches!(member, "properties" | "required" | "show" | "dependentRequired") {
            problems.add(place(), format!("{name} does not become an argument"));
        }
    }
    let app_prop = match accounts.as_slice() {
        [account] => (*account).to_owned(),
        others => {
            let problem = format!("must have one prop of type app, not {}: one account acts", others.len());
            problems.add(format!("{pointer}/component/props"), problem);
            return None;
        }
    };
    if problems.iter().count() > before {
        return None;
    }
    let (effect, destructive) = hints(component.annotations.unwrap_or_default(), &properties, &fixed);
    let mut parameters = json!({"type": "object", "properties": properties, "additionalProperties": false});
    if let Value::Object(parameters) = &mut parameters {
        if !required.is_empty() {
            parameters.insert("required".into(), json!(required));
        }
        parameters.extend(overlay.dependent_required.clone().map(|rule| ("dependentRequired".to_owned(), rule)));
    }
    let (component, version) = (component.key.clone(), component.version.clone());
    let binding = Binding::Pipedream { component, version, app_prop, fixed };
    Some(Derived { parameters, binding, effect, destructive })
}

/// # Errors
/// The reason why the component cannot be a tool.
fn fate(prop: &Prop, overlay: &Overlay) -> Result<Fate, String> {
    let name = &prop.name;
    if prop.kind == "app" {
        return Ok(Fate::Account);
    }
    let schema = match type_schema(&prop.kind) {
        Ok(Some(schema)) => schema,
        Ok(None) => return Ok(Fate::LeftOut),
        Err(why) if prop.is_required() || is_proxy(&prop.kind) => return Err(format!("{name} {why}")),
        Err(_unknown) => return Ok(Fate::LeftOut),
    };
    let reloads = prop.reload_props == Some(true);
    if reloads && prop.optional != Some(true) {
        return Err(format!(
            "{name} is required and changes which other props there are (reloadProps), so no fixed schema describes them; bind \
             the tool to a request"
        ));
    }
    if let Some(value) = overlay.fixed.get(name) {
        let fits = jsonschema_type(&schema, value);
        return if fits {
            Ok(Fate::Fixed(value.clone()))
        } else {
            Err(format!("the fixed {name} is no {}", prop.kind))
        };
    }
    let shown = overlay.show.contains(name);
    let out = if prop.is_secret() && !(shown && prop.secret.is_none()) {
        Some("is a secret, which no model is given; bind the tool to a request with a credential")
    } else if prop.is_out_of_sight() && !shown {
        Some("is required and hidden; show or fix it in the overlay")
    } else if reloads && !shown {
        Some("")
    } else if overlay.hide.contains(name) {
        Some("is required and cannot be hidden; fix it in the overlay")
    } else {
        None
    };
    match out {
        None => Ok(Fate::Argument(argument(prop, schema))),
        Some(why) if prop.is_required() => Err(format!("{name} {why}")),
        Some(_) => Ok(Fate::LeftOut),
    }
}

/// Whether a prop would let a model send anything anywhere.
fn is_proxy(kind: &str) -> bool {
    matches!(kind, "sql" | "http_request")
}

/// The schema of a prop's type; `None` if it is no argument.
///
/// # Errors
/// The problem with the type, to follow the prop's name.
fn type_schema(kind: &str) -> Result<Option<Value>, String> {
    if let Some(item) = kind.strip_suffix("[]") {
        let items = type_schema(item)?;
        return Ok(items.map(|items| json!({"type": "array", "items": items})));
    }
    Ok(match kind {
        "string" | "$.discord.channel" => Some(json!({"type": "string"})),
        "integer" => Some(json!({"type": "integer"})),
        "boolean" => Some(json!({"type": "boolean"})),
        "object" => Some(json!({"type": "object", "additionalProperties": true})),
        "any" => Some(json!({"type": ["string", "object", "array", "number", "boolean"]})),
        "alert" | "dir" | "data_store" | "$.service.db" => None,
        _ if kind.starts_with("$.interface.") => None,
        _ if kind.starts_with("$.airtable.") => Some(json!({"type": "string"})),
        _ if is_proxy(kind) => {
            return Err(format!(
                "is of type {kind}, with which a model could ask anything; bind the tool to a request"
            ));
        }
        _ => return Err(format!("is of the type {kind}, which is not known")),
    })
}

/// Whether a value has the type of such a schema.
fn jsonschema_type(schema: &Value, value: &Value) -> bool {
    shared::json_schema::JsonSchema::compile(schema).is_ok_and(|schema| schema.validate(value).is_empty())
}

fn argument(prop: &Prop, mut schema: Value) -> Value {
    let of_list = schema.get("items").is_some();
    let mut description = plain(prop.description.as_deref().unwrap_or_default(), LONGEST_DESCRIPTION);
    if description.is_empty() {
        description = plain(prop.label.as_deref().unwrap_or_default(), LONGEST_DESCRIPTION);
    }
    let mut say = |sentence: &str| {
        if !description.is_empty() && !description.ends_with(['.', '!', '?']) {
            description.push('.');
        }
        if !description.is_empty() {
            description.push(' ');
        }
        description.push_str(sentence);
    };
    let options = distinct(prop.options.iter().flatten());
    let values: Vec<&Value> = options.iter().map(|(value, _)| *value).collect();
    let is_short = values.len() <= MOST_OPTIONS && json!(values).to_string().len() <= MOST_OPTION_BYTES;
    let labels: Vec<String> = options
        .iter()
        .filter_map(|(value, label)| {
            let label = plain(label.as_deref()?, 100);
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            (!label.is_empty() && !label.eq_ignore_ascii_case(&value)).then(|| format!("{value} ({label})"))
        })
        .collect();
    if is_short && !labels.is_empty() {
        say(&format!("One of {}.", labels.join(", ")));
    }
    if prop.remote_options == Some(true) {
        say("One of the connected account's own.");
    }
    if prop.format.as_deref() == Some("file-ref") {
        say(if of_list { "Public https addresses." } else { "A public https address." });
    }
    let Value::Object(whole) = &mut schema else { return schema };
    let default = prop.default.clone().filter(|default| !default.is_null());
    let place = if of_list { whole.get_mut("items").and_then(Value::as_object_mut) } else { Some(&mut *whole) };
    if let Some(place) = place {
        if is_short && !values.is_empty() {
            let mut values: Vec<Value> = values.into_iter().cloned().collect();
            values.extend(default.clone().filter(|default| {
                // An empty text only stands for nothing chosen.
                !of_list && default != "" && !options.iter().any(|(value, _)| *value == default)
            }));
            place.insert("enum".into(), values.into());
        } else if !values.is_empty() {
            let shown: Vec<Value> = values.into_iter().take(SHOWN_OPTIONS).cloned().collect();
            place.insert("examples".into(), shown.into());
        }
        for (bound, keyword) in [(&prop.min, "minimum"), (&prop.max, "maximum")] {
            place.extend(bound.clone().filter(Value::is_number).map(|bound| (keyword.to_owned(), bound)));
        }
    }
    if !description.is_empty() {
        whole.insert("description".into(), description.into());
    }
    // A default that is no option, or of another type, would be refused when it is sent.
    if let Some(default) = default
        && default != ""
        && jsonschema_type(&Value::Object(whole.clone()), &default)
    {
        whole.insert("default".into(), default);
    }
    schema
}

/// Options without duplicate values, with their labels: `a` or `{"label", "value"}`.
fn distinct<'o>(options: impl Iterator<Item = &'o Value>) -> Vec<(&'o Value, Option<String>)> {
    let mut distinct: Vec<(&Value, Option<String>)> = Vec::new();
    for option in options {
        let value = option.get("value").unwrap_or(option);
        let label = option.get("label").and_then(Value::as_str).map(str::to_owned);
        if !value.is_null() && distinct.iter().all(|(known, _)| *known != value) {
            distinct.push((value, label));
        }
    }
    distinct
}

fn change(schema: &mut Map<String, Value>, changes: &Map<String, Value>) {
    for (keyword, value) in changes {
        if value.is_null() {
            schema.remove(keyword);
        } else {
            schema.insert(keyword.clone(), value.clone());
        }
    }
}

/// Whether it has an effect, and whether the effect may lose data. A missing hint counts as both. A claim to only read is not
/// believed beside an argument that creates, adds, updates, deletes or sends.
fn hints(claimed: Annotations, arguments: &Map<String, Value>, fixed: &Map<String, Value>) -> (bool, bool) {
    let acts = |name: &String| redaction::words(name).first().is_some_and(|verb| ACTING.contains(&verb.as_str()));
    let set = fixed.iter().filter(|(_, value)| **value != false).map(|(name, _)| name);
    let reads = claimed.read_only_hint == Some(true) && !arguments.keys().chain(set).any(acts);
    (!reads, !reads && claimed.destructive_hint != Some(false))
}

#[cfg(test)]
mod tests;
