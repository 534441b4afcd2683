//! The Secrets Manager client against a server of its protocol: requests, cache, and failures.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use axum::{
    Router,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::{Value, json};
use shared::clients::{Error, Secrets};
use tests::{
    aws::sdk_config,
    clients::{class, nowhere},
    http_server::Server,
};

const ID: &str = "switchboard/vapi";

#[derive(Debug, Deserialize, PartialEq)]
struct Credentials {
    api_key: String,
}

fn secrets(url: &str) -> Secrets {
    Secrets::new(&sdk_config(url))
}

fn answer(status: u16, body: &Value) -> Response {
    let headers = [("content-type", "application/x-amz-json-1.1")];
    (StatusCode::from_u16(status).unwrap(), headers, body.to_string()).into_response()
}

fn holding(secret: &str) -> Value {
    json!({"ARN": "arn:aws:secretsmanager:eu-central-1:1:secret:x", "Name": ID, "VersionId": "v", "SecretString": secret})
}

/// A server with a constant answer.
async fn always(status: u16, body: Value) -> Server {
    Server::start(Router::new().fallback(move || async move { answer(status, &body) })).await
}

fn trouble(code: &str) -> Value {
    json!({"__type": code, "Message": "said the service"})
}

async fn get(secrets: &Secrets) -> Result<Credentials, Error> {
    secrets.get(ID).await
}

