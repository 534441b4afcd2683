//! Items of a loop at the same time: the results are those of a loop in sequence, and the order of the ends changes nothing.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

/// Carries a loop out, each time ending one of the calls that are being taken, by the numbers of `order`. Resumes before each step.
/// Returns the results, the ending, and the most calls at a time.
fn side_by_side(
    list: &Value,
    order: &[usize],
    tool: impl Fn(&str, &Map<String, Value>) -> ToolOutcome,
) -> (Vec<ActionResult>, Ending, usize) {
    let (actions, variables, data) = (steps(list), Map::new(), data(&json!({})));
    let mut results: Vec<ActionResult> = Vec::new();
    let mut taken: BTreeMap<String, Box<PlannedAction<'_>>> = BTreeMap::new();
    let mut most = 0;
    let mut order = order.iter().cycle();
    loop {
        let run = ActionRun::resume((&actions, &[]), &variables, &data, &results).unwrap();
        let places: Vec<String> = taken.keys().cloned().collect();
        match run.next_beside(&places, now()) {
            Next::Over(ending) => return (results, ending, most),
            Next::Settled(result) => results.push(run.numbered(*result)),
            Next::Pause(..) => panic!("nothing waits"),
            Next::Call(planned) => {
                assert!(taken.insert(planned.id.clone(), planned).is_none(), "a step is taken once");
            }
            Next::Busy => {
                most = most.max(taken.len());
                let place = places[order.next().unwrap() % places.len()].clone();
                let planned = taken.remove(&place).unwrap();
                results.push(run.numbered(planned.finished(&tool(&place, &planned.arguments), false, now())));
            }
        }
    }
}

fn rows(count: usize) -> Value {
    (0..count).map(|number| json!({"id": number, "name": format!("n{number}"), "parts": [1, 2]})).collect()
}

/// A loop with a loop, a choice and a `catch` in it, which fails for some items.
fn rich(count: usize, at_once: usize, more: &Value) -> Value {
    let mut outer = each(
        rows(count),
        json!({
            "key": "{{row.id}}", "at_once": at_once, "output_as": "all", "actions": [
                action("notify", json!({"parameters": {"to": "{{row.name}}"}, "output_as": "sent"})),
                {"id": "inner", "for_each": "{{row.parts}}", "as": "part", "key": "{{part}}", "actions": [
                    action("do", json!({"parameters": {"of": "{{row.name}} {{part}} {{sent.to}}"}})),
                ]},
                {"id": "decide", "choose": [
                    {"when": {"path": "row.id", "op": ">", "value": 1}, "actions": [action("much", json!({"output_as": "said"}))]},
                ], "otherwise": [action("little", json!({"output_as": "said"}))], "catch": [action("told", json!({}))]},
                action("last", json!({"condition": {"path": "said.ok", "op": "==", "value": true}, "on_error": "stop"})),
                action("never", json!({"condition": {"path": "row.id", "op": "!=", "value": 3}})),
            ],
        }),
    );
    outer.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!([outer, action("after", json!({"parameters": {"all": "{{all}}"}}))])
}

fn answer(id: &str, arguments: &Map<String, Value>) -> ToolOutcome {
    match id {
        "each[2].much" | "each[4].last" => ToolOutcome::failed("no".to_owned()),
        _ if arguments.contains_key("to") => ToolOutcome::succeeded(Value::Object(arguments.clone())),
        _ => ToolOutcome::succeeded(json!({"ok": true})),
    }
}

/// Every result but its number, by place.
fn by_place(results: &[ActionResult]) -> BTreeMap<(String, String), Value> {
    let of = |result: &ActionResult| {
        let plain = ActionResult { index: 0, ..result.clone() };
        ((result.place().to_owned(), format!("{:?}", result.kind)), json!(plain))
    };
    results.iter().map(of).collect()
}

