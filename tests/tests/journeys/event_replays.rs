//! Replays of many events: plan, start, progress, cancellation, limits and crashes.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::large_futures,
    reason = "a test says what is wrong and stops"
)]

use std::{collections::BTreeSet, time::Duration};

use serde_json::{Value, json};
use tests::{Event, Fault, Trouble, World, automation::AMPLE};
use uuid::Uuid;

/// Without an hour's boundary in a test.
const FAR: &str = "2096-01-01T00:00:00.000Z";

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is not text"))
}

/// A world whose batches follow each other at once, with an automation for urgent messages and a hook of Slack's.
async fn world() -> (World, String, Value) {
    let mut world = World::start().await;
    world.process.schedule.event_replays.pace = Duration::ZERO;
    world.slack_service();
    let automation = world.active(&world.urgent_messages()).await;
    let hook = world.slack_hook().await;
    (world, automation, hook)
}

/// Stored events of the hook, a second apart, each with a run of each of these automations, or with none.
fn events(world: &World, hook: &Value, count: usize, matched: &[&str], said: &str) -> Vec<String> {
    let one = |number: usize| {
        let id = Uuid::now_v7().to_string();
        let runs: Vec<Value> =
            matched.iter().map(|automation| json!({"automation_id": automation, "run_id": Uuid::now_v7()})).collect();
        let at = format!("2026-01-01T00:{:02}:{:02}.000Z", number / 60, number % 60);
        world.aws.put("events", &json!({
            "id": id, "organization_id": world.home.organization_id, "hook_id": hook["id"], "service": "slack",
            "event_type": "message", "event_types": ["message"], "status": "dispatched", "matched": runs, "unmatched": [],
            "data": json!({"event": {"text": format!("{said} {number}"), "user": "U1"}}).to_string(),
            "created_at": at, "updated_at": at, "expires_at": 4_000_000_000_u64,
        }));
        id
    };
    (0..count).map(one).collect()
}

async fn plan(world: &World, filter: &Value) -> Value {
    world.replays(&world.home, "POST", "", filter).await.expect(201)
}

async fn start(world: &World, plan: &Value) -> Value {
    let path = format!("/{}/start", text(&plan["id"]));
    world.replays(&world.home, "POST", &path, &Value::Null).await.expect(202)
}

async fn shown(world: &World, plan: &Value) -> Value {
    world.replays(&world.home, "GET", &format!("/{}", text(&plan["id"])), &Value::Null).await.expect(200)
}

fn progress(replay: &Value) -> [u64; 4] {
    ["events", "started", "skipped", "failed"].map(|name| replay["progress"][name].as_u64().unwrap())
}

fn skipped(replay: &Value) -> Vec<(&str, u64)> {
    let skipped = replay["skipped"].as_array().unwrap().iter();
    skipped.map(|skip| (text(&skip["reason"]), skip["count"].as_u64().unwrap())).collect()
}

/// Delivers batches, and carries out the runs in between, until no message is left.
async fn to_the_end(world: &World) {
    for _ in 0..100 {
        if world.aws.messages("scheduled").is_empty() {
            return;
        }
        assert_eq!(world.run_scheduled().await, 0);
        world.run_loop(AMPLE).await;
    }
    panic!("the replay does not end: {:?}", world.aws.rows("replays"));
}

/// The events of the replayed runs; each once.
fn replayed(world: &World, automation: &str) -> BTreeSet<String> {
    let runs = world.runs_of(automation).into_iter().filter(|run| run["trigger_type"] == "replay");
    let events: Vec<String> = runs.map(|run| text(&run["event_id"]).to_owned()).collect();
    let distinct: BTreeSet<String> = events.iter().cloned().collect();
    assert_eq!(distinct.len(), events.len(), "an event started an automation twice");
    distinct
}

