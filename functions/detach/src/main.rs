//! POST /api/{slug}/agents/{id}/tools/detach: takes a tool from an agent.

use detach::{Deps, handle};
use shared::{
    accounts::Accounts,
    clients::{self, Secrets, Vapi},
    config,
    http::{self, Access},
    lifecycle::{Assistants, Attachments},
    store::{Database, Organizations},
    telemetry,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    telemetry::init()?;
    let aws = config::Aws::from_env()?;
    let database = Database::connect(&aws, config::table_prefix()?);
    let organizations = Organizations::new(&database);
    let vapi = Vapi::new(clients::http_client()?, config::vapi_url());
    let prefix = config::organization_secret_prefix()?;
    let accounts = Accounts::new(organizations.clone(), Secrets::new(&aws), config::vapi_secret()?, prefix);
    let assistants = Assistants::new(vapi, accounts);
    let deps =
        Deps { access: Access::new(&database, organizations), attachments: Attachments::new(&database, assistants) };
    http::serve("detach", deps, handle).await
}
