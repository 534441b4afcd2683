//! A run of an automation: what it was asked, how far it is, and each step on the way.

use std::{ops::AddAssign, str::FromStr};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    ApprovalId, AutomationId, EventId, ExecutionId, OfferedTool, OrganizationId, Owned, RunId, Timestamp, UserId, named,
};

/// The row of a run: small, for it is written at every step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AutomationRun {
    pub id: RunId,
    pub organization_id: OrganizationId,
    /// Who began it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<UserId>,
    pub trigger_type: RunTrigger,
    /// The automation that it is a run of; absent for a prompt that was run by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub automation_id: Option<AutomationId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub automation_version: Option<u64>,
    /// The event that started it, or that was replayed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<EventId>,
    /// When it was due by the automation's schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduled_for: Option<Timestamp>,
    /// Nothing is changed outside: each action says what it would do.
    #[serde(default)]
    pub dry_run: bool,
    /// The run that waits for this one's result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_run_id: Option<RunId>,
    /// It goes on when this was decided, or its time is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for_approval: Option<ApprovalId>,
    /// It goes on when this one is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for_run: Option<RunId>,
    /// From when its time counts, if not from when it was first taken up: it may have waited for somebody until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_from: Option<Timestamp>,
    pub status: RunStatus,
    /// Actions that succeeded, and that failed.
    #[serde(default)]
    pub actions_executed: u32,
    #[serde(default)]
    pub actions_failed: u32,
    /// The model that was asked for; the account's or the platform's otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    pub limits: RunLimits,
    #[serde(default)]
    pub spent: Spent,
    /// How often it was taken up since its last saved step.
    #[serde(default)]
    pub attempts: u32,
    /// Until when somebody is carrying it on, in milliseconds since 1970. Only the lease itself writes it.
    #[serde(default, skip_serializing)]
    pub lease_until: Option<i64>,
    /// It is put off until then, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume_at: Option<i64>,
    /// What it is put off for, if something failed that may work later: a sentence, and whether it is the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waits_for_model: bool,
    /// Somebody wants it stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_requested_at: Option<Timestamp>,
    /// Who wanted that; absent where what it worked for was over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled_by: Option<UserId>,
    /// Why there is no result, or none that could be checked: a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// It failed because something of ours, or a vendor, did: that says nothing of its automation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outage: bool,
    /// Hash of what was asked for under an idempotency key; the key is in the id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_hash: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// When DynamoDB may drop the run and its steps; seconds since 1970.
    pub expires_at: i64,
}

impl AutomationRun {
    /// A run by itself that somebody asked for and nobody has begun; kept until `expires_at`, in seconds since 1970.
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
            waits_for_approval: None,
            waits_for_run: None,
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
    /// Why it ended as it did, if not as it was meant to: a sentence.
    pub fn why(&self) -> Option<String> {
        let cancelled = || match &self.cancelled_by {
            Some(user) => format!("It was cancelled by {user}."),
            None => "It was cancelled.".to_owned(),
        };
        self.error.clone().or_else(|| (self.status == RunStatus::Cancelled).then(cancelled))
    }
}

impl Owned for AutomationRun {
    fn owner(&self) -> OrganizationId {
        self.organization_id
    }
}

/// What made a run begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunTrigger {
    /// A person or a program asked for it.
    Manual,
    /// A service told of an event.
    Webhook,
    /// A tool that is asked regularly found something new.
    Polling,
    ScheduleOnce,
    ScheduleRecurring,
    /// A stored event was given to the automation again.
    Replay,
    /// An action of another run asked for it.
    Action,
    /// Of a newer version.
    #[serde(other)]
    Unknown,
}

/// How far a run is, or how it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    Queued,
    Running,
    /// An action waits for somebody to approve it; nothing happens until then.
    WaitingForApproval,
    /// Its result fits what was asked for, or no action failed.
    Completed,
    /// Some actions failed, and some did not.
    PartialFailure,
    Failed,
    Cancelled,
    /// It did not begin: its automation had begun as many within the hour as it may.
    RunLimit,
    /// A limit ended it; if there is a result, it is the best that could be made of what was known by then.
    IterationLimit,
    CallLimit,
    TokenLimit,
    CostLimit,
    TimeLimit,
}

