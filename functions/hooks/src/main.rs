//! /api/{slug}/hooks and /api/{slug}/events: addresses for services' events, and the received events.

use hooks::{Deps, handle};
use shared::{Platform, http};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let platform = Platform::from_env().await?;
    http::serve("hooks", Deps::new(&platform)?, handle).await
}
