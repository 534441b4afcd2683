//! The events of every service in the catalogue.

use serde_json::{Map, Value, json};
use shared::{
    models::Timestamp,
    tool::{Parameters, sample_arguments},
};
use tests::{
    Event, World, phone, slack_message,
    webhooks::{Signer, signed_at},
};

use super::{text, world};

/// A definition that this event starts.
pub(super) fn manual_body(service: &str, event_type: &str, filters: &Value) -> Value {
    let mut config = json!({"service": service, "event_type": event_type});
    if !filters.is_null() {
        config["filters"] = filters.clone();
    }
    json!({
        "name": format!("{service} {event_type}"), "trigger_type": "webhook", "trigger_config": config,
        "actions": [{"id": "now", "tool": "current_time", "parameters": {}}], "fingerprints": {"current_time": "built-in"},
    })
}

/// Every listed event can fire: each event of the catalogue, in its service's own request, starts a run of an automation with
/// the example's condition.
#[tokio::test]
async fn every_event_of_the_catalogue_begins_a_run() {
    let files = tests::catalogue::files().unwrap();
    let mut tried = 0;
    for (file, content) in &files {
        let Some(events) = content["capabilities"]["webhook_payload_schemas"].as_object() else { continue };
        for (event_type, described) in events {
            let world = World::start().await;
            world.catalogue_service(file);
            let service = text(&content["name"]);
            let mut definition = manual_body(service, event_type, &described["example_condition"]);
            if let Some(trigger) = described.get("deployed_trigger") {
                let parameters = Parameters::of_schema(trigger["parameters"].clone());
                let required = trigger["parameters"].get("required").is_some();
                let params = if required { sample_arguments(&parameters) } else { Map::new() };
                definition["trigger_config"]["params"] = Value::Object(params);
            }
            let automation = world.active(&definition).await;
            let answer = if described.get("deployed_trigger").is_some() {
                pipedream_brings(&world, &automation, &described["example"]).await
            } else if described["built_in"] == true {
                our_own_event(&world, event_type).await
            } else {
                let hook = hook_of(&world, service).await;
                by_hook(&world, &hook, service, event_type, &described["example"]).await
            };
            assert_eq!(answer.status, 200, "{service} {event_type}: {}", answer.body);
            let why = world.events("").await.expect(200);
            assert_eq!(world.runs_of(&automation).len(), 1, "{service} {event_type}: {why}");
            let names = [event_type.as_str(), "order.created"];
            assert!(names.contains(&text(&why["items"][0]["event_type"])), "{service} {event_type}: {why}");
            tried += 1;
        }
    }
    assert!(tried > 15, "{tried}");
}

/// An event of our own.
async fn our_own_event(world: &World, event_type: &str) -> tests::Answer {
    if event_type == "sms.received" {
        let token = world.home.twilio_token.clone();
        let text = json!({"MessageSid": "SM1", "AccountSid": world.home.twilio_sid, "From": phone(1), "To": world.home.phone_number, "Body": "Hi"});
        return world.send("trigger", &world.signed("/api/hooks/twilio", Signer::Twilio(&token), &text)).await;
    }
    if event_type == "tool.failed" {
        let tool = world.attached(&tests::ai_sms()).await;
        let answer = world.call_tool(&world.call(&tool, json!({"text": 5}))).await;
        assert_eq!(world.run_scheduled().await, 0);
        return answer;
    }
    world.incoming_call(&world.home, "call-1", &phone(1));
    world.aws.change("calls", "call-1", json!({"direction": "outbound"}));
    let kind = if event_type == "call.answered" { "status-update" } else { "end-of-call-report" };
    let bearer = format!("Bearer {}", world.options.webhook_bearer.as_ref().unwrap());
    let message = json!({"message": {"type": kind, "status": "in-progress", "call": {"id": "call-1"}}});
    let answer = world.send("calls", &Event::post("/api/vapi/events", &message).header("authorization", &bearer)).await;
    assert_eq!(world.run_scheduled_within(60).await, 0);
    answer
}

