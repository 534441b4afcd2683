//! The LLM client's streams: split at any byte, and every kind of end.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

use axum::{
    Json, Router,
    body::Body,
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::post,
};
use futures_util::{StreamExt, stream};
use local::standins::{Fault, llm::Turn};
use serde_json::{Value, json};
use shared::{
    Deadline,
    clients::{
        Error, Failure, Llm, Reason,
        llm::{Account, Completion, CompletionRequest, Delta, Finish},
    },
};
use tests::{
    clients::{ample, class, fixture, nowhere, short},
    http_server::Server,
};

use crate::llm_client::{
    MODEL, chat, client, client_credentials, conversation, keyed, platforms, said_in_confidence, start,
};

/// The texts, and the final result.
async fn streamed(client: &Llm, account: &Account, deadline: Deadline) -> (Vec<String>, Result<Completion, Error>) {
    let messages = conversation();
    let request = CompletionRequest::new(&messages);
    let mut deltas = match client.stream(account, &request, deadline).await {
        Ok(deltas) => Box::pin(deltas),
        Err(error) => return (Vec::new(), Err(error)),
    };
    let mut texts = Vec::new();
    loop {
        let end = match deltas.next().await.unwrap() {
            Ok(Delta::Text(text)) => {
                assert!(!text.is_empty());
                texts.push(text);
                continue;
            }
            Ok(Delta::Done(completion)) => Ok(*completion),
            Err(error) => {
                said_in_confidence(&error);
                Err(error)
            }
        };
        assert!(deltas.next().await.is_none(), "nothing comes after the end");
        return (texts, end);
    }
}

/// A server that sends a stream's bytes in these parts.
async fn sending(parts: Vec<Vec<u8>>) -> Server {
    let routes = post(move || async move {
        let parts = stream::iter(parts).then(|part| async {
            // Sends each part separately.
            tokio::task::yield_now().await;
            Ok::<_, std::io::Error>(part)
        });
        Response::builder().header("content-type", "text/event-stream").body(Body::from_stream(parts)).unwrap()
    });
    Server::start(Router::new().fallback_service(routes)).await
}

