//! The case of letters in patterns.

use super::*;
use crate::{Error, automation::Definition, models::AutomationVersion};

fn matches(found: &str, pattern: &str, case_insensitive: bool) -> bool {
    let clause = json!({"path": "x", "op": "matches", "value": pattern, "case_insensitive": case_insensitive});
    let (condition, wrong) = condition(&clause);
    assert!(wrong.is_empty(), "{pattern}: {wrong:?}");
    explained(&condition.unwrap(), &json!({"x": found})).holds
}

#[test]
fn a_pattern_in_any_case_finds_the_text_as_it_is() {
    for (found, pattern) in [
        ("Ärzte", "^Ärzte"),
        ("ÄRZTE", "^Ärzte"),
        ("Ärzte", "^ÄRZTE$"),
        ("URGENT", "urgent"),
        ("This!", "^this\\W"),
        ("İstanbul", "^İst"),
        ("Ω", "^[Α-Ω]$"),
    ] {
        assert!(matches(found, pattern, true), "{found} {pattern}");
    }
    // As in docs/automations.md: other letters keep their case.
    assert!(!matches("Ärzte", "^ärzte", true));
    assert!(!matches("URGENT", "urgent", false));
}

#[test]
fn a_pattern_that_is_too_large_only_in_any_case_is_refused_or_unreadable() {
    // Each letter is two ranges in any case.
    let pattern = "(abcdefghij){45}";
    let clause = |any_case: bool| json!({"path": "x", "op": "matches", "value": pattern, "case_insensitive": any_case});
    assert!(condition(&clause(false)).1.is_empty());
    assert_eq!(condition(&clause(true)).1, [("/value".to_owned(), Code::OperatorMisfit)]);
}

#[test]
fn a_stored_version_whose_pattern_does_not_compile_is_unreadable() {
    let version = |any_case: bool| {
        let condition =
            json!({"path": "x", "op": "matches", "value": "(abcdefghij){45}", "case_insensitive": any_case});
        let definition = json!({"name": "x", "trigger_type": "manual", "actions": [{"id": "a", "tool": "t", "parameters": {}, "condition": condition}]});
        serde_json::from_value::<AutomationVersion>(json!({
            "automation_id": uuid::Uuid::now_v7(), "version": 1, "organization_id": uuid::Uuid::now_v7(),
            "content_hash": "", "definition": definition.to_string(), "created_by": "u",
            "created_at": "2026-11-22T23:30:05.000Z",
        }))
        .unwrap()
    };
    Definition::stored(&version(false)).unwrap();
    assert!(matches!(Definition::stored(&version(true)), Err(Error::Unreadable { .. })));
}
