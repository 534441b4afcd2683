//! Ids, with a type for each kind.

use std::{fmt, str::FromStr};

use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{CallId, E164, Timestamp};

#[derive(Debug, thiserror::Error)]
#[error("must be a UUID")]
pub struct NotAUuid(#[source] uuid::Error);

/// The bits of a version 7 UUID below its time in milliseconds (RFC 9562).
const BELOW_TIME: u32 = 80;

macro_rules! uuid_ids {
    ($($(#[$doc:meta])* $name:ident;)+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// A new id; later ids sort later.
            pub fn generate() -> Self {
                Self(Uuid::now_v7())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.hyphenated().fmt(f)
            }
        }

        crate::described!($name => {"type": "string", "format": "uuid"});

        impl FromStr for $name {
            type Err = NotAUuid;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Uuid::parse_str(text).map(Self).map_err(NotAUuid)
            }
        }
    )+};
}

uuid_ids! {
    /// `agents.id`
    AgentId;
    /// `approvals.id`
    ApprovalId;
    /// `automations.id`
    AutomationId;
    /// `do_not_call.id`
    DoNotCallId;
    /// `events.id`
    EventId;
    /// `executions.id`
    ExecutionId;
    /// `hooks.id`
    HookId;
    /// `intents.id`
    IntentId;
    /// `knowledge_bases.id`
    KnowledgeBaseId;
    /// `organizations.id`
    OrganizationId;
    /// `phone_numbers.id`
    PhoneNumberId;
    /// `replays.id`
    ReplayId;
    /// `automation_runs.id`
    RunId;
    /// The end of a replaceable secret's name; each replacement has a new one
    SecretId;
    /// `threads.id`
    ThreadId;
    /// `tools.id`
    ToolId;
}

impl ExecutionId {
    /// The execution that sends the result of this one, after the call.
    #[must_use]
    pub fn of_sending(self) -> Self {
        Self(Uuid::from_u128(self.0.as_u128() ^ 1))
    }

    /// Not above any id that is generated at `at` or later.
    pub fn earliest(at: Timestamp) -> Self {
        Self(Uuid::from_u128(milliseconds(at) << BELOW_TIME))
    }

    /// Not below any id that is generated at `at` or earlier.
    pub fn latest(at: Timestamp) -> Self {
        Self(Uuid::from_u128((milliseconds(at) << BELOW_TIME) | ((1 << BELOW_TIME) - 1)))
    }
}

fn milliseconds(at: Timestamp) -> u128 {
    u128::try_from(at.as_millis()).unwrap_or_default()
}

impl ToolId {
    /// The id of a tool without a row, derived from its content.
    pub fn of_digest(digest: [u8; 16]) -> Self {
        Self(uuid::Builder::from_custom_bytes(digest).into_uuid())
    }

    /// When it was generated; `None` for an id that has no time.
    pub fn generated_at(self) -> Option<Timestamp> {
        let milliseconds = i64::try_from(self.0.as_u128() >> BELOW_TIME).ok();
        milliseconds.filter(|_| self.0.get_version_num() == 7).map(Timestamp::from_millis)
    }
}

/// Half of the SHA-256 of the content.
fn of_content(content: &str) -> Uuid {
    let mut half = [0; 16];
    half.iter_mut().zip(digest(&SHA256, content.as_bytes()).as_ref()).for_each(|(to, from)| *to = *from);
    uuid::Builder::from_custom_bytes(half).into_uuid()
}

impl AutomationId {
    pub fn of_content(organization: OrganizationId, content_hash: &str) -> Self {
        Self(of_content(&format!("automation {organization} {content_hash}")))
    }
}

impl RunId {
    pub fn of_key(organization: OrganizationId, key: &str) -> Self {
        Self(of_content(&format!("run {organization} {key}")))
    }

    /// The same event, occurrence or request starts the same run.
    pub fn of_cause(organization: OrganizationId, automation: AutomationId, cause: &str) -> Self {
        Self(of_content(&format!("automation run {organization} {automation} {cause}")))
    }
}

impl ThreadId {
    /// Each user has threads of their own by name.
    pub fn of_name(organization: OrganizationId, user: &UserId, name: &str) -> Self {
        let user = user.as_str();
        Self(of_content(&format!("thread {organization} {}:{user} {name}", user.len())))
    }
}

impl EventId {
    /// Redeliveries are the same event.
    pub fn of_delivery(organization: OrganizationId, hook: HookId, id_at_service: &str) -> Self {
        Self(of_content(&format!("event {organization} {hook} {id_at_service}")))
    }

    pub fn of_ended_call(organization: OrganizationId, call: &CallId) -> Self {
        Self(of_content(&format!("event {organization} call {call} ended")))
    }

    pub fn of_failed_tool(organization: OrganizationId, execution: ExecutionId) -> Self {
        Self(of_content(&format!("event {organization} execution {execution} failed")))
    }

    /// The event that a text message came in. `message`: Twilio's id.
    pub fn of_text(organization: OrganizationId, message: &str) -> Self {
        Self(of_content(&format!("event {organization} text {message}")))
    }

    pub fn of_answered_call(organization: OrganizationId, call: &CallId) -> Self {
        Self(of_content(&format!("event {organization} call {call} answered")))
    }
}

impl DoNotCallId {
    /// A digest, different in each organization. It does not hide a number from somebody who tries them all.
    pub fn of_number(organization: OrganizationId, number: &E164) -> Self {
        Self(of_content(&format!("do not call {organization} {number}")))
    }
}

impl ApprovalId {
    pub fn of_action(run: RunId, action: &str) -> Self {
        Self(of_content(&format!("approval {run} {action}")))
    }
}

/// `sub` of a token: any text of the OIDC issuer.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UserId(String);

shows_text!(UserId);

impl UserId {
    pub fn new(subject: impl Into<String>) -> Self {
        Self(subject.into())
    }
}

crate::described!(UserId => {"type": "string", "minLength": 1, "maxLength": 255});

#[derive(Debug, thiserror::Error)]
#[error(
    "must be the `sub` of the user's tokens: 1 to 255 characters, none of them a control character or a space at an end"
)]
pub struct NotAUserId;

/// Validates the `sub` in a row; tokens may hold any text.
impl FromStr for UserId {
    type Err = NotAUserId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // OpenID Connect Core 1.0, section 2: `sub` has at most 255 characters.
        let fits = (1..=255).contains(&text.chars().count());
        let valid = fits && text.trim() == text && !text.chars().any(char::is_control);
        if valid { Ok(Self::new(text)) } else { Err(NotAUserId) }
    }
}
