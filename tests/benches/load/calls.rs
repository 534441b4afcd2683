//! Phone calls that come in at the same time, each with a text message at its start.

use std::{collections::HashMap, sync::Arc, time::Duration};

use serde_json::Value;
use tests::standins::{twilio::IncomingCall, vapi::Media};

use crate::{
    Result,
    open_loop::{Latencies, open_loop},
    stack::Stack,
};

pub(crate) struct Calls {
    pub(crate) twiml: Latencies,
    /// From the calls to the last effect and the last deadline.
    pub(crate) settled: Duration,
    pub(crate) cold_starts: usize,
    pub(crate) effects: usize,
    pub(crate) wrong: Vec<String>,
}

/// `count` calls at once, from the numbers after `first`. The organization's agent has a tool for call starts.
pub(crate) async fn come_in(stack: &Arc<Stack>, first: usize, count: usize) -> Result<Calls> {
    let world = &stack.world;
    world.vapi.set_media(Media::Connected);
    let callers: Vec<IncomingCall> =
        (first..first + count).map(|number| world.caller(&format!("+1415{:07}", 3_000_000 + number))).collect();
    let events: Vec<Value> = callers.iter().map(|call| world.incoming(call).to_json()).collect();
    let (begun_before, cold_before) = (world.vapi.calls_begun(), stack.cold_starts("call-start"));
    let at = Arc::clone(stack);
    let begun = tokio::time::Instant::now();
    let outcome = open_loop(events, Duration::ZERO, usize::MAX, move |event: Value| {
        let stack = Arc::clone(&at);
        async move { stack.ask("call-start", &event).await.unwrap_or_default() }
    })
    .await;
    let mut wrong = stack.settled().await;
    let settled = begun.elapsed();

    let mut messages = HashMap::<String, usize>::new();
    for message in world.twilio.messages() {
        *messages.entry(message.to).or_default() += 1;
    }
    let rows: HashMap<String, Value> =
        world.aws.rows("calls").into_iter().filter_map(|row| Some((row["id"].as_str()?.to_owned(), row))).collect();
    let mut effects = 0;
    for (call, timed) in callers.iter().zip(&outcome.answers) {
        let text = timed.answer["body"].as_str().unwrap_or_default();
        let id = text.split_once("/transport").and_then(|(before, _)| before.rsplit('/').next()).unwrap_or_default();
        let made = messages.remove(&call.from).unwrap_or_default();
        effects += made;
        let (told, known) = (world.vapi.heard(id).len(), rows.contains_key(id));
        if timed.answer["statusCode"] != 200 || made != 1 || told != 1 || !known {
            let status = &timed.answer["statusCode"];
            wrong.push(format!("{}: answered {status}, {made} messages, told {told} times, row: {known}", call.from));
        }
    }
    wrong.extend(messages.into_keys().map(|number| format!("{number} did not call")));
    let at_vapi = world.vapi.calls_begun() - begun_before;
    if at_vapi != count {
        wrong.push(format!("VAPI has {at_vapi} calls in place of {count}"));
    }
    let cold_starts = stack.cold_starts("call-start") - cold_before;
    Ok(Calls { twiml: outcome.latencies(), settled, cold_starts, effects, wrong })
}
