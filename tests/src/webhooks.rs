//! Webhook requests with the signatures of real services.

use base64::{Engine, prelude::BASE64_STANDARD};
use ring::hmac::{HMAC_SHA1_FOR_LEGACY_USE_ONLY, HMAC_SHA256, Key, sign};
use serde_json::{Value, json};
use shared::models::Timestamp;
use uuid::Uuid;

use crate::{Event, issuer::Issuer};

/// A service's signature scheme and its secret.
#[derive(Clone, Copy)]
pub enum Signer<'a> {
    Slack(&'a str),
    /// The secret, then the event's name for the header.
    Github(&'a str, &'a str),
    Stripe(&'a str),
    Notion(&'a str),
    Hubspot(&'a str),
    StandardWebhooks(&'a str),
    Pipedream(&'a str),
    /// Signs the address and the form of the body's members.
    Twilio(&'a str),
    /// The token of `setWebhook`.
    Telegram(&'a str),
    /// The time is in the body.
    Linear(&'a str),
    /// A token of this service account, which does not cover the body.
    Google(&'a Issuer, &'a str),
    /// The token of a channel, whose state is in the body.
    GoogleCalendar(&'a str),
    /// The proof is in the body.
    Unsigned,
}

/// A request to `path`, signed now. `base` is the public address of the service's requests.
pub fn signed(base: &str, path: &str, signer: Signer<'_>, body: &str) -> Event {
    signed_at(base, path, signer, body, Timestamp::now())
}

pub fn signed_at(base: &str, path: &str, signer: Signer<'_>, body: &str, at: Timestamp) -> Event {
    let seconds = at.as_seconds();
    let event = Event::new("POST", path).header("content-type", "application/json").text(body);
    match signer {
        Signer::Slack(secret) => event
            .header("x-slack-request-timestamp", &seconds.to_string())
            .header("x-slack-signature", &format!("v0={}", hex(&mac(secret, &format!("v0:{seconds}:{body}"))))),
        Signer::Github(secret, name) => event
            .header("x-github-event", name)
            .header("x-github-delivery", &delivery(body))
            .header("x-hub-signature-256", &format!("sha256={}", hex(&mac(secret, body)))),
        Signer::Stripe(secret) => {
            let signature = hex(&mac(secret, &format!("{seconds}.{body}")));
            event.header("stripe-signature", &format!("t={seconds},v1={signature}"))
        }
        Signer::Pipedream(secret) => {
            let signature = hex(&mac(secret, &format!("{seconds}.{body}")));
            event.header("x-pd-signature", &format!("t={seconds},v1={signature}"))
        }
        Signer::Notion(secret) => event.header("x-notion-signature", &format!("sha256={}", hex(&mac(secret, body)))),
        Signer::Hubspot(secret) => {
            let millis = at.as_millis();
            let signature = mac(secret, &format!("POST{base}{path}{body}{millis}"));
            event
                .header("x-hubspot-request-timestamp", &millis.to_string())
                .header("x-hubspot-signature-v3", &BASE64_STANDARD.encode(signature))
        }
        Signer::StandardWebhooks(secret) => {
            let key = BASE64_STANDARD.decode(secret.trim_start_matches("whsec_")).expect("a secret in base64");
            let id = format!("msg_{}", delivery(body));
            let signature = sign(&Key::new(HMAC_SHA256, &key), format!("{id}.{seconds}.{body}").as_bytes());
            event
                .header("webhook-id", &id)
                .header("webhook-timestamp", &seconds.to_string())
                .header("webhook-signature", &format!("v1,{}", BASE64_STANDARD.encode(signature)))
        }
        Signer::Google(issuer, email) => {
            let claims = json!({
                "iss": "https://accounts.google.com", "aud": format!("{base}{path}"), "email": email, "email_verified": true,
                "iat": seconds, "exp": seconds + 3_600, "sub": "113774264463038321964",
            });
            event.header("authorization", &format!("Bearer {}", issuer.signed("rs256", &claims)))
        }
        Signer::GoogleCalendar(token) => {
            let state: Value = serde_json::from_str(body).expect("the state of a channel");
            let headers = ["channel-id", "resource-id", "resource-state", "message-number"];
            let event = Event::new("POST", path).header("x-goog-channel-token", token);
            headers.iter().fold(event, |event, name| match state[*name].as_str() {
                Some(value) => event.header(&format!("x-goog-{name}"), value),
                None => event,
            })
        }
        Signer::Twilio(secret) => {
            let members: Value = serde_json::from_str(body).expect("the members of a form");
            let members = members.as_object().expect("an object");
            let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let form: String = url::form_urlencoded::Serializer::new(String::new())
                .extend_pairs(members.iter().map(|(name, value)| (name, text(value))))
                .finish();
            // Twilio sorts the members of an object.
            let signed: String = members.iter().flat_map(|(name, value)| [name.clone(), text(value)]).collect();
            let key = Key::new(HMAC_SHA1_FOR_LEGACY_USE_ONLY, secret.as_bytes());
            let signature = sign(&key, format!("{base}{path}{signed}").as_bytes());
            Event::new("POST", path)
                .header("content-type", "application/x-www-form-urlencoded; charset=utf-8")
                .header("i-twilio-idempotency-token", &Uuid::new_v4().to_string())
                .header("x-twilio-signature", &BASE64_STANDARD.encode(signature))
                .text(form)
        }
        Signer::Telegram(secret) => event.header("x-telegram-bot-api-secret-token", secret),
        Signer::Linear(secret) => {
            let mut members: Value = serde_json::from_str(body).expect("an object");
            members["webhookTimestamp"] = json!(at.as_millis());
            let body = members.to_string();
            event
                .header("linear-delivery", &Uuid::new_v4().to_string())
                .header("linear-signature", &hex(&mac(secret, &body)))
                .text(body)
        }
        Signer::Unsigned => event,
    }
}

/// An id derived from the body.
fn delivery(body: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, body.as_bytes());
    let mut half = [0; 16];
    half.copy_from_slice(&digest.as_ref()[..16]);
    Uuid::from_bytes(half).to_string()
}

fn mac(secret: &str, text: &str) -> Vec<u8> {
    sign(&Key::new(HMAC_SHA256, secret.as_bytes()), text.as_bytes()).as_ref().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}
