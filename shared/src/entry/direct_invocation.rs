//! Functions without a waiting caller: run by a schedule, by a queue of wake-ups, or by hand (`cargo lambda invoke`,
//! the console).

use std::time::{Duration, Instant};

use lambda_runtime::{Diagnostic, LambdaEvent};
use serde::Serialize;
use serde_json::Value;
use tower::service_fn;

use crate::{Deadline, Error, Result, error, invocation, models::Timestamp, telemetry};

/// Reserved for reporting.
const RESERVE: Duration = Duration::from_secs(2);

/// Runs `handle` for each event until Lambda ends the process. Its value is the invocation's result.
///
/// # Errors
/// When the runtime API is unreachable.
pub async fn serve<D, F, Fut, R>(function: &'static str, deps: D, handle: F) -> Result<(), lambda_runtime::Error>
where
    D: Sync + 'static,
    F: Fn(&'static D, Value, Deadline) -> Fut + Copy + Send + Sync + 'static,
    Fut: Future<Output = Result<R>> + Send,
    R: Serialize + Send,
{
    let deps: &'static D = Box::leak(Box::new(deps));
    lambda_runtime::run(service_fn(move |event: LambdaEvent<Value>| async move {
        let started = Instant::now();
        let left = event.context.deadline.saturating_sub(Timestamp::now().as_millis().unsigned_abs());
        let deadline = Deadline::after(Duration::from_millis(left)).reserving(RESERVE);
        // On the heap: the nested futures reach the compiler's limits.
        match Box::pin(invocation::run(handle(deps, event.payload, deadline))).await {
            Ok(result) => {
                telemetry::request(function, "ok", started.elapsed());
                serde_json::to_value(result).map_err(|error| diagnostic(&Error::internal(error)))
            }
            Err(error) => {
                let (code, service) = (error.code(), error.upstream_service());
                tracing::error!(function, code, upstream.service = service, "run failed: {}", error::chain(&error));
                telemetry::request(function, error.code(), started.elapsed());
                Err(diagnostic(&error))
            }
        }
    }))
    .await
}

/// A stable `errorType` for metrics, instead of a Rust type path.
fn diagnostic(error: &Error) -> Diagnostic {
    Diagnostic { error_type: error.code().to_owned(), error_message: error.to_string() }
}
