//! Turns that wait for a person, or for a tool of the front end.

use serde_json::{Value, json};
use shared::models::Timestamp;
use tests::{Answer, World, agui_client::Client, run_input, sms_without_call, standins::llm::Turn};

use super::{taken, taken_after, types, whole_calls, with_history};
use crate::chat::{WAYS, Way, find, send, sent};

async fn asked_first(world: &World) {
    let mut config = sms_without_call(&world.home);
    config["chat"] = json!({"consent": true});
    world.tool(&config).await;
}

/// Asks for an SMS; gives the interrupt.
async fn ask(world: &World, way: Way, message: &str) -> Value {
    world.llm.script([way.call("send_confirmation", json!({"text": "See you at nine"}))]);
    let mut stream = world.run_agent(&run_input("t1", message, "Send her: see you at nine")).await;
    let (events, client) = taken(&mut stream).await;
    assert_eq!((client.interrupts.len(), sent(world)), (1, 0), "{events:#?}");
    assert!(client.messages.is_empty(), "it is told once, by the interrupt: {:#?}", client.messages);
    client.interrupts[0].clone()
}

fn resume(id: &Value, mut answer: Value) -> Value {
    answer["interruptId"] = id.clone();
    json!({"threadId": "t1", "runId": "run-resume", "messages": [], "tools": [], "resume": [answer]})
}

async fn refused(world: &World, input: &Value) -> Answer {
    let path = "/copilotkit/agent/default/run";
    world.send("stream", &world.stream_event(&world.home.user_id, path, input)).await
}

#[tokio::test]
async fn an_effect_is_an_interrupt_and_happens_when_it_is_approved() {
    for way in WAYS {
        let world = way.world().await;
        asked_first(&world).await;
        let interrupt = ask(&world, way, "u1").await;
        assert_eq!(
            (&interrupt["reason"], &interrupt["metadata"]["tool"]),
            (&json!("tool_consent"), &json!("send_confirmation"))
        );
        assert_eq!(interrupt["metadata"]["arguments"], json!({"text": "See you at nine"}));
        let shows = interrupt["metadata"]["shows"].as_array().unwrap();
        let text = json!({"name": "Text", "value": "See you at nine", "fixed": false});
        let recipient = json!({"name": "Recipients", "value": "+14155550101", "fixed": true});
        assert!(shows.contains(&text) && shows.contains(&recipient), "{shows:?}");
        assert_eq!(interrupt["metadata"]["label"], "Send confirmation");
        assert_eq!(interrupt["responseSchema"]["required"], json!(["approved"]));
        assert!(interrupt["expiresAt"].as_str().unwrap().ends_with('Z') && interrupt["message"].is_string());
        // A page that comes back is asked the same.
        let (_, client) = taken(&mut world.connect("t1").await).await;
        assert_eq!(client.interrupts, std::slice::from_ref(&interrupt));
        // So is the same message.
        let (_, client) = taken(&mut world.run_agent(&run_input("t1", "u1", "Send her: see you at nine")).await).await;
        assert_eq!(client.interrupts, std::slice::from_ref(&interrupt));

        for payload in [json!({}), json!({"approved": "yes"}), json!(true)] {
            let input = resume(&interrupt["id"], json!({"status": "resolved", "payload": payload}));
            assert_eq!(refused(&world, &input).await.wrong_fields(), ["resume[0].payload.approved"]);
        }
        let input = resume(&json!("another"), json!({"status": "resolved", "payload": {"approved": true}}));
        assert_eq!(refused(&world, &input).await.status, 409);

        world.llm.script([Turn::text("I have sent the message.")]);
        let input = resume(&interrupt["id"], json!({"status": "resolved", "payload": {"approved": true}}));
        let (events, client) = taken(&mut world.run_agent(&input).await).await;
        assert!(types(&events).contains(&"TOOL_CALL_RESULT"), "{events:#?}");
        assert_eq!(
            (client.messages.last().unwrap()["content"].as_str(), sent(&world)),
            (Some("I have sent the message."), 1)
        );
        assert_eq!(client.interrupts.len(), 0);
        // The same decision again is the same answer; another one is too late.
        let (_, again) = taken(&mut world.run_agent(&input).await).await;
        assert_eq!((again.messages[0]["content"].as_str(), sent(&world)), (Some("I have sent the message."), 1));
        let no = resume(&interrupt["id"], json!({"status": "cancelled"}));
        let late = refused(&world, &no).await;
        let told = (&late.body["code"], &late.body["decided"]);
        assert_eq!((late.status, told, sent(&world)), (409, (&json!("consent_decided"), &json!("approved")), 1));
    }
}

