//! An edit of an existing tool: the stored configuration with some fields replaced.
//!
//! Stored fields may violate a newer rule or be unknown to this version. Changed fields must satisfy today's rules; unchanged
//! fields need not, and unknown fields stay in the row.

use std::{collections::BTreeSet, mem::take};

use serde_json::{Map, Value};

use crate::{
    Error, Result,
    actions::ToolConfig,
    error::{Problem, Problems},
    models::{Tool, ToolName},
};

pub(super) struct Edit {
    pub(super) config: ToolConfig,
    pub(super) name: Option<ToolName>,
    pub(super) known: ToolConfig,
    changed: BTreeSet<String>,
}

impl Edit {
    pub(super) fn read(before: &Tool, changes: &Value) -> Result<Self> {
        let Value::Object(changes) = changes else {
            return Err(Error::invalid("body", "must be an object with the fields to be changed"));
        };
        let mut changes: Map<String, Value> = changes.clone();
        let name = changes.remove("name").filter(|name| !name.is_null()).map(|name| {
            let name = name.as_str().and_then(|name| name.parse().ok());
            name.ok_or_else(|| Error::invalid("name", "must be 1 to 40 of a-z, A-Z, 0-9, _ and -"))
        });
        let name = name.transpose()?;
        // Checked first: errors in the other type's fields would hide this reason.
        let kind = changes.get("type").filter(|kind| !kind.is_null());
        if let Some(kind) = kind
            && kind.as_str().and_then(|kind| kind.parse().ok()) != Some(before.kind)
        {
            let problem = format!("cannot be changed from {}; make a new tool instead", before.kind);
            return Err(Error::invalid("type", problem));
        }
        // Sending back unchanged values changes nothing.
        changes.retain(|name, value| before.config_metadata.get(name) != Some(value));
        let changed = changes.keys().cloned().collect();

        let known = ToolConfig::stored(before)?;
        let mut body = known.to_json().as_object().cloned().unwrap_or_default();
        body.insert("async".into(), before.is_async.into());
        body.insert("execute_on_call_start".into(), before.execute_on_call_start.into());
        body.insert("attach_to_agent".into(), before.attach_to_agent.into());
        let stored = Value::Object(body.clone());
        body.extend(changes);
        let (config, problems) = parse(&Value::Object(body));
        if problems.is_empty() {
            return Ok(Self { config: problems.into_result(config)?, name, known, changed });
        }
        let (_, earlier) = parse(&stored);
        let mut held = Problems::default();
        for Problem { field, problem } in problems.iter().filter(|problem| {
            let field = problem.field.split(['.', '[']).next().unwrap_or_default();
            changed.contains(field) || !earlier.iter().any(|earlier| earlier == *problem)
        }) {
            held.add(field, problem);
        }
        // If a field that violates a rule was read only in part, the edit must correct it.
        match config.filter(|config| held.is_empty() && differing(config, &known).is_subset(&changed)) {
            Some(config) => Ok(Self { config, name, known, changed }),
            None => Err(Error::Invalid(if held.is_empty() { problems } else { held })),
        }
    }

    /// Keeps fields of the row that only a newer version knows.
    pub(super) fn keep_unknown(&self, before: &Tool, after: &mut Tool) {
        let known = self.known.to_json();
        if before.config_metadata == known {
            return;
        }
        let mut stored = before.config_metadata.as_object().cloned().unwrap_or_default();
        for name in &self.changed {
            match after.config_metadata.get(name) {
                Some(value) => stored.insert(name.clone(), value.clone()),
                None => stored.remove(name),
            };
        }
        after.config_metadata = kept(&stored.into(), &known, take(&mut after.config_metadata));
        // The derived schemas need the parts derived from unknown fields, too.
        let known = self.known.function_schema(&before.name);
        after.function_schema = kept(&before.function_schema, &known, take(&mut after.function_schema));
        after.static_config = kept(&before.static_config, &self.known.static_config(), take(&mut after.static_config));
    }

    /// A new version of the program may derive other parameters; automations are bound to the stored ones.
    pub(super) fn keep_parameters(&self, before: &Tool, after: &mut Tool) {
        if differing(&self.config, &self.known).iter().all(|name| Tool::is_beside_the_binding(name))
            && let Some(stored) = before.function_schema.get("parameters")
            && let Some(derived) = after.function_schema.get_mut("parameters")
        {
            derived.clone_from(stored);
        }
    }
}