#[tokio::test]
async fn a_plan_counts_and_starts_nothing_and_a_started_one_replays_each_event_once() {
    let (world, automation, hook) = world().await;
    let ours = events(&world, &hook, 45, &[&automation], "urgent");
    events(&world, &hook, 3, &[], "lunch");
    let plan = plan(&world, &json!({})).await;
    assert_eq!((&plan["status"], &plan["events"], &plan["runs"]), (&json!("planned"), &json!(45), &json!(45)));
    let name = json!("Urgent messages");
    let share = json!({"automation_id": automation, "name": name, "runs": 45, "skipped": 0, "why": null});
    assert_eq!(plan["automations"], json!([share]));
    assert_eq!((&plan["bound"], &plan["waits"], &plan["skipped"]), (&Value::Null, &Value::Null, &json!([])));
    assert_eq!((world.runs_of(&automation).len(), world.aws.messages("scheduled").len()), (0, 0));

    let started = start(&world, &plan).await;
    assert_eq!((&started["status"], &started["started_by"]), (&json!("running"), &json!(world.home.user_id)));
    assert_eq!(start(&world, &plan).await["started_at"], started["started_at"], "a repeated request changes nothing");
    assert_eq!(world.run_scheduled_batch(world.aws.receive("scheduled", 0).unwrap()).await, 0);
    let under_way = shown(&world, &plan).await;
    assert_eq!((&under_way["status"], progress(&under_way)), (&json!("running"), [20, 20, 0, 0]));
    world.run_loop(AMPLE).await;
    to_the_end(&world).await;
    let done = shown(&world, &plan).await;
    assert_eq!((&done["status"], progress(&done)), (&json!("completed"), [45, 45, 0, 0]), "{done}");
    assert_eq!(replayed(&world, &automation), ours.into_iter().collect());
    let run = &world.runs_of(&automation)[0];
    assert_eq!((&run["user_id"], &run["dry_run"]), (&json!(world.home.user_id), &json!(false)));

    let path = format!("/{}/start", text(&plan["id"]));
    world.replays(&world.home, "POST", &path, &Value::Null).await.expect(409);
    world.replays(&world.home, "POST", &path.replace("start", "cancel"), &Value::Null).await.expect(409);
    let listed = world.replays(&world.home, "GET", "", &Value::Null).await.expect(200);
    assert_eq!(listed["items"], json!([done]));
    let entries = world.aws.rows("audit_entries").into_iter().filter(|entry| entry["noun"] == "replay");
    let entries: Vec<Value> = entries.collect();
    assert_eq!(
        (entries.len(), &entries[0]["action"], &entries[0]["details"]["events"]),
        (1, &json!("started"), &json!(45))
    );
}

/// The SDK repeats an update whose answer is lost.
#[tokio::test]
async fn a_lost_answer_of_the_database_ends_no_replay() {
    let (world, automation, hook) = world().await;
    events(&world, &hook, 45, &[&automation], "urgent");
    let plan = plan(&world, &json!({})).await;
    start(&world, &plan).await;
    world.aws.inject(Fault::new("UpdateItem", "replays", Trouble::DropAfter));
    to_the_end(&world).await;
    let done = shown(&world, &plan).await;
    assert_eq!((&done["status"], progress(&done)), (&json!("completed"), [45, 45, 0, 0]), "{done}");
    replayed(&world, &automation);
}

