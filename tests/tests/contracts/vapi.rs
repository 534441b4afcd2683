//! The VAPI client against its stand-in: requests, names of failures, and retries.
//!
//! The stand-in refuses the same requests as VAPI's validator; the bodies are also checked against VAPI's published
//! document if it is available.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

use std::time::Duration;

use futures_util::future::join_all;
use local::standins::{
    Effect, Fault, Standin,
    vapi::{self as standin, Options},
};
use serde_json::{Value, json};
use shared::{
    Deadline,
    clients::{
        Error, Vapi, http_client,
        vapi::{Account, ExternalTool, NewTool},
    },
    models::{CallStatus, Timestamp},
};
use tests::{
    clients::{LATE, ample, anywhere, class, excerpt, fixture, nowhere, short, until},
    vapi_openapi::{vapi_schema, vapi_takes},
};

const ASSISTANT: &str = "33333333-3333-4333-8333-333333333333";
const TOOL: &str = "44444444-4444-4444-8444-444444444444";
const OTHER_TOOL: &str = "55555555-5555-4555-8555-555555555555";
const CALLBACK: &str = "https://api.example.com/api/tools/0190a1b2-0000-7000-8000-000000000001/execute";

fn start() -> Standin<standin::Vapi> {
    standin::start(anywhere(), Options::default().with_assistant(ASSISTANT)).unwrap()
}

fn client(url: &str) -> Vapi {
    Vapi::new(http_client().unwrap(), url)
}

fn account() -> Account {
    serde_json::from_value(json!({"api_key": "vapi-private-key"})).unwrap()
}

/// Tool arguments with every kind of property that a `function_schema` supports.
fn arguments() -> Value {
    json!({
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "The message for {{ customer.number }}"},
            "when": {"type": "string", "format": "date-time", "description": "When"},
            "size": {"type": "string", "enum": ["small", "large"], "description": "Size"},
            "guests": {"type": "integer", "description": "How many"},
            "tags": {"type": "array", "items": {"type": "string"}, "description": "Labels"},
            "address": {"type": "object", "properties": {"street": {"type": "string"}}, "required": ["street"]},
        },
        "required": ["text"],
    })
}

fn static_parameters() -> Value {
    json!([{"key": "metadata", "value": {
        "callerPhoneNumber": "{{ customer.number }}",
        "calledPhoneNumber": "{{ phoneNumber.number }}",
        "callId": "{{ call.id }}",
        "token": "t0ken",
    }}])
}

fn messages() -> Value {
    let texts = json!([{"type": "text", "text": "One moment.", "language": "en"}]);
    json!([
        {"type": "request-start", "content": ""},
        {"type": "request-response-delayed", "contents": texts, "timingMilliseconds": 1_000},
        {"type": "request-failed", "content": "That did not work."},
    ])
}

async fn create(url: &str, deadline: Deadline) -> Result<ExternalTool, Error> {
    let body = arguments();
    let tool = NewTool {
        name: "send_confirmation",
        description: "Sends a confirmation.",
        url: CALLBACK,
        body: &body,
        parameters: static_parameters(),
        messages: messages(),
        timeout_seconds: 20,
    };
    client(url).create_tool(&account(), &tool, deadline).await
}

#[tokio::test]
async fn a_tool_is_made_with_exactly_this_request() {
    let vapi = start();
    let made = create(&vapi.url, ample()).await.unwrap();
    let sent = &vapi.requests()[0];
    assert_eq!((sent.method.as_str(), sent.path.as_str()), ("POST", "/tool"));
    assert_eq!(sent.headers["authorization"], "Bearer vapi-private-key");
    assert_eq!(sent.headers["content-type"], "application/json");
    assert_eq!(
        sent.body,
        json!({
            "type": "apiRequest", "method": "POST", "url": CALLBACK,
            "name": "send_confirmation", "description": "Sends a confirmation.",
            "body": arguments(), "parameters": static_parameters(), "messages": messages(), "timeoutSeconds": 20,
        }),
        "and no backoffPlan: VAPI must not repeat a call"
    );
    assert_eq!(vapi.tool(&made.id).unwrap(), made.object);
    vapi_takes("CreateApiRequestToolDTO", &sent.body);
}

