//! Conditions that compare too much: the action fails with the reason, and the run goes on.

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
