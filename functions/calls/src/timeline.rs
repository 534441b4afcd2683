//! The timeline of a call, in order of time: `{at, event, …}`.

use std::{collections::BTreeMap, time::Duration};

use serde::Serialize;
use shared::{
    described::Described,
    models::{
        BackgroundResult, Call, CallDirection, CallId, Execution, ExecutionId, ExecutionOrigin, ExecutionStatus, Fault,
        StartedTool, Timestamp, ToolId, TransferOutcome,
    },
};

use crate::events::PLACES;

/// One thing that happened in a call.
#[derive(Debug, Serialize, Described)]
#[schema(name = "CallMoment")]
pub(crate) struct TimelineEntry {
    at: Timestamp,
    #[serde(flatten)]
    event: Event,
}

#[derive(Debug, Serialize, Described)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Event {
    /// Twilio's request.
    CallReceived,
    /// A tool placed the call.
    CallPlaced,
    /// VAPI's TwiML was ready.
    TwimlAnswered,
    CallConnected,
    /// For the first time in the call.
    AgentSpoke,
    /// For the first time in the call.
    CallerSpoke,
    /// The agent did not answer for a while, for the first time in the call.
    AgentHung,
    ToolQueued(Run),
    ToolStarted(Run),
    ToolFinished {
        #[serde(flatten)]
        run: Run,
        status: ExecutionStatus,
        duration_ms: u64,
        /// Why it did not succeed, as the model was told.
        error: Option<String>,
        fault: Option<Fault>,
    },
    /// The result was a variable of the call from its creation.
    VariableSet {
        #[serde(flatten)]
        run: Run,
        /// The variable of the call with the result.
        name: String,
    },
    /// The model got the results of the tools of the call's start.
    ContextInjected,
    /// The model got a late result by itself.
    ResultInjected(Run),
    /// The model did not get the result of a background tool.
    ResultFailed {
        #[serde(flatten)]
        run: Run,
        reason: String,
        /// The execution that sends it instead (`if_call_over`); null without one.
        sent_by: Option<ExecutionId>,
    },
    /// The call did not accept the results of its call-start tools.
    ContextFailed {
        reason: String,
    },
    CallTransferred {
        /// The kind of destination, if VAPI reported it.
        #[schema(r#enum = PLACES)]
        to: Option<String>,
    },
    /// A destination of a transfer with `if_unanswered` rang.
    DestinationRang {
        /// `number` or `sip`.
        to: String,
        /// Null while it rings; `connected` while the callee is on the line.
        outcome: Option<TransferOutcome>,
    },
    /// A transfer with `if_unanswered` is over.
    TransferEnded {
        outcome: TransferOutcome,
        /// The call in which the caller is back with the agent.
        returned_as: Option<CallId>,
    },
    CallEnded {
        /// In VAPI's words.
        reason: Option<String>,
    },
    CostReported {
        /// In US dollars.
        #[schema(minimum = 0)]
        cost: f64,
        /// Costs by item: `transport`, `stt`, `llm`, `tts`, `vapi`, …; empty if VAPI did not say.
        parts: BTreeMap<String, f64>,
    },
}

#[derive(Debug, Clone, Serialize, Described)]
struct Run {
    /// The run's id in the history.
    execution_id: ExecutionId,
    tool_id: ToolId,
    /// The tool's, as it was when the start of the call started it; null for other runs.
    label: Option<String>,
    /// The cause of the run.
    trigger: ExecutionOrigin,
}

impl Run {
    fn set_off(tool: &StartedTool) -> Self {
        Self {
            execution_id: tool.execution_id,
            tool_id: tool.tool_id,
            label: Some(tool.label.clone()),
            trigger: ExecutionOrigin::CallStart,
        }
    }
}

impl Event {
    const fn rank(&self) -> u8 {
        match self {
            Self::CallReceived | Self::CallPlaced => 0,
            Self::TwimlAnswered => 1,
            Self::CallConnected => 2,
            Self::ToolQueued(_) => 3,
            Self::ToolStarted(_) => 4,
            Self::ToolFinished { .. } => 5,
            Self::VariableSet { .. } => 6,
            Self::ContextInjected => 7,
            Self::ResultInjected(_) | Self::ResultFailed { .. } => 8,
            Self::ContextFailed { .. } => 9,
            Self::AgentSpoke => 10,
            Self::CallerSpoke => 11,
            Self::AgentHung => 12,
            Self::CallTransferred { .. } => 13,
            Self::DestinationRang { .. } => 14,
            Self::TransferEnded { .. } => 15,
            Self::CallEnded { .. } => 16,
            Self::CostReported { .. } => 17,
        }
    }
}

