//! The connection to DynamoDB, and what every table needs of it.

use std::collections::HashMap;

use aws_config::SdkConfig;
use aws_sdk_dynamodb::{
    Client,
    config::Builder,
    error::{ProvideErrorMetadata, SdkError},
    types::AttributeValue,
};
use serde::de::DeserializeOwned;

use super::table::Table;
use crate::{Error, Result, clients};

pub(super) type Item = HashMap<String, AttributeValue>;

/// DynamoDB, and the prefix of this stack's tables. Cloning shares the connection.
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

    /// A table by its name without the prefix.
    pub(super) fn table(&self, name: &str) -> Table {
        Table::new(self.client.clone(), format!("{}{name}", self.prefix))
    }
}

/// What a failed call means to us: throttled and unreachable are outages, everything else is our own fault.
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

pub(super) fn from_item<T: DeserializeOwned>(item: Item) -> Result<T> {
    serde_dynamo::from_item(item).map_err(Error::internal)
}

/// Decodes the items of a list. Every list of rows is read through here.
pub(super) fn rows<T: DeserializeOwned>(items: Vec<Item>) -> Result<Vec<T>> {
    items.into_iter().map(from_item).collect()
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

/// A set of texts; DynamoDB has no empty ones.
pub(super) fn texts<T: ToString>(values: impl IntoIterator<Item = T>) -> AttributeValue {
    AttributeValue::Ss(values.into_iter().map(|value| value.to_string()).collect())
}

/// The key of a row.
pub(super) fn key<const N: usize>(parts: [(&str, AttributeValue); N]) -> Item {
    parts.map(|(name, value)| (name.to_owned(), value)).into()
}

/// The key of a row in a table whose key is `id`.
pub(super) fn id(value: impl ToString) -> Item {
    key([("id", text(value))])
}

pub(super) fn to_attribute<T: serde::Serialize>(value: &T) -> Result<AttributeValue> {
    serde_dynamo::to_attribute_value(value).map_err(Error::internal)
}
