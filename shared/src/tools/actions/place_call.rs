//! `place_call`: an agent calls one person from a number of the organization.
//!
//! ```json
//! {"type": "place_call", "phone_number_id": "…", "agent_id"?: "…", "to": Parameter, "reason"?: Parameter,
//!  "variables"?: {"name": Parameter}, "hours"?: {"from": "09:00", "until": "20:00", "days"?: ["mon", …]},
//!  "time_zone"?: "Europe/Lisbon", "answering_machine"?: {"do": "hang_up"} | {"do": "leave_message", "message": "…"},
//!  "per_day"?: 50, "per_person_and_day"?: 1}
//! ```
//!
//! The agent gets `call_reason` and the variables as variables of the call. `hours` are the person's own: they must hold in
//! every zone in which the number may be ([`numbering::zones`]). `time_zone` stands in where none is known, and decides among
//! the zones of a whole country. Days of the quotas are UTC; `per_person_and_day` counts the calls of all tools of the
//! organization.
//!
//! Not verified against the live service: an empty `voicemailMessage` hangs up.

use std::{collections::BTreeMap, fmt::Display, time::Duration};

use futures_util::{future::join, try_join};
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{
    ActionCall, ActionClients, Attempt, Parameter,
    hours::{Hours, have_the_same_clock, read_time_zone},
    no_request::{NoRequest, NotRun},
    parameters::{Place, object, parameter, parameters},
    sms,
    variables::{Encoding, Unknown, not_filled},
};
use crate::{
    Error, Result,
    clients::vapi::{Account, NotPlaced, OutboundCall, PlacedCall, variables::is_reserved, variables::plain},
    error::{self, found},
    fields::Fields,
    idempotency::Earlier,
    models::{
        Agent, AgentId, Call, CallId, CallerHash, E164, Fault, Limit, PhoneNumber, PhoneNumberId, PlacingCall,
        RecipientState, Timestamp,
    },
    numbering,
    store::{Counted, Room, Taken, Window},
    telemetry,
    tool::{CallContext, Effect, RecipientOutcome, ToolOutcome},
};

const REASON: &str = "call_reason";
/// VAPI's limit.
const LONGEST_MESSAGE: usize = 1_000;
const LONGEST_VALUE: usize = 1_000;
const LONGEST_NAME: usize = 40;
const PER_DAY: u32 = 50;
const MOST_PER_DAY: u32 = 1_000;
const PER_PERSON: u32 = 1;
const MOST_PER_PERSON: u32 = 10;
/// How long VAPI's messages can name a call whose row is missing.
const NAMED_FOR: Duration = Duration::from_secs(24 * 60 * 60);
const NAMED_WITHIN: Duration = Duration::from_secs(2);
const RECORDED_WITHIN: Duration = Duration::from_secs(3);

#[declare::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlaceCall {
    pub phone_number_id: PhoneNumberId,
    /// The number's agent without one.
    pub agent_id: Option<AgentId>,
    to: Parameter,
    reason: Option<Parameter>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    variables: BTreeMap<String, Parameter>,
    #[serde(default)]
    hours: Hours,
    time_zone: Option<String>,
    #[serde(default)]
    answering_machine: AnsweringMachine,
    #[serde(default = "per_day")]
    per_day: u32,
    #[serde(default = "per_person")]
    per_person_and_day: u32,
}

const fn per_day() -> u32 {
    PER_DAY
}

const fn per_person() -> u32 {
    PER_PERSON
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
enum AnsweringMachine {
    #[default]
    HangUp,
    LeaveMessage {
        message: String,
    },
}

impl AnsweringMachine {
    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        if fields.get("answering_machine").is_none() {
            return Some(Self::default());
        }
        let mut machine = fields.object("answering_machine")?;
        let read = match machine.required_text("do", 40)?.as_str() {
            "hang_up" => Some(Self::HangUp),
            "leave_message" => {
                machine.required_text("message", LONGEST_MESSAGE).map(|message| Self::LeaveMessage { message })
            }
            _ => {
                machine.problem("do", "must be hang_up or leave_message");
                return None;
            }
        };
        machine.finish();
        read
    }
}

struct Draft {
    from: PhoneNumber,
    at_vapi: String,
    agent_id: AgentId,
    person: E164,
    variables: Map<String, Value>,
}