/// The clocks of two workers may differ by less than this.
const CLOCKS_DIFFER: Duration = Duration::from_secs(2);
const OVER: &str = "the call is over";
const INTERRUPTED: &str = "the telling was interrupted, and it is not known whether the model was told";

/// `call` is `None` for a call that did not come in through us; `runs` are newest first. `elsewhere`: other runs whose results came
/// to this call, as to one in which the caller is back.
pub(crate) fn timeline(call: Option<&Call>, runs: &[Execution], elsewhere: &[Execution]) -> Vec<TimelineEntry> {
    let mut moments = Vec::new();
    let mut add = |at: Timestamp, event: Event| moments.push(TimelineEntry { at, event });
    let started = call.map(|call| call.on_call_start.as_slice()).unwrap_or_default();
    if let Some(call) = call {
        of_call(call, &mut add);
        for tool in started {
            // The row of an execution has the time of its message; until then the TwiML's time stands in.
            let queued_at = runs.iter().find(|run| run.id == tool.execution_id).and_then(|run| run.queued_at);
            add(queued_at.or(call.twiml_at).unwrap_or(call.created_at), Event::ToolQueued(Run::set_off(tool)));
        }
    }
    for run in runs.iter().rev() {
        of_run(run, started.iter().find(|tool| tool.execution_id == run.id), &mut add);
    }
    if let Some(call) = call {
        of_untold_context(call, runs, &mut add);
        let here = runs.iter().rev().filter(|run| call.background.contains(&run.id.to_string()));
        for run in here.chain(elsewhere) {
            of_result(call, run, &mut add);
        }
    }
    moments.sort_by_key(|moment| (moment.at, moment.event.rank()));
    moments
}

fn of_call(call: &Call, add: &mut impl FnMut(Timestamp, Event)) {
    let begun = match call.direction {
        CallDirection::Inbound => Event::CallReceived,
        CallDirection::Outbound => Event::CallPlaced,
    };
    add(call.created_at, begun);
    if let Some(at) = call.twiml_at {
        add(at, Event::TwimlAnswered);
    }
    let firsts = [
        (call.connected_at, Event::CallConnected),
        (call.agent_spoke_at, Event::AgentSpoke),
        (call.caller_spoke_at, Event::CallerSpoke),
        (call.agent_hung_at, Event::AgentHung),
    ];
    for (at, event) in firsts {
        if let Some(at) = at {
            add(at, event);
        }
    }
    for transfer in &call.transfers {
        add(transfer.at, Event::CallTransferred { to: transfer.to.clone() });
    }
    if let Some(transfer) = &call.transfer {
        for rung in transfer.rung_so_far() {
            add(rung.at, Event::DestinationRang { to: rung.to, outcome: rung.outcome });
        }
        if let (Some(at), Some(outcome)) = (transfer.ended_at, transfer.outcome) {
            add(at, Event::TransferEnded { outcome, returned_as: transfer.returned_as.clone() });
        }
    }
    if let Some(at) = call.context_injected_at {
        add(at, Event::ContextInjected);
    }
    for variable in &call.variables {
        let tool = call.on_call_start.iter().find(|tool| tool.execution_id == variable.execution_id);
        if let Some(tool) = tool {
            let set = Event::VariableSet { run: Run::set_off(tool), name: variable.name.clone() };
            add(call.twiml_at.unwrap_or(call.created_at), set);
        }
    }
    for told in &call.told_later {
        let tool = call.on_call_start.iter().find(|tool| tool.execution_id == told.execution_id);
        if let Some(tool) = tool {
            add(told.at, Event::ResultInjected(Run::set_off(tool)));
        }
    }
    if let Some(reason) = &call.context_error {
        let at = call.context_failed_at.or(call.context_taken_at).unwrap_or(call.updated_at);
        add(at, Event::ContextFailed { reason: reason.clone() });
    }
    if let Some(at) = call.ended_at {
        add(at, Event::CallEnded { reason: call.ended_reason.clone() });
    }
    // Rows of an older version lack the time of the report.
    if let (Some(cost), Some(at)) = (call.cost, call.cost_at.or(call.ended_at)) {
        add(at, Event::CostReported { cost, parts: call.cost_parts.clone() });
    }
}

