//! Tools whose configuration a newer version wrote.

use std::time::Duration;

use local::standins::llm::Turn;
use serde_json::{Value, json};
use tests::{Event, World, ai_sms, api_request, phone, preemptive_sms, slack_action, sms_without_call};

use super::{assert_marked, get, mark, text};

/// The second tool has a newer version's type.
async fn two_tools(world: &World, config: &Value) -> (Value, Value) {
    let (good, bad) = (world.attached(config).await, world.attached(config).await);
    world.aws.change("tools", text(&bad["id"]), json!({"type": "fax"}));
    (good, bad)
}

#[tokio::test]
async fn a_tool_of_an_unknown_type_costs_the_start_of_a_call_that_tool() {
    let world = World::start().await;
    let (good, _) = two_tools(&world, &preemptive_sms()).await;
    let answer = world.send("call-start", &world.incoming(&world.caller(&phone(1)))).await;
    assert!(answer.body.as_str().unwrap().contains("<Stream"), "{}", answer.body);
    let set_off = &world.aws.rows("calls")[0]["on_call_start"];
    assert_eq!((set_off.as_array().unwrap().len(), &set_off[0]["tool_id"]), (1, &good["id"]));
    assert_eq!(world.run_queued().await, 0);
    assert_eq!(world.twilio.requests().iter().filter(|request| request.method == "POST").count(), 1);
}

#[tokio::test]
async fn a_tool_of_an_unknown_type_is_neither_shown_nor_taken_from_its_agent() {
    let world = World::start().await;
    let (good, bad) = two_tools(&world, &ai_sms()).await;
    let (rows, at_vapi) = (world.aws.rows("agent_tools"), world.tool_ids());
    for _look in 0..2 {
        let list = get(&world, "list-tools", &format!("/agents/{}/tools", world.home.agent_id)).await.expect(200);
        let shown: Vec<&Value> = list["items"].as_array().unwrap().iter().map(|item| &item["id"]).collect();
        assert_eq!((shown, &list["unmanaged"], &list["synced"]), (vec![&good["id"]], &json!([]), &json!(true)));
    }
    assert_eq!((world.aws.rows("agent_tools"), world.tool_ids()), (rows, at_vapi));
    // Requests for the tool itself report the reason, and change nothing.
    let id = text(&bad["id"]);
    let agent = Event::new("DELETE", &format!("/api/{}/agents/{}", world.home.slug, world.home.agent_id));
    world.aws.change("phone_numbers", &world.home.phone_number_id, json!({"agent_id": null}));
    for answer in [
        world.attach(id).await,
        world.detach(id).await,
        world.delete(&bad).await,
        world.update(&bad, &json!({"label": "Fax"})).await,
        world.start_run(&json!({"prompt": "Hello", "tools": [id]})).await,
        world.try_tool(&json!({"tool_id": id})).await,
        world.send("agents", &agent.user(&world.home.user_id)).await,
    ] {
        assert_eq!((answer.status, &answer.body["code"]), (503, &json!("unavailable")), "{}", answer.body);
        assert!(text(&answer.body["detail"]).contains(id), "{}", answer.body);
    }
    assert!(world.aws.row("tools", id).unwrap().get("lease_token").is_none(), "whoever can read it need not wait");
    assert_eq!(world.aws.rows("agent_tools").len(), 2);
    let sentence = world.call_tool(&world.call(&bad, json!({"text": "Hello"}))).await;
    assert!(sentence.sentence().contains("not available just now"));
    assert_eq!(world.delete_as(&world.other, &bad).await.status, 404);
}

/// A configuration with unknown members, at the top and within.
fn newer_config(tool: &Value) -> Value {
    let mut config = tool["config_metadata"].clone();
    config["retention"] = json!({"days": 7});
    config["from"]["pool"] = json!("berlin");
    config["text"]["tone"] = json!({"mode": "kind"});
    config
}

