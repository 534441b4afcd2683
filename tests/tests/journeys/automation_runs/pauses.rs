//! Pauses: a run lets go until a time.

use std::time::Duration;

use serde_json::{Value, json};
use shared::models::{AutomationRun, RunStatus, Timestamp};
use tests::{
    Fault, Trouble, World,
    automation::{AMPLE, whole},
};

use super::{books, entered, post, shown};

fn paused(wait: &Value) -> Value {
    json!([post("before", "one"), {"id": "pause", "wait": wait}, post("after", "two")])
}

async fn begun(world: &World, wait: &Value) -> AutomationRun {
    let automation = world.activate(&world.manual(&paused(wait))).await;
    world.start_automation(&automation, "once", &json!({})).await
}

/// As if the time of the pause had come.
fn time_comes(world: &World) {
    let mut row = world.aws.rows("automation_runs").into_iter().find(|row| row["part"] == "run").unwrap();
    row["pause"]["until"] = json!("2026-01-01T00:00:00.000Z");
    world.aws.put("automation_runs", &row);
}

/// Fires the schedules of the next days; returns their number.
async fn fired(world: &World, days: u64) -> usize {
    let fired = world.aws.fire_schedules(Timestamp::now().plus(Duration::from_secs(days * 24 * 60 * 60)));
    assert_eq!(world.run_scheduled().await, 0);
    fired
}

async fn status(world: &World, run: &AutomationRun) -> RunStatus {
    whole(world, run.id).await.run.status
}

#[tokio::test]
async fn a_short_pause_waits_for_its_message() {
    let (world, books) = books().await;
    let run = begun(&world, &json!({"minutes": 10})).await;
    assert_eq!(world.run_loop(AMPLE).await, 0);
    assert_eq!((status(&world, &run).await, entered(&books)), (RunStatus::Running, vec!["one".to_owned()]));
    let waits = &shown(&world, &run).await["waits_for"];
    assert_eq!((&waits["what"], &waits["id"]), (&json!("time"), &json!("pause")));
    // Messages that come early come again.
    world.deliver_runs().await;
    assert_eq!(entered(&books).len(), 1);
    assert!(!world.aws.messages("runs").is_empty());
    time_comes(&world);
    world.deliver_runs().await;
    assert_eq!(
        (status(&world, &run).await, entered(&books)),
        (RunStatus::Completed, vec!["one".to_owned(), "two".to_owned()])
    );
    let shown = shown(&world, &run).await;
    assert_eq!((&shown["actions"][1]["kind"], &shown["actions"][1]["status"]), (&json!("wait"), &json!("succeeded")));
    assert_eq!(shown["waits_for"], Value::Null);
}

/// No message is queued meanwhile; a schedule wakes the run.
#[tokio::test]
async fn a_long_pause_costs_nothing_and_is_ended_by_a_schedule() {
    let (world, books) = books().await;
    let run = begun(&world, &json!({"minutes": 60 * 24 * 20})).await;
    world.deliver_runs().await;
    assert_eq!((world.aws.messages("runs").len(), entered(&books).len()), (0, 1));
    assert_eq!(fired(&world, 19).await, 0);
    assert_eq!(world.aws.messages("runs").len(), 0, "it is not time yet");
    time_comes(&world);
    assert_eq!(fired(&world, 21).await, 1);
    world.deliver_runs().await;
    assert_eq!((status(&world, &run).await, entered(&books).len()), (RunStatus::Completed, 2));
    // It is kept for longer than it waits.
    let kept = whole(&world, run.id).await.run.expires_at;
    assert!(kept > Timestamp::now().as_seconds() + 60 * 60 * 24 * 20);
}

/// A stack that was deleted takes its schedules with it; its run gets a message from the next one.
#[tokio::test]
async fn a_long_pause_whose_schedule_is_lost_gets_another_at_the_next_message() {
    let (world, books) = books().await;
    let run = begun(&world, &json!({"minutes": 60 * 24})).await;
    world.deliver_runs().await;
    let schedules = world.aws.schedules();
    assert_eq!(schedules.len(), 1);
    assert_eq!(world.aws.fire_schedules(Timestamp::now().plus(Duration::from_secs(2 * 24 * 60 * 60))), 1);
    while world.aws.receive("scheduled", 0).is_some() {}
    let message = schedules[0].1.to_string();
    // The second message finds the schedule there.
    for _message in 0..2 {
        world.aws.post("runs", &message);
        assert_eq!(world.run_loop(AMPLE).await, 0);
        assert_eq!(world.aws.schedules(), schedules);
    }
    assert_eq!(entered(&books).len(), 1, "it is not time yet");
    time_comes(&world);
    assert_eq!(fired(&world, 2).await, 1);
    world.deliver_runs().await;
    assert_eq!((status(&world, &run).await, entered(&books).len()), (RunStatus::Completed, 2));
}

