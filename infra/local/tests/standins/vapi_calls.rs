//! VAPI's stand-in in a phone call: requests to a tool's URL, and answers for the model.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test says what is missing and stops"
)]

use axum::http::StatusCode;
use local::standins::{
    Fault, Recorded, Standin,
    llm::{self, Llm},
    vapi::{self, CallError, ToolCall, Vapi},
};
use serde_json::{Map, Value, json};

use crate::client::{anywhere, client, json};

const ASSISTANT: &str = "33333333-3333-4333-8333-333333333333";
const CREDENTIAL: &str = "66666666-6666-4666-8666-666666666666";

/// VAPI with a backend that records requests and answers as told: another stand-in.
struct Stage {
    vapi: Standin<Vapi>,
    backend: Standin<Llm>,
}

impl Stage {
    fn new() -> Self {
        let options = vapi::Options::default().with_assistant(ASSISTANT).with_credential(
            CREDENTIAL,
            "Authorization",
            "Bearer hook",
        );
        let vapi = vapi::start(anywhere(), options).expect("a free port");
        Self { vapi, backend: llm::start(anywhere(), llm::Options::default()).expect("a free port") }
    }

    async fn attach(&self, tool: &Value) -> String {
        let authorized = |request: reqwest::RequestBuilder| request.bearer_auth("vapi-private-key");
        let (status, created) = json(authorized(client().post(format!("{}/tool", self.vapi.url))).json(tool)).await;
        assert_eq!(status, 201, "{created}");
        let id = created["id"].as_str().expect("an id").to_owned();
        let mut model = self.vapi.assistant(ASSISTANT).expect("the assistant")["model"].clone();
        model["toolIds"].as_array_mut().expect("a list").push(json!(id));
        let patch = authorized(client().patch(format!("{}/assistant/{ASSISTANT}", self.vapi.url)));
        assert_eq!(json(patch.json(&json!({ "model": model }))).await.0, 200);
        id
    }

    fn api_request(&self) -> Value {
        json!({
            "type": "apiRequest",
            "name": "book_slot",
            "method": "POST",
            "url": format!("{}/api/tools/7/execute", self.backend.url.replace("127.0.0.1", "api.localhost")),
            "body": { "type": "object", "properties": { "name": { "type": "string" } } },
            "parameters": [
                {
                    "key": "metadata",
                    "value": {
                        "callerPhoneNumber": "{{ customer.number }}",
                        "calledPhoneNumber": "{{ phoneNumber.number }}",
                        "callId": "{{call.id}}",
                        "token": "secret",
                        "more": ["{{ assistant.name }}", "{{ customer.name }}", 7],
                    },
                },
                { "key": "tier", "value": "gold" },
            ],
        })
    }

    fn function(&self) -> Value {
        json!({
            "type": "function",
            "function": { "name": "look_up", "parameters": { "type": "object", "properties": { "q": { "type": "string" } } } },
            "parameters": [{ "key": "tool_id", "value": "tool_01" }],
            "server": { "url": format!("{}/webhook", self.backend.url), "headers": { "X-Tool": "tool_01" } },
        })
    }

    async fn simulate(&self, tool: &str, arguments: Value) -> (u16, Value) {
        let body = json!({
            "assistant_id": ASSISTANT,
            "tool_name": tool,
            "arguments": arguments,
            "customer_number": "+15550100001",
            "phone_number": "+15550100002",
        });
        json(client().post(format!("{}/simulate/tool-call", self.vapi.url)).json(&body)).await
    }

    fn received(&self) -> Recorded {
        self.backend.requests().pop().expect("a request")
    }
}

#[tokio::test]
async fn an_api_request_carries_raw_arguments_and_static_values_over_them() {
    let stage = Stage::new();
    stage.attach(&stage.api_request()).await;
    stage.backend.inject(Fault::body(json!({ "success": true, "result": "Booked." })));
    let (status, told) = stage.simulate("book_slot", json!({ "name": "Ana", "tier": "free" })).await;
    assert_eq!(status, 200);
    let call_id = told["call_id"].as_str().expect("a call id");
    assert_eq!(call_id.parse::<uuid::Uuid>().expect("a UUID").get_version_num(), 7);

    let received = stage.received();
    let expected = json!({
        "name": "Ana",
        "tier": "gold",
        "metadata": {
            "callerPhoneNumber": "+15550100001",
            "calledPhoneNumber": "+15550100002",
            "callId": call_id,
            "token": "secret",
            "more": ["Front desk", "", 7],
        },
    });
    assert_eq!(received.body, expected);
    assert_eq!((received.method.as_str(), received.path.as_str()), ("POST", "/api/tools/7/execute"));
    assert_eq!(received.headers.get("content-type").map(String::as_str), Some("application/json"));
    assert_eq!(received.headers.get("x-call-id"), None);
    assert_eq!(told["request"]["body"], expected);
    assert_eq!(told["response"], json!({ "status": 200, "body": { "success": true, "result": "Booked." } }));
    assert_eq!((&told["failure"], &told["attempts"]), (&Value::Null, &json!(1)));
    let content: Value = serde_json::from_str(told["content_for_model"].as_str().expect("text")).expect("JSON");
    assert_eq!(content, told["response"]["body"]);
}

