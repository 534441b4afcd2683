//! Loops and branches: each item once, whatever happens to the run.

use std::time::Duration;

use serde_json::{Value, json};
use shared::models::{AutomationRun, RunStatus};
use tests::{
    Event, Fault, Trouble, World,
    automation::{AMPLE, whole},
    clients::until,
    http_server::Server,
};

use super::{and, books, carried_out, entered, post, shown};

pub(super) fn rows(count: usize) -> Value {
    (1..=count).map(|number| json!({"id": number, "name": format!("e{number}")})).collect()
}

/// A loop that posts each row.
fn each(more: Value) -> Value {
    let each = json!({
        "id": "each", "for_each": "{{trigger_data.rows}}", "as": "row", "key": "{{row.id}}",
        "actions": [post("enter", "{{row.name}}")],
    });
    and(each, more)
}

/// `place status` of each result.
fn places(shown: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let actions = shown["actions"].as_array().unwrap().iter();
    actions.map(|action| format!("{} {}", text(&action["place"]), text(&action["status"]))).collect()
}

fn entries(count: usize) -> Vec<String> {
    (1..=count).map(|number| format!("e{number}")).collect()
}

pub(super) async fn begun(world: &World, actions: &Value, data: &Value) -> AutomationRun {
    let automation = world.activate(&world.manual(actions)).await;
    world.start_automation(&automation, "once", data).await
}

async fn status(world: &World, run: &AutomationRun) -> RunStatus {
    whole(world, run.id).await.run.status
}

#[tokio::test]
async fn a_loop_acts_for_each_item_and_shows_its_place() {
    let (world, books) = books().await;
    let actions = json!([each(json!({"output_as": "all"})), post("last", "{{all | length}}")]);
    let run = carried_out(&world, &actions, &json!({"rows": rows(2)})).await;
    assert_eq!((run.status, run.actions_executed, run.error.as_ref()), (RunStatus::Completed, 3, None));
    let shown = shown(&world, &run).await;
    let expected =
        ["each succeeded", "each[1].enter succeeded", "each[2].enter succeeded", "each succeeded", "last succeeded"];
    assert_eq!(places(&shown), expected);
    assert_eq!(shown["actions"][1]["action_id"], "enter");
    assert_eq!(
        (&shown["actions"][3]["kind"], &shown["actions"][3]["note"]),
        (&json!("for_each_end"), &json!("2 of 2 items were done."))
    );
    assert_eq!(entered(&books), ["e1", "e2", "2"]);
}

/// Crashes after and before each write: between an effect and its record.
#[tokio::test]
async fn a_loop_that_dies_at_any_write_does_each_item_exactly_once() {
    let after_a_write = || Fault::new("TransactWriteItems", "automation_runs", Trouble::StallAfter);
    let before_the_next = || Fault::new("TransactWriteItems", "automation_runs", Trouble::StallBefore).after(1);
    for fault in [&after_a_write as &dyn Fn() -> Fault, &before_the_next] {
        let (mut world, books) = books().await;
        let run = begun(&world, &json!([each(json!({}))]), &json!({"rows": rows(4)})).await;
        let mut deaths = 0;
        while world.kill_run(fault()).await {
            deaths += 1;
            world.restart();
        }
        assert!(deaths >= 4, "{deaths}");
        world.deliver_runs().await;
        assert_eq!(status(&world, &run).await, RunStatus::Completed);
        assert_eq!(entered(&books), entries(4));
    }
}

#[tokio::test]
async fn a_loop_without_time_goes_on_with_the_next_item() {
    let (world, books) = books().await;
    let run = begun(&world, &json!([each(json!({}))]), &json!({"rows": rows(3)})).await;
    let mut invocations = 0;
    while status(&world, &run).await != RunStatus::Completed {
        let batch = world.aws.receive("runs", 0).unwrap();
        assert_eq!(world.run_loop_batch(batch, Duration::from_secs(20)).await, 0);
        invocations += 1;
        assert!(invocations < 10);
    }
    assert!(invocations >= 3, "{invocations}");
    assert_eq!(entered(&books), entries(3));
}

#[tokio::test]
async fn an_item_waits_for_its_own_approval() {
    let (world, books) = books().await;
    let asks = each(json!({"actions": [and(post("enter", "{{row.name}}"), json!({"approval": true}))]}));
    let run = begun(&world, &json!([asks]), &json!({"rows": rows(2)})).await;
    for number in 1..=2 {
        world.deliver_runs().await;
        assert_eq!(status(&world, &run).await, RunStatus::WaitingForApproval);
        assert_eq!(entered(&books), entries(number - 1));
        let asked = world.asked().await;
        assert_eq!((asked.len(), &asked[0]["action_id"]), (1, &json!(format!("each[{number}].enter"))));
        let path = format!("/{}/approve", asked[0]["id"].as_str().unwrap());
        world.approvals("POST", &path, &Value::Null).await.expect(200);
    }
    world.deliver_runs().await;
    assert_eq!((status(&world, &run).await, entered(&books)), (RunStatus::Completed, entries(2)));
}

