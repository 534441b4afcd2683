//! A caller's line that a tool moved: Twilio requests TwiML before each destination rings, and after the last one.
//!
//! The row of the call says which destinations ring. `?rang=` is the number that rang, so a repeated request gets its
//! earlier answer. If nobody answers, the caller returns in a new call with the same agent, whose context begins with the reason.

use std::{collections::BTreeMap, slice, str::FromStr, time::Duration};

use futures_util::join;
use serde_json::{Map, Value};
use shared::{
    Deadline, Error, Result, error,
    http::{Asks, Found, Ids, Reply, Request, Wanted, operation},
    idempotency::Claim,
    models::{Call, CallId, PhoneNumber, PhoneNumberId, ReturningTransfer, Timestamp, TransferOutcome},
    telemetry,
};
use tracing::field::display;

use crate::{
    ANSWER_WITHIN, CreatedCall, Deps, Form, REFUSED_AFTER, ROW_WITHIN, VAPI_WITHIN, WRITES_WITHIN, admitted, aside,
    ask_vapi, begun, claim, creates_calls, creation, describe_twiml,
    early::{Early, changes_nothing},
    fallback, on_call_start, record, refuse, release, start, started,
    twilio_request::{self, Incoming},
    twiml::{self, Dial, Say},
};

/// Characters of VAPI's id of the earlier call in the name of the one that follows.
const SUFFIX: usize = 5;

/// How many destinations rang: `?rang=1`.
pub(crate) struct Rang(usize);

shared::described!(Rang => {"type": "integer", "minimum": 0, "maximum": 9});

impl FromStr for Rang {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let rang = text.parse().ok().filter(|rang| *rang <= 9);
        rang.map(Self).ok_or("must be a whole number from 0 to 9")
    }
}

impl Asks for Rang {
    const NAME: &'static str = "rang";
    const DOC: &'static str = "How many destinations rang.";
}

/// Ring the next destination of a transfer
///
/// Twilio requests it for a caller whose call a `transfer_call` with `if_unanswered` moved: first, and after each destination
/// rang. The next destination rings. When the last one did not answer, the answer is the `TwiML` of a new call with the same
/// agent, or a sentence and the end of the call. If the call was deleted meanwhile, the answer is the number's fallback. It is
/// let in as an incoming call is.
#[operation(POST "/api/phone-number/{id}/transfers/{call}", by(twilioSignature), also(403), resource(RingNext), throttle(Twilio), answers(describe_twiml))]
pub(crate) async fn ring_next(
    deps: &Deps,
    found: &Found<'_>,
    ids: Result<Ids<PhoneNumberId, CallId>>,
    rang: Wanted<Rang>,
    _form: Form,
) -> Result<Reply> {
    let (request, deadline) = (found.request, found.deadline.at_most(ANSWER_WITHIN));
    let writes_until = Deadline::after(WRITES_WITHIN);
    let refused_at = Deadline::after(REFUSED_AFTER);
    let read = twilio_request::signature(request).and(ids).and_then(|ids| Ok((ids, Incoming::read(request)?)));
    let Ok((Ids(id, call), incoming)) = read else {
        return refuse(twilio_request::refused(), None, refused_at).await;
    };
    let rang = rang.0.map_or(0, |Rang(rang)| rang);
    let (count, sid) = (rang.to_string(), incoming.call_sid.as_str());
    let name = ["transfer", call.as_str(), sid, &count];
    let (number, row, claim) =
        join!(deps.phone_numbers.find(id), deps.calls.find_now(&call), claim(deps, &name, &incoming, deadline));
    let moved = async {
        let number = admitted(deps, number, &incoming, request).await?;
        let row = row?.and_then(|row| row.for_owner(number.organization_id));
        let ours = |row: &Call| row.phone_number_id == Some(number.id) && row.call_sid.as_deref() == Some(sid);
        if row.as_ref().is_some_and(|row| !ours(row)) { Err(twilio_request::refused()) } else { Ok((number, row)) }
    };
    let (number, row) = match moved.await {
        Ok(moved) => moved,
        Err(error) => {
            release(deps, id, claim).await;
            return refuse(error, Some(id), refused_at).await;
        }
    };
    let ticket = match claim {
        Ok(Claim::Mine(ticket)) => Some(ticket),
        Ok(Claim::Completed(Value::String(twiml))) => return Ok(Reply::twiml(twiml)),
        Ok(Claim::Completed(_) | Claim::Unknown { .. }) => {
            tracing::warn!(call.id = %call, "a late repetition of an unanswered request about a transfer was ignored");
            return Ok(Reply::twiml(fallback(&number, &incoming)));
        }
        // Its twin is still at it, or died a moment ago: the caller is on the line all the same.
        Ok(Claim::Running) => None,
        Err(outage) => {
            tracing::error!(call.id = %call, "a transfer could not be claimed: {}", error::chain(&outage));
            None
        }
    };
    let Some(call) = row else {
        let twiml = without_row(&number, &call, &incoming, request);
        record(deps, id, ticket, &twiml, aside(writes_until)).await;
        return Ok(Reply::twiml(twiml));
    };
    let line = Line { deps, number: &number, call: &call, incoming: &incoming, request, deadline };
    let Step { twiml, progress, returns_in } = line.step(rang).await;
    let within = aside(writes_until);
    let recorded = record(deps, id, ticket, &twiml, within);
    join!(line.begin(returns_in.as_ref(), within), line.note(progress, within), recorded);
    Ok(Reply::twiml(twiml))
}

