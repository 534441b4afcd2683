//! POST /api/tools/{id}/execute: VAPI calls a tool in the middle of a conversation.

use execute::{Deps, handle};
use shared::{
    accounts::Accounts,
    clients::{self, CallControl, Outbound, Pipedream, Queue, Secrets, Twilio, Vapi},
    config,
    execution::Executor,
    http,
    idempotency::Idempotency,
    store::{Agents, Calls, Database, Executions, KnowledgeBases, KnowledgeEntries, PhoneNumbers, Quotas, Tools},
    telemetry,
    tools::{Services, ToolTokens, query::Knowledge},
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
    let accounts =
        Accounts::new(&database, secrets.clone(), config::vapi_secret()?, config::organization_secret_prefix()?);
    let services = Services {
        agents: Agents::new(&database),
        phone_numbers: PhoneNumbers::new(&database),
        secrets,
        twilio: Twilio::new(http_client.clone(), config::twilio_url()),
        pipedream: Pipedream::new(http_client.clone(), config::pipedream_url()),
        pipedream_secret: config::pipedream_secret()?,
        vapi: Vapi::new(http_client.clone(), config::vapi_url()),
        accounts: accounts.clone(),
        call_control: CallControl::new(http_client, config::control_hosts()),
        outbound: Outbound::new(config::outbound_open_hosts())?,
        knowledge: Knowledge::new(KnowledgeBases::new(&database), KnowledgeEntries::new(&database)),
    };
    let deps = Deps {
        tools: Tools::new(&database),
        calls: Calls::new(&database),
        tokens,
        accounts,
        executor: Executor {
            executions: Executions::new(&database),
            idempotency: Idempotency::new(&database, config::idempotency_window()?),
            quotas: Quotas::new(&database),
            services,
            history: config::history()?,
        },
        runs: Queue::new(&aws, config::runs_queue_url()?),
    };
    http::serve("execute", deps, handle).await
}
