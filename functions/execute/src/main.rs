//! POST /api/tools/{id}/execute: VAPI calls a tool in the middle of a conversation.

use execute::{Deps, handle};
use shared::{
    accounts::Accounts,
    clients::{self, Outbound, Queue, Secrets},
    config,
    execution::Executor,
    http,
    store::{Calls, Database, Organizations, Tools},
    telemetry,
    tools::ToolTokens,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    telemetry::init()?;
    let aws = config::Aws::from_env()?;
    let database = Database::connect(&aws, config::table_prefix()?);
    let secrets = Secrets::new(&aws);
    let http_client = clients::http_client()?;
    let tokens = ToolTokens::new(secrets.clone(), config::tool_token_secret()?);
    // Beside the start, which Lambda does not throttle, instead of in the first call.
    if let Err(error) = tokens.warm().await {
        tracing::warn!("the tool token secret could not be read ahead: {}", shared::error::chain(&error));
    }
    let accounts = Accounts::new(
        Organizations::new(&database),
        secrets.clone(),
        config::vapi_secret()?,
        config::organization_secret_prefix()?,
    );
    let deps = Deps {
        tools: Tools::new(&database),
        calls: Calls::new(&database),
        tokens,
        executor: Executor::from_env(
            &database,
            http_client,
            secrets,
            accounts.clone(),
            Outbound::new(config::outbound_open_hosts())?,
            config::idempotency_window()?,
        )?,
        accounts,
        runs: Queue::new(&aws, config::runs_queue_url()?),
    };
    http::serve("execute", deps, handle).await
}
