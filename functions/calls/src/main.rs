//! GET /api/{slug}/calls/{id}/executions: shows what happened in a call.

use calls::{Deps, handle};
use shared::{
    config,
    http::{self, Access},
    store::{Calls, Database, Executions},
    telemetry,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    telemetry::init()?;
    let database = Database::connect(&config::Aws::from_env()?, config::table_prefix()?);
    let deps =
        Deps { access: Access::new(&database), calls: Calls::new(&database), executions: Executions::new(&database) };
    http::serve("calls", deps, handle).await
}
