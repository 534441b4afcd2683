//! VAPI's server messages about the progress and the end of a call.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{
    Vapi,
    incoming::text,
    tool_call::{CallError, DEFAULT_TIMEOUT, Outgoing, backoff, send_by_plan},
    webhook,
};
use crate::standins::{
    Standin, client, clock,
    exchange::{Answer, refused},
    locked,
};

/// A message about a call, and its address. Sending it does not change the call.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerMessage {
    pub event: Event,
    /// Defaults to the assistant's `server` with its credential and headers.
    pub url: Option<String>,
    /// The credential whose header is added.
    pub credential_id: Option<String>,
    /// Additional headers.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
}

impl ServerMessage {
    /// The message to this URL, without a credential.
    pub fn new(event: Event, url: &str) -> Self {
        Self { event, url: Some(url.to_owned()), credential_id: None, headers: BTreeMap::new() }
    }

    #[must_use]
    pub fn with_credential(mut self, id: &str) -> Self {
        self.credential_id = Some(id.to_owned());
        self
    }

    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.insert(name.to_owned(), value.to_owned());
        self
    }
}

/// The event of a message.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Event {
    StatusUpdate {
        status: Status,
        /// Present with the status `ended`.
        ended_reason: Option<String>,
    },
    EndOfCallReport {
        /// VAPI's reason, such as `customer-ended-call`.
        ended_reason: String,
        /// US dollars.
        #[serde(default)]
        cost: f64,
        /// ISO 8601. Defaults to the call's own time, or to the present.
        started_at: Option<String>,
        ended_at: Option<String>,
        #[serde(default)]
        transcript: String,
        #[serde(default)]
        summary: String,
    },
    /// Somebody begins to speak, or falls silent.
    SpeechUpdate { role: Speaker, status: Speech },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Speaker {
    Assistant,
    User,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Speech {
    Started,
    Stopped,
}

impl Event {
    pub fn status(status: Status) -> Self {
        Self::StatusUpdate { status, ended_reason: None }
    }

    pub fn speech(role: Speaker, started: bool) -> Self {
        Self::SpeechUpdate { role, status: if started { Speech::Started } else { Speech::Stopped } }
    }

    /// The call ended, for this reason and at this price in US dollars.
    pub fn report(ended_reason: &str, cost: f64) -> Self {
        Self::EndOfCallReport {
            ended_reason: ended_reason.to_owned(),
            cost,
            started_at: None,
            ended_at: None,
            transcript: String::new(),
            summary: String::new(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    Scheduled,
    Queued,
    Ringing,
    InProgress,
    Forwarding,
    Ended,
    NotFound,
    DeletionFailed,
}

/// A sent message and its outcome.
#[derive(Clone, Debug, Serialize)]
pub struct Told {
    pub request: Outgoing,
    pub attempts: u32,
    /// `None` if no response came.
    pub response: Option<Response>,
    /// Why no response came.
    pub failure: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Response {
    pub status: u16,
    /// The value if it is JSON, else the text.
    pub body: Value,
}

impl Vapi {
    fn server_message(&self, call_id: &str, message: &ServerMessage) -> Result<Outgoing, CallError> {
        let (call, number, assistant) = {
            let mut state = locked(&self.state);
            let live = state.calls.live(call_id).ok_or_else(|| CallError::UnknownCall(call_id.to_owned()))?;
            let (call, called) = (live.object().clone(), live.phone_number().to_owned());
            let number = state.numbers.with_id(text(&call, "phoneNumberId")).cloned();
            let number = number.unwrap_or_else(|| {
                let of_call = |name| text(&call, name);
                webhook::phone_number(of_call("phoneNumberId"), of_call("orgId"), &called, of_call("createdAt"))
            });
            let assistant = state.assistants.get(text(&call, "assistantId")).cloned();
            (call, number, assistant)
        };
        let mut server = Map::new();
        if let Some(url) = &message.url {
            server.insert("url".to_owned(), json!(url));
        } else if let Some(own) = assistant.as_ref().and_then(|assistant| assistant.get("server")?.as_object()) {
            server.clone_from(own);
        }
        let url = server.get("url").and_then(Value::as_str).ok_or(CallError::Nowhere)?.to_owned();
        if let Some(id) = &message.credential_id {
            if !self.credentials.has(id) {
                return Err(CallError::UnknownCredential(id.clone()));
            }
            server.insert("credentialId".to_owned(), json!(id));
        }
        let mut headers: BTreeMap<_, _> =
            message.headers.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone())).collect();
        for (name, value) in server.get("headers").and_then(Value::as_object).into_iter().flatten() {
            headers.extend(value.as_str().map(|value| (name.to_ascii_lowercase(), value.to_owned())));
        }
        self.credentials.add_to(&server, &mut headers);
        headers.insert("content-type".to_owned(), "application/json".to_owned());
        headers.insert("x-call-id".to_owned(), call_id.to_owned());
        Ok(Outgoing {
            call_id: call_id.to_owned(),
            tool_call_id: None,
            method: "POST".to_owned(),
            url,
            headers,
            body: Some(body(&message.event, call, number, assistant)),
            timeout_seconds: server.get("timeoutSeconds").and_then(Value::as_f64).unwrap_or(DEFAULT_TIMEOUT),
            // Without a plan VAPI does not repeat a message.
            backoff: backoff(&server),
        })
    }

    pub(super) async fn simulated_server_message(&self, call_id: &str, message: &[u8]) -> Answer {
        let outgoing = match serde_json::from_slice::<ServerMessage>(message) {
            Ok(message) => self.server_message(call_id, &message),
            Err(error) => return refused(error),
        };
        match outgoing {
            Ok(outgoing) => Answer::json(200, &json!(told(&self.client, outgoing).await)),
            Err(error) => Answer::json(error.status(), &json!({ "error": error.to_string() })),
        }
    }
}

async fn told(client: &reqwest::Client, request: Outgoing) -> Told {
    let (sent, attempts) = send_by_plan(client, &request).await;
    let response = sent.as_ref().ok().map(|received| Response { status: received.status, body: received.readable() });
    Told { request, attempts, response, failure: sent.err() }
}

/// `{"message": {…}}`.
fn body(
    event: &Event,
    mut call: Map<String, Value>,
    number: Map<String, Value>,
    assistant: Option<Map<String, Value>>,
) -> Value {
    let now = clock::now();
    let mut message = match event {
        Event::StatusUpdate { status, ended_reason } => {
            call.insert("status".to_owned(), json!(status));
            let mut message = json!({
                "type": "status-update",
                "status": status,
                "artifact": { "messages": [], "messagesOpenAIFormatted": [] },
            });
            if let (Some(reason), Some(message)) = (ended_reason, message.as_object_mut()) {
                message.insert("endedReason".to_owned(), json!(reason));
            }
            message
        }
        Event::SpeechUpdate { role, status } => json!({ "type": "speech-update", "status": status, "role": role }),
        Event::EndOfCallReport { ended_reason, cost, started_at, ended_at, transcript, summary } => {
            let at = |given: &Option<String>, name: &str| {
                let known = given.clone().or_else(|| call.get(name)?.as_str().map(str::to_owned));
                known.unwrap_or_else(|| clock::iso(now))
            };
            let (started_at, ended_at) = (at(started_at, "startedAt"), at(ended_at, "endedAt"));
            let recording = format!("https://storage.vapi.ai/{}.wav", text(&call, "id"));
            json!({
                "type": "end-of-call-report",
                "endedReason": ended_reason,
                "startedAt": started_at,
                "endedAt": ended_at,
                "cost": cost,
                "costs": [{ "type": "transport", "provider": "twilio", "minutes": minutes(&started_at, &ended_at), "cost": cost }],
                "analysis": { "summary": summary, "successEvaluation": "true" },
                "artifact": { "transcript": transcript, "messages": [], "recordingUrl": recording, "variableValues": {} },
            })
        }
    };
    if let Some(message) = message.as_object_mut() {
        message.insert("timestamp".to_owned(), json!(now.as_millisecond()));
        message.insert("customer".to_owned(), call.get("customer").cloned().unwrap_or_default());
        message.insert("call".to_owned(), Value::Object(call));
        message.insert("phoneNumber".to_owned(), Value::Object(number));
        message.extend(assistant.map(|assistant| ("assistant".to_owned(), Value::Object(assistant))));
    }
    json!({ "message": message })
}

/// Zero if one of the timestamps is invalid.
fn minutes(started_at: &str, ended_at: &str) -> f64 {
    let between = |from: Timestamp, to: Timestamp| to.duration_since(from).as_secs_f64() / 60.0;
    started_at.parse().ok().zip(ended_at.parse().ok()).map_or(0.0, |(from, to)| between(from, to))
}

impl Standin<Vapi> {
    /// VAPI's request, without sending it: for handlers that run without a server.
    pub fn server_message(&self, call_id: &str, message: &ServerMessage) -> Result<Outgoing, CallError> {
        self.service.server_message(call_id, message)
    }

    /// Sends a message as VAPI would.
    pub async fn tell(&self, call_id: &str, message: &ServerMessage) -> Result<Told, CallError> {
        let request = self.service.server_message(call_id, message)?;
        // A client of its own, because the stand-in's client keeps its connections on the stand-in's runtime.
        match client::client() {
            Ok(client) => Ok(told(&client, request).await),
            Err(error) => Ok(Told { request, attempts: 0, response: None, failure: Some(error.to_string()) }),
        }
    }
}
