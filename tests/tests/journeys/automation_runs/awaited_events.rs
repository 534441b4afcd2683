//! Waits for an event: the event comes, does not come, comes again, or belongs to somebody else.

use serde_json::{Value, json};
use shared::models::{AutomationRun, RunStatus};
use tests::{
    Event, Fault, Trouble, World,
    automation::{AMPLE, whole},
    http_server::Server,
    webhooks::Signer,
};

use super::{and, books, entered, shown};

fn awaiting(for_event: &Value) -> Value {
    json!([
        {"id": "before", "tool": "ledger_post", "parameters": {"entry": "before"}},
        {"id": "paid", "wait": {"for_event": for_event}, "output_as": "payment"},
        {"id": "after", "tool": "ledger_post", "parameters": {"entry": "{{payment.order | default('nothing', true)}}"}},
    ])
}

fn payment_of_customer() -> Value {
    json!({
        "hook": "acme", "event_type": "order.paid", "timeout": 1440,
        "filters": {"path": "customer", "op": "==", "value": "{{trigger_data.customer}}"},
    })
}

async fn world() -> (World, Server, Value) {
    let (world, books) = books().await;
    let hook = world.hook(&json!({"service": "acme"})).await;
    (world, books, hook)
}

/// A run that waits, for this customer.
async fn waiting(world: &World, customer: &str) -> AutomationRun {
    waiting_as(world, customer, customer).await
}

async fn waiting_as(world: &World, name: &str, customer: &str) -> AutomationRun {
    let automation = world.activate(&world.manual(&awaiting(&payment_of_customer()))).await;
    let run = world.start_automation(&automation, name, &json!({"customer": customer})).await;
    world.deliver_runs().await;
    run
}

fn paid(world: &World, hook: &Value, order: &str, customer: &str) -> Event {
    let signer = Signer::StandardWebhooks(hook["secret"].as_str().unwrap());
    let event = json!({"type": "order.paid", "order": order, "customer": customer});
    world.signed(&world.hook_path(hook), signer, &event)
}

async fn pays(world: &World, hook: &Value, order: &str, customer: &str) {
    world.send("trigger", &paid(world, hook, order, customer)).await.expect(200);
    world.deliver_runs().await;
}

fn time_comes(world: &World) {
    let mut row = world.aws.rows("automation_runs").into_iter().find(|row| row["part"] == "run").unwrap();
    row["pause"]["until"] = json!("2026-01-01T00:00:00.000Z");
    world.aws.put("automation_runs", &row);
    world.aws.post("runs", &json!({"organization_id": row["organization_id"], "run_id": row["id"]}).to_string());
}

async fn status(world: &World, run: &AutomationRun) -> RunStatus {
    whole(world, run.id).await.run.status
}

#[tokio::test]
async fn a_wait_that_begins_again_ends_when_its_row_does() {
    let (world, _, _) = world().await;
    let automation = world.activate(&world.manual(&awaiting(&payment_of_customer()))).await;
    let run = world.start_automation(&automation, "Ada", &json!({"customer": "Ada"})).await;
    assert!(world.kill_run(Fault::new("PutItem", "event_waits", Trouble::StallAfter)).await);
    world.later();
    world.aws.post("runs", &json!({"organization_id": run.organization_id, "run_id": run.id}).to_string());
    world.deliver_runs().await;
    let wait = world.aws.rows("event_waits").remove(0);
    let pause = json!(whole(&world, run.id).await.run.pause);
    assert_eq!((&pause["since"], &pause["until"]), (&wait["created_at"], &wait["until"]), "{pause}");
}

#[tokio::test]
async fn a_run_goes_on_with_the_event_that_its_filter_means() {
    let (world, books, hook) = world().await;
    let run = waiting(&world, "Ada").await;
    let waits = shown(&world, &run).await["waits_for"].clone();
    assert_eq!(
        (&waits["what"], &waits["id"], &waits["event"]),
        (&json!("event"), &json!("paid"), &json!("own.acme order.paid")),
        "{waits}"
    );
    pays(&world, &hook, "o1", "Bob").await;
    assert_eq!((status(&world, &run).await, entered(&books)), (RunStatus::Running, vec!["before".to_owned()]));
    let seen = world.events("").await.expect(200)["items"][0].clone();
    assert!(seen["unmatched"][0]["why"].as_str().unwrap().contains("waits for another event"), "{seen}");

    pays(&world, &hook, "o2", "Ada").await;
    assert_eq!(
        (status(&world, &run).await, entered(&books)),
        (RunStatus::Completed, vec!["before".to_owned(), "o2".to_owned()])
    );
    let shown = shown(&world, &run).await;
    assert_eq!((&shown["waits_for"], &shown["actions"][1]["output"]["order"]), (&Value::Null, &json!("o2")), "{shown}");
    assert!(world.aws.rows("event_waits").is_empty());
    let seen = world.events("").await.expect(200)["items"][0].clone();
    assert_eq!((&seen["woke"][0]["run_id"], &seen["why"]), (&json!(run.id), &Value::Null), "{seen}");
    assert_eq!(world.events("?matched=false").await.expect(200)["items"].as_array().unwrap().len(), 1);
    let row = world.aws.rows("automation_runs").into_iter().find(|row| row["part"] == "run").unwrap();
    assert_eq!(row.get("pause"), None);
}

