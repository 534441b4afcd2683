//! Writes: one row under a condition, or several rows in one transaction.

use aws_sdk_dynamodb::{
    Client,
    error::{ProvideErrorMetadata, SdkError},
    operation::{transact_write_items::TransactWriteItemsError, update_item::UpdateItemError},
    types::{
        AttributeValue, ConditionCheck, Delete, Put, ReturnValue, ReturnValuesOnConditionCheckFailure,
        TransactWriteItem, Update,
    },
};
use serde::{Serialize, de::DeserializeOwned};

use super::{
    database::{Item, failed, from_item, to_item},
    table::{Names, Table, Values, aliased},
};
use crate::{Error, Result};

/// A write of one row, to be sent by itself or in a transaction.
#[derive(Clone)]
pub(super) struct Write {
    table: Table,
    action: Action,
    condition: Option<String>,
    /// Names whose aliases are not their own.
    names: Names,
    values: Values,
}

#[derive(Clone)]
enum Action {
    Put(Item),
    /// The key, and the update expression.
    Update(Item, String),
    Delete(Item),
    Check(Item),
}

/// What became of a conditional update.
pub(super) enum Attempt {
    /// It happened; the row as it is now.
    Done(Item),
    /// The condition did not hold; the row as it is, empty if there is none.
    Refused(Item),
}

/// The table of a write and its condition.
struct Rule {
    table: String,
    condition: Option<String>,
    names: Option<Names>,
    values: Option<Values>,
}

/// Sets them in one of the SDK's requests, which share these methods and no trait.
macro_rules! conditional {
    ($request:expr, $rule:ident) => {
        $request
            .table_name($rule.table)
            .set_condition_expression($rule.condition)
            .set_expression_attribute_names($rule.names)
            .set_expression_attribute_values($rule.values)
    };
}

impl Table {
    /// Writes a whole row. A column that is null in an answer is none in the table: an index takes no null for a key.
    pub(super) fn put<T: Serialize>(&self, row: &T) -> Result<Write> {
        let mut item = to_item(row)?;
        item.retain(|_, value| !value.is_null());
        Ok(self.put_item(item))
    }

    pub(super) fn put_item(&self, item: Item) -> Write {
        self.write(Action::Put(item))
    }

    /// Changes a row by an update expression.
    pub(super) fn update(&self, key: Item, change: impl Into<String>) -> Write {
        self.write(Action::Update(key, change.into()))
    }

    pub(super) fn delete(&self, key: Item) -> Write {
        self.write(Action::Delete(key))
    }

    /// Writes nothing, but makes a transaction fail unless the condition holds for the row.
    pub(super) fn check(&self, key: Item) -> Write {
        self.write(Action::Check(key))
    }

    fn write(&self, action: Action) -> Write {
        Write { table: self.clone(), action, condition: None, names: Names::new(), values: Values::new() }
    }
}

/// The update that sets every attribute of `row` but its `id`, and removes those of `optional` that it lacks, or that are null. What else the
/// row in the table holds stays, because a newer version may have written it.
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

impl Write {
    /// The condition under which it happens.
    pub(super) fn when(self, condition: impl Into<String>) -> Self {
        Self { condition: Some(condition.into()), ..self }
    }

    pub(super) fn with<const N: usize>(mut self, values: [(&str, AttributeValue); N]) -> Self {
        self.values.extend(values.map(|(placeholder, value)| (placeholder.to_owned(), value)));
        self
    }

    pub(super) fn with_all(mut self, values: Values) -> Self {
        self.values.extend(values);
        self
    }

    /// Goes on with the expression of an update.
    pub(super) fn and(mut self, more: &str) -> Self {
        if let Action::Update(_, change) = &mut self.action {
            change.push_str(more);
        }
        self
    }

    /// Gives a name an alias that is not its own.
    pub(super) fn alias(mut self, alias: &str, name: &str) -> Self {
        self.names.insert(alias.to_owned(), name.to_owned());
        self
    }

    /// Sends a write without a condition, or with one that always holds.
    pub(super) async fn send(self) -> Result<()> {
        if self.unless_refused().await? { Ok(()) } else { Err(Error::internal("a write was refused by its condition")) }
    }

    /// False if the condition did not hold, so that nothing was written.
    pub(super) async fn unless_refused(self) -> Result<bool> {
        Ok(matches!(Box::pin(self.sent(false)).await?, Attempt::Done(_)))
    }

