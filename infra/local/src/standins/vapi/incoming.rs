//! New calls: Twilio's form for a known number, or the API, which dials a person or is bypassed.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{Media, PhoneCall, Vapi, bad_request, bad_request_saying, body, fields, tool_call::CallError, webhook};
use crate::standins::{
    Standin,
    exchange::{Answer, Request, refused},
    locked,
};

/// A number for incoming calls.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Number {
    /// E.164.
    pub number: String,
    /// The assistant for its calls.
    pub assistant_id: String,
    /// VAPI's id of the number; a new one if absent.
    pub id: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct Numbers(Vec<Map<String, Value>>);

impl Numbers {
    fn with(&self, field: &str, value: &str) -> Option<&Map<String, Value>> {
        self.0.iter().find(|record| text(record, field) == value)
    }

    pub(super) fn with_id(&self, id: &str) -> Option<&Map<String, Value>> {
        self.with("id", id)
    }

    pub(super) fn has(&self, number: &str) -> bool {
        self.with("number", number).is_some()
    }

    pub(super) fn all_of(&self, org_id: &str) -> Vec<&Map<String, Value>> {
        self.0.iter().filter(|record| text(record, "orgId") == org_id).collect()
    }

    pub(super) fn add(&mut self, record: Map<String, Value>) {
        self.0.push(record);
    }

    pub(super) fn remove(&mut self, org_id: &str, id: &str) {
        self.0.retain(|record| text(record, "orgId") != org_id || text(record, "id") != id);
    }

    /// Like `with_id`, for the numbers of one account.
    fn of(&self, org_id: &str, id: &str) -> Option<&Map<String, Value>> {
        self.with_id(id).filter(|record| text(record, "orgId") == org_id)
    }
}

impl Vapi {
    /// Adds a number or assigns an existing one to another assistant; returns its record. The id of an existing
    /// number stays.
    pub(super) fn register(&self, number: &Number) -> Result<Value, CallError> {
        let mut state = locked(&self.state);
        let now = state.time();
        let assistant = state.assistants.get(&number.assistant_id);
        let assistant = assistant.ok_or_else(|| CallError::UnknownAssistant(number.assistant_id.clone()))?;
        let org_id = text(assistant, "orgId").to_owned();
        let kept = state.numbers.with("number", &number.number).map(|record| text(record, "id").to_owned());
        let id = number.id.clone().or(kept).unwrap_or_else(|| Uuid::new_v4().to_string());
        let mut record = webhook::phone_number(&id, &org_id, &number.number, &now);
        record.insert("assistantId".to_owned(), json!(number.assistant_id));
        state.numbers.0.retain(|other| text(other, "number") != number.number && text(other, "id") != id);
        state.numbers.0.push(record.clone());
        Ok(Value::Object(record))
    }

    pub(super) fn number(&self, org_id: &str, id: &str) -> Answer {
        let found = locked(&self.state).numbers.of(org_id, id).cloned();
        if let Some(record) = found {
            return Answer::json(200, &json!(record));
        }
        let message = format!("Couldn't Get Phone Number. `id` {id} Does Not Exist.");
        Answer::json(404, &json!({ "message": message, "error": "Not Found", "statusCode": 404 }))
    }

    pub(super) fn simulated_number(&self, request: &Request) -> Answer {
        match serde_json::from_slice::<Number>(&request.body) {
            Ok(number) => match self.register(&number) {
                Ok(record) => Answer::json(200, &record),
                Err(error) => Answer::json(error.status(), &json!({ "error": error.to_string() })),
            },
            Err(error) => refused(error),
        }
    }

