//! VAPI's tool calls during a phone call.

use std::{collections::BTreeMap, time::Duration};

use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{
    State, Vapi,
    calls::{Live, Media, PhoneCall},
    liquid, webhook,
};
use crate::standins::{clock, exchange::Answer, locked};

/// The default time-out of a tool, in seconds.
pub(super) const DEFAULT_TIMEOUT: f64 = 20.0;
const NO_RESULT: &str = "No result returned for toolCallId.";

/// A model's tool call, and its phone call.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolCall {
    pub assistant_id: String,
    /// The tool's name for the model.
    pub tool_name: String,
    /// The model's arguments.
    #[serde(default)]
    pub arguments: Map<String, Value>,
    /// The caller, E.164.
    pub customer_number: String,
    /// The called number, E.164.
    pub phone_number: String,
    /// A new UUID v7 if absent.
    pub call_id: Option<String>,
    /// VAPI's id of the called number; a new one if absent.
    pub phone_number_id: Option<String>,
    /// Twilio's id of the call; a new one if absent.
    pub call_sid: Option<String>,
    /// The call's `assistantOverrides.variableValues`.
    #[serde(default)]
    pub variable_values: Map<String, Value>,
}

/// Why VAPI makes no request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    #[error("Couldn't Get Assistant. `assistantId` {0} Does Not Exist.")]
    UnknownAssistant(String),
    #[error("Couldn't Get Tool. `toolId` {0} Does Not Exist.")]
    DeletedTool(String),
    #[error("no tool named {tool} is attached to assistant {assistant}")]
    NotAttached { tool: String, assistant: String },
    #[error("a {0} tool calls no URL")]
    NoRequest(String),
    #[error("neither the tool nor its assistant has a server URL")]
    NoServer,
    #[error(transparent)]
    Liquid(#[from] liquid::Error),
    #[error("no call {0}")]
    UnknownCall(String),
    #[error("no credential {0}")]
    UnknownCredential(String),
    #[error("neither the message nor the call's assistant says where to")]
    Nowhere,
}

impl CallError {
    pub fn status(&self) -> u16 {
        match self {
            Self::UnknownAssistant(_) | Self::NotAttached { .. } | Self::UnknownCall(_) => 404,
            Self::DeletedTool(_)
            | Self::NoRequest(_)
            | Self::NoServer
            | Self::Liquid(_)
            | Self::UnknownCredential(_)
            | Self::Nowhere => 400,
        }
    }
}

/// The request of a tool call.
#[derive(Clone, Debug, Serialize)]
pub struct Outgoing {
    pub call_id: String,
    /// `call_…`; only a `function` tool receives it.
    pub tool_call_id: Option<String>,
    pub method: String,
    pub url: String,
    /// Names in lower case.
    pub headers: BTreeMap<String, String>,
    /// `None` for GET, whose arguments are in the URL.
    pub body: Option<Value>,
    pub timeout_seconds: f64,
    #[serde(skip)]
    pub(super) backoff: Option<Backoff>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Backoff {
    r#type: String,
    max_retries: f64,
    base_delay_seconds: f64,
    #[serde(default)]
    excluded_status_codes: Vec<u16>,
}

/// The phone call of a tool call, with all ids set.
pub(super) struct Call {
    pub(super) id: String,
    pub(super) sid: String,
    /// As the API answers it.
    pub(super) object: Map<String, Value>,
    pub(super) customer_number: String,
    pub(super) phone_number: String,
    pub(super) phone_number_id: String,
    pub(super) started_at: String,
    pub(super) variable_values: Map<String, Value>,
}

impl Call {
    pub(super) fn of(call: &ToolCall, live: &Live) -> Self {
        let object = live.object();
        let known = |name: &str| text(object, name).unwrap_or_default().to_owned();
        Self {
            id: known("id"),
            sid: known("phoneCallProviderId"),
            object: object.clone(),
            customer_number: call.customer_number.clone(),
            phone_number: call.phone_number.clone(),
            phone_number_id: known("phoneNumberId"),
            started_at: text(object, "startedAt").unwrap_or(&known("createdAt")).to_owned(),
            variable_values: call.variable_values.clone(),
        }
    }

