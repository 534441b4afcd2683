//! Automations against `docs/openapi.yaml`.

use std::thread::JoinHandle;

use serde_json::{Value, json};
use tests::{Answer, Event, Fault, Trouble, World, automation_event};

use super::{Given, NOBODY, part, specification::Document, text};

pub(crate) fn parts() -> [JoinHandle<Given>; 3] {
    [part(successes), part(refusals), part(outages)]
}

/// A request for each operation.
fn asked(world: &World, id: &str) -> Vec<(&'static str, Event)> {
    let definition = json!({"name": "Digest", "trigger_type": "manual", "prompt": "Sum up", "tools": []});
    let at = |path: &str| format!("/{id}{path}");
    [
        ("deployAutomation", "POST", String::new(), definition.clone()),
        ("listAutomations", "GET", String::new(), Value::Null),
        ("getAutomation", "GET", at(""), Value::Null),
        ("updateAutomation", "PUT", at(""), definition),
        ("listAutomationVersions", "GET", at("/versions"), Value::Null),
        ("getAutomationVersion", "GET", at("/versions/1"), Value::Null),
        ("diffAutomationVersions", "GET", at("/diff?from=1&to=2"), Value::Null),
        ("activateAutomation", "POST", at("/activate"), json!({"version": 2})),
        ("rollBackAutomation", "POST", at("/rollback"), json!({"version": 1})),
        ("pauseAutomation", "POST", at("/pause"), Value::Null),
        ("listAutomationMemory", "GET", at("/memory"), Value::Null),
        ("forgetAutomationMemory", "POST", at("/memory/forget"), json!({"key": "offer"})),
        ("deleteAutomation", "DELETE", at(""), Value::Null),
    ]
    .into_iter()
    .map(|(operation, method, path, body)| (operation, automation_event(&world.home, method, &path, &body)))
    .collect()
}

async fn send(world: &World, event: &Event) -> Answer {
    // Boxed: unoptimized, the futures of all functions are too large for a test's stack.
    Box::pin(world.send("deploy", event)).await
}

async fn successes() -> Given {
    let mut given = Given::default();
    let world = World::start().await;
    let document = Document::read();
    let mut id = String::new();
    for (_, body) in document.request_examples("deployAutomation") {
        let saved = world.deploy(&body).await;
        text(&saved.body["automation"]["id"]).clone_into(&mut id);
        given.note("deployAutomation", 201, &saved);
        given.note("deployAutomation", 200, &world.deploy(&body).await);
    }
    world.remembers_offer(&world.home, &id);
    for (operation, event) in asked(&world, &id) {
        let event = event.header("if-match", "*");
        let revision = world.aws.rows("automations")[0]["revision"].clone();
        let put = event.clone().header("if-match", &format!("\"{revision}\""));
        let answer = match operation {
            "deployAutomation" => continue,
            "updateAutomation" => send(&world, &put).await,
            _ => send(&world, &event).await,
        };
        let has_body = !["deleteAutomation", "forgetAutomationMemory"].contains(&operation);
        given.note(operation, if has_body { 200 } else { 204 }, &answer);
    }
    for accept in ["text/plain"] {
        let saving = |method: &str, path: &str, body: &Value| {
            automation_event(&world.home, method, path, body).header("accept", accept)
        };
        let one = json!({"name": "Text", "trigger_type": "manual", "prompt": "One", "tools": []});
        let two = json!({"name": "Text", "trigger_type": "manual", "prompt": "Two", "tools": []});
        given.note("deployAutomation", 201, &send(&world, &saving("POST", "", &one)).await);
        given.note("deployAutomation", 200, &send(&world, &saving("POST", "", &one)).await);
        let at = format!("/{}", text(&world.aws.rows("automations")[0]["id"]));
        let put = saving("PUT", &at, &two).header("if-match", "\"1\"");
        given.note("updateAutomation", 200, &send(&world, &put).await);
        for (operation, path, version) in
            [("activateAutomation", "/activate", 2), ("rollBackAutomation", "/rollback", 1)]
        {
            let event = saving("POST", &format!("{at}{path}"), &json!({"version": version}));
            given.note(operation, 200, &send(&world, &event).await);
        }
    }
    given
}

