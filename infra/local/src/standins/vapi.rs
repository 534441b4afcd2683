//! Stand-in for VAPI: tools, assistants, phone calls, and its requests to tools' URLs.
//!
//! Rejects requests with the words of VAPI's validator, answers lists as plain arrays and replaces each field of a
//! PATCH as a whole. A phone call is at `GET /call/{id}`. Its `monitor.controlUrl`, `/{id}/control`, accepts messages
//! while the call's media is connected and is a 404 before and after.
//!
//! A call comes in as Twilio's form at `POST /twilio/inbound_call`, without a key, for a number that VAPI knows; a
//! repeated `CallSid` is the same call. `POST /call` makes calls that bypass the provider, and dials others. The media of
//! incoming and bypassing calls connects by itself a moment later ([`Options::media`]), of a dialled one on command.
//!
//! Control routes, without credentials:
//!
//! - `POST /simulate/tool-call` with a [`ToolCall`] calls the tool as VAPI would in a phone call and answers
//!   `{call_id, tool_call_id, request: {method, url, headers, body}, attempts, response: {status, body} | null,
//!   content_for_model: text | null, failure: text | null, spoken: [...]}`; `spoken` has the [sentences](Spoken) that the caller
//!   of this call heard while tools ran, in order. 404 if assistant or tool are unknown or not attached,
//!   400 if the tool cannot be called. A call that does not exist yet is begun with its media connected.
//! - `POST /simulate/call` with a [`PhoneCall`] begins a call and answers it as the API does.
//! - `GET /simulate/call/{id}`: `{call, messages: [{at, message}], spoken}`, the messages to its control URL, and the sentences of
//!   its tools.
//! - `PUT /simulate/call/{id}`: `{"status": "connected"}` connects its media, `{"status": "ended"}` ends it.
//! - `POST /simulate/call/{id}/server-message` with a [`ServerMessage`] sends it as VAPI would and answers a
//!   [`Told`]. 404 if there is no such call.
//! - `PUT /simulate/credential` with a [`Credential`], `{value, header, id = a new one}`, creates it as the dashboard
//!   does. Answers `{id}`.
//! - `PUT /simulate/number` with `{number, assistant_id, id = a new one}` assigns the number to the assistant.
//!   Answers VAPI's record of the number; 404 if the assistant is unknown.
//! - `PUT /simulate/pin` with `{tool_id, pinned = true}`: deleting a pinned tool fails with 409 `tool_pinned`.

mod calls;
mod control;
mod credentials;
mod fields;
mod incoming;
mod liquid;
mod phone_numbers;
mod server_message;
mod speech;
mod stored_objects;
mod tool_call;
mod validation;
mod webhook;

pub use calls::{Heard, Media, PhoneCall};
pub use credentials::Credential;
pub use incoming::Number;
pub use liquid::Error as LiquidError;
pub use server_message::{Event, Response, ServerMessage, Speaker, Speech, Status, Told};
pub use speech::Spoken;
pub use tool_call::{CallError, Outgoing, ToolCall};

use std::{
    collections::BTreeSet,
    io,
    net::SocketAddr,
    sync::{Mutex, OnceLock},
};

use jiff::{Timestamp, ToSpan};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use self::{
    calls::Calls,
    credentials::Credentials,
    incoming::Numbers,
    stored_objects::{Listing, StoredObjects},
};
use super::{
    Standin, client, clock,
    exchange::{Answer, Request, refused},
    locked,
    server::{self, Service},
};

#[derive(Clone, Debug)]
pub struct Options {
    /// The private key (bearer token) of the account `org_id`.
    pub api_key: String,
    pub org_id: String,
    /// More keys, each with its account; accounts cannot see each other's objects.
    pub more_keys: Vec<(String, String)>,
    /// Initial assistants: bodies of `POST /assistant`, with an optional `id`.
    pub assistants: Vec<Value>,
    /// Initial tools, in the same form.
    pub tools: Vec<Value>,
    /// The credentials that a tool's or a server's `credentialId` can name.
    pub credentials: Vec<Credential>,
    pub numbers: Vec<Number>,
    /// Twilio's address; without it no number can be imported.
    pub twilio: Option<String>,
    /// When the media of an incoming call connects.
    pub media: Media,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            api_key: "vapi-private-key".to_owned(),
            org_id: "11111111-1111-4111-8111-111111111111".to_owned(),
            more_keys: Vec::new(),
            assistants: Vec::new(),
            tools: Vec::new(),
            credentials: Vec::new(),
            numbers: Vec::new(),
            twilio: None,
            media: Media::AfterMs(150),
        }
    }
}

