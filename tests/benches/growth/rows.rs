//! Rows that are put directly, each a copy of one that the API made.

use serde_json::{Value, json};
use tests::{Options, World};
use uuid::Uuid;

/// A world whose budgets are never used up.
pub(crate) async fn world() -> World {
    let ample = || "1000000000".to_owned();
    let variables = vec![("RUNS_PER_HOUR", ample()), ("EXECUTIONS_PER_HOUR", ample())];
    World::with(Options { variables, ..Options::default() }).await
}

/// Puts copies of a row until there are `size` of them with the original: each has an id and a time of its own, and the other
/// attributes that `changes` names for its number.
pub(crate) fn fill(world: &World, table: &str, row: &Value, size: usize, changes: impl Fn(usize) -> Value) {
    for number in 1..size {
        world.aws.put(table, &copy(row, number, &changes(number)));
    }
}

pub(crate) fn copy(row: &Value, number: usize, changes: &Value) -> Value {
    let mut copied = row.clone();
    copied["id"] = json!(Uuid::now_v7());
    copied["created_at"] = json!(earlier(number));
    for (name, value) in changes.as_object().into_iter().flatten() {
        copied[name] = value.clone();
    }
    copied
}

/// Moments of an hour that is over, in order.
pub(crate) fn earlier(number: usize) -> String {
    let (minute, second, millisecond) = (number / 60_000 % 60, number / 1_000 % 60, number % 1_000);
    format!("2026-01-01T00:{minute:02}:{second:02}.{millisecond:03}Z")
}

pub(crate) fn id(row: &Value) -> &str {
    row["id"].as_str().unwrap_or_else(|| panic!("{row} has no id"))
}

/// A full page.
#[track_caller]
pub(crate) fn full(page: &Value) {
    assert_eq!(page["items"].as_array().map(Vec::len), Some(PAGE), "{page}");
}

/// Rows of a page: the smallest size has more.
pub(crate) const PAGE: usize = 3;
