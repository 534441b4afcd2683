//! Full-text ranking: postings of words, scored by BM25.
//!
//! BM25 follows Robertson and Zaragoza, The Probabilistic Relevance Framework (2009), with the usual constants and the
//! non-negative inverse document frequency (docs/adr/0006-bm25.md). Texts may be split over several [`Postings`], rebuilt
//! independently and scored as one [`Collection`].

mod near;
mod words;

use std::collections::HashMap;

pub use self::{
    near::{Names, near_words, nearest},
    words::{folded, words},
};

/// Saturation of repeated words.
const K1: f32 = 1.2;
/// Penalty for long texts.
const B: f32 = 0.75;

/// The occurrences of words in texts; the texts are not kept.
#[derive(Debug, Default)]
pub struct Postings {
    lengths: Vec<u16>,
    terms: HashMap<Box<str>, Term>,
    postings: Vec<Posting>,
    collection: Collection,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Term {
    from: u32,
    to: u32,
}

#[derive(Debug, Clone, Copy)]
pub struct Posting {
    pub text: u16,
    times: u16,
}

#[derive(Debug, Clone, Copy, Default)]
pub struct Collection {
    texts: f32,
    length: f32,
}

#[derive(Debug, Default)]
pub struct PostingsBuilder {
    lengths: Vec<u16>,
    words: HashMap<Box<str>, Vec<Posting>>,
}

impl PostingsBuilder {
    /// Begins the next text. Returns false at the limit of 65,535 texts.
    pub fn next_text(&mut self) -> bool {
        let has_place = self.lengths.len() < usize::from(u16::MAX);
        if has_place {
            self.lengths.push(0);
        }
        has_place
    }

    /// Adds words to the current text. Each counts `times`, without making the text longer.
    pub fn add(&mut self, text: &str, times: u16) {
        let Some(number) = self.lengths.len().checked_sub(1).and_then(|last| u16::try_from(last).ok()) else { return };
        let Some(length) = self.lengths.last_mut() else { return };
        words(text, |word| {
            *length = length.saturating_add(1);
            match self.words.get_mut(word) {
                Some(postings) => count(postings, number, times),
                None => drop(self.words.insert(word.into(), vec![Posting { text: number, times }])),
            }
        });
    }

    pub fn finish(self) -> Postings {
        let Self { lengths, words } = self;
        let length = lengths.iter().map(|length| f32::from(*length)).sum();
        let collection = Collection { texts: number(lengths.len()), length };
        let mut postings = Vec::with_capacity(words.values().map(Vec::len).sum());
        let mut terms = HashMap::with_capacity(words.len());
        for (word, of_word) in words {
            let (from, to) = (postings.len(), postings.len() + of_word.len());
            if let (Ok(from), Ok(to)) = (u32::try_from(from), u32::try_from(to)) {
                postings.extend(of_word);
                terms.insert(word, Term { from, to });
            }
        }
        Postings { lengths, terms, postings, collection }
    }
}

fn count(postings: &mut Vec<Posting>, text: u16, times: u16) {
    match postings.last_mut() {
        Some(last) if last.text == text => last.times = last.times.saturating_add(times),
        _ => postings.push(Posting { text, times }),
    }
}

impl Postings {
    /// `word` must be in the form of [`words()`].
    pub fn term(&self, word: &str) -> Option<Term> {
        self.terms.get(word).copied()
    }

    pub fn vocabulary(&self) -> impl Iterator<Item = &str> {
        self.terms.keys().map(AsRef::as_ref)
    }

    pub fn postings(&self, term: Term) -> &[Posting] {
        self.postings.get(term.from as usize..term.to as usize).unwrap_or_default()
    }

    pub fn collection(&self) -> Collection {
        self.collection
    }

    /// Adds a word's contribution to the scores, by text number.
    pub fn score(&self, term: Term, rarity: f32, collection: Collection, scores: &mut [f32]) {
        let average = collection.average_length();
        for posting in self.postings(term) {
            let text = usize::from(posting.text);
            if let (Some(score), Some(length)) = (scores.get_mut(text), self.lengths.get(text)) {
                let times = f32::from(posting.times);
                let relative = f32::from(*length) / average;
                *score += rarity * times * (K1 + 1.0) / (times + K1 * (1.0 - B + B * relative));
            }
        }
    }

    /// Approximate memory in bytes.
    pub fn size(&self) -> usize {
        // Per map entry: box, value and the map's overhead.
        const ENTRY: usize = 40;
        self.terms.keys().map(|word| word.len() + ENTRY).sum::<usize>()
            + self.lengths.len() * 2
            + self.postings.len() * size_of::<Posting>()
    }
}

impl Term {
    pub fn texts(self) -> usize {
        (self.to - self.from) as usize
    }
}

impl Collection {
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { texts: self.texts + other.texts, length: self.length + other.length }
    }

    /// The weight of a word in `with` texts; rarer words weigh more.
    pub fn rarity(self, with: usize) -> f32 {
        let with = number(with);
        (1.0 + (self.texts - with + 0.5) / (with + 0.5)).ln()
    }

    fn average_length(self) -> f32 {
        (self.length / self.texts.max(1.0)).max(f32::MIN_POSITIVE)
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of texts are far below 2^24")]
fn number(count: usize) -> f32 {
    count as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(texts: &[&str]) -> Postings {
        let mut builder = PostingsBuilder::default();
        for text in texts {
            assert!(builder.next_text());
            builder.add(text, 1);
        }
        builder.finish()
    }

    #[test]
    fn texts_in_two_places_score_as_in_one() {
        let texts = ["send a message", "send a letter by mail", "read a message", "list channels"];
        let (whole, parts) = (of(&texts), [of(&texts[..1]), of(&texts[1..])]);
        let together = parts[0].collection().and(parts[1].collection());
        for word in ["send", "message", "mail", "channel"] {
            let mut scores = vec![0.0; 4];
            let term = whole.term(word).unwrap();
            whole.score(term, whole.collection().rarity(term.texts()), whole.collection(), &mut scores);
            let terms = [parts[0].term(word), parts[1].term(word)];
            let rarity = together.rarity(terms.iter().flatten().map(|term| term.texts()).sum());
            let mut in_parts = [vec![0.0; 1], vec![0.0; 3]];
            for ((part, term), scores) in parts.iter().zip(terms).zip(&mut in_parts) {
                if let Some(term) = term {
                    part.score(term, rarity, together, scores);
                }
            }
            assert_eq!(scores, in_parts.concat(), "{word}");
            assert!(scores.iter().any(|score| *score > 0.0));
        }
    }

    #[test]
    fn a_field_with_more_weight_scores_higher() {
        let mut builder = PostingsBuilder::default();
        for times in [1, 3] {
            builder.next_text();
            builder.add("message", times);
        }
        let postings = builder.finish();
        let mut scores = vec![0.0; 2];
        postings.score(postings.term("message").unwrap(), 1.0, postings.collection(), &mut scores);
        assert!(scores[1] > scores[0] && scores[0] > 0.0, "{scores:?}");
    }
}
