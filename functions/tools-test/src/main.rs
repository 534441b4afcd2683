//! POST /api/{slug}/tools/test: tries a tool out.

use shared::{
    accounts::Accounts,
    clients::{self, CallControl, Outbound, Pipedream, Secrets, Twilio, Vapi},
    config,
    execution::Executor,
    http::{self, Access},
    idempotency::Idempotency,
    lifecycle::References,
    store::{Agents, Database, Executions, KnowledgeBases, KnowledgeEntries, PhoneNumbers, Quotas, Tools},
    telemetry,
    tools::{Services, query::Knowledge},
};
use tools_test::{Deps, handle};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    telemetry::init()?;
    let aws = config::Aws::from_env()?;
    let database = Database::connect(&aws, config::table_prefix()?);
    let secrets = Secrets::new(&aws);
    let http_client = clients::http_client()?;
    let pipedream = Pipedream::new(http_client.clone(), config::pipedream_url());
    let pipedream_secret = config::pipedream_secret()?;
    let accounts =
        Accounts::new(&database, secrets.clone(), config::vapi_secret()?, config::organization_secret_prefix()?);
    let deps = Deps {
        access: Access::new(&database),
        references: References {
            phone_numbers: PhoneNumbers::new(&database),
            knowledge_bases: KnowledgeBases::new(&database),
            pipedream: pipedream.clone(),
            pipedream_secret: pipedream_secret.clone(),
            secrets: secrets.clone(),
        },
        tools: Tools::new(&database),
        executor: Executor {
            executions: Executions::new(&database),
            idempotency: Idempotency::new(&database, config::idempotency_window()?),
            quotas: Quotas::new(&database),
            services: Services {
                agents: Agents::new(&database),
                phone_numbers: PhoneNumbers::new(&database),
                secrets,
                twilio: Twilio::new(http_client.clone(), config::twilio_url()),
                pipedream,
                pipedream_secret,
                vapi: Vapi::new(http_client.clone(), config::vapi_url()),
                accounts,
                call_control: CallControl::new(http_client, config::control_hosts()),
                outbound: Outbound::new(config::outbound_open_hosts())?,
                knowledge: Knowledge::new(KnowledgeBases::new(&database), KnowledgeEntries::new(&database)),
            },
            history: config::history()?,
        },
    };
    http::serve("tools-test", deps, handle).await
}
