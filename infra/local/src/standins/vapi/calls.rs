//! VAPI's phone calls: start, messages to their control URLs, end.

use std::collections::BTreeMap;

use jiff::{Timestamp, ToSpan};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{
    Spoken, Vapi, bad_request, body, control,
    stored_objects::{Listing, StoredObjects},
    tool_call::CallError,
    unknown_route,
};
use crate::standins::{
    Standin, clock,
    exchange::{Answer, Request, refused},
    locked,
};

/// An incoming phone call.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhoneCall {
    /// `None` for a call with an inline assistant.
    pub assistant_id: Option<String>,
    /// The caller, E.164.
    pub customer_number: String,
    /// The called number, E.164.
    pub phone_number: String,
    /// A new UUID v7 if absent.
    pub call_id: Option<String>,
    /// VAPI's id of the called number; a new one if absent.
    pub phone_number_id: Option<String>,
    /// Twilio's id of the call; a new one if absent.
    pub call_sid: Option<String>,
    /// The call's `assistantOverrides.variableValues`.
    #[serde(default)]
    pub variable_values: Map<String, Value>,
    #[serde(default)]
    pub media: Media,
}

/// When the media connects; until then the call rings and its control URL answers 404.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Media {
    #[default]
    Connected,
    /// Milliseconds after the call began.
    AfterMs(u32),
    /// On command.
    Later,
}

/// A message to a control URL.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Heard {
    /// ISO 8601.
    pub at: String,
    pub message: Value,
}

#[derive(Debug, Default)]
pub(super) struct Calls(BTreeMap<String, Live>);

#[derive(Debug)]
pub(super) struct Live {
    /// The call as `GET /call/{id}` answers it.
    object: Map<String, Value>,
    /// The called number.
    phone_number: String,
    media_at: Option<Timestamp>,
    heard: Vec<Heard>,
    /// The sentences heard by the caller while tools ran.
    pub(super) spoken: Vec<Spoken>,
}

impl Live {
    pub(super) fn object(&self) -> &Map<String, Value> {
        &self.object
    }

    pub(super) fn phone_number(&self) -> &str {
        &self.phone_number
    }

    /// The TwiML that connects the caller.
    pub(super) fn twiml(&self) -> String {
        let listen = self.object.get("monitor").and_then(|monitor| monitor.get("listenUrl")?.as_str());
        let address = listen.and_then(|listen| listen.strip_suffix("/listen")).unwrap_or_default();
        format!("<Response><Connect><Stream url='{address}/transport' /></Connect></Response>")
    }

    /// Marks a call as made through the API with the provider bypassed; the API's client connects it with the TwiML.
    pub(super) fn bypass(&mut self, overrides: Option<Value>, name: Option<Value>) {
        self.object.extend(name.map(|name| ("name".to_owned(), name)));
        if self.is("ringing") {
            self.object.insert("status".to_owned(), json!("queued"));
        }
        self.object.extend(overrides.map(|overrides| ("assistantOverrides".to_owned(), overrides)));
        let details = json!({ "twiml": self.twiml() });
        self.object.insert("phoneCallProviderDetails".to_owned(), details);
    }

    /// Marks a call as made through the API and dialled by VAPI.
    pub(super) fn dial(&mut self, overrides: Option<Value>, name: Option<Value>) {
        self.object.extend(name.map(|name| ("name".to_owned(), name)));
        self.object.extend(overrides.map(|overrides| ("assistantOverrides".to_owned(), overrides)));
        self.object.insert("status".to_owned(), json!("queued"));
        self.object.insert("type".to_owned(), json!("outboundPhoneCall"));
    }

    /// Applies the changes that are due by now.
    fn up_to_date(&mut self, now: Timestamp) -> &mut Self {
        if self.waits() && self.media_at.is_some_and(|at| at <= now) {
            self.enter("in-progress", now);
            self.object.insert("startedAt".to_owned(), json!(clock::iso(now)));
        }
        self
    }

    fn is(&self, status: &str) -> bool {
        self.object.get("status").is_some_and(|present| present == status)
    }

    fn waits(&self) -> bool {
        self.is("ringing") || self.is("queued")
    }

    fn enter(&mut self, status: &str, now: Timestamp) {
        self.object.insert("status".to_owned(), json!(status));
        self.object.insert("updatedAt".to_owned(), json!(clock::iso(now)));
        if status == "ended" {
            self.object.insert("endedAt".to_owned(), json!(clock::iso(now)));
        }
    }

    /// Whether the control URL accepts messages: from the media's connection to the end of the call.
    fn takes_messages(&self) -> bool {
        let controlled = self.object.get("monitor").is_some_and(|monitor| monitor.get("controlUrl").is_some());
        controlled && !self.waits() && !self.is("ended")
    }

    /// VAPI has only the media of a bypassed call.
    fn has_no_line_for(&self, message: &Map<String, Value>) -> bool {
        let transfers = message.get("type").is_some_and(|kind| kind == "transfer");
        transfers && self.object.contains_key("phoneCallProviderDetails")
    }