    /// Liquid's variables: the call's own values, overridden by VAPI's.
    pub(super) fn variables(&self, assistant: &Map<String, Value>) -> Map<String, Value> {
        let now = clock::now().to_zoned(TimeZone::UTC);
        let mut variables = self.variable_values.clone();
        for (name, value) in [
            ("customer", json!({ "number": self.customer_number })),
            ("phoneNumber", json!({ "id": self.phone_number_id, "number": self.phone_number, "provider": "twilio" })),
            (
                "call",
                json!({
                    "id": self.id,
                    "type": "inboundPhoneCall",
                    "status": "in-progress",
                    "startedAt": self.started_at,
                    "assistantId": assistant.get("id"),
                }),
            ),
            ("assistant", json!({ "id": assistant.get("id"), "name": assistant.get("name") })),
            ("transport", json!({ "callSid": self.sid, "provider": "twilio", "conversationType": "voice" })),
            ("now", json!(now.strftime("%b %-d, %Y %-I:%M %p").to_string())),
            ("currentDateTime", json!(now.strftime("%b %-d, %Y %-I:%M %p").to_string())),
            ("date", json!(now.strftime("%b %-d, %Y").to_string())),
            ("time", json!(now.strftime("%-I:%M %p").to_string())),
            ("year", json!(now.strftime("%Y").to_string())),
            ("month", json!(now.strftime("%B").to_string())),
            ("day", json!(now.strftime("%d").to_string())),
        ] {
            variables.insert(name.to_owned(), value);
        }
        variables
    }
}

impl Vapi {
    pub(super) fn outgoing(&self, wish: &ToolCall) -> Result<Outgoing, CallError> {
        let (assistant, tool) = {
            let state = locked(&self.state);
            let unknown = || CallError::UnknownAssistant(wish.assistant_id.clone());
            let assistant = state.assistants.get(&wish.assistant_id).ok_or_else(unknown)?.clone();
            let tool = attached(&state, &assistant, wish)?;
            (assistant, tool)
        };
        let phone_call = PhoneCall {
            assistant_id: Some(wish.assistant_id.clone()),
            customer_number: wish.customer_number.clone(),
            phone_number: wish.phone_number.clone(),
            call_id: wish.call_id.clone(),
            phone_number_id: wish.phone_number_id.clone(),
            call_sid: wish.call_sid.clone(),
            variable_values: wish.variable_values.clone(),
            media: Media::Connected,
        };
        let call = self.begun(&phone_call, |live| Call::of(wish, live))?;
        let variables = call.variables(&assistant);
        let mut arguments = wish.arguments.clone();
        for parameter in tool.get("parameters").and_then(Value::as_array).into_iter().flatten() {
            if let (Some(key), Some(value)) = (parameter.get("key").and_then(Value::as_str), parameter.get("value")) {
                arguments.insert(key.to_owned(), liquid::render_value(value, &variables)?);
            }
        }
        match tool.get("type").and_then(Value::as_str).unwrap_or_default() {
            "apiRequest" => self.api_request(&tool, &call, wish, arguments, variables),
            "function" => self.tool_calls_message(&assistant, &tool, &call, wish, arguments, &variables),
            other => Err(CallError::NoRequest(other.to_owned())),
        }
    }

    /// The plain object of arguments and static parameters, without an envelope or a call id header.
    fn api_request(
        &self,
        tool: &Map<String, Value>,
        call: &Call,
        wish: &ToolCall,
        arguments: Map<String, Value>,
        variables: Map<String, Value>,
    ) -> Result<Outgoing, CallError> {
        // URLs and headers may also use the model's arguments; VAPI's own names take precedence.
        let mut visible = wish.arguments.clone();
        visible.extend(variables);
        let method = text(tool, "method").unwrap_or("POST").to_owned();
        let mut headers = BTreeMap::new();
        let declared = tool.get("headers").and_then(|headers| headers.get("properties")).and_then(Value::as_object);
        for (name, schema) in declared.into_iter().flatten() {
            if let Some(value) = schema.get("value").and_then(Value::as_str) {
                headers.insert(name.to_ascii_lowercase(), liquid::render(value, &visible)?);
            }
        }
        self.credentials.add_to(tool, &mut headers);
        let body = (method != "GET").then_some(Value::Object(arguments));
        if body.is_some() {
            headers.entry("content-type".to_owned()).or_insert_with(|| "application/json".to_owned());
        }
        Ok(Outgoing {
            call_id: call.id.clone(),
            tool_call_id: None,
            method,
            url: liquid::render(text(tool, "url").unwrap_or_default(), &visible)?,
            headers,
            body,
            timeout_seconds: tool.get("timeoutSeconds").and_then(Value::as_f64).unwrap_or(DEFAULT_TIMEOUT),
            backoff: backoff(tool),
        })
    }

