//! Deletion of personal data, and budgets, against `docs/openapi.yaml`.

use std::thread::JoinHandle;

use serde_json::{Value, json};
use tests::{Answer, Event, Fault, Trouble, World, ai_sms};

use super::{Given, NOBODY, part, specification::Document, text};

pub(crate) fn parts() -> [JoinHandle<Given>; 3] {
    [part(successes), part(refusals), part(outages)]
}

fn event(world: &World, method: &str, path: &str) -> Event {
    Event::new(method, &format!("/api/{}{path}", world.home.slug)).user(&world.home.user_id)
}

fn erasing(world: &World, body: &Value) -> Event {
    event(world, "POST", "/erasures").text(body.to_string())
}

async fn send(world: &World, function: &str, event: &Event) -> Answer {
    // Boxed: unoptimized, the futures of all functions are too large for a test's stack.
    Box::pin(world.send(function, event)).await
}

/// A request for each operation.
fn asked(world: &World, call: &str, run: &str) -> [(&'static str, &'static str, Event); 4] {
    [
        ("deleteCall", "calls", event(world, "DELETE", &format!("/calls/{call}"))),
        ("deleteRun", "runs", event(world, "DELETE", &format!("/runs/{run}"))),
        ("eraseNumber", "erasures", erasing(world, &json!({"phone_number": "+14155550101"}))),
        ("getUsage", "usage", event(world, "GET", "/usage")),
    ]
}

async fn successes() -> Given {
    let mut given = Given::default();
    let world = World::start().await;
    world.incoming_call(&world.home, "call-1", "+14155550101");
    let run = world.start_run(&json!({"prompt": "Call +14155550101"})).await.expect(202);
    for (name, body) in Document::read().request_examples("eraseNumber") {
        let erased = send(&world, "erasures", &erasing(&world, &body)).await;
        assert_eq!(erased.body["runs_under_way"], json!([run["id"]]), "{name}");
        given.note("eraseNumber", 200, &erased);
    }
    given.note("deleteRun", 409, &send(&world, "runs", &asked(&world, "x", text(&run["id"]))[1].2).await);
    world.cancel_run(text(&run["id"])).await.expect(200);
    world.incoming_call(&world.home, "call-1", "+14155550101");
    for (operation, function, event) in asked(&world, "call-1", text(&run["id"])) {
        let status = if operation.starts_with("delete") { 204 } else { 200 };
        given.note(operation, status, &send(&world, function, &event).await);
    }
    given
}

async fn refusals() -> Given {
    let mut given = Given::default();
    let world = World::start().await;
    for (operation, function, event) in asked(&world, "call-1", NOBODY) {
        let nobody = Event { user: None, ..event.clone() };
        given.note(operation, 401, &send(&world, function, &nobody).await);
        given.note(operation, 404, &send(&world, function, &event.clone().user(&world.other.user_id)).await);
        if operation.starts_with("delete") {
            given.note(operation, 404, &send(&world, function, &event).await);
        }
    }
    for unreadable in ["", "{", "\u{0}"] {
        given.note(
            "eraseNumber",
            400,
            &send(&world, "erasures", &event(&world, "POST", "/erasures").text(unreadable)).await,
        );
    }
    for wrong in
        [json!({}), json!([]), json!({"phone_number": "x"}), json!({"phone_number": "+14155550101", "cursor": "x"})]
    {
        given.note("eraseNumber", 422, &send(&world, "erasures", &erasing(&world, &wrong)).await);
    }
    given.note("getUsage", 422, &send(&world, "usage", &event(&world, "GET", "/usage").query("days", "0")).await);
    // A call with more data than can be deleted in time.
    world.incoming_call(&world.home, "call-1", "+14155550101");
    let tool = world.attached(&ai_sms()).await;
    let mut call = world.call(&tool, json!({"text": "Hi"}));
    call.call_id = Some("call-1".to_owned());
    world.call_tool(&call).await.result();
    let hurried = asked(&world, "call-1", NOBODY)[0].2.clone().within(std::time::Duration::from_millis(1_500));
    given.note("deleteCall", 409, &send(&world, "calls", &hurried).await);

    let budgets = json!({"runs_per_hour": 0, "executions_per_hour": 0});
    world.aws.change("organizations", &world.home.organization_id, json!({"budgets": budgets}));
    let mut world = world;
    world.restart();
    given.note("startRun", 429, &world.start_run(&json!({"prompt": "Hello"})).await);
    let trial = json!({"tool_id": tool["id"], "arguments": {"text": "Hi"}, "caller_phone_number": "+14155550101", "dry_run": false});
    given.note("testTool", 429, &world.try_tool(&trial).await);

    let home = &world.home;
    let row = json!({"user_id": home.user_id, "organization_id": home.organization_id, "role": "member"});
    world.aws.put("organization_members", &row);
    for (operation, function, event) in asked(&world, "call-1", NOBODY) {
        let status = if operation == "getUsage" { 200 } else { 403 };
        given.note(operation, status, &send(&world, function, &event).await);
    }
    given
}

async fn outages() -> Given {
    let mut given = Given::default();
    let world = World::start().await;
    for (operation, function, event) in asked(&world, "call-1", NOBODY) {
        world.aws.inject(Fault::throttled("Query", "organizations"));
        given.note(operation, 503, &send(&world, function, &event).await);
        world.aws.inject(Fault::new("Query", "organizations", Trouble::Error("ValidationException")));
        given.note(operation, 500, &send(&world, function, &event).await);
        assert_eq!(world.aws.faults_left(), 0, "{operation}");
    }
    given
}
