//! The receipt of a turn, made from its record. It is independent of the model's words and language.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::AgentState;
use crate::{
    cut::cut,
    described::Described,
    models::{Delivered, PendingCall, RecipientState, ToolResult, TurnCall, WaitsFor},
    tool::{Offered, Toolbox},
};

/// In bytes.
const LONGEST_REASON: usize = 300;

/// The effects of a turn, according to the record.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, Described)]
pub struct Receipt {
    /// Calls of tools with an effect, other calls if they failed or were not made, and pending actions.
    #[serde(default)]
    pub entries: Vec<Entry>,
    /// Tools that act were on offer, and none was called or asked for.
    #[serde(default)]
    pub no_action: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Described)]
#[schema(name = "ReceiptEntry")]
pub struct Entry {
    pub tool: String,
    /// The name for people.
    pub label: String,
    /// It changes something outside.
    pub effect: bool,
    pub state: EntryState,
    /// One line for people.
    pub text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recipients: Vec<Delivered>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Described)]
#[serde(rename_all = "snake_case")]
pub enum EntryState {
    Done,
    Partial,
    Failed,
    Refused,
    NotCalled,
    Waiting,
    #[serde(other)]
    Unknown,
}

impl Receipt {
    pub fn of(state: &AgentState, toolbox: &Toolbox) -> Self {
        let mut receipt = Self::of_calls(&state.tool_results);
        if let Some(pending) = &state.pending {
            receipt.wait_for(pending, toolbox);
        }
        let may_act = toolbox.offered().any(|offered| offered.spec().acts() && !offered.is_of_front_end());
        receipt.no_action = may_act && !receipt.entries.iter().any(|entry| entry.effect);
        receipt
    }

    /// The receipt of a turn that waits, made from its stored call alone.
    pub fn of_pending(pending: &PendingCall) -> Self {
        let mut receipt = Self::of_calls(&pending.tool_results);
        receipt.wait_for(pending, &Toolbox::default());
        receipt
    }

    /// Adds the waiting call and the calls after it, which have the labels of `toolbox`, or their names.
    fn wait_for(&mut self, pending: &PendingCall, toolbox: &Toolbox) {
        self.entries.push(waiting(pending));
        self.entries.extend(pending.rest.iter().map(|call| {
            let offered = toolbox.get(&call.tool);
            let label = offered.map_or(call.tool.as_str(), Offered::label);
            Entry {
                tool: call.tool.clone(),
                label: label.to_owned(),
                effect: offered.is_some_and(|offered| offered.spec().acts()),
                state: EntryState::Waiting,
                text: line(label, "waits for the call before it."),
                recipients: Vec::new(),
            }
        }));
    }

    pub fn of_calls(calls: &[ToolResult]) -> Self {
        let is_shown = |call: &&ToolResult| call.effect || call.outcome != TurnCall::Succeeded;
        Self { entries: calls.iter().filter(is_shown).map(entry).collect(), no_action: false }
    }

    /// An answer for readers of plain text: one more line per entry.
    pub fn below(&self, answer: &str) -> String {
        let mut text = answer.to_owned();
        for (number, entry) in self.entries.iter().enumerate() {
            text.push_str(if number == 0 && !text.is_empty() { "\n\n" } else { "\n" });
            text.push_str(&entry.text);
        }
        text.trim_start().to_owned()
    }
}

fn waiting(pending: &PendingCall) -> Entry {
    let for_whom = match pending.waits_for {
        WaitsFor::Consent => "waits for your consent; nothing has been done yet.",
        WaitsFor::FrontEnd => "waits for the page.",
    };
    Entry {
        tool: pending.tool.name.clone(),
        label: pending.label().to_owned(),
        effect: pending.effect || pending.waits_for == WaitsFor::Consent,
        state: EntryState::Waiting,
        text: line(pending.label(), for_whom),
        recipients: Vec::new(),
    }
}

fn entry(call: &ToolResult) -> Entry {
    let state = state(call);
    let label = if call.label.is_empty() { &call.tool } else { &call.label };
    let what = if call.recipients.is_empty() { plain(call, state) } else { by_recipient(&call.recipients) };
    Entry {
        tool: call.tool.clone(),
        label: label.clone(),
        effect: call.effect,
        state,
        text: line(label, &what),
        recipients: call.recipients.clone(),
    }
}

fn state(call: &ToolResult) -> EntryState {
    let has = |wanted: &[RecipientState]| call.recipients.iter().any(|one| wanted.contains(&one.state));
    let (sent, not_sent) = (has(&[RecipientState::Sent, RecipientState::AlreadySent]), has(&[RecipientState::NotSent]));
    match call.outcome {
        TurnCall::Succeeded | TurnCall::Failed | TurnCall::Unconfirmed if sent && not_sent => EntryState::Partial,
        TurnCall::Succeeded => EntryState::Done,
        TurnCall::Failed | TurnCall::Unconfirmed if has(&[RecipientState::Unknown]) => EntryState::Unknown,
        TurnCall::Failed => EntryState::Failed,
        TurnCall::NotCalled => EntryState::NotCalled,
        TurnCall::Refused => EntryState::Refused,
        TurnCall::Unconfirmed | TurnCall::Running | TurnCall::Unknown => EntryState::Unknown,
    }
}

