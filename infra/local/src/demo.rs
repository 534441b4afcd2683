//! The product's main jobs, played once over HTTP as users and VAPI would. Each act checks its results.
//!
//! 1. A tool is created, attached to the agent and called during a call; an SMS goes out. A repeat of the same call
//!    sends none.
//! 2. A call comes in; the agent knows the caller before it speaks ([`incoming`]).
//! 3. A tool is edited to run on call start only and back, then deleted while attached ([`lifecycle`]).
//! 4. The agent looks something up ([`lookup`]).
//! 5. The agent transfers the caller ([`transfer`]).
//! 6. Nobody answers another transfer, and the caller returns ([`returning_transfer`]).
//! 7. A request is read back to the caller, and counts once ([`read_back`]).
//! 8. A tool is tested before it is saved ([`tools_test`]).
//! 9. An automation reads a web page and returns its contents as JSON ([`automation`]).
//! 10. An agent builds an automation over the Model Context Protocol; a person activates it ([`agent`]).
//! 11. Events, an approval and a schedule run automations, and an event is replayed ([`events`]).
//! 12. An event makes the agent call a customer; the answered call starts another automation ([`placed_call`]).

mod agent;
mod automation;
mod events;
mod incoming;
mod lifecycle;
mod lookup;
mod placed_call;
mod read_back;
mod returning_transfer;
mod tools_test;
mod transfer;
mod user;

use serde_json::Value;
use uuid::Uuid;

use self::user::{User, text};
use crate::{
    Error, Result,
    progress::Progress,
    report::{rows, table},
    stack::Stack,
};

/// The number of steps that [`play`] prints.
pub const ACTS: usize = 12;

#[derive(Debug, Clone)]
pub struct Played {
    pub tool_id: String,
    pub tool_name: String,
}

/// Plays the acts and prints their results.
///
/// # Errors
/// [`Error::Demo`] with the first step that failed.
pub async fn play(stack: &Stack, progress: &Progress) -> Result<Played> {
    let user = User::of(stack);
    let (played, sms) = send_an_sms(&user, progress).await?;
    incoming::play(&user, &sms, progress).await?;
    lifecycle::play(&user, progress).await?;
    lookup::play(&user, progress).await?;
    transfer::play(&user, progress).await?;
    returning_transfer::play(&user, progress).await?;
    read_back::play(&user, progress).await?;
    tools_test::play(&user, progress).await?;
    automation::play(&user, progress).await?;
    agent::play(&user, progress).await?;
    events::play(&user, progress).await?;
    placed_call::play(&user, &sms, progress).await?;
    Ok(played)
}

async fn send_an_sms(user: &User<'_>, progress: &Progress) -> Result<(Played, Value)> {
    let step = progress.step("demo: a tool is created, attached, called in a call, and an SMS goes out");
    let tool = user.attached(&user.stack.data.demo.tool).await?;
    let played = Played { tool_id: text(&tool, "id")?, tool_name: text(&tool, "name")? };
    let arguments = Value::Object(user.stack.data.demo.arguments.clone());

    let call_id = Uuid::new_v4().to_string();
    let before = user.messages().await?.len();
    let first = user.call(&tool, &arguments, &call_id).await?;
    let sent = user.messages().await?.split_off(before);
    let [sms] = sent.as_slice() else {
        return Err(Error::Demo(format!(
            "the tool was called once and Twilio received {} messages, not 1",
            sent.len()
        )));
    };
    check_sms(user.stack, sms)?;

    let second = user.call(&tool, &arguments, &call_id).await?;
    let again = user.messages().await?.len() - before;
    if again != 1 {
        return Err(Error::Demo(format!("the same call came twice and Twilio received {again} messages, not 1")));
    }
    step.done("it works");
    show(progress, &tool, &first, sms, &second);
    Ok((played, tool))
}

fn check_sms(stack: &Stack, sms: &Value) -> Result<()> {
    let arguments = &stack.data.demo.arguments;
    let said = |value: &Value| arguments.values().any(|argument| argument == value);
    let right = sms.get("to").is_some_and(|to| *to == stack.data.demo.caller)
        && sms.get("from").is_some_and(|from| *from == stack.description.phone_number)
        && sms.get("body").is_some_and(said);
    if right { Ok(()) } else { Err(Error::Demo(format!("Twilio received another SMS than was asked for: {sms}"))) }
}

fn show(progress: &Progress, tool: &Value, first: &Value, sms: &Value, second: &Value) {
    let shown = ["id", "name", "label", "type", "description", "external_tool_id", "organization_id", "created_at"];
    let parameters = tool.pointer("/function_schema/parameters/properties").and_then(Value::as_object);
    let mut of_tool = rows(tool, &shown);
    of_tool.push((
        "the model fills in".to_owned(),
        parameters.map(|all| all.keys().cloned().collect::<Vec<_>>().join(", ")).unwrap_or_default(),
    ));
    let mut request = first.get("request").cloned().unwrap_or(Value::Null);
    mask(&mut request);
    let answered = |call: &Value| call.pointer("/response/body").unwrap_or(&Value::Null).to_string();

    progress.line("\nThe tool, as the API created it:");
    progress.line(&table(&of_tool));
    progress.line("\nWhat VAPI sent when the model called it (the token is masked):");
    progress.line(&indented(&serde_json::to_string_pretty(&request).unwrap_or_default()));
    progress.line(&format!("\nWhat it was answered:\n  {}", answered(first)));
    progress.line("\nThe SMS that Twilio received:");
    progress.line(&table(&rows(sms, &["sid", "from", "to", "body"])));
    progress.line(&format!("\nThe same call sent again: still one SMS. It was answered:\n  {}", answered(second)));
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

/// Masks the tool's token and all credentials, at any depth.
fn mask(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                let secret = ["token", "authorization"].contains(&name.to_ascii_lowercase().as_str());
                match field {
                    Value::String(text) if secret => "••••••".clone_into(text),
                    other => mask(other),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(mask),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tokens_are_masked_wherever_they_stand() {
        let mut request = json!({
            "headers": {"Authorization": "Bearer secret", "content-type": "application/json"},
            "body": {"text": "hello", "metadata": {"token": "secret", "callId": "1"}},
        });
        mask(&mut request);
        assert!(!request.to_string().contains("secret"), "{request}");
        assert_eq!(request["body"]["metadata"]["callId"], "1");
        assert_eq!(request["headers"]["content-type"], "application/json");
    }
}
