//! POST /api/{slug}/tools/test: tries a tool out.

use shared::{Platform, http};
use tools_test::{Deps, handle};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let platform = Platform::from_env().await?;
    http::serve("tools-test", Deps::new(&platform)?, handle).await
}
