//! Shows what happened in calls to members of the organization.
//!
//! - GET /api/{slug}/calls/{id}/executions?limit=&cursor=&status=: what became of the tools in a call, newest first, as
//!   `{items, next_cursor}`. A call that did not come in through us, which only VAPI knows, is known by its tools' runs.

use futures_util::join;
use shared::{
    Error, Result,
    http::{self, Access, Reply, Request},
    models::{CallId, OrganizationId, ShownExecution},
    store::{Calls, Executions, ExecutionsWanted},
};

pub struct Deps {
    pub access: Access,
    pub calls: Calls,
    pub executions: Executions,
}

pub async fn handle(deps: &Deps, request: Request) -> Result<Reply> {
    let path = http::path(&request);
    let ["api", slug, "calls", id, "executions"] = path.iter().map(String::as_str).collect::<Vec<_>>()[..] else {
        return Err(Error::NotFound("route"));
    };
    let organization = deps.access.member(&request, slug).await?.organization_id;
    let id: CallId = id.parse().map_err(|_not_an_id| Error::NotFound("call"))?;
    let wanted = http::history(&request)?;
    let (call, runs) = join!(deps.calls.find(&id), deps.executions.of_call(organization, &id, &wanted));
    let runs = runs?;
    let theirs = match call? {
        Some(call) => call.for_owner(organization).is_some(),
        None => !runs.items.is_empty() || has_runs(deps, organization, &id).await?,
    };
    if theirs { Reply::ok(&runs.map(ShownExecution::from)) } else { Err(Error::NotFound("call")) }
}

/// Whether any tool of the organization's ran in a call, whatever page of its runs is asked for.
async fn has_runs(deps: &Deps, organization: OrganizationId, call: &CallId) -> Result<bool> {
    let newest = ExecutionsWanted { limit: 1, after: None, status: None };
    Ok(!deps.executions.of_call(organization, call, &newest).await?.items.is_empty())
}
