//! The MCP server for its clients: access, lists, answers of tool calls.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::large_futures,
    reason = "a test says what is wrong and stops"
)]

mod automations;

use serde_json::{Value, json};
use shared::models::Timestamp;
use tests::{Event, Options, World, ai_sms, automation::AMPLE, said, slack_action, standins::llm::Turn};

/// Slack, connected, with two tools; push notifications, which need no account.
async fn world(options: Options) -> World {
    let world = World::with(options).await;
    world.service("Slack", Some("slack"));
    world.service_tool("Slack", "slack_list_channels", "Lists the channels of the workspace.", &[]);
    world.service_tool("Slack", "slack_post_message", "Posts a message to a channel.", &["channel", "text"]);
    world.service_capabilities("Slack", &json!({
        "supports_webhooks": true, "webhook_events": ["message"],
        "webhook_payload_schemas": {"message": {
            "description": "A message was posted", "trigger_data_fields": {"event.text": "The text", "event.user": "Who"},
        }},
    }));
    world
}

fn with_call_tool() -> Options {
    Options { variables: vec![("MCP_CALL_TOOL", "true".to_owned())], ..Options::default() }
}

/// Whether everything in `expected` stands in `actual`; lists have the same length.
fn has(actual: &Value, expected: &Value) -> bool {
    match (actual, expected) {
        (Value::Object(actual), Value::Object(expected)) => {
            expected.iter().all(|(name, value)| actual.get(name).is_some_and(|actual| has(actual, value)))
        }
        (Value::Array(actual), Value::Array(expected)) => {
            actual.len() == expected.len()
                && actual.iter().zip(expected).all(|(actual, expected)| has(actual, expected))
        }
        _ => actual == expected,
    }
}

// ---------------------------------------------------------------------------------------------------- long answers

/// The cursor that a text names.
fn cursor_in(text: &str) -> Option<String> {
    let (_, cursor) = text.split_once(" with cursor ")?;
    cursor.split_whitespace().next().map(str::to_owned)
}

/// Names of tools in the lines of a text.
fn listed_in(text: &str) -> Vec<String> {
    let names = text.lines().filter_map(|line| line.strip_prefix("- slack_")?.split_once(": "));
    names.map(|(name, _)| format!("slack_{name}")).collect()
}

#[tokio::test]
async fn no_tool_of_a_large_service_is_lost_on_the_way_to_a_client() {
    let world = world(Options::default()).await;
    let long = "Does one thing among many with «quotes», and says so at length. ".repeat(9);
    for number in 0..498 {
        world.service_tool_with("Slack", &format!("slack_tool_{number:03}"), &json!({"description": long}));
    }
    let example = json!({"event": {"text": "word ".repeat(2_000)}});
    world.service_capabilities("Slack", &json!({
        "supports_webhooks": true, "webhook_events": ["message"], "notes": "n".repeat(4_000),
        "webhook_payload_schemas": {"message": {
            "description": "A message was posted", "trigger_data_fields": {"event.text": "The text"}, "example": example,
        }},
    }));
    for (tool, arguments) in [
        ("initial_md_fetch", json!({"services": ["Push Notifications", "Slack"]})),
        ("search_tools", json!({"services": ["Slack"], "limit": 100})),
    ] {
        let (mut in_text, mut in_data, mut arguments) = (Vec::new(), Vec::new(), arguments);
        for page in 0.. {
            assert!(page < 40, "{tool}");
            let answer = world.mcp_call(tool, &arguments).await;
            let (failed, text) = said(&answer);
            assert!(!failed && !text.contains("shortened:") && text.len() < 60_000, "{tool}: {text}");
            let data = &answer["structuredContent"];
            assert!(
                data["shortened"].is_null() && data.to_string().len() < 60_000,
                "{tool}: {}",
                data.to_string().len()
            );
            in_text.extend(listed_in(text));
            let services =
                data["services"].as_array().into_iter().flatten().flat_map(|of| of["tools"].as_array().unwrap());
            let items = services.chain(data["items"].as_array().into_iter().flatten());
            in_data.extend(items.map(|item| item["name"].as_str().unwrap().to_owned()));
            assert_eq!(cursor_in(text).as_deref(), data["next_cursor"].as_str(), "{tool}");
            if tool == "initial_md_fetch" {
                assert!(text.contains("Webhook Payload Schemas:\n\n  message:"), "{text}");
            }
            let Some(cursor) = cursor_in(text) else { break };
            arguments["cursor"] = json!(cursor);
        }
        for seen in [&in_text, &in_data] {
            let distinct: std::collections::BTreeSet<&String> = seen.iter().collect();
            assert_eq!((seen.len(), distinct.len()), (500, 500), "{tool}");
        }
    }
    // Schemas without a place are named.
    let schema =
        json!({"type": "object", "properties": {"text": {"type": "string", "description": "d".repeat(2_000)}}});
    let names: Vec<String> = (0..100).map(|number| format!("slack_tool_{number:03}")).collect();
    for name in &names {
        world.service_tool_with("Slack", name, &json!({"description": long, "parameters": schema}));
    }
    let answer = world.mcp_call("fetch_tool_data", &json!({"tool_names": names})).await;
    let (_, text) = said(&answer);
    assert!(!text.contains("shortened:"), "{text}");
    let data = &answer["structuredContent"];
    let (given, left) = (data["tools"].as_array().unwrap(), data["problems"].as_array().unwrap());
    assert!(given.len() > 3 && given.len() + left.len() == 100, "{} and {}", given.len(), left.len());
    assert!(left.iter().all(|problem| problem["problem"] == "left_out"), "{left:?}");
}

