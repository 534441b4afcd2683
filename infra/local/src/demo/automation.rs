//! A run reads a page of the stand-in site with `wget` and ends in JSON of its schema.
//!
//! The LLM's stand-in plays the model, including a mistake and its correction. A real LLM, if configured, may take
//! another path.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::user::{User, must, text};
use crate::{Error, Result, progress::Progress, standins::llm::Turn};

/// A real model takes seconds for each answer.
const OVER_WITHIN: Duration = Duration::from_secs(120);
/// Maximum characters of a line of the trace.
const WIDTH: usize = 120;

pub(super) async fn play(user: &User<'_>, progress: &Progress) -> Result<()> {
    let step = progress.step("demo: an automation reads a web page, and gives what stands there as JSON");
    let stack = user.stack;
    let page = format!("{}/opening-hours", stack.site.url);
    let played = stack.description.llm_url.starts_with(&stack.llm.url);
    if played {
        stack.llm.script(script(&page));
    }
    let asked = json!({
        "prompt": format!("When is the shop open on Saturdays? It says so on {page}."),
        "system_prompt": "You look things up for a bicycle shop's customers.",
        "tools": ["wget"],
        "schema": {
            "type": "object",
            "properties": {
                "opens": {"type": "string", "pattern": "^[0-9]{2}:[0-9]{2}$"},
                "closes": {"type": "string", "pattern": "^[0-9]{2}:[0-9]{2}$"},
            },
            "required": ["opens", "closes"], "additionalProperties": false,
        },
    });
    let run = user.ask(Method::POST, "/runs", Some(&asked)).await?;
    let run = over(user, &text(&run, "id")?).await?;
    let found = run.get("result").unwrap_or(&Value::Null);
    let right = run.get("status").is_some_and(|status| status == "completed")
        && *found == json!({"opens": "10:00", "closes": "16:00"});
    must(right, &format!("the run ended with {found} ({})", run.get("error").unwrap_or(&Value::Null)))?;
    let left = stack.llm.script_left();
    must(!played || left.is_empty(), &format!("the run ended with turns of the script left: {left:?}"))?;
    step.done("it fits the schema");
    show(&run, progress);
    Ok(())
}

/// The stand-in's turns: a call with an unknown format, the corrected call, and the answer, first in JSON that
/// violates the schema.
fn script(page: &str) -> [Turn; 5] {
    let calls = |line: &str| format!("````tool\n{line}\n````");
    [
        calls(&format!("return wget({{uri: \"{page}\", format: \"markdown\"}});")),
        format!(
            "The format must be one of those listed.\n\n{}",
            calls(&format!("return wget(\"{page}\", 10_000, \"text\");"))
        ),
        calls("return finalResponse();"),
        "Here you are:\n```json\n{\"opens\": \"10 am\", \"closes\": \"4 pm\"}\n```".to_owned(),
        "{\"opens\": \"10:00\", \"closes\": \"16:00\"}".to_owned(),
    ]
    .map(|content| Turn::text(&content))
}

/// The finished run.
async fn over(user: &User<'_>, id: &str) -> Result<Value> {
    let until = Instant::now() + OVER_WITHIN;
    loop {
        let run = user.ask(Method::GET, &format!("/runs/{id}"), None).await?;
        match run.get("status").and_then(Value::as_str) {
            Some("queued" | "running") if Instant::now() < until => sleep(Duration::from_millis(100)).await,
            Some("queued" | "running") => return Err(Error::Demo(format!("the run {id} does not end: {run}"))),
            _ => return Ok(run),
        }
    }
}

fn show(run: &Value, progress: &Progress) {
    let line = |indent: usize, text: &str| progress.line(&format!("{:indent$}{}", "", short(text)));
    progress.line("\nThe run, as GET /api/{slug}/runs/{id} shows it:");
    line(2, &format!("prompt: {}", said(run.get("prompt"))));
    for step in run.get("steps").and_then(Value::as_array).into_iter().flatten() {
        let count = |name: &str| step.get(name).and_then(Value::as_u64).unwrap_or_default();
        let (number, phase, took) = (count("step"), said(step.get("phase")), count("duration_ms"));
        let (prompt, answer) = (count("prompt_tokens"), count("completion_tokens"));
        line(2, &format!("step {number} ({phase}), {took} ms, {prompt} + {answer} tokens"));
        line(4, &format!("model: {}", said(step.get("answer"))));
        for call in step.get("calls").and_then(Value::as_array).into_iter().flatten() {
            let (name, outcome) = (said(call.get("name")), said(call.get("outcome")));
            let took = call.get("duration_ms").and_then(Value::as_u64).unwrap_or_default();
            line(4, &format!("call:  {name}, {outcome}, {took} ms: {}", said(call.get("result"))));
        }
        if let Some(reply) = step.get("reply").filter(|reply| !reply.is_null()) {
            line(4, &format!("reply: {}", said(Some(reply))));
        }
    }
    line(2, &format!("result: {}", said(run.get("result"))));
    line(2, &format!("spent:  {}", said(run.get("spent"))));
}

fn said(value: Option<&Value>) -> String {
    let text = value.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned)).unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn short(text: &str) -> String {
    match text.char_indices().nth(WIDTH) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
