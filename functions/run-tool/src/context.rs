//! Reports the results of a call's start tools to the model in one system message.
//!
//! Each tool adds its line to the call's row. The last one sends all lines; after a deadline a message of its own sends the
//! lines so far, and later results follow one by one. One conditional write decides who sends, so a redelivered message sends
//! nothing twice.

use std::time::Duration;

use serde_json::{Map, Value};
use shared::{
    Deadline, Error, Result,
    backoff::Backoff,
    clients::call_control::NotAccepted,
    cut::{fit, instead_of},
    error::{self, upstream},
    models::{Call, CallId, ControlUrl, ExecutionId, OrganizationId, StartedTool, StartingCall, Tool, Unowned},
    store::{Added, AddedEarly},
    telemetry,
};

use crate::{Deps, earlier_calls};

/// The reason why nothing is sent any more.
pub(crate) const OVER: &str = "the call is over";

const HEADING: &str = "Customer context from CRM lookup:";
/// Bytes of one tool's line, and of the whole message.
const LINE_BUDGET: usize = 2 * 1024;
const MESSAGE_BUDGET: usize = 8 * 1024;

/// A call's row may be written a moment after its tools are queued.
pub(crate) const ROW_WITHIN: Duration = Duration::from_secs(3);
/// VAPI's time to create a call.
const CREATED_WITHIN: Duration = Duration::from_secs(12);
/// How long a call is tried that does not take messages yet: its media connects a moment after the TwiML.
const TOLD_WITHIN: Duration = Duration::from_secs(15);
pub(crate) const PAUSE: Duration = Duration::from_millis(100);
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Attempts at a control URL before the call's row is read: the call may be over.
const ATTEMPTS_BEFORE_LOOKING: u32 = 4;

/// Adds a tool's result, and sends the results that are due.
///
/// # Errors
/// Only if the result could not be added: then the message may be redelivered, and the tool answers from the record.
pub(crate) async fn add(
    deps: &Deps,
    tool: &Tool,
    call: &CallId,
    execution: ExecutionId,
    answer: &Map<String, Value>,
    deadline: Deadline,
) -> Result<()> {
    let organization = tool.organization_id;
    let line = json(&tool.label, answer).map(|json| StartedTool::line(&tool.label, json));
    let within = deadline.at_most(ROW_WITHIN);
    let added = deps.calls.add_result(organization, call, execution, line.as_deref(), within).await?;
    match added {
        // The call is over; the row records that nothing was sent.
        Added::Over(call) => send_results(deps, organization, &call, deadline).await,
        Added::NoCall => {
            tracing::error!(call.id = %call, tool.id = %tool.id, "a result has no live call");
            Ok(())
        }
        // The other results were sent without it.
        Added::Now(call) if call.context_taken_at.is_some() => {
            if let Some(line) = line {
                let message = format!("{HEADING}\n{line}");
                let late = Message { text: &message, late: true };
                tell(deps, &call, late, &[execution.to_string()], deadline).await;
            }
            Ok(())
        }
        Added::Now(call) | Added::Before(call) if call.has_all_results() => {
            send_results(deps, organization, &call.id, deadline).await
        }
        Added::Now(_) | Added::Before(_) => Ok(()),
    }
}

/// Adds the result of a tool that began before its call, and returns the call once there is one. A result that comes after the
/// creation of the call is added to the call.
///
/// # Errors
/// As [`add`].
pub(crate) async fn add_early(
    deps: &Deps,
    tool: &Tool,
    starting: &CallId,
    execution: ExecutionId,
    answer: &Map<String, Value>,
    deadline: Deadline,
) -> Result<Option<CallId>> {
    let organization = tool.organization_id;
    let json = json(&tool.label, answer);
    let mut backoff = Backoff::new(PAUSE, LONGEST_PAUSE, deadline.at_most(ROW_WITHIN));
    let added = loop {
        match deps.calls.add_early_result(organization, starting, execution, json.as_deref()).await? {
            AddedEarly::NoCall if backoff.pause().await => {}
            added => break added,
        }
    };
    match added {
        AddedEarly::Begun(call) => {
            add(deps, tool, &call, execution, answer, deadline).await?;
            Ok(Some(call))
        }
        AddedEarly::Waits => Ok(begun(deps, organization, starting, deadline).await),
        AddedEarly::NoCall => {
            tracing::warn!(tool.id = %tool.id, "a tool of a call's start ran, and VAPI created no call");
            Ok(None)
        }
    }
}

