//! The mode of a parameter: fixed by the author, filled in by the model, or both.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{
    schema,
    variables::{self, Encoding, Unknown},
};
use crate::{
    error::Problems,
    fields::{Fields, kind},
    tool::Conversation,
};

const LONGEST_PROMPT: usize = 1_000;
/// Nesting within a fixed value.
const DEEPEST: usize = 20;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "mode", rename_all = "snake_case")]
pub enum Parameter {
    /// `{"mode": "fixed", "value": …, "secret"?}`: set by the author, hidden from the model, always used.
    Fixed {
        value: Value,
        /// Overrides the rule that decides by name whether the value is a secret.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        secret: Option<bool>,
    },
    /// `{"mode": "ai", "prompt", "schema"?, "required"?}`: filled in by the model.
    Ai {
        prompt: String,
        #[serde(default)]
        schema: Map<String, Value>,
        #[serde(default = "yes")]
        required: bool,
    },
    /// `{"mode": "array_extendable", "fixedValues", "aiExtension": {"enabled", "prompt", "required"}}`: the author's and the
    /// model's values, without duplicates.
    ArrayExtendable {
        #[serde(rename = "fixedValues", default)]
        fixed: Vec<Value>,
        #[serde(rename = "aiExtension", default)]
        extension: Extension,
        /// The type of an item, if the action declares it; otherwise that of the fixed values.
        #[serde(skip)]
        declared_item: Option<&'static str>,
    },
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Extension {
    pub enabled: bool,
    /// Set if enabled, like `required`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
}

const fn yes() -> bool {
    true
}

impl Parameter {
    pub(super) const fn fixed(value: Value) -> Self {
        Self::Fixed { value, secret: None }
    }

    /// Parses a parameter; text or a list alone is short for a fixed value.
    pub fn parse(value: &Value, path: String, problems: &mut Problems) -> Option<Self> {
        if value.is_string() || value.is_array() {
            return Some(Self::fixed(value.clone()));
        }
        let mut fields = Fields::of(value, path, problems)?;
        let parameter = match fields.required_text("mode", 40).as_deref() {
            Some("fixed") => {
                let path = fields.path("value");
                let secret = fields.get("secret").map(|_| fields.boolean("secret", false));
                fields.required("value").cloned().map(|value| {
                    check_storable(&value, &path, 0, fields.problems());
                    Self::Fixed { value, secret }
                })
            }
            Some("ai") => Self::parse_ai(&mut fields),
            Some("array_extendable") => Self::parse_array(&mut fields),
            Some(_) => {
                fields.problem("mode", "must be one of fixed, ai, array_extendable");
                return None;
            }
            None => return None,
        };
        fields.finish();
        parameter
    }

    fn parse_ai(fields: &mut Fields<'_>) -> Option<Self> {
        let prompt = fields.required_text("prompt", LONGEST_PROMPT);
        let mut required = fields.boolean("required", true);
        let mut declared = match fields.get("schema") {
            None => Map::new(),
            Some(Value::Object(schema)) => schema.clone(),
            Some(other) => {
                fields.problem("schema", format!("must be an object, not {}", kind(other)));
                return None;
            }
        };
        // In an object schema `required` lists names; a boolean concerns the parameter itself.
        if let Some(Value::Bool(own)) = declared.get("required") {
            required = *own;
            declared.remove("required");
        }
        declared.entry("type").or_insert_with(|| "string".into());
        let path = fields.path("schema");
        schema::check_declared(&declared, &path, fields.problems());
        // A missing prompt is reported already; continue to find further mistakes.
        Some(Self::Ai { prompt: prompt.unwrap_or_default(), schema: declared, required })
    }

    fn parse_array(fields: &mut Fields<'_>) -> Option<Self> {
        let fixed = fields.list("fixedValues", "values").unwrap_or_default();
        let path = fields.path("fixedValues");
        for (index, value) in fixed.iter().enumerate() {
            check_storable(value, &format!("{path}[{index}]"), 0, fields.problems());
        }
        let path = fields.path("aiExtension");
        let extension = match fields.get("aiExtension") {
            None => Extension::default(),
            Some(value) => {
                let mut extension = Fields::of(value, path, fields.problems())?;
                let enabled = extension.boolean("enabled", false);
                let prompt = if enabled {
                    extension.required_text("prompt", LONGEST_PROMPT)
                } else {
                    extension.text("prompt", LONGEST_PROMPT)
                };
                let required = extension.boolean("required", false);
                extension.finish();
                Extension { enabled, prompt: prompt.filter(|_| enabled), required: enabled.then_some(required) }
            }
        };
        if fixed.is_empty() && !extension.enabled {
            fields.problem("fixedValues", "must hold at least one value unless aiExtension is enabled");
        }
        Some(Self::ArrayExtendable { fixed: fixed.to_vec(), extension, declared_item: None })
    }

