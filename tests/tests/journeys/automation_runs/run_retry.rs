//! Retries of failed runs: kept results, confirmations, effects once.

use shared::models::{RunId, Timestamp};
use tests::{Answer, Event, Fault, Trouble};

use super::*;

async fn retry(world: &World, run: &str, body: &Value) -> Answer {
    let path = format!("/api/{}/runs/{run}/retry", world.home.slug);
    world.send("runs", &Event::post(&path, body).user(&world.home.user_id)).await
}

/// `id step` of each action of a plan.
fn steps(plan: &Value) -> Vec<String> {
    let actions = plan["actions"].as_array().unwrap();
    actions.iter().map(|action| format!("{} {}", text(&action["action_id"]), text(&action["step"]))).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is not text"))
}

/// The run after it was carried out.
async fn gone_on(world: &World, answer: &Answer) -> AutomationRun {
    let id: RunId = text(&answer.body["run"]["id"]).parse().unwrap();
    // Also messages that a dead process held.
    while let Some(batch) = world.aws.receive("runs", 900) {
        assert_eq!(world.run_loop_batch(batch, AMPLE).await, 0);
    }
    whole(world, id).await.run
}

/// Read, post, then an action that needs the ledger's permission, then one after it.
fn four(third: &str) -> Value {
    json!([
        {"id": "read", "tool": "ledger_read", "parameters": {"entry": "rows"}, "output_as": "rows"},
        post("first", "one"),
        and(post("third", third), json!({"on_error": "continue"})),
        post("last", "of {{rows.rows.0.name}}"),
    ])
}

#[tokio::test]
async fn a_retry_keeps_what_succeeded_and_runs_what_failed_without_effect() {
    let (world, books) = books().await;
    let run = carried_out(&world, &four("refused"), &json!({})).await;
    assert_eq!(run.status, RunStatus::PartialFailure);
    assert_eq!(entered(&books), ["one", "refused", "of%20Ada"]);
    let id = run.id.to_string();

    let plan = retry(&world, &id, &json!({})).await.expect(200);
    assert_eq!(plan["run"], Value::Null);
    assert_eq!(steps(&plan)[..2], ["read kept", "first kept"]);
    assert_eq!(plan["actions"][2]["arguments"], json!({"entry": "refused"}), "{plan}");
    assert_eq!(world.aws.rows("automation_runs").iter().filter(|row| row["part"] == "run").count(), 1);

    let confirmed: Vec<&Value> = plan["actions"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["step"] == "unknown")
        .map(|one| &one["action_id"])
        .collect();
    let body = json!({"dry_run": false, "confirm_unknown": confirmed});
    let begun = retry(&world, &id, &body).await;
    assert_eq!(begun.status, 202, "{}", begun.body);
    let again = retry(&world, &id, &body).await;
    assert_eq!((again.status, &again.body["run"]["id"]), (200, &begun.body["run"]["id"]));
    let next = gone_on(&world, &begun).await;
    assert_eq!(statuses(&world, &next).await, ["read succeeded", "first succeeded", "third failed", "last succeeded"]);
    assert_eq!(entered(&books), ["one", "refused", "of%20Ada", "refused"], "only the failed action was tried again");
    let shown = shown(&world, &next).await;
    assert_eq!((&shown["retry_of"], &shown["actions"][1]["kept_from"]), (&json!(id), &json!(id)));
    assert_eq!(shown["actions"][2]["kept_from"], Value::Null);
    assert_eq!(super::shown(&world, &run).await["retried_by"], json!(next.id));
}

