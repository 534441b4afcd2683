//! `idempotency`. Key: id, the hash of what makes an effect the same one. TTL on `expires_at`. Counts of executions stand in
//! the same table: see `quotas.rs`.
//!
//! An effect happens once, however often it is asked for. Whoever is about to cause one first claims its key with one
//! conditional write:
//!
//! ```text
//!  claim ──► in_progress ──► completed   the answer is on record, a twin gets the same
//!              │  │  └─────► partial     some parts are done; another claim may do the rest
//!              │  └────────► unknown     it may have happened: a twin is told so, nothing is repeated
//!              └───────────► released    it certainly did not happen, and the row is gone: another claim may try again
//!
//!  in_progress past its lease: the owner died between effect and record ──► unknown
//! ```
//!
//! The token of the claim fences: an owner that was too slow cannot overwrite what was recorded in its absence. A record
//! counts for a window (default two minutes); an unknown outcome counts for a day. `expires_at` is in seconds since 1970
//! for DynamoDB's TTL, which may lag by two days, so it is compared here too; `lease_until` is in milliseconds.

use std::time::Duration;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{
    backoff::Backoff,
    database::{Database, from_item, id, number, text, to_attribute},
    table::Table,
    write::Attempt,
};
use crate::{Deadline, Result, models::Timestamp};

const UNKNOWN_WINDOW: Duration = Duration::from_secs(24 * 60 * 60);

/// Between two looks at a running twin.
const PAUSE: Duration = Duration::from_millis(30);
const LONGEST_PAUSE: Duration = Duration::from_millis(480);

/// Names one effect: the hash of everything that makes it the same one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// `scope` says what kind of effect and for whom (tool, call); `arguments` count whatever the order of their names.
    pub fn new(scope: &[&str], arguments: &Value) -> Self {
        let parts = Value::Array(scope.iter().map(|part| Value::from(*part)).chain([canonical(arguments)]).collect());
        let hash = digest(&SHA256, parts.to_string().as_bytes());
        Self(BASE64_URL_SAFE_NO_PAD.encode(hash))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The same value with the names of every object in order, whatever map `serde_json` was built with.
fn canonical(value: &Value) -> Value {
    match value {
        Value::Object(object) => {
            let mut names: Vec<&String> = object.keys().collect();
            names.sort_unstable();
            names
                .into_iter()
                .filter_map(|name| object.get(name).map(|value| (name.clone(), canonical(value))))
                .collect()
        }
        Value::Array(items) => items.iter().map(canonical).collect(),
        other => other.clone(),
    }
}

/// What a claim found.
#[derive(Debug)]
pub enum Claim {
    /// The effect is ours to cause; what is in [`Ticket::done`] is not.
    Mine(Ticket),
    /// It happened; this was the answer.
    Completed(Value),
    /// It may have happened; this was the answer.
    Unknown(Value),
    /// A twin is at it and did not finish in the time given.
    Running,
}

/// The right to cause an effect, and the duty to say what became of it.
#[derive(Debug)]
pub struct Ticket {
    key: Key,
    token: String,
    /// Parts an earlier try completed, and their outcomes: they must not be repeated.
    pub done: Map<String, Value>,
}

/// What became of an effect.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It happened, or was refused for good: a twin gets this answer.
    Completed(Value),
    /// Some parts happened or may have happened (`done`); the others certainly did not and may be tried again.
    Partial { done: Map<String, Value> },
    /// It may have happened.
    Unknown(Value),
    /// It certainly did not happen: the claim is released.
    Released,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    InProgress,
    Completed,
    Partial,
    Unknown,
}

#[derive(Debug, Deserialize)]
struct Record {
    status: Status,
    token: String,
    lease_until: i64,
    /// As JSON text: DynamoDB's own maps take neither empty names nor every depth and number.
    #[serde(default)]
    answer: Option<String>,
    #[serde(default)]
    done: Map<String, Value>,
    /// Until when `done` counts; seconds since 1970.
    #[serde(default)]
    done_until: i64,
}

impl Record {
    fn answer(&self) -> Value {
        self.answer.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }
}

#[derive(Clone)]
pub struct Idempotency {
    table: Table,
    window: Duration,
}

impl Idempotency {
    /// An outcome other than unknown is on record for `window`.
    pub fn new(database: &Database, window: Duration) -> Self {
        Self { table: database.table("idempotency"), window }
    }

    /// Claims an effect, in one round trip when nobody else has. `lease` must outlast the caller: a claim older than that
    /// counts as an effect of unknown outcome. While a twin runs, its result is awaited until `deadline`.
    pub async fn claim(&self, key: &Key, lease: Duration, deadline: Deadline) -> Result<Claim> {
        let mut backoff = Backoff::new(PAUSE, LONGEST_PAUSE, deadline);
        loop {
            if let Some(claim) = self.try_claim(key, lease).await? {
                return Ok(claim);
            }
            if !backoff.pause().await {
                return Ok(Claim::Running);
            }
        }
    }

