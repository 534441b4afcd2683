//! SQS: carries a run of an automation on.

use std::time::Duration;

use run_loop::{Deps, handle, step_needs};
use shared::{
    accounts::Accounts,
    clients::{self, CallControl, Llm, Outbound, Pipedream, Queue, Secrets, Twilio, Vapi},
    config,
    execution::Executor,
    idempotency::Idempotency,
    injection, queue,
    store::{
        Agents, AutomationRuns, Database, Executions, KnowledgeBases, KnowledgeEntries, PhoneNumbers, Quotas, Tools,
    },
    telemetry,
    tools::{Services, query::Knowledge},
};

/// A run may be carried on by somebody else long after an effect, and must still find it: longer than any run may take.
const EFFECTS_COUNT_FOR: Duration = Duration::from_secs(24 * 60 * 60);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    telemetry::init()?;
    let aws = config::Aws::from_env()?;
    let database = Database::connect(&aws, config::table_prefix()?);
    let http_client = clients::http_client()?;
    let outbound = Outbound::new(config::outbound_open_hosts())?;
    let secrets = Secrets::new(&aws);
    let accounts =
        Accounts::new(&database, secrets.clone(), config::vapi_secret()?, config::organization_secret_prefix()?)
            .with_llm(config::llm_secret()?, config::llm_model());
    let deps = Deps {
        runs: AutomationRuns::new(&database),
        queue: Queue::new(&aws, config::automation_runs_queue_url()?),
        tools: Tools::new(&database),
        registry: injection::built_in_tools(&outbound)?,
        llm: Llm::new(http_client.clone(), outbound.clone()),
        executor: Executor {
            executions: Executions::new(&database),
            idempotency: Idempotency::new(&database, EFFECTS_COUNT_FOR),
            quotas: Quotas::new(&database),
            services: Services {
                agents: Agents::new(&database),
                phone_numbers: PhoneNumbers::new(&database),
                secrets,
                twilio: Twilio::new(http_client.clone(), config::twilio_url()),
                pipedream: Pipedream::new(http_client.clone(), config::pipedream_url()),
                pipedream_secret: config::pipedream_secret()?,
                vapi: Vapi::new(http_client.clone(), config::vapi_url()),
                accounts: accounts.clone(),
                call_control: CallControl::new(http_client, config::control_hosts()),
                outbound,
                knowledge: Knowledge::new(KnowledgeBases::new(&database), KnowledgeEntries::new(&database)),
            },
            history: config::history()?,
        },
        accounts,
        step_needs: step_needs(),
    };
    queue::serve("run-loop", deps, handle).await
}