/// `filled` is a field of the event like any other.
#[tokio::test]
async fn a_wait_finds_a_field_of_the_event_named_filled() {
    let (world, books, hook) = world().await;
    let filters = json!({"operator": "AND", "clauses": [
        {"path": "filled", "op": "==", "value": true},
        {"path": "customer", "op": "==", "value": "{{trigger_data.customer}}"},
    ]});
    let for_event = json!({"hook": "acme", "event_type": "order.paid", "timeout": 1440, "filters": filters});
    let automation = world.activate(&world.manual(&awaiting(&for_event))).await;
    let run = world.start_automation(&automation, "Ada", &json!({"customer": "Ada"})).await;
    world.deliver_runs().await;
    let signer = Signer::StandardWebhooks(hook["secret"].as_str().unwrap());
    for (order, filled, customer, became) in [
        ("o1", Value::Null, "Ada", RunStatus::Running),
        ("o2", json!(false), "Ada", RunStatus::Running),
        ("o3", json!(true), "Bob", RunStatus::Running),
        ("o4", json!(true), "Ada", RunStatus::Completed),
    ] {
        let event = json!({"type": "order.paid", "order": order, "customer": customer, "filled": filled});
        world.send("trigger", &world.signed(&world.hook_path(&hook), signer, &event)).await.expect(200);
        world.deliver_runs().await;
        assert_eq!(status(&world, &run).await, became, "{order}");
    }
    assert_eq!(entered(&books), ["before", "o4"]);
}

#[tokio::test]
async fn a_run_goes_on_without_the_event_after_its_time() {
    let (world, books, hook) = world().await;
    let run = waiting(&world, "Ada").await;
    assert_eq!(world.aws.messages("runs").len(), 0, "a schedule wakes it");
    time_comes(&world);
    world.deliver_runs().await;
    assert_eq!(
        (status(&world, &run).await, entered(&books)),
        (RunStatus::Completed, vec!["before".to_owned(), "nothing".to_owned()])
    );
    let shown = shown(&world, &run).await;
    assert_eq!(shown["actions"][1]["output"], Value::Null);
    assert!(shown["actions"][1]["note"].as_str().unwrap().starts_with("No such event came until"), "{shown}");
    assert!(world.aws.rows("event_waits").is_empty());
    pays(&world, &hook, "o1", "Ada").await;
    assert_eq!(entered(&books).len(), 2);
}

/// The event's message finds the run still leased and is dropped.
#[tokio::test]
async fn an_event_that_comes_before_the_run_lets_go_is_not_lost() {
    let (mut world, books, hook) = world().await;
    let automation = world.activate(&world.manual(&awaiting(&payment_of_customer()))).await;
    let run = world.start_automation(&automation, "one", &json!({"customer": "Ada"})).await;
    // The row of the wait is written, and the run lets go by the update after it.
    world.aws.inject(Fault::new("UpdateItem", "automation_runs", Trouble::StallBefore).after(2));
    let batch = world.aws.receive("runs", 0).unwrap();
    tokio::select! {
        _ = world.run_loop_batch(batch, AMPLE) => {}
        () = world.aws.stalled() => {}
    }
    assert_eq!(world.aws.rows("event_waits").len(), 1);
    world.aws.clear_faults();
    world.send("trigger", &paid(&world, &hook, "o1", "Ada")).await.expect(200);
    assert_eq!(world.run_loop(AMPLE).await, 0);
    assert_eq!(status(&world, &run).await, RunStatus::Running);
    world.later();
    world.restart();
    let batch = world.aws.receive("runs", 900).unwrap();
    assert_eq!(world.run_loop_batch(batch, AMPLE).await, 0);
    world.deliver_runs().await;
    assert_eq!(
        (status(&world, &run).await, entered(&books)),
        (RunStatus::Completed, vec!["before".to_owned(), "o1".to_owned()])
    );
    assert!(world.aws.rows("event_waits").is_empty());
}

