//! Streamed conversations: a client's view of a turn, in both wire forms.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::large_futures,
    reason = "a test says what is wrong and stops"
)]

mod copilotkit;
mod endings;
mod following;
mod paused_turns;
mod refusals;

use serde_json::{Value, json};
use tests::{
    Options, Streamed, World, agui_client::Client, paced_model::PacedModel, run_input, standins::Fault as Standin,
    standins::llm::Turn,
};

use crate::chat::{WAYS, Way, find, send, sent};

/// A model's turn without a tool.
pub(crate) const NO_TOOL: &str = r#"{"tool": "none", "reason": "a greeting", "arguments": {}}"#;

pub(crate) fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

/// The events of a stream that a client of AG-UI takes to its end.
pub(crate) async fn taken(stream: &mut Streamed) -> (Vec<Value>, Client) {
    taken_after(Vec::new(), stream).await
}

/// The same for a client that has these messages of earlier runs.
pub(crate) async fn taken_after(messages: Vec<Value>, stream: &mut Streamed) -> (Vec<Value>, Client) {
    assert_eq!(stream.status, 200);
    let events = stream.rest().await;
    let client = Client::read_after(messages, &stream.text);
    let client = client.unwrap_or_else(|problem| panic!("{problem}: {}", stream.text));
    assert!(client.is_over(), "{}", stream.text);
    (events, client)
}

/// The ids of a client's calls: each is there once, with arguments that can be read and with one result.
pub(crate) fn whole_calls(client: &Client) -> Vec<&str> {
    let mut ids = Vec::new();
    for call in client.messages.iter().filter_map(|message| message["toolCalls"].as_array()).flatten() {
        let (id, arguments) = (call["id"].as_str().unwrap(), call["function"]["arguments"].as_str().unwrap());
        let arguments: Value = serde_json::from_str(arguments).unwrap_or_else(|error| panic!("{error}: {call}"));
        let results = client.messages.iter().filter(|message| message["toolCallId"] == id).count();
        assert!(arguments.is_object() && !ids.contains(&id), "{:#?}", client.messages);
        assert_eq!(results, 1, "{id}: {:#?}", client.messages);
        ids.push(id);
    }
    ids
}

/// The input of a run whose client has these messages of earlier runs.
pub(crate) fn with_history(mut input: Value, messages: &[Value]) -> Value {
    input["messages"].as_array_mut().unwrap().extend_from_slice(messages);
    input
}

/// The names of our own events.
pub(crate) fn customs(events: &[Value]) -> Vec<&str> {
    events.iter().filter(|event| event["type"] == "CUSTOM").map(|event| event["name"].as_str().unwrap()).collect()
}

/// The events' texts in one line, without steps and calls.
fn said(events: &[Value], member: &str) -> String {
    events.iter().filter_map(|event| event[member].as_str()).collect()
}

#[tokio::test]
async fn words_are_told_as_the_model_says_them() {
    let mut world = World::start().await;
    let model = PacedModel::start(&[NO_TOOL; 2]).await;
    world.model_at(&model.url);

    let mut stream = world.chat_stream(&json!({"message": "Hi"})).await;
    assert_eq!((stream.status, stream.headers["content-type"].as_str()), (200, "text/event-stream"));
    assert_eq!((&stream.headers["cache-control"][..], &stream.headers["x-accel-buffering"][..]), ("no-store", "no"));
    let begun = stream.until(|event| event["step"] == "answer").await;
    assert_eq!(begun[0], json!({"type": "progress", "node": "query_execution", "step": "plan"}));
    for words in ["Hel", "lo, ", "Ada"] {
        model.says(words);
        // The model has not finished: nobody has let it say more.
        assert_eq!(stream.next().await.unwrap(), json!({"type": "token", "content": words}));
    }
    model.ends();
    let rest = stream.rest().await;
    assert_eq!(types(&rest), ["progress", "message", "done"]);
    assert_eq!(rest[1], json!({"type": "message", "content": "Hello, Ada", "role": "assistant"}));
    assert_eq!((&rest[2]["thread_id"], &rest[2]["metadata"]["incomplete"]), (&json!("default"), &json!(false)));
    assert_eq!(rest[2].get("widget"), None);

    let mut stream = world.run_agent(&run_input("t1", "u1", "Hi")).await;
    let begun = stream.until(|event| event["stepName"] == "answer").await;
    assert_eq!(types(&begun), ["RUN_STARTED", "STEP_STARTED", "STEP_FINISHED", "STEP_STARTED"]);
    assert_eq!((&begun[0]["threadId"], &begun[0]["runId"]), (&json!("t1"), &json!("run-u1")));
    model.says("Hel");
    let first = [stream.next().await.unwrap(), stream.next().await.unwrap()];
    assert_eq!(
        (types(&first), &first[1]["delta"]),
        (vec!["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT"], &json!("Hel"))
    );
    model.says("lo");
    assert_eq!(stream.next().await.unwrap()["delta"], "lo");
    model.ends();
    let (rest, client) = taken(&mut stream).await;
    assert_eq!(rest.last().unwrap(), &json!({"type": "RUN_FINISHED", "threadId": "t1", "runId": "run-u1"}));
    assert_eq!(client.messages.len(), 1);
    assert_eq!((&client.messages[0]["role"], &client.messages[0]["content"]), (&json!("assistant"), &json!("Hello")));
    assert_eq!(model.asked(), 4);
}

