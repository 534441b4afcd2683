//! `remember` and `recall`: values that an automation keeps between its runs.

use serde_json::{Value, json};
use shared::models::{Automation, AutomationRun, RunStatus};
use tests::{
    Event, Fault, Trouble, World,
    automation::{AMPLE, whole},
};

use super::{and, books, carried_out, entered, post, statuses};

fn remember(parameters: &Value) -> Value {
    json!({"id": "mark", "tool": "remember", "parameters": parameters, "output_as": "mark"})
}

fn once_a_month() -> Value {
    json!([
        remember(
            &json!({"key": "offer {{trigger_data.customer}} {{today | date('%Y-%m')}}", "if_absent": true, "expires_in_days": 40})
        ),
        and(
            post("offer", "{{trigger_data.customer}}"),
            json!({"condition": {"path": "mark.stored", "op": "==", "value": true}})
        ),
    ])
}

async fn run(world: &World, automation: &Automation, name: &str, data: &Value) -> AutomationRun {
    let run = world.start_automation(automation, name, data).await;
    assert_eq!(world.run_loop(AMPLE).await, 0);
    whole(world, run.id).await.run
}

/// The outputs of a run's actions.
async fn outputs(world: &World, run: &AutomationRun) -> Vec<Value> {
    let actions = whole(world, run.id).await.actions;
    let output = |text: &String| serde_json::from_str(text).unwrap();
    actions.iter().map(|action| action.output.as_ref().map_or(Value::Null, output)).collect()
}

fn values(world: &World) -> Vec<Value> {
    world.aws.rows("automation_memory").into_iter().filter(|row| row.get("key").is_some()).collect()
}

fn counted(world: &World) -> Value {
    let rows = world.aws.rows("automation_memory");
    rows.iter().find(|row| row.get("keys").is_some()).map_or(Value::Null, |row| row["keys"].clone())
}

#[tokio::test]
async fn something_happens_once_per_customer_and_month() {
    let (world, books) = books().await;
    let automation = world.activate(&world.manual(&once_a_month())).await;
    for (name, customer) in [("1", "ada"), ("2", "bob"), ("3", "ada")] {
        run(&world, &automation, name, &json!({"customer": customer})).await;
    }
    assert_eq!(
        (entered(&books), values(&world).len(), counted(&world)),
        (vec!["ada".into(), "bob".into()], 2, json!(2))
    );
    // Another automation has a memory of its own.
    let mut other = world.manual(&once_a_month());
    other["name"] = json!("Another");
    let other = world.activate(&other).await;
    run(&world, &other, "1", &json!({"customer": "ada"})).await;
    assert_eq!(entered(&books).len(), 3);
    // A deleted automation leaves nothing, and the other one keeps its memory.
    world.automation("DELETE", &format!("/{}", automation.id), &Value::Null).await.expect(204);
    let left = world.aws.rows("automation_memory");
    assert!(
        left.len() == 2 && left.iter().all(|row| row["place"].as_str().unwrap().starts_with(&other.id.to_string()))
    );
}

/// Crashes around the write of the value and of the action's result.
#[tokio::test]
async fn a_run_that_resumes_after_a_crash_is_still_the_first() {
    for fault in [
        Fault::new("TransactWriteItems", "automation_memory", Trouble::StallAfter),
        Fault::new("TransactWriteItems", "automation_memory", Trouble::StallBefore),
        Fault::new("TransactWriteItems", "automation_runs", Trouble::StallBefore),
    ] {
        let (mut world, books) = books().await;
        let automation = world.activate(&world.manual(&once_a_month())).await;
        let run = world.start_automation(&automation, "1", &json!({"customer": "ada"})).await;
        world.aws.inject(fault);
        let batch = world.aws.receive("runs", 900).unwrap();
        tokio::select! {
            _ = world.run_loop_batch(batch, AMPLE) => panic!("it was not killed"),
            () = world.aws.stalled() => {}
        }
        world.aws.clear_faults();
        world.later();
        world.restart();
        while let Some(batch) = world.aws.receive("runs", 900) {
            assert_eq!(world.run_loop_batch(batch, AMPLE).await, 0);
        }
        let run = whole(&world, run.id).await.run;
        assert_eq!((run.status, entered(&books)), (RunStatus::Completed, vec!["ada".to_owned()]));
        assert_eq!(outputs(&world, &run).await[0], json!({"stored": true, "version": 1}));
        assert_eq!((values(&world)[0]["version"].clone(), counted(&world)), (json!(1), json!(1)));
    }
}

