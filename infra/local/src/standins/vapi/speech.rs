//! The sentences that a caller hears while a tool runs: the tool's `messages`.
//!
//! `request-start` comes before the request, without one VAPI's own filler; an empty one is silence. `request-response-delayed`
//! comes after its time if there is no answer yet, `request-failed` if there is none or one that is no success. Of `contents` the
//! sentence in the assistant's language is spoken, else the first one, which VAPI translates.
//!
//! `conditions` are not evaluated, and `request-complete` is not spoken.

use std::{future::Future, pin::pin, time::Duration};

use serde::Serialize;
use serde_json::{Map, Value};
use tokio::time::{Instant, timeout_at};

use super::{
    Vapi, liquid,
    tool_call::{Call, ToolCall, attached},
};
use crate::standins::{Standin, clock, locked};

const FILLER: &str = "Hold on a sec.";

/// A sentence that the caller heard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Spoken {
    /// ISO 8601.
    pub at: String,
    /// Milliseconds since the model called the tool.
    pub after_ms: u64,
    /// The type of the message: `request-start` and so on.
    pub message: String,
    pub text: String,
    /// The language into which VAPI translates the text, if the tool has none for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub translated_to: Option<String>,
}

/// A tool's messages in the language of the call.
#[derive(Default)]
struct Messages(Vec<Message>);

struct Message {
    kind: String,
    after: Duration,
    text: String,
    translated_to: Option<String>,
}

impl Messages {
    fn of(tool: &Map<String, Value>, language: &str, visible: &Map<String, Value>) -> Self {
        let all = tool.get("messages").and_then(Value::as_array).into_iter().flatten();
        Self(all.filter_map(|message| Message::of(message, language, visible)).collect())
    }

    fn first(&self, kind: &str) -> Option<&Message> {
        self.0.iter().find(|message| message.kind == kind)
    }

    fn delayed(&self) -> Vec<&Message> {
        let mut delayed: Vec<_> = self.0.iter().filter(|message| message.kind == "request-response-delayed").collect();
        delayed.sort_by_key(|message| message.after);
        delayed
    }
}

impl Message {
    fn of(message: &Value, language: &str, visible: &Map<String, Value>) -> Option<Self> {
        let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let contents = message.get("contents").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let fitting = contents.iter().find(|content| content.get("language").is_some_and(|of| of == language));
        let (said, translated_to) = match fitting.or(contents.first()) {
            Some(content) => (text(content, "text")?, fitting.is_none().then(|| language.to_owned())),
            None => (text(message, "content")?, None),
        };
        Some(Self {
            kind: text(message, "type")?,
            after: Duration::from_millis(message.get("timingMilliseconds").and_then(Value::as_u64).unwrap_or(0)),
            text: liquid::render(&said, visible).unwrap_or(said),
            translated_to,
        })
    }
}

impl Vapi {
    /// Awaits the request of a tool call while the caller hears the tool's sentences. `failed` judges the answer.
    pub(super) async fn speak<T>(
        &self,
        wish: &ToolCall,
        call_id: &str,
        request: impl Future<Output = T>,
        failed: impl FnOnce(&T) -> bool,
    ) -> T {
        let begun = Instant::now();
        let messages = self.messages(wish, call_id).unwrap_or_default();
        match messages.first("request-start") {
            Some(message) => self.say(call_id, begun, message),
            None => self.say(call_id, begun, &Message::filler()),
        }
        let mut request = pin!(request);
        for message in messages.delayed() {
            if let Ok(answer) = timeout_at(begun + message.after, &mut request).await {
                return self.after(call_id, begun, &messages, answer, failed);
            }
            self.say(call_id, begun, message);
        }
        let answer = request.await;
        self.after(call_id, begun, &messages, answer, failed)
    }

    fn after<T>(
        &self,
        call_id: &str,
        begun: Instant,
        messages: &Messages,
        answer: T,
        failed: impl FnOnce(&T) -> bool,
    ) -> T {
        if let Some(message) = messages.first("request-failed").filter(|_| failed(&answer)) {
            self.say(call_id, begun, message);
        }
        answer
    }

    fn messages(&self, wish: &ToolCall, call_id: &str) -> Option<Messages> {
        let mut state = locked(&self.state);
        let assistant = state.assistants.get(&wish.assistant_id)?.clone();
        let tool = attached(&state, &assistant, wish).ok()?;
        let call = Call::of(wish, state.calls.live(call_id)?);
        let mut visible = wish.arguments.clone();
        visible.extend(call.variables(&assistant));
        let language = assistant.get("transcriber").and_then(|transcriber| transcriber.get("language")?.as_str());
        let language = language.unwrap_or("en").split('-').next().unwrap_or("en");
        Some(Messages::of(&tool, language, &visible))
    }

    fn say(&self, call_id: &str, begun: Instant, message: &Message) {
        if message.text.is_empty() {
            return;
        }
        let spoken = Spoken {
            at: clock::iso(clock::now()),
            after_ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
            message: message.kind.clone(),
            text: message.text.clone(),
            translated_to: message.translated_to.clone(),
        };
        if let Some(live) = locked(&self.state).calls.live(call_id) {
            live.spoken.push(spoken);
        }
    }
}

impl Message {
    fn filler() -> Self {
        Self { kind: "request-start".to_owned(), after: Duration::ZERO, text: FILLER.to_owned(), translated_to: None }
    }
}

impl Standin<Vapi> {
    /// Awaits the request of a tool call, sent by the caller of this function, while the tool's sentences are spoken.
    pub async fn while_speaking<T>(
        &self,
        wish: &ToolCall,
        request: impl Future<Output = T>,
        failed: impl FnOnce(&T) -> bool,
    ) -> T {
        match &wish.call_id {
            Some(call_id) => self.service.speak(wish, call_id, request, failed).await,
            None => request.await,
        }
    }

    /// What the caller of a call heard while tools ran, in order.
    pub fn spoken(&self, call_id: &str) -> Vec<Spoken> {
        locked(&self.service.state).calls.live(call_id).map(|live| live.spoken.clone()).unwrap_or_default()
    }
}
