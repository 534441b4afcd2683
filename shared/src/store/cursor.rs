//! Paging of lists.

use std::{
    fmt::{self, Display},
    str::FromStr,
};

use aws_sdk_dynamodb::types::AttributeValue;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::{Serialize, de::DeserializeOwned};

use super::{
    database::{Item, key, number, rows, text},
    table::{Query, Table, Values},
};
use crate::{
    Error, Result,
    models::{CallId, OrganizationId, Timestamp},
};

/// DynamoDB drops expired rows up to two days late.
const KEPT: &str = "(attribute_not_exists(#expires_at) OR #expires_at > :now)";

/// A page of a list in order of creation.
#[derive(Debug, Clone)]
pub struct CreatedFilter {
    pub limit: i32,
    /// The last item of the previous page.
    pub after: Option<Cursor>,
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
}

#[derive(Debug, Serialize)]
pub struct Page<T> {
    pub items: Vec<T>,
    pub next_cursor: Option<String>,
}

impl<T> Page<T> {
    pub fn map<S>(self, show: impl FnMut(T) -> S) -> Page<S> {
        Page { items: self.items.into_iter().map(show).collect(), next_cursor: self.next_cursor }
    }
}

impl<T: DeserializeOwned> Page<T> {
    /// A page of the organization's rows, newest first.
    pub(super) async fn newest(
        organization: OrganizationId,
        table: &Table,
        after: Option<&Cursor>,
        limit: i32,
    ) -> Result<Self> {
        Self::newest_from(organization, table, after.map(|cursor| cursor.start_key(organization)), limit).await
    }

    /// Like [`Page::newest`], for a table with another key.
    pub(super) async fn newest_from(
        organization: OrganizationId,
        table: &Table,
        start: Option<Item>,
        limit: i32,
    ) -> Result<Self> {
        let now = number(Timestamp::now().as_seconds());
        let newest = table.of_organization(organization).newest_first().filter(KEPT).with([(":now", now)]);
        Ok(Self::created(newest.page(start, Some(limit)).await?))
    }

    /// A page of `query`, whose condition ends with `#created_at BETWEEN :since AND :until`, newest first. `filters` are
    /// DynamoDB's, and all must hold. `key`: the index's partition, and other members of the table's key.
    pub(super) async fn filtered<const N: usize>(
        organization: OrganizationId,
        query: Query,
        wanted: &CreatedFilter,
        filters: Filters,
        key: [(&str, AttributeValue); N],
    ) -> Result<Self> {
        // Before and after every time.
        const EARLIEST: &str = "0";
        const LATEST: &str = "a";
        let edge = |at: Option<Timestamp>, open: &str| at.map_or_else(|| open.to_owned(), |at| at.to_string());
        let is_filtered = !filters.0.is_empty();
        let (since, until) = (edge(wanted.since, EARLIEST), edge(wanted.until, LATEST));
        if let Some(Cursor(place)) = &wanted.after
            && !begins_within(&place.at, &since, &until)?
        {
            return Ok(Self::empty());
        }
        let query = query.newest_first().filter(KEPT).with([
            (":organization", text(organization)),
            (":now", number(Timestamp::now().as_seconds())),
            (":since", text(since)),
            (":until", text(until)),
        ]);
        let query = filters.0.into_iter().fold(query, Query::filter).with_all(filters.1);
        let start = wanted.after.as_ref().map(|cursor| cursor.start_key_of(key));
        Ok(Self::created(query.filled(start, wanted.limit, is_filtered).await?))
    }

    const fn empty() -> Self {
        Self { items: Vec::new(), next_cursor: None }
    }

    /// Rows in order of creation; `next` is DynamoDB's key of the last one.
    pub(super) fn created((items, next): (Vec<Item>, Option<Item>)) -> Self {
        let next = next.as_ref().and_then(Cursor::after);
        Self { items: rows(items), next_cursor: next.map(|next| next.to_string()) }
    }
}

/// Whether a page that begins at this place has anything left, newest first: nothing is left before `since`. DynamoDB refuses a
/// start outside the key condition.
///
/// # Errors
/// [`Error::Invalid`] for `cursor` if the place is later than `until`.
pub(super) fn begins_within(place: &str, since: &str, until: &str) -> Result<bool> {
    if place > until {
        let why = "is later than until, so it is of another list; leave it out to begin with the first page";
        return Err(Error::invalid("cursor", why));
    }
    Ok(place >= since)
}

