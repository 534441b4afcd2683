//! `idempotency`. Key: the hash of an effect's identity. TTL on `expires_at`. `quotas.rs` shares the table.
//!
//! Each effect happens once, however often it is requested. Before the effect, its owner claims the key in one conditional
//! write:
//!
//! ```text
//!  claim ──► in_progress ──► completed   the answer is recorded; a duplicate gets it
//!              │  │  └─────► partial     some parts are done; another claim may do the rest
//!              │  └────────► unknown     the effect may have happened; a duplicate is told so, nothing is repeated
//!              └───────────► released    the effect did not happen; the row is deleted and another claim may try
//!
//!  in_progress past its lease: the owner died between effect and record ──► unknown
//!  unknown, and the service shows the effect of that claim ──► completed
//! ```
//!
//! The claim's token fences: a late owner cannot overwrite an outcome recorded in the meantime.
//!
//! A *repetition* requests the same effect again: within the window (default two minutes, until `window_until`) it gets the
//! recorded answer, later it is a new effect. A *redelivery* is the same request again, recognized by its delivery's name
//! (`deliveries`: VAPI's tool-call ids, ids of queued executions): it gets the recorded answer while the row exists. Effects in
//! progress or unknown are never claimed again. A request that the caller confirmed after another effect does not repeat an
//! effect completed before that one ([`ClaimRequest::confirmed_after`]). Rows stay for [`RETENTION`], longer than any queue keeps a
//! message.
//! `window_until`, `done_until` and `expires_at` are in seconds since 1970, `lease_until` in milliseconds. DynamoDB's TTL may
//! lag by two days, so nothing depends on its deletions.

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use futures_util::future::join_all;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{
    database::{Database, from_item, id, number, text, to_attribute},
    table::Table,
    write::{Write, WriteResult},
};
use crate::{Deadline, Result, backoff::Backoff, error, models::Timestamp};

/// Outlasts every source of redeliveries: calls last hours, and the template's queues keep messages for up to four days.
pub const RETENTION: Duration = Duration::from_secs(5 * 24 * 60 * 60);

/// An unclaimed effect. The second clause accepts a retry after our own lost answer.
const UNCLAIMED: &str = "attribute_not_exists(#id) OR #token = :token";
/// An effect that a repetition may claim. Rows of an older version lack `window_until` and end with their window.
const OVER: &str = "#status = :partial OR (#status = :completed AND (#window_until <= :now OR #expires_at <= :now))";

/// An effect that a request confirmed anew may claim.
const CONFIRMED_ANEW: &str = "(#status = :completed AND (attribute_not_exists(#confirmed_after) OR \
                              #confirmed_after < :confirmed_after))";

/// Time to withdraw a claim after a failed write.
const WITHDRAW_WITHIN: Duration = Duration::from_millis(500);

/// Between checks of a running duplicate.
const PAUSE: Duration = Duration::from_millis(30);
const LONGEST_PAUSE: Duration = Duration::from_millis(480);

/// Identifies one effect: the hash of everything that distinguishes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// `scope`: kind and owner of the effect (tool, call). The order of names in `arguments` does not matter.
    pub fn new(scope: &[&str], arguments: &Value) -> Self {
        let parts = Value::Array(scope.iter().map(|part| Value::from(*part)).chain([canonical(arguments)]).collect());
        let hash = digest(&SHA256, parts.to_string().as_bytes());
        Self(BASE64_URL_SAFE_NO_PAD.encode(hash))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Sorts the names in every object, whatever map `serde_json` was built with.
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

/// A request for an effect.
#[derive(Debug, Clone, Copy)]
pub struct ClaimRequest<'a> {
    /// A name that survives redelivery, if the request has one.
    pub delivery: Option<&'a str>,
    /// When the caller confirmed another effect before confirming this one; the same in each delivery.
    pub confirmed_after: Option<Timestamp>,
}

impl<'a> From<Option<&'a str>> for ClaimRequest<'a> {
    fn from(delivery: Option<&'a str>) -> Self {
        Self { delivery, confirmed_after: None }
    }
}

#[derive(Debug)]
pub enum Claim {
    /// The caller must cause the effect, except the parts in [`Ticket::done`].
    Mine(Ticket),
    /// The effect happened, with this answer.
    Completed(Value),
    /// The effect may have happened; `done` has the known state of each part.
    Unknown { answer: Value, done: Map<String, Value>, earlier: Earlier },
    /// A duplicate is still running.
    Running,
}

impl Claim {
    pub fn mine(self) -> Option<Ticket> {
        match self {
            Self::Mine(ticket) => Some(ticket),
            _ => None,
        }
    }

