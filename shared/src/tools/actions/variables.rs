//! The variables `{{caller_phone_number}}`, `{{called_phone_number}}` and `{{now}}`.
//!
//! We fill them into fixed values at execution. In a description for a model they are VAPI's Liquid: VAPI fills them in for its
//! models, and we for all others. Any other text between braces stays as typed.

use std::borrow::Cow;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::{cut::cut, models::Timestamp, placeholder::Placeholder, redaction::HiddenTexts, tool::Conversation};

const NAMES: [&str; 3] = ["caller_phone_number", "called_phone_number", "now"];
/// In bytes, of a placeholder in an error.
const LONGEST_QUOTED: usize = 200;

/// The hidden texts of a `static_config`, with the values of this call.
pub(super) fn secrets(static_config: &Value, conversation: &Conversation) -> HiddenTexts {
    let filled = fill(static_config, conversation, Encoding::Plain);
    HiddenTexts::of_config(filled.as_ref().unwrap_or(static_config))
}

/// As [`secrets`], without fixed values that are no secrets.
pub(super) fn named_secrets(static_config: &Value, conversation: &Conversation) -> HiddenTexts {
    let filled = fill(static_config, conversation, Encoding::Plain);
    let mut texts = HiddenTexts::default();
    texts.add_secrets(filled.as_ref().unwrap_or(static_config), false);
    texts
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not known in this call, and this tool needs it")]
pub struct Unknown(&'static str);

impl Unknown {
    pub(super) fn sentence(self) -> String {
        let text = self.to_string();
        let mut letters = text.chars();
        letters.next().map_or_else(String::new, |first| format!("{}{}.", first.to_uppercase(), letters.as_str()))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    Plain,
    /// Percent-encoded: a `+` in a URL's query would mean a blank.
    Url,
}

fn value(name: &str, conversation: &Conversation) -> Option<Result<String, Unknown>> {
    match name.trim() {
        "caller_phone_number" => {
            Some(conversation.caller_number().map(|number| number.to_string()).ok_or(Unknown("the caller's number")))
        }
        "called_phone_number" => {
            Some(conversation.called.as_ref().map(ToString::to_string).ok_or(Unknown("the number that was called")))
        }
        "now" => Some(Ok(Timestamp::now().to_string())),
        _ => None,
    }
}

/// Our name of a variable, in our spelling or VAPI's.
fn own_name(name: &str) -> Option<&'static str> {
    match name.trim() {
        "caller_phone_number" | "customer.number" => Some("caller_phone_number"),
        "called_phone_number" | "phoneNumber.number" => Some("called_phone_number"),
        "now" => Some("now"),
        _ => None,
    }
}

fn replace<E>(text: &str, mut with: impl FnMut(&str) -> Option<Result<String, E>>) -> Result<Cow<'_, str>, E> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some(Placeholder { before, opened, closed: Some((name, beyond)) }) = Placeholder::first_in(rest) {
        filled.push_str(before);
        if let Some(value) = with(name) {
            filled.push_str(&value?);
            rest = beyond;
        } else {
            // Skips only the braces: a variable may begin inside.
            filled.push_str("{{");
            rest = opened;
        }
    }
    if filled.is_empty() {
        return Ok(Cow::Borrowed(text));
    }
    filled.push_str(rest);
    Ok(Cow::Owned(filled))
}

pub(super) fn all_in(text: &str) -> String {
    let mut found = Vec::new();
    let note = |name: &str| {
        let name = NAMES.into_iter().find(|ours| *ours == name.trim())?;
        found.push(format!("{{{{{name}}}}}"));
        Some(Ok::<_, std::convert::Infallible>(String::new()))
    };
    match replace(text, note) {
        Ok(_) => found.concat(),
    }
}

/// The mistake of an author's text that holds a placeholder which stays as typed.
pub(super) fn unknown_in(text: &str) -> Option<String> {
    not_filled(text, &NAMES, |_other| false)
}

