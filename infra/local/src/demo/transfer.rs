//! The agent can transfer the caller only to the destinations on the tool's list.

use serde_json::{Value, json};
use uuid::Uuid;

use super::user::{User, must};
use crate::{Result, progress::Progress};

pub(super) async fn play(user: &User<'_>, progress: &Progress) -> Result<()> {
    let step = progress.step("demo: the agent transfers the caller");
    let tool = user
        .attached(&json!({
            "type": "transfer_call", "label": "Connect with a colleague",
            "destinations": [
                {"type": "number", "number": "+14155550177", "label": "billing", "description": "invoices and payments"},
                {"type": "number", "number": "+14155550178", "label": "emergencies"},
            ],
            "messageStrategy": "summary",
        }))
        .await?;
    let call_id = Uuid::new_v4().to_string();
    let arguments = json!({"destination": "billing", "summary": "The caller asks about invoice 42."});
    let call = user.call(&tool, &arguments, &call_id).await?;
    let heard = user.stack.vapi.heard(&call_id);
    let sent = heard.first().cloned().unwrap_or(Value::Null);
    let right = heard.len() == 1 && sent.pointer("/destination/number").is_some_and(|number| number == "+14155550177");
    must(right, &format!("the call was told {heard:?}"))?;
    step.done("the call goes to billing");
    let told = call.pointer("/response/body/result").unwrap_or(&Value::Null);
    progress.line(&format!("\nThe model chose from the tool's own list:\n  {arguments}\nThe call was told:\n  {sent}"));
    progress.line(&format!("The model heard:\n  {told}"));
    Ok(())
}
