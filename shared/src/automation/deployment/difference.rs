//! Differences between two versions of a definition, by JSON pointer.

use serde::Serialize;
use serde_json::Value;

use crate::{automation::definition::diagnostics::child, described::Described};

#[derive(Debug, Clone, PartialEq, Serialize, Described)]
pub struct Difference {
    pub pointer: String,
    pub change: DifferenceKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Described)]
#[serde(rename_all = "snake_case")]
pub enum DifferenceKind {
    Added,
    Removed,
    Changed,
}

/// Per answer.
const MOST_DIFFERENCES: usize = 1_000;

/// In the order of the pointers.
#[derive(Debug, Clone, PartialEq)]
pub struct Differences {
    pub changes: Vec<Difference>,
    pub truncated: bool,
}

/// Compares lists item by item, and returns at most a thousand differences.
pub fn differences(from: &Value, to: &Value) -> Differences {
    let mut changes = Vec::new();
    compare(Some(from), Some(to), "", &mut changes);
    let truncated = changes.len() > MOST_DIFFERENCES;
    changes.truncate(MOST_DIFFERENCES);
    Differences { changes, truncated }
}

fn compare(from: Option<&Value>, to: Option<&Value>, pointer: &str, found: &mut Vec<Difference>) {
    match (from, to) {
        _ if found.len() > MOST_DIFFERENCES => {}
        (Some(from), Some(to)) if from == to => {}
        (Some(Value::Object(before)), Some(Value::Object(after))) => {
            let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
            names.sort();
            names.dedup();
            for name in names {
                compare(before.get(name), after.get(name), &child(pointer, name), found);
            }
        }
        (Some(Value::Array(before)), Some(Value::Array(after))) => {
            for index in 0..before.len().max(after.len()) {
                compare(before.get(index), after.get(index), &child(pointer, index.to_string()), found);
            }
        }
        (None, None) => {}
        (from, to) => {
            let change = match (from, to) {
                (None, _) => DifferenceKind::Added,
                (_, None) => DifferenceKind::Removed,
                _ => DifferenceKind::Changed,
            };
            found.push(Difference { pointer: pointer.to_owned(), change, from: from.cloned(), to: to.cloned() });
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn additions_removals_and_changes_are_reported_by_place() {
        let from = json!({"name": "a", "actions": [{"id": "1", "tool": "t"}, {"id": "2"}], "old": 1});
        let to = json!({"name": "a", "actions": [{"id": "1", "tool": "u"}], "new/er": null});
        let told: Vec<_> = differences(&from, &to).changes.into_iter().map(|one| (one.pointer, one.change)).collect();
        let expected = [
            ("/actions/0/tool", DifferenceKind::Changed),
            ("/actions/1", DifferenceKind::Removed),
            ("/new~1er", DifferenceKind::Added),
            ("/old", DifferenceKind::Removed),
        ];
        assert_eq!(told, expected.map(|(pointer, change)| (pointer.to_owned(), change)));
        assert!(differences(&from, &from).changes.is_empty());
    }

    #[test]
    fn however_many_there_are_the_list_has_an_end_and_says_so() {
        let found = differences(&json!(vec![1; 30_000]), &json!(vec![2; 30_000]));
        assert_eq!((found.changes.len(), found.truncated), (MOST_DIFFERENCES, true));
        assert!(!differences(&json!([1]), &json!([2])).truncated);
    }
}
