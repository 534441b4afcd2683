//! The main job once, over HTTP only, as users and VAPI would do it: a tool is created, attached to the agent, called in
//! the middle of a call, and an SMS goes out; the same call again, and none goes out.

use reqwest::RequestBuilder;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    Error, Result,
    progress::Progress,
    report::{rows, table},
    stack::Stack,
};

/// What the demo leaves behind.
#[derive(Debug, Clone)]
pub struct Played {
    pub tool_id: String,
    pub tool_name: String,
}

/// Plays the main job and shows what happened.
///
/// # Errors
/// [`Error::Demo`] naming the first step that did not go as it must.
pub async fn play(stack: &Stack, progress: &Progress) -> Result<Played> {
    let step = progress.step("demo: a tool is created, attached, called in a call, and an SMS goes out");
    let tool = create(stack).await?;
    let played = Played { tool_id: text(&tool, "id")?, tool_name: text(&tool, "name")? };
    attach(stack, &played).await?;

    let call_id = Uuid::new_v4().to_string();
    let before = messages(stack).await?.len();
    let first = call(stack, &played, &call_id).await?;
    let sent = messages(stack).await?.split_off(before);
    let [sms] = sent.as_slice() else {
        return Err(Error::Demo(format!(
            "the tool was called once and Twilio received {} messages, not 1",
            sent.len()
        )));
    };
    check_sms(stack, sms)?;

    let second = call(stack, &played, &call_id).await?;
    let again = messages(stack).await?.len() - before;
    if again != 1 {
        return Err(Error::Demo(format!("the same call came twice and Twilio received {again} messages, not 1")));
    }
    step.done("it works");
    show(progress, &tool, &first, sms, &second);
    Ok(played)
}

async fn create(stack: &Stack) -> Result<Value> {
    let about = &stack.description;
    let address = format!("{}/api/{}/tools", about.api_url, about.slug);
    let request = stack.http.post(&address).bearer_auth(&about.token).json(&stack.data.demo.tool);
    answer("creating the tool", &address, request).await
}

async fn attach(stack: &Stack, tool: &Played) -> Result<()> {
    let about = &stack.description;
    let address = format!("{}/api/{}/agents/{}/tools/attach", about.api_url, about.slug, about.agent_id);
    let request = stack.http.post(&address).bearer_auth(&about.token).json(&json!({"tool_id": tool.tool_id}));
    answer("attaching the tool", &address, request).await.map(drop)
}

/// Lets VAPI's stand-in call the tool; gives what it sent and received.
async fn call(stack: &Stack, tool: &Played, call_id: &str) -> Result<Value> {
    let about = &stack.description;
    let address = format!("{}/simulate/tool-call", about.standins.vapi);
    let request = stack.http.post(&address).json(&json!({
        "assistant_id": about.assistant_id,
        "tool_name": tool.tool_name,
        "arguments": stack.data.demo.arguments,
        "customer_number": stack.data.demo.caller,
        "phone_number": about.phone_number,
        "call_id": call_id,
    }));
    let call = answer("VAPI's call of the tool", &address, request).await?;
    let succeeded = call.pointer("/response/status").is_some_and(|status| status == 200)
        && call.pointer("/response/body/success").is_some_and(|success| success == true);
    if succeeded {
        return Ok(call);
    }
    let came = call.get("response").filter(|response| !response.is_null()).or_else(|| call.get("failure"));
    Err(Error::Demo(format!("VAPI called the tool and got {}", came.unwrap_or(&Value::Null))))
}

async fn messages(stack: &Stack) -> Result<Vec<Value>> {
    let address = format!("{}/messages", stack.description.standins.twilio);
    match answer("reading what Twilio received", &address, stack.http.get(&address)).await? {
        Value::Array(messages) => Ok(messages),
        other => Err(Error::Demo(format!("reading what Twilio received gave {other}, which is no list"))),
    }
}

fn check_sms(stack: &Stack, sms: &Value) -> Result<()> {
    let arguments = &stack.data.demo.arguments;
    let said = |value: &Value| arguments.values().any(|argument| argument == value);
    let right = sms.get("to").is_some_and(|to| *to == stack.data.demo.caller)
        && sms.get("from").is_some_and(|from| *from == stack.description.phone_number)
        && sms.get("body").is_some_and(said);
    if right { Ok(()) } else { Err(Error::Demo(format!("Twilio received another SMS than was asked for: {sms}"))) }
}

/// Sends a request; its answer must be a success and JSON.
async fn answer(what: &str, address: &str, request: RequestBuilder) -> Result<Value> {
    let failed = |source| Error::Http { address: address.to_owned(), source };
    let answer = request.send().await.map_err(failed)?;
    let status = answer.status();
    let body = answer.text().await.map_err(failed)?;
    if !status.is_success() {
        return Err(Error::Demo(format!("{what} was answered {status}: {body}")));
    }
    serde_json::from_str(&body)
        .map_err(|_not_json| Error::Demo(format!("{what} was answered {status} without JSON: {body}")))
}

fn text(tool: &Value, field: &str) -> Result<String> {
    let missing = || Error::Demo(format!("the created tool has no `{field}`: {tool}"));
    tool.get(field).and_then(Value::as_str).map(str::to_owned).ok_or_else(missing)
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

/// Hides the tool's token and any credential, wherever they stand.
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
