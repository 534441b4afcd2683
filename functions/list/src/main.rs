//! GET /api/{slug}/tools, /api/{slug}/tools/{id} and /api/{slug}/agents/{id}/tools: shows tools.

use list::{Deps, handle};
use shared::{
    config,
    http::{self, Access},
    store::{AgentTools, Agents, Database, Tools},
    telemetry,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    telemetry::init()?;
    let database = Database::connect(&config::Aws::from_env()?, config::table_prefix()?);
    let deps = Deps {
        access: Access::new(&database),
        agents: Agents::new(&database),
        agent_tools: AgentTools::new(&database),
        tools: Tools::new(&database),
    };
    http::serve("list", deps, handle).await
}
