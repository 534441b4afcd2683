//! Attaches knowledge bases to agents, and detaches them.

use serde::Serialize;
use shared::{
    Result,
    declared::Body,
    described::Described,
    http::{Asked, Id, Made, Sent, Shown, operation},
    lifecycle::{Attached, QueryToolStatus, shown},
    models::{AgentId, KnowledgeBaseId, Tool, ToolAttachment, ToolId},
};

use crate::Deps;

#[derive(Body)]
pub(crate) struct BaseToAttach {
    knowledge_base_id: KnowledgeBaseId,
}

#[derive(Body)]
pub(crate) struct BaseToDetach {
    knowledge_base_id: KnowledgeBaseId,
}

#[derive(Serialize, Described)]
pub(crate) struct AttachedKnowledgeView {
    tool: Tool,
    attachment: ToolAttachment,
}

#[derive(Serialize, Described)]
pub(crate) struct DetachedKnowledgeView {
    agent_id: AgentId,
    knowledge_base_id: KnowledgeBaseId,
    tool_id: ToolId,
    #[schema(r#const = true)]
    detached: bool,
    /// The tool's state: other agents have it, it is deleted, or its deletion follows automatically.
    query_tool: QueryToolStatus,
}

/// Give a knowledge base to an agent
///
/// The agent gets the base's query tool, which is made when the base is attached for the first time and is the same for all
/// agents. Doing it again changes nothing. If it fails, no tool is left that no agent has.
///
/// - 200: It was attached before.
/// - 201: It is attached now.
///
/// ```json,base
/// {"knowledge_base_id": "0f1e2d3c-4b5a-4697-8788-99aabbccddee"}
/// ```
#[operation(
    POST "/api/{slug}/agents/{id}/knowledge-bases/attach", Admin, also(409, 502, 504), resource(KnowledgeAttach)
)]
pub(crate) async fn attach_knowledge_base(
    deps: &Deps,
    asked: &Asked<'_>,
    agent: Id<AgentId>,
    body: Sent<BaseToAttach>,
) -> Result<Made<AttachedKnowledgeView>> {
    let base = body.read()?.knowledge_base_id;
    let attached = deps.lifecycle.attach_knowledge_base(asked.organization(), agent.0, base, asked.deadline);
    let (tool, attachment, attached) = attached.await?;
    let attachment = AttachedKnowledgeView { tool: shown(tool), attachment };
    Ok(match attached {
        Attached::New => Made::New(attachment),
        Attached::Existing => Made::There(attachment),
    })
}

/// Take a knowledge base from an agent
///
/// The agent loses the base's query tool. The tool is deleted when no other agent has it; the knowledge base stays, and so do
/// query tools that somebody made over it. If it fails on the way, the rest happens by itself.
///
/// - 200: It is no longer attached.
///
/// ```json,base
/// {"knowledge_base_id": "0f1e2d3c-4b5a-4697-8788-99aabbccddee"}
/// ```
#[operation(
    POST "/api/{slug}/agents/{id}/knowledge-bases/detach", Admin, also(409, 502, 504), resource(KnowledgeDetach)
)]
pub(crate) async fn detach_knowledge_base(
    deps: &Deps,
    asked: &Asked<'_>,
    agent: Id<AgentId>,
    body: Sent<BaseToDetach>,
) -> Result<Shown<DetachedKnowledgeView>> {
    let knowledge_base_id = body.read()?.knowledge_base_id;
    let (organization, deadline) = (asked.organization(), asked.deadline);
    let detached = deps.lifecycle.detach_knowledge_base(organization, agent.0, knowledge_base_id, deadline).await?;
    Ok(Shown(DetachedKnowledgeView {
        agent_id: agent.0,
        knowledge_base_id,
        tool_id: detached.tool_id,
        detached: true,
        query_tool: detached.query_tool,
    }))
}
