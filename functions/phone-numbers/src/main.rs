//! /api/{slug}/phone-numbers and /api/{slug}/phone-numbers/{id}: the organization's phone numbers.

use phone_numbers::{Deps, handle};
use shared::{Platform, http};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let platform = Platform::from_env().await?;
    http::serve("phone-numbers", Deps::new(&platform)?, handle).await
}
