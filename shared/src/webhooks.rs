//! What services send us of themselves: whether it is theirs (the schemes of `schemes.rs`), and what it says (`deliveries.rs`).
//!
//! Pure: everything that is compared is given. A signature is over the bytes as they came, so nothing is parsed before it is
//! verified, and every comparison of secrets takes constant time. A request may be 300 seconds old, or ahead of our clock, and no
//! more; a scheme without a signed time is protected from replays only by the ids of its events.
//!
//! | scheme | what proves it | id of an event | whose it is |
//! |---|---|---|---|
//! | `slack` | `X-Slack-Signature` over `v0:{ts}:{body}` | `event_id` | `slack#{api_app_id}#{team}` |
//! | `github` | `X-Hub-Signature-256` over the body | a hash of the body: no header is signed | `github#{installation.id}` |
//! | `stripe` | `Stripe-Signature` over `{t}.{body}` | `id` | `stripe#{account}` |
//! | `notion` | `X-Notion-Signature` over the body | `id` | `notion#{integration_id}#{workspace_id}` |
//! | `google_pubsub` | a JWT of Google's (RS256), its audience and service account | `message.messageId` | `gmail#{emailAddress}` |
//! | `google_calendar` | `X-Goog-Channel-Token` | channel and message number | `google_calendar#{channel}` |
//! | `hubspot` | `X-HubSpot-Signature-v3` over method, address, body, time | event, subscription, time | `hubspot#{portalId}` |
//! | `standard_webhooks` | `webhook-signature` (or `svix-`) over `{id}.{ts}.{body}` | `webhook-id` | the address |
//! | `microsoft_graph` | `clientState` of each notification | `id`, else what it is about | `microsoft_graph#{subscriptionId}` |
//! | `twilio` | `X-Twilio-Signature` over address and form | the message or call, and its status | the address |
//! | `telegram` | `X-Telegram-Bot-Api-Secret-Token` | `update_id` | the address |
//! | `linear` | `Linear-Signature` over the body, which has the time | a hash of the body but for that time | `linear#{organizationId}` |
//! | `pipedream` | `x-pd-signature` over `{t}.{body}` | the event's, else a hash of the day and the body | the address |

mod deliveries;
mod google_token;
mod headers;
mod schemes;
mod set_up;
pub mod twilio_signature;

use std::time::Duration;

use reqwest::header::HeaderMap;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    clients::SigningKey,
    models::{Hook, Timestamp, folded_name},
};

pub use google_token::key_id;

/// The service of the organizations' own programs, [`folded_name`].
pub const OWN_PROGRAMS: &str = "webhooks";
/// The event that every request of theirs is, beside its `type`.
pub const ANY_EVENT: &str = "event";

/// How a service shows that a request is its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scheme {
    Slack,
    Github,
    Stripe,
    Notion,
    /// Gmail's notifications.
    GooglePubsub,
    GoogleCalendar,
    Hubspot,
    /// Of services that have no scheme of their own here, and of the organizations' own programs.
    StandardWebhooks,
    /// Outlook's notifications.
    MicrosoftGraph,
    Twilio,
    Telegram,
    Linear,
    /// The triggers that are deployed at Pipedream.
    Pipedream,
}

/// What an organization and a service share. Which members there are depends on the scheme; it is stored as JSON.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct HookSecret {
    /// The key of signatures, the token of a channel, or a `clientState`.
    pub secret: SecretString,
    /// Of a channel of Google's, if it is known.
    pub channel_id: Option<String>,
    pub resource_id: Option<String>,
    /// Of a subscription at Microsoft, if it is known.
    pub subscription_id: Option<String>,
    pub tenant_id: Option<String>,
    /// Of Google's tokens: whom they are for, the hook's own address unless it is given, and the service account that asks for
    /// them.
    pub audience: Option<String>,
    pub email: Option<String>,
}

/// A request as it came.
#[derive(Debug, Clone, Copy)]
pub struct WebhookRequest<'a> {
    pub method: &'a str,
    /// The public address with its query, as the service calls it.
    pub url: &'a str,
    pub headers: &'a HeaderMap,
    pub body: &'a [u8],
}

/// A hook, as far as verifying needs it.
#[derive(Clone, Copy)]
pub struct HookKeys<'a> {
    pub scheme: Scheme,
    /// Any of them will do, so that a secret can be replaced. None yet: only what makes one known is let in.
    pub secrets: &'a [HookSecret],
    /// The key of Google's that the request names ([`key_id`]).
    pub google_key: Option<&'a SigningKey>,
}

