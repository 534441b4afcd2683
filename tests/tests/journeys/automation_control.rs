//! Manual runs, limits and history of automations.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test says what is wrong and stops")]

mod agent;
mod alerts;
mod approvals;
mod called;

use axum::{
    Json, Router,
    extract::Path,
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::any,
};
use futures_util::future::join_all;
use serde_json::{Value, json};
use tests::{
    Answer, Event, Fault, Options, Trouble, World, automation::AMPLE, automation_event, http_server::Server,
    within_one_hour,
};

/// A world with a service for books, which enter every item except `refused`.
async fn books_with(options: Options) -> (World, Server) {
    let entry = |Path(entry): Path<String>| async move { answer(&entry) };
    let books = Server::start(Router::new().route("/ledger/{entry}", any(entry))).await;
    let mut open_hosts = options.open_hosts.clone();
    open_hosts.push(books.address.to_string());
    let world = World::with(Options { open_hosts, ..options }).await;
    world.ledger_service(&books.url);
    (world, books)
}

async fn books() -> (World, Server) {
    books_with(Options::default()).await
}

fn answer(entry: &str) -> Response {
    match entry {
        "refused" => (StatusCode::UNPROCESSABLE_ENTITY, Json(json!({"message": "no such account"}))).into_response(),
        "busy" => StatusCode::TOO_MANY_REQUESTS.into_response(),
        entry => Json(json!({"entered": entry})).into_response(),
    }
}

/// The entries posted to the books, in order.
fn entered(books: &Server) -> Vec<String> {
    let posts = books.seen().into_iter().filter(|request| request.method == "POST");
    posts.map(|request| request.target.trim_start_matches("/ledger/").to_owned()).collect()
}

fn post(id: &str, entry: &str) -> Value {
    json!({"id": id, "tool": "ledger_post", "parameters": {"entry": entry}})
}

/// The value with more members.
fn and(mut value: Value, more: Value) -> Value {
    let Value::Object(more) = more else { panic!("members are an object") };
    value.as_object_mut().unwrap().extend(more);
    value
}

/// The queries of the index by which events find automations.
fn looked_up(world: &World) -> usize {
    let all = world.aws.dynamodb();
    all.iter().filter(|operation| operation.body["IndexName"] == "by_trigger").count()
}

#[tokio::test]
async fn an_answer_waits_until_events_find_the_automation_as_it_is() {
    let world = World::start().await;
    world.slack_service();
    let saved = world.deploy(&world.urgent_messages()).await.expect(201);
    let at = format!("/{}", saved["automation"]["id"].as_str().unwrap());
    // Before an activation the listeners are counted.
    for (path, body, before, queries) in [("activate", json!({"version": 1}), 1, 3), ("pause", Value::Null, 0, 2)] {
        world.aws.clear_operations();
        world.aws.inject(Fault::new("Query", "automations", Trouble::Lagging).after(before));
        world.automation("POST", &format!("{at}/{path}"), &body).await.expect(200);
        assert_eq!((world.aws.faults_left(), looked_up(&world)), (0, queries), "{path}");
    }
}

/// A tool that writes to people: `team_post_message`, which posts an entry to the books.
fn messenger(world: &World) {
    like_ledger_post(world, "team_post_message", "message");
}

/// A tool with the request of `ledger_post` and another declared effect.
fn like_ledger_post(world: &World, name: &str, effect: &str) {
    let rows = world.aws.rows("service_tools");
    let row = rows.iter().find(|row| row["name"] == "ledger_post").unwrap();
    let attributes = json!({"binding": row["binding"], "parameters": row["parameters"], "acts_as": effect});
    world.service_tool_with("Ledger", name, &attributes);
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is not text"))
}

/// Saves and activates a definition; gives the id.
async fn active(world: &World, definition: &Value) -> String {
    world.activate(definition).await.id.to_string()
}

/// Starts a manual run and runs it until it ends or waits; returns its view.
async fn carried_out(world: &World, automation: &str, body: &Value) -> Value {
    let begun = world.run_by_hand(automation, body).await.expect(202);
    assert_eq!(world.run_loop(AMPLE).await, 0);
    world.run(text(&begun["id"])).await.expect(200)
}

fn keyed(world: &World, automation: &str, key: &str, body: &Value) -> Event {
    automation_event(&world.home, "POST", &format!("/{automation}/run"), body).header("idempotency-key", key)
}

