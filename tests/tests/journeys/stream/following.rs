//! A turn under way, seen by a reload, a second tab and a repeated message.

use serde_json::json;
use tests::{World, paced_model::PacedModel, run_input, standins::llm::Turn};

use super::{NO_TOOL, customs, taken, types};
use crate::chat::{send, sent};

#[tokio::test]
async fn a_reload_and_a_second_tab_follow_the_turn_to_its_end() {
    let mut world = World::start().await;
    send(&world).await;
    let call = r#"{"tool": "send_confirmation", "arguments": {"text": "Hi"}}"#;
    let model = PacedModel::start(&[call]).await;
    world.model_at(&model.url);
    let mut first = world.run_agent(&run_input("t1", "u1", "Send Hi")).await;
    model.says("It is ");
    first.until_type("TEXT_MESSAGE_CONTENT").await;

    let shown = world.threads(&world.home.user_id, "GET", "/t1").await.expect(200);
    let running = &shown["running"];
    assert_eq!((&running["message_id"], &running["message"]), (&json!("u1"), &json!("Send Hi")), "{shown}");
    assert_eq!(
        (&running["calls"][0]["label"], &running["calls"][0]["state"]),
        (&json!("Send confirmation"), &json!("succeeded"))
    );
    assert_eq!((shown["items"].as_array().unwrap().len(), &shown["items"][0]["content"]), (1, &json!("Send Hi")));

    // A second tab, the same message again, and the same text without an id.
    let mut tab = world.connect("t1").await;
    let mut again = world.run_agent(&run_input("t1", "u1", "Send Hi")).await;
    let mut nameless = world.chat_stream(&json!({"message": "Send Hi", "thread_id": "t1"})).await;
    let seen = tab.until_type("TOOL_CALL_RESULT").await;
    assert_eq!((types(&seen)[1], &seen[2]["name"]), ("MESSAGES_SNAPSHOT", &json!("running")), "{seen:#?}");
    again.until_type("TOOL_CALL_RESULT").await;
    nameless.until_type("tool_result").await;
    model.says("sent.");
    model.ends();
    let (events, client) = taken(&mut first).await;
    assert_eq!(
        (client.messages.last().unwrap()["content"].as_str(), customs(&events)),
        (Some("It is sent."), vec!["receipt"])
    );
    for stream in [&mut tab, &mut again] {
        let (events, client) = taken(stream).await;
        assert_eq!(client.messages.last().unwrap()["content"], "It is sent.", "{events:#?}");
        assert_eq!(events[events.len() - 2]["name"], "receipt", "{events:#?}");
    }
    let events = nameless.rest().await;
    assert_eq!((types(&events), &events[0]["content"]), (vec!["message", "done"], &json!("It is sent.")));
    assert_eq!((sent(&world), model.asked()), (1, 2), "nothing is done twice, and nobody is asked twice");
}

#[tokio::test]
async fn a_turn_that_fails_keeps_the_message_and_can_be_sent_again() {
    let mut world = World::start().await;
    let model = PacedModel::start(&[NO_TOOL; 2]).await;
    world.model_at(&model.url);
    let mut stream = world.run_agent(&run_input("t1", "u1", "What is new?")).await;
    model.says("Hel");
    stream.until_type("TEXT_MESSAGE_CONTENT").await;
    let mut tab = world.connect("t1").await;
    tab.until_type("CUSTOM").await;
    model.breaks();
    let (events, _) = taken(&mut stream).await;
    let told = events.last().unwrap()["message"].as_str().unwrap();
    assert!(told.contains("broke off") && !told.contains("in time"), "{told}");
    let (_, client) = taken(&mut tab).await;
    assert!(client.error.unwrap().contains("this message was not answered"));

    let (_, client) = taken(&mut world.connect("t1").await).await;
    let contents: Vec<&str> = client.messages.iter().map(|message| message["content"].as_str().unwrap()).collect();
    assert_eq!((contents[0], contents.len()), ("What is new?", 2), "{contents:?}");
    assert_eq!(client.messages[1]["metadata"]["failed"], true, "{:#?}", client.messages);
    assert_eq!(client.messages[1]["metadata"]["message_id"], "u1", "{:#?}", client.messages);
    model.says("Nothing.");
    model.ends();
    let (_, client) = taken(&mut world.run_agent(&run_input("t1", "u1", "What is new?")).await).await;
    assert_eq!(client.messages[0]["content"], "Nothing.");
    let (_, client) = taken(&mut world.connect("t1").await).await;
    assert_eq!(client.messages.len(), 2, "{:#?}", client.messages);
}

#[tokio::test]
async fn remaining_calls_run_after_a_front_end_tool() {
    let world = World::start().await;
    send(&world).await;
    let mut input = run_input("t1", "u1", "Show me the prices and send them");
    input["tools"] = json!([{"name": "show", "description": "Shows a page"}]);
    let plan =
        json!([{"tool": "show", "arguments": {}}, {"tool": "send_confirmation", "arguments": {"text": "Prices"}}]);
    world.llm.script([Turn::text(&plan.to_string())]);
    let (events, client) = taken(&mut world.run_agent(&input).await).await;
    let entries = events[events.len() - 2]["value"]["entries"].clone();
    assert_eq!((&entries[0]["state"], &entries[1]["state"], sent(&world)), (&json!("waiting"), &json!("waiting"), 0));
    let call = client.messages.iter().find(|message| message.get("toolCalls").is_some()).unwrap();
    let messages = input["messages"].as_array_mut().unwrap();
    messages.push(call.clone());
    messages.push(json!({"id": "r1", "role": "tool", "toolCallId": call["id"], "content": "shown"}));
    world.llm.script([Turn::text("Shown and sent.")]);
    let (_, client) = taken(&mut world.run_agent(&input).await).await;
    assert_eq!((client.messages.last().unwrap()["content"].as_str(), sent(&world)), (Some("Shown and sent."), 1));
}