/// What an authentic request brings.
#[derive(Debug, Clone)]
pub enum Delivery {
    Events(Vec<InboundEvent>),
    Handshake(Handshake),
    /// Nothing to be done: a ping, what our own bot did.
    Nothing,
    /// The organization took its access back, of this tenant: nothing will come any more.
    Ended(Option<String>),
}

/// Something that happened at a service.
#[derive(Debug, Clone, PartialEq)]
pub struct InboundEvent {
    /// The same however often it is sent.
    pub id_at_service: String,
    /// The most precise name first: `issues.opened`, `issues`.
    pub event_types: Vec<String>,
    /// Whose it is by the service's own words, in the form of a hook's `tenant_key`.
    pub tenant: Option<String>,
    /// What an automation's paths lead into.
    pub data: Value,
}

/// What a service asks for before it sends events.
#[derive(Debug, Clone)]
pub enum Handshake {
    /// To be answered with this JSON.
    Json(Value),
    /// To be answered with this text, as text.
    Text(String),
    /// The secret of all that follows, which a person confirms at the service.
    Secret(SecretString),
}

/// Why a request is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rejection {
    /// It is not shown to be the service's: 401.
    Unauthentic,
    /// It is, and nothing can be done with it: this status, with which the service does not try again.
    Unusable(u16),
}

impl Scheme {
    pub const ALL: [Self; 13] = [
        Self::Slack,
        Self::Github,
        Self::Stripe,
        Self::Notion,
        Self::GooglePubsub,
        Self::GoogleCalendar,
        Self::Hubspot,
        Self::StandardWebhooks,
        Self::MicrosoftGraph,
        Self::Twilio,
        Self::Telegram,
        Self::Linear,
        Self::Pipedream,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Slack => "slack",
            Self::Github => "github",
            Self::Stripe => "stripe",
            Self::Notion => "notion",
            Self::GooglePubsub => "google_pubsub",
            Self::GoogleCalendar => "google_calendar",
            Self::Hubspot => "hubspot",
            Self::StandardWebhooks => "standard_webhooks",
            Self::MicrosoftGraph => "microsoft_graph",
            Self::Twilio => "twilio",
            Self::Telegram => "telegram",
            Self::Linear => "linear",
            Self::Pipedream => "pipedream",
        }
    }

    /// The scheme of a service, by whatever spelling of its name; none for a service that has no scheme of its own here.
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

    /// As [`Scheme::known`]; every other service signs by the Standard Webhooks specification.
    pub fn of_service(service: &str) -> Self {
        Self::known(service).unwrap_or(Self::StandardWebhooks)
    }

    /// The scheme of a hook. A row of a version that knew fewer schemes does not name its scheme.
    pub fn of_hook(hook: &Hook) -> Self {
        let named = |name: &String| Self::ALL.into_iter().find(|scheme| scheme.as_str() == name);
        hook.scheme.as_ref().and_then(named).unwrap_or_else(|| match Self::of_service(&hook.service) {
            Self::Twilio | Self::Telegram | Self::Linear => Self::StandardWebhooks,
            scheme => scheme,
        })
    }

    /// How long its service waits for an answer, less the way there and back. Those that wait for ten seconds or more get as long
    /// as we can work: some never send an event again.
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
            | Self::Pipedream => Duration::from_secs(9),
        }
    }

    /// Whether we make its secret, and the service is told.
    pub const fn has_secret_of_ours(self) -> bool {
        matches!(
            self,
            Self::Github | Self::GoogleCalendar | Self::StandardWebhooks | Self::MicrosoftGraph | Self::Telegram
        )
    }
}

impl HookSecret {
    pub fn of(secret: impl Into<String>) -> Self {
        Self { secret: SecretString::from(secret.into()), ..Self::default() }
    }

    /// What is stored.
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

/// What a request brings, if it is the service's.
///
/// # Errors
/// As [`Rejection`] says.
pub fn receive(hook: HookKeys<'_>, request: &WebhookRequest<'_>, now: Timestamp) -> Result<Delivery, Rejection> {
    if let Some(asked) = deliveries::asked_before_all(&hook, request) {
        return Ok(Delivery::Handshake(asked));
    }
    // Every secret is tried, whatever the first gives.
    let proven = hook
        .secrets
        .iter()
        .fold(false, |proven, secret| schemes::verify(&hook, secret, request, now).is_some() | proven);
    if proven { deliveries::read(&hook, request, now) } else { Err(Rejection::Unauthentic) }
}

/// Whom a request says it is for, each once in the form of a hook's `tenant_key`. Nobody has verified it: it only finds the hooks
/// with whose secrets it must be verified.
pub fn claimed_tenants(scheme: Scheme, request: &WebhookRequest<'_>) -> Vec<String> {
    let mut claimed = deliveries::tenants(scheme, request);
    claimed.sort();
    claimed.dedup();
    claimed
}