#[tokio::test]
async fn an_action_that_may_have_acted_acts_again_only_after_its_confirmation() {
    let (world, books) = books().await;
    let run = carried_out(&world, &json!([post("unclear", "broken"), post("last", "two")]), &json!({})).await;
    let id = run.id.to_string();
    let before = entered(&books);
    assert_eq!(steps(&retry(&world, &id, &json!({})).await.expect(200)), ["unclear unknown", "last kept"]);
    let refused = retry(&world, &id, &json!({"dry_run": false})).await.expect(422);
    assert_eq!(refused["errors"][0]["field"], "confirm_unknown");
    assert!(text(&refused["errors"][0]["problem"]).contains("unclear"), "{refused}");
    let strange = retry(&world, &id, &json!({"dry_run": false, "confirm_unknown": ["unclear", "last"]})).await;
    assert!(text(&strange.expect(422)["errors"][0]["problem"]).contains("last"));
    assert_eq!(entered(&books), before);

    let begun = retry(&world, &id, &json!({"dry_run": false, "confirm_unknown": ["unclear"]})).await;
    assert_eq!(begun.status, 202, "{}", begun.body);
    gone_on(&world, &begun).await;
    assert_eq!(entered(&books).len(), before.len() + 1, "once more, and nothing else");
}

#[tokio::test]
async fn an_action_without_a_record_acts_again_only_after_its_confirmation_also_behind_a_failed_one() {
    let (world, books) = books().await;
    let actions = json!([
        and(post("first", "refused"), json!({"on_error": "continue"})),
        post("second", "one"),
        post("third", "two"),
    ]);
    let run = carried_out(&world, &actions, &json!({})).await;
    assert_eq!(entered(&books), ["refused", "one", "two"]);
    // The process died between the second action's effect and its record, and the run was cancelled.
    let id = run.id.to_string();
    for part in ["0001#action", "0002#action"] {
        world.aws.delete_part("automation_runs", &id, part);
    }
    let mut row = whole_row(&world, &id);
    row["status"] = json!("cancelled");
    world.aws.put("automation_runs", &row);
    let plan = retry(&world, &id, &json!({})).await.expect(200);
    assert_eq!(steps(&plan)[1..], ["second unknown", "third runs"], "{plan}");
}

/// Whether the action was under way depends on the version that ran, not on the one that goes on.
#[tokio::test]
async fn an_action_without_a_record_needs_its_confirmation_also_where_another_version_would_skip_it() {
    let (world, books) = books().await;
    let if_told = json!({"condition": {"path": "go", "op": "==", "value": "yes"}});
    let actions = json!([
        and(post("first", "refused"), json!({"on_error": "continue"})),
        and(post("second", "one"), if_told),
        and(post("third", "two"), json!({"catch": [post("tell", "told")]})),
    ]);
    let with = |go: &str| and(world.manual(&actions), json!({"variables": {"go": go}}));
    let automation = world.activate(&with("yes")).await;
    let run = world.start_automation(&automation, "once", &json!({})).await;
    assert_eq!(world.run_loop(AMPLE).await, 0);
    assert_eq!(entered(&books), ["refused", "one", "two"]);
    let id = run.id.to_string();
    for part in ["0001#action", "0002#action"] {
        world.aws.delete_part("automation_runs", &id, part);
    }
    let mut row = whole_row(&world, &id);
    row["status"] = json!("cancelled");
    world.aws.put("automation_runs", &row);
    let automation = automation.id.to_string();
    let etag = world.automation("GET", &format!("/{automation}"), &Value::Null).await.headers["etag"].clone();
    world.put_automation(&automation, &etag, &with("no")).await.expect(200);
    world.automation("POST", &format!("/{automation}/activate"), &json!({"version": 2})).await.expect(200);
    let plan = retry(&world, &id, &json!({"version": "active"})).await.expect(200);
    assert_eq!(steps(&plan), ["first runs", "second unknown", "third runs", "tell runs"], "{plan}");
}

