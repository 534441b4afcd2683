//! The streamed chat against `docs/openapi.yaml`, up to the head; other tests cover its events.

use std::{thread::JoinHandle, time::Duration};

use serde_json::{Value, json};
use tests::{Answer, Event, Fault, Trouble, World, run_input, standins::llm::Turn};

use super::{Given, part, specification::Document, text};

pub(crate) fn parts() -> [JoinHandle<Given>; 3] {
    [part(successes), part(refusals), part(outages)]
}

async fn send(world: &World, event: &Event) -> Answer {
    Box::pin(world.send("stream", event)).await
}

const AGENT: &str = "/copilotkit/agent/default";

/// A request for each operation.
fn asked(world: &World) -> [(&'static str, Event); 7] {
    let event = |path: &str, body: &Value| world.stream_event(&world.home.user_id, path, body);
    let run = run_input("main", "u1", "Hello");
    let call = json!({"method": "agent/run", "params": {"agentId": "default"}, "body": run});
    [
        ("chatStream", event("/agent/stream", &json!({"message": "Hello"}))),
        ("agUiRun", event("/copilotkit/stream", &run)),
        ("copilotKitRun", event(&format!("{AGENT}/run"), &run)),
        ("copilotKitCall", event("/copilotkit", &call)),
        ("copilotKitConnect", event(&format!("{AGENT}/connect"), &run)),
        ("copilotKitStop", event(&format!("{AGENT}/stop/main"), &json!({}))),
        ("copilotKitInfo", event("/copilotkit/info", &Value::Null)),
    ]
}

fn none() -> [Turn; 2] {
    [Turn::text(r#"{"tool": "none"}"#), Turn::text("Hello!")]
}

async fn successes() -> Given {
    let mut given = Given::default();
    let world = World::start().await;
    let document = Document::read();
    for (operation, event) in asked(&world) {
        world.llm.script(none());
        given.note(operation, 200, &send(&world, &event).await);
        if operation == "copilotKitInfo" {
            continue;
        }
        for (_, body) in document.request_examples(operation) {
            world.llm.script(none());
            let mut event = event.clone();
            event.body = Some(body.to_string());
            given.note(operation, 200, &send(&world, &event).await);
        }
    }
    // The handler accepts exactly the document's bodies.
    let validator = document.validator(&json!({"$ref": "#/components/schemas/RunAgentInput"}));
    for (changes, right) in [
        (json!({}), true),
        (json!({"runId": null, "tools": null, "resume": null}), true),
        (json!({"tools": [{"name": "show", "parameters": {"type": "object"}}]}), true),
        (json!({"threadId": null}), false),
        (json!({"threadId": "t".repeat(201)}), false),
        (json!({"runId": 7}), false),
        (json!({"messages": {}}), false),
        (json!({"tools": [{"name": "a b"}]}), false),
        (json!({"tools": [{"description": "x"}]}), false),
        (json!({"tools": [{"name": "show", "parameters": 7}]}), false),
        (json!({"resume": [{"interruptId": "x", "status": "done"}]}), false),
        (json!({"resume": [{"status": "cancelled"}]}), false),
    ] {
        let mut input = run_input("main", &format!("m {changes}"), "Hello");
        for (name, value) in changes.as_object().unwrap() {
            input[name.as_str()] = value.clone();
        }
        assert_eq!(validator.is_valid(&input), right, "{input}");
        world.llm.script(none());
        let event = world.stream_event(&world.home.user_id, "/copilotkit/stream", &input);
        given.note("agUiRun", if right { 200 } else { 422 }, &send(&world, &event).await);
    }
    given
}

async fn refusals() -> Given {
    let mut given = Given::default();
    let world = World::start().await;
    let viewer = world.member(&world.home, Some("viewer"));
    let bearer = |user: &str| format!("Bearer {}", world.issuer.token(user));
    for (operation, event) in asked(&world) {
        given.note(operation, 401, &send(&world, &event.clone().header("authorization", "")).await);
        given.note(operation, 401, &send(&world, &event.clone().header("authorization", "Bearer x")).await);
        given.note(operation, 403, &send(&world, &event.clone().header("authorization", &bearer(&viewer))).await);
        given.note(operation, 404, &send(&world, &event.clone().header("authorization", &bearer("user|nobody"))).await);
        given.note(operation, 404, &send(&world, &event.clone().header("x-organization", &world.other.slug)).await);
        if !["copilotKitStop", "copilotKitInfo"].contains(&operation) {
            given.note(operation, 400, &send(&world, &event.clone().text("{")).await);
        }
    }
    for (operation, event) in &asked(&world)[..5] {
        let body = if *operation == "copilotKitCall" { r#"{"method": "agent/run", "body": {}}"# } else { "{}" };
        given.note(operation, 422, &send(&world, &event.clone().text(body)).await);
    }
    for (operation, event) in asked(&world) {
        if event.path.starts_with(AGENT) {
            let path = event.path.replace("default", "other");
            given.note(operation, 404, &send(&world, &Event { path, ..event }).await);
        }
    }
    let call = |body: &Value| world.stream_event(&world.home.user_id, "/copilotkit", body);
    let other = json!({"method": "agent/run", "params": {"agentId": "other"}});
    given.note("copilotKitCall", 404, &send(&world, &call(&other)).await);
    given.note("copilotKitCall", 400, &send(&world, &call(&json!({"method": "dance"}))).await);

    // The thread has a turn in progress.
    world.llm.script(none());
    send(&world, &asked(&world)[1].1).await;
    world.llm.script(none());
    send(&world, &asked(&world)[0].1).await;
    for mut row in world.aws.rows("threads").into_iter().filter(|row| row["part"] == "thread") {
        row["lease_token"] = json!("somebody-else");
        row["lease_until"] = json!(9_999_999_999_999_u64);
        world.aws.put("threads", &row);
    }
    for (operation, event) in &asked(&world)[..4] {
        let event = event.clone().within(Duration::from_secs(8));
        given.note(operation, 409, &send(&world, &event).await);
    }

    let row = json!({"user_id": world.home.user_id, "organization_id": world.other.organization_id, "role": "owner"});
    world.aws.put("organization_members", &row);
    for (operation, event) in asked(&world) {
        given.note(operation, 400, &send(&world, &event).await);
    }
    let none_left = json!({"budgets": {"platform_cost_per_month": 0.0}});
    world.aws.change("organizations", &world.home.organization_id, none_left);
    for (operation, event) in &asked(&world)[..4] {
        let over = send(&world, &event.clone().header("x-organization", &world.home.slug)).await;
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
