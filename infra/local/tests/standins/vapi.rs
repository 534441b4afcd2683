//! VAPI's stand-in: tools and assistants over its REST API, against VAPI's own examples and error bodies.
#![expect(clippy::expect_used, clippy::indexing_slicing, reason = "a test says what is missing and stops")]

use local::standins::{
    Fault, Standin,
    vapi::{self, Vapi},
};
use serde_json::{Value, json};

use crate::client::{anywhere, client, json};

const ASSISTANT: &str = "33333333-3333-4333-8333-333333333333";

macro_rules! fixture {
    ($name:literal) => {{
        let text = include_str!(concat!("../../../../tests/fixtures/vapi/", $name));
        serde_json::from_str::<Value>(text).expect("JSON")
    }};
}

fn vapi() -> Standin<Vapi> {
    vapi::start(anywhere(), vapi::Options::default().with_assistant(ASSISTANT)).expect("a free port")
}

async fn call(vapi: &Standin<Vapi>, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
    let method = method.parse().expect("a method");
    let request = client().request(method, format!("{}{path}", vapi.url)).bearer_auth("vapi-private-key");
    json(if let Some(body) = body { request.json(body) } else { request }).await
}

async fn create(vapi: &Standin<Vapi>, tool: &Value) -> String {
    let (status, body) = call(vapi, "POST", "/tool", Some(tool)).await;
    assert_eq!(status, 201, "{body}");
    body["id"].as_str().expect("an id").to_owned()
}

fn minimal() -> Value {
    json!({ "type": "apiRequest", "method": "POST", "url": "https://backend.example.com/x", "name": "book_slot" })
}

#[tokio::test]
async fn a_created_tool_is_answered_as_vapi_answers_it() {
    let vapi = vapi();
    let (status, tool) = call(&vapi, "POST", "/tool", Some(&fixture!("tool_apirequest_create.json"))).await;
    assert_eq!(status, 201);
    let mut expected = fixture!("tool_apirequest_response.json");
    for own in ["id", "createdAt", "updatedAt"] {
        expected[own] = tool[own].clone();
    }
    assert_eq!(tool, expected);
    let id = tool["id"].as_str().expect("an id");
    assert_eq!(call(&vapi, "GET", &format!("/tool/{id}"), None).await, (200, tool.clone()));
    assert_eq!(vapi.tool(id), Some(tool.clone()));
    assert_eq!(call(&vapi, "DELETE", &format!("/tool/{id}"), None).await, (200, tool.clone()));
    assert_eq!(call(&vapi, "GET", &format!("/tool/{id}"), None).await.0, 404);
    assert_eq!(call(&vapi, "DELETE", &format!("/tool/{id}"), None).await.0, 404);
    assert_eq!(call(&vapi, "PATCH", &format!("/tool/{id}"), Some(&json!({}))).await.0, 404);
}

#[tokio::test]
async fn every_type_of_tool_is_known() {
    let vapi = vapi();
    for tool in [
        minimal(),
        fixture!("tool_function_create.json"),
        fixture!("tool_query_create.json"),
        fixture!("tool_sms_create.json"),
        fixture!("tool_transfercall_create.json"),
    ] {
        create(&vapi, &tool).await;
    }
    assert_eq!(vapi.tools().len(), 5);
    let (_, body) = call(&vapi, "POST", "/tool", Some(&json!({ "type": "webhook" }))).await;
    let expected = "type must be one of the following values: apiRequest, function, transferCall, query, sms";
    assert_eq!(body["message"], json!([expected]));
}

#[tokio::test]
async fn only_the_right_key_opens() {
    let vapi = vapi();
    let url = format!("{}/tool", vapi.url);
    let expected = fixture!("errors.json")["401"].clone();
    for request in [client().get(&url), client().get(&url).bearer_auth("wrong"), client().post(&url).json(&minimal())] {
        assert_eq!(json(request).await, (401, expected.clone()));
    }
    assert_eq!(vapi.tools(), Vec::<Value>::new());
}

