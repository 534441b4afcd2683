//! Stand-in for an OpenAI-compatible LLM gateway that answers by a script, turn by turn.
//!
//! `PUT /script` replaces the remaining turns ([`Turn`]), `GET /script` shows them. Without a remaining turn, a
//! request is answered with 500, except chat requests under [`Options::plain`]. With `"stream": true` an answer is
//! sent as chunks, one per word, at the pace of the turn. For a slow answer use a [`Fault`] with a delay: faults
//! apply to requests in order, as turns do.
//!
//! Accepts its API key, and tokens that `POST /oauth/token` issues for client credentials (RFC 6749, 4.4).
//!
//! [`Fault`]: super::Fault

mod plain;
mod request;
mod tokens;

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    net::SocketAddr,
    sync::Mutex,
    time::Duration,
};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use self::tokens::Tokens;
use super::{
    Standin, clock,
    exchange::{Answer, Request, refused},
    locked,
    server::{self, Service},
};

#[derive(Clone, Debug)]
pub struct Options {
    pub api_key: String,
    pub client_id: String,
    pub client_secret: String,
    /// The required scope of a token request; any scope if absent.
    pub scope: Option<String>,
    /// The required audience; any audience if absent.
    pub audience: Option<String>,
    /// Lifetime of a token in seconds.
    pub token_life: u32,
    /// Whether the chat is answered without a script, by a few rules (`plain.rs`).
    pub plain: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            api_key: "llm-local-key".to_owned(),
            client_id: "llm-client".to_owned(),
            client_secret: "llm-client-secret".to_owned(),
            scope: None,
            audience: None,
            token_life: 3600,
            plain: false,
        }
    }
}

/// One answer. `stream` and `body` are sent unchanged; without them the answer is a completion with this content and
/// these tool calls.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Turn {
    pub content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// `stop` or `tool_calls` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<String>,
    /// In credits; by default a millionth per token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Only with `body`; 200 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// The whole text of an event stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<String>,
    /// Milliseconds between the events of a stream; no pause if absent. Whole answers have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause_ms: Option<u16>,
}

impl Turn {
    pub fn text(content: &str) -> Self {
        Self { content: Some(content.to_owned()), ..Self::default() }
    }

    #[must_use]
    pub fn pausing(mut self, milliseconds: u16) -> Self {
        self.pause_ms = Some(milliseconds);
        self
    }

