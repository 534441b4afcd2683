//! Interrupted turns, repeated requests and waiting lists of calls.

use serde_json::{Value, json};
use shared::models::Timestamp;
use tests::{Event, World, agui_client::Client, run_input, sms_without_call, standins::llm::Turn};

use super::{Way, find, send, sent, text};
use crate::stream::{taken, taken_after, types, whole_calls, with_history};

/// The row of the only thread.
fn row(world: &World) -> Value {
    world.aws.rows("threads").into_iter().find(|item| item["part"] == "thread").unwrap()
}

/// As if the answering process had been killed, and its lease had expired.
fn kill(world: &World, stream: tests::Streamed) {
    drop(stream);
    let mut row = row(world);
    assert!(row.get("lease_until").is_some(), "it had not let go");
    row["lease_until"] = json!(0);
    world.aws.put("threads", &row);
}

fn running(world: &World) -> Value {
    serde_json::from_str(text(&row(world)["running"])).unwrap()
}

#[tokio::test]
async fn each_step_of_a_turn_is_stored_when_it_happens() {
    let world = World::start().await;
    send(&world).await;
    world.llm.script([Way::Written.call("send_confirmation", json!({"text": "Hi"})), Turn::text("I have sent it.")]);
    let mut stream = world.run_agent(&run_input("t1", "u1", "Send Hi")).await;
    stream.until_type("STEP_STARTED").await;
    let before = running(&world);
    assert_eq!((&before["message"], &before["message_id"]), (&json!("Send Hi"), &json!("u1")));
    stream.until_type("TOOL_CALL_START").await;
    assert_eq!((&running(&world)["calls"][0]["outcome"], sent(&world)), (&json!("running"), 0), "before it is made");
    stream.until_type("TOOL_CALL_RESULT").await;
    assert_eq!((&running(&world)["calls"][0]["outcome"], sent(&world)), (&json!("succeeded"), 1));
    stream.rest().await;
    assert_eq!(row(&world).get("running"), None, "it stands in the messages now");
    // Rows of the previous version lack this.
    let shown = world.threads(&world.home.user_id, "GET", "/t1").await.expect(200);
    assert_eq!((&shown["running"], shown["items"].as_array().unwrap().len()), (&json!(null), 2));
}

/// A plan that sends two SMS.
fn send_two() -> Turn {
    let two = json!([
        {"tool": "send_confirmation", "arguments": {"text": "One"}},
        {"tool": "send_confirmation", "arguments": {"text": "Two"}},
    ]);
    Turn::text(&two.to_string())
}

#[tokio::test]
async fn a_repeated_message_tells_a_client_the_calls_that_it_lacks() {
    for (until, has_history, told) in
        [("TOOL_CALL_RESULT", true, 1), ("TOOL_CALL_END", true, 1), ("TOOL_CALL_RESULT", false, 2)]
    {
        let world = World::start().await;
        send(&world).await;
        world.llm.script([send_two()]);
        let mut stream = world.run_agent(&run_input("default", "u1", "Send two")).await;
        stream.until_type(until).await;
        let before = if has_history { Client::read(&stream.text).unwrap().messages } else { Vec::new() };
        kill(&world, stream);
        world.llm.script([Turn::text("Both are sent.")]);
        let input = with_history(run_input("default", "u1", "Send two"), &before);
        let (events, client) = taken_after(before, &mut world.run_agent(&input).await).await;
        assert_eq!(whole_calls(&client).len(), 2, "{until}: {events:#?}");
        let starts = types(&events).iter().filter(|kind| **kind == "TOOL_CALL_START").count();
        assert_eq!(starts, told, "{until}: {events:#?}");
    }
    // A lookup is not recorded at once, so it is made again, as another call.
    let world = World::start().await;
    find(&world).await;
    let script = |query: &str| Way::Written.call("find", json!({"query": query}));
    world.llm.script([script("sales 2024")]);
    let mut stream = world.run_agent(&run_input("default", "u1", "What were the sales?")).await;
    stream.until_type("TOOL_CALL_RESULT").await;
    let before = Client::read(&stream.text).unwrap().messages;
    kill(&world, stream);
    world.llm.script([script("sales"), Turn::text("They were 7 million.")]);
    let input = with_history(run_input("default", "u1", "What were the sales?"), &before);
    let (_, client) = taken_after(before, &mut world.run_agent(&input).await).await;
    assert_eq!(whole_calls(&client).len(), 2);
}

