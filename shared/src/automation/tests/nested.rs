//! Loops and branches in definitions: shape, scope, and the canonical form.

use super::*;
use crate::automation::definition::{AutomationBody, steps::all_steps};

fn row_loop() -> Value {
    json!({
        "id": "each", "for_each": "{{found.rows}}", "as": "row", "key": "{{row.name}}", "output_as": "all",
        "actions": [{"id": "note", "tool": "read_rows", "parameters": {"sheet": "{{row.name}} {{channel}}"}, "output_as": "noted"}],
    })
}

fn choice() -> Value {
    json!({
        "id": "decide",
        "choose": [{
            "when": {"path": "found.count", "op": ">", "value": 5},
            "actions": [{"id": "much", "tool": "read_rows", "parameters": {"sheet": "a"}, "output_as": "seen"}],
        }],
        "otherwise": [{"id": "little", "tool": "read_rows", "parameters": {"sheet": "b"}, "output_as": "seen"}],
    })
}

/// The base with a loop and a choice after its first action.
fn nested() -> Value {
    let mut definition = base();
    let actions = definition["actions"].as_array_mut().unwrap();
    actions.insert(1, row_loop());
    actions.insert(2, choice());
    actions.push(json!({"id": "last", "tool": "read_rows", "parameters": {"sheet": "{{all[0].outputs.noted.count}} {{seen.count}}"}}));
    definition
}

#[test]
fn a_definition_with_a_loop_and_a_choice_is_valid() {
    let found = report(&nested(), &known());
    assert!(found.diagnostics.is_empty(), "{}", found.to_text());
}

#[test]
fn mistakes_in_nested_steps_are_told_at_their_place() {
    let known = known();
    for (places, pointer, code) in [
        (("/actions/1/for_each", json!("found.rows")), "/actions/1/for_each", "wrong_type"),
        (("/actions/1/for_each", json!("{{found.count}}")), "/actions/1/for_each", "wrong_type"),
        (("/actions/1/for_each", json!(5)), "/actions/1/for_each", "wrong_type"),
        (("/actions/1/for_each", json!("{{found.rws}}")), "/actions/1/for_each", "unknown_path"),
        (("/actions/1/for_each", json!("{{all}}")), "/actions/1/for_each", "output_not_yet"),
        (("/actions/1/as", json!("channel")), "/actions/1/as", "duplicate_name"),
        (("/actions/1/as", json!("found")), "/actions/1/as", "duplicate_name"),
        (("/actions/1/as", json!("event")), "/actions/1/as", "duplicate_name"),
        (("/actions/1/key", json!("id")), "/actions/1/key", "invalid_value"),
        (("/actions/1/key", json!("{{row.nme}}")), "/actions/1/key", "unknown_path"),
        (("/actions/1/max_items", json!(1_001)), "/actions/1/max_items", "invalid_value"),
        (("/actions/1/at_once", json!(6)), "/actions/1/at_once", "invalid_value"),
        (("/actions/1/tool", json!("read_rows")), "/actions/1/tool", "unknown_field"),
        (("/actions/1/retries", json!(1)), "/actions/1/retries", "unknown_field"),
        (("/actions/1/actions", json!([])), "/actions/1/actions", "wrong_body"),
        (("/actions/1/actions", json!("note")), "/actions/1/actions", "wrong_type"),
        (("/actions/1/actions/0/id", json!("look")), "/actions/1/actions/0/id", "duplicate_id"),
        (("/actions/1/actions/0/tol", json!(1)), "/actions/1/actions/0/tol", "unknown_field"),
        (("/actions/1/actions/0/tool", json!("slack_post_mesage")), "/actions/1/actions/0/tool", "unknown_tool"),
        (
            ("/actions/1/actions/0/parameters/sheet", json!("{{row.nme}}")),
            "/actions/1/actions/0/parameters/sheet",
            "unknown_path",
        ),
        (
            ("/actions/1/actions/0/parameters/sheet", json!("{{seen.count}}")),
            "/actions/1/actions/0/parameters/sheet",
            "output_not_yet",
        ),
        (("/actions/4/parameters/sheet", json!("{{row.name}}")), "/actions/4/parameters/sheet", "unknown_path"),
        (("/actions/4/parameters/sheet", json!("{{noted.count}}")), "/actions/4/parameters/sheet", "unknown_path"),
        (("/actions/2/choose", json!([])), "/actions/2/choose", "wrong_type"),
        (("/actions/2/choose/0/when", json!("count > 5")), "/actions/2/choose/0/when", "invalid_condition"),
        (("/actions/2/choose/0/then", json!([])), "/actions/2/choose/0/then", "unknown_field"),
        (("/actions/2/choose/0/when/path", json!("found.cont")), "/actions/2/choose/0/when/path", "unknown_path"),
        (("/actions/2/otherwise/0/id", json!("much")), "/actions/2/otherwise/0/id", "duplicate_id"),
        (("/actions/2/otherwise/0/output_as", json!("found")), "/actions/2/otherwise/0/output_as", "duplicate_name"),
        (("/actions/2/output_as", json!("x")), "/actions/2/output_as", "unknown_field"),
        (
            ("/actions/2/condition", json!({"path": "found.count", "op": "exists"})),
            "/actions/2/condition",
            "unknown_field",
        ),
    ] {
        let definition = with(nested(), std::slice::from_ref(&places));
        let found = report(&definition, &known);
        let first = found.diagnostics.iter().find(|one| one.pointer == pointer);
        assert_eq!(first.map(|one| one.code.as_str()), Some(code), "{places:?}\n{}", found.to_text());
        assert!(found.diagnostics.iter().all(|one| one.hint.ends_with(['.', ':'])), "{}", found.to_text());
    }
}

