//! An effect happens once, under repetition, concurrency and faults.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use shared::models::Timestamp;
use tests::{
    Fault, Options, Trouble, World, ai_sms, api_request, phone, slack_action,
    standins::{self, vapi::ToolCall},
};

fn sent_to(world: &World) -> Vec<String> {
    let mut to: Vec<String> = world.twilio.messages().into_iter().map(|message| message.to).collect();
    to.sort();
    to
}

/// An SMS to the caller and to these numbers.
fn to_several(others: &[String]) -> Value {
    let mut config = ai_sms();
    let caller = std::iter::once("{{caller_phone_number}}".to_owned());
    config["recipients"]["fixedValues"] = caller.chain(others.iter().cloned()).collect();
    config
}

fn statuses(world: &World) -> Vec<String> {
    world.executions().iter().map(|row| row["status"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn the_same_call_delivered_again_sends_nothing_and_gets_the_same_answer() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    let call = world.call(&tool, json!({"text": "Hello"}));
    let first = world.call_tool(&call).await;
    for _ in 0..3 {
        let again = world.call_tool(&call).await;
        assert_eq!((again.status, &again.body), (first.status, &first.body));
    }
    assert_eq!(world.twilio.messages().len(), 1);
    assert_eq!(statuses(&world), ["succeeded", "replayed", "replayed", "replayed"]);
}

#[tokio::test]
async fn ten_deliveries_at_once_send_one_sms_and_all_get_its_answer() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    let call = world.call(&tool, json!({"text": "Hello"}));
    let answers = join_all((0..10).map(|_| world.call_tool(&call))).await;
    assert_eq!(world.twilio.messages().len(), 1);
    for answer in &answers {
        assert_eq!(answer.result(), answers[0].result());
    }
    let mut became = statuses(&world);
    became.sort();
    assert_eq!(became.iter().filter(|status| *status == "succeeded").count(), 1, "{became:?}");
}

#[tokio::test]
async fn the_order_and_the_empty_ones_of_arguments_do_not_matter() {
    let world = World::start().await;
    let mut config = ai_sms();
    config["recipients"]["aiExtension"] = json!({"enabled": true, "prompt": "Others", "required": false});
    let tool = world.attached(&config).await;
    let call = world.call(&tool, json!({"text": "Hello"}));
    world.call_tool(&call).await.result();
    let mut again = call.clone();
    again.arguments.insert("recipients".to_owned(), json!(""));
    world.call_tool(&again).await.result();
    assert_eq!(world.twilio.messages().len(), 1);
}

#[tokio::test]
async fn another_call_another_text_and_another_tool_are_other_effects() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    let call = world.call(&tool, json!({"text": "Hello"}));
    world.call_tool(&call).await.result();
    world.call_tool(&world.call(&tool, json!({"text": "Hello"}))).await.result();
    world
        .call_tool(&ToolCall { call_id: call.call_id.clone(), ..world.call(&tool, json!({"text": "Hello!"})) })
        .await
        .result();
    let twin = world.attached(&ai_sms()).await;
    world
        .call_tool(&ToolCall { call_id: call.call_id.clone(), ..world.call(&twin, json!({"text": "Hello"})) })
        .await
        .result();
    assert_eq!(world.twilio.messages().len(), 4);
}

#[tokio::test]
async fn both_shapes_of_one_call_are_one_effect() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    let call = world.call(&tool, json!({"text": "Hello"}));
    let raw = world.vapi_event(&call);
    world.send("execute", &raw).await.result();
    let message = json!({"message": {
        "type": "tool-calls",
        "toolCallList": [{"id": "call_1", "function": {"name": tool["name"], "arguments": {"text": "Hello"}}}],
        "call": {"id": call.call_id}, "customer": {"number": phone(1)}, "phoneNumber": {"number": world.home.phone_number},
    }});
    let bearer = world.options.webhook_bearer.clone().unwrap();
    let event = raw.text(message.to_string()).header("authorization", &format!("Bearer {bearer}"));
    let answer = world.send("execute", &event).await.expect(200);
    assert!(answer["results"][0]["result"].is_string(), "{answer}");
    assert_eq!(world.twilio.messages().len(), 1);
}

