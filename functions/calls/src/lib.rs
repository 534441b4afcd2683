//! Shows calls and what happened in them to members of the organization, and deletes them; is told by VAPI how a call goes on.
//!
//! - GET /api/{slug}/calls?limit=&cursor=: the calls that came in through us, newest first, as `{items, next_cursor}`.
//! - GET /api/{slug}/calls/{id}: a call and its timeline, from Twilio's request to its end (`timeline.rs`).
//! - GET /api/{slug}/calls/{id}/executions?limit=&cursor=&status=: what became of the tools in a call, newest first, as
//!   `{items, next_cursor}`. A call that did not come in through us, which only VAPI knows, is known by the executions of its tools.
//! - DELETE /api/{slug}/calls/{id}: deletes a call and the executions in it; for owners and admins. What a live call does
//!   afterwards is written down anew.
//! - POST /api/vapi/events: VAPI's server messages, let in by the bearer of VAPI's credential (`events.rs`).

mod events;
mod timeline;
mod view;

use futures_util::join;
use shared::{
    Error, Platform, Result,
    accounts::Accounts,
    http::{self, Access, Reply, Request},
    models::{CallId, Execution, ExecutionView, OrganizationId},
    platform,
    store::{Calls, Cursor, Erasure, ExecutionFilter, Executions},
};

use crate::{
    timeline::timeline,
    view::{CallView, CallWithTimeline},
};

/// Runs that a timeline is made of, the newest ones: this many pages of this many.
const MOST_PAGES: usize = 5;
const PAGE: i32 = 200;

pub struct Deps {
    pub access: Access,
    pub calls: Calls,
    pub executions: Executions,
    pub erasure: Erasure,
    /// For the bearer of VAPI's credential.
    pub accounts: Accounts,
}

impl Deps {
    pub fn new(platform: &Platform) -> platform::Result<Self> {
        let database = platform.database()?;
        Ok(Self {
            access: platform.access()?,
            calls: Calls::new(database),
            executions: Executions::new(database),
            erasure: platform.erasure()?,
            accounts: platform.accounts()?,
        })
    }
}

pub async fn handle(deps: &Deps, request: Request) -> Result<Reply> {
    if let ["POST", "api", "vapi", "events"] = http::route(&request)[..] {
        return events::take(deps, &request).await;
    }
    let member = deps.access.member(&request).await?;
    let organization = member.organization_id;
    match http::route(&request)[..] {
        ["GET", "api", _, "calls"] => list(deps, &request, organization).await,
        ["GET", "api", _, "calls", id] => show(deps, organization, http::id(id, "call")?).await,
        ["DELETE", "api", _, "calls", id] => {
            let id = http::id(id, "call")?;
            deps.erasure.call(organization, &id, http::deadline(&request)).await?;
            tracing::info!(call.id = %id, "a call was deleted");
            Ok(Reply::no_content())
        }
        ["GET", "api", _, "calls", id, "executions"] => {
            executions(deps, &request, organization, http::id(id, "call")?).await
        }
        _ => Err(Error::NotFound("route")),
    }
}

async fn list(deps: &Deps, request: &Request, organization: OrganizationId) -> Result<Reply> {
    let (limit, after) = http::page(request)?;
    let page = deps.calls.page(organization, after.as_ref(), limit).await?;
    Reply::ok(&page.map(CallView::from))
}

async fn show(deps: &Deps, organization: OrganizationId, id: CallId) -> Result<Reply> {
    let (call, runs) = join!(deps.calls.find(&id), all_executions(deps, organization, &id));
    let (runs, complete) = runs?;
    let call = match call? {
        Some(call) => Some(call.for_owner(organization).ok_or(Error::NotFound("call"))?),
        None if runs.is_empty() => return Err(Error::NotFound("call")),
        None => None,
    };
    let timeline = timeline(call.as_ref(), &runs);
    let call = call.map_or_else(|| CallView::from_executions(id), CallView::from);
    Reply::ok(&CallWithTimeline { call, timeline, timeline_complete: complete })
}

async fn executions(deps: &Deps, request: &Request, organization: OrganizationId, id: CallId) -> Result<Reply> {
    let wanted = http::history(request)?;
    let (call, runs) = join!(deps.calls.find(&id), deps.executions.of_call(organization, &id, &wanted));
    let runs = runs?;
    let theirs = match call? {
        Some(call) => call.for_owner(organization).is_some(),
        None => !runs.items.is_empty() || has_executions(deps, organization, &id).await?,
    };
    if theirs { Reply::ok(&runs.map(ExecutionView::from)) } else { Err(Error::NotFound("call")) }
}

/// Whether any tool of the organization's ran in a call, whatever page of its executions is asked for.
async fn has_executions(deps: &Deps, organization: OrganizationId, call: &CallId) -> Result<bool> {
    let newest = ExecutionFilter { limit: 1, after: None, status: None };
    Ok(!deps.executions.of_call(organization, call, &newest).await?.items.is_empty())
}

/// The executions in a call, newest first, and whether these are all.
async fn all_executions(deps: &Deps, organization: OrganizationId, call: &CallId) -> Result<(Vec<Execution>, bool)> {
    let mut wanted = ExecutionFilter { limit: PAGE, after: None, status: None };
    let mut runs = Vec::new();
    for _ in 0..MOST_PAGES {
        let page = deps.executions.of_call(organization, call, &wanted).await?;
        runs.extend(page.items);
        match page.next_cursor {
            Some(next) => wanted.after = Some(Cursor::parse(&next)?),
            None => return Ok((runs, true)),
        }
    }
    Ok((runs, false))
}