#[tokio::test]
async fn an_answer_of_the_documented_shape_is_read() {
    let vapi = start();
    let answer = fixture("vapi/tool_apirequest_response.json");
    vapi.inject(Fault::status(201).with_body(answer.clone()));
    let made = create(&vapi.url, ample()).await.unwrap();
    assert_eq!((made.id.as_str(), &made.object), (answer["id"].as_str().unwrap(), &answer));
}

/// Every failure after which VAPI may have created the tool: one request, no retry.
#[tokio::test]
async fn a_tool_is_not_made_twice() {
    let cases: [(&str, Fault, &str, usize); 5] = [
        ("the connection breaks after the effect", Fault::drop_after(), "no answer", 1),
        ("the connection breaks before the effect", Fault::drop_before(), "no answer", 0),
        ("502 although it was made", Fault::status(502).with_effect(Effect::First), "broken 502", 1),
        ("no JSON", Fault::body(json!("<html>")), "undecodable", 0),
        ("no id", Fault::body(json!({"type": "apiRequest"})).with_effect(Effect::First), "undecodable", 1),
    ];
    for (name, fault, expected, tools) in cases {
        let vapi = start();
        vapi.inject(fault);
        let error = create(&vapi.url, ample()).await.unwrap_err();
        assert_eq!(class(&error), expected, "{name}");
        assert!(error.effect_possible(), "{name}");
        assert_eq!((vapi.requests().len(), vapi.tools().len()), (1, tools), "{name}");
    }
    let vapi = start();
    vapi.inject(Fault::delay(LATE));
    let error = create(&vapi.url, short()).await.unwrap_err();
    assert_eq!(class(&error), "no answer");
    assert!(error.effect_possible());
    until(|| vapi.tools().len() == 1).await;
    assert_eq!(vapi.requests().len(), 1);
}

#[tokio::test]
async fn a_tool_that_cannot_have_been_made_is_tried_again() {
    let vapi = start();
    vapi.inject(Fault::status(429));
    vapi.inject(Fault::status(429).with_header("Retry-After", "0"));
    create(&vapi.url, ample()).await.unwrap();
    assert_eq!((vapi.requests().len(), vapi.tools().len()), (3, 1));

    vapi.inject(Fault::status(429).with_header("Retry-After", "600"));
    let error = create(&vapi.url, ample()).await.unwrap_err();
    assert_eq!(class(&error), "rate limited for 600 s");
    assert!(!error.effect_possible());

    let error = create(&nowhere(), ample()).await.unwrap_err();
    assert_eq!(class(&error), "unreachable");
    assert!(!error.effect_possible());
}

/// NestJS sends `message` as a list or as text.
#[tokio::test]
async fn refusals_are_read_in_every_shape_and_not_repeated() {
    let errors = fixture("vapi/errors.json");
    for (name, status, text) in [
        (
            "400_array",
            400,
            "model.provider must be one of the following values: openai, azure-openai, anthropic, google, custom-llm, vapi",
        ),
        ("400_unknown_field", 400, "property tools should not exist"),
        (
            "400_string",
            400,
            "Couldn't Get Assistant. `assistantId` 33333333-3333-4333-8333-333333333333 Does Not Exist.",
        ),
        (
            "401",
            401,
            "Invalid Key. Hot tip, you may be using the private key instead of the public key, or vice versa.",
        ),
        ("404_route_seen", 404, "Cannot POST /nope"),
        ("409_delete_tool", 409, "Tool is pinned by a published assistant version"),
    ] {
        let vapi = start();
        vapi.inject(Fault::status(status).with_body(errors[name].clone()));
        let error = create(&vapi.url, ample()).await.unwrap_err();
        assert_eq!((class(&error), excerpt(&error)), (format!("rejected {status}"), text), "{name}");
        assert_eq!(error.effect_possible(), status == 409, "{name}");
        assert_eq!(vapi.requests().len(), 1, "{name}");
        assert_eq!(error.public().contains(text), status != 401, "what it says of a key is for the log: {name}");
    }
    let vapi = start();
    vapi.inject(Fault::status(429).with_body(errors["429_message_seen"].clone()).times(9));
    assert_eq!(class(&create(&vapi.url, ample()).await.unwrap_err()), "rate limited");
}

