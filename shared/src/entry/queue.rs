//! Functions run by a queue: the processing of a batch of messages.
//!
//! Messages of a batch are handled concurrently. Failed ones are reported to Lambda (`ReportBatchItemFailures`): SQS
//! delivers them again after the visibility time-out and, after `maxReceiveCount` attempts, moves them to the
//! dead-letter queue. A message may arrive twice, also at the same time.

use std::{
    panic::AssertUnwindSafe,
    time::{Duration, Instant},
};

use futures_util::{FutureExt, future::join_all};
use lambda_runtime::LambdaEvent;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tower::service_fn;
use tracing::Instrument;

use crate::{Deadline, Error, Result, error, invocation, models::Timestamp, telemetry};

/// Reserved for reporting.
const RESERVE: Duration = Duration::from_secs(1);

/// The used members of SQS's event.
#[derive(Debug, Deserialize)]
pub struct Batch {
    #[serde(rename = "Records")]
    records: Vec<Record>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    message_id: String,
    body: String,
}

/// The messages to deliver again: `{"batchItemFailures": [{"itemIdentifier": "…"}]}`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Failures {
    batch_item_failures: Vec<Failure>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Failure {
    item_identifier: String,
}

pub async fn serve<D, M, F, Fut>(function: &'static str, deps: D, handle: F) -> Result<(), lambda_runtime::Error>
where
    D: Sync + 'static,
    M: DeserializeOwned + Send,
    F: Fn(&'static D, M, Deadline) -> Fut + Copy + Send + Sync + 'static,
    Fut: Future<Output = Result<()>> + Send,
{
    let deps: &'static D = Box::leak(Box::new(deps));
    lambda_runtime::run(service_fn(move |event: LambdaEvent<Batch>| async move {
        let left = event.context.deadline.saturating_sub(Timestamp::now().as_millis().unsigned_abs());
        let deadline = Deadline::after(Duration::from_millis(left)).reserving(RESERVE);
        let failures = answer(function, event.payload, |message| handle(deps, message, deadline)).await;
        Ok::<_, lambda_runtime::Error>(failures)
    }))
    .await
}

/// Handles one batch, for [`serve`] and for tests.
pub async fn answer<M, F, Fut>(function: &'static str, batch: Batch, handle: F) -> Failures
where
    M: DeserializeOwned,
    F: Fn(M) -> Fut,
    Fut: Future<Output = Result<()>>,
{
    let handle = &handle;
    let handled = batch.records.into_iter().map(|record| async move {
        let started = Instant::now();
        let outcome = match serde_json::from_str(&record.body) {
            // A panic fails this message only.
            Ok(message) => {
                // An error span, as that of a request.
                let span = tracing::error_span!("message", message.id = record.message_id);
                let handled = Box::pin(invocation::run(handle(message))).instrument(span);
                AssertUnwindSafe(handled).catch_unwind().await.unwrap_or_else(|panic| {
                    let text = panic.downcast_ref::<&str>().copied().unwrap_or("a panic");
                    Err(Error::internal(text.to_owned()))
                })
            }
            // serde's text names the path and the type, not the content.
            Err(unreadable) => Err(Error::internal(unreadable)),
        };
        match outcome {
            Ok(()) => {
                telemetry::request(function, "ok", started.elapsed());
                None
            }
            Err(error) => {
                let chain = error::chain(&error);
                tracing::error!(
                    function,
                    message.id = record.message_id,
                    code = error.code(),
                    upstream.service = error.upstream_service(),
                    "message failed: {chain}"
                );
                telemetry::request(function, error.code(), started.elapsed());
                Some(Failure { item_identifier: record.message_id })
            }
        }
    });
    Failures { batch_item_failures: join_all(handled).await.into_iter().flatten().collect() }
}
