//! Runs that end early: a pause, a deletion, a cancellation, a changed tool.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use shared::{automation::RunCause, models::RunTrigger};
use tests::{
    Fault, Trouble,
    automation::calls,
    standins::{self, llm::Turn},
};
use tokio::sync::Semaphore;

use super::*;

/// A run between its first and its second action.
async fn half_way(world: &World) -> (String, AutomationRun) {
    let automation = world.activate(&half_way_definition(world)).await;
    let run = world.start_automation(&automation, "once", &json!({})).await;
    assert_eq!(world.run_loop(AMPLE).await, 0);
    assert_eq!(statuses(world, &run).await, ["read succeeded"]);
    (automation.id.to_string(), run)
}

fn half_way_definition(world: &World) -> Value {
    let reads = json!({"id": "read", "tool": "ledger_read", "parameters": {"entry": "rows"}, "output_as": "rows"});
    let waits = and(post("tell", "one"), json!({"approval": true}));
    world.manual(&json!([reads, waits, post("last", "two")]))
}

/// Approves the run's request, and lets the run continue.
async fn go_on(world: &World) {
    let asked = world.aws.rows("approvals").remove(0)["id"].as_str().unwrap().to_owned();
    world.approvals("POST", &format!("/{asked}/approve"), &Value::Null).await.expect(200);
    world.later();
    assert_eq!(world.run_loop(AMPLE).await, 0);
}

/// No run takes up the decision any more, so none is woken for it.
async fn closes_its_approval(world: &World) {
    let approval = world.aws.rows("approvals").remove(0)["id"].as_str().unwrap().to_owned();
    world.aws.change("approvals", &approval, json!({"wake_at": "2026-01-01T00:00:00.000Z"}));
    let before = world.aws.messages("runs").len();
    world.settle().await;
    let row = world.aws.row("approvals", &approval).unwrap();
    assert_eq!((&row["status"], row.get("open"), row.get("wake_at")), (&json!("approved"), None, None));
    assert_eq!(world.aws.messages("runs").len(), before);
}

#[tokio::test]
async fn a_run_under_way_ends_before_its_next_effect_when_its_automation_is_paused() {
    let (world, books) = books().await;
    let (automation, run) = half_way(&world).await;
    world.automation("POST", &format!("/{automation}/pause"), &Value::Null).await.expect(200);
    go_on(&world).await;
    assert!(entered(&books).is_empty());
    let shown = shown(&world, &run).await;
    assert_eq!(shown["status"], "cancelled");
    assert_eq!(shown["error"], "Its automation was paused, so the run ended before its next step.");
    closes_its_approval(&world).await;
}

#[tokio::test]
async fn a_run_under_way_ends_before_its_next_effect_when_its_automation_is_deleted() {
    let (world, books) = books().await;
    let (automation, run) = half_way(&world).await;
    assert_eq!(world.automation("DELETE", &format!("/{automation}"), &Value::Null).await.status, 204);
    go_on(&world).await;
    assert!(entered(&books).is_empty());
    let shown = shown(&world, &run).await;
    assert_eq!(shown["status"], "failed");
    assert_eq!(shown["error"], "The run was not carried out: version 1 of its automation was deleted.");
    closes_its_approval(&world).await;
}

/// The model is asked before the automation is withdrawn, and answers with a call afterwards.
#[tokio::test]
async fn a_prompt_under_way_makes_no_call_after_its_automation_is_paused_or_deleted() {
    for (method, path, word) in [("POST", "/pause", "paused"), ("DELETE", "", "deleted")] {
        let (world, books) = books().await;
        let automation = world
            .activate(&json!({
                "name": "By prompt", "trigger_type": "manual", "prompt": "Enter one.", "tools": ["ledger_post"],
                "fingerprints": {"ledger_post": world.fingerprint("ledger_post")},
            }))
            .await;
        let run = world.start_automation(&automation, "once", &json!({})).await;
        world.llm.script([Turn::text(&calls("return ledger_post({entry: \"one\"});"))]);
        world.llm.inject(standins::Fault::held());
        let withdraw = async {
            tests::clients::until(|| !world.llm.requests().is_empty()).await;
            let answer = world.automation(method, &format!("/{}{path}", automation.id), &Value::Null).await;
            assert!(answer.status < 300, "{}", answer.body);
            world.llm.release();
        };
        tokio::join!(world.run_loop(AMPLE), withdraw);
        assert!(entered(&books).is_empty(), "{word}");
        let shown = shown(&world, &run).await;
        let why = format!("Its automation was {word}, so the run ended before its next step.");
        assert_eq!((&shown["status"], &shown["error"]), (&json!("cancelled"), &json!(why)));
    }
}

