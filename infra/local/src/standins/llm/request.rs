//! Validates a chat completion request: known fields only, each of its type.

use serde_json::{Map, Value};

use super::super::exchange::Request;

const FIELDS: [&str; 25] = [
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "metadata",
    "model",
    "models",
    "parallel_tool_calls",
    "plugins",
    "provider",
    "reasoning",
    "response_format",
    "seed",
    "session_id",
    "stop",
    "stream",
    "stream_options",
    "temperature",
    "tool_choice",
    "tools",
    "top_p",
    "usage",
    "user",
    "frequency_penalty",
    "presence_penalty",
    "logit_bias",
];
const MESSAGE_FIELDS: [&str; 6] = ["role", "content", "name", "tool_calls", "tool_call_id", "refusal"];

/// The body, or the reason why it is invalid.
pub(super) fn read(request: &Request) -> Result<Value, String> {
    if !request.is_json() {
        return Err("the body must be application/json".to_owned());
    }
    let body = request.json().map_err(|problem| format!("the body is not JSON: {problem}"))?;
    let fields = body.as_object().ok_or("the body must be an object")?;
    problem(fields).map_or(Ok(()), Err)?;
    Ok(body)
}

fn problem(body: &Map<String, Value>) -> Option<String> {
    let refuse = |problem: &str| Some(problem.to_owned());
    if let Some(unknown) = body.keys().find(|name| !FIELDS.contains(&name.as_str())) {
        return Some(format!("unknown field: {unknown}"));
    }
    let text = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
    let named = match (body.get("model"), body.get("models").and_then(Value::as_array)) {
        (None, Some(models)) => !models.is_empty() && models.iter().all(text),
        (model, _) => model.is_some_and(text),
    };
    if !named {
        return refuse("model is required");
    }
    let within = |name: &str, most: f64| {
        body.get(name).is_none_or(|value| value.as_f64().is_some_and(|number| (0.0..=most).contains(&number)))
    };
    if !within("temperature", 2.0) || !within("top_p", 1.0) {
        return refuse("temperature must be 0 to 2, top_p 0 to 1");
    }
    let positive = |name: &str| body.get(name).is_none_or(|value| value.as_u64().is_some_and(|number| number > 0));
    if !positive("max_tokens") || !positive("max_completion_tokens") {
        return refuse("max_tokens must be a whole number above 0");
    }
    if !body.get("stream").is_none_or(Value::is_boolean) {
        return refuse("stream must be a boolean");
    }
    if body.contains_key("stream_options") && body.get("stream") != Some(&Value::Bool(true)) {
        return refuse("stream_options is only allowed when stream is true");
    }
    let Some(messages) = body.get("messages").and_then(Value::as_array).filter(|messages| !messages.is_empty()) else {
        return refuse("messages must be a list with at least one message");
    };
    let wrong = messages.iter().enumerate().find_map(|(at, message)| wrong_message(at, message));
    if let Some(problem) = wrong.or_else(|| wrong_order(messages)) {
        return Some(problem);
    }
    match body.get("tools") {
        None => None,
        Some(tools) if tools.as_array().is_some_and(|tools| tools.iter().all(is_function)) => None,
        Some(_) => refuse("tools must be a list of functions with names of 1 to 64 letters, digits, _ and -"),
    }
}

fn wrong_message(at: usize, message: &Value) -> Option<String> {
    let Some(fields) = message.as_object() else { return Some(format!("messages[{at}] must be an object")) };
    if let Some(unknown) = fields.keys().find(|name| !MESSAGE_FIELDS.contains(&name.as_str())) {
        return Some(format!("messages[{at}].{unknown} is unknown"));
    }
    let role = fields.get("role").and_then(Value::as_str).unwrap_or_default();
    if !matches!(role, "system" | "developer" | "user" | "assistant" | "tool") {
        return Some(format!("messages[{at}].role must be system, developer, user, assistant or tool"));
    }
    let called = role == "assistant" && fields.get("tool_calls").is_some_and(Value::is_array);
    let said = match fields.get("content") {
        Some(Value::String(text)) => called || !text.trim().is_empty(),
        Some(Value::Array(parts)) => {
            !parts.is_empty() && parts.iter().all(|part| part.get("type").is_some_and(Value::is_string))
        }
        None | Some(Value::Null) => called,
        Some(_) => false,
    };
    if !said {
        return Some(format!("messages[{at}].content must be a text or a list of parts, not empty"));
    }
    if role == "tool" && !fields.get("tool_call_id").is_some_and(Value::is_string) {
        return Some(format!("messages[{at}].tool_call_id is required"));
    }
    None
}

/// The reason why the order is refused: Anthropic refuses an end with the assistant, Mistral and vLLM's templates the rest.
fn wrong_order(messages: &[Value]) -> Option<String> {
    let roles = || messages.iter().map(|message| message.get("role").and_then(Value::as_str).unwrap_or_default());
    let is_system = |role: &str| matches!(role, "system" | "developer");
    if let Some(at) = roles().skip(1).position(is_system) {
        return Some(format!("messages[{}]: a system message must be the first message", at + 1));
    }
    let in_a_row =
        roles().zip(roles().skip(1)).any(|(role, next)| role == next && matches!(role, "user" | "assistant"));
    if in_a_row || roles().find(|role| !is_system(role)) != Some("user") {
        return Some("after the system message, user and assistant must alternate, the user first".to_owned());
    }
    let ends_well = roles().next_back().is_some_and(|role| matches!(role, "user" | "tool"));
    (!ends_well).then(|| "the last message must have the role user or tool".to_owned())
}

fn is_function(tool: &Value) -> bool {
    let name = tool.get("function").and_then(|function| function.get("name")).and_then(Value::as_str);
    tool.get("type").and_then(Value::as_str) == Some("function")
        && name.is_some_and(|name| {
            (1..=64).contains(&name.len())
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
        })
}
