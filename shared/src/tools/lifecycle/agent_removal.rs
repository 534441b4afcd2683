//! Removes an agent: its tools at VAPI, its attachments, then its row.
//!
//! The agent's lease is held throughout, so that no tool is attached meanwhile, and no phone number may come to ring it. After a
//! failure VAPI follows the remaining attachments, the agent is still listed, and a repetition resumes.
//!
//! Intents recorded before the removal have `settle` delete query tools left without an agent.

use futures_util::{future::try_join_all, join, try_join};

use super::{
    Attachments, SETTLING, ownership, release,
    settle::{close, nothing_changed, open, settle_now},
    sync::tool_ids,
};
use crate::{
    Deadline, Error, Result,
    models::{Agent, AgentId, Change, Intent, OrganizationId, PhoneNumber, ToolAttachment},
    store::{Lease, PhoneNumbers, REMOVED_AT_ONCE},
};

/// Phone numbers named in a refusal; there may be more.
const NAMED: usize = 10;

impl Attachments {
    /// Detaches all tools from an agent and removes it. The assistant stays at VAPI.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the organization has no such agent, [`Error::Conflict`] if phone numbers ring it.
    pub async fn remove_agent(
        &self,
        phone_numbers: &PhoneNumbers,
        organization: OrganizationId,
        agent: AgentId,
        deadline: Deadline,
    ) -> Result<()> {
        let (agent, lease) = self.agents.acquire(organization, agent, deadline.reserving(SETTLING)).await?;
        let removed = self.remove_leased(phone_numbers, &agent, &lease, deadline).await;
        if removed.is_err() {
            release(self.agents.end_removal(&lease)).await;
        }
        removed
    }

    async fn remove_leased(
        &self,
        phone_numbers: &PhoneNumbers,
        agent: &Agent,
        lease: &Lease,
        deadline: Deadline,
    ) -> Result<()> {
        let organization = agent.organization_id;
        let (numbers, rows) = try_join!(
            phone_numbers.of_agent(organization, agent.id),
            self.agent_tools.of_agent(organization, agent.id)
        )?;
        if !numbers.is_empty() {
            return Err(rung_by(&numbers));
        }
        // Without tools the deletion alone decides.
        let begun = async { Ok::<_, Error>(rows.is_empty() || self.agents.begin_removal(lease).await?) };
        let ids = tool_ids(&rows);
        let (begun, tools) = try_join!(begun, self.tools.get_all(organization, &ids, deadline))?;
        if !begun {
            return Err(rung_by(&phone_numbers.of_agent(organization, agent.id).await?));
        }
        let external: Vec<&str> = tools.iter().filter_map(|tool| tool.external_tool_id.as_deref()).collect();
        if external.is_empty() {
            self.remove_rows(agent, &rows, lease).await?;
            return self.agents.delete(organization, agent, lease).await;
        }
        let intent = |change| Intent::new(organization, change, ownership(deadline));
        let removal = intent(Change::DetachAllTools { agent_id: agent.id });
        let bases = tools.iter().filter_map(|tool| tool.automatic_for);
        let intents: Vec<Intent> = bases.map(|base| intent(Change::QueryTool { knowledge_base_id: base })).collect();
        let work = deadline.reserving(SETTLING);
        let (opened, model) = join!(
            try_join_all(intents.iter().chain([&removal]).map(|intent| open(&self.intents, intent))),
            self.assistants.model(agent, work),
        );
        opened?;
        let model = match model {
            Ok(model) => model,
            Err(error) => return nothing_changed(&self.intents, &removal, error).await,
        };
        let detached = async {
            if let Some(model) = model {
                self.assistants.correct(agent, &model, &[], &external, work).await?;
            }
            self.remove_rows(agent, &rows, lease).await
        };
        if let Err(error) = detached.await {
            settle_now(&self.intents, &removal, &error, self.settle_leased(agent, lease, &removal, deadline)).await;
            return Err(error);
        }
        // Both sides agree now: the rest concerns only our tables.
        let (removed, ()) = join!(self.agents.delete(organization, agent, lease), close(&self.intents, &removal));
        removed
    }

    async fn remove_rows(&self, agent: &Agent, rows: &[ToolAttachment], lease: &Lease) -> Result<()> {
        for page in tool_ids(rows).chunks(REMOVED_AT_ONCE) {
            self.agent_tools.remove(agent.organization_id, agent.id, page, lease).await?;
        }
        Ok(())
    }
}

fn rung_by(numbers: &[PhoneNumber]) -> Error {
    if numbers.is_empty() {
        // The index does not show it yet.
        return Error::Conflict("a phone number has just come to ring this agent; try again in a moment".into());
    }
    let named: Vec<&str> = numbers.iter().take(NAMED).map(|row| row.number.as_str()).collect();
    let more = if numbers.len() > NAMED { " and others" } else { "" };
    let named = named.join(", ");
    Error::Conflict(format!(
        "phone numbers ring this agent: {named}{more}; give them another agent or remove them first"
    ))
}