    fn tool_calls_message(
        &self,
        assistant: &Map<String, Value>,
        tool: &Map<String, Value>,
        call: &Call,
        wish: &ToolCall,
        arguments: Map<String, Value>,
        variables: &Map<String, Value>,
    ) -> Result<Outgoing, CallError> {
        let of = |owner: &Map<String, Value>| owner.get("server").and_then(Value::as_object).cloned();
        let server = of(tool).filter(|server| text(server, "url").is_some()).or_else(|| of(assistant));
        let server = server.ok_or(CallError::NoServer)?;
        let url = text(&server, "url").ok_or(CallError::NoServer)?;
        let mut headers = BTreeMap::new();
        self.credentials.add_to(&server, &mut headers);
        for (name, value) in server.get("headers").and_then(Value::as_object).into_iter().flatten() {
            if let Some(value) = value.as_str() {
                headers.insert(name.to_ascii_lowercase(), liquid::render(value, variables)?);
            }
        }
        headers.insert("content-type".to_owned(), "application/json".to_owned());
        headers.insert("x-call-id".to_owned(), call.id.clone());
        let tool_call_id = format!("call_{}", Uuid::new_v4().simple());
        let message = webhook::tool_calls(&webhook::EventContext {
            org_id: text(tool, "orgId").unwrap_or_default(),
            assistant,
            tool,
            call,
            tool_call_id: &tool_call_id,
            name: &wish.tool_name,
            arguments: Value::Object(arguments),
            from_model: &wish.arguments,
        });
        Ok(Outgoing {
            call_id: call.id.clone(),
            tool_call_id: Some(tool_call_id),
            method: "POST".to_owned(),
            url: liquid::render(url, variables)?,
            headers,
            body: Some(message),
            timeout_seconds: server.get("timeoutSeconds").and_then(Value::as_f64).unwrap_or(DEFAULT_TIMEOUT),
            backoff: backoff(&server),
        })
    }

    pub(super) async fn simulate(&self, wish: &ToolCall) -> Answer {
        let outgoing = match self.outgoing(wish) {
            Ok(outgoing) => outgoing,
            Err(error) => return Answer::json(error.status(), &json!({ "error": error.to_string() })),
        };
        let mut attempts = 0;
        let heard = |sent: &Result<Received, String>| match sent {
            Err(problem) => Err(problem.clone()),
            Ok(received) => match &outgoing.tool_call_id {
                None => received.content(),
                Some(id) => received.result(id),
            },
        };
        let sending = async {
            let (sent, count) = send_by_plan(&self.client, &outgoing).await;
            attempts = count;
            sent
        };
        let sent = self.speak(wish, &outgoing.call_id, sending, |sent| heard(sent).is_err()).await;
        let heard = heard(&sent);
        let spoken = locked(&self.state).calls.live(&outgoing.call_id).map(|live| live.spoken.clone());
        let body = json!({
            "call_id": outgoing.call_id,
            "tool_call_id": outgoing.tool_call_id,
            "request": {
                "method": outgoing.method,
                "url": outgoing.url,
                "headers": outgoing.headers,
                "body": outgoing.body,
            },
            "attempts": attempts,
            "response": sent.as_ref().ok().map(|received| json!({ "status": received.status, "body": received.readable() })),
            "content_for_model": heard.as_ref().ok(),
            "failure": heard.as_ref().err(),
            "spoken": spoken,
        });
        Answer::json(200, &body)
    }
}

/// The tool with this name: inline tools of the assistant first, then attached tools. If any attached tool was
/// deleted, the call fails, even for another tool.
pub(super) fn attached(
    state: &State,
    assistant: &Map<String, Value>,
    wish: &ToolCall,
) -> Result<Map<String, Value>, CallError> {
    let model = assistant.get("model");
    let listed = |name: &str| model.and_then(|model| model.get(name)).and_then(Value::as_array).into_iter().flatten();
    let mut tools: Vec<_> = listed("tools").filter_map(Value::as_object).collect();
    let pinned = listed("toolRefs").filter_map(|pinned| pinned.get("toolId")?.as_str());
    for id in listed("toolIds").filter_map(Value::as_str).chain(pinned) {
        tools.push(state.tools.get(id).ok_or_else(|| CallError::DeletedTool(id.to_owned()))?);
    }
    let found = tools.into_iter().find(|tool| shown_name(tool) == Some(wish.tool_name.as_str()));
    found
        .cloned()
        .ok_or_else(|| CallError::NotAttached { tool: wish.tool_name.clone(), assistant: wish.assistant_id.clone() })
}

fn shown_name(tool: &Map<String, Value>) -> Option<&str> {
    text(tool, "name").or_else(|| tool.get("function")?.get("name")?.as_str())
}

fn text<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    object.get(name).and_then(Value::as_str)
}

