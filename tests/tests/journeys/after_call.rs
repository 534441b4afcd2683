//! The result of a background tool, sent by another tool because the call is over.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

use local::standins::{Fault, Standin, twilio};
use serde_json::{Value, json};
use tests::{Event, World, ai_sms, api_request, phone};

use crate::async_tools::{answers, asked_for, background, crm_world, heard, live_call, moments};

const ENDED: &str = "2026-11-20T17:20:52.000Z";

/// A live call, an async lookup, and the SMS that sends its result after the call.
async fn world() -> (World, Standin<twilio::Twilio>, String, Value, Value) {
    let (world, crm) = crm_world().await;
    let call = live_call(&world).await;
    let sms = world.attached(&ai_sms()).await;
    let lookup = background(&world, &crm, "orders", "speak").await;
    let wish = json!({"tool": sms["id"], "arguments": {"text": "Your order is {{result.state}}."}});
    world.update(&lookup, &json!({"if_call_over": wish})).await.expect(200);
    (world, crm, call, sms, lookup)
}

fn end(world: &World, call: &str) {
    world.vapi.end_call(call);
    world.aws.change("calls", call, json!({"ended_at": ENDED, "status": "ended"}));
}

/// The lookup, and then the tool that sends its result.
async fn run(world: &World) {
    for _ in 0..2 {
        assert_eq!(world.run_queued().await, 0);
    }
}

fn texts(world: &World) -> Vec<(String, String)> {
    world.twilio.messages().into_iter().map(|message| (message.to, message.body)).collect()
}

#[tokio::test]
async fn a_result_that_comes_after_the_call_is_sent_once() {
    let (world, crm, call, sms, lookup) = world().await;
    asked_for(&world, &lookup, &call).await;
    let message = world.aws.messages("executions").remove(0).to_string();
    end(&world, &call);
    answers(&crm, "orders", Fault::body(json!({"state": "shipped"})).times(3));
    // SQS delivers at least once.
    world.aws.post("executions", &message);
    run(&world).await;
    world.aws.post("executions", &message);
    run(&world).await;
    assert_eq!(texts(&world), [(phone(1), "Your order is shipped.".to_owned())]);
    assert!(heard(&world, &call).is_empty());

    let failed = moments(&world, &call, "result_failed").await;
    let [failed] = &failed[..] else { panic!("one result was not told: {failed:?}") };
    assert_eq!(failed["reason"], "the call is over");
    let receipt = world.calls(&format!("/{call}/receipt")).await.expect(200);
    let [done] = &receipt["done"].as_array().unwrap()[..] else { panic!("one effect: {receipt}") };
    assert_eq!((&done["execution_id"], &done["tool_id"]), (&failed["sent_by"], &sms["id"]));
    assert_eq!(receipt["final"], true);
}

#[tokio::test]
async fn a_call_that_ends_while_it_is_told_has_the_result_sent() {
    let (world, crm, call, _, lookup) = world().await;
    asked_for(&world, &lookup, &call).await;
    answers(&crm, "orders", Fault::body(json!({"state": "shipped"})));
    // The control URL is gone, and the record does not say so yet.
    world.vapi.end_call(&call);
    world.aws.change("calls", &call, json!({"status": "ended"}));
    run(&world).await;
    assert_eq!(texts(&world), [(phone(1), "Your order is shipped.".to_owned())]);
    assert!(moments(&world, &call, "result_failed").await[0]["sent_by"].is_string());
}

#[tokio::test]
async fn a_result_that_was_told_or_may_have_been_is_not_sent() {
    let (world, crm, call, _, lookup) = world().await;
    answers(&crm, "orders", Fault::body(json!({"state": "shipped"})).times(2));
    asked_for(&world, &lookup, &call).await;
    run(&world).await;
    assert_eq!(heard(&world, &call).len(), 1);
    world.vapi.inject(Fault::drop_after().on("POST", &format!("/{call}/control")).times(9));
    asked_for(&world, &lookup, &call).await;
    run(&world).await;
    assert!(texts(&world).is_empty());
    let failed = moments(&world, &call, "result_failed").await;
    assert_eq!(failed.iter().map(|moment| &moment["sent_by"]).collect::<Vec<_>>(), [&Value::Null]);
}

