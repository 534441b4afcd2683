//! Approval rules: whether an action needs approval, and its recipients.
//!
//! When in doubt, ask: every rule covers tools without a declared effect, and an e-mail without known recipients counts as external.

use serde_json::{Map, Value};

use crate::{
    models::{Approval, ApprovalRule, ApprovalStatus, Timestamp, ToolEffect},
    redaction::words,
};

/// Arguments with content rather than recipients.
const CONTENT: [&str; 8] = ["body", "text", "html", "subject", "content", "message", "signature", "attachments"];

/// First or last words of arguments that name the sender. `reply_to` is not among them: answers go there.
const SENDERS: [&str; 2] = ["from", "sender"];
/// The only words of names like `to` and `recipients`, with the words below also of `recipient_email`.
const RECIPIENTS: [&str; 3] = ["recipient", "recipients", "to"];
const ADDRESSES: [&str; 6] = ["address", "addresses", "e", "email", "emails", "mail"];
/// Words of addresses beside the recipients, who may still be anybody.
const BESIDE: [&str; 4] = ["bcc", "cc", "copy", "reply"];
/// Words of arguments whose id stands for recipients.
const SOURCES: [&str; 7] = ["audience", "conversation", "list", "message", "reply", "segment", "thread"];
/// Words of argument names under which a number without a leading `+` is a phone number.
const NUMBERS: [&str; 9] = ["to", "cc", "bcc", "recipient", "recipients", "phone", "mobile", "tel", "number"];
const FEWEST_DIGITS: usize = 7;
const MOST_RECIPIENTS: usize = 100;

/// The first rule that requires approval for this call.
pub fn asking_rule<'r>(
    rules: &'r [ApprovalRule],
    effect: ToolEffect,
    arguments: &Map<String, Value>,
) -> Option<&'r ApprovalRule> {
    rules
        .iter()
        .find(|rule| rule.effect.holds(effect) && (rule.outside.is_empty() || goes_outside(arguments, &rule.outside)))
}

/// Whether any address is outside `domains`, or the recipients are unknown.
fn goes_outside(arguments: &Map<String, Value>, domains: &[String]) -> bool {
    let mut found = Found { domains, outside: false, known: false };
    found.look_into(arguments, Place::Top);
    found.outside || !found.known
}

#[derive(Clone, Copy, PartialEq)]
enum Place {
    Top,
    /// In an object that holds the content, such as `message`.
    Content,
    Recipients,
    /// As in `cc`.
    Beside,
    Elsewhere,
}

struct Found<'d> {
    domains: &'d [String],
    /// An address is outside, or may be.
    outside: bool,
    known: bool,
}

impl Found<'_> {
    fn look_into(&mut self, members: &Map<String, Value>, around: Place) {
        for (name, member) in members.iter().filter(|(name, _)| !is_sender(name)) {
            self.outside |= stands_for_recipients(name, member);
            self.look_at(name, member, around.within(name));
        }
    }

    fn look_at(&mut self, name: &str, value: &Value, place: Place) {
        match value {
            Value::String(text) if !is_content(name) => {
                let place = if place.may_name_recipients() && is_address(name) { Place::Recipients } else { place };
                // Prose in an object of the content is content, whatever its name.
                if place != Place::Content || !is_prose(text) {
                    self.add(text, place);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.look_at(name, item, place)),
            Value::Object(members) => self.look_into(members, place),
            _ => {}
        }
    }

    fn add(&mut self, text: &str, place: Place) {
        for (_, domain) in parts(text).filter_map(|part| part.rsplit_once('@')) {
            self.outside |= !self.domains.contains(&domain.trim_end_matches('.').to_lowercase());
            self.known |= place == Place::Recipients;
        }
    }
}

/// The words of a text, and its addresses.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let apart = |letter: char| letter.is_whitespace() || ",;<>()[]\"'".contains(letter);
    text.split(apart).filter(|part| !part.is_empty())
}

