//! A knowledge base as it is searched: its fields in columns for the filters, its words in postings for BM25, and of each
//! entry just what is shown. The texts themselves are not kept.
//!
//! BM25 as in Robertson and Zaragoza, The Probabilistic Relevance Framework (2009), with the usual constants and the
//! inverse document frequency that is never negative (docs/adr/0006-bm25.md).

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::words::{folded, words};
use crate::{
    cut::cut,
    models::{Field, FieldType, FieldValue, KnowledgeEntry},
};

/// How fast the repetition of a word counts less.
const K1: f32 = 1.2;
/// How much a long entry is held against it.
const B: f32 = 0.75;

/// What is shown of an entry, in bytes.
const LONGEST_SHOWN: usize = 350;
/// Entries of one answer.
const MOST_SHOWN: usize = 5;

#[derive(Debug)]
pub struct Index {
    columns: Vec<(Field, Column)>,
    shown: Vec<Box<str>>,
    /// Words of each entry.
    lengths: Vec<u16>,
    average_length: f32,
    /// Where a word's postings stand.
    terms: HashMap<Box<str>, (u32, u32)>,
    postings: Vec<Posting>,
}

/// That a word occurs in an entry.
#[derive(Debug, Clone, Copy)]
struct Posting {
    entry: u16,
    times: u16,
}

/// The values of one field, by entry.
#[derive(Debug)]
enum Column {
    /// Numbers of folded texts; 0 is none.
    Text {
        known: HashMap<Box<str>, u32>,
        values: Vec<u32>,
    },
    /// NaN is none.
    Number(Vec<f64>),
    Boolean(Vec<Option<bool>>),
}

/// What an entry must fulfil.
#[derive(Debug)]
pub struct Condition {
    column: usize,
    test: Test,
}

#[derive(Debug)]
enum Test {
    /// One of these numbered texts.
    Texts(Vec<u32>),
    /// From, to, both inclusive.
    Between(f64, f64),
    Numbers(Vec<f64>),
    Boolean(bool),
}

/// How a field is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operator {
    Equals,
    AtMost,
    AtLeast,
    OneOf,
}

/// What was found.
#[derive(Debug, PartialEq)]
pub struct Found<'a> {
    /// How many entries match.
    pub matched: usize,
    /// Whether they contain words that were asked for; otherwise they only pass the filters.
    pub by_words: bool,
    /// The best of them, best first.
    pub entries: Vec<&'a str>,
}

/// An [`Index`] in the making.
pub struct Builder {
    index: Index,
    words: HashMap<Box<str>, Vec<Posting>>,
}

impl Builder {
    pub fn new(fields: &[Field]) -> Self {
        let column = |field: &Field| {
            let column = match field.kind {
                FieldType::Text => Column::Text { known: HashMap::new(), values: Vec::new() },
                FieldType::Number => Column::Number(Vec::new()),
                FieldType::Boolean => Column::Boolean(Vec::new()),
            };
            (field.clone(), column)
        };
        let index = Index {
            columns: fields.iter().map(column).collect(),
            shown: Vec::new(),
            lengths: Vec::new(),
            average_length: 0.0,
            terms: HashMap::new(),
            postings: Vec::new(),
        };
        Self { index, words: HashMap::new() }
    }

    /// Adds an entry; those beyond 65,535 are left out (a base holds far fewer).
    pub fn add(&mut self, entry: &KnowledgeEntry) {
        let Ok(number) = u16::try_from(self.index.shown.len()) else { return };
        let mut parts = Vec::new();
        let mut length: u16 = 0;
        let mut index_words = |text: &str| {
            words(text, |word| {
                length = length.saturating_add(1);
                match self.words.get_mut(word) {
                    Some(postings) => count(postings, number),
                    None => drop(self.words.insert(word.into(), vec![Posting { entry: number, times: 1 }])),
                }
            });
        };
        for (field, column) in &mut self.index.columns {
            let value = entry.values.get(field.name.as_str());
            column.push(value);
            match value {
                Some(FieldValue::Text(text)) => index_words(text),
                // "with a garden": the field's own words stand for what is true.
                Some(FieldValue::Boolean(true)) => index_words(field.shown()),
                _ => {}
            }
            if let Some(value) = value {
                parts.push(format!("{}: {value}", field.shown()));
            }
        }
        let mut shown = parts.join("; ");
        if let Some(text) = &entry.text {
            index_words(text);
            if !shown.is_empty() {
                shown.push_str(". ");
            }
            shown.push_str(text);
        }
        let one_line: Vec<&str> = shown.split_whitespace().collect();
        self.index.shown.push(cut(one_line.join(" "), LONGEST_SHOWN).into());
        self.index.lengths.push(length);
    }

