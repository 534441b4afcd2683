//! POST /api/{slug}/tools: makes a tool.

use create_tool::{Deps, handle};
use shared::{Platform, http};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let platform = Platform::from_env().await?;
    http::serve("create-tool", Deps::new(&platform)?, handle).await
}
