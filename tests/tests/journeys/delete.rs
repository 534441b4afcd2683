//! DELETE /api/{slug}/tools/{id}
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

use std::time::Duration;

use local::standins::Fault;
use serde_json::json;
use tests::{Event, World, ai_sms, aws, preemptive_sms, vapi_differences};

#[tokio::test]
async fn a_deleted_tool_is_gone_from_every_assistant_from_vapi_and_from_the_tables() {
    let world = World::start().await;
    let kept = world.attached(&ai_sms()).await;
    let tool = world.attached(&ai_sms()).await;
    let agents = world.agents(4).await;
    for agent in &agents {
        world.attach_as(&world.home, agent, tool["id"].as_str().unwrap()).await.expect(201);
    }
    assert_eq!(world.delete(&tool).await.expect(200), json!({"status": "deleted"}));
    assert_eq!(world.tool_ids(), [kept["external_tool_id"].as_str().unwrap()]);
    assert_eq!(world.aws.rows("agent_tools").len(), 1);
    assert_eq!(world.vapi.tools().len(), 1);
    assert_eq!(vapi_differences::differences(&world), [""; 0]);
    // Its name is free.
    assert_eq!(world.tool(&ai_sms()).await["name"], tool["name"]);
}

#[tokio::test]
async fn an_agent_that_the_index_shows_late_does_not_keep_the_id_of_the_deleted_tool() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    world.aws.inject(aws::Fault::new("Query", "agent_tools", aws::Trouble::Lagging));
    world.delete(&tool).await.expect(200);
    assert_eq!((world.aws.faults_left(), world.tool_ids()), (0, Vec::new()));
    assert!(world.aws.rows("agent_tools").is_empty());
    assert_eq!(vapi_differences::differences(&world), [""; 0]);
}

#[tokio::test]
async fn deleting_twice_is_a_404() {
    let world = World::start().await;
    let tool = world.attached(&preemptive_sms()).await;
    world.delete(&tool).await.expect(200);
    let again = world.delete(&tool).await;
    assert_eq!((again.status, &again.body["code"]), (404, &json!("not_found")));
    assert_eq!(vapi_differences::differences(&world), [""; 0]);
}

#[tokio::test]
async fn another_organizations_tool_is_not_found() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    assert_eq!(world.delete_as(&world.other, &tool).await.status, 404);
    assert_eq!(vapi_differences::differences(&world), [""; 0]);
    assert_eq!(world.tools().len(), 1);
}

#[tokio::test]
async fn an_assistant_or_tool_that_vapi_no_longer_has_is_no_obstacle() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    let external = tool["external_tool_id"].as_str().unwrap();
    world.at_vapi("DELETE", &format!("/tool/{external}"), &json!({})).await;
    world.at_vapi("DELETE", &format!("/assistant/{}", world.home.assistant_id), &json!({})).await;
    world.delete(&tool).await.expect(200);
    assert!(world.tools().is_empty() && world.aws.rows("agent_tools").is_empty());
}

#[tokio::test]
async fn an_error_of_vapis_stops_the_deletion_and_says_where() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    let agents = world.agents(2).await;
    for agent in &agents {
        world.attach_as(&world.home, agent, tool["id"].as_str().unwrap()).await.expect(201);
    }
    world.vapi.inject(Fault::status(500).on("PATCH", &world.home.assistant_id).times(9));
    let answer = world.delete(&tool).await;
    assert_eq!(answer.status, 502, "{}", answer.body);
    let left = answer.body["agents_left"].as_array().unwrap();
    assert!(left.contains(&json!(world.home.agent_id)), "{}", answer.body);
    assert_eq!(left.len() + answer.body["agents_done"].as_array().unwrap().len(), 3);
    assert_eq!(world.tools().len(), 1);
    // The deletion is on record, and finishes by itself.
    world.vapi.clear_faults();
    world.later();
    assert_eq!(world.settle().await["left"], json!([]));
    assert!(world.tools().is_empty());
    assert_eq!(vapi_differences::differences(&world), [""; 0]);
}

#[tokio::test]
async fn a_tool_that_vapi_does_not_delete_keeps_its_row() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    world.vapi.inject(Fault::status(500).on("DELETE", "/tool/").times(9));
    assert_eq!(world.delete(&tool).await.status, 502);
    assert_eq!(world.tools().len(), 1);
}

