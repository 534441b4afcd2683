//! VAPI's `tool-calls` server message, and the parts that all its messages share.

use serde_json::{Map, Value, json};

use super::tool_call::Call;
use crate::standins::clock;

/// The subject of a message.
pub(super) struct EventContext<'a> {
    pub(super) org_id: &'a str,
    pub(super) assistant: &'a Map<String, Value>,
    pub(super) tool: &'a Map<String, Value>,
    pub(super) call: &'a Call,
    pub(super) tool_call_id: &'a str,
    pub(super) name: &'a str,
    /// Including the static parameters.
    pub(super) arguments: Value,
    pub(super) from_model: &'a Map<String, Value>,
}

/// `{"message": {…}}`. The history holds the model's own arguments as text, without static parameters.
pub(super) fn tool_calls(occasion: &EventContext<'_>) -> Value {
    let EventContext { org_id, assistant, tool, call, tool_call_id, name, arguments, from_model } = occasion;
    let now = clock::now();
    let wish = json!({
        "id": tool_call_id,
        "type": "function",
        "function": { "name": name, "arguments": arguments },
        "isPrecededByText": false,
    });
    let mut tool_with_call = (*tool).clone();
    tool_with_call.insert("toolCall".to_owned(), wish.clone());
    let history = history(assistant, tool_call_id, name, from_model, now.as_millisecond());
    let formatted: Vec<_> =
        prompt(assistant).map(|text| json!({ "role": "system", "content": text })).into_iter().collect();
    let customer = json!({ "number": call.customer_number });
    json!({
        "message": {
            "timestamp": now.as_millisecond(),
            "type": "tool-calls",
            "toolCalls": [wish],
            "toolCallList": [wish],
            "toolWithToolCallList": [tool_with_call],
            "artifact": {
                "messages": history,
                "messagesOpenAIFormatted": formatted,
                "variables": call.variable_values,
                "variableValues": call.variable_values,
            },
            "call": call.object,
            "phoneNumber": phone_number(&call.phone_number_id, org_id, &call.phone_number, &call.started_at),
            "customer": customer,
            "assistant": assistant,
        }
    })
}

/// VAPI's record of a number, created at `since`.
pub(super) fn phone_number(id: &str, org_id: &str, number: &str, since: &str) -> Map<String, Value> {
    let record = json!({
        "id": id,
        "orgId": org_id,
        "provider": "twilio",
        "number": number,
        "name": "Main line",
        "createdAt": since,
        "updatedAt": since,
        "status": "active",
    });
    record.as_object().cloned().unwrap_or_default()
}

fn prompt(assistant: &Map<String, Value>) -> Option<&str> {
    let messages = assistant.get("model")?.get("messages")?.as_array()?;
    let system = messages.iter().find(|message| message.get("role").and_then(Value::as_str) == Some("system"))?;
    system.get("content")?.as_str()
}

fn history(
    assistant: &Map<String, Value>,
    tool_call_id: &str,
    name: &str,
    from_model: &Map<String, Value>,
    now: i64,
) -> Vec<Value> {
    let mut messages = Vec::new();
    if let Some(text) = prompt(assistant) {
        messages.push(json!({ "role": "system", "message": text, "time": now, "secondsFromStart": 0 }));
    }
    messages.push(json!({
        "role": "tool_calls",
        "message": "",
        "time": now,
        "secondsFromStart": 0.5,
        "toolCalls": [{
            "id": tool_call_id,
            "type": "function",
            "function": { "name": name, "arguments": Value::Object(from_model.clone()).to_string() },
        }],
    }));
    messages
}
