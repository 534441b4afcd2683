//! Scheduled automations: one occurrence at a time at Scheduler, one run for each.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test says what is wrong and stops")]

use std::{sync::LazyLock, time::Duration};

use serde_json::{Value, json};
use shared::models::Timestamp;
use tests::{Fault, Trouble, World, automation_event};

/// After everything that a test has scheduled.
fn ages() -> Timestamp {
    Timestamp::now().plus(Duration::from_secs(100 * 366 * 24 * 3_600))
}

fn in_hours(hours: i64) -> Timestamp {
    Timestamp::from_millis(Timestamp::now().as_millis() + hours * 3_600_000)
}

fn recurring(config: &Value) -> Value {
    json!({
        "name": "Digest", "trigger_type": "schedule_recurring", "trigger_config": config, "prompt": "Sum up", "tools": [],
    })
}

/// Due in five to six hours: an occurrence of the next minutes goes to the queue, and stands at no Scheduler.
fn daily() -> Value {
    static TIME_OF_DAY: LazyLock<String> =
        LazyLock::new(|| format!("{:02}:00", (Timestamp::now().as_seconds() / 3_600 + 6) % 24));
    recurring(&json!({"interval": "daily", "time_of_day": *TIME_OF_DAY, "timezone": "UTC"}))
}

fn once(at: Timestamp) -> Value {
    json!({
        "name": "Reminder", "trigger_type": "schedule_once", "trigger_config": {"run_at": at}, "prompt": "Remind", "tools": [],
    })
}

/// Deploys a definition and activates it; gives the automation's id.
async fn activated(world: &World, definition: &Value) -> String {
    let saved = world.deploy(definition).await.expect(201);
    let id = saved["automation"]["id"].as_str().unwrap().to_owned();
    activate(world, &id).await;
    id
}

async fn activate(world: &World, id: &str) {
    world.automation("POST", &format!("/{id}/activate"), &json!({"version": 1})).await.expect(200);
}

async fn pause(world: &World, id: &str) {
    world.automation("POST", &format!("/{id}/pause"), &Value::Null).await.expect(200);
}

async fn shown(world: &World, id: &str) -> Value {
    world.automation("GET", &format!("/{id}"), &Value::Null).await.expect(200)
}

fn row(world: &World, id: &str) -> Value {
    world.aws.row("schedules", id).unwrap_or_default()
}

/// The moments for which runs were started, in order.
fn runs(world: &World, id: &str) -> Vec<String> {
    let rows = world.aws.rows("automation_runs");
    let of = rows.iter().filter(|row| row["automation_id"] == id);
    let mut all: Vec<String> = of.map(|row| row["scheduled_for"].as_str().unwrap().to_owned()).collect();
    all.sort();
    all
}

fn message(world: &World, id: &str, at: &str) -> String {
    json!({"organization_id": world.home.organization_id, "automation_id": id, "scheduled_for": at}).to_string()
}

/// The occurrence that was to come was to come then.
fn was_due(world: &World, id: &str, at: Timestamp) {
    world.aws.change("schedules", id, json!({"next_run_at": at}));
}

/// The only version's moment is over.
fn is_over(world: &World, id: &str) {
    let mut version = world.aws.rows("automation_versions").into_iter().find(|row| row["automation_id"] == id).unwrap();
    let mut definition: Value = serde_json::from_str(version["definition"].as_str().unwrap()).unwrap();
    definition["trigger_config"]["run_at"] = json!(in_hours(-1));
    version["definition"] = json!(definition.to_string());
    world.aws.put("automation_versions", &version);
}

