//! Conditions that compare too much, and templates that read too much: the action fails with the reason, and the run goes on.

use tests::Event;

use super::*;

#[tokio::test]
async fn a_condition_that_multiplies_its_work_fails_its_action_and_not_the_run() {
    let (world, books) = books().await;
    let any = |path: &str, op: &str, value: Value| json!({"path": "trigger_data.items", "op": "any", "value": {"path": path, "op": op, "value": value}});
    let actions = json!([
        and(post("slow", "one"), json!({"condition": any("trigger_data.text", "matches", json!("y$"))})),
        and(post("quick", "two"), json!({"condition": any("item", "==", json!(19_999))})),
    ]);
    let items: Vec<u32> = (0..20_000).collect();
    let data = json!({"items": items, "text": "x".repeat(50_000)});
    let run = carried_out(&world, &actions, &data).await;
    assert_eq!((run.status, entered(&books)), (RunStatus::PartialFailure, vec!["two".to_owned()]));
    let shown = shown(&world, &run).await;
    let why = "Its condition was not evaluated: with the data of this run it compares more than 100 MB. Use fewer clauses or values.";
    assert_eq!((&shown["actions"][0]["status"], &shown["actions"][0]["error"]), (&json!("failed"), &json!(why)));

    // A retry is planned within the same bound: nothing happened, and nothing can be shown.
    let path = format!("/api/{}/runs/{}/retry", world.home.slug, run.id);
    let plan = world.send("runs", &Event::post(&path, &json!({})).user(&world.home.user_id)).await.expect(200);
    assert_eq!(
        (&plan["actions"][0]["step"], &plan["actions"][0]["arguments"]),
        (&json!("runs"), &Value::Null),
        "{plan}"
    );
}

#[tokio::test]
async fn templates_that_read_too_much_fail_their_action_and_not_the_run_of_a_neighbour() {
    let (world, books) = books().await;
    let note = "{{trigger_data.a|count}}".repeat(2_000);
    let slow = json!({"id": "slow", "tool": "ledger_post", "parameters": {"entry": "one", "note": note}});
    let automation = world.activate(&world.manual(&json!([slow, post("quick", "two")]))).await;
    let run = world.start_automation(&automation, "once", &json!({"a": vec![1; 99_990]})).await;

    let neighbour = &world.other;
    let theirs = world.manual(&json!([post("theirs", "three")]));
    let saved = world.automation_as(neighbour, "POST", "", &theirs).await.expect(201);
    let id = saved["automation"]["id"].as_str().unwrap();
    let version = json!({"version": saved["automation"]["version"]});
    world.automation_as(neighbour, "POST", &format!("/{id}/activate"), &version).await.expect(200);
    world.automation_as(neighbour, "POST", &format!("/{id}/run"), &Value::Null).await.expect(202);

    // Both runs are in one batch.
    assert_eq!(world.run_loop(AMPLE).await, 0);
    // On a slow machine the neighbour's requests to the database come late, and its run is put off.
    world.later();
    world.deliver_runs().await;
    let run = whole(&world, run.id).await.run;
    let mut entries = entered(&books);
    entries.sort_unstable();
    assert_eq!((run.status, entries), (RunStatus::PartialFailure, vec!["three".to_owned(), "two".to_owned()]));
    let why = "Its templates were not filled in: with this data they read more than 500 MB. Use fewer expressions or shorter lists.";
    let shown = shown(&world, &run).await;
    assert_eq!((&shown["actions"][0]["status"], &shown["actions"][0]["error"]), (&json!("failed"), &json!(why)));
}
