//! Plans of runs: order, outputs, failures, and the same plan whenever a run resumes.

mod failures;
mod heavy_templates;
mod same_time;

use serde_json::json;

use super::*;
use crate::{
    automation::{Diagnostics, definition::AutomationBody, definition::Definition},
    clients::{self, Failure, UpstreamService},
    models::{AutomationRun, AutomationVersion, ExecutionStatus, RunPlan, RunStatus},
    tool::{Effect, ToolOutcome},
};

const NOW: &str = "2026-11-22T23:30:05.000Z";

fn steps(actions: &Value) -> Vec<Step> {
    let definition = json!({"name": "x", "trigger_type": "manual", "actions": actions});
    let mut diagnostics = Diagnostics::default();
    let AutomationBody::Actions(steps) = Definition::read(&definition, &mut diagnostics).unwrap().body else {
        panic!("it has actions")
    };
    assert_eq!(diagnostics.iter().count(), 0, "{diagnostics:?}");
    steps
}

fn data(trigger_data: &Value) -> RunData {
    let run: AutomationRun = serde_json::from_value(json!({
        "id": uuid::Uuid::now_v7(), "organization_id": uuid::Uuid::now_v7(), "trigger_type": "manual", "status": "running",
        "limits": {}, "created_at": NOW, "updated_at": NOW, "expires_at": 0,
    }))
    .unwrap();
    let version: AutomationVersion = serde_json::from_value(json!({
        "automation_id": uuid::Uuid::now_v7(), "version": 1, "organization_id": run.organization_id, "content_hash": "",
        "definition": json!({"trigger_config": {"timezone": "Europe/Berlin"}}).to_string(), "created_by": "u", "created_at": NOW,
    }))
    .unwrap();
    let plan = RunPlan {
        trigger_data: trigger_data.to_string(),
        user: json!({"timezone": "Asia/Tokyo"}).to_string(),
        ..RunPlan::default()
    };
    RunData::of(&run, &plan, &version).unwrap()
}

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

