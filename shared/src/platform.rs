//! Builds the parts of a function from the environment, each on first use. A function needs no configuration of parts
//! that it does not use.

mod call_events;
mod catalogues;
mod console;
mod parts;
mod start;

use std::{cell::OnceCell, iter, sync::Arc, time::Duration};

use aws_config::{
    Region, SdkConfig,
    environment::{EnvironmentVariableCredentialsProvider, EnvironmentVariableRegionProvider},
    meta::region::ProvideRegion,
};
use aws_sdk_dynamodb::config::{ProvideCredentials, SharedCredentialsProvider};

use crate::{
    accounts::Accounts,
    actions::{ActionClients, ToolTokens, query::Knowledge},
    authoring_tools::{AgentTools, AutomationTools, ToolCaller},
    automation::{
        AlertHook, Alerts, AutomationReader, Deployment, Dispatch, EventFilters, EventHooks, EventReplays,
        FailurePause, PipedreamTriggers, RunQueue, RunStarter, Triggers,
    },
    catalogue::Catalogue,
    chat::{TurnSettings, Turns},
    clients::{
        self, CallControl, Jwks, Llm, Outbound, Pipedream, Queue, QueueMessage, Scheduler, SchedulerTarget, Secrets,
        Twilio, Vapi,
    },
    config::{self, Environment},
    connections::{AccountListeners, Connections},
    discovery::Discovery,
    error,
    execution::Executor,
    http::TokenVerifier,
    idempotency::Idempotency,
    injection::read_feed,
    lifecycle::{Assistants, ExternalTools, HookRegistry, Lifecycle, References, SettleWaker, StoredSecrets},
    models::{BudgetLimits, Queued, QueuedRun, RunCeilings},
    planner::TurnLimits,
    store::{
        Agents, AutomationRuns, Automations, Budgets, Calls, Database, DeployedTriggers, DoNotCallList, Events,
        Executions, Hooks, Intents, KnowledgeBases, KnowledgeEntries, OrganizationMembers, Organizations, PhoneNumbers,
        Quotas, Replays, Schedules, Services, Threads,
    },
    telemetry,
};

pub use console::ConsoleSettings;
pub use declare::Parts;
pub use parts::PlatformPart;
pub use start::start;

/// A turn may be repeated long after an effect, and must still find it.
const EFFECTS_OF_TURNS_COUNT_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// Why a function could not be built; names the variable at fault.
pub type Result<T> = std::result::Result<T, lambda_http::Error>;

/// The shared parts of a function.
pub struct Platform {
    environment: Environment,
    aws: SdkConfig,
    http: reqwest::Client,
    database: OnceCell<Database>,
    organizations: OnceCell<Organizations>,
    budgets: OnceCell<Budgets>,
    secrets: OnceCell<Secrets>,
    outbound: OnceCell<Outbound>,
    pipedream: OnceCell<Pipedream>,
    connections: OnceCell<Connections>,
    discovery: OnceCell<Discovery>,
}

impl Platform {
    /// The platform of this process. Starts logging (`AWS_LAMBDA_LOG_LEVEL`, INFO unless set; metrics go to the
    /// namespace `METRICS_NAMESPACE`). Credentials and region are Lambda's: `AWS_ACCESS_KEY_ID` and its like,
    /// `AWS_REGION`.
    pub async fn from_env() -> Result<Self> {
        let environment = Environment::of_process();
        let namespace = environment.optional("METRICS_NAMESPACE").unwrap_or_else(|| telemetry::NAMESPACE.to_owned());
        telemetry::init(environment.parsed("AWS_LAMBDA_LOG_LEVEL", tracing::Level::INFO)?, namespace);
        let region = EnvironmentVariableRegionProvider::new().region().await;
        let region = region.ok_or(config::Error::Missing("AWS_REGION"))?;
        let credentials = EnvironmentVariableCredentialsProvider::new().provide_credentials().await;
        let credentials = credentials.map_err(|error| config::Error::Unusable {
            name: "AWS_ACCESS_KEY_ID",
            problem: format!("with AWS_SECRET_ACCESS_KEY it must hold credentials: {}", error::chain(&error)),
        })?;
        Self::new(environment, region, SharedCredentialsProvider::new(credentials))
    }

