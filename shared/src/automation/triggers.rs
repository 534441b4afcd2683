//! Triggers outside our tables: schedules at `EventBridge` Scheduler, and triggers deployed at Pipedream.
//!
//! A change spans two systems: an intent is recorded, the automation's row changes, and [`Triggers::agree`] makes the external
//! side match the row. Each schedule fires once; its occurrence creates the next one. The row in `schedules` names the next
//! occurrence, and messages for any other are stale. A surplus schedule is therefore harmless, and [`Triggers::sweep`] finds a
//! missing one.

pub(super) mod answered_calls;
pub(super) mod dispatch;
pub(super) mod ended_calls;
pub(super) mod event_hooks;
pub(super) mod event_replays;
pub(super) mod failed_tools;
pub(super) mod matching;
pub(super) mod pipedream_triggers;
pub(super) mod polling;
pub(super) mod source;
mod waking;

use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use self::{
    pipedream_triggers::{PipedreamTriggers, Refused},
    polling::hash,
};
use super::definition::{
    schedule::ScheduleRule,
    trigger::{Missed, Trigger},
};
use crate::{
    Deadline, Error, Result,
    automation::{FailurePause, PauseCause},
    clients::{Queue, Scheduler},
    error::found,
    lifecycle::{Progress, SettleAbove, SettleWaker, close, open, ownership, settle_now},
    models::{
        Automation, AutomationId, AutomationStatus, AutomationVersion, Change, Intent, Occurrence, OrganizationId,
        RunId, Schedule, Timestamp,
    },
    store::{Automations, Intents, Schedules, unreadable},
};

/// Occurrences due this soon go directly to the queue: Scheduler has minute precision, and rejects past times.
const SOON: Duration = Duration::from_secs(60);
/// Delay after which the sweep queues an occurrence.
const LATE: Duration = Duration::from_secs(120);
/// Occurrences per partition and sweep.
const SWEPT: i32 = 500;
/// Time for Pipedream to deploy or delete a trigger.
const PIPEDREAM_WITHIN: Duration = Duration::from_secs(20);
/// Time reserved to save the outcome.
const ANSWERING: Duration = Duration::from_secs(3);
/// Attempts when the automation or its schedule changes concurrently.
const TRIES: u32 = 5;

/// Keeps external triggers consistent with the rows of automations.
#[derive(Clone)]
pub struct Triggers {
    pub automations: Automations,
    pub schedules: Schedules,
    pub intents: Intents,
    pub scheduler: Scheduler,
    pub occurrences: Queue<Occurrence>,
    pub pipedream: PipedreamTriggers,
    pub settling: SettleWaker,
}

/// The active version with its trigger; `rule` is a hash of trigger type and configuration.
struct Running {
    version: AutomationVersion,
    trigger: Trigger,
    rule: String,
}

impl Triggers {
    /// Performs `change` on an automation's row, then updates its external triggers. If that update fails the change stands, and
    /// is completed at once or by `settle` within minutes.
    ///
    /// # Errors
    /// Those of `change`.
    pub async fn change<T>(
        &self,
        organization: OrganizationId,
        automation: AutomationId,
        deadline: Deadline,
        change: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let change_of = Change::AutomationTrigger { automation_id: automation };
        let intent = Intent::new(organization, change_of, ownership(deadline));
        open(&self.intents, &intent).await?;
        let changed = Box::pin(change).await;
        let failure = match &changed {
            // Conflict: an unfinished deletion may have begun.
            Ok(_) | Err(Error::Conflict(_)) => Box::pin(self.agree(organization, automation, deadline)).await.err(),
            // The change had no effect.
            Err(Error::Invalid(_) | Error::NotFound(_)) => None,
            Err(_unknown) => Some(Error::internal("the change failed, and may have taken effect")),
        };
        match failure {
            None => close(&self.intents, &intent).await,
            Some(failure) => {
                let settled = settle_now(&self.intents, &intent, &failure, async {
                    Box::pin(self.agree(organization, automation, deadline)).await?;
                    Ok(Progress::Settled("the triggers of an automation are in place"))
                });
                if !settled.await {
                    self.settling.wake("automation_trigger").await;
                }
            }
        }
        changed
    }

