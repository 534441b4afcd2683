//! Requests of a stock CopilotKit front end, and a reloaded thread.

use serde_json::{Value, json};
use tests::{Event, World, run_input, standins::llm::Turn};

use super::{taken, types};
use crate::chat::Way;

#[tokio::test]
async fn the_requests_of_a_real_front_end_are_answered() {
    let recorded: Value = serde_json::from_str(include_str!("../../../fixtures/copilotkit_requests.json")).unwrap();
    for mode in ["rest", "single", "tool_roundtrip"] {
        let world = World::start().await;
        let script = match mode {
            "tool_roundtrip" => vec![Way::Written.call("show", json!({})), Turn::text("Shown.")],
            _ => vec![Way::Written.none(), Turn::text("Hello again!")],
        };
        world.llm.script(script);
        let bearer = format!("Bearer {}", world.issuer.token(&world.home.user_id));
        let mut call = Value::Null;
        let requests = recorded[mode].as_array().unwrap();
        for request in requests {
            let path = request["url"].as_str().unwrap();
            let mut event = Event::new(request["method"].as_str().unwrap(), path);
            for (name, value) in request["headers"].as_object().unwrap() {
                event = event.header(name, value.as_str().unwrap());
            }
            event = event.header("authorization", &bearer);
            let mut body = request["body"].clone();
            if let Some(messages) =
                body.get_mut("messages").and_then(Value::as_array_mut).filter(|messages| messages.len() == 3)
            {
                // The call's id comes from our run.
                messages[1]["toolCalls"][0]["id"] = call.clone();
                messages[2]["toolCallId"] = call.clone();
            }
            if body.is_object() {
                event = event.text(body.to_string());
            }
            if path.ends_with("/info") || body["method"] == "info" {
                let info = world.send("stream", &event).await.expect(200);
                let default = &info["agents"]["default"];
                assert!(default["name"] == "default" && default["description"].is_string(), "{info}");
                assert_eq!((&info["mode"], &info["audioFileTranscriptionEnabled"]), (&json!("sse"), &json!(false)));
                continue;
            }
            let mut stream = world.open_stream(&event).await;
            let (events, client) = taken(&mut stream).await;
            assert_eq!(client.error, None, "{mode} {path}");
            if path.ends_with("/connect") || body["method"] == "agent/connect" {
                assert_eq!(types(&events), ["RUN_STARTED", "RUN_FINISHED"], "nothing has been said yet");
                continue;
            }
            let last = client.messages.last().unwrap();
            if let Some(called) = last["toolCalls"][0]["id"].as_str() {
                call = json!(called);
            } else {
                assert!(["Shown.", "Hello again!"].contains(&last["content"].as_str().unwrap()), "{mode}: {last}");
            }
        }
        assert_eq!(world.llm.script_left(), [], "{mode}");
    }
}

#[tokio::test]
async fn the_single_endpoint_equals_the_separate_ones() {
    let world = World::start().await;
    let call =
        async |body: &Value| world.open_stream(&world.stream_event(&world.home.user_id, "/copilotkit", body)).await;
    world.llm.script([Way::Written.none(), Turn::text("Hello!")]);
    let run = json!({"method": "agent/run", "params": {"agentId": "default"}, "body": run_input("t1", "u1", "Hi")});
    let (_, client) = taken(&mut call(&run).await).await;
    assert_eq!(client.messages[0]["content"], "Hello!");
    let connect =
        json!({"method": "agent/connect", "params": {"agentId": "default"}, "body": {"threadId": "t1", "runId": "r"}});
    let (_, client) = taken(&mut call(&connect).await).await;
    assert_eq!(client.messages.len(), 2);
    let path = "/copilotkit";
    let send = async |body: &Value| world.send("stream", &world.stream_event(&world.home.user_id, path, body)).await;
    let stop = json!({"method": "agent/stop", "params": {"agentId": "default", "threadId": "t1"}});
    assert_eq!(send(&stop).await.expect(200), json!({"stopped": false}));
    assert_eq!(send(&json!({"method": "agent/stop"})).await.expect(400)["error"], "invalid_request");
    let unknown = json!({"method": "agent/run", "params": {"agentId": "other"}, "body": {}});
    assert_eq!(send(&unknown).await.expect(404)["error"], "Agent not found");
}

