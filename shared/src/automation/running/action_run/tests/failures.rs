//! Actions after a failure.

use super::*;

fn carry_out_all(list: &Value, catch: &Value, tool: impl Fn(&str) -> ToolOutcome) -> (Vec<ActionResult>, Ending) {
    let (results, ending, _) = carry_out_to_count(list, catch, tool);
    (results, ending)
}

/// Runs a whole definition, with `tool` answering every call; each failure is an outage. Returns also whether the run
/// failed but for catches, and by outages.
fn carry_out_to_count(
    list: &Value,
    catch: &Value,
    tool: impl Fn(&str) -> ToolOutcome,
) -> (Vec<ActionResult>, Ending, (bool, bool)) {
    let definition = json!({"name": "x", "trigger_type": "manual", "actions": list, "catch": catch});
    let mut diagnostics = Diagnostics::default();
    let definition = Definition::read(&definition, &mut diagnostics).unwrap();
    assert_eq!(diagnostics.iter().count(), 0, "{diagnostics:?}");
    let AutomationBody::Actions(steps) = &definition.body else { panic!("it has actions") };
    let (variables, data) = (Map::new(), data(&json!({"n": 5})));
    let mut results: Vec<ActionResult> = Vec::new();
    loop {
        let run = ActionRun::resume((steps, &definition.catch), &variables, &data, &results).unwrap();
        match run.next(now()) {
            Next::Over(ending) => {
                return (results, ending, (run.failed_but_for_catches(), run.failed_by_outages()));
            }
            Next::Settled(result) => results.push(*result),
            Next::Pause(..) | Next::Busy => panic!("nothing waits"),
            Next::Call(planned) => {
                let outcome = tool(&planned.id);
                let result = planned.finished(&outcome, false, now());
                results.push(ActionResult { outage: result.status == ActionStatus::Failed, ..result });
            }
        }
    }
}

fn only_bad(id: &str) -> ToolOutcome {
    if id.ends_with("bad") { ToolOutcome::failed("No.") } else { ToolOutcome::succeeded(1) }
}