#[tokio::test]
async fn a_request_that_follows_a_killed_turn_and_continues_it_tells_each_call_once() {
    for until in ["CALL", "RESULT"] {
        for plain in [false, true] {
            let world = World::start().await;
            send(&world).await;
            world.llm.script([send_two()]);
            let input = run_input("default", "u1", "Send two");
            let mut first = world.run_agent(&input).await;
            first.until_type(if until == "CALL" { "TOOL_CALL_END" } else { "TOOL_CALL_RESULT" }).await;
            let mut again = if plain {
                world.chat_stream(&json!({"message": "Send two"})).await
            } else {
                world.run_agent(&input).await
            };
            let followed = match (until, plain) {
                ("CALL", true) => "tool_call",
                ("CALL", false) => "TOOL_CALL_END",
                (_, true) => "tool_result",
                (_, false) => "TOOL_CALL_RESULT",
            };
            let mut events = again.until_type(followed).await;
            kill(&world, first);
            world.llm.script([Turn::text("Both are sent.")]);
            if plain {
                events.extend(again.rest().await);
                for kind in ["tool_call", "tool_result"] {
                    let mut ids: Vec<&str> =
                        events.iter().filter(|event| event["type"] == kind).map(|event| text(&event["id"])).collect();
                    let told = ids.len();
                    ids.dedup();
                    assert_eq!((told, ids.len()), (2, 2), "{kind}: {events:#?}");
                }
            } else {
                let (_, client) = taken(&mut again).await;
                assert_eq!(whole_calls(&client).len(), 2, "{until}");
            }
        }
    }
}

#[tokio::test]
async fn a_killed_turn_continues_from_its_stored_actions() {
    // By the message's id, or by the same text without an id.
    for (named, until, state) in
        [(true, "TOOL_CALL_RESULT", "done"), (true, "TOOL_CALL_START", "unknown"), (false, "TOOL_CALL_RESULT", "done")]
    {
        let world = World::start().await;
        send(&world).await;
        world.llm.script([send_two()]);
        let mut stream = world.run_agent(&run_input("default", "u1", "Send two")).await;
        stream.until_type(until).await;
        kill(&world, stream);
        let sent_before = sent(&world);
        let failed = world.threads(&world.home.user_id, "GET", "/default").await.expect(200);
        let marker = &failed["items"][0];
        assert_eq!((&marker["metadata"]["failed"], &failed["items"][1]["content"]), (&json!(true), &json!("Send two")));
        assert_eq!(marker["metadata"]["receipt"]["entries"][0]["state"], state, "{marker}");

        // The second call of the list is still made; the first is not repeated, regardless of its outcome.
        world.llm.script([Turn::text("Both are sent.")]);
        let answer = if named {
            let mut stream = world.run_agent(&run_input("default", "u1", "Send two")).await;
            let events = stream.rest().await;
            assert_eq!(events.last().unwrap()["type"], "RUN_FINISHED", "{events:#?}");
            events[events.len() - 2]["value"].clone()
        } else {
            world.chat("Send two").await.expect(200)["metadata"]["receipt"].clone()
        };
        let states: Vec<&str> =
            answer["entries"].as_array().unwrap().iter().map(|entry| text(&entry["state"])).collect();
        assert_eq!((states, sent(&world)), (vec![state, "done"], sent_before + 1), "{named} {until}");
        let told = world.asked_of_model().pop().unwrap().to_string();
        assert_eq!(told.contains("do not repeat it"), state == "unknown", "{told}");
        let shown = world.threads(&world.home.user_id, "GET", "/default").await.expect(200);
        assert_eq!(
            (shown["items"].as_array().unwrap().len(), &shown["turns"]),
            (2, &json!(1)),
            "one message, one answer"
        );
    }
}