#[tokio::test]
async fn after_the_window_the_same_call_is_a_new_effect() {
    let world = World::with(Options { window: Duration::from_secs(1), ..Options::default() }).await;
    let tool = world.attached(&ai_sms()).await;
    let call = world.call(&tool, json!({"text": "Hello"}));
    world.call_tool(&call).await.result();
    let recorded = &world.aws.rows("idempotency")[0];
    let ends = recorded["window_until"].as_i64().unwrap();
    assert!(ends <= Timestamp::now().as_seconds() + 1, "a window of one second");
    // The window has just ended, but the row still exists.
    world.aws.change(
        "idempotency",
        recorded["id"].as_str().unwrap(),
        json!({"window_until": Timestamp::now().as_seconds()}),
    );
    world.call_tool(&call).await.result();
    assert_eq!(world.twilio.messages().len(), 2);
    assert_eq!(statuses(&world), ["succeeded", "succeeded"]);
}

#[tokio::test]
async fn each_recipient_has_its_own_outcome_and_only_the_failed_one_is_tried_again() {
    let world = World::start().await;
    let tool = world.attached(&to_several(&[phone(2), phone(3)])).await;
    // Twilio refuses the first message.
    let refused = standins::Fault::status(400).with_body(json!({"code": 21211, "message": "invalid", "status": 400}));
    world.twilio.inject(refused);
    let call = world.call(&tool, json!({"text": "Hello"}));
    let first = world.call_tool(&call).await;
    assert!(first.sentence().contains("does not exist"), "{}", first.body);
    let outcomes: Vec<&str> =
        first.body["result"]["recipients"].as_array().unwrap().iter().map(|r| r["state"].as_str().unwrap()).collect();
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == "sent").count(), 2);
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == "not_sent").count(), 1);
    assert_eq!(world.twilio.messages().len(), 2);

    let second = world.call_tool(&call).await;
    assert_eq!(second.result()["sent"], 1, "two had it already: {}", second.body);
    assert_eq!(sent_to(&world), [phone(1), phone(2), phone(3)], "each once");
    assert_eq!(statuses(&world), ["partial", "succeeded"]);
    let third = world.call_tool(&call).await;
    assert_eq!(third.body, second.body);
    assert_eq!(world.twilio.messages().len(), 3);
}

#[tokio::test]
async fn a_retry_of_a_part_that_fails_again_still_remembers_the_rest() {
    let world = World::start().await;
    let tool = world.attached(&to_several(&[phone(2)])).await;
    let refused = standins::Fault::status(400).with_body(json!({"code": 21211, "message": "invalid", "status": 400}));
    let call = world.call(&tool, json!({"text": "Hello"}));
    for _ in 0..3 {
        world.twilio.inject(refused.clone());
        world.call_tool(&call).await.sentence();
        assert_eq!(world.twilio.messages().len(), 1);
    }
    world.call_tool(&call).await.result();
    assert_eq!(sent_to(&world), [phone(1), phone(2)]);
}

#[tokio::test]
async fn a_claim_with_a_lost_answer_remembers_the_finished_parts() {
    let world = World::start().await;
    let tool = world.attached(&to_several(&[phone(2)])).await;
    let refused = standins::Fault::status(400).with_body(json!({"code": 21211, "message": "invalid", "status": 400}));
    world.twilio.inject(refused);
    let call = world.call(&tool, json!({"text": "Hello"}));
    world.call_tool(&call).await.sentence();
    assert_eq!(world.twilio.messages().len(), 1);
    world.aws.inject(Fault::new("*", "idempotency", Trouble::DropAfter));
    world.call_tool(&call).await.result();
    assert_eq!(sent_to(&world), [phone(1), phone(2)], "each once");
}

