//! One person gets one message, for every set of recipients, notation of numbers, and fault.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

use futures_util::future::join_all;
use serde_json::{Value, json};
use shared::models::Timestamp;
use tests::{
    Answer, Event, Fault, Trouble, World, ai_sms, phone,
    standins::{self, vapi::ToolCall},
};

fn sent_to(world: &World) -> Vec<String> {
    let mut to: Vec<String> = world.twilio.messages().into_iter().map(|message| message.to).collect();
    to.sort();
    to
}

/// An SMS to these numbers and to recipients of the model's choice.
async fn extendable(world: &World, fixed: &[&str]) -> Value {
    let mut config = ai_sms();
    config["recipients"] = if fixed.is_empty() {
        json!({"mode": "ai", "prompt": "Whom to tell", "schema": {"type": "array", "items": {"type": "string"}}})
    } else {
        let more = json!({"enabled": true, "prompt": "Others", "required": false});
        json!({"mode": "array_extendable", "fixedValues": fixed, "aiExtension": more})
    };
    world.attached(&config).await
}

/// The same tool call with other recipients.
fn to(call: &ToolCall, recipients: &[&str]) -> ToolCall {
    let mut call = call.clone();
    call.arguments.insert("recipients".to_owned(), json!(recipients));
    call
}

fn states(answer: &Answer) -> Vec<(String, String)> {
    let listed = answer.body["result"]["recipients"].as_array().unwrap_or_else(|| panic!("{}", answer.body)).iter();
    listed.map(|one| (one["to"].as_str().unwrap().to_owned(), one["state"].as_str().unwrap().to_owned())).collect()
}

fn of(states: &[(&str, &str)]) -> Vec<(String, String)> {
    states.iter().map(|(to, state)| ((*to).to_owned(), (*state).to_owned())).collect()
}

#[tokio::test]
async fn a_corrected_number_does_not_send_to_the_others_again() {
    let world = World::start().await;
    let (a, b) = (phone(1), phone(2));
    for fixed in [vec![a.as_str()], vec![]] {
        let tool = extendable(&world, &fixed).await;
        let model = |last| if fixed.is_empty() { vec![a.as_str(), last] } else { vec![last] };
        let call = world.call(&tool, json!({"text": "Hello"}));
        world.twilio.clear_messages();
        let first = world.call_tool(&to(&call, &model("(415) 555-0302"))).await;
        assert_eq!(states(&first), of(&[(&a, "sent"), ("(415) 555-0302", "not_sent")]), "{fixed:?}");
        let sentence = first.sentence();
        assert!(sentence.contains(&format!("Sent to {a}")) && sentence.contains("(415) 555-0302"), "{sentence}");
        assert!(sentence.contains("only"), "it says to leave the others out: {sentence}");
        let second = world.call_tool(&to(&call, &model(&b))).await;
        assert_eq!(states(&second), of(&[(&a, "already_sent"), (&b, "sent")]), "{fixed:?}");
        let summary = second.result()["summary"].as_str().unwrap().to_owned();
        assert!(summary.contains(&b) && summary.contains("already"), "{summary}");
        assert_eq!(sent_to(&world), [a.clone(), b.clone()], "{fixed:?}: each once");
    }
}

#[tokio::test]
async fn a_set_that_grows_and_shrinks_reaches_each_once() {
    let world = World::start().await;
    let tool = extendable(&world, &[]).await;
    let [a, b, c] = [1, 2, 3].map(phone);
    let call = world.call(&tool, json!({"text": "Hello"}));
    for set in [vec![&a, &b], vec![&a, &b, &c], vec![&b], vec![&c, &a], vec![&a]] {
        let set: Vec<&str> = set.into_iter().map(String::as_str).collect();
        world.call_tool(&to(&call, &set)).await.result();
    }
    assert_eq!(sent_to(&world), [a.clone(), b.clone(), c.clone()]);
    let other = world.call(&tool, json!({"text": "Hello"}));
    world.call_tool(&to(&other, &[&a])).await.result();
    world.call_tool(&to(&other, &[&a, &b])).await.result();
    assert_eq!(world.twilio.messages().len(), 5, "another call is another subject");
}

#[tokio::test]
async fn a_number_is_one_number_however_it_is_written() {
    let world = World::start().await;
    let tool = extendable(&world, &[]).await;
    let a = phone(1);
    let formatted = format!("{} ({}) {}-{}", &a[..2], &a[2..5], &a[5..8], &a[8..]);
    let call = world.call(&tool, json!({"text": "Hello"}));
    for set in [vec![a.as_str()], vec![&formatted], vec!["no number", &formatted, &a]] {
        world.call_tool(&to(&call, &set)).await;
    }
    assert_eq!(sent_to(&world), [a]);
}

