//! Refusals in the answers of services: their reason, and those with the status of a success.

use serde_json::Value;

use crate::{
    clients::{Error, Failure, UpstreamService},
    cut::cut,
    models::Fault,
    tool::ToolOutcome,
};

/// Bytes of the service's text passed to the model.
const LONGEST_REASON: usize = 250;
/// Where services write the reason, details before summaries: `/error` may be a code or the status in words.
const PLACES: [&str; 13] = [
    "/message",
    "/error/message",
    "/message/0",
    "/errors/0",
    "/errors/0/message",
    "/errors/0/detail",
    "/errors/0/title",
    "/errorMessages/0",
    "/error_message",
    "/detail",
    "/description",
    "/err",
    "/error",
];

/// The service's reason in the body of a refusal, cut; empty if there is none.
pub(super) fn reason_in(body: &Value) -> String {
    let reason = PLACES.iter().find_map(|place| body.pointer(place).and_then(text));
    let reason = reason.or_else(|| first_text(body.get("errors")?));
    cut(reason.unwrap_or_default().to_owned(), LONGEST_REASON)
}

/// The outcome of an answer with the status of a success by which the service refused, if it did. `refused_by`: JSON pointers of
/// places that hold something only after a refusal. Errors beside data (GraphQL's partial answer) leave open whether a tool
/// acted, and are part of the answer of a tool that only reads.
pub(super) fn refused(body: &Value, refused_by: &[String], acts: bool) -> Option<ToolOutcome> {
    let mut held = refused_by.iter().filter_map(|place| Some((place, body.pointer(place)?)));
    let (place, errors) = held.find(|(_, errors)| is_set(errors))?;
    let data = body.get("data").and_then(Value::as_object);
    let in_part = place == "/errors" && data.is_some_and(|data| data.values().any(|member| !member.is_null()));
    if in_part && !acts {
        return None;
    }
    let codes = errors.as_array().into_iter().flatten().filter_map(|error| error.pointer("/extensions/code"));
    let codes = codes.chain(body.get("error_code")).filter_map(Value::as_str);
    let codes: Vec<String> = codes.map(str::to_ascii_uppercase).collect();
    let failed_inside = codes.iter().any(|code| code.starts_with("INTERNAL") || code.contains("TIMEOUT"));
    let reason = cut(first_text(errors).unwrap_or("no reason given").to_owned(), LONGEST_REASON);
    if acts && (in_part || failed_inside) {
        return Some(ToolOutcome::unknown(format!(
            "It is not known whether it was done; do not try again. The service answered with an error: {reason}"
        )));
    }
    let told = ToolOutcome::failed(format!("The service refused it: {reason}"));
    let limited = codes.iter().any(|code| code == "THROTTLED" || code.starts_with("COMPLEXITY"));
    Some(if limited {
        told.because(Error::new(UpstreamService::Outbound, Failure::RateLimited))
    } else {
        told.at_fault(Fault::Model)
    })
}

fn is_set(value: &Value) -> bool {
    match value {
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
        other => text(other).is_some(),
    }
}

fn text(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.trim().is_empty())
}