    /// Makes the external triggers match the automation: those of the active version, or none. May be called at any time and
    /// concurrently. The schedule comes first, because it depends on no vendor; Pipedream's part ends by the deadline.
    pub async fn agree(
        &self,
        organization: OrganizationId,
        automation: AutomationId,
        deadline: Deadline,
    ) -> Result<()> {
        for _ in 0..TRIES {
            let compared = self.compare(organization, automation, Some(deadline.reserving(ANSWERING)));
            let Some((row, Refused(why))) = Box::pin(compared).await? else { return Ok(()) };
            // The owner reads the reason; the comparison repeats with the paused automation.
            self.automations.pause(&row, Some(&why)).await?;
        }
        Err(changed_by_others())
    }

    /// As [`Triggers::agree`], for the schedule only: the handler of occurrences may not change Pipedream triggers.
    pub async fn update_schedule(&self, organization: OrganizationId, automation: AutomationId) -> Result<()> {
        self.compare(organization, automation, None).await.map(drop)
    }

    /// Gives the active automation whose trigger is refused; it must be paused.
    async fn compare(
        &self,
        organization: OrganizationId,
        automation: AutomationId,
        with_pipedream: Option<Deadline>,
    ) -> Result<Option<(Automation, Refused)>> {
        for _ in 0..TRIES {
            let row = found(self.automations.get(organization, automation).await)?;
            // A paused automation needs no trigger, so pausing works although the version is unreadable.
            let active = row.as_ref().filter(|row| row.status == AutomationStatus::Active);
            let running = match active.and_then(|row| row.active_version) {
                Some(version) => Some(self.running(organization, automation, version).await?),
                None => None,
            };
            let scheduled = self.schedule_agrees(organization, automation, (row.as_ref(), running.as_ref())).await?;
            if let Some(deadline) = with_pipedream {
                let listens = active.zip(running.as_ref()).map(|(row, running)| (row, &running.trigger));
                let within = deadline.at_most(PIPEDREAM_WITHIN);
                let refused = Box::pin(self.pipedream.agree(organization, automation, listens, within)).await?;
                if let (Some(refused), Some(row)) = (refused, &row) {
                    return Ok(Some((row.clone(), refused)));
                }
            }
            if scheduled {
                // The automation may have changed since it was read, by a process that compared before this write.
                let now = found(self.automations.get(organization, automation).await)?;
                if now.map(|now| now.revision) == row.map(|row| row.revision) {
                    return Ok(None);
                }
            }
        }
        Err(changed_by_others())
    }

    async fn running(&self, organization: OrganizationId, id: AutomationId, version: u64) -> Result<Running> {
        let version = self.automations.version(organization, id, version).await?;
        let (trigger, rule) = trigger_of(&version)?;
        Ok(Running { version, trigger, rule })
    }

    /// Returns false if the schedule changed concurrently.
    async fn schedule_agrees(
        &self,
        organization: OrganizationId,
        id: AutomationId,
        (row, running): (Option<&Automation>, Option<&Running>),
    ) -> Result<bool> {
        let schedule = self.schedules.get(organization, id).await?;
        let by_the_clock = |running: &&Running| {
            matches!(running.trigger, Trigger::Polling(_)) || ScheduleRule::of(&running.trigger).is_some()
        };
        let is_paused = row.is_some_and(|row| row.status != AutomationStatus::Active && row.active_version.is_some());
        match (running.filter(by_the_clock), schedule) {
            (Some(running), schedule) => {
                let now = Timestamp::now();
                let (schedule, next) = resumed(running, schedule, now);
                self.arm(schedule, next, now).await
            }
            (None, Some(schedule)) if !is_paused => self.remove(&schedule).await,
            (None, Some(schedule)) if schedule.due.is_some() => self.disarm(schedule).await,
            (None, _) => Ok(true),
        }
    }

