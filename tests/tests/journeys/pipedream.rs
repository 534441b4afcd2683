//! `pipedream_action` tools: runs, accounts, errors.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

use serde_json::{Value, json};
use tests::{
    World,
    metrics::Metrics,
    slack_action,
    standins::{Fault, vapi::ToolCall},
};

fn email(world: &World) -> Value {
    json!({
        "type": "pipedream_action",
        "label": "Send email",
        "pipedreamMetadata": {"app": "gmail", "appName": "Gmail", "accountId": world.home.gmail_account, "actionKey": "gmail-send-email"},
        "params": {
            "to": {"mode": "array_extendable", "fixedValues": ["desk@example.com"], "aiExtension": {"enabled": true, "prompt": "Others", "required": false}},
            "subject": {"mode": "fixed", "value": "Call from {{caller_phone_number}}"},
            "body": {"mode": "ai", "prompt": "What to write"},
        },
    })
}

fn new_call(world: &World, tool: &Value, call: &ToolCall) -> ToolCall {
    ToolCall { arguments: call.arguments.clone(), ..world.call(tool, json!({})) }
}

#[tokio::test]
async fn an_action_runs_as_the_organization_with_its_account() {
    let world = World::start().await;
    let tool = world.attached(&slack_action(&world.home)).await;
    let answer = world.call_tool(&world.call(&tool, json!({"text": "New booking"}))).await;
    assert_eq!(answer.result()["ok"], true);
    assert!(answer.body["exports"].is_object(), "{}", answer.body);
    let run = &world.pipedream.runs()[0];
    assert_eq!(run.external_user_id, world.home.organization_id);
    let account = json!({"authProvisionId": world.home.slack_account});
    assert_eq!(
        run.configured_props,
        json!({"slack": account, "conversation": "C123", "text": "New booking", "mrkdwn": true}),
    );
    let request =
        world.pipedream.requests().into_iter().rfind(|request| request.path.ends_with("/actions/run")).unwrap();
    assert_eq!(request.body["version"], "0.1.3");
    assert_eq!(run.environment, "development");
}

#[tokio::test]
async fn lists_are_united_for_actions_too() {
    let world = World::start().await;
    let tool = world.attached(&email(&world)).await;
    let arguments = json!({"to": ["desk@example.com", "ana@example.com"], "body": "Hello"});
    world.call_tool(&world.call(&tool, arguments)).await.result();
    let props = &world.pipedream.runs()[0].configured_props;
    assert_eq!(props["to"], json!(["desk@example.com", "ana@example.com"]));
    assert_eq!(props["subject"], "Call from +14155550101");
}

#[tokio::test]
async fn a_single_value_extends_a_list_too() {
    let world = World::start().await;
    let tool = world.attached(&email(&world)).await;
    world.call_tool(&world.call(&tool, json!({"to": "ana@example.com", "body": "Hello"}))).await.result();
    let props = &world.pipedream.runs()[0].configured_props;
    assert_eq!(props["to"], json!(["desk@example.com", "ana@example.com"]));
}

#[tokio::test]
async fn extra_keys_do_not_reach_pipedream() {
    let world = World::start().await;
    let tool = world.attached(&slack_action(&world.home)).await;
    let arguments = json!({"text": "Hello", "username": "CEO", "conversation": "C999", "slack": {"authProvisionId": "apn_x"}, "mrkdwn": false});
    let answer = world.call_tool(&world.call(&tool, arguments)).await;
    answer.result();
    let props = &world.pipedream.runs()[0].configured_props;
    assert_eq!(props["conversation"], "C123");
    assert_eq!(props["slack"]["authProvisionId"], world.home.slack_account);
    assert_eq!(props["mrkdwn"], true);
    assert!(props.get("username").is_none());
    let logs = answer.body["logs"].to_string();
    for name in ["username", "conversation", "slack", "mrkdwn"] {
        assert!(logs.contains(name), "{logs}");
    }
}

#[tokio::test]
async fn preloaded_and_dynamic_props_reach_pipedream() {
    let world = World::start().await;
    let mut config = slack_action(&world.home);
    config["pipedreamMetadata"]["dynamicPropsId"] = json!("dyp_1");
    config["preloadedParams"] = json!({"username": "Desk {{called_phone_number}}"});
    let tool = world.attached(&config).await;
    world.call_tool(&world.call(&tool, json!({"text": "Hello"}))).await;
    let request =
        world.pipedream.requests().into_iter().rfind(|request| request.path.ends_with("/actions/run")).unwrap();
    assert_eq!(request.body["dynamic_props_id"], "dyp_1");
    assert_eq!(request.body["configured_props"]["username"], format!("Desk {}", world.home.phone_number));
}