#[derive(Debug, thiserror::Error)]
#[error(
    "must be one of queued, running, waiting_for_approval, completed, partial_failure, failed, cancelled, run_limit, iteration_limit, call_limit, token_limit, cost_limit, time_limit"
)]
pub struct NotARunStatus;

impl RunStatus {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::WaitingForApproval => "waiting_for_approval",
            Self::Completed => "completed",
            Self::PartialFailure => "partial_failure",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::RunLimit => "run_limit",
            Self::IterationLimit => "iteration_limit",
            Self::CallLimit => "call_limit",
            Self::TokenLimit => "token_limit",
            Self::CostLimit => "cost_limit",
            Self::TimeLimit => "time_limit",
        }
    }

    pub const fn is_over(self) -> bool {
        !matches!(self, Self::Queued | Self::Running | Self::WaitingForApproval)
    }
}

impl FromStr for RunStatus {
    type Err = NotARunStatus;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        named(text).ok_or(NotARunStatus)
    }
}

/// What a run may use. Whichever is reached first ends it with one last request for the best answer there is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunLimits {
    /// Answers of the model that may call tools.
    pub iterations: u32,
    /// Calls in one answer; more are told to wait for the next.
    pub calls_per_iteration: u32,
    pub calls: u32,
    /// Prompt and completion, of all requests together.
    pub tokens: u64,
    /// In the gateway's credits: US dollars at OpenRouter. A gateway that tells no cost costs nothing here.
    pub cost: f64,
    /// Since the run was first taken up.
    pub seconds: u64,
}

impl RunLimits {
    pub const HIGHEST: Self = Self {
        iterations: 100,
        calls_per_iteration: 20,
        calls: 500,
        tokens: 5_000_000,
        cost: 100.0,
        seconds: 6 * 60 * 60,
    };
}

impl RunLimits {
    /// The same, with no more than this.
    #[must_use]
    pub fn at_most(self, ceilings: RunCeilings) -> Self {
        Self { cost: self.cost.min(ceilings.cost), seconds: self.seconds.min(ceilings.seconds), ..self }
    }
}

/// What one run may use of the platform's key of an LLM.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunCeilings {
    /// In the gateway's credits.
    pub cost: f64,
    pub seconds: u64,
}

impl Default for RunLimits {
    fn default() -> Self {
        Self { iterations: 20, calls_per_iteration: 10, calls: 50, tokens: 500_000, cost: 2.0, seconds: 15 * 60 }
    }
}

/// Which limit ended a run.
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

/// What a run has used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spent {
    pub iterations: u32,
    pub calls: u32,
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    /// Of the prompt's, those that the provider had cached.
    pub cached_tokens: u64,
    pub cost: f64,
}

impl Spent {
    pub const fn tokens(&self) -> u64 {
        self.prompt_tokens + self.completion_tokens
    }
}

impl AddAssign for Spent {
    fn add_assign(&mut self, more: Self) {
        self.iterations += more.iterations;
        self.calls += more.calls;
        self.prompt_tokens += more.prompt_tokens;
        self.completion_tokens += more.completion_tokens;
        self.cached_tokens += more.cached_tokens;
        self.cost += more.cost;
    }
}

/// What a run of an automation carries out, and with what. It stays as it was when the run began; the definition is that of the
/// row's `automation_version`, which never changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunPlan {
    /// What started it brought along, as JSON text.
    pub trigger_data: String,
    /// `{id, email, timezone, phone, name}` of whom it acts for, as far as they are known, as JSON text.
    pub user: String,
}

/// What became of one action of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ActionResult {
    /// Its place among the actions, from 0.
    pub index: u32,
    /// Its `id`, or `action_1` for the first of those that have none.
    pub action_id: String,
    pub tool: String,
    pub status: ActionStatus,
    /// What the tool was given, templates filled in, as JSON text; absent for what was skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
    /// What it gave back, as JSON text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Why it failed, was skipped or not done: a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Its condition clause by clause, with the values that were found, as JSON text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition_result: Option<String>,
    /// Its place in the history of executions, if it was executed by a tool that has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<ExecutionId>,
    /// How often the tool was called.
    #[serde(default)]
    pub attempts: u32,
    /// What its tool's author marked: fields of arguments and output that are hidden when the run is shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redact: Vec<String>,
    /// It failed because something of ours, or a vendor, did.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outage: bool,
    pub started_at: Timestamp,
    /// Milliseconds.
    pub duration_ms: u64,
}

