//! A call comes in. Twilio requests instructions, and waits 15 s at most.
//!
//! Twilio's form goes on to VAPI; meanwhile the agent's tools that run on call start are looked up, and then put on
//! the queue of `run-tool` with a delayed message that sends the results available by then. Nothing of that can delay
//! or prevent the TwiML by more than its one round trip. Nothing is started twice, however late the same `CallSid`
//! comes again: a signature has no time in it. Every refusal is the same, and takes the same time, whether or not
//! there is such a number.

mod early;
#[doc(hidden)]
pub mod fuzzing;
mod transfers;
mod twilio_request;
pub mod twiml;

use std::{
    future::{Ready, ready},
    pin::pin,
    time::Duration,
};

use futures_util::{
    FutureExt,
    future::{Either, select},
    join,
};
use serde_json::{Map, Value};
use shared::{
    Deadline, Error, Result,
    accounts::Accounts,
    clients::{
        self, Failure, Queue, Secrets, UpstreamService, Vapi,
        vapi::{Account, InboundCall},
    },
    described::{Schemas, json},
    error,
    http::{self, Found, Id, Operation, Part, Reply, Request, operation},
    idempotency::{Claim, Idempotency, Key, Outcome, Ticket},
    models::{
        Agent, AgentId, Call, CallId, CallStatus, E164, ExecutionId, ExecutionOrigin, OrganizationId, PhoneNumber,
        PhoneNumberId, Queued, QueuedExecution, StartedTool, Timestamp, Tool, Unowned,
    },
    platform::Parts,
    store::{Agents, Calls, PhoneNumbers, ToolAttachments, Tools},
    telemetry,
    webhooks::twilio_signature::LONGEST_SID,
};

use crate::{early::Early, twilio_request::Incoming, twiml::Say};

use crate::transfers::{brief_callee, ring_next};

shared::routes!(Deps, "calls": incoming_call, ring_next, brief_callee);

/// Twilio gives up after 15 s; some of that is on the way.
const ANSWER_WITHIN: Duration = Duration::from_secs(13);
/// The end of the writes before the answer, whatever the steps before took.
const WRITES_WITHIN: Duration = Duration::from_millis(14_500);
/// VAPI's share of the time.
const VAPI_WITHIN: Duration = Duration::from_secs(10);
/// The share of everything else, which must not keep the caller waiting.
const ASIDE_WITHIN: Duration = Duration::from_secs(2);
/// A call's row is written beside the messages about it.
const ROW_WITHIN: Duration = Duration::from_secs(1);
/// Kept back for VAPI when a twin of the request is waited for.
const TWIN_RESERVE: Duration = Duration::from_secs(5);
/// Twilio tries again within this time, five times at most. A claim that was given up is taken for its twin's until then:
/// the caller may be on the line. Later the same request comes from somebody else, and begins nothing.
const LEASE: Duration = Duration::from_secs(120);
/// How long a `CallSid` is remembered: as long as its call is.
const CALL_SIDS_KEPT: Duration = Duration::from_secs(90 * 24 * 60 * 60);
/// The earliest refusal, so that its time tells nothing about the lookups.
const REFUSED_AFTER: Duration = Duration::from_millis(200);

#[derive(Parts)]
pub struct Deps {
    pub phone_numbers: PhoneNumbers,
    pub agents: Agents,
    pub agent_tools: ToolAttachments,
    pub tools: Tools,
    pub calls: Calls,
    #[part(Idempotency::new(platform.database()?, CALL_SIDS_KEPT).kept_for(CALL_SIDS_KEPT))]
    pub idempotency: Idempotency,
    pub secrets: Secrets,
    pub accounts: Accounts,
    pub vapi: Vapi,
    #[part(platform.start_tools_queue()?)]
    pub start_tools: Queue<Queued>,
    /// The address that Twilio gets from us. It signs this one or the gateway's.
    #[part(platform.public_url()?)]
    pub public_url: String,
    /// How long the start of a call waits for its tools.
    #[part(platform.on_call_start()?)]
    pub context_due: Duration,
    /// How long a call is kept.
    #[part(platform.calls_kept()?)]
    pub calls_kept: Duration,
}

