//! A knowledge base is filled and attached; the agent queries it during a call.

use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use super::user::{User, must, text};
use crate::{Result, progress::Progress};

pub(super) async fn play(user: &User<'_>, progress: &Progress) -> Result<()> {
    let step = progress.step("demo: a knowledge base is filled, and the agent looks something up");
    let base = json!({
        "name": "Treatments", "description": "What the practice offers, with prices",
        "fields": [{"name": "price", "type": "number", "label": "Price in euros"}, {"name": "room", "type": "text"}],
    });
    let base = user.ask(Method::POST, "/knowledge-bases", Some(&base)).await?;
    let entries = json!({"entries": [
        {"id": "cleaning", "price": 90, "room": "A", "text": "Professional cleaning with polishing, one hour"},
        {"id": "whitening", "price": 250, "room": "B", "text": "Whitening in one session, teeth up to six shades lighter"},
        {"id": "check-up", "price": 40, "room": "A", "text": "Check-up with an X-ray when it is needed"},
    ]});
    let path = format!("/knowledge-bases/{}/entries", text(&base, "id")?);
    user.ask(Method::POST, &path, Some(&entries)).await?;
    let path = format!("/agents/{}/knowledge-bases/attach", user.stack.description.agent_id);
    let attached = user.ask(Method::POST, &path, Some(&json!({"knowledge_base_id": text(&base, "id")?}))).await?;
    let tool = attached.get("tool").cloned().unwrap_or_default();
    let question = json!({"query": "polishing", "price_at_most": 100});
    let call = user.call(&tool, &question, &Uuid::new_v4().to_string()).await?;
    let found = call.pointer("/response/body/result").cloned().unwrap_or(Value::Null);
    must(found.to_string().contains("Professional cleaning"), &format!("the look-up found {found}"))?;
    step.done("it was found");
    progress.line(&format!("\nThe agent asked {question} and heard:\n  {found}"));
    Ok(())
}
