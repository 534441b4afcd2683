//! Transfers about which Twilio makes no request: the line was not moved, or the caller hung up at that moment.

use serde_json::{Value, json};
use tests::standins::Fault;

use super::{DESK, Transfer};
use crate::async_tools::moments;

/// A transfer whose answer from Twilio was lost. The line stayed, and the call ended.
async fn unmoved() -> Transfer {
    let transfer = Transfer::of(&json!({})).await;
    let path = format!("/Calls/{}.json", transfer.call.call_sid);
    transfer.world.twilio.inject(Fault::status(500).on("POST", &path));
    assert!(transfer.asked().await.sentence().contains("not known whether"));
    assert_eq!(transfer.line().moved_to.len(), 0);
    transfer.reported().await;
    transfer
}

async fn receipt(transfer: &Transfer) -> Value {
    transfer.world.calls(&format!("/{}/receipt", transfer.id)).await.expect(200)
}

/// The transfer began minutes ago.
fn age(transfer: &Transfer) {
    let mut row = transfer.row()["transfer"].clone();
    row["at"] = json!("2026-01-01T00:00:00.000Z");
    transfer.world.aws.change("calls", &transfer.id, json!({"transfer": row}));
}

#[tokio::test]
async fn a_transfer_that_twilio_never_asked_about_ends_minutes_after_its_call() {
    let transfer = unmoved().await;
    assert_eq!(transfer.world.run_scheduled_within(20).await, 0);
    assert_eq!(receipt(&transfer).await["final"], false, "Twilio may still ask");
    age(&transfer);
    assert_eq!(transfer.world.run_scheduled_within(60).await, 0);
    let stored = transfer.row()["transfer"].to_string();
    assert!(!stored.contains(DESK) && !stored.contains("invoice"), "{stored}");
    assert_eq!(transfer.row()["transfer"]["outcome"], "failed");
    assert_eq!(receipt(&transfer).await["final"], true);
    assert_eq!(moments(&transfer.world, &transfer.id, "transfer_ended").await[0]["outcome"], "failed");
    assert_eq!(transfer.world.aws.messages("scheduled"), [] as [Value; 0]);
}

#[tokio::test]
async fn a_transfer_that_twilio_asked_about_after_the_report_goes_on() {
    let transfer = unmoved().await;
    let mut row = transfer.row()["transfer"].clone();
    row["at"] = json!("2026-01-01T00:00:00.000Z");
    row["rung"] = json!([{"at": "2026-01-01T00:00:01.000Z", "to": "number"}]);
    transfer.world.aws.change("calls", &transfer.id, json!({"transfer": row}));
    assert_eq!(transfer.world.run_scheduled_within(20).await, 0);
    assert_eq!(transfer.row()["transfer"].get("outcome"), None);
}