/// The run has let go by then: the message comes again.
#[tokio::test]
async fn a_pause_whose_schedule_scheduler_refuses_is_repeated_with_the_message() {
    let (world, books) = books().await;
    let run = begun(&world, &json!({"minutes": 600})).await;
    world.aws.inject(Fault::new("CreateSchedule", "*", Trouble::Error("ThrottlingException")).times(9));
    let batch = world.aws.receive("runs", 0).unwrap();
    assert_eq!(world.run_loop_batch(batch, AMPLE).await, 1);
    world.aws.clear_faults();
    assert!(world.aws.schedules().is_empty());
    let batch = world.aws.receive("runs", 900).unwrap();
    assert_eq!(world.run_loop_batch(batch, AMPLE).await, 0);
    assert_eq!((world.aws.schedules().len(), entered(&books).len()), (1, 1));
    time_comes(&world);
    assert_eq!(fired(&world, 1).await, 1);
    world.deliver_runs().await;
    assert_eq!((status(&world, &run).await, entered(&books).len()), (RunStatus::Completed, 2));
}

#[tokio::test]
async fn a_run_is_cancelled_during_its_pause() {
    let (world, books) = books().await;
    let run = begun(&world, &json!({"minutes": 600})).await;
    world.deliver_runs().await;
    assert_eq!(world.cancel_run(&run.id.to_string()).await.status, 200);
    assert_eq!(status(&world, &run).await, RunStatus::Cancelled);
    assert_eq!(fired(&world, 1).await, 1);
    world.deliver_runs().await;
    assert_eq!((status(&world, &run).await, entered(&books).len()), (RunStatus::Cancelled, 1));
}

/// A pause that was not written begins anew; one that was written goes on.
#[tokio::test]
async fn a_process_that_dies_at_a_pause_leaves_each_effect_done_once() {
    for fault in [Trouble::StallBefore, Trouble::StallAfter] {
        let (mut world, books) = books().await;
        let run = begun(&world, &json!({"minutes": 10})).await;
        // The first transaction is the step before; the pause is written by an update.
        world.aws.inject(Fault::new("TransactWriteItems", "automation_runs", Trouble::StallAfter));
        let batch = world.aws.receive("runs", 900).unwrap();
        tokio::select! {
            _ = world.run_loop_batch(batch, AMPLE) => {}
            () = world.aws.stalled() => {}
        }
        world.aws.clear_faults();
        world.later();
        world.restart();
        // The second update of the invocation: the first begins it.
        world.aws.inject(Fault::new("UpdateItem", "automation_runs", fault).after(2));
        let batch = world.aws.receive("runs", 900).unwrap();
        tokio::select! {
            _ = world.run_loop_batch(batch, AMPLE) => {}
            () = world.aws.stalled() => {}
        }
        world.aws.clear_faults();
        world.later();
        world.restart();
        world.deliver_runs().await;
        assert_eq!(entered(&books), ["one"]);
        time_comes(&world);
        world.deliver_runs().await;
        assert_eq!(
            (status(&world, &run).await, entered(&books)),
            (RunStatus::Completed, vec!["one".to_owned(), "two".to_owned()])
        );
    }
}

/// The SDK repeats the update whose answer is lost, and by then the run has let go of its lease.
#[tokio::test]
async fn a_lost_answer_makes_no_pause_longer() {
    let (rehearsal, _books) = books().await;
    begun(&rehearsal, &json!({"minutes": 1})).await;
    rehearsal.aws.clear_operations();
    assert_eq!(rehearsal.run_loop(AMPLE).await, 0);
    let updates = rehearsal.aws.dynamodb().into_iter().filter(|done| done.action == "UpdateItem");
    let updates = updates.filter(|done| done.on == ["automation_runs"]);
    let pauses = |update: &str| update.contains("#pause = :what");
    let before = updates.take_while(|done| !pauses(done.body["UpdateExpression"].as_str().unwrap())).count();

    let (world, _books) = books().await;
    begun(&world, &json!({"minutes": 1})).await;
    let lost = Fault::new("UpdateItem", "automation_runs", Trouble::DropAfter);
    world.aws.inject(lost.after(u32::try_from(before).unwrap()));
    assert_eq!(world.run_loop(AMPLE).await, 0);
    assert_eq!(world.aws.faults_left(), 0);
    assert!(world.aws.has_shorter("runs", 60), "the message for a successor comes later");
}

#[tokio::test]
async fn a_dry_run_does_not_wait() {
    let (world, books) = books().await;
    let automation = world.activate(&world.manual(&paused(&json!({"minutes": 600})))).await;
    let run = world.start_automation_with(&automation, "dry", &json!({}), true).await;
    assert_eq!(world.run_loop(AMPLE).await, 0);
    assert_eq!((status(&world, &run).await, entered(&books).len()), (RunStatus::Completed, 0));
    let note = shown(&world, &run).await["actions"][1]["note"].clone();
    assert!(note.as_str().unwrap().starts_with("A dry run does not wait; a run would go on at "), "{note}");
}
