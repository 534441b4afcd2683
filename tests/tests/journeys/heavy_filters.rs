//! Expensive filters: the service gets a timely answer, and the queue evaluates the rest.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test says what is wrong and stops")]

use serde_json::{Value, json};
use tests::{Answer, Fault, SLACK_SECRET, World, automation::AMPLE, slack_message, webhooks::Signer};
use uuid::Uuid;

/// A world in which an event may take long: the time of a busy machine says nothing about Lambda, so the work is counted.
async fn patient() -> World {
    let mut world = World::start().await;
    world.process.trigger.answer_within = Some(AMPLE);
    world
}

async fn says(world: &World, hook: &Value, text: &str) -> Answer {
    let event = world.signed(&world.hook_path(hook), Signer::Slack(SLACK_SECRET), &slack_message("Ev1", text));
    world.send("trigger", &event.within(AMPLE)).await
}

/// Automations that listen for messages, each with `clauses` clauses; each accepts a message with its number at the end.
async fn listeners(world: &World, automations: usize, clauses: usize) -> Vec<String> {
    world.slack_service();
    let first = world.active(&world.urgent_messages()).await;
    let (row, version) =
        (world.aws.row("automations", &first).unwrap(), world.aws.rows("automation_versions").remove(0));
    let listener = |number: usize| {
        let id = if number == 0 { first.clone() } else { Uuid::now_v7().to_string() };
        let clause =
            |word: String| json!({"path": "event.text", "op": "contains", "value": word, "case_insensitive": true});
        let words = (1..clauses).map(|at| format!("never {at}")).chain([format!("WANTED {number}.")]);
        let filter = json!({"operator": "OR", "clauses": words.map(clause).collect::<Vec<_>>()});
        let (mut row, mut version) = (row.clone(), version.clone());
        (row["id"], row["trigger_filter"], version["automation_id"]) =
            (json!(id), json!(filter.to_string()), json!(id));
        world.aws.put("automations", &row);
        world.aws.put("automation_versions", &version);
        id
    };
    (0..automations).map(listener).collect()
}

/// A text of `bytes` bytes that all of them accept.
fn wanted(automations: usize, bytes: usize) -> String {
    let wanted: Vec<String> = (0..automations).map(|number| format!("wanted {number}. ")).collect();
    let wanted = wanted.concat();
    format!("{}{wanted}", "Ärger ".repeat((bytes - wanted.len()) / 7))
}

/// Automations with exactly one run.
fn started(world: &World, automations: &[String]) -> usize {
    let rows = world.aws.rows("automation_runs");
    let runs = rows.iter().filter(|row| row["part"] == "run");
    let of: Vec<&str> = runs.filter_map(|row| row["automation_id"].as_str()).collect();
    automations.iter().filter(|id| of.iter().filter(|one| *one == id).count() == 1).count()
}

async fn event(world: &World) -> Value {
    world.events("").await.expect(200)["items"][0].clone()
}

#[tokio::test]
async fn the_service_has_its_answer_and_every_automation_its_run() {
    let world = patient().await;
    let automations = listeners(&world, 60, 99).await;
    let hook = world.slack_hook().await;
    says(&world, &hook, &wanted(60, 60_000)).await.expect(200);
    // 99 times 60 KB each, of 16 MB.
    let at_once = started(&world, &automations);
    assert_eq!(at_once, 2);
    let seen = event(&world).await;
    assert_eq!((&seen["status"], seen["waiting"].as_array().unwrap().len()), (&json!("received"), 60 - at_once));
    assert!(seen["why"].as_str().unwrap().contains("from a queue"), "{seen}");
    assert_eq!(seen["matched"].as_array().unwrap().len(), at_once);

    // A repetition meanwhile: no run and no filter happens twice.
    says(&world, &hook, &wanted(60, 60_000)).await.expect(200);
    assert_eq!(started(&world, &automations), at_once);
    let mut rounds = 0;
    while !world.aws.messages("scheduled").is_empty() {
        assert_eq!(world.run_scheduled().await, 0);
        rounds += 1;
        assert!(rounds < 100, "it comes to an end");
    }
    assert!(rounds > 1, "no message takes all the time there is");
    assert_eq!(started(&world, &automations), 60);
    let seen = event(&world).await;
    assert_eq!((&seen["status"], &seen["waiting"], &seen["why"]), (&json!("dispatched"), &json!([]), &Value::Null));
    assert_eq!(seen["matched"].as_array().unwrap().len(), 60);
    // And a repetition after the end.
    says(&world, &hook, &wanted(60, 60_000)).await.expect(200);
    assert!(world.aws.messages("scheduled").is_empty());
}

