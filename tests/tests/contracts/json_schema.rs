//! The check of final answers against JSON Schema's official suite and against its underlying validator.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

use std::{collections::BTreeSet, fs, path::Path};

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use shared::json_schema::JsonSchema;

// --------------------------------------------------------------------------------------------------- the suite

/// Cases of the suite that we refuse to compile, with the refused field: names by `$id` and anchors, other documents,
/// `unevaluated…`, and keywords without effect.
const REFUSED: &[(&str, &str, &str)] = &[
    ("draft7/additionalItems", "additionalItems as false without items", "additionalItems"),
    ("draft7/additionalItems", "additionalItems with null instance elements", "additionalItems"),
    ("draft7/additionalItems", "when items is schema, additionalItems does nothing", "additionalItems"),
    ("draft7/additionalItems", "when items is schema, boolean additionalItems does nothing", "additionalItems"),
    ("enum", "empty enum", "enum"),
    ("if-then-else", "ignore else without if", "else"),
    ("if-then-else", "ignore then without if", "then"),
    ("if-then-else", "non-interference across combined schemas", "allOf[1].then"),
    ("maxContains", "maxContains without contains is ignored", "maxContains"),
    ("minContains", "minContains without contains is ignored", "minContains"),
    ("not", "collect annotations inside a 'not', even if collection is disabled", "not.unevaluatedProperties"),
    ("ref", "$id must be resolved against nearest parent, not just immediate parent", "$defs.x.$id"),
    ("ref", "Recursive references between schemas", "$defs.node.$id"),
    ("ref", "URN base URI with URN and JSON pointer ref", "properties.foo.$ref"),
    ("ref", "URN base URI with URN and anchor ref", "$defs.bar.$anchor"),
    ("ref", "URN ref with nested pointer ref", "$defs.foo.$id"),
    ("ref", "order of evaluation: $id and $anchor and $ref", "$defs.bigint.$anchor"),
    ("ref", "order of evaluation: $id and $ref", "$defs.bigint.$id"),
    ("ref", "order of evaluation: $id and $ref on nested schema", "$defs.bar.$id"),
    ("ref", "ref creates new scope when adjacent to keywords", "$defs.A.unevaluatedProperties"),
    ("ref", "ref to else", "else"),
    ("ref", "ref to if", "if.$id"),
    ("ref", "ref to then", "then"),
    ("ref", "ref with absolute-path-reference", "$defs.a.$id"),
    ("ref", "refs with relative uris and defs", "properties.foo.$id"),
    ("ref", "relative refs with absolute uris and defs", "properties.foo.$id"),
    ("ref", "remote ref, containing refs itself", "$ref"),
    ("ref", "simple URN base URI with $ref via the URN", "properties.foo.$ref"),
];

struct Group {
    file: String,
    description: String,
    schema: Value,
    tests: Vec<Value>,
}

fn suite() -> Vec<Group> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/json_schema");
    let mut groups = Vec::new();
    for draft in ["", "draft7"] {
        for file in fs::read_dir(folder.join(draft)).unwrap().map(|entry| entry.unwrap().path()) {
            if file.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            let name = file.strip_prefix(&folder).unwrap().with_extension("").to_str().unwrap().to_owned();
            let read: Vec<Value> = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
            groups.extend(read.into_iter().map(|group| Group {
                file: name.clone(),
                description: group["description"].as_str().unwrap().to_owned(),
                schema: group["schema"].clone(),
                tests: group["tests"].as_array().unwrap().clone(),
            }));
        }
    }
    groups
}

#[test]
fn the_official_suite_says_the_same() {
    let (mut wrong, mut refused, mut held) = (Vec::new(), BTreeSet::new(), 0);
    for Group { file, description, schema, tests } in suite() {
        let schema = match JsonSchema::compile(&schema) {
            Ok(schema) => schema,
            Err(problems) => {
                let field = problems.iter().next().unwrap().field.clone();
                refused.insert((file, description, field));
                continue;
            }
        };
        for test in tests {
            let found = schema.validate(&test["data"]);
            held += 1;
            if found.is_empty() != test["valid"].as_bool().unwrap() {
                wrong.push(format!("{file}: {description}: {}: {found:?}", test["description"]));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let expected = REFUSED.iter().map(|(file, group, field)| ((*file).into(), (*group).into(), (*field).into()));
    let expected: BTreeSet<(String, String, String)> = expected.collect();
    assert_eq!(refused, expected);
    assert!(held > 800, "only {held} tests of the suite were held");
}

// ------------------------------------------------------------------------------------------------- the oracle

fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "ab", "é"]).prop_map(str::to_owned)
}

fn pattern() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["^a", "b$", "^[ab]+$", "a{2}", "(a|é)b", "^$", "\\d"]).prop_map(str::to_owned)
}