#[test]
fn a_failure_is_caught_with_its_reason() {
    let tell = action("tell", json!({"parameters": {"text": "{{error.place}}: {{error.message}}"}}));
    let list = json!([
        action("bad", json!({"catch": [tell]})),
        action("after", json!({"parameters": {"gone": "{{error.message}}"}}))
    ]);
    let (results, ending) = carry_out_all(&list, &json!(null), only_bad);
    assert_eq!(places(&results), ["bad failed", "tell succeeded", "after succeeded"]);
    assert_eq!(results[1].arguments.as_deref(), Some(r#"{"text":"bad: No."}"#));
    assert_eq!(results[2].arguments.as_deref(), Some(r#"{"gone":"[No available data]"}"#));
    assert_eq!(
        (ending.status, ending.error.as_deref()),
        (RunStatus::PartialFailure, Some("1 of 3 actions failed: bad (No.)."))
    );
    // Nothing is caught where nothing failed.
    let (results, _) = carry_out_all(&list, &json!(null), |_| ToolOutcome::succeeded(1));
    assert_eq!(places(&results), ["bad succeeded", "after succeeded"]);
}

#[test]
fn a_run_that_is_to_stop_stops_after_its_catch() {
    let stops =
        |catch: Value| json!([action("bad", json!({"on_error": "stop", "catch": catch})), action("after", json!({}))]);
    let all =
        json!([action("sum", json!({"parameters": {"text": "{{error.message}}", "first": "{{error.places[0]}}"}}))]);
    let (results, ending) = carry_out_all(&stops(json!([action("tell", json!({}))])), &all, only_bad);
    assert_eq!(places(&results), ["bad failed", "tell succeeded", "sum succeeded"]);
    let said = "1 of 2 actions failed: bad (No.). The last 1 were not started: the run was to stop if bad fails.";
    assert_eq!(results[2].arguments.as_deref(), Some(json!({"first": "bad", "text": said}).to_string().as_str()));
    assert_eq!(ending.status, RunStatus::PartialFailure);
    assert!(ending.error.unwrap().ends_with("The last 1 were not started: the run was to stop if bad fails."));
    // A usage limit ends the run, and the catch of the automation says so.
    let limit = |id: &str| match id {
        "bad" => ToolOutcome::succeeded(json!({"error": "USAGE_LIMIT_EXCEEDED"})),
        _ => ToolOutcome::succeeded(1),
    };
    let (results, _) = carry_out_all(&stops(json!([action("tell", json!({}))])), &all, limit);
    assert_eq!(places(&results), ["bad failed", "sum succeeded"]);
    // A failure of the catch itself is not caught again.
    let (results, ending) = carry_out_all(
        &json!([action("bad", json!({}))]),
        &json!([action("too_bad", json!({})), action("last", json!({}))]),
        only_bad,
    );
    assert_eq!(
        (places(&results), ending.status),
        (
            vec!["bad failed".to_owned(), "too_bad failed".to_owned(), "last succeeded".to_owned()],
            RunStatus::PartialFailure
        )
    );
}

#[test]
fn a_failure_in_a_loop_is_caught_for_its_item() {
    let tell = action("tell", json!({"parameters": {"of": "{{error.place}}"}}));
    let inner = json!([action("bad", json!({"on_error": "stop", "catch": [tell]})), action("never", json!({}))]);
    let each =
        json!({"id": "each", "for_each": [{"k": "a"}, {"k": "b"}], "as": "row", "key": "{{row.k}}", "actions": inner});
    let (results, _) = carry_out_all(&json!([each]), &json!(null), only_bad);
    assert_eq!(
        places(&results),
        [
            "each succeeded",
            "each[a].bad failed",
            "each[a].tell succeeded",
            "each[b].bad failed",
            "each[b].tell succeeded",
            "each failed"
        ]
    );
    assert_eq!(results[2].arguments.as_deref(), Some(r#"{"of":"each[a].bad"}"#));
}

#[test]
fn a_loop_and_a_choice_catch_what_failed_in_them() {
    let tell =
        |id: &str| json!([action(id, json!({"parameters": {"of": "{{error.place}}", "why": "{{error.message}}"}}))]);
    let each = json!({
        "id": "each", "for_each": [{"k": "a"}, {"k": "b"}], "as": "row", "key": "{{row.k}}",
        "actions": [action("bad", json!({}))], "catch": tell("looped"),
    });
    let worse = json!([action("worse_bad", json!({"on_error": "stop"})), action("never", json!({}))]);
    let pick = json!({
        "id": "pick", "choose": [{"when": {"path": "trigger_data.n", "op": "==", "value": 5}, "actions": worse}],
        "catch": tell("chosen"),
    });
    let list = json!([each, pick, action("after", json!({}))]);
    let (results, ending) = carry_out_all(&list, &json!(null), only_bad);
    assert_eq!(
        places(&results),
        [
            "each succeeded",
            "each[a].bad failed",
            "each[b].bad failed",
            "each failed",
            "looped succeeded",
            "pick succeeded",
            "worse_bad failed",
            "chosen succeeded"
        ]
    );
    let why = "2 of 2 items were done, 2 of them failed. The first failure: No.";
    assert_eq!(results[4].arguments.as_deref(), Some(json!({"of": "each", "why": why}).to_string().as_str()));
    assert_eq!(results[7].arguments.as_deref(), Some(r#"{"of":"pick","why":"No."}"#));
    // The run stops only after the catch.
    assert!(ending.error.unwrap().ends_with("the run was to stop if worse_bad fails."));
    // Nothing is caught where nothing failed.
    let (results, ending) = carry_out_all(&list, &json!(null), |_| ToolOutcome::succeeded(1));
    assert!(!places(&results).iter().any(|place| place.starts_with("looped") || place.starts_with("chosen")));
    assert_eq!((ending.status, results.last().unwrap().place()), (RunStatus::Completed, "after"));
}

/// Holds unless the output proves nothing.
fn posted_is_not_five() -> Value {
    json!({"condition": {"path": "posted", "op": "!=", "value": 5}, "parameters": {"text": "{{posted}}"}})
}

fn limited(id: &str) -> ToolOutcome {
    if id.ends_with("limit") {
        return ToolOutcome::succeeded(json!({"error": "USAGE_LIMIT_EXCEEDED"}));
    }
    only_bad(id)
}

#[test]
fn a_later_action_may_reuse_the_name_of_an_output_in_a_catch_or_a_loop() {
    let posted = |id: &str| action(id, json!({"output_as": "posted"}));
    let reply = || action("reply", posted_is_not_five());
    let looped = |at_once: u64, inner: Value| {
        let each = json!({"id": "each", "for_each": [1], "at_once": at_once, "output_as": "all"});
        let mut each = each.as_object().unwrap().clone();
        each.insert("actions".to_owned(), inner);
        Value::Object(each)
    };
    let list = json!([action("bad", json!({"catch": [posted("tell")]})), posted("later_bad"), reply()]);
    let (results, _) = carry_out_all(&list, &json!(null), limited);
    assert_eq!(places(&results), ["bad failed", "tell succeeded", "later_bad failed", "reply skipped"]);
    // It was not reached, and the automation's catch looks at it.
    let in_catch = action("bad", json!({"catch": [posted("tell"), action("limit", json!({}))]}));
    let stops = action("bad", json!({"on_error": "stop"}));
    for first in [
        json!([in_catch]),
        json!([looped(1, json!([posted("tell"), action("limit", json!({}))]))]),
        json!([looped(2, json!([posted("tell"), action("limit", json!({}))]))]),
        json!([looped(1, json!([posted("tell")])), stops]),
    ] {
        let mut list = first;
        list.as_array_mut().unwrap().push(posted("later"));
        let (results, _) = carry_out_all(&list, &json!([reply()]), limited);
        assert_eq!(places(&results).last().unwrap(), "reply skipped", "{list}");
    }
    // An item has no output of its catch.
    let stops = action("bad", json!({"on_error": "stop", "catch": [posted("tell")]}));
    for at_once in [1, 2] {
        let list = json!([looped(at_once, json!([stops, posted("later")]))]);
        let (results, _) = carry_out_all(&list, &json!(null), limited);
        let output: Value = serde_json::from_str(results.last().unwrap().output.as_ref().unwrap()).unwrap();
        assert_eq!(output[0]["outputs"], json!({}), "{output}");
    }
}

#[test]
fn a_catch_that_is_stopped_gives_back_the_failure_around_it() {
    let log = action("log_bad", json!({"on_error": "stop"}));
    let mail = action("mail_bad", json!({"catch": [log]}));
    let tell = action("tell", json!({"parameters": {"text": "{{error.message}}", "first": "{{error.places[0]}}"}}));
    for at_once in [1, 2] {
        let each = json!({"id": "each", "for_each": ["ada"], "at_once": at_once, "actions": [mail]});
        let (results, _) = carry_out_all(&json!([action("bad", json!({}))]), &json!([each, tell]), only_bad);
        let told = results.last().unwrap();
        assert_eq!(told.place(), "tell");
        let expected = json!({"first": "bad", "text": "1 of 1 actions failed: bad (No.)."}).to_string();
        assert_eq!(told.arguments.as_deref(), Some(expected.as_str()));
    }
}

#[test]
fn a_run_in_which_only_a_catch_succeeded_has_failed_but_for_it() {
    let tell = |id: &str| json!([action(id, json!({}))]);
    let bad = || action("bad", json!({"catch": tell("tell")}));
    let each = |inner: Value| json!({"id": "each", "for_each": [1, 2, 3], "at_once": 2, "actions": inner});
    let after = || action("after", json!({}));
    for (list, catch, expected) in [
        (json!([bad()]), json!(null), true),
        (json!([action("bad", json!({}))]), tell("all"), true),
        (json!([action("bad", json!({}))]), json!([each(tell("all"))]), true),
        (json!([each(json!([bad()]))]), tell("all"), true),
        (json!([bad(), after()]), tell("all"), false),
        (json!([each(json!([bad(), after()]))]), tell("all"), false),
        (json!([after()]), tell("all"), false),
    ] {
        let (_, ending, counted) = carry_out_to_count(&list, &catch, only_bad);
        let status = if list == json!([after()]) { RunStatus::Completed } else { RunStatus::PartialFailure };
        assert_eq!((counted, ending.status), ((expected, expected), status), "{list} {catch}");
    }
}