#[tokio::test]
async fn a_value_is_written_at_its_version_only_and_two_runs_follow_one_another() {
    let (world, _books) = books().await;
    let automation = world
        .activate(&world.manual(&json!([
            {"id": "before", "tool": "recall", "parameters": {"key": "count"}, "output_as": "before"},
            remember(&json!({"key": "count", "value": {"n": "{{trigger_data.n}}"}, "if_version": "{{trigger_data.at}}"})),
        ])))
        .await;
    let nothing = json!({"found": false, "value": null, "version": 0});
    for (name, n, at, before, stored) in [
        ("1", 1, 0, nothing, json!(true)),
        ("2", 2, 0, json!(1), json!(false)),
        ("3", 3, 1, json!(1), json!(true)),
        ("4", 4, 1, json!(3), json!(false)),
    ] {
        let run = run(&world, &automation, name, &json!({"n": n, "at": at})).await;
        let outputs = outputs(&world, &run).await;
        let found =
            if outputs[0]["found"] == json!(true) { outputs[0]["value"]["n"].clone() } else { outputs[0].clone() };
        assert_eq!((found, &outputs[1]["stored"]), (before, &stored), "{outputs:?}");
    }
    // While a run writes others do: the transaction is refused each time, and decided anew.
    let others = Fault::new("TransactWriteItems", "automation_memory", Trouble::TransactionConflict).times(7);
    world.aws.inject(others);
    let run = run(&world, &automation, "5", &json!({"n": 5, "at": 2})).await;
    assert_eq!(world.aws.faults_left(), 0);
    assert_eq!(outputs(&world, &run).await[1], json!({"stored": true, "version": 3}));
}

#[tokio::test]
async fn a_full_memory_fails_with_the_next_step_until_something_expires() {
    let (world, _books) = books().await;
    let write = remember(&json!({"key": "k{{trigger_data.n}}", "value": "x"}));
    let automation = world.activate(&world.manual(&json!([write]))).await;
    run(&world, &automation, "0", &json!({"n": 0})).await;
    let row = values(&world).remove(0);
    let named = |n: i64| {
        let mut row = row.clone();
        (row["key"], row["place"]) = (json!(format!("k{n}")), json!(format!("{}#k{n}", automation.id)));
        row
    };
    (1..256).for_each(|n| world.aws.put("automation_memory", &named(n)));
    let mut counter = world.aws.rows("automation_memory").into_iter().find(|row| row.get("keys").is_some()).unwrap();
    counter["keys"] = json!(256);
    world.aws.put("automation_memory", &counter);

    let full = run(&world, &automation, "256", &json!({"n": 256})).await;
    assert_eq!((full.status, statuses(&world, &full).await), (RunStatus::Failed, vec!["mark failed".to_owned()]));
    let why = full.error.unwrap();
    assert!(why.contains("remembers 256 keys") && why.contains("expires_in_days"), "{why}");
    // A key that is there can be written, and an expired one makes room although DynamoDB still has it.
    assert_eq!(run(&world, &automation, "7", &json!({"n": 7})).await.status, RunStatus::Completed);
    let mut expired = named(9);
    expired["expires_at"] = json!(1);
    world.aws.put("automation_memory", &expired);
    assert_eq!(run(&world, &automation, "257", &json!({"n": 256})).await.status, RunStatus::Completed);
    assert_eq!((values(&world).len(), counted(&world)), (256, json!(256)));
}

