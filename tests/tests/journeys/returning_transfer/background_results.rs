//! Results of background tools for a caller whose line was moved.

use serde_json::json;
use tests::{
    ai_sms,
    standins::{
        Fault, Standin,
        twilio::{Heard, Rings, Twilio},
    },
};

use super::{Transfer, id_of};
use crate::async_tools::{answers, asked_for, background, crm_world, moments};

/// A moved line, and a lookup that was asked for before and has not run yet.
async fn moved() -> (Transfer, Standin<Twilio>) {
    let (world, crm) = crm_world().await;
    let sms = world.attached(&ai_sms()).await;
    let lookup = background(&world, &crm, "orders", "speak").await;
    let wish = json!({"tool": sms["id"], "arguments": {"text": "Your order is {{result.state}}."}});
    world.update(&lookup, &json!({"if_call_over": wish})).await.expect(200);
    let transfer = Transfer::in_world(world, &json!({})).await;
    asked_for(&transfer.world, &lookup, &transfer.id).await;
    transfer.asked().await.result();
    transfer.reported().await;
    answers(&crm, "orders", Fault::body(json!({"state": "shipped"})));
    (transfer, crm)
}

/// Delivers the message that has the results told later.
async fn told_later(transfer: &Transfer) {
    let later = transfer.world.aws.receive("executions", 60).unwrap();
    assert_eq!(transfer.world.run_batch(later).await, 0);
}

async fn returned(transfer: &Transfer) -> String {
    let heard = transfer.follow(&[Rings::NoAnswer]).await;
    let Some(Heard::Streamed(stream)) = heard.last() else { panic!("{heard:?}") };
    id_of(stream)
}

fn shipped(told: &[String]) -> usize {
    told.iter().filter(|text| text.contains("shipped")).count()
}

#[tokio::test]
async fn a_caller_who_is_back_gets_the_result_in_the_new_call() {
    let (transfer, _crm) = moved().await;
    let again = returned(&transfer).await;
    assert_eq!(transfer.world.run_queued().await, 0);
    let told = transfer.told(&again).await;
    assert_eq!(shipped(&told), 1, "{told:?}");
    assert!(transfer.world.twilio.messages().is_empty());
    assert_eq!(moments(&transfer.world, &again, "result_injected").await.len(), 1);
    let failed = moments(&transfer.world, &transfer.id, "result_failed").await;
    assert_eq!((failed.len(), &failed[0]["sent_by"]), (1, &json!(null)), "{failed:?}");
    assert!(failed[0]["reason"].as_str().unwrap().contains("back in another call"), "{failed:?}");
}

#[tokio::test]
async fn a_result_waits_while_a_destination_rings() {
    let (transfer, _crm) = moved().await;
    assert_eq!(transfer.world.run_queued().await, 0);
    told_later(&transfer).await;
    assert!(transfer.world.twilio.messages().is_empty());
    let again = returned(&transfer).await;
    told_later(&transfer).await;
    let told = transfer.told(&again).await;
    assert_eq!((shipped(&told), transfer.world.twilio.messages().len()), (1, 0), "{told:?}");
}

#[tokio::test]
async fn a_caller_who_does_not_return_is_sent_the_result() {
    let (transfer, _crm) = moved().await;
    assert_eq!(transfer.world.run_queued().await, 0);
    transfer.follow(&[Rings::Answered]).await;
    told_later(&transfer).await;
    assert_eq!(transfer.world.run_queued().await, 0);
    assert_eq!(transfer.world.twilio.messages().len(), 1);
}
