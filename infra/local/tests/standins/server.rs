//! The parts that all stand-ins share: request log, faults, and shutdown. Uses Twilio's, whose requests have an
//! effect.
#![expect(clippy::expect_used, reason = "a test says what is missing and stops")]

use std::time::{Duration, Instant};

use local::standins::{
    DropAt, Effect, Fault, Standin,
    twilio::{self, Twilio},
};
use reqwest::RequestBuilder;
use serde_json::{Value, json};

use crate::client::{anywhere, client, json};

const SID: &str = "AC00000000000000000000000000000000";

fn twilio() -> Standin<Twilio> {
    let options = twilio::Options::default().with_account(SID, "secret", &["+14155552345"]);
    twilio::start(anywhere(), options).expect("a free port")
}

fn sms(twilio: &Standin<Twilio>, body: &str) -> RequestBuilder {
    let url = format!("{}/2010-04-01/Accounts/{SID}/Messages.json", twilio.url);
    let form = [("To", "+15558675310"), ("From", "+14155552345"), ("Body", body)];
    client().post(url).basic_auth(SID, Some("secret")).form(&form)
}

async fn faults(twilio: &Standin<Twilio>, faults: Value) -> u16 {
    let request = client().put(format!("{}/faults", twilio.url)).json(&faults);
    request.send().await.expect("an answer").status().as_u16()
}

async fn until(condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < Duration::from_secs(120), "the awaited state did not come");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn requests_are_recorded_in_order_with_their_answers() {
    let twilio = twilio();
    assert_eq!(json(sms(&twilio, "one").header("X-Trace", "a")).await.0, 201);
    let strange = client().put(format!("{}/nowhere?a=1&a=2&b=x%20y", twilio.url)).body("plain");
    assert_eq!(strange.send().await.expect("an answer").status(), 404);
    assert_eq!(client().post(&twilio.url).json(&json!({ "k": [1] })).send().await.expect("an answer").status(), 404);

    let (_, seen) = json(client().get(format!("{}/requests", twilio.url))).await;
    assert_eq!(seen, serde_json::to_value(twilio.requests()).expect("JSON"));
    let seen = seen.as_array().expect("a list");
    let shown: Vec<_> = seen.iter().map(|it| (it["method"].as_str(), it["status"].as_u64())).collect();
    assert_eq!(shown, [(Some("POST"), Some(201)), (Some("PUT"), Some(404)), (Some("POST"), Some(404))]);
    assert_eq!(seen[0]["path"], format!("/2010-04-01/Accounts/{SID}/Messages.json"));
    assert_eq!(seen[0]["headers"]["x-trace"], "a");
    assert_eq!(seen[0]["body"], json!([["To", "+15558675310"], ["From", "+14155552345"], ["Body", "one"]]));
    assert_eq!(seen[1]["query"], json!([["a", "1"], ["a", "2"], ["b", "x y"]]));
    assert_eq!(seen[1]["body"], "plain");
    assert_eq!(seen[2]["body"], json!({ "k": [1] }));

    let (status, _) = json(client().delete(format!("{}/requests", twilio.url))).await;
    assert_eq!((status, twilio.requests().len()), (204, 0));
    assert_eq!(twilio.messages().len(), 1, "the log of requests is not the record of effects");
}

#[tokio::test]
async fn a_status_fault_refuses_as_often_as_told() {
    let twilio = twilio();
    let fault = json!({ "status": 429, "times": 2, "headers": { "Retry-After": "1" } });
    assert_eq!(faults(&twilio, fault).await, 200);
    for _ in 0..2 {
        let answer = sms(&twilio, "refused").send().await.expect("an answer");
        assert_eq!(answer.headers().get("retry-after").and_then(|value| value.to_str().ok()), Some("1"));
        assert_eq!(answer.status(), 429);
        assert_eq!(answer.json::<Value>().await.expect("JSON")["code"], 20429);
    }
    assert_eq!(twilio.messages(), [], "a refused request has no effect");
    assert_eq!(json(sms(&twilio, "sent")).await.0, 201);
    assert_eq!(twilio.faults(), []);
}

#[tokio::test]
async fn a_fault_waits_for_the_request_it_is_for() {
    let twilio = twilio();
    twilio.inject(Fault::status(500).on("GET", "/Messages"));
    twilio.inject(Fault::status(503).on("POST", "/Messages"));
    assert_eq!(json(sms(&twilio, "x")).await.0, 503);
    assert_eq!(json(sms(&twilio, "x")).await.0, 201);
    assert_eq!(twilio.faults(), [Fault::status(500).on("GET", "/Messages")]);
    twilio.clear_faults();
    assert_eq!(twilio.faults(), []);
}

