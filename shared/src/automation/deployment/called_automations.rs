//! Looks up the automations that a definition runs, at every depth.

use std::collections::{BTreeSet, HashMap};

use futures_util::future::{BoxFuture, FutureExt};

use crate::{
    Result,
    automation::{DEEPEST_CALLS, Deployment, definition::Definition, validation::known::CalledAutomation},
    error::found,
    models::{Automation, AutomationId, AutomationStatus, OrganizationId},
};

/// Automations that one check reads.
const MOST_READ: usize = 100;

/// Ids and names from the checked automation down to the current one.
type Way = Vec<(AutomationId, String)>;

/// An automation and the ids that its actions run; `None` if the organization has no such automation.
type ReadAutomation = Option<(Automation, BTreeSet<AutomationId>)>;

/// The look-up of one check: each row is read once.
struct Look<'a> {
    deployment: &'a Deployment,
    organization: OrganizationId,
    read: HashMap<AutomationId, ReadAutomation>,
}

impl Deployment {
    /// The state of each automation that `definition` runs; `own` is the automation of the definition.
    pub(super) async fn called_automations(
        &self,
        organization: OrganizationId,
        own: AutomationId,
        definition: &Definition,
    ) -> Result<HashMap<AutomationId, CalledAutomation>> {
        let mut look = Look { deployment: self, organization, read: HashMap::new() };
        let mut called = HashMap::new();
        for id in called_ids(definition) {
            let way = vec![(own, definition.name.clone())];
            called.insert(id, look.called(id, way).await?);
        }
        Ok(called)
    }
}

impl Look<'_> {
    fn called(&mut self, id: AutomationId, mut way: Way) -> BoxFuture<'_, Result<CalledAutomation>> {
        async move {
            let names = |way: Way| way.into_iter().map(|(_, name)| name).collect();
            if let Some((_, name)) = way.iter().find(|(before, _)| *before == id).cloned() {
                way.push((id, name));
                return Ok(CalledAutomation::InCircle { names: names(way) });
            }
            let Some((automation, inner)) = self.read(id).await? else { return Ok(CalledAutomation::NotFound) };
            way.push((id, automation.name.clone()));
            if way.len() > DEEPEST_CALLS + 1 || self.read.len() > MOST_READ {
                return Ok(CalledAutomation::TooDeep { names: names(way) });
            }
            for inner in inner {
                let found = self.called(inner, way.clone()).await?;
                if matches!(found, CalledAutomation::InCircle { .. } | CalledAutomation::TooDeep { .. }) {
                    return Ok(found);
                }
            }
            let is_active = automation.status == AutomationStatus::Active && automation.active_version.is_some();
            Ok(if is_active { CalledAutomation::Here } else { CalledAutomation::Inactive { name: automation.name } })
        }
        .boxed()
    }

    async fn read(&mut self, id: AutomationId) -> Result<ReadAutomation> {
        if let Some(read) = self.read.get(&id) {
            return Ok(read.clone());
        }
        let automations = &self.deployment.automations;
        let read = match found(automations.get(self.organization, id).await)? {
            Some(automation) => {
                // Without an active version the newest one shows a circle early.
                let number = automation.active_version.unwrap_or(automation.version);
                let version = found(automations.version(self.organization, id, number).await)?;
                // A version of a newer program is refused when it runs.
                let definition = version.and_then(|version| Definition::stored(&version).ok());
                Some((automation, definition.as_ref().map(called_ids).unwrap_or_default()))
            }
            None => None,
        };
        self.read.insert(id, read.clone());
        Ok(read)
    }
}

fn called_ids(definition: &Definition) -> BTreeSet<AutomationId> {
    definition.called_automations().into_iter().filter_map(|(_, id)| id).collect()
}
