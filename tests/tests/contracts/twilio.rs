//! The Twilio client against its stand-in: requests, names of failures, and retries.
//!
//! A message cannot be taken back and Twilio has no idempotency key, so the tests count messages.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

use local::standins::{
    Fault, Standin,
    twilio::{self as standin, Options},
};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use shared::{
    Deadline,
    clients::{
        Error, Twilio, http_client,
        twilio::{Account, NumberStatus, SentMessage, why},
    },
    models::E164,
};
use tests::clients::{LATE, ample, anywhere, class, excerpt, fixture, nowhere, short, until};

const SID: &str = "AC00000000000000000000000000000000";
const FROM: &str = "+14155552345";
const TO: &str = "+15558675310";
const CALLBACK: &str = "https://api.switchboard.example/api/hooks/twilio/statuses";
const TEXT: &str = "Olá & 👍 +1";

fn start() -> Standin<standin::Twilio> {
    let mut options = Options::default().with_account(SID, "s3cret", &[FROM]).with_unsubscribed("+15550100009");
    options.accounts[0].api_keys.push(("SK11111111111111111111111111111111".into(), "k3y".into()));
    standin::start(anywhere(), options).unwrap()
}

fn account() -> Account {
    serde_json::from_value(json!({"account_sid": SID, "auth_token": "s3cret"})).unwrap()
}

fn number(text: &str) -> E164 {
    text.parse().unwrap()
}

async fn send(url: &str, deadline: Deadline) -> Result<SentMessage, Error> {
    let client = Twilio::new(http_client().unwrap(), url);
    client.send_message(&account(), &number(FROM), &number(TO), TEXT, CALLBACK, deadline).await
}

#[tokio::test]
async fn the_request_is_the_one_twilio_documents() {
    let twilio = start();
    let message = send(&twilio.url, ample()).await.unwrap();

    let vector = &fixture("twilio_messages.json")["request"];
    let sent = &twilio.requests()[0];
    assert_eq!(sent.method, vector["method"]);
    assert_eq!(format!("https://api.twilio.com{}", sent.path), vector["url"]);
    assert_eq!(sent.query, []);
    for name in ["content-type", "accept"] {
        let wanted = vector["headers"].as_object().unwrap().iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        assert_eq!(&sent.headers[name], wanted.unwrap().1, "{name}");
    }
    // printf '%s' 'AC00000000000000000000000000000000:s3cret' | base64
    assert_eq!(sent.headers["authorization"], "Basic QUMwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDpzM2NyZXQ=");
    assert_eq!(sent.body, vector["form"], "the fields, decoded again, whatever is in the text");
    let encoded = vector["form_encoded"].as_str().unwrap();
    assert_eq!(sent.headers["content-length"], encoded.len().to_string(), "encoded as {encoded}");

    let messages = twilio.messages();
    assert_eq!((messages.len(), &messages[0].sid), (1, &message.sid));
    assert_eq!(message.status, "queued");
}

#[tokio::test]
async fn an_api_key_signs_in_for_its_account() {
    let twilio = start();
    let account: Account = serde_json::from_value(json!({
        "account_sid": SID, "auth_token": "not this one",
        "api_key_sid": "SK11111111111111111111111111111111", "api_key_secret": "k3y",
    }))
    .unwrap();
    let client = Twilio::new(http_client().unwrap(), &twilio.url);
    client.send_message(&account, &number(FROM), &number(TO), "Hi", CALLBACK, ample()).await.unwrap();
    assert!(twilio.requests()[0].path.contains(SID), "the path names the account, not the key");
}

#[tokio::test]
async fn an_answer_of_the_documented_shape_is_read() {
    let twilio = start();
    let success = &fixture("twilio_messages.json")["responses"][0];
    twilio.inject(Fault::body(success["body"].clone()).with_header("x-unknown", "ignored"));
    let message = send(&twilio.url, ample()).await.unwrap();
    assert_eq!(message, SentMessage { sid: "SM00000000000000000000000000000000".into(), status: "queued".into() });
}

