//! An assistant's model, which includes its tools.

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::clients::{Error, Failure, UpstreamService};

/// An assistant's whole `model`, which a change of its tools must send back.
///
/// Tools are in two lists: `toolIds`, each at its latest version, and `toolRefs: [{toolId, version}]`, which takes precedence. An
/// assistant with `toolRefs` receives new tools there.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct AssistantModel(Map<String, Value>);

impl AssistantModel {
    pub(super) fn of(mut assistant: Value) -> Result<Self, Error> {
        let unreadable = |why: &str| Err(Error::new(UpstreamService::Vapi, Failure::Undecodable(why.into())));
        let Some(Value::Object(model)) = assistant.get_mut("model").map(Value::take) else {
            return unreadable("the assistant has no model");
        };
        // An unreadable list must not count as empty: agents would lose their tools.
        let is_id = |id: Option<&Value>| id.is_some_and(Value::is_string);
        if !is_list_of(model.get("toolIds"), |id| is_id(Some(id))) {
            return unreadable("the assistant's toolIds are no list of ids");
        }
        if !is_list_of(model.get("toolRefs"), |pinned| is_id(pinned.get("toolId"))) {
            return unreadable("the assistant's toolRefs are no list of tools");
        }
        Ok(Self(model))
    }

    pub fn tool_ids(&self) -> Vec<&str> {
        let mut once: Vec<&str> = Vec::new();
        for id in self.listed().chain(self.pinned().map(|(id, _)| id)) {
            if !once.contains(&id) {
                once.push(id);
            }
        }
        once
    }

    pub fn pins_versions(&self) -> bool {
        self.pinned().next().is_some()
    }

    /// Adds the tool, once: at `version` if the assistant pins versions and one is given, else at its latest.
    #[must_use]
    pub fn with_tool(&self, id: &str, version: Option<&str>) -> Self {
        let mut model = self.clone();
        match version.filter(|_| self.pins_versions()) {
            Some(version) => {
                model.keep_listed(|listed| listed != id);
                let kept = self.pinned().any(|pinned| pinned == (id, version));
                if !kept {
                    model.keep_pinned(|pinned| pinned != id);
                    model.edit("toolRefs", |pinned| pinned.push(json!({"toolId": id, "version": version})));
                }
            }
            None if self.tool_ids().contains(&id) => {}
            None => model.edit("toolIds", |ids| ids.push(id.into())),
        }
        model
    }

    #[must_use]
    pub fn without_tool(&self, id: &str) -> Self {
        let mut model = self.clone();
        model.keep_listed(|listed| listed != id);
        model.keep_pinned(|pinned| pinned != id);
        model
    }

    /// Whether the assistant has the same tools, at the versions that `other` pins.
    pub fn has_same_tools_as(&self, other: &Self) -> bool {
        let of = |model: &Self| {
            let mut ids: Vec<String> = model.tool_ids().into_iter().map(str::to_owned).collect();
            ids.sort_unstable();
            ids
        };
        of(self) == of(other) && other.pinned().all(|wanted| self.pinned().any(|pinned| pinned == wanted))
    }

    fn listed(&self) -> impl Iterator<Item = &str> {
        self.0.get("toolIds").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    }

    fn pinned(&self) -> impl Iterator<Item = (&str, &str)> {
        let pinned = self.0.get("toolRefs").and_then(Value::as_array).into_iter().flatten();
        pinned.filter_map(|pinned| Some((pinned.get("toolId")?.as_str()?, pinned.get("version")?.as_str()?)))
    }

    fn keep_listed(&mut self, kept: impl Fn(&str) -> bool) {
        if self.0.contains_key("toolIds") {
            self.edit("toolIds", |ids| ids.retain(|id| id.as_str().is_none_or(&kept)));
        }
    }

    fn keep_pinned(&mut self, kept: impl Fn(&str) -> bool) {
        if self.0.contains_key("toolRefs") {
            self.edit("toolRefs", |pinned| {
                pinned.retain(|pinned| pinned.get("toolId").and_then(Value::as_str).is_none_or(&kept));
            });
        }
    }

    /// Changes a list, created if missing.
    fn edit(&mut self, name: &str, change: impl FnOnce(&mut Vec<Value>)) {
        let mut items = match self.0.remove(name) {
            Some(Value::Array(items)) => items,
            _ => Vec::new(),
        };
        change(&mut items);
        self.0.insert(name.to_owned(), Value::Array(items));
    }
}

/// True also if the list is missing.
fn is_list_of(list: Option<&Value>, item: impl Fn(&Value) -> bool) -> bool {
    match list {
        None | Some(Value::Null) => true,
        Some(Value::Array(items)) => items.iter().all(item),
        Some(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_cannot_be_read_is_no_empty_list() {
        for (lists, readable) in [
            (json!({"toolIds": "oops"}), false),
            (json!({"toolIds": {}}), false),
            (json!({"toolIds": ["a", 7]}), false),
            (json!({"toolRefs": "oops"}), false),
            (json!({"toolRefs": ["a"]}), false),
            (json!({"toolRefs": [{"version": "v1"}]}), false),
            (json!({"toolIds": null, "toolRefs": [{"toolId": "a"}]}), true),
            (json!({}), true),
        ] {
            assert_eq!(AssistantModel::of(json!({ "model": lists })).is_ok(), readable, "{lists}");
        }
    }

    fn model(lists: &Value) -> AssistantModel {
        let mut model = json!({"provider": "openai", "model": "gpt", "messages": [{"role": "system"}]});
        model.as_object_mut().unwrap().extend(lists.as_object().unwrap().clone());
        AssistantModel::of(json!({ "model": model })).unwrap()
    }

    #[test]
    fn a_change_of_tools_keeps_the_rest_of_the_model_and_no_id_twice() {
        let changed = model(&json!({"toolIds": ["a", "a"]})).with_tool("b", None).with_tool("b", Some("v1"));
        assert_eq!(changed.tool_ids(), ["a", "b"]);
        assert_eq!(changed.0.get("messages"), model(&json!({})).0.get("messages"));
        assert_eq!(changed.without_tool("a").tool_ids(), ["b"]);
        assert!(changed.0.get("toolRefs").is_none());
    }

    #[test]
    fn a_model_without_tools_gets_them() {
        assert_eq!(model(&json!({})).with_tool("a", None).tool_ids(), ["a"]);
        assert_eq!(model(&json!({"toolIds": null, "toolRefs": []})).with_tool("a", Some("v2")).tool_ids(), ["a"]);
    }

    #[test]
    fn an_assistant_that_pins_versions_has_its_tools_there() {
        let pinned = model(&json!({"toolIds": ["a"], "toolRefs": [{"toolId": "b", "version": "v1"}]}));
        assert_eq!(pinned.tool_ids(), ["a", "b"]);
        let more = pinned.with_tool("c", Some("v4")).with_tool("b", Some("v2")).with_tool("a", None);
        assert_eq!(
            more.0.get("toolRefs"),
            Some(&json!([{"toolId": "c", "version": "v4"}, {"toolId": "b", "version": "v2"}]))
        );
        assert_eq!(more.without_tool("b").without_tool("a").tool_ids(), ["c"]);
        // A tool without a version goes to the list of unpinned ones.
        assert_eq!(pinned.with_tool("d", None).0.get("toolIds"), Some(&json!(["a", "d"])));
        assert!(more.has_same_tools_as(&more.clone()) && !pinned.has_same_tools_as(&more));
        assert!(!pinned.has_same_tools_as(&pinned.with_tool("b", Some("v2"))));
    }
}
