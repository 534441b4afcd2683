//! POST /api/{slug}/tools/test: tries a tool out.

use shared::{
    accounts::Accounts,
    clients::{self, Outbound, Pipedream, Secrets},
    config,
    execution::Executor,
    http::{self, Access},
    lifecycle::References,
    store::{Database, KnowledgeBases, Organizations, PhoneNumbers, Tools},
    telemetry,
};
use tools_test::{Deps, handle};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    telemetry::init()?;
    let aws = config::Aws::from_env()?;
    let database = Database::connect(&aws, config::table_prefix()?);
    let organizations = Organizations::new(&database);
    let secrets = Secrets::new(&aws);
    let http_client = clients::http_client()?;
    let accounts = Accounts::new(
        organizations.clone(),
        secrets.clone(),
        config::vapi_secret()?,
        config::organization_secret_prefix()?,
    );
    let deps = Deps {
        access: Access::new(&database, organizations),
        references: References {
            phone_numbers: PhoneNumbers::new(&database),
            knowledge_bases: KnowledgeBases::new(&database),
            pipedream: Pipedream::new(http_client.clone(), config::pipedream_url()),
            pipedream_secret: config::pipedream_secret()?,
            secrets: secrets.clone(),
        },
        tools: Tools::new(&database),
        executor: Executor::from_env(
            &database,
            http_client,
            secrets,
            accounts,
            Outbound::new(config::outbound_open_hosts())?,
            config::idempotency_window()?,
        )?,
    };
    http::serve("tools-test", deps, handle).await
}
