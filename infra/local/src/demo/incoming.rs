//! A signed call comes in, and two tools run before the agent speaks.
//!
//! One looks the caller up in the company's CRM, the other in a knowledge base. Their results appear in the
//! conversation, and the agent uses one of its tools.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::user::{User, must, text};
use crate::{
    Error, Result,
    progress::Progress,
    standins::{
        twilio::IncomingCall,
        vapi::{Event, ServerMessage, Status},
    },
};

/// Warm functions deliver the context within a second; a cold start on a busy machine takes longer.
const CONTEXT_WITHIN: Duration = Duration::from_secs(20);

pub(super) async fn play(user: &User<'_>, sms: &Value, progress: &Progress) -> Result<()> {
    let step = progress.step("demo: a call comes in, and the agent knows who is calling");
    let stack = user.stack;
    let lookup = json!({
        "type": "api_request", "label": "Customer", "method": "GET",
        "url": format!("{}/customers?phone={{{{caller_phone_number}}}}", stack.crm.url),
        "headers": {"x-api-key": {"mode": "fixed", "value": stack.data.crm.api_key}},
        "execute_on_call_start": true, "attach_to_agent": false,
    });
    let lookup = user.attached(&lookup).await?;
    let base = json!({"name": "Notices", "fields": []});
    let base = user.ask(Method::POST, "/knowledge-bases", Some(&base)).await?;
    let id = text(&base, "id")?;
    let notices = json!({"entries": [{"id": "today", "text": "Today the practice closes at four."}]});
    user.ask(Method::POST, &format!("/knowledge-bases/{id}/entries"), Some(&notices)).await?;
    let notices = json!({
        "type": "query", "label": "Notices of today", "knowledge_base_id": id,
        "query": {"mode": "fixed", "value": "today"}, "execute_on_call_start": true, "attach_to_agent": false,
    });
    let notices = user.attached(&notices).await?;

    let about = &stack.description;
    let call = IncomingCall::new(&about.twilio_account_sid, &stack.data.demo.caller, &about.phone_number);
    let url = format!("{}/api/phone-number/{}/incoming", about.api_url, about.phone_number_id);
    let signed = call.signed(&url, &about.twilio_auth_token);
    let answered = signed.post().await.map_err(Error::Demo)?;
    let twiml = answered.twiml().ok_or_else(|| Error::Demo(format!("Twilio was answered {answered:?}")))?;
    let call_id = twiml.split("/transport").next().and_then(|start| start.rsplit('/').next()).unwrap_or_default();
    let context = context(user, call_id).await?;
    for found in ["Ana Ruiz", "closes at four"] {
        must(context.contains(found), &format!("the conversation was told {context:?}, without {found}"))?;
    }
    let again = signed.post().await.map_err(Error::Demo)?;
    must(again.body == answered.body, "the same call again got another TwiML")?;

    user.call(sms, &Value::Object(stack.data.demo.arguments.clone()), call_id).await?;
    for event in [Event::status(Status::InProgress), Event::report("customer-ended-call", 0.07)] {
        tell(user, call_id, event).await?;
    }
    stack.vapi.end_call(call_id);
    for tool in [&lookup, &notices] {
        user.ask(Method::DELETE, &format!("/tools/{}", text(tool, "id")?), None).await?;
    }
    step.done("the agent knew");

    progress.line(&format!("\nWhat Twilio was answered:\n  {twiml}"));
    progress.line("\nWhat the conversation was told before the agent spoke:");
    for line in context.lines() {
        progress.line(&format!("  {line}"));
    }
    show_timeline(user, call_id, progress).await?;
    show_receipt(user, call_id, progress).await
}

/// The messages sent to the call's control URL, once there are any.
pub(super) async fn context(user: &User<'_>, call_id: &str) -> Result<String> {
    let until = Instant::now() + CONTEXT_WITHIN;
    loop {
        let heard = user.stack.vapi.heard(call_id);
        if let Some(content) = heard.iter().find_map(|message| message.pointer("/message/content")?.as_str()) {
            return Ok(content.to_owned());
        }
        if Instant::now() >= until {
            return Err(Error::Demo(format!("the conversation of call {call_id} was told nothing")));
        }
        sleep(Duration::from_millis(50)).await;
    }
}

/// Sends VAPI's event about the call.
pub(super) async fn tell(user: &User<'_>, call_id: &str, event: Event) -> Result<()> {
    let url = format!("{}/api/vapi/events", user.stack.description.api_url);
    let bearer = format!("Bearer {}", user.stack.data.vapi.webhook_bearer);
    let message = ServerMessage::new(event, &url).with_header("authorization", &bearer);
    let told = user.stack.vapi.tell(call_id, &message).await.map_err(|error| Error::Demo(error.to_string()))?;
    let taken = told.response.as_ref().is_some_and(|response| response.status == 200);
    must(taken, &format!("VAPI told how the call goes, and was answered {:?} {:?}", told.response, told.failure))
}

pub(super) async fn show_timeline(user: &User<'_>, call_id: &str, progress: &Progress) -> Result<()> {
    let call = user.ask(Method::GET, &format!("/calls/{call_id}"), None).await?;
    let timeline = call.get("timeline").and_then(Value::as_array).cloned().unwrap_or_default();
    must(!timeline.is_empty(), &format!("the call has no timeline: {call}"))?;
    progress.line("\nThe call's timeline:");
    for entry in &timeline {
        let field = |name: &str| {
            let value = entry.get(name).filter(|value| !value.is_null())?;
            Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned))
        };
        let more: Vec<String> = ["label", "status", "duration_ms", "reason"]
            .iter()
            .filter_map(|name| Some(format!("{name} {}", field(name)?)))
            .collect();
        let (at, event) = (field("at").unwrap_or_default(), field("event").unwrap_or_default());
        progress.line(&format!("  {at}  {event:<18} {}", more.join(", ")));
    }
    Ok(())
}

pub(super) async fn show_receipt(user: &User<'_>, call_id: &str, progress: &Progress) -> Result<()> {
    let receipt = user.ask(Method::GET, &format!("/calls/{call_id}/receipt"), None).await?;
    progress.line("\nThe call's receipt:");
    let mut effects = 0;
    for group in ["done", "unknown", "failed", "not_done"] {
        for line in receipt.get(group).and_then(Value::as_array).into_iter().flatten() {
            effects += 1;
            let field = |name: &str| line.get(name).and_then(Value::as_str).unwrap_or("-");
            progress.line(&format!("  {group:<8}  {:<24} {:<8} {}", field("tool"), field("effect"), field("status")));
        }
    }
    must(effects > 0, &format!("the call has no effect on its receipt: {receipt}"))
}
