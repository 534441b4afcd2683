//! The receipt of a call, posted by a signed tool of an automation, and texted to the caller.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use axum::{Router, http::StatusCode, routing::post};
use secrecy::SecretString;
use serde_json::{Value, json};
use shared::webhooks;
use tests::{Event, Options, World, automation::AMPLE, http_server::Server, phone};

use crate::claims::example;

const CALL: &str = "call-1";
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// In place of a status: the connection ends without an answer.
const NO_ANSWER: u16 = 0;

/// An address that answers with these statuses one after the other, then with 200; an ended call; and the active automation
/// that posts its receipt.
async fn world(statuses: &[u16]) -> (World, Server, String) {
    let left = Arc::new(Mutex::new(statuses.iter().copied().collect::<VecDeque<u16>>()));
    let next = move || {
        let status = left.lock().unwrap().pop_front().unwrap_or(200);
        assert_ne!(status, NO_ANSWER, "the server's task ends, and its connection");
        // A redirect would lead into the network of AWS.
        async move { (StatusCode::from_u16(status).unwrap(), [("location", "http://169.254.169.254/")], "{}") }
    };
    let site = Server::start(Router::new().route("/receipts", post(next))).await;
    let world = World::with(Options { open_hosts: vec![site.address.to_string()], ..Options::default() }).await;
    world.incoming_call(&world.home, CALL, &phone(1));
    world.catalogue_service("calls");
    let tool = world.tool(&hook(&format!("{}/receipts", site.url))).await;
    let name = tool["name"].as_str().unwrap();
    let definition = json!({
        "name": "Receipts", "trigger_type": "webhook",
        "trigger_config": {"service": "Calls", "event_type": "call.ended"},
        "actions": [{
            "id": "post", "tool": name, "retries": 3,
            "parameters": {"body_call": "{{call}}", "body_receipt": "{{receipt}}"},
        }],
        "fingerprints": {name: "v0"},
    });
    let automation = world.active(&definition).await;
    end(&world).await;
    (world, site, automation)
}

/// VAPI reports the end of the call twice; then everything that waits runs.
async fn end(world: &World) {
    let bearer = format!("Bearer {}", world.options.webhook_bearer.as_ref().unwrap());
    for message in [
        json!({"type": "status-update", "status": "ended", "call": {"id": CALL}}),
        json!({"type": "end-of-call-report", "cost": 0.12, "call": {"id": CALL}}),
    ] {
        let event = Event::post("/api/vapi/events", &json!({"message": message})).header("authorization", &bearer);
        world.send("calls", &event).await.expect(200);
    }
    assert_eq!(world.run_scheduled_within(20).await, 0);
    assert_eq!(world.run_loop(AMPLE).await, 0);
}

fn hook(url: &str) -> Value {
    let object = |prompt: &str| json!({"mode": "ai", "prompt": prompt, "schema": {"type": "object"}});
    json!({
        "type": "api_request", "label": "Post the receipt", "method": "POST", "url": url,
        "body": {"call": object("The call"), "receipt": object("Its receipt")}, "signing_secret": SECRET,
    })
}

async fn status(world: &World, automation: &str) -> Value {
    let run = world.runs_of(automation)[0]["id"].as_str().unwrap().to_owned();
    world.get_as("runs", &world.home, &format!("/runs/{run}")).await.expect(200)["status"].clone()
}

#[tokio::test]
async fn the_receipt_is_posted_once_with_a_signature_that_verifies() {
    let (world, site, automation) = world(&[]).await;
    let [posted] = &site.seen()[..] else { panic!("one request: {:?}", site.seen()) };
    let [id, at, signature] =
        ["webhook-id", "webhook-timestamp", "webhook-signature"].map(|name| posted.headers[name].clone());
    let secret = SecretString::from(SECRET);
    let expected = webhooks::standard_signature(&secret, &id, at.parse().unwrap(), posted.body.as_bytes());
    assert_eq!(Some(signature), expected);
    let body: Value = serde_json::from_str(&posted.body).unwrap();
    assert_eq!((&body["call"]["id"], &body["receipt"]["final"]), (&json!(CALL), &json!(true)));
    assert_eq!(status(&world, &automation).await, "completed");
    // The secret is stored in Secrets Manager alone.
    for table in ["tools", "executions", "automation_runs", "events"] {
        assert!(!world.aws.rows(table).iter().any(|row| row.to_string().contains(&SECRET[6..])), "{table}");
    }
}