    /// Saves a schedule and arranges its next occurrence. Returns false if the schedule changed since it was read.
    pub async fn arm(&self, schedule: Schedule, next: Option<Timestamp>, now: Timestamp) -> Result<bool> {
        let before = schedule.schedule_name.clone();
        let occurrence = next.map(|scheduled_for| Occurrence {
            organization_id: schedule.organization_id,
            automation_id: schedule.id,
            scheduled_for,
        });
        let name = next.filter(|next| *next > now.plus(SOON)).map(|next| name_of(schedule.id, next));
        let armed = Schedule {
            next_run_at: next,
            due: next.map(|_| Schedules::partition_of(schedule.id)),
            schedule_name: name.clone(),
            ..schedule
        };
        // Create the schedule first: a schedule without a row is stale when it fires, but a row without a schedule waits for the
        // sweep.
        if let (Some(name), Some(occurrence)) = (&name, &occurrence) {
            self.scheduler.send_at(name, occurrence.scheduled_for, occurrence).await?;
        }
        if self.schedules.save(&armed).await?.is_none() {
            if let Some(name) = &name {
                self.unless_named(&armed, name).await?;
            }
            return Ok(false);
        }
        // Write the row first: an immediate occurrence is handled only if the row names it.
        if let (None, Some(occurrence)) = (&name, &occurrence) {
            let wait = occurrence.scheduled_for.as_millis().saturating_sub(now.as_millis());
            let wait = Duration::from_millis(u64::try_from(wait).unwrap_or_default());
            self.occurrences.send_later(occurrence, wait).await?;
        }
        if let Some(before) = before.filter(|before| Some(before) != name.as_ref()) {
            self.scheduler.delete(&before).await?;
        }
        Ok(true)
    }

    /// Deletes a schedule unless the row names it.
    async fn unless_named(&self, schedule: &Schedule, name: &str) -> Result<()> {
        let there = self.schedules.get(schedule.organization_id, schedule.id).await?;
        if there.and_then(|there| there.schedule_name).as_deref() != Some(name) {
            self.scheduler.delete(name).await?;
        }
        Ok(())
    }

    /// Deletes the schedule of a paused automation, and keeps the time of its next occurrence.
    async fn disarm(&self, schedule: Schedule) -> Result<bool> {
        if let Some(name) = &schedule.schedule_name {
            self.scheduler.delete(name).await?;
        }
        let paused = Schedule { due: None, schedule_name: None, ..schedule };
        Ok(self.schedules.save(&paused).await?.is_some())
    }

    async fn remove(&self, schedule: &Schedule) -> Result<bool> {
        if let Some(name) = &schedule.schedule_name {
            self.scheduler.delete(name).await?;
        }
        self.schedules.delete(schedule).await
    }

    /// Queues overdue occurrences of all organizations, and returns their number. Queueing one twice is harmless.
    pub async fn sweep(&self) -> Result<usize> {
        let now = Timestamp::now();
        let late = Timestamp::from_millis(now.as_millis() - i64::try_from(LATE.as_millis()).unwrap_or_default());
        let overdue = self.schedules.overdue(late, SWEPT).await?;
        let occurrences: Vec<(Occurrence, Duration)> = overdue
            .iter()
            .filter_map(|schedule| {
                let (organization_id, automation_id) = (schedule.organization_id, schedule.id);
                Some(Occurrence { organization_id, automation_id, scheduled_for: schedule.next_run_at? })
            })
            .map(|occurrence| (occurrence, Duration::ZERO))
            .collect();
        if let Err(unsent) = self.occurrences.send_all(&occurrences).await {
            return Err(unsent.error.into());
        }
        if !occurrences.is_empty() {
            tracing::warn!(count = occurrences.len(), "late occurrences of schedules are queued");
        }
        Ok(occurrences.len())
    }
}

/// Triggers as `settle` compares them: nobody waits for the answer, so owners are alerted of a refusal.
pub struct SettledTriggers<'a> {
    pub triggers: &'a Triggers,
    pub watch: &'a FailurePause,
}

