//! Verifies a request with one secret.

use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use reqwest::header::HeaderMap;
use ring::hmac::{HMAC_SHA256, Key, sign, verify as verify_mac};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use super::{
    HookKeys, HookSecret, Scheme, WebhookRequest,
    deliveries::LINEAR_TIME,
    google_token,
    headers::{at, from_hex, single, single_list, whole_number},
    own_hooks, twilio_signature,
};
use crate::models::Timestamp;

/// The tolerated age of a request, in seconds, also ahead of our clock.
pub(super) const TOLERANCE: i64 = 300;
const MOST_SIGNATURES: usize = 20;
const PREFIX: &str = "whsec_";
pub(super) const PIPEDREAM_SIGNATURE: &str = "x-pd-signature";

/// Base64 with or without padding.
pub(super) const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// `None` without proof.
pub(super) fn verify(
    hook: &HookKeys<'_>,
    secret: &HookSecret,
    request: &WebhookRequest<'_>,
    now: Timestamp,
) -> Option<()> {
    let (headers, body) = (request.headers, request.body);
    let key = &secret.secret;
    match hook.scheme {
        Scheme::Slack => {
            let at = single(headers, "x-slack-request-timestamp")?;
            let signature = single(headers, "x-slack-signature")?.strip_prefix("v0=")?;
            fresh(whole_number(at)?, now)?;
            is_mac(key.expose_secret().as_bytes(), &[b"v0:", at.as_bytes(), b":", body], &from_hex(signature)?)
        }
        Scheme::Github => {
            let signature = single(headers, "x-hub-signature-256")?.strip_prefix("sha256=")?;
            is_mac(key.expose_secret().as_bytes(), &[body], &from_hex(signature)?)
        }
        Scheme::Notion => {
            let signature = single(headers, "x-notion-signature")?.strip_prefix("sha256=")?;
            is_mac(key.expose_secret().as_bytes(), &[body], &from_hex(signature)?)
        }
        Scheme::Stripe => timed_list(single_list(headers, "stripe-signature")?, key, body, now),
        Scheme::Pipedream => timed_list(single_list(headers, PIPEDREAM_SIGNATURE)?, key, body, now),
        Scheme::Hubspot => {
            let at = single(headers, "x-hubspot-request-timestamp")?;
            let signature = BASE64.decode(single(headers, "x-hubspot-signature-v3")?).ok()?;
            fresh_to_the_millisecond(whole_number(at)?, now)?;
            // All are computed, so that the time tells nothing.
            let proven = request.urls.iter().fold(false, |proven, url| {
                let url = hubspot_url(url);
                let signed = [request.method.as_bytes(), url.as_bytes(), body, at.as_bytes()];
                is_mac(key.expose_secret().as_bytes(), &signed, &signature).is_some() | proven
            });
            proven.then_some(())
        }
        Scheme::StandardWebhooks => standard_webhooks(key, request, now),
        Scheme::GooglePubsub => google_token::verify(hook.google_key?, secret, request, now),
        Scheme::GoogleCalendar => google_channel(secret, request),
        Scheme::MicrosoftGraph => microsoft_graph(secret, body),
        Scheme::Twilio => {
            let signature = single(headers, "x-twilio-signature")?;
            let known = !key.expose_secret().is_empty();
            (known && twilio_signature::is_valid(key, request.urls, body, signature)).then_some(())
        }
        Scheme::Telegram => same(key, single(headers, "x-telegram-bot-api-secret-token")?),
        Scheme::Linear => {
            let signature = single(headers, "linear-signature")?;
            is_mac(key.expose_secret().as_bytes(), &[body], &from_hex(signature)?)?;
            let sent: Value = serde_json::from_slice(body).ok()?;
            fresh_to_the_millisecond(at(&sent, LINEAR_TIME).as_i64()?, now)
        }
        Scheme::Hmac => own_hooks::is_signed(hook.own?, key, request),
        Scheme::Bearer => same(key, own_hooks::token(hook.own?, headers)?),
        Scheme::Basic => same(&own_hooks::user_and_password(hook.own?, key)?, &own_hooks::basic(headers)?),
        // Proven without a secret, see [`own_hooks::needs_no_secret`].
        Scheme::Unsigned => None,
    }
}

fn fresh(at: i64, now: Timestamp) -> Option<()> {
    let off = now.as_seconds().checked_sub(at)?;
    (off.abs() <= TOLERANCE).then_some(())
}

fn fresh_to_the_millisecond(at: i64, now: Timestamp) -> Option<()> {
    let off = now.as_millis().checked_sub(at)?;
    (off.unsigned_abs() <= TOLERANCE.unsigned_abs() * 1_000).then_some(())
}

/// Compares an HMAC-SHA256 over the parts. An empty key proves nothing.
fn is_mac(key: &[u8], parts: &[&[u8]], mac: &[u8]) -> Option<()> {
    if key.is_empty() {
        return None;
    }
    verify_mac(&Key::new(HMAC_SHA256, key), &parts.concat(), mac).ok()
}

/// Compares two secrets in constant time.
fn same(ours: &SecretString, theirs: &str) -> Option<()> {
    let ours = ours.expose_secret();
    if ours.is_empty() {
        return None;
    }
    let key = Key::new(HMAC_SHA256, ours.as_bytes());
    verify_mac(&key, theirs.as_bytes(), sign(&key, ours.as_bytes()).as_ref()).ok()
}

