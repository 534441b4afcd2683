//! A moved line while the database is slow, or loses what was written.

use serde_json::json;
use tests::{
    aws,
    logs::Logs,
    standins::twilio::{Rings, SignedForm},
};

use super::{SORRY, Transfer, twiml};

#[tokio::test]
async fn writes_that_hang_do_not_keep_twilio_waiting() {
    let transfer = Transfer::of(&json!({})).await;
    transfer.asked().await.result();
    let (world, line) = (&transfer.world, transfer.line());
    let form = SignedForm::new(&line.moved_to[0], &line.after(Rings::NoAnswer), &world.home.twilio_token);
    let hangs = |table| aws::Fault::new("UpdateItem", table, aws::Trouble::StallBefore).times(9);
    world.aws.inject(hangs("calls"));
    // After the claim of the request.
    world.aws.inject(hangs("idempotency").after(1));
    let logs = Logs::capture();
    let answer = twiml(&transfer.post(&form).await).unwrap();
    assert!(answer.contains("<Dial"), "{answer}");
    world.aws.clear_faults();
    // The SDK's own end of a request says "could not be recorded", seconds later.
    assert_eq!(logs.text().matches("was not recorded in time").count(), 2, "{}", logs.text());
}

/// Twilio asks at once, and an eventually consistent read may not show the transfer yet.
#[tokio::test]
async fn the_moved_line_reads_its_transfer_consistently() {
    let transfer = Transfer::of(&json!({})).await;
    transfer.asked().await.result();
    transfer.world.aws.clear_operations();
    transfer.follow(&[Rings::NoAnswer]).await;
    let mut reads = transfer.world.aws.dynamodb();
    reads.retain(|operation| operation.action == "GetItem" && operation.on == ["calls"]);
    assert!(!reads.is_empty() && reads.iter().all(|read| read.body["ConsistentRead"] == true), "{reads:?}");
}

#[tokio::test]
async fn a_request_whose_answer_could_not_be_recorded_begins_nothing_hours_later() {
    let transfer = Transfer::of(&json!({"say": SORRY})).await;
    transfer.asked().await.result();
    transfer.world.vapi.end_call(&transfer.id);
    let (world, line) = (&transfer.world, transfer.line());
    transfer.post(&SignedForm::new(&line.moved_to[0], &line.after(Rings::NoAnswer), &world.home.twilio_token)).await;
    let after = format!("{}?rang=1", line.moved_to[0]);
    let form = SignedForm::new(&after, &line.after(Rings::NoAnswer), &world.home.twilio_token);
    let fault = aws::Fault::new("UpdateItem", "idempotency", aws::Trouble::Error("AccessDeniedException"));
    world.aws.inject(fault.after(1).times(9));
    assert!(twiml(&transfer.post(&form).await).unwrap().contains("<Stream"));
    world.aws.clear_faults();
    for row in world.aws.rows("idempotency") {
        if let Some(until) = row["lease_until"].as_i64() {
            world.aws.change("idempotency", row["id"].as_str().unwrap(), json!({"lease_until": until - 3_600_000}));
        }
    }
    let before = world.vapi.requests().len();
    let late = twiml(&transfer.post(&form).await).unwrap();
    assert!(late.contains("<Say>") && !late.contains("<Stream"), "{late}");
    assert_eq!((world.vapi.requests().len(), world.aws.rows("calls").len()), (before, 2));
}