#[tokio::test]
async fn a_filter_covers_what_it_says() {
    let (world, automation, hook) = world().await;
    let quiet = events(&world, &hook, 4, &[], "urgent");
    events(&world, &hook, 2, &[], "lunch");
    let matched = events(&world, &hook, 3, &[&automation], "lunch");
    let of = json!({"automation_id": automation});
    let planned = plan(&world, &of).await;
    assert_eq!(
        (&planned["events"], &planned["runs"]),
        (&json!(9), &json!(7)),
        "an event that started it needs no filter"
    );
    assert_eq!(planned["automations"][0]["skipped"], 2);
    let unmatched = json!({"automation_id": automation, "unmatched": true});
    let planned = plan(&world, &unmatched).await;
    assert_eq!((&planned["events"], &planned["runs"]), (&json!(6), &json!(4)));
    start(&world, &planned).await;
    to_the_end(&world).await;
    let done = shown(&world, &planned).await;
    assert_eq!((progress(&done), skipped(&done)), ([6, 4, 2, 0], vec![("filter", 2)]), "{done}");
    assert_eq!(replayed(&world, &automation), quiet.into_iter().collect());

    // One of the runs has failed, one was cancelled; the third is not kept any more.
    for (event, status) in [(&matched[0], "failed"), (&matched[1], "cancelled")] {
        let run = world.aws.row("events", event).unwrap()["matched"][0]["run_id"].clone();
        let row = world.runs_of(&automation).remove(0);
        let mut row = row.clone();
        (row["id"], row["status"]) = (run, json!(status));
        world.aws.put("automation_runs", &row);
    }
    let failed = plan(&world, &json!({"only_failed": true})).await;
    assert_eq!((&failed["events"], &failed["runs"]), (&json!(1), &json!(1)), "{failed}");
    // A run counts by its last retry.
    let run = world.aws.row("events", &matched[0]).unwrap()["matched"][0]["run_id"].clone();
    let mut run = world.runs_of(&automation).into_iter().find(|row| row["id"] == run).unwrap();
    let mut retry = run.clone();
    (retry["id"], retry["status"]) = (json!(Uuid::now_v7()), json!("completed"));
    run["retried_by"] = retry["id"].clone();
    world.aws.put("automation_runs", &run);
    world.aws.put("automation_runs", &retry);
    assert_eq!(plan(&world, &json!({"only_failed": true})).await["events"], 0);
    retry["status"] = json!("partial_failure");
    world.aws.put("automation_runs", &retry);
    assert_eq!(plan(&world, &json!({"only_failed": true})).await["events"], 1);
    // A redelivery may still begin the runs of an event that is not dispatched.
    let received = events(&world, &hook, 1, &[], "urgent").remove(0);
    world.aws.change("events", &received, json!({"status": "received"}));
    assert_eq!(plan(&world, &unmatched).await["events"], 6);
    world.aws.change("events", &received, json!({"status": "dispatched"}));
    assert_eq!(plan(&world, &unmatched).await["events"], 7);
    for (filter, events) in [
        (json!({"service": "Slack"}), 3),
        (json!({"service": "github"}), 0),
        (json!({"since": "2026-01-01T00:00:01Z"}), 2),
        (json!({"until": "2026-01-01T00:00:02Z"}), 2),
        (json!({"since": "2026-01-01T00:00:01Z", "until": "2026-01-01T00:00:02Z"}), 1),
    ] {
        assert_eq!(plan(&world, &filter).await["events"], events, "{filter}");
    }
    world.replays(&world.home, "POST", "", &json!({"unmatched": true})).await.expect(422);
    let nobodys = json!({"automation_id": Uuid::now_v7()});
    world.replays(&world.home, "POST", "", &nobodys).await.expect(404);
    // An event of another automation's own hook is not for this one.
    let bound = world.pipedream_hook(&Uuid::now_v7().to_string(), "whsk_1").await;
    events(&world, &bound, 2, &[], "urgent");
    assert_eq!(plan(&world, &unmatched).await["events"], 7);
}

#[tokio::test]
async fn deleted_and_inactive_automations_are_skipped_with_the_reason() {
    let (world, automation, hook) = world().await;
    let gone = Uuid::now_v7().to_string();
    let ours = events(&world, &hook, 3, &[&automation, &gone], "urgent");
    let planned = plan(&world, &json!({})).await;
    assert_eq!((&planned["events"], &planned["runs"]), (&json!(3), &json!(3)));
    let lost = planned["automations"].as_array().unwrap().iter().find(|it| it["automation_id"] == gone.as_str());
    let lost = lost.unwrap();
    assert_eq!(
        (&lost["name"], &lost["skipped"], text(&lost["why"])),
        (&Value::Null, &json!(3), "The automation was deleted.")
    );
    world.automation("POST", &format!("/{automation}/pause"), &Value::Null).await.expect(200);
    world.aws.delete("events", &ours[2]);
    start(&world, &planned).await;
    to_the_end(&world).await;
    let done = shown(&world, &planned).await;
    assert_eq!(progress(&done), [2, 0, 5, 0], "{done}");
    assert_eq!(skipped(&done), [("automation_deleted", 2), ("automation_inactive", 2), ("event_gone", 1)]);
    assert!(replayed(&world, &automation).is_empty());
}

