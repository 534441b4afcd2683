//! Finishing or undoing what a crash or an outage left open.

use std::time::Duration;

use serde::Serialize;

use super::{Lifecycle, ownership};
use crate::{
    Deadline, Error, Result, error,
    models::{AgentId, AgentTool, Change, Intent, IntentId, OrganizationId, Timestamp, ToolId, ToolName},
    store::unreadable,
};

/// What a run of `settle` did.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    pub settled: Vec<Settled>,
    /// Still open; the next run tries again.
    pub left: Vec<Settled>,
    /// Some of it is open only because time ran out.
    #[serde(skip)]
    pub unfinished: bool,
}

/// One intent, and what became of it.
#[derive(Debug, Serialize)]
pub struct Settled {
    pub intent: IntentId,
    pub change: &'static str,
    pub outcome: String,
}

/// The time one intent gets in one run; what is left then goes on in the next.
const ONE: Duration = Duration::from_secs(25);

/// How an intent was settled, in a word or two for the report.
type Outcome = Result<Progress>;

enum Progress {
    Settled(&'static str),
    /// There is more to do than there was time for.
    GoesOn(&'static str),
}

use Progress::{GoesOn, Settled as Done};

impl Lifecycle {
    /// Settles every abandoned intent, one after the other, while there is time.
    pub async fn settle(&self, deadline: Deadline) -> Result<Report> {
        let mut report = Report::default();
        let mut abandoned = self.intents.abandoned().await?;
        // Whether a query tool still has an agent shows when the attachments are settled.
        abandoned.sort_by_key(|intent| matches!(intent.change, Change::QueryTool { .. }));
        for intent in abandoned {
            let (change, id) = (intent.change.as_str(), intent.id);
            if deadline.remaining() < super::UNDO {
                report.unfinished = true;
                report.left.push(Settled { intent: id, change, outcome: "no time left".into() });
                continue;
            }
            let ours = intent.change != Change::Unknown;
            if ours && !self.intents.take_over(&intent, Timestamp::now().plus(ownership(deadline))).await? {
                continue;
            }
            // Shorter than a lease: what it takes for one change must not run out on it.
            match Box::pin(self.settle_one(&intent, deadline.at_most(ONE))).await {
                Ok(GoesOn(outcome)) => {
                    self.intents.leave(id).await?;
                    report.unfinished = true;
                    report.left.push(Settled { intent: id, change, outcome: outcome.into() });
                }
                Ok(Done(outcome)) => {
                    self.intents.close(id).await?;
                    tracing::info!(intent.id = %id, change, "settled: {outcome}");
                    report.settled.push(Settled { intent: id, change, outcome: outcome.into() });
                }
                Err(error) => {
                    tracing::error!(intent.id = %id, change, "could not be settled: {}", error::chain(&error));
                    report.left.push(Settled { intent: id, change, outcome: error.to_string() });
                }
            }
        }
        Ok(report)
    }

    async fn settle_one(&self, intent: &Intent, deadline: Deadline) -> Outcome {
        let organization = intent.organization_id;
        match &intent.change {
            Change::CreateTool { tool_id, name } => self.settle_creation(organization, *tool_id, name, deadline).await,
            Change::UpdateTool { tool_id, name } => {
                self.settle_update(organization, *tool_id, name.as_ref(), deadline).await
            }
            Change::DeleteTool { tool_id } => self.settle_deletion(organization, *tool_id, intent, deadline).await,
            Change::AttachTool { agent_id, tool_id, external_tool_id } => {
                self.settle_attachment(organization, (*agent_id, *tool_id), external_tool_id, deadline).await
            }
            Change::DetachTool { agent_id, tool_id, external_tool_id } => {
                self.settle_detachment(organization, (*agent_id, *tool_id), external_tool_id, deadline).await
            }
            Change::QueryTool { knowledge_base_id } => {
                self.settle_query_tool(organization, *knowledge_base_id, deadline).await.map(Done)
            }
            Change::StoreSecret { secret, of } => self.secrets.settle(organization, secret, *of).await.map(Done),
            Change::Unknown => Err(unreadable::<Intent>(intent.id)),
        }
    }

    /// A row closes its intent in the same transaction; so here there is none, and nothing may be left at VAPI.
    async fn settle_creation(
        &self,
        organization: OrganizationId,
        tool: ToolId,
        name: &ToolName,
        deadline: Deadline,
    ) -> Outcome {
        match self.tools.get(organization, tool).await {
            Ok(_) => return Ok(Done("the tool is there")),
            Err(Error::NotFound(_)) => {}
            Err(error) => return Err(error),
        }
        let strays = self.external.delete_strays(organization, tool, None, deadline).await?;
        self.tools.release_name(organization, name, tool).await?;
        Ok(Done(if strays.is_empty() { "nothing was left at VAPI" } else { "the tool was deleted at VAPI" }))
    }

    /// The row is the truth: VAPI's tool is made to say the same, and the agents are brought in line.
    async fn settle_update(
        &self,
        organization: OrganizationId,
        tool: ToolId,
        new_name: Option<&ToolName>,
        deadline: Deadline,
    ) -> Outcome {
        let (mut tool, lease) = match self.tools.lock(organization, tool, deadline).await {
            Ok(locked) => locked,
            Err(Error::NotFound(_)) => return Ok(Done("the tool was deleted since")),
            Err(error) => return Err(error),
        };
        let settled = async {
            if tool.attach_to_agent {
                let (external, data) = self.external.ensure(&tool, deadline).await?;
                if tool.external_tool_id.as_ref() != Some(&external) {
                    (tool.external_tool_id, tool.data) = (Some(external), data);
                    let name = tool.name.clone();
                    self.tools.replace(&mut tool, &name, &lease).await?;
                }
            }
            let kept = tool.external_tool_id.clone();
            let strays = self.external.strays(organization, tool.id, kept.as_deref(), deadline).await?;
            let former: Vec<&str> = strays.iter().map(String::as_str).collect();
            let aligned = self.attachments.align(&tool, &former, deadline).await?;
            if let Some(error) = aligned.error {
                return Err(error);
            }
            if !aligned.left.is_empty() {
                return Ok(GoesOn("the tool has more agents than there is time; it goes on"));
            }
            self.external.delete_strays(organization, tool.id, kept.as_deref(), deadline).await?;
            if let Some(name) = new_name.filter(|name| **name != tool.name) {
                self.tools.release_name(organization, name, tool.id).await?;
            }
            Ok(Done("VAPI and the agents follow the table"))
        }
        .await;
        self.release(lease).await;
        settled
    }

    async fn settle_deletion(
        &self,
        organization: OrganizationId,
        tool: ToolId,
        intent: &Intent,
        deadline: Deadline,
    ) -> Outcome {
        let (tool, lease) = match self.tools.lock(organization, tool, deadline).await {
            Ok(locked) => locked,
            Err(Error::NotFound(_)) => return Ok(Done("the tool is gone")),
            Err(error) => return Err(error),
        };
        match Box::pin(self.delete_locked(&tool, &lease, intent, deadline)).await {
            Ok(super::Deleted::Deleted) => Ok(Done("the tool was deleted")),
            Ok(super::Deleted::Deleting { .. }) => {
                self.release(lease).await;
                Ok(GoesOn("the deletion has more agents than there is time; it goes on"))
            }
            Err(error) => {
                self.release(lease).await;
                Err(error)
            }
        }
    }

    /// The row decides whether the tool belongs into the assistant.
    async fn settle_attachment(
        &self,
        organization: OrganizationId,
        (agent, tool): (AgentId, ToolId),
        external: &str,
        deadline: Deadline,
    ) -> Outcome {
        let attachments = &self.attachments;
        let (agent, lease) = match attachments.agents.lock(organization, agent, deadline).await {
            Ok(locked) => locked,
            Err(Error::NotFound(_)) => return Ok(Done("the agent was removed since")),
            Err(error) => return Err(error),
        };
        let settled = async {
            let row = attachments.agent_tools.find(organization, agent.id, tool).await?;
            let attached = row.is_some_and(|row| row.is_vapi_attached);
            let wanted = attached.then_some(external);
            attachments.assistants.correct(&agent, wanted, &[external], deadline).await?;
            Ok(Done(if attached { "the tool is attached" } else { "the attachment was undone" }))
        }
        .await;
        attachments.release(lease).await;
        settled
    }

    async fn settle_detachment(
        &self,
        organization: OrganizationId,
        (agent, tool): (AgentId, ToolId),
        external: &str,
        deadline: Deadline,
    ) -> Outcome {
        let attachments = &self.attachments;
        let (agent, lease) = match attachments.agents.lock(organization, agent, deadline).await {
            Ok(locked) => locked,
            Err(Error::NotFound(_)) => return Ok(Done("the agent was removed since")),
            Err(error) => return Err(error),
        };
        let corrected = attachments.assistants.correct(&agent, None, &[external], deadline).await;
        let detached = match corrected {
            Ok(_) => {
                let row = AgentTool::new(organization, agent.id, tool, true);
                attachments.agent_tools.detach(&row, &lease, None).await
            }
            Err(error) => Err(error),
        };
        if detached.is_err() {
            attachments.release(lease).await;
        }
        detached.map(|()| Done("the tool was detached"))
    }
}
