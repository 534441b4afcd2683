//! Pages of a list.

use std::fmt;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::{Serialize, de::DeserializeOwned};

use super::{
    database::{Item, key, number, rows, text},
    table::Table,
};
use crate::{
    Error, Result,
    models::{OrganizationId, Timestamp},
};

/// A page of a list: `{"items": […], "next_cursor": "…" | null}`.
#[derive(Debug, Serialize)]
pub struct Page<T> {
    pub items: Vec<T>,
    pub next_cursor: Option<String>,
}

impl<T> Page<T> {
    /// The same page, each item as `show` shows it.
    pub fn map<S>(self, show: impl FnMut(T) -> S) -> Page<S> {
        Page { items: self.items.into_iter().map(show).collect(), next_cursor: self.next_cursor }
    }
}

impl<T: DeserializeOwned> Page<T> {
    /// A page of what an organization has, newest first, by the table's index `by_organization`. Rows whose time is over are
    /// not shown: DynamoDB drops them up to two days late.
    pub(super) async fn newest(
        organization: OrganizationId,
        table: &Table,
        after: Option<&Cursor>,
        limit: i32,
    ) -> Result<Self> {
        Self::newest_from(organization, table, after.map(|cursor| cursor.start_key(organization)), limit).await
    }

    /// As [`Page::newest`], of a table with a key of its own shape.
    pub(super) async fn newest_from(
        organization: OrganizationId,
        table: &Table,
        start: Option<Item>,
        limit: i32,
    ) -> Result<Self> {
        let newest = table.query_index("by_organization", "#organization_id = :organization").newest_first();
        let kept = newest.filter("attribute_not_exists(#expires_at) OR #expires_at > :now");
        let values = [(":organization", text(organization)), (":now", number(Timestamp::now().as_seconds()))];
        let (items, next) = kept.with(values).page(start, Some(limit)).await?;
        Ok(Self { items: rows(items), next_cursor: next.as_ref().and_then(Cursor::after) })
    }
}

/// Where a page begins, opaque to the reader. It holds no organization: a cursor handed to another tenant opens nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    created_at: String,
    id: String,
}

impl Cursor {
    /// # Errors
    /// [`Error::Invalid`] for `cursor` when the text is no cursor of ours.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = || Error::invalid("cursor", "is not a cursor from next_cursor of an earlier page");
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).map_err(|_not_base64| wrong())?;
        let plain = String::from_utf8(bytes).map_err(|_not_text| wrong())?;
        let (created_at, id) = plain.split_once(' ').ok_or_else(wrong)?;
        // The widest of the ids that rows have; a call's is VAPI's, and need not be a UUID.
        id.parse::<crate::models::CallId>().map_err(|_not_an_id| wrong())?;
        Ok(Self { created_at: created_at.to_owned(), id: id.to_owned() })
    }

    /// The start key of the index `by_organization`.
    pub(super) fn start_key(&self, organization: OrganizationId) -> Item {
        key([("organization_id", text(organization)), ("created_at", text(&self.created_at)), ("id", text(&self.id))])
    }

    /// The cursor of the page that follows the one that ended at `key`.
    pub(super) fn at(key: &Item) -> Option<Self> {
        let text = |name: &str| key.get(name)?.as_s().ok().cloned();
        Some(Self { created_at: text("created_at")?, id: text("id")? })
    }

    /// As [`Cursor::at`], as text.
    pub(super) fn after(key: &Item) -> Option<String> {
        Self::at(key).map(|cursor| cursor.to_string())
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&BASE64_URL_SAFE_NO_PAD.encode(format!("{} {}", self.created_at, self.id)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_text_is_a_cursor_or_a_problem_never_a_panic(text in "\\PC{0,60}") {
            let _ = Cursor::parse(&text);
        }
    }

    #[test]
    fn a_cursor_survives_the_round_trip() {
        let organization = OrganizationId::generate();
        let id = crate::models::ToolId::generate().to_string();
        let cursor = Cursor { created_at: "2026-11-20T16:20:52.123Z".into(), id };
        let encoded = Cursor::after(&cursor.start_key(organization)).unwrap();
        assert_eq!(Cursor::parse(&encoded).unwrap(), cursor);
    }
}
