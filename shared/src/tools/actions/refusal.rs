//! Refusals in the answers of services.

use serde_json::Value;

use crate::cut::cut;

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
}