/// Numbers that the other validator divides without loss.
fn number() -> impl Strategy<Value = Value> {
    prop_oneof![
        (-3..6_i64).prop_map(Value::from),
        (-12..24_i32).prop_map(|quarters| Value::from(f64::from(quarters) / 4.0)),
        (0..40_u32).prop_map(|hundredths| Value::from(f64::from(hundredths) / 100.0)),
        prop::sample::select(vec![json!(9_007_199_254_740_991_u64), json!(-1e15), json!(-0.0)]),
    ]
}

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        3 => number(),
        3 => prop::sample::select(vec!["", "a", "aab", "b", "ab", "é", "7"]).prop_map(Value::from),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name(), inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn types() -> impl Strategy<Value = Value> {
    let one = prop::sample::select(vec!["string", "number", "integer", "boolean", "array", "object", "null"]);
    prop_oneof![
        one.clone().prop_map(Value::from),
        prop::collection::btree_set(one, 1..3).prop_map(|types| json!(types))
    ]
}

/// One keyword of the dialect with a valid value, or two that belong together.
fn keyword(schema: &BoxedStrategy<Value>) -> BoxedStrategy<Vec<(&'static str, Value)>> {
    let one =
        |name: &'static str, value: BoxedStrategy<Value>| value.prop_map(move |value| vec![(name, value)]).boxed();
    let count = || (0..4_u8).prop_map(Value::from).boxed();
    let schemas = || prop::collection::vec(schema.clone(), 1..4).prop_map(Value::from).boxed();
    let names = || prop::collection::btree_set(name(), 0..3).prop_map(|names| json!(names)).boxed();
    let named = |name: BoxedStrategy<String>, value: BoxedStrategy<Value>| {
        prop::collection::btree_map(name, value, 0..4).prop_map(|members| json!(members)).boxed()
    };
    let mut all = vec![
        one("type", types().boxed()),
        one("const", value().boxed()),
        one("enum", prop::collection::vec(value(), 1..4).prop_map(Value::from).boxed()),
        one("multipleOf", prop::sample::select(vec![json!(2), json!(0.5), json!(0.01), json!(1.5)]).boxed()),
        one("pattern", pattern().prop_map(Value::from).boxed()),
        one("uniqueItems", any::<bool>().prop_map(Value::from).boxed()),
        one("prefixItems", schemas()),
        one("items", schema.clone()),
        one("not", schema.clone()),
        one("required", names()),
        one("dependentRequired", named(name().boxed(), names())),
        one("propertyNames", schema.clone()),
        one("properties", named(name().boxed(), schema.clone())),
        one("properties", named(name().boxed(), schema.clone())),
        one("patternProperties", named(pattern().boxed(), schema.clone())),
        one("additionalProperties", schema.clone()),
        one("$ref", prop::sample::select(vec!["#", "#/$defs/a", "#/$defs/b"]).prop_map(Value::from).boxed()),
        (schema.clone(), prop::option::of(0..3_u8), prop::option::of(0..3_u8))
            .prop_map(|(schema, least, most)| {
                let mut keywords = vec![("contains", schema)];
                keywords.extend(least.map(|least| ("minContains", json!(least))));
                keywords.extend(most.map(|most| ("maxContains", json!(most))));
                keywords
            })
            .boxed(),
        (schema.clone(), prop::option::of(schema.clone()), prop::option::of(schema.clone()))
            .prop_map(|(condition, then, otherwise)| {
                let mut keywords = vec![("if", condition)];
                keywords.extend(then.map(|then| ("then", then)));
                keywords.extend(otherwise.map(|otherwise| ("else", otherwise)));
                keywords
            })
            .boxed(),
    ];
    all.extend(["allOf", "anyOf", "oneOf"].map(|name| one(name, schemas())));
    let bounds = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"];
    all.extend(bounds.map(|name| one(name, number().boxed())));
    let sizes = ["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"];
    all.extend(sizes.map(|name| one(name, count())));
    prop::strategy::Union::new(all).boxed()
}

fn of_keywords(schema: &BoxedStrategy<Value>, most: usize) -> impl Strategy<Value = Value> + use<> {
    prop::collection::vec(keyword(schema), 1..=most).prop_map(|keywords| {
        Value::Object(keywords.into_iter().flatten().map(|(name, value)| (name.into(), value)).collect())
    })
}

fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        1 => any::<bool>().prop_map(Value::from),
        4 => types().prop_map(|types| json!({"type": types})),
        1 => value().prop_map(|value| json!({"const": value})),
    ];
    let part = leaf.prop_recursive(3, 24, 4, |inner| of_keywords(&inner.boxed(), 3)).boxed();
    (of_keywords(&part, 4), part.clone(), part).prop_map(|(mut whole, a, b)| {
        whole["$defs"] = json!({"a": a, "b": b});
        whole
    })
}

/// A value that nearly fits, following the simple parts of the schema.
struct Near<'s> {
    root: &'s Value,
    seed: u64,
}