#[tokio::test]
async fn a_recorded_effect_is_forgotten_with_the_window() {
    let world = World::start().await;
    let tool = world.attached(&to_several(&[phone(2)])).await;
    let refused = standins::Fault::status(400).with_body(json!({"code": 21211, "message": "invalid", "status": 400}));
    world.twilio.inject(refused);
    let call = world.call(&tool, json!({"text": "Hello"}));
    world.call_tool(&call).await.sentence();
    world.age_claims(3_600);
    assert_eq!(world.call_tool(&call).await.result()["sent"], 2);
    assert_eq!(world.twilio.messages().len(), 3, "a new effect");
}

#[tokio::test]
async fn any_json_that_an_address_answers_is_recorded() {
    let address =
        standins::twilio::start("127.0.0.1:0".parse().unwrap(), standins::twilio::Options::default()).unwrap();
    let open_hosts = vec![address.address().to_string()];
    let world = World::with(Options { open_hosts, ..Options::default() }).await;
    let tool = world.attached(&api_request("POST", &address.url)).await;
    let deep = (0..60).fold(json!(1), |inner, _| json!([inner]));
    for answer in
        [json!({"": 1}), json!({"deep": deep}), json!(1e200), json!({"n": 1e-200}), json!(""), json!(null), json!([])]
    {
        let call = world.call(&tool, json!({}));
        address.clear_requests();
        address.inject(standins::Fault::status(200).with_body(json!(answer.to_string())));
        let first = world.call_tool(&call).await;
        first.result();
        assert_eq!(world.call_tool(&call).await.body, first.body, "{answer}");
        assert_eq!(address.requests().len(), 1, "{answer}");
        let records = world.aws.rows("idempotency");
        assert!(records.iter().all(|record| record["status"] == "completed"), "{answer}: {records:?}");
    }
}

#[tokio::test]
async fn a_number_that_can_never_be_reached_does_not_keep_the_others_from_their_message() {
    let world = World::start().await;
    let mut config = ai_sms();
    config["recipients"]["aiExtension"] = json!({"enabled": true, "prompt": "Others", "required": false});
    let tool = world.attached(&config).await;
    let answer = world.call_tool(&world.call(&tool, json!({"text": "Hello", "recipients": ["my wife"]}))).await;
    assert!(answer.sentence().contains("my wife"), "{}", answer.body);
    assert_eq!(sent_to(&world), [phone(1)]);
}

#[tokio::test]
async fn an_unclear_outcome_is_recorded_said_so_and_never_repeated() {
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
    let event = world.vapi_event(&call).within(Duration::from_millis(1_500));
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
    let event = world.vapi_event(&call).within(Duration::from_millis(1_200));
    let twilio = std::mem::replace(&mut world.process.execute.executor.services.twilio, nowhere());
    let answer = world.send("execute", &event).await;
    assert!(answer.sentence().contains("cannot be reached"), "{}", answer.body);
    assert!(world.aws.rows("idempotency").is_empty());
    world.process.execute.executor.services.twilio = twilio;
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

#[tokio::test]
async fn a_running_twin_is_awaited_not_repeated() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    world.twilio.inject(standins::Fault::delay(400));
    let call = world.call(&tool, json!({"text": "Hello"}));
    let (first, twin) = futures_util::join!(world.call_tool(&call), async {
        while world.twilio.requests().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        world.call_tool(&call).await
    });
    assert_eq!(first.result(), twin.result());
    assert_eq!(world.twilio.messages().len(), 1);
}

#[tokio::test]
async fn a_twin_that_outlasts_the_wait_is_said_to_be_under_way() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    world.twilio.inject(standins::Fault::delay(60_000));
    let call = world.call(&tool, json!({"text": "Hello"}));
    let long = world.vapi_event(&call).within(Duration::from_millis(3_500));
    let short = world.vapi_event(&call).within(Duration::from_millis(1_700));
    let (_, twin) = futures_util::join!(world.send("execute", &long), async {
        while world.twilio.requests().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        world.send("execute", &short).await
    });
    assert!(twin.sentence().contains("still being carried out"), "{}", twin.body);
    assert_eq!(world.twilio.requests().len(), 1);
}

