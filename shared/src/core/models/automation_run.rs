//! Runs of automations: request, progress and steps.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    ApprovalId, AutomationId, EventId, ExecutionId, OfferedTool, OrganizationId, RunId, RunPause, Spent, Timestamp,
    UserId,
};
use crate::{described::Described, names::Names};

/// Small, because every step writes it.
#[declare::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AutomationRun {
    pub id: RunId,
    pub organization_id: OrganizationId,
    pub user_id: Option<UserId>,
    pub trigger_type: RunTrigger,
    /// Absent for a prompt without one.
    pub automation_id: Option<AutomationId>,
    pub automation_version: Option<u64>,
    pub event_id: Option<EventId>,
    pub scheduled_for: Option<Timestamp>,
    /// Each action only shows its request.
    #[serde(default)]
    pub dry_run: bool,
    pub parent_run_id: Option<RunId>,
    /// This run goes on from it.
    pub retry_of: Option<RunId>,
    /// Of a chain of retries; effects are claimed under it.
    pub first_run: Option<RunId>,
    pub retried_by: Option<RunId>,
    /// Continues after the decision or its expiry.
    pub waits_for_approval: Option<ApprovalId>,
    pub waits_for_run: Option<RunId>,
    /// A pause that it has begun.
    pub pause: Option<RunPause>,
    /// The start of its time, if it waited after it was first processed.
    pub time_from: Option<Timestamp>,
    pub status: RunStatus,
    #[serde(default)]
    pub actions_executed: u32,
    #[serde(default)]
    pub actions_failed: u32,
    /// Requested; else the account's or the platform's.
    pub model: Option<String>,
    pub limits: RunLimits,
    #[serde(default)]
    pub spent: Spent,
    /// Since the last saved step.
    #[serde(default)]
    pub attempts: u32,
    /// In milliseconds since 1970. Only the lease writes it.
    #[serde(default, skip_serializing)]
    pub lease_until: Option<i64>,
    /// In milliseconds since 1970.
    pub resume_at: Option<i64>,
    /// Of a transient failure: a sentence, and whether the model failed.
    pub last_error: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waits_for_model: bool,
    pub cancel_requested_at: Option<Timestamp>,
    /// Absent if the run it worked for ended.
    pub cancelled_by: Option<UserId>,
    /// A sentence.
    pub error: Option<String>,
    /// Caused by a fault of ours or of a vendor.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outage: bool,
    /// Of the request under an idempotency key, which is in the id.
    pub request_hash: Option<String>,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// For DynamoDB's TTL, of the steps too; seconds since 1970.
    pub expires_at: i64,
}

impl AutomationRun {
    /// A requested run without an automation; kept until `expires_at`, in seconds since 1970.
    pub fn queued(
        id: RunId,
        organization_id: OrganizationId,
        trigger_type: RunTrigger,
        limits: RunLimits,
        expires_at: i64,
    ) -> Self {
        let now = Timestamp::now();
        Self {
            id,
            organization_id,
            user_id: None,
            trigger_type,
            automation_id: None,
            automation_version: None,
            event_id: None,
            scheduled_for: None,
            dry_run: false,
            parent_run_id: None,
            retry_of: None,
            first_run: None,
            retried_by: None,
            waits_for_approval: None,
            waits_for_run: None,
            pause: None,
            time_from: None,
            status: RunStatus::Queued,
            actions_executed: 0,
            actions_failed: 0,
            model: None,
            limits,
            spent: Spent::default(),
            attempts: 0,
            lease_until: None,
            resume_at: None,
            last_error: None,
            waits_for_model: false,
            cancel_requested_at: None,
            cancelled_by: None,
            error: None,
            outage: false,
            request_hash: None,
            started_at: None,
            finished_at: None,
            created_at: now,
            updated_at: now,
            expires_at,
        }
    }
}

impl AutomationRun {
    /// Why it ended abnormally: a sentence.
    pub fn why(&self) -> Option<String> {
        let cancelled = || match &self.cancelled_by {
            Some(user) => format!("It was cancelled by {user}."),
            None => "It was cancelled.".to_owned(),
        };
        self.error.clone().or_else(|| (self.status == RunStatus::Cancelled).then(cancelled))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Described)]
#[serde(rename_all = "snake_case")]
pub enum RunTrigger {
    Manual,
    Webhook,
    Polling,
    ScheduleOnce,
    ScheduleRecurring,
    Replay,
    Action,
    #[serde(other)]
    Unknown,
}

/// `completed` has a result that fits, or no action that failed; with `partial_failure` some did. A limit that was reached ends a
/// run with the best result that could be made by then, if any; with `run_limit` it did not begin, for its automation, or the
/// organization in dry runs, had begun as many within the hour as it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Described, Names)]
#[serde(rename_all = "snake_case")]
#[schema(name = "RunStatus")]
pub enum RunStatus {
    Queued,
    Running,
    WaitingForApproval,
    Completed,
    PartialFailure,
    Failed,
    Cancelled,
    RunLimit,
    IterationLimit,
    CallLimit,
    TokenLimit,
    CostLimit,
    TimeLimit,
}

