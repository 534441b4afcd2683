//! Items of a loop at the same time: each happens once and is stored, at each end of the run.

use std::sync::Arc;

use axum::{Json, Router, extract::Path, routing::any};
use serde_json::{Value, json};
use shared::models::{ActionResult, ActionStatus, AutomationRun, RunStatus};
use tests::{
    Event, Fault, Options, Trouble, World,
    automation::{AMPLE, whole},
    clients::until,
    http_server::Server,
};
use tokio::sync::{Barrier, Semaphore};

use super::{
    and, books, entered,
    nested::{begun, rows},
    post,
};

/// A loop of two posts for each row, of three rows at the same time.
fn each(more: Value) -> Value {
    let each = json!({
        "id": "each", "for_each": "{{trigger_data.rows}}", "as": "row", "key": "{{row.id}}", "at_once": 3,
        "actions": [post("enter", "{{row.name}}"), post("also", "{{row.name}}-also")],
    });
    and(each, more)
}

fn sorted(mut entries: Vec<String>) -> Vec<String> {
    entries.sort();
    entries
}

fn all(count: usize) -> Vec<String> {
    sorted((1..=count).flat_map(|number| [format!("e{number}"), format!("e{number}-also")]).collect())
}

/// Books in which posts meet: each is answered when `at_once` are there.
async fn meeting_books(at_once: usize) -> (World, Server) {
    let meeting = Arc::new(Barrier::new(at_once));
    let entry = move |Path(entry): Path<String>| {
        let meeting = Arc::clone(&meeting);
        async move {
            meeting.wait().await;
            Json(json!({"entered": entry}))
        }
    };
    books_of(Router::new().route("/ledger/{entry}", any(entry))).await
}

/// Books in which posts to these entries wait for a permit.
async fn gated_books(gate: &Arc<Semaphore>, entries: &'static str) -> (World, Server) {
    let gate = Arc::clone(gate);
    let entry = move |Path(entry): Path<String>| {
        let gate = Arc::clone(&gate);
        async move {
            if entry.starts_with(entries) {
                gate.acquire().await.unwrap().forget();
            }
            Json(json!({"entered": entry}))
        }
    };
    books_of(Router::new().route("/ledger/{entry}", any(entry))).await
}

async fn books_of(routes: Router) -> (World, Server) {
    let books = Server::start(routes).await;
    let world = World::with(Options { open_hosts: vec![books.address.to_string()], ..Options::default() }).await;
    world.ledger_service(&books.url);
    (world, books)
}

#[tokio::test]
async fn three_items_act_at_the_same_time() {
    let (world, books) = meeting_books(3).await;
    let actions = json!([each(json!({"actions": [post("enter", "{{row.name}}")], "output_as": "all"}))]);
    let run = begun(&world, &actions, &json!({"rows": rows(6)})).await;
    world.deliver_runs().await;
    let whole = whole(&world, run.id).await;
    assert_eq!((whole.run.status, whole.run.actions_executed), (RunStatus::Completed, 6));
    assert_eq!(entered(&books).len(), 6);
    // The loop's output is in the order of the list.
    let output: Value = serde_json::from_str(whole.actions.last().unwrap().output.as_ref().unwrap()).unwrap();
    let keys: Vec<&str> = output.as_array().unwrap().iter().map(|item| item["key"].as_str().unwrap()).collect();
    assert_eq!(keys, ["1", "2", "3", "4", "5", "6"]);
}

/// The first item is done at once; the second one is answered while hundreds that are skipped are stored.
#[tokio::test]
async fn an_answer_is_taken_while_other_results_are_stored() {
    let gate = Arc::new(Semaphore::new(0));
    let (world, _books) = gated_books(&gate, "e2").await;
    let few = json!({"condition": {"operator": "AND", "clauses": [{"path": "row.id", "op": "<", "value": 3}]}});
    let actions =
        json!([each(json!({"at_once": 2, "max_items": 1000, "actions": [and(post("enter", "{{row.name}}"), few)]}))]);
    let run = begun(&world, &actions, &json!({"rows": rows(300)})).await;
    let batch = world.aws.receive("runs", 900).unwrap();
    let skipped = || world.aws.rows("automation_runs").iter().filter(|row| row["status"] == "skipped").count();
    let answered = async {
        until(|| skipped() > 0).await;
        gate.add_permits(1);
    };
    futures_util::join!(world.run_loop_batch(batch, AMPLE), answered);
    world.deliver_runs().await;
    let whole = whole(&world, run.id).await;
    let second = whole.actions.iter().position(|result| result.place() == "each[2].enter").unwrap();
    assert_eq!((whole.actions[second].status, whole.run.status), (ActionStatus::Succeeded, RunStatus::Completed));
    assert_eq!(whole.actions.len(), 302);
    // Two follow the last skipped one: this, if it waited, and the loop's.
    assert!(second < 300, "stored as number {second}");
}

