//! Secrets of tools go to the hosts that are listed for them.

use serde_json::{Value, json};
use tests::{World, api_request, standins::Fault};

use super::{address, answers, received, world};

/// A tool with a model's address and an author's secret at the given place.
fn with_a_secret(place: &str) -> Value {
    let mut config = api_request(if place == "query" { "GET" } else { "POST" }, "");
    config["url"] = json!({"mode": "ai", "prompt": "The address"});
    match place {
        "header" => config["headers"] = json!({"X-Line": "s3cret-key"}),
        "body" => config["body"] = json!({"login": {"mode": "fixed", "value": {"user": "ana", "pin": "s3cret-key"}}}),
        "marked" => config["body"] = json!({"line": {"mode": "fixed", "value": "s3cret-key", "secret": true}}),
        _ => config["body"] = json!({"api_key": "s3cret-key"}),
    }
    config
}

const PLACES: [&str; 4] = ["header", "body", "marked", "query"];

#[tokio::test]
async fn a_secret_whose_address_the_model_chooses_must_say_where_it_may_go() {
    let world = World::start().await;
    let harmless =
        json!({"Accept": "text/csv", "X-Line": "{{caller_phone_number}}", "X-Why": {"mode": "ai", "prompt": "Why"}});
    let mut open = api_request("POST", "");
    open["url"] = json!({"mode": "ai", "prompt": "The address"});
    open["headers"] = harmless;
    open["body"] = json!({"room": "terrace", "api_key": {"mode": "fixed", "value": "public", "secret": false}});
    let open = world.tool(&open).await;
    for place in PLACES {
        let config = with_a_secret(place);
        let refused = world.create(&config).await;
        assert_eq!(refused.wrong_fields(), ["allowed_hosts"], "{place}");
        assert!(refused.body["detail"].as_str().unwrap().contains("make url fixed"), "{}", refused.body);
        assert!(!refused.body.to_string().contains("s3cret-key"), "{}", refused.body);
        let tried = world.try_tool(&json!({"config": config, "arguments": {"url": "https://a.example/"}})).await;
        assert_eq!(tried.wrong_fields(), ["config.allowed_hosts"], "{place}");
        let change = json!({"headers": config["headers"], "body": config["body"]});
        assert_eq!(world.update(&open, &change).await.wrong_fields(), ["allowed_hosts"], "{place}");

        let mut allowed = config.clone();
        allowed["allowed_hosts"] = json!(["API.example.com", "crm.example.com:8443"]);
        let tool = world.tool(&allowed).await;
        assert_eq!(
            tool["config_metadata"]["allowed_hosts"],
            json!(["api.example.com", "crm.example.com:8443"]),
            "as they are compared"
        );
        assert_eq!(world.update(&tool, &json!({"allowed_hosts": null})).await.wrong_fields(), ["allowed_hosts"]);
    }
    for (hosts, wrong) in [(json!([]), "allowed_hosts"), (json!(["https://a.example/x"]), "allowed_hosts[0]")] {
        let mut config = with_a_secret("header");
        config["allowed_hosts"] = hosts;
        assert!(world.create(&config).await.wrong_fields().contains(&wrong.to_owned()));
    }
}