/// Listed events without described fields: each arrives under its name, and some start a run.
#[tokio::test]
async fn every_event_that_is_only_named_comes_under_its_name() {
    const FOLLOWED: [&str; 4] =
        ["Stripe payment_intent.payment_failed", "GitHub issues.labeled", "Linear Comment.create", "Linear Issue"];
    let files = tests::catalogue::files().unwrap();
    let mut followed = 0;
    for (file, content) in &files {
        let others = content["capabilities"]["other_webhook_events"].as_array().map_or(&[][..], Vec::as_slice);
        if others.is_empty() {
            continue;
        }
        let world = World::start().await;
        world.catalogue_service(file);
        let service = text(&content["name"]);
        let hook = hook_of(&world, service).await;
        for event_type in others.iter().map(text) {
            let follows = FOLLOWED.contains(&format!("{service} {event_type}").as_str());
            let definition = manual_body(service, event_type, &Value::Null);
            let automation = if follows { Some(world.active(&definition).await) } else { None };
            let answer = by_hook(&world, &hook, service, event_type, &least(service, event_type)).await;
            assert_eq!(answer.status, 200, "{service} {event_type}: {}", answer.body);
            let rows = world.aws.rows("events");
            let comes = |row: &Value| {
                let name = text(&row["event_type"]);
                name == event_type || name.starts_with(&format!("{event_type}."))
            };
            assert!(rows.iter().any(comes), "{service} {event_type}: {rows:?}");
            if let Some(automation) = automation {
                assert_eq!(world.runs_of(&automation).len(), 1, "{service} {event_type}");
                followed += 1;
            }
        }
    }
    assert_eq!(followed, FOLLOWED.len());
}

/// Twilio posts it to the address that came with the message, where the organization's hook has it.
#[tokio::test]
async fn the_status_of_a_message_that_a_tool_sent_begins_a_run_once() {
    let world = World::start().await;
    world.catalogue_service("twilio");
    let tool = world.attached(&tests::ai_sms()).await;
    world.call_tool(&world.call(&tool, json!({"text": "Hello"}))).await.result();
    let sent = world.twilio.messages()[0].sid.clone();
    let told = async |status: &str| {
        let form = world.twilio.status_of(&sent, status).unwrap();
        let path = form.url.strip_prefix(&world.options.public_url).unwrap();
        assert_eq!(path, "/api/hooks/twilio/statuses", "its throttle is not that of the messages");
        let event = Event::new("POST", path).text(form.body.clone());
        let event = form.headers.iter().fold(event, |event, (name, value)| event.header(name, value));
        let answer = world.send("trigger", &event).await;
        assert_eq!((answer.status, answer.content_type.as_str()), (200, "text/xml"), "{status}: {}", answer.body);
    };
    told("sent").await;
    assert!(world.aws.rows("events").is_empty(), "no hook, no event");
    hook_of(&world, "Twilio").await;
    let automation = world.active(&manual_body("Twilio", "message.undelivered", &Value::Null)).await;
    for status in ["delivered", "undelivered", "undelivered"] {
        told(status).await;
    }
    assert_eq!((world.aws.rows("events").len(), world.runs_of(&automation).len()), (2, 1));
}

/// The minimal body of this event.
fn least(service: &str, event_type: &str) -> Value {
    let (first, second) = event_type.split_once('.').unwrap_or((event_type, ""));
    match service {
        "Slack" => {
            let mut message = slack_message(&format!("Ev {event_type}"), "Hello");
            message["event"]["type"] = json!(event_type);
            message
        }
        "GitHub" if second.is_empty() => json!({"of": event_type}),
        "GitHub" => json!({"action": second, "of": event_type}),
        "Stripe" => json!({"id": format!("evt_{event_type}"), "type": event_type, "data": {"object": {}}}),
        "Notion" => json!({"id": event_type, "type": event_type, "authors": []}),
        "HubSpot" => {
            json!({"eventId": event_type, "subscriptionId": 1, "occurredAt": 1, "subscriptionType": event_type})
        }
        "Linear" if second.is_empty() => {
            json!({"type": first, "action": "archive", "createdAt": "2026-11-21T22:00:00Z"})
        }
        "Linear" => {
            json!({"type": first, "action": second, "data": {"id": event_type}, "createdAt": "2026-11-21T22:00:00Z"})
        }
        "Telegram" => {
            json!({"update_id": event_type.len() * 1_000 + event_type.bytes().map(usize::from).sum::<usize>(), second: {}})
        }
        "Twilio" => json!({"MessageSid": format!("SM {event_type}"), "MessageStatus": second, "To": phone(1)}),
        "Outlook" => json!({
            "id": event_type, "subscriptionId": "s", "changeType": second, "clientState": "",
            "resourceData": {"@odata.type": format!("#Microsoft.Graph.{first}")},
        }),
        _ => panic!("{service} {event_type}: nobody knows how it would be sent"),
    }
}

