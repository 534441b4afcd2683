//! Requests and answers of the stand-ins, independent of the HTTP library.

use std::{collections::BTreeMap, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

/// A request with its body read. Header names are lower case; a repeated header is joined with `, `.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) query: Vec<(String, String)>,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: Vec<u8>,
}

impl Request {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// The parts of the path between its slashes.
    pub(super) fn segments(&self) -> Vec<&str> {
        self.path.split('/').skip(1).collect()
    }

    pub(super) fn json(&self) -> Result<Value, serde_json::Error> {
        serde_json::from_slice(&self.body)
    }

    pub(super) fn form(&self) -> Vec<(String, String)> {
        url::form_urlencoded::parse(&self.body).into_owned().collect()
    }

    pub(super) fn is_json(&self) -> bool {
        self.has_content_type("application/json")
    }

    pub(super) fn is_form(&self) -> bool {
        self.has_content_type("application/x-www-form-urlencoded")
    }

    fn has_content_type(&self, wanted: &str) -> bool {
        let value = self.header("content-type").unwrap_or_default();
        value.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case(wanted))
    }

    pub(super) fn bearer(&self) -> Option<&str> {
        self.header("authorization")?.strip_prefix("Bearer ")
    }

    /// User and password of HTTP Basic authentication.
    pub(super) fn basic(&self) -> Option<(String, String)> {
        let decoded = STANDARD.decode(self.header("authorization")?.strip_prefix("Basic ")?).ok()?;
        let (user, password) = std::str::from_utf8(&decoded).ok()?.split_once(':')?;
        Some((user.to_owned(), password.to_owned()))
    }

    /// The first value of a query parameter.
    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

#[derive(Clone, Debug)]
pub(super) enum Payload {
    Whole(Vec<u8>),
    /// Sent one by one, as a streaming server does, with a pause before each except the first.
    Frames(Vec<String>, Duration),
}

#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) payload: Payload,
}

impl Answer {
    pub(super) fn json(status: u16, body: &Value) -> Self {
        Self::text(status, "application/json; charset=utf-8", body.to_string())
    }

    pub(super) fn text(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        let headers = BTreeMap::from([("content-type".to_owned(), content_type.to_owned())]);
        Self { status, headers, payload: Payload::Whole(body.into()) }
    }

    pub(super) fn frames(frames: Vec<String>, pause: Duration) -> Self {
        let headers = BTreeMap::from([("content-type".to_owned(), "text/event-stream".to_owned())]);
        Self { status: 200, headers, payload: Payload::Frames(frames, pause) }
    }

    pub(super) fn empty(status: u16) -> Self {
        Self { status, headers: BTreeMap::new(), payload: Payload::Whole(Vec::new()) }
    }

    /// A body chosen by a test: a string as text, any other value as JSON.
    pub(super) fn chosen(status: u16, body: &Value) -> Self {
        match body {
            Value::String(text) => Self::text(status, "text/plain; charset=utf-8", text.as_str()),
            other => Self::json(status, other),
        }
    }

    pub(super) fn with_headers(mut self, headers: &BTreeMap<String, String>) -> Self {
        self.headers.extend(headers.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone())));
        self
    }
}

/// The answer of a control route to invalid input.
pub(super) fn refused(problem: impl std::fmt::Display) -> Answer {
    Answer::json(400, &serde_json::json!({ "error": problem.to_string() }))
}
