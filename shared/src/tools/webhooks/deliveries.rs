//! Reads the content of verified requests, and the claimed tenants of unverified ones.

use std::borrow::Cow;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use reqwest::header::HeaderMap;
use ring::digest::{SHA256, digest};
use secrecy::SecretString;
use serde_json::{Map, Value, json};
use url::form_urlencoded;

use super::{
    ANY_EVENT, Delivery, Handshake, HookKeys, InboundEvent, Rejection, Scheme, WebhookRequest,
    headers::{at, single, single_list, whole_number},
    schemes::{BASE64, PIPEDREAM_SIGNATURE, standard_headers, timed},
    twilio_signature::LONGEST_SID,
};
use crate::models::Timestamp;

const BAD_REQUEST: Rejection = Rejection::Unusable(400);
/// The path of Linear's send time, in milliseconds.
pub(super) const LINEAR_TIME: &str = "/webhookTimestamp";
/// In bytes; longer names are refused.
const LONGEST_NAME: usize = 200;
const LONGEST_TOKEN: usize = 2_000;

type Read = Result<Delivery, Rejection>;

/// Questions before a secret exists: Microsoft's when a subscription is created, Notion's first request. Answered only
/// at an address that was given to that service alone.
pub(super) fn asked_before_all(hook: &HookKeys<'_>, request: &WebhookRequest<'_>) -> Option<Handshake> {
    match hook.scheme {
        Scheme::MicrosoftGraph => {
            let query = request.urls.first()?.split_once('?')?.1;
            let mut tokens = form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| name == "validationToken");
            let token = tokens.next()?.1.into_owned();
            (tokens.next().is_none() && token.len() <= LONGEST_TOKEN).then_some(Handshake::Text(token))
        }
        Scheme::Notion if hook.secrets.is_empty() && !request.headers.contains_key("x-notion-signature") => {
            let body: Value = serde_json::from_slice(request.body).ok()?;
            let token = body.get("verification_token")?.as_str()?;
            (!token.is_empty() && token.len() <= LONGEST_TOKEN).then(|| Handshake::Secret(SecretString::from(token)))
        }
        _ => None,
    }
}

pub(super) fn read(hook: &HookKeys<'_>, request: &WebhookRequest<'_>) -> Read {
    match hook.scheme {
        Scheme::Slack => slack(json_of(request)?),
        Scheme::Github => github(request),
        Scheme::Stripe => {
            let data = json_of(request)?;
            let (id, event_type) = (text(at(&data, "/id"))?, text(at(&data, "/type"))?);
            Ok(one(id, vec![event_type], stripe_tenant(&data), data))
        }
        Scheme::Notion => notion(json_of(request)?),
        Scheme::GooglePubsub => pubsub(&json_of(request)?),
        Scheme::GoogleCalendar => calendar(request.headers),
        Scheme::Hubspot => {
            let Value::Array(batch) = json_of(request)? else { return Err(BAD_REQUEST) };
            readable(batch.into_iter().map(hubspot))
        }
        Scheme::StandardWebhooks => {
            let [id, ..] = standard_headers(request.headers);
            let id = single(request.headers, id).ok_or(BAD_REQUEST)?;
            let data = if request.body.is_empty() { json!({}) } else { json_of(request)? };
            Ok(one(id.to_owned(), own_event_types(hook, &data), None, data))
        }
        // Nothing but the body is proven, so the body alone names the event.
        Scheme::Hmac | Scheme::Bearer | Scheme::Basic | Scheme::Unsigned => {
            let data = match request.body {
                [] => json!({}),
                _ if is_form(request) => form(request.body),
                _ => json_of(request)?,
            };
            Ok(one(hash(request.body), own_event_types(hook, &data), None, data))
        }
        Scheme::MicrosoftGraph => graph(hook, &json_of(request)?),
        Scheme::Twilio => twilio(request),
        Scheme::Telegram => telegram(json_of(request)?),
        Scheme::Linear => linear(json_of(request)?),
        Scheme::Pipedream => pipedream(request),
    }
}

