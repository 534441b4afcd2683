//! Outcomes of earlier attempts at an effect.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{CheckedRequest, Executor, claimant, effect_key, replay, report, under_way};
use crate::{
    Result,
    actions::{self, ActionTool},
    idempotency::{Claim, Earlier, Outcome},
    models::{ExecutionStatus, RecipientState},
    tool::{CallContext, Effect, RecipientOutcome, ToolOutcome, arguments::Checked},
};

/// An attempt that did not begin, for example because of a limit, names the recipients in `done`, whom earlier attempts reached.
pub(super) fn beside_earlier(
    CheckedRequest { tool, context, arguments, .. }: CheckedRequest<'_>,
    done: &Map<String, Value>,
    outcome: ToolOutcome,
) -> ToolOutcome {
    if done.is_empty() || outcome.effect != Effect::None || !outcome.recipients.is_empty() {
        return outcome;
    }
    let why =
        outcome.answer.get("error").and_then(Value::as_str).map(|sentence| sentence.trim_end_matches('.').to_owned());
    let parts = tool.parts(arguments, context.conversation);
    let asked = parts.into_iter().flat_map(|part| part.recipients);
    let all: BTreeSet<String> = asked.chain(done.keys().cloned()).collect();
    let each = all.into_iter().map(|to| {
        let missing =
            || RecipientOutcome { reason: why.clone(), ..RecipientOutcome::new(&to, RecipientState::NotSent) };
        RecipientOutcome::earlier(done, &to).unwrap_or_else(missing)
    });
    let told = actions::told(&tool.action, context, each.collect());
    let fault = outcome.fault();
    let ToolOutcome { answer, status, effect, recipients, .. } = told;
    ToolOutcome { answer, status, effect, recipients, fault, ..outcome }
}

impl Executor {
    /// The outcome of an earlier attempt at an effect that cannot begin now; `None` if it did not begin.
    pub async fn outcome_before(
        &self,
        tool: &ActionTool,
        arguments: &Map<String, Value>,
        context: &CallContext<'_>,
    ) -> Result<Option<ToolOutcome>> {
        let Some(Checked { arguments, .. }) = tool.check(arguments).ok().filter(|_| tool.spec.acts()) else {
            return Ok(None);
        };
        let significant = tool.significant(&arguments, context.conversation);
        let key = effect_key(tool.id, claimant(tool, context), significant);
        Ok(match self.claim(&key, context.delivery.into(), context.deadline).await? {
            Claim::Mine(ticket) => {
                self.settle(ticket, Outcome::Released).await;
                None
            }
            Claim::Completed(answer) => Some(replay(answer, ExecutionStatus::Replayed)),
            Claim::Unknown { answer, .. } => Some(replay(answer, ExecutionStatus::Unknown)),
            Claim::Running => Some(under_way()),
        })
    }

    /// The answer for an effect that an earlier attempt left unknown, if its service shows that it happened.
    pub(super) async fn find_again(&self, checked: CheckedRequest<'_>, earlier: Earlier) -> Option<ToolOutcome> {
        let CheckedRequest { tool, context, .. } = checked;
        let found = actions::find_again(&tool.action, self.call_of(checked), &earlier).await;
        let recorded = match found {
            Ok(None) => return None,
            Ok(Some(outcome)) => {
                let answer = Value::Object(outcome.answer);
                self.idempotency.found(earlier, &answer).await.map(|()| answer)
            }
            Err(outage) => Err(outage),
        };
        match recorded {
            Ok(answer) => Some(replay(answer, ExecutionStatus::Replayed)),
            Err(outage) => {
                report(&outage, tool.id, Some(context.organization), context.subject, context.trigger);
                None
            }
        }
    }
}
