//! POST /api/{slug}/agents/{id}/tools/detach: takes a tool from an agent.

use detach::{Deps, handle};
use shared::{Platform, http};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let platform = Platform::from_env().await?;
    http::serve("detach", Deps::new(&platform)?, handle).await
}
