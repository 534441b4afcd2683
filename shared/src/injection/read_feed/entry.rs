//! A feed and its entries, in one shape for all formats.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use jiff::Timestamp;
use reqwest::Url;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use crate::{cut::cut, injection::text_of_page};

/// In bytes.
const LONGEST_TITLE: usize = 500;
const LONGEST_SUMMARY: usize = 2_000;
const LONGEST_LINK: usize = 2_000;
const LONGEST_ID: usize = 500;
const LONGEST_NAME: usize = 200;
const LONGEST_DATE: usize = 60;
pub(super) const MOST_CATEGORIES: usize = 10;
/// A feed with more is no feed to poll.
pub(super) const MOST_READ: usize = 5_000;

#[derive(Debug, Default)]
pub(super) struct Feed {
    pub(super) title: String,
    pub(super) link: String,
    pub(super) entries: Vec<Entry>,
}

/// The fields as the feed has them: empty if absent, markup included.
#[derive(Debug, Default)]
pub(super) struct Entry {
    pub(super) id: String,
    pub(super) title: String,
    /// Absolute.
    pub(super) link: String,
    pub(super) published: String,
    pub(super) updated: String,
    pub(super) author: String,
    pub(super) summary: String,
    pub(super) content: String,
    pub(super) categories: Vec<String>,
}

impl Feed {
    /// The answer of the tool, with at most `limit` entries. Entries without a date keep their order, after the others.
    pub(super) fn told(mut self, limit: usize) -> Value {
        self.entries.sort_by_cached_key(|entry| std::cmp::Reverse(entry.moment()));
        let entries: Vec<Value> = self.entries.into_iter().take(limit).map(Entry::told).collect();
        json!({"title": plain(&self.title, LONGEST_TITLE), "link": or_null(self.link, LONGEST_LINK), "entries": entries})
    }
}

impl Entry {
    fn moment(&self) -> Option<Timestamp> {
        moment(&self.published).or_else(|| moment(&self.updated))
    }

    fn told(self) -> Value {
        let id = self.identity();
        let summary = if self.summary.trim().is_empty() { &self.content } else { &self.summary };
        let categories: Vec<Value> =
            self.categories.iter().map(|name| plain(name, LONGEST_NAME)).filter(|name| !name.is_null()).collect();
        json!({
            "id": id,
            "title": plain(&self.title, LONGEST_TITLE),
            "published": date(&self.published),
            "updated": date(&self.updated),
            "author": plain(&self.author, LONGEST_NAME),
            "summary": plain(summary, LONGEST_SUMMARY),
            "categories": categories,
            "link": or_null(self.link, LONGEST_LINK),
        })
    }

    /// Its id, else its link, else a hash of its content. A long one is a hash, because a cut could make two equal.
    fn identity(&self) -> String {
        let named = [self.id.trim(), self.link.as_str()].into_iter().find(|name| !name.is_empty());
        match named {
            Some(name) if name.len() <= LONGEST_ID => name.to_owned(),
            Some(name) => hash(name),
            None => hash(&json!([self.title, self.published, self.summary, self.content]).to_string()),
        }
    }
}

/// A link within the feed, as an absolute address.
pub(super) fn absolute(link: &str, at: &Url) -> String {
    let link = link.trim();
    if link.is_empty() { String::new() } else { at.join(link).map(String::from).unwrap_or_default() }
}

fn hash(text: &str) -> String {
    format!("sha256-{}", BASE64_URL_SAFE_NO_PAD.encode(digest(&SHA256, text.as_bytes())))
}

fn moment(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    text.parse().ok().or_else(|| jiff::fmt::rfc2822::parse(text).ok().map(|zoned| zoned.timestamp()))
}

/// ISO 8601 in UTC; text that is no date stays as it is.
fn date(text: &str) -> Value {
    match moment(text) {
        Some(moment) => moment.to_string().into(),
        None => or_null(text.trim().to_owned(), LONGEST_DATE),
    }
}

fn or_null(text: String, longest: usize) -> Value {
    if text.is_empty() { Value::Null } else { cut(text, longest).into() }
}

/// The text of markup. Of a long one only the beginning is read.
fn plain(markup: &str, longest: usize) -> Value {
    let is_plain = !markup.contains(['<', '&']);
    let text = if is_plain {
        markup.split_whitespace().collect::<Vec<_>>().join(" ")
    } else {
        let Ok(nowhere) = Url::parse("https://feed.invalid/") else { return Value::Null };
        text_of_page(std::iter::once(markup.to_owned()), &nowhere, longest * 2)
    };
    or_null(text.trim().to_owned(), longest)
}
