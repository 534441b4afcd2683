//! Deletes a tool: from every agent's assistant, then at VAPI, then from the tables.

use shared::{
    Result,
    described::{Schemas, json, reference},
    http::{Access, Answers, Asked, Id, Operation, Reply, operation},
    lifecycle::{Lifecycle, SettleWaker, ToolDeletion},
    models::ToolId,
    platform::Parts,
};

shared::routes!(Deps, "tools": delete_tool);

#[derive(Parts)]
pub struct Deps {
    pub access: Access,
    #[part(platform.deletion()?)]
    pub lifecycle: Lifecycle,
    pub settling: SettleWaker,
}

/// Delete a tool everywhere
///
/// It is taken out of the assistants of all agents that have it, then deleted at VAPI, then here with its attachments.
/// An error on the way stops it there; if agents were being changed, the problem names the agents done and the agents
/// left. The rest is done later automatically.
///
/// - 200: It is gone.
/// - 202: It has more agents than there was time for; the rest happens by itself.
#[operation(
    DELETE "/api/{slug}/tools/{id}",
    Admin,
    also(
        409 = DeletionConflict,
        500 = DeletionFault,
        502 = DeletionRefused,
        503 = DeletionUnavailable,
        504 = DeletionTimeout
    ),
    resource(Delete)
)]
async fn delete_tool(deps: &Deps, asked: &Asked<'_>, id: Id<ToolId>) -> Result<Deletion> {
    let deleted = deps.lifecycle.delete(asked.organization(), id.0, asked.deadline).await?;
    if matches!(deleted, ToolDeletion::Deleting { .. }) {
        deps.settling.wake("delete_tool").await;
    }
    Ok(Deletion(deleted))
}

/// 200 after the deletion, 202 if the rest happens in the background.
struct Deletion(ToolDeletion);

impl Answers for Deletion {
    fn reply(self) -> Result<Reply> {
        match self.0 {
            ToolDeletion::Deleted => Reply::ok(&self.0),
            ToolDeletion::Deleting { .. } => Reply::accepted(&self.0),
        }
    }

    fn describe(operation: &mut Operation, _: &mut Schemas) {
        operation.answers(
            200,
            "It is deleted.",
            json!({"type": "object", "additionalProperties": false,
            "required": ["status"], "properties": {"status": {"const": "deleted"}}}),
        );
        operation.answers(202, "It is accepted.", reference("Deletion"));
    }
}
