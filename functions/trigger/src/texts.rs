//! Text messages to the organizations' own numbers: the event `sms.received` of the service `Calls`.
//!
//! Twilio posts them to the address that all organizations share, signed with the auth token of the number's account, or to the
//! address of a hook. The event's id is derived from the message's, so a message is one event at both together.
//!
//! Statuses of the messages that tools sent come to an address with a throttle of its own, so that they crowd out no person's STOP.
//! They are for the organization's hook of Twilio's. Statuses also come to the shared address, from messages of older versions and
//! other senders.

use std::time::Duration;

use futures_util::join;
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use shared::{
    Deadline, Result,
    automation::{CALLS, Dispatch, Work},
    clients::twilio,
    http::Reply,
    models::{E164, Event, EventId, Hook, HookStatus, OrganizationId, PhoneNumber, Timestamp, Undelivered, Unowned},
    webhooks::{Delivery, HookKeys, HookSecret, InboundEvent, Rejection, Scheme, WebhookRequest, receive},
};
use url::form_urlencoded;

use crate::{Deps, done_for, rejected, stop};

const EVENT_TYPE: &str = "sms.received";
/// As a hook's row names the service.
pub(crate) const TWILIO: &str = "twilio";
/// The earliest refusal, so that its time tells nothing about the lookups.
const REFUSED_AFTER: Duration = Duration::from_millis(200);
/// In characters: a sender may be a name.
const LONGEST_SENDER: usize = 200;

/// Takes a message in at the address that all organizations share.
pub(crate) async fn take(deps: &Deps, asked: &WebhookRequest<'_>) -> Result<Reply> {
    let refused_at = Deadline::after(REFUSED_AFTER);
    let (number, messages) = match proven(deps, asked).await? {
        Ok(proven) => proven,
        Err(rejection) => {
            tokio::time::sleep(refused_at.remaining()).await;
            return Ok(rejected(rejection));
        }
    };
    let work = Dispatch::work();
    for message in &messages {
        if stop::is_text(message) {
            stop::list_sender(deps, number.organization_id, message).await?;
            dispatch(deps, &number, message, &work).await?;
        } else if message.event_types.iter().any(|kind| kind.starts_with("message.")) {
            take_status(deps, number.organization_id, message, &work).await?;
        }
    }
    done_for(Scheme::Twilio)
}

/// Hands a status to the oldest active hook of Twilio's, and notes for receipts that a message did not arrive.
async fn take_status(deps: &Deps, organization: OrganizationId, status: &InboundEvent, work: &Work) -> Result<()> {
    let (handed, noted) = join!(hand_over(deps, organization, status, work), note(deps, organization, status));
    handed.and(noted)
}

/// Without a hook nothing listens.
async fn hand_over(deps: &Deps, organization: OrganizationId, status: &InboundEvent, work: &Work) -> Result<()> {
    let hooks = deps.registry.hooks.of_service(organization, TWILIO).await?;
    match hooks.iter().find(|hook| hook.status == HookStatus::Active) {
        Some(hook) => Box::pin(crate::dispatch::dispatch(deps, hook, status, work)).await,
        None => Ok(()),
    }
}

async fn note(deps: &Deps, organization: OrganizationId, status: &InboundEvent) -> Result<()> {
    let [sid, state, code] = ["MessageSid", "MessageStatus", "ErrorCode"].map(|name| stop::field(status, name));
    match Undelivered::of(state, code) {
        Some(undelivered) if !sid.is_empty() => {
            deps.executions.note_undelivered(organization, sid, &undelivered, deps.kept).await
        }
        _ => Ok(()),
    }
}

