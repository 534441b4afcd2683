//! Starts runs of automations.

use std::time::Duration;

use serde_json::Value;

use super::run_queue::RunQueue;
use crate::{
    Deadline, Error, Result,
    error::{self, found},
    models::{
        Automation, AutomationQuotas, AutomationRun, EventId, RunId, RunLimits, RunPlan, RunStatus, RunTrigger,
        Timestamp, UserId,
    },
    store::{Counted, OrganizationMembers, Quotas, Room, Window},
};

const NOT_COUNTED: &str = "The run could not be counted, so it did not begin; start it again.";
const COUNTED_WITHIN: Duration = Duration::from_secs(5);

#[derive(Clone)]
pub struct RunStarter {
    pub queue: RunQueue,
    pub members: OrganizationMembers,
    pub quotas: Quotas,
    pub history: Duration,
}

#[derive(Debug, Clone)]
pub struct RunCause<'a> {
    pub trigger: RunTrigger,
    /// Idempotency key: the id of the event, occurrence or request.
    pub key: &'a str,
    pub trigger_data: &'a Value,
    pub event: Option<EventId>,
    pub scheduled_for: Option<Timestamp>,
    /// The requester; without one, the run acts for the user who activated the automation.
    pub user: Option<&'a UserId>,
    /// Defaults to the active version.
    pub version: Option<u64>,
    pub dry_run: bool,
    /// The run whose action starts it.
    pub parent: Option<RunId>,
}

impl<'a> RunCause<'a> {
    /// For the active version and its user.
    pub const fn new(trigger: RunTrigger, key: &'a str, trigger_data: &'a Value) -> Self {
        Self {
            trigger,
            key,
            trigger_data,
            event: None,
            scheduled_for: None,
            user: None,
            version: None,
            dry_run: false,
            parent: None,
        }
    }
}

impl RunStarter {
    /// Starts a run, or returns the run that this cause started before, and false. A run whose message was lost is queued again.
    /// A run beyond the automation's `runs_per_hour`, or a dry run beyond those of the organization, is saved as
    /// [`RunStatus::RunLimit`] with the reason, and a repeated cause does not start it.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the automation has no version to run.
    pub async fn start(&self, automation: &Automation, cause: &RunCause<'_>) -> Result<(AutomationRun, bool)> {
        self.start_requested(automation, cause, None).await
    }

    /// As [`RunStarter::start`], for a request; `hash` is that of one with an idempotency key.
    ///
    /// # Errors
    /// As [`RunStarter::start`]; also [`Error::Conflict`] if the same key started a run with another request.
    pub async fn start_requested(
        &self,
        automation: &Automation,
        cause: &RunCause<'_>,
        hash: Option<&str>,
    ) -> Result<(AutomationRun, bool)> {
        let (run, plan) = self.new_run(automation, cause, hash).await?;
        // A person asked, and without a key nobody can ask for the same run again.
        if matches!(cause.trigger, RunTrigger::Manual | RunTrigger::Replay) && hash.is_none() {
            self.queue.put_if_lost(run.organization_id, run.id).await?;
        }
        if self.queue.runs.create_planned(&run, &plan).await? {
            return Ok((self.count_and_put(automation, run).await?, true));
        }
        let earlier = self.earlier(&run).await?;
        same_request(&earlier, hash)?;
        if earlier.status == RunStatus::Failed && earlier.started_at.is_none() {
            let again = self.queue.runs.wait_again(run.organization_id, earlier.id).await?;
            if again.status == RunStatus::Queued {
                return Ok((self.count_and_put(automation, again).await?, false));
            }
            return Ok((again, false));
        }
        Ok((self.queue.put_again(earlier).await?, false))
    }

    /// The run that this cause started before; `None` also if it never began.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the same key started a run with another request.
    pub async fn started_before(
        &self,
        automation: &Automation,
        key: &str,
        hash: Option<&str>,
    ) -> Result<Option<AutomationRun>> {
        let organization = automation.organization_id;
        let id = RunId::of_cause(organization, automation.id, key);
        let Some(earlier) = found(self.queue.runs.get(organization, id).await)? else { return Ok(None) };
        same_request(&earlier, hash)?;
        let never_began = earlier.status == RunStatus::Failed && earlier.started_at.is_none();
        if never_began { Ok(None) } else { self.queue.put_again(earlier).await.map(Some) }
    }

    /// Starts a run, or returns the run that this cause started before. `None`, and nothing is written, if the automation has
    /// started `most` runs within the hour.
    ///
    /// # Errors
    /// As [`RunStarter::start`].
    pub async fn start_below(
        &self,
        automation: &Automation,
        cause: &RunCause<'_>,
        most: u32,
    ) -> Result<Option<AutomationRun>> {
        let (run, plan) = self.new_run(automation, cause, None).await?;
        let (organization, runs) = (run.organization_id, &self.queue.runs);
        if let Some(earlier) = found(runs.get(organization, run.id).await)? {
            return self.queue.put_again(earlier).await.map(Some);
        }
        let Room::Taken(_) = self.counted(&run, most).await? else { return Ok(None) };
        if !runs.create_planned(&run, &plan).await? {
            // Another delivery of the same message was first. The count stays, for it may be the only one of this run: the count of a
            // name is not repeated.
            let earlier = self.earlier(&run).await?;
            return self.queue.put_again(earlier).await.map(Some);
        }
        self.queue.put(run).await.map(Some)
    }

