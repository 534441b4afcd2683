//! VAPI cannot take a call: Twilio dials the number's fallback, or says a sentence.

use tests::standins::twilio::{Heard, Rings};

use super::*;

#[tokio::test]
async fn vapi_down_or_slow_or_talking_nonsense_is_answered_by_the_fallback() {
    let crm = crm();
    let world = world(&crm).await;
    lookup(&world, &crm, "customer").await;
    for (number, said) in [(Value::Null, "<Say>"), (json!(phone(9)), "<Dial>+14155550109</Dial>")] {
        world.aws.change("phone_numbers", &world.home.phone_number_id, json!({"fallback_number": number}));
        for fault in [
            Fault::status(500).times(9),
            Fault::status(404),
            Fault::status(429).with_header("retry-after", "60"),
            Fault::body(json!({"message": "no TwiML"})),
            Fault::drop_before().times(9),
            Fault::drop_after().times(9),
            Fault::delay(5_000).times(9),
        ] {
            world.vapi.inject(fault);
            let call = world.caller(&phone(1));
            // In place of VAPI's ten seconds: the rest of the function's time.
            let answer = world.send("call-start", &world.incoming(&call).within(Duration::from_secs(2))).await;
            let twiml = answer.body.as_str().unwrap();
            assert_eq!((answer.status, answer.content_type.as_str()), (200, "text/xml"));
            assert!(twiml.contains(said), "{twiml}");
            // Twilio's repeat hears the same.
            world.vapi.clear_faults();
            assert_eq!(world.send("call-start", &world.incoming(&call)).await.body.as_str(), Some(twiml));
        }
    }
    assert!(world.aws.rows("calls").is_empty() && world.aws.messages("start-tools").is_empty());
}

/// Twilio requires a caller ID of us for a caller without a phone number.
#[tokio::test]
async fn every_caller_reaches_the_fallback_number() {
    let world = World::start().await;
    world.aws.change("phone_numbers", &world.home.phone_number_id, json!({"fallback_number": phone(9)}));
    world.vapi.inject(Fault::status(404).times(9));
    let shown = format!(" callerId=\"{}\"", world.home.phone_number);
    for (caller, caller_id) in [
        ("+14155550101", ""),
        ("client:browser", shown.as_str()),
        ("sip:ana@example.com", &shown),
        ("anonymous", &shown),
        ("+266696687", &shown),
    ] {
        let call = world.caller(caller);
        world.twilio.begin_line(&call);
        let fetch = async |_form| {
            let answer = world.send("call-start", &world.incoming(&call)).await;
            let twiml = answer.body.as_str().unwrap().to_owned();
            assert!(twiml.contains(&format!("<Dial{caller_id}>{}</Dial>", phone(9))), "{caller}: {twiml}");
            Ok(twiml)
        };
        let heard = world.twilio.line(&call.call_sid).unwrap().follow("/incoming", &[Rings::Answered], fetch).await;
        assert_eq!(heard.unwrap(), [Heard::Rang { to: phone(9), seconds: 30 }], "{caller}");
    }
}

#[tokio::test]
async fn the_fallback_speaks_the_language_of_the_number() {
    let world = World::start().await;
    let set = |columns: Value| world.aws.change("phone_numbers", &world.home.phone_number_id, columns);
    world.vapi.inject(Fault::status(404).times(9));
    let heard = async || world.send("call-start", &world.incoming(&world.caller(&phone(1)))).await.body;
    set(json!({"language": "pt-PT"}));
    let apology = heard().await;
    assert!(apology.as_str().unwrap().contains("<Say>We are sorry"), "English in an English voice: {apology}");
    set(json!({"fallback_sentence": "Ligue <mais> tarde."}));
    let said = heard().await;
    let expected = "<Response><Say language=\"pt-PT\">Ligue &lt;mais&gt; tarde.</Say><Hangup/></Response>";
    assert!(said.as_str().unwrap().ends_with(expected), "{said}");
    set(json!({"fallback_number": phone(9)}));
    let dialled = heard().await;
    assert!(!dialled.as_str().unwrap().contains("<Say"), "{dialled}");
}
