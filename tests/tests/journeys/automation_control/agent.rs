//! Actions that let a model work.

use serde_json::{Value, json};
use tests::{
    World,
    automation::{AMPLE, calls},
    standins::llm::Turn,
};

use super::{active, and, books, carried_out, entered, post, text};

fn agent(more: Value) -> Value {
    let parameters =
        json!({"prompt": "Enter {{trigger_data.what}}.", "tools": ["ledger_post"], "schema": {"type": "string"}});
    and(json!({"id": "think", "tool": "llm_agent", "parameters": parameters, "output_as": "thought"}), more)
}

async fn with_agent(world: &World, more: Value) -> String {
    let mut definition = world.manual(&json!([agent(json!({})), post("then", "{{thought}}")]));
    definition["fingerprints"]["ledger_post"] = json!(world.fingerprint("ledger_post"));
    active(world, &and(definition, more)).await
}

fn works() -> [Turn; 3] {
    [
        Turn::text(&calls("return ledger_post({entry: \"rent\"});")),
        Turn::text(&calls("return finalResponse();")),
        Turn::text("\"done\""),
    ]
}

#[tokio::test]
async fn an_agent_is_a_run_of_its_own_whose_result_the_actions_go_on_with() {
    let (world, books) = books().await;
    let id = with_agent(&world, json!({})).await;
    world.llm.script(works());
    let run = carried_out(&world, &id, &json!({"trigger_data": {"what": "the rent"}})).await;
    assert_eq!(
        (&run["status"], entered(&books)),
        (&json!("completed"), vec!["rent".to_owned(), "done".to_owned()]),
        "{run:#}"
    );
    assert_eq!(run["actions"][0]["output"], "done");
    let runs = world.automation("GET", &format!("/{id}/runs"), &Value::Null).await.expect(200);
    let child = runs["items"].as_array().unwrap().iter().find(|run| run["trigger_type"] == "action").unwrap().clone();
    assert_eq!((&child["parent_run_id"], &child["user_id"]), (&run["id"], &run["user_id"]));
    assert_eq!(child["status"], "completed");
    assert_eq!(run["spent"]["tokens"], child["spent"]["tokens"], "what it cost counts for both");
    // Its messages again begin nothing again.
    while let Some(batch) = world.aws.receive("runs", 900) {
        assert_eq!(world.run_loop_batch(batch, AMPLE).await, 0);
    }
    assert_eq!(entered(&books).len(), 2);
}

#[tokio::test]
async fn an_agent_in_a_dry_run_changes_nothing() {
    let (world, books) = books().await;
    let id = with_agent(&world, json!({})).await;
    world.llm.script(works());
    let run = carried_out(&world, &id, &json!({"dry_run": true, "trigger_data": {"what": "the rent"}})).await;
    assert_eq!((&run["status"], entered(&books)), (&json!("completed"), Vec::new()), "{run:#}");
}

#[tokio::test]
async fn an_agent_whose_tools_ask_is_asked_about_first() {
    let (world, books) = books().await;
    let id = with_agent(&world, json!({"approvals": [{"effect": "any"}]})).await;
    let run = carried_out(&world, &id, &json!({"trigger_data": {"what": "the rent"}})).await;
    assert_eq!((&run["status"], world.llm.requests().len()), (&json!("waiting_for_approval"), 0));
    let asked = world.asked().await;
    assert_eq!(asked[0]["tool"], "llm_agent");
    world.llm.script(works());
    world.approvals("POST", &format!("/{}/approve", text(&asked[0]["id"])), &Value::Null).await.expect(200);
    assert_eq!(world.run_loop(AMPLE).await, 0);
    assert_eq!(entered(&books), ["rent"]);
}

#[tokio::test]
async fn cancelling_a_run_cancels_its_agent() {
    let (world, books) = books().await;
    let id = with_agent(&world, json!({})).await;
    let begun = world.run_by_hand(&id, &json!({"trigger_data": {"what": "x"}})).await.expect(202);
    let batch = world.aws.receive("runs", 0).unwrap();
    assert_eq!(world.run_loop_batch(batch, AMPLE).await, 0);
    assert_eq!(world.cancel_run(text(&begun["id"])).await.expect(200)["status"], "cancelled");
    assert_eq!(world.run_loop(AMPLE).await, 0);
    let runs = world.automation("GET", &format!("/{id}/runs"), &Value::Null).await.expect(200);
    let statuses: Vec<&str> = runs["items"].as_array().unwrap().iter().map(|run| text(&run["status"])).collect();
    assert_eq!((statuses, entered(&books).len()), (vec!["cancelled", "cancelled"], 0));
}

#[tokio::test]
async fn an_agent_that_fails_fails_its_action() {
    let (world, books) = books().await;
    let id = with_agent(&world, json!({})).await;
    world.llm.script([
        Turn::text("no"),
        Turn::text("no"),
        Turn::text("no"),
        Turn::text("no"),
        Turn::text("no"),
        Turn::text("no"),
    ]);
    let run = carried_out(&world, &id, &json!({"trigger_data": {"what": "x"}})).await;
    assert_eq!(
        (&run["status"], &run["actions"][0]["status"]),
        (&json!("partial_failure"), &json!("failed")),
        "{run:#}"
    );
    assert_eq!(entered(&books).len(), 1);
}

#[tokio::test]
async fn what_an_agent_may_call_is_known_before_it_is_activated() {
    let (world, _books) = books().await;
    let told = async |tools: Value, fingerprints: Value| {
        let parameters = json!({"prompt": "x", "tools": tools});
        let mut definition = world.manual(&json!([agent(json!({"parameters": parameters}))]));
        definition["fingerprints"].as_object_mut().unwrap().extend(fingerprints.as_object().unwrap().clone());
        let answer = world.deploy(&definition).await;
        let one = |one: &Value| format!("{} {}", text(&one["pointer"]), text(&one["code"]));
        answer.body["diagnostics"].as_array().unwrap().iter().map(one).collect::<Vec<_>>()
    };
    let place = "/actions/0/parameters/tools";
    assert_eq!(told(json!(["ledger_post"]), json!({})).await, [format!("{place}/0 schema_not_read")]);
    assert_eq!(told(json!(["llm_agent"]), json!({})).await, [format!("{place}/0 not_allowed")]);
    let told_of_template = told(json!(["{{trigger_data.tool}}"]), json!({})).await;
    assert_eq!(told_of_template[0], format!("{place}/0 template_not_allowed"));
    assert_eq!(told(json!(["no_such"]), json!({})).await, [format!("{place}/0 unknown_tool")]);
    let pinned = json!({"ledger_post": world.fingerprint("ledger_post")});
    assert_eq!(told(json!(["ledger_post"]), pinned).await, [""; 0]);
}
