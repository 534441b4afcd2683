//! Runs of automations that somebody asks for, and the runs there were.

use serde_json::{Map, Value};
use shared::{
    Error, Result,
    automation::{Requested, RunCause, RunStarter, RunView},
    error::Problems,
    fields::{Fields, kind},
    http::{self, Reply, Request},
    idempotency::Key,
    models::{Automation, AutomationId, AutomationStatus, Member, OrganizationId, Role, RunId, RunTrigger},
    store::Automations,
};

/// Bytes of what a run is started with, as JSON: it stands in one item.
const LARGEST_TRIGGER_DATA: usize = 200_000;

/// `{"trigger_data"?, "version"?, "dry_run"?}`
struct Asked {
    trigger_data: Value,
    version: Option<u64>,
    dry_run: bool,
}

/// Starts a run by hand, of an automation with any trigger.
pub(crate) async fn start(
    automations: &Automations,
    starter: &RunStarter,
    request: &Request,
    member: &Member,
    id: AutomationId,
) -> Result<Reply> {
    let organization = member.organization_id;
    let automation = automations.get(organization, id).await?;
    let key = http::idempotency_key(request)?;
    let body = body(request)?;
    let asked = read(&body)?;
    let version = version(automations, member, &automation, &asked).await?;
    let cause_key = format!("request:{}", key.clone().unwrap_or_else(|| RunId::generate().to_string()));
    let cause = RunCause {
        trigger: RunTrigger::Manual,
        key: &cause_key,
        trigger_data: &asked.trigger_data,
        event: None,
        scheduled_for: None,
        user: Some(&member.user_id),
        version: Some(version),
        dry_run: asked.dry_run,
    };
    let requested = Requested { hash: key.map(|_| Key::new(&["run"], &body).as_str().to_owned()) };
    let (run, begun) = starter.start_requested(&automation, &cause, &requested).await?;
    tracing::info!(run.id = %run.id, automation.id = %id, "a run was asked for");
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

/// Which version is to run: the active one, unless another is named, which is for a dry run or an administrator. A dry run of an
/// automation without an active version is one of its newest.
async fn version(automations: &Automations, member: &Member, automation: &Automation, asked: &Asked) -> Result<u64> {
    if let Some(version) = asked.version.filter(|version| automation.active_version != Some(*version)) {
        automations.version(automation.organization_id, automation.id, version).await?;
        if !asked.dry_run {
            member.must_be(Role::Admin)?;
        }
        return Ok(version);
    }
    let active = (automation.status == AutomationStatus::Active).then_some(automation.active_version).flatten();
    match active {
        Some(version) => Ok(version),
        None if asked.dry_run => Ok(automation.active_version.unwrap_or(automation.version)),
        None => {
            let status = automation.status.as_str();
            let problem = format!(
                "the automation is {status}, so it does nothing; activate a version, or send \"dry_run\": true"
            );
            Err(Error::Conflict(problem))
        }
    }
}

/// No body at all is as good as `{}`.
fn body(request: &Request) -> Result<Value> {
    let empty = http::body(request).iter().all(u8::is_ascii_whitespace);
    if empty { Ok(Value::Object(Map::new())) } else { http::json_body(request) }
}

fn read(body: &Value) -> Result<Asked> {
    let mut problems = Problems::default();
    let asked = Fields::of(body, "", &mut problems).map(|mut fields| {
        let trigger_data = match fields.get("trigger_data") {
            Some(value) if !value.is_object() => {
                fields.problem("trigger_data", format!("must be an object, not {}", kind(value)));
                Value::Null
            }
            Some(value) if value.to_string().len() > LARGEST_TRIGGER_DATA => {
                let problem = format!("must have at most {LARGEST_TRIGGER_DATA} bytes as JSON");
                fields.problem("trigger_data", problem);
                Value::Null
            }
            Some(value) => value.clone(),
            None => Value::Object(Map::new()),
        };
        let version = fields.whole("version", 1..=u32::MAX).map(u64::from);
        let dry_run = fields.boolean("dry_run", false);
        fields.finish();
        Asked { trigger_data, version, dry_run }
    });
    problems.into_result(asked)
}
