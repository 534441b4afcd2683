//! Webhook signatures against the fixture's cases, which the services' own libraries confirm where they are strict.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

use base64::{Engine, prelude::BASE64_STANDARD};
use lambda_http::http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use shared::{
    clients::SigningKey,
    models::Timestamp,
    webhooks::{Delivery, Handshake, HookKeys, HookSecret, Rejection, Scheme, WebhookRequest, key_id, receive},
};
use tests::webhooks::{Signer, signed};

struct Case {
    scheme: Scheme,
    secrets: Vec<HookSecret>,
    keys: Vec<(String, SigningKey)>,
    method: String,
    url: String,
    headers: HeaderMap,
    body: Vec<u8>,
    now: Timestamp,
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn secrets(secret: &Value) -> Vec<HookSecret> {
    let member = |name: &str| secret[name].as_str().map(str::to_owned);
    match secret {
        Value::Null => Vec::new(),
        Value::String(secret) => vec![HookSecret::of(secret)],
        _ => {
            let shared = member("token").or(member("client_state")).unwrap_or_default();
            vec![HookSecret {
                channel_id: member("channel_id"),
                resource_id: member("resource_id"),
                subscription_id: member("subscription_id"),
                tenant_id: member("tenant_id"),
                audience: member("audience"),
                email: member("email"),
                ..HookSecret::of(shared)
            }]
        }
    }
}

impl Case {
    fn read(case: &Value) -> Self {
        let mut headers = HeaderMap::new();
        for header in case["headers"].as_array().unwrap() {
            let name: HeaderName = text(&header[0]).parse().unwrap();
            headers.append(name, HeaderValue::from_bytes(text(&header[1]).as_bytes()).unwrap());
        }
        let body = match case.get("body_base64").and_then(Value::as_str) {
            Some(body) => BASE64_STANDARD.decode(body).unwrap(),
            None => text(&case["body"]).as_bytes().to_vec(),
        };
        let keys = case["secret"]["jwks"]["keys"].as_array().into_iter().flatten();
        Self {
            scheme: serde_json::from_value(case["service"].clone()).unwrap(),
            secrets: secrets(&case["secret"]),
            keys: keys.filter_map(|key| SigningKey::of_jwk(key.clone())).collect(),
            method: text(&case["method"]).to_owned(),
            url: text(&case["url"]).to_owned(),
            headers,
            body,
            now: Timestamp::from_millis(case["now"].as_i64().unwrap() * 1_000),
        }
    }

