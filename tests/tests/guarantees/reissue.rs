//! After a new token key or a new public address, `settle` reissues VAPI's tools.
//!
//! Calls continue meanwhile, and without changes VAPI gets no requests.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tests::{Answer, Event, World, ai_sms, aws, phone, preemptive_sms, standins::Fault, vapi_differences};

const TOKEN_KEY: &str = "switchboard/tool-token";

/// Replaces the token key and restarts the processes with it.
fn rotate(world: &mut World, key: &str) {
    world.aws.put_secret(TOKEN_KEY, &json!({"current": key}));
    world.restart();
}

/// Lets enough time pass for every process to learn of the change.
fn later(world: &World) {
    world.aws.change("tools", "reissue", json!({"seen_at": "2026-01-01T00:00:00.000Z"}));
}

/// The requests of one `settle` to VAPI, by method.
async fn asked(world: &World) -> [usize; 2] {
    world.vapi.clear_requests();
    assert_eq!(world.settle().await, json!({"settled": [], "left": []}));
    let requests = world.vapi.requests();
    ["GET", "PATCH"].map(|method| requests.iter().filter(|request| request.method == method).count())
}

fn token(world: &World, tool: &Value) -> String {
    let at_vapi = world.vapi.tool(tool["external_tool_id"].as_str().unwrap()).unwrap();
    at_vapi["parameters"][0]["value"]["token"].as_str().unwrap().to_owned()
}

/// VAPI's current request for a call of the tool.
fn calling(world: &World, tool: &Value) -> Event {
    world.vapi_event(&world.call(tool, json!({"text": phone(7)})))
}

async fn call(world: &World, event: &Event) -> Answer {
    world.send("execute", event).await
}

#[tokio::test]
async fn a_new_key_reaches_every_tool_and_calls_go_on_meanwhile() {
    let mut world = World::start().await;
    let (one, another) = (world.attached(&ai_sms()).await, world.tool(&ai_sms()).await);
    let theirs = world.create_as(&world.other, &ai_sms()).await.expect(201);
    world.tool(&preemptive_sms()).await;
    let tools = [&one, &another, &theirs];
    let before = tools.map(|tool| token(&world, tool));
    let rows = world.tools();

    // New tools of this key and address are compared once.
    assert_eq!(asked(&world).await, [0, 0]);
    later(&world);
    assert_eq!(asked(&world).await, [3, 0]);
    assert_eq!(asked(&world).await, [0, 0]);

    let in_flight = [calling(&world, &one), calling(&world, &one)];
    rotate(&mut world, "another-key-of-the-tool-tokens");
    call(&world, &in_flight[0]).await.result();
    // Not before every process knows the key.
    assert_eq!(asked(&world).await, [0, 0]);
    assert_eq!(tools.map(|tool| token(&world, tool)), before);
    later(&world);
    assert_eq!(asked(&world).await, [3, 3]);
    assert_eq!(asked(&world).await, [0, 0]);
    let after = tools.map(|tool| token(&world, tool));
    assert!(before.iter().all(|token| !after.contains(token)));
    assert_eq!(world.tools(), rows, "a run that was offered a tool may call it still");
    assert_eq!(vapi_differences::differences(&world), [""; 0]);
    call(&world, &in_flight[1]).await.result();
    call(&world, &calling(&world, &one)).await.result();

    // Only two keys are valid at a time.
    rotate(&mut world, "a-third-key-of-the-tool-tokens");
    call(&world, &in_flight[0]).await.expect(401);
    call(&world, &calling(&world, &one)).await.result();
}

#[tokio::test]
async fn a_key_that_is_named_as_the_one_before_holds_too() {
    let mut world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    let event = calling(&world, &tool);
    for key in ["one", "two"] {
        let named = json!({"current": key, "previous": "key-of-the-tool-tokens"});
        world.aws.put_secret(TOKEN_KEY, &named);
    }
    world.restart();
    call(&world, &event).await.result();
}

#[tokio::test]
async fn a_new_public_address_reaches_every_tool() {
    let mut world = World::start().await;
    let tools = [world.attached(&ai_sms()).await, world.attached(&ai_sms()).await];
    "https://switchboard.example.com".clone_into(&mut world.options.public_url);
    world.restart();
    assert_eq!(asked(&world).await, [0, 0]);
    later(&world);
    assert_eq!(asked(&world).await, [2, 2]);
    for tool in &tools {
        let at_vapi = world.vapi.tool(tool["external_tool_id"].as_str().unwrap()).unwrap();
        let url = format!("https://switchboard.example.com/api/tools/{}/execute", tool["id"].as_str().unwrap());
        assert_eq!(at_vapi["url"], url);
        call(&world, &calling(&world, tool)).await.result();
    }
    assert_eq!(asked(&world).await, [0, 0]);
}

#[tokio::test]
async fn a_tool_that_fails_is_tried_again_and_holds_up_no_other() {
    let mut world = World::start().await;
    let mut tools = Vec::new();
    for _ in 0..5 {
        tools.push(world.tool(&ai_sms()).await);
    }
    rotate(&mut world, "another-key-of-the-tool-tokens");
    assert_eq!(asked(&world).await, [0, 0]);
    later(&world);
    let before: Vec<String> = tools.iter().map(|tool| token(&world, tool)).collect();
    let at = |tool: &Value| format!("/tool/{}", tool["external_tool_id"].as_str().unwrap());
    // One tool cannot be read, one cannot be changed, one is missing at VAPI.
    world.vapi.inject(Fault::status(400).on("GET", &at(&tools[0])));
    world.vapi.inject(Fault::status(400).on("PATCH", &at(&tools[1])).times(2));
    world.at_vapi("DELETE", &at(&tools[2]), &Value::Null).await;
    let is_new = |world: &World, number: usize| token(world, &tools[number]) != before[number];
    assert_eq!(asked(&world).await, [5, 3]);
    assert!(is_new(&world, 3) && is_new(&world, 4) && !is_new(&world, 0) && !is_new(&world, 1));
    assert_eq!(asked(&world).await, [2, 2], "the two that failed alone");
    assert!(is_new(&world, 0) && !is_new(&world, 1));
    assert_eq!(asked(&world).await, [1, 1]);
    assert!(is_new(&world, 1));
    assert_eq!(asked(&world).await, [0, 0]);
    assert!(world.vapi.tool(tools[2]["external_tool_id"].as_str().unwrap()).is_none(), "none is made anew");
}

#[tokio::test]
async fn a_run_that_breaks_off_is_gone_on_with_where_it_stopped() {
    let mut world = World::start().await;
    // More than a page of the table.
    for _ in 0..70 {
        world.tool(&ai_sms()).await;
    }
    rotate(&mut world, "another-key-of-the-tool-tokens");
    assert_eq!(asked(&world).await, [0, 0]);
    later(&world);
    world.aws.inject(aws::Fault::new("Scan", "tools", aws::Trouble::Error("ValidationException")).after(1));
    let [first, changed] = asked(&world).await;
    assert!(first == changed && first > 0 && first < 70, "{first}");
    world.aws.clear_faults();
    let [rest, changed] = asked(&world).await;
    assert_eq!((first + rest, rest), (70, changed));
    let tokens: BTreeSet<String> = world.tools().iter().map(|tool| token(&world, tool)).collect();
    assert_eq!(tokens.len(), 70);
    assert_eq!(asked(&world).await, [0, 0]);
}