// ----------------------------------------------------------------------------------------------------- the protocol

#[tokio::test]
async fn every_exchange_goes_as_clients_expect_it() {
    let world = world(Options::default()).await;
    let fixture: Value = serde_json::from_str(include_str!("../../fixtures/mcp.json")).unwrap();
    for exchange in fixture["exchanges"].as_array().unwrap() {
        let name = &exchange["name"];
        let mut event = world.mcp_event(&exchange["message"]);
        event.headers.remove("mcp-protocol-version");
        event.method = exchange["method"].as_str().unwrap_or("POST").to_owned();
        for (header, value) in exchange["headers"].as_object().unwrap() {
            event = event.header(header, value.as_str().unwrap());
        }
        if let Some(text) = exchange["text"].as_str() {
            event = event.text(text);
        }
        let answer = world.send("mcp", &event).await;
        assert_eq!(json!(answer.status), exchange["status"], "{name}: {}", answer.body);
        if let Some(body) = exchange.get("body") {
            assert_eq!(answer.content_type, "application/json", "{name}");
            assert!(has(&answer.body, body), "{name}: {}", answer.body);
        }
        if let Some(says) = exchange.get("says") {
            assert_eq!(answer.body, *says, "{name}");
        }
        if answer.status == 405 {
            assert_eq!(answer.headers["allow"], "POST", "{name}");
        }
        assert!(!answer.headers.contains_key("mcp-session-id"), "{name}");
    }
}

#[tokio::test]
async fn the_list_has_one_page_in_a_fixed_order_with_the_effect_of_each_tool() {
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    let world = world(Options::default()).await;
    let usual = world.mcp(&list).await.expect(200)["result"].clone();
    assert_eq!(world.mcp(&list).await.expect(200)["result"], usual);
    assert!(usual.get("nextCursor").is_none());
    let names = |list: &Value| -> Vec<String> {
        list["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    let all = [
        "initial_md_fetch",
        "fetch_tool_data",
        "search_tools",
        "deploy_automation",
        "list_automations",
        "get_automation",
        "update_automation",
        "run_automation",
        "get_run",
    ];
    assert_eq!(names(&usual), all);
    for tool in usual["tools"].as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        if name == "run_automation" {
            assert_eq!(tool["annotations"]["destructiveHint"], true);
            continue;
        }
        let reads = !["deploy_automation", "update_automation"].contains(&name);
        assert_eq!(
            tool["annotations"],
            json!({
                "title": tool["title"], "readOnlyHint": reads, "destructiveHint": false, "idempotentHint": true,
                "openWorldHint": !reads,
            })
        );
        assert!(tool["title"].is_string() && tool["description"].is_string(), "{tool}");
        assert_eq!(
            (&tool["inputSchema"]["type"], &tool["inputSchema"]["additionalProperties"]),
            (&json!("object"), &json!(false))
        );
        assert!(tool.get("outputSchema").is_none(), "{tool}");
    }
    let cursor = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/list", "params": {"cursor": "x"}});
    assert_eq!(world.mcp(&cursor).await.expect(200)["error"]["code"], -32602);

    let with_calls = self::world(with_call_tool()).await;
    let all = with_calls.mcp(&list).await.expect(200)["result"].clone();
    assert_eq!(names(&all)[9], "call_tool");
    let call_tool = &all["tools"][9]["annotations"];
    assert_eq!((&call_tool["readOnlyHint"], &call_tool["destructiveHint"]), (&json!(false), &json!(true)));
}

