//! The components that the product's own catalogue has, as Pipedream has them: at the versions and with the props of its files.

use serde_json::{Value, json};

use super::{Action, Options};

impl Options {
    /// With the components of these files of the catalogue, each the newest version of its key.
    #[must_use]
    pub fn with_components<'f>(mut self, files: impl IntoIterator<Item = &'f Value>) -> Self {
        for file in files {
            let app = file.pointer("/connection/app").and_then(Value::as_str).unwrap_or_default();
            let tools = file.get("tools").and_then(Value::as_array).into_iter().flatten();
            let of_tools: Vec<Action> = tools.filter_map(|tool| self.component(app, tool)).collect();
            self.actions.extend(of_tools);
        }
        self
    }

    fn component(&self, app: &str, tool: &Value) -> Option<Action> {
        let component = tool.get("component")?;
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
            // What an older version of the same key does, this one does too.
            summary: earlier.map_or_else(|| format!("{title}: done"), |earlier| earlier.summary.clone()),
            ret: earlier.map_or_else(|| json!({ "ok": true }), |earlier| earlier.ret.clone()),
            troubles: earlier.map(|earlier| earlier.troubles.clone()).unwrap_or_default(),
            key,
        })
    }
}
