//! POST /api/{slug}/tools/test: a tool is tried before it is live.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

use serde_json::{Value, json};
use tests::{
    Answer, Event, Fault, Options, Trouble, World, ai_sms, api_request, phone,
    secret_names::{HARMLESS, SECRET, assert_shown, texts},
    slack_action,
    standins::{self, Standin, twilio},
};
use uuid::Uuid;

type Address = Standin<twilio::Twilio>;

fn address() -> Address {
    twilio::start("127.0.0.1:0".parse().unwrap(), twilio::Options::default()).unwrap()
}

async fn world(open: &Address) -> World {
    World::with(Options { open_hosts: vec![open.address().to_string()], ..Options::default() }).await
}

fn transfer() -> Value {
    json!({
        "type": "transfer_call", "label": "Connect", "target": {"type": "number", "number": "+15550100009"},
        "messageStrategy": "summary",
    })
}

fn booking(address: &Address) -> Value {
    let mut config =
        api_request("POST", &format!("{}/slots?phone={{{{caller_phone_number}}}}&api_key=in-the-url", address.url));
    config["headers"] = json!({
        "Authorization": {"mode": "fixed", "value": "Bearer s3cret-of-the-crm"},
        "X-Line": "{{called_phone_number}}",
        "X-Why": {"mode": "ai", "prompt": "Why"},
    });
    config["body"] = json!({
        "day": {"mode": "ai", "prompt": "The day"},
        "echo": "the key is s3cret-of-the-crm, or in-the-url",
        "client": {"mode": "fixed", "value": {"client_secret": "deep", "id": 7}},
    });
    config
}

/// How often anybody outside was asked for anything.
fn outside(world: &World) -> [usize; 3] {
    [world.vapi.requests().len(), world.twilio.requests().len(), world.pipedream.requests().len()]
}

#[tokio::test]
async fn a_dry_run_that_truly_sends_nothing() {
    let crm = address();
    let world = world(&crm).await;
    let base = world.knowledge_base(&json!([]), &json!([{"text": "House by the river"}])).await;
    let query = json!({"type": "query", "label": "Find", "knowledge_base_id": base["id"]});
    let mut specific = ai_sms();
    specific["from"] = json!({"type": "specific_number", "phone_number_id": world.home.phone_number_id});
    specific["limits"] = json!({"per_call": 1, "per_hour": 1});
    let mut get = api_request("GET", &crm.url);
    get["limits"] = json!({"per_call": 1});
    for (config, arguments) in [
        (ai_sms(), json!({"text": "Hello"})),
        (specific, json!({"text": "Hello"})),
        (booking(&crm), json!({"body_day": "Monday", "header_X-Why": "asked"})),
        (get, json!({})),
        (slack_action(&world.home), json!({"text": "Hello"})),
        (query, json!({"query": "river"})),
        (transfer(), json!({"summary": "Wants a person"})),
    ] {
        let tool = world.tool(&config).await;
        let before = outside(&world);
        world.aws.clear_operations();
        let request =
            json!({"tool_id": tool["id"], "arguments": arguments, "caller_phone_number": phone(1), "dry_run": true});
        let saved = world.try_tool(&request).await.expect(200);
        assert_eq!(saved["status"], "ready", "{saved}");
        assert!(saved["request"].is_object() && saved.get("answer").is_none(), "{saved}");
        assert_eq!((outside(&world), crm.requests().len()), (before, 0), "{}", config["type"]);
        let asked = world.aws.operations();
        assert!(asked.iter().all(|asked| ["GetItem", "Query"].contains(&asked.action.as_str())), "{asked:#?}");

        // An unsaved tool behaves the same; only a Pipedream action and its account must be looked up, as when it is saved.
        let unsaved = json!({"config": config, "arguments": arguments, "caller_phone_number": phone(1)});
        let unsaved = world.try_tool(&unsaved).await.expect(200);
        assert_eq!(unsaved["request"], saved["request"]);
        let looked_up = |path: &str| {
            let ends = ["/oauth/token", "/accounts", "/actions/slack-send-message"];
            ends.iter().any(|end| path.ends_with(end))
        };
        let asked = world.pipedream.requests().split_off(before[2]);
        assert!(asked.iter().all(|asked| looked_up(&asked.path)), "{asked:#?}");
        assert_eq!((&outside(&world)[..2], crm.requests().len()), (&before[..2], 0), "{}", config["type"]);
    }
    assert!(world.pipedream.runs().is_empty() && world.twilio.messages().is_empty());
    assert!(world.executions().is_empty() && world.aws.rows("idempotency").is_empty());
    assert_eq!(world.aws.messages("executions"), Vec::<Value>::new());
}