/// Results of start tools of a call that is over, without a record that the model was told: the worker stopped on the way.
fn of_untold_context(call: &Call, runs: &[Execution], add: &mut impl FnMut(Timestamp, Event)) {
    let (Some(ended), Some(taken)) = (call.ended_at, call.context_taken_at) else { return };
    if call.context_error.is_some() {
        return;
    }
    let is_told = |run: &Execution| {
        call.variables.iter().any(|variable| variable.execution_id == run.id)
            || call.told_later.iter().any(|told| told.execution_id == run.id)
    };
    let to_tell = runs.iter().rev().filter(|run| {
        run.trigger == ExecutionOrigin::CallStart && run.status == ExecutionStatus::Succeeded && !is_told(run)
    });
    let (in_time, late): (Vec<&Execution>, Vec<&Execution>) =
        to_tell.partition(|run| done(run) <= taken.plus(CLOCKS_DIFFER));
    if call.context_injected_at.is_none() && (call.preface.is_some() || !in_time.is_empty()) {
        add(taken, Event::ContextFailed { reason: INTERRUPTED.to_owned() });
    }
    for run in late {
        let reason = if done(run) >= ended { OVER } else { INTERRUPTED };
        let tool = call.on_call_start.iter().find(|tool| tool.execution_id == run.id);
        if let Some(tool) = tool {
            let untold = Event::ResultFailed { run: Run::set_off(tool), reason: reason.to_owned(), sent_by: None };
            add(done(run), untold);
        }
    }
}

fn done(run: &Execution) -> Timestamp {
    run.started_at.plus(Duration::from_millis(run.duration_ms))
}

/// The result of a background tool: told, not told, or none of both while the call goes on.
fn of_result(call: &Call, execution: &Execution, add: &mut impl FnMut(Timestamp, Event)) {
    let run = Run { execution_id: execution.id, tool_id: execution.tool_id, label: None, trigger: execution.trigger };
    match call.background_told.iter().find(|told| told.execution_id == execution.id) {
        Some(BackgroundResult { at, error: None, .. }) => add(*at, Event::ResultInjected(run)),
        Some(BackgroundResult { at, error: Some(reason), sent_by, .. }) => {
            add(*at, Event::ResultFailed { run, reason: reason.clone(), sent_by: *sent_by });
        }
        None => {
            if let Some(ended) = call.ended_at {
                let reason = OVER.to_owned();
                add(done(execution).max(ended), Event::ResultFailed { run, reason, sent_by: None });
            }
        }
    }
}

fn of_run(execution: &Execution, set_off: Option<&StartedTool>, add: &mut impl FnMut(Timestamp, Event)) {
    let run = Run {
        execution_id: execution.id,
        tool_id: execution.tool_id,
        label: set_off.map(|tool| tool.label.clone()),
        trigger: execution.trigger,
    };
    if let Some(at) = execution.queued_at
        && set_off.is_none()
    {
        add(at, Event::ToolQueued(run.clone()));
    }
    if execution.status == ExecutionStatus::Queued {
        return;
    }
    add(execution.started_at, Event::ToolStarted(run.clone()));
    let finished = Event::ToolFinished {
        run,
        status: execution.status,
        duration_ms: execution.duration_ms,
        error: execution.error.clone(),
        fault: execution.fault,
    };
    add(done(execution), finished);
}

#[cfg(test)]
mod tests {
    use std::slice;

    use serde_json::{Value, json};

    use super::*;

    const ID: &str = "01930f5e-6a1b-7c2d-8e3f-4a5b6c7d8e9f";
    const OTHER: &str = "01930f5e-6a1b-7c2d-8e3f-4a5b6c7d8ea0";

    fn at(millis: u32) -> String {
        format!("2026-11-20T16:20:52.{millis:03}Z")
    }

    #[expect(clippy::needless_pass_by_value, reason = "json! is written at the call")]
    fn call(more: Value) -> Call {
        let mut row = json!({
            "id": "call-1", "organization_id": ID, "caller_phone_number": "+14155550101",
            "called_phone_number": "+15005550006", "created_at": at(0), "updated_at": at(900),
        });
        row.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(row).unwrap()
    }

    #[expect(clippy::needless_pass_by_value, reason = "json! is written at the call")]
    fn run(id: &str, more: Value) -> Execution {
        let mut row = json!({
            "id": id, "organization_id": ID, "tool_id": ID, "call_id": "call-1", "status": "succeeded",
            "started_at": at(100), "duration_ms": 0, "expires_at": 1_900_000_000,
        });
        row.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(row).unwrap()
    }

    fn shown(call: Option<&Call>, runs: &[Execution]) -> Vec<Value> {
        serde_json::from_value(serde_json::to_value(timeline(call, runs, &[])).unwrap()).unwrap()
    }