#[tokio::test]
async fn an_automation_is_run_by_hand_once_a_key_and_its_history_says_so() {
    let (world, books) = books().await;
    let id = active(&world, &world.manual(&json!([post("a", "{{trigger_data.what}}")]))).await;
    let body = json!({"trigger_data": {"what": "rent"}});
    let both = join_all([0, 1].map(|_| async { world.send("deploy", &keyed(&world, &id, "one", &body)).await })).await;
    let mut statuses: Vec<u16> = both.iter().map(|answer| answer.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 202]);
    assert_eq!(both[0].body["id"], both[1].body["id"]);
    let other = json!({"trigger_data": {"what": "salary"}});
    let refused = world.send("deploy", &keyed(&world, &id, "one", &other)).await.expect(409);
    assert!(text(&refused["detail"]).contains("another body"), "{refused}");
    assert_eq!(world.run_loop(AMPLE).await, 0);
    assert_eq!(entered(&books), ["rent"]);
    let second = carried_out(&world, &id, &other).await;
    assert_eq!((&second["status"], &second["trigger_type"]), (&json!("completed"), &json!("manual")));
    assert_eq!(second["user_id"], world.home.user_id.as_str());

    let history = world.automation("GET", &format!("/{id}/runs?limit=1"), &Value::Null).await.expect(200);
    assert_eq!((&history["items"][0]["id"], history["items"].as_array().unwrap().len()), (&second["id"], 1));
    let path = format!("/{id}/runs?cursor={}", text(&history["next_cursor"]));
    let rest = world.automation("GET", &path, &Value::Null).await.expect(200);
    assert_eq!((&rest["items"][0]["id"], &rest["items"][0]["actions_executed"]), (&both[0].body["id"], &json!(1)));
    let theirs = automation_event(&world.other, "GET", &format!("/{id}/runs"), &Value::Null);
    assert_eq!(world.send("deploy", &theirs).await.status, 404);
}

#[tokio::test]
async fn a_repeated_request_has_its_run_after_the_automation_is_paused() {
    let (world, _books) = books().await;
    let id = active(&world, &world.manual(&json!([post("a", "one")]))).await;
    let begun = world.send("deploy", &keyed(&world, &id, "one", &json!({}))).await.expect(202);
    world.aws.inject(Fault::throttled("UpdateItem", "idempotency"));
    assert_eq!(world.send("deploy", &keyed(&world, &id, "lost", &json!({}))).await.status, 503);
    world.automation("POST", &format!("/{id}/pause"), &Value::Null).await.expect(200);
    let again = world.send("deploy", &keyed(&world, &id, "one", &json!({}))).await.expect(200);
    assert_eq!(again["id"], begun["id"]);
    let other = json!({"trigger_data": {"what": "salary"}});
    // A run that never began does not begin while its automation is paused.
    for (key, body, why) in
        [("one", &other, "another body"), ("two", &json!({}), "is paused"), ("lost", &json!({}), "is paused")]
    {
        let refused = world.send("deploy", &keyed(&world, &id, key, body)).await.expect(409);
        assert!(text(&refused["detail"]).contains(why), "{key}: {refused}");
    }
}

#[tokio::test]
async fn a_repeated_request_has_its_run_after_another_version_is_activated() {
    let (world, _books) = books().await;
    let id = active(&world, &world.manual(&json!([post("a", "one")]))).await;
    let member = world.member(&world.home, Some("member"));
    let first_version = json!({"version": 1});
    let asked = async |key: &str| world.send("deploy", &keyed(&world, &id, key, &first_version).user(&member)).await;
    let begun = asked("one").await.expect(202);
    world.put_automation(&id, "\"2\"", &world.manual(&json!([post("a", "two")]))).await.expect(200);
    world.automation("POST", &format!("/{id}/activate"), &json!({"version": 2})).await.expect(200);
    assert_eq!(asked("one").await.expect(200)["id"], begun["id"]);
    assert_eq!(asked("two").await.status, 403);
}

