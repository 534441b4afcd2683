//! Decides conditions within a bound of work, without words for the decision.

use std::borrow::Cow;

use serde_json::Value;

use super::{Clause, Condition, Operator, Pattern};
use crate::{
    automation::expressions::{
        data::{Data, ITEM, Lacking, lowered},
        templates::{Template, Unfilled, filled_in_within, texts_of},
        work::{OverBound, PARSING, Work, bytes},
    },
    cut::{is_marker, lost_its_end},
};

/// Bytes of a comparison value.
const LARGEST_COMPARED: usize = 200_000;
/// Cost of lower-casing a text, relative to scanning it.
const LOWERING: usize = 8;
/// Minimal cost of a clause.
const LEAST_OF_A_CLAUSE: usize = 64;

pub(super) struct Decided<'d> {
    pub(super) holds: bool,
    /// Filled in, unless no comparison took place.
    pub(super) value: Option<Cow<'d, Value>>,
    pub(super) found: Option<Cow<'d, Value>>,
    pub(super) basis: Basis,
}

pub(super) enum Basis {
    Comparison,
    /// No comparison took place, because of this.
    Nothing(String),
    /// What was cut from the values could decide otherwise.
    Cut,
    NoList,
    /// The item of the found list that decides, if there is one.
    Items(Option<usize>),
}

impl Decided<'_> {
    fn open(self) -> Self {
        Self { holds: false, basis: Basis::Cut, ..self }
    }
}

impl Condition {
    pub(super) fn holds(&self, data: &Data<'_>, work: &Work) -> Result<bool, OverBound> {
        self.holds_if(&|clause| Ok(clause.decided(data, work)?.holds))
    }

    /// Whether it holds if `holds` tells which clauses do. Stops at the first clause that decides.
    pub(super) fn holds_if(&self, holds: &dyn Fn(&Clause) -> Result<bool, OverBound>) -> Result<bool, OverBound> {
        let (conditions, decides) = match self {
            Self::Clause(clause) => return holds(clause),
            Self::All(conditions) => (conditions, false),
            Self::Any(conditions) => (conditions, true),
        };
        for condition in conditions {
            if condition.holds_if(holds)? == decides {
                return Ok(decides);
            }
        }
        Ok(!decides)
    }
}

