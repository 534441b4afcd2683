//! Members against `docs/openapi.yaml`.

use std::thread::JoinHandle;

use serde_json::json;
use tests::{Answer, Event, Fault, Trouble, World};

use super::{Given, asked, part, text};

pub(crate) fn parts() -> [JoinHandle<Given>; 3] {
    [part(successes), part(refusals), part(outages)]
}

async fn send(world: &World, event: &Event) -> Answer {
    // Boxed: unoptimized, the futures of all functions are too large for a test's stack.
    Box::pin(world.send("members", event)).await
}

fn adding(world: &World, role: &str) -> Event {
    asked(world, "POST", "/members").text(json!({"user_id": "auth0|7", "role": role}).to_string())
}

/// A request for each operation on one member.
fn of_one(world: &World) -> [(&'static str, Event); 3] {
    let path = "/members/auth0%7C7";
    [
        ("getMember", asked(world, "GET", path)),
        ("updateMember", asked(world, "PATCH", path).text(r#"{"role": "admin"}"#)),
        ("removeMember", asked(world, "DELETE", path)),
    ]
}

fn all(world: &World) -> impl Iterator<Item = (&'static str, Event)> {
    [
        ("addMember", adding(world, "member")),
        ("listMembers", asked(world, "GET", "/members")),
        ("listAuditEntries", asked(world, "GET", "/audit")),
    ]
    .into_iter()
    .chain(of_one(world))
}

async fn successes() -> Given {
    let mut given = Given::default();
    let world = World::start().await;
    world.member(&world.home, None);
    for status in [201, 200] {
        given.note("addMember", status, &send(&world, &adding(&world, "member")).await);
    }
    let first = send(&world, &asked(&world, "GET", "/members").query("limit", "2")).await;
    given.note("listMembers", 200, &first);
    let cursor = text(&first.body["next_cursor"]);
    given.note("listMembers", 200, &send(&world, &asked(&world, "GET", "/members").query("cursor", cursor)).await);
    for (operation, event) in of_one(&world) {
        given.note(operation, 200, &send(&world, &event).await);
    }
    given.note("listAuditEntries", 200, &send(&world, &asked(&world, "GET", "/audit")).await);
    given
}

async fn refusals() -> Given {
    let mut given = Given::default();
    let world = World::start().await;
    let member = world.member(&world.home, Some("member"));
    for (operation, event) in all(&world) {
        given.note(operation, 401, &send(&world, &Event { user: None, ..event.clone() }).await);
        given.note(operation, 404, &send(&world, &event.clone().user(&world.other.user_id)).await);
        given.note(operation, 403, &send(&world, &event.user(&member)).await);
    }
    for (operation, event) in of_one(&world) {
        given.note(operation, 404, &send(&world, &event).await);
    }
    given.note("addMember", 201, &send(&world, &adding(&world, "member")).await);
    given.note("addMember", 409, &send(&world, &adding(&world, "viewer")).await);
    given.note("addMember", 422, &send(&world, &adding(&world, "boss")).await);
    given.note("addMember", 400, &send(&world, &asked(&world, "POST", "/members").text("{")).await);
    given.note("listMembers", 422, &send(&world, &asked(&world, "GET", "/members").query("cursor", "*")).await);
    given.note("listAuditEntries", 422, &send(&world, &asked(&world, "GET", "/audit").query("since", "soon")).await);
    let oneself = |method: &str| asked(&world, method, &format!("/members/{}", world.home.user_id));
    given.note("updateMember", 409, &send(&world, &oneself("PATCH").text(r#"{"role": "admin"}"#)).await);
    given.note("updateMember", 422, &send(&world, &oneself("PATCH").text(r#"{"role": "boss"}"#)).await);
    given.note("updateMember", 400, &send(&world, &oneself("PATCH").text("")).await);
    given.note("removeMember", 409, &send(&world, &oneself("DELETE")).await);
    given
}

async fn outages() -> Given {
    let mut given = Given::default();
    let world = World::start().await;
    for (operation, event) in all(&world) {
        world.aws.inject(Fault::throttled("Query", "organizations"));
        given.note(operation, 503, &send(&world, &event).await);
        world.aws.inject(Fault::new("Query", "organizations", Trouble::Error("ValidationException")));
        given.note(operation, 500, &send(&world, &event).await);
        assert_eq!(world.aws.faults_left(), 0, "{operation}");
    }
    given
}
