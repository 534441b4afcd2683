//! Settling: making VAPI, Secrets Manager or Scheduler agree with our tables.
//!
//! A failed change is settled at once ([`settle_now`]), an abandoned one by [`Lifecycle::settle`], both by the same code, which
//! is next to each change.

use std::{collections::HashMap, time::Duration};

use futures_util::future::BoxFuture;
use serde::Serialize;

use super::{Lifecycle, SETTLING, ownership, release};
use crate::{
    Deadline, Error, Result,
    error::{self, found},
    models::{AutomationId, Change, Intent, IntentId, OrganizationId, Timestamp, ToolId, acting},
    store::{Intents, unreadable},
};

#[derive(Debug, Default, Serialize)]
pub struct Report {
    pub settled: Vec<ReportLine>,
    /// Still open, for the next run.
    pub left: Vec<ReportLine>,
    /// Some intents are open only for lack of time.
    #[serde(skip)]
    pub unfinished: bool,
    #[serde(skip)]
    pub failures: usize,
}

#[derive(Debug, Serialize)]
pub struct ReportLine {
    pub intent: IntentId,
    pub change: &'static str,
    pub outcome: String,
}

/// The time per intent and run. Many intents share the time, but none gets less than a change takes.
const ONE: Duration = Duration::from_secs(25);
const LEAST: Duration = Duration::from_secs(10);
/// Longer than any change, with `settle` every five minutes: an intent this old needs an operator.
const LONG: Duration = Duration::from_mins(15);

#[derive(Debug, Clone, Copy)]
pub enum Progress {
    Settled(&'static str),
    /// Out of time; to be continued.
    Unfinished(&'static str),
}

use Progress::{Settled, Unfinished};

pub trait SettleAbove: Send + Sync {
    fn settle_trigger(
        &self,
        organization: OrganizationId,
        automation: AutomationId,
        deadline: Deadline,
    ) -> BoxFuture<'_, Result<&'static str>>;

    /// Has a page of all organizations' deployed triggers post to our current address, and gives the key to continue after.
    /// Each trigger that fails gets an intent.
    fn readdress_triggers<'a>(
        &'a self,
        after: Option<&'a str>,
        deadline: Deadline,
    ) -> BoxFuture<'a, Result<Option<String>>>;
}

/// Settles a change that failed with `cause`, under its leases. False: the change stays open for `settle`, and the reason is
/// logged. The caller reports the cause in any case.
pub(crate) async fn settle_now(
    intents: &Intents,
    intent: &Intent,
    cause: &Error,
    settling: impl Future<Output = Result<Progress>>,
) -> bool {
    let settled = async {
        let progress = Box::pin(settling).await?;
        if let Settled(_) = progress {
            intents.close(intent.id).await?;
        }
        Ok::<_, Error>(progress)
    };
    let (change, cause) = (intent.change.as_str(), error::chain(cause));
    match settled.await {
        Ok(Settled(outcome)) => {
            tracing::info!(intent.id = %intent.id, "{change} failed: {cause}; settled at once: {outcome}");
            true
        }
        Ok(Unfinished(outcome)) => {
            tracing::info!(intent.id = %intent.id, "{change} failed: {cause}; left to settle: {outcome}");
            false
        }
        Err(left) => {
            let left = error::chain(&left);
            tracing::error!(intent.id = %intent.id, "{change} failed: {cause}; left to settle: {left}");
            false
        }
    }
}

/// Records a change before it begins. A failed write may have succeeded, so the intent is then closed.
pub(crate) async fn open(intents: &Intents, intent: &Intent) -> Result<()> {
    match intents.open(intent).await {
        Ok(()) => Ok(()),
        Err(error) => nothing_changed(intents, intent, error).await,
    }
}

pub(super) async fn nothing_changed<T>(intents: &Intents, intent: &Intent, error: Error) -> Result<T> {
    settle_now(intents, intent, &error, async { Ok(Settled("nothing was changed")) }).await;
    Err(error)
}

/// Closes a completed change's intent. If that fails, `settle` closes it later.
pub(crate) async fn close(intents: &Intents, intent: &Intent) {
    if let Err(error) = intents.close(intent.id).await {
        tracing::warn!(intent.id = %intent.id, "a complete change could not be closed: {}", error::chain(&error));
    }
}

/// Orders intents by the expiry of their ownership, which every failed attempt extends. Query tools come after the other changes
/// of their organization: those decide whether the tool still has an agent.
fn in_turn(mut intents: Vec<Intent>) -> Vec<Intent> {
    let is_last = |intent: &Intent| matches!(intent.change, Change::QueryTool { .. });
    let mut others: HashMap<OrganizationId, i64> = HashMap::new();
    for intent in intents.iter().filter(|intent| !is_last(intent)) {
        let latest = others.entry(intent.organization_id).or_insert(intent.owner_until);
        *latest = intent.owner_until.max(*latest);
    }
    intents.sort_by_key(|intent| {
        let after = others.get(&intent.organization_id).filter(|_| is_last(intent));
        (after.map_or(intent.owner_until, |after| intent.owner_until.max(*after)), is_last(intent))
    });
    intents
}

impl Lifecycle {
    /// Settles abandoned intents in sequence while there is time. An intent that keeps failing moves to the back, so it cannot
    /// block the others.
    pub async fn settle(&self, above: &dyn SettleAbove, deadline: Deadline) -> Result<Report> {
        let mut report = Report::default();
        let abandoned = in_turn(self.intents.abandoned().await?);
        let mut waiting = u32::try_from(abandoned.len()).unwrap_or(u32::MAX);
        for intent in abandoned {
            let share = deadline.remaining().checked_div(waiting).unwrap_or_default();
            waiting = waiting.saturating_sub(1);
            let (id, change) = (intent.id, intent.change.as_str());
            let line = |outcome: String| ReportLine { intent: id, change, outcome };
            if deadline.remaining() < SETTLING {
                report.unfinished = true;
                report.left.push(line("no time left".into()));
                continue;
            }
            // Shorter than a lease, so that it cannot expire during one change.
            let one = deadline.at_most(share.clamp(LEAST, ONE));
            match Box::pin(acting(intent.actor.clone(), self.settle_abandoned(&intent, above, one))).await {
                Ok(Some(Settled(outcome))) => {
                    tracing::info!(intent.id = %id, change, "settled: {outcome}");
                    report.settled.push(line(outcome.into()));
                }
                Ok(Some(Unfinished(outcome))) => {
                    report.unfinished = true;
                    report.left.push(line(outcome.into()));
                }
                Ok(None) => {}
                Err(error) => {
                    tracing::error!(intent.id = %id, change, "could not be settled: {}", error::chain(&error));
                    report.failures += 1;
                    report.left.push(line(error.to_string()));
                }
            }
        }
        Ok(report)
    }

