//! Webhooks of services: verification (`schemes.rs`) and content (`deliveries.rs`).
//!
//! All functions are pure. Nothing is parsed before its signature is verified, and secrets are compared in constant time. A
//! request may be 300 seconds old, or ahead of our clock. Without a signed time only event ids protect from replays.
//!
//! | scheme | proof | event id | tenant |
//! |---|---|---|---|
//! | `slack` | `X-Slack-Signature` over `v0:{ts}:{body}` | `event_id` | `slack#{api_app_id}#{team}` |
//! | `github` | `X-Hub-Signature-256` over the body | a hash of the body: no header is signed | `github#{installation.id}` |
//! | `stripe` | `Stripe-Signature` over `{t}.{body}` | `id` | `stripe#{account}` |
//! | `notion` | `X-Notion-Signature` over the body | `id` | `notion#{integration_id}#{workspace_id}` |
//! | `google_pubsub` | a JWT of Google's (RS256), its audience and service account | `message.messageId` | `gmail#{emailAddress}` |
//! | `google_calendar` | `X-Goog-Channel-Token` | channel and message number | `google_calendar#{channel}` |
//! | `hubspot` | `X-HubSpot-Signature-v3` over method, address, body, time | event, subscription, time | `hubspot#{portalId}` |
//! | `standard_webhooks` | `webhook-signature` (or `svix-`) over `{id}.{ts}.{body}` | `webhook-id` (or `svix-`), the signed one | the address |
//! | `microsoft_graph` | `clientState` of each notification | `id`, else the changed resource | `microsoft_graph#{subscriptionId}` |
//! | `twilio` | `X-Twilio-Signature` over address and form | the message or call, and its status | the address |
//! | `telegram` | `X-Telegram-Bot-Api-Secret-Token` | `update_id` | the address |
//! | `linear` | `Linear-Signature` over the body, which has the time | a hash of the body but for that time | `linear#{organizationId}` |
//! | `hmac` | a signature over the body, in a header that the hook names | a hash of the body | the address |
//! | `bearer`, `basic` | a token, or user and password, in a header | a hash of the body | the address |
//! | `none` | the sender's address is one of the hook's | a hash of the body | the address |
//! | `pipedream` | `x-pd-signature` over `{t}.{body}` | the event's, else a hash of the signed day and the body | the address |

mod deliveries;
mod google_token;
mod headers;
mod learned;
mod own_hooks;
mod schemes;
mod set_up;
pub mod twilio_signature;

use std::{net::IpAddr, time::Duration};

use reqwest::header::HeaderMap;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    clients::SigningKey,
    models::{Hook, OwnHook, Timestamp, folded_name},
};

pub use crate::models::Scheme;
pub use google_token::key_id;
pub use learned::{LearnedField, LearnedPayload, learn};
pub use own_hooks::{AddressRange, OWN_PREFIX, own_name, own_service};
pub use schemes::{is_standard_secret, standard_signature};

/// The service name of the organizations' own programs, [`folded_name`].
pub const OWN_PROGRAMS: &str = "webhooks";
/// The event type of each of their requests, beside its `type`.
pub const ANY_EVENT: &str = "event";

/// The secret that an organization and a service share, stored as JSON. Its members depend on the scheme.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct HookSecret {
    /// The signing key, the token of a channel, or a `clientState`.
    pub secret: SecretString,
    pub channel_id: Option<String>,
    pub resource_id: Option<String>,
    pub subscription_id: Option<String>,
    pub tenant_id: Option<String>,
    /// For Google's tokens: the audience (the hook's own address unless given), and the service account that requests
    /// them.
    pub audience: Option<String>,
    pub email: Option<String>,
}

#[derive(Debug, Clone, Copy)]
pub struct WebhookRequest<'a> {
    pub method: &'a str,
    /// The addresses that the service may have called, which differ in their bases only: it signed one of them.
    pub urls: &'a [&'a str],
    pub headers: &'a HeaderMap,
    pub body: &'a [u8],
    /// The sender's address.
    pub source: Option<IpAddr>,
}

#[derive(Clone, Copy)]
pub struct HookKeys<'a> {
    pub scheme: Scheme,
    /// Any of them proves a request, so that a secret can be replaced. Empty: only a handshake that brings a secret is
    /// accepted.
    pub secrets: &'a [HookSecret],
    /// Google's key that the request names ([`key_id`]).
    pub google_key: Option<&'a SigningKey>,
    /// The settings of an organization's own hook.
    pub own: Option<&'a OwnHook>,
}

