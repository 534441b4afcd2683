//! POST and GET /api/{slug}/runs and below: starts runs of automations, shows them, cancels them.

use runs::{Deps, handle};
use shared::{
    clients::{Outbound, Queue},
    config,
    http::{self, Access},
    injection,
    store::{AutomationRuns, Database, Organizations, Tools},
    telemetry,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    telemetry::init()?;
    let aws = config::Aws::from_env()?;
    let database = Database::connect(&aws, config::table_prefix()?);
    let deps = Deps {
        access: Access::new(&database, Organizations::new(&database)),
        runs: AutomationRuns::new(&database),
        tools: Tools::new(&database),
        registry: injection::built_in_tools(&Outbound::new(config::outbound_open_hosts())?)?,
        queue: Queue::new(&aws, config::automation_runs_queue_url()?),
        history: config::history()?,
    };
    http::serve("runs", deps, handle).await
}
