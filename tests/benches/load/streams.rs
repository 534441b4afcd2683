//! Chats that are streamed at the same time.

use std::{collections::HashMap, sync::Arc, time::Duration};

use serde_json::Value;
use tests::run_input;
use tokio::time::Instant;
use uuid::Uuid;

use crate::{
    Result,
    open_loop::{Latencies, open_loop},
    stack::Stack,
};

pub(crate) struct Streams {
    pub(crate) first_event: Latencies,
    pub(crate) whole: Latencies,
    pub(crate) cold_starts: usize,
    pub(crate) finished: usize,
    pub(crate) wrong: Vec<String>,
}

/// A stream's text, and when its first event came.
struct Read {
    text: String,
    first: Option<Instant>,
}

/// `count` streams at once, each in a thread of its own.
pub(crate) async fn open(stack: &Arc<Stack>, count: usize) -> Result<Streams> {
    let world = &stack.world;
    let user = &world.home.user_id;
    let threads: Vec<String> = (0..count).map(|_| format!("load-{}", Uuid::new_v4())).collect();
    let event = |thread: &String| {
        let input = run_input(thread, &format!("message-{thread}"), "Hello");
        world.stream_event(user, "/copilotkit/agent/default/run", &input).to_rest_json()
    };
    let events: Vec<Value> = threads.iter().map(event).collect();
    let kept_before = conversations(stack);
    let cold_before = stack.cold_starts("stream");
    let at = Arc::clone(stack);
    let outcome = open_loop(events, Duration::ZERO, usize::MAX, move |event: Value| {
        let stack = Arc::clone(&at);
        async move { read(&stack, &event).await }
    })
    .await;
    let mut wrong = stack.settled().await;
    let mut finished = 0;
    let mut first_events = Vec::new();
    for (thread, timed) in threads.iter().zip(&outcome.answers) {
        let Read { text, first } = &timed.answer;
        first_events.extend(first.map(|first| first.duration_since(timed.intended)));
        let is_whole = text.contains("RUN_FINISHED") && text.contains("LLM_API_KEY");
        finished += usize::from(is_whole);
        if !is_whole {
            wrong.push(format!("{thread}: the stream was {text:?}"));
        }
    }
    let kept = conversations(stack);
    let new = || kept.iter().filter(|(id, _)| !kept_before.contains_key(*id));
    if new().count() != count || new().any(|(_, messages)| *messages != 2) {
        wrong.push(format!("{} new threads with {:?} messages", new().count(), new().collect::<Vec<_>>()));
    }
    let cold_starts = stack.cold_starts("stream") - cold_before;
    Ok(Streams { first_event: Latencies::of(first_events), whole: outcome.latencies(), cold_starts, finished, wrong })
}

/// The number of messages of each kept thread.
fn conversations(stack: &Stack) -> HashMap<String, usize> {
    let mut messages = HashMap::new();
    for item in stack
        .world
        .aws
        .rows("threads")
        .iter()
        .filter(|item| item["part"].as_str().is_some_and(|part| part.starts_with("m#")))
    {
        *messages.entry(item["id"].as_str().unwrap_or_default().to_owned()).or_default() += 1;
    }
    messages
}

async fn read(stack: &Stack, event: &Value) -> Read {
    let (mut text, mut first) = (Vec::new(), None);
    if let Some((mut answer, _process)) = stack.stream(event).await {
        while let Some(Ok(piece)) = answer.body.recv().await {
            text.extend_from_slice(&piece);
            if first.is_none() && text.windows(2).any(|pair| pair == b"\n\n") {
                first = Some(Instant::now());
            }
        }
    }
    Read { text: String::from_utf8_lossy(&text).into_owned(), first }
}