impl Options {
    #[must_use]
    pub fn with_assistant(mut self, id: &str) -> Self {
        self.assistants.push(json!({
            "id": id,
            "name": "Front desk",
            "firstMessage": "Hello, how can I help?",
            "firstMessageMode": "assistant-speaks-first",
            "model": {
                "provider": "openai",
                "model": "gpt-4o-mini",
                "temperature": 0.3,
                "maxTokens": 500,
                "messages": [{ "role": "system", "content": "You answer the phone." }],
                "toolIds": [],
            },
            "voice": { "provider": "vapi", "voiceId": "Elliot" },
            "transcriber": { "provider": "deepgram", "model": "nova-3", "language": "en" },
            "serverMessages": ["tool-calls", "status-update", "end-of-call-report", "speech-update"],
        }));
        self
    }

    #[must_use]
    pub fn with_key(mut self, api_key: &str, org_id: &str) -> Self {
        self.more_keys.push((api_key.to_owned(), org_id.to_owned()));
        self
    }

    #[must_use]
    pub fn with_credential(mut self, id: &str, header: &str, value: &str) -> Self {
        self.credentials.push(Credential { id: id.to_owned(), header: header.to_owned(), value: value.to_owned() });
        self
    }

    /// Adds a number (E.164) for an assistant of these options.
    #[must_use]
    pub fn with_number(mut self, number: &str, assistant_id: &str) -> Self {
        self.numbers.push(Number { number: number.to_owned(), assistant_id: assistant_id.to_owned(), id: None });
        self
    }

    /// Like `with_number`, with VAPI's id of the number.
    #[must_use]
    pub fn with_number_id(mut self, id: &str, number: &str, assistant_id: &str) -> Self {
        let id = Some(id.to_owned());
        self.numbers.push(Number { number: number.to_owned(), assistant_id: assistant_id.to_owned(), id });
        self
    }

    #[must_use]
    pub fn with_media(mut self, media: Media) -> Self {
        self.media = media;
        self
    }
}

#[derive(Debug)]
pub struct Vapi {
    keys: Vec<(String, String)>,
    credentials: Credentials,
    twilio: Option<String>,
    client: reqwest::Client,
    /// Its own address, set once it serves.
    url: OnceLock<String>,
    media: Mutex<Media>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    tools: StoredObjects,
    assistants: StoredObjects,
    calls: Calls,
    numbers: Numbers,
    pinned: BTreeSet<String>,
    /// Whether the accounts keep versions of their tools.
    versioned: bool,
    latest: Timestamp,
}

impl State {
    fn publish(versioned: bool, tool: &mut Map<String, Value>) {
        if versioned {
            let label = format!("v{}", versions(tool) + 1);
            tool.insert("latestVersion".to_owned(), json!(label));
        }
    }

    /// Problems with an assistant's pinned tool versions. A tool that is listed both with and without a version is
    /// kept only pinned.
    fn settle_refs(&self, assistant: &mut Map<String, Value>) -> Vec<String> {
        let Some(model) = assistant.get_mut("model").and_then(Value::as_object_mut) else { return Vec::new() };
        let refs = model.get("toolRefs").and_then(Value::as_array).cloned().unwrap_or_default();
        let text = |pinned: &Value, name: &str| pinned.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let ids: Vec<String> = refs.iter().map(|pinned| text(pinned, "toolId")).collect();
        if let Some(listed) = model.get_mut("toolIds").and_then(Value::as_array_mut) {
            listed.retain(|id| !ids.iter().any(|pinned| id == pinned.as_str()));
        }
        let unknown = refs.iter().filter(|pinned| {
            let tool = self.tools.get(&text(pinned, "toolId"));
            let number = text(pinned, "version").strip_prefix('v').and_then(|number| number.parse::<u32>().ok());
            // The tool may have been deleted since.
            tool.is_some_and(|tool| !number.is_some_and(|number| (1..=versions(tool)).contains(&number)))
        });
        let problem = |pinned: &Value| {
            format!("model.toolRefs: tool {} has no version {}", text(pinned, "toolId"), text(pinned, "version"))
        };
        unknown.map(problem).collect()
    }

