//! POST /api/{slug}/agents/{id}/tools/attach: gives a tool to an agent.

use attach::{Deps, handle};
use shared::{
    clients::{self, Secrets, Vapi},
    config,
    http::{self, Access},
    store::{AgentTools, Agents, Database, Tools},
    telemetry,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    telemetry::init()?;
    let aws = config::Aws::from_env()?;
    let database = Database::connect(&aws, config::table_prefix()?);
    let deps = Deps {
        access: Access::new(&database),
        agents: Agents::new(&database),
        agent_tools: AgentTools::new(&database),
        tools: Tools::new(&database),
        vapi: Vapi::new(clients::http_client()?, config::vapi_url()),
        vapi_secret: config::vapi_secret()?,
        secrets: Secrets::new(&aws),
    };
    http::serve("attach", deps, handle).await
}
