//! Events, an approval and a schedule run automations.
//!
//! A signed Slack event leads to an alert and, after a person's approval, to an e-mail. Another event matches no
//! automation and records the reason. Gmail's pushes are verified, a schedule fires, and a stored event is replayed
//! without effects.

use std::time::Duration;

use reqwest::Method;
use ring::hmac;
use serde_json::{Value, json};
use shared::models::Timestamp;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::user::{User, answer, must, text};
use crate::{Error, Result, progress::Progress};

/// The limit of one wait; a schedule's queue takes a few seconds.
const WITHIN: Duration = Duration::from_secs(60);
pub(super) const SIGNING_SECRET: &str = "demo-signing-secret";
pub(super) const ALERTS: &str = "C0ALERTS";

pub(super) async fn play(user: &User<'_>, progress: &Progress) -> Result<()> {
    let step =
        progress.step("demo: a Slack event leads to an alert and an approved e-mail; Gmail's pushes are verified; a schedule fires; a dry replay");
    let hook = user.ask(Method::POST, "/hooks", Some(&json!({"service": "Slack", "secret": SIGNING_SECRET}))).await?;
    let slack = Slack { user, address: text(&hook, "url")? };
    let fingerprints = fingerprints(user, &["slack_post_message", "gmail_send_email"]).await?;
    let automation = active(user, &on_urgent(&fingerprints)).await?;

    // The first message matches the automation, the second does not.
    let before = user.stack.pipedream.runs().len();
    slack.says("urgent: pump 3 leaks").await?;
    slack.says("lunch?").await?;
    let run = first_run(user, &automation, "waiting_for_approval").await?;
    let alerts = sent(user, before);
    must(alerts.len() == 1, &format!("one alert was to be posted, and Pipedream ran {alerts:?}"))?;
    let passed_over = passed_over(user).await?;

    let pending = user.ask(Method::GET, "/approvals?status=pending", None).await?;
    let approval = pending.pointer("/items/0").cloned().unwrap_or_default();
    let path = format!("/approvals/{}/approve", text(&approval, "id")?);
    user.ask(Method::POST, &path, Some(&json!({"reason": "They should know."}))).await?;
    let run = ended(user, &text(&run, "id")?).await?;
    let both = sent(user, before);
    must(
        run.get("status").is_some_and(|status| status == "completed") && both.len() == 2,
        &format!("the e-mail was to be sent once it was approved: {run}"),
    )?;

    gmail_pushes(user).await?;

    let soon = json!(Timestamp::now().plus(Duration::from_secs(10)).to_string());
    let scheduled = active(user, &on_schedule(&fingerprints, &soon)).await?;
    let fired = first_run(user, &scheduled, "completed").await?;
    must(sent(user, before).len() == 3, "the schedule was to post one message")?;

    let event = run.get("event_id").and_then(Value::as_str).unwrap_or_default();
    let replay = user.ask(Method::POST, &format!("/events/{event}/replay"), Some(&json!({"dry_run": true}))).await?;
    let replayed = replay.pointer("/runs/0").cloned().unwrap_or_default();
    let replayed = ended(user, &text(&replayed, "id")?).await?;
    must(sent(user, before).len() == 3, "a replay in dry run was to send nothing")?;
    step.done("each does what it says");

    let line = |text: &str| progress.line(text);
    line(&format!("\nSlack's events go to {}; the first one, signed, said \"urgent: pump 3 leaks\":", slack.address));
    actions(&run, progress);
    line(&format!(
        "  the e-mail waited for an approval: {} to {}, approved by {}",
        said(&approval, "/tool"),
        said(&approval, "/arguments/to"),
        said(&run, "/user_id"),
    ));
    line(&format!("\nThe second one said \"lunch?\" and began nothing:\n  {passed_over}"));
    line(&format!(
        "\nA schedule for {}: its run, due at {}, is {}",
        soon.as_str().unwrap_or_default(),
        said(&fired, "/scheduled_for"),
        said(&fired, "/status"),
    ));
    line("\nThe first event, replayed in dry run; nothing was sent:");
    actions(&replayed, progress);
    Ok(())
}

