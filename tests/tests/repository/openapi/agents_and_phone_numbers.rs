//! Agents, phone numbers and the do-not-call list against `docs/openapi.yaml`.

use std::{thread::JoinHandle, time::Duration};

use futures_util::join;
use local::standins::Fault as Standin;
use serde_json::{Value, json};
use tests::{Answer, Event, Fault, Options, Tenant, Trouble, World};

use super::{Given, part, specification::Document};

const NOBODY: &str = "00000000-0000-4000-8000-000000000000";
const LATE: u64 = 60_000;

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn event(tenant: &Tenant, method: &str, path: &str, body: Option<&Value>) -> Event {
    let event = Event::new(method, &format!("/api/{}/{path}", tenant.slug)).user(&tenant.user_id);
    match body {
        Some(body) => event.text(body.to_string()),
        None => event,
    }
}

async fn send(world: &World, event: &Event) -> Answer {
    let agents = event.path.split('/').nth(3) == Some("agents");
    let function = if agents { "agents" } else { "phone-numbers" };
    // Boxed: unoptimized, the futures of all functions are too large for a test's stack.
    Box::pin(world.send(function, event)).await
}

/// A tenant with the values of the document's examples.
fn exemplary(document: &Document) -> Tenant {
    let agent = &document.request_examples("registerAgent")["assistant"];
    let number = &document.request_examples("registerPhoneNumber")["number"];
    Tenant {
        agent_id: text(&number["agent_id"]).to_owned(),
        assistant_id: text(&agent["external_assistant_id"]).to_owned(),
        twilio_sid: text(&number["twilio"]["account_sid"]).to_owned(),
        twilio_token: text(&number["twilio"]["auth_token"]).to_owned(),
        ..Tenant::new("harbour-dental", text(&number["number"]))
    }
}

/// The world of [`exemplary`] without its number and, if `agent_too`, without its agent.
async fn unregistered(document: &Document, agent_too: bool) -> World {
    let world = World::with(Options { home: exemplary(document), ..Options::default() }).await;
    let home = &world.home;
    world.aws.delete("phone_numbers", &home.phone_number_id);
    world.aws.delete("phone_numbers", &format!("number#{}", home.phone_number));
    if agent_too {
        world.aws.delete("agents", &home.agent_id);
        world.aws.delete("agents", &format!("assistant#{}", home.assistant_id));
    }
    world
}

pub(crate) fn parts() -> [JoinHandle<Given>; 8] {
    [
        part(successes),
        part(refusals),
        part(collisions),
        part(outages),
        part(|| a_vendor_fails("registerAgent")),
        part(|| a_vendor_fails("deleteAgent")),
        part(|| a_vendor_fails("registerPhoneNumber")),
        part(|| a_vendor_fails("updatePhoneNumber")),
    ]
}