#[tokio::test]
async fn a_call_with_an_unknown_outcome_is_not_repeated_with_other_arguments() {
    let world = World::start().await;
    send(&world).await;
    world.llm.script([Way::Written.call("send_confirmation", json!({"text": "I am late"}))]);
    let mut stream = world.run_agent(&run_input("t1", "u1", "Say I am late")).await;
    stream.until_type("TOOL_CALL_START").await;
    kill(&world, stream);
    world.llm.script([
        Way::Written.call("send_confirmation", json!({"text": "I'm running late"})),
        Turn::text("It may have gone out."),
    ]);
    let events = world.run_agent(&run_input("t1", "u1", "Say I am late")).await.rest().await;
    let entries = &events[events.len() - 2]["value"]["entries"];
    assert_eq!((&entries[0]["state"], &entries[1]["state"]), (&json!("unknown"), &json!("not_called")), "{entries}");
    assert_eq!(sent(&world), 0);
}

#[tokio::test]
async fn another_message_after_a_turn_that_was_killed_is_another_turn() {
    let world = World::start().await;
    send(&world).await;
    world.llm.script([Way::Written.call("send_confirmation", json!({"text": "Hi"}))]);
    let mut stream = world.run_agent(&run_input("default", "u1", "Send Hi")).await;
    stream.until_type("TOOL_CALL_RESULT").await;
    kill(&world, stream);
    world.llm.script([Way::Written.none(), Turn::text("Yes, once.")]);
    world.chat("Did it go out?").await.expect(200);
    let told = world.asked_of_model().pop().unwrap().to_string();
    assert!(
        told.contains("What tools gave for earlier messages") && told.contains("This message was not answered"),
        "{told}"
    );
    let shown = world.threads(&world.home.user_id, "GET", "/default").await.expect(200);
    let contents: Vec<&str> = shown["items"].as_array().unwrap().iter().map(|item| text(&item["content"])).collect();
    assert_eq!((contents.len(), contents[0], contents[3], &shown["turns"]), (4, "Yes, once.", "Send Hi", &json!(2)));
    // The first message again, late, returns its own record.
    let again = world.run_agent(&run_input("default", "u1", "Send Hi")).await.rest().await;
    let receipt = &again[again.len() - 2]["value"];
    assert_eq!((&receipt["entries"][0]["state"], sent(&world)), (&json!("done"), 1), "{again:#?}");
}

#[tokio::test]
async fn the_same_text_without_an_id_is_the_same_message_for_a_minute() {
    let world = World::start().await;
    send(&world).await;
    world.llm.script([Way::Written.call("send_confirmation", json!({"text": "Hi"})), Turn::text("It is sent.")]);
    let first = world.chat("Send Hi").await.expect(200);
    let again = world.chat("Send Hi").await.expect(200);
    assert_eq!((&again["message"], sent(&world)), (&first["message"], 1));
    assert_eq!((&again["metadata"]["repeated"], first["metadata"].get("repeated")), (&json!(true), None));
    // A minute later it is a new message.
    let long_ago = Timestamp::from_millis(Timestamp::now().as_millis() - 61_000);
    for mut item in world.aws.rows("threads").into_iter().filter(|item| item["part"] != "thread") {
        item["created_at"] = json!(long_ago);
        world.aws.put("threads", &item);
    }
    world.llm.script([Way::Written.call("send_confirmation", json!({"text": "Hi"})), Turn::text("It is sent.")]);
    world.chat("Send Hi").await.expect(200);
    assert_eq!(sent(&world), 2);
    // After a turn without effects, the same words are a new message at once.
    for answer in ["Yes?", "Still here."] {
        world.llm.script([Way::Written.none(), Turn::text(answer)]);
        assert_eq!(world.chat("Next").await.expect(200)["message"], answer);
    }
    // So is a message with an id of its own.
    world.llm.script([Way::Written.call("send_confirmation", json!({"text": "Hi"})), Turn::text("It is sent.")]);
    world.chat("Send Hi again").await.expect(200);
    world.llm.script([Way::Written.call("send_confirmation", json!({"text": "Hi"})), Turn::text("It is sent.")]);
    let event = Event::post("/agent/chat", &json!({"message": "Send Hi again"})).user(&world.home.user_id);
    world.send("chat", &event.header("idempotency-key", "another")).await.expect(200);
    assert_eq!(sent(&world), 4);
}

