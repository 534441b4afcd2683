//! Writes of one row under a condition, or of several rows in one transaction.

use std::time::Duration;

use aws_sdk_dynamodb::{
    Client,
    operation::{
        delete_item::DeleteItemError, put_item::PutItemError, transact_write_items::TransactWriteItemsError,
        update_item::UpdateItemError,
    },
    types::{
        AttributeValue, ConditionCheck, Delete, Put, ReturnValue, ReturnValuesOnConditionCheckFailure,
        TransactWriteItem, Update,
    },
};
use serde::{Serialize, de::DeserializeOwned};

use super::{
    audit,
    database::{Item, failed, from_item, text, to_item},
    table::{Names, OF_ORGANIZATION, Table, Values, aliased, both},
};
use crate::{Deadline, Error, Result, backoff::Backoff, models::OrganizationId};

/// After [`Refused::Busy`].
const PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(80);
const MOST_PAUSES: usize = 5;
const BUSY_FOR: Duration = Duration::from_secs(1);

#[derive(Clone)]
pub(super) struct Write {
    table: Table,
    action: Action,
    condition: Option<String>,
    /// Aliases that differ from `#` and the name.
    names: Names,
    values: Values,
    /// The audit entry, put in the same transaction.
    entry: Option<Item>,
}

#[derive(Clone)]
enum Action {
    Put(Item),
    Update(Item, String),
    Delete(Item),
    Check(Item),
}

pub(super) enum WriteResult {
    Done(Item),
    /// The condition failed; the existing row, or empty if there is none.
    Refused(Item),
}

struct Rule {
    table: String,
    condition: Option<String>,
    names: Option<Names>,
    values: Option<Values>,
}

/// A macro, because the SDK's requests share these methods but no trait.
macro_rules! conditional {
    ($request:expr, $rule:ident) => {
        $request
            .table_name($rule.table)
            .set_condition_expression($rule.condition)
            .set_expression_attribute_names($rule.names)
            .set_expression_attribute_values($rule.values)
    };
}

/// A macro, because the SDK's errors share no trait.
macro_rules! sent {
    ($request:expr, $error:ident) => {
        match $request.send().await {
            Ok(done) => Ok(WriteResult::Done(done.attributes.unwrap_or_default())),
            Err(error) => match error.as_service_error() {
                Some($error::ConditionalCheckFailedException(found)) => {
                    Ok(WriteResult::Refused(found.item.clone().unwrap_or_default()))
                }
                Some($error::TransactionConflictException(_)) => Err(Refused::Busy(failed(error))),
                _ => Err(Refused::Other(failed(error))),
            },
        }
    };
}

impl Table {
    /// Null fields are left out: an index takes no null for a key.
    pub(super) fn put<T: Serialize>(&self, row: &T) -> Result<Write> {
        let mut item = to_item(row)?;
        item.retain(|_, value| !value.is_null());
        Ok(self.put_item(item))
    }

    pub(super) fn put_item(&self, item: Item) -> Write {
        self.write(Action::Put(item))
    }

    pub(super) fn update(&self, key: Item, change: impl Into<String>) -> Write {
        self.write(Action::Update(key, change.into()))
    }

    pub(super) fn delete(&self, key: Item) -> Write {
        self.write(Action::Delete(key))
    }

    pub(super) fn check(&self, key: Item) -> Write {
        self.write(Action::Check(key))
    }

    fn write(&self, action: Action) -> Write {
        Write { table: self.clone(), action, condition: None, names: Names::new(), values: Values::new(), entry: None }
    }
}

/// An update that sets all attributes of `row` but `id`, and removes each attribute of `optional` that is missing or null. Other
/// stored attributes stay: a newer version may have written them.
pub(super) fn set_all(mut row: Item, optional: &[&str]) -> (String, Values) {
    row.retain(|name, value| !(value.is_null() && optional.contains(&name.as_str())));
    let gone: Vec<String> =
        optional.iter().filter(|name| !row.contains_key(**name)).map(|name| format!("#{name}")).collect();
    let row = row.into_iter().filter(|(name, _)| name != "id");
    let (set, values): (Vec<String>, Values) =
        row.map(|(name, value)| (format!("#{name} = :{name}"), (format!(":{name}"), value))).unzip();
    let gone = if gone.is_empty() { String::new() } else { format!(" REMOVE {}", gone.join(", ")) };
    (format!("SET {}{gone}", set.join(", ")), values)
}

pub(super) fn set_only(row: &impl Serialize, required: &[&str], optional: &[&str]) -> Result<(String, Values)> {
    let mut row = to_item(row)?;
    row.retain(|name, _| [required, optional].concat().contains(&name.as_str()));
    Ok(set_all(row, optional))
}

impl Write {
    /// Several conditions must all hold.
    pub(super) fn when(self, condition: impl Into<String>) -> Self {
        let condition = both(self.condition.as_deref(), condition.into());
        Self { condition: Some(condition), ..self }
    }

