//! Tools for existing automations, with the roles and tenants of the corresponding routes.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::{AgentToolAnswer, LARGEST_ANSWER};
use crate::{
    Deadline, Error, Result,
    automation::{AutomationReader, CheckResult, Deployed, RunStarter, RunView, whole_run_view},
    models::{Actor, AutomationId, AutomationStatus, Member, RunId, acting},
    store::{AutomationRuns, Cursor},
};

const USUAL_PAGE: i64 = 50;
const LARGEST_PAGE: i64 = 100;

#[derive(Clone)]
pub struct AutomationTools {
    pub reader: AutomationReader,
    pub starter: RunStarter,
    pub runs: AutomationRuns,
}

impl AutomationTools {
    pub(super) async fn list(&self, viewer: &Member, arguments: &Map<String, Value>) -> Result<AgentToolAnswer> {
        let status = text(arguments, "status").map(str::parse::<AutomationStatus>).transpose();
        let status = status.map_err(|error| Error::invalid("status", error.to_string()))?;
        let limit = arguments.get("limit").and_then(Value::as_i64).unwrap_or(USUAL_PAGE);
        if !(1..=LARGEST_PAGE).contains(&limit) {
            return Err(Error::invalid("limit", format!("must be a number from 1 to {LARGEST_PAGE}")));
        }
        let after = text(arguments, "cursor").map(Cursor::parse).transpose()?;
        let limit = i32::try_from(limit).map_err(Error::internal)?;
        let page = self.reader.automations.page(viewer.organization_id, status, after.as_ref(), limit).await?;
        let mut told = format!("Automations ({}):\n", page.items.len());
        for automation in &page.items {
            let active = automation.active_version.map_or_else(|| "none runs".to_owned(), |it| format!("{it} runs"));
            // Writing to a String cannot fail.
            let _ok = writeln!(
                told,
                "- {} ({}): {}, {}, version {} ({active}), revision {}. {}",
                automation.name,
                automation.id,
                automation.trigger_type,
                automation.status.as_str(),
                automation.version,
                automation.revision,
                automation.description
            );
        }
        if let Some(cursor) = &page.next_cursor {
            let _ok = write!(told, "\nThere are more: ask again with cursor {cursor}\n");
        }
        Ok(AgentToolAnswer::found(told, json!(page)))
    }

    pub(super) async fn get(
        &self,
        viewer: &Member,
        arguments: &Map<String, Value>,
        deadline: Deadline,
    ) -> Result<AgentToolAnswer> {
        let view = self.reader.show(viewer.organization_id, automation_id(arguments)?, deadline).await?;
        let automation = &view.automation;
        let mut told = format!(
            "\"{}\" ({}) is {}. Revision: {}. Newest version: {}, active version: {}.\n",
            automation.name,
            automation.id,
            automation.status.as_str(),
            automation.revision,
            automation.version,
            automation.active_version.map_or_else(|| "none".to_owned(), |version| version.to_string()),
        );
        if let Some(reason) = &automation.pause_reason {
            let _ok = writeln!(told, "It is paused: {reason}");
        }
        let data = json!(view);
        if data.get("waits_for").is_some_and(Value::is_string) {
            told.push_str("Nothing starts it yet: the organization has no hook for its events.\n");
        }
        if let Some(next) = data.get("next_run_at").and_then(Value::as_str) {
            let _ok = writeln!(told, "It runs next at {next}.");
        }
        let _ok = write!(told, "Definition:\n{}\n", view.definition);
        Ok(AgentToolAnswer::found(told, data))
    }

    pub(super) async fn run(
        &self,
        member: &Member,
        mut arguments: Map<String, Value>,
        delivery: Option<&str>,
    ) -> Result<AgentToolAnswer> {
        let id = automation_id(&arguments)?;
        arguments.retain(|name, _| matches!(&name[..], "trigger_data" | "version" | "dry_run"));
        let automations = &self.reader.automations;
        let body = Ok(Value::Object(arguments));
        let start = self.starter.start_by_hand(automations, member, id, body, delivery);
        let (run, begun) = acting(Some(Actor::agent_of(member)), start).await?;
        let what = if begun { "began" } else { "was begun before by the same call" };
        let told =
            format!("The run {} {what}; it is {}. Read it with get_run(\"{}\").", run.id, run.status.as_str(), run.id);
        Ok(AgentToolAnswer::found(told, json!(RunView::from(run))))
    }

    pub(super) async fn get_run(&self, viewer: &Member, arguments: &Map<String, Value>) -> Result<AgentToolAnswer> {
        let id: RunId = text(arguments, "id").and_then(|id| id.parse().ok()).ok_or(Error::NotFound("run"))?;
        let whole = self.runs.whole(viewer.organization_id, id).await?;
        let shown = json!(whole_run_view(whole, LARGEST_ANSWER)?);
        Ok(AgentToolAnswer::found(run_in_words(&shown), shown))
    }
}

pub(super) fn deployment_answer(deployed: &Deployed) -> AgentToolAnswer {
    let failed = deployed.report.result == CheckResult::Failed;
    AgentToolAnswer { failed, text: deployed.to_text(), data: json!(deployed) }
}

/// The definition in the arguments, as the body of a route.
pub(super) fn definition_of(mut arguments: Map<String, Value>) -> Value {
    let dry_run = arguments.get("dry_run").is_some_and(|dry_run| *dry_run == true);
    let mut body = arguments.remove("automation").unwrap_or_default();
    if let (Value::Object(body), true) = (&mut body, dry_run) {
        body.insert("dry_run".into(), true.into());
    }
    body
}

fn text<'a>(arguments: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    arguments.get(name).and_then(Value::as_str)
}

/// A malformed id counts as not found.
pub(super) fn automation_id(arguments: &Map<String, Value>) -> Result<AutomationId> {
    text(arguments, "id").and_then(|id| id.parse().ok()).ok_or(Error::NotFound("automation"))
}

fn run_in_words(run: &Value) -> String {
    let of = |value: &Value, name: &str| match value.get(name) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    let mut told = format!("The run {} is {}.\n", of(run, "id"), of(run, "status"));
    for (name, says) in [("waits_for", "It waits for"), ("error", "Error"), ("result", "Result")] {
        let value = of(run, name);
        if !value.is_empty() {
            let _ok = writeln!(told, "{says}: {value}");
        }
    }
    let list = |name: &str| run.get(name).and_then(Value::as_array).into_iter().flatten();
    for action in list("actions") {
        let _ok = write!(told, "- {} ({}): {}", of(action, "action_id"), of(action, "tool"), of(action, "status"));
        for (name, says) in [("output", "output"), ("error", "error")] {
            let value = of(action, name);
            if !value.is_empty() {
                let _ok = write!(told, "; {says}: {value}");
            }
        }
        told.push('\n');
    }
    for step in list("steps") {
        let _ok = writeln!(told, "- step {}: {}", of(step, "step"), of(step, "answer"));
    }
    told
}
