//! `read_feed(uri, limit?)`: the entries of a feed, RSS, Atom or JSON Feed, newest first.
//!
//! Only GET, through the guarded client. The whole feed is read or it is an error: a part of it would look like fewer entries. In a poll
//! the request is conditional, and all entries are given.

mod entry;
mod json_feed;
mod xml_feed;

use std::{sync::Arc, time::Duration};

use futures_util::future::FutureExt;
use reqwest::{
    Url,
    header::{ACCEPT, HeaderValue},
};
use serde_json::{Map, Value, json};
use tokio::task::spawn_blocking;

use self::entry::Feed;
use super::wget::charset::Decoder;
use crate::{
    Result,
    clients::{
        Failure, Outbound,
        outbound::{Answer, Request, compressed},
    },
    models::ToolEffect,
    tool::{CallContext, CallableTool, Parameters, ToolFuture, ToolOutcome, ToolSpec},
};

pub const READ_FEED: &str = "read_feed";
/// Paths of the list and of an entry's id in the answer.
pub const FEED_ENTRIES: &str = "entries";
pub const FEED_ENTRY_ID: &str = "id";

const ACCEPTED: &str = "application/rss+xml,application/atom+xml,application/feed+json,application/xml;q=0.9,application/json;q=0.8,*/*;q=0.5";
/// Bytes.
const LARGEST_FEED: usize = 4 * 1024 * 1024;
const USUAL_ENTRIES: usize = 50;
const MOST_ENTRIES: usize = 200;
/// A poll compares them all.
const MOST_IN_A_POLL: usize = 1_000;
const WITHIN: Duration = Duration::from_secs(25);
/// Time reserved for the steps after the call.
const RESERVE: Duration = Duration::from_secs(1);

/// The description alone, for functions that offer the tool without calling it.
struct DescribedFeed(ToolSpec);

struct ReadFeed {
    spec: ToolSpec,
    outbound: Outbound,
}

pub fn described_read_feed() -> Arc<dyn CallableTool> {
    Arc::new(DescribedFeed(spec()))
}

pub fn read_feed(outbound: Outbound) -> Arc<dyn CallableTool> {
    Arc::new(ReadFeed { spec: spec(), outbound })
}

/// The entries of a feed, for `tests/fuzz`.
#[doc(hidden)]
pub fn entries_of_feed(bytes: &[u8], at: &Url) -> Result<Value, String> {
    parse(bytes, "", at).map(|feed| feed.told(MOST_ENTRIES))
}

fn spec() -> ToolSpec {
    let uri = json!({"type": "string", "description": "The feed's whole address, https://…"});
    let limit = json!({
        "type": "integer", "minimum": 1, "maximum": MOST_ENTRIES, "default": USUAL_ENTRIES,
        "description": "How many entries, the newest first; 50 unless given",
    });
    let text = json!({"type": ["string", "null"]});
    let entry = json!({
        "type": "object",
        "properties": {
            "id": {"type": "string"}, "title": text, "link": text, "published": text, "updated": text, "author": text,
            "summary": text, "categories": {"type": "array", "items": {"type": "string"}},
        },
    });
    ToolSpec {
        name: READ_FEED.to_owned(),
        description: "Reads a feed (RSS, Atom or JSON Feed) at a public https address and gives its entries. Works in automations \
                      only, and as the source of a polling trigger."
            .to_owned(),
        parameters: Parameters::new([("uri", uri, true), ("limit", limit, false)]),
        returns: json!({
            "type": "object",
            "properties": {"title": text, "link": text, "entries": {"type": "array", "items": entry}},
        }),
        own_examples: vec![
            r#"read_feed("https://example.com/feed.xml")"#.to_owned(),
            r#"read_feed("https://blog.example.com/atom.xml", 5)"#.to_owned(),
            r#"read_feed({uri: "https://example.com/feed.json", limit: 10})"#.to_owned(),
        ],
        effect: ToolEffect::None,
        repeatable: true,
    }
}

impl CallableTool for DescribedFeed {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn call<'a>(&'a self, _: Map<String, Value>, _: &'a CallContext<'a>) -> ToolFuture<'a> {
        async { Ok(ToolOutcome::failed("read_feed works in runs of automations only.")) }.boxed()
    }
}

impl CallableTool for ReadFeed {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn calls_out(&self) -> bool {
        true
    }

    fn call<'a>(&'a self, arguments: Map<String, Value>, context: &'a CallContext<'a>) -> ToolFuture<'a> {
        Box::pin(async move { Ok(ToolOutcome::of(self.read(&arguments, context).await)) })
    }
}

impl ReadFeed {
    async fn read(&self, arguments: &Map<String, Value>, context: &CallContext<'_>) -> Result<Value, String> {
        let uri = arguments.get("uri").and_then(Value::as_str).unwrap_or_default();
        let url = self.outbound.parse(uri).map_err(|why| format!("The feed was not read: {why}."))?;
        let poll = context.source_poll();
        let given = arguments.get("limit").and_then(Value::as_u64).and_then(|limit| usize::try_from(limit).ok());
        let limit = if poll.is_some() { MOST_IN_A_POLL } else { given.unwrap_or(USUAL_ENTRIES).clamp(1, MOST_ENTRIES) };
        let mut request = Request::get(url.clone(), LARGEST_FEED);
        request.headers.insert(ACCEPT, HeaderValue::from_static(ACCEPTED));
        if let Some(poll) = poll {
            poll.ask_for_changes(&mut request.headers);
        }
        let host = url.host_str().unwrap_or_default().to_owned();
        let deadline = context.deadline.reserving(RESERVE).at_most(WITHIN);
        let answer = self.outbound.send(request, deadline).await.map_err(|error| match error.failure {
            Failure::Refused(why) => format!("The feed was not read: {why}."),
            Failure::Unreachable => format!("{host} cannot be reached: nothing answers at that address."),
            Failure::TooLarge(_) => format!("The feed of {host} has more than 4 MB and was not read."),
            _ => format!("{host} did not answer in time."),
        })?;
        if poll.is_some_and(|poll| poll.took(answer.status, &answer.headers)) {
            return Ok(Value::Null);
        }
        let Answer { status: 200..=299, content_type, headers, body } = answer else {
            return Err(format!("{host} answered with status {}.", answer.status));
        };
        if let Some(compressed) = compressed(&headers) {
            return Err(format!("{host} answered with {compressed}."));
        }
        // A feed takes a while, and its author is a stranger.
        let parsed = spawn_blocking(move || parse(&body, &content_type, &url)).await;
        let parsed = parsed.unwrap_or_else(|_panic| Err("it cannot be read".to_owned()));
        parsed
            .map(|feed| feed.told(limit))
            .map_err(|why| format!("{host} answered with something that is no feed: {why}."))
    }
}

/// # Errors
/// Why it is no feed, without a full stop.
fn parse(bytes: &[u8], content_type: &str, at: &Url) -> Result<Feed, String> {
    let head = bytes.get(..1024).unwrap_or(bytes);
    let text = Decoder::of(&content_type.to_ascii_lowercase(), head).decode(bytes, true);
    let text = text.trim_start();
    match text.as_bytes().first() {
        Some(b'<') => xml_feed::parse(text, at),
        Some(b'{') => json_feed::parse(text, at),
        _ => Err("it is neither XML nor JSON".to_owned()),
    }
}

#[cfg(test)]
mod tests;