pub(super) fn tenants(scheme: Scheme, request: &WebhookRequest<'_>) -> Vec<String> {
    if scheme == Scheme::GoogleCalendar {
        return channel(request.headers).into_iter().collect();
    }
    let Ok(body) = (if scheme == Scheme::Github { github_json(request) } else { json_of(request) }) else {
        return Vec::new();
    };
    let found = match scheme {
        Scheme::Slack => slack_tenant(&body),
        Scheme::Github => github_tenant(&body),
        Scheme::Stripe => stripe_tenant(&body),
        Scheme::Notion => notion_tenant(&body),
        Scheme::GooglePubsub => pubsub_data(&body).and_then(|data| gmail_tenant(&data)),
        Scheme::Hubspot => return body.as_array().into_iter().flatten().filter_map(hubspot_tenant).collect(),
        Scheme::MicrosoftGraph => {
            let all = body.get("value").and_then(Value::as_array);
            return all.into_iter().flatten().filter_map(graph_tenant).collect();
        }
        Scheme::Linear => linear_tenant(&body),
        // The address of these identifies the hook.
        Scheme::GoogleCalendar
        | Scheme::StandardWebhooks
        | Scheme::Twilio
        | Scheme::Telegram
        | Scheme::Pipedream
        | Scheme::Hmac
        | Scheme::Bearer
        | Scheme::Basic
        | Scheme::Unsigned => None,
    };
    found.into_iter().collect()
}

fn json_of(request: &WebhookRequest<'_>) -> Result<Value, Rejection> {
    serde_json::from_slice(request.body).map_err(|_no_json| BAD_REQUEST)
}

/// The readable events of a batch; an error only if none can be read.
fn readable(batch: impl Iterator<Item = Result<InboundEvent, Rejection>>) -> Read {
    let (read, unreadable): (Vec<_>, Vec<_>) = batch.partition(Result::is_ok);
    match (read.is_empty(), unreadable.len()) {
        (_, 0) => {}
        (false, count) => tracing::warn!(count, "items of a webhook's batch cannot be read and are left out"),
        (true, _) => return Err(BAD_REQUEST),
    }
    Ok(Delivery::Events(read.into_iter().flatten().collect()))
}

fn text(value: &Value) -> Result<String, Rejection> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return Err(BAD_REQUEST),
    };
    if text.is_empty() || text.len() > LONGEST_NAME { Err(BAD_REQUEST) } else { Ok(text) }
}

/// `slack#A0MDYCDME#T061EG9R6`; `None` if a part is missing.
fn key(service: &str, parts: &[&Value]) -> Option<String> {
    parts.iter().try_fold(service.to_owned(), |key, part| Some(format!("{key}#{}", text(part).ok()?)))
}

fn one(id_at_service: String, event_types: Vec<String>, tenant: Option<String>, data: Value) -> Delivery {
    Delivery::Events(vec![InboundEvent { id_at_service, event_types, tenant, data }])
}

/// The name in the body, and the name that every request has.
fn own_event_types(hook: &HookKeys<'_>, data: &Value) -> Vec<String> {
    let field = hook.own.and_then(|own| own.event_field.as_deref()).unwrap_or("type");
    let named = field.split('.').try_fold(data, |data, step| data.get(step));
    let named = named.and_then(|name| text(name).ok()).filter(|name| name != ANY_EVENT);
    named.into_iter().chain([ANY_EVENT.to_owned()]).collect()
}

/// A form as an object of texts; of a repeated name the last one counts.
fn form(body: &[u8]) -> Value {
    let members = form_urlencoded::parse(body).map(|(name, value)| (name.into_owned(), value.into_owned().into()));
    Value::Object(members.collect())
}

