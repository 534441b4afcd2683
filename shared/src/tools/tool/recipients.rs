//! The outcome of a message for each of its recipients.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{Effect, ToolOutcome};
use crate::models::{ExecutionStatus, RecipientState};

#[declare::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecipientOutcome {
    /// The address as given; a phone number in E.164 form.
    pub to: String,
    /// Older versions recorded the field as `outcome`.
    #[serde(alias = "outcome")]
    pub state: RecipientState,
    pub reason: Option<String>,
    /// The service's id of the message, and its status there.
    pub sid: Option<String>,
    pub status: Option<String>,
}

impl RecipientOutcome {
    pub fn new(to: impl Into<String>, state: RecipientState) -> Self {
        Self { to: to.into(), state, reason: None, sid: None, status: None }
    }

    pub fn earlier(done: &Map<String, Value>, to: &str) -> Option<Self> {
        done.get(to).map(|state| Self::new(to, recorded(state)))
    }

    pub fn of_recorded(answer: &Map<String, Value>) -> Vec<Self> {
        let listed = answer.get("result").and_then(|result| result.get("recipients"));
        let mut read: Vec<Self> = listed.and_then(|listed| Vec::deserialize(listed).ok()).unwrap_or_default();
        for one in read.iter_mut().filter(|one| one.state == RecipientState::Sent) {
            one.state = RecipientState::AlreadySent;
        }
        read
    }
}

/// The state of a recipient in a claim. A claim records only messages that were sent or may have been.
fn recorded(state: &Value) -> RecipientState {
    if state == "sent" || state == "already_sent" { RecipientState::AlreadySent } else { RecipientState::Unknown }
}

impl ToolOutcome {
    /// The outcome of a message, from those of its recipients. The answer is `{"summary"?, "sent": number of messages
    /// sent now, "recipients": […]}` as `result`; if a recipient lacks the message, the summary is the error.
    pub fn of_recipients(recipients: Vec<RecipientOutcome>) -> Self {
        let all = |state| recipients.iter().filter(move |one| one.state == state);
        let count = |state| all(state).count();
        let [sent, before, not_sent, unknown] =
            [RecipientState::Sent, RecipientState::AlreadySent, RecipientState::NotSent, RecipientState::Unknown]
                .map(count);
        let summary = summary(&recipients);
        let mut result = json!({"sent": sent, "recipients": recipients});
        let outcome = if not_sent + unknown == 0 {
            if let Some(result) = result.as_object_mut() {
                result.insert("summary".into(), summary.into());
            }
            Self::succeeded(result).with(Effect::Done)
        } else {
            let failed = Self::failed(summary).and_result(result);
            let done = || all_done(&recipients);
            match (sent + before, not_sent, unknown) {
                (0, _, 0) => failed,
                (0, 0, _) => failed.status(ExecutionStatus::Unknown).with(Effect::Unknown { done: done() }),
                (_, 0, _) => failed.status(ExecutionStatus::Partial).with(Effect::Unknown { done: done() }),
                _ => {
                    let partial = Effect::Partial { done: done(), unknown: unknown > 0 };
                    failed.status(ExecutionStatus::Partial).with(partial)
                }
            }
        };
        Self { recipients, ..outcome }
    }
}

/// The recipients that must not get the message again, with their states.
fn all_done(recipients: &[RecipientOutcome]) -> Map<String, Value> {
    let done = recipients.iter().filter(|one| one.state != RecipientState::NotSent);
    done.map(|one| (one.to.clone(), one.state.as_str().into())).collect()
}

/// One sentence that names the recipients of each state, then the next step.
fn summary(recipients: &[RecipientOutcome]) -> String {
    let named = |state| -> Option<String> {
        let named: Vec<&str> = recipients.iter().filter(|one| one.state == state).map(|one| one.to.as_str()).collect();
        (!named.is_empty()).then(|| named.join(", "))
    };
    let mut parts = Vec::new();
    parts.extend(named(RecipientState::Sent).map(|to| format!("sent to {to}")));
    parts.extend(named(RecipientState::AlreadySent).map(|to| format!("already sent to {to} before, and not again")));
    let not_sent = || recipients.iter().filter(|one| one.state == RecipientState::NotSent);
    parts.extend(not_sent().map(|one| match &one.reason {
        Some(why) => format!("not sent to {} ({why})", one.to),
        None => format!("not sent to {}", one.to),
    }));
    let unknown = named(RecipientState::Unknown);
    parts.extend(unknown.map(|to| format!("it is not known whether it reached {to}, so do not send it there again")));
    let sentence = parts.join("; ");
    let mut letters = sentence.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    // Without this, a model that corrects a number repeats the whole list.
    let next = match not_sent().count() {
        missing if missing > 0 && missing < recipients.len() => {
            " To try again, give only the numbers that did not get it."
        }
        _ => "",
    };
    format!("{first}{}.{next}", letters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes(states: &[(&str, RecipientState)]) -> ToolOutcome {
        ToolOutcome::of_recipients(states.iter().map(|(to, state)| RecipientOutcome::new(*to, *state)).collect())
    }

    #[test]
    fn one_sentence_says_who_got_it_who_had_it_and_who_did_not() {
        use RecipientState::{AlreadySent, NotSent, Sent, Unknown};
        for (states, said, status, effect) in [
            (&[("a", Sent), ("b", Sent)][..], "Sent to a, b.", ExecutionStatus::Succeeded, Effect::Done),
            (
                &[("a", AlreadySent), ("b", Sent)],
                "Sent to b; already sent to a before, and not again.",
                ExecutionStatus::Succeeded,
                Effect::Done,
            ),
            (&[("a", NotSent)], "Not sent to a.", ExecutionStatus::Failed, Effect::None),
            (
                &[("a", Sent), ("b", NotSent)],
                "Sent to a; not sent to b. To try again, give only the numbers that did not get it.",
                ExecutionStatus::Partial,
                Effect::Partial { done: Map::from_iter([("a".to_owned(), "sent".into())]), unknown: false },
            ),
            (
                &[("a", Unknown)],
                "It is not known whether it reached a, so do not send it there again.",
                ExecutionStatus::Unknown,
                Effect::Unknown { done: Map::from_iter([("a".to_owned(), "unknown".into())]) },
            ),
        ] {
            let outcome = outcomes(states);
            let result = &outcome.answer["result"];
            let told = outcome.answer.get("error").unwrap_or(&result["summary"]);
            assert_eq!((told, outcome.status, outcome.effect), (&json!(said), status, effect));
        }
    }

    #[test]
    fn a_recorded_outcome_sends_nothing() {
        let older =
            json!({"result": {"recipients": [{"to": "a", "outcome": "sent"}, {"to": "b", "outcome": "unknown"}]}});
        let told = RecipientOutcome::of_recorded(older.as_object().unwrap());
        let expected = [
            RecipientOutcome::new("a", RecipientState::AlreadySent),
            RecipientOutcome::new("b", RecipientState::Unknown),
        ];
        assert_eq!(told, expected);
        assert_eq!(RecipientOutcome::of_recorded(&Map::new()), []);
    }
}
