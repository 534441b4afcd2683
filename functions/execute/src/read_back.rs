//! A tool with `confirm: "read_back"` acts the second time: after the caller heard its arguments, and spoke.

use serde_json::{Map, Value};
use shared::{
    Error, Result,
    actions::ActionTool,
    cut::fit,
    error,
    execution::{self, ExecutionRequest},
    idempotency::Key,
    models::{Call, ExecutionStatus, NO_ARGUMENTS, ReadBack, SecondRequest, Timestamp, Tool},
    tool::{CallContext, ToolOutcome},
};

use crate::Deps;

/// Bytes of the arguments in the sentence.
const ARGUMENTS_BUDGET: usize = 2 * 1024;
const MOST_ATTEMPTS: usize = 5;

/// The request, if the tool may act.
///
/// # Errors
/// The answer instead of an execution.
pub(crate) async fn confirmed<'a>(
    deps: &Deps,
    row: &Tool,
    tool: &ActionTool,
    request: ExecutionRequest<'a>,
    context: &CallContext<'_>,
) -> Result<ExecutionRequest<'a>, Box<ToolOutcome>> {
    if row.confirms().is_none() {
        return Ok(request);
    }
    // The execution names the problem of the arguments.
    let Ok(checked) = tool.check(request.arguments) else { return Ok(request) };
    let Some(call) = &context.conversation.call else {
        return Err(Box::new(ToolOutcome::failed(
            "Nothing was done: this tool needs the caller's confirmation, which only a call through Switchboard can take.",
        )));
    };
    let told = match decide(deps, call, &Wish::of(tool, &checked.arguments, context), context).await {
        Ok(Decision::Acts { confirmed_after }) => return Ok(ExecutionRequest { confirmed_after, ..request }),
        Ok(Decision::ReadsBack) => read_back(row, &checked.arguments),
        Ok(Decision::CallIsOver) => ToolOutcome::failed("Nothing was done: the call is over."),
        Err(outage) => {
            tracing::error!(tool.id = %row.id, "a confirmation could not be recorded: {}", error::chain(&outage));
            execution::unavailable()
        }
    };
    Err(Box::new(told))
}

/// Digests of what the caller hears, and of the effects of the request.
struct Wish {
    key: String,
    effects: Vec<String>,
}

impl Wish {
    fn of(tool: &ActionTool, arguments: &Map<String, Value>, context: &CallContext<'_>) -> Self {
        let (id, conversation) = (tool.id.to_string(), context.conversation);
        let digest = |scope: &str, arguments| Key::new(&[scope, &id], &Value::Object(arguments)).as_str().to_owned();
        let parts = tool.parts(arguments, conversation).into_iter().map(|part| part.significant);
        let effects = parts.chain([tool.significant(arguments, conversation)]);
        Self {
            effects: effects.map(|significant| digest("effect", significant)).collect(),
            key: digest("read_back", tool.consented(arguments, conversation)),
        }
    }
}

enum Decision {
    Acts { confirmed_after: Option<Timestamp> },
    ReadsBack,
    CallIsOver,
}

impl Decision {
    fn acts(asked: &ReadBack) -> Self {
        Self::Acts { confirmed_after: asked.confirmed_after() }
    }
}

/// Each write holds only for the request that was read. After a refusal the row is read anew: another request of the same message, or
/// words of the caller, came between.
async fn decide(deps: &Deps, call: &Call, wish: &Wish, context: &CallContext<'_>) -> Result<Decision> {
    let (organization, window) = (context.organization, deps.executor.idempotency.window());
    let mut latest = call.read_back.clone();
    for _ in 0..MOST_ATTEMPTS {
        let second = latest.as_ref().map(|asked| (asked.second(&wish.key, context.delivery, window), asked));
        let decided = match second {
            Some((SecondRequest::Repeats, asked)) => return Ok(Decision::acts(asked)),
            Some((SecondRequest::SameRequest, _)) => return Ok(Decision::ReadsBack),
            Some((SecondRequest::Acts, asked)) => {
                let taken = deps.calls.take_answer(organization, &call.id, asked, context.delivery).await?;
                taken.then(|| Decision::acts(asked))
            }
            Some((SecondRequest::ReadsBackAnew, _)) | None => {
                let seen = latest.as_ref();
                let request = ReadBack::new(wish.key.clone(), wish.effects.clone(), context.delivery, seen);
                let written = deps.calls.read_back(organization, &call.id, seen, &request).await?;
                written.then_some(Decision::ReadsBack)
            }
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