/// Crashes after and before each write: between an effect and its record. The quota has just enough room.
#[tokio::test]
async fn a_run_that_dies_at_any_write_repeats_nothing_and_skips_nothing() {
    let after_a_write = || Fault::new("TransactWriteItems", "automation_runs", Trouble::StallAfter);
    let before_the_next = || Fault::new("TransactWriteItems", "automation_runs", Trouble::StallBefore).after(1);
    for fault in [&after_a_write as &dyn Fn() -> Fault, &before_the_next] {
        let (mut world, books) = books().await;
        let mut definition = world.manual(&json!([each(json!({}))]));
        definition["quotas"] = json!({"effects_per_run": 8});
        let automation = world.activate(&definition).await;
        let run = world.start_automation(&automation, "once", &json!({"rows": rows(4)})).await;
        let mut deaths = 0;
        while world.kill_run(fault()).await {
            deaths += 1;
            world.restart();
        }
        assert!(deaths >= 4, "{deaths}");
        world.deliver_runs().await;
        let whole = whole(&world, run.id).await;
        let status = |entry: &String| {
            let row = entry.trim_start_matches('e').trim_end_matches("-also");
            let place = format!("each[{row}].{}", if entry.ends_with("-also") { "also" } else { "enter" });
            whole.actions.iter().find(|result| result.place() == place).unwrap().status
        };
        let entered = sorted(entered(&books));
        assert!(entered.windows(2).all(|two| two[0] != two[1]), "{entered:?}");
        for entry in all(4) {
            // A call that was under way when the run died may be unknown. One that was counted and not made may lack room in the
            // quota.
            let possible: &[ActionStatus] = if entered.contains(&entry) {
                &[ActionStatus::Succeeded, ActionStatus::Unknown]
            } else {
                &[ActionStatus::Unknown, ActionStatus::Failed]
            };
            assert!(possible.contains(&status(&entry)), "{entry} {:?}: {entered:?}", status(&entry));
        }
        assert!(whole.run.status.is_over());
        assert_eq!(whole.actions.len(), 10);
    }
}

/// The database refuses one write of a result for a while: the results that wait for theirs are not lost.
#[tokio::test]
async fn an_outage_at_a_result_repeats_nothing() {
    for failed in [Trouble::DropBefore, Trouble::DropAfter] {
        for at in 0..6 {
            let (world, books) = books().await;
            let run = begun(&world, &json!([each(json!({}))]), &json!({"rows": rows(3)})).await;
            world.aws.inject(Fault::new("TransactWriteItems", "automation_runs", failed.clone()).after(at).times(4));
            while let Some(batch) = world.aws.receive("runs", 900) {
                world.run_loop_batch(batch, AMPLE).await;
                world.later();
            }
            let whole = whole(&world, run.id).await;
            assert_eq!(whole.run.status, RunStatus::Completed, "{at} {:?}", whole.run.error);
            assert_eq!((whole.run.actions_executed, whole.actions.len()), (6, 8), "{at}");
            assert_eq!(sorted(entered(&books)), all(3), "{at}");
        }
    }
}

#[tokio::test]
async fn a_cancelled_run_stores_each_effect_that_was_under_way() {
    let gate = Arc::new(Semaphore::new(0));
    let (world, books) = gated_books(&gate, "e").await;
    let run = begun(&world, &json!([each(json!({}))]), &json!({"rows": rows(9)})).await;
    let batch = world.aws.receive("runs", 900).unwrap();
    let cancel = async {
        until(|| entered(&books).len() >= 3).await;
        assert_eq!(world.cancel_run(&run.id.to_string()).await.status, 200);
        gate.add_permits(100);
    };
    futures_util::join!(world.run_loop_batch(batch, AMPLE), cancel);
    let whole = whole(&world, run.id).await;
    assert_eq!(whole.run.status, RunStatus::Cancelled);
    let stored: Vec<&str> =
        whole.actions.iter().filter(|result| result.execution_id.is_some()).map(ActionResult::place).collect();
    assert_eq!(entered(&books).len(), 3, "nothing begins after the cancellation");
    assert_eq!(
        sorted(stored.iter().map(|&place| place.to_owned()).collect()),
        ["each[1].enter", "each[2].enter", "each[3].enter"]
    );
    assert_eq!(whole.run.actions_executed, 3);
}

