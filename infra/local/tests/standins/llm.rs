//! The LLM's stand-in: scripts, whole and streamed.
#![expect(clippy::expect_used, reason = "a test says what is missing and stops")]

use local::standins::{
    Standin,
    llm::{self, Llm, Turn},
};
use serde_json::{Value, json};

use crate::client::{anywhere, client, json};

fn llm() -> Standin<Llm> {
    llm::start(anywhere(), llm::Options::default()).expect("a free port")
}

fn ask(llm: &Standin<Llm>, stream: bool) -> reqwest::RequestBuilder {
    let body = json!({ "model": "m", "messages": [{ "role": "user", "content": "hi" }], "stream": stream });
    client().post(format!("{}/v1/chat/completions", llm.url)).bearer_auth("llm-local-key").json(&body)
}

async fn chunks(request: reqwest::RequestBuilder) -> Vec<Value> {
    let answer = request.send().await.expect("an answer");
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    let text = answer.text().await.expect("a body");
    assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
    let data = text.split("\n\n").filter_map(|event| event.strip_prefix("data: ")).filter(|data| *data != "[DONE]");
    data.map(|data| serde_json::from_str(data).expect("JSON")).collect()
}

#[tokio::test]
async fn turns_are_played_in_order_and_then_missed() {
    let llm = llm();
    let script =
        json!([{ "content": "Hello" }, { "tool_calls": [{ "name": "send_sms", "arguments": { "to": "+1" } }] }]);
    assert_eq!(json(client().put(format!("{}/script", llm.url)).json(&script)).await.0, 204);
    let (status, body) = json(ask(&llm, false)).await;
    assert_eq!(status, 200);
    assert_eq!(body["choices"][0]["message"], json!({ "role": "assistant", "content": "Hello" }));
    assert_eq!((&body["choices"][0]["finish_reason"], &body["model"]), (&json!("stop"), &json!("m")));
    assert_eq!(json(client().get(format!("{}/script", llm.url))).await.1.as_array().map(Vec::len), Some(1));

    let (_, body) = json(ask(&llm, false)).await;
    let choice = &body["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls");
    let call = &choice["message"]["tool_calls"][0];
    assert_eq!(call["function"], json!({ "name": "send_sms", "arguments": "{\"to\":\"+1\"}" }));
    assert_eq!(call["type"], "function");

    let (status, body) = json(ask(&llm, false)).await;
    assert_eq!((status, &body["error"]["code"]), (500, &json!(500)));
    assert_eq!(llm.requests().len(), 3);
}

#[tokio::test]
async fn a_stream_puts_together_to_the_same_answer() {
    let llm = llm();
    llm.script([Turn::text("one two three"), Turn::tool("look_up", json!({ "name": "Zoë" }))]);
    let text: String = chunks(ask(&llm, true))
        .await
        .iter()
        .filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str().map(str::to_owned))
        .collect();
    assert_eq!(text, "one two three");

    let chunks = chunks(ask(&llm, true)).await;
    let fragments: Vec<_> = chunks.iter().map(|chunk| &chunk["choices"][0]["delta"]["tool_calls"][0]).collect();
    let names: Vec<_> = fragments.iter().filter_map(|call| call["function"]["name"].as_str()).collect();
    let arguments: String = fragments.iter().filter_map(|call| call["function"]["arguments"].as_str()).collect();
    assert_eq!((names, arguments.as_str()), (vec!["look_up"], "{\"name\":\"Zoë\"}"));
    assert!(fragments.iter().filter(|call| call["function"]["arguments"].as_str() > Some("")).count() > 1, "in parts");
    let finished: Vec<_> = chunks.iter().filter_map(|chunk| chunk["choices"][0]["finish_reason"].as_str()).collect();
    assert_eq!(finished, ["tool_calls"]);
    let last = chunks.last().expect("a chunk");
    assert_eq!(last["choices"], json!([]));
    assert!(last["usage"]["total_tokens"].is_u64());
}

