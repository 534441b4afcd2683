//! Runs of automations: the order of actions, their outputs, and failures.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test says what is wrong and stops")]

mod awaited_events;
mod catches;
mod dry_run;
mod expressions;
mod faults;
mod heavy_conditions;
mod kills;
mod memory;
mod models;
mod nested;
mod pauses;
mod repeated_actions;
mod run_retry;
mod same_time;
mod withdrawn;
mod without_output;

use std::time::Duration;

use axum::{
    Json, Router,
    extract::Path,
    http::{StatusCode, header::RETRY_AFTER},
    response::{IntoResponse, Response},
    routing::any,
};
use serde_json::{Value, json};
use shared::models::{ActionStatus, AutomationRun, RunStatus};
use tests::{
    Options, World,
    automation::{AMPLE, whole},
    http_server::Server,
};

/// Books whose answer depends on the entry, and a world with a service for them.
async fn books() -> (World, Server) {
    books_with(Options::default()).await
}

async fn books_with(options: Options) -> (World, Server) {
    let entry = |Path(entry): Path<String>| async move { answer(&entry).await };
    let books = Server::start(Router::new().route("/ledger/{entry}", any(entry))).await;
    let mut open_hosts = options.open_hosts.clone();
    open_hosts.push(books.address.to_string());
    let world = World::with(Options { open_hosts, ..options }).await;
    world.ledger_service(&books.url);
    (world, books)
}

async fn answer(entry: &str) -> Response {
    match entry {
        "refused" => (StatusCode::UNPROCESSABLE_ENTITY, Json(json!({"message": "no such account"}))).into_response(),
        "broken" => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        "busy" => (StatusCode::TOO_MANY_REQUESTS, [(RETRY_AFTER, "0")]).into_response(),
        "used-up" => Json(json!({"error": "USAGE_LIMIT_EXCEEDED"})).into_response(),
        "hangs" => {
            tokio::time::sleep(Duration::from_secs(600)).await;
            StatusCode::OK.into_response()
        }
        "rows" => Json(json!({"rows": [{"name": "Ada", "owed": 5}, {"name": "Bob", "owed": 7}], "open": true}))
            .into_response(),
        entry => Json(json!({"entered": entry})).into_response(),
    }
}

fn post(id: &str, entry: &str) -> Value {
    json!({"id": id, "tool": "ledger_post", "parameters": {"entry": entry}})
}

/// The action with more fields.
fn and(mut action: Value, more: Value) -> Value {
    let Value::Object(more) = more else { panic!("fields are an object") };
    action.as_object_mut().unwrap().extend(more);
    action
}

/// Activates an automation with these actions, starts it with this trigger data and runs it.
async fn carried_out(world: &World, actions: &Value, trigger_data: &Value) -> AutomationRun {
    let automation = world.activate(&world.manual(actions)).await;
    let run = world.start_automation(&automation, "once", trigger_data).await;
    assert_eq!(world.run_loop(AMPLE).await, 0);
    whole(world, run.id).await.run
}

/// The run as the API shows it.
async fn shown(world: &World, run: &AutomationRun) -> Value {
    world.run(&run.id.to_string()).await.expect(200)
}

/// `id status` of each action.
async fn statuses(world: &World, run: &AutomationRun) -> Vec<String> {
    let actions = whole(world, run.id).await.actions;
    let word = |status: ActionStatus| json!(status).as_str().unwrap().to_owned();
    actions.iter().map(|action| format!("{} {}", action.action_id, word(action.status))).collect()
}

/// The entries posted to the books, in order.
fn entered(books: &Server) -> Vec<String> {
    let posts = books.seen().into_iter().filter(|request| request.method == "POST");
    posts.map(|request| request.target.trim_start_matches("/ledger/").to_owned()).collect()
}

