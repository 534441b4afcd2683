//! The search index of a knowledge base: columns for filters, postings for BM25, and excerpts.
//!
//! The full texts are not kept. The ranking is that of [`crate::ranking`].

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    cut::cut,
    models::{Field, FieldType, FieldValue, KnowledgeEntry},
    names::Names,
    ranking::{Postings, PostingsBuilder, Term, folded, words},
};

/// Bytes per entry.
const LONGEST_SHOWN: usize = 350;
/// Minimal weight of a matching word, as a share of the query's heaviest word.
const FLOOR: f32 = 0.26;
/// Letters of a word from which its length no longer lowers its weight.
const FULL_LENGTH: usize = 6;
const FULL_LENGTH_F: f32 = 6.0;
/// Per answer.
const MOST_SHOWN: usize = 5;

#[derive(Debug)]
pub struct Index {
    columns: Vec<(Field, Column)>,
    shown: Vec<Box<str>>,
    words: Postings,
}

#[derive(Debug)]
enum Column {
    /// Folded texts by number; 0 means none.
    Text {
        known: HashMap<Box<str>, u32>,
        values: Vec<u32>,
    },
    /// NaN means none.
    Number(Vec<f64>),
    Boolean(Vec<Option<bool>>),
}

#[derive(Debug)]
pub struct IndexCondition {
    column: usize,
    test: Test,
}

#[derive(Debug)]
enum Test {
    /// Any of these texts, by number.
    Texts(Vec<u32>),
    /// Inclusive bounds.
    Between(f64, f64),
    Numbers(Vec<f64>),
    Boolean(bool),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Names)]
#[serde(rename_all = "snake_case")]
pub enum IndexOperator {
    Equals,
    AtMost,
    AtLeast,
    OneOf,
}

#[derive(Debug, PartialEq)]
pub struct IndexMatches<'a> {
    pub matched: usize,
    /// Whether the entries contain words of the query; false if they only pass the filters.
    pub by_words: bool,
    pub entries: Vec<&'a str>,
}

