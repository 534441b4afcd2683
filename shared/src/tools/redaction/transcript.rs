//! What is shown of a run of an automation: what a model wrote, and what it was told.
//!
//! The run needs all of it to go on, so nothing of it is hidden before it is written; it is when it is shown. By look and by
//! name as in the history; and what the tools' authors marked, in the calls themselves and wherever it stands again: in the
//! model's own words, in later calls, in other results. What cannot be told apart from what is marked is hidden with it.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{
    EVERYTHING, HIDDEN, MOST_WANTED, RESULT, Walk, below, collect_marked, collect_secrets,
    patterns::{SECRET, is_credential},
    within,
};

/// Texts that are looked for everywhere; a run that marks more shows no text at all.
const MOST_LOOKED_FOR: usize = 256;

/// A call, as far as what its tool's author marked matters.
#[derive(Debug, Clone, Copy)]
pub struct MarkedCall<'a> {
    pub marks: &'a [String],
    /// By name, or as they were given.
    pub arguments: Option<&'a Value>,
    /// Text, if it is no JSON.
    pub result: &'a Value,
}

/// Shows texts and calls of one run.
#[derive(Debug, Default)]
pub struct Transcript {
    /// The longest first, so that none is broken by one that is part of it.
    wanted: Vec<(String, &'static str)>,
    /// More is marked than can be looked for.
    too_much: bool,
}

impl Transcript {
    /// Of a run with these calls.
    pub fn of<'a>(calls: impl IntoIterator<Item = MarkedCall<'a>>) -> Self {
        let (mut wanted, mut too_much) = (BTreeMap::new(), false);
        for call in calls {
            let (marked, given) = (call.marked(), call.credentials());
            too_much |= marked.len() >= MOST_WANTED;
            let marked = marked.into_iter().map(|text| (text, HIDDEN));
            for (text, shown) in marked.chain(given.into_iter().map(|secret| (secret, SECRET))) {
                // As it stands in JSON that is part of a text, too.
                let escaped = Value::from(text.as_str()).to_string().trim_matches('"').to_owned();
                wanted.insert(escaped, shown);
                wanted.insert(text, shown);
            }
            too_much |= wanted.len() > MOST_LOOKED_FOR;
            if too_much {
                break;
            }
        }
        let mut wanted: Vec<_> = wanted.into_iter().collect();
        wanted.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
        Self { wanted, too_much }
    }

    /// A text of the model's or ours, of which at most so many bytes are kept, the marker apart.
    pub fn text(&self, text: &str, budget: usize) -> String {
        if self.too_much { HIDDEN.into() } else { self.walk(budget).text(text) }
    }

    /// The arguments of a call.
    pub fn arguments(&self, marks: &[String], arguments: &Value, budget: usize) -> Value {
        let marks = borrowed(marks);
        match arguments {
            _ if self.too_much || marks.contains(&EVERYTHING) => HIDDEN.into(),
            Value::Object(members) => Value::Object(self.walk(budget).members(members, &marks, 0, |_name| None)),
            // They were given in an order that fits no parameters.
            _ if !marks.is_empty() => HIDDEN.into(),
            other => self.walk(budget).value(other, &[], 0),
        }
    }

    /// What a call gave back.
    pub fn result(&self, marks: &[String], result: &Value, budget: usize) -> Value {
        let marks = borrowed(marks);
        let of_result = of_result(&marks);
        let hidden = marks.contains(&EVERYTHING) || of_result.contains(&"");
        // JSON that was cut is text.
        let unreadable = !of_result.is_empty() && result.is_string();
        if self.too_much || hidden || unreadable {
            HIDDEN.into()
        } else {
            self.walk(budget).value(result, &of_result, 0)
        }
    }

    fn walk(&self, budget: usize) -> Walk<'_> {
        Walk { wanted: &self.wanted, left: budget }
    }
}

impl MarkedCall<'_> {
    /// The texts under marked fields.
    fn marked(&self) -> Vec<String> {
        let marks = borrowed(self.marks);
        let mut marked = Vec::new();
        if marks.is_empty() {
            return marked;
        }
        let everything = marks.contains(&EVERYTHING);
        match self.arguments {
            Some(Value::Object(members)) if !everything => {
                for (name, value) in members {
                    collect_marked(value, &within(&marks, name), 0, &mut marked);
                }
            }
            Some(all) => collect_marked(all, &[""], 0, &mut marked),
            None => {}
        }
        let of_result = if everything { vec![""] } else { of_result(&marks) };
        collect_marked(self.result, &of_result, 0, &mut marked);
        marked
    }

    /// What was given under the name of a credential.
    fn credentials(&self) -> Vec<String> {
        let mut given = Vec::new();
        let none = Map::new();
        for (name, value) in self.arguments.and_then(Value::as_object).unwrap_or(&none) {
            collect_secrets(value, is_credential(name), &mut given);
        }
        given
    }
}