#[tokio::test]
async fn a_failed_item_stops_the_loop_after_the_running_ones() {
    let (world, books) = books().await;
    let data = json!({"rows": [{"id": 1, "name": "refused"}, {"id": 2, "name": "e2"}, {"id": 3, "name": "e3"}, {"id": 4, "name": "e4"}, {"id": 5, "name": "e5"}]});
    let stops = each(
        json!({"on_error": "stop", "actions": [and(post("enter", "{{row.name}}"), json!({"on_error": "stop"})), post("also", "{{row.name}}-also")]}),
    );
    let run = begun(&world, &json!([stops, post("last", "end")]), &data).await;
    world.deliver_runs().await;
    let whole = whole(&world, run.id).await;
    assert_eq!(whole.run.status, RunStatus::PartialFailure);
    let entries = entered(&books);
    assert!(!entries.contains(&"end".to_owned()) && !entries.contains(&"refused-also".to_owned()), "{entries:?}");
    for number in 2..=5 {
        let began = entries.contains(&format!("e{number}"));
        assert_eq!(
            entries.contains(&format!("e{number}-also")),
            began,
            "an item that began goes to its end: {entries:?}"
        );
    }
}

#[tokio::test]
async fn the_quota_of_a_run_is_exact() {
    let (world, books) = books().await;
    let mut definition = world.manual(&json!([each(json!({}))]));
    definition["quotas"] = json!({"effects_per_run": 5});
    let automation = world.activate(&definition).await;
    let run = world.start_automation(&automation, "once", &json!({"rows": rows(6)})).await;
    world.deliver_runs().await;
    let run = whole(&world, run.id).await.run;
    assert_eq!((run.status, run.actions_executed, run.actions_failed), (RunStatus::PartialFailure, 5, 7));
    assert_eq!(entered(&books).len(), 5);
}

/// The places of a retry that need a confirmation.
async fn asked_about(world: &World, run: &AutomationRun) -> Vec<String> {
    let path = format!("/api/{}/runs/{}/retry", world.home.slug, run.id);
    let plan = world.send("runs", &Event::post(&path, &json!({})).user(&world.home.user_id)).await.expect(200);
    let actions = plan["actions"].as_array().unwrap().iter();
    let unknown = actions.filter(|one| one["step"] == "unknown");
    unknown.map(|one| one["action_id"].as_str().unwrap().to_owned()).collect()
}

/// A worker that died in three calls: a retry asks for a yes for each of them.
#[tokio::test]
async fn a_retry_asks_about_each_call_that_was_under_way() {
    let (world, books) = meeting_books(4).await;
    let run =
        begun(&world, &json!([each(json!({"actions": [post("enter", "{{row.name}}")]}))]), &json!({"rows": rows(5)}))
            .await;
    let batch = world.aws.receive("runs", 900).unwrap();
    tokio::select! {
        _ = world.run_loop_batch(batch, AMPLE) => panic!("it waits for the fourth"),
        () = until(|| entered(&books).len() >= 3) => {}
    }
    assert_eq!(world.cancel_run(&run.id.to_string()).await.status, 200);
    world.later();
    world.deliver_runs().await;
    assert_eq!(whole(&world, run.id).await.run.status, RunStatus::Cancelled);
    assert_eq!(asked_about(&world, &run).await, ["each[1].enter", "each[2].enter", "each[3].enter"]);
}

/// The loop ends in another process, after a usage limit and without the two calls that were being made.
#[tokio::test]
async fn a_retry_asks_about_the_calls_of_a_loop_that_a_usage_limit_ended() {
    let (world, books) = books().await;
    let data = json!({"rows": [{"id": 1, "name": "used-up"}, {"id": 2, "name": "hangs"}, {"id": 3, "name": "hangs"}]});
    let run = begun(&world, &json!([each(json!({"actions": [post("enter", "{{row.name}}")]}))]), &data).await;
    let batch = world.aws.receive("runs", 900).unwrap();
    let stored = || world.aws.rows("automation_runs").iter().filter(|row| row["action_id"].is_string()).count();
    tokio::select! {
        _ = world.run_loop_batch(batch, AMPLE) => panic!("two calls hang"),
        () = until(|| entered(&books).len() >= 3 && stored() >= 2) => {}
    }
    world.later();
    world.deliver_runs().await;
    assert_eq!(whole(&world, run.id).await.run.status, RunStatus::Failed);
    assert_eq!(asked_about(&world, &run).await, ["each[1].enter", "each[2].enter", "each[3].enter"]);
}
