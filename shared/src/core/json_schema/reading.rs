//! Reads a schema before compilation: rejects ignored keywords, resolves references, and computes costs.

use std::collections::HashMap;

use jsonschema::Draft;
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};

use super::{
    MOST_PROBLEMS, PATTERN_CACHE,
    cost::{Costs, Edge, LOOK, Node, Unbounded},
    extent, format, one, options,
    wording::{Shown, place, quoted, step},
};
use crate::{error::Problems, fields::kind};

/// Limits of the schema itself.
const DEEPEST: usize = 64;
const MOST_BYTES: usize = 65_536;
const MOST_SCHEMAS: usize = 2_000;

const LONGEST_PATTERN: usize = 1_000;
pub(super) const LARGEST_PATTERN: usize = 256 * 1024;
/// Bytes of a compiled pattern, and the cost per 16 bytes of the slowest text.
const PATTERN_SIZES: [(usize, u64); 4] =
    [(4 * 1024, 50), (16 * 1024, 1_500), (64 * 1024, 40_000), (LARGEST_PATTERN, 100_000)];
/// Bytes of all compiled patterns.
const MOST_PATTERNS: usize = 32 * 1024 * 1024;

/// The content of a keyword, and the values to which it applies.
#[derive(Clone, Copy)]
enum Role {
    /// A rule without subschemas.
    Plain,
    /// Not checked, or not by itself.
    Note,
    /// A schema or a list of schemas.
    Schemas(Edge),
    /// Schemas by name.
    Named(Edge),
}

#[rustfmt::skip]
const KEYWORDS: [(&str, Role); 53] = {
    use Role::{Named, Note, Plain, Schemas};
    [
        ("type", Plain), ("enum", Plain), ("const", Plain), ("format", Plain),
        ("minimum", Plain), ("maximum", Plain), ("exclusiveMinimum", Plain), ("exclusiveMaximum", Plain), ("multipleOf", Plain),
        ("minLength", Plain), ("maxLength", Plain), ("pattern", Plain), ("contentMediaType", Plain),
        ("minItems", Plain), ("maxItems", Plain), ("uniqueItems", Plain), ("minContains", Plain), ("maxContains", Plain),
        ("required", Plain), ("dependentRequired", Plain), ("minProperties", Plain), ("maxProperties", Plain),
        ("prefixItems", Schemas(Edge::FirstItems)), ("items", Schemas(Edge::OtherItem)), ("additionalItems", Schemas(Edge::OtherItem)),
        ("contains", Schemas(Edge::EveryItem)),
        ("properties", Named(Edge::Property)), ("additionalProperties", Schemas(Edge::OtherMember)),
        ("patternProperties", Named(Edge::EveryMember)), ("propertyNames", Schemas(Edge::EveryMember)),
        ("allOf", Schemas(Edge::Same)), ("anyOf", Schemas(Edge::Same)), ("oneOf", Schemas(Edge::Same)),
        ("not", Schemas(Edge::Same)), ("if", Schemas(Edge::Same)), ("then", Schemas(Edge::Same)), ("else", Schemas(Edge::Same)),
        ("dependentSchemas", Named(Edge::Same)),
        ("$ref", Note), ("$defs", Named(Edge::Unused)), ("definitions", Named(Edge::Unused)),
        ("title", Note), ("description", Note), ("default", Note), ("example", Note), ("examples", Note), ("nullable", Note),
        ("deprecated", Note), ("readOnly", Note), ("writeOnly", Note), ("$schema", Note), ("$comment", Note), ("$id", Note),
    ]
};

const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "array", "object", "null"];

/// Keywords without effect unless the other one is present.
const WITHOUT_EFFECT: [(&str, &str); 5] =
    [("minContains", "contains"), ("maxContains", "contains"), ("then", "if"), ("else", "if"), ("nullable", "type")];