/// Waits for the call, so that the history can name it.
async fn begun(deps: &Deps, organization: OrganizationId, starting: &CallId, deadline: Deadline) -> Option<CallId> {
    let mut backoff = Backoff::new(PAUSE, LONGEST_PAUSE, deadline.at_most(CREATED_WITHIN));
    loop {
        match deps.calls.starting(organization, starting).await {
            Ok(Some(StartingCall { call_id: None, .. })) => {}
            Ok(Some(StartingCall { call_id, .. })) => return call_id,
            Ok(None) => return None,
            Err(error) => tracing::warn!("the call of an execution could not be read: {}", error::chain(&error)),
        }
        if !backoff.pause().await {
            return None;
        }
    }
}

/// Sends the results so far, unless they were sent.
pub(crate) async fn send_results(
    deps: &Deps,
    organization: OrganizationId,
    id: &CallId,
    deadline: Deadline,
) -> Result<()> {
    let until = deadline.at_most(ROW_WITHIN);
    let Some(call) = deps.calls.take_context(organization, id, until).await? else { return Ok(()) };
    if call.is_over() {
        note(deps, &call, &[], false, Err(OVER)).await;
    } else if let Some(message) = message(&call, earlier_calls::preface(deps, &call, deadline).await) {
        let told: Vec<String> = call.results.keys().cloned().collect();
        tell(deps, &call, Message { text: &message, late: false }, &told, deadline).await;
    }
    Ok(())
}

/// The agent does not know its caller. A redelivery comes minutes later.
pub(crate) fn count_untold(_: &Error) {
    telemetry::call_answered("incomplete");
}

/// Sends a message with the results of these executions into the conversation, with retries while the call does not take it
/// yet, and records the outcome.
async fn tell(deps: &Deps, call: &Call, message: Message<'_>, executions: &[String], deadline: Deadline) {
    let told = add_result_to_live_call(deps, call, message.text, false, deadline).await;
    if told.as_ref().is_err_and(|untold| untold.words != OVER && !untold.of_assistant) && !is_over(deps, call).await {
        telemetry::call_answered("incomplete");
    }
    let told = told.as_ref().copied().map_err(|untold| untold.words.as_str());
    note(deps, call, executions, message.late, told).await;
}

/// Sends a system message into the conversation, with retries while the call does not take it yet. `answers`: the model answers
/// at once.
///
/// # Errors
/// The reason.
pub(crate) async fn add_result_to_live_call(
    deps: &Deps,
    call: &Call,
    message: &str,
    answers: bool,
    deadline: Deadline,
) -> Result<(), Untold> {
    let told = match &call.control_url {
        Some(url) => insist(deps, call, url, (message, answers), deadline.at_most(TOLD_WITHIN)).await,
        None => Err(Untold::because("VAPI gave no address at which the call takes messages")),
    };
    told.inspect_err(|untold| {
        tracing::error!(
            call.id = %call.id,
            organization.id = %call.organization_id,
            agent.id = call.agent_id.map(display),
            "a message could not be sent to a call: {}",
            untold.chain
        );
    })
}

/// A message, and whether the other results went before it.
struct Message<'a> {
    text: &'a str,
    late: bool,
}

/// The reason why a call did not get a message: for people who look at the call, and for the log.
pub(crate) struct Untold {
    pub(crate) words: String,
    chain: String,
    /// The call may have taken it.
    pub(crate) uncertain: bool,
    /// The organization's assistant wants each message authenticated (`monitorPlan`).
    of_assistant: bool,
}

impl Untold {
    fn because(words: &str) -> Self {
        Self { words: words.to_owned(), chain: words.to_owned(), uncertain: false, of_assistant: false }
    }

    fn of(error: &upstream::Error) -> Self {
        let of_assistant = error.status() == Some(401);
        Self { words: error.public(), chain: error::chain(error), uncertain: false, of_assistant }
    }
}