/// A message that came to a hook, if it is for a number of the hook's organization.
pub(crate) async fn take_from_hook(deps: &Deps, hook: &Hook, message: &InboundEvent, work: &Work) -> Result<()> {
    if Scheme::of_service(&hook.service) != Scheme::Twilio || !stop::is_text(message) {
        return Ok(());
    }
    let Ok(called) = stop::field(message, "To").parse() else { return Ok(()) };
    let number: Option<Unowned<PhoneNumber>> = deps.phone_numbers.by_number(&called).await?;
    match number.and_then(|number| number.for_owner(hook.organization_id)) {
        Some(number) => dispatch(deps, &number, message, work).await,
        None => Ok(()),
    }
}

/// The number, and the request's events, if the request is Twilio's for this number. The signature alone does not prove
/// that: the owner of any number can sign a form with another number.
async fn proven(
    deps: &Deps,
    asked: &WebhookRequest<'_>,
) -> Result<std::result::Result<(PhoneNumber, Vec<InboundEvent>), Rejection>> {
    let number = match claimed(asked.body) {
        Some(claimed) => deps.phone_numbers.by_number(&claimed).await?.map(Unowned::for_its_owner),
        None => None,
    };
    let account: Option<twilio::Account> = match &number {
        Some(number) => Some(deps.secrets.get(&number.credentials_secret).await?),
        None => None,
    };
    let secret = match &account {
        Some(account) => HookSecret::of(account.auth_token().expose_secret()),
        // As much is computed for a number that is not there.
        None => HookSecret::of("decoy"),
    };
    let keys = HookKeys { scheme: Scheme::Twilio, secrets: &[secret], google_key: None, own: None };
    let delivery = receive(keys, asked, Timestamp::now());
    let (Some(number), Some(account)) = (number, account) else { return Ok(Err(Rejection::Unauthentic)) };
    Ok(match delivery {
        Ok(Delivery::Events(mut events)) => {
            events.retain(|event| stop::field(event, "AccountSid") == account.account_sid());
            if events.is_empty() { Err(Rejection::Unauthentic) } else { Ok((number, events)) }
        }
        Ok(_) => Err(Rejection::Unauthentic),
        Err(rejection) => Err(rejection),
    })
}

/// The number that the form claims to be about: the recipient of a text, or the sender of a message whose status it tells. A form
/// that names it twice is about none.
fn claimed(body: &[u8]) -> Option<E164> {
    let is_status = form_urlencoded::parse(body).any(|(name, _)| name == "MessageStatus");
    let ours = if is_status { "From" } else { "To" };
    let mut named = form_urlencoded::parse(body).filter(|(name, _)| name == ours);
    let claimed = named.next()?.1;
    if named.next().is_some() { None } else { claimed.parse().ok() }
}

async fn dispatch(deps: &Deps, number: &PhoneNumber, message: &InboundEvent, work: &Work) -> Result<()> {
    let organization = number.organization_id;
    let data = content(number, message);
    let id = EventId::of_text(organization, id_of(message));
    let mut event = Event::of_ours(id, organization, CALLS, EVENT_TYPE, deps.kept);
    if !deps.dispatch.has_listeners(&event).await? {
        return Ok(());
    }
    event.data = data.to_string();
    Box::pin(deps.dispatch.begin_sent_once(&event, &data, work)).await
}

fn id_of(message: &InboundEvent) -> &str {
    let names = ["MessageSid", "SmsSid"].map(|name| stop::field(message, name));
    names.into_iter().find(|id| !id.is_empty()).unwrap_or(&message.id_at_service)
}

/// As `infra/catalogue/calls.json` describes it.
fn content(number: &PhoneNumber, message: &InboundEvent) -> Value {
    let from: String = stop::field(message, "From").chars().take(LONGEST_SENDER).collect();
    json!({
        "sms": {
            "id": id_of(message),
            "from": from,
            "to": number.number,
            "number_id": number.id,
            "agent_id": number.agent_id,
            "body": stop::field(message, "Body"),
            "media_count": stop::field(message, "NumMedia").parse().unwrap_or(0_u32),
            "opt_out": stop::is_meant(message),
            "received_at": Timestamp::now(),
        },
    })
}
