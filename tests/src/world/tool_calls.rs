//! Tool calls during a phone call, and their history.

use local::standins::vapi::ToolCall;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{CREDENTIAL, Tenant, World, id, phone};
use crate::{Answer, Event};

impl World {
    /// `POST /api/tools/{id}/execute` with this body.
    pub async fn execute(&self, tool_id: &str, body: &Value) -> Answer {
        self.send("execute", &Event::post(&format!("/api/tools/{tool_id}/execute"), body)).await
    }

    /// A call of an attached tool in a new phone call to the home organization's number.
    pub fn call(&self, tool: &Value, arguments: Value) -> ToolCall {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        ToolCall {
            assistant_id: self.home.assistant_id.clone(),
            tool_name: tool["name"].as_str().expect("a tool has a name").to_owned(),
            arguments,
            customer_number: phone(1),
            phone_number: self.home.phone_number.clone(),
            call_id: Some(Uuid::now_v7().to_string()),
            ..ToolCall::default()
        }
    }

    /// VAPI's exact request for a tool call, as API Gateway passes it on.
    #[track_caller]
    pub fn vapi_event(&self, call: &ToolCall) -> Event {
        let outgoing = self.vapi.outgoing(call).expect("VAPI can call the tool");
        let path = outgoing.url.strip_prefix(&self.options.public_url).expect("the tool's URL is ours");
        let mut event = Event::new(&outgoing.method, path);
        for (name, value) in &outgoing.headers {
            event = event.header(name, value);
        }
        event.body = outgoing.body.map(|body| body.to_string());
        event
    }

    /// The caller hears the tool's sentences in the meantime ([`Standin::spoken`](local::standins::Standin::spoken)).
    pub async fn call_tool(&self, call: &ToolCall) -> Answer {
        let event = self.vapi_event(call);
        let failed = |answer: &Answer| !(200..300).contains(&answer.status);
        self.vapi.while_speaking(call, self.send("execute", &event), failed).await
    }

    /// Creates a `function` tool at VAPI that sends its `tool-calls` messages to this tool, attached to the home
    /// organization's assistant. [`World::call_tool`] then uses VAPI's message format.
    pub async fn function_tool(&self, tool: &Value) {
        let url = format!("{}/api/tools/{}/execute", self.options.public_url, id(tool));
        let function = json!({
            "type": "function",
            "function": tool["function_schema"],
            "server": {"url": url, "credentialId": CREDENTIAL},
        });
        let made = self.at_vapi("POST", "/tool", &function).await;
        let path = format!("/assistant/{}", self.home.assistant_id);
        let mut model = self.model();
        model["toolIds"].as_array_mut().expect("toolIds").push(made["id"].clone());
        self.at_vapi("PATCH", &path, &json!({"model": model})).await;
    }

    /// Ages every claim by this many seconds.
    pub fn age_claims(&self, seconds: i64) {
        for record in self.aws.rows("idempotency") {
            let times = record.as_object().into_iter().flatten().filter_map(|(name, value)| {
                let time = value.as_i64().filter(|_| name.ends_with("_until") || name == "expires_at")?;
                Some((name.clone(), json!(time - if name == "lease_until" { seconds * 1_000 } else { seconds })))
            });
            self.aws.change("idempotency", record["id"].as_str().expect("a row has an id"), times.collect());
        }
    }

    /// The history, oldest first.
    pub fn executions(&self) -> Vec<Value> {
        let mut rows = self.aws.rows("executions");
        // The table also has entries that find executions by recipient.
        rows.retain(|row| row["tool_id"].is_string());
        rows.sort_by_key(|row| row["id"].as_str().unwrap_or_default().to_owned());
        rows
    }

    /// The executions of a call: `executions_of_call("<id>?limit=5")`.
    pub async fn executions_of_call(&self, call: &str) -> Answer {
        self.executions_of_call_as(&self.home, call).await
    }

    pub async fn executions_of_call_as(&self, tenant: &Tenant, call: &str) -> Answer {
        let (id, query) = call.split_once('?').unwrap_or((call, ""));
        self.get_as("calls", tenant, &format!("/calls/{id}/executions?{query}")).await
    }
}
