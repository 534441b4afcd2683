//! Nobody answers a transfer, and the caller is back with the agent, which knows why.

use reqwest::Method;
use serde_json::{Value, json};

use super::{
    incoming::{context, tell},
    user::{User, must},
};
use crate::{
    Error, Result,
    progress::Progress,
    standins::{
        twilio::{Heard, IncomingCall, Rings, SignedForm},
        vapi::Event,
    },
};

const DESK: &str = "+14155550177";

pub(super) async fn play(user: &User<'_>, progress: &Progress) -> Result<()> {
    let step = progress.step("demo: nobody answers a transfer, and the caller returns to the agent");
    let (stack, about) = (user.stack, &user.stack.description);
    let tool = user
        .attached(&json!({
            "type": "transfer_call", "label": "Connect with the desk", "target": {"type": "number", "number": DESK},
            "messageStrategy": "summary",
            "if_unanswered": {"after_seconds": 15, "say": "Nobody is at the desk just now."},
        }))
        .await?;
    let call = IncomingCall::new(&about.twilio_account_sid, &stack.data.demo.caller, &about.phone_number);
    stack.twilio.begin_line(&call);
    let url = format!("{}/api/phone-number/{}/incoming", about.api_url, about.phone_number_id);
    let answered = call.signed(&url, &about.twilio_auth_token).post().await.map_err(Error::Demo)?;
    let first = call_of(&answered.body);
    user.call(&tool, &json!({"summary": "Ana asks about invoice 42."}), first).await?;
    stack.vapi.end_call(first);
    let line = stack.twilio.line(&call.call_sid).ok_or_else(|| Error::Demo("the call has no line".to_owned()))?;
    let [moved] = line.moved_to.as_slice() else {
        return Err(Error::Demo(format!("the line was moved to {:?}, not once", line.moved_to)));
    };
    let post = async |form: SignedForm| {
        let answered = form.post().await?;
        answered.twiml().map(str::to_owned).ok_or_else(|| format!("Twilio was answered {answered:?}"))
    };
    let heard = line.follow(moved, &[Rings::NoAnswer], post).await.map_err(Error::Demo)?;
    let [Heard::Rang { to, seconds }, Heard::Said(said), Heard::Streamed(stream)] = heard.as_slice() else {
        return Err(Error::Demo(format!("the caller heard {heard:?}")));
    };
    must(to == DESK && *seconds == 15, &format!("{to} rang for {seconds} s"))?;
    let again = call_of(stream);
    let told = context(user, again).await?;
    must(again != first && told.contains("nobody answered") && told.contains("invoice 42"), &format!("told {told:?}"))?;
    stack.vapi.end_call(again);
    for call in [first, again] {
        tell(user, call, Event::report("customer-ended-call", 0.05)).await?;
    }
    step.done("the caller is back, and the agent knows why");
    let before = user.ask(Method::GET, &format!("/calls/{first}"), None).await?;
    must(before.get("returned_as") == Some(&Value::from(again)), &format!("the first call is {before}"))?;
    progress.line(&format!("\nThe desk rang for 15 s, and the caller heard:\n  {said}\nThe agent was told:\n  {told}"));
    Ok(())
}

/// VAPI's id of the call behind TwiML or its stream.
fn call_of(twiml: &str) -> &str {
    twiml.split("/transport").next().and_then(|start| start.rsplit('/').next()).unwrap_or_default()
}
