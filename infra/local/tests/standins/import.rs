//! The stand-ins together: a Twilio number is imported at VAPI, released, and called.
#![expect(clippy::expect_used, clippy::indexing_slicing, reason = "a test says what is missing and stops")]

use local::standins::{
    Standin,
    twilio::{self, Twilio},
    vapi::{self, Vapi},
};
use serde_json::{Value, json};

use crate::client::{anywhere, client, json};

const ACCOUNT: &str = "AC00000000000000000000000000000001";
const NUMBER: &str = "+15550100002";
const ASSISTANT: &str = "33333333-3333-4333-8333-333333333333";

fn start() -> (Standin<Twilio>, Standin<Vapi>) {
    let options = twilio::Options::default().with_account(ACCOUNT, "secret", &[NUMBER, "+15550100003"]);
    let twilio = twilio::start(anywhere(), options).expect("a free port");
    let options = vapi::Options { twilio: Some(twilio.url.clone()), ..vapi::Options::default() };
    let vapi = vapi::start(anywhere(), options.with_assistant(ASSISTANT)).expect("a free port");
    (twilio, vapi)
}

fn wish() -> Value {
    json!({
        "provider": "twilio", "number": NUMBER, "assistantId": ASSISTANT,
        "twilioAccountSid": ACCOUNT, "twilioAuthToken": "secret",
    })
}

async fn import(vapi: &Standin<Vapi>, body: &Value) -> (u16, Value) {
    json(client().post(format!("{}/phone-number", vapi.url)).bearer_auth("vapi-private-key").json(body)).await
}

fn at_twilio(twilio: &Standin<Twilio>, rest: &str) -> String {
    format!("{}/2010-04-01/Accounts/{ACCOUNT}/IncomingPhoneNumbers{rest}", twilio.url)
}

async fn number(twilio: &Standin<Twilio>) -> Value {
    let list = client().get(at_twilio(twilio, ".json?PhoneNumber=%2B15550100002")).basic_auth(ACCOUNT, Some("secret"));
    json(list).await.1["incoming_phone_numbers"][0].clone()
}

async fn call(twilio: &Standin<Twilio>) -> Value {
    let ringing = json!({ "from": "+15550100001", "to": NUMBER });
    json(client().post(format!("{}/simulate/incoming-call", twilio.url)).json(&ringing)).await.1
}

#[tokio::test]
async fn an_imported_number_rings_at_vapi_until_its_owner_says_otherwise() {
    let (twilio, vapi) = start();
    assert_eq!(call(&twilio).await["failure"], format!("the number {NUMBER} has no voice URL"));

    let (status, imported) = import(&vapi, &wish()).await;
    assert_eq!((status, &imported["number"], &imported["provider"]), (201, &json!(NUMBER), &json!("twilio")));
    assert!(imported.get("twilioAuthToken").is_none(), "{imported}");
    let at_twilio_now = number(&twilio).await;
    assert_eq!(at_twilio_now["voice_url"], format!("{}/twilio/inbound_call", vapi.url));
    assert_eq!(at_twilio_now["sms_url"], format!("{}/twilio/sms", vapi.url));
    let answered = call(&twilio).await;
    assert!(answered["response"]["body"].as_str().expect("TwiML").contains("/transport"), "{answered}");

    let sid = at_twilio_now["sid"].as_str().expect("a sid");
    let change = [("VoiceUrl", "http://127.0.0.1:9/mine"), ("VoiceMethod", "POST"), ("Unknown", "is not read")];
    let change =
        client().post(at_twilio(&twilio, &format!("/{sid}.json"))).basic_auth(ACCOUNT, Some("secret")).form(&change);
    let (status, changed) = json(change).await;
    assert_eq!((status, &changed["voice_url"]), (200, &json!("http://127.0.0.1:9/mine")));
    assert_eq!(changed["sms_url"], at_twilio_now["sms_url"], "what was not named stays");
    assert_eq!(twilio.voice_url(NUMBER).as_deref(), Some("http://127.0.0.1:9/mine"));
    let answered = call(&twilio).await;
    assert_eq!(answered["request"]["url"], "http://127.0.0.1:9/mine");
    assert!(answered["failure"].as_str().expect("nobody is there").starts_with("no response"), "{answered}");
}

#[tokio::test]
async fn vapi_imports_only_numbers_of_its_owner() {
    let (twilio, vapi) = start();
    let refused = async |change: Value, says: &str| {
        let mut body = wish();
        for (name, value) in change.as_object().expect("an object") {
            body[name] = value.clone();
        }
        let (status, answer) = import(&vapi, &body).await;
        assert_eq!(status, 400, "{answer}");
        assert!(answer["message"].to_string().contains(says), "{says}: {answer}");
    };
    refused(json!({ "provider": "vonage" }), "provider must be one of the following values: twilio").await;
    refused(json!({ "number": "5550100002" }), "number must be a valid phone number in the E.164 format").await;
    refused(json!({ "phone": NUMBER }), "property phone should not exist").await;
    refused(json!({ "assistantId": "99999999-9999-4999-8999-999999999999" }), "Does Not Exist").await;
    refused(json!({ "twilioAuthToken": "wrong" }), "Authenticate").await;
    refused(json!({ "number": "+15550109999" }), "has no number").await;
    assert_eq!(number(&twilio).await["voice_url"], Value::Null, "a refused import changes nothing at Twilio");

    let (status, imported) = import(&vapi, &wish()).await;
    assert_eq!(status, 201);
    refused(json!({}), "already in use").await;
    let one = format!("{}/phone-number/{}", vapi.url, imported["id"].as_str().expect("an id"));
    assert_eq!(json(client().get(&one).bearer_auth("wrong")).await.0, 401);
    assert_eq!(json(client().delete(&one).bearer_auth("vapi-private-key")).await, (200, imported));
    assert_eq!(json(client().delete(&one).bearer_auth("vapi-private-key")).await.0, 404);
    assert_eq!(import(&vapi, &wish()).await.0, 201, "a number that was deleted can come back");
}

#[tokio::test]
async fn twilio_refuses_numbers_it_cannot_call() {
    let (twilio, _vapi) = start();
    let sid = number(&twilio).await["sid"].as_str().expect("a sid").to_owned();
    let change = async |sid: &str, form: &[(&str, &str)]| {
        let url = at_twilio(&twilio, &format!("/{sid}.json"));
        json(client().post(url).basic_auth(ACCOUNT, Some("secret")).form(form)).await
    };
    for (form, status, code) in [
        ([("VoiceMethod", "POST"), ("VoiceUrl", "example.com/voice")], 400, 21402),
        ([("VoiceMethod", "POST"), ("VoiceUrl", "http://myhost/voice")], 400, 21402),
        ([("VoiceUrl", "https://example.com/voice"), ("VoiceMethod", "PUT")], 400, 21403),
    ] {
        let (answered, body) = change(&sid, &form).await;
        assert_eq!((answered, &body["code"]), (status, &json!(code)), "{body}");
    }
    assert_eq!(number(&twilio).await["voice_url"], Value::Null, "nothing of a refused form is set");
    assert_eq!(change("PN00000000000000000000000000000000", &[]).await.1["code"], 20404);
    let wrong = client().post(at_twilio(&twilio, &format!("/{sid}.json"))).basic_auth(ACCOUNT, Some("wrong"));
    assert_eq!(json(wrong.form(&[("VoiceUrl", "")])).await.1["code"], 20003);
}
