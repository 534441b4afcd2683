//! Waits of runs for events.

use serde_json::{Value, json};
use shared::models::RunStatus;
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

/// An event whose match with a waiting run is undecided is delivered again, until a version can read the filter.
#[tokio::test]
async fn a_run_whose_filter_cannot_be_read_does_not_miss_its_event() {
    let world = World::start().await;
    let hook = world.hook(&json!({"service": "acme"})).await;
    let filter = json!({"path": "type", "op": "contains", "value": "paid"});
    let wait = json!([{"id": "paid", "wait": {"for_event": {"hook": "acme", "timeout": 600, "filters": filter}}}]);
    let automation = world.activate(&world.manual(&wait)).await;
    let run = world.start_automation(&automation, "once", &json!({})).await;
    assert_eq!(world.run_loop(AMPLE).await, 0);
    let row: Value = world.aws.rows("event_waits").remove(0);
    let newer = json!({"path": "type", "op": "newer", "value": CONTENT}).to_string();
    world.aws.put("event_waits", &extended(row.clone(), &json!({"filter": newer})));
    let deliver = async || {
        let signer = Signer::StandardWebhooks(hook["secret"].as_str().unwrap());
        world.deliver_signed(&hook, signer, &json!({"type": "paid"})).await
    };
    let refused = deliver().await;
    assert!(refused.status == 503 && !refused.body.to_string().contains(CONTENT), "{}", refused.body);
    world.aws.put("event_waits", &row);
    deliver().await.expect(200);
    assert_eq!(world.run_loop(AMPLE).await, 0);
    assert_eq!(whole(&world, run.id).await.run.status, RunStatus::Completed);
}
