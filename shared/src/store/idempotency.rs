//! An effect happens once, however often it is asked for.
//!
//! Whoever is about to cause an effect first claims its key with one conditional write:
//!
//! ```text
//!  claim ──► in_progress ──► completed   the answer is on record, a twin gets the same
//!              │  │  └─────► partial     some parts are done; another claim may do the rest
//!              │  └────────► unknown     it may have happened: a twin is told so, nothing is repeated
//!              └───────────► (deleted)   nothing left the building: another claim may try again
//!
//!  in_progress past its lease: the owner died between effect and record ──► unknown
//! ```
//!
//! The token of the claim fences: an owner that was too slow cannot overwrite what was recorded in its absence. A record
//! counts for a window (default two minutes); an unknown outcome counts for a day. `expires_at` is in seconds since 1970
//! for DynamoDB's TTL, which may lag by two days, so it is compared here too; `lease_until` is in milliseconds.

use std::time::Duration;

use aws_sdk_dynamodb::{
    Client,
    types::{ReturnValue, ReturnValuesOnConditionCheckFailure},
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::{
    Deadline, Result,
    models::Timestamp,
    store::{Database, condition_failure, failed, from_item, number, text, to_attribute},
};

const UNKNOWN_WINDOW: Duration = Duration::from_secs(24 * 60 * 60);

/// First pause between two looks at a running twin; it doubles up to [`LONGEST_PAUSE`].
const PAUSE: Duration = Duration::from_millis(40);
const LONGEST_PAUSE: Duration = Duration::from_millis(640);

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
    /// It certainly did not happen.
    Nothing,
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

/// The table `idempotency`. Key: id, the hash of what makes the effect the same.
#[derive(Clone)]
pub struct Idempotency {
    client: Client,
    table: String,
    window: Duration,
}

impl Idempotency {
    pub fn new(database: &Database, window: Duration) -> Self {
        Self { client: database.client.clone(), table: database.table("idempotency"), window }
    }

    /// Claims an effect, in one round trip when nobody else has. `lease` must outlast the caller: a claim older than that
    /// counts as an effect of unknown outcome. While a twin runs, its result is awaited until `deadline`.
    pub async fn claim(&self, key: &Key, lease: Duration, deadline: Deadline) -> Result<Claim> {
        let mut pause = PAUSE;
        loop {
            if let Some(claim) = self.try_claim(key, lease).await? {
                return Ok(claim);
            }
            if deadline.remaining() < pause {
                return Ok(Claim::Running);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// `None`: a twin is running.
    async fn try_claim(&self, key: &Key, lease: Duration) -> Result<Option<Claim>> {
        let now = Timestamp::now();
        let token = Uuid::new_v4().to_string();
        let expires_at = now.plus(self.window.max(lease)).as_seconds();
        let outcome = self
            .client
            .update_item()
            .table_name(&self.table)
            .key("id", text(&key.0))
            // `done` stays: a retry of our own lost answer must still find it.
            .update_expression(
                "SET #status = :in_progress, #token = :token, #lease = :lease, #expires = :expires REMOVE #answer",
            )
            // The last clause lets a retry of our own lost answer through.
            .condition_expression(
                "attribute_not_exists(#id) OR #expires <= :now OR #status = :partial OR #token = :token",
            )
            .expression_attribute_names("#id", "id")
            .expression_attribute_names("#status", "status")
            .expression_attribute_names("#token", "token")
            .expression_attribute_names("#lease", "lease_until")
            .expression_attribute_names("#expires", "expires_at")
            .expression_attribute_names("#answer", "answer")
            .expression_attribute_values(":in_progress", text("in_progress"))
            .expression_attribute_values(":token", text(&token))
            .expression_attribute_values(":lease", number(now.plus(lease).as_millis()))
            .expression_attribute_values(":expires", number(expires_at))
            .expression_attribute_values(":now", number(now.as_seconds()))
            .expression_attribute_values(":partial", text("partial"))
            .return_values(ReturnValue::AllNew)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .send()
            .await;
        let error = match outcome {
            Ok(won) => {
                let record: Record = from_item(won.attributes.unwrap_or_default())?;
                let done = if record.done_until > now.as_seconds() { record.done } else { Map::new() };
                return Ok(Some(Claim::Mine(Ticket { key: key.clone(), token, done })));
            }
            Err(error) => error,
        };
        let Some(item) = condition_failure(&error) else { return Err(failed(error)) };
        let record: Record = from_item(item)?;
        match record.status {
            Status::Completed => Ok(Some(Claim::Completed(record.answer()))),
            Status::Unknown => Ok(Some(Claim::Unknown(record.answer()))),
            Status::InProgress if record.lease_until < now.as_millis() => {
                // The owner is gone and left no word. Whoever marks it first decides; the next look reads it.
                let ticket = Ticket { key: key.clone(), token: record.token, done: Map::new() };
                self.settle(ticket, Outcome::Unknown(Value::Null)).await?;
                Ok(None)
            }
            Status::InProgress | Status::Partial => Ok(None),
        }
    }

    /// Records what became of a claimed effect. If the claim has passed to somebody else, what they recorded stands.
    pub async fn settle(&self, ticket: Ticket, outcome: Outcome) -> Result<()> {
        let (status, answer, done, window) = match outcome {
            Outcome::Completed(answer) => ("completed", answer, Map::new(), self.window),
            Outcome::Partial { done } => ("partial", Value::Null, done, self.window),
            Outcome::Unknown(answer) => ("unknown", answer, Map::new(), UNKNOWN_WINDOW),
            Outcome::Nothing if ticket.done.is_empty() => return self.release(ticket).await,
            Outcome::Nothing => ("partial", Value::Null, ticket.done, self.window),
        };
        let written = self
            .client
            .update_item()
            .table_name(&self.table)
            .key("id", text(&ticket.key.0))
            .update_expression(
                "SET #status = :status, #answer = :answer, #done = :done, #done_until = :expires, #expires = :expires",
            )
            .condition_expression("#token = :token AND #status = :in_progress")
            .expression_attribute_names("#status", "status")
            .expression_attribute_names("#answer", "answer")
            .expression_attribute_names("#done", "done")
            .expression_attribute_names("#done_until", "done_until")
            .expression_attribute_names("#expires", "expires_at")
            .expression_attribute_names("#token", "token")
            .expression_attribute_values(":status", text(status))
            .expression_attribute_values(":answer", text(&answer))
            .expression_attribute_values(":done", to_attribute(&done)?)
            .expression_attribute_values(":expires", number(Timestamp::now().plus(window).as_seconds()))
            .expression_attribute_values(":token", text(&ticket.token))
            .expression_attribute_values(":in_progress", text("in_progress"))
            .send()
            .await;
        match written {
            Ok(_) => Ok(()),
            Err(error) if condition_failure(&error).is_some() => Ok(()),
            Err(error) => Err(failed(error)),
        }
    }

    async fn release(&self, ticket: Ticket) -> Result<()> {
        let deleted = self
            .client
            .delete_item()
            .table_name(&self.table)
            .key("id", text(&ticket.key.0))
            .condition_expression("#token = :token AND #status = :in_progress")
            .expression_attribute_names("#token", "token")
            .expression_attribute_names("#status", "status")
            .expression_attribute_values(":token", text(&ticket.token))
            .expression_attribute_values(":in_progress", text("in_progress"))
            .send()
            .await;
        match deleted {
            Ok(_) => Ok(()),
            Err(error) if condition_failure(&error).is_some() => Ok(()),
            Err(error) => Err(failed(error)),
        }
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
