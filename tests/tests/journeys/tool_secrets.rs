//! Secrets of tools: at Secrets Manager, hidden from everybody, sent only to their hosts.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

use serde_json::{Value, json};
use tests::{
    Event, Options, World, api_request,
    secret_names::{HARMLESS, SECRET, assert_shown, texts},
    slack_action,
    standins::{Fault, Recorded, Standin, twilio},
};

const SECRETS: &str = "switchboard/organizations/tools/";

/// Any HTTP address: records requests and gives the prepared answers.
type Address = Standin<twilio::Twilio>;

fn address() -> Address {
    twilio::start("127.0.0.1:0".parse().unwrap(), twilio::Options::default()).unwrap()
}

async fn world(open: &Address) -> World {
    World::with(Options { open_hosts: vec![open.address().to_string()], ..Options::default() }).await
}

/// A tool with a secret in every place there is; all of them hold `s3cret`.
fn booking(at: &Address) -> Value {
    let mut config = api_request("POST", &format!("{}/slots?day=1&api_key=s3cret-of-the-url", at.url));
    config["headers"] =
        json!({"Authorization": "Bearer s3cret-of-the-header", "Accept": "text/csv", "X-Line": "s3cret-line"});
    config["body"] = json!({
        "day": {"mode": "ai", "prompt": "Day"}, "room": "terrace", "pin": "s3cret-pin",
        "login": {"mode": "fixed", "value": {"user": "ana", "password": "s3cret-password"}},
        "line": {"mode": "fixed", "value": "s3cret-by-its-mark", "secret": true},
        "note": "the key is s3cret-of-the-header",
    });
    config
}

/// Lets the address answer, and returns its request.
async fn sent(world: &World, at: &Address, tool: &Value) -> Recorded {
    at.clear_requests();
    at.inject(Fault::body(json!({"id": 7})));
    world.call_tool(&world.call(tool, json!({"body_day": "Monday"}))).await.result();
    at.requests().pop().unwrap()
}

#[track_caller]
fn assert_whole(sent: &Recorded) {
    assert_eq!(sent.headers["authorization"], "Bearer s3cret-of-the-header");
    assert_eq!(sent.headers["x-line"], "s3cret-line");
    assert!(sent.query.contains(&("api_key".to_owned(), "s3cret-of-the-url".to_owned())), "{:?}", sent.query);
    let body = json!({
        "day": "Monday", "room": "terrace", "pin": "s3cret-pin", "login": {"user": "ana", "password": "s3cret-password"},
        "line": "s3cret-by-its-mark", "note": "the key is s3cret-of-the-header",
    });
    assert_eq!(sent.body, body);
}

/// Everything that stands in tables and queues, and everything that answers show of the tool to each role.
async fn everywhere(world: &World, tool: &Value) -> String {
    let tables = ["tools", "intents", "idempotency", "executions", "agent_tools", "calls"];
    let mut all: Vec<String> = tables.iter().map(|table| json!(world.aws.rows(table)).to_string()).collect();
    all.push(json!(world.aws.messages("executions")).to_string());
    all.push(json!(world.vapi.tools()).to_string());
    let id = tool["id"].as_str().unwrap();
    for role in ["owner", "admin", "member", "viewer"] {
        let user = world.member(&world.home, Some(role));
        for path in ["/tools".to_owned(), format!("/tools/{id}"), format!("/agents/{}/tools", world.home.agent_id)] {
            let event = Event::get(&format!("/api/{}{path}", world.home.slug)).user(&user);
            let shown = world.send("list-tools", &event).await.expect(200).to_string();
            assert!(
                shown.contains(id) && shown.contains("[secret]") && !shown.contains("values_secret"),
                "{role} {path}"
            );
            all.push(shown);
        }
    }
    all.concat()
}

/// How often the secret of a tool was asked for.
fn secrets_asked_for(world: &World) -> usize {
    world.aws.operations().iter().filter(|asked| asked.on.iter().any(|on| on.starts_with(SECRETS))).count()
}

fn secrets(world: &World) -> Vec<Value> {
    world.aws.secret_names(SECRETS).iter().map(|name| world.aws.secret(name).unwrap()).collect()
}