/// A replacement for an unsupported keyword.
fn instead(keyword: &str) -> String {
    let known = match keyword {
        "dependencies" => "write dependentRequired, or dependentSchemas",
        "unevaluatedProperties" => "write additionalProperties beside the properties",
        "unevaluatedItems" => "write items beside prefixItems",
        "$anchor" | "$dynamicAnchor" | "$dynamicRef" | "$recursiveAnchor" | "$recursiveRef" => {
            "name the schema under $defs and refer to it as #/$defs/name"
        }
        "contentEncoding" | "contentSchema" => {
            "encoded content is not checked; write pattern, or say it in description"
        }
        "id" => "write $id, or leave it out",
        "divisibleBy" => "write multipleOf",
        "optional" => "leave the name out of required",
        _ => match KEYWORDS.iter().find(|(known, _)| known.eq_ignore_ascii_case(keyword)) {
            Some((known, _)) => return format!("write {known}"),
            None => "leave it out, or say it in description",
        },
    };
    known.to_owned()
}

pub(super) struct Reading<'s> {
    root: &'s Value,
    /// Places of draft 7's lists in `items`, and whether `prefixItems` occurs.
    lists: Vec<String>,
    prefixed: bool,
    /// The schema for the crate: without annotations that would change its meaning, and with `nullable` merged into `type`.
    prepared: Value,
    pub(super) problems: Problems,
    nodes: Vec<Node>,
    /// Each schema by its JSON pointer.
    places: HashMap<String, usize>,
    references: Vec<Reference>,
    patterns: HashMap<&'s str, u64>,
    patterns_size: usize,
}

struct Reference {
    from: usize,
    to: String,
    pointer: String,
}

impl<'s> Reading<'s> {
    /// # Errors
    /// If the schema is too large to read.
    pub(super) fn of(root: &'s Value) -> Result<Self, Problems> {
        let (depth, bytes) = extent(root);
        if depth > DEEPEST {
            return Err(one("", format!("is nested more than {DEEPEST} levels deep")));
        }
        if bytes > MOST_BYTES {
            return Err(one("", format!("is larger than {MOST_BYTES} bytes")));
        }
        let mut reading = Self {
            root,
            lists: Vec::new(),
            prefixed: false,
            prepared: root.clone(),
            problems: Problems::default(),
            nodes: Vec::new(),
            places: HashMap::new(),
            references: Vec::new(),
            patterns: HashMap::new(),
            patterns_size: 0,
        };
        reading.schema(root, String::new());
        if reading.nodes.len() > MOST_SCHEMAS {
            return Err(one("", format!("has more than {MOST_SCHEMAS} schemas in it")));
        }
        if reading.patterns_size > MOST_PATTERNS {
            return Err(one("", "has more, or larger, patterns than can be checked; make them shorter"));
        }
        reading.follow_references();
        if reading.prefixed {
            for pointer in std::mem::take(&mut reading.lists) {
                reading.problem(&pointer, "must be one schema; for the first items write prefixItems, here too");
            }
        }
        Ok(reading)
    }

    /// No draft has both `prefixItems` and lists in `items`.
    pub(super) const fn draft(&self) -> Draft {
        if self.lists.is_empty() { Draft::Draft202012 } else { Draft::Draft201909 }
    }

    /// # Errors
    /// References that never end or unfold too far.
    pub(super) fn finish(self) -> Result<(Costs, Value), Problems> {
        let costs = Costs::of(self.nodes).map_err(|endless| match endless {
            Unbounded::Circles(nodes) => {
                let mut problems = Problems::default();
                let endless = self.references.iter().filter(|reference| nodes.contains(&reference.from));
                for reference in endless.take(MOST_PROBLEMS) {
                    let problem = "never ends: the references form a circle that enters no property and no item";
                    problems.add(place(self.root, &reference.pointer), problem);
                }
                problems
            }
            Unbounded::Unfolded => {
                one("", "unfolds to more than can be checked: too many of its schemas apply to one value")
            }
        })?;
        Ok((costs, self.prepared))
    }

    fn problem(&mut self, pointer: &str, problem: impl Into<String>) {
        self.problems.add(place(self.root, pointer), problem);
    }

