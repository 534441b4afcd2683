//! POST /api/{slug}/erasures: deletes all data about a phone number.

use erasures::{Deps, handle};
use shared::{Platform, http};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let platform = Platform::from_env().await?;
    http::serve("erasures", Deps::new(&platform)?, handle).await
}