#[tokio::test]
async fn a_retry_that_ended_before_a_kept_result_can_be_retried() {
    let (world, books) = books().await;
    let run = carried_out(&world, &four("refused"), &json!({})).await;
    let plan = retry(&world, &run.id.to_string(), &json!({})).await.expect(200);
    let unknown: Vec<&str> =
        steps(&plan).iter().any(|step| step == "third unknown").then_some("third").into_iter().collect();
    let begun = retry(&world, &run.id.to_string(), &json!({"dry_run": false, "confirm_unknown": unknown})).await;
    let next = gone_on(&world, &begun).await;
    let id = next.id.to_string();
    // It was cancelled while the third action waited.
    for part in ["0002#action", "0003#action"] {
        world.aws.delete_part("automation_runs", &id, part);
    }
    let mut row = whole_row(&world, &id);
    row["status"] = json!("cancelled");
    world.aws.put("automation_runs", &row);
    let before = entered(&books).len();
    let plan = retry(&world, &id, &json!({})).await.expect(200);
    assert_eq!(steps(&plan), ["read kept", "first kept", "third unknown", "last kept"], "{plan}");
    let last = retry(&world, &id, &json!({"dry_run": false, "confirm_unknown": ["third"]})).await;
    assert_eq!(last.status, 202, "{}", last.body);
    gone_on(&world, &last).await;
    assert_eq!(entered(&books).len(), before + 1, "only the third action acts again");
}

#[tokio::test]
async fn all_items_of_a_loop_can_be_confirmed() {
    let (world, _) = books().await;
    let run = carried_out(&world, &json!([post("unclear", "broken")]), &json!({})).await;
    let confirm = async |count: usize| {
        let ids: Vec<String> = (0..count).map(|item| format!("each[{item}].send")).collect();
        let refused = retry(&world, &run.id.to_string(), &json!({"dry_run": false, "confirm_unknown": ids})).await;
        refused.expect(422)["errors"].to_string()
    };
    assert!(!confirm(1_000).await.contains("at most"), "only the ids are wrong");
    assert!(confirm(1_001).await.contains("at most 1000"));
}

fn whole_row(world: &World, id: &str) -> Value {
    let rows = world.aws.rows("automation_runs");
    rows.into_iter().find(|row| row["id"] == id && row["part"] == "run").unwrap()
}

#[tokio::test]
async fn a_run_can_be_retried_for_four_days_after_its_end_however_long_it_paused() {
    let (world, _books) = books().await;
    let run = carried_out(&world, &json!([post("first", "one"), post("second", "refused")]), &json!({})).await;
    let id = run.id.to_string();
    let days_ago = |days: i64| Timestamp::from_millis(Timestamp::now().as_millis() - days * 24 * 60 * 60 * 1_000);
    let mut row = whole_row(&world, &id);
    row["created_at"] = json!(days_ago(20));
    for (ended, status) in [(3, 200), (5, 409)] {
        row["finished_at"] = json!(days_ago(ended));
        world.aws.put("automation_runs", &row);
        let plan = retry(&world, &id, &json!({})).await.expect(status);
        if status == 200 {
            assert_eq!(steps(&plan), ["first kept", "second runs"], "{plan}");
        } else {
            assert!(text(&plan["detail"]).contains("ended more than 4 days ago"), "{plan}");
        }
    }
}

/// Its message lay in the dead-letter queue.
#[tokio::test]
async fn a_run_that_is_delivered_after_its_time_ends_and_its_retry_does_the_rest_once() {
    let (world, books) = books().await;
    let automation = world.activate(&world.manual(&json!([post("first", "one"), post("second", "two")]))).await;
    let run = world.start_automation(&automation, "once", &json!({})).await;
    while whole(&world, run.id).await.actions.is_empty() {
        assert!(world.kill_run(Fault::new("TransactWriteItems", "automation_runs", Trouble::StallAfter)).await);
    }
    let id = run.id.to_string();
    let mut row = whole_row(&world, &id);
    for name in ["created_at", "started_at"] {
        row[name] = json!(Timestamp::from_millis(Timestamp::now().as_millis() - 7 * 60 * 60 * 1_000));
    }
    world.aws.put("automation_runs", &row);
    world.deliver_runs().await;
    assert_eq!(whole(&world, run.id).await.run.status, RunStatus::TimeLimit);
    assert_eq!(entered(&books), ["one"]);

    assert_eq!(steps(&retry(&world, &id, &json!({})).await.expect(200)), ["first kept", "second unknown"]);
    let begun = retry(&world, &id, &json!({"dry_run": false, "confirm_unknown": ["second"]})).await;
    assert_eq!(begun.status, 202, "{}", begun.body);
    assert_eq!(gone_on(&world, &begun).await.status, RunStatus::Completed);
    assert_eq!(entered(&books), ["one", "two"]);
}

