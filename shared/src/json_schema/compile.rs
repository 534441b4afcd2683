//! Reading a schema, and refusing what cannot be checked.

use std::{
    collections::{BTreeSet, HashMap},
    ptr,
};

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

use super::{
    Bound, Measured, Members, Node, Pattern, Rule, Size, Type, extent, format,
    number::Decimal,
    wording::{Path, Shown, quoted, shortened},
};
use crate::{error::Problems, fields::kind};

const DEEPEST: usize = 64;
const MOST_BYTES: usize = 65_536;
const MOST_SCHEMAS: usize = 2_000;
const MOST_PROBLEMS: usize = 50;
const LONGEST_PATTERN: usize = 1_000;
/// Sizes of a compiled pattern in bytes, and what a byte of text then costs.
const PATTERN_SIZES: [(usize, u64); 4] = [(1_024, 4), (4_096, 16), (16_384, 64), (65_536, 256)];

const COMBINED: [&str; 7] = ["allOf", "anyOf", "oneOf", "not", "if", "then", "else"];
const BOUNDS: [(&str, Bound); 4] = [
    ("minimum", Bound::Minimum),
    ("maximum", Bound::Maximum),
    ("exclusiveMinimum", Bound::ExclusiveMinimum),
    ("exclusiveMaximum", Bound::ExclusiveMaximum),
];
const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];
const FLAGS: [&str; 4] = ["deprecated", "readOnly", "writeOnly", "nullable"];
const TEXTS: [&str; 5] = ["title", "description", "$schema", "$comment", "$id"];
const OTHERS: [&str; 31] = [
    "type",
    "enum",
    "const",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "items",
    "additionalItems",
    "prefixItems",
    "contains",
    "minContains",
    "maxContains",
    "minItems",
    "maxItems",
    "uniqueItems",
    "properties",
    "patternProperties",
    "additionalProperties",
    "propertyNames",
    "required",
    "dependentRequired",
    "minProperties",
    "maxProperties",
    "$ref",
    "$defs",
    "definitions",
    "default",
    "example",
    "examples",
];

fn keywords() -> impl Iterator<Item = &'static str> {
    let bounds = BOUNDS.into_iter().map(|(name, _)| name);
    OTHERS.into_iter().chain(COMBINED).chain(FLAGS).chain(TEXTS).chain(bounds)
}

/// What to write in place of a keyword that is not checked.
fn instead(keyword: &str) -> String {
    let known = match keyword {
        "dependencies" => "write dependentRequired, or if and then",
        "dependentSchemas" => "write if and then",
        "unevaluatedProperties" => "write additionalProperties beside the properties",
        "unevaluatedItems" => "write items beside prefixItems",
        "$anchor" | "$dynamicAnchor" | "$dynamicRef" | "$recursiveAnchor" | "$recursiveRef" => {
            "name the schema under $defs and refer to it as #/$defs/name"
        }
        "contentEncoding" | "contentMediaType" | "contentSchema" => {
            "what is encoded in a text is not checked; write pattern, or say it in description"
        }
        "id" => "write $id, or leave it out",
        "divisibleBy" => "write multipleOf",
        "optional" => "leave the name out of required",
        _ => match keywords().find(|known| known.eq_ignore_ascii_case(keyword)) {
            Some(known) => return format!("write {known}"),
            None => "leave it out, or say it in description",
        },
    };
    known.to_owned()
}

pub(super) fn compile(schema: &Value) -> Result<Vec<Node>, Problems> {
    let mut compiler = Compiler::default();
    let (depth, bytes) = extent(schema);
    if depth > DEEPEST {
        compiler.problem(&Path::WHOLE, format!("is nested more than {DEEPEST} levels deep"));
    } else if bytes > MOST_BYTES {
        compiler.problem(&Path::WHOLE, format!("is larger than {MOST_BYTES} bytes"));
    } else {
        compiler.schema(schema, &Path::WHOLE);
        compiler.follow_references(schema);
        compiler.refuse_circles();
    }
    if compiler.problems.is_empty() { Ok(compiler.nodes) } else { Err(compiler.problems) }
}

#[derive(Default)]
struct Compiler {
    nodes: Vec<Node>,
    /// Which node was made of the value that lies there; the schema does not move meanwhile.
    places: HashMap<*const Value, usize>,
    references: Vec<Reference>,
    problems: Problems,
}

/// A `$ref`, to be followed once every schema has been read.
struct Reference {
    from: usize,
    to: Option<usize>,
    text: String,
    field: String,
}

