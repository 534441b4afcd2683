//! Tool configurations, as a user would send them.

use serde_json::{Value, json};

use super::Tenant;
use crate::phone;

/// An SMS to the caller; the model writes the text.
pub fn ai_sms() -> Value {
    json!({
        "type": "sms",
        "label": "Send confirmation",
        "description": "Sends the caller a text message that confirms the appointment.",
        "from": {"type": "called_number"},
        "text": {"mode": "ai", "prompt": "The message to send"},
        "recipients": {"mode": "array_extendable", "fixedValues": ["{{caller_phone_number}}"], "aiExtension": {"enabled": false}},
    })
}

/// Like [`ai_sms`], from a chosen number to a fixed one: it needs no phone call.
pub fn sms_without_call(tenant: &Tenant) -> Value {
    let mut tool = ai_sms();
    tool["from"] = json!({"type": "specific_number", "phone_number_id": tenant.phone_number_id});
    tool["recipients"]["fixedValues"] = json!([phone(1)]);
    tool
}

/// An SMS of fixed text that is sent only on call start.
pub fn preemptive_sms() -> Value {
    let mut tool = ai_sms();
    tool["text"] = json!({"mode": "fixed", "value": "Welcome"});
    tool["attach_to_agent"] = json!(false);
    tool["execute_on_call_start"] = json!(true);
    tool
}

/// A request to `url` without model parameters.
pub fn api_request(method: &str, url: &str) -> Value {
    json!({"type": "api_request", "label": "Look up customer", "method": method, "url": url})
}

/// A Slack message; the model writes the text.
pub fn slack_action(tenant: &Tenant) -> Value {
    json!({
        "type": "pipedream_action",
        "label": "Tell the team",
        "pipedreamMetadata": {"app": "slack", "appName": "Slack", "accountId": tenant.slack_account, "actionKey": "slack-send-message"},
        "preloadedParams": {"mrkdwn": true},
        "params": {"conversation": {"mode": "fixed", "value": "C123"}, "text": {"mode": "ai", "prompt": "What to tell"}},
    })
}
