//! `make bench`: the time to validate a definition, without its reads, against the budget of 2 ms for 50 actions, one after the
//! other or in loops and branches. A figure over its budget is said so and fails nothing: a busy machine measures high.

#![expect(clippy::print_stdout, reason = "the report is what this is for")]
#![expect(clippy::expect_used, reason = "a bench stops at what is wrong")]

mod measuring;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use shared::{
    automation::{
        CheckResult, Definition, Diagnostics, Known, KnownService, KnownTool, Preflight, Purpose, UsableTool, validate,
    },
    catalogue::BuiltInTools,
    json_schema::JsonSchema,
    models::{Timestamp, ToolRef},
};

use crate::measuring::measures;

const BUDGET: Duration = Duration::from_millis(2);
const ROUNDS: usize = 200;

/// An action that uses the output of the action with the number before its own.
fn action(index: usize, before: Option<usize>) -> Value {
    let before = before.map_or_else(|| "{{team}}".to_owned(), |before| format!("{{{{out_{before}.items[0].name}}}}"));
    json!({
        "id": format!("a{index}"), "tool": "post", "output_as": format!("out_{index}"),
        "parameters": {"channel": "{{team}}", "text": format!("{before} at {{{{now}}}}: {{{{trigger_data.text}}}}"), "limit": 5},
        "condition": {"operator": "OR", "clauses": [
            {"path": "trigger_data.text", "op": "contains_any", "value": ["urgent", "asap"]},
            {"path": "trigger_data.score", "op": ">", "value": 5},
        ]},
    })
}

fn definition(actions: &[Value]) -> Value {
    json!({
        "name": "Bench", "trigger_type": "manual", "actions": actions, "variables": {"team": "C024BE91L"},
        "fingerprints": {"post": "1"},
    })
}

fn in_a_row(actions: usize) -> Value {
    let actions: Vec<Value> = (0..actions).map(|index| action(index, index.checked_sub(1))).collect();
    definition(&actions)
}

/// In groups of five: one action, then a loop over its output with an action, an expression and a choice between three.
fn in_loops_and_branches(actions: usize) -> Value {
    let group = |first: usize| {
        let inner = |index: usize| action(index, Some(first));
        let each = json!({
            "id": format!("each_{first}"), "for_each": format!("{{{{out_{first}.items}}}}"), "as": "row", "key": "{{row.name}}",
            "actions": [
                inner(first + 1),
                {
                    "id": format!("choose_{first}"),
                    "choose": [
                        {"when": {"path": "row.name", "op": "contains", "value": "bug"}, "actions": [inner(first + 2)]},
                        {"when": {"path": "row.name", "op": "matches", "value": "^wish"}, "actions": [inner(first + 3)]},
                    ],
                    "otherwise": [{
                        "id": format!("a{}", first + 4), "tool": "post",
                        "parameters": {"channel": "{{team}}", "text": "{{row.name | lower | truncate(40)}}"},
                    }],
                },
            ],
        });
        [action(first, first.checked_sub(5)), each]
    };
    let actions: Vec<Value> = (0..actions).step_by(5).flat_map(group).collect();
    definition(&actions)
}

fn known() -> Known {
    let parameters = json!({
        "type": "object",
        "properties": {
            "channel": {"type": "string"}, "text": {"type": "string"}, "limit": {"type": "integer", "maximum": 10},
            "kind": {"type": "string", "enum": ["info", "alert"]},
        },
        "required": ["channel", "text"], "additionalProperties": false,
    });
    let item = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let tool = UsableTool {
        reference: ToolRef::BuiltIn("post".to_owned()),
        schema: Some(Arc::new(JsonSchema::compile(&parameters).expect("a schema"))),
        parameters,
        returns: json!({"type": "object", "properties": {"items": {"type": "array", "items": item}}}),
        effect: true,
        fingerprint: "1".to_owned(),
        service: None,
        previous: None,
    };
    Known {
        tools: HashMap::from([("post".to_owned(), KnownTool::Here(Box::new(tool)))]),
        trigger_service: KnownService::NotNamed,
        preflight: Preflight::NotAsked,
        events: Vec::new(),
        awaited: HashMap::new(),
        called: HashMap::new(),
        earlier: BTreeMap::new(),
        built_in: BuiltInTools::default(),
        ceilings: None,
        now: Timestamp::now(),
        purpose: Purpose::Saving,
    }
}

fn main() {
    let known = known();
    let rounds = if measures() { ROUNDS } else { 1 };
    for actions in [10, 50, 100] {
        for (shape, definition) in
            [("in a row", in_a_row(actions)), ("in loops and branches", in_loops_and_branches(actions))]
        {
            let median = median(&definition, &known, rounds);
            let over = if actions == 50 && median > BUDGET {
                format!(", over the budget of {BUDGET:?}")
            } else {
                String::new()
            };
            println!("validation of {actions} actions {shape}: {median:?}{over}");
        }
    }
}

fn median(definition: &Value, known: &Known, rounds: usize) -> Duration {
    let mut took: Vec<Duration> = (0..rounds)
        .map(|_| {
            let started = Instant::now();
            let mut diagnostics = Diagnostics::default();
            let read = Definition::read(definition, &mut diagnostics).expect("a definition");
            validate(&read, known, &mut diagnostics);
            let took = started.elapsed();
            let report = diagnostics.into_report();
            assert!(report.result == CheckResult::Ok, "the definition is valid: {}", json!(report));
            took
        })
        .collect();
    took.sort_unstable();
    took.get(rounds / 2).copied().unwrap_or_default()
}
