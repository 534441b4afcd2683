//! The connection to DynamoDB, and what every table needs of it.

use std::{any::type_name, collections::HashMap, time::Duration};

use aws_sdk_dynamodb::{
    Client,
    config::{BehaviorVersion, Region, retry::RetryConfig, timeout::TimeoutConfig},
    error::{ProvideErrorMetadata, SdkError},
    operation::{
        delete_item::DeleteItemError, put_item::PutItemError, transact_write_items::TransactWriteItemsError,
        update_item::UpdateItemError,
    },
    types::{AttributeValue, TransactWriteItem, builders::UpdateBuilder},
};
use serde::de::DeserializeOwned;

use super::organizations::OwnKeysSeen;
use crate::{Error, Result, clients, config::Aws, models::OrganizationId, telemetry};

pub(crate) type Item = HashMap<String, AttributeValue>;

/// DynamoDB, and the prefix of this stack's tables. Cloning shares the connection.
#[derive(Clone)]
pub struct Database {
    pub(crate) client: Client,
    prefix: String,
    pub(super) own_keys_seen: OwnKeysSeen,
}

impl Database {
    /// The SDK sets no time limit of its own: a hanging connection would hold the caller until the function's end.
    pub fn connect(aws: &Aws, prefix: impl Into<String>) -> Self {
        let mut config = aws_sdk_dynamodb::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new(aws.region.clone()))
            .credentials_provider(aws.credentials.clone())
            .http_client(clients::aws_http_client())
            .retry_config(RetryConfig::standard().with_max_attempts(3).with_initial_backoff(Duration::from_millis(50)))
            .timeout_config(
                TimeoutConfig::builder()
                    .connect_timeout(Duration::from_secs(1))
                    .operation_attempt_timeout(Duration::from_millis(1_500))
                    .operation_timeout(Duration::from_secs(5))
                    .build(),
            );
        config.set_endpoint_resolver(Some(clients::aws_endpoint(aws, "dynamodb")));
        Self { client: Client::from_conf(config.build()), prefix: prefix.into(), own_keys_seen: OwnKeysSeen::default() }
    }

    /// The full name of a table.
    pub fn table(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }
}

/// What a failed call means to us: throttled and unreachable are outages, everything else is our own fault.
pub(crate) fn failed<E>(error: SdkError<E>) -> Error
where
    E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
{
    const OUTAGES: [&str; 7] = [
        "InternalServerError",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "ServiceUnavailable",
        "ThrottlingException",
        "TransactionConflictException",
        "TransactionInProgressException",
    ];
    let outage = match &error {
        SdkError::ServiceError(service) => service.err().code().is_none_or(|code| OUTAGES.contains(&code)),
        SdkError::ConstructionFailure(_) => false,
        _ => true,
    };
    if outage { Error::Unavailable("the database", Box::new(error)) } else { Error::internal(error) }
}

/// What this version knows of a row; other attributes are skipped.
///
/// # Errors
/// [`Error::Unreadable`]
pub(crate) fn from_item<T: DeserializeOwned>(item: Item) -> Result<T> {
    let key = ["id", "user_id"].into_iter().find_map(|name| item.get(name)?.as_s().ok().cloned()).unwrap_or_default();
    // serde's text may quote the row.
    serde_dynamo::from_item(item).map_err(|_content| unreadable::<T>(key))
}

/// As [`from_item`], of one row among others: if it cannot be read it is reported and left out, and the others are not held
/// up. Not for a decision that a missing row would turn.
pub(crate) fn readable<T: DeserializeOwned>(item: Item) -> Option<T> {
    from_item(item).inspect_err(|error| tracing::warn!("a row is left out: {error}")).ok()
}

/// As [`from_item`], if the row is the organization's.
///
/// # Errors
/// [`Error::NotFound`] (`what`) if it is not, or is not there.
pub(crate) fn owned<T: DeserializeOwned>(
    organization: OrganizationId,
    item: Option<Item>,
    what: &'static str,
) -> Result<T> {
    from_item(item.filter(|item| is_of(item, organization)).ok_or(Error::NotFound(what))?)
}

pub(crate) fn is_of(item: &Item, organization: OrganizationId) -> bool {
    item.get("organization_id") == Some(&text(organization))
}

/// Counts what is stored under this key and cannot be read as a `T`.
pub(crate) fn unreadable<T>(key: impl ToString) -> Error {
    let row = type_name::<T>().rsplit("::").next().unwrap_or_default();
    telemetry::unreadable_row(row);
    Error::Unreadable { row, key: key.to_string() }
}

