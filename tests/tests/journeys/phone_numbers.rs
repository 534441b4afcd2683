//! /api/{slug}/phone-numbers: one registration per number, by its owner; credentials at Secrets Manager alone.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

use futures_util::future::join_all;
use serde_json::{Value, json};
use tests::{Answer, Event, Fault, Options, Tenant, Trouble, World, ai_sms, logs::Logs, standins};
use uuid::Uuid;

const SECRETS: &str = "switchboard/twilio/";

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

async fn ask(world: &World, tenant: &Tenant, method: &str, path: &str, body: Option<&Value>) -> Answer {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let mut event = Event::new(method, &format!("/api/{}/phone-numbers{path}", tenant.slug)).user(&tenant.user_id);
    for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
        event = event.query(name, value);
    }
    if let Some(body) = body {
        event = event.text(body.to_string());
    }
    world.send("phone-numbers", &event).await
}

async fn register(world: &World, body: &Value) -> Answer {
    ask(world, &world.home, "POST", "", Some(body)).await
}

async fn change(world: &World, id: &str, body: &Value) -> Answer {
    ask(world, &world.home, "PATCH", &format!("/{id}"), Some(body)).await
}

async fn remove(world: &World, id: &str) -> Answer {
    ask(world, &world.home, "DELETE", &format!("/{id}"), None).await
}

/// A world whose home organization has registered nothing yet: its agent exists, its number only at Twilio.
async fn unregistered() -> World {
    let world = World::with(Options::default()).await;
    world.aws.delete("phone_numbers", &world.home.phone_number_id);
    world.aws.delete("phone_numbers", &format!("number#{}", world.home.phone_number));
    world
}

/// A body that registers the home organization's number.
fn ours(world: &World) -> Value {
    let home = &world.home;
    json!({
        "number": home.phone_number,
        "label": "Reception",
        "agent_id": home.agent_id,
        "fallback_number": "+1 (415) 555-0199",
        "twilio": {"account_sid": home.twilio_sid, "auth_token": home.twilio_token},
    })
}

/// The secrets of this test's making.
fn secrets(world: &World) -> Vec<String> {
    let seeded = [&world.home, &world.other].map(|tenant| format!("{SECRETS}{}", tenant.phone_number_id));
    world.aws.secret_names(SECRETS).into_iter().filter(|name| !seeded.contains(name)).collect()
}

/// Items of `phone_numbers`, without the other organization's.
fn items(world: &World) -> usize {
    world.aws.rows("phone_numbers").len() - 2
}

fn rings(world: &World, agent: &str) -> Vec<String> {
    let row = world.aws.row("agents", agent).unwrap();
    row["phone_number_ids"].as_array().into_iter().flatten().map(|id| text(id).to_owned()).collect()
}

#[tokio::test]
async fn a_number_is_registered_and_its_credentials_are_in_its_secret_alone() {
    let world = unregistered().await;
    let answer = register(&world, &ours(&world)).await;
    let row = answer.expect(201);
    let mut columns: Vec<&str> = row.as_object().unwrap().keys().map(String::as_str).collect();
    columns.sort_unstable();
    assert_eq!(
        columns,
        [
            "agent_id",
            "created_at",
            "fallback_number",
            "fallback_sentence",
            "id",
            "label",
            "language",
            "number",
            "organization_id",
            "updated_at",
            "vapi_phone_number_id",
            "wait_ms"
        ]
    );
    let (home, id) = (&world.home, text(&row["id"]));
    assert_eq!((&row["number"], &row["agent_id"]), (&json!(home.phone_number), &json!(home.agent_id)));
    assert_eq!((&row["fallback_number"], &row["label"]), (&json!("+14155550199"), &json!("Reception")));
    let stored = world.aws.row("phone_numbers", id).unwrap();
    let name = format!("{SECRETS}{id}");
    assert_eq!(stored["credentials_secret"], name);
    let content = json!({"account_sid": home.twilio_sid, "auth_token": home.twilio_token});
    assert_eq!(world.aws.secret(&name), Some(content));
    for hidden in [&home.twilio_sid, &home.twilio_token] {
        assert!(!json!(world.aws.rows("phone_numbers")).to_string().contains(hidden.as_str()));
    }
    assert_eq!(rings(&world, &home.agent_id), [id]);
    assert_eq!(ask(&world, home, "GET", &format!("/{id}"), None).await.expect(200), row);

    // Twilio was asked once, for this number only.
    let asked = world.twilio.requests();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].query, [("PhoneNumber".to_owned(), home.phone_number.clone())]);

    // It works: an SMS goes out from it in a call.
    let tool = world.attached(&ai_sms()).await;
    world.call_tool(&world.call(&tool, json!({"text": "Hi"}))).await.result();
    assert_eq!(world.twilio.messages()[0].from, home.phone_number);
}

