//! Replays of many events against `docs/openapi.yaml`.

use std::thread::JoinHandle;

use serde_json::json;
use tests::{Answer, Event, Fault, Trouble, World};

use super::{Given, NOBODY, asked, part, specification::Document, text};

const FAR: &str = "2096-01-01T00:00:00.000Z";

pub(crate) fn parts() -> [JoinHandle<Given>; 3] {
    [part(successes), part(refusals), part(outages)]
}

async fn send(world: &World, event: &Event) -> Answer {
    Box::pin(world.send("hooks", event)).await
}

/// A request for each operation, with this replay's id.
fn operations(world: &World, replay: &str) -> [(&'static str, u16, Event); 5] {
    let one = |method: &str, path: &str| asked(world, method, &format!("/events/replays/{replay}{path}"));
    [
        ("planEventReplay", 201, asked(world, "POST", "/events/replays").text("{}")),
        ("listEventReplays", 200, asked(world, "GET", "/events/replays")),
        ("getEventReplay", 200, one("GET", "")),
        ("startEventReplay", 202, one("POST", "/start")),
        ("cancelEventReplay", 200, one("POST", "/cancel")),
    ]
}

async fn plan(world: &World) -> String {
    let planned = send(world, &asked(world, "POST", "/events/replays")).await.expect(201);
    text(&planned["id"]).to_owned()
}

/// An event that started a deleted automation.
fn event(world: &World) {
    world.aws.put("events", &json!({
        "id": NOBODY, "organization_id": world.home.organization_id, "hook_id": NOBODY, "service": "slack",
        "event_type": "message", "data": "{}", "status": "dispatched", "unmatched": [],
        "matched": [{"automation_id": NOBODY, "run_id": NOBODY}],
        "created_at": "2026-01-01T00:00:00.000Z", "updated_at": "2026-01-01T00:00:00.000Z", "expires_at": 4_000_000_000_u64,
    }));
}

async fn successes() -> Given {
    let mut given = Given::default();
    let world = World::start().await;
    event(&world);
    for (_, body) in Document::read().request_examples("planEventReplay") {
        let planning = asked(&world, "POST", "/events/replays").text(body.to_string());
        given.note("planEventReplay", 201, &send(&world, &planning).await);
    }
    let id = plan(&world).await;
    for (operation, status, event) in operations(&world, &id) {
        given.note(operation, status, &send(&world, &event).await);
    }
    // Every state and member occurs.
    let failure = json!({"event_id": NOBODY, "automation_id": NOBODY, "why": "The stored event cannot be read."});
    for (change, status) in [
        (json!({"started_at": FAR, "started_by": "u", "batch": 0, "next_at": FAR, "cancelled_at": null}), "running"),
        (
            json!({"waits": {"until": FAR, "automation_id": NOBODY, "why": "It waits."}, "cancelled_at": null}),
            "running",
        ),
        (json!({"skipped": {"filter": 2, "newer": 1}, "failures": [failure], "bounded": true}), "running"),
        (json!({"finished_at": FAR}), "completed"),
        (json!({"finished_at": null, "started_at": null, "start_before": "2026-01-01T00:00:00.000Z"}), "expired"),
    ] {
        world.aws.change("replays", &id, change);
        let shown = send(&world, &asked(&world, "GET", &format!("/events/replays/{id}"))).await;
        assert_eq!(shown.body["status"], status, "{}", shown.body);
        given.note("getEventReplay", 200, &shown);
    }
    given
}

async fn refusals() -> Given {
    let mut given = Given::default();
    let world = World::start().await;
    let viewer = world.member(&world.home, Some("viewer"));
    let id = plan(&world).await;
    for (operation, _, event) in operations(&world, &id) {
        given.note(operation, 401, &send(&world, &Event { user: None, ..event.clone() }).await);
        given.note(operation, 404, &send(&world, &event.clone().user(&world.other.user_id)).await);
        if event.method == "POST" {
            given.note(operation, 403, &send(&world, &event.clone().user(&viewer)).await);
        }
    }
    for (operation, _, event) in operations(&world, NOBODY).into_iter().skip(2) {
        given.note(operation, 404, &send(&world, &event).await);
    }
    let planning = asked(&world, "POST", "/events/replays");
    given.note("planEventReplay", 400, &send(&world, &planning.clone().text("{")).await);
    for wrong in [json!([]), json!({"unmatched": true}), json!({"since": 1, "extra": true})] {
        given.note("planEventReplay", 422, &send(&world, &planning.clone().text(wrong.to_string())).await);
    }
    let nobodys = json!({"automation_id": NOBODY}).to_string();
    given.note("planEventReplay", 404, &send(&world, &planning.text(nobodys)).await);
    let list = asked(&world, "GET", "/events/replays").query("limit", "x");
    given.note("listEventReplays", 422, &send(&world, &list).await);
    world.aws.change("replays", &id, json!({"start_before": "2026-01-01T00:00:00.000Z"}));
    for (operation, _, event) in operations(&world, &id).into_iter().skip(3) {
        given.note(operation, 409, &send(&world, &event).await);
    }
    given
}

async fn outages() -> Given {
    let mut given = Given::default();
    let world = World::start().await;
    let id = plan(&world).await;
    for (operation, _, event) in operations(&world, &id) {
        world.aws.inject(Fault::throttled("Query", "organizations"));
        given.note(operation, 503, &send(&world, &event).await);
        world.aws.inject(Fault::new("Query", "organizations", Trouble::Error("ValidationException")));
        given.note(operation, 500, &send(&world, &event).await);
    }
    // It is started, and its message is lost: the request is repeated.
    world.aws.inject(Fault::new("SendMessage", "scheduled", Trouble::Error("ServiceUnavailable")).times(3));
    let starting = asked(&world, "POST", &format!("/events/replays/{id}/start"));
    given.note("startEventReplay", 503, &send(&world, &starting).await);
    given.note("startEventReplay", 202, &send(&world, &starting).await);
    assert_eq!(world.aws.messages("scheduled").len(), 1);
    given
}