/// The first delivery ends the wait, and its message to the run is lost.
#[tokio::test]
async fn an_event_that_is_delivered_again_wakes_the_run_once() {
    let (world, books, hook) = world().await;
    let run = waiting(&world, "Ada").await;
    let event = paid(&world, &hook, "o1", "Ada");
    world.aws.inject(Fault::throttled("SendMessage", "runs"));
    assert_ne!(world.send("trigger", &event).await.status, 200);
    world.aws.clear_faults();
    world.deliver_runs().await;
    assert_eq!(status(&world, &run).await, RunStatus::Running);
    // Another event is too late.
    pays(&world, &hook, "o2", "Ada").await;
    assert_eq!(entered(&books).len(), 1);
    for _ in 0..2 {
        world.send("trigger", &event).await.expect(200);
        world.deliver_runs().await;
    }
    assert_eq!(
        (status(&world, &run).await, entered(&books)),
        (RunStatus::Completed, vec!["before".to_owned(), "o1".to_owned()])
    );
}

/// A later wait of the run does not take an event that came before it.
#[tokio::test]
async fn an_event_ends_one_wait_of_a_run() {
    let (world, books, hook) = world().await;
    let mut actions = awaiting(&payment_of_customer());
    let mut second = actions[1].clone();
    (second["id"], second["output_as"]) = (json!("again"), json!("other"));
    actions.as_array_mut().unwrap().push(second);
    let automation = world.activate(&world.manual(&actions)).await;
    let run = world.start_automation(&automation, "one", &json!({"customer": "Ada"})).await;
    world.deliver_runs().await;
    let event = paid(&world, &hook, "o1", "Ada");
    // The event's outcome is not saved.
    world.aws.inject(Fault::throttled("UpdateItem", "events").times(1_000));
    world.send("trigger", &event).await;
    world.aws.clear_faults();
    world.deliver_runs().await;
    assert_eq!((status(&world, &run).await, entered(&books).len()), (RunStatus::Running, 2));
    world.send("trigger", &event).await.expect(200);
    world.deliver_runs().await;
    assert_eq!(status(&world, &run).await, RunStatus::Running);
    pays(&world, &hook, "o2", "Ada").await;
    assert_eq!(status(&world, &run).await, RunStatus::Completed);
}