pub struct Builder {
    columns: Vec<(Field, Column)>,
    shown: Vec<Box<str>>,
    words: PostingsBuilder,
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
        Self { columns: fields.iter().map(column).collect(), shown: Vec::new(), words: PostingsBuilder::default() }
    }

    /// Adds an entry. The index holds at most 65,535; a base has far fewer.
    pub fn add(&mut self, entry: &KnowledgeEntry) {
        if !self.words.next_text() {
            return;
        }
        let mut parts = Vec::new();
        for (field, column) in &mut self.columns {
            let value = entry.values.get(field.name.as_str());
            column.push(value);
            match value {
                Some(FieldValue::Text(text)) => self.words.add(text, 1),
                // "with a garden" should match the name of a true field.
                Some(FieldValue::Boolean(true)) => self.words.add(field.shown(), 1),
                _ => {}
            }
            if let Some(value) = value {
                parts.push(format!("{}: {value}", field.shown()));
            }
        }
        let mut shown = parts.join("; ");
        if let Some(text) = &entry.text {
            self.words.add(text, 1);
            if !shown.is_empty() {
                shown.push_str(". ");
            }
            shown.push_str(text);
        }
        let one_line: Vec<&str> = shown.split_whitespace().collect();
        self.shown.push(cut(one_line.join(" "), LONGEST_SHOWN).into());
    }

    pub fn finish(self) -> Index {
        Index { columns: self.columns, shown: self.shown, words: self.words.finish() }
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

    /// Approximate memory in bytes.
    pub fn size(&self) -> usize {
        // Per map entry: box, value and the map's overhead.
        const ENTRY: usize = 40;
        let columns = self.columns.iter().map(|(_, column)| match column {
            Column::Text { known, values } => {
                values.len() * 4 + known.keys().map(|text| text.len() + ENTRY).sum::<usize>()
            }
            Column::Number(values) => values.len() * 8,
            Column::Boolean(values) => values.len(),
        });
        columns.sum::<usize>() + self.shown.iter().map(|text| text.len() + 16 + 2).sum::<usize>() + self.words.size()
    }

    /// A condition on a field. `value` must have the type required by field and operator.
    ///
    /// # Errors
    /// A sentence for the model.
    pub fn condition(&self, field: &str, operator: IndexOperator, value: &Value) -> Result<IndexCondition, String> {
        let found = self.columns.iter().enumerate().find(|(_, (known, _))| known.name.as_str() == field);
        let Some((column, (field, values))) = found else {
            return Err(format!("The knowledge base has no field {field} any more."));
        };
        let given = match (operator, value) {
            (IndexOperator::OneOf, Value::Array(given)) => given.iter().collect(),
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
                    (IndexOperator::AtMost, [most]) => Test::Between(f64::NEG_INFINITY, *most),
                    (IndexOperator::AtLeast, [least]) => Test::Between(*least, f64::INFINITY),
                    _ => Test::Numbers(numbers),
                }
            }
            Column::Boolean(_) => match value {
                Value::Bool(wanted) => Test::Boolean(*wanted),
                _ => return Err(wrong("true or false")),
            },
        };
        Ok(IndexCondition { column, test })
    }

    /// Applies the filters, then ranks by words. Without words the order is by id.
    pub fn search(&self, query: &str, conditions: &[IndexCondition]) -> IndexMatches<'_> {
        let passes = self.passing(conditions);
        let (wanted, any_words) = self.wanted(query);
        let scores = self.scores(&wanted);
        // Words in more than half of the entries count only if no other word matches.
        let telling: Vec<Term> = wanted.iter().copied().filter(|term| 2 * term.texts() <= self.shown.len()).collect();
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
        IndexMatches { matched: matched.len(), by_words, entries }
    }

    /// The words of a query that can produce a match, without duplicates, and whether the query has any words. Words far lighter
    /// than the heaviest one are dropped, since "what" and "the" occur in unrelated entries. A word's weight grows with its
    /// rarity in this base, highest if no entry has it, and with its length, so it works in any language.
    fn wanted(&self, query: &str) -> (Vec<Term>, bool) {
        let collection = self.words.collection();
        let mut said: Vec<(Option<Term>, f32)> = Vec::new();
        words(query, |word| {
            let term = self.words.term(word);
            said.push((term, collection.rarity(term.map_or(0, Term::texts)) * share_of_length(word)));
        });
        let most = said.iter().map(|(_, carries)| *carries).fold(0.0, f32::max);
        let carrying = said.iter().filter(|(_, carries)| *carries >= FLOOR * most);
        let mut wanted: Vec<Term> = carrying.filter_map(|(term, _)| *term).collect();
        wanted.sort_unstable();
        wanted.dedup();
        (wanted, !said.is_empty())
    }

    fn passing(&self, conditions: &[IndexCondition]) -> Vec<bool> {
        let mut passing = vec![true; self.shown.len()];
        for IndexCondition { column, test } in conditions {
            let Some((_, column)) = self.columns.get(*column) else { continue };
            for (entry, passes) in passing.iter_mut().enumerate() {
                *passes = *passes && column.fulfils(entry, test);
            }
        }
        passing
    }

    fn scores(&self, wanted: &[Term]) -> Vec<f32> {
        let mut scores = vec![0.0; self.shown.len()];
        let collection = self.words.collection();
        for term in wanted {
            self.words.score(*term, collection.rarity(term.texts()), collection, &mut scores);
        }
        scores
    }

    fn having(&self, terms: &[Term], passes: &[bool]) -> Vec<u16> {
        let mut having: Vec<u16> = terms
            .iter()
            .flat_map(|term| self.words.postings(*term))
            .map(|posting| posting.text)
            .filter(|entry| passes.get(usize::from(*entry)).copied().unwrap_or(false))
            .collect();
        having.sort_unstable();
        having.dedup();
        having
    }
}

/// The weight of a word by its length: function words are short.
fn share_of_length(word: &str) -> f32 {
    let letters = word.chars().take(FULL_LENGTH).count();
    let exact = letters == FULL_LENGTH || word.chars().any(char::is_numeric);
    if exact { 1.0 } else { f32::from(u8::try_from(letters).unwrap_or(u8::MAX)) / FULL_LENGTH_F }
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
                // Both sides were parsed from decimal text in the same way, so equal numbers have equal bits.
                values.get(entry).is_some_and(|value| wanted.iter().any(|wanted| wanted.total_cmp(value).is_eq()))
            }
            (Self::Boolean(values), Test::Boolean(wanted)) => values.get(entry) == Some(&Some(*wanted)),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests;
