//! Conditions on the output of an action without output.

use super::*;

fn reading(id: &str, entry: &str) -> Value {
    json!({"id": id, "tool": "ledger_read", "parameters": {"entry": entry}, "output_as": id})
}

#[expect(clippy::needless_pass_by_value, reason = "reads better at the call")]
fn when(id: &str, condition: Value) -> Value {
    and(post(id, id), json!({"condition": condition, "output_as": format!("of_{id}")}))
}

fn clause(path: &str, op: &str, value: &str) -> Value {
    json!({"path": path, "op": op, "value": value})
}

fn none_is(path: &str, value: &str) -> Value {
    json!({"path": "trigger_data.people", "op": "none", "value": clause(path, "==", value)})
}

fn group(operator: &str, clauses: &[Value]) -> Value {
    json!({"operator": operator, "clauses": clauses})
}

#[tokio::test]
async fn neither_branch_runs_on_the_output_of_an_action_that_failed() {
    let (world, books) = books().await;
    for entry in ["refused", "broken"] {
        let there = json!({"path": "look.entered", "op": "exists"});
        let not_there = json!({"path": "look.entered", "op": "not_exists"});
        let no = clause("look.entered", "!=", "critical");
        let actions = json!([
            reading("look", entry),
            when("then", clause("look.entered", "==", "critical")),
            when("else", no.clone()),
            when("without", clause("look.entered", "not_contains", "critical")),
            when("null", json!({"path": "look.entered", "op": "==", "value": "{{trigger_data.nothing}}"})),
            when("compared", clause("trigger_data.level", "!=", "{{look.entered}}")),
            when("both", group("AND", &[clause("trigger_data.level", "==", "high"), no.clone()])),
            when("there", there),
            // A skipped action proves as little.
            when("after", clause("of_else.entered", "!=", "x")),
            when("either", group("OR", &[no, clause("trigger_data.level", "==", "high")])),
            when("gone", not_there.clone()),
            when("handled", group("AND", &[not_there, clause("trigger_data.level", "!=", "low")])),
            when("none", none_is("look.entered", "{{item.name}}")),
            when("nobody", none_is("item.name", "{{look.entered}}")),
        ]);
        let run = carried_out(&world, &actions, &json!({"level": "high", "people": [{"name": "Ada"}]})).await;
        let statuses = statuses(&world, &run).await;
        let ran: Vec<&str> = statuses.iter().filter_map(|status| status.strip_suffix(" succeeded")).collect();
        assert_eq!(ran, ["either", "gone", "handled"], "{entry}");
        let shown = shown(&world, &run).await;
        let why = |at: usize| shown["actions"][at]["error"].as_str().unwrap().to_owned();
        let expected = "look.entered != \"critical\": no, the action look failed, so its output proves nothing";
        assert_eq!(why(2), format!("Its condition does not hold: {expected}."));
        assert!(why(5).contains("the action look failed"), "{}", why(5));
        assert!(why(8).contains("the action else was skipped"), "{}", why(8));
    }
    assert_eq!(entered(&books).iter().filter(|entry| *entry == "gone").count(), 2);
}

/// A missing member of the trigger's data, by contrast, compares as nothing.
#[tokio::test]
async fn an_output_that_is_missing_is_not_looked_for_in_the_event() {
    let (world, _books) = books().await;
    let actions = json!([
        reading("look", "refused"),
        when("a", clause("look.entered", "==", "from the event")),
        when("b", clause("trigger_data.look.entered", "==", "from the event")),
        when("c", clause("trigger_data.nothing", "!=", "x")),
        and(post("d", "of {{look.entered}}"), json!({})),
    ]);
    let run = carried_out(&world, &actions, &json!({"look": {"entered": "from the event"}})).await;
    let expected = ["look failed", "a skipped", "b succeeded", "c succeeded", "d succeeded"];
    assert_eq!(statuses(&world, &run).await, expected);
    let shown = shown(&world, &run).await;
    assert_eq!(shown["actions"][4]["arguments"]["entry"], "of [No available data]");
}

#[tokio::test]
async fn a_dry_run_says_that_an_unsent_action_proves_nothing() {
    let (world, books) = books().await;
    let actions = json!([
        and(post("send", "one"), json!({"output_as": "sent"})),
        when("else", clause("sent.entered", "!=", "x"))
    ]);
    let automation = world.activate(&world.manual(&actions)).await;
    let run = world.start_automation_with(&automation, "dry", &json!({}), true).await;
    assert_eq!(world.run_loop(AMPLE).await, 0);
    let run = whole(&world, run.id).await.run;
    assert_eq!(statuses(&world, &run).await, ["send not_sent", "else skipped"]);
    let why = shown(&world, &run).await["actions"][1]["error"].as_str().unwrap().to_owned();
    assert!(why.contains("the action send was not sent in this dry run"), "{why}");
    assert!(entered(&books).is_empty());
}
