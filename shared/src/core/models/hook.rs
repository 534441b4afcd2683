//! Hooks: the addresses to which services send an organization's events.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{AutomationId, HookId, OrganizationId, SecretId, Timestamp};
use crate::{described::Described, names::Names};

/// A row of `hooks`. The id is part of the address and cannot be guessed.
#[declare::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hook {
    pub id: HookId,
    pub organization_id: OrganizationId,
    /// The folded service name ([`super::folded_name`]), as in the address.
    pub service: String,
    /// Absent in rows of older versions. A row with a scheme that this version does not know is unreadable.
    pub scheme: Option<Scheme>,
    /// Of an organization's own hook.
    pub own: Option<OwnHook>,
    /// Requests of an own hook that were refused because they were too many.
    pub throttled: Option<u64>,
    pub throttled_at: Option<Timestamp>,
    #[serde(default)]
    pub label: String,
    pub status: HookStatus,
    /// The tenant at a service with one address for all organizations: `slack#A0MDYCDME#T061EG9R6`. Other tenants' events are
    /// ignored.
    pub tenant_key: Option<String>,
    /// Each proves a request; the newest last. Values are in Secrets Manager.
    #[serde(default)]
    pub secrets: Vec<HookSecretRef>,
    /// The service sent the secret, and no person has seen it yet.
    #[serde(default)]
    pub unseen_secret: bool,
    /// The one automation that receives its events; otherwise all listening ones.
    pub automation_id: Option<AutomationId>,
    /// `[service, event, params]` of its trigger, as JSON; when the automation has another one, events are ignored. Absent
    /// in rows of older versions.
    pub deployed_for: Option<String>,
    /// Counts changes of the row; a change of an older revision is a conflict.
    #[serde(default)]
    pub revision: u64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Hook {
    /// Whether it may be of a trigger deployed for this folded service name.
    pub fn listens_at(&self, service: &str) -> bool {
        let trigger: Option<Vec<Value>> = self.deployed_for.as_deref().and_then(|text| serde_json::from_str(text).ok());
        trigger.is_none_or(|trigger| trigger.first().is_none_or(|of| of == service))
    }
}

/// The proof of a hook's requests, see [`crate::webhooks`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Described, Names)]
#[serde(rename_all = "snake_case")]
pub enum Scheme {
    Slack,
    Github,
    Stripe,
    Notion,
    GooglePubsub,
    GoogleCalendar,
    Hubspot,
    /// The scheme of all other services, and of the organizations' own programs.
    StandardWebhooks,
    MicrosoftGraph,
    Twilio,
    Telegram,
    Linear,
    Pipedream,
    /// Of own hooks only, like the following ones: an HMAC of the body.
    Hmac,
    /// A token in a header.
    Bearer,
    Basic,
    /// No proof but the unguessable address and the sender's address.
    #[serde(rename = "none")]
    Unsigned,
}

/// How the requests of an organization's own hook are proven and read. Secrets are in Secrets Manager.
#[declare::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, Described)]
pub struct OwnHook {
    /// The header of the signature, or of the token.
    pub header: Option<String>,
    #[serde(default)]
    pub algorithm: SignatureAlgorithm,
    #[serde(default)]
    pub encoding: SignatureEncoding,
    /// Text before the signature: `sha256=`.
    pub prefix: Option<String>,
    /// The user name of `basic`.
    pub user: Option<String>,
    /// The senders' addresses: `203.0.113.7`, `203.0.113.0/24`; empty: any.
    #[serde(default)]
    pub allowed_addresses: Vec<String>,
    /// The path of the event's name in the body; `type` unless given.
    pub event_field: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, Described)]
#[serde(rename_all = "snake_case")]
pub enum SignatureAlgorithm {
    #[default]
    Sha256,
    Sha512,
    /// Some services still sign with it.
    Sha1,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, Described)]
#[serde(rename_all = "snake_case")]
pub enum SignatureEncoding {
    #[default]
    Hex,
    Base64,
}

/// A hook's secret: the last part of its name in Secrets Manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Described)]
pub struct HookSecretRef {
    pub id: SecretId,
    pub created_at: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Described, Names)]
#[serde(rename_all = "snake_case")]
pub enum HookStatus {
    /// Without a secret: only a handshake that brings one is accepted.
    Pending,
    Active,
    /// The service reported that the organization revoked its access.
    Ended,
}
