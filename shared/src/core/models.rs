//! The domain's nouns, as types that can only be valid. They know nothing of HTTP, DynamoDB or vendors.

/// `as_str` and `Display` of a type that holds text.
macro_rules! shows_text {
    ($name:ident) => {
        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

mod agent;
mod allowed_hosts;
mod approval;
mod async_result;
mod audit;
mod authenticated_tool;
mod automation;
mod automation_memory;
mod automation_quotas;
mod automation_run;
mod budget;
mod call;
mod claim_check;
mod control_url;
mod deployed_trigger;
mod do_not_call;
mod event;
mod event_wait;
mod execution;
mod hook;
mod ids;
mod intent;
mod knowledge;
mod limits;
mod organization;
mod own_key;
mod phone_number;
mod queued_execution;
mod read_back;
mod recipient_state;
mod reissue;
mod replay;
mod returning_transfer;
mod schedule;
mod service;
mod slug;
mod speech;
mod spent;
mod thread;
mod timestamp;
mod tool;
mod tool_attachment;
mod tool_effect;
mod tool_name;
mod tool_ref;
mod unowned;

pub use agent::Agent;
pub use allowed_hosts::{AllowedHosts, NotAHost};
pub use approval::{Approval, ApprovalEffect, ApprovalRequest, ApprovalRule, ApprovalStatus, arguments_hash};
pub use async_result::{AsyncResult, IfCallOver};
pub use audit::{AUDIT_DAYS, Act, Actor, AuditDetails, AuditEntry, AuditEntryId, Noun, Via, acting};
pub use authenticated_tool::AuthenticatedTool;
pub use automation::{Automation, AutomationStatus, AutomationVersion, CheckedTool};
pub use automation_memory::RememberedValue;
pub use automation_quotas::AutomationQuotas;
pub use automation_run::{
    ActionResult, ActionStatus, AutomationRun, CallOutcome, KeptAction, Phase, QueuedRun, RunAnswer, RunCall,
    RunCeilings, RunLimit, RunLimits, RunPlan, RunPrompt, RunReply, RunStatus, RunTrigger, StepKind, WholeRun,
};
pub use budget::{Budget, BudgetLimits, BudgetUse, BudgetWindow, OwnBudgets};
pub use call::{
    AnsweredCall, BackgroundResult, Call, CallDirection, CallId, CallStatus, CallVariable, EndedCall, FirstTime,
    PlacingCall, ResultToTell, StartedTool, StartingCall, ToldLater, Transfer,
};
pub use claim_check::{ClaimCheck, ClaimCheckStatus, UnprovenClaim};
pub use control_url::{ControlUrl, NotAControlUrl};
pub use deployed_trigger::DeployedTrigger;
pub use do_not_call::{DoNotCall, DoNotCallSource};
pub use event::{Event, EventStatus, MatchedRun, Unmatched, WaitingEvent};
pub use event_wait::{CameEvent, EventWait, RunPause};
pub use execution::{
    CallerHash, Execution, ExecutionOrigin, ExecutionStatus, ExecutionView, FailedTool, Fault, Undelivered,
};
pub use hook::{Hook, HookSecretRef, HookStatus, OwnHook, Scheme, SignatureAlgorithm, SignatureEncoding};
pub use ids::{
    AgentId, ApprovalId, AutomationId, DoNotCallId, EventId, ExecutionId, HookId, IntentId, KnowledgeBaseId,
    NotAUserId, OrganizationId, PhoneNumberId, ReplayId, RunId, SecretId, ThreadId, ToolId, UserId,
};
pub use intent::{Change, Intent, SecretOwner};
pub use knowledge::{EntryId, Field, FieldName, FieldType, FieldValue, KnowledgeBase, KnowledgeEntry};
pub use limits::{Limit, Limits};
pub use organization::{Contact, Member, Membership, Organization, OrganizationMember, Role};
pub use own_key::{KeyService, KeySettings, OwnKey, OwnKeys};
pub use phone_number::{E164, NotE164, PhoneNumber};
pub use queued_execution::{Queued, QueuedExecution};
pub use read_back::{Confirm, ConfirmedRequest, ReadBack, SecondRequest, SpeechTurn};
pub use recipient_state::RecipientState;
pub use reissue::{Reissue, ToolToReissue};
pub use replay::{
    QueuedReplay, Replay, ReplayFailure, ReplayFilter, ReplayPosition, ReplayProgress, ReplayStatus, ReplayWait,
    ReplayedAutomation, SkipReason, SkippedRuns,
};
pub use returning_transfer::{DialDestination, ReturningTransfer, RungDestination, TransferOutcome};
pub use schedule::{Occurrence, PollCursor, Schedule, Scheduled, Validators};
pub use service::{
    Binding, BodyFormat, ConnectionKind, CredentialField, KeyPlace, ListedServiceTool, PreviousTool, RequestAuth,
    RequestTemplate, Service, ServiceCapabilities, ServiceCredential, ServiceCredentials, ServiceId, ServiceTool,
    TriggerComponent, WebhookPayload, folded_name, service_tool_id,
};
pub use slug::Slug;
pub use speech::{Sentence, Speech, SpokenAtStart};
pub use spent::Spent;
pub use thread::{
    ChatRole, ChatRules, Delivered, FailedTurn, PendingCall, PlannedCall, RunningTurn, ShownValue, Thread,
    ThreadMessage, ThreadSummary, ToolResult, TurnCall, WaitsFor,
};
pub use timestamp::Timestamp;
pub use tool::{CALL_METADATA, NO_ARGUMENTS, Tool, ToolType};
pub use tool_attachment::ToolAttachment;
pub use tool_effect::ToolEffect;
pub use tool_name::ToolName;
pub use tool_ref::{OfferedTool, ToolRef};
pub use unowned::{Owned, Unowned};
