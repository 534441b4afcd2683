//! Similar words and names, by edit distance; swapping two neighbouring letters is one edit.

use std::collections::HashMap;

use strsim::osa_distance;

/// Candidates per mistyped word.
const MOST_NEAR: usize = 4;
/// Letters; shorter names are part of too many others.
const SHORTEST: usize = 3;
/// Letters from which one edit is allowed; shorter words are too similar to guess.
const ONE_EDIT: usize = 4;
/// Letters from which two edits are allowed: `remind` is no `refund`, and `invite` no `invoice`.
const TWO_EDITS: usize = 8;
/// Letters from which the beginning of a word matches.
const SHORTEST_BEGINNING: usize = 4;

/// The `most` nearest names, nearest first, ignoring case. Names too different are left out.
pub fn nearest<'a>(written: &str, names: impl IntoIterator<Item = &'a str>, most: usize) -> Vec<&'a str> {
    Names::of(names).nearest(written, most)
}

pub struct Names<'a>(Vec<Name<'a>>);

struct Name<'a> {
    name: &'a str,
    folded: String,
    length: usize,
    letters: u64,
}

impl<'a> Names<'a> {
    pub fn of(names: impl IntoIterator<Item = &'a str>) -> Self {
        let fold = |name: &'a str| {
            let folded = name.to_lowercase();
            Name { name, length: folded.chars().count(), letters: letters(&folded), folded }
        };
        Self(names.into_iter().map(fold).collect())
    }

    pub fn nearest(&self, written: &str, most: usize) -> Vec<&'a str> {
        let written: String = written.to_lowercase().chars().take(200).collect();
        let (length, letters) = (written.chars().count(), letters(&written));
        let near = |Name { name, folded, length: other, letters: in_other }: &Name<'a>| {
            let allowed = (length.max(*other) / 3).max(1);
            // An edit changes at most two letters.
            let may_be =
                length.abs_diff(*other) <= allowed && (letters ^ in_other).count_ones() as usize <= 2 * allowed;
            if may_be {
                let distance = osa_distance(&written, folded);
                if distance <= allowed {
                    return Some((distance, *name));
                }
            }
            // `slack_post` for `slack_post_message`, and the reverse.
            let contains = length >= SHORTEST
                && *other >= SHORTEST
                && (folded.contains(&written) || written.contains(folded.as_str()));
            contains.then(|| (allowed + length.abs_diff(*other), *name))
        };
        let mut near: Vec<(usize, &str)> = self.0.iter().filter_map(near).collect();
        near.sort_unstable();
        near.dedup();
        near.into_iter().take(most).map(|(_, name)| name).collect()
    }
}

/// For each unknown word, similar words of the vocabulary with the weight of a match: corrections of typing errors and other
/// forms (`posting`, `post`). The vocabulary may repeat words.
pub fn near_words<'a>(unknown: &[String], vocabulary: impl Iterator<Item = &'a str>) -> Vec<Vec<(&'a str, f32)>> {
    let wanted: Vec<Wanted<'_>> = unknown.iter().map(|word| Wanted::new(word)).collect();
    let mut found: Vec<HashMap<&str, usize>> = vec![HashMap::new(); unknown.len()];
    for word in vocabulary {
        let letters = letters(word);
        for (wanted, found) in wanted.iter().zip(&mut found) {
            if let Some(distance) = wanted.distance(word, letters) {
                found.insert(word, distance);
            }
        }
    }
    let best = |found: HashMap<&'a str, usize>| {
        let nearest = found.values().copied().min();
        let mut best: Vec<&str> =
            found.into_iter().filter(|(_, distance)| Some(*distance) == nearest).map(|(word, _)| word).collect();
        best.sort_unstable_by_key(|word| (word.len(), *word));
        best.truncate(MOST_NEAR);
        let counts = if nearest == Some(1) { 0.8 } else { 0.6 };
        best.into_iter().map(|word| (word, counts)).collect()
    };
    found.into_iter().map(best).collect()
}