#[tokio::test]
async fn a_retry_that_dies_or_fails_again_keeps_all_that_succeeded() {
    let (world, books) = books().await;
    let actions =
        json!([post("first", "one"), and(post("second", "refused"), json!({"on_error": "stop"})), post("last", "two")]);
    let run = carried_out(&world, &actions, &json!({})).await;
    assert_eq!(entered(&books), ["one", "refused"]);
    let body = json!({"dry_run": false, "confirm_unknown": []});
    let plan = retry(&world, &run.id.to_string(), &json!({})).await.expect(200);
    let body = if steps(&plan)[1] == "second unknown" {
        json!({"dry_run": false, "confirm_unknown": ["second"]})
    } else {
        body
    };
    let begun = retry(&world, &run.id.to_string(), &body).await;
    // Killed after its first step, which takes a kept result.
    world.aws.inject(Fault::new("TransactWriteItems", "automation_runs", Trouble::StallAfter));
    let batch = world.aws.receive("runs", 900).unwrap();
    tokio::select! {
        _ = world.run_loop_batch(batch, AMPLE) => {}
        () = world.aws.stalled() => {}
    }
    world.aws.clear_faults();
    world.later();
    let next = gone_on(&world, &begun).await;
    assert_eq!(entered(&books), ["one", "refused", "refused"]);
    // A retry of the retry takes the first result from the first run.
    let third = retry(&world, &next.id.to_string(), &body).await;
    assert_eq!(third.status, 202, "{}", third.body);
    let third = gone_on(&world, &third).await;
    assert_eq!(entered(&books), ["one", "refused", "refused", "refused"]);
    assert_eq!(shown(&world, &third).await["actions"][0]["kept_from"], json!(run.id));
}

#[tokio::test]
async fn an_active_version_that_changed_an_action_runs_it_again_only_if_confirmed() {
    let (world, books) = books().await;
    let automation = world.activate(&world.manual(&four("refused"))).await;
    let run = world.start_automation(&automation, "once", &json!({})).await;
    world.run_loop(AMPLE).await;
    let id = automation.id.to_string();
    let mut second = world.manual(&four("two"));
    second["actions"][1]["parameters"]["entry"] = json!("uno");
    let etag = world.automation("GET", &format!("/{id}"), &Value::Null).await.headers["etag"].clone();
    world.put_automation(&id, &etag, &second).await.expect(200);
    world.automation("POST", &format!("/{id}/activate"), &json!({"version": 2})).await.expect(200);

    let same = retry(&world, &run.id.to_string(), &json!({"version": "same"})).await.expect(200);
    assert_eq!(
        (&same["version"], &steps(&same)[..2]),
        (&json!(1), &["read kept".to_owned(), "first kept".to_owned()][..])
    );
    let active = retry(&world, &run.id.to_string(), &json!({"version": "active"})).await.expect(200);
    assert_eq!(
        (&active["version"], &steps(&active)[..2]),
        (&json!(2), &["read kept".to_owned(), "first unknown".to_owned()][..])
    );
    assert_eq!(retry(&world, &run.id.to_string(), &json!({"version": "active", "dry_run": false})).await.status, 422);
    assert_eq!(entered(&books).len(), 3);
}

