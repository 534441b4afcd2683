//! SQS: runs one tool that was put on the queue.

use run_tool::{Deps, handle};
use shared::{
    accounts::Accounts,
    clients::{self, CallControl, Outbound, Pipedream, Secrets, Twilio, Vapi},
    config,
    execution::Executor,
    idempotency::Idempotency,
    queue,
    store::{Agents, Calls, Database, Executions, KnowledgeBases, KnowledgeEntries, PhoneNumbers, Quotas, Tools},
    telemetry,
    tools::{Services, query::Knowledge},
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    telemetry::init()?;
    let aws = config::Aws::from_env()?;
    let database = Database::connect(&aws, config::table_prefix()?);
    let http_client = clients::http_client()?;
    let secrets = Secrets::new(&aws);
    let accounts =
        Accounts::new(&database, secrets.clone(), config::vapi_secret()?, config::organization_secret_prefix()?);
    let deps = Deps {
        tools: Tools::new(&database),
        calls: Calls::new(&database),
        executor: Executor {
            executions: Executions::new(&database),
            idempotency: Idempotency::new(&database, config::idempotency_window()?),
            quotas: Quotas::new(&database),
            services: Services {
                agents: Agents::new(&database),
                phone_numbers: PhoneNumbers::new(&database),
                secrets,
                twilio: Twilio::new(http_client.clone(), config::twilio_url()),
                pipedream: Pipedream::new(http_client.clone(), config::pipedream_url()),
                pipedream_secret: config::pipedream_secret()?,
                vapi: Vapi::new(http_client.clone(), config::vapi_url()),
                accounts,
                call_control: CallControl::new(http_client, config::control_hosts()),
                outbound: Outbound::new(config::outbound_open_hosts())?,
                knowledge: Knowledge::new(KnowledgeBases::new(&database), KnowledgeEntries::new(&database)),
            },
            history: config::history()?,
        },
    };
    queue::serve("run-tool", deps, handle).await
}