#[tokio::test]
async fn actions_run_in_order_and_pass_on_typed_outputs() {
    let (world, books) = books().await;
    let actions = json!([
        {"id": "read", "tool": "ledger_read", "parameters": {"entry": "rows"}, "output_as": "found"},
        {
            "id": "second", "tool": "ledger_post",
            "parameters": {"entry": "{{found.rows[-1].name}}", "amount": "{{found.rows.0.owed}}", "note": "{{found.rows}} of {{trigger_data.who}}"},
            "condition": {"path": "found.open", "op": "==", "value": "true"},
            "output_as": "posted",
        },
        post("third", "{{posted.entered}}-{{trigger_data.missing}}"),
    ]);
    let run = carried_out(&world, &actions, &json!({"who": "us"})).await;
    assert_eq!((run.status, run.error.as_ref()), (RunStatus::Completed, None));
    assert_eq!((run.actions_executed, run.actions_failed), (3, 0));
    let body: Value = serde_json::from_str(&books.seen()[1].body).unwrap();
    // A template that is the whole text keeps the type of its value.
    let rows = r#"[{"name":"Ada","owed":5},{"name":"Bob","owed":7}]"#;
    assert_eq!(body, json!({"amount": 5, "note": format!("{rows} of us")}));
    assert_eq!(entered(&books), ["Bob", "Bob-%5BNo%20available%20data%5D"]);
    let shown = shown(&world, &run).await;
    assert_eq!(shown["automation_id"], json!(run.automation_id));
    assert_eq!((&shown["automation_version"], &shown["trigger_data"]), (&json!(1), &json!({"who": "us"})));
    let second = &shown["actions"][1];
    assert_eq!((&second["success"], &second["skipped"], &second["attempts"]), (&json!(true), &json!(false), &json!(1)));
    assert_eq!(second["condition_result"]["clauses"][0]["text"], "found.open == \"true\": yes, it was true");
    assert_eq!((&second["arguments"]["amount"], &second["output"]), (&json!(5), &json!({"entered": "Bob"})));
    // The effect is in the history, under the id that the action names.
    let execution = second["execution_id"].as_str().unwrap();
    let history = world.aws.row("executions", execution).unwrap();
    assert_eq!((&history["run_id"], &history["status"]), (&json!(run.id), &json!("succeeded")));
}

/// `contains_any` and nested groups hold, and numbers and truth values equal their texts.
#[tokio::test]
async fn operators_and_groups_compare_by_meaning() {
    let (world, books) = books().await;
    let clause = |path: &str, op: &str, value: Value| json!({"path": path, "op": op, "value": value});
    let conditions = [
        clause("trigger_data.event.text", "contains_any", json!(["urgent", "asap"])),
        json!({"operator": "AND", "clauses": [
            clause("trigger_data.event.text", "contains", json!("asap")),
            {"operator": "OR", "clauses": [clause("trigger_data.event.count", ">", json!(100)), clause("trigger_data.event.open", "==", json!("true"))]},
        ]}),
        clause("trigger_data.event.count", "==", json!("5")),
        clause("trigger_data.event.counted", "==", json!(5)),
    ];
    let act =
        |(place, condition)| and(post(&format!("a{place}"), &format!("e{place}")), json!({"condition": condition}));
    let actions: Value = conditions.into_iter().enumerate().map(act).collect();
    let data = json!({"event": {"text": "come asap", "count": 5, "counted": "5", "open": true}});
    let run = carried_out(&world, &actions, &data).await;
    assert_eq!(statuses(&world, &run).await, ["a0 succeeded", "a1 succeeded", "a2 succeeded", "a3 succeeded"]);
    assert_eq!(entered(&books), ["e0", "e1", "e2", "e3"]);
}

/// A repeated cause or message acts once.
#[tokio::test]
async fn the_same_cause_and_every_message_of_it_act_once() {
    let (world, books) = books().await;
    let automation = world.activate(&world.manual(&json!([post("a", "one"), post("b", "two")]))).await;
    let nothing = json!({});
    let (first, again) = futures_util::join!(
        world.start_automation(&automation, "event-1", &nothing),
        world.start_automation(&automation, "event-1", &nothing),
    );
    assert_eq!(first.id, again.id);
    let message = world.aws.messages("runs").remove(0).to_string();
    for _ in 0..4 {
        world.aws.post("runs", &message);
    }
    assert_eq!(world.run_loop(AMPLE).await, 0);
    world.later();
    world.aws.post("runs", &message);
    assert_eq!(world.run_loop(AMPLE).await, 0);
    assert_eq!(entered(&books), ["one", "two"]);
    // Another cause is another run, with effects of its own.
    world.start_automation(&automation, "event-2", &json!({})).await;
    assert_eq!(world.run_loop(AMPLE).await, 0);
    assert_eq!(entered(&books), ["one", "two", "one", "two"]);
}

