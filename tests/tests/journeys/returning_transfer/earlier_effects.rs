//! The effects of a call before a transfer count in the call in which the caller is back.

use serde_json::{Value, json};
use tests::{
    World, ai_sms, phone,
    standins::{
        Effect, Fault,
        twilio::{Heard, Rings},
        vapi::ToolCall,
    },
};

use super::{Transfer, id_of, twiml};

#[tokio::test]
async fn the_effects_and_limits_of_a_returned_call_are_those_of_the_phone_call() {
    let world = World::start().await;
    let sms = world.attached(&ai_sms()).await;
    let mut once = ai_sms();
    once["label"] = json!("Send directions");
    once["limits"] = json!({"per_call": 1});
    let once = world.attached(&once).await;
    let transfer = Transfer::in_world(world, &json!({})).await;
    transfer.texts(&transfer.id, &sms, "Tuesday at nine").await.result();
    transfer.texts(&transfer.id, &once, "Main Street 1").await.result();
    let lost = Fault::status(500).on("POST", "/Messages.json").with_effect(Effect::First);
    transfer.world.twilio.inject(lost);
    transfer.texts(&transfer.id, &sms, "Bring your papers").await.sentence();
    transfer.world.twilio.clear_faults();
    transfer.asked().await.result();
    let sent = transfer.world.twilio.messages().len();
    let heard = transfer.follow(&[Rings::NoAnswer]).await;
    let Some(Heard::Streamed(stream)) = heard.last() else { panic!("{heard:?}") };
    let again = id_of(stream);

    let told = transfer.told(&again).await.join("\n");
    let (before, done) = told.split_once("Already done in this phone call").unwrap_or_else(|| panic!("{told}"));
    let (done, unknown) = done.split_once("It is not known whether").unwrap_or_else(|| panic!("{told}"));
    assert!(before.contains("nobody answered"), "{told}");
    let named = |tool: &Value| done.contains(tool["name"].as_str().unwrap());
    assert!(named(&sms) && named(&once) && !named(&transfer.tool), "{told}");
    assert!(done.contains("Tuesday at nine") && unknown.contains("Bring your papers"), "{told}");

    transfer.texts(&again, &sms, "Tuesday at nine").await.result();
    transfer.texts(&again, &sms, "Bring your papers").await.sentence();
    let limited = transfer.texts(&again, &once, "Main Street 2").await.sentence().to_owned();
    assert!(limited.contains("as often as is allowed in this call"), "{limited}");
    assert_eq!(transfer.world.twilio.messages().len(), sent);
    transfer.texts(&again, &sms, "Wednesday at nine").await.result();
    assert_eq!(transfer.world.twilio.messages().len(), sent + 1);
    let receipt = transfer.world.calls(&format!("/{again}/receipt")).await.expect(200);
    let done: Vec<&Value> = receipt["done"].as_array().unwrap().iter().map(|line| &line["arguments"]["text"]).collect();
    assert_eq!(done, [&json!("Wednesday at nine")], "{receipt}");
}

#[tokio::test]
async fn a_returned_caller_is_transferred_again_in_the_same_phone_call() {
    let world = World::start().await;
    let sms = world.attached(&ai_sms()).await;
    let transfer = Transfer::in_world(world, &json!({})).await;
    transfer.texts(&transfer.id, &sms, "Tuesday at nine").await.result();
    let mut calls = vec![transfer.id.clone()];
    for moves in 1..=2 {
        let call = calls.last().unwrap().clone();
        let asked = transfer.world.call(&transfer.tool, json!({"summary": "Ana asks about invoice 42."}));
        transfer.world.call_tool(&ToolCall { call_id: Some(call.clone()), ..asked }).await.result();
        transfer.world.vapi.end_call(&call);
        let line = transfer.line();
        assert_eq!(line.moved_to.len(), moves);
        let answers = line
            .follow(line.moved_to.last().unwrap(), &[Rings::NoAnswer], async |form| twiml(&transfer.post(&form).await));
        let heard = answers.await.unwrap();
        let Some(Heard::Streamed(stream)) = heard.last() else { panic!("{heard:?}") };
        calls.push(id_of(stream));
    }
    let last = calls.pop().unwrap();
    assert_eq!(transfer.world.aws.row("calls", &last).unwrap()["former_calls"], json!(calls));
    let told = transfer.told(&last).await.join("\n");
    assert!(told.contains("Already done") && told.contains("Tuesday at nine"), "{told}");
    transfer.texts(&last, &sms, "Tuesday at nine").await.result();
    assert_eq!(transfer.world.twilio.messages().len(), 1);
}

#[tokio::test]
async fn a_message_that_reached_some_of_its_recipients_is_finished_after_the_return() {
    let world = World::start().await;
    let mut config = ai_sms();
    config["recipients"]["aiExtension"] = json!({"enabled": true, "prompt": "Others", "required": false});
    let sms = world.attached(&config).await;
    let transfer = Transfer::in_world(world, &json!({})).await;
    let texts = async |call: &str| {
        let asked = transfer.world.call(&sms, json!({"text": "Tuesday at nine", "recipients": [phone(2)]}));
        transfer.world.call_tool(&ToolCall { call_id: Some(call.to_owned()), ..asked }).await
    };
    let refusal = json!({"code": 21211, "message": "invalid", "status": 400});
    transfer.world.twilio.inject(Fault::status(400).with_body(refusal).on("POST", "/Messages.json"));
    texts(&transfer.id).await.sentence();
    transfer.asked().await.result();
    let heard = transfer.follow(&[Rings::NoAnswer]).await;
    let Some(Heard::Streamed(stream)) = heard.last() else { panic!("{heard:?}") };
    let again = id_of(stream);
    let told = transfer.told(&again).await.join("\n");
    assert!(told.contains("(for some of the recipients only; the others may still get it)"), "{told}");
    assert_eq!(texts(&again).await.result()["sent"], 1);
    assert_eq!(transfer.world.twilio.messages().len(), 2);
}

/// An older version wrote its row and claimed its effects.
#[tokio::test]
async fn a_call_that_returned_before_an_upgrade_repeats_none_of_its_effects() {
    let world = World::start().await;
    let sms = world.attached(&ai_sms()).await;
    world.incoming_call(&world.home, "again", &phone(1));
    let asked = ToolCall { call_id: Some("again".to_owned()), ..world.call(&sms, json!({"text": "Tuesday at nine"})) };
    world.call_tool(&asked).await.result();
    world.aws.change("calls", "again", json!({"returned_from": "first"}));
    world.call_tool(&asked).await.result();
    assert_eq!(world.twilio.messages().len(), 1);
}

#[tokio::test]
async fn a_returned_agent_whose_earlier_effects_cannot_be_read_is_told_why_it_is_back() {
    let transfer = Transfer::of(&json!({})).await;
    transfer.asked().await.result();
    let heard = transfer.follow(&[Rings::NoAnswer]).await;
    let Some(Heard::Streamed(stream)) = heard.last() else { panic!("{heard:?}") };
    let denied = tests::aws::Trouble::Error("AccessDeniedException");
    transfer.world.aws.inject(tests::aws::Fault::new("Query", "executions", denied));
    let told = transfer.told(&id_of(stream)).await.join("\n");
    assert!(told.contains("nobody answered"), "{told}");
    assert_eq!(transfer.world.aws.faults_left(), 0);
}