#[tokio::test]
async fn a_tool_that_vapi_keeps_pinned_is_explained() {
    let world = World::start().await;
    let tool = world.tool(&ai_sms()).await;
    world.vapi.pin(tool["external_tool_id"].as_str().unwrap());
    let answer = world.delete(&tool).await;
    assert_eq!(answer.status, 409);
    assert!(answer.body["detail"].as_str().unwrap().contains("publish"), "{}", answer.body);
    assert_eq!(world.tools().len(), 1);
}

#[tokio::test]
async fn a_tool_of_more_agents_than_one_transaction_holds() {
    let world = World::start().await;
    let tool = world.attached(&preemptive_sms()).await;
    for agent in world.agents(130).await {
        world.aws.put("agent_tools", &json!({
            "id": agent, "organization_id": world.home.organization_id, "agent_id": agent, "tool_id": tool["id"],
            "is_vapi_attached": false, "created_at": "2026-01-01T00:00:00.000Z", "updated_at": "2026-01-01T00:00:00.000Z",
        }));
    }
    world.delete(&tool).await.expect(200);
    assert!(world.aws.rows("agent_tools").is_empty());
    assert_eq!(vapi_differences::differences(&world), [""; 0]);
}

/// With less time than one agent takes, nothing begins; `settle` is woken and continues at once.
#[tokio::test]
async fn a_deletion_without_time_enough_goes_on_through_the_queue() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    for agent in world.agents(20).await {
        world.attach_as(&world.home, &agent, tool["id"].as_str().unwrap()).await.expect(201);
    }
    let path = format!("/api/{}/tools/{}", world.home.slug, tool["id"].as_str().unwrap());
    let hurried = Event::new("DELETE", &path).user(&world.home.user_id).within(Duration::from_secs(5));
    let answer = world.send("delete", &hurried).await.expect(202);
    assert_eq!((&answer["status"], answer["agents_left"].as_array().map(Vec::len)), (&json!("deleting"), Some(21)));
    assert_eq!(world.aws.messages("settle"), [json!({"change": "delete_tool"})]);
    // At once: the change has no owner any more.
    assert_eq!(world.settle().await["settled"][0]["outcome"], "the tool was deleted");
    assert_eq!(vapi_differences::differences(&world), [""; 0]);
    assert!(world.tools().is_empty());
}

/// 500 agents, with a 429 of VAPI's now and then.
#[tokio::test]
async fn a_tool_of_500_agents_is_deleted_and_429_is_honoured() {
    let world = World::start().await;
    let tool = world.tool(&ai_sms()).await;
    let (external, now) = (tool["external_tool_id"].clone(), "2026-01-01T00:00:00.000Z");
    for agent in world.agents(500).await {
        let assistant = world.aws.row("agents", &agent).unwrap()["external_assistant_id"].as_str().unwrap().to_owned();
        let model = json!({"provider": "openai", "model": "gpt-4o", "toolIds": [external]});
        world.at_vapi("PATCH", &format!("/assistant/{assistant}"), &json!({ "model": model })).await;
        world.aws.put(
            "agent_tools",
            &json!({
                "id": agent, "organization_id": world.home.organization_id, "agent_id": agent, "tool_id": tool["id"],
                "is_vapi_attached": true, "created_at": now, "updated_at": now,
            }),
        );
    }
    world.vapi.inject(Fault::status(429).with_header("retry-after", "1").on("PATCH", "/assistant/").times(2));
    let answer = world.delete(&tool).await;
    let mut rounds = 0;
    while !world.aws.rows("intents").is_empty() {
        assert_eq!(answer.status, 202);
        world.settle().await;
        rounds += 1;
        assert!(rounds < 10);
    }
    assert!(answer.status == 200 || answer.status == 202, "{}", answer.body);
    assert_eq!(vapi_differences::differences(&world), [""; 0]);
    assert!(world.tools().is_empty() && world.aws.rows("agent_tools").is_empty());
}

#[tokio::test]
async fn a_deletion_that_fails_once_is_finished_at_once() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    world.aws.inject(aws::Fault::throttled("TransactWriteItems", "tools"));
    assert_eq!(world.delete(&tool).await.status, 503);
    assert_eq!(vapi_differences::differences(&world), [""; 0]);
    assert!(world.tools().is_empty() && world.vapi.tools().is_empty());
}

#[tokio::test]
async fn rows_that_cannot_be_deleted_leave_the_deletion_open() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    world.aws.inject(aws::Fault::throttled("TransactWriteItems", "tools").times(6));
    assert_eq!(world.delete(&tool).await.status, 503);
    assert_eq!(world.aws.rows("intents").len(), 1);
    world.later();
    assert_eq!(world.settle().await["settled"][0]["outcome"], "the tool was deleted");
    assert_eq!(vapi_differences::differences(&world), [""; 0]);
}
