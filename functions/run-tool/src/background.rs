//! Tells the live call the results of background tools, once and in the order of arrival.

use std::time::Duration;

use serde_json::{Map, Value};
use shared::{
    Deadline, Result, error,
    models::{AsyncResult, BackgroundResult, Call, CallId, ExecutionId, ResultToTell, StartedTool, Timestamp, Tool},
    store::AddedToCall,
};

use crate::{Deps, context};

const HEADING: &str = "Results of tools that ran in the background:";
/// Longer than all attempts at one message.
const LEASE: Duration = Duration::from_secs(40);
/// Bytes of one message.
const MESSAGE_BUDGET: usize = 8 * 1024;

/// # Errors
/// If the result could not be added: then the message may be redelivered, and the tool answers from the record.
pub(crate) async fn tell(
    deps: &Deps,
    tool: &Tool,
    call: &CallId,
    execution: ExecutionId,
    answer: &Map<String, Value>,
    deadline: Deadline,
) -> Result<()> {
    let organization = tool.organization_id;
    let result = ResultToTell {
        execution_id: execution,
        text: text(&tool.label, answer),
        speaks: tool.async_result() == AsyncResult::Speak,
    };
    match deps.calls.add_background(organization, call, &result).await? {
        // An earlier delivery may have died before telling.
        AddedToCall::Waits | AddedToCall::Before => {}
        AddedToCall::Over | AddedToCall::NoCall => return Ok(()),
    }
    if let Err(error) = tell_all(deps, tool, call, &execution.to_string(), deadline).await {
        tracing::error!(call.id = %call, "results could not all be told to a call: {}", error::chain(&error));
    }
    Ok(())
}

async fn tell_all(deps: &Deps, tool: &Tool, call: &CallId, worker: &str, deadline: Deadline) -> Result<()> {
    let organization = tool.organization_id;
    while let Some(taken) = deps.calls.take_background(organization, call, worker, LEASE).await? {
        for some in messages(&taken.to_tell) {
            let told = tell_message(deps, &taken, some, deadline).await;
            if let Err(error) = deps.calls.note_background(organization, call, &told).await {
                tracing::warn!(call.id = %call, "what a call was told could not be recorded: {}", error::chain(&error));
            }
        }
        if deps.calls.release_background(organization, call, worker).await? {
            break;
        }
    }
    Ok(())
}

async fn tell_message(deps: &Deps, call: &Call, results: &[ResultToTell], deadline: Deadline) -> Vec<BackgroundResult> {
    let lines = results.iter().map(|result| result.text.as_str());
    let message = std::iter::once(HEADING).chain(lines).collect::<Vec<_>>().join("\n");
    let speaks = results.iter().any(|result| result.speaks);
    let error = if call.is_over() {
        Some(context::OVER.to_owned())
    } else {
        context::add_result_to_live_call(deps, call, &message, speaks, deadline).await.err()
    };
    let at = Timestamp::now();
    results
        .iter()
        .map(|result| BackgroundResult { execution_id: result.execution_id, at, error: error.clone() })
        .collect()
}

/// The results of each message, in order.
fn messages(results: &[ResultToTell]) -> Vec<&[ResultToTell]> {
    let (mut messages, mut rest) = (Vec::new(), results);
    while !rest.is_empty() {
        let mut length = HEADING.len();
        let fits = rest.iter().take_while(|result| {
            length += result.text.len() + 1;
            length <= MESSAGE_BUDGET
        });
        let (some, others) = rest.split_at(fits.count().max(1));
        messages.push(some);
        rest = others;
    }
    messages
}

fn text(label: &str, answer: &Map<String, Value>) -> String {
    let json = context::json(label, answer);
    let text = json.unwrap_or_else(|| {
        let sentence = answer.get("error").and_then(Value::as_str).unwrap_or("It failed.");
        sentence.replace(['\r', '\n'], " ")
    });
    StartedTool::line(label, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_holds_what_fits_and_at_least_one() {
        let result = |length: usize| ResultToTell {
            execution_id: ExecutionId::generate(),
            text: "x".repeat(length),
            speaks: false,
        };
        let results: Vec<_> = [3_000, 3_000, 3_000, 9_000, 10].map(result).into();
        let lengths: Vec<usize> = messages(&results).iter().map(|some| some.len()).collect();
        assert_eq!(lengths, [2, 1, 1, 1]);
        assert!(messages(&[]).is_empty());
    }
}