fn slack(mut data: Value) -> Read {
    // Slack's former verification token is a secret.
    if let Some(members) = data.as_object_mut() {
        members.remove("token");
    }
    let event_type = match at(&data, "/type").as_str() {
        Some("url_verification") => {
            let challenge = text(at(&data, "/challenge"))?;
            return Ok(Delivery::Handshake(Handshake::Json(json!({"challenge": challenge}))));
        }
        Some("app_rate_limited") => {
            tracing::warn!("Slack is rate-limiting the events of a workspace");
            return Ok(Delivery::Nothing);
        }
        Some("event_callback") => text(at(&data, "/event/type"))?,
        _ => return Err(BAD_REQUEST),
    };
    let ended = match event_type.as_str() {
        "app_uninstalled" => true,
        // A revoked token of a single user leaves the app installed.
        "tokens_revoked" => at(&data, "/event/tokens/bot").as_array().is_some_and(|tokens| !tokens.is_empty()),
        _ => false,
    };
    if ended {
        return Ok(Delivery::Ended(slack_tenant(&data)));
    }
    if is_own_bot(&data) {
        return Ok(Delivery::Nothing);
    }
    Ok(one(text(at(&data, "/event_id"))?, vec![event_type], slack_tenant(&data), data))
}

/// Whether our own bot caused the event: an automation that posts would start itself.
fn is_own_bot(data: &Value) -> bool {
    let event = at(data, "/event");
    let by_bot = at(event, "/bot_id").is_string() || at(event, "/message/bot_id").is_string();
    let app = [at(event, "/app_id"), at(event, "/bot_profile/app_id"), at(event, "/message/app_id")];
    let app = app.into_iter().find_map(Value::as_str);
    let user = at(event, "/user").as_str();
    let ours = |who: &Value| *at(who, "/is_bot") == true && user.is_some() && at(who, "/user_id").as_str() == user;
    let authorized = at(data, "/authorizations").as_array().is_some_and(|all| all.iter().any(ours));
    // A bot without an app id may be ours.
    authorized || (by_bot && app.is_none_or(|app| at(data, "/api_app_id").as_str() == Some(app)))
}

/// The workspace of the app; in a shared channel the event's may be another.
fn slack_tenant(data: &Value) -> Option<String> {
    let authorized = at(data, "/authorizations/0");
    let of = |name: &str, other: &str| -> Option<String> {
        let found = [authorized.get(name), data.get(other), data.get(name)]
            .into_iter()
            .flatten()
            .find(|value| value.is_string())?;
        key("slack", &[at(data, "/api_app_id"), found])
    };
    if *at(authorized, "/is_enterprise_install") == true {
        return of("enterprise_id", "context_enterprise_id");
    }
    of("team_id", "context_team_id")
}

fn is_form(request: &WebhookRequest<'_>) -> bool {
    let content_type = request.headers.get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
    content_type.starts_with("application/x-www-form-urlencoded")
}

fn github_json(request: &WebhookRequest<'_>) -> Result<Value, Rejection> {
    let body = if is_form(request) {
        let payload = form_urlencoded::parse(request.body).find(|(name, _)| name == "payload").ok_or(BAD_REQUEST)?;
        Cow::Owned(payload.1.into_owned().into_bytes())
    } else {
        Cow::Borrowed(request.body)
    };
    serde_json::from_slice(&body).map_err(|_no_json| BAD_REQUEST)
}

/// GitHub signs neither headers nor a time: a captured delivery could be replayed under another delivery id. So the
/// body alone identifies the event, and a redelivery has the same id.
fn github(request: &WebhookRequest<'_>) -> Read {
    let event = single(request.headers, "x-github-event").ok_or(BAD_REQUEST)?;
    let data = github_json(request)?;
    if event == "ping" {
        return Ok(Delivery::Nothing);
    }
    let action = at(&data, "/action").as_str().map(|action| format!("{event}.{action}"));
    let tenant = github_tenant(&data);
    if event == "installation" && at(&data, "/action") == "deleted" {
        return Ok(Delivery::Ended(tenant));
    }
    Ok(one(hash(request.body), action.into_iter().chain([event.to_owned()]).collect(), tenant, data))
}

fn github_tenant(data: &Value) -> Option<String> {
    key("github", &[at(data, "/installation/id")])
}

fn stripe_tenant(data: &Value) -> Option<String> {
    key("stripe", &[at(data, "/account")])
}