    pub async fn open_for_long(&self) -> Result<usize> {
        self.intents.older_than(LONG).await
    }

    /// `None`: another run took the intent over.
    async fn settle_abandoned(
        &self,
        intent: &Intent,
        above: &dyn SettleAbove,
        deadline: Deadline,
    ) -> Result<Option<Progress>> {
        // A change written by a newer version is left to that version.
        let known = intent.change != Change::Unknown;
        if known && !self.intents.take_over(intent, Timestamp::now().plus(ownership(deadline))).await? {
            return Ok(None);
        }
        let progress = match intent.change {
            Change::AutomationTrigger { automation_id } => {
                Settled(above.settle_trigger(intent.organization_id, automation_id, deadline).await?)
            }
            _ => self.settle_change(intent, deadline).await?,
        };
        match progress {
            Settled(_) => self.intents.close(intent.id).await?,
            Unfinished(_) => self.intents.leave(intent.id).await?,
        }
        Ok(Some(progress))
    }

    async fn settle_change(&self, intent: &Intent, deadline: Deadline) -> Result<Progress> {
        let organization = intent.organization_id;
        match &intent.change {
            Change::CreateTool { tool_id, name } => self.settle_creation(organization, *tool_id, name, deadline).await,
            Change::UpdateTool { tool_id, .. } | Change::DeleteTool { tool_id } => {
                self.settle_tool(organization, *tool_id, intent, deadline).await
            }
            Change::AttachTool { agent_id, .. } | Change::DetachAllTools { agent_id } => {
                self.attachments.settle(*agent_id, intent, deadline).await
            }
            Change::DetachTool { agent_id, tool_id, .. } => {
                let detached = self.attachments.settle(*agent_id, intent, deadline).await?;
                // A base's query tool may have lost its last agent.
                let tool = found(self.tools.get(organization, *tool_id).await)?;
                if let Some(base) = tool.and_then(|tool| tool.automatic_for) {
                    self.settle_base(organization, base, deadline).await?;
                }
                Ok(detached)
            }
            Change::QueryTool { knowledge_base_id } => {
                self.settle_base(organization, *knowledge_base_id, deadline).await
            }
            Change::StoreSecret { secret, of } => self.secrets.settle(organization, secret, *of).await.map(Settled),
            Change::AutomationTrigger { .. } | Change::Unknown => Err(unreadable::<Intent>(&intent.id)),
        }
    }

    async fn settle_tool(
        &self,
        organization: OrganizationId,
        tool: ToolId,
        intent: &Intent,
        deadline: Deadline,
    ) -> Result<Progress> {
        let Some((tool, lease)) = found(self.tools.acquire(organization, tool, deadline).await)? else {
            return Ok(Settled("the tool is gone"));
        };
        let settled = match &intent.change {
            Change::UpdateTool { .. } => Box::pin(self.settle_update(None, tool, intent, &lease, deadline)).await,
            _ => Box::pin(self.settle_deletion(&tool, &lease, intent, deadline)).await,
        };
        release(lease.release()).await;
        settled
    }
}
