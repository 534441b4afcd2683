//! Asynchronous tools: execute queues them, run-tool runs them.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

use local::standins::{Fault, Standin, twilio};
use serde_json::{Value, json};
use shared::models::Timestamp;
use tests::{World, ai_sms, aws, phone};

async fn later(world: &World) -> Value {
    let mut tool = ai_sms();
    tool["async"] = json!(true);
    world.attached(&tool).await
}

#[tokio::test]
async fn an_asynchronous_tool_answers_at_once_and_runs_by_the_queue() {
    let world = World::start().await;
    let tool = later(&world).await;
    let call = world.call(&tool, json!({"text": "See you at nine", "made_up": 1}));
    let told = world.call_tool(&call).await.result().clone();
    assert!(told.as_str().unwrap().contains("in the background"), "{told}");
    assert!(world.twilio.messages().is_empty());
    let queued = world.executions().remove(0);
    assert_eq!((&queued["status"], &queued["call_id"]), (&json!("queued"), &json!(call.call_id)));

    assert_eq!(world.run_queued().await, 0);
    let sent = world.twilio.messages();
    assert_eq!((sent.len(), sent[0].to.as_str(), sent[0].body.as_str()), (1, phone(1).as_str(), "See you at nine"));
    let [ran] = &world.executions()[..] else { panic!("one run is one row") };
    assert_eq!((&ran["id"], &ran["status"]), (&queued["id"], &json!("succeeded")));
    assert_eq!((&ran["queued_at"], &ran["ignored_arguments"]), (&queued["queued_at"], &json!(["made_up"])));
}

/// SQS refuses U+FFFE and U+FFFF, which a model may write.
#[tokio::test]
async fn a_text_with_characters_that_no_queue_takes_is_sent_as_it_is() {
    let world = World::start().await;
    let tool = later(&world).await;
    let text = "Nine \u{fffe}\u{ffff}\u{fffd}\u{7f}\u{1fffe}";
    world.call_tool(&world.call(&tool, json!({"text": text}))).await.result();
    assert_eq!(world.run_queued().await, 0);
    assert_eq!(world.twilio.messages()[0].body, text);
}

#[tokio::test]
async fn the_model_hears_of_mistakes_before_the_execution_is_queued() {
    let world = World::start().await;
    let tool = later(&world).await;
    let told = world.call_tool(&world.call(&tool, json!({}))).await.sentence().to_owned();
    assert!(told.contains("\"text\""), "{told}");
    assert!(world.aws.messages("executions").is_empty());
}

#[tokio::test]
async fn a_failing_queue_is_reported() {
    let world = World::start().await;
    let tool = later(&world).await;
    world.aws.inject(aws::Fault::new("SendMessage", "executions", aws::Trouble::Error("AccessDenied")));
    let call = world.call(&tool, json!({"text": "Hi"}));
    let told = world.call_tool(&call).await.sentence().to_owned();
    assert!(told.contains("not available just now"), "{told}");
    assert_eq!(world.executions()[0]["status"], "failed");
    // Nothing is claimed, so it can be tried again.
    world.call_tool(&call).await.result();
    world.run_queued().await;
    assert_eq!(world.twilio.messages().len(), 1);
}

#[tokio::test]
async fn a_message_whose_credentials_cannot_be_read_for_a_moment_is_sent_by_the_redelivery() {
    let world = World::start().await;
    let tool = later(&world).await;
    world.call_tool(&world.call(&tool, json!({"text": "Hi"}))).await.result();
    let trouble = aws::Trouble::Error("InternalServiceError");
    world.aws.inject(aws::Fault::new("GetSecretValue", "*", trouble).times(99));
    assert_eq!(world.run_queued().await, 1);
    world.aws.clear_faults();
    assert_eq!(world.run_queued().await, 0);
    assert_eq!(world.twilio.messages().len(), 1);
    assert_eq!(world.executions()[0]["status"], "succeeded");
}

