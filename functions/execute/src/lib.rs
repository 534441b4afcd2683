//! VAPI calls a tool in the middle of a conversation.
//!
//! An `async` tool is put on the queue of `run-tool`, and the model told so.

mod bearer;
#[doc(hidden)]
pub mod fuzzing;
mod invocation;
mod numbers;
mod read_back;

use std::time::Duration;

use futures_util::{future::join_all, join};
use shared::{
    Deadline, Error, Result,
    accounts::Accounts,
    actions::{ANSWER_AT_LATEST, ANSWER_WITHIN, ActionTool, ToolTokens},
    clients::Queue,
    described::{Described, Json, Schemas, json, reference},
    error,
    execution::{self, ClaimedAhead, Executed, ExecutionRequest, Executor},
    http::{self, Found, Id, Operation, Reply, Request, Sent, operation},
    models::{
        AuthenticatedTool, Call, Change, ExecutionOrigin, Fault, Intent, PhoneNumber, Queued, Tool, ToolId, Unowned,
    },
    platform::Parts,
    store::{Calls, Intents, Tools},
    tool::{CallContext, Conversation, Subject, ToolOutcome},
};

use crate::invocation::{Invocation, Metadata, Requested, ToolCallResults};

shared::routes!(Deps, "calls": execute_tool);

#[derive(Parts)]
pub struct Deps {
    pub tools: Tools,
    pub calls: Calls,
    pub tokens: ToolTokens,
    /// For the bearer of VAPI's credential.
    pub accounts: Accounts,
    #[part(platform.executor_in_calls()?)]
    pub executor: Executor,
    /// For changes at VAPI that executions ask for.
    pub intents: Intents,
    /// Where asynchronous executions wait for `run-tool`.
    #[part(platform.executions_queue()?)]
    pub executions: Queue<Queued>,
}

/// A call by VAPI: the arguments of an `apiRequest` tool, or a `tool-calls` message.
struct ToolCall;

