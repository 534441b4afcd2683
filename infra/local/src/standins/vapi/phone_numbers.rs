//! An account's numbers: `POST /phone-number` imports one from its owner's Twilio account.
//!
//! The import sets VAPI as the number's voice URL at Twilio.
//!
//! VAPI's exact errors for rejected Twilio credentials and for duplicate numbers are unknown.

use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{
    Vapi, bad_request, bad_request_saying, body,
    control::{NO_E164, is_e164},
    fields,
    incoming::text,
    tool_call::CallError,
    unknown_route, webhook,
};
use crate::standins::{
    exchange::{Answer, Request},
    locked,
};

impl Vapi {
    /// All routes below `/phone-number`, for the key's account.
    pub(super) async fn phone_numbers(&self, org_id: &str, request: &Request) -> Answer {
        match (request.method.as_str(), request.segments().as_slice()) {
            ("POST", ["phone-number"]) => match body(request) {
                Ok(wish) => self.import(org_id, &wish).await,
                Err(problems) => bad_request(&problems),
            },
            ("GET", ["phone-number"]) => Answer::json(200, &json!(locked(&self.state).numbers.all_of(org_id))),
            ("GET", ["phone-number", id]) => self.number(org_id, id),
            ("DELETE", ["phone-number", id]) => {
                let found = self.number(org_id, id);
                locked(&self.state).numbers.remove(org_id, id);
                found
            }
            _ => unknown_route(request),
        }
    }

    async fn import(&self, org_id: &str, wish: &Map<String, Value>) -> Answer {
        let mut problems = fields::twilio_number(wish);
        let number = text(wish, "number");
        if wish.get("number").is_some_and(Value::is_string) && !is_e164(number) {
            problems.push(format!("number {NO_E164}"));
        }
        if !problems.is_empty() {
            return bad_request(&problems);
        }
        {
            let state = locked(&self.state);
            let assistant = text(wish, "assistantId");
            if wish.contains_key("assistantId") && !state.assistants.is_of(org_id, assistant) {
                return bad_request_saying(&CallError::UnknownAssistant(assistant.to_owned()).to_string());
            }
            if state.numbers.has(number) {
                return bad_request_saying(&format!("Phone number {number} is already in use."));
            }
        }
        if let Err(problem) = self.take_over(wish).await {
            return bad_request_saying(&format!("Twilio Error: {problem}"));
        }
        let mut state = locked(&self.state);
        let now = state.time();
        let mut record = webhook::phone_number(&Uuid::new_v4().to_string(), org_id, number, &now);
        record.remove("name");
        for field in ["name", "assistantId", "server", "smsEnabled", "twilioAccountSid", "fallbackDestination"] {
            record.extend(wish.get(field).map(|value| (field.to_owned(), value.clone())));
        }
        state.numbers.add(record.clone());
        Answer::json(201, &Value::Object(record))
    }

    /// Sets the number's addresses at Twilio, with the credentials of the number's owner.
    async fn take_over(&self, wish: &Map<String, Value>) -> Result<(), String> {
        let twilio = self.twilio.as_ref().ok_or("this stand-in was started without one")?;
        let account = text(wish, "twilioAccountSid");
        let (user, password) = if text(wish, "twilioAuthToken").is_empty() {
            (text(wish, "twilioApiKey"), text(wish, "twilioApiSecret"))
        } else {
            (account, text(wish, "twilioAuthToken"))
        };
        let numbers = format!("{twilio}/2010-04-01/Accounts/{account}/IncomingPhoneNumbers");
        let wanted = text(wish, "number");
        let query = url::form_urlencoded::Serializer::new(String::new()).append_pair("PhoneNumber", wanted).finish();
        let found = self.client.get(format!("{numbers}.json?{query}"));
        let found = answered(found.basic_auth(user, Some(password))).await?;
        let found = found.get("incoming_phone_numbers").and_then(Value::as_array).cloned().unwrap_or_default();
        let sid = found
            .iter()
            .find(|number| number.get("phone_number").is_some_and(|number| number == wanted))
            .and_then(|number| number.get("sid")?.as_str())
            .ok_or_else(|| format!("the account has no number {wanted}"))?;
        let own = self.url.get().map(String::as_str).unwrap_or_default();
        let mut form = vec![
            ("VoiceUrl", format!("{own}/twilio/inbound_call")),
            ("VoiceMethod", "POST".to_owned()),
            ("StatusCallback", format!("{own}/twilio/status")),
            ("StatusCallbackMethod", "POST".to_owned()),
        ];
        if wish.get("smsEnabled") != Some(&json!(false)) {
            form.extend([("SmsUrl", format!("{own}/twilio/sms")), ("SmsMethod", "POST".to_owned())]);
        }
        let change = self.client.post(format!("{numbers}/{sid}.json")).form(&form);
        answered(change.basic_auth(user, Some(password))).await.map(drop)
    }
}

/// Twilio's answer, or its refusal as one sentence.
async fn answered(request: reqwest::RequestBuilder) -> Result<Value, String> {
    let failed = |error: reqwest::Error| error.without_url().to_string();
    let answer = request.send().await.map_err(failed)?;
    let refused = !answer.status().is_success();
    let body: Value = serde_json::from_slice(&answer.bytes().await.map_err(failed)?).unwrap_or_default();
    if refused {
        let message = body.get("message").and_then(Value::as_str).unwrap_or("no reason given");
        return Err(message.to_owned());
    }
    Ok(body)
}