#[tokio::test]
async fn a_stream_takes_its_time_where_the_turn_says_so() {
    let llm = llm();
    let turn = json!([{ "content": "one two three", "pause_ms": 30 }]);
    assert_eq!(json(client().put(format!("{}/script", llm.url)).json(&turn)).await.0, 204);
    let begun = std::time::Instant::now();
    let mut answer = ask(&llm, true).send().await.expect("an answer");
    let mut parts = 0;
    while let Some(part) = answer.chunk().await.expect("a part") {
        parts += usize::from(!part.is_empty());
    }
    // A comment, the role, three words, the end, the usage, [DONE].
    assert!(parts > 5, "{parts}");
    assert!(begun.elapsed() >= std::time::Duration::from_millis(7 * 30), "{:?}", begun.elapsed());
    for wrong in [json!("30"), json!(-1), json!(1.5)] {
        let turn = json!([{ "content": "one", "pause_ms": wrong }]);
        assert_eq!(json(client().put(format!("{}/script", llm.url)).json(&turn)).await.0, 400, "{turn}");
    }
}

#[tokio::test]
async fn exact_answers_and_streams_are_sent_as_they_are() {
    let fixture: Value =
        serde_json::from_str(include_str!("../../../../tests/fixtures/openrouter.json")).expect("JSON");
    let llm = llm();
    for stream in fixture["streams"].as_array().expect("a list") {
        let text = stream["body"].as_str().expect("text");
        llm.script([Turn { stream: Some(text.to_owned()), ..Turn::default() }]);
        assert_eq!(ask(&llm, true).send().await.expect("an answer").text().await.expect("a body"), text);
    }
    for case in fixture["http"].as_array().expect("a list") {
        let body = case.get("body").or_else(|| case.get("body_text")).expect("a body");
        let turn =
            json!({ "status": case["status"], "body": body, "headers": case.get("headers").unwrap_or(&json!({})) });
        assert_eq!(json(client().put(format!("{}/script", llm.url)).json(&json!([turn]))).await.0, 204);
        let answer = ask(&llm, false).send().await.expect("an answer");
        assert_eq!(json!(answer.status().as_u16()), case["status"]);
        for (name, value) in case["headers"].as_object().into_iter().flatten() {
            assert_eq!(answer.headers().get(name).and_then(|it| it.to_str().ok()), value.as_str());
        }
        let text = answer.text().await.expect("a body");
        assert_eq!(body.as_str().map_or_else(|| body.to_string(), str::to_owned), text);
    }
}

#[tokio::test]
async fn bad_requests_use_up_no_turn() {
    let llm = llm();
    llm.script([Turn::text("kept")]);
    let url = format!("{}/chat/completions", llm.url);
    let good = json!({ "model": "m", "messages": [{ "role": "user", "content": "hi" }] });
    assert_eq!(json(client().post(&url).json(&good)).await.0, 401);
    assert_eq!(json(client().post(&url).bearer_auth("wrong").json(&good)).await.0, 401);
    for wrong in [
        json!({ "messages": good["messages"] }),
        json!({ "model": "m", "messages": [] }),
        json!({ "model": "m", "messages": [{ "role": "robot", "content": "x" }] }),
        json!({ "model": "m", "messages": [{ "role": "tool", "content": "x" }] }),
        json!({ "model": "m", "messages": good["messages"], "tools": [{ "type": "function", "function": { "name": "a b" } }] }),
    ] {
        let (status, body) = json(client().post(&url).bearer_auth("llm-local-key").json(&wrong)).await;
        assert_eq!((status, &body["error"]["code"]), (400, &json!(400)), "{wrong}");
    }
    for roles in [
        &["user", "system"][..],
        &["system", "system", "user"],
        &["user", "assistant"],
        &["user", "user"],
        &["assistant", "user"],
        &["system"],
    ] {
        let messages: Vec<_> = roles.iter().map(|role| json!({ "role": role, "content": "x" })).collect();
        let wrong = json!({ "model": "m", "messages": messages });
        assert_eq!(json(client().post(&url).bearer_auth("llm-local-key").json(&wrong)).await.0, 400, "{roles:?}");
    }
    let elsewhere = client().post(format!("{}/completions", llm.url)).bearer_auth("llm-local-key").json(&good);
    assert_eq!(json(elsewhere).await.0, 404);
    assert_eq!(llm.script_left(), [Turn::text("kept")]);
    assert_eq!(json(client().put(format!("{}/script", llm.url)).json(&json!([{ "contents": "x" }]))).await.0, 400);
}

