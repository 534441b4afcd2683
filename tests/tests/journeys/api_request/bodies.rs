//! The encodings of bodies: forms that are sent, and compressed answers.

use axum::Router;
use secrecy::SecretString;
use serde_json::json;
use shared::webhooks;
use tests::{Options, World, api_request, http_server::Server};

const SIGNING: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// A server that gives this content encoding, and a world that may call it.
async fn answering(encoding: &'static str, body: &'static [u8]) -> (Server, World) {
    let answer = move || async move { ([("content-type", "application/json"), ("content-encoding", encoding)], body) };
    let server = Server::start(Router::new().fallback(answer)).await;
    let world = World::with(Options { open_hosts: vec![server.address.to_string()], ..Options::default() }).await;
    (server, world)
}

#[tokio::test]
async fn a_body_is_a_form_if_its_content_type_says_so() {
    let (server, world) = answering("identity", b"{}").await;
    let mut config = api_request("POST", &server.url);
    config["headers"] = json!({"Content-Type": "application/x-www-form-urlencoded; charset=UTF-8"});
    config["body"] = json!({
        "name": {"mode": "ai", "prompt": "Name"}, "seats": {"mode": "ai", "prompt": "Seats", "schema": {"type": "integer"}},
        "note": {"mode": "ai", "prompt": "Note", "required": false}, "source": "phone",
    });
    config["signing_secret"] = json!(SIGNING);
    let tool = world.attached(&config).await;
    world.call_tool(&world.call(&tool, json!({"body_name": "Ana & Co", "body_seats": 4}))).await.result();
    let [sent] = &server.seen()[..] else { panic!("one request: {:?}", server.seen()) };
    assert_eq!(sent.body, "name=Ana+%26+Co&seats=4&source=phone");
    assert_eq!(sent.headers["content-type"], "application/x-www-form-urlencoded; charset=UTF-8");
    let [id, at, signature] =
        ["webhook-id", "webhook-timestamp", "webhook-signature"].map(|name| sent.headers[name].clone());
    let secret = SecretString::from(SIGNING);
    let expected = webhooks::standard_signature(&secret, &id, at.parse().unwrap(), sent.body.as_bytes());
    assert_eq!(Some(signature), expected, "the bytes of the form are signed");
}

/// Such tools were saved before a content type was compared with the body.
#[tokio::test]
async fn a_nested_value_of_an_older_form_stands_in_brackets() {
    let (server, world) = answering("identity", b"{}").await;
    let mut config = api_request("POST", &server.url);
    config["body"] = json!({"plan": {"mode": "fixed", "value": {"seats": [4]}}});
    let tool = world.attached(&config).await;
    let mut stored = tool["config_metadata"].clone();
    stored["headers"] = json!({"content-type": {"mode": "fixed", "value": "application/x-www-form-urlencoded"}});
    world.aws.change("tools", tool["id"].as_str().unwrap(), json!({"config_metadata": stored}));
    world.call_tool(&world.call(&tool, json!({}))).await.result();
    assert_eq!(server.seen()[0].body, "plan%5Bseats%5D%5B0%5D=4");
    world.update(&tool, &json!({"label": "Another"})).await.expect(200);
}

#[tokio::test]
async fn a_compressed_answer_is_named_and_not_printed() {
    let (server, world) = answering("gzip", b"\x1f\x8b\x08\0\0\0\0\0").await;
    let read = world.attached(&api_request("GET", &server.url)).await;
    let told = world.call_tool(&world.call(&read, json!({}))).await;
    assert!(told.sentence().contains("compressed content (gzip)"), "{}", told.body);
    let post = world.attached(&api_request("POST", &server.url)).await;
    let told = world.call_tool(&world.call(&post, json!({}))).await;
    assert!(told.result().as_str().unwrap().contains("compressed content (gzip)"), "it is done: {}", told.body);
}

#[tokio::test]
async fn a_plain_answer_under_a_wrong_encoding_is_read() {
    for encoding in ["UTF-8", "none", "aws-chunked"] {
        let (server, world) = answering(encoding, b"{\"a\": 1}").await;
        let read = world.attached(&api_request("GET", &server.url)).await;
        assert_eq!(world.call_tool(&world.call(&read, json!({}))).await.result(), &json!({"a": 1}), "{encoding}");
    }
}

#[tokio::test]
async fn compression_cannot_be_asked_for() {
    let (server, world) = answering("identity", b"{}").await;
    let mut config = api_request("GET", &server.url);
    config["headers"] = json!({"Accept-Encoding": "gzip"});
    assert_eq!(world.create(&config).await.wrong_fields(), ["headers.Accept-Encoding"]);
    // Tools saved before that was refused go on without the header.
    let tool = world.attached(&api_request("GET", &server.url)).await;
    let mut stored = tool["config_metadata"].clone();
    stored["headers"] = json!({"Accept-Encoding": {"mode": "fixed", "value": "gzip"}});
    world.aws.change("tools", tool["id"].as_str().unwrap(), json!({"config_metadata": stored}));
    assert_eq!(world.call_tool(&world.call(&tool, json!({}))).await.result(), &json!({}));
    assert_eq!(server.seen()[0].headers.get("accept-encoding"), None);
}
