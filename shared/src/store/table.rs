//! Reads of a table. `write.rs` has the writes.
//!
//! Expressions are DynamoDB's own. Every name in them is an alias, `#` and the attribute's name (`#lease_until`); the aliases
//! DynamoDB requires are derived from the expression.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    time::Duration,
};

use aws_sdk_dynamodb::{
    Client,
    types::{AttributeValue, KeysAndAttributes},
};
use serde::de::DeserializeOwned;

use super::database::{Item, failed, from_item, id, owned, rows, text};
use crate::{Deadline, Error, Result, backoff::Backoff, models::OrganizationId};

/// DynamoDB takes 100 keys per batch.
const BATCH: usize = 100;
/// Before unprocessed keys are requested again.
const PAUSE: Duration = Duration::from_millis(25);
const LONGEST_PAUSE: Duration = Duration::from_millis(800);
/// Pages read to fill one page of a filtered list, and items read for each.
const MOST_READS: usize = 5;
const LARGEST_READ: i32 = 200;

pub(super) const OF_ORGANIZATION: &str = "#organization_id = :organization";

#[derive(Debug, Clone)]
pub(super) struct Table {
    pub(super) client: Client,
    pub(super) name: String,
    prefix: String,
}

pub(super) type Names = HashMap<String, String>;
pub(super) type Values = HashMap<String, AttributeValue>;

impl Table {
    pub(super) fn new(client: Client, prefix: &str, name: &str) -> Self {
        Self { client, name: format!("{prefix}{name}"), prefix: prefix.to_owned() }
    }

    pub(super) fn beside(&self, name: &str) -> Self {
        Self::new(self.client.clone(), &self.prefix, name)
    }

    /// An eventually consistent read.
    pub(super) async fn get<T: DeserializeOwned>(&self, key: Item) -> Result<Option<T>> {
        self.read(key, false).await
    }

    pub(super) async fn get_consistent<T: DeserializeOwned>(&self, key: Item) -> Result<Option<T>> {
        self.read(key, true).await
    }

    /// The organization's row under a key, read consistently.
    ///
    /// # Errors
    /// [`Error::NotFound`] (`what`) if the row is missing or another organization's.
    pub(super) async fn owned<T: DeserializeOwned>(
        &self,
        organization: OrganizationId,
        key: Item,
        what: &'static str,
    ) -> Result<T> {
        owned(organization, self.item(key, true).await?, what)
    }

    async fn read<T: DeserializeOwned>(&self, key: Item, consistent: bool) -> Result<Option<T>> {
        self.item(key, consistent).await?.map(from_item).transpose()
    }

    pub(super) async fn item(&self, key: Item, consistent: bool) -> Result<Option<Item>> {
        let get = self.client.get_item().table_name(&self.name).set_key(Some(key)).consistent_read(consistent);
        Ok(Box::pin(get.send()).await.map_err(failed)?.item)
    }

    /// The existing rows under these keys, each once, read consistently and unordered; with `attributes` (`#id, #created_at`)
    /// only these. Retries keys that DynamoDB leaves unprocessed.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if some are still unprocessed at `deadline`.
    pub(super) async fn batch_get(
        &self,
        keys: Vec<Item>,
        attributes: Option<&str>,
        deadline: Deadline,
    ) -> Result<Vec<Item>> {
        let mut found = Vec::new();
        for batch in distinct(keys).chunks(BATCH) {
            let mut backoff = Backoff::new(PAUSE, LONGEST_PAUSE, deadline);
            let mut left = batch.to_vec();
            loop {
                let keys = KeysAndAttributes::builder()
                    .set_keys(Some(left))
                    .consistent_read(true)
                    .set_projection_expression(attributes.map(str::to_owned))
                    .set_expression_attribute_names(aliased(attributes));
                let keys = keys.build().map_err(Error::internal)?;
                let answer = Box::pin(self.client.batch_get_item().request_items(&self.name, keys).send()).await;
                let answer = answer.map_err(failed)?;
                let items = answer.responses.and_then(|mut tables| tables.remove(&self.name));
                found.extend(items.unwrap_or_default());
                let unprocessed = answer.unprocessed_keys.and_then(|mut tables| tables.remove(&self.name));
                left = unprocessed.map(|unprocessed| unprocessed.keys).unwrap_or_default();
                if left.is_empty() {
                    break;
                }
                if !backoff.pause().await {
                    let cause =
                        format!("{} of {} keys were still unprocessed at the deadline", left.len(), batch.len());
                    return Err(Error::Unavailable("the database", cause.into()));
                }
            }
        }
        Ok(found)
    }

