//! A run whose process is killed at an await: nothing happens twice, and nothing is left out.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use shared::models::{ActionStatus, RunStatus};
use tests::{automation::whole, fault_options, random::Random};

use super::{
    books, entered,
    nested::{begun, rows},
    post,
};

/// Of so many awaits one is tried; `make faults` tries each.
const EACH: usize = 9;

/// An action, a loop of two items at the same time, and another action.
fn actions() -> Value {
    json!([
        post("first", "first"),
        {
            "id": "each", "for_each": "{{trigger_data.rows}}", "as": "row", "key": "{{row.id}}", "at_once": 2,
            "actions": [post("enter", "{{row.name}}")],
        },
        post("last", "last"),
    ])
}

/// Kills the process at the await with this number, and lets others finish the run. False if it ended before.
async fn survives(awaits: u32) -> bool {
    let (mut world, books) = books().await;
    let run = begun(&world, &actions(), &json!({"rows": rows(2)})).await;
    let killed = world.kill_run_at(awaits).await;
    world.deliver_runs().await;
    let whole = whole(&world, run.id).await;
    let entered = entered(&books);
    let once: BTreeSet<&String> = entered.iter().collect();
    assert_eq!(once.len(), entered.len(), "killed at await {awaits}: {entered:?}");
    let wanted = [("first", "first"), ("each[1].enter", "e1"), ("each[2].enter", "e2"), ("last", "last")];
    for (place, entry) in wanted {
        let result = whole.actions.iter().find(|result| result.place() == place);
        let status = result.unwrap_or_else(|| panic!("killed at await {awaits}: no result at {place}")).status;
        // The outcome of a call that was under way is unknown.
        let is_told = match status {
            ActionStatus::Succeeded => entered.iter().any(|made| made == entry),
            status => killed && status == ActionStatus::Unknown,
        };
        assert!(is_told, "killed at await {awaits}: {place} is {status:?} of {entered:?}");
    }
    assert_eq!(whole.actions.len(), 6, "killed at await {awaits}");
    let unknown = whole.actions.iter().filter(|result| result.status == ActionStatus::Unknown).count();
    let status = if unknown == 0 { RunStatus::Completed } else { RunStatus::PartialFailure };
    assert_eq!(whole.run.status, status, "killed at await {awaits}: {:?}", whole.run.error);
    assert!(unknown <= 2, "killed at await {awaits}: {unknown} calls were under way");
    killed
}

#[tokio::test]
async fn a_run_that_is_killed_at_any_await_repeats_nothing_and_skips_nothing() {
    let each = if fault_options::all() { 1 } else { EACH };
    let seed = fault_options::seed();
    println!("FAULT_SEED={seed}");
    let mut awaits = u32::try_from(Random(seed).below(each)).unwrap();
    let mut kills = 0;
    while survives(awaits).await {
        awaits += u32::try_from(each).unwrap();
        kills += 1;
    }
    assert!(kills >= 5, "the run had {awaits} awaits");
}
