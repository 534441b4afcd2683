//! Manual runs, replays and approvals against `docs/openapi.yaml`.

use std::thread::JoinHandle;

use serde_json::{Value, json};
use tests::{Answer, Event, Fault, Trouble, World, automation_event};

use super::{Given, NOBODY, part, specification::Document, text};

pub(crate) fn parts() -> [JoinHandle<Given>; 3] {
    [part(successes), part(refusals), part(outages)]
}

async fn send(world: &World, event: &Event) -> Answer {
    // Boxed: unoptimized, the futures of all functions are too large for a test's stack.
    let function = match &event.path {
        path if path.contains("/approvals") => "approvals",
        path if path.contains("/events/") => "hooks",
        _ => "deploy",
    };
    Box::pin(world.send(function, event)).await
}

fn asked_at(world: &World, method: &str, path: &str, body: &Value) -> Event {
    let event = automation_event(&world.home, method, "", body);
    Event { path: format!("/api/{}{path}", world.home.slug), ..event }
}

/// A request for each operation, with these ids.
fn asked(world: &World, automation: &str, event: &str, approval: &str) -> [(&'static str, Event); 7] {
    let at = |method: &str, path: String, body: Value| asked_at(world, method, &path, &body);
    [
        ("runAutomation", at("POST", format!("/automations/{automation}/run"), json!({"dry_run": true}))),
        ("listAutomationRuns", at("GET", format!("/automations/{automation}/runs"), Value::Null)),
        ("replayEvent", at("POST", format!("/events/{event}/replay"), json!({"automation_id": automation}))),
        ("listApprovals", at("GET", "/approvals".to_owned(), Value::Null)),
        ("getApproval", at("GET", format!("/approvals/{approval}"), Value::Null)),
        ("approveApproval", at("POST", format!("/approvals/{approval}/approve"), json!({"reason": "Fine"}))),
        ("refuseApproval", at("POST", format!("/approvals/{approval}/refuse"), json!({"reason": "No"}))),
    ]
}

/// A world with an active automation, an event, and a pending approval; returns their ids.
async fn world() -> (World, String, String, String) {
    let world = World::start().await;
    let definition = json!({"name": "Digest", "trigger_type": "manual", "prompt": "Sum up", "tools": []});
    let automation = world.activate(&definition).await.id.to_string();
    let run = world.run_by_hand(&automation, &json!({})).await.expect(202);
    let event = "01930f5e-0000-7000-8000-0000000000a7".to_owned();
    world.aws.put("events", &json!({
        "id": event, "organization_id": world.home.organization_id, "hook_id": event, "service": "slack",
        "event_type": "message", "data": "{}", "status": "dispatched", "matched": [], "unmatched": [],
        "created_at": "2026-01-01T00:00:00.000Z", "updated_at": "2026-01-01T00:00:00.000Z", "expires_at": 4_000_000_000_u64,
    }));
    let approval = approval(&world, &run, 1);
    (world, automation, event, approval)
}

fn approval(world: &World, run: &Value, number: u8) -> String {
    let id = format!("01930f5e-0000-7000-8000-00000000000{number}");
    world.aws.put("approvals", &json!({
        "id": id, "organization_id": world.home.organization_id, "automation_id": run["automation_id"], "run_id": run["id"],
        "action_id": "tell", "tool": "slack_post_message", "arguments": "{\"text\":\"Hi\"}", "arguments_hash": "00",
        "status": "pending", "reason": "It is a lot.", "valid_until": "2096-01-01T00:00:00.000Z",
        "created_at": "2026-01-01T00:00:00.000Z", "updated_at": "2026-01-01T00:00:00.000Z", "expires_at": 4_000_000_000_u64,
    }));
    id
}

async fn successes() -> Given {
    let mut given = Given::default();
    let (world, automation, event, approved) = world().await;
    let document = Document::read();
    for operation in ["runAutomation", "replayEvent"] {
        for (name, body) in document.request_examples(operation) {
            let (path, body) = match operation {
                "runAutomation" => (format!("/automations/{automation}/run"), body),
                _ => (format!("/events/{event}/replay"), json!({"automation_id": automation})),
            };
            let once = asked_at(&world, "POST", &path, &body).header("idempotency-key", &name);
            given.note(operation, 202, &send(&world, &once).await);
            if operation == "runAutomation" {
                given.note(operation, 200, &send(&world, &once).await);
            }
        }
    }
    let run = world.run_by_hand(&automation, &json!({})).await.expect(202);
    let refused = approval(&world, &run, 2);
    for (operation, event) in asked(&world, &automation, &event, &approved) {
        match operation {
            "runAutomation" | "replayEvent" => {}
            "refuseApproval" => {
                let event = asked_at(&world, "POST", &format!("/approvals/{refused}/refuse"), &json!({"reason": "No"}));
                given.note(operation, 200, &send(&world, &event).await);
            }
            _ => given.note(operation, 200, &send(&world, &event).await),
        }
    }
    given
}

async fn refusals() -> Given {
    let mut given = Given::default();
    let (world, automation, event, approval) = world().await;
    let viewer = world.member(&world.home, Some("viewer"));
    for (operation, event) in asked(&world, &automation, &event, &approval) {
        let nobody = Event { user: None, ..event.clone() };
        given.note(operation, 401, &send(&world, &nobody).await);
        given.note(operation, 404, &send(&world, &event.clone().user(&world.other.user_id)).await);
        let acts = event.method == "POST";
        if acts {
            given.note(operation, 403, &send(&world, &event.clone().user(&viewer)).await);
            given.note(operation, 400, &send(&world, &event.clone().text("{")).await);
            given.note(operation, 422, &send(&world, &event.clone().text(r#"{"when": 1}"#)).await);
        } else if operation.starts_with("list") {
            given.note(operation, 422, &send(&world, &event.query("limit", "x")).await);
        }
    }
    for (operation, event) in asked(&world, NOBODY, NOBODY, NOBODY) {
        if operation != "listApprovals" {
            given.note(operation, 404, &send(&world, &event).await);
        }
    }
    let runs = |body: &Value| asked_at(&world, "POST", &format!("/automations/{automation}/run"), body);
    let keyed = runs(&json!({})).header("idempotency-key", "one");
    send(&world, &keyed).await.expect(202);
    let other = runs(&json!({"dry_run": true})).header("idempotency-key", "one");
    given.note("runAutomation", 409, &send(&world, &other).await);
    for (operation, event) in asked(&world, &automation, &event, &approval).into_iter().skip(5) {
        world.aws.change("approvals", &approval, json!({"status": "cancelled"}));
        given.note(operation, 409, &send(&world, &event).await);
    }
    world.automation("POST", &format!("/{automation}/pause"), &Value::Null).await.expect(200);
    let replay = json!({"automation_id": automation, "dry_run": false});
    let replay = asked_at(&world, "POST", &format!("/events/{event}/replay"), &replay);
    given.note("replayEvent", 409, &send(&world, &replay).await);
    assert_eq!(text(&world.aws.rows("approvals")[0]["status"]), "cancelled");
    given
}

async fn outages() -> Given {
    let mut given = Given::default();
    let world = World::start().await;
    for (operation, event) in asked(&world, NOBODY, NOBODY, NOBODY) {
        world.aws.inject(Fault::throttled("Query", "organizations"));
        given.note(operation, 503, &send(&world, &event).await);
        world.aws.inject(Fault::new("Query", "organizations", Trouble::Error("ValidationException")));
        given.note(operation, 500, &send(&world, &event).await);
        assert_eq!(world.aws.faults_left(), 0, "{operation}");
    }
    given
}
