//! A lease on a row: who holds it may change what the row stands for; nobody else may, until it is released or runs out.
//!
//! It is two attributes on the row itself, `lease_token` and `lease_until` (milliseconds since 1970), so that acquiring it
//! also reads the row, and a write can require it in the same transaction. The token fences: once the lease has run out
//! and been acquired by somebody else, writes with the old token are refused.

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use serde::de::{DeserializeOwned, IgnoredAny};
use uuid::Uuid;

use super::{
    database::{Item, from_item, is_of, number, text},
    table::Table,
    write::{Attempt, Write},
};
use crate::{
    Deadline, Error, Result,
    backoff::Backoff,
    models::{OrganizationId, Timestamp},
};

/// Between two tries for a lease that somebody else holds: this, and as much again at most by chance.
const PAUSE: Duration = Duration::from_millis(40);

/// A lease that is held.
#[derive(Debug)]
pub struct Lease {
    key: Item,
    table: Table,
    token: String,
    waited: bool,
}

impl Lease {
    /// Acquires the lease on the row under `key` of `table`, waiting for its present holder until `deadline`; gives the row
    /// too.
    ///
    /// # Errors
    /// [`Error::NotFound`] (`what`) if the organization has no such row, [`Error::Conflict`] if the holder did not finish
    /// in time, [`Error::Unreadable`] if the row cannot be read.
    pub(super) async fn acquire<T: DeserializeOwned>(
        organization: OrganizationId,
        table: &Table,
        key: Item,
        what: &'static str,
        length: Duration,
        deadline: Deadline,
    ) -> Result<(T, Self)> {
        let owner = Some(organization);
        Self::acquire_if(owner, table, key, what, length, deadline).await
    }

    /// As [`Lease::acquire`], on an item that belongs to no organization and is made if it is not there.
    pub(super) async fn acquire_of_all(
        table: &Table,
        key: Item,
        what: &'static str,
        length: Duration,
        deadline: Deadline,
    ) -> Result<Self> {
        let held: (IgnoredAny, Self) = Self::acquire_if(None, table, key, what, length, deadline).await?;
        Ok(held.1)
    }

    async fn acquire_if<T: DeserializeOwned>(
        owner: Option<OrganizationId>,
        table: &Table,
        key: Item,
        what: &'static str,
        length: Duration,
        deadline: Deadline,
    ) -> Result<(T, Self)> {
        // The last clause lets a retry of our own lost answer through.
        const FREE: &str = "(attribute_not_exists(#lease_until) OR #lease_until < :now OR #lease_token = :token)";
        let token = Uuid::new_v4().to_string();
        let mut backoff = Backoff::new(PAUSE, PAUSE, deadline.reserving(PAUSE));
        let mut waited = false;
        loop {
            let now = Timestamp::now();
            let until = now.plus(length);
            let attempt = table
                .update(key.clone(), "SET #lease_token = :token, #lease_until = :until")
                .when(owner.map_or_else(|| FREE.to_owned(), |_| format!("#organization_id = :organization AND {FREE}")))
                .with([
                    (":token", text(&token)),
                    (":until", number(until.as_millis())),
                    (":now", number(now.as_millis())),
                ])
                .with_all(owner.map(|owner| (":organization".to_owned(), text(owner))).into_iter().collect())
                .attempt();
            let held = match attempt.await? {
                Attempt::Done(row) => {
                    let lease = Self { key, table: table.clone(), token, waited };
                    return match from_item(row) {
                        Ok(row) => Ok((row, lease)),
                        // Whoever can read it must not have to wait.
                        Err(unreadable) => lease.release().await.and(Err(unreadable)),
                    };
                }
                Attempt::Refused(held) => held,
            };
            if owner.is_some_and(|owner| !is_of(&held, owner)) {
                return Err(Error::NotFound(what));
            }
            if !backoff.pause().await {
                return Err(Error::Conflict(format!("another change of this {what} is under way; try again")));
            }
            waited = true;
        }
    }

    /// Whether somebody else held it first: then what was read beside it may be out of date.
    pub fn waited(&self) -> bool {
        self.waited
    }

    pub(super) fn key(&self) -> Item {
        self.key.clone()
    }

    /// What stands in `lease_token` while the lease is ours.
    pub(super) fn token(&self) -> AttributeValue {
        text(&self.token)
    }

    /// Releases the lease; one that somebody else has acquired by now is theirs.
    pub async fn release(self) -> Result<()> {
        self.release_in_transaction().unless_refused().await.map(drop)
    }

    /// Releases the lease, if it is still ours.
    pub(super) fn release_in_transaction(&self) -> Write {
        self.update_in_transaction("REMOVE #lease_token, #lease_until")
    }

    /// A change of the row, if the lease is still ours; it stays held.
    pub(super) fn update_in_transaction(&self, change: impl Into<String>) -> Write {
        self.required(self.table.update(self.key.clone(), change))
    }

    /// Makes a transaction fail unless the lease is still ours; it stays held.
    pub(super) fn held_in_transaction(&self) -> Write {
        self.required(self.table.check(self.key.clone()))
    }

    fn required(&self, write: Write) -> Write {
        write.when("#lease_token = :token").with([(":token", self.token())])
    }
}
