//! DELETE /api/{slug}/tools/{id}: deletes a tool everywhere.

use delete::{Deps, handle};
use shared::{
    accounts::Accounts,
    clients::{self, Queue, Secrets, Vapi},
    config,
    http::{self, Access},
    lifecycle::{Assistants, ExternalTools, Lifecycle, Settling},
    store::{Database, Organizations},
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
    let vapi = Vapi::new(clients::http_client()?, config::vapi_url());
    let tokens = ToolTokens::new(secrets.clone(), config::tool_token_secret()?);
    let prefix = config::organization_secret_prefix()?;
    let accounts = Accounts::new(organizations.clone(), secrets, config::vapi_secret()?, prefix);
    let deps = Deps {
        access: Access::new(&database, organizations),
        lifecycle: Lifecycle::new(
            &database,
            ExternalTools::new(vapi.clone(), accounts.clone(), tokens, config::public_url()?),
            Assistants::new(vapi, accounts),
        ),
        settling: Settling::new(Queue::new(&aws, config::settle_queue_url()?)),
    };
    http::serve("delete", deps, handle).await
}