#[tokio::test]
async fn an_occurrence_stands_at_scheduler_runs_once_however_often_it_fires_and_makes_the_next() {
    let world = World::start().await;
    let id = activated(&world, &daily()).await;
    let schedules = world.aws.schedules();
    assert_eq!(schedules.len(), 1);
    let (first, sent) = schedules[0].clone();
    assert_eq!(
        sent,
        json!({"organization_id": world.home.organization_id, "automation_id": id, "scheduled_for": first})
    );
    assert!(first > Timestamp::now() && first < in_hours(25));
    assert_eq!(shown(&world, &id).await["next_run_at"], json!(first));
    assert!(world.aws.messages("scheduled").is_empty());

    assert_eq!(world.aws.fire_schedules(ages()), 1);
    // Scheduler delivers at least once.
    world.aws.post("scheduled", &sent.to_string());
    assert_eq!(world.run_scheduled().await, 0);
    world.aws.post("scheduled", &sent.to_string());
    assert_eq!(world.run_scheduled().await, 0);
    assert_eq!(runs(&world, &id), [first.to_string()]);
    let run = &world.aws.rows("automation_runs").into_iter().find(|row| row["automation_id"] == id.as_str()).unwrap();
    assert_eq!((&run["trigger_type"], &run["automation_version"]), (&json!("schedule_recurring"), &json!(1)));
    // A message for a run that waits already does no harm.
    assert!(world.aws.messages("runs").iter().all(|message| message["run_id"] == run["id"]));

    let schedules = world.aws.schedules();
    assert_eq!(schedules.len(), 1, "{schedules:?}");
    let hours = (schedules[0].0.as_millis() - first.as_millis()) / 3_600_000;
    assert!((23..=25).contains(&hours), "the next day at the same time of the day");
    assert_eq!(shown(&world, &id).await["next_run_at"], json!(schedules[0].0));
    assert!(world.aws.rows("intents").is_empty());
}

#[tokio::test]
async fn the_clock_of_the_rule_decides_and_not_the_last_occurrence() {
    let world = World::start().await;
    let config = json!({"interval": "daily", "time_of_day": "02:30", "timezone": "Europe/Berlin"});
    let id = activated(&world, &recurring(&config)).await;
    // 02:30 of the 24th of March 2040; on the 25th there is none, and then it is an hour earlier in UTC.
    for (at, next) in [
        ("2040-03-24T01:30:00.000Z", "2040-03-26T00:30:00.000Z"),
        // In October it comes twice, and counts once.
        ("2040-10-28T00:30:00.000Z", "2040-10-29T01:30:00.000Z"),
    ] {
        was_due(&world, &id, at.parse().unwrap());
        world.aws.post("scheduled", &message(&world, &id, at));
        assert_eq!(world.run_scheduled().await, 0);
        assert_eq!(row(&world, &id)["next_run_at"], next);
    }
    assert_eq!(runs(&world, &id), ["2040-03-24T01:30:00.000Z", "2040-10-28T00:30:00.000Z"]);
}

#[tokio::test]
async fn an_occurrence_of_a_paused_deleted_or_changed_automation_does_not_run() {
    let world = World::start().await;
    let id = activated(&world, &daily()).await;
    let (first, sent) = world.aws.schedules().remove(0);
    pause(&world, &id).await;
    assert_eq!((world.aws.schedules().len(), shown(&world, &id).await.get("next_run_at")), (0, Some(&Value::Null)));
    // It had fired already.
    world.aws.post("scheduled", &sent.to_string());
    assert_eq!(world.run_scheduled().await, 0);
    assert_eq!(runs(&world, &id), [""; 0]);
    activate(&world, &id).await;
    assert_eq!(world.aws.schedules()[0].0, first, "the same occurrence");

    // Another version, another time.
    let etag = format!("\"{}\"", shown(&world, &id).await["revision"]);
    let mut second = daily();
    second["trigger_config"]["time_of_day"] = json!("10:30");
    world.put_automation(&id, &etag, &second).await.expect(200);
    assert_eq!(world.aws.schedules()[0].0, first, "until it is activated");
    world.automation("POST", &format!("/{id}/activate"), &json!({"version": 2})).await.expect(200);
    let schedules = world.aws.schedules();
    assert_eq!((schedules.len(), schedules[0].0 == first), (1, false));
    world.aws.post("scheduled", &sent.to_string());
    assert_eq!(world.run_scheduled().await, 0);
    assert_eq!(runs(&world, &id), [""; 0]);
    world.automation("POST", &format!("/{id}/rollback"), &json!({"version": 1})).await.expect(200);
    assert_eq!(world.aws.schedules()[0].0, first);

    // A version that is not run by the clock.
    let etag = format!("\"{}\"", shown(&world, &id).await["revision"]);
    let by_hand = json!({"name": "Digest", "trigger_type": "manual", "prompt": "Sum up", "tools": []});
    world.put_automation(&id, &etag, &by_hand).await.expect(200);
    world.automation("POST", &format!("/{id}/activate"), &json!({"version": 3})).await.expect(200);
    assert_eq!((world.aws.schedules().len(), world.aws.rows("schedules").len()), (0, 0));
    activate(&world, &id).await;

    world.automation("DELETE", &format!("/{id}"), &Value::Null).await.expect(204);
    assert_eq!((world.aws.schedules().len(), world.aws.rows("schedules").len()), (0, 0));
    world.aws.post("scheduled", &sent.to_string());
    assert_eq!(world.run_scheduled().await, 0);
    assert_eq!(world.aws.rows("automation_runs").len(), 0);
    assert!(world.aws.rows("intents").is_empty());
}