#[tokio::test]
async fn the_request_is_signed_and_asks_for_one_secret() {
    let server = always(200, holding(r#"{"api_key":"k","more":1}"#)).await;
    assert_eq!(get(&secrets(&server.url)).await.unwrap(), Credentials { api_key: "k".into() });
    let seen = &server.seen()[0];
    assert_eq!((seen.method.as_str(), seen.target.as_str()), ("POST", "/"));
    assert_eq!(seen.headers["x-amz-target"], "secretsmanager.GetSecretValue");
    assert_eq!(seen.headers["content-type"], "application/x-amz-json-1.1");
    assert_eq!(seen.headers["x-amz-security-token"], "session");
    let signature = &seen.headers["authorization"];
    assert!(signature.starts_with("AWS4-HMAC-SHA256 Credential=AKIATEST/"), "{signature}");
    assert!(signature.contains("/eu-central-1/secretsmanager/aws4_request"), "{signature}");
    assert_eq!(serde_json::from_str::<Value>(&seen.body).unwrap(), json!({"SecretId": ID}));
}

#[tokio::test]
async fn a_secret_is_read_once_by_all_clones() {
    let server = always(200, holding(r#"{"api_key":"k"}"#)).await;
    let first = secrets(&server.url);
    let clone = first.clone();
    for secrets in [&first, &clone, &first] {
        get(secrets).await.unwrap();
    }
    assert_eq!(server.seen().len(), 1);
    clone.get::<Credentials>("another").await.unwrap();
    assert_eq!(server.seen().len(), 2, "each secret has its own place");
}

/// Reading is harmless, so the SDK retries transient failures, and failures are not cached.
#[tokio::test]
async fn a_transient_failure_is_retried_and_not_cached() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = asked.clone();
    let server = Server::start(Router::new().fallback(move || async move {
        match counter.fetch_add(1, Ordering::SeqCst) {
            0 => answer(500, &trouble("InternalServiceError")),
            1 => answer(400, &trouble("ThrottlingException")),
            2 => answer(200, &holding(r#"{"api_key":"k"}"#)),
            _ => answer(400, &trouble("ResourceNotFoundException")),
        }
    }))
    .await;
    get(&secrets(&server.url)).await.unwrap();
    assert_eq!(asked.load(Ordering::SeqCst), 3);

    let server = always(400, trouble("AccessDeniedException")).await;
    let refused = secrets(&server.url);
    get(&refused).await.unwrap_err();
    get(&refused).await.unwrap_err();
    assert_eq!(server.seen().len(), 2, "a refusal is neither repeated nor remembered");
}

#[tokio::test]
async fn each_failure_has_its_name() {
    for (status, code, expected) in [
        (400, "ResourceNotFoundException", "rejected 400"),
        (400, "AccessDeniedException", "rejected 400"),
        (400, "InvalidRequestException", "rejected 400"),
        (400, "ThrottlingException", "rate limited"),
        (500, "InternalServiceError", "broken 500"),
        (503, "ServiceUnavailable", "broken 503"),
    ] {
        let server = always(status, trouble(code)).await;
        let error = get(&secrets(&server.url)).await.unwrap_err();
        assert_eq!(class(&error), expected, "{code}");
    }
    let error = get(&secrets(&nowhere())).await.unwrap_err();
    assert_eq!(class(&error), "unreachable");
}

/// The SDK has its own time-out: a hanging connection must not use up the function's time.
#[tokio::test]
async fn silence_is_no_answer() {
    let routes = Router::new().fallback(|| async { std::future::pending::<()>().await });
    let server = Server::start(routes).await;
    let error = get(&secrets(&server.url)).await.unwrap_err();
    assert_eq!(class(&error), "no answer");
    assert!(server.seen().len() > 1, "reading is harmless, so it was tried again");
}

#[tokio::test]
async fn an_unusable_secret_is_named_and_never_shown() {
    for content in [
        json!("not JSON: t0psecret"),
        json!(r#"{"api_key":{"t0psecret":1}}"#),
        json!(r#"{"t0psecret":1}"#),
        Value::Null,
    ] {
        let mut body = holding("");
        body["SecretString"] = content;
        let server = always(200, body).await;
        let error = get(&secrets(&server.url)).await.unwrap_err();
        assert_eq!(class(&error), "undecodable");
        assert!(error.to_string().contains(ID), "{error}");
        let shown = format!("{error:?} {}", shared::error::chain(&error));
        assert!(!shown.contains("t0psecret"), "{shown}");
    }
}

#[tokio::test]
async fn our_own_key_is_in_no_error() {
    let server = always(400, trouble("AccessDeniedException")).await;
    let error = get(&secrets(&server.url)).await.unwrap_err();
    let shown = format!("{error} {}", shared::error::chain(&error));
    assert!(!shown.contains("s3cret-key") && !shown.contains("session"), "{shown}");
}

#[tokio::test]
async fn a_secret_is_made_and_deleted_as_aws_documents_it() {
    let server = always(200, json!({"ARN": "arn:x", "Name": ID})).await;
    let secrets = secrets(&server.url);
    let content = SecretString::from(r#"{"auth_token":"t0psecret"}"#.to_owned());
    secrets.create(ID, &content).await.unwrap();
    secrets.delete(ID).await.unwrap();
    let seen = server.seen();
    let actions: Vec<&str> = seen.iter().map(|request| request.headers["x-amz-target"].as_str()).collect();
    assert_eq!(actions, ["CreateSecret", "DeleteSecret"].map(|verb| format!("secretsmanager.{verb}")));
    let body = |at: usize| serde_json::from_str::<Value>(&seen[at].body).unwrap();
    assert_eq!((&body(0)["Name"], &body(0)["SecretString"]), (&json!(ID), &json!(content.expose_secret())));
    assert!(body(0)["ClientRequestToken"].is_string(), "a repeat must be told from a second request");
    assert_eq!(body(1), json!({"SecretId": ID, "RecoveryWindowInDays": 30}));
}

#[tokio::test]
async fn a_secret_that_is_not_there_can_be_deleted() {
    for code in ["ResourceNotFoundException", "InvalidRequestException"] {
        let server = always(400, trouble(code)).await;
        secrets(&server.url).delete(ID).await.unwrap();
    }
}

#[tokio::test]
async fn a_refused_write_names_its_class_and_nothing_of_the_content() {
    let content = SecretString::from("t0psecret".to_owned());
    for (status, code, expected) in [
        (400, "AccessDeniedException", "rejected 400"),
        (400, "ThrottlingException", "rate limited"),
        (500, "InternalServiceError", "broken 500"),
    ] {
        let server = always(status, trouble(code)).await;
        let secrets = secrets(&server.url);
        for error in [secrets.create(ID, &content).await.unwrap_err(), secrets.delete(ID).await.unwrap_err()] {
            assert_eq!(class(&error), expected, "{code}");
            let shown = format!("{error:?} {}", shared::error::chain(&error));
            assert!(!shown.contains("t0psecret"), "{shown}");
        }
    }
}

#[tokio::test]
async fn a_previous_version_of_a_secret_is_read_once_and_may_be_absent() {
    let asked = Arc::new(Mutex::new(Vec::<Value>::new()));
    let seen = asked.clone();
    let server = Server::start(Router::new().fallback(move |body: String| {
        let request: Value = serde_json::from_str(&body).unwrap();
        seen.lock().unwrap().push(request.clone());
        async move {
            match (request["SecretId"].as_str(), request["VersionStage"].as_str()) {
                (Some(ID), Some("AWSPREVIOUS")) => answer(200, &holding(r#"{"api_key": "before"}"#)),
                (Some(ID), None) => answer(200, &holding(r#"{"api_key": "now"}"#)),
                _ => answer(400, &trouble("ResourceNotFoundException")),
            }
        }
    }))
    .await;
    let secrets = secrets(&server.url);
    for _ in 0..2 {
        let before: Option<Credentials> = secrets.get_before(ID).await.unwrap();
        assert_eq!(before.unwrap().api_key, "before");
        assert_eq!(secrets.get::<Credentials>(ID).await.unwrap().api_key, "now");
        assert_eq!(secrets.get_before::<Credentials>("first").await.unwrap(), None);
    }
    assert_eq!(asked.lock().unwrap().len(), 3, "each once");
    assert_eq!(class(&self::secrets(&nowhere()).get_before::<Credentials>(ID).await.unwrap_err()), "unreachable");
}
