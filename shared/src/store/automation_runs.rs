//! `automation_runs`. Key: id, part. TTL on `expires_at`.
//!
//! Index `by_automation`: `automation_id`, `created_at`.
//!
//! A run is several items under one id: no item may exceed 400 KB, and the row, which every step updates, stays small:
//!
//! | part | content |
//! |---|---|
//! | `run` | the row: status, limits, usage and lease; the only part in the index |
//! | `plan` | for runs of an automation: the trigger and the acting user |
//! | `<digest>#event` | the event that a pause waited for |
//! | `0001#action` | the result of the second action (counted from 0) |
//! | `prompt` | the prompt and the offered tools |
//! | `0001#answer` | the model's first answer |
//! | `0001#reply` | the reply to it: the results of its calls |
//! | `result` | the final answer |
//!
//! One transaction under the lease writes each step and the row, so a former holder cannot write.

mod list;
mod parts;
mod waits;

pub use list::RunFilter;

use std::{collections::HashMap, time::Duration};

use aws_sdk_dynamodb::types::AttributeValue;
use serde::Deserialize;
use serde_json::Value;

use self::parts::{Parts, StoredResult, counted};
use super::{
    Budgets, Cursor, EventWaits, Lease,
    audit::Change,
    database::{Database, Item, is_of, key, number, rows, text, to_attribute, to_item},
    deletion::OutOfTime,
    erasure::mentions,
    table::Table,
    write::{Refused, Write, WriteResult, transact, transact_unless_refused},
};
use crate::{
    Deadline, Error, Result,
    backoff::Backoff,
    models::{
        Act, ActionResult, ApprovalId, AutomationRun, E164, Noun, OrganizationId, RunAnswer, RunId, RunPause, RunPlan,
        RunPrompt, RunReply, RunStatus, RunTrigger, Spent, StepKind, Timestamp, UserId, WholeRun,
    },
};

const RUN: &str = "run";
const PLAN: &str = "plan";
const PROMPT: &str = "prompt";
const RESULT: &str = "result";
const ANSWER: &str = "#answer";
const REPLY: &str = "#reply";
const ACTION: &str = "#action";

/// Concurrent transactions on one count refuse each other.
const PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(300);
/// For putting the run on its queue.
const RESERVE: Duration = Duration::from_secs(2);
const LONGEST_CHAIN_OF_RETRIES: usize = 10;

#[derive(Clone)]
pub struct AutomationRuns {
    table: Table,
    pub waits: EventWaits,
}

#[derive(Debug)]
pub enum AcquiredRun {
    Ours(Box<AutomationRun>, Lease),
    Busy,
    /// Finished or missing.
    Over,
}

