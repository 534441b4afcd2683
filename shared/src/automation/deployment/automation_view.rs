//! An automation as API clients see it, and its reader.

use futures_util::try_join;
use serde::Serialize;
use serde_json::Value;

use crate::{
    Deadline, Error, Result,
    automation::{ERROR_BUDGET, triggers::event_hooks::EventHooks},
    cut::SLACK,
    described::Described,
    error,
    models::{Automation, AutomationId, OrganizationId, Schedule, Timestamp},
    redaction::redacted,
    store::{Automations, Schedules},
};

#[derive(Clone)]
pub struct AutomationReader {
    pub automations: Automations,
    pub schedules: Schedules,
    pub event_hooks: EventHooks,
}

/// An automation with the definition of its newest version.
#[derive(Debug, Serialize, Described)]
#[schema(name = "AutomationWithDefinition")]
pub struct AutomationView {
    #[serde(flatten)]
    pub automation: Automation,
    /// Of the newest version.
    pub content_hash: String,
    #[schema(r#type = "object")]
    pub definition: Value,
    /// `hook`: its service posts the event to a hook, and the organization has no hook for it, so nothing starts the automation yet.
    /// Otherwise null.
    #[schema(r#enum = ["hook"])]
    pub waits_for: Option<&'static str>,
    #[serde(flatten)]
    schedule: ScheduleView,
}

#[derive(Debug, Default, Serialize, Described)]
struct ScheduleView {
    /// When it runs next by its schedule, or its source is asked next; null while it is paused, and when nothing is to come.
    next_run_at: Option<Timestamp>,
    /// When its source was asked last.
    last_poll: Option<Timestamp>,
    /// Why the last poll of the source failed, or which items of its answer were skipped. A sentence.
    last_error: Option<String>,
}

impl From<Schedule> for ScheduleView {
    fn from(schedule: Schedule) -> Self {
        let Schedule { next_run_at, due, last_poll, last_error, .. } = schedule;
        // Older rows have it unredacted.
        let last_error = last_error.map(|error| redacted(&error, ERROR_BUDGET + SLACK));
        Self { next_run_at: next_run_at.filter(|_| due.is_some()), last_poll, last_error }
    }
}

impl AutomationReader {
    pub async fn show(
        &self,
        organization: OrganizationId,
        id: AutomationId,
        deadline: Deadline,
    ) -> Result<AutomationView> {
        let automation = self.automations.get(organization, id).await?;
        let version = self.automations.version(organization, id, automation.version);
        let (version, schedule) = try_join!(version, self.schedules.get(organization, id))?;
        let definition: Value = serde_json::from_str(&version.definition).map_err(Error::internal)?;
        let missing = self.event_hooks.are_missing(organization, &definition, deadline).await.unwrap_or_else(|error| {
            tracing::warn!("the hooks of an automation could not be read: {}", error::chain(&error));
            false
        });
        let schedule = schedule.map(ScheduleView::from).unwrap_or_default();
        let waits_for = missing.then_some("hook");
        Ok(AutomationView { automation, content_hash: version.content_hash, definition, waits_for, schedule })
    }
}