fn notion(data: Value) -> Read {
    let (id, event_type) = (text(at(&data, "/id"))?, text(at(&data, "/type"))?);
    let own = |author: &Value| at(author, "/type") == "bot" && at(author, "/id") == at(&data, "/integration_id");
    if at(&data, "/authors").as_array().is_some_and(|authors| !authors.is_empty() && authors.iter().all(own)) {
        return Ok(Delivery::Nothing);
    }
    Ok(one(id, vec![event_type], notion_tenant(&data), data))
}

fn notion_tenant(data: &Value) -> Option<String> {
    key("notion", &[at(data, "/integration_id"), at(data, "/workspace_id")])
}

fn pubsub_data(body: &Value) -> Option<Value> {
    let data = at(body, "/message/data").as_str()?;
    let bytes = BASE64.decode(data).or_else(|_| BASE64_URL_SAFE_NO_PAD.decode(data.trim_end_matches('='))).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// Gmail tells only that a mailbox changed, and its new history id. Whole messages published to the topic are read
/// too.
fn pubsub(body: &Value) -> Read {
    let id = body.pointer("/message/messageId").or_else(|| body.pointer("/message/message_id"));
    let id = text(id.unwrap_or(&Value::Null))?;
    let data = pubsub_data(body).ok_or(BAD_REQUEST)?;
    let event_type = if data.get("subject").is_some() { "message.received" } else { "mailbox.changed" };
    Ok(one(id, vec![event_type.to_owned()], gmail_tenant(&data), data))
}

fn gmail_tenant(data: &Value) -> Option<String> {
    key("gmail", &[at(data, "/emailAddress")]).map(|key| key.to_lowercase())
}

fn channel(headers: &HeaderMap) -> Option<String> {
    single(headers, "x-goog-channel-id").map(|id| format!("google_calendar#{id}"))
}

/// Google tells that a calendar changed, not how.
fn calendar(headers: &HeaderMap) -> Read {
    let header = |name: &str| single(headers, name);
    let state = header("x-goog-resource-state").ok_or(BAD_REQUEST)?;
    if state == "sync" {
        return Ok(Delivery::Nothing);
    }
    let number = header("x-goog-message-number").ok_or(BAD_REQUEST)?;
    let id = header("x-goog-channel-id").ok_or(BAD_REQUEST)?;
    let data = json!({
        "channel_id": id, "message_number": number, "resource_id": header("x-goog-resource-id"), "resource_state": state,
        "resource_uri": header("x-goog-resource-uri"),
    });
    Ok(one(format!("{id} {number}"), vec!["calendar.changed".to_owned()], channel(headers), data))
}

fn hubspot(event: Value) -> Result<InboundEvent, Rejection> {
    let part = |name: &str| text(event.get(name).unwrap_or(&Value::Null));
    // HubSpot does not promise that the event's own id is unique.
    let id = format!("{} {} {}", part("eventId")?, part("subscriptionId")?, part("occurredAt")?);
    let event_types = vec![part("subscriptionType")?];
    Ok(InboundEvent { id_at_service: id, event_types, tenant: hubspot_tenant(&event), data: event })
}

fn hubspot_tenant(event: &Value) -> Option<String> {
    key("hubspot", &[event.get("portalId")?])
}

/// The notifications of the hook's subscription, if it is known. They were verified.
fn graph(hook: &HookKeys<'_>, body: &Value) -> Read {
    let known: Vec<&str> = hook.secrets.iter().filter_map(|secret| secret.subscription_id.as_deref()).collect();
    let ours = |notification: &&Value| {
        known.is_empty() || at(notification, "/subscriptionId").as_str().is_some_and(|id| known.contains(&id))
    };
    let all = body.get("value").and_then(Value::as_array).ok_or(BAD_REQUEST)?;
    readable(all.iter().filter(ours).map(notification))
}

fn notification(one: &Value) -> Result<InboundEvent, Rejection> {
    let change = text(at(one, "/changeType"))?;
    let kind = at(one, "/resourceData/@odata.type").as_str().and_then(|kind| kind.rsplit('.').next());
    let kind = kind.map_or_else(|| "resource".to_owned(), str::to_lowercase);
    let id = text(at(one, "/id")).or_else(|_| {
        let about = [
            at(one, "/subscriptionId"),
            at(one, "/resource"),
            at(one, "/changeType"),
            at(one, "/resourceData/@odata.etag"),
        ];
        Ok(hash(json!(about).to_string().as_bytes()))
    })?;
    let mut data = one.clone();
    if let Some(members) = data.as_object_mut() {
        members.remove("clientState");
    }
    Ok(InboundEvent {
        id_at_service: id,
        event_types: vec![format!("{kind}.{change}")],
        tenant: graph_tenant(one),
        data,
    })
}

fn graph_tenant(notification: &Value) -> Option<String> {
    key("microsoft_graph", &[notification.get("subscriptionId")?])
}

/// An incoming text message, or the status of a message or a call. Twilio signs no time: a message is identified by
/// its id, and its status if there is one.
fn twilio(request: &WebhookRequest<'_>) -> Read {
    if !is_form(request) {
        return Err(BAD_REQUEST);
    }
    let data: Map<String, Value> = form_urlencoded::parse(request.body)
        .map(|(name, value)| (name.into_owned(), value.into_owned().into()))
        .collect();
    let is_long = |name: &str| data.get(name).and_then(Value::as_str).is_some_and(|sid| sid.len() > LONGEST_SID);
    if ["MessageSid", "SmsSid", "CallSid"].into_iter().any(is_long) {
        return Err(BAD_REQUEST);
    }
    let of = |name: &str| text(data.get(name).unwrap_or(&Value::Null));
    let message = of("MessageSid").or_else(|_| of("SmsSid"));
    let (id, what, status) = match (message, of("MessageStatus")) {
        (Ok(message), Ok(status)) => (message, "message", status),
        (Ok(message), Err(_)) => (message, "message", "received".to_owned()),
        (Err(_), _) => (of("CallSid")?, "call", of("CallStatus")?),
    };
    Ok(one(format!("{id} {status}"), vec![format!("{what}.{status}")], None, data.into()))
}

fn telegram(data: Value) -> Read {
    let id = text(at(&data, "/update_id"))?;
    let mut members = data.as_object().into_iter().flatten().filter(|(_, value)| value.is_object());
    let kind = members.next().ok_or(BAD_REQUEST)?.0;
    let event_type = format!("update.{}", text(&kind.as_str().into())?);
    Ok(one(id, vec![event_type], None, data))
}

/// The delivery id is in an unsigned header, and redeliveries have another time; the rest identifies the event.
fn linear(data: Value) -> Read {
    let (kind, action) = (text(at(&data, "/type"))?, text(at(&data, "/action"))?);
    let tenant = linear_tenant(&data);
    if kind == "OAuthApp" && action == "revoked" {
        return Ok(Delivery::Ended(tenant));
    }
    let mut timeless = data.clone();
    if let Some(time) = timeless.pointer_mut(LINEAR_TIME) {
        *time = Value::Null;
    }
    Ok(one(hash(timeless.to_string().as_bytes()), vec![format!("{kind}.{action}"), kind], tenant, data))
}

fn linear_tenant(data: &Value) -> Option<String> {
    key("linear", &[at(data, "/organizationId")])
}

/// The value a component emitted: plain, or in Pipedream's stored form. Without an event id, the same body signed on the same
/// UTC day is the same event.
fn pipedream(request: &WebhookRequest<'_>) -> Read {
    let data = json_of(request)?;
    let stored = at(&data, "/k") == "emit" && data.get("e").is_some();
    let id = if stored { text(at(&data, "/id")).ok() } else { None };
    let id = id.or_else(|| {
        let (signed, _) = timed(single_list(request.headers, PIPEDREAM_SIGNATURE)?)?;
        let signed = Timestamp::from_millis(whole_number(signed)?.checked_mul(1_000)?);
        let day: String = signed.to_string().chars().take(10).collect();
        Some(hash(&[day.as_bytes(), b" ", request.body].concat()))
    });
    let data = match data {
        Value::Object(mut members) if stored => members.remove("e").unwrap_or_default(),
        data => data,
    };
    Ok(one(id.ok_or(BAD_REQUEST)?, vec!["emitted".to_owned()], None, data))
}

fn hash(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(digest(&SHA256, bytes))
}