    fn stored_objects(&mut self, collection: Collection) -> &mut StoredObjects {
        match collection {
            Collection::Tool => &mut self.tools,
            Collection::Assistant => &mut self.assistants,
        }
    }

    /// The current time, later than any earlier result, so that lists have a stable order and pages are complete.
    fn time(&mut self) -> String {
        let next = self.latest.checked_add(1.millisecond()).unwrap_or(self.latest);
        self.latest = clock::now().max(next);
        clock::iso(self.latest)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Collection {
    Tool,
    Assistant,
}

impl Collection {
    fn name(self) -> &'static str {
        match self {
            Self::Tool => "Tool",
            Self::Assistant => "Assistant",
        }
    }
}

/// Starts the stand-in. Fails if the address is taken, an assistant or tool of the options is invalid, or a number's
/// assistant is missing from them.
pub fn start(address: SocketAddr, options: Options) -> io::Result<Standin<Vapi>> {
    let org_id = options.org_id;
    let keys = [(options.api_key, org_id.clone())].into_iter().chain(options.more_keys).collect();
    let vapi = Vapi {
        keys,
        credentials: Credentials::new(options.credentials),
        twilio: options.twilio,
        client: client::client()?,
        url: OnceLock::new(),
        media: Mutex::new(options.media),
        state: Mutex::default(),
    };
    let given = options.tools.into_iter().map(|tool| (Collection::Tool, tool));
    for (collection, body) in given.chain(options.assistants.into_iter().map(|it| (Collection::Assistant, it))) {
        let Value::Object(mut body) = body else {
            return Err(io::Error::other(format!("{}: not an object", collection.name())));
        };
        let id = body.remove("id").and_then(|id| id.as_str().map(str::to_owned));
        let created = vapi.create(collection, &org_id, body, id);
        created.map_err(|problems| io::Error::other(format!("{}: {}", collection.name(), problems.join("; "))))?;
    }
    for number in &options.numbers {
        vapi.register(number).map_err(io::Error::other)?;
    }
    let standin = server::serve(address, vapi)?;
    // Set before anybody can ask for a call.
    standin.service.url.get_or_init(|| standin.url.clone());
    Ok(standin)
}

impl Standin<Vapi> {
    /// The tools as the API answers them, newest first.
    pub fn tools(&self) -> Vec<Value> {
        locked(&self.service.state).tools.newest_first()
    }

    /// The assistants as the API answers them, newest first.
    pub fn assistants(&self) -> Vec<Value> {
        locked(&self.service.state).assistants.newest_first()
    }

    pub fn tool(&self, id: &str) -> Option<Value> {
        locked(&self.service.state).tools.get(id).cloned().map(Value::Object)
    }

    pub fn assistant(&self, id: &str) -> Option<Value> {
        locked(&self.service.state).assistants.get(id).cloned().map(Value::Object)
    }

    /// From now on tools keep versions: each change adds one.
    pub fn keep_versions(&self) {
        let mut state = locked(&self.service.state);
        state.versioned = true;
        for tool in state.tools.iter_mut() {
            State::publish(true, tool);
        }
    }

    /// Makes `DELETE /tool/{id}` answer 409.
    pub fn pin(&self, tool_id: &str) {
        locked(&self.service.state).pinned.insert(tool_id.to_owned());
    }