#[tokio::test]
async fn a_dry_run_shows_the_request_that_the_run_sends() {
    let crm = address();
    let world = world(&crm).await;
    let mut config = api_request("POST", &format!("{}/slots?phone={{{{caller_phone_number}}}}", crm.url));
    config["body"] = json!({"day": {"mode": "ai", "prompt": "The day"}, "n": {"mode": "fixed", "value": 5}});
    let mut request = json!({"config": config, "arguments": {"body_day": "Monday"}, "caller_phone_number": phone(1)});
    let shown = world.try_tool(&request).await.expect(200)["request"].clone();
    request["dry_run"] = json!(false);
    crm.inject(standins::Fault::body(json!({"booked": true})));
    assert_eq!(world.try_tool(&request).await.expect(200)["answer"]["result"], json!({"booked": true}));
    let sent = &crm.requests()[0];
    let query: Vec<String> =
        sent.query.iter().map(|(name, value)| format!("{name}={}", value.replace('+', "%2B"))).collect();
    assert_eq!(shown["url"], format!("{}{}?{}", crm.url, sent.path, query.join("&")));
    assert_eq!((&shown["method"], &shown["body"]), (&json!(sent.method), &sent.body));

    let mut request = json!({"config": slack_action(&world.home), "arguments": {"text": "Hello"}});
    let shown = world.try_tool(&request).await.expect(200)["request"].clone();
    request["dry_run"] = json!(false);
    world.try_tool(&request).await.expect(200);
    let run = &world.pipedream.runs()[0];
    assert_eq!(
        (&shown["configured_props"], &shown["external_user_id"]),
        (&run.configured_props, &json!(run.external_user_id))
    );
    let sent = world.pipedream.requests().pop().unwrap();
    assert_eq!((&shown["action"], &shown["version"]), (&sent.body["id"], &sent.body["version"]));
    assert_eq!((&shown["app"], &shown["account_id"]), (&json!("slack"), &json!(world.home.slack_account)));

    let mut request = json!({"config": ai_sms(), "arguments": {"text": "Hello"}, "caller_phone_number": phone(1)});
    let shown = world.try_tool(&request).await.expect(200)["request"].clone();
    request["dry_run"] = json!(false);
    world.try_tool(&request).await.expect(200);
    let sent = &world.twilio.messages()[0];
    let expected = json!({"from": sent.from, "text": sent.body, "recipients": [{"to": sent.to, "allowed": true}]});
    assert_eq!(shown, expected);
}

#[tokio::test]
async fn secrets_are_masked_wherever_they_stand() {
    let crm = address();
    let world = world(&crm).await;
    let request = json!({
        "config": booking(&crm), "caller_phone_number": phone(1), "called_phone_number": world.home.phone_number,
        "arguments": {"body_day": "Monday", "header_X-Why": "asked"},
    });
    let shown = world.try_tool(&request).await.expect(200)["request"].clone();
    assert_eq!(
        shown,
        json!({
            "method": "POST",
            "url": format!("{}/slots?phone=%2B14155550101&api_key=[secret]", crm.url),
            "headers": {"authorization": "[secret]", "x-line": world.home.phone_number, "x-why": "asked"},
            "body": {
                "day": "Monday", "echo": "the key is [secret], or [secret]", "client": {"client_secret": "[secret]", "id": 7},
            },
        }),
    );
    let mut config = slack_action(&world.home);
    config["pipedreamMetadata"]["dynamicPropsId"] = json!("dyp_1");
    config["preloadedParams"] = json!({"bot_token": "xoxb-1", "pin": 4711, "mrkdwn": true});
    let shown = world.try_tool(&json!({"config": config, "arguments": {"text": "xoxb-1 again"}})).await.expect(200);
    let props = &shown["request"]["configured_props"];
    assert_eq!((&props["bot_token"], &props["pin"]), (&json!("[secret]"), &json!("[secret]")));
    assert_eq!((&props["text"], &props["mrkdwn"]), (&json!("[secret] again"), &json!(true)));
}