    /// Reads a schema with all subschemas, and returns its node.
    fn schema(&mut self, value: &'s Value, pointer: String) -> usize {
        let index = self.nodes.len();
        self.nodes.push(Node { work: LOOK, errors: u64::from(value == &Value::Bool(false)), ..Node::default() });
        if !value.is_object() && !value.is_boolean() {
            self.problem(&pointer, format!("must be a schema (an object, true or false), not {}", kind(value)));
        }
        if let (Value::Object(members), true) = (value, index < MOST_SCHEMAS) {
            self.refuse_without_effect(members, &pointer);
            let mut node = Node { work: LOOK, ..Node::default() };
            for (name, value) in members {
                let pointer = format!("{pointer}{}", step(name));
                let role = KEYWORDS.iter().find(|(known, _)| known == name).map(|(_, role)| *role);
                node.work += 1 + self.work(name, value, &pointer);
                node.errors += errors_of(name, role, value);
                node.looks_within |= name == "uniqueItems";
                self.read(index, name, value, &pointer);
                match (role, value) {
                    (None, _) => {
                        self.problem(&pointer, format!("is not a supported keyword: {}", instead(name)));
                    }
                    (Some(Role::Plain | Role::Note), _) => {}
                    (Some(Role::Schemas(edge)), Value::Array(schemas)) => {
                        let edge = if name == "items" { Edge::FirstItems } else { edge };
                        for (at, schema) in schemas.iter().enumerate() {
                            node.add(edge, name, self.schema(schema, format!("{pointer}/{at}")));
                        }
                    }
                    (Some(Role::Schemas(edge)), schema) => node.add(edge, name, self.schema(schema, pointer)),
                    (Some(Role::Named(edge)), schemas) => {
                        for (name, schema) in schemas.as_object().into_iter().flatten() {
                            node.add(edge, name, self.schema(schema, format!("{pointer}{}", step(name))));
                        }
                    }
                }
            }
            self.prepare(members, &pointer);
            if let Some(place) = self.nodes.get_mut(index) {
                *place = node;
            }
        }
        self.places.insert(pointer, index);
        index
    }

    /// Rules about a keyword that the meta-schema lacks or words badly.
    fn read(&mut self, node: usize, name: &str, value: &Value, pointer: &str) {
        match (name, value) {
            ("type", value) if !value.is_array() && !TYPES.iter().any(|known| value == known) => {
                let known = TYPES.join(", ");
                self.problem(pointer, format!("must be one of {known}, or a list of them, not {}", Shown(value)));
            }
            ("enum", Value::Array(values)) if values.is_empty() => {
                self.problem(pointer, "must be a list of at least one value");
            }
            ("nullable", value) if !value.is_boolean() => {
                self.problem(pointer, format!("must be true or false, not {}", kind(value)));
            }
            ("format", Value::String(name)) if format::all().all(|known| known != name) => {
                let known = format::all().collect::<Vec<_>>().join(", ");
                let problem = format!("is not a supported format; known are {known}. Write pattern, or leave it out");
                self.problem(pointer, problem);
            }
            ("contentMediaType", value) if value != "application/json" => {
                self.problem(pointer, "must be application/json; other content is not checked");
            }
            ("$ref", Value::String(to)) => {
                self.references.push(Reference { from: node, to: to.clone(), pointer: pointer.to_owned() });
            }
            ("$id", _) if node != 0 => {
                let problem =
                    "is read of the whole schema only: name this one under $defs and refer to it as #/$defs/name";
                self.problem(pointer, problem);
            }
            ("$schema", Value::String(draft)) if !draft.contains("://json-schema.org/") => {
                let problem = "must be a draft of JSON Schema, such as https://json-schema.org/draft/2020-12/schema";
                self.problem(pointer, problem);
            }
            _ => {}
        }
    }

    fn refuse_without_effect(&mut self, members: &Map<String, Value>, pointer: &str) {
        for (name, other) in WITHOUT_EFFECT {
            if members.contains_key(name) && !members.contains_key(other) {
                self.problem(&format!("{pointer}{}", step(name)), format!("has no effect without {other} beside it"));
            }
        }
        let list = members.get("items").is_some_and(Value::is_array);
        if members.contains_key("additionalItems") && !list {
            let problem = "has no effect without a list in items; write items for all of them";
            self.problem(&format!("{pointer}/additionalItems"), problem);
        }
        if list {
            self.lists.push(format!("{pointer}/items"));
        }
        self.prefixed |= members.contains_key("prefixItems");
    }

    /// Adapts the parts that the crate would interpret differently.
    fn prepare(&mut self, members: &Map<String, Value>, pointer: &str) {
        let nullable = members.get("nullable") == Some(&Value::Bool(true));
        if nullable && members.get("enum").and_then(Value::as_array).is_some_and(|all| !all.contains(&Value::Null)) {
            self.problem(&format!("{pointer}/enum"), "must have null in it too, because nullable is true");
        }
        let Some(Value::Object(prepared)) = self.prepared.pointer_mut(pointer) else { return };
        prepared.remove("$schema");
        prepared.remove("$id");
        match prepared.get_mut("type") {
            Some(Value::Array(types)) if nullable && types.iter().all(|one| one != "null") => types.push("null".into()),
            Some(one) if nullable && one.is_string() && one != "null" => *one = json!([one, "null"]),
            _ => {}
        }
    }

