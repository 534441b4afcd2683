//! Runs AG-UI's clients (CopilotKit's pinned version and the current one) on streams, with Node.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test says what is wrong and stops"
)]

use std::{
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
};

use proptest::{prelude::*, strategy::ValueTree as _, test_runner::TestRunner};
use serde_json::{Value, json};
use shared::{Error, http::Frames};
use stream::agui::{Run, failed};

use crate::agui::{tell, told};

/// Each client's reaction to each stream: `{name: {"pinned": {"accepted", "messages", "error"?}, "current": {…}}}`.
/// `None`, with a message, if the clients are not installed.
fn taken(streams: &Value) -> Option<Value> {
    let clients = Path::new(env!("CARGO_MANIFEST_DIR")).join("chat_clients");
    if !clients.join("node_modules/made-from").is_file() {
        println!("skipped: AG-UI's clients are not there; tests/chat_clients/install installs them");
        return None;
    }
    let mut node = Command::new("node");
    let node = node.arg("take.mjs").current_dir(clients).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut node) = node else {
        println!("skipped: there is no Node to run AG-UI's clients with");
        return None;
    };
    node.stdin.take().unwrap().write_all(streams.to_string().as_bytes()).unwrap();
    let done = node.wait_with_output().unwrap();
    assert!(done.status.success(), "{}", done.status);
    Some(serde_json::from_slice(&done.stdout).unwrap())
}

#[test]
fn the_clients_accept_and_refuse_as_we_assume() {
    let vectors: Value = serde_json::from_str(include_str!("../../fixtures/agui_streams.json")).unwrap();
    let vectors = &vectors["vectors"];
    let Some(taken) = taken(vectors) else { return };
    for vector in vectors.as_array().unwrap() {
        for (client, version) in [("pinned", "ag-ui-client-0.0.59"), ("current", "ag-ui-client-1.0.0")] {
            let (seen, known) = (&taken[vector["name"].as_str().unwrap()][client], &vector["observed"][version]);
            assert_eq!(seen["accepted"], known["accepted"], "{client} {}: {seen}", vector["name"]);
            if known["accepted"] == json!(true) {
                assert_eq!(seen["messages"], known["messages_after"], "{client} {}", vector["name"]);
            }
        }
    }
}

#[test]
fn the_clients_accept_every_event_of_our_runs() {
    let turns = prop::collection::vec(told(), 0..16);
    let mut runner = TestRunner::deterministic();
    let streams: Vec<Value> = (0..200)
        .map(|number| {
            let frames = Frames::default();
            let mut run = Run::start(frames.clone(), "thread-1", "run-1");
            let mut said = String::new();
            for told in turns.new_tree(&mut runner).unwrap().current() {
                tell(&mut run, &told, &mut said);
            }
            match number % 3 {
                0 => run.finish(),
                1 => run.answered(
                    "The answer.",
                    Some(&json!({"type": "list", "items": []})),
                    &json!({"receipt": {"entries": []}}),
                ),
                _ => failed(&frames, &Error::NotFound("thread")),
            }
            json!({"name": number.to_string(), "body": frames.written()})
        })
        .collect();
    let Some(taken) = taken(&json!(streams)) else { return };
    for stream in &streams {
        for client in ["pinned", "current"] {
            let seen = &taken[stream["name"].as_str().unwrap()][client];
            assert_eq!(seen["accepted"], json!(true), "{client}: {seen}\n{}", stream["body"].as_str().unwrap());
        }
    }
}
