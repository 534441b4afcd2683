//! The definitions in `docs/examples`, deployed and run as they stand, with the fingerprints of this catalogue.

use std::{fs, path::Path};

use serde_json::{Value, json};
use shared::models::{AutomationRun, RunStatus, Timestamp};
use tests::{
    World,
    automation::{AMPLE, whole},
    http_server::Server,
    webhooks::Signer,
};

use super::books;

fn example(name: &str) -> Value {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let path = root.join("docs/examples").join(format!("{name}.json"));
    serde_json::from_str(&fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
        .unwrap()
}

/// A world whose `slack_post_message` posts to a server of the test.
async fn world() -> (World, Server) {
    let (world, server) = books().await;
    let rows = world.aws.rows("service_tools");
    let mut binding = rows.iter().find(|row| row["name"] == "ledger_post").unwrap()["binding"].clone();
    binding["url"] = format!("{}/ledger/{{channel}}", server.url).into();
    let parameters = json!({
        "type": "object", "properties": {"channel": {"type": "string"}, "text": {"type": "string"}},
        "required": ["channel", "text"], "additionalProperties": false,
    });
    let attributes = json!({"binding": binding, "parameters": parameters, "effect": true, "category": "write"});
    world.service_tool_with("Ledger", "slack_post_message", &attributes);
    (world, server)
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
fn posted(server: &Server) -> Vec<String> {
    let text = |body: &str| serde_json::from_str::<Value>(body).unwrap()["text"].as_str().unwrap().to_owned();
    let seen = server.seen().into_iter();
    seen.map(|request| format!("{}: {}", request.target.trim_start_matches("/ledger/"), text(&request.body))).collect()
}

async fn status(world: &World, run: &AutomationRun) -> (RunStatus, Option<String>) {
    let run = whole(world, run.id).await.run;
    (run.status, run.error)
}

#[tokio::test]
async fn the_example_of_a_loop_reminds_each_debtor_once() {
    let (world, server) = world().await;
    let invoice = |id: u32, name: &str, open: bool| json!({"id": id, "name": name, "cents": 1_250, "open": open});
    let invoices = json!([invoice(1, "Ada", true), invoice(2, "Bob", false), invoice(3, "Cy", true)]);
    let run = run(&world, "loop", &json!({"invoices": invoices})).await;
    assert_eq!(status(&world, &run).await, (RunStatus::Completed, None));
    let expected = ["Ada owes 12.50 EUR.", "Cy owes 12.50 EUR.", "2 invoices are open."];
    assert_eq!(posted(&server), expected.map(|text| format!("C024BE91L: {text}")));
}

#[tokio::test]
async fn the_example_of_a_branch_posts_to_one_channel() {
    let (world, server) = world().await;
    for (title, labels, channel) in [
        ("It crashes", json!([{"name": "bug"}]), "C0BUGS"),
        ("A Wish", json!([]), "C0WISHES"),
        ("Hello", json!([]), "C0ALL"),
    ] {
        let run = run(&world, "branch", &json!({"title": title, "labels": labels})).await;
        assert_eq!(status(&world, &run).await, (RunStatus::Completed, None));
        assert_eq!(posted(&server).pop(), Some(format!("{channel}: {title}")));
    }
    assert_eq!(posted(&server).len(), 3);
}

#[tokio::test]
async fn the_example_of_a_pause_reminds_on_the_day_before() {
    let (world, server) = world().await;
    let day = Timestamp::now().plus(std::time::Duration::from_secs(20 * 24 * 60 * 60)).to_string();
    let day = day.get(..10).unwrap();
    let run = run(&world, "wait", &json!({"name": "Ada", "day": day})).await;
    assert_eq!((status(&world, &run).await.0, posted(&server).len()), (RunStatus::Running, 1));
    let mut row = world.aws.rows("automation_runs").into_iter().find(|row| row["part"] == "run").unwrap();
    row["pause"]["until"] = json!("2026-01-01T00:00:00.000Z");
    world.aws.put("automation_runs", &row);
    let later = Timestamp::now().plus(std::time::Duration::from_secs(21 * 24 * 60 * 60));
    assert_eq!(world.aws.fire_schedules(later), 1);
    assert_eq!(world.run_scheduled().await, 0);
    deliver(&world).await;
    assert_eq!(status(&world, &run).await, (RunStatus::Completed, None));
    assert_eq!(posted(&server).pop().as_deref(), Some("C024BE91L: Ada comes tomorrow."));
}

#[tokio::test]
async fn the_example_of_a_payment_ships_the_order_that_is_paid() {
    let (world, server) = world().await;
    let hook = world.hook(&json!({"service": "shop"})).await;
    let run = run(&world, "payment", &json!({"order": "A7"})).await;
    let signer = Signer::StandardWebhooks(hook["secret"].as_str().unwrap());
    for order in ["A8", "A7"] {
        let paid = json!({"type": "order.paid", "order": order, "amount": 12});
        world.deliver_signed(&hook, signer, &paid).await.expect(200);
        deliver(&world).await;
    }
    assert_eq!(status(&world, &run).await, (RunStatus::Completed, None));
    assert_eq!(posted(&server).pop().as_deref(), Some("C024BE91L: Ship A7: 12 came."));
}
