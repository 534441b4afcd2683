//! What is shown of a run of an automation: what a model wrote, and what it was told.
//!
//! The run needs all of it to go on, so nothing of it is hidden before it is written; it is when it is shown. By look and by
//! name as in the history; and what the tools' authors marked, in the calls themselves and wherever it stands again: in the
//! model's own words, in later calls, in other results. What cannot be told apart from what is marked is hidden with it.

use serde_json::{Map, Value};

use super::{HiddenTexts, marks::Paths, redactor::Redactor};

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
#[derive(Default)]
pub struct Transcript {
    hidden: HiddenTexts,
}

impl Transcript {
    /// Of a run with these calls.
    pub fn of<'a>(calls: impl IntoIterator<Item = MarkedCall<'a>>) -> Self {
        Self::beside(HiddenTexts::default(), calls)
    }

    /// As [`Transcript::of`]; other texts are hidden, too.
    pub(super) fn beside<'a>(mut hidden: HiddenTexts, calls: impl IntoIterator<Item = MarkedCall<'a>>) -> Self {
        for MarkedCall { marks, arguments, result } in calls {
            let paths = Paths::of(marks);
            hidden.add_marked(result, &paths.of_result(result), 0);
            if let Some(arguments) = arguments {
                hidden.add_marked(arguments, &paths.of_arguments(arguments), 0);
                hidden.add_secrets(arguments, false);
            }
        }
        Self { hidden }
    }

    /// A text of the model's or ours, of which at most so many bytes are kept, the marker apart.
    pub fn text(&self, text: &str, budget: usize) -> String {
        self.redactor(budget).text(text)
    }

    /// The arguments of a call.
    pub fn arguments(&self, marks: &[String], arguments: &Value, budget: usize) -> Value {
        self.redactor(budget).value(arguments, &Paths::of(marks).of_arguments(arguments), 0)
    }

    /// What a call gave back.
    pub fn result(&self, marks: &[String], result: &Value, budget: usize) -> Value {
        self.redactor(budget).value(result, &Paths::of(marks).of_result(result), 0)
    }

    pub(super) fn redactor(&self, budget: usize) -> Redactor<'_> {
        Redactor { hidden: &self.hidden, left: budget, people: false }
    }
}

/// What a call is to be given, for whoever decides on it: without secrets and what the tool's author marked, but with the people
/// whom it names. Of each argument at most so many bytes are kept, the marker apart: a long one costs the others nothing.
pub fn to_decide_on(marks: &[String], arguments: &Map<String, Value>, each: usize) -> Map<String, Value> {
    by_argument(marks, arguments, each, true)
}

/// The same for whoever only looks on, without people's numbers and addresses.
pub fn to_look_at(arguments: &Map<String, Value>, each: usize) -> Map<String, Value> {
    by_argument(&[], arguments, each, false)
}

fn by_argument(marks: &[String], arguments: &Map<String, Value>, each: usize, people: bool) -> Map<String, Value> {
    let whole = Value::Object(arguments.clone());
    let Transcript { hidden } = Transcript::of([MarkedCall { marks, arguments: Some(&whole), result: &Value::Null }]);
    let paths = Paths::of(marks);
    let shown = arguments.iter().flat_map(|(name, value)| {
        let one = Map::from_iter([(name.clone(), value.clone())]);
        Redactor { hidden: &hidden, left: each, people }.members(&one, &paths, 0, |_name| None)
    });
    shown.collect()
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
        let (given, cut) =
            (json!(["Ada Lovelace", 2]), json!("{\"name\": \"Augusta King\", \"ci… (cut: the first 30 of 90 bytes)"));
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
        let guests: Vec<String> = (0..600).map(|number| format!("guest {number}")).collect();
        let arguments = json!({"guests": guests});
        let call = MarkedCall { marks: &marks, arguments: Some(&arguments), result: &Value::Null };
        let transcript = Transcript::of([call]);
        assert_eq!(transcript.text("guest 299 comes", 500), "[redacted]");
    }

    #[test]
    fn whoever_decides_sees_people_and_neither_secrets_nor_what_is_marked() {
        let arguments = json!({
            "body": "word ".repeat(1_000), "guest": "Ada Lovelace", "note": "For Ada Lovelace", "password": "blue-horse-7",
            "to": ["ada@example.com", "+1 415 555 0101"],
        });
        let arguments = arguments.as_object().unwrap();
        let shown = Value::Object(to_decide_on(&marks(&["guest"]), arguments, 50));
        assert_eq!(shown["to"], json!(["ada@example.com", "+1 415 555 0101"]), "a long body costs it nothing");
        assert!(shown["body"].as_str().unwrap().contains("(cut: the first"));
        let hidden = [&shown["guest"], &shown["note"], &shown["password"]];
        assert_eq!(hidden, ["[redacted]", "For [redacted]", "[secret]"]);
        let looked_at = to_look_at(shown.as_object().unwrap(), 50);
        assert_eq!(looked_at["to"], json!(["[email]", "[number]"]));
    }

    #[test]
    fn numbers_addresses_and_credentials_are_hidden_without_a_mark() {
        let arguments = json!({"api_key": "blue-horse-7", "to": "+1 415 555 0101", "mail": "ada@example.com"});
        let call = MarkedCall { marks: &[], arguments: Some(&arguments), result: &Value::Null };
        let transcript = Transcript::of([call]);
        let expected = json!({"api_key": "[secret]", "to": "[number]", "mail": "[email]"});
        assert_eq!(transcript.arguments(&[], &arguments, 500), expected);
        assert_eq!(transcript.text("It is blue-horse-7.", 500), "It is [secret].");
        assert_eq!(transcript.text(&"word ".repeat(100), 20), "word word word word… (cut: the first 19 of 500 bytes)");
        assert_eq!(transcript.result(&[], &json!([1, "415-555-0101"]), 500), json!([1, "[number]"]));
    }
}
