//! What a call of a tool does to people, as far as its name and its action say; and whether somebody is to be asked first.
//!
//! What nobody can tell apart is asked about: an e-mail whose recipients are not found counts as one to outside.

use serde_json::{Map, Value};

use crate::{
    models::{Approval, ApprovalEffect, ApprovalRule, ApprovalStatus, Timestamp},
    redaction::words,
};

/// Words of names by which tools are known, and the verbs that make an effect of them.
const EMAIL: [&str; 12] = [
    "email",
    "emails",
    "mail",
    "gmail",
    "outlook",
    "sendgrid",
    "mailgun",
    "mailchimp",
    "mailjet",
    "postmark",
    "resend",
    "smtp",
];
const SMS: [&str; 3] = ["sms", "twilio", "mms"];
const MESSAGE: [&str; 16] = [
    "message",
    "messages",
    "slack",
    "telegram",
    "discord",
    "teams",
    "whatsapp",
    "chat",
    "notification",
    "notifications",
    "push",
    "messenger",
    "signal",
    "mattermost",
    "dm",
    "intercom",
];
const PAYMENT: [&str; 14] = [
    "payment",
    "payments",
    "pay",
    "charge",
    "charges",
    "refund",
    "refunds",
    "payout",
    "payouts",
    "invoice",
    "transfer",
    "checkout",
    "subscription",
    "purchase",
];
const SENDING: [&str; 10] =
    ["send", "sends", "reply", "forward", "post", "publish", "upload", "notify", "create", "schedule"];
/// What prepares something that is not sent yet.
const PREPARING: [&str; 4] = ["draft", "event", "label", "labels"];

/// Names of arguments that hold what is written, not to whom.
const CONTENT: [&str; 8] = ["body", "text", "html", "subject", "content", "message", "signature", "attachments"];

/// What a tool does that changes something: by the words of its name and of the action behind it.
pub fn effect_of(names: &[&str]) -> ApprovalEffect {
    let words: Vec<String> = names.iter().flat_map(|name| words(name)).collect();
    let has = |known: &[&str]| words.iter().any(|word| known.contains(&word.as_str()));
    let sends = has(&SENDING) && !has(&PREPARING);
    if has(&PAYMENT) {
        ApprovalEffect::Payment
    } else if has(&SMS) {
        ApprovalEffect::Sms
    } else if sends && has(&EMAIL) {
        ApprovalEffect::Email
    } else if sends && has(&MESSAGE) {
        ApprovalEffect::Message
    } else {
        ApprovalEffect::Any
    }
}

/// Whether it writes to people.
pub const fn is_message(effect: ApprovalEffect) -> bool {
    matches!(effect, ApprovalEffect::Email | ApprovalEffect::Sms | ApprovalEffect::Message)
}

/// The rule, if there is one, by which a call with this effect and these arguments asks first.
pub fn asking_rule<'r>(
    rules: &'r [ApprovalRule],
    effect: ApprovalEffect,
    arguments: &Map<String, Value>,
) -> Option<&'r ApprovalRule> {
    rules.iter().find(|rule| match rule.effect {
        ApprovalEffect::Any => true,
        of if of != effect => false,
        _ => rule.outside.is_empty() || goes_outside(arguments, &rule.outside),
    })
}

/// Whether an address in the arguments is of none of these domains, or there is none at all.
fn goes_outside(arguments: &Map<String, Value>, domains: &[String]) -> bool {
    let mut found = Vec::new();
    for (name, value) in arguments {
        let is_content = words(name).last().is_some_and(|word| CONTENT.contains(&word.as_str()));
        if !is_content {
            addresses(value, &mut found);
        }
    }
    found.is_empty() || found.iter().any(|domain| !domains.contains(domain))
}

/// The domains of the addresses in a value.
fn addresses(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            let apart = |letter: char| letter.is_whitespace() || ",;<>()[]\"'".contains(letter);
            let domains = text.split(apart).filter_map(|word| Some(word.rsplit_once('@')?.1.trim_end_matches('.')));
            found.extend(domains.map(str::to_lowercase));
        }
        Value::Array(items) => items.iter().for_each(|item| addresses(item, found)),
        Value::Object(members) => members.values().for_each(|member| addresses(member, found)),
        _ => {}
    }
}

