//! Shows calls with their timelines and receipts, deletes them, and takes VAPI's reports.
//!
//! A call that did not come in through us has no row; only the executions of its tools show it.

mod events;
#[doc(hidden)]
pub mod fuzzing;
mod timeline;
mod view;

use futures_util::join;
use shared::{
    Error, Result,
    accounts::Accounts,
    automation::{AnsweredCallQueue, EndedCallQueue},
    http::{Access, Asked, Gone, History, Id, Newest, Number, Shown, Wanted, YesNo, operation},
    models::{AgentId, CallId, CallStatus, Execution, ExecutionId, ExecutionView, OrganizationId},
    platform::Parts,
    receipts::{CallReceipt, CallRecord, Receipts},
    spoken_claims::ClaimChecks,
    store::{CallFilter, Calls, DoNotCallList, Erasure, ExecutionFilter, Executions, Page},
};

use crate::{
    timeline::timeline,
    view::{CallView, CallWithTimeline},
};

shared::routes!(
    Deps,
    "history": list_calls,
    get_call,
    get_call_receipt,
    delete_call,
    list_call_executions,
    events::take_vapi_event,
);

#[derive(Parts)]
pub struct Deps {
    pub access: Access,
    pub calls: Calls,
    pub executions: Executions,
    pub receipts: Receipts,
    pub ended_calls: EndedCallQueue,
    pub answered_calls: AnsweredCallQueue,
    pub do_not_call: DoNotCallList,
    pub erasure: Erasure,
    pub claims: ClaimChecks,
    /// For the bearer of VAPI's credential.
    pub accounts: Accounts,
}

/// List calls
///
/// The calls that came in through us or that our tools placed, newest first. Members of the organization see who called: the numbers are shown as they
/// are. `failed`: only calls with a tool that did not succeed.
///
/// - 200: A page of calls.
///
/// ```json,200
/// {"items": [{"id": "0193aa11-2b3c-7d4e-8f50-617283940a1b", "call_sid": "CA00000000000000000000000000000001", "direction": "inbound",
///  "agent_id": "01930f5e-6a1b-7c2d-8e3f-4a5b6c7d8ea1", "phone_number_id": "01930f5e-6a1b-7c2d-8e3f-4a5b6c7d8ea2",
///  "caller_phone_number": "+14155550101", "called_phone_number": "+15005550006", "status": "ended",
///  "created_at": "2026-02-27T10:10:58.004Z", "ended_at": "2026-02-27T10:13:20.000Z",
///  "ended_reason": "customer-ended-call", "duration_seconds": 140.5, "cost": 0.12,
///  "failed_tools": 1, "returned_from": null, "returned_as": null,
///  "claim_check": null}], "next_cursor": null}
/// ```
#[operation(GET "/api/{slug}/calls", Viewer)]
async fn list_calls(
    deps: &Deps,
    asked: &Asked<'_>,
    created: Newest,
    status: Wanted<CallStatus>,
    agent: Wanted<AgentId>,
    number: Wanted<Number>,
    failed: Wanted<YesNo>,
) -> Result<Page<CallView>> {
    let wanted = CallFilter {
        status: status.0,
        agent: agent.0,
        number: number.0.map(|Number(number)| number),
        failed: failed.0.is_some_and(|YesNo(failed)| failed),
    };
    let page = deps.calls.page(asked.organization(), &created.0, &wanted).await?;
    Ok(page.map(CallView::from))
}

/// Get a call with its timeline
///
/// The timeline is in order of time. The runs in it are redacted and kept as long as those of the history; of more than 1000,
/// the newest 1000 are shown.
///
/// A call that came in at VAPI and not through us is known by the runs of the organization's tools in it, as long as those are
/// kept: then its timeline is these runs, and everything else is null.
///
/// - 200: The call.
///
/// ```json,200
/// {"id": "0193aa11-2b3c-7d4e-8f50-617283940a1b", "call_sid": "CA00000000000000000000000000000001", "direction": "inbound",
///  "agent_id": "01930f5e-6a1b-7c2d-8e3f-4a5b6c7d8ea1", "phone_number_id": "01930f5e-6a1b-7c2d-8e3f-4a5b6c7d8ea2",
///  "caller_phone_number": "+14155550101", "called_phone_number": "+15005550006", "status": "in-progress",
///  "created_at": "2026-02-27T10:10:58.004Z", "ended_at": null, "ended_reason": null, "duration_seconds": null,
///  "cost": null, "failed_tools": 0, "returned_from": null, "returned_as": null,
///  "claim_check": null, "timeline": [{"at": "2026-02-27T10:10:58.004Z", "event": "call_received"},
///  {"at": "2026-02-27T10:10:58.204Z", "event": "twiml_answered"}, {"at": "2026-02-27T10:10:58.205Z",
///  "event": "tool_queued", "execution_id": "0193aa11-2c3d-7e4f-8a51-61728394a1b2",
///  "tool_id": "01930f5e-6a1b-7c2d-8e3f-4a5b6c7d8e9f", "label": "Look up customer", "trigger": "call_start"},
///  {"at": "2026-02-27T10:10:58.240Z", "event": "tool_started", "execution_id": "0193aa11-2c3d-7e4f-8a51-61728394a1b2",
///  "tool_id": "01930f5e-6a1b-7c2d-8e3f-4a5b6c7d8e9f", "label": "Look up customer", "trigger": "call_start"},
///  {"at": "2026-02-27T10:10:58.452Z", "event": "tool_finished",
///  "execution_id": "0193aa11-2c3d-7e4f-8a51-61728394a1b2", "tool_id": "01930f5e-6a1b-7c2d-8e3f-4a5b6c7d8e9f",
///  "label": "Look up customer", "trigger": "call_start", "status": "succeeded", "duration_ms": 212, "error": null,
///  "fault": null},
///  {"at": "2026-02-27T10:10:58.611Z", "event": "context_injected"}], "timeline_complete": true}
/// ```
#[operation(GET "/api/{slug}/calls/{id}", Viewer)]
async fn get_call(deps: &Deps, asked: &Asked<'_>, id: Id<CallId>) -> Result<Shown<CallWithTimeline>> {
    let record = deps.receipts.record(asked.organization(), &id.0).await?;
    let elsewhere = results_of_other_calls(deps, asked, &record).await?;
    let timeline = timeline(record.call.as_ref(), &record.executions, &elsewhere);
    let call = record.call.map_or_else(|| CallView::from_executions(record.id), CallView::from);
    Ok(Shown(CallWithTimeline { call, timeline, timeline_complete: record.complete }))
}