    /// Applies a message's effect on the call.
    fn hear(&mut self, message: Map<String, Value>, now: Timestamp) {
        let flag = |name: &str| message.get(name).is_some_and(|value| *value == json!(true));
        match message.get("type").and_then(Value::as_str) {
            Some("transfer") => {
                self.enter("forwarding", now);
                self.object.extend(message.get("destination").map(|to| ("destination".to_owned(), to.clone())));
            }
            Some("end-call") => self.enter("ended", now),
            Some("say") if flag("endCallAfterSpoken") => self.enter("ended", now),
            _ => {}
        }
        self.heard.push(Heard { at: clock::iso(now), message: Value::Object(message) });
    }
}

impl Calls {
    pub(super) fn live(&mut self, id: &str) -> Option<&mut Live> {
        self.0.get_mut(id).map(|live| live.up_to_date(clock::now()))
    }

    /// The id of the call that goes on with this id at Twilio. After its end the caller's line may come back in another call.
    fn with_sid(&self, sid: &str) -> Option<String> {
        let of_line = |live: &Live| live.object.get("phoneCallProviderId").is_some_and(|of| of == sid);
        let found = self.0.iter().find(|(_, live)| of_line(live) && !live.is("ended"));
        found.map(|(id, _)| id.clone())
    }
}

impl Vapi {
    /// The call with this id, or the live one with this id at Twilio; begins it if there is none.
    pub(super) fn begun<R>(&self, call: &PhoneCall, read: impl FnOnce(&mut Live) -> R) -> Result<R, CallError> {
        let mut state = locked(&self.state);
        let assistant = match &call.assistant_id {
            Some(id) => Some(state.assistants.get(id).ok_or_else(|| CallError::UnknownAssistant(id.clone()))?),
            None => None,
        };
        let controlled = assistant
            .and_then(|assistant| assistant.get("monitorPlan")?.get("controlEnabled")?.as_bool())
            .unwrap_or(true);
        let same = || state.calls.with_sid(call.call_sid.as_deref()?);
        let id = call.call_id.clone().or_else(same).unwrap_or_else(|| Uuid::now_v7().to_string());
        // A call belongs to its assistant's account; with an inline assistant, to the first account.
        let of_assistant = assistant.and_then(|assistant| assistant.get("orgId")?.as_str()).map(str::to_owned);
        let org = of_assistant.or_else(|| self.keys.first().map(|(_, org)| org.clone())).unwrap_or_default();
        let begun = state.time();
        let live = state.calls.0.entry(id.clone()).or_insert_with(|| self.begin(call, &id, &org, &begun, controlled));
        Ok(read(live.up_to_date(clock::now())))
    }

    fn begin(&self, call: &PhoneCall, id: &str, org: &str, begun: &str, controlled: bool) -> Live {
        let now = clock::now();
        let address = self.url.get().map_or("", String::as_str);
        let mut monitor = json!({ "listenUrl": format!("{}/{id}/listen", address.replacen("http", "ws", 1)) });
        if controlled && let Some(monitor) = monitor.as_object_mut() {
            monitor.insert("controlUrl".to_owned(), json!(format!("{address}/{id}/control")));
        }
        let sid = call.call_sid.clone().unwrap_or_else(|| format!("CA{}", Uuid::new_v4().simple()));
        let number = call.phone_number_id.clone().unwrap_or_else(|| Uuid::new_v4().to_string());
        let object = json!({
            "id": id,
            "orgId": org,
            "createdAt": begun,
            "updatedAt": begun,
            "type": "inboundPhoneCall",
            "cost": 0,
            "monitor": monitor,
            "transport": { "conversationType": "voice", "provider": "twilio", "callSid": sid },
            "phoneCallProvider": "twilio",
            "phoneCallProviderId": sid,
            "phoneCallTransport": "pstn",
            "status": "ringing",
            "assistantId": call.assistant_id,
            "assistantOverrides": { "variableValues": call.variable_values },
            "phoneNumberId": number,
            "customer": { "number": call.customer_number },
        });
        let media_at = match call.media {
            Media::Connected => Some(now),
            Media::AfterMs(wait) => now.checked_add(i64::from(wait).milliseconds()).ok(),
            Media::Later => None,
        };
        Live {
            object: object.as_object().cloned().unwrap_or_default(),
            phone_number: call.phone_number.clone(),
            media_at,
            heard: Vec::new(),
            spoken: Vec::new(),
        }
    }

    pub(super) fn call(&self, org_id: &str, id: &str) -> Answer {
        if Uuid::try_parse(id).is_err() {
            return bad_request(&["id must be a UUID".to_owned()]);
        }
        let mut state = locked(&self.state);
        if let Some(live) = state.calls.live(id).filter(|live| live.object.get("orgId").is_some_and(|of| of == org_id))
        {
            return Answer::json(200, &json!(live.object));
        }
        let message = format!("Couldn't Get Call. `id` {id} Does Not Exist.");
        Answer::json(404, &json!({ "message": message, "error": "Not Found", "statusCode": 404 }))
    }