// ------------------------------------------------------------------------------------------------------ who is let in

#[tokio::test]
async fn without_a_good_token_a_client_is_told_where_it_gets_one() {
    let world = world(Options::default()).await;
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let metadata =
        format!("https://api.switchboard.example/.well-known/oauth-protected-resource/api/{}/mcp", world.home.slug);
    let claims = world.issuer.claims(&world.home.user_id);
    let mut expired = claims.clone();
    expired["exp"] = json!(Timestamp::now().as_seconds() - 3_600);
    let mut elsewhere = claims.clone();
    elsewhere["aud"] = json!(format!("https://api.switchboard.example/api/{}/mcp", world.other.slug));
    let expired = world.issuer.signed("rs256", &expired);
    let elsewhere = world.issuer.signed("rs256", &elsewhere);
    for (authorization, error) in [
        (None, None),
        (Some("Basic dTpw".to_owned()), None),
        (Some("Bearer ".to_owned()), None),
        (Some("Bearer x".to_owned()), Some("the token cannot be read")),
        (Some(format!("Bearer {expired}")), Some("the token has expired")),
        (Some(format!("Bearer {elsewhere}")), Some("the token was made for another audience")),
    ] {
        for method in ["POST", "GET"] {
            let mut event = world.mcp_event(&ping);
            event.method = method.to_owned();
            event.headers.remove("authorization");
            if let Some(authorization) = &authorization {
                event = event.header("authorization", authorization);
            }
            // Claims that only an authorizer may set, and other headers, do not let anybody in.
            let mut raw = event.header("x-vapi-secret", &world.issuer.token(&world.home.user_id)).to_json();
            raw["requestContext"]["authorizer"] = json!({"jwt": {"claims": {"sub": world.home.user_id}}});
            let answer = world.send_json("mcp", &raw).await;
            assert_eq!((answer.status, &answer.body["code"]), (401, &json!("unauthenticated")), "{authorization:?}");
            let why = error.map(|why| format!(", error=\"invalid_token\", error_description=\"{why}\""));
            let challenge = format!("Bearer resource_metadata=\"{metadata}\"{}", why.unwrap_or_default());
            assert_eq!(answer.headers["www-authenticate"], challenge, "{authorization:?}");
            let named = (&answer.body["resource_metadata"], answer.body.get("scope"));
            assert_eq!(named, (&json!(metadata), None), "a gateway may rename the header");
        }
    }
}

#[tokio::test]
async fn the_metadata_leads_to_the_issuer() {
    let world = world(Options::default()).await;
    let path = format!("/api/{}/mcp", world.home.slug);
    let of = async |path: &str| world.send("mcp", &Event::get(path)).await;
    let answer = of(&format!("/.well-known/oauth-protected-resource{path}")).await;
    assert_eq!(answer.headers["access-control-allow-origin"], "*");
    let metadata = answer.expect(200);
    assert_eq!(
        metadata,
        json!({
            "resource": format!("https://api.switchboard.example{path}"), "resource_name": "Switchboard",
            "authorization_servers": [world.issuer.url], "bearer_methods_supported": ["header"],
        })
    );
    let root = of("/.well-known/oauth-protected-resource").await.expect(200);
    assert_eq!(root["resource"], "https://api.switchboard.example");
    // An unknown organization gets the same answer, so it reveals nothing.
    let nobody = of("/.well-known/oauth-protected-resource/api/nobody-is-here/mcp").await.expect(200);
    assert_eq!(nobody["resource"], "https://api.switchboard.example/api/nobody-is-here/mcp");
    of("/.well-known/oauth-protected-resource/api/Not%20A%20Slug/mcp").await.expect(404);

    // A token made for this address alone is accepted.
    let mut claims = world.issuer.claims(&world.home.user_id);
    claims["aud"] = metadata["resource"].clone();
    let bearer = format!("Bearer {}", world.issuer.signed("eddsa", &claims));
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    world.send("mcp", &world.mcp_event(&ping).header("authorization", &bearer)).await.expect(200);
}