    /// VAPI's request for this tool call, without sending it: for handlers that run without a server.
    pub fn outgoing(&self, call: &ToolCall) -> Result<Outgoing, CallError> {
        self.service.outgoing(call)
    }
}

impl Service for Vapi {
    async fn answer(&self, request: &Request) -> Answer {
        let (collection, id) = match request.segments().as_slice() {
            ["tool"] => (Collection::Tool, None),
            ["tool", id] => (Collection::Tool, Some((*id).to_owned())),
            ["assistant"] => (Collection::Assistant, None),
            ["assistant", id] => (Collection::Assistant, Some((*id).to_owned())),
            ["call" | "phone-number", ..] => {
                let Some(org) = self.account(request) else { return self.failure(401) };
                return match (request.method.as_str(), request.segments().as_slice()) {
                    (_, ["phone-number", ..]) => self.phone_numbers(org, request).await,
                    ("GET", ["call", id]) => self.call(org, id),
                    ("POST", ["call"]) => self.create_call(org, request),
                    ("GET", ["call"]) => self.calls(org, request),
                    _ => unknown_route(request),
                };
            }
            ["twilio", "inbound_call"] if request.method == "POST" => return self.inbound_call(request),
            [id, "control"] if request.method == "POST" => return self.controlled(id, request),
            _ => return unknown_route(request),
        };
        if !matches!((request.method.as_str(), &id), ("GET" | "POST", None) | ("GET" | "PATCH" | "DELETE", Some(_))) {
            return unknown_route(request);
        }
        let Some(org) = self.account(request) else { return self.failure(401) };
        if let Some(id) = id.as_ref().filter(|id| !locked(&self.state).stored_objects(collection).is_of(org, id)) {
            return unknown_id(collection, id);
        }
        match (request.method.as_str(), id) {
            ("POST", None) => match body(request).and_then(|body| self.create(collection, org, body, None)) {
                Ok(created) => Answer::json(201, &created),
                Err(problems) => bad_request(&problems),
            },
            ("GET", None) => match Listing::of(&request.query) {
                Ok(listing) => Answer::json(200, &listing.page(locked(&self.state).stored_objects(collection), org)),
                Err(problems) => bad_request(&problems),
            },
            ("GET", Some(id)) => match locked(&self.state).stored_objects(collection).get(&id) {
                Some(found) => Answer::json(200, &json!(found)),
                None => unknown_id(collection, &id),
            },
            ("PATCH", Some(id)) => match body(request) {
                Ok(body) => self.change(collection, &id, body),
                Err(problems) => bad_request(&problems),
            },
            (_, Some(id)) => self.delete(collection, &id),
            (_, None) => unknown_route(request),
        }
    }

    fn failure(&self, status: u16) -> Answer {
        let body = match status {
            401 => json!({
                "message": "Invalid Key. Hot tip, you may be using the private key instead of the public key, or vice versa.",
                "error": "Unauthorized",
                "statusCode": 401,
            }),
            429 => json!({ "message": "Rate limit exceeded" }),
            500 => json!({ "message": "Internal server error", "statusCode": 500 }),
            status => {
                let error = axum::http::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
                json!({ "message": error, "error": error, "statusCode": status })
            }
        };
        Answer::json(status, &body)
    }

