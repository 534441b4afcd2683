//! The LLM client against its stand-in: requests, names of failures, retries, and guarded addresses.
//!
//! An answer costs money and is confidential, so the tests count requests and search the logs for its text.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

mod token;

use std::time::Duration;

use axum::{Router, body::Body, http::StatusCode, response::IntoResponse};
use futures_util::{StreamExt, future::join_all, stream};
use local::standins::{Fault, llm::Turn};
use serde_json::json;
use shared::{
    Deadline,
    clients::{
        Error, Llm, Reason,
        llm::{Account, Completion, CompletionRequest, Finish, Message},
    },
    models::OrganizationId,
};
use tests::{
    clients::{LATE, ample, class, excerpt, fixture, nowhere, short, until},
    http_server::Server,
    logs::Logs,
};

use crate::llm_client::{
    MODEL, PRIVATE, chat, client, client_credentials, conversation, keyed, own, platforms, said_in_confidence, start,
};

async fn ask(client: &Llm, account: &Account, deadline: Deadline) -> Result<Completion, Error> {
    let answer = client.complete(account, &CompletionRequest::new(&conversation()), deadline).await;
    if let Err(error) = &answer {
        said_in_confidence(error);
    }
    answer
}

// -------------------------------------------------------------------------------------------------------- an answer

/// Reasoning models do so.
#[tokio::test]
async fn a_parameter_that_a_model_refuses_is_never_sent_again() {
    let llm = start();
    let refusal = |parameter: &str, message: &str| Turn {
        status: Some(400),
        body: Some(json!({"error": {
            "message": message, "type": "invalid_request_error", "param": parameter, "code": "unsupported_parameter",
        }})),
        ..Turn::default()
    };
    let temperature = "Unsupported value: 'temperature' does not support 0.7 with this model. Only the default (1) is.";
    let length =
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
    llm.script([
        refusal("max_tokens", length),
        refusal("temperature", temperature),
        Turn::text("Hello"),
        Turn::text("Hello"),
        refusal("temperature", temperature),
        Turn::text("Hello"),
    ]);
    let (client, account, messages) = (client(&[]), keyed(&llm.url), conversation());
    let request = CompletionRequest { temperature: 0.7, max_tokens: Some(100), ..CompletionRequest::new(&messages) };
    for request in [request, request] {
        assert_eq!(client.complete(&account, &request, ample()).await.unwrap().text, "Hello");
    }
    // Another model gets the full request, and an unused parameter is not dropped.
    let small = CompletionRequest { model: Some("small"), ..request };
    assert_eq!(client.complete(&account, &small, ample()).await.unwrap().text, "Hello");
    let sent: Vec<_> = llm.requests().into_iter().map(|request| request.body).collect();
    let parts = |body: &serde_json::Value| {
        ["temperature", "max_tokens", "max_completion_tokens"].map(|name| body.get(name).is_some())
    };
    let parts: Vec<_> = sent.iter().map(parts).collect();
    let (all, named, without) = ([true, true, false], [true, false, true], [false, false, true]);
    assert_eq!(parts, [all, named, without, without, all, [false, true, false]]);
    llm.script([refusal("temperature", temperature)]);
    let refused = client.complete(&account, &small, ample()).await.unwrap_err();
    assert_eq!(refused.status(), Some(400), "it is not asked again for what it was not asked with");
}