#[tokio::test]
async fn every_name_of_a_secret_hides_its_value() {
    let crm = address();
    let world = world(&crm).await;
    for (names, expected) in [(&SECRET[..], false), (&HARMLESS[..], true)] {
        let (fixed, given, deep) = (texts(names, "fixed"), texts(names, "given"), texts(names, "deep"));
        let by_model: Value =
            names.iter().map(|name| ((*name).to_owned(), json!({"mode": "ai", "prompt": "p"}))).collect();
        for method in ["POST", "GET"] {
            let mut config = api_request(method, &crm.url);
            config["body"] = json!(fixed);
            let shown = world.try_tool(&json!({"config": config})).await.expect(200)["request"].clone();
            assert_shown(&shown, &fixed, expected);

            config["body"] = by_model.clone();
            config["headers"] = by_model.clone();
            // It is the client's own.
            config["headers"].as_object_mut().unwrap().remove("Proxy-Authorization");
            let named =
                |to: &str| given.iter().map(|(name, text)| (format!("{to}_{name}"), text.clone())).collect::<Vec<_>>();
            let arguments: Value = named("body").into_iter().chain(named("header")).collect();
            let shown =
                world.try_tool(&json!({"config": config, "arguments": arguments})).await.expect(200)["request"].clone();
            assert_shown(&shown, &given, expected);
        }
        let mut config = api_request("POST", &crm.url);
        config["body"] = json!({"list": {"mode": "fixed", "value": [{"within": deep}]}});
        let shown = world.try_tool(&json!({"config": config})).await.expect(200)["request"].clone();
        assert_shown(&shown, &deep, expected);
        let mut config = slack_action(&world.home);
        config["pipedreamMetadata"]["dynamicPropsId"] = json!("dyp_1");
        config["preloadedParams"] = json!(fixed);
        let shown =
            world.try_tool(&json!({"config": config, "arguments": {"text": "x"}})).await.expect(200)["request"].clone();
        assert_shown(&shown, &fixed, expected);
    }
}

#[tokio::test]
async fn a_dry_run_says_who_would_not_be_sent_to() {
    let world = World::start().await;
    let mut config = ai_sms();
    config["recipients"] = json!({"mode": "ai", "prompt": "Who"});
    config["allowed_recipients"] = json!("caller_only");
    let arguments = json!({"text": "Hi", "recipients": [phone(1), phone(2), "nobody"]});
    let request = json!({"config": config, "arguments": arguments, "caller_phone_number": phone(1)});
    let shown = world.try_tool(&request).await.expect(200)["request"]["recipients"].clone();
    let allowed: Vec<&Value> = shown.as_array().unwrap().iter().map(|recipient| &recipient["allowed"]).collect();
    assert_eq!(allowed, [true, false, false], "{shown}");
    assert!(shown[1]["reason"].as_str().unwrap().contains("only send to the number of the caller"));
}

#[tokio::test]
async fn a_dry_query_shows_its_words_and_a_real_one_finds_them() {
    let world = World::start().await;
    let fields = json!([{"name": "price", "type": "number"}, {"name": "city", "type": "text"}]);
    let base = world.knowledge_base(&fields, &json!([{"price": 5, "city": "Porto", "text": "By the river"}])).await;
    let config =
        json!({"type": "query", "label": "Find", "knowledge_base_id": base["id"], "filters": {"price": ["at_most"]}});
    let mut request = json!({"config": config, "arguments": {"query": "river", "price_at_most": 7}});
    let shown = world.try_tool(&request).await.expect(200)["request"].clone();
    assert_eq!(shown, json!({"knowledge_base_id": base["id"], "query": "river", "filters": {"price_at_most": 7}}));
    request["dry_run"] = json!(false);
    let ran = world.try_tool(&request).await.expect(200);
    assert_eq!((&ran["status"], &ran["answer"]["result"]["matched"]), (&json!("succeeded"), &json!(1)));
}