#[tokio::test]
async fn only_the_recipient_that_twilio_refused_is_retried() {
    let world = World::start().await;
    let tool = extendable(&world, &[]).await;
    let [a, b] = [1, 2].map(phone);
    // Twilio refuses a message from a number to itself.
    let own = world.home.phone_number.clone();
    let call = world.call(&tool, json!({"text": "Hello"}));
    for _ in 0..2 {
        let answer = world.call_tool(&to(&call, &[&a, &own])).await;
        assert_eq!(states(&answer)[1], (own.clone(), "not_sent".to_owned()));
    }
    let answer = world.call_tool(&to(&call, &[&own, &a, &b])).await;
    assert_eq!(states(&answer), of(&[(&own, "not_sent"), (&a, "already_sent"), (&b, "sent")]));
    assert_eq!(sent_to(&world), [a, b]);
}

#[tokio::test]
async fn an_unknown_recipient_stays_unknown_with_other_recipients() {
    let world = World::start().await;
    let tool = extendable(&world, &[]).await;
    let [a, b, c] = [1, 2, 3].map(phone);
    let call = world.call(&tool, json!({"text": "Hello"}));
    world.twilio.inject(standins::Fault::status(500));
    world.call_tool(&to(&call, &[&a])).await.sentence();
    for set in [vec![a.as_str(), &b], vec![&a, &b, &c], vec![&a]] {
        world.age_claims(3 * 3_600);
        let answer = world.call_tool(&to(&call, &set)).await;
        assert_eq!(states(&answer)[0], (a.clone(), "unknown".to_owned()), "{set:?}");
        assert!(answer.sentence().contains("not known"), "{}", answer.body);
    }
    assert!(!sent_to(&world).contains(&a));
}

/// The process dies after it sent the first of several messages.
#[tokio::test]
async fn a_process_that_died_between_two_recipients_leaves_them_unknown() {
    let world = World::start().await;
    let tool = extendable(&world, &[]).await;
    let [a, b, c] = [1, 2, 3].map(phone);
    let call = world.call(&tool, json!({"text": "Hello"}));
    world.call_tool(&to(&call, &[&a, &b])).await.result();
    for record in world.aws.rows("idempotency") {
        let died = json!({"status": "in_progress", "lease_until": Timestamp::now().as_millis() - 1});
        world.aws.change("idempotency", record["id"].as_str().unwrap(), died);
    }
    let answer = world.call_tool(&to(&call, &[&b, &c])).await;
    assert_eq!(states(&answer), of(&[(&b, "unknown"), (&c, "sent")]));
    let answer = world.call_tool(&to(&call, &[&a, &b])).await;
    assert!(answer.sentence().contains("not known"), "{}", answer.body);
    assert_eq!(sent_to(&world), [a, b, c]);
}

#[tokio::test]
async fn concurrent_overlapping_recipient_sets_send_once_and_do_not_deadlock() {
    let world = World::start().await;
    let tool = extendable(&world, &[]).await;
    let [a, b, c] = [1, 2, 3].map(phone);
    let call = world.call(&tool, json!({"text": "Hello"}));
    world.twilio.inject(standins::Fault::delay(200).times(3));
    let sets = [[&a, &b], [&b, &c], [&c, &a], [&a, &b]].map(|set| to(&call, &set.map(String::as_str)));
    for answer in join_all(sets.iter().map(|set| world.call_tool(set))).await {
        let states = states(&answer);
        assert!(states.iter().all(|(_, state)| state == "sent" || state == "already_sent"), "{states:?}");
    }
    assert_eq!(sent_to(&world), [a, b, c]);
}

