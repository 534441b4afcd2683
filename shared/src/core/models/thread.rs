//! Conversations of people with the planner.

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{DeserializeOwned, Error as _},
};
use serde_json::{Map, Value};

use crate::{cut::fit, described::Described, names::Names};

use super::{OfferedTool, OrganizationId, RecipientState, Role, Spent, ThreadId, Timestamp, UserId};

/// A user's conversation: the row of `threads` whose part is `thread`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Thread {
    /// Derived from organization, user and name.
    pub id: ThreadId,
    pub organization_id: OrganizationId,
    pub user_id: UserId,
    /// Chosen by the user's client.
    pub name: String,
    /// The beginning of its first message.
    #[serde(default)]
    pub title: String,
    /// Turns: a message and its answer each.
    #[serde(default)]
    pub turns: u32,
    /// The number of the last message; the first is 1.
    #[serde(default)]
    pub messages: u32,
    /// Replaces its older messages in requests to a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<ThreadSummary>,
    /// The number of the last message when the model gave no usable summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsummarized_at: Option<u32>,
    /// Stored as JSON text: DynamoDB's maps reject some names.
    #[serde(default, skip_serializing, deserialize_with = "from_text")]
    pub pending: Option<Box<PendingCall>>,
    /// Until it is written as messages. Stored as JSON text.
    #[serde(default, skip_serializing, deserialize_with = "from_text")]
    pub running: Option<Box<RunningTurn>>,
    /// The end of the lease of the turn in progress; milliseconds since 1970.
    #[serde(default, skip_serializing)]
    pub lease_until: Option<i64>,
    #[serde(default)]
    pub spent: Spent,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// When DynamoDB may drop it; seconds since 1970. Every turn extends it.
    pub expires_at: i64,
}

impl Thread {
    pub fn pending_call(&self) -> Option<PendingCall> {
        self.pending.as_deref().cloned()
    }

    /// The turn in progress or interrupted; `None` if an older version wrote it.
    pub fn running_turn(&self) -> Option<RunningTurn> {
        self.running.as_deref().filter(|running| running.turn == self.turns + 1).cloned()
    }

    pub fn is_held(&self) -> bool {
        self.lease_until.is_some_and(|until| until > Timestamp::now().as_millis())
    }

    pub fn first_unsummarized(&self) -> u32 {
        self.summary.as_ref().map_or(1, |summary| summary.until + 1)
    }
}

/// An unreadable value makes the row unreadable: without it, the turn's effects would happen again.
fn from_text<'de, T: DeserializeOwned, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    text.map(|text| serde_json::from_str(&text).map_err(D::Error::custom)).transpose()
}

/// The summary of the older messages of a long conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadSummary {
    pub text: String,
    pub until: u32,
    pub at: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Names)]
#[serde(rename_all = "lowercase")]
pub enum ChatRole {
    User,
    Assistant,
    /// Of a newer version.
    #[serde(other)]
    Unknown,
}

/// A message of a conversation: an item of `threads` whose part is `m#000001`.
#[declare::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ThreadMessage {
    /// The first is 1.
    pub number: u32,
    #[serde(default)]
    pub turn: u32,
    pub role: ChatRole,
    pub content: String,
    /// The idempotency name of its request. An answer holds it if the request had no words of the person.
    pub request: Option<String>,
    /// Tool results before this answer: a list of [`ToolResult`]s as JSON text.
    pub tool_results: Option<String>,
    /// The widget beside the text, as JSON text.
    pub widget: Option<String>,
    /// The answer's `metadata` as JSON text, for a repeated request.
    pub metadata: Option<String>,
    pub created_at: Timestamp,
}

impl ThreadMessage {
    pub const fn new(number: u32, turn: u32, role: ChatRole, content: String, created_at: Timestamp) -> Self {
        let (request, tool_results, widget, metadata) = (None, None, None, None);
        Self { number, turn, role, content, request, tool_results, widget, metadata, created_at }
    }

    pub fn results(&self) -> Vec<ToolResult> {
        let results: Option<Vec<Value>> = self.tool_results.as_deref().and_then(|text| serde_json::from_str(text).ok());
        results.unwrap_or_default().into_iter().filter_map(|result| serde_json::from_value(result).ok()).collect()
    }
}

