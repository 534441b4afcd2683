//! /api/{slug}/discover, /api/{slug}/services: which tools there are, and what an organization has connected.

use discover::{Deps, handle};
use shared::{Platform, http};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let platform = Platform::from_env().await?;
    http::serve("discover", Deps::new(&platform)?, handle).await
}