    /// `AWS_ENDPOINT_URL` is a local AWS; absent on AWS itself.
    pub fn new(environment: Environment, region: Region, credentials: SharedCredentialsProvider) -> Result<Self> {
        let http = clients::http_client()?;
        let aws = clients::sdk_config(http.clone(), region, credentials, environment.optional("AWS_ENDPOINT_URL"));
        Ok(Self {
            environment,
            aws,
            http,
            database: OnceCell::new(),
            organizations: OnceCell::new(),
            budgets: OnceCell::new(),
            secrets: OnceCell::new(),
            outbound: OnceCell::new(),
            pipedream: OnceCell::new(),
            connections: OnceCell::new(),
            discovery: OnceCell::new(),
        })
    }

    pub fn http(&self) -> &reqwest::Client {
        &self.http
    }

    /// The tables. Their names begin with `TABLE_PREFIX`: `switchboard-` makes `switchboard-tools`.
    pub fn database(&self) -> Result<&Database> {
        once(&self.database, || Ok(Database::connect(&self.aws, self.environment.required("TABLE_PREFIX")?)))
    }

    /// Includes this process's cache.
    fn organizations(&self) -> Result<&Organizations> {
        once(&self.organizations, || Ok(Organizations::new(self.database()?)))
    }

    /// The secrets; their shapes are in [`crate::clients::secrets`].
    pub fn secrets(&self) -> &Secrets {
        self.secrets.get_or_init(|| Secrets::new(&self.aws))
    }

    /// The client for addresses that others choose. Private `OUTBOUND_OPEN_HOSTS` are allowed, also by plain http;
    /// empty on AWS.
    pub fn outbound(&self) -> Result<&Outbound> {
        once(&self.outbound, || Ok(Outbound::new(self.environment.hosts("OUTBOUND_OPEN_HOSTS"))?))
    }

    /// Verifies tokens where no authorizer does: issuer `JWT_ISSUER`, one of `JWT_AUDIENCE` (separated by commas),
    /// keys at `JWKS_URL` or at the address in the issuer's configuration.
    fn token_verifier(&self) -> Result<TokenVerifier> {
        let issuer = self.environment.required("JWT_ISSUER")?;
        let audiences = self.environment.required("JWT_AUDIENCE")?;
        let audiences = audiences.split(',').map(|audience| audience.trim().to_owned()).collect();
        let keys = Jwks::new(&issuer, self.environment.optional("JWKS_URL"))?;
        Ok(TokenVerifier::new(issuer, audiences, keys))
    }

    pub fn vapi(&self) -> Vapi {
        Vapi::new(self.http.clone(), self.environment.base_url("VAPI_URL", "https://api.vapi.ai"))
    }

    pub fn twilio(&self) -> Twilio {
        Twilio::new(self.http.clone(), self.environment.base_url("TWILIO_URL", "https://api.twilio.com"))
    }

    /// Shared, because it caches its token.
    pub fn pipedream(&self) -> Pipedream {
        let new = || {
            Pipedream::new(self.http.clone(), self.environment.base_url("PIPEDREAM_URL", "https://api.pipedream.com"))
        };
        self.pipedream.get_or_init(new).clone()
    }

    /// The secret of the platform's Pipedream project (`PIPEDREAM_SECRET`).
    pub fn pipedream_secret(&self) -> Result<String> {
        Ok(self.environment.required("PIPEDREAM_SECRET")?)
    }

    fn llm(&self) -> Result<Llm> {
        Ok(Llm::new(self.http.clone(), self.outbound()?.clone()))
    }

    /// The platform's account at VAPI (`VAPI_SECRET`) and the organizations' own, whose secret names begin with
    /// `ORGANIZATION_SECRET_PREFIX`.
    fn accounts(&self) -> Result<Accounts> {
        let vapi = self.environment.required("VAPI_SECRET")?;
        let prefix = self.organization_secret_prefix()?;
        Ok(Accounts::new(self.organizations()?.clone(), self.secrets().clone(), vapi, prefix))
    }

    fn organization_secret_prefix(&self) -> Result<String> {
        Ok(self.environment.required("ORGANIZATION_SECRET_PREFIX")?)
    }

    /// As [`Platform::accounts`], with the platform's LLM account (`LLM_SECRET`) and the default model (`LLM_MODEL`,
    /// `openrouter/auto`).
    pub fn accounts_with_llm(&self) -> Result<Accounts> {
        Ok(self.accounts()?.with_llm(self.environment.required("LLM_SECRET")?, self.llm_model()))
    }

    /// The model of accounts that name none (`LLM_MODEL`).
    fn llm_model(&self) -> String {
        self.environment.optional("LLM_MODEL").unwrap_or_else(|| "openrouter/auto".to_owned())
    }