    fn receive(&self) -> Result<Delivery, Rejection> {
        let request = WebhookRequest {
            method: &self.method,
            urls: &[self.url.as_str()],
            headers: &self.headers,
            body: &self.body,
            source: None,
        };
        let named = key_id(&request);
        let key = self.keys.iter().find(|(id, _)| Some(id) == named.as_ref()).map(|(_, key)| key);
        let keys = HookKeys { scheme: self.scheme, secrets: &self.secrets, google_key: key, own: None };
        receive(keys, &request, self.now)
    }
}

fn cases() -> Vec<Value> {
    let cases: Value = serde_json::from_str(include_str!("../../fixtures/webhook_signatures.json")).unwrap();
    cases.as_array().unwrap().clone()
}

fn case(service: &str, name: &str) -> Value {
    cases().into_iter().find(|case| case["service"] == service && case["name"] == name).unwrap()
}

#[test]
fn every_case_is_let_in_or_not_as_it_should_be() {
    let cases = cases();
    assert_eq!(cases.len(), 87);
    for vector in &cases {
        let name = format!("{}/{}: {}", text(&vector["service"]), text(&vector["name"]), text(&vector["why"]));
        let received = Case::read(vector).receive();
        let unauthentic = matches!(received, Err(Rejection::Unauthentic));
        assert_eq!(!unauthentic, vector["valid"].as_bool().unwrap(), "{name}: {received:?}");
        if let Some(400) = vector["expect"]["status"].as_u64() {
            // HubSpot does not treat an empty batch as an error, and no other service does either.
            assert!(matches!(received, Err(Rejection::Unusable(400))), "{name}: {received:?}");
        }
        if vector["kind"] == "handshake" && vector["valid"] == true {
            let shakes = matches!(received, Ok(Delivery::Handshake(_) | Delivery::Nothing));
            assert!(shakes, "{name}: {received:?}");
        }
        if let (Some(body), Ok(received)) = (vector["expect"]["body"].as_str(), &received) {
            assert!(matches!(received, Delivery::Handshake(Handshake::Text(text)) if text == body), "{name}");
        }
    }
}

#[test]
fn a_byte_more_or_less_anywhere_is_not_let_in() {
    for vector in cases().iter().filter(|case| case["valid"] == true && case["kind"] == "event") {
        let mut case = Case::read(vector);
        if matches!(case.scheme, Scheme::GooglePubsub | Scheme::GoogleCalendar | Scheme::MicrosoftGraph) {
            continue;
        }
        case.body.push(b' ');
        assert_eq!(case.receive().unwrap_err(), Rejection::Unauthentic, "{vector}");
    }
}

#[test]
fn either_of_two_secrets_is_enough_and_none_is_not() {
    for (service, name) in [("slack", "event"), ("github", "issue_opened"), ("hubspot", "batch_of_two")] {
        let Some(vector) = cases().into_iter().find(|case| case["service"] == service && case["name"] == name) else {
            continue;
        };
        let mut case = Case::read(&vector);
        case.secrets.insert(0, HookSecret::of("another"));
        assert!(case.receive().is_ok(), "{service}");
        case.secrets.swap(0, 1);
        assert!(case.receive().is_ok(), "{service}");
        case.secrets.pop();
        assert!(case.receive().is_ok(), "{service}");
        for secrets in [vec![], vec![HookSecret::of("another")], vec![HookSecret::of("")]] {
            case.secrets = secrets;
            assert_eq!(case.receive().unwrap_err(), Rejection::Unauthentic, "{service}");
        }
    }
}

#[test]
fn an_event_has_the_services_id_its_names_and_its_tenant() {
    for (service, name, id, event_type, tenant) in [
        ("slack", "event", "Ev0PV52K21", "message", Some("slack#A0MDYCDME#T061EG9R6")),
        (
            "stripe",
            "event",
            "evt_1QxYzA2eZvKYlo2CkM9tD5bF",
            "invoice.payment_failed",
            Some("stripe#acct_1032D82eZvKYlo2C"),
        ),
        (
            "notion",
            "event",
            "367cba44-b6f3-4c92-81e7-6a2e9659efd4",
            "page.properties_updated",
            Some("notion#0ef2e755-4912-8096-91c1-00376a88a5ca#13950b26-c203-4f3b-b97d-93ec06319565"),
        ),
        ("google_pubsub", "push", "2070443601311540", "mailbox.changed", Some("gmail#ops@acme.example")),
        (
            "google_calendar",
            "change",
            "4ba78bf0-6a47-11e2-bcfd-0800200c9a66 10",
            "calendar.changed",
            Some("google_calendar#4ba78bf0-6a47-11e2-bcfd-0800200c9a66"),
        ),
        ("hubspot", "batch_of_two", "3816279340 25 1795298397123", "contact.propertyChange", Some("hubspot#62515")),
        ("standard_webhooks", "vendor_test_vector", "msg_p5jXN8AQM9LWM0D4loKWxJek", "event", None),
        (
            "microsoft_graph",
            "notification",
            "lsgTZMr9KwAAA",
            "message.created",
            Some("microsoft_graph#7f105c7d-2dc5-4530-97cd-4e7ae6534c07"),
        ),
    ] {
        let Delivery::Events(events) = Case::read(&case(service, name)).receive().unwrap() else { panic!("{service}") };
        let event = &events[0];
        let found = (event.id_at_service.as_str(), event.event_types[0].as_str(), event.tenant.as_deref());
        assert_eq!(found, (id, event_type, tenant), "{service}");
        assert!(!event.data.to_string().contains("gq7Zp0u2Xw8rT1bYk5Vn"), "a secret is no data");
    }
    let Delivery::Events(events) = Case::read(&case("hubspot", "batch_of_two")).receive().unwrap() else { panic!() };
    assert_eq!(events.len(), 2);
    let Delivery::Events(events) = Case::read(&case("github", "form_content_type")).receive().unwrap() else {
        panic!()
    };
    assert_eq!(events[0].event_types[1], "issues");
    assert_eq!(events[0].id_at_service.len(), 43, "a hash of the body");
    let mut again = Case::read(&case("github", "form_content_type"));
    again.headers.insert("x-github-delivery", "another".parse().unwrap());
    let Delivery::Events(same) = again.receive().unwrap() else { panic!() };
    assert_eq!(same[0].id_at_service, events[0].id_at_service, "what is not signed says nothing");
}

/// A request with this body, as the service signs it with the secret `token`.
fn received(scheme: Scheme, signer: Signer<'_>, body: &Value) -> Delivery {
    let (base, path) = ("https://hooks.switchboard.example", "/api/hooks/h1");
    let sent = signed(base, path, signer, &body.to_string());
    let header = |(name, value): (&String, &String)| {
        (name.parse::<HeaderName>().unwrap(), value.parse::<HeaderValue>().unwrap())
    };
    let case = Case {
        scheme,
        secrets: vec![HookSecret::of("token")],
        keys: Vec::new(),
        method: "POST".to_owned(),
        url: format!("{base}{path}"),
        headers: sent.headers.iter().map(header).collect(),
        body: sent.body.unwrap().into_bytes(),
        now: Timestamp::now(),
    };
    case.receive().unwrap()
}

#[test]
fn a_removed_installation_of_github_ends_its_tenant_and_other_events_do_not() {
    let of = |event: &str, action: &str| {
        let body = json!({"action": action, "installation": {"id": 77}});
        received(Scheme::Github, Signer::Github("token", event), &body)
    };
    let Delivery::Ended(tenant) = of("installation", "deleted") else { panic!("the installation has ended") };
    assert_eq!(tenant.as_deref(), Some("github#77"));
    for (event, action) in [("installation", "created"), ("label", "deleted")] {
        let Delivery::Events(events) = of(event, action) else { panic!("{event} {action}") };
        assert_eq!(
            (events[0].event_types[0].clone(), events[0].tenant.as_deref()),
            (format!("{event}.{action}"), Some("github#77"))
        );
    }
    assert!(matches!(of("ping", ""), Delivery::Nothing));
}

#[test]
fn a_change_in_notion_by_the_integration_alone_is_no_event() {
    let by = |authors: Value| {
        let body = json!({"id": "e1", "type": "page.created", "integration_id": "i1", "workspace_id": "w1", "authors": authors});
        received(Scheme::Notion, Signer::Notion("token"), &body)
    };
    let (own, other) = (json!({"id": "i1", "type": "bot"}), json!({"id": "i2", "type": "bot"}));
    assert!(matches!(by(json!([own])), Delivery::Nothing));
    // A person may have the id of an integration.
    for authors in
        [json!([own, other]), json!([other]), json!([{"id": "i1", "type": "person"}]), json!([]), Value::Null]
    {
        assert!(matches!(by(authors.clone()), Delivery::Events(_)), "{authors}");
    }
}

#[test]
fn the_signed_header_of_standard_webhooks_names_the_event() {
    let mut svix = Case::read(&case("standard_webhooks", "vendor_test_vector"));
    for name in ["id", "timestamp", "signature"] {
        let value = svix.headers.remove(format!("webhook-{name}")).unwrap();
        svix.headers.insert(format!("svix-{name}").parse::<HeaderName>().unwrap(), value);
    }
    for unsigned in [None, Some("msg_2"), Some("msg_3")] {
        if let Some(unsigned) = unsigned {
            svix.headers.insert("webhook-id", unsigned.parse().unwrap());
        }
        let Delivery::Events(events) = svix.receive().unwrap() else { panic!("no events") };
        assert_eq!(events[0].id_at_service, "msg_p5jXN8AQM9LWM0D4loKWxJek", "{unsigned:?}");
    }
}

/// Twilio's signature joins names and values, so both forms have the same one.
#[test]
fn an_id_of_twilios_that_took_in_the_next_parameter_names_no_event() {
    let (base, path) = ("https://hooks.switchboard.example", "/api/hooks/twilio");
    let sid = "SM00000000000000000000000000000001";
    let form = json!({"From": "+14155550101", "MessageSid": sid, "NumMedia": "0", "To": "+15550100001"});
    let sent = signed(base, path, Signer::Twilio("token"), &form.to_string());
    let header = |(name, value): (&String, &String)| {
        (name.parse::<HeaderName>().unwrap(), value.parse::<HeaderValue>().unwrap())
    };
    let received = |body: &str| {
        let case = Case {
            scheme: Scheme::Twilio,
            secrets: vec![HookSecret::of("token")],
            keys: Vec::new(),
            method: "POST".to_owned(),
            url: format!("{base}{path}"),
            headers: sent.headers.iter().map(header).collect(),
            body: body.as_bytes().to_vec(),
            now: Timestamp::now(),
        };
        case.receive()
    };
    let Delivery::Events(events) = received(sent.body.as_ref().unwrap()).unwrap() else { panic!("no events") };
    assert_eq!(events[0].id_at_service, format!("{sid} received"));
    let moved = format!("From=%2B14155550101&MessageSid={sid}NumMedia0&To=%2B15550100001");
    assert_eq!(received(&moved).unwrap_err(), Rejection::Unusable(400));
}

#[test]
fn each_service_is_answered_while_it_waits() {
    for scheme in Scheme::ALL {
        let within = scheme.answered_within().as_millis();
        let waits = match scheme {
            Scheme::Slack | Scheme::MicrosoftGraph => 3_000,
            Scheme::Hubspot | Scheme::Linear => 5_000,
            _ => 10_000,
        };
        assert!(within < waits && within * 10 >= waits * 8, "{scheme:?}: {within}");
    }
}

fn sign_as_pipedream(case: &mut Case, at: i64) {
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, b"whsk_3f8a1c9be07d4e52");
    let mac = ring::hmac::sign(&key, &[format!("{at}.").as_bytes(), &case.body].concat());
    let hex = mac.as_ref().iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
    case.headers.insert("x-pd-signature", format!("t={at},v1={hex}").parse().unwrap());
}

