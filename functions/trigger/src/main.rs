//! `POST /api/hooks/{service}` and `/api/hooks/{service}/{hook_id}`: events of services come in.

use shared::{Platform, http};
use trigger::{Deps, handle};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let platform = Platform::from_env().await?;
    http::serve("trigger", Deps::new(&platform)?, handle).await
}