#[tokio::test]
async fn each_wrong_field_of_a_tool_is_named() {
    let vapi = vapi();
    let long = "a".repeat(41);
    for (path, value, message) in [
        ("/tools", json!([]), "property tools should not exist"),
        ("/name", json!("has space"), "name must match /^[a-zA-Z0-9_-]{1,40}$/ regular expression"),
        ("/name", json!(long), "name must be shorter than or equal to 40 characters"),
        ("/method", Value::Null, "method must be one of the following values: POST, GET, PUT, PATCH, DELETE"),
        ("/url", Value::Null, "url must be a string"),
        ("/url", json!(1), "url must be a string"),
        ("/timeoutSeconds", json!(0), "timeoutSeconds must not be less than 1"),
        ("/timeoutSeconds", json!(301), "timeoutSeconds must not be greater than 300"),
        ("/timeoutSeconds", json!("20"), "timeoutSeconds must be a number conforming to the specified constraints"),
        ("/server", json!({ "url": "https://x" }), "property server should not exist"),
        ("/parameters", json!({ "a": 1 }), "parameters must be an array"),
        ("/parameters", json!([{ "key": "a" }]), "parameters.0.value should not be null or undefined"),
        ("/parameters", json!([{ "key": 1, "value": 1 }]), "parameters.0.key must be a string"),
        (
            "/parameters",
            json!([{ "key": "a", "value": 1, "type": "x" }]),
            "parameters.0.property type should not exist",
        ),
        ("/body", json!({ "type": "object", "properties": {} }), "body.properties should not be empty"),
        ("/body", json!({ "type": "object" }), "body.properties should not be empty"),
        (
            "/body",
            json!({ "type": "object", "properties": { "a": { "type": "string", "default": "x" } } }),
            "body.properties.a.property default should not exist",
        ),
        (
            "/body",
            json!({ "type": "object", "properties": { "a": { "type": "string", "value": "x" } } }),
            "body.properties.a.property value should not exist",
        ),
        (
            "/body",
            json!({ "type": "object", "properties": { "a": { "type": "array", "items": { "type": "text" } } } }),
            "body.properties.a.items.type must be one of the following values: string, number, integer, boolean, array, object",
        ),
        (
            "/body",
            json!({ "type": "object", "properties": { "a": { "type": "string", "enum": [1] } } }),
            "body.properties.a.each value in enum must be a string",
        ),
        (
            "/body",
            json!({ "type": "object", "properties": { "a": { "type": "string", "format": "phone" } } }),
            "body.properties.a.format must be one of the following values: date-time, time, date, duration, email, hostname, ipv4, ipv6, uuid",
        ),
        (
            "/body",
            json!({ "type": "object", "additionalProperties": false, "properties": { "a": { "type": "string" } } }),
            "body.property additionalProperties should not exist",
        ),
        ("/headers", json!({ "x-api-key": "secret" }), "headers.property x-api-key should not exist"),
        (
            "/backoffPlan",
            json!({ "type": "fixed", "maxRetries": 11, "baseDelaySeconds": 1 }),
            "backoffPlan.maxRetries must not be greater than 10",
        ),
        (
            "/messages",
            json!([{ "type": "request-start", "contnet": "x" }]),
            "messages.0.property contnet should not exist",
        ),
        (
            "/rejectionPlan",
            json!({ "conditions": [{ "type": "regex" }] }),
            "rejectionPlan.conditions.0.regex must be a string",
        ),
        (
            "/variableExtractionPlan",
            json!({ "aliases": [{ "key": "1x", "value": "y" }] }),
            "variableExtractionPlan.aliases.0.key must match /^[a-zA-Z][a-zA-Z0-9_]*$/ regular expression",
        ),
    ] {
        let mut tool = minimal();
        let name = path.trim_start_matches('/');
        tool[name] = value;
        let (status, body) = call(&vapi, "POST", "/tool", Some(&tool)).await;
        assert_eq!((status, &body["error"], &body["statusCode"]), (400, &json!("Bad Request"), &json!(400)), "{tool}");
        let messages = body["message"].as_array().expect("a list");
        assert!(messages.contains(&json!(message)), "{message} is not in {body}");
    }
    let two = json!({ "type": "apiRequest", "method": "FETCH", "url": "https://x", "timeoutSeconds": 0 });
    let (_, body) = call(&vapi, "POST", "/tool", Some(&two)).await;
    assert_eq!(body["message"].as_array().map(Vec::len), Some(2), "all at once: {body}");
    let (_, body) = call(&vapi, "POST", "/tool", Some(&fixture!("tool_apirequest_create_legacy_value.json"))).await;
    let expected = json!(["body.properties.caller_number.property value should not exist"]);
    assert_eq!(body["message"], expected, "headers may hold values, bodies no longer");
    assert_eq!(vapi.tools(), Vec::<Value>::new());
}