    /// Signs tools' tokens (`TOOL_TOKEN_SECRET`).
    pub fn tokens(&self) -> Result<ToolTokens> {
        Ok(ToolTokens::new(self.secrets().clone(), self.environment.required("TOOL_TOKEN_SECRET")?))
    }

    /// The base address at which VAPI and Twilio reach this API (`PUBLIC_URL`), without a trailing slash.
    pub fn public_url(&self) -> Result<String> {
        Ok(self.environment.required("PUBLIC_URL")?.trim_end_matches('/').to_owned())
    }

    fn assistants(&self) -> Result<Assistants> {
        Ok(Assistants { vapi: self.vapi(), accounts: self.accounts()? })
    }

    fn lifecycle(&self) -> Result<Lifecycle> {
        self.lifecycle_with(Some(self.tokens()?))
    }

    /// Deletes tools only, and so needs no token.
    pub fn deletion(&self) -> Result<Lifecycle> {
        self.lifecycle_with(None)
    }

    fn lifecycle_with(&self, tokens: Option<ToolTokens>) -> Result<Lifecycle> {
        let external = ExternalTools::new(self.vapi(), self.accounts()?, tokens, self.public_url()?);
        Ok(Lifecycle::new(self.database()?, external, self.assistants()?))
    }

    pub fn references(&self) -> Result<References> {
        let pipedream = (self.pipedream(), self.pipedream_secret()?);
        Ok(References::new(self.database()?, pipedream, self.secrets().clone(), self.outbound()?.clone()))
    }

    fn stored_secrets(&self) -> Result<StoredSecrets> {
        Ok(StoredSecrets::new(self.database()?, self.secrets().clone()))
    }

    /// Secret names begin with `ORGANIZATION_SECRET_PREFIX`.
    fn hook_registry(&self) -> Result<HookRegistry> {
        let (hooks, prefix) = (Hooks::new(self.database()?), self.organization_secret_prefix()?);
        Ok(HookRegistry { hooks, stored: self.stored_secrets()?, secrets: self.secrets().clone(), prefix })
    }

    fn event_filters(&self) -> Result<EventFilters> {
        Ok(EventFilters::new(Automations::new(self.database()?), OrganizationMembers::new(self.database()?)))
    }

    /// The keys of Google's tokens (`GOOGLE_KEYS_URL`, Google's own).
    pub fn google_keys(&self) -> Result<Jwks> {
        let url = self.environment.base_url("GOOGLE_KEYS_URL", "https://www.googleapis.com/oauth2/v3/certs");
        Ok(Jwks::new("https://accounts.google.com", Some(url))?)
    }

    /// The prefix of the phone numbers' Twilio secrets (`TWILIO_SECRET_PREFIX`); the phone number's id follows.
    pub fn twilio_secret_prefix(&self) -> Result<String> {
        Ok(self.environment.required("TWILIO_SECRET_PREFIX")?)
    }

    /// The queue of `async` tools for `run-tool` (`EXECUTIONS_QUEUE_URL`).
    pub fn executions_queue(&self) -> Result<Queue<Queued>> {
        Ok(Queue::new(&self.aws, self.environment.required("EXECUTIONS_QUEUE_URL")?))
    }

    /// The queue of calls' starts for `run-tool` (`START_TOOLS_QUEUE_URL`; `EXECUTIONS_QUEUE_URL` while an upgrade lacks it).
    pub fn start_tools_queue(&self) -> Result<Queue<Queued>> {
        let executions = self.environment.required("EXECUTIONS_QUEUE_URL")?;
        Ok(Queue::new(&self.aws, self.environment.optional("START_TOOLS_QUEUE_URL").unwrap_or(executions)))
    }

    /// The queue of automation runs for `run-loop` (`RUNS_QUEUE_URL`).
    fn runs_queue(&self) -> Result<Queue<QueuedRun>> {
        Ok(Queue::new(&self.aws, self.environment.required("RUNS_QUEUE_URL")?))
    }

    fn run_queue(&self) -> Result<RunQueue> {
        Ok(RunQueue { runs: AutomationRuns::new(self.database()?), queue: self.runs_queue()? })
    }

    pub fn run_starter(&self) -> Result<RunStarter> {
        let (members, quotas) = (OrganizationMembers::new(self.database()?), Quotas::new(self.database()?));
        Ok(RunStarter { queue: self.run_queue()?, members, quotas, history: self.history()? })
    }