/// What an action does about its approval.
#[derive(Debug, Clone, PartialEq)]
pub enum Standing {
    /// Nobody has decided.
    Waits,
    /// It goes on, with exactly what was approved.
    GoesOn,
    /// It is not done; the sentence says why.
    Refused(String),
}

/// Where an action stands whose arguments have this hash.
pub fn standing(approval: &Approval, hash: &str, now: Timestamp) -> Standing {
    match approval.status_at(now) {
        ApprovalStatus::Pending => Standing::Waits,
        ApprovalStatus::Approved if approval.arguments_hash != hash => {
            Standing::Refused("What was approved is not what would be sent now, so it was not sent.".to_owned())
        }
        ApprovalStatus::Approved => Standing::GoesOn,
        ApprovalStatus::Refused => {
            let reason = approval.decision_reason.as_deref().unwrap_or("no reason was given");
            Standing::Refused(format!("It was refused: {reason}"))
        }
        ApprovalStatus::Expired => {
            Standing::Refused(format!("Nobody approved it until {}, so it was not done.", approval.valid_until))
        }
        ApprovalStatus::Cancelled => Standing::Refused("The run was cancelled.".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tools_are_known_by_their_names() {
        for (names, effect) in [
            (&["gmail_send_email"][..], ApprovalEffect::Email),
            (&["outlook_reply_to_email"], ApprovalEffect::Email),
            (&["tell_customers", "gmail-send-email"], ApprovalEffect::Email),
            (&["gmail_create_draft"], ApprovalEffect::Any),
            (&["outlook_create_event"], ApprovalEffect::Any),
            (&["gmail_modify_labels"], ApprovalEffect::Any),
            (&["twilio_send_sms"], ApprovalEffect::Sms),
            (&["remind", "sms"], ApprovalEffect::Sms),
            (&["slack_post_message"], ApprovalEffect::Message),
            (&["telegram_send_photo"], ApprovalEffect::Message),
            (&["push_notifications_send"], ApprovalEffect::Message),
            (&["stripe_create_payment_intent"], ApprovalEffect::Payment),
            (&["stripe_create_refund"], ApprovalEffect::Payment),
            (&["stripe_create_customer"], ApprovalEffect::Any),
            (&["github_create_issue"], ApprovalEffect::Any),
            (&["notion_create_page"], ApprovalEffect::Any),
        ] {
            assert_eq!(effect_of(names), effect, "{names:?}");
        }
    }

    #[test]
    fn an_email_to_outside_is_one_with_any_address_of_another_domain() {
        let rules = [ApprovalRule { effect: ApprovalEffect::Email, outside: vec!["acme.example".into()] }];
        let asks =
            |arguments: Value| asking_rule(&rules, ApprovalEffect::Email, arguments.as_object().unwrap()).is_some();
        assert!(!asks(json!({"to": "ana@acme.example", "body": "Write to bob@other.example"})));
        assert!(!asks(json!({"to": ["Ana <ana@ACME.example>", "bo@acme.example."]})));
        assert!(asks(json!({"to": "ana@acme.example, bob@other.example"})));
        assert!(asks(json!({"to": "ana@acme.example", "cc": ["bob@sub.acme.example"]})));
        assert!(asks(json!({"to": "ana@acme.example", "options": {"reply_to": "x@evil.example"}})));
        assert!(asks(json!({"to": "ana@acme.example@evil.example"})));
        assert!(asks(json!({"channel": "C1"})), "nobody knows to whom it goes");
        assert!(asking_rule(&rules, ApprovalEffect::Sms, &Map::new()).is_none());
        let any = [ApprovalRule { effect: ApprovalEffect::Any, outside: Vec::new() }];
        assert!(asking_rule(&any, ApprovalEffect::Sms, &Map::new()).is_some());
    }
}