/// The claim of a process that died.
async fn left_in_progress(world: &World, call: &ToolCall, lease_until: i64) {
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
    world.twilio.inject(standins::Fault::delay(300));
    let meanwhile = async {
        while world.twilio.requests().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let record = world.aws.rows("idempotency").remove(0);
        let taken = json!({"status": "unknown", "token": "of-another", "answer": null});
        world.aws.change("idempotency", record["id"].as_str().unwrap(), taken);
    };
    let (answer, ()) = futures_util::join!(world.call_tool(&call), meanwhile);
    answer.result();
    assert_eq!(world.aws.rows("idempotency")[0]["status"], "unknown");
}

#[tokio::test]
async fn pipedream_actions_run_once() {
    let world = World::start().await;
    let tool = world.attached(&slack_action(&world.home)).await;
    let call = world.call(&tool, json!({"text": "New booking"}));
    let answers = join_all((0..5).map(|_| world.call_tool(&call))).await;
    assert!(answers.iter().all(|answer| answer.result() == answers[0].result()));
    assert_eq!(world.pipedream.runs().len(), 1);
}

#[tokio::test]
async fn reading_claims_nothing() {
    let world = World::start().await;
    let tool = world.attached(&api_request("GET", "https://nobody.example/x")).await;
    let call = world.call(&tool, json!({}));
    world.aws.clear_operations();
    world.call_tool(&call).await.sentence();
    assert!(world.aws.dynamodb().iter().all(|operation| !operation.on.contains(&"idempotency".to_owned())));
}

/// The request of a call with changed metadata; `null` removes a member.
fn with_metadata(world: &World, call: &ToolCall, metadata: &Value) -> tests::Event {
    let event = world.vapi_event(call);
    let mut body: Value = serde_json::from_str(event.body.as_ref().unwrap()).unwrap();
    for (name, value) in metadata.as_object().unwrap() {
        body["metadata"][name] = value.clone();
    }
    event.text(body.to_string())
}

#[tokio::test]
async fn a_call_without_an_id_is_told_apart_by_its_caller() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    let from =
        |caller: &str| ToolCall { customer_number: caller.to_owned(), ..world.call(&tool, json!({"text": "Hello"})) };
    for caller in [phone(1), phone(1), phone(2)] {
        let without_id = with_metadata(&world, &from(&caller), &json!({"callId": "{{ call.id }}"}));
        world.send("execute", &without_id).await.result();
    }
    assert_eq!(sent_to(&world), [phone(1), phone(2)]);
}

#[tokio::test]
async fn strangers_do_not_share_an_effect() {
    let world = World::start().await;
    let mut config = ai_sms();
    config["recipients"] = json!({"mode": "fixed", "value": [phone(5)]});
    let tool = world.attached(&config).await;
    let call = world.call(&tool, json!({"text": "Somebody asks to be called back."}));
    // Empty, a word, a network's placeholder for a withheld number: none identifies a caller.
    let mut sent = 0;
    for caller in ["", "anonymous", "+266696687", "{{ customer.number }}"] {
        let unknown = json!({"callId": "", "callerPhoneNumber": caller});
        for _ in 0..2 {
            world.send("execute", &with_metadata(&world, &call, &unknown)).await.result();
            sent += 1;
            assert_eq!(world.twilio.messages().len(), sent, "{caller:?}");
        }
    }
}

#[tokio::test]
async fn a_claim_in_progress_or_unknown_never_expires_into_free() {
    for age in [100, 200, 26 * 3_600, 30 * 24 * 3_600] {
        let world = World::start().await;
        let tool = world.attached(&ai_sms()).await;
        let call = world.call(&tool, json!({"text": "Hello"}));
        left_in_progress(&world, &call, Timestamp::now().as_millis() + 1_000).await;
        for _ in 0..2 {
            // First in progress, then unknown.
            world.age_claims(age);
            let answer = world.call_tool(&call).await;
            assert!(answer.sentence().contains("not known"), "{age}: {}", answer.body);
        }
        assert_eq!(world.twilio.messages().len(), 1, "{age}: only the one that was sent before");
    }
}

