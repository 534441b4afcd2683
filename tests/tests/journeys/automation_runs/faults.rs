//! Faults in runs of actions: a crash, a hanging tool, a repeated message.

use std::time::Duration;

use serde_json::{Value, json};
use shared::models::{AutomationRun, RunStatus};
use tests::{
    Fault, Trouble, World,
    automation::{AMPLE, whole},
    clients::until,
    http_server::Server,
    metrics::Metrics,
};

use super::{and, books, entered, post, shown, statuses};

/// Ten actions, each with an entry of its own.
fn ten() -> Value {
    (0..10).map(|number| post(&format!("a{number}"), &format!("e{number}"))).collect()
}

async fn begun(world: &World, actions: &Value) -> AutomationRun {
    let automation = world.activate(&world.manual(actions)).await;
    world.start_automation(&automation, "once", &json!({})).await
}

fn all_ten(books: &Server) {
    let mut entries = entered(books);
    entries.sort();
    let expected: Vec<String> = (0..10).map(|number| format!("e{number}")).collect();
    assert_eq!(entries, expected, "each effect happened exactly once");
}

/// Crashes after and before the write of each step: between the effect and its record.
#[tokio::test]
async fn a_process_that_dies_at_any_step_leaves_each_effect_done_exactly_once() {
    let after_a_write = || Fault::new("TransactWriteItems", "automation_runs", Trouble::StallAfter);
    // One step is written, and the next effect happens.
    let before_the_next = || Fault::new("TransactWriteItems", "automation_runs", Trouble::StallBefore).after(1);
    for fault in [&after_a_write as &dyn Fn() -> Fault, &before_the_next] {
        let (mut world, books) = books().await;
        let run = begun(&world, &ten()).await;
        let mut deaths = 0;
        while world.kill_run(fault()).await {
            deaths += 1;
            world.restart();
        }
        assert!(deaths >= 10, "{deaths}");
        world.deliver_runs().await;
        let run = whole(&world, run.id).await.run;
        assert_eq!(
            (run.status, run.actions_executed, run.actions_failed),
            (RunStatus::Completed, 10, 0),
            "{:?}",
            run.error
        );
        all_ten(&books);
    }
}

/// A crash during a request leaves the effect unknown, and it is not repeated.
#[tokio::test]
async fn a_process_that_dies_in_the_middle_of_an_effect_leaves_it_unknown_and_goes_on() {
    let (world, books) = books().await;
    let run = begun(&world, &json!([post("a", "one"), post("b", "two")])).await;
    // The claim is made, the effect happens, and its outcome is not recorded.
    assert!(world.kill_run(Fault::new("UpdateItem", "idempotency", Trouble::StallBefore).after(2)).await);
    for row in world.aws.rows("idempotency") {
        if row.get("lease_until").is_some() {
            world.aws.change("idempotency", row["id"].as_str().unwrap(), json!({"lease_until": 1}));
        }
    }
    world.deliver_runs().await;
    let run = whole(&world, run.id).await.run;
    assert_eq!(statuses(&world, &run).await, ["a unknown", "b succeeded"]);
    assert_eq!((run.status, entered(&books)), (RunStatus::PartialFailure, vec!["one".to_owned(), "two".to_owned()]));
}

#[tokio::test]
async fn a_tool_that_hangs_is_given_up_after_the_time_of_its_action() {
    let given_up = async |stops: bool| {
        let (world, books) = books().await;
        // The call must have begun by then.
        let mut hangs = and(post("a", "hangs"), json!({"timeout_seconds": 3}));
        if stops {
            hangs["on_error"] = json!("stop");
        }
        let read = json!({"id": "r", "tool": "ledger_read", "parameters": {"entry": "hangs"}, "timeout_seconds": 1});
        let run = begun(&world, &json!([read, hangs, post("b", "two")])).await;
        assert_eq!(world.run_loop(AMPLE).await, 0);
        let run = whole(&world, run.id).await.run;
        let (status, expected) = if stops {
            (RunStatus::Failed, vec!["r failed", "a unknown"])
        } else {
            (RunStatus::PartialFailure, vec!["r failed", "a unknown", "b succeeded"])
        };
        assert_eq!(
            (run.status, statuses(&world, &run).await),
            (status, expected.iter().map(ToString::to_string).collect())
        );
        assert_eq!(entered(&books).len(), if stops { 1 } else { 2 });
    };
    tokio::join!(given_up(false), given_up(true));
}

#[tokio::test]
async fn a_run_that_has_no_time_left_goes_on_in_another_invocation() {
    let (world, books) = books().await;
    let run = begun(&world, &ten()).await;
    let mut invocations = 0;
    while whole(&world, run.id).await.run.status != RunStatus::Completed {
        // Enough for one action, and not for two: each may take 30 seconds.
        let batch = world.aws.receive("runs", 0).unwrap();
        assert_eq!(world.run_loop_batch(batch, Duration::from_secs(20)).await, 0);
        invocations += 1;
        assert!(invocations < 20);
    }
    assert_eq!(invocations, 10, "one for each action");
    all_ten(&books);
}

