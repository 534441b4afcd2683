//! `transfer_call`: transfers a live call through its control URL.
//!
//! ```json
//! {"type": "transfer_call",
//!  "target": Target | "destinations": [Target with "label" and "description"?],
//!  "message": "text", "messageStrategy": "none" | "message" | "summary", "if_unanswered"?: IfUnanswered}
//! ```
//!
//! A `Target` is `{"type": "number", "number": "+1…"}`, `{"type": "sip", "sipUri": "sip:…"}` or `{"type": "assistant",
//! "assistantId": "…"}`. Both forms are the tool's allow-list: a `target` leaves the model no choice, and of `destinations` it
//! picks one by label (`destination`). Numbers spoken by a model are never dialled. An assistant must belong to one of the
//! organization's agents. With `"hours": Hours, "time_zone": "Europe/Lisbon"` a target takes calls within these hours only
//! (`route.rs`).
//!
//! The request by strategy:
//!
//! | | number, sip | assistant |
//! |---|---|---|
//! | `none` | `transfer`: VAPI passes the call on blindly | `handoff`: the assistant goes on with the conversation so far |
//! | `message` | `transfer` with `transferPlan.mode` `warm-transfer-say-message`: VAPI calls the destination, tells it the message, and connects the caller | `add-message` with the message for the model, then `handoff` |
//! | `summary` | the same, with the summary that the model wrote, after the message if there is one | the same |
//!
//! VAPI's own `warm-transfer-say-summary` is unused, since another model would write a second summary. VAPI announces the
//! transfer to the caller in its own words: neither `content` nor `destination.message` is sent.
//!
//! With `if_unanswered` VAPI has no part in the transfer: the line is moved at Twilio (`if_unanswered.rs`). So is the line of a call
//! made with VAPI's provider bypass, because VAPI can hand such a call to assistants only.

mod if_unanswered;
mod live_call;
mod route;
mod target;

use futures_util::future::try_join;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use self::{if_unanswered::IfUnanswered, target::Target};
use super::{
    ActionCall, Parameter,
    no_request::{NoRequest, NotRun},
    parameters::{Place, object},
    variables::{self, Encoding},
};
use crate::{
    Result,
    clients::call_control::NotAccepted,
    fields::Fields,
    models::{ExecutionId, Fault, Timestamp},
    tool::{CallContext, Effect, ToolOutcome},
};