#[tokio::test]
async fn an_error_inside_a_200_is_a_failure_that_is_not_repeated() {
    let world = World::start().await;
    let mut config = slack_action(&world.home);
    config["params"]["conversation"]["value"] = json!("C404");
    let tool = world.attached(&config).await;
    let call = world.call(&tool, json!({"text": "Hello"}));
    let first = world.call_tool(&call).await;
    assert!(first.sentence().contains("channel_not_found"), "{}", first.body);
    for hours in [0, 3] {
        world.age_claims(hours * 3_600);
        assert_eq!(world.call_tool(&call).await.body, first.body);
        assert_eq!(world.pipedream.runs().len(), 1, "it ran, and how far is not known");
    }
    assert_eq!(world.executions()[0]["status"], "failed");
}

#[tokio::test]
async fn an_account_of_another_organization_cannot_be_used() {
    let world = World::start().await;
    let mut config = slack_action(&world.home);
    config["pipedreamMetadata"]["accountId"] = json!(world.other.slack_account);
    assert_eq!(world.create(&config).await.wrong_fields(), ["pipedreamMetadata.accountId"]);
    // As if it had been saved before this check existed.
    let tool = world.attached(&slack_action(&world.home)).await;
    let row = world.aws.row("tools", tool["id"].as_str().unwrap()).unwrap().to_string();
    let theirs = row.replace(&world.home.slack_account, &world.other.slack_account);
    world.aws.put("tools", &serde_json::from_str(&theirs).unwrap());
    let answer = world.call_tool(&world.call(&tool, json!({"text": "Hello"}))).await;
    assert!(!answer.sentence().contains(&world.other.slack_account), "{}", answer.body);
    assert!(world.pipedream.runs().is_empty());
}

#[tokio::test]
async fn an_unconfirmed_pipedream_action_is_not_repeated() {
    let world = World::start().await;
    let tool = world.attached(&slack_action(&world.home)).await;
    let call = world.call(&tool, json!({"text": "Hello"}));
    for fault in [
        Fault::status(500),
        Fault::status(503),
        Fault::drop_after(),
        Fault::drop_before(),
        Fault::body(json!("<html>")),
    ] {
        let call = new_call(&world, &tool, &call);
        world.pipedream.clear_requests();
        world.pipedream.inject(fault.clone().on("POST", "/actions/run"));
        let first = world.call_tool(&call).await;
        assert!(first.sentence().contains("not known"), "{fault:?}: {}", first.body);
        assert_eq!(world.call_tool(&call).await.body, first.body);
        let asked = world.pipedream.requests().into_iter().filter(|request| request.path.ends_with("/actions/run"));
        assert_eq!(asked.count(), 1, "{fault:?}");
    }
}

#[tokio::test]
async fn a_refused_pipedream_action_may_be_retried() {
    let world = World::start().await;
    let tool = world.attached(&slack_action(&world.home)).await;
    let call = world.call(&tool, json!({"text": "Hello"}));
    for status in [400, 403, 404] {
        let call = new_call(&world, &tool, &call);
        world.pipedream.inject(Fault::status(status).on("POST", "/actions/run"));
        let answer = world.call_tool(&call).await;
        assert!(answer.sentence().contains("Slack"), "{}", answer.body);
        world.call_tool(&call).await.result();
    }
}

#[tokio::test]
async fn without_a_token_of_pipedreams_nothing_ran() {
    let mut world = World::start().await;
    let tool = world.attached(&slack_action(&world.home)).await;
    let call = world.call(&tool, json!({"text": "Hello"}));
    world.restart();
    let metrics = Metrics::capture();
    world.pipedream.inject(Fault::status(401).on("POST", "/oauth/token").times(2));
    assert_eq!(world.call_tool(&call).await.sentence(), "Slack cannot be reached just now; nothing was done.");
    assert!(metrics.sum("PlatformRefusals") > 0.0);
    assert_eq!(world.aws.rows("executions")[0]["fault"], "ours", "the tool's author can repair nothing");
    world.pipedream.clear_faults();
    world.call_tool(&call).await.result();
    assert_eq!(world.pipedream.runs().len(), 1);
}

#[tokio::test]
async fn one_token_serves_many_runs_and_a_revoked_one_is_replaced() {
    let mut world = World::start().await;
    let tool = world.attached(&slack_action(&world.home)).await;
    world.restart();
    world.pipedream.clear_requests();
    let tokens = |world: &World| {
        world.pipedream.requests().iter().filter(|request| request.path.ends_with("/oauth/token")).count()
    };
    let calls: Vec<ToolCall> = (0..5).map(|_| world.call(&tool, json!({"text": "Hello"}))).collect();
    for answer in futures_util::future::join_all(calls.iter().map(|call| world.call_tool(call))).await {
        answer.result();
    }
    assert_eq!(tokens(&world), 1);
    world.pipedream.revoke_tokens();
    world.call_tool(&world.call(&tool, json!({"text": "Hello"}))).await.result();
    assert_eq!(tokens(&world), 2);
}