#[tokio::test]
async fn a_scope_that_is_asked_for_must_be_there() {
    let options =
        Options { variables: vec![("MCP_SCOPES", "switchboard/agents openid".to_owned())], ..Options::default() };
    let world = world(options).await;
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let refused = world.mcp(&ping).await;
    let challenge = refused.headers["www-authenticate"].clone();
    let problem = refused.expect(403);
    assert_eq!((&problem["code"], &problem["scope"]), (&json!("forbidden"), &json!("switchboard/agents openid")));
    assert!(problem["resource_metadata"].as_str().unwrap().starts_with("https://"), "{problem}");
    assert!(challenge.contains("scope=\"switchboard/agents openid\", error=\"insufficient_scope\""), "{challenge}");
    assert!(challenge.starts_with("Bearer resource_metadata=\"https://"), "{challenge}");
    let mut claims = world.issuer.claims(&world.home.user_id);
    claims["scope"] = json!("openid email switchboard/agents");
    let bearer = format!("Bearer {}", world.issuer.signed("rs256", &claims));
    world.send("mcp", &world.mcp_event(&ping).header("authorization", &bearer)).await.expect(200);
    let nobody = Event::post(&format!("/api/{}/mcp", world.home.slug), &ping);
    let challenge = world.send("mcp", &nobody).await.headers["www-authenticate"].clone();
    assert!(challenge.ends_with("scope=\"switchboard/agents openid\""), "{challenge}");
    let path = format!("/.well-known/oauth-protected-resource/api/{}/mcp", world.home.slug);
    let metadata = world.send("mcp", &Event::get(&path)).await.expect(200);
    assert_eq!(metadata["scopes_supported"], json!(["switchboard/agents", "openid"]));
}

#[tokio::test]
async fn another_organization_is_not_found_and_an_issuer_that_is_down_is_no_bad_token() {
    let mut world = world(Options::default()).await;
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let stranger = world.mcp_event_of(&world.other.user_id, &ping);
    let answer = world.send("mcp", &stranger).await;
    assert_eq!((answer.status, answer.headers.get("www-authenticate")), (404, None), "{}", answer.body);
    world.restart();
    world.issuer.breaks(true);
    let answer = world.mcp(&ping).await;
    assert_eq!((answer.status, answer.headers.get("www-authenticate")), (503, None), "{}", answer.body);
}

#[tokio::test]
async fn a_page_of_another_origin_is_refused_and_one_that_may_ask_reads_every_answer() {
    let options = Options {
        variables: vec![("MCP_ORIGINS", "https://app.example, https://b.example".to_owned())],
        ..Options::default()
    };
    let world = world(options).await;
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    for (origin, allowed) in [
        ("https://app.example", true),
        ("https://api.switchboard.example", true),
        ("https://evil.example", false),
        ("http://app.example", false),
        ("https://app.example:8443", false),
        ("null", false),
    ] {
        let event = world.mcp_event(&ping).header("origin", origin);
        let mut preflight = event.clone();
        preflight.method = "OPTIONS".to_owned();
        preflight.headers.remove("authorization");
        let (answer, before) = (world.send("mcp", &event).await, world.send("mcp", &preflight).await);
        assert_eq!((answer.status, before.status), if allowed { (200, 204) } else { (403, 403) }, "{origin}");
        let shown = allowed.then(|| origin.to_owned());
        assert_eq!(answer.headers.get("access-control-allow-origin").cloned(), shown, "{origin}");
        assert_eq!(before.headers.get("access-control-allow-origin").cloned(), shown, "{origin}");
    }
    let mut unknown = world.mcp_event(&ping).header("origin", "https://app.example");
    unknown.headers.remove("authorization");
    let answer = world.send("mcp", &unknown).await;
    assert_eq!((answer.status, answer.headers["access-control-allow-origin"].as_str()), (401, "https://app.example"));
    assert!(answer.headers["access-control-expose-headers"].contains("WWW-Authenticate"));
    let mut preflight = unknown.clone();
    preflight.method = "OPTIONS".to_owned();
    let allowed = world.send("mcp", &preflight).await.headers["access-control-allow-headers"].clone();
    assert!(allowed.contains("authorization") && allowed.contains("mcp-protocol-version"), "{allowed}");
}