#[tokio::test]
async fn a_loop_is_cancelled_between_its_items() {
    let (world, books) = books().await;
    let run = begun(&world, &json!([each(json!({}))]), &json!({"rows": rows(20)})).await;
    let batch = world.aws.receive("runs", 900).unwrap();
    let cancel = async {
        until(|| entered(&books).len() >= 2).await;
        assert_eq!(world.cancel_run(&run.id.to_string()).await.status, 200);
    };
    futures_util::join!(world.run_loop_batch(batch, AMPLE), cancel);
    assert_eq!(status(&world, &run).await, RunStatus::Cancelled);
    let done = entered(&books).len();
    assert!(done < 20, "{done}");
    let acted = usize::try_from(whole(&world, run.id).await.run.actions_executed).unwrap();
    assert_eq!(acted, done, "each effect is written down");
}

#[tokio::test]
async fn the_quota_of_a_run_counts_the_items() {
    let (world, books) = books().await;
    let mut definition = world.manual(&json!([each(json!({}))]));
    definition["quotas"] = json!({"effects_per_run": 2});
    let automation = world.activate(&definition).await;
    let run = world.start_automation(&automation, "once", &json!({"rows": rows(4)})).await;
    world.deliver_runs().await;
    let run = whole(&world, run.id).await.run;
    assert_eq!((run.status, run.actions_executed, run.actions_failed), (RunStatus::PartialFailure, 2, 2));
    assert!(run.error.unwrap().starts_with("2 of 4 actions failed: each[3].enter (It was not done"));
    assert_eq!(entered(&books), entries(2));
}

#[tokio::test]
async fn a_dry_run_goes_through_the_first_items_and_sends_nothing() {
    let (world, books) = books().await;
    let automation = world.activate(&world.manual(&json!([each(json!({}))]))).await;
    let run = world.start_automation_with(&automation, "dry", &json!({"rows": rows(40)}), true).await;
    world.deliver_runs().await;
    let shown = shown(&world, &whole(&world, run.id).await.run).await;
    assert_eq!(shown["status"], "completed");
    assert_eq!(places(&shown).len(), 12, "ten items between the beginning and the end");
    assert_eq!(shown["actions"][0]["note"], "10 items. A dry run goes through the first 10 only.");
    assert_eq!(shown["actions"][1]["output"]["would_send"]["method"], "POST");
    assert!(entered(&books).is_empty());
}