pub(super) fn backoff(owner: &Map<String, Value>) -> Option<Backoff> {
    serde_json::from_value(owner.get("backoffPlan")?.clone()).ok()
}

impl Outgoing {
    /// VAPI's pause before the next attempt, after as many attempts and this status; `None` without another attempt.
    pub fn pause(&self, attempts: u32, status: Option<u16>) -> Option<Duration> {
        self.backoff.as_ref()?.wait(attempts, status)
    }
}

impl Backoff {
    /// The delay before the next attempt, or `None`. By default every failure is retried.
    fn wait(&self, attempts: u32, status: Option<u16>) -> Option<Duration> {
        let failed =
            status.is_none_or(|status| !(200..300).contains(&status) && !self.excluded_status_codes.contains(&status));
        if !failed || f64::from(attempts) > self.max_retries {
            return None;
        }
        let factor = if self.r#type == "exponential" { 2_f64.powf(f64::from(attempts - 1)) } else { 1.0 };
        Duration::try_from_secs_f64(self.base_delay_seconds * factor).ok()
    }
}

pub(super) struct Received {
    pub(super) status: u16,
    body: String,
}

impl Received {
    fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    pub(super) fn readable(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| Value::String(self.body.clone()))
    }

    /// The whole body of an `apiRequest` tool reaches the model if the status is a success and the body is JSON.
    fn content(&self) -> Result<String, String> {
        if !self.is_success() {
            return Err(format!("request failed with status {}", self.status));
        }
        match serde_json::from_str::<Value>(&self.body) {
            Ok(_) => Ok(self.body.clone()),
            Err(error) => Err(format!("the response is not JSON: {error}")),
        }
    }

    /// A `function` tool's result for this tool call: one line of text; only status 200 counts. An `error` reaches
    /// the model too.
    fn result(&self, tool_call_id: &str) -> Result<String, String> {
        if self.status != 200 {
            return Err(NO_RESULT.to_owned());
        }
        let body: Value = serde_json::from_str(&self.body).map_err(|error| format!("{NO_RESULT} {error}"))?;
        let results = body.get("results").and_then(Value::as_array).into_iter().flatten();
        let of_call = |result: &&Value| result.get("toolCallId").and_then(Value::as_str) == Some(tool_call_id);
        let result = results.into_iter().find(of_call).ok_or(NO_RESULT)?;
        let said = result.get("result").or_else(|| result.get("error")).and_then(Value::as_str);
        match said {
            Some(line) if !line.contains(['\n', '\r']) => Ok(line.to_owned()),
            Some(_) => Err(format!("{NO_RESULT} The result has a line break.")),
            None => Err(format!("{NO_RESULT} The result is not text.")),
        }
    }
}

/// Sends a request until it succeeds or its plan has no further attempt. Also gives the number of attempts.
pub(super) async fn send_by_plan(client: &reqwest::Client, outgoing: &Outgoing) -> (Result<Received, String>, u32) {
    let mut attempts = 0;
    loop {
        let sent = send(client, outgoing).await;
        attempts += 1;
        let Some(pause) = outgoing.pause(attempts, sent.as_ref().ok().map(|received| received.status)) else {
            return (sent, attempts);
        };
        tokio::time::sleep(pause).await;
    }
}

async fn send(client: &reqwest::Client, outgoing: &Outgoing) -> Result<Received, String> {
    let method: reqwest::Method = outgoing
        .method
        .parse()
        .map_err(|error: axum::http::method::InvalidMethod| format!("{}: {error}", outgoing.method))?;
    let mut request = client.request(method, &outgoing.url);
    for (name, value) in &outgoing.headers {
        request = request.header(name, value);
    }
    if let Some(body) = &outgoing.body {
        request = request.body(body.to_string());
    }
    let timeout = Duration::try_from_secs_f64(outgoing.timeout_seconds).unwrap_or(Duration::MAX);
    let failed = |error: reqwest::Error| {
        if error.is_timeout() {
            format!("no response within {} s", outgoing.timeout_seconds)
        } else {
            format!("no response: {:?}", error.without_url())
        }
    };
    let response = request.timeout(timeout).send().await.map_err(failed)?;
    let status = response.status().as_u16();
    Ok(Received { status, body: response.text().await.map_err(failed)? })
}