/// Books that answer once the semaphore is closed.
async fn held_books() -> (World, Server, Arc<Semaphore>) {
    let held = Arc::new(Semaphore::new(0));
    let gate = Arc::clone(&held);
    let entry = move |Path(entry): Path<String>| {
        let gate = Arc::clone(&gate);
        async move {
            let _closed = gate.acquire().await;
            answer(&entry).await
        }
    };
    let books = Server::start(Router::new().route("/ledger/{entry}", any(entry))).await;
    let world = World::with(Options { open_hosts: vec![books.address.to_string()], ..Options::default() }).await;
    world.ledger_service(&books.url);
    (world, books, held)
}

/// The books refuse the entry for the moment, and the automation is paused before the action's retry.
#[tokio::test]
async fn an_action_is_not_tried_again_after_the_pause() {
    let (world, books, held) = held_books().await;
    let actions = json!([and(post("busy", "busy"), json!({"retries": 2}))]);
    let automation = world.activate(&world.manual(&actions)).await;
    let run = world.start_automation(&automation, "once", &json!({})).await;
    let pause = async {
        tests::clients::until(|| !entered(&books).is_empty()).await;
        world.automation("POST", &format!("/{}/pause", automation.id), &Value::Null).await.expect(200);
        held.close();
    };
    tokio::join!(world.run_loop(AMPLE), pause);
    assert_eq!(entered(&books), ["busy"]);
    assert_eq!(statuses(&world, &run).await, ["busy failed"]);
}

/// The books refuse the entry for the moment, and our database the reading of the automation before the retry.
#[tokio::test]
async fn an_action_whose_automation_cannot_be_read_before_its_retry_is_done_later() {
    let entered_before = Arc::new(AtomicBool::new(false));
    let entry = move |Path(entry): Path<String>| {
        let busy = !entered_before.swap(true, Relaxed);
        async move { answer(if busy { "busy" } else { &entry }).await }
    };
    let books = Server::start(Router::new().route("/ledger/{entry}", any(entry))).await;
    let world = World::with(Options { open_hosts: vec![books.address.to_string()], ..Options::default() }).await;
    world.ledger_service(&books.url);
    let actions = json!([and(post("a", "one"), json!({"retries": 2}))]);
    let automation = world.activate(&world.manual(&actions)).await;
    let run = world.start_automation(&automation, "once", &json!({})).await;
    // Before the first attempt it can be read.
    world.aws.inject(Fault::throttled("GetItem", "automations").after(1));
    assert_eq!(world.run_loop(AMPLE).await, 0);
    assert_eq!((world.aws.faults_left(), statuses(&world, &run).await), (0, Vec::new()));
    world.later();
    world.deliver_runs().await;
    assert_eq!((entered(&books).len(), statuses(&world, &run).await), (2, vec!["a succeeded".to_owned()]));
}

/// Five calls of an answer run at the same time; the sixth would begin after the pause.
#[tokio::test]
async fn the_calls_of_an_answer_that_have_not_begun_are_not_made_after_the_pause() {
    let (world, books, held) = held_books().await;
    let automation = world
        .activate(&json!({
            "name": "By prompt", "trigger_type": "manual", "prompt": "Enter six.", "tools": ["ledger_post", "remember"],
            "fingerprints": {"ledger_post": world.fingerprint("ledger_post"), "remember": "built-in"},
        }))
        .await;
    let run = world.start_automation(&automation, "once", &json!({})).await;
    let mut six: Vec<String> = (1..=6).map(|number| format!("return ledger_post({{entry: \"{number}\"}});")).collect();
    six.push("return remember({key: \"all\"});".to_owned());
    world.llm.script([Turn::text(&calls(&six.join("\n"))), Turn::text(&calls("return finalResponse();"))]);
    let pause = async {
        tests::clients::until(|| entered(&books).len() == 5).await;
        world.automation("POST", &format!("/{}/pause", automation.id), &Value::Null).await.expect(200);
        held.close();
    };
    tokio::join!(world.run_loop(AMPLE), pause);
    assert_eq!(entered(&books).len(), 5);
    assert_eq!(world.aws.rows("automation_memory"), [] as [Value; 0]);
    assert_eq!(world.llm.requests().len(), 1, "no further answer is paid for");
    let shown = shown(&world, &run).await;
    let why = "Its automation was paused, so the run ended before its next step.";
    assert_eq!((&shown["status"], &shown["error"]), (&json!("cancelled"), &json!(why)));
}