    async fn control(&self, request: &Request) -> Option<Answer> {
        match (request.method.as_str(), request.path.as_str()) {
            ("POST", "/simulate/tool-call") => Some(match serde_json::from_slice::<ToolCall>(&request.body) {
                Ok(call) => self.simulate(&call).await,
                Err(error) => refused(error),
            }),
            ("PUT", "/simulate/pin") => Some(match serde_json::from_slice::<Pin>(&request.body) {
                Ok(pin) => {
                    let pinned = &mut locked(&self.state).pinned;
                    if pin.pinned {
                        pinned.insert(pin.tool_id)
                    } else {
                        pinned.remove(&pin.tool_id)
                    };
                    Answer::empty(204)
                }
                Err(error) => refused(error),
            }),
            ("PUT", "/simulate/credential") => Some(self.simulated_credential(request)),
            ("PUT", "/simulate/number") => Some(self.simulated_number(request)),
            _ => match (request.method.as_str(), request.segments().as_slice()) {
                ("POST", ["simulate", "call", id, "server-message"]) => {
                    Some(self.simulated_server_message(id, &request.body).await)
                }
                _ => self.simulated_call(request),
            },
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pin {
    tool_id: String,
    #[serde(default = "yes")]
    pinned: bool,
}

fn yes() -> bool {
    true
}

impl Vapi {
    fn account(&self, request: &Request) -> Option<&str> {
        let key = self.keys.iter().find(|(key, _)| request.bearer() == Some(key.as_str()));
        key.map(|(_, org)| org.as_str())
    }

    fn create(
        &self,
        collection: Collection,
        org_id: &str,
        mut body: Map<String, Value>,
        id: Option<String>,
    ) -> Result<Value, Vec<String>> {
        if collection == Collection::Tool {
            drop_tolerated(&mut body);
        }
        let problems = match collection {
            Collection::Tool => fields::new_tool(&body),
            Collection::Assistant => fields::assistant(&body),
        };
        if !problems.is_empty() {
            return Err(problems);
        }
        body.retain(|_, value| !value.is_null());
        let mut state = locked(&self.state);
        let now = state.time();
        body.insert("id".to_owned(), json!(id.unwrap_or_else(|| Uuid::new_v4().to_string())));
        body.insert("orgId".to_owned(), json!(org_id));
        body.insert("createdAt".to_owned(), json!(now));
        body.insert("updatedAt".to_owned(), json!(now));
        mirror_body(&mut body);
        match collection {
            Collection::Tool => State::publish(state.versioned, &mut body),
            Collection::Assistant => {
                let problems = state.settle_refs(&mut body);
                if !problems.is_empty() {
                    return Err(problems);
                }
            }
        }
        state.stored_objects(collection).add(body.clone());
        Ok(Value::Object(body))
    }

    fn change(&self, collection: Collection, id: &str, mut body: Map<String, Value>) -> Answer {
        let mut state = locked(&self.state);
        let (now, versioned) = (state.time(), state.versioned);
        let problems = if collection == Collection::Assistant { state.settle_refs(&mut body) } else { Vec::new() };
        if !problems.is_empty() {
            return bad_request(&problems);
        }
        let Some(found) = state.stored_objects(collection).get_mut(id) else { return unknown_id(collection, id) };
        let problems = match collection {
            Collection::Tool => {
                let kind = found.get("type").and_then(Value::as_str).unwrap_or_default();
                if kind == "apiRequest" {
                    body.remove("async");
                    body.remove("strict");
                }
                fields::tool_change(&body, kind)
            }
            Collection::Assistant => fields::assistant(&body),
        };
        if !problems.is_empty() {
            return bad_request(&problems);
        }
        for (name, value) in body {
            if value.is_null() {
                found.remove(&name);
            } else {
                found.insert(name, value);
            }
        }
        found.insert("updatedAt".to_owned(), json!(now));
        mirror_body(found);
        if collection == Collection::Tool {
            State::publish(versioned, found);
        }
        Answer::json(200, &json!(found))
    }

    fn delete(&self, collection: Collection, id: &str) -> Answer {
        let mut state = locked(&self.state);
        if collection == Collection::Tool && state.pinned.contains(id) {
            let body = json!({ "error": "tool_pinned", "message": "Tool is pinned by a published assistant version" });
            return Answer::json(409, &body);
        }
        match state.stored_objects(collection).remove(id) {
            Some(removed) => Answer::json(200, &Value::Object(removed)),
            None => unknown_id(collection, id),
        }
    }
}

fn versions(tool: &Map<String, Value>) -> u32 {
    let label = tool.get("latestVersion").and_then(Value::as_str).and_then(|label| label.strip_prefix('v'));
    label.and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// VAPI ignores these two fields of an `apiRequest` tool, although they are undocumented.
fn drop_tolerated(tool: &mut Map<String, Value>) {
    if tool.get("type").and_then(Value::as_str) == Some("apiRequest") {
        tool.remove("async");
        tool.remove("strict");
    }
}

/// If an `apiRequest` tool has a `function`, VAPI overwrites its parameters with the body's schema.
fn mirror_body(tool: &mut Map<String, Value>) {
    if tool.get("type").and_then(Value::as_str) == Some("apiRequest")
        && let Some(schema) = tool.get("body").cloned()
        && let Some(function) = tool.get_mut("function").and_then(Value::as_object_mut)
    {
        function.insert("parameters".to_owned(), schema);
    }
}

/// The body's object; empty unless the body is declared as JSON, because VAPI does not read other bodies.
fn body(request: &Request) -> Result<Map<String, Value>, Vec<String>> {
    if !request.is_json() {
        return Ok(Map::new());
    }
    match request.json() {
        Ok(Value::Object(body)) => Ok(body),
        Ok(_) => Err(vec!["Unexpected token in JSON: an object is expected".to_owned()]),
        Err(error) => Err(vec![format!("Unexpected token in JSON: {error}")]),
    }
}

fn bad_request(problems: &[String]) -> Answer {
    Answer::json(400, &json!({ "message": problems, "error": "Bad Request", "statusCode": 400 }))
}

/// An error with a single text instead of the validator's list.
fn bad_request_saying(problem: &str) -> Answer {
    Answer::json(400, &json!({ "message": problem, "error": "Bad Request", "statusCode": 400 }))
}

fn unknown_route(request: &Request) -> Answer {
    let message = format!("Cannot {} {}", request.method, request.path);
    Answer::json(404, &json!({ "message": message, "error": "Not Found", "statusCode": 404 }))
}

fn unknown_id(collection: Collection, id: &str) -> Answer {
    let message = format!("Couldn't Get {}. `id` {id} Does Not Exist.", collection.name());
    Answer::json(404, &json!({ "message": message, "error": "Not Found", "statusCode": 404 }))
}
