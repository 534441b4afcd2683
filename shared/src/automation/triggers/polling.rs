//! Finds the new items in a source's answers, and computes the time of the next poll. Pure.
//!
//! Items are identified by a hash of their id. All items of the first answer count as old. An item stays known while the source
//! returns it, then as one of the [`REMEMBERED`] latest others. A run's id derives from its item's id, so a forgotten item that
//! returns starts no second run as long as the first run is kept.

use std::collections::HashSet;

use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use crate::{
    automation::expressions::path::Path,
    cut::cut,
    models::{AutomationId, PollCursor, Timestamp},
};

/// Per answer.
pub(super) const MOST_ITEMS: usize = 1_000;
/// Hashes kept for items the source no longer returns.
const REMEMBERED: usize = 1_000;
/// Items, and their bytes, taken by one poll; the next poll takes the rest.
const MOST_NEW: usize = 100;
const MOST_BYTES: usize = 200_000;
/// Seconds between polls of a source that keeps failing.
const LONGEST_WAIT: i64 = 24 * 60 * 60;
/// Items shown in a summary, and bytes of each line.
const SUMMARIZED: usize = 5;
const LONGEST_LINE: usize = 200;

#[derive(Debug, Clone, PartialEq)]
pub struct PolledItem {
    /// Half a SHA-256 of its id, or of the item if it has none: 32 hexadecimal digits.
    pub id: String,
    pub value: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Poll {
    pub new: Vec<PolledItem>,
    /// The cursor after the new items were processed.
    pub cursor: PollCursor,
    /// The next poll has more new items to take.
    pub more: bool,
    /// New items that are too large for a run, and are skipped.
    pub too_large: usize,
}

impl PolledItem {
    fn of(value: Value, id_at: Option<&Path>) -> Self {
        let id = id_at.and_then(|path| Path::follow(path.steps(), &value)).filter(|id| !id.is_null());
        let named = match id {
            Some(Value::String(id)) => format!("id {id}"),
            Some(id) => format!("id {id}"),
            None => format!("item {value}"),
        };
        Self { id: hash(&named), value }
    }
}

impl PollCursor {
    /// Splits an answer into new and known items. With `first`, all items count as known.
    pub fn poll(&self, items: Vec<PolledItem>, first: bool) -> Poll {
        let seen: HashSet<&str> = self.seen.iter().map(String::as_str).collect();
        let mut known: Vec<String> = Vec::new();
        let mut here: HashSet<String> = HashSet::new();
        let (mut new, mut bytes, mut more, mut too_large) = (Vec::new(), 0, false, 0);
        for item in items {
            if !here.insert(item.id.clone()) {
                continue;
            }
            if first || seen.contains(item.id.as_str()) {
                known.push(item.id);
                continue;
            }
            let size = item.value.to_string().len();
            if size > MOST_BYTES {
                too_large += 1;
                known.push(item.id);
            } else if more || new.len() >= MOST_NEW || bytes + size > MOST_BYTES {
                more = true;
            } else {
                bytes += size;
                known.push(item.id.clone());
                new.push(item);
            }
        }
        let before = self.seen.iter().filter(|id| !here.contains(*id)).take(REMEMBERED).cloned();
        let seen = known.into_iter().chain(before).collect();
        Poll { new, cursor: self.with_seen(seen), more, too_large }
    }

    /// Only the pending items, for which a run is being started.
    pub fn poll_pending(&self, items: Vec<PolledItem>) -> Poll {
        let mut new: Vec<PolledItem> = items.into_iter().filter(|item| self.pending.contains(&item.id)).collect();
        let mut once = HashSet::new();
        new.retain(|item| once.insert(item.id.clone()));
        let seen = self.pending.iter().chain(&self.seen).take(MOST_ITEMS + REMEMBERED).cloned().collect();
        Poll { new, cursor: self.with_seen(seen), more: true, too_large: 0 }
    }

    fn with_seen(&self, seen: Vec<String>) -> Self {
        Self { seen, pending: Vec::new(), validators: None, ..self.clone() }
    }

    /// Whether its items are comparable with those of this source and account.
    pub fn is_of(&self, source: &str, account: Option<&str>) -> bool {
        let known = self.account.as_deref();
        self.source == source && (known.is_none() || account.is_none() || known == account)
    }

