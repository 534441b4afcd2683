//! DELETE /api/{slug}/tools/{id}: deletes a tool everywhere.
//!
//! It is taken out of every agent's assistant, then deleted at VAPI, then in the tables with its attachments. Answer: 200
//! `{"status": "deleted"}`; 202 `{"status": "deleting", "agents_done", "agents_left"}` if there are more agents than time, and
//! the rest happens by itself (`settle` is woken). If VAPI fails on the way the deletion stops there; the problem names `agents_done` and
//! `agents_left`.

use shared::{
    Error, Platform, Result,
    http::{self, Access, Reply, Request},
    lifecycle::{Deleted, Lifecycle, Settling},
    models::ToolId,
    platform,
};

pub struct Deps {
    pub access: Access,
    pub lifecycle: Lifecycle,
    pub settling: Settling,
}

impl Deps {
    pub fn new(platform: &Platform) -> platform::Result<Self> {
        Ok(Self { access: platform.access()?, lifecycle: platform.deletion()?, settling: platform.settling()? })
    }
}

pub async fn handle(deps: &Deps, request: Request) -> Result<Reply> {
    let deadline = http::deadline(&request);
    let organization = deps.access.member(&request).await?.organization_id;
    let ["DELETE", "api", _, "tools", id] = http::route(&request)[..] else {
        return Err(Error::NotFound("route"));
    };
    let id: ToolId = http::id(id, "tool")?;
    match deps.lifecycle.delete(organization, id, deadline).await? {
        deleted @ Deleted::Deleted => Reply::ok(&deleted),
        deleting @ Deleted::Deleting { .. } => {
            deps.settling.wake("delete_tool").await;
            Reply::accepted(&deleting)
        }
    }
}