impl Near<'_> {
    fn pick(&mut self, below: usize) -> usize {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.seed >> 33).unwrap() % below.max(1)
    }

    fn of(&mut self, schema: &Value, depth: usize) -> Value {
        if depth == 0 || self.pick(12) == 0 {
            return [json!(null), json!(2), json!("ab"), json!([]), json!({})][self.pick(5)].clone();
        }
        if let Some(constant) = schema.get("const").or_else(|| schema["enum"].get(self.pick(3))) {
            return constant.clone();
        }
        if let Some(pointer) = schema["$ref"].as_str() {
            let target = self.root.pointer(pointer.trim_start_matches('#')).unwrap().clone();
            return self.of(&target, depth - 1);
        }
        for name in ["anyOf", "oneOf", "allOf"] {
            if let Some(of) = schema[name].as_array() {
                let chosen = of[self.pick(of.len())].clone();
                return self.of(&chosen, depth - 1);
            }
        }
        let keys: Vec<&str> =
            schema.as_object().map(|keys| keys.keys().map(String::as_str).collect()).unwrap_or_default();
        let speaks_of = |names: &[&str]| keys.iter().any(|key| names.contains(key));
        let wanted = match &schema["type"] {
            Value::String(wanted) => wanted.as_str(),
            Value::Array(of) => of[self.pick(of.len())].as_str().unwrap(),
            _ if speaks_of(&[
                "properties",
                "required",
                "patternProperties",
                "additionalProperties",
                "propertyNames",
            ]) =>
            {
                "object"
            }
            _ if speaks_of(&["items", "prefixItems", "contains", "uniqueItems", "minItems", "maxItems"]) => "array",
            _ if speaks_of(&["minLength", "maxLength", "pattern"]) => "string",
            _ => "number",
        };
        match wanted {
            "object" => self.object(schema, depth),
            "array" => {
                let first = schema["prefixItems"].as_array().cloned().unwrap_or_default();
                let rest = schema.get("items").or_else(|| schema.get("contains")).cloned().unwrap_or(json!(true));
                let length = self.pick(4);
                (0..length).map(|index| self.of(first.get(index).unwrap_or(&rest), depth - 1)).collect()
            }
            "string" => json!(["", "a", "aab", "b", "éb", "7"][self.pick(6)]),
            "boolean" => json!(self.pick(2) == 0),
            "null" => Value::Null,
            "integer" => json!(self.pick(5)),
            _ => [json!(1), json!(0.5), json!(3.0), json!(0.07), json!(-2)][self.pick(5)].clone(),
        }
    }

    fn object(&mut self, schema: &Value, depth: usize) -> Value {
        let mut members = Map::new();
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            if self.pick(3) > 0 {
                members.insert(name.clone(), self.of(property, depth - 1));
            }
        }
        let rest = schema.get("additionalProperties").unwrap_or(&Value::Bool(true));
        for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if !members.contains_key(name) && self.pick(4) > 0 {
                members.insert(name.into(), self.of(rest, depth - 1));
            }
        }
        Value::Object(members)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    /// Our `uniqueItems`, bounds and messages do not change which values fit.
    fn the_validator_alone_says_the_same(
        schema in schema(),
        values in prop::collection::vec(value(), 6),
        seeds in prop::collection::vec(any::<u64>(), 10),
    ) {
        let own = match JsonSchema::compile(&schema) {
            Ok(own) => own,
            Err(problems) => {
                // The only reasons for refusing a generated schema.
                let refused = |problem: &str| problem.contains("never ends") || problem.contains("unfolds to more");
                prop_assert!(problems.iter().all(|problem| refused(&problem.problem)), "{problems}");
                return Ok(());
            }
        };
        let oracle = jsonschema::draft202012::new(&schema).unwrap();
        let near = seeds.iter().map(|seed| Near { root: &schema, seed: *seed }.of(&schema, 6));
        for value in near.chain(values) {
            let found = own.validate(&value);
            if found.first().is_some_and(|problem| problem.problem.contains("too large to be checked")) {
                continue;
            }
            prop_assert_eq!(found.is_empty(), oracle.is_valid(&value), "{} against {}: {:?}", value, schema, found);
            prop_assert!(found.len() <= 21);
            for violation in &found {
                let line = violation.to_string();
                prop_assert!(!violation.problem.is_empty() && !line.contains('\n') && line.len() < 2_000, "{}", line);
            }
        }
    }
}

#[test]
fn near_values_often_fit() {
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = proptest::test_runner::TestRunner::new_with_rng(
        config,
        proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha),
    );
    let (mut fitting, mut all) = (0, 0);
    for seed in 0..400 {
        let schema = proptest::strategy::ValueTree::current(&schema().new_tree(&mut runner).unwrap());
        if let Ok(own) = JsonSchema::compile(&schema) {
            all += 1;
            fitting += usize::from(own.validate(&Near { root: &schema, seed }.of(&schema, 6)).is_empty());
        }
    }
    assert!(all > 100 && fitting * 10 > all && fitting * 10 < all * 9, "{fitting} of {all} fit: nothing is compared");
}
