//! A tool becomes call-start only and back, and is deleted while attached.
//!
//! VAPI and the tables agree after each step.

use reqwest::Method;
use serde_json::{Value, json};

use super::user::{User, must, text};
use crate::{Result, progress::Progress};

pub(super) async fn play(user: &User<'_>, progress: &Progress) -> Result<()> {
    let step = progress.step("demo: a tool is edited to call start only and back, and deleted while it is attached");
    let tool = user
        .attached(&json!({
            "type": "sms", "label": "Send price list", "description": "Sends the caller the price list.",
            "from": {"type": "called_number"},
            "text": {"mode": "fixed", "value": "Our prices: https://harbour-dental.example/prices"},
            "recipients": ["{{caller_phone_number}}"],
        }))
        .await?;
    let path = format!("/tools/{}", text(&tool, "id")?);
    must(user.assistant_has(&tool), "the tool was attached and the assistant does not have it")?;

    let change = json!({"attach_to_agent": false, "execute_on_call_start": true});
    let preemptive = user.ask(Method::PATCH, &path, Some(&change)).await?;
    must(
        preemptive.get("external_tool_id").is_some_and(Value::is_null),
        "a tool for call start only is still known at VAPI",
    )?;
    must(!user.assistant_has(&tool), "the assistant still has a tool that runs on call start only")?;

    let change = json!({"attach_to_agent": true, "execute_on_call_start": false});
    let back = user.ask(Method::PATCH, &path, Some(&change)).await?;
    must(user.assistant_has(&back), "the assistant does not have the tool that was made callable again")?;

    let deleted = user.ask(Method::DELETE, &path, None).await?;
    must(deleted.get("status").is_some_and(|status| status == "deleted"), "the tool was not deleted")?;
    must(!user.assistant_has(&back), "the assistant still has a deleted tool")?;
    let agent = format!("/agents/{}/tools", user.stack.description.agent_id);
    let listed = user.ask(Method::GET, &agent, None).await?;
    must(listed.get("synced").is_some_and(|synced| *synced == true), "VAPI and the tables were not compared")?;
    must(!listed.to_string().contains(&text(&tool, "id")?), "a deleted tool is still listed")?;
    step.done("VAPI and the tables agree after each step");

    progress.line(&format!("\nThe life of a tool, {}:", text(&tool, "name")?));
    let vapi = |tool: &Value| tool.get("external_tool_id").and_then(Value::as_str).unwrap_or("none").to_owned();
    progress.line(&format!("  attached          VAPI tool {}, in the assistant's toolIds", vapi(&tool)));
    progress.line(&format!("  call start only   VAPI tool {}, taken out of the toolIds", vapi(&preemptive)));
    progress.line(&format!("  callable again    VAPI tool {}, in the toolIds again", vapi(&back)));
    progress.line("  deleted           gone from the assistant, from VAPI and from the tables");
    Ok(())
}