#[tokio::test]
async fn an_api_key_is_tried_beside_the_auth_token() {
    let world = unregistered().await;
    let mut body = ours(&world);
    body["twilio"]["api_key_sid"] = json!(format!("SK{}", Uuid::new_v4().simple()));
    body["twilio"]["api_key_secret"] = json!("no such key");
    assert_eq!(register(&world, &body).await.wrong_fields(), ["twilio.api_key_secret"]);
    assert_eq!(world.twilio.requests().len(), 2);
    assert!(secrets(&world).is_empty());
}

#[tokio::test]
async fn only_who_owns_the_number_at_twilio_registers_it() {
    let world = unregistered().await;
    let (home, other) = (&world.home, &world.other);
    let with = |pointer: &str, value: Value| {
        let mut body = ours(&world);
        *body.pointer_mut(pointer).unwrap() = value;
        body
    };
    for (body, field) in [
        (with("/twilio/auth_token", json!("wrong")), "twilio.auth_token"),
        (with("/twilio/account_sid", json!(other.twilio_sid)), "twilio.auth_token"),
        (with("/number", json!("+14155550188")), "number"),
        (with("/number", json!(home.phone_number[..8])), "number"),
        (with("/number", json!(other.phone_number)), "number"),
        (with("/agent_id", json!(other.agent_id)), "agent_id"),
        (with("/agent_id", json!(Uuid::new_v4())), "agent_id"),
    ] {
        assert_eq!(register(&world, &body).await.wrong_fields(), [field], "{body}");
    }
    let mut body = with("/twilio/auth_token", json!("wrong"));
    body["agent_id"] = json!(other.agent_id);
    assert_eq!(register(&world, &body).await.wrong_fields(), ["agent_id", "twilio.auth_token"], "both at once");
    world.twilio.inject(standins::Fault::status(404));
    assert_eq!(register(&world, &ours(&world)).await.wrong_fields(), ["twilio.account_sid"]);
    assert_eq!((items(&world), secrets(&world).len()), (0, 0));
    assert_eq!(rings(&world, &other.agent_id), Vec::<String>::new());
}

#[tokio::test]
async fn a_number_is_registered_once_and_the_refusal_says_nothing_of_whose_it_is() {
    let world = World::start().await;
    let again = register(&world, &ours(&world)).await;
    assert_eq!(again.status, 409, "{}", again.body);
    assert!(again.body["detail"].as_str().unwrap().contains("which must first remove it"), "{}", again.body);

    // The other organization owns the number at Twilio now.
    let mut body = ours(&world);
    body["agent_id"] = json!(world.other.agent_id);
    let foreign = ask(&world, &world.other, "POST", "", Some(&body)).await;
    assert_eq!((foreign.status, &foreign.body["detail"]), (409, &again.body["detail"]));
    for hidden in [&world.home.organization_id, &world.home.slug, &world.home.phone_number_id] {
        assert!(!foreign.body.to_string().contains(hidden.as_str()), "{}", foreign.body);
    }
    // Without proof of ownership a caller does not learn that the number is registered.
    body["twilio"] = json!({"account_sid": world.other.twilio_sid, "auth_token": world.other.twilio_token});
    assert_eq!(ask(&world, &world.other, "POST", "", Some(&body)).await.wrong_fields(), ["number"]);
    assert!(secrets(&world).is_empty());

    // A row without a guard, written by hand, counts; so does a guard without its row.
    world.aws.delete("phone_numbers", &format!("number#{}", world.home.phone_number));
    assert_eq!(register(&world, &ours(&world)).await.status, 409);
    let world = unregistered().await;
    world
        .aws
        .put("phone_numbers", &json!({"id": format!("number#{}", world.home.phone_number), "phone_number_id": "x"}));
    assert_eq!(register(&world, &ours(&world)).await.status, 409);
    assert!(secrets(&world).is_empty(), "the secret that no row came to is taken back");
}