/// Every failure after which the message may have been sent: one request, no retry.
#[tokio::test]
async fn nothing_is_sent_again_once_it_may_have_been_sent() {
    let cases: [(&str, Fault, &str, usize); 7] = [
        ("the connection breaks after the effect", Fault::drop_after(), "no answer", 1),
        ("the connection breaks before the effect", Fault::drop_before(), "no answer", 0),
        ("500", Fault::status(500), "broken 500", 0),
        ("503 that Twilio acted on", Fault::status(503).with_effect(local::standins::Effect::First), "broken 503", 1),
        ("no JSON", Fault::body(json!("<html>")).with_effect(local::standins::Effect::First), "undecodable", 1),
        ("JSON without a sid", Fault::body(json!({"status": "queued"})), "undecodable", 0),
        ("an answer that is too large", Fault::body(json!("x".repeat(5_000_000))), "too large", 0),
    ];
    for (name, fault, expected, messages) in cases {
        let twilio = start();
        twilio.inject(fault);
        let error = send(&twilio.url, ample()).await.unwrap_err();
        assert_eq!(class(&error), expected, "{name}");
        assert!(error.effect_possible(), "{name}");
        assert_eq!(twilio.requests().len(), 1, "{name}");
        assert_eq!(twilio.messages().len(), messages, "{name}");
        assert_eq!(why(&error), "the SMS service did not confirm it", "{name}");
    }
}

#[tokio::test]
async fn a_late_answer_is_no_answer_and_the_message_went_once() {
    let twilio = start();
    twilio.inject(Fault::delay(LATE));
    let error = send(&twilio.url, short()).await.unwrap_err();
    assert_eq!(class(&error), "no answer");
    assert!(error.effect_possible());
    until(|| twilio.messages().len() == 1).await;
    assert_eq!(twilio.requests().len(), 1);
}

/// The HTTP library may retry by itself on a kept connection; it must not do so for a message.
#[tokio::test]
async fn a_kept_connection_that_breaks_does_not_repeat_the_message() {
    let twilio = start();
    let client = Twilio::new(http_client().unwrap(), &twilio.url);
    client.send_message(&account(), &number(FROM), &number(TO), "first", CALLBACK, ample()).await.unwrap();
    twilio.inject(Fault::drop_after());
    let error =
        client.send_message(&account(), &number(FROM), &number(TO), "second", CALLBACK, ample()).await.unwrap_err();
    assert_eq!(class(&error), "no answer");
    let texts: Vec<String> = twilio.messages().into_iter().map(|message| message.body).collect();
    assert_eq!(texts, ["first", "second"]);
}

#[tokio::test]
async fn an_unreachable_twilio_has_sent_nothing() {
    let error = send(&nowhere(), ample()).await.unwrap_err();
    assert_eq!(class(&error), "unreachable");
    assert!(!error.effect_possible());
    assert_eq!(why(&error), "the SMS service cannot be reached");
}

#[tokio::test]
async fn too_many_requests_is_tried_again_because_it_was_not_processed() {
    let twilio = start();
    twilio.inject(Fault::status(429).times(2));
    send(&twilio.url, ample()).await.unwrap();
    assert_eq!(
        twilio.requests().iter().map(|request| request.status).collect::<Vec<_>>(),
        [Some(429), Some(429), Some(201)]
    );
    assert_eq!(twilio.messages().len(), 1);
}

#[tokio::test]
async fn retry_after_is_honoured_and_never_beyond_the_deadline() {
    let twilio = start();
    twilio.inject(Fault::status(429).with_header("Retry-After", "0"));
    send(&twilio.url, ample()).await.unwrap();
    assert_eq!(twilio.requests().len(), 2);

    twilio.clear_requests();
    twilio.inject(Fault::status(429).with_header("Retry-After", "3600"));
    let error = send(&twilio.url, ample()).await.unwrap_err();
    assert_eq!(class(&error), "rate limited for 3600 s");
    assert!(!error.effect_possible());
    assert_eq!(why(&error), "too many messages are being sent just now");
    assert_eq!(twilio.requests().len(), 1, "there is no time to wait for so long");
}

