//! PATCH /api/{slug}/tools/{id}: edits a tool.
//!
//! Body: the fields of a `ToolConfig` that change, each replaced as a whole, and `name` if the model is to call it by another
//! one (a new label alone keeps the name). With `If-Match: <version>` (or `version` in the body) an edit of another version
//! than the one seen is a conflict. Answer: 200 with the row; 202 if it is saved and some agents are still being brought in
//! line, which happens by itself. VAPI is changed first; if that or writing the row fails, VAPI is made to follow the table.

use serde_json::Value;
use shared::{
    Error, Platform, Result,
    http::{self, Access, Reply, Request},
    lifecycle::{self, Lifecycle, References, Settling},
    models::ToolId,
    platform,
};

pub struct Deps {
    pub access: Access,
    pub references: References,
    pub lifecycle: Lifecycle,
    pub settling: Settling,
}

impl Deps {
    pub fn new(platform: &Platform) -> platform::Result<Self> {
        Ok(Self {
            access: platform.access()?,
            references: platform.references()?,
            lifecycle: platform.lifecycle()?,
            settling: platform.settling()?,
        })
    }
}

pub async fn handle(deps: &Deps, request: Request) -> Result<Reply> {
    let deadline = http::deadline(&request);
    let organization = deps.access.member(&request).await?.organization_id;
    let ["PATCH", "api", _, "tools", id] = http::route(&request)[..] else {
        return Err(Error::NotFound("route"));
    };
    let id: ToolId = http::id(id, "tool")?;
    let mut changes = http::json_body(&request)?;
    let seen = seen_version(&request, &mut changes)?;
    let updated = deps.lifecycle.update(&deps.references, organization, id, seen, &changes, deadline).await?;
    let tool = lifecycle::shown(updated.tool);
    if updated.settled {
        return Reply::ok(&tool);
    }
    deps.settling.wake("update_tool").await;
    Reply::accepted(&tool)
}

/// The version the editor saw: of the header, quoted as an entity tag or not, or of the body.
fn seen_version(request: &Request, changes: &mut Value) -> Result<Option<u64>> {
    let of_body =
        changes.as_object_mut().and_then(|changes| changes.remove("version")).filter(|version| !version.is_null());
    if let Some(tag) = request.headers().get("if-match").filter(|tag| tag.as_bytes() != b"*") {
        let number =
            tag.to_str().ok().and_then(|tag| tag.trim().trim_start_matches("W/").trim_matches('"').parse().ok());
        return number
            .map(Some)
            .ok_or_else(|| Error::invalid("If-Match", "must be the version of the tool that was read"));
    }
    match of_body {
        None => Ok(None),
        Some(version) => version
            .as_u64()
            .map(Some)
            .ok_or_else(|| Error::invalid("version", "must be the version of the tool that was read")),
    }
}