/// Several words, not all of them addresses, and no address with a name: `Eve <eve@example.com>`.
fn is_prose(text: &str) -> bool {
    let named = text.split('<').skip(1).filter_map(|rest| rest.split('>').next()).any(|inside| inside.contains('@'));
    !named && text.trim().contains(char::is_whitespace) && parts(text).any(|part| !part.contains('@'))
}

impl Place {
    fn within(self, name: &str) -> Self {
        match self {
            Self::Beside => Self::Beside,
            _ if has_word(name, &BESIDE) => Self::Beside,
            Self::Recipients => Self::Recipients,
            _ if is_recipient(name) => Self::Recipients,
            Self::Top | Self::Content if is_address(name) => self,
            Self::Top if is_content(name) => Self::Content,
            Self::Content => Self::Content,
            Self::Top | Self::Elsewhere => Self::Elsewhere,
        }
    }

    /// Whether an `email` here is that of a recipient; in a `user` it is not.
    const fn may_name_recipients(self) -> bool {
        matches!(self, Self::Top | Self::Content)
    }
}

fn has_word(name: &str, of: &[&str]) -> bool {
    words(name).iter().any(|word| of.contains(&word.as_str()))
}

fn is_recipient(name: &str) -> bool {
    let fits = |word: &String| RECIPIENTS.contains(&word.as_str()) || ADDRESSES.contains(&word.as_str());
    has_word(name, &RECIPIENTS) && words(name).iter().all(fits)
}

fn is_address(name: &str) -> bool {
    has_word(name, &ADDRESSES) && words(name).iter().all(|word| ADDRESSES.contains(&word.as_str()))
}

/// Whether the value stands for recipients that only the service knows, as `list_id` does.
fn stands_for_recipients(name: &str, value: &Value) -> bool {
    let is_id = words(name).last().is_some_and(|word| word == "id" || word == "ids");
    let names_some = if is_id {
        has_word(name, &SOURCES)
    } else {
        has_word(name, &["reply"]) && has_word(name, &["all", "in", "message"])
    };
    names_some
        && match value {
            Value::Null | Value::Bool(false) => false,
            Value::String(text) => !text.trim().is_empty(),
            Value::Array(items) => !items.is_empty(),
            _ => true,
        }
}

fn is_content(name: &str) -> bool {
    words(name).last().is_some_and(|word| CONTENT.contains(&word.as_str()))
}

fn is_sender(name: &str) -> bool {
    let words = words(name);
    [words.first(), words.last()].into_iter().flatten().any(|word| SENDERS.contains(&word.as_str()))
}

/// Addresses and phone numbers in the arguments, without duplicates; those of senders and in content are left out.
pub fn recipients(arguments: &Map<String, Value>) -> Vec<String> {
    let mut found = Vec::new();
    reached("", &Value::Object(arguments.clone()), &mut found);
    let more = found.len().saturating_sub(MOST_RECIPIENTS);
    found.truncate(MOST_RECIPIENTS);
    if more > 0 {
        found.push(format!("and {more} more"));
    }
    found
}

