//! An operator's invocation: the catalogue, organizations and budgets.

use operator::{Deps, handle};
use shared::{Platform, direct_invocation};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let platform = Platform::from_env().await?;
    direct_invocation::serve("operator", Deps::new(&platform)?, handle).await
}