/// Twilio's form about a call. The handler reads it after it has checked the path's id.
pub(crate) struct Form;

/// Take an incoming call in
///
/// The voice URL of a number at Twilio. Let in by `X-Twilio-Signature` under the number's own auth token, for the
/// deployment's public address or the host that API Gateway served, when `To` is the number and `AccountSid` the account of
/// its credentials. Everything else is answered with the same 403, also where there is no such number.
///
/// Parameters that say whose call it is may stand in the form once. Twilio's form goes on to VAPI as it came (or, when
/// the number has a `vapi_phone_number_id`, a call is created for the agent's assistant), and VAPI's `TwiML` is the
/// answer. The agent's tools with `execute_on_call_start` start. Their results go to the model in one system message,
/// after three seconds at the latest.
///
/// With `wait_ms` such tools that change nothing start before the call is created, and it is created when they have
/// finished or the time is over. Results by then are variables of the call, under the names of their tools:
/// `Hello {{ look_up_customer.name }}`. The rest is told as without it.
///
/// If VAPI is down, slower than ten seconds or answers no `TwiML`, the number's `fallback_number` is dialled, or a sentence
/// is said. The same `CallSid` again gets the same `TwiML`, and nothing is started twice, for 90 days.
#[operation(POST "/api/phone-number/{id}/incoming", by(twilioSignature), also(403, 422), resource(CallStart), throttle(Twilio), answers(describe_twiml))]
async fn incoming_call(deps: &Deps, found: &Found<'_>, id: Result<Id<PhoneNumberId>>, _form: Form) -> Result<Reply> {
    let (received_at, deadline) = (Timestamp::now(), found.deadline.at_most(ANSWER_WITHIN));
    let writes_until = Deadline::after(WRITES_WITHIN);
    let request = found.request;
    let refused_at = Deadline::after(REFUSED_AFTER);
    let id = twilio_request::signature(request).and(id);
    let Ok(Id(id)) = id else { return refuse(twilio_request::refused(), None, refused_at).await };
    let incoming = match Incoming::read(request) {
        Ok(incoming) => incoming,
        Err(wrong) => return refuse_form(deps, id, request, wrong, refused_at).await,
    };

    // One round trip: whose number it is, and whether this call has been answered before. The claim is released unless the
    // request turns out to be Twilio's.
    let of_number = id.to_string();
    let name = ["incoming", &of_number, &incoming.call_sid];
    let (number, claim) = join!(deps.phone_numbers.find(id), claim(deps, &name, &incoming, deadline));
    let number = match admitted(deps, number, &incoming, request).await {
        Ok(number) => number,
        Err(error) => {
            release(deps, id, claim).await;
            return refuse(error, Some(id), refused_at).await;
        }
    };
    let mut unclaimed = false;
    let ticket = match claim {
        Ok(Claim::Mine(ticket)) => Some(ticket),
        Ok(Claim::Completed(Value::String(twiml))) => return Ok(Reply::twiml(twiml)),
        Ok(Claim::Completed(_) | Claim::Unknown { .. }) => {
            tracing::warn!(phone_number.id = %number.id, "a late repetition of an unanswered incoming call was ignored");
            return Ok(Reply::twiml(fallback(&number, &incoming)));
        }
        // Its twin is still at it, or died a moment ago: the caller is on the line all the same.
        Ok(Claim::Running) => None,
        Err(outage) => {
            tracing::error!(phone_number.id = %id, "an incoming call could not be claimed: {}", error::chain(&outage));
            unclaimed = true;
            None
        }
    };

    let mut finding = pin!(on_call_start(deps, &number));
    let creation = pin!(creation(deps, &number));
    let waits = number.wait_ms > 0 && ticket.is_some() && creates_calls(&number).is_some();
    let ((found, mut early), creation) = if waits {
        beside(early::begin(deps, &number, &incoming, finding.as_mut()), creation).await
    } else {
        ((None, Early::default()), Either::Left(creation))
    };
    let tools = async {
        match found {
            Some(found) => found,
            None => finding.await,
        }
    };
    let form = http::body(request).to_vec();
    let asks = CreatedCall { name: &incoming.call_sid, variables: &early.variables, first_message: None };
    let asked = ask_vapi(deps, &incoming, creation, asks, form, deadline.at_most(VAPI_WITHIN));
    let (answered, tools) = join!(asked, tools);
    let falls_back = answered.is_err();
    // A call that a twin of the request has begun is counted there.
    let counts = ticket.is_some() || unclaimed;
    let complete = tools.is_some() && !unclaimed;
    let tools = tools.unwrap_or_default();
    // The row and the answer are written after it.
    let handing_over = || (writes_until.remaining() / 2).min(ASIDE_WITHIN);
    let (twiml, call) = match answered {
        Ok((twiml, Some(stream))) => {
            let expires_at = received_at.plus(deps.calls_kept).as_seconds();
            let call = match &ticket {
                Some(_) => {
                    let (results, variables) = early.hand_over(deps, &number, &stream.call_id, handing_over()).await;
                    let started = tools.iter().map(|tool| early.of(tool).unwrap_or_else(|| started(tool))).collect();
                    let call = begun(&number, &incoming, stream, started, received_at, expires_at);
                    Some(Call { results, variables, ..call })
                }
                None => None,
            };
            (twiml, call)
        }
        Ok((twiml, None)) => {
            early.give_up(deps, &number, handing_over()).await;
            (twiml, None)
        }
        Err(failure) => {
            early.give_up(deps, &number, handing_over()).await;
            let (service, chain) = (failure.upstream_service(), error::chain(&failure));
            tracing::error!(phone_number.id = %id, upstream.service = service, "VAPI could not take a call: {chain}");
            (fallback(&number, &incoming), None)
        }
    };
    let within = aside(writes_until);
    let started = async {
        match &call {
            Some(call) => start(deps, call, &early, within).await,
            None => true,
        }
    };
    let (started, ()) = join!(started, record(deps, id, ticket, &twiml, within));
    if falls_back || counts {
        telemetry::call_answered(answer_of(falls_back, complete && started));
    }
    Ok(Reply::twiml(twiml))
}

