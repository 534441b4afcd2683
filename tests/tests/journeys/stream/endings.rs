//! How a stream ends: broken off, stopped, beside another one.

use serde_json::json;
use tests::{Event, World, paced_model::PacedModel, run_input, standins::llm::Turn};

use super::{NO_TOOL, taken, types};
use crate::chat::{Way, send, sent};

#[tokio::test]
async fn a_model_that_breaks_off_ends_the_stream_with_an_error() {
    let mut world = World::start().await;
    let model = PacedModel::start(&[NO_TOOL; 2]).await;
    world.model_at(&model.url);
    let mut stream = world.run_agent(&run_input("t1", "u1", "Hi")).await;
    stream.until_type("STEP_STARTED").await;
    model.says("Hel");
    stream.until_type("TEXT_MESSAGE_CONTENT").await;
    model.breaks();
    let (events, client) = taken(&mut stream).await;
    let last = events.last().unwrap();
    assert_eq!((&last["type"], &last["code"]), (&json!("RUN_ERROR"), &json!("upstream")), "{last}");
    assert_eq!(client.messages[0]["content"], "Hel", "what was told stays");
    assert!(!last.to_string().contains("127.0.0.1"), "{last}");

    let mut stream = world.chat_stream(&json!({"message": "Hi"})).await;
    model.says("Hel");
    stream.until_type("token").await;
    model.breaks();
    let last = stream.rest().await.pop().unwrap();
    assert_eq!((&last["type"], &last["code"]), (&json!("error"), &json!("upstream")), "{last}");
    // Nothing was written down, and the thread is free.
    assert!(world.aws.rows("threads").iter().all(|row| row["part"] == "thread" && row.get("lease_token").is_none()));
}

#[tokio::test]
async fn a_broken_turn_that_acted_lists_its_actions() {
    let world = World::start().await;
    send(&world).await;
    let cut = "data: {\"choices\": [{\"index\": 0, \"delta\": {\"content\": \"I ha\"}}]}\n\n\
               data: {\"error\": {\"code\": 502, \"message\": \"gone\"}, \"choices\": [{\"index\": 0, \"delta\": {\"content\": \"\"}, \"finish_reason\": \"error\"}]}\n\n";
    let broken = Turn { stream: Some(cut.to_owned()), ..Turn::default() };
    world.llm.script([Way::Written.call("send_confirmation", json!({"text": "Hi"})), broken]);
    let (events, client) = taken(&mut world.run_agent(&run_input("t1", "u1", "Send Hi")).await).await;
    assert_eq!((types(&events).last(), client.error, sent(&world)), (Some(&"RUN_FINISHED"), None, 1), "{events:#?}");
    let answer = client.messages.last().unwrap()["content"].as_str().unwrap();
    assert!(answer.contains("- send_confirmation: succeeded"), "{answer}");
}

#[tokio::test]
async fn a_turn_is_stopped_while_words_come() {
    let mut world = World::start().await;
    let model = PacedModel::start(&[NO_TOOL; 2]).await;
    world.model_at(&model.url);
    assert_eq!(world.stop("t1").await, json!({"stopped": false}), "there is nothing to stop");
    let mut stream = world.run_agent(&run_input("t1", "u1", "Tell me everything")).await;
    model.says("It began ");
    stream.until_type("TEXT_MESSAGE_CONTENT").await;
    assert_eq!(world.stop("t1").await, json!({"stopped": true}));
    // The model goes on as long as nobody hangs up.
    let (events, client) = taken(&mut stream).await;
    assert_eq!(types(&events).last(), Some(&"RUN_FINISHED"), "{events:#?}");
    let said = client.messages[0]["content"].as_str().unwrap();
    assert!(said.starts_with("It began"), "{said}");
    assert_eq!(world.stop("t1").await, json!({"stopped": false}), "it is over");
    // The words so far are in the thread, and the next turn is free.
    let (_, shown) = taken(&mut world.connect("t1").await).await;
    assert_eq!(shown.messages.len(), 2, "{:#?}", shown.messages);
    assert!(shown.messages[1]["content"].as_str().unwrap().starts_with("It began"), "{:#?}", shown.messages);
}

#[tokio::test]
async fn a_second_message_to_a_busy_thread_waits_and_is_then_refused_or_answered() {
    let mut world = World::start().await;
    let model = PacedModel::start(&[NO_TOOL; 3]).await;
    world.model_at(&model.url);
    let mut first = world.run_agent(&run_input("t1", "u1", "Hi")).await;
    model.says("Hel");
    first.until_type("TEXT_MESSAGE_CONTENT").await;
    // Its function has no time to wait.
    let path = "/copilotkit/agent/default/run";
    let event = world.stream_event(&world.home.user_id, path, &run_input("t1", "u2", "And?"));
    let event: Event = event.within(std::time::Duration::from_secs(9));
    let refused = world.send("stream", &event).await;
    assert_eq!((refused.status, &refused.content_type[..]), (409, "application/problem+json"), "{}", refused.body);
    // Another thread is not held up.
    model.ends();
    let (_, client) = taken(&mut first).await;
    assert_eq!(client.messages[0]["content"], "Hel");
    model.says("Yes.");
    model.ends();
    let (_, client) = taken(&mut world.run_agent(&run_input("t1", "u2", "And?")).await).await;
    assert_eq!(client.messages[0]["content"], "Yes.");
}

#[tokio::test]
async fn two_messages_at_the_same_moment_are_answered_one_after_the_other() {
    let world = World::start().await;
    world.llm.script([Way::Written.none(), Turn::text("One."), Way::Written.none(), Turn::text("Two.")]);
    let run = async |id: &str| taken(&mut world.run_agent(&run_input("t1", id, "Hi")).await).await.1;
    let (one, two) = tokio::join!(run("u1"), run("u2"));
    let mut said = [one, two].map(|client| client.messages[0]["content"].clone().to_string());
    said.sort();
    assert_eq!(said, [r#""One.""#, r#""Two.""#]);
    let (_, client) = taken(&mut world.connect("t1").await).await;
    assert_eq!(client.messages.len(), 4, "{:#?}", client.messages);
}
