//! POST /api/{slug}/tools: makes a tool.

use create::{Deps, handle};
use shared::{
    accounts::Accounts,
    clients::{self, Pipedream, Secrets, Vapi},
    config,
    http::{self, Access},
    lifecycle::{Assistants, ExternalTools, Lifecycle, References},
    store::{Database, KnowledgeBases, Organizations, PhoneNumbers},
    telemetry,
    tools::ToolTokens,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    telemetry::init()?;
    let aws = config::Aws::from_env()?;
    let database = Database::connect(&aws, config::table_prefix()?);
    let organizations = Organizations::new(&database);
    let secrets = Secrets::new(&aws);
    let http_client = clients::http_client()?;
    let vapi = Vapi::new(http_client.clone(), config::vapi_url());
    let prefix = config::organization_secret_prefix()?;
    let accounts = Accounts::new(organizations.clone(), secrets.clone(), config::vapi_secret()?, prefix);
    let tokens = ToolTokens::new(secrets.clone(), config::tool_token_secret()?);
    let deps = Deps {
        access: Access::new(&database, organizations),
        references: References {
            phone_numbers: PhoneNumbers::new(&database),
            knowledge_bases: KnowledgeBases::new(&database),
            pipedream: Pipedream::new(http_client, config::pipedream_url()),
            pipedream_secret: config::pipedream_secret()?,
            secrets,
        },
        lifecycle: Lifecycle::new(
            &database,
            ExternalTools::new(vapi.clone(), accounts.clone(), tokens, config::public_url()?),
            Assistants::new(vapi, accounts),
        ),
    };
    http::serve("create", deps, handle).await
}
