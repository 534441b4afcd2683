//! Counts of a tool's runs, in the table `idempotency`. Key: id, one item a count:
//!
//! - `quota#<organization>#<tool>#call#<conversation>`: runs in one conversation;
//! - `quota#<organization>#<tool>#hour#2026-11-20T16`: runs in one hour of the clock, UTC.
//!
//! The hour is fixed, not sliding: one number that is counted up in one conditional write, at the price that a tool may run
//! twice its limit around a full hour. One count is one update; two are one transaction, so that a run refused by one limit
//! is not counted by the other. Items leave by themselves (TTL on `expires_at`); no key is used again after that.

use std::{collections::HashMap, time::Duration};

use aws_sdk_dynamodb::{
    Client,
    operation::transact_write_items::TransactWriteItemsError,
    types::{AttributeValue, ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update},
};
use backon::{BackoffBuilder, ExponentialBuilder};
use futures_util::future::join_all;
use uuid::Uuid;

use super::database::{Database, condition_failure, failed, failed_transaction, number, refused_action, text};
use crate::{
    Deadline, Error, Result,
    models::{Limit, Limits, OrganizationId, Timestamp, ToolId},
};

/// Longer than any call lasts.
const CALL_KEPT: Duration = Duration::from_secs(24 * 60 * 60);
/// An hour, and what clocks may differ by.
const HOUR_KEPT: Duration = Duration::from_secs(2 * 60 * 60);

/// Transactions on the same item refuse each other, so some of many runs at once must come again.
const PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(300);
/// Kept back for the run itself.
const RESERVE: Duration = Duration::from_secs(2);

const COUNT: &str = "SET #count = if_not_exists(#count, :zero) + :one, #last = :run, #expires = :expires";
/// `last` is who counted last: an update whose answer was lost is sent again by the SDK, and must not count twice.
const ROOM: &str = "attribute_not_exists(#count) OR (#count < :most AND #last <> :run)";

#[derive(Clone)]
pub struct Quotas {
    client: Client,
    table: String,
}

/// Whether there was room for one more run.
#[derive(Debug)]
pub enum Room {
    Taken(Taken),
    /// There was none; nothing was counted.
    None(Limit),
}

impl Room {
    /// That of a run which nothing limits.
    pub const fn free() -> Self {
        Self::Taken(Taken(Vec::new()))
    }
}

/// The room one run takes.
#[derive(Debug)]
pub struct Taken(Vec<Count>);

#[derive(Debug)]
struct Count {
    id: String,
    limit: Limit,
    most: u32,
    kept: Duration,
}

impl Quotas {
    pub fn new(database: &Database) -> Self {
        Self { client: database.client.clone(), table: database.table("idempotency") }
    }

    /// Counts a run of the tool if all its limits leave room for it, in one round trip. `conversation` names the one it is
    /// part of; without a name it is one of its own, in which nothing ran before.
    ///
    /// # Errors
    /// When it cannot be known whether there is room.
    pub async fn take(
        &self,
        organization: OrganizationId,
        tool: ToolId,
        conversation: Option<&str>,
        limits: Limits,
        deadline: Deadline,
    ) -> Result<Room> {
        let now = Timestamp::now();
        let of_tool = format!("quota#{organization}#{tool}");
        let mut counts = Vec::new();
        if let (Some(most), Some(name)) = (limits.per_call, conversation) {
            let id = format!("{of_tool}#call#{name}");
            counts.push(Count { id, limit: Limit::PerCall, most, kept: CALL_KEPT });
        }
        if let Some(most) = limits.per_hour {
            let id = format!("{of_tool}#hour#{}", now.hour());
            counts.push(Count { id, limit: Limit::PerHour, most, kept: HOUR_KEPT });
        }
        let run = Uuid::new_v4().to_string();
        let refused = match counts.as_slice() {
            [] => None,
            [count] => self.count(count, &run, now).await?,
            counts => self.count_all(counts, &run, now, deadline.reserving(RESERVE)).await?,
        };
        Ok(refused.map_or(Room::Taken(Taken(counts)), Room::None))
    }

    /// Gives back the room of a run that did not begin.
    pub async fn give_back(&self, taken: Taken) -> Result<()> {
        let given = taken.0.iter().map(|count| async move {
            let update = self.client.update_item().table_name(&self.table).key("id", text(&count.id));
            let given = update
                .update_expression("SET #count = #count - :one")
                .condition_expression("#count > :zero")
                .expression_attribute_names("#count", "count")
                .expression_attribute_values(":one", number(1))
                .expression_attribute_values(":zero", number(0))
                .send()
                .await;
            match given {
                Err(error) if condition_failure(&error).is_none() => Err(failed(error)),
                _ => Ok(()),
            }
        });
        join_all(given).await.into_iter().collect()
    }

    /// The limit, if it is reached.
    async fn count(&self, count: &Count, run: &str, now: Timestamp) -> Result<Option<Limit>> {
        let update = self.client.update_item().table_name(&self.table).key("id", text(&count.id));
        let counted = update
            .update_expression(COUNT)
            .condition_expression(ROOM)
            .set_expression_attribute_names(Some(names()))
            .set_expression_attribute_values(Some(count.values(run, now)))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .send()
            .await;
        let Err(error) = counted else { return Ok(None) };
        let Some(item) = condition_failure(&error) else { return Err(failed(error)) };
        Ok((item.get("last") != Some(&text(run))).then_some(count.limit))
    }

    /// The first limit that is reached. The transaction has a token of the SDK's: sent again, it counts once.
    async fn count_all(
        &self,
        counts: &[Count],
        run: &str,
        now: Timestamp,
        deadline: Deadline,
    ) -> Result<Option<Limit>> {
        let updates = counts.iter().map(|count| {
            let update = Update::builder().table_name(&self.table).key("id", text(&count.id));
            let update = update
                .update_expression(COUNT)
                .condition_expression(ROOM)
                .set_expression_attribute_names(Some(names()))
                .set_expression_attribute_values(Some(count.values(run, now)));
            let update = update.build().map_err(Error::internal)?;
            Ok(TransactWriteItem::builder().update(update).build())
        });
        let updates = updates.collect::<Result<Vec<_>>>()?;
        let pauses = ExponentialBuilder::default().with_min_delay(PAUSE).with_max_delay(LONGEST_PAUSE).with_jitter();
        let mut pauses = pauses.without_max_times().build();
        loop {
            let sent = self.client.transact_write_items().set_transact_items(Some(updates.clone())).send().await;
            let Err(error) = sent else { return Ok(None) };
            if let Some(place) = refused_action(&error) {
                return Ok(counts.get(place).map(|count| count.limit));
            }
            let cancelled =
                error.as_service_error().is_some_and(TransactWriteItemsError::is_transaction_canceled_exception);
            let Some(pause) = pauses.next().filter(|pause| cancelled && *pause < deadline.remaining()) else {
                return Err(failed_transaction(error));
            };
            tokio::time::sleep(pause).await;
        }
    }
}

impl Count {
    fn values(&self, run: &str, now: Timestamp) -> HashMap<String, AttributeValue> {
        let values = [
            (":zero", number(0)),
            (":one", number(1)),
            (":most", number(self.most.into())),
            (":run", text(run)),
            (":expires", number(now.plus(self.kept).as_seconds())),
        ];
        values.map(|(alias, value)| (alias.to_owned(), value)).into()
    }
}

fn names() -> HashMap<String, String> {
    let names = [("#count", "count"), ("#last", "last"), ("#expires", "expires_at")];
    names.map(|(alias, name)| (alias.to_owned(), name.to_owned())).into()
}