#[tokio::test]
async fn ten_registrations_at_once_make_one_number_and_one_secret() {
    let world = unregistered().await;
    let body = ours(&world);
    let answers = join_all((0..10).map(|_| register(&world, &body))).await;
    let mut statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses[0], 201);
    assert!(statuses[1..].iter().all(|status| [409, 503].contains(status)), "{statuses:?}");
    assert_eq!((items(&world), secrets(&world).len(), rings(&world, &world.home.agent_id).len()), (2, 1, 1));
}

#[tokio::test]
async fn nothing_is_left_of_a_registration_that_fails() {
    let world = unregistered().await;
    let body = ours(&world);
    for (fault, status) in [
        (standins::Fault::status(500), 502),
        (standins::Fault::body(json!("<html>")), 502),
        (standins::Fault::status(429).with_header("Retry-After", "600"), 503),
    ] {
        world.twilio.inject(fault.times(20));
        assert_eq!(register(&world, &body).await.status, status);
        world.twilio.clear_faults();
    }
    world.aws.inject(Fault::new("CreateSecret", "*", Trouble::Error("AccessDeniedException")));
    assert_eq!(register(&world, &body).await.status, 502);
    world.aws.inject(Fault::throttled("TransactWriteItems", "phone_numbers"));
    assert_eq!(register(&world, &body).await.status, 503);
    assert_eq!((items(&world), secrets(&world).len()), (0, 0));
    assert_eq!(rings(&world, &world.home.agent_id), Vec::<String>::new());

    // After lost answers, a repetition finds the results.
    world.aws.inject(Fault::new("CreateSecret", "*", Trouble::DropAfter));
    world.aws.inject(Fault::new("TransactWriteItems", "phone_numbers", Trouble::DropAfter).times(3));
    let row = register(&world, &body).await.expect(201);
    assert_eq!(secrets(&world), [format!("{SECRETS}{}", text(&row["id"]))]);
    assert_eq!(items(&world), 2);
}

#[tokio::test]
async fn an_organization_sees_its_own_numbers_only_in_pages() {
    let mut options = Options::default();
    options.home.phone_number = "+15005550016".to_owned();
    let world = World::with(options).await;
    let page = ask(&world, &world.home, "GET", "?limit=1", None).await.expect(200);
    assert_eq!(page["items"].as_array().unwrap().len(), 1);
    assert_eq!(page["items"][0]["id"], world.home.phone_number_id);
    assert!(page["items"][0].get("credentials_secret").is_none());
    let cursor = text(&page["next_cursor"]);
    let rest = ask(&world, &world.home, "GET", &format!("?cursor={cursor}"), None).await.expect(200);
    assert_eq!(rest, json!({"items": [], "next_cursor": null}), "and no guards among them");

    let theirs = &world.other.phone_number_id;
    for (method, body) in [("GET", None), ("DELETE", None), ("PATCH", Some(json!({"label": "Mine"})))] {
        for id in [theirs.as_str(), "no-id"] {
            assert_eq!(ask(&world, &world.home, method, &format!("/{id}"), body.as_ref()).await.status, 404);
        }
    }
    let row = world.aws.row("phone_numbers", theirs).unwrap();
    assert_eq!(row["label"], "Main line");
    assert!(world.aws.secret(&format!("{SECRETS}{theirs}")).is_some());
}

