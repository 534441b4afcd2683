//! GET /api/{slug}/calls and below: shows calls and what happened in them. POST /api/vapi/events: how a call goes on.

use calls::{Deps, handle};
use shared::{
    accounts::Accounts,
    clients::Secrets,
    config,
    http::{self, Access},
    store::{Calls, Database, Executions, Organizations},
    telemetry,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    telemetry::init()?;
    let aws = config::Aws::from_env()?;
    let database = Database::connect(&aws, config::table_prefix()?);
    let organizations = Organizations::new(&database);
    let secrets = Secrets::new(&aws);
    let deps = Deps {
        access: Access::new(&database, organizations.clone()),
        calls: Calls::new(&database),
        executions: Executions::new(&database),
        accounts: Accounts::new(organizations, secrets, config::vapi_secret()?, config::organization_secret_prefix()?),
    };
    http::serve("calls", deps, handle).await
}
