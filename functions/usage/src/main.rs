//! GET /api/{slug}/usage: the use of the organization's budgets.

use shared::{Platform, http};
use usage::{Deps, handle};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let platform = Platform::from_env().await?;
    http::serve("usage", Deps::new(&platform)?, handle).await
}