#[tokio::test]
async fn label_agent_and_fallback_number_can_be_changed_and_cleared() {
    let world = World::start().await;
    let id = world.home.phone_number_id.clone();
    let before = world.aws.row("phone_numbers", &id).unwrap();
    let second = json!({
        "id": Uuid::now_v7(), "organization_id": world.home.organization_id, "name": "Night shift",
        "external_assistant_id": Uuid::new_v4(), "created_at": before["created_at"], "updated_at": before["updated_at"],
    });
    world.aws.put("agents", &second);
    let second = text(&second["id"]);

    let at_vapi = world.vapi.set_number(&world.home.phone_number, &world.home.assistant_id).unwrap();
    let mut body = json!({
        "label": "Nights", "agent_id": second, "fallback_number": "+14155550199", "language": "pt-PT",
        "fallback_sentence": "Ligue mais tarde.",
    });
    body["vapi_phone_number_id"] = json!(at_vapi);
    let row = change(&world, &id, &body).await.expect(200);
    assert_eq!(row["vapi_phone_number_id"], json!(at_vapi));
    assert_eq!((&row["label"], &row["agent_id"]), (&json!("Nights"), &json!(second)));
    assert_eq!(row["fallback_number"], "+14155550199");
    assert_eq!((&row["fallback_sentence"], &row["language"]), (&json!("Ligue mais tarde."), &json!("pt-PT")));
    assert_eq!((&row["number"], &row["created_at"]), (&before["number"], &before["created_at"]));
    assert_ne!(row["updated_at"], before["updated_at"]);
    assert_eq!(rings(&world, second), [id.as_str()]);
    assert_eq!(rings(&world, &world.home.agent_id), Vec::<String>::new());
    let stored = world.aws.row("phone_numbers", &id).unwrap();
    assert_eq!(stored["credentials_secret"], before["credentials_secret"]);
    assert_eq!(stored["vapi_phone_number_id"], json!(at_vapi), "what the answer says is stored");

    let row = change(&world, &id, &json!({"label": "Days"})).await.expect(200);
    assert_eq!((&row["agent_id"], &row["fallback_number"]), (&json!(second), &json!("+14155550199")), "they stay");
    assert_eq!(row["vapi_phone_number_id"], json!(at_vapi), "it stays, too");
    assert_eq!((&row["fallback_sentence"], &row["language"]), (&json!("Ligue mais tarde."), &json!("pt-PT")));
    let nothing = json!({
        "agent_id": null, "fallback_number": null, "fallback_sentence": null, "language": null, "vapi_phone_number_id": null,
    });
    let row = change(&world, &id, &nothing).await.expect(200);
    assert_eq!((&row["fallback_sentence"], &row["language"]), (&Value::Null, &Value::Null));
    assert_eq!(row["vapi_phone_number_id"], Value::Null);
    assert_eq!((&row["agent_id"], &row["fallback_number"]), (&Value::Null, &Value::Null));
    assert_eq!(rings(&world, second), Vec::<String>::new());
    assert!(world.twilio.requests().is_empty(), "Twilio was asked nothing");

    for (body, fields) in [
        (json!({"agent_id": world.other.agent_id}), vec!["agent_id"]),
        (json!({"fallback_number": world.home.phone_number}), vec!["fallback_number"]),
        (json!({"number": "+14155550188", "label": ""}), vec!["label", "number"]),
        (json!({}), vec!["body"]),
    ] {
        assert_eq!(change(&world, &id, &body).await.wrong_fields(), fields, "{body}");
    }
}

