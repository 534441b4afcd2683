//! Hooks over the API, and their events.

use std::time::Duration;

use serde_json::{Value, json};
use shared::{
    Deadline,
    lifecycle::NewHook,
    models::{HookId, Scheme},
    webhooks::HookSecret,
};

use super::{Tenant, World};
use crate::{
    Answer, Event,
    webhooks::{Signer, signed},
};

/// Slack's signing secret for the home organization.
pub const SLACK_SECRET: &str = "8f742231b10e8888abcd99yyyzzz85a5";
/// The workspace of [`slack_message`], in a hook's notation.
pub const SLACK_TENANT: &str = "A0MDYCDME#T061EG9R6";

impl World {
    /// A request below `/api/{slug}/hooks` as this organization's user; a null body is omitted.
    pub async fn hooks(&self, tenant: &Tenant, method: &str, path: &str, body: &Value) -> Answer {
        let event = Event::new(method, &format!("/api/{}/hooks{path}", tenant.slug)).user(&tenant.user_id);
        self.send("hooks", &if body.is_null() { event } else { event.text(body.to_string()) }).await
    }

    /// Creates a hook of the home organization.
    pub async fn hook(&self, body: &Value) -> Value {
        self.hooks(&self.home, "POST", "", body).await.expect(201)
    }

    /// A hook for Slack's messages; its address is the home organization's own.
    pub async fn slack_hook(&self) -> Value {
        self.hook(&json!({"service": "Slack", "secret": SLACK_SECRET})).await
    }

    pub fn hook_path(&self, hook: &Value) -> String {
        let url = hook["url"].as_str().expect("an address");
        url.strip_prefix(&self.options.public_url).expect("an address of ours").to_owned()
    }

    /// Sends a request to a hook's address, signed now.
    pub async fn deliver_signed(&self, hook: &Value, signer: Signer<'_>, body: &Value) -> Answer {
        self.send("trigger", &self.signed(&self.hook_path(hook), signer, body)).await
    }

    pub fn signed(&self, path: &str, signer: Signer<'_>, body: &Value) -> Event {
        signed(&self.options.public_url, path, signer, &body.to_string())
    }

    /// Sends a Slack message to its hook.
    pub async fn slack_says(&self, hook: &Value, id: &str, text: &str) -> Answer {
        self.deliver_signed(hook, Signer::Slack(SLACK_SECRET), &slack_message(id, text)).await
    }

    /// A request below `/api/{slug}/events/replays` as this organization's user; a null body is omitted.
    pub async fn replays(&self, tenant: &Tenant, method: &str, path: &str, body: &Value) -> Answer {
        let event = Event::new(method, &format!("/api/{}/events/replays{path}", tenant.slug)).user(&tenant.user_id);
        self.send("hooks", &if body.is_null() { event } else { event.text(body.to_string()) }).await
    }

    /// `GET /api/{slug}/events` and below.
    pub async fn events(&self, path: &str) -> Answer {
        self.get_as("hooks", &self.home, &format!("/events{path}")).await
    }

    /// Saves and activates an automation; returns its id.
    pub async fn active(&self, definition: &Value) -> String {
        let saved = self.deploy(definition).await.expect(201);
        let id = saved["automation"]["id"].as_str().expect("an id").to_owned();
        self.automation("POST", &format!("/{id}/activate"), &json!({"version": 1})).await.expect(200);
        id
    }

    /// A service with the events of its catalogue file; it needs no account.
    pub fn catalogue_service(&self, file: &str) {
        let files = crate::catalogue::files().expect("the catalogue's files can be read");
        let file = files.get(file).or_else(|| files.get(&format!("{file}.json"))).expect("a file of the catalogue");
        let name = file["name"].as_str().expect("a name");
        let capabilities = &file["capabilities"];
        let (events, polled) = (&capabilities["webhook_payload_schemas"], &capabilities["polling_endpoints"]);
        let others = capabilities["other_webhook_events"].as_array().into_iter().flatten();
        let described = events.as_object().expect("events").keys();
        let names: Vec<Value> = described.map(|name| json!(name)).chain(others.cloned()).collect();
        self.service(name, None);
        self.service_capabilities(
            name,
            &json!({
                "supports_webhooks": !names.is_empty(), "webhook_events": names, "webhook_payload_schemas": events,
                "supports_polling": polled.as_object().is_some_and(|polled| !polled.is_empty()),
                "polling_endpoints": polled,
            }),
        );
    }

    /// A hook of the home organization for an automation's trigger at Pipedream.
    pub async fn pipedream_hook(&self, automation: &str, secret: &str) -> Value {
        let new = NewHook {
            id: HookId::generate(),
            service: "pipedream".to_owned(),
            scheme: Scheme::Pipedream,
            own: None,
            label: String::new(),
            tenant_key: None,
            deployed: Some((automation.parse().expect("an id"), None)),
            secret: Some(HookSecret::of(secret).to_secret()),
        };
        let (organization, deadline) =
            (self.home.organization_id.parse().expect("an id"), Deadline::after(Duration::from_secs(20)));
        let hook = self.process.hooks.registry.create(organization, new, deadline).await.expect("a hook");
        json!({"id": hook.id, "url": format!("{}/api/hooks/pipedream/{}", self.options.public_url, hook.id)})
    }

    /// The rows of an automation's runs.
    pub fn runs_of(&self, automation: &str) -> Vec<Value> {
        let rows = self.aws.rows("automation_runs").into_iter();
        rows.filter(|row| row["part"] == "run" && row["automation_id"] == automation).collect()
    }
}

pub fn slack_message(id: &str, text: &str) -> Value {
    json!({
        "team_id": "T061EG9R6", "context_team_id": "T061EG9R6", "api_app_id": "A0MDYCDME",
        "event": {
            "type": "message", "channel": "C0PNCHHK2", "user": "U061F7AUR", "text": text, "ts": "1795298399.000200",
            "channel_type": "channel",
        },
        "type": "event_callback", "event_id": id, "event_time": 1_795_298_399,
        "authorizations": [{"enterprise_id": null, "team_id": "T061EG9R6", "user_id": "U0BOT1234", "is_bot": true}],
    })
}
