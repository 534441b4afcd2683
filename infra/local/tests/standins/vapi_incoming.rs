//! VAPI's stand-in: calls from Twilio's form, bypassed calls, and server messages.
#![expect(clippy::expect_used, clippy::panic, reason = "a test says what is missing and stops")]

use local::standins::{
    Fault, Standin,
    llm::{self, Llm},
    twilio::{self, Answered, IncomingCall, SignedForm},
    vapi::{self, CallError, Event, Media, ServerMessage, Status, Vapi},
};
use serde_json::{Value, json};

use crate::client::{anywhere, client, json};

const ASSISTANT: &str = "33333333-3333-4333-8333-333333333333";
const OTHER_ASSISTANT: &str = "33333333-3333-4333-8333-333333333334";
const UNKNOWN: &str = "99999999-9999-4999-8999-999999999999";
const NUMBER_ID: &str = "44444444-4444-4444-8444-444444444444";
const CREDENTIAL: &str = "66666666-6666-4666-8666-666666666666";
const ACCOUNT: &str = "AC00000000000000000000000000000001";
const CALLER: &str = "+15550100001";
const NUMBER: &str = "+15550100002";

macro_rules! fixture {
    ($name:literal) => {
        serde_json::from_str::<Value>(include_str!(concat!("../../../../tests/fixtures/vapi/", $name))).expect("JSON")
    };
}

fn start(media: Media) -> Standin<Vapi> {
    let options = vapi::Options::default()
        .with_assistant(ASSISTANT)
        .with_assistant(OTHER_ASSISTANT)
        .with_number_id(NUMBER_ID, NUMBER, ASSISTANT)
        .with_credential(CREDENTIAL, "Authorization", "Bearer hook")
        .with_media(media);
    vapi::start(anywhere(), options).expect("a free port")
}

fn ringing() -> IncomingCall {
    IncomingCall::new(ACCOUNT, CALLER, NUMBER)
}

/// Posts a form to VAPI, like a backend in front of it.
async fn forward(vapi: &Standin<Vapi>, form: Vec<(String, String)>) -> Answered {
    SignedForm::new(&format!("{}/twilio/inbound_call", vapi.url), &form, "").post().await.expect("an answer")
}

/// The id of the call in this TwiML.
fn connected_to(vapi: &Standin<Vapi>, twiml: &str) -> String {
    let before = format!("<Response><Connect><Stream url='ws://{}/", vapi.address());
    let rest = twiml.strip_prefix(&before).unwrap_or_else(|| panic!("{twiml}"));
    rest.strip_suffix("/transport' /></Connect></Response>").unwrap_or_else(|| panic!("{twiml}")).to_owned()
}

async fn control(vapi: &Standin<Vapi>, call: &str) -> u16 {
    let say = json!({"type": "say", "content": "Hello"});
    json(client().post(format!("{}/{call}/control", vapi.url)).json(&say)).await.0
}

async fn create(vapi: &Standin<Vapi>, body: &Value) -> (u16, Value) {
    json(client().post(format!("{}/call", vapi.url)).bearer_auth("vapi-private-key").json(body)).await
}

#[tokio::test]
async fn a_call_on_a_known_number_is_its_assistants() {
    let vapi = start(Media::AfterMs(0));
    let incoming = ringing();
    let answered = forward(&vapi, incoming.form()).await;
    assert_eq!((answered.status, answered.content_type.as_deref()), (200, Some("text/xml")));
    let id = connected_to(&vapi, answered.twiml().expect("TwiML"));
    let call = vapi.call(&id).expect("the call");
    assert_eq!((&call["assistantId"], &call["type"]), (&json!(ASSISTANT), &json!("inboundPhoneCall")));
    assert_eq!((&call["phoneNumberId"], &call["customer"]["number"]), (&json!(NUMBER_ID), &json!(CALLER)));
    assert_eq!(call["transport"]["callSid"], json!(incoming.call_sid));
    assert_eq!(call["monitor"]["controlUrl"], format!("{}/{id}/control", vapi.url));
    assert_eq!(control(&vapi, &id).await, 200);
}