/// Two equal actions act twice; their ids distinguish them.
#[tokio::test]
async fn each_action_acts_for_itself() {
    let (world, books) = books().await;
    let run = carried_out(&world, &json!([post("a", "same"), post("b", "same")]), &json!({})).await;
    assert_eq!((run.status, entered(&books).len()), (RunStatus::Completed, 2));
}

#[tokio::test]
async fn an_action_that_is_not_meant_is_skipped_and_says_why() {
    let (world, books) = books().await;
    let condition = json!({"path": "trigger_data.event.text", "op": "contains", "value": "urgent"});
    let actions =
        json!([and(post("a", "one"), json!({"condition": condition, "output_as": "a"})), post("b", "{{a.entered}}")]);
    let run = carried_out(&world, &actions, &json!({"event": {"text": "lunch?"}})).await;
    assert_eq!((run.status, run.actions_executed, run.actions_failed), (RunStatus::Completed, 1, 0));
    assert_eq!(entered(&books), ["%5BNo%20available%20data%5D"]);
    let skipped = &shown(&world, &run).await["actions"][0];
    assert_eq!(
        (&skipped["status"], &skipped["skipped"], &skipped["arguments"]),
        (&json!("skipped"), &json!(true), &json!(null))
    );
    let why = "trigger_data.event.text contains \"urgent\": no, it was \"lunch?\"";
    assert_eq!(skipped["error"], format!("Its condition does not hold: {why}."));
    assert_eq!(skipped["condition_result"]["clauses"][0]["text"], why);
}

#[tokio::test]
async fn a_failing_action_does_not_stop_the_run_unless_it_says_so() {
    let (world, books) = books().await;
    let run = carried_out(&world, &json!([post("a", "refused"), post("b", "two")]), &json!({})).await;
    assert_eq!((run.status, run.actions_executed, run.actions_failed), (RunStatus::PartialFailure, 1, 1));
    let error = "1 of 2 actions failed: a (The service answered with status 422: no such account).";
    assert_eq!(run.error.as_deref(), Some(error));

    let stops = and(post("a", "refused"), json!({"on_error": "stop"}));
    let run = carried_out(&world, &json!([stops, post("b", "three"), post("c", "four")]), &json!({})).await;
    assert_eq!((run.status, run.actions_failed), (RunStatus::Failed, 1));
    let error = run.error.unwrap();
    assert!(error.ends_with("The last 2 were not started: the run was to stop if a fails."), "{error}");
    let run = carried_out(&world, &json!([post("b", "refused"), post("c", "broken")]), &json!({})).await;
    assert_eq!((run.status, run.actions_failed), (RunStatus::Failed, 2));
    // The effect of a failing service is unknown.
    assert_eq!(statuses(&world, &run).await, ["b failed", "c unknown"]);
    assert_eq!(entered(&books), ["refused", "two", "refused", "refused", "broken"]);
}

#[tokio::test]
async fn a_usage_limit_stops_the_run_at_once() {
    let (world, books) = books().await;
    let actions = json!([post("a", "one"), post("b", "used-up"), post("c", "three")]);
    let run = carried_out(&world, &actions, &json!({})).await;
    assert_eq!((run.status, run.actions_executed, run.actions_failed), (RunStatus::PartialFailure, 1, 1));
    let error = run.error.as_deref().unwrap();
    assert!(
        error.contains("USAGE_LIMIT_EXCEEDED") && error.ends_with("the usage limit of ledger_post is exceeded."),
        "{error}"
    );
    assert_eq!(entered(&books), ["one", "used-up"]);
    let shown = shown(&world, &run).await;
    assert_eq!(shown["actions"][1]["output"], json!({"error": "USAGE_LIMIT_EXCEEDED"}));
}