/// OpenAI and vLLM report none.
#[tokio::test]
async fn a_missing_cost_is_logged_once_for_each_budget() {
    let logs = Logs::capture();
    let llm = start();
    let usage = json!({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15});
    let choice = json!({"index": 0, "message": {"content": PRIVATE}, "finish_reason": "stop"});
    let answer = json!({"id": "gen-1", "model": MODEL, "choices": [choice], "usage": usage});
    let without_cost = || Turn { body: Some(answer.clone()), ..Turn::default() };
    llm.script([Turn::text("Hello"), without_cost(), without_cost(), without_cost()]);
    let (client, platforms) = (client(&[&llm.url]), keyed(&llm.url));
    let own =
        own(OrganizationId::generate(), json!({"api_key": "llm-local-key", "base_url": format!("{}/v1", llm.url)}));
    let warned = || -> Vec<_> { logs.at("WARN").iter().map(|line| line["budget"].clone()).collect() };
    ask(&client, &platforms, ample()).await.unwrap();
    assert_eq!(warned(), [""; 0]);
    ask(&client, &platforms, ample()).await.unwrap();
    let messages = conversation();
    let streamed = client.clone().stream(&own, &CompletionRequest::new(&messages), ample()).await.unwrap();
    assert!(streamed.all(|delta| async move { delta.is_ok() }).await);
    ask(&client, &platforms, ample()).await.unwrap();
    assert_eq!(warned(), ["platform_cost_per_month", "own_cost_per_month"]);
    assert!(logs.text().contains("usage.cost") && !logs.text().contains("Lovelace"), "{}", logs.text());
}

#[tokio::test]
async fn the_request_is_the_one_openrouter_documents() {
    let llm = start();
    llm.script([Turn::text("Hello"), Turn::text("Hello")]);
    let answer = ask(&client(&[]), &keyed(&llm.url), ample()).await.unwrap();
    assert_eq!((answer.text.as_str(), answer.finish, answer.model.as_str()), ("Hello", Finish::Stop, MODEL));
    assert!(answer.id.unwrap().starts_with("gen-"));
    assert!(answer.usage.total_tokens > 0 && answer.usage.cost > Some(0.0) && !answer.usage.estimated);
    let sent = llm.requests().pop().unwrap();
    assert_eq!((sent.method.as_str(), sent.path.as_str()), ("POST", "/v1/chat/completions"));
    assert_eq!(sent.headers["authorization"], "Bearer llm-local-key");
    assert_eq!(
        (sent.headers["content-type"].as_str(), sent.headers["accept"].as_str()),
        ("application/json", "application/json")
    );
    let messages = json!([{"role": "system", "content": "Be brief."}, {"role": "user", "content": PRIVATE}]);
    assert_eq!(sent.body, json!({"model": MODEL, "messages": messages, "temperature": 0.0}));

    let tools = [json!({"type": "function", "function": {"name": "x", "parameters": {"type": "object"}}})];
    let messages = [Message::user("a"), Message::assistant("b"), Message::user("c")];
    let request = CompletionRequest {
        model: Some("small"),
        temperature: 0.7,
        max_tokens: Some(100),
        tools: &tools,
        ..CompletionRequest::new(&messages)
    };
    client(&[]).complete(&keyed(&llm.url), &request, ample()).await.unwrap();
    let body = llm.requests().pop().unwrap().body;
    assert_eq!(
        body,
        json!({"model": "small", "messages": messages, "temperature": 0.7, "max_tokens": 100, "tools": tools})
    );
    assert!(llm.script_left().is_empty());
}

/// Anthropic, Mistral and vLLM refuse other orders, and some services an empty message.
#[tokio::test]
async fn a_conversation_is_sent_in_an_order_that_every_service_accepts() {
    let llm = start();
    llm.script([Turn::text("x")]);
    let messages = [
        Message::system("Be brief."),
        Message::system("It is May."),
        Message::user("a"),
        Message::system("b"),
        Message::assistant(""),
        Message::system("c"),
    ];
    client(&[]).complete(&keyed(&llm.url), &CompletionRequest::new(&messages), ample()).await.unwrap();
    let sent = llm.requests().pop().unwrap().body["messages"].clone();
    assert!(sent[0]["content"].as_str().unwrap().starts_with("Be brief.\n\nIt is May.\n\nA part of a user message"));
    let note = |text: &str| format!("<application_note>\n{text}\n</application_note>");
    let turns = json!([
        {"role": "user", "content": format!("a\n\n{}", note("b"))},
        {"role": "assistant", "content": "(no answer)"},
        {"role": "user", "content": note("c")},
    ]);
    assert_eq!(
        (&sent[0]["role"], &sent.as_array().unwrap()[1..]),
        (&json!("system"), turns.as_array().unwrap().as_slice())
    );
}

