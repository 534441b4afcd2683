//! GET / and GET /console/{file}: a page for people who run an organization's agents.

use console::{Deps, handle};
use shared::{Platform, http};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let platform = Platform::from_env().await?;
    http::serve("console", Deps::new(&platform)?, handle).await
}
