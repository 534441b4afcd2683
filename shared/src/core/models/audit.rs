//! The audit log: who changed what, and when.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::{Member, OrganizationId, Role, Timestamp, UserId};
use crate::{described::Described, names::Names};

/// How long an entry is kept, in days.
pub const AUDIT_DAYS: u64 = 365;

tokio::task_local! {
    static ACTOR: Option<Actor>;
}

/// The user on whose behalf changes are made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Actor {
    pub organization_id: OrganizationId,
    pub user_id: UserId,
    pub role: Role,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<Via>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Names)]
#[serde(rename_all = "snake_case")]
pub enum Via {
    /// A model, through MCP, the agent tools or the chat.
    Agent,
    #[serde(other)]
    Other,
}

impl Actor {
    pub fn of(member: &Member) -> Self {
        let Member { organization_id, user_id, role } = member;
        Self { organization_id: *organization_id, user_id: user_id.clone(), role: *role, via: None }
    }

    pub fn agent_of(member: &Member) -> Self {
        Self { via: Some(Via::Agent), ..Self::of(member) }
    }

    /// The actor of the current task, set by [`acting`].
    pub fn present() -> Option<Self> {
        ACTOR.try_with(Clone::clone).ok().flatten()
    }
}

/// Carries out `work` with this actor in its audit entries; without one it leaves no entries.
pub async fn acting<F: Future>(actor: Option<Actor>, work: F) -> F::Output {
    ACTOR.scope(actor, Box::pin(work)).await
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Names)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    Activated,
    Approved,
    Attached,
    Cancelled,
    Connected,
    Created,
    Deleted,
    Detached,
    Disconnected,
    Edited,
    Erased,
    Loaded,
    Paused,
    Refused,
    Replayed,
    RolledBack,
    Started,
    /// Of a newer version.
    #[serde(other)]
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Names)]
#[serde(rename_all = "snake_case")]
pub enum Noun {
    Agent,
    Approval,
    Automation,
    Call,
    DoNotCall,
    Erasure,
    Event,
    Hook,
    Key,
    KnowledgeBase,
    Member,
    PhoneNumber,
    Replay,
    Run,
    Service,
    Tool,
    /// Of a newer version.
    #[serde(other)]
    Other,
}

crate::described! {
    Act => {"enum": (Act::NAMES)},
    Noun => {"enum": (Noun::NAMES)},
    Via => {"enum": (Via::NAMES)},
}

/// Ids, numbers and words, never stored values or data of callers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AuditDetails(pub BTreeMap<String, Value>);

crate::described!(AuditDetails => {"type": "object", "additionalProperties": {"type": ["string", "integer", "boolean"]}});

/// One change, and who made it. `id` and `name` are the thing's; `via` is `agent` if a model acted for the user.
#[derive(Debug, Clone, Serialize, Deserialize, Described)]
pub struct AuditEntry {
    pub entry_id: AuditEntryId,
    pub at: Timestamp,
    pub actor: UserId,
    pub via: Option<Via>,
    pub role: Role,
    pub action: Act,
    pub noun: Noun,
    pub id: Option<String>,
    pub name: Option<String>,
    #[serde(default)]
    pub details: AuditDetails,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AuditEntryId(Uuid);

crate::described!(AuditEntryId => {"type": "string", "format": "uuid"});

impl AuditEntry {
    pub fn new(actor: Actor, action: Act, noun: Noun) -> Self {
        let Actor { user_id: actor, via, role, .. } = actor;
        let (entry_id, at) = (AuditEntryId(Uuid::now_v7()), Timestamp::now());
        let details = AuditDetails::default();
        Self { entry_id, at, actor, via, role, action, noun, id: None, name: None, details }
    }

    /// The sort key: entries of one organization in the order of their times.
    pub fn place(&self) -> String {
        format!("{}#{}", self.at, self.entry_id.0)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_word_of_a_newer_version_still_decodes() {
        let entry = json!({
            "entry_id": "0192f0c1-0000-7000-8000-000000000001", "at": "2026-01-01T00:00:00.000Z", "actor": "auth0|7",
            "via": "robot", "role": "admin", "action": "painted", "noun": "bicycle", "details": {"colour": "red"},
        });
        let entry: AuditEntry = serde_json::from_value(entry).unwrap();
        assert_eq!((entry.via, entry.action, entry.noun), (Some(Via::Other), Act::Other, Noun::Other));
    }

    #[test]
    fn an_unknown_noun_in_a_query_is_refused() {
        assert_eq!("phone_number".parse::<Noun>().unwrap(), Noun::PhoneNumber);
        assert!("bicycle".parse::<Noun>().is_err());
    }

    #[tokio::test]
    async fn without_a_scope_there_is_no_actor() {
        let member =
            Member { organization_id: OrganizationId::generate(), user_id: UserId::new("u"), role: Role::Admin };
        assert_eq!(Actor::present(), None);
        let inside = acting(Some(Actor::agent_of(&member)), async {
            (Actor::present(), acting(None, async { Actor::present() }).await)
        });
        assert_eq!(inside.await, (Some(Actor::agent_of(&member)), None));
    }
}
