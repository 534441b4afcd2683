//! Automations over the API, with services for their tools.

use std::time::Duration;

use serde_json::{Map, Value, json};
use shared::{
    automation::RunCause,
    models::{Automation, AutomationRun, Binding, BodyFormat, RequestAuth, RequestTemplate, RunTrigger},
};

use super::{Tenant, World};
use crate::{Answer, Event};

impl World {
    /// Stores `offer` in the memory of an automation.
    pub fn remembers_offer(&self, owner: &Tenant, automation: &str) {
        let organization = &owner.organization_id;
        self.aws.put("automation_memory", &json!({"organization_id": organization, "place": automation, "keys": 1}));
        self.aws.put(
            "automation_memory",
            &json!({
                "organization_id": organization, "place": format!("{automation}#offer"), "automation_id": automation, "key": "offer",
                "value": "true", "version": 1, "created_at": "2026-01-01T00:00:00.000Z", "updated_at": "2026-01-01T00:00:00.000Z",
                "expires_at": 4_000_000_000_u64,
            }),
        );
    }

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

    /// `slack_post_message` with these parameters, all required.
    pub fn slack_tool(&self, parameters: &Value) {
        let required: Vec<&String> = parameters.as_object().expect("an object").keys().collect();
        let schema = json!({
            "type": "object", "properties": parameters, "required": required, "additionalProperties": false,
        });
        self.service_tool_with("Slack", "slack_post_message", &json!({"description": "Posts.", "parameters": schema}));
    }

    /// The fingerprint from `fetch_tool_data`.
    pub fn fingerprint(&self, tool: &str) -> String {
        let rows = self.aws.rows("service_tools");
        let row = rows.iter().find(|row| row["name"] == tool).expect("the tool is in the catalogue");
        row["fingerprint"].as_str().expect("a fingerprint").to_owned()
    }

    /// A valid definition: posts urgent messages to a channel.
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

    /// A service that needs no account, with the tools `ledger_post` (has an effect) and `ledger_read` (none): POST
    /// and GET of `{url}/ledger/{entry}`, where `entry` is their only required parameter.
    pub fn ledger_service(&self, url: &str) {
        self.service("Ledger", None);
        for (name, method, effect) in [("ledger_post", "POST", true), ("ledger_read", "GET", false)] {
            let binding = Binding::ApiRequest(RequestTemplate {
                method: method.to_owned(),
                url: format!("{url}/ledger/{{entry}}"),
                query: Vec::new(),
                headers: [].into(),
                body: if effect { BodyFormat::Json } else { BodyFormat::None },
                fixed: Map::new(),
                auth: RequestAuth::None,
                idempotency_key: None,
                refused_by: Vec::new(),
            });
            let parameters = json!({
                "type": "object",
                "properties": {"entry": {"type": "string"}, "amount": {"type": "number"}, "note": {"type": "string"}},
                "required": ["entry"], "additionalProperties": false,
            });
            let attributes = json!({
                "description": "Keeps books.", "parameters": parameters, "effect": effect, "binding": binding,
                "category": if effect { "write" } else { "read" },
            });
            self.service_tool_with("Ledger", name, &attributes);
        }
    }

    /// A manual automation with these actions; adds their tools' fingerprints.
    pub fn manual(&self, actions: &Value) -> Value {
        let tools = tools_of(actions);
        let (of_services, own) = (self.aws.rows("service_tools"), self.aws.rows("tools"));
        let called = |rows: &[Value], name: &str| rows.iter().find(|row| row["name"] == name).cloned();
        let fingerprint = |name: &str| match (called(&of_services, name), called(&own, name)) {
            (Some(row), _) => row["fingerprint"].clone(),
            (None, Some(row)) => format!("v{}", row["version"]).into(),
            (None, None) => "built-in".into(),
        };
        let fingerprints: Map<String, Value> =
            tools.into_iter().map(|name| (name.to_owned(), fingerprint(name))).collect();
        json!({"name": "By hand", "trigger_type": "manual", "actions": actions, "fingerprints": fingerprints})
    }

    /// Saves a definition and activates it; returns the automation.
    pub async fn activate(&self, definition: &Value) -> Automation {
        let saved = self.deploy(definition).await;
        assert!(matches!(saved.status, 200 | 201), "{}", saved.body);
        let id = saved.body["automation"]["id"].as_str().expect("an id").to_owned();
        let version = saved.body["automation"]["version"].clone();
        self.automation("POST", &format!("/{id}/activate"), &json!({"version": version})).await.expect(200);
        self.automation_row(&id).await
    }