#[derive(Debug, Clone, Copy)]
pub enum SavedStep<'a> {
    Answer(&'a RunAnswer),
    Reply(&'a RunReply),
    /// Also updates the row's counts.
    Action(&'a ActionResult),
    /// An automation's prompt, before its first answer; also sets the row's model and limits.
    Prompt(&'a RunPrompt),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Waits {
    ForApproval(ApprovalId, Timestamp),
    ForRun(RunId, Timestamp),
    ForTime(RunPause),
}

#[derive(Debug, Clone, Copy)]
pub struct RunEnd<'a> {
    pub status: RunStatus,
    pub result: Option<&'a Value>,
    pub error: Option<&'a str>,
    /// An outage was the only cause of the failure.
    pub outage: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct ListedRun {
    pub(super) id: RunId,
    expires_at: i64,
}

impl ListedRun {
    /// Expired, or marked for deletion.
    pub(super) fn is_over(&self) -> bool {
        self.expires_at <= Timestamp::now().as_seconds()
    }
}

#[derive(Debug)]
pub(super) struct RunDeletion(RunId);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Saved {
    Yes,
    CancelRequested,
    Lost,
}

impl AutomationRuns {
    pub fn new(database: &Database) -> Self {
        Self { table: database.table("automation_runs"), waits: EventWaits::new(database) }
    }

    /// One transaction writes and counts the run. `on_own_key`: the run uses the organization's own LLM key.
    ///
    /// # Errors
    /// [`Error::OverBudget`] if a budget has no room for the run, [`Error::Conflict`] if the id exists, [`Error::Unavailable`]
    /// if other transactions keep changing the same counts until `deadline`.
    pub async fn create(
        &self,
        run: &AutomationRun,
        prompt: &RunPrompt,
        budgets: &Budgets,
        on_own_key: bool,
        deadline: Deadline,
    ) -> Result<()> {
        let counted = budgets.run_in_transaction(run.organization_id, on_own_key).await?;
        let parts = [(RUN, to_item(run)?), (PROMPT, to_item(prompt)?)];
        let [new, prompt] = parts.map(|(part, item)| self.put(run, part, item).when("attribute_not_exists(#id)"));
        let new = [new.audited(started(run))?, prompt];
        let writes: Vec<Write> = new.into_iter().chain([counted.count.clone(), counted.check.clone()]).collect();
        let mut backoff = Backoff::new(PAUSE, LONGEST_PAUSE, deadline.reserving(RESERVE));
        loop {
            match transact(writes.clone()).await {
                Ok(()) => return Ok(()),
                Err(Refused::Condition(place)) => {
                    let budget = place.checked_sub(2).map(|budget| counted.refused(budget));
                    return Err(budget.unwrap_or_else(|| Error::Conflict("there is such a run".into())));
                }
                // Another run changed the counts.
                Err(Refused::Busy(_)) if backoff.pause().await => {}
                Err(Refused::Busy(error) | Refused::Other(error)) => return Err(error),
            }
        }
    }

    /// A run of an automation, not counted. False if the id exists.
    pub async fn create_planned(&self, run: &AutomationRun, plan: &RunPlan) -> Result<bool> {
        self.create_with(run, (PLAN, to_item(plan)?)).await
    }

    /// A run started by an action, not counted. False if the id exists.
    pub async fn create_prompted(&self, run: &AutomationRun, prompt: &RunPrompt) -> Result<bool> {
        self.create_with(run, (PROMPT, to_item(prompt)?)).await
    }

    /// Notes the retry at the original run. False if it exists.
    pub async fn create_retry(&self, run: &AutomationRun, plan: &RunPlan, of: RunId) -> Result<bool> {
        let parts = [(RUN, to_item(run)?), (PLAN, to_item(plan)?)];
        let [new, plan] = parts.map(|(part, item)| self.put(run, part, item).when("attribute_not_exists(#id)"));
        let noted = self.table.update(row(of), "SET #retried_by = :new").of(run.organization_id);
        let noted = noted.with([(":new", text(run.id))]);
        transact_unless_refused(vec![new.audited(started(run))?, plan, noted]).await
    }

    async fn create_with(&self, run: &AutomationRun, part: (&str, Item)) -> Result<bool> {
        let parts = [(RUN, to_item(run)?), part];
        let [new, part] = parts.map(|(part, item)| self.put(run, part, item).when("attribute_not_exists(#id)"));
        transact_unless_refused(vec![new.audited(started(run))?, part]).await
    }

    pub async fn get(&self, organization: OrganizationId, id: RunId) -> Result<AutomationRun> {
        visible(self.table.owned(organization, row(id), RUN).await?)
    }

    /// Each run's status is its last retry's. Deleted runs and statuses of newer versions are left out.
    pub async fn last_statuses(
        &self,
        organization: OrganizationId,
        ids: &[RunId],
        deadline: Deadline,
    ) -> Result<HashMap<RunId, RunStatus>> {
        let mut statuses = HashMap::new();
        // The run whose status is read, and the runs it retries.
        let mut wanted: HashMap<RunId, Vec<RunId>> = ids.iter().map(|id| (*id, vec![*id])).collect();
        for _ in 0..=LONGEST_CHAIN_OF_RETRIES {
            let keys: Vec<Item> = wanted.keys().copied().map(row).collect();
            if keys.is_empty() {
                break;
            }
            let items =
                self.table.batch_get(keys, Some("#id, #organization_id, #status, #retried_by"), deadline).await?;
            let mut next: HashMap<RunId, Vec<RunId>> = HashMap::new();
            for item in items.iter().filter(|item| is_of(item, organization)) {
                let text_of = |name: &str| item.get(name).and_then(|value| value.as_s().ok());
                let Some(first) = text_of("id").and_then(|id| wanted.remove(&id.parse().ok()?)) else { continue };
                if let Some(status) = text_of("status").and_then(|status| status.parse().ok()) {
                    statuses.extend(first.iter().map(|id| (*id, status)));
                }
                if let Some(retry) = text_of("retried_by").and_then(|id| id.parse().ok()) {
                    next.entry(retry).or_default().extend(first);
                }
            }
            wanted = next;
        }
        Ok(statuses)
    }

    pub async fn whole(&self, organization: OrganizationId, id: RunId) -> Result<WholeRun> {
        let items = self.table.query("#id = :id").now().with([(":id", text(id))]).items().await?;
        // Only the row has the organization.
        if !items.iter().any(|item| is_of(item, organization)) {
            return Err(Error::NotFound(RUN));
        }
        let mut parts = Parts::default();
        items.into_iter().try_for_each(|item| parts.add(item))?;
        parts.into_run()
    }

    /// Fails for a finished run, or if another holder has the lease.
    pub async fn acquire(&self, organization: OrganizationId, id: RunId, length: Duration) -> Result<AcquiredRun> {
        let at_once = Deadline::after(Duration::ZERO);
        let acquired = Lease::acquire::<AutomationRun>(organization, &self.table, row(id), RUN, length, at_once).await;
        let (run, lease) = match acquired {
            Ok(acquired) => acquired,
            Err(Error::Conflict(_)) => return Ok(AcquiredRun::Busy),
            Err(Error::NotFound(_)) => return Ok(AcquiredRun::Over),
            Err(error) => return Err(error),
        };
        if run.status.is_over() {
            lease.release().await?;
            return Ok(AcquiredRun::Over);
        }
        let now = Timestamp::now();
        // A wait that ended early: the run's time goes on from here.
        let early = if run.time_from.is_some_and(|until| until > now) { ", #time_from = :now" } else { "" };
        let begun = lease
            .update_in_transaction(format!(
                "SET #status = :running, #attempts = #attempts + :one, #updated_at = :now, \
                 #started_at = if_not_exists(#started_at, :now){early}"
            ))
            .with([(":running", text(RunStatus::Running.as_str())), (":one", number(1)), (":now", text(now))]);
        match begun.updated().await {
            Ok(begun) => Ok(begun.map_or(AcquiredRun::Busy, |run| AcquiredRun::Ours(Box::new(run), lease))),
            Err(error) => {
                lease.withdraw().await;
                Err(error)
            }
        }
    }

    /// Releases a run after a failure; it resumes no earlier than `resume_at`. `attempts` replaces the count without a step, `error`
    /// is public text.
    pub async fn release_until(
        &self,
        lease: Lease,
        (resume_at, attempts): (Timestamp, Option<u32>),
        error: &str,
        is_model: bool,
    ) -> Result<()> {
        let mut released = lease
            .update_in_transaction("SET #resume_at = :resume, #last_error = :error, #waits_for_model = :is_model")
            .with([
                (":resume", number(resume_at.as_millis())),
                (":error", text(error)),
                (":is_model", AttributeValue::Bool(is_model)),
            ]);
        if let Some(attempts) = attempts {
            released = released.and(", #attempts = :attempts").with([(":attempts", number(attempts.into()))]);
        }
        released.and(" REMOVE #lease_token, #lease_until").unless_refused().await.map(drop)
    }

    async fn parts(&self, id: RunId) -> Result<Vec<Item>> {
        let parts = self.table.query("#id = :id").attributes("#id, #part").now();
        parts.with([(":id", text(id))]).items().await
    }

    pub async fn save(&self, run: &AutomationRun, lease: &Lease, step: SavedStep<'_>, spent: &Spent) -> Result<Saved> {
        let mut saved = lease.update_in_transaction("SET #spent = :spent, #attempts = :none, #updated_at = :now");
        if let SavedStep::Action(result) = step {
            saved = counted(saved, [result]);
            if result.kind == StepKind::Wait {
                saved = saved.and(" REMOVE #pause");
            }
        }
        if matches!(step, SavedStep::Prompt(_)) {
            saved = saved.and(", #limits = :limits").with([(":limits", to_attribute(&run.limits)?)]);
            if let Some(model) = &run.model {
                saved = saved.and(", #model = :model").with([(":model", text(model))]);
            }
        }
        let saved = saved.when("#lease_token = :token AND attribute_not_exists(#cancel_requested_at)").with([
            (":spent", to_attribute(spent)?),
            (":none", number(0)),
            (":now", text(Timestamp::now())),
        ]);
        if transact_unless_refused(vec![saved, self.step(run, step)?]).await? {
            return Ok(Saved::Yes);
        }
        let now = self.get(run.organization_id, run.id).await?;
        Ok(if now.cancel_requested_at.is_some() { Saved::CancelRequested } else { Saved::Lost })
    }

    /// Writes the `last` steps in the same transaction and releases the lease. False if the lease is lost.
    pub async fn end(
        &self,
        run: &AutomationRun,
        lease: Lease,
        last: &[SavedStep<'_>],
        spent: &Spent,
        end: RunEnd<'_>,
    ) -> Result<bool> {
        let mut ended = lease
            .update_in_transaction("SET #status = :status, #spent = :spent, #updated_at = :now, #finished_at = :now")
            .with([
                (":status", text(end.status.as_str())),
                (":spent", to_attribute(spent)?),
                (":now", text(Timestamp::now())),
            ]);
        if let Some(error) = end.error {
            ended = ended.and(", #error = :error").with([(":error", text(error))]);
        }
        if end.outage {
            ended = ended.and(", #outage = :outage").with([(":outage", AttributeValue::Bool(true))]);
        }
        let mut ended = ended.and(" REMOVE #lease_token, #lease_until");
        let results: Vec<&ActionResult> = last.iter().filter_map(SavedStep::action).collect();
        if !results.is_empty() {
            ended = counted(ended, results);
        }
        let mut writes = vec![ended];
        for step in last {
            writes.push(self.step(run, *step)?);
        }
        if let Some(result) = end.result {
            writes.push(self.put(run, RESULT, to_item(&StoredResult { result: result.to_string() })?));
        }
        transact_unless_refused(writes).await
    }

    /// Cancels a run for a user, or with its parent. A waiting run ends now, with an expired lease; others at their next step.
    ///
    /// # Errors
    /// [`Error::Conflict`] for a finished run.
    pub async fn cancel(&self, organization: OrganizationId, id: RunId, by: Option<&UserId>) -> Result<AutomationRun> {
        let entry = || Change::of(Act::Cancelled, Noun::Run, id);
        let update = |change: &str, condition: &str| {
            let condition = format!("#status IN (:queued, :running, :waiting) AND {condition}");
            let who = by.map_or("", |_| ", #cancelled_by = if_not_exists(#cancelled_by, :by)");
            let update = self.update(organization, id, &format!("{change}{who}")).when(condition);
            by.into_iter().fold(update, |update, by| update.with([(":by", text(by))])).with([
                (":waiting", text(RunStatus::WaitingForApproval.as_str())),
                (":queued", text(RunStatus::Queued.as_str())),
                (":running", text(RunStatus::Running.as_str())),
                (":clock", number(Timestamp::now().as_millis())),
            ])
        };
        let at_once = update(
            "SET #status = :cancelled, #cancel_requested_at = :now, #updated_at = :now, #finished_at = :now",
            "(attribute_not_exists(#lease_until) OR #lease_until < :clock)",
        );
        let at_once = at_once.and(" REMOVE #lease_token, #lease_until").audited(entry())?;
        if let Some(run) = at_once.with([(":cancelled", text(RunStatus::Cancelled.as_str()))]).updated().await? {
            return Ok(run);
        }
        let requested = update(
            "SET #cancel_requested_at = if_not_exists(#cancel_requested_at, :now), #updated_at = :now",
            "#lease_until >= :clock",
        );
        if let Some(run) = requested.audited(entry())?.updated().await? {
            return Ok(run);
        }
        let run = self.get(organization, id).await?;
        Err(Error::Conflict(if run.status.is_over() {
            format!("the run is over: its status is {}", run.status.as_str())
        } else {
            "the run is just being taken up; try again".into()
        }))
    }

    /// Fails a queued run whose message was not sent. The returned run continues if a worker acquired it anyway.
    pub async fn fail_waiting(&self, organization: OrganizationId, id: RunId, error: &str) -> Result<AutomationRun> {
        self.end_waiting(organization, id, RunStatus::Failed, error).await
    }

    /// Ends a queued run that exceeds its automation's limit of runs. See [`AutomationRuns::fail_waiting`].
    pub async fn refuse_waiting(&self, organization: OrganizationId, id: RunId, error: &str) -> Result<AutomationRun> {
        self.end_waiting(organization, id, RunStatus::RunLimit, error).await
    }

    async fn end_waiting(
        &self,
        organization: OrganizationId,
        id: RunId,
        status: RunStatus,
        error: &str,
    ) -> Result<AutomationRun> {
        let ended = self
            .update(organization, id, "SET #status = :to, #error = :error, #updated_at = :now, #finished_at = :now")
            .when("#status = :from AND attribute_not_exists(#lease_until)")
            .with([
                (":from", text(RunStatus::Queued.as_str())),
                (":to", text(status.as_str())),
                (":error", text(error)),
            ]);
        self.or_as_it_is(ended, organization, id).await
    }

    /// Queues a run again that failed before any worker acquired it. Returns the current run.
    pub async fn wait_again(&self, organization: OrganizationId, id: RunId) -> Result<AutomationRun> {
        let queued = self
            .update(organization, id, "SET #status = :to, #updated_at = :now REMOVE #error, #finished_at")
            .when("#status = :from AND attribute_not_exists(#started_at)")
            .with([(":from", text(RunStatus::Failed.as_str())), (":to", text(RunStatus::Queued.as_str()))]);
        self.or_as_it_is(queued, organization, id).await
    }

    /// Marks a run for deletion: it is no longer shown or continued. Repeatable.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the organization has no such run, [`Error::Conflict`] if it is not finished.
    pub(super) async fn begin_deletion(&self, organization: OrganizationId, id: RunId) -> Result<RunDeletion> {
        let marked = self
            .update(organization, id, "SET #expires_at = :clock, #updated_at = :now")
            .when("NOT #status IN (:queued, :running, :waiting)")
            .with([
                (":waiting", text(RunStatus::WaitingForApproval.as_str())),
                (":queued", text(RunStatus::Queued.as_str())),
                (":running", text(RunStatus::Running.as_str())),
                (":clock", number(Timestamp::now().as_seconds())),
            ]);
        match marked.audited(Change::of(Act::Deleted, Noun::Run, id))?.attempt().await? {
            WriteResult::Done(_) => Ok(RunDeletion(id)),
            WriteResult::Refused(row) if is_of(&row, organization) => Err(Error::Conflict(format!(
                "the run is not over; cancel it first (POST /api/{{slug}}/runs/{id}/cancel), and delete it when it has ended"
            ))),
            WriteResult::Refused(_) => Err(Error::NotFound(RUN)),
        }
    }

    /// The row last, so that an interrupted deletion can resume.
    pub(super) async fn delete(&self, run: &RunDeletion, deadline: Deadline) -> Result<Result<(), OutOfTime>> {
        let keys = self.parts(run.0).await?;
        let is_row = |key: &Item| key.get("part") == Some(&text(RUN));
        let (row, others): (Vec<Item>, Vec<Item>) = keys.into_iter().partition(is_row);
        if let Err(out_of_time) = self.table.delete_all(others, deadline).await? {
            return Ok(Err(out_of_time));
        }
        self.table.delete_all(row, deadline).await
    }

    /// Newest first, expired runs included.
    pub(super) async fn listed(
        &self,
        organization: OrganizationId,
        after: Option<&Cursor>,
        limit: i32,
    ) -> Result<(Vec<ListedRun>, Option<Cursor>)> {
        let runs = self.table.of_organization(organization).newest_first().attributes("#id, #expires_at");
        let start = after.map(|after| start_key(organization, after));
        let (page, next) = runs.page(start, Some(limit)).await?;
        Ok((rows(page), next.as_ref().and_then(Cursor::after)))
    }

    pub(super) async fn mentions(&self, organization: OrganizationId, id: RunId, number: &E164) -> Result<bool> {
        mentions(&self.table, organization, id, number).await
    }

    async fn or_as_it_is(&self, change: Write, organization: OrganizationId, id: RunId) -> Result<AutomationRun> {
        match change.updated().await? {
            Some(run) => Ok(run),
            None => self.get(organization, id).await,
        }
    }

    /// A change of the organization's run without the lease; `:now` is bound.
    fn update(&self, organization: OrganizationId, id: RunId, change: &str) -> Write {
        self.table.update(row(id), change).of(organization).with([(":now", text(Timestamp::now()))])
    }

    fn step(&self, run: &AutomationRun, step: SavedStep<'_>) -> Result<Write> {
        let (part, item) = step.item()?;
        Ok(self.put(run, &part, item))
    }

    fn put(&self, run: &AutomationRun, part: &str, mut item: Item) -> Write {
        item.insert("id".into(), text(run.id));
        item.insert("part".into(), text(part));
        item.insert("expires_at".into(), number(run.expires_at));
        self.table.put_item(item)
    }
}

fn started(run: &AutomationRun) -> Change {
    let change = match run.event_id.filter(|_| run.trigger_type == RunTrigger::Replay) {
        Some(event) => Change::of(Act::Replayed, Noun::Event, event).with("run_id", run.id.to_string()),
        None => Change::of(Act::Started, Noun::Run, run.id),
    };
    let change = change.with("dry_run", run.dry_run);
    match run.automation_id {
        Some(automation) => change.with("automation_id", automation.to_string()),
        None => change,
    }
}

impl<'s> SavedStep<'s> {
    const fn action(&self) -> Option<&'s ActionResult> {
        match self {
            Self::Action(result) => Some(result),
            _ => None,
        }
    }

    fn item(self) -> Result<(String, Item)> {
        // Four digits sort in numerical order.
        Ok(match self {
            Self::Answer(answer) => (format!("{:04}{ANSWER}", answer.step), to_item(answer)?),
            Self::Reply(reply) => (format!("{:04}{REPLY}", reply.step), to_item(reply)?),
            Self::Action(action) => (format!("{:04}{ACTION}", action.index), to_item(action)?),
            Self::Prompt(prompt) => (PROMPT.to_owned(), to_item(prompt)?),
        })
    }
}

fn start_key(organization: OrganizationId, after: &Cursor) -> Item {
    after.start_key_of([("organization_id", text(organization)), ("part", text(RUN))])
}

fn row(id: RunId) -> Item {
    key([("id", text(id)), ("part", text(RUN))])
}

fn visible(run: AutomationRun) -> Result<AutomationRun> {
    if run.expires_at > Timestamp::now().as_seconds() { Ok(run) } else { Err(Error::NotFound(RUN)) }
}