#[tokio::test]
async fn an_unknown_recipient_is_remembered_beside_the_known_ones() {
    let world = World::start().await;
    let tool = world.attached(&to_several(&[phone(2), phone(3)])).await;
    let refused = standins::Fault::status(400).with_body(json!({"code": 21211, "message": "invalid", "status": 400}));
    world.twilio.inject(standins::Fault::drop_after());
    world.twilio.inject(refused.clone());
    let call = world.call(&tool, json!({"text": "Hello"}));
    world.call_tool(&call).await.sentence();
    assert_eq!(world.twilio.messages().len(), 2);
    // The refused part fails again and then succeeds, with hours in between.
    for (tries, sent) in [(1, 2), (0, 3), (0, 3)] {
        world.age_claims(3 * 3_600);
        world.twilio.inject(refused.clone().times(tries));
        world.call_tool(&call).await;
        assert_eq!(world.twilio.messages().len(), sent);
    }
    assert_eq!(sent_to(&world), [phone(1), phone(2), phone(3)], "each once");
}

#[tokio::test]
async fn every_status_says_the_same_of_an_effect_wherever_it_comes_from() {
    let address =
        standins::twilio::start("127.0.0.1:0".parse().unwrap(), standins::twilio::Options::default()).unwrap();
    let open_hosts = vec![address.address().to_string()];
    let world = World::with(Options { open_hosts, ..Options::default() }).await;
    let post = world.attached(&api_request("POST", &address.url)).await;
    let sms = world.attached(&ai_sms()).await;
    let happened_or_unknown = [302, 303, 304, 301, 307, 408, 409, 425, 500, 503];
    for status in happened_or_unknown.into_iter().chain([400, 401, 403, 404, 410, 418, 422]) {
        let asked_again = if happened_or_unknown.contains(&status) { 1 } else { 2 };
        address.clear_requests();
        let call = world.call(&post, json!({}));
        for _ in 0..2 {
            address.inject(standins::Fault::status(status));
            world.call_tool(&call).await;
        }
        assert_eq!(address.requests().len(), asked_again, "POST, {status}");
        address.clear_faults();

        world.twilio.clear_requests();
        let call = world.call(&sms, json!({"text": "Hello"}));
        for _ in 0..2 {
            world.twilio.inject(standins::Fault::status(status));
            world.call_tool(&call).await.sentence();
        }
        assert_eq!(world.twilio.requests().len(), asked_again, "SMS, {status}");
        world.twilio.clear_faults();
    }
}

#[tokio::test]
async fn the_same_effect_in_other_words_is_the_same_effect() {
    let world = World::start().await;
    let mut config = to_several(&[phone(2)]);
    config["recipients"]["aiExtension"] = json!({"enabled": true, "prompt": "Others", "required": false});
    let tool = world.attached(&config).await;
    let formatted = |number: &str| format!("{} ({}) {}", &number[..2], &number[2..5], &number[5..]);
    let others = [phone(3), phone(4)];
    for old_tool in [false, true] {
        let call = world.call(&tool, json!({"text": "Hello", "recipients": others}));
        let before = world.twilio.messages().len();
        for arguments in [
            json!({"text": "Hello", "recipients": others}),
            json!({"text": "Hello", "recipients": others, "urgent": true}),
            json!({"text": " Hello ", "recipients": [phone(4), phone(3), phone(3)]}),
            json!({"text": "Hello", "recipients": [formatted(&phone(3)), phone(4)]}),
            json!({"text": "Hello", "recipients": [phone(2), phone(3), phone(1), phone(4)]}),
            json!({"recipients": others, "text": "Hello", "_placeholder": "", "count": null}),
        ] {
            let again = ToolCall { arguments: arguments.as_object().unwrap().clone(), ..call.clone() };
            // A tool from before VAPI sent its arguments.
            let event = if old_tool {
                with_metadata(&world, &again, &json!({"arguments": null}))
            } else {
                world.vapi_event(&again)
            };
            world.send("execute", &event).await.result();
            assert_eq!(world.twilio.messages().len(), before + 4, "{arguments}");
        }
    }
}

