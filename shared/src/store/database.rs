//! The connection to DynamoDB, and helpers for all tables.

use std::{any::type_name, collections::HashMap};

use aws_config::SdkConfig;
use aws_sdk_dynamodb::{
    Client,
    config::Builder,
    error::{ProvideErrorMetadata, SdkError},
    types::AttributeValue,
};
use serde::de::DeserializeOwned;

use super::table::Table;
use crate::{Error, Result, clients, models::OrganizationId, telemetry};

pub(super) type Item = HashMap<String, AttributeValue>;

/// DynamoDB and this stack's table prefix. Clones share the connection.
#[derive(Clone)]
pub struct Database {
    client: Client,
    prefix: String,
}

impl Database {
    pub fn connect(aws: &SdkConfig, prefix: impl Into<String>) -> Self {
        let mut config = Builder::from(aws);
        config.set_endpoint_resolver(Some(clients::aws_endpoint(aws, "dynamodb")));
        Self { client: Client::from_conf(config.build()), prefix: prefix.into() }
    }

    /// `name`: without the prefix.
    pub(super) fn table(&self, name: &str) -> Table {
        Table::new(self.client.clone(), &self.prefix, name)
    }
}

/// Throttling and unreachability are outages; all other failures are our own fault.
pub(super) fn failed<E>(error: SdkError<E>) -> Error
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

/// Decodes the fields this version knows; other attributes are skipped.
///
/// # Errors
/// [`Error::Unreadable`]
pub(super) fn from_item<T: DeserializeOwned>(item: Item) -> Result<T> {
    let named = |names: &[&str]| {
        let parts: Vec<&str> =
            names.iter().filter_map(|name| item.get(*name)?.as_s().ok()).map(String::as_str).collect();
        parts.join("/")
    };
    let key = match named(&["id", "part"]) {
        key if key.is_empty() => named(&["user_id", "organization_id", "agent_id", "tool_id", "service_name"]),
        key => key,
    };
    // serde's text may quote the row.
    serde_dynamo::from_item(item).map_err(|_content| unreadable::<T>(&key))
}

/// Decodes the items of a list; unreadable rows are reported and skipped. Not for decisions that depend on completeness.
pub(super) fn rows<T: DeserializeOwned>(items: Vec<Item>) -> Vec<T> {
    let report = |error: &Error| tracing::warn!("a row is left out: {error}");
    items.into_iter().filter_map(|item| from_item(item).inspect_err(report).ok()).collect()
}

/// # Errors
/// [`Error::NotFound`] (`what`) if the row is missing or another organization's.
pub(super) fn owned<T: DeserializeOwned>(
    organization: OrganizationId,
    item: Option<Item>,
    what: &'static str,
) -> Result<T> {
    from_item(item.filter(|item| is_of(item, organization)).ok_or(Error::NotFound(what))?)
}

pub(super) fn is_of(item: &Item, organization: OrganizationId) -> bool {
    item.get("organization_id") == Some(&text(organization))
}

pub(crate) fn unreadable<T>(key: &impl ToString) -> Error {
    let row = type_name::<T>().rsplit("::").next().unwrap_or_default();
    telemetry::unreadable_row(row);
    Error::Unreadable { row, key: key.to_string() }
}

pub(super) fn to_item<T: serde::Serialize>(row: &T) -> Result<Item> {
    serde_dynamo::to_item(row).map_err(Error::internal)
}

#[expect(clippy::needless_pass_by_value, reason = "ids are Copy, and a reference is as good")]
pub(super) fn text(value: impl ToString) -> AttributeValue {
    AttributeValue::S(value.to_string())
}

pub(super) fn number(value: i64) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

/// A set of texts. DynamoDB has no empty sets.
pub(super) fn texts<T: ToString>(values: impl IntoIterator<Item = T>) -> AttributeValue {
    AttributeValue::Ss(values.into_iter().map(|value| value.to_string()).collect())
}

pub(super) fn key<const N: usize>(parts: [(&str, AttributeValue); N]) -> Item {
    parts.map(|(name, value)| (name.to_owned(), value)).into()
}

pub(super) fn id(value: impl ToString) -> Item {
    key([("id", text(value))])
}

pub(super) fn to_attribute<T: serde::Serialize>(value: &T) -> Result<AttributeValue> {
    serde_dynamo::to_attribute_value(value).map_err(Error::internal)
}