/// Runs the actions, with `tool` answering every call.
fn carry_out(list: &Value, tool: impl Fn(&str, &Map<String, Value>) -> ToolOutcome) -> (Vec<ActionResult>, Ending) {
    let (actions, variables, data) = (steps(list), Map::new(), data(&json!({"n": 5})));
    let mut results: Vec<ActionResult> = Vec::new();
    loop {
        // Resumes before each step, as a new process would.
        let run = ActionRun::resume((&actions, &[]), &variables, &data, &results).unwrap();
        match run.next(now()) {
            Next::Over(ending) => return (results, ending),
            Next::Settled(result) => results.push(*result),
            Next::Pause(..) | Next::Busy => panic!("nothing waits"),
            Next::Call(planned) => {
                let outcome = tool(&planned.id, &planned.arguments);
                results.push(planned.finished(&outcome, false, now()));
            }
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "reads better at the call")]
fn action(id: &str, more: Value) -> Value {
    let mut action = json!({"id": id, "tool": "t", "parameters": {}});
    action.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    action
}

#[test]
fn saved_results_are_enough_to_continue() {
    let list = json!([
        action("a", json!({"output_as": "first"})),
        action("b", json!({"parameters": {"sum": "{{first.n}}", "day": "{{today}}", "n": "{{trigger_data.n}}"}})),
    ]);
    let (results, ending) = carry_out(&list, |id, arguments| match id {
        "a" => ToolOutcome::succeeded(json!({"n": 7})),
        _ => ToolOutcome::succeeded(Value::Object(arguments.clone())),
    });
    // The day in the trigger's time zone.
    let output: Value = serde_json::from_str(results[1].output.as_ref().unwrap()).unwrap();
    assert_eq!(output, json!({"sum": 7, "day": "2026-11-23", "n": 5}));
    assert_eq!(ending, Ending { status: RunStatus::Completed, result: None, error: None });
}

#[test]
fn a_run_ends_as_its_actions_did() {
    let outcome = |id: &str, _: &Map<String, Value>| match id {
        "bad" => ToolOutcome::failed("No."),
        "lost" => ToolOutcome::unknown("Perhaps."),
        "used" => ToolOutcome::succeeded(json!({"error": "USAGE_LIMIT_EXCEEDED"})),
        _ => ToolOutcome::succeeded(1),
    };
    let never = json!({"condition": {"path": "n", "op": "==", "value": 6}});
    let stop = json!({"on_error": "stop"});
    for (list, status, error) in [
        (json!([action("a", json!({})), action("b", never.clone())]), RunStatus::Completed, None),
        (json!([action("b", never.clone())]), RunStatus::Completed, None),
        (
            json!([action("a", json!({})), action("bad", json!({}))]),
            RunStatus::PartialFailure,
            Some("1 of 2 actions failed: bad (No.)."),
        ),
        (
            json!([action("bad", json!({})), action("lost", json!({})), action("b", never)]),
            RunStatus::Failed,
            Some("2 of 3 actions failed: bad (No.), lost (Perhaps.)."),
        ),
        (
            json!([action("lost", stop.clone()), action("a", json!({}))]),
            RunStatus::Failed,
            Some(
                "1 of 2 actions failed: lost (Perhaps.). The last 1 were not started: the run was to stop if lost fails.",
            ),
        ),
        (
            json!([action("a", json!({})), action("bad", stop)]),
            RunStatus::PartialFailure,
            Some("1 of 2 actions failed: bad (No.)."),
        ),
        (
            json!([action("used", json!({})), action("a", json!({}))]),
            RunStatus::Failed,
            Some(
                "1 of 2 actions failed: used (The tool's usage limit is exceeded (USAGE_LIMIT_EXCEEDED).). The last 1 were not started: the usage limit of t is exceeded.",
            ),
        ),
    ] {
        let (_, ending) = carry_out(&list, outcome);
        assert_eq!((ending.status, ending.error.as_deref()), (status, error), "{list}");
    }
}

#[test]
fn a_marked_value_is_not_in_the_summary() {
    let list = json!([action("a", json!({"parameters": {"guest": "Ada Lovelace"}}))]);
    let (actions, variables, data) = (steps(&list), Map::new(), data(&json!({})));
    let mut run = ActionRun::resume((&actions, &[]), &variables, &data, &[]).unwrap();
    let Next::Call(planned) = run.next(now()) else { panic!("it is called") };
    let failed = planned.failed("There is no room for Ada Lovelace.", now());
    run.record(&ActionResult { redact: vec!["guest".to_owned()], ..failed }).unwrap();
    let said = run.ending().error.unwrap();
    assert_eq!(said, "1 of 1 actions failed: a (There is no room for [redacted].).");
}

#[test]
fn a_run_that_only_outages_stopped_is_told_apart() {
    let list = json!([action("a", json!({})), action("b", json!({}))]);
    let (actions, variables, data) = (steps(&list), Map::new(), data(&json!({})));
    for (outages, expected) in [([true, true], true), ([true, false], false)] {
        let mut run = ActionRun::resume((&actions, &[]), &variables, &data, &[]).unwrap();
        for outage in outages {
            let Next::Call(planned) = run.next(now()) else { panic!("it is called") };
            let failed = planned.failed("No.", now());
            run.record(&ActionResult { outage, ..failed }).unwrap();
        }
        assert_eq!(run.failed_by_outages(), expected, "{outages:?}");
    }
}

#[test]
fn only_a_request_without_any_effect_is_repeated() {
    let (actions, variables, data) =
        (steps(&json!([action("a", json!({"retries": 2}))])), Map::new(), data(&json!({})));
    let run = ActionRun::resume((&actions, &[]), &variables, &data, &[]).unwrap();
    let Next::Call(planned) = run.next(now()) else { panic!("it is called") };
    let because = |failure| ToolOutcome::failed("No.").because(clients::Error::new(UpstreamService::Outbound, failure));
    let busy = || because(Failure::RateLimited);
    for (outcome, acts, attempts, again) in [
        (busy(), true, 1, true),
        (busy(), true, 2, true),
        (busy(), true, 3, false),
        (busy().with(Effect::Unknown { done: Map::new() }), true, 1, false),
        (because(Failure::Refused("no".into())), false, 1, false),
        (ToolOutcome::failed("No."), true, 1, false),
        (ToolOutcome::failed("No."), false, 1, true),
        (ToolOutcome::failed("No.").status(ExecutionStatus::Limited), false, 1, false),
        (ToolOutcome::unknown("Perhaps."), true, 1, false),
        (ToolOutcome::succeeded(1), false, 1, false),
    ] {
        assert_eq!(planned.may_be_repeated(&outcome, acts, attempts), again, "{outcome:?} {acts} {attempts}");
    }
}

// ------------------------------------------------------------------------------------------------ loops and branches

fn places(results: &[ActionResult]) -> Vec<String> {
    let word = |status: ActionStatus| json!(status).as_str().unwrap().to_owned();
    results.iter().map(|result| format!("{} {}", result.place(), word(result.status))).collect()
}

#[expect(clippy::needless_pass_by_value, reason = "reads better at the call")]
fn each(list: Value, more: Value) -> Value {
    let mut each = json!({"id": "each", "for_each": list, "as": "row", "actions": [
        action("notify", json!({"parameters": {"to": "{{row.name}}"}, "output_as": "sent"})),
    ]});
    each.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    each
}

fn echo(_: &str, arguments: &Map<String, Value>) -> ToolOutcome {
    ToolOutcome::succeeded(Value::Object(arguments.clone()))
}

#[test]
fn a_loop_runs_its_actions_for_each_item_and_gathers_their_outputs() {
    let rows = json!([{"id": 7, "name": "Ada"}, {"id": 8, "name": "Bob"}]);
    let list = json!([
        each(rows, json!({"key": "{{row.id}}", "output_as": "all"})),
        action("after", json!({"parameters": {"of": "{{all[1].outputs.sent.to}}", "gone": "{{row}}"}})),
    ]);
    let (results, ending) = carry_out(&list, echo);
    assert_eq!(
        places(&results),
        ["each succeeded", "each[7].notify succeeded", "each[8].notify succeeded", "each succeeded", "after succeeded"]
    );
    assert_eq!(results[3].note.as_deref(), Some("2 of 2 items were done."));
    let all: Value = serde_json::from_str(results[3].output.as_deref().unwrap()).unwrap();
    assert_eq!(all[0], json!({"key": "7", "succeeded": true, "outputs": {"sent": {"to": "Ada"}}}));
    assert_eq!(results[4].arguments.as_deref(), Some(r#"{"gone":"[No available data]","of":"Bob"}"#));
    assert_eq!(ending.status, RunStatus::Completed);
    assert_eq!(results.iter().map(|result| result.counts().0).sum::<u32>(), 3);
}

#[test]
fn a_list_that_is_none_or_too_long_fails_the_loop_before_its_first_item() {
    let rows = |count: usize| Value::Array(vec![json!({"name": "x"}); count]);
    let many = each(rows(101), json!({}));
    let key = each(json!([{"name": "a"}]), json!({"key": "{{row.id}}"}));
    let cut = each(json!([{"name": "a"}, crate::cut::instead_of("5 more")]), json!({}));
    let of_cut = |list: &str| {
        let mut step = each(json!(list), json!({"actions": [action("notify", json!({}))]}));
        step["max_items"] = json!(1_000);
        json!([action("look", json!({"output_as": "found"})), step])
    };
    let large = |id: &str, _: &Map<String, Value>| {
        let rows = vec![json!({"open": true, "name": "x".repeat(60)}); 2_000];
        ToolOutcome::succeeded(if id == "look" { json!({"rows": rows}) } else { json!(1) })
    };
    for (list, why) in [
        ("{{found.rows | selectattr('open') | list}}", "reads found.rows, which was cut"),
        ("{{found.rows | reverse}}", "reads found.rows, which was cut"),
        ("{{found.rows}}", "The list is incomplete"),
    ] {
        let (results, _) = carry_out(&of_cut(list), large);
        assert_eq!(places(&results), ["look succeeded", "each failed"], "{list}");
        assert!(results[1].error.as_deref().unwrap().contains(why), "{:?}", results[1].error);
    }
    let (results, _) = carry_out(&of_cut("{{found.rows[:2]}}"), large);
    assert_eq!(results.iter().filter(|result| result.action_id == "notify").count(), 2);
    for (step, why) in [
        (each(json!("{{trigger_data.n}}"), json!({})), "{{trigger_data.n}} is a number, but for_each needs a list."),
        (
            each(json!("{{trigger_data.no}}"), json!({})),
            "There is nothing at {{trigger_data.no}}, but for_each needs a list.",
        ),
        (
            many,
            "The list has 101 items, and max_items is 100, so none was done; raise max_items (at most 1000), or let the loop go through fewer.",
        ),
        (key, "Item 1 has nothing at {{row.id}}, which is its key, so none was done."),
        (
            cut,
            "The list is incomplete: the output that it is from was cut, because it has more than 65536 bytes. Let the tool return less.",
        ),
    ] {
        let (results, ending) = carry_out(&json!([step]), echo);
        assert_eq!((places(&results), ending.status), (vec!["each failed".to_owned()], RunStatus::Failed));
        assert_eq!(results[0].error.as_deref(), Some(why));
    }
    let (results, ending) = carry_out(
        &json!([
            each(json!([]), json!({"output_as": "all"})),
            action("after", json!({"parameters": {"n": "{{all}}"}}))
        ]),
        echo,
    );
    assert_eq!(
        (places(&results), ending.status),
        (vec!["each succeeded".to_owned(), "after succeeded".to_owned()], RunStatus::Completed)
    );
    assert_eq!(results[0].note.as_deref(), Some("The list is empty, so nothing was done."));
    assert_eq!(results[1].arguments.as_deref(), Some(r#"{"n":[]}"#));
}

/// A loop over the output of an action that failed or was skipped is no failure of its own.
#[test]
fn a_loop_over_a_missing_output_is_skipped() {
    let over = |list: &str| json!([action("look", json!({"output_as": "found"})), each(json!(list), json!({}))]);
    let fails = |_: &str, _: &Map<String, Value>| ToolOutcome::failed("No.");
    for list in [
        "{{found.rows}}",
        "{{found.rows | selectattr('open')}}",
        "{{found.rows | selectattr('open') | list | batch(1) | first | default([])}}",
        "{{found.rows[:2]}}",
        "{{[found.rows | first]}}",
    ] {
        let (results, ending) = carry_out(&over(list), fails);
        assert_eq!(
            (places(&results), ending.status),
            (vec!["look failed".to_owned(), "each skipped".to_owned()], RunStatus::Failed),
            "{list}"
        );
        let why = "There is no list to go through: the action look failed, so its output proves nothing.";
        assert_eq!(results[1].error.as_deref(), Some(why), "{list}");
    }
    // The author says what stands in its place.
    for list in ["{{found.rows | default([])}}", "{{found.rows if found is defined else []}}", "{{found.rows or []}}"] {
        let (results, _) = carry_out(&over(list), fails);
        assert_eq!(places(&results), ["look failed", "each succeeded"], "{list}");
    }
}

#[test]
fn a_choice_about_a_cut_list_takes_no_branch() {
    let about = json!({"path": "found.rows", "op": "any", "value": {"path": "item.name", "op": "==", "value": "last"}});
    let list = json!([
        action("look", json!({"output_as": "found"})),
        {
            "id": "decide", "choose": [{"when": about, "actions": [action("then", json!({}))]}],
            "otherwise": [action("else", json!({}))],
        },
    ]);
    let mut rows = vec![json!({"name": "x".repeat(60)}); 2_000];
    rows.push(json!({"name": "last"}));
    let (results, _) = carry_out(&list, |_, _| ToolOutcome::succeeded(json!({"rows": rows})));
    assert_eq!(places(&results), ["look succeeded", "decide skipped"]);
    assert!(results[1].error.as_deref().unwrap().contains("it was cut"), "{:?}", results[1].error);
}

#[test]
fn equal_items_have_places_of_their_own_and_equal_keys_are_done_once() {
    let rows = json!([{"id": 7, "name": "Ada"}, {"id": 7, "name": "Ada"}, {"id": "a b", "name": "Bob"}]);
    let (results, _) = carry_out(&json!([each(rows.clone(), json!({}))]), echo);
    let digest = &results[0].keys[0];
    assert_eq!((digest.len(), &results[0].keys[1]), (16, &format!("{digest}-2")));
    assert_eq!(results.len(), 5);
    let (results, _) = carry_out(&json!([each(rows, json!({"key": "{{row.id}}"}))]), echo);
    assert_eq!(results[0].keys.len(), 2);
    assert_eq!(
        results[0].note.as_deref(),
        Some("2 items. 1 of the list's 3 have the key of an earlier one, and are left out.")
    );
    assert_eq!(results[0].keys[1].len(), 16, "a key with a blank is shown as its digest");
}

#[test]
fn a_failed_item_ends_the_loop_only_if_the_loop_says_so() {
    let rows = json!([{"name": "a"}, {"name": "bad"}, {"name": "c"}]);
    let tool = |_: &str, arguments: &Map<String, Value>| {
        if arguments.get("to") == Some(&json!("bad")) { ToolOutcome::failed("No.") } else { ToolOutcome::succeeded(1) }
    };
    let two = json!([
        action("notify", json!({"parameters": {"to": "{{row.name}}"}, "on_error": "stop"})),
        action("log", json!({})),
    ]);
    let key = json!({"key": "{{row.name}}", "actions": two, "output_as": "all"});
    let (results, ending) = carry_out(&json!([each(rows.clone(), key.clone()), action("after", json!({}))]), tool);
    assert_eq!(
        places(&results),
        [
            "each succeeded",
            "each[a].notify succeeded",
            "each[a].log succeeded",
            "each[bad].notify failed",
            "each[c].notify succeeded",
            "each[c].log succeeded",
            "each failed",
            "after succeeded",
        ]
    );
    assert_eq!(results[6].note.as_deref(), Some("3 of 3 items were done, 1 of them failed."));
    assert!(results[6].output.as_ref().unwrap().contains(r#""error":"No.","key":"bad""#), "{:?}", results[6].output);
    assert_eq!(
        (ending.status, ending.error.as_deref()),
        (RunStatus::PartialFailure, Some("1 of 6 actions failed: each[bad].notify (No.)."))
    );

    let mut stops = each(rows, key);
    stops["on_error"] = json!("stop");
    let (results, ending) = carry_out(&json!([stops, action("after", json!({}))]), tool);
    assert_eq!(places(&results)[3..], ["each[bad].notify failed", "each failed"]);
    assert_eq!(
        ending.error.as_deref(),
        Some(
            "1 of 3 actions failed: each[bad].notify (No.). The last 1 were not started: the run was to stop if an item of each fails."
        )
    );
}

#[test]
fn exactly_one_branch_runs() {
    let branch = |value: i32, id: &str| json!({"when": {"path": "n", "op": "==", "value": value}, "actions": [action(id, json!({"output_as": "said"}))]});
    let choose = |first: i32, second: i32| {
        json!([
            {"id": "decide", "choose": [branch(first, "one"), branch(second, "two")], "otherwise": [action("else", json!({"output_as": "other"}))]},
            action("after", json!({"parameters": {"said": "{{said}}", "other": "{{other}}"}})),
        ])
    };
    for (list, expected, arguments) in [
        (choose(5, 5), "one succeeded", r#"{"other":"[No available data]","said":{}}"#),
        (choose(1, 5), "two succeeded", r#"{"other":"[No available data]","said":{}}"#),
        (choose(1, 2), "else succeeded", r#"{"other":{},"said":"[No available data]"}"#),
    ] {
        let (results, _) = carry_out(&list, echo);
        assert_eq!(places(&results), ["decide succeeded", expected, "after succeeded"]);
        assert_eq!(results[2].arguments.as_deref(), Some(arguments));
    }
    let none = json!([{"id": "decide", "choose": [branch(1, "one")]}]);
    let (results, ending) = carry_out(&none, echo);
    assert_eq!((places(&results), ending.status), (vec!["decide skipped".to_owned()], RunStatus::Completed));
    assert_eq!(results[0].error.as_deref(), Some("None of its conditions holds: n == 1: no, it was 5."));
}

/// Neither a branch nor `otherwise` runs after an outage; an action that was not wanted is no outage.
#[test]
fn no_branch_runs_if_a_condition_proves_nothing() {
    let when = json!({"path": "sev.answer", "op": "==", "value": "high"});
    let choose = json!({
        "id": "decide", "choose": [{"when": when, "actions": [action("page", json!({}))]}],
        "otherwise": [action("mail", json!({}))],
    });
    let judge = action("judge", json!({"output_as": "sev"}));
    let (results, _) = carry_out(&json!([judge, choose]), |_, _| ToolOutcome::failed("Down."));
    assert_eq!(places(&results), ["judge failed", "decide skipped"]);
    let why = "No branch was taken: sev.answer == \"high\": no, the action judge failed, so its output proves nothing.";
    assert_eq!(results[1].error.as_deref(), Some(why));
    let never = action("judge", json!({"output_as": "sev", "condition": {"path": "n", "op": "==", "value": 6}}));
    let (results, _) = carry_out(&json!([never, choose]), echo);
    assert_eq!(places(&results), ["judge skipped", "decide succeeded", "mail succeeded"]);
}

#[test]
fn loops_in_loops_keep_their_items_apart() {
    let inner = json!({"id": "inner", "for_each": "{{row.parts}}", "as": "part", "key": "{{part}}", "actions": [
        action("do", json!({"parameters": {"of": "{{row.id}}-{{part}}"}})),
    ]});
    let rows = json!([{"id": "x", "parts": ["a", "b"]}, {"id": "y", "parts": ["a"]}]);
    let outer = json!({"id": "outer", "for_each": rows, "as": "row", "key": "{{row.id}}", "actions": [inner]});
    let (results, _) = carry_out(&json!([outer]), echo);
    let called: Vec<&str> =
        results.iter().filter(|result| result.kind == StepKind::Action).map(ActionResult::place).collect();
    assert_eq!(called, ["outer[x].inner[a].do", "outer[x].inner[b].do", "outer[y].inner[a].do"]);
    assert_eq!(results[2].arguments.as_deref(), Some(r#"{"of":"x-a"}"#));
}

#[test]
fn a_run_has_a_limit_of_steps() {
    let rows = |count: usize| Value::Array((0..count).map(|row| json!({"name": row.to_string()})).collect());
    let inner = json!({"id": "inner", "for_each": rows(500), "as": "part", "max_items": 1_000, "actions": [action("do", json!({}))]});
    let outer = json!({"id": "outer", "for_each": rows(1_000), "as": "row", "max_items": 1_000, "actions": [inner]});
    let (steps, variables, data) = (steps(&json!([outer])), Map::new(), data(&json!({})));
    let mut run = ActionRun::resume((&steps, &[]), &variables, &data, &[]).unwrap();
    let mut results = 0;
    let ending = loop {
        match run.next(now()) {
            Next::Over(ending) => break ending,
            Next::Settled(result) => run.record(&result).unwrap(),
            Next::Pause(..) | Next::Busy => panic!("nothing waits"),
            Next::Call(planned) => run.record(&planned.finished(&ToolOutcome::succeeded(1), false, now())).unwrap(),
        }
        results += 1;
    };
    assert_eq!((results, ending.status), (MOST_RESULTS, RunStatus::PartialFailure));
    assert!(ending.error.unwrap().contains("the next one (a run has at most 5000 steps; split the automation)"));
}

#[test]
fn a_result_of_another_step_is_refused() {
    let list = json!([each(json!([{"name": "a"}]), json!({}))]);
    let (results, _) = carry_out(&list, echo);
    let (steps, variables, data) = (steps(&list), Map::new(), data(&json!({})));
    let wrong = [results[1].clone()];
    assert!(ActionRun::resume((&steps, &[]), &variables, &data, &wrong).is_err());
}

// -------------------------------------------------------------------------------------------------------------- pauses

#[test]
fn a_pause_ends_at_its_time_and_is_the_same_whenever_the_run_resumes() {
    let paused = |wait: Value| steps(&json!([{"id": "pause", "wait": wait}, action("after", json!({}))]));
    let (variables, data) = (Map::new(), data(&json!({"due": "2026-11-24T09:00", "word": "soon"})));
    // Berlin is an hour ahead of UTC.
    for (wait, until) in [
        (json!({"minutes": 30}), "2026-11-23T00:00:05.000Z"),
        (json!({"until": "2026-11-24T09:00"}), "2026-11-24T08:00:00.000Z"),
        (json!({"until": "2026-11-24T09:00:00+02:00"}), "2026-11-24T07:00:00.000Z"),
        (json!({"until": "2026-11-24"}), "2026-11-23T23:00:00.000Z"),
        (json!({"until": "{{due}}"}), "2026-11-24T08:00:00.000Z"),
    ] {
        let steps = paused(wait);
        let run = ActionRun::resume((&steps, &[]), &variables, &data, &[]).unwrap();
        let Next::Pause(pause, _) = run.next(now()) else { panic!("it waits") };
        assert_eq!((pause.place.as_str(), pause.until.to_string().as_str()), ("pause", until));
    }
    for (wait, status, said) in [
        (json!({"until": "2026-11-20"}), ActionStatus::Succeeded, "It did not wait"),
        (json!({"until": "2027-11-20"}), ActionStatus::Failed, "more than 30 days away"),
        (json!({"until": "{{word}}"}), ActionStatus::Failed, "soon is no moment"),
        (json!({"until": "{{no}}"}), ActionStatus::Failed, "is no moment"),
    ] {
        let steps = paused(wait);
        let run = ActionRun::resume((&steps, &[]), &variables, &data, &[]).unwrap();
        let Next::Settled(result) = run.next(now()) else { panic!("it does not wait") };
        let told = result.note.clone().or(result.error.clone()).unwrap();
        assert!(result.status == status && told.contains(said), "{result:?}");
    }
}
