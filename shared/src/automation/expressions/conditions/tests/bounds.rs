//! The work of conditions is bounded, and so is the copying of values.

use super::*;

fn within(value: &Value, data: &Value, bytes: usize) -> Result<bool, OverBound> {
    let (condition, wrong) = condition(value);
    assert!(wrong.is_empty(), "{value}: {wrong:?}");
    explained_within(&condition.unwrap(), data, &Outputs::default(), bytes).map(|explained| explained.holds)
}

fn any(inner: &Value) -> Value {
    json!({"path": "items", "op": "any", "value": inner})
}

#[test]
fn a_list_does_not_multiply_the_work_on_other_values() {
    let items: Vec<u32> = (0..50_000).collect();
    let data = json!({"items": items, "text": "x".repeat(100_000), "name": "Ada"});
    let about_text = json!({"path": "text", "op": "contains", "value": "y"});
    let about_list = json!({"path": "items", "op": "contains", "value": -1});
    let lowered = json!({"path": "text", "op": "contains", "value": "Y", "case_insensitive": true});
    let filled_in = json!({"path": "item", "op": "==", "value": "<{{text}}>"});
    let calculated = json!({"path": "item", "op": "==", "value": "{{items | length}}"});
    let matched = json!({"path": "text", "op": "matches", "value": "y$"});
    for inner in [about_text, about_list, lowered, filled_in, calculated, matched] {
        assert_eq!(within(&any(&inner), &data, MOST_COMPARED), Err(OverBound), "{inner}");
    }
    // A long list is no problem in itself.
    let last = json!({"path": "item", "op": "==", "value": 49_999});
    assert_eq!(within(&any(&last), &data, MOST_COMPARED), Ok(true));
    let named = json!({"operator": "AND", "clauses": [last, {"path": "name", "op": "matches", "value": "^a", "case_insensitive": true}]});
    assert_eq!(within(&any(&named), &data, MOST_COMPARED), Ok(true));
}

#[test]
fn a_group_about_an_item_stops_at_the_clause_that_decides() {
    let items: Vec<u32> = (0..1_000).collect();
    let data = json!({"items": items, "text": "x".repeat(100_000)});
    let fails = json!({"path": "item", "op": "<", "value": 0});
    let slow = json!({"path": "text", "op": "contains", "value": "y"});
    let (first, last) = (json!([fails, slow]), json!([slow, fails]));
    let inner = |clauses: Value| any(&json!({"operator": "AND", "clauses": clauses}));
    assert_eq!(within(&inner(first), &data, MOST_COMPARED), Ok(false));
    assert_eq!(within(&inner(last), &data, 50_000_000), Err(OverBound));
}

#[test]
fn a_pattern_costs_what_its_program_does() {
    let data = json!({"x": "a".repeat(10_000)});
    let matches = |pattern: &str| json!({"path": "x", "op": "matches", "value": pattern});
    assert_eq!(within(&matches("b$"), &data, 1_000_000), Ok(false));
    for slow in ["([aeiou ]*[^x]*){30}q", "(a?b?c?d?e?f?){9}q"] {
        assert_eq!(within(&matches(slow), &data, 1_000_000), Err(OverBound), "{slow}");
    }
}

/// A pattern that takes exponential time with back-tracking.
#[test]
fn a_hostile_pattern_is_linear() {
    let text = "a".repeat(50_000) + "!";
    assert!(!compares(Some(json!(text)), "matches", &json!("^(a+)+$")));
}