#[tokio::test]
async fn a_run_without_a_failed_action_cannot_be_retried() {
    let (world, books) = books().await;
    let completed = carried_out(&world, &json!([post("a", "one")]), &json!({})).await;
    let refused = retry(&world, &completed.id.to_string(), &json!({"dry_run": false})).await.expect(409);
    assert!(text(&refused["detail"]).contains("completed"), "{refused}");
    let prompt = world.start_run(&json!({"prompt": "Hello"})).await.expect(202);
    assert_eq!(retry(&world, text(&prompt["id"]), &json!({})).await.status, 409);
    let mut row = whole_row(&world, text(&prompt["id"]));
    for (name, value) in [("status", json!("failed")), ("started_at", json!(Timestamp::now()))] {
        row[name] = value;
    }
    world.aws.put("automation_runs", &row);
    let refused = retry(&world, text(&prompt["id"]), &json!({})).await.expect(409);
    assert!(text(&refused["detail"]).ends_with("start it again with POST /api/{slug}/runs"), "{refused}");
    let body = json!({"version": "newest", "confirm_unknown": "all", "more": 1});
    let fields = retry(&world, &completed.id.to_string(), &body).await.wrong_fields();
    assert_eq!(fields, ["confirm_unknown", "more", "version"]);
    let stranger = Event::post(&format!("/api/{}/runs/{}/retry", world.other.slug, completed.id), &json!({}));
    assert_eq!(world.send("runs", &stranger.user(&world.other.user_id)).await.status, 404);
    assert_eq!(entered(&books), ["one"]);
}

/// Told once of the first failure, the team is told of the next one, too.
#[tokio::test]
async fn a_catch_runs_again_when_its_action_fails_again() {
    let (world, books) = books().await;
    let actions = json!([and(post("a", "refused"), json!({"catch": [post("tell", "told")]})), post("last", "two")]);
    let definition = and(world.manual(&actions), json!({"catch": [post("end", "ended")]}));
    let automation = world.activate(&definition).await;
    let run = world.start_automation(&automation, "once", &json!({})).await;
    assert_eq!(world.run_loop(AMPLE).await, 0);
    assert_eq!(entered(&books), ["refused", "told", "two", "ended"]);
    let id = run.id.to_string();
    let plan = retry(&world, &id, &json!({})).await.expect(200);
    assert_eq!(steps(&plan), ["a runs", "tell runs", "last kept", "end runs"], "{plan}");
    let begun = retry(&world, &id, &json!({"dry_run": false})).await;
    assert_eq!(begun.status, 202, "{}", begun.body);
    let next = gone_on(&world, &begun).await;
    assert_eq!(entered(&books)[4..], ["refused", "told", "ended"], "once for each failure");
    assert_eq!(statuses(&world, &next).await, ["a failed", "tell succeeded", "last succeeded", "end succeeded"]);
}

#[tokio::test]
async fn an_action_of_a_catch_that_may_have_acted_acts_again_only_after_its_confirmation() {
    let (world, books) = books().await;
    let definition = and(world.manual(&json!([post("a", "refused")])), json!({"catch": [post("end", "broken")]}));
    let automation = world.activate(&definition).await;
    let run = world.start_automation(&automation, "once", &json!({})).await;
    assert_eq!(world.run_loop(AMPLE).await, 0);
    assert_eq!(entered(&books), ["refused", "broken"]);
    let id = run.id.to_string();
    assert_eq!(steps(&retry(&world, &id, &json!({})).await.expect(200)), ["a runs", "end unknown"]);
    assert_eq!(retry(&world, &id, &json!({"dry_run": false})).await.wrong_fields(), ["confirm_unknown"]);
    let begun = retry(&world, &id, &json!({"dry_run": false, "confirm_unknown": ["end"]})).await;
    assert_eq!(begun.status, 202, "{}", begun.body);
    gone_on(&world, &begun).await;
    assert_eq!(entered(&books), ["refused", "broken", "refused", "broken"]);
}
