//! The chat with other projects' front ends.
//!
//! `@ag-ui/client` in CopilotKit's pinned version and in the current one, and `@copilotkit/core` with both of its
//! transports.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::conversation::{Chat, installed};

/// The model's greeting in `check.mjs`.
const GREETING: &str = "Good morning! What can I do for you today?";

pub(crate) fn are_served(chat: &Chat) {
    let Some(directory) = installed() else { return };
    let environment = [
        ("STREAM", chat.at("/stream_url")),
        ("TOKEN", chat.at("/token")),
        ("LLM", chat.at("/standins/llm")),
        ("TWILIO", chat.at("/standins/twilio")),
        ("OTHER_SLUG", chat.at("/other_slug")),
        ("REMINDER", &chat.reminder),
        ("SALES", &chat.sales),
    ];
    let run =
        std::process::Command::new("node").arg("check.mjs").current_dir(directory).envs(environment).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let seen: Value = serde_json::from_slice(&run.stdout).unwrap();
    for client in ["pinned", "current"] {
        agent(&seen[client], &chat.reminder, client);
    }
    for transport in ["rest", "single"] {
        core(&seen[transport], transport);
    }
}

/// The roles of a conversation's messages.
fn roles(seen: &Value) -> Vec<&str> {
    seen["messages"].as_array().unwrap().iter().map(|message| message["role"].as_str().unwrap()).collect()
}

fn last(seen: &Value) -> &Value {
    &seen["messages"].as_array().unwrap().last().unwrap()["content"]
}

/// Asserts that a run began and ended without an error of the client.
fn went_well(seen: &Value, what: &str) {
    let events = seen["events"].as_array().unwrap();
    assert_eq!(
        (events.first(), events.last(), seen.get("error"), seen.get("failed")),
        (Some(&json!("RUN_STARTED")), Some(&json!("RUN_FINISHED")), None, None),
        "{what}: {seen}"
    );
}

fn agent(seen: &Value, reminder: &str, client: &str) {
    for name in
        ["answer", "tool", "history", "nothing", "widget", "frontEndCall", "frontEndAnswer", "stopped", "afterStop"]
    {
        went_well(&seen[name], &format!("{client} {name}"));
    }

    // The words arrive one by one, not all at the end.
    let answer = &seen["answer"];
    assert_eq!((roles(answer), last(answer)), (vec!["user", "assistant"], &json!(GREETING)), "{client}");
    assert!(answer["deltas"].as_u64() > Some(5), "{client}: {answer}");
    assert!(answer["spread"].as_u64() > Some(300), "{client}: the words came together: {answer}");

    // The result of a server tool is shown, and a client that opens the thread anew gets the same conversation.
    let tool = &seen["tool"];
    assert_eq!(roles(tool), ["user", "assistant", "user", "assistant", "tool", "assistant"], "{client}");
    assert_eq!(tool["messages"][3]["calls"], json!(["current_time"]), "{client}");
    let result: Value = serde_json::from_str(tool["results"][0].as_str().unwrap()).unwrap();
    assert_eq!(result["time_zone"], "Europe/Lisbon", "{client}: {result}");
    let said = |seen: &Value| -> Vec<Value> {
        let messages = seen["messages"].as_array().unwrap().iter();
        messages.filter(|message| message["content"].is_string() && message["role"] != "tool").cloned().collect()
    };
    assert_eq!(said(&seen["history"]), said(tool), "{client}");
    assert_eq!(seen["nothing"]["messages"], json!([]), "{client}");
    assert_eq!(seen["widget"]["activities"], json!([["widget", "table"]]), "{client}: {}", seen["widget"]);

    // A front-end tool is called and left to the client; its result leads to the answer.
    let (call, answer) = (&seen["frontEndCall"], &seen["frontEndAnswer"]);
    assert_eq!((&call["results"], &seen["frontEndArguments"]), (&json!([]), &json!({"title": "Wall"})), "{client}");
    assert_eq!((roles(call), last(answer)), (vec!["user", "assistant"], &json!("Blue it is.")), "{client}");

    consent(&seen["consent"], reminder, client);

    let stopped = &seen["stopped"];
    assert_eq!(
        (&stopped["answer"]["stopped"], &seen["nothingToStop"]["stopped"]),
        (&json!(true), &json!(false)),
        "{client}"
    );
    // The whole 2,000 words would take fifty seconds.
    let (deltas, text) = (stopped["deltas"].as_u64().unwrap(), last(stopped).as_str().unwrap());
    assert!((3..1_500).contains(&deltas) && text.starts_with("word0 word1 word2"), "{client}: {deltas}, {text}");
    assert_eq!(last(&seen["afterStop"]), "Here I am.", "{client}");

    // A failure is reported in the stream; the thread continues.
    let failed = &seen["failed"];
    assert_eq!(failed["events"].as_array().unwrap().last(), Some(&json!("RUN_ERROR")), "{client}: {failed}");
    assert!(failed["failed"]["message"].is_string() && failed["failed"]["code"].is_string(), "{client}: {failed}");
    assert_eq!(last(&seen["afterFailure"]), "Hello again.", "{client}");
    // A refused run never begins.
    for (name, status) in [("wrongAgent", "HTTP 404"), ("noToken", "HTTP 401"), ("otherOrganization", "HTTP 404")] {
        let refused = &seen[name];
        assert!(refused["error"].as_str().is_some_and(|error| error.starts_with(status)), "{client} {name}: {refused}");
        assert_eq!(refused["events"], json!([]), "{client} {name}");
    }
}