#[derive(Default)]
pub(super) struct Filters(Vec<String>, Values);

impl Filters {
    pub(super) fn and<const N: usize>(mut self, filter: &str, values: [(&str, AttributeValue); N]) -> Self {
        self.0.push(format!("({filter})"));
        self.1.extend(values.map(|(placeholder, value)| (placeholder.to_owned(), value)));
        self
    }

    /// Items whose attribute has this value, if one is wanted.
    pub(super) fn equal(self, name: &str, wanted: Option<AttributeValue>) -> Self {
        match wanted {
            None => self,
            Some(value) => self.and(&format!("#{name} = :{name}"), [(&*format!(":{name}"), value)]),
        }
    }
}

/// Characters. DynamoDB refuses a start whose key has more than 1,024 bytes.
const LONGEST_CURSOR: usize = 1_200;

/// The start of a page, opaque to clients: base64 of the previous item's place. Without an organization in it, it opens no other
/// tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor<P = CreatedAt>(pub P);

impl<P: FromStr> Cursor<P> {
    /// # Errors
    /// [`Error::Invalid`] for `cursor` if the text is not a cursor of ours.
    pub fn parse(text: &str) -> Result<Self> {
        Self::parse_or(text, "is not a cursor from next_cursor of an earlier page")
    }

    /// Like [`Cursor::parse`], with `wrong` as the error's text.
    ///
    /// # Errors
    /// [`Error::Invalid`] for `cursor`.
    pub fn parse_or(text: &str, wrong: &str) -> Result<Self> {
        let text = Some(text).filter(|text| text.len() <= LONGEST_CURSOR);
        let plain = text
            .and_then(|text| BASE64_URL_SAFE_NO_PAD.decode(text).ok())
            .and_then(|bytes| String::from_utf8(bytes).ok());
        let place = plain.and_then(|plain| plain.parse().ok());
        place.map(Self).ok_or_else(|| Error::invalid("cursor", wrong))
    }
}

impl<P: Display> Display for Cursor<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&BASE64_URL_SAFE_NO_PAD.encode(self.0.to_string()))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreatedAt {
    at: String,
    id: String,
}

impl Display for CreatedAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.at, self.id)
    }
}

impl FromStr for CreatedAt {
    type Err = NotAPlace;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (at, id) = text.split_once(' ').ok_or(NotAPlace)?;
        at.parse::<Timestamp>().map_err(|_no_time| NotAPlace)?;
        // The widest id type: a call's id is VAPI's and need not be a UUID.
        id.parse::<CallId>().map_err(|_not_an_id| NotAPlace)?;
        Ok(Self { at: at.to_owned(), id: id.to_owned() })
    }
}

#[derive(Debug, PartialEq, Eq)]
pub struct NotAPlace;

impl Cursor {
    pub(super) fn start_key(&self, organization: OrganizationId) -> Item {
        self.start_key_of([("organization_id", text(organization))])
    }

    pub(super) fn start_key_of<const N: usize>(&self, others: [(&str, AttributeValue); N]) -> Item {
        let CreatedAt { at, id } = &self.0;
        let mut start = key(others);
        start.extend(key([("created_at", text(at)), ("id", text(id))]));
        start
    }

    pub(super) fn at(created_at: Timestamp, id: &impl ToString) -> Self {
        Self(CreatedAt { at: created_at.to_string(), id: id.to_string() })
    }

    pub(super) fn after(key: &Item) -> Option<Self> {
        let text = |name: &str| key.get(name)?.as_s().ok().cloned();
        Some(Self(CreatedAt { at: text("created_at")?, id: text("id")? }))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_text_is_a_cursor_or_a_problem_never_a_panic(text in "\\PC{0,60}") {
            let _ = Cursor::<CreatedAt>::parse(&text);
        }
    }

    #[test]
    fn a_cursor_survives_the_round_trip() {
        let organization = OrganizationId::generate();
        let id = crate::models::ToolId::generate().to_string();
        let cursor = Cursor(CreatedAt { at: "2026-11-20T16:20:52.123Z".into(), id });
        let encoded = Cursor::after(&cursor.start_key(organization)).unwrap().to_string();
        assert_eq!(Cursor::parse(&encoded).unwrap(), cursor);
    }
}
