//! A streamed answer, read as a client reads it.

use std::{collections::BTreeMap, time::Duration};

use http_body_util::BodyExt;
use lambda_http::Response;
use serde_json::Value;
use shared::http::ReplyBody;

/// The longest wait for an event.
const PATIENCE: Duration = Duration::from_mins(2);

/// A streamed answer whose head has arrived.
pub struct Streamed {
    pub status: u16,
    /// Names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The number of comments so far.
    pub comments: usize,
    /// The whole text so far.
    pub text: String,
    read: usize,
    body: ReplyBody,
}

impl Streamed {
    pub(crate) fn new(response: Response<ReplyBody>) -> Self {
        let (head, body) = response.into_parts();
        let headers = head.headers.iter();
        let headers = headers.map(|(name, value)| (name.to_string(), value.to_str().expect("plain text").to_owned()));
        let (status, headers) = (head.status.as_u16(), headers.collect());
        Self { status, headers, comments: 0, text: String::new(), read: 0, body }
    }

    /// The next event; `None` at the end.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            let unread = &self.text[self.read..];
            if let Some((frame, _)) = unread.split_once("\n\n") {
                self.read += frame.len() + 2;
                if frame.starts_with(':') {
                    self.comments += 1;
                    continue;
                }
                let json = frame.strip_prefix("data: ").unwrap_or_else(|| panic!("{frame:?} is no event"));
                return Some(serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}")));
            }
            let chunk = tokio::time::timeout(PATIENCE, self.body.frame()).await;
            let Some(chunk) = chunk.unwrap_or_else(|_| panic!("no event came after {}", self.text)) else {
                assert_eq!(self.read, self.text.len(), "the end of a stream is no event");
                return None;
            };
            let Ok(chunk) = chunk;
            let chunk = chunk.into_data().expect("data");
            self.text.push_str(std::str::from_utf8(&chunk).expect("whole letters"));
        }
    }

    /// The events up to and including the first that fits.
    pub async fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut events = Vec::new();
        loop {
            let event = self.next().await.unwrap_or_else(|| panic!("no such event came: {}", self.text));
            let done = fits(&event);
            events.push(event);
            if done {
                return events;
            }
        }
    }

    /// The events up to and including the first of a type.
    pub async fn until_type(&mut self, kind: &str) -> Vec<Value> {
        self.until(|event| event["type"] == kind).await
    }

    /// All remaining events.
    pub async fn rest(&mut self) -> Vec<Value> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        events
    }
}