impl PlaceCall {
    pub(super) fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let phone_number_id = fields.required_parse("phone_number_id");
        let agent_id = fields.parse("agent_id");
        let to = parameter(fields, "to");
        match &to {
            Some(Parameter::Fixed { value, .. }) => sms::check_number("to.value", value, fields),
            Some(Parameter::Ai { schema, .. }) if schema.get("type") != Some(&json!("string")) => {
                fields.problem("to.schema.type", "must be string");
            }
            Some(Parameter::ArrayExtendable { .. }) => {
                fields.problem("to.mode", "must be fixed or ai: a call is to one person");
            }
            _ => {}
        }
        let reason = fields.get("reason").is_some().then(|| parameter(fields, "reason"));
        if let Some(Some(Parameter::ArrayExtendable { .. })) = &reason {
            fields.problem("reason.mode", "must be fixed or ai");
        }
        let variables = parameters(fields, "variables", is_variable);
        for name in variables.keys() {
            if is_reserved(name) || [REASON, "to", "reason"].contains(&name.as_str()) {
                fields.problem(&format!("variables.{name}"), "is the name of another value; choose another");
            }
        }
        let hours = match fields.get("hours") {
            None => Some(Hours::default()),
            Some(_) => Hours::read(fields, "hours"),
        };
        let time_zone = read_time_zone(fields);
        let answering_machine = AnsweringMachine::read(fields);
        if let Some(AnsweringMachine::LeaveMessage { message }) = &answering_machine
            && let Some(mistake) = unknown_in_message(message, &variables)
        {
            fields.problem("answering_machine.message", mistake);
        }
        let per_day = fields.whole("per_day", 1..=MOST_PER_DAY);
        let per_person_and_day = fields.whole("per_person_and_day", 1..=MOST_PER_PERSON);
        Some(Self {
            phone_number_id: phone_number_id?,
            agent_id,
            to: to?,
            reason: match reason {
                Some(reason) => Some(reason?),
                None => None,
            },
            variables,
            hours: hours?,
            time_zone,
            answering_machine: answering_machine?,
            per_day: per_day.unwrap_or(PER_DAY),
            per_person_and_day: per_person_and_day.unwrap_or(PER_PERSON),
        })
    }

    pub(super) fn parameters(&self) -> Vec<(Place, &Parameter)> {
        let variables = self
            .variables
            .iter()
            .map(|(name, parameter)| (Place { field: format!("variables.{name}"), argument: name.clone() }, parameter));
        let reason = self.reason.iter().map(|reason| (Place::named("reason"), reason));
        std::iter::once((Place::named("to"), &self.to)).chain(reason).chain(variables).collect()
    }

    pub(super) fn static_config(&self) -> Value {
        json!(self)
    }

    /// The effect is a call to the person; other words make no other call.
    pub(super) fn normalize(arguments: &mut Map<String, Value>) {
        arguments.retain(|name, _| name == "to");
        Self::respell(arguments);
    }

    pub(super) fn respell(arguments: &mut Map<String, Value>) {
        if let Some(Value::String(to)) = arguments.get_mut("to")
            && let Ok(number) = to.parse::<E164>()
        {
            *to = number.to_string();
        }
    }

    /// Places the call once: after every other check the do-not-call list is read, then VAPI is asked.
    pub(super) async fn run(&self, call: ActionCall<'_>, attempt: Attempt<'_>) -> Result<ToolOutcome, NotRun> {
        let ActionCall { services, context, .. } = call;
        let draft = self.allowed(call).await?;
        let (agent, account) = agent_and_account(services, &draft).await?.ok_or_else(no_agent)?;
        let taken = self.take_room(call, &draft.person, attempt).await?;
        let listed = services.do_not_call.of_number(context.organization, &draft.person).await;
        if !matches!(listed, Ok(None)) {
            services.quotas.release(taken).await?;
            listed?;
            return Err(do_not_call().into());
        }
        let outbound = OutboundCall {
            phone_number_id: &draft.at_vapi,
            assistant_id: &agent.external_assistant_id,
            person: &draft.person,
            name: attempt.claim,
            variables: &draft.variables,
            message: match &self.answering_machine {
                AnsweringMachine::HangUp => None,
                AnsweringMachine::LeaveMessage { message } => Some(message),
            },
        };
        let placing = placing(services, &draft, &agent, attempt.claim)?;
        let placed = services.vapi.place_call(&account, outbound, context.deadline);
        let (answer, ()) = join(placed, name_placing(services, &placing)).await;
        match answer {
            Ok(placed) => {
                let told = told(&draft, &placed);
                record(services, placing, placed).await;
                Ok(told)
            }
            Err(NotPlaced::Refused(cause)) => {
                let (released, ()) = join(services.quotas.release(taken), unname_placing(services, &placing)).await;
                released?;
                let sentence = "Nobody was called: the phone service did not take the call; say so, and do not place it \
                                again now.";
                Ok(ToolOutcome::failed(sentence).because(cause))
            }
            Err(NotPlaced::Unknown(cause)) => {
                let sentence = "It is not known whether the person is being called; do not place the call again.";
                let recipients = vec![RecipientOutcome::new(draft.person.as_str(), RecipientState::Unknown)];
                Ok(ToolOutcome { recipients, ..ToolOutcome::unknown(sentence).because(cause) })
            }
        }
    }

    pub(super) async fn find_again(&self, call: ActionCall<'_>, earlier: &Earlier) -> Result<Option<ToolOutcome>> {
        let services = call.services;
        let draft = match self.draft(call).await {
            Ok(draft) => draft,
            Err(NotRun::NoRequest(_)) => return Ok(None),
            Err(NotRun::Outage(outage)) => return Err(outage),
        };
        let Some((agent, account)) = agent_and_account(services, &draft).await? else { return Ok(None) };
        let (vapi, at, deadline) = (&services.vapi, earlier.until, call.context.deadline);
        match vapi.find_placed(&account, &draft.at_vapi, &earlier.name, at, deadline).await {
            Ok(Some(placed)) => {
                let told = told(&draft, &placed);
                record(services, placing(services, &draft, &agent, &earlier.name)?, placed).await;
                Ok(Some(told))
            }
            Ok(None) => Ok(None),
            Err(cause) => {
                tracing::warn!(
                    "VAPI could not be asked for a call that may have been placed: {}",
                    error::chain(&cause)
                );
                Ok(None)
            }
        }
    }

    /// The call of [`PlaceCall::run`]: `{"from", "to", "agent_id", "variables", "allowed", "reason"?}`.
    pub(super) async fn preview(&self, call: ActionCall<'_>) -> Result<Value, NotRun> {
        let draft = self.allowed(call).await?;
        let listed = call.services.do_not_call.of_number(call.context.organization, &draft.person).await?;
        let reason = listed.is_some().then(|| Value::from(do_not_call().into_sentence()));
        Ok(Value::Object(object([
            ("from", Some(json!(draft.from.number))),
            ("to", Some(json!(draft.person))),
            ("agent_id", Some(json!(draft.agent_id))),
            ("variables", Some(draft.variables.into())),
            ("allowed", Some(reason.is_none().into())),
            ("reason", reason),
        ])))
    }

    async fn allowed(&self, call: ActionCall<'_>) -> Result<Draft, NotRun> {
        let draft = self.draft(call).await?;
        self.may_call(&draft.from, &draft.person, Timestamp::now())?;
        Ok(draft)
    }

    async fn draft(&self, call: ActionCall<'_>) -> Result<Draft, NotRun> {
        let (person, variables) = self.merge(call)?;
        let numbers = &call.services.phone_numbers;
        let Some(from) = found(numbers.get(call.context.organization, self.phone_number_id).await)? else {
            return Err(refusal(Fault::Configuration, "the number to call from is no longer set up.").into());
        };
        let Some(at_vapi) = from.vapi_phone_number_id.clone() else {
            let sentence = "VAPI's id of the number to call from is not known. Set vapi_phone_number_id at the number.";
            return Err(refusal(Fault::Configuration, sentence).into());
        };
        let agent_id = self.agent_id.or(from.agent_id).ok_or_else(no_agent)?;
        Ok(Draft { from, at_vapi, agent_id, person, variables })
    }

    fn merge(&self, call: ActionCall<'_>) -> Result<(E164, Map<String, Value>), NoRequest> {
        let ActionCall { context: CallContext { conversation, .. }, arguments, .. } = call;
        let unknown = |unknown: Unknown| refusal(Fault::Caller, format!("{unknown}."));
        let to = self.to.value(arguments.get("to"), conversation, Encoding::Plain).map_err(unknown)?;
        let to = to.as_ref().and_then(Value::as_str).and_then(|to| to.parse::<E164>().ok());
        let person = to.filter(|to| !to.is_withheld()).ok_or_else(|| {
            refusal(Fault::Model, "\"to\" must be a phone number in international form, such as +15550100001.")
        })?;
        let mut variables = Map::new();
        let reason = self.reason.iter().map(|reason| ("reason", REASON, reason));
        let named = self.variables.iter().map(|(name, parameter)| (name.as_str(), name.as_str(), parameter));
        for (argument, name, parameter) in reason.chain(named) {
            let value = parameter.value(arguments.get(argument), conversation, Encoding::Plain).map_err(unknown)?;
            let Some(value) = value else { continue };
            if value.to_string().chars().count() > LONGEST_VALUE {
                let sentence = format!("\"{argument}\" is longer than {LONGEST_VALUE} characters; shorten it.");
                return Err(refusal(Fault::Model, sentence));
            }
            variables.insert(name.to_owned(), plain(value));
        }
        Ok((person, variables))
    }

    /// The rules that need no read: the number's kind, and the person's hours.
    fn may_call(&self, from: &PhoneNumber, person: &E164, now: Timestamp) -> Result<(), NoRequest> {
        if from.number == *person {
            return Err(refusal(Fault::Model, "\"to\" is the number to call from."));
        }
        numbering::never_called(person)
            .map_err(|why| refusal(Fault::Model, format!("the number {why}, which is never called.")))?;
        let known = numbering::zones(person);
        let mut zones: Vec<TimeZone> = known.names.iter().filter_map(|zone| TimeZone::get(zone).ok()).collect();
        if let Some(own) = self.time_zone.as_deref().and_then(|zone| TimeZone::get(zone).ok())
            && (zones.is_empty() || (known.whole_plan && zones.iter().any(|zone| have_the_same_clock(now, zone, &own))))
        {
            zones = vec![own];
        }
        if zones.is_empty() {
            let sentence = "the time zone of the number is not known. Set time_zone in the tool.";
            return Err(refusal(Fault::Configuration, sentence));
        }
        match zones.iter().find(|zone| !self.hours.hold(now, zone)) {
            None => Ok(()),
            Some(_) if zones.len() > 1 && !self.hours.can_hold(now, &zones) => {
                let choice = if known.whole_plan { "time_zone to one of them, or " } else { "" };
                let sentence = format!(
                    "the number may be in time zones too far apart for calls {}. Set {choice}longer hours in the tool.",
                    self.hours
                );
                Err(refusal(Fault::Configuration, sentence))
            }
            Some(zone) => {
                let zone = zone.iana_name().unwrap_or_default();
                let hours = &self.hours;
                Err(limited(format!(
                    "the person may be in {zone}, and this tool may call {hours} there. Place the call within these hours."
                )))
            }
        }
    }

    async fn take_room(
        &self,
        ActionCall { services, context, .. }: ActionCall<'_>,
        person: &E164,
        attempt: Attempt<'_>,
    ) -> Result<Taken, NotRun> {
        let (organization, id) = (context.organization, attempt.id.to_string());
        let hash = CallerHash::of(organization, person.as_str());
        let wanted = [
            (Counted::PlacedCallsOf(self.phone_number_id), Window::Day, self.per_day),
            (Counted::PlacedCalls, Window::DayOf(hash.as_str()), self.per_person_and_day),
        ];
        match services.quotas.take_each(organization, &wanted, Some(&id), context.deadline).await? {
            Room::Taken(taken) => Ok(taken),
            Room::None(limit) => {
                telemetry::execution_limited("place_call", limit.as_str());
                let sentence = match limit {
                    Limit::PerPersonAndDay => format!(
                        "the person has been called as often as is allowed on one day (per_person_and_day: {}).",
                        self.per_person_and_day
                    ),
                    _ => format!("the calls of this day are used up (per_day: {}).", self.per_day),
                };
                Err(limited(sentence).into())
            }
        }
    }
}