/// A tool with an effect waits for consent and runs only after it.
fn consent(seen: &Value, reminder: &str, client: &str) {
    let sent = BTreeMap::from([("approved", json!([0, 1])), ("refused", json!([0, 0])), ("cancelled", json!([0, 0]))]);
    for (name, sent) in sent {
        let seen = &seen[name];
        went_well(&seen["asked"], client);
        went_well(&seen["answered"], client);
        let interrupt = &seen["interrupt"];
        assert_eq!(seen["asked"]["outcome"]["type"], "interrupt", "{client} {name}: {seen}");
        assert_eq!(
            (&interrupt["reason"], &interrupt["metadata"]["tool"], &interrupt["metadata"]["arguments"]["text"]),
            (&json!("tool_consent"), &json!(reminder), &json!("See you at nine")),
            "{client}: {interrupt}"
        );
        assert!(interrupt["message"].is_string() && interrupt["responseSchema"].is_object(), "{client}: {interrupt}");
        assert_eq!(seen["sent"], sent, "{client} {name}: {seen}");
    }
    assert_eq!(last(&seen["approved"]["answered"]), "I have sent the reminder.", "{client}");
}

fn core(seen: &Value, transport: &str) {
    assert_eq!((&seen["status"], &seen["transport"]), (&json!("connected"), &json!(transport)), "{seen}");
    assert_eq!((&seen["agents"], &seen["empty"]), (&json!(["default"]), &json!(0)), "{transport}");
    let answer = &seen["answer"];
    assert_eq!((roles(answer), last(answer)), (vec!["user", "assistant"], &json!(GREETING)), "{transport}");
    assert!(answer["deltas"].as_u64() > Some(5), "{transport}: {answer}");
    assert_eq!(seen["history"], answer["messages"], "{transport}");

    // The core runs its own tool and repeats the request by itself.
    let front = &seen["frontEnd"];
    assert_eq!(seen["picked"], json!([{"title": "Wall"}]), "{transport}");
    assert_eq!((roles(front), last(front)), (vec!["user", "assistant", "tool", "assistant"], &json!("Blue it is.")));

    let consent = &seen["consent"];
    assert_eq!((&consent["reason"], &consent["sent"]), (&json!("tool_consent"), &json!(1)), "{transport}: {consent}");
    assert_eq!(consent["last"]["content"], "I have sent the reminder.", "{transport}");
    assert!((3..1_500).contains(&seen["stopped"]["deltas"].as_u64().unwrap()), "{transport}: {}", seen["stopped"]);
    assert_eq!(seen["errors"], json!([]), "{transport}: up to here nothing was wrong");
    let failures = seen["failures"].as_array().unwrap();
    assert!(
        failures.iter().any(|failure| failure.as_str().unwrap().starts_with("agent_run_error_event")),
        "{failures:?}"
    );
    assert_eq!(seen["noToken"]["status"], "error", "{transport}: {}", seen["noToken"]);
}