#[tokio::test]
async fn numbers_and_empty_lists_have_many_spellings() {
    let address =
        standins::twilio::start("127.0.0.1:0".parse().unwrap(), standins::twilio::Options::default()).unwrap();
    let open_hosts = vec![address.address().to_string()];
    let world = World::with(Options { open_hosts, ..Options::default() }).await;
    let mut config = api_request("POST", &address.url);
    let optional = |schema: Value| json!({"mode": "ai", "prompt": "x", "required": false, "schema": schema});
    config["body"] = json!({
        "seats": optional(json!({"type": "number"})),
        "at": {"mode": "fixed", "value": "{{now}}"},
        "tags": optional(json!({"type": "array", "items": {"type": "string"}})),
    });
    let tool = world.attached(&config).await;
    let call = world.call(&tool, json!({}));
    for arguments in [
        json!({"body_seats": 3}),
        json!({"body_seats": 3.0}),
        json!({"body_seats": 3, "body_tags": []}),
        json!({"body_tags": null, "body_seats": 3}),
    ] {
        address.inject(standins::Fault::status(200).with_body(json!({})));
        let again = ToolCall { arguments: arguments.as_object().unwrap().clone(), ..call.clone() };
        world.call_tool(&again).await.result();
        assert_eq!(address.requests().len(), 1, "{arguments}");
    }
}

/// A `tool-calls` message of VAPI.
fn tool_calls(world: &World, tool: &Value, call: &ToolCall, id: &str) -> tests::Event {
    let message = json!({"message": {
        "type": "tool-calls",
        "toolCallList": [{"id": id, "function": {"name": tool["name"], "arguments": call.arguments}}],
        "call": {"id": call.call_id}, "customer": {"number": phone(1)}, "phoneNumber": {"number": world.home.phone_number},
    }});
    let bearer = world.options.webhook_bearer.clone().unwrap();
    world.vapi_event(call).text(message.to_string()).header("authorization", &format!("Bearer {bearer}"))
}

#[tokio::test]
async fn a_redelivery_is_told_from_a_repetition_by_the_id_of_the_tool_call() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    let call = world.call(&tool, json!({"text": "Hello"}));
    // Tool call ids in order, hours before each, and the number of messages sent by then.
    for (id, hours, sent) in
        [("call_1", 0, 1), ("call_2", 0, 1), ("call_1", 20, 1), ("call_2", 2, 1), ("call_3", 0, 2), ("call_1", 1, 2)]
    {
        world.age_claims(hours * 3_600);
        let answer = world.send("execute", &tool_calls(&world, &tool, &call, id)).await.expect(200);
        assert!(answer["results"][0]["result"].is_string(), "{id}: {answer}");
        assert_eq!(world.twilio.messages().len(), sent, "{id}");
    }
}

#[tokio::test]
async fn a_failed_repetition_does_not_free_an_earlier_effect() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    let call = world.call(&tool, json!({"text": "Hello"}));
    world.send("execute", &tool_calls(&world, &tool, &call, "call_1")).await.expect(200);
    world.age_claims(3_600);
    world.twilio.inject(standins::Fault::status(400));
    let refused = world.send("execute", &tool_calls(&world, &tool, &call, "call_2")).await.expect(200);
    assert!(refused["results"][0]["error"].is_string(), "{refused}");
    world.send("execute", &tool_calls(&world, &tool, &call, "call_1")).await.expect(200);
    assert_eq!(world.twilio.messages().len(), 1, "the first was delivered again");
    world.send("execute", &tool_calls(&world, &tool, &call, "call_2")).await.expect(200);
    assert_eq!(world.twilio.messages().len(), 2, "the second did not happen and may be tried again");
}