    /// `condition`: on the table's key (`#id = :id`).
    pub(super) fn query(&self, condition: &'static str) -> Query {
        Query { condition: Some(condition), ..self.scan() }
    }

    /// `condition`: on the index's key.
    pub(super) fn query_index(&self, index: &'static str, condition: &'static str) -> Query {
        Query { index: Some(index), ..self.query(condition) }
    }

    /// By the index `by_organization`: `organization_id`, and in most tables `created_at`.
    pub(super) fn of_organization(&self, organization: OrganizationId) -> Query {
        self.query_index("by_organization", OF_ORGANIZATION).with([(":organization", text(organization))])
    }

    pub(super) fn scan(&self) -> Query {
        Query {
            table: self.clone(),
            index: None,
            condition: None,
            filter: None,
            attributes: None,
            values: Values::new(),
            consistent: false,
            newest_first: false,
        }
    }
}

/// A query, or without a condition a scan.
pub(super) struct Query {
    table: Table,
    index: Option<&'static str>,
    condition: Option<&'static str>,
    filter: Option<String>,
    attributes: Option<&'static str>,
    values: Values,
    consistent: bool,
    newest_first: bool,
}

impl Query {
    /// Applied after reading: filtered rows count towards `limit`. Several filters must all hold.
    pub(super) fn filter(self, filter: impl Into<String>) -> Self {
        let filter = both(self.filter.as_deref(), filter.into());
        Self { filter: Some(filter), ..self }
    }

    pub(super) fn of(self, organization: OrganizationId) -> Self {
        self.filter(OF_ORGANIZATION).with([(":organization", text(organization))])
    }

    pub(super) fn with<const N: usize>(mut self, values: [(&str, AttributeValue); N]) -> Self {
        self.values.extend(values.map(|(placeholder, value)| (placeholder.to_owned(), value)));
        self
    }

    pub(super) fn with_all(mut self, values: Values) -> Self {
        self.values.extend(values);
        self
    }

    pub(super) fn attributes(self, attributes: &'static str) -> Self {
        Self { attributes: Some(attributes), ..self }
    }

    /// Strongly consistent; not for an index.
    pub(super) fn now(self) -> Self {
        Self { consistent: true, ..self }
    }

    pub(super) fn newest_first(self) -> Self {
        Self { newest_first: true, ..self }
    }

    pub(super) async fn items(&self) -> Result<Vec<Item>> {
        let mut all = Vec::new();
        self.each_page(|items| {
            all.extend(items);
            Ok(())
        })
        .await?;
        Ok(all)
    }

    pub(super) async fn collect<T: DeserializeOwned>(&self) -> Result<Vec<T>> {
        let mut all = Vec::new();
        self.each_page(|items| {
            all.extend(rows(items));
            Ok(())
        })
        .await?;
        Ok(all)
    }

    /// Passes every page to `take`, one in memory at a time.
    pub(super) async fn each_page(&self, mut take: impl FnMut(Vec<Item>) -> Result<()>) -> Result<()> {
        let mut start = None;
        loop {
            let (items, next) = self.page(start, None).await?;
            take(items)?;
            if next.is_none() {
                return Ok(());
            }
            start = next;
        }
    }

    pub(super) async fn first<T: DeserializeOwned>(&self) -> Result<Option<T>> {
        self.first_item().await?.map(from_item).transpose()
    }

    pub(super) async fn first_item(&self) -> Result<Option<Item>> {
        let (items, _) = self.page(None, Some(1)).await?;
        Ok(items.into_iter().next())
    }

    /// The items of one page and the key to continue after. At most `limit` items are read before filtering.
    pub(super) async fn page(&self, start: Option<Item>, limit: Option<i32>) -> Result<(Vec<Item>, Option<Item>)> {
        let Table { client, name, .. } = &self.table;
        let names = aliased([self.condition, self.filter.as_deref(), self.attributes].into_iter().flatten());
        let values = Some(self.values.clone()).filter(|values| !values.is_empty());
        let Some(condition) = self.condition else {
            let scan = client
                .scan()
                .table_name(name)
                .set_filter_expression(self.filter.clone())
                .set_expression_attribute_names(names)
                .set_expression_attribute_values(values)
                .consistent_read(self.consistent)
                .set_exclusive_start_key(start)
                .set_limit(limit);
            let found = Box::pin(scan.send()).await.map_err(failed)?;
            return Ok((found.items.unwrap_or_default(), found.last_evaluated_key));
        };
        let query = client
            .query()
            .table_name(name)
            .set_index_name(self.index.map(str::to_owned))
            .key_condition_expression(condition)
            .set_filter_expression(self.filter.clone())
            .set_projection_expression(self.attributes.map(str::to_owned))
            .set_expression_attribute_names(names)
            .set_expression_attribute_values(values)
            .consistent_read(self.consistent)
            .scan_index_forward(!self.newest_first)
            .set_exclusive_start_key(start)
            .set_limit(limit);
        let found = Box::pin(query.send()).await.map_err(failed)?;
        Ok((found.items.unwrap_or_default(), found.last_evaluated_key))
    }

