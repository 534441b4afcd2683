//! Triggers at Pipedream: deployed and deleted by changes of automations and by settling.

use serde_json::{Value, json};
use tests::World;

use super::{Fault, Permissions, automations::activated, note};

pub(super) async fn deployed_triggers(asked: &mut Permissions, world: &mut World) {
    world.catalogue_service("gmail.json");
    world.service("Gmail", Some("gmail"));
    world.restart();
    world.aws.clear_operations();
    let id = activated(world, &mail("A")).await;
    pause(world, &id).await;
    note(asked, "deploy", world);

    // Settling deploys, deletes, and pauses after a refusal.
    world.aws.inject(tests::Fault::throttled("PutItem", "deployed_triggers").times(1_000));
    let id = activated(world, &mail("B")).await;
    settled(asked, world).await;
    assert_eq!(world.pipedream.triggers().len(), 1);
    world.aws.inject(tests::Fault::throttled("DeleteItem", "deployed_triggers").times(1_000));
    pause(world, &id).await;
    settled(asked, world).await;
    world.aws.inject(tests::Fault::throttled("PutItem", "deployed_triggers").times(1_000));
    let id = activated(world, &mail("C")).await;
    world.pipedream.inject(Fault::status(400).on("POST", "/triggers/deploy"));
    settled(asked, world).await;
    assert_eq!(world.pipedream.triggers().len(), 0);
    assert_eq!(json!(world.automation_row(&id).await.status), json!("paused"));
}

fn mail(label: &str) -> Value {
    json!({
        "name": format!("Mail {label}"), "trigger_type": "webhook", "prompt": "Look", "tools": [],
        "trigger_config": {"service": "Gmail", "event_type": "message.received", "params": {"labels": [label]}},
    })
}

async fn pause(world: &World, id: &str) {
    world.automation("POST", &format!("/{id}/pause"), &Value::Null).await.expect(200);
}

/// Settles an open change in a process of its own.
async fn settled(asked: &mut Permissions, world: &mut World) {
    world.aws.clear_faults();
    world.later();
    world.restart();
    world.aws.clear_operations();
    world.settle().await;
    note(asked, "settle", world);
}
