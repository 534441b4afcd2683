//! Why a condition holds or does not: clause by clause, with the value that was found.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{super::path::Path, Clause, Condition};
use crate::cut::{cut, fit};

/// Bytes of all values that an explanation shows, and of each, whatever their number.
const ALL_VALUES: usize = 24_000;
const LARGEST_VALUE: usize = 300;
const LEAST_OF_A_VALUE: usize = 120;

/// Whether a condition holds, and why:
/// `{"holds": false, "operator": "AND", "clauses": [{"path": "event.text", "op": "contains", "value": "urgent", "found": "lunch?",
/// "holds": false, "text": "event.text contains \"urgent\": no, it was \"lunch?\""}]}`. A group within a group has the same form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    pub holds: bool,
    /// `AND` or `OR`; a clause that stands alone is a group of one.
    pub operator: String,
    pub clauses: Vec<Explained>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Explained {
    Group(Explanation),
    Clause(ExplainedClause),
}

/// A clause and what it was compared with; values that are too long are cut.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExplainedClause {
    pub path: String,
    pub op: String,
    /// Templates filled in; absent for `exists` and `not_exists`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// Absent if nothing was there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<Value>,
    pub holds: bool,
    /// `event.text contains "urgent": no, it was "lunch?"`
    pub text: String,
}

impl Condition {
    /// Whether it holds, clause by clause; `get` gives the value at a path, `filled_in` a clause's value with its templates
    /// filled in.
    pub fn explained(&self, get: &dyn Fn(&Path) -> Option<Value>, filled_in: &dyn Fn(&Value) -> Value) -> Explanation {
        let budget = (ALL_VALUES / (2 * self.clauses().len().max(1))).clamp(LEAST_OF_A_VALUE, LARGEST_VALUE);
        match self.explained_within(get, filled_in, budget) {
            Explained::Group(group) => group,
            Explained::Clause(clause) => {
                let holds = clause.holds;
                Explanation { holds, operator: "AND".to_owned(), clauses: vec![Explained::Clause(clause)] }
            }
        }
    }

    fn explained_within(
        &self,
        get: &dyn Fn(&Path) -> Option<Value>,
        filled_in: &dyn Fn(&Value) -> Value,
        budget: usize,
    ) -> Explained {
        let each = |conditions: &[Self]| -> Vec<Explained> {
            conditions.iter().map(|condition| condition.explained_within(get, filled_in, budget)).collect()
        };
        match self {
            Self::Clause(clause) => {
                Explained::Clause(clause.explained(get(&clause.path), filled_in(&clause.value), budget))
            }
            Self::All(conditions) => {
                let clauses = each(conditions);
                let holds = clauses.iter().all(Explained::holds);
                Explained::Group(Explanation { holds, operator: "AND".to_owned(), clauses })
            }
            Self::Any(conditions) => {
                let clauses = each(conditions);
                let holds = clauses.iter().any(Explained::holds);
                Explained::Group(Explanation { holds, operator: "OR".to_owned(), clauses })
            }
        }
    }
}

impl Clause {
    fn explained(&self, found: Option<Value>, value: Value, budget: usize) -> ExplainedClause {
        let holds = self.holds(found.as_ref(), &value);
        let value = self.operator.takes_value().then(|| fit(value, budget));
        let found = found.map(|found| fit(found, budget));
        let in_words = |value: &Value| cut(value.to_string(), budget);
        let compared = value.as_ref().map(|value| format!(" {}", in_words(value))).unwrap_or_default();
        let folds = if self.case_insensitive { " in any case" } else { "" };
        let answer = if holds { "yes" } else { "no" };
        let was =
            found.as_ref().map_or_else(|| "there was nothing".to_owned(), |it| format!("it was {}", in_words(it)));
        let (path, op) = (self.path.as_str().to_owned(), self.operator.as_str().to_owned());
        let text = format!("{path} {op}{compared}{folds}: {answer}, {was}");
        ExplainedClause { path, op, value, found, holds, text }
    }
}

impl Explained {
    pub const fn holds(&self) -> bool {
        match self {
            Self::Group(group) => group.holds,
            Self::Clause(clause) => clause.holds,
        }
    }
}

impl Explanation {
    /// The clauses that decided it, in words: of a condition that holds those that hold, of another one those that do not.
    pub fn reason(&self) -> String {
        let mut texts = Vec::new();
        self.deciding(self.holds, &mut texts);
        texts.join("; ")
    }

    fn deciding<'e>(&'e self, holds: bool, texts: &mut Vec<&'e str>) {
        for one in self.clauses.iter().filter(|one| one.holds() == holds) {
            match one {
                Explained::Group(group) => group.deciding(holds, texts),
                Explained::Clause(clause) => texts.push(&clause.text),
            }
        }
    }
}