    /// Adds the confirmation to a claim made ahead of it.
    #[must_use]
    pub fn confirmed(self, confirmed_after: Option<Timestamp>) -> Self {
        match self {
            Self::Mine(ticket) => Self::Mine(ticket.confirmed(confirmed_after)),
            Self::Unknown { answer, done, earlier } => {
                let confirmed_after = earlier.confirmed_after.max(confirmed_after);
                Self::Unknown { answer, done, earlier: Earlier { confirmed_after, ..earlier } }
            }
            other => other,
        }
    }
}

/// A claim that ended with an unknown outcome.
#[derive(Debug)]
pub struct Earlier {
    key: Key,
    /// [`Ticket::name`] of its ticket.
    pub name: String,
    /// The end of its lease, soon after the attempt.
    pub until: Timestamp,
    confirmed_after: Option<Timestamp>,
}

/// The right to cause an effect and the duty to record its outcome.
#[derive(Debug)]
pub struct Ticket {
    key: Key,
    token: String,
    /// Outcomes of completed parts from an earlier attempt, which must not be repeated.
    pub done: Map<String, Value>,
    /// Expiry of `done`, in seconds since 1970.
    done_until: i64,
    /// The row had such parts.
    was_partial: bool,
    delivery: Option<String>,
    /// Of the request, or of the latest one that the row answers.
    confirmed_after: Option<Timestamp>,
    /// Earlier deliveries were answered from this row, and must still be if this claim is released.
    answered_before: bool,
}

impl Ticket {
    /// `claimed`: the row with the claim.
    fn of(key: &Key, token: String, claimed: Record, delivery: Option<&str>) -> Self {
        let kept = claimed.done_until > Timestamp::now().as_seconds();
        Self {
            key: key.clone(),
            token,
            confirmed_after: claimed.confirmed_after(),
            was_partial: kept && !claimed.done.is_empty(),
            answered_before: claimed.deliveries.iter().any(|known| Some(known.as_str()) != delivery),
            done: if kept { claimed.done } else { Map::new() },
            done_until: claimed.done_until,
            delivery: delivery.map(str::to_owned),
        }
    }

    /// Unique among all claims, 36 characters.
    pub fn name(&self) -> &str {
        &self.token
    }

    /// Parts that happened before the confirmation may be repeated, those that may have happened may not.
    fn confirmed(mut self, confirmed_after: Option<Timestamp>) -> Self {
        if confirmed_after > self.confirmed_after {
            self.confirmed_after = confirmed_after;
            self.done.retain(|_, state| *state != "sent" && *state != "already_sent");
        }
        self
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The effect happened or was refused for good; duplicates get this answer.
    Completed(Value),
    /// The parts in `done` happened or may have; a repetition may retry the others. If any part is unknown, `done` is kept as
    /// long as an unknown effect. Redeliveries get this answer.
    Partial { answer: Value, done: Map<String, Value>, unknown: bool },
    /// See [`Claim::Unknown`].
    Unknown { answer: Value, done: Map<String, Value> },
    /// The effect did not happen; the claim is released.
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
    /// JSON text: DynamoDB's maps reject empty names, deep nesting and some numbers.
    answer: Option<String>,
    #[serde(default)]
    done: Map<String, Value>,
    #[serde(default)]
    done_until: i64,
    #[serde(default)]
    deliveries: Vec<String>,
    #[serde(default)]
    confirmed_after: Option<i64>,
}

impl Record {
    fn confirmed_after(&self) -> Option<Timestamp> {
        self.confirmed_after.map(Timestamp::from_millis)
    }

    fn answer(&self) -> Value {
        self.answer.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }
}

#[derive(Clone)]
pub struct Idempotency {
    table: Table,
    window: Duration,
    retention: Duration,
}

impl Idempotency {
    pub fn new(database: &Database, window: Duration) -> Self {
        Self { table: database.table("idempotency"), window, retention: RETENTION }
    }

    /// How long the record answers a repetition.
    pub const fn window(&self) -> Duration {
        self.window
    }

    #[must_use]
    pub fn kept_for(self, retention: Duration) -> Self {
        Self { retention, ..self }
    }

    /// Claims an effect, in one round trip if unclaimed. `lease` must outlast the caller: an older claim counts as unknown. Waits
    /// for a running duplicate until `deadline`.
    pub async fn claim(
        &self,
        key: &Key,
        request: ClaimRequest<'_>,
        lease: Duration,
        deadline: Deadline,
    ) -> Result<Claim> {
        let mut backoff = Backoff::new(PAUSE, LONGEST_PAUSE, deadline);
        loop {
            if let Some(claim) = self.try_claim(key, request, lease).await? {
                return Ok(claim);
            }
            if !backoff.pause().await {
                return Ok(Claim::Running);
            }
        }
    }