    pub fn finish(self) -> Index {
        let Self { mut index, words } = self;
        let total: f32 = index.lengths.iter().map(|length| f32::from(*length)).sum();
        index.average_length = total / number(index.lengths.len()).max(1.0);
        index.postings.reserve_exact(words.values().map(Vec::len).sum());
        index.terms.reserve(words.len());
        for (word, postings) in words {
            let (from, to) = (index.postings.len(), index.postings.len() + postings.len());
            if let (Ok(from), Ok(to)) = (u32::try_from(from), u32::try_from(to)) {
                index.postings.extend(postings);
                index.terms.insert(word, (from, to));
            }
        }
        index
    }
}

fn count(postings: &mut Vec<Posting>, entry: u16) {
    match postings.last_mut() {
        Some(last) if last.entry == entry => last.times = last.times.saturating_add(1),
        _ => postings.push(Posting { entry, times: 1 }),
    }
}

impl Column {
    fn push(&mut self, value: Option<&FieldValue>) {
        match self {
            Self::Text { known, values } => {
                let number = match value {
                    Some(FieldValue::Text(text)) => {
                        let next = u32::try_from(known.len() + 1).unwrap_or_default();
                        *known.entry(folded(text).into()).or_insert(next)
                    }
                    _ => 0,
                };
                values.push(number);
            }
            Self::Number(values) => values.push(match value {
                Some(FieldValue::Number(number)) => number.as_f64().unwrap_or(f64::NAN),
                _ => f64::NAN,
            }),
            Self::Boolean(values) => values.push(match value {
                Some(FieldValue::Boolean(value)) => Some(*value),
                _ => None,
            }),
        }
    }
}

impl Index {
    pub fn is_empty(&self) -> bool {
        self.shown.is_empty()
    }

    /// About what it takes in memory, in bytes.
    pub fn size(&self) -> usize {
        // An entry of a map: the box, the value, and the map's own share.
        const ENTRY: usize = 40;
        let columns = self.columns.iter().map(|(_, column)| match column {
            Column::Text { known, values } => {
                values.len() * 4 + known.keys().map(|text| text.len() + ENTRY).sum::<usize>()
            }
            Column::Number(values) => values.len() * 8,
            Column::Boolean(values) => values.len(),
        });
        columns.sum::<usize>()
            + self.shown.iter().map(|text| text.len() + 16 + 2).sum::<usize>()
            + self.terms.keys().map(|word| word.len() + ENTRY).sum::<usize>()
            + self.postings.len() * size_of::<Posting>()
    }

    /// A condition on a field, from a value of the type that the field and the operator ask for.
    ///
    /// # Errors
    /// A sentence for the model.
    pub fn condition(&self, field: &str, operator: Operator, value: &Value) -> Result<Condition, String> {
        let found = self.columns.iter().enumerate().find(|(_, (known, _))| known.name.as_str() == field);
        let Some((column, (field, values))) = found else {
            return Err(format!("The knowledge base has no field {field} any more."));
        };
        let given = match (operator, value) {
            (Operator::OneOf, Value::Array(given)) => given.iter().collect(),
            _ => vec![value],
        };
        let wrong = |must: &str| format!("The filter on {} must be {must}.", field.name);
        let test = match values {
            Column::Text { known, .. } => {
                let texts = given.into_iter().map(|value| value.as_str().ok_or_else(|| wrong("text")));
                let texts = texts.collect::<Result<Vec<_>, _>>()?;
                Test::Texts(texts.into_iter().filter_map(|text| known.get(folded(text).as_str()).copied()).collect())
            }
            Column::Number(_) => {
                let numbers = given.into_iter().map(|value| value.as_f64().ok_or_else(|| wrong("a number")));
                let numbers = numbers.collect::<Result<Vec<_>, _>>()?;
                match (operator, numbers.as_slice()) {
                    (Operator::AtMost, [most]) => Test::Between(f64::NEG_INFINITY, *most),
                    (Operator::AtLeast, [least]) => Test::Between(*least, f64::INFINITY),
                    _ => Test::Numbers(numbers),
                }
            }
            Column::Boolean(_) => match value {
                Value::Bool(wanted) => Test::Boolean(*wanted),
                _ => return Err(wrong("true or false")),
            },
        };
        Ok(Condition { column, test })
    }

