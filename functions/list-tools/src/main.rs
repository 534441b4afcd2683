//! GET /api/{slug}/tools, /api/{slug}/tools/{id}, /api/{slug}/tools/{id}/agents, /api/{slug}/tools/{id}/executions and
//! /api/{slug}/agents/{id}/tools: shows tools.

use list_tools::{Deps, handle};
use shared::{Platform, http};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let platform = Platform::from_env().await?;
    http::serve("list-tools", Deps::new(&platform)?, handle).await
}
