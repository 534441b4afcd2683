//! Tokens of an account: asked for once, shared, renewed.

use std::time::Duration;

use axum::{Router, http::HeaderMap};
use futures_util::future::join_all;
use local::standins::{
    Fault, Recorded, Standin,
    llm::{self as standin, Options, Turn},
};
use serde_json::json;
use shared::{Deadline, clients::Reason, models::OrganizationId};
use tests::{
    clients::{LATE, ample, anywhere, class, excerpt, short, until},
    http_server::Server,
};

use super::ask;
use crate::llm_client::{chat, client, client_credentials, keyed, own, platforms, start};

/// Splits the requests into token requests and others.
fn sorted(llm: &Standin<standin::Llm>) -> (Vec<Recorded>, Vec<Recorded>) {
    llm.requests().into_iter().partition(|request| request.path == "/oauth/token")
}

// ------------------------------------------------------------------------------------------------ client credentials

#[tokio::test]
async fn the_request_for_a_token_is_the_one_of_rfc_6749() {
    let options = Options {
        client_id: "us: & co".into(),
        client_secret: "s3cret+/%".into(),
        scope: Some("chat models".into()),
        audience: Some("https://llm.example.com".into()),
        ..Options::default()
    };
    let llm = standin::start(anywhere(), options).unwrap();
    llm.script([Turn::text("Hello")]);
    let mut content = client_credentials(&llm.url);
    content["client_id"] = json!("us: & co");
    content["client_secret"] = json!("s3cret+/%");
    content["scope"] = json!("chat models");
    content["audience"] = json!("https://llm.example.com");
    ask(&client(&[]), &platforms(content), ample()).await.unwrap();
    let (tokens, asked) = sorted(&llm);
    let form = json!([
        ["grant_type", "client_credentials"],
        ["scope", "chat models"],
        ["audience", "https://llm.example.com"]
    ]);
    assert_eq!((tokens.len(), &tokens[0].body), (1, &form), "the client is in the header alone");
    assert_eq!(tokens[0].headers["content-type"], "application/x-www-form-urlencoded");
    assert!(tokens[0].headers["authorization"].starts_with("Basic "));
    assert!(asked[0].headers["authorization"].starts_with("Bearer llm_at_"));
}

#[tokio::test]
async fn one_token_serves_all_requests_even_ten_at_once() {
    let llm = start();
    llm.script(vec![Turn::text("x"); 11]);
    let (client, account) = (client(&[]), platforms(client_credentials(&llm.url)));
    // Late enough for the other nine requests to arrive while the first is being answered.
    llm.inject(Fault::delay(100).on("POST", "/oauth/token"));
    for answer in join_all((0..10).map(|_| ask(&client, &account, ample()))).await {
        answer.unwrap();
    }
    ask(&client.clone(), &account, ample()).await.unwrap();
    let (tokens, asked) = sorted(&llm);
    assert_eq!((tokens.len(), asked.len(), llm.tokens_granted()), (1, 11, 1));
}

#[tokio::test]
async fn a_request_waits_for_a_token_no_longer_than_its_own_deadline() {
    let llm = start();
    let (client, account) = (client(&[]), platforms(client_credentials(&llm.url)));
    llm.inject(Fault::delay(LATE).times(9).on("POST", "/oauth/token"));
    let first = ask(&client, &account, Deadline::after(Duration::from_secs(20)));
    let second = async {
        until(|| !llm.requests().is_empty()).await;
        ask(&client, &account, short()).await
    };
    tokio::select! {
        _ = first => panic!("the second was to give up first"),
        second = second => assert_eq!(class(&second.unwrap_err()), "unreachable"),
    }
}

#[tokio::test]
async fn two_organizations_never_share_a_token() {
    let llm = start();
    llm.script(vec![Turn::text("x"); 6]);
    let client = client(&[&llm.url]);
    let content = client_credentials(&llm.url);
    let accounts = [
        own(OrganizationId::generate(), content.clone()),
        own(OrganizationId::generate(), content.clone()),
        platforms(content),
    ];
    for account in accounts.iter().chain(&accounts) {
        ask(&client, account, ample()).await.unwrap();
    }
    let (tokens, asked) = sorted(&llm);
    assert_eq!((tokens.len(), asked.len()), (3, 6));
    let bearers: std::collections::BTreeSet<&String> = asked.iter().map(|it| &it.headers["authorization"]).collect();
    assert_eq!(bearers.len(), 3);
}

