//! Runs of automations whose tool, definition or record a newer version wrote.

use serde_json::{Value, json};
use shared::models::RunStatus;
use tests::{
    World,
    automation::{AMPLE, whole},
    logs::Logs,
    phone, sms_without_call,
};
use uuid::Uuid;

use super::{CONTENT, text};
use crate::catalogue::{files, load};

/// Attempts beyond those after which an outage ends a run.
const MANY: usize = 7;

fn row_of(world: &World, table: &str, is_it: impl Fn(&Value) -> bool) -> Value {
    world.aws.rows(table).into_iter().find(is_it).unwrap_or_else(|| panic!("no such row in {table}"))
}

/// The automation's run is put off with this row as often as it is tried, and completes with the row as it was.
async fn is_put_off(world: &World, actions: &Value, table: &str, spoil: impl Fn(&Value) -> Value) {
    let automation = world.activate(&world.manual(actions)).await;
    let run = world.start_automation(&automation, table, &json!({})).await;
    let row = row_of(world, table, |row| match table {
        "automation_runs" => row["part"] == "plan",
        "tools" => row.get("config_metadata").is_some(),
        "services" => row.get("name").is_some(),
        _ => true,
    });
    world.aws.put(table, &spoil(&row));
    let message = json!({"organization_id": world.home.organization_id, "run_id": run.id}).to_string();
    for _attempt in 0..MANY {
        world.aws.post("runs", &message);
        assert_eq!(world.run_loop(AMPLE).await, 0, "{table}");
        let row = row_of(world, "automation_runs", |row| row["part"] == "run");
        assert_eq!((text(&row["status"]), &row["attempts"]), ("running", &json!(0)), "{table}: {row}");
        assert!(row.get("resume_at").is_some() && !row.to_string().contains(CONTENT), "{table}: {row}");
        world.later();
    }
    assert_eq!(json!(world.automation_row(&automation.id.to_string()).await.status), json!("active"), "{table}");
    world.aws.put(table, &row);
    world.aws.post("runs", &message);
    assert_eq!(world.run_loop(AMPLE).await, 0, "{table}");
    assert_eq!(whole(world, run.id).await.run.status, RunStatus::Completed, "{table}");
}

/// The same row with other attributes.
fn with(row: &Value, attributes: &Value) -> Value {
    super::extended(row.clone(), attributes)
}

#[tokio::test]
async fn a_run_waits_for_a_version_that_can_read_its_rows() {
    let send = json!([{"id": "tell", "tool": "send_confirmation", "parameters": {"text": "Hello"}}]);
    let unknown_field = |row: &Value| {
        let mut definition: Value = serde_json::from_str(text(&row["definition"])).unwrap();
        definition["actions"][0]["newer"] = json!(CONTENT);
        with(row, &json!({"definition": definition.to_string()}))
    };
    let world = World::start().await;
    world.tool(&sms_without_call(&world.home)).await;
    is_put_off(&world, &send, "tools", |row| with(row, &json!({"type": "fax"}))).await;
    let world = World::start().await;
    world.tool(&sms_without_call(&world.home)).await;
    is_put_off(&world, &send, "automation_versions", unknown_field).await;
    let world = World::start().await;
    world.tool(&sms_without_call(&world.home)).await;
    is_put_off(&world, &send, "automation_runs", |row| with(row, &json!({"trigger_data": {"of": CONTENT}}))).await;
}

#[tokio::test]
async fn a_run_waits_for_a_version_that_has_its_tools() {
    let now = json!([{"id": "now", "tool": "current_time", "parameters": {}}]);
    let newer = |row: &Value| -> Value {
        serde_json::from_str(&row.to_string().replace("current_time", "newer_tool")).unwrap()
    };
    is_put_off(&World::start().await, &now, "automation_versions", newer).await;
    let send = json!([{
        "id": "tell", "tool": "twilio_send_sms", "parameters": {"recipients": [phone(1)], "text": "Ready."},
    }]);
    for (table, spoil) in [
        ("service_tools", json!({"binding": {"type": CONTENT}})),
        ("services", json!({"connection": {"type": CONTENT}})),
        // A load has moved the tool to a service whose row is not written yet.
        ("service_tools", json!({"service_id": Uuid::new_v4(), "service_name": "Messaging"})),
    ] {
        let world = World::start().await;
        load(&world, &json!({"twilio.json": files()["twilio.json"]})).await;
        is_put_off(&world, &send, table, |row| with(row, &spoil)).await;
    }
}

/// The sweep queues it every five minutes: a message that failed would be a dead letter each time.
#[tokio::test]
async fn a_schedule_stays_due_until_a_version_can_read_its_automation() {
    let world = World::start().await;
    let config = json!({"interval": "daily", "time_of_day": "09:00", "timezone": "Europe/Berlin"});
    let id = world
        .active(&json!({
            "name": "Daily", "trigger_type": "schedule_recurring", "trigger_config": config, "prompt": "Hi", "tools": [],
        }))
        .await;
    let version = row_of(&world, "automation_versions", |_| true);
    let mut definition: Value = serde_json::from_str(text(&version["definition"])).unwrap();
    definition["newer"] = json!(CONTENT);
    world.aws.put("automation_versions", &with(&version, &json!({"definition": definition.to_string()})));
    let due = json!("2026-01-01T00:00:00.000Z");
    world.aws.change("schedules", &id, json!({"next_run_at": due}));
    while world.aws.receive("scheduled", 900).is_some() {}
    let runs = || world.aws.rows("automation_runs").into_iter().filter(|row| row["part"] == "run").count();
    let logs = Logs::capture();
    for _sweep in 0..MANY {
        world.settle().await;
        assert_eq!(world.aws.messages("scheduled").len(), 1);
        assert_eq!((world.run_scheduled().await, runs()), (0, 0));
        assert_eq!(world.aws.row("schedules", &id).unwrap()["next_run_at"], due);
        assert!(world.aws.messages("scheduled").is_empty() && world.aws.messages("scheduled-dead").is_empty());
    }
    assert_eq!(logs.text().matches("an occurrence waits for a newer version").count(), MANY);
    assert!(!logs.text().contains(CONTENT), "{}", logs.text());
    drop(logs);

    world.aws.put("automation_versions", &version);
    world.settle().await;
    assert_eq!((world.run_scheduled().await, runs()), (0, 1));
    assert_ne!(world.aws.row("schedules", &id).unwrap()["next_run_at"], due);
}