#[tokio::test]
async fn a_partial_outcome_is_the_answer_of_its_delivery_and_a_repetition_tries_the_rest() {
    let world = World::start().await;
    let tool = world.attached(&to_several(&[phone(2)])).await;
    let refused = standins::Fault::status(400).with_body(json!({"code": 21211, "message": "invalid", "status": 400}));
    world.twilio.inject(refused);
    let call = world.call(&tool, json!({"text": "Hello"}));
    let first = world.send("execute", &tool_calls(&world, &tool, &call, "call_1")).await.expect(200);
    for hours in [0, 1] {
        world.age_claims(hours * 3_600);
        let again = world.send("execute", &tool_calls(&world, &tool, &call, "call_1")).await.expect(200);
        assert_eq!(again, first);
        assert_eq!(world.twilio.messages().len(), 1, "after {hours} hours");
    }
    let world = World::start().await;
    let tool = world.attached(&to_several(&[phone(2)])).await;
    world.twilio.inject(standins::Fault::status(400).with_body(json!({"code": 21211, "message": "x", "status": 400})));
    let call = world.call(&tool, json!({"text": "Hello"}));
    for (id, sent) in [("call_1", 1), ("call_2", 2), ("call_1", 2), ("call_2", 2)] {
        world.send("execute", &tool_calls(&world, &tool, &call, id)).await.expect(200);
        assert_eq!(world.twilio.messages().len(), sent, "{id}");
    }
}

#[tokio::test]
async fn empty_values_within_an_argument_are_values() {
    let address =
        standins::twilio::start("127.0.0.1:0".parse().unwrap(), standins::twilio::Options::default()).unwrap();
    let open_hosts = vec![address.address().to_string()];
    let world = World::with(Options { open_hosts, ..Options::default() }).await;
    let mut config = api_request("PATCH", &address.url);
    config["body"] = json!({"fields": {"mode": "ai", "prompt": "x", "schema": {"type": "object"}}});
    let tool = world.attached(&config).await;
    let call = world.call(&tool, json!({}));
    for (number, fields) in [json!({"email": null}), json!({"phone": null}), json!({"phone": ""})].iter().enumerate() {
        address.inject(standins::Fault::status(200).with_body(json!({})));
        let another = world.call(&tool, json!({"body_fields": fields}));
        world.call_tool(&ToolCall { call_id: call.call_id.clone(), ..another }).await.result();
        assert_eq!(address.requests().len(), number + 1, "{fields}");
    }
}

/// Each delivery holds the claim for which the other waits.
#[tokio::test]
async fn two_deliveries_of_a_message_with_several_calls_do_not_wait_for_each_other() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    let call = world.call(&tool, json!({}));
    let list = |texts: [&str; 2]| -> Vec<Value> {
        let item = |text: &&str| json!({"id": format!("call_{text}"), "function": {"name": tool["name"], "arguments": {"text": text}}});
        texts.iter().map(item).collect()
    };
    let message = |texts| {
        let message = json!({"message": {
            "type": "tool-calls", "toolCallList": list(texts),
            "call": {"id": call.call_id}, "customer": {"number": phone(1)}, "phoneNumber": {"number": world.home.phone_number},
        }});
        let bearer = world.options.webhook_bearer.clone().unwrap();
        world.vapi_event(&call).text(message.to_string()).header("authorization", &format!("Bearer {bearer}"))
    };
    let (there, back) = (message(["one", "two"]), message(["two", "one"]));
    let (a, b) = futures_util::join!(world.send("execute", &there), world.send("execute", &back));
    for answer in [a.expect(200), b.expect(200)] {
        for result in answer["results"].as_array().unwrap() {
            assert!(result["result"].is_string(), "{answer}");
        }
    }
    assert_eq!(world.twilio.messages().len(), 2);
}

/// A claim outlives every possible redelivery of its message.
#[test]
fn claims_are_kept_for_longer_than_any_queue_keeps_a_message() {
    let template = tests::Template::read();
    // Dead-letter queues deliver nothing, and messages that an operator moves back are too old to run.
    let queues =
        template.resources("AWS::SQS::Queue").into_iter().filter(|(_, queue)| queue.get("RedrivePolicy").is_some());
    let kept: Vec<u64> = queues.map(|(_, queue)| queue["MessageRetentionPeriod"].as_u64().unwrap()).collect();
    assert!(kept.len() >= 2, "{kept:?}");
    for seconds in kept {
        assert!(Duration::from_secs(seconds) + Duration::from_secs(3_600) < shared::idempotency::RETENTION);
    }
}