#[tokio::test]
async fn vapis_id_of_a_number_is_taken_for_this_number_alone() {
    let world = unregistered().await;
    let (home, other) = (&world.home, &world.other);
    let ours = world.vapi.set_number(&home.phone_number, &home.assistant_id).unwrap();
    let theirs = world.vapi.set_number(&other.phone_number, &other.assistant_id).unwrap();
    let with = |id: &str| {
        let mut body = super::phone_numbers::ours(&world);
        body["vapi_phone_number_id"] = json!(id);
        body
    };
    let unknown = Uuid::new_v4().to_string();
    for id in [&theirs, &unknown] {
        let refused = register(&world, &with(id)).await;
        assert_eq!(refused.wrong_fields(), ["vapi_phone_number_id"]);
        assert!(text(&refused.body["errors"][0]["problem"]).contains("GET /phone-number at VAPI"), "{}", refused.body);
    }
    let row = register(&world, &with(&ours)).await.expect(201);
    let id = text(&row["id"]);
    for at_vapi in [&theirs, &unknown] {
        let refused = change(&world, id, &json!({"vapi_phone_number_id": at_vapi, "label": "Nights"})).await;
        assert_eq!(refused.wrong_fields(), ["vapi_phone_number_id"]);
    }
    let stored = world.aws.row("phone_numbers", id).unwrap();
    assert_eq!((&stored["vapi_phone_number_id"], &stored["label"]), (&json!(ours), &json!("Reception")));
    world.vapi.inject(standins::Fault::status(500).times(20));
    assert_eq!(change(&world, id, &json!({"vapi_phone_number_id": ours})).await.status, 502);
    assert_eq!(change(&world, id, &json!({"vapi_phone_number_id": null})).await.status, 200, "VAPI is not asked");
}

#[tokio::test]
async fn vapis_id_of_a_number_is_looked_for_in_the_organizations_own_account() {
    let world = World::start().await;
    let at_platform = world.vapi.set_number(&world.home.phone_number, &world.home.assistant_id).unwrap();
    world.own_key(&world.home, &json!({"api_key": tests::OWN_KEYS[0]}));
    let id = &world.home.phone_number_id;
    let refused = change(&world, id, &json!({"vapi_phone_number_id": at_platform})).await;
    assert_eq!(refused.wrong_fields(), ["vapi_phone_number_id"]);
    let assistant = json!({"name": "Nights", "model": {"provider": "openai", "model": "gpt-4o"}});
    let assistant = world.at_vapi_with(tests::OWN_KEYS[0], "POST", "/assistant", &assistant).await;
    let own = world.vapi.set_number(&world.home.phone_number, text(&assistant["id"])).unwrap();
    let row = change(&world, id, &json!({"vapi_phone_number_id": own})).await.expect(200);
    assert_eq!(row["vapi_phone_number_id"], json!(own));
}

#[tokio::test]
async fn an_agent_that_was_deleted_by_hand_does_not_hold_its_number() {
    let world = World::start().await;
    let id = world.home.phone_number_id.clone();
    world.aws.delete("agents", &world.home.agent_id);
    change(&world, &id, &json!({"agent_id": null})).await.expect(200);
    assert!(world.aws.row("agents", &world.home.agent_id).is_none(), "no stub of an agent");
    let other = &world.other;
    world.aws.delete("agents", &other.agent_id);
    let path = format!("/{}", other.phone_number_id);
    assert_eq!(ask(&world, other, "DELETE", &path, None).await.status, 200);
    assert!(world.aws.row("agents", &other.agent_id).is_none());
}

