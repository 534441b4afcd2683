//! Checks a model's arguments against the schema it was shown.
//!
//! A check of our own, because a model must be able to act on its answer, and unknown names are dropped rather than refused
//! (docs/adr/0003-checking-arguments.md).

use serde_json::{Map, Value};

use crate::{cut::cut, fields::kind, json_schema::format, models::NO_ARGUMENTS};

/// Unknown names listed beside a mistake.
const NAMED: usize = 5;
/// In bytes: names can be as long as a model makes them.
const LONGEST_SENTENCE: usize = 600;

#[derive(Debug, Default, PartialEq)]
pub struct Checked {
    pub arguments: Map<String, Value>,
    /// Paths of arguments that the tool does not have.
    pub ignored: Vec<String>,
}

/// Checks `arguments` against `parameters`, the object schema of a `function_schema`. Empty text and null count as
/// absent, because VAPI sends them for omitted optional arguments, unless the argument's type lists null.
///
/// # Errors
/// One sentence that names the argument.
pub fn check(parameters: &Value, arguments: &Map<String, Value>) -> Result<Checked, String> {
    let mut ignored = Vec::new();
    match object(parameters, arguments, "", &mut ignored) {
        Ok(arguments) => Ok(Checked { arguments, ignored }),
        Err(sentence) if ignored.is_empty() => Err(sentence),
        // An unknown argument is often the missing one under another name.
        Err(sentence) => {
            let unknown: Vec<String> = ignored.iter().take(NAMED).map(|name| format!("\"{name}\"")).collect();
            Err(cut(format!("{sentence} The tool has no argument {}.", unknown.join(", ")), LONGEST_SENTENCE))
        }
    }
}

/// Checks the names of arguments whose values are not known yet.
///
/// # Errors
/// The unknown or the missing name, to follow the field of the arguments.
pub fn names_fit(parameters: &Value, arguments: &Map<String, Value>) -> Result<(), String> {
    let properties = parameters.get("properties").and_then(Value::as_object);
    let is_known = |name: &str| name != NO_ARGUMENTS && properties.is_some_and(|known| known.contains_key(name));
    if let Some(unknown) = arguments.keys().find(|name| !is_known(name)) {
        return Err(format!("names \"{unknown}\", which is not an argument of the tool"));
    }
    let required = parameters.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    match required.into_iter().find(|name| *name != NO_ARGUMENTS && !arguments.contains_key(*name)) {
        Some(missing) => Err(format!("must name \"{missing}\", which the tool requires")),
        None => Ok(()),
    }
}

/// The arguments that identify an effect, in one form however a model writes them: without null, empty and dummy
/// arguments, with trimmed texts, `3.0` as `3`. The order of names never counts. Within an argument null and empty are
/// values: to a service they may mean "delete this".
pub fn significant(arguments: &Map<String, Value>) -> Map<String, Value> {
    let named = arguments.iter().filter(|(name, _)| *name != NO_ARGUMENTS);
    named.map(|(name, value)| (name.clone(), respelled(value))).filter(|(_, value)| !is_empty(value)).collect()
}