#[tokio::test]
async fn a_tool_of_the_organization_is_called_by_its_name_at_the_version_that_was_activated() {
    let (world, _books) = books().await;
    let tool = world.tool(&tests::sms_without_call(&world.home)).await;
    let name = tool["name"].as_str().unwrap();
    let tell = json!({"id": "tell", "tool": name, "parameters": {"text": "Hello"}});
    let automation = world.activate(&world.manual(&json!([tell]))).await;
    // A renamed tool is the same tool.
    let id = tool["id"].as_str().unwrap();
    world.aws.change("tools", id, json!({"name": "another_name"}));
    let run = world.start_automation(&automation, "once", &json!({})).await;
    assert_eq!(world.run_loop(AMPLE).await, 0);
    let run = whole(&world, run.id).await;
    assert_eq!((run.run.status, run.run.error), (RunStatus::Completed, None));
    assert_eq!(world.twilio.messages().len(), 1);
}

#[tokio::test]
async fn an_action_with_too_large_parameters_is_not_sent() {
    let (world, books) = books().await;
    let note = "{{trigger_data.long}}".repeat(30);
    let big = json!({"id": "a", "tool": "ledger_post", "parameters": {"entry": "one", "note": note}});
    let run = carried_out(&world, &json!([big, post("b", "two")]), &json!({"long": "x".repeat(10_000)})).await;
    assert_eq!((run.status, entered(&books)), (RunStatus::PartialFailure, vec!["two".to_owned()]));
    assert!(run.error.unwrap().contains("more than 200000 bytes"));
}

#[tokio::test]
async fn a_run_is_shown_redacted() {
    let (world, _books) = books().await;
    let write =
        json!({"id": "a", "tool": "ledger_post", "parameters": {"entry": "x", "note": "call {{trigger_data.phone}}"}});
    let run =
        carried_out(&world, &json!([write]), &json!({"phone": "+1 415 555 0101", "mail": "ada@example.com"})).await;
    let shown = shown(&world, &run).await;
    assert_eq!(shown["actions"][0]["arguments"]["note"], "call [number]");
    assert_eq!(shown["trigger_data"], json!({"phone": "[number]", "mail": "[email]"}));
}

#[tokio::test]
async fn a_tool_that_changed_pauses_the_automation_and_nothing_else_is_called() {
    for gone in [true, false] {
        let (world, books) = books().await;
        let automation = world.activate(&world.manual(&json!([post("a", "one")]))).await;
        let tool = shared::models::service_tool_id("ledger_post").to_string();
        let change = if gone { json!({"is_active": false}) } else { json!({"fingerprint": "another"}) };
        world.aws.change("service_tools", &tool, change);
        let run = world.start_automation(&automation, "once", &json!({})).await;
        assert_eq!(world.run_loop(AMPLE).await, 0);
        let run = whole(&world, run.id).await.run;
        let paused = world.automation_row(&automation.id.to_string()).await;
        assert_eq!((run.status, json!(paused.status)), (RunStatus::Failed, json!("paused")));
        let reason = run.error.unwrap();
        assert!(reason.starts_with("The tool ledger_post "), "{reason}");
        assert_eq!(paused.pause_reason.as_ref(), Some(&reason));
        assert!(entered(&books).is_empty());
    }
}

/// A missing account may be connected again: no reason to pause.
#[tokio::test]
async fn an_account_that_is_not_connected_is_a_failed_action() {
    let (world, books) = books().await;
    world.slack_service();
    let actions = json!([
        {"id": "tell", "tool": "slack_post_message", "parameters": {"channel": "C1", "text": "Hi"}}, post("b", "two"),
    ]);
    let automation = world.activate(&world.manual(&actions)).await;
    world.pipedream.expire(&world.home.slack_account);
    let mut world = world;
    world.restart();
    let run = world.start_automation(&automation, "once", &json!({})).await;
    assert_eq!(world.run_loop(AMPLE).await, 0);
    let run = whole(&world, run.id).await.run;
    assert_eq!((run.status, entered(&books)), (RunStatus::PartialFailure, vec!["two".to_owned()]));
    assert!(run.error.unwrap().contains("has an account at Slack that does not work"));
    assert_eq!(json!(world.automation_row(&automation.id.to_string()).await.status), json!("active"));
}