async fn note(deps: &Deps, call: &Call, executions: &[String], late: bool, told: Result<(), &str>) {
    let noted = deps.calls.note_context(call.organization_id, &call.id, executions, late, told);
    if let Err(error) = noted.await {
        tracing::warn!(call.id = %call.id, "the outcome of a call's context could not be recorded: {}", error::chain(&error));
    }
}

async fn insist(
    deps: &Deps,
    call: &Call,
    url: &ControlUrl,
    (message, answers): (&str, bool),
    deadline: Deadline,
) -> Result<(), Untold> {
    let (mut backoff, mut tried) = (Backoff::new(PAUSE, LONGEST_PAUSE, deadline), 0);
    loop {
        let why = match deps.executor.services.call_control.add_message(url, message, answers, deadline).await {
            Ok(()) => return Ok(()),
            // The control URL answers 5xx while the call is being set up.
            Err(NotAccepted::Unknown(error)) if error.status().is_none_or(|status| status < 500) => {
                // It may have been taken, and sending it twice would be worse than not at all.
                return Err(Untold { uncertain: true, ..Untold::of(&error) });
            }
            Err(NotAccepted::Declined(error)) => return Err(Untold::of(&error)),
            Err(NotAccepted::NotThere(error) | NotAccepted::Unknown(error)) => Untold::of(&error),
        };
        if !backoff.pause().await {
            return Err(why);
        }
        tried += 1;
        if tried > ATTEMPTS_BEFORE_LOOKING && is_over(deps, call).await {
            return Err(Untold::because(OVER));
        }
    }
}

async fn is_over(deps: &Deps, call: &Call) -> bool {
    let found: Result<Option<Unowned<Call>>, Error> = deps.calls.find(&call.id).await;
    let row = found.ok().flatten().and_then(|row| row.for_owner(call.organization_id));
    row.is_some_and(|row| row.is_over())
}

/// The preface, then the heading and a line for each tool with a result, in the order in which the tools were queued.
fn message(call: &Call, preface: Option<String>) -> Option<String> {
    let found =
        call.on_call_start.iter().filter_map(|tool| call.results.get(&tool.execution_id.to_string())?.as_deref());
    let (mut message, mut lines, mut left_out) = (HEADING.to_owned(), 0, 0);
    for line in found {
        if message.len() + 1 + line.len() > MESSAGE_BUDGET {
            left_out += 1;
        } else {
            message.push('\n');
            message.push_str(line);
        }
        lines += 1;
    }
    if left_out > 0 {
        message.push('\n');
        message.push_str(&instead_of(format_args!("{left_out} more results")));
    }
    let results = (lines > 0).then_some(message);
    match (preface, results) {
        (Some(preface), Some(results)) => Some(format!("{preface}\n{results}")),
        (preface, results) => results.or(preface),
    }
}

/// The JSON of a result, cut so that its line keeps the budget; `None` for a failure.
pub(crate) fn json(label: &str, answer: &Map<String, Value>) -> Option<String> {
    let result = answer.get("result").filter(|_| answer.get("success") == Some(&Value::Bool(true)))?;
    Some(fit(result.clone(), LINE_BUDGET.saturating_sub(label.len() + 2)).to_string())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn line(label: &str, result: &Value) -> String {
        let answer = json!({"success": true, "result": result});
        StartedTool::line(label, super::json(label, answer.as_object().unwrap()).unwrap())
    }

    #[test]
    fn a_line_is_label_and_json() {
        assert_eq!(line("CRM\nlook-up", &json!({"name": "Ana"})), "CRM look-up: {\"name\":\"Ana\"}");
    }

    proptest! {
        #[test]
        fn a_line_is_json_within_its_budget(text in "\\PC{0,200}", times in 1_usize..80) {
            for value in [json!(text.repeat(times)), json!(vec![text.clone(); times]), json!({"a": text.repeat(times), "b": 1})] {
                let line = line("label", &value);
                prop_assert!(line.len() <= LINE_BUDGET);
                let json = line.strip_prefix("label: ").unwrap();
                prop_assert!(serde_json::from_str::<Value>(json).is_ok(), "{}", json);
            }
        }
    }
}