#[tokio::test]
async fn occurrences_of_a_pause_run_once_unless_missed_is_skip() {
    let world = World::start().await;
    for (missed, caught_up) in [("run_once", true), ("skip", false)] {
        let config = json!({"interval": "5min", "missed": missed});
        let id = activated(&world, &recurring(&config)).await;
        pause(&world, &id).await;
        // For two hours.
        let due = in_hours(-2);
        was_due(&world, &id, due);
        activate(&world, &id).await;
        assert_eq!(world.run_scheduled().await, 0);
        let expected = if caught_up { vec![due.to_string()] } else { Vec::new() };
        assert_eq!(runs(&world, &id), expected, "{missed}");
        let next: Timestamp = row(&world, &id)["next_run_at"].as_str().unwrap().parse().unwrap();
        assert!(next > Timestamp::now() && next <= Timestamp::now().plus(Duration::from_secs(300)));
        // Nothing was missed by a short pause.
        pause(&world, &id).await;
        activate(&world, &id).await;
        assert_eq!(row(&world, &id)["next_run_at"], json!(next));
        pause(&world, &id).await;
    }
}

#[tokio::test]
async fn a_single_run_is_one_run_also_if_it_fails_and_leaves_nothing() {
    let world = World::start().await;
    let id = activated(&world, &once(in_hours(3))).await;
    let (_, sent) = world.aws.schedules().remove(0);
    world.aws.fire_schedules(ages());
    assert_eq!(world.run_scheduled().await, 0);
    let run = world.aws.rows("automation_runs").into_iter().find(|row| row["automation_id"] == id.as_str()).unwrap();
    assert_eq!((&run["trigger_type"], &run["scheduled_for"]), (&json!("schedule_once"), &sent["scheduled_for"]));
    let mut failed = run.clone();
    failed["status"] = json!("failed");
    failed["started_at"] = failed["created_at"].clone();
    world.aws.put("automation_runs", &failed);
    let nothing_left = || {
        assert_eq!((world.aws.schedules().len(), world.aws.messages("scheduled").len()), (0, 0));
        assert_eq!(row(&world, &id).get("due"), None);
        assert_eq!(runs(&world, &id).len(), 1);
    };
    nothing_left();
    // Not five minutes later, not if it is brought again, and not if it is activated again.
    world.aws.post("scheduled", &sent.to_string());
    for _ in 0..2 {
        world.settle().await;
        assert_eq!(world.run_scheduled().await, 0);
        nothing_left();
    }
    pause(&world, &id).await;
    activate(&world, &id).await;
    assert_eq!(world.run_scheduled().await, 0);
    nothing_left();
    assert_eq!(shown(&world, &id).await.get("next_run_at"), Some(&Value::Null));
}