    #[test]
    fn events_of_one_millisecond_are_in_the_order_of_a_call() {
        let call = call(json!({
            "created_at": at(100), "twiml_at": at(100), "context_injected_at": at(100), "ended_at": at(100),
            "on_call_start": [{"execution_id": ID, "tool_id": ID, "label": "CRM"}],
        }));
        let run = run(ID, json!({"trigger": "call_start", "queued_at": at(100)}));
        let events: Vec<Value> = shown(Some(&call), &[run]).into_iter().map(|moment| moment["event"].clone()).collect();
        let expected = [
            "call_received",
            "twiml_answered",
            "tool_queued",
            "tool_started",
            "tool_finished",
            "context_injected",
            "call_ended",
        ];
        assert_eq!(events, expected);
    }

    #[test]
    fn a_tool_that_has_not_run_yet_is_queued_and_no_more() {
        let call =
            call(json!({"twiml_at": at(40), "on_call_start": [{"execution_id": ID, "tool_id": ID, "label": "CRM"}]}));
        let waits = run(OTHER, json!({"status": "queued", "queued_at": at(500), "started_at": at(501)}));
        let expected = [
            json!({"at": at(0), "event": "call_received"}),
            json!({"at": at(40), "event": "twiml_answered"}),
            json!({
                "at": at(40), "event": "tool_queued", "execution_id": ID, "tool_id": ID, "label": "CRM",
                "trigger": "call_start",
            }),
            json!({
                "at": at(500), "event": "tool_queued", "execution_id": OTHER, "tool_id": ID, "label": null,
                "trigger": "conversation",
            }),
        ];
        assert_eq!(shown(Some(&call), &[waits]), expected);
    }

    #[test]
    fn a_context_that_failed_says_when_and_why() {
        let failed =
            json!({"context_taken_at": at(300), "context_error": "the call is over", "context_failed_at": at(800)});
        let moments = shown(Some(&call(failed)), &[]);
        assert_eq!(moments[1], json!({"at": at(800), "event": "context_failed", "reason": "the call is over"}));
        let older = json!({"context_taken_at": at(300), "context_error": "the call is over"});
        assert_eq!(shown(Some(&call(older)), &[])[1]["at"], at(300));
    }

    #[test]
    fn a_telling_that_was_interrupted_is_told_when_the_call_is_over() {
        let taken = |more: Value| {
            let mut row = json!({
                "context_taken_at": at(300), "ended_at": "2026-11-20T16:21:00.000Z",
                "on_call_start": [{"execution_id": ID, "tool_id": ID, "label": "CRM"}, {"execution_id": OTHER, "tool_id": ID, "label": "Notices"}],
            });
            row.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            call(row)
        };
        let in_time = run(ID, json!({"trigger": "call_start"}));
        let late = |second: u32| {
            run(OTHER, json!({"trigger": "call_start", "started_at": format!("2026-11-20T16:20:{second}.000Z")}))
        };
        let failures = |call: &Call, runs: &[Execution]| -> Vec<String> {
            let failed = |moment: &&Value| moment["event"].as_str().unwrap().ends_with("_failed");
            let words =
                |moment: &Value| format!("{} {}: {}", moment["at"], moment["event"], moment["reason"]).replace('"', "");
            shown(Some(call), runs).iter().filter(failed).map(words).collect()
        };
        let unknown = "the telling was interrupted, and it is not known whether the model was told";
        assert_eq!(
            failures(&taken(json!({})), slice::from_ref(&in_time)),
            [format!("{} context_failed: {unknown}", at(300))]
        );
        assert_eq!(failures(&taken(json!({"preface": "x"})), &[]), [format!("{} context_failed: {unknown}", at(300))]);
        let told = json!({"context_injected_at": at(400)});
        assert_eq!(failures(&taken(told.clone()), slice::from_ref(&in_time)), [""; 0]);
        assert_eq!(
            failures(&taken(told.clone()), &[late(56), in_time.clone()]),
            [format!("2026-11-20T16:20:56.000Z result_failed: {unknown}")]
        );
        assert_eq!(
            failures(
                &taken(json!({"context_injected_at": at(400), "ended_at": "2026-11-20T16:20:57.000Z"})),
                &[late(58)]
            ),
            ["2026-11-20T16:20:58.000Z result_failed: the call is over"]
        );
        let later = json!({"context_injected_at": at(400), "told_later": [{"execution_id": OTHER, "at": at(600)}]});
        assert_eq!(failures(&taken(later), &[late(56)]), [""; 0]);
        assert_eq!(failures(&taken(told.clone()), &[late(53)]), [""; 0], "another worker's clock may be late");
        let failed = run(ID, json!({"trigger": "call_start", "status": "failed"}));
        assert_eq!(failures(&taken(json!({})), &[failed]), [""; 0], "there was nothing to tell");
        assert_eq!(failures(&taken(json!({"ended_at": null})), &[in_time]), [""; 0], "the call goes on");
    }
}
