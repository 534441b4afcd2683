//! POST /api/{slug}/tools: makes a tool.

use create::{Deps, handle};
use shared::{
    clients::{self, Pipedream, Secrets, Vapi},
    config,
    http::{self, Access, ToolTokens},
    store::{Database, KnowledgeBases, PhoneNumbers, Tools},
    telemetry,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    telemetry::init()?;
    let aws = config::Aws::from_env()?;
    let database = Database::connect(&aws, config::table_prefix()?);
    let secrets = Secrets::new(&aws);
    let http_client = clients::http_client()?;
    let deps = Deps {
        access: Access::new(&database),
        tools: Tools::new(&database),
        phone_numbers: PhoneNumbers::new(&database),
        knowledge_bases: KnowledgeBases::new(&database),
        tokens: ToolTokens::new(secrets.clone(), config::tool_token_secret()?),
        vapi: Vapi::new(http_client.clone(), config::vapi_url()),
        vapi_secret: config::vapi_secret()?,
        pipedream: Pipedream::new(http_client, config::pipedream_url()),
        pipedream_secret: config::pipedream_secret()?,
        secrets,
        public_url: config::public_url()?,
    };
    http::serve("create", deps, handle).await
}
