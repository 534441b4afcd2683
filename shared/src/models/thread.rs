//! Conversations of people with the planner.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::cut::fit;

use super::{OfferedTool, OrganizationId, RecipientState, Role, Spent, ThreadId, Timestamp, UserId};

/// A conversation of one user of an organization: the row of `threads` whose part is `thread`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Thread {
    /// Made of the organization, the user and the name.
    pub id: ThreadId,
    pub organization_id: OrganizationId,
    pub user_id: UserId,
    /// What its user's clients call it.
    pub name: String,
    /// How its first message begins.
    #[serde(default)]
    pub title: String,
    /// How many turns there were: a message and its answer each.
    #[serde(default)]
    pub turns: u32,
    /// How many messages there are; they are counted from 1.
    #[serde(default)]
    pub messages: u32,
    /// What stands for its older messages when a model is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<ThreadSummary>,
    /// The [`PendingCall`] that waits, as JSON text: DynamoDB's own maps do not take every name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<String>,
    /// The [`RunningTurn`] that is not written down as messages yet, as JSON text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<String>,
    /// Until when the turn that is being answered holds the thread; milliseconds since 1970.
    #[serde(default, skip_serializing)]
    pub lease_until: Option<i64>,
    #[serde(default)]
    pub spent: Spent,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// When DynamoDB may drop it; seconds since 1970. It moves on with every turn.
    pub expires_at: i64,
}

impl Thread {
    /// The call that waits for consent; none that a newer version wrote in a way that cannot be read here.
    pub fn pending_call(&self) -> Option<PendingCall> {
        serde_json::from_str(self.pending.as_deref()?).ok()
    }

    /// The turn that is being answered, or that broke off without an answer; none that an older version has left behind.
    pub fn running_turn(&self) -> Option<RunningTurn> {
        let running: RunningTurn = serde_json::from_str(self.running.as_deref()?).ok()?;
        (running.turn == self.turns + 1).then_some(running)
    }

    /// Whether a turn holds the thread.
    pub fn is_held(&self) -> bool {
        self.lease_until.is_some_and(|until| until > Timestamp::now().as_millis())
    }

    /// The first message that a model is told as it is.
    pub fn first_told(&self) -> u32 {
        self.summary.as_ref().map_or(1, |summary| summary.until + 1)
    }
}

/// What stands for the older messages of a long conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadSummary {
    pub text: String,
    /// The last message that it stands for.
    pub until: u32,
    pub at: Timestamp,
}

/// Who says something in a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChatRole {
    User,
    Assistant,
    /// Of a newer version.
    #[serde(other)]
    Unknown,
}

/// A message of a conversation: an item of `threads` whose part is `m#000001`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ThreadMessage {
    /// 1 for the first.
    pub number: u32,
    #[serde(default)]
    pub turn: u32,
    pub role: ChatRole,
    pub content: String,
    /// The name of the request that brought it, where it has one: the same request again gets the same answer. It stands at the
    /// answer itself where the request brought no words of the person's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// What tools gave before this answer: a list of [`ToolResult`]s as JSON text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_results: Option<String>,
    /// What is to be drawn beside the text, as JSON text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub widget: Option<String>,
    /// What the answer's `metadata` held, as JSON text, for whoever sends the request again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<String>,
    pub created_at: Timestamp,
}

impl ThreadMessage {
    /// What tools gave before this answer, as far as it can be read.
    pub fn results(&self) -> Vec<ToolResult> {
        let results: Option<Vec<Value>> = self.tool_results.as_deref().and_then(|text| serde_json::from_str(text).ok());
        results.unwrap_or_default().into_iter().filter_map(|result| serde_json::from_value(result).ok()).collect()
    }
}

