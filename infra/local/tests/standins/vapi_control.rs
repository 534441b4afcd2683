//! VAPI's stand-in: the life of a phone call, and the messages to its control URL.
#![expect(clippy::expect_used, reason = "a test says what is missing and stops")]

use local::standins::{
    Fault, Standin,
    vapi::{self, CallError, Media, PhoneCall, ToolCall, Vapi},
};
use serde_json::{Value, json};

use crate::client::{anywhere, client, json};

const ASSISTANT: &str = "33333333-3333-4333-8333-333333333333";
const UNKNOWN: &str = "99999999-9999-4999-8999-999999999999";

fn start() -> Standin<Vapi> {
    vapi::start(anywhere(), vapi::Options::default().with_assistant(ASSISTANT)).expect("a free port")
}

fn incoming(media: Media) -> PhoneCall {
    PhoneCall {
        assistant_id: Some(ASSISTANT.to_owned()),
        customer_number: "+15550100001".to_owned(),
        phone_number: "+15550100002".to_owned(),
        media,
        ..PhoneCall::default()
    }
}

fn id(call: &Value) -> String {
    call["id"].as_str().expect("an id").to_owned()
}

async fn get(vapi: &Standin<Vapi>, id: &str) -> (u16, Value) {
    json(client().get(format!("{}/call/{id}", vapi.url)).bearer_auth("vapi-private-key")).await
}

async fn post(vapi: &Standin<Vapi>, id: &str, message: &Value) -> (u16, Value) {
    json(client().post(format!("{}/{id}/control", vapi.url)).json(message)).await
}

fn examples() -> Vec<Value> {
    [
        include_str!("../../../../tests/fixtures/vapi/control_add_message.json"),
        include_str!("../../../../tests/fixtures/vapi/control_transfer_number.json"),
        include_str!("../../../../tests/fixtures/vapi/control_transfer_sip.json"),
        include_str!("../../../../tests/fixtures/vapi/control_handoff.json"),
        include_str!("../../../../tests/fixtures/vapi/control_control.json"),
        include_str!("../../../../tests/fixtures/vapi/control_send_transport.json"),
        include_str!("../../../../tests/fixtures/vapi/control_say.json"),
        include_str!("../../../../tests/fixtures/vapi/control_end_call.json"),
    ]
    .map(|text| serde_json::from_str(text).expect("JSON"))
    .to_vec()
}

#[tokio::test]
async fn every_documented_message_is_taken_and_kept() {
    let vapi = start();
    let call = vapi.begin_call(&incoming(Media::Connected)).expect("a call");
    assert_eq!(call["monitor"]["controlUrl"], format!("{}/{}/control", vapi.url, id(&call)));
    assert_eq!(call["monitor"]["listenUrl"], format!("ws://{}/{}/listen", vapi.address(), id(&call)));
    for message in examples() {
        assert_eq!(post(&vapi, &id(&call), &message).await.0, 200, "{message}");
    }
    assert_eq!(vapi.heard(&id(&call)), examples());
    assert_eq!(vapi.call(&id(&call)).expect("the call")["status"], "ended", "by the last of them");
    let (_, told) = json(client().get(format!("{}/simulate/call/{}", vapi.url, id(&call)))).await;
    assert_eq!(told["messages"].as_array().map(Vec::len), Some(examples().len()));
    assert_eq!((&told["messages"][0]["message"], &told["call"]["status"]), (&examples()[0], &json!("ended")));
}

