//! The `toolIds` of assistants at VAPI.

use crate::{
    Deadline, Error, Result,
    accounts::Accounts,
    clients::{Vapi, vapi::AssistantModel},
    models::Agent,
};

#[derive(Clone)]
pub struct Assistants {
    vapi: Vapi,
    accounts: Accounts,
}

impl Assistants {
    pub fn new(vapi: Vapi, accounts: Accounts) -> Self {
        Self { vapi, accounts }
    }

    /// The assistant's model; `None` if VAPI has no such assistant.
    pub async fn model(&self, agent: &Agent, deadline: Deadline) -> Result<Option<AssistantModel>> {
        let account = self.accounts.vapi(agent.organization_id).await?;
        Ok(self.vapi.assistant_model(&account, &agent.external_assistant_id, deadline).await?)
    }

    /// As [`Assistants::model`], when there must be one.
    ///
    /// # Errors
    /// [`Error::Conflict`] if VAPI has no such assistant.
    pub(super) async fn existing_model(&self, agent: &Agent, deadline: Deadline) -> Result<AssistantModel> {
        let model = self.model(agent, deadline).await?;
        model.ok_or_else(|| Error::Conflict("VAPI no longer has the agent's assistant".into()))
    }

    /// Makes the `toolIds` hold all of `wanted` and none of the other `unwanted`, if they do not yet. `model` is what was read
    /// under the agent's lease, which is still held.
    pub(super) async fn correct(
        &self,
        agent: &Agent,
        model: &AssistantModel,
        wanted: &[&str],
        unwanted: &[&str],
        deadline: Deadline,
    ) -> Result<()> {
        let unwanted = unwanted.iter().filter(|id| !wanted.contains(id));
        let without = unwanted.fold(model.clone(), |model, id| model.without_tool(id));
        let corrected = wanted.iter().fold(without, |model, id| model.with_tool(id));
        if corrected.tool_ids() == model.tool_ids() {
            return Ok(());
        }
        let account = self.accounts.vapi(agent.organization_id).await?;
        Ok(self.vapi.set_assistant_model(&account, &agent.external_assistant_id, &corrected, deadline).await?)
    }

    /// Reads the model and corrects it, under the agent's lease. An assistant that is gone needs no change.
    pub(super) async fn compare(
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
