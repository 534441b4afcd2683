//! POST /api/{slug}/tools: makes a tool.
//!
//! Body: a `ToolConfig` (its type's fields, `label`, `description`) with the flags `async`, `execute_on_call_start` and
//! `attach_to_agent`. Answer: 201 with the row of `tools`, secrets masked. A tool that agents can call is made at VAPI first; if anything
//! fails, nothing is left on either side.

use shared::{
    Error, Platform, Result,
    actions::ToolConfig,
    http::{self, Access, Reply, Request},
    lifecycle::{self, Lifecycle, References},
    platform,
};

pub struct Deps {
    pub access: Access,
    pub references: References,
    pub lifecycle: Lifecycle,
}

impl Deps {
    pub fn new(platform: &Platform) -> platform::Result<Self> {
        Ok(Self { access: platform.access()?, references: platform.references()?, lifecycle: platform.lifecycle()? })
    }
}

pub async fn handle(deps: &Deps, request: Request) -> Result<Reply> {
    let deadline = http::deadline(&request);
    let organization = deps.access.member(&request).await?.organization_id;
    let ["POST", "api", _, "tools"] = http::route(&request)[..] else {
        return Err(Error::NotFound("route"));
    };
    let mut config = ToolConfig::parse(&http::json_body(&request)?)?;
    deps.references.check(organization, &mut config, None, deadline).await?;
    Reply::created(&lifecycle::shown(deps.lifecycle.create(organization, &config, deadline).await?))
}