    pub(super) fn of(self, organization: OrganizationId) -> Self {
        self.when(OF_ORGANIZATION).with([(":organization", text(organization))])
    }

    pub(super) fn with<const N: usize>(mut self, values: [(&str, AttributeValue); N]) -> Self {
        self.values.extend(values.map(|(placeholder, value)| (placeholder.to_owned(), value)));
        self
    }

    pub(super) fn with_all(mut self, values: Values) -> Self {
        self.values.extend(values);
        self
    }

    pub(super) fn and(mut self, more: &str) -> Self {
        if let Action::Update(_, change) = &mut self.action {
            change.push_str(more);
        }
        self
    }

    pub(super) fn alias(mut self, alias: &str, name: &str) -> Self {
        self.names.insert(alias.to_owned(), name.to_owned());
        self
    }

    /// For unconditional writes and conditions that always hold.
    pub(super) async fn send(self) -> Result<()> {
        if self.unless_refused().await? { Ok(()) } else { Err(Error::internal("a write was refused by its condition")) }
    }

    /// False if the condition did not hold.
    pub(super) async fn unless_refused(self) -> Result<bool> {
        Ok(matches!(Box::pin(self.sent(None)).await?, WriteResult::Done(_)))
    }

    /// The updated row; `None` if the condition did not hold.
    pub(super) async fn updated<T: DeserializeOwned>(self) -> Result<Option<T>> {
        match self.attempt().await? {
            WriteResult::Done(item) => from_item(item).map(Some),
            WriteResult::Refused(_) => Ok(None),
        }
    }

    pub(super) async fn attempt(self) -> Result<WriteResult> {
        Box::pin(self.sent(Some(ReturnValue::AllNew))).await
    }

    pub(super) fn along_with(self, entry: Item) -> Self {
        Self { entry: Some(entry), ..self }
    }

    /// Sends a write and its audit entry in one transaction, which returns no row: a wanted row is read afterwards.
    async fn sent_with_entry(self, with_row: bool) -> Result<WriteResult> {
        let row = match &self.action {
            Action::Update(key, _) if with_row => Some((self.table.clone(), key.clone())),
            _ => None,
        };
        let done = transact_unless_refused(vec![self]).await?;
        let item = match row {
            Some((table, key)) => table.item(key, true).await?,
            None => Some(Item::new()),
        };
        match item {
            Some(item) if done => Ok(WriteResult::Done(item)),
            None if done => Err(Error::Conflict("it was changed, and deleted a moment later".into())),
            item => Ok(WriteResult::Refused(item.unwrap_or_default())),
        }
    }

    /// Sends an update and returns the row before it; `None` if the condition did not hold.
    pub(super) async fn replaced<T: DeserializeOwned>(self) -> Result<Option<T>> {
        match self.replacing().await? {
            WriteResult::Done(item) => from_item(item).map(Some),
            WriteResult::Refused(_) => Ok(None),
        }
    }

    /// Sends a write. `Done` has the row before it, empty if there was none.
    pub(super) async fn replacing(self) -> Result<WriteResult> {
        Box::pin(self.sent(Some(ReturnValue::AllOld))).await
    }

    async fn sent(self, row: Option<ReturnValue>) -> Result<WriteResult> {
        if self.entry.is_some() {
            return Box::pin(self.sent_with_entry(row.is_some())).await;
        }
        match self.sent_past_others(row).await {
            Ok(result) => Ok(result),
            Err(Refused::Condition(_)) => Ok(WriteResult::Refused(Item::new())),
            Err(Refused::Busy(error) | Refused::Other(error)) => Err(error),
        }
    }

    /// Like [`Write::attempt`], for a write without an audit entry.
    pub(super) async fn attempt_past_others(self) -> Result<WriteResult, Refused> {
        Box::pin(self.sent_past_others(Some(ReturnValue::AllNew))).await
    }

    async fn sent_past_others(self, row: Option<ReturnValue>) -> Result<WriteResult, Refused> {
        past_others(|| self.clone().sent_once(row.clone())).await
    }

    async fn sent_once(self, row: Option<ReturnValue>) -> Result<WriteResult, Refused> {
        let (client, action, rule) = self.split();
        match action {
            Action::Put(item) => {
                // Puts and deletes can return only the row before them.
                let row = row.filter(|row| *row == ReturnValue::AllOld);
                let put = conditional!(client.put_item().set_item(Some(item)), rule)
                    .set_return_values_on_condition_check_failure(
                        row.is_some().then_some(ReturnValuesOnConditionCheckFailure::AllOld),
                    )
                    .set_return_values(row);
                sent!(put, PutItemError)
            }
            Action::Delete(key) => {
                let row = row.filter(|row| *row == ReturnValue::AllOld);
                let delete = conditional!(client.delete_item().set_key(Some(key)), rule)
                    .set_return_values_on_condition_check_failure(
                        row.is_some().then_some(ReturnValuesOnConditionCheckFailure::AllOld),
                    )
                    .set_return_values(row);
                sent!(delete, DeleteItemError)
            }
            Action::Update(key, change) => {
                let update = conditional!(client.update_item().set_key(Some(key)).update_expression(change), rule)
                    .set_return_values_on_condition_check_failure(
                        row.is_some().then_some(ReturnValuesOnConditionCheckFailure::AllOld),
                    )
                    .set_return_values(row);
                sent!(update, UpdateItemError)
            }
            Action::Check(_) => Err(Refused::Other(Error::internal("a check can only be part of a transaction"))),
        }
    }

