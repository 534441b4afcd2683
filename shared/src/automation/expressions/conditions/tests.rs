//! Conditions are read strictly, compare as docs/automations.md says, and tell why they hold.

mod bounds;
mod letters;

use jiff::tz::TimeZone;
use serde_json::Map;

use super::*;
use crate::automation::expressions::{
    data::{Data, Lowered, Outputs},
    work::{MOST_COMPARED, OverBound, Work},
};

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
    explained(&condition.unwrap(), &data).holds
}

fn explained(condition: &Condition, data: &Value) -> Explanation {
    explained_within(condition, data, &Outputs::default(), MOST_COMPARED).unwrap()
}

fn explained_within(
    condition: &Condition,
    data: &Value,
    outputs: &Outputs,
    bytes: usize,
) -> Result<Explanation, OverBound> {
    let (variables, user) = (Map::new(), Value::Null);
    let data = Data {
        variables: &variables,
        outputs,
        trigger_data: &Lowered::of(data),
        user: &user,
        now: "2026-11-22T23:30:05Z".parse().unwrap(),
        zone: TimeZone::UTC,
        item: None,
    };
    condition.explained(&data, &Work::of(bytes))
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
fn an_invalid_condition_is_refused_with_pointer_and_code() {
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

fn compares(found: Option<Value>, op: &str, value: &Value) -> bool {
    let (condition, wrong) = condition(&json!({"path": "x", "op": op, "value": value}));
    assert!(wrong.is_empty(), "{op} {value}: {wrong:?}");
    let data = found.map_or_else(|| json!({}), |found| json!({"x": found}));
    explained(&condition.unwrap(), &data).holds
}

/// The rules in docs/automations.md: found value, operator, comparison value, result.
#[test]
fn values_compare_as_the_rules_say() {
    let big = 9_007_199_254_740_993_u64;
    for (found, op, value, holds) in [
        // Numbers and numeric texts.
        (json!(5), "==", json!("5"), true),
        (json!("5"), "==", json!(5.0), true),
        (json!(" 5 "), "==", json!(5), true),
        (json!("5"), "==", json!("5.0"), false),
        (json!("007"), "==", json!("7"), false),
        (json!("1e3"), "==", json!(1000), true),
        (json!("five"), "==", json!(5), false),
        (json!(0.1), "<", json!("0.2"), true),
        (json!("10"), ">", json!("9"), true),
        (json!(big), "==", json!(big - 1), false),
        (json!(big.to_string()), "==", json!(big), true),
        (json!(big), ">", json!(big - 1), true),
        (json!("NaN"), "==", json!("nan"), false),
        (json!(""), "<", json!(5), false),
        (json!(5), "<", json!("abc"), false),
        // Booleans and their names.
        (json!(true), "==", json!("True"), true),
        (json!("false"), "==", json!(false), true),
        (json!(true), "==", json!(1), false),
        (json!("true"), "==", json!("True"), false),
        (json!(true), ">", json!("false"), false),
        // Dates and times.
        (json!("2026-11-22T10:00:00Z"), "==", json!("2026-11-22T11:00:00+01:00"), true),
        (json!("2026-11-22T10:00:00+01:00"), "<", json!("2026-11-22T09:30:00Z"), true),
        (json!("2026-11-22T10:00:00.000Z"), "==", json!("2026-11-22T10:00:00Z"), true),
        (json!("2026-11-22 10:00"), "<", json!("2026-11-22T10:00:01Z"), true),
        (json!("2026-11-22"), "<", json!("2026-11-23"), true),
        (json!("2026-11-22"), "==", json!("2026-11-22T00:00:00"), true),
        (json!("2026-11-22T00:30:00+01:00"), ">=", json!("2026-11-22"), true),
        (json!("2026-11-22T10:00:00Z"), "==", json!("2026-11-22"), false),
        (json!("2026-11-22T10:00:00Z"), "!=", json!("2026-11-22T11:00:00+01:00"), false),
        (json!(1_795_341_600), "<", json!("2026-11-23"), false),
        // Texts, case-sensitive.
        (json!("abc"), "<", json!("abd"), true),
        (json!("Urgent"), "==", json!("urgent"), false),
        (json!("Urgent"), "contains", json!("urg"), false),
        (json!("order 17"), "contains", json!(17), true),
        (json!(1234), "starts_with", json!("12"), true),
        (json!(["a", 3]), "contains", json!("3"), true),
        (json!(["ab"]), "contains", json!("a"), false),
        (json!(["a"]), "==", json!("a"), false),
        (json!([1, "2"]), "==", json!(["1", 2]), true),
        (json!({"a": 1}), "==", json!({"a": "1"}), true),
        (json!({"a": 1}), "==", json!({"a": 1, "b": 2}), false),
        (json!({"name": "Ada"}), "contains", json!("name"), true),
        (json!({"name": "Ada"}), "contains", json!("Ada"), false),
        (json!(["a"]), "<", json!("b"), false),
        (json!(["a"]), "starts_with", json!("a"), false),
        (json!("it is urgent"), "contains_any", json!(["urgent", "asap"]), true),
        (json!(["x", "asap"]), "contains_any", json!(["urgent", "asap"]), true),
        (json!("calm"), "contains_any", json!(["urgent", "asap"]), false),
        // Presence.
        (json!(""), "exists", json!(null), true),
        (json!([]), "exists", json!(null), true),
        (json!(0), "not_exists", json!(null), false),
        (json!(null), "exists", json!(null), false),
    ] {
        assert_eq!(compares(Some(found.clone()), op, &value), holds, "{found} {op} {value}");
    }
}

#[test]
fn few_operators_hold_for_missing_and_null_values() {
    for found in [None, Some(Value::Null)] {
        for op in ["<", ">", "<=", ">=", "==", "contains", "starts_with", "ends_with"] {
            assert!(!compares(found.clone(), op, &json!("x")), "{op}");
        }
        for op in ["!=", "not_contains"] {
            assert!(compares(found.clone(), op, &json!("x")), "{op}");
        }
        assert!(!compares(found.clone(), "contains_any", &json!(["x"])));
    }
    // The template of a comparison value may resolve to null.
    let null = |op: &str, found: Value| {
        let (condition, _) = condition(&json!({"path": "x", "op": op, "value": "{{gone}}"}));
        explained(&condition.unwrap(), &json!({"x": found})).holds
    };
    for op in ["<", ">=", "==", "contains", "contains_any", "starts_with"] {
        assert!(!null(op, json!("null")), "{op}");
    }
    assert!(null("==", Value::Null) && null("!=", json!("x")) && null("contains", json!([null])));
}

#[test]
fn in_any_case_is_for_texts_everywhere() {
    let folded = |found: Value, op: &str, value: Value| {
        let clause = json!({"path": "x", "op": op, "value": value, "case_insensitive": true});
        explained(&condition(&clause).0.unwrap(), &json!({"x": found})).holds
    };
    assert!(folded(json!("URGENT"), "==", json!("urgent")) && folded(json!("ÄRGER"), "contains", json!("ärg")));
    assert!(folded(json!(["A"]), "contains", json!("a")) && folded(json!({"Name": 1}), "contains", json!("name")));
    assert!(folded(json!("B"), ">", json!("a")) && !folded(json!("B"), "!=", json!("b")));
}

#[test]
fn a_condition_explains_each_clause_with_the_found_value() {
    let data = json!({"event": {"text": "lunch?", "long": "x".repeat(5_000), "gone": null}, "score": 7});
    let explained = |value: Value| explained(&condition(&value).0.unwrap(), &data);
    let urgent = json!({"path": "event.text", "op": "contains", "value": "urgent", "case_insensitive": true});
    let high = json!({"path": "score", "op": ">", "value": 5});
    let alone = json!(explained(json!({"path": "event.text", "op": "contains", "value": "urgent"})));
    let clause = json!({
        "path": "event.text", "op": "contains", "value": "urgent", "found": "lunch?", "holds": false,
        "text": "event.text contains \"urgent\": no, it was \"lunch?\"",
    });
    assert_eq!(alone, json!({"holds": false, "operator": "AND", "clauses": [clause]}));

    let both = explained(json!({"operator": "AND", "clauses": [high, {"operator": "OR", "clauses": [urgent, high]}]}));
    assert!(both.holds);
    assert_eq!(both.reason(), "score > 5: yes, it was 7; score > 5: yes, it was 7");
    let none = explained(json!({"operator": "AND", "clauses": [high, urgent, {"path": "event.user", "op": "exists"}]}));
    let reason =
        "event.text contains \"urgent\" in any case: no, it was \"lunch?\"; event.user exists: no, there was nothing";
    assert_eq!((none.holds, none.reason().as_str()), (false, reason));
    assert_eq!(
        explained(json!({"path": "event.gone", "op": "not_exists"})).reason(),
        "event.gone not_exists: yes, it was null"
    );
    // Stored explanations can be parsed.
    let stored: Explanation = serde_json::from_value(json!(both)).unwrap();
    assert_eq!(stored, both);
    // The size is bounded for any number and length of values.
    let long = json!({"path": "event.long", "op": "contains", "value": "y".repeat(5_000)});
    let many = explained(json!({"operator": "OR", "clauses": vec![long; 100]}));
    assert!(json!(many).to_string().len() < 80_000, "{}", json!(many).to_string().len());
}

#[test]
fn a_value_is_one_of_some_or_in_a_range_or_empty() {
    for (found, op, value, holds) in [
        (json!("bug"), "in", json!(["bug", "crash"]), true),
        (json!("5"), "in", json!([5]), true),
        (json!("x"), "in", json!(["bug"]), false),
        (json!(["bug"]), "in", json!(["bug"]), false),
        (json!(9), "between", json!([9, 17]), true),
        (json!("17"), "between", json!([9, 17]), true),
        (json!(17.5), "between", json!([9, 17]), false),
        (json!("2026-11-23T10:00:00Z"), "between", json!(["2026-11-23", "2026-11-24"]), true),
        (json!("2026-11-24T00:00:01Z"), "between", json!(["2026-11-23", "2026-11-24"]), false),
        (json!(true), "between", json!([0, 1]), false),
        (json!("INV-17"), "matches", json!("^INV-[0-9]+$"), true),
        (json!("an INV-17"), "matches", json!("^INV-[0-9]+$"), false),
        (json!(417), "matches", json!("^4"), true),
        (json!(["INV-1"]), "matches", json!("INV"), false),
        (json!(" \n"), "is_empty", json!(null), true),
        (json!([]), "is_empty", json!(null), true),
        (json!({}), "is_empty", json!(null), true),
        (json!(0), "is_empty", json!(null), false),
        (json!("x"), "is_empty", json!(null), false),
    ] {
        assert_eq!(compares(Some(found.clone()), op, &value), holds, "{found} {op} {value}");
    }
    assert!(compares(None, "is_empty", &Value::Null) && compares(Some(Value::Null), "is_empty", &Value::Null));
    for (op, value) in [("in", json!(["x"])), ("between", json!([0, 9])), ("matches", json!(".*"))] {
        assert!(!compares(None, op, &value), "{op}");
    }
}

#[test]
fn a_list_is_looked_through() {
    let labels = json!([{"name": "ui", "open": 2}, {"name": "BUG", "open": 0}]);
    let named = |name: &str| json!({"path": "item.name", "op": "==", "value": name, "case_insensitive": true});
    let open = json!({"path": "item.open", "op": ">", "value": 0});
    let exists = json!({"path": "item.name", "op": "exists"});
    let both = json!({"operator": "AND", "clauses": [named("bug"), open]});
    for (found, op, value, holds) in [
        (labels.clone(), "any", named("bug"), true),
        (labels.clone(), "any", named("docs"), false),
        (labels.clone(), "any", both, false),
        (labels.clone(), "all", exists, true),
        (labels.clone(), "all", open.clone(), false),
        (labels.clone(), "none", named("docs"), true),
        (labels.clone(), "none", named("ui"), false),
        (json!(["a", "b"]), "any", json!({"path": "item", "op": "==", "value": "b"}), true),
        (json!([[1], [2]]), "any", json!({"path": "item[0]", "op": "==", "value": "{{x[1][0]}}"}), true),
        (json!([]), "all", open.clone(), true),
        (json!([]), "any", open.clone(), false),
        (json!([]), "none", open.clone(), true),
        (json!({"open": 1}), "any", open.clone(), false),
        (json!({"open": 1}), "all", open.clone(), false),
    ] {
        assert_eq!(compares(Some(found.clone()), op, &value), holds, "{found} {op} {value}");
    }
    for (op, holds) in [("any", false), ("all", false), ("none", true)] {
        assert_eq!(compares(None, op, &open), holds, "{op} of a missing list");
    }
    let found = condition(&json!({"path": "x", "op": "any", "value": named("bug")})).0.unwrap();
    let reason = explained(&found, &json!({"x": labels})).reason();
    assert!(reason.ends_with("yes, item 2 of 2: item.name == \"bug\" in any case: yes, it was \"BUG\""), "{reason}");
}

#[test]
fn new_operators_refuse_values_that_never_hold() {
    let nested = json!({"path": "item.tags", "op": "any", "value": {"path": "item", "op": "exists"}});
    for (op, value, pointer, code) in [
        ("in", json!("bug"), "/value", Code::OperatorMisfit),
        ("in", json!([]), "/value", Code::OperatorMisfit),
        ("between", json!([1]), "/value", Code::OperatorMisfit),
        ("between", json!([17, 9]), "/value", Code::OperatorMisfit),
        ("between", json!(["a", 9]), "/value", Code::OperatorMisfit),
        ("between", json!([null, 9]), "/value", Code::OperatorMisfit),
        ("matches", json!(7), "/value", Code::OperatorMisfit),
        ("matches", json!("(a"), "/value", Code::OperatorMisfit),
        ("matches", json!("{{event.pattern}}"), "/value", Code::OperatorMisfit),
        ("matches", json!("(?=a)"), "/value", Code::OperatorMisfit),
        ("matches", json!("((a{1,99}){1,99}){1,99}"), "/value", Code::OperatorMisfit),
        ("matches", json!("a".repeat(301)), "/value", Code::OperatorMisfit),
        ("starts_with", json!(7), "/value", Code::OperatorMisfit),
        ("ends_with", json!(["a"]), "/value", Code::OperatorMisfit),
        ("contains", json!({"a": 1}), "/value", Code::OperatorMisfit),
        (">", json!(true), "/value", Code::OperatorMisfit),
        ("is_empty", json!(true), "/value", Code::OperatorMisfit),
        ("any", json!("bug"), "/value", Code::OperatorMisfit),
        ("any", json!({"path": "item.name"}), "/value/op", Code::MissingField),
        ("all", nested, "/value/value", Code::InvalidCondition),
    ] {
        let (_, wrong) = condition(&json!({"path": "a", "op": op, "value": value}));
        assert!(wrong.contains(&(pointer.to_owned(), code)), "{op} {value}: {wrong:?}");
    }
}

#[test]
fn a_pattern_has_300_bytes_at_most_and_the_reason_is_told() {
    let told = |pattern: String| {
        let mut diagnostics = Diagnostics::default();
        Condition::read(&json!({"path": "a", "op": "matches", "value": pattern}), "", &mut diagnostics);
        diagnostics.iter().map(|one| one.message.clone()).collect::<Vec<_>>()
    };
    assert_eq!(told("a".repeat(300)), [""; 0]);
    assert_eq!(told("a".repeat(301)), ["A regular expression has at most 300 bytes."]);
    assert_eq!(told("{{event.pattern}}".to_owned()), ["A regular expression cannot hold a template."]);
}

#[test]
fn the_case_of_letters_belongs_to_the_comparison_of_an_item() {
    let any = json!({"path": "a", "op": "any", "value": {"path": "item", "op": "exists"}, "case_insensitive": true});
    assert_eq!(condition(&any).1, [("/case_insensitive".to_owned(), Code::OperatorMisfit)]);
}

#[test]
fn a_value_of_the_wrong_kind_is_told_with_its_repair() {
    for (op, value, repair) in [
        ("in", json!("bug"), r#"Put it into a list: ["bug"]."#),
        ("contains_any", json!(7), "Put it into a list: [7]."),
        ("in", json!([]), "Write for example \"value\": "),
        ("contains", json!(["x"]), "Use contains_any for a list of values."),
    ] {
        let mut diagnostics = Diagnostics::default();
        Condition::read(&json!({"path": "a", "op": op, "value": value}), "", &mut diagnostics);
        let hints: Vec<&str> = diagnostics.iter().map(|one| one.hint.as_str()).collect();
        assert!(hints.len() == 1 && hints[0].starts_with(repair), "{op}: {hints:?}");
    }
}
