//! `llm_agent`: an automation's action that runs a prompt with tools.
//!
//! Each is a run of its own, which `run-loop` starts and waits for. Here is only its description, so that it can be found,
//! checked and pinned like any tool.

use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt};
use serde_json::{Map, Value, json};

use crate::{
    Result,
    models::ToolEffect,
    tool::{CallContext, CallableTool, Parameters, ToolOutcome, ToolSpec},
};

pub const LLM_AGENT: &str = "llm_agent";

struct LlmAgent(ToolSpec);

pub(super) fn llm_agent() -> Arc<dyn CallableTool> {
    let text = |description: &str| json!({"type": "string", "description": description});
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
        ("model", text("Another model than the organization's"), false),
        (
            "limits",
            json!({"type": "object", "description": "Its limits: iterations, calls, tokens, cost, seconds"}),
            false,
        ),
    ]);
    Arc::new(LlmAgent(ToolSpec {
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

impl CallableTool for LlmAgent {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn call<'a>(&'a self, _: Map<String, Value>, _: &'a CallContext<'a>) -> BoxFuture<'a, Result<ToolOutcome>> {
        async { Ok(ToolOutcome::failed("llm_agent works as an action of an automation only.")) }.boxed()
    }
}