    pub fn key_of_pending(&self) -> String {
        format!("items {} {}", self.origin(), hash(&self.pending.join(" ")))
    }

    /// The idempotency key of the run for an item. Other sources and accounts may have items with the same ids.
    pub fn key_of(&self, item: &PolledItem) -> String {
        format!("item {} {}", self.origin(), item.id)
    }

    fn origin(&self) -> String {
        match &self.account {
            Some(account) if self.follows_another => format!("{} {account}", self.source),
            _ => self.source.clone(),
        }
    }
}

/// The items of an answer: at the path `items` (empty for the whole answer); without a path, the answer if it is a list, or its
/// only list. `None` if there is no such list. `id`: path of the id within an item.
pub fn answered_items(answer: &Value, items: Option<&str>, id: Option<&str>) -> Option<Vec<PolledItem>> {
    let id = id.and_then(|path| Path::parse(path).ok());
    match list_in(answer, items) {
        Value::Array(all) => {
            Some(all.iter().take(MOST_ITEMS).map(|item| PolledItem::of(item.clone(), id.as_ref())).collect())
        }
        // GraphQL's `{"data": {"boards": null}, "errors": […]}` is a failure, not an empty list.
        Value::Null if answer.get("errors").and_then(Value::as_array).is_none_or(Vec::is_empty) => Some(Vec::new()),
        _ => None,
    }
}

/// The number of items that [`answered_items`] chooses from.
pub(super) fn items_in(answer: &Value, items: Option<&str>) -> usize {
    list_in(answer, items).as_array().map_or(0, Vec::len)
}

/// The list within an answer, as described at [`answered_items`].
pub(in crate::automation) fn list_in<'a>(answer: &'a Value, items: Option<&str>) -> &'a Value {
    match items {
        Some("") => answer,
        Some(path) => Path::parse(path).ok().and_then(|path| Path::follow(path.steps(), answer)).unwrap_or(answer),
        None => {
            let mut lists = answer.as_object().into_iter().flatten().filter(|(_, value)| value.is_array());
            match (lists.next(), lists.next()) {
                (Some((_, list)), None) => list,
                _ => answer,
            }
        }
    }
}

/// `{items, count}`; a summary is `{items, count, text}`, with only the first items and a line on each.
pub fn items_together<'a>(new: impl IntoIterator<Item = &'a PolledItem>, summary: bool) -> Value {
    let new: Vec<&PolledItem> = new.into_iter().collect();
    let shown = if summary { SUMMARIZED } else { new.len() };
    let items: Vec<&Value> = new.iter().take(shown).map(|item| &item.value).collect();
    if !summary {
        return json!({"items": items, "count": new.len()});
    }
    let mut lines: Vec<String> = items.iter().map(|item| format!("- {}", line_on(item))).collect();
    if new.len() > shown {
        lines.push(format!("and {} more", new.len() - shown));
    }
    json!({"items": items, "count": new.len(), "text": lines.join("\n")})
}

fn line_on(item: &Value) -> String {
    let named = ["title", "subject", "name", "summary", "text", "snippet"];
    let told = named.iter().find_map(|name| item.get(*name)?.as_str().filter(|text| !text.trim().is_empty()));
    let text = told.map_or_else(|| item.to_string(), str::to_owned);
    cut(text.split_whitespace().collect::<Vec<_>>().join(" "), LONGEST_LINE)
}

/// The time of the next poll, after `failures` failures in a row. Ids spread the automations of one interval evenly; each failure
/// doubles the wait, up to a day.
pub fn next_poll(automation: AutomationId, interval_minutes: u64, failures: u32, now: Timestamp) -> Timestamp {
    let interval = i64::try_from(interval_minutes).unwrap_or(i64::MAX / 120).max(1) * 60;
    let longest = LONGEST_WAIT.max(interval);
    let doubled = interval.checked_mul(1 << failures.min(20)).unwrap_or(longest).min(longest);
    let spread = automation.to_string().bytes().fold(7i64, |sum, byte| (sum * 31 + i64::from(byte)) % interval);
    let from = now.as_millis().div_euclid(1_000) + doubled - interval;
    let next = from - (from - spread).rem_euclid(interval) + interval;
    Timestamp::from_millis(next * 1_000)
}

