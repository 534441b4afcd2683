//! Giving the tools at VAPI a new token and address after the key of the tokens or our public address has changed.
//!
//! `settle` remembers a fingerprint of both. When it is another one, every tool that VAPI has is compared with what it should
//! be, and changed under its lease where it differs; the rows say nothing of either, so they stay as they are. The table is
//! read in pages, and how far it was read is written down after each. What fails is tried again in later runs, and costs the
//! others nothing. When all is done VAPI is asked nothing more. Until then calls get through with the old token: the former
//! key holds, too (`actions/token.rs`).

use std::time::Duration;

use futures_util::{StreamExt, stream};

use super::{Lifecycle, found, release};
use crate::{
    Deadline, Result, error,
    models::{Reissue, Timestamp, ToolToReissue},
};

/// Items of the table that are read between two notes of how far it is.
const PAGE: i32 = 50;
/// Tools that are compared at the same time; VAPI limits the rate.
const AT_ONCE: usize = 4;
/// So many tools that failed in one run: VAPI is down, or does not let us in any more.
const MOST_FAILURES: usize = 20;
/// So many tools that wait to be tried again: no more are looked at until some have got through.
const MOST_LEFT: usize = 500;
/// What one tool gets, and what must be left for one more page.
const ONE: Duration = Duration::from_secs(20);
/// By now every process knows of the change: each reads secrets again after five minutes. A tool that is given a new token
/// earlier could show it to one that does not know the key.
const KNOWN_AFTER: Duration = Duration::from_secs(6 * 60);

/// What became of the tools of one run.
#[derive(Default)]
struct Tally {
    compared: usize,
    changed: usize,
    failed: usize,
}

impl Lifecycle {
    /// Goes on with the reissue of tools, if there is anything to do and while there is time.
    pub async fn reissue(&self, deadline: Deadline) -> Result<()> {
        let fingerprint = self.external.fingerprint().await?;
        let mut reissue = match self.reissues.find().await? {
            Some(reissue) if reissue.fingerprint == fingerprint => reissue,
            other => {
                let mut begins = Reissue::new(fingerprint, other.map_or(0, |other| other.version));
                tracing::info!("the tools at VAPI are to be compared with the present key of their tokens and address");
                return self.reissues.save(&mut begins).await.map(drop);
            }
        };
        let is_done = reissue.complete && reissue.left.is_empty();
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
            "tools at VAPI were compared with the present key of their tokens and address"
        );
        went_on
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

    /// Compares some tools, a few beside each other; those that fail are left for later.
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

    /// Whether the tool was changed at VAPI. One that is gone there or here needs no change.
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