    /// Watches the ends of runs. With `ALERT_HOOK_URL` owners hear of a pause there, signed with the key in
    /// `ALERT_SECRET`.
    fn watch(&self) -> Result<FailurePause> {
        let hook = match self.environment.optional("ALERT_HOOK_URL") {
            Some(url) => Some(AlertHook { url, secret: self.environment.required("ALERT_SECRET")? }),
            None => None,
        };
        let alerts = Alerts { outbound: self.outbound()?.clone(), secrets: self.secrets().clone(), hook };
        let database = self.database()?;
        let intents = Intents::new(database);
        Ok(FailurePause { automations: Automations::new(database), alerts, intents, settling: self.settling()? })
    }

    /// The queue that wakes `settle` before its schedule (`SETTLE_QUEUE_URL`).
    fn settling(&self) -> Result<SettleWaker> {
        Ok(SettleWaker::new(Queue::new(&self.aws, self.environment.required("SETTLE_QUEUE_URL")?)))
    }

    /// The queue of `schedule` (`SCHEDULED_QUEUE_URL`).
    fn scheduled_queue<T: QueueMessage>(&self) -> Result<Queue<T>> {
        Ok(Queue::new(&self.aws, self.environment.required("SCHEDULED_QUEUE_URL")?))
    }

    /// Slow filters are left to `schedule`.
    fn dispatch(&self) -> Result<Dispatch> {
        let waiting = self.scheduled_queue()?;
        let events = Events::new(self.database()?);
        Ok(Dispatch { events, filters: self.event_filters()?, starter: self.run_starter()?, waiting })
    }

    fn event_replays(&self) -> Result<EventReplays> {
        let queue = self.scheduled_queue()?;
        let database = self.database()?;
        let (replays, events, hooks) = (Replays::new(database), Events::new(database), Hooks::new(database));
        Ok(EventReplays::new(replays, events, hooks, self.event_filters()?, self.run_starter()?, queue))
    }

    /// `EventBridge` Scheduler: schedules in the group `SCHEDULE_GROUP` that send as `SCHEDULE_ROLE_ARN` to
    /// `SCHEDULED_QUEUE_ARN`, undeliverable ones to `SCHEDULED_DEAD_LETTERS_ARN`.
    fn scheduler(&self) -> Result<Scheduler> {
        let target = SchedulerTarget {
            group: self.environment.required("SCHEDULE_GROUP")?,
            role_arn: self.environment.required("SCHEDULE_ROLE_ARN")?,
            queue_arn: self.environment.required("SCHEDULED_QUEUE_ARN")?,
            dead_letters_arn: self.environment.required("SCHEDULED_DEAD_LETTERS_ARN")?,
        };
        Ok(Scheduler::new(&self.aws, target))
    }

    pub fn triggers(&self) -> Result<Triggers> {
        let database = self.database()?;
        Ok(Triggers {
            automations: Automations::new(database),
            schedules: Schedules::new(database),
            intents: Intents::new(database),
            scheduler: self.scheduler()?,
            occurrences: self.scheduled_queue()?,
            pipedream: PipedreamTriggers {
                rows: DeployedTriggers::new(database),
                hooks: self.hook_registry()?,
                services: Services::new(database),
                connections: self.connections()?.clone(),
                pipedream: self.pipedream(),
                secrets: self.secrets().clone(),
                pipedream_secret: self.pipedream_secret()?,
                public_url: self.public_url()?,
            },
            settling: self.settling()?,
        })
    }

    /// How long the start of a call waits for its tools before the model gets their results (`ON_CALL_START_SECONDS`,
    /// 3).
    pub fn on_call_start(&self) -> Result<Duration> {
        Ok(Duration::from_secs(self.environment.parsed("ON_CALL_START_SECONDS", 3)?))
    }

    /// The organizations' use of their budgets. Defaults: `RUNS_PER_HOUR` (100), `EXECUTIONS_PER_HOUR` (3000), and for
    /// runs `PLATFORM_COST_PER_MONTH` (50) and `OWN_COST_PER_MONTH` (1000), in the credits of the LLM gateway.
    pub fn budgets(&self) -> Result<&Budgets> {
        once(&self.budgets, || self.new_budgets())
    }