/// Time, in seconds, and signatures of `t=1795298400,v1=<hex>`, with any number of `v1`.
pub(super) fn timed(header: &str) -> Option<(&str, Vec<&str>)> {
    let (mut at, mut signatures) = (None, Vec::new());
    for part in header.split(',') {
        match part.split_once('=')? {
            ("t", _) if at.is_some() => return None,
            ("t", time) => at = Some(time),
            ("v1", signature) => signatures.push(signature),
            _ => {}
        }
    }
    Some((at?, signatures))
}

/// Compares the signatures of [`timed`] over `{t}.{body}`.
fn timed_list(header: &str, secret: &SecretString, body: &[u8], now: Timestamp) -> Option<()> {
    let (at, signatures) = timed(header)?;
    fresh(whole_number(at)?, now)?;
    let proven = signatures.into_iter().take(MOST_SIGNATURES).filter_map(from_hex).fold(false, |proven, signature| {
        is_mac(secret.expose_secret().as_bytes(), &[at.as_bytes(), b".", body], &signature).is_some() | proven
    });
    proven.then_some(())
}

/// The headers of id, time and signature in the Standard Webhooks specification; Svix uses other names. Headers under the
/// other names are not signed.
pub(super) fn standard_headers(headers: &HeaderMap) -> [&'static str; 3] {
    if headers.contains_key("webhook-signature") {
        ["webhook-id", "webhook-timestamp", "webhook-signature"]
    } else {
        ["svix-id", "svix-timestamp", "svix-signature"]
    }
}

fn standard_webhooks(secret: &SecretString, request: &WebhookRequest<'_>, now: Timestamp) -> Option<()> {
    let names = standard_headers(request.headers);
    let [id, at, signatures] = names.map(|name| single_list(request.headers, name));
    let (id, at, signatures) = (id?, at?, signatures?);
    (!id.contains(',')).then_some(())?;
    fresh(whole_number(at)?, now)?;
    let secret = secret.expose_secret();
    let key = BASE64.decode(secret.strip_prefix(PREFIX).unwrap_or(secret)).ok()?;
    let mut proven = false;
    for signature in signatures.split(' ').take(MOST_SIGNATURES) {
        let (version, signature) = signature.split_once(',')?;
        // A second comma comes from two joined headers.
        (!signature.contains(',')).then_some(())?;
        if let (true, Ok(signature)) = (version == "v1", BASE64.decode(signature)) {
            let signed = [id.as_bytes(), b".", at.as_bytes(), b".", request.body];
            proven |= is_mac(&key, &signed, &signature).is_some();
        }
    }
    proven.then_some(())
}

/// Whether it is `whsec_` and 24 to 64 bytes in base64.
pub fn is_standard_secret(secret: &str) -> bool {
    let key = secret.strip_prefix(PREFIX).and_then(|key| BASE64.decode(key).ok());
    key.is_some_and(|key| (24..=64).contains(&key.len()))
}

/// The `webhook-signature` of a request of ours, by the Standard Webhooks specification; `at` in seconds. `None`: the secret is
/// not base64.
pub fn standard_signature(secret: &SecretString, id: &str, at: i64, body: &[u8]) -> Option<String> {
    let secret = secret.expose_secret();
    let key = BASE64.decode(secret.strip_prefix(PREFIX).unwrap_or(secret)).ok()?;
    let signed = [id.as_bytes(), b".", at.to_string().as_bytes(), b".", body].concat();
    Some(format!("v1,{}", BASE64.encode(sign(&Key::new(HMAC_SHA256, &key), &signed))))
}

/// `HubSpot` signs the address with exactly these escapes decoded.
fn hubspot_url(url: &str) -> String {
    const DECODED: [(&str, &str); 12] = [
        ("%3A", ":"),
        ("%2F", "/"),
        ("%3F", "?"),
        ("%40", "@"),
        ("%21", "!"),
        ("%24", "$"),
        ("%27", "'"),
        ("%28", "("),
        ("%29", ")"),
        ("%2A", "*"),
        ("%2C", ","),
        ("%3B", ";"),
    ];
    DECODED.iter().fold(url.to_owned(), |url, (escape, letter)| {
        url.replace(escape, letter).replace(&escape.to_lowercase(), letter)
    })
}

/// The token of a Google channel, known to its creator and Google only.
fn google_channel(secret: &HookSecret, request: &WebhookRequest<'_>) -> Option<()> {
    let header = |name| single(request.headers, name);
    let is = |known: &Option<String>, name| known.as_deref().is_none_or(|known| header(name) == Some(known));
    let channel = is(&secret.channel_id, "x-goog-channel-id") && is(&secret.resource_id, "x-goog-resource-id");
    same(&secret.secret, header("x-goog-channel-token")?)?;
    channel.then_some(())
}

/// Every notification of the hook's subscription must have its `clientState`; other notifications are not the hook's.
fn microsoft_graph(secret: &HookSecret, body: &[u8]) -> Option<()> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let ours = |notification: &&Value| {
        secret.subscription_id.as_deref().is_none_or(|id| at(notification, "/subscriptionId").as_str() == Some(id))
    };
    let ours: Vec<&Value> = body.get("value")?.as_array()?.iter().filter(ours).collect();
    let proven = ours.iter().fold(!ours.is_empty(), |proven, notification| {
        let state = at(notification, "/clientState").as_str().unwrap_or_default();
        let tenant = secret.tenant_id.as_deref().is_none_or(|id| at(notification, "/tenantId").as_str() == Some(id));
        same(&secret.secret, state).is_some() & tenant & proven
    });
    proven.then_some(())
}