#[tokio::test]
async fn a_429_that_does_not_end_is_reported_as_such() {
    let twilio = start();
    twilio.inject(Fault::status(429).times(100));
    let error = send(&twilio.url, ample()).await.unwrap_err();
    assert_eq!(class(&error), "rate limited");
    assert!(!error.effect_possible());
    assert_eq!(twilio.messages().len(), 0);
}

/// Every refusal of the vector in both of Twilio's error formats, and the stand-in's own refusals.
#[tokio::test]
async fn refusals_are_read_in_both_shapes_and_not_repeated() {
    let vectors = fixture("twilio_messages.json");
    let expected = [
        (400, "21211: The 'To' number [number] is not a valid phone number.", "the number does not exist"),
        (401, "20003: Authenticate", "the SMS account's credentials were refused"),
        (400, "20001: d", "the SMS service refused it"),
    ];
    let refusals = vectors["responses"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|it| it["status"].as_u64().is_some_and(|status| (400..500).contains(&status) && status != 429));
    let mut seen = 0;
    for (refusal, (status, text, reason)) in refusals.zip(expected) {
        let twilio = start();
        twilio.inject(Fault::status(status).with_body(refusal["body"].clone()));
        let error = send(&twilio.url, ample()).await.unwrap_err();
        assert_eq!(class(&error), format!("rejected {status}"));
        assert_eq!((excerpt(&error), why(&error)), (text, reason));
        assert!(!error.effect_possible());
        assert_eq!(twilio.requests().len(), 1);
        seen += 1;
    }
    assert_eq!(seen, expected.len(), "the vector holds as many refusals as are expected here");

    let twilio = start();
    twilio.inject(Fault::status(404).with_body(json!("<Response>not JSON</Response>")));
    let error = send(&twilio.url, ample()).await.unwrap_err();
    assert_eq!((class(&error).as_str(), excerpt(&error)), ("rejected 404", "<Response>not JSON</Response>"));
}

#[tokio::test]
async fn a_refusal_by_twilio_becomes_a_reason_for_the_model() {
    let twilio = start();
    let client = Twilio::new(http_client().unwrap(), &twilio.url);
    let text = "x".repeat(1_601);
    for (from, to, text, reason) in [
        (FROM, "+15550100009", "Hi", "this person has unsubscribed from messages"),
        ("+14155550000", TO, "Hi", "our own number cannot send messages"),
        (FROM, TO, text.as_str(), "the text is too long"),
    ] {
        let error =
            client.send_message(&account(), &number(from), &number(to), text, CALLBACK, ample()).await.unwrap_err();
        assert_eq!(why(&error), reason);
        assert!(!error.effect_possible());
    }
    let wrong: Account = serde_json::from_value(json!({"account_sid": SID, "auth_token": "wrong"})).unwrap();
    let error = client.send_message(&wrong, &number(FROM), &number(TO), "Hi", CALLBACK, ample()).await.unwrap_err();
    assert_eq!(class(&error), "rejected 401");
    assert_eq!(twilio.messages().len(), 0);
}

/// Basic credentials must not follow a redirect.
#[tokio::test]
async fn a_redirect_is_not_followed() {
    let (twilio, elsewhere) = (start(), start());
    twilio.inject(Fault::status(307).with_body(Value::Null).with_header("location", &elsewhere.url));
    let error = send(&twilio.url, ample()).await.unwrap_err();
    assert_eq!(class(&error), "rejected 307");
    assert_eq!(elsewhere.requests().len(), 0);
}

#[tokio::test]
async fn neither_credentials_nor_numbers_are_in_an_error() {
    let twilio = start();
    twilio.inject(Fault::status(400).with_body(json!({"code": 21211, "message": format!("'{TO}' is no number")})));
    let refused = send(&twilio.url, ample()).await.unwrap_err();
    let unreachable = send(&nowhere(), ample()).await.unwrap_err();
    for error in [refused, unreachable] {
        let shown = format!("{error} {} {}", shared::error::chain(&error), error.public());
        for secret in ["s3cret", SID, &TO[1..], &FROM[1..]] {
            assert!(!shown.contains(secret), "{shown}");
        }
    }
}

fn with_key(secret: &str) -> Account {
    let key = ("SK11111111111111111111111111111111".to_owned(), SecretString::from(secret.to_owned()));
    Account::new(SID.to_owned(), SecretString::from("s3cret".to_owned()), Some(key))
}

