//! A tool with `confirm: "read_back"` acts the second time: after the caller heard its arguments, and spoke.

use serde_json::{Map, Value};
use shared::{
    Error, Result,
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
const MOST_ATTEMPTS: usize = 5;

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
    let consented = tool.consented(&checked.arguments, context.conversation);
    let key = Key::new(&["read_back", &tool.id.to_string()], &Value::Object(consented));
    match decide(deps, call, key.as_str(), context).await {
        Ok(Decision::Acts) => None,
        Ok(Decision::ReadsBack) => Some(read_back(row, &checked.arguments)),
        Ok(Decision::CallIsOver) => Some(ToolOutcome::failed("Nothing was done: the call is over.")),
        Err(outage) => {
            tracing::error!(tool.id = %row.id, "a confirmation could not be recorded: {}", error::chain(&outage));
            Some(execution::unavailable())
        }
    }
}

enum Decision {
    Acts,
    ReadsBack,
    CallIsOver,
}

/// Each write holds only for the request that was read. After a refusal the row is read anew: another request of the same message, or
/// words of the caller, came between.
async fn decide(deps: &Deps, call: &Call, key: &str, context: &CallContext<'_>) -> Result<Decision> {
    let (organization, window) = (context.organization, deps.executor.idempotency.window());
    let mut latest = call.read_back.clone();
    for _ in 0..MOST_ATTEMPTS {
        let meaning =
            latest.as_ref().map_or(SecondRequest::ReadsBackAnew, |asked| asked.second(key, context.delivery, window));
        let decided = match (meaning, &latest) {
            (SecondRequest::Repeats, _) => return Ok(Decision::Acts),
            (SecondRequest::SameRequest, _) => return Ok(Decision::ReadsBack),
            (SecondRequest::Acts, Some(asked)) => {
                deps.calls.take_answer(organization, &call.id, asked, context.delivery).await?.then_some(Decision::Acts)
            }
            (SecondRequest::Acts | SecondRequest::ReadsBackAnew, asked) => deps
                .calls
                .read_back(organization, &call.id, asked.as_ref(), &ReadBack::new(key.to_owned(), context.delivery))
                .await?
                .then_some(Decision::ReadsBack),
        };
        if let Some(decided) = decided {
            return Ok(decided);
        }
        let Some(now) = deps.calls.current(organization, &call.id).await?.filter(|call| call.ended_at.is_none()) else {
            return Ok(Decision::CallIsOver);
        };
        latest = now.read_back;
    }
    Err(Error::Conflict("The caller's confirmation changed with each attempt.".into()))
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
