//! /api/{slug}/agents and /api/{slug}/agents/{id}: the organization's agents.

use agents::{Deps, handle};
use shared::{Platform, http};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let platform = Platform::from_env().await?;
    http::serve("agents", Deps::new(&platform)?, handle).await
}
