//! The data for templates and conditions of a run, identical whenever the run resumes.

use jiff::tz::TimeZone;
use serde_json::{Map, Value};

use crate::{
    Error, Result,
    automation::expressions::data::{Data, Lowered, Outputs, zone_named},
    models::{AutomationRun, AutomationVersion, RunPause, RunPlan, Timestamp},
};

#[derive(Debug, Clone)]
pub struct RunData {
    trigger_data: Lowered<'static>,
    user: Value,
    now: Timestamp,
    zone: TimeZone,
    dry_run: bool,
    pause: Option<RunPause>,
    event: Option<Value>,
}

impl RunData {
    /// Dates use the time the run was created, in the trigger's time zone, else the user's, else UTC.
    ///
    /// # Errors
    /// If stored text is not JSON.
    pub fn of(run: &AutomationRun, plan: &RunPlan, version: &AutomationVersion) -> Result<Self> {
        let read = |text: &str| serde_json::from_str::<Value>(text).map_err(Error::internal);
        let (trigger_data, user) = (read(&plan.trigger_data)?, read(&plan.user)?);
        let definition = read(&version.definition)?;
        let zone = zone_named(definition.pointer("/trigger_config/timezone"));
        let zone = zone.or_else(|| zone_named(user.get("timezone")));
        Ok(Self {
            trigger_data: trigger_data.into(),
            user,
            now: run.created_at,
            zone: zone.unwrap_or(TimeZone::UTC),
            dry_run: run.dry_run,
            pause: run.pause.clone(),
            event: None,
        })
    }

    /// `event`: the one that came for the run's pause, as JSON text.
    ///
    /// # Errors
    /// If it is not JSON.
    pub fn with_event(self, event: Option<&str>) -> Result<Self> {
        let event = event.map(serde_json::from_str).transpose().map_err(Error::internal)?;
        Ok(Self { event, ..self })
    }

    /// The event that the run's pause waited for, if it came.
    pub(super) const fn event(&self) -> Option<&Value> {
        self.event.as_ref()
    }

    pub(super) const fn zone(&self) -> &TimeZone {
        &self.zone
    }

    pub(super) fn pause_at(&self, place: &str) -> Option<&RunPause> {
        self.pause.as_ref().filter(|pause| pause.place == place)
    }

    pub const fn is_dry_run(&self) -> bool {
        self.dry_run
    }

    pub fn with<'a>(&'a self, variables: &'a Map<String, Value>, outputs: &'a Outputs) -> Data<'a> {
        Data {
            variables,
            outputs,
            trigger_data: &self.trigger_data,
            user: &self.user,
            now: self.now,
            zone: self.zone.clone(),
            item: None,
        }
    }
}
