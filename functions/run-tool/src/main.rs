//! SQS: runs one tool that was put on the queue.

use run_tool::{Deps, handle};
use shared::{
    accounts::Accounts,
    clients::{self, Outbound, Secrets},
    config,
    execution::Executor,
    queue,
    store::{Calls, Database, Organizations, Tools},
    telemetry,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    telemetry::init()?;
    let aws = config::Aws::from_env()?;
    let database = Database::connect(&aws, config::table_prefix()?);
    let http_client = clients::http_client()?;
    let secrets = Secrets::new(&aws);
    let accounts = Accounts::new(
        Organizations::new(&database),
        secrets.clone(),
        config::vapi_secret()?,
        config::organization_secret_prefix()?,
    );
    let deps = Deps {
        tools: Tools::new(&database),
        calls: Calls::new(&database),
        executor: Executor::from_env(
            &database,
            http_client,
            secrets,
            accounts,
            Outbound::new(config::outbound_open_hosts())?,
            config::idempotency_window()?,
        )?,
    };
    queue::serve("run-tool", deps, handle).await
}
