//! Tool tests against `docs/openapi.yaml`.

use std::{thread::JoinHandle, time::Duration};

use local::standins::Fault as Standin;
use serde_json::{Value, json};
use tests::{Answer, Event, Fault, Options, Tenant, Trouble, World, ai_sms, slack_action};

use super::{Given, part, specification::Document};

const OPERATION: &str = "testTool";
const NOBODY: &str = "00000000-0000-4000-8000-000000000000";
const LATE: u64 = 60_000;

pub(crate) fn parts() -> [JoinHandle<Given>; 3] {
    [part(successes), part(refusals), part(outages)]
}

fn trying(world: &World, body: &Value) -> Event {
    Event::post(&format!("/api/{}/tools/test", world.home.slug), body).user(&world.home.user_id)
}

async fn send(world: &World, event: &Event) -> Answer {
    // Boxed: unoptimized, the futures of all functions are too large for a test's stack.
    Box::pin(world.send("tools-test", event)).await
}

async fn successes() -> Given {
    let mut given = Given::default();
    let document = Document::read();
    let home = Tenant::new("harbour-dental", "+15005550006");
    let world = World::with(Options { home, ..Options::default() }).await;
    let mut config = ai_sms();
    config["limits"] = json!({"per_hour": 3});
    let mut tool = world.tool(&config).await;
    for (name, body) in document.request_examples(OPERATION) {
        if body["tool_id"].is_string() {
            tool["id"] = body["tool_id"].clone();
            world.aws.put("tools", &tool);
        }
        let tried = send(&world, &trying(&world, &body)).await;
        given.note(OPERATION, 200, &tried);
        let expected = if body["dry_run"] == false { "succeeded" } else { "ready" };
        assert_eq!(tried.body["status"], expected, "{name}: {}", tried.body);
    }
    let body = |dry_run: bool, arguments: Value| json!({"tool_id": tool["id"], "arguments": arguments, "dry_run": dry_run, "caller_phone_number": "+14155550101"});
    for dry_run in [true, false] {
        let tried = send(&world, &trying(&world, &body(dry_run, json!({"colour": "red"})))).await;
        given.note(OPERATION, 200, &tried);
        assert_eq!(tried.body["status"], "failed", "{}", tried.body);
    }
    let again = trying(&world, &body(false, json!({"text": "Hi"}))).header("idempotency-key", "one");
    world.twilio.inject(Standin::drop_after());
    for expected in ["unknown", "unknown"] {
        let tried = send(&world, &again).await;
        given.note(OPERATION, 200, &tried);
        assert_eq!(tried.body["status"], expected, "{}", tried.body);
    }
    let again = trying(&world, &body(false, json!({"text": "Hi"}))).header("idempotency-key", "two");
    for expected in ["succeeded", "replayed"] {
        let tried = send(&world, &again).await;
        given.note(OPERATION, 200, &tried);
        assert_eq!(tried.body["status"], expected, "{}", tried.body);
    }
    let over = send(&world, &trying(&world, &body(false, json!({"text": "Once more"})))).await;
    given.note(OPERATION, 200, &over);
    assert_eq!(over.body["status"], "limited", "{}", over.body);
    given
}

async fn refusals() -> Given {
    let mut given = Given::default();
    let world = World::start().await;
    let event = trying(&world, &json!({"config": ai_sms()}));
    let mut nobody = event.clone();
    nobody.user = None;
    given.note(OPERATION, 401, &send(&world, &nobody).await);
    given.note(OPERATION, 404, &send(&world, &event.clone().user(&world.other.user_id)).await);
    given.note(OPERATION, 404, &send(&world, &trying(&world, &json!({"tool_id": NOBODY}))).await);
    for unreadable in ["", "{", "\u{0}"] {
        given.note(OPERATION, 400, &send(&world, &event.clone().text(unreadable)).await);
    }
    for wrong in ["[]", "{}", "null", r#"{"tool_id": 7}"#, r#"{"config": {"type": "fax"}}"#] {
        given.note(OPERATION, 422, &send(&world, &event.clone().text(wrong)).await);
    }
    given.note(OPERATION, 422, &send(&world, &event.clone().header("idempotency-key", "")).await);

    // The handler accepts exactly the document's bodies.
    let document = Document::read();
    let validator = document.validator(&json!({"$ref": "#/components/schemas/Trial"}));
    let (tool, config) = (world.tool(&ai_sms()).await["id"].clone(), ai_sms());
    for (body, right) in [
        (json!({"tool_id": tool}), true),
        (
            json!({"tool_id": tool, "config": null, "arguments": null, "dry_run": null, "called_phone_number": null}),
            true,
        ),
        (json!({"config": config, "tool_id": null, "arguments": {"text": 7}}), true),
        (json!({"config": config, "tool_id": tool}), false),
        (json!({"config": null, "tool_id": null}), false),
        (json!({"tool_id": "x"}), false),
        (json!({"tool_id": tool, "arguments": []}), false),
        (json!({"tool_id": tool, "dry_run": "yes"}), false),
        (json!({"tool_id": tool, "caller_phone_number": 5}), false),
        (json!({"tool_id": tool, "call_id": "x"}), false),
    ] {
        let answer = send(&world, &trying(&world, &body)).await;
        given.note(OPERATION, if right { 200 } else { 422 }, &answer);
        assert_eq!(validator.is_valid(&body), right, "{body}");
    }
    given
}

async fn outages() -> Given {
    let mut given = Given::default();
    let world = World::start().await;
    let event = trying(&world, &json!({"config": slack_action(&world.home), "arguments": {"text": "Hi"}}));
    for (fault, status) in [
        (Standin::status(500), 502),
        (Standin::body(json!("<html>")), 502),
        (Standin::status(429).with_header("Retry-After", "600"), 503),
        (Standin::delay(LATE), 504),
    ] {
        // Failures of the action's description; a missing token is a different failure.
        world.pipedream.inject(fault.on("GET", "/v1/connect/").times(20));
        given.note(OPERATION, status, &send(&world, &event.clone().within(Duration::from_secs(5))).await);
        world.pipedream.clear_faults();
    }
    world.aws.inject(Fault::throttled("Query", "organizations"));
    given.note(OPERATION, 503, &send(&world, &event).await);
    world.aws.inject(Fault::new("Query", "organizations", Trouble::Error("ValidationException")));
    given.note(OPERATION, 500, &send(&world, &event).await);
    // An unreadable row, as if a newer version had written it.
    world.aws.put("organizations", &json!({"id": world.home.organization_id, "slug": world.home.slug}));
    given.note(OPERATION, 503, &send(&world, &event).await);
    given
}