const ACCOUNT: &str = "push@acme.iam.gserviceaccount.com";
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// A hook of the organization's for this service.
pub(crate) async fn hook_of(world: &World, service: &str) -> Value {
    match service {
        "Gmail" => world.hook(&json!({"service": service, "service_account": ACCOUNT})).await,
        _ => world.hook(&json!({"service": service, "secret": SECRET})).await,
    }
}

/// An event in a request to a hook, signed as its service signs.
pub(crate) async fn by_hook(
    world: &World,
    hook: &Value,
    service: &str,
    event_type: &str,
    example: &Value,
) -> tests::Answer {
    use base64::{Engine, prelude::BASE64_STANDARD};
    let (account, secret) = (ACCOUNT, SECRET);
    let name = event_type.split('.').next().unwrap();
    match service {
        "Slack" => world.deliver_signed(hook, Signer::Slack(secret), example).await,
        "GitHub" => world.deliver_signed(hook, Signer::Github(secret, name), example).await,
        "Stripe" => world.deliver_signed(hook, Signer::Stripe(secret), example).await,
        "Notion" => world.deliver_signed(hook, Signer::Notion(secret), example).await,
        "HubSpot" => world.deliver_signed(hook, Signer::Hubspot(secret), &json!([example])).await,
        "Twilio" => world.deliver_signed(hook, Signer::Twilio(secret), example).await,
        "Telegram" => world.deliver_signed(hook, Signer::Telegram(secret), example).await,
        "Linear" => world.deliver_signed(hook, Signer::Linear(secret), example).await,
        "Webhooks" => world.deliver_signed(hook, Signer::StandardWebhooks(secret), example).await,
        "Gmail" => {
            let data = BASE64_STANDARD.encode(example.to_string());
            let pushed =
                json!({"message": {"data": data, "messageId": "1"}, "subscription": "projects/p/subscriptions/s"});
            world.deliver_signed(hook, Signer::Google(&world.issuer, account), &pushed).await
        }
        "Google Calendar" => {
            let headers = json!({
                "channel-id": example["channel_id"], "resource-id": example["resource_id"],
                "resource-state": example["resource_state"], "message-number": example["message_number"],
            });
            world.deliver_signed(hook, Signer::GoogleCalendar(secret), &headers).await
        }
        "Outlook" => {
            let mut notification = example.clone();
            notification["clientState"] = json!(secret);
            world.deliver_signed(hook, Signer::Unsigned, &json!({"value": [notification]})).await
        }
        _ => panic!("{service} {event_type}: discovery lists it, and nothing brings it"),
    }
}