#[tokio::test]
async fn two_changes_at_once_do_not_overwrite_each_other_unnoticed() {
    let world = World::start().await;
    let id = world.home.phone_number_id.clone();
    let changes: Vec<Value> = (0..10).map(|number| json!({"label": format!("Line {number}")})).collect();
    let answers = join_all(changes.iter().map(|body| change(&world, &id, body))).await;
    let winners: Vec<&Value> =
        answers.iter().filter(|answer| answer.status == 200).map(|answer| &answer.body).collect();
    assert!(!winners.is_empty());
    assert!(answers.iter().all(|answer| [200, 409, 503].contains(&answer.status)));
    let stored = world.aws.row("phone_numbers", &id).unwrap();
    let last = winners.iter().max_by_key(|row| text(&row["updated_at"]).to_owned()).unwrap();
    assert_eq!(stored["label"], last["label"]);
    let mut times: Vec<&str> = winners.iter().map(|row| text(&row["updated_at"])).collect();
    times.sort_unstable();
    times.dedup();
    assert_eq!(times.len(), winners.len(), "each change is later than the one it was made on");
}

#[tokio::test]
async fn new_credentials_are_tried_before_they_take_the_old_ones_place() {
    let world = World::start().await;
    let id = world.home.phone_number_id.clone();
    let name = format!("{SECRETS}{id}");
    let before = world.aws.secret(&name).unwrap();
    let mut twilio = before.clone();
    twilio["auth_token"] = json!("wrong");
    assert_eq!(change(&world, &id, &json!({"twilio": twilio})).await.wrong_fields(), ["twilio.auth_token"]);
    assert_eq!(world.aws.secret(&name), Some(before.clone()));

    // The secret of a number has the account's old token; the new token gets a secret of its own.
    world.aws.put_secret(&name, &twilio);
    let row = change(&world, &id, &json!({"twilio": before, "label": "Reception"})).await.expect(200);
    assert_eq!(row["label"], "Reception");
    assert!(!row.to_string().contains(&world.home.twilio_token));
    let named = || text(&world.aws.row("phone_numbers", &id).unwrap()["credentials_secret"]).to_owned();
    let first = named();
    assert!(first.starts_with(&format!("{name}/")), "{first}");
    assert_eq!((world.aws.secret(&first), world.aws.secret(&name)), (Some(before.clone()), None));

    // A failed write keeps the old credentials; a write with a lost answer has the new ones.
    world.aws.inject(Fault::throttled("TransactWriteItems", "phone_numbers"));
    assert_eq!(change(&world, &id, &json!({"twilio": before})).await.status, 503);
    assert_eq!((named(), secrets(&world)), (first.clone(), vec![first.clone()]));
    world.aws.inject(Fault::new("TransactWriteItems", "phone_numbers", Trouble::DropAfter).times(3));
    change(&world, &id, &json!({"twilio": before})).await.expect(200);
    assert_ne!(named(), first);
    assert_eq!((secrets(&world), world.aws.rows("intents").len()), (vec![named()], 0));
    remove(&world, &id).await.expect(200);
    assert!(secrets(&world).is_empty());
}

#[tokio::test]
async fn a_removed_number_leaves_no_row_no_guard_and_no_secret() {
    let world = World::start().await;
    let (home, id) = (&world.home, world.home.phone_number_id.clone());
    let mut body = ai_sms();
    body["from"] = json!({"type": "specific_number", "phone_number_id": id});
    let tool = world.attached(&body).await;
    let call = world.call(&tool, json!({"text": "Hi"}));
    change(&world, &id, &json!({"agent_id": null})).await.expect(200);
    change(&world, &id, &json!({"agent_id": home.agent_id})).await.expect(200);

    assert_eq!(remove(&world, &id).await.expect(200), json!({"status": "deleted"}));
    assert_eq!(items(&world), 0);
    assert_eq!(world.aws.secret(&format!("{SECRETS}{id}")), None);
    assert_eq!(rings(&world, &home.agent_id), Vec::<String>::new());
    assert_eq!(remove(&world, &id).await.status, 404, "removing twice");

    // A tool that sends from the number says so; the call came in before the number was removed.
    world.incoming_call(home, call.call_id.as_deref().unwrap(), "+14155550101");
    let sentence = world.call_tool(&call).await.sentence().to_owned();
    assert_eq!(sentence, "The number this message should come from is no longer set up.");
    assert!(world.twilio.messages().is_empty());

    register(&world, &ours(&world)).await.expect(201);
}

