//! The parts that `#[derive(Parts)]` gives a function, found by their types.

use super::{ConsoleSettings, McpSettings, Platform, Result};
use crate::{
    accounts::Accounts,
    actions::ToolTokens,
    authoring_tools::AgentTools,
    automation::{AutomationReader, Deployment, Dispatch, EventReplays, FailurePause, RunQueue, RunStarter, Triggers},
    chat::Turns,
    clients::{Llm, Outbound, Pipedream, Queue, Scheduler, Secrets, Twilio, Vapi},
    connections::Connections,
    discovery::Discovery,
    http::{Access, TokenVerifier},
    lifecycle::{Attachments, HookRegistry, Lifecycle, References, SettleWaker, StoredSecrets},
    models::{QueuedRun, RunCeilings},
    receipts::Receipts,
    store::{
        Agents, Approvals, AuditLog, AutomationMemory, AutomationRuns, Automations, Budgets, Calls, DoNotCallList,
        Erasure, Events, Executions, Intents, KnowledgeBases, KnowledgeEntries, OrganizationMembers, Organizations,
        PhoneNumbers, Quotas, Schedules, Services, ToolAttachments, Tools,
    },
};

pub trait PlatformPart: Sized {
    fn of(platform: &Platform) -> Result<Self>;
}

macro_rules! parts {
    ($platform:ident: $($part:ty = $made:expr;)+) => {$(
        impl PlatformPart for $part {
            fn of($platform: &Platform) -> Result<Self> {
                $made
            }
        }
    )+};
}

pub(super) use parts;

impl Platform {
    pub(super) fn part<T: PlatformPart>(&self) -> Result<T> {
        T::of(self)
    }
}

macro_rules! of_database {
    ($($part:ident),+ $(,)?) => {
        parts! { platform: $($part = platform.database().map($part::new);)+ }
    };
}

parts! { platform:
    Access = Ok(Access::new(platform.database()?, platform.organizations()?.clone()));
    Accounts = platform.accounts();
    AgentTools = platform.agent_tools_for_clients();
    Attachments = Ok(Attachments::new(platform.database()?, platform.assistants()?));
    AutomationReader = platform.automation_reader();
    Budgets = platform.budgets().cloned();
    Connections = platform.connections().cloned();
    ConsoleSettings = Ok(ConsoleSettings::read(&platform.environment)?);
    Deployment = platform.deployment();
    Discovery = platform.discovery().cloned();
    Dispatch = platform.dispatch();
    EventReplays = platform.event_replays();
    FailurePause = platform.watch();
    HookRegistry = platform.hook_registry();
    Lifecycle = platform.lifecycle();
    Llm = platform.llm();
    McpSettings = Ok(platform.mcp_settings());
    Organizations = platform.organizations().cloned();
    Outbound = platform.outbound().cloned();
    Pipedream = Ok(platform.pipedream());
    Queue<QueuedRun> = platform.runs_queue();
    References = platform.references();
    RunCeilings = platform.run_ceilings();
    RunQueue = platform.run_queue();
    RunStarter = platform.run_starter();
    Scheduler = platform.scheduler();
    Secrets = Ok(platform.secrets().clone());
    SettleWaker = platform.settling();
    StoredSecrets = platform.stored_secrets();
    TokenVerifier = platform.token_verifier();
    ToolTokens = platform.tokens();
    Triggers = platform.triggers();
    Turns = platform.turns();
    Twilio = Ok(platform.twilio());
    Vapi = Ok(platform.vapi());
}

of_database! {
    Agents, Approvals, AuditLog, AutomationMemory, AutomationRuns, Automations, Calls, DoNotCallList, Erasure, Events, Executions,
    Intents, KnowledgeBases, KnowledgeEntries, OrganizationMembers, PhoneNumbers, Quotas, Receipts, Schedules, Services,
    ToolAttachments, Tools,
}