    /// The row as an update leaves it; `None` if the condition did not hold.
    pub(super) async fn updated<T: DeserializeOwned>(self) -> Result<Option<T>> {
        match self.attempt().await? {
            Attempt::Done(item) => from_item(item).map(Some),
            Attempt::Refused(_) => Ok(None),
        }
    }

    /// Sends an update, and gives the row that it leaves or that refused it.
    pub(super) async fn attempt(self) -> Result<Attempt> {
        Box::pin(self.sent(true)).await
    }

    async fn sent(self, with_row: bool) -> Result<Attempt> {
        let (client, action, rule) = self.split();
        match action {
            Action::Put(item) => {
                let sent = conditional!(client.put_item().set_item(Some(item)), rule).send().await;
                sent.map_or_else(refused, |_| Ok(Attempt::Done(Item::new())))
            }
            Action::Delete(key) => {
                let sent = conditional!(client.delete_item().set_key(Some(key)), rule).send().await;
                sent.map_or_else(refused, |_| Ok(Attempt::Done(Item::new())))
            }
            Action::Update(key, change) => {
                let update = conditional!(client.update_item().set_key(Some(key)).update_expression(change), rule);
                let update = update
                    .set_return_values(with_row.then_some(ReturnValue::AllNew))
                    .set_return_values_on_condition_check_failure(
                        with_row.then_some(ReturnValuesOnConditionCheckFailure::AllOld),
                    );
                match update.send().await {
                    Ok(updated) => Ok(Attempt::Done(updated.attributes.unwrap_or_default())),
                    Err(error) => match error.as_service_error() {
                        Some(UpdateItemError::ConditionalCheckFailedException(found)) => {
                            Ok(Attempt::Refused(found.item.clone().unwrap_or_default()))
                        }
                        _ => Err(failed(error)),
                    },
                }
            }
            Action::Check(_) => Err(Error::internal("a check can only be part of a transaction")),
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
        let Table { client, name } = self.table;
        (client, self.action, Rule { table: name, condition: self.condition, names, values })
    }
}

/// What a put or a deletion that failed means.
fn refused<E>(error: SdkError<E>) -> Result<Attempt>
where
    E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
{
    if error.code() == Some("ConditionalCheckFailedException") {
        Ok(Attempt::Refused(Item::new()))
    } else {
        Err(failed(error))
    }
}

/// Why a transaction did not happen.
pub(super) enum Refused {
    /// The condition of the write at this place, counted from 0, did not hold.
    Condition(usize),
    /// Another change of the same rows was under way, or there were too many requests: it may succeed when repeated.
    Busy(Error),
    Other(Error),
}

impl Refused {
    /// A [`Error::Conflict`] with this sentence, whichever condition it was.
    pub(super) fn or(self, conflict: &str) -> Error {
        match self {
            Self::Condition(_) => Error::Conflict(conflict.into()),
            Self::Busy(error) | Self::Other(error) => error,
        }
    }
}

/// All of these writes, or none. Sent again by the SDK, they happen once.
pub(super) async fn transact(writes: Vec<Write>) -> Result<(), Refused> {
    let Some(client) = writes.first().map(|write| write.table.client.clone()) else { return Ok(()) };
    let actions = writes.into_iter().map(Write::into_action).collect::<Result<_>>().map_err(Refused::Other)?;
    let sent = Box::pin(client.transact_write_items().set_transact_items(Some(actions)).send()).await;
    let Err(error) = sent else {
        return Ok(());
    };
    Err(match error.as_service_error() {
        Some(TransactWriteItemsError::TransactionCanceledException(cancelled)) => {
            let reasons = cancelled.cancellation_reasons();
            match reasons.iter().position(|reason| reason.code() == Some("ConditionalCheckFailed")) {
                Some(place) => Refused::Condition(place),
                None => Refused::Busy(Error::Unavailable("the database", Box::new(error))),
            }
        }
        _ => Refused::Other(failed(error)),
    })
}

/// As [`transact`]; false if one of the conditions did not hold.
pub(super) async fn transact_unless_refused(writes: Vec<Write>) -> Result<bool> {
    match transact(writes).await {
        Ok(()) => Ok(true),
        Err(Refused::Condition(_)) => Ok(false),
        Err(Refused::Busy(error) | Refused::Other(error)) => Err(error),
    }
}
