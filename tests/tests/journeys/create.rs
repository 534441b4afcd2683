//! POST /api/{slug}/tools: tools made on both sides, and refusals.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

use futures_util::future::join_all;
use serde_json::{Value, json};
use tests::{Event, World, ai_sms, api_request, slack_action, vapi_openapi::vapi_takes};

fn transfer() -> Value {
    json!({
        "type": "transferCall",
        "label": "Connect to a human",
        "target": {"type": "number", "number": "+1 (415) 555-0199"},
        "messageStrategy": "summary",
    })
}

async fn query(world: &World) -> Value {
    let fields = json!([{"name": "price", "type": "number"}, {"name": "city", "type": "text"}]);
    let base = world.knowledge_base(&fields, &json!([])).await;
    json!({"type": "query", "label": "Homes", "knowledge_base_id": base["id"]})
}

fn post_with_everything() -> Value {
    json!({
        "type": "apiRequest",
        "label": "Book a slot",
        "description": "Books for {{caller_phone_number}}",
        "method": "post",
        "url": "https://api.example.com/slots?phone={{caller_phone_number}}",
        "headers": {"x-api-key": {"mode": "fixed", "value": "s3cret-key"}},
        "body": {
            "day": {"mode": "ai", "prompt": "The day, today is {{now}}", "schema": {"type": "string", "format": "date"}},
            "party": {"mode": "ai", "prompt": "How many", "schema": {"type": "integer"}, "required": false},
            "tags": {"mode": "array_extendable", "fixedValues": ["phone"], "aiExtension": {"enabled": true, "prompt": "More tags", "required": false}},
        },
    })
}

/// The last creation at VAPI.
fn asked(world: &World) -> Value {
    let made = world.vapi.requests().into_iter().rfind(|request| request.method == "POST" && request.path == "/tool");
    made.unwrap().body
}

#[tokio::test]
async fn a_created_tool_is_answered_with_the_row_that_is_stored() {
    let world = World::start().await;
    let answer = world.create(&ai_sms()).await;
    assert_eq!(answer.content_type, "application/json");
    let row = answer.expect(201);

    let columns = [
        "async",
        "attach_to_agent",
        "automatic_for",
        "config_metadata",
        "created_at",
        "data",
        "description",
        "execute_on_call_start",
        "external_tool_id",
        "function_schema",
        "id",
        "label",
        "name",
        "organization_id",
        "static_config",
        "type",
        "updated_at",
        "version",
    ];
    let mut present: Vec<&str> = row.as_object().unwrap().keys().map(String::as_str).collect();
    present.sort_unstable();
    assert_eq!(present, columns);
    assert_eq!(row["name"], "send_confirmation");
    assert_eq!(row["label"], "Send confirmation");
    assert_eq!(row["type"], "sms");
    assert_eq!(row["organization_id"], world.home.organization_id);
    assert_eq!(
        (&row["async"], &row["attach_to_agent"], &row["execute_on_call_start"]),
        (&json!(false), &json!(true), &json!(false))
    );
    assert_eq!(row["function_schema"]["parameters"]["required"], json!(["text"]));
    assert_eq!(
        row["static_config"],
        json!({"from": {"type": "called_number"}, "recipients": ["{{caller_phone_number}}"]})
    );
    let mut stored = row.clone();
    stored.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    assert_eq!(json!(world.tools()), json!([stored]), "what is null in the answer is none in the table");
    assert_eq!(world.list(&format!("/tools/{}", row["id"].as_str().unwrap())).await.expect(200), row);
    assert_eq!(world.vapi.tools().len(), 1);
    assert_eq!(world.vapi.tools()[0]["id"], row["external_tool_id"]);
}

