//! The start of a function's process.

use super::{Platform, Result};

/// Defines `main`: `shared::main!(shared::http::serve, agents::Deps::new, agents::handle)`. The package's name is the function's.
#[macro_export]
macro_rules! main {
    ($serve:path, $deps:path, $handle:expr $(,)?) => {
        fn main() -> $crate::platform::Result<()> {
            $crate::platform::start(async |platform| {
                // On the heap: the nested futures reach the compiler's limits.
                Box::pin($serve(env!("CARGO_PKG_NAME"), $deps(&platform)?, $handle)).await
            })
        }
    };
}

/// Serves on one thread, with the platform of this process.
pub fn start(serve: impl AsyncFnOnce(Platform) -> Result<()>) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async { serve(Platform::from_env().await?).await })
}
