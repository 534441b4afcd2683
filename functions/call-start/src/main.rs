//! POST /api/phone-number/{id}/incoming: a call comes in.

use call_start::{Deps, handle};
use shared::{Platform, http};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let platform = Platform::from_env().await?;
    http::serve("call-start", Deps::new(&platform)?, handle).await
}