/// Run a tool in a call
///
/// VAPI calls this. It is let in by the tool's own token in `metadata.token`, which VAPI adds to the model's arguments,
/// or by the bearer token of the credential that VAPI was set up with.
///
/// VAPI shows a model only the body of a 200, so every outcome of the tool is a 200; only an unauthorized caller gets
/// another status.
///
/// An effect happens once. The same effect requested again in the same call within two minutes is answered from the
/// record, regardless of the order and notation of its arguments, unless it was read back and confirmed again after
/// the caller had confirmed another effect. The same tool call delivered again, which its id tells, is answered from
/// the record for five days. VAPI's `apiRequest` has no such id: there only the two minutes tell a redelivery from a
/// repetition. Without the id of the call the caller's number stands for the call; without both, each request is by
/// itself. An effect whose outcome is unknown is never repeated. Of a message to several people each is an effect: a
/// corrected or longer list reaches only its new recipients, and the answer has the outcome for each.
///
/// The caller's and the called number are VAPI's word. A call that came in through us has the numbers Twilio gave; of
/// any other the called number must be one of the organization's. In a `tool-calls` message they are those of the
/// message: a `metadata` among the model's arguments counts only with the tool's token, and what it says only where the
/// message says nothing.
///
/// - 200: The tool's outcome, in the form of the request.
///
/// ```json,arguments: What VAPI sends for an apiRequest tool
/// {"text": "Your appointment is on Monday at nine.",
///  "metadata": {"callerPhoneNumber": "+14155550101", "calledPhoneNumber": "+15005550006",
///   "callId": "0193aa11-2b3c-7d4e-8f50-617283940a1b", "token": "8c7dKq0F3vJ1s5yXbZ2mWnR9tPa4LhE6uGiOoUeQxYk"}}
/// ```
/// ```json,nested_arguments: What earlier clients send
/// {"parameters": {"text": "Your appointment is on Monday at nine."},
///  "metadata": {"callerPhoneNumber": "+14155550101", "calledPhoneNumber": "+15005550006",
///   "callId": "0193aa11-2b3c-7d4e-8f50-617283940a1c", "token": "8c7dKq0F3vJ1s5yXbZ2mWnR9tPa4LhE6uGiOoUeQxYk"}}
/// ```
/// ```json,tool_calls: What VAPI sends for a function tool, with the bearer of its credential
/// {"message": {"type": "tool-calls",
///   "toolCallList": [{"id": "call_VIPvQq1KrYbI", "type": "function", "function":
///    {"name": "send_confirmation", "arguments": {"text": "Your appointment is on Monday at nine."}}}],
///   "call": {"id": "0193aa11-2b3c-7d4e-8f50-617283940a1d"},
///   "customer": {"number": "+14155550101"}, "phoneNumber": {"number": "+15005550006"}}}
/// ```
/// ```json,200 succeeded
/// {"success": true, "result": {"sent": 1, "summary": "Sent to +14155550101.",
///  "recipients": [{"to": "+14155550101", "state": "sent", "status": "queued", "sid": "SM00000000000000000000000000000000"}]}}
/// ```
/// ```json,200 failed
/// {"success": false, "error": "Not sent to +14155550101 (this person has unsubscribed from messages)."}
/// ```
/// ```json,200 tool_calls
/// {"results": [
///  {"toolCallId": "call_VIPvQq1KrYbI", "name": "send_confirmation", "result": "{\"success\":true,\"result\":{\"sent\":1}}"},
///  {"toolCallId": "call_VIPvQq1KrYbJ", "name": "send_confirmation",
///   "error": "The message has no text; call the tool again with a text."}]}
/// ```
#[operation(POST "/api/tools/{id}/execute", by(toolToken), also(401 = NotItsToken, 404, 429, 500, 502, 503, 504), resource(Execute), throttle(Vapi), answers(describe_outcomes))]
async fn execute_tool(deps: &Deps, found: &Found<'_>, id: Id<ToolId>, body: Sent<ToolCall>) -> Result<Reply> {
    let deadline = found.deadline.at_most(ANSWER_WITHIN);
    let executor = &deps.executor.answering_by(found.deadline.at_most(ANSWER_AT_LATEST));
    let id = id.0;
    let invocation = Invocation::read(body.json()?)?;
    let verified = verify(deps, id, found.request, &invocation).await?;

    // One round trip: the tool, the call, the number, and the claim on the effect, beside each other.
    let (tool, call, line, claims) = join!(
        deps.tools.of_token(verified),
        find_call(deps, &invocation.metadata),
        find_line(deps, &invocation.metadata),
        join_all((0..invocation.requested.len()).map(|index| claim_ahead(deps, id, &invocation, index, deadline))),
    );
    let subject = Subject::of(invocation.metadata.call_id.as_ref(), None, "");
    let (row, tool) = match tool.and_then(|row| Ok((ActionTool::of_row(&row)?, row))) {
        Ok((tool, row)) => (row, tool),
        Err(error) => {
            deps.executor.release(claims.into_iter().flatten()).await;
            if matches!(error, Error::NotFound(_)) {
                return Err(error);
            }
            execution::report(&error, id, None, subject, ExecutionOrigin::Conversation);
            return invocation.answer(vec![execution::unavailable().answer; invocation.requested.len()]);
        }
    };
    let organization = row.organization_id;
    let numbers =
        numbers::verify(&deps.executor.services.phone_numbers, organization, &invocation.metadata, call, line).await;
    if let Err(refused) = &numbers {
        execution::report(refused, id, Some(organization), subject, ExecutionOrigin::Conversation);
    }
    let nothing_known = Conversation::default();
    let conversation = numbers.as_ref().unwrap_or(&nothing_known);
    let executions = invocation.requested.iter().zip(claims).map(|(requested, claim)| {
        let request = ExecutionRequest::new(requested.id, &requested.arguments);
        let refused = refused(&tool, &invocation, requested, numbers.as_ref().err());
        let context = CallContext {
            organization,
            user: None,
            subject: invocation.subject(requested),
            automation: None,
            delivery: requested.tool_call_id(),
            conversation,
            trigger: ExecutionOrigin::Conversation,
            refused: None,
            deadline,
        };
        let (tool, row) = (&tool, &row);
        async move {
            let confirmed = match refused {
                None => read_back::confirmed(deps, row, tool, request, &context).await,
                Some(refused) => Err(Box::new(refused)),
            };
            match confirmed {
                Err(told) => executor.skip(tool, request, &context, claim, *told).await,
                Ok(request) if row.is_async => {
                    executor.enqueue(&deps.executions, row, tool, request, &context, claim).await
                }
                Ok(request) => executor.execute(tool, request, &context, claim).await,
            }
        }
    });
    let executed = join_all(executions).await;
    let derives = executed.iter().any(|executed| contradicts_speech(&row, executed));
    let (answers, history): (Vec<_>, Vec<_>) =
        executed.into_iter().map(|executed| (executed.outcome.answer, executed.execution)).unzip();
    let (executor, intents) = (executor.clone(), deps.intents.clone());
    Ok(invocation.answer(answers)?.afterwards(async move {
        executor.record(&history).await;
        if derives {
            derive_speech(&intents, &row).await;
        }
    }))
}