#[tokio::test]
async fn the_same_call_sid_again_is_the_same_call() {
    let vapi = start(Media::Later);
    let incoming = ringing();
    let first = forward(&vapi, incoming.form()).await;
    assert_eq!(forward(&vapi, incoming.form()).await, first);
    let other = forward(&vapi, ringing().form()).await;
    assert_ne!(connected_to(&vapi, &other.body), connected_to(&vapi, &first.body));
}

#[tokio::test]
async fn control_answers_404_until_the_media_is_connected() {
    let vapi = start(Media::Later);
    let id = connected_to(&vapi, &forward(&vapi, ringing().form()).await.body);
    assert_eq!(control(&vapi, &id).await, 404);
    assert_eq!(vapi.call(&id).expect("the call")["status"], "ringing");
    assert!(vapi.connect_media(&id));
    assert_eq!(control(&vapi, &id).await, 200);

    vapi.set_media(Media::AfterMs(0));
    let soon = connected_to(&vapi, &forward(&vapi, ringing().form()).await.body);
    assert_eq!(control(&vapi, &soon).await, 200);
}

#[tokio::test]
async fn media_connects_a_moment_after_the_call_unless_told_otherwise() {
    assert_eq!(vapi::Options::default().media, Media::AfterMs(150));
    let vapi = start(Media::AfterMs(u32::MAX));
    let id = connected_to(&vapi, &forward(&vapi, ringing().form()).await.body);
    assert_eq!(control(&vapi, &id).await, 404);
}

#[tokio::test]
async fn a_form_that_is_no_new_call_is_refused() {
    let vapi = start(Media::Later);
    let with = |name: &str, value: Option<&str>| {
        let mut form = ringing().form();
        form.retain(|(key, _)| key != name);
        form.extend(value.map(|value| (name.to_owned(), value.to_owned())));
        form
    };
    for (form, problem) in [
        (with("CallStatus", Some("in-progress")), "CallStatus must be one of the following values: ringing"),
        (with("CallStatus", None), "CallStatus must be one of"),
        (with("Direction", Some("outbound-api")), "Direction must be one of the following values: inbound, outbound"),
        (with("CallSid", None), "CallSid should not be empty"),
        (with("From", Some("")), "From should not be empty"),
        (with("To", None), "To should not be empty"),
    ] {
        let answered = forward(&vapi, form).await;
        let body: Value = serde_json::from_str(&answered.body).expect("JSON");
        assert_eq!((answered.status, &body["error"], &body["statusCode"]), (400, &json!("Bad Request"), &json!(400)));
        assert_eq!(body["message"].as_array().map(Vec::len), Some(1), "{body}");
        assert!(body["message"].to_string().contains(problem), "{problem}: {body}");
    }
    assert_eq!(forward(&vapi, with("Direction", Some("outbound"))).await.status, 200);

    let address = format!("{}/twilio/inbound_call", vapi.url);
    let as_json = client().post(&address).json(&json!({"CallSid": "CA1", "CallStatus": "ringing"}));
    assert_eq!(json(as_json).await.0, 400, "JSON is not read");
    assert_eq!(json(client().get(&address)).await.0, 404);
    let unknown = forward(&vapi, IncomingCall::new(ACCOUNT, CALLER, "+15550109999").form()).await;
    let body: Value = serde_json::from_str(&unknown.body).expect("JSON");
    assert_eq!((unknown.status, &body["statusCode"], unknown.twiml()), (404, &json!(404), None));
}

