//! /api/{slug}/agents and /api/{slug}/agents/{id}: the organization's agents.

use agents::{Deps, handle};
use shared::{
    accounts::Accounts,
    clients::{self, Secrets, Vapi},
    config,
    http::{self, Access},
    store::{AgentTools, Agents, Database, Intents, Organizations, PhoneNumbers, Tools},
    telemetry,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    telemetry::init()?;
    let aws = config::Aws::from_env()?;
    let database = Database::connect(&aws, config::table_prefix()?);
    let organizations = Organizations::new(&database);
    let deps = Deps {
        access: Access::new(&database, organizations.clone()),
        agents: Agents::new(&database),
        agent_tools: AgentTools::new(&database),
        phone_numbers: PhoneNumbers::new(&database),
        tools: Tools::new(&database),
        intents: Intents::new(&database),
        vapi: Vapi::new(clients::http_client()?, config::vapi_url()),
        accounts: Accounts::new(
            organizations,
            Secrets::new(&aws),
            config::vapi_secret()?,
            config::organization_secret_prefix()?,
        ),
    };
    http::serve("agents", deps, handle).await
}