#[tokio::test]
async fn an_invalid_message_is_refused_in_the_validators_words() {
    let vapi = start();
    let call = id(&vapi.begin_call(&incoming(Media::Connected)).expect("a call"));
    let to = |destination: Value| json!({"type": "transfer", "destination": destination});
    for (message, problem) in [
        (json!({}), "type must be one of the following values: say, add-message, control, end-call, transfer, handoff"),
        (json!({"type": "sing"}), "type must be one of the following values"),
        (json!({"type": "say", "text": "x"}), "property text should not exist"),
        (json!({"type": "add-message"}), "message must be an object"),
        (json!({"type": "add-message", "message": {"role": "boss", "content": "x"}}), "message.role must be one of"),
        (json!({"type": "add-message", "message": {"role": "system"}}), "message.content must be a string"),
        (
            json!({"type": "add-message", "message": {"role": "system", "content": "x"}, "triggerResponseEnabled": "false"}),
            "triggerResponseEnabled must be a boolean value",
        ),
        (json!({"type": "control", "control": "hang-up"}), "control must be one of"),
        (json!({"type": "transfer"}), "destination must be an object"),
        (
            to(json!({"type": "fax", "number": "+15550100003"})),
            "destination.type must be one of the following values: number, sip",
        ),
        (to(json!({"type": "assistant", "assistantName": "x"})), "destination.type must be one of"),
        (to(json!({"type": "number"})), "destination.number must be a string"),
        (to(json!({"type": "number", "number": "5550100003"})), "destination.number must be a valid phone number"),
        (
            to(json!({"type": "number", "number": "+15550100003", "label": "x"})),
            "destination.property label should not exist",
        ),
        (to(json!({"type": "sip"})), "destination.sipUri must be a string"),
        (
            to(json!({"type": "sip", "sipUri": "sip:x", "transferPlan": {"mode": "warm", "message": "x"}})),
            "destination.transferPlan.mode must be one of",
        ),
        (
            json!({"type": "handoff", "destination": {"type": "number", "number": "+15550100003"}}),
            "destination.type must be",
        ),
        (json!({"type": "handoff", "destination": {"type": "assistant"}}), "must have one of assistantId"),
        (
            json!({"type": "handoff", "destination": {"type": "assistant", "assistantId": UNKNOWN}}),
            "Couldn't Get Assistant.",
        ),
        (
            json!({"type": "handoff", "destination": {"type": "assistant", "assistantId": ASSISTANT, "contextEngineeringPlan": {"type": "some"}}}),
            "destination.contextEngineeringPlan.type must be one of",
        ),
    ] {
        let (status, body) = post(&vapi, &call, &message).await;
        assert_eq!((status, &body["error"]), (400, &json!("Bad Request")), "{message}");
        assert!(body["message"].to_string().contains(problem), "{message}: {body}");
    }
    let unchecked = to(json!({"type": "number", "number": "1234", "numberE164CheckEnabled": false}));
    assert_eq!(vapi.heard(&call), [json!(null); 0]);
    assert_eq!(post(&vapi, &call, &unchecked).await.0, 200);
    assert_eq!(vapi.call(&call).expect("the call")["status"], "forwarding");
}

#[tokio::test]
async fn a_call_rings_until_its_media_is_connected_and_is_deaf_after_its_end() {
    let vapi = start();
    let call = id(&vapi.begin_call(&incoming(Media::Later)).expect("a call"));
    let say = json!({"type": "say", "content": "Hello"});
    assert_eq!(get(&vapi, &call).await.1["status"], "ringing");
    assert_eq!(post(&vapi, &call, &say).await.0, 404);
    let course =
        |status: &str| client().put(format!("{}/simulate/call/{call}", vapi.url)).json(&json!({ "status": status }));
    assert_eq!(json(course("connected")).await.1["call"]["status"], "in-progress");
    assert_eq!(post(&vapi, &call, &say).await.0, 200);
    assert_eq!(json(course("ended")).await.1["call"]["status"], "ended");
    let (_, ended) = get(&vapi, &call).await;
    assert!(ended["startedAt"].is_string() && ended["endedAt"].is_string(), "{ended}");
    assert_eq!(post(&vapi, &call, &say).await.0, 404);
    assert_eq!(vapi.heard(&call), [say]);
    assert_eq!(json(course("paused")).await.0, 400);
    assert!(!vapi.connect_media(UNKNOWN) && !vapi.end_call(UNKNOWN));

    // The media connects by itself at once.
    let soon = id(&vapi.begin_call(&incoming(Media::AfterMs(0))).expect("a call"));
    assert_eq!(get(&vapi, &soon).await.1["status"], "in-progress");
    let late = id(&vapi.begin_call(&incoming(Media::AfterMs(u32::MAX))).expect("a call"));
    assert_eq!(get(&vapi, &late).await.1["status"], "ringing");
}

