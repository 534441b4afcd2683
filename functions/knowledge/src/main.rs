//! /api/{slug}/knowledge-bases: knowledge bases and their entries.

use knowledge::{Deps, handle};
use shared::{Platform, http};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let platform = Platform::from_env().await?;
    http::serve("knowledge", Deps::new(&platform)?, handle).await
}
