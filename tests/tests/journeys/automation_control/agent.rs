//! Actions that let a model work.

use serde_json::{Value, json};
use tests::{
    Event, World,
    automation::{AMPLE, calls},
    standins::llm::Turn,
};

use super::{active, and, books, carried_out, entered, like_ledger_post, messenger, post, text};

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
async fn the_tools_of_an_agent_are_checked_before_activation() {
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
    assert_eq!(told(json!(["ledger_post"]), pinned.clone()).await, [""; 0]);
    let told_of_twice = told(json!(["ledger_post", "ledger_post"]), pinned).await;
    assert_eq!(told_of_twice, [format!("{place}/1 invalid_value")]);
    let held = json!([{"built_in": "wget", "allowed_hosts": ["*"]}]);
    assert_eq!(told(held, json!({"wget": "built-in"})).await, [format!("{place}/0/allowed_hosts/0 invalid_value")]);
}

/// Otherwise each run would fail, after the actions before the agent.
#[tokio::test]
async fn the_schema_and_limits_of_an_agent_are_checked_before_activation() {
    let (world, _books) = books().await;
    for (number, (name, value, expected)) in [
        ("limits", json!({"max_calls": 5}), &["limits/max_calls unknown_field"][..]),
        ("limits", json!({"iterations": 100_000}), &["limits/iterations invalid_value"]),
        ("schema", json!({"type": "objekt"}), &["schema/type invalid_schema"]),
        ("limits", json!({"iterations": "{{trigger_data.n}}"}), &[]),
        ("limits", json!(null), &[]),
        ("schema", json!(""), &[]),
    ]
    .into_iter()
    .enumerate()
    {
        let mut definition = world.manual(&json!([post("before", "x"), agent(json!({}))]));
        definition["actions"][1]["parameters"][name] = value.clone();
        definition["name"] = json!(format!("Agent {number}"));
        let answer = world.deploy(&definition).await;
        let errors = answer.body["diagnostics"].as_array().unwrap().iter().filter(|one| one["severity"] == "error");
        let one = |one: &Value| format!("{} {}", text(&one["pointer"]), text(&one["code"]));
        let expected: Vec<_> = expected.iter().map(|one| format!("/actions/1/parameters/{one}")).collect();
        assert_eq!(errors.map(one).collect::<Vec<_>>(), expected, "{name} {value}");
    }
}

/// Null and empty text count as absent, as for every tool.
#[tokio::test]
async fn absent_parameters_of_an_agent_may_be_null_or_empty() {
    let (world, books) = books().await;
    let mut definition = world.manual(&json!([agent(json!({})), post("then", "then")]));
    let parameters = json!({"schema": "", "limits": null, "model": "", "system_prompt": "{{trigger_data.role}}"});
    let of_agent = &mut definition["actions"][0]["parameters"];
    *of_agent = and(of_agent.take(), parameters);
    let id = active(&world, &definition).await;
    world.llm.script(works());
    let run = carried_out(&world, &id, &json!({"trigger_data": {"what": "the rent", "role": ""}})).await;
    assert_eq!((&run["status"], entered(&books).len()), (&json!("completed"), 2), "{run:#}");
}

/// A name in an agent's prompt is no recipient.
#[tokio::test]
async fn an_agent_with_outside_effects_asks_for_approval() {
    let (world, books) = books().await;
    like_ledger_post(&world, "mail_send_email", "email");
    let parameters = json!({"prompt": "Write to ana@acme.example.", "tools": ["mail_send_email"]});
    let mut definition = world.manual(&json!([agent(json!({"parameters": parameters}))]));
    definition["fingerprints"]["mail_send_email"] = json!(world.fingerprint("mail_send_email"));
    let rules = json!({"approvals": [{"effect": "email", "outside": ["acme.example"]}]});
    let id = active(&world, &and(definition, rules)).await;
    let run = carried_out(&world, &id, &json!({})).await;
    assert_eq!((&run["status"], world.llm.requests().len()), (&json!("waiting_for_approval"), 0), "{run:#}");
    assert_eq!(world.asked().await[0]["reason"], "The automation asks before an e-mail to outside.");
    assert_eq!(entered(&books).len(), 0);
}

