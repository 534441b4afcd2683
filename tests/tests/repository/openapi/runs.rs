//! Runs of automations against `docs/openapi.yaml`.

use std::thread::JoinHandle;

use serde_json::{Value, json};
use tests::{Answer, Event, Fault, Trouble, World, sms_without_call, standins::llm::Turn};

use super::{Given, part, specification::Document, text};

const NOBODY: &str = "00000000-0000-4000-8000-000000000000";

pub(crate) fn parts() -> [JoinHandle<Given>; 3] {
    [part(successes), part(refusals), part(outages)]
}

fn event(world: &World, method: &str, path: &str) -> Event {
    Event::new(method, &format!("/api/{}/runs{path}", world.home.slug)).user(&world.home.user_id)
}

fn starting(world: &World, body: &Value) -> Event {
    event(world, "POST", "").text(body.to_string())
}

async fn send(world: &World, event: &Event) -> Answer {
    // Boxed: unoptimized, the futures of all functions are too large for a test's stack.
    Box::pin(world.send("runs", event)).await
}

fn retrying(world: &World, id: &str, body: &Value) -> Event {
    event(world, "POST", &format!("/{id}/retry")).text(body.to_string())
}

/// A request for each operation on the run of this id.
fn asked(world: &World, id: &str) -> [(&'static str, Event); 5] {
    [
        ("startRun", starting(world, &json!({"prompt": "Hello"}))),
        ("listRuns", event(world, "GET", "")),
        ("getRun", event(world, "GET", &format!("/{id}"))),
        ("cancelRun", event(world, "POST", &format!("/{id}/cancel"))),
        ("retryRun", retrying(world, id, &json!({}))),
    ]
}

async fn successes() -> Given {
    let mut given = Given::default();
    let world = World::start().await;
    for (name, body) in Document::read().request_examples("startRun") {
        for tool in body["tools"].as_array().into_iter().flatten() {
            let mut row = world.tool(&sms_without_call(&world.home)).await;
            row["id"] = tool.clone();
            world.aws.put("tools", &row);
        }
        let started = send(&world, &starting(&world, &body).header("idempotency-key", &name)).await;
        given.note("startRun", 202, &started);
        given.note("startRun", 200, &send(&world, &starting(&world, &body).header("idempotency-key", &name)).await);
        given.note("getRun", 200, &world.run(text(&started.body["id"])).await);
        let cancelled = world.cancel_run(text(&started.body["id"])).await;
        assert_eq!(cancelled.body["status"], "cancelled");
        given.note("cancelRun", 200, &cancelled);
    }
    // A run with every part of a step: a successful call, wrong ones, a reminder, a repair, a result.
    let fields = json!([{"name": "city", "type": "text"}]);
    let base = world.knowledge_base(&fields, &json!([{"city": "Porto"}])).await;
    let tool = world.tool(&json!({"type": "query", "label": "Find", "knowledge_base_id": base["id"]})).await;
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    let body = json!({"prompt": "Which city?", "tools": [tool["id"], {"built_in": "wget", "allowed_hosts": ["a.example"]}], "schema": schema});
    let run = send(&world, &starting(&world, &body)).await.expect(202);
    let block = |lines: &str| Turn::text(&format!("````tool\n{lines}\n````"));
    world.llm.script([
        Turn::text("Let me think."),
        block("return find(\"Porto\");\nreturn find(1);\nreturn nothing();\nreturn find(porto);"),
        block("return finalResponse();"),
        Turn::text("{}"),
        Turn::text("{\"city\": \"Porto\"}"),
    ]);
    assert_eq!(world.run_loop(std::time::Duration::from_secs(60)).await, 0);
    let shown = world.run(text(&run["id"])).await;
    assert_eq!((&shown.body["status"], &shown.body["result"]), (&json!("completed"), &json!({"city": "Porto"})));
    let calls: Vec<&Value> =
        shown.body["steps"][1]["calls"].as_array().unwrap().iter().map(|it| &it["outcome"]).collect();
    assert_eq!(calls, ["succeeded", "invalid", "unknown", "invalid"], "{:#}", shown.body);
    given.note("getRun", 200, &shown);
    let page = world.runs("?limit=2").await;
    given.note("listRuns", 200, &page);
    given.note("listRuns", 200, &world.runs(&format!("?cursor={}", text(&page.body["next_cursor"]))).await);
    given.note("cancelRun", 409, &world.cancel_run(text(&run["id"])).await);
    given.note("retryRun", 409, &send(&world, &retrying(&world, text(&run["id"]), &json!({}))).await);
    let failed = world.failed_run().await.id.to_string();
    given.note("retryRun", 200, &send(&world, &retrying(&world, &failed, &json!({"version": "same"}))).await);
    for status in [202, 200] {
        let start = retrying(&world, &failed, &json!({"dry_run": false, "version": "active", "confirm_unknown": []}));
        given.note("retryRun", status, &send(&world, &start).await);
    }
    given
}

async fn refusals() -> Given {
    let mut given = Given::default();
    let world = World::start().await;
    let run = world.start_run(&json!({"prompt": "Hello"})).await.expect(202);
    for (operation, event) in asked(&world, text(&run["id"])) {
        let nobody = Event { user: None, ..event.clone() };
        given.note(operation, 401, &send(&world, &nobody).await);
        given.note(operation, 404, &send(&world, &event.clone().user(&world.other.user_id)).await);
    }
    for (operation, event) in asked(&world, NOBODY).into_iter().skip(2) {
        given.note(operation, 404, &send(&world, &event).await);
    }
    for query in ["?limit=0", "?limit=201", "?cursor=x"] {
        given.note("listRuns", 422, &world.runs(query).await);
    }
    for unreadable in ["", "{", "\u{0}"] {
        given.note("startRun", 400, &send(&world, &event(&world, "POST", "").text(unreadable)).await);
    }
    let failed = world.failed_run().await.id.to_string();
    for unreadable in ["{", "\u{0}"] {
        let retry = event(&world, "POST", &format!("/{failed}/retry")).text(unreadable);
        given.note("retryRun", 400, &send(&world, &retry).await);
    }
    for wrong in [json!({"version": 1}), json!({"dry_run": false, "confirm_unknown": ["sort"]}), json!([])] {
        given.note("retryRun", 422, &send(&world, &retrying(&world, &failed, &wrong)).await);
    }
    let hello = starting(&world, &json!({"prompt": "Hello"}));
    given.note("startRun", 422, &send(&world, &hello.clone().header("idempotency-key", "")).await);
    given.note("startRun", 202, &send(&world, &hello.header("idempotency-key", "one")).await);
    let goodbye = starting(&world, &json!({"prompt": "Goodbye"}));
    given.note("startRun", 409, &send(&world, &goodbye.header("idempotency-key", "one")).await);

    // The handler accepts exactly the document's bodies.
    let validator = Document::read().validator(&json!({"$ref": "#/components/schemas/NewRun"}));
    for (body, right) in [
        (json!({"prompt": "x"}), true),
        (
            json!({"prompt": "x", "system_prompt": null, "tools": null, "schema": null, "model": null, "limits": null}),
            true,
        ),
        (json!({"prompt": "x", "tools": ["wget"], "schema": true, "limits": {}}), true),
        (json!({"prompt": "x", "limits": {"iterations": 100, "cost": 0.001, "seconds": null}}), true),
        (json!({}), false),
        (json!({"prompt": null}), false),
        (json!({"prompt": ""}), false),
        (json!({"prompt": 7}), false),
        (json!([]), false),
        (json!({"prompt": "x", "tools": [{"built_in": "wget", "allowed_hosts": ["a.example"]}]}), true),
        (json!({"prompt": "x", "tools": [{"built_in": "wget", "allowed_hosts": null}]}), true),
        (json!({"prompt": "x", "tools": [{"built_in": "wget", "allowed_hosts": []}]}), false),
        (json!({"prompt": "x", "tools": [{"built_in": "wget", "hosts": ["a.example"]}]}), false),
        (json!({"prompt": "x", "tools": [{"allowed_hosts": ["a.example"]}]}), false),
        (json!({"prompt": "x", "tools": "wget"}), false),
        (json!({"prompt": "x", "tools": [7]}), false),
        (json!({"prompt": "x", "tools": ["wget", "wget"]}), false),
        (json!({"prompt": "x", "schema": "object"}), false),
        (json!({"prompt": "x", "limits": {"iterations": 0}}), false),
        (json!({"prompt": "x", "limits": {"cost": 0}}), false),
        (json!({"prompt": "x", "limits": {"cost": 100.5}}), false),
        (json!({"prompt": "x", "limits": {"days": 1}}), false),
        (json!({"prompt": "x", "stream": true}), false),
    ] {
        let answer = send(&world, &starting(&world, &body)).await;
        given.note("startRun", if right { 202 } else { 422 }, &answer);
        assert_eq!(validator.is_valid(&body), right, "{body}");
    }
    given
}

async fn outages() -> Given {
    let mut given = Given::default();
    let world = World::start().await;
    let run = world.start_run(&json!({"prompt": "Hello"})).await.expect(202);
    for (operation, event) in asked(&world, text(&run["id"])) {
        world.aws.inject(Fault::throttled("Query", "organizations"));
        given.note(operation, 503, &send(&world, &event).await);
        assert_eq!(world.aws.faults_left(), 0, "{operation}");
    }
    world.aws.inject(Fault::new("SendMessage", "runs", Trouble::Error("ServiceUnavailable")).times(3));
    given.note("startRun", 503, &world.start_run(&json!({"prompt": "Hello"})).await);
    for (operation, event) in asked(&world, text(&run["id"])) {
        world.aws.inject(Fault::new("Query", "organizations", Trouble::Error("ValidationException")));
        given.note(operation, 500, &send(&world, &event).await);
    }
    // An unreadable row, as if a newer version had written it.
    world.aws.put("organizations", &json!({"id": world.home.organization_id, "slug": world.home.slug}));
    for (operation, event) in asked(&world, text(&run["id"])) {
        given.note(operation, 503, &send(&world, &event).await);
    }
    given
}
