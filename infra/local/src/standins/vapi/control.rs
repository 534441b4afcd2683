//! The messages that a control URL accepts.
//!
//! From VAPI's OpenAPI document; `handoff` and `send-transport-message` appear only in its documentation.

use serde_json::{Map, Value};

use super::{
    fields::{NUMBER_DESTINATION, SIP_DESTINATION},
    validation::{self, Completeness, Field, Kind, may, must},
};

pub(super) const NO_E164: &str = "must be a valid phone number in the E.164 format. Hot tip, you may be missing the country \
                                  code (Eg. US: +1).";

static SAID: &[Field] =
    &[must("role", Kind::OneOf(&["assistant", "function", "user", "system", "tool"])), must("content", Kind::Text)];
static CONTEXT: &[Field] = &[
    must(
        "type",
        Kind::OneOf(&["lastNMessages", "none", "all", "userAndAssistantMessages", "previousAssistantMessages"]),
    ),
    may("maxMessages", Kind::Number),
];
/// The documentation writes the plan as text, the OpenAPI document as an object.
static ASSISTANT_DESTINATION: &[Field] = &[
    must("type", Kind::Text),
    may("contextEngineeringPlan", Kind::TextOr(CONTEXT)),
    may("assistantId", Kind::Text),
    may("assistantName", Kind::Text),
    may("assistant", Kind::Map),
    may("assistantOverrides", Kind::Map),
    may("variableExtractionPlan", Kind::Map),
    may("description", Kind::Text),
];
static TRANSPORT: &[Field] = &[
    must("transport", Kind::OneOf(&["twilio", "vapi.sip"])),
    may("twiml", Kind::Text),
    may("sipVerb", Kind::OneOf(&["INFO", "MESSAGE", "NOTIFY"])),
    may("headers", Kind::Map),
    may("body", Kind::Text),
];
static MESSAGES: &[(&str, &[Field])] = &[
    (
        "say",
        &[
            must("type", Kind::Text),
            may("content", Kind::Text),
            may("endCallAfterSpoken", Kind::Boolean),
            may("interruptAssistantEnabled", Kind::Boolean),
            may("interruptionsEnabled", Kind::Boolean),
        ],
    ),
    (
        "add-message",
        &[must("type", Kind::Text), must("message", Kind::Object(SAID)), may("triggerResponseEnabled", Kind::Boolean)],
    ),
    (
        "control",
        &[
            must("type", Kind::Text),
            must(
                "control",
                Kind::OneOf(&[
                    "mute-assistant",
                    "unmute-assistant",
                    "mute-customer",
                    "unmute-customer",
                    "say-first-message",
                ]),
            ),
        ],
    ),
    ("end-call", &[must("type", Kind::Text)]),
    (
        "transfer",
        &[
            must("type", Kind::Text),
            must("destination", Kind::Tagged(&[("number", NUMBER_DESTINATION), ("sip", SIP_DESTINATION)])),
            may("content", Kind::Text),
        ],
    ),
    (
        "handoff",
        &[
            must("type", Kind::Text),
            must("destination", Kind::Tagged(&[("assistant", ASSISTANT_DESTINATION)])),
            may("content", Kind::Text),
        ],
    ),
    ("send-transport-message", &[must("type", Kind::Text), must("message", Kind::Object(TRANSPORT))]),
];

/// Problems of a message; `knows` tells whether an assistant exists.
pub(super) fn problems(message: &Map<String, Value>, knows: impl Fn(&str) -> bool) -> Vec<String> {
    let kind = message.get("type").and_then(Value::as_str);
    let Some((kind, fields)) = MESSAGES.iter().find(|(name, _)| Some(*name) == kind) else {
        let known: Vec<_> = MESSAGES.iter().map(|(name, _)| *name).collect();
        return vec![format!("type must be one of the following values: {}", known.join(", "))];
    };
    let mut problems = Vec::new();
    validation::fields(message, fields, "", Completeness::Whole, &mut problems);
    let Some(destination) = message.get("destination").and_then(Value::as_object) else { return problems };
    let text = |name: &str| destination.get(name).and_then(Value::as_str);
    match *kind {
        "transfer" => {
            let checked = destination.get("numberE164CheckEnabled").and_then(Value::as_bool).unwrap_or(true);
            if text("number").is_some_and(|number| checked && !is_e164(number)) {
                problems.push(format!("destination.number {NO_E164}"));
            }
        }
        "handoff" => match (text("assistantId"), text("assistantName"), destination.get("assistant")) {
            (Some(id), ..) if !knows(id) => {
                problems.push(format!("Couldn't Get Assistant. `assistantId` {id} Does Not Exist."));
            }
            (None, None, None) => {
                problems.push("destination must have one of assistantId, assistantName, assistant".to_owned());
            }
            _ => {}
        },
        _ => {}
    }
    problems
}

pub(super) fn is_e164(number: &str) -> bool {
    number.strip_prefix('+').is_some_and(|digits| {
        (7..=15).contains(&digits.len())
            && !digits.starts_with('0')
            && digits.bytes().all(|digit| digit.is_ascii_digit())
    })
}
