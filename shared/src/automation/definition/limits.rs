//! Limits on runs in a definition: `quotas`, `approvals`, and `approval` of an action.

use serde_json::Value;

use super::{
    diagnostics::{Code, Diagnostic, child},
    fields::{Members, wrong_type},
};
use crate::models::{ApprovalEffect, ApprovalRequest, ApprovalRule, AutomationQuotas};

const MOST_RULES: usize = 20;
const MOST_DOMAINS: usize = 50;
const LONGEST_DOMAIN: usize = 253;
const LONGEST_REASON: usize = 500;

/// `quotas: {"runs_per_hour"?, "effects_per_run"?, "messages_per_day"?}`
pub(super) fn quotas(members: &mut Members<'_, '_>) -> AutomationQuotas {
    let usual = AutomationQuotas::default();
    let Some(value) = members.get("quotas") else { return usual };
    let Some(mut members) = Members::of(value, &members.path("quotas"), members.report) else { return usual };
    let highest = AutomationQuotas::HIGHEST;
    let mut number = |name, most: u32, usual: u32| {
        let given = members.whole(name, &(1..=u64::from(most)), &usual.to_string());
        given.and_then(|given| u32::try_from(given).ok()).unwrap_or(usual)
    };
    let quotas = AutomationQuotas {
        runs_per_hour: number("runs_per_hour", highest.runs_per_hour, usual.runs_per_hour),
        effects_per_run: number("effects_per_run", highest.effects_per_run, usual.effects_per_run),
        messages_per_day: number("messages_per_day", highest.messages_per_day, usual.messages_per_day),
    };
    members.finish();
    quotas
}

/// `approvals: [{"effect", "outside"?}]`. Rejected with `has_prompt`: prompt runs cannot wait for approval.
pub(super) fn approvals(members: &mut Members<'_, '_>, has_prompt: bool) -> Vec<ApprovalRule> {
    const EXAMPLE: &str = "[{\"effect\": \"email\", \"outside\": [\"acme.example\"]}]";
    let Some(value) = members.get("approvals") else { return Vec::new() };
    let place = members.path("approvals");
    let Some(rules) = value.as_array() else {
        members.report.push(wrong_type(&place, value, "a list of rules", EXAMPLE));
        return Vec::new();
    };
    if has_prompt && !rules.is_empty() {
        let message = "A prompt cannot wait for an approval, so this would have no effect.";
        let hint = "Write the automation as actions, or leave approvals out.";
        members.error(Code::InvalidValue, "approvals", message, hint);
    }
    if rules.len() > MOST_RULES {
        let message = format!("The definition has {} rules; the limit is {MOST_RULES}.", rules.len());
        members.error(
            Code::TooLarge,
            "approvals",
            message,
            "Keep only the necessary ones; {\"effect\": \"any\"} is all.",
        );
        return Vec::new();
    }
    let mut read = Vec::new();
    for (index, rule) in rules.iter().enumerate() {
        let pointer = child(&place, index.to_string());
        let Some(mut members) = Members::of(rule, &pointer, members.report) else { continue };
        members.required("effect", "\"email\"");
        let effect = members.one_of("effect", &ApprovalEffect::NAMES).and_then(ApprovalEffect::named);
        let outside = outside(&mut members, effect);
        members.finish();
        read.extend(effect.map(|effect| ApprovalRule { effect, outside }));
    }
    read
}

/// Domains in lower case.
fn outside(members: &mut Members<'_, '_>, effect: Option<ApprovalEffect>) -> Vec<String> {
    const EXAMPLE: &str = "[\"acme.example\"]";
    let Some(value) = members.get("outside") else { return Vec::new() };
    if effect.is_some_and(|effect| effect != ApprovalEffect::Email) {
        let message = "outside has no meaning here: only e-mail addresses have domains.";
        members.error(Code::UnknownField, "outside", message, "Leave it out, or write \"effect\": \"email\".");
        return Vec::new();
    }
    let place = members.path("outside");
    let domains = match value.as_array() {
        Some(domains) if !domains.is_empty() && domains.len() <= MOST_DOMAINS => domains,
        _ => {
            let expected = format!("a list of 1 to {MOST_DOMAINS} domains");
            members.report.push(wrong_type(&place, value, &expected, EXAMPLE));
            return Vec::new();
        }
    };
    let mut read = Vec::new();
    for (index, domain) in domains.iter().enumerate() {
        let written = domain.as_str().map(|domain| domain.trim().to_lowercase());
        if let Some(domain) = written.filter(|domain| is_domain(domain)) {
            read.push(domain);
        } else {
            let place = child(&place, index.to_string());
            let message = "This is not a domain.";
            let hint = "Write the part of an address after the @, for example \"acme.example\".";
            let error = Diagnostic::error(Code::InvalidValue, place, message, hint);
            members.report.push(error.found(domain));
        }
    }
    read
}

fn is_domain(text: &str) -> bool {
    let plain = |letter: char| letter.is_alphanumeric() || letter == '-';
    text.len() <= LONGEST_DOMAIN
        && text.contains('.')
        && text.split('.').all(|label| !label.is_empty() && label.chars().all(plain))
}