    /// `None`: a twin is running.
    async fn try_claim(&self, key: &Key, lease: Duration) -> Result<Option<Claim>> {
        let now = Timestamp::now();
        let token = Uuid::new_v4().to_string();
        let claimed = self
            .table
            // `done` stays: a retry of our own lost answer must still find it.
            .update(
                id(&key.0),
                "SET #status = :in_progress, #token = :token, #lease_until = :lease, #expires_at = :expires REMOVE #answer",
            )
            // The last clause lets a retry of our own lost answer through.
            .when("attribute_not_exists(#id) OR #expires_at <= :now OR #status = :partial OR #token = :token")
            .with([
                (":in_progress", text("in_progress")),
                (":token", text(&token)),
                (":lease", number(now.plus(lease).as_millis())),
                (":expires", number(now.plus(self.window.max(lease)).as_seconds())),
                (":now", number(now.as_seconds())),
                (":partial", text("partial")),
            ]);
        let record: Record = match claimed.attempt().await? {
            Attempt::Done(row) => {
                let record: Record = from_item(row)?;
                let done = if record.done_until > now.as_seconds() { record.done } else { Map::new() };
                return Ok(Some(Claim::Mine(Ticket { key: key.clone(), token, done })));
            }
            Attempt::Refused(row) => from_item(row)?,
        };
        match record.status {
            Status::Completed => Ok(Some(Claim::Completed(record.answer()))),
            Status::Unknown => Ok(Some(Claim::Unknown(record.answer()))),
            Status::InProgress if record.lease_until < now.as_millis() => {
                // The owner is gone and left no word. Whoever marks it first decides; the next look reads it.
                let ticket = Ticket { key: key.clone(), token: record.token, done: Map::new() };
                self.record(ticket, Outcome::Unknown(Value::Null)).await?;
                Ok(None)
            }
            Status::InProgress | Status::Partial => Ok(None),
        }
    }

    /// Records what became of a claimed effect. If the claim has passed to somebody else, what they recorded stands.
    pub async fn record(&self, ticket: Ticket, outcome: Outcome) -> Result<()> {
        let (status, answer, done, window) = match outcome {
            Outcome::Completed(answer) => ("completed", answer, Map::new(), self.window),
            Outcome::Partial { done } => ("partial", Value::Null, done, self.window),
            Outcome::Unknown(answer) => ("unknown", answer, Map::new(), UNKNOWN_WINDOW),
            Outcome::Released if ticket.done.is_empty() => return self.release(ticket).await,
            Outcome::Released => ("partial", Value::Null, ticket.done, self.window),
        };
        self.table
            .update(
                id(&ticket.key.0),
                "SET #status = :status, #answer = :answer, #done = :done, #done_until = :expires, #expires_at = :expires",
            )
            .when("#token = :token AND #status = :in_progress")
            .with([
                (":status", text(status)),
                (":answer", text(&answer)),
                (":done", to_attribute(&done)?),
                (":expires", number(Timestamp::now().plus(window).as_seconds())),
                (":token", text(&ticket.token)),
                (":in_progress", text("in_progress")),
            ])
            .unless_refused()
            .await
            .map(drop)
    }

    async fn release(&self, ticket: Ticket) -> Result<()> {
        let released = self.table.delete(id(&ticket.key.0)).when("#token = :token AND #status = :in_progress");
        let values = [(":token", text(&ticket.token)), (":in_progress", text("in_progress"))];
        released.with(values).unless_refused().await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_order_of_names_does_not_matter_and_everything_else_does() {
        let key = |scope: &[&str], arguments: Value| Key::new(scope, &arguments);
        let one = key(&["tool", "a", "b"], json!({"x": {"p": 1, "q": [1, 2]}, "y": "z"}));
        assert_eq!(one, key(&["tool", "a", "b"], json!({"y": "z", "x": {"q": [1, 2], "p": 1}})));
        assert_ne!(one, key(&["tool", "a", "b"], json!({"y": "z", "x": {"q": [2, 1], "p": 1}})));
        assert_ne!(one, key(&["tool", "a", "c"], json!({"x": {"p": 1, "q": [1, 2]}, "y": "z"})));
        // Parts cannot run into each other.
        assert_ne!(key(&["ab", "c"], json!({})), key(&["a", "bc"], json!({})));
    }

    proptest! {
        #[test]
        fn different_texts_are_different_effects(a in "\\PC{0,20}", b in "\\PC{0,20}") {
            let same = Key::new(&["tool"], &json!({"text": a})) == Key::new(&["tool"], &json!({"text": b}));
            prop_assert_eq!(same, a == b);
        }
    }
}
