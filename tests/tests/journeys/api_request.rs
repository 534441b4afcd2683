//! `api_request` tools: requests, refusals, and the model's part of the answer.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

mod bodies;
mod secrets;

use std::time::Duration;

use axum::Router;
use serde_json::{Value, json};
use tests::{
    Options, World, api_request,
    http_server::Server,
    standins::{Fault, Recorded, Standin, twilio, vapi::ToolCall},
};

/// Any HTTP address: records requests and gives the prepared answers, otherwise 404.
type Address = Standin<twilio::Twilio>;

fn address() -> Address {
    twilio::start("127.0.0.1:0".parse().unwrap(), twilio::Options::default()).unwrap()
}

/// A world whose outbound guard allows these addresses.
async fn world(open: &[&Address]) -> World {
    let open_hosts = open.iter().map(|address| address.address().to_string()).collect();
    World::with(Options { open_hosts, ..Options::default() }).await
}

fn answers(address: &Address, status: u16, body: &Value) {
    address.inject(Fault::status(status).with_body(body.clone()));
}

fn received(address: &Address) -> Recorded {
    address.requests().pop().unwrap()
}

#[tokio::test]
async fn a_get_carries_its_parameters_and_gives_the_model_the_answer() {
    let crm = address();
    let world = world(&[&crm]).await;
    let mut config = api_request("GET", &format!("{}/customers?phone={{{{caller_phone_number}}}}", crm.url));
    config["headers"] =
        json!({"x-api-key": {"mode": "fixed", "value": "s3cret-key"}, "x-line": "{{called_phone_number}}"});
    config["body"] = json!({"name": {"mode": "ai", "prompt": "Name"}, "limit": {"mode": "fixed", "value": 5}});
    let tool = world.attached(&config).await;
    answers(&crm, 200, &json!({"name": "Ana Ruiz", "since": 2019}));
    let answer = world.call_tool(&world.call(&tool, json!({"body_name": "Ana & Co"}))).await;
    assert_eq!(answer.result(), &json!({"name": "Ana Ruiz", "since": 2019}));
    let request = received(&crm);
    assert_eq!((request.method.as_str(), request.path.as_str()), ("GET", "/customers"));
    let mut query = request.query.clone();
    query.sort();
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(query, [pair("limit", "5"), pair("name", "Ana & Co"), pair("phone", "+14155550101")]);
    assert_eq!(request.headers["x-api-key"], "s3cret-key");
    assert_eq!(request.headers["x-line"], world.home.phone_number);
    assert_eq!(request.body, Value::Null);
}

/// The network's text for a caller without a number is no value of the variable.
#[tokio::test]
async fn a_request_with_an_unknown_caller_number_is_refused() {
    let crm = address();
    let world = world(&[&crm]).await;
    let url = format!("{}/customers?phone={{{{caller_phone_number}}}}", crm.url);
    let in_body = json!({"phone": {"mode": "fixed", "value": "{{caller_phone_number}}"}});
    let mut posted = api_request("POST", &format!("{}/customers", crm.url));
    posted["body"] = in_body;
    for config in [api_request("GET", &url), posted] {
        let tool = world.attached(&config).await;
        for caller in ["anonymous", "Anonymous", "", "sip:ana@example.com", "client:ana", "Restricted", "+266696687"] {
            let call = ToolCall { customer_number: caller.to_owned(), ..world.call(&tool, json!({})) };
            let answer = world.call_tool(&call).await;
            assert!(answer.sentence().contains("caller's number is not known"), "{caller}: {}", answer.body);
        }
        assert!(crm.requests().is_empty());
    }
}

/// Refused when the tool is saved, not during a call.
#[tokio::test]
async fn a_host_that_can_never_be_public_is_refused_with_its_field() {
    let world = World::start().await;
    for host in [
        "localhost",
        "api.localhost",
        "metadata.google.internal",
        "printer.local",
        "db",
        "10.0.0.7",
        "[::1]",
        "169.254.169.254",
    ] {
        let answer = world.create(&api_request("GET", &format!("https://{host}/x"))).await;
        assert_eq!(answer.status, 422, "{host}: {}", answer.body);
        let problem = &answer.body["errors"][0];
        assert_eq!(problem["field"], "url.value", "{host}: {problem}");
        let told = problem["problem"].as_str().or_else(|| problem["message"].as_str()).unwrap();
        assert!(told.contains(host) && told.contains("give a public address"), "{host}: {told}");
    }
}

