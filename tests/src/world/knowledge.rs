//! Knowledge bases over the API.

use serde_json::{Value, json};

use super::{Tenant, World, id};
use crate::{Answer, Event};

impl World {
    /// A request below `/api/{slug}/knowledge-bases`; a null body is omitted.
    pub async fn knowledge(&self, method: &str, path: &str, body: &Value) -> Answer {
        self.knowledge_as(&self.home, method, path, body).await
    }

    pub async fn knowledge_as(&self, tenant: &Tenant, method: &str, path: &str, body: &Value) -> Answer {
        let mut event =
            Event::new(method, &format!("/api/{}/knowledge-bases{path}", tenant.slug)).user(&tenant.user_id);
        if !body.is_null() {
            event = event.header("content-type", "application/json").text(body.to_string());
        }
        self.send("knowledge", &event).await
    }

    /// Attaches a knowledge base to an agent of the home organization, or detaches it: `what` is `attach` or
    /// `detach`.
    pub async fn knowledge_of(&self, agent_id: &str, what: &str, base_id: &str) -> Answer {
        let path = format!("/api/{}/agents/{agent_id}/knowledge-bases/{what}", self.home.slug);
        let event = Event::post(&path, &json!({"knowledge_base_id": base_id})).user(&self.home.user_id);
        self.send("knowledge", &event).await
    }

    /// Creates a knowledge base of the home organization with these entries, over the API.
    pub async fn knowledge_base(&self, fields: &Value, entries: &Value) -> Value {
        let body = json!({"name": "Homes for sale", "fields": fields});
        let base = self.knowledge("POST", "", &body).await.expect(201);
        let report = self.knowledge("POST", &format!("/{}/entries", id(&base)), &json!({"entries": entries})).await;
        let refused = report.expect(200)["refused"].clone();
        assert_eq!(refused, json!([]));
        base
    }
}
