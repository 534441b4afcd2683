//! DELETE /api/{slug}/tools/{id}: deletes a tool everywhere.
//!
//! It is taken out of every agent's assistant, then deleted at VAPI, then in the tables with its attachments. Answer: 200
//! `{"status": "deleted"}`; 202 `{"status": "deleting", "agents_done", "agents_left"}` if there are more agents than time, and
//! the rest happens by itself (`settle` is woken). If VAPI fails on the way the deletion stops there; the problem names `agents_done` and
//! `agents_left`.

use shared::{
    Error, Result,
    http::{self, Access, Reply, Request},
    lifecycle::{Deleted, Lifecycle, Settling},
    models::ToolId,
};

pub struct Deps {
    pub access: Access,
    pub lifecycle: Lifecycle,
    pub settling: Settling,
}

pub async fn handle(deps: &Deps, request: Request) -> Result<Reply> {
    let deadline = http::deadline(&request);
    let path = http::path(&request);
    let ["api", slug, "tools", id] = path.iter().map(String::as_str).collect::<Vec<_>>()[..] else {
        return Err(Error::NotFound("route"));
    };
    let organization = deps.access.member(&request, slug).await?.organization_id;
    let id: ToolId = id.parse().map_err(|_not_an_id| Error::NotFound("tool"))?;
    match deps.lifecycle.delete(organization, id, deadline).await? {
        deleted @ Deleted::Deleted => Reply::ok(&deleted),
        deleting @ Deleted::Deleting { .. } => {
            deps.settling.wake("delete_tool").await;
            Reply::accepted(&deleting)
        }
    }
}