const fn answer_of(fallback: bool, complete: bool) -> &'static str {
    match (fallback, complete) {
        (true, _) => "fallback",
        (false, true) => "agent",
        (false, false) => "incomplete",
    }
}

impl Part for Form {
    fn of(_: &Found<'_>) -> Result<Self> {
        Ok(Self)
    }

    fn describe(operation: &mut Operation, _: &mut Schemas) {
        let schema = json!({"type": "object", "required": ["CallSid", "AccountSid", "From", "To"], "properties": {
            "CallSid": {"type": "string", "maxLength": LONGEST_SID},
            "AccountSid": {"type": "string", "description": "The account of the number's credentials."},
            "From": {"type": "string", "description": "The caller: a number, or nothing of the kind."},
            "To": {"type": "string", "description": "The number that is called."},
            "CallStatus": {"type": "string", "description": "Of the caller's line."},
            "DialCallStatus": {
                "type": "string",
                "description": "After a destination of a transfer rang: `completed`, `answered`, `busy`, `no-answer`, `failed` or `canceled`.",
            },
        }});
        let example = json!({
            "CallSid": "CA0123456789abcdef0123456789abcdef", "AccountSid": "AC0123456789abcdef0123456789abcdef",
            "From": "+14155550101", "To": "+15005550006", "CallStatus": "ringing", "Direction": "inbound",
        });
        operation.sends_as("application/x-www-form-urlencoded", json!({"schema": schema, "example": example}));
    }
}

fn describe_twiml(operation: &mut Operation, _: &mut Schemas) {
    let stream = "wss://phone-call-websocket.vapi.ai/0193aa11-2b3c-7d4e-8f50-617283940a1b/transport";
    let example = format!("<Response><Connect><Stream url='{stream}' /></Connect></Response>");
    let content = json!({"schema": {"type": "string"}, "example": example});
    operation.answers_with(200, "TwiML for Twilio.", "text/xml", content);
}