/// The run's process died after it had stored an answer with a call.
#[tokio::test]
async fn a_prompt_that_goes_on_after_the_pause_makes_no_call() {
    let (world, books) = books().await;
    let automation = world
        .activate(&json!({
            "name": "By prompt", "trigger_type": "manual", "prompt": "Enter one.", "tools": ["ledger_post"],
            "fingerprints": {"ledger_post": world.fingerprint("ledger_post")},
        }))
        .await;
    let run = world.start_automation(&automation, "once", &json!({})).await;
    world.llm.script([Turn::text(&calls("return ledger_post({entry: \"one\"});"))]);
    while whole(&world, run.id).await.answers.is_empty() {
        assert!(world.kill_run(Fault::new("TransactWriteItems", "automation_runs", Trouble::StallAfter)).await);
    }
    world.automation("POST", &format!("/{}/pause", automation.id), &Value::Null).await.expect(200);
    world.deliver_runs().await;
    assert!(entered(&books).is_empty());
    assert_eq!(shown(&world, &run).await["status"], "cancelled");
}

/// A poll was reading its source while the automation was paused.
#[tokio::test]
async fn a_run_that_a_poll_begins_after_the_pause_is_not_carried_out() {
    let (world, books) = books().await;
    let automation = world.activate(&world.manual(&json!([post("a", "one")]))).await;
    world.automation("POST", &format!("/{}/pause", automation.id), &Value::Null).await.expect(200);
    let cause = RunCause {
        trigger: RunTrigger::Polling,
        key: "item 1",
        trigger_data: &json!({}),
        event: None,
        scheduled_for: None,
        user: None,
        version: None,
        dry_run: false,
        parent: None,
    };
    let (run, _) = world.process.run_starter.start(&automation, &cause).await.unwrap();
    assert_eq!(world.run_loop(AMPLE).await, 0);
    assert!(entered(&books).is_empty());
    assert_eq!(shown(&world, &run).await["status"], "cancelled");
}

/// The same definition gets the same id; the run is not one of the automation that has it now.
#[tokio::test]
async fn a_waiting_run_of_a_deleted_automation_does_not_act_for_its_successor() {
    let (world, books) = books().await;
    let (automation, run) = half_way(&world).await;
    assert_eq!(world.automation("DELETE", &format!("/{automation}"), &Value::Null).await.status, 204);
    let again = half_way_definition(&world);
    let successor = world.activate(&again).await;
    assert_eq!(successor.id.to_string(), automation);
    go_on(&world).await;
    assert!(entered(&books).is_empty());
    let shown = shown(&world, &run).await;
    assert_eq!(shown["error"], "Its automation was deleted, so the run ended before its next step.", "{shown}");
}

#[tokio::test]
async fn a_run_that_is_started_of_a_paused_automation_is_carried_out() {
    let (world, books) = books().await;
    let automation = world.activate(&world.manual(&json!([post("a", "one")]))).await;
    world.automation("POST", &format!("/{}/pause", automation.id), &Value::Null).await.expect(200);
    let automation = world.automation_row(&automation.id.to_string()).await;
    world.start_automation(&automation, "by hand", &json!({})).await;
    assert_eq!(world.run_loop(AMPLE).await, 0);
    assert_eq!(entered(&books), ["one"]);
}

#[tokio::test]
async fn a_run_that_was_cancelled_says_who_did_it() {
    let (world, _books) = books().await;
    let (_, run) = half_way(&world).await;
    let cancelled = world.cancel_run(&run.id.to_string()).await.expect(200);
    let expected = json!(format!("It was cancelled by {}.", world.home.user_id));
    assert_eq!((&cancelled["status"], &cancelled["error"]), (&json!("cancelled"), &expected));
    assert_eq!(shown(&world, &run).await["error"], expected);
}

