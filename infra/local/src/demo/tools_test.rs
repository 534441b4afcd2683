//! A tool is tested before it is live: a dry run shows the request without sending it.

use reqwest::Method;
use serde_json::{Value, json};

use super::user::{User, must};
use crate::{Result, progress::Progress};

pub(super) async fn play(user: &User<'_>, progress: &Progress) -> Result<()> {
    let step = progress.step("demo: a tool is tried before it is saved");
    let before = user.messages().await?.len();
    let asked = json!({
        "config": {
            "type": "sms", "label": "Remind", "from": {"type": "called_number"},
            "text": {"mode": "ai", "prompt": "The reminder"},
            "recipients": ["{{caller_phone_number}}"], "allowed_recipients": "caller_only",
        },
        "arguments": {"text": "See you on Tuesday at nine."},
        "caller_phone_number": user.stack.data.demo.caller,
    });
    let tried = user.ask(Method::POST, "/tools/test", Some(&asked)).await?;
    let request = tried.get("request").cloned().unwrap_or(Value::Null);
    must(request.to_string().contains("See you on Tuesday"), &format!("the dry run shows {tried}"))?;
    must(user.messages().await?.len() == before, "a dry run sent something")?;
    step.done("nothing was sent");
    progress.line(&format!("\nWhat a dry run shows, with nothing sent:\n  {request}"));
    Ok(())
}
