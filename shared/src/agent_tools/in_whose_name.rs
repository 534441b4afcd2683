//! In whose name, and as which request, an agent from outside calls a tool.

use serde_json::{Map, Value};

use super::IDEMPOTENCY_KEY;
use crate::{
    Deadline,
    idempotency::Key,
    models::{Member, OrganizationId, Trigger, UserId},
    tool::{CallContext, Conversation, Subject},
};

/// A user of an organization, and the request of theirs that a call is.
///
/// A request has no name of its own that says what is the same: an id of JSON-RPC is counted anew in each session, and an agent
/// that heard no answer asks again under another one. So what is the same is decided by the user and the arguments: within the
/// window of [`crate::idempotency`], the same call of the same user is the same effect. With a key of the caller's choice it is the
/// same for as long as effects are remembered, and two with different keys are two.
#[derive(Debug)]
pub struct InWhoseName {
    organization: OrganizationId,
    user: UserId,
    /// The subject of the effect.
    name: String,
    keyed: bool,
    conversation: Conversation,
}

impl InWhoseName {
    /// `key` is the header `Idempotency-Key`, if there is one; else the argument of that name counts.
    pub fn of(member: Member, key: Option<&str>, arguments: &Map<String, Value>) -> Self {
        let Member { organization_id: organization, user_id: user, .. } = member;
        let key = key.or_else(|| arguments.get(IDEMPOTENCY_KEY).and_then(Value::as_str)).filter(|key| !key.is_empty());
        let name = Key::new(&["agent", user.as_str(), key.unwrap_or_default()], &Value::Null).as_str().to_owned();
        Self { organization, user, name, keyed: key.is_some(), conversation: Conversation::default() }
    }

    pub fn context(&self, deadline: Deadline) -> CallContext<'_> {
        CallContext {
            organization: self.organization,
            user: Some(&self.user),
            subject: Subject::Request(&self.name),
            delivery: self.keyed.then_some(self.name.as_str()),
            conversation: &self.conversation,
            trigger: Trigger::Agent,
            deadline,
        }
    }
}