#[tokio::test]
async fn an_inactive_automation_runs_only_dry() {
    let (world, books) = books().await;
    let saved = world.deploy(&world.manual(&json!([post("a", "one")]))).await.expect(201);
    let id = text(&saved["automation"]["id"]).to_owned();
    let refused = world.run_by_hand(&id, &Value::Null).await.expect(409);
    assert!(text(&refused["detail"]).contains("pending_review"), "{refused}");
    let dry = carried_out(&world, &id, &json!({"dry_run": true})).await;
    assert_eq!(
        (&dry["status"], &dry["dry_run"], &dry["actions"][0]["status"]),
        (&json!("completed"), &json!(true), &json!("not_sent"))
    );
    world.automation("POST", &format!("/{id}/activate"), &json!({"version": 1})).await.expect(200);
    world.put_automation(&id, "\"2\"", &world.manual(&json!([post("a", "two")]))).await.expect(200);

    // Only administrators run an inactive version.
    let member = world.member(&world.home, Some("member"));
    let as_member = async |body: Value| {
        let event = automation_event(&world.home, "POST", &format!("/{id}/run"), &body).user(&member);
        world.send("deploy", &event).await
    };
    assert_eq!(as_member(json!({})).await.status, 202);
    assert_eq!(as_member(json!({"version": 2})).await.status, 403);
    assert_eq!(as_member(json!({"version": 2, "dry_run": true})).await.status, 202);
    assert_eq!(as_member(json!({"version": 9})).await.status, 404);
    assert_eq!(world.run_by_hand(&id, &json!({"version": 2})).await.status, 202);
    assert_eq!(world.run_loop(AMPLE).await, 0);
    let mut done = entered(&books);
    done.sort_unstable();
    assert_eq!(done, ["one", "two"]);

    world.automation("POST", &format!("/{id}/pause"), &Value::Null).await.expect(200);
    assert_eq!(world.run_by_hand(&id, &json!({})).await.status, 409);
    assert_eq!(world.run_by_hand(&id, &json!({"dry_run": true})).await.status, 202);
    for version in [1, 2] {
        assert_eq!(as_member(json!({"version": version})).await.status, 403, "{version}");
        assert_eq!(world.run_by_hand(&id, &json!({"version": version})).await.status, 202, "{version}");
    }
    assert_eq!(world.run_loop(AMPLE).await, 0);
    assert_eq!(entered(&books).len(), 4);
    for wrong in [json!({"trigger_data": []}), json!({"dry_run": "yes"}), json!({"version": 0}), json!({"when": 1})] {
        assert_eq!(world.run_by_hand(&id, &wrong).await.status, 422, "{wrong}");
    }
}

#[tokio::test]
async fn runs_beyond_the_limit_of_an_hour_are_written_down_and_never_begin() {
    within_one_hour().await;
    let (world, books) = books().await;
    let definition = and(world.manual(&json!([post("a", "one")])), json!({"quotas": {"runs_per_hour": 2}}));
    let automation = world.activate(&definition).await;
    let id = automation.id.to_string();
    for key in ["one", "two"] {
        assert_eq!(world.send("deploy", &keyed(&world, &id, key, &json!({}))).await.status, 202);
    }
    let third = world.send("deploy", &keyed(&world, &id, "three", &json!({}))).await.expect(202);
    assert_eq!(third["status"], "run_limit");
    assert!(text(&third["error"]).contains("2 runs an hour (quotas.runs_per_hour)"), "{third}");
    // The cause comes again, as a service sends an event again.
    let again = world.send("deploy", &keyed(&world, &id, "three", &json!({}))).await.expect(200);
    assert_eq!((&again["id"], &again["status"]), (&third["id"], &json!("run_limit")));
    // A repeated request does not count, and a dry run has a count of its own.
    assert_eq!(world.send("deploy", &keyed(&world, &id, "one", &json!({}))).await.status, 200);
    assert_eq!(world.run_by_hand(&id, &json!({"dry_run": true})).await.expect(202)["status"], "queued");
    assert_eq!(world.run_loop(AMPLE).await, 0);
    assert_eq!(entered(&books).len(), 2);
    assert_eq!(world.run(text(&third["id"])).await.expect(200)["started_at"], Value::Null);
}

#[tokio::test]
async fn the_same_cause_many_times_at_once_counts_once() {
    within_one_hour().await;
    let (world, _books) = books().await;
    let definition = and(world.manual(&json!([post("a", "one")])), json!({"quotas": {"runs_per_hour": 1}}));
    let id = active(&world, &definition).await;
    let requests = (0..5).map(|_| async { world.send("deploy", &keyed(&world, &id, "one", &json!({}))).await });
    let answers: Vec<Answer> = join_all(requests).await;
    assert!(answers.iter().all(|answer| answer.body["status"] == "queued"), "{answers:?}");
    assert_eq!(world.run_by_hand(&id, &json!({})).await.expect(202)["status"], "run_limit");
}