#[tokio::test]
async fn a_removal_that_fails_can_be_asked_for_again() {
    let world = World::start().await;
    let id = world.home.phone_number_id.clone();
    let name = format!("{SECRETS}{id}");
    world.aws.inject(Fault::throttled("TransactWriteItems", "phone_numbers"));
    assert_eq!(remove(&world, &id).await.status, 503);
    assert!(world.aws.row("phone_numbers", &id).is_some() && world.aws.secret(&name).is_some());
    assert!(world.aws.rows("intents").is_empty());

    // The row is gone; `settle` deletes its secret later.
    world.aws.inject(Fault::new("DeleteSecret", "*", Trouble::Error("AccessDeniedException")));
    assert_eq!(remove(&world, &id).await.status, 200);
    assert!(world.aws.row("phone_numbers", &id).is_none() && world.aws.secret(&name).is_some());
    world.later();
    assert_eq!(world.settle().await["settled"][0]["outcome"], "the secret was deleted");
    assert!(world.aws.secret(&name).is_none() && world.aws.rows("intents").is_empty());
    assert_eq!(remove(&world, &id).await.status, 404);

    // The row is gone, but the answer was lost.
    let other = &world.other;
    world.aws.inject(Fault::new("TransactWriteItems", "phone_numbers", Trouble::DropAfter).times(3));
    assert_eq!(ask(&world, other, "DELETE", &format!("/{}", other.phone_number_id), None).await.status, 200);
    assert!(world.aws.secret(&format!("{SECRETS}{}", other.phone_number_id)).is_none());
}

#[tokio::test]
async fn an_agent_is_not_removed_while_a_number_comes_to_ring_it() {
    for _ in 0..5 {
        let world = unregistered().await;
        let path = format!("/api/{}/agents/{}", world.home.slug, world.home.agent_id);
        let removal = Event::new("DELETE", &path).user(&world.home.user_id);
        let body = ours(&world);
        let (registered, removed) = futures_util::join!(register(&world, &body), world.send("agents", &removal));
        let there = world.aws.row("agents", &world.home.agent_id).is_some();
        match (registered.status, removed.status) {
            (201, 409 | 503) => assert!(there),
            (422, 200) => assert!(!there && items(&world) == 0 && secrets(&world).is_empty()),
            other => panic!("{other:?}: {} {}", registered.body, removed.body),
        }
    }
}

#[tokio::test]
async fn a_row_of_an_older_version_can_be_read() {
    let world = World::start().await;
    let row = world.aws.row("phone_numbers", &world.home.phone_number_id).unwrap();
    assert!(row.get("fallback_number").is_none());
    let shown = ask(&world, &world.home, "GET", &format!("/{}", world.home.phone_number_id), None).await.expect(200);
    assert_eq!(shown["fallback_number"], Value::Null);
}

#[tokio::test]
async fn the_log_has_no_credentials_and_no_number() {
    let logs = Logs::capture();
    let world = unregistered().await;
    let body = ours(&world);
    register(&world, &json!({"number": 1, "twilio": body["twilio"]})).await;
    for status in [401, 400, 500] {
        world.twilio.inject(standins::Fault::status(status).times(5));
        register(&world, &body).await;
        world.twilio.clear_faults();
    }
    world.aws.inject(Fault::throttled("TransactWriteItems", "phone_numbers"));
    world.aws.inject(Fault::new("DeleteSecret", "*", Trouble::Error("AccessDeniedException")));
    assert_eq!(register(&world, &body).await.status, 503);
    let text = format!("{:?}", logs.ours());
    assert!(text.contains("a secret without a row could not be repaired and is left to settle"), "{text}");
    let digits = world.home.phone_number.trim_start_matches('+');
    for hidden in [digits, &world.home.twilio_token, &world.home.twilio_sid] {
        assert!(!text.contains(hidden), "{hidden} in {text}");
    }
}