/// As [`unknown_in`], for a text with the variables of `names`, and with those that `is_other` knows.
pub(super) fn not_filled(text: &str, names: &[&str], is_other: impl Fn(&str) -> bool) -> Option<String> {
    let mut rest = text;
    while let Some(Placeholder { closed: Some((name, beyond)), .. }) = Placeholder::first_in(rest) {
        let name = name.trim();
        if !names.contains(&name) && !is_other(name) {
            let known: Vec<String> = names.iter().map(|name| format!("{{{{{name}}}}}")).collect();
            let next = if known.is_empty() {
                "leave it out".to_owned()
            } else {
                format!("the variables are {}", known.join(", "))
            };
            return Some(format!(
                "cannot hold {{{{{}}}}}, which nothing fills in; {next}",
                cut(name.to_owned(), LONGEST_QUOTED)
            ));
        }
        rest = beyond;
    }
    None
}

pub(super) fn has_any(value: &Value) -> bool {
    match value {
        Value::String(text) => !all_in(text).is_empty(),
        Value::Array(items) => items.iter().any(has_any),
        Value::Object(members) => members.values().any(has_any),
        _ => false,
    }
}

/// The first variable that needs a call, in our spelling or VAPI's.
pub fn of_a_call(value: &Value) -> Option<&'static str> {
    let in_text = |text: &str| {
        let mut found = None;
        let note = |name: &str| {
            let known = own_name(name).filter(|name| *name != "now");
            found = found.or(known);
            known.map(|_| Ok::<_, std::convert::Infallible>(String::new()))
        };
        match replace(text, note) {
            Ok(_) => found,
        }
    };
    match value {
        Value::String(text) => in_text(text),
        Value::Array(items) => items.iter().find_map(of_a_call),
        Value::Object(members) => members.values().find_map(of_a_call),
        _ => None,
    }
}

/// # Errors
/// [`Unknown`] for a variable without a value in this call.
pub fn fill_text<'a>(text: &'a str, conversation: &Conversation, encoding: Encoding) -> Result<Cow<'a, str>, Unknown> {
    replace(text, |name| {
        value(name, conversation).map(|value| {
            value.map(|value| match encoding {
                Encoding::Plain => value,
                Encoding::Url => utf8_percent_encode(&value, NON_ALPHANUMERIC).to_string(),
            })
        })
    })
}

pub fn fill(value: &Value, conversation: &Conversation, encoding: Encoding) -> Result<Value, Unknown> {
    Ok(match value {
        Value::String(text) => fill_text(text, conversation, encoding)?.into(),
        Value::Array(items) => {
            Value::Array(items.iter().map(|item| fill(item, conversation, encoding)).collect::<Result<_, _>>()?)
        }
        Value::Object(object) => Value::Object(
            object
                .iter()
                .map(|(name, value)| Ok((name.clone(), fill(value, conversation, encoding)?)))
                .collect::<Result<_, _>>()?,
        ),
        other => other.clone(),
    })
}

/// A description with the variables filled in, for a model that is not VAPI's.
pub(super) fn fill_description(text: &str, conversation: &Conversation) -> String {
    let known = |name: &str| {
        let value = value(own_name(name)?, conversation)?;
        Some(Ok::<_, std::convert::Infallible>(value.unwrap_or_else(|_unknown| "unknown".to_owned())))
    };
    match replace(text, known) {
        Ok(text) => text.into_owned(),
    }
}