/// Tell the callee about the caller
///
/// Twilio requests it when a destination of a moved call answers. The callee hears the message and the summary of the
/// transfer, if it has any; then the two are connected. Timeline and receipt show the destination as `connected`. A repeated
/// or late request changes nothing. It is let in by `X-Twilio-Signature` as an incoming call is.
#[operation(POST "/api/phone-number/{id}/transfers/{call}/briefing", by(twilioSignature), also(403), resource(BriefCallee), throttle(Twilio), answers(describe_twiml))]
pub(crate) async fn brief_callee(
    deps: &Deps,
    found: &Found<'_>,
    ids: Result<Ids<PhoneNumberId, CallId>>,
    rang: Wanted<Rang>,
    _form: Form,
) -> Result<Reply> {
    let request = found.request;
    let refused_at = Deadline::after(REFUSED_AFTER);
    let number = ids.as_ref().ok().map(|Ids(id, _)| *id);
    let briefing = async {
        twilio_request::signature(request)?;
        let Ids(id, call) = ids.map_err(|_unknown| twilio_request::refused())?;
        let (number, row) = join!(deps.phone_numbers.find(id), deps.calls.find_now(&call));
        let number = number?.ok_or_else(twilio_request::refused)?.for_its_owner();
        let account = twilio_request::signed(deps, &number, request).await?;
        if twilio_request::field(request, "AccountSid").as_deref() != Some(account.account_sid()) {
            return Err(twilio_request::refused());
        }
        let row = row?.and_then(|row| row.for_owner(number.organization_id));
        match row {
            Some(row) if row.phone_number_id != Some(number.id) => Err(twilio_request::refused()),
            row => Ok((number, row)),
        }
    };
    match briefing.await {
        // The row was deleted during the transfer.
        Ok((_, None)) => Ok(Reply::twiml(twiml::sentence(None))),
        Ok((number, Some(call))) => {
            if twilio_request::field(request, "CallStatus").as_deref() == Some("in-progress") {
                note_answer(deps, &call, rang.0.map_or(0, |Rang(rang)| rang)).await;
            }
            let briefing = call.transfer.and_then(|transfer| transfer.briefing);
            let briefing = briefing.as_deref().map(|briefing| Say::at(&number, briefing));
            Ok(Reply::twiml(twiml::sentence(briefing)))
        }
        Err(error @ Error::Forbidden(_)) => refuse(error, None, refused_at).await,
        // The callee has answered: better without a briefing than without the caller.
        Err(error) => {
            let (number, chain) = (number.map(display), error::chain(&error));
            tracing::error!(phone_number.id = number, "the briefing of a transfer could not be read: {chain}");
            Ok(Reply::twiml(twiml::sentence(None)))
        }
    }
}

/// The row was deleted during the transfer, and the caller is on the line.
fn without_row(number: &PhoneNumber, call: &CallId, incoming: &Incoming, request: &Request) -> String {
    if dial_outcome(request) == Some(TransferOutcome::Answered) {
        return twiml::hang_up(None);
    }
    tracing::error!(call.id = %call, "a transferred call has no row any more");
    telemetry::call_answered("fallback");
    fallback(number, incoming)
}