#[tokio::test]
async fn an_event_that_cannot_be_replayed_is_a_failure_and_the_others_go_on() {
    let (world, automation, hook) = world().await;
    let ours = events(&world, &hook, 3, &[&automation], "urgent");
    world.aws.change("events", &ours[0], json!({"data": "{"}));
    let planned = plan(&world, &json!({})).await;
    start(&world, &planned).await;
    to_the_end(&world).await;
    let done = shown(&world, &planned).await;
    assert_eq!((&done["status"], progress(&done)), (&json!("completed"), [3, 2, 0, 1]), "{done}");
    let why = "The stored event cannot be read.";
    assert_eq!(done["failures"], json!([{"event_id": ours[0], "automation_id": automation, "why": why}]));
}

#[tokio::test]
async fn an_event_that_is_stored_in_part_is_given_to_no_run_that_acts() {
    let (world, automation, hook) = world().await;
    world.slack_says(&hook, "Ev1", &format!("urgent {}", "word ".repeat(50_000))).await.expect(200);
    assert!(world.runs_of(&automation).is_empty());
    let planned = plan(&world, &json!({"automation_id": automation, "unmatched": true})).await;
    assert_eq!((&planned["events"], &planned["runs"]), (&json!(1), &json!(0)), "{planned}");
    assert!(text(&planned["automations"][0]["why"]).contains("only a part of it is stored"), "{planned}");
    start(&world, &planned).await;
    to_the_end(&world).await;
    let done = shown(&world, &planned).await;
    assert_eq!((progress(&done), skipped(&done)), ([1, 0, 1, 0], vec![("stored_in_part", 1)]), "{done}");

    let path = format!("/api/{}/events/{}/replay", world.home.slug, text(&world.aws.rows("events")[0]["id"]));
    let replay = async |dry_run: bool| {
        let body = json!({"automation_id": automation, "dry_run": dry_run});
        world.send("hooks", &Event::post(&path, &body).user(&world.home.user_id)).await
    };
    let refused = replay(false).await.expect(409);
    assert!(text(&refused["detail"]).contains("only a part of it is stored"), "{refused}");
    assert!(world.runs_of(&automation).is_empty());
    let dry = replay(true).await.expect(202);
    assert!(text(&dry["note"]).contains("stored part"), "{dry}");
}

#[tokio::test]
async fn a_cancelled_replay_starts_no_further_batch() {
    let (world, automation, hook) = world().await;
    events(&world, &hook, 45, &[&automation], "urgent");
    let plan = plan(&world, &json!({})).await;
    start(&world, &plan).await;
    assert_eq!(world.run_scheduled_batch(world.aws.receive("scheduled", 0).unwrap()).await, 0);
    let path = format!("/{}/cancel", text(&plan["id"]));
    for _again in 0..2 {
        let cancelled = world.replays(&world.home, "POST", &path, &Value::Null).await.expect(200);
        assert_eq!((&cancelled["status"], progress(&cancelled)), (&json!("cancelled"), [20, 20, 0, 0]));
    }
    to_the_end(&world).await;
    assert_eq!(replayed(&world, &automation).len(), 20);
    let refused = world.replays(&world.home, "POST", &path.replace("cancel", "start"), &Value::Null).await.expect(409);
    assert!(text(&refused["detail"]).contains("cancelled"), "{refused}");
}

