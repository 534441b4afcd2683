//! Tools over the API: creation, changes, attachments and tests.

use serde_json::{Value, json};

use super::{Tenant, World, id};
use crate::{Answer, Event};

impl World {
    /// `POST /api/{slug}/tools`.
    pub async fn create(&self, body: &Value) -> Answer {
        self.create_as(&self.home, body).await
    }

    pub async fn create_as(&self, tenant: &Tenant, body: &Value) -> Answer {
        let event = Event::post(&format!("/api/{}/tools", tenant.slug), body).user(&tenant.user_id);
        self.send("create-tool", &event).await
    }

    /// Attaches a tool to the home organization's agent.
    pub async fn attach(&self, tool_id: &str) -> Answer {
        self.attach_as(&self.home, &self.home.agent_id, tool_id).await
    }

    pub async fn attach_as(&self, tenant: &Tenant, agent_id: &str, tool_id: &str) -> Answer {
        let path = format!("/api/{}/agents/{agent_id}/tools/attach", tenant.slug);
        self.send("attach", &Event::post(&path, &json!({"tool_id": tool_id})).user(&tenant.user_id)).await
    }

    /// Detaches a tool from the home organization's agent.
    pub async fn detach(&self, tool_id: &str) -> Answer {
        self.detach_as(&self.home, &self.home.agent_id, tool_id).await
    }

    pub async fn detach_as(&self, tenant: &Tenant, agent_id: &str, tool_id: &str) -> Answer {
        let path = format!("/api/{}/agents/{agent_id}/tools/detach", tenant.slug);
        self.send("detach", &Event::post(&path, &json!({"tool_id": tool_id})).user(&tenant.user_id)).await
    }

    /// `PATCH /api/{slug}/tools/{id}`.
    pub async fn update(&self, tool: &Value, changes: &Value) -> Answer {
        self.update_as(&self.home, tool, changes).await
    }

    pub async fn update_as(&self, tenant: &Tenant, tool: &Value, changes: &Value) -> Answer {
        self.send("update-tool", &edit(tenant, tool, changes)).await
    }

    /// Like [`World::update`], with `If-Match`.
    pub async fn update_seen(&self, tool: &Value, seen: &str, changes: &Value) -> Answer {
        self.send("update-tool", &edit(&self.home, tool, changes).header("if-match", seen)).await
    }

    /// `DELETE /api/{slug}/tools/{id}`.
    pub async fn delete(&self, tool: &Value) -> Answer {
        self.delete_as(&self.home, tool).await
    }

    pub async fn delete_as(&self, tenant: &Tenant, tool: &Value) -> Answer {
        let path = format!("/api/{}/tools/{}", tenant.slug, id(tool));
        self.send("delete", &Event::new("DELETE", &path).user(&tenant.user_id)).await
    }

    /// Creates a tool of the home organization.
    pub async fn tool(&self, body: &Value) -> Value {
        self.create(body).await.expect(201)
    }

    /// Creates a tool and attaches it.
    pub async fn attached(&self, body: &Value) -> Value {
        let tool = self.tool(body).await;
        self.attach(id(&tool)).await.expect(201);
        tool
    }

    /// A GET below `/api/{slug}`: `list("/tools?limit=5")`.
    pub async fn list(&self, path: &str) -> Answer {
        self.list_as(&self.home, path).await
    }

    pub async fn list_as(&self, tenant: &Tenant, path: &str) -> Answer {
        self.get_as("list-tools", tenant, path).await
    }

    /// `POST /api/{slug}/tools/test`.
    pub async fn try_tool(&self, body: &Value) -> Answer {
        self.try_tool_as(&self.home, body).await
    }

    pub async fn try_tool_as(&self, tenant: &Tenant, body: &Value) -> Answer {
        let event = Event::post(&format!("/api/{}/tools/test", tenant.slug), body).user(&tenant.user_id);
        self.send("tools-test", &event).await
    }

    /// The rows of `tools`, without the guard items of names.
    pub fn tools(&self) -> Vec<Value> {
        self.aws.rows("tools").into_iter().filter(|row| row.get("label").is_some()).collect()
    }
}

fn edit(tenant: &Tenant, tool: &Value, changes: &Value) -> Event {
    let path = format!("/api/{}/tools/{}", tenant.slug, id(tool));
    Event::new("PATCH", &path).text(changes.to_string()).user(&tenant.user_id)
}