    /// Claims several effects concurrently: all or none. While waiting for a duplicate no claim is held, so two callers cannot
    /// deadlock. `None`: a duplicate did not finish in time.
    ///
    /// # Errors
    /// If any effect cannot be claimed; then none is.
    pub async fn claim_all(
        &self,
        keys: &[(&Key, ClaimRequest<'_>)],
        lease: Duration,
        deadline: Deadline,
    ) -> Result<Option<Vec<Claim>>> {
        let mut backoff = Backoff::new(PAUSE, LONGEST_PAUSE, deadline);
        loop {
            let tried = join_all(keys.iter().map(|(key, request)| self.try_claim(key, *request, lease))).await;
            let (mut claims, mut running, mut failed) = (Vec::new(), false, None);
            for claim in tried {
                match claim {
                    Ok(Some(claim)) => claims.push(claim),
                    Ok(None) => running = true,
                    Err(error) => failed = Some(error),
                }
            }
            if !running && failed.is_none() {
                return Ok(Some(claims));
            }
            let held = claims.into_iter().filter_map(|claim| match claim {
                Claim::Mine(ticket) => Some(self.release(ticket)),
                _ => None,
            });
            for error in join_all(held).await.into_iter().filter_map(Result::err) {
                tracing::error!("a claim could not be released: {}", error::chain(&error));
            }
            if let Some(error) = failed {
                return Err(error);
            }
            if !backoff.pause().await {
                return Ok(None);
            }
        }
    }

    /// `None`: a duplicate is running.
    async fn try_claim(&self, key: &Key, request: ClaimRequest<'_>, lease: Duration) -> Result<Option<Claim>> {
        let ClaimRequest { delivery, confirmed_after } = request;
        let now = Timestamp::now();
        let token = Uuid::new_v4().to_string();
        // `done`, `deliveries` and `answer` stay: a retry after our own lost answer must still find them.
        let change = "SET #status = :in_progress, #token = :token, #lease_until = :lease, #expires_at = :expires";
        let claim = self.table.update(id(&key.0), change).with([
            (":in_progress", text("in_progress")),
            (":completed", text("completed")),
            (":partial", text("partial")),
            (":token", text(&token)),
            (":lease", number(now.plus(lease).as_millis())),
            (":expires", number(now.plus(self.retention).as_seconds())),
            (":now", number(now.as_seconds())),
        ]);
        let (claim, free) = match delivery {
            Some(delivery) => (
                claim
                    .and(" ADD #deliveries :deliveries")
                    .with([(":delivery", text(delivery)), (":deliveries", one(delivery))]),
                format!("{UNCLAIMED} OR (({OVER}) AND NOT contains(#deliveries, :delivery))"),
            ),
            None => (claim, format!("{UNCLAIMED} OR {OVER}")),
        };
        let claim = match confirmed_after {
            Some(after) => claim
                .when(format!("{free} OR {CONFIRMED_ANEW}"))
                .with([(":confirmed_after", number(after.as_millis()))]),
            None => claim.when(free),
        };
        let claimed = match claim.attempt().await {
            Ok(claimed) => claimed,
            Err(error) => {
                let withdrawn = self.withdraw(key, token, delivery);
                let _whatever_came_of_it = tokio::time::timeout(WITHDRAW_WITHIN, withdrawn).await;
                return Err(error);
            }
        };
        let record: Record = match claimed {
            WriteResult::Done(row) => {
                let ticket = Ticket::of(key, token, from_item(row)?, delivery);
                return Ok(Some(Claim::Mine(ticket.confirmed(confirmed_after))));
            }
            WriteResult::Refused(row) => from_item(row)?,
        };
        match record.status {
            // Only a redelivery meets an unclaimable partial outcome.
            Status::Partial => Ok(Some(Claim::Completed(record.answer()))),
            Status::Completed => {
                self.remember(key, &record, delivery).await?;
                Ok(Some(Claim::Completed(record.answer())))
            }
            Status::Unknown => {
                let until = Timestamp::from_millis(record.lease_until);
                let (answer, key) = (record.answer(), key.clone());
                let confirmed_after = record.confirmed_after().max(confirmed_after);
                let earlier = Earlier { key, name: record.token, until, confirmed_after };
                Ok(Some(Claim::Unknown { answer, done: record.done, earlier }))
            }
            Status::InProgress if record.lease_until < now.as_millis() => {
                // The owner died. The first caller to mark the row as unknown decides; the next read sees it.
                let ticket = Ticket {
                    key: key.clone(),
                    token: record.token,
                    done: Map::new(),
                    done_until: 0,
                    was_partial: false,
                    delivery: None,
                    confirmed_after: None,
                    answered_before: false,
                };
                self.record(ticket, Outcome::Unknown { answer: Value::Null, done: Map::new() }).await?;
                Ok(None)
            }
            Status::InProgress => Ok(None),
        }
    }

    /// For a claim that may have been written although its write failed: it would become an unknown effect.
    async fn withdraw(&self, key: &Key, token: String, delivery: Option<&str>) -> Result<()> {
        let ours = text(&token);
        let new = self.table.delete(id(&key.0)).when("#token = :token AND attribute_not_exists(#window_until)");
        match new.with([(":token", ours.clone())]).replacing().await? {
            WriteResult::Refused(row) if row.get("token") == Some(&ours) => {
                self.release(Ticket::of(key, token, from_item(row)?, delivery)).await
            }
            _ => Ok(()),
        }
    }

    /// Adds a repetition's delivery, so that its redelivery gets the same answer.
    async fn remember(&self, key: &Key, record: &Record, delivery: Option<&str>) -> Result<()> {
        let Some(delivery) = delivery.filter(|name| !record.deliveries.iter().any(|known| known == name)) else {
            return Ok(());
        };
        self.table
            .update(id(&key.0), "ADD #deliveries :deliveries")
            .when("#token = :token")
            .with([(":deliveries", one(delivery)), (":token", text(&record.token))])
            .unless_refused()
            .await
            .map(drop)
    }

    /// Records the outcome of a claimed effect. If the claim has a new owner, their record stands.
    pub async fn record(&self, ticket: Ticket, outcome: Outcome) -> Result<()> {
        let now = Timestamp::now();
        let until = |kept: Duration| now.plus(kept).as_seconds();
        let (status, answer, done, done_until) = match outcome {
            Outcome::Completed(answer) => ("completed", answer, Map::new(), 0),
            Outcome::Partial { answer, done, unknown } => {
                let kept = if unknown { self.retention } else { self.window };
                ("partial", answer, done, until(kept).max(ticket.done_until))
            }
            Outcome::Unknown { answer, done } => ("unknown", answer, done, 0),
            Outcome::Released => return self.release(ticket).await,
        };
        let recorded = self
            .table
            .update(
                id(&ticket.key.0),
                "SET #status = :status, #answer = :answer, #done = :done, #done_until = :done_until, \
                 #window_until = :window_until, #expires_at = :expires",
            )
            .when("#token = :token AND #status = :in_progress")
            .with([
                (":status", text(status)),
                (":answer", text(&answer)),
                (":done", to_attribute(&done)?),
                (":done_until", number(done_until)),
                (":window_until", number(until(self.window))),
                (":expires", number(until(self.retention))),
                (":token", text(&ticket.token)),
                (":in_progress", text("in_progress")),
            ]);
        answered_after(recorded, ticket.confirmed_after).unless_refused().await.map(drop)
    }

    /// An unknown effect has happened after all, with this answer; a redelivery of the request that asked gets it too.
    pub async fn found(&self, earlier: Earlier, answer: &Value) -> Result<()> {
        let found = self
            .table
            .update(id(&earlier.key.0), "SET #status = :completed, #answer = :answer, #window_until = :window_until")
            .when("#token = :token AND #status = :unknown")
            .with([
                (":completed", text("completed")),
                (":answer", text(answer)),
                (":window_until", number(Timestamp::now().plus(self.window).as_seconds())),
                (":token", text(&earlier.name)),
                (":unknown", text("unknown")),
            ]);
        answered_after(found, earlier.confirmed_after).unless_refused().await.map(drop)
    }

    /// Restores the row to its state before this claim.
    async fn release(&self, ticket: Ticket) -> Result<()> {
        const OURS: &str = "#token = :token AND #status = :in_progress";
        let row = id(&ticket.key.0);
        let before = if ticket.was_partial { "partial" } else { "completed" };
        let released = if ticket.answered_before || ticket.was_partial {
            let back = self.table.update(row, "SET #status = :before").with([(":before", text(before))]);
            match &ticket.delivery {
                Some(delivery) => back.and(" DELETE #deliveries :deliveries").with([(":deliveries", one(delivery))]),
                None => back,
            }
        } else {
            self.table.delete(row)
        };
        let values = [(":token", text(&ticket.token)), (":in_progress", text("in_progress"))];
        released.when(OURS).with(values).unless_refused().await.map(drop)
    }
}

/// The row answers requests confirmed up to then.
fn answered_after(change: Write, confirmed_after: Option<Timestamp>) -> Write {
    match confirmed_after {
        Some(after) => {
            change.and(", #confirmed_after = :confirmed_after").with([(":confirmed_after", number(after.as_millis()))])
        }
        None => change,
    }
}

fn one(delivery: &str) -> AttributeValue {
    AttributeValue::Ss(vec![delivery.to_owned()])
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
