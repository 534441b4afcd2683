//! /api/{slug}/members: the organization's members and their roles.

use members::{Deps, handle};
use shared::{Platform, http};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let platform = Platform::from_env().await?;
    http::serve("members", Deps::new(&platform)?, handle).await
}
