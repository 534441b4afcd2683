//! An automation as API clients see it, and its reader.

use futures_util::try_join;
use serde::Serialize;
use serde_json::Value;

use crate::{
    Deadline, Error, Result,
    automation::triggers::event_hooks::EventHooks,
    error,
    models::{Automation, AutomationId, OrganizationId, Schedule, Timestamp},
    store::{Automations, Schedules},
};

#[derive(Clone)]
pub struct AutomationReader {
    pub automations: Automations,
    pub schedules: Schedules,
    pub event_hooks: EventHooks,
}

#[derive(Debug, Serialize)]
pub struct AutomationView {
    #[serde(flatten)]
    pub automation: Automation,
    pub content_hash: String,
    pub definition: Value,
    /// `hook`: the organization lacks the hook to which the service posts the event.
    pub waits_for: Option<&'static str>,
    #[serde(flatten)]
    schedule: ScheduleView,
}

/// Next run by the clock, and the state of polling.
#[derive(Debug, Default, Serialize)]
struct ScheduleView {
    /// Null while paused and after the last occurrence.
    next_run_at: Option<Timestamp>,
    last_poll: Option<Timestamp>,
    last_error: Option<String>,
}

impl From<Schedule> for ScheduleView {
    fn from(schedule: Schedule) -> Self {
        let Schedule { next_run_at, due, last_poll, last_error, .. } = schedule;
        Self { next_run_at: next_run_at.filter(|_| due.is_some()), last_poll, last_error }
    }
}

crate::described!(AutomationView => {"$ref": "#/components/schemas/AutomationWithDefinition"});

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