#[tokio::test]
async fn the_history_of_a_background_tool_is_written_after_a_short_outage() {
    let world = World::start().await;
    let tool = later(&world).await;
    world.call_tool(&world.call(&tool, json!({"text": "Hi"}))).await.result();
    // All attempts of the SDK at one write.
    world.aws.inject(aws::Fault::new("PutItem", "executions", aws::Trouble::Error("InternalServerError")).times(3));
    assert_eq!(world.run_queued().await, 0);
    assert_eq!((world.aws.faults_left(), world.twilio.messages().len()), (0, 1));
    assert_eq!(world.executions()[0]["status"], "succeeded");
}

/// SQS delivers at least once, and a model repeats its calls.
#[tokio::test]
async fn a_message_delivered_twice_at_the_same_time_acts_once() {
    let world = World::start().await;
    let tool = later(&world).await;
    world.call_tool(&world.call(&tool, json!({"text": "Hi"}))).await.result();
    let message = world.aws.messages("executions").remove(0).to_string();
    for _ in 0..3 {
        world.aws.post("executions", &message);
    }
    assert_eq!(world.run_queued().await, 0);
    world.aws.post("executions", &message);
    assert_eq!(world.run_queued().await, 0);
    assert_eq!(world.twilio.messages().len(), 1);
    let [ran] = &world.executions()[..] else { panic!("one run is one row") };
    assert_eq!(ran["status"], "succeeded");
}

/// SQS redelivers a message after its visibility timeout, which is longer than the window of a repetition.
#[tokio::test]
async fn a_message_delivered_again_after_the_window_does_nothing_again() {
    let world = World::start().await;
    let tool = later(&world).await;
    world.call_tool(&world.call(&tool, json!({"text": "Hi"}))).await.result();
    let message = world.aws.messages("executions").remove(0).to_string();
    assert_eq!(world.run_queued().await, 0);
    for minutes in [3, 10, 23 * 60] {
        world.age_claims(minutes * 60);
        world.aws.post("executions", &message);
        assert_eq!(world.run_queued().await, 0);
        assert_eq!(world.twilio.messages().len(), 1, "after {minutes} minutes");
    }
    let [ran] = &world.executions()[..] else { panic!("one execution is one row") };
    assert_eq!(ran["status"], "succeeded");
}

/// The author edits the tool between two deliveries of a message.
#[tokio::test]
async fn a_message_delivered_again_after_an_edit_does_nothing_again() {
    let world = World::start().await;
    let mut config = tests::ai_sms();
    config["async"] = json!(true);
    config["recipients"]["aiExtension"] = json!({"enabled": true, "prompt": "Others", "required": false});
    let tool = world.attached(&config).await;
    world.call_tool(&world.call(&tool, json!({"text": "Hi", "recipients": [phone(2)]}))).await.result();
    let message = world.aws.messages("executions").remove(0).to_string();
    assert_eq!(world.run_queued().await, 0);
    assert_eq!(world.twilio.messages().len(), 2);
    config["recipients"]["fixedValues"] = json!(["{{caller_phone_number}}", phone(2)]);
    world.update(&tool, &json!({"recipients": config["recipients"]})).await.expect(200);
    world.aws.post("executions", &message);
    assert_eq!(world.run_queued().await, 0);
    assert_eq!(world.twilio.messages().len(), 2);
}

#[tokio::test]
async fn a_late_message_of_a_possible_effect_is_not_reported_as_undone() {
    for deleted in [false, true] {
        let world = World::start().await;
        let tool = later(&world).await;
        world.call_tool(&world.call(&tool, json!({"text": "Hi"}))).await.result();
        let mut message = world.aws.messages("executions").remove(0);
        world.aws.inject(aws::Fault::new("UpdateItem", "idempotency", aws::Trouble::StallBefore).after(1));
        tokio::select! {
            _ = world.run_queued() => panic!("nothing stalled"),
            () = world.aws.stalled() => {}
        }
        assert_eq!(world.twilio.messages().len(), 1);
        world.age_claims(3_600);
        if deleted {
            world.delete(&tool).await.expect(200);
        }
        message["queued_at"] = json!("2026-01-01T00:00:00.000Z");
        world.aws.post("executions", &message.to_string());
        assert_eq!(world.run_queued().await, 0);
        let [ended] = &world.executions()[..] else { panic!("one execution is one row") };
        assert_eq!(ended["status"], "unknown", "{ended}");
        assert!(ended["error"].as_str().unwrap().contains("not known"), "{ended}");
    }
}