/// Rows of older versions record a set of recipients without single ones.
#[tokio::test]
async fn a_set_that_an_older_version_claimed_is_not_sent_to_again() {
    let world = World::start().await;
    let [a, b, c] = [1, 2, 3].map(phone);
    for fixed in [vec![a.as_str()], vec![]] {
        let tool = extendable(&world, &fixed).await;
        let call = world.call(&tool, json!({"text": "Hello"}));
        world.call_tool(&to(&call, &[&b, &c])).await.result();
        let sent = world.twilio.messages().len();
        // The set's row has the longest answer.
        let mut rows = world.aws.rows("idempotency");
        rows.sort_by_key(|row| row["answer"].as_str().map_or(0, str::len));
        let mut set = rows.pop().unwrap();
        for row in rows {
            world.aws.delete("idempotency", row["id"].as_str().unwrap());
        }
        for (status, done) in [("completed", json!({})), ("unknown", json!({})), ("in_progress", json!({}))] {
            set["status"] = json!(status);
            set["done"] = done;
            set["lease_until"] = json!(Timestamp::now().as_millis() - 1);
            world.aws.put("idempotency", &set);
            world.call_tool(&to(&call, &[&c, &b])).await;
            assert_eq!(world.twilio.messages().len(), sent, "{status} {fixed:?}");
        }
        // A partly completed set: the rest is sent.
        set["status"] = json!("partial");
        set["done"] = fixed.iter().copied().chain([b.as_str()]).map(|to| (to.to_owned(), json!("sent"))).collect();
        set["done_until"] = json!(Timestamp::now().as_seconds() + 100);
        world.aws.put("idempotency", &set);
        world.call_tool(&to(&call, &[&b, &c])).await.result();
        assert_eq!(world.twilio.messages().len(), sent + 1, "{fixed:?}");
        world.aws.delete("idempotency", set["id"].as_str().unwrap());
    }
}

#[tokio::test]
async fn an_outage_between_the_claims_sends_nothing_and_holds_nothing_back() {
    let world = World::start().await;
    let tool = extendable(&world, &[]).await;
    let [a, b] = [1, 2].map(phone);
    for after in 0..3 {
        let call = world.call(&tool, json!({"text": "Hello"}));
        let before = world.twilio.messages().len();
        world.aws.inject(
            Fault::new("UpdateItem", "idempotency", Trouble::Error("InternalServerError")).after(after).times(9),
        );
        let answer = world.call_tool(&to(&call, &[&a, &b])).await;
        assert!(answer.sentence().contains("not available"), "{after}: {}", answer.body);
        world.aws.clear_faults();
        assert_eq!(world.twilio.messages().len(), before, "{after}");
        world.call_tool(&to(&call, &[&a, &b])).await.result();
        assert_eq!(world.twilio.messages().len(), before + 2, "{after}");
    }
}

/// An asynchronous tool: `run-tool` sends it under the same claims.
#[tokio::test]
async fn queued_executions_claim_each_recipient_too() {
    let world = World::start().await;
    let mut config = ai_sms();
    config["async"] = json!(true);
    let more = json!({"enabled": true, "prompt": "Others", "required": false});
    config["recipients"] = json!({"mode": "array_extendable", "fixedValues": [phone(1)], "aiExtension": more});
    let tool = world.attached(&config).await;
    let call = world.call(&tool, json!({"text": "Hello"}));
    let [b, c] = [2, 3].map(phone);
    for set in [vec!["bad", &b], vec![&b, &c]] {
        world.call_tool(&to(&call, &set)).await.result();
        let again = world.aws.messages("executions");
        assert_eq!(world.run_queued().await, 0);
        for message in again {
            world.aws.post("executions", &message.to_string());
        }
        assert_eq!(world.run_queued().await, 0);
    }
    assert_eq!(sent_to(&world), [phone(1), b, c]);
}

#[tokio::test]
async fn a_redelivery_of_a_set_gets_the_answer_of_the_set() {
    let world = World::start().await;
    let tool = extendable(&world, &[]).await;
    let [a, b] = [1, 2].map(phone);
    let call = world.call(&tool, json!({"text": "Hello"}));
    let named = |set: &[&str]| -> Event {
        let message = json!({"message": {
            "type": "tool-calls",
            "toolCallList": [{"id": "call_1", "function": {"name": tool["name"], "arguments": to(&call, set).arguments}}],
            "call": {"id": call.call_id}, "customer": {"number": phone(1)}, "phoneNumber": {"number": world.home.phone_number},
        }});
        let bearer = world.options.webhook_bearer.clone().unwrap();
        world.vapi_event(&call).text(message.to_string()).header("authorization", &format!("Bearer {bearer}"))
    };
    let event = named(&[&a, &b, "bad"]);
    let first = world.send("execute", &event).await.expect(200);
    for hours in [0, 3] {
        world.age_claims(hours * 3_600);
        assert_eq!(world.send("execute", &event).await.expect(200), first, "after {hours} h");
    }
    assert_eq!(sent_to(&world), [a, b]);
}
