//! Runs of an automation on request.

use serde_json::{Map, Value};

use crate::{
    Error, Result,
    automation::{RunCause, RunStarter},
    declared::{self, Body, Given, Whole},
    fields::{Fields, kind},
    idempotency::Key,
    models::{Automation, AutomationId, AutomationRun, AutomationStatus, Member, Role, RunId, RunTrigger},
    store::Automations,
};

/// Bytes of JSON; trigger data is stored in one item.
const LARGEST_TRIGGER_DATA: usize = 200_000;

/// A run that is started by hand.
#[derive(Debug, Body)]
pub struct ManualRun {
    /// Data in place of the trigger's, at most 200 000 bytes as JSON.
    trigger_data: Option<TriggerData>,
    version: Option<Whole<1, { u32::MAX }>>,
    #[schema(default = false)]
    dry_run: Option<bool>,
}

#[derive(Debug)]
pub struct TriggerData(Value);

crate::described!(TriggerData => {"type": "object"});

impl Given for TriggerData {
    fn read(fields: &mut Fields<'_>, name: &'static str) -> Option<Self> {
        let value = fields.get(name)?;
        if !value.is_object() {
            fields.problem(name, format!("must be an object, not {}", kind(value)));
        } else if value.to_string().len() > LARGEST_TRIGGER_DATA {
            fields.problem(name, format!("must have at most {LARGEST_TRIGGER_DATA} bytes as JSON"));
        }
        Some(Self(value.clone()))
    }
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
        let ManualRun { trigger_data, version, dry_run } = declared::read(&body, |_, _| ())?;
        let trigger_data = trigger_data.map_or_else(|| Value::Object(Map::new()), |TriggerData(data)| data);
        let dry_run = dry_run.unwrap_or_default();
        let named = version.map(|Whole(version)| version.into());
        let cause_key = format!("request:{}", key.map_or_else(|| RunId::generate().to_string(), str::to_owned));
        let hash = key.map(|_| Key::new(&["run"], &body));
        let hash = hash.as_ref().map(Key::as_str);
        let version = match version_to_run(automations, member, &automation, named, dry_run).await {
            Ok(version) => version,
            Err(refused) if hash.is_none() => return Err(refused),
            // The automation may have been paused since the first request.
            Err(refused) => {
                let before = self.started_before(&automation, &cause_key, hash).await?;
                return before.map(|run| (run, false)).ok_or(refused);
            }
        };
        let cause = RunCause::new(RunTrigger::Manual, &cause_key, &trigger_data);
        let cause = RunCause { user: Some(&member.user_id), version: Some(version), dry_run, ..cause };
        let (run, begun) = self.start_requested(&automation, &cause, hash).await?;
        tracing::info!(run.id = %run.id, automation.id = %id, "a run was asked for");
        Ok((run, begun))
    }
}

/// The version to run: the active one, or a named one for a dry run or an administrator. A paused automation has no active
/// version. A dry run without an active version uses the newest.
pub(super) async fn version_to_run(
    automations: &Automations,
    member: &Member,
    automation: &Automation,
    named: Option<u64>,
    dry_run: bool,
) -> Result<u64> {
    let active = (automation.status == AutomationStatus::Active).then_some(automation.active_version).flatten();
    if let Some(version) = named.filter(|version| active != Some(*version)) {
        automations.version(automation.organization_id, automation.id, version).await?;
        if !dry_run {
            member.must_be(Role::Admin)?;
        }
        return Ok(version);
    }
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