#[test]
fn a_cut_list_decides_only_by_what_is_left_of_it() {
    let list = json!([{"n": 1}, {"n": 2}, crate::cut::instead_of("7 more")]);
    let names = json!(["a", "b", crate::cut::instead_of("7 more")]);
    let mut outputs = Outputs::default();
    outputs.give("found", json!({"list": list, "names": names, "…": crate::cut::instead_of("1 more")}));
    let data = json!({"name": "a", "other": "z"});
    let about = |n: u64| json!({"path": "item.n", "op": "<=", "value": n});
    for (path, op, value, holds) in [
        ("found.list", "any", Some(about(1)), Some(true)),
        ("found.list", "any", Some(about(0)), None),
        ("found.list", "all", Some(about(1)), Some(false)),
        ("found.list", "all", Some(about(2)), None),
        ("found.list", "none", Some(about(1)), Some(false)),
        ("found.list", "none", Some(about(0)), None),
        ("found.names", "contains", Some(json!("a")), Some(true)),
        ("found.names", "contains", Some(json!("z")), None),
        ("found.names", "not_contains", Some(json!("a")), Some(false)),
        ("found.names", "not_contains", Some(json!("z")), None),
        ("found.names", "contains_any", Some(json!(["z", "b"])), Some(true)),
        ("found.names", "contains_any", Some(json!(["z"])), None),
        ("found", "not_contains", Some(json!("total")), None),
        ("found.names", "is_empty", None, Some(false)),
        ("found.names", "exists", None, Some(true)),
        ("found.names[1]", "==", Some(json!("b")), Some(true)),
        ("found.names[2]", "!=", Some(json!("b")), None),
        ("found.names[-1]", "exists", None, None),
        ("found.total", "not_exists", None, None),
        ("found.total", "!=", Some(json!(5)), None),
        ("found.names[0].x", "exists", None, Some(false)),
        ("name", "in", Some(json!("{{found.names}}")), Some(true)),
        ("other", "in", Some(json!("{{found.names}}")), None),
        ("name", "!=", Some(json!("{{found.total}}")), None),
    ] {
        let mut clause = json!({"path": path, "op": op});
        if let Some(value) = value {
            clause["value"] = value;
        }
        let condition = condition(&clause).0.unwrap();
        let explained = explained_within(&condition, &data, &outputs, MOST_COMPARED).unwrap();
        assert_eq!(explained.holds, holds == Some(true), "{clause}: {}", explained.reason());
        assert_eq!(explained.reason().contains("it was cut"), holds.is_none(), "{clause}: {}", explained.reason());
    }
}

#[test]
fn a_failed_output_proves_nothing_about_items_either() {
    let mut outputs = Outputs::default();
    outputs.lack("lost", "look", "failed");
    let data = json!({"items": [{"id": 1}, {"id": 2}], "lost": [1, 2], "item": 7});
    let decided = |op: &str, inner: Value| {
        let value = json!({"path": "items", "op": op, "value": inner});
        let explained = explained_within(&condition(&value).0.unwrap(), &data, &outputs, MOST_COMPARED).unwrap();
        (explained.holds, explained.reason())
    };
    for op in ["any", "all", "none"] {
        for inner in [
            json!({"path": "lost.ids", "op": "contains", "value": "{{item.id}}"}),
            json!({"path": "item.id", "op": "==", "value": "{{lost.id}}"}),
            json!({"operator": "OR", "clauses": [{"path": "lost", "op": "is_empty"}, {"path": "item.id", "op": ">", "value": 9}]}),
        ] {
            let (holds, reason) = decided(op, inner.clone());
            assert!(
                !holds && reason.ends_with("the action look failed, so its output proves nothing"),
                "{op} {inner}: {reason}"
            );
        }
    }
    let absent = json!({"path": "lost", "op": "exists"});
    assert!(decided("none", absent).0, "exists only looks");
    outputs.lack("item", "other", "failed");
    let data = json!({"items": [{"id": 1}]});
    let about_item = json!({"path": "items", "op": "none", "value": {"path": "item.id", "op": "==", "value": 9}});
    let explained = explained_within(&condition(&about_item).0.unwrap(), &data, &outputs, MOST_COMPARED).unwrap();
    assert!(explained.holds, "an output cannot stand for the item: {}", explained.reason());
}