proptest! {
    #[test]
    fn the_order_of_ends_changes_nothing(order in prop::collection::vec(0_usize..5, 1..40), at_once in 2_usize..=5, count in 1_usize..8) {
        let (one_by_one, ending) = carry_out(&rich(count, 1, &json!({})), answer);
        let (results, same, most) = side_by_side(&rich(count, at_once, &json!({})), &order, answer);
        prop_assert!(most == at_once.min(count), "{} at once", most);
        let numbers: BTreeSet<u32> = results.iter().map(|result| result.index).collect();
        prop_assert_eq!(numbers.len(), results.len());
        prop_assert_eq!(by_place(&one_by_one), by_place(&results));
        prop_assert_eq!(ending.status, same.status);
    }

    #[test]
    fn a_failed_item_lets_the_running_ones_end_and_no_other_begin(order in prop::collection::vec(0_usize..5, 1..40)) {
        let (results, ending, _) = side_by_side(&rich(9, 3, &json!({"on_error": "stop"})), &order, answer);
        let begun: BTreeSet<&str> =
            results.iter().map(ActionResult::place).filter(|place| place.ends_with("].notify")).collect();
        let ended = results.iter().filter(|result| result.place().ends_with("].never")).count();
        // Item 2 fails, or item 4 before it; a failed action ends item 4.
        prop_assert!((3..=7).contains(&begun.len()), "{:?}", begun);
        prop_assert!(begun.len() - ended <= 1);
        prop_assert_eq!(ending.status, RunStatus::PartialFailure);
        prop_assert!(!results.iter().any(|result| result.place() == "after"));
        let end = results.last().unwrap();
        let note = format!("{} of 9 items were done", begun.len());
        prop_assert!(end.note.as_deref().unwrap().starts_with(&note), "{:?}", end.note);
    }

    #[test]
    fn a_usage_limit_ends_the_loop_after_the_steps_that_are_being_taken(order in prop::collection::vec(0_usize..5, 1..40)) {
        let limited = |id: &str, arguments: &Map<String, Value>| match id {
            "each[3].notify" => ToolOutcome::failed("USAGE_LIMIT_EXCEEDED".to_owned()),
            _ => answer(id, arguments),
        };
        let (results, ending, _) = side_by_side(&rich(9, 3, &json!({})), &order, limited);
        let limit = results.iter().position(|result| result.place() == "each[3].notify").unwrap();
        let calls = results[limit + 1..].iter().filter(|result| result.kind == StepKind::Action && result.attempts == 0);
        prop_assert!(calls.clone().count() <= 2, "{:?}", places(&results));
        let end = results.last().unwrap();
        prop_assert_eq!((end.kind, end.place()), (StepKind::ForEachEnd, "each"));
        let begun: BTreeSet<&str> =
            results.iter().map(ActionResult::place).filter_map(|place| Some(place.split_once("].")?.0)).collect();
        // The limit ends item 3, and a failed action item 4.
        let ends = |place: &str| place.ends_with("].never") || ["each[3].notify", "each[4].last"].contains(&place);
        let unfinished = begun.len() - results.iter().filter(|result| ends(result.place())).count();
        let told = format!("; {unfinished} were begun and not finished");
        prop_assert_eq!(end.note.as_deref().unwrap().contains(&told), unfinished > 0, "{:?} {:?}", end.note, begun);
        prop_assert_eq!(ending.status, RunStatus::PartialFailure);
        prop_assert!(ending.error.unwrap().contains("the usage limit of t is exceeded"));
    }
}

#[test]
fn a_run_that_is_full_ends_the_loop_after_the_steps_that_are_being_taken() {
    let rows = |count: usize| Value::Array((0..count).map(|row| json!({"name": row.to_string()})).collect());
    let inner = json!({"id": "inner", "for_each": rows(900), "as": "part", "max_items": 1_000, "actions": [action("do", json!({}))]});
    let outer = json!({
        "id": "outer", "for_each": rows(1_000), "as": "row", "max_items": 1_000, "at_once": 3, "actions": [inner],
    });
    let (steps, variables, data) = (steps(&json!([outer])), Map::new(), data(&json!({})));
    let mut run = ActionRun::resume((&steps, &[]), &variables, &data, &[]).unwrap();
    let (mut taken, mut results) = (Vec::<Box<PlannedAction<'_>>>::new(), 0);
    let ending = loop {
        let places: Vec<String> = taken.iter().map(|planned| planned.id.clone()).collect();
        match run.next_beside(&places, now()) {
            Next::Over(ending) => break ending,
            Next::Settled(result) => run.record(&result).unwrap(),
            Next::Pause(..) => panic!("nothing waits"),
            Next::Call(planned) => {
                taken.push(planned);
                continue;
            }
            Next::Busy => {
                let planned = taken.remove(0);
                run.record(&planned.finished(&ToolOutcome::succeeded(1), false, now())).unwrap();
            }
        }
        results += 1;
    };
    assert!((MOST_RESULTS..MOST_RESULTS + 4).contains(&results), "{results}");
    assert!(ending.error.unwrap().contains("a run has at most 5000 steps"));
}

#[test]
fn a_loop_whose_steps_may_wait_has_no_at_once() {
    let within = |step: &Value| json!([each(json!([1]), json!({"at_once": 2, "actions": [step]}))]);
    let waiting = [
        (json!({"id": "p", "wait": {"minutes": 1}}), "p is a pause"),
        (action("a", json!({"approval": true})), "a waits for an approval"),
        (
            json!({"id": "g", "tool": "llm_agent", "parameters": {"prompt": "x", "tools": []}}),
            "a run of its own (llm_agent)",
        ),
        (each(json!([1]), json!({"id": "i", "as": "part", "at_once": 2})), "i is a loop with at_once, too"),
        (action("a", json!({"catch": [{"id": "p", "wait": {"minutes": 1}}]})), "p is a pause"),
    ];
    for (step, why) in waiting {
        let definition = json!({"name": "x", "trigger_type": "manual", "actions": within(&step)});
        let mut diagnostics = Diagnostics::default();
        Definition::read(&definition, &mut diagnostics);
        let found: Vec<_> = diagnostics.iter().filter(|one| one.pointer == "/actions/0/at_once").collect();
        assert!(found.len() == 1 && found[0].message.contains(why), "{why}: {diagnostics:?}");
    }
    let mut asks = json!({"name": "x", "trigger_type": "manual", "actions": within(&action("a", json!({})))});
    asks["approvals"] = json!([{"effect": "any"}]);
    let mut diagnostics = Diagnostics::default();
    Definition::read(&asks, &mut diagnostics);
    assert!(diagnostics.iter().any(|one| one.message.contains("approval rules")), "{diagnostics:?}");
}
