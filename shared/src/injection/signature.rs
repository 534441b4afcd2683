//! TypeScript signatures of tools, and their arguments as models write them.

use serde_json::{Map, Value};

use crate::tool::{Bound, NotBound, ParameterSpec, ToolSpec, Toolbox, arguments::takes_null, is_identifier};

/// `wget(uri: string, timeoutMs?: number): string`. If a parameter's name is no identifier, the tool takes one object.
pub(super) fn signature(spec: &ToolSpec) -> String {
    let named = spec.parameters.iter().any(|parameter| !is_identifier(parameter.name));
    let declared = spec.parameters.iter().map(|one| declaration(one.name, one.schema, one.required));
    let parameters = declared.collect::<Vec<_>>().join(", ");
    let parameters = if named { format!("arguments: {{{parameters}}}") } else { parameters };
    format!("{}({parameters}): {}", spec.name, typescript(&spec.returns))
}

/// Binds arguments given in order or in one object; `null` means absent, unless the parameter takes it.
///
/// # Errors
/// The mistake and the signature.
pub(super) fn bind<'a>(toolbox: &'a Toolbox, spec: &ToolSpec, given: Vec<Value>) -> Result<Bound<'a>, String> {
    let bound = by_name(spec, given).and_then(|mut arguments| {
        // The toolbox treats empty text as absent, as voice calls need it. Here the model wrote it on purpose, so it is checked
        // like any text.
        let empty: Vec<&str> =
            spec.parameters.iter().filter(|one| may_be_empty(one, &arguments)).map(|one| one.name).collect();
        arguments.extend(empty.iter().map(|name| ((*name).to_owned(), "any".into())));
        let mut bound = toolbox.check(&spec.name, &arguments).map_err(|not_bound| match not_bound {
            NotBound::Unknown(sentence) | NotBound::Invalid(sentence) => sentence,
        })?;
        bound.arguments.extend(empty.iter().map(|name| ((*name).to_owned(), "".into())));
        Ok(bound)
    });
    bound.map_err(|wrong| format!("{wrong} The signature is {}.", signature(spec)))
}

/// Whether a required parameter of type text, without further restrictions, was given as empty text.
fn may_be_empty(parameter: &ParameterSpec<'_>, arguments: &Map<String, Value>) -> bool {
    let schema = parameter.schema.as_object();
    let is_any_text = schema.is_some_and(|schema| {
        schema.get("type").is_some_and(|kind| kind == "string")
            && schema.keys().all(|key| matches!(&key[..], "type" | "description" | "title" | "examples"))
    });
    parameter.required && is_any_text && arguments.get(parameter.name).is_some_and(|value| value == "")
}

fn by_name(spec: &ToolSpec, given: Vec<Value>) -> Result<Map<String, Value>, String> {
    let mut arguments = match <[Value; 1]>::try_from(given) {
        Ok([Value::Object(object)]) if takes_as_named(spec, &object) => object,
        Ok([one]) => in_order(spec, vec![one])?,
        Err(given) => in_order(spec, given)?,
    };
    let takes_null = |name: &str| spec.parameters.get(name).is_some_and(|parameter| takes_null(parameter.schema));
    arguments.retain(|name, value| !value.is_null() || takes_null(name));
    let unknown = arguments.keys().filter(|name| spec.parameters.get(name).is_none());
    let unknown: Vec<String> = unknown.map(|name| format!("\"{name}\"")).collect();
    if !unknown.is_empty() {
        return Err(format!("There is no parameter {}.", unknown.join(", ")));
    }
    match spec.parameters.iter().find(|parameter| parameter.required && !arguments.contains_key(parameter.name)) {
        Some(missing) => Err(format!("The argument \"{}\" is missing.", missing.name)),
        None => Ok(arguments),
    }
}

/// Whether a single object holds the arguments by name. If the first parameter may be an object, all members must be names of
/// parameters.
fn takes_as_named(spec: &ToolSpec, object: &Map<String, Value>) -> bool {
    let first = spec.parameters.iter().next();
    let first_is_object = first.is_some_and(|first| first.schema.get("type").is_none_or(|kind| kind == "object"));
    !first_is_object || (!object.is_empty() && object.keys().all(|name| spec.parameters.get(name).is_some()))
}

fn in_order(spec: &ToolSpec, given: Vec<Value>) -> Result<Map<String, Value>, String> {
    if given.len() > spec.parameters.len() {
        let (most, given) = (spec.parameters.len(), given.len());
        return Err(format!("There are {given} arguments, and at most {most} can be given."));
    }
    Ok(spec.parameters.iter().map(|parameter| parameter.name.to_owned()).zip(given).collect())
}

