//! A lease on a row: exclusive access until it is released or expires.
//!
//! The attributes `lease_token` and `lease_until` (milliseconds since 1970) are on the row itself, so that acquiring the lease
//! also reads the row, and a transaction can require it. The token fences: after expiry and another acquisition, writes with the
//! old token are refused.

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use serde::de::{DeserializeOwned, IgnoredAny};
use uuid::Uuid;

use super::{
    database::{Item, from_item, is_of, number, text},
    table::Table,
    write::{Refused, Write, WriteResult},
};
use crate::{
    Deadline, Error, Result,
    backoff::Backoff,
    models::{OrganizationId, Timestamp},
};

/// Between attempts; up to the same again is added at random.
const PAUSE: Duration = Duration::from_millis(40);
const WITHDRAW_WITHIN: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub struct Lease {
    key: Item,
    table: Table,
    token: String,
    length: Duration,
    waited: bool,
}

impl Lease {
    /// Acquires the lease on the row under `key` and reads the row. Waits for another holder until `deadline`.
    ///
    /// # Errors
    /// [`Error::NotFound`] (`what`) if the organization has no such row, [`Error::Conflict`] if the holder did not release in
    /// time, [`Error::Unavailable`] if transactions kept writing the row, [`Error::Unreadable`] if it cannot be read.
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

    /// Like [`Lease::acquire`], on an item without an organization, created on demand.
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
        // The last clause accepts a retry after our own lost answer.
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
                .attempt_past_others();
            let lease = || Self { key: key.clone(), table: table.clone(), token: token.clone(), length, waited };
            match attempt.await {
                Ok(WriteResult::Done(row)) => {
                    return match from_item(row) {
                        Ok(row) => Ok((row, lease())),
                        // A program that can read the row must not have to wait.
                        Err(unreadable) => lease().release().await.and(Err(unreadable)),
                    };
                }
                Ok(WriteResult::Refused(held)) if owner.is_some_and(|owner| !is_of(&held, owner)) => {
                    return Err(Error::NotFound(what));
                }
                Ok(WriteResult::Refused(_)) | Err(Refused::Condition(_) | Refused::Busy(_))
                    if backoff.pause().await => {}
                Ok(WriteResult::Refused(_)) | Err(Refused::Condition(_)) => {
                    return Err(Error::Conflict(format!("another change of this {what} is under way; try again")));
                }
                // After `Busy` nobody may hold the lease: a run must be queued again. One of the writes may have succeeded.
                Err(Refused::Busy(error) | Refused::Other(error)) => {
                    lease().withdraw().await;
                    return Err(error);
                }
            }
            waited = true;
        }
    }

    /// Whether another holder had the lease first: data read in parallel may be stale.
    pub fn waited(&self) -> bool {
        self.waited
    }

    pub(super) fn key(&self) -> Item {
        self.key.clone()
    }

    pub(super) fn token(&self) -> AttributeValue {
        text(&self.token)
    }

    /// Extends the lease by its length, from now. False if it is lost: a transaction released it, or another holder has it.
    pub async fn renew(&self) -> Result<bool> {
        let until = number(Timestamp::now().plus(self.length).as_millis());
        let renewed = self.update_in_transaction("SET #lease_until = :until").with([(":until", until)]);
        renewed.unless_refused().await
    }

    pub async fn release(self) -> Result<()> {
        self.release_in_transaction().unless_refused().await.map(drop)
    }

    /// Releases the lease after a failure, as far as the database lets it.
    pub(super) async fn withdraw(self) {
        let _whatever_came_of_it = tokio::time::timeout(WITHDRAW_WITHIN, self.release()).await;
    }

    pub(super) fn release_in_transaction(&self) -> Write {
        self.update_in_transaction("REMOVE #lease_token, #lease_until")
    }

    /// Updates the row if the lease is still held; does not release it.
    pub(super) fn update_in_transaction(&self, change: impl Into<String>) -> Write {
        self.required(self.table.update(self.key.clone(), change))
    }

    pub(super) fn held_in_transaction(&self) -> Write {
        self.required(self.table.check(self.key.clone()))
    }

    fn required(&self, write: Write) -> Write {
        write.when("#lease_token = :token").with([(":token", self.token())])
    }
}
