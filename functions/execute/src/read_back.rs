//! A tool with `confirm: "read_back"` acts the second time: after the caller heard its arguments, and spoke.

use serde_json::{Map, Value};
use shared::{
    Result,
    actions::ActionTool,
    cut::fit,
    error,
    execution::{self, ExecutionRequest},
    idempotency::Key,
    models::{Call, ExecutionStatus, NO_ARGUMENTS, ReadBack, SecondRequest, Tool},
    tool::{CallContext, ToolOutcome},
};

use crate::Deps;

/// Bytes of the arguments in the sentence.
const ARGUMENTS_BUDGET: usize = 2 * 1024;

/// The answer instead of an execution; `None` if the tool may act.
pub(crate) async fn answer(
    deps: &Deps,
    row: &Tool,
    tool: &ActionTool,
    request: ExecutionRequest<'_>,
    context: &CallContext<'_>,
) -> Option<ToolOutcome> {
    row.confirms()?;
    // The execution names the problem of the arguments.
    let checked = tool.check(request.arguments).ok()?;
    let Some(call) = &context.conversation.call else {
        return Some(ToolOutcome::failed(
            "Nothing was done: this tool needs the caller's confirmation, which only a call through Switchboard can take.",
        ));
    };
    let significant = tool.significant(&checked.arguments, context.conversation);
    let key = Key::new(&["read_back", &tool.id.to_string()], &Value::Object(significant));
    match second(deps, call, key.as_str(), context).await {
        Ok(SecondRequest::Acts | SecondRequest::Repeats) => None,
        Ok(SecondRequest::SameRequest) => Some(read_back(row, &checked.arguments)),
        Ok(SecondRequest::ReadsBackAnew) => {
            let asked = ReadBack::new(key.as_str().to_owned(), context.delivery);
            match deps.calls.read_back(context.organization, &call.id, &asked).await {
                Ok(true) => Some(read_back(row, &checked.arguments)),
                Ok(false) => Some(ToolOutcome::failed("Nothing was done: the call is over.")),
                Err(outage) => Some(unavailable(row, &outage)),
            }
        }
        Err(outage) => Some(unavailable(row, &outage)),
    }
}

async fn second(deps: &Deps, call: &Call, key: &str, context: &CallContext<'_>) -> Result<SecondRequest> {
    let Some(asked) = &call.read_back else { return Ok(SecondRequest::ReadsBackAnew) };
    let window = deps.executor.idempotency.window();
    match asked.second(key, context.delivery, window) {
        SecondRequest::Acts => {
            let taken = deps.calls.take_answer(context.organization, &call.id, asked, context.delivery).await?;
            Ok(if taken { SecondRequest::Acts } else { SecondRequest::ReadsBackAnew })
        }
        other => Ok(other),
    }
}

fn read_back(row: &Tool, arguments: &Map<String, Value>) -> ToolOutcome {
    let mut arguments = arguments.clone();
    arguments.remove(NO_ARGUMENTS);
    let what = match fit(Value::Object(arguments), ARGUMENTS_BUDGET) {
        Value::Object(arguments) if arguments.is_empty() => row.label.clone(),
        arguments => format!("{}, with {arguments}", row.label),
    };
    let told = format!(
        "Nothing has been done yet. Read this back to the caller in your words and ask whether it is right: {what}. After the \
         caller has said yes, call this tool again with the same arguments, before anything else."
    );
    ToolOutcome::succeeded(told).status(ExecutionStatus::ReadBack)
}

fn unavailable(row: &Tool, outage: &shared::Error) -> ToolOutcome {
    tracing::error!(tool.id = %row.id, "a confirmation could not be recorded: {}", error::chain(outage));
    execution::unavailable()
}
