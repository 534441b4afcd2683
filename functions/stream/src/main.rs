//! POST /agent/stream and the routes below /copilotkit: the planner's turns as streams.

use shared::{Platform, http};
use stream::{Deps, handle};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let platform = Platform::from_env().await?;
    http::serve_streaming("stream", Deps::new(&platform)?, handle).await
}