    /// `GET /call`: a plain array, newest first, optionally filtered by assistant or number.
    pub(super) fn calls(&self, org_id: &str, request: &Request) -> Answer {
        let of = ["assistantId", "phoneNumberId"];
        let (filters, rest): (Vec<_>, Vec<_>) =
            request.query.iter().cloned().partition(|(name, _)| of.contains(&name.as_str()));
        let listing = match Listing::of(&rest) {
            Ok(listing) => listing,
            Err(problems) => return bad_request(&problems),
        };
        let mut calls = StoredObjects::default();
        // Ids ascend with time.
        for live in locked(&self.state).calls.0.values() {
            if filters.iter().all(|(name, value)| live.object.get(name).is_some_and(|of| of == value.as_str())) {
                calls.add(live.object.clone());
            }
        }
        Answer::json(200, &listing.page(&calls, org_id))
    }

    /// A POST to a control URL. It needs no key; VAPI's answer is not documented.
    pub(super) fn controlled(&self, id: &str, request: &Request) -> Answer {
        let message = body(request);
        let mut state = locked(&self.state);
        let known = |assistant: &str| state.assistants.get(assistant).is_some();
        let problems = match &message {
            Ok(message) => control::problems(message, known),
            Err(problems) => problems.clone(),
        };
        match (state.calls.live(id).filter(|live| live.takes_messages()), message) {
            (None, _) => unknown_route(request),
            (Some(live), Ok(message)) if problems.is_empty() => {
                if live.has_no_line_for(&message) {
                    return bad_request(&[
                        "a call with phoneCallProviderBypassEnabled cannot be transferred".to_owned()
                    ]);
                }
                live.hear(message, clock::now());
                Answer::json(200, &json!({}))
            }
            _ => bad_request(&problems),
        }
    }

    /// The stand-in's control routes.
    pub(super) fn simulated_call(&self, request: &Request) -> Option<Answer> {
        let answer = match (request.method.as_str(), request.segments().as_slice()) {
            ("POST", ["simulate", "call"]) => match serde_json::from_slice::<PhoneCall>(&request.body) {
                Ok(call) => match self.begun(&call, |live| json!(live.object)) {
                    Ok(object) => Answer::json(201, &object),
                    Err(error) => Answer::json(error.status(), &json!({ "error": error.to_string() })),
                },
                Err(error) => refused(error),
            },
            ("GET", ["simulate", "call", id]) => self.told(id),
            ("PUT", ["simulate", "call", id]) => match serde_json::from_slice::<Course>(&request.body) {
                Ok(course) => {
                    self.bring(id, &course);
                    self.told(id)
                }
                Err(error) => refused(error),
            },
            _ => return None,
        };
        Some(answer)
    }

    fn told(&self, id: &str) -> Answer {
        match locked(&self.state).calls.live(id) {
            Some(live) => {
                Answer::json(200, &json!({ "call": live.object, "messages": live.heard, "spoken": live.spoken }))
            }
            None => Answer::json(404, &json!({ "error": format!("no call {id}") })),
        }
    }

    /// Returns whether the call exists.
    fn bring(&self, id: &str, course: &Course) -> bool {
        let now = clock::now();
        let mut state = locked(&self.state);
        let Some(live) = state.calls.live(id) else { return false };
        match course {
            Course::Connected => {
                live.media_at = live.media_at.filter(|at| *at <= now).or(Some(now));
                live.up_to_date(now);
            }
            Course::Ended => live.enter("ended", now),
        }
        true
    }
}

/// The next state of a call.
#[derive(Deserialize)]
#[serde(tag = "status", rename_all = "snake_case", deny_unknown_fields)]
enum Course {
    /// Connects the media regardless of its schedule.
    Connected,
    Ended,
}

impl Standin<Vapi> {
    /// Begins a call; returns it as the API answers it.
    pub fn begin_call(&self, call: &PhoneCall) -> Result<Value, CallError> {
        self.service.begun(call, |live| json!(live.object))
    }

    /// A call as the API answers it.
    pub fn call(&self, id: &str) -> Option<Value> {
        locked(&self.service.state).calls.live(id).map(|live| json!(live.object))
    }

    /// The messages to a call's control URL, in order.
    pub fn heard(&self, id: &str) -> Vec<Value> {
        let mut state = locked(&self.service.state);
        let heard = state.calls.live(id).map(|live| live.heard.iter().map(|heard| heard.message.clone()).collect());
        heard.unwrap_or_default()
    }

    /// Every call as the API answers it.
    pub fn calls(&self) -> Vec<Value> {
        locked(&self.service.state).calls.0.values().map(|live| json!(live.object)).collect()
    }

    pub fn calls_begun(&self) -> usize {
        locked(&self.service.state).calls.0.len()
    }

    /// Connects the media of a call; false if there is no such call.
    pub fn connect_media(&self, id: &str) -> bool {
        self.service.bring(id, &Course::Connected)
    }

    /// The caller hangs up; false if there is no such call.
    pub fn end_call(&self, id: &str) -> bool {
        self.service.bring(id, &Course::Ended)
    }
}