/// The number, if the request is Twilio's for it.
async fn admitted(
    deps: &Deps,
    number: Result<Option<Unowned<PhoneNumber>>>,
    incoming: &Incoming,
    request: &Request,
) -> Result<PhoneNumber> {
    let number = number?.ok_or_else(twilio_request::refused)?.for_its_owner();
    twilio_request::verify(deps, &number, incoming, request).await?;
    Ok(number)
}

async fn signed(
    deps: &Deps,
    number: Result<Option<Unowned<PhoneNumber>>>,
    request: &Request,
) -> Result<clients::twilio::Account> {
    let number = number?.ok_or_else(twilio_request::refused)?.for_its_owner();
    twilio_request::signed(deps, &number, request).await
}

/// Refuses a form. Only the signer hears its problems.
async fn refuse_form(deps: &Deps, id: PhoneNumberId, request: &Request, wrong: Error, at: Deadline) -> Result<Reply> {
    let number = deps.phone_numbers.find(id).await;
    let signed = signed(deps, number, request).await;
    refuse(signed.map_or_else(|refused| refused, |_account| wrong), Some(id), at).await
}

/// Refuses an unauthorized request, not before `at`. An outage of ours is nothing the caller should hear as silence.
async fn refuse(error: Error, number: Option<PhoneNumberId>, at: Deadline) -> Result<Reply> {
    match error {
        Error::Unavailable(..) | Error::Unreadable { .. } | Error::Upstream(_) | Error::Internal(_) => {
            tracing::error!(
                phone_number.id = number.map(display),
                upstream.service = error.upstream_service(),
                "the organization of an incoming call could not be checked: {}",
                error::chain(&error)
            );
            telemetry::call_answered("fallback");
            Ok(Reply::twiml(twiml::fallback(None, None, None)))
        }
        refused => {
            tokio::time::sleep(at.remaining()).await;
            Err(refused)
        }
    }
}

fn fallback(number: &PhoneNumber, incoming: &Incoming) -> String {
    let caller_id = twiml::caller_id(&incoming.caller, &number.number);
    let sentence = number.fallback_sentence.as_deref().map(|text| Say::at(number, text));
    twiml::fallback(number.fallback_number.as_ref(), caller_id, sentence)
}

async fn claim(deps: &Deps, request: &[&str], incoming: &Incoming, deadline: Deadline) -> Result<Claim> {
    let key = Key::new(request, &Value::Null);
    // Twilio repeats a request within seconds. The same one hours later gets the same answer, and begins nothing.
    let delivery = Some(incoming.call_sid.as_str()).into();
    deps.idempotency.claim(&key, delivery, LEASE, deadline.reserving(TWIN_RESERVE)).await
}

async fn release(deps: &Deps, number: PhoneNumberId, claim: Result<Claim>) {
    if let Ok(Claim::Mine(ticket)) = claim
        && let Err(error) = deps.idempotency.record(ticket, Outcome::Released).await
    {
        tracing::warn!(phone_number.id = %number, "a claim could not be released: {}", error::chain(&error));
    }
}

/// The time of a write before the answer.
fn aside(writes_until: Deadline) -> Duration {
    writes_until.remaining().min(ASIDE_WITHIN)
}

/// Records the answer for Twilio's repetition of the request.
async fn record(deps: &Deps, number: PhoneNumberId, ticket: Option<Ticket>, twiml: &str, within: Duration) {
    let Some(ticket) = ticket else { return };
    let recorded = deps.idempotency.record(ticket, Outcome::Completed(twiml.into()));
    match tokio::time::timeout(within, recorded).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            let chain = error::chain(&error);
            tracing::error!(phone_number.id = %number, "the answer to an incoming call could not be recorded: {chain}");
        }
        Err(_elapsed) => {
            tracing::error!(phone_number.id = %number, "the answer to an incoming call was not recorded in time");
        }
    }
}