#[tokio::test]
async fn a_wrong_key_is_named_as_wrong() {
    let vapi = start();
    let wrong: Account = serde_json::from_value(json!({"api_key": "wrong"})).unwrap();
    let error = client(&vapi.url).assistant_model(&wrong, ASSISTANT, ample()).await.unwrap_err();
    assert_eq!(class(&error), "rejected 401");
    assert_eq!(error.public(), "VAPI refused our credentials; check its key");
    assert!(!format!("{error} {}", shared::error::chain(&error)).contains("wrong"));
}

#[tokio::test]
async fn a_tool_whose_answer_was_lost_is_found_by_its_callback() {
    let vapi = start();
    vapi.inject(Fault::drop_after());
    create(&vapi.url, ample()).await.unwrap_err();
    let body = arguments();
    let tool = NewTool {
        name: "another",
        description: "d",
        url: "https://api.example.com/api/tools/another/execute",
        body: &body,
        parameters: json!([]),
        messages: messages(),
        timeout_seconds: 20,
    };
    client(&vapi.url).create_tool(&account(), &tool, ample()).await.unwrap();

    vapi.inject(Fault::status(500).on("GET", "/tool"));
    let since = Some(Timestamp::now());
    let found = client(&vapi.url).tools_calling(&account(), CALLBACK, since, ample()).await.unwrap();
    let names = found.iter().map(|id| vapi.tool(id).unwrap()["name"].clone());
    assert_eq!(names.collect::<Vec<_>>(), ["send_confirmation"]);
    let last = vapi.requests().pop().unwrap();
    assert_eq!((last.method.as_str(), last.path.as_str()), ("GET", "/tool"));
}

#[tokio::test]
async fn deleting_is_repeated_until_it_is_certain() {
    let vapi = start();
    let made = create(&vapi.url, ample()).await.unwrap();
    let client = client(&vapi.url);
    vapi.inject(Fault::drop_after().on("DELETE", "/tool/"));
    client.delete_tool(&account(), &made.id, ample()).await.unwrap();
    let deletes: Vec<_> = vapi.requests().into_iter().filter(|request| request.method == "DELETE").collect();
    assert_eq!(deletes.len(), 2, "the second try found it gone, which is what was wanted");
    assert_eq!(deletes[0].path, format!("/tool/{}", made.id));
    assert!(vapi.tools().is_empty());

    let pinned = create(&vapi.url, ample()).await.unwrap();
    vapi.pin(&pinned.id);
    let error = client.delete_tool(&account(), &pinned.id, ample()).await.unwrap_err();
    assert_eq!(class(&error), "rejected 409");
    assert_eq!(excerpt(&error), "Tool is pinned by a published assistant version");
}

#[tokio::test]
async fn an_id_stays_one_segment_of_the_path() {
    let vapi = start();
    let found = client(&vapi.url).assistant_model(&account(), "../tool?x=1#", ample()).await.unwrap();
    assert!(found.is_none());
    assert_eq!(vapi.requests()[0].path, "/assistant/%2E%2E%2Ftool%3Fx%3D1%23");
}

#[tokio::test]
async fn a_change_of_tool_ids_sends_the_model_whole() {
    let vapi = start();
    let before = vapi.assistant(ASSISTANT).unwrap();
    let client = client(&vapi.url);
    let model = client.assistant_model(&account(), ASSISTANT, ample()).await.unwrap().unwrap();
    assert!(model.tool_ids().is_empty());
    let changed = model.with_tool(TOOL, None).with_tool(OTHER_TOOL, None);
    client.set_assistant_model(&account(), ASSISTANT, &changed, ample()).await.unwrap();

    let patch = vapi.requests().pop().unwrap();
    assert_eq!((patch.method.as_str(), patch.path), ("PATCH", format!("/assistant/{ASSISTANT}")));
    let mut expected = before["model"].clone();
    expected["toolIds"] = json!([TOOL, OTHER_TOOL]);
    assert_eq!(patch.body, json!({"model": expected}), "nothing but the model, and all of it");
    vapi_takes("UpdateAssistantDTO", &patch.body);

    let mut after = vapi.assistant(ASSISTANT).unwrap();
    assert_eq!(after["model"]["toolIds"], json!([TOOL, OTHER_TOOL]));
    after["model"]["toolIds"] = json!([]);
    after["updatedAt"] = before["updatedAt"].clone();
    assert_eq!(after, before, "everything else is as it was");
}