#[tokio::test]
async fn an_event_wakes_every_run_that_waits_for_it() {
    let (world, books, hook) = world().await;
    let runs = [waiting(&world, "Ada").await, waiting_as(&world, "Ada too", "Ada").await, waiting(&world, "Bob").await];
    pays(&world, &hook, "o1", "Ada").await;
    let mut became = Vec::new();
    for run in &runs {
        became.push(status(&world, run).await);
    }
    assert_eq!(became, [RunStatus::Completed, RunStatus::Completed, RunStatus::Running]);
    assert_eq!(entered(&books).iter().filter(|entry| *entry == "o1").count(), 2);
    assert_eq!(world.events("").await.expect(200)["items"][0]["woke"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn the_same_event_of_another_organization_wakes_nothing() {
    let (world, books, _) = world().await;
    let run = waiting(&world, "Ada").await;
    let theirs = world.hooks(&world.other, "POST", "", &json!({"service": "acme"})).await.expect(201);
    pays(&world, &theirs, "o1", "Ada").await;
    assert_eq!((status(&world, &run).await, entered(&books).len()), (RunStatus::Running, 1));
    assert_eq!(world.aws.rows("event_waits").len(), 1);
}

#[tokio::test]
async fn a_cancelled_run_waits_for_nothing() {
    let (world, books, hook) = world().await;
    let run = waiting(&world, "Ada").await;
    world.cancel_run(&run.id.to_string()).await.expect(200);
    assert!(world.aws.rows("event_waits").is_empty());
    pays(&world, &hook, "o1", "Ada").await;
    assert_eq!((status(&world, &run).await, entered(&books).len()), (RunStatus::Cancelled, 1));
}

/// Values are compared as they are, also if they look like templates.
#[tokio::test]
async fn a_value_of_the_filter_is_no_template_and_must_be_there() {
    let (world, _books, hook) = world().await;
    let hostile = waiting(&world, "{{customer}}").await;
    pays(&world, &hook, "o1", "Bob").await;
    assert_eq!(status(&world, &hostile).await, RunStatus::Running);
    pays(&world, &hook, "o2", "{{customer}}").await;
    assert_eq!(status(&world, &hostile).await, RunStatus::Completed);

    let automation = world.activate(&world.manual(&awaiting(&payment_of_customer()))).await;
    let run = world.start_automation(&automation, "none", &json!({})).await;
    world.deliver_runs().await;
    let shown = shown(&world, &run).await;
    assert_eq!(shown["actions"][1]["status"], "failed", "{shown}");
    assert!(shown["actions"][1]["error"].as_str().unwrap().contains("there is no such value"), "{shown}");
    assert!(world.aws.rows("event_waits").is_empty());
}

#[tokio::test]
async fn a_dry_run_says_what_it_would_wait_for() {
    let (world, _books, _) = world().await;
    let automation = world.activate(&world.manual(&awaiting(&payment_of_customer()))).await;
    let run = world.start_automation_with(&automation, "dry", &json!({"customer": "Ada"}), true).await;
    world.deliver_runs().await;
    let shown = shown(&world, &run).await;
    let note = shown["actions"][1]["note"].as_str().unwrap();
    assert!(note.contains("order.paid of own.acme") && note.contains("\"Ada\""), "{note}");
    assert!(world.aws.rows("event_waits").is_empty());
}

#[tokio::test]
async fn what_a_dry_run_would_wait_for_is_shown_without_numbers_and_hidden_fields() {
    let (world, _books, _) = world().await;
    let clause = |path: &str, value: &str| json!({"path": path, "op": "==", "value": value});
    let clauses = [clause("phone", "{{trigger_data.phone}}"), clause("name", "{{found.entered}}")];
    let for_event = json!({
        "hook": "acme", "event_type": "order.paid", "timeout": 1440, "filters": {"operator": "AND", "clauses": clauses},
    });
    let actions = json!([
        {"id": "find", "tool": "ledger_read", "parameters": {"entry": "Lovelace"}, "output_as": "found"},
        {"id": "paid", "wait": {"for_event": for_event}},
    ]);
    let automation = world.activate(&world.manual(&actions)).await;
    let run = world.start_automation_with(&automation, "dry", &json!({"phone": "+1 415 555 0101"}), true).await;
    world.deliver_runs().await;
    // As if the author of the tool had marked a field.
    let rows = world.aws.rows("automation_runs");
    let find = rows.iter().find(|row| row["action_id"] == "find").unwrap();
    world.aws.put("automation_runs", &and(find.clone(), json!({"redact": ["result.entered"]})));
    let shown = shown(&world, &run).await;
    let note = shown["actions"][1]["note"].as_str().unwrap();
    assert!(note.contains("order.paid of own.acme") && note.contains("[number]"), "{note}");
    assert!(note.contains("[redacted]") && !note.contains("Lovelace") && !note.contains("555 0101"), "{note}");
}

#[tokio::test]
async fn a_wait_that_no_event_can_end_is_refused_or_told() {
    let (world, _books, _) = world().await;
    for file in ["stripe.json", "gmail.json"] {
        world.catalogue_service(file);
    }
    let told = async |for_event: Value| {
        let answer = world.deploy(&world.manual(&awaiting(&for_event))).await;
        let all = answer.body["diagnostics"].as_array().cloned().unwrap_or_default();
        let code = |one: &Value| format!("{} {}", one["code"].as_str().unwrap(), one["pointer"].as_str().unwrap());
        (answer.status, all.iter().map(code).collect::<Vec<_>>(), all)
    };
    let at = "/actions/1/wait/for_event";
    let of = |service: &str, event: &str| json!({"service": service, "event_type": event, "timeout": 5});
    for (for_event, expected) in [
        (of("Strype", "invoice.paid"), format!("unknown_service {at}/service")),
        (of("Stripe", "invoice.piad"), format!("unknown_event {at}/event_type")),
        (of("Gmail", "message.received"), format!("webhooks_not_supported {at}/event_type")),
        (json!({"hook": "acme"}), format!("missing_field {at}/timeout")),
        (json!({"hook": "acme", "timeout": 43_201}), format!("invalid_value {at}/timeout")),
        (
            json!({"hook": "acme", "timeout": 5, "filters": {"path": "user.email", "op": "exists"}}),
            format!("invalid_condition {at}/filters/path"),
        ),
    ] {
        let (status, codes, all) = told(for_event).await;
        assert_eq!(status, 422, "{all:?}");
        let errors = codes.iter().zip(&all).filter(|(_, one)| one["severity"] == "error").map(|(code, _)| code);
        assert_eq!(errors.collect::<Vec<_>>(), [&expected], "{all:?}");
    }
    let (status, codes, all) = told(of("Stripe", "invoice.paid")).await;
    assert_eq!(status, 201, "{all:?}");
    assert!(codes.contains(&format!("waits_for_hook {at}/event_type")), "{codes:?}");
    let (status, codes, all) = told(json!({"hook": "acne", "timeout": 5})).await;
    assert_eq!(status, 201, "{all:?}");
    assert!(codes.contains(&format!("waits_for_hook {at}/hook")), "{all:?}");
}