#[tokio::test]
async fn effects_beyond_the_limit_of_a_run_are_not_caused() {
    let (world, books) = books().await;
    let read = json!({"id": "r", "tool": "ledger_read", "parameters": {"entry": "rows"}});
    let actions = json!([post("a", "one"), read, post("b", "two"), post("c", "three")]);
    let definition = and(world.manual(&actions), json!({"quotas": {"effects_per_run": 2}}));
    let id = active(&world, &definition).await;
    for _ in 0..2 {
        let run = carried_out(&world, &id, &json!({})).await;
        assert_eq!((&run["status"], &run["actions_executed"]), (&json!("partial_failure"), &json!(3)), "{run:#}");
        let why = text(&run["actions"][3]["error"]);
        assert!(why.contains("its limit of 2 changes (quotas.effects_per_run)"), "{why}");
    }
    assert_eq!(entered(&books), ["one", "two", "one", "two"]);
}

#[tokio::test]
async fn messages_beyond_the_limit_of_a_day_are_not_sent() {
    within_one_hour().await;
    let (world, books) = books().await;
    messenger(&world);
    let tell = json!({"id": "tell", "tool": "team_post_message", "parameters": {"entry": "{{trigger_data.n}}"}});
    let definition = and(world.manual(&json!([tell])), json!({"quotas": {"messages_per_day": 1}}));
    let id = active(&world, &definition).await;
    let first = carried_out(&world, &id, &json!({"trigger_data": {"n": "1"}})).await;
    assert_eq!(first["status"], "completed", "{first:#}");
    let second = carried_out(&world, &id, &json!({"trigger_data": {"n": "2"}})).await;
    let why = text(&second["actions"][0]["error"]);
    assert!(why.contains("its limit of 1 messages a day (quotas.messages_per_day)"), "{why}");
    assert_eq!(entered(&books), ["1"]);
    // Nothing is sent in a dry run, and nothing counted.
    let dry = carried_out(&world, &id, &json!({"dry_run": true})).await;
    assert_eq!(dry["actions"][0]["error"], Value::Null, "{dry:#}");
}

const EVENT: &str = "01930f5e-0000-7000-8000-0000000000a7";

/// The row of a stored event that started nothing.
fn lunch(world: &World) -> Value {
    json!({
        "id": EVENT, "organization_id": world.home.organization_id, "hook_id": EVENT, "service": "slack", "event_type": "message",
        "data": "{\"event\": {\"text\": \"lunch\"}}", "status": "dispatched", "matched": [], "unmatched": [],
        "created_at": "2026-01-01T00:00:00.000Z", "updated_at": "2026-01-01T00:00:00.000Z", "expires_at": 4_000_000_000_u64,
    })
}

#[tokio::test]
async fn a_repeated_replay_has_its_runs_after_the_automation_is_paused() {
    let (world, _books) = books().await;
    let id = active(&world, &world.manual(&json!([post("a", "{{trigger_data.event.text}}")]))).await;
    world.aws.put("events", &lunch(&world));
    let replay = async |key: &str, dry_run: bool| {
        let path = format!("/api/{}/events/{EVENT}/replay", world.home.slug);
        let event = Event::post(&path, &json!({"automation_id": id, "dry_run": dry_run})).user(&world.home.user_id);
        world.send("hooks", &event.header("idempotency-key", key)).await
    };
    let first = replay("one", false).await.expect(202);
    world.automation("POST", &format!("/{id}/pause"), &Value::Null).await.expect(200);
    let again = replay("one", false).await.expect(202);
    assert_eq!(again["runs"][0]["id"], first["runs"][0]["id"]);
    for (key, dry_run, why) in [("one", true, "another body"), ("two", false, "is paused")] {
        let refused = replay(key, dry_run).await.expect(409);
        assert!(text(&refused["detail"]).contains(why), "{refused}");
    }
    assert_eq!(world.runs_of(&id).len(), 1);
}

