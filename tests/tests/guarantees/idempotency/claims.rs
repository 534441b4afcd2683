//! Claims that another request holds, lost, or made twice.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use shared::models::Timestamp;
use tests::{
    Fault, Trouble, World, ai_sms,
    clients::until,
    phone,
    standins::{self, vapi::ToolCall},
};

#[tokio::test]
async fn a_concurrent_duplicate_waits_for_the_first_call() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    world.twilio.inject(standins::Fault::delay(400));
    let call = world.call(&tool, json!({"text": "Hello"}));
    let (first, twin) = futures_util::join!(world.call_tool(&call), async {
        until(|| !world.twilio.requests().is_empty()).await;
        world.call_tool(&call).await
    });
    assert_eq!(first.result(), twin.result());
    assert_eq!(world.twilio.messages().len(), 1);
}

#[tokio::test]
async fn a_concurrent_duplicate_that_outlasts_the_wait_is_reported_as_in_progress() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    world.twilio.inject(standins::Fault::delay(60_000));
    let call = world.call(&tool, json!({"text": "Hello"}));
    let long = world.vapi_event(&call).within(Duration::from_secs(30));
    let short = world.vapi_event(&call).within(Duration::from_secs(3));
    let twin = async {
        until(|| !world.twilio.requests().is_empty()).await;
        world.send("execute", &short).await
    };
    let twin = tokio::select! {
        first = world.send("execute", &long) => panic!("the first was to outlast its twin: {}", first.body),
        twin = twin => twin,
    };
    assert!(twin.sentence().contains("still being carried out"), "{}", twin.body);
    assert_eq!(world.twilio.requests().len(), 1);
}

/// The claim of a process that died.
pub(super) async fn left_in_progress(world: &World, call: &ToolCall, lease_until: i64) {
    world.call_tool(call).await.result();
    let mut record = world.aws.rows("idempotency").remove(0);
    let record = record.as_object_mut().unwrap();
    record.retain(|name, _| ["id", "token", "expires_at"].contains(&name.as_str()));
    record.insert("status".to_owned(), json!("in_progress"));
    record.insert("lease_until".to_owned(), json!(lease_until));
    record.insert("expires_at".to_owned(), json!(Timestamp::now().as_seconds() + 100));
    world.aws.put("idempotency", &Value::Object(record.clone()));
}

#[tokio::test]
async fn an_owner_that_died_between_effect_and_record_leaves_an_unclear_outcome() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    let call = world.call(&tool, json!({"text": "Hello"}));
    left_in_progress(&world, &call, Timestamp::now().as_millis() - 1).await;
    for _ in 0..2 {
        let answer = world.call_tool(&call).await;
        assert!(answer.sentence().contains("not known"), "{}", answer.body);
    }
    let answers = join_all((0..5).map(|_| world.call_tool(&call))).await;
    assert!(answers.iter().all(|answer| answer.sentence().contains("not known")));
    assert_eq!(world.twilio.messages().len(), 1, "only the one that was sent before");
    assert_eq!(world.aws.rows("idempotency")[0]["status"], "unknown");
}

#[tokio::test]
async fn a_dead_owners_lease_that_runs_out_is_noticed_while_waiting() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    let call = world.call(&tool, json!({"text": "Hello"}));
    left_in_progress(&world, &call, Timestamp::now().as_millis() + 500).await;
    assert!(world.call_tool(&call).await.sentence().contains("not known"));
    assert_eq!(world.twilio.messages().len(), 1);
}

#[tokio::test]
async fn a_claim_that_cannot_be_made_causes_no_effect() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    let call = world.call(&tool, json!({"text": "Hello"}));
    for trouble in ["ProvisionedThroughputExceededException", "InternalServerError", "AccessDeniedException"] {
        world.aws.inject(Fault::new("UpdateItem", "idempotency", Trouble::Error(trouble)).times(3));
        let answer = world.call_tool(&call).await;
        assert!(answer.sentence().contains("not available"), "{trouble}: {}", answer.body);
        world.aws.clear_faults();
        assert!(world.twilio.requests().is_empty(), "{trouble}");
    }
    world.call_tool(&call).await.result();
}

#[tokio::test]
async fn a_claim_whose_answer_is_lost_is_ours_all_the_same() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    world.aws.inject(Fault::new("UpdateItem", "idempotency", Trouble::DropAfter).times(2));
    world.call_tool(&world.call(&tool, json!({"text": "Hello"}))).await.result();
    assert_eq!(world.twilio.messages().len(), 1);
}