/// Of the destination that rang last.
fn dial_outcome(request: &Request) -> Option<TransferOutcome> {
    let status = twilio_request::field(request, "DialCallStatus")?;
    Some(TransferOutcome::of_dial(&status, twilio_request::field(request, "DialBridged").as_deref()))
}

/// The callee waits meanwhile.
async fn note_answer(deps: &Deps, call: &Call, rang: usize) {
    let noted = deps.calls.note_transfer_answer(call.organization_id, &call.id, rang, Timestamp::now());
    let problem = match tokio::time::timeout(ROW_WITHIN, noted).await {
        Ok(Ok(_new)) => return,
        Ok(Err(error)) => error::chain(&error),
        Err(elapsed) => elapsed.to_string(),
    };
    tracing::error!(call.id = %call.id, "the answer of a transfer's destination could not be recorded: {problem}");
}

/// The answer to a request about a line, and the writes that Twilio waits for, beside each other.
struct Step {
    twiml: String,
    progress: Option<Progress>,
    /// The new call of a caller whom nobody answered.
    returns_in: Option<NewCall>,
}

struct NewCall {
    call: Call,
    /// The tools for its start could be read.
    knows_tools: bool,
}

struct Progress {
    transfer: ReturningTransfer,
    /// How many destinations had been rung.
    known: usize,
}

impl Step {
    fn nothing_to_note(twiml: String) -> Self {
        Self { twiml, progress: None, returns_in: None }
    }

    fn noting(twiml: String, transfer: ReturningTransfer, known: usize) -> Self {
        Self { twiml, progress: Some(Progress { transfer, known }), returns_in: None }
    }
}

/// The caller's line during a transfer.
struct Line<'a> {
    deps: &'a Deps,
    number: &'a PhoneNumber,
    call: &'a Call,
    incoming: &'a Incoming,
    request: &'a Request,
    deadline: Deadline,
}