impl ActionResult {
    /// What it adds to the row's `actions_executed` and `actions_failed`.
    pub const fn counts(&self) -> (u32, u32) {
        match self.status {
            ActionStatus::Succeeded => (1, 0),
            ActionStatus::Failed | ActionStatus::Unknown | ActionStatus::Refused => (0, 1),
            ActionStatus::Skipped | ActionStatus::NotSent => (0, 0),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionStatus {
    Succeeded,
    Failed,
    /// It may have acted; it is not done again.
    Unknown,
    /// Its condition did not hold.
    Skipped,
    /// A dry run: it shows what it would have sent.
    NotSent,
    /// Somebody refused it, or nobody approved it in time.
    Refused,
}

/// What a run was asked. It stays as it was when the run began.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunPrompt {
    /// The whole of it, with the tools: the same bytes in every request.
    pub system_prompt: String,
    pub prompt: String,
    /// What the result must fit, as JSON text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    pub tools: Vec<OfferedTool>,
}

/// An answer of the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunAnswer {
    /// 1 for the first.
    pub step: u32,
    pub text: String,
    /// It ended because there was no room for more.
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

/// What was said to an answer, and what is expected next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunReply {
    /// The number of the answer.
    pub step: u32,
    /// The message to the model, results and all.
    pub text: String,
    pub calls: Vec<RunCall>,
    pub phase: Phase,
}

/// What the model is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "snake_case")]
pub enum Phase {
    /// To call tools, or `finalResponse`. `reminded`: its last answer held no call; `final_asked`: it held `finalResponse`, which
    /// was not carried out.
    Tools {
        reminded: bool,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        final_asked: bool,
    },
    /// To give the final answer. `limit`: because it may do nothing else any more.
    Final { repairs: u32, limit: Option<RunLimit> },
}

impl Default for Phase {
    fn default() -> Self {
        Self::Tools { reminded: false, final_asked: false }
    }
}

/// A call in an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunCall {
    /// As it was written; empty if it could not be read.
    pub name: String,
    /// By parameter, as JSON text; absent if they could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
    pub outcome: CallOutcome,
    /// Where in the reply's text the result stands: first byte and number of bytes.
    pub result_at: (usize, usize),
    /// Milliseconds.
    #[serde(default)]
    pub duration_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallOutcome {
    Succeeded,
    /// The tool ran and says why it did not work.
    Failed,
    /// The same call was made before in this run, and its result was given again.
    Repeated,
    /// It could not be read, or does not fit the signature.
    Invalid,
    /// There is no such tool in this run.
    Unknown,
    /// It was over a limit.
    NotRun,
}

/// All there is of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct WholeRun {
    pub run: AutomationRun,
    /// Absent for a prompt that was run by itself.
    pub plan: Option<RunPlan>,
    /// Absent for actions, and for a prompt of an automation that was not taken up yet.
    pub prompt: Option<RunPrompt>,
    /// In their order.
    pub actions: Vec<ActionResult>,
    /// In their order.
    pub answers: Vec<RunAnswer>,
    /// In their order; the last answer may have none yet.
    pub replies: Vec<RunReply>,
    pub result: Option<Value>,
}

/// A message to `run-loop`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuedRun {
    pub organization_id: OrganizationId,
    pub run_id: RunId,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_reads_what_it_writes() {
        for status in [
            RunStatus::Queued,
            RunStatus::Running,
            RunStatus::WaitingForApproval,
            RunStatus::Completed,
            RunStatus::PartialFailure,
            RunStatus::Failed,
            RunStatus::Cancelled,
            RunStatus::RunLimit,
            RunStatus::IterationLimit,
            RunStatus::CallLimit,
            RunStatus::TokenLimit,
            RunStatus::CostLimit,
            RunStatus::TimeLimit,
        ] {
            assert_eq!(status.as_str().parse::<RunStatus>().unwrap(), status);
            assert_eq!(serde_json::to_value(status).unwrap(), status.as_str());
        }
        assert!("done".parse::<RunStatus>().is_err());
    }
}
