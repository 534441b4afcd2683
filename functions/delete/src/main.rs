//! DELETE /api/{slug}/tools/{id}: deletes a tool everywhere.

use delete::{Deps, handle};
use shared::{Platform, http};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let platform = Platform::from_env().await?;
    http::serve("delete", Deps::new(&platform)?, handle).await
}