#[tokio::test]
async fn messages_of_agents_count_against_the_daily_quota() {
    tests::within_one_hour().await;
    let (world, books) = books().await;
    messenger(&world);
    let parameters = json!({"prompt": "Tell them.", "tools": ["team_post_message"], "schema": {"type": "string"}});
    let mut definition = world.manual(&json!([agent(json!({"parameters": parameters}))]));
    definition["fingerprints"]["team_post_message"] = json!(world.fingerprint("team_post_message"));
    let id = active(&world, &and(definition, json!({"quotas": {"messages_per_day": 1}}))).await;
    for _ in 0..2 {
        world.llm.script([
            Turn::text(&calls("return team_post_message({entry: \"hello\"});")),
            Turn::text(&calls("return finalResponse();")),
            Turn::text("\"done\""),
        ]);
        let run = carried_out(&world, &id, &json!({})).await;
        assert_eq!(run["status"], "completed", "{run:#}");
    }
    assert_eq!(entered(&books), ["hello"], "the second run's call has the same place, and is another one");
}

/// The rows of a waiting run and of its agent.
async fn waiting(world: &World, id: &str) -> (Value, Value) {
    world.run_by_hand(id, &json!({"trigger_data": {"what": "x"}})).await.expect(202);
    let batch = world.aws.receive("runs", 0).unwrap();
    assert_eq!(world.run_loop_batch(batch, AMPLE).await, 0);
    let rows: Vec<Value> = world.aws.rows("automation_runs").into_iter().filter(|row| row["part"] == "run").collect();
    let (children, parents): (Vec<Value>, Vec<Value>) =
        rows.into_iter().partition(|row| row.get("parent_run_id").is_some());
    (parents[0].clone(), children[0].clone())
}

async fn delete(world: &World, run: &Value) -> u16 {
    let event = Event::new("DELETE", &format!("/api/{}/runs/{}", world.home.slug, text(&run["id"])));
    world.send("runs", &event.user(&world.home.user_id)).await.status
}

#[tokio::test]
async fn an_agent_whose_run_is_over_does_not_go_on() {
    let (world, books) = books().await;
    let id = with_agent(&world, json!({})).await;
    let (parent, child) = waiting(&world, &id).await;
    // As if it had crashed before it stored the wait, and was cancelled then.
    world.aws.put("automation_runs", &and(parent, json!({"status": "cancelled", "waits_for_run": null})));
    assert_eq!(world.run_loop(AMPLE).await, 0);
    let child = world.run(text(&child["id"])).await.expect(200);
    assert_eq!((&child["status"], world.llm.requests().len()), (&json!("cancelled"), 0), "{child:#}");
    assert_eq!(entered(&books).len(), 0);
}

#[tokio::test]
async fn an_agents_run_is_not_deleted_before_its_result_is_taken_and_never_begun_twice() {
    let (world, books) = books().await;
    let id = with_agent(&world, json!({})).await;
    let (parent, child) = waiting(&world, &id).await;
    world.aws.put("automation_runs", &and(child.clone(), json!({"status": "completed"})));
    assert_eq!(delete(&world, &child).await, 409);
    // Gone all the same.
    world.aws.put("automation_runs", &and(child.clone(), json!({"status": "completed", "expires_at": 1})));
    while let Some(batch) = world.aws.receive("runs", 900) {
        assert_eq!(world.run_loop_batch(batch, AMPLE).await, 0);
    }
    let run = world.run(text(&parent["id"])).await.expect(200);
    assert_eq!(run["actions"][0]["status"], "failed", "{run:#}");
    assert!(text(&run["actions"][0]["error"]).contains("was deleted before its result was taken"), "{run:#}");
    assert_eq!((entered(&books).len(), world.llm.requests().len()), (1, 0));
}

#[tokio::test]
async fn the_calls_of_an_agent_are_recorded_after_its_time_is_over() {
    let (world, books) = books().await;
    let id = with_agent(&world, json!({})).await;
    let (parent, _) = waiting(&world, &id).await;
    assert!(text(&parent["time_from"]) > text(&parent["started_at"]), "waiting takes no time from it: {parent}");
    let long_ago = json!({"time_from": "2026-01-01T00:00:00.000Z"});
    world.aws.put("automation_runs", &and(parent.clone(), long_ago));
    world.llm.script(works());
    assert_eq!(world.run_loop(AMPLE).await, 0);
    let run = world.run(text(&parent["id"])).await.expect(200);
    assert_eq!(
        (&run["status"], &run["actions"][0]["output"], run["actions"].as_array().unwrap().len()),
        (&json!("time_limit"), &json!("done"), 1),
        "{run:#}"
    );
    assert_eq!(entered(&books), ["rent"]);
}