/// A turn that has no answer yet: what was said, and what has been done. It is written when it happens, so that a reload, a
/// second tab and the process that goes on after a crash all see the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunningTurn {
    /// Counted from 1 in its thread.
    pub turn: u32,
    /// The name of its request, as it will stand at the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// As the client calls the message, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// Empty where the request brought results of the front end's.
    #[serde(default)]
    pub message: String,
    pub since: Timestamp,
    /// When it was last written.
    pub at: Timestamp,
    /// In the order in which they were made.
    #[serde(default)]
    pub calls: Vec<ToolResult>,
    /// Planned, and not made yet.
    #[serde(default)]
    pub rest: Vec<PlannedCall>,
    #[serde(default)]
    pub iteration: u32,
    /// Present once the turn has failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<FailedTurn>,
}

/// How a turn failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedTurn {
    /// A sentence for the person.
    pub why: String,
}

/// A call that a plan asks for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PlannedCall {
    pub tool: String,
    #[serde(default)]
    pub reason: String,
    #[serde(default)]
    pub arguments: Map<String, Value>,
}

/// What became of a call that a plan asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnCall {
    /// It has begun, and its outcome is not known yet.
    Running,
    Succeeded,
    Failed,
    /// It may have acted.
    Unconfirmed,
    /// It was not made: there is no such tool, its arguments are wrong, or the person may not.
    NotCalled,
    /// The person said no.
    Refused,
    /// Of a newer version.
    #[serde(other)]
    Unknown,
}

impl TurnCall {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Unconfirmed => "unconfirmed",
            Self::NotCalled => "not_called",
            Self::Refused => "refused",
            Self::Unknown => "unknown",
        }
    }
}

/// What a tool gave: `{"tool", "arguments", "outcome", "effect", "result"}`, and what a receipt needs to know of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The call's, as streams name it. Empty for a call that was not made.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    pub tool: String,
    /// What people call the tool.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label: String,
    #[serde(default)]
    pub arguments: Map<String, Value>,
    pub outcome: TurnCall,
    /// Whether the tool changes something outside.
    #[serde(default)]
    pub effect: bool,
    /// What it gave, or the sentence that says why it did not.
    #[serde(default)]
    pub result: Value,
    /// What became of each recipient, of a tool that has some.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recipients: Vec<Delivered>,
    /// It had been done before in this turn, and was not done again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeats: bool,
}

impl ToolResult {
    /// The same results with no more than so many bytes of what they gave, all together.
    pub fn within(results: &[Self], budget: usize) -> Vec<Self> {
        let each = budget / results.len().max(1);
        let fitted = |result: &Self| Self { result: fit(result.result.clone(), each), ..result.clone() };
        results.iter().map(fitted).collect()
    }

    /// Whether it changed something outside, or may have.
    pub fn acted(&self) -> bool {
        self.effect && !matches!(self.outcome, TurnCall::NotCalled | TurnCall::Refused)
    }
}

/// What became of one recipient of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivered {
    pub to: String,
    pub state: RecipientState,
}

/// For whom a call waits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitsFor {
    /// The person, who is asked whether it may be carried out.
    #[default]
    Consent,
    /// The front end, which carries it out.
    FrontEnd,
}

/// A call that waits for the person's consent, or for the front end, bound to exactly these arguments of the tool as it was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PendingCall {
    /// What the consent, or the result, must name.
    pub id: String,
    #[serde(default)]
    pub waits_for: WaitsFor,
    /// A tool of the front end stands here by its name alone.
    pub tool: OfferedTool,
    /// What people call the tool.
    #[serde(default)]
    pub label: String,
    pub arguments: Map<String, Value>,
    /// All that will be sent, as the person is shown it.
    #[serde(default)]
    pub shows: Vec<Shown>,
    /// Whether the tool changes something outside.
    #[serde(default)]
    pub effect: bool,
    /// Calls of the same plan that come behind it.
    #[serde(default)]
    pub rest: Vec<PlannedCall>,
    #[serde(default)]
    pub reason: String,
    /// The turn that asked; the effect is this turn's.
    pub turn: u32,
    /// What tools had given by then.
    #[serde(default)]
    pub tool_results: Vec<ToolResult>,
    #[serde(default)]
    pub iteration: u32,
    pub expires_at: Timestamp,
}

