//! A run with its steps as API clients see it; unknown fields are null.

mod actions;
mod steps;

use std::io::{self, Write};

use self::{
    actions::{ActionView, Actions},
    steps::{StepView, Steps},
};
use crate::{
    Error, Result,
    automation::{ERROR_BUDGET, RunView},
    described::Described,
    models::{AllowedHosts, OfferedTool, RunPrompt, ToolId, ToolRef, WholeRun},
};
use serde::Serialize;
use serde_json::Value;

/// Bytes per text of a step; the largest budget that fits is used.
const BUDGETS: [usize; 4] = [4_096, 1_024, 256, 64];
/// Bytes of the prompt.
const PROMPT_BUDGET: usize = 16_384;

/// Lambda answers have at most 6 MB, with the body escaped as a JSON string.
pub const LARGEST_RUN_VIEW: usize = 5_500_000;

/// A run with its steps. Unknown fields are null.
#[derive(Debug, Serialize, Described)]
#[schema(name = "RunWithSteps")]
pub struct WholeRunView {
    #[serde(flatten)]
    run: RunView,
    prompt: String,
    /// The requested system prompt, with the instructions for the tools.
    system_prompt: String,
    tools: Vec<ToolView>,
    /// The JSON Schema of the result; null if any JSON value is valid.
    schema: Option<Value>,
    /// The final answer; null while there is none.
    result: Option<Value>,
    steps: Vec<StepView>,
    /// For a run of an automation: the data of its trigger. Otherwise null.
    trigger_data: Option<Value>,
    /// In their order, as far as they were come to; empty for a prompt.
    actions: Vec<ActionView>,
}

#[derive(Debug, Serialize, Described)]
#[schema(name = "OfferedTool")]
struct ToolView {
    /// By which the model calls it.
    name: String,
    /// Null for a built-in tool, and for a service's.
    tool_id: Option<ToolId>,
    /// For a tool of the organization: the only version that is run.
    version: Option<u64>,
    /// Of a service's tool, as it was read; another one is not run.
    fingerprint: Option<String>,
    /// Where it may go; empty if nothing was said.
    allowed_hosts: AllowedHosts,
}

impl From<&OfferedTool> for ToolView {
    fn from(tool: &OfferedTool) -> Self {
        let (tool_id, version, fingerprint) = match &tool.tool {
            ToolRef::BuiltIn(_) => (None, None, None),
            ToolRef::Organization { id, version } => (Some(*id), *version, None),
            ToolRef::Service { fingerprint, .. } => (None, None, fingerprint.clone()),
        };
        Self { name: tool.name.clone(), tool_id, version, fingerprint, allowed_hosts: tool.allowed_hosts.clone() }
    }
}

/// Shows a run with its steps, redacted. The result is the organization's own output and stays as it is. Texts are cut until the
/// answer has at most `most` bytes, if possible.
pub fn whole_run_view(whole: WholeRun, most: usize) -> Result<WholeRunView> {
    let WholeRun { run, plan, prompt, actions, answers, replies, result } = whole;
    let prompt = prompt.unwrap_or_default();
    let steps = Steps::of(&answers, &replies, &prompt.tools);
    let actions = Actions::of(&actions);
    // A run has either actions or steps.
    let transcript = if actions.is_empty() { &steps.transcript } else { &actions.transcript };
    let error = run.why().map(|error| transcript.text(&error, ERROR_BUDGET));
    let trigger_data = plan.map(|plan| serde_json::from_str::<Value>(&plan.trigger_data));
    let trigger_data = trigger_data.transpose().map_err(Error::internal)?;
    let RunPrompt { system_prompt, prompt, schema, tools } = &prompt;
    let mut shown = WholeRunView {
        run: RunView::from(run).with_error(error),
        prompt: steps.transcript.text(prompt, PROMPT_BUDGET),
        system_prompt: steps.transcript.text(system_prompt, PROMPT_BUDGET),
        tools: tools.iter().map(ToolView::from).collect(),
        schema: schema.as_deref().map(serde_json::from_str).transpose().map_err(Error::internal)?,
        result,
        steps: Vec::new(),
        trigger_data: trigger_data.map(|data| transcript.result(&[], &data, PROMPT_BUDGET)),
        actions: Vec::new(),
    };
    // Redacting a long run is slow, so budgets that are certainly too large are skipped.
    let too_much = |budget: &usize| steps.size(*budget) + actions.size(*budget) > most;
    let smallest = BUDGETS.last().copied();
    for budget in BUDGETS.into_iter().skip_while(|budget| Some(*budget) != smallest && too_much(budget)) {
        shown.steps = steps.shown(budget);
        shown.actions = actions.shown(budget);
        if sent_size(&shown)? <= most {
            break;
        }
    }
    Ok(shown)
}

/// Bytes of an answer when sent by Lambda.
fn sent_size(answer: &impl Serialize) -> Result<usize> {
    let mut counted = JsonSize(0);
    serde_json::to_writer(&mut counted, answer).map_err(Error::internal)?;
    Ok(counted.0)
}

struct JsonSize(usize);

impl Write for JsonSize {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Quotes and backslashes take two bytes in a JSON string.
        self.0 += bytes.len() + bytes.iter().filter(|byte| matches!(byte, b'"' | b'\\')).count();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
