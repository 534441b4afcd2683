//! The part of Liquid that tool definitions use: `{{ path.to.value }}`, `{{ "text" }}` and a few filters.
//!
//! As in VAPI, an undefined variable is empty text. Tags and other filters are errors, not guesses.

use serde_json::{Map, Value};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("Liquid without a closing bracket: {0}")]
    Unclosed(String),
    #[error("this stand-in knows no Liquid tags: {0}")]
    Tag(String),
    #[error("this stand-in does not know the Liquid filter `{0}`")]
    Filter(String),
}

/// Renders every `{{ … }}` of a text.
pub(super) fn render(template: &str, variables: &Map<String, Value>) -> Result<String, Error> {
    let mut rendered = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(start) = rest.find(['{']) {
        let (before, from) = rest.split_at(start);
        rendered.push_str(before);
        if let Some(inside) = from.strip_prefix("{{") {
            let (expression, after) = inside.split_once("}}").ok_or_else(|| Error::Unclosed(from.to_owned()))?;
            rendered.push_str(&output(expression, variables)?);
            rest = after;
        } else if from.starts_with("{%") {
            return Err(Error::Tag(from.to_owned()));
        } else {
            rendered.push('{');
            rest = from.strip_prefix('{').unwrap_or_default();
        }
    }
    rendered.push_str(rest);
    Ok(rendered)
}

/// Renders every text of a value; keys stay unchanged.
pub(super) fn render_value(value: &Value, variables: &Map<String, Value>) -> Result<Value, Error> {
    Ok(match value {
        Value::String(text) => Value::String(render(text, variables)?),
        Value::Array(items) => {
            Value::Array(items.iter().map(|item| render_value(item, variables)).collect::<Result<_, _>>()?)
        }
        Value::Object(object) => Value::Object(
            object
                .iter()
                .map(|(key, item)| Ok((key.clone(), render_value(item, variables)?)))
                .collect::<Result<_, Error>>()?,
        ),
        other => other.clone(),
    })
}

fn output(expression: &str, variables: &Map<String, Value>) -> Result<String, Error> {
    let expression = expression.trim_matches(['-', ' ', '\t', '\n', '\r']);
    let mut parts = split_outside_quotes(expression, '|').into_iter();
    let mut value = operand(parts.next().unwrap_or_default().trim(), variables);
    for filter in parts {
        let (name, argument) = filter.split_once(':').map_or((filter, ""), |(name, argument)| (name, argument));
        let argument = operand(argument.trim(), variables);
        value = match name.trim() {
            "default" if value.is_empty() => argument,
            "default" => value,
            "upcase" => value.to_uppercase(),
            "downcase" => value.to_lowercase(),
            "strip" => value.trim().to_owned(),
            "append" => value + &argument,
            "prepend" => argument + &value,
            "url_encode" => url::form_urlencoded::byte_serialize(value.as_bytes()).collect(),
            unknown => return Err(Error::Filter(unknown.to_owned())),
        };
    }
    Ok(value)
}

fn operand(text: &str, variables: &Map<String, Value>) -> String {
    for quote in ['"', '\''] {
        if let Some(literal) = text.strip_prefix(quote).and_then(|text| text.strip_suffix(quote)) {
            return literal.to_owned();
        }
    }
    if text.parse::<f64>().is_ok() {
        return text.to_owned();
    }
    let mut steps = text.split('.').map(str::trim);
    let first = steps.next().and_then(|step| variables.get(step));
    let found = steps.fold(first, |value, step| match value? {
        Value::Object(object) => object.get(step),
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        _ => None,
    });
    match found {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

fn split_outside_quotes(text: &str, separator: char) -> Vec<&str> {
    let mut quote = None;
    text.split(move |character: char| {
        match quote {
            Some(open) if character == open => quote = None,
            None if character == '"' || character == '\'' => quote = Some(character),
            _ => {}
        }
        quote.is_none() && character == separator
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::{Error, render, render_value};

    fn variables() -> Map<String, Value> {
        let bag = json!({ "customer": { "number": "+15550100001" }, "list": ["a", "b"], "size": 3, "nothing": null });
        bag.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn paths_texts_and_filters_resolve() {
        for (template, expected) in [
            ("{{ customer.number }}", "+15550100001"),
            ("{{customer.number}}", "+15550100001"),
            ("{{- customer.number -}}", "+15550100001"),
            ("call {{ customer.number }} or {{ list.1 }}", "call +15550100001 or b"),
            ("{{ size }}", "3"),
            ("{{ customer }}", "{\"number\":\"+15550100001\"}"),
            ("{{ missing.number }}", ""),
            ("{{ nothing }}", ""),
            ("{{ missing | default: 'none | yet' }}", "none | yet"),
            ("{{ 'a' | append: customer.number | upcase }}", "A+15550100001"),
            ("{\"json\": {\"stays\": 1}}", "{\"json\": {\"stays\": 1}}"),
            ("", ""),
        ] {
            assert_eq!(render(template, &variables()).as_deref(), Ok(expected), "{template}");
        }
    }

    #[test]
    fn an_unknown_variable_is_an_error() {
        assert!(matches!(render("{{ size | date: '%Y' }}", &variables()), Err(Error::Filter(name)) if name == "date"));
        assert!(matches!(render("{% if a %}", &variables()), Err(Error::Tag(_))));
        assert!(matches!(render("a {{ size", &variables()), Err(Error::Unclosed(_))));
    }

    #[test]
    fn values_resolve_at_every_depth() {
        let value = json!({ "a": ["{{ size }}", 1, { "b": "{{ customer.number }}" }], "{{ size }}": true });
        let expected = json!({ "a": ["3", 1, { "b": "+15550100001" }], "{{ size }}": true });
        assert_eq!(render_value(&value, &variables()), Ok(expected));
    }
}
