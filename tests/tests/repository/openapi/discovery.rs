//! Services and the agents' tool discovery against `docs/openapi.yaml`.

use std::{thread::JoinHandle, time::Duration};

use local::standins::Fault as Standin;
use serde_json::json;
use tests::{Answer, Event, Fault, Trouble, World, ai_sms};

use super::{Given, part, specification::Document};

const LATE: u64 = 60_000;

pub(crate) fn parts() -> [JoinHandle<Given>; 4] {
    [part(successes), part(refusals), part(outages), part(pipedream_fails)]
}

fn event(world: &World, method: &str, path: &str) -> Event {
    Event::new(method, &format!("/api/{}/{path}", world.home.slug)).user(&world.home.user_id)
}

async fn send(world: &World, event: &Event) -> Answer {
    // Boxed: unoptimized, the futures of all functions are too large for a test's stack.
    Box::pin(world.send("discover", event)).await
}

async fn world() -> World {
    let world = World::start().await;
    let fields = json!([
        {"name": "account", "description": "The account's id.", "secret": false},
        {"name": "api_key", "description": "Under Developers."},
    ]);
    world.service("Slack", Some("slack"));
    world.service_tool("Slack", "slack_post_message", "Posts a message.", &["text"]);
    let message = json!({"description": "A message.", "trigger_data_fields": {"event.text": "Its text"}, "example": {"event": {}}});
    world.service_capabilities(
        "Slack",
        &json!({
            "supports_webhooks": true, "webhook_events": ["message"], "webhook_payload_schemas": {"message": message},
        }),
    );
    world.service_with("Stripe", &json!({"connection": {"type": "credential", "fields": fields}}));
    world.service_with("Twilio", &json!({"connection": {"type": "phone_number"}}));
    world.service_with("Fax", &json!({"is_active": false}));
    world
}

