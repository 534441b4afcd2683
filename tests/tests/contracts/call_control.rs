//! The call control client against VAPI's stand-in: requests to a control URL, and each failure's name.
//!
//! Effects that may have happened are distinguished from effects that certainly did not.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

use local::standins::{
    Effect, Fault, Standin,
    vapi::{self as standin, Media, Options, PhoneCall},
};
use serde_json::{Value, json};
use shared::{
    Deadline,
    clients::{
        CallControl,
        call_control::{Destination, NotAccepted},
        http_client,
    },
    models::ControlUrl,
};
use tests::{
    clients::{LATE, ample, anywhere, class, excerpt, fixture, nowhere, short, until},
    vapi_openapi::vapi_takes,
};

const ASSISTANT: &str = "33333333-3333-4333-8333-333333333333";

struct Line {
    vapi: Standin<standin::Vapi>,
    call_id: String,
    url: ControlUrl,
    control: CallControl,
}

impl Line {
    fn new(media: Media) -> Self {
        let vapi = standin::start(anywhere(), Options::default().with_assistant(ASSISTANT)).unwrap();
        let call = PhoneCall {
            assistant_id: Some(ASSISTANT.to_owned()),
            customer_number: "+15550100001".to_owned(),
            phone_number: "+15550100002".to_owned(),
            media,
            ..PhoneCall::default()
        };
        let call = vapi.begin_call(&call).unwrap();
        let control = client(&vapi.url);
        Self {
            call_id: call["id"].as_str().unwrap().to_owned(),
            url: call["monitor"]["controlUrl"].as_str().unwrap().parse().unwrap(),
            vapi,
            control,
        }
    }

    async fn transfer(&self, deadline: Deadline) -> Result<(), NotAccepted> {
        let number = "+15550100003".parse().unwrap();
        self.control.transfer(&self.url, &Destination::Number { number: &number }, None, deadline).await
    }

    fn heard(&self) -> Vec<Value> {
        self.vapi.heard(&self.call_id)
    }
}

/// A client that may reach the host of this address.
fn client(url: &str) -> CallControl {
    CallControl::new(http_client().unwrap(), vec![url.trim_start_matches("http://").to_owned()])
}

fn kind(not_accepted: &NotAccepted) -> String {
    let kind = match not_accepted {
        NotAccepted::NotThere(_) => "not there",
        NotAccepted::Declined(_) => "declined",
        NotAccepted::Unknown(_) => "unknown",
    };
    let error = not_accepted.error();
    assert_eq!(error.effect_possible(), kind == "unknown", "{error}");
    format!("{kind}: {}", class(error))
}

#[tokio::test]
async fn messages_are_those_of_the_documentation() {
    let line = Line::new(Media::Connected);
    let number = "+15550100003".parse().unwrap();
    let number = Destination::Number { number: &number };
    let sip = Destination::Sip { sip_uri: "sip:desk@example.com" };
    line.control.add_message(&line.url, "Caller is Ana Ruiz, a returning customer.", false, ample()).await.unwrap();
    line.control.transfer(&line.url, &number, None, ample()).await.unwrap();
    line.control.transfer(&line.url, &sip, None, ample()).await.unwrap();
    line.control.transfer(&line.url, &number, Some("A caller about billing."), ample()).await.unwrap();
    line.control.handoff(&line.url, ASSISTANT, ample()).await.unwrap();

    // The example also speaks to the caller, which VAPI does by itself.
    let silent = |name: &str| {
        let mut example = fixture(name);
        example.as_object_mut().unwrap().remove("content");
        example
    };
    let mut told = silent("vapi/control_transfer_number.json");
    told["destination"]["transferPlan"] =
        json!({"mode": "warm-transfer-say-message", "message": "A caller about billing."});
    let handoff = json!({"type": "handoff", "destination": {"type": "assistant", "assistantId": ASSISTANT}});
    let expected = [
        fixture("vapi/control_add_message.json"),
        silent("vapi/control_transfer_number.json"),
        silent("vapi/control_transfer_sip.json"),
        told,
        handoff,
    ];
    assert_eq!(line.heard(), expected);
    vapi_takes("ClientInboundMessageAddMessage", &expected[0]);
    for transfer in &expected[1..4] {
        vapi_takes("ClientInboundMessageTransfer", transfer);
    }
    vapi_takes("HandoffDestinationAssistant", &expected[4]["destination"]);
    for request in line.vapi.requests() {
        assert_eq!((request.method.as_str(), request.path), ("POST", format!("/{}/control", line.call_id)));
        assert_eq!(request.headers["content-type"], "application/json");
        assert!(!request.headers.contains_key("authorization"), "our key is none of the call's business");
    }
}

