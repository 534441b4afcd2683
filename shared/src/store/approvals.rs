//! `approvals`. Key: id, made of the run and its action. TTL on `expires_at`.
//!
//! Index `by_run`: `run_id`, `id`. Index `by_wake`: `open`, `wake_at`,
//! of approvals whose run has not taken up the decision.
//!
//! Decisions require a pending, unexpired approval. `wake_at`: when to check on the run, at expiry and soon after a decision.

use std::time::Duration;

use serde::Deserialize;

use super::{
    Cursor, Page,
    audit::Change,
    database::{Database, Item, from_item, id, is_of, number, text, to_item},
    deletion::OutOfTime,
    table::Table,
    write::{Write, WriteResult},
};
use crate::{
    Deadline, Error, Result,
    models::{Act, Approval, ApprovalId, ApprovalStatus, E164, Noun, OrganizationId, RunId, Timestamp, UserId},
    redaction,
};

const WHAT: &str = "approval";
const OPEN: &str = "open";
/// Delay before a run is woken again that has not taken up the decision.
const TOLD_AGAIN: Duration = Duration::from_secs(2 * 60);
/// Later repetitions are slower: the run may be gone.
const TOLD_LATER: Duration = Duration::from_secs(60 * 60);

#[derive(Clone)]
pub struct Approvals {
    table: Table,
}

#[derive(Debug)]
pub enum Decided {
    Now(Box<Approval>),
    /// Already decided or expired.
    Before(Box<Approval>),
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub struct OpenApproval {
    pub id: ApprovalId,
    pub organization_id: OrganizationId,
    pub run_id: RunId,
}

impl Approvals {
    pub fn new(database: &Database) -> Self {
        Self { table: database.table("approvals") }
    }

    /// Creates the approval, or returns the existing one.
    pub async fn ask(&self, approval: &Approval) -> Result<Approval> {
        let mut row = to_item(approval)?;
        row.insert("open".into(), text(OPEN));
        row.insert("wake_at".into(), text(approval.valid_until));
        if self.table.put_item(row).when("attribute_not_exists(#id)").unless_refused().await? {
            return Ok(approval.clone());
        }
        self.get(approval.organization_id, approval.id).await
    }

    pub async fn get(&self, organization: OrganizationId, approval: ApprovalId) -> Result<Approval> {
        let found: Approval = self.table.owned(organization, id(approval), WHAT).await?;
        if found.expires_at > Timestamp::now().as_seconds() { Ok(found) } else { Err(Error::NotFound(WHAT)) }
    }

    /// A page of the organization's approvals, newest first. `status` filters within the page, so a page may be short.
    pub async fn page(
        &self,
        organization: OrganizationId,
        status: Option<ApprovalStatus>,
        after: Option<&Cursor>,
        limit: i32,
    ) -> Result<Page<Approval>> {
        const KEPT: &str = "#expires_at > :now";
        let now = Timestamp::now();
        let of = self.table.of_organization(organization).newest_first().with([(":now", number(now.as_seconds()))]);
        let of = match status {
            None => of.filter(KEPT),
            Some(ApprovalStatus::Pending) => of
                .filter(format!("{KEPT} AND #status = :status AND #valid_until > :clock"))
                .with([(":status", text("pending")), (":clock", text(now))]),
            Some(ApprovalStatus::Expired) => of
                .filter(format!("{KEPT} AND (#status = :status OR #status = :pending AND #valid_until <= :clock)"))
                .with([(":status", text("expired")), (":pending", text("pending")), (":clock", text(now))]),
            Some(status) => {
                of.filter(format!("{KEPT} AND #status = :status")).with([(":status", text(status.as_str()))])
            }
        };
        let start = after.map(|cursor| cursor.start_key(organization));
        Ok(Page::created(of.page(start, Some(limit)).await?))
    }

    /// Approves or refuses a pending, unexpired approval.
    pub async fn decide(
        &self,
        organization: OrganizationId,
        approval: &Approval,
        status: ApprovalStatus,
        by: &UserId,
        reason: Option<&str>,
    ) -> Result<Decided> {
        let now = Timestamp::now();
        let set = "SET #status = :status, #decided_by = :by, #decided_at = :now, #updated_at = :now, #wake_at = :wake";
        let mut decided = self.pending(organization, approval.id, set).when("#valid_until > :now").with([
            (":status", text(status.as_str())),
            (":by", text(by)),
            (":now", text(now)),
            (":wake", text(now.plus(TOLD_AGAIN))),
        ]);
        if let Some(reason) = reason {
            decided = decided.and(", #decision_reason = :reason").with([(":reason", text(reason))]);
        }
        let action = if status == ApprovalStatus::Approved { Act::Approved } else { Act::Refused };
        let change = Change::of(action, Noun::Approval, approval.id).named(&approval.tool);
        let decided = decided.audited(change.with("run_id", approval.run_id.to_string()))?;
        match decided.attempt().await? {
            WriteResult::Done(row) => Ok(Decided::Now(Box::new(from_item(row)?))),
            WriteResult::Refused(row) if is_of(&row, organization) => Ok(Decided::Before(Box::new(from_item(row)?))),
            WriteResult::Refused(_) => Err(Error::NotFound(WHAT)),
        }
    }

