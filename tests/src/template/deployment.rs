//! A template with given parameters: conditions are evaluated, and `Fn::If` is resolved.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::Template;

/// A template with the parameters of one deployment; missing parameters have their defaults.
pub struct Deployment<'a> {
    template: &'a Value,
    given: BTreeMap<String, String>,
}

impl Template {
    pub fn deployed(&self, parameters: &[(&str, &str)]) -> Deployment<'_> {
        for (name, _) in parameters {
            assert!(self.0["Parameters"].get(name).is_some(), "{name} is not a parameter");
        }
        let given = parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Deployment { template: &self.0, given }
    }
}

impl Deployment<'_> {
    /// The properties of a resource; `None` if its condition does not hold.
    pub fn properties(&self, resource: &str) -> Option<Value> {
        let resource = &self.template["Resources"][resource];
        if resource["Condition"].as_str().is_some_and(|condition| !self.holds(condition)) {
            return None;
        }
        self.value(&resource["Properties"])
    }

    /// `None` is `AWS::NoValue`. References to resources stay unchanged.
    fn value(&self, value: &Value) -> Option<Value> {
        match value {
            Value::Array(items) => Some(items.iter().filter_map(|item| self.value(item)).collect()),
            Value::Object(object) => match object.iter().next() {
                Some((function, argument)) if function == "Ref" || function.starts_with("Fn::") => {
                    self.function(function, argument, value)
                }
                _ => Some(Value::Object(self.members(object))),
            },
            plain => Some(plain.clone()),
        }
    }

    fn members(&self, object: &Map<String, Value>) -> Map<String, Value> {
        object.iter().filter_map(|(name, value)| Some((name.clone(), self.value(value)?))).collect()
    }

    fn function(&self, name: &str, argument: &Value, whole: &Value) -> Option<Value> {
        match name {
            "Ref" if argument == "AWS::NoValue" => None,
            "Ref" => Some(self.parameter(argument.as_str()?).unwrap_or_else(|| whole.clone())),
            "Fn::If" => {
                let chosen = if self.holds(argument[0].as_str()?) { &argument[1] } else { &argument[2] };
                self.value(chosen)
            }
            "Fn::Join" => {
                let items = self.value(&argument[1])?;
                let items: Vec<&str> = items.as_array()?.iter().map(|item| text(item, whole)).collect();
                Some(items.join(argument[0].as_str()?).into())
            }
            "Fn::Split" => {
                let joined = self.value(&argument[1])?;
                Some(text(&joined, whole).split(argument[0].as_str()?).collect())
            }
            "Fn::FindInMap" => {
                let [map, key, name] = [0, 1, 2].map(|at| self.value(&argument[at]));
                let [map, key, name] = [&map?, &key?, &name?].map(|part| text(part, whole).to_owned());
                let found = &self.template["Mappings"][&map][&key][&name];
                assert!(!found.is_null(), "{map} has no {name} of {key}");
                Some(found.clone())
            }
            // An attribute of a resource is known only after deployment, so the reference stands for it.
            "Fn::GetAtt" => Some(argument.clone()),
            _ => Some(whole.clone()),
        }
    }

    fn parameter(&self, name: &str) -> Option<Value> {
        let declared = self.template["Parameters"].get(name)?;
        let default = &declared["Default"];
        let text = self.given.get(name).cloned();
        let text = text.unwrap_or_else(|| default.as_str().map_or_else(|| default.to_string(), str::to_owned));
        Some(if declared["Type"] == "CommaDelimitedList" {
            text.split(',').map(str::trim).collect()
        } else {
            text.into()
        })
    }

    fn holds(&self, condition: &str) -> bool {
        let definition = &self.template["Conditions"][condition];
        assert!(!definition.is_null(), "{condition} is no condition");
        self.is_true(definition)
    }

    fn is_true(&self, condition: &Value) -> bool {
        let (function, argument) = condition.as_object().and_then(|object| object.iter().next()).expect("a condition");
        let all = || argument.as_array().expect("conditions").iter();
        match function.as_str() {
            "Condition" => self.holds(argument.as_str().expect("its name")),
            "Fn::Not" => !self.is_true(&argument[0]),
            "Fn::Or" => all().any(|condition| self.is_true(condition)),
            "Fn::And" => all().all(|condition| self.is_true(condition)),
            "Fn::Equals" => self.value(&argument[0]) == self.value(&argument[1]),
            other => panic!("{other} is no function of conditions"),
        }
    }
}

fn text<'a>(value: &'a Value, whole: &Value) -> &'a str {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text in {whole}"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;

    #[test]
    fn conditions_choose_among_existing_values() {
        let template = Template(Arc::new(json!({
            "Parameters": {
                "Names": {"Type": "CommaDelimitedList", "Default": ""},
                "Most": {"Type": "Number", "Default": 0},
            },
            "Conditions": {
                "Named": {"Fn::Not": [{"Fn::Equals": [{"Fn::Join": [",", {"Ref": "Names"}]}, ""]}]},
                "Bounded": {"Fn::Not": [{"Fn::Equals": [{"Ref": "Most"}, "0"]}]},
                "Both": {"Fn::And": [{"Condition": "Named"}, {"Condition": "Bounded"}]},
            },
            "Mappings": {"Sizes": {"3": {"Rate": 0.5}}},
            "Resources": {
                "Sized": {"Properties": {"Rate": {"Fn::FindInMap": ["Sizes", {"Ref": "Most"}, "Rate"]}}},
                "Thing": {"Properties": {
                    "Most": {"Fn::If": ["Bounded", {"Ref": "Most"}, {"Ref": "AWS::NoValue"}]},
                    "All": {"Fn::Split": [",", {"Fn::Join": [",", ["x", {"Fn::Join": [",", {"Ref": "Names"}]}]]}]},
                    "Of": {"Fn::GetAtt": "Api.Endpoint"},
                }},
                "Other": {"Condition": "Both", "Properties": {}},
            },
        })));
        let plain = template.deployed(&[]);
        assert_eq!(plain.properties("Thing"), Some(json!({"All": ["x", ""], "Of": "Api.Endpoint"})));
        assert_eq!(plain.properties("Other"), None);
        let full = template.deployed(&[("Names", "a, b"), ("Most", "3")]);
        assert_eq!(full.properties("Thing"), Some(json!({"Most": "3", "All": ["x", "a", "b"], "Of": "Api.Endpoint"})));
        assert_eq!(full.properties("Other"), Some(json!({})));
        assert_eq!(full.properties("Sized"), Some(json!({"Rate": 0.5})));
    }
}
