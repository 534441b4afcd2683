//! The same effect in other words, and repeated deliveries of it.

use std::time::Duration;

use serde_json::{Value, json};
use tests::{
    Options, World, ai_sms, api_request, phone,
    standins::{self, vapi::ToolCall},
};

use super::{to_several, with_metadata};

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