#[tokio::test]
async fn a_lost_answer_of_the_queue_is_an_unknown_outcome() {
    let world = World::start().await;
    let tool = later(&world).await;
    world.aws.inject(aws::Fault::new("SendMessage", "executions", aws::Trouble::DropAfter).times(3));
    let told = world.call_tool(&world.call(&tool, json!({"text": "Hi"}))).await.sentence().to_owned();
    assert!(told.contains("not known") && told.contains("do not call it again"), "{told}");
    assert_eq!(world.executions()[0]["status"], "unknown");
    assert_eq!(world.run_queued().await, 0);
    assert_eq!((world.twilio.messages().len(), &world.executions()[0]["status"]), (1, &json!("succeeded")));
}

#[tokio::test]
async fn an_execution_that_waited_too_long_is_not_sent() {
    let world = World::start().await;
    let tool = later(&world).await;
    world.call_tool(&world.call(&tool, json!({"text": "Hi"}))).await.result();
    let mut message = world.aws.messages("executions").remove(0);
    while world.aws.receive("executions", 3).is_some() {}
    message["queued_at"] = json!("2026-01-01T00:00:00.000Z");
    world.aws.post("executions", &message.to_string());
    assert_eq!(world.run_queued().await, 0);
    assert!(world.twilio.messages().is_empty());
    let [dropped] = &world.executions()[..] else { panic!("one execution is one row") };
    assert_eq!(dropped["status"], "failed");
    assert!(dropped["error"].as_str().unwrap().contains("too long ago"), "{dropped}");
}

#[tokio::test]
async fn the_same_effect_asked_for_twice_in_a_call_happens_once() {
    let world = World::start().await;
    let tool = later(&world).await;
    let call = world.call(&tool, json!({"text": "Hi"}));
    world.call_tool(&call).await.result();
    world.call_tool(&call).await.result();
    assert_eq!(world.run_queued().await, 0);
    assert_eq!(world.twilio.messages().len(), 1);
    let mut statuses: Vec<_> = world.executions().iter().map(|run| run["status"].clone()).collect();
    statuses.sort_by_key(ToString::to_string);
    assert_eq!(statuses, ["replayed", "succeeded"]);
}

#[tokio::test]
async fn a_poison_message_ends_in_the_dead_letter_queue_and_does_not_hold_up_its_neighbours() {
    let world = World::start().await;
    let tool = later(&world).await;
    world.aws.post("executions", "{\"not\": \"a run\"}");
    world.call_tool(&world.call(&tool, json!({"text": "Hi"}))).await.result();
    assert_eq!(world.run_queued().await, 1);
    assert_eq!(world.twilio.messages().len(), 1);
    for _ in 0..4 {
        assert_eq!(world.run_queued().await, 1);
    }
    assert_eq!(world.run_queued().await, 0);
    assert_eq!(world.aws.messages("executions-dead"), [json!({"not": "a run"})]);
}

/// SQS delivers it again only after six minutes.
#[tokio::test]
async fn a_short_outage_of_the_database_does_not_put_a_message_back() {
    let world = World::start().await;
    let tool = later(&world).await;
    for (action, table) in [("GetItem", "tools"), ("UpdateItem", "idempotency")] {
        let text = format!("{action} {table}");
        world.call_tool(&world.call(&tool, json!({ "text": text }))).await.result();
        world.aws.inject(aws::Fault::throttled(action, table));
        assert_eq!(world.run_queued().await, 0, "{text}");
        assert_eq!((world.aws.faults_left(), world.twilio.messages().pop().unwrap().body), (0, text));
    }
}

