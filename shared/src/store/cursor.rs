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
    table::Table,
};
use crate::{
    Error, Result,
    models::{CallId, OrganizationId, Timestamp},
};

/// A page of a list: `{"items": […], "next_cursor": "…" | null}`.
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
    /// A page of the organization's rows by the index `by_organization`, newest first. Expired rows are filtered: DynamoDB drops
    /// them up to two days late.
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
        let newest = table.query_index("by_organization", "#organization_id = :organization").newest_first();
        let kept = newest.filter("attribute_not_exists(#expires_at) OR #expires_at > :now");
        let values = [(":organization", text(organization)), (":now", number(Timestamp::now().as_seconds()))];
        Ok(Self::created(kept.with(values).page(start, Some(limit)).await?))
    }

    /// Rows in order of creation; `next` is DynamoDB's key of the last one.
    pub(super) fn created((items, next): (Vec<Item>, Option<Item>)) -> Self {
        let next = next.as_ref().and_then(Cursor::after);
        Self { items: rows(items), next_cursor: next.map(|next| next.to_string()) }
    }
}

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
        let plain = BASE64_URL_SAFE_NO_PAD.decode(text).ok().and_then(|bytes| String::from_utf8(bytes).ok());
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
