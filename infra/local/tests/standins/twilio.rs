//! Twilio's stand-in against the shapes and codes of the Messages resource.
#![expect(clippy::expect_used, reason = "a test says what is missing and stops")]

use local::standins::{
    Standin,
    twilio::{self, Twilio},
};
use serde_json::{Value, json};

use crate::client::{anywhere, client, json};

const SID: &str = "AC00000000000000000000000000000000";
const FROM: &str = "+14155552345";

fn twilio() -> Standin<Twilio> {
    let mut options = twilio::Options::default().with_account(SID, "secret", &[FROM]).with_unsubscribed("+15550009999");
    let other = "AC11111111111111111111111111111111";
    options = options.with_account(other, "other", &["+15550002222"]);
    for account in &mut options.accounts {
        account.api_keys.push((format!("SK{}", &account.sid[2..]), "key secret".to_owned()));
    }
    twilio::start(anywhere(), options).expect("a free port")
}

fn messages_url(twilio: &Standin<Twilio>) -> String {
    format!("{}/2010-04-01/Accounts/{SID}/Messages.json", twilio.url)
}

async fn send(twilio: &Standin<Twilio>, form: &[(&str, &str)]) -> (u16, Value) {
    json(client().post(messages_url(twilio)).basic_auth(SID, Some("secret")).form(form)).await
}

#[tokio::test]
async fn a_message_is_accepted_in_the_documented_shape_and_kept() {
    let fixture: Value =
        serde_json::from_str(include_str!("../../../../tests/fixtures/twilio_messages.json")).expect("JSON");
    let twilio = twilio();
    let encoded = fixture["request"]["form_encoded"].as_str().expect("a form");
    let request = client()
        .post(messages_url(&twilio))
        .basic_auth(SID, Some("secret"))
        .header("content-type", "application/x-www-form-urlencoded")
        .body(encoded.to_owned());
    let (status, body) = json(request).await;
    assert_eq!(status, 201);
    let documented = fixture["responses"][0]["body"].as_object().expect("an object");
    let answered = body.as_object().expect("an object");
    assert_eq!(answered.keys().collect::<Vec<_>>(), documented.keys().collect::<Vec<_>>());
    for (name, value) in documented {
        assert_eq!(std::mem::discriminant(&answered[name]), std::mem::discriminant(value), "type of {name}");
    }
    let sid = body["sid"].as_str().expect("a sid");
    assert!(sid.len() == 34 && sid.starts_with("SM"), "{sid}");
    assert_eq!((&body["status"], &body["to"], &body["from"]), (&json!("queued"), &json!("+15558675310"), &json!(FROM)));
    let created = body["date_created"].as_str().expect("a date");
    assert!(created.ends_with("+0000") && created.as_bytes()[3] == b',', "RFC 2822: {created}");

    let kept = twilio.messages();
    assert_eq!(kept.len(), 1);
    assert_eq!((kept[0].body.as_str(), kept[0].sid.as_str()), ("Olá & 👍 +1", sid));
    let (_, over_http) = json(client().get(format!("{}/messages", twilio.url))).await;
    assert_eq!(over_http, serde_json::to_value(&kept).expect("JSON"));
    assert_eq!(json(client().delete(format!("{}/messages", twilio.url))).await.0, 204);
    assert_eq!(twilio.messages(), []);
}

#[tokio::test]
async fn wrong_credentials_are_401_with_code_20003() {
    let twilio = twilio();
    let form = [("To", "+15558675310"), ("From", FROM), ("Body", "x")];
    let url = messages_url(&twilio);
    let key = format!("SK{}", &SID[2..]);
    let foreign_key = "SK11111111111111111111111111111111";
    for (user, password, expected) in [
        (Some(SID), "secret", 201),
        (Some(key.as_str()), "key secret", 201),
        (Some(SID), "wrong", 401),
        (Some("AC22222222222222222222222222222222"), "secret", 401),
        (Some("AC11111111111111111111111111111111"), "other", 401),
        (Some(foreign_key), "key secret", 401),
        (None, "", 401),
    ] {
        let request = client().post(&url).form(&form);
        let request = if let Some(user) = user { request.basic_auth(user, Some(password)) } else { request };
        let (status, body) = json(request).await;
        assert_eq!(status, expected, "{user:?}");
        if status == 401 {
            let more_info = "https://www.twilio.com/docs/errors/20003";
            assert_eq!(
                body,
                json!({ "code": 20003, "message": "Authenticate", "more_info": more_info, "status": 401 })
            );
        }
    }
    assert_eq!(twilio.messages().len(), 2);
}