/// Only an action's binding counts: the tool's name, parameters and action.
#[tokio::test]
async fn another_description_of_a_tool_pauses_no_automation_and_another_binding_does() {
    let (world, _books) = books().await;
    let tool = world.tool(&tests::sms_without_call(&world.home)).await;
    let (id, name) = (tool["id"].as_str().unwrap(), tool["name"].as_str().unwrap());
    let tell = json!({"id": "tell", "tool": name, "parameters": {"text": "Hello"}});
    let automation = world.activate(&world.manual(&json!([tell]))).await;
    let edited = world.update(&tool, &json!({"description": "Says hello to the guest."})).await.expect(200);
    assert_eq!(edited["version"].as_u64(), tool["version"].as_u64().map(|version| version + 1));
    let run = world.start_automation(&automation, "described", &json!({})).await;
    assert_eq!(world.run_loop(AMPLE).await, 0);
    assert_eq!(whole(&world, run.id).await.run.error, None);
    assert_eq!(world.twilio.messages().len(), 1);
    // The row as an older program wrote it, and edited it since: its fields for another version do not count.
    let row = world.aws.row("tools", id).unwrap();
    assert_eq!(row["unchanged"]["since"], tool["version"]);
    world.update(&edited, &json!({"repeatable": true, "label": edited["label"]})).await.expect(200);
    let run = world.start_automation(&automation, "held back", &json!({})).await;
    assert_eq!(world.run_loop(AMPLE).await, 0);
    assert_eq!(whole(&world, run.id).await.run.error, None);

    let again = world.update(&tool, &json!({"text": {"mode": "fixed", "value": "Bye"}})).await;
    assert_eq!(again.status, 200, "{}", again.body);
    let run = world.start_automation(&automation, "bound", &json!({})).await;
    assert_eq!(world.run_loop(AMPLE).await, 0);
    let error = whole(&world, run.id).await.run.error.unwrap();
    assert!(error.contains("has changed since the automation was activated"), "{error}");
}

/// An older program derived them otherwise.
#[tokio::test]
async fn another_label_keeps_a_tools_stored_parameters_and_pauses_no_automation() {
    let (world, _books) = books().await;
    let tool = world.tool(&tests::sms_without_call(&world.home)).await;
    let (id, name) = (tool["id"].as_str().unwrap(), tool["name"].as_str().unwrap());
    let mut function = tool["function_schema"].clone();
    function["parameters"]["properties"]["text"]["enum"] = json!(["Hello", "Bye"]);
    world.aws.change("tools", id, json!({"function_schema": function}));
    let tell = json!({"id": "tell", "tool": name, "parameters": {"text": "Hello"}});
    let automation = world.activate(&world.manual(&json!([tell]))).await;
    let changes = json!({"label": "Text the guest", "description": "Says hello."});
    let edited = world.update(&tool, &changes).await.expect(200);
    assert_eq!(edited["function_schema"]["parameters"], function["parameters"]);
    assert_eq!(edited["function_schema"]["description"], "Says hello.");
    let run = world.start_automation(&automation, "relabelled", &json!({})).await;
    assert_eq!(world.run_loop(AMPLE).await, 0);
    assert_eq!(whole(&world, run.id).await.run.error, None);
    assert_eq!(world.twilio.messages().len(), 1);
    let prompt = json!({"text": {"mode": "ai", "prompt": "What to write"}});
    let edited = world.update(&tool, &prompt).await.expect(200);
    assert_eq!(edited["function_schema"]["parameters"]["properties"]["text"].get("enum"), None);
}

#[tokio::test]
async fn an_action_that_fails_names_the_templates_that_led_to_nothing() {
    let (world, _books) = books().await;
    let write = json!({"id": "a", "tool": "ledger_post", "parameters": {"entry": "{{user.phone}}", "amount": "{{trigger_data.sum}}"}});
    let run = carried_out(&world, &json!([write]), &json!({})).await;
    let error = run.error.unwrap();
    assert!(error.contains("Nothing was there for {{trigger_data.sum}}, {{user.phone}}."), "{error}");
}