#[tokio::test]
async fn the_owner_of_a_number_is_who_twilio_says() {
    let mut options = Options::default().with_account(SID, "s3cret", &[FROM, "+141555523459"]);
    options.accounts[0].api_keys.push(("SK11111111111111111111111111111111".into(), "k3y".into()));
    let twilio = standin::start(anywhere(), options).unwrap();
    let client = Twilio::new(http_client().unwrap(), &twilio.url);
    let wrong: Account = serde_json::from_value(json!({"account_sid": SID, "auth_token": "wrong"})).unwrap();
    for (account, of, expected) in [
        (account(), FROM, NumberStatus::Owner),
        // Twilio's filter also finds it within the longer number.
        (account(), "+14155552346", NumberStatus::NotOwner),
        (account(), "+1415555234", NumberStatus::NotOwner),
        (wrong, FROM, NumberStatus::WrongAuthToken),
        (with_key("k3y"), FROM, NumberStatus::Owner),
        (with_key("no such key"), FROM, NumberStatus::WrongApiKey),
    ] {
        assert_eq!(client.number_status(&account, &number(of), ample()).await.unwrap(), expected, "{of}");
    }
    let asked = &twilio.requests()[0];
    assert_eq!(
        (asked.method.as_str(), asked.query.clone()),
        ("GET", vec![("PhoneNumber".to_owned(), FROM.to_owned())])
    );
    assert_eq!(asked.path, format!("/2010-04-01/Accounts/{SID}/IncomingPhoneNumbers.json"));
}

#[tokio::test]
async fn an_inconclusive_answer_of_twilio_is_not_a_verdict() {
    let twilio = start();
    let client = Twilio::new(http_client().unwrap(), &twilio.url);
    for status in [403, 404] {
        twilio.inject(Fault::status(status));
        let standing = client.number_status(&account(), &number(FROM), ample()).await.unwrap();
        assert_eq!(standing, NumberStatus::NoAccount, "{status}");
    }
    for (fault, expected) in [
        (Fault::status(400), "rejected 400"),
        (Fault::body(json!({"numbers": []})), "undecodable"),
        (Fault::status(429).with_header("Retry-After", "600"), "rate limited for 600 s"),
    ] {
        twilio.inject(fault);
        let error = client.number_status(&account(), &number(FROM), ample()).await.unwrap_err();
        assert_eq!(class(&error), expected);
    }
    // Reading is harmless, so it is retried.
    twilio.inject(Fault::status(500));
    assert_eq!(client.number_status(&account(), &number(FROM), ample()).await.unwrap(), NumberStatus::Owner);
}

/// A restricted key may send messages and not list numbers.
#[tokio::test]
async fn a_key_that_may_not_list_numbers_is_a_key_all_the_same() {
    let answer = |headers: axum::http::HeaderMap| async move {
        // printf '%s' 'SK11111111111111111111111111111111:k3y' | base64
        let by_key = headers["authorization"] == "Basic U0sxMTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTprM3k=";
        let status = if by_key { 403 } else { 200 };
        let body = json!({"incoming_phone_numbers": [{"phone_number": FROM}]});
        (axum::http::StatusCode::from_u16(status).unwrap(), body.to_string())
    };
    let server = tests::http_server::Server::start(axum::Router::new().fallback(answer)).await;
    let client = Twilio::new(http_client().unwrap(), &server.url);
    assert_eq!(client.number_status(&with_key("k3y"), &number(FROM), ample()).await.unwrap(), NumberStatus::Owner);
    assert_eq!(server.seen().len(), 2);
}

#[test]
fn an_account_is_read_from_the_secret_it_writes() {
    for account in [account(), with_key("k3y")] {
        let written = account.to_secret();
        let read: Account = serde_json::from_str(written.expose_secret()).unwrap();
        assert_eq!(read.to_secret().expose_secret(), written.expose_secret());
    }
    let written: Value = serde_json::from_str(account().to_secret().expose_secret()).unwrap();
    assert_eq!(written, json!({"account_sid": SID, "auth_token": "s3cret"}));
}
