//! AG-UI streams: our strict client agrees with the real clients, and runs obey it.
//!
//! The expectations are two client versions' reactions to recorded streams; a run must conform for every sequence of
//! a turn's events.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

use http_body_util::BodyExt;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use shared::{
    Error,
    http::{Frames, Reply, Request, answer_streaming},
    models::{OfferedTool, PendingCall, Timestamp, ToolResult, TurnCall},
    planner::{Observer, TurnEvent, TurnStep, Widget},
};
use stream::agui::{Run, failed};
use tests::agui_client::Client;

#[test]
fn the_rules_are_those_of_both_versions_of_the_client() {
    let recorded: Value = serde_json::from_str(include_str!("../../fixtures/agui_streams.json")).unwrap();
    let vectors = recorded["vectors"].as_array().unwrap();
    assert!(vectors.len() > 20);
    for vector in vectors.iter().filter(|vector| vector.get("status").is_none()) {
        let name = &vector["name"];
        let observed = ["ag-ui-client-0.0.59", "ag-ui-client-1.0.0"].map(|version| &vector["observed"][version]);
        let accepted = observed.iter().all(|observed| observed["accepted"] == true);
        let client = Client::read(vector["body"].as_str().unwrap());
        assert_eq!(client.is_ok(), accepted, "{name}: {:?}", client.err());
        let Ok(client) = client else { continue };
        assert_eq!(json!(client.messages), observed[0]["messages_after"], "{name}");
        assert_eq!(json!(client.error), observed[0].get("run_error").cloned().unwrap_or_default(), "{name}");
    }
}

/// An event of a turn.
#[derive(Debug, Clone)]
pub(crate) enum Told {
    Step(TurnStep),
    Token(String),
    Call(u8),
    FrontEndCall(u8),
    Result(u8),
    Widget,
    Consent,
    Message(String),
    WhatWasSaid,
}

pub(crate) fn told() -> impl Strategy<Value = Told> {
    let step = prop_oneof![
        Just(TurnStep::Plan),
        Just(TurnStep::Execute),
        Just(TurnStep::Answer),
        Just(TurnStep::Validate),
        Just(TurnStep::Consent)
    ];
    prop_oneof![
        step.prop_map(Told::Step),
        "(?s).{0,8}".prop_map(Told::Token),
        (0..3u8).prop_map(Told::Call),
        (0..3u8).prop_map(Told::FrontEndCall),
        (0..3u8).prop_map(Told::Result),
        Just(Told::Widget),
        Just(Told::Consent),
        "(?s).{0,8}".prop_map(Told::Message),
        Just(Told::WhatWasSaid),
    ]
}

pub(crate) fn tell(run: &mut Run, told: &Told, said: &mut String) {
    let arguments: Map<String, Value> = Map::from_iter([("query".to_owned(), json!("a\r\n\r\nb"))]);
    let id = |number: &u8| format!("call_1_{number}");
    match told {
        Told::Step(step) => run.event(TurnEvent::Progress { node: step.node(), step: *step }),
        Told::Token(words) => {
            said.push_str(words);
            run.event(TurnEvent::Token(words));
        }
        Told::Call(number) => run.event(TurnEvent::ToolCall { id: &id(number), tool: "find", arguments: &arguments }),
        Told::FrontEndCall(number) => {
            run.event(TurnEvent::FrontEndCall { id: &id(number), tool: "show", arguments: &arguments });
        }
        Told::Result(number) => {
            let (outcome, result) = (TurnCall::Succeeded, json!({"found": null}));
            let named = json!({"tool": "find", "arguments": arguments, "outcome": outcome, "result": result});
            let result: ToolResult = serde_json::from_value(named).unwrap();
            run.event(TurnEvent::ToolResult { id: &id(number), result: &result });
        }
        Told::Widget => run.event(TurnEvent::Widget(&Widget::List { title: None, items: vec!["x".to_owned()] })),
        Told::Consent => run.event(TurnEvent::Consent(&pending())),
        Told::Message(whole) => run.event(TurnEvent::Message(whole)),
        Told::WhatWasSaid => run.event(TurnEvent::Message(said.trim())),
    }
}

fn pending() -> PendingCall {
    let tool: OfferedTool = serde_json::from_value(json!({"name": "send", "kind": "built_in"})).unwrap();
    serde_json::from_value(json!({
        "id": "c1", "tool": tool, "arguments": {"text": "Hi"}, "turn": 1, "expires_at": Timestamp::now(),
    }))
    .unwrap()
}