#[tokio::test]
async fn a_receipt_that_was_not_taken_is_posted_again_under_the_same_id() {
    for (statuses, posts, ends) in [
        (&[500, 503][..], 3, "completed"),
        (&[NO_ANSWER, 429], 3, "completed"),
        (&[502, NO_ANSWER, 500, 500, 500], 4, "failed"),
    ] {
        let (world, site, automation) = world(statuses).await;
        let ids: Vec<_> = site.seen().iter().map(|posted| posted.headers["webhook-id"].clone()).collect();
        assert_eq!((ids.len(), ids.iter().all(|id| *id == ids[0])), (posts, true), "{statuses:?}");
        assert_eq!(status(&world, &automation).await, ends, "{statuses:?}");
        end(&world).await;
        assert_eq!(site.seen().len(), posts, "the end is reported again");
    }
}

#[tokio::test]
async fn an_address_that_is_gone_or_redirects_is_a_failure_and_is_not_asked_again() {
    for refusal in [410, 302, 307] {
        let (world, site, automation) = world(&[refusal]).await;
        assert_eq!((site.seen().len(), status(&world, &automation).await), (1, json!("failed")), "{refusal}");
    }
}

#[tokio::test]
async fn a_signing_secret_that_cannot_sign_is_refused() {
    let world = World::start().await;
    let with = |changes: Value| {
        let mut config = hook("https://receiver.example/receipts");
        config.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        config
    };
    for (changes, field) in [
        (json!({"signing_secret": "secret"}), "signing_secret"),
        (json!({"signing_secret": "whsec_c2hvcnQ="}), "signing_secret"),
        (json!({"signing_secret": {"mode": "ai", "prompt": "The secret"}}), "signing_secret"),
        (json!({"signing_secret": {"mode": "fixed", "value": SECRET, "secret": false}}), "signing_secret.secret"),
        (json!({"method": "GET"}), "signing_secret"),
        (json!({"headers": {"Webhook-Id": "1"}}), "headers.Webhook-Id"),
        (json!({"url": "https://10.0.0.7/receipts"}), "url.value"),
    ] {
        assert_eq!(world.create(&with(changes.clone())).await.wrong_fields(), [field], "{changes}");
    }
    let tool = world.tool(&with(json!({}))).await;
    assert!(!tool.to_string().contains(SECRET), "{tool}");
    // The masked secret stands for the stored one.
    world.update(&tool, &json!({"label": "Post it"})).await.expect(200);
    let tried =
        world.try_tool(&json!({"tool_id": tool["id"], "arguments": {"body_call": {}, "body_receipt": {}}})).await;
    let shown = tried.expect(200);
    assert!(!shown.to_string().contains(&SECRET[6..]) && shown.to_string().contains("webhook-signature"), "{shown}");
}

#[tokio::test]
async fn a_signed_request_of_a_conversation_with_an_unknown_outcome_is_not_repeated() {
    let (world, site, _) = world(&[200, 500, 200]).await;
    let mut config = hook(&format!("{}/receipts", site.url));
    config["label"] = json!("Book");
    let tool = world.attached(&config).await;
    let call = world.call(&tool, json!({"body_call": {"a": 1}, "body_receipt": {}}));
    for _ in 0..2 {
        assert!(world.call_tool(&call).await.sentence().contains("not known"));
    }
    assert_eq!(site.seen().len(), 2);
}