#[test]
fn a_pause_has_one_time_within_thirty_days() {
    let pause = |wait: Value| with(base(), &[("/actions/-", json!({"id": "pause", "wait": wait}))]);
    for wait in [
        json!({"minutes": 1}),
        json!({"minutes": 43_200}),
        json!({"minutes": 30, "until": null, "for_event": null}),
        json!({"until": "2027-01-31"}),
        json!({"until": "{{event.text}}"}),
        json!({"for_event": {"hook": "acme", "timeout": 43_200}}),
        json!({"for_event": {"hook": "acme", "timeout": 5, "filters": {"path": "n", "op": "==", "value": "{{event.text}}"}}}),
    ] {
        let found = report(&pause(wait), &known());
        assert!(found.diagnostics.is_empty(), "{}", found.to_text());
    }
    for (wait, pointer, code) in [
        (json!({"minutes": 0}), "/actions/2/wait/minutes", "invalid_value"),
        (json!({"minutes": 43_201}), "/actions/2/wait/minutes", "invalid_value"),
        (json!({"minutes": "5"}), "/actions/2/wait/minutes", "wrong_type"),
        (json!({}), "/actions/2/wait", "missing_field"),
        (json!({"minutes": null}), "/actions/2/wait", "missing_field"),
        (json!({"until": null, "for_event": null}), "/actions/2/wait", "missing_field"),
        (
            json!({"for_event": {"hook": "acme", "event_type": "order.paid", "timeout": null}}),
            "/actions/2/wait/for_event/timeout",
            "missing_field",
        ),
        (
            json!({"for_event": {"hook": null, "service": "Slack", "event_type": "message", "params": {}, "timeout": 5}}),
            "/actions/2/wait/for_event/params",
            "unknown_field",
        ),
        (json!({"minutes": 5, "until": "2027-01-31"}), "/actions/2/wait", "missing_field"),
        (json!({"until": "soon"}), "/actions/2/wait/until", "invalid_value"),
        (json!({"until": "2027-01-31T09:00[Mars/Base]"}), "/actions/2/wait/until", "invalid_value"),
        (json!({"until": "2026-11-01T09:00"}), "/actions/2/wait/until", "in_the_past"),
        (json!({"until": "{{event.txt}}"}), "/actions/2/wait/until", "unknown_path"),
        (json!({"for_event": {}}), "/actions/2/wait/for_event/timeout", "missing_field"),
        (
            json!({"for_event": {"hook": "acme", "timeout": 43_201}}),
            "/actions/2/wait/for_event/timeout",
            "invalid_value",
        ),
        (json!({"minutes": 5, "for_event": {"hook": "acme", "timeout": 5}}), "/actions/2/wait", "missing_field"),
        (
            json!({"for_event": {"service": "Slack", "event_type": "message", "params": {}, "timeout": 5}}),
            "/actions/2/wait/for_event/params",
            "unknown_field",
        ),
        (
            json!({"for_event": {"hook": "acme", "timeout": 5, "filters": {"path": "n", "op": "==", "value": "{{event.txt}}"}}}),
            "/actions/2/wait/for_event/filters/value",
            "unknown_path",
        ),
        (
            json!({"for_event": {"hook": "acme", "timeout": 5, "filters": {"path": "user.email", "op": "exists"}}}),
            "/actions/2/wait/for_event/filters/path",
            "invalid_condition",
        ),
        (json!(30), "/actions/2/wait", "wrong_type"),
    ] {
        let found = report(&pause(wait), &known());
        assert!(told(&found).contains(&(pointer.to_owned(), code)), "{}", found.to_text());
    }
}