impl RunStatus {
    pub const fn is_over(self) -> bool {
        !matches!(self, Self::Queued | Self::Running | Self::WaitingForApproval)
    }
}

/// The first limit reached ends the run with a last request for the best answer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, Described)]
#[serde(default)]
pub struct RunLimits {
    /// Answers of the model that may call tools.
    pub iterations: u32,
    pub calls_per_iteration: u32,
    pub calls: u32,
    /// Of prompts and answers together.
    pub tokens: u64,
    /// In the gateway's credits (US dollars at OpenRouter); zero if not reported.
    pub cost: f64,
    /// Since it was first taken up.
    pub seconds: u64,
}

impl RunLimits {
    pub const MOST_TOKENS: u32 = 5_000_000;
    pub const MOST_SECONDS: u32 = 6 * 60 * 60;
    pub const HIGHEST: Self = Self {
        iterations: 100,
        calls_per_iteration: 20,
        calls: 500,
        tokens: Self::MOST_TOKENS as u64,
        cost: 100.0,
        seconds: Self::MOST_SECONDS as u64,
    };
}

impl RunLimits {
    #[must_use]
    pub fn at_most(self, ceilings: &RunCeilings) -> Self {
        Self { cost: self.cost.min(ceilings.cost), seconds: self.seconds.min(ceilings.seconds), ..self }
    }
}

/// For one run on the platform's LLM key.
#[derive(Debug, Clone, PartialEq)]
pub struct RunCeilings {
    /// In the gateway's credits.
    pub cost: f64,
    pub seconds: u64,
    /// The models that a run may name.
    pub models: Vec<String>,
}

impl RunCeilings {
    /// The problem with a model that is not among [`RunCeilings::models`], to follow the name of its field.
    pub fn refused_model(&self, model: &str) -> Option<String> {
        (!self.models.iter().any(|allowed| allowed == model)).then(|| {
            format!(
                "must be one of {} on the platform's key; leave it out, or store a key of your own (PUT \
                 /api/{{slug}}/keys/llm)",
                self.models.join(", ")
            )
        })
    }
}

impl Default for RunLimits {
    fn default() -> Self {
        Self { iterations: 20, calls_per_iteration: 10, calls: 50, tokens: 500_000, cost: 2.0, seconds: 15 * 60 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunLimit {
    Iterations,
    Calls,
    Tokens,
    Cost,
    Time,
}

impl RunLimit {
    pub const fn status(self) -> RunStatus {
        match self {
            Self::Iterations => RunStatus::IterationLimit,
            Self::Calls => RunStatus::CallLimit,
            Self::Tokens => RunStatus::TokenLimit,
            Self::Cost => RunStatus::CostLimit,
            Self::Time => RunStatus::TimeLimit,
        }
    }
}

/// Fixed at the run's start, like `automation_version`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunPlan {
    /// JSON text.
    pub trigger_data: String,
    /// `{id, email, timezone, phone, name}` of the user it acts for, as far as known, as JSON text.
    pub user: String,
    /// Actions of the run before whose results a retry takes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<KeptAction>,
    /// Actions, by id, that a person lets a retry repeat although they may have acted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub confirmed: Vec<String>,
    /// Actions of a `catch` claim for this run and not for the first one; false in retries that an older version began.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub catch_anew: bool,
}

/// With its position in the run before, both from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptAction {
    pub index: u32,
    pub from: u32,
}

#[declare::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ActionResult {
    /// Its number among the run's results, from 0.
    pub index: u32,
    /// Its `id`, or `action_1` for the first action without one.
    pub action_id: String,
    pub tool: String,
    pub status: ActionStatus,
    /// With templates filled in, as JSON text; absent for a skipped action.
    pub arguments: Option<String>,
    /// JSON text.
    pub output: Option<String>,
    /// A sentence, also for a skipped action.
    pub error: Option<String>,
    /// By clause, with the found values, as JSON text.
    pub condition_result: Option<String>,
    pub execution_id: Option<ExecutionId>,
    #[serde(default)]
    pub attempts: u32,
    /// Of arguments and output.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redact: Vec<String>,
    /// See [`AutomationRun::outage`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outage: bool,
    /// The kind of step; absent for a call of a tool.
    #[serde(default, skip_serializing_if = "StepKind::is_action")]
    pub kind: StepKind,
    /// Its place, if it is in a loop: `each[42].notify`. Names the subject of its effects.
    pub path: Option<String>,
    /// Of a loop: the keys of its items, in order. The items are its output.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
    /// Of the end of a loop with `at_once`: places of calls that a dead process may have made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub under_way: Vec<String>,
    /// A remark for people: a sentence.
    pub note: Option<String>,
    /// Nothing happened outside, for certain. False also in rows of an older version.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub had_no_effect: bool,
    /// Of a kept result.
    pub kept_from: Option<RunId>,
    pub started_at: Timestamp,
    /// Milliseconds.
    pub duration_ms: u64,
}