#[tokio::test]
async fn every_type_gives_vapi_an_api_request_tool_it_takes() {
    let world = World::start().await;
    let get = api_request("GET", "https://api.example.com/customers");
    world.pipedream.connect("apn_sheets", &world.home.organization_id, "google_sheets");
    let preset = json!({
        "type": "externalApp", "label": "Add a row",
        "pipedreamMetadata": {"app": "google_sheets", "accountId": "apn_sheets", "actionKey": "google_sheets-add-single-row"},
        "preloadedParams": {"sheetId": "1a2b", "worksheetId": "0"},
        "params": {"myColumnData": {"mode": "array_extendable", "fixedValues": ["{{now}}"], "aiExtension": {"enabled": true, "prompt": "Cells", "required": true}}},
    });
    for (config, kind, arguments) in [
        (ai_sms(), "sms", vec!["text"]),
        (post_with_everything(), "api_request", vec!["body_day", "body_party", "body_tags"]),
        (get, "api_request", vec!["no_arguments"]),
        (slack_action(&world.home), "pipedream_action", vec!["text"]),
        (preset, "pipedream_action", vec!["myColumnData"]),
        (transfer(), "transfer_call", vec!["summary"]),
        (query(&world).await, "query", vec!["city_one_of", "price_at_least", "price_at_most", "query"]),
    ] {
        let row = world.tool(&config).await;
        assert_eq!(row["type"], kind);
        assert_eq!(row["config_metadata"]["type"], kind, "one spelling is stored");
        let body = asked(&world);
        vapi_takes("CreateApiRequestToolDTO", &body);
        let properties = body["body"]["properties"].as_object().unwrap();
        assert_eq!(properties.keys().map(String::as_str).collect::<Vec<_>>(), arguments, "{kind}");
        assert_eq!(body["body"], row["function_schema"]["parameters"]);
        assert_eq!(body["name"], row["name"]);
        assert_eq!(body["type"], "apiRequest");
        assert_eq!(body["method"], "POST");
        let callback = format!("https://api.switchboard.example/api/tools/{}/execute", row["id"].as_str().unwrap());
        assert_eq!(body["url"], callback);
        assert!(body.get("backoffPlan").is_none(), "VAPI must not repeat a call by itself");
        let waits = body["timeoutSeconds"].as_u64().unwrap();
        assert!(waits <= 300 && waits > shared::actions::ANSWER_WITHIN.as_secs(), "VAPI waits for our own sentence");
    }
}

#[tokio::test]
async fn vapi_is_given_the_call_metadata_as_static_parameters() {
    let world = World::start().await;
    world.tool(&ai_sms()).await;
    let body = asked(&world);
    let parameters = body["parameters"].as_array().unwrap();
    assert_eq!(parameters.len(), 1);
    assert_eq!(parameters[0]["key"], "metadata");
    let metadata = parameters[0]["value"].as_object().unwrap();
    assert_eq!(metadata["callerPhoneNumber"], "{{ customer.number }}");
    assert_eq!(metadata["calledPhoneNumber"], "{{ phoneNumber.number }}");
    assert_eq!(metadata["callId"], "{{ call.id }}");
    assert!(metadata["token"].as_str().unwrap().len() >= 43, "256 bits in base64url");
    assert!(body["body"]["properties"].get("metadata").is_none(), "the model does not see it");
}

#[tokio::test]
async fn the_token_goes_to_vapi_and_nowhere_else() {
    let world = World::start().await;
    let answer = world.create(&ai_sms()).await.expect(201);
    let token = asked(&world)["parameters"][0]["value"]["token"].as_str().unwrap().to_owned();
    assert!(!answer.to_string().contains(&token));
    for table in ["tools", "idempotency", "executions"] {
        assert!(!json!(world.aws.rows(table)).to_string().contains(&token), "{table}");
    }
    assert!(!world.list("/tools").await.expect(200).to_string().contains(&token));
}

#[tokio::test]
async fn hidden_values_do_not_reach_vapi() {
    let world = World::start().await;
    let row = world.tool(&post_with_everything()).await;
    let sent = asked(&world).to_string();
    for hidden in ["s3cret-key", "api.example.com", "x-api-key"] {
        assert!(!sent.contains(hidden), "{hidden} in {sent}");
    }
    assert_eq!(row["static_config"]["headers"], json!({"x-api-key": "[secret]"}), "it is there, and shown to nobody");
}

#[tokio::test]
async fn variables_in_prompts_become_vapis_liquid_and_stay_ours_in_fixed_values() {
    let world = World::start().await;
    let row = world.tool(&post_with_everything()).await;
    let body = asked(&world);
    assert_eq!(body["description"], "Books for {{ customer.number }}");
    assert_eq!(body["body"]["properties"]["body_day"]["description"], "The day, today is {{ now }}");
    assert_eq!(row["static_config"]["url"], "https://api.example.com/slots?phone={{caller_phone_number}}");
    assert_eq!(row["description"], "Books for {{caller_phone_number}}", "the author's words are kept");
}