#[tokio::test]
async fn a_secret_goes_to_the_hosts_that_are_listed_and_to_no_other() {
    let (home, elsewhere) = (address(), address());
    let world = world(&[&home, &elsewhere]).await;
    for place in PLACES {
        let mut config = with_a_secret(place);
        config["allowed_hosts"] = json!([home.address().to_string()]);
        let tool = world.attached(&config).await;
        for url in [
            format!("{}/steal", elsewhere.url),
            format!("{}/steal?at={}", elsewhere.url, home.address()),
            format!("https://{}.evil.example/", home.address().ip()),
        ] {
            let answer = world.call_tool(&world.call(&tool, json!({"url": url}))).await;
            assert!(answer.sentence().contains("was not sent"), "{place} {url}: {}", answer.body);
            assert!(answer.sentence().contains(&home.address().to_string()), "the model is told where it may go");
        }
        answers(&home, 200, &json!({"id": 7}));
        world.call_tool(&world.call(&tool, json!({"url": format!("{}/x", home.url)}))).await.result();
        let sent = received(&home);
        assert!(format!("{:?}{:?}{}", sent.headers, sent.query, sent.body).contains("s3cret-key"), "{place}");

        home.inject(Fault::status(307).with_header("location", &format!("{}/steal", elsewhere.url)));
        let answer = world.call_tool(&world.call(&tool, json!({"url": format!("{}/y", home.url)}))).await;
        assert!(!answer.body["success"].as_bool().unwrap(), "{}", answer.body);
        // A dry run reports the same.
        let request = json!({"tool_id": tool["id"], "arguments": {"url": elsewhere.url}});
        let shown = world.try_tool(&request).await.expect(200);
        assert_eq!(shown["status"], "failed", "{shown}");
        assert!(shown["answer"]["error"].as_str().unwrap().contains("was not sent"), "{shown}");
    }
    assert!(elsewhere.requests().is_empty());
}

#[tokio::test]
async fn a_listed_host_may_redirect_a_fixed_address_to_listed_ones_only() {
    let (home, second, elsewhere) = (address(), address(), address());
    let world = world(&[&home, &second, &elsewhere]).await;
    let mut config = api_request("GET", &format!("{}/a", home.url));
    config["allowed_hosts"] = json!([home.address().to_string(), second.address().to_string()]);
    config["headers"] = json!({"authorization": "Bearer s3cret-key"});
    let tool = world.attached(&config).await;
    home.inject(Fault::status(302).with_header("location", &elsewhere.url));
    let answer = world.call_tool(&world.call(&tool, json!({}))).await;
    assert!(answer.sentence().contains("was not sent"), "{}", answer.body);
    home.inject(Fault::status(302).with_header("location", &second.url));
    answers(&second, 200, &json!({}));
    world.call_tool(&world.call(&tool, json!({}))).await.result();
    assert!(!received(&second).headers.contains_key("authorization"), "a secret follows no redirect to another host");
    assert!(elsewhere.requests().is_empty());
}

/// A row from before hosts had to be listed.
#[tokio::test]
async fn an_older_tool_that_would_send_its_secret_anywhere_is_refused() {
    let elsewhere = address();
    let world = world(&[&elsewhere]).await;
    let fixed = |value: &str| json!({"mode": "fixed", "value": value});
    for (url, arguments) in [
        (json!({"mode": "ai", "prompt": "The address", "schema": {"type": "string"}}), json!({"url": elsewhere.url})),
        // The network may send any text of a SIP address as the caller.
        (fixed(&format!("http://{{{{caller_phone_number}}}}:{}/x", elsewhere.address().port())), json!({})),
    ] {
        let mut config = api_request("POST", "https://a.example/");
        if url["mode"] == "ai" {
            config["url"] = url.clone();
        }
        let mut tool = world.attached(&config).await;
        tool["config_metadata"]["url"] = url.clone();
        tool["config_metadata"]["headers"] = json!({"x-line": fixed("s3cret-key")});
        tool["static_config"]["headers"] = json!({"x-line": "s3cret-key"});
        world.aws.put("tools", &tool);
        let mut call = world.call(&tool, arguments.clone());
        if url["mode"] == "fixed" {
            call.customer_number = "127.0.0.1".to_owned();
        }
        let answer = world.call_tool(&call).await;
        let told = if url["mode"] == "ai" { "was not sent" } else { "caller's number is not known" };
        assert!(answer.sentence().contains(told), "{url}: {}", answer.body);
        assert!(elsewhere.requests().is_empty(), "{url}");
        // It can be put right.
        if url["mode"] == "ai" {
            let hosts = json!({"allowed_hosts": [elsewhere.address().to_string()]});
            let row = world.update(&tool, &hosts).await.expect(200);
            answers(&elsewhere, 200, &json!({"id": 7}));
            world.call_tool(&world.call(&row, arguments)).await.result();
            elsewhere.clear_requests();
        }
    }
}
