//! Separates the answer in a model's words from its plans.
//! All answers, whole or streamed, pass through here, so that no person sees the JSON with which a model asks for a
//! tool.

use serde_json::Value;

use super::plan::is_call;

/// Places of a text that are tried as the beginning of JSON.
const MOST_BEGINNINGS: usize = 200;
const FENCE: &str = "```";

/// Words on their way to a person. A possible plan is held back until it is known whether it is one.
#[derive(Debug, Default)]
pub(super) struct AnswerText {
    held: String,
    begun: bool,
    tried: usize,
    plans: Vec<Value>,
}

#[derive(Debug, Default, PartialEq)]
pub(super) struct Read {
    pub(super) text: String,
    /// The plans in the text, as written; null for a plan that was cut off.
    pub(super) plans: Vec<Value>,
}

enum Next {
    /// The number of bytes that are text.
    Text(usize),
    Plan(usize, Value),
    Wait,
}

pub(super) fn read(text: &str) -> Read {
    let mut words = AnswerText::default();
    let mut shown = words.push(text);
    let (rest, plans) = words.finish();
    shown.push_str(&rest);
    Read { text: shown.trim().to_owned(), plans }
}

impl AnswerText {
    /// Takes more words and returns those that can be shown now.
    pub(super) fn push(&mut self, words: &str) -> String {
        self.held.push_str(words);
        self.shown(false)
    }

    pub(super) fn finish(mut self) -> (String, Vec<Value>) {
        let rest = self.shown(true);
        (rest, self.plans)
    }

    fn shown(&mut self, last: bool) -> String {
        let mut shown = String::new();
        while self.tried < MOST_BEGINNINGS
            && let Some(at) = self.held.find(['{', '[', '`'])
        {
            shown.extend(self.held.drain(..at));
            match next(&self.held, last) {
                Next::Text(length) => {
                    self.tried += usize::from(length == 1);
                    shown.extend(self.held.drain(..length));
                }
                Next::Plan(length, plan) => {
                    self.held.drain(..length);
                    self.plans.push(plan);
                }
                Next::Wait => return self.without_leading_blanks(shown),
            }
        }
        shown.push_str(&std::mem::take(&mut self.held));
        self.without_leading_blanks(shown)
    }

    fn without_leading_blanks(&mut self, shown: String) -> String {
        if self.begun {
            return shown;
        }
        let shown = shown.trim_start_matches(|letter: char| letter.is_whitespace() || letter == '\u{feff}').to_owned();
        self.begun = !shown.is_empty();
        shown
    }
}

/// Classifies a text that begins with a brace, a bracket or a backtick.
fn next(held: &str, last: bool) -> Next {
    let Some(fenced) = held.strip_prefix(FENCE) else {
        return match held.chars().next() {
            Some('`') if !last && FENCE.starts_with(held) => Next::Wait,
            Some('`') => Next::Text(1),
            _ => json(held, last),
        };
    };
    let content = fenced.trim_start_matches(|letter: char| letter.is_ascii_alphanumeric()).trim_start();
    let before = held.len() - content.len();
    match content.chars().next() {
        None if !last => Next::Wait,
        Some('{' | '[') => match json(content, last) {
            Next::Text(length) => Next::Text(before + length),
            Next::Plan(length, plan) => {
                let behind = content.get(length..).unwrap_or_default().trim_start();
                if let Some(rest) = behind.strip_prefix(FENCE) {
                    Next::Plan(held.len() - rest.len(), plan)
                } else if FENCE.starts_with(behind) {
                    if last { Next::Plan(held.len(), plan) } else { Next::Wait }
                } else {
                    // The fence has more content: it stays, without the plan.
                    Next::Text(before)
                }
            }
            Next::Wait => Next::Wait,
        },
        _ => Next::Text(before),
    }
}

fn json(text: &str, last: bool) -> Next {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    match values.next() {
        Some(Ok(value)) if is_call(&value) => Next::Plan(values.byte_offset(), value),
        // This JSON is data, so its content is not a plan either.
        Some(Ok(_)) => Next::Text(values.byte_offset()),
        Some(Err(error)) if error.is_eof() && !last => Next::Wait,
        Some(Err(error)) if error.is_eof() && begins_a_call(text) => Next::Plan(text.len(), Value::Null),
        _ => Next::Text(1),
    }
}

/// Whether a text that was cut off was the beginning of a plan.
fn begins_a_call(text: &str) -> bool {
    let member = text.trim_start_matches(|letter: char| letter.is_whitespace() || letter == '[' || letter == '{');
    ["\"tool\"", "\"tool_name\""].iter().any(|name| member.starts_with(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = r#"{"tool": "send_sms", "reason": "r", "arguments": {"text": "Hi {you}"}}"#;

    fn by_words(text: &str) -> Read {
        let mut words = AnswerText::default();
        let mut shown = String::new();
        for letter in text.chars() {
            shown.push_str(&words.push(&letter.to_string()));
        }
        let (rest, plans) = words.finish();
        shown.push_str(&rest);
        Read { text: shown.trim().to_owned(), plans }
    }

    #[test]
    fn a_text_that_parses_as_a_plan_is_never_shown() {
        for (text, shown) in [
            (PLAN.to_owned(), ""),
            (format!("\u{feff}\n{PLAN}\n"), ""),
            (format!("```json\n{PLAN}\n```"), ""),
            (format!("```{PLAN}```"), ""),
            (format!("[{PLAN}, {PLAN}]"), ""),
            (format!("{PLAN}\n{PLAN}"), ""),
            (format!("Sure!\n\n```json\n{PLAN}\n```\nShall I?"), "Sure!\n\n\nShall I?"),
            (format!("I would do this: {PLAN}"), "I would do this:"),
            (r#"{"tool": "none"}"#.to_owned(), ""),
            (r#"{"tool": "teleport", "arguments": {}}"#.to_owned(), ""),
            (r#"{"tool": "send_sms", "arguments": {"text": "cut o"#.to_owned(), ""),
            (
                r#"Sure. ```json
{"tool": "send_sms", "argu"#
                    .to_owned(),
                "Sure. ```json",
            ),
        ] {
            let read = read(&text);
            assert!(!read.plans.is_empty(), "{text}");
            assert_eq!(read.text.replace("```json", "").trim(), shown.replace("```json", "").trim(), "{text}");
            assert_eq!(by_words(&text), read, "{text}");
        }
    }

    #[test]
    fn a_text_that_is_not_a_plan_is_shown_unchanged() {
        for text in [
            "Hello!",
            "[1] is a list, and {this} is none.",
            "See [the page](https://a.example) and `code` and ``more``.",
            r#"{"tool": "hammer", "price": 3}"#,
            r#"{"total": 3, "items": [{"tool": "saw"}]}"#,
            "```rust\nfn main() { println!(\"{}\", 1) }\n```",
            "```json\n{\"a\": [1, 2]}\n```",
            "A set {1, 2, [3",
            "{\"open\": ",
            "`",
        ] {
            assert_eq!(read(text), Read { text: text.trim().to_owned(), plans: Vec::new() });
            assert_eq!(by_words(text), read(text), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn word_by_word_is_the_same_as_whole(text in "[\\[\\]{}\":,atol `\\n\\\\]{0,60}") {
            proptest::prop_assert_eq!(by_words(&text), read(&text));
        }
    }
}