impl Line<'_> {
    async fn step(&self, rang: usize) -> Step {
        let Some(mut transfer) = self.call.transfer.clone() else {
            return Step::nothing_to_note(self.fallback("the row of the call has no transfer", None));
        };
        if transfer.is_over() {
            return Step::nothing_to_note(self.fallback("the transfer is over", None));
        }
        let known = transfer.rung.len();
        // More rang if a twin of this request is at it; fewer, if a step could not be recorded.
        transfer.rung.truncate(rang);
        for _ in known..rang {
            transfer.ring(Timestamp::now());
        }
        let outcome = dial_outcome(self.request).filter(|_| rang > 0);
        if self.caller_left() {
            let outcome = outcome.filter(|outcome| *outcome == TransferOutcome::Answered);
            transfer.end(outcome.unwrap_or(TransferOutcome::CallerHungUp), Timestamp::now(), None);
            return Step::noting(twiml::sentence(None), transfer, known);
        }
        match outcome {
            Some(TransferOutcome::Answered) => {
                transfer.end(TransferOutcome::Answered, Timestamp::now(), None);
                return Step::noting(twiml::hang_up(None), transfer, known);
            }
            // The caller is there, so somebody else took the ringing back.
            Some(TransferOutcome::CallerHungUp) => transfer.rang(TransferOutcome::Failed),
            Some(outcome) => transfer.rang(outcome),
            None => {}
        }
        let Some(next) = transfer.ring(Timestamp::now()) else { return self.unanswered(transfer, known).await };
        let base = format!("{}/api/phone-number/{}/transfers/{}", self.deps.public_url, self.number.id, self.call.id);
        let rings = rang + 1;
        let (action, answered) = (format!("{base}?rang={rings}"), format!("{base}/briefing?rang={rings}"));
        let dial = Dial {
            to: &next,
            seconds: transfer.ring_seconds,
            action: &action,
            answered: &answered,
            briefs: transfer.briefing.is_some(),
            caller_id: twiml::caller_id(&self.call.caller_phone_number, &self.number.number),
        };
        Step::noting(dial.twiml(), transfer, known)
    }

    fn caller_left(&self) -> bool {
        let status = twilio_request::field(self.request, "CallStatus");
        status
            .is_some_and(|status| matches!(status.as_str(), "completed" | "canceled" | "failed" | "busy" | "no-answer"))
    }

    async fn unanswered(&self, mut transfer: ReturningTransfer, known: usize) -> Step {
        let outcome = transfer.rung.last().and_then(|rung| rung.outcome).unwrap_or(TransferOutcome::Failed);
        let say = transfer.say.clone();
        if !transfer.returns {
            transfer.end(outcome, Timestamp::now(), None);
            let say = say.as_deref().map(|say| Say::at(self.number, say));
            return Step::noting(twiml::hang_up(say), transfer, known);
        }
        let report = transfer.report();
        let (twiml, returns_in) = self.back_to_agent(report, say.as_deref()).await;
        transfer.end(outcome, Timestamp::now(), returns_in.as_ref().map(|new| new.call.id.clone()));
        Step { returns_in, ..Step::noting(twiml, transfer, known) }
    }

    /// A new call with the agent that transferred the caller, whose tools that change nothing are to run again.
    async fn back_to_agent(&self, report: String, say: Option<&str>) -> (String, Option<NewCall>) {
        let (deps, received_at) = (self.deps, Timestamp::now());
        // VAPI chooses the assistant of a forwarded call.
        let chosen = self.call.handed_to.filter(|_| self.number.vapi_phone_number_id.is_some());
        let number = &PhoneNumber { agent_id: chosen.or(self.call.agent_id), ..self.number.clone() };
        let earlier = self.call.id.as_str();
        let suffix = &earlier[earlier.len().saturating_sub(SUFFIX)..];
        let name = format!("{}-{suffix}", self.incoming.call_sid);
        let asks = CreatedCall { name: &name, variables: &Map::new(), first_message: say };
        let form = twilio_request::as_ringing(self.request);
        let (answered, tools) = join!(
            ask_vapi(deps, self.incoming, creation(deps, number), asks, form, self.deadline.at_most(VAPI_WITHIN)),
            on_call_start(deps, number)
        );
        let (twiml, stream) = match answered {
            Ok(answered) => answered,
            Err(failure) => {
                let why = format!("VAPI could not take it: {}", error::chain(&failure));
                return (self.fallback(&why, failure.upstream_service()), None);
            }
        };
        // The agent of a created call says it itself.
        let says_it = creates_calls(number).is_some();
        let twiml = match say.filter(|_| !says_it) {
            Some(sentence) => twiml::with_sentence(&twiml, Say::at(self.number, sentence)),
            None => twiml,
        };
        let Some(stream) = stream else { return (twiml, None) };
        let knows_tools = tools.is_some();
        let tools = tools.unwrap_or_default();
        let tools = tools.iter().filter(|tool| changes_nothing(tool)).map(started).collect();
        let expires_at = received_at.plus(deps.calls_kept).as_seconds();
        let call = Call {
            preface: Some(report),
            returned_from: Some(self.call.id.clone()),
            former_calls: [self.call.earlier_calls(), slice::from_ref(&self.call.id)].concat(),
            results: BTreeMap::new(),
            ..begun(number, self.incoming, stream, tools, received_at, expires_at)
        };
        (twiml, Some(NewCall { call, knows_tools }))
    }

    async fn begin(&self, new: Option<&NewCall>, within: Duration) {
        let Some(NewCall { call, knows_tools }) = new else { return };
        let started = start(self.deps, call, &Early::default(), within).await;
        telemetry::call_answered(if *knows_tools && started { "agent" } else { "incomplete" });
    }

    async fn note(&self, progress: Option<Progress>, within: Duration) {
        let Some(Progress { transfer, known }) = progress else { return };
        let Call { id, organization_id, .. } = self.call;
        let noted = self.deps.calls.note_transfer_progress(*organization_id, id, &transfer, known);
        match tokio::time::timeout(within, noted).await {
            Ok(Ok(true)) => {}
            Ok(Ok(false)) => tracing::warn!(call.id = %id, "a transfer went on while a step of it was recorded"),
            Ok(Err(error)) => {
                tracing::error!(call.id = %id, "a step of a transfer could not be recorded: {}", error::chain(&error));
            }
            Err(_elapsed) => tracing::error!(call.id = %id, "a step of a transfer was not recorded in time"),
        }
    }

    /// The caller is on the line, whatever became of the transfer.
    fn fallback(&self, why: &str, service: Option<&str>) -> String {
        tracing::error!(call.id = %self.call.id, upstream.service = service, "a transferred call could not go on: {why}");
        telemetry::call_answered("fallback");
        fallback(self.number, self.incoming)
    }
}