/// Nothing was done, so the effect may be asked for again, and the earlier answer stays that of its delivery.
#[tokio::test]
async fn a_later_claim_whose_answer_is_lost_for_good_leaves_the_effect_free() {
    for named in [false, true] {
        let world = World::start().await;
        let tool = world.attached(&ai_sms()).await;
        let call = world.call(&tool, json!({"text": "Hello"}));
        let request = |delivery: &str| {
            let event = world.vapi_event(&call);
            if !named {
                return event;
            }
            let message = json!({"message": {
                "type": "tool-calls",
                "toolCallList": [{"id": delivery, "function": {"name": tool["name"], "arguments": {"text": "Hello"}}}],
                "call": {"id": call.call_id}, "customer": {"number": phone(1)},
                "phoneNumber": {"number": world.home.phone_number},
            }});
            let bearer = world.options.webhook_bearer.clone().unwrap();
            event.text(message.to_string()).header("authorization", &format!("Bearer {bearer}"))
        };
        world.send("execute", &request("call_1")).await.expect(200);
        world.age_claims(3_600);
        world.aws.inject(Fault::new("UpdateItem", "idempotency", Trouble::DropAfter).times(3));
        let lost = world.send("execute", &request("call_2")).await.expect(200).to_string();
        assert!(lost.contains("not available"), "{lost}");
        assert_eq!((world.aws.faults_left(), world.twilio.messages().len()), (0, 1));
        if named {
            assert_eq!(world.aws.rows("idempotency")[0]["status"], "completed");
            world.send("execute", &request("call_1")).await.expect(200);
            assert_eq!(world.twilio.messages().len(), 1, "a redelivery of the first");
        }
        world.send("execute", &request("call_2")).await.expect(200);
        assert_eq!(world.twilio.messages().len(), 2, "named: {named}");
    }
}

/// VAPI waits for 20 seconds; here the function has less time than the writes that hang.
#[tokio::test]
async fn an_outcome_that_is_recorded_slowly_does_not_delay_the_answer() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    let call = world.call(&tool, json!({"text": "Hello"}));
    world.aws.inject(Fault::new("UpdateItem", "idempotency", Trouble::StallBefore).after(1).times(2));
    let answer = world.send("execute", &world.vapi_event(&call).within(Duration::from_secs(3))).await;
    answer.result();
    assert_eq!(world.aws.faults_left(), 0);
    let mut writes = world.aws.dynamodb().into_iter().filter(|done| done.action == "UpdateItem");
    let recorded = writes.rfind(|done| done.on == ["idempotency"]).unwrap();
    assert!(recorded.started > answer.at, "the answer waits for it");
    assert_eq!(world.aws.rows("idempotency")[0]["status"], "completed");
    assert_eq!(world.call_tool(&call).await.result(), answer.result());
    assert_eq!(world.twilio.messages().len(), 1);
}

#[tokio::test]
async fn an_outcome_that_cannot_be_recorded_is_answered_and_not_repeated() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    let call = world.call(&tool, json!({"text": "Hello"}));
    world.aws.inject(Fault::throttled("UpdateItem", "idempotency").after(1));
    world.call_tool(&call).await.result();
    // Expires the lease, as if its owner had died.
    let record = world.aws.rows("idempotency").remove(0);
    assert_eq!(record["status"], "in_progress");
    let ended = json!({"lease_until": Timestamp::now().as_millis() - 1});
    world.aws.change("idempotency", record["id"].as_str().unwrap(), ended);
    assert!(world.call_tool(&call).await.sentence().contains("not known"));
    assert_eq!(world.twilio.messages().len(), 1);
}

#[tokio::test]
async fn a_slow_owner_does_not_overwrite_a_later_record() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    let call = world.call(&tool, json!({"text": "Hello"}));
    world.twilio.inject(standins::Fault::delay(1_500));
    let meanwhile = async {
        until(|| !world.twilio.requests().is_empty()).await;
        let record = world.aws.rows("idempotency").remove(0);
        let taken = json!({"status": "unknown", "token": "of-another", "answer": null});
        world.aws.change("idempotency", record["id"].as_str().unwrap(), taken);
    };
    let (answer, ()) = futures_util::join!(world.call_tool(&call), meanwhile);
    answer.result();
    assert_eq!(world.aws.rows("idempotency")[0]["status"], "unknown");
}
