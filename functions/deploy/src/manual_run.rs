//! Runs of automations that somebody asks for, and the runs there were.

use serde_json::{Map, Value};
use shared::{
    Result,
    automation::{RunStarter, RunView},
    http::{self, Reply, Request},
    models::{AutomationId, Member, OrganizationId},
    store::Automations,
};

/// Starts a run by hand, of an automation with any trigger.
pub(crate) async fn start(
    automations: &Automations,
    starter: &RunStarter,
    request: &Request,
    member: &Member,
    id: AutomationId,
) -> Result<Reply> {
    let key = http::idempotency_key(request)?;
    // No body at all is as good as `{}`.
    let empty = http::body(request).iter().all(u8::is_ascii_whitespace);
    let body = if empty { Ok(Value::Object(Map::new())) } else { http::json_body(request) };
    let (run, begun) = starter.start_by_hand(automations, member, id, body, key.as_deref()).await?;
    let view = RunView::from(run);
    if begun { Reply::accepted(&view) } else { Reply::ok(&view) }
}

/// `?limit=&cursor=`: the runs of an automation, newest first, without their steps.
pub(crate) async fn list(
    automations: &Automations,
    starter: &RunStarter,
    request: &Request,
    organization: OrganizationId,
    id: AutomationId,
) -> Result<Reply> {
    automations.get(organization, id).await?;
    let (limit, after) = http::page(request)?;
    let page = starter.queue.runs.page_of_automation(organization, id, after.as_ref(), limit).await?;
    Reply::ok(&page.map(RunView::from))
}