#[tokio::test]
async fn a_failure_and_a_result_without_the_named_field_are_not_sent() {
    let (world, crm, call, _, lookup) = world().await;
    for answer in [Fault::status(500).times(9), Fault::body(json!({"other": 1})), Fault::body(json!({"state": null}))] {
        asked_for(&world, &lookup, &call).await;
        end(&world, &call);
        answers(&crm, "orders", answer);
        run(&world).await;
        crm.clear_faults();
    }
    assert!(texts(&world).is_empty());
    assert_eq!(moments(&world, &call, "result_failed").await.len(), 3);
}

#[tokio::test]
async fn a_result_without_a_value_is_sent_as_the_label() {
    let (world, crm, call, sms, lookup) = world().await;
    world.update(&lookup, &json!({"if_call_over": {"tool": sms["id"]}})).await.expect(200);
    asked_for(&world, &lookup, &call).await;
    end(&world, &call);
    answers(&crm, "orders", Fault::body(Value::Null));
    run(&world).await;
    assert_eq!(texts(&world), [(phone(1), "orders".to_owned())]);
}

#[tokio::test]
async fn a_tool_that_was_deleted_or_became_unfit_sends_nothing_and_the_timeline_says_why() {
    let (world, crm, call, sms, lookup) = world().await;
    answers(&crm, "orders", Fault::body(json!({"state": "shipped"})).times(3));
    end(&world, &call);
    let mut expected = vec!["the call is over; the tool"];
    for (change, why) in [
        (json!({"async": true}), "is async"),
        (json!({"async": false, "confirm": "read_back"}), "is read back"),
        (Value::Null, "was deleted"),
    ] {
        match &change {
            Value::Null => world.delete(&sms).await.expect(200),
            change => world.update(&sms, change).await.expect(200),
        };
        asked_for(&world, &lookup, &call).await;
        run(&world).await;
        expected.push(why);
    }
    assert!(texts(&world).is_empty());
    let failed = moments(&world, &call, "result_failed").await;
    assert_eq!(failed.len(), 3, "{failed:?}");
    for (moment, why) in failed.iter().zip(&expected[1..]) {
        let reason = moment["reason"].as_str().unwrap();
        assert!(reason.starts_with(expected[0]) && reason.contains(why), "{reason}");
    }
}

#[tokio::test]
async fn forty_results_after_the_call_are_sent_once_each() {
    let (world, crm, call, _, lookup) = world().await;
    for number in 0..40 {
        asked_for(&world, &lookup, &call).await;
        answers(&crm, "orders", Fault::body(json!({"state": number})));
    }
    end(&world, &call);
    run(&world).await;
    let mut sent = texts(&world);
    sent.sort_unstable();
    sent.dedup();
    assert_eq!((sent.len(), world.twilio.messages().len()), (40, 40));
}

#[tokio::test]
async fn an_outage_of_the_queue_has_the_result_sent_later() {
    let (world, crm, call, _, lookup) = world().await;
    asked_for(&world, &lookup, &call).await;
    end(&world, &call);
    answers(&crm, "orders", Fault::body(json!({"state": "shipped"})).times(2));
    world.aws.inject(tests::aws::Fault::new("SendMessage", "executions", tests::aws::Trouble::DropAfter).times(99));
    assert_eq!(world.run_queued().await, 1);
    world.aws.clear_faults();
    run(&world).await;
    assert_eq!(texts(&world), [(phone(1), "Your order is shipped.".to_owned())]);
}

