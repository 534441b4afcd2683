//! /api/{slug}/agents and /api/{slug}/agents/{id}: the organization's agents.

use agents::{Deps, handle};
use shared::{
    accounts::Accounts,
    clients::{self, Secrets, Vapi},
    config,
    http::{self, Access},
    lifecycle::{Assistants, Attachments},
    store::{Agents, Database, PhoneNumbers},
    telemetry,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    telemetry::init()?;
    let aws = config::Aws::from_env()?;
    let database = Database::connect(&aws, config::table_prefix()?);
    let vapi = Vapi::new(clients::http_client()?, config::vapi_url());
    let prefix = config::organization_secret_prefix()?;
    let accounts = Accounts::new(&database, Secrets::new(&aws), config::vapi_secret()?, prefix);
    let assistants = Assistants::new(vapi.clone(), accounts.clone());
    let deps = Deps {
        access: Access::new(&database),
        agents: Agents::new(&database),
        attachments: Attachments::new(&database, assistants),
        phone_numbers: PhoneNumbers::new(&database),
        vapi,
        accounts,
    };
    http::serve("agents", deps, handle).await
}
