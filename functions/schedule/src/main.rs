//! SQS: occurrences of schedules, polls, and events whose filters take long.

use schedule::{Deps, handle};
use shared::{Platform, queue};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let platform = Platform::from_env().await?;
    queue::serve("schedule", Deps::new(&platform)?, handle).await
}
