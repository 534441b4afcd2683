//! Services and their tools, as the catalogue loads them.

use serde_json::{Value, json};
use shared::models::{Binding, ServiceId, ServiceTool, service_tool_id};

use crate::World;

/// Long enough ago that every index is up to date.
const LOADED: &str = "2026-01-01T00:00:00.000Z";

impl World {
    /// An active service with an app at Pipedream (such as `slack`), or without an account.
    pub fn service(&self, name: &str, app: Option<&str>) {
        let connection = match app {
            Some(app) => json!({"type": "pipedream", "app": app}),
            None => json!({"type": "none"}),
        };
        self.service_with(name, &json!({"connection": connection}));
    }

    /// A service with these attributes; they override the usual ones.
    pub fn service_with(&self, name: &str, attributes: &Value) {
        let mut row = json!({
            "id": ServiceId::of_name(name), "name": name, "description": format!("What {name} does."), "categories": ["work"],
            "connection": {"type": "none"}, "is_active": true, "tools": 1, "edition": "1", "created_at": LOADED,
            "updated_at": LOADED,
        });
        set(&mut row, attributes);
        self.aws.put("services", &row);
    }

    /// An active tool of a service; its parameters are texts.
    pub fn service_tool(&self, service: &str, name: &str, description: &str, parameters: &[&str]) {
        let properties = parameters.iter().map(|name| ((*name).to_owned(), json!({"type": "string"})));
        let schema = json!({
            "type": "object", "properties": properties.collect::<serde_json::Map<_, _>>(), "required": parameters,
            "additionalProperties": false,
        });
        self.service_tool_with(
            service,
            name,
            &json!({"description": description, "parameters": schema, "parameter_names": parameters}),
        );
    }

    /// A tool with these attributes; they override the usual ones.
    pub fn service_tool_with(&self, service: &str, name: &str, attributes: &Value) {
        let binding = Binding::BuiltIn { name: "sms".to_owned() };
        let mut row = json!({
            "id": service_tool_id(name), "name": name, "title": "", "description": "", "service_id": ServiceId::of_name(service),
            "service_name": service, "category": "write", "parameters": {"type": "object", "properties": {}},
            "returns": "What came of it.", "is_active": true, "binding": binding, "version": "1", "effect": true, "acts_as": "record",
            "destructive": false, "parameter_names": [], "created_at": LOADED, "updated_at": LOADED,
        });
        set(&mut row, attributes);
        let returns = row["returns"].as_str().unwrap_or_default().to_owned();
        row["fingerprint"] = ServiceTool::fingerprint_of(name, &row["parameters"], &returns, &binding).into();
        self.aws.put("service_tools", &row);
    }

    /// The capabilities of a service.
    pub fn service_capabilities(&self, service: &str, capabilities: &Value) {
        let mut row = json!({"service_name": shared::models::folded_name(service), "supports_webhooks": false});
        set(&mut row, capabilities);
        self.aws.put("service_capabilities", &row);
    }
}

fn set(row: &mut Value, attributes: &Value) {
    let attributes = attributes.as_object().expect("attributes are an object");
    row.as_object_mut().expect("a row is an object").extend(attributes.clone());
}