#[tokio::test]
async fn url_and_headers_are_liquid_and_get_has_no_body() {
    let stage = Stage::new();
    let tool = json!({
        "type": "apiRequest",
        "name": "order_status",
        "method": "GET",
        "url": format!("{}/orders/{{{{orderNumber}}}}?from={{{{ customer.number | url_encode }}}}", stage.backend.url),
        "headers": {
            "type": "object",
            "properties": { "X-Caller": { "type": "string", "value": "{{ customer.number }}" } },
        },
        "credentialId": CREDENTIAL,
    });
    stage.attach(&tool).await;
    stage.simulate("order_status", json!({ "orderNumber": "42", "customer": { "number": "forged" } })).await;
    let received = stage.received();
    assert_eq!((received.method.as_str(), received.path.as_str(), &received.body), ("GET", "/orders/42", &Value::Null));
    assert_eq!(received.query, [("from".to_owned(), "+15550100001".to_owned())]);
    assert_eq!(received.headers.get("x-caller").map(String::as_str), Some("+15550100001"));
    assert_eq!(received.headers.get("authorization").map(String::as_str), Some("Bearer hook"));
}

#[tokio::test]
async fn a_response_that_is_no_success_or_no_json_fails() {
    let stage = Stage::new();
    stage.attach(&stage.api_request()).await;
    for (fault, status) in [
        (Fault::status(500), json!(500)),
        (Fault::status(404).with_body(json!({ "error": "nobody reads this" })), json!(404)),
        (Fault::body(json!("<html>")), json!(200)),
        (Fault::drop_after(), Value::Null),
    ] {
        stage.backend.inject(fault);
        let (_, told) = stage.simulate("book_slot", json!({})).await;
        assert_eq!((&told["response"]["status"], &told["content_for_model"]), (&status, &Value::Null), "{told}");
        assert!(told["failure"].is_string());
    }
    assert_eq!(stage.backend.requests().len(), 4, "no backoffPlan, no retry");
}

#[tokio::test]
async fn the_tools_own_time_limit_counts() {
    let stage = Stage::new();
    let mut tool = stage.api_request();
    tool["timeoutSeconds"] = json!(1);
    stage.attach(&tool).await;
    stage.backend.inject(Fault::delay(60_000));
    let (_, told) = stage.simulate("book_slot", json!({})).await;
    assert_eq!((&told["failure"], &told["response"]), (&json!("no response within 1 s"), &Value::Null));
}

#[tokio::test]
async fn a_backoff_plan_retries_every_status_it_does_not_exclude() {
    let stage = Stage::new();
    let mut tool = stage.api_request();
    tool["backoffPlan"] =
        json!({ "type": "fixed", "maxRetries": 2, "baseDelaySeconds": 0, "excludedStatusCodes": [400] });
    stage.attach(&tool).await;
    for (status, attempts) in [(503, 3), (400, 1)] {
        stage.backend.clear_requests();
        stage.backend.inject(Fault::status(status).times(9));
        let (_, told) = stage.simulate("book_slot", json!({})).await;
        assert_eq!((&told["attempts"], stage.backend.requests().len()), (&json!(attempts), attempts), "{status}");
        stage.backend.clear_faults();
    }
}

#[tokio::test]
async fn a_function_tool_gets_the_whole_message() {
    let stage = Stage::new();
    stage.attach(&stage.function()).await;
    stage.simulate("look_up", json!({ "q": "Ana" })).await;
    let received = stage.received();
    let text = include_str!("../../../../tests/fixtures/vapi/webhook_tool_calls.json");
    let documented: Value = serde_json::from_str(text).expect("JSON");
    same_shape("message", &documented["message"], &received.body["message"]);
    let message = &received.body["message"];
    let call = &message["toolCallList"][0];
    assert_eq!(call["function"], json!({ "name": "look_up", "arguments": { "q": "Ana", "tool_id": "tool_01" } }));
    assert_eq!((&message["toolCalls"][0], &message["toolWithToolCallList"][0]["toolCall"]), (call, call));
    assert_eq!(message["toolWithToolCallList"][0]["type"], "function");
    let history = message["artifact"]["messages"].as_array().expect("a list");
    let last = &history.last().expect("a message")["toolCalls"][0]["function"]["arguments"];
    assert_eq!(last, "{\"q\":\"Ana\"}", "as text, without static parameters");
    assert_eq!(message["customer"]["number"], "+15550100001");
    assert_eq!(message["phoneNumber"]["number"], "+15550100002");
    assert_eq!(received.headers.get("x-call-id").map(String::as_str), message["call"]["id"].as_str());
    assert_eq!(received.headers.get("x-tool").map(String::as_str), Some("tool_01"));
}