#[derive(Debug, Clone)]
pub enum Delivery {
    Events(Vec<InboundEvent>),
    Handshake(Handshake),
    /// Nothing to do: a ping, or an action of our own bot.
    Nothing,
    /// The organization revoked the access of this tenant: no more events follow.
    Ended(Option<String>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct InboundEvent {
    pub id_at_service: String,
    /// The most precise name first: `issues.opened`, `issues`.
    pub event_types: Vec<String>,
    /// The service's tenant, in the form of a hook's `tenant_key`.
    pub tenant: Option<String>,
    /// The data for an automation's paths.
    pub data: Value,
}

/// A service's question before it sends events.
#[derive(Debug, Clone)]
pub enum Handshake {
    Json(Value),
    Text(String),
    /// The secret of all later requests, which a person confirms at the service.
    Secret(SecretString),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rejection {
    /// The request is not proven to be the service's: 401.
    Unauthentic,
    /// The request is authentic but unusable: this status stops the service's retries.
    Unusable(u16),
}

impl Scheme {
    /// The schemes of organizations' own hooks.
    pub const OWN: [Self; 5] = [Self::StandardWebhooks, Self::Hmac, Self::Bearer, Self::Basic, Self::Unsigned];

    /// The scheme of a service, in any spelling of its name; `None` if the service has no scheme of its own here.
    pub fn known(service: &str) -> Option<Self> {
        Some(match folded_name(service).as_str() {
            "slack" => Self::Slack,
            "github" => Self::Github,
            "stripe" => Self::Stripe,
            "notion" => Self::Notion,
            "gmail" => Self::GooglePubsub,
            "google_calendar" => Self::GoogleCalendar,
            "hubspot" => Self::Hubspot,
            "outlook" | "microsoft_graph" => Self::MicrosoftGraph,
            "twilio" => Self::Twilio,
            "telegram" => Self::Telegram,
            "linear" => Self::Linear,
            "pipedream" => Self::Pipedream,
            OWN_PROGRAMS => Self::StandardWebhooks,
            _ => return None,
        })
    }

    /// As [`Scheme::known`]; all other services sign by the Standard Webhooks specification.
    pub fn of_service(service: &str) -> Self {
        Self::known(service).unwrap_or(Self::StandardWebhooks)
    }

    /// The scheme of a hook. Rows of older versions do not name it.
    pub fn of_hook(hook: &Hook) -> Self {
        hook.scheme.unwrap_or_else(|| match Self::of_service(&hook.service) {
            Self::Twilio | Self::Telegram | Self::Linear => Self::StandardWebhooks,
            scheme => scheme,
        })
    }

    /// The service's time limit for an answer, less the network. From ten seconds on it gets our full time: some never
    /// redeliver.
    pub const fn answered_within(self) -> Duration {
        match self {
            Self::Slack | Self::MicrosoftGraph => Duration::from_millis(2_700),
            Self::Hubspot | Self::Linear => Duration::from_secs(4),
            Self::Github
            | Self::Stripe
            | Self::Notion
            | Self::GooglePubsub
            | Self::GoogleCalendar
            | Self::StandardWebhooks
            | Self::Twilio
            | Self::Telegram
            | Self::Pipedream
            | Self::Hmac
            | Self::Bearer
            | Self::Basic
            | Self::Unsigned => Duration::from_secs(9),
        }
    }

    /// Whether we make the secret and give it to the service.
    pub const fn has_generated_secret(self) -> bool {
        matches!(
            self,
            Self::Github
                | Self::GoogleCalendar
                | Self::StandardWebhooks
                | Self::MicrosoftGraph
                | Self::Telegram
                | Self::Hmac
                | Self::Bearer
                | Self::Basic
        )
    }
}

impl HookSecret {
    pub fn of(secret: impl Into<String>) -> Self {
        Self { secret: SecretString::from(secret.into()), ..Self::default() }
    }

    pub fn to_secret(&self) -> SecretString {
        let mut stored = json!({
            "secret": self.secret.expose_secret(), "channel_id": self.channel_id, "resource_id": self.resource_id,
            "subscription_id": self.subscription_id, "tenant_id": self.tenant_id, "audience": self.audience,
            "email": self.email,
        });
        if let Some(members) = stored.as_object_mut() {
            members.retain(|_, value| !value.is_null());
        }
        SecretString::from(stored.to_string())
    }
}

/// Verifies a request and reads its content.
///
/// # Errors
/// See [`Rejection`].
pub fn receive(hook: HookKeys<'_>, request: &WebhookRequest<'_>, now: Timestamp) -> Result<Delivery, Rejection> {
    if let Some(asked) = deliveries::asked_before_all(&hook, request) {
        return Ok(Delivery::Handshake(asked));
    }
    // Every secret is tried, so that the time tells nothing.
    let proven = hook
        .secrets
        .iter()
        .fold(false, |proven, secret| schemes::verify(&hook, secret, request, now).is_some() | proven);
    let proven = (proven || own_hooks::needs_no_secret(&hook)) && own_hooks::is_from_allowed(&hook, request);
    if proven { deliveries::read(&hook, request) } else { Err(Rejection::Unauthentic) }
}

/// The tenants that a request claims, without duplicates, in the form of a hook's `tenant_key`. They are unverified
/// and only select the hooks whose secrets are tried.
pub fn claimed_tenants(scheme: Scheme, request: &WebhookRequest<'_>) -> Vec<String> {
    let mut claimed = deliveries::tenants(scheme, request);
    claimed.sort();
    claimed.dedup();
    claimed
}