/// A turn without an answer, written as it happens: for a reload, a second tab, and resuming after a crash.
#[declare::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunningTurn {
    /// Counted from 1 in its thread.
    pub turn: u32,
    /// The name of its request, later stored with the message.
    pub request: Option<String>,
    pub message_id: Option<String>,
    /// Empty if the request brought results of the front end.
    #[serde(default)]
    pub message: String,
    pub since: Timestamp,
    pub at: Timestamp,
    #[serde(default)]
    pub calls: Vec<ToolResult>,
    #[serde(default)]
    pub rest: Vec<PlannedCall>,
    #[serde(default)]
    pub iteration: u32,
    pub failed: Option<FailedTurn>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedTurn {
    /// A sentence for the person.
    pub why: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PlannedCall {
    pub tool: String,
    #[serde(default)]
    pub reason: String,
    #[serde(default)]
    pub arguments: Map<String, Value>,
    /// The tool of that name when the plan was executed; absent in rows of an older version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<OfferedTool>,
    /// The tool was the front end's, which has no reference.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub of_front_end: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Described, Names)]
#[serde(rename_all = "snake_case")]
pub enum TurnCall {
    /// It has begun; the outcome is unknown.
    Running,
    Succeeded,
    Failed,
    /// It may have acted.
    Unconfirmed,
    /// Not made: an unknown tool, wrong arguments, or a missing permission.
    NotCalled,
    Refused,
    /// Of a newer version.
    #[serde(other)]
    Unknown,
}

/// A tool's result: `{"tool", "arguments", "outcome", "effect", "result"}`, and the data of its receipt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The call's id in streams. Empty for a call that was not made.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    pub tool: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label: String,
    #[serde(default)]
    pub arguments: Map<String, Value>,
    pub outcome: TurnCall,
    #[serde(default)]
    pub effect: bool,
    /// The result, or the sentence of the failure.
    #[serde(default)]
    pub result: Value,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recipients: Vec<Delivered>,
    /// It had been done earlier in this turn, and was not repeated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeats: bool,
}

impl ToolResult {
    /// The same results cut to this many bytes together.
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

/// What became of a message to one of its recipients.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Described)]
pub struct Delivered {
    pub to: String,
    pub state: RecipientState,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitsFor {
    #[default]
    Consent,
    /// The front end, which carries the call out.
    FrontEnd,
}

/// A call that waits for consent or the front end, with exactly these arguments and this version of the tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PendingCall {
    /// The id that the consent or the result must name.
    pub id: String,
    /// The idempotency name of the request whose turn waits; absent in rows of an older version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    #[serde(default)]
    pub waits_for: WaitsFor,
    /// Only the name for a tool of the front end.
    pub tool: OfferedTool,
    #[serde(default)]
    pub label: String,
    pub arguments: Map<String, Value>,
    /// All values that will be sent, as shown to the person.
    #[serde(default)]
    pub shows: Vec<ShownValue>,
    #[serde(default)]
    pub effect: bool,
    /// Later calls of the same plan.
    #[serde(default)]
    pub rest: Vec<PlannedCall>,
    #[serde(default)]
    pub reason: String,
    /// The turn that asked, to which the effect belongs.
    pub turn: u32,
    #[serde(default)]
    pub tool_results: Vec<ToolResult>,
    #[serde(default)]
    pub iteration: u32,
    pub expires_at: Timestamp,
}

impl PendingCall {
    /// Rows of an older version have only the tool's name.
    pub fn label(&self) -> &str {
        if self.label.is_empty() { &self.tool.name } else { &self.label }
    }

    /// Whether a person may be asked now. A call of the front end's own tool is not told again: it would be made again.
    pub fn asks_person(&self) -> bool {
        self.waits_for == WaitsFor::Consent && self.expires_at > Timestamp::now()
    }

    /// Whether the turn acted before it left this call to the front end. Such a turn has no answer yet to store its
    /// effects.
    pub fn acted_before_front_end(&self) -> bool {
        self.waits_for == WaitsFor::FrontEnd && self.tool_results.iter().any(ToolResult::acted)
    }
}

/// A value that a call will send.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Described)]
pub struct ShownValue {
    pub name: String,
    /// A secret is `[secret]`.
    pub value: String,
    /// The author of the tool set it, not the model.
    #[serde(default)]
    pub fixed: bool,
}

/// `chat` of a tool: the rules for its calls for a person.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatRules {
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "role_as_text",
        deserialize_with = "role_or_owner"
    )]
    pub least_role: Option<Role>,
    #[serde(default)]
    pub consent: bool,
}

impl ChatRules {
    pub fn none(&self) -> bool {
        *self == Self::default()
    }

    /// The default rules: an acting tool needs the role `member`, and only acting tools ask.
    #[must_use]
    pub fn for_effect(self, effect: bool) -> Self {
        if effect {
            Self { least_role: Some(self.least_role.map_or(Role::Member, |role| role.max(Role::Member))), ..self }
        } else {
            Self { consent: false, ..self }
        }
    }
}

#[expect(clippy::ref_option, clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn role_as_text<S: Serializer>(role: &Option<Role>, serializer: S) -> Result<S::Ok, S::Error> {
    role.map(Role::as_str).serialize(serializer)
}

/// An unknown role is read as the highest, because a newer version's restriction must hold.
fn role_or_owner<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Role>, D::Error> {
    let named = Option::<String>::deserialize(deserializer)?;
    let known = |name: String| Role::named(&name).unwrap_or(Role::Owner);
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
    }

    #[test]
    fn a_tool_with_an_effect_needs_a_member_and_a_read_needs_no_consent() {
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