    /// `POST /twilio/inbound_call`: the voice URL that VAPI sets for a number at Twilio. It is unknown whether VAPI
    /// verifies Twilio's signature; the stand-in accepts forms without one.
    pub(super) fn inbound_call(&self, request: &Request) -> Answer {
        // A body in another format is not read, so all its fields are missing.
        let form = if request.is_form() { request.form() } else { Vec::new() };
        let field = |name: &str| form.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value.as_str());
        let mut problems = Vec::new();
        for name in ["CallSid", "From", "To"] {
            if field(name).is_empty() {
                problems.push(format!("{name} should not be empty"));
            }
        }
        if field("CallStatus") != "ringing" {
            problems.push("CallStatus must be one of the following values: ringing".to_owned());
        }
        if !["inbound", "outbound"].contains(&field("Direction")) {
            problems.push("Direction must be one of the following values: inbound, outbound".to_owned());
        }
        if !problems.is_empty() {
            return bad_request(&problems);
        }
        let known = locked(&self.state).numbers.with("number", field("To")).cloned();
        let Some(record) = known else {
            let message = format!("Couldn't Get Phone Number. `number` {} Does Not Exist.", field("To"));
            return Answer::json(404, &json!({ "message": message, "error": "Not Found", "statusCode": 404 }));
        };
        let call = PhoneCall {
            assistant_id: Some(text(&record, "assistantId").to_owned()),
            customer_number: field("From").to_owned(),
            phone_number: field("To").to_owned(),
            phone_number_id: Some(text(&record, "id").to_owned()),
            call_sid: Some(field("CallSid").to_owned()),
            media: *locked(&self.media),
            ..PhoneCall::default()
        };
        match self.begun(&call, |live| live.twiml()) {
            Ok(twiml) => Answer::text(200, "text/xml", twiml),
            Err(error) => bad_request_saying(&error.to_string()),
        }
    }

    /// `POST /call`: a call that bypasses the provider, or one that VAPI dials.
    pub(super) fn create_call(&self, org_id: &str, request: &Request) -> Answer {
        let wish = match body(request) {
            Ok(body) => body,
            Err(problems) => return bad_request(&problems),
        };
        let problems = fields::call(&wish);
        if !problems.is_empty() {
            return bad_request(&problems);
        }
        let bypasses = wish.get("phoneCallProviderBypassEnabled") == Some(&json!(true));
        let (assistant_id, number_id) = (text(&wish, "assistantId"), text(&wish, "phoneNumberId"));
        let known = {
            let state = locked(&self.state);
            if !state.assistants.is_of(org_id, assistant_id) {
                return bad_request_saying(&CallError::UnknownAssistant(assistant_id.to_owned()).to_string());
            }
            state.numbers.of(org_id, number_id).map(|record| text(record, "number").to_owned())
        };
        let Some(number) = known else {
            return bad_request_saying(&format!(
                "Couldn't Get Phone Number. `phoneNumberId` {number_id} Does Not Exist."
            ));
        };
        let customer = wish.get("customer").and_then(|customer| customer.get("number")?.as_str());
        let overrides = wish.get("assistantOverrides").cloned();
        let values = overrides.as_ref().and_then(|overrides| overrides.get("variableValues")?.as_object().cloned());
        let call = PhoneCall {
            assistant_id: Some(assistant_id.to_owned()),
            customer_number: customer.unwrap_or_default().to_owned(),
            phone_number: number,
            phone_number_id: Some(number_id.to_owned()),
            variable_values: values.unwrap_or_default(),
            // A dialled person answers on command.
            media: if bypasses { *locked(&self.media) } else { Media::Later },
            ..PhoneCall::default()
        };
        let begun = self.begun(&call, |live| {
            let name = wish.get("name").cloned();
            if bypasses {
                live.bypass(overrides, name);
            } else {
                live.dial(overrides, name);
            }
            json!(live.object())
        });
        match begun {
            Ok(object) => Answer::json(201, &object),
            Err(error) => bad_request_saying(&error.to_string()),
        }
    }
}

/// A text field, or the empty text.
pub(super) fn text<'a>(object: &'a Map<String, Value>, name: &str) -> &'a str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}

impl Standin<Vapi> {
    /// Assigns a number (E.164) to an assistant; returns VAPI's id of the number, which does not change.
    pub fn set_number(&self, number: &str, assistant_id: &str) -> Result<String, CallError> {
        let number = Number { number: number.to_owned(), assistant_id: assistant_id.to_owned(), id: None };
        let record = self.service.register(&number)?;
        Ok(record.get("id").and_then(Value::as_str).unwrap_or_default().to_owned())
    }

    /// Sets when the media of later incoming calls connects.
    pub fn set_media(&self, media: Media) {
        *locked(&self.service.media) = media;
    }
}
