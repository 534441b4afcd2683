//! `make bench`: the time to validate a definition, without its reads, against the budget of 2 ms for 50 actions. A figure over
//! its budget is said so and fails nothing: a busy machine measures high.

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

fn definition(actions: usize) -> Value {
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
        "name": "Bench", "trigger_type": "manual", "actions": (0..actions).map(action).collect::<Vec<_>>(),
        "variables": {"team": "C024BE91L"}, "fingerprints": {"post": "1"},
    })
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
    for actions in [10, 50, 200] {
        let definition = definition(actions);
        let mut took: Vec<Duration> = (0..rounds)
            .map(|_| {
                let started = Instant::now();
                let mut diagnostics = Diagnostics::default();
                let read = Definition::read(&definition, &mut diagnostics).expect("a definition");
                validate(&read, &known, &mut diagnostics);
                let took = started.elapsed();
                assert!(diagnostics.into_report().result == CheckResult::Ok, "the definition is valid");
                took
            })
            .collect();
        took.sort_unstable();
        let median = took.get(rounds / 2).copied().unwrap_or_default();
        let over =
            if actions == 50 && median > BUDGET { format!(", over the budget of {BUDGET:?}") } else { String::new() };
        println!("validation of {actions} actions: {median:?}{over}");
    }
}