    fn new_budgets(&self) -> Result<Budgets> {
        let limits = BudgetLimits {
            runs_per_hour: self.environment.parsed("RUNS_PER_HOUR", 100)?,
            executions_per_hour: self.environment.parsed("EXECUTIONS_PER_HOUR", 3_000)?,
            platform_cost_per_month: self.environment.parsed("PLATFORM_COST_PER_MONTH", 50.0)?,
            own_cost_per_month: self.environment.parsed("OWN_COST_PER_MONTH", 1_000.0)?,
        };
        Ok(Budgets::new(self.database()?, self.organizations()?.clone(), limits))
    }

    /// The ceiling of one run on the platform's LLM key (`PLATFORM_RUN_COST`, 5, in the gateway's credits;
    /// `PLATFORM_RUN_SECONDS`, 3600), and the models that it may name: `LLM_MODEL`, and those of `PLATFORM_MODELS`
    /// (separated by commas; none).
    fn run_ceilings(&self) -> Result<RunCeilings> {
        Ok(RunCeilings {
            models: iter::once(self.llm_model()).chain(self.environment.list("PLATFORM_MODELS")).collect(),
            cost: self.environment.parsed("PLATFORM_RUN_COST", 5.0)?,
            seconds: self.environment.parsed("PLATFORM_RUN_SECONDS", 3_600)?,
        })
    }

    /// How long calls are kept (`CALL_DAYS`, 90).
    pub fn calls_kept(&self) -> Result<Duration> {
        Ok(Duration::from_secs(self.environment.parsed::<u64>("CALL_DAYS", 90)? * 24 * 60 * 60))
    }

    /// How long the history is kept (`HISTORY_DAYS`, 30).
    pub fn history(&self) -> Result<Duration> {
        Ok(Duration::from_secs(self.environment.parsed::<u64>("HISTORY_DAYS", 30)? * 24 * 60 * 60))
    }

    /// Answers a repeated effect of a call from the record for `IDEMPOTENCY_WINDOW_SECONDS` (120).
    pub fn idempotency(&self) -> Result<Idempotency> {
        let window = self.environment.parsed("IDEMPOTENCY_WINDOW_SECONDS", 120)?;
        Ok(Idempotency::new(self.database()?, Duration::from_secs(window)))
    }

    /// The tools of agents that build automations. With `MCP_CALL_TOOL` (false) agents may also call every tool that
    /// they find.
    fn agent_tools_for_clients(&self) -> Result<AgentTools> {
        let caller = ToolCaller { catalogue: self.catalogue()?, executor: self.executor(self.idempotency()?)? };
        let wanted = self.environment.optional("MCP_CALL_TOOL").is_some_and(|wanted| wanted == "true");
        let automations = AutomationTools {
            reader: self.automation_reader()?,
            starter: self.run_starter()?,
            runs: AutomationRuns::new(self.database()?),
        };
        self.agent_tools(Some(automations), wanted.then_some(caller))
    }

    fn agent_tools(&self, automations: Option<AutomationTools>, caller: Option<ToolCaller>) -> Result<AgentTools> {
        Ok(AgentTools {
            discovery: self.discovery()?.clone(),
            deployment: self.deployment()?,
            members: OrganizationMembers::new(self.database()?),
            automations,
            caller,
        })
    }

    /// Variables and defaults: `PLANNER_FUNCTION_CALLING` (false), `TURN_COST` (1, on the platform's LLM key, in the gateway's
    /// credits), `TURN_SECONDS` (120), `THREAD_DAYS` (90).
    fn turns(&self) -> Result<Turns> {
        let database = self.database()?;
        let days: u64 = self.environment.parsed("THREAD_DAYS", 90)?;
        let function_calling =
            self.environment.optional("PLANNER_FUNCTION_CALLING").is_some_and(|wanted| wanted == "true");
        Ok(Turns {
            threads: Threads::new(database),
            catalogue: self.catalogue()?,
            discovery: self.discovery()?.clone(),
            executor: self.executor(Idempotency::new(database, EFFECTS_OF_TURNS_COUNT_FOR))?,
            accounts: self.accounts_with_llm()?,
            llm: self.llm()?,
            budgets: self.budgets()?.clone(),
            settings: TurnSettings {
                function_calling,
                limits: TurnLimits { cost: self.environment.parsed("TURN_COST", 1.0)?, ..TurnLimits::default() },
                turn_within: Duration::from_secs(self.environment.parsed("TURN_SECONDS", 120)?),
                threads_kept: Duration::from_secs(days * 24 * 60 * 60),
            },
        })
    }

