//! Members of organizations, their keys at VAPI, and the objects there.

use serde_json::{Value, json};
use shared::models::Timestamp;
use uuid::Uuid;

use super::{ORGANIZATION_SECRETS, PLATFORM_KEY, Tenant, World};
use crate::{Answer, Event};

impl World {
    /// A request below `/api/{slug}/keys` as this organization's user; a null body is omitted.
    pub async fn keys(&self, tenant: &Tenant, method: &str, path: &str, body: &Value) -> Answer {
        let event = Event::new(method, &format!("/api/{}/keys{path}", tenant.slug)).user(&tenant.user_id);
        self.send("keys", &if body.is_null() { event } else { event.text(body.to_string()) }).await
    }

    /// Adds a member with this role or none; returns the user's `sub`.
    pub fn member(&self, tenant: &Tenant, role: Option<&str>) -> String {
        let user = format!("user|{}|{}", tenant.slug, role.unwrap_or("no role"));
        let mut row = json!({"user_id": user, "organization_id": tenant.organization_id});
        if let Some(role) = role {
            row["role"] = json!(role);
        }
        self.aws.put("organization_members", &row);
        user
    }

    /// Gives an organization its own VAPI key, bypassing the checks.
    pub fn own_key(&self, tenant: &Tenant, secret: &Value) {
        let key = Uuid::now_v7().to_string();
        let organization = &tenant.organization_id;
        self.aws.put_secret(&format!("{ORGANIZATION_SECRETS}vapi/{organization}/{key}"), secret);
        let own = json!({"vapi": {"id": key, "updated_at": Timestamp::now()}});
        self.aws.change("organizations", organization, json!({"own_keys": own}));
    }

    /// The model of the home organization's assistant.
    pub fn model(&self) -> Value {
        let assistant = self.vapi.assistant(&self.home.assistant_id).expect("the assistant");
        assistant["model"].clone()
    }

    /// `toolIds` of the home organization's assistant.
    pub fn tool_ids(&self) -> Vec<String> {
        let model = self.model();
        model["toolIds"].as_array().into_iter().flatten().map(|id| id.as_str().expect("an id").to_owned()).collect()
    }

    /// A direct request to VAPI's API; returns the body of a success.
    pub async fn at_vapi(&self, method: &str, path: &str, body: &Value) -> Value {
        self.at_vapi_with(PLATFORM_KEY, method, path, body).await
    }

    /// Like [`World::at_vapi`], with another key.
    pub async fn at_vapi_with(&self, key: &str, method: &str, path: &str, body: &Value) -> Value {
        let method = method.parse().expect("a method");
        let request = self.http.request(method, format!("{}{path}", self.vapi.url)).bearer_auth(key);
        let answer = request.json(body).send().await.expect("VAPI's stand-in answers");
        let status = answer.status();
        let body: Value = answer.json().await.expect("JSON");
        assert!(status.is_success(), "{body}");
        body
    }

    /// Stores the proof at VAPI that an assistant of the platform's account belongs to the organization.
    pub async fn prove(&self, tenant: &Tenant, assistant_id: &str) {
        let organization = tenant.organization_id.parse().expect("an id");
        let proof = self.process.tokens.assistant_proof(organization, assistant_id).await.expect("the key can be read");
        let metadata = json!({"metadata": {"switchboard": proof}});
        self.at_vapi("PATCH", &format!("/assistant/{assistant_id}"), &metadata).await;
    }

    /// Adds agents to the home organization, each with an assistant at VAPI; returns their ids.
    pub async fn agents(&self, count: usize) -> Vec<String> {
        let mut agents = Vec::new();
        for number in 0..count {
            let assistant =
                json!({"name": format!("Agent {number}"), "model": {"provider": "openai", "model": "gpt-4o"}});
            let assistant = self.at_vapi("POST", "/assistant", &assistant).await;
            let now = Timestamp::now().to_string();
            let agent = Uuid::new_v4().to_string();
            self.aws.put(
                "agents",
                &json!({
                    "id": agent, "organization_id": self.home.organization_id, "name": format!("Agent {number}"),
                    "external_assistant_id": assistant["id"], "created_at": now, "updated_at": now,
                }),
            );
            agents.push(agent);
        }
        agents
    }
}
