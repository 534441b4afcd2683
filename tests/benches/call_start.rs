//! `cargo bench -p tests --bench call_start`: how soon the caller's context is injected.
//!
//! Runs on the local stack with its debug binaries; ten tools of 200 ms each run on call start. For sequential calls
//! and for a hundred at once it prints the time from Twilio's request to the TwiML and to the message with the tools'
//! results.

#![expect(clippy::print_stdout, reason = "the report is what this is for")]
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "what is not as it must be ends the measurement")]

#[path = "../../shared/benches/measuring/mod.rs"]
mod measuring;

use std::time::Duration;

use futures_util::future::join_all;
use local::{
    Options, Ports, Progress, Stack,
    standins::{Fault, twilio::IncomingCall, vapi::Media},
};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use crate::measuring::measures;

const TOOLS: usize = 10;
const EACH: u64 = 200;
const ALONE: usize = 10;
const AT_ONCE: usize = 100;

/// Milliseconds from Twilio's request.
struct Measured {
    twiml: f64,
    context: f64,
    /// Whether all results arrived before the deadline.
    whole: bool,
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(measure());
}

async fn measure() {
    let state = std::env::temp_dir().join(format!("switchboard-{}", Uuid::now_v7()));
    let options = Options {
        state_dir: state.clone(),
        ports: Ports::free(),
        open_hosts: Vec::new(),
        origins: Vec::new(),
        llm: None,
        beside_tests: true,
    };
    let progress = Progress::new(local::stack::STEPS, |line| println!("{line}"));
    let stack = Stack::start(&options, &progress).await.unwrap();
    stack.vapi.set_media(Media::Connected);
    stack.crm.inject(Fault::delay(EACH).times(1_000_000));
    let http = shared::clients::http_client().unwrap();
    for number in 0..TOOLS {
        attach(&stack, &http, number).await;
    }
    let (first, alone_calls, at_once_calls) = if measures() { (3, ALONE, AT_ONCE) } else { (0, 1, 1) };
    // Warm-up calls that start the functions.
    for _ in 0..first {
        call(&stack).await;
    }
    let mut alone = Vec::new();
    for _ in 0..alone_calls {
        alone.push(call(&stack).await);
    }
    report(&format!("{alone_calls} calls one after the other"), &alone);
    let at_once = join_all((0..at_once_calls).map(|_| call(&stack))).await;
    report(&format!("{at_once_calls} calls at once"), &at_once);
    drop(stack);
    std::fs::remove_dir_all(&state).unwrap();
}

async fn attach(stack: &Stack, http: &reqwest::Client, number: usize) {
    let about = &stack.description;
    let send = async |path: String, body: Value| -> Value {
        let url = format!("{}/api/{}{path}", about.api_url, about.slug);
        http.post(url).bearer_auth(&about.token).json(&body).send().await.unwrap().json().await.unwrap()
    };
    let url = format!("{}/customers?phone={{{{caller_phone_number}}}}&n={number}", about.standins.crm);
    let tool = json!({
        "type": "api_request", "label": format!("Look-up {number}"), "method": "GET", "url": url,
        "headers": {"x-api-key": {"mode": "fixed", "value": "crm-local-key"}},
        "execute_on_call_start": true, "attach_to_agent": false,
    });
    let tool = send("/tools".to_owned(), tool).await;
    let row = send(format!("/agents/{}/tools/attach", about.agent_id), json!({"tool_id": tool["id"]})).await;
    assert!(row["id"].is_string(), "{row}");
}

async fn call(stack: &Stack) -> Measured {
    let about = &stack.description;
    let call = IncomingCall::new(&about.twilio_account_sid, "+14155550123", &about.phone_number);
    let url = format!("{}/api/phone-number/{}/incoming", about.api_url, about.phone_number_id);
    let signed = call.signed(&url, &about.twilio_auth_token);
    let begun = Instant::now();
    let answered = signed.post().await.unwrap();
    let twiml = begun.elapsed();
    let text = answered.twiml().unwrap();
    let id = text.split("/transport").next().unwrap().rsplit('/').next().unwrap().to_owned();
    let (context, whole) = loop {
        let heard = stack.vapi.heard(&id);
        if let Some(message) = heard.first() {
            let lines = message["message"]["content"].as_str().unwrap().lines().count();
            break (begun.elapsed(), lines == TOOLS + 1);
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "call {id} was told nothing");
        sleep(Duration::from_millis(2)).await;
    };
    let milliseconds = |duration: Duration| duration.as_secs_f64() * 1_000.0;
    Measured { twiml: milliseconds(twiml), context: milliseconds(context), whole }
}

fn report(what: &str, measured: &[Measured]) {
    let spread = |of: fn(&Measured) -> f64| {
        let mut all: Vec<f64> = measured.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        format!("{:.0} / {:.0} / {:.0} ms", all[0], all[all.len() / 2], all[all.len() - 1])
    };
    println!("{what}, {TOOLS} tools of {EACH} ms each; least / median / most:");
    println!("  to the TwiML     {}", spread(|one| one.twiml));
    let whole = measured.iter().filter(|one| one.whole).count();
    println!("  to the context   {}, all of it at once in {whole} calls", spread(|one| one.context));
}
