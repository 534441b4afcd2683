//! A lease on a row: who holds it may change what the row stands for; nobody else may, until it is given back or runs out.
//!
//! It is two attributes on the row itself, `lease_token` and `lease_until` (milliseconds since 1970), so that taking it
//! also reads the row, and a write can require it in the same transaction. The token fences: once the lease has run out
//! and been taken by somebody else, writes with the old token are refused.

use std::time::Duration;

use aws_sdk_dynamodb::{
    Client,
    types::{
        AttributeValue, ConditionCheck, ReturnValue, ReturnValuesOnConditionCheckFailure, Update,
        builders::UpdateBuilder,
    },
};
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::database::{Item, condition_failure, failed, from_item, is_of, number, text};
use crate::{
    Deadline, Error, Result,
    models::{OrganizationId, Timestamp},
};

/// How long to wait between two tries for a lease that somebody else holds.
const PAUSE: Duration = Duration::from_millis(60);

/// A lease that is held.
#[derive(Debug)]
pub struct Lease {
    key: Item,
    table: String,
    token: String,
    waited: bool,
}

impl Lease {
    /// Takes the lease on the row under `key` of `table`, waiting for its present holder until `deadline`; gives the row too.
    ///
    /// # Errors
    /// [`Error::NotFound`] (`what`) if the organization has no such row, [`Error::Conflict`] if the holder did not finish
    /// in time, [`Error::Unreadable`] if the row cannot be read.
    pub(crate) async fn acquire<T: DeserializeOwned>(
        client: &Client,
        table: &str,
        (organization, key): (OrganizationId, Item),
        what: &'static str,
        length: Duration,
        deadline: Deadline,
    ) -> Result<(T, Self)> {
        let token = Uuid::new_v4().to_string();
        let mut waited = false;
        loop {
            let now = Timestamp::now();
            let until = now.plus(length);
            let outcome = client
                .update_item()
                .table_name(table)
                .set_key(Some(key.clone()))
                .update_expression("SET #token = :token, #until = :until")
                // The second clause lets a retry of our own lost answer through.
                .condition_expression(
                    "#organization = :organization AND (attribute_not_exists(#until) OR #until < :now OR #token = :token)",
                )
                .expression_attribute_names("#token", "lease_token")
                .expression_attribute_names("#until", "lease_until")
                .expression_attribute_names("#organization", "organization_id")
                .expression_attribute_values(":token", text(&token))
                .expression_attribute_values(":until", number(until.as_millis()))
                .expression_attribute_values(":now", number(now.as_millis()))
                .expression_attribute_values(":organization", text(organization))
                .return_values(ReturnValue::AllNew)
                .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
                .send()
                .await;
            let error = match outcome {
                Ok(taken) => {
                    let lease = Self { key, table: table.to_owned(), token, waited };
                    return match from_item(taken.attributes.unwrap_or_default()) {
                        Ok(row) => Ok((row, lease)),
                        // Whoever can read it must not have to wait.
                        Err(unreadable) => lease.release(client).await.and(Err(unreadable)),
                    };
                }
                Err(error) => error,
            };
            let Some(held) = condition_failure(&error) else { return Err(failed(error)) };
            if !is_of(&held, organization) {
                return Err(Error::NotFound(what));
            }
            if deadline.remaining() < PAUSE * 2 {
                return Err(Error::Conflict(format!("another change of this {what} is under way; try again")));
            }
            waited = true;
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Whether somebody else held it first: then what was read beside it may be out of date.
    pub fn waited(&self) -> bool {
        self.waited
    }

    /// What stands in `lease_token` while the lease is ours.
    pub(crate) fn token(&self) -> AttributeValue {
        text(&self.token)
    }

    /// Gives the lease back.
    pub(crate) async fn release(self, client: &Client) -> Result<()> {
        let release = self.release_in_transaction()?;
        let outcome = client
            .update_item()
            .table_name(release.table_name)
            .set_key(Some(release.key))
            .update_expression(release.update_expression)
            .set_condition_expression(release.condition_expression)
            .set_expression_attribute_names(release.expression_attribute_names)
            .set_expression_attribute_values(release.expression_attribute_values)
            .send()
            .await;
        match outcome {
            Ok(_) => Ok(()),
            // Somebody else has it by now: nothing of ours is left to give back.
            Err(error) if condition_failure(&error).is_some() => Ok(()),
            Err(error) => Err(failed(error)),
        }
    }

    /// Gives the lease back as part of a transaction, which fails if it is no longer ours.
    pub(crate) fn release_in_transaction(&self) -> Result<Update> {
        self.update_in_transaction()
            .update_expression("REMOVE #token, #until")
            .expression_attribute_names("#until", "lease_until")
            .build()
            .map_err(Error::internal)
    }

    /// A change of the row as part of a transaction, which fails if the lease is no longer ours; it stays held. What changes
    /// is for the caller to add.
    pub(crate) fn update_in_transaction(&self) -> UpdateBuilder {
        Update::builder()
            .table_name(&self.table)
            .set_key(Some(self.key.clone()))
            .condition_expression("#token = :token")
            .expression_attribute_names("#token", "lease_token")
            .expression_attribute_values(":token", text(&self.token))
    }

    /// Makes a transaction fail if the lease is no longer ours; it stays held.
    pub(crate) fn held_in_transaction(&self) -> Result<ConditionCheck> {
        ConditionCheck::builder()
            .table_name(&self.table)
            .set_key(Some(self.key.clone()))
            .condition_expression("#token = :token")
            .expression_attribute_names("#token", "lease_token")
            .expression_attribute_values(":token", text(&self.token))
            .build()
            .map_err(Error::internal)
    }
}