// ---------------------------------------------------------------------------------------------------------- discovery

#[tokio::test]
async fn an_agent_finds_services_and_reads_schemas() {
    let world = world(Options::default()).await;
    let viewer = world.member(&world.home, Some("viewer"));
    let overview = world.mcp_call_of(&viewer, "initial_md_fetch", &json!({"services": ["slack", "Slak"]})).await;
    let (failed, text) = said(&overview);
    assert!(!failed && text.starts_with("Available Slack tools:\n- slack_list_channels: "), "{text}");
    assert!(text.contains("Supports Webhooks: True") && text.contains("- event.text: The text"), "{text}");
    assert_eq!(overview["structuredContent"]["services"][0]["name"], "Slack");

    let data = world.mcp_call_of(&viewer, "fetch_tool_data", &json!({"tool_names": ["slack_post_message"]})).await;
    assert!(said(&data).1.contains("slack_post_message"), "{data}");
    assert!(data["structuredContent"]["tools"][0]["fingerprint"].is_string(), "{data}");

    let found = world.mcp_call_of(&viewer, "search_tools", &json!({"q": "post mesage"})).await;
    assert_eq!(found["structuredContent"]["items"][0]["name"], "slack_post_message", "{found}");
}

#[tokio::test]
async fn wrong_arguments_are_sentences_that_the_model_can_act_on() {
    let world = world(Options::default()).await;
    for (tool, arguments, sentence) in [
        ("initial_md_fetch", json!({}), "The argument \"services\" is missing"),
        ("initial_md_fetch", json!({"services": ["Slack"], "service": "x"}), "There is no member service."),
        ("initial_md_fetch", json!({"services": []}), "The arguments are wrong:\n- service"),
        ("fetch_tool_data", json!({"tool_names": [7]}), "The argument \"tool_names[0]\" must be text"),
        ("search_tools", json!({"trigger": "sms"}), "The argument \"trigger\" must be one of webhook, polling."),
        (
            "search_tools",
            json!({"limit": 1000}),
            "The arguments are wrong:\n- limit: must be a whole number from 1 to 100",
        ),
        ("search_tools", json!({"cursor": "x"}), "The arguments are wrong:\n- cursor"),
        ("deploy_automation", json!({"automation": 7}), "The argument \"automation\" must be an object, not a number."),
    ] {
        let result = world.mcp_call(tool, &arguments).await;
        let (failed, text) = said(&result);
        assert!(failed && text.starts_with(sentence), "{tool} {arguments}: {text}");
    }
}

// ---------------------------------------------------------------------------------------------------------- call_tool

#[tokio::test]
async fn a_tool_is_read_with_the_time_in_its_descriptions_and_called_by_its_fingerprint() {
    let world = world(with_call_tool()).await;
    let mut config = slack_action(&world.home);
    config["description"] = json!("Tells the team. Today is {{now}}");
    config["params"]["text"]["prompt"] = json!("The text of {{now}}");
    let name = world.tool(&config).await["name"].as_str().unwrap().replace('-', "_");
    let data = world.mcp_call("fetch_tool_data", &json!({"tool_names": [name]})).await;
    let read = &data["structuredContent"]["tools"][0];
    assert!(!read.to_string().contains("{{"), "{read}");
    assert!(read["description"].as_str().unwrap().starts_with("Tells the team. Today is 20"), "{read}");
    let call = json!({"name": name, "fingerprint": read["fingerprint"], "arguments": {"text": "Hello"}});
    assert!(!said(&world.mcp_call("call_tool", &call).await).0);
    // A phone call's number is not known here.
    config["description"] = json!("For {{caller_phone_number}} at {{now}}");
    config["label"] = json!("In calls");
    world.tool(&config).await;
    let data = world.mcp_call("fetch_tool_data", &json!({"tool_names": ["in_calls"]})).await;
    let read = &data["structuredContent"]["tools"][0];
    assert_eq!(read["description"], "For {{caller_phone_number}} at {{now}}");
}