#[tokio::test]
async fn calls_are_read_with_the_key_and_controlled_without() {
    let vapi = start();
    let body =
        json!({"assistant_id": ASSISTANT, "customer_number": "+1", "phone_number": "+2", "media": {"after_ms": 0}});
    let simulate = |body: &Value| client().post(format!("{}/simulate/call", vapi.url)).json(body);
    let (status, call) = json(simulate(&body)).await;
    assert_eq!((status, &call["assistantId"], &call["type"]), (201, &json!(ASSISTANT), &json!("inboundPhoneCall")));
    assert_eq!(get(&vapi, &id(&call)).await, (200, vapi.call(&id(&call)).expect("the call")));
    let url = format!("{}/call/{}", vapi.url, id(&call));
    assert_eq!(json(client().get(&url)).await.0, 401);
    assert_eq!(json(client().post(&url).bearer_auth("vapi-private-key")).await.0, 404);
    assert_eq!(get(&vapi, UNKNOWN).await.0, 404);
    assert_eq!(get(&vapi, "no-uuid").await.0, 400);
    assert_eq!(json(client().get(format!("{}/{}/control", vapi.url, id(&call)))).await.0, 404);
    assert_eq!(post(&vapi, UNKNOWN, &examples()[0]).await.0, 404);

    for (wrong, status) in
        [(json!({}), 400), (json!({"assistant_id": UNKNOWN, "customer_number": "+1", "phone_number": "+2"}), 404)]
    {
        assert_eq!(json(simulate(&wrong)).await.0, status, "{wrong}");
    }
    vapi.inject(Fault::status(500).on("POST", "/control"));
    assert_eq!(post(&vapi, &id(&call), &examples()[0]).await.0, 500);
    assert!(vapi.heard(&id(&call)).is_empty());
    let paths: Vec<String> = vapi.requests().into_iter().map(|request| request.path).collect();
    assert!(paths.iter().all(|path| !path.starts_with("/simulate")), "{paths:?}");
}

#[tokio::test]
async fn a_tool_is_called_in_a_call_that_there_is() {
    let vapi = start();
    let path = format!("{}/assistant/{ASSISTANT}", vapi.url);
    let mut model = vapi.assistant(ASSISTANT).expect("the assistant")["model"].clone();
    model["tools"] = json!([{"type": "function", "function": {"name": "f"}, "server": {"url": "http://127.0.0.1:1/"}}]);
    let patch = client().patch(&path).bearer_auth("vapi-private-key").json(&json!({ "model": model }));
    assert_eq!(json(patch).await.0, 200);
    let begun = vapi.begin_call(&incoming(Media::Connected)).expect("a call");
    let wish = ToolCall {
        assistant_id: ASSISTANT.to_owned(),
        tool_name: "f".to_owned(),
        customer_number: "+15550100001".to_owned(),
        phone_number: "+15550100002".to_owned(),
        call_id: Some(id(&begun)),
        ..ToolCall::default()
    };
    let message = vapi.outgoing(&wish).expect("a request").body.expect("a body");
    assert_eq!(message["message"]["call"], vapi.call(&id(&begun)).expect("the call"));
    // A tool call without a phone call begins one.
    let other = vapi.outgoing(&ToolCall { call_id: None, ..wish }).expect("a request");
    let call = vapi.call(&other.call_id).expect("the call");
    assert_eq!(call["status"], "in-progress");
    assert_eq!(other.body.expect("a body")["message"]["call"], call);

    let nobody = PhoneCall { assistant_id: Some(UNKNOWN.to_owned()), ..incoming(Media::Connected) };
    assert_eq!(vapi.begin_call(&nobody), Err(CallError::UnknownAssistant(UNKNOWN.to_owned())));
    let own = PhoneCall { assistant_id: None, ..incoming(Media::Connected) };
    assert_eq!(vapi.begin_call(&own).expect("a call")["assistantId"], Value::Null);
}

#[tokio::test]
async fn an_assistant_without_control_has_calls_without_it() {
    let vapi = start();
    let patch = client().patch(format!("{}/assistant/{ASSISTANT}", vapi.url)).bearer_auth("vapi-private-key");
    assert_eq!(json(patch.json(&json!({"monitorPlan": {"controlEnabled": false}}))).await.0, 200);
    let call = vapi.begin_call(&incoming(Media::Connected)).expect("a call");
    assert!(call["monitor"].get("controlUrl").is_none() && call["monitor"]["listenUrl"].is_string());
    assert_eq!(post(&vapi, &id(&call), &examples()[0]).await.0, 404);
}
