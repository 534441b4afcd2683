//! `event_waits`. Key: `trigger_key` (partition; it begins with the organization), `place` (sort: the run and its step). TTL on
//! `expires_at`.
//!
//! The event is given to the run in one transaction: the row names the event, and the event's data become a part of the run
//! (`<digest>#event` in `automation_runs`). The first event wins. The row stays until the run has taken the data, so an event
//! that is delivered again can wake the run again, and gives it nothing twice.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use ring::digest::{SHA256, digest};
use serde_json::Value;

use super::{
    database::{Database, Item, key, number, text, to_item},
    table::Table,
    write::transact_unless_refused,
};
use crate::{
    Result,
    models::{CameEvent, Event, EventWait, RunId, RunPause, Timestamp},
};

const EVENT: &str = "#event";

#[derive(Clone)]
pub struct EventWaits {
    table: Table,
    runs: Table,
}

impl EventWaits {
    pub fn new(database: &Database) -> Self {
        Self { table: database.table("event_waits"), runs: database.table("automation_runs") }
    }

    /// The sort key of a step's wait.
    pub fn place(run: RunId, place: &str) -> String {
        format!("{run}#{}", digest_of(place))
    }

    /// Keeps and returns the row of an earlier attempt, if there is one: an event may have come already.
    pub async fn begin(&self, wait: EventWait) -> Result<EventWait> {
        if self.table.put(&wait)?.when("attribute_not_exists(#place)").unless_refused().await? {
            return Ok(wait);
        }
        let earlier: Option<EventWait> = self.table.get_consistent(key_of(&wait.trigger_key, &wait.place)).await?;
        Ok(earlier.unwrap_or(wait))
    }

    /// The waits for events with this key that are not over, read consistently.
    pub async fn waiting(&self, trigger_key: &str) -> Result<Vec<EventWait>> {
        let waits = self.table.query("#trigger_key = :key").now().filter("#until > :now");
        waits.with([(":key", text(trigger_key)), (":now", text(Timestamp::now()))]).collect().await
    }

    /// Gives the run its event. False if another event came first, or the wait is over.
    pub async fn give(&self, wait: &EventWait, event: &Event, data: &Value) -> Result<bool> {
        let taken = self.table.update(key_of(&wait.trigger_key, &wait.place), "SET #taken_by = :event");
        let taken = taken.when("#until > :now AND attribute_not_exists(#taken_by)");
        let taken = taken.with([(":event", text(event.id)), (":now", text(Timestamp::now()))]);
        let mut part = to_item(&CameEvent { event_id: event.id, data: data.to_string() })?;
        part.extend(part_key(wait.run_id, &wait.place));
        part.insert("expires_at".into(), number(wait.expires_at));
        let part = self.runs.put_item(part).when("attribute_not_exists(#id)");
        transact_unless_refused(vec![taken, part]).await
    }

    pub async fn came(&self, run: RunId, pause: &RunPause) -> Result<Option<CameEvent>> {
        self.runs.get_consistent(part_key(run, &Self::place(run, &pause.place))).await
    }

    /// Ends a wait without an event. False if an event came.
    pub async fn give_up(&self, run: RunId, pause: &RunPause) -> Result<bool> {
        let Some(trigger_key) = &pause.trigger_key else { return Ok(true) };
        let row = self.table.delete(key_of(trigger_key, &Self::place(run, &pause.place)));
        row.when("attribute_not_exists(#taken_by)").unless_refused().await
    }

    /// Deletes the wait of a pause, whatever came.
    pub async fn forget(&self, run: RunId, pause: Option<&RunPause>) -> Result<()> {
        let Some(pause) = pause else { return Ok(()) };
        let Some(trigger_key) = &pause.trigger_key else { return Ok(()) };
        self.table.delete(key_of(trigger_key, &Self::place(run, &pause.place))).send().await
    }
}

fn key_of(trigger_key: &str, place: &str) -> Item {
    key([("trigger_key", text(trigger_key)), ("place", text(place))])
}

/// The part is named by the wait's place without the run.
fn part_key(run: RunId, place: &str) -> Item {
    let part = format!("{}{EVENT}", place.split_once('#').map_or(place, |(_, digest)| digest));
    key([("id", text(run)), ("part", text(part))])
}

/// A place may be longer than a key.
fn digest_of(place: &str) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(digest(&SHA256, place.as_bytes()))
}
