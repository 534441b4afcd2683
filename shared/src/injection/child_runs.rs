//! `llm_agent` and `call_automation`: actions of an automation that are runs of their own.
//!
//! `run-loop` starts these runs and waits for them. Here are only their descriptions, so that they can be found, checked and
//! pinned like any tool.

use std::sync::Arc;

use futures_util::future::FutureExt;
use serde_json::{Map, Value, json};

use crate::{
    models::ToolEffect,
    tool::{CallContext, CallableTool, Parameters, ToolFuture, ToolOutcome, ToolSpec},
};

/// Runs a prompt with tools.
pub const LLM_AGENT: &str = "llm_agent";
/// Runs another automation of the organization.
pub const CALL_AUTOMATION: &str = "call_automation";

/// The argument of [`CALL_AUTOMATION`] that names the automation.
pub const AUTOMATION_ID: &str = "automation_id";

struct ChildRun(ToolSpec);

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

pub(super) fn call_automation() -> Arc<dyn CallableTool> {
    let data = json!({"type": "object", "description": "What the other automation sees as trigger_data"});
    let parameters = Parameters::new([
        (AUTOMATION_ID, text("The id of the other automation, written out; it must be active"), true),
        ("data", data, false),
    ]);
    Arc::new(ChildRun(ToolSpec {
        name: CALL_AUTOMATION.to_owned(),
        description: "Runs another automation of the organization, waits for its end, and gives back its outputs by their names, or \
                      the result of its prompt. Works as an action of an automation only."
            .to_owned(),
        parameters,
        // The other automation decides.
        returns: json!({}),
        own_examples: vec![
            r#"call_automation("0192f0c1-7a3e-7c4d-9d52-3f1c8f0a1b2c")"#.to_owned(),
            r#"call_automation("0192f0c1-7a3e-7c4d-9d52-3f1c8f0a1b2c", {customer: "C-17"})"#.to_owned(),
            r#"call_automation({automation_id: "0192f0c1-7a3e-7c4d-9d52-3f1c8f0a1b2c", data: {order: 42, lines: []}})"#.to_owned(),
        ],
        // Its actions may have effects.
        effect: ToolEffect::Other,
        repeatable: false,
    }))
}

pub(super) fn llm_agent() -> Arc<dyn CallableTool> {
    let tools = json!({
        "type": "array", "items": {"type": ["string", "object"]},
        "description": "Names of the tools that it may call, written out, each with its fingerprint in the automation; without this \
                        the built-in ones",
    });
    let parameters = Parameters::new([
        ("prompt", text("The task"), true),
        ("tools", tools, false),
        ("schema", json!({"type": "object", "description": "JSON Schema of the result"}), false),
        ("system_prompt", text("The agent's role and rules"), false),
        ("model", text("Another model; on the platform's key one of the deployment's"), false),
        (
            "limits",
            json!({"type": "object", "description": "Its limits: iterations, calls, tokens, cost, seconds"}),
            false,
        ),
    ]);
    Arc::new(ChildRun(ToolSpec {
        name: LLM_AGENT.to_owned(),
        description: "Lets a model work on a task with tools until it has a result: look things up, decide what to do, do it. The run \
                      waits for it. Works as an action of an automation only."
            .to_owned(),
        parameters,
        // The prompt's schema decides at run time.
        returns: json!({}),
        own_examples: vec![
            r#"llm_agent("Find out when the bakery opens on Sundays", ["wget"])"#.to_owned(),
            r#"llm_agent({prompt: "Which invoices are open?", tools: ["pay_list"], limits: {calls: 5}})"#.to_owned(),
            r#"return llm_agent({prompt: "Sum up the page", tools: ["wget"], schema: {type: "string"}});"#.to_owned(),
        ],
        // Its tools may have effects.
        effect: ToolEffect::Other,
        repeatable: false,
    }))
}

impl CallableTool for ChildRun {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn call<'a>(&'a self, _: Map<String, Value>, _: &'a CallContext<'a>) -> ToolFuture<'a> {
        async { Ok(ToolOutcome::failed(format!("{} works as an action of an automation only.", self.0.name))) }.boxed()
    }
}
