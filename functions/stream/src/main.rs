//! POST /agent/stream and what is below /copilotkit: a person asks, the planner's turn is told as it happens.

use shared::{Platform, http};
use stream::{Deps, handle};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let platform = Platform::from_env().await?;
    http::serve_streaming("stream", Deps::new(&platform)?, handle).await
}