#[tokio::test]
async fn without_a_request_the_answer_for_the_model_is_shown() {
    let world = World::start().await;
    for (arguments, caller, said) in [
        (json!({}), Some(phone(1)), "\"text\" is missing"),
        (json!({"text": 7}), Some(phone(1)), "\"text\" must be text"),
        (json!({"text": "x".repeat(1_601)}), Some(phone(1)), "longer than"),
        (json!({"text": "Hello"}), None, "caller's number is not known"),
    ] {
        let request = json!({"config": ai_sms(), "arguments": arguments, "caller_phone_number": caller});
        let dry = world.try_tool(&request).await.expect(200);
        assert_eq!((&dry["status"], &dry["answer"]["success"]), (&json!("failed"), &json!(false)), "{dry}");
        assert!(dry["answer"]["error"].as_str().unwrap().contains(said), "{dry}");
        assert!(dry.get("request").is_none(), "{dry}");
        let mut request = request;
        request["dry_run"] = json!(false);
        let ran = world.try_tool(&request).await.expect(200);
        assert_eq!((&ran["status"], &ran["answer"]), (&dry["status"], &dry["answer"]), "the run says the same");
    }
    assert!(world.twilio.requests().is_empty());
}

#[tokio::test]
async fn made_up_arguments_are_left_out_and_reported() {
    let world = World::start().await;
    for dry_run in [true, false] {
        let request = json!({
            "config": slack_action(&world.home), "arguments": {"text": "Hello", "colour": "red", "channel": "C9"}, "dry_run": dry_run,
        });
        let tried = world.try_tool(&request).await.expect(200);
        let mut ignored: Vec<&str> =
            tried["ignored_arguments"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
        ignored.sort_unstable();
        assert_eq!(ignored, ["channel", "colour"], "{tried}");
    }
    assert!(world.pipedream.runs()[0].configured_props.get("colour").is_none());
}

// ------------------------------------------------------------------------------------------------------ a real run

fn sending(tool: &Value) -> Value {
    json!({"tool_id": tool["id"], "arguments": {"text": "Hello"}, "caller_phone_number": phone(1), "dry_run": false})
}

async fn keyed(world: &World, body: &Value, key: &str) -> Answer {
    let path = format!("/api/{}/tools/test", world.home.slug);
    let event = Event::post(&path, body).user(&world.home.user_id).header("idempotency-key", key);
    world.send("tools-test", &event).await
}

#[tokio::test]
async fn a_run_sends_once_and_stands_in_the_history_as_a_test() {
    let world = World::start().await;
    let tool = world.tool(&ai_sms()).await;
    let ran = world.try_tool(&sending(&tool)).await.expect(200);
    assert_eq!((&ran["dry_run"], &ran["status"]), (&json!(false), &json!("succeeded")), "{ran}");
    assert_eq!(ran["answer"]["result"]["sent"], 1);
    let sent = world.twilio.messages();
    assert_eq!((sent.len(), &sent[0].to, &sent[0].from), (1, &phone(1), &world.home.phone_number));
    let history = world.executions();
    assert_eq!(history.len(), 1);
    assert_eq!((&history[0]["trigger"], &history[0]["tool_id"]), (&json!("test"), &tool["id"]));
    assert_eq!((&history[0]["id"], history[0].get("call_id")), (&ran["execution_id"], None));
}

#[tokio::test]
async fn each_request_is_an_effect_of_its_own_unless_its_key_says_otherwise() {
    let world = World::start().await;
    let tool = world.tool(&ai_sms()).await;
    for _ in 0..2 {
        assert_eq!(world.try_tool(&sending(&tool)).await.expect(200)["status"], "succeeded");
    }
    assert_eq!(world.twilio.messages().len(), 2);
    let first = keyed(&world, &sending(&tool), "try-1").await.expect(200);
    let replay = keyed(&world, &sending(&tool), "try-1").await.expect(200);
    assert_eq!((&first["status"], &replay["status"]), (&json!("succeeded"), &json!("replayed")));
    assert_eq!(replay["answer"], first["answer"]);
    keyed(&world, &sending(&tool), "try-2").await.expect(200);
    assert_eq!(world.twilio.messages().len(), 4);

    // A configuration has no id, and is the same effect all the same.
    let unsaved =
        json!({"config": ai_sms(), "arguments": {"text": "Hello"}, "caller_phone_number": phone(1), "dry_run": false});
    for status in ["succeeded", "replayed"] {
        assert_eq!(keyed(&world, &unsaved, "try-1").await.expect(200)["status"], status);
    }
    assert_eq!(world.twilio.messages().len(), 5);
    for wrong in ["", " ", &"k".repeat(201)] {
        assert_eq!(keyed(&world, &unsaved, wrong).await.wrong_fields(), ["Idempotency-Key"]);
    }
}

#[tokio::test]
async fn a_configuration_that_was_never_saved_leaves_no_tool_behind() {
    let world = World::start().await;
    let request =
        json!({"config": ai_sms(), "arguments": {"text": "Hello"}, "caller_phone_number": phone(1), "dry_run": false});
    world.try_tool(&request).await.expect(200);
    assert!(world.tools().is_empty() && world.vapi.tools().is_empty() && world.aws.rows("intents").is_empty());
    let history = world.executions();
    assert_eq!((history.len(), &history[0]["trigger"]), (1, &json!("test")), "what was sent is on record");
    let id: Uuid = history[0]["tool_id"].as_str().unwrap().parse().unwrap();
    let shown = world.list(&format!("/tools/{id}")).await;
    assert_eq!(shown.status, 404);
}

#[tokio::test]
async fn a_test_is_held_to_the_tools_limits() {
    tests::within_one_hour().await;
    let world = World::start().await;
    let mut config = ai_sms();
    config["limits"] = json!({"per_call": 1, "per_hour": 2});
    let tool = world.tool(&config).await;
    for expected in ["succeeded", "succeeded", "limited"] {
        assert_eq!(world.try_tool(&sending(&tool)).await.expect(200)["status"], expected, "each try is its own call");
    }
    assert_eq!(world.twilio.messages().len(), 2);
}

#[tokio::test]
async fn an_asynchronous_tool_runs_at_once() {
    let world = World::start().await;
    let mut config = ai_sms();
    config["async"] = json!(true);
    let tool = world.tool(&config).await;
    assert_eq!(world.try_tool(&sending(&tool)).await.expect(200)["status"], "succeeded");
    assert_eq!(world.twilio.messages().len(), 1);
}

#[tokio::test]
async fn an_outage_is_an_outage_and_can_be_tried_again() {
    let world = World::start().await;
    let tool = world.tool(&ai_sms()).await;
    world.aws.inject(Fault::throttled("UpdateItem", "idempotency"));
    world.try_tool(&sending(&tool)).await.expect(503);
    assert!(world.twilio.requests().is_empty());
    world.try_tool(&sending(&tool)).await.expect(200);
}

#[tokio::test]
async fn an_organization_without_a_number_is_told_so() {
    let world = World::start().await;
    let tool = world.tool(&ai_sms()).await;
    world.aws.delete("phone_numbers", &world.home.phone_number_id);
    let tried = world.try_tool(&sending(&tool)).await.expect(200);
    assert_eq!(tried["status"], "failed");
    let told = tried["answer"]["error"].as_str().unwrap();
    assert!(told.contains("No SMS can be sent") && told.ends_with("offer something else."), "{tried}");
}

#[tokio::test]
async fn a_model_whose_message_is_not_sent_is_told_the_next_step() {
    let world = World::start().await;
    let tool = world.tool(&ai_sms()).await;
    let mut blank = sending(&tool);
    blank["arguments"]["text"] = json!(" ");
    let tried = world.try_tool(&blank).await.expect(200);
    assert!(tried["answer"]["error"].as_str().unwrap().ends_with("call the tool again with a text."), "{tried}");
    world.aws.inject(Fault::new("GetSecretValue", "*", Trouble::Error("ResourceNotFoundException")).times(9));
    let tried = world.try_tool(&sending(&tool)).await.expect(200);
    assert!(tried["answer"]["error"].as_str().unwrap().ends_with("try again in a moment."), "{tried}");
}

// ----------------------------------------------------------------------------------------------------- tried wrongly

#[tokio::test]
async fn a_trial_takes_a_tool_or_a_configuration() {
    let world = World::start().await;
    let tool = world.tool(&ai_sms()).await;
    let both = world.try_tool(&json!({"tool_id": tool["id"], "config": ai_sms()})).await;
    assert_eq!(both.wrong_fields(), ["tool_id"]);
    assert_eq!(world.try_tool(&json!({"arguments": {}})).await.wrong_fields(), ["config"]);
    assert_eq!(world.try_tool(&json!({"config": null, "tool_id": null})).await.wrong_fields(), ["config"]);
}

#[tokio::test]
async fn everything_wrong_is_named_at_its_place() {
    let world = World::start().await;
    let mut config = ai_sms();
    config["label"] = json!(7);
    config["colour"] = json!("red");
    config["limits"] = json!({"per_call": 0});
    config["allowed_recipients"] = json!(["555"]);
    let body = json!({"config": config, "arguments": [1], "caller_phone_number": "555", "dry_run": "no", "number": 1});
    let expected = [
        "arguments",
        "caller_phone_number",
        "config.allowed_recipients[0]",
        "config.colour",
        "config.label",
        "config.limits.per_call",
        "config.recipients.fixedValues[0]",
        "dry_run",
        "number",
    ];
    assert_eq!(world.try_tool(&body).await.wrong_fields(), expected);
    assert!(world.aws.rows("executions").is_empty());
}

#[tokio::test]
async fn references_of_a_tried_configuration_are_checked_as_on_saving() {
    let world = World::start().await;
    let mut foreign = ai_sms();
    foreign["from"] = json!({"type": "specific_number", "phone_number_id": world.other.phone_number_id});
    let mut unknown = slack_action(&world.home);
    unknown["pipedreamMetadata"]["actionKey"] = json!("slack-no-such-action");
    let base = json!({"type": "query", "label": "Find", "knowledge_base_id": Uuid::new_v4()});
    let mine = world.knowledge_base(&json!([]), &json!([])).await;
    let filtered =
        json!({"type": "query", "label": "Find", "knowledge_base_id": mine["id"], "filters": {"price": ["at_most"]}});
    for (config, wrong) in [
        (foreign, "config.from.phone_number_id"),
        (unknown, "config.pipedreamMetadata.actionKey"),
        (base, "config.knowledge_base_id"),
        (filtered, "config.filters.price"),
    ] {
        for dry_run in [true, false] {
            let tried = world.try_tool(&json!({"config": config, "dry_run": dry_run})).await;
            assert_eq!(tried.wrong_fields(), [wrong]);
        }
    }
}

#[tokio::test]
async fn a_tool_and_number_of_another_organization_are_not_found() {
    let world = World::start().await;
    let theirs = world.create_as(&world.other, &ai_sms()).await.expect(201);
    for id in [&theirs["id"], &json!(Uuid::new_v4())] {
        assert_eq!(world.try_tool(&json!({"tool_id": id})).await.status, 404);
    }
    let tool = world.tool(&ai_sms()).await;
    let mut answers = Vec::new();
    for number in [world.other.phone_number.clone(), phone(99)] {
        let mut body = sending(&tool);
        body["called_phone_number"] = json!(number);
        let refused = world.try_tool(&body).await;
        assert_eq!(refused.wrong_fields(), ["called_phone_number"]);
        answers.push(refused.body["errors"].clone());
    }
    assert_eq!(answers[0], answers[1], "a stranger's number and nobody's are alike");
    assert!(world.twilio.requests().is_empty() && world.executions().is_empty());
}

#[tokio::test]
async fn an_address_that_is_not_public_is_refused_in_a_dry_run_too() {
    let world = World::start().await;
    let config =
        json!({"type": "api_request", "label": "Look up", "method": "GET", "url": {"mode": "ai", "prompt": "Where"}});
    let request = json!({"config": config, "arguments": {"url": "http://169.254.169.254/latest/meta-data"}});
    let tried = world.try_tool(&request).await.expect(200);
    assert_eq!(tried["status"], "failed", "{tried}");
}