#[tokio::test]
async fn an_edit_keeps_unknown_fields() {
    let world = World::start().await;
    let tool = world.attached(&sms_without_call(&world.home)).await;
    let id = text(&tool["id"]);
    let mut function = tool["function_schema"].clone();
    function["parameters"]["properties"]["tone"] = json!({"type": "string"});
    let mut hidden = tool["static_config"].clone();
    hidden["retention"] = json!({"days": 7});
    let row = json!({"config_metadata": newer_config(&tool), "function_schema": function, "static_config": hidden});
    world.aws.change("tools", id, row);
    mark(&world, "tools", id);

    // It works as before: shown, executed, offered, tried.
    let shown = get(&world, "list-tools", &format!("/tools/{id}")).await.expect(200);
    assert_eq!(shown["config_metadata"]["retention"]["days"], 7);
    assert!(shown.get("newer").is_none() && shown.get("lease_token").is_none());
    assert_eq!(world.call_tool(&world.call(&tool, json!({"text": "Hello"}))).await.result()["sent"], 1);
    world.start_run(&json!({"prompt": "Hello", "tools": [id]})).await.expect(202);
    world.try_tool(&json!({"tool_id": id, "arguments": {"text": "Hello"}})).await.expect(200);

    let edited = world.update(&tool, &json!({"description": "Another one"})).await.expect(200);
    let config = &edited["config_metadata"];
    assert_eq!(config["description"], "Another one");
    assert_eq!((&config["retention"]["days"], &config["from"]["pool"]), (&json!(7), &json!("berlin")));
    assert_eq!(config["text"]["tone"]["mode"], "kind");
    assert_eq!(edited["function_schema"]["description"], "Another one");
    assert_eq!(edited["function_schema"]["parameters"]["properties"]["tone"]["type"], "string");
    assert_eq!(edited["static_config"]["retention"]["days"], 7);
    assert_marked(&world, "tools", id);
    let at_vapi = world.vapi.outgoing(&world.call(&tool, json!({"text": "Hello"})));
    assert!(at_vapi.is_ok(), "VAPI still has the tool");

    // A client that sends everything back changes only its own change.
    let mut all = edited["config_metadata"].clone();
    all["label"] = json!("Say it");
    let edited = world.update(&tool, &all).await.expect(200);
    assert_eq!((&edited["label"], &edited["config_metadata"]["from"]["pool"]), (&json!("Say it"), &json!("berlin")));
    // A replaced field is replaced as a whole; the others keep their content.
    let text_only = json!({"text": {"mode": "fixed", "value": "Hello"}});
    let edited = world.update(&tool, &text_only).await.expect(200);
    let config = &edited["config_metadata"];
    assert!(config["text"].get("tone").is_none() && config["from"]["pool"] == "berlin", "{config}");
    let edited = world.update(&tool, &json!({"from": {"type": "called_number"}})).await.expect(200);
    let config = &edited["config_metadata"];
    assert_eq!((&config["from"], &config["retention"]["days"]), (&json!({"type": "called_number"}), &json!(7)));
    // Bodies are read as strictly as ever.
    assert_eq!(world.update(&tool, &json!({"colour": "red"})).await.wrong_fields(), ["colour"]);
    assert_eq!(world.update(&tool, &json!({"retention": {"days": 8}})).await.wrong_fields(), ["retention"]);
    let from = json!({"from": {"type": "called_number", "pool": "lisbon"}});
    assert_eq!(world.update(&tool, &from).await.wrong_fields(), ["from.pool"]);
    assert_marked(&world, "tools", id);
}

#[tokio::test]
async fn a_configuration_that_cannot_be_read_costs_that_tool() {
    let world = World::start().await;
    let tool = world.attached(&sms_without_call(&world.home)).await;
    let id = text(&tool["id"]);
    let run =
        world.start_run(&json!({"prompt": "Hello", "schema": {"type": "object"}, "tools": [id]})).await.expect(202);
    for (field, unknown) in [
        ("from", json!({"type": "pool"})),
        ("text", json!({"mode": "template"})),
        // A restriction of recipients must not come to mean anybody.
        ("allowed_recipients", json!({"group": "staff"})),
    ] {
        let mut config = tool["config_metadata"].clone();
        config[field] = unknown;
        world.aws.change("tools", id, json!({"config_metadata": config}));
        assert_eq!(get(&world, "list-tools", "/tools").await.expect(200)["items"].as_array().unwrap().len(), 1);
        let call = world.call(&tool, json!({"text": format!("Hello {field}")}));
        assert!(world.call_tool(&call).await.sentence().contains("not available just now"));
        assert_eq!(world.update(&tool, &json!({"label": "Say it"})).await.status, 503);
        assert_eq!(world.start_run(&json!({"prompt": "Hello", "tools": [id]})).await.status, 503);
    }
    assert!(world.twilio.requests().is_empty());
    // Unreadable marks hide everything.
    let mut config = tool["config_metadata"].clone();
    config["redact"] = json!([{"path": "text", "keep": 2}]);
    world.aws.change("tools", id, json!({"config_metadata": config}));
    world.call_tool(&world.call(&tool, json!({"text": "Hello"}))).await.result();
    assert_eq!(world.executions().pop().unwrap()["arguments"]["text"], "[redacted]");
    world.update(&tool, &json!({"label": "Say it"})).await.expect(200);
    assert_eq!(world.aws.row("tools", id).unwrap()["config_metadata"]["redact"][0]["keep"], 2);

    // A run that was offered it continues without it.
    world.aws.change("tools", id, json!({"type": "fax"}));
    world.llm.script([
        Turn::text("````tool\nreturn send_confirmation({text: \"Hello\"});\n````"),
        Turn::text("````tool\nreturn finalResponse();\n````"),
        Turn::text("{}"),
    ]);
    assert_eq!(world.run_loop(Duration::from_secs(60)).await, 0);
    let shown = world.run(text(&run["id"])).await.expect(200);
    assert_eq!(
        (&shown["status"], &shown["steps"][0]["calls"][0]["outcome"]),
        (&json!("completed"), &json!("unknown")),
        "{shown}"
    );
}