    pub fn tool(name: &str, arguments: Value) -> Self {
        let call = ToolCall { id: None, name: name.to_owned(), arguments };
        Self { tool_calls: vec![call], ..Self::default() }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolCall {
    /// `call_…`; generated if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    pub name: String,
    /// A string is sent unchanged, even if it is not valid JSON.
    #[serde(default)]
    pub arguments: Value,
}

#[derive(Debug)]
pub struct Llm {
    api_key: String,
    plain: bool,
    tokens: Tokens,
    script: Mutex<VecDeque<Turn>>,
}

pub fn start(address: SocketAddr, options: Options) -> io::Result<Standin<Llm>> {
    let (api_key, plain) = (options.api_key.clone(), options.plain);
    server::serve(address, Llm { api_key, plain, tokens: Tokens::new(options), script: Mutex::default() })
}

impl Standin<Llm> {
    /// Replaces the remaining turns.
    pub fn script(&self, turns: impl IntoIterator<Item = Turn>) {
        *locked(&self.service.script) = turns.into_iter().collect();
    }

    /// The unused turns: empty after a complete script.
    pub fn script_left(&self) -> Vec<Turn> {
        locked(&self.service.script).iter().cloned().collect()
    }

    pub fn tokens_granted(&self) -> usize {
        self.service.tokens.granted()
    }

    /// Invalidates every token issued so far.
    pub fn expire_tokens(&self) {
        self.service.tokens.expire();
    }
}

impl Service for Llm {
    async fn answer(&self, request: &Request) -> Answer {
        if (request.method.as_str(), request.path.as_str()) == ("POST", "/oauth/token") {
            return self.tokens.answer(request);
        }
        if request.method != "POST" || !matches!(request.path.as_str(), "/chat/completions" | "/v1/chat/completions") {
            return self.failure(404);
        }
        match request.bearer() {
            Some(bearer) if bearer == self.api_key || self.tokens.is_live(bearer) => {}
            Some(_) => return error(401, "User not found."),
            None => return error(401, "No auth credentials found"),
        }
        let body = match request::read(request) {
            Ok(body) => body,
            Err(problem) => return error(400, &problem),
        };
        let scripted = locked(&self.script).pop_front();
        let Some(turn) = scripted.or_else(|| plain::turn(&body).filter(|_| self.plain)) else {
            return error(500, "the script has no turn left for this request");
        };
        let streaming = body.get("stream").and_then(Value::as_bool) == Some(true);
        let pause = Duration::from_millis(turn.pause_ms.unwrap_or_default().into());
        let answer = match (&turn.stream, &turn.body) {
            (Some(text), _) => Answer::frames(frames(text), pause),
            (None, Some(exact)) => Answer::chosen(turn.status.unwrap_or(200), exact),
            (None, None) => {
                let model = body.get("model").or_else(|| body.get("models")?.get(0)).cloned().unwrap_or_default();
                let completion = Completion::of(&turn, model, &body);
                if streaming {
                    Answer::frames(completion.chunks(), pause)
                } else {
                    Answer::json(200, &completion.whole())
                }
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

/// The events of a stream, each with its closing blank line.
fn frames(text: &str) -> Vec<String> {
    text.split_inclusive("\n\n").map(str::to_owned).collect()
}

/// In credits.
fn price(tokens: usize) -> f64 {
    f64::from(u32::try_from(tokens).unwrap_or(u32::MAX)) / 1_000_000.0
}

struct Completion {
    id: String,
    created: i64,
    model: Value,
    content: Option<String>,
    tool_calls: Vec<(String, String, String)>,
    finish_reason: String,
    usage: Value,
}

impl Completion {
    fn of(turn: &Turn, model: Value, request: &Value) -> Self {
        let tool_calls = turn.tool_calls.iter().map(|call| {
            let id = call.id.clone().unwrap_or_else(|| format!("call_{}", Uuid::new_v4().simple()));
            let arguments = call.arguments.as_str().map_or_else(|| call.arguments.to_string(), str::to_owned);
            (id, call.name.clone(), arguments)
        });
        // A token has about four characters; only the sum must be consistent.
        let prompt = request.get("messages").map_or(0, |messages| messages.to_string().len() / 4);
        let answer = turn.content.as_ref().map_or(0, |content| content.len() / 4) + turn.tool_calls.len();
        let finish_reason = if turn.tool_calls.is_empty() { "stop" } else { "tool_calls" };
        Self {
            id: format!("gen-{}", Uuid::new_v4().simple()),
            created: clock::now().as_second(),
            model,
            content: turn.content.clone(),
            tool_calls: tool_calls.collect(),
            finish_reason: turn.finish_reason.clone().unwrap_or_else(|| finish_reason.to_owned()),
            usage: json!({
                "prompt_tokens": prompt,
                "completion_tokens": answer,
                "total_tokens": prompt + answer,
                "prompt_tokens_details": { "cached_tokens": 0 },
                "cost": turn.cost.unwrap_or_else(|| price(prompt + answer)),
                "is_byok": false,
            }),
        }
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
                "finish_reason": self.finish_reason,
                "native_finish_reason": self.finish_reason,
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
        send(json!([{ "index": 0, "delta": {}, "finish_reason": self.finish_reason }]), None);
        send(json!([]), Some(&self.usage));
        frames.push("data: [DONE]\n\n".to_owned());
        frames
    }
}
