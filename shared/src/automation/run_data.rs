//! What the templates and conditions of a run lead into, the same whenever the run is carried on.

use jiff::tz::TimeZone;
use serde_json::{Map, Value};

use super::data::{Data, Lowered, Outputs};
use crate::{
    Error, Result,
    models::{AutomationRun, AutomationVersion, RunPlan, Timestamp},
};

/// What started a run, for whom it acts, and when.
#[derive(Debug, Clone)]
pub struct RunData {
    trigger_data: Lowered<'static>,
    user: Value,
    now: Timestamp,
    zone: TimeZone,
}

impl RunData {
    /// Of a run of this version. `now` is when the run was made; dates are in the trigger's time zone, else the user's, else UTC.
    ///
    /// # Errors
    /// If what was stored is no JSON.
    pub fn of(run: &AutomationRun, plan: &RunPlan, version: &AutomationVersion) -> Result<Self> {
        let read = |text: &str| serde_json::from_str::<Value>(text).map_err(Error::internal);
        let (trigger_data, user) = (read(&plan.trigger_data)?, read(&plan.user)?);
        let definition = read(&version.definition)?;
        let zone = |name: Option<&Value>| TimeZone::get(name?.as_str()?).ok();
        let zone = zone(definition.pointer("/trigger_config/timezone")).or_else(|| zone(user.get("timezone")));
        Ok(Self { trigger_data: trigger_data.into(), user, now: run.created_at, zone: zone.unwrap_or(TimeZone::UTC) })
    }

    /// With the constants of the definition, and what the actions gave back so far.
    pub fn with<'a>(&'a self, variables: &'a Map<String, Value>, outputs: &'a Outputs) -> Data<'a> {
        Data {
            variables,
            outputs,
            trigger_data: &self.trigger_data,
            user: &self.user,
            now: self.now,
            zone: self.zone.clone(),
        }
    }
}