impl Clause {
    pub(super) fn decided<'d>(&'d self, data: &'d Data<'_>, work: &Work) -> Result<Decided<'d>, OverBound> {
        let undecided = |basis| {
            let value = self.operator.takes_value().then_some(Cow::Borrowed(&self.value));
            Ok(Decided { holds: false, value, found: None, basis })
        };
        // The output of a failed action proves nothing, so no comparison holds. The clause about items was asked for all of them.
        if data.item.is_none()
            && let Some(lacking) = self.lacking(data)
        {
            return undecided(Basis::Nothing(lacking.in_words()));
        }
        if data.is_cut_off(&self.path) {
            return undecided(Basis::Cut);
        }
        if let Some(of_item) = &self.of_item {
            return self.decided_by_item(of_item, data, work);
        }
        let found = data.get(&self.path);
        let value = match self.operator.takes_value().then(|| self.compared_with(data, work)).transpose()?.transpose() {
            Ok(value) => value,
            Err(basis) => return undecided(basis),
        };
        work.take(self.work(data, found.as_deref(), value.as_deref()))?;
        // A pattern finds the text as it is: it has its own rule for letters.
        let holds = if self.case_insensitive && self.pattern.is_none() {
            let lowered = value.as_deref().map(lowered).unwrap_or_default();
            self.compares(data.get_lowered(&self.path).as_deref(), &lowered)
        } else {
            self.compares(found.as_deref(), value.as_deref().unwrap_or(&Value::Null))
        };
        let decided = Decided { holds, value, found, basis: Basis::Comparison };
        Ok(if self.is_open(&decided) { decided.open() } else { decided })
    }

    fn is_open(&self, decided: &Decided<'_>) -> bool {
        let is_cut = |value: Option<&Value>| value.is_some_and(lost_its_end);
        match self.operator {
            Operator::Contains | Operator::Any => !decided.holds && is_cut(decided.found.as_deref()),
            Operator::ContainsAny => {
                !decided.holds && (is_cut(decided.found.as_deref()) || is_cut(decided.value.as_deref()))
            }
            Operator::In => !decided.holds && is_cut(decided.value.as_deref()),
            Operator::NotContains | Operator::All | Operator::None => decided.holds && is_cut(decided.found.as_deref()),
            _ => false,
        }
    }

    /// Looks for the deciding item: the first to hold, or for `all` the first to fail. A value that is no list has no items, and
    /// neither `any` nor `all` holds for it.
    fn decided_by_item<'d>(
        &'d self,
        of_item: &Condition,
        data: &'d Data<'_>,
        work: &Work,
    ) -> Result<Decided<'d>, OverBound> {
        let found = data.get(&self.path);
        work.take(LEAST_OF_A_CLAUSE + found.as_deref().map_or(0, bytes))?;
        let value = Some(Cow::Borrowed(&self.value));
        let Some(items) = found.as_deref().and_then(Value::as_array) else {
            return Ok(Decided { holds: self.operator == Operator::None, value, found, basis: Basis::NoList });
        };
        let decides = self.operator != Operator::All;
        let mut about = data.clone();
        let mut deciding = None;
        // The marker of a cut list is no item.
        for (place, item) in items.iter().filter(|item| !is_marker(item)).enumerate() {
            about.item = Some((ITEM, item));
            if of_item.holds(&about, work)? == decides {
                deciding = Some(place);
                break;
            }
        }
        let holds = deciding.is_some() == (self.operator == Operator::Any);
        let decided = Decided { holds, value, found, basis: Basis::Items(deciding) };
        Ok(if self.is_open(&decided) { decided.open() } else { decided })
    }

    /// The missing output that the clause needs, if any: for its path or its value, or for its condition about items.
    pub(super) fn lacking<'d>(&self, data: &Data<'d>) -> Option<&'d Lacking> {
        if self.operator.looks() || !data.lacks_outputs() {
            return None;
        }
        data.lacking(&self.path).or_else(|| {
            // An output cannot stand for the item.
            let about = Data { item: Some((ITEM, &Value::Null)), ..data.clone() };
            match &self.of_item {
                Some(of_item) => of_item.clauses().into_iter().find_map(|clause| clause.lacking(&about)),
                None => self.templates().find_map(|template| template.paths().find_map(|path| data.lacking(path))),
            }
        })
    }

    fn templates(&self) -> impl Iterator<Item = Template> {
        texts_of(&self.value).into_iter().filter(|text| text.contains("{{")).map(|text| Template::parse(text).0)
    }

    /// The comparison value with templates filled in. A template that resolves to nothing gives null, so the placeholder for
    /// missing data is never compared.
    fn compared_with<'d>(
        &'d self,
        data: &'d Data<'_>,
        work: &Work,
    ) -> Result<Result<Cow<'d, Value>, Basis>, OverBound> {
        if !texts_of(&self.value).iter().any(|text| text.contains("{{")) {
            return Ok(Ok(Cow::Borrowed(&self.value)));
        }
        work.take(PARSING * bytes(&self.value))?;
        let lone = self.value.as_str().and_then(|text| Template::parse(text).0.lone().cloned());
        Ok(match lone {
            Some(path) if data.is_cut_off(&path) => Err(Basis::Cut),
            Some(path) => Ok(data.get(&path).unwrap_or_default()),
            None => match filled_in_within(&self.value, data, LARGEST_COMPARED, work) {
                Ok(filled) => Ok(Cow::Owned(filled.value)),
                Err(Unfilled::TooLarge) => Ok(Cow::default()),
                Err(Unfilled::TooMuchWork) => return Err(OverBound),
                Err(Unfilled::Expression(why)) => Err(Basis::Nothing(why.trim_end_matches('.').to_owned())),
            },
        })
    }

    /// Bytes examined by the comparison.
    fn work(&self, data: &Data<'_>, found: Option<&Value>, value: Option<&Value>) -> usize {
        let (found_bytes, value_bytes) = (found.map_or(0, bytes), value.map_or(0, bytes));
        let wanted = || value.and_then(Value::as_array).map_or(1, |values| values.len().max(1));
        let times = match self.operator {
            Operator::ContainsAny | Operator::In => wanted(),
            Operator::Matches => self.pattern.as_ref().map_or(1, Pattern::cost),
            _ => 1,
        };
        let mut work = LEAST_OF_A_CLAUSE.saturating_add(found_bytes.saturating_mul(times)).saturating_add(value_bytes);
        if self.case_insensitive && self.pattern.is_none() {
            work = work.saturating_add(value_bytes.saturating_mul(LOWERING));
            // The names of members are lowered for each comparison.
            let names = found.is_some_and(Value::is_object).then_some(times);
            let copies = names.unwrap_or_default() + usize::from(!data.keeps_lowered(&self.path));
            work = work.saturating_add(found_bytes.saturating_mul(LOWERING).saturating_mul(copies));
        }
        work
    }
}