#[tokio::test]
async fn a_run_is_cancelled_at_its_next_action() {
    let (world, books) = books().await;
    let run = begun(&world, &ten()).await;
    let batch = world.aws.receive("runs", 0).unwrap();
    world.aws.inject(Fault::new("TransactWriteItems", "automation_runs", Trouble::StallAfter));
    tokio::select! {
        _ = world.run_loop_batch(batch, AMPLE) => panic!("it hangs"),
        () = world.aws.stalled() => {}
    }
    world.aws.clear_faults();
    // Another invocation continues the run during its cancellation: the step under way is kept.
    let mut row = world.aws.rows("automation_runs").into_iter().find(|row| row["part"] == "run").unwrap();
    row["lease_until"] = json!(1);
    world.aws.put("automation_runs", &row);
    let batch = world.aws.receive("runs", 900).unwrap();
    let cancel = async {
        until(|| entered(&books).len() >= 2).await;
        world.cancel_run(&run.id.to_string()).await.expect(200);
    };
    futures_util::join!(world.run_loop_batch(batch, AMPLE), cancel);
    let run = whole(&world, run.id).await.run;
    assert_eq!(run.status, RunStatus::Cancelled);
    let done = statuses(&world, &run).await;
    assert!(done.len() < 10 && done[0] == "a0 succeeded", "{done:?}");
    assert_eq!(usize::try_from(run.actions_executed).unwrap(), done.len());
    assert_eq!(entered(&books).len(), done.len(), "what was done is written down, and nothing else was done");
    assert_eq!(shown(&world, &run).await["actions"].as_array().unwrap().len(), done.len());
}

#[tokio::test]
async fn messages_in_any_order_and_number_leave_every_run_done_once() {
    let (world, books) = books().await;
    let automation = world.activate(&world.manual(&json!([post("a", "{{trigger_data.entry}}")]))).await;
    for number in 0..5 {
        world.start_automation(&automation, &format!("cause {number}"), &json!({"entry": format!("e{number}")})).await;
    }
    let messages: Vec<String> = world.aws.messages("runs").iter().map(Value::to_string).collect();
    while world.aws.receive("runs", 900).is_some() {}
    for message in messages.iter().rev().chain(&messages) {
        world.aws.post("runs", message);
    }
    assert_eq!(world.run_loop(AMPLE).await, 0);
    let mut entries = entered(&books);
    entries.sort();
    assert_eq!(entries, ["e0", "e1", "e2", "e3", "e4"]);
}

/// A throttled table delays a run, without cost for it.
#[tokio::test]
async fn an_outage_of_ours_puts_the_run_off() {
    let (world, books) = books().await;
    let run = begun(&world, &json!([post("a", "one"), post("b", "two")])).await;
    world.aws.inject(Fault::throttled("GetItem", "automation_versions"));
    assert_eq!(world.run_loop(AMPLE).await, 0);
    assert_eq!(whole(&world, run.id).await.run.status, RunStatus::Running);
    world.later();
    world.deliver_runs().await;
    assert_eq!(whole(&world, run.id).await.run.status, RunStatus::Completed);
    assert_eq!(entered(&books), ["one", "two"]);
}

/// The fifth attempt: the books are down, or our table of claims is.
#[tokio::test]
async fn the_operator_is_told_of_a_run_that_outages_of_ours_end_and_not_of_one_that_a_service_ends() {
    let read = json!({"id": "a", "tool": "ledger_read", "parameters": {"entry": "broken"}});
    for (action, faults, given_up) in [(read, 0, 0.0), (post("a", "one"), 9_999, 1.0)] {
        let (world, _books) = books().await;
        let run = begun(&world, &json!([action])).await;
        let mut row = world.aws.rows("automation_runs").into_iter().find(|row| row["part"] == "run").unwrap();
        row["attempts"] = json!(4);
        world.aws.put("automation_runs", &row);
        if faults > 0 {
            world.aws.inject(Fault::throttled("UpdateItem", "idempotency").times(faults));
        }
        let metrics = Metrics::capture();
        assert_eq!(world.run_loop(AMPLE).await, 0);
        let run = whole(&world, run.id).await.run;
        let ended = (run.status, run.outage, metrics.sum("RunsGivenUp"));
        assert_eq!(ended, (RunStatus::Failed, true, given_up), "{:?}", run.error);
    }
}

#[tokio::test]
async fn a_version_that_a_newer_program_wrote_is_left_to_it() {
    let (world, books) = books().await;
    let automation = world.activate(&world.manual(&json!([post("a", "one")]))).await;
    let mut version = world.aws.rows("automation_versions").remove(0);
    let mut definition: Value = serde_json::from_str(version["definition"].as_str().unwrap()).unwrap();
    definition["actions"][0]["only_on_sundays"] = json!(true);
    version["definition"] = definition.to_string().into();
    world.aws.put("automation_versions", &version);
    let run = world.start_automation(&automation, "once", &json!({})).await;
    assert_eq!(world.run_loop(AMPLE).await, 0);
    assert_eq!(whole(&world, run.id).await.run.status, RunStatus::Running, "it is put off");
    assert!(entered(&books).is_empty());
}