#[tokio::test]
async fn secrets_go_to_secrets_manager_and_are_never_shown() {
    let crm = address();
    let mut world = world(&crm).await;
    let tool = world.attached(&booking(&crm)).await;
    let [name] = &world.aws.secret_names(SECRETS)[..] else { panic!("one secret for one tool") };
    let prefix = format!("{SECRETS}{}/{}/", world.home.organization_id, tool["id"].as_str().unwrap());
    assert!(name.starts_with(&prefix), "{name}");
    assert_eq!(world.tools()[0]["values_secret"], json!(name));
    let held = world.aws.secret(name).unwrap();
    assert_eq!(
        (&held["headers.Authorization"], &held["body.pin"]),
        (&json!("Bearer s3cret-of-the-header"), &json!("s3cret-pin"))
    );

    let config = &tool["config_metadata"];
    assert_eq!(config["url"]["value"], format!("{}/slots?day=1&api_key=[secret]", crm.url));
    assert_eq!(config["headers"]["Authorization"], json!({"mode": "fixed", "value": "[secret]", "secret": true}));
    assert_eq!(config["headers"]["Accept"]["value"], "text/csv");
    assert_eq!(config["body"]["login"]["value"], json!({"user": "ana", "password": "[secret]"}));
    assert_eq!(tool["static_config"]["body"]["note"], "the key is [secret]");
    assert!(!tool.to_string().contains("s3cret"), "{tool}");

    assert_whole(&sent(&world, &crm, &tool).await);
    world.restart();
    assert_whole(&sent(&world, &crm, &tool).await);
    assert!(!everywhere(&world, &tool).await.contains("s3cret"));

    world.delete(&tool).await.expect(200);
    assert!(secrets(&world).is_empty() && world.aws.rows("intents").is_empty());
}

#[tokio::test]
async fn a_secret_that_the_service_echoes_is_hidden_everywhere() {
    let crm = address();
    let world = world(&crm).await;
    let tool = world.attached(&booking(&crm)).await;
    for status in [200, 400, 500] {
        let echo = json!({"message": "bad key s3cret-of-the-header", "pin": "s3cret-pin", "login": "s3cret-password", "line": "s3cret-by-its-mark", "u": "s3cret-of-the-url"});
        crm.inject(Fault::status(status).with_body(echo));
        let answer = world.call_tool(&world.call(&tool, json!({"body_day": format!("{status}")}))).await;
        assert!(!answer.body.to_string().contains("s3cret"), "{}", answer.body);
    }
    assert!(!everywhere(&world, &tool).await.contains("s3cret"));
}

/// Frameworks quote the first line of a request without the host.
#[tokio::test]
async fn a_secret_in_a_path_that_the_service_echoes_is_hidden_everywhere() {
    let crm = address();
    let world = world(&crm).await;
    let path = "/services/T0/s3cret-of-the-path";
    let address = format!("{}{path}", crm.url);
    for url in [json!({"mode": "fixed", "value": address, "secret": true}), json!(address)] {
        let mut config = api_request("GET", "");
        config["url"] = url;
        let tool = world.attached(&config).await;
        for (status, told) in [(200, format!("Cannot GET {path}")), (400, format!("No route for {path}?x=1"))] {
            crm.inject(Fault::status(status).with_body(json!({"message": told})));
            let answer = world.call_tool(&world.call(&tool, json!({}))).await;
            assert!(!answer.body.to_string().contains("s3cret"), "{}", answer.body);
        }
    }
    assert!(!json!(world.aws.rows("executions")).to_string().contains("s3cret"));
}

