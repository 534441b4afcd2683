//! /api/{slug}/discover, /api/{slug}/services: tools and services, and the organization's connections.

use discover::{Deps, handle};
use shared::{Platform, http};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let platform = Platform::from_env().await?;
    http::serve("discover", Deps::new(&platform)?, handle).await
}
