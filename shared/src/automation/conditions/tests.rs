//! Conditions are read strictly, compare as docs/automations.md says, and tell why they hold.

use super::*;

fn condition(value: &Value) -> (Option<Condition>, Vec<(String, Code)>) {
    let mut diagnostics = Diagnostics::default();
    let condition = Condition::read(value, "", &mut diagnostics);
    (condition, diagnostics.iter().map(|one| (one.pointer.clone(), one.code)).collect())
}

#[expect(clippy::needless_pass_by_value, reason = "reads better at the call")]
fn holds(value: Value) -> bool {
    let data = json!({
        "text": "This is URGENT", "count": 5, "counted": "5", "code": "007", "open": true, "opened": "true", "nothing": null,
        "tags": ["a", "B", 3], "at": "2026-11-22T10:00:00Z", "rows": [{"n": 1}, {"n": 20}], "made": {"by": "Ada"},
    });
    let (condition, wrong) = condition(&value);
    assert!(wrong.is_empty(), "{wrong:?}");
    let get = |path: &Path| Path::follow(path.steps(), &data).cloned();
    condition.unwrap().holds(&get, &Value::clone)
}

#[test]
fn every_operator_holds_and_does_not() {
    let clause = |path: &str, op: &str, value: Value| json!({"path": path, "op": op, "value": value});
    for (path, op, yes, no) in [
        ("count", "<", json!(6), json!(5)),
        ("count", ">", json!("4"), json!("5")),
        ("counted", "<=", json!(5), json!(4)),
        ("counted", ">=", json!("5"), json!("10")),
        ("at", ">", json!("2026-11-21"), json!("2026-11-23")),
        ("counted", "==", json!(5), json!(6)),
        ("counted", "==", json!("5"), json!("5.0")),
        ("code", "==", json!("007"), json!("7")),
        ("count", "==", json!("5"), json!("five")),
        ("count", "==", json!(5.0), json!(5.1)),
        ("open", "==", json!("true"), json!("false")),
        ("opened", "==", json!("true"), json!("yes")),
        ("opened", "==", json!(true), json!(false)),
        ("count", "!=", json!(6), json!("5")),
        ("nothing", "!=", json!(6), json!(null)),
        ("text", "contains", json!("URGENT"), json!("urgent")),
        ("tags", "contains", json!("a"), json!("b")),
        ("tags", "contains", json!("3"), json!("4")),
        ("made", "contains", json!("by"), json!("Ada")),
        ("text", "contains_any", json!(["x", "URGENT"]), json!(["x", "y"])),
        ("tags", "contains_any", json!(["x", 3]), json!(["x"])),
        ("text", "not_contains", json!("calm"), json!("URGENT")),
        ("gone", "not_contains", json!("x"), json!(null)),
        ("text", "starts_with", json!("This"), json!("this")),
        ("text", "ends_with", json!("URGENT"), json!("urgent")),
        ("rows.-1.n", "==", json!(20), json!(1)),
    ] {
        assert!(holds(clause(path, op, yes.clone())), "{path} {op} {yes}");
        if !no.is_null() {
            assert!(!holds(clause(path, op, no.clone())), "{path} {op} {no}");
        }
    }
    assert!(holds(json!({"path": "count", "op": "exists"})) && !holds(json!({"path": "gone", "op": "exists"})));
    assert!(holds(json!({"path": "nothing", "op": "not_exists"})));
    let folded = |op: &str, value: Value| json!({"path": "text", "op": op, "value": value, "case_insensitive": true});
    assert!(holds(folded("contains", json!("urgent"))) && holds(folded("contains_any", json!(["x", "urgent"]))));
    assert!(holds(folded("starts_with", json!("this"))) && holds(folded("==", json!("this is urgent"))));
}

#[test]
fn groups_are_nested() {
    let urgent = json!({"path": "text", "op": "contains", "value": "URGENT"});
    let many = json!({"path": "count", "op": ">", "value": 100});
    let either = json!({"operator": "OR", "clauses": [many, urgent]});
    assert!(holds(either.clone()));
    assert!(holds(json!({"operator": "AND", "clauses": [urgent, either]})));
    assert!(!holds(json!({"operator": "and", "clauses": [either, many]})));
    assert!(holds(json!({"field": "text", "contains": "URGENT"})));
    assert!(holds(json!({"field": "count", "greater_than": 4})) && holds(json!({"field": "count", "not_equals": 4})));
}

#[test]
fn junk_is_no_condition() {
    for (junk, pointer, code) in [
        (json!("urgent"), "", Code::InvalidCondition),
        (json!({}), "/path", Code::MissingField),
        (json!({"path": "a", "op": "~=", "value": 1}), "/op", Code::UnknownOperator),
        (json!({"path": "a", "op": 7, "value": 1}), "/op", Code::UnknownOperator),
        (json!({"path": "a", "op": "=="}), "/value", Code::MissingField),
        (json!({"path": "{{a}}", "op": "exists"}), "/path", Code::InvalidCondition),
        (json!({"path": "a b", "op": "exists"}), "/path", Code::InvalidCondition),
        (json!({"path": 7, "op": "exists"}), "/path", Code::WrongType),
        (json!({"path": "a", "op": "exists", "value": true}), "/value", Code::OperatorMisfit),
        (json!({"path": "a", "op": "contains_any", "value": "x"}), "/value", Code::OperatorMisfit),
        (json!({"path": "a", "op": "contains", "value": ["x"]}), "/value", Code::OperatorMisfit),
        (json!({"path": "a", "op": "<", "value": true}), "/value", Code::OperatorMisfit),
        (json!({"path": "a", "op": "==", "value": 1, "and": []}), "/and", Code::UnknownField),
        (json!({"operator": "XOR", "clauses": []}), "/operator", Code::UnknownOperator),
        (json!({"operator": "AND", "clauses": []}), "/clauses", Code::InvalidCondition),
        (json!({"operator": "AND", "clauses": [7]}), "/clauses/0", Code::InvalidCondition),
        (json!({"operator": "AND"}), "/clauses", Code::MissingField),
        (json!({"field": "a"}), "", Code::InvalidCondition),
    ] {
        let (_, wrong) = condition(&junk);
        assert!(wrong.contains(&(pointer.to_owned(), code)), "{junk}: {wrong:?}");
    }
    let mut diagnostics = Diagnostics::default();
    Condition::read(&json!({"path": "a", "op": "greater_than", "value": 1}), "", &mut diagnostics);
    assert_eq!(diagnostics.iter().next().unwrap().did_you_mean.as_deref(), Some(">"));
}

#[test]
fn nests_and_lists_have_an_end() {
    let mut deep = json!({"path": "a", "op": "exists"});
    for _ in 0..30 {
        deep = json!({"operator": "AND", "clauses": [deep]});
    }
    assert_eq!(condition(&deep).1[0].1, Code::TooLarge);
    let wide = json!({"operator": "OR", "clauses": vec![json!({"path": "a", "op": "exists"}); 5_000]});
    assert_eq!(condition(&wide).1.len(), 1);
}