#[tokio::test]
async fn declared_schemas_reach_the_model() {
    let world = World::start().await;
    let row = world.tool(&post_with_everything()).await;
    let parameters = &row["function_schema"]["parameters"];
    assert_eq!(parameters["properties"]["body_day"]["format"], "date");
    assert_eq!(parameters["properties"]["body_party"]["type"], "integer");
    assert_eq!(parameters["properties"]["body_tags"]["type"], "array");
    assert_eq!(parameters["required"], json!(["body_day"]));
}

#[tokio::test]
async fn api_request_is_a_type_that_can_be_stored() {
    let world = World::start().await;
    for spelling in ["api_request", "apiRequest"] {
        let mut config = api_request("GET", "https://api.example.com/x");
        config["type"] = json!(spelling);
        assert_eq!(world.tool(&config).await["type"], "api_request");
    }
    assert_eq!(world.tools().len(), 2);
}

#[tokio::test]
async fn preloaded_and_dynamic_props_are_kept_and_the_version_is_pinned() {
    let world = World::start().await;
    let mut config = slack_action(&world.home);
    config["pipedreamMetadata"]["dynamicPropsId"] = json!("dyp_1");
    let row = world.tool(&config).await;
    let metadata = &row["config_metadata"]["pipedreamMetadata"];
    assert_eq!(metadata["dynamicPropsId"], "dyp_1");
    assert_eq!(metadata["version"], "0.1.3", "what Pipedream has now");
    assert_eq!(metadata["appProp"], "slack");
    assert_eq!(row["static_config"]["preloadedParams"], json!({"mrkdwn": true}));
}

#[tokio::test]
async fn names_are_valid_and_unique_for_any_label() {
    let world = World::start().await;
    let mut names = Vec::new();
    for label in ["日本", "日本", "!!!", "???", "Größe", "x".repeat(100).as_str(), "x".repeat(99).as_str()] {
        let mut config = ai_sms();
        config["label"] = json!(label);
        let row = world.tool(&config).await;
        assert_eq!(row["label"], label);
        names.push(row["name"].as_str().unwrap().to_owned());
    }
    for name in &names {
        assert!(
            (1..=40).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-'),
            "{name}"
        );
    }
    let mut once = names.clone();
    once.sort();
    once.dedup();
    assert_eq!(once.len(), names.len(), "{names:?}");
}