/// The members of an object schema.
struct Keywords<'k> {
    members: &'k Map<String, Value>,
    path: &'k Path<'k>,
    /// The node they become.
    node: usize,
}

impl<'k> Keywords<'k> {
    fn get(&self, name: &'k str) -> Option<(&'k Value, Path<'k>)> {
        Some((self.members.get(name)?, self.path.name(name)))
    }

    fn has(&self, name: &str) -> bool {
        self.members.contains_key(name)
    }
}

impl Compiler {
    fn problem(&mut self, path: &Path<'_>, problem: impl Into<String>) {
        self.problem_at(path.to_string(), problem);
    }

    fn problem_at(&mut self, field: String, problem: impl Into<String>) {
        if self.problems.iter().count() < MOST_PROBLEMS {
            self.problems.add(field, problem);
        }
    }

    fn wrong(&mut self, path: &Path<'_>, must: &str, value: &Value) {
        self.problem(path, format!("must be {must}, not {}", kind(value)));
    }

    /// The node of a schema, and of all that is in it.
    fn schema(&mut self, value: &Value, path: &Path<'_>) -> usize {
        let node = self.nodes.len();
        if node == MOST_SCHEMAS {
            self.problem(&Path::WHOLE, format!("has more than {MOST_SCHEMAS} schemas in it"));
        }
        self.nodes.push(Node::default());
        self.places.insert(ptr::from_ref(value), node);
        let rules = match value {
            Value::Bool(true) => Vec::new(),
            Value::Bool(false) => vec![Rule::Never],
            Value::Object(members) => self.rules(&Keywords { members, path, node }),
            other => {
                self.wrong(path, "a schema (an object, true or false)", other);
                Vec::new()
            }
        };
        let weight = 1 + rules.iter().map(Rule::weight).sum::<u64>();
        if let Some(place) = self.nodes.get_mut(node) {
            *place = Node { rules, weight };
        }
        node
    }

    /// What decides alone comes first: of a text in place of an object no more need be said.
    fn rules(&mut self, at: &Keywords<'_>) -> Vec<Rule> {
        self.refuse_unknown(at);
        self.read_notes(at);
        for name in DEFINITIONS {
            self.named_schemas(at, name);
        }
        let mut rules = Vec::new();
        rules.extend(self.types(at));
        self.constants(at, &mut rules);
        self.of_numbers(at, &mut rules);
        self.of_text(at, &mut rules);
        self.of_lists(at, &mut rules);
        self.of_objects(at, &mut rules);
        self.combined(at, &mut rules);
        if let Some(text) = self.text(at, "$ref") {
            let field = at.path.name("$ref").to_string();
            self.references.push(Reference { from: at.node, to: None, text: text.to_owned(), field });
        }
        rules
    }

    fn refuse_unknown(&mut self, at: &Keywords<'_>) {
        for name in at.members.keys().filter(|name| keywords().all(|known| known != name.as_str())) {
            self.problem(&at.path.name(name), format!("is not a keyword that is checked: {}", instead(name)));
        }
        let without = [
            ("minContains", "contains"),
            ("maxContains", "contains"),
            ("then", "if"),
            ("else", "if"),
            ("nullable", "type"),
        ];
        for (name, other) in without {
            if at.has(name) && !at.has(other) {
                self.problem(&at.path.name(name), format!("has no effect without {other} beside it"));
            }
        }
        if at.has("additionalItems") && !at.members.get("items").is_some_and(Value::is_array) {
            let problem = "has no effect without a list in items; write items for all of them";
            self.problem(&at.path.name("additionalItems"), problem);
        }
    }

    fn read_notes(&mut self, at: &Keywords<'_>) {
        for name in TEXTS {
            self.text(at, name);
        }
        for name in FLAGS {
            self.flag(at, name);
        }
        if at.has("$id") && at.node != 0 {
            let problem = "is read of the whole schema only: name this one under $defs and refer to it as #/$defs/name";
            self.problem(&at.path.name("$id"), problem);
        }
        if let Some((value, path)) = at.get("$schema")
            && !value.as_str().is_none_or(|text| text.contains("://json-schema.org/"))
        {
            self.problem(&path, "must be a draft of JSON Schema, such as https://json-schema.org/draft/2020-12/schema");
        }
        if let Some((value, path)) = at.get("examples")
            && !value.is_array()
        {
            self.wrong(&path, "a list", value);
        }
    }