    fn into_action(self) -> Result<TransactWriteItem> {
        let (_, action, rule) = self.split();
        let item = TransactWriteItem::builder();
        Ok(match action {
            Action::Put(row) => {
                item.put(conditional!(Put::builder().set_item(Some(row)), rule).build().map_err(Error::internal)?)
            }
            Action::Update(key, change) => {
                let update = conditional!(Update::builder().set_key(Some(key)).update_expression(change), rule);
                item.update(update.build().map_err(Error::internal)?)
            }
            Action::Delete(key) => {
                item.delete(conditional!(Delete::builder().set_key(Some(key)), rule).build().map_err(Error::internal)?)
            }
            Action::Check(key) => {
                let check = conditional!(ConditionCheck::builder().set_key(Some(key)), rule);
                item.condition_check(check.build().map_err(Error::internal)?)
            }
        }
        .build())
    }

    fn split(self) -> (Client, Action, Rule) {
        let change = match &self.action {
            Action::Update(_, change) => change,
            _ => "",
        };
        let mut names = aliased([change, self.condition.as_deref().unwrap_or_default()]);
        if let Some(names) = &mut names {
            names.extend(self.names);
        }
        let values = Some(self.values).filter(|values| !values.is_empty());
        let Table { client, name, .. } = self.table;
        (client, self.action, Rule { table: name, condition: self.condition, names, values })
    }
}

pub(super) enum Refused {
    /// The condition of the write at this position, counted from 0, did not hold.
    Condition(usize),
    /// Conflicting transaction or throttling: a retry may succeed.
    Busy(Error),
    Other(Error),
}

impl Refused {
    /// [`Error::Conflict`] with this text for any failed condition.
    pub(super) fn or(self, conflict: &str) -> Error {
        match self {
            Self::Condition(_) => Error::Conflict(conflict.into()),
            Self::Busy(error) | Self::Other(error) => error,
        }
    }
}

/// All writes or none. The SDK's retries are idempotent.
pub(super) async fn transact(writes: Vec<Write>) -> Result<(), Refused> {
    let Some(client) = writes.first().map(|write| write.table.client.clone()) else { return Ok(()) };
    // After the writes: conditions are identified by position.
    let entries =
        writes.iter().filter_map(|write| Some(write.table.beside(audit::TABLE).put_item(write.entry.clone()?)));
    let entries: Vec<Write> = entries.collect();
    let actions = writes.into_iter().chain(entries).map(Write::into_action);
    let actions = actions.collect::<Result<Vec<_>>>().map_err(Refused::Other)?;
    past_others(|| transact_once(&client, &actions)).await
}

async fn transact_once(client: &Client, actions: &[TransactWriteItem]) -> Result<(), Refused> {
    const BUSY: [&str; 3] = ["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"];
    let request = client.transact_write_items().set_transact_items(Some(actions.to_vec()));
    let Err(error) = Box::pin(request.send()).await else {
        return Ok(());
    };
    let reasons = match error.as_service_error() {
        Some(TransactWriteItemsError::TransactionCanceledException(cancelled)) => cancelled.cancellation_reasons(),
        _ => return Err(Refused::Other(failed(error))),
    };
    let refused = reasons.iter().position(|reason| reason.code() == Some("ConditionalCheckFailed"));
    let is_busy = reasons.iter().filter_map(|reason| reason.code()).any(|code| BUSY.contains(&code));
    Err(match refused {
        Some(place) => Refused::Condition(place),
        None if is_busy => Refused::Busy(Error::Unavailable("the database", Box::new(error))),
        None => Refused::Other(failed(error)),
    })
}

/// Sends again after [`Refused::Busy`], a few times: the SDK does not.
async fn past_others<T, F: Future<Output = Result<T, Refused>>>(send: impl Fn() -> F) -> Result<T, Refused> {
    let mut backoff = Backoff::at_most(MOST_PAUSES, PAUSE, LONGEST_PAUSE, Deadline::after(BUSY_FOR));
    loop {
        let sent = Box::pin(send()).await;
        if !matches!(sent, Err(Refused::Busy(_))) || !backoff.pause().await {
            return sent;
        }
    }
}

/// Like [`transact`]; false if a condition did not hold.
pub(super) async fn transact_unless_refused(writes: Vec<Write>) -> Result<bool> {
    match transact(writes).await {
        Ok(()) => Ok(true),
        Err(Refused::Condition(_)) => Ok(false),
        Err(Refused::Busy(error) | Refused::Other(error)) => Err(error),
    }
}
