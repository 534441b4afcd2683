//! Incoming calls: the signed form that Twilio posts to a number's voice URL.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use ring::hmac;
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use super::Twilio;
use crate::standins::{
    client,
    exchange::{Answer, Request, refused},
};

/// Twilio's time-out for TwiML.
const LONGEST_WAIT: Duration = Duration::from_secs(15);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IncomingCall {
    /// `CA` and 32 hexadecimal digits.
    pub call_sid: String,
    /// `AC` and 32 hexadecimal digits.
    pub account_sid: String,
    /// The caller: E.164, `client:…` or `sip:…`.
    pub from: String,
    /// The number called, E.164.
    pub to: String,
}

impl IncomingCall {
    /// A new call, with a `CallSid` of its own.
    pub fn new(account_sid: &str, from: &str, to: &str) -> Self {
        Self {
            call_sid: format!("CA{}", Uuid::new_v4().simple()),
            account_sid: account_sid.to_owned(),
            from: from.to_owned(),
            to: to.to_owned(),
        }
    }

    /// The form of the call's first request, names in order. The called number has no place, as often at Twilio.
    pub fn form(&self) -> Vec<(String, String)> {
        let place = |of: &'static str| ["City", "Country", "State", "Zip"].map(|part| (format!("{of}{part}"), part));
        let mut form: Vec<_> = [
            ("AccountSid", self.account_sid.as_str()),
            ("ApiVersion", "2010-04-01"),
            ("CallSid", &self.call_sid),
            ("CallStatus", "ringing"),
            ("CallToken", "{\"parentCallInfoToken\":\"token\",\"identityHeaderTokens\":[]}"),
            ("Called", &self.to),
            ("Caller", &self.from),
            ("Direction", "inbound"),
            ("From", &self.from),
            ("StirVerstat", "TN-Validation-Passed-A"),
            ("To", &self.to),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        for (of, known) in [("Caller", true), ("From", true), ("Called", false), ("To", false)] {
            for (name, part) in place(of) {
                let value = match part {
                    "Country" => "US",
                    "City" if known => "SAN JOSÉ",
                    "State" if known => "CA",
                    "Zip" if known => "94105",
                    _ => "",
                };
                form.push((name, value.to_owned()));
            }
        }
        form.sort();
        form
    }

    /// The signed request to a voice URL. A fragment (`#…`) is Twilio's own setting, neither sent nor signed.
    pub fn signed(&self, url: &str, auth_token: &str) -> SignedForm {
        SignedForm::new(url, &self.form(), auth_token)
    }
}

/// A POST from Twilio.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SignedForm {
    pub url: String,
    /// Names in lower case; `x-twilio-signature` among them.
    pub headers: BTreeMap<String, String>,
    /// Form-encoded.
    pub body: String,
}

impl SignedForm {
    pub fn new(url: &str, form: &[(String, String)], auth_token: &str) -> Self {
        let url = url.split('#').next().unwrap_or_default().to_owned();
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        let headers = [
            ("accept", "*/*".to_owned()),
            ("content-type", "application/x-www-form-urlencoded; charset=UTF-8".to_owned()),
            ("i-twilio-idempotency-token", Uuid::new_v4().to_string()),
            ("user-agent", "TwilioProxy/1.1".to_owned()),
            ("x-twilio-signature", signature(&url, form, auth_token)),
        ];
        Self { url, headers: headers.map(|(name, value)| (name.to_owned(), value)).into(), body }
    }

    pub fn signature(&self) -> &str {
        self.headers.get("x-twilio-signature").map_or("", String::as_str)
    }

    /// Sends the request; each repetition has the same `CallSid` and idempotency token. Fails with the reason if no
    /// answer arrives within Twilio's 15 s.
    pub async fn post(&self) -> Result<Answered, String> {
        let client = client::client().map_err(|error| error.to_string())?;
        self.post_with(&client).await
    }

    async fn post_with(&self, client: &reqwest::Client) -> Result<Answered, String> {
        let mut request = client.post(&self.url).timeout(LONGEST_WAIT).body(self.body.clone());
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let failed = |error: reqwest::Error| format!("no response: {:?}", error.without_url());
        let response = request.send().await.map_err(failed)?;
        let content_type = response.headers().get("content-type");
        Ok(Answered {
            status: response.status().as_u16(),
            content_type: content_type.and_then(|value| value.to_str().ok()).map(str::to_owned),
            body: response.text().await.map_err(failed)?,
        })
    }
}

/// The voice URL's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Answered {
    pub status: u16,
    pub content_type: Option<String>,
    /// `TwiML` on success.
    pub body: String,
}

impl Answered {
    /// The `TwiML`, if Twilio would accept the answer as such: a success status and an XML content type.
    pub fn twiml(&self) -> Option<&str> {
        let kind = self.content_type.as_deref().and_then(|kind| kind.split(';').next()).map(str::trim);
        let taken = (200..300).contains(&self.status) && matches!(kind, Some("text/xml" | "application/xml"));
        taken.then_some(self.body.as_str())
    }
}

