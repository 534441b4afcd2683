//! The Pipedream components that the product's catalogue names.
//!
//! Read from Pipedream's public registry (`tests/fixtures/pipedream_components.json`), independent of the catalogue's
//! own claims.

use std::{collections::HashMap, sync::LazyLock};

use serde_json::{Map, Value, json};

use super::{Action, Options};

/// By key: `{"key", "version", "app", "app_prop", "props", "annotations"?}`.
static REGISTRY: LazyLock<HashMap<String, Value>> = LazyLock::new(|| {
    let read = include_str!("../../../../../tests/fixtures/pipedream_components.json");
    let components: Vec<Value> = serde_json::from_str(read).unwrap_or_default();
    let keyed = components.into_iter().filter_map(|of| Some((of.get("key")?.as_str()?.to_owned(), of)));
    keyed.collect()
});

impl Options {
    /// Adds the components that these catalogue files name, each in its newest version.
    #[must_use]
    pub fn with_components<'f>(mut self, files: impl IntoIterator<Item = &'f Value>) -> Self {
        for file in files {
            let app = file.pointer("/connection/app").and_then(Value::as_str).unwrap_or_default();
            let tools = file.get("tools").and_then(Value::as_array).into_iter().flatten();
            let of_tools: Vec<Action> = tools.filter_map(|tool| self.component(app, tool)).collect();
            self.actions.extend(of_tools);
            let events = file.pointer("/capabilities/webhook_payload_schemas").and_then(Value::as_object);
            let of_events = events.into_iter().flat_map(Map::values);
            let of_events: Vec<Action> = of_events.filter_map(|event| trigger(app, event)).collect();
            self.triggers.extend(of_events);
        }
        self
    }

    fn component(&self, app: &str, tool: &Value) -> Option<Action> {
        let named = tool.get("component")?;
        let component = REGISTRY.get(named.get("key")?.as_str()?)?;
        let text = |name: &str| component.get(name).and_then(Value::as_str).map(str::to_owned);
        let key = text("key")?;
        let earlier = self.actions.iter().rfind(|action| action.key == key);
        let title = tool.get("title").and_then(Value::as_str).unwrap_or_default();
        Some(Action {
            app: app.to_owned(),
            name: title.to_owned(),
            description: format!("{title}. [See the documentation](https://pipedream.example/{key})"),
            version: text("version")?,
            configurable_props: component.get("props")?.as_array()?.clone(),
            annotations: component.get("annotations").cloned().unwrap_or_default(),
            // A newer version behaves like an older version of the same key.
            summary: earlier.map_or_else(|| format!("{title}: done"), |earlier| earlier.summary.clone()),
            ret: earlier.map_or_else(|| json!({ "ok": true }), |earlier| earlier.ret.clone()),
            troubles: earlier.map(|earlier| earlier.troubles.clone()).unwrap_or_default(),
            key,
        })
    }
}

fn trigger(app: &str, event: &Value) -> Option<Action> {
    let component = REGISTRY.get(event.pointer("/deployed_trigger/component")?.as_str()?)?;
    let text = |name: &str| component.get(name).and_then(Value::as_str).map(str::to_owned);
    Some(Action {
        app: app.to_owned(),
        name: text("key")?,
        description: String::new(),
        version: text("version")?,
        configurable_props: component.get("props")?.as_array()?.clone(),
        annotations: Value::Null,
        summary: String::new(),
        ret: Value::Null,
        troubles: Vec::new(),
        key: text("key")?,
    })
}