#[tokio::test]
async fn the_stand_ins_stream_puts_together_to_its_answer() {
    let llm = start();
    llm.script([Turn::text("one two Zoë"), Turn::tool("look_up", json!({"name": "Zoë"}))]);
    let (texts, end) = streamed(&client(&[]), &keyed(&llm.url), ample()).await;
    let answer = end.unwrap();
    assert_eq!((texts, answer.text.as_str()), (vec!["one ".into(), "two ".into(), "Zoë".into()], "one two Zoë"));
    assert_eq!((answer.finish, answer.model.as_str(), answer.usage.estimated), (Finish::Stop, MODEL, false));
    let sent = llm.requests().pop().unwrap();
    assert_eq!(sent.headers["accept"], "text/event-stream");
    assert_eq!((&sent.body["stream"], &sent.body["stream_options"]), (&json!(true), &json!({"include_usage": true})));

    let (texts, end) = streamed(&client(&[]), &keyed(&llm.url), ample()).await;
    let answer = end.unwrap();
    assert_eq!((texts.len(), answer.finish), (0, Finish::ToolCalls));
    assert_eq!(
        (answer.tool_calls[0].name.as_str(), answer.tool_calls[0].arguments.as_str()),
        ("look_up", r#"{"name":"Zoë"}"#)
    );
}

/// Every stream of the vectors, with LF and CRLF, as a whole and byte by byte.
#[tokio::test]
async fn every_documented_stream_is_read_however_it_arrives() {
    let cases = fixture("openrouter.json")["streams"].as_array().unwrap().clone();
    assert_eq!(cases.len(), 5);
    for case in cases {
        let (name, expect) = (case["name"].as_str().unwrap(), &case["expect"]);
        let body = case["body"].as_str().unwrap();
        for text in [body.to_owned(), body.replace('\n', "\r\n")] {
            for parts in [vec![text.clone().into_bytes()], text.bytes().map(|byte| vec![byte]).collect()] {
                let server = sending(parts).await;
                let (texts, end) = streamed(&client(&[]), &keyed(&server.url), ample()).await;
                if expect["error"] == true {
                    let error = end.unwrap_err();
                    let class = class(&error);
                    let expected = match name {
                        "mid_stream_error_numeric_code" => "rate limited",
                        "mid_stream_error_string_code" => "broken 502",
                        _ => "broken off",
                    };
                    assert_eq!(class, expected, "{name}");
                    assert!(error.transient(), "{name}");
                    let partial = match name {
                        "truncated_no_done" => "Hel",
                        _ => expect["partial_text"].as_str().unwrap_or_default(),
                    };
                    assert_eq!(texts.concat(), partial, "{name}: what came before stands");
                    continue;
                }
                let answer = end.unwrap();
                assert_eq!(texts.concat(), answer.text, "{name}");
                assert_eq!(answer.text, expect["text"].as_str().unwrap_or_default(), "{name}");
                assert_eq!(answer.id.as_deref(), Some("gen-1"), "{name}");
                match expect["total_tokens"].as_u64() {
                    Some(total) => {
                        assert_eq!((answer.usage.total_tokens, answer.usage.cost), (total, Some(1e-5)), "{name}");
                    }
                    None => assert!(answer.usage.estimated, "{name}"),
                }
                let calls = answer.tool_calls.iter().map(|call| json!([call.id, call.name, call.arguments]));
                let wanted = expect.get("tool_calls").cloned().unwrap_or(json!([]));
                assert_eq!(calls.collect::<Value>(), wanted, "{name}");
                let finish = if wanted == json!([]) { Finish::Stop } else { Finish::ToolCalls };
                assert_eq!(answer.finish, finish, "{name}");
            }
        }
    }
}

fn event(choice: &Value) -> String {
    format!("data: {}\n\n", json!({"id": "gen-1", "model": "m", "choices": [choice]}))
}

fn text(text: &str) -> String {
    event(&json!({"index": 0, "delta": {"content": text}, "finish_reason": null}))
}

fn finished(reason: &str) -> String {
    event(&json!({"index": 0, "delta": {}, "finish_reason": reason}))
}

async fn streamed_from(body: String) -> (Vec<String>, Result<Completion, Error>) {
    let server = sending(vec![body.into_bytes()]).await;
    streamed(&client(&[]), &keyed(&server.url), ample()).await
}

#[tokio::test]
async fn a_stream_ends_in_many_ways() {
    let done = "data: [DONE]\n\n";
    for (name, body, finish) in [
        ("as documented", format!("{}{}{done}", text("Zoë"), finished("stop")), Ok(Finish::Stop)),
        ("without [DONE]", format!("{}{}", text("Zoë"), finished("length")), Ok(Finish::Length)),
        ("without a blank line", format!("{}{}", text("Zoë"), finished("stop").trim_end()), Ok(Finish::Stop)),
        ("without a finish_reason", format!("{}{done}", text("Zoë")), Ok(Finish::Other)),
        ("with neither", text("Zoë"), Err("broken off")),
        ("in the middle of an event", format!("{}{}", text("Zoë"), &text("xyz")[..40]), Err("broken off")),
        ("with finish_reason error", format!("{}{}", text("Zoë"), finished("error")), Err("broken 502")),
        ("with what is no JSON", format!("{}data: {{\n\n{done}", text("Zoë")), Err("undecodable")),
        ("before it begins", String::new(), Err("broken off")),
        ("with nothing but [DONE]", done.to_owned(), Err("undecodable")),
    ] {
        let (texts, end) = streamed_from(body).await;
        match (end, finish) {
            (Ok(answer), Ok(finish)) => assert_eq!((answer.text.as_str(), answer.finish), ("Zoë", finish), "{name}"),
            (Err(error), Err(expected)) => assert_eq!(class(&error), expected, "{name}"),
            (end, _) => panic!("{name}: {end:?}"),
        }
        assert_eq!(
            texts.concat(),
            if name.contains("nothing") || name.contains("begins") { "" } else { "Zoë" },
            "{name}"
        );
    }
}

/// Some gateways number no fragments, repeat the name, or give arguments as an object.
#[tokio::test]
async fn calls_are_put_together_however_they_are_cut() {
    let fragment = |fragments: Value| event(&json!({"delta": {"tool_calls": fragments}, "finish_reason": null}));
    let call = |id: Value, name: Value, arguments: Value| json!([{"id": id, "function": {"name": name, "arguments": arguments}}]);
    let body = [
        fragment(call(json!("a"), json!("x"), json!(""))),
        fragment(call(Value::Null, Value::Null, json!("{\"n\":"))),
        fragment(call(json!("a"), json!("x"), json!("1}"))),
        fragment(call(json!("b"), json!("y"), json!({"m": 2}))),
        finished("tool_calls"),
    ];
    let calls = async |body: String| {
        let called = streamed_from(body).await.1.unwrap().tool_calls.into_iter();
        called.map(|call| (call.id, call.name, call.arguments)).collect::<Vec<_>>()
    };
    let of = |id: &str, name: &str, arguments: &str| (id.to_owned(), name.to_owned(), arguments.to_owned());
    assert_eq!(calls(body.concat()).await, [of("a", "x", r#"{"n":1}"#), of("b", "y", r#"{"m":2}"#)]);

    // Gemini gives each call the index 0, and some gateways each fragment another id.
    let part = |id: &str, name: Value, arguments: &str| json!({"index": 0, "id": id, "function": {"name": name, "arguments": arguments}});
    let body = [
        fragment(json!([part("a", json!("x"), "{\"n\":1}"), part("b", json!("x"), "{\"n\":2}")])),
        fragment(json!([part("c", json!("y"), "{\"m\":")])),
        fragment(json!([part("d", Value::Null, "3}")])),
        finished("stop"),
    ];
    assert_eq!(
        calls(body.concat()).await,
        [of("a", "x", r#"{"n":1}"#), of("b", "x", r#"{"n":2}"#), of("c", "y", r#"{"m":3}"#)]
    );

    let nameless =
        format!("{}{}", fragment(json!([{"index": 0, "function": {"arguments": "{}"}}])), finished("tool_calls"));
    assert_eq!(class(&streamed_from(nameless).await.1.unwrap_err()), "undecodable");
}

#[tokio::test]
async fn a_refusal_in_a_stream_has_a_code_and_a_message() {
    let refusal = event(&json!({"delta": {"refusal": "I will not."}, "finish_reason": null}));
    let (texts, end) = streamed_from(format!("{refusal}{}", finished("stop"))).await;
    assert_eq!((texts.concat().as_str(), end.unwrap().finish), ("I will not.", Finish::Refusal));
}

#[tokio::test]
async fn a_stream_that_does_not_begin_is_asked_for_again() {
    let llm = start();
    llm.script([Turn::text("there"), Turn::text("there")]);
    llm.inject(chat(Fault::status(503)));
    llm.inject(chat(Fault::drop_before()));
    llm.inject(chat(Fault::body(json!({"error": {"code": 502, "message": "Provider returned error"}}))));
    let (_, end) = streamed(&client(&[]), &keyed(&llm.url), ample()).await;
    assert_eq!((end.unwrap().text.as_str(), llm.requests().len()), ("there", 4));
    // Also with an expired token.
    let (client, account) = (client(&[]), platforms(client_credentials(&llm.url)));
    llm.script([Turn::text("a"), Turn::text("b")]);
    streamed(&client, &account, ample()).await.1.unwrap();
    llm.expire_tokens();
    assert_eq!(streamed(&client, &account, ample()).await.1.unwrap().text, "b");

    llm.inject(chat(Fault::status(402)));
    let error = streamed(&client, &account, ample()).await.1.unwrap_err();
    assert_eq!(error.reason(), Some(Reason::NoCredit));
}

/// Mistral refuses `stream_options`, and reports the usage with the last chunk without being asked.
#[tokio::test]
async fn a_service_that_takes_no_stream_options_is_asked_without_them_from_then_on() {
    let routes = post(|Json(body): Json<Value>| async move {
        if body.get("stream_options").is_some() {
            let refusal = json!({"object": "error", "type": "invalid_request_error", "message": {"detail": [{
                "type": "extra_forbidden", "loc": ["body", "stream_options", "include_usage"],
                "msg": "Extra inputs are not permitted",
            }]}});
            return (StatusCode::UNPROCESSABLE_ENTITY, Json(refusal)).into_response();
        }
        let end = json!({
            "id": "cmpl-1", "object": "chat.completion.chunk", "model": MODEL,
            "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15},
        });
        let events = format!("{}data: {end}\n\ndata: [DONE]\n\n", text("Zoë"));
        ([("content-type", "text/event-stream")], events).into_response()
    });
    let server = Server::start(Router::new().fallback_service(routes)).await;
    let (client, account) = (client(&[]), keyed(&server.url));
    for _ in 0..2 {
        let (texts, end) = streamed(&client, &account, ample()).await;
        let answer = end.unwrap();
        assert_eq!((texts.concat(), answer.finish), ("Zoë".to_owned(), Finish::Stop));
        assert_eq!((answer.usage.total_tokens, answer.usage.estimated), (15, false));
    }
    let asked: Vec<_> = server.seen().iter().map(|seen| seen.body.contains("stream_options")).collect();
    assert_eq!(asked, [true, false, false]);
}

/// A gateway without streaming answers as a whole.
#[tokio::test]
async fn a_whole_answer_in_place_of_a_stream_is_one_piece() {
    let llm = start();
    let whole = json!({"choices": [{"message": {"content": "Hello"}, "finish_reason": "stop"}]});
    llm.inject(chat(Fault::body(whole)));
    let (texts, end) = streamed(&client(&[]), &keyed(&llm.url), ample()).await;
    assert_eq!((texts, end.unwrap().text.as_str()), (vec!["Hello".to_owned()], "Hello"));
}

#[tokio::test]
async fn a_stream_that_stalls_ends_with_the_deadline() {
    let server = Server::start(Router::new().fallback(|| async {
        let parts = stream::iter([Ok::<_, std::io::Error>(text("par"))]).chain(stream::pending());
        Response::builder().header("content-type", "text/event-stream").body(Body::from_stream(parts)).unwrap()
    }))
    .await;
    let (texts, end) = streamed(&client(&[]), &keyed(&server.url), short()).await;
    assert_eq!((texts.concat().as_str(), class(&end.unwrap_err()).as_str()), ("par", "no answer"));
}

#[tokio::test]
async fn a_stream_without_end_is_not_read() {
    for part in [text(&"x".repeat(32 * 1024)), "data: xxxxxxxxxxxxxxxx\n".repeat(4096), "x".repeat(64 * 1024)] {
        let server = Server::start(Router::new().fallback(move || {
            let part = part.clone();
            async move {
                let parts = stream::repeat_with(move || Ok::<_, std::io::Error>(part.clone()));
                Response::builder().header("content-type", "text/event-stream").body(Body::from_stream(parts)).unwrap()
            }
        }))
        .await;
        let (_, end) = streamed(&client(&[]), &keyed(&server.url), ample()).await;
        assert!(matches!(end.unwrap_err().failure, Failure::Undecodable(_)));
    }
}

/// Lambda's handlers must be `Send`.
#[test]
fn an_answer_may_be_waited_for_anywhere() {
    fn anywhere<T: Send>(_: &T) {}
    fn lives_on<T: Send + 'static>(_: &T) {}
    async fn begun(client: &Llm, account: &Account) {
        let messages = Vec::new();
        let asked = client.stream(account, &CompletionRequest::new(&messages), ample()).await;
        drop(messages);
        if let Ok(deltas) = asked {
            lives_on(&deltas);
        }
    }
    let (client, account) = (client(&[]), keyed(&nowhere()));
    anywhere(&streamed(&client, &account, ample()));
    anywhere(&begun(&client, &account));
}
