//! Whether an event starts an automation that listens to it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use jiff::tz::TimeZone;
use serde_json::{Map, Value};

use super::{
    conditions::Condition,
    diagnostics::Diagnostics,
    path::Path,
    templates::{Data, filled_in},
};
use crate::{
    Error, Result,
    models::{Automation, AutomationId, Timestamp},
    store::{Automations, OrganizationMembers},
};

/// Versions whose variables are remembered; they never change.
const MOST_REMEMBERED: usize = 500;

/// Why an event does not start an automation: a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoesNotRun(pub String);

/// Holds events against the filters of automations.
#[derive(Clone)]
pub struct EventFilters {
    pub automations: Automations,
    pub members: OrganizationMembers,
    variables: Arc<Mutex<HashMap<(AutomationId, u64), Arc<Map<String, Value>>>>>,
}

impl EventFilters {
    pub fn new(automations: Automations, members: OrganizationMembers) -> Self {
        Self { automations, members, variables: Arc::default() }
    }

    /// Whether an event with this content starts an automation, and why not. What cannot be read lets nothing through.
    ///
    /// # Errors
    /// If something could not be looked up: then nobody knows yet.
    pub async fn check(&self, automation: &Automation, data: &Value) -> Result<Result<(), DoesNotRun>> {
        let Some(filter) = &automation.trigger_filter else { return Ok(Ok(())) };
        let Some(condition) = read(filter) else {
            tracing::error!(automation.id = %automation.id, "the filter of an automation cannot be read");
            let why = "Its filter cannot be read, so nothing was run. Save the automation again.";
            return Ok(Err(DoesNotRun(why.to_owned())));
        };
        let variables = match self.variables(automation).await? {
            Ok(variables) => variables,
            Err(gone) => return Ok(Err(gone)),
        };
        let person = match &automation.activated_by {
            Some(user) if filter.contains("user") || filter.contains("{{") => {
                self.members.person(automation.organization_id, user).await?
            }
            _ => Value::Object(Map::new()),
        };
        let zone = person["timezone"].as_str().and_then(|name| TimeZone::get(name).ok()).unwrap_or(TimeZone::UTC);
        let data = Data {
            variables: &variables,
            outputs: &Map::new(),
            trigger_data: data,
            user: &person,
            now: Timestamp::now(),
            zone,
        };
        let holds = condition.holds(&|path: &Path| data.get(path), &|value: &Value| filled_in(value, &data));
        Ok(if holds { Ok(()) } else { Err(DoesNotRun(why_not(&condition, &data))) })
    }

    /// The variables of the version that runs.
    async fn variables(&self, automation: &Automation) -> Result<Result<Arc<Map<String, Value>>, DoesNotRun>> {
        let gone = |why: &str| Ok(Err(DoesNotRun(why.to_owned())));
        let Some(version) = automation.active_version else { return gone("No version of it was activated.") };
        let key = (automation.id, version);
        if let Some(known) = self.remembered().get(&key) {
            return Ok(Ok(known.clone()));
        }
        let stored = match self.automations.version(automation.organization_id, automation.id, version).await {
            Ok(stored) => stored,
            Err(Error::NotFound(_)) => return gone("The version that runs is gone."),
            Err(error) => return Err(error),
        };
        let Ok(definition) = serde_json::from_str::<Value>(&stored.definition) else {
            return gone("Its definition cannot be read, so nothing was run. Save the automation again.");
        };
        let variables = Arc::new(definition["variables"].as_object().cloned().unwrap_or_default());
        let mut remembered = self.remembered();
        if remembered.len() >= MOST_REMEMBERED {
            remembered.clear();
        }
        remembered.insert(key, variables.clone());
        Ok(Ok(variables))
    }

    fn remembered(&self) -> std::sync::MutexGuard<'_, HashMap<(AutomationId, u64), Arc<Map<String, Value>>>> {
        self.variables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A filter as it is stored; none if it cannot be read whole.
fn read(filter: &str) -> Option<Condition> {
    let filter: Value = serde_json::from_str(filter).ok()?;
    let mut diagnostics = Diagnostics::default();
    Condition::read(&filter, "/trigger_config/filters", &mut diagnostics).filter(|_| !diagnostics.has_errors())
}

/// Says which clauses of a condition that does not hold are to blame, with what was found.
fn why_not(condition: &Condition, data: &Data<'_>) -> String {
    let get = |path: &Path| data.get(path);
    let filled = |value: &Value| filled_in(value, data);
    let blamed = condition.clauses().into_iter().filter(|clause| {
        let alone = Condition::Clause((*clause).clone());
        !alone.holds(&get, &filled)
    });
    let told = blamed.map(|clause| {
        let found = match data.get(&clause.path) {
            None | Some(Value::Null) => "nothing is there".to_owned(),
            Some(found) => format!("it was {}", crate::cut::cut(found.to_string(), LONGEST_VALUE)),
        };
        let value = match filled(&clause.value) {
            Value::Null => String::new(),
            value => format!(" {}", crate::cut::cut(value.to_string(), LONGEST_VALUE)),
        };
        format!("{} {}{value}: no, {found}", clause.path.as_str(), clause.operator.as_str())
    });
    format!("Its filter does not hold. {}.", told.take(MOST_CLAUSES).collect::<Vec<_>>().join("; "))
}

/// Of a value in an explanation, in bytes.
const LONGEST_VALUE: usize = 200;
/// Of an explanation.
const MOST_CLAUSES: usize = 5;