/// The page's automation that texts a person what was done in the call, after a call with the person in which tools with these
/// labels acted.
async fn texts((direction, person): (&str, &str), done: &[&str], quotas: Value) -> (World, String) {
    let world = World::start().await;
    world.incoming_call(&world.home, CALL, person);
    world.aws.change("calls", CALL, json!({"direction": direction}));
    world.catalogue_service("calls");
    for (number, label) in done.iter().enumerate() {
        let mut tool = tests::api_request("POST", "https://books.example/appointments");
        tool["label"] = json!(label);
        let organization = &world.home.organization_id;
        let row = json!({
            "id": uuid::Uuid::now_v7(), "organization_id": organization, "tool_id": world.tool(&tool).await["id"],
            "call_id": CALL, "organization_call": format!("{organization}#{CALL}"), "trigger": "conversation",
            "status": "succeeded", "arguments": {"n": number}, "started_at": shared::models::Timestamp::now(),
            "duration_ms": 7, "expires_at": shared::models::Timestamp::now().as_seconds() + 86_400,
        });
        world.aws.put("executions", &row);
    }
    let mut sms = example("\"Text the receipt\"");
    sms["from"]["phone_number_id"] = json!(world.home.phone_number_id);
    world.tool(&sms).await;
    let mut definition = example("\"Texted receipts\"");
    definition["quotas"] = quotas;
    let automation = world.active(&definition).await;
    end(&world).await;
    (world, automation)
}

#[tokio::test]
async fn a_person_gets_one_text_of_what_was_done() {
    for direction in ["inbound", "outbound"] {
        let (world, _) = texts((direction, &phone(1)), &["Book a table", "Order flowers"], json!({})).await;
        end(&world).await;
        let [sent] = &world.twilio.messages()[..] else { panic!("one message") };
        let text = "Thank you for your call. Done: Book a table, Order flowers.";
        assert_eq!(
            (sent.to.as_str(), sent.from.as_str(), sent.body.as_str()),
            (&*phone(1), &*world.home.phone_number, text)
        );
    }
}

#[tokio::test]
async fn no_text_goes_to_a_caller_without_a_number_or_about_nothing() {
    for (caller, done) in
        [("anonymous", &["Book"][..]), ("+266696687", &["Book"]), ("client:web", &["Book"]), ("+14155550101", &[])]
    {
        let (world, automation) = texts(("inbound", caller), done, json!({})).await;
        assert_eq!(world.runs_of(&automation), [] as [Value; 0], "{caller}");
        assert!(world.twilio.messages().is_empty(), "{caller}");
    }
}

#[tokio::test]
async fn a_text_beyond_the_quotas_is_not_sent() {
    tests::within_one_hour().await;
    let (world, automation) = texts(("inbound", &phone(1)), &["Book"], json!({"messages_per_day": 1})).await;
    assert_eq!((world.twilio.messages().len(), status(&world, &automation).await), (1, json!("completed")));
    world.incoming_call(&world.home, "call-2", &phone(2));
    let row = world.aws.rows("executions").into_iter().find(|row| row["call_id"] == CALL).unwrap();
    let mut second = row.clone();
    (second["id"], second["call_id"]) = (json!(uuid::Uuid::now_v7()), json!("call-2"));
    second["organization_call"] = json!(format!("{}#call-2", world.home.organization_id));
    world.aws.put("executions", &second);
    let bearer = format!("Bearer {}", world.options.webhook_bearer.as_ref().unwrap());
    let ended = json!({"message": {"type": "end-of-call-report", "call": {"id": "call-2"}}});
    world.send("calls", &Event::post("/api/vapi/events", &ended).header("authorization", &bearer)).await.expect(200);
    assert_eq!(world.run_scheduled_within(20).await, 0);
    assert_eq!(world.run_loop(AMPLE).await, 0);
    assert_eq!((world.runs_of(&automation).len(), world.twilio.messages().len()), (2, 1));
}