pub fn to_liquid(prompt: &str) -> String {
    let liquid = |name: &str| {
        let liquid = match name.trim() {
            "caller_phone_number" => "{{ customer.number }}",
            "called_phone_number" => "{{ phoneNumber.number }}",
            "now" => "{{ now }}",
            _ => return None,
        };
        Some(Ok::<_, std::convert::Infallible>(liquid.to_owned()))
    };
    match replace(prompt, liquid) {
        Ok(text) => text.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn conversation() -> Conversation {
        Conversation {
            caller: Some("+15550100001".into()),
            called: Some("+15550100002".parse().unwrap()),
            ..Conversation::default()
        }
    }

    #[test]
    fn variables_are_filled_in_wherever_they_stand_and_unknown_ones_stay() {
        let value = json!({"a": ["{{caller_phone_number}}", 1], "b": "x {{ called_phone_number }} {{order}} {{{{caller_phone_number}}"});
        assert_eq!(
            fill(&value, &conversation(), Encoding::Plain).unwrap(),
            json!({"a": ["+15550100001", 1], "b": "x +15550100002 {{order}} {{+15550100001"}),
        );
        let url = "https://api.example.com/customers?phone={{caller_phone_number}}";
        let url = fill_text(url, &conversation(), Encoding::Url).unwrap();
        assert_eq!(url, "https://api.example.com/customers?phone=%2B15550100001");
    }

    #[test]
    fn a_placeholder_that_stays_as_typed_is_a_mistake() {
        for text in ["", "no braces", "{{ now }} for {{caller_phone_number}}", "an open {{order", "{a}"] {
            assert_eq!(unknown_in(text), None, "{text}");
        }
        for (text, quoted) in
            [("Hello {{ caller_name }}", "{{caller_name}}"), ("{{now}} {{}}", "{{}}"), ("{{{now}}}", "{{{now}}")]
        {
            assert!(unknown_in(text).unwrap().starts_with(&format!("cannot hold {quoted}, which")), "{text}");
        }
        let told = "cannot hold {{now}}, which nothing fills in; the variables are {{order}}";
        assert_eq!(not_filled("{{order}} {{b}} {{now}}", &["order"], |name| name == "b").as_deref(), Some(told));
    }

    #[test]
    fn variables_that_need_a_call_are_found_wherever_they_stand() {
        assert_eq!(of_a_call(&json!({"a": ["x", "to {{ called_phone_number }}"]})), Some("called_phone_number"));
        assert_eq!(of_a_call(&json!("{{{{caller_phone_number}}")), Some("caller_phone_number"));
        assert_eq!(of_a_call(&json!({"a": "{{now}} {{order}} caller_phone_number", "caller_phone_number": 1})), None);
    }

    #[test]
    fn now_is_iso_8601() {
        let now = fill_text("{{now}}", &conversation(), Encoding::Plain).unwrap();
        assert!(now.parse::<Timestamp>().is_ok(), "{now}");
    }

    #[test]
    fn a_variable_without_a_value_is_an_error_not_an_empty_text() {
        assert!(fill_text("{{caller_phone_number}}", &Conversation::default(), Encoding::Plain).is_err());
    }

    #[test]
    fn a_prompt_is_translated_to_vapis_liquid() {
        assert_eq!(
            to_liquid("Look up {{caller_phone_number}} for {{ called_phone_number }} at {{now}}, {{x}}"),
            "Look up {{ customer.number }} for {{ phoneNumber.number }} at {{ now }}, {{x}}",
        );
    }

    #[test]
    fn a_description_has_the_values_of_variables_in_either_spelling() {
        let text = "Of {{ customer.number }} and {{called_phone_number}}, {{ x }} {{customer.name}}";
        let filled = "Of +15550100001 and +15550100002, {{ x }} {{customer.name}}";
        assert_eq!(fill_description(text, &conversation()), filled);
        let anonymous = Conversation { caller: Some("anonymous".into()), ..Conversation::default() };
        assert_eq!(fill_description("Of {{ customer.number }}", &anonymous), "Of unknown");
        let now = fill_description(&to_liquid("{{now}}"), &Conversation::default());
        assert!(now.parse::<Timestamp>().is_ok(), "{now}");
    }

    proptest! {
        #[test]
        fn text_without_our_variables_is_untouched(text in "[a-z{} ]{0,40}") {
            prop_assume!(!text.contains("now"));
            let filled = fill_text(&text, &conversation(), Encoding::Plain).unwrap();
            prop_assert_eq!(filled.as_ref(), text.as_str());
        }
    }
}
