//! Outcomes that are recorded after the answer, if their write is slow.

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::{BoxFuture, join_all};
use tokio::time::timeout;

use super::Executor;
use crate::{
    Deadline, error,
    idempotency::{Outcome, Ticket},
};

#[derive(Clone)]
pub(crate) struct LateOutcomes {
    until: Deadline,
    writes: Arc<Mutex<Vec<BoxFuture<'static, ()>>>>,
}

impl Executor {
    /// For a request whose answer waits for the record of an outcome until then at most. [`Executor::record`] finishes the rest.
    #[must_use]
    pub fn answering_by(&self, until: Deadline) -> Self {
        Self { late: Some(LateOutcomes { until, writes: Arc::default() }), ..self.clone() }
    }

    /// A failed write does not withhold the answer: the claim expires into "unknown".
    pub(super) async fn settle(&self, ticket: Ticket, outcome: Outcome) {
        let idempotency = self.idempotency.clone();
        let mut write = Box::pin(async move {
            if let Err(error) = idempotency.record(ticket, outcome).await {
                tracing::error!("the outcome of an execution could not be recorded: {}", error::chain(&error));
            }
        });
        match &self.late {
            None => write.await,
            Some(late) => {
                if timeout(late.until.remaining(), &mut write).await.is_err() {
                    late.writes.lock().unwrap_or_else(PoisonError::into_inner).push(write);
                }
            }
        }
    }

    pub(super) async fn finish_outcomes(&self) {
        let Some(late) = &self.late else { return };
        let writes = std::mem::take(&mut *late.writes.lock().unwrap_or_else(PoisonError::into_inner));
        join_all(writes).await;
    }
}