/// `approval`: `true`, or `{"expires_in_minutes"?, "reason"?}`; `false` means absent.
pub(super) fn approval(members: &mut Members<'_, '_>) -> Option<ApprovalRequest> {
    const EXAMPLE: &str = "true";
    match members.get("approval")? {
        Value::Bool(asked) => asked.then(ApprovalRequest::default),
        value @ Value::Object(_) => {
            let mut members = Members::of(value, &members.path("approval"), members.report)?;
            let bounds = 1..=u64::from(ApprovalRequest::MOST_MINUTES);
            let minutes = members.whole("expires_in_minutes", &bounds, "60").and_then(|it| u32::try_from(it).ok());
            let reason = members.text("reason", LONGEST_REASON, "\"It goes to a customer.\"");
            members.finish();
            Some(ApprovalRequest { expires_in_minutes: minutes.unwrap_or(ApprovalRequest::USUAL_MINUTES), reason })
        }
        value => {
            let expected = "true, or an object with expires_in_minutes and reason";
            members.report.push(wrong_type(&members.path("approval"), value, expected, EXAMPLE));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::automation::{Definition, Diagnostics};

    fn read(more: &Value) -> (Option<Definition>, Vec<String>) {
        let mut definition = json!({
            "name": "Bills", "trigger_type": "manual",
            "actions": [{"id": "a", "tool": "gmail_send_email", "parameters": {}}],
        });
        definition.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let mut diagnostics = Diagnostics::default();
        let read = Definition::read(&definition, &mut diagnostics);
        (read, diagnostics.iter().map(|one| format!("{} {}", one.code.as_str(), one.pointer)).collect())
    }

    #[test]
    fn quotas_have_usual_and_highest_values() {
        assert_eq!(read(&json!({})).0.unwrap().quotas, AutomationQuotas::default());
        let (definition, problems) = read(&json!({"quotas": {"runs_per_hour": 7, "messages_per_day": 10_000}}));
        let expected = AutomationQuotas { runs_per_hour: 7, messages_per_day: 10_000, ..AutomationQuotas::default() };
        assert_eq!((definition.unwrap().quotas, problems.len()), (expected, 0));
        let (_, problems) = read(
            &json!({"quotas": {"runs_per_hour": 0, "effects_per_run": 1_001, "messages_per_day": "9", "days": 1}}),
        );
        assert_eq!(
            problems,
            [
                "invalid_value /quotas/runs_per_hour",
                "invalid_value /quotas/effects_per_run",
                "wrong_type /quotas/messages_per_day",
                "unknown_field /quotas/days",
            ]
        );
        assert_eq!(read(&json!({"quotas": 7})).1, ["wrong_type /quotas"]);
    }

    #[test]
    fn rules_are_read_strictly() {
        let (definition, problems) =
            read(&json!({"approvals": [{"effect": "email", "outside": ["Acme.example"]}, {"effect": "any"}]}));
        assert_eq!(problems, Vec::<String>::new());
        assert_eq!(
            definition.unwrap().approvals,
            [
                ApprovalRule { effect: ApprovalEffect::Email, outside: vec!["acme.example".into()] },
                ApprovalRule { effect: ApprovalEffect::Any, outside: Vec::new() },
            ]
        );
        for (rule, problem) in [
            (json!("email"), "wrong_type /approvals/0"),
            (json!({}), "missing_field /approvals/0/effect"),
            (json!({"effect": "fax"}), "invalid_value /approvals/0/effect"),
            (json!({"effect": "sms", "outside": ["acme.example"]}), "unknown_field /approvals/0/outside"),
            (json!({"effect": "email", "outside": []}), "wrong_type /approvals/0/outside"),
            (json!({"effect": "email", "outside": ["@acme"]}), "invalid_value /approvals/0/outside/0"),
            (json!({"effect": "email", "inside": true}), "unknown_field /approvals/0/inside"),
        ] {
            assert_eq!(read(&json!({"approvals": [rule]})).1, [problem]);
        }
        let prompt = json!({"actions": null, "prompt": "Hello", "approvals": [{"effect": "any"}]});
        assert_eq!(read(&prompt).1, ["invalid_value /approvals"]);
    }

    #[test]
    fn an_action_asks_for_itself() {
        let action = |approval: Value| {
            let action = json!({"id": "a", "tool": "gmail_send_email", "parameters": {}, "approval": approval});
            let (definition, problems) = read(&json!({"actions": [action]}));
            let body = definition.unwrap().body;
            let crate::automation::AutomationBody::Actions(steps) = body else { panic!("there are actions") };
            (crate::automation::all_actions(&steps).next().unwrap().approval.clone(), problems)
        };
        assert_eq!(action(json!(true)), (Some(ApprovalRequest::default()), Vec::new()));
        assert_eq!(action(json!(false)).0, None);
        let asked = action(json!({"expires_in_minutes": 5, "reason": "A customer reads it."}));
        let expected = ApprovalRequest { expires_in_minutes: 5, reason: Some("A customer reads it.".into()) };
        assert_eq!(asked, (Some(expected), Vec::new()));
        assert_eq!(action(json!("yes")).1, ["wrong_type /actions/0/approval"]);
        assert_eq!(
            action(json!({"expires_in_minutes": 0})).1,
            ["invalid_value /actions/0/approval/expires_in_minutes"]
        );
        assert_eq!(action(json!({"minutes": 5})).1, ["unknown_field /actions/0/approval/minutes"]);
    }
}
