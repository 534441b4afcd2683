//! Tells the live call the result of a tool that ran in the background, once and in the order of arrival.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Map, Value};
use shared::{
    Deadline, Result, error,
    models::{AsyncResult, BackgroundResult, Call, CallId, ExecutionId, ResultToTell, StartedTool, Timestamp, Tool},
    store::AddedToCall,
};

use crate::{
    Deps,
    after_call::{self, AfterCall},
    context,
};

const HEADING: &str = "Results of tools that ran in the background:";
/// Longer than the attempts to tell one message.
const LEASE: Duration = Duration::from_secs(40);
/// Bytes of one message.
const MESSAGE_BUDGET: usize = 8 * 1024;

/// # Errors
/// Only if the result could be neither added nor sent after the call: then the message may be redelivered, and the tool answers
/// from the record.
pub(crate) async fn tell(
    deps: &Deps,
    tool: &Tool,
    call: &Call,
    execution: ExecutionId,
    answer: &Map<String, Value>,
    deadline: Deadline,
) -> Result<()> {
    let organization = tool.organization_id;
    let result = ResultToTell {
        execution_id: execution,
        text: text(&tool.label, answer),
        speaks: tool.async_result() == AsyncResult::Speak,
        if_call_over: after_call::of_result(tool, answer),
    };
    match deps.calls.add_background(organization, &call.id, &result).await? {
        // An earlier delivery may have died before it told the call.
        AddedToCall::Waits | AddedToCall::Before => {}
        AddedToCall::Over => {
            let missed = missed(after_call::send(deps, call, &result, deadline).await?, &result, context::OVER);
            return deps.calls.miss_background(organization, &call.id, &missed).await;
        }
        AddedToCall::NoCall => return Ok(()),
    }
    if let Err(error) = tell_all(deps, tool, &call.id, &execution.to_string(), deadline).await {
        tracing::error!(call.id = %call.id, "results could not all be told to a call: {}", error::chain(&error));
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
    let (why, uncertain) = if call.is_over() {
        (context::OVER.to_owned(), false)
    } else {
        match context::add_result_to_live_call(deps, call, &message, speaks, deadline).await {
            Ok(()) => {
                let at = Timestamp::now();
                let told = |result: &ResultToTell| BackgroundResult {
                    execution_id: result.execution_id,
                    at,
                    error: None,
                    sent_by: None,
                };
                return results.iter().map(told).collect();
            }
            Err(untold) => (untold.words, untold.uncertain),
        }
    };
    let send = async |result: &ResultToTell| {
        let sent = if uncertain {
            // The caller would have the same news twice.
            Ok(AfterCall::Nothing)
        } else {
            after_call::send(deps, call, result, deadline).await
        };
        let sent = sent.unwrap_or_else(|error| {
            tracing::error!(call.id = %call.id, "a result could not be sent after its call: {}", error::chain(&error));
            AfterCall::Not("it could not be sent after the call either".to_owned())
        });
        missed(sent, result, &why)
    };
    join_all(results.iter().map(send)).await
}

fn missed(sent: AfterCall, result: &ResultToTell, why: &str) -> BackgroundResult {
    let (sent_by, error) = match sent {
        AfterCall::Nothing => (None, why.to_owned()),
        AfterCall::Queued(id) => (Some(id), why.to_owned()),
        AfterCall::Not(reason) => (None, format!("{why}; {reason}")),
    };
    BackgroundResult { execution_id: result.execution_id, at: Timestamp::now(), error: Some(error), sent_by }
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
            if_call_over: None,
        };
        let results: Vec<_> = [3_000, 3_000, 3_000, 9_000, 10].map(result).into();
        let lengths: Vec<usize> = messages(&results).iter().map(|some| some.len()).collect();
        assert_eq!(lengths, [2, 1, 1, 1]);
        assert!(messages(&[]).is_empty());
    }
}