#[tokio::test]
async fn an_outage_of_the_database_has_the_message_delivered_again() {
    let world = World::start().await;
    let tool = later(&world).await;
    world.call_tool(&world.call(&tool, json!({"text": "Hi"}))).await.result();
    world.aws.inject(aws::Fault::throttled("UpdateItem", "idempotency").times(99));
    assert_eq!(world.run_queued().await, 1);
    world.aws.clear_faults();
    assert_eq!(world.executions()[0]["status"], "queued");
    assert_eq!(world.run_queued().await, 0);
    assert_eq!((world.twilio.messages().len(), &world.executions()[0]["status"]), (1, &json!("succeeded")));
}

#[tokio::test]
async fn the_function_dies_between_effect_and_record_and_the_effect_is_not_repeated() {
    let world = World::start().await;
    let tool = later(&world).await;
    world.call_tool(&world.call(&tool, json!({"text": "Hi"}))).await.result();
    let message = world.aws.messages("executions").remove(0).to_string();
    // The claim is written, its outcome never is.
    world.aws.inject(aws::Fault::new("UpdateItem", "idempotency", aws::Trouble::StallBefore).after(1));
    tokio::select! {
        _ = world.run_queued() => panic!("nothing stalled"),
        () = world.aws.stalled() => {}
    }
    assert_eq!(world.twilio.messages().len(), 1);
    for claim in world.aws.rows("idempotency") {
        world.aws.change("idempotency", claim["id"].as_str().unwrap(), json!({"lease_until": 1}));
    }
    world.aws.post("executions", &message);
    assert_eq!(world.run_queued().await, 0);
    assert_eq!(world.twilio.messages().len(), 1);
    assert_eq!(world.executions()[0]["status"], "unknown");
}

#[tokio::test]
async fn a_run_whose_tool_was_deleted_is_dropped() {
    let world = World::start().await;
    let tool = later(&world).await;
    world.call_tool(&world.call(&tool, json!({"text": "Hi"}))).await.result();
    world.delete(&tool).await.expect(200);
    // The earlier outcome cannot be read just now: the message is redelivered.
    world.aws.inject(aws::Fault::throttled("UpdateItem", "idempotency").times(99));
    assert_eq!(world.run_queued().await, 1);
    world.aws.clear_faults();
    assert_eq!(world.executions()[0]["status"], "queued");
    assert_eq!(world.run_queued().await, 0);
    assert!(world.twilio.messages().is_empty());
    let [dropped] = &world.executions()[..] else { panic!("one execution is one row") };
    assert_eq!((&dropped["status"], &dropped["arguments"]), (&json!("failed"), &json!({"text": "Hi"})));
    assert!(dropped["error"].as_str().unwrap().contains("was deleted"), "{dropped}");
}

#[tokio::test]
async fn twilios_refusal_is_an_outcome_and_not_tried_again() {
    let world = World::start().await;
    let tool = later(&world).await;
    world.call_tool(&world.call(&tool, json!({"text": "Hi"}))).await.result();
    world.twilio.inject(Fault::status(400));
    assert_eq!(world.run_queued().await, 0);
    assert_eq!(world.executions()[0]["status"], "failed");
    assert!(world.aws.messages("executions").is_empty());
}

/// A tool that reads in the background, and a live call that came in through Switchboard.
pub(crate) async fn background(world: &World, crm: &Standin<twilio::Twilio>, label: &str, async_result: &str) -> Value {
    let mut config = tests::api_request("GET", &format!("{}/{label}", crm.url));
    config["label"] = json!(label);
    config["async"] = json!(true);
    config["async_result"] = json!(async_result);
    world.attached(&config).await
}

pub(crate) async fn live_call(world: &World) -> String {
    let answer = world.send("call-start", &world.incoming(&world.caller(&phone(1)))).await;
    let twiml = answer.expect(200).as_str().unwrap().to_owned();
    twiml.split_once("/transport").unwrap().0.rsplit('/').next().unwrap().to_owned()
}

pub(crate) async fn crm_world() -> (World, Standin<twilio::Twilio>) {
    let crm = twilio::start("127.0.0.1:0".parse().unwrap(), twilio::Options::default()).unwrap();
    let world =
        World::with(tests::Options { open_hosts: vec![crm.address().to_string()], ..tests::Options::default() }).await;
    (world, crm)
}