#[tokio::test]
async fn a_masked_secret_sent_back_is_kept() {
    let crm = address();
    let mut world = world(&crm).await;
    let mut tool = world.attached(&booking(&crm)).await;
    let first = world.aws.secret_names(SECRETS);
    // Nothing that the secrets are part of; then all of it, as a form sends it; then a field beside them.
    world.aws.clear_operations();
    tool = world.update(&tool, &json!({"label": "Book"})).await.expect(200);
    assert_eq!(secrets_asked_for(&world), 0, "a label is no reason to read a secret");
    let config = tool["config_metadata"].clone();
    tool = world
        .update(&tool, &json!({"url": config["url"], "headers": config["headers"], "body": config["body"]}))
        .await
        .expect(200);
    let mut headers = config["headers"].clone();
    headers["Accept"] = json!("text/plain");
    tool = world.update(&tool, &json!({"headers": headers})).await.expect(200);
    assert_eq!(tool["config_metadata"]["headers"]["Accept"]["value"], "text/plain");
    assert_eq!(world.aws.secret_names(SECRETS), first, "the same secrets are the same secret");
    assert_whole(&sent(&world, &crm, &tool).await);

    // One is replaced, the others are kept.
    let mut body = config["body"].clone();
    body["pin"] = json!("s3cret-pin-2");
    world.restart();
    tool = world.update(&tool, &json!({"body": body})).await.expect(200);
    let second = world.aws.secret_names(SECRETS);
    assert_eq!(second.len(), 1);
    assert_ne!(second, first, "a secret's content never changes");
    assert_eq!(world.tools()[0]["values_secret"], json!(second[0]));
    let now = sent(&world, &crm, &tool).await;
    assert_eq!(now.body["pin"], "s3cret-pin-2");
    assert_eq!(
        (&now.body["login"]["password"], now.headers["x-line"].as_str()),
        (&json!("s3cret-password"), "s3cret-line")
    );
    assert!(!everywhere(&world, &tool).await.contains("s3cret"));

    // One is given up, and said to be no secret any more.
    let change = json!({
        "url": format!("{}/slots", crm.url), "headers": {"X-Line": {"mode": "fixed", "value": "public", "secret": false}}, "body": null,
    });
    tool = world.update(&tool, &change).await.expect(200);
    assert_eq!(
        tool["config_metadata"]["headers"]["X-Line"],
        json!({"mode": "fixed", "value": "public", "secret": false})
    );
    assert!(secrets(&world).is_empty() && world.tools()[0].get("values_secret").is_none());
    assert!(world.aws.rows("intents").is_empty());
    assert_eq!(sent(&world, &crm, &tool).await.headers["x-line"], "public");
}

#[tokio::test]
async fn a_mask_that_stands_for_nothing_is_refused() {
    let crm = address();
    let world = world(&crm).await;
    let tool = world.attached(&booking(&crm)).await;
    let secret = json!("[secret]");
    for (change, field) in [
        (json!({"headers": {"X-Other": secret}}), "headers.X-Other"),
        (json!({"headers": {"X-Line": "Bearer [secret]"}}), "headers.X-Line"),
        (json!({"headers": {"X-Line": {"mode": "fixed", "value": "[secret]", "secret": false}}}), "headers.X-Line"),
        (json!({"body": {"login": {"mode": "fixed", "value": {"user": "eva", "password": "[secret]"}}}}), "body.login"),
        (json!({"url": "https://elsewhere.example/?api_key=[secret]"}), "url"),
    ] {
        let refused = world.update(&tool, &change).await;
        assert_eq!(refused.wrong_fields(), [field], "{change}");
        assert!(refused.body["detail"].as_str().unwrap().contains("write the value itself"), "{}", refused.body);
    }
    let mut copy = tool["config_metadata"].clone();
    assert_eq!(world.create(&copy).await.wrong_fields().len(), 7, "every place is named");
    let refused = world.try_tool(&json!({"config": copy, "arguments": {"body_day": "Monday"}})).await;
    assert!(refused.wrong_fields().contains(&"config.headers.X-Line".to_owned()), "{}", refused.body);
    copy["body"] = Value::Null;
    copy["url"] = json!(crm.url);
    copy["headers"] = json!({"X-Line": secret});
    assert_eq!(world.create(&copy).await.wrong_fields(), ["headers.X-Line"]);
    assert_eq!((world.tools().len(), secrets(&world).len()), (1, 1));
    for not_there in ["sms", "query"] {
        let text = json!({"mode": "fixed", "value": "Hello", "secret": true});
        let config = if not_there == "sms" {
            json!({"type": "sms", "label": "x", "from": {"type": "called_number"}, "text": text, "recipients": ["{{caller_phone_number}}"]})
        } else {
            json!({"type": "query", "label": "x", "knowledge_base_id": tool["id"], "query": text})
        };
        let wrong = world.create(&config).await.wrong_fields();
        assert!(wrong.iter().any(|field| field.ends_with(".secret")), "{not_there}: {wrong:?}");
    }
}