    pub async fn automation_row(&self, id: &str) -> Automation {
        let organization = self.home.organization_id.parse().expect("an id");
        let id = id.parse().expect("an id");
        self.process.run_loop.automations.get(organization, id).await.expect("the automation is there")
    }

    /// Starts a run with this trigger data; a repeated cause returns the same run.
    pub async fn start_automation(&self, automation: &Automation, cause: &str, trigger_data: &Value) -> AutomationRun {
        self.start_automation_with(automation, cause, trigger_data, false).await
    }

    pub async fn start_automation_with(
        &self,
        automation: &Automation,
        cause: &str,
        trigger_data: &Value,
        dry_run: bool,
    ) -> AutomationRun {
        let cause = RunCause {
            trigger: RunTrigger::Manual,
            key: cause,
            trigger_data,
            event: None,
            scheduled_for: None,
            user: None,
            version: None,
            dry_run,
            parent: None,
        };
        self.process.run_starter.start(automation, &cause).await.expect("a run is started").0
    }

    /// A run whose first action succeeded and whose second one failed without an effect.
    pub async fn failed_run(&self) -> AutomationRun {
        let zone = |id: &str, zone: &str| json!({"id": id, "tool": "current_time", "parameters": {"timeZone": zone}});
        let actions = json!([zone("here", "UTC"), zone("there", "{{trigger_data.zone}}")]);
        let automation = self.activate(&self.manual(&actions)).await;
        let run = self.start_automation(&automation, "fails", &json!({"zone": "Nowhere/Land"})).await;
        assert_eq!(self.run_loop(Duration::from_secs(60)).await, 0);
        run
    }

    /// `POST /api/{slug}/automations`.
    pub async fn deploy(&self, definition: &Value) -> Answer {
        self.automation("POST", "", definition).await
    }

    /// A request below `/api/{slug}/automations`; a null body is omitted.
    pub async fn automation(&self, method: &str, path: &str, body: &Value) -> Answer {
        self.automation_as(&self.home, method, path, body).await
    }

    pub async fn automation_as(&self, tenant: &Tenant, method: &str, path: &str, body: &Value) -> Answer {
        self.send("deploy", &automation_event(tenant, method, path, body)).await
    }

    /// `PUT /api/{slug}/automations/{id}` with this `ETag` in `If-Match`.
    pub async fn put_automation(&self, id: &str, etag: &str, definition: &Value) -> Answer {
        let event = automation_event(&self.home, "PUT", &format!("/{id}"), definition).header("if-match", etag);
        self.send("deploy", &event).await
    }
}

/// A request below `/api/{slug}/automations`; `path` may have a query.
pub fn automation_event(tenant: &Tenant, method: &str, path: &str, body: &Value) -> Event {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let mut event = Event::new(method, &format!("/api/{}/automations{path}", tenant.slug)).user(&tenant.user_id);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        event = event.query(name, value);
    }
    if body.is_null() { event } else { event.header("content-type", "application/json").text(body.to_string()) }
}

impl World {
    /// `POST /api/{slug}/automations/{id}/run`.
    pub async fn run_by_hand(&self, automation: &str, body: &Value) -> Answer {
        self.automation("POST", &format!("/{automation}/run"), body).await
    }

    /// A request below `/api/{slug}/approvals`; a null body is omitted.
    pub async fn approvals(&self, method: &str, path: &str, body: &Value) -> Answer {
        let event = automation_event(&self.home, method, path, body);
        let path = event.path.replacen("/automations", "/approvals", 1);
        self.send("approvals", &Event { path, ..event }).await
    }

    /// The pending approvals.
    pub async fn asked(&self) -> Vec<Value> {
        let page = self.approvals("GET", "?status=pending", &Value::Null).await.expect(200);
        page["items"].as_array().expect("a list").clone()
    }
}

/// The tools that actions name, those in loops and branches included.
fn tools_of(actions: &Value) -> Vec<&str> {
    let mut tools = Vec::new();
    for action in actions.as_array().into_iter().flatten() {
        tools.extend(action["tool"].as_str());
        let branches = action["choose"].as_array().into_iter().flatten().map(|branch| &branch["actions"]);
        for inner in branches.chain([&action["actions"], &action["otherwise"], &action["catch"]]) {
            tools.extend(tools_of(inner));
        }
    }
    tools
}