proptest! {
    #[test]
    fn the_events_of_a_run_are_in_order(turn in prop::collection::vec(told(), 0..24), ends in 0..4u8) {
        let frames = Frames::default();
        let mut run = Run::start(frames.clone(), "t-1", "r-1");
        let mut said = String::new();
        for told in &turn {
            tell(&mut run, told, &mut said);
        }
        match ends {
            0 => run.finish(),
            1 => run.answered("The answer.", Some(&json!({"type": "list", "items": []})), &json!({"receipt": {"entries": []}})),
            2 => failed(&frames, &Error::NotFound("thread")),
            _ => {
                run.finish();
                run.finish();
                // Late events are dropped.
                tell(&mut run, &Told::Token("late".to_owned()), &mut said);
                run.finish();
            }
        }
        let written = frames.written();
        prop_assert!(!written.contains('\r'), "{written:?}");
        for frame in written.strip_suffix("\n\n").unwrap().split("\n\n") {
            prop_assert!(frame.starts_with("data: ") && !frame.contains('\n'), "{frame:?}");
        }
        let client = Client::read(&written);
        prop_assert!(client.is_ok(), "{:?}: {written}", client.err());
        let client = client.unwrap();
        prop_assert!(client.is_over());
        let mut ids: Vec<&str> = client.messages.iter().map(|message| message["id"].as_str().unwrap()).collect();
        let told = ids.len();
        ids.sort_unstable();
        ids.dedup();
        prop_assert_eq!(ids.len(), told, "ids of messages are different: {}", written);
        // Each result follows its call, and no call has two.
        let results = client.messages.iter().filter(|message| message["role"] == "tool");
        let mut answered: Vec<&str> = results.map(|message| message["toolCallId"].as_str().unwrap()).collect();
        let told = answered.len();
        answered.sort_unstable();
        answered.dedup();
        prop_assert_eq!(answered.len(), told, "{}", written);
        for (at, message) in client.messages.iter().enumerate().filter(|(_, message)| message["role"] == "tool") {
            let before = &client.messages[..at];
            prop_assert!(before.iter().any(|call| call["id"] == message["toolCallId"]), "{written}");
        }
    }

    #[test]
    fn a_run_sends_no_call_and_no_result_that_its_client_has(
        first in prop::collection::vec(told(), 0..24), second in prop::collection::vec(told(), 0..24),
    ) {
        let mut messages: Vec<Value> = Vec::new();
        for (id, turn) in [("r-1", &first), ("r-2", &second)] {
            let frames = Frames::default();
            let mut run = Run::start(frames.clone(), "t-1", id);
            run.client_has(&messages);
            let mut said = String::new();
            for told in turn {
                tell(&mut run, told, &mut said);
            }
            run.finish();
            messages = Client::read_after(messages, &frames.written()).unwrap().messages;
        }
        let calls = messages.iter().filter_map(|message| message["toolCalls"].as_array()).flatten();
        let calls: Vec<&Value> = calls.collect();
        for call in &calls {
            let arguments = call["function"]["arguments"].as_str().unwrap();
            prop_assert!(serde_json::from_str::<Value>(arguments).is_ok(), "{}", arguments);
        }
        let results: Vec<&Value> = messages.iter().filter_map(|message| message.get("toolCallId")).collect();
        for mut ids in [calls.iter().map(|call| &call["id"]).collect::<Vec<_>>(), results] {
            let told = ids.len();
            ids.sort_by_key(ToString::to_string);
            ids.dedup();
            prop_assert_eq!(ids.len(), told, "{:#?}", messages);
        }
    }

    #[test]
    fn a_client_ends_with_the_whole_answer(words in prop::collection::vec("[ a-z]{0,4}", 0..6), whole in "[a-z][a-z ]{0,12}[a-z]", grows in any::<bool>()) {
        let frames = Frames::default();
        let mut run = Run::start(frames.clone(), "t-1", "r-1");
        let mut said = String::new();
        for words in &words {
            tell(&mut run, &Told::Token(words.clone()), &mut said);
        }
        let whole = if grows { format!("{}{whole}", said.trim_start()) } else { whole };
        run.event(TurnEvent::Message(&whole));
        run.answered(&whole, None, &json!({}));
        let client = Client::read(&frames.written()).unwrap();
        let last = client.messages.last().unwrap()["content"].as_str().unwrap();
        prop_assert_eq!(last.split_whitespace().collect::<String>(), whole.split_whitespace().collect::<String>());
        if grows {
            prop_assert_eq!(client.messages.len(), 1, "what only grew is one message");
        }
    }
}

#[tokio::test]
async fn a_panic_in_the_middle_is_an_error_that_clients_understand() {
    let handle = async |_: Request| {
        let frames = Frames::default();
        let mut run = Run::start(frames.clone(), "t-1", "r-1");
        let work = async move {
            run.event(TurnEvent::Token("Hel"));
            tokio::task::yield_now().await;
            panic!("a fault of ours");
        };
        Ok(Reply::events(frames, work, failed))
    };
    let (response, _) = answer_streaming("stream", Request::default(), handle).await;
    let Ok(body) = response.into_body().collect().await;
    let client = Client::read(std::str::from_utf8(&body.to_bytes()).unwrap()).unwrap();
    assert_eq!((client.error.as_deref(), &client.messages[0]["content"]), (Some("internal error"), &json!("Hel")));
}