/// A mailbox change is accepted only from the hook's service account.
async fn gmail_pushes(user: &User<'_>) -> Result<()> {
    let account = "gmail-push@demo.iam.gserviceaccount.com";
    let hook = user.ask(Method::POST, "/hooks", Some(&json!({"service": "Gmail", "service_account": account}))).await?;
    let url = text(&hook, "url")?;
    let address = format!("{}/simulate/gmail-push", user.stack.google.url);
    for (account, expected) in [(account, 200), ("push@other.iam.gserviceaccount.com", 401)] {
        let push = json!({
            "url": url, "service_account": account, "email_address": "desk@demo.example", "history_id": 7,
        });
        let told = answer("Gmail's push", &address, user.stack.http.post(&address).json(&push)).await?;
        must(
            told.get("status").is_some_and(|status| *status == expected),
            &format!("a push by {account} was to be answered {expected}: {told}"),
        )?;
    }
    Ok(())
}

/// Posts an alert and, after an approval, informs a customer.
fn on_urgent(fingerprints: &Value) -> Value {
    json!({
        "name": "Urgent pumps",
        "description": "Alerts the team, and tells the customer once somebody has looked at it.",
        "trigger_type": "webhook",
        "trigger_config": {
            "service": "Slack", "event_type": "message",
            "filters": {"path": "event.text", "op": "contains", "value": "urgent", "case_insensitive": true},
        },
        "fingerprints": fingerprints,
        "actions": [
            {
                "id": "alert", "tool": "slack_post_message",
                "parameters": {"channel": ALERTS, "text": "Alert: {{event.text}} from <@{{event.user}}>"},
            },
            {
                "id": "tell_customer", "tool": "gmail_send_email", "approval": {"reason": "It goes to a customer."},
                "parameters": {"to": ["ana@customer.example"], "subject": "We are on it", "body": "You wrote: {{event.text}}"},
            },
        ],
    })
}

fn on_schedule(fingerprints: &Value, at: &Value) -> Value {
    json!({
        "name": "Reminder", "trigger_type": "schedule_once", "trigger_config": {"run_at": at},
        "fingerprints": {"slack_post_message": fingerprints.get("slack_post_message")},
        "actions": [{
            "id": "remind", "tool": "slack_post_message",
            "parameters": {"channel": ALERTS, "text": "It is {{now_utc}}: look at the pumps."},
        }],
    })
}

/// Sends Slack's message events.
pub(super) struct Slack<'a> {
    pub(super) user: &'a User<'a>,
    pub(super) address: String,
}

impl Slack<'_> {
    pub(super) async fn says(&self, text: &str) -> Result<Value> {
        let now = Timestamp::now().as_seconds();
        let body = json!({
            "team_id": "T061EG9R6", "api_app_id": "A0MDYCDME", "type": "event_callback", "event_time": now,
            "event_id": format!("Ev{}", Uuid::new_v4().simple()),
            "event": {"type": "message", "channel": "C0PNCHHK2", "user": "U061F7AUR", "text": text, "ts": format!("{now}.000200")},
        });
        let body = body.to_string();
        let key = hmac::Key::new(hmac::HMAC_SHA256, SIGNING_SECRET.as_bytes());
        let tag = hmac::sign(&key, format!("v0:{now}:{body}").as_bytes());
        let signature = tag.as_ref().iter().fold("v0=".to_owned(), |text, byte| text + &format!("{byte:02x}"));
        let request = self.user.stack.http.post(&self.address).header("content-type", "application/json");
        let request = request.header("x-slack-request-timestamp", now.to_string());
        answer("Slack's event", &self.address, request.header("x-slack-signature", signature).body(body)).await
    }
}

