//! Tells the live call the result of a tool that ran in the background, once and in the order of arrival.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Map, Value};
use shared::{
    Deadline, Result,
    models::{
        AsyncResult, BackgroundResult, Call, CallId, ExecutionId, OrganizationId, Queued, ResultToTell, StartedTool,
        Timestamp, Tool,
    },
    store::{AddedToCall, Telling, ToTell},
};

use crate::{
    Deps,
    after_call::{self, AfterCall, missed, send_after},
    context,
    returned::{self, Caller},
};

const HEADING: &str = "Results of tools that ran in the background:";
const INTERRUPTED: &str = "the telling was interrupted, and it is not known whether the call was told";
/// Longer than the attempts to tell one message.
const LEASE: Duration = Duration::from_secs(40);
/// The difference of clocks.
const MARGIN: Duration = Duration::from_secs(5);
/// Bytes of one message.
const MESSAGE_BUDGET: usize = 8 * 1024;

/// # Errors
/// An outage of ours: the message must be redelivered, and the tool answers from the record.
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
    tell_waiting(deps, organization, &call.id, deadline).await
}

/// Tells the call the results that wait.
///
/// # Errors
/// An outage of ours: results may wait, so the message must be redelivered. Nothing is told twice.
pub(crate) async fn tell_waiting(
    deps: &Deps,
    organization: OrganizationId,
    call: &CallId,
    deadline: Deadline,
) -> Result<()> {
    let telling = deps.calls.telling(organization, call, LEASE);
    loop {
        match telling.take().await? {
            ToTell::Nothing => return Ok(()),
            // The other worker takes these results too, unless it stops before.
            ToTell::Held => return tell_later(deps, organization, call).await,
            ToTell::Interrupted(interrupted) => {
                tracing::error!(call.id = %call, "results were interrupted on their way to a call");
                let unknown = |result| missed(AfterCall::Nothing, result, INTERRUPTED);
                let outcomes: Vec<_> = interrupted.results.iter().map(unknown).collect();
                telling.note_interrupted(&interrupted, &outcomes).await?;
            }
            ToTell::Taken(taken) => {
                if !tell_taken(deps, &telling, &taken, deadline).await? || telling.release().await? {
                    return Ok(());
                }
            }
        }
    }
}

async fn tell_later(deps: &Deps, organization: OrganizationId, call: &CallId) -> Result<()> {
    let due = Queued::ResultsDue { organization_id: organization, call_id: call.clone() };
    Ok(deps.executions.send_later(&due, LEASE + MARGIN).await?)
}

/// False: another worker took over, or the results wait for the caller's return.
async fn tell_taken(deps: &Deps, telling: &Telling<'_>, call: &Call, deadline: Deadline) -> Result<bool> {
    let (mut unrecorded, mut rest, mut outage) = (Vec::new(), call.telling.as_slice(), None);
    for some in messages(&call.telling) {
        match tell_message(deps, call, some, deadline).await {
            Ok(Some(outcomes)) => unrecorded.extend(outcomes),
            waits => {
                telling.put_back(&unrecorded, rest).await?;
                waits?;
                return tell_later(deps, call.organization_id, &call.id).await.map(|()| false);
            }
        }
        rest = rest.get(some.len()..).unwrap_or_default();
        match telling.note(&unrecorded, rest).await {
            Ok(true) => {
                unrecorded.clear();
                outage = None;
            }
            Ok(false) => {
                tracing::error!(call.id = %call.id, "a call was told for longer than a worker may");
                return Ok(false);
            }
            Err(error) => outage = Some(error),
        }
    }
    outage.map_or(Ok(true), Err)
}

/// The outcomes; `None` if the caller may return in another call, which is told then.
///
/// # Errors
/// An outage of ours. Nobody was told.
async fn tell_message(
    deps: &Deps,
    call: &Call,
    results: &[ResultToTell],
    deadline: Deadline,
) -> Result<Option<Vec<BackgroundResult>>> {
    let lines = results.iter().map(|result| result.text.as_str());
    let message = std::iter::once(HEADING).chain(lines).collect::<Vec<_>>().join("\n");
    let speaks = results.iter().any(|result| result.speaks);
    let why = if call.is_over() {
        context::OVER.to_owned()
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
                return Ok(Some(results.iter().map(told).collect()));
            }
            // The caller would have the same news twice.
            Err(untold) if untold.uncertain => {
                let unknown = |result| missed(AfterCall::Nothing, result, &untold.words);
                return Ok(Some(results.iter().map(unknown).collect()));
            }
            Err(untold) => untold.words,
        }
    };
    match returned::caller_of(deps, call).await? {
        Caller::MayReturn => Ok(None),
        Caller::IsBackIn(next) => returned::pass_on(deps, call, &next, results, deadline).await.map(Some),
        Caller::Gone => {
            let sent = results.iter().map(|result| send_after(deps, call, result, &why, deadline));
            Ok(Some(join_all(sent).await))
        }
    }
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