/// A word to find, with data for a quick rejection.
struct Wanted<'a> {
    word: &'a str,
    stem: &'a str,
    length: usize,
    letters: u64,
    edits: usize,
}

impl<'a> Wanted<'a> {
    fn new(word: &'a str) -> Self {
        let length = word.chars().count();
        let edits = usize::from(length >= ONE_EDIT) + usize::from(length >= TWO_EDITS);
        Self { word, stem: stem(word), length, letters: letters(word), edits }
    }

    fn distance(&self, word: &str, letters: u64) -> Option<usize> {
        if word.starts_with(self.stem) && stem(word) == self.stem {
            return Some(1);
        }
        let edited = self.edits > 0
            && self.word.len().abs_diff(word.len()) <= 4 * self.edits
            // An edit changes at most two letters.
            && (self.letters ^ letters).count_ones() as usize <= 2 * self.edits
            && self.length.abs_diff(word.chars().count()) <= self.edits;
        let distance = if edited { osa_distance(self.word, word) } else { usize::MAX };
        if distance <= self.edits {
            return Some(distance);
        }
        let shorter = self.word.len().min(word.len());
        let begins = shorter >= SHORTEST_BEGINNING && (word.starts_with(self.word) || self.word.starts_with(word));
        begins.then_some(2)
    }
}

/// The common part of a word's forms: `schedul` for `schedule`, `scheduled` and `scheduling`.
fn stem(word: &str) -> &str {
    let endings = ["ing", "ed", "er", "e"].iter();
    let mut stems =
        endings.filter_map(|ending| word.strip_suffix(ending)).filter(|stem| stem.len() >= SHORTEST_BEGINNING);
    stems.next().unwrap_or(word)
}

/// A bit set of the word's letters; non-ASCII letters share bits.
fn letters(word: &str) -> u64 {
    word.chars().fold(0, |letters, letter| letters | 1 << (u32::from(letter) % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meant(word: &str) -> Vec<&'static str> {
        let vocabulary = ["message", "massage", "send", "channel", "calendar", "post", "refund", "row", "cat", "email"];
        let found = near_words(&[word.to_owned()], vocabulary.into_iter().chain(vocabulary));
        found.into_iter().flatten().map(|(word, _)| word).collect()
    }

    #[test]
    fn a_mistyped_word_is_known_and_a_strange_one_is_not() {
        for (typed, word) in [
            ("mesage", "message"),
            ("chanel", "channel"),
            ("calender", "calendar"),
            ("clanedar", "calendar"),
            ("sned", "send"),
            ("reufnd", "refund"),
            ("posting", "post"),
            ("calen", "calendar"),
            ("messaging", "message"),
            ("refunded", "refund"),
        ] {
            assert_eq!(meant(typed), [word], "{typed}");
        }
        for strange in ["zebra", "ro", "x", "日本", "sendsendsend-nothing", "kat-dog", "snd", "remind", "passenger"] {
            let found = meant(strange);
            assert!(found.is_empty() || strange.starts_with("send"), "{strange}: {found:?}");
        }
    }

    #[test]
    fn the_nearest_names_come_first_and_case_does_not_matter() {
        let names = ["Slack", "Stripe", "Google Calendar", "Google Sheets", "Notion"];
        assert_eq!(nearest("SLAKC", names, 3), ["Slack"]);
        assert_eq!(nearest("google calender", names, 3), ["Google Calendar"]);
        assert_eq!(nearest("google", names, 3), ["Google Sheets", "Google Calendar"]);
        assert!(nearest("salesforce", names, 3).is_empty());
        assert!(nearest(&"x".repeat(100_000), names, 3).is_empty());
        assert_eq!(
            nearest("slack_post_mesage", ["slack_post_message", "slack_list_channels"], 3),
            ["slack_post_message"]
        );
    }
}