#[tokio::test]
async fn a_token_is_renewed_when_its_time_is_over() {
    let llm = standin::start(anywhere(), Options { token_life: 0, ..Options::default() }).unwrap();
    let server = Server::start(Router::new().fallback(|headers: HeaderMap| async move {
        let said = headers["authorization"].to_str().unwrap().to_owned();
        axum::Json(json!({"choices": [{"message": {"content": said}, "finish_reason": "stop"}]}))
    }))
    .await;
    let mut content = client_credentials(&llm.url);
    content["base_url"] = json!(server.url);
    let (client, account) = (client(&[]), platforms(content));
    let first = ask(&client, &account, ample()).await.unwrap().text;
    let second = ask(&client, &account, ample()).await.unwrap().text;
    assert!(first.starts_with("Bearer llm_at_") && second.starts_with("Bearer llm_at_") && first != second);
}

/// A token may expire early: a refused token is replaced once.
#[tokio::test]
async fn a_refused_token_is_replaced_once_and_only_once() {
    let llm = start();
    llm.script(vec![Turn::text("x"); 9]);
    let (client, account) = (client(&[]), platforms(client_credentials(&llm.url)));
    ask(&client, &account, ample()).await.unwrap();
    llm.expire_tokens();
    ask(&client, &account, ample()).await.unwrap();
    let (tokens, asked) = sorted(&llm);
    assert_eq!((tokens.len(), asked.len()), (2, 3));

    llm.clear_requests();
    llm.inject(chat(Fault::status(401).times(9)));
    let error = ask(&client, &account, ample()).await.unwrap_err();
    assert_eq!((class(&error).as_str(), error.reason()), ("rejected 401", Some(Reason::Credentials)));
    let (tokens, asked) = sorted(&llm);
    assert_eq!((tokens.len(), asked.len()), (1, 2));

    // A key is not replaced.
    llm.clear_requests();
    ask(&client, &keyed(&llm.url), ample()).await.unwrap_err();
    assert_eq!(llm.requests().len(), 1);
}

#[tokio::test]
async fn a_revocation_met_by_many_costs_one_token() {
    let llm = start();
    llm.script(vec![Turn::text("x"); 9]);
    let (client, account) = (client(&[]), platforms(client_credentials(&llm.url)));
    ask(&client, &account, ample()).await.unwrap();
    llm.expire_tokens();
    for answer in join_all((0..5).map(|_| ask(&client, &account, ample()))).await {
        answer.unwrap();
    }
    assert_eq!(llm.tokens_granted(), 2, "only the refused token is dropped, not its successor");
}

#[tokio::test]
async fn wrong_credentials_are_told_from_a_broken_token_endpoint() {
    let llm = start();
    llm.script(vec![Turn::text("x"); 9]);
    let client = client(&[]);
    let mut wrong = client_credentials(&llm.url);
    wrong["client_secret"] = json!("llm-client-secret-of-yesterday");
    let error = ask(&client, &platforms(wrong), ample()).await.unwrap_err();
    assert_eq!((class(&error).as_str(), error.reason()), ("rejected 401", Some(Reason::Credentials)));
    assert_eq!(excerpt(&error), "token_url: invalid_client: Client authentication failed");
    assert_eq!(sorted(&llm).0.len(), 1, "not asked again");

    let token = |fault: Fault| fault.on("POST", "/oauth/token");
    let account = || platforms(client_credentials(&llm.url));
    let scope = json!({"error": "invalid_scope", "error_description": "llm-client-secret has no such scope"});
    for (fault, expected) in [
        (Fault::status(400).with_body(scope), "rejected 400"),
        (Fault::status(429).with_header("Retry-After", "300"), "rate limited for 300 s"),
        (Fault::body(json!({"token_type": "Bearer"})), "undecodable"),
        (Fault::body(json!({"access_token": "t", "token_type": "mac"})), "undecodable"),
        (Fault::body(json!("<html>")), "undecodable"),
    ] {
        llm.inject(token(fault));
        let error = ask(&client, &account(), ample()).await.unwrap_err();
        assert_eq!(class(&error), expected);
    }
    assert!(sorted(&llm).1.is_empty(), "nothing was asked without a token");
    for fault in [Fault::status(503), Fault::drop_before(), Fault::status(429).with_header("Retry-After", "0")] {
        llm.inject(token(fault));
        ask(&self::client(&[]), &account(), ample()).await.unwrap();
    }
}