#[tokio::test]
async fn a_body_has_static_ai_and_united_members() {
    let crm = address();
    let world = world(&[&crm]).await;
    let mut config = api_request("POST", &format!("{}/bookings", crm.url));
    config["body"] = json!({
        "source": {"mode": "fixed", "value": {"channel": "phone", "caller": "{{caller_phone_number}}"}},
        "day": {"mode": "ai", "prompt": "Day", "schema": {"type": "string", "format": "date"}},
        "party": {"mode": "ai", "prompt": "How many", "schema": {"type": "integer"}, "required": false},
        "tags": {"mode": "array_extendable", "fixedValues": ["phone"], "aiExtension": {"enabled": true, "prompt": "Tags", "required": false}},
    });
    let tool = world.attached(&config).await;
    answers(&crm, 201, &json!({"id": 7}));
    let arguments =
        json!({"body_day": "2026-12-01", "body_tags": ["vip", "phone"], "body_source": "model", "body_party": ""});
    let answer = world.call_tool(&world.call(&tool, arguments)).await;
    assert_eq!(answer.result(), &json!({"id": 7}));
    assert!(answer.body["logs"].to_string().contains("body_source"), "{}", answer.body);
    assert_eq!(
        received(&crm).body,
        json!({"source": {"channel": "phone", "caller": "+14155550101"}, "day": "2026-12-01", "tags": ["phone", "vip"]}),
    );
}

#[tokio::test]
async fn a_list_of_numbers_is_united_with_the_models() {
    let crm = address();
    let world = world(&[&crm]).await;
    let mut config = api_request("POST", &format!("{}/bookings", crm.url));
    let extension = json!({"enabled": true, "prompt": "Rooms", "required": false});
    config["body"] = json!({"rooms": {"mode": "array_extendable", "fixedValues": [1, 2], "aiExtension": extension}});
    let tool = world.attached(&config).await;
    let property = &tool["function_schema"]["parameters"]["properties"]["body_rooms"];
    assert_eq!(property["items"], json!({"type": "integer"}));
    answers(&crm, 201, &json!({"id": 7}));
    let answer = world.call_tool(&world.call(&tool, json!({"body_rooms": [2, 3.0]}))).await;
    assert_eq!(answer.result(), &json!({"id": 7}));
    assert_eq!(received(&crm).body, json!({"rooms": [1, 2, 3]}));
    let answer = world.call_tool(&world.call(&tool, json!({"body_rooms": ["four"]}))).await;
    assert!(answer.sentence().contains("\"body_rooms[0]\" must be a whole number"), "{}", answer.body);
}

#[tokio::test]
async fn private_and_local_addresses_are_refused() {
    let private = address();
    let world = World::start().await;
    let port = private.address().port();
    for url in [
        format!("https://127.0.0.1:{port}/"),
        format!("http://127.0.0.1:{port}/"),
        format!("https://localhost:{port}/"),
        format!("https://LOCALHOST:{port}/"),
        format!("https://[::1]:{port}/"),
        format!("https://[::ffff:127.0.0.1]:{port}/"),
        format!("https://2130706433:{port}/"),
        format!("https://0x7f.1:{port}/"),
        format!("https://0177.0.0.1:{port}/"),
        format!("https://①②⑦.0.0.1:{port}/"),
        "https://169.254.169.254/latest/meta-data/".to_owned(),
        "https://10.0.0.8/".to_owned(),
        "https://192.168.1.1/".to_owned(),
        "https://[fd00:ec2::254]/".to_owned(),
        "https://0.0.0.0/".to_owned(),
        "https://user:pass@127.0.0.1/".to_owned(),
        "http://example.com/".to_owned(),
    ] {
        // A visibly private address is refused when it is saved.
        assert_eq!(world.create(&api_request("GET", &url)).await.wrong_fields(), ["url.value"], "{url}");
        let mut tool = world.attached(&api_request("GET", "https://a.example/")).await;
        tool["config_metadata"]["url"] = json!({"mode": "fixed", "value": url});
        world.aws.put("tools", &tool);
        let call = world.call(&tool, json!({}));
        let answer = world.send("execute", &world.vapi_event(&call).within(Duration::from_secs(3))).await;
        assert!(answer.sentence().contains("was not sent"), "{url}: {}", answer.body);
        for hidden in ["127", "localhost", "169.254", "10.0", "192.168", "fd00", "example"] {
            assert!(!answer.sentence().contains(hidden), "the author's address is hidden: {}", answer.body);
        }
    }
    assert!(private.requests().is_empty());
}