#[tokio::test]
async fn ten_tools_racing_for_one_name_get_ten_names() {
    let world = World::start().await;
    let config = ai_sms();
    let rows = join_all((0..10).map(|_| world.tool(&config))).await;
    let mut names: Vec<&str> = rows.iter().map(|row| row["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 10, "{names:?}");
    assert_eq!(world.tools().len(), 10);
    assert_eq!(world.vapi.tools().len(), 10);
}

#[tokio::test]
async fn names_are_unique_within_an_organization_only() {
    let world = World::start().await;
    let ours = world.tool(&ai_sms()).await;
    let theirs = world.create_as(&world.other, &ai_sms()).await.expect(201);
    assert_eq!(ours["name"], theirs["name"]);
}

#[tokio::test]
async fn a_tool_that_only_runs_on_call_start_is_unknown_to_vapi() {
    let world = World::start().await;
    let config = json!({
        "type": "api_request", "label": "Customer context", "method": "GET",
        "url": "https://crm.example.com/customers?phone={{caller_phone_number}}",
        "attach_to_agent": false, "execute_on_call_start": true,
    });
    let row = world.tool(&config).await;
    assert!(row.get("external_tool_id").is_none_or(Value::is_null));
    assert_eq!(row["data"], json!({}));
    assert_eq!((&row["attach_to_agent"], &row["execute_on_call_start"]), (&json!(false), &json!(true)));
    assert!(world.vapi.requests().is_empty(), "VAPI was asked nothing");
}

#[tokio::test]
async fn a_tool_for_call_start_only_has_nothing_for_a_model_to_fill_in() {
    let world = World::start().await;
    let mut config = ai_sms();
    config["attach_to_agent"] = json!(false);
    assert_eq!(world.create(&config).await.wrong_fields(), ["execute_on_call_start", "text"]);
    config["execute_on_call_start"] = json!(true);
    assert_eq!(world.create(&config).await.wrong_fields(), ["text"]);
    config["attach_to_agent"] = json!(true);
    assert_eq!(world.create(&config).await.wrong_fields(), ["text"], "it runs on call start too");
    assert!(world.tools().is_empty() && world.vapi.requests().is_empty());
}

#[tokio::test]
async fn every_wrong_field_is_named_at_once_and_nothing_is_made() {
    let world = World::start().await;
    let long = "x".repeat(2_000);
    for (config, fields) in [
        (json!({}), vec!["label", "type"]),
        (json!([]), vec!["body"]),
        (json!("text"), vec!["body"]),
        (json!(null), vec!["body"]),
        (json!({"type": "fax", "label": "x"}), vec!["type"]),
        (json!({"type": 5, "label": 5}), vec!["label", "type"]),
        (json!({"type": "sms", "label": "  "}), vec!["from", "label", "recipients", "text"]),
        (
            json!({"type": "sms", "label": long, "description": long, "from": {}, "text": 5, "recipients": {"mode": "x"}}),
            vec!["description", "from.type", "label", "recipients.mode", "text"],
        ),
        (
            json!({"type": "sms", "label": "x", "from": {"type": "called_number", "number": "+1"}, "text": {"mode": "ai"},
                "recipients": {"mode": "array_extendable", "fixedValues": ["12345", "+15550100001", 7], "aiExtension": {"enabled": true}},
                "asynch": true, "async": "yes"}),
            vec![
                "async",
                "asynch",
                "from.number",
                "recipients.aiExtension.prompt",
                "recipients.fixedValues[0]",
                "recipients.fixedValues[2]",
                "text.prompt",
            ],
        ),
        (
            json!({"type": "sms", "label": "x", "from": {"type": "specific_number", "phone_number_id": "1"},
                "text": {"mode": "fixed", "value": long}, "recipients": {"mode": "fixed", "value": []}}),
            vec!["from.phone_number_id", "recipients.value", "text.value"],
        ),
        (
            json!({"type": "sms", "label": "x", "from": {"type": "called_number"}, "text": {"mode": "ai", "prompt": "p", "schema": {"type": "integer", "minimum": 1}},
                "recipients": {"mode": "fixed", "value": "{{order}}"}}),
            vec!["recipients.value", "text.schema.minimum", "text.schema.type"],
        ),
        (json!({"type": "api_request", "label": "x"}), vec!["method", "url"]),
        (
            json!({"type": "api_request", "label": "x", "method": "TRACE", "url": "ftp://x", "headers": {"Host": "a", "bad header": "b", "x": {"mode": "fixed", "value": 5}}, "body": {"": "x", "ok": {"mode": "fixed"}}}),
            vec![
                "body.",
                "body.ok.value",
                "headers.Host",
                "headers.bad header",
                "headers.x.value",
                "method",
                "url.value",
            ],
        ),
        (
            json!({"type": "api_request", "label": "x", "method": "GET", "url": "https://{{caller_phone_number}}/x"}),
            vec!["url.value"],
        ),
        (
            json!({"type": "api_request", "label": "x", "method": "POST", "url": "https://a.example/{{order}}", "headers": {"X-Order": "{{order}}"}, "body": {"text": "{{order}}"}}),
            vec!["url.value"],
        ),
        (
            json!({"type": "sms", "label": "x", "from": {"type": "called_number"}, "text": "Hello {{caller_name}}", "recipients": ["{{caller_phone_number}}"]}),
            vec!["text.value"],
        ),
        (json!({"type": "pipedream_action", "label": "x"}), vec!["pipedreamMetadata"]),
        (
            json!({"type": "pipedream_action", "label": "x", "pipedreamMetadata": {"app": "slack", "appSlug": 1}, "params": [], "preloadedParams": 5}),
            vec![
                "params",
                "pipedreamMetadata.accountId",
                "pipedreamMetadata.actionKey",
                "pipedreamMetadata.appSlug",
                "preloadedParams",
            ],
        ),
        (json!({"type": "transfer_call", "label": "x"}), vec!["target"]),
        (
            json!({"type": "transfer_call", "label": "x", "target": {"type": "number", "number": "911"}, "messageStrategy": "loud"}),
            vec!["messageStrategy", "target.number"],
        ),
        (
            json!({"type": "transfer_call", "label": "x", "target": {"type": "sip", "sipUri": "http://x"}, "messageStrategy": "message"}),
            vec!["message", "target.sipUri"],
        ),
        (
            json!({"type": "transfer_call", "label": "x", "target": {"type": "number", "number": "+15550100009"}, "message": "About {{order}}", "if_unanswered": {"say": "Sorry, {{caller_phone_number}}."}}),
            vec!["if_unanswered.say", "message"],
        ),
        (json!({"type": "query", "label": "x", "knowledge_base_id": "kb"}), vec!["knowledge_base_id"]),
    ] {
        assert_eq!(world.create(&config).await.wrong_fields(), fields, "{config}");
    }
    assert!(world.aws.rows("tools").is_empty());
    assert!(world.vapi.requests().is_empty());
}

#[tokio::test]
async fn an_argument_of_a_model_with_the_name_of_the_calls_data_is_refused() {
    let world = World::start().await;
    let notes = json!({"mode": "ai", "prompt": "Notes", "required": false});
    let mut action = slack_action(&world.home);
    let tool = world.tool(&action).await;
    action["params"]["metadata"] = notes.clone();
    assert_eq!(world.create(&action).await.wrong_fields(), ["params.metadata"]);
    assert_eq!(world.update(&tool, &json!({"params": action["params"]})).await.wrong_fields(), ["params.metadata"]);
    let call = json!({
        "type": "place_call", "label": "Call back", "phone_number_id": world.home.phone_number_id,
        "to": {"mode": "ai", "prompt": "The number to call"}, "variables": {"metadata": notes},
    });
    assert_eq!(world.create(&call).await.wrong_fields(), ["variables.metadata"]);
    let mut request = api_request("POST", "https://api.example.com/x");
    request["body"] = json!({"metadata": notes});
    world.tool(&request).await;
}

#[tokio::test]
async fn a_wrong_field_names_the_next_step() {
    let world = World::start().await;
    let mut config = ai_sms();
    config["recipients"]["fixedValues"] = json!(["555-0100"]);
    let answer = world.create(&config).await.expect(422);
    assert_eq!(answer["code"], "invalid");
    assert_eq!(answer["request_id"], "JKJaXmPLvHcESHA=");
    let problem = answer["errors"][0]["problem"].as_str().unwrap();
    assert!(problem.contains("E.164") && problem.contains("+15550100001"), "{problem}");
}

#[tokio::test]
async fn a_body_that_cannot_be_read_is_400() {
    let world = World::start().await;
    let path = format!("/api/{}/tools", world.home.slug);
    let deep = "[".repeat(100_000);
    for body in ["", "  ", "{", "{\"type\": }", "label=x", &deep] {
        let event = Event::new("POST", &path).user(&world.home.user_id).text(body);
        let answer = world.send("create-tool", &event).await;
        assert_eq!((answer.status, &answer.body["code"]), (400, &json!("malformed")), "{body:?}");
    }
    assert!(world.aws.rows("tools").is_empty());
}

#[tokio::test]
async fn values_that_the_table_cannot_hold_are_named() {
    let world = World::start().await;
    let deep = (0..60).fold(json!(1), |inner, _| json!([inner]));
    for value in [json!({"": 1}), json!({"a": deep}), json!(1e200), json!([1e-200])] {
        let mut config = api_request("POST", "https://api.example.com/x");
        config["body"] = json!({"extra": {"mode": "fixed", "value": value}, "list": {"mode": "array_extendable", "fixedValues": [value]}});
        let answer = world.create(&config).await;
        let fields = answer.wrong_fields();
        assert!(
            fields[0].starts_with("body.extra.value") && fields[1].starts_with("body.list.fixedValues"),
            "{fields:?}"
        );
        let mut config = slack_action(&world.home);
        config["preloadedParams"] = json!({"extra": value});
        let fields = world.create(&config).await.wrong_fields();
        assert!(fields[0].starts_with("preloadedParams"), "{fields:?}");
    }
    assert!(world.vapi.requests().is_empty() && world.aws.rows("tools").is_empty());
}

#[tokio::test]
async fn a_sender_of_another_organization_is_not_found() {
    let world = World::start().await;
    let mut config = ai_sms();
    for number in [&world.other.phone_number_id, &uuid::Uuid::new_v4().to_string()] {
        config["from"] = json!({"type": "specific_number", "phone_number_id": number});
        let answer = world.create(&config).await;
        assert_eq!(answer.wrong_fields(), ["from.phone_number_id"]);
    }
    config["from"] = json!({"type": "specific_number", "phone_number_id": world.home.phone_number_id});
    world.tool(&config).await;
}

#[tokio::test]
async fn an_action_that_pipedream_does_not_have_is_refused() {
    let world = World::start().await;
    let mut config = slack_action(&world.home);
    config["pipedreamMetadata"]["actionKey"] = json!("slack-fly-to-moon");
    assert_eq!(world.create(&config).await.wrong_fields(), ["pipedreamMetadata.actionKey"]);
    assert!(world.aws.rows("tools").is_empty() && world.vapi.requests().is_empty());
}