#[tokio::test]
async fn a_retry_does_only_the_items_that_failed_without_effect() {
    let (world, books) = books().await;
    let rows = json!([{"id": 1, "name": "e1"}, {"id": 2, "name": "refused"}, {"id": 3, "name": "e3"}]);
    let run = carried_out(&world, &json!([each(json!({})), post("last", "end")]), &json!({"rows": rows})).await;
    assert_eq!(run.status, RunStatus::PartialFailure);
    assert_eq!(entered(&books), ["e1", "refused", "e3", "end"]);
    let path = format!("/api/{}/runs/{}/retry", world.home.slug, run.id);
    let ask = |body: Value| Event::post(&path, &body).user(&world.home.user_id);
    let plan = world.send("runs", &ask(json!({}))).await.expect(200);
    let steps: Vec<String> = plan["actions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| format!("{} {}", one["action_id"].as_str().unwrap(), one["step"].as_str().unwrap()))
        .collect();
    let failed = steps.iter().find(|step| step.starts_with("each[2].enter")).unwrap().clone();
    assert_eq!(
        (steps.len(), &steps[..2]),
        (5, &["each kept".to_owned(), "each[1].enter kept".to_owned()][..]),
        "{steps:?}"
    );
    let confirmed = if failed.ends_with("unknown") { json!(["each[2].enter"]) } else { json!([]) };
    let begun = world.send("runs", &ask(json!({"dry_run": false, "confirm_unknown": confirmed}))).await;
    assert_eq!(begun.status, 202, "{}", begun.body);
    world.deliver_runs().await;
    assert_eq!(entered(&books), ["e1", "refused", "e3", "end", "refused"], "only the failed item was tried again");
    let next = world.run(begun.body["run"]["id"].as_str().unwrap()).await.expect(200);
    assert_eq!(next["status"], "partial_failure");
    assert_eq!(next["actions"][1]["kept_from"], json!(run.id));
    // A retry of the retry still knows the items of the first run.
    let path = format!("/api/{}/runs/{}/retry", world.home.slug, next["id"].as_str().unwrap());
    let again = Event::post(&path, &json!({"dry_run": false, "confirm_unknown": confirmed})).user(&world.home.user_id);
    assert_eq!(world.send("runs", &again).await.status, 202);
    world.deliver_runs().await;
    assert_eq!(entered(&books)[5..], ["refused"]);
}

/// Results are found by their place, which has the loop's id and the item's key.
#[tokio::test]
async fn a_retry_with_other_places_asks_about_each_action_that_acted() {
    for changed in [json!({"key": "{{row.name}}"}), json!({"id": "every"})] {
        let (world, books) = books().await;
        let rows = json!([{"id": 1, "name": "e1"}, {"id": 2, "name": "refused"}]);
        let automation = world.activate(&world.manual(&json!([each(json!({}))]))).await;
        let run = world.start_automation(&automation, "once", &json!({"rows": rows})).await;
        world.deliver_runs().await;
        let id = automation.id.to_string();
        let etag = world.automation("GET", &format!("/{id}"), &Value::Null).await.headers["etag"].clone();
        world.put_automation(&id, &etag, &world.manual(&json!([each(changed)]))).await.expect(200);
        world.automation("POST", &format!("/{id}/activate"), &json!({"version": 2})).await.expect(200);
        let path = format!("/api/{}/runs/{}/retry", world.home.slug, run.id);
        let ask = |body: Value| Event::post(&path, &body).user(&world.home.user_id);
        let plan = world.send("runs", &ask(json!({"version": "active"}))).await.expect(200);
        let acted = plan["actions"].as_array().unwrap().iter().find(|one| one["action_id"] == "each[1].enter").unwrap();
        assert_eq!(acted["step"], "unknown", "{plan}");
        let unasked = ask(json!({"version": "active", "dry_run": false}));
        assert_eq!(world.send("runs", &unasked).await.wrong_fields(), ["confirm_unknown"]);
        assert_eq!(entered(&books), ["e1", "refused"]);
    }
}

#[tokio::test]
async fn a_choice_runs_one_branch_and_none_after_an_outage() {
    let (world, books) = books().await;
    let branch = |kind: &str| json!({"when": {"path": "trigger_data.kind", "op": "==", "value": kind}, "actions": [post(kind, kind)]});
    let actions =
        json!([{"id": "decide", "choose": [branch("bug"), branch("wish")], "otherwise": [post("other", "other")]}]);
    for (kind, expected) in [("bug", "bug"), ("wish", "wish"), ("praise", "other")] {
        let automation = world.activate(&world.manual(&actions)).await;
        let run = world.start_automation(&automation, kind, &json!({"kind": kind})).await;
        world.deliver_runs().await;
        let shown = shown(&world, &run).await;
        assert_eq!(places(&shown), ["decide succeeded".to_owned(), format!("{expected} succeeded")]);
    }
    assert_eq!(entered(&books), ["bug", "wish", "other"]);
    let when = json!({"path": "found.open", "op": "==", "value": true});
    let judged = json!([
        {"id": "judge", "tool": "ledger_read", "parameters": {"entry": "broken"}, "output_as": "found"},
        {"id": "decide", "choose": [{"when": when, "actions": [post("yes", "yes")]}], "otherwise": [post("no", "no")]},
    ]);
    let run = carried_out(&world, &judged, &json!({})).await;
    assert_eq!(places(&shown(&world, &run).await), ["judge failed", "decide skipped"]);
    assert_eq!(entered(&books).len(), 3, "neither branch ran");
}

/// A hundred thousand items fail before the first.
#[tokio::test]
async fn a_huge_list_is_refused_whole() {
    let (world, books) = books().await;
    let actions =
        json!([each(json!({"for_each": "{{trigger_data.rows | batch(1)}}", "key": null})), post("last", "end")]);
    let rows: Value = (0..20_000).map(Value::from).collect();
    let run = carried_out(&world, &actions, &json!({"rows": rows})).await;
    assert_eq!(run.status, RunStatus::PartialFailure);
    assert_eq!(entered(&books), ["end"]);
}

#[tokio::test]
async fn a_tool_within_a_loop_that_changed_stops_the_run() {
    let (world, books): (World, Server) = books().await;
    let automation = world.activate(&world.manual(&json!([each(json!({}))]))).await;
    let tool = shared::models::service_tool_id("ledger_post").to_string();
    world.aws.change("service_tools", &tool, json!({"fingerprint": "another"}));
    let run = world.start_automation(&automation, "once", &json!({"rows": rows(2)})).await;
    world.deliver_runs().await;
    assert_eq!((status(&world, &run).await, entered(&books).len()), (RunStatus::Failed, 0));
}
