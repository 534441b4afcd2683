//! The tools of assistants at VAPI.

use futures_util::{StreamExt, TryStreamExt, stream};

use crate::{
    Deadline, Error, Result,
    accounts::Accounts,
    clients::{
        Vapi,
        vapi::{self, AssistantModel},
    },
    models::{Agent, OrganizationId},
};

/// Concurrent requests; VAPI limits the rate.
const AT_ONCE: usize = 8;

#[derive(Clone)]
pub struct Assistants {
    pub(crate) vapi: Vapi,
    pub(crate) accounts: Accounts,
}

impl Assistants {
    pub async fn model(&self, agent: &Agent, deadline: Deadline) -> Result<Option<AssistantModel>> {
        let account = self.accounts.vapi(agent.organization_id).await?;
        Ok(self.vapi.assistant_model(&account, &agent.external_assistant_id, deadline).await?)
    }

    /// Like [`Assistants::model`], for an assistant that must exist.
    ///
    /// # Errors
    /// [`Error::Conflict`] if VAPI has no such assistant.
    pub(super) async fn existing_model(&self, agent: &Agent, deadline: Deadline) -> Result<AssistantModel> {
        let model = self.model(agent, deadline).await?;
        model.ok_or_else(|| Error::Conflict("VAPI no longer has the agent's assistant".into()))
    }

    /// Adds all `wanted` tools to the assistant and removes the `unwanted` ones, if necessary. `model` was read under the
    /// agent's lease, which is still held.
    pub(super) async fn correct(
        &self,
        agent: &Agent,
        model: &AssistantModel,
        wanted: &[&str],
        unwanted: &[&str],
        deadline: Deadline,
    ) -> Result<()> {
        let unwanted = unwanted.iter().filter(|id| !wanted.contains(id));
        let mut corrected = unwanted.fold(model.clone(), |model, id| model.without_tool(id));
        for id in wanted {
            // An assistant that pins versions gets the latest, which our table describes.
            let version = if model.pins_versions() { self.latest_version(agent, id, deadline).await? } else { None };
            corrected = corrected.with_tool(id, version.as_deref());
        }
        if corrected == *model {
            return Ok(());
        }
        let account = self.accounts.vapi(agent.organization_id).await?;
        Ok(self.vapi.set_assistant_model(&account, &agent.external_assistant_id, &corrected, deadline).await?)
    }

    async fn latest_version(&self, agent: &Agent, tool: &str, deadline: Deadline) -> Result<Option<String>> {
        let account = self.accounts.vapi(agent.organization_id).await?;
        let tool = self.vapi.tool(&account, tool, deadline).await?;
        Ok(tool.as_ref().and_then(vapi::latest_version).map(str::to_owned))
    }

    pub(super) async fn has_tool(&self, organization: OrganizationId, id: &str, deadline: Deadline) -> Result<bool> {
        let account = self.accounts.vapi(organization).await?;
        Ok(self.vapi.tool(&account, id, deadline).await?.is_some())
    }

    /// The tools among `ids` that VAPI no longer has. One request covers the account's newest tools; the others take one each.
    pub(super) async fn dead(
        &self,
        organization: OrganizationId,
        ids: Vec<String>,
        deadline: Deadline,
    ) -> Result<Vec<String>> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let account = self.accounts.vapi(organization).await?;
        let newest = self.vapi.newest_tool_ids(&account, deadline).await?;
        let older: Vec<String> = ids.into_iter().filter(|id| !newest.contains(id)).collect();
        let asked = stream::iter(older).map(|id| {
            let (vapi, account) = (&self.vapi, &account);
            async move {
                let found = vapi.tool(account, &id, deadline).await;
                found.map(|found| (id, found.is_some()))
            }
        });
        let asked: Vec<_> = asked.buffered(AT_ONCE).try_collect().await?;
        Ok(asked.into_iter().filter(|(_, present)| !present).map(|(id, _)| id).collect())
    }

    /// Reads and corrects the model under the agent's lease. A missing assistant needs no change.
    pub(super) async fn correct_under_lease(
        &self,
        agent: &Agent,
        wanted: &[&str],
        unwanted: &[&str],
        deadline: Deadline,
    ) -> Result<()> {
        match self.model(agent, deadline).await? {
            Some(model) => self.correct(agent, &model, wanted, unwanted, deadline).await,
            None => Ok(()),
        }
    }
}