fn members(value: &Value, pointer: &str) -> Vec<String> {
    let inner: Vec<(String, &Value)> = match value {
        Value::Object(members) => members.iter().map(|(name, value)| (name.clone(), value)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(index, value)| (index.to_string(), value)).collect(),
        _ => Vec::new(),
    };
    let places = inner.into_iter().flat_map(|(name, value)| {
        let pointer = format!("{pointer}/{name}");
        let below = members(value, &pointer);
        std::iter::once(pointer).chain(below)
    });
    places.collect()
}

/// Whatever is null, a definition without mistakes has all of its steps.
#[test]
fn no_step_vanishes_because_of_a_null() {
    let mut definition = nested();
    definition["actions"].as_array_mut().unwrap().extend([
        json!({"id": "minutes", "wait": {"minutes": 30}}),
        json!({"id": "until", "wait": {"until": "2027-01-31"}}),
        json!({"id": "event", "output_as": "paid", "wait": {"for_event": {
            "hook": "acme", "event_type": "order.paid", "timeout": 5, "filters": {"path": "n", "op": "exists"},
        }}}),
    ]);
    let read = |definition: &Value| {
        let mut diagnostics = Diagnostics::default();
        let read = Definition::read(definition, &mut diagnostics).filter(|_| !diagnostics.has_errors())?;
        let AutomationBody::Actions(steps) = read.body else { panic!("it has actions") };
        Some(all_steps(&steps).len())
    };
    let whole = read(&definition).unwrap();
    let places: Vec<String> = members(&definition["actions"], "/actions");
    assert!(places.len() > 60, "{places:?}");
    for place in places.into_iter().filter(|place| !place.ends_with("/otherwise")) {
        let mut changed = definition.clone();
        *changed.pointer_mut(&place).unwrap() = Value::Null;
        assert!(read(&changed).is_none_or(|steps| steps == whole), "{place}");
    }
}

#[test]
fn a_field_of_another_language_is_explained() {
    for (step, meant) in [
        (json!({"id": "x", "sleep": 5}), "wait"),
        (json!({"id": "x", "foreach": "{{found.rows}}", "do": []}), "for_each"),
        (json!({"id": "x", "if": {"path": "found.count", "op": "exists"}, "then": []}), "choose"),
    ] {
        let found = report(&with(base(), &[("/actions/-", step)]), &known());
        assert_eq!(found.diagnostics[0].did_you_mean.as_deref(), Some(meant), "{}", found.to_text());
    }
    let found = report(&with(nested(), &[("/actions/1/for_each", json!("found.rows"))]), &known());
    assert_eq!(found.diagnostics[0].did_you_mean.as_deref(), Some("{{found.rows}}"));
}

