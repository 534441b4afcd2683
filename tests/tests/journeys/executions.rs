//! The list of all executions of an organization: order, filters, the fault of each failure.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test says what is wrong and stops")]

use serde_json::{Value, json};
use tests::{
    Options, World, ai_sms, api_request, aws, sms_without_call,
    standins::{Fault, twilio},
};

async fn listed(world: &World, query: &str) -> Vec<Value> {
    world.list(&format!("/executions{query}")).await.expect(200)["items"].as_array().unwrap().clone()
}

#[tokio::test]
async fn each_failure_says_whose_fault_it_is_and_the_next_step() {
    let crm = twilio::start("127.0.0.1:0".parse().unwrap(), twilio::Options::default()).unwrap();
    let open_hosts = vec![crm.address().to_string()];
    let world = World::with(Options { open_hosts, ..Options::default() }).await;
    let read = world.attached(&api_request("GET", &format!("{}/customers", crm.url))).await;
    let mut expected = Vec::new();
    for (status, fault) in [
        (200, None),
        (500, Some("service")),
        (404, Some("configuration")),
        (422, Some("model")),
        (429, Some("service")),
    ] {
        crm.inject(Fault::status(status).with_body(json!({"message": "x"})));
        world.call_tool(&world.call(&read, json!({}))).await;
        expected.insert(0, json!(fault));
    }
    let sms = world.attached(&ai_sms()).await;
    world.call_tool(&world.call(&sms, json!({"text": 5}))).await;
    expected.insert(0, json!("model"));
    let all = listed(&world, "").await;
    let faults: Vec<&Value> = all.iter().map(|row| &row["fault"]).collect();
    assert_eq!(faults, expected.iter().collect::<Vec<_>>(), "newest first");
    for row in &all {
        assert_eq!(row["next_step"].is_string(), row["fault"].is_string(), "{row}");
    }

    assert_eq!(listed(&world, "?failed=true").await.len(), 5);
    assert_eq!(listed(&world, "?fault=service").await.len(), 2);
    assert_eq!(listed(&world, &format!("?tool_id={}", sms["id"].as_str().unwrap())).await, all[..1]);
    assert_eq!(listed(&world, "?status=succeeded&trigger=conversation").await, all[5..]);
    assert_eq!(listed(&world, "?trigger=automation").await.len(), 0);
    let middle = all[2]["started_at"].as_str().unwrap();
    let since = listed(&world, &format!("?since={middle}")).await;
    let until = listed(&world, &format!("?until={middle}")).await;
    assert!(since.iter().chain(&until).count() >= all.len() && since.len() <= 4 && until.len() <= 5, "{since:?}");
    assert_eq!((since.first(), until.last()), (all.first(), all.last()));
}

#[tokio::test]
async fn a_message_that_is_not_sent_is_the_models_fault_only_where_its_arguments_are_wrong() {
    let world = World::start().await;
    let sms = world.attached(&ai_sms()).await;
    let send = async || drop(world.call_tool(&world.call(&sms, json!({"text": "Hello"}))).await);
    let mut expected = Vec::new();
    for trouble in ["ResourceNotFoundException", "InternalServiceError"] {
        world.aws.inject(aws::Fault::new("GetSecretValue", "*", aws::Trouble::Error(trouble)).times(9));
        send().await;
        world.aws.clear_faults();
        expected.push("ours");
    }
    for (code, fault) in [
        (21211, "model"),
        (21614, "model"),
        (21617, "model"),
        (21610, "caller"),
        (21606, "configuration"),
        (21408, "configuration"),
    ] {
        world.twilio.inject(Fault::status(400).with_body(json!({"code": code, "message": "x", "status": 400})));
        send().await;
        expected.push(fault);
    }
    let mut later = ai_sms();
    later["async"] = json!(true);
    let later = world.attached(&later).await;
    world.call_tool(&world.call(&later, json!({"text": 5}))).await;
    expected.push("model");
    let set_up = world.tool(&sms_without_call(&world.home)).await;
    world.aws.delete("phone_numbers", &world.home.phone_number_id);
    world.try_tool(&json!({"tool_id": set_up["id"], "arguments": {"text": "Hello"}, "dry_run": false})).await;
    expected.push("configuration");
    let all = listed(&world, "").await;
    let faults: Vec<&str> = all.iter().rev().map(|row| row["fault"].as_str().unwrap_or("none")).collect();
    assert_eq!(faults, expected);
    assert!(world.twilio.messages().is_empty());
}

#[tokio::test]
async fn pages_of_a_filtered_list_hold_every_execution_once() {
    let world = World::start().await;
    let sms = world.attached(&ai_sms()).await;
    for number in 0..7 {
        let arguments = if number % 2 == 0 { json!({"text": 5}) } else { json!({"text": format!("Hello {number}")}) };
        world.call_tool(&world.call(&sms, arguments)).await;
    }
    let all = listed(&world, "?failed=true").await;
    assert_eq!(all.len(), 4);
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = world.list(&format!("/executions?failed=true&limit=3&cursor={cursor}")).await.expect(200);
        seen.extend(page["items"].as_array().unwrap().iter().cloned());
        match page["next_cursor"].as_str() {
            Some(next) => next.clone_into(&mut cursor),
            None => break,
        }
    }
    assert_eq!(seen, all);
}

#[tokio::test]
async fn a_wrong_filter_is_named_and_another_organization_sees_nothing() {
    let world = World::start().await;
    let sms = world.attached(&ai_sms()).await;
    world.call_tool(&world.call(&sms, json!({"text": "Hello"}))).await;
    for (query, field) in [
        ("since=yesterday", "since"),
        ("until=2026-13-01T00:00:00Z", "until"),
        ("since=2026-11-23T10:00:00Z&until=2026-11-23T09:00:00Z", "until"),
        ("failed=maybe", "failed"),
        ("fault=other", "fault"),
        ("trigger=call", "trigger"),
        ("tool_id=7", "tool_id"),
        ("status=done", "status"),
    ] {
        assert_eq!(world.list(&format!("/executions?{query}")).await.wrong_fields(), [field], "{query}");
    }
    assert_eq!(listed(&world, "").await.len(), 1);
    assert_eq!(world.list_as(&world.other, "/executions").await.expect(200)["items"], json!([]));
}
