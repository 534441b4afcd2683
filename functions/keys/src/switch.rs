//! Checks whether an organization may change to another VAPI account.
//!
//! Its agents, tools and phone numbers exist in one account, and a key of another account would lose them all. So the
//! account may change while there are none, or if the new key sees the existing ones.

use std::future::ready;

use futures_util::{StreamExt, TryStreamExt, stream, try_join};
use shared::{
    Deadline, Error, Result,
    clients::vapi::Account,
    models::{Change, OrganizationId},
};

use crate::Deps;

/// Assistants or numbers looked up in parallel; VAPI limits the rate.
const AT_ONCE: usize = 8;

/// Agents or numbers named in a refusal; there may be more.
const NAMED: usize = 5;

/// The number of tools tried, one of which must be found: VAPI may have lost some.
const TRIED: usize = 8;

const NEXT_STEP: &str = "to change to another account remove the agents, delete the tools and set \
                         vapi_phone_number_id of the phone numbers to null, and their wait_ms to 0, first";

/// # Errors
/// [`Error::Conflict`] with the next step, if the account lacks the organization's agents, phone numbers or tools.
pub(crate) async fn check(
    deps: &Deps,
    organization: OrganizationId,
    account: &Account,
    deadline: Deadline,
) -> Result<()> {
    let (open, agents, numbers) = try_join!(
        deps.intents.open_of(organization),
        deps.agents.all(organization),
        deps.phone_numbers.all(organization)
    )?;
    // Neither is at VAPI.
    let elsewhere = |change: &Change| matches!(change, Change::StoreSecret { .. } | Change::AutomationTrigger { .. });
    if open.iter().any(|intent| !elsewhere(&intent.change)) {
        return Err(Error::Conflict(
            "a change of this organization's tools is not finished at VAPI; try again in a few minutes".into(),
        ));
    }
    let has_agents = !agents.is_empty();
    let agents = agents.into_iter().map(|agent| (format!("\"{}\"", agent.name), agent.external_assistant_id));
    let unseen =
        missing(agents, |id| async move { Ok(deps.vapi.assistant(account, &id, deadline).await?.is_some()) }).await?;
    refuse("the assistants of the agents", &unseen)?;
    let numbers = numbers.into_iter().filter_map(|row| Some((row.number.to_string(), row.vapi_phone_number_id?)));
    let unseen =
        missing(numbers, |id| async move { Ok(deps.vapi.phone_number(account, &id, deadline).await?.is_some()) })
            .await?;
    refuse("the phone numbers", &unseen)?;
    if has_agents { Ok(()) } else { check_tools(deps, organization, account, deadline).await }
}

/// The names of the rows whose id VAPI does not know, one more than a refusal names.
async fn missing<F: Future<Output = Result<bool>>>(
    rows: impl Iterator<Item = (String, String)>,
    is_there: impl Fn(String) -> F,
) -> Result<Vec<String>> {
    let looks = stream::iter(rows).map(|(name, id)| {
        let found = is_there(id);
        async move { Ok((!found.await?).then_some(name)) }
    });
    looks.buffered(AT_ONCE).try_filter_map(|missing| ready(Ok(missing))).take(NAMED + 1).try_collect().await
}

fn refuse(what: &str, unseen: &[String]) -> Result<()> {
    let Some(named) = unseen.get(..unseen.len().min(NAMED)).filter(|named| !named.is_empty()) else { return Ok(()) };
    let more = if unseen.len() > NAMED { " and others" } else { "" };
    Err(Error::Conflict(format!("the VAPI account does not have {what} {}{more}; {NEXT_STEP}", named.join(", "))))
}

async fn check_tools(deps: &Deps, organization: OrganizationId, account: &Account, deadline: Deadline) -> Result<()> {
    let tools = deps.tools.all(organization).await?;
    let external: Vec<_> = tools.into_iter().rev().filter_map(|tool| tool.external_tool_id).take(TRIED).collect();
    for id in &external {
        if deps.vapi.tool(account, id, deadline).await?.is_some() {
            return Ok(());
        }
    }
    if external.is_empty() {
        return Ok(());
    }
    Err(Error::Conflict(format!("the VAPI account does not have the organization's tools; {NEXT_STEP}")))
}