    /// Ends an approval without a decision: it expired, or its run was cancelled. The run is not woken.
    pub async fn end(&self, organization: OrganizationId, approval: ApprovalId, status: ApprovalStatus) -> Result<()> {
        let set = "SET #status = :status, #updated_at = :now REMOVE #open, #wake_at";
        let values = [(":status", text(status.as_str())), (":now", text(Timestamp::now()))];
        self.pending(organization, approval, set).with(values).unless_refused().await.map(drop)
    }

    /// Marks the decision as taken up by the run, and an approval as used. False if the arguments differ.
    pub async fn take_up(&self, approval: &Approval) -> Result<bool> {
        let set = "SET #used_at = if_not_exists(#used_at, :now), #updated_at = :now REMOVE #open, #wake_at";
        let taken = self.table.update(id(approval.id), set);
        let taken = taken.when("#status = :status AND #arguments_hash = :hash").of(approval.organization_id).with([
            (":status", text(approval.status.as_str())),
            (":hash", text(&approval.arguments_hash)),
            (":now", text(Timestamp::now())),
        ]);
        taken.unless_refused().await
    }

    pub async fn due_to_wake(&self) -> Result<Vec<OpenApproval>> {
        let due = self.table.query_index("by_wake", "#open = :open AND #wake_at <= :now");
        due.with([(":open", text(OPEN)), (":now", text(Timestamp::now()))]).collect().await
    }

    pub async fn woken(&self, approval: &OpenApproval) -> Result<()> {
        let later = self.table.update(id(approval.id), "SET #wake_at = :later").when("attribute_exists(#open)");
        let later = later.with([(":later", text(Timestamp::now().plus(TOLD_LATER)))]);
        later.unless_refused().await.map(drop)
    }

    /// Its run is over, so nobody is woken any more.
    pub async fn close(&self, approval: &OpenApproval) -> Result<()> {
        let closed = self.table.update(id(approval.id), "REMOVE #open, #wake_at").of(approval.organization_id);
        closed.unless_refused().await.map(drop)
    }

    pub(super) async fn delete_of_run(
        &self,
        organization: OrganizationId,
        run: RunId,
        deadline: Deadline,
    ) -> Result<Result<(), OutOfTime>> {
        let of = self.table.query_index("by_run", "#run_id = :run").of(organization).with([(":run", text(run))]);
        let found: Vec<OpenApproval> = of.collect().await?;
        let keys: Vec<Item> = found.into_iter().map(|approval| id(approval.id)).collect();
        self.table.delete_all(keys, deadline).await
    }

    pub(super) async fn mention(&self, organization: OrganizationId, run: RunId, number: &E164) -> Result<bool> {
        let of = self.table.query_index("by_run", "#run_id = :run").of(organization).with([(":run", text(run))]);
        let found: Vec<Approval> = of.collect().await?;
        Ok(found.iter().any(|approval| {
            let texts = [Some(&approval.arguments), approval.reason.as_ref(), approval.decision_reason.as_ref()];
            let mut texts = texts.into_iter().flatten().chain(&approval.recipients);
            texts.any(|text| redaction::mentions(text, number))
        }))
    }

    pub async fn pending_of_run(&self, organization: OrganizationId, run: RunId) -> Result<Vec<ApprovalId>> {
        let of = self.table.query_index("by_run", "#run_id = :run").filter("#status = :pending").of(organization);
        let found: Vec<OpenApproval> = of.with([(":run", text(run)), (":pending", text("pending"))]).collect().await?;
        Ok(found.into_iter().map(|approval| approval.id).collect())
    }

    fn pending(&self, organization: OrganizationId, approval: ApprovalId, set: &str) -> Write {
        let pending = text(ApprovalStatus::Pending.as_str());
        self.table.update(id(approval), set).when("#status = :pending").of(organization).with([(":pending", pending)])
    }
}
