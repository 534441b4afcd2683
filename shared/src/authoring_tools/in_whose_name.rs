//! The user and the request behind an external agent's tool call.

use serde_json::{Map, Value};

use super::IDEMPOTENCY_KEY;
use crate::{
    Deadline,
    idempotency::Key,
    models::{ExecutionOrigin, Member, OrganizationId, UserId},
    tool::{CallContext, Conversation, Subject},
};

/// A user of an organization, with the request of a call.
///
/// Requests have no reliable name: JSON-RPC ids restart in each session, and an agent that missed an answer repeats its call
/// under another id. So equal calls (organization, user and arguments) within the window of [`crate::idempotency`] are the same effect. With a
/// caller's key they are the same for as long as effects are remembered, and calls with different keys differ.
#[derive(Debug)]
pub struct InWhoseName {
    organization: OrganizationId,
    user: UserId,
    name: String,
    keyed: bool,
    conversation: Conversation,
}

impl InWhoseName {
    /// `key`: the header `Idempotency-Key`; without it the argument of that name is used.
    pub fn of(member: Member, key: Option<&str>, arguments: &Map<String, Value>) -> Self {
        let Member { organization_id: organization, user_id: user, .. } = member;
        let key = key.or_else(|| arguments.get(IDEMPOTENCY_KEY).and_then(Value::as_str)).filter(|key| !key.is_empty());
        // With the organization: a service's tool has the same id in all of them.
        let given = key.unwrap_or_default();
        let name = Key::new(&["agent", &organization.to_string(), user.as_str(), given], &Value::Null);
        let name = name.as_str().to_owned();
        Self { organization, user, name, keyed: key.is_some(), conversation: Conversation::default() }
    }

    pub fn context(&self, deadline: Deadline) -> CallContext<'_> {
        CallContext {
            organization: self.organization,
            user: Some(&self.user),
            subject: Subject::Request(&self.name),
            automation: None,
            delivery: self.keyed.then_some(self.name.as_str()),
            conversation: &self.conversation,
            trigger: ExecutionOrigin::Agent,
            refused: None,
            deadline,
        }
    }
}