pub(crate) async fn asked_for(world: &World, tool: &Value, call: &str) -> Value {
    let mut asked = world.call(tool, json!({}));
    asked.call_id = Some(call.to_owned());
    world.call_tool(&asked).await.result().clone()
}

/// What the call was told, and whether the model answers.
pub(crate) fn heard(world: &World, call: &str) -> Vec<(String, bool)> {
    let of = |message: Value| {
        let content = message["message"]["content"].as_str().unwrap().to_owned();
        (content, message["triggerResponseEnabled"].as_bool().unwrap())
    };
    world.vapi.heard(call).into_iter().map(of).collect()
}

const HEADING: &str = "Results of tools that ran in the background:";

pub(crate) fn answers(crm: &Standin<twilio::Twilio>, label: &str, fault: Fault) {
    crm.inject(fault.on("GET", &format!("/{label}")));
}

pub(crate) async fn moments(world: &World, call: &str, event: &str) -> Vec<Value> {
    let timeline = world.calls(&format!("/{call}")).await.expect(200)["timeline"].clone();
    timeline.as_array().unwrap().iter().filter(|moment| moment["event"] == event).cloned().collect()
}

#[tokio::test]
async fn a_live_call_is_told_the_result_once_as_the_tool_wishes() {
    let (world, crm) = crm_world().await;
    let call = live_call(&world).await;
    for (label, wish, speaks) in
        [("orders", "speak", Some(true)), ("notes", "note", Some(false)), ("log", "none", None)]
    {
        let tool = background(&world, &crm, label, wish).await;
        let before = heard(&world, &call).len();
        answers(&crm, label, Fault::body(json!({"state": "shipped"})));
        let told = asked_for(&world, &tool, &call).await;
        assert_eq!(told.as_str().unwrap().contains("will be told"), speaks.is_some(), "{told}");
        let message = world.aws.messages("executions").remove(0).to_string();
        assert_eq!(world.run_queued().await, 0);
        // SQS delivers at least once.
        world.aws.post("executions", &message);
        world.aws.post("executions", &message);
        answers(&crm, label, Fault::body(json!({"state": "again"})).times(2));
        assert_eq!(world.run_queued().await, 0);
        crm.clear_faults();
        let expected = speaks.map(|speaks| (format!("{HEADING}\n{label}: {{\"state\":\"shipped\"}}"), speaks));
        assert_eq!(heard(&world, &call)[before..], expected.into_iter().collect::<Vec<_>>()[..], "{label}");
    }
    assert_eq!(moments(&world, &call, "result_injected").await.len(), 2);
    let failing = background(&world, &crm, "failing", "speak").await;
    asked_for(&world, &failing, &call).await;
    answers(&crm, "failing", Fault::status(500).times(9));
    assert_eq!(world.run_queued().await, 0);
    let (told, speaks) = heard(&world, &call).pop().unwrap();
    assert!(speaks && told.starts_with(&format!("{HEADING}\nfailing: ")) && told.len() > 80, "{told}");
}

#[tokio::test]
async fn forty_results_at_once_are_told_once_each_and_in_order() {
    let (world, crm) = crm_world().await;
    let call = live_call(&world).await;
    let tool = background(&world, &crm, "order", "speak").await;
    for _ in 0..40 {
        asked_for(&world, &tool, &call).await;
    }
    for number in 0..40 {
        answers(&crm, "order", Fault::body(json!(number)));
    }
    // The control URL stumbles in between.
    world.vapi.inject(Fault::status(500).on("POST", &format!("/{call}/control")).times(3));
    assert_eq!(world.run_queued().await, 0);
    let lines: Vec<String> = heard(&world, &call)
        .iter()
        .flat_map(|(message, _)| message.lines().skip(1).map(str::to_owned).collect::<Vec<_>>())
        .collect();
    let mut distinct = lines.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!((lines.len(), distinct.len()), (40, 40), "{lines:?}");
    // The order of the record is the order in which the call was told.
    let row = world.aws.row("calls", &call).unwrap();
    assert_eq!((row["background"].as_array().unwrap().len(), &row["to_tell"]), (40, &json!([])));
    assert!(row.get("telling_until").is_none(), "{row}");
    assert_eq!(moments(&world, &call, "result_injected").await.len(), 40);
}

