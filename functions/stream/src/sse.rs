//! The events of `POST /agent/stream`, each as `data: {"type", …}`.

use serde::Serialize;
use serde_json::{Map, Value};
use shared::{
    Error,
    chat::{PendingAction, TurnAnswer},
    http::Frames,
    models::Timestamp,
    planner::{Observer, TurnEvent},
};

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Written<'a> {
    Progress {
        node: &'a str,
        step: &'a str,
    },
    Token {
        content: &'a str,
    },
    ToolCall {
        id: &'a str,
        tool: &'a str,
        arguments: &'a Map<String, Value>,
    },
    ToolResult {
        id: &'a str,
        tool: &'a str,
        outcome: &'a str,
        result: &'a Value,
    },
    Widget {
        widget: &'a Value,
    },
    Consent {
        pending_action: PendingAction,
    },
    Message {
        content: &'a str,
        role: &'a str,
    },
    Done {
        thread_id: &'a str,
        timestamp: &'a Timestamp,
        #[serde(skip_serializing_if = "Option::is_none")]
        widget: Option<&'a Value>,
        metadata: &'a Value,
    },
    Error {
        message: &'a str,
        code: &'a str,
    },
}

#[derive(Default)]
pub(crate) struct Stream {
    frames: Frames,
    message_told: bool,
    consent_told: bool,
    widget_told: bool,
}

impl Stream {
    pub(crate) fn new(frames: Frames) -> Self {
        Self { frames, ..Self::default() }
    }

    /// Ends the stream and sends the rest of the answer; the answer to a repeated request is sent as a whole.
    pub(crate) fn answered(&mut self, answer: &TurnAnswer) {
        let TurnAnswer { thread, content, timestamp, widget, metadata, .. } = answer;
        if let Some(widget) = widget.as_ref().filter(|_| !self.widget_told) {
            self.frames.data(&Written::Widget { widget });
        }
        // The question to the person is sent once.
        if !self.message_told && !self.consent_told {
            self.message(content);
        }
        self.frames.data(&Written::Done { thread_id: thread, timestamp, widget: widget.as_ref(), metadata });
    }

    fn message(&mut self, content: &str) {
        self.message_told = true;
        self.frames.data(&Written::Message { content, role: "assistant" });
    }
}

pub(crate) fn failed(frames: &Frames, error: &Error) {
    frames.data(&Written::Error { message: &error.to_string(), code: error.code() });
}

impl Observer for Stream {
    fn wants_tokens(&self) -> bool {
        true
    }

    fn event(&mut self, event: TurnEvent<'_>) {
        match event {
            TurnEvent::Progress { node, step } => self.frames.data(&Written::Progress { node, step: step.as_str() }),
            TurnEvent::Token(content) => self.frames.data(&Written::Token { content }),
            TurnEvent::ToolCall { id, tool, arguments } | TurnEvent::FrontEndCall { id, tool, arguments } => {
                self.frames.data(&Written::ToolCall { id, tool, arguments });
            }
            TurnEvent::ToolResult { id, result } => {
                let (tool, outcome) = (result.tool.as_str(), result.outcome.as_str());
                self.frames.data(&Written::ToolResult { id, tool, outcome, result: &result.result });
            }
            TurnEvent::Widget(widget) => {
                self.widget_told = true;
                match serde_json::to_value(widget) {
                    Ok(widget) => self.frames.data(&Written::Widget { widget: &widget }),
                    Err(error) => tracing::error!("a widget cannot be written: {error}"),
                }
            }
            TurnEvent::Consent(pending) => {
                self.consent_told = true;
                self.frames.data(&Written::Consent { pending_action: pending.into() });
            }
            TurnEvent::Message(content) => self.message(content),
        }
    }
}
