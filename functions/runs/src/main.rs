//! POST and GET /api/{slug}/runs and below: starts runs of automations, shows them, cancels them.

use runs::{Deps, handle};
use shared::{Platform, http};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let platform = Platform::from_env().await?;
    http::serve("runs", Deps::new(&platform)?, handle).await
}
