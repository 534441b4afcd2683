//! SQS: runs one queued tool.

use run_tool::{Deps, handle};
use shared::{Platform, queue};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let platform = Platform::from_env().await?;
    queue::serve("run-tool", Deps::new(&platform)?, handle).await
}
