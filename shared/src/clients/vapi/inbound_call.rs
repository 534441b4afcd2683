//! Creates the TwiML of an incoming call.
//!
//! The caller is waiting, so transient failures are retried while time allows. No conversation starts twice: VAPI gets a call's
//! media only through its TwiML, and Twilio receives one.

use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::select_ok;
use reqwest::{Method, header::CONTENT_TYPE};
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use super::{
    Account, Vapi,
    lists::{CLOCKS_DIFFER, NamedCall},
    text_at,
};
use crate::{
    Deadline,
    clients::{
        Error, Failure, UpstreamService,
        http_client::{Retry, once, read_json, retrying},
    },
    models::Timestamp,
};

/// VAPI's limit for names and numbers, in characters.
const LONGEST: usize = 40;

#[derive(Debug, Clone, Copy)]
pub struct InboundCall<'a> {
    pub phone_number_id: &'a str,
    pub assistant_id: &'a str,
    /// As received from the network; may be no number (`anonymous`, `client:…`).
    pub caller: &'a str,
    /// Finds the call again after a lost answer: unique, at most 40 characters. The `CallSid`, with a suffix for a caller who
    /// returned.
    pub name: &'a str,
    /// Spoken first in place of the assistant's own message.
    pub first_message: Option<&'a str>,
    /// For Liquid in the assistant's texts.
    pub variables: &'a Map<String, Value>,
}

impl Vapi {
    /// Forwards Twilio's form about an incoming call unchanged, and returns the TwiML. No key is needed: VAPI has the assistant
    /// of the number. Retried on any transient failure and beside an attempt that hangs, since Twilio's own retries carry the same
    /// `CallSid`.
    pub async fn inbound_call(&self, form: Vec<u8>, deadline: Deadline) -> Result<String, Error> {
        let url = format!("{}/twilio/inbound_call", self.base_url);
        let attempt = async || {
            let request = self.http.post(&url).body(form.clone()).timeout(deadline.remaining());
            let request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
            once(UpstreamService::Vapi, request).await
        };
        let twiml = beside_a_hang(deadline, || retrying(Retry::Harmless, deadline, &attempt)).await?;
        String::from_utf8(twiml).map_err(|error| {
            Error::because(UpstreamService::Vapi, Failure::Undecodable("the TwiML is not UTF-8".into()), error)
        })
    }

    /// Creates a call with media from Twilio (provider bypass), and returns the TwiML. After a lost answer, or beside an attempt
    /// that hangs, the call is searched by its name, the `CallSid`, before another one is created.
    pub async fn create_inbound_call(
        &self,
        account: &Account,
        call: InboundCall<'_>,
        deadline: Deadline,
    ) -> Result<String, Error> {
        let mut body = json!({
            "phoneCallProviderBypassEnabled": true,
            "phoneNumberId": call.phone_number_id,
            "assistantId": call.assistant_id,
            "customer": customer(call.caller),
            "name": name(call.name),
        });
        let mut overrides = Map::new();
        if !call.variables.is_empty() {
            overrides.insert("variableValues".into(), json!(call.variables));
        }
        if let Some(first_message) = call.first_message {
            overrides.insert("firstMessage".into(), first_message.into());
        }
        if let Some(body) = body.as_object_mut().filter(|_| !overrides.is_empty()) {
            body.insert("assistantOverrides".into(), overrides.into());
        }
        let (perhaps_made, begun) = (&AtomicBool::new(false), &AtomicBool::new(false));
        let (name, since) = (name(call.name), Timestamp::now().minus(CLOCKS_DIFFER));
        let sought = NamedCall { phone_number_id: call.phone_number_id, name: &name, since, until: None };
        let attempt = async || {
            if perhaps_made.load(Ordering::Relaxed)
                && let Some(made) = self.call_named(account, sought, deadline).await?
                && let Ok(twiml) = twiml_of(&made)
            {
                return Ok(twiml);
            }
            let request = self.request(account, Method::POST, "/call").json(&body).timeout(deadline.remaining());
            let created =
                once(UpstreamService::Vapi, request).await.and_then(|answer| read_json(UpstreamService::Vapi, &answer));
            let created: Value = created.inspect_err(|error: &Error| {
                perhaps_made.fetch_or(error.effect_possible(), Ordering::Relaxed);
            })?;
            twiml_of(&created)
        };
        let attempts = || {
            // An attempt that hangs may have made it, too.
            perhaps_made.fetch_or(begun.swap(true, Ordering::Relaxed), Ordering::Relaxed);
            retrying(Retry::Harmless, deadline, &attempt)
        };
        beside_a_hang(deadline, attempts).await
    }
}

/// Attempts that hang go on after two thirds of the time, and others begin beside them: the first success counts.
async fn beside_a_hang<T, F>(deadline: Deadline, attempts: impl Fn() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    let mut first = Box::pin(attempts());
    match timeout(deadline.leaving_a_third().remaining(), &mut first).await {
        Ok(result) => result,
        Err(_hangs) => select_ok([first, Box::pin(attempts())]).await.map(|(done, _)| done),
    }
}

fn twiml_of(call: &Value) -> Result<String, Error> {
    text_at(call.get("phoneCallProviderDetails").unwrap_or(&Value::Null), "twiml")
}

fn name(text: &str) -> String {
    text.chars().take(LONGEST).collect()
}

/// The caller in VAPI's form. VAPI's E.164 check would reject withheld numbers, so it is off; VAPI still requires letters and
/// digits, so any other address is sent as a name.
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
