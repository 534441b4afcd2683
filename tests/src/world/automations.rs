//! Automations over the API, and a service for them to use.

use serde_json::{Value, json};

use super::{Tenant, World};
use crate::{Answer, Event};

impl World {
    /// Slack, connected, with an event `message` and the tool `slack_post_message`.
    pub fn slack_service(&self) {
        self.service("Slack", Some("slack"));
        self.service_capabilities("Slack", &json!({
            "supports_webhooks": true, "webhook_events": ["message"],
            "webhook_payload_schemas": {"message": {
                "description": "A message was posted",
                "trigger_data_fields": {"event.text": "The text", "event.user": "Who wrote it", "event.channel": "Where"},
            }},
        }));
        self.slack_tool(&json!({"channel": {"type": "string"}, "text": {"type": "string"}}));
    }

    /// `slack_post_message` with these parameters, all of them required.
    pub fn slack_tool(&self, parameters: &Value) {
        let required: Vec<&String> = parameters.as_object().expect("an object").keys().collect();
        let schema = json!({
            "type": "object", "properties": parameters, "required": required, "additionalProperties": false,
        });
        self.service_tool_with("Slack", "slack_post_message", &json!({"description": "Posts.", "parameters": schema}));
    }

    /// The fingerprint that `fetch_tool_data` would give.
    pub fn fingerprint(&self, tool: &str) -> String {
        let rows = self.aws.rows("service_tools");
        let row = rows.iter().find(|row| row["name"] == tool).expect("the tool is in the catalogue");
        row["fingerprint"].as_str().expect("a fingerprint").to_owned()
    }

    /// A valid definition: tells a channel of urgent messages.
    pub fn urgent_messages(&self) -> Value {
        json!({
            "name": "Urgent messages", "description": "Tells the team.", "trigger_type": "webhook",
            "trigger_config": {
                "service": "Slack", "event_type": "message",
                "filters": {"path": "event.text", "op": "contains", "value": "urgent", "case_insensitive": true},
            },
            "actions": [{
                "id": "tell", "tool": "slack_post_message",
                "parameters": {"channel": "{{team}}", "text": "Alert: {{event.text}} from {{event.user}}"},
            }],
            "variables": {"team": "C024BE91L"},
            "fingerprints": {"slack_post_message": self.fingerprint("slack_post_message")},
        })
    }

    /// `POST /api/{slug}/automations` as the home organization's user.
    pub async fn deploy(&self, definition: &Value) -> Answer {
        self.automation("POST", "", definition).await
    }

    /// A request below `/api/{slug}/automations` as the home organization's user; a body of null is none.
    pub async fn automation(&self, method: &str, path: &str, body: &Value) -> Answer {
        self.automation_as(&self.home, method, path, body).await
    }

    pub async fn automation_as(&self, tenant: &Tenant, method: &str, path: &str, body: &Value) -> Answer {
        self.send("deploy", &automation_event(tenant, method, path, body)).await
    }

    /// `PUT /api/{slug}/automations/{id}` of what was at this `ETag`.
    pub async fn put_automation(&self, id: &str, etag: &str, definition: &Value) -> Answer {
        let event = automation_event(&self.home, "PUT", &format!("/{id}"), definition).header("if-match", etag);
        self.send("deploy", &event).await
    }
}

/// A request below `/api/{slug}/automations`, `?` and a query with it.
pub fn automation_event(tenant: &Tenant, method: &str, path: &str, body: &Value) -> Event {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let mut event = Event::new(method, &format!("/api/{}/automations{path}", tenant.slug)).user(&tenant.user_id);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        event = event.query(name, value);
    }
    if body.is_null() { event } else { event.header("content-type", "application/json").text(body.to_string()) }
}
