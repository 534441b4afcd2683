//! A destination has answered: the caller speaks with a person, and the transfer is not over.

use std::cell::RefCell;

use serde_json::{Value, json};
use tests::{
    World,
    automation::AMPLE,
    aws, phone,
    standins::{
        twilio::{Heard, Rings, SignedForm},
        vapi::ToolCall,
    },
};

use super::{DESK, Transfer, config, rang, twiml};
use crate::{
    async_tools::moments,
    call_events::{given, listener},
};

const LONG_AGO: &str = "2026-01-01T00:00:00.000Z";

/// The desk rings.
async fn ringing(world: World, rule: &Value) -> (Transfer, String) {
    let transfer = Transfer::in_world(world, rule).await;
    transfer.asked().await.result();
    let line = transfer.line();
    let first = SignedForm::new(&line.moved_to[0], &line.after(Rings::Answered), &transfer.world.home.twilio_token);
    let dials = twiml(&transfer.post(&first).await).unwrap();
    (transfer, dials)
}

async fn answers(transfer: &Transfer, rang: usize) -> String {
    let line = transfer.line();
    let url = format!("{}/briefing?rang={rang}", line.moved_to[0]);
    let form = SignedForm::new(&url, &line.callee(DESK), &transfer.world.home.twilio_token);
    twiml(&transfer.post(&form).await).unwrap()
}

async fn hangs_up(transfer: &Transfer, outcome: Rings) -> String {
    let line = transfer.line();
    let url = format!("{}?rang=1", line.moved_to[0]);
    let form = SignedForm::new(&url, &line.after(outcome), &transfer.world.home.twilio_token);
    twiml(&transfer.post(&form).await).unwrap()
}

/// Outcomes of the first destination: in the timeline, and in the receipt.
async fn shown(transfer: &Transfer) -> [Value; 2] {
    let rang = moments(&transfer.world, &transfer.id, "destination_rang").await;
    let receipt = receipt(transfer).await;
    [rang[0]["outcome"].clone(), receipt["transfers"][0]["outcome"].clone()]
}

async fn receipt(transfer: &Transfer) -> Value {
    transfer.world.calls(&format!("/{}/receipt", transfer.id)).await.expect(200)
}

fn answered_at(transfer: &Transfer, at: &str) {
    let mut row = transfer.row()["transfer"].clone();
    row["answered_at"] = json!(at);
    transfer.world.aws.change("calls", &transfer.id, json!({"transfer": row}));
}

#[tokio::test]
async fn a_caller_who_speaks_with_the_callee_is_connected_until_one_hangs_up() {
    let (transfer, dials) = ringing(World::start().await, &json!({})).await;
    assert!(dials.contains("/briefing?rang=1\"") && !dials.contains("statusCallback"), "{dials}");
    assert_eq!(shown(&transfer).await, [Value::Null, Value::Null]);
    let number = &transfer.world.home.phone_number_id;
    transfer.world.aws.change("phone_numbers", number, json!({"language": "pt-PT"}));
    assert!(answers(&transfer, 1).await.contains("<Say language=\"pt-PT\">Ana asks about invoice 42."));
    assert_eq!(shown(&transfer).await, ["connected", "connected"]);
    let before = transfer.row();
    assert!(answers(&transfer, 1).await.contains("invoice 42"), "Twilio repeats its request");
    assert_eq!(transfer.row(), before);

    transfer.reported().await;
    answered_at(&transfer, "2999-01-01T00:00:00.000Z");
    assert_eq!(receipt(&transfer).await["final"], false, "the callee hears the briefing");
    answered_at(&transfer, LONG_AGO);
    assert_eq!(receipt(&transfer).await["final"], true);
    hangs_up(&transfer, Rings::Answered).await;
    assert_eq!(shown(&transfer).await, ["answered", "answered"]);
    let over = transfer.row();
    answers(&transfer, 1).await;
    assert_eq!(transfer.row(), over, "a late request changes nothing");
}