/// VAPI's id of the number and the agent, if calls are created at VAPI; otherwise Twilio's form is forwarded.
fn creates_calls(number: &PhoneNumber) -> Option<(&str, AgentId)> {
    number.vapi_phone_number_id.as_deref().zip(number.agent_id)
}

/// The part of a created call that Twilio's form does not have.
pub(crate) struct CreatedCall<'a> {
    /// Unique.
    name: &'a str,
    variables: &'a Map<String, Value>,
    first_message: Option<&'a str>,
}

/// What a call is created with at VAPI.
struct Creation<'a> {
    at_vapi: &'a str,
    agent: Agent,
    account: Account,
}

/// `None`: Twilio's form is forwarded.
async fn creation<'a>(deps: &Deps, number: &'a PhoneNumber) -> Result<Option<Creation<'a>>> {
    let Some((at_vapi, agent)) = creates_calls(number) else { return Ok(None) };
    let organization = number.organization_id;
    let (agent, account) = join!(deps.agents.get(organization, agent), deps.accounts.vapi(organization));
    Ok(Some(Creation { at_vapi, agent: agent?, account: account? }))
}

/// Awaits `work` and returns the rest of `other`, which goes on beside it.
async fn beside<W: Future, O: Future + Unpin>(work: W, other: O) -> (W::Output, Either<O, Ready<O::Output>>) {
    match select(pin!(work), other).await {
        Either::Left((done, other)) => (done, Either::Left(other)),
        Either::Right((known, work)) => (work.await, Either::Right(ready(known))),
    }
}

/// VAPI's TwiML, and the call behind it.
async fn ask_vapi(
    deps: &Deps,
    incoming: &Incoming,
    creation: impl Future<Output = Result<Option<Creation<'_>>>>,
    asks: CreatedCall<'_>,
    form: Vec<u8>,
    deadline: Deadline,
) -> Result<(String, Option<twiml::Stream>)> {
    let creation = tokio::time::timeout(deadline.remaining(), creation).await;
    let twiml = match creation.map_err(|elapsed| Error::Unavailable("the database", elapsed.into()))?? {
        Some(Creation { at_vapi, agent, account }) => {
            let call = InboundCall {
                phone_number_id: at_vapi,
                assistant_id: &agent.external_assistant_id,
                caller: &incoming.caller,
                name: asks.name,
                variables: asks.variables,
                first_message: asks.first_message,
            };
            deps.vapi.create_inbound_call(&account, call, deadline).await?
        }
        None => deps.vapi.inbound_call(form, deadline).await?,
    };
    let read = twiml::read(&twiml).map_err(|why| {
        Error::Upstream(clients::Error::new(UpstreamService::Vapi, Failure::Undecodable(format!("no TwiML: {why}"))))
    })?;
    Ok((twiml, read.stream))
}

/// The agent's tools that run on call start. `None`: that could not be found out, which is logged; the call goes on without them.
async fn on_call_start(deps: &Deps, number: &PhoneNumber) -> Option<Vec<Tool>> {
    let Some(agent) = number.agent_id else { return Some(Vec::new()) };
    let organization = number.organization_id;
    let find = async {
        let rows = deps.agent_tools.of_agent(organization, agent).await?;
        let ids: Vec<_> = rows.iter().map(|row| row.tool_id).collect();
        let mut tools = deps.tools.get_many(organization, &ids, Deadline::after(ASIDE_WITHIN)).await?;
        tools.retain(|tool| tool.execute_on_call_start);
        // Ids are made in order, so this is the order in which the tools were.
        tools.sort_by_key(|tool| tool.id);
        Ok::<_, Error>(tools)
    };
    match tokio::time::timeout(ASIDE_WITHIN, find).await {
        Ok(Ok(tools)) => Some(tools),
        Ok(Err(error)) => {
            tracing::error!(agent.id = %agent, "tools for the start of a call could not be read: {}", error::chain(&error));
            None
        }
        Err(_elapsed) => {
            tracing::error!(agent.id = %agent, "tools for the start of a call could not be read in time");
            None
        }
    }
}