#[tokio::test]
async fn a_number_can_be_given_to_another_assistant() {
    let vapi = start(Media::Later);
    let put = |body: Value| json(client().put(format!("{}/simulate/number", vapi.url)).json(&body));
    let (status, record) = put(json!({"number": NUMBER, "assistant_id": OTHER_ASSISTANT})).await;
    assert_eq!((status, &record["id"], &record["assistantId"]), (200, &json!(NUMBER_ID), &json!(OTHER_ASSISTANT)));
    let id = connected_to(&vapi, &forward(&vapi, ringing().form()).await.body);
    assert_eq!(vapi.call(&id).expect("the call")["assistantId"], OTHER_ASSISTANT);
    assert_eq!(vapi.set_number(NUMBER, ASSISTANT).as_deref(), Ok(NUMBER_ID));

    assert_eq!(put(json!({"number": NUMBER, "assistant_id": UNKNOWN})).await.0, 404);
    assert_eq!(put(json!({"number": NUMBER})).await.0, 400);
    let nobodys = vapi::Options::default().with_number(NUMBER, UNKNOWN);
    assert!(vapi::start(anywhere(), nobodys).is_err());

    // VAPI forgets the assistant but keeps the number.
    let delete = client().delete(format!("{}/assistant/{ASSISTANT}", vapi.url)).bearer_auth("vapi-private-key");
    assert_eq!(json(delete).await.0, 200);
    let answered = forward(&vapi, ringing().form()).await;
    assert_eq!(answered.status, 400);
    assert!(answered.body.contains("Couldn't Get Assistant."), "{}", answered.body);
}

#[tokio::test]
async fn a_bypassed_call_is_answered_with_its_twiml() {
    let vapi = start(Media::Later);
    let (status, call) = create(&vapi, &fixture!("call_create_bypass.json")).await;
    assert_eq!(status, 201, "{call}");
    same_keys("call", &fixture!("call_create_bypass_response.json"), &call);
    let id = call["id"].as_str().expect("an id").to_owned();
    let twiml = call["phoneCallProviderDetails"]["twiml"].as_str().expect("TwiML");
    assert_eq!(connected_to(&vapi, twiml), id);
    assert_eq!((&call["status"], &call["customer"]["number"]), (&json!("queued"), &json!(CALLER)));
    assert_eq!(call["assistantOverrides"], fixture!("call_create_bypass.json")["assistantOverrides"]);
    assert_eq!(control(&vapi, &id).await, 404);
    assert!(vapi.connect_media(&id));
    assert_eq!(control(&vapi, &id).await, 200);
    // VAPI has no line that it could transfer.
    let transfer = json!({"type": "transfer", "destination": {"type": "number", "number": CALLER}});
    let (status, told) = json(client().post(format!("{}/{id}/control", vapi.url)).json(&transfer)).await;
    assert_eq!(status, 400, "{told}");
    // Nothing links it to Twilio's call, so the same request creates another call.
    let (_, again) = create(&vapi, &fixture!("call_create_bypass.json")).await;
    assert_ne!(again["id"], call["id"]);
}

#[tokio::test]
async fn a_call_that_cannot_be_created_is_refused_in_the_validators_words() {
    let vapi = start(Media::Later);
    let with = |name: &str, value: Value| {
        let mut body = fixture!("call_create_bypass.json");
        body[name] = value;
        body
    };
    for (body, problem) in [
        (json!({}), "phoneNumberId must be a string"),
        (with("callSid", json!("CA1")), "property callSid should not exist"),
        (with("metadata", json!({})), "property metadata should not exist"),
        (
            with("phoneCallProviderBypassEnabled", json!("true")),
            "phoneCallProviderBypassEnabled must be a boolean value",
        ),
        (
            with("assistantOverrides", json!({"voicemailDetection": {"provider": "ours"}})),
            "assistantOverrides.voicemailDetection.provider must be one of",
        ),
        (with("customer", json!({})), "customer.number must be a string"),
        (with("customer", json!({"number": "5550100001"})), "customer.number must be a valid phone number"),
        (with("customer", json!({"number": CALLER, "phone": "x"})), "customer.property phone should not exist"),
        (with("assistantOverrides", json!({"model": {}})), "assistantOverrides.model.provider must be one of"),
        (with("assistantOverrides", json!({"tools": []})), "assistantOverrides.property tools should not exist"),
        (with("assistantId", json!(UNKNOWN)), "Couldn't Get Assistant. `assistantId` 99999999"),
        (with("phoneNumberId", json!(UNKNOWN)), "Couldn't Get Phone Number. `phoneNumberId` 99999999"),
    ] {
        let (status, told) = create(&vapi, &body).await;
        assert_eq!((status, &told["error"]), (400, &json!("Bad Request")), "{body}");
        assert!(told["message"].to_string().contains(problem), "{problem}: {told}");
    }
    let address = format!("{}/call", vapi.url);
    let wish = fixture!("call_create_bypass.json");
    assert_eq!(json(client().post(&address).json(&wish)).await.0, 401);
    // None of the requests created a call.
    assert_eq!(json(client().get(&address).bearer_auth("vapi-private-key")).await, (200, json!([])));
}