/// Stored configurations that today's parser of bodies would refuse, for each type.
#[tokio::test]
async fn a_tightened_limit_does_not_invalidate_stored_rows() {
    let world = World::start().await;
    let base = world.knowledge_base(&json!([{"name": "city", "type": "text"}]), &json!([{"city": "Porto"}])).await;
    let long = |what: &str| what.repeat(1_500);
    let many: Value = (0..60).map(|number| (format!("f{number}"), json!({"mode": "fixed", "value": "x"}))).collect();
    for (body, field, stored) in [
        (
            sms_without_call(&world.home),
            "text",
            json!({"mode": "ai", "prompt": long("p"), "schema": {"type": "string", "minLength": 1}, "required": true}),
        ),
        (sms_without_call(&world.home), "limits", json!({"per_hour": 1_000_000})),
        (sms_without_call(&world.home), "redact", json!(["text", "an_argument_that_is_gone", "result..name"])),
        (api_request("GET", &format!("{}/opening-hours", world.site.url)), "body", many),
        (slack_action(&world.home), "params", json!({"a name": {"mode": "fixed", "value": "x"}})),
        (
            json!({"type": "query", "label": "Find", "knowledge_base_id": base["id"]}),
            "query",
            json!({"mode": "ai", "prompt": long("p"), "schema": {"type": "string"}, "required": true}),
        ),
        (
            json!({"type": "transfer_call", "label": "Transfer", "target": {"type": "sip", "sipUri": "sip:desk@example.com"}}),
            "message",
            json!(long("m")),
        ),
    ] {
        let tool = world.attached(&body).await;
        let id = text(&tool["id"]);
        let mut config = tool["config_metadata"].clone();
        config[field] = stored.clone();
        config["description"] = long("d").into();
        world.aws.change("tools", id, json!({"config_metadata": config, "description": config["description"]}));
        let refused = world.create(&config).await.wrong_fields();
        assert!(refused.contains(&"description".to_owned()) && refused.len() > 1, "{field}: {refused:?}");

        let shown = get(&world, "list-tools", &format!("/tools/{id}")).await.expect(200);
        assert_eq!(shown["config_metadata"][field], stored);
        let tried = world
            .try_tool(
                &json!({"tool_id": id, "arguments": {"text": "Hi", "query": "Porto"}, "caller_phone_number": phone(1)}),
            )
            .await
            .expect(200);
        assert!(tried["status"] == "ready" || body["type"] == "transfer_call", "{field}: {tried}");
        if body["type"] != "transfer_call" {
            world.start_run(&json!({"prompt": "Hello", "tools": [id]})).await.expect(202);
        }
        if body["type"] == "sms" {
            assert_eq!(world.call_tool(&world.call(&tool, json!({"text": "Hello"}))).await.result()["sent"], 1);
        }
    }
}

#[tokio::test]
async fn an_edit_answers_for_its_own_fields() {
    let world = World::start().await;
    let tool = world.attached(&sms_without_call(&world.home)).await;
    let id = text(&tool["id"]);
    let mut config = tool["config_metadata"].clone();
    config["description"] = "d".repeat(1_500).into();
    config["limits"] = json!({"per_hour": 1_000_000});
    world.aws.change("tools", id, json!({"config_metadata": config, "description": config["description"]}));
    let edited = world.update(&tool, &json!({"label": "Say it"})).await.expect(200);
    assert_eq!(
        (&edited["label"], &edited["config_metadata"]["limits"]["per_hour"]),
        (&json!("Say it"), &json!(1_000_000))
    );
    assert_eq!(edited["description"], config["description"]);
    let another = "e".repeat(1_400);
    assert_eq!(world.update(&tool, &json!({"description": another})).await.wrong_fields(), ["description"]);
    assert_eq!(world.update(&tool, &json!({"label": "x".repeat(101)})).await.wrong_fields(), ["label"]);
    let preemptive = json!({"attach_to_agent": false, "execute_on_call_start": true});
    assert_eq!(world.update(&tool, &preemptive).await.wrong_fields(), ["text"], "what the change makes wrong");
    let mended = world.update(&tool, &json!({"description": "Short", "limits": null})).await.expect(200);
    assert!(mended["config_metadata"].get("limits").is_none());
}
