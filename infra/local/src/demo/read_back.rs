//! A request counts once the caller has heard it and spoken.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use super::{
    incoming::{show_receipt, tell},
    user::{User, must},
};
use crate::{
    Error, Result,
    progress::Progress,
    standins::{
        twilio::IncomingCall,
        vapi::{Event, Speaker},
    },
};

/// VAPI's times are milliseconds.
const PAUSE: Duration = Duration::from_millis(5);

pub(super) async fn play(user: &User<'_>, progress: &Progress) -> Result<()> {
    let step = progress.step("demo: a booking is read back, and counts after the caller has spoken");
    let (stack, about) = (user.stack, &user.stack.description);
    let tool = user
        .attached(&json!({
            "type": "sms", "label": "Confirm the booking", "from": {"type": "called_number"},
            "text": {"mode": "ai", "prompt": "The day and the time"}, "recipients": ["{{caller_phone_number}}"],
            "confirm": "read_back",
        }))
        .await?;
    let call = IncomingCall::new(&about.twilio_account_sid, &stack.data.demo.caller, &about.phone_number);
    let url = format!("{}/api/phone-number/{}/incoming", about.api_url, about.phone_number_id);
    let answered = call.signed(&url, &about.twilio_auth_token).post().await.map_err(Error::Demo)?;
    let call_id = answered.body.split("/transport").next().and_then(|start| start.rsplit('/').next());
    let call_id = call_id.unwrap_or_default();
    let before = user.messages().await?.len();
    let sent = async || Ok::<usize, Error>(user.messages().await?.len() - before);
    let booking = json!({"text": "Tuesday at nine"});

    let first = user.call(&tool, &booking, call_id).await?;
    let sentence = first.pointer("/response/body/result").and_then(Value::as_str).unwrap_or_default().to_owned();
    must(sentence.contains("Tuesday at nine") && sent().await? == 0, &format!("nothing was to happen: {first}"))?;
    // The model is hasty: the caller has said nothing.
    user.call(&tool, &booking, call_id).await?;
    must(sent().await? == 0, "an SMS went out before the caller had spoken")?;
    for (speaker, started) in
        [(Speaker::Assistant, true), (Speaker::Assistant, false), (Speaker::User, true), (Speaker::User, false)]
    {
        sleep(PAUSE).await;
        tell(user, call_id, Event::speech(speaker, started)).await?;
    }
    let second = user.call(&tool, &booking, call_id).await?;
    user.call(&tool, &booking, call_id).await?;
    let effects = sent().await?;
    must(effects == 1, &format!("one SMS was to go out, not {effects}"))?;
    tell(user, call_id, Event::report("customer-ended-call", 0.05)).await?;
    stack.vapi.end_call(call_id);
    step.done("one request, one effect");

    progress.line(&format!("\nThe model was told, and nothing had happened:\n  {sentence}"));
    let result = second.pointer("/response/body/result").unwrap_or(&Value::Null);
    progress.line(&format!("\nThe caller said yes, and the second request was answered:\n  {result}"));
    progress.line(&format!("\nSMS sent: {effects}"));
    show_receipt(user, call_id, progress).await
}