#[tokio::test]
async fn a_call_that_is_over_is_told_nothing_and_its_timeline_says_so() {
    let (world, crm) = crm_world().await;
    let call = live_call(&world).await;
    let tool = background(&world, &crm, "orders", "speak").await;
    asked_for(&world, &tool, &call).await;
    asked_for(&world, &tool, &call).await;
    let [one, other] = &world.aws.messages("executions")[..] else { panic!("two messages") };
    let (one, other) = (one.to_string(), other.to_string());
    while world.aws.receive("executions", 0).is_some() {}
    answers(&crm, "orders", Fault::body(json!("A-1")).times(2));
    // The call ends while its control URL is asked, and the record says so a moment later.
    world.vapi.end_call(&call);
    world.aws.post("executions", &one);
    world.aws.change("calls", &call, json!({"status": "ended"}));
    assert_eq!(world.run_queued().await, 0);
    world.aws.change("calls", &call, json!({"ended_at": "2026-11-20T17:20:52.000Z"}));
    world.aws.post("executions", &other);
    assert_eq!(world.run_queued().await, 0);
    assert!(heard(&world, &call).is_empty());
    let failed = moments(&world, &call, "result_failed").await;
    assert_eq!(failed.len(), 2, "{failed:?}");
    assert!(failed.iter().all(|moment| moment["reason"] == "the call is over"), "{failed:?}");
}

/// A worker that died took its results along; another does not tell them a second time.
#[tokio::test]
async fn a_worker_that_dies_while_telling_releases_its_turn_and_tells_nothing_twice() {
    let (world, crm) = crm_world().await;
    let call = live_call(&world).await;
    let tool = background(&world, &crm, "orders", "note").await;
    world.aws.change("calls", &call, json!({"telling_until": 4_000_000_000_000_u64, "telling_worker": "dead"}));
    answers(&crm, "orders", Fault::body(json!("A-1")));
    asked_for(&world, &tool, &call).await;
    let message = world.aws.messages("executions").remove(0).to_string();
    assert_eq!(world.run_queued().await, 0);
    assert!(heard(&world, &call).is_empty(), "the other one may still be telling");
    world.aws.change("calls", &call, json!({"telling_until": 1}));
    answers(&crm, "orders", Fault::body(json!("A-1")));
    world.aws.post("executions", &message);
    assert_eq!(world.run_queued().await, 0);
    assert_eq!(heard(&world, &call), [(format!("{HEADING}\norders: \"A-1\""), false)]);
}

/// A worker takes the result and stops: before the message to VAPI, or before it records the outcome.
#[tokio::test]
async fn a_result_of_a_worker_that_stops_is_told_at_most_once_and_recorded() {
    for (fault, told) in [
        (aws::Fault::new("UpdateItem", "calls", aws::Trouble::StallAfter).after(1), 0),
        (aws::Fault::new("UpdateItem", "calls", aws::Trouble::StallBefore).after(2), 1),
    ] {
        let (world, crm) = crm_world().await;
        let call = live_call(&world).await;
        let tool = background(&world, &crm, "orders", "note").await;
        answers(&crm, "orders", Fault::body(json!("A-1")).times(4));
        asked_for(&world, &tool, &call).await;
        let message = world.aws.messages("executions").remove(0).to_string();
        world.aws.inject(fault);
        tokio::select! {
            _ = world.run_queued() => panic!("nothing stalled"),
            () = world.aws.stalled() => {}
        }
        // SQS delivers the message again, before and after the end of the stopped worker's turn.
        world.aws.post("executions", &message);
        assert_eq!(world.run_queued().await, 0);
        assert_eq!(moments(&world, &call, "result_failed").await.len(), 0, "the other one may still be telling");
        world.aws.change("calls", &call, json!({"telling_until": 1}));
        let later = world.aws.receive("executions", 60).expect("a message for later");
        assert_eq!(world.run_batch(later).await, 0);
        world.aws.post("executions", &message);
        assert_eq!(world.run_queued().await, 0);
        assert_eq!(heard(&world, &call).len(), told);
        let failed = moments(&world, &call, "result_failed").await;
        let [failed] = &failed[..] else { panic!("one result may not have been told: {failed:?}") };
        assert!(failed["reason"].as_str().unwrap().contains("not known"), "{failed}");
        // The next result is told as ever.
        asked_for(&world, &tool, &call).await;
        assert_eq!(world.run_queued().await, 0);
        assert_eq!(heard(&world, &call).len(), told + 1);
    }
}