#[tokio::test]
async fn an_action_with_a_secret_goes_to_no_address_of_the_models_choice() {
    let world = World::start().await;
    let mut config = slack_action(&world.home);
    config["params"]["webhookUrl"] = json!({"mode": "ai", "prompt": "Where to"});
    config["preloadedParams"] = json!({"bot_token": "xoxb-s3cret"});
    let refused = world.create(&config).await;
    assert_eq!(refused.wrong_fields(), ["params.webhookUrl"]);
    assert!(!refused.body.to_string().contains("xoxb-s3cret"), "{}", refused.body);

    // A configuration stored before this check.
    config["preloadedParams"] = json!({"mrkdwn": true});
    config["pipedreamMetadata"]["dynamicPropsId"] = json!("dyp_1");
    let mut tool = world.attached(&config).await;
    tool["config_metadata"]["preloadedParams"] = json!({"bot_token": "xoxb-s3cret"});
    world.aws.put("tools", &tool);
    let arguments = json!({"text": "Hello", "webhookUrl": "https://evil.example/"});
    let answer = world.call_tool(&world.call(&tool, arguments)).await;
    assert!(answer.sentence().contains("was not run"), "{}", answer.body);
    assert!(world.pipedream.runs().is_empty());
}

#[tokio::test]
async fn a_configuration_is_held_against_the_action() {
    let world = World::start().await;
    world.pipedream.connect("apn_sheets", &world.home.organization_id, "google_sheets");
    let ai = |kind: &str| json!({"mode": "ai", "prompt": "x", "schema": {"type": kind}, "required": true});
    for (changes, fields) in [
        (json!({"/params/nobody": "x"}), vec!["params.nobody"]),
        (json!({"/preloadedParams/nobody": 1}), vec!["preloadedParams.nobody"]),
        (json!({"/params/slack": "apn_x"}), vec!["params.slack"]),
        (json!({"/params/conversation": {"mode": "fixed", "value": 7}}), vec!["params.conversation"]),
        (
            json!({"/params/conversation": {"mode": "array_extendable", "fixedValues": ["a"]}}),
            vec!["params.conversation"],
        ),
        (json!({"/params/text": ai("number")}), vec!["params.text"]),
        (json!({"/preloadedParams/mrkdwn": "yes"}), vec!["preloadedParams.mrkdwn"]),
        (json!({"/params": {"username": "Desk"}}), vec!["params.conversation", "params.text"]),
        (json!({"/pipedreamMetadata/app": "gmail"}), vec!["pipedreamMetadata.app"]),
        (json!({"/pipedreamMetadata/appProp": "text"}), vec!["pipedreamMetadata.appProp"]),
        (json!({"/pipedreamMetadata/version": "9.9.9"}), vec!["pipedreamMetadata.version"]),
        (json!({"/pipedreamMetadata/accountId": "apn_sheets"}), vec!["pipedreamMetadata.accountId"]),
    ] {
        let mut config = slack_action(&world.home);
        for (pointer, value) in changes.as_object().unwrap() {
            let (parent, name) = pointer.rsplit_once('/').unwrap();
            config.pointer_mut(parent).unwrap()[name] = value.clone();
        }
        let refused = world.create(&config).await;
        assert_eq!(refused.wrong_fields(), fields, "{}", refused.body);
    }
    assert!(world.aws.rows("tools").is_empty());
}

#[tokio::test]
async fn a_recipient_that_the_model_fills_in_is_sent_as_the_list_the_action_takes() {
    let world = World::start().await;
    let mut config = email(&world);
    config["params"]["to"] = json!({"mode": "ai", "prompt": "The recipient's email address"});
    config["params"]["subject"] = json!({"mode": "fixed", "value": "Order Confirmation"});
    config["params"]["cc"] = json!({"mode": "fixed", "value": "desk@example.com"});
    let tool = world.attached(&config).await;
    assert_eq!(tool["function_schema"]["parameters"]["properties"]["to"]["type"], "array");
    for to in [json!("ana@example.com"), json!(["ana@example.com"])] {
        let answer = world.call_tool(&world.call(&tool, json!({"to": to, "body": "Hello"}))).await;
        answer.result();
    }
    for run in world.pipedream.runs() {
        assert_eq!(
            (&run.configured_props["to"], &run.configured_props["cc"]),
            (&json!(["ana@example.com"]), &json!(["desk@example.com"]))
        );
    }
    // Saved again, it is the same.
    world.update(&tool, &json!({"label": "Send an email"})).await.expect(200);
}

#[tokio::test]
async fn why_pipedream_refuses_reaches_the_model() {
    let world = World::start().await;
    let tool = world.attached(&slack_action(&world.home)).await;
    let refusal = json!({
        "error": "configured_props are not valid", "code": "invalid_props",
        "details": {"conversation": "must be a channel that the bot is in"},
    });
    world.pipedream.inject(Fault::status(400).with_body(refusal).on("POST", "/actions/run"));
    let answer = world.call_tool(&world.call(&tool, json!({"text": "Hello"}))).await;
    let told = answer.sentence();
    assert!(told.contains("nothing was done") && told.contains("must be a channel that the bot is in"), "{told}");
    assert!(!told.contains(&world.home.slack_account));
}
