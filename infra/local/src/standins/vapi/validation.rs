//! Validates a body and words problems as VAPI's validator (`class-validator` in `NestJS`) does.

use serde_json::{Map, Value};
use uuid::Uuid;

/// The type of a field.
#[derive(Debug)]
pub(super) enum Kind {
    Any,
    Boolean,
    Text,
    /// Text of at least and at most this many characters.
    TextOf(usize, usize),
    /// A name of `[a-zA-Z0-9_-]` with at most this many characters.
    Name(usize),
    /// A letter, then letters, digits and `_`; at most this many characters.
    Identifier(usize),
    Number,
    /// A number from the first to the second.
    Between(f64, f64),
    OneOf(&'static [&'static str]),
    /// A UUID.
    Id,
    /// A list of texts.
    Texts,
    /// A list of UUIDs.
    Ids,
    /// An object with keys of the caller's choice.
    Map,
    Object(&'static [Field]),
    /// Text, or an object with these fields.
    TextOr(&'static [Field]),
    List(&'static Kind),
    /// An object whose `type` determines its fields.
    Tagged(&'static [(&'static str, &'static [Field])]),
    /// An object with at least a `provider`.
    Provider,
    /// VAPI's subset of JSON Schema.
    Schema(Dialect),
    /// An object whose values are schemas.
    Schemas(Dialect),
}

/// The schema keys that a dialect adds to the common ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    Plain,
    /// A request body: an object with at least one property.
    Body,
    /// Headers: each property may hold its `value`.
    Headers,
}

#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) required: bool,
}

pub(super) const fn must(name: &'static str, kind: Kind) -> Field {
    Field { name, kind, required: true }
}

pub(super) const fn may(name: &'static str, kind: Kind) -> Field {
    Field { name, kind, required: false }
}

const SCHEMA_TYPES: &[&str] = &["string", "number", "integer", "boolean", "array", "object"];
const SCHEMA_FORMATS: &[&str] = &["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];
static SCHEMA: &[Field] = &[
    must("type", Kind::OneOf(SCHEMA_TYPES)),
    may("items", Kind::Schema(Dialect::Plain)),
    may("properties", Kind::Schemas(Dialect::Plain)),
    may("description", Kind::Text),
    may("pattern", Kind::Text),
    may("format", Kind::OneOf(SCHEMA_FORMATS)),
    may("required", Kind::Texts),
    may("enum", Kind::Texts),
    may("title", Kind::Text),
];
static HEADERS_SCHEMA: &[Field] = &[
    must("type", Kind::OneOf(&["object"])),
    may("properties", Kind::Schemas(Dialect::Headers)),
    may("description", Kind::Text),
    may("required", Kind::Texts),
];
static HEADER_SCHEMA: &[Field] = &[
    must("type", Kind::OneOf(SCHEMA_TYPES)),
    may("value", Kind::Text),
    may("description", Kind::Text),
    may("pattern", Kind::Text),
    may("format", Kind::OneOf(SCHEMA_FORMATS)),
    may("enum", Kind::Texts),
    may("title", Kind::Text),
];

/// Whether absent required fields are problems.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Completeness {
    Whole,
    /// A PATCH: the fields of the outermost object are all optional.
    Partial,
}

/// The problems of an object's fields. `prefix` is empty or ends in a dot.
pub(super) fn fields(
    object: &Map<String, Value>,
    fields: &[Field],
    prefix: &str,
    completeness: Completeness,
    problems: &mut Vec<String>,
) {
    for name in object.keys() {
        if !fields.iter().any(|field| field.name == name) {
            problems.push(format!("{prefix}property {name} should not exist"));
        }
    }
    for field in fields {
        match object.get(field.name) {
            Some(Value::Null) | None => {
                if field.required && completeness == Completeness::Whole {
                    value(&Value::Null, &field.kind, prefix, field.name, problems);
                }
            }
            Some(given) => value(given, &field.kind, prefix, field.name, problems),
        }
    }
}

pub(super) fn value(given: &Value, kind: &Kind, prefix: &str, name: &str, problems: &mut Vec<String>) {
    let mut say = |problem: &str| problems.push(format!("{prefix}{name} {problem}"));
    match kind {
        Kind::Any => {
            if given.is_null() {
                say("should not be null or undefined");
            }
        }
        Kind::Boolean => {
            if !given.is_boolean() {
                say("must be a boolean value");
            }
        }
        Kind::Text => text(given, 0, usize::MAX, &mut say),
        Kind::TextOf(shortest, longest) => text(given, *shortest, *longest, &mut say),
        Kind::Name(longest) => {
            text(given, 0, *longest, &mut say);
            let fits = given.as_str().is_some_and(|text| is_name(text, *longest));
            if !fits {
                say(&format!("must match /^[a-zA-Z0-9_-]{{1,{longest}}}$/ regular expression"));
            }
        }
        Kind::Identifier(longest) => {
            text(given, 1, *longest, &mut say);
            let fits = given.as_str().is_some_and(|text| {
                text.starts_with(|first: char| first.is_ascii_alphabetic())
                    && text.chars().all(|character| character.is_ascii_alphanumeric() || character == '_')
            });
            if !fits {
                say("must match /^[a-zA-Z][a-zA-Z0-9_]*$/ regular expression");
            }
        }
        Kind::Number => number(given, f64::MIN, f64::MAX, &mut say),
        Kind::Between(least, most) => number(given, *least, *most, &mut say),
        Kind::OneOf(choices) => {
            if !given.as_str().is_some_and(|text| choices.contains(&text)) {
                say(&format!("must be one of the following values: {}", choices.join(", ")));
            }
        }
        Kind::Map => {
            if !given.is_object() {
                say("must be an object");
            }
        }
        Kind::Id => {
            if !is_uuid(given) {
                say("must be a UUID");
            }
        }
        Kind::Texts => each(given, prefix, name, "must be a string", Value::is_string, problems),
        Kind::Ids => each(given, prefix, name, "must be a UUID", is_uuid, problems),
        Kind::TextOr(inner) => {
            if !given.is_string() {
                nested(given, prefix, name, problems, |object, path, problems| {
                    fields(object, inner, path, Completeness::Whole, problems);
                });
            }
        }
        Kind::Object(inner) => nested(given, prefix, name, problems, |object, path, problems| {
            fields(object, inner, path, Completeness::Whole, problems);
        }),
        Kind::Provider => nested(given, prefix, name, problems, |object, path, problems| {
            value(object.get("provider").unwrap_or(&Value::Null), &Kind::Text, path, "provider", problems);
        }),
        Kind::Tagged(variants) => nested(given, prefix, name, problems, |object, path, problems| {
            let tag = object.get("type").and_then(Value::as_str);
            if let Some((_, inner)) = variants.iter().find(|(variant, _)| Some(*variant) == tag) {
                fields(object, inner, path, Completeness::Whole, problems);
            } else {
                let known: Vec<_> = variants.iter().map(|(variant, _)| *variant).collect();
                problems.push(format!("{path}type must be one of the following values: {}", known.join(", ")));
            }
        }),
        Kind::List(inner) => match given.as_array() {
            Some(items) => {
                for (index, item) in items.iter().enumerate() {
                    value(item, inner, &format!("{prefix}{name}."), &index.to_string(), problems);
                }
            }
            None => say("must be an array"),
        },
        Kind::Schema(dialect) => nested(given, prefix, name, problems, |object, path, problems| {
            schema(object, *dialect, path, problems);
        }),
        Kind::Schemas(dialect) => nested(given, prefix, name, problems, |object, path, problems| {
            for (property, schema) in object {
                match dialect {
                    Dialect::Headers => value(schema, &Kind::Object(HEADER_SCHEMA), path, property, problems),
                    Dialect::Plain | Dialect::Body => {
                        value(schema, &Kind::Schema(Dialect::Plain), path, property, problems);
                    }
                }
            }
        }),
    }
}

fn schema(object: &Map<String, Value>, dialect: Dialect, path: &str, problems: &mut Vec<String>) {
    if dialect == Dialect::Headers {
        return fields(object, HEADERS_SCHEMA, path, Completeness::Whole, problems);
    }
    fields(object, SCHEMA, path, Completeness::Whole, problems);
    let no_properties = object.get("properties").and_then(Value::as_object).is_none_or(Map::is_empty);
    let is_object = object.get("type").and_then(Value::as_str) == Some("object");
    if dialect == Dialect::Body && is_object && no_properties {
        problems.push(format!("{path}properties should not be empty"));
    }
}

fn nested(
    given: &Value,
    prefix: &str,
    name: &str,
    problems: &mut Vec<String>,
    check: impl FnOnce(&Map<String, Value>, &str, &mut Vec<String>),
) {
    match given.as_object() {
        Some(object) => check(object, &format!("{prefix}{name}."), problems),
        None => problems.push(format!("{prefix}{name} must be an object")),
    }
}

fn text(given: &Value, shortest: usize, longest: usize, say: &mut impl FnMut(&str)) {
    let Some(text) = given.as_str() else { return say("must be a string") };
    let length = text.chars().count();
    if length > longest {
        say(&format!("must be shorter than or equal to {longest} characters"));
    }
    if length < shortest {
        say(&format!("must be longer than or equal to {shortest} characters"));
    }
}

fn number(given: &Value, least: f64, most: f64, say: &mut impl FnMut(&str)) {
    let Some(number) = given.as_f64() else { return say("must be a number conforming to the specified constraints") };
    if number > most {
        say(&format!("must not be greater than {most}"));
    }
    if number < least {
        say(&format!("must not be less than {least}"));
    }
}

fn each(
    given: &Value,
    prefix: &str,
    name: &str,
    rule: &str,
    fits: impl Fn(&Value) -> bool,
    problems: &mut Vec<String>,
) {
    let items = given.as_array();
    if !items.is_some_and(|items| items.iter().all(fits)) {
        problems.push(format!("{prefix}each value in {name} {rule}"));
    }
    if items.is_none() {
        problems.push(format!("{prefix}{name} must be an array"));
    }
}

fn is_name(text: &str, longest: usize) -> bool {
    (1..=longest).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

/// The hyphenated form only.
fn is_uuid(given: &Value) -> bool {
    given.as_str().is_some_and(|text| text.len() == 36 && Uuid::try_parse(text).is_ok())
}