/// VAPI refuses a PATCH of `{"model": {"toolIds": […]}}`, or deletes the prompt.
#[tokio::test]
async fn the_documented_assistant_keeps_its_whole_model() {
    let vapi = start();
    let documented = fixture("vapi/assistant_get.json");
    vapi.inject(Fault::body(documented.clone()).on("GET", "/assistant/"));
    let client = client(&vapi.url);
    let model = client.assistant_model(&account(), ASSISTANT, ample()).await.unwrap().unwrap();
    let changed = model.with_tool(TOOL, None);
    let mut answer = documented.clone();
    answer["model"]["toolIds"].as_array_mut().unwrap().push(json!(TOOL));
    vapi.inject(Fault::body(answer.clone()).on("PATCH", "/assistant/"));
    client.set_assistant_model(&account(), ASSISTANT, &changed, ample()).await.unwrap();
    let patch = vapi.requests().pop().unwrap();
    assert_eq!(patch.body, json!({"model": answer["model"]}));
    vapi_takes("UpdateAssistantDTO", &patch.body);
}

#[tokio::test]
async fn a_change_that_vapi_did_not_take_over_is_a_failure() {
    let vapi = start();
    let client = client(&vapi.url);
    let model = client.assistant_model(&account(), ASSISTANT, ample()).await.unwrap().unwrap();
    let unchanged = vapi.assistant(ASSISTANT).unwrap();
    vapi.inject(Fault::body(unchanged).on("PATCH", "/assistant/"));
    let error =
        client.set_assistant_model(&account(), ASSISTANT, &model.with_tool(TOOL, None), ample()).await.unwrap_err();
    assert_eq!(class(&error), "undecodable");
    assert!(error.effect_possible());
}

#[tokio::test]
async fn reading_and_changing_an_assistant_survive_transient_failures() {
    let vapi = start();
    let client = client(&vapi.url);
    for fault in [Fault::status(500), Fault::status(429), Fault::drop_before(), Fault::drop_after()] {
        vapi.inject(fault.clone().on("GET", "/assistant/"));
        let model = client.assistant_model(&account(), ASSISTANT, ample()).await.unwrap().unwrap();
        vapi.inject(fault.on("PATCH", "/assistant/"));
        client.set_assistant_model(&account(), ASSISTANT, &model.with_tool(TOOL, None), ample()).await.unwrap();
        assert!(vapi.faults().is_empty(), "the fault was met");
        assert_eq!(vapi.assistant(ASSISTANT).unwrap()["model"]["toolIds"], json!([TOOL]));
    }
}

/// The last attempt's error is incomplete: repairing VAPI requires the first attempt's outcome too.
#[tokio::test]
async fn an_effect_of_an_earlier_try_is_not_forgotten() {
    let vapi = start();
    let client = client(&vapi.url);
    let model = client.assistant_model(&account(), ASSISTANT, ample()).await.unwrap().unwrap();
    vapi.inject(Fault::drop_after().on("PATCH", "/assistant/"));
    vapi.inject(Fault::status(429).with_header("Retry-After", "600").on("PATCH", "/assistant/"));
    let changed = model.with_tool(TOOL, None);
    let error = client.set_assistant_model(&account(), ASSISTANT, &changed, ample()).await.unwrap_err();
    assert_eq!(class(&error), "rate limited for 600 s");
    assert_eq!(vapi.assistant(ASSISTANT).unwrap()["model"]["toolIds"], json!([TOOL]));
    assert!(error.effect_possible());
}