    /// Filters first; then the words rank what is left. Without words, the filters alone decide, in order of the ids.
    pub fn search(&self, query: &str, conditions: &[Condition]) -> Found<'_> {
        let passes = self.passing(conditions);
        let mut wanted: Vec<(u32, u32)> = Vec::new();
        let mut any_words = false;
        words(query, |word| {
            any_words = true;
            wanted.extend(self.terms.get(word));
        });
        wanted.sort_unstable();
        wanted.dedup();
        let scores = self.scores(&wanted, &passes);
        // Words that most entries have say little about what is meant, unless nothing else was said.
        let telling: Vec<(u32, u32)> =
            wanted.iter().copied().filter(|(from, to)| 2 * (to - from) as usize <= self.shown.len()).collect();
        let mut matched = self.having(&telling, &passes);
        if matched.is_empty() {
            matched = self.having(&wanted, &passes);
        }
        let by_words = !matched.is_empty();
        if !by_words && (!conditions.is_empty() || !any_words) {
            let all = passes.iter().enumerate().filter(|(_, passes)| **passes);
            matched = all.filter_map(|(entry, _)| u16::try_from(entry).ok()).collect();
        }
        let score = |entry: u16| scores.get(usize::from(entry)).copied().unwrap_or_default();
        matched.sort_by(|one, other| score(*other).total_cmp(&score(*one)).then(one.cmp(other)));
        let best = matched.iter().take(MOST_SHOWN);
        let entries = best.filter_map(|entry| self.shown.get(usize::from(*entry)).map(AsRef::as_ref)).collect();
        Found { matched: matched.len(), by_words, entries }
    }

    fn passing(&self, conditions: &[Condition]) -> Vec<bool> {
        let mut passing = vec![true; self.shown.len()];
        for Condition { column, test } in conditions {
            let Some((_, column)) = self.columns.get(*column) else { continue };
            for (entry, passes) in passing.iter_mut().enumerate() {
                *passes = *passes && column.fulfils(entry, test);
            }
        }
        passing
    }

    fn scores(&self, wanted: &[(u32, u32)], passes: &[bool]) -> Vec<f32> {
        let mut scores = vec![0.0; passes.len()];
        for term in wanted {
            let postings = self.postings_of(*term);
            let (all, with) = (number(passes.len()), number(postings.len()));
            let rarity = (1.0 + (all - with + 0.5) / (with + 0.5)).ln();
            for posting in postings {
                let entry = usize::from(posting.entry);
                if let (Some(score), Some(length)) = (scores.get_mut(entry), self.lengths.get(entry)) {
                    let times = f32::from(posting.times);
                    let relative = f32::from(*length) / self.average_length.max(f32::MIN_POSITIVE);
                    *score += rarity * times * (K1 + 1.0) / (times + K1 * (1.0 - B + B * relative));
                }
            }
        }
        scores
    }

    /// The entries that pass and have at least one of these words, each once.
    fn having(&self, terms: &[(u32, u32)], passes: &[bool]) -> Vec<u16> {
        let mut having: Vec<u16> = terms
            .iter()
            .flat_map(|term| self.postings_of(*term))
            .map(|posting| posting.entry)
            .filter(|entry| passes.get(usize::from(*entry)).copied().unwrap_or(false))
            .collect();
        having.sort_unstable();
        having.dedup();
        having
    }

    fn postings_of(&self, (from, to): (u32, u32)) -> &[Posting] {
        self.postings.get(from as usize..to as usize).unwrap_or_default()
    }
}

impl Column {
    fn fulfils(&self, entry: usize, test: &Test) -> bool {
        match (self, test) {
            (Self::Text { values, .. }, Test::Texts(wanted)) => {
                values.get(entry).is_some_and(|value| *value != 0 && wanted.contains(value))
            }
            (Self::Number(values), Test::Between(from, to)) => {
                values.get(entry).is_some_and(|value| from <= value && value <= to)
            }
            (Self::Number(values), Test::Numbers(wanted)) => {
                // Both sides are decimal texts read the same way, so equal means identical.
                values.get(entry).is_some_and(|value| wanted.iter().any(|wanted| wanted.total_cmp(value).is_eq()))
            }
            (Self::Boolean(values), Test::Boolean(wanted)) => values.get(entry) == Some(&Some(*wanted)),
            _ => false,
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of entries are far below 2^24")]
fn number(count: usize) -> f32 {
    count as f32
}

#[cfg(test)]
mod tests;