#[tokio::test]
async fn bad_fields_get_their_own_codes_and_send_nothing() {
    let twilio = twilio();
    let long = "x".repeat(1601);
    for (form, code) in [
        (vec![("From", FROM), ("Body", "x")], 21604),
        (vec![("To", "+15558675310"), ("Body", "x")], 21603),
        (vec![("To", "+15558675310"), ("From", FROM)], 21602),
        (vec![("To", "+15558675310"), ("From", FROM), ("Body", "")], 21602),
        (vec![("To", "+15558675310"), ("From", FROM), ("Body", &long)], 21617),
        (vec![("To", "5551234567"), ("From", FROM), ("Body", "x")], 21211),
        (vec![("To", "+15558675310"), ("From", "14155552345"), ("Body", "x")], 21212),
        (vec![("To", "+15558675310"), ("From", "+15550002222"), ("Body", "x")], 21606),
        (vec![("To", "+15558675310"), ("From", FROM), ("Body", "x"), ("StatusCallback", "/statuses")], 21609),
        (vec![("To", FROM), ("From", FROM), ("Body", "x")], 21266),
        (vec![("To", "+15550009999"), ("From", FROM), ("Body", "x")], 21610),
    ] {
        let (status, body) = send(&twilio, &form).await;
        assert_eq!((status, &body["code"], &body["status"]), (400, &json!(code), &json!(400)), "{body}");
        assert_eq!(body["more_info"], format!("https://www.twilio.com/docs/errors/{code}"));
    }
    assert_eq!(twilio.messages(), []);
    let longest = "é".repeat(1600);
    assert_eq!(send(&twilio, &[("To", "+15558675310"), ("From", FROM), ("Body", &longest)]).await.0, 201);
}

#[tokio::test]
async fn a_person_who_texts_a_keyword_gets_no_more_messages_from_that_number() {
    let twilio = twilio();
    let person = "+15558675310";
    let form = [("To", person), ("From", FROM), ("Body", "x")];
    for (number, body, status) in [
        (FROM, "Cancel it please", 201),
        ("+15550002222", "STOP", 201),
        (FROM, " cancel ", 400),
        (FROM, "Hello?", 400),
        (FROM, "Start", 201),
    ] {
        twilio.take_message(number, person, body);
        let (answered, answer) = send(&twilio, &form).await;
        assert_eq!(answered, status, "{body}");
        assert!(status == 201 || answer["code"] == 21610, "{answer}");
    }
}

#[tokio::test]
async fn a_json_body_is_not_read() {
    let twilio = twilio();
    let body = json!({ "To": "+15558675310", "From": FROM, "Body": "x" });
    let (status, body) = json(client().post(messages_url(&twilio)).basic_auth(SID, Some("secret")).json(&body)).await;
    assert_eq!((status, &body["code"]), (400, &json!(21604)));
    assert_eq!(twilio.messages(), []);
}

#[tokio::test]
async fn without_the_json_suffix_the_answer_is_xml() {
    let twilio = twilio();
    let url = messages_url(&twilio).replace("Messages.json", "Messages");
    let form = [("To", "+15558675310"), ("From", FROM), ("Body", "x")];
    let answer = client().post(url).basic_auth(SID, Some("secret")).form(&form).send().await.expect("an answer");
    assert_eq!(answer.status(), 404);
    assert_eq!(answer.headers()["content-type"], "application/xml");
    assert!(answer.text().await.expect("a body").contains("<TwilioResponse><RestException><Code>20404</Code>"));
    assert_eq!(twilio.messages(), []);
}

#[tokio::test]
async fn an_account_lists_its_own_numbers_and_no_others() {
    let mut options = twilio::Options::default().with_account(SID, "secret", &[FROM, "+14155552346", "+15550003333"]);
    options = options.with_account("AC11111111111111111111111111111111", "other", &["+15550002222"]);
    let twilio = twilio::start(anywhere(), options).expect("a free port");
    let url = format!("{}/2010-04-01/Accounts/{SID}/IncomingPhoneNumbers.json", twilio.url);
    let list = async |query: &str| json(client().get(format!("{url}{query}")).basic_auth(SID, Some("secret"))).await;
    let numbers = |page: &Value| -> Vec<String> {
        let found = page["incoming_phone_numbers"].as_array().expect("a list");
        found.iter().map(|number| number["phone_number"].as_str().expect("a number").to_owned()).collect()
    };

    let (status, page) = list("?PhoneNumber=%2B14155552345").await;
    assert_eq!((status, numbers(&page)), (200, vec![FROM.to_owned()]));
    assert_eq!(page["incoming_phone_numbers"][0]["account_sid"], SID);
    let sid = page["incoming_phone_numbers"][0]["sid"].as_str().expect("a sid");
    assert!(sid.len() == 34 && sid.starts_with("PN"), "{sid}");
    assert_eq!((&page["page"], &page["page_size"], &page["next_page_uri"]), (&json!(0), &json!(50), &Value::Null));

    assert_eq!(numbers(&list("?PhoneNumber=%2B1415555234").await.1), [FROM, "+14155552346"], "a part matches too");
    assert_eq!(numbers(&list("?PhoneNumber=%2B1415555234*").await.1).len(), 2);
    assert_eq!(numbers(&list("?PhoneNumber=%2B15550002222").await.1), Vec::<String>::new(), "another account's");
    assert_eq!(numbers(&list("").await.1).len(), 3);
    let (_, first) = list("?PageSize=2").await;
    let next = first["next_page_uri"].as_str().expect("a second page");
    let second = json(client().get(format!("{}{next}", twilio.url)).basic_auth(SID, Some("secret"))).await.1;
    assert_eq!(numbers(&second), ["+15550003333"]);

    assert_eq!(json(client().get(&url).basic_auth(SID, Some("wrong"))).await.1["code"], 20003);
    assert_eq!(json(client().get(&url)).await.0, 401);
    assert_eq!(json(client().delete(&url).basic_auth(SID, Some("secret"))).await.0, 405);
}