fn token(llm: &Standin<Llm>, form: &str) -> reqwest::RequestBuilder {
    let form_type = ("content-type", "application/x-www-form-urlencoded");
    client().post(format!("{}/oauth/token", llm.url)).header(form_type.0, form_type.1).body(form.to_owned())
}

#[tokio::test]
async fn tokens_are_given_for_the_right_client_and_end() {
    let options = llm::Options { scope: Some("chat".to_owned()), ..llm::Options::default() };
    let llm = llm::start(anywhere(), options).expect("a free port");
    let good = "grant_type=client_credentials&scope=chat";
    let in_body = format!("{good}&client_id=llm-client&client_secret=llm-client-secret");
    let basic = |form: &str, secret: &str| token(&llm, form).basic_auth("llm-client", Some(secret));
    for (request, status, error) in [
        (token(&llm, good), 401, "invalid_client"),
        (basic(good, "wrong"), 401, "invalid_client"),
        (basic("grant_type=password&scope=chat", "llm-client-secret"), 400, "unsupported_grant_type"),
        (basic("scope=chat", "llm-client-secret"), 400, "invalid_request"),
        (basic("grant_type=client_credentials", "llm-client-secret"), 400, "invalid_scope"),
        (basic(&format!("{good}&scope=chat"), "llm-client-secret"), 400, "invalid_request"),
        (basic(&format!("{good}&color=red"), "llm-client-secret"), 400, "invalid_request"),
        (basic(&in_body, "llm-client-secret"), 400, "invalid_request"),
        (client().post(format!("{}/oauth/token", llm.url)).json(&json!({})), 400, "invalid_request"),
    ] {
        let (answered, body) = json(request).await;
        assert_eq!((answered, &body["error"]), (status, &json!(error)), "{body}");
    }
    assert_eq!(llm.tokens_granted(), 0);

    for request in [basic(good, "llm-client-secret"), token(&llm, &in_body)] {
        let (status, granted) = json(request).await;
        assert_eq!((status, &granted["token_type"], &granted["expires_in"]), (200, &json!("Bearer"), &json!(3600)));
        llm.script([Turn::text("let in")]);
        let bearer = granted["access_token"].as_str().expect("a token");
        let body = json!({ "model": "m", "messages": [{ "role": "user", "content": "hi" }] });
        let ask = || client().post(format!("{}/v1/chat/completions", llm.url)).bearer_auth(bearer).json(&body);
        assert_eq!(json(ask()).await.0, 200);
        llm.expire_tokens();
        assert_eq!(json(ask()).await.0, 401);
    }
}

#[tokio::test]
async fn an_unknown_field_of_a_completion_is_refused() {
    let llm = llm();
    llm.script([Turn { cost: Some(0.5), finish_reason: Some("length".to_owned()), ..Turn::text("kept") }]);
    let good = json!({ "model": "m", "messages": [{ "role": "user", "content": "hi" }] });
    for (field, value) in [
        ("colour", json!("red")),
        ("model", json!("")),
        ("temperature", json!(3)),
        ("temperature", json!("0")),
        ("max_tokens", json!(0)),
        ("stream", json!("yes")),
        ("stream_options", json!({ "include_usage": true })),
        ("messages", json!([{ "role": "user" }])),
        ("messages", json!([{ "role": "user", "content": 7 }])),
        ("messages", json!([{ "role": "user", "content": " " }])),
        ("messages", json!([{ "role": "user", "content": "hi", "colour": "red" }])),
    ] {
        let mut wrong = good.clone();
        wrong[field] = value;
        let url = format!("{}/chat/completions", llm.url);
        assert_eq!(json(client().post(url).bearer_auth("llm-local-key").json(&wrong)).await.0, 400, "{wrong}");
    }
    let (status, body) = json(ask(&llm, false)).await;
    assert_eq!((status, &body["choices"][0]["finish_reason"]), (200, &json!("length")));
    assert_eq!(body["usage"]["cost"], 0.5);
    assert!(llm.script_left().is_empty());
}