#[tokio::test]
async fn a_model_cannot_choose_an_address_that_is_refused() {
    let private = address();
    let world = World::start().await;
    let mut config = api_request("POST", "");
    config["url"] = json!({"mode": "ai", "prompt": "The address"});
    let tool = world.attached(&config).await;
    for url in [
        private.url.as_str(),
        "file:///etc/passwd",
        "gopher://127.0.0.1/",
        "127.0.0.1",
        "https://127.1/",
        "//localhost/",
    ] {
        let answer = world.call_tool(&world.call(&tool, json!({"url": url}))).await;
        assert!(answer.sentence().contains("was not sent"), "{url}: {}", answer.body);
    }
    assert!(private.requests().is_empty());
    assert!(world.aws.rows("idempotency").is_empty(), "nothing left the building");
}

#[tokio::test]
async fn redirects_are_checked_like_the_first_address() {
    let (open, private) = (address(), address());
    let world = world(&[&open]).await;
    let tool = world.attached(&api_request("GET", &format!("{}/a", open.url))).await;
    let port = private.address().port();
    for target in [
        private.url.clone(),
        format!("https://localhost:{port}/"),
        format!("//127.0.0.1:{port}/x"),
        "https://169.254.169.254/latest/meta-data/".to_owned(),
        "file:///etc/passwd".to_owned(),
        "http://[".to_owned(),
    ] {
        open.inject(Fault::status(302).with_header("location", &target));
        let answer = world.call_tool(&world.call(&tool, json!({}))).await;
        assert!(answer.sentence().contains("was not sent"), "{target}: {}", answer.body);
    }
    assert!(private.requests().is_empty());
}

#[tokio::test]
async fn redirects_are_followed_up_to_a_limit() {
    let open = address();
    let world = world(&[&open]).await;
    let tool = world.attached(&api_request("GET", &format!("{}/a", open.url))).await;
    for hop in 1..=5 {
        open.inject(Fault::status(302).with_header("location", &format!("/hop{hop}")));
    }
    answers(&open, 200, &json!("arrived"));
    world.call_tool(&world.call(&tool, json!({}))).await.result();
    assert_eq!(received(&open).path, "/hop5");

    open.inject(Fault::status(302).with_header("location", "/a").times(50));
    open.clear_requests();
    let answer = world.call_tool(&world.call(&tool, json!({}))).await;
    assert!(answer.sentence().contains("redirects to"), "{}", answer.body);
    assert_eq!(open.requests().len(), 6);
}

#[tokio::test]
async fn headers_do_not_travel_to_another_host() {
    let (first, second) = (address(), address());
    let world = world(&[&first, &second]).await;
    let mut config = api_request("GET", &format!("{}/a", first.url));
    config["headers"] = json!({"x-api-key": "s3cret-key", "authorization": "Bearer s3cret", "cookie": "s3cret=1", "accept": "text/csv"});
    let tool = world.attached(&config).await;
    first.inject(Fault::status(307).with_header("location", &second.url));
    answers(&second, 200, &json!({}));
    world.call_tool(&world.call(&tool, json!({}))).await.result();
    let headers = received(&second).headers;
    assert!(!json!(headers).to_string().contains("s3cret"), "{headers:?}");
    assert_eq!(headers["accept"], "text/csv");
}

#[tokio::test]
async fn a_post_follows_no_redirect() {
    let (open, other) = (address(), address());
    let world = world(&[&open, &other]).await;
    let tool = world.attached(&api_request("POST", &open.url)).await;
    open.inject(Fault::status(307).with_header("location", &other.url));
    world.call_tool(&world.call(&tool, json!({}))).await.sentence();
    assert_eq!((open.requests().len(), other.requests().len()), (1, 0));
}

#[tokio::test]
async fn an_answer_over_a_megabyte_is_not_read() {
    let open = address();
    let world = world(&[&open]).await;
    let tool = world.attached(&api_request("GET", &open.url)).await;
    answers(&open, 200, &json!("x".repeat(1024 * 1024 + 1)));
    let answer = world.call_tool(&world.call(&tool, json!({}))).await;
    assert!(answer.sentence().contains("too large"), "{}", answer.body);
}