#[tokio::test]
async fn a_wish_that_cannot_be_met_is_refused_when_it_is_saved() {
    let (world, _crm, _, sms, lookup) = world().await;
    let mut later = ai_sms();
    later["async"] = json!(true);
    let later = world.create(&later).await.expect(201);
    let mut confirmed = ai_sms();
    confirmed["confirm"] = json!("read_back");
    let confirmed = world.create(&confirmed).await.expect(201);
    let reads = world.create(&api_request("GET", "https://crm.example/a")).await.expect(201);
    let wish = |tool: &Value| json!({"tool": tool["id"], "arguments": {"text": "{{result}}"}});
    for (wish, field, problem) in [
        (wish(&lookup), "if_call_over.tool", "is this tool itself"),
        (wish(&later), "if_call_over.tool", "is async"),
        (wish(&confirmed), "if_call_over.tool", "read back"),
        (wish(&reads), "if_call_over.tool", "only reads"),
        (json!({"tool": world.home.organization_id}), "if_call_over.tool", "is not a tool of this organization"),
        (json!({"tool": "sms"}), "if_call_over.tool", "must be a UUID"),
        (json!({}), "if_call_over.tool", "is required"),
        (json!({"tool": sms["id"], "arguments": {"words": "{{result}}"}}), "if_call_over.arguments", "\"words\""),
        (json!({"tool": sms["id"], "arguments": {"text": "{{now}}"}}), "if_call_over.arguments", "{{now}}"),
        (json!({"tool": sms["id"], "then": 1}), "if_call_over.then", ""),
        (json!("sms"), "if_call_over", "must be an object"),
    ] {
        let refused = world.update(&lookup, &json!({"if_call_over": wish})).await.expect(422);
        let told = refused["errors"].as_array().unwrap();
        let found =
            told.iter().any(|told| told["field"] == field && told["problem"].as_str().unwrap().contains(problem));
        assert!(found, "{wish}: {refused}");
    }
    let plain = world.update(&lookup, &json!({"async": false})).await.expect(422);
    assert!(plain.to_string().contains("if_call_over"), "{plain}");
    // Without arguments: the label and the result.
    let short = world.update(&lookup, &json!({"if_call_over": {"tool": sms["id"]}})).await.expect(200);
    assert_eq!(short["config_metadata"]["if_call_over"], json!({"tool": sms["id"]}));
}

/// Another worker has its turn when a result comes, the call ends, and that worker tells nothing more.
#[tokio::test]
async fn a_result_that_waits_for_another_worker_when_the_call_ends_is_sent_once() {
    let (world, crm, call, _, lookup) = world().await;
    world.aws.change("calls", &call, json!({"telling_until": 4_000_000_000_000_u64, "telling_worker": "other"}));
    asked_for(&world, &lookup, &call).await;
    answers(&crm, "orders", Fault::body(json!({"state": "shipped"})));
    assert_eq!(world.run_queued().await, 0);
    let ended = json!({"message": {"type": "status-update", "status": "ended", "call": {"id": call}}});
    let bearer = format!("Bearer {}", world.options.webhook_bearer.as_ref().unwrap());
    let event = Event::post("/api/vapi/events", &ended).header("authorization", &bearer);
    world.send("calls", &event).await.expect(200);
    world.vapi.end_call(&call);
    // The delayed message waits until the other one's turn is over.
    for until in [4_000_000_000_000_u64, 1] {
        world.aws.change("calls", &call, json!({"telling_until": until}));
        let later = world.aws.receive("executions", 60).expect("a message for later");
        assert_eq!(world.run_batch(later).await, 0);
    }
    run(&world).await;
    assert_eq!(texts(&world), [(phone(1), "Your order is shipped.".to_owned())]);
    let failed = moments(&world, &call, "result_failed").await;
    assert_eq!(failed.len(), 1, "{failed:?}");
    assert!(failed[0]["sent_by"].is_string(), "{failed:?}");
    let row = world.aws.row("calls", &call).unwrap();
    assert_eq!((&row["to_tell"], row.get("telling")), (&json!([]), None), "{row}");
}
