//! A trigger deployed at Pipedream listens with the account that acted when it was deployed.

use std::time::Duration;

use futures_util::{TryStreamExt, stream};

use crate::{
    Result,
    models::{Change, Intent, OrganizationId, Service, folded_name},
    store::{Hooks, Intents},
};

const AT_ONCE: usize = 8;

#[derive(Clone)]
pub struct AccountListeners {
    pub hooks: Hooks,
    pub intents: Intents,
}

impl AccountListeners {
    /// Has `settle` compare the service's deployed triggers with the account that acts after this time.
    pub(super) async fn compare_after(
        &self,
        organization: OrganizationId,
        service: &Service,
        time: Duration,
    ) -> Result<()> {
        let name = folded_name(&service.name);
        let hooks = self.hooks.of_automations(organization).await?;
        let listening = hooks.into_iter().filter(|hook| hook.listens_at(&name)).filter_map(|hook| hook.automation_id);
        let intents = listening.map(|automation_id| Ok(Change::AutomationTrigger { automation_id }));
        let open = |change| async move { self.intents.open(&Intent::new(organization, change, time)).await };
        stream::iter(intents).try_for_each_concurrent(AT_ONCE, open).await
    }
}
