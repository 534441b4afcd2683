//! The MCP server and the agent tools, as clients use them.

use serde_json::{Value, json};

use super::World;
use crate::{Answer, Event};

/// The protocol version of current clients.
pub const PROTOCOL: &str = "2025-11-25";

impl World {
    /// A message to the home organization's MCP server, with a valid token of its user.
    pub async fn mcp(&self, message: &Value) -> Answer {
        self.send("mcp", &self.mcp_event(message)).await
    }

    pub fn mcp_event(&self, message: &Value) -> Event {
        self.mcp_event_of(&self.home.user_id, message)
    }

    pub fn mcp_event_of(&self, user: &str, message: &Value) -> Event {
        let bearer = format!("Bearer {}", self.issuer.token(user));
        Event::post(&format!("/api/{}/mcp", self.home.slug), message)
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", PROTOCOL)
            .header("authorization", &bearer)
    }

    pub async fn mcp_call(&self, tool: &str, arguments: &Value) -> Value {
        self.mcp_call_of(&self.home.user_id, tool, arguments).await
    }

    pub async fn mcp_call_of(&self, user: &str, tool: &str, arguments: &Value) -> Value {
        let message = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments},
        });
        let answer = self.send("mcp", &self.mcp_event_of(user, &message)).await.expect(200);
        assert_eq!((&answer["id"], &answer["jsonrpc"]), (&json!(1), &json!("2.0")), "{answer}");
        answer.get("result").unwrap_or_else(|| panic!("{answer}")).clone()
    }

    /// Issues the voice token of the home organization's agent.
    pub async fn voice_token(&self) -> String {
        let path = format!("/api/{}/agents/{}/voice-token", self.home.slug, self.home.agent_id);
        let issued = self.send("agents", &Event::new("POST", &path).user(&self.home.user_id)).await.expect(201);
        issued["token"].as_str().expect("a token").to_owned()
    }

    /// A message to the home organization's voice MCP server.
    pub fn voice_event(&self, token: &str, message: &Value) -> Event {
        Event::post(&format!("/api/{}/voice/mcp", self.home.slug), message)
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", PROTOCOL)
            .header("authorization", &format!("Bearer {token}"))
    }

    /// A call of a tool; the platform describes the phone call in these headers.
    pub fn voice_call(&self, token: &str, call: &[(&str, &str)], tool: &str, arguments: &Value) -> Event {
        let message = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments},
        });
        call.iter().fold(self.voice_event(token, &message), |event, (name, value)| event.header(name, value))
    }

    /// `POST /api/{slug}/agents/{id}/context` of the home organization's agent.
    pub async fn call_context(&self, token: &str, body: &Value) -> Answer {
        let path = format!("/api/{}/agents/{}/context", self.home.slug, self.home.agent_id);
        let event = Event::post(&path, body).header("authorization", &format!("Bearer {token}"));
        self.send("mcp", &event).await
    }

    /// `POST /api/{slug}/agent-tools/{name}` as this user.
    pub async fn agent_tool_of(&self, user: &str, tool: &str, arguments: &Value) -> Answer {
        let event = Event::post(&format!("/api/{}/agent-tools/{tool}", self.home.slug), arguments).user(user);
        self.send("mcp", &event).await
    }
}

/// The text of a tool call's result, and whether the call failed.
#[track_caller]
pub fn said(result: &Value) -> (bool, &str) {
    let failed = result["isError"].as_bool().expect("isError");
    assert_eq!(result["content"].as_array().map(Vec::len), Some(1), "{result}");
    assert_eq!(result["content"][0]["type"], "text", "{result}");
    (failed, result["content"][0]["text"].as_str().expect("text"))
}