    pub fn property(&self) -> Option<(Value, bool)> {
        match self {
            Self::Fixed { .. } | Self::ArrayExtendable { extension: Extension { enabled: false, .. }, .. } => None,
            Self::Ai { prompt, schema, required } => {
                let mut property = schema.clone();
                property.insert("description".into(), variables::to_liquid(prompt).into());
                Some((Value::Object(property), *required))
            }
            Self::ArrayExtendable { fixed, extension: Extension { prompt, required, .. }, declared_item } => {
                let description = variables::to_liquid(prompt.as_deref().unwrap_or_default());
                let item = declared_item.or_else(|| common_type(fixed)).unwrap_or("string");
                let property = json!({"type": "array", "items": {"type": item}, "description": description});
                Some((property, *required == Some(true)))
            }
        }
    }

    pub fn hidden(&self) -> Option<Value> {
        match self {
            Self::Fixed { value, .. } => Some(value.clone()),
            Self::Ai { .. } => None,
            Self::ArrayExtendable { fixed, .. } => Some(Value::Array(fixed.clone())),
        }
    }

    pub fn needs_model(&self) -> bool {
        self.property().is_some_and(|(_, required)| required)
    }

    /// The value at execution: the fixed one with variables filled in, the model's, or both without duplicates. `None`: the model
    /// left out an optional one.
    ///
    /// # Errors
    /// [`Unknown`] if a variable has no value in this conversation.
    pub fn value(
        &self,
        from_model: Option<&Value>,
        conversation: &Conversation,
        encoding: Encoding,
    ) -> Result<Option<Value>, Unknown> {
        match self {
            Self::Fixed { value, .. } => variables::fill(value, conversation, encoding).map(Some),
            Self::Ai { .. } => Ok(from_model.cloned()),
            Self::ArrayExtendable { fixed, extension, .. } => {
                let mut united: Vec<Value> = Vec::new();
                let added = from_model.filter(|_| extension.enabled).and_then(Value::as_array).into_iter().flatten();
                for value in fixed {
                    push_once(&mut united, variables::fill(value, conversation, encoding)?);
                }
                for value in added {
                    push_once(&mut united, value.clone());
                }
                Ok(Some(Value::Array(united)))
            }
        }
    }
}

/// Checks that DynamoDB can store a value: no empty names, at most 32 levels in all, numbers from 1e-130 to 9.9e125.
pub(super) fn check_storable(value: &Value, path: &str, depth: usize, problems: &mut Problems) {
    if depth > DEEPEST {
        problems.add(path, format!("is nested more than {DEEPEST} levels deep"));
        return;
    }
    match value {
        Value::Number(number) => {
            let size = number.as_f64().map_or(0.0, f64::abs);
            if size != 0.0 && !(1e-130..=9.9e125).contains(&size) {
                problems.add(path, "is a number too large or too small to be stored");
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                check_storable(item, &format!("{path}[{index}]"), depth + 1, problems);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                if name.is_empty() {
                    problems.add(path, "has a member without a name");
                }
                check_storable(member, &format!("{path}.{name}"), depth + 1, problems);
            }
        }
        _ => {}
    }
}

/// The JSON Schema type of all values but lists.
fn common_type(values: &[Value]) -> Option<&'static str> {
    let are = |is: fn(&Value) -> bool| !values.is_empty() && values.iter().map(unlabelled).all(is);
    if are(|value| value.is_i64() || value.is_u64()) {
        Some("integer")
    } else if are(Value::is_number) {
        Some("number")
    } else if are(Value::is_boolean) {
        Some("boolean")
    } else {
        are(Value::is_object).then_some("object")
    }
}

/// Pipedream's front ends store a chosen option as `{"__lv": {"label", "value"}}`.
pub(super) fn unlabelled(value: &Value) -> &Value {
    value.get("__lv").and_then(|labelled| labelled.get("value")).unwrap_or(value)
}