async fn successes() -> Given {
    let mut given = Given::default();
    let document = &Document::read();
    for (_, example) in document.request_examples("registerAgent") {
        let world = unregistered(document, true).await;
        let made = send(&world, &event(&world.home, "POST", "agents", Some(&example))).await;
        given.note("registerAgent", 201, &made);
        let again = send(&world, &event(&world.home, "POST", "agents", Some(&example))).await;
        given.note("registerAgent", 409, &again);
    }
    let world = unregistered(document, false).await;
    let home = &world.home;
    let number = document.request_examples("registerPhoneNumber")["number"].clone();
    let registering = event(home, "POST", "phone-numbers", Some(&number));
    let made = send(&world, &registering).await;
    given.note("registerPhoneNumber", 201, &made);
    given.note("registerPhoneNumber", 409, &send(&world, &registering).await);
    let path = format!("phone-numbers/{}", text(&made.body["id"]));
    for (_, example) in document.request_examples("updatePhoneNumber") {
        given.note("updatePhoneNumber", 200, &send(&world, &event(home, "PATCH", &path, Some(&example))).await);
    }
    given.note("getPhoneNumber", 200, &send(&world, &event(home, "GET", &path, None)).await);
    given.note("listPhoneNumbers", 200, &send(&world, &event(home, "GET", "phone-numbers", None)).await);

    let agent = format!("agents/{}", home.agent_id);
    given.note("getAgent", 200, &send(&world, &event(home, "GET", &agent, None)).await);
    given.note("listAgents", 200, &send(&world, &event(home, "GET", "agents", None)).await);
    let token = format!("agents/{}/voice-token", home.agent_id);
    given.note("issueVoiceToken", 201, &send(&world, &event(home, "POST", &token, None)).await);
    given.note("revokeVoiceToken", 200, &send(&world, &event(home, "DELETE", &token, None)).await);
    let ringing = json!({"agent_id": home.agent_id});
    given.note("updatePhoneNumber", 200, &send(&world, &event(home, "PATCH", &path, Some(&ringing))).await);
    given.note("deleteAgent", 409, &send(&world, &event(home, "DELETE", &agent, None)).await);
    given.note("deletePhoneNumber", 200, &send(&world, &event(home, "DELETE", &path, None)).await);
    given.note("deleteAgent", 200, &send(&world, &event(home, "DELETE", &agent, None)).await);

    for (_, example) in document.request_examples("addDoNotCall") {
        let listing = event(home, "POST", "do-not-call", Some(&example));
        given.note("addDoNotCall", 201, &send(&world, &listing).await);
        given.note("addDoNotCall", 200, &send(&world, &listing).await);
    }
    let listed = send(&world, &event(home, "GET", "do-not-call", None)).await;
    given.note("listDoNotCall", 200, &listed);
    let entry = format!("do-not-call/{}", text(&listed.body["items"][0]["id"]));
    given.note("removeDoNotCall", 200, &send(&world, &event(home, "DELETE", &entry, None)).await);
    given
}