/// A row of an older version holds its values in clear.
#[tokio::test]
async fn an_older_row_works_is_masked_and_moves_with_its_next_edit() {
    let crm = address();
    let mut world = world(&crm).await;
    let tool = world.attached(&booking(&crm)).await;
    let id = tool["id"].as_str().unwrap();
    // As it was written before.
    let held = secrets(&world).remove(0);
    let mut row = world.tools().remove(0);
    row.as_object_mut().unwrap().remove("values_secret");
    for (field, value) in held.as_object().unwrap() {
        let (place, name) = field.split_once('.').unwrap_or((field, ""));
        let (config, fixed) = match name {
            "" => (&mut row["config_metadata"][place], None),
            name => (&mut row["config_metadata"][place][name], Some(name)),
        };
        config["value"] = value.clone();
        if name != "line" {
            config.as_object_mut().unwrap().remove("secret");
        }
        match fixed {
            Some(name) => row["static_config"][place][name] = value.clone(),
            None => row["static_config"][place] = value.clone(),
        }
    }
    world.aws.delete("tools", id);
    world.aws.put("tools", &row);
    let [name] = &world.aws.secret_names(SECRETS)[..] else { panic!("one secret") };
    world.aws.forget_secret(name);
    world.restart();

    assert_whole(&sent(&world, &crm, &tool).await);
    for path in ["/tools".to_owned(), format!("/tools/{id}"), format!("/agents/{}/tools", world.home.agent_id)] {
        let shown = world.list(&path).await.expect(200);
        assert!(!shown.to_string().contains("s3cret"), "{path}: {shown}");
    }
    let shown = world.list(&format!("/tools/{id}")).await.expect(200);
    assert_eq!(shown["static_config"], tool["static_config"], "as one that is written today");

    let edited = world
        .update(&tool, &json!({"headers": shown["config_metadata"]["headers"], "label": "Book"}))
        .await
        .expect(200);
    assert!(!edited.to_string().contains("s3cret"), "{edited}");
    assert_eq!(secrets(&world).len(), 1);
    assert_whole(&sent(&world, &crm, &tool).await);
    assert!(!everywhere(&world, &tool).await.contains("s3cret"));
}

#[tokio::test]
async fn a_row_that_cannot_be_read_is_masked_too() {
    let world = World::start().await;
    let mut tool = world.tool(&api_request("POST", "https://a.example/")).await;
    tool["config_metadata"]["method"] = json!("BREW TEA");
    tool["config_metadata"]["headers"] = json!({"x-line": {"mode": "fixed", "value": "s3cret-line"}});
    tool["config_metadata"]["body"] = json!({"pin": {"mode": "fixed", "value": "s3cret"}});
    tool["static_config"]["headers"] = json!({"x-line": "s3cret-line"});
    tool["static_config"]["body"] = json!({"pin": "s3cret"});
    world.aws.put("tools", &tool);
    let shown = world.list(&format!("/tools/{}", tool["id"].as_str().unwrap())).await.expect(200);
    assert!(!shown.to_string().contains("s3cret"), "{shown}");
}

#[tokio::test]
async fn a_secret_that_was_deleted_by_hand_costs_the_tool_and_can_be_written_anew() {
    let crm = address();
    let mut world = world(&crm).await;
    let mut config = api_request("POST", &format!("{}/slots", crm.url));
    config["headers"] = json!({"X-Line": "s3cret-line", "X-Other": "s3cret-other"});
    let tool = world.attached(&config).await;
    world.aws.forget_secret(&world.aws.secret_names(SECRETS)[0]);
    world.restart();
    let call = world.call(&tool, json!({}));
    let answer = world.call_tool(&call).await;
    assert!(answer.sentence().contains("not available just now"), "{}", answer.body);
    assert!(crm.requests().is_empty(), "a mask is no secret");
    assert_eq!(
        world.update(&tool, &json!({"headers": {"X-Line": "[secret]"}})).await.wrong_fields(),
        ["headers.X-Line"]
    );
    world.update(&tool, &json!({"headers": {"X-Line": "s3cret-new"}})).await.expect(200);
    crm.inject(Fault::body(json!({"id": 7})));
    world.call_tool(&call).await.result();
    assert_eq!(crm.requests().pop().unwrap().headers["x-line"], "s3cret-new");
}

#[tokio::test]
async fn a_trial_a_queue_and_a_run_send_the_secrets_of_a_saved_tool_and_a_dry_run_none() {
    let crm = address();
    let mut world = world(&crm).await;
    let mut config = booking(&crm);
    config["body"]["day"] = json!("Monday");
    let tool = world.attached(&config).await;
    world.restart();
    world.aws.clear_operations();
    let shown = world.try_tool(&json!({"tool_id": tool["id"]})).await.expect(200)["request"].clone();
    assert!(!shown.to_string().contains("s3cret") && shown.to_string().contains("[secret]"), "{shown}");
    assert_eq!(shown["body"]["login"], json!({"user": "ana", "password": "[secret]"}));
    assert_eq!(secrets_asked_for(&world), 0, "it needs no secret");
    crm.inject(Fault::body(json!({"id": 7})));
    let tried = world.try_tool(&json!({"tool_id": tool["id"], "dry_run": false})).await.expect(200);
    assert_eq!(tried["status"], "succeeded", "{tried}");
    assert_whole(&crm.requests().pop().unwrap());

    let later = world.update(&tool, &json!({"async": true})).await.expect(200);
    world.restart();
    crm.clear_requests();
    crm.inject(Fault::body(json!({"id": 7})));
    world.call_tool(&world.call(&later, json!({}))).await.result();
    assert_eq!(world.run_queued().await, 0);
    assert_whole(&crm.requests().pop().unwrap());
    assert!(!everywhere(&world, &tool).await.contains("s3cret"));
}

