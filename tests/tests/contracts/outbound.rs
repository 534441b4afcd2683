//! The guarded client against hostile servers: destinations, headers, and limits of size and time.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    http::{HeaderMap, HeaderValue, StatusCode, header::LOCATION},
    response::{IntoResponse, Response},
    routing::{any, get},
};
use futures_util::stream;
use reqwest::Method;
use serde_json::{Value, json};
use shared::{
    Deadline,
    clients::{
        Error, Outbound,
        outbound::{self, Answer, Request},
    },
    models::AllowedHosts,
};
use tests::{
    clients::{ample, class, nowhere, short},
    http_server::Server,
};

const LIMIT: usize = 1024;

/// A guard that allows these private servers.
fn open_to(servers: &[&Server]) -> Outbound {
    Outbound::new(servers.iter().map(|server| server.address.to_string()).collect()).unwrap()
}

async fn send(guard: &Outbound, method: Method, url: &str, deadline: Deadline) -> Result<Answer, Error> {
    let mut headers = HeaderMap::new();
    headers.insert("authorization", HeaderValue::from_static("Bearer s3cret"));
    headers.insert("x-api-key", HeaderValue::from_static("s3cret"));
    headers.insert("accept", HeaderValue::from_static("application/json"));
    let body = (method != Method::GET).then(|| json!({"n": 1}));
    let url = guard.parse(url).unwrap();
    let allowed_hosts = AllowedHosts::default();
    guard
        .send(
            Request { method, url, headers, body: body.map(outbound::RequestBody::Json), limit: LIMIT, allowed_hosts },
            deadline,
        )
        .await
}

async fn fetch(guard: &Outbound, url: &str) -> Result<Answer, Error> {
    send(guard, Method::GET, url, ample()).await
}

fn redirect(status: u16, to: &str) -> Response {
    (StatusCode::from_u16(status).unwrap(), [(LOCATION, to.to_owned())]).into_response()
}

/// A server that redirects every path to `to`.
async fn redirecting(status: u16, to: &str) -> Server {
    let to = to.to_owned();
    Server::start(Router::new().fallback(move || async move { redirect(status, &to) })).await
}

async fn greeting() -> Server {
    Server::start(Router::new().fallback(|| async { "hello" })).await
}

fn why(error: &Error) -> String {
    assert_eq!(class(error), "refused", "{error:?}");
    assert!(!error.effect_possible());
    error.public()
}