fn push_once(values: &mut Vec<Value>, value: Value) {
    // 2.0 is 2; whole numbers are not compared as floats, which cannot tell large ones apart.
    let is_same = |known: &Value| {
        *known == value
            || (known.is_f64() || value.is_f64()) && known.as_f64().is_some_and(|known| value.as_f64() == Some(known))
    };
    if !values.iter().any(is_same) {
        values.push(value);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(value: &Value) -> Result<Parameter, Vec<String>> {
        let mut problems = Problems::default();
        let parameter = Parameter::parse(value, "text".into(), &mut problems);
        match parameter {
            Some(parameter) if problems.is_empty() => Ok(parameter),
            _ => Err(problems.iter().map(|problem| problem.field.clone()).collect()),
        }
    }

    #[test]
    fn each_mode_reads_and_writes_itself() {
        for value in [
            json!({"mode": "fixed", "value": {"nested": [1, null]}}),
            json!({"mode": "fixed", "value": "x", "secret": true}),
            json!({"mode": "ai", "prompt": "p", "schema": {"type": "integer"}, "required": false}),
            json!({"mode": "array_extendable", "fixedValues": ["a"], "aiExtension": {"enabled": true, "prompt": "p", "required": true}}),
            json!({"mode": "array_extendable", "fixedValues": ["a"], "aiExtension": {"enabled": false}}),
        ] {
            assert_eq!(json!(parse(&value).unwrap()), value);
            assert_eq!(serde_json::from_value::<Parameter>(value.clone()).unwrap(), parse(&value).unwrap());
        }
        assert_eq!(parse(&json!("https://x")).unwrap(), Parameter::fixed("https://x".into()));
        assert_eq!(parse(&json!(["a", 1])).unwrap(), Parameter::fixed(json!(["a", 1])));
    }

    #[test]
    fn a_wrong_parameter_is_named() {
        assert_eq!(parse(&json!({"mode": "ai"})).unwrap_err(), ["text.prompt"]);
        assert_eq!(parse(&json!({"mode": "fixed"})).unwrap_err(), ["text.value"]);
        assert_eq!(parse(&json!({"mode": "other"})).unwrap_err(), ["text.mode"]);
        assert_eq!(parse(&json!({"mode": "fixed", "value": 1, "extra": 2})).unwrap_err(), ["text.extra"]);
        assert_eq!(parse(&json!({"mode": "fixed", "value": 1, "secret": "yes"})).unwrap_err(), ["text.secret"]);
        assert_eq!(
            parse(&json!({"mode": "ai", "prompt": "p", "schema": {"type": "text"}})).unwrap_err(),
            ["text.schema.type"]
        );
        assert_eq!(
            parse(&json!({"mode": "array_extendable", "aiExtension": {"enabled": true}})).unwrap_err(),
            ["text.aiExtension.prompt"]
        );
        assert_eq!(parse(&json!({"mode": "array_extendable"})).unwrap_err(), ["text.fixedValues"]);
    }

    #[test]
    fn a_declared_schema_is_honoured() {
        let value = json!({"mode": "ai", "prompt": "How many", "schema": {"type": "integer", "required": false}});
        let (property, required) = parse(&value).unwrap().property().unwrap();
        assert_eq!(property, json!({"type": "integer", "description": "How many"}));
        assert!(!required);
    }

    #[test]
    fn items_of_an_extended_list_have_the_type_of_the_fixed_values() {
        for (fixed, item) in [
            (json!([1, 2]), "integer"),
            (json!([1, 2.5]), "number"),
            (json!([true]), "boolean"),
            (json!([{"id": 1}]), "object"),
            (json!([{"__lv": {"label": "Desk", "value": "C1"}}]), "string"),
            (json!([{"__lv": {"label": "Desk", "value": 1}}, 2]), "integer"),
            (json!([{"__lv": {"label": "Desk", "value": {"id": 1}}}]), "object"),
            (json!([{"__lv": {"label": "Desk"}}]), "object"),
            (json!(["a"]), "string"),
            (json!([1, "a"]), "string"),
            (json!([]), "string"),
        ] {
            let value = json!({
                "mode": "array_extendable", "fixedValues": fixed, "aiExtension": {"enabled": true, "prompt": "More"},
            });
            let (property, required) = parse(&value).unwrap().property().unwrap();
            let expected = json!({"type": "array", "items": {"type": item}, "description": "More"});
            assert_eq!((property, required), (expected, false), "{fixed}");
        }
    }

    #[test]
    fn a_number_is_united_once_in_any_notation() {
        let large = 9_007_199_254_740_993_u64;
        let extension = json!({"enabled": true, "prompt": "p"});
        let value = json!({"mode": "array_extendable", "fixedValues": [2, 2.5, large], "aiExtension": extension});
        let added = json!([2.0, 2.5, large - 1, large, 3]);
        let united = parse(&value).unwrap().value(Some(&added), &Conversation::default(), Encoding::Plain).unwrap();
        assert_eq!(united, Some(json!([2, 2.5, large, large - 1, 3])));
    }

    proptest! {
        #[test]
        fn a_union_holds_every_value_once_and_the_fixed_ones_first(
            fixed in prop::collection::vec("[a-d]", 0..5), added in prop::collection::vec("[a-f]", 0..5),
        ) {
            let extension = Extension { enabled: true, prompt: Some("p".into()), required: Some(false) };
            let fixed_values = fixed.iter().cloned().map(Value::from).collect();
            let parameter = Parameter::ArrayExtendable { fixed: fixed_values, extension, declared_item: None };
            let united = parameter.value(Some(&json!(added)), &Conversation::default(), Encoding::Plain).unwrap().unwrap();
            let united: Vec<&str> = united.as_array().unwrap().iter().filter_map(Value::as_str).collect();
            for value in fixed.iter().chain(&added) {
                prop_assert_eq!(united.iter().filter(|present| *present == value).count(), 1);
            }
            if let Some(first) = fixed.first() {
                prop_assert_eq!(united[0], first);
            }
        }
    }
}