/// A plan that looks something up, then sends an SMS.
fn find_and_send(world: &World) {
    let plan = json!([
        {"tool": "find", "arguments": {"query": "sales 2024"}},
        {"tool": "send_confirmation", "arguments": {"text": "7 million"}},
    ]);
    world.llm.script([Turn::text(&plan.to_string())]);
}

#[tokio::test]
async fn a_resumed_run_does_not_repeat_the_calls_before_its_question() {
    for has_history in [true, false] {
        let world = World::start().await;
        asked_first(&world).await;
        find(&world).await;
        find_and_send(&world);
        let (_, client) = taken(&mut world.run_agent(&run_input("t1", "u1", "Send the sales")).await).await;
        let (before, interrupt) = (client.messages, client.interrupts[0]["id"].clone());
        assert_eq!(before.len(), 2, "a lookup and its result: {before:#?}");
        // A page that is opened anew has the same call.
        let (_, opened) = taken(&mut world.connect("t1").await).await;
        assert_eq!(whole_calls(&opened), [before[0]["id"].as_str().unwrap()]);

        world.llm.script([Turn::text("I have sent it.")]);
        let mut input = resume(&interrupt, json!({"status": "resolved", "payload": {"approved": true}}));
        if has_history {
            input = with_history(input, &before);
        }
        let (events, client) = taken_after(before, &mut world.run_agent(&input).await).await;
        assert_eq!(types(&events).iter().filter(|kind| **kind == "TOOL_CALL_START").count(), 1, "{events:#?}");
        assert_eq!((whole_calls(&client).len(), sent(&world)), (2, 1));
        let (_, opened) = taken(&mut world.connect("t1").await).await;
        assert_eq!(whole_calls(&opened), whole_calls(&client));
    }
}

#[tokio::test]
async fn a_decision_in_the_plain_stream_tells_the_calls_after_the_question() {
    let world = World::start().await;
    asked_first(&world).await;
    find(&world).await;
    find_and_send(&world);
    let events = world.chat_stream(&json!({"message": "Send the sales"})).await.rest().await;
    let called = |events: &[Value]| -> Vec<Value> {
        events.iter().filter(|event| event["type"] == "tool_call").map(|event| event["tool"].clone()).collect()
    };
    assert_eq!(called(&events), [json!("find")]);
    world.llm.script([Turn::text("I have sent it.")]);
    let id = &events.last().unwrap()["metadata"]["pending_action"]["id"];
    let decision = json!({"metadata": {"consent": {"id": id, "approved": true}}});
    let events = world.chat_stream(&decision).await.rest().await;
    assert_eq!((called(&events), sent(&world)), (vec![json!("send_confirmation")], 1), "{events:#?}");
}

#[tokio::test]
async fn a_no_is_a_no_in_either_form() {
    for answer in [json!({"status": "cancelled"}), json!({"status": "resolved", "payload": {"approved": false}})] {
        let world = World::start().await;
        asked_first(&world).await;
        let interrupt = ask(&world, Way::Written, "u1").await;
        world.llm.script([Turn::text("All right, I did not send it.")]);
        let (_, client) = taken(&mut world.run_agent(&resume(&interrupt["id"], answer.clone())).await).await;
        assert_eq!(client.messages.last().unwrap()["content"], "All right, I did not send it.");
        assert_eq!(sent(&world), 0, "{answer}");
    }
}

#[tokio::test]
async fn an_interrupt_runs_out() {
    let world = World::start().await;
    asked_first(&world).await;
    let interrupt = ask(&world, Way::Written, "u1").await;
    let mut row = world.aws.rows("threads").into_iter().find(|item| item.get("pending").is_some()).unwrap();
    let mut pending: Value = serde_json::from_str(row["pending"].as_str().unwrap()).unwrap();
    pending["expires_at"] = json!(Timestamp::from_millis(0));
    row["pending"] = json!(pending.to_string());
    world.aws.put("threads", &row);
    let input = resume(&interrupt["id"], json!({"status": "resolved", "payload": {"approved": true}}));
    let late = refused(&world, &input).await;
    assert_eq!((&late.body["decided"], sent(&world)), (&json!("expired"), 0), "{}", late.body);
    let (_, client) = taken(&mut world.connect("t1").await).await;
    assert_eq!(client.interrupts.len(), 0);
}