fn respelled(value: &Value) -> Value {
    match value {
        Value::Null | Value::Bool(_) => value.clone(),
        Value::Number(number) => number.as_f64().and_then(whole).map_or_else(|| value.clone(), Value::from),
        Value::String(text) => text.trim().into(),
        Value::Array(items) => items.iter().map(respelled).collect(),
        Value::Object(members) => members.iter().map(|(name, value)| (name.clone(), respelled(value))).collect(),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// A whole number written with a decimal point, as some models do.
pub(crate) fn whole(float: f64) -> Option<i64> {
    (float.fract() == 0.0 && float.abs() < 9e15).then(|| format!("{float:.0}").parse().ok()).flatten()
}

/// An argument with this value counts as absent, unless it [`takes_null`].
pub fn is_absent(value: &Value) -> bool {
    value.is_null() || value.as_str().is_some_and(str::is_empty)
}

pub fn takes_null(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_array).is_some_and(|types| types.iter().any(|kind| kind == "null"))
}

fn object(
    schema: &Value,
    given: &Map<String, Value>,
    path: &str,
    ignored: &mut Vec<String>,
) -> Result<Map<String, Value>, String> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        // An object without declared properties is free-form.
        return Ok(given.clone());
    };
    let mut checked = Map::new();
    let mut wrong: Option<String> = None;
    for (name, value) in given {
        if path.is_empty() && name == NO_ARGUMENTS {
            continue;
        }
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        match properties.get(name) {
            None => ignored.push(path),
            Some(property) if is_absent(value) && !takes_null(property) => {}
            Some(property) => match one(property, value, &path, ignored) {
                Ok(value) => {
                    checked.insert(name.clone(), value);
                }
                // The check continues, so that all unknown names are reported too.
                Err(sentence) => {
                    wrong.get_or_insert(sentence);
                }
            },
        }
    }
    if let Some(sentence) = wrong {
        return Err(sentence);
    }
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    for name in required {
        if !checked.contains_key(name) {
            let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
            return Err(format!("The argument \"{path}\" is missing; ask for it and call the tool again."));
        }
    }
    Ok(checked)
}

fn one(schema: &Value, value: &Value, path: &str, ignored: &mut Vec<String>) -> Result<Value, String> {
    let wrong = |must: &str| Err(format!("The argument \"{path}\" must be {must}, not {}.", kind(value)));
    let types = schema.get("type").unwrap_or(&Value::Null);
    if types.is_array() {
        // A choice of types, of built-in tools: any value.
        return Ok(value.clone());
    }
    match (types.as_str().unwrap_or("string"), value) {
        ("string", Value::String(text)) => string(schema, text, path).map(|()| value.clone()),
        ("string", _) => wrong("text"),
        ("integer", Value::Number(number)) if number.is_i64() || number.is_u64() => Ok(value.clone()),
        ("integer", Value::Number(number)) => {
            let number = number.as_f64().and_then(whole).map(Value::from);
            number.ok_or_else(|| format!("The argument \"{path}\" must be a whole number."))
        }
        ("integer", _) => wrong("a whole number"),
        ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => Ok(value.clone()),
        ("number", _) => wrong("a number"),
        ("boolean", _) => wrong("true or false"),
        ("array", Value::Array(items)) => {
            let Some(schema) = schema.get("items") else { return Ok(value.clone()) };
            let items =
                items.iter().enumerate().map(|(index, item)| one(schema, item, &format!("{path}[{index}]"), ignored));
            items.collect::<Result<Vec<_>, _>>().map(Value::Array)
        }
        ("array", _) => wrong("a list"),
        ("object", Value::Object(members)) => object(schema, members, path, ignored).map(Value::Object),
        ("object", _) => wrong("an object"),
        _ => Ok(value.clone()),
    }
}