#[tokio::test]
async fn a_dialled_call_rings_until_the_person_answers() {
    let vapi = start(Media::AfterMs(0));
    let mut wish = fixture!("call_create_bypass.json");
    wish.as_object_mut().expect("an object").remove("phoneCallProviderBypassEnabled");
    let (status, call) = create(&vapi, &wish).await;
    assert_eq!(
        (status, &call["type"], &call["status"]),
        (201, &json!("outboundPhoneCall"), &json!("queued")),
        "{call}"
    );
    assert!(call.get("phoneCallProviderDetails").is_none(), "{call}");
    let id = call["id"].as_str().expect("text");
    assert_eq!(vapi.call(id).expect("the call")["status"], "queued");
    assert!(vapi.connect_media(id));
    assert_eq!(vapi.call(id).expect("the call")["status"], "in-progress");
}

#[tokio::test]
async fn another_account_calls_neither_with_this_ones_number_nor_its_assistant() {
    let options = vapi::Options::default()
        .with_assistant(ASSISTANT)
        .with_number_id(NUMBER_ID, NUMBER, ASSISTANT)
        .with_key("other-key", "11111111-1111-4111-8111-111111111112");
    let vapi = vapi::start(anywhere(), options).expect("a free port");
    let post = client().post(format!("{}/call", vapi.url)).bearer_auth("other-key");
    let (status, told) = json(post.json(&fixture!("call_create_bypass.json"))).await;
    assert_eq!(status, 400);
    assert!(told["message"].as_str().expect("text").starts_with("Couldn't Get Assistant."), "{told}");
}

/// Checks that every key of the documented object is present with a value of the same type. The fixtures' assistant
/// and account may differ.
fn same_keys(path: &str, documented: &Value, received: &Value) {
    assert_eq!(std::mem::discriminant(documented), std::mem::discriminant(received), "{path}: {received}");
    if path.ends_with(".assistant") || path.ends_with(".variableValues") {
        return;
    }
    let Some(documented) = documented.as_object() else { return };
    for (name, value) in documented.iter().filter(|(name, _)| *name != "twilioAccountSid") {
        let path = format!("{path}.{name}");
        same_keys(&path, value, received.get(name).unwrap_or_else(|| panic!("{path} is missing")));
    }
}

/// An HTTP server that records requests and answers as told.
fn backend() -> Standin<Llm> {
    llm::start(anywhere(), llm::Options::default()).expect("a free port")
}

