//! /api/{slug}/automations and below: validates, saves and activates automations.

use deploy::{Deps, handle};
use shared::{Platform, http};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let platform = Platform::from_env().await?;
    http::serve("deploy", Deps::new(&platform)?, handle).await
}
