//! /api/{slug}/hooks and /api/{slug}/events: where services send their events, and what came of them.

use hooks::{Deps, handle};
use shared::{Platform, http};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let platform = Platform::from_env().await?;
    http::serve("hooks", Deps::new(&platform)?, handle).await
}
