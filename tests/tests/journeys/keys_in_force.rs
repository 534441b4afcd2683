//! A removed or changed key stops working in every process with its next request.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::large_futures,
    reason = "a test says what is wrong and stops"
)]

use std::{
    mem::swap,
    time::{Duration, Instant},
};

use secrecy::ExposeSecret;
use serde_json::{Value, json};
use shared::accounts::LlmInUse;
use tests::{
    Event, OWN_KEYS, Options, PLATFORM_KEY, SLACK_SECRET, World, ai_sms, phone, slack_message, standins,
    standins::llm::Turn, webhooks::Signer,
};

const NO_TOOL: &str = r#"{"tool": "none", "reason": "a greeting", "arguments": {}}"#;

/// The key of VAPI's last request for a call.
fn asked_for_a_call_with(world: &World) -> String {
    let requests = world.vapi.requests();
    let last = requests.iter().rev().find(|request| request.method == "GET" && request.path.starts_with("/call/"));
    last.unwrap().headers["authorization"].trim_start_matches("Bearer ").to_owned()
}

/// The caller waits for a transfer: VAPI gets the present key, not a remembered one.
#[tokio::test]
async fn a_vapi_key_holds_for_the_next_call_in_every_process() {
    let world = World::start().await;
    let target = json!({"type": "number", "number": "+14155550199"});
    let tool = world.attached(&json!({"type": "transfer_call", "label": "Connect", "target": target})).await;
    let mut keys = Vec::new();
    for key in [None, Some(OWN_KEYS[0]), Some(OWN_KEYS[1]), None] {
        // Written by another process, without notice to this one.
        match key {
            Some(key) => world.own_key(&world.home, &json!({"api_key": key})),
            None => world.aws.change("organizations", &world.home.organization_id, json!({"own_keys": {}})),
        }
        world.call_tool(&world.call(&tool, json!({}))).await;
        keys.push(asked_for_a_call_with(&world));
    }
    assert_eq!(keys, [PLATFORM_KEY, OWN_KEYS[0], OWN_KEYS[1], PLATFORM_KEY]);
}

#[tokio::test]
async fn an_llms_key_that_is_removed_is_used_by_no_process_any_more() {
    let own = standins::llm::Options { api_key: "own-key".to_owned(), ..Default::default() };
    let own = standins::llm::start(([127, 0, 0, 1], 0).into(), own).unwrap();
    let options = Options { open_hosts: vec![own.address().to_string()], ..Options::default() };
    let mut world = World::with(options).await;
    let mut other = world.another_process();
    let says = |text: &str| [Turn::text(NO_TOOL), Turn::text(text)];

    let key = json!({"api_key": "own-key", "base_url": own.url});
    world.keys(&world.home, "PUT", "/llm", &key).await.expect(200);
    swap(&mut world.process, &mut other);
    own.script(says("From your own."));
    assert_eq!(world.chat("Hello").await.expect(200)["message"], "From your own.");
    let (mine, organization) = (world.process.chat.turns.accounts.clone(), world.home.organization_id.parse().unwrap());
    let begun = mine.llm(organization).await.unwrap();

    swap(&mut world.process, &mut other);
    world.keys(&world.home, "DELETE", "/llm", &Value::Null).await.expect(200);
    swap(&mut world.process, &mut other);
    own.clear_requests();
    world.llm.script(says("From the platform's."));
    assert_eq!(world.chat("Hello again").await.expect(200)["message"], "From the platform's.");
    assert!(own.requests().is_empty(), "the key that was removed is not used");
    // Work that began with the key, and asks again, does not continue with it.
    let in_use = LlmInUse { accounts: &mine, organization, account: &begun };
    assert!(in_use.now().await.is_err());
}