    fn types(&mut self, at: &Keywords<'_>) -> Option<Rule> {
        let (value, path) = at.get("type")?;
        let named = |name: &str| Type::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, known)| known);
        let types: Option<Vec<Type>> = match value {
            Value::String(name) => named(name).map(|one| vec![one]),
            list => different(list)
                .filter(|names| !names.is_empty())
                .and_then(|names| names.into_iter().map(named).collect()),
        };
        let Some(mut types) = types else {
            let names = Type::ALL.map(|(name, _)| name).join(", ");
            self.problem(&path, format!("must be one of {names}, or a list of different ones, not {}", Shown(value)));
            return None;
        };
        if at.members.get("nullable") == Some(&Value::Bool(true)) {
            types.push(Type::Null);
        }
        Some(Rule::Types(types))
    }

    fn constants(&mut self, at: &Keywords<'_>, rules: &mut Vec<Rule>) {
        if let Some((value, _)) = at.get("const") {
            rules.push(Rule::OneOf(vec![value.clone()]));
        }
        if let Some((value, path)) = at.get("enum") {
            match value.as_array().filter(|values| !values.is_empty()) {
                Some(values) => {
                    if at.members.get("nullable") == Some(&Value::Bool(true)) && !values.contains(&Value::Null) {
                        self.problem(&path, "must have null in it too, because nullable is true");
                    }
                    rules.push(Rule::OneOf(values.clone()));
                }
                None => self.problem(&path, "must be a list of at least one value"),
            }
        }
    }

    fn of_numbers(&mut self, at: &Keywords<'_>, rules: &mut Vec<Rule>) {
        for (name, bound) in BOUNDS {
            let Some((value, path)) = at.get(name) else { continue };
            match value.as_number() {
                Some(limit) => rules.push(Rule::Bound(bound, limit.clone())),
                None => self.wrong(&path, "a number", value),
            }
        }
        if let Some((value, path)) = at.get("multipleOf") {
            match value.as_number().filter(|factor| Decimal::of(factor).is_positive()) {
                Some(factor) => rules.push(Rule::MultipleOf(factor.clone())),
                None => self.problem(&path, format!("must be a number greater than 0, not {}", Shown(value))),
            }
        }
    }

    fn of_text(&mut self, at: &Keywords<'_>, rules: &mut Vec<Rule>) {
        rules.extend(self.size(at, "minLength", "maxLength").map(|size| Rule::Size(Measured::Text, size)));
        if let Some(text) = self.text(at, "pattern") {
            rules.extend(self.pattern(text, &at.path.name("pattern")).map(Rule::Pattern));
        }
        if let Some(name) = self.text(at, "format") {
            if let Some(known) = format::all().find(|known| *known == name) {
                rules.push(Rule::Format(known));
            } else {
                let known = format::all().collect::<Vec<_>>().join(", ");
                let problem =
                    format!("is not a format that is checked; known are {known}. Write pattern, or leave it out");
                self.problem(&at.path.name("format"), problem);
            }
        }
    }

    fn of_lists(&mut self, at: &Keywords<'_>, rules: &mut Vec<Rule>) {
        rules.extend(self.size(at, "minItems", "maxItems").map(|size| Rule::Size(Measured::List, size)));
        let mut first = self.schemas(at, "prefixItems");
        // Draft 7 has a list in `items`, and `additionalItems` for the others.
        let rest = if at.members.get("items").is_some_and(Value::is_array) {
            if at.has("prefixItems") {
                self.problem(&at.path.name("items"), "must be one schema, for the items after those of prefixItems");
            }
            first = self.schemas(at, "items");
            "additionalItems"
        } else {
            "items"
        };
        let rest = self.subschema(at, rest);
        if !first.is_empty() || rest.is_some() {
            rules.push(Rule::Items { first, rest });
        }
        if let Some(schema) = self.subschema(at, "contains") {
            let size = self.size(at, "minContains", "maxContains");
            let least = if at.has("minContains") { size.map_or(1, |size| size.least) } else { 1 };
            rules.push(Rule::Contains { schema, size: Size { least, most: size.and_then(|size| size.most) } });
        }
        if self.flag(at, "uniqueItems") {
            rules.push(Rule::Unique);
        }
    }

    fn of_objects(&mut self, at: &Keywords<'_>, rules: &mut Vec<Rule>) {
        if let Some((value, path)) = at.get("required") {
            rules.extend(self.names(value, &path).map(Rule::Required));
        }
        if let Some((value, path)) = at.get("dependentRequired") {
            let asked = self.members(value, &path).into_iter();
            let asked: Vec<_> = asked
                .filter_map(|(name, others)| Some((name.clone(), self.names(others, &path.name(name))?)))
                .collect();
            rules.push(Rule::RequiredWith(asked));
        }
        rules.extend(self.size(at, "minProperties", "maxProperties").map(|size| Rule::Size(Measured::Object, size)));
        rules.extend(self.subschema(at, "propertyNames").map(Rule::Names));
        if ["properties", "patternProperties", "additionalProperties"].iter().any(|name| at.has(name)) {
            let properties = self.named_schemas(at, "properties").into_iter().collect();
            let patterns = self.named_schemas(at, "patternProperties");
            let patterns_path = at.path.name("patternProperties");
            let patterns = patterns
                .into_iter()
                .filter_map(|(text, schema)| Some((self.pattern(&text, &patterns_path.name(&text))?, schema)))
                .collect();
            let rest = self.subschema(at, "additionalProperties");
            let closed = at.members.get("additionalProperties") == Some(&Value::Bool(false));
            rules.push(Rule::Members(Members { properties, patterns, rest, closed }));
        }
    }

    fn combined(&mut self, at: &Keywords<'_>, rules: &mut Vec<Rule>) {
        for (name, rule) in [("allOf", Rule::All as fn(Vec<usize>) -> Rule), ("anyOf", Rule::Any), ("oneOf", Rule::One)]
        {
            if at.has(name) {
                rules.push(rule(self.schemas(at, name)));
            }
        }
        if let Some(schema) = self.subschema(at, "not") {
            let shown = at.members.get("not").map(|schema| shortened(120, format_args!("{schema}")));
            rules.push(Rule::Not(schema, shown.unwrap_or_default()));
        }
        let (then, otherwise) = (self.subschema(at, "then"), self.subschema(at, "else"));
        if let Some(condition) = self.subschema(at, "if") {
            rules.push(Rule::When { condition, then, otherwise });
        }
    }

    fn subschema<'k>(&mut self, at: &Keywords<'k>, name: &'k str) -> Option<usize> {
        let (value, path) = at.get(name)?;
        Some(self.schema(value, &path))
    }

    /// A list of schemas, which must not be empty.
    fn schemas<'k>(&mut self, at: &Keywords<'k>, name: &'k str) -> Vec<usize> {
        let Some((value, path)) = at.get(name) else { return Vec::new() };
        let Some(schemas) = value.as_array().filter(|schemas| !schemas.is_empty()) else {
            self.problem(&path, "must be a list of at least one schema");
            return Vec::new();
        };
        schemas.iter().enumerate().map(|(index, schema)| self.schema(schema, &path.index(index))).collect()
    }

    fn named_schemas<'k>(&mut self, at: &Keywords<'k>, name: &'k str) -> Vec<(String, usize)> {
        let Some((value, path)) = at.get(name) else { return Vec::new() };
        let members = self.members(value, &path).into_iter();
        members.map(|(name, schema)| (name.clone(), self.schema(schema, &path.name(name)))).collect()
    }

    fn members<'k>(&mut self, value: &'k Value, path: &Path<'_>) -> Vec<(&'k String, &'k Value)> {
        let Some(members) = value.as_object() else {
            self.wrong(path, "an object", value);
            return Vec::new();
        };
        members.iter().collect()
    }

    fn names(&mut self, value: &Value, path: &Path<'_>) -> Option<Vec<String>> {
        let names = different(value);
        if names.is_none() {
            self.problem(path, format!("must be a list of different names of properties, not {}", Shown(value)));
        }
        Some(names?.into_iter().map(str::to_owned).collect())
    }

    fn text<'k>(&mut self, at: &Keywords<'k>, name: &'k str) -> Option<&'k str> {
        let (value, path) = at.get(name)?;
        if !value.is_string() {
            self.wrong(&path, "text", value);
        }
        value.as_str()
    }

    fn flag<'k>(&mut self, at: &Keywords<'k>, name: &'k str) -> bool {
        let Some((value, path)) = at.get(name) else { return false };
        if !value.is_boolean() {
            self.wrong(&path, "true or false", value);
        }
        value == &Value::Bool(true)
    }

    fn size<'k>(&mut self, at: &Keywords<'k>, least: &'k str, most: &'k str) -> Option<Size> {
        let mut count = |name| {
            let (value, path) = at.get(name)?;
            let whole = value.as_number().and_then(|number| Decimal::of(number).whole());
            let count = whole.and_then(|whole| u64::try_from(whole).ok());
            if count.is_none() {
                self.problem(&path, format!("must be a whole number from 0, not {}", Shown(value)));
            }
            count
        };
        let (least, most) = (count(least), count(most));
        (least.is_some() || most.is_some()).then(|| Size { least: least.unwrap_or(0), most })
    }

    fn pattern(&mut self, text: &str, path: &Path<'_>) -> Option<Pattern> {
        if text.len() > LONGEST_PATTERN {
            self.problem(path, format!("is longer than {LONGEST_PATTERN} bytes"));
            return None;
        }
        let mut error = None;
        for (size, per_byte) in PATTERN_SIZES {
            match regex_lite::RegexBuilder::new(text).size_limit(size).build() {
                Ok(regex) => return Some(Pattern { regex, text: text.to_owned(), per_byte }),
                Err(refused) => error = Some(refused),
            }
        }
        let error = error.map(|error| error.to_string()).unwrap_or_default();
        let problem = format!("is not a regular expression that can be checked: {error}");
        self.problem(path, problem);
        None
    }

    fn follow_references(&mut self, root: &Value) {
        let mut references = std::mem::take(&mut self.references);
        for reference in &mut references {
            let pointer =
                reference.text.strip_prefix('#').map(|pointer| percent_decode_str(pointer).decode_utf8_lossy());
            let to = match pointer {
                Some(pointer) if pointer.is_empty() || pointer.starts_with('/') => root
                    .pointer(&pointer)
                    .and_then(|target| self.places.get(&ptr::from_ref(target)).copied())
                    .ok_or("leads to no schema; write #/$defs/name, and the schema there"),
                _ => Err("must lead into this schema, as #/$defs/name: no other document is read, and no anchor"),
            };
            match to {
                Ok(to) => {
                    reference.to = Some(to);
                    if let Some(node) = self.nodes.get_mut(reference.from) {
                        node.rules.push(Rule::Reference(to));
                    }
                }
                Err(problem) => {
                    let problem = format!("{} {problem}", quoted(&reference.text));
                    self.problem_at(std::mem::take(&mut reference.field), problem);
                }
            }
        }
        self.references = references;
    }

    /// A reference that leads back to itself for the same value would never end.
    fn refuse_circles(&mut self) {
        for reference in std::mem::take(&mut self.references) {
            let Some(to) = reference.to else { continue };
            let mut seen = vec![false; self.nodes.len()];
            let mut ahead = vec![to];
            while let Some(node) = ahead.pop() {
                match seen.get_mut(node) {
                    Some(seen) if !*seen => *seen = true,
                    _ => continue,
                }
                let rules = self.nodes.get(node).into_iter().flat_map(|node| &node.rules);
                rules.for_each(|rule| rule.of_same_value(&mut ahead));
            }
            if seen.get(reference.from) == Some(&true) {
                let problem = "leads back to itself without going into a property or an item";
                self.problem_at(reference.field, problem);
            }
        }
    }
}

/// A list of texts, none of them twice.
fn different(value: &Value) -> Option<Vec<&str>> {
    let texts: Vec<&str> = value.as_array()?.iter().map(Value::as_str).collect::<Option<_>>()?;
    (texts.iter().collect::<BTreeSet<_>>().len() == texts.len()).then_some(texts)
}

impl Rule {
    /// The schemas that the rule holds against the same value.
    fn of_same_value(&self, nodes: &mut Vec<usize>) {
        match self {
            Self::Reference(node) | Self::Not(node, _) => nodes.push(*node),
            Self::All(all) | Self::Any(all) | Self::One(all) => nodes.extend(all),
            Self::When { condition, then, otherwise } => {
                nodes.push(*condition);
                nodes.extend(then);
                nodes.extend(otherwise);
            }
            _ => {}
        }
    }

    /// About how much work it is, in comparisons of short values.
    fn weight(&self) -> u64 {
        let weight = match self {
            Self::OneOf(values) => values.iter().map(|value| extent(value).1).sum::<usize>() / 16,
            Self::Required(names) => names.len(),
            Self::RequiredWith(asked) => asked.iter().map(|(_, names)| names.len() + 1).sum(),
            _ => 1,
        };
        weight as u64
    }
}