const LONGEST_MESSAGE: usize = 1_000;
const LONGEST_SUMMARY: usize = 1_000;
const LONGEST_LABEL: usize = 60;
const LONGEST_DESCRIPTION: usize = 200;
const MOST_DESTINATIONS: usize = 20;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "Stored")]
pub struct TransferCall {
    #[serde(flatten)]
    stored: Stored,
    /// The model's argument if there are several destinations.
    #[serde(skip)]
    choice: Option<Parameter>,
    /// The model's argument for the strategy `summary`.
    #[serde(skip)]
    summary: Option<Parameter>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Stored {
    #[serde(flatten)]
    allowed: Allowed,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(rename = "messageStrategy")]
    strategy: Strategy,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    if_unanswered: Option<IfUnanswered>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Allowed {
    Target(Target),
    Destinations(Vec<Destination>),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Destination {
    #[serde(flatten)]
    target: Target,
    /// The name by which the model picks it; unique within the tool, ignoring case.
    label: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Strategy {
    #[serde(rename = "none")]
    Nothing,
    Message,
    Summary,
}

impl From<Stored> for TransferCall {
    fn from(stored: Stored) -> Self {
        let summary = (stored.strategy == Strategy::Summary).then(|| Parameter::Ai {
            prompt: "A summary of the conversation in one or two sentences, for the person who takes over the call"
                .into(),
            schema: object([("type", Some("string".into()))]),
            required: true,
        });
        Self { choice: stored.allowed.choice(), stored, summary }
    }
}

impl TransferCall {
    pub(super) fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let allowed = Allowed::read(fields);
        let message = fields.text("message", LONGEST_MESSAGE);
        if let Some(mistake) = message.as_deref().and_then(variables::unknown_in) {
            fields.problem("message", mistake);
        }
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
        let if_unanswered = match fields.get("if_unanswered") {
            Some(value) => Some(IfUnanswered::read(value, fields)?),
            None => None,
        };
        let allowed = allowed?;
        if if_unanswered.is_some() {
            for field in allowed.assistants().into_iter().map(|(field, _)| field) {
                fields.problem(&field, "cannot be rung; an if_unanswered needs numbers and SIP addresses");
            }
        }
        Some(Stored { allowed, message, strategy, if_unanswered }.into())
    }

    /// The effect is the destination; another wording of the summary makes no other effect.
    pub(super) fn normalize(arguments: &mut Map<String, Value>) {
        arguments.remove("summary");
    }

    /// All assistants among the destinations, each with its field.
    pub fn assistants(&self) -> Vec<(String, &str)> {
        self.stored.allowed.assistants()
    }

    pub(super) fn parameters(&self) -> Vec<(Place, &Parameter)> {
        let place = |field: &str, argument: &str| Place { field: field.to_owned(), argument: argument.to_owned() };
        let choice = self.choice.iter().map(|choice| (place("destinations", "destination"), choice));
        let summary = self.summary.iter().map(|summary| (place("messageStrategy", "summary"), summary));
        choice.chain(summary).collect()
    }

    pub(super) fn static_config(&self) -> Value {
        json!(self)
    }

    /// The transfer of [`TransferCall::run`]: `{"destination", "label"?, "briefing"?}`.
    pub(super) fn preview(&self, call: ActionCall<'_>) -> Result<Value, NotRun> {
        let route = self.route(call.arguments, Timestamp::now());
        let route = route.map_err(|nobody| NoRequest::from(nobody.into_sentence()))?;
        let briefing = self.briefing(call)?;
        Ok(Value::Object(object([
            ("destination", Some(json!(route.first.callee))),
            ("label", route.label.map(Value::from)),
            ("briefing", briefing.map(Value::from)),
        ])))
    }

    /// Transfers once. A destination outside the list is refused, and a closed one is not rung.
    pub(super) async fn run(&self, call: ActionCall<'_>, execution: ExecutionId) -> Result<ToolOutcome, NotRun> {
        let ActionCall { services, context, arguments } = call;
        let route = match self.route(arguments, Timestamp::now()) {
            Ok(route) => route,
            Err(nobody) => return Ok(nobody.into_outcome()),
        };
        let briefing = self.briefing(call)?;
        let (rule, no_rule) = (self.stored.if_unanswered.as_ref(), IfUnanswered::hang_up());
        let bypassed = context.conversation.call.as_ref().is_some_and(|call| call.bypasses_provider);
        let moves = bypassed && route.first.dialled().is_some();
        if let Some(rule) = rule.or(moves.then_some(&no_rule)) {
            return Ok(rule.move_line(call, execution, &route, briefing).await?);
        }
        let (url, permitted) =
            try_join(live_call::find(services, context), route.first.permitted(services, context.organization)).await?;
        let (agent, url) = match permitted.and_then(|agent| Ok((agent, url?))) {
            Ok(permitted) => permitted,
            Err(refused) => return Ok(refused.into_outcome()),
        };
        Ok(match route.first.send(services, &url, briefing.as_deref(), context.deadline).await {
            Ok(()) => {
                if let Some((agent, call)) = agent.zip(context.conversation.call.as_ref()) {
                    live_call::note_handoff(services, call, agent).await;
                }
                let to = route.words();
                ToolOutcome::succeeded(format!("The call is being transferred{to}.")).with(Effect::Done)
            }
            Err(not_accepted) => report(not_accepted),
        })
    }

    /// The briefing for the callee, if the strategy has one.
    fn briefing(&self, call: ActionCall<'_>) -> Result<Option<String>, NoRequest> {
        let ActionCall { context: CallContext { conversation, .. }, arguments, .. } = call;
        if self.stored.strategy == Strategy::Nothing {
            return Ok(None);
        }
        let message = match self.stored.message.as_deref() {
            Some(message) => Some(variables::fill_text(message, conversation, Encoding::Plain).map_err(|unknown| {
                let sentence = format!("The call was not transferred: {unknown}. Offer to take a message instead.");
                NoRequest::of(Fault::Caller, sentence)
            })?),
            None => None,
        };
        let summary = self.summary.as_ref().and_then(|_| arguments.get("summary")?.as_str()).map(str::trim);
        if summary.is_some_and(|summary| summary.chars().count() > LONGEST_SUMMARY) {
            return Err(format!("The summary is longer than {LONGEST_SUMMARY} characters; shorten it.").into());
        }
        let parts: Vec<&str> = [message.as_deref(), summary].into_iter().flatten().collect();
        Ok((!parts.is_empty()).then(|| parts.join(" ")))
    }
}

impl Allowed {
    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        match (fields.get("target"), fields.get("destinations")) {
            (Some(_), None) => {
                let mut target = fields.object("target")?;
                let read = Target::read(&mut target)?;
                target.finish();
                read.map(Self::Target)
            }
            (None, Some(_)) => {
                let values = fields.list("destinations", "destinations")?;
                if !(1..=MOST_DESTINATIONS).contains(&values.len()) {
                    fields.problem("destinations", format!("must hold 1 to {MOST_DESTINATIONS} destinations"));
                    return None;
                }
                Self::read_all(values, fields)
            }
            (None, None) => {
                fields.problem("target", "is required, or destinations for the model to choose from");
                None
            }
            (Some(_), Some(_)) => {
                fields.problem("destinations", "cannot stand beside target; give one of the two");
                None
            }
        }
    }

    fn read_all(values: &[Value], fields: &mut Fields<'_>) -> Option<Self> {
        let path = fields.path("destinations");
        let mut read: Vec<Option<Destination>> = Vec::new();
        for (index, value) in values.iter().enumerate() {
            let destination = Fields::of(value, format!("{path}[{index}]"), fields.problems())
                .and_then(|destination| Destination::read(destination, &read));
            read.push(destination);
        }
        read.into_iter().collect::<Option<Vec<_>>>().map(Self::Destinations)
    }

    fn assistants(&self) -> Vec<(String, &str)> {
        let named: Vec<(String, &Target)> = match self {
            Self::Target(target) => vec![("target".to_owned(), target)],
            Self::Destinations(all) => {
                let numbered = all.iter().enumerate();
                numbered.map(|(index, to)| (format!("destinations[{index}]"), &to.target)).collect()
            }
        };
        named.into_iter().filter_map(|(at, to)| Some((format!("{at}.assistantId"), to.assistant()?))).collect()
    }

    fn choice(&self) -> Option<Parameter> {
        let Self::Destinations(all) = self else { return None };
        let listed = all.iter().map(|destination| match &destination.description {
            Some(description) => format!("{} ({description})", destination.label),
            None => destination.label.clone(),
        });
        let listed: Vec<String> = listed.collect();
        let labels: Vec<&str> = all.iter().map(|destination| destination.label.as_str()).collect();
        Some(Parameter::Ai {
            prompt: format!("Who takes the call over: {}", listed.join("; ")),
            schema: object([("type", Some("string".into())), ("enum", Some(json!(labels)))]),
            required: true,
        })
    }

    /// The chosen destination with its label, and those after it in the list.
    fn chosen(&self, arguments: &Map<String, Value>) -> Result<(&Target, Option<&str>, &[Destination]), String> {
        let all = match self {
            Self::Target(target) => return Ok((target, None, &[])),
            Self::Destinations(all) => all,
        };
        let wanted = arguments.get("destination").and_then(Value::as_str);
        let from = all.iter().position(|destination| Some(destination.label.as_str()) == wanted);
        let chosen = from.and_then(|from| all.get(from..)?.split_first());
        chosen.map(|(chosen, after)| (&chosen.target, Some(chosen.label.as_str()), after)).ok_or_else(|| {
            let labels: Vec<&str> = all.iter().map(|destination| destination.label.as_str()).collect();
            format!("The argument \"destination\" must be one of {}.", labels.join(", "))
        })
    }
}

impl Destination {
    fn read(mut fields: Fields<'_>, before: &[Option<Self>]) -> Option<Self> {
        let label = fields.required_name("label", LONGEST_LABEL);
        let description = fields.text("description", LONGEST_DESCRIPTION);
        let target = Target::read(&mut fields)?;
        if let Some(label) = &label
            && before.iter().flatten().any(|other| other.label.to_lowercase() == label.to_lowercase())
        {
            fields.problem("label", "is that of another destination; the model must be able to tell them apart");
        }
        fields.finish();
        Some(Self { target: target?, label: label?, description })
    }
}

fn report(not_accepted: NotAccepted) -> ToolOutcome {
    let ran = match &not_accepted {
        NotAccepted::NotThere(_) => ToolOutcome::failed(
            "The call does not take a transfer just now, and nothing was transferred. Offer to take a message instead.",
        )
        .at_fault(Fault::Caller),
        NotAccepted::Declined(_) => ToolOutcome::failed(
            "The call could not be transferred; nothing was changed. Offer to take a message instead.",
        ),
        NotAccepted::Unknown(_) => ToolOutcome::unknown(
            "It is not known whether the call is being transferred; do not transfer it again. Ask the caller to stay on \
             the line, and offer to take a message if nothing happens.",
        ),
    };
    ran.because(not_accepted.into_error())
}
