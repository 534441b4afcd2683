//! Runs of an automation on request.

use serde_json::{Map, Value};

use crate::{
    Error, Result,
    automation::{Requested, RunCause, RunStarter},
    error::Problems,
    fields::{Fields, kind},
    idempotency::Key,
    models::{Automation, AutomationId, AutomationRun, AutomationStatus, Member, Role, RunId, RunTrigger},
    store::Automations,
};

/// Bytes of JSON; trigger data is stored in one item.
const LARGEST_TRIGGER_DATA: usize = 200_000;

/// `{"trigger_data"?, "version"?, "dry_run"?}`
struct Asked {
    trigger_data: Value,
    version: Option<u64>,
    dry_run: bool,
}

impl RunStarter {
    /// Starts an automation with any trigger. `body` is checked after the automation is found in the organization. A repeat with
    /// the same `key` returns the same run, and false.
    ///
    /// # Errors
    /// [`Error::Conflict`] if no version can run, or if `key` started a run with another body.
    pub async fn start_by_hand(
        &self,
        automations: &Automations,
        member: &Member,
        id: AutomationId,
        body: Result<Value>,
        key: Option<&str>,
    ) -> Result<(AutomationRun, bool)> {
        let automation = automations.get(member.organization_id, id).await?;
        let body = body?;
        let asked = read(&body)?;
        let version = version_to_run(automations, member, &automation, asked.version, asked.dry_run).await?;
        let cause_key = format!("request:{}", key.map_or_else(|| RunId::generate().to_string(), str::to_owned));
        let cause = RunCause {
            trigger: RunTrigger::Manual,
            key: &cause_key,
            trigger_data: &asked.trigger_data,
            event: None,
            scheduled_for: None,
            user: Some(&member.user_id),
            version: Some(version),
            dry_run: asked.dry_run,
            parent: None,
        };
        let requested = Requested { hash: key.map(|_| Key::new(&["run"], &body).as_str().to_owned()) };
        let (run, begun) = self.start_requested(&automation, &cause, &requested).await?;
        tracing::info!(run.id = %run.id, automation.id = %id, "a run was asked for");
        Ok((run, begun))
    }
}

/// The version to run: the active one, or a named one for a dry run or an administrator. A dry run without an active version uses
/// the newest.
pub(super) async fn version_to_run(
    automations: &Automations,
    member: &Member,
    automation: &Automation,
    named: Option<u64>,
    dry_run: bool,
) -> Result<u64> {
    if let Some(version) = named.filter(|version| automation.active_version != Some(*version)) {
        automations.version(automation.organization_id, automation.id, version).await?;
        if !dry_run {
            member.must_be(Role::Admin)?;
        }
        return Ok(version);
    }
    let active = (automation.status == AutomationStatus::Active).then_some(automation.active_version).flatten();
    match active {
        Some(version) => Ok(version),
        None if dry_run => Ok(automation.active_version.unwrap_or(automation.version)),
        None => {
            let status = automation.status.as_str();
            let problem =
                format!("the automation is {status}, so it cannot run; activate a version, or send \"dry_run\": true");
            Err(Error::Conflict(problem))
        }
    }
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