#[tokio::test]
async fn an_event_is_replayed_in_a_dry_run_unless_it_is_to_act_again() {
    let (world, books) = books().await;
    let definition = world.manual(&json!([post("a", "{{trigger_data.event.text}}")]));
    let id = active(&world, &definition).await;
    let row = lunch(&world);
    world.aws.put("events", &row);
    let replay = async |body: Value| {
        let path = format!("/api/{}/events/{EVENT}/replay", world.home.slug);
        world.send("hooks", &Event::post(&path, &body).user(&world.home.user_id)).await
    };
    assert_eq!(replay(json!({})).await.status, 422, "it started nothing, so somebody has to say what it is to start");
    let dry = replay(json!({"automation_id": id})).await.expect(202);
    assert_eq!((&dry["dry_run"], &dry["runs"][0]["trigger_type"]), (&json!(true), &json!("replay")));
    let real = json!({"automation_id": id, "dry_run": false});
    let (one, two) = (replay(real.clone()).await.expect(202), replay(real.clone()).await.expect(202));
    assert!(text(&one["note"]).contains("act again"), "{one}");
    assert_ne!(one["runs"][0]["id"], two["runs"][0]["id"], "each request is a run of its own");
    assert_eq!(one["runs"][0]["event_id"], EVENT);
    assert_eq!(world.run_loop(AMPLE).await, 0);
    assert_eq!(entered(&books), ["lunch", "lunch"]);
    world.aws.put("events", &and(row, json!({"matched": [{"automation_id": id, "run_id": one["runs"][0]["id"]}]})));
    assert_eq!(replay(json!({})).await.expect(202)["runs"].as_array().unwrap().len(), 1);
    // The process dies between the row and its message.
    world.aws.inject(Fault::new("TransactWriteItems", "automation_runs", Trouble::StallAfter));
    tokio::select! {
        _ = replay(real.clone()) => panic!("it is not killed"),
        () = world.aws.stalled() => {}
    }
    world.aws.clear_faults();
    world.deliver_runs().await;
    assert_eq!(entered(&books), ["lunch", "lunch", "lunch"]);
    world.automation("POST", &format!("/{id}/pause"), &Value::Null).await.expect(200);
    assert_eq!(replay(real).await.status, 409);
}

#[tokio::test]
async fn a_replay_for_several_automations_starts_all_of_them_or_none() {
    let (world, books) = books().await;
    let active_one = active(&world, &world.manual(&json!([post("a", "one")]))).await;
    let paused = and(world.manual(&json!([post("a", "two")])), json!({"name": "Paused"}));
    let paused = active(&world, &paused).await;
    world.automation("POST", &format!("/{paused}/pause"), &Value::Null).await.expect(200);
    let matched: Value =
        [&active_one, &paused].iter().map(|id| json!({"automation_id": id, "run_id": EVENT})).collect();
    world.aws.put("events", &and(lunch(&world), json!({"matched": matched})));
    let path = format!("/api/{}/events/{EVENT}/replay", world.home.slug);
    let replay = Event::post(&path, &json!({"dry_run": false})).user(&world.home.user_id);
    assert_eq!(world.send("hooks", &replay).await.status, 409);
    assert_eq!((world.aws.rows("automation_runs").len(), world.aws.messages("runs").len()), (0, 0));
    assert_eq!(entered(&books).len(), 0);
}

#[tokio::test]
async fn a_run_that_could_not_be_counted_does_not_wait_for_ever() {
    within_one_hour().await;
    let (world, books) = books().await;
    let definition = and(world.manual(&json!([post("a", "one")])), json!({"quotas": {"runs_per_hour": 1}}));
    let id = active(&world, &definition).await;
    world.aws.inject(Fault::throttled("UpdateItem", "idempotency"));
    assert_eq!(world.send("deploy", &keyed(&world, &id, "one", &json!({}))).await.status, 503);
    let row = world.aws.rows("automation_runs").into_iter().find(|row| row["part"] == "run").unwrap();
    assert_eq!((&row["status"], world.aws.messages("runs").len()), (&json!("failed"), 0), "{row}");
    // The cause comes again: now the run begins, and counts.
    let again = world.send("deploy", &keyed(&world, &id, "one", &json!({}))).await.expect(200);
    assert_eq!((&again["id"], &again["status"]), (&row["id"], &json!("queued")));
    assert_eq!(world.run_loop(AMPLE).await, 0);
    assert_eq!(entered(&books), ["one"]);
    assert_eq!(world.run_by_hand(&id, &json!({})).await.expect(202)["status"], "run_limit");
}
