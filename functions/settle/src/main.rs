//! On a schedule: settles the changes that a crash left open.

use settle::{Deps, handle};
use shared::{Platform, direct_invocation};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let platform = Platform::from_env().await?;
    direct_invocation::serve("settle", Deps::new(&platform)?, |deps, _event, deadline| handle(deps, deadline)).await
}
