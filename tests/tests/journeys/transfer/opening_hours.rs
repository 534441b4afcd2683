//! Transfers to destinations with opening hours.

use serde_json::{Value, json};
use tests::{World, distant_weekday, phone};

use super::{DESK, came_in, directory, heard, id, refused, transfer};

/// Hours on a day that it is nowhere.
fn closed_today() -> Value {
    json!({"hours": {"from": "09:00", "until": "17:00", "days": [distant_weekday()]}, "time_zone": "UTC"})
}

/// Nobody is asked, and the model can say when there is somebody.
#[tokio::test]
async fn a_closed_destination_is_not_rung() {
    let world = World::start().await;
    let mut config = transfer(&json!({"target": json!({"type": "number", "number": DESK}).as_object().unwrap()}));
    config["target"].as_object_mut().unwrap().extend(closed_today().as_object().unwrap().clone());
    let tool = world.attached(&config).await;
    let call = world.call(&tool, json!({}));
    came_in(&world, &world.home, &call);
    let before = world.vapi.requests().len();
    let told = refused(&world.call_tool(&call).await);
    assert!(told.contains("is closed now. It opens on ") && told.contains("at 09:00 by the clock of UTC."), "{told}");
    assert_eq!((world.vapi.requests().len(), world.twilio.requests().len()), (before, 0));
    let execution = world.aws.rows("executions").remove(0);
    assert_eq!((&execution["status"], &execution["fault"]), (&json!("limited"), &json!("configuration")));
    assert!(world.aws.row("calls", id(&call)).unwrap().get("transfer").is_none());
    let dry_run = json!({"tool_id": tool["id"], "arguments": {}, "caller_phone_number": phone(1)});
    let tried = world.try_tool(&dry_run).await.expect(200).clone();
    assert!(tried.to_string().contains("is closed now"), "{tried}");

    // The same request rings once it is open.
    let open = json!({"target": {
        "type": "number", "number": DESK, "hours": {"from": "00:00", "until": "24:00"}, "time_zone": "Asia/Tokyo",
    }});
    world.update(&tool, &open).await.expect(200);
    world.call_tool(&call).await.result();
    assert_eq!(heard(&world, &call), [json!({"type": "transfer", "destination": {"type": "number", "number": DESK}})]);
}

#[tokio::test]
async fn the_next_open_destination_takes_the_place_of_a_closed_one() {
    let world = World::start().await;
    let mut config = directory();
    for place in [0, 1] {
        config["destinations"][place].as_object_mut().unwrap().extend(closed_today().as_object().unwrap().clone());
    }
    let tool = world.attached(&config).await;
    let call = world.call(&tool, json!({"destination": "Front desk"}));
    let told = world.call_tool(&call).await.result().clone();
    assert_eq!(told, "The call is being transferred to Night shift, because Front desk is closed now.");
    let night = json!({"type": "sip", "sipUri": "sip:night@pbx.example.com"});
    assert_eq!(heard(&world, &call), [json!({"type": "transfer", "destination": night})]);
    assert!(!tool["function_schema"].to_string().contains("09:00"));
}