    /// The run that the cause of this one began before.
    ///
    /// # Errors
    /// [`Error::Conflict`] if it has expired and its row is still there.
    async fn earlier(&self, run: &AutomationRun) -> Result<AutomationRun> {
        self.queue.runs.get(run.organization_id, run.id).await.map_err(|error| match error {
            Error::NotFound(_) => Error::Conflict("its run began so long ago that the history no longer has it".into()),
            error => error,
        })
    }

    async fn new_run(
        &self,
        automation: &Automation,
        cause: &RunCause<'_>,
        hash: Option<&str>,
    ) -> Result<(AutomationRun, RunPlan)> {
        let version = cause.version.or(automation.active_version);
        let version = version.ok_or_else(|| {
            Error::Conflict("no version of the automation was activated yet; activate one, or name one".into())
        })?;
        let organization = automation.organization_id;
        let user = cause.user.or(automation.activated_by.as_ref());
        let id = RunId::of_cause(organization, automation.id, cause.key);
        // Actions have their own timeouts; prompts state limits in the definition.
        let limits = RunLimits { seconds: RunLimits::HIGHEST.seconds, ..RunLimits::default() };
        let kept_until = Timestamp::now().plus(self.history).as_seconds();
        let run = AutomationRun {
            user_id: user.cloned(),
            automation_id: Some(automation.id),
            automation_version: Some(version),
            event_id: cause.event,
            scheduled_for: cause.scheduled_for,
            dry_run: cause.dry_run,
            parent_run_id: cause.parent,
            request_hash: hash.map(str::to_owned),
            ..AutomationRun::queued(id, organization, cause.trigger, limits, kept_until)
        };
        let person = match user {
            Some(user) => self.members.person(organization, user).await?,
            None => Value::Object(serde_json::Map::new()),
        };
        let plan =
            RunPlan { trigger_data: cause.trigger_data.to_string(), user: person.to_string(), ..RunPlan::default() };
        Ok((run, plan))
    }

    /// Queues a waiting run if the quota allows it.
    pub(super) async fn count_and_put(&self, automation: &Automation, run: AutomationRun) -> Result<AutomationRun> {
        match self.refused(automation, &run).await {
            Ok(Some(refused)) => Ok(refused),
            Ok(None) => self.queue.put(run).await,
            Err(error) => {
                // No process would execute the run. A repeat of its cause starts it.
                let failed = self.queue.runs.fail_waiting(run.organization_id, run.id, NOT_COUNTED).await;
                if let Err(error) = failed {
                    tracing::error!(run.id = %run.id, "a run is queued, but its message was not sent: {}", error::chain(&error));
                }
                Err(error)
            }
        }
    }

    async fn counted(&self, run: &AutomationRun, most: u32) -> Result<Room> {
        let Some(automation) = run.automation_id else { return Ok(Room::free()) };
        let counted = if run.dry_run { Counted::DryRuns } else { Counted::Runs(automation) };
        // Named, since a run whose message was lost may have been counted before.
        let (wanted, name) = ([(counted, Window::Hour, most)], run.id.to_string());
        let deadline = Deadline::after(COUNTED_WITHIN);
        self.quotas.take_each(run.organization_id, &wanted, Some(&name), deadline).await
    }

    /// Counts a new run against the quota. A run over quota ends here, before it is queued.
    async fn refused(&self, automation: &Automation, run: &AutomationRun) -> Result<Option<AutomationRun>> {
        let of_automation = automation.quotas.runs_per_hour;
        let most =
            if run.dry_run { of_automation.max(AutomationQuotas::default().runs_per_hour) } else { of_automation };
        if let Room::Taken(_) = self.counted(run, most).await? {
            return Ok(None);
        }
        let reached = if run.dry_run {
            format!("the organization has reached its limit of {most} dry runs an hour")
        } else {
            format!("its automation has reached its limit of {most} runs an hour (quotas.runs_per_hour)")
        };
        let again = Timestamp::now().next_hour();
        let reason = format!("It did not start: {reached}; the next can start at {again}.");
        let refused = self.queue.runs.refuse_waiting(run.organization_id, run.id, &reason).await?;
        tracing::warn!(run.id = %run.id, automation.id = %automation.id, "a run did not start: {reached}");
        Ok((refused.status == RunStatus::RunLimit).then_some(refused))
    }
}

fn same_request(earlier: &AutomationRun, hash: Option<&str>) -> Result<()> {
    if earlier.request_hash.as_deref() == hash {
        return Ok(());
    }
    let id = earlier.id;
    let problem = format!("the Idempotency-Key began the run {id} with another body; use another key for this one");
    Err(Error::Conflict(problem))
}