fn string(schema: &Value, text: &str, path: &str) -> Result<(), String> {
    let allowed: Vec<&str> =
        schema.get("enum").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    if !allowed.is_empty() && !allowed.contains(&text) {
        return Err(format!("The argument \"{path}\" must be one of {}.", allowed.join(", ")));
    }
    if let Some(pattern) = schema.get("pattern").and_then(Value::as_str) {
        let matches = regex_lite::Regex::new(pattern).map_or(true, |pattern| pattern.is_match(text));
        if !matches {
            return Err(format!("The argument \"{path}\" must match the pattern {pattern}."));
        }
    }
    match schema.get("format").and_then(Value::as_str) {
        Some(format) if !format::has(format, text) => {
            Err(format!("The argument \"{path}\" must be a valid {format}{}.", format::example(format)))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "text": {"type": "string"},
                "count": {"type": "integer"},
                "kind": {"type": "string", "enum": ["a", "b"]},
                "at": {"type": "string", "format": "date-time"},
                "code": {"type": "string", "pattern": "^[A-Z]{3}$"},
                "party": {"type": "object", "properties": {"adults": {"type": "integer"}}, "required": ["adults"]},
                "tags": {"type": "array", "items": {"type": "string"}},
                "free": {"type": "object"},
            },
            "required": ["text"],
        })
    }

    #[expect(clippy::needless_pass_by_value, reason = "reads better at the call")]
    fn check(arguments: Value) -> Result<Checked, String> {
        super::check(&schema(), arguments.as_object().unwrap())
    }

    #[test]
    fn extra_keys_are_dropped_and_reported() {
        let checked =
            check(json!({"text": "hi", "secret": 1, "party": {"adults": 2, "x": 3}, "free": {"y": 1}})).unwrap();
        assert_eq!(Value::Object(checked.arguments), json!({"text": "hi", "party": {"adults": 2}, "free": {"y": 1}}));
        assert_eq!(checked.ignored, ["party.x", "secret"]);
    }

    #[test]
    fn an_empty_optional_argument_is_absent() {
        let checked = check(json!({"text": "hi", "kind": "", "count": null})).unwrap();
        assert_eq!(Value::Object(checked.arguments), json!({"text": "hi"}));
        assert!(checked.ignored.is_empty());
    }

    #[test]
    fn null_and_empty_text_are_values_where_the_type_lists_null() {
        let schema =
            json!({"type": "object", "properties": {"value": {"type": ["string", "null"]}, "key": {"type": "string"}}});
        for value in [json!(null), json!("")] {
            let given = json!({"value": value, "key": value});
            let checked = super::check(&schema, given.as_object().unwrap()).unwrap();
            assert_eq!(Value::Object(checked.arguments), json!({"value": value}));
        }
    }

    #[test]
    fn a_wrong_argument_is_named_in_a_sentence() {
        for (arguments, named) in [
            (json!({}), "\"text\" is missing"),
            (json!({"text": ""}), "\"text\" is missing"),
            (json!({"text": 5}), "\"text\" must be text, not a number"),
            (json!({"text": "x", "count": "5"}), "\"count\" must be a whole number, not text"),
            (json!({"text": "x", "count": 1.5}), "\"count\" must be a whole number"),
            (json!({"text": "x", "kind": "c"}), "\"kind\" must be one of a, b"),
            (json!({"text": "x", "at": "tomorrow"}), "\"at\" must be a valid date-time"),
            (json!({"text": "x", "code": "ab"}), "\"code\" must match"),
            (json!({"text": "x", "party": {}}), "\"party.adults\" is missing"),
            (json!({"text": "x", "tags": ["a", 1]}), "\"tags[1]\" must be text"),
            (json!({"text": "x", "tags": "a"}), "\"tags\" must be a list"),
        ] {
            let sentence = check(arguments).unwrap_err();
            assert!(sentence.contains(named), "{sentence}");
        }
    }

    #[test]
    fn missing_and_unknown_arguments_are_reported_together() {
        let sentence = check(json!({"message": "hi", "party": {"people": 2, "adults": 1}})).unwrap_err();
        assert_eq!(
            sentence,
            "The argument \"text\" is missing; ask for it and call the tool again. \
             The tool has no argument \"message\", \"party.people\"."
        );
        let sentence = check(json!({"text": 5, "zzz": "hi"})).unwrap_err();
        assert!(sentence.contains("\"text\" must be text") && sentence.contains("no argument \"zzz\""), "{sentence}");
        let many: Value = (0..9).map(|n| (format!("{n}{}", "x".repeat(500)), json!(n))).collect::<Map<_, _>>().into();
        assert!(check(many).unwrap_err().len() <= LONGEST_SENTENCE);
    }

    #[test]
    fn a_whole_number_may_be_written_with_a_point() {
        assert_eq!(check(json!({"text": "x", "count": 3.0})).unwrap().arguments["count"], json!(3));
    }

    proptest! {
        #[test]
        fn nothing_undeclared_gets_through(names in prop::collection::btree_set("[a-z]{1,6}", 0..8)) {
            let mut given: Map<String, Value> = names.iter().map(|name| (name.clone(), json!("v"))).collect();
            given.insert("text".into(), json!("hi"));
            if let Ok(checked) = super::check(&schema(), &given) {
                let schema = schema();
                for name in checked.arguments.keys() {
                    prop_assert!(schema["properties"].get(name).is_some());
                }
                prop_assert_eq!(checked.arguments.len() + checked.ignored.len(), given.len());
            }
        }
    }
}