/// The SDK repeats an update whose answer is lost.
#[tokio::test]
async fn a_lost_answer_of_the_database_tells_a_result_once() {
    for operation in 0..4 {
        let (world, crm) = crm_world().await;
        let call = live_call(&world).await;
        let tool = background(&world, &crm, "orders", "note").await;
        answers(&crm, "orders", Fault::body(json!("A-1")));
        asked_for(&world, &tool, &call).await;
        world.aws.inject(aws::Fault::new("UpdateItem", "calls", aws::Trouble::DropAfter).after(operation));
        assert_eq!(world.run_queued().await, 0);
        assert_eq!(heard(&world, &call).len(), 1, "update {operation}");
        let row = world.aws.row("calls", &call).unwrap();
        let recorded = row["background_told"].as_array().unwrap();
        assert_eq!((recorded.len(), recorded[0].get("error")), (1, None), "update {operation}: {row}");
        assert!(row.get("telling_until").is_none(), "update {operation}: {row}");
    }
}

#[tokio::test]
async fn an_outage_before_the_telling_has_the_result_told_later() {
    let (world, crm) = crm_world().await;
    let call = live_call(&world).await;
    let tool = background(&world, &crm, "orders", "note").await;
    answers(&crm, "orders", Fault::body(json!("A-1")).times(2));
    asked_for(&world, &tool, &call).await;
    world.aws.inject(aws::Fault::throttled("UpdateItem", "calls").after(1).times(99));
    assert_eq!(world.run_queued().await, 1);
    world.aws.clear_faults();
    assert!(heard(&world, &call).is_empty());
    assert_eq!(world.run_queued().await, 0);
    assert_eq!(heard(&world, &call), [(format!("{HEADING}\norders: \"A-1\""), false)]);
}

#[tokio::test]
async fn a_call_that_ends_between_two_results_is_told_the_first_alone() {
    let (world, crm) = crm_world().await;
    let call = live_call(&world).await;
    let tool = background(&world, &crm, "orders", "speak").await;
    answers(&crm, "orders", Fault::body(json!("A-1")));
    answers(&crm, "orders", Fault::body(json!("A-2")));
    asked_for(&world, &tool, &call).await;
    assert_eq!(world.run_queued().await, 0);
    // Our record does not know the end yet.
    world.vapi.end_call(&call);
    asked_for(&world, &tool, &call).await;
    assert_eq!(world.run_queued().await, 0);
    assert_eq!(heard(&world, &call), [(format!("{HEADING}\norders: \"A-1\""), true)]);
    assert_eq!(
        (moments(&world, &call, "result_injected").await.len(), moments(&world, &call, "result_failed").await.len()),
        (1, 1)
    );
}

#[tokio::test]
async fn an_hour_later_a_live_call_hears_that_nothing_was_done() {
    let (world, crm) = crm_world().await;
    let call = live_call(&world).await;
    let tool = background(&world, &crm, "orders", "speak").await;
    asked_for(&world, &tool, &call).await;
    let mut message = world.aws.messages("executions").remove(0);
    while world.aws.receive("executions", 3).is_some() {}
    let hour_ago = Timestamp::now().as_millis() - 3_600_000;
    message["queued_at"] = json!(Timestamp::from_millis(hour_ago));
    world.aws.post("executions", &message.to_string());
    assert_eq!(world.run_queued().await, 0);
    assert_eq!(crm.requests().len(), 0);
    let [(told, speaks)] = &heard(&world, &call)[..] else { panic!("one message: {:?}", heard(&world, &call)) };
    assert!(*speaks && told.contains("too long ago"), "{told}");
}