#[tokio::test]
async fn a_tool_is_called_once_at_the_fingerprint_that_was_read() {
    let world = world(with_call_tool()).await;
    let tool = world.tool(&slack_action(&world.home)).await;
    let name = tool["name"].as_str().unwrap().replace('-', "_");
    let data = world.mcp_call("fetch_tool_data", &json!({"tool_names": [name]})).await;
    let read = &data["structuredContent"]["tools"][0];
    let arguments = json!({"text": "The build is broken"});
    let call = json!({"name": name, "fingerprint": read["fingerprint"], "arguments": arguments});

    let first = world.mcp_call("call_tool", &call).await;
    assert!(!said(&first).0, "{first}");
    let runs = || world.pipedream.requests().iter().filter(|request| request.path.ends_with("/actions/run")).count();
    assert_eq!(runs(), 1);
    // The same call of the same user is the same effect, with any message id.
    let again = world.mcp_call("call_tool", &call).await;
    assert_eq!((said(&again), runs()), (said(&first), 1));
    // With a key of its own it is another effect, once.
    let mut keyed = call.clone();
    keyed["idempotency_key"] = json!("second");
    for _ in 0..2 {
        assert!(!said(&world.mcp_call("call_tool", &keyed).await).0);
        assert_eq!(runs(), 2);
    }
    // Another user's call is another one.
    let member = world.member(&world.home, Some("member"));
    assert!(!said(&world.mcp_call_of(&member, "call_tool", &call).await).0);
    assert_eq!(runs(), 3);
    let history = world.aws.rows("executions");
    assert!(history.iter().all(|row| row["trigger"] == "agent"), "{history:?}");

    let viewer = world.member(&world.home, Some("viewer"));
    let refused = world.mcp_call_of(&viewer, "call_tool", &call).await;
    assert_eq!(
        said(&refused),
        (true, "This needs at least the role member in this organization; ask one of its owners for it.")
    );

    let mut drifted = call.clone();
    drifted["fingerprint"] = json!("v7");
    let result = world.mcp_call("call_tool", &drifted).await;
    let (failed, text) = said(&result);
    assert!(failed && text.contains("its fingerprint is v0, and not v7. Read it again with fetch_tool_data"), "{text}");

    let mut wrong = call.clone();
    wrong["arguments"] = json!({"text": 7});
    assert_eq!(
        said(&world.mcp_call("call_tool", &wrong).await),
        (true, "The argument \"text\" must be text, not a number.")
    );
    let mut made_up = call.clone();
    made_up["arguments"]["channel"] = json!("C1");
    assert!(said(&world.mcp_call("call_tool", &made_up).await).0);
    assert_eq!(runs(), 3);
}

#[tokio::test]
async fn call_tool_calls_only_tools_that_search_finds() {
    let world = world(with_call_tool()).await;
    let now = json!({"name": "current_time", "fingerprint": "built-in", "arguments": {"timeZone": "UTC"}});
    let result = world.mcp_call("call_tool", &now).await;
    assert_eq!((said(&result).0, &result["structuredContent"]["time_zone"]), (false, &json!("UTC")), "{result}");

    let sms = world.tool(&ai_sms()).await;
    let theirs = world.create_as(&world.other, &ai_sms()).await.expect(201);
    for (name, sentence) in [
        ("slack_post_mesage".to_owned(), "slack_post_message"),
        (theirs["id"].as_str().unwrap().to_owned(), "no"),
        (sms["id"].as_str().unwrap().to_owned(), "call"),
        ("call_tool".to_owned(), "no"),
        ("deploy_automation".to_owned(), "no"),
    ] {
        let call = json!({"name": name, "fingerprint": "v1", "arguments": {"text": "x"}});
        let result = world.mcp_call("call_tool", &call).await;
        let (failed, text) = said(&result);
        assert!(failed && text.contains(sentence), "{name}: {text}");
    }
    assert!(world.twilio.requests().is_empty());

    // Not offered, it is no tool.
    let without = self::world(Options::default()).await;
    let message =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "call_tool", "arguments": now}});
    assert_eq!(without.mcp(&message).await.expect(200)["error"]["code"], -32602);
}

// ---------------------------------------------------------------------------------------------------- function calling

