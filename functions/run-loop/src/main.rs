//! SQS: carries a run of an automation on.

use std::time::Duration;

use run_loop::{Deps, handle, step_needs};
use shared::{
    accounts::Accounts,
    clients::{self, Llm, Outbound, Queue, Secrets},
    config,
    execution::Executor,
    injection, queue,
    store::{AutomationRuns, Database, Organizations, Tools},
    telemetry,
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
    let accounts = Accounts::new(
        Organizations::new(&database),
        secrets.clone(),
        config::vapi_secret()?,
        config::organization_secret_prefix()?,
    )
    .with_llm(config::llm_secret()?, config::llm_model());
    let deps = Deps {
        runs: AutomationRuns::new(&database),
        queue: Queue::new(&aws, config::automation_runs_queue_url()?),
        tools: Tools::new(&database),
        registry: injection::built_in_tools(&outbound)?,
        llm: Llm::new(http_client.clone(), outbound.clone()),
        executor: Executor::from_env(&database, http_client, secrets, accounts.clone(), outbound, EFFECTS_COUNT_FOR)?,
        accounts,
        step_needs: step_needs(),
    };
    queue::serve("run-loop", deps, handle).await
}