/// `name`: the argument or member that holds the value.
fn reached(name: &str, value: &Value, found: &mut Vec<String>) {
    let mut add = |recipient: &str| {
        if !found.iter().any(|known| known == recipient) {
            found.push(recipient.to_owned());
        }
    };
    let named = || words(name).iter().any(|word| NUMBERS.contains(&word.as_str()));
    let is_number = |text: &str| {
        let digits = text.chars().filter(char::is_ascii_digit).count();
        let written = text.chars().all(|letter| letter.is_ascii_digit() || "+-() .".contains(letter));
        written && digits >= FEWEST_DIGITS && (text.starts_with('+') || named())
    };
    match value {
        Value::String(text) if !is_content(name) => {
            for part in text.split([',', ';', '\n']).map(str::trim) {
                if is_number(part) {
                    add(part);
                    continue;
                }
                let apart = |letter: char| letter.is_whitespace() || "<>()[]\"'".contains(letter);
                part.split(apart).filter(|word| word.contains('@')).for_each(&mut add);
            }
        }
        Value::Number(number) if is_number(&number.to_string()) => add(&number.to_string()),
        Value::Array(items) => items.iter().for_each(|item| reached(name, item, found)),
        Value::Object(members) => {
            for (name, member) in members.iter().filter(|(name, _)| !is_sender(name)) {
                reached(name, member, found);
            }
        }
        _ => {}
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum ApprovalVerdict {
    Waits,
    /// Proceed, with exactly the approved arguments.
    GoesOn,
    Refused(String),
}

/// `hash`: of the arguments about to be sent.
pub fn approval_verdict(approval: &Approval, hash: &str, now: Timestamp) -> ApprovalVerdict {
    match approval.status_at(now) {
        ApprovalStatus::Pending => ApprovalVerdict::Waits,
        ApprovalStatus::Approved if approval.arguments_hash != hash => {
            ApprovalVerdict::Refused("The content has changed since it was approved, so it was not sent.".to_owned())
        }
        ApprovalStatus::Approved => ApprovalVerdict::GoesOn,
        ApprovalStatus::Refused => {
            let reason = approval.decision_reason.as_deref().unwrap_or("no reason was given");
            ApprovalVerdict::Refused(format!("It was refused: {reason}"))
        }
        ApprovalStatus::Expired => ApprovalVerdict::Refused(format!(
            "It was not approved before {}, so it was not done.",
            approval.valid_until
        )),
        ApprovalStatus::Cancelled => ApprovalVerdict::Refused("The run was cancelled.".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::models::ApprovalEffect;

    /// Tools without a declared effect always need approval.
    #[test]
    fn a_rule_holds_the_tools_of_its_effect_and_those_that_declare_none() {
        let rule = |effect| [ApprovalRule { effect, outside: Vec::new() }];
        let asks = |of, effect| asking_rule(&rule(of), effect, &Map::new()).is_some();
        for name in ApprovalEffect::NAMES {
            let of = ApprovalEffect::named(name).unwrap();
            assert!(asks(of, ToolEffect::Undeclared), "{name}");
            assert!(!asks(of, ToolEffect::None), "{name}");
            for effect in ToolEffect::OF_ACTING {
                assert_eq!(asks(of, effect), name == "any" || name == effect.as_str(), "{name}: {effect}");
            }
        }
    }

    #[test]
    fn the_recipients_of_an_action_are_named() {
        let arguments = json!({
            "to": "Ana <ana@acme.example>, bob@other.example", "cc": ["ana@acme.example"], "from": "us@acme.example",
            "body": "Write to eve@other.example", "message": {"phone": "0151 234567", "text": "+15005550006"},
            "numbers": ["+1 500 555 0006"], "amount": 12_345_678, "number": 15_005_550_007_u64,
        });
        let mut found = recipients(arguments.as_object().unwrap());
        found.sort_unstable();
        let expected = ["+1 500 555 0006", "0151 234567", "15005550007", "ana@acme.example", "bob@other.example"];
        assert_eq!(found, expected);
        let many: Vec<String> = (0..102).map(|number| format!("a{number}@acme.example")).collect();
        assert_eq!(recipients(json!({"to": many}).as_object().unwrap()).last().unwrap(), "and 2 more");
    }

    #[test]
    fn an_email_to_outside_is_one_with_any_address_of_another_domain() {
        let rules = [ApprovalRule { effect: ApprovalEffect::Email, outside: vec!["acme.example".into()] }];
        let asks = |arguments: Value| asking_rule(&rules, ToolEffect::Email, arguments.as_object().unwrap()).is_some();
        assert!(!asks(json!({"to": "ana@acme.example", "body": "Write to bob@other.example"})));
        assert!(!asks(json!({"to": ["Ana <ana@ACME.example>", "bo@acme.example."]})));
        assert!(asks(json!({"to": "ana@acme.example, bob@other.example"})));
        assert!(asks(json!({"to": "ana@acme.example", "cc": ["bob@sub.acme.example"]})));
        assert!(asks(json!({"to": "ana@acme.example", "options": {"reply_to": "x@evil.example"}})));
        assert!(asks(json!({"to": "ana@acme.example@evil.example"})));
        for sender in ["from", "fromEmail", "sender", "sender_email"] {
            assert!(asks(json!({sender: "us@acme.example", "contact": "C17"})), "{sender} is no recipient");
            assert!(!asks(json!({sender: "us@mailer.example", "to": "ana@acme.example"})), "{sender} is no recipient");
        }
        assert!(asks(json!({"from": "us@acme.example", "reply_to": "x@evil.example"})));
        assert!(asks(json!({"channel": "C1"})), "nobody knows to whom it goes");
        assert!(!asks(json!({"to": "ana@acme.example", "cc": ["bo@acme.example"], "reply_to": "us@acme.example"})));
        assert!(!asks(json!({"personalizations": [{"to": [{"email": "ana@acme.example"}]}], "templateId": 7})));
        let content = json!([{"type": "text/plain", "value": "Write to bob@other.example"}]);
        assert!(!asks(json!({"recipient_emails": ["ana@acme.example"], "content": content})));
        assert!(!asks(json!({"message": {"toRecipients": [{"emailAddress": {"address": "ana@acme.example"}}]}})));
        assert!(asking_rule(&rules, ToolEffect::Sms, &Map::new()).is_none());
        let any = [ApprovalRule { effect: ApprovalEffect::Any, outside: Vec::new() }];
        assert!(asking_rule(&any, ToolEffect::Sms, &Map::new()).is_some());
    }

    /// An address of the organization's own in another argument says nothing about the recipients.
    #[test]
    fn an_email_is_inside_only_if_its_recipients_are() {
        let rules = [ApprovalRule { effect: ApprovalEffect::Email, outside: vec!["acme.example".into()] }];
        let asks = |arguments: &Value| asking_rule(&rules, ToolEffect::Email, arguments.as_object().unwrap()).is_some();
        for arguments in [
            json!({"ticket_id": 1, "body": "x", "cc_emails": ["a@acme.example"]}),
            json!({"contact": "C17", "reply_to": "us@acme.example"}),
            json!({"contact": "C17", "replyTo": {"email": "us@acme.example"}}),
            json!({"contact": "C17", "bccRecipients": ["us@acme.example"]}),
            json!({"contact": "C17", "user": {"email": "us@acme.example"}}),
            json!({"contact": "C17", "assigned_to": "us@acme.example"}),
            json!({"list_id": 7, "reply_to": "us@acme.example"}),
            json!({"list_id": 7, "to": "us@acme.example"}),
            json!({"inReplyToMessageId": "18c2f0a1", "replyAll": true, "cc": "us@acme.example"}),
            json!({"inReplyToMessageId": "18c2f0a1", "to": ["us@acme.example"]}),
            json!({"messageId": "AAMk=", "recipients": ["us@acme.example"], "comment": "x"}),
            json!({"message": {"to": [{"email": "x@evil.example"}]}, "mailbox": "a@acme.example"}),
            json!({"message": {"toRecipients": [{"emailAddress": {"address": "x@evil.example"}}]}, "user_id": "a@acme.example"}),
            json!({"message": {"watchers": ["x@evil.example"]}, "to": "a@acme.example"}),
            json!({"message": {"watchers": "x@evil.example, <y@evil.example>; "}, "to": "a@acme.example"}),
            json!({"message": {"watchers": "Eve <x@evil.example>, Bob"}, "to": "a@acme.example"}),
        ] {
            assert!(asks(&arguments), "{arguments}");
        }
        assert!(!asks(&json!({"to": "a@acme.example", "message": {"note": "Write to x@evil.example"}})));
        assert!(!asks(&json!({"to": "a@acme.example", "inReplyToMessageId": "", "replyAll": false, "list_ids": []})));
    }
}
