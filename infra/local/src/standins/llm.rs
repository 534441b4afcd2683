//! Stand-in for an OpenAI-compatible LLM gateway: it says what a script tells it to, turn by turn.
//!
//! `PUT /script` takes the turns ([`Turn`]) in place of those left, `GET /script` shows what is left. A request that no turn is
//! left for is answered 500. With `"stream": true` an answer is sent as chunks, a word at a time.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    net::SocketAddr,
    sync::Mutex,
};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    Standin, clock,
    exchange::{Answer, Request, refused},
    locked,
    server::{self, Service},
};

#[derive(Clone, Debug)]
pub struct Options {
    pub api_key: String,
}

impl Default for Options {
    fn default() -> Self {
        Self { api_key: "llm-local-key".to_owned() }
    }
}

/// One answer. `stream` and `body` are sent exactly as they are; without them the answer is a completion with this content and
/// these tool calls.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Turn {
    pub content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// With `body`, 200 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// The whole text of an event stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<String>,
}

impl Turn {
    pub fn text(content: &str) -> Self {
        Self { content: Some(content.to_owned()), ..Self::default() }
    }

    /// A call of one tool.
    pub fn tool(name: &str, arguments: Value) -> Self {
        let call = ToolCall { id: None, name: name.to_owned(), arguments };
        Self { tool_calls: vec![call], ..Self::default() }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolCall {
    /// `call_…`; made up if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    pub name: String,
    /// Text is sent as it is, valid JSON or not.
    #[serde(default)]
    pub arguments: Value,
}

#[derive(Debug)]
pub struct Llm {
    api_key: String,
    script: Mutex<VecDeque<Turn>>,
}

pub fn start(address: SocketAddr, options: Options) -> io::Result<Standin<Llm>> {
    server::serve(address, Llm { api_key: options.api_key, script: Mutex::default() })
}

impl Standin<Llm> {
    /// Plays these turns in place of those left.
    pub fn script(&self, turns: impl IntoIterator<Item = Turn>) {
        *locked(&self.service.script) = turns.into_iter().collect();
    }

    pub fn script_left(&self) -> Vec<Turn> {
        locked(&self.service.script).iter().cloned().collect()
    }
}

impl Service for Llm {
    fn answer(&self, request: &Request) -> Answer {
        if request.method != "POST" || !matches!(request.path.as_str(), "/chat/completions" | "/v1/chat/completions") {
            return self.failure(404);
        }
        if request.bearer() != Some(self.api_key.as_str()) {
            return error(401, "No auth credentials found");
        }
        let body = match request.json() {
            Ok(body) => body,
            Err(problem) => return error(400, &format!("the body is not JSON: {problem}")),
        };
        if let Some(problem) = problem(&body) {
            return error(400, problem);
        }
        let Some(turn) = locked(&self.script).pop_front() else {
            return error(500, "the script has no turn left for this request");
        };
        let streaming = body.get("stream").and_then(Value::as_bool) == Some(true);
        let answer = match (&turn.stream, &turn.body) {
            (Some(text), _) => Answer::frames(frames(text)),
            (None, Some(exact)) => Answer::chosen(turn.status.unwrap_or(200), exact),
            (None, None) => {
                let model = body.get("model").or_else(|| body.get("models")?.get(0)).cloned().unwrap_or_default();
                let completion = Completion::of(&turn, model, &body);
                if streaming { Answer::frames(completion.chunks()) } else { Answer::json(200, &completion.whole()) }
            }
        };
        answer.with_headers(&turn.headers)
    }

    fn failure(&self, status: u16) -> Answer {
        let reason = axum::http::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
        error(status, reason.unwrap_or("error"))
    }

    async fn control(&self, request: &Request) -> Option<Answer> {
        match (request.method.as_str(), request.path.as_str()) {
            ("GET", "/script") => Some(Answer::json(200, &json!(*locked(&self.script)))),
            ("PUT", "/script") => Some(match serde_json::from_slice(&request.body) {
                Ok(turns) => {
                    *locked(&self.script) = turns;
                    Answer::empty(204)
                }
                Err(problem) => refused(problem),
            }),
            _ => None,
        }
    }
}

fn error(status: u16, message: &str) -> Answer {
    Answer::json(status, &json!({ "error": { "code": status, "message": message } }))
}

fn problem(body: &Value) -> Option<&'static str> {
    let named = body.get("model").is_some_and(Value::is_string) || body.get("models").is_some_and(Value::is_array);
    if !named {
        return Some("model is required");
    }
    let Some(messages) = body.get("messages").and_then(Value::as_array).filter(|messages| !messages.is_empty()) else {
        return Some("messages must be a list with at least one message");
    };
    let known = |role: &str| matches!(role, "system" | "developer" | "user" | "assistant" | "tool");
    if !messages.iter().all(|message| message.get("role").and_then(Value::as_str).is_some_and(known)) {
        return Some("each message needs a role: system, developer, user, assistant or tool");
    }
    let answers_call = |message: &Value| message.get("tool_call_id").is_some_and(Value::is_string);
    let is_tool = |message: &Value| message.get("role").and_then(Value::as_str) == Some("tool");
    if !messages.iter().filter(|message| is_tool(message)).all(answers_call) {
        return Some("a tool message needs its tool_call_id");
    }
    let is_function = |tool: &Value| {
        tool.get("type").and_then(Value::as_str) == Some("function")
            && tool.get("function").and_then(|function| function.get("name")).and_then(Value::as_str).is_some_and(
                |name| {
                    (1..=64).contains(&name.len())
                        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
                },
            )
    };
    match body.get("tools") {
        None => None,
        Some(tools) if tools.as_array().is_some_and(|tools| tools.iter().all(is_function)) => None,
        Some(_) => Some("tools must be a list of functions with names of 1 to 64 letters, digits, _ and -"),
    }
}

/// The events of a stream, each with the blank line that ends it.
fn frames(text: &str) -> Vec<String> {
    text.split_inclusive("\n\n").map(str::to_owned).collect()
}

struct Completion {
    id: String,
    created: i64,
    model: Value,
    content: Option<String>,
    tool_calls: Vec<(String, String, String)>,
    usage: Value,
}

impl Completion {
    fn of(turn: &Turn, model: Value, request: &Value) -> Self {
        let tool_calls = turn.tool_calls.iter().map(|call| {
            let id = call.id.clone().unwrap_or_else(|| format!("call_{}", Uuid::new_v4().simple()));
            let arguments = call.arguments.as_str().map_or_else(|| call.arguments.to_string(), str::to_owned);
            (id, call.name.clone(), arguments)
        });
        // About four characters make a token; what matters is that the sum is right.
        let prompt = request.get("messages").map_or(0, |messages| messages.to_string().len() / 4);
        let answer = turn.content.as_ref().map_or(0, |content| content.len() / 4) + turn.tool_calls.len();
        Self {
            id: format!("gen-{}", Uuid::new_v4().simple()),
            created: clock::now().as_second(),
            model,
            content: turn.content.clone(),
            tool_calls: tool_calls.collect(),
            usage: json!({ "prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer }),
        }
    }

    fn finish_reason(&self) -> &'static str {
        if self.tool_calls.is_empty() { "stop" } else { "tool_calls" }
    }

    fn whole(&self) -> Value {
        let mut message = json!({ "role": "assistant", "content": self.content });
        if let (Some(message), false) = (message.as_object_mut(), self.tool_calls.is_empty()) {
            let calls = self.tool_calls.iter().map(|(id, name, arguments)| {
                json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } })
            });
            message.insert("tool_calls".to_owned(), calls.collect());
        }
        json!({
            "id": self.id,
            "object": "chat.completion",
            "created": self.created,
            "model": self.model,
            "choices": [{
                "index": 0,
                "message": message,
                "finish_reason": self.finish_reason(),
                "native_finish_reason": self.finish_reason(),
            }],
            "usage": self.usage,
        })
    }

    fn chunks(&self) -> Vec<String> {
        let mut frames = vec![": OPENROUTER PROCESSING\n\n".to_owned()];
        let mut send = |choices: Value, usage: Option<&Value>| {
            let mut chunk = json!({
                "id": self.id,
                "object": "chat.completion.chunk",
                "created": self.created,
                "model": self.model,
                "choices": choices,
            });
            if let (Some(chunk), Some(usage)) = (chunk.as_object_mut(), usage) {
                chunk.insert("usage".to_owned(), usage.clone());
            }
            frames.push(format!("data: {chunk}\n\n"));
        };
        let delta = |delta: Value| json!([{ "index": 0, "delta": delta, "finish_reason": null }]);
        send(delta(json!({ "role": "assistant", "content": "" })), None);
        for word in self.content.iter().flat_map(|content| content.split_inclusive(' ')) {
            send(delta(json!({ "content": word })), None);
        }
        for (index, (id, name, arguments)) in self.tool_calls.iter().enumerate() {
            let opening =
                json!({ "index": index, "id": id, "type": "function", "function": { "name": name, "arguments": "" } });
            send(delta(json!({ "tool_calls": [opening] })), None);
            let middle = arguments.char_indices().nth(arguments.chars().count() / 2).map_or(0, |(at, _)| at);
            let (first, second) = arguments.split_at(middle);
            for part in [first, second] {
                let fragment = json!({ "index": index, "function": { "arguments": part } });
                send(delta(json!({ "tool_calls": [fragment] })), None);
            }
        }
        send(json!([{ "index": 0, "delta": {}, "finish_reason": self.finish_reason() }]), None);
        send(json!([]), Some(&self.usage));
        frames.push("data: [DONE]\n\n".to_owned());
        frames
    }
}
