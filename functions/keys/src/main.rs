//! /api/{slug}/keys and /api/{slug}/keys/{service}: the organization's own accounts.

use keys::{Deps, handle};
use shared::{Platform, http};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let platform = Platform::from_env().await?;
    http::serve("keys", Deps::new(&platform)?, handle).await
}