fn declaration(name: &str, schema: &Value, required: bool) -> String {
    let name = if is_identifier(name) { name.to_owned() } else { Value::from(name).to_string() };
    format!("{name}{}: {}", if required { "" } else { "?" }, typescript(schema))
}

fn typescript(schema: &Value) -> String {
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return values.iter().map(Value::to_string).collect::<Vec<_>>().join(" | ");
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("string") => "string".into(),
        Some("number" | "integer") => "number".into(),
        Some("boolean") => "boolean".into(),
        Some("array") => {
            let item = schema.get("items").map_or_else(|| "any".into(), typescript);
            if item.contains(' ') { format!("({item})[]") } else { format!("{item}[]") }
        }
        Some("object") => match schema.get("properties").and_then(Value::as_object) {
            Some(properties) if !properties.is_empty() => {
                let required = schema.get("required").and_then(Value::as_array);
                let is_required =
                    |name: &str| required.is_some_and(|names| names.iter().any(|required| required == name));
                let members = properties.iter().map(|(name, schema)| declaration(name, schema, is_required(name)));
                format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
            }
            _ => "object".into(),
        },
        _ => "any".into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        injection::testing::{tool, toolbox},
        tool::Parameters,
    };

    fn with(name: &str, parameters: Parameters) -> ToolSpec {
        tool(name).with(|spec| spec.parameters = parameters).spec
    }

    fn order() -> ToolSpec {
        let guest = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
        let parameters = Parameters::new([
            ("item", json!({"type": "string", "enum": ["tea", "cake"]}), true),
            ("count", json!({"type": "integer"}), false),
            ("guests", json!({"type": "array", "items": guest}), false),
        ]);
        with("order", parameters)
    }

    fn bound(spec: &ToolSpec, given: Vec<Value>) -> Result<Value, String> {
        let parameters = spec.parameters.clone();
        let tools = toolbox([tool(&spec.name).with(|own| own.parameters = parameters)]);
        bind(&tools, spec, given).map(|bound| Value::Object(bound.arguments))
    }

    #[test]
    fn a_signature_has_names_types_and_optional_parameters() {
        assert_eq!(
            signature(&order()),
            r#"order(item: "tea" | "cake", count?: number, guests?: ({name: string})[]): string"#
        );
        let odd = with("odd", Parameters::new([("x-y", json!({"type": "boolean"}), false)]));
        assert_eq!(signature(&odd), r#"odd(arguments: {"x-y"?: boolean}): string"#);
    }

    #[test]
    fn arguments_come_in_order_or_by_name() {
        let expected = json!({"item": "tea", "count": 2});
        for given in [
            vec![json!("tea"), json!(2)],
            vec![json!({"item": "tea", "count": 2})],
            vec![json!("tea"), json!(2.0), Value::Null],
            vec![json!({"item": "tea", "count": 2, "guests": null})],
        ] {
            assert_eq!(bound(&order(), given).unwrap(), expected);
        }
    }

    #[test]
    fn null_is_a_value_where_the_type_lists_it() {
        let value = json!({"type": ["string", "null"]});
        let keep = with("keep", Parameters::new([("key", json!({"type": "string"}), true), ("value", value, false)]));
        for value in [json!(null), json!("")] {
            let expected = json!({"key": "k", "value": value});
            assert_eq!(bound(&keep, vec![json!("k"), value]).unwrap(), expected);
        }
    }

    #[test]
    fn an_object_is_the_first_parameter_where_that_takes_one() {
        let parameters = [("record", json!({"type": "object"}), true), ("dry", json!({"type": "boolean"}), false)];
        let save = with("save", Parameters::new(parameters));
        let bound = |given| bound(&save, given).unwrap();
        assert_eq!(bound(vec![json!({"a": 1})]), json!({"record": {"a": 1}}));
        assert_eq!(bound(vec![json!({"record": {"a": 1}, "dry": true})]), json!({"record": {"a": 1}, "dry": true}));
    }

    #[test]
    fn a_wrong_argument_is_told_with_the_signature() {
        for (given, wrong) in [
            (vec![], "\"item\" is missing"),
            (vec![json!({"count": 1})], "\"item\" is missing"),
            (vec![json!("beer")], "must be one of tea, cake"),
            (vec![json!("tea"), json!("two")], "\"count\" must be a whole number, not text"),
            (vec![json!("tea"), json!(1), json!([]), json!(4)], "There are 4 arguments, and at most 3"),
            (vec![json!({"item": "tea", "colour": "green"})], "no parameter \"colour\""),
            (vec![json!({"item": "tea", "guests": [{"name": "Ana", "age": 3}]})], "no member guests[0].age"),
        ] {
            let sentence = bound(&order(), given).unwrap_err();
            assert!(sentence.contains(wrong) && sentence.contains("The signature is order(item: "), "{sentence}");
        }
    }
}
