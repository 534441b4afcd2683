//! An effect happens once, under repetition, concurrency and faults.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

mod claims;
mod spellings;
mod unclear_outcomes;

use claims::left_in_progress;
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
async fn an_attempt_that_does_not_begin_names_the_recipients_of_an_earlier_one() {
    let world = World::start().await;
    let mut config = to_several(&[phone(2)]);
    config["recipients"]["aiExtension"] = json!({"enabled": true, "prompt": "Others", "required": false});
    config["limits"] = json!({"per_call": 1});
    for others in [json!([]), json!([phone(3)])] {
        let tool = world.attached(&config).await;
        let call = world.call(&tool, json!({"text": "Hello", "recipients": others}));
        let refused = json!({"code": 21211, "message": "invalid", "status": 400});
        world.twilio.inject(standins::Fault::status(400).with_body(refused));
        world.call_tool(&call).await.sentence();
        let sent = world.twilio.messages().len();
        for _ in 0..2 {
            let again = world.call_tool(&call).await;
            let told = again.sentence();
            assert!(told.contains("lready sent to ") && told.contains("as often as is allowed"), "{told}");
            let states = again.body["result"]["recipients"].as_array().unwrap().iter();
            let mut states: Vec<&str> = states.map(|one| one["state"].as_str().unwrap()).collect();
            states.sort_unstable();
            let expected = if others == json!([]) {
                &["already_sent", "not_sent"][..]
            } else {
                &["already_sent", "already_sent", "not_sent"]
            };
            assert_eq!(states, expected);
        }
        assert_eq!(world.twilio.messages().len(), sent);
    }
    assert_eq!(statuses(&world), ["partial"; 6]);
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
async fn different_callers_do_not_share_an_effect() {
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
