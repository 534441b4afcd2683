//! Explanation of a condition's result, clause by clause, with the values found.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    Clause, Condition, Operator,
    work::{Meter, NoBound},
};
use crate::{
    automation::expressions::{
        data::{Data, ITEM, Lacking, lowered},
        templates::{Template, Unfilled, filled_in_within, texts_of},
    },
    cut::{SLACK, cut, cut_to, fit},
    described::Described,
};

/// Bytes of all values in an explanation, and the bounds per value.
const ALL_VALUES: usize = 24_000;
const LARGEST_VALUE: usize = 300;
const LEAST_OF_A_VALUE: usize = 120;
/// Bytes of a comparison value.
const LARGEST_COMPARED: usize = 200_000;
/// Cost of lower-casing a text, relative to scanning it.
const LOWERING: usize = 8;
/// Minimal cost per clause.
const LEAST_WORK: usize = 64;
/// Cost of a regular expression, relative to scanning the text.
const MATCHING: usize = 64;

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
    pub fn explain(&self, condition: &Condition) -> Explanation {
        let Ok(explained) = condition.explained(self, &NoBound);
        explained
    }
}

impl Condition {
    /// Whether the condition might hold if the outputs were there that failed actions did not give. An output that its author did
    /// not want decides as a missing value does.
    pub(in crate::automation) fn is_undecided(&self, data: &Data<'_>) -> bool {
        data.lacks_outputs() && !data.explain(self).holds && self.may_hold(data)
    }

    fn may_hold(&self, data: &Data<'_>) -> bool {
        match self {
            Self::Clause(clause) => {
                clause.lacking(data).is_some_and(|lacking| !lacking.is_wanted()) || data.explain(self).holds
            }
            Self::All(conditions) => conditions.iter().all(|condition| condition.may_hold(data)),
            Self::Any(conditions) => conditions.iter().any(|condition| condition.may_hold(data)),
        }
    }

    /// # Errors
    /// If the comparison exceeds the meter's limit.
    pub(in crate::automation) fn explained<M: Meter>(
        &self,
        data: &Data<'_>,
        meter: &M,
    ) -> Result<Explanation, M::Over> {
        let budget = (ALL_VALUES / (2 * self.clauses().len().max(1))).clamp(LEAST_OF_A_VALUE, LARGEST_VALUE);
        Ok(match self.explained_within(data, meter, budget)? {
            Explained::Group(group) => group,
            Explained::Clause(clause) => {
                let holds = clause.holds;
                Explanation { holds, operator: "AND".to_owned(), clauses: vec![Explained::Clause(clause)] }
            }
        })
    }

    fn explained_within<M: Meter>(&self, data: &Data<'_>, meter: &M, budget: usize) -> Result<Explained, M::Over> {
        let each = |conditions: &[Self]| -> Result<Vec<Explained>, M::Over> {
            conditions.iter().map(|condition| condition.explained_within(data, meter, budget)).collect()
        };
        Ok(match self {
            Self::Clause(clause) => Explained::Clause(clause.explained(data, meter, budget)?),
            Self::All(conditions) => {
                let clauses = each(conditions)?;
                let holds = clauses.iter().all(Explained::holds);
                Explained::Group(Explanation { holds, operator: "AND".to_owned(), clauses })
            }
            Self::Any(conditions) => {
                let clauses = each(conditions)?;
                let holds = clauses.iter().any(Explained::holds);
                Explained::Group(Explanation { holds, operator: "OR".to_owned(), clauses })
            }
        })
    }
}

impl Clause {
    fn explained<M: Meter>(&self, data: &Data<'_>, meter: &M, budget: usize) -> Result<ExplainedClause, M::Over> {
        // The output of a failed action proves nothing, so no comparison holds.
        if let Some(lacking) = self.lacking(data) {
            let value = fitted(&self.value, budget);
            return Ok(self.told((Some(value), None), false, &lacking.in_words(), budget));
        }
        if let Some(of_item) = &self.of_item {
            return self.explained_by_item(of_item, data, meter, budget);
        }
        let found = data.get(&self.path);
        let value = match self.operator.takes_value().then(|| self.compared_with(data)).transpose() {
            Ok(value) => value,
            Err(why) => return Ok(self.told((Some(fitted(&self.value, budget)), None), false, &why, budget)),
        };
        meter.take(self.work(found.as_deref(), value.as_deref()))?;
        let holds = if self.case_insensitive {
            let lowered = value.as_deref().map(lowered).unwrap_or_default();
            self.holds(data.get_lowered(&self.path).as_deref(), &lowered)
        } else {
            self.holds(found.as_deref(), value.as_deref().unwrap_or(&Value::Null))
        };
        let found = found.map(|found| fitted(&found, budget));
        let was = match &found {
            Some(found) => format!("it was {}", cut(found.to_string(), budget)),
            None => "there was nothing".to_owned(),
        };
        Ok(self.told((value.map(|value| fitted(&value, budget)), found), holds, &was, budget))
    }

