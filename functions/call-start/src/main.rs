//! POST /api/phone-number/{id}/incoming: a call comes in.

use call_start::{Deps, handle};
use shared::{
    accounts::Accounts,
    clients::{self, Queue, Secrets, Vapi},
    config, http,
    idempotency::Idempotency,
    store::{AgentTools, Agents, Calls, Database, Organizations, PhoneNumbers, Tools},
    telemetry,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    telemetry::init()?;
    let aws = config::Aws::from_env()?;
    let database = Database::connect(&aws, config::table_prefix()?);
    let secrets = Secrets::new(&aws);
    let deps = Deps {
        phone_numbers: PhoneNumbers::new(&database),
        agents: Agents::new(&database),
        agent_tools: AgentTools::new(&database),
        tools: Tools::new(&database),
        calls: Calls::new(&database),
        idempotency: Idempotency::new(&database, config::idempotency_window()?),
        accounts: Accounts::new(
            Organizations::new(&database),
            secrets.clone(),
            config::vapi_secret()?,
            config::organization_secret_prefix()?,
        ),
        secrets,
        vapi: Vapi::new(clients::http_client()?, config::vapi_url()),
        runs: Queue::new(&aws, config::runs_queue_url()?),
        public_url: config::public_url()?,
        context_due: config::on_call_start()?,
    };
    http::serve("call-start", deps, handle).await
}
