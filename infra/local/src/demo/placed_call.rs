//! An event makes the agent call a customer.
//!
//! A signed Slack message starts an automation that places the call. The customer answers, which starts another automation,
//! and gets an SMS from a tool of the call.

use reqwest::Method;
use serde_json::{Value, json};

use super::{
    events::{ALERTS, SIGNING_SECRET, Slack, active, fingerprints, first_run},
    incoming::{show_receipt, show_timeline, tell},
    user::{User, must, text},
};
use crate::{
    Error, Result,
    progress::Progress,
    standins::vapi::{Event, Status},
};

pub(super) async fn play(user: &User<'_>, sms: &Value, progress: &Progress) -> Result<()> {
    let step = progress.step("demo: an event makes the agent call a customer");
    let (about, vapi) = (&user.stack.description, &user.stack.vapi);
    let customer = &user.stack.data.demo.caller;
    let number = format!("/phone-numbers/{}", about.phone_number_id);
    let at_vapi = vapi.set_number(&about.phone_number, &about.assistant_id);
    let at_vapi = at_vapi.map_err(|error| Error::Demo(error.to_string()))?;
    user.ask(Method::PATCH, &number, Some(&json!({"vapi_phone_number_id": at_vapi}))).await?;
    let tool = json!({
        "type": "place_call", "label": "Call back", "phone_number_id": about.phone_number_id, "agent_id": about.agent_id,
        "to": {"mode": "ai", "prompt": "The number"}, "reason": {"mode": "ai", "prompt": "Why"},
        "hours": {"from": "00:00", "until": "24:00"},
    });
    user.ask(Method::POST, "/tools", Some(&tool)).await?;

    let hook = user.ask(Method::POST, "/hooks", Some(&json!({"service": "Slack", "secret": SIGNING_SECRET}))).await?;
    let slack = Slack { user, address: text(&hook, "url")? };
    let calling = active(user, &on_request(&fingerprints(user, &["call_back"]).await?, customer)).await?;
    let telling = active(user, &on_answer(&fingerprints(user, &["slack_post_message"]).await?)).await?;
    slack.says("please call Ana back: her crown is here").await?;
    first_run(user, &calling, "completed").await?;
    let placed = user.ask(Method::GET, "/calls?status=queued", None).await?;
    let call = placed.pointer("/items/0").cloned().unwrap_or_default();
    let id = text(&call, "id")?;
    let rings = vapi.call(&id).unwrap_or_default();
    must(
        rings.pointer("/customer/number").is_some_and(|number| number == customer),
        &format!("VAPI was to call {customer}: {rings}"),
    )?;

    must(vapi.connect_media(&id), "the call is not there")?;
    tell(user, &id, Event::status(Status::InProgress)).await?;
    let told = first_run(user, &telling, "completed").await?;
    user.call(sms, &Value::Object(user.stack.data.demo.arguments.clone()), &id).await?;
    vapi.end_call(&id);
    tell(user, &id, Event::report("customer-ended-call", 0.05)).await?;
    // From now on VAPI's own assistant answers the number again.
    user.ask(Method::PATCH, &number, Some(&json!({"vapi_phone_number_id": null}))).await?;
    step.done("she was called once");

    let reason = rings.pointer("/assistantOverrides/variableValues/call_reason").unwrap_or(&Value::Null);
    progress.line(&format!("\nA Slack message made the agent call {customer}; the agent knows why:\n  {reason}"));
    let did = told.get("status").unwrap_or(&Value::Null);
    progress.line(&format!("\nThe customer answered, and the run of the automation for answered calls is {did}."));
    show_timeline(user, &id, progress).await?;
    show_receipt(user, &id, progress).await
}

fn on_request(fingerprints: &Value, customer: &str) -> Value {
    json!({
        "name": "Call back", "trigger_type": "webhook",
        "trigger_config": {
            "service": "Slack", "event_type": "message",
            "filters": {"path": "event.text", "op": "contains", "value": "please call"},
        },
        "fingerprints": fingerprints,
        "actions": [{"id": "call", "tool": "call_back", "parameters": {"to": customer, "reason": "{{event.text}}"}}],
    })
}

fn on_answer(fingerprints: &Value) -> Value {
    json!({
        "name": "Answered", "trigger_type": "webhook",
        "trigger_config": {"service": "Calls", "event_type": "call.answered"},
        "fingerprints": fingerprints,
        "actions": [{
            "id": "tell", "tool": "slack_post_message",
            "parameters": {"channel": ALERTS, "text": "{{call.called_phone_number}} answered."},
        }],
    })
}