#[test]
fn a_catch_sees_the_failure_as_error() {
    let tell =
        |path: &str| json!([{"id": "told", "tool": "read_rows", "parameters": {"sheet": format!("{{{{{path}}}}}")}}]);
    for (place, path, found) in [
        ("/actions/0/catch", "error.message", None),
        ("/actions/0/catch", "error.place", None),
        ("/actions/0/catch", "error.places", Some("/actions/0/catch/0/parameters/sheet unknown_path")),
        ("/actions/0/catch", "found.count", Some("/actions/0/catch/0/parameters/sheet output_not_yet")),
        ("/catch", "error.places[0]", None),
        ("/catch", "found.rows[0].name", None),
        ("/catch", "error.tool", Some("/catch/0/parameters/sheet unknown_path")),
        ("/actions/1/parameters/text", "", Some("/actions/1/parameters/text unknown_path")),
    ] {
        let value = if path.is_empty() { json!("{{error.message}}") } else { tell(path) };
        let report = report(&with(base(), &[(place, value)]), &known());
        let told: Vec<String> = told(&report).into_iter().map(|(place, code)| format!("{place} {code}")).collect();
        assert_eq!(told.first().map(String::as_str), found, "{}", report.to_text());
    }
    let taken = with(base(), &[("/variables/error", json!("x")), ("/catch", tell("error.message"))]);
    assert!(told(&report(&taken, &known())).contains(&("/catch".to_owned(), "duplicate_name")));
    let prompted = with(prompt(), &[("/catch", tell("error.message"))]);
    assert!(told(&report(&prompted, &known())).contains(&("/catch".to_owned(), "unknown_field")));
    let twice = with(base(), &[("/catch", json!([{"id": "look", "tool": "read_rows", "parameters": {"sheet": "a"}}]))]);
    assert!(told(&report(&twice, &known())).contains(&("/catch/0/id".to_owned(), "duplicate_id")));
}

#[test]
fn steps_are_nested_four_deep_at_most() {
    let around = |depth: usize| {
        (0..depth).fold(json!({"id": "in", "tool": "read_rows", "parameters": {"sheet": "a"}}), |step, level| {
            json!({"id": format!("loop_{level}"), "for_each": ["a"], "as": format!("item_{level}"), "actions": [step]})
        })
    };
    let found = report(&with(base(), &[("/actions/-", around(4))]), &known());
    assert!(found.diagnostics.is_empty(), "{}", found.to_text());
    let found = report(&with(base(), &[("/actions/-", around(5))]), &known());
    assert_eq!(found.diagnostics[0].code, Code::TooLarge, "{}", found.to_text());
    let many: Vec<Value> = (0..150)
        .map(|place| json!({"id": format!("a{place}"), "tool": "read_rows", "parameters": {"sheet": "a"}}))
        .collect();
    let twice = json!({"id": "decide", "choose": [{"when": {"path": "found.count", "op": "exists"}, "actions": many}], "otherwise": [
        {"id": "each", "for_each": ["a"], "actions": many.iter().map(|one| with(one.clone(), &[("/id", json!(format!("b{}", one["id"])))])).collect::<Vec<Value>>()},
    ]});
    let found = report(&with(base(), &[("/actions/-", twice)]), &known());
    assert!(told(&found).contains(&("/actions".to_owned(), "too_large")), "{}", found.to_text());
}

/// Aliases and nulls of nested steps do not make another version.
#[test]
fn the_canonical_form_reaches_nested_steps() {
    let plain = nested();
    let other = with(
        plain.clone(),
        &[
            ("/actions/1/condition", json!({"a": 1})),
            ("/actions/1/actions/0/params", json!({"sheet": "{{row.name}} {{channel}}"})),
            ("/actions/1/actions/0/parameters", Value::Null),
            ("/actions/2/otherwise/0/action_id", json!("little")),
            ("/actions/2/otherwise/0/id", Value::Null),
        ],
    );
    let mut other = other;
    other["actions"][1]["condition"] = Value::Null;
    other["actions"][2]["choose"][0]["when"]["case_insensitive"] = Value::Null;
    assert_eq!(Definition::canonical(&other), Definition::canonical(&plain));
    // The parameters of a tool are the author's.
    let own = json!({"name": "x", "actions": [{"id": "a", "tool": "t", "parameters": {"actions": [{"params": null}], "choose": null}}]});
    assert_eq!(Definition::canonical(&own), own);
}