/// Asks for three SMS, of which the second needs consent; gives the question.
async fn ask_for_three(world: &World) -> Value {
    let mut config = sms_without_call(&world.home);
    config["label"] = json!("Ask first");
    config["chat"] = json!({"consent": true});
    world.tool(&config).await;
    let call = |tool: &str, text: &str| json!({"tool": tool, "arguments": {"text": text}});
    let plan = json!([call("send_confirmation", "One"), call("ask_first", "Two"), call("send_confirmation", "Three")]);
    world.llm.script([Turn::text(&plan.to_string())]);
    let asked = world.chat("Send three").await.expect(200);
    assert_eq!(
        (states(&asked["metadata"]["receipt"]), sent(world)),
        (vec!["done", "waiting", "waiting"], 1),
        "{asked}"
    );
    asked
}

fn states(receipt: &Value) -> Vec<&str> {
    receipt["entries"].as_array().unwrap().iter().map(|entry| text(&entry["state"])).collect()
}

async fn decide(world: &World, asked: &Value, approved: bool) -> Value {
    let id = &asked["metadata"]["pending_action"]["id"];
    let decision = json!({"metadata": {"consent": {"id": id, "approved": approved}}});
    world.chat_with(&decision).await.expect(200)
}

#[tokio::test]
async fn remaining_calls_run_after_a_consent() {
    for (approved, expected, count) in
        [(true, ["done", "done", "done"], 3), (false, ["done", "refused", "not_called"], 1)]
    {
        let world = World::start().await;
        send(&world).await;
        let asked = ask_for_three(&world).await;
        world.llm.script([Turn::text("All three are sent.")]);
        let answer = decide(&world, &asked, approved).await;
        let receipt = &answer["metadata"]["receipt"];
        assert_eq!((states(receipt), sent(&world)), (expected.to_vec(), count), "{answer}");
    }
}

#[tokio::test]
async fn remaining_calls_of_a_tool_that_was_changed_since_are_not_made() {
    let world = World::start().await;
    let tool = send(&world).await;
    let asked = ask_for_three(&world).await;
    world.update(&tool, &json!({"recipients": ["+14155550199"]})).await.expect(200);
    world.llm.script([Turn::text("Two are sent.")]);
    let answer = decide(&world, &asked, true).await;
    let receipt = &answer["metadata"]["receipt"];
    assert_eq!((states(receipt), sent(&world)), (vec!["done", "done", "not_called"], 2), "{answer}");
    assert!(text(&receipt["entries"][2]["text"]).contains("was changed since"), "{answer}");

    // The same after a crash.
    let world = World::start().await;
    let tool = send(&world).await;
    let call = |text: &str| json!({"tool": "send_confirmation", "arguments": {"text": text}});
    world.llm.script([Turn::text(&json!([call("One"), call("Two")]).to_string())]);
    let mut stream = world.run_agent(&run_input("default", "u1", "Send two")).await;
    stream.until_type("TOOL_CALL_RESULT").await;
    kill(&world, stream);
    world.update(&tool, &json!({"recipients": ["+14155550199"]})).await.expect(200);
    world.llm.script([Turn::text("One is sent.")]);
    let events = world.run_agent(&run_input("default", "u1", "Send two")).await.rest().await;
    let receipt = &events[events.len() - 2]["value"];
    assert_eq!((states(receipt), sent(&world)), (vec!["done", "not_called"], 1), "{events:#?}");
}
