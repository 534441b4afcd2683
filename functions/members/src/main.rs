//! /api/{slug}/members: who belongs to an organization, and what they may do in it.

use members::{Deps, handle};
use shared::{Platform, http};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let platform = Platform::from_env().await?;
    http::serve("members", Deps::new(&platform)?, handle).await
}
