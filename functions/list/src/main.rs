//! GET /api/{slug}/tools, /api/{slug}/tools/{id}, /api/{slug}/tools/{id}/executions and /api/{slug}/agents/{id}/tools: shows
//! tools.

use list::{Deps, handle};
use shared::{
    accounts::Accounts,
    clients::{self, Secrets, Vapi},
    config,
    http::{self, Access},
    lifecycle::{Assistants, Attachments},
    store::{Database, Executions, Organizations, Tools},
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
    let deps = Deps {
        access: Access::new(&database, organizations),
        tools: Tools::new(&database),
        attachments: Attachments::new(&database, assistants),
        executions: Executions::new(&database),
    };
    http::serve("list", deps, handle).await
}
