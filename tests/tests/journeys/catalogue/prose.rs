//! New prose of a tool, which changes no call: automations with the earlier fingerprint keep running.

use serde_json::json;
use shared::models::RunStatus;
use tests::{
    World,
    automation::{AMPLE, whole},
    phone,
};

use super::{files, load, row, set};

const PARAMETERS: &str = "/twilio.json/tools/0/parameters";

#[tokio::test]
async fn a_tool_with_other_prose_keeps_its_fingerprint_and_its_automations() {
    let world = World::start().await;
    let mut files = json!({"twilio.json": files()["twilio.json"]});
    load(&world, &files).await;
    let before = row(&world, "service_tools", "twilio_send_sms");
    let tell = json!([{
        "id": "tell", "tool": "twilio_send_sms", "parameters": {"recipients": [phone(1)], "text": "Ready."},
    }]);
    let automation = world.activate(&world.manual(&tell)).await;

    set(&mut files, "/twilio.json/tools/0/returns", &json!("Another text."));
    set(&mut files, &format!("{PARAMETERS}/properties/text/description"), &json!("What it says."));
    let report = load(&world, &files).await;
    let fields = &report["services"]["Twilio"]["changed"][0]["fields"];
    assert_eq!(*fields, json!(["parameters", "returns"]), "{report}");
    let after = row(&world, "service_tools", "twilio_send_sms");
    assert_eq!(after["returns"], "Another text.");
    for column in ["fingerprint", "version", "previous"] {
        assert_eq!(after.get(column), before.get(column), "{column}");
    }
    let run = world.start_automation(&automation, "once", &json!({})).await;
    assert_eq!(world.run_loop(AMPLE).await, 0);
    assert_eq!(whole(&world, run.id).await.run.status, RunStatus::Completed);
    assert_eq!(load(&world, &files).await["services"], json!({}), "loading it again changes nothing");
}