#[tokio::test]
async fn a_body_that_is_not_json_is_refused() {
    let vapi = vapi();
    let post = |text: &'static str, content_type: &'static str| {
        let request = client().post(format!("{}/tool", vapi.url)).bearer_auth("vapi-private-key");
        json(request.header("content-type", content_type).body(text))
    };
    for (text, content_type) in [("{", "application/json"), ("[]", "application/json"), ("{}", "text/plain")] {
        assert_eq!(post(text, content_type).await.0, 400, "{text}");
    }
}

#[tokio::test]
async fn a_tool_patch_replaces_fields_whole_and_bears_the_type() {
    let vapi = vapi();
    let id = create(&vapi, &fixture!("tool_apirequest_create.json")).await;
    let path = format!("/tool/{id}");
    let (status, _) = call(&vapi, "PATCH", &path, Some(&fixture!("tool_apirequest_patch.json"))).await;
    assert_eq!(status, 200);
    let without_type = json!({ "parameters": [{ "key": "only", "value": 1 }], "messages": null });
    let (status, tool) = call(&vapi, "PATCH", &path, Some(&without_type)).await;
    assert_eq!(status, 200);
    assert_eq!(
        (&tool["description"], &tool["parameters"]),
        (&json!("New text"), &json!([{ "key": "only", "value": 1 }]))
    );
    assert_eq!((&tool["method"], tool.get("messages")), (&json!("POST"), None));
    assert!(tool["updatedAt"].as_str() > tool["createdAt"].as_str());
    for (body, message) in [
        (json!({ "id": id }), "property id should not exist"),
        (json!({ "type": "function" }), "type must be one of the following values: apiRequest"),
        (
            json!({ "body": { "properties": { "a": { "type": "string" } } } }),
            "body.type must be one of the following values: string, number, integer, boolean, array, object",
        ),
    ] {
        let (status, answer) = call(&vapi, "PATCH", &path, Some(&body)).await;
        assert_eq!((status, &answer["message"]), (400, &json!([message])), "{body}");
    }
    assert_eq!(vapi.tool(&id), Some(tool), "a refused patch changes nothing");
}

#[tokio::test]
async fn undeclared_fields_vapi_bears_are_borne() {
    let vapi = vapi();
    let mut tool = minimal();
    tool["async"] = json!(true);
    tool["strict"] = json!(true);
    tool["function"] = json!({ "name": "api_request_tool" });
    tool["body"] = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
    let stored = vapi.tool(&create(&vapi, &tool).await).expect("the tool");
    assert_eq!((stored.get("async"), stored.get("strict")), (None, None));
    assert_eq!(stored["function"], json!({ "name": "api_request_tool", "parameters": tool["body"] }));
}

