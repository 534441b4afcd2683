//! POST /api/{slug}/agents/{id}/tools/detach
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

use local::standins::Fault;
use serde_json::json;
use tests::{World, ai_sms, aws, preemptive_sms, vapi_differences};

#[tokio::test]
async fn a_detached_tool_leaves_the_assistant_and_the_table_and_nothing_else() {
    let world = World::start().await;
    let (kept, tool) = (world.attached(&ai_sms()).await, world.attached(&ai_sms()).await);
    let before = world.model();
    let answer = world.detach(tool["id"].as_str().unwrap()).await.expect(200);
    assert_eq!(answer, json!({"agent_id": world.home.agent_id, "tool_id": tool["id"], "detached": true}));
    assert_eq!(world.tool_ids(), [kept["external_tool_id"].as_str().unwrap()]);
    let (mut then, mut now) = (before, world.model());
    (then["toolIds"], now["toolIds"]) = (json!(null), json!(null));
    assert_eq!(then, now);
    assert_eq!(vapi_differences::differences(&world), [""; 0]);
    // The tool itself is still there and can be attached again.
    world.attach(tool["id"].as_str().unwrap()).await.expect(201);
    assert_eq!(vapi_differences::differences(&world), [""; 0]);
}

#[tokio::test]
async fn a_preemptive_tool_is_detached_without_a_word_to_vapi() {
    let world = World::start().await;
    let tool = world.attached(&preemptive_sms()).await;
    world.vapi.clear_requests();
    world.detach(tool["id"].as_str().unwrap()).await.expect(200);
    assert!(world.vapi.requests().is_empty());
    assert!(world.aws.rows("agent_tools").is_empty());
}

#[tokio::test]
async fn detaching_a_tool_that_is_not_attached_is_not_found() {
    let world = World::start().await;
    let tool = world.tool(&ai_sms()).await;
    let id = tool["id"].as_str().unwrap();
    assert_eq!(world.detach(id).await.status, 404);
    assert_eq!(world.detach(&uuid::Uuid::new_v4().to_string()).await.status, 404);
    world.attach(id).await.expect(201);
    assert_eq!(world.detach_as(&world.other, &world.home.agent_id, id).await.status, 404);
    assert_eq!(world.detach_as(&world.other, &world.other.agent_id, id).await.status, 404);
    assert_eq!(world.detach("x").await.wrong_fields(), ["tool_id"]);
    assert_eq!(vapi_differences::differences(&world), [""; 0]);
}

#[tokio::test]
async fn a_tool_that_only_vapi_has_is_detached_too() {
    let world = World::start().await;
    let tool = world.tool(&ai_sms()).await;
    let mut model = world.model();
    model["toolIds"] = json!([tool["external_tool_id"]]);
    world.at_vapi("PATCH", &format!("/assistant/{}", world.home.assistant_id), &json!({"model": model})).await;
    world.detach(tool["id"].as_str().unwrap()).await.expect(200);
    assert!(world.tool_ids().is_empty());
}

#[tokio::test]
async fn a_detachment_that_fails_is_finished_at_once() {
    let world = World::start().await;
    for at_vapi in [true, false] {
        let tool = world.attached(&ai_sms()).await;
        if at_vapi {
            world.vapi.inject(Fault::status(400).on("PATCH", "/assistant/"));
        } else {
            world.aws.inject(aws::Fault::throttled("TransactWriteItems", "agent_tools"));
        }
        let answer = world.detach(tool["id"].as_str().unwrap()).await;
        assert_eq!(answer.status, if at_vapi { 502 } else { 503 }, "{}", answer.body);
        assert!(world.tool_ids().is_empty() && world.aws.rows("agent_tools").is_empty());
        assert_eq!(vapi_differences::differences(&world), [""; 0]);
    }
}

#[tokio::test]
async fn vapi_or_the_table_failing_on_leaves_an_intent_that_is_settled() {
    for at_vapi in [true, false] {
        let world = World::start().await;
        let tool = world.attached(&ai_sms()).await;
        if at_vapi {
            world.vapi.inject(Fault::status(500).on("PATCH", "/assistant/").times(9));
        } else {
            world.aws.inject(aws::Fault::throttled("TransactWriteItems", "agent_tools").times(6));
        }
        assert!(world.detach(tool["id"].as_str().unwrap()).await.status >= 500);
        assert_eq!(world.aws.rows("intents").len(), 1);
        world.vapi.clear_faults();
        world.later();
        assert_eq!(world.settle().await["settled"][0]["outcome"], "the tool was detached");
        assert!(world.tool_ids().is_empty());
        assert_eq!(vapi_differences::differences(&world), [""; 0]);
    }
}
