//! The definitions in `docs/examples`, deployed and run as they stand, with the fingerprints of this catalogue.

use std::{fs, path::Path};

use serde_json::{Value, json};
use shared::models::{AutomationRun, RunStatus, Timestamp};
use tests::{
    World,
    automation::{AMPLE, whole},
};

fn example(name: &str) -> Value {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let path = root.join("docs/examples").join(format!("{name}.json"));
    serde_json::from_str(&fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))).unwrap()
}

async fn world() -> World {
    let world = World::start().await;
    world.slack_service();
    world
}

/// Activates an example, and runs it as far as it goes by itself.
async fn run(world: &World, name: &str, trigger_data: &Value) -> AutomationRun {
    let mut definition = example(name);
    for (tool, fingerprint) in definition["fingerprints"].as_object_mut().unwrap() {
        *fingerprint = world.fingerprint(tool).into();
    }
    let automation = world.activate(&definition).await;
    let run = world.start_automation(&automation, &trigger_data.to_string(), trigger_data).await;
    deliver(world).await;
    run
}

async fn deliver(world: &World) {
    for _ in 0..20 {
        let Some(batch) = world.aws.receive("runs", 0) else { return };
        assert_eq!(world.run_loop_batch(batch, AMPLE).await, 0);
    }
}

/// `channel: text` of each message that was posted.
fn posted(world: &World) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let runs = world.pipedream.runs().into_iter();
    runs.map(|run| format!("{}: {}", text(&run.configured_props["channel"]), text(&run.configured_props["text"]))).collect()
}

async fn status(world: &World, run: &AutomationRun) -> (RunStatus, Option<String>) {
    let run = whole(world, run.id).await.run;
    (run.status, run.error)
}

#[tokio::test]
async fn the_example_of_a_loop_reminds_each_debtor_once() {
    let world = world().await;
    let invoice = |id: u32, name: &str, open: bool| json!({"id": id, "name": name, "cents": 1_250, "open": open});
    let invoices = json!([invoice(1, "Ada", true), invoice(2, "Bob", false), invoice(3, "Cy", true)]);
    let run = run(&world, "loop", &json!({"invoices": invoices})).await;
    assert_eq!(status(&world, &run).await, (RunStatus::Completed, None));
    let expected = ["Ada owes 12.50 EUR.", "Cy owes 12.50 EUR.", "2 invoices are open."];
    assert_eq!(posted(&world), expected.map(|text| format!("C024BE91L: {text}")));
}

#[tokio::test]
async fn the_example_of_a_branch_posts_to_one_channel() {
    let world = world().await;
    for (title, labels, channel) in
        [("It crashes", json!([{"name": "bug"}]), "C0BUGS"), ("A Wish", json!([]), "C0WISHES"), ("Hello", json!([]), "C0ALL")]
    {
        let run = run(&world, "branch", &json!({"title": title, "labels": labels})).await;
        assert_eq!(status(&world, &run).await, (RunStatus::Completed, None));
        assert_eq!(posted(&world).pop(), Some(format!("{channel}: {title}")));
    }
    assert_eq!(posted(&world).len(), 3);
}

#[tokio::test]
async fn the_example_of_a_pause_reminds_on_the_day_before() {
    let world = world().await;
    let day = Timestamp::now().plus(std::time::Duration::from_secs(20 * 24 * 60 * 60)).to_string();
    let day = day.get(..10).unwrap();
    let run = run(&world, "wait", &json!({"name": "Ada", "day": day})).await;
    assert_eq!((status(&world, &run).await.0, posted(&world).len()), (RunStatus::Running, 1));
    let mut row = world.aws.rows("automation_runs").into_iter().find(|row| row["part"] == "run").unwrap();
    row["pause"]["until"] = json!("2026-01-01T00:00:00.000Z");
    world.aws.put("automation_runs", &row);
    assert_eq!(world.run_scheduled_within(20 * 24 * 60 * 60).await, 0);
    deliver(&world).await;
    assert_eq!(status(&world, &run).await, (RunStatus::Completed, None));
    assert_eq!(posted(&world).pop().as_deref(), Some("C024BE91L: Ada comes tomorrow."));
}