#[tokio::test]
async fn an_assistant_patch_must_hold_the_whole_model() {
    let vapi = vapi();
    let path = format!("/assistant/{ASSISTANT}");
    let mut partial = fixture!("assistant_patch_BAD_partial_model.json");
    partial.as_object_mut().expect("an object").remove("_note");
    let before = vapi.assistant(ASSISTANT);
    let (status, body) = call(&vapi, "PATCH", &path, Some(&partial)).await;
    let message = body["message"][0].as_str().expect("a message");
    assert_eq!(status, 400);
    assert!(message.starts_with("model.provider must be one of the following values: "), "{message}");
    for provider in ["openai", "azure-openai", "anthropic", "google", "custom-llm", "vapi"] {
        assert!(message.contains(provider), "{provider}");
    }
    assert_eq!(vapi.assistant(ASSISTANT), before);

    let (status, assistant) = call(&vapi, "PATCH", &path, Some(&fixture!("assistant_patch.json"))).await;
    assert_eq!(status, 200);
    assert_eq!(assistant["model"], fixture!("assistant_patch.json")["model"]);
    assert_eq!(assistant["firstMessage"], before.expect("the assistant")["firstMessage"], "fields not sent stay");
    let whole = json!({ "model": { "provider": "openai", "model": "gpt-4o" } });
    let (_, assistant) = call(&vapi, "PATCH", &path, Some(&whole)).await;
    assert_eq!(assistant["model"], whole["model"], "a model without toolIds drops them");
}

#[tokio::test]
async fn wrong_fields_of_an_assistant_are_named() {
    let vapi = vapi();
    let model = |field: &str, value: Value| {
        let mut model = json!({ "provider": "openai", "model": "gpt-4o" });
        model[field] = value;
        json!({ "model": model })
    };
    for (body, message) in [
        (model("toolIds", json!(["tool_01"])), "model.each value in toolIds must be a UUID"),
        (model("toolIds", json!(["22222222222242228222222222222222"])), "model.each value in toolIds must be a UUID"),
        (model("toolIds", json!("x")), "model.toolIds must be an array"),
        (model("model", json!(1)), "model.model must be a string"),
        (model("thinking", json!({})), "model.property thinking should not exist"),
        (model("temperature", json!(3)), "model.temperature must not be greater than 2"),
        (
            model("messages", json!([{ "role": "robot", "content": "x" }])),
            "model.messages.0.role must be one of the following values: assistant, function, user, system, tool",
        ),
        (json!({ "model": [] }), "model must be an object"),
        (json!({ "model": { "provider": "custom-llm", "model": "m" } }), "model.url must be a string"),
        (json!({ "name": "a".repeat(41) }), "name must be shorter than or equal to 40 characters"),
        (json!({ "id": ASSISTANT }), "property id should not exist"),
        (json!({ "toolIds": [] }), "property toolIds should not exist"),
        (json!({ "voice": { "voiceId": "Elliot" } }), "voice.provider must be a string"),
        (json!({ "server": { "secret": "x" } }), "server.property secret should not exist"),
    ] {
        for (method, path) in [("POST", "/assistant".to_owned()), ("PATCH", format!("/assistant/{ASSISTANT}"))] {
            let (status, answer) = call(&vapi, method, &path, Some(&body)).await;
            assert_eq!(status, 400, "{body}");
            let messages = answer["message"].as_array().expect("a list");
            assert!(messages.contains(&json!(message)), "{message} is not in {answer}");
        }
    }
    let whole = fixture!("assistant_get.json");
    let mut body = whole.as_object().expect("an object").clone();
    for own in ["id", "orgId", "createdAt", "updatedAt"] {
        body.remove(own);
    }
    let (status, created) = call(&vapi, "POST", "/assistant", Some(&Value::Object(body))).await;
    assert_eq!((status, &created["model"]), (201, &whole["model"]));
    let id = created["id"].as_str().expect("an id");
    assert_eq!(call(&vapi, "DELETE", &format!("/assistant/{id}"), None).await, (200, created.clone()));
    assert_eq!(vapi.assistants().len(), 1);
}