#[tokio::test]
async fn the_events_of_a_call_carry_the_credential() {
    let (vapi, backend) = (start(Media::AfterMs(0)), backend());
    let id = connected_to(&vapi, &forward(&vapi, ringing().form()).await.body);
    let events = format!("{}/events", backend.url);
    backend.inject(Fault::body(json!({"taken": true})).times(2));
    for (event, documented) in [
        (Event::status(Status::InProgress), fixture!("webhook_status_update.json")),
        (Event::report("customer-ended-call", 0.12), fixture!("webhook_end_of_call_report.json")),
    ] {
        let message = ServerMessage::new(event, &events).with_credential(CREDENTIAL).with_header("X-Test", "yes");
        let told = vapi.tell(&id, &message).await.expect("a request");
        let response = told.response.expect("an answer");
        assert_eq!((response.status, &response.body, told.failure), (200, &json!({"taken": true}), None));
        let received = backend.requests().pop().expect("a request");
        assert_eq!((received.method.as_str(), received.path.as_str()), ("POST", "/events"));
        for (name, value) in [
            ("authorization", "Bearer hook"),
            ("x-call-id", id.as_str()),
            ("x-test", "yes"),
            ("content-type", "application/json"),
        ] {
            assert_eq!(received.headers.get(name).map(String::as_str), Some(value));
        }
        let message = &received.body["message"];
        same_keys("message", &documented["message"], message);
        assert_eq!((&message["call"]["id"], &message["phoneNumber"]["number"]), (&json!(id), &json!(NUMBER)));
        assert_eq!(
            (&message["type"], &message["endedReason"]),
            (&documented["message"]["type"], &documented["message"]["endedReason"])
        );
    }
    let call = vapi.call(&id).expect("the call");
    assert_eq!(call["status"], "in-progress", "telling changes nothing");
}

#[tokio::test]
async fn the_control_route_sends_the_given_message() {
    let (vapi, backend) = (start(Media::Later), backend());
    let id = connected_to(&vapi, &forward(&vapi, ringing().form()).await.body);
    let send = |id: &str, body: Value| {
        json(client().post(format!("{}/simulate/call/{id}/server-message", vapi.url)).json(&body))
    };
    backend.inject(Fault::status(503));
    let ended = json!({"type": "status-update", "status": "ended", "ended_reason": "silence-timed-out"});
    let (status, told) = send(&id, json!({"event": ended, "url": backend.url})).await;
    assert_eq!((status, &told["response"]["status"], &told["failure"]), (200, &json!(503), &Value::Null));
    let message = &told["request"]["body"]["message"];
    assert_eq!(message, &backend.requests().pop().expect("a request").body["message"]);
    assert_eq!((&message["status"], &message["call"]["status"]), (&json!("ended"), &json!("ended")));
    assert_eq!(message["endedReason"], "silence-timed-out");

    let report = json!({
        "type": "end-of-call-report", "ended_reason": "assistant-ended-call", "cost": 0.5,
        "started_at": "2026-08-20T10:00:00.000Z", "ended_at": "2026-08-20T10:01:30.000Z", "transcript": "User: hello",
    });
    let (_, told) = send(&id, json!({"event": report, "url": "http://127.0.0.1:1/"})).await;
    assert!(told["response"].is_null() && told["failure"].is_string(), "{told}");
    let message = &told["request"]["body"]["message"];
    assert_eq!((&message["cost"], &message["costs"][0]["minutes"]), (&json!(0.5), &json!(1.5)));
    assert_eq!((&message["endedAt"], &message["artifact"]["transcript"]), (&report["ended_at"], &report["transcript"]));

    let speech = json!({"type": "speech-update", "role": "user", "status": "started"});
    let (_, told) = send(&id, json!({"event": speech, "url": backend.url})).await;
    let message = &told["request"]["body"]["message"];
    assert_eq!((&message["role"], &message["status"]), (&json!("user"), &json!("started")));

    let queued = json!({"type": "status-update", "status": "queued"});
    for (call, body, expected) in [
        (UNKNOWN, json!({"event": queued, "url": backend.url}), 404),
        (&id, json!({"event": queued, "url": backend.url, "credential_id": UNKNOWN}), 400),
        (&id, json!({"event": queued}), 400),
        (&id, json!({"event": {"type": "status-update", "status": "asleep"}, "url": backend.url}), 400),
        (&id, json!({"event": {"type": "hang"}, "url": backend.url}), 400),
    ] {
        assert_eq!(send(call, body.clone()).await.0, expected, "{body}");
    }
}

