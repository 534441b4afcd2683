//! POST /agent/chat, POST /copilotkit/action: a person asks, the planner answers.

use chat::{Deps, handle};
use shared::{Platform, http};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let platform = Platform::from_env().await?;
    http::serve("chat", Deps::new(&platform)?, handle).await
}