/// Checks that every key of the documented message is present with a value of the same type. The contents of the
/// example's tool, assistant and history may differ.
fn same_shape(path: &str, documented: &Value, received: &Value) {
    let theirs = ["message.assistant", "message.artifact.messages", "message.toolWithToolCallList"];
    let known_only_there = ["twilioAccountSid", "assistantId"];
    assert_eq!(std::mem::discriminant(documented), std::mem::discriminant(received), "{path}: {received}");
    if theirs.contains(&path) || path.ends_with(".arguments") {
        return;
    }
    match (documented, received) {
        (Value::Object(documented), Value::Object(received)) => {
            for (name, value) in documented {
                if path == "message.phoneNumber" && known_only_there.contains(&name.as_str()) {
                    continue;
                }
                let path = format!("{path}.{name}");
                same_shape(&path, value, received.get(name).unwrap_or_else(|| panic!("{path} is missing")));
            }
        }
        (Value::Array(documented), Value::Array(received)) => {
            if let (Some(documented), Some(received)) = (documented.first(), received.first()) {
                same_shape(path, documented, received);
            }
        }
        _ => {}
    }
}

#[tokio::test]
async fn a_function_result_counts_if_it_is_one_line_for_this_call() {
    let stage = Stage::new();
    stage.attach(&stage.function()).await;
    // Only the request holds the tool call's id, so this backend reads it and answers with a result for it.
    let listener = tokio::net::TcpListener::bind(anywhere()).await.expect("a free port");
    let url = format!("http://{}/echo", listener.local_addr().expect("an address"));
    let results = |body: axum::Json<Value>| async move {
        let call = &body["message"]["toolCallList"][0];
        let asked = &call["function"]["arguments"];
        let status = if asked["created"] == true { StatusCode::CREATED } else { StatusCode::OK };
        (status, axum::Json(json!({ "results": [{ "toolCallId": call["id"], "result": asked["say"] }] })))
    };
    let router = axum::Router::new().route("/echo", axum::routing::post(results));
    let server = tokio::spawn(async move { axum::serve(listener, router).await });
    let mut tool = stage.function();
    tool["function"]["name"] = json!("echo");
    tool["server"] = json!({ "url": url });
    stage.attach(&tool).await;
    for (arguments, content) in [
        (json!({ "say": "It is sunny." }), json!("It is sunny.")),
        (json!({ "say": "It is sunny.", "created": true }), Value::Null),
        (json!({ "say": "two\nlines" }), Value::Null),
        (json!({ "say": { "an": "object" } }), Value::Null),
    ] {
        let (_, told) = stage.simulate("echo", arguments).await;
        assert_eq!(told["content_for_model"], content, "{told}");
        assert_eq!(told["failure"].is_null(), !content.is_null());
    }
    server.abort();

    for fault in [
        Fault::body(json!({ "results": [{ "toolCallId": "call_other", "result": "x" }] })),
        Fault::body(json!({ "result": "x" })),
    ] {
        stage.backend.inject(fault);
        let (_, told) = stage.simulate("look_up", json!({})).await;
        assert_eq!(told["content_for_model"], Value::Null);
        assert!(told["failure"].as_str().expect("text").starts_with("No result returned"), "{told}");
    }
}

#[tokio::test]
async fn a_call_that_cannot_be_made_says_why() {
    let stage = Stage::new();
    let (status, told) = stage.simulate("book_slot", json!({})).await;
    assert_eq!(status, 404);
    assert_eq!(told["error"], format!("no tool named book_slot is attached to assistant {ASSISTANT}"));

    stage.attach(&json!({ "type": "transferCall", "function": { "name": "transfer" } })).await;
    assert_eq!(stage.simulate("transfer", json!({})).await.0, 400);
    let mut tool = stage.api_request();
    tool["url"] = json!("https://x/{{ now | date: '%Y' }}");
    stage.attach(&tool).await;
    let (status, told) = stage.simulate("book_slot", json!({})).await;
    assert_eq!((status, &told["error"]), (400, &json!("this stand-in does not know the Liquid filter `date`")));

    let url = format!("{}/simulate/tool-call", stage.vapi.url);
    for wrong in [json!({}), json!({ "assistant_id": ASSISTANT, "tool": "book_slot" })] {
        assert_eq!(json(client().post(&url).json(&wrong)).await.0, 400, "{wrong}");
    }
    assert_eq!(stage.backend.requests(), []);
    assert!(stage.vapi.requests().iter().all(|request| !request.path.starts_with("/simulate")));
}