    fn follow_references(&mut self) {
        for reference in std::mem::take(&mut self.references) {
            let local = reference.to.strip_prefix('#').filter(|local| local.is_empty() || local.starts_with('/'));
            let to = local.map(|local| self.places.get(&*percent_decode_str(local).decode_utf8_lossy()).copied());
            let problem = match to {
                Some(Some(to)) => {
                    if let Some(node) = self.nodes.get_mut(reference.from) {
                        node.same.push(to);
                    }
                    self.references.push(reference);
                    continue;
                }
                Some(None) => "leads to no schema; write #/$defs/name, and the schema there",
                None => "must lead into this schema, as #/$defs/name: no other document is read, and no anchor",
            };
            self.problem(&reference.pointer, format!("{} {problem}", quoted(&reference.to)));
        }
    }

    /// The cost of a keyword without its subschemas.
    fn work(&mut self, name: &str, value: &'s Value, pointer: &str) -> u64 {
        match (name, value) {
            ("enum" | "const" | "dependentRequired", value) => extent(value).1 as u64 / 16,
            ("required", Value::Array(names)) => names.len() as u64,
            ("contentMediaType", _) => 4,
            ("pattern", Value::String(pattern)) => self.pattern(pattern, pointer),
            ("patternProperties", Value::Object(schemas)) => {
                schemas.keys().map(|pattern| self.pattern(pattern, &format!("{pointer}{}", step(pattern)))).sum()
            }
            _ => 0,
        }
    }

    fn pattern(&mut self, pattern: &'s str, pointer: &str) -> u64 {
        if let Some(work) = self.patterns.get(pattern) {
            return *work;
        }
        // Both are rejected anyway.
        if self.patterns_size > MOST_PATTERNS || self.problems.iter().count() > MOST_PROBLEMS {
            return 0;
        }
        if pattern.len() > LONGEST_PATTERN {
            self.problem(pointer, format!("is longer than {LONGEST_PATTERN} bytes"));
            return 0;
        }
        let schema = json!({"pattern": pattern});
        let fits = |size| options(Draft::Draft202012, size).build(&schema).is_ok();
        let Some((size, work)) = PATTERN_SIZES.iter().find(|(size, _)| fits(*size)) else {
            let why = if fits(LARGEST_PATTERN * 16) {
                "it is too large; say with minLength and maxLength how long a text may be"
            } else {
                problem_of_pattern(pattern)
            };
            self.problem(pointer, format!("is not a supported pattern: {why}"));
            return 0;
        };
        self.patterns_size += size + PATTERN_CACHE;
        self.patterns.insert(pattern, *work);
        *work
    }
}

/// The reason why a pattern is rejected; the crate does not tell.
fn problem_of_pattern(pattern: &str) -> &'static str {
    let mut after_backslash = false;
    for (at, letter) in pattern.char_indices() {
        let rest = pattern.get(at..).unwrap_or_default();
        if after_backslash && (letter.is_ascii_digit() && letter != '0' || rest.starts_with("k<")) {
            return "it has a back-reference";
        }
        if !after_backslash && ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|look| rest.starts_with(look)) {
            return "it has look-around";
        }
        after_backslash = letter == '\\' && !after_backslash;
    }
    "it is not a regular expression, or a far too large one"
}

/// Errors that a keyword may yield, without those of its subschemas.
fn errors_of(name: &str, role: Option<Role>, value: &Value) -> u64 {
    match (name, value, role) {
        ("required", Value::Array(names), _) => names.len() as u64,
        ("dependentRequired", value, _) => extent(value).1 as u64 / 4,
        // The error contains a copy of the schema.
        ("not", value, _) => 1 + extent(value).1 as u64 / 64,
        ("anyOf" | "oneOf" | "contains" | "propertyNames" | "additionalProperties" | "additionalItems", ..) => 1,
        (_, _, role) => u64::from(matches!(role, Some(Role::Plain))),
    }
}
