//! /api/{slug}/knowledge-bases: what agents can look up.

use knowledge::{Deps, handle};
use shared::{
    config,
    http::{self, Access},
    store::{AgentTools, Agents, Database, KnowledgeBases, KnowledgeEntries, Tools},
    telemetry,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    telemetry::init()?;
    let database = Database::connect(&config::Aws::from_env()?, config::table_prefix()?);
    let deps = Deps {
        access: Access::new(&database),
        bases: KnowledgeBases::new(&database),
        entries: KnowledgeEntries::new(&database),
        tools: Tools::new(&database),
        agents: Agents::new(&database),
        agent_tools: AgentTools::new(&database),
    };
    http::serve("knowledge", deps, handle).await
}
