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

    /// Writes a changed model. The agent's lease is held.
    pub(super) async fn write(&self, agent: &Agent, model: &AssistantModel, deadline: Deadline) -> Result<()> {
        let account = self.accounts.vapi(agent.organization_id).await?;
        Ok(self.vapi.set_assistant_model(&account, &agent.external_assistant_id, model, deadline).await?)
    }

    /// Makes the `toolIds` hold `wanted` and none of `unwanted`, from what they are now. The agent's lease is held. False: the
    /// assistant is gone, so there is nothing to hold anything.
    pub(super) async fn correct(
        &self,
        agent: &Agent,
        wanted: Option<&str>,
        unwanted: &[&str],
        deadline: Deadline,
    ) -> Result<bool> {
        let Some(model) = self.model(agent, deadline).await? else { return Ok(false) };
        let mut corrected = model.clone();
        for id in unwanted.iter().filter(|id| Some(**id) != wanted && model.tool_ids().contains(id)) {
            corrected = corrected.without_tool(id);
        }
        if let Some(id) = wanted.filter(|id| !model.tool_ids().contains(id)) {
            corrected = corrected.with_tool(id);
        }
        if corrected != model {
            self.write(agent, &corrected, deadline).await?;
        }
        Ok(true)
    }
}