impl PendingCall {
    /// What people call the tool; a row of an older version has its name alone.
    pub fn label(&self) -> &str {
        if self.label.is_empty() { &self.tool.name } else { &self.label }
    }
}

/// A value that a call will send: `{"name", "value", "fixed"}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shown {
    pub name: String,
    pub value: String,
    /// The tool's author set it, not the model.
    #[serde(default)]
    pub fixed: bool,
}

/// `chat` of a tool: what must be seen to before it is called for a person in a chat.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatRules {
    /// Whoever has a lesser role cannot have it called.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "role_as_text",
        deserialize_with = "role_or_owner"
    )]
    pub least_role: Option<Role>,
    /// The person is asked first.
    #[serde(default)]
    pub consent: bool,
}

impl ChatRules {
    pub fn none(&self) -> bool {
        *self == Self::default()
    }

    /// The same for a tool that changes something outside, or does not: what acts needs a `member` at least, and only what acts
    /// is asked about.
    #[must_use]
    pub fn for_effect(self, effect: bool) -> Self {
        if effect {
            Self { least_role: Some(self.least_role.map_or(Role::Member, |role| role.max(Role::Member))), ..self }
        } else {
            Self { consent: false, ..self }
        }
    }

    pub fn allow(&self, role: Role) -> bool {
        self.least_role.is_none_or(|least| role >= least)
    }
}

#[expect(clippy::ref_option, clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn role_as_text<S: Serializer>(role: &Option<Role>, serializer: S) -> Result<S::Ok, S::Error> {
    role.map(Role::as_str).serialize(serializer)
}

/// A role that is not known here is taken for the highest: what a newer version holds back must not be open.
fn role_or_owner<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Role>, D::Error> {
    let named = Option::<String>::deserialize(deserializer)?;
    let known = |name: String| Role::ALL.into_iter().find(|role| role.as_str() == name).unwrap_or(Role::Owner);
    Ok(named.map(known))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_role_that_is_not_known_holds_a_tool_back() {
        let read = |rules: Value| serde_json::from_value::<ChatRules>(rules).unwrap();
        assert_eq!(read(json!({})), ChatRules::default());
        assert_eq!(read(json!({"least_role": "admin"})).least_role, Some(Role::Admin));
        assert_eq!(read(json!({"least_role": "auditor", "newer": 1})).least_role, Some(Role::Owner));
        let rules = ChatRules { least_role: Some(Role::Admin), consent: true };
        assert_eq!(serde_json::to_value(rules).unwrap(), json!({"least_role": "admin", "consent": true}));
        assert!(!rules.allow(Role::Member) && rules.allow(Role::Admin));
    }

    #[test]
    fn what_acts_needs_a_member_and_what_reads_is_not_asked_about() {
        let asks = ChatRules { least_role: None, consent: true };
        assert_eq!(asks.for_effect(true), ChatRules { least_role: Some(Role::Member), consent: true });
        assert_eq!(asks.for_effect(false), ChatRules::default());
    }

    #[test]
    fn a_name_leads_to_its_users_thread_only() {
        let (organization, other) = (OrganizationId::generate(), OrganizationId::generate());
        let (ada, bob) = (UserId::new("ada"), UserId::new("bob"));
        let id = ThreadId::of_name(organization, &ada, "main");
        assert_eq!(id, ThreadId::of_name(organization, &ada, "main"));
        for another in [
            ThreadId::of_name(organization, &bob, "main"),
            ThreadId::of_name(other, &ada, "main"),
            ThreadId::of_name(organization, &ada, "Main"),
        ] {
            assert_ne!(id, another);
        }
        let split = |user: &str, name: &str| ThreadId::of_name(organization, &UserId::new(user), name);
        assert_ne!(split("a b", "c"), split("a", "b c"));
    }
}