#[tokio::test]
async fn lists_are_plain_arrays_newest_first_and_page_by_time() {
    let vapi = vapi();
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.insert(0, create(&vapi, &minimal()).await);
    }
    let mut seen = Vec::new();
    let mut path = "/tool?limit=2".to_owned();
    loop {
        let (status, page) = call(&vapi, "GET", &path, None).await;
        assert_eq!(status, 200);
        let page = page.as_array().expect("a plain array");
        assert!(page.len() <= 2);
        let Some(last) = page.last() else { break };
        seen.extend(page.iter().filter_map(|tool| tool["id"].as_str().map(str::to_owned)));
        path = format!("/tool?limit=2&createdAtLt={}", last["createdAt"].as_str().expect("a time"));
    }
    assert_eq!(seen, ids);
    let oldest = vapi.tools().pop().expect("a tool");
    let at = oldest["createdAt"].as_str().expect("a time");
    for (bound, count) in [("createdAtGt", 4), ("createdAtGe", 5), ("createdAtLe", 1), ("updatedAtLt", 0)] {
        let (_, page) = call(&vapi, "GET", &format!("/tool?{bound}={at}"), None).await;
        assert_eq!(page.as_array().map(Vec::len), Some(count), "{bound}");
    }
    for query in ["limit=1001", "limit=all", "createdAtLt=yesterday", "cursor=x"] {
        assert_eq!(call(&vapi, "GET", &format!("/tool?{query}"), None).await.0, 400, "{query}");
    }
    assert_eq!(call(&vapi, "GET", "/assistant", None).await.1.as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn a_pinned_tool_cannot_be_deleted() {
    let vapi = vapi();
    let id = create(&vapi, &minimal()).await;
    let pin = |pinned: bool| {
        client().put(format!("{}/simulate/pin", vapi.url)).json(&json!({ "tool_id": id, "pinned": pinned }))
    };
    assert_eq!(json(pin(true)).await.0, 204);
    let (status, body) = call(&vapi, "DELETE", &format!("/tool/{id}"), None).await;
    assert_eq!((status, &body), (409, &fixture!("errors.json")["409_delete_tool"]));
    assert!(vapi.tool(&id).is_some());
    assert_eq!(json(pin(false)).await.0, 204);
    assert_eq!(call(&vapi, "DELETE", &format!("/tool/{id}"), None).await.0, 200);
}

#[tokio::test]
async fn unknown_routes_and_faults_have_vapis_bodies() {
    let vapi = vapi();
    assert_eq!(call(&vapi, "POST", "/nope", None).await, (404, fixture!("errors.json")["404_route_seen"].clone()));
    assert_eq!(call(&vapi, "PUT", "/tool", None).await.1["message"], "Cannot PUT /tool");
    vapi.inject(Fault::status(429));
    assert_eq!(call(&vapi, "GET", "/tool", None).await, (429, fixture!("errors.json")["429_message_seen"].clone()));
    vapi.inject(Fault::drop_after().on("POST", "/tool"));
    let lost = client().post(format!("{}/tool", vapi.url)).bearer_auth("vapi-private-key").json(&minimal());
    assert!(lost.send().await.is_err());
    assert_eq!(vapi.tools().len(), 1, "created although nobody was told");
}

#[test]
fn the_initial_state_must_be_valid() {
    let wrong = vapi::Options { assistants: vec![json!({ "toolIds": [] })], ..vapi::Options::default() };
    let error = vapi::start(anywhere(), wrong).expect_err("refused");
    assert!(error.to_string().contains("property toolIds should not exist"), "{error}");
    let tool = json!({ "id": ASSISTANT, "type": "sms" });
    let given = vapi::Options { tools: vec![tool], ..vapi::Options::default() };
    let vapi = vapi::start(anywhere(), given).expect("a free port");
    assert_eq!(vapi.tool(ASSISTANT).expect("the tool")["type"], "sms");
}