#[tokio::test]
async fn a_single_run_that_came_while_it_was_paused_is_caught_up() {
    let world = World::start().await;
    for (missed, count) in [("run_once", 1), ("skip", 0)] {
        let mut definition = once(in_hours(1));
        definition["trigger_config"]["missed"] = json!(missed);
        let id = activated(&world, &definition).await;
        pause(&world, &id).await;
        is_over(&world, &id);
        // The schedule learns the moment, and its message arrives during the pause.
        activate(&world, &id).await;
        pause(&world, &id).await;
        assert!(world.aws.receive("scheduled", 60).is_some());
        activate(&world, &id).await;
        assert_eq!(world.run_scheduled().await, 0);
        assert_eq!(runs(&world, &id).len(), count, "{missed}");
    }
    // A version that was never activated cannot be activated after its moment.
    let saved = world.deploy(&once(in_hours(1))).await.expect(201);
    let id = saved["automation"]["id"].as_str().unwrap();
    is_over(&world, id);
    let refused = world.automation("POST", &format!("/{id}/activate"), &json!({"version": 1})).await.expect(422);
    assert_eq!(refused["diagnostics"][0]["code"], "in_the_past");
}

#[tokio::test]
async fn the_sweep_finds_missed_occurrences() {
    let world = World::start().await;
    let (late, paused) = (activated(&world, &daily()).await, activated(&world, &once(in_hours(2))).await);
    pause(&world, &paused).await;
    // Scheduler lost it, and it is three minutes ago.
    world.aws.fire_schedules(ages());
    while world.aws.receive("scheduled", 60).is_some() {}
    let due = Timestamp::from_millis(Timestamp::now().as_millis() - 180_000);
    for id in [&late, &paused] {
        was_due(&world, id, due);
    }
    world.settle().await;
    world.settle().await;
    assert_eq!(world.aws.messages("scheduled").len(), 2, "twice the same");
    assert_eq!(world.run_scheduled().await, 0);
    assert_eq!((runs(&world, &late), runs(&world, &paused)), (vec![due.to_string()], vec![]));
    assert_eq!(world.aws.schedules().len(), 1, "the next one");
    // Two minutes is not late.
    was_due(&world, &late, Timestamp::from_millis(Timestamp::now().as_millis() - 60_000));
    world.settle().await;
    assert!(world.aws.messages("scheduled").is_empty());
}

#[tokio::test]
async fn the_change_stands_when_scheduler_is_out_of_reach_and_settle_makes_it_follow() {
    let world = World::start().await;
    let saved = world.deploy(&daily()).await.expect(201);
    let id = saved["automation"]["id"].as_str().unwrap();
    world.aws.inject(Fault::new("CreateSchedule", "*", Trouble::Error("ThrottlingException")).times(6));
    let active = world.automation("POST", &format!("/{id}/activate"), &json!({"version": 1})).await.expect(200);
    assert_eq!(active["automation"]["status"], "active");
    assert_eq!(world.aws.faults_left(), 0);
    assert_eq!((world.aws.schedules().len(), world.aws.rows("intents").len()), (0, 1));
    assert_eq!(world.aws.messages("settle").len(), 1, "woken");
    world.later();
    let report = world.settle().await;
    assert_eq!(report["settled"][0]["change"], "automation_trigger", "{report}");
    assert_eq!((world.aws.schedules().len(), world.aws.rows("intents").len()), (1, 0));
    // A hiccup is put right at once.
    pause(&world, id).await;
    world.aws.inject(Fault::new("CreateSchedule", "*", Trouble::Error("ThrottlingException")).times(3));
    activate(&world, id).await;
    assert_eq!((world.aws.schedules().len(), world.aws.rows("intents").len()), (1, 0));
    // If the next occurrence cannot be made, the message comes again for the same run.
    world.aws.inject(Fault::new("CreateSchedule", "*", Trouble::Error("ThrottlingException")).times(99));
    world.aws.fire_schedules(ages());
    let batch = world.aws.receive("scheduled", 0).unwrap();
    assert_eq!(world.run_scheduled_batch(batch).await, 1);
    world.aws.clear_faults();
    assert_eq!(world.run_scheduled().await, 0);
    assert_eq!((runs(&world, id).len(), world.aws.schedules().len()), (1, 1));
}

