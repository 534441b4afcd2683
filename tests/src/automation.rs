//! Helpers for tests of runs: queue a run, and inspect its outcome.

use std::time::Duration;

use crate::World;
use serde_json::{Value, json};
use shared::{
    Deadline,
    catalogue::CatalogueTool,
    injection::system_prompt,
    models::{
        AutomationRun, OrganizationId, QueuedRun, RunId, RunLimits, RunPrompt, RunTrigger, Timestamp, ToolId, ToolRef,
        WholeRun,
    },
    tool::Unavailable,
};

/// Enough for a run on a busy machine.
pub const AMPLE: Duration = Duration::from_secs(120);

/// The settings of a run.
pub struct RunSpec {
    pub prompt: String,
    /// Built-in tools by name.
    pub built_in: Vec<String>,
    /// Rows of the organization's tools.
    pub tools: Vec<Value>,
    pub schema: Option<Value>,
    pub limits: RunLimits,
}

impl Default for RunSpec {
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

pub fn organization(world: &World) -> OrganizationId {
    world.home.organization_id.parse().unwrap()
}

/// Stores a run and queues it.
pub async fn begin(world: &World, spec: RunSpec) -> RunId {
    let run_loop = &world.process.run_loop;
    let built_in = spec.built_in.iter().cloned().map(ToolRef::BuiltIn);
    let rows = spec.tools.iter().map(|row| ToolRef::Organization { id: id(row), version: None });
    let references: Vec<ToolRef> = built_in.chain(rows).collect();
    let resolved = run_loop.catalogue.resolve(organization(world), &references, Deadline::after(AMPLE)).await.unwrap();
    let here = |resolved: Result<_, Unavailable>| resolved.unwrap_or_else(|why| panic!("{}", why.for_author()));
    let found: Vec<CatalogueTool> = resolved.into_iter().map(here).collect();
    let kept_until = Timestamp::now().plus(Duration::from_secs(3_600)).as_seconds();
    let run =
        AutomationRun::queued(RunId::generate(), organization(world), RunTrigger::Manual, spec.limits, kept_until);
    let prompt = RunPrompt {
        system_prompt: system_prompt("You answer for a bakery.", found.iter().map(CatalogueTool::spec)),
        prompt: spec.prompt,
        schema: spec.schema.map(|schema| schema.to_string()),
        tools: found.iter().map(CatalogueTool::offered).collect(),
    };
    let deadline = Deadline::after(AMPLE);
    run_loop.runs.create(&run, &prompt, &run_loop.budgets, false, deadline).await.unwrap();
    let message = QueuedRun::new(run.organization_id, run.id);
    run_loop.queue.send(&message).await.unwrap();
    run.id
}

fn id(row: &Value) -> ToolId {
    row["id"].as_str().unwrap().parse().unwrap()
}

/// The run with all its parts.
pub async fn whole(world: &World, id: RunId) -> WholeRun {
    world.process.run_loop.runs.whole(organization(world), id).await.unwrap()
}

/// A message with one block of calls.
pub fn calls(statements: &str) -> String {
    format!("I need this.\n\n````tool\n{statements}\n````\n")
}

/// The messages of each request to the model, as `(role, content)`.
pub fn conversations(world: &World) -> Vec<Vec<(String, String)>> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let messages = |body: &Value| {
        let messages = body["messages"].as_array().unwrap().iter();
        messages.map(|message| (text(&message["role"]), text(&message["content"]))).collect()
    };
    world.llm.requests().iter().map(|request| messages(&request.body)).collect()
}

/// The last message of the last request to the model.
pub fn told(world: &World) -> String {
    conversations(world).pop().unwrap().pop().unwrap().1
}