/// Killed at each write, and delivered again, or twice at once.
#[tokio::test]
async fn a_batch_that_comes_again_starts_nothing_twice() {
    for (action, table) in [
        ("TransactWriteItems", "automation_runs"),
        ("UpdateItem", "idempotency"),
        ("SendMessage", "runs"),
        ("UpdateItem", "replays"),
        ("SendMessage", "scheduled"),
    ] {
        let (world, automation, hook) = world().await;
        events(&world, &hook, 45, &[&automation], "urgent");
        let plan = plan(&world, &json!({})).await;
        start(&world, &plan).await;
        for skip in [0, 3] {
            world.aws.inject(Fault::throttled(action, table).after(skip).times(4));
            world.run_scheduled().await;
            world.aws.clear_faults();
        }
        // The message of a saved batch is taken for lost after a minute.
        while let Some(batch) = world.aws.receive("scheduled", 900) {
            world.aws.change("replays", text(&plan["id"]), json!({"next_at": "2026-01-01T00:00:00.000Z"}));
            world.run_scheduled_batch(batch).await;
            world.run_loop(AMPLE).await;
        }
        let done = shown(&world, &plan).await;
        assert_eq!(
            (&done["status"], progress(&done)),
            (&json!("completed"), [45, 45, 0, 0]),
            "{action} {table}: {done}"
        );
        assert_eq!(replayed(&world, &automation).len(), 45, "{action} {table}");
    }
    let (world, automation, hook) = world().await;
    events(&world, &hook, 30, &[&automation], "urgent");
    let plan = plan(&world, &json!({})).await;
    for _again in 0..4 {
        start(&world, &plan).await;
    }
    to_the_end(&world).await;
    assert_eq!(progress(&shown(&world, &plan).await), [30, 30, 0, 0]);
    assert_eq!(replayed(&world, &automation).len(), 30);
}

#[tokio::test]
async fn a_replay_waits_below_the_limit_of_runs_and_loses_none() {
    tests::within_one_hour().await;
    let (world, automation, hook) = world().await;
    world.aws.change("automations", &automation, json!({"quotas": {"runs_per_hour": 8}}));
    let ours = events(&world, &hook, 10, &[&automation], "urgent");
    let plan = plan(&world, &json!({})).await;
    start(&world, &plan).await;
    assert_eq!(world.run_scheduled().await, 0);
    let waiting = shown(&world, &plan).await;
    assert_eq!((&waiting["status"], progress(&waiting)), (&json!("running"), [6, 6, 0, 0]), "{waiting}");
    assert_eq!(waiting["waits"]["automation_id"], automation.as_str());
    assert!(text(&waiting["waits"]["why"]).contains("6 of its 8 runs an hour"), "{waiting}");
    // Too early, it waits again; and a new event still has room.
    assert_eq!(world.run_scheduled_batch(world.aws.receive("scheduled", 900).unwrap()).await, 0);
    assert_eq!(shown(&world, &plan).await["progress"], waiting["progress"]);
    world.slack_says(&hook, "Ev1", "urgent").await.expect(200);
    let live = world.runs_of(&automation).into_iter().filter(|run| run["trigger_type"] == "webhook");
    assert_eq!(live.map(|run| run["status"].clone()).collect::<Vec<_>>(), ["queued"]);
    // The next hour.
    world.run_loop(AMPLE).await;
    for count in world.aws.rows("idempotency").iter().filter(|row| text(&row["id"]).contains("#runs:")) {
        world.aws.delete("idempotency", text(&count["id"]));
    }
    world.aws.change("replays", text(&plan["id"]), json!({"next_at": "2026-01-01T00:00:00.000Z"}));
    assert_eq!(world.run_scheduled_batch(world.aws.receive("scheduled", 900).unwrap()).await, 0);
    let done = shown(&world, &plan).await;
    assert_eq!((&done["status"], progress(&done), &done["waits"]), (&json!("completed"), [10, 10, 0, 0], &Value::Null));
    assert_eq!(replayed(&world, &automation), ours.into_iter().collect());
    assert!(world.runs_of(&automation).iter().all(|run| run["status"] != "run_limit"));
}