/// Half of the SHA-256, as 32 hexadecimal digits.
pub(super) fn hash(text: &str) -> String {
    let hash = digest(&SHA256, text.as_bytes());
    hash.as_ref().iter().take(16).fold(String::new(), |hash, byte| hash + &format!("{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn items(ids: &[&str]) -> Vec<PolledItem> {
        let list: Vec<Value> = ids.iter().map(|id| json!({"id": id, "title": format!("Item {id}")})).collect();
        answered_items(&json!({"list": list}), None, Some("id")).unwrap()
    }

    fn ids(poll: &Poll) -> Vec<&str> {
        poll.new.iter().map(|item| item.value["id"].as_str().unwrap()).collect()
    }

    #[test]
    fn the_first_answer_is_old_and_then_each_item_is_new_once_in_order() {
        let cursor = PollCursor::default();
        let first = cursor.poll(items(&["a", "b"]), true);
        assert_eq!((ids(&first), first.cursor.seen.len()), (vec![], 2));
        let second = first.cursor.poll(items(&["d", "c", "c", "a"]), false);
        assert_eq!(ids(&second), ["d", "c"]);
        let third = second.cursor.poll(items(&["b", "c", "d", "e"]), false);
        assert_eq!(ids(&third), ["e"], "b was away for a while");
        assert_eq!(third.cursor.poll(Vec::new(), false).cursor.seen.len(), 5);
    }

    #[test]
    fn items_beyond_one_poll_are_new_in_the_next() {
        let many: Vec<String> = (0..250).map(|number| number.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let (mut cursor, mut taken) = (PollCursor::default(), Vec::new());
        for (count, more) in [(100, true), (100, true), (50, false), (0, false)] {
            let poll = cursor.poll(items(&many), false);
            assert_eq!((poll.new.len(), poll.more), (count, more));
            taken.extend(poll.new.iter().map(|item| item.value["id"].as_str().unwrap().to_owned()));
            cursor = poll.cursor;
        }
        assert_eq!(taken, many);
        let large =
            answered_items(&json!([{"id": "large", "text": "x".repeat(MOST_BYTES)}]), Some(""), Some("id")).unwrap();
        let poll = cursor.poll(large.clone(), false);
        assert_eq!((poll.new.len(), poll.too_large), (0, 1));
        assert_eq!(poll.cursor.poll(large, false).too_large, 0, "said once");
    }

    #[test]
    fn items_with_a_run_are_told_apart_from_newer_ones() {
        let before = PollCursor::default().poll(items(&["a"]), true).cursor;
        let poll = before.poll(items(&["a", "b", "c"]), false);
        let pending = PollCursor { pending: poll.new.iter().map(|item| item.id.clone()).collect(), ..before };
        let again = pending.poll_pending(items(&["d", "c", "a"]));
        assert_eq!((ids(&again), again.more), (vec!["c"], true), "b has gone since, d came");
        assert_eq!(ids(&again.cursor.poll(items(&["a", "b", "c", "d"]), false)), ["d"]);
        assert_ne!(pending.key_of_pending(), again.cursor.key_of_pending());
    }

    #[test]
    fn items_of_another_account_are_other_items() {
        let unknown = PollCursor { source: "s".into(), ..PollCursor::default() };
        let known = PollCursor { account: Some("a".into()), ..unknown.clone() };
        let is_of = |cursor: &PollCursor| ["a", "b"].map(|account| cursor.is_of("s", Some(account)));
        assert_eq!((is_of(&unknown), is_of(&known)), ([true, true], [true, false]));
        assert!(known.is_of("s", None) && !known.is_of("t", Some("a")));
        let other = PollCursor { account: Some("b".into()), follows_another: true, ..known.clone() };
        let item = &items(&["1"])[0];
        assert_ne!(known.key_of(item), other.key_of(item));
        assert_eq!(known.key_of(item), unknown.key_of(item), "learning the account starts no run again");
        assert_eq!(known.poll(items(&["1"]), true).cursor.account, known.account);
    }

    #[test]
    fn items_are_found_by_the_declared_or_the_derived_id() {
        let answer = json!({"page": {"rows": [{"key": {"id": 7}}, {"key": {"id": "7"}}, {"key": {}}]}, "next": []});
        let found = answered_items(&answer, Some("page.rows"), Some("key.id")).unwrap();
        assert_eq!(found.len(), 3);
        assert_eq!(found[0].id, found[1].id, "a number and its text are the same id");
        assert_ne!(found[0].id, found[2].id);
        assert_eq!(answered_items(&json!(null), Some(""), None).unwrap().len(), 0);
        assert_eq!(answered_items(&json!({"a": 1}), None, None), None);
        assert_eq!(answered_items(&json!({"error": "no"}), Some("rows"), None), None);
        let refused = json!({"data": {"boards": null}, "errors": [{"message": "no"}]});
        assert_eq!(answered_items(&refused, Some("data.boards"), None), None);
        assert_eq!(answered_items(&json!([1, 2, 2]), None, None).unwrap().len(), 3);
    }

    #[test]
    fn several_items_are_told_together() {
        let new = items(&["a", "b", "c", "d", "e", "f", "g"]);
        let batch = items_together(&new, false);
        assert_eq!((batch["count"].as_u64(), batch["items"].as_array().unwrap().len()), (Some(7), 7));
        let summary = items_together(&new, true);
        assert_eq!((summary["count"].as_u64(), summary["items"].as_array().unwrap().len()), (Some(7), 5));
        assert!(summary["text"].as_str().unwrap().starts_with("- Item a\n- Item b\n"));
        assert!(summary["text"].as_str().unwrap().ends_with("\nand 2 more"));
    }

    #[test]
    fn a_source_that_fails_is_asked_less_and_less_up_to_once_a_day() {
        let automation = AutomationId::generate();
        let now: Timestamp = "2026-11-22T10:00:00Z".parse().unwrap();
        let wait = |failures| next_poll(automation, 15, failures, now).as_seconds() - now.as_seconds();
        let waits: Vec<i64> = (0..9).map(wait).collect();
        assert!(waits.is_sorted(), "{waits:?}");
        for (failures, wait) in waits.iter().enumerate() {
            let doubled = (900i64 << failures).min(LONGEST_WAIT);
            assert!((doubled - 900..=doubled).contains(wait), "{failures}: {wait}");
        }
        assert_eq!(wait(50), wait(7));
        let week = next_poll(automation, 10_080, 3, now).as_seconds() - now.as_seconds();
        assert!((1..=10_080 * 60).contains(&week), "a week is no shorter for a failure");
    }

    #[test]
    fn automations_are_spread_over_their_interval() {
        let now: Timestamp = "2026-11-22T10:00:00Z".parse().unwrap();
        let minutes: HashSet<i64> = (0..100)
            .map(|_| next_poll(AutomationId::generate(), 15, 0, now).as_seconds().rem_euclid(900) / 60)
            .collect();
        assert!(minutes.len() > 10, "{minutes:?}");
    }

    proptest! {
        #[test]
        fn polls_only_go_on_and_keep_their_interval(start in 0i64..4_000_000_000, minutes in 5u64..10_080) {
            let automation = AutomationId::generate();
            let mut at = next_poll(automation, minutes, 0, Timestamp::from_millis(start * 1_000));
            prop_assert!(at.as_seconds() > start);
            for _ in 0..5 {
                let next = next_poll(automation, minutes, 0, at);
                prop_assert_eq!(next.as_seconds() - at.as_seconds(), i64::try_from(minutes).unwrap() * 60);
                at = next;
            }
        }

        /// Each item is new exactly once, in any order and number of answers.
        #[test]
        fn every_item_is_new_exactly_once(answers in prop::collection::vec(prop::collection::vec(0u32..400, 0..150), 1..8)) {
            let as_items = |ids: &[u32]| {
                answered_items(&ids.iter().map(|id| json!({"id": id})).collect(), Some(""), Some("id")).unwrap()
            };
            let mut cursor = PollCursor::default().poll(as_items(&[1, 2, 3]), true).cursor;
            let mut taken = HashSet::new();
            for answer in &answers {
                loop {
                    let poll = cursor.poll(as_items(answer), false);
                    for item in &poll.new {
                        prop_assert!(taken.insert(item.id.clone()));
                    }
                    cursor = poll.cursor;
                    if !poll.more {
                        break;
                    }
                }
            }
            let all: HashSet<u32> = answers.iter().flatten().copied().filter(|id| !(1..=3).contains(id)).collect();
            prop_assert_eq!(taken.len(), all.len());
            prop_assert!(cursor.seen.len() <= MOST_ITEMS + REMEMBERED);
        }
    }
}
