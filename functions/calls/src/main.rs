//! GET /api/{slug}/calls and below: shows calls. POST /api/vapi/events: VAPI's reports on calls.

use calls::{Deps, handle};
use shared::{Platform, http};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let platform = Platform::from_env().await?;
    http::serve("calls", Deps::new(&platform)?, handle).await
}
