//! What the tests of automations' runs share: a run that waits on the queue, and a look at what became of it.
#![allow(dead_code, reason = "each test binary uses its own part")]

use std::time::Duration;

use serde_json::{Value, json};
use shared::{
    Deadline,
    injection::{DescribedOnly, callable_name, organization_tool, system_prompt},
    models::{
        AutomationRun, OfferedTool, OrganizationId, QueuedAutomationRun, RunId, RunLimits, RunPrompt, RunStatus,
        RunTrigger, Spent, Timestamp, Tool, WholeRun,
    },
};
use tests::World;

/// Enough for a run on a busy machine.
pub(crate) const AMPLE: Duration = Duration::from_secs(120);

/// A run to be begun.
pub(crate) struct Wanted {
    pub(crate) prompt: String,
    /// Built-in tools by name.
    pub(crate) built_in: Vec<String>,
    /// Rows of the organization's tools.
    pub(crate) tools: Vec<Value>,
    pub(crate) schema: Option<Value>,
    pub(crate) limits: RunLimits,
}

impl Default for Wanted {
    fn default() -> Self {
        Self {
            prompt: "When does the bakery open on Sundays?".into(),
            built_in: vec!["wget".into()],
            tools: Vec::new(),
            schema: Some(json!({
                "type": "object",
                "properties": {"opens": {"type": "string"}},
                "required": ["opens"],
                "additionalProperties": false,
            })),
            limits: RunLimits::default(),
        }
    }
}

pub(crate) fn organization(world: &World) -> OrganizationId {
    world.home.organization_id.parse().unwrap()
}

/// Writes a run down and queues it.
pub(crate) async fn begin(world: &World, wanted: Wanted) -> RunId {
    let run_loop = &world.process.run_loop;
    let mut offered: Vec<OfferedTool> = Vec::new();
    let mut definitions = Vec::new();
    for name in &wanted.built_in {
        definitions.push(run_loop.registry.get(name).unwrap().clone());
        offered.push(OfferedTool { name: name.clone(), tool_id: None, version: 0, redact: Vec::new() });
    }
    for row in &wanted.tools {
        let id = row["id"].as_str().unwrap().parse().unwrap();
        let tool: Tool =
            run_loop.tools.get_many(organization(world), &[id], Deadline::after(AMPLE)).await.unwrap().remove(0);
        let name = callable_name(&tool);
        definitions.push(organization_tool(&tool, name.clone(), std::sync::Arc::new(DescribedOnly)).unwrap());
        offered.push(OfferedTool { name, tool_id: Some(tool.id), version: tool.version, redact: Vec::new() });
    }
    let now = Timestamp::now();
    let run = AutomationRun {
        id: RunId::generate(),
        organization_id: organization(world),
        user_id: None,
        trigger_type: RunTrigger::Manual,
        status: RunStatus::Queued,
        model: None,
        limits: wanted.limits,
        spent: Spent::default(),
        attempts: 0,
        lease_until: None,
        resume_at: None,
        cancel_requested_at: None,
        error: None,
        request_hash: None,
        started_at: None,
        finished_at: None,
        created_at: now,
        updated_at: now,
        expires_at: now.plus(Duration::from_secs(3_600)).as_seconds(),
    };
    let prompt = RunPrompt {
        system_prompt: system_prompt("You answer for a bakery.", &definitions),
        prompt: wanted.prompt,
        schema: wanted.schema.map(|schema| schema.to_string()),
        tools: offered,
    };
    run_loop.runs.create(&run, &prompt).await.unwrap();
    let message = QueuedAutomationRun { organization_id: run.organization_id, run_id: run.id };
    run_loop.queue.send(&message).await.unwrap();
    run.id
}

/// All there is of a run.
pub(crate) async fn whole(world: &World, id: RunId) -> WholeRun {
    world.process.run_loop.runs.whole(organization(world), id).await.unwrap()
}

/// A message with one block of calls.
pub(crate) fn calls(statements: &str) -> String {
    format!("I need this.\n\n````tool\n{statements}\n````\n")
}

/// The messages of each request to the model, as `(role, content)`.
pub(crate) fn conversations(world: &World) -> Vec<Vec<(String, String)>> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let messages = |body: &Value| {
        let messages = body["messages"].as_array().unwrap().iter();
        messages.map(|message| (text(&message["role"]), text(&message["content"]))).collect()
    };
    world.llm.requests().iter().map(|request| messages(&request.body)).collect()
}

/// The last message of the last request: what the model was told last.
pub(crate) fn told(world: &World) -> String {
    conversations(world).pop().unwrap().pop().unwrap().1
}