fn borrowed(marks: &[String]) -> Vec<&str> {
    marks.iter().map(String::as_str).collect()
}

fn of_result<'a>(marks: &[&'a str]) -> Vec<&'a str> {
    marks.iter().filter_map(|mark| below(mark, RESULT)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn marks(paths: &[&str]) -> Vec<String> {
        paths.iter().map(|path| (*path).to_owned()).collect()
    }

    #[test]
    fn what_is_marked_is_hidden_wherever_it_stands_again() {
        let marks = marks(&["guest", "result.customer.name"]);
        let arguments = json!({"guest": "Ada Lovelace", "nights": 2});
        let result = json!({"customer": {"name": "Augusta \"Ada\" King", "city": "Porto"}});
        let call = MarkedCall { marks: &marks, arguments: Some(&arguments), result: &result };
        let transcript = Transcript::of([call]);
        assert_eq!(transcript.arguments(&marks, &arguments, 500), json!({"guest": "[redacted]", "nights": 2}));
        let shown = transcript.result(&marks, &result, 500);
        assert_eq!(shown, json!({"customer": {"name": "[redacted]", "city": "Porto"}}));
        let said = r#"return book("Ada Lovelace", 2); // {"name":"Augusta \"Ada\" King"}, Augusta "Ada" King"#;
        let expected = r#"return book("[redacted]", 2); // {"name":"[redacted]"}, [redacted]"#;
        assert_eq!(transcript.text(said, 500), expected);
    }

    #[test]
    fn what_cannot_be_told_apart_is_hidden_whole() {
        let marks = marks(&["guest", "result.name"]);
        let (given, cut) = (json!(["Ada Lovelace", 2]), json!("{\"name\": \"Augusta King\", \"ci [cut]"));
        let call = MarkedCall { marks: &marks, arguments: Some(&given), result: &cut };
        let transcript = Transcript::of([call]);
        assert_eq!(transcript.arguments(&marks, &given, 500), "[redacted]");
        assert_eq!(transcript.result(&marks, &cut, 500), "[redacted]");
        assert_eq!(transcript.text("Ada Lovelace comes", 500), "[redacted] comes");
        let all = super::tests::marks(&["*"]);
        let (arguments, result) = (json!({"a": "something"}), json!("an answer"));
        let transcript = Transcript::of([MarkedCall { marks: &all, arguments: Some(&arguments), result: &result }]);
        assert_eq!(transcript.arguments(&all, &arguments, 500), "[redacted]");
        assert_eq!(transcript.text("something: an answer", 500), "[redacted]: [redacted]");
    }

    #[test]
    fn more_than_can_be_looked_for_hides_every_text() {
        let marks = marks(&["guests"]);
        let guests: Vec<String> = (0..100).map(|number| format!("guest {number}")).collect();
        let arguments = json!({"guests": guests});
        let call = MarkedCall { marks: &marks, arguments: Some(&arguments), result: &Value::Null };
        let transcript = Transcript::of([call]);
        assert_eq!(transcript.text("guest 99 comes", 500), "[redacted]");
    }

    #[test]
    fn numbers_addresses_and_credentials_are_hidden_without_a_mark() {
        let arguments = json!({"api_key": "blue-horse-7", "to": "+1 415 555 0101", "mail": "ada@example.com"});
        let call = MarkedCall { marks: &[], arguments: Some(&arguments), result: &Value::Null };
        let transcript = Transcript::of([call]);
        let expected = json!({"api_key": "[secret]", "to": "[number]", "mail": "[email]"});
        assert_eq!(transcript.arguments(&[], &arguments, 500), expected);
        assert_eq!(transcript.text("It is blue-horse-7.", 500), "It is [secret].");
        assert_eq!(transcript.text(&"word ".repeat(100), 20), "word word word word… [cut]");
        assert_eq!(transcript.result(&[], &json!([1, "415-555-0101"]), 500), json!([1, "[number]"]));
    }
}
