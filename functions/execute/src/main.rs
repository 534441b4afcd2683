//! POST /api/tools/{id}/execute: VAPI calls a tool in the middle of a conversation.

use execute::{Deps, handle};
use shared::{Platform, http};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let deps = Deps::new(&Platform::from_env().await?)?;
    // Beside the start, which Lambda does not throttle, instead of in the first call.
    if let Err(error) = deps.tokens.warm().await {
        tracing::warn!("the tool token secret could not be preloaded: {}", shared::error::chain(&error));
    }
    http::serve("execute", deps, handle).await
}