    /// A page of the rows of a table keyed by `id`, and the id to continue after. Unreadable rows are reported and skipped.
    pub(super) async fn rows_after<T: DeserializeOwned>(
        &self,
        after: Option<&str>,
        limit: i32,
    ) -> Result<(Vec<T>, Option<String>)> {
        let (items, next) = self.page(after.map(id), Some(limit)).await?;
        let next = next.and_then(|key| key.get("id")?.as_s().ok().cloned());
        Ok((rows(items), next))
    }

    /// A page of a list and the item to continue after. Where filters leave out many items, further ones are read, within bounds:
    /// the page may be short although more follow.
    pub(super) async fn filled(
        &self,
        mut start: Option<Item>,
        limit: i32,
        is_filtered: bool,
    ) -> Result<(Vec<Item>, Option<Item>)> {
        let most = usize::try_from(limit).unwrap_or_default();
        let read = if is_filtered { LARGEST_READ } else { limit };
        let mut items: Vec<Item> = Vec::new();
        for _ in 0..MOST_READS {
            let (found, next) = self.page(start, Some(read)).await?;
            items.extend(found);
            start = next;
            if start.is_none() || items.len() >= most {
                break;
            }
        }
        if items.len() > most {
            items.truncate(most);
            start = items.last().cloned();
        }
        Ok((items, start))
    }
}

/// A condition with `OR` is in parentheses.
pub(super) fn both(before: Option<&str>, condition: String) -> String {
    match before {
        None => condition,
        Some(before) => format!("{before} AND {condition}"),
    }
}

/// DynamoDB refuses a batch with a repeated key.
fn distinct(mut keys: Vec<Item>) -> Vec<Item> {
    let mut seen = HashSet::with_capacity(keys.len());
    let spelled = |key: &Item| {
        let members: BTreeMap<&str, String> =
            key.iter().map(|(name, value)| (&name[..], format!("{value:?}"))).collect();
        format!("{members:?}")
    };
    keys.retain(|key| seen.insert(spelled(key)));
    keys
}

/// The names for the aliases in these expressions; `None` if there are none, as DynamoDB requires.
pub(super) fn aliased<'a>(expressions: impl IntoIterator<Item = &'a str>) -> Option<Names> {
    let after = expressions.into_iter().flat_map(|expression| expression.split('#').skip(1));
    let names: Names = after
        .map(|text| {
            let end = text.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
            let name = end.and_then(|end| text.get(..end)).unwrap_or(text);
            (format!("#{name}"), name.to_owned())
        })
        .collect();
    Some(names).filter(|names| !names.is_empty())
}

/// Interval and limit of the checks of an index after a change.
const APART: Duration = Duration::from_millis(50);
const FOLLOWS_WITHIN: Duration = Duration::from_secs(1);

/// Waits until an index shows a change, so that later reads agree with our answer. `shows` is `None` if the index could not be
/// read.
pub(super) async fn wait_for_index<F: Future<Output = Option<bool>>>(shows: impl Fn() -> F) {
    let mut backoff = Backoff::new(APART, APART, Deadline::after(FOLLOWS_WITHIN));
    while shows().await == Some(false) && backoff.pause().await {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_asked_for_once() {
        let key = |base: &str, id: &str| {
            let members = [("base", base), ("id", id)];
            members.map(|(name, value)| (name.to_owned(), AttributeValue::S(value.to_owned()))).into_iter().collect()
        };
        let keys: Vec<Item> = [("a", "1"), ("b", "1"), ("a", "1"), ("a", "2"), ("b", "1")]
            .into_iter()
            .map(|(base, id)| key(base, id))
            .collect();
        assert_eq!(distinct(keys), [key("a", "1"), key("b", "1"), key("a", "2")]);
    }

    #[test]
    fn names_are_read_off_expressions() {
        let names =
            aliased(["SET #status = :status, #results.#id = :x", "attribute_not_exists(#lease_until) OR #id<:now"]);
        let mut names: Vec<(String, String)> = names.unwrap().into_iter().collect();
        names.sort();
        let named = ["id", "lease_until", "results", "status"].map(|name| (format!("#{name}"), name.to_owned()));
        assert_eq!(names, named);
        assert_eq!(aliased([":a = :b"]), None);
        assert_eq!(aliased([]), None);
    }
}
