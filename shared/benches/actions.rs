//! `make bench`: the own time of a run of 50 actions, without DynamoDB and its tools' own time, against the budget of 5 ms:
//! conditions, templates, checking arguments, results, and resuming the run. Also of an item of a loop, by the number of items. A figure
//! over its budget is said so and fails nothing: a busy machine measures high.

#![expect(clippy::print_stdout, reason = "the report is what this is for")]
#![expect(clippy::expect_used, clippy::panic, reason = "a bench stops at what is wrong")]

mod measuring;

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use shared::{
    automation::{ActionRun, AutomationBody, Definition, Diagnostics, Next, PlannedAction, RunData},
    models::{ActionResult, AutomationRun, AutomationVersion, RunPlan, RunStatus, Timestamp},
    tool::ToolOutcome,
};

use crate::measuring::measures;

const BUDGET: Duration = Duration::from_millis(5);
const ITEM_BUDGET: Duration = Duration::from_millis(3);
const ROUNDS: usize = 200;
const ACTIONS: usize = 50;
const NOW: &str = "2026-11-22T23:30:05.000Z";

fn definition() -> Value {
    let action = |index: usize| {
        let before =
            if index == 0 { "{{team}}".to_owned() } else { format!("{{{{out_{}.items[0].name}}}}", index - 1) };
        json!({
            "id": format!("a{index}"), "tool": "post", "output_as": format!("out_{index}"),
            "parameters": {"channel": "{{team}}", "text": format!("{before} at {{{{now}}}}: {{{{trigger_data.text}}}}"), "limit": 5},
            "condition": {"operator": "OR", "clauses": [
                {"path": "trigger_data.text", "op": "contains_any", "value": ["urgent", "asap"]},
                {"path": "trigger_data.score", "op": ">", "value": 5},
            ]},
        })
    };
    json!({
        "name": "Bench", "trigger_type": "manual", "actions": (0..ACTIONS).map(action).collect::<Vec<_>>(),
        "variables": {"team": "C024BE91L"},
    })
}

/// A loop over `items`, with a condition, a choice and an output for each.
fn loop_of(items: usize, at_once: usize) -> Value {
    let rows: Vec<Value> = (0..items).map(|id| json!({"id": id, "name": format!("Ada {id}"), "owed": id})).collect();
    let post = |id: &str| {
        json!({
            "id": id, "tool": "post", "output_as": "said",
            "parameters": {"channel": "{{row.id}}", "text": "{{row.name | upper}} at {{now}}", "limit": 5},
        })
    };
    json!({"name": "Bench", "trigger_type": "manual", "actions": [{
        "id": "each", "for_each": rows, "as": "row", "key": "{{row.id}}", "max_items": 1000, "at_once": at_once, "output_as": "all", "actions": [{
            "id": "decide", "choose": [{"when": {"path": "row.owed", "op": ">", "value": 5}, "actions": [post("call")]}],
            "otherwise": [post("mail")],
        }],
    }]})
}

fn data() -> RunData {
    let organization = "0193aa11-4d5e-7f60-8a71-8294a1b2c3d4";
    let run: AutomationRun = serde_json::from_value(json!({
        "id": organization, "organization_id": organization, "trigger_type": "manual", "status": "running", "limits": {},
        "created_at": NOW, "updated_at": NOW, "expires_at": 0,
    }))
    .expect("a run");
    let version: AutomationVersion = serde_json::from_value(json!({
        "automation_id": organization, "version": 1, "organization_id": organization, "content_hash": "", "definition": "{}",
        "created_by": "user", "created_at": NOW,
    }))
    .expect("a version");
    let trigger_data = json!({"text": "please come asap ".repeat(20), "score": 3});
    let plan = RunPlan { trigger_data: trigger_data.to_string(), user: "{}".to_owned(), ..RunPlan::default() };
    RunData::of(&run, &plan, &version).expect("data")
}

/// Carries out all actions, from their saved state.
fn carry_out(definition: &Value, data: &RunData, saved: &[ActionResult]) -> Vec<ActionResult> {
    let definition = Definition::read(definition, &mut Diagnostics::default()).expect("a definition");
    let AutomationBody::Actions(actions) = &definition.body else { panic!("it has actions") };
    let output = json!({"items": [{"name": "Ada", "note": "x".repeat(500)}], "total": 1});
    let mut run =
        ActionRun::resume((actions, &definition.catch), &definition.variables, data, saved).expect("outputs are JSON");
    let mut results = saved.to_vec();
    let (mut taken, mut places) = (VecDeque::new(), Vec::new());
    loop {
        let result = match run.next_beside(&places, Timestamp::now()) {
            Next::Over(ending) => {
                assert_eq!(ending.status, RunStatus::Completed);
                return results;
            }
            Next::Settled(result) => *result,
            Next::Pause(..) => panic!("nothing waits"),
            Next::Call(planned) => {
                assert_eq!(planned.arguments.len(), 3);
                places.push(planned.id.clone());
                taken.push_back(planned);
                continue;
            }
            Next::Busy => {
                let planned: Box<PlannedAction<'_>> = taken.pop_front().expect("an action is being carried out");
                places.remove(0);
                planned.finished(&ToolOutcome::succeeded(output.clone()), false, Timestamp::now())
            }
        };
        run.record(&result).expect("its output is JSON");
        results.push(result);
    }
}

/// Prints the own time of an item, and how it grows with the items.
fn loops(data: &RunData) {
    for at_once in [1, 5] {
        let mut before: Option<Duration> = None;
        for items in [10_usize, 100, 1_000] {
            let definition = loop_of(items, at_once);
            let count = u32::try_from(items).unwrap_or(u32::MAX);
            let took = median(|| drop(carry_out(&definition, data, &[]))) / count;
            let verdict = if took <= ITEM_BUDGET { "" } else { "  over the budget" };
            let growth = before.map(|before| format!(", {:.2} times", took.as_secs_f64() / before.as_secs_f64()));
            let name = format!("an item of {items}, {at_once} at once");
            println!(
                "  {name:<42} {:>8.3} ms of {} ms{}{verdict}",
                took.as_secs_f64() * 1e3,
                ITEM_BUDGET.as_millis(),
                growth.unwrap_or_default()
            );
            before = Some(took);
        }
    }
}

fn median(mut round: impl FnMut()) -> Duration {
    let rounds = if measures() { ROUNDS } else { 1 };
    let mut times: Vec<Duration> = (0..rounds)
        .map(|_| {
            let begun = Instant::now();
            round();
            begun.elapsed()
        })
        .collect();
    times.sort_unstable();
    times.get(rounds / 2).copied().unwrap_or_default()
}

fn main() {
    let (definition, data) = (definition(), data());
    let results = carry_out(&definition, &data, &[]);
    assert_eq!(results.len(), ACTIONS);
    let half = results.get(..ACTIONS / 2).unwrap_or_default();
    for (what, took) in [
        ("50 actions from the first", median(|| drop(carry_out(&definition, &data, &[])))),
        ("the second 25, taken up anew", median(|| drop(carry_out(&definition, &data, half)))),
    ] {
        let verdict = if took <= BUDGET { "" } else { "  over the budget" };
        println!("  {what:<42} {:>8.2} ms of {} ms{verdict}", took.as_secs_f64() * 1e3, BUDGET.as_millis());
    }
    loops(&data);
}