#[tokio::test]
async fn a_call_and_its_result_are_told_before_the_answer() {
    for way in WAYS {
        let world = way.world().await;
        find(&world).await;
        let script = || [way.call("find", json!({"query": "sales 2024"})), Turn::text("They were 7 million.")];
        world.llm.script(script());
        let events = world.chat_stream(&json!({"message": "What were the sales?"})).await.rest().await;
        let at = |kind: &str| events.iter().position(|event| event["type"] == kind).unwrap_or_else(|| panic!("{kind}"));
        let order = ["tool_call", "tool_result", "token", "message", "done"].map(at);
        assert!(order.is_sorted(), "{way:?}: {events:#?}");
        let (call, result) = (&events[order[0]], &events[order[1]]);
        assert_eq!((&call["tool"], &call["arguments"]), (&json!("find"), &json!({"query": "sales 2024"})));
        assert_eq!((&result["id"], &result["outcome"]), (&call["id"], &json!("succeeded")));
        assert!(result["result"].to_string().contains("The sales of 2024 were 7 million"), "{result}");
        assert_eq!(said(&events, "content"), "They were 7 million.They were 7 million.", "tokens, and the whole");
        assert_eq!(types(&events).iter().filter(|kind| **kind == "token").count(), 4);

        world.llm.script(script());
        let (events, client) = taken(&mut world.run_agent(&run_input("t1", "u1", "And again?")).await).await;
        assert_eq!(client.messages.len(), 3, "{:#?}", client.messages);
        let function = json!({"name": "find", "arguments": r#"{"query":"sales 2024"}"#});
        assert_eq!(client.messages[0]["toolCalls"][0]["function"], function);
        assert_eq!(client.messages[1]["toolCallId"], client.messages[0]["id"]);
        assert_eq!(customs(&events), ["receipt"], "nothing is said of what succeeded: {events:#?}");
        let result: Value = serde_json::from_str(client.messages[1]["content"].as_str().unwrap()).unwrap();
        assert!(result.to_string().contains("The sales of 2024 were 7 million"), "{result}");
        assert_eq!(client.messages[2]["content"], "They were 7 million.");
        let steps: Vec<&Value> = events.iter().filter(|event| event["type"] == "STEP_STARTED").collect();
        let steps: Vec<&str> = steps.iter().map(|event| event["stepName"].as_str().unwrap()).collect();
        assert_eq!(steps, ["plan", "execute", "answer", "validate"], "{way:?}");
    }
}

#[tokio::test]
async fn a_call_that_failed_is_told_apart_from_one_that_answered() {
    let world = World::start().await;
    send(&world).await;
    world.twilio.inject(Standin::status(400));
    world
        .llm
        .script([Way::Written.call("send_confirmation", json!({"text": "Hi"})), Turn::text("It could not be sent.")]);
    let (events, _) = taken(&mut world.run_agent(&run_input("t1", "u1", "Send Hi")).await).await;
    let at = types(&events).iter().position(|kind| *kind == "TOOL_CALL_RESULT").unwrap();
    let value = json!({"toolCallId": events[at]["toolCallId"], "outcome": "failed"});
    assert_eq!(events[at + 1], json!({"type": "CUSTOM", "name": "tool_outcome", "value": value}));
}

#[tokio::test]
async fn a_result_may_be_drawn() {
    let table = json!({"type": "table", "columns": ["year", "sum"], "rows": [[2024, 7]]});
    let twilio = tests::standins::twilio::Options::default();
    let service = tests::standins::twilio::start("127.0.0.1:0".parse().unwrap(), twilio).unwrap();
    service.inject(Standin::body(json!({"widget": table, "sum": 7})).times(9));
    let options = Options { open_hosts: vec![service.address().to_string()], ..Options::default() };
    let world = World::with(options).await;
    let row = world.tool(&tests::api_request("GET", &service.url)).await;
    let name = row["name"].as_str().unwrap().replace('-', "_");
    let script = || [Way::Written.call(&name, json!({})), Turn::text("Here is the table.")];
    world.llm.script(script());
    let events = world.chat_stream(&json!({"message": "Show me"})).await.rest().await;
    assert!(events.contains(&json!({"type": "widget", "widget": table})), "{events:#?}");
    assert_eq!(events.last().unwrap()["widget"], table);

    world.llm.script(script());
    let (_, client) = taken(&mut world.run_agent(&run_input("t1", "u1", "Show me")).await).await;
    let widgets: Vec<&Value> = client.messages.iter().filter(|message| message["role"] == "activity").collect();
    assert_eq!(widgets.len(), 1, "{:#?}", client.messages);
    assert_eq!((&widgets[0]["activityType"], &widgets[0]["content"]), (&json!("widget"), &table));
    // It is there again when the page is.
    let (_, client) = taken(&mut world.connect("t1").await).await;
    let drawn: Vec<&Value> = client.messages.iter().filter(|message| message["content"] == table).collect();
    assert_eq!(drawn.len(), 1, "{:#?}", client.messages);
}

#[tokio::test]
async fn a_receipt_lists_the_actions_independent_of_the_answer() {
    for answer in ["C'est fait\u{202f}!", "¡Listo! Ya lo he enviado.", "I have sent nothing."] {
        let world = World::start().await;
        send(&world).await;
        let script = || [Way::Written.call("send_confirmation", json!({"text": "Late"})), Turn::text(answer)];
        world.llm.script(script());
        let (events, client) = taken(&mut world.run_agent(&run_input("t1", "u1", "Tell Ada I am late")).await).await;
        assert_eq!(client.messages.last().unwrap()["content"], answer);
        assert_eq!((customs(&events), types(&events).last()), (vec!["receipt"], Some(&"RUN_FINISHED")));
        let receipt = &events[events.len() - 2]["value"];
        let entry = &receipt["entries"][0];
        assert_eq!((&entry["tool"], &entry["state"]), (&json!("send_confirmation"), &json!("done")), "{receipt}");
        assert_eq!(entry["text"], "Send confirmation: sent to +14155550101.", "the author fixed the number");
        assert_eq!((&receipt["no_action"], sent(&world)), (&json!(false), 1));
        // It is there again when the page is.
        let (_, shown) = taken(&mut world.connect("t1").await).await;
        assert_eq!(&shown.messages.last().unwrap()["metadata"]["receipt"], receipt);

        world.llm.script(script());
        let events = world.chat_stream(&json!({"message": "Tell Ada I am late"})).await.rest().await;
        assert_eq!(events.last().unwrap()["metadata"]["receipt"]["entries"][0]["state"], "done");
    }
    // Nothing was done, and something could have been.
    let world = World::start().await;
    send(&world).await;
    world.llm.script([Way::Written.none(), Turn::text("SMS sent to Ana!")]);
    let (events, _) = taken(&mut world.run_agent(&run_input("t1", "u1", "Tell Ada")).await).await;
    assert_eq!(events[events.len() - 2]["value"], json!({"entries": [], "no_action": true}));
}

#[tokio::test]
async fn the_same_message_again_is_the_same_answer() {
    let world = World::start().await;
    send(&world).await;
    let call = Way::Written.call("send_confirmation", json!({"text": "Hi"}));
    world.llm.script([call, Turn::text("I have sent it.")]);
    let mut input = run_input("t1", "u1", "Send Hi");
    let (_, first) = taken(&mut world.run_agent(&input).await).await;
    // Another run, the same message.
    input["runId"] = json!("another");
    let (events, again) = taken(&mut world.run_agent(&input).await).await;
    assert_eq!(events[0]["runId"], "another");
    assert_eq!(again.messages.last().unwrap()["content"], first.messages.last().unwrap()["content"]);
    assert_eq!((sent(&world), world.asked_of_model().len()), (1, 2));
    input["messages"][0]["content"] = json!("Something else");
    let path = "/copilotkit/agent/default/run";
    let refused = world.send("stream", &world.stream_event(&world.home.user_id, path, &input)).await;
    assert_eq!(refused.status, 409, "{}", refused.body);

    let event = world.stream_event(&world.home.user_id, "/agent/stream", &json!({"message": "Hi"}));
    let event = event.header("idempotency-key", "k1");
    world.llm.script([Way::Written.none(), Turn::text("Hello!")]);
    let first = world.open_stream(&event).await.rest().await;
    let again = world.open_stream(&event).await.rest().await;
    assert_eq!((first.last(), types(&again)), (again.last(), vec!["message", "done"]));
}
