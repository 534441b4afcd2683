//! Shows a person everything that a call will send, before they consent.

use serde_json::{Map, Value};

use crate::{
    cut::{cut, instead_of},
    models::{PendingCall, ShownValue},
    redaction::{SECRET, is_secret},
};

/// Limits for one value, and for all together, in bytes.
const LONGEST: usize = 8_000;
const LARGEST: usize = 32_000;

pub fn shown(pending: &PendingCall) -> Vec<ShownValue> {
    if pending.shows.is_empty() {
        return shows(&Value::Object(pending.arguments.clone()), &pending.arguments);
    }
    pending.shows.clone()
}

/// The values of a preview, by name. A value that is in the arguments comes from the model, others from the tool's
/// author.
pub(super) fn shows(preview: &Value, arguments: &Map<String, Value>) -> Vec<ShownValue> {
    let mut given = Vec::new();
    texts(&Value::Object(arguments.clone()), &mut given);
    let mut shown = Shows { given, values: Vec::new() };
    shown.add("", preview, false);
    let mut left = LARGEST;
    let mut kept = Vec::new();
    for (at, value) in shown.values.iter().enumerate() {
        let length = value.name.len() + value.value.len();
        if length > left {
            let more = shown.values.len() - at;
            kept.push(ShownValue { name: "More".to_owned(), value: instead_of(format!("{more} more")), fixed: true });
            break;
        }
        left -= length;
        kept.push(value.clone());
    }
    kept
}

struct Shows {
    given: Vec<String>,
    values: Vec<ShownValue>,
}

impl Shows {
    fn add(&mut self, name: &str, value: &Value, secret: bool) {
        match value {
            Value::Null => {}
            Value::Object(members) => match members.get("to") {
                // A recipient, even if the tool will refuse it.
                Some(Value::String(to)) if members.contains_key("allowed") => {
                    let reason = members.get("reason").and_then(Value::as_str);
                    let shown = reason.map_or_else(|| to.clone(), |reason| format!("{to} (not sent: {reason})"));
                    self.list(name, shown, self.is_fixed(to));
                }
                _ => {
                    for (member, value) in members {
                        let path = if name.is_empty() { member.clone() } else { format!("{name} {member}") };
                        self.add(&path, value, secret || is_secret(member));
                    }
                }
            },
            Value::Array(items) => {
                for item in items {
                    if item.is_object() {
                        self.add(name, item, secret);
                    } else if let Some(text) = text(item, secret) {
                        let fixed = self.is_fixed(&text);
                        self.list(name, text, fixed);
                    }
                }
            }
            value => {
                if let Some(text) = text(value, secret) {
                    let fixed = self.is_fixed(&text);
                    self.values.push(ShownValue { name: title(name), value: cut(text, LONGEST), fixed });
                }
            }
        }
    }

    /// Lists a value's fixed items in one line and its other items in another.
    fn list(&mut self, name: &str, item: String, fixed: bool) {
        let name = title(name);
        match self.values.iter_mut().find(|value| value.name == name && value.fixed == fixed) {
            Some(value) if value.value.len() + item.len() <= LONGEST => {
                value.value.push_str(", ");
                value.value.push_str(&item);
            }
            _ => self.values.push(ShownValue { name, value: cut(item, LONGEST), fixed }),
        }
    }

    fn is_fixed(&self, text: &str) -> bool {
        let digits = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>();
        let number = Some(digits(text)).filter(|number| number.len() >= 7 && text.starts_with('+'));
        // The arguments may write the number in another form, for example without its country code.
        !self.given.iter().any(|given| {
            let own = digits(given);
            given.trim() == text.trim()
                || number.as_ref().is_some_and(|number| own.len() >= 7 && number.ends_with(&own))
        })
    }
}

fn texts(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| texts(item, found)),
        Value::Object(members) => members.values().for_each(|value| texts(value, found)),
        value => found.extend(text(value, false)),
    }
}

fn text(value: &Value, secret: bool) -> Option<String> {
    match value {
        Value::Null => None,
        _ if secret => Some(SECRET.to_owned()),
        Value::String(text) => Some(text.clone()),
        Value::Bool(true) => Some("yes".to_owned()),
        Value::Bool(false) => Some("no".to_owned()),
        value => Some(value.to_string()),
    }
}

fn title(name: &str) -> String {
    let words = if name == "url" { "address".to_owned() } else { name.replace(['_', '-'], " ") };
    let mut letters = words.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lines(preview: &Value, arguments: &Value) -> Vec<String> {
        let shown = shows(preview, arguments.as_object().unwrap());
        let line =
            |shown: ShownValue| format!("{}: {}{}", shown.name, shown.value, if shown.fixed { " (fixed)" } else { "" });
        shown.into_iter().map(line).collect()
    }

    #[test]
    fn whom_the_author_fixed_is_shown_beside_whom_the_model_named() {
        let preview = json!({"from": "+15550100001", "text": "See you", "recipients": [
            {"to": "+14155550101", "allowed": true}, {"to": "+14155550102", "allowed": true},
            {"to": "+14155550103", "allowed": false, "reason": "it is not allowed"},
        ]});
        let arguments = json!({"text": "See you", "recipients": ["(415) 555-0102"]});
        assert_eq!(
            lines(&preview, &arguments),
            [
                "From: +15550100001 (fixed)",
                "Recipients: +14155550101, +14155550103 (not sent: it is not allowed) (fixed)",
                "Recipients: +14155550102",
                "Text: See you",
            ]
            .map(str::to_owned)
            .into_iter()
            .collect::<Vec<_>>()
        );
    }

    #[test]
    fn values_are_text_and_secrets_are_masked() {
        let preview = json!({
            "method": "POST", "url": "https://pay.example/charge", "headers": {"authorization": "[secret]"},
            "body": {"amount": 40, "to": {"name": "Ada", "api_key": "blue-horse"}, "now": true, "tags": ["a", "b"], "note": null},
        });
        assert_eq!(
            lines(&preview, &json!({"body_amount": 40, "name": "Ada"})),
            [
                "Body amount: 40",
                "Body now: yes (fixed)",
                "Body tags: a, b (fixed)",
                "Body to api key: [secret] (fixed)",
                "Body to name: Ada",
                "Headers authorization: [secret] (fixed)",
                "Method: POST (fixed)",
                "Address: https://pay.example/charge (fixed)",
            ]
            .map(str::to_owned)
            .into_iter()
            .collect::<Vec<_>>()
        );
    }

    #[test]
    fn a_long_consent_says_that_it_was_cut() {
        let many: Map<String, Value> = (0..9).map(|number| (format!("v{number}"), json!("x".repeat(7_000)))).collect();
        let shown = shows(&Value::Object(many), &Map::new());
        assert_eq!((shown.len(), shown[4].value.as_str()), (5, "… (cut: 5 more)"));
    }
}