/// A call of a tool, or a step around such calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, Described)]
#[serde(rename_all = "snake_case")]
pub enum StepKind {
    #[default]
    Action,
    ForEach,
    ForEachEnd,
    Choose,
    Wait,
}

impl StepKind {
    pub const fn is_action(&self) -> bool {
        matches!(self, Self::Action)
    }
}

impl ActionResult {
    /// Its path in the run: its id, below the items of the loops around it.
    pub fn place(&self) -> &str {
        self.path.as_deref().unwrap_or(&self.action_id)
    }

    /// Its contribution to the row's `actions_executed` and `actions_failed`.
    pub const fn counts(&self) -> (u32, u32) {
        match self.status {
            // Its items are counted.
            _ if matches!(self.kind, StepKind::ForEachEnd) => (0, 0),
            ActionStatus::Succeeded if !self.kind.is_action() => (0, 0),
            ActionStatus::Succeeded => (1, 0),
            ActionStatus::Failed | ActionStatus::Unknown | ActionStatus::Refused => (0, 1),
            ActionStatus::Skipped | ActionStatus::NotSent => (0, 0),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Described)]
#[serde(rename_all = "snake_case")]
pub enum ActionStatus {
    Succeeded,
    Failed,
    Unknown,
    Skipped,
    NotSent,
    Refused,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunPrompt {
    /// With the tools: the same bytes in every request.
    pub system_prompt: String,
    pub prompt: String,
    /// Of the result, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    pub tools: Vec<OfferedTool>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunAnswer {
    /// 1 for the first.
    pub step: u32,
    pub text: String,
    /// At the maximum length.
    #[serde(default)]
    pub cut: bool,
    #[serde(default)]
    pub model: String,
    #[serde(default)]
    pub prompt_tokens: u64,
    #[serde(default)]
    pub completion_tokens: u64,
    #[serde(default)]
    pub cached_tokens: u64,
    #[serde(default)]
    pub cost: f64,
    pub started_at: Timestamp,
    /// Milliseconds.
    pub duration_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunReply {
    pub step: u32,
    /// The message to the model, with all results.
    pub text: String,
    pub calls: Vec<RunCall>,
    pub phase: Phase,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "snake_case")]
pub enum Phase {
    /// `reminded`: the last answer had no call; `final_asked`: its `finalResponse` was rejected.
    Tools {
        reminded: bool,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        final_asked: bool,
    },
    /// `limit`: why no more tools may be called.
    Final { repairs: u32, limit: Option<RunLimit> },
}

impl Default for Phase {
    fn default() -> Self {
        Self::Tools { reminded: false, final_asked: false }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunCall {
    /// As written; empty if it was unreadable.
    pub name: String,
    /// By parameter, as JSON text; absent if unreadable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
    pub outcome: CallOutcome,
    /// In the reply: first byte, number of bytes.
    pub result_at: (usize, usize),
    /// Milliseconds.
    #[serde(default)]
    pub duration_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Described)]
#[serde(rename_all = "snake_case")]
pub enum CallOutcome {
    Succeeded,
    Failed,
    Repeated,
    Invalid,
    Unknown,
    NotRun,
}

#[derive(Debug, Clone, PartialEq)]
pub struct WholeRun {
    pub run: AutomationRun,
    /// Absent for a prompt without an automation.
    pub plan: Option<RunPlan>,
    /// Absent for actions, and before an automation's prompt is processed.
    pub prompt: Option<RunPrompt>,
    pub actions: Vec<ActionResult>,
    pub answers: Vec<RunAnswer>,
    /// The last answer may have no reply yet.
    pub replies: Vec<RunReply>,
    pub result: Option<Value>,
}

/// To `run-loop`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuedRun {
    pub organization_id: OrganizationId,
    pub run_id: RunId,
    /// How often an outage before the first step has sent it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub put_off: Option<u32>,
}

impl QueuedRun {
    pub const fn new(organization_id: OrganizationId, run_id: RunId) -> Self {
        Self { organization_id, run_id, put_off: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_status_is_read_back() {
        let names = "queued running waiting_for_approval completed partial_failure failed cancelled run_limit iteration_limit \
                     call_limit token_limit cost_limit time_limit";
        for name in names.split_whitespace() {
            let status: RunStatus = name.parse().unwrap();
            assert_eq!((status.as_str(), serde_json::to_value(status).unwrap()), (name, name.into()));
        }
        assert!("done".parse::<RunStatus>().is_err());
    }
}