#[tokio::test]
async fn a_call_takes_messages_while_its_media_is_connected() {
    let line = Line::new(Media::Later);
    assert_eq!(kind(&line.transfer(ample()).await.unwrap_err()), "not there: rejected 404");
    line.vapi.connect_media(&line.call_id);
    line.control.add_message(&line.url, "Ana", false, ample()).await.unwrap();
    line.vapi.end_call(&line.call_id);
    assert_eq!(kind(&line.transfer(ample()).await.unwrap_err()), "not there: rejected 404");
    assert_eq!((line.heard().len(), line.vapi.requests().len()), (1, 3), "nothing is tried again by itself");
}

#[tokio::test]
async fn failures_that_certainly_had_no_effect() {
    for (fault, expected) in [
        (Fault::status(404), "not there: rejected 404"),
        (Fault::status(410), "not there: rejected 410"),
        (Fault::status(400), "declined: rejected 400"),
        (Fault::status(401), "declined: rejected 401"),
        (Fault::status(429).with_header("Retry-After", "600"), "declined: rate limited for 600 s"),
    ] {
        let line = Line::new(Media::Connected);
        line.vapi.inject(fault);
        assert_eq!(kind(&line.transfer(ample()).await.unwrap_err()), expected);
        assert_eq!((line.heard().len(), line.vapi.requests().len()), (0, 1), "{expected}");
    }
    let address = nowhere();
    let url = format!("{address}/x/control").parse().unwrap();
    let error = client(&address).add_message(&url, "x", false, short()).await.unwrap_err();
    assert_eq!(kind(&error), "not there: unreachable");
}

#[tokio::test]
async fn a_request_that_may_have_had_an_effect_is_not_retried() {
    for (fault, expected, heard) in [
        (Fault::drop_after(), "unknown: no answer", 1),
        (Fault::drop_before(), "unknown: no answer", 0),
        (Fault::status(500), "unknown: broken 500", 0),
        (Fault::status(502).with_effect(Effect::First), "unknown: broken 502", 1),
    ] {
        let line = Line::new(Media::Connected);
        line.vapi.inject(fault);
        assert_eq!(kind(&line.transfer(ample()).await.unwrap_err()), expected);
        assert_eq!((line.heard().len(), line.vapi.requests().len()), (heard, 1), "{expected}");
    }
    let line = Line::new(Media::Connected);
    line.vapi.inject(Fault::delay(LATE));
    assert_eq!(kind(&line.transfer(short()).await.unwrap_err()), "unknown: no answer");
    until(|| line.heard().len() == 1).await;
    assert_eq!(line.vapi.requests().len(), 1);
}

#[tokio::test]
async fn a_request_that_was_not_processed_is_retried() {
    let line = Line::new(Media::Connected);
    line.vapi.inject(Fault::status(429).with_header("Retry-After", "0"));
    line.transfer(ample()).await.unwrap();
    assert_eq!((line.heard().len(), line.vapi.requests().len()), (1, 2));
}

#[tokio::test]
async fn any_success_status_counts() {
    for body in [json!("<html>"), json!(""), json!({"error": "no"}), json!(null)] {
        let line = Line::new(Media::Connected);
        line.vapi.inject(Fault::status(202).with_body(body));
        line.transfer(ample()).await.unwrap();
    }
}

#[tokio::test]
async fn a_refusal_is_kept_for_the_log_without_numbers() {
    let line = Line::new(Media::Connected);
    let number = "+15550100003".parse().unwrap();
    let sip = Destination::Sip { sip_uri: "" };
    line.vapi.inject(Fault::status(400).with_body(json!({"message": ["destination.number +15550100003 is busy"]})));
    let error = line.control.transfer(&line.url, &Destination::Number { number: &number }, None, ample()).await;
    let error = error.unwrap_err().into_error();
    assert!(excerpt(&error).contains("is busy") && !error.to_string().contains("5550100003"), "{error}");
    // An unknown assistant is declined.
    let error = line.control.handoff(&line.url, "no-such-assistant", ample()).await.unwrap_err();
    assert_eq!(kind(&error), "declined: rejected 400");
    line.control.transfer(&line.url, &sip, None, ample()).await.unwrap();
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let line = Line::new(Media::Connected);
    let elsewhere = Line::new(Media::Connected);
    for status in [301, 302, 303, 307, 308] {
        let target = format!("{}/{}/control", elsewhere.vapi.url, elsewhere.call_id);
        line.vapi.inject(Fault::status(status).with_header("Location", &target));
        assert_eq!(kind(&line.transfer(ample()).await.unwrap_err()), format!("unknown: rejected {status}"));
    }
    assert!(elsewhere.vapi.requests().is_empty());
}

#[tokio::test]
async fn an_address_at_another_host_is_not_sent_to() {
    let line = Line::new(Media::Connected);
    let elsewhere = Line::new(Media::Connected);
    let error = line.control.add_message(&elsewhere.url, "x", false, ample()).await.unwrap_err();
    assert_eq!(kind(&error), "declined: refused");
    assert!(!error.error().to_string().contains(&elsewhere.call_id), "{}", error.error());
    assert!(elsewhere.vapi.requests().is_empty());
}
