//! Explanation of a condition's result, clause by clause, with the values found.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    Clause, Condition, Operator,
    decision::{Basis, Decided},
};
use crate::{
    automation::expressions::{
        data::{Data, ITEM},
        work::{MOST_COMPARED, OverBound, Work},
    },
    cut::{SLACK, cut, cut_to, fitting},
    described::Described,
};

/// Bytes of all values in an explanation, and the bounds per value.
const ALL_VALUES: usize = 24_000;
const LARGEST_VALUE: usize = 300;
const LEAST_OF_A_VALUE: usize = 120;

/// Whether a condition holds, and why. A single clause is a group of one. Of values that are too long a part is shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Described)]
pub struct Explanation {
    pub holds: bool,
    #[schema(r#enum = ["AND", "OR"])]
    pub operator: String,
    pub clauses: Vec<Explained>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Described)]
#[serde(untagged)]
pub enum Explained {
    Group(Explanation),
    Clause(ExplainedClause),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Described)]
pub struct ExplainedClause {
    pub path: String,
    pub op: String,
    /// The value of the comparison, templates filled in; absent for `exists` and `not_exists`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// The value found; absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<Value>,
    pub holds: bool,
    /// In words: `event.text contains "urgent": no, it was "lunch?"`.
    pub text: String,
}

impl Data<'_> {
    /// # Errors
    /// If the condition compares more than [`MOST_COMPARED`].
    pub fn explain(&self, condition: &Condition) -> Result<Explanation, OverBound> {
        condition.explained(self, &Work::of(MOST_COMPARED))
    }
}

impl Condition {
    /// Whether a condition that does not hold might if the outputs of failed actions were there, and all of them whole.
    /// An output that its author did not want decides as a missing value does.
    ///
    /// # Errors
    /// If the condition compares more than [`MOST_COMPARED`].
    pub(in crate::automation) fn is_undecided(&self, data: &Data<'_>) -> Result<bool, OverBound> {
        let work = Work::of(MOST_COMPARED);
        self.holds_if(&|clause| {
            let lacks = clause.lacking(data).is_some_and(|lacking| !lacking.is_wanted());
            if lacks {
                return Ok(true);
            }
            let decided = clause.decided(data, &work)?;
            Ok(decided.holds || matches!(decided.basis, Basis::Cut))
        })
    }

    /// # Errors
    /// If the comparison exceeds the work left.
    pub(in crate::automation) fn explained(&self, data: &Data<'_>, work: &Work) -> Result<Explanation, OverBound> {
        let budget = (ALL_VALUES / (2 * self.clauses().len().max(1))).clamp(LEAST_OF_A_VALUE, LARGEST_VALUE);
        Ok(match self.explained_within(data, work, budget)? {
            Explained::Group(group) => group,
            Explained::Clause(clause) => {
                let holds = clause.holds;
                Explanation { holds, operator: "AND".to_owned(), clauses: vec![Explained::Clause(clause)] }
            }
        })
    }

    fn explained_within(&self, data: &Data<'_>, work: &Work, budget: usize) -> Result<Explained, OverBound> {
        let (conditions, operator, decides) = match self {
            Self::Clause(clause) => return Ok(Explained::Clause(clause.explained(data, work, budget)?)),
            Self::All(conditions) => (conditions, "AND", false),
            Self::Any(conditions) => (conditions, "OR", true),
        };
        let clauses = conditions.iter().map(|condition| condition.explained_within(data, work, budget));
        let clauses: Vec<Explained> = clauses.collect::<Result<_, _>>()?;
        let holds = clauses.iter().any(|clause| clause.holds() == decides) == decides;
        Ok(Explained::Group(Explanation { holds, operator: operator.to_owned(), clauses }))
    }
}

impl Clause {
    fn explained(&self, data: &Data<'_>, work: &Work, budget: usize) -> Result<ExplainedClause, OverBound> {
        let Decided { holds, value, found, basis } = self.decided(data, work)?;
        let shown = found.as_deref().map(|found| fitted(found, budget));
        let was = match (&basis, &shown) {
            (Basis::Nothing(why), _) => why.clone(),
            (Basis::Cut, _) => "it was cut, because it is too large, and the rest could decide otherwise".to_owned(),
            (_, None) => "there was nothing".to_owned(),
            (Basis::Comparison, Some(shown)) => format!("it was {}", cut(shown.to_string(), budget)),
            (Basis::NoList, Some(_)) => "it was no list".to_owned(),
            (Basis::Items(deciding), Some(_)) => {
                let items = found.as_deref().and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
                match self.about(items, *deciding, data, work, budget)? {
                    Some(about) => about,
                    None if self.operator == Operator::All => format!("it holds for each of its {} items", items.len()),
                    None => format!("it holds for none of its {} items", items.len()),
                }
            }
        };
        Ok(self.told((value.map(|value| fitted(&value, budget)), shown), holds, &was, budget))
    }

    fn about(
        &self,
        items: &[Value],
        deciding: Option<usize>,
        data: &Data<'_>,
        work: &Work,
        budget: usize,
    ) -> Result<Option<String>, OverBound> {
        let item = deciding.and_then(|place| Some((place, items.get(place)?)));
        let (Some((place, item)), Some(of_item)) = (item, &self.of_item) else { return Ok(None) };
        let explained = of_item.explained_within(&Data { item: Some((ITEM, item)), ..data.clone() }, work, budget)?;
        Ok(Some(format!("item {} of {}: {}", place + 1, items.len(), explained.reason())))
    }

    fn told(
        &self,
        (value, found): (Option<Value>, Option<Value>),
        holds: bool,
        was: &str,
        budget: usize,
    ) -> ExplainedClause {
        let compared = value.as_ref().map(|value| format!(" {}", cut(value.to_string(), budget))).unwrap_or_default();
        let any_case = if self.case_insensitive { " in any case" } else { "" };
        let answer = if holds { "yes" } else { "no" };
        let (path, op) = (self.path.as_str().to_owned(), self.operator.as_str().to_owned());
        let text = format!("{path} {op}{compared}{any_case}: {answer}, {was}");
        ExplainedClause { path, op, value, found, holds, text }
    }
}

fn fitted(value: &Value, budget: usize) -> Value {
    match value {
        // Cuts before copying: only the beginning is shown.
        Value::String(text) if text.len() > budget => {
            let shown = text.floor_char_boundary(budget);
            cut_to(text.get(..shown).unwrap_or_default().to_owned(), shown.saturating_sub(SLACK), text.len()).into()
        }
        value => fitting(value, budget),
    }
}

impl Explained {
    pub const fn holds(&self) -> bool {
        match self {
            Self::Group(group) => group.holds,
            Self::Clause(clause) => clause.holds,
        }
    }

    fn reason(&self) -> String {
        match self {
            Self::Group(group) => group.reason(),
            Self::Clause(clause) => clause.text.clone(),
        }
    }
}

impl Explanation {
    /// The deciding clauses in words: those with the same result as the condition.
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
