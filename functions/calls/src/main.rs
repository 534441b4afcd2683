//! GET /api/{slug}/calls and below: shows calls and what happened in them. POST /api/vapi/events: how a call goes on.

use calls::{Deps, handle};
use shared::{Platform, http};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let platform = Platform::from_env().await?;
    http::serve("calls", Deps::new(&platform)?, handle).await
}
