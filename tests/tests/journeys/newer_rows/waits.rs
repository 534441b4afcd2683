//! Waits of runs for events.

use std::time::Duration;

use serde_json::{Value, json};
use shared::models::{RunStatus, Timestamp};
use tests::{
    World,
    automation::{AMPLE, whole},
    webhooks::Signer,
};

use super::{CONTENT, extended};

/// A wait with an attribute of a newer version ends with its event; an unreadable one affects nobody.
pub(super) async fn a_wait(world: &World) {
    let hook = world.hook(&json!({"service": "acme"})).await;
    let wait = json!([{"id": "paid", "wait": {"for_event": {"hook": "acme", "timeout": 600}}}]);
    let automation = world.activate(&world.manual(&wait)).await;
    let run = world.start_automation(&automation, "once", &json!({})).await;
    assert_eq!(world.run_loop(AMPLE).await, 0);
    let row: Value = world.aws.rows("event_waits").remove(0);
    world.aws.put("event_waits", &extended(row.clone(), &json!({"newer": CONTENT})));
    world.aws.put("event_waits", &extended(row, &json!({"place": "another", "filled": {"of": CONTENT}})));
    let signer = Signer::StandardWebhooks(hook["secret"].as_str().unwrap());
    world.deliver_signed(&hook, signer, &json!({"type": "paid"})).await.expect(200);
    assert_eq!(world.run_loop(AMPLE).await, 0);
    assert_eq!(whole(world, run.id).await.run.status, RunStatus::Completed);
}

/// The event starts its automation at once, and is given to the run when a version can read the filter.
#[tokio::test]
async fn a_run_whose_filter_cannot_be_read_does_not_miss_its_event() {
    let world = World::start().await;
    let hook = world.hook(&json!({"service": "acme"})).await;
    let now = json!([{"id": "now", "tool": "current_time", "parameters": {}}]);
    let mut listening = world.manual(&now);
    (listening["name"], listening["trigger_type"], listening["trigger_config"]) =
        (json!("Paid"), json!("webhook"), json!({"hook": "acme"}));
    let listening = world.active(&listening).await;
    let filter = json!({"path": "type", "op": "contains", "value": "paid"});
    let wait = json!([{"id": "paid", "wait": {"for_event": {"hook": "acme", "timeout": 600, "filters": filter}}}]);
    let automation = world.activate(&world.manual(&wait)).await;
    let run = world.start_automation(&automation, "once", &json!({})).await;
    assert_eq!(world.run_loop(AMPLE).await, 0);
    let row: Value = world.aws.rows("event_waits").remove(0);
    let newer = json!({"path": "type", "op": "newer", "value": CONTENT}).to_string();
    world.aws.put("event_waits", &extended(row.clone(), &json!({"filter": newer})));
    let signer = Signer::StandardWebhooks(hook["secret"].as_str().unwrap());
    world.deliver_signed(&hook, signer, &json!({"type": "paid"})).await.expect(200);
    assert_eq!(world.runs_of(&listening).len(), 1);
    for within in [0, 901] {
        assert_eq!(world.run_scheduled_within(within).await, 0);
        assert_eq!(world.aws.messages("scheduled").len(), 1, "tried again every 15 minutes");
    }
    world.aws.put("event_waits", &row);
    assert_eq!(world.run_scheduled_within(901).await, 0);
    assert!(world.aws.messages("scheduled").is_empty());
    assert_eq!(world.run_loop(AMPLE).await, 0);
    assert_eq!(whole(&world, run.id).await.run.status, RunStatus::Completed);
    assert_eq!(world.runs_of(&listening).len(), 1);
}

/// After a day, the event says once why the run did not continue.
#[tokio::test]
async fn an_event_gives_up_an_unreadable_filter_after_a_day() {
    let world = World::start().await;
    let hook = world.hook(&json!({"service": "acme"})).await;
    let filter = json!({"path": "type", "op": "contains", "value": "paid"});
    let wait = json!([{"id": "paid", "wait": {"for_event": {"hook": "acme", "timeout": 600, "filters": filter}}}]);
    let automation = world.activate(&world.manual(&wait)).await;
    world.start_automation(&automation, "once", &json!({})).await;
    assert_eq!(world.run_loop(AMPLE).await, 0);
    let row: Value = world.aws.rows("event_waits").remove(0);
    let newer = json!({"path": "type", "op": "newer", "value": CONTENT}).to_string();
    let day_ago = Timestamp::now().minus(Duration::from_secs(25 * 60 * 60));
    let older = Timestamp::now().minus(Duration::from_secs(26 * 60 * 60));
    world.aws.put("event_waits", &extended(row, &json!({"filter": newer, "created_at": older})));
    let signer = Signer::StandardWebhooks(hook["secret"].as_str().unwrap());
    world.deliver_signed(&hook, signer, &json!({"type": "paid"})).await.expect(200);
    assert_eq!(world.run_scheduled_within(0).await, 0);
    let event: Value = world.aws.rows("events").remove(0);
    assert!(event.get("unmatched").is_none_or(|reasons| reasons == &json!([])), "{event}");
    world.aws.put("events", &extended(event, &json!({"created_at": day_ago})));
    assert_eq!(world.run_scheduled_within(901).await, 0);
    assert!(world.aws.messages("scheduled").is_empty(), "it is not tried again");
    let event: Value = world.aws.rows("events").remove(0);
    let reasons = event["unmatched"].as_array().unwrap();
    assert_eq!(reasons.len(), 1, "{event}");
    assert!(reasons[0]["why"].as_str().unwrap().contains("cannot be read"), "{event}");
}