/// The call's row, if VAPI's id of it can be a key.
fn begun(
    number: &PhoneNumber,
    incoming: &Incoming,
    stream: twiml::Stream,
    on_call_start: Vec<StartedTool>,
    received_at: Timestamp,
    expires_at: i64,
) -> Call {
    let (caller, called) = (incoming.caller.clone(), incoming.called.clone());
    let call = Call::new(stream.call_id, number.organization_id, caller, called, expires_at);
    Call {
        agent_id: number.agent_id,
        control_url: Some(stream.control_url),
        status: Some(CallStatus::Ringing),
        call_sid: Some(incoming.call_sid.clone()),
        phone_number_id: Some(number.id),
        bypasses_provider: creates_calls(number).is_some(),
        twiml_at: Some(call.created_at),
        on_call_start,
        created_at: received_at,
        ..call
    }
}

fn started(tool: &Tool) -> StartedTool {
    StartedTool { execution_id: ExecutionId::generate(), tool_id: tool.id, label: tool.label.clone() }
}

fn queued(
    organization_id: OrganizationId,
    call: &CallId,
    caller: &str,
    called: &E164,
    started: &StartedTool,
) -> QueuedExecution {
    QueuedExecution {
        execution_id: started.execution_id,
        organization_id,
        tool_id: started.tool_id,
        call_id: Some(call.clone()),
        caller: Some(caller.to_owned()),
        called: Some(called.clone()),
        arguments: Map::new(),
        trigger: ExecutionOrigin::CallStart,
        before_call: false,
        significant: None,
        tool_call_id: None,
        sends_result_of: None,
        confirmed_after: None,
        queued_at: Timestamp::now(),
    }
}

/// Writes the call down and sets off the tools that have not begun, beside each other. False: something failed, which is logged;
/// Twilio gets its TwiML all the same.
async fn start(deps: &Deps, call: &Call, early: &Early, within: Duration) -> bool {
    let not_begun = call.on_call_start.iter().filter(|tool| !early.has_begun(tool));
    let run = |tool| queued(call.organization_id, &call.id, &call.caller_phone_number, &call.called_phone_number, tool);
    let mut messages: Vec<(Queued, Duration)> =
        not_begun.map(|tool| (Queued::Execution(Box::new(run(tool))), Duration::ZERO)).collect();
    let has_untold = call.preface.is_some() || call.results.values().any(Option::is_some);
    if has_untold || !call.has_all_results() {
        let due = Queued::ContextDue { organization_id: call.organization_id, call_id: call.id.clone() };
        // With all results there, nothing is waited for but the row.
        messages.push((due, if call.has_all_results() { ROW_WITHIN } else { deps.context_due }));
    }
    let written = tokio::time::timeout(within, deps.calls.put(call)).map(|written| match written {
        Ok(Ok(())) => true,
        Ok(Err(error)) => {
            tracing::error!(call.id = %call.id, "the row of a call could not be written: {}", error::chain(&error));
            false
        }
        Err(_elapsed) => {
            tracing::error!(call.id = %call.id, "the row of a call was not written in time");
            false
        }
    });
    let (written, sent) = join!(written, set_off(deps, &call.id, &messages, within));
    written && sent
}

/// False: some message was not sent, which is logged.
async fn set_off(deps: &Deps, call: &CallId, messages: &[(Queued, Duration)], within: Duration) -> bool {
    match tokio::time::timeout(within, deps.start_tools.send_all(messages)).await {
        Ok(Ok(())) => true,
        Ok(Err(unsent)) => {
            let (count, of) = (unsent.places.len(), messages.len());
            let chain = error::chain(&unsent.error);
            tracing::error!(call.id = %call, "{count} of {of} messages at the start of a call were not sent: {chain}");
            false
        }
        Err(_elapsed) => {
            tracing::error!(call.id = %call, "the tools of a call's start were not queued in time");
            false
        }
    }
}
