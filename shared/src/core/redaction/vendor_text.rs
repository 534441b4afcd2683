//! Redacts error texts of services for the log.
//!
//! Such texts address the sender, so they quote the request and name people, tokens and addresses without any mark; the log has
//! other readers.

use serde_json::Value;

use super::{HiddenTexts, SECRET, WINDOW, redacted};
use crate::cut::cut;

const NAME: &str = "[name]";
/// A longer mix of letters and digits is an id or token.
const LONGEST_MIXED: usize = 7;

/// Removes the request's texts, everything that the history hides, and also apparent names of people and tokens, since an error
/// text loses little by it; cuts to `budget` bytes.
pub fn vendor_text(text: &str, sent: &HiddenTexts, budget: usize) -> String {
    let clean = redacted(&sent.replaced(text), WINDOW);
    let mut shown = String::with_capacity(clean.len());
    let mut names: Vec<&str> = Vec::new();
    // Some services write Every Word Like This.
    let words = clean.split_whitespace().count();
    let is_title = clean.split_whitespace().filter(|word| is_capitalised(word)).count() * 3 > words * 2;
    for (index, word) in clean.split_inclusive(char::is_whitespace).enumerate() {
        if index > 0 && !is_title && is_capitalised(word) {
            names.push(word);
            if ends_clause(word) {
                push_names(&mut names, &mut shown);
            }
            continue;
        }
        push_names(&mut names, &mut shown);
        push_without_tokens(word, &mut shown);
    }
    push_names(&mut names, &mut shown);
    cut(shown, budget)
}

/// Two or more capitalised words are a person's name; a single one begins a sentence or names a thing.
fn push_names(names: &mut Vec<&str>, shown: &mut String) {
    if let [first, .., last] = names.as_slice() {
        let kept = |word: &&str| word.chars().take_while(|c| !c.is_alphabetic()).collect::<String>();
        let behind = last.trim_start_matches(|c: char| !c.is_alphabetic()).trim_start_matches(in_name);
        shown.push_str(&kept(first));
        shown.extend([NAME, behind]);
    } else {
        for word in names.iter() {
            push_without_tokens(word, shown);
        }
    }
    names.clear();
}

fn in_name(c: char) -> bool {
    c.is_alphabetic() || matches!(c, '-' | '’')
}

fn is_capitalised(word: &str) -> bool {
    let bare = word.trim_matches(|c: char| !c.is_alphabetic());
    let mut letters = bare.chars();
    // Quoted words are mostly names of fields.
    !word.starts_with(['\'', '"', '`'])
        && letters.next().is_some_and(char::is_uppercase)
        && letters.clone().all(|c| in_name(c) || c == '\'')
        && letters.any(char::is_lowercase)
}

fn ends_clause(word: &str) -> bool {
    word.trim_end().ends_with(['.', ',', ':', ';', '!', '?', ')'])
}

fn push_without_tokens(word: &str, shown: &mut String) {
    for part in word.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
        let bare = part.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        let mixed =
            bare.bytes().any(|byte| byte.is_ascii_digit()) && bare.bytes().any(|byte| byte.is_ascii_alphabetic());
        if bare.len() > LONGEST_MIXED && mixed {
            shown.push_str(SECRET);
            shown.push_str(part.get(bare.len()..).unwrap_or_default());
        } else {
            shown.push_str(part);
        }
    }
}

impl HiddenTexts {
    /// The texts and numbers of a request, and the distinctive words in them.
    pub fn of_request(values: &[Value]) -> Self {
        let mut texts = Self::default();
        for value in values {
            texts.add_sent(value);
        }
        texts
    }

    fn add_sent(&mut self, value: &Value) {
        match value {
            Value::String(text) => {
                // `POST`, `queued`: words of a protocol.
                let is_word = text.chars().all(char::is_uppercase) || text.chars().all(char::is_lowercase);
                if !is_word {
                    self.add_sent_text(text.trim());
                }
                let particular = |word: &&str| {
                    word.contains(|c: char| c.is_ascii_digit() || c.is_uppercase() || c == '@')
                        && !word.chars().all(char::is_uppercase)
                };
                let words = text.split(|c: char| c.is_whitespace() || matches!(c, ',' | '.' | ';' | ':' | '!' | '?'));
                words.filter(particular).for_each(|word| self.add_sent_text(word));
            }
            Value::Number(number) => self.add_sent_text(&number.to_string()),
            Value::Array(items) => items.iter().for_each(|item| self.add_sent(item)),
            Value::Object(members) => members.values().for_each(|value| self.add_sent(value)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(text: &str) -> String {
        vendor_text(text, &HiddenTexts::default(), 300)
    }

    #[test]
    fn people_numbers_addresses_and_tokens_are_hidden() {
        for (text, expected) in [
            ("21211: The 'To' number 5551234567 is not valid.", "21211: The 'To' number [number] is not valid."),
            (
                "Contact Ana Maria Silva <ana@example.com> at +1 415 555 0101, token tok_9f8e7d6c5b4a expired",
                "Contact [name] <[email]> at [number], token tok_[secret] expired",
            ),
            ("The user Ana Silva-Reis. Please retry", "The user [name]. Please retry"),
            ("property tools should not exist", "property tools should not exist"),
            ("no message SM0123456789abcdef0123456789abcdef", "no message [secret]"),
            ("the model gpt-4o-mini does not exist", "the model gpt-4o-mini does not exist"),
        ] {
            assert_eq!(shown(text), expected);
        }
    }

    #[test]
    fn values_of_the_request_are_hidden_in_a_vendors_text() {
        let sent =
            HiddenTexts::of_request(&[json!({"Body": "Dear Jo, your code is blue.", "To": "+1999", "n": [4711]})]);
        let said = "cannot send 'Dear Jo, your code is blue.' to +1999: 4711 of Jo is blue";
        assert_eq!(vendor_text(said, &sent, 300), "cannot send '[sent]' to [sent]: [sent] of [sent] is blue");
    }

    #[test]
    fn it_is_cut_after_it_was_cleaned() {
        let text = format!("{} ana@example.com", "word ".repeat(58));
        assert!(vendor_text(&text, &HiddenTexts::default(), 300).contains("[email]"));
        assert!(shown(&"word ".repeat(1_000)).len() < 400);
    }
}