// ------------------------------------------------------------------------------------------------------------- crashes

/// The changes that may be killed.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Change {
    Activate,
    Pause,
    Resume,
    RollBack,
    Delete,
    Fire,
}

/// Whether tables and Scheduler say the same, and everything that is to come will.
fn agree(world: &World) -> Result<(), String> {
    let schedules = world.aws.schedules();
    for automation in world.aws.rows("automations") {
        let id = automation["id"].as_str().unwrap();
        let schedule = row(world, id);
        let is_active = automation["status"] == "active" && automation["deleting"] != true;
        if schedule.get("due").is_some() != is_active {
            return Err(format!("{automation} and {schedule}"));
        }
        let at =
            schedules.iter().filter(|(at, sent)| sent["automation_id"] == id && json!(at) == schedule["next_run_at"]);
        if at.count() != usize::from(is_active) {
            return Err(format!("{schedule} and {schedules:?}"));
        }
        if is_active && schedule["automation_version"] != automation["active_version"] {
            return Err(format!("{automation} and {schedule}"));
        }
    }
    if world.aws.rows("schedules").len() > world.aws.rows("automations").len() {
        return Err("a schedule without an automation".to_owned());
    }
    Ok(())
}

async fn prepare(world: &World, change: Change) -> String {
    let saved = world.deploy(&daily()).await.expect(201);
    let id = saved["automation"]["id"].as_str().unwrap().to_owned();
    if change != Change::Activate {
        activate(world, &id).await;
    }
    if change == Change::Resume {
        pause(world, &id).await;
    }
    if change == Change::RollBack {
        let mut second = daily();
        second["trigger_config"]["time_of_day"] = json!("10:30");
        world.put_automation(&id, "\"2\"", &second).await.expect(200);
        world.automation("POST", &format!("/{id}/activate"), &json!({"version": 2})).await.expect(200);
    }
    id
}

async fn carry_out(world: &World, change: Change, id: &str) {
    let (method, path, body) = match change {
        Change::Activate | Change::Resume => ("POST", "/activate", json!({"version": 1})),
        Change::RollBack => ("POST", "/rollback", json!({"version": 1})),
        Change::Pause => ("POST", "/pause", Value::Null),
        Change::Delete => ("DELETE", "", Value::Null),
        Change::Fire => {
            world.aws.fire_schedules(ages());
            world.run_scheduled().await;
            return;
        }
    };
    let answer = world.send("deploy", &automation_event(&world.home, method, &format!("/{id}{path}"), &body)).await;
    assert!(answer.status < 500, "{change:?}: {}", answer.body);
}

/// Kills the change at each of its steps, has it settled, and does it again; gives how often.
async fn walk(change: Change) -> u32 {
    let mut kills = 0;
    for trouble in [Trouble::StallBefore, Trouble::StallAfter] {
        for step in 0.. {
            let world = World::start().await;
            let id = prepare(&world, change).await;
            let sent = world.aws.schedules().first().map(|(_, sent)| sent.to_string());
            world.aws.inject(Fault::new("*", "*", trouble.clone()).after(step));
            let died = tokio::select! {
                biased;
                () = world.aws.stalled() => true,
                () = carry_out(&world, change, &id) => false,
            };
            world.aws.clear_faults();
            if !died {
                agree(&world).unwrap_or_else(|difference| panic!("{change:?} when nothing kills it: {difference}"));
                break;
            }
            kills += 1;
            world.later();
            if let (Change::Fire, Some(sent)) = (change, &sent) {
                world.aws.post("scheduled", sent);
                assert_eq!(world.run_scheduled().await, 0);
            }
            let report = world.settle().await;
            assert_eq!(report["left"], json!([]), "{change:?} {trouble:?} {step}: {report}");
            agree(&world).unwrap_or_else(|difference| panic!("{change:?} {trouble:?} {step}: {difference}"));
            assert_eq!(world.settle().await["settled"], json!([]));
            if change == Change::Fire {
                assert_eq!(runs(&world, &id).len(), 1, "{trouble:?} {step}");
                assert_eq!(world.aws.rows("automation_runs").len(), 2, "its row and its plan");
                continue;
            }
            carry_out(&world, change, &id).await;
            agree(&world).unwrap_or_else(|difference| panic!("{change:?} {trouble:?} {step} and again: {difference}"));
            assert!(world.aws.rows("intents").is_empty());
        }
    }
    kills
}

