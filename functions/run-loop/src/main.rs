//! SQS: continues a run of an automation.

use run_loop::{Deps, handle};
use shared::{Platform, queue};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let platform = Platform::from_env().await?;
    queue::serve("run-loop", Deps::new(&platform)?, handle).await
}
