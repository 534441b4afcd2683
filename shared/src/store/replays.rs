//! `replays`: replays of many events. Key: id. TTL on `expires_at`.
//!
//! A batch saves its progress under the number of the batch: of two deliveries of one message, one counts.

use serde::Serialize;

use super::{
    Cursor, Page,
    audit::Change,
    database::{Database, id, number, owned, rows, text, to_attribute, to_item},
    table::Table,
    write::{Write, WriteResult, set_all},
};
use crate::{
    Error, Result,
    models::{
        Act, Noun, OrganizationId, Replay, ReplayFailure, ReplayId, ReplayPosition, ReplayProgress, ReplayWait, RunId,
        SkippedRuns, Timestamp, UserId,
    },
};

const WHAT: &str = "replay";

#[derive(Clone)]
pub struct Replays {
    table: Table,
}

impl Replays {
    pub fn new(database: &Database) -> Self {
        Self { table: database.table("replays") }
    }

    pub async fn create(&self, replay: &Replay) -> Result<()> {
        self.table.put(replay)?.when("attribute_not_exists(#id)").send().await
    }

    pub async fn get(&self, organization: OrganizationId, replay: ReplayId) -> Result<Replay> {
        let found: Replay = self.table.owned(organization, id(replay), WHAT).await?;
        if found.expires_at > Timestamp::now().as_seconds() { Ok(found) } else { Err(Error::NotFound(WHAT)) }
    }

    pub async fn page(&self, organization: OrganizationId, after: Option<&Cursor>, limit: i32) -> Result<Page<Replay>> {
        Page::newest(organization, &self.table, after, limit).await
    }

    /// Another replay of the organization that is under way, if the index shows one.
    pub async fn running(&self, organization: OrganizationId, except: ReplayId) -> Result<Option<ReplayId>> {
        let of = self
            .table
            .of_organization(organization)
            .filter("attribute_exists(#started_at) AND attribute_not_exists(#finished_at)")
            .filter("attribute_not_exists(#cancelled_at) AND #expires_at > :now AND #id <> :except")
            .with([(":now", number(Timestamp::now().as_seconds())), (":except", text(except))]);
        let mut found = None;
        of.each_page(|items| {
            found = found.or_else(|| rows::<Replay>(items).first().map(|replay| replay.id));
            Ok(())
        })
        .await?;
        Ok(found)
    }

    /// Starts a planned replay. Returns the present row, also if it cannot be started.
    pub async fn start(&self, replay: &Replay, by: &UserId) -> Result<Replay> {
        let now = Timestamp::now();
        let started = self.table.update(id(replay.id), "SET #started_at = :now, #started_by = :by, #next_at = :now");
        let started = started
            .when("#start_before > :now AND attribute_not_exists(#started_at) AND attribute_not_exists(#cancelled_at)");
        let change = Change::of(Act::Started, Noun::Replay, replay.id);
        let change = change.with("events", replay.events).with("runs", replay.runs);
        self.changed(replay, started.with([(":now", text(now)), (":by", text(by))]), change).await
    }

    /// Cancels a replay that is not over. Returns the present row, also if it cannot be cancelled.
    pub async fn cancel(&self, replay: &Replay, by: &UserId) -> Result<Replay> {
        let now = Timestamp::now();
        let cancelled = self.table.update(id(replay.id), "SET #cancelled_at = :now, #cancelled_by = :by");
        let cancelled = cancelled.when(
            "attribute_not_exists(#cancelled_at) AND attribute_not_exists(#finished_at) AND \
             (attribute_exists(#started_at) OR #start_before > :now)",
        );
        let change = Change::of(Act::Cancelled, Noun::Replay, replay.id);
        self.changed(replay, cancelled.with([(":now", text(now)), (":by", text(by))]), change).await
    }

    async fn changed(&self, replay: &Replay, write: Write, change: Change) -> Result<Replay> {
        let write = write.of(replay.organization_id).audited(change)?;
        match write.attempt().await? {
            WriteResult::Done(row) | WriteResult::Refused(row) => owned(replay.organization_id, Some(row), WHAT),
        }
    }

    /// Saves the outcome of the batch `seen`. False if it was saved before. A cancellation meanwhile stays.
    pub async fn save(&self, replay: &Replay, seen: u64) -> Result<bool> {
        let outcome = Outcome {
            progress: &replay.progress,
            skipped: &replay.skipped,
            failures: &replay.failures,
            batch: replay.batch,
            next_at: replay.next_at,
            last_runs: &replay.last_runs,
            after: replay.after,
            waits: replay.waits.as_ref(),
            finished_at: replay.finished_at,
        };
        let (change, values) = set_all(to_item(&outcome)?, &["next_at", "after", "waits", "finished_at"]);
        let saved = self.table.update(id(replay.id), change).when("#batch = :seen").of(replay.organization_id);
        let seen = to_attribute(&seen)?;
        let saved = saved.with_all(values).with([(":seen", seen)]);
        saved.unless_refused().await
    }
}

#[derive(Serialize)]
struct Outcome<'a> {
    progress: &'a ReplayProgress,
    skipped: &'a SkippedRuns,
    failures: &'a [ReplayFailure],
    batch: u64,
    next_at: Option<Timestamp>,
    last_runs: &'a [RunId],
    after: Option<ReplayPosition>,
    waits: Option<&'a ReplayWait>,
    finished_at: Option<Timestamp>,
}