#[tokio::test]
async fn an_ag_ui_client_may_point_at_the_stream_itself() {
    let world = World::start().await;
    world.llm.script([Way::Written.none(), Turn::text("Hello!")]);
    let event = world.stream_event(&world.home.user_id, "/copilotkit/stream", &run_input("t1", "u1", "Hi"));
    let (_, client) = taken(&mut world.open_stream(&event).await).await;
    assert_eq!(client.messages[0]["content"], "Hello!");
}

#[tokio::test]
async fn a_thread_is_shown_anew_with_the_same_ids() {
    let world = World::start().await;
    world.llm.script([Way::Written.none(), Turn::text("Hello!")]);
    world.run_agent(&run_input("t1", "u1", "Hi")).await.rest().await;
    let (events, client) = taken(&mut world.connect("t1").await).await;
    assert_eq!(types(&events), ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]);
    let roles: Vec<&str> = client.messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!((roles, &client.messages[0]["content"]), (vec!["user", "assistant"], &json!("Hi")));
    let (_, again) = taken(&mut world.connect("t1").await).await;
    assert_eq!(client.messages, again.messages);
}

#[tokio::test]
async fn the_calls_of_a_thread_are_shown_with_their_results() {
    let world = World::start().await;
    crate::chat::find(&world).await;
    world.llm.script([Way::Written.call("find", json!({"query": "sales"})), Turn::text("They were 7 million.")]);
    world.run_agent(&run_input("t1", "u1", "What were the sales?")).await.rest().await;
    let (_, client) = taken(&mut world.connect("t1").await).await;
    let roles: Vec<&str> = client.messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant"]);
    let (call, result) = (&client.messages[1]["toolCalls"][0], &client.messages[2]);
    assert_eq!((&call["function"]["name"], &call["id"]), (&json!("find"), &result["toolCallId"]));
    assert_eq!(call["function"]["arguments"], json!(r#"{"query":"sales"}"#));
    assert!(result["content"].as_str().unwrap().contains("7 million") && result.get("error").is_none(), "{result}");
    // A front end sends all of it back with the next message, which is the only thing that is taken of it.
    world.llm.script([Way::Written.none(), Turn::text("You are welcome.")]);
    let mut next = run_input("t1", "u2", "Thanks");
    let mut messages = client.messages.clone();
    messages.extend(next["messages"].as_array().unwrap().clone());
    next["messages"] = json!(messages);
    let (_, client) = taken(&mut world.run_agent(&next).await).await;
    assert_eq!(client.messages.last().unwrap()["content"], "You are welcome.");
}

#[tokio::test]
async fn of_a_long_thread_the_newest_messages_are_shown() {
    let world = World::start().await;
    world.llm.script([Way::Written.none(), Turn::text("Hello!")]);
    world.run_agent(&run_input("t1", "u1", "Hi")).await.rest().await;
    let rows = world.aws.rows("threads");
    let message = rows.iter().find(|row| row["part"] == "m#000001").unwrap().clone();
    for number in 3..=251 {
        let mut row = message.clone();
        row["part"] = json!(format!("m#{number:06}"));
        row["number"] = json!(number);
        row["content"] = json!(format!("Message {number}"));
        row.as_object_mut().unwrap().remove("request");
        world.aws.put("threads", &row);
    }
    let mut thread = rows.iter().find(|row| row["part"] == "thread").unwrap().clone();
    thread["messages"] = json!(251);
    thread["summary"] = json!({"text": "They greeted each other.", "until": 100, "at": "2026-01-01T00:00:00.000Z"});
    world.aws.put("threads", &thread);
    let (_, client) = taken(&mut world.connect("t1").await).await;
    let contents: Vec<&str> = client.messages.iter().map(|message| message["content"].as_str().unwrap()).collect();
    assert_eq!((contents.len(), contents[1], contents[201]), (202, "Message 52", "Message 251"), "{contents:?}");
    assert!(contents[0].contains("not shown") && contents[50].contains("summary"), "{contents:?}");
    let ids: std::collections::BTreeSet<_> = client.messages.iter().map(|message| message["id"].to_string()).collect();
    assert_eq!(ids.len(), contents.len());
}
