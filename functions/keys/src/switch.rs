//! Checks whether an organization may change to another VAPI account.
//!
//! Its agents and tools exist in one account, and a key of another account would lose them all. So the account may change while
//! there are none, or if the new key sees the existing ones.

use futures_util::{StreamExt, TryStreamExt, stream, try_join};
use shared::{
    Deadline, Error, Result,
    clients::vapi::Account,
    models::{Change, OrganizationId},
};

use crate::Deps;

/// Assistants looked up in parallel; VAPI limits the rate.
const AT_ONCE: usize = 8;

/// Agents named in a refusal; there may be more.
const NAMED: usize = 5;

/// The number of tools tried, one of which must be found: VAPI may have lost some.
const TRIED: usize = 8;

/// # Errors
/// [`Error::Conflict`] with the next step, if the account lacks the organization's agents or tools.
pub(crate) async fn check(
    deps: &Deps,
    organization: OrganizationId,
    account: &Account,
    deadline: Deadline,
) -> Result<()> {
    let (open, agents) = try_join!(deps.intents.open_of(organization), deps.agents.all(organization))?;
    // Neither is at VAPI.
    let elsewhere = |change: &Change| matches!(change, Change::StoreSecret { .. } | Change::AutomationTrigger { .. });
    if open.iter().any(|intent| !elsewhere(&intent.change)) {
        return Err(Error::Conflict(
            "a change of this organization's tools is not finished at VAPI; try again in a few minutes".into(),
        ));
    }
    if agents.is_empty() {
        return check_tools(deps, organization, account, deadline).await;
    }
    let looks = stream::iter(agents).map(|agent| async move {
        let found = deps.vapi.assistant(account, &agent.external_assistant_id, deadline).await?;
        Ok::<_, Error>(found.is_none().then_some(agent.name))
    });
    let looks: Vec<Option<String>> = looks.buffered(AT_ONCE).try_collect().await?;
    let unseen: Vec<String> = looks.into_iter().flatten().collect();
    if unseen.is_empty() {
        return Ok(());
    }
    let named: Vec<String> = unseen.iter().take(NAMED).map(|name| format!("\"{name}\"")).collect();
    let more = if unseen.len() > NAMED { " and others" } else { "" };
    Err(Error::Conflict(format!(
        "the VAPI account does not have the assistants of the agents {}{more}; to change to another account remove the \
         agents and delete the tools first",
        named.join(", ")
    )))
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
    Err(Error::Conflict(
        "the VAPI account does not have the organization's tools; to change to another account delete the tools first"
            .into(),
    ))
}
