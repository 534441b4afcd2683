//! The delivery of a background tool's result.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::ToolId;
use crate::{cut::cut, names::Names, placeholder::Placeholder};

/// Bytes of a value within a text.
const LONGEST_VALUE: usize = 1_200;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, Names)]
#[serde(rename_all = "snake_case")]
pub enum AsyncResult {
    #[default]
    Speak,
    /// The model is told, and says nothing for now.
    Note,
    None,
}

impl AsyncResult {
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The tool that sends a result, if the call is over before it is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IfCallOver {
    pub tool: ToolId,
    /// Texts may hold `{{result}}` and `{{result.field}}`. Empty: `text` is the label and the result.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub arguments: Map<String, Value>,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the result has no {0}")]
pub struct NotInResult(String);

impl IfCallOver {
    pub const MOST_ARGUMENTS: usize = 20;

    /// The arguments as configured, or their default.
    pub fn templates(&self, label: &str) -> Map<String, Value> {
        if !self.arguments.is_empty() {
            return self.arguments.clone();
        }
        let text = format!("{}: {{{{result}}}}", label.replace("{{", "{ {"));
        Map::from_iter([("text".to_owned(), json!(text))])
    }

    /// The same with the result filled in. Without configured arguments an empty result leaves the label.
    ///
    /// # Errors
    /// A field that the result lacks.
    pub fn filled(&self, label: &str, result: &Value) -> Result<Self, NotInResult> {
        if self.arguments.is_empty() && (result.is_null() || result == "") {
            let arguments = Map::from_iter([("text".to_owned(), json!(label))]);
            return Ok(Self { tool: self.tool, arguments });
        }
        let filled = self.templates(label).into_iter();
        let arguments = filled.map(|(name, template)| Ok((name, fill(&template, result)?)));
        Ok(Self { tool: self.tool, arguments: arguments.collect::<Result<_, NotInResult>>()? })
    }

    /// The first placeholder that is not about the result.
    pub fn unknown_placeholder(&self) -> Option<String> {
        self.arguments.values().find_map(unknown_placeholder)
    }
}

fn unknown_placeholder(template: &Value) -> Option<String> {
    match template {
        Value::String(text) => {
            let mut rest = text.as_str();
            while let Some(Placeholder { closed: Some((inside, beyond)), .. }) = Placeholder::first_in(rest) {
                if path(inside).is_none() {
                    return Some(inside.trim().to_owned());
                }
                rest = beyond;
            }
            None
        }
        Value::Array(items) => items.iter().find_map(unknown_placeholder),
        Value::Object(members) => members.values().find_map(unknown_placeholder),
        _ => None,
    }
}

fn fill(template: &Value, result: &Value) -> Result<Value, NotInResult> {
    Ok(match template {
        Value::String(text) => match Placeholder::only_placeholder_in(text).and_then(path) {
            Some(steps) => value_at(result, steps)?.clone(),
            None => Value::String(fill_text(text, result)?),
        },
        Value::Array(items) => items.iter().map(|item| fill(item, result)).collect::<Result<_, _>>()?,
        Value::Object(members) => {
            let members = members.iter().map(|(name, member)| Ok((name.clone(), fill(member, result)?)));
            Value::Object(members.collect::<Result<_, NotInResult>>()?)
        }
        other => other.clone(),
    })
}

fn fill_text(text: &str, result: &Value) -> Result<String, NotInResult> {
    let (mut filled, mut rest) = (String::new(), text);
    while let Some(Placeholder { before, closed: Some((inside, beyond)), .. }) = Placeholder::first_in(rest) {
        filled.push_str(before);
        if let Some(steps) = path(inside) {
            match value_at(result, steps)? {
                Value::Null if steps.is_empty() => return Err(NotInResult("value".to_owned())),
                Value::Null => return Err(NotInResult(steps.to_owned())),
                Value::String(text) => filled.push_str(&cut(text.clone(), LONGEST_VALUE)),
                value => filled.push_str(&cut(value.to_string(), LONGEST_VALUE)),
            }
        }
        rest = beyond;
    }
    filled.push_str(rest);
    Ok(filled)
}

/// The steps into the result: none for `result`, `field` for `result.field`.
fn path(inside: &str) -> Option<&str> {
    let rest = inside.trim().strip_prefix("result")?;
    if rest.is_empty() { Some("") } else { rest.strip_prefix('.').filter(|steps| !steps.split('.').any(str::is_empty)) }
}

fn value_at<'a>(result: &'a Value, steps: &str) -> Result<&'a Value, NotInResult> {
    let mut steps_in = steps.split('.').filter(|step| !step.is_empty());
    let found = steps_in.try_fold(result, |value, step| match value {
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        other => other.get(step),
    });
    found.ok_or_else(|| NotInResult(steps.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after_call(arguments: &Value) -> IfCallOver {
        serde_json::from_value(json!({"tool": "01930f5e-6a1b-7c2d-8e3f-4a5b6c7d8e9f", "arguments": arguments})).unwrap()
    }

    #[test]
    fn the_result_takes_the_place_of_its_placeholders() {
        let result = json!({"state": "shipped", "parcels": [{"weight": 3}], "{{result.state}}": 1});
        let config = after_call(&json!({
            "text": "It is {{ result.state }}: {{result.parcels.0.weight}} kg, {{result.parcels}}",
            "count": "{{result.parcels.0.weight}}",
            "list": [7, "{{result.state}}"],
        }));
        let filled = config.filled("Order", &result).unwrap();
        let expected = json!({"text": "It is shipped: 3 kg, [{\"weight\":3}]", "count": 3, "list": [7, "shipped"]});
        assert_eq!(Value::Object(filled.arguments), expected);
        assert_eq!(config.unknown_placeholder(), None);
    }

    #[test]
    fn the_default_is_a_text_of_label_and_result() {
        let filled = after_call(&json!({})).filled("{{result}}", &json!("{{result.x}}")).unwrap();
        assert_eq!(Value::Object(filled.arguments), json!({"text": "{ {result}}: {{result.x}}"}));
        for nothing in [json!(null), json!("")] {
            let filled = after_call(&json!({})).filled("Order", &nothing).unwrap();
            assert_eq!(Value::Object(filled.arguments), json!({"text": "Order"}));
        }
        let alone = after_call(&json!({"note": "{{result.x}}"})).filled("Order", &json!({"x": null})).unwrap();
        assert_eq!(Value::Object(alone.arguments), json!({"note": null}));
    }

    #[test]
    fn a_missing_field_and_a_foreign_placeholder_are_named() {
        let lacks = |text: &str, result: Value| after_call(&json!({"text": text})).filled("Order", &result).err();
        assert_eq!(lacks("{{result.state}}", json!("shipped")), Some(NotInResult("state".into())));
        assert_eq!(lacks("It is {{result.state}}", json!({"state": null})), Some(NotInResult("state".into())));
        assert_eq!(lacks("It is {{result}}", json!(null)), Some(NotInResult("value".into())));
        for foreign in ["{{now}}", "{{results}}", "{{result.}}", "{{result..a}}", "{{}}"] {
            assert!(after_call(&json!({"text": ["Hi", foreign]})).unknown_placeholder().is_some(), "{foreign}");
        }
    }
}
