use serde_json::{Map, json};

use super::*;

fn compiled(schema: &Value) -> JsonSchema {
    JsonSchema::compile(schema).unwrap_or_else(|problems| panic!("{schema}: {problems}"))
}

#[expect(clippy::needless_pass_by_value, reason = "reads better at the call")]
fn violations(schema: Value, instance: Value) -> Vec<String> {
    compiled(&schema).validate(&instance).iter().map(ToString::to_string).collect()
}

#[expect(clippy::needless_pass_by_value, reason = "reads better at the call")]
fn refused(schema: Value) -> Vec<(String, String)> {
    let problems = JsonSchema::compile(&schema).expect_err("must be refused");
    problems.iter().map(|problem| (problem.field.clone(), problem.problem.clone())).collect()
}

fn order() -> Value {
    json!({
        "type": "object",
        "properties": {
            "status": {"enum": ["open", "closed"]},
            "orders": {"type": "array", "minItems": 1, "uniqueItems": true, "items": {"$ref": "#/$defs/order"}},
            "due": {"type": "string", "format": "date"},
            "note": {"type": "string", "nullable": true, "maxLength": 5},
        },
        "required": ["status", "orders"],
        "additionalProperties": false,
        "$defs": {"order": {
            "type": "object",
            "properties": {
                "price": {"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.01},
                "amount": {"type": "integer"},
                "code": {"type": "string", "pattern": "^[A-Z]+$"},
            },
        }},
    })
}

#[test]
fn each_problem_has_its_place_and_the_next_step() {
    let instance = json!({
        "status": "done",
        "orders": [
            {"price": "5", "amount": 1.5},
            {"price": 0.005, "code": "ab"},
            {"price": 0.005, "code": "ab"},
        ],
        "due": "tomorrow",
        "note": "too long",
        "extra": 1,
    });
    let mut found = violations(order(), instance);
    found.sort();
    assert_eq!(
        found,
        [
            "due: must be a valid date, such as 2026-03-01",
            "extra: is not a property of the schema; known are due, note, orders, status",
            "note: must have at most 5 characters, not 8",
            "orders[0].amount: must be a whole number, not 1.5",
            "orders[0].price: must be a number, not text",
            "orders[1].code: must match the pattern ^[A-Z]+$",
            "orders[1].price: must be a multiple of 0.01, not 0.005",
            "orders[2].code: must match the pattern ^[A-Z]+$",
            "orders[2].price: must be a multiple of 0.01, not 0.005",
            "orders[2]: must not be the same as the item [1]",
            "status: must be one of \"open\", \"closed\"",
        ]
    );
    assert_eq!(violations(order(), json!([])), ["the whole: must be an object, not a list"]);
    assert_eq!(
        violations(order(), json!({"orders": []})),
        ["status: is required and missing", "orders: must have at least 1 item, not 0"]
    );
    assert!(violations(order(), json!({"status": "open", "orders": [{"price": 19.99}], "note": null})).is_empty());
}

#[test]
fn other_keywords_name_the_missing_part() {
    for (schema, instance, problem) in [
        (json!(false), json!(1), "the whole: is not allowed here"),
        (json!({"const": {"a": 1}}), json!(1), "the whole: must be {\"a\":1}"),
        (json!({"minimum": 3}), json!(2), "the whole: must be at least 3, not 2"),
        (json!({"maximum": 3}), json!(3.5), "the whole: must be at most 3, not 3.5"),
        (json!({"exclusiveMaximum": 3}), json!(3.0), "the whole: must be less than 3, not 3.0"),
        (json!({"minLength": 3}), json!("äö"), "the whole: must have at least 3 characters, not 2"),
        (json!({"minProperties": 1}), json!({}), "the whole: must have at least 1 property, not 0"),
        (
            json!({"propertyNames": {"maxLength": 1}}),
            json!({"ab": 1}),
            "ab: has a name that must have at most 1 character, not 2",
        ),
        (json!({"dependentRequired": {"a": ["b"]}}), json!({"a": 1}), "b: is required beside \"a\" and missing"),
        (
            json!({"patternProperties": {"^x": true}, "additionalProperties": false}),
            json!({"a b": 1}),
            "[\"a b\"]: is not a property of the schema; names must be like ^x",
        ),
        (json!({"prefixItems": [true], "items": false}), json!([1, 2]), "[1]: is not allowed here"),
        (
            json!({"items": [{"type": "null"}], "additionalItems": {"type": "string"}}),
            json!([null, 2]),
            "[1]: must be text, not 2",
        ),
        (
            json!({"contains": {"type": "string"}}),
            json!([1]),
            "the whole: must have at least 1 item that fits {\"type\":\"string\"}, and has none",
        ),
        (
            json!({"contains": {"type": "string"}, "maxContains": 1}),
            json!(["a", "b"]),
            "the whole: must have at most 1 items that fit {\"type\":\"string\"}, and has more",
        ),
        (
            json!({"contains": {"type": "string"}, "minContains": 2}),
            json!(["a", 1]),
            "the whole: must have at least 2 items that fit {\"type\":\"string\"}, and has fewer",
        ),
        (json!({"dependentSchemas": {"a": {"required": ["b"]}}}), json!({"a": 1}), "b: is required and missing"),
        (json!({"not": {"type": "string"}}), json!("a"), "the whole: must not fit {\"type\":\"string\"}"),
        (
            json!({"if": {"type": "string"}, "then": {"minLength": 1}, "else": false}),
            json!(""),
            "the whole: must have at least 1 character, not 0",
        ),
        (
            json!({"if": {"type": "string"}, "then": {"minLength": 1}, "else": false}),
            json!(1),
            "the whole: is not allowed here",
        ),
        (json!({"type": ["string", "null"]}), json!(true), "the whole: must be null or text, not a boolean"),
        (
            json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
            json!(true),
            "the whole: must be text or null, not a boolean",
        ),
        (
            json!({"oneOf": [true, {"type": "null"}]}),
            json!(null),
            "the whole: fits alternatives 1 and 2 of oneOf, and must fit exactly one",
        ),
        (json!({"format": "int32"}), json!(3_000_000_000_u32), "the whole: must be a valid int32, not 3000000000"),
        (
            json!({"format": "uri"}),
            json!("no address"),
            "the whole: must be a valid uri, such as https://example.com/page",
        ),
    ] {
        assert_eq!(violations(schema.clone(), instance), [problem], "{schema}");
    }
}

#[test]
fn of_several_alternatives_the_closest_is_told() {
    let of_kind = |kind: &str, rest: Value| {
        let mut properties = Map::from_iter([("kind".to_owned(), json!({"const": kind}))]);
        properties.extend(rest.as_object().unwrap().clone());
        json!({"type": "object", "properties": properties, "required": ["kind", "of"], "additionalProperties": false})
    };
    let schema = json!({"oneOf": [
        {"type": "null"},
        of_kind("card", json!({"of": {"type": "string"}})),
        of_kind("cash", json!({"of": {"type": "object", "properties": {"sum": {"type": "number"}, "in": {"type": "string"}}}})),
    ]});
    assert_eq!(
        violations(schema.clone(), json!({"kind": "cash", "of": {"sum": "3", "in": 4}})),
        [
            "of.in: must be text, not 4 (alternative 3 of 3, the closest)",
            "of.sum: must be a number, not text (alternative 3 of 3, the closest)",
        ]
    );
    assert_eq!(
        violations(schema, json!({"kind": "card", "of": 1, "x": 2})),
        [
            "of: must be text, not 1 (alternative 2 of 3, the closest)",
            "x: is not a property of the schema; known are kind, of (alternative 2 of 3, the closest)",
        ]
    );
}

#[test]
fn numbers_are_compared_by_value() {
    for (schema, instance) in [
        (json!({"const": 1}), json!(1.0)),
        (json!({"enum": [[{"a": 2.0}]]}), json!([{"a": 2}])),
        (json!({"type": "integer"}), json!(3.0)),
        (json!({"minimum": 0.1}), json!(0.1)),
        (json!({"multipleOf": 0.1}), json!(0.3)),
        (json!({"maxItems": 1.0}), json!([1])),
    ] {
        assert!(violations(schema.clone(), instance).is_empty(), "{schema}");
    }
    assert_eq!(violations(json!({"uniqueItems": true}), json!([{"a": 1}, {"a": 1.0}])).len(), 1);
}

#[test]
fn a_message_is_short_and_on_one_line() {
    let long = "line\n".repeat(1_000);
    let mut instance = json!({});
    for index in 0..100 {
        instance[format!("{index}{long}")] = json!(index);
    }
    let schema =
        json!({"properties": {long.clone(): {"const": long.clone()}}, "additionalProperties": {"const": [long]}});
    let found = violations(schema, instance);
    assert_eq!(found.len(), MOST_TOLD + 1);
    assert_eq!(found.last().unwrap(), "the whole: has 80 more problems");
    for line in found {
        assert!(line.len() < 500 && !line.contains(char::is_control), "{line}");
    }
}

#[test]
fn a_reference_leads_anywhere_in_the_schema() {
    let tree = json!({
        "type": "object",
        "properties": {"next": {"$ref": "#"}, "a/b %": {"type": "string"}, "c": {"$ref": "#/properties/a~1b%20%25"}},
        "additionalProperties": false,
    });
    assert_eq!(violations(tree.clone(), json!({"next": {"next": {"x": 1}}})).len(), 1);
    assert_eq!(violations(tree.clone(), json!({"c": 1})), ["c: must be text, not 1"]);
    assert!(violations(tree, json!({"next": {"next": {}}, "c": "d"})).is_empty());
    let old =
        json!({"definitions": {"name": {"type": "string"}}, "items": {"$ref": "#/definitions/name", "minLength": 2}});
    assert_eq!(violations(old, json!(["a", 1])).len(), 2);
}

#[test]
fn everything_that_cannot_be_checked_is_named_at_once() {
    let found = refused(json!({
        "type": "struct",
        "minlength": 3,
        "unevaluatedProperties": false,
        "dependencies": {},
        "properties": {
            "x": {"type": 5, "pattern": "(?=a)", "required": true},
            "y": {"$ref": "https://example.com/other.json"},
            "z": {"$ref": "#/$defs/nowhere"},
            "f": {"format": "iri"},
            "n": 7,
        },
        "items": {"minItems": -1, "enum": [], "maximum": "5", "multipleOf": 0, "allOf": []},
    }));
    let at =
        |field: &str| &found.iter().find(|(named, _)| named == field).unwrap_or_else(|| panic!("{field}: {found:?}")).1;
    for (field, says) in [
        ("type", "must be one of string, number"),
        ("minlength", "write minLength"),
        ("unevaluatedProperties", "write additionalProperties"),
        ("dependencies", "write dependentRequired"),
        ("properties.x.type", "not 5"),
        ("properties.x.pattern", "it has look-around"),
        ("properties.x.required", "must be a list, not a boolean"),
        ("properties.y.$ref", "no other document is read"),
        ("properties.z.$ref", "leads to no schema"),
        ("properties.f.format", "known are date-time"),
        ("properties.n", "must be a schema (an object, true or false), not a number"),
        ("items.minItems", "must be at least 0, not -1"),
        ("items.enum", "at least one value"),
        ("items.maximum", "must be a number, not text"),
        ("items.multipleOf", "more than 0"),
        ("items.allOf", "at least 1 item"),
    ] {
        assert!(at(field).contains(says), "{field}: {}", at(field));
    }
    assert_eq!(found.len(), 16, "{found:?}");
}

#[test]
fn text_may_have_to_be_json() {
    let schema = json!({"properties": {"blocks": {"type": "string", "contentMediaType": "application/json"}}});
    assert_eq!(violations(schema.clone(), json!({"blocks": "[{\"a\": 1}]"})), Vec::<String>::new());
    let told = violations(schema.clone(), json!({"blocks": "[{a: 1}]"}));
    assert_eq!(told, ["blocks: must be JSON as text; it cannot be read at line 1 column 3"]);
    // The message never quotes the text, and the depth is bounded.
    let deep = violations(schema, json!({"blocks": "[".repeat(100_000)}));
    assert_eq!(deep.len(), 1);
    assert!(deep[0].starts_with("blocks: must be JSON as text"), "{deep:?}");
    let other = refused(json!({"contentMediaType": "text/html"}));
    assert!(other[0].1.contains("application/json"), "{other:?}");
}

#[test]
fn a_keyword_without_effect_or_sense_is_refused() {
    for (schema, field) in [
        (json!({"then": true}), "then"),
        (json!({"else": true}), "else"),
        (json!({"minContains": 1}), "minContains"),
        (json!({"additionalItems": false}), "additionalItems"),
        (json!({"items": true, "additionalItems": false}), "additionalItems"),
        (json!({"prefixItems": [true], "items": [true]}), "items"),
        (json!({"prefixItems": [true], "not": {"items": [true]}}), "not.items"),
        (json!({"nullable": true}), "nullable"),
        (json!({"type": ["null", "null"]}), "type"),
        (json!({"required": ["a", "a"]}), "required"),
        (json!({"type": "string", "nullable": true, "enum": ["a"]}), "enum"),
        (json!({"not": {"$id": "x"}}), "not.$id"),
        (json!({"$schema": "https://example.com/own"}), "$schema"),
        (json!({"$defs": {"unused": {"typ": "string"}}}), "$defs.unused.typ"),
    ] {
        assert_eq!(refused(schema.clone())[0].0, field, "{schema}");
    }
    let notes = json!({
        "$schema": "http://json-schema.org/draft-07/schema#", "$id": "https://example.com/a", "$comment": "c", "title": "t",
        "description": "d", "default": {"typ": 1}, "example": 1, "examples": [1], "deprecated": true, "readOnly": true,
        "writeOnly": false, "if": true,
    });
    assert!(violations(notes, json!(1)).is_empty());
}

#[test]
fn a_problem_of_the_whole_stands_at_the_schemas_own_place() {
    let problems = JsonSchema::compile(&json!("object")).unwrap_err().below("schema");
    assert_eq!(problems.to_string(), "schema: must be a schema (an object, true or false), not text");
    let problems = JsonSchema::compile(&json!({"type": 1})).unwrap_err().below("schema");
    assert_eq!(problems.iter().next().unwrap().field, "schema.type");
}

// ------------------------------------------------------------------------------------------------------ hostile input

/// Runs on a stack of 1.5 MB, of the 2 MB of our smallest thread; an optimized build needs far less.
fn with_little_stack(run: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(1536 * 1024).spawn(run).unwrap().join().unwrap();
}

fn nested(levels: usize, innermost: Value, around: impl Fn(Value) -> Value) -> Value {
    (0..levels).fold(innermost, |inner, _| around(inner))
}

#[test]
fn a_reference_that_never_ends_is_refused() {
    for (schema, endless) in [
        (json!({"$ref": "#"}), 1),
        (
            json!({"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"not": {"$ref": "#/$defs/b"}}, "b": {"$ref": "#/$defs/a"}}}),
            3,
        ),
        (json!({"if": {"anyOf": [true, {"oneOf": [{"$ref": "#"}]}]}}), 1),
        (json!({"dependentSchemas": {"a": {"$ref": "#"}}}), 1),
    ] {
        let found = refused(schema);
        assert_eq!(found.len(), endless);
        assert!(found.iter().all(|(field, problem)| field.ends_with("$ref") && problem.contains("never ends")));
    }
}

#[test]
fn a_pattern_that_is_not_linear_is_refused_by_name() {
    for (pattern, says) in [
        ("^(?!secret)", "it has look-around"),
        ("(?<=a)b", "it has look-around"),
        (r"(a)\1", "it has a back-reference"),
        (r"(?<n>a)\k<n>", "it has a back-reference"),
        ("[", "it is not a regular expression"),
        ("(?:a{500}){500}", "too large"),
        (r"\p{L}{1,30}", "say with minLength and maxLength"),
    ] {
        let found = refused(json!({"properties": {"x": {"pattern": pattern}}, "patternProperties": {pattern: true}}));
        let fields: Vec<&str> = found.iter().map(|(field, _)| field.as_str()).collect();
        assert_eq!(fields.len(), 2, "{pattern}: {found:?}");
        assert!(fields.contains(&"properties.x.pattern"), "{pattern}: {found:?}");
        assert!(found.iter().all(|(_, problem)| problem.contains(says)), "{pattern}: {found:?}");
    }
    // An escaped backslash or a plain group is allowed.
    for pattern in [r"^a\\1$", "(?:a)", "(?i)a", r"\(?=", r"[(?=]"] {
        compiled(&json!({"pattern": pattern}));
    }
}

#[test]
fn a_schema_that_is_too_much_is_refused() {
    with_little_stack(|| {
        let deep = nested(10_000, json!(true), |inner| Value::Object(Map::from_iter([("not".to_owned(), inner)])));
        assert!(refused(json!({"not": null, "const": 1}))[0].1.contains("must be a schema"));
        assert!(JsonSchema::compile(&deep).unwrap_err().to_string().contains("nested more than 64"));
        // Dropping recurses into the value.
        std::mem::forget(deep);
    });
    assert!(refused(json!({"enum": ["x".repeat(70_000)]}))[0].1.contains("larger than"));
    assert!(refused(json!({"allOf": vec![true; 2_001]}))[0].1.contains("more than 2000 schemas"));
    assert!(refused(json!({"pattern": "a".repeat(2_000)}))[0].1.contains("longer than"));
    let patterns: Map<String, Value> = (0..500).map(|number| (format!("^{number}$"), json!(true))).collect();
    assert!(refused(json!({"patternProperties": patterns}))[0].1.contains("patterns than can be checked"));
    assert_eq!(refused(json!({"allOf": vec![json!(1); 1_000]})).len(), 50);
}

/// `#/$defs/d0` leads to two of `d1`, each of which leads to two of `d2` …
fn doubling(levels: usize, twice: impl Fn(Value) -> Value) -> Value {
    let mut definitions = Map::new();
    for level in 0..levels {
        definitions.insert(format!("d{level}"), twice(json!({"$ref": format!("#/$defs/d{}", level + 1)})));
    }
    definitions.insert(format!("d{levels}"), json!({"type": "string"}));
    json!({"$ref": "#/$defs/d0", "$defs": definitions})
}

#[test]
fn references_that_unfold_to_too_much_are_refused_when_the_schema_is_compiled() {
    let both = |keyword: &'static str| move |next: Value| json!({keyword: [next, next]});
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let found = refused(doubling(40, both(keyword)));
        assert!(found[0].1.contains("unfolds to more than can be checked"), "{keyword}: {found:?}");
        assert!(!violations(doubling(8, both(keyword)), json!(1)).is_empty(), "{keyword}");
    }
    // Sequential references, and references for separate values, do not multiply.
    for linear in [|next: Value| json!({"allOf": [next]}), |next: Value| json!({"properties": {"a": next, "b": next}})]
    {
        compiled(&doubling(100, linear));
    }
    let chain = doubling(300, |next| json!({"allOf": [next]}));
    assert!(refused(chain)[0].1.contains("unfolds"));
}

/// Without bounds each of these would take longer than the age of the universe.
#[test]
fn the_cost_of_a_recursive_schema_follows_the_depth_of_the_value() {
    let deep = |levels| nested(levels, json!({}), |inner| Value::Object(Map::from_iter([("x".to_owned(), inner)])));
    let both = json!({"properties": {"x": {"$ref": "#"}}, "additionalProperties": {"$ref": "#"}});
    let twice = json!({"allOf": [both.clone(), both.clone()], "minProperties": 1});
    assert!(violations(twice.clone(), deep(40))[0].contains("too large to be checked"));
    assert_eq!(violations(twice, deep(5)), ["x.x.x.x.x: must have at least 1 property, not 0"]);
    // A tree may be as deep as any value: each branch has one schema.
    let tree = json!({"anyOf": [{"type": "null"}, both]});
    assert!(violations(tree, deep(60)).is_empty());
    // The kinds of nodes of a programming language.
    let kind = |kind: &str| json!({"type": "object", "required": ["kind"], "properties": {"kind": {"const": kind}, "of": {"$ref": "#"}}});
    let kinds: Vec<Value> = ["add", "call", "get", "if", "list", "not"].map(kind).to_vec();
    let tree = json!({"oneOf": kinds});
    let expression = |levels: usize| nested(levels, json!({"kind": "get"}), |of| json!({"kind": "not", "of": of}));
    assert!(violations(tree.clone(), expression(4)).is_empty());
    let wrong = nested(3, json!({"kind": "gets"}), |of| json!({"kind": "not", "of": of}));
    let found = violations(tree.clone(), wrong);
    assert!(found[0].starts_with("of.of.of.kind: must be"), "{found:?}");
    assert!(violations(tree, expression(60))[0].contains("too large to be checked"));
}

#[test]
fn much_data_against_much_schema_is_given_up() {
    let many: Vec<String> = (0..7_000).map(|number| format!("{number:04}")).collect();
    let schema = json!({"items": {"enum": many}});
    assert!(violations(schema.clone(), json!(vec!["6999"; 100])).is_empty());
    let gives_up = ["the whole: is too large to be checked; make it shorter"];
    assert_eq!(violations(schema, json!(vec!["6999"; 100_000])), gives_up);
    // Each failed alternative would keep a copy of the list.
    let alternatives: Vec<Value> = (0..500).map(|number| json!({"maxItems": number % 3})).collect();
    let found = violations(json!({"anyOf": alternatives}), json!((0..20_000).collect::<Vec<_>>()));
    assert_eq!(found, ["the whole: does not fit, and is too large for its problems to be listed; make it shorter"]);
}

#[test]
fn no_pattern_is_slow() {
    // Exponential for a backtracking matcher.
    for pattern in ["^(a+)+$", "^(a|a)*$", "^(\\w{1,20}){1,20}$", "(.*a){20}", "^(a?){50}a{50}$"] {
        let found = violations(json!({"pattern": pattern}), json!(format!("{}!", "a".repeat(50_000))));
        assert_eq!(found.len(), usize::from(pattern != "(.*a){20}"), "{pattern}");
    }
    // A linear but slow pattern is allowed on short texts only.
    let slow = json!({"items": {"pattern": "[ab]*a[ab]{900}c"}});
    assert_eq!(violations(slow.clone(), json!(["ab"])), ["[0]: must match the pattern [ab]*a[ab]{900}c"]);
    let long = "ab".repeat(50_000);
    assert!(violations(slow.clone(), json!([long]))[0].contains("too large to be checked"));
    let names = json!({"propertyNames": slow["items"]});
    assert!(violations(names, json!({long: 1}))[0].contains("too large to be checked"));
}

#[test]
fn unique_items_are_found_in_linear_time() {
    let unique = json!({"uniqueItems": true});
    let numbers: Vec<Value> = (0..50_000).map(Value::from).collect();
    assert!(violations(unique.clone(), Value::from(numbers.clone())).is_empty());
    let twice: Vec<Value> = numbers.into_iter().chain([json!(7.0)]).collect();
    assert_eq!(violations(unique.clone(), Value::from(twice)), ["[50000]: must not be the same as the item [7]"]);
    // Distinct nests of empty lists: a hash of their leaves would be equal for all.
    let nests: Vec<Value> = (0..16_384_u32)
        .map(|bits| {
            (0..14).fold(json!([]), |inner, bit| if bits >> bit & 1 == 1 { json!([inner]) } else { json!([inner, []]) })
        })
        .collect();
    assert!(violations(unique, Value::from(nests)).is_empty());
}

#[test]
fn depth_does_not_overflow_the_stack() {
    with_little_stack(|| {
        let tree = json!({"anyOf": [{"type": "null"}, {"items": {"allOf": [{"$ref": "#"}]}}]});
        let tree = compiled(&tree);
        let deepest = nested(126, json!([]), |inner| Value::Array(vec![inner]));
        assert!(tree.validate(&deepest).len() < 2);
        let chain = (0..60).map(|level| (format!("d{level}"), json!({"$ref": format!("#/$defs/d{}", level + 1)})));
        let mut definitions: Map<String, Value> = chain.collect();
        definitions.insert("d60".into(), json!({"items": {"$ref": "#/$defs/d0"}}));
        let chain = compiled(&json!({"$ref": "#/$defs/d0", "$defs": definitions}));
        assert!(chain.validate(&deepest)[0].problem.contains("nested too deeply"));
        let constant = nested(60, json!([]), |inner| Value::Array(vec![inner]));
        let unique = compiled(&json!({"uniqueItems": true, "enum": [constant]}));
        assert_eq!(unique.validate(&deepest).len(), 1);
        let deeper = nested(10_000, json!([]), |inner| Value::Array(vec![inner]));
        assert!(tree.validate(&deeper)[0].problem.contains("more than 128 levels"));
        std::mem::forget(deeper);

        // The deepest accepted schema of the deepest parts, nested.
        let nots = |innermost: Value| nested(60, innermost, |inner| json!({"not": inner}));
        let mut definitions: Map<String, Value> = (0..3)
            .map(|level| (format!("d{level}"), nots(json!({"$ref": format!("#/$defs/d{}", level + 1)}))))
            .collect();
        definitions.insert("d3".into(), nots(json!({"type": "string"})));
        let nots = compiled(&json!({"$ref": "#/$defs/d0", "$defs": definitions}));
        assert!(nots.validate(&json!("a")).is_empty());
        assert_eq!(nots.validate(&json!(1)).len(), 1);
    });
}

#[test]
fn no_text_of_the_value_is_repeated() {
    const SECRET: &str = "sk-live-4711";
    let schema = json!({"properties": {
        "const": {"const": "c"}, "enum": {"enum": ["e"]}, "pattern": {"pattern": "^p$"}, "format": {"format": "uuid"},
        "short": {"maxLength": 1}, "type": {"type": "number"}, "not": {"not": {"type": "string"}}, "never": false,
        "any": {"anyOf": [{"const": 1}, {"type": "string", "maxLength": 1}]}, "unique": {"uniqueItems": true},
        "contains": {"contains": {"const": 1}}, "none": {"maxProperties": 0}, "list": {"items": {"minimum": 1, "type": "number"}},
        "one": {"oneOf": [true, true]},
    }});
    let instance: Map<String, Value> = schema["properties"]
        .as_object()
        .unwrap()
        .keys()
        .map(|name| {
            let value = match name.as_str() {
                "unique" => json!([SECRET, SECRET]),
                "contains" | "list" => json!([SECRET]),
                "none" => json!({"a": SECRET}),
                _ => json!(SECRET),
            };
            (name.clone(), value)
        })
        .collect();
    let found = violations(schema, Value::Object(instance));
    assert_eq!(found.len(), 14, "{found:#?}");
    assert!(found.iter().all(|problem| !problem.contains(SECRET)), "{found:#?}");
}