/// Twilio, Telegram and Linear: foreign, misdirected and repeated requests.
#[tokio::test]
async fn a_request_of_twilio_telegram_or_linear_is_taken_once_and_only_if_it_is_theirs() {
    for (file, service, event_type) in [
        ("twilio", "Twilio", "message.received"),
        ("telegram", "Telegram", "update.message"),
        ("linear", "Linear", "Issue.create"),
    ] {
        let signer = |secret| match service {
            "Twilio" => Signer::Twilio(secret),
            "Telegram" => Signer::Telegram(secret),
            _ => Signer::Linear(secret),
        };
        let world = World::start().await;
        world.catalogue_service(file);
        let files = tests::catalogue::files().unwrap();
        let content = files.get(file).or_else(|| files.get(&format!("{file}.json"))).unwrap();
        let example = content["capabilities"]["webhook_payload_schemas"][event_type]["example"].clone();
        let automation = world.active(&manual_body(service, event_type, &Value::Null)).await;
        let hook = world.hook(&json!({"service": service, "secret": SECRET})).await;
        assert_eq!(hook["scheme"], file, "{service}");
        let theirs = json!({"service": service, "secret": "a-secret-of-their-own"});
        let theirs = world.hooks(&world.other, "POST", "", &theirs).await.expect(201);
        let path = world.hook_path(&hook);
        let good = world.signed(&path, signer(SECRET), &example);
        let mut longer = good.clone();
        longer.body.as_mut().unwrap().push_str(if service == "Twilio" { "&a=b" } else { " " });
        let old = Timestamp::from_millis(Timestamp::now().as_millis() - 301_000);
        let old = signed_at(&world.options.public_url, &path, signer(SECRET), &example.to_string(), old);
        for (name, event) in [
            ("unsigned", world.signed(&path, Signer::Unsigned, &example)),
            ("another secret", world.signed(&path, signer("guess"), &example)),
            ("an empty secret", world.signed(&path, signer(""), &example)),
            ("another tenant's hook", world.signed(&world.hook_path(&theirs), signer(SECRET), &example)),
            (
                "Standard Webhooks",
                world.signed(&path, Signer::StandardWebhooks("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), &example),
            ),
            ("no hook", world.signed(&format!("/api/hooks/{file}"), signer(SECRET), &example)),
            ("another body", longer),
            ("old", old),
        ] {
            let refused = world.send("trigger", &event).await;
            // A token does not cover the body, and neither it nor Twilio's signature has a time.
            if (service == "Telegram" && ["another body", "old"].contains(&name))
                || (service == "Twilio" && name == "old")
            {
                continue;
            }
            assert_eq!((refused.status, &refused.body), (401, &Value::Null), "{service}: {name}");
        }
        let answer = world.send("trigger", &good).await;
        assert_eq!(answer.status, 200, "{service}: {}", answer.body);
        if service == "Twilio" {
            assert_eq!(
                (&answer.content_type[..8], &answer.body),
                ("text/xml", &json!("<Response/>")),
                "Twilio reads TwiML"
            );
        }
        // A repetition: Linear's has another time, and so another signature.
        world.send("trigger", &good).await;
        let later = Timestamp::from_millis(Timestamp::now().as_millis() + 5_000);
        let again = signed_at(&world.options.public_url, &path, signer(SECRET), &example.to_string(), later);
        assert_eq!(world.send("trigger", &again).await.status, 200, "{service}");
        assert_eq!(world.runs_of(&automation).len(), 1, "{service}");
    }
}

/// An event of a trigger deployed at Pipedream.
async fn pipedream_brings(world: &World, automation: &str, example: &Value) -> tests::Answer {
    let hook = world.pipedream_hook(automation, "whsk_1").await;
    world.deliver_signed(&hook, Signer::Pipedream("whsk_1"), example).await
}

#[tokio::test]
async fn a_deployed_trigger_is_for_its_automation_alone() {
    let (world, automation, _) = world().await;
    let mut second = world.urgent_messages();
    second["name"] = json!("Another");
    let other = world.active(&second).await;
    let hook = world.pipedream_hook(&automation, "whsk_1").await;
    let emitted = json!({"e": slack_message("Ev1", "urgent"), "k": "emit", "ts": 1, "id": "ev_1"});
    for _again in 0..2 {
        world.deliver_signed(&hook, Signer::Pipedream("whsk_1"), &emitted).await.expect(200);
    }
    assert_eq!((world.runs_of(&automation).len(), world.runs_of(&other).len()), (1, 0));
    let row = world.aws.rows("events").remove(0);
    assert_eq!((&row["service"], &row["event_type"]), (&json!("slack"), &json!("message")));
    let lunch = slack_message("Ev2", "lunch?");
    world.deliver_signed(&hook, Signer::Pipedream("whsk_1"), &lunch).await.expect(200);
    let why = world.events("?matched=false").await.expect(200)["items"][0]["unmatched"][0]["why"].clone();
    assert!(text(&why).contains("lunch?"), "{why}");
    assert_eq!(world.deliver_signed(&hook, Signer::Pipedream("whsk_2"), &lunch).await.status, 401);
    world.automation("POST", &format!("/{automation}/pause"), &json!({})).await.expect(200);
    world.deliver_signed(&hook, Signer::Pipedream("whsk_1"), &slack_message("Ev3", "urgent")).await.expect(200);
    assert_eq!(world.runs_of(&automation).len(), 1);
    let why = world.events("?matched=false").await.expect(200)["items"][0]["unmatched"][0]["why"].clone();
    assert!(text(&why).contains("is paused"), "{why}");
    world.aws.delete("automations", &automation);
    world.deliver_signed(&hook, Signer::Pipedream("whsk_1"), &slack_message("Ev4", "urgent")).await.expect(200);
}
