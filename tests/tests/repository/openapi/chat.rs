//! Conversations with the planner against `docs/openapi.yaml`.

use std::{thread::JoinHandle, time::Duration};

use serde_json::{Value, json};
use tests::{
    Answer, Event, Fault, Trouble, World, sms_without_call,
    standins::{Fault as Standin, llm::Turn},
};

use super::{Given, LATE, part, specification::Document, text};

pub(crate) fn parts() -> [JoinHandle<Given>; 4] {
    [part(successes), part(refusals), part(outages), part(the_model_fails)]
}

fn event(world: &World, method: &str, path: &str, body: &Value) -> Event {
    let event = if body.is_null() { Event::new(method, path) } else { Event::post(path, body) };
    event.user(&world.home.user_id)
}

async fn send(world: &World, event: &Event) -> Answer {
    // Boxed: unoptimized, the futures of all functions are too large for a test's stack.
    Box::pin(world.send("chat", event)).await
}

fn saying(world: &World, body: &Value) -> Event {
    event(world, "POST", "/agent/chat", body)
}

fn acting(world: &World, body: &Value) -> Event {
    event(world, "POST", "/copilotkit/action", body)
}

/// A request for each operation.
fn asked(world: &World) -> [(&'static str, Event); 5] {
    [
        ("chat", saying(world, &json!({"message": "Hello"}))),
        ("copilotKitAction", acting(world, &json!({"action": "chat", "message": "Hello"}))),
        ("listThreads", event(world, "GET", "/agent/threads", &Value::Null)),
        ("getThread", event(world, "GET", "/agent/threads/default", &Value::Null)),
        ("deleteThread", event(world, "DELETE", "/agent/threads/default", &Value::Null)),
    ]
}

fn none() -> [Turn; 2] {
    [Turn::text(r#"{"tool": "none"}"#), Turn::text("Hello!")]
}

async fn successes() -> Given {
    let mut given = Given::default();
    let world = World::start().await;
    for (_, body) in Document::read().request_examples("chat") {
        world.llm.script(none());
        given.note("chat", 200, &send(&world, &saying(&world, &body)).await);
    }
    for (_, body) in Document::read().request_examples("copilotKitAction") {
        world.llm.script(none());
        given.note("copilotKitAction", 200, &send(&world, &acting(&world, &body)).await);
    }
    // A message that waits for consent, and the consent.
    let mut config = sms_without_call(&world.home);
    config["chat"] = json!({"consent": true});
    world.tool(&config).await;
    world.llm.script([Turn::text(r#"{"tool": "send_confirmation", "arguments": {"text": "Hi"}}"#)]);
    let waits = send(&world, &saying(&world, &json!({"message": "Send Hi"}))).await;
    given.note("chat", 200, &waits);
    given.note("getThread", 200, &send(&world, &asked(&world)[3].1).await);
    let id = &waits.body["metadata"]["pending_action"]["id"];
    let consent = json!({"metadata": {"consent": {"id": id, "approved": true}}});
    world.llm.script([Turn::text("I have sent it.")]);
    given.note("chat", 200, &send(&world, &saying(&world, &consent)).await);
    let refused = json!({"metadata": {"consent": {"id": id, "approved": false}}});
    given.note("chat", 409, &send(&world, &saying(&world, &refused)).await);
    let of_action = json!({"action": "chat", "metadata": {"consent": {"id": "x", "approved": false}}});
    given.note("copilotKitAction", 409, &send(&world, &acting(&world, &of_action)).await);
    given.note("listThreads", 200, &send(&world, &asked(&world)[2].1).await);
    given.note("getThread", 200, &send(&world, &asked(&world)[3].1).await);
    let deletion = asked(&world)[4].1.clone();
    let thread = world.aws.rows("threads").into_iter().find(|item| item["name"] == "default").unwrap();
    let mut held = thread.clone();
    held["lease_token"] = json!("somebody-else");
    held["lease_until"] = json!(9_999_999_999_999_u64);
    world.aws.put("threads", &held);
    given.note("deleteThread", 409, &send(&world, &deletion).await);
    world.aws.put("threads", &thread);
    given.note("deleteThread", 204, &send(&world, &deletion).await);
    given.note("deleteThread", 404, &send(&world, &deletion).await);
    given.note("getThread", 404, &send(&world, &asked(&world)[3].1).await);
    given
}

async fn refusals() -> Given {
    let mut given = Given::default();
    let world = World::start().await;
    for (operation, event) in asked(&world) {
        let nobody = Event { user: None, ..event.clone() };
        given.note(operation, 401, &send(&world, &nobody).await);
        given.note(operation, 404, &send(&world, &event.clone().user("user|nobody")).await);
        given.note(operation, 404, &send(&world, &event.clone().header("x-organization", &world.other.slug)).await);
    }
    for (operation, event) in &asked(&world)[..2] {
        given.note(operation, 400, &send(&world, &event.clone().text("{")).await);
    }
    given.note("copilotKitAction", 400, &send(&world, &acting(&world, &json!({"action": "dance"}))).await);
    given.note("copilotKitAction", 422, &send(&world, &acting(&world, &json!({"action": "chat"}))).await);
    for (operation, event) in &asked(&world)[2..4] {
        let event = event.clone().query("limit", "0");
        if *operation == "getThread" {
            world.llm.script(none());
            world.chat("Hi").await.expect(200);
        }
        given.note(operation, 422, &send(&world, &event).await);
    }
    // The handler accepts exactly the document's bodies.
    let validator = Document::read().validator(&json!({"$ref": "#/components/schemas/ChatRequest"}));
    for (body, right) in [
        (json!({"message": "x"}), true),
        (json!({"message": "x", "thread_id": null, "metadata": null}), true),
        (json!({"message": "x", "metadata": {"consent": null, "page": 1}}), true),
        (json!({}), false),
        (json!({"message": ""}), false),
        (json!({"message": " "}), false),
        (json!({"message": 7}), false),
        (json!({"message": null}), false),
        (json!({"message": "x", "thread_id": 7}), false),
        (json!({"message": "x", "thread_id": "t".repeat(201)}), false),
        (json!({"message": "x", "metadata": 1}), false),
        (json!({"message": "x", "metadata": {"consent": {"id": "x"}}}), false),
        (json!({"message": "x", "user_id": "x"}), false),
    ] {
        world.llm.script(none());
        given.note("chat", if right { 200 } else { 422 }, &send(&world, &saying(&world, &body)).await);
        assert_eq!(validator.is_valid(&body), right, "{body}");
    }
    let row = json!({"user_id": world.home.user_id, "organization_id": world.other.organization_id, "role": "owner"});
    world.aws.put("organization_members", &row);
    for (operation, event) in asked(&world) {
        given.note(operation, 400, &send(&world, &event).await);
    }
    world.aws.change(
        "organizations",
        &world.home.organization_id,
        json!({"budgets": {"platform_cost_per_month": 0.0}}),
    );
    for (operation, event) in &asked(&world)[..2] {
        let event = event.clone().header("x-organization", &world.home.slug);
        let over = send(&world, &event).await;
        assert_eq!(text(&over.body["code"]), "over_budget");
        given.note(operation, 429, &over);
    }
    given
}

async fn outages() -> Given {
    let mut given = Given::default();
    let world = World::start().await;
    for (operation, event) in asked(&world) {
        world.aws.inject(Fault::throttled("Query", "organization_members"));
        given.note(operation, 503, &send(&world, &event).await);
        world.aws.inject(Fault::new("Query", "organization_members", Trouble::Error("ValidationException")));
        given.note(operation, 500, &send(&world, &event).await);
        assert_eq!(world.aws.faults_left(), 0, "{operation}");
    }
    given
}

async fn the_model_fails() -> Given {
    let mut given = Given::default();
    let world = World::start().await;
    for (operation, event) in &asked(&world)[..2] {
        for (fault, seconds, status) in [(Standin::status(402), 60, 502), (Standin::delay(LATE), 5, 504)] {
            world.llm.inject(fault.times(9));
            let answer = send(&world, &event.clone().within(Duration::from_secs(seconds))).await;
            given.note(operation, status, &answer);
            world.llm.clear_faults();
        }
    }
    given
}
