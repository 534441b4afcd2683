//! Reissues tokens and addresses of tools at VAPI after a change of key, address or form, and addresses of triggers at Pipedream.
//!
//! `settle` stores a fingerprint of them. When it changes, every tool at VAPI is compared and, if different, changed under its
//! lease; the rows do not contain either. The table is read in pages, with the progress saved after each. Failed tools are
//! retried in later runs without blocking others. Meanwhile calls succeed with the old token, because the former key stays valid
//! (`actions/token.rs`). Deployed triggers follow the tools in the same way (`automation/triggers/pipedream_triggers.rs`).

use std::time::Duration;

use futures_util::{StreamExt, stream};

use super::{Lifecycle, SettleAbove, release};
use crate::{
    Deadline, Result,
    error::{self, found},
    models::{Reissue, Timestamp, ToolToReissue},
};

const PAGE: i32 = 50;
/// Concurrent comparisons; VAPI limits the rate.
const AT_ONCE: usize = 4;
/// Failures that end a run: VAPI is down or refuses our key.
const MOST_FAILURES: usize = 20;
/// Tools waiting for a retry before the table is read further.
const MOST_LEFT: usize = 500;
/// The time for one tool, and the least remaining time for another page.
const ONE: Duration = Duration::from_secs(20);
/// Every process has read the new key by then, since the deployment's secrets are read again after a minute. An earlier token
/// could reach a process without its key.
const KNOWN_AFTER: Duration = Duration::from_secs(6 * 60);

#[derive(Default)]
struct Tally {
    compared: usize,
    changed: usize,
    failed: usize,
}

impl Lifecycle {
    pub async fn reissue(&self, above: &dyn SettleAbove, deadline: Deadline) -> Result<()> {
        let fingerprint = self.external.fingerprint().await?;
        let mut reissue = match self.reissues.find().await? {
            Some(reissue) if reissue.fingerprint == fingerprint => reissue,
            other => {
                let mut begins = Reissue::new(fingerprint, other.map_or(0, |other| other.version));
                tracing::info!("the tools at VAPI will be compared with the current token key and address");
                return self.reissues.save(&mut begins).await.map(drop);
            }
        };
        let is_done = reissue.complete && reissue.left.is_empty() && reissue.triggers_complete;
        if is_done || reissue.seen_at.plus(KNOWN_AFTER) > Timestamp::now() {
            return Ok(());
        }
        let mut tally = Tally::default();
        let went_on = self.go_on(&mut reissue, &mut tally, deadline).await;
        tracing::info!(
            reissue.compared = tally.compared,
            reissue.changed = tally.changed,
            reissue.left = reissue.left.len(),
            reissue.complete = reissue.complete,
            "the tools at VAPI were compared with the current token key and address"
        );
        went_on?;
        while !reissue.triggers_complete && deadline.remaining() > ONE {
            let after = above.readdress_triggers(reissue.triggers_after.as_deref(), deadline.at_most(ONE)).await?;
            (reissue.triggers_complete, reissue.triggers_after) = (after.is_none(), after);
            if !self.reissues.save(&mut reissue).await? {
                break;
            }
            if reissue.triggers_complete {
                tracing::info!("the triggers at Pipedream were compared with the current address");
            }
        }
        Ok(())
    }

    async fn go_on(&self, reissue: &mut Reissue, tally: &mut Tally, deadline: Deadline) -> Result<()> {
        if !reissue.left.is_empty() {
            let again = reissue.left.len().min(MOST_FAILURES);
            let again: Vec<ToolToReissue> = reissue.left.drain(..again).collect();
            Box::pin(self.compare_each(again, reissue, tally, deadline)).await;
            if !self.reissues.save(reissue).await? {
                return Ok(());
            }
        }
        while !reissue.complete
            && deadline.remaining() > ONE
            && tally.failed < MOST_FAILURES
            && reissue.left.len() < MOST_LEFT
        {
            let (tools, after) = self.reissues.tools_at_vapi(reissue.after.as_deref(), PAGE).await?;
            let tools = tools.iter().map(ToolToReissue::from).collect();
            Box::pin(self.compare_each(tools, reissue, tally, deadline)).await;
            (reissue.complete, reissue.after) = (after.is_none(), after);
            if !self.reissues.save(reissue).await? {
                return Ok(());
            }
        }
        Ok(())
    }

    async fn compare_each(
        &self,
        tools: Vec<ToolToReissue>,
        reissue: &mut Reissue,
        tally: &mut Tally,
        deadline: Deadline,
    ) {
        let compared = stream::iter(tools).map(|tool| async move {
            let changed = Box::pin(self.reissue_one(tool, deadline.at_most(ONE))).await;
            (tool, changed)
        });
        let compared: Vec<_> = compared.buffer_unordered(AT_ONCE).collect().await;
        for (tool, changed) in compared {
            tally.compared += 1;
            match changed {
                Ok(changed) => tally.changed += usize::from(changed),
                Err(error) => {
                    let id = tool.tool_id;
                    tracing::warn!(tool.id = %id, "a tool at VAPI could not be compared or changed: {}", error::chain(&error));
                    tally.failed += 1;
                    reissue.left.push(tool);
                }
            }
        }
    }

    /// Whether the tool was changed at VAPI. A tool missing on either side needs no change.
    async fn reissue_one(&self, tool: ToolToReissue, deadline: Deadline) -> Result<bool> {
        let ToolToReissue { organization_id: organization, tool_id: id } = tool;
        let Some(tool) = found(self.tools.get(organization, id).await)? else { return Ok(false) };
        if self.external.is_current(&tool, deadline).await?.unwrap_or(true) {
            return Ok(false);
        }
        let Some((tool, lease)) = found(self.tools.acquire(organization, id, deadline).await)? else {
            return Ok(false);
        };
        let changed = self.external.reissue(&tool, deadline).await;
        release(lease.release()).await;
        changed
    }
}