#[tokio::test]
async fn filters_that_take_little_are_looked_at_before_the_answer() {
    let world = patient().await;
    let automations = listeners(&world, 60, 20).await;
    let hook = world.slack_hook().await;
    says(&world, &hook, &wanted(60, 4_000)).await.expect(200);
    assert_eq!(started(&world, &automations), 60);
    assert!(world.aws.messages("scheduled").is_empty());
    assert_eq!(event(&world).await["waiting"], json!([]));
}

/// After a fault at each step, the service or the queue completes the work.
#[tokio::test]
async fn a_fault_is_completed_later_and_starts_each_run_once() {
    for (action, table) in [
        ("SendMessage", "scheduled"),
        ("UpdateItem", "events"),
        ("TransactWriteItems", "automation_runs"),
        ("SendMessage", "runs"),
    ] {
        let world = patient().await;
        let automations = listeners(&world, 12, 99).await;
        let hook = world.slack_hook().await;
        let wanted = wanted(12, 60_000);
        world.aws.inject(Fault::throttled(action, table));
        if says(&world, &hook, &wanted).await.status >= 500 {
            says(&world, &hook, &wanted).await.expect(200);
        }
        world.aws.clear_faults();
        world.aws.inject(Fault::throttled(action, table));
        for _ in 0..100 {
            world.run_scheduled().await;
        }
        assert!(world.aws.messages("scheduled").is_empty(), "{action} {table}");
        assert_eq!(started(&world, &automations), 12, "{action} {table}");
        let seen = event(&world).await;
        assert_eq!(
            (&seen["status"], seen["matched"].as_array().unwrap().len()),
            (&json!("dispatched"), 12),
            "{action}"
        );
    }
}

#[tokio::test]
async fn many_automations_of_one_event_start_in_turns() {
    let world = patient().await;
    let automations = listeners(&world, 250, 1).await;
    let hook = world.slack_hook().await;
    says(&world, &hook, &wanted(250, 4_000)).await.expect(200);
    assert_eq!((started(&world, &automations), event(&world).await["waiting"].as_array().unwrap().len()), (200, 50));
    assert_eq!(world.run_scheduled().await, 0);
    assert_eq!(started(&world, &automations), 250);
    let seen = event(&world).await;
    assert_eq!((&seen["status"], seen["matched"].as_array().unwrap().len()), (&json!("dispatched"), 250));
}

#[tokio::test]
async fn an_automation_that_has_its_turn_later_is_not_given_a_part_of_a_large_event() {
    let world = patient().await;
    listeners(&world, 210, 1).await;
    let hook = world.slack_hook().await;
    let large = format!("{}{}", wanted(210, 4_000), "word ".repeat(50_000));
    says(&world, &hook, &large).await.expect(200);
    assert_eq!(event(&world).await["waiting"].as_array().unwrap().len(), 10);
    assert_eq!(world.run_scheduled().await, 0);
    let (runs, seen) = (world.aws.rows("automation_runs").len(), event(&world).await);
    assert_eq!((runs, &seen["status"]), (0, &json!("dispatched")), "{seen}");
}

#[tokio::test]
async fn no_more_automations_listen_to_an_event_than_its_row_can_name() {
    let world = World::start().await;
    let automations = listeners(&world, 1_000, 1).await;
    let mut another = world.urgent_messages();
    another["name"] = json!("One too many");
    let saved = world.automation("POST", "", &another).await.expect(201);
    let activate = format!("/{}/activate", saved["automation"]["id"].as_str().unwrap());
    let refused = world.automation("POST", &activate, &json!({"version": 1})).await.expect(409);
    assert!(refused["detail"].as_str().unwrap().contains("1000 automations"), "{refused}");
    // One of them may be paused and activated again.
    world.automation("POST", &format!("/{}/pause", automations[0]), &Value::Null).await.expect(200);
    world.automation("POST", &format!("/{}/activate", automations[0]), &json!({"version": 1})).await.expect(200);
}
