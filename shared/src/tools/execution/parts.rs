//! Effects with several parts, such as one message to several recipients.
//!
//! Each part has its own claim, so that nobody gets a message twice because it also goes to others
//! (docs/adr/0025-one-claim-a-recipient.md). The whole has a claim too: its key returns the same answer to the same request, also
//! from rows of older versions, which had no other claims.

use futures_util::{future::join_all, join};
use serde_json::Map;

use super::{
    CheckedRequest, ExecutionRequest, Executor, claimant, earlier::beside_earlier, effect_key, lease, recorded,
    under_way,
};
use crate::{
    Result,
    actions::{self, Attempt, EffectPart},
    idempotency::{Claim, ClaimRequest, Key, Outcome, Ticket},
    tool::{CallContext, RecipientOutcome, ToolOutcome},
};

/// Empty if the claim of the whole is also that of its only part.
pub(super) struct Parts(Vec<(EffectPart, Key)>);

pub(super) struct ClaimedParts {
    pub(super) whole: Ticket,
    pub(super) parts: Parts,
    /// The parts' claims, if made together with that of the whole.
    pub(super) held: Option<Vec<Claim>>,
}

impl Parts {
    pub(super) fn of(checked: CheckedRequest<'_>, whole: &Key) -> Self {
        let CheckedRequest { tool, context, arguments, .. } = checked;
        let parts = tool.parts(arguments, context.conversation).into_iter().map(|part| {
            let key = effect_key(tool.id, claimant(tool, context), part.significant.clone());
            (part, key)
        });
        let parts: Vec<_> = parts.collect();
        if parts.iter().all(|(_, key)| key == whole) { Self(Vec::new()) } else { Self(parts) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The parts' keys. Only the whole has the delivery's name: a redelivery returns the answer of the whole.
    fn keys(&self, request: ExecutionRequest<'_>) -> impl Iterator<Item = (&Key, ClaimRequest<'_>)> {
        let each = ClaimRequest { delivery: None, confirmed_after: request.confirmed_after };
        self.0.iter().map(move |(_, key)| (key, each))
    }
}

impl Executor {
    /// Claims the whole and its parts in parallel. Waits for a duplicate request in progress.
    pub(super) async fn claim_with_parts(
        &self,
        key: &Key,
        parts: &Parts,
        CheckedRequest { request, context, .. }: CheckedRequest<'_>,
    ) -> Result<(Claim, Option<Vec<Claim>>)> {
        let wanted = ClaimRequest { delivery: context.delivery, confirmed_after: request.confirmed_after };
        if parts.is_empty() {
            return Ok((self.claim(key, wanted, context.deadline).await?, None));
        }
        let keys: Vec<_> = std::iter::once((key, wanted)).chain(parts.keys(request)).collect();
        let Some(mut claims) = self.claim_all(&keys, context).await? else { return Ok((Claim::Running, None)) };
        let whole = claims.remove(0);
        Ok((whole, Some(claims)))
    }

    async fn claim_all(
        &self,
        keys: &[(&Key, ClaimRequest<'_>)],
        context: &CallContext<'_>,
    ) -> Result<Option<Vec<Claim>>> {
        let until = context.deadline.reserving(super::TWIN_RESERVE);
        self.idempotency.claim_all(keys, lease(context.deadline), until).await
    }

    pub(super) async fn release_tickets(&self, tickets: impl IntoIterator<Item = Ticket>) {
        join_all(tickets.into_iter().map(|ticket| self.settle(ticket, Outcome::Released))).await;
    }

    /// Performs the unclaimed parts, and records the outcomes of each part and the whole.
    ///
    /// # Errors
    /// An outage of our own before any effect.
    pub(super) async fn act_in_parts(
        &self,
        checked: CheckedRequest<'_>,
        ClaimedParts { whole, parts, held }: ClaimedParts,
    ) -> Result<ToolOutcome> {
        let CheckedRequest { tool, request, context, .. } = checked;
        let held = match held {
            Some(held) => Ok(Some(held)),
            None => self.claim_all(&parts.keys(request).collect::<Vec<_>>(), context).await,
        };
        let Ok(Some(held)) = held else {
            self.settle(whole, Outcome::Released).await;
            return held.map(|_taken| under_way());
        };
        let mut done = whole.done.clone();
        let mut mine = Vec::new();
        for ((part, _), claim) in parts.0.into_iter().zip(held) {
            let (known, otherwise) = match claim {
                Claim::Mine(ticket) => {
                    done.extend(ticket.done.clone());
                    mine.push((part, ticket));
                    continue;
                }
                Claim::Completed(_) => (Map::new(), "sent"),
                Claim::Unknown { done, .. } => (done, "unknown"),
                Claim::Running => (Map::new(), "unknown"),
            };
            for to in part.recipients {
                let state = known.get(&to).cloned().unwrap_or_else(|| otherwise.into());
                done.insert(to, state);
            }
        }
        let attempt = Attempt { id: request.id, claim: whole.name(), done: &done };
        let acted = if mine.is_empty() {
            // Repeating an outcome starts nothing, so no limit applies.
            let told = actions::run(&tool.action, self.call_of(checked), attempt).await;
            told.map(|told| ToolOutcome { repeats: true, ..told })
        } else {
            self.act(checked, attempt).await
        };
        let acted = acted.map(|outcome| beside_earlier(checked, &done, outcome));
        let of_part = |part: &EffectPart| -> Outcome {
            let Ok(outcome) = &acted else { return Outcome::Released };
            let theirs = |one: &&RecipientOutcome| part.recipients.contains(&one.to);
            let theirs: Vec<_> = outcome.recipients.iter().filter(theirs).cloned().collect();
            // For example, a limit prevented all of it.
            if theirs.is_empty() { Outcome::Released } else { recorded(&actions::told(&tool.action, context, theirs)) }
        };
        let each = mine.into_iter().map(|(part, ticket)| {
            let outcome = of_part(&part);
            self.settle(ticket, outcome)
        });
        let of_whole = acted.as_ref().map_or(Outcome::Released, recorded);
        join!(join_all(each), self.settle(whole, of_whole));
        acted
    }
}
