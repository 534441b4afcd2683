//! PATCH /api/{slug}/tools/{id}: edits a tool.

use shared::{Platform, http};
use update_tool::{Deps, handle};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let platform = Platform::from_env().await?;
    http::serve("update-tool", Deps::new(&platform)?, handle).await
}