#[tokio::test]
async fn a_replay_waits_for_its_runs_to_begin_and_for_another_replay() {
    let (world, automation, hook) = world().await;
    events(&world, &hook, 30, &[&automation], "urgent");
    let (one, two) = (plan(&world, &json!({})).await, plan(&world, &json!({})).await);
    start(&world, &one).await;
    for _ in 0..3 {
        assert_eq!(world.run_scheduled().await, 0);
    }
    let waiting = shown(&world, &one).await;
    assert_eq!((progress(&waiting), &waiting["waits"]["automation_id"]), ([20, 20, 0, 0], &Value::Null));
    assert!(text(&waiting["waits"]["why"]).contains("have yet to begin"), "{waiting}");
    let path = format!("/{}/start", text(&two["id"]));
    let refused = world.replays(&world.home, "POST", &path, &Value::Null).await.expect(409);
    assert!(text(&refused["detail"]).contains(text(&one["id"])), "{refused}");
    world.run_loop(AMPLE).await;
    to_the_end(&world).await;
    assert_eq!(progress(&shown(&world, &one).await), [30, 30, 0, 0]);
    // Each plan is a cause of its own.
    start(&world, &two).await;
    to_the_end(&world).await;
    assert_eq!(world.runs_of(&automation).len(), 60);
}

#[tokio::test]
async fn an_expired_plan_and_one_of_another_organization_start_nothing() {
    let (world, automation, hook) = world().await;
    events(&world, &hook, 2, &[&automation], "urgent");
    let plan = plan(&world, &json!({})).await;
    for (method, path) in [("GET", ""), ("POST", "/start"), ("POST", "/cancel")] {
        let path = format!("/{}{path}", text(&plan["id"]));
        world.replays(&world.other, method, &path, &Value::Null).await.expect(404);
    }
    assert_eq!(world.replays(&world.other, "GET", "", &Value::Null).await.expect(200)["items"], json!([]));
    world.aws.change("replays", text(&plan["id"]), json!({"start_before": "2026-01-01T00:00:00.000Z"}));
    assert_eq!(shown(&world, &plan).await["status"], "expired");
    for path in ["start", "cancel"] {
        let path = format!("/{}/{path}", text(&plan["id"]));
        let refused = world.replays(&world.home, "POST", &path, &Value::Null).await.expect(409);
        assert!(text(&refused["detail"]).contains("expired"), "{refused}");
    }
    world.aws.change("replays", text(&plan["id"]), json!({"start_before": FAR, "expires_at": 1}));
    world.replays(&world.home, "POST", &format!("/{}/start", text(&plan["id"])), &Value::Null).await.expect(404);
    assert!(world.aws.messages("scheduled").is_empty() && world.runs_of(&automation).is_empty());
}

#[tokio::test]
async fn a_plan_covers_the_oldest_events_up_to_a_bound_and_says_so() {
    let (mut world, automation, hook) = world().await;
    world.process.hooks.event_replays.most = 5;
    let ours = events(&world, &hook, 12, &[&automation], "urgent");
    let first = plan(&world, &json!({})).await;
    assert_eq!(
        (&first["events"], &first["bound"]["until"]),
        (&json!(5), &json!("2026-01-01T00:00:05.000Z")),
        "{first}"
    );
    assert!(text(&first["bound"]["why"]).contains("since = 2026-01-01T00:00:05.000Z"), "{first}");
    start(&world, &first).await;
    to_the_end(&world).await;
    assert_eq!(replayed(&world, &automation), ours[..5].iter().cloned().collect());
    let rest = plan(&world, &json!({"since": first["bound"]["until"], "until": "2026-01-01T00:00:08Z"})).await;
    assert_eq!((&rest["events"], &rest["bound"]), (&json!(3), &Value::Null));
}
