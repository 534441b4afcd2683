//! Tells an agent what was done in the calls from which its caller returned.

use futures_util::future::join_all;
use shared::{
    Deadline, Error, error,
    models::{Call, CallId},
};

use crate::Deps;

/// The latest ones are read.
const MOST_CALLS: usize = 5;
const MOST_EFFECTS: usize = 12;

/// The call's preface, with the effects of the calls before it.
pub(crate) async fn preface(deps: &Deps, call: &Call, deadline: Deadline) -> Option<String> {
    let mut preface = call.preface.clone()?;
    let before = call.earlier_calls();
    let latest = before.get(before.len().saturating_sub(MOST_CALLS)..).unwrap_or_default();
    let (mut done, mut unknown) = (Vec::new(), Vec::new());
    for [certain, uncertain] in join_all(latest.iter().map(|id| effects(deps, call, id, deadline))).await {
        done.extend(certain);
        unknown.extend(uncertain);
    }
    for (told, effects) in [
        ("Already done in this phone call; do not do it again: ", done),
        ("It is not known whether this was done; do not do it again: ", unknown),
    ] {
        if !effects.is_empty() {
            let latest = effects.get(effects.len().saturating_sub(MOST_EFFECTS)..).unwrap_or_default();
            preface.push('\n');
            preface.push_str(told);
            preface.push_str(&latest.join("; "));
        }
    }
    Some(preface)
}

/// The caller is on the line, so an outage costs the agent this knowledge and no more.
async fn effects(deps: &Deps, call: &Call, earlier: &CallId, deadline: Deadline) -> [Vec<String>; 2] {
    let organization = call.organization_id;
    let read = async {
        let record = deps.receipts.record(organization, earlier).await?;
        let receipt = deps.receipts.receipt(organization, &record, deadline).await?;
        Ok::<_, Error>(receipt.effects(&record))
    };
    read.await.unwrap_or_else(|error| {
        tracing::warn!(call.id = %earlier, "the effects of an earlier call could not be read: {}", error::chain(&error));
        [Vec::new(), Vec::new()]
    })
}