/// VAPI renders the message as Liquid, with the variables of the call and its own.
fn unknown_in_message(message: &str, variables: &BTreeMap<String, Parameter>) -> Option<String> {
    let names: Vec<&str> = std::iter::once(REASON).chain(variables.keys().map(String::as_str)).collect();
    not_filled(message, &names, |expression| {
        let root = expression.split(['.', '[', '|', ' ']).next().unwrap_or_default();
        root.starts_with(['"', '\'']) || names.contains(&root) || is_reserved(root)
    })
}

fn is_variable(name: &str) -> bool {
    name.len() <= LONGEST_NAME
        && name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

async fn agent_and_account(services: &ActionClients, draft: &Draft) -> Result<Option<(Agent, Account)>> {
    let organization = draft.from.organization_id;
    let agent = async { found(services.agents.get(organization, draft.agent_id).await) };
    let (agent, account) = try_join!(agent, services.accounts.vapi(organization))?;
    Ok(agent.map(|agent| (agent, account)))
}

fn refusal(fault: Fault, sentence: impl Display) -> NoRequest {
    NoRequest::of(fault, format!("Nobody was called: {sentence}"))
}

fn limited(sentence: impl Display) -> NoRequest {
    NoRequest::limited(format!("Nobody was called: {sentence}"))
}

fn no_agent() -> NoRequest {
    refusal(Fault::Configuration, "no agent is set up for the call. Set agent_id in the tool or at the number.")
}

fn do_not_call() -> NoRequest {
    limited("the number is on the organization's do-not-call list.")
}

fn told(draft: &Draft, placed: &PlacedCall) -> ToolOutcome {
    let person = draft.person.as_str();
    let recipient = RecipientOutcome::new(person, RecipientState::Sent);
    let recipients = vec![RecipientOutcome { sid: Some(placed.id.to_string()), ..recipient }];
    let result = json!({"call_id": placed.id, "to": person, "summary": format!("{person} is being called.")});
    ToolOutcome { recipients, ..ToolOutcome::succeeded(result).with(Effect::Done) }
}

fn placing(services: &ActionClients, draft: &Draft, agent: &Agent, name: &str) -> Result<PlacingCall> {
    let now = Timestamp::now();
    Ok(PlacingCall {
        id: CallId::placing(name).map_err(Error::internal)?,
        organization_id: draft.from.organization_id,
        agent_id: agent.id,
        caller_phone_number: draft.person.clone(),
        called_phone_number: draft.from.number.clone(),
        phone_number_id: draft.from.id,
        call_expires_at: now.plus(services.calls_kept).as_seconds(),
        expires_at: now.plus(NAMED_FOR).as_seconds(),
    })
}

/// Lets VAPI's messages write the call's row if VAPI's answer is lost. A failure prevents no call.
async fn name_placing(services: &ActionClients, placing: &PlacingCall) {
    match tokio::time::timeout(NAMED_WITHIN, services.calls.put_placing(placing)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!("the name of a placed call could not be written: {}", error::chain(&error)),
        Err(elapsed) => tracing::warn!("the name of a placed call was not written in time: {elapsed}"),
    }
}

async fn unname_placing(services: &ActionClients, placing: &PlacingCall) {
    if let Err(error) = services.calls.delete_placing(placing.organization_id, &placing.id).await {
        tracing::warn!("the name of a refused call could not be deleted: {}", error::chain(&error));
    }
}

/// Writes the call's row, from which its timeline, receipt and events come. A failed write undoes no call.
async fn record(services: &ActionClients, placing: PlacingCall, placed: PlacedCall) {
    let PlacedCall { id, call } = placed;
    let name = placing.id.clone();
    let row = placing.placed(id);
    let row = Call { control_url: call.control_url(), status: call.status.or(row.status), ..row };
    match tokio::time::timeout(RECORDED_WITHIN, services.calls.put_placed(&row, &name)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            tracing::error!(call.id = %row.id, "a placed call could not be recorded: {}", error::chain(&error));
        }
        Err(elapsed) => tracing::error!(call.id = %row.id, "a placed call was not recorded in time: {elapsed}"),
    }
}
