//! Organizations' own keys against `docs/openapi.yaml`.

use std::{thread::JoinHandle, time::Duration};

use futures_util::join;
use local::standins::Fault as Standin;
use serde_json::{Value, json};
use tests::{Answer, Event, Fault, OWN_KEYS, Trouble, World};

use super::{Given, part, specification::Document};

const LATE: u64 = 60_000;

fn event(world: &World, method: &str, path: &str, body: Option<&Value>) -> Event {
    let event = Event::new(method, &format!("/api/{}/keys{path}", world.home.slug)).user(&world.home.user_id);
    match body {
        Some(body) => event.text(body.to_string()),
        None => event,
    }
}

async fn send(world: &World, event: &Event) -> Answer {
    Box::pin(world.send("keys", event)).await
}

/// A world whose home organization may use any account, because it has nothing at VAPI.
async fn empty() -> World {
    let world = World::start().await;
    world.aws.delete("agents", &world.home.agent_id);
    world
}

/// A valid request for each operation.
fn asked(world: &World) -> [(&'static str, Event); 3] {
    let key = json!({"api_key": OWN_KEYS[0]});
    [
        ("listKeys", event(world, "GET", "", None)),
        ("storeKey", event(world, "PUT", "/vapi", Some(&key))),
        ("deleteKey", event(world, "DELETE", "/vapi", None)),
    ]
}

pub(crate) fn parts() -> [JoinHandle<Given>; 5] {
    [part(successes), part(refusals), part(conflicts), part(outages), part(a_vendor_fails)]
}

async fn successes() -> Given {
    let mut given = Given::default();
    let world = empty().await;
    given.note("listKeys", 200, &send(&world, &event(&world, "GET", "", None)).await);
    for (name, example) in Document::read().request_examples("storeKey") {
        let path = if name.starts_with("llm") { "/llm" } else { "/vapi" };
        given.note("storeKey", 200, &send(&world, &event(&world, "PUT", path, Some(&example))).await);
    }
    given.note("listKeys", 200, &send(&world, &event(&world, "GET", "", None)).await);
    for path in ["/vapi", "/llm"] {
        given.note("deleteKey", 200, &send(&world, &event(&world, "DELETE", path, None)).await);
        given.note("deleteKey", 404, &send(&world, &event(&world, "DELETE", path, None)).await);
    }
    given
}

async fn refusals() -> Given {
    let mut given = Given::default();
    let world = empty().await;
    for (operation, event) in asked(&world) {
        let mut nobody = event.clone();
        nobody.user = None;
        given.note(operation, 401, &send(&world, &nobody).await);
        given.note(operation, 404, &send(&world, &event.clone().user(&world.other.user_id)).await);
        if event.body.is_some() {
            for unreadable in ["", "{", "\u{0}"] {
                given.note(operation, 400, &send(&world, &event.clone().text(unreadable)).await);
            }
            for wrong in ["[]", "{}", "null", r#"{"api_key": "wrong"}"#, r#"{"api_key": 7, "model": "x"}"#] {
                given.note(operation, 422, &send(&world, &event.clone().text(wrong)).await);
            }
        }
        let mut unknown = event.clone();
        unknown.path = event.path.replace("/vapi", "/twilio");
        if unknown.path != event.path {
            given.note(operation, 404, &send(&world, &unknown).await);
        }
    }
    let home = &world.home;
    let row = json!({"user_id": home.user_id, "organization_id": home.organization_id, "role": "member"});
    world.aws.put("organization_members", &row);
    for (operation, event) in asked(&world) {
        given.note(operation, if operation == "listKeys" { 200 } else { 403 }, &send(&world, &event).await);
    }
    given
}

async fn conflicts() -> Given {
    let mut given = Given::default();
    let world = World::start().await;
    let [_, (store, storing), (delete, deleting)] = asked(&world);
    given.note(store, 409, &send(&world, &storing).await);
    world.own_key(&world.home, &json!({"api_key": OWN_KEYS[0]}));
    world.aws.change("agents", &world.home.agent_id, json!({"external_assistant_id": OWN_KEYS[0]}));
    given.note(delete, 409, &send(&world, &deleting).await);
    // Two changes of one row; each reads it before the other writes.
    world.aws.delete("agents", &world.home.agent_id);
    world.aws.slow_down(Duration::from_millis(400));
    let (one, two) = join!(send(&world, &storing), send(&world, &storing));
    let (won, lost) = if one.status == 200 { (one, two) } else { (two, one) };
    given.note(store, 200, &won);
    given.note(store, 409, &lost);
    given
}

async fn outages() -> Given {
    let mut given = Given::default();
    let mut world = empty().await;
    for (operation, event) in asked(&world) {
        world.aws.inject(Fault::throttled("Query", "organizations"));
        given.note(operation, 503, &send(&world, &event).await);
    }
    world.own_key(&world.home, &json!({"api_key": OWN_KEYS[0]}));
    world.restart();
    let [_, (store, storing), (delete, deleting)] = asked(&world);
    world.aws.inject(Fault::new("CreateSecret", "*", Trouble::Error("AccessDeniedException")));
    given.note(store, 502, &send(&world, &storing).await);
    world.aws.inject(Fault::new("GetSecretValue", "switchboard/vapi", Trouble::Error("AccessDeniedException")));
    given.note(delete, 502, &send(&world, &deleting).await);
    for (operation, event) in asked(&world) {
        world.aws.inject(Fault::new("Query", "organizations", Trouble::Error("ValidationException")));
        given.note(operation, 500, &send(&world, &event).await);
    }
    // An unreadable row, as if a newer version had written it.
    world.aws.put("organizations", &json!({"id": world.home.organization_id, "slug": world.home.slug}));
    for (operation, event) in asked(&world) {
        given.note(operation, 503, &send(&world, &event).await);
    }
    given
}

/// Every failure of VAPI.
async fn a_vendor_fails() -> Given {
    let mut given = Given::default();
    let world = World::start().await;
    world.own_key(&world.home, &json!({"api_key": OWN_KEYS[0]}));
    let [_, changes @ ..] = asked(&world);
    for (operation, event) in changes {
        for (fault, status) in [
            (Standin::status(500), 502),
            (Standin::body(json!("<html>")), 502),
            (Standin::status(429).with_header("Retry-After", "600"), 503),
        ] {
            world.vapi.inject(fault.times(20));
            given.note(operation, status, &send(&world, &event).await);
            world.vapi.clear_faults();
        }
        world.vapi.inject(Standin::delay(LATE).times(20));
        given.note(operation, 504, &send(&world, &event.within(Duration::from_secs(4))).await);
        world.vapi.clear_faults();
    }
    given
}