#[test]
fn a_request_of_pipedream_that_is_replayed_after_midnight_is_the_same_event() {
    const MIDNIGHT: i64 = 20_779 * 86_400;
    let mut case = Case::read(&case("pipedream", "trigger_event"));
    sign_as_pipedream(&mut case, MIDNIGHT - 60);
    let ids = [-59, 60].map(|seconds| {
        case.now = Timestamp::from_millis((MIDNIGHT + seconds) * 1_000);
        let Delivery::Events(events) = case.receive().unwrap() else { panic!("no events") };
        events[0].id_at_service.clone()
    });
    assert_eq!(ids[0], ids[1]);
}

#[test]
fn the_same_event_of_pipedream_is_the_same_and_another_is_another() {
    let on_day = |body: &Value, days: u64| {
        let mut case = Case::read(&case("pipedream", "trigger_event"));
        case.now = case.now.plus(std::time::Duration::from_secs(days * 86_400));
        case.body = body.to_string().into_bytes();
        let at = case.now.as_seconds();
        sign_as_pipedream(&mut case, at);
        let Delivery::Events(events) = case.receive().unwrap() else { panic!("no events") };
        (events[0].id_at_service.clone(), events[0].data.clone())
    };
    let id = |body: &Value| on_day(body, 0);
    let stored = |at: u64| json!({"e": {"row": 1}, "k": "emit", "ts": at, "id": "ev1"});
    assert_eq!(id(&stored(1)), ("ev1".to_owned(), json!({"row": 1})));
    assert_eq!(id(&stored(2)).0, "ev1");
    let (one, data) = id(&json!({"row": 1}));
    assert_eq!(data, json!({"row": 1}));
    assert_eq!(id(&json!({"row": 1})).0, one);
    assert_ne!(id(&json!({"row": 2})).0, one);
    assert_ne!(on_day(&json!({"row": 1}), 1).0, one, "the same may happen again another day");
    assert_eq!(on_day(&stored(1), 1).0, "ev1");
}