/// The `X-Twilio-Signature` of a request: base64 of the HMAC-SHA1, under the account's auth token, of the URL
/// followed by each parameter's name and value, sorted by name and value, duplicates removed. GET and JSON bodies
/// have no parameters.
pub fn signature(url: &str, params: &[(String, String)], auth_token: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, auth_token.as_bytes());
    let mut data = hmac::Context::with_key(&key);
    data.update(url.as_bytes());
    for (name, value) in params.iter().collect::<BTreeSet<_>>() {
        data.update(name.as_bytes());
        data.update(value.as_bytes());
    }
    STANDARD.encode(data.sign())
}

/// The body of `POST /simulate/incoming-call`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ringing {
    /// Defaults to the number's voice URL.
    url: Option<String>,
    from: String,
    to: String,
    call_sid: Option<String>,
}

impl Twilio {
    pub(super) async fn simulated_call(&self, request: &Request) -> Answer {
        let ringing: Ringing = match serde_json::from_slice(&request.body) {
            Ok(ringing) => ringing,
            Err(error) => return refused(error),
        };
        let Some(account) = self.options.accounts.iter().find(|account| account.numbers.contains(&ringing.to)) else {
            return Answer::json(404, &json!({ "error": format!("no account has the number {}", ringing.to) }));
        };
        let mut call = IncomingCall::new(&account.sid, &ringing.from, &ringing.to);
        if let Some(sid) = ringing.call_sid {
            call.call_sid = sid;
        }
        let given = ringing.url.map(|url| (url, "POST".to_owned()));
        let Some((url, method)) = given.or_else(|| self.numbers.voice(&call.to)) else {
            let failure = format!("the number {} has no voice URL", call.to);
            let told = json!({ "call_sid": call.call_sid, "request": null, "response": null, "failure": failure });
            return Answer::json(200, &told);
        };
        if method != "POST" {
            return refused(format!("this stand-in calls voice URLs by POST, not {method}"));
        }
        let form = call.signed(&url, &account.auth_token);
        let answered = form.post_with(&self.client).await;
        let told = json!({
            "call_sid": call.call_sid,
            "request": form,
            "response": answered.as_ref().ok(),
            "failure": answered.as_ref().err(),
        });
        Answer::json(200, &told)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn pairs(params: &Value) -> Vec<(String, String)> {
        serde_json::from_value::<Option<_>>(params.clone()).unwrap().unwrap_or_default()
    }

    #[test]
    fn twilios_libraries_verify_our_signatures() {
        let text = include_str!("../../../../../tests/fixtures/twilio_signatures.json");
        let file: Value = serde_json::from_str(text).unwrap();
        let mut verified = 0;
        for vector in file["vectors"].as_array().unwrap() {
            let text = |name: &str| vector[name].as_str();
            if text("algorithm") != Some("HMAC_SHA1") {
                continue; // a shared key of the public beta, which Twilio does not use unless told to
            }
            let url = text("signed_url").or(text("request_url")).unwrap();
            let signed = signature(url, &pairs(&vector["params"]), text("auth_token").unwrap());
            let right = signed == text("signature").unwrap();
            // The signature covers this request's URL but not its altered body.
            let valid = vector["valid"] == true || vector["name"] == "json_body_tampered";
            assert_eq!(right, valid, "{}", vector["name"]);
            verified += usize::from(right);
        }
        assert_eq!(verified, 10);
    }

    #[test]
    fn a_form_is_signed_as_it_is_sent() {
        let call = IncomingCall::new("AC00000000000000000000000000000001", "+15550100001", "+15550100002");
        let signed = call.signed("https://example.com/voice?x=1#rc=2&rp=all", "12345");
        assert_eq!(signed.url, "https://example.com/voice?x=1");
        let sent: Vec<(String, String)> = url::form_urlencoded::parse(signed.body.as_bytes()).into_owned().collect();
        assert_eq!(sent, call.form());
        assert_eq!(signed.signature(), signature("https://example.com/voice?x=1", &sent, "12345"));
        assert_ne!(signed.signature(), call.signed("https://example.com/voice?x=1", "54321").signature());
        assert!(sent.iter().any(|(name, value)| name == "CalledCity" && value.is_empty()));
        let of_example = include_str!("../../../../../tests/fixtures/twilio_inbound_form.json");
        let example: BTreeMap<String, String> = serde_json::from_str(of_example).unwrap();
        for (name, value) in example.iter().filter(|(name, _)| *name != "CallSid") {
            assert!(sent.contains(&(name.clone(), value.clone())), "{name}");
        }
    }

    #[test]
    fn twiml_is_xml_that_says_so() {
        let answered = |status, kind: Option<&str>| Answered {
            status,
            content_type: kind.map(str::to_owned),
            body: "<Response/>".to_owned(),
        };
        assert_eq!(answered(200, Some("text/xml; charset=utf-8")).twiml(), Some("<Response/>"));
        for (status, kind) in [(200, None), (200, Some("text/html")), (500, Some("text/xml"))] {
            assert_eq!(answered(status, kind).twiml(), None, "{status} {kind:?}");
        }
    }
}
