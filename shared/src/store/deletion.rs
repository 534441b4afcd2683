//! Deleting many rows of a table.

use std::time::Duration;

use aws_sdk_dynamodb::types::{DeleteRequest, WriteRequest};
use futures_util::{TryStreamExt, stream};

use super::{
    database::{Item, failed},
    table::Table,
};
use crate::{Deadline, Error, Result, backoff::Backoff};

/// DynamoDB takes 25 writes per batch.
const BATCH: usize = 25;
const BESIDE: usize = 4;
/// Before unprocessed items are sent again.
const PAUSE: Duration = Duration::from_millis(30);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// Remaining time below which no batch is started.
pub(super) const LAST_CALL: Duration = Duration::from_millis(1_500);

/// The time was up before all rows were deleted; deleted rows stay deleted.
#[derive(Debug)]
pub(super) struct OutOfTime;

impl Table {
    pub(super) async fn delete_all(&self, keys: Vec<Item>, deadline: Deadline) -> Result<Result<(), OutOfTime>> {
        let batches: Vec<Vec<Item>> = keys.chunks(BATCH).map(<[Item]>::to_vec).collect();
        let deleted = stream::iter(batches.into_iter().map(Ok))
            .try_for_each_concurrent(BESIDE, |batch| self.delete_batch(batch, deadline))
            .await;
        match deleted {
            Ok(()) => Ok(Ok(())),
            Err(None) => Ok(Err(OutOfTime)),
            Err(Some(error)) => Err(error),
        }
    }

    /// # Errors
    /// `None` if the time is up.
    async fn delete_batch(&self, keys: Vec<Item>, deadline: Deadline) -> Result<(), Option<Error>> {
        let request = |key: Item| {
            let delete = DeleteRequest::builder().set_key(Some(key)).build().map_err(Error::internal)?;
            Ok(WriteRequest::builder().delete_request(delete).build())
        };
        let mut left = keys.into_iter().map(request).collect::<Result<Vec<_>>>()?;
        let mut backoff = Backoff::new(PAUSE, LONGEST_PAUSE, deadline.reserving(LAST_CALL));
        if deadline.remaining() < LAST_CALL {
            return Err(None);
        }
        loop {
            let sent = self.client.batch_write_item().request_items(&self.name, left).send().await.map_err(failed)?;
            left = sent.unprocessed_items.and_then(|mut left| left.remove(&self.name)).unwrap_or_default();
            if left.is_empty() {
                return Ok(());
            }
            if !backoff.pause().await {
                return Err(None);
            }
        }
    }
}