/// An error's text: itself, its message, or the first text within it.
fn first_text(error: &Value) -> Option<&str> {
    match error {
        Value::Array(errors) => errors.iter().find_map(first_text),
        Value::Object(members) => {
            members.get("message").and_then(text).or_else(|| members.values().find_map(first_text))
        }
        alone => text(alone),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tool::Effect;

    #[test]
    fn the_reason_is_read_where_each_service_writes_it() {
        for (service, body, reason) in [
            ("Square", json!({"errors": [{"code": "NOT_FOUND", "detail": "No such customer."}]}), "No such customer."),
            ("SendGrid", json!({"errors": [{"message": "Bad from.", "field": "from", "help": null}]}), "Bad from."),
            ("Asana", json!({"errors": [{"message": "Missing input", "help": "x"}]}), "Missing input"),
            (
                "Intercom",
                json!({"type": "error.list", "errors": [{"code": "not_found", "message": "No such contact"}]}),
                "No such contact",
            ),
            (
                "Freshdesk",
                json!({"description": "Validation failed", "errors": [{"field": "email", "message": "No e-mail."}]}),
                "No e-mail.",
            ),
            (
                "ActiveCampaign",
                json!({"errors": [{"title": "E-mail address exists", "detail": "", "code": "duplicate"}]}),
                "E-mail address exists",
            ),
            ("Jira", json!({"errorMessages": ["Issue does not exist"], "errors": {}}), "Issue does not exist"),
            (
                "Jira, of a field",
                json!({"errorMessages": [], "errors": {"project": "project is required"}}),
                "project is required",
            ),
            ("ClickUp", json!({"err": "Team not authorized", "ECODE": "OAUTH_027"}), "Team not authorized"),
            ("Typeform", json!({"code": "FORM_NOT_FOUND", "description": "No such form"}), "No such form"),
            ("Zendesk", json!({"error": "RecordInvalid", "description": "Invalid record"}), "Invalid record"),
            (
                "HighLevel",
                json!({"statusCode": 422, "message": ["email must be an email"], "error": "Unprocessable Entity"}),
                "email must be an email",
            ),
            (
                "Mailchimp",
                json!({"title": "Invalid Resource", "detail": "See errors.", "errors": [{"message": "Blank."}]}),
                "Blank.",
            ),
            ("monday", json!({"error_message": "Rate Limit Exceeded.", "status_code": 429}), "Rate Limit Exceeded."),
            ("Shopify", json!({"errors": "[API] Invalid API key"}), "[API] Invalid API key"),
            ("Stripe", json!({"error": {"type": "card_error", "message": "Declined."}}), "Declined."),
            ("nobody", json!({"message": " ", "error": 5}), ""),
        ] {
            assert_eq!(reason_in(&body), reason, "{service}");
        }
    }
    #[test]
    fn a_refusal_with_the_status_of_a_success_did_nothing_unless_data_or_the_code_say_otherwise() {
        let places = ["/errors", "/data/customerCreate/userErrors", "/error_message"].map(str::to_owned);
        let error = |code: &str| json!([{"message": "No.", "extensions": {"code": code}}]);
        let (refused_it, open) = ("The service refused it: No.", "It is not known whether it was done");
        for (body, acting, reading) in [
            (json!({"errors": error("ACCESS_DENIED"), "data": {"boards": null}}), refused_it, refused_it),
            (json!({"data": {"customerCreate": {"customer": null, "userErrors": error("x")}}}), refused_it, refused_it),
            (json!({"error_message": "No.", "error_code": "UserUnauthorizedException"}), refused_it, refused_it),
            (json!({"errors": error("INTERNAL_SERVER_ERROR"), "data": {"a": null}}), open, refused_it),
            (json!({"errors": error("x"), "data": {"create_item": {"id": "1"}}}), open, ""),
            (json!({"errors": [], "data": {"customerCreate": {"userErrors": []}}, "error_message": ""}), "", ""),
            (json!({"data": {"customerCreate": null}, "errors": null}), "", ""),
        ] {
            for (acts, expected) in [(true, acting), (false, reading)] {
                let outcome = refused(&body, &places, acts);
                let told = outcome.as_ref().map_or("", |outcome| outcome.answer["error"].as_str().unwrap());
                assert!(told.starts_with(expected) && told.is_empty() == expected.is_empty(), "{body} {acts}: {told}");
                let effect = outcome.map_or(Effect::None, |outcome| outcome.effect);
                assert_eq!(effect == Effect::None, expected != open, "{body} {acts}: {effect:?}");
            }
        }
        assert!(refused(&json!({"errors": ["No."]}), &[], true).is_none(), "only where the template says so");
        for (code, transient) in [("THROTTLED", true), ("COMPLEXITY_BUDGET_EXHAUSTED", true), ("OTHER", false)] {
            let outcome = refused(&json!({"errors": error(code)}), &places, true).unwrap();
            assert_eq!(outcome.cause.is_some_and(|cause| cause.transient()), transient, "{code}");
        }
    }
}