#[tokio::test]
async fn an_assistant_that_cannot_be_read_is_not_one_that_is_gone() {
    let vapi = start();
    let gone = client(&vapi.url).assistant_model(&account(), OTHER_TOOL, ample()).await.unwrap();
    assert!(gone.is_none(), "404 is an answer");
    let cases = [
        (Fault::status(500).times(9), "broken 500"),
        (Fault::status(401), "rejected 401"),
        (Fault::status(403), "rejected 403"),
        (Fault::status(429).times(9), "rate limited"),
        (Fault::drop_before().times(9), "no answer"),
        (Fault::body(json!("not JSON")), "undecodable"),
        (Fault::body(json!({"id": ASSISTANT})), "undecodable"),
        (Fault::body(json!({"id": ASSISTANT, "model": null})), "undecodable"),
    ];
    join_all(cases.map(|(fault, expected)| async move {
        let vapi = start();
        vapi.inject(fault);
        let error = client(&vapi.url).assistant_model(&account(), ASSISTANT, ample()).await.unwrap_err();
        assert_eq!(class(&error), expected);
    }))
    .await;
    let over = Deadline::after(Duration::ZERO);
    let error = client(&vapi.url).assistant_model(&account(), ASSISTANT, over).await.unwrap_err();
    assert_eq!(class(&error), "no answer");
}

#[test]
fn the_published_document_refuses_the_same_requests_as_vapi() {
    let (Some(tool), Some(assistant)) = (vapi_schema("CreateApiRequestToolDTO"), vapi_schema("UpdateAssistantDTO"))
    else {
        println!("skipped: ../shared/vapi/openapi.json is not there");
        return;
    };
    assert!(tool.is_valid(&fixture("vapi/tool_apirequest_create.json")));
    assert!(!tool.is_valid(&fixture("vapi/tool_apirequest_create_legacy_value.json")), "value left the schema");
    let mut unknown = fixture("vapi/tool_apirequest_create.json");
    unknown["server"] = json!({"url": CALLBACK});
    assert!(!tool.is_valid(&unknown), "an apiRequest tool has no server");
    let mut named = fixture("vapi/tool_apirequest_create.json");
    named["name"] = json!("send confirmation");
    assert!(!tool.is_valid(&named), "the pattern holds although it is printed between slashes");

    assert!(assistant.is_valid(&fixture("vapi/assistant_patch.json")));
    assert!(!assistant.is_valid(&fixture("vapi/assistant_patch_BAD_partial_model.json")));
}

#[tokio::test]
async fn a_call_is_read_with_its_control_url() {
    let vapi = start();
    let begun = standin::PhoneCall {
        assistant_id: Some(ASSISTANT.to_owned()),
        customer_number: "+15550100001".to_owned(),
        phone_number: "+15550100002".to_owned(),
        media: standin::Media::Later,
        ..standin::PhoneCall::default()
    };
    let id = vapi.begin_call(&begun).unwrap()["id"].as_str().unwrap().to_owned();
    let read = async |id: &str| client(&vapi.url).call(&account(), &id.parse().unwrap(), ample()).await.unwrap();
    let call = read(&id).await.unwrap();
    assert_eq!((call.assistant_id.as_deref(), call.status), (Some(ASSISTANT), Some(CallStatus::Ringing)));
    let expected = format!("\"{}/{id}/control\"", vapi.url);
    assert_eq!(serde_json::to_string(&call.control_url().unwrap()).unwrap(), expected);
    assert!(!format!("{call:?}").contains("/control"), "{call:?}");
    vapi.connect_media(&id);
    assert_eq!(read(&id).await.unwrap().status, Some(CallStatus::InProgress));
    vapi.end_call(&id);
    assert!(read(&id).await.unwrap().status.unwrap().is_over());
    let sent = &vapi.requests()[0];
    assert_eq!(
        (sent.path.as_str(), sent.headers["authorization"].as_str()),
        (format!("/call/{id}").as_str(), "Bearer vapi-private-key")
    );

    assert!(read("019cda7d-0000-7000-8000-000000000000").await.is_none());
    assert!(read("no-uuid").await.is_none(), "VAPI answers 400");
    let documented = fixture("vapi/webhook_tool_calls.json")["message"]["call"].clone();
    for (answer, control, status) in [
        (documented, true, Some(CallStatus::InProgress)),
        (json!({"id": id, "status": "resting", "monitor": {"controlUrl": "nonsense"}}), false, Some(CallStatus::Other)),
        (json!({"id": id, "assistantId": null}), false, None),
    ] {
        vapi.inject(Fault::body(answer));
        let call = read(&id).await.unwrap();
        assert_eq!((call.control_url().is_some(), call.status), (control, status));
    }
    vapi.clear_requests();
    vapi.inject(Fault::status(500));
    read(&id).await.unwrap();
    assert_eq!(vapi.requests().len(), 2, "reading again does no harm");
    for (fault, expected) in [(Fault::status(401), "rejected 401"), (Fault::body(json!("<html>")), "undecodable")] {
        vapi.inject(fault);
        let error = client(&vapi.url).call(&account(), &id.parse().unwrap(), ample()).await.unwrap_err();
        assert_eq!(class(&error), expected);
    }
}

