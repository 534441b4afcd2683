//! Hooks and events against `docs/openapi.yaml`.

use std::{thread::JoinHandle, time::Duration};

use futures_util::join;
use serde_json::{Value, json};
use tests::{Answer, Event, Fault, SLACK_SECRET, Trouble, World, slack_message, webhooks::Signer};

use super::{Given, asked, part, specification::Document, text};

pub(crate) fn parts() -> [JoinHandle<Given>; 5] {
    [part(successes), part(refusals), part(outages), part(inbound), part(secrets_fail)]
}

async fn send(world: &World, function: &str, event: &Event) -> Answer {
    Box::pin(world.send(function, event)).await
}

/// A world with a hook and its event; returns both ids.
async fn world() -> (World, String, String) {
    let world = World::start().await;
    let hook = Box::pin(world.slack_hook()).await;
    Box::pin(world.slack_says(&hook, "Ev1", "Hello")).await.expect(200);
    let event = text(&world.aws.rows("events")[0]["id"]).to_owned();
    (world, text(&hook["id"]).to_owned(), event)
}

/// A valid request for each dashboard operation; deletions come last.
fn dashboard(world: &World, hook: &str, event: &str) -> [(&'static str, Event); 7] {
    let one = format!("/hooks/{hook}");
    [
        ("listHooks", asked(world, "GET", "/hooks")),
        ("createHook", asked(world, "POST", "/hooks").text(r#"{"service": "Webhooks"}"#)),
        ("getHook", asked(world, "GET", &one)),
        ("updateHook", asked(world, "PATCH", &one).text(r#"{"label": "Ours"}"#)),
        ("listEvents", asked(world, "GET", "/events")),
        ("getEvent", asked(world, "GET", &format!("/events/{event}"))),
        ("deleteHook", asked(world, "DELETE", &one)),
    ]
}

async fn successes() -> Given {
    let mut given = Given::default();
    let (world, hook, event) = world().await;
    for (_, body) in Document::read().request_examples("createHook") {
        let creating = asked(&world, "POST", "/hooks").text(body.to_string());
        given.note("createHook", 201, &send(&world, "hooks", &creating).await);
        if body["tenant"].is_string() {
            given.note("createHook", 409, &send(&world, "hooks", &creating).await);
        }
    }
    let automation = uuid::Uuid::now_v7().to_string();
    let bound = Box::pin(world.pipedream_hook(&automation, "whsk_1")).await;
    let bound = text(&bound["id"]).to_owned();
    for (operation, event) in dashboard(&world, &bound, &event) {
        match operation {
            "updateHook" | "deleteHook" => given.note(operation, 409, &send(&world, "hooks", &event).await),
            _ => {}
        }
    }
    for (operation, event) in dashboard(&world, &hook, &event) {
        let status = if operation == "createHook" { 201 } else { 200 };
        given.note(operation, status, &send(&world, "hooks", &event).await);
    }
    given.note(
        "listEvents",
        200,
        &send(&world, "hooks", &asked(&world, "GET", "/events").query("matched", "false")).await,
    );
    given
}

async fn refusals() -> Given {
    let mut given = Given::default();
    let (world, hook, event) = world().await;
    for (operation, event) in dashboard(&world, &hook, &event) {
        let mut nobody = event.clone();
        nobody.user = None;
        given.note(operation, 401, &send(&world, "hooks", &nobody).await);
        given.note(operation, 404, &send(&world, "hooks", &event.clone().user(&world.other.user_id)).await);
        if event.body.is_some() {
            for unreadable in ["", "{"] {
                given.note(operation, 400, &send(&world, "hooks", &event.clone().text(unreadable)).await);
            }
            for wrong in ["[]", r#"{"service": 7, "label": []}"#] {
                given.note(operation, 422, &send(&world, "hooks", &event.clone().text(wrong)).await);
            }
        }
        if operation.starts_with("list") {
            given.note(operation, 422, &send(&world, "hooks", &event.clone().query("limit", "0")).await);
        }
    }
    let nobodys = uuid::Uuid::now_v7().to_string();
    for (operation, event) in dashboard(&world, &nobodys, &nobodys) {
        if !operation.starts_with("list") && operation != "createHook" {
            given.note(operation, 404, &send(&world, "hooks", &event).await);
        }
    }
    // Two changes of one row; each reads it before the other writes.
    world.aws.slow_down(Duration::from_millis(400));
    let changing = asked(&world, "PATCH", &format!("/hooks/{hook}")).text(r#"{"label": "x"}"#);
    let (one, two) = join!(send(&world, "hooks", &changing), send(&world, "hooks", &changing));
    let (won, lost) = if one.status == 200 { (one, two) } else { (two, one) };
    given.note("updateHook", 200, &won);
    given.note("updateHook", 409, &lost);
    given
}

async fn outages() -> Given {
    let mut given = Given::default();
    let (world, hook, event) = world().await;
    for (operation, event) in dashboard(&world, &hook, &event) {
        world.aws.inject(Fault::throttled("Query", "organizations"));
        given.note(operation, 503, &send(&world, "hooks", &event).await);
        world.aws.inject(Fault::new("Query", "organizations", Trouble::Error("ValidationException")));
        given.note(operation, 500, &send(&world, "hooks", &event).await);
    }
    given
}

async fn secrets_fail() -> Given {
    let mut given = Given::default();
    let (world, hook, _) = world().await;
    for (operation, event) in [
        ("createHook", asked(&world, "POST", "/hooks").text(r#"{"service": "Webhooks"}"#)),
        ("updateHook", asked(&world, "PATCH", &format!("/hooks/{hook}")).text(r#"{"secret": "next"}"#)),
    ] {
        world.aws.inject(Fault::new("CreateSecret", "*", Trouble::Error("AccessDeniedException")));
        given.note(operation, 502, &send(&world, "hooks", &event).await);
    }
    given
}

/// The answers to Twilio about messages that tools sent.
async fn statuses(world: &World, given: &mut Given) {
    const OPERATION: &str = "takeMessageStatus";
    let home = &world.home;
    let signed = |token: &str, sid: &str| {
        let status = json!({
            "MessageSid": sid, "MessageStatus": "sent", "AccountSid": home.twilio_sid, "From": home.phone_number, "To": tests::phone(1),
        });
        world.signed("/api/hooks/twilio/statuses", Signer::Twilio(token), &status)
    };
    let event = signed(&home.twilio_token, "SM1");
    given.note(OPERATION, 200, &send(world, "trigger", &event).await);
    given.note(OPERATION, 401, &send(world, "trigger", &signed("guess", "SM1")).await);
    given.note(OPERATION, 400, &send(world, "trigger", &signed(&home.twilio_token, &"S".repeat(1_000))).await);
    world.aws.inject(Fault::throttled("Query", "phone_numbers"));
    given.note(OPERATION, 503, &send(world, "trigger", &event).await);
    world.aws.inject(Fault::new("Query", "phone_numbers", Trouble::Error("ValidationException")));
    given.note(OPERATION, 500, &send(world, "trigger", &event).await);
}

/// The answers to services.
async fn inbound() -> Given {
    let mut given = Given::default();
    let world = World::start().await;
    let own = Box::pin(world.slack_hook()).await;
    let shared = json!({"service": "Slack", "secret": SLACK_SECRET, "tenant": tests::SLACK_TENANT});
    Box::pin(world.hook(&shared)).await;
    let outlook = Box::pin(world.hook(&json!({"service": "Outlook"}))).await;
    let own = world.hook_path(&own);
    for (operation, path) in [("receiveEvent", own.as_str()), ("receiveSharedEvent", "/api/hooks/slack")] {
        let signed = |body: &Value| world.signed(path, Signer::Slack(SLACK_SECRET), body);
        let event = signed(&slack_message("Ev1", "Hello"));
        given.note(operation, 200, &send(&world, "trigger", &event).await);
        let unsigned = world.signed(path, Signer::Unsigned, &slack_message("Ev1", "Hello"));
        given.note(operation, 401, &send(&world, "trigger", &unsigned).await);
        let mut unusable = slack_message("Ev1", "Hello");
        unusable["type"] = json!("of another kind");
        given.note(operation, 400, &send(&world, "trigger", &signed(&unusable)).await);
        let event = signed(&slack_message("Ev2", "Hello"));
        world.aws.inject(Fault::throttled("PutItem", "events"));
        given.note(operation, 503, &send(&world, "trigger", &event).await);
        world.aws.inject(Fault::new("PutItem", "events", Trouble::Error("ValidationException")));
        given.note(operation, 500, &send(&world, "trigger", &event).await);
    }
    statuses(&world, &mut given).await;
    let asks = Event::new("POST", &world.hook_path(&outlook)).query("validationToken", "token");
    given.note("receiveEvent", 200, &send(&world, "trigger", &asks).await);
    given
}
