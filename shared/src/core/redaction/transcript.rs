//! Redacts a run's texts: model answers, tool calls and results.
//!
//! Stored steps stay complete, because the run needs them; redaction happens when they are shown. Patterns and names apply as in
//! the history. Values marked by a tool's author are hidden in the calls and wherever they recur: in the model's words, in later
//! calls, in other results. Text inseparable from a marked value is hidden with it.

use serde_json::{Map, Value};

use super::{HiddenTexts, marks::Paths, redactor::Redactor};

/// A call with its tool's marks.
#[derive(Debug, Clone, Copy)]
pub struct MarkedCall<'a> {
    pub marks: &'a [String],
    /// By name, or by position.
    pub arguments: Option<&'a Value>,
    pub result: &'a Value,
}

#[derive(Default)]
pub struct Transcript {
    hidden: HiddenTexts,
}

impl Transcript {
    pub fn of<'a>(calls: impl IntoIterator<Item = MarkedCall<'a>>) -> Self {
        Self::beside(HiddenTexts::default(), calls)
    }

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

    /// A text of the model or ours, cut to `budget` bytes, not counting the marker.
    pub fn text(&self, text: &str, budget: usize) -> String {
        self.redactor(budget).text(text)
    }

    pub fn arguments(&self, marks: &[String], arguments: &Value, budget: usize) -> Value {
        self.redactor(budget).value(arguments, &Paths::of(marks).of_arguments(arguments), 0)
    }

    pub fn result(&self, marks: &[String], result: &Value, budget: usize) -> Value {
        self.redactor(budget).value(result, &Paths::of(marks).of_result(result), 0)
    }

    pub(super) fn redactor(&self, budget: usize) -> Redactor<'_> {
        Redactor { hidden: &self.hidden, left: budget, people: false }
    }
}

/// Arguments for the person who approves a call: without secrets and marked values, but with recipients. Each argument is cut to
/// `each` bytes, not counting the marker, so a long one does not shorten others.
pub fn arguments_for_approver(marks: &[String], arguments: &Map<String, Value>, each: usize) -> Map<String, Value> {
    by_argument(marks, arguments, each, true)
}

/// As [`arguments_for_approver`], for other readers: without phone numbers and e-mail addresses.
pub fn arguments_for_reader(arguments: &Map<String, Value>, each: usize) -> Map<String, Value> {
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
    fn a_marked_value_is_hidden_wherever_it_appears() {
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
    fn an_indistinguishable_value_is_hidden_whole() {
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
    fn a_decider_sees_people_but_no_secrets_and_no_marked_values() {
        let arguments = json!({
            "body": "word ".repeat(1_000), "guest": "Ada Lovelace", "note": "For Ada Lovelace", "password": "blue-horse-7",
            "to": ["ada@example.com", "+1 415 555 0101"],
        });
        let arguments = arguments.as_object().unwrap();
        let shown = Value::Object(arguments_for_approver(&marks(&["guest"]), arguments, 50));
        assert_eq!(shown["to"], json!(["ada@example.com", "+1 415 555 0101"]), "a long body costs it nothing");
        assert!(shown["body"].as_str().unwrap().contains("(cut: the first"));
        let hidden = [&shown["guest"], &shown["note"], &shown["password"]];
        assert_eq!(hidden, ["[redacted]", "For [redacted]", "[secret]"]);
        let looked_at = arguments_for_reader(shown.as_object().unwrap(), 50);
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