#[tokio::test]
async fn a_number_that_is_removed_sends_nothing_from_any_process() {
    let mut world = World::start().await;
    let mut config = ai_sms();
    config["from"] = json!({"type": "specific_number", "phone_number_id": world.home.phone_number_id});
    let tool = world.attached(&config).await;
    let mut other = world.another_process();
    swap(&mut world.process, &mut other);
    world.call_tool(&world.call(&tool, json!({"text": "One"}))).await.result();
    assert_eq!(world.twilio.requests().len(), 1);
    swap(&mut world.process, &mut other);
    let path = format!("/api/{}/phone-numbers/{}", world.home.slug, world.home.phone_number_id);
    let remove = Event::new("DELETE", &path).user(&world.home.user_id);
    world.send("phone-numbers", &remove).await.expect(200);
    swap(&mut world.process, &mut other);
    world.call_tool(&world.call(&tool, json!({"text": "Two"}))).await.expect(200);
    assert_eq!(world.twilio.requests().len(), 1);
}

#[tokio::test]
async fn a_hooks_secret_that_is_removed_signs_nothing_for_any_process() {
    let mut world = World::start().await;
    let hook = world.slack_hook().await;
    let mut other = world.another_process();
    swap(&mut world.process, &mut other);
    world.slack_says(&hook, "Ev1", "hello").await.expect(200);
    swap(&mut world.process, &mut other);
    let path = format!("/{}", hook["id"].as_str().unwrap());
    let first = world.hooks(&world.home, "GET", &path, &Value::Null).await.expect(200)["secrets"][0]["id"].clone();
    let new = "a-secret-of-slacks-that-came-after-0";
    world.hooks(&world.home, "PATCH", &path, &json!({"secret": new})).await.expect(200);
    world.hooks(&world.home, "PATCH", &path, &json!({"remove_secret": first})).await.expect(200);
    swap(&mut world.process, &mut other);
    world.deliver_signed(&hook, Signer::Slack(SLACK_SECRET), &slack_message("Ev2", "x")).await.expect(401);
    world.deliver_signed(&hook, Signer::Slack(new), &slack_message("Ev3", "y")).await.expect(200);
}

/// The operator changes the deployment's own secrets without notice to any process.
#[tokio::test]
async fn a_new_bearer_of_the_deployments_lets_in_at_once() {
    let world = World::start().await;
    world.incoming_call(&world.home, "call-1", "+14155550101");
    let message = json!({"message": {"type": "status-update", "status": "in-progress", "call": {"id": "call-1"}}});
    let told = async |bearer: &str| {
        let event = Event::post("/api/vapi/events", &message).header("authorization", &format!("Bearer {bearer}"));
        world.send("calls", &event).await
    };
    let before = world.options.webhook_bearer.clone().unwrap();
    told(&before).await.expect(200);
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    world.aws.put_secret("switchboard/vapi", &json!({"api_key": PLATFORM_KEY, "webhook_bearer": "the-next-one"}));
    told("the-next-one").await.expect(200);
    told(&before).await.expect(401);
}

/// The process already knows the key before the present one when the present one is replaced.
#[tokio::test]
async fn a_new_key_of_the_tokens_refuses_no_token_of_the_one_before() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    let id = tool["id"].as_str().unwrap();
    let call = async |token: &str, call_id: &str| {
        let called = &world.home.phone_number;
        let metadata =
            json!({"callerPhoneNumber": phone(1), "calledPhoneNumber": called, "callId": call_id, "token": token});
        world.execute(id, &json!({"text": "Hello", "metadata": metadata})).await
    };
    for key in ["the-second-key", "the-third-key"] {
        let token = world.process.tokens.issue(id.parse().unwrap()).await.unwrap();
        let (token, voice) = (token.expose_secret(), world.voice_token().await);
        call("a-strangers", key).await.expect(401);
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        world.aws.put_secret("switchboard/tool-token", &json!({"current": key}));

        let (begun, before) = (Instant::now(), world.aws.operations().len());
        // The first makes the process read the new key.
        for _ in 0..8 {
            call("a-strangers", key).await.expect(401);
        }
        call(token, key).await.result();
        let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
        world.send("mcp", &world.voice_event(&voice, &ping)).await.expect(200);
        let asked = world.aws.operations().split_off(before);
        let asked = asked.iter().filter(|operation| operation.on == ["switchboard/tool-token"]).count();
        // The key once in a second, and the key before it once.
        assert!(u64::try_from(asked).unwrap() <= 2 + begun.elapsed().as_secs(), "{key}: {asked}");
    }
}