fn plain(call: &ToolResult, state: EntryState) -> String {
    match state {
        EntryState::Done if call.repeats => "done before, and not once more.".to_owned(),
        EntryState::Done | EntryState::Partial => "done.".to_owned(),
        EntryState::Failed => with_reason("failed", &call.result),
        EntryState::Unknown => "not confirmed; it may have been done. Look before you ask for it again.".to_owned(),
        EntryState::Refused => "not done: you said no.".to_owned(),
        EntryState::NotCalled => with_reason("asked for, not called", &call.result),
        EntryState::Waiting => "waits.".to_owned(),
    }
}

fn by_recipient(recipients: &[Delivered]) -> String {
    let parts = [
        (RecipientState::Sent, "sent to"),
        (RecipientState::AlreadySent, "had been sent before to"),
        (RecipientState::NotSent, "not sent to"),
        (RecipientState::Unknown, "not confirmed for"),
    ];
    let parts = parts.iter().filter_map(|(state, words)| {
        let of_state = recipients.iter().filter(|one| one.state == *state).map(|one| one.to.as_str());
        let of_state = of_state.collect::<Vec<_>>().join(", ");
        (!of_state.is_empty()).then(|| format!("{words} {of_state}"))
    });
    format!("{}.", parts.collect::<Vec<_>>().join("; "))
}

fn with_reason(what: &str, result: &Value) -> String {
    let reason = result.as_str().or_else(|| result.get("error").and_then(Value::as_str)).unwrap_or_default();
    let reason = reason.strip_prefix("Not called: ").unwrap_or(reason);
    if reason.is_empty() { format!("{what}.") } else { format!("{what}: {}", cut(reason.to_owned(), LONGEST_REASON)) }
}

/// Keeps the entry in one line, whatever characters the label or a reason has.
fn line(label: &str, what: &str) -> String {
    format!("{label}: {what}").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(outcome: TurnCall, more: &Value) -> ToolResult {
        let mut call = json!({"tool": "send_sms", "label": "Send directions", "outcome": "succeeded", "effect": true});
        for (name, value) in more.as_object().unwrap() {
            call[name.as_str()] = value.clone();
        }
        ToolResult { outcome, ..serde_json::from_value(call).unwrap() }
    }

    fn line_of(outcome: TurnCall, more: &Value) -> (EntryState, String) {
        let entry = entry(&call(outcome, more));
        (entry.state, entry.text)
    }

    #[test]
    fn each_outcome_is_one_line() {
        for (outcome, more, state, text) in [
            (TurnCall::Succeeded, json!({}), EntryState::Done, "done."),
            (TurnCall::Succeeded, json!({"repeats": true}), EntryState::Done, "done before, and not once more."),
            (TurnCall::Failed, json!({"result": "No\ncredit."}), EntryState::Failed, "failed: No credit."),
            (TurnCall::Failed, json!({"result": {"error": "Half."}}), EntryState::Failed, "failed: Half."),
            (TurnCall::Refused, json!({}), EntryState::Refused, "not done: you said no."),
            (
                TurnCall::NotCalled,
                json!({"result": "Not called: there is no such tool."}),
                EntryState::NotCalled,
                "asked for, not called: there is no such tool.",
            ),
        ] {
            assert_eq!(line_of(outcome, &more), (state, format!("Send directions: {text}")));
        }
        for unknown in [TurnCall::Unconfirmed, TurnCall::Running, TurnCall::Unknown] {
            let (state, text) = line_of(unknown, &json!({}));
            assert!(state == EntryState::Unknown && text.contains("may have been done"), "{text}");
        }
    }

    #[test]
    fn recipients_are_told_apart() {
        let to = |states: &[(&str, &str)]| {
            let recipients = states.iter().map(|(to, state)| json!({"to": to, "state": state}));
            json!({"recipients": recipients.collect::<Vec<_>>()})
        };
        let (state, text) = line_of(TurnCall::Succeeded, &to(&[("+1", "sent"), ("+2", "already_sent")]));
        assert_eq!(
            (state, text.as_str()),
            (EntryState::Done, "Send directions: sent to +1; had been sent before to +2.")
        );
        let (state, text) =
            line_of(TurnCall::Failed, &to(&[("+1", "sent"), ("+2", "not_sent"), ("+3", "of a newer version")]));
        assert_eq!(state, EntryState::Partial);
        assert_eq!(text, "Send directions: sent to +1; not sent to +2; not confirmed for +3.");
        assert_eq!(line_of(TurnCall::Failed, &to(&[("+1", "unknown")])).0, EntryState::Unknown);
    }

    #[test]
    fn a_read_is_listed_only_if_it_failed() {
        let read = |outcome| call(outcome, &json!({"effect": false}));
        let receipt = Receipt::of_calls(&[read(TurnCall::Succeeded), read(TurnCall::Failed)]);
        assert_eq!(receipt.entries.len(), 1);
        assert_eq!(receipt.below("Envoyé à Ana !"), "Envoyé à Ana !\n\nSend directions: failed.");
        assert_eq!(Receipt::default().below("¡Listo!"), "¡Listo!");
    }
}
