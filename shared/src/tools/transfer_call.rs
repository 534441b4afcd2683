//! `transfer_call`: hands the call to somebody else.
//!
//! ```json
//! {"type": "transfer_call",
//!  "target": {"type": "number", "number": "+1…"} | {"type": "sip", "sipUri": "sip:…"} | {"type": "assistant", "assistantId": "…"},
//!  "message": "text", "messageStrategy": "none" | "message" | "summary"}
//! ```

use serde_json::{Map, Value, json};

use super::{
    Parameter, Ran,
    config::{Place, object},
};
use crate::{fields::Fields, models::E164};

const LONGEST_MESSAGE: usize = 1_000;

#[derive(Debug, Clone, PartialEq)]
pub struct TransferCall {
    target: Target,
    message: Option<String>,
    strategy: Strategy,
    /// What the model fills in when the strategy is a summary.
    summary: Option<Parameter>,
}

#[derive(Debug, Clone, PartialEq)]
enum Target {
    Number(E164),
    Sip(String),
    Assistant(String),
}

/// What the person who takes the call over is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Strategy {
    Nothing,
    Message,
    Summary,
}

impl TransferCall {
    pub(super) fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let target = Self::read_target(fields);
        let message = fields.text("message", LONGEST_MESSAGE);
        let strategy = match fields.text("messageStrategy", 40).as_deref() {
            None if message.is_some() => Strategy::Message,
            None | Some("none") => Strategy::Nothing,
            Some("message") => Strategy::Message,
            Some("summary") => Strategy::Summary,
            Some(_) => {
                fields.problem("messageStrategy", "must be one of none, message, summary");
                return None;
            }
        };
        if strategy == Strategy::Message && message.is_none() {
            fields.problem("message", "is required when messageStrategy is message");
        }
        let summary = (strategy == Strategy::Summary).then(|| Parameter::Ai {
            prompt: "A summary of the conversation in one or two sentences, for whoever takes the call over".into(),
            schema: object([("type", Some("string".into()))]),
            required: true,
        });
        Some(Self { target: target?, message, strategy, summary })
    }

    fn read_target(fields: &mut Fields<'_>) -> Option<Target> {
        let value = fields.required("target")?;
        let path = fields.path("target");
        let mut target = Fields::of(value, path, fields.problems())?;
        let read = match target.required_text("type", 40).as_deref() {
            Some("number") => target.required_parse("number").map(Target::Number),
            Some("sip") => match target.required_text("sipUri", 200) {
                Some(uri) if uri.starts_with("sip:") || uri.starts_with("sips:") => Some(Target::Sip(uri)),
                Some(_) => {
                    target.problem("sipUri", "must begin with sip: or sips:");
                    None
                }
                None => None,
            },
            Some("assistant") => {
                target.required_parse::<uuid::Uuid>("assistantId").map(|id| Target::Assistant(id.to_string()))
            }
            Some(_) => {
                target.problem("type", "must be one of number, sip, assistant");
                return None;
            }
            None => return None,
        };
        target.finish();
        read
    }

    pub(super) fn parameters(&self) -> Vec<(Place, &Parameter)> {
        self.summary.iter().map(|summary| (Place::named("summary"), summary)).collect()
    }

    pub(super) fn static_config(&self) -> Value {
        Value::Object(self.to_json())
    }

    pub(super) fn to_json(&self) -> Map<String, Value> {
        let target = match &self.target {
            Target::Number(number) => json!({"type": "number", "number": number}),
            Target::Sip(uri) => json!({"type": "sip", "sipUri": uri}),
            Target::Assistant(id) => json!({"type": "assistant", "assistantId": id}),
        };
        let strategy = match self.strategy {
            Strategy::Nothing => "none",
            Strategy::Message => "message",
            Strategy::Summary => "summary",
        };
        object([
            ("target", Some(target)),
            ("message", self.message.clone().map(Value::from)),
            ("messageStrategy", Some(strategy.into())),
        ])
    }

    /// What [`TransferCall::run`] is about: `{"target", "message"?, "messageStrategy", "summary"?}`.
    pub(super) fn preview(&self, arguments: &Map<String, Value>) -> Value {
        let mut shown = self.to_json();
        let summary = self.summary.as_ref().and_then(|_| arguments.get("summary"));
        shown.extend(summary.map(|summary| ("summary".to_owned(), summary.clone())));
        Value::Object(shown)
    }

    /// Transfers are not carried out yet, and the model is told so.
    #[expect(clippy::unused_self, reason = "every action runs on itself")]
    pub(super) fn run(&self) -> Ran {
        Ran::failed("This call cannot be transferred by this tool yet. Offer to take a message instead.")
    }
}
