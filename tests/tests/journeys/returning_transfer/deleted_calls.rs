//! A call that is deleted while its transfer goes on.

use serde_json::json;
use tests::{
    Event, World,
    standins::twilio::{Rings, SignedForm},
};

use super::{DESK, NIGHT, Transfer, twiml};

#[tokio::test]
async fn a_caller_whose_call_was_deleted_reaches_the_fallback_number() {
    let world = World::start().await;
    world.aws.change("phone_numbers", &world.home.phone_number_id, json!({"fallback_number": NIGHT}));
    let transfer = Transfer::in_world(world, &json!({})).await;
    transfer.asked().await.result();
    let (home, line) = (&transfer.world.home, transfer.line());
    let post = async |end: &str, form: Vec<(String, String)>| {
        let url = format!("{}{end}", line.moved_to[0]);
        twiml(&transfer.post(&SignedForm::new(&url, &form, &home.twilio_token)).await).unwrap()
    };
    assert!(post("", line.after(Rings::NoAnswer)).await.contains(DESK));
    let deletion = Event::new("DELETE", &format!("/api/{}/calls/{}", home.slug, transfer.id)).user(&home.user_id);
    transfer.world.send("calls", &deletion).await.expect(204);

    let briefing = post("/briefing?rang=1", line.callee(DESK)).await;
    assert!(briefing.ends_with("<Response></Response>"), "{briefing}");
    let fallback = post("?rang=1", line.after(Rings::NoAnswer)).await;
    assert!(fallback.contains(NIGHT), "{fallback}");
    assert_eq!(post("?rang=1", line.after(Rings::NoAnswer)).await, fallback, "Twilio repeats its request");
    let over = post("?rang=2", line.after(Rings::Answered)).await;
    assert!(over.contains("<Hangup/>") && !over.contains(NIGHT), "the caller has spoken with the callee: {over}");
    assert!(transfer.world.aws.rows("calls").is_empty());
}
