//! SQS: runs one tool that was put on the queue.

use run_tool::{Deps, handle};
use shared::{
    clients::{self, Outbound, Pipedream, Secrets, Twilio},
    config,
    execution::Executor,
    idempotency::Idempotency,
    queue,
    store::{Database, Executions, KnowledgeBases, KnowledgeEntries, PhoneNumbers, Quotas, Tools},
    telemetry,
    tools::{Services, query::Knowledge},
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    telemetry::init()?;
    let aws = config::Aws::from_env()?;
    let database = Database::connect(&aws, config::table_prefix()?);
    let http_client = clients::http_client()?;
    let deps = Deps {
        tools: Tools::new(&database),
        executor: Executor {
            executions: Executions::new(&database),
            idempotency: Idempotency::new(&database, config::idempotency_window()?),
            quotas: Quotas::new(&database),
            services: Services {
                phone_numbers: PhoneNumbers::new(&database),
                secrets: Secrets::new(&aws),
                twilio: Twilio::new(http_client.clone(), config::twilio_url()),
                pipedream: Pipedream::new(http_client, config::pipedream_url()),
                pipedream_secret: config::pipedream_secret()?,
                outbound: Outbound::new(config::outbound_open_hosts())?,
                knowledge: Knowledge::new(KnowledgeBases::new(&database), KnowledgeEntries::new(&database)),
            },
            history: config::history()?,
        },
    };
    queue::serve("run-tool", deps, handle).await
}
