//! After a new `PublicUrl` two addresses are in use: the new one, and the host of API Gateway that services still call.
#![allow(clippy::unwrap_used, clippy::large_futures, reason = "a test says what is wrong and stops")]

use base64::{Engine, prelude::BASE64_STANDARD};
use local::standins::twilio::IncomingCall;
use serde_json::{Value, json};
use tests::{
    Event, Options, World, phone,
    webhooks::{Signer, signed},
};

const PUBLIC: &str = "https://calls.acme.example";
/// API Gateway's host in every event of the tests.
const OF_GATEWAY: &str = "https://api.switchboard.example";
const THIRD: &str = "https://elsewhere.example";
const SECRET: &str = "a-secret-of-the-hook";
const ACCOUNT: &str = "push@acme.iam.gserviceaccount.com";

async fn world() -> World {
    World::with(Options { public_url: PUBLIC.to_owned(), ..Options::default() }).await
}

/// The request for a call that Twilio signs for the number's address below `base`.
fn incoming(world: &World, base: &str, call: &IncomingCall) -> Event {
    let path = format!("/api/phone-number/{}/incoming", world.home.phone_number_id);
    let form = call.signed(&format!("{base}{path}"), &world.home.twilio_token);
    let event = Event::new("POST", &path).text(form.body);
    form.headers.iter().fold(event, |event, (name, value)| event.header(name, value))
}

#[tokio::test]
async fn a_call_at_the_gateways_host_gets_twiml_and_one_signed_for_a_third_host_is_refused() {
    let world = world().await;
    for (number, base) in [(1, OF_GATEWAY), (2, PUBLIC)] {
        let answer = world.send("call-start", &incoming(&world, base, &world.caller(&phone(number)))).await;
        assert_eq!(answer.status, 200, "{base}: {}", answer.body);
        assert!(answer.body.as_str().unwrap().contains("/transport"), "{base}: {}", answer.body);
    }
    // The client chooses the header, not the host that API Gateway served.
    let third = incoming(&world, THIRD, &world.caller(&phone(3))).header("host", "elsewhere.example");
    assert_eq!(world.send("call-start", &third).await.status, 403);
    assert_eq!(world.aws.rows("calls").len(), 2);
}

#[tokio::test]
async fn an_event_signed_for_the_gateways_host_is_taken_and_one_for_a_third_host_is_refused() {
    let world = world().await;
    for file in ["twilio", "hubspot", "gmail"] {
        world.catalogue_service(file);
    }
    let of_twilio = world.hook(&json!({"service": "Twilio", "secret": SECRET})).await;
    let of_hubspot = world.hook(&json!({"service": "HubSpot", "secret": SECRET})).await;
    let of_gmail = world.hook(&json!({"service": "Gmail", "service_account": ACCOUNT})).await;
    let text = json!({
        "MessageSid": "SM1", "AccountSid": world.home.twilio_sid, "From": phone(1), "To": world.home.phone_number, "Body": "Hi",
    });
    let delivered = json!({"MessageSid": "SM2", "MessageStatus": "delivered", "To": phone(1)});
    let created = json!([{"eventId": 1, "subscriptionId": 1, "occurredAt": 1, "subscriptionType": "contact.creation"}]);
    let state = BASE64_STANDARD.encode(json!({"emailAddress": "ops@acme.example", "historyId": 1}).to_string());
    let pushed = json!({"message": {"data": state, "messageId": "1"}, "subscription": "projects/p/subscriptions/s"});
    let all: [(String, Signer<'_>, &Value); 4] = [
        ("/api/hooks/twilio".to_owned(), Signer::Twilio(&world.home.twilio_token), &text),
        (world.hook_path(&of_twilio), Signer::Twilio(SECRET), &delivered),
        (world.hook_path(&of_hubspot), Signer::Hubspot(SECRET), &created),
        (world.hook_path(&of_gmail), Signer::Google(&world.issuer, ACCOUNT), &pushed),
    ];
    for (path, signer, body) in all {
        let at = |base: &str| signed(base, &path, signer, &body.to_string());
        assert_eq!(world.send("trigger", &at(THIRD).header("host", "elsewhere.example")).await.status, 401, "{path}");
        for base in [OF_GATEWAY, PUBLIC] {
            let answer = world.send("trigger", &at(base)).await;
            assert_eq!(answer.status, 200, "{base}{path}: {}", answer.body);
        }
    }
}

#[tokio::test]
async fn a_token_for_the_mcp_server_at_the_gateways_host_is_accepted_and_one_for_a_third_host_is_not() {
    let world = world().await;
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let mut claims = world.issuer.claims(&world.home.user_id);
    for (base, status) in [(OF_GATEWAY, 200), (PUBLIC, 200), (THIRD, 401)] {
        claims["aud"] = json!(format!("{base}/api/{}/mcp", world.home.slug));
        let bearer = format!("Bearer {}", world.issuer.signed("es256", &claims));
        world.send("mcp", &world.mcp_event(&ping).header("authorization", &bearer)).await.expect(status);
    }
}
