//! Effects whose outcome is unclear, and effects that certainly did not happen.

use std::time::Duration;

use serde_json::json;
use shared::models::Timestamp;
use tests::{
    World, ai_sms, phone,
    standins::{self},
};

use super::{sent_to, statuses, to_several};

#[tokio::test]
async fn an_unclear_outcome_is_recorded_reported_and_never_repeated() {
    for fault in [
        standins::Fault::status(500),
        standins::Fault::status(503).with_effect(standins::Effect::First),
        standins::Fault::drop_after(),
        standins::Fault::drop_before(),
        standins::Fault::body(json!("not JSON")),
    ] {
        let world = World::start().await;
        let tool = world.attached(&ai_sms()).await;
        world.twilio.inject(fault.clone());
        let call = world.call(&tool, json!({"text": "Hello"}));
        let first = world.call_tool(&call).await;
        assert!(first.sentence().contains("not known"), "{fault:?}: {}", first.body);
        assert_eq!(first.body["result"]["recipients"][0]["state"], "unknown");
        assert_eq!(world.twilio.requests().len(), 1, "{fault:?}: no retry of an effect that may have happened");
        for _ in 0..2 {
            assert_eq!(world.call_tool(&call).await.body, first.body, "{fault:?}");
        }
        assert_eq!(world.twilio.requests().len(), 1, "{fault:?}");
        assert_eq!(statuses(&world), ["unknown", "replayed", "replayed"], "{fault:?}");
        let record = &world.aws.rows("idempotency")[0];
        assert!(record["expires_at"].as_i64().unwrap() > Timestamp::now().as_seconds() + 3_600, "remembered for long");
    }
}

#[tokio::test]
async fn a_slow_twilio_is_an_unclear_outcome_within_the_time_vapi_waits() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    world.twilio.inject(standins::Fault::delay(60_000));
    let call = world.call(&tool, json!({"text": "Hello"}));
    let event = world.vapi_event(&call).within(Duration::from_secs(4));
    let answer = world.send("execute", &event).await;
    assert!(answer.sentence().contains("not known"), "{}", answer.body);
    assert_eq!(world.call_tool(&call).await.body, answer.body);
    assert_eq!(world.twilio.requests().len(), 1);
}

#[tokio::test]
async fn some_sent_and_some_unclear_leaves_nothing_to_repeat() {
    let world = World::start().await;
    let tool = world.attached(&to_several(&[phone(2)])).await;
    world.twilio.inject(standins::Fault::drop_after());
    let call = world.call(&tool, json!({"text": "Hello"}));
    let first = world.call_tool(&call).await;
    let sentence = first.sentence();
    assert!(sentence.contains("Sent to") && sentence.contains("not known"), "{sentence}");
    assert_eq!(world.call_tool(&call).await.body, first.body);
    assert_eq!(sent_to(&world), [phone(1), phone(2)]);
}

#[tokio::test]
async fn an_effect_that_certainly_did_not_happen_may_be_retried() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    for status in [401, 400, 404] {
        world.twilio.inject(standins::Fault::status(status));
        let call = world.call(&tool, json!({"text": "Hello"}));
        world.call_tool(&call).await.sentence();
        assert!(world.aws.rows("idempotency").iter().all(|row| row["status"] != "in_progress"));
        world.call_tool(&call).await.result();
    }
    assert_eq!(world.twilio.messages().len(), 3);
}

#[tokio::test]
async fn a_twilio_that_cannot_be_reached_did_nothing() {
    let mut world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    let call = world.call(&tool, json!({"text": "Hello"}));
    let event = world.vapi_event(&call).within(Duration::from_secs(4));
    let twilio = std::mem::replace(&mut world.process.execute.executor.services.twilio, nowhere());
    let answer = world.send("execute", &event).await;
    assert!(answer.sentence().contains("cannot be reached"), "{}", answer.body);
    assert!(world.aws.rows("idempotency").is_empty());
    world.process.execute.executor.services.twilio = twilio;
    world.call_tool(&call).await.result();
    assert_eq!(statuses(&world), ["failed", "succeeded"]);
}

#[tokio::test]
async fn an_effect_does_not_begin_when_the_time_is_almost_over() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    let call = world.call(&tool, json!({"text": "Hello"}));
    let late = world.send("execute", &world.vapi_event(&call).within(Duration::from_millis(1_200))).await;
    assert!(late.sentence().contains("try again in a moment"), "{}", late.body);
    assert!(world.twilio.requests().is_empty() && world.aws.rows("idempotency").is_empty());
    world.call_tool(&call).await.result();
    assert_eq!(statuses(&world), ["failed", "succeeded"]);
}

/// A Twilio client whose address has no server.
fn nowhere() -> shared::clients::Twilio {
    shared::clients::Twilio::new(shared::clients::http_client().unwrap(), tests::clients::nowhere())
}

#[tokio::test]
async fn too_many_requests_are_tried_again_because_they_did_nothing() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    world.twilio.inject(standins::Fault::status(429).times(2));
    world.call_tool(&world.call(&tool, json!({"text": "Hello"}))).await.result();
    assert_eq!((world.twilio.requests().len(), world.twilio.messages().len()), (3, 1));
}