/// Sets every attribute of `row` but its `id`, and removes those of `optional` that it lacks. What else the row in the table
/// holds stays, because a newer version may have written it.
pub(crate) fn set_all(mut update: UpdateBuilder, row: Item, optional: &[&str]) -> UpdateBuilder {
    let gone = optional.iter().filter(|name| !row.contains_key(**name)).map(|name| (String::from(*name), None));
    let mut attributes: Vec<_> = gone.collect();
    attributes.extend(row.into_iter().map(|(name, value)| (name, Some(value))));
    let (mut set, mut remove) = (Vec::new(), Vec::new());
    for (index, (name, value)) in attributes.into_iter().filter(|(name, _)| name != "id").enumerate() {
        update = update.expression_attribute_names(format!("#a{index}"), name);
        match value {
            Some(value) => {
                set.push(format!("#a{index} = :a{index}"));
                update = update.expression_attribute_values(format!(":a{index}"), value);
            }
            None => remove.push(format!("#a{index}")),
        }
    }
    let remove = if remove.is_empty() { String::new() } else { format!(" REMOVE {}", remove.join(", ")) };
    update.update_expression(format!("SET {}{remove}", set.join(", ")))
}

pub(crate) fn to_item<T: serde::Serialize>(row: &T) -> Result<Item> {
    serde_dynamo::to_item(row).map_err(Error::internal)
}

#[expect(clippy::needless_pass_by_value, reason = "ids are Copy, and a reference is as good")]
pub(crate) fn text(value: impl ToString) -> AttributeValue {
    AttributeValue::S(value.to_string())
}

pub(crate) fn number(value: i64) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

/// The key of a row in a table whose key is `id`.
pub(crate) fn key(id: impl ToString) -> Item {
    Item::from([("id".to_owned(), text(id))])
}

pub(crate) fn to_attribute<T: serde::Serialize>(value: &T) -> Result<AttributeValue> {
    serde_dynamo::to_attribute_value(value).map_err(Error::internal)
}

/// A write that can be refused by its own condition.
pub(crate) trait ConditionFailure {
    /// The item that made the condition fail, empty when there was none; `None` for any other error.
    fn refused(&self) -> Option<Item>;
}

impl ConditionFailure for PutItemError {
    fn refused(&self) -> Option<Item> {
        match self {
            Self::ConditionalCheckFailedException(refusal) => Some(refusal.item.clone().unwrap_or_default()),
            _ => None,
        }
    }
}

impl ConditionFailure for UpdateItemError {
    fn refused(&self) -> Option<Item> {
        match self {
            Self::ConditionalCheckFailedException(refusal) => Some(refusal.item.clone().unwrap_or_default()),
            _ => None,
        }
    }
}

impl ConditionFailure for DeleteItemError {
    fn refused(&self) -> Option<Item> {
        match self {
            Self::ConditionalCheckFailedException(refusal) => Some(refusal.item.clone().unwrap_or_default()),
            _ => None,
        }
    }
}

/// The item that made the condition fail, or `None` for any other error.
pub(crate) fn condition_failure<E: ConditionFailure>(error: &SdkError<E>) -> Option<Item> {
    error.as_service_error().and_then(ConditionFailure::refused)
}

/// The first action of a transaction whose condition did not hold, counted from 0; `None` for any other error.
pub(crate) fn refused_action(error: &SdkError<TransactWriteItemsError>) -> Option<usize> {
    let Some(TransactWriteItemsError::TransactionCanceledException(cancelled)) = error.as_service_error() else {
        return None;
    };
    cancelled.cancellation_reasons().iter().position(|why| why.code() == Some("ConditionalCheckFailed"))
}

/// What a failed transaction means when none of its conditions was at fault: a cancelled one met another change of the
/// same rows, or too many requests.
pub(crate) fn failed_transaction(error: SdkError<TransactWriteItemsError>) -> Error {
    match error.as_service_error() {
        Some(TransactWriteItemsError::TransactionCanceledException(_)) => {
            Error::Unavailable("the database", Box::new(error))
        }
        _ => failed(error),
    }
}

/// Why a transaction did not happen.
pub(crate) enum Refused {
    /// The condition of the action at this place was not met.
    Condition(usize),
    Other(Error),
}

impl Refused {
    /// A [`Error::Conflict`] with this sentence, whichever condition it was.
    pub(crate) fn or(self, conflict: &str) -> Error {
        match self {
            Self::Condition(_) => Error::Conflict(conflict.into()),
            Self::Other(error) => error,
        }
    }
}

/// All of these, or none.
pub(crate) async fn transact(client: &Client, items: Vec<TransactWriteItem>) -> Result<(), Refused> {
    let Err(error) = client.transact_write_items().set_transact_items(Some(items)).send().await else { return Ok(()) };
    Err(match refused_action(&error) {
        Some(place) => Refused::Condition(place),
        None => Refused::Other(failed_transaction(error)),
    })
}