/// An earlier answer is repeated as it was: the question or call of a later message is not part of it.
#[tokio::test]
async fn a_repeated_earlier_message_does_not_decide_the_pending_call() {
    let world = World::start().await;
    asked_first(&world).await;
    let show =
        json!([{"name": "show", "description": "Shows a page", "parameters": {"type": "object", "properties": {}}}]);
    let mut hello = run_input("t1", "u1", "Hello");
    hello["tools"] = show.clone();
    world.llm.script([Way::Written.none(), Turn::text("Hello!")]);
    world.run_agent(&hello).await.rest().await;
    ask(&world, Way::Written, "u2").await;
    let (events, client) = taken(&mut world.run_agent(&hello).await).await;
    assert_eq!((client.messages[0]["content"].as_str(), client.interrupts.len()), (Some("Hello!"), 0), "{events:#?}");

    let mut page = run_input("t1", "u3", "Show me the prices");
    page["tools"] = show;
    world.llm.script([Way::Written.call("show", json!({}))]);
    let (events, _) = taken(&mut world.run_agent(&page).await).await;
    assert!(types(&events).contains(&"TOOL_CALL_START"), "{events:#?}");
    let (events, _) = taken(&mut world.run_agent(&hello).await).await;
    assert!(!types(&events).contains(&"TOOL_CALL_START"), "{events:#?}");
}

#[tokio::test]
async fn consent_is_an_event_of_the_plain_stream_too() {
    let world = World::start().await;
    asked_first(&world).await;
    world.llm.script([Way::Written.call("send_confirmation", json!({"text": "Hi"}))]);
    let events = world.chat_stream(&json!({"message": "Send Hi"})).await.rest().await;
    let consent = events.iter().find(|event| event["type"] == "consent").unwrap();
    assert!(!types(&events).contains(&"message"), "it is told once: {events:#?}");
    assert_eq!(consent["pending_action"], events.last().unwrap()["metadata"]["pending_action"]);
    world.llm.script([Turn::text("I have sent it.")]);
    let decision = json!({"metadata": {"consent": {"id": consent["pending_action"]["id"], "approved": true}}});
    let events = world.chat_stream(&decision).await.rest().await;
    assert_eq!((types(&events).last(), sent(&world)), (Some(&"done"), 1));
}

