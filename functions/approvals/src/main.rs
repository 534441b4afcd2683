//! /api/{slug}/approvals: lists and decides approvals.

use approvals::{Deps, handle};
use shared::{Platform, http};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let platform = Platform::from_env().await?;
    http::serve("approvals", Deps::new(&platform)?, handle).await
}