/// Whether what callers hear at the start of the tool may be wrong by now. One of sixteen executions is looked at.
fn contradicts_speech(row: &Tool, executed: &Executed) -> bool {
    let looked_at = executed.execution.id().to_string().ends_with('0');
    let ran = !row.is_async && row.confirms().is_none() && executed.execution.counts_for().is_some();
    let took = Duration::from_millis(executed.duration_ms);
    looked_at && ran && row.speech().contradicts(row.spoken_at_start.as_ref(), row.created_at, took)
}

/// Has `settle` derive it anew, and tell VAPI.
async fn derive_speech(intents: &Intents, tool: &Tool) {
    let external_tool_id = tool.external_tool_id.clone();
    let change = Change::UpdateTool { tool_id: tool.id, name: None, external_tool_id };
    if let Err(error) = intents.open(&Intent::new(tool.organization_id, change, Duration::ZERO)).await {
        tracing::warn!(tool.id = %tool.id, "the speech of a tool is not derived anew: {}", error::chain(&error));
    }
}

impl Described for ToolCall {
    fn schema(_: &mut Schemas) -> Json {
        json!({"anyOf": (["ToolCallsMessage", "ToolArguments"].map(reference))})
    }
}

/// The outcomes of the tools, in the form of the request.
fn describe_outcomes(operation: &mut Operation, schemas: &mut Schemas) {
    let several = ToolCallResults::schema(schemas);
    operation.answers(200, "", json!({"oneOf": [reference("Succeeded"), reference("Failed"), several]}));
}

/// The answer to a call that is not carried out.
fn refused(
    tool: &ActionTool,
    invocation: &Invocation,
    requested: &Requested,
    not_verified: Option<&Error>,
) -> Option<ToolOutcome> {
    let name = &tool.spec.name;
    if invocation.names_another_tool(requested, name) {
        return Some(ToolOutcome::failed(format!("Only the tool {name} can be called here.")).at_fault(Fault::Model));
    }
    not_verified
        .map(numbers::sentence)
        .or_else(|| requested.unreadable.as_deref().map(|why| ToolOutcome::failed(why).at_fault(Fault::Model)))
}

/// The tool's own token, for which nothing is read, or the bearer of VAPI's credential.
async fn verify(deps: &Deps, id: ToolId, request: &Request, invocation: &Invocation) -> Result<AuthenticatedTool> {
    if let Some(token) = &invocation.metadata.token {
        return deps.tokens.verify(id, token).await;
    }
    bearer::verify(deps, id, http::bearer(request).ok_or(Error::Unauthenticated)?).await
}

async fn find_call(deps: &Deps, metadata: &Metadata) -> Result<Option<Unowned<Call>>> {
    match &metadata.call_id {
        Some(id) => deps.calls.find(id).await,
        None => Ok(None),
    }
}

async fn find_line(deps: &Deps, metadata: &Metadata) -> Result<Option<Unowned<PhoneNumber>>> {
    match &metadata.called {
        Some(number) => deps.executor.services.phone_numbers.by_number(number).await,
        None => Ok(None),
    }
}

/// Claims the effect of an execution before the tool is known, where that can be done.
async fn claim_ahead(
    deps: &Deps,
    id: ToolId,
    invocation: &Invocation,
    index: usize,
    deadline: Deadline,
) -> Option<ClaimedAhead> {
    let arguments = invocation.claimable(index)?;
    let requested = invocation.requested.get(index)?;
    let (subject, delivery) = (invocation.subject(requested), requested.tool_call_id());
    Some(deps.executor.claim_ahead(id, subject, delivery, arguments, deadline).await)
}
