//! How a call that comes in gets its TwiML.
//!
//! A caller is waiting, so what is transient is tried again while there is time. That begins no conversation twice: VAPI has
//! the media of a call only through its TwiML, and Twilio is given one.

use std::sync::atomic::{AtomicBool, Ordering};

use reqwest::{Method, header::CONTENT_TYPE};
use serde_json::{Value, json};

use super::{Account, Vapi, text_at};
use crate::{
    Deadline,
    clients::{
        Error, Failure, Service,
        http_client::{Retry, once, read_json, retrying, segment, send},
    },
    models::Timestamp,
};

/// What VAPI takes as a name or a number, in characters.
const LONGEST: usize = 40;
/// How far back the call is looked for that a lost answer may have been about, in milliseconds: far longer than an incoming
/// call is worked on.
const LOOKED_FOR_MS: i64 = 60_000;

/// A call whose media Twilio brings.
#[derive(Debug, Clone, Copy)]
pub struct InboundCall<'a> {
    /// VAPI's ids.
    pub phone_number_id: &'a str,
    pub assistant_id: &'a str,
    /// As the network gave it; may be no number at all (`anonymous`, `client:…`).
    pub caller: &'a str,
    /// Twilio's id of the call, by which it is found again.
    pub call_sid: &'a str,
}

impl Vapi {
    /// Hands Twilio's request about an incoming call on, its form as it came; gives the TwiML. It needs no key: which assistant
    /// answers is what VAPI has for the number. Sent again on anything transient, as Twilio sends it again: the `CallSid` in it
    /// says that it is the same call.
    pub async fn inbound_call(&self, form: Vec<u8>, deadline: Deadline) -> Result<String, Error> {
        let request = self.http.post(format!("{}/twilio/inbound_call", self.base_url)).body(form);
        let request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        let twiml = send(Service::Vapi, request, Retry::Harmless, deadline).await?;
        String::from_utf8(twiml).map_err(|error| {
            Error::because(Service::Vapi, Failure::Undecodable("the TwiML is not UTF-8".into()), error)
        })
    }

    /// Creates a call whose media Twilio brings (provider bypass). Gives the TwiML. When the answer to a try is lost, the call is
    /// looked for, by its `CallSid` as its name, before another is made.
    pub async fn create_inbound_call(
        &self,
        account: &Account,
        call: InboundCall<'_>,
        deadline: Deadline,
    ) -> Result<String, Error> {
        let body = json!({
            "phoneCallProviderBypassEnabled": true,
            "phoneNumberId": call.phone_number_id,
            "assistantId": call.assistant_id,
            "customer": customer(call.caller),
            "name": name(call.call_sid),
        });
        let perhaps_made = &AtomicBool::new(false);
        let attempt = async || {
            if perhaps_made.load(Ordering::Relaxed)
                && let Some(twiml) = self.made_before(account, call, deadline).await?
            {
                return Ok(twiml);
            }
            let request = self.request(account, Method::POST, "/call").json(&body).timeout(deadline.remaining());
            let created = once(Service::Vapi, request).await.and_then(|answer| read_json(Service::Vapi, &answer));
            let created: Value = created.inspect_err(|error: &Error| {
                perhaps_made.fetch_or(error.effect_possible(), Ordering::Relaxed);
            })?;
            twiml_of(&created)
        };
        retrying(Retry::Harmless, deadline, attempt).await
    }

    /// The TwiML of the call that an earlier try made, if it made one.
    async fn made_before(
        &self,
        account: &Account,
        call: InboundCall<'_>,
        deadline: Deadline,
    ) -> Result<Option<String>, Error> {
        let since = Timestamp::from_millis(Timestamp::now().as_millis().saturating_sub(LOOKED_FOR_MS));
        let number = segment(call.phone_number_id);
        let path = format!("/call?phoneNumberId={number}&createdAtGt={}", segment(&since.to_string()));
        let request = self.request(account, Method::GET, &path).timeout(deadline.remaining());
        let calls: Vec<Value> = read_json(Service::Vapi, &once(Service::Vapi, request).await?)?;
        let name = name(call.call_sid);
        let made = calls.iter().find(|made| made.get("name").and_then(Value::as_str) == Some(&name));
        Ok(made.and_then(|made| twiml_of(made).ok()))
    }
}

fn twiml_of(call: &Value) -> Result<String, Error> {
    text_at(call.get("phoneCallProviderDetails").unwrap_or(&Value::Null), "twiml")
}

fn name(text: &str) -> String {
    text.chars().take(LONGEST).collect()
}

/// Who calls, as VAPI takes it. Its check for E.164 is for numbers to dial, and would turn those away who withhold theirs; without
/// it a number is still of letters and digits, so that another address is told as a name.
fn customer(caller: &str) -> Value {
    let digits = caller.strip_prefix('+').unwrap_or(caller);
    let taken = digits.bytes().all(|byte| byte.is_ascii_alphanumeric()) && (3..=LONGEST).contains(&caller.len());
    if taken {
        json!({"number": caller, "numberE164CheckEnabled": false})
    } else {
        json!({"number": "anonymous", "numberE164CheckEnabled": false, "name": name(caller)})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_caller_is_somebody_vapi_takes() {
        for caller in ["+14155550101", "anonymous", "+266696687", "1234"] {
            assert_eq!(customer(caller), json!({"number": caller, "numberE164CheckEnabled": false}));
        }
        let sip = format!("sip:{}@example.com", "a".repeat(60));
        for caller in ["client:browser", "sip:ana@example.com", "+", "ab", &sip] {
            let told = customer(caller);
            assert_eq!(told["number"], "anonymous");
            let name = told["name"].as_str().unwrap();
            assert!(caller.starts_with(name) && name.len() <= LONGEST, "{name}");
        }
    }
}