/// A valid request for each operation on the seeded rows.
fn asked(world: &World) -> [(&'static str, Event); 14] {
    let home = &world.home;
    let number = json!({
        "number": home.phone_number, "label": "Main line",
        "twilio": {"account_sid": home.twilio_sid, "auth_token": home.twilio_token},
    });
    let assistant = json!({"external_assistant_id": home.assistant_id});
    let change = json!({"label": "Nights", "twilio": number["twilio"]});
    let agent = format!("agents/{}", home.agent_id);
    let row = format!("phone-numbers/{}", home.phone_number_id);
    [
        ("registerAgent", event(home, "POST", "agents", Some(&assistant))),
        ("listAgents", event(home, "GET", "agents", None)),
        ("getAgent", event(home, "GET", &agent, None)),
        ("deleteAgent", event(home, "DELETE", &agent, None)),
        ("issueVoiceToken", event(home, "POST", &format!("{agent}/voice-token"), None)),
        ("revokeVoiceToken", event(home, "DELETE", &format!("{agent}/voice-token"), None)),
        ("registerPhoneNumber", event(home, "POST", "phone-numbers", Some(&number))),
        ("listPhoneNumbers", event(home, "GET", "phone-numbers", None)),
        ("getPhoneNumber", event(home, "GET", &row, None)),
        ("updatePhoneNumber", event(home, "PATCH", &row, Some(&change))),
        ("deletePhoneNumber", event(home, "DELETE", &row, None)),
        ("addDoNotCall", event(home, "POST", "do-not-call", Some(&json!({"phone_number": "+14155550101"})))),
        ("listDoNotCall", event(home, "GET", "do-not-call", None)),
        ("removeDoNotCall", event(home, "DELETE", &format!("do-not-call/{NOBODY}"), None)),
    ]
}

async fn refusals() -> Given {
    let mut given = Given::default();
    let world = World::start().await;
    for (operation, event) in asked(&world) {
        let mut nobody = event.clone();
        nobody.user = None;
        given.note(operation, 401, &send(&world, &nobody).await);
        given.note(operation, 404, &send(&world, &event.clone().user(&world.other.user_id)).await);
        if event.body.is_some() {
            for unreadable in ["", "{", "\u{0}"] {
                given.note(operation, 400, &send(&world, &event.clone().text(unreadable)).await);
            }
            for wrong in ["[]", "{}", "null", r#"{"number": 7, "label": 5, "external_assistant_id": "x"}"#] {
                given.note(operation, 422, &send(&world, &event.clone().text(wrong)).await);
            }
        }
        for id in [&world.home.agent_id, &world.home.phone_number_id] {
            if event.path.ends_with(id.as_str()) {
                for other in [NOBODY, "no-id"] {
                    let mut gone = event.clone();
                    gone.path = event.path.replace(id.as_str(), other);
                    given.note(operation, 404, &send(&world, &gone).await);
                }
            }
        }
        if operation == "removeDoNotCall" {
            given.note(operation, 404, &send(&world, &event).await);
        }
        if operation.starts_with("list") {
            given.note(operation, 422, &send(&world, &event.clone().query("limit", "0")).await);
            given.note(operation, 422, &send(&world, &event.clone().query("cursor", "x")).await);
        }
    }
    given
}

/// Two changes of one row; each reads it before the other writes.
async fn collisions() -> Given {
    let mut given = Given::default();
    let world = World::start().await;
    world.aws.slow_down(Duration::from_millis(400));
    let row = format!("phone-numbers/{}", world.home.phone_number_id);
    let (label, agent) = (json!({"label": "Nights"}), json!({"agent_id": null}));
    let [one, two] = [event(&world.home, "PATCH", &row, Some(&label)), event(&world.home, "PATCH", &row, Some(&label))];
    let (one, two) = join!(send(&world, &one), send(&world, &two));
    let (won, lost) = if one.status == 200 { (one, two) } else { (two, one) };
    given.note("updatePhoneNumber", 200, &won);
    given.note("updatePhoneNumber", 409, &lost);
    // Both have read the row; the change writes first.
    let [change, removal] = [event(&world.home, "PATCH", &row, Some(&agent)), event(&world.home, "DELETE", &row, None)];
    world.aws.inject(Fault::new("DeleteSecret", "*", Trouble::Error("ThrottlingException")).times(2));
    let (change, removal) = join!(send(&world, &change), send(&world, &removal));
    given.note("updatePhoneNumber", 200, &change);
    given.note("deletePhoneNumber", 409, &removal);
    given
}

async fn outages() -> Given {
    let mut given = Given::default();
    let world = World::start().await;
    for (operation, event) in asked(&world) {
        world.aws.inject(Fault::throttled("Query", "organizations"));
        given.note(operation, 503, &send(&world, &event).await);
    }
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

/// Every failure of the service that an operation uses.
async fn a_vendor_fails(operation: &'static str) -> Given {
    let mut given = Given::default();
    let world = World::start().await;
    world.attached(&tests::ai_sms()).await;
    world.aws.change("phone_numbers", &world.home.phone_number_id, json!({"agent_id": null}));
    let (_, event) = asked(&world).into_iter().find(|(name, _)| *name == operation).unwrap();
    let fail = |fault: Standin| {
        world.vapi.clear_faults();
        world.twilio.clear_faults();
        world.vapi.inject(fault.clone().times(20));
        world.twilio.inject(fault.times(20));
    };
    for (fault, status) in [
        (Standin::status(500), 502),
        (Standin::body(json!("<html>")), 502),
        (Standin::status(429).with_header("Retry-After", "600"), 503),
    ] {
        fail(fault);
        given.note(operation, status, &send(&world, &event).await);
    }
    fail(Standin::delay(LATE));
    given.note(operation, 504, &send(&world, &event.within(Duration::from_secs(7))).await);
    given
}