#[tokio::test]
async fn the_same_tools_are_definitions_of_functions_and_can_be_called() {
    let world = world(Options::default()).await;
    let of = async |format: &str| {
        let event = Event::get(&format!("/api/{}/agent-tools", world.home.slug)).user(&world.home.user_id);
        let event = if format.is_empty() { event } else { event.query("format", format) };
        world.send("mcp", &event).await
    };
    let openai = of("openai").await.expect(200);
    assert_eq!(openai["tools"].as_array().unwrap().len(), 9);
    let search = &openai["tools"][2]["function"];
    assert_eq!((&search["name"], &search["strict"]), (&json!("search_tools"), &json!(true)));
    let anthropic = of("anthropic").await.expect(200);
    assert_eq!(anthropic["tools"][0]["input_schema"]["required"], json!(["services"]));
    let plain = of("").await.expect(200);
    assert_eq!(plain, of("json-schema").await.expect(200));
    assert_eq!(plain["tools"][3]["annotations"]["readOnlyHint"], false);
    assert_eq!(of("xml").await.wrong_fields(), ["format"]);

    let user = &world.home.user_id;
    // A model's strict form: every member is there, null where it is unset.
    let search = json!({"q": "post a message", "services": null, "category": null, "trigger": null, "connected": null, "limit": 1, "cursor": null});
    let found = world.agent_tool_of(user, "search_tools", &search).await.expect(200);
    assert_eq!(
        (&found["success"], &found["data"]["items"][0]["name"]),
        (&json!(true), &json!("slack_post_message")),
        "{found}"
    );
    let wrong = world.agent_tool_of(user, "search_tools", &json!({"limit": "many"})).await.expect(200);
    assert_eq!(
        wrong,
        json!({"success": false, "text": "The argument \"limit\" must be a whole number, not text.", "data": null})
    );
    for name in ["call_tool", "sum", "search%20tools"] {
        world.agent_tool_of(user, name, &json!({})).await.expect(404);
    }
    assert_eq!(world.agent_tool_of(user, "search_tools", &json!([])).await.wrong_fields(), ["body"]);
    let viewer = world.member(&world.home, Some("viewer"));
    world.agent_tool_of(&viewer, "search_tools", &json!({"q": "x"})).await.expect(403);
}

#[tokio::test]
async fn an_invalid_message_gets_a_json_rpc_error_and_there_is_no_session() {
    let world = world(Options::default()).await;
    let event = world.mcp_event(&json!({}));
    for (body, code) in
        [("{", -32700), ("", -32700), ("nonsense", -32700), ("{}", -32600), ("[]", -32600), ("7", -32600)]
    {
        let answer = world.send("mcp", &event.clone().text(body)).await.expect(400);
        assert_eq!((&answer["jsonrpc"], &answer["error"]["code"]), (&json!("2.0"), &json!(code)), "{body:?}: {answer}");
    }
    let text = event.clone().header("content-type", "text/plain");
    assert_eq!(world.send("mcp", &text).await.status, 415);
    let mut end = event;
    end.method = "DELETE".to_owned();
    end.body = None;
    let refused = world.send("mcp", &end).await;
    assert_eq!((refused.status, refused.headers["x-content-type-options"].as_str()), (405, "nosniff"));
}

#[tokio::test]
async fn a_run_that_names_no_tools_is_not_offered_them() {
    let world = world(Options::default()).await;
    world.llm.script([
        Turn::text("````tool\nreturn search_tools(\"message\");\n````"),
        Turn::text("````tool\nreturn finalResponse();\n````"),
        Turn::text("\"Done\""),
    ]);
    let run = world.start_run(&json!({"prompt": "Hello"})).await.expect(202);
    assert_eq!(world.run_loop(AMPLE).await, 0);
    let run = world.run(run["id"].as_str().unwrap()).await.expect(200);
    assert!(!run["system_prompt"].to_string().contains("deploy_automation"), "{run}");
    let prompts = world.llm.requests();
    assert!(prompts.iter().all(|request| !request.body.to_string().contains("fetch_tool_data")), "{prompts:?}");
    // An unknown name gives none of them.
    world.start_run(&json!({"prompt": "Hello", "tools": ["call_tool", "call_tools"]})).await.expect(422);
}