#[tokio::test]
async fn the_secrets_of_a_pipedream_action_are_kept_alike() {
    let world = World::start().await;
    let mut config = slack_action(&world.home);
    config["pipedreamMetadata"]["dynamicPropsId"] = json!("dyp_1");
    config["preloadedParams"] = json!({"bot_token": "xoxb-s3cret", "mrkdwn": true});
    config["params"]["pin"] = json!({"mode": "fixed", "value": 471_147});
    let tool = world.attached(&config).await;
    let shown = &tool["config_metadata"];
    assert_eq!(shown["preloadedParams"], json!({"bot_token": "[secret]", "mrkdwn": true}));
    assert_eq!(shown["params"]["pin"], json!({"mode": "fixed", "value": "[secret]", "secret": true}));
    assert_eq!(secrets(&world), [json!({"preloadedParams.bot_token": "xoxb-s3cret", "params.pin": 471_147})]);
    let tool =
        world.update(&tool, &json!({"preloadedParams": {"bot_token": "[secret]", "mrkdwn": false}})).await.expect(200);
    // Slack's action has no such props; the sent values count.
    world.call_tool(&world.call(&tool, json!({"text": "Hello"}))).await.sentence();
    let props = world.pipedream.requests().pop().unwrap().body["configured_props"].clone();
    assert_eq!(
        (&props["bot_token"], &props["pin"], &props["mrkdwn"]),
        (&json!("xoxb-s3cret"), &json!(471_147), &json!(false))
    );
    assert!(!everywhere(&world, &tool).await.contains("s3cret"));
}

#[tokio::test]
async fn every_name_of_a_secret_keeps_its_value_out_of_the_row_and_the_answer() {
    let world = World::start().await;
    for (names, expected) in [(&SECRET[..], false), (&HARMLESS[..], true)] {
        let (fixed, deep) = (texts(names, "fixed"), texts(names, "deep"));
        let mut config = api_request("POST", "https://a.example/");
        config["body"] = json!(fixed);
        config["body"]["list"] = json!({"mode": "fixed", "value": [{"within": deep}]});
        let mut action = slack_action(&world.home);
        action["pipedreamMetadata"]["dynamicPropsId"] = json!("dyp_1");
        action["preloadedParams"] = json!(fixed);
        action["params"]["list"] = config["body"]["list"].clone();
        for config in [config, action] {
            let tool = world.tool(&config).await;
            let row = world.aws.row("tools", tool["id"].as_str().unwrap()).unwrap();
            let listed = world.list("/tools?limit=1").await.expect(200);
            for shown in [&tool, &row, &listed] {
                assert_shown(shown, &fixed, expected);
                assert_shown(shown, &deep, expected);
            }
        }
    }
}

#[tokio::test]
async fn a_secret_that_cannot_be_stored_leaves_no_tool() {
    let world = World::start().await;
    let mut config = api_request("POST", "https://a.example/");
    config["headers"] = json!({"X-Line": "s3cret-line"});
    let failing = |action: &str| tests::Fault::new(action, "*", tests::Trouble::Error("InternalServiceError")).times(9);
    world.aws.inject(failing("CreateSecret"));
    let refused = world.create(&config).await;
    assert!(refused.status >= 500, "{}", refused.body);
    world.aws.clear_faults();
    assert!(world.tools().is_empty() && secrets(&world).is_empty() && world.vapi.tools().is_empty());
    world.vapi.inject(Fault::status(400));
    world.create(&config).await.expect(502);
    assert!(world.tools().is_empty() && secrets(&world).is_empty());
    config["headers"]["X-Long"] = json!("x".repeat(60_000));
    assert_eq!(world.create(&config).await.wrong_fields(), ["headers.X-Long"]);
}