impl SettleAbove for SettledTriggers<'_> {
    fn settle_trigger(
        &self,
        organization: OrganizationId,
        automation: AutomationId,
        deadline: Deadline,
    ) -> BoxFuture<'_, Result<&'static str>> {
        Box::pin(async move {
            let compare = || self.triggers.compare(organization, automation, Some(deadline.reserving(ANSWERING)));
            let Some((row, Refused(why))) = Box::pin(compare()).await? else {
                return Ok("the triggers of an automation are in place");
            };
            let cause = RunId::of_cause(organization, automation, &format!("trigger refused at {}", row.revision));
            // At another revision the trigger may be another one, and its account too.
            let paused = self.watch.pause_at(&row, &why, PauseCause::NoRun(cause)).await?;
            match Box::pin(compare()).await? {
                None if paused => Ok("an automation was paused, because its trigger was refused"),
                None => Ok("the triggers of an automation are in place"),
                Some(_) => Err(changed_by_others()),
            }
        })
    }

    fn readdress_triggers<'a>(
        &'a self,
        after: Option<&'a str>,
        deadline: Deadline,
    ) -> BoxFuture<'a, Result<Option<String>>> {
        Box::pin(async move {
            let (left, next) = Box::pin(self.triggers.pipedream.readdress(after, deadline)).await?;
            for row in left {
                let change = Change::AutomationTrigger { automation_id: row.id };
                open(&self.triggers.intents, &Intent::new(row.organization_id, change, Duration::ZERO)).await?;
            }
            Ok(next)
        })
    }
}

fn changed_by_others() -> Error {
    Error::Conflict("the automation is being changed by others; try again".into())
}

/// The trigger of a version, and a hash of its type and configuration.
fn trigger_of(version: &AutomationVersion) -> Result<(Trigger, String)> {
    let stored: Value = serde_json::from_str(&version.definition).map_err(Error::internal)?;
    let trigger = Trigger::stored(&stored).ok_or_else(|| unreadable::<AutomationVersion>(&version.automation_id))?;
    Ok((trigger, hash(&json!([stored.get("trigger_type"), stored.get("trigger_config")]).to_string())))
}

/// The schedule of an active automation and its next occurrence; an unchanged rule keeps the planned one.
fn resumed(running: &Running, schedule: Option<Schedule>, now: Timestamp) -> (Schedule, Option<Timestamp>) {
    let Running { version, trigger, rule } = running;
    let schedule = schedule.unwrap_or_else(|| Schedule {
        id: version.automation_id,
        organization_id: version.organization_id,
        automation_version: version.version,
        rule: String::new(),
        next_run_at: None,
        schedule_name: None,
        due: None,
        last_run_at: None,
        last_poll: None,
        failures: 0,
        last_error: None,
        cursor: None,
        revision: 0,
        created_at: now,
        updated_at: now,
    });
    let skip = trigger.missed() == Missed::Skip;
    let same = schedule.rule == *rule;
    let next = match (trigger, ScheduleRule::of(trigger)) {
        // The automation was not paused, so its occurrence is still planned.
        _ if same && schedule.due.is_some() => schedule.next_run_at,
        (_, Some(ScheduleRule::Once { at })) => {
            let over = same && (schedule.next_run_at.is_none() || (skip && at <= now));
            (!over).then_some(at)
        }
        (_, Some(rule)) => {
            let missed = schedule.next_run_at.filter(|next| same && !skip && *next <= now);
            missed.or_else(|| rule.next_after(now))
        }
        // Poll at once. The items of a first poll count as old.
        _ => Some(now),
    };
    let paused = schedule.due.is_none();
    let cursor = schedule.cursor.filter(|_| !(paused && skip));
    (Schedule { automation_version: version.version, rule: rule.clone(), cursor, ..schedule }, next)
}

fn name_of(automation: AutomationId, at: Timestamp) -> String {
    let automation = automation.to_string().replace('-', "");
    let at: String = at.to_string().chars().take(19).filter(|letter| !matches!(letter, '-' | ':')).collect();
    format!("{automation}-{at}Z")
}
