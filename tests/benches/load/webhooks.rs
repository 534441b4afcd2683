//! Webhooks of Slack that each start a run with one effect; one of a hundred comes twice.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tests::{SLACK_SECRET, slack_message, webhooks::Signer};

use crate::{
    Result,
    open_loop::{Latencies, open_loop},
    stack::Stack,
};

/// One webhook of so many is delivered twice.
const TWICE_EVERY: usize = 100;

pub(crate) struct Webhooks {
    pub(crate) answers: Latencies,
    /// From the webhook's intended start to the effect of its run.
    pub(crate) effects_after: Latencies,
    pub(crate) effects: usize,
    pub(crate) wrong: Vec<String>,
}

/// `count` webhooks, evenly within `within`.
pub(crate) async fn arrive(stack: &Arc<Stack>, count: usize, within: Duration) -> Result<Webhooks> {
    let world = &stack.world;
    world.slack_service();
    let automation = world
        .active(&json!({
            "name": "Bookkeeping", "description": "Books each message.", "trigger_type": "webhook",
            "trigger_config": {
                "service": "Slack", "event_type": "message",
                "filters": {"path": "event.text", "op": "contains", "value": "entry-"},
            },
            "actions": [{"id": "book", "tool": "ledger_post", "parameters": {"entry": "{{event.text}}"}}],
            "quotas": {"messages_per_day": 10_000, "runs_per_hour": 10_000},
            "fingerprints": {"ledger_post": world.fingerprint("ledger_post")},
        }))
        .await;
    let hook = world.slack_hook().await;
    let path = world.hook_path(&hook);
    let entry = |number: usize| format!("entry-{number}");
    let event = |number: usize| {
        let message = slack_message(&format!("Ev{number}"), &entry(number));
        world.signed(&path, Signer::Slack(SLACK_SECRET), &message).to_json()
    };
    let mut numbers = Vec::new();
    for number in 0..count {
        numbers.push(number);
        if number % TWICE_EVERY == 0 {
            numbers.push(number);
        }
    }
    let events: Vec<Value> = numbers.iter().map(|&number| event(number)).collect();
    let every = within / u32::try_from(events.len().max(1))?;
    let at = Arc::clone(stack);
    let outcome = open_loop(events, every, usize::MAX, move |event: Value| {
        let stack = Arc::clone(&at);
        async move { stack.ask("trigger", &event).await.unwrap_or_default()["statusCode"].clone() }
    })
    .await;
    let mut wrong = stack.settled().await;

    let mut entries = stack.ledger.entries();
    let mut latencies = Vec::new();
    let mut effects = 0;
    for (&number, timed) in numbers.iter().zip(&outcome.answers) {
        if timed.answer != 200 {
            wrong.push(format!("{}: answered {}", entry(number), timed.answer));
        }
        // A repeated webhook has no effect of its own.
        if let Some(times) = entries.remove(&entry(number)) {
            effects += times.len();
            latencies.extend(times.first().map(|at| at.saturating_duration_since(timed.intended.into_std())));
            if times.len() != 1 {
                wrong.push(format!("{}: made {} times", entry(number), times.len()));
            }
        }
    }
    if latencies.len() != count {
        wrong.push(format!("{} of {count} entries were made", latencies.len()));
    }
    wrong.extend(entries.into_keys().map(|entry| format!("{entry}: nobody asked for it")));
    let runs = world.runs_of(&automation);
    let completed = runs.iter().filter(|run| run["status"] == "completed").count();
    if (runs.len(), completed) != (count, count) {
        let (all, other) = (runs.len(), runs.iter().find(|run| run["status"] != "completed"));
        wrong.push(format!(
            "{all} runs, {completed} are completed, {count} were asked for; one of the others: {other:?}"
        ));
    }
    Ok(Webhooks { answers: outcome.latencies(), effects_after: Latencies::of(latencies), effects, wrong })
}