pub(super) async fn fingerprints(user: &User<'_>, tools: &[&str]) -> Result<Value> {
    let query: Vec<String> = tools.iter().map(|tool| format!("name={tool}")).collect();
    let data = user.ask(Method::GET, &format!("/discover/fetch_tool_data?{}", query.join("&")), None).await?;
    let read = data.get("tools").and_then(Value::as_array).into_iter().flatten();
    let read = read.filter_map(|tool| Some((tool.get("name")?.as_str()?.to_owned(), tool.get("fingerprint")?.clone())));
    let read: serde_json::Map<_, _> = read.collect();
    must(read.len() == tools.len(), &format!("not all of {tools:?} were found: {data}"))?;
    Ok(Value::Object(read))
}

/// Saves an automation and activates it; returns its id.
pub(super) async fn active(user: &User<'_>, definition: &Value) -> Result<String> {
    let saved = user.ask(Method::POST, "/automations", Some(definition)).await?;
    let id = text(saved.get("automation").unwrap_or(&Value::Null), "id")?;
    user.ask(Method::POST, &format!("/automations/{id}/activate"), Some(&json!({"version": 1}))).await?;
    Ok(id)
}

/// The automation's first run, once it has this status.
pub(super) async fn first_run(user: &User<'_>, automation: &str, status: &str) -> Result<Value> {
    let until = Instant::now() + WITHIN;
    loop {
        let runs = user.ask(Method::GET, &format!("/automations/{automation}/runs"), None).await?;
        let run = runs.pointer("/items/0").cloned().unwrap_or_default();
        if run.get("status").is_some_and(|now| now == status) {
            return Ok(run);
        }
        must(Instant::now() < until, &format!("a run was to become {status}: {run}"))?;
        sleep(Duration::from_millis(100)).await;
    }
}

/// The finished run with its actions.
async fn ended(user: &User<'_>, id: &str) -> Result<Value> {
    let until = Instant::now() + WITHIN;
    loop {
        let run = user.ask(Method::GET, &format!("/runs/{id}"), None).await?;
        match run.get("status").and_then(Value::as_str) {
            Some("queued" | "running" | "waiting_for_approval") if Instant::now() < until => {
                sleep(Duration::from_millis(100)).await;
            }
            Some("queued" | "running" | "waiting_for_approval") => {
                return Err(Error::Demo(format!("the run {id} does not end: {run}")));
            }
            _ => return Ok(run),
        }
    }
}

/// Why the last unmatched event started no run.
async fn passed_over(user: &User<'_>) -> Result<String> {
    let events = user.ask(Method::GET, "/events?matched=false", None).await?;
    let unmatched = events.pointer("/items/0/unmatched").and_then(Value::as_array).into_iter().flatten();
    let mut reasons = unmatched.filter_map(|one| one.get("why")?.as_str());
    let why = reasons.find(|why| why.contains("lunch?")).map(str::to_owned);
    must(why.is_some(), &format!("why an event began nothing was to be told: {events}"))?;
    Ok(why.unwrap_or_default())
}

/// The actions that Pipedream has run since `before`.
fn sent(user: &User<'_>, before: usize) -> Vec<String> {
    user.stack.pipedream.runs().into_iter().skip(before).map(|run| run.id).collect()
}

fn actions(run: &Value, progress: &Progress) {
    for action in run.get("actions").and_then(Value::as_array).into_iter().flatten() {
        let output = action.get("output").filter(|output| !output.is_null());
        let told = output.or_else(|| action.get("error")).map(Value::to_string).unwrap_or_default();
        let told: String = told.chars().take(100).collect();
        progress.line(&format!(
            "  {} ({}): {}, {told}",
            said(action, "/action_id"),
            said(action, "/tool"),
            said(action, "/status")
        ));
    }
}

fn said(value: &Value, pointer: &str) -> String {
    let found = value.pointer(pointer);
    found.map(|found| found.as_str().map_or_else(|| found.to_string(), str::to_owned)).unwrap_or_default()
}