#[tokio::test]
async fn the_request_arrives_as_it_was_made() {
    let server = Server::start(Router::new().route(
        "/customers",
        any(|| async { (StatusCode::CREATED, [("content-type", "application/json")], r#"{"id":7}"#) }),
    ))
    .await;
    let guard = open_to(&[&server]);
    let url = format!("{}/customers?phone=%2B15550100001", server.url);
    for method in [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
        let answer = send(&guard, method.clone(), &url, ample()).await.unwrap();
        assert_eq!((answer.status, answer.content_type.as_str()), (201, "application/json"));
        assert_eq!(answer.body, br#"{"id":7}"#);
        let seen = server.seen().pop().unwrap();
        assert_eq!((seen.method.as_str(), seen.target.as_str()), (method.as_str(), "/customers?phone=%2B15550100001"));
        assert_eq!(seen.headers["authorization"], "Bearer s3cret");
        assert_eq!(seen.headers["user-agent"], "switchboard");
        if method == Method::GET {
            assert_eq!(seen.body, "");
        } else {
            assert_eq!(seen.headers["content-type"], "application/json");
            assert_eq!(serde_json::from_str::<Value>(&seen.body).unwrap(), json!({"n": 1}));
        }
    }
}

/// Every status is the caller's to judge; nothing is retried.
#[tokio::test]
async fn every_status_is_an_answer() {
    for status in [400, 401, 404, 409, 429, 500, 503] {
        let server =
            Server::start(Router::new().fallback(move || async move { StatusCode::from_u16(status).unwrap() })).await;
        for method in [Method::GET, Method::POST] {
            let answer = send(&open_to(&[&server]), method, &server.url, ample()).await.unwrap();
            assert_eq!(answer.status, status);
        }
        assert_eq!(server.seen().len(), 2, "{status}");
    }
}

#[tokio::test]
async fn a_redirect_on_the_same_server_is_followed_with_its_headers() {
    let routes = Router::new()
        .route("/old", get(|| async { redirect(301, "../new?x=1") }))
        .route("/new", get(|| async { "here" }));
    let server = Server::start(routes).await;
    let answer = fetch(&open_to(&[&server]), &format!("{}/old", server.url)).await.unwrap();
    assert_eq!(answer.body, b"here");
    let seen = server.seen();
    assert_eq!(seen[1].target, "/new?x=1");
    assert_eq!(seen[1].headers["authorization"], "Bearer s3cret");
}

#[tokio::test]
async fn a_redirect_written_in_utf_8_is_followed() {
    let routes =
        Router::new().route("/old", get(|| async { redirect(302, "/näher?ort=Köln") })).fallback(|| async { "here" });
    let server = Server::start(routes).await;
    let answer = fetch(&open_to(&[&server]), &format!("{}/old", server.url)).await.unwrap();
    assert_eq!(answer.body, b"here");
    assert_eq!(server.seen()[1].target, "/n%C3%A4her?ort=K%C3%B6ln");
}

#[tokio::test]
async fn headers_do_not_travel_to_another_server() {
    let target = greeting().await;
    for status in [301, 302, 303, 307, 308] {
        let first = redirecting(status, &format!("{}/there", target.url)).await;
        let answer = fetch(&open_to(&[&first, &target]), &first.url).await.unwrap();
        assert_eq!(answer.body, b"hello", "{status}");
        let seen = target.seen().pop().unwrap();
        for secret in ["authorization", "x-api-key"] {
            assert!(!seen.headers.contains_key(secret), "{status}: {secret} went to another port");
        }
        assert_eq!(seen.headers["accept"], "application/json", "what says nothing stays");
    }
    // The next redirect does not restore them.
    let last = greeting().await;
    let middle = redirecting(302, &last.url).await;
    let first = redirecting(302, &middle.url).await;
    fetch(&open_to(&[&first, &middle, &last]), &first.url).await.unwrap();
    assert!(!last.seen()[0].headers.contains_key("authorization"));
}

#[tokio::test]
async fn a_redirect_to_a_private_address_is_refused() {
    let private = greeting().await;
    let port = private.address.port();
    for target in [
        private.url.clone(),
        format!("http://localhost:{port}/"),
        format!("https://localhost:{port}/"),
        format!("https://127.0.0.1:{port}/"),
        format!("https://[::1]:{port}/"),
        format!("https://[::ffff:127.0.0.1]:{port}/"),
        format!("https://0x7f.1:{port}/"),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "https://169.254.169.254/latest/meta-data/".to_owned(),
        "https://10.0.0.1/".to_owned(),
        "file:///etc/passwd".to_owned(),
        "ftp://93.184.216.34/".to_owned(),
        "//127.0.0.1:1/".to_owned(),
        "http://".to_owned(),
    ] {
        let first = redirecting(302, &target).await;
        let error = fetch(&open_to(&[&first]), &first.url).await.unwrap_err();
        assert!(!why(&error).is_empty(), "{target}");
    }
    assert_eq!(private.seen().len(), 0);
}

#[tokio::test]
async fn a_redirect_with_a_user_name_in_it_is_refused() {
    let server = greeting().await;
    let first = redirecting(302, &format!("http://user:pass@{}/", server.address)).await;
    let error = fetch(&open_to(&[&first, &server]), &first.url).await.unwrap_err();
    assert!(why(&error).contains("user name"));
    assert_eq!(server.seen().len(), 0);
}

/// Only the named port is open; other services of the same machine are not.
#[tokio::test]
async fn an_open_name_is_open_on_its_port_only() {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let private = listener.local_addr().unwrap().port();
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = connections.clone();
    tokio::spawn(async move {
        while listener.accept().await.is_ok() {
            counted.fetch_add(1, Ordering::SeqCst);
        }
    });
    let server = greeting().await;
    let guard = Outbound::new(vec![format!("localhost:{}", server.address.port())]).unwrap();
    let answer = fetch(&guard, &format!("http://localhost:{}/", server.address.port())).await.unwrap();
    assert_eq!(answer.body, b"hello");

    assert!(guard.parse(&format!("http://localhost:{private}/")).is_err());
    let error = guard.parse(&format!("https://localhost:{private}/")).unwrap_err();
    assert!(error.contains("not on the public internet"), "{error}");
    assert_eq!(connections.load(Ordering::SeqCst), 0, "nothing may connect there, not even to be turned away");
}

#[tokio::test]
async fn a_loop_of_redirects_ends() {
    let server = Server::start(Router::new().fallback(|| async { redirect(302, "/again") })).await;
    let error = fetch(&open_to(&[&server]), &server.url).await.unwrap_err();
    assert_eq!(why(&error), "it redirects more than 5 times");
    assert_eq!(server.seen().len(), 6);
}

/// A redirected POST would be sent twice or become a GET, so the caller gets the redirect.
#[tokio::test]
async fn only_a_get_follows_redirects() {
    let target = greeting().await;
    for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
        for status in [301, 302, 303, 307, 308] {
            let first = redirecting(status, &target.url).await;
            let answer = send(&open_to(&[&first, &target]), method.clone(), &first.url, ample()).await.unwrap();
            assert_eq!((answer.status, answer.body.len()), (status, 0));
            assert_eq!(first.seen().len(), 1);
        }
    }
    assert_eq!(target.seen().len(), 0);
}

#[tokio::test]
async fn no_more_than_the_limit_is_read() {
    let routes = Router::new()
        .route("/fits", get(|| async { "x".repeat(LIMIT) }))
        .route("/declared", get(|| async { "x".repeat(LIMIT + 1) }))
        .route(
            "/endless",
            get(|| async { Body::from_stream(stream::repeat_with(|| Ok::<_, std::io::Error>("x".repeat(100)))) }),
        );
    let server = Server::start(routes).await;
    let guard = open_to(&[&server]);
    assert_eq!(fetch(&guard, &format!("{}/fits", server.url)).await.unwrap().body.len(), LIMIT);
    for path in ["declared", "endless"] {
        let error = fetch(&guard, &format!("{}/{path}", server.url)).await.unwrap_err();
        assert_eq!(class(&error), "too large", "{path}");
        assert!(error.to_string().ends_with("gave an answer of more than 1024 bytes"), "{error}");
    }
}

#[tokio::test]
async fn the_deadline_ends_every_kind_of_slowness() {
    let drip = || {
        let drops = stream::unfold((), |()| async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            Some((Ok::<_, std::io::Error>("x"), ()))
        });
        Body::from_stream(drops)
    };
    let routes = Router::new()
        .route("/silent", any(|| async { std::future::pending::<()>().await }))
        .route("/drip", any(move || async move { drip() }));
    let server = Server::start(routes).await;
    let guard = open_to(&[&server]);
    for path in ["silent", "drip"] {
        for method in [Method::GET, Method::POST] {
            let error = send(&guard, method, &format!("{}/{path}", server.url), short()).await.unwrap_err();
            assert_eq!(class(&error), "no answer", "{path}");
            assert!(error.effect_possible(), "{path}");
        }
    }
    assert_eq!(server.seen().len(), 4, "nothing is tried again");
}

#[tokio::test]
async fn an_unreachable_address_and_one_that_is_no_web_server() {
    let dead = nowhere();
    let guard = Outbound::new(vec![dead.trim_start_matches("http://").to_owned()]).unwrap();
    let error = fetch(&guard, &dead).await.unwrap_err();
    assert_eq!(class(&error), "unreachable");
    assert!(!error.effect_possible());

    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            drop(connection);
        }
    });
    let guard = Outbound::new(vec![address.to_string()]).unwrap();
    let error = send(&guard, Method::POST, &format!("http://{address}/"), ample()).await.unwrap_err();
    assert_eq!(class(&error), "no answer");
    assert!(error.effect_possible());
}

#[tokio::test]
async fn an_error_holds_neither_the_address_nor_a_header() {
    let dead = nowhere();
    let guard = Outbound::new(vec![dead.trim_start_matches("http://").to_owned()]).unwrap();
    let error = fetch(&guard, &format!("{dead}/t0ken?key=t0ken")).await.unwrap_err();
    let shown = format!("{error} {} {}", shared::error::chain(&error), error.public());
    assert!(!shown.contains("t0ken") && !shown.contains("s3cret"), "{shown}");
}