#[tokio::test]
async fn a_tool_of_the_front_end_is_called_and_its_result_comes_with_the_next_run() {
    for way in WAYS {
        let world = way.world().await;
        let tool = json!({"name": "show", "description": "Shows a page", "parameters": {
            "type": "object", "properties": {"page": {"type": "string"}}, "required": ["page"],
        }});
        let mut input = run_input("t1", "u1", "Show me the prices");
        input["tools"] = json!([tool]);
        world.llm.script([way.call("show", json!({"page": "prices"}))]);
        let (events, client) = taken(&mut world.run_agent(&input).await).await;
        assert!(!types(&events).contains(&"TOOL_CALL_RESULT"), "{way:?}: {events:#?}");
        assert_eq!(types(&events).last(), Some(&"RUN_FINISHED"));
        let call = client.messages.iter().find(|message| message.get("toolCalls").is_some()).unwrap();
        assert_eq!(call["toolCalls"][0]["function"], json!({"name": "show", "arguments": r#"{"page":"prices"}"#}));

        // As CopilotKit's client goes on.
        input["runId"] = json!("run-2");
        let messages = input["messages"].as_array_mut().unwrap();
        messages.push(call.clone());
        messages.push(json!({"id": "r1", "role": "tool", "toolCallId": call["id"], "content": "shown"}));
        world.llm.script([Turn::text("Here are the prices.")]);
        let (_, client) = taken(&mut world.run_agent(&input).await).await;
        assert_eq!(client.messages.last().unwrap()["content"], "Here are the prices.", "{way:?}");
        let told = world.asked_of_model().last().unwrap().to_string();
        assert!(told.contains("shown"), "{told}");
        // The same results again are the same answer.
        let asked = world.asked_of_model().len();
        let (_, again) = taken(&mut world.run_agent(&input).await).await;
        assert_eq!(again.messages.last().unwrap()["content"], "Here are the prices.");
        assert_eq!(world.asked_of_model().len(), asked);
    }
}

#[tokio::test]
async fn a_repeated_result_before_a_second_call_of_the_page_is_told_that_call_again() {
    let world = World::start().await;
    let mut input = run_input("t1", "u1", "Show me the prices, then the map");
    input["tools"] = json!([{"name": "show", "description": "Shows a page", "parameters": {
        "type": "object", "properties": {"page": {"type": "string"}},
    }}]);
    let show = |page: &str| Way::Written.call("show", json!({"page": page}));
    world.llm.script([show("prices")]);
    let (_, client) = taken(&mut world.run_agent(&input).await).await;
    let first = with_result(input, &client, "shown");
    world.llm.script([show("map")]);
    let (_, client) = taken(&mut world.run_agent(&first).await).await;
    let second = client.messages.last().unwrap().clone();
    assert_eq!(second["toolCalls"][0]["function"]["arguments"], json!(r#"{"page":"map"}"#), "{second}");

    let asked = world.asked_of_model().len();
    let (events, again) = taken(&mut world.run_agent(&first).await).await;
    assert!(types(&events).contains(&"TOOL_CALL_START"), "{events:#?}");
    assert_eq!((again.messages.last().unwrap(), world.asked_of_model().len()), (&second, asked));
    // The second result ends the turn.
    world.llm.script([Turn::text("Here are both.")]);
    let (_, client) = taken(&mut world.run_agent(&with_result(first, &again, "shown too")).await).await;
    assert_eq!(client.messages.last().unwrap()["content"], "Here are both.");
}

/// A message whose plan sends an SMS, then shows a page.
async fn send_and_show(world: &World) -> Value {
    send(world).await;
    let mut input = run_input("t1", "u1", "Send Hi and show me the prices");
    input["tools"] = json!([{"name": "show", "description": "Shows a page"}]);
    let plan = json!([{"tool": "send_confirmation", "arguments": {"text": "Hi"}}, {"tool": "show", "arguments": {}}]);
    world.llm.script([Turn::text(&plan.to_string())]);
    input
}

/// The message that follows a run with the result of its call of `show`.
fn with_result(mut input: Value, client: &Client, content: &str) -> Value {
    let call = client.messages.iter().rfind(|message| message["toolCalls"][0]["function"]["name"] == "show").unwrap();
    let messages = input["messages"].as_array_mut().unwrap();
    messages.push(call.clone());
    messages.push(json!({"id": content, "role": "tool", "toolCallId": call["id"], "content": content}));
    input
}

fn states(receipt: &Value) -> Vec<&str> {
    receipt["entries"].as_array().unwrap().iter().map(|entry| entry["state"].as_str().unwrap()).collect()
}

async fn thread(world: &World) -> Value {
    world.threads(&world.home.user_id, "GET", "/t1").await.expect(200)
}

#[tokio::test]
async fn effects_before_a_call_that_the_page_never_answers_stay_in_the_thread() {
    let world = World::start().await;
    let input = send_and_show(&world).await;
    let (_, client) = taken(&mut world.run_agent(&input).await).await;
    let shown = thread(&world).await;
    let note = &shown["items"][0];
    assert_eq!((shown["items"].as_array().unwrap().len(), &note["number"], &shown["turns"]), (2, &json!(2), &json!(1)));
    assert_eq!(shown["pending_action"], Value::Null, "nobody is asked for a consent");
    assert!(note["content"].as_str().unwrap().starts_with("This message is not answered: the page"), "{note}");
    assert_eq!(states(&note["metadata"]["receipt"]), ["done"], "{note}");
    // The same message again is told the same call, with the receipt.
    let (events, _) = taken(&mut world.run_agent(&input).await).await;
    assert!(types(&events).contains(&"TOOL_CALL_START"), "{events:#?}");
    assert_eq!((states(&events[events.len() - 2]["value"]), sent(&world)), (vec!["done", "waiting"], 1), "{events:#?}");

    world.llm.script([Way::Written.none(), Turn::text("Yes, once.")]);
    world.run_agent(&run_input("t1", "u2", "Did it go out?")).await.rest().await;
    let told = world.asked_of_model().pop().unwrap().to_string();
    for known in ["What tools gave for earlier messages", "send_confirmation", "it may have been carried out"] {
        assert!(told.contains(known), "{known}: {told}");
    }
    let shown = thread(&world).await;
    let items = shown["items"].as_array().unwrap();
    let numbers: Vec<u64> = items.iter().map(|item| item["number"].as_u64().unwrap()).collect();
    assert_eq!((numbers, &items[0]["content"], &shown["turns"]), (vec![4, 3, 2, 1], &json!("Yes, once."), &json!(2)));
    assert_eq!((&items[2]["content"], states(&items[2]["metadata"]["receipt"])), (&note["content"], vec!["done"]));
    // The page is too late.
    assert_eq!(refused(&world, &with_result(input, &client, "shown")).await.status, 409);
}

#[tokio::test]
async fn an_answer_after_the_pages_result_has_the_effects_before_it_once() {
    let world = World::start().await;
    let input = send_and_show(&world).await;
    let (_, client) = taken(&mut world.run_agent(&input).await).await;
    world.llm.script([Turn::text("Sent and shown.")]);
    let (events, _) = taken(&mut world.run_agent(&with_result(input, &client, "shown")).await).await;
    assert_eq!(states(&events[events.len() - 2]["value"]), ["done"], "{events:#?}");
    assert!(!types(&events).contains(&"TOOL_CALL_START"), "the SMS was told in the first run: {events:#?}");
    let shown = thread(&world).await;
    let said: Vec<&Value> = shown["items"].as_array().unwrap().iter().map(|item| &item["content"]).collect();
    assert_eq!(said, [&json!("Sent and shown."), &json!("Send Hi and show me the prices")], "{shown}");
    assert_eq!((&shown["items"][0]["number"], &shown["messages"], sent(&world)), (&json!(2), &json!(2), 1));
    assert_eq!(states(&shown["items"][0]["metadata"]["receipt"]), ["done"], "{shown}");
}

#[tokio::test]
async fn the_same_text_without_an_id_does_not_repeat_effects_before_a_call_of_the_page() {
    let world = World::start().await;
    let mut input = send_and_show(&world).await;
    input["messages"][0].as_object_mut().unwrap().remove("id");
    for _again in 0..2 {
        let (events, _) = taken(&mut world.run_agent(&input).await).await;
        assert!(types(&events).contains(&"TOOL_CALL_START"), "{events:#?}");
    }
    assert_eq!((sent(&world), world.asked_of_model().len()), (1, 1));
}

#[tokio::test]
async fn a_call_that_was_planned_for_the_page_is_not_made_by_another_tool_of_its_name() {
    let world = World::start().await;
    asked_first(&world).await;
    let mut config = sms_without_call(&world.home);
    config["label"] = json!("Show");
    world.tool(&config).await;
    let mut input = run_input("t1", "u1", "Send Hi and show it");
    input["tools"] = json!([{"name": "show", "description": "Shows a text", "parameters": {
        "type": "object", "properties": {"text": {"type": "string"}},
    }}]);
    let call = |tool: &str| json!({"tool": tool, "arguments": {"text": "Hi"}});
    world.llm.script([Turn::text(&json!([call("send_confirmation"), call("show")]).to_string())]);
    let (_, client) = taken(&mut world.run_agent(&input).await).await;
    // A client without the page's tools decides.
    let consent = json!({"id": client.interrupts[0]["id"], "approved": true});
    world.llm.script([Turn::text("Sent, and not shown.")]);
    let decision = json!({"thread_id": "t1", "metadata": {"consent": consent}});
    let answer = world.chat_with(&decision).await.expect(200);
    let receipt = &answer["metadata"]["receipt"];
    assert_eq!((states(receipt), sent(&world)), (vec!["done", "not_called"], 1), "{answer}");
    assert!(receipt["entries"][1]["text"].as_str().unwrap().contains("the page does not offer"), "{answer}");
}

#[tokio::test]
async fn results_without_a_pending_call_are_refused() {
    let world = World::start().await;
    let mut input = run_input("t1", "u1", "Show me");
    input["tools"] = json!([{"name": "show", "description": "Shows"}]);
    input["messages"]
        .as_array_mut()
        .unwrap()
        .push(json!({"id": "r", "role": "tool", "toolCallId": "made-up", "content": "x"}));
    assert_eq!(refused(&world, &input).await.status, 409);
}