#[tokio::test]
async fn a_message_is_repeated_only_by_the_plan_of_its_server() {
    let (vapi, backend) = (start(Media::Later), backend());
    let id = connected_to(&vapi, &forward(&vapi, ringing().form()).await.body);
    let plan =
        json!({"backoffPlan": {"type": "fixed", "maxRetries": 2, "baseDelaySeconds": 0, "excludedStatusCodes": [401]}});
    for (more, status, attempts) in [(json!({}), 503, 1), (plan.clone(), 503, 3), (plan, 401, 1)] {
        let mut server = json!({"url": format!("{}/events", backend.url)});
        server.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        let patch = client().patch(format!("{}/assistant/{ASSISTANT}", vapi.url)).bearer_auth("vapi-private-key");
        assert_eq!(json(patch.json(&json!({ "server": server }))).await.0, 200);
        backend.clear_faults();
        backend.inject(Fault::status(status).times(9));
        let message = ServerMessage { url: None, ..ServerMessage::new(Event::status(Status::Ringing), "") };
        let told = vapi.tell(&id, &message).await.expect("a request");
        assert_eq!((told.attempts, told.response.expect("an answer").status), (attempts, status), "{server}");
    }
}

#[tokio::test]
async fn without_an_address_a_message_goes_to_the_assistants_server() {
    let vapi = start(Media::Later);
    let server = json!({"url": "https://example.com/events", "credentialId": CREDENTIAL, "timeoutSeconds": 7});
    let patch = client().patch(format!("{}/assistant/{ASSISTANT}", vapi.url)).bearer_auth("vapi-private-key");
    assert_eq!(json(patch.json(&json!({ "server": server }))).await.0, 200);
    let id = connected_to(&vapi, &forward(&vapi, ringing().form()).await.body);
    let mut message = ServerMessage::new(Event::status(Status::Ringing), "");
    message.url = None;
    let outgoing = vapi.server_message(&id, &message).expect("a request");
    assert_eq!((outgoing.url.as_str(), outgoing.timeout_seconds), ("https://example.com/events", 7.0));
    assert_eq!(outgoing.headers.get("authorization").map(String::as_str), Some("Bearer hook"));
    assert_eq!(vapi.server_message(UNKNOWN, &message).err(), Some(CallError::UnknownCall(UNKNOWN.to_owned())));
}

#[tokio::test]
async fn twilio_calls_a_voice_url_with_the_form_it_signs() {
    let vapi = start(Media::AfterMs(0));
    let options = twilio::Options::default().with_account(ACCOUNT, "12345", &[NUMBER]);
    let at_twilio = twilio::start(anywhere(), options).expect("a free port");
    let ring = |body: Value| json(client().post(format!("{}/simulate/incoming-call", at_twilio.url)).json(&body));
    let url = format!("{}/twilio/inbound_call", vapi.url);
    let (status, told) = ring(json!({"url": url, "from": CALLER, "to": NUMBER, "call_sid": "CA1"})).await;
    assert_eq!((status, &told["call_sid"], &told["failure"]), (200, &json!("CA1"), &Value::Null));
    assert_eq!((&told["response"]["status"], &told["response"]["content_type"]), (&json!(200), &json!("text/xml")));
    let call = connected_to(&vapi, told["response"]["body"].as_str().expect("TwiML"));
    assert_eq!(vapi.call(&call).expect("the call")["phoneCallProviderId"], "CA1");

    let received = vapi.requests().pop().expect("a request");
    let form: Vec<(String, String)> = serde_json::from_value(received.body).expect("a form");
    let signature = twilio::signature(&url, &form, "12345");
    assert_eq!(received.headers.get("x-twilio-signature"), Some(&signature));
    assert!(form.contains(&("AccountSid".to_owned(), ACCOUNT.to_owned())));

    assert_eq!(ring(json!({"url": url, "from": CALLER, "to": "+15550109999"})).await.0, 404);
    assert_eq!(ring(json!({"url": url})).await.0, 400);
    let (_, told) = ring(json!({"url": "http://127.0.0.1:1/", "from": CALLER, "to": NUMBER})).await;
    assert!(told["response"].is_null() && told["failure"].is_string(), "{told}");
}
