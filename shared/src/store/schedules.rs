//! `schedules`. Key: the automation's id. Each change raises `revision`, conditional on the revision that was read.
//!
//! Index `due`: `due`, `next_run_at`, of schedules with an upcoming occurrence; `due` spreads them over a few partitions.

use aws_sdk_dynamodb::types::AttributeValue;

use super::{
    database::{Database, id, owned, rows, text, to_item},
    table::Table,
    write::set_all,
};
use crate::{
    Result,
    error::found,
    models::{AutomationId, OrganizationId, Schedule, Timestamp},
};

const WHAT: &str = "schedule";
const SHARDS: u32 = 4;
const OPTIONAL: [&str; 7] = ["next_run_at", "schedule_name", "due", "last_run_at", "last_poll", "last_error", "cursor"];

#[derive(Clone)]
pub struct Schedules {
    table: Table,
}

impl Schedules {
    pub fn new(database: &Database) -> Self {
        Self { table: database.table("schedules") }
    }

    pub async fn get(&self, organization: OrganizationId, automation: AutomationId) -> Result<Option<Schedule>> {
        let item = self.table.item(id(automation), true).await?;
        found(owned(organization, item, WHAT))
    }

    /// Writes a new schedule, or an existing one at the revision that was read; returns the new row, `None` if it has changed
    /// since. Attributes of a newer version stay.
    pub async fn save(&self, schedule: &Schedule) -> Result<Option<Schedule>> {
        let saved = Schedule { revision: schedule.revision + 1, updated_at: Timestamp::now(), ..schedule.clone() };
        let (change, values) = set_all(to_item(&saved)?, &OPTIONAL);
        let write = self.table.update(id(schedule.id), change).with_all(values);
        let write = if schedule.revision == 0 {
            write.when("attribute_not_exists(#id)")
        } else {
            let read = amount(schedule.revision);
            write.when("#revision = :read").of(schedule.organization_id).with([(":read", read)])
        };
        Ok(write.unless_refused().await?.then_some(saved))
    }

    /// Deletes a schedule at the revision that was read. False if it has changed since.
    pub async fn delete(&self, schedule: &Schedule) -> Result<bool> {
        let gone = self.table.delete(id(schedule.id)).when("#revision = :read").of(schedule.organization_id);
        gone.with([(":read", amount(schedule.revision))]).unless_refused().await
    }

    /// Up to `most` schedules per partition whose occurrence is before `before`, of all organizations, for the sweep. Unreadable
    /// rows are reported and skipped.
    pub async fn overdue(&self, before: Timestamp, most: i32) -> Result<Vec<Schedule>> {
        let mut all = Vec::new();
        for shard in 0..SHARDS {
            let of = self.table.query_index("due", "#due = :due AND #next_run_at < :before");
            let of = of.with([(":due", text(shard_name(shard))), (":before", text(before))]);
            let (items, _) = of.page(None, Some(most)).await?;
            all.extend(rows::<Schedule>(items));
        }
        Ok(all)
    }

    pub fn partition_of(automation: AutomationId) -> String {
        let sum = automation.to_string().bytes().fold(0u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        shard_name(sum % SHARDS)
    }
}

fn shard_name(shard: u32) -> String {
    format!("due#{shard}")
}

fn amount(value: u64) -> AttributeValue {
    AttributeValue::N(value.to_string())
}
