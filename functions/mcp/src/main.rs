//! POST /api/{slug}/mcp: finding tools and deploying automations, for clients of the Model Context Protocol.

use mcp::{Deps, handle};
use shared::{Platform, http};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let platform = Platform::from_env().await?;
    Box::pin(http::serve("mcp", Deps::new(&platform)?, handle)).await
}