#[tokio::test]
async fn a_long_answer_is_cut_for_the_model_and_says_so() {
    let open = address();
    let world = world(&[&open]).await;
    let tool = world.attached(&api_request("GET", &open.url)).await;
    answers(&open, 200, &json!("x".repeat(1024 * 1024)));
    let answer = world.call_tool(&world.call(&tool, json!({}))).await;
    let result = answer.result();
    assert!(result.to_string().len() <= 8_000);
    assert!(result.as_str().unwrap().ends_with(" of 1048576 bytes)"), "{result}");
    let orders: Vec<Value> = (0..5_000).map(|order| json!({"order": order})).collect();
    answers(&open, 200, &json!({"orders": orders}));
    let answer = world.call_tool(&world.call(&tool, json!({}))).await;
    let result = answer.result();
    assert!(result.to_string().len() <= 8_000);
    assert!(result["orders"].as_array().unwrap().last().unwrap().as_str().unwrap().ends_with(" more)"));
}

#[tokio::test]
async fn a_header_secret_that_is_echoed_is_not_shown() {
    let open = address();
    let world = world(&[&open]).await;
    for (secret, echo) in [
        ("Bearer s3cret-key", json!({"you_sent": {"authorization": "Bearer s3cret-key"}, "token": "s3cret-key"})),
        ("s3cret-key", json!("You sent s3cret-key")),
        // PHP and others escape in this way: the escaped text is the same secret.
        ("ab/cd+ef==", json!(r#"{"you_sent": "ab\/cd+ef=="}"#)),
        ("quo\"ted-key", json!(r#"{"you_sent": "quo\"ted-key"}"#)),
        ("s3cret-key", json!(r#"{"you_sent": "\u0073\u0033cret-key", "s3cret-key": 1}"#)),
    ] {
        let mut config = api_request("GET", &open.url);
        config["headers"] = json!({"authorization": {"mode": "fixed", "value": secret}});
        let tool = world.attached(&config).await;
        let bare = secret.trim_start_matches("Bearer ");
        for status in [200, 401, 500] {
            for body in [echo.clone(), json!({"message": format!("bad key {secret}")})] {
                answers(&open, status, &body);
                let answer = world.call_tool(&world.call(&tool, json!({}))).await;
                let shown = [answer.body["result"].to_string(), answer.body["error"].to_string()].concat();
                let shown = shown.replace("\\\"", "\"").replace("\\\\", "\\");
                assert!(!shown.contains(bare), "{secret} {status}: {shown}");
            }
        }
    }
}

/// In the result, in an error, in the history: in every spelling of the address.
#[tokio::test]
async fn a_fixed_value_is_hidden_when_the_service_echoes_it() {
    let crm = address();
    let world = world(&[&crm]).await;
    for method in ["POST", "GET"] {
        let mut config = api_request(method, &format!("{}/x?store=north/7", crm.url));
        config["body"] = json!({
            "tenant": {"mode": "fixed", "value": "blue horse/77"}, "plan": {"mode": "fixed", "value": {"code": ["vip-only-3"]}},
            "kind": {"mode": "fixed", "value": "primary"}, "open": {"mode": "fixed", "value": "shown-9", "secret": false},
            "line": "{{caller_phone_number}}", "name": {"mode": "ai", "prompt": "Name"},
        });
        let tool = world.attached(&config).await;
        let echo = json!({
            "tenant": "blue horse/77", "query": "tenant=blue%20horse%2F77&again=blue+horse%2F77", "coded": "Ymx1ZSBob3JzZS83Nw==",
            "text": "{\"code\":[\"vip-only-3\"]}", "url": format!("{}/x?store=north/7", crm.url), "store": "north/7",
            "kind": "primary", "open": "shown-9", "line": "+14155550101", "name": "Ana",
        });
        answers(&crm, 200, &echo);
        let result = world.call_tool(&world.call(&tool, json!({"body_name": "Ana"}))).await.result().clone();
        assert_eq!(
            result,
            json!({
                "tenant": "[secret]", "query": "tenant=[secret]&again=[secret]", "coded": "[secret]==",
                "text": "{\"code\":[\"[secret]\"]}", "url": "[secret]", "store": "[secret]",
                "kind": "primary", "open": "shown-9", "line": "+14155550101", "name": "Ana",
            })
        );
        answers(&crm, 422, &json!({"message": "no tenant blue horse/77 with vip-only-3"}));
        let answer = world.call_tool(&world.call(&tool, json!({"body_name": "Bo"}))).await;
        assert!(answer.sentence().contains("no tenant [secret] with [secret]"), "{}", answer.body);
    }
    let history = json!(world.aws.rows("executions")).to_string();
    assert!(history.contains("[secret]"));
    for fixed in ["blue horse", "vip-only-3", "north/7"] {
        assert!(!history.contains(fixed), "{fixed}: {history}");
    }
}

#[tokio::test]
async fn failures_of_a_read_are_told_and_may_be_tried_again() {
    let open = address();
    let world = world(&[&open]).await;
    let tool = world.attached(&api_request("GET", &open.url)).await;
    let call = world.call(&tool, json!({}));
    for (fault, said) in [
        (Fault::status(404).with_body(json!({"message": "No such customer"})), "404: No such customer"),
        (Fault::status(500).with_body(json!("<html>")), "status 500"),
        (Fault::drop_before(), "did not answer"),
    ] {
        open.inject(fault);
        let answer = world.call_tool(&call).await;
        assert!(answer.sentence().contains(said), "{}", answer.body);
    }
    answers(&open, 200, &json!({"name": "Ana"}));
    world.call_tool(&call).await.result();
    let statuses: Vec<Value> = world.executions().iter().map(|row| row["status"].clone()).collect();
    assert_eq!(statuses, ["failed", "failed", "failed", "succeeded"]);
}

#[tokio::test]
async fn reads_are_not_deduplicated() {
    let open = address();
    let world = world(&[&open]).await;
    let tool = world.attached(&api_request("GET", &open.url)).await;
    let call = world.call(&tool, json!({}));
    for round in 1..=2 {
        answers(&open, 200, &json!({"round": round}));
        assert_eq!(world.call_tool(&call).await.result(), &json!({"round": round}));
    }
}

#[tokio::test]
async fn a_post_happens_once_and_an_unclear_one_is_not_repeated() {
    let open = address();
    let world = world(&[&open]).await;
    for method in ["POST", "PUT", "PATCH", "DELETE"] {
        let tool = world.attached(&api_request(method, &open.url)).await;
        let call = world.call(&tool, json!({}));
        answers(&open, 200, &json!({"id": 7}));
        open.clear_requests();
        assert_eq!(world.call_tool(&call).await.result(), &json!({"id": 7}));
        assert_eq!(world.call_tool(&call).await.result(), &json!({"id": 7}));
        assert_eq!(open.requests().len(), 1, "{method}");

        for fault in [Fault::status(500), Fault::status(503), Fault::drop_after()] {
            let call = world.call(&tool, json!({}));
            open.clear_requests();
            open.inject(fault);
            let first = world.call_tool(&call).await;
            assert!(first.sentence().contains("not known"), "{}", first.body);
            assert_eq!(world.call_tool(&call).await.body, first.body);
            assert_eq!(open.requests().len(), 1, "{method}");
        }
    }
}

#[tokio::test]
async fn an_effect_whose_answer_is_too_large_has_happened() {
    let open = address();
    let world = world(&[&open]).await;
    let tool = world.attached(&api_request("POST", &open.url)).await;
    let call = world.call(&tool, json!({}));
    answers(&open, 200, &json!("x".repeat(1024 * 1024 + 1)));
    let first = world.call_tool(&call).await;
    assert_eq!(world.call_tool(&call).await.body, first.body);
    assert_eq!(open.requests().len(), 1);
}

#[tokio::test]
async fn a_refused_post_may_be_tried_again() {
    let open = address();
    let world = world(&[&open]).await;
    let tool = world.attached(&api_request("POST", &open.url)).await;
    let call = world.call(&tool, json!({}));
    answers(&open, 422, &json!({"error": "Day is full"}));
    assert!(world.call_tool(&call).await.sentence().contains("Day is full"));
    answers(&open, 200, &json!({"id": 7}));
    world.call_tool(&call).await.result();
}

#[tokio::test]
async fn a_binary_answer_is_described_and_not_printed() {
    let shop = address();
    let world = world(&[&shop]).await;
    let tool = world.attached(&api_request("GET", &format!("{}/logo", shop.url))).await;
    let png = "\u{89}PNG\r\n\u{1a}\n\0\0\0\rIHDR";
    for (content_type, body, told) in [
        ("image/png", png, "a file (image/png) of 17 bytes"),
        ("application/octet-stream", png, "a binary file of 17 bytes"),
        ("text/plain", png, "a binary file of 17 bytes"),
        ("image/jpeg; q=1", "no NUL in here", "a file (image/jpeg) of 14 bytes"),
        ("image/svg+xml", "<svg/>", "<svg/>"),
        ("text/csv", "a;b", "a;b"),
    ] {
        shop.inject(Fault::status(200).with_body(json!(body)).with_header("content-type", content_type));
        let answer = world.call_tool(&world.call(&tool, json!({}))).await;
        let result = answer.result().as_str().unwrap();
        assert!(result.contains(told) && !result.contains("PNG\r"), "{content_type}: {result}");
    }
}

#[tokio::test]
async fn an_answer_is_read_in_its_own_encoding() {
    let koeln = "{\"town\":\"Köln\"}";
    let marked = format!("\u{feff}{koeln}");
    let utf_16: Vec<u8> = marked.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let cases = [
        ("application/json", marked.into_bytes(), json!({"town": "Köln"})),
        ("application/json", utf_16, json!({"town": "Köln"})),
        ("application/json; charset=iso-8859-1", b"{\"town\":\"K\xf6ln\"}".to_vec(), json!({"town": "Köln"})),
        ("application/json; charset=iso-8859-1", koeln.as_bytes().to_vec(), json!({"town": "Köln"})),
        ("text/csv; charset=\"windows-1252\"", b"Koffer;5 \x80".to_vec(), json!("Koffer;5 €")),
    ];
    let mut servers = Vec::new();
    for (content_type, body, _) in cases.clone() {
        let answer = move || async move { ([("content-type", content_type)], body) };
        servers.push(Server::start(Router::new().fallback(answer)).await);
    }
    let open_hosts = servers.iter().map(|server| server.address.to_string()).collect();
    let world = World::with(Options { open_hosts, ..Options::default() }).await;
    for (server, (content_type, _, told)) in servers.iter().zip(&cases) {
        let tool = world.attached(&api_request("GET", &server.url)).await;
        assert_eq!(world.call_tool(&world.call(&tool, json!({}))).await.result(), told, "{content_type}");
    }
}

/// Today such tools are refused when they are saved.
#[tokio::test]
async fn a_header_of_an_older_tool_is_sent_as_text_or_named() {
    let open = address();
    let world = world(&[&open]).await;
    let mut config = api_request("GET", &open.url);
    config["headers"] = json!({"X-Day": {"mode": "ai", "prompt": "Day"}, "Accept": "text/csv"});
    let tool = world.attached(&config).await;
    let id = tool["id"].as_str().unwrap();
    let mut schema = world.aws.row("tools", id).unwrap()["function_schema"].clone();
    for (kind, given, sent) in [
        ("integer", json!(7), Some("7")),
        ("boolean", json!(true), Some("true")),
        ("string", json!(" Monday\n"), Some("Monday")),
        ("array", json!(["a"]), None),
        ("string", json!("a\nb"), None),
    ] {
        schema["parameters"]["properties"]["header_X-Day"]["type"] = json!(kind);
        world.aws.change("tools", id, json!({"function_schema": schema}));
        open.clear_requests();
        answers(&open, 200, &json!({}));
        let answer = world.call_tool(&world.call(&tool, json!({"header_X-Day": given}))).await;
        match sent {
            Some(sent) => assert_eq!(received(&open).headers["x-day"], sent),
            None => assert!(answer.sentence().contains("\"header_X-Day\" cannot be used"), "{}", answer.body),
        }
        open.clear_faults();
    }
    let mut stored = tool["config_metadata"].clone();
    stored["headers"]["Accept"]["value"] = json!("text/csv\nX-Day: Monday");
    world.aws.change("tools", id, json!({"config_metadata": stored}));
    let answer = world.call_tool(&world.call(&tool, json!({"header_X-Day": "Monday"}))).await;
    assert!(answer.sentence().contains("header Accept is not one line"), "{}", answer.body);
}

#[tokio::test]
async fn a_host_that_can_never_be_called_is_refused_when_it_is_listed() {
    let world = World::start().await;
    let mut config = api_request("GET", "");
    config["url"] = json!({"mode": "ai", "prompt": "The address"});
    config["allowed_hosts"] = json!(["api.example.com", "10.0.0.8"]);
    assert_eq!(world.create(&config).await.wrong_fields(), ["allowed_hosts"]);
    let tool = world.tool(&api_request("GET", "https://api.example.com/{{called_phone_number}}?at={{now}}")).await;
    let changed = world.update(&tool, &json!({"url": "http://api.example.com/"})).await;
    assert_eq!(changed.wrong_fields(), ["url.value"]);
    assert!(changed.body["errors"][0]["problem"].as_str().unwrap().contains("https"), "{}", changed.body);
}
