//! Starting a run of an automation.

use std::time::Duration;

use serde_json::Value;

use super::run_queue::RunQueue;
use crate::{
    Error, Result,
    models::{
        Automation, AutomationRun, EventId, RunId, RunLimits, RunPlan, RunStatus, RunTrigger, Spent, Timestamp, UserId,
    },
    store::OrganizationMembers,
};

/// Starts runs of automations, each once for what causes it.
#[derive(Clone)]
pub struct RunStarter {
    pub queue: RunQueue,
    pub members: OrganizationMembers,
    /// How long a run is kept.
    pub history: Duration,
}

/// Why a run of an automation begins.
#[derive(Debug, Clone)]
pub struct RunCause<'a> {
    pub trigger: RunTrigger,
    /// What is one run of the automation however often it comes: an event, an occurrence, a request.
    pub key: &'a str,
    /// What the automation's paths lead into.
    pub trigger_data: &'a Value,
    pub event: Option<EventId>,
    pub scheduled_for: Option<Timestamp>,
    /// Who asked for it; for whoever activated the automation otherwise.
    pub user: Option<&'a UserId>,
    /// The version that runs unless another one is named.
    pub version: Option<u64>,
    pub dry_run: bool,
}

impl RunStarter {
    /// Starts a run, unless this cause has started one already: then that one is given, and false. One whose message was lost
    /// is put on the queue again.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the automation has no version that could run.
    pub async fn start(&self, automation: &Automation, cause: &RunCause<'_>) -> Result<(AutomationRun, bool)> {
        let version = cause.version.or(automation.active_version);
        let version = version.ok_or_else(|| {
            Error::Conflict("no version of the automation was activated yet; activate one, or name one".into())
        })?;
        let organization = automation.organization_id;
        let now = Timestamp::now();
        let user = cause.user.or(automation.activated_by.as_ref());
        let run = AutomationRun {
            id: RunId::of_cause(organization, automation.id, cause.key),
            organization_id: organization,
            user_id: user.cloned(),
            trigger_type: cause.trigger,
            automation_id: Some(automation.id),
            automation_version: Some(version),
            event_id: cause.event,
            scheduled_for: cause.scheduled_for,
            dry_run: cause.dry_run,
            parent_run_id: None,
            status: RunStatus::Queued,
            actions_executed: 0,
            actions_failed: 0,
            model: None,
            // Of actions each has a time of its own; a prompt says its limits in the definition.
            limits: RunLimits { seconds: RunLimits::HIGHEST.seconds, ..RunLimits::default() },
            spent: Spent::default(),
            attempts: 0,
            lease_until: None,
            resume_at: None,
            cancel_requested_at: None,
            error: None,
            request_hash: None,
            started_at: None,
            finished_at: None,
            created_at: now,
            updated_at: now,
            expires_at: now.plus(self.history).as_seconds(),
        };
        let person = match user {
            Some(user) => self.members.person(organization, user).await?,
            None => Value::Object(serde_json::Map::new()),
        };
        let plan = RunPlan { trigger_data: cause.trigger_data.to_string(), user: person.to_string() };
        if self.queue.runs.create_planned(&run, &plan).await? {
            return Ok((self.queue.put(run).await?, true));
        }
        let earlier = self.queue.runs.get(organization, run.id).await?;
        Ok((self.queue.put_again(earlier).await?, false))
    }
}
