//! POST /api/{slug}/agents/{id}/tools/attach: gives a tool to an agent.

use attach::{Deps, handle};
use shared::{Platform, http};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let platform = Platform::from_env().await?;
    http::serve("attach", Deps::new(&platform)?, handle).await
}