/// A request for each operation.
fn asked(world: &World) -> [(&'static str, Event); 9] {
    let event = |method: &str, path: &str| event(world, method, path);
    [
        (
            "initialMdFetch",
            event("GET", "discover/initial_md_fetch").query("service", "slack").query("service", "slakc"),
        ),
        (
            "fetchToolData",
            event("GET", "discover/fetch_tool_data").query("name", "slack_post_message").query("name", "x"),
        ),
        (
            "fetchToolDataOfMany",
            event("POST", "discover/fetch_tool_data").text(r#"{"tool_names": ["slack_post_message"]}"#),
        ),
        ("searchTools", event("GET", "discover/search").query("q", "mesage")),
        ("searchToolsByBody", event("POST", "discover/search").text(r#"{"q": "message"}"#)),
        ("listServices", event("GET", "services")),
        ("chooseServiceAccount", event("PUT", "services/slack/account").text(r#"{"account_id": null}"#)),
        ("connectService", event("POST", "services/slack/connect")),
        ("disconnectService", event("DELETE", "services/slack/connection")),
    ]
}

async fn successes() -> Given {
    let mut given = Given::default();
    let world = world().await;
    world.tool(&ai_sms()).await;
    world
        .tool(&json!({"label": "Wget", "type": "api_request", "method": "GET", "url": "https://api.example.com/"}))
        .await;
    for (operation, event) in asked(&world) {
        if operation == "disconnectService" {
            continue;
        }
        given.note(operation, 200, &send(&world, &event).await);
        if event.path.contains("/discover/") {
            for form in ["text/plain", "text/markdown"] {
                given.note(operation, 200, &send(&world, &event.clone().header("accept", form)).await);
            }
        }
    }
    let document = Document::read();
    for (operation, path) in [("fetchToolDataOfMany", "fetch_tool_data"), ("searchToolsByBody", "search")] {
        for (_, body) in document.request_examples(operation) {
            let event = event(&world, "POST", &format!("discover/{path}")).text(body.to_string());
            given.note(operation, 200, &send(&world, &event).await);
        }
    }
    for (name, body) in document.request_examples("connectService") {
        let service = if name == "link" { "slack" } else { "stripe" };
        let event = event(&world, "POST", &format!("services/{service}/connect")).text(body.to_string());
        given.note("connectService", 200, &send(&world, &event).await);
    }
    given.note("listServices", 200, &send(&world, &event(&world, "GET", "services")).await);
    let disconnect = event(&world, "DELETE", "services/slack/connection");
    given.note("disconnectService", 204, &send(&world, &disconnect).await);
    given.note("disconnectService", 404, &send(&world, &disconnect).await);
    given
}

async fn refusals() -> Given {
    let mut given = Given::default();
    let world = world().await;
    for (operation, event) in asked(&world) {
        let nobody = Event { user: None, ..event.clone() };
        given.note(operation, 401, &send(&world, &nobody).await);
        given.note(operation, 404, &send(&world, &event.clone().user(&world.other.user_id)).await);
        if event.method == "GET" || event.method == "DELETE" {
            given.note(operation, 422, &send(&world, &event.clone().query("colour", "red")).await);
        }
        if event.method == "POST" || event.method == "PUT" {
            given.note(operation, 400, &send(&world, &event.clone().text("{")).await);
            given.note(operation, 422, &send(&world, &event.clone().text(r#"{"colour": "red"}"#)).await);
        }
    }
    for (operation, method, path, status) in [
        ("connectService", "POST", "services/twilio/connect", 409),
        ("connectService", "POST", "services/fax/connect", 409),
        ("connectService", "POST", "services/nothing/connect", 404),
        ("disconnectService", "DELETE", "services/twilio/connection", 409),
        ("disconnectService", "DELETE", "services/nothing/connection", 404),
    ] {
        given.note(operation, status, &send(&world, &event(&world, method, path)).await);
    }
    for (service, account, status) in
        [("stripe", json!(null), 409), ("nothing", json!(null), 404), ("slack", json!(world.other.slack_account), 422)]
    {
        let event = event(&world, "PUT", &format!("services/{service}/account"));
        let chosen = send(&world, &event.text(json!({"account_id": account}).to_string())).await;
        given.note("chooseServiceAccount", status, &chosen);
    }
    let home = &world.home;
    let row = json!({"user_id": home.user_id, "organization_id": home.organization_id, "role": "member"});
    world.aws.put("organization_members", &row);
    for (operation, event) in asked(&world)
        .into_iter()
        .filter(|(operation, _)| operation.contains("nnectService") || operation.starts_with("choose"))
    {
        given.note(operation, 403, &send(&world, &event).await);
    }
    given
}

async fn outages() -> Given {
    let mut given = Given::default();
    let world = world().await;
    for (operation, event) in asked(&world) {
        world.aws.inject(Fault::throttled("Query", "organizations"));
        given.note(operation, 503, &send(&world, &event).await);
        world.aws.inject(Fault::new("Query", "organizations", Trouble::Error("ValidationException")));
        given.note(operation, 500, &send(&world, &event).await);
    }
    given
}

/// Every failure of Pipedream.
async fn pipedream_fails() -> Given {
    let mut given = Given::default();
    let world = world().await;
    let [.., connect, disconnect] = asked(&world);
    // A missing token is a different failure.
    send(&world, &event(&world, "GET", "services")).await.expect(200);
    for (operation, event) in [connect, disconnect] {
        for (fault, status) in [
            (Standin::status(500), 502),
            (Standin::body(json!("<html>")), 502),
            (Standin::status(429).with_header("Retry-After", "600"), 503),
        ] {
            world.pipedream.inject(fault.times(20));
            given.note(operation, status, &send(&world, &event).await);
            world.pipedream.clear_faults();
        }
        world.pipedream.inject(Standin::delay(LATE).times(20));
        given.note(operation, 504, &send(&world, &event.within(Duration::from_secs(4))).await);
        world.pipedream.clear_faults();
    }
    given
}