    /// The address of the streamed chat, if not its REST API's own endpoint (`STREAM_PUBLIC_URL`); without a trailing
    /// slash.
    pub fn stream_public_url(&self) -> Option<String> {
        self.environment.optional("STREAM_PUBLIC_URL").map(|url| url.trim_end_matches('/').to_owned())
    }

    /// The scopes that the MCP server requires of a token (`MCP_SCOPES`, separated by blanks; none), and the other
    /// origins whose pages may use it (`MCP_ORIGINS`, separated by commas; none).
    fn mcp_settings(&self) -> McpSettings {
        let scopes = self.environment.optional("MCP_SCOPES");
        McpSettings { scopes, origins: self.environment.list("MCP_ORIGINS") }
    }

    /// The organizations' connections to services. Shared, because it caches Pipedream's answers.
    fn connections(&self) -> Result<&Connections> {
        once(&self.connections, || {
            Ok(Connections {
                organizations: self.organizations()?.clone(),
                phone_numbers: PhoneNumbers::new(self.database()?),
                stored: self.stored_secrets()?,
                secret_prefix: self.organization_secret_prefix()?,
                secrets: self.secrets().clone(),
                pipedream: self.pipedream(),
                pipedream_secret: self.pipedream_secret()?,
                listeners: AccountListeners {
                    hooks: Hooks::new(self.database()?),
                    intents: Intents::new(self.database()?),
                },
                seen: Arc::default(),
                forgotten: Arc::default(),
            })
        })
    }

    fn deployment(&self) -> Result<Deployment> {
        Ok(Deployment {
            automations: Automations::new(self.database()?),
            // It asks polled sources.
            catalogue: self.catalogue_with(read_feed(self.outbound()?.clone()))?,
            executor: self.executor(self.idempotency()?)?,
            organizations: self.organizations()?.clone(),
            event_hooks: self.event_hooks()?,
            events: Events::new(self.database()?),
            members: OrganizationMembers::new(self.database()?),
            ceilings: self.run_ceilings()?,
            schemas: Arc::default(),
        })
    }

    fn event_hooks(&self) -> Result<EventHooks> {
        Ok(EventHooks { hooks: Hooks::new(self.database()?), services: Services::new(self.database()?) })
    }

    fn automation_reader(&self) -> Result<AutomationReader> {
        Ok(AutomationReader {
            automations: Automations::new(self.database()?),
            schedules: Schedules::new(self.database()?),
            event_hooks: self.event_hooks()?,
        })
    }

    /// Finds tools for agents. Shared, because it caches the services' tools.
    fn discovery(&self) -> Result<&Discovery> {
        once(&self.discovery, || {
            let Catalogue { built_in, tools, services, connections } = self.catalogue()?;
            Ok(Discovery::new(services, tools, built_in, connections))
        })
    }

    /// Executes tools. Live calls may be controlled at VAPI's hosts, and at `CONTROL_HOSTS` also by plain http; empty
    /// on AWS.
    pub fn executor(&self, idempotency: Idempotency) -> Result<Executor> {
        let database = self.database()?;
        Ok(Executor {
            executions: Executions::new(database),
            idempotency,
            quotas: Quotas::new(database),
            budgets: self.budgets()?.clone(),
            services: ActionClients {
                agents: Agents::new(database),
                phone_numbers: PhoneNumbers::new(database),
                calls: Calls::new(database),
                public_url: self.public_url()?,
                secrets: self.secrets().clone(),
                twilio: self.twilio(),
                pipedream: self.pipedream(),
                pipedream_secret: self.pipedream_secret()?,
                vapi: self.vapi(),
                accounts: self.accounts()?,
                call_control: CallControl::new(self.http.clone(), self.environment.hosts("CONTROL_HOSTS")),
                outbound: self.outbound()?.clone(),
                knowledge: Knowledge::new(KnowledgeBases::new(database), KnowledgeEntries::new(database)),
                calls_kept: self.calls_kept()?,
                quotas: Quotas::new(database),
                do_not_call: DoNotCallList::new(database),
            },
            history: self.history()?,
            failed_tools: None,
            late: None,
        })
    }
}

#[derive(Debug, Clone)]
pub struct McpSettings {
    pub scopes: Option<String>,
    /// `https://app.example`, or `*` for any.
    pub origins: Vec<String>,
}

fn once<T>(part: &OnceCell<T>, make: impl FnOnce() -> Result<T>) -> Result<&T> {
    if let Some(made) = part.get() {
        return Ok(made);
    }
    let made = make()?;
    Ok(part.get_or_init(|| made))
}
