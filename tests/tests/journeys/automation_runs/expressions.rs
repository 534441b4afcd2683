//! Expressions in templates: computed values, mistakes named at deployment, failures that send nothing.

use serde_json::json;
use shared::models::RunStatus;

use super::{and, books, carried_out, entered, post, shown, statuses};

#[tokio::test]
async fn an_expression_computes_the_argument_that_is_sent_with_its_type() {
    let (world, books) = books().await;
    let actions = json!([
        {"id": "read", "tool": "ledger_read", "parameters": {"entry": "rows"}, "output_as": "found"},
        {
            "id": "sum", "tool": "ledger_post",
            "parameters": {
                "entry": "{{found.rows | map(attribute='name') | join('-') | lower}}",
                "amount": "{{found.rows | map(attribute='owed') | sum}}",
                "note": "Due {{'2026-11-20' | business_days(1) | date('%d.%m.%Y')}}: {{1200 | money('EUR')}}, {{trigger_data.who | default('nobody')}}",
            },
            "condition": {"path": "found.rows[0].owed", "op": "<", "value": "{{found.rows[1].owed - 1}}"},
        },
    ]);
    let run = carried_out(&world, &actions, &json!({})).await;
    assert_eq!((run.status, run.error.as_ref()), (RunStatus::Completed, None));
    assert_eq!(entered(&books), ["ada-bob"]);
    let sent: serde_json::Value = serde_json::from_str(&books.seen()[1].body).unwrap();
    assert_eq!(sent, json!({"amount": 12, "note": "Due 23.11.2026: 12.00 EUR, nobody"}));
}

#[tokio::test]
async fn a_failing_expression_fails_its_action_before_anything_is_sent_and_the_next_one_runs() {
    let (world, books) = books().await;
    let ratio = json!({"id": "a", "tool": "ledger_post", "parameters": {"entry": "one", "amount": "{{trigger_data.n / trigger_data.of}}"}});
    let held = and(
        post("b", "two"),
        json!({"condition": {"path": "trigger_data.n", "op": "!=", "value": "{{trigger_data.n / trigger_data.of}}"}}),
    );
    let run = carried_out(&world, &json!([ratio, held, post("c", "three")]), &json!({"n": 1, "of": 0})).await;
    assert_eq!(run.status, RunStatus::PartialFailure);
    assert_eq!(statuses(&world, &run).await, ["a failed", "b skipped", "c succeeded"]);
    assert_eq!(entered(&books), ["three"]);
    let shown = shown(&world, &run).await;
    let told = shown["actions"][0]["error"].as_str().unwrap();
    assert!(told.starts_with("The expression {{trigger_data.n / trigger_data.of}} fails"), "{told}");
    let clause = &shown["actions"][1]["condition_result"]["clauses"][0]["text"];
    assert!(clause.as_str().unwrap().contains("The expression"), "{clause}");
}

#[tokio::test]
async fn a_mistake_in_an_expression_is_refused_at_deployment_with_its_place_and_the_nearest_name() {
    let (world, _books) = books().await;
    let of = |amount: &str, output: &str| {
        json!([
            {"id": "read", "tool": "ledger_read", "parameters": {"entry": "rows"}, "output_as": "found"},
            {"id": "a", "tool": "ledger_post", "parameters": {"entry": output, "amount": amount}},
        ])
    };
    for (amount, entry, code, named) in [
        ("{{found.rows | lenght}}", "x", "invalid_template", "did you mean length?"),
        ("{{found.total +}}", "x", "invalid_template", "cannot be read"),
        ("{{limits * 2}}", "x", "unknown_path", "limit"),
        ("{{range(9)}}", "x", "invalid_template", "only filters"),
        ("{{'x' * 9}}", "x", "invalid_template", "not be a number"),
    ] {
        let mut automation = world.manual(&of(amount, entry));
        automation["variables"] = json!({"limit": 5});
        let answer = world.deploy(&automation).await;
        let told = answer.body["diagnostics"].as_array().unwrap().iter().find(|error| error["code"] == code);
        let told = told.unwrap_or_else(|| panic!("{amount}: {}", answer.body));
        assert_eq!(told["pointer"], "/actions/1/parameters/amount", "{amount}");
        assert!(told.to_string().contains(named), "{amount}: {told}");
    }
}
