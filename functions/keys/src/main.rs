//! /api/{slug}/keys and /api/{slug}/keys/{service}: the organization's own accounts.

use keys::{Deps, handle};
use shared::{
    accounts::Accounts,
    clients::{self, Outbound, Secrets, Vapi},
    config,
    http::{self, Access},
    lifecycle::StoredSecrets,
    store::{Agents, Database, Intents, Organizations, Tools},
    telemetry,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    telemetry::init()?;
    let aws = config::Aws::from_env()?;
    let database = Database::connect(&aws, config::table_prefix()?);
    let organizations = Organizations::new(&database);
    let secrets = Secrets::new(&aws);
    let prefix = config::organization_secret_prefix()?;
    let deps = Deps {
        access: Access::new(&database, organizations.clone()),
        organizations: organizations.clone(),
        agents: Agents::new(&database),
        tools: Tools::new(&database),
        intents: Intents::new(&database),
        vapi: Vapi::new(clients::http_client()?, config::vapi_url()),
        accounts: Accounts::new(organizations, secrets.clone(), config::vapi_secret()?, prefix),
        secrets: StoredSecrets::new(&database, secrets),
        outbound: Outbound::new(config::outbound_open_hosts())?,
    };
    http::serve("keys", deps, handle).await
}