#[tokio::test]
async fn a_character_that_xml_forbids_is_a_space_in_the_briefing() {
    let transfer = Transfer::of(&json!({})).await;
    transfer.asked_with("x\u{19}y").await.result();
    let heard = transfer.follow(&[Rings::Answered]).await;
    assert_eq!(heard, [rang(DESK, 20), Heard::Briefed("x y".into()), Heard::HungUp]);
}

/// Without a briefing the callee is connected at once, and Twilio reports the answer beside that.
#[tokio::test]
async fn without_a_briefing_a_status_callback_reports_the_answer() {
    let transfer = Transfer::in_world(World::start().await, &json!({})).await;
    let mut silent = config(&json!({}));
    silent["messageStrategy"] = json!("none");
    let silent = transfer.world.attached(&silent).await;
    let asked = ToolCall { call_id: Some(transfer.id.clone()), ..transfer.world.call(&silent, json!({})) };
    transfer.world.call_tool(&asked).await.result();
    let line = transfer.line();
    let token = &transfer.world.home.twilio_token;
    let told = RefCell::new(Vec::new());
    line.follow(&line.moved_to[0], &[Rings::Answered], async |form| {
        let answer = twiml(&transfer.post(&form).await);
        told.borrow_mut().push(transfer.row()["transfer"].get("answered_at").is_some());
        answer
    })
    .await
    .unwrap();
    assert_eq!(told.into_inner(), [false, true, false], "it rings, it is answered, it is over");
    assert_eq!(shown(&transfer).await, ["answered", "answered"]);
    let form = SignedForm::new(&format!("{}/briefing?rang=1", line.moved_to[0]), &line.callee(DESK), token);
    assert!(!twiml(&transfer.post(&form).await).unwrap().contains("<Say>"));
}

#[tokio::test]
async fn an_answer_counts_for_the_destination_that_rings() {
    let then = json!({"then": [{"type": "number", "number": phone(8)}]});
    let (transfer, _) = ringing(World::start().await, &then).await;
    answers(&transfer, 1).await;
    assert!(hangs_up(&transfer, Rings::Declined).await.contains(&phone(8)));
    assert_eq!(shown(&transfer).await, ["declined", "declined"]);
    answers(&transfer, 1).await;
    assert_eq!(transfer.row()["transfer"].get("answered_at"), None, "it comes late");
    answers(&transfer, 2).await;
    let rang = moments(&transfer.world, &transfer.id, "destination_rang").await;
    assert_eq!([&rang[0]["outcome"], &rang[1]["outcome"]], ["declined", "connected"]);
}

/// The callee has answered: better without a note than without the briefing.
#[tokio::test]
async fn an_answer_that_cannot_be_recorded_does_not_keep_the_briefing_back() {
    let (transfer, _) = ringing(World::start().await, &json!({})).await;
    transfer.world.aws.inject(aws::Fault::new("UpdateItem", "calls", aws::Trouble::Error("AccessDeniedException")));
    assert!(answers(&transfer, 1).await.contains("invoice 42"));
    assert_eq!((transfer.world.aws.faults_left(), shown(&transfer).await), (0, [Value::Null, Value::Null]));
}

#[tokio::test]
async fn the_event_of_a_connected_call_does_not_wait_for_the_end_of_the_talk() {
    let world = World::start().await;
    let automation = listener(&world, "call.ended", &Value::Null).await;
    let (transfer, _) = ringing(world, &json!({})).await;
    answers(&transfer, 1).await;
    answered_at(&transfer, LONG_AGO);
    transfer.reported().await;
    assert_eq!(transfer.world.run_scheduled_within(20).await, 0);
    assert_eq!(transfer.world.run_loop(AMPLE).await, 0);
    assert_eq!(transfer.world.runs_of(&automation).len(), 1);
    let receipt = given(&transfer.world)["receipt"].clone();
    assert_eq!((&receipt["final"], &receipt["transfers"][0]["outcome"]), (&json!(true), &json!("connected")));
}