#[tokio::test]
async fn an_administrator_sees_the_memory_redacted_and_forgets_a_value() {
    let (world, books) = books().await;
    let automation = world.activate(&world.manual(&once_a_month())).await;
    for (name, customer) in [("1", "ada"), ("2", "bob#7")] {
        run(&world, &automation, name, &json!({"customer": customer})).await;
    }
    let mut expired = values(&world).remove(0);
    let mut telling = expired.clone();
    (telling["key"], telling["place"]) = (json!("told"), json!(format!("{}#told", automation.id)));
    telling["value"] = json!(r#"{"call": "+14155550101", "api_key": "hunter2", "n": 1}"#);
    (expired["key"], expired["place"]) = (json!("old"), json!(format!("{}#old", automation.id)));
    expired["expires_at"] = json!(1);
    world.aws.put("automation_memory", &expired);
    world.aws.put("automation_memory", &telling);
    let at = format!("/{}/memory", automation.id);
    let forget = async |key: &Value| world.automation("POST", &format!("{at}/forget"), &json!({"key": key})).await;

    // One at a time: the key with the separator is also a cursor.
    let (mut listed, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = world.automation("GET", &format!("{at}?limit=1{cursor}"), &Value::Null).await.expect(200);
        listed.extend(page["items"].as_array().unwrap().clone());
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    let keys: Vec<&str> = listed.iter().map(|value| value["key"].as_str().unwrap()).collect();
    assert!(
        keys.len() == 3
            && keys[2] == "told"
            && keys[0].starts_with("offer ada ")
            && keys[1].starts_with("offer bob#7 "),
        "{keys:?}"
    );
    assert_eq!((&listed[0]["value"], &listed[0]["version"]), (&json!(true), &json!(1)));

    assert_eq!(listed[2]["value"], json!({"call": "[number]", "api_key": "[secret]", "n": 1}));

    let endless = format!("{at}?cursor={}", "YWFh".repeat(500));
    world.automation("GET", &endless, &Value::Null).await.expect(422);

    let ada = &listed[0]["key"];
    forget(ada).await.expect(204);
    assert_eq!((values(&world).len(), counted(&world)), (3, json!(1)));
    // Neither the key nor a part of it is in the audit log.
    let entries = world.aws.rows("audit_entries");
    let forgotten: Vec<&Value> = entries.iter().filter(|entry| entry["details"]["forgotten_keys"] == 1).collect();
    assert_eq!(forgotten.len(), 1, "{entries:?}");
    assert!(!json!(entries).to_string().contains("offer ada"), "{entries:?}");
    run(&world, &automation, "3", &json!({"customer": "ada"})).await;
    run(&world, &automation, "4", &json!({"customer": "ada"})).await;
    assert_eq!(entered(&books), ["ada", "bob%237", "ada"]);

    for (key, status) in [(json!("old"), 404), (json!("nobody"), 404), (json!(""), 422), (json!(7), 422)] {
        forget(&key).await.expect(status);
    }
    world.aws.inject(Fault::new("TransactWriteItems", "automation_memory", Trouble::TransactionConflict).times(99));
    forget(ada).await.expect(409);
    world.aws.clear_faults();
    let theirs = world.automation_as(&world.other, "POST", &format!("{at}/forget"), &json!({"key": ada})).await;
    let unseen = world.automation_as(&world.other, "GET", &at, &Value::Null).await;
    assert_eq!((theirs.status, unseen.status), (404, 404));
    assert_eq!((values(&world).len(), counted(&world)), (4, json!(2)));
}

#[tokio::test]
async fn null_and_empty_text_are_remembered_as_they_are() {
    let (world, _books) = books().await;
    let write = remember(&json!({"key": "k", "value": "{{trigger_data.value}}"}));
    let read = json!({"id": "after", "tool": "recall", "parameters": {"key": "k"}, "output_as": "after"});
    let automation = world.activate(&world.manual(&json!([write, read]))).await;
    for (name, value) in [("1", json!(null)), ("2", json!("")), ("3", json!(0))] {
        let run = run(&world, &automation, name, &json!({"value": value})).await;
        assert_eq!(outputs(&world, &run).await[1]["value"], value);
    }
}

#[tokio::test]
async fn bad_input_is_told_and_nothing_is_stored() {
    let (world, _books) = books().await;
    for (parameters, told) in [
        (json!({"key": "k", "value": "{{trigger_data.long}}"}), "the limit is 4096"),
        (json!({"key": "{{trigger_data.long}}"}), "1 to 200 bytes"),
        (json!({"key": "k", "if_absent": true, "if_version": 3}), "not both"),
        (json!({"key": "k", "expires_in_days": 500}), "from 1 to 400"),
    ] {
        let run = carried_out(&world, &json!([remember(&parameters)]), &json!({"long": "x".repeat(5_000)})).await;
        let error = run.error.unwrap_or_default();
        assert!(run.status == RunStatus::Failed && error.contains(told), "{parameters}: {error}");
    }
    assert!(world.aws.rows("automation_memory").is_empty());
}

#[tokio::test]
async fn a_dry_run_reads_the_memory_and_writes_nothing() {
    let (world, _books) = books().await;
    let automation = world.activate(&world.manual(&once_a_month())).await;
    let body = json!({"dry_run": true, "trigger_data": {"customer": "ada"}});
    let started = world.automation("POST", &format!("/{}/run", automation.id), &body).await.expect(202);
    assert_eq!(world.run_loop(AMPLE).await, 0);
    let run = world.run(started["id"].as_str().unwrap()).await.expect(200);
    assert_eq!(run["actions"][0]["status"], "not_sent", "{run}");
    assert!(world.aws.rows("automation_memory").is_empty());
}

#[tokio::test]
async fn the_erasure_of_a_number_finds_it_in_keys_and_values() {
    let (world, _books) = books().await;
    let write = remember(&json!({"key": "{{trigger_data.key}}", "value": "{{trigger_data.value}}"}));
    let automation = world.activate(&world.manual(&json!([write]))).await;
    for (name, key, value) in [
        ("1", "call +14155550101", json!("x")),
        ("2", "last", json!({"number": "(415) 555-0101"})),
        ("3", "other", json!("+14155550102")),
    ] {
        run(&world, &automation, name, &json!({"key": key, "value": value})).await;
    }
    let erasure = Event::post(&format!("/api/{}/erasures", world.home.slug), &json!({"phone_number": "+14155550101"}));
    let erased = world.send("erasures", &erasure.user(&world.home.user_id)).await.expect(200);
    assert_eq!((&erased["deleted"]["remembered"], &erased["complete"]), (&json!(2), &json!(true)), "{erased}");
    let left = values(&world);
    assert!(left.len() == 1 && left[0]["key"] == "other", "{left:?}");
}
