//! `if_unanswered`: the caller's line is moved at Twilio, and returns to the agent if nobody answers.
//!
//! ```json
//! {"after_seconds"?: 20, "say"?: "text", "return"?: true, "then"?: [Target, …]}
//! ```
//!
//! Twilio is told to fetch the TwiML of the line from `/api/phone-number/{id}/transfers/{call}`
//! (<https://www.twilio.com/docs/voice/api/call-resource#update-a-call-resource>), where `call-start` rings the destinations in
//! turn. Closed destinations are left out when the line is moved. The call at VAPI ends there. A caller who returns gets a new
//! call with the same agent.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Target, live_call, route::Route};
use crate::{
    Result,
    actions::{ActionCall, ActionClients, variables},
    clients::twilio,
    error,
    fields::Fields,
    models::{Call, DialDestination, ExecutionId, ReturningTransfer, Timestamp},
    tool::{Effect, ToolOutcome},
};

const RINGS: u16 = 20;
/// Twilio's default.
const RINGS_WITHOUT_RULE: u16 = 30;
const RING_BOUNDS: std::ops::RangeInclusive<u32> = 5..=60;
const LONGEST_SENTENCE: usize = 300;
const MOST_FURTHER: usize = 4;
/// The caller waits meanwhile.
const RELEASED_WITHIN: Duration = Duration::from_secs(3);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct IfUnanswered {
    after_seconds: u16,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    say: Option<String>,
    #[serde(rename = "return")]
    returns: bool,
    /// They ring after the chosen destination.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) then: Vec<Target>,
}

impl IfUnanswered {
    pub(super) const fn hang_up() -> Self {
        Self { after_seconds: RINGS_WITHOUT_RULE, say: None, returns: false, then: Vec::new() }
    }

    pub(super) fn read(value: &Value, fields: &mut Fields<'_>) -> Option<Self> {
        let path = fields.path("if_unanswered");
        let mut rule = Fields::of(value, path.clone(), fields.problems())?;
        let after_seconds = rule.whole("after_seconds", RING_BOUNDS);
        let after_seconds = after_seconds.map_or(Some(RINGS), |seconds| u16::try_from(seconds).ok());
        let say = rule.text("say", LONGEST_SENTENCE);
        if let Some(mistake) = say.as_deref().and_then(|say| variables::not_filled(say, &[], |_other| false)) {
            rule.problem("say", mistake);
        }
        let returns = rule.boolean("return", true);
        let values = rule.list("then", "destinations").unwrap_or_default();
        if values.len() > MOST_FURTHER {
            rule.problem("then", format!("must hold at most {MOST_FURTHER} destinations"));
        }
        let read = values.iter().take(MOST_FURTHER).enumerate().map(|(place, value)| {
            let mut target = Fields::of(value, format!("{path}.then[{place}]"), rule.problems())?;
            let read = Target::read(&mut target)?;
            target.finish();
            read
        });
        let then: Option<Vec<_>> = read.collect::<Vec<_>>().into_iter().collect();
        for (place, target) in then.iter().flatten().enumerate() {
            if target.dialled().is_none() {
                rule.problem(&format!("then[{place}].type"), "must be number or sip: an assistant is not rung");
            }
        }
        rule.finish();
        Some(Self { after_seconds: after_seconds?, say, returns, then: then? })
    }

    /// Moves the line once. A call that was moved, or may have been, is not moved again.
    pub(super) async fn move_line(
        &self,
        ActionCall { services, context, .. }: ActionCall<'_>,
        execution_id: ExecutionId,
        route: &Route<'_>,
        briefing: Option<String>,
    ) -> Result<ToolOutcome> {
        let call = context.conversation.call.as_ref();
        let line = context.conversation.line.as_ref();
        let known = call.zip(line).filter(|(call, line)| call.phone_number_id == Some(line.id));
        let known = known.and_then(|(call, line)| Some((call, line, call.call_sid.as_deref()?)));
        let Some((call, line, sid)) = known else {
            let refused = live_call::refused(
                "This call cannot be transferred: its line is not ours to move. Offer to take a message instead.",
                "the call did not come in through one of the organization's numbers, so it cannot return",
            );
            return Ok(refused.into_outcome());
        };
        if let Some(refused) = live_call::unavailable(call) {
            return Ok(refused.into_outcome());
        }
        let account: twilio::Account = services.secrets.get(&line.credentials_secret).await?;
        let first = route.first.dialled();
        let further = route.further.iter().filter_map(|further| further.dialled());
        let further = further.filter(|further| Some(further) != first.as_ref());
        let destinations: Vec<DialDestination> = first.iter().cloned().chain(further).collect();
        let transfer = ReturningTransfer {
            execution_id,
            at: Timestamp::now(),
            ring_seconds: self.after_seconds,
            destinations,
            say: self.say.clone(),
            briefing,
            returns: self.returns,
            rung: Vec::new(),
            answered_at: None,
            outcome: None,
            ended_at: None,
            returned_as: None,
        };
        match services.calls.begin_transfer(context.organization, &call.id, &transfer).await {
            Ok(true) => {}
            Ok(false) => return Ok(live_call::moved_already().into_outcome()),
            Err(outage) => {
                // The write may have happened, and would refuse every later transfer.
                give_up(services, call, transfer.at).await;
                return Err(outage);
            }
        }
        let url = format!("{}/api/phone-number/{}/transfers/{}", services.public_url, line.id, call.id);
        Ok(match services.twilio.redirect_call(&account, sid, &url, context.deadline).await {
            Ok(()) => {
                let to = route.words();
                let then = if self.returns { "the caller returns to you" } else { "the call ends" };
                ToolOutcome::succeeded(format!("The call is being transferred{to}. If nobody answers, {then}."))
                    .with(Effect::Done)
            }
            Err(error) if error.effect_possible() => ToolOutcome::unknown(
                "It is not known whether the call is being transferred; do not transfer it again. Ask the caller to stay \
                 on the line, and offer to take a message if nothing happens.",
            )
            .because(error),
            Err(error) => {
                give_up(services, call, transfer.at).await;
                ToolOutcome::failed(
                    "The call could not be transferred; nothing was changed. Offer to take a message instead.",
                )
                .because(error)
            }
        })
    }
}

/// Releases a call that was not moved. If that fails, the call cannot be transferred any more.
async fn give_up(services: &ActionClients, call: &Call, at: Timestamp) {
    let given_up = services.calls.give_up_transfer(call.organization_id, &call.id, at);
    let problem = match tokio::time::timeout(RELEASED_WITHIN, given_up).await {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error::chain(&error),
        Err(elapsed) => elapsed.to_string(),
    };
    tracing::error!(call.id = %call.id, "a call that was not transferred could not be released: {problem}");
}
