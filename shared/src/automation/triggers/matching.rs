//! Matches events against the filters of automations.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde_json::{Map, Value};

use crate::{
    Result,
    automation::{
        definition::{diagnostics::Diagnostics, steps::FILLED},
        expressions::{
            conditions::Condition,
            data::{Data, Lowered, is_date},
            work::{OverBound, Work},
        },
    },
    error::found,
    models::{Automation, AutomationId, EventWait, Timestamp},
    store::{Automations, OrganizationMembers, unreadable},
};

/// Bytes of cached variables; versions never change.
const MOST_REMEMBERED: usize = 8 << 20;
/// In place of [`FILLED`], which may be the name of a field of the event.
const HIDDEN: &str = "@filled";
/// Bytes of an entry besides its variables, about.
const OF_AN_ENTRY: usize = 200;

#[derive(Debug, Default)]
struct Remembered {
    variables: HashMap<(AutomationId, u64), Arc<Map<String, Value>>>,
    bytes: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Matched {
    Yes,
    No(String),
    /// Undecided: the comparison exceeds the allowed work.
    NotYet,
}

#[derive(Clone)]
pub struct EventFilters {
    pub automations: Automations,
    pub members: OrganizationMembers,
    variables: Arc<Mutex<Remembered>>,
}

impl EventFilters {
    pub fn new(automations: Automations, members: OrganizationMembers) -> Self {
        Self { automations, members, variables: Arc::default() }
    }

    /// Whether the event starts the automation.
    ///
    /// # Errors
    /// If a look-up failed, or the filter is unreadable; the match is undecided.
    pub(super) async fn check(&self, automation: &Automation, data: &Lowered<'_>, work: &Work) -> Result<Matched> {
        let Some(filter) = &automation.trigger_filter else { return Ok(Matched::Yes) };
        let condition = read(filter).ok_or_else(|| unreadable::<Automation>(&automation.id))?;
        if work.take(filter.len() + condition.cost_of_compiling()).is_err() {
            return Ok(Matched::NotYet);
        }
        let variables = match self.variables(automation).await? {
            Ok(variables) => variables,
            Err(gone) => return Ok(Matched::No(gone.to_owned())),
        };
        let person = match &automation.activated_by {
            Some(user) if filter.contains("user") || filter.contains("{{") || reads_dates(&condition) => {
                self.members.person(automation.organization_id, user).await?
            }
            _ => Value::Object(Map::new()),
        };
        let data = Data::of_trigger(&variables, data, &person, Timestamp::now());
        Ok(matched(&condition, &data, work))
    }

    async fn variables(&self, automation: &Automation) -> Result<Result<Arc<Map<String, Value>>, &'static str>> {
        let gone = |why| Ok(Err(why));
        let Some(version) = automation.active_version else { return gone("No version of it was activated.") };
        let key = (automation.id, version);
        if let Some(known) = self.remembered().variables.get(&key) {
            return Ok(Ok(known.clone()));
        }
        let Some(stored) = found(self.automations.version(automation.organization_id, automation.id, version).await)?
        else {
            return gone("Its active version was deleted.");
        };
        let Ok(definition) = serde_json::from_str::<Value>(&stored.definition) else {
            return gone("Its definition cannot be read, so nothing was run. Save the automation again.");
        };
        let variables = Arc::new(definition.get("variables").and_then(Value::as_object).cloned().unwrap_or_default());
        let bytes = OF_AN_ENTRY + serde_json::to_string(&variables).map_or(0, |text| text.len());
        let mut remembered = self.remembered();
        if remembered.bytes + bytes > MOST_REMEMBERED {
            *remembered = Remembered::default();
        }
        remembered.bytes += bytes;
        remembered.variables.insert(key, variables.clone());
        Ok(Ok(variables))
    }

    fn remembered(&self) -> MutexGuard<'_, Remembered> {
        self.variables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the event ends a wait. Paths of the filter lead into the event only.
///
/// # Errors
/// [`crate::Error::Unreadable`] for a filter of a newer program.
pub(super) fn holds_for_wait(wait: &EventWait, data: &Lowered<'_>, work: &Work) -> Result<Matched> {
    let Some(filter) = &wait.filter else { return Ok(Matched::Yes) };
    let filter = filter.replace(&format!("{{{{{FILLED}["), &format!("{{{{{HIDDEN}["));
    let filled = serde_json::from_str::<Value>(&wait.filled).ok();
    let (condition, filled) = read(&filter).zip(filled).ok_or_else(|| unreadable::<EventWait>(&wait.place))?;
    if work.take(filter.len() + condition.cost_of_compiling()).is_err() {
        return Ok(Matched::NotYet);
    }
    let variables = Map::from_iter([(HIDDEN.to_owned(), filled)]);
    let data = Data::of_trigger(&variables, data, &Value::Null, Timestamp::now());
    Ok(matched(&condition, &data, work))
}

fn reads_dates(condition: &Condition) -> bool {
    condition
        .clauses()
        .into_iter()
        .any(|clause| is_date(clause.path.first()) || clause.of_item.as_deref().is_some_and(reads_dates))
}

fn matched(condition: &Condition, data: &Data<'_>, work: &Work) -> Matched {
    match condition.explained(data, work) {
        Ok(explained) if explained.holds => Matched::Yes,
        Ok(explained) => Matched::No(format!("Its filter did not match: {}.", explained.reason())),
        Err(OverBound) => Matched::NotYet,
    }
}

/// A stored filter; `None` if any part is unreadable.
fn read(filter: &str) -> Option<Condition> {
    let filter: Value = serde_json::from_str(filter).ok()?;
    let mut diagnostics = Diagnostics::default();
    Condition::read(&filter, "/trigger_config/filters", &mut diagnostics).filter(|_| !diagnostics.has_errors())
}