#[tokio::test]
async fn a_key_is_accepted_or_refused_and_another_status_is_an_error() {
    let vapi = start();
    let with = |key: &str| serde_json::from_value::<Account>(json!({"api_key": key})).unwrap();
    let asks = async |key: &str| client(&vapi.url).accepts_credentials(&with(key), short()).await;
    assert!(asks("vapi-private-key").await.unwrap());
    assert!(!asks("vapi-public-key").await.unwrap());
    let sent = &vapi.requests()[0];
    assert_eq!((sent.method.as_str(), sent.path.as_str()), ("GET", "/assistant"));
    assert_eq!(sent.query, [("limit".to_owned(), "1".to_owned())]);
    for (fault, expected) in [
        (Fault::status(403), Ok(false)),
        (Fault::status(500), Err("broken 500")),
        (Fault::status(400), Err("rejected 400")),
        (Fault::status(429).with_header("Retry-After", "600"), Err("rate limited for 600 s")),
        (Fault::body(json!({"assistants": []})), Err("undecodable")),
        (Fault::drop_before(), Err("no answer")),
        (Fault::delay(LATE), Err("no answer")),
    ] {
        vapi.inject(fault.times(20));
        let answer = asks("vapi-private-key").await;
        assert_eq!(answer.as_ref().map(|in_| *in_).map_err(class), expected.map_err(str::to_owned));
        vapi.clear_faults();
    }
}

#[tokio::test]
async fn a_tool_is_there_or_not_and_anything_else_is_no_answer() {
    let vapi = start();
    let made = create(&vapi.url, ample()).await.unwrap();
    let has = async |id: &str| client(&vapi.url).tool(&account(), id, short()).await;
    assert_eq!(has(&made.id).await.unwrap(), vapi.tool(&made.id));
    assert_eq!(has(TOOL).await.unwrap(), None);
    for (fault, expected) in [(Fault::status(401), "rejected 401"), (Fault::status(502), "broken 502")] {
        vapi.inject(fault.times(20));
        assert_eq!(class(&has(&made.id).await.unwrap_err()), expected);
        vapi.clear_faults();
    }
}

#[tokio::test]
async fn a_number_is_there_in_its_own_account_alone() {
    let options = Options::default().with_assistant(ASSISTANT).with_key("another-key", "another");
    let vapi = standin::start(anywhere(), options).unwrap();
    let id = vapi.set_number("+15005550006", ASSISTANT).unwrap();
    let client = client(&vapi.url);
    let found = client.phone_number(&account(), &id, short()).await.unwrap();
    assert_eq!(found.and_then(|found| found.number).as_deref(), Some("+15005550006"));
    assert_eq!(client.phone_number(&account(), TOOL, short()).await.unwrap(), None);
    let another: Account = serde_json::from_value(json!({"api_key": "another-key"})).unwrap();
    assert_eq!(client.phone_number(&another, &id, short()).await.unwrap(), None);
    vapi.inject(Fault::status(502).times(20));
    assert_eq!(class(&client.phone_number(&account(), &id, short()).await.unwrap_err()), "broken 502");
}