#[tokio::test]
async fn a_request_names_the_model_else_the_account_else_the_default() {
    let llm = start();
    let with_model = platforms(json!({"api_key": "llm-local-key", "base_url": llm.url, "model": "accounts"}));
    let messages = conversation();
    for (account, model, expected) in
        [(&keyed(&llm.url), None, MODEL), (&with_model, None, "accounts"), (&with_model, Some("requests"), "requests")]
    {
        llm.script([Turn::text("x")]);
        let request = CompletionRequest { model, ..CompletionRequest::new(&messages) };
        client(&[]).complete(account, &request, ample()).await.unwrap();
        assert_eq!(llm.requests().pop().unwrap().body["model"], expected);
    }
}

#[tokio::test]
async fn calls_of_functions_and_the_cost_are_kept() {
    let llm = start();
    let cut = Turn { finish_reason: Some("length".into()), cost: Some(0.25), ..Turn::text("Hel") };
    llm.script([Turn::tool("send_sms", json!({"to": "+1"})), cut]);
    let called = ask(&client(&[]), &keyed(&llm.url), ample()).await.unwrap();
    assert_eq!((called.finish, called.text.as_str()), (Finish::ToolCalls, ""));
    assert_eq!(
        (called.tool_calls[0].name.as_str(), called.tool_calls[0].arguments.as_str()),
        ("send_sms", r#"{"to":"+1"}"#)
    );
    let cut = ask(&client(&[]), &keyed(&llm.url), ample()).await.unwrap();
    assert_eq!((cut.finish, cut.usage.cost), (Finish::Length, Some(0.25)));
}

/// OpenRouter sends blank lines while a model thinks, and some gateways send no usage.
#[tokio::test]
async fn an_answer_may_begin_with_blanks_and_end_without_usage() {
    let body = r#"{"choices":[{"message":{"content":"Hello"},"finish_reason":"stop"}]}"#;
    let server = Server::start(Router::new().fallback(move || async move {
        ([("content-type", "application/json"), ("x-generation-id", "gen-7")], format!("\n\n   \n{body}"))
    }))
    .await;
    let answer = ask(&client(&[]), &keyed(&server.url), ample()).await.unwrap();
    assert_eq!((answer.text.as_str(), answer.model.as_str(), answer.id.as_deref()), ("Hello", MODEL, Some("gen-7")));
    assert!(answer.usage.estimated && answer.usage.prompt_tokens > 10 && answer.usage.completion_tokens == 2);
}

#[tokio::test]
async fn an_unusable_answer_names_the_missing_part() {
    let llm = start();
    for (body, path) in [
        (json!({"id": "gen-1", "choices": []}), "choices[0] is missing"),
        (json!({"id": "gen-1"}), "choices is missing"),
        (json!({"choices": [{"message": PRIVATE}]}), "choices[0].message is missing"),
        (json!({"choices": [{"message": {"content": {"x": PRIVATE}}}]}), "choices[0].message.content is not text"),
        (json!(format!("<html>{PRIVATE}")), "the body is not JSON (line 1, column 1)"),
    ] {
        llm.clear_requests();
        llm.script([Turn { body: Some(body), ..Turn::default() }]);
        let error = ask(&client(&[]), &keyed(&llm.url), ample()).await.unwrap_err();
        assert_eq!((class(&error).as_str(), excerpt(&error)), ("undecodable", path));
        assert_eq!(llm.requests().len(), 1, "it was paid for, and would be again");
    }
}

#[tokio::test]
async fn an_answer_without_end_is_not_read() {
    let server = Server::start(Router::new().fallback(|| async {
        Body::from_stream(stream::repeat_with(|| Ok::<_, std::io::Error>(vec![b' '; 64 * 1024])))
    }))
    .await;
    let error = ask(&client(&[]), &keyed(&server.url), ample()).await.unwrap_err();
    assert_eq!(class(&error), "too large");
}

// ---------------------------------------------------------------------------------------------------------- failures

/// Every body of the vectors, with OpenRouter's documented advice on retries.
#[tokio::test]
async fn every_documented_failure_is_recognized() {
    let cases = fixture("openrouter.json")["http"].as_array().unwrap().clone();
    let expected = |name: &str| match name {
        "401" => ("rejected 401", Some(Reason::Credentials)),
        "402_no_header" => ("rejected 402", Some(Reason::NoCredit)),
        "402_in_flight_budget" => ("rate limited for 5 s", None),
        "429" => ("rate limited for 60 s", None),
        "403_guardrail" => ("rejected 403", Some(Reason::Moderated)),
        "502" | "200_top_level_error" | "200_choice_error" => ("broken 502", None),
        "524_edge_html" => ("broken 524", None),
        other => panic!("nothing is expected of {other}"),
    };
    assert_eq!(cases.len(), 9);
    for case in cases {
        let name = case["name"].as_str().unwrap();
        let (failure, reason) = expected(name);
        let body = case.get("body").or_else(|| case.get("body_text")).unwrap();
        let turn =
            json!({"status": case["status"], "body": body, "headers": case.get("headers").unwrap_or(&json!({}))});
        let turn: Turn = serde_json::from_value(turn).unwrap();

        // With less time than any Retry-After, the error is returned at once.
        let deadline = if case.get("headers").is_some() { short() } else { ample() };
        let llm = start();
        llm.script(vec![turn.clone(); 9]);
        let error = ask(&client(&[]), &keyed(&llm.url), deadline).await.unwrap_err();
        assert_eq!((class(&error).as_str(), error.reason()), (failure, reason), "{name}");
        assert_eq!(error.transient(), case["suggested_retry"], "{name}");
        let again = error.transient() && error.retry_after().is_none();
        assert_eq!(llm.requests().len(), if again { 4 } else { 1 }, "{name}");

        if again {
            let llm = start();
            llm.script([turn, Turn::text("there")]);
            assert_eq!(ask(&client(&[]), &keyed(&llm.url), ample()).await.unwrap().text, "there", "{name}");
        }
    }
}

#[tokio::test]
async fn a_refusal_names_the_next_step() {
    let llm = start();
    let openai = |code: &str, kind: &str| json!({"error": {"message": "x", "type": kind, "param": null, "code": code}});
    for (status, body, reason, sentence) in [
        (401, openai("invalid_api_key", "invalid_request_error"), Reason::Credentials, "the platform's account"),
        (429, openai("insufficient_quota", "insufficient_quota"), Reason::NoCredit, "the platform's account"),
        (400, openai("context_length_exceeded", "invalid_request_error"), Reason::TooLong, "too long"),
        (
            400,
            json!({"error": {"code": 400, "message": "x", "metadata": {"error_type": "context_length_exceeded"}}}),
            Reason::TooLong,
            "shorten it",
        ),
        (
            400,
            json!({"object": "error", "message": "This model's maximum context length is 8192 tokens.", "code": 400}),
            Reason::TooLong,
            "shorten it",
        ),
        (400, openai("content_filter", "invalid_request_error"), Reason::Moderated, "word it otherwise"),
        (404, openai("model_not_found", "invalid_request_error"), Reason::UnknownModel, "check model and base_url"),
    ] {
        llm.clear_requests();
        llm.inject(chat(Fault::status(status).with_body(body.clone())));
        let error = ask(&client(&[]), &keyed(&llm.url), ample()).await.unwrap_err();
        assert_eq!(error.reason(), Some(reason), "{body}");
        assert!(error.public().contains(sentence), "{}", error.public());
        assert!(!error.transient() && llm.requests().len() == 1, "{body}");
        // The same error within a success.
        if let Some(inner) = body.get("error") {
            let mut inner = inner.clone();
            if inner["code"].is_null() {
                inner["code"] = json!(status);
            }
            llm.inject(chat(Fault::body(json!({"error": inner}))));
            let error = ask(&client(&[]), &keyed(&llm.url), ample()).await.unwrap_err();
            assert_eq!(error.reason(), Some(reason), "inside a success: {body}");
        }
    }
    let account =
        own(OrganizationId::generate(), json!({"api_key": "llm-local-key", "base_url": format!("{}/v1", llm.url)}));
    for (status, sentence) in [(401, "check its key"), (402, "store another key")] {
        llm.inject(chat(Fault::status(status)));
        let error = ask(&client(&[&llm.url]), &account, ample()).await.unwrap_err();
        assert!(error.public().contains(sentence) && !error.is_outage(), "{}", error.public());
    }
}

#[tokio::test]
async fn a_transient_failure_is_retried() {
    let cases = [
        ("408", Fault::status(408)),
        ("409", Fault::status(409)),
        ("429", Fault::status(429).with_header("Retry-After", "0")),
        ("429, finer", Fault::status(429).with_header("retry-after-ms", "1").with_header("Retry-After", "300")),
        ("429, a date gone by", Fault::status(429).with_header("Retry-After", "Wed, 21 Oct 2015 07:28:00 GMT")),
        ("500", Fault::status(500)),
        ("503", Fault::status(503).with_header("Retry-After", "0")),
        ("529", Fault::status(529)),
        ("cut off", Fault::drop_before()),
        ("cut off after it was answered", Fault::drop_after()),
        ("an edge's page", Fault::status(524).with_body(json!("<html>"))),
        ("inside a success", Fault::body(json!({"error": {"code": "server_error", "message": "x"}}))),
        ("vLLM's, inside a success", Fault::body(json!({"object": "error", "message": "x", "code": 500}))),
    ];
    join_all(cases.map(|(name, fault)| async move {
        let llm = start();
        llm.script([Turn::text("there"), Turn::text("there")]);
        llm.inject(chat(fault));
        let answer = ask(&client(&[]), &keyed(&llm.url), ample()).await;
        assert_eq!(answer.unwrap_or_else(|error| panic!("{name}: {error}")).text, "there");
        assert_eq!(llm.requests().len(), 2, "{name}");
    }))
    .await;
}

#[tokio::test]
async fn a_permanent_failure_is_not_retried() {
    let llm = start();
    for status in [301, 400, 401, 402, 403, 404, 413, 422] {
        llm.clear_requests();
        llm.inject(chat(Fault::status(status)));
        let error = ask(&client(&[]), &keyed(&llm.url), ample()).await.unwrap_err();
        assert_eq!(class(&error), format!("rejected {status}"));
        assert_eq!(llm.requests().len(), 1, "{status}");
    }
}

/// A run goes back to its queue for as long as the gateway asks.
#[tokio::test]
async fn a_wait_that_outlasts_the_deadline_comes_out_with_the_error() {
    let llm = start();
    let far = "Wed, 21 Oct 2122 07:28:00 GMT";
    for (status, header, value, at_least) in [
        (429, "Retry-After", "300", Duration::from_secs(300)),
        (429, "Retry-After", far, Duration::from_secs(60 * 60)),
        (429, "retry-after-ms", "300500", Duration::from_millis(300_500)),
        (503, "Retry-After", "300", Duration::from_secs(300)),
    ] {
        llm.clear_requests();
        llm.inject(chat(Fault::status(status).with_header(header, value)));
        let error = ask(&client(&[]), &keyed(&llm.url), ample()).await.unwrap_err();
        assert!(error.transient(), "{status}");
        assert!(error.retry_after() >= Some(at_least), "{status} {header}: {:?}", error.retry_after());
        assert_eq!(llm.requests().len(), 1, "{status}: nobody waits for what comes too late");
    }
}

/// A slow answer is already paid for, and a retry would be paid for again.
#[tokio::test]
async fn with_little_time_left_nothing_is_asked_again() {
    let llm = start();
    llm.script([Turn::text("there")]);
    llm.inject(chat(Fault { delay_ms: 3_200, ..Fault::status(500) }));
    ask(&client(&[]), &keyed(&llm.url), Deadline::after(Duration::from_secs(4))).await.unwrap_err();
    assert_eq!(llm.requests().len(), 1);
}

#[tokio::test]
async fn silence_ends_with_the_deadline() {
    let llm = start();
    llm.script([Turn::text("late")]);
    llm.inject(chat(Fault::delay(LATE)));
    let error = ask(&client(&[]), &keyed(&llm.url), short()).await.unwrap_err();
    assert_eq!(class(&error), "no answer");
    until(|| llm.requests().len() == 1).await;
    let error = ask(&client(&[]), &keyed(&nowhere()), short()).await.unwrap_err();
    assert_eq!(class(&error), "unreachable");
}

/// Some gateways repeat the refused input, or the key.
#[tokio::test]
async fn an_error_does_not_quote_the_conversation() {
    let llm = start();
    for message in [
        format!("[{{'loc': ('body', 'messages', 1), 'msg': 'no', 'input': '{PRIVATE}'}}]"),
        "Incorrect API key provided: llm-local-key".to_owned(),
    ] {
        for body in [
            json!({"error": {"message": message, "code": 400, "metadata": {"flagged_input": PRIVATE, "raw": PRIVATE}}}),
            json!({"object": "error", "message": message, "code": 400}),
            json!({"detail": message}),
            json!({"detail": [{"input": PRIVATE}]}),
            json!({"error": message}),
            json!(message),
        ] {
            llm.inject(chat(Fault::status(400).with_body(body.clone())));
            let error = ask(&client(&[]), &keyed(&llm.url), ample()).await.unwrap_err();
            assert_eq!(class(&error), "rejected 400", "{body}");
        }
    }
    llm.inject(chat(Fault::status(400).with_body(json!({"error": {"message": "no such field: x", "code": 400}}))));
    let error = ask(&client(&[]), &keyed(&llm.url), ample()).await.unwrap_err();
    assert_eq!(excerpt(&error), "no such field: x", "what quotes nothing is kept for the log");
}

// --------------------------------------------------------------------------------------------- whose address it is

#[tokio::test]
async fn an_organizations_addresses_are_guarded_and_the_platforms_are_not() {
    let llm = start();
    llm.script(vec![Turn::text("x"); 3]);
    let organization = OrganizationId::generate();
    let key = json!({"api_key": "llm-local-key", "base_url": llm.url});
    let oauth = client_credentials(&llm.url);
    let closed = client(&[]);
    ask(&closed, &platforms(key.clone()), ample()).await.unwrap();
    ask(&closed, &platforms(oauth.clone()), ample()).await.unwrap();

    llm.clear_requests();
    let mut localhost = key.clone();
    localhost["base_url"] = json!(llm.url.replace("127.0.0.1", "localhost").replace("http:", "https:"));
    let mut token_here = oauth.clone();
    token_here["base_url"] = json!("https://llm.example.com/v1");
    let mut elsewhere = token_here.clone();
    elsewhere["token_url"] = json!("https://169.254.169.254/latest");
    let guarded = [(key, "base_url"), (oauth.clone(), "base_url"), (localhost, "base_url")];
    for (content, field) in guarded.into_iter().chain([(token_here, "token_url"), (elsewhere, "token_url")]) {
        let error = ask(&closed, &own(organization, content), ample()).await.unwrap_err();
        assert_eq!(class(&error), "refused");
        assert!(error.public().starts_with(field) && !error.transient(), "{}", error.public());
    }
    assert_eq!(llm.requests().len(), 0, "nothing left the building");
    ask(&client(&[&llm.url]), &own(organization, oauth), ample()).await.unwrap();
}

#[tokio::test]
async fn a_redirect_takes_neither_key_nor_conversation_along() {
    let there = Server::start(Router::new().fallback(|| async { "{}" })).await;
    for status in [301, 302, 303, 307, 308] {
        let to = there.url.clone();
        let here = Server::start(Router::new().fallback(move || async move {
            (StatusCode::from_u16(status).unwrap(), [("location", to)]).into_response()
        }))
        .await;
        let content = json!({"api_key": "llm-local-key", "base_url": here.url});
        let open = client(&[&here.url, &there.url]);
        for account in [platforms(content.clone()), own(OrganizationId::generate(), content)] {
            let error = ask(&open, &account, ample()).await.unwrap_err();
            assert_eq!(class(&error), format!("rejected {status}"));
        }
    }
    assert!(there.seen().is_empty());
}