    /// Looks for the item that decides: one that holds, or for `all` one that does not. A value that is no list has no items, and
    /// neither `any` nor `all` holds for it.
    fn explained_by_item<M: Meter>(
        &self,
        of_item: &Condition,
        data: &Data<'_>,
        meter: &M,
        budget: usize,
    ) -> Result<ExplainedClause, M::Over> {
        let list = data.get(&self.path);
        let found = list.as_deref().map(|list| fitted(list, budget));
        let shown = (Some(fitted(&self.value, budget)), found);
        let Some(items) = list.as_deref().and_then(Value::as_array) else {
            let was = if shown.1.is_some() { "it was no list" } else { "there was nothing" };
            return Ok(self.told(shown, self.operator == Operator::None, was, budget));
        };
        let decides = self.operator != Operator::All;
        for (place, item) in items.iter().enumerate() {
            let about = Data { item: Some((ITEM, item)), ..data.clone() };
            let explained = of_item.explained_within(&about, meter, budget)?;
            if explained.holds() == decides {
                let was = format!("item {} of {}: {}", place + 1, items.len(), explained.reason());
                return Ok(self.told(shown, self.operator == Operator::Any, &was, budget));
            }
        }
        let was =
            format!("{} of its {} items", if decides { "it holds for none" } else { "it holds for each" }, items.len());
        Ok(self.told(shown, self.operator != Operator::Any, &was, budget))
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

    /// The missing output that the clause's path or value needs, if any.
    fn lacking<'d>(&self, data: &'d Data<'_>) -> Option<&'d Lacking> {
        if self.operator.looks() || !data.lacks_outputs() {
            return None;
        }
        data.lacking(&self.path).or_else(|| {
            let templates = texts_of(&self.value).into_iter().filter(|text| text.contains("{{"));
            templates.into_iter().find_map(|text| Template::parse(text).0.paths().find_map(|path| data.lacking(path)))
        })
    }

    /// The comparison value with templates filled in. A template that resolves to nothing gives null, so the placeholder for
    /// missing data is never compared.
    ///
    /// # Errors
    /// If an expression fails: the sentence that says so.
    fn compared_with<'d>(&'d self, data: &'d Data<'_>) -> Result<Cow<'d, Value>, String> {
        if !texts_of(&self.value).iter().any(|text| text.contains("{{")) {
            return Ok(Cow::Borrowed(&self.value));
        }
        let lone = self.value.as_str().and_then(|text| Template::parse(text).0.lone().cloned());
        match lone {
            Some(path) => Ok(data.get(&path).unwrap_or_default()),
            None => match filled_in_within(&self.value, data, LARGEST_COMPARED) {
                Ok(value) => Ok(Cow::Owned(value)),
                Err(Unfilled::TooLarge) => Ok(Cow::default()),
                Err(Unfilled::Expression(why)) => Err(why.trim_end_matches('.').to_owned()),
            },
        }
    }

    /// Bytes examined by the comparison.
    fn work(&self, found: Option<&Value>, value: Option<&Value>) -> usize {
        let times = match self.operator {
            Operator::ContainsAny | Operator::In => {
                value.and_then(Value::as_array).map_or(1, |values| values.len().max(1))
            }
            Operator::Matches => MATCHING,
            _ => 1,
        };
        let value = value.map_or(0, bytes) * if self.case_insensitive { LOWERING } else { 1 };
        LEAST_WORK + value + found.map_or(0, bytes).saturating_mul(times)
    }
}

fn fitted(value: &Value, budget: usize) -> Value {
    match value {
        // Cuts before copying: only the beginning is shown.
        Value::String(text) if text.len() > budget => {
            let shown = text.floor_char_boundary(budget);
            cut_to(text.get(..shown).unwrap_or_default().to_owned(), shown.saturating_sub(SLACK), text.len()).into()
        }
        value => fit(value.clone(), budget),
    }
}

/// Approximate size in bytes.
fn bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(items) => 2 + items.iter().map(bytes).sum::<usize>(),
        Value::Object(members) => 2 + members.iter().map(|(name, value)| name.len() + bytes(value)).sum::<usize>(),
        _ => 8,
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