#[tokio::test]
async fn a_body_can_be_chosen_and_need_not_be_json() {
    let twilio = twilio();
    twilio.inject(
        Fault::status(502).with_body(json!("<html>bad gateway</html>")).with_header("content-type", "text/html"),
    );
    let answer = sms(&twilio, "x").send().await.expect("an answer");
    assert_eq!(answer.status(), 502);
    assert_eq!(answer.headers()["content-type"], "text/html");
    assert_eq!(answer.text().await.expect("a body"), "<html>bad gateway</html>");
}

#[tokio::test]
async fn a_dropped_connection_breaks_before_or_after_the_effect() {
    let twilio = twilio();
    assert_eq!(faults(&twilio, json!([{ "drop": "before" }, { "drop": "after" }])).await, 200);
    let error = sms(&twilio, "lost").send().await.expect_err("a broken connection");
    assert!(!error.is_timeout() && !error.is_connect() && error.is_request(), "{error:?}");
    assert_eq!(twilio.messages(), []);

    let error = sms(&twilio, "sent").send().await.expect_err("a broken connection");
    assert!(error.is_request(), "{error:?}");
    let sent = twilio.messages();
    assert_eq!(sent.iter().map(|message| message.body.as_str()).collect::<Vec<_>>(), ["sent"]);
    assert_eq!(twilio.requests().iter().map(|request| request.status).collect::<Vec<_>>(), [None, None]);
    assert_eq!(json(sms(&twilio, "next")).await.0, 201, "only the one connection is cut");
}

#[tokio::test]
async fn a_caller_who_hangs_up_does_not_stop_the_effect() {
    let twilio = twilio();
    twilio.inject(Fault::delay(60_000));
    let waiting = tokio::spawn(sms(&twilio, "first").send());
    until(|| twilio.messages().len() == 1).await;
    assert!(!waiting.is_finished(), "carried out before the delay");
    waiting.abort();

    twilio.inject(Fault::delay(300).with_effect(Effect::Last));
    let waiting = tokio::spawn(sms(&twilio, "last").send());
    until(|| twilio.requests().len() == 2).await;
    waiting.abort();
    until(|| twilio.messages().len() == 2).await;
    assert_eq!(twilio.messages().last().map(|message| message.body.clone()), Some("last".to_owned()));
}

#[tokio::test]
async fn a_held_request_is_answered_once_it_is_released() {
    let twilio = twilio();
    twilio.inject(Fault::held().times(2));
    let held = tokio::spawn(json(sms(&twilio, "held")));
    until(|| twilio.messages().len() == 1).await;
    assert!(!held.is_finished(), "it waits");
    twilio.release();
    assert_eq!(held.await.expect("the task").0, 201);
    assert_eq!(json(sms(&twilio, "after it")).await.0, 201, "the other fault holds nothing any more");
    assert_eq!(twilio.faults(), []);
}

#[tokio::test]
async fn an_error_answer_can_come_after_the_effect() {
    let twilio = twilio();
    assert_eq!(faults(&twilio, json!({ "status": 500, "effect": "first" })).await, 200);
    assert_eq!(json(sms(&twilio, "sent all the same")).await.0, 500);
    assert_eq!(twilio.messages().len(), 1);
}

#[tokio::test]
async fn faults_that_say_nothing_clear_are_refused() {
    let twilio = twilio();
    twilio.inject(Fault { drop: Some(DropAt::Before), ..Fault::default() });
    for wrong in [json!({ "stauts": 500 }), json!({ "times": 0 }), json!({ "status": 99 }), json!({ "drop": "during" })]
    {
        assert_eq!(faults(&twilio, json!([wrong])).await, 400, "{wrong}");
    }
    assert_eq!(twilio.faults().len(), 1, "a refused list replaces nothing");
    assert_eq!(faults(&twilio, json!([])).await, 200);
    assert_eq!(twilio.faults(), []);
}

#[tokio::test]
async fn the_end_closes_port_and_connections_and_frees_the_port() {
    let twilio = twilio();
    let address = twilio.address();
    let open = client();
    let url = format!("{}/requests", twilio.url);
    assert!(open.get(&url).send().await.expect("an answer").bytes().await.is_ok());
    twilio.inject(Fault::delay(60_000));
    let waiting = tokio::spawn(sms(&twilio, "under way").send());
    until(|| !twilio.requests().is_empty()).await;
    drop(twilio);
    assert!(waiting.await.expect("the task").is_err(), "a request under way ends with the stand-in");
    assert!(open.get(&url).send().await.is_err(), "a kept connection is closed too");
    let options = twilio::Options::default();
    assert_eq!(twilio::start(address, options).expect("the same port again").address(), address);
}

#[test]
fn two_of_a_kind_share_nothing_and_need_no_runtime() {
    let (one, other) = (twilio(), twilio());
    assert_ne!(one.url, other.url);
    one.inject(Fault::status(500));
    assert_eq!(other.faults(), []);
}