fn parse(body: &Value) -> (Option<ToolConfig>, Problems) {
    let mut problems = Problems::default();
    (ToolConfig::parse_edited(body, &mut problems), problems)
}

fn differing(one: &ToolConfig, other: &ToolConfig) -> BTreeSet<String> {
    let (one, other) = (one.to_json(), other.to_json());
    let names = [&one, &other].into_iter().filter_map(Value::as_object).flat_map(Map::keys);
    names.filter(|name| one.get(*name) != other.get(*name)).cloned().collect()
}

/// `new`, extended by the fields of `stored` that `known`, this version's reading of it, lacks.
pub(super) fn kept(stored: &Value, known: &Value, new: Value) -> Value {
    match (stored, known, new) {
        (stored, known, new) if *known == new => stored.clone(),
        (Value::Object(stored), Value::Object(known), Value::Object(mut new)) => {
            for (name, value) in stored {
                match (known.get(name), new.get_mut(name)) {
                    (Some(known), Some(new)) => *new = kept(value, known, take(new)),
                    (None, None) => drop(new.insert(name.clone(), value.clone())),
                    // Removed by the edit, or known by now.
                    _ => {}
                }
            }
            Value::Object(new)
        }
        (_, _, new) => new,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unknown_fields_stay_and_dropped_fields_go() {
        let stored =
            json!({"a": 1, "b": {"c": 2, "new": [3]}, "list": [{"d": 4, "new": 5}], "gone": 6, "new": {"e": 7}});
        let known = json!({"a": 1, "b": {"c": 2}, "list": [{"d": 4}], "gone": 6});
        let edited = kept(&stored, &known, json!({"a": 10, "b": {"c": 20}, "list": [{"d": 4}], "more": 8}));
        let expected = json!({
            "a": 10, "b": {"c": 20, "new": [3]}, "list": [{"d": 4, "new": 5}], "more": 8, "new": {"e": 7},
        });
        assert_eq!(edited, expected);
        assert_eq!(kept(&stored, &known, known.clone()), stored);
        assert_eq!(kept(&stored, &known, json!([])), json!([]), "it became something else");
    }

    #[test]
    fn only_an_edit_of_the_binding_derives_the_parameters_anew() {
        let id = "01930f5e-6a1b-7c2d-8e3f-4a5b6c7d8e9f";
        let extension = json!({"enabled": true, "prompt": "More", "required": false});
        let rooms = json!({"mode": "array_extendable", "fixedValues": [1], "aiExtension": extension});
        let config = ToolConfig::parse(&json!({
            "type": "api_request", "label": "Book", "description": "Books.", "method": "POST",
            "url": "https://api.example.com/bookings", "body": {"rooms": rooms},
        }))
        .unwrap();
        let name: ToolName = "book".parse().unwrap();
        let derived = config.function_schema(&name);
        let mut stored = derived.clone();
        stored["parameters"]["properties"]["body_rooms"]["items"] = json!({"type": "string"});
        assert_ne!(stored, derived);
        let before: Tool = serde_json::from_value(json!({
            "id": id, "name": name, "label": "Book", "description": "Books.", "organization_id": id, "type": "api_request",
            "function_schema": stored, "static_config": config.static_config(), "config_metadata": config.to_json(),
            "created_at": "2026-11-20T16:20:52.123Z", "updated_at": "2026-11-20T16:20:52.123Z",
        }))
        .unwrap();
        let edited = |changes: Value| {
            let edit = Edit::read(&before, &changes).unwrap();
            let mut after = before.clone();
            after.label.clone_from(&edit.config.label);
            after.function_schema = edit.config.function_schema(&name);
            after.config_metadata = edit.config.to_json();
            edit.keep_unknown(&before, &mut after);
            edit.keep_parameters(&before, &mut after);
            after.continue_version_of(&before);
            after
        };
        for beside in [
            json!({"label": "Book it"}),
            json!({"description": "Books a room.", "repeatable": true}),
            json!({"label": "Book it", "async": false}),
            json!({}),
        ] {
            let after = edited(beside.clone());
            assert_eq!(after.function_schema["parameters"], stored["parameters"], "{beside}");
            assert_eq!(after.bound_version(), before.bound_version(), "{beside}");
        }
        assert_eq!(edited(json!({"description": "Books a room."})).function_schema["description"], "Books a room.");
        let after = edited(json!({"label": "Book it", "method": "PUT"}));
        assert_eq!(after.function_schema["parameters"], derived["parameters"]);
        assert_eq!(after.bound_version(), after.version);
    }
}