#[tokio::test]
async fn an_activation_that_dies_anywhere_is_settled() {
    assert!(Box::pin(walk(Change::Activate)).await > 20);
}

#[tokio::test]
async fn a_pause_that_dies_anywhere_is_settled() {
    assert!(Box::pin(walk(Change::Pause)).await > 15);
}

#[tokio::test]
async fn a_resumption_that_dies_anywhere_is_settled() {
    assert!(Box::pin(walk(Change::Resume)).await > 20);
}

#[tokio::test]
async fn a_roll_back_that_dies_anywhere_is_settled() {
    assert!(Box::pin(walk(Change::RollBack)).await > 20);
}

#[tokio::test]
async fn a_deletion_that_dies_anywhere_is_settled() {
    assert!(Box::pin(walk(Change::Delete)).await > 15);
}

#[tokio::test]
async fn an_occurrence_that_dies_anywhere_is_one_run_and_has_its_next() {
    assert!(Box::pin(walk(Change::Fire)).await > 15);
}

#[tokio::test]
async fn a_cron_schedule_follows_its_zone_skips_excluded_days_and_shows_its_next_occurrences() {
    let world = World::start().await;
    let config = json!({
        "cron": ["30 2 * * *", "0 9 26 3 *"], "timezone": "Europe/Berlin", "not_on": ["2040-03-27", "12-25"],
    });
    let mut dry = recurring(&config);
    dry["dry_run"] = json!(true);
    let answer = world.deploy(&dry).await.expect(200);
    let shown: Vec<&str> =
        answer["next_occurrences"].as_array().unwrap().iter().map(|at| at.as_str().unwrap()).collect();
    assert_eq!((shown.len(), answer.get("automation")), (5, None), "{answer}");
    let moments: Vec<Timestamp> = shown.iter().map(|at| at.parse().unwrap()).collect();
    assert!(moments.is_sorted() && moments[0] > Timestamp::now(), "{answer}");
    assert!(shown.iter().all(|at| !at.contains("-12-25T") && at.contains(":00+0")), "{answer}");
    assert!(world.aws.rows("automations").is_empty());

    let id = activated(&world, &recurring(&config)).await;
    assert_eq!(row(&world, &id)["next_run_at"].as_str().map(|at| at.parse().unwrap()), Some(moments[0]));
    for (at, next) in [
        // 02:30 does not exist on the 25th of March 2040, and the 27th is excluded.
        ("2040-03-24T01:30:00.000Z", "2040-03-26T00:30:00.000Z"),
        ("2040-03-26T00:30:00.000Z", "2040-03-26T07:00:00.000Z"),
        ("2040-03-26T07:00:00.000Z", "2040-03-28T00:30:00.000Z"),
        ("2040-10-28T00:30:00.000Z", "2040-10-29T01:30:00.000Z"),
    ] {
        was_due(&world, &id, at.parse().unwrap());
        world.aws.post("scheduled", &message(&world, &id, at));
        assert_eq!(world.run_scheduled().await, 0);
        assert_eq!(row(&world, &id)["next_run_at"], next);
    }
    assert_eq!(runs(&world, &id).len(), 4);

    let never = world.deploy(&recurring(&json!({"cron": "0 9 31 4,6,9,11 *", "timezone": "UTC"}))).await.expect(422);
    assert_eq!((&never["diagnostics"][0]["code"], never.get("next_occurrences")), (&json!("never_occurs"), None));
}