async fn refusals() -> Given {
    let mut given = Given::default();
    let world = World::start().await;
    world.slack_service();
    let saved = world.deploy(&world.urgent_messages()).await.expect(201);
    let id = text(&saved["automation"]["id"]).to_owned();
    for (operation, event) in asked(&world, NOBODY) {
        let nobody = Event { user: None, ..event.clone() };
        given.note(operation, 401, &send(&world, &nobody).await);
        given.note(operation, 404, &send(&world, &event.clone().user(&world.other.user_id)).await);
    }
    for (operation, event) in asked(&world, &id) {
        match operation {
            "deployAutomation" => {
                given.note(operation, 400, &send(&world, &event.clone().text("{")).await);
                given.note(operation, 422, &send(&world, &event.clone().text("{}")).await);
                let plain = event.text("{}").header("accept", "text/plain");
                assert_eq!(send(&world, &plain).await.status, 422);
            }
            "forgetAutomationMemory" => {
                world.remembers_offer(&world.home, &id);
                given.note(operation, 400, &send(&world, &event.clone().text("{")).await);
                given.note(operation, 422, &send(&world, &event.clone().text("{}")).await);
                let refused = Fault::new("TransactWriteItems", "automation_memory", Trouble::TransactionConflict);
                world.aws.inject(refused.times(99));
                given.note(operation, 409, &send(&world, &event).await);
                world.aws.clear_faults();
            }
            "listAutomations" | "listAutomationVersions" | "listAutomationMemory" => {
                given.note(operation, 422, &send(&world, &event.query("limit", "x")).await);
            }
            "diffAutomationVersions" => {
                let event = automation_event(&world.home, "GET", &format!("/{id}/diff?from=x"), &Value::Null);
                given.note(operation, 422, &send(&world, &event).await);
            }
            "updateAutomation" => {
                given.note(operation, 422, &send(&world, &event).await);
                let event = event.header("if-match", "\"1\"");
                given.note(operation, 400, &send(&world, &event.clone().text("{")).await);
                given.note(operation, 422, &send(&world, &event.clone().text("{}")).await);
                given.note(operation, 409, &send(&world, &event.header("if-match", "\"9\"")).await);
            }
            "activateAutomation" | "rollBackAutomation" => {
                given.note(operation, 400, &send(&world, &event.clone().text("{")).await);
                given.note(operation, 422, &send(&world, &event.clone().text("{}")).await);
                given.note(operation, 409, &send(&world, &event.header("if-match", "\"9\"")).await);
            }
            "pauseAutomation" | "deleteAutomation" => {
                given.note(operation, 409, &send(&world, &event.header("if-match", "\"9\"")).await);
            }
            _ => {}
        }
    }
    // A tool deactivated since then invalidates both versions.
    let mut second = world.urgent_messages();
    second["name"] = json!("Second");
    world.put_automation(&id, "\"1\"", &second).await.expect(200);
    let activate = async |path: &str, version: u64| {
        world.automation("POST", &format!("/{id}/{path}"), &json!({"version": version})).await
    };
    activate("activate", 2).await.expect(200);
    world.service_tool_with("Slack", "slack_post_message", &json!({"is_active": false}));
    given.note("activateAutomation", 422, &activate("activate", 2).await);
    given.note("rollBackAutomation", 422, &activate("rollback", 1).await);
    given
}

async fn outages() -> Given {
    let mut given = Given::default();
    let world = World::start().await;
    for (operation, event) in asked(&world, NOBODY) {
        world.aws.inject(Fault::throttled("Query", "organizations"));
        given.note(operation, 503, &send(&world, &event).await);
        world.aws.inject(Fault::new("Query", "organizations", Trouble::Error("ValidationException")));
        given.note(operation, 500, &send(&world, &event).await);
        assert_eq!(world.aws.faults_left(), 0, "{operation}");
    }
    given
}
