//! `cargo bench -p tests --bench stream`: the CPU cost of a streamed answer.
//!
//! First the path of a token from the turn's observer to the body's chunk, in both wire formats (budget 50 µs); then
//! the handler up to its first event, including token, membership, thread and budgets (budget 5 ms), and a turn of the chat that
//! calls a tool (budget 8 ms). Time is the scheduler's count for this thread (`/proc`, Linux only), so waiting for DynamoDB and the model on other threads is
//! excluded. A figure over budget is reported but does not fail: a busy machine measures high.

#![expect(clippy::print_stdout, reason = "the report is what this is for")]
#![expect(clippy::expect_used, clippy::indexing_slicing, reason = "a bench stops at what is wrong")]

#[path = "../../shared/benches/measuring/mod.rs"]
mod measuring;

use std::{fs, thread, time::Duration};

use http_body_util::BodyExt;
use serde_json::json;
use shared::{
    http::{Frames, Reply, Request, answer_streaming},
    planner::{Observer, TurnEvent},
};
use stream::agui::{Run, failed};
use tests::{World, run_input, standins::llm::Turn};

use crate::measuring::measures;

const TOKENS: u32 = 20_000;
const PER_TOKEN: Duration = Duration::from_micros(50);
const ROUNDS: usize = 60;
const WARM_UP: usize = 10;
const FIRST_EVENT: Duration = Duration::from_millis(5);
const TURN: Duration = Duration::from_millis(8);

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(tokens());
    runtime.block_on(first_event());
    runtime.block_on(turn());
}

async fn tokens() {
    let tokens = if measures() { TOKENS } else { 1 };
    let handle = async |_: Request| {
        let frames = Frames::default();
        let mut run = Run::start(frames.clone(), "thread-1", "run-1");
        let work = async move {
            for _ in 0..tokens {
                run.event(TurnEvent::Token("word "));
                // As after a chunk of the model: sends the written events.
                tokio::task::yield_now().await;
            }
            run.finish();
            Ok(())
        };
        Ok(Reply::events(frames, work, failed))
    };
    let before = cpu();
    let (response, _) = answer_streaming("stream", Request::default(), handle).await;
    let mut body = response.into_body();
    let mut bytes = 0;
    while let Some(Ok(frame)) = body.frame().await {
        bytes += frame.into_data().map_or(0, |data| data.as_ref().len());
    }
    report("a token", cpu().saturating_sub(before) / tokens, PER_TOKEN);
    println!("  ({} bytes each)", bytes / tokens as usize);
}

async fn first_event() {
    let (rounds, warm_up) = if measures() { (ROUNDS, WARM_UP) } else { (1, 0) };
    let world = World::start().await;
    let mut taken = Vec::new();
    for round in 0..rounds {
        world.llm.script([Turn::text(r#"{"tool": "none"}"#), Turn::text("Hello!")]);
        let input = run_input(&format!("thread {round}"), "u1", "Hello");
        let event = world.stream_event(&world.home.user_id, "/copilotkit/agent/default/run", &input);
        let before = cpu();
        let mut stream = world.open_stream(&event).await;
        stream.next().await.expect("an event");
        taken.push(cpu().saturating_sub(before));
        assert_eq!(stream.rest().await.last().expect("an end")["type"], json!("RUN_FINISHED"));
    }
    report("the first event", median(taken.split_off(warm_up)), FIRST_EVENT);
}

/// The model chooses a tool, the tool looks something up, and the model answers.
async fn turn() {
    let (rounds, warm_up) = if measures() { (ROUNDS, WARM_UP) } else { (1, 0) };
    let world = World::start().await;
    let base =
        world.knowledge_base(&json!([]), &json!([{"id": "h1", "text": "The sales of 2024 were 7 million"}])).await;
    world.tool(&json!({"type": "query", "label": "Find", "knowledge_base_id": base["id"]})).await;
    let call = json!({"tool": "find", "reason": "it is asked for", "arguments": {"query": "sales 2024"}}).to_string();
    let mut taken = Vec::new();
    for round in 0..rounds {
        world.llm.script([Turn::text(&call), Turn::text("They were 7 million.")]);
        let body = json!({"message": "What were the sales?", "thread_id": format!("thread {round}")});
        let before = cpu();
        let answer = world.chat_with(&body).await;
        taken.push(cpu().saturating_sub(before));
        assert_eq!(answer.expect(200)["metadata"]["tools"][0]["outcome"], json!("succeeded"));
    }
    report("a turn that calls a tool", median(taken.split_off(warm_up)), TURN);
}

fn median(mut taken: Vec<Duration>) -> Duration {
    taken.sort_unstable();
    taken.get(taken.len() / 2).copied().unwrap_or_default()
}

fn report(what: &str, taken: Duration, budget: Duration) {
    let verdict = if taken <= budget { "within" } else { "OVER" };
    println!("{what}: {taken:?}, {verdict} the budget of {budget:?}");
}

/// CPU time of this thread so far. Sleeps first, because only then are the scheduler's figures complete.
fn cpu() -> Duration {
    thread::sleep(Duration::from_micros(20));
    let counted = fs::read_to_string("/proc/thread-self/schedstat").expect("Linux' figures");
    Duration::from_nanos(counted.split(' ').next().and_then(|first| first.parse().ok()).expect("nanoseconds"))
}
