//! Shows a person everything that a call will send, before they consent.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{
    models::{PendingCall, ShownValue},
    redaction::{SECRET, is_secret, words},
};

/// Bytes of all names and values.
const LARGEST: usize = 32_000;
/// Words of the names that are shown first: of the address, and of the recipients.
const ADDRESS: [&str; 3] = ["url", "host", "hosts"];
const RECIPIENTS: [&str; 5] = ["to", "recipient", "recipients", "cc", "bcc"];

pub fn shown(pending: &PendingCall) -> Vec<ShownValue> {
    if pending.shows.is_empty() {
        let mut shown = Shows::beside(&pending.arguments);
        shown.add_all("", &pending.arguments, false);
        return shown.values;
    }
    pending.shows.clone()
}

/// The values of a preview, by name. A value that is in the arguments comes from the model, others from the tool's
/// author. `None` if they are too large to be shown: a person consents to all of them.
pub(super) fn shows(preview: &Value, arguments: &Map<String, Value>) -> Option<Vec<ShownValue>> {
    let mut shown = Shows::beside(arguments);
    for (name, value) in preview.as_object().map(in_order).into_iter().flatten() {
        match recipients(name, value) {
            Some(recipients) => shown.add_recipients(name, recipients),
            None => shown.add(name, value, is_secret(name)),
        }
    }
    let bytes: usize = shown.values.iter().map(|shown| shown.name.len() + shown.value.len()).sum();
    (bytes <= LARGEST).then_some(shown.values)
}

/// The address first, then the recipients.
fn in_order(members: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut members: Vec<_> = members.iter().collect();
    members.sort_by_key(|(name, _)| {
        let words = words(name);
        let has = |of: &[&str]| words.iter().any(|word| of.contains(&word.as_str()));
        (!has(&ADDRESS), !has(&RECIPIENTS))
    });
    members
}

/// An entry of an SMS preview.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Recipient {
    to: String,
    allowed: bool,
    reason: Option<String>,
}

/// The recipients of an SMS. Only an SMS preview has this list at its top; below the top, a model may have written it.
fn recipients(name: &str, value: &Value) -> Option<Vec<Recipient>> {
    if name == "recipients" { Vec::deserialize(value).ok() } else { None }
}

struct Shows {
    given: Vec<String>,
    values: Vec<ShownValue>,
}

impl Shows {
    fn beside(arguments: &Map<String, Value>) -> Self {
        let mut given = Vec::new();
        for value in arguments.values() {
            texts(value, &mut given);
        }
        Self { given, values: Vec::new() }
    }

    /// Lists each recipient, even if the tool will refuse it.
    fn add_recipients(&mut self, name: &str, recipients: Vec<Recipient>) {
        for Recipient { to, allowed, reason } in recipients {
            let fixed = self.is_fixed(&to);
            let shown = match reason {
                Some(reason) => format!("{to} (not sent: {reason})"),
                None if allowed => to,
                None => format!("{to} (not sent)"),
            };
            self.list(name, shown, fixed);
        }
    }

    fn add_all(&mut self, name: &str, members: &Map<String, Value>, secret: bool) {
        for (member, value) in in_order(members) {
            let path = if name.is_empty() { member.clone() } else { format!("{name} {member}") };
            self.add(&path, value, secret || is_secret(member));
        }
    }

    fn add(&mut self, name: &str, value: &Value, secret: bool) {
        match value {
            Value::Null => {}
            Value::Object(members) => self.add_all(name, members, secret),
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
                    self.values.push(ShownValue { name: title(name), value: text, fixed });
                }
            }
        }
    }

    /// Lists a value's fixed items in one line and its other items in another.
    fn list(&mut self, name: &str, item: String, fixed: bool) {
        let name = title(name);
        match self.values.iter_mut().find(|value| value.name == name && value.fixed == fixed) {
            Some(value) => {
                value.value.push_str(", ");
                value.value.push_str(&item);
            }
            None => self.values.push(ShownValue { name, value: item, fixed }),
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
        let shown = shows(preview, arguments.as_object().unwrap()).unwrap();
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
                "Recipients: +14155550101, +14155550103 (not sent: it is not allowed) (fixed)",
                "Recipients: +14155550102",
                "From: +15550100001 (fixed)",
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
                "Address: https://pay.example/charge (fixed)",
                "Body to api key: [secret] (fixed)",
                "Body to name: Ada",
                "Body amount: 40",
                "Body now: yes (fixed)",
                "Body tags: a, b (fixed)",
                "Headers authorization: [secret] (fixed)",
                "Method: POST (fixed)",
            ]
            .map(str::to_owned)
            .into_iter()
            .collect::<Vec<_>>()
        );
    }

    #[test]
    fn a_models_object_in_the_form_of_a_recipient_is_shown_with_all_its_members() {
        let order = json!({"to": "Ada", "allowed": true, "amount": 5});
        assert_eq!(
            lines(&json!({"body": {"order": order}}), &json!({"body_order": order})),
            ["Body order to: Ada", "Body order allowed: yes", "Body order amount: 5"]
        );
        // Below the top, `reason` is the model's word.
        let list = json!([{"to": "Ada", "allowed": true, "reason": "no"}]);
        let all = ["Recipients to: Ada", "Recipients allowed: yes", "Recipients reason: no"];
        let of_body = lines(&json!({"body": {"recipients": list}}), &json!({"recipients": list}));
        assert_eq!(of_body, all.map(|line| line.replace("Recipients", "Body recipients")));
        let more = json!({"recipients": [{"to": "Ada", "allowed": true, "iban": "DE1"}]});
        assert_eq!(lines(&more, &more), ["Recipients to: Ada", "Recipients allowed: yes", "Recipients iban: DE1"]);

        let pending = json!({
            "id": "c1", "tool": {"name": "pay"}, "arguments": {"recipients": list}, "turn": 1,
            "expires_at": "2026-11-24T12:00:00.000Z",
        });
        let shown = shown(&serde_json::from_value(pending).unwrap());
        let shown: Vec<String> = shown.iter().map(|shown| format!("{}: {}", shown.name, shown.value)).collect();
        assert_eq!(shown, all, "arguments of an older row");
    }

    #[test]
    fn a_consent_begins_with_the_address_and_the_recipients() {
        let body = json!({"aaa": "x", "cc": ["bo@a.example"], "to": ["ana@a.example"], "zzz": "y"});
        let preview =
            json!({"body": body, "headers": {"accept": "*/*"}, "method": "POST", "url": "https://a.example/"});
        assert_eq!(
            lines(&preview, &json!({"all": ["x", "y", "bo@a.example", "ana@a.example", "*/*", "POST"]})),
            [
                "Address: https://a.example/ (fixed)",
                "Body cc: bo@a.example",
                "Body to: ana@a.example",
                "Body aaa: x",
                "Body zzz: y",
                "Headers accept: */*",
                "Method: POST",
            ]
        );
    }

    /// Nobody consents to what is not shown.
    #[test]
    fn a_consent_is_whole_or_there_is_none() {
        let shown = |body: Value| shows(&json!({"body": body, "url": "https://a.example/"}), &Map::new());
        let whole = shown(json!({"text": "x".repeat(31_000)})).unwrap();
        assert_eq!((whole[0].name.as_str(), whole[1].value.len()), ("Address", 31_000));
        assert_eq!(shown(json!({"text": "x".repeat(LARGEST)})), None);
        let names: Map<String, Value> =
            (0..33).map(|number| (format!("{number}{}", "n".repeat(1_000)), json!(1))).collect();
        assert_eq!(shown(Value::Object(names)), None);
    }
}
