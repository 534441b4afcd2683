//! /api/{slug}/knowledge-bases: what agents can look up.

use knowledge::{Deps, handle};
use shared::{
    accounts::Accounts,
    clients::{self, Secrets, Vapi},
    config,
    http::{self, Access},
    lifecycle::{Assistants, ExternalTools, Lifecycle},
    store::{AgentTools, Agents, Database, KnowledgeBases, KnowledgeEntries, Organizations, Tools},
    telemetry,
    tools::ToolTokens,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    telemetry::init()?;
    let aws = config::Aws::from_env()?;
    let database = Database::connect(&aws, config::table_prefix()?);
    let organizations = Organizations::new(&database);
    let secrets = Secrets::new(&aws);
    let vapi = Vapi::new(clients::http_client()?, config::vapi_url());
    let accounts = Accounts::new(
        organizations.clone(),
        secrets.clone(),
        config::vapi_secret()?,
        config::organization_secret_prefix()?,
    );
    let tokens = ToolTokens::new(secrets, config::tool_token_secret()?);
    let deps = Deps {
        access: Access::new(&database, organizations),
        bases: KnowledgeBases::new(&database),
        entries: KnowledgeEntries::new(&database),
        tools: Tools::new(&database),
        agents: Agents::new(&database),
        agent_tools: AgentTools::new(&database),
        lifecycle: Lifecycle::new(
            &database,
            ExternalTools::new(vapi.clone(), accounts.clone(), tokens, config::public_url()?),
            Assistants::new(vapi, accounts),
        ),
    };
    http::serve("knowledge", deps, handle).await
}