#[tokio::test]
async fn a_deleted_tool_breaks_the_calls_of_its_assistant() {
    let stage = Stage::new();
    stage.attach(&stage.api_request()).await;
    let other = stage.attach(&stage.function()).await;
    let delete = client().delete(format!("{}/tool/{other}", stage.vapi.url)).bearer_auth("vapi-private-key");
    assert_eq!(json(delete).await.0, 200);
    let (status, told) = stage.simulate("book_slot", json!({})).await;
    assert_eq!((status, &told["error"]), (400, &json!(format!("Couldn't Get Tool. `toolId` {other} Does Not Exist."))));
}

#[tokio::test]
async fn a_request_can_be_had_without_sending_it() {
    let stage = Stage::new();
    stage.attach(&stage.api_request()).await;
    let call = ToolCall {
        assistant_id: ASSISTANT.to_owned(),
        tool_name: "book_slot".to_owned(),
        arguments: Map::from_iter([("name".to_owned(), json!("Ana"))]),
        customer_number: "+15550100001".to_owned(),
        phone_number: "+15550100002".to_owned(),
        call_id: Some("55555555-5555-4555-8555-555555555555".to_owned()),
        ..ToolCall::default()
    };
    let outgoing = stage.vapi.outgoing(&call).expect("a request");
    let body = outgoing.body.expect("a body");
    assert_eq!(body["metadata"]["callId"], "55555555-5555-4555-8555-555555555555");
    assert_eq!((outgoing.method.as_str(), outgoing.timeout_seconds), ("POST", 20.0));
    assert_eq!(stage.backend.requests(), []);
    let nobody = ToolCall { assistant_id: "none".to_owned(), ..call };
    assert_eq!(stage.vapi.outgoing(&nobody).err(), Some(CallError::UnknownAssistant("none".to_owned())));
}

#[tokio::test]
async fn the_caller_hears_the_tools_messages_in_time() {
    let stage = Stage::new();
    let mut tool = stage.api_request();
    tool["messages"] = json!([
        { "type": "request-start", "content": "Booking for {{ name }}." },
        { "type": "request-response-delayed", "content": "Still booking.", "timingMilliseconds": 1_500 },
        { "type": "request-response-delayed", "content": "", "timingMilliseconds": 2_000 },
        { "type": "request-failed", "content": "It failed." },
    ]);
    stage.attach(&tool).await;
    let mut silent = stage.function();
    silent["messages"] = json!([{ "type": "request-start", "content": "" }]);
    silent["function"]["name"] = json!("silent");
    for tool in [stage.function(), silent] {
        stage.attach(&tool).await;
    }
    let start = ("request-start", "Booking for Ana.");
    let (delayed, failed) = (("request-response-delayed", "Still booking."), ("request-failed", "It failed."));
    for (tool, fault, heard) in [
        ("book_slot", Fault::body(json!({})), vec![start]),
        ("book_slot", Fault { delay_ms: 3_000, ..Fault::body(json!({})) }, vec![start, delayed]),
        ("book_slot", Fault { delay_ms: 3_000, ..Fault::status(503) }, vec![start, delayed, failed]),
        ("book_slot", Fault::drop_before(), vec![start, failed]),
        ("look_up", Fault::status(503), vec![("request-start", "Hold on a sec.")]),
        ("silent", Fault::status(503), vec![]),
    ] {
        stage.backend.inject(fault);
        let (_, told) = stage.simulate(tool, json!({ "name": "Ana" })).await;
        let spoken = told["spoken"].as_array().expect("a list");
        let text = |said: &Value, name: &str| said[name].as_str().expect("text").to_owned();
        let said: Vec<_> = spoken.iter().map(|said| (text(said, "message"), text(said, "text"))).collect();
        let heard: Vec<_> = heard.into_iter().map(|(message, text)| (message.to_owned(), text.to_owned())).collect();
        assert_eq!(said, heard, "{told}");
        let after = spoken.iter().find(|said| said["message"] == "request-response-delayed");
        assert!(after.is_none_or(|said| said["after_ms"].as_u64().expect("a number") >= 1_500), "{told}");
    }
}