/// The executions whose results came to this call and that are not among its own.
async fn results_of_other_calls(deps: &Deps, asked: &Asked<'_>, record: &CallRecord) -> Result<Vec<Execution>> {
    let background = record.call.iter().flat_map(|call| &call.background).filter_map(|id| id.parse().ok());
    let own = |id: &ExecutionId| record.executions.iter().any(|execution| execution.id == *id);
    let others: Vec<ExecutionId> = background.filter(|id| !own(id)).collect();
    deps.executions.get_many(asked.organization(), &others, asked.deadline).await
}

/// Get a call's receipt
///
/// The effects of the call's tools: done, failed, unknown, or requested and not done. It is made from our record of the tools,
/// not from the words of the call. Once the call is over, automations get it with the event `call.ended` of the service `Calls`.
///
/// - 200: The receipt.
///
/// ```json,200
/// {"call_id": "0193aa11-2b3c-7d4e-8f50-617283940a1b", "final": true, "complete": true,
///  "done": [{"execution_id": "0193aa11-2c3d-7e4f-8a51-61728394a1b2", "tool_id": "01930f5e-6a1b-7c2d-8e3f-4a5b6c7d8e9f",
///  "tool": "book_table", "label": "Book a table", "effect": "record", "arguments": {"guests": 4, "time": "19:30"}, "status": "succeeded",
///  "reason": null, "fault": null, "next_step": null, "at": "2026-02-27T10:11:58.240Z"}], "failed": [], "unknown": [],
///  "not_done": [], "looked_up": [], "tools_done": ["book_table"], "transfers": [], "returned_as": null}
/// ```
#[operation(GET "/api/{slug}/calls/{id}/receipt", Viewer)]
async fn get_call_receipt(deps: &Deps, asked: &Asked<'_>, id: Id<CallId>) -> Result<Shown<CallReceipt>> {
    let record = deps.receipts.record(asked.organization(), &id.0).await?;
    Ok(Shown(deps.receipts.receipt(asked.organization(), &record, asked.deadline).await?))
}

/// Delete a call
///
/// Deletes the call, the executions in it and the event of its end. Runs that this event began stay: delete them, or erase the
/// caller's number. A live call goes on: its later tools create new records, a caller's wish for no more calls is not noted,
/// and an unanswered transfer ends with the number's fallback. A 409 says that there was too little time for all of it: send
/// the request again.
///
/// - 204: It is gone.
#[operation(DELETE "/api/{slug}/calls/{id}", Admin, also(409), tag("privacy"))]
async fn delete_call(deps: &Deps, asked: &Asked<'_>, id: Id<CallId>) -> Result<Gone> {
    deps.erasure.call(asked.organization(), &id.0, asked.deadline).await?;
    tracing::info!(call.id = %id.0, "a call was deleted");
    Ok(Gone)
}

/// List a call's executions
///
/// As the history of a tool. A call that came in at VAPI and not through us is known by the runs of the organization's tools in
/// it, as long as those are kept.
#[operation(GET "/api/{slug}/calls/{id}/executions", Viewer)]
async fn list_call_executions(
    deps: &Deps,
    asked: &Asked<'_>,
    id: Id<CallId>,
    wanted: History,
) -> Result<Page<ExecutionView>> {
    let (organization, id) = (asked.organization(), id.0);
    let (call, runs) = join!(deps.calls.find(&id), deps.executions.of_call(organization, &id, &wanted.0));
    let (runs, is_whole) = runs?;
    let theirs = match call? {
        Some(call) => call.for_owner(organization).is_some(),
        None => !runs.items.is_empty() || !is_whole || has_executions(deps, organization, &id).await?,
    };
    if theirs { Ok(runs.map(ExecutionView::from)) } else { Err(Error::NotFound("call")) }
}

/// Whether a tool of the organization ran in the call.
async fn has_executions(deps: &Deps, organization: OrganizationId, call: &CallId) -> Result<bool> {
    let newest = ExecutionFilter::newest(1);
    let (page, is_whole) = deps.executions.of_call(organization, call, &newest).await?;
    Ok(!page.items.is_empty() || !is_whole)
}
