//! Requests of the chat, of MCP and of discovery.

use serde_json::{Value, json};
use tests::{
    Event, Trouble, World, ai_sms,
    automation::{AMPLE, calls as block},
    said, sms_without_call,
    standins::{Fault, llm::Turn},
};

use super::automations::pay_service;
use super::{Permissions, ask, note, own_llm};

/// Conversations: every kind of tool is called, one asks for consent, a thread is deleted.
pub(super) async fn chat(asked: &mut Permissions, world: &mut World, tools: &[&Value]) {
    let mut config = sms_without_call(&world.home);
    config["label"] = json!("Ask first");
    config["chat"] = json!({"consent": true});
    world.tool(&config).await;
    let failing = world.tool(&sms_without_call(&world.home)).await;
    pay_service(world);
    world.restart();
    world.aws.clear_operations();
    let call = |name: &str, arguments: Value| Turn::text(&json!({"tool": name, "arguments": arguments}).to_string());
    let named = |tool: &Value| tool["name"].as_str().unwrap().replace('-', "_");
    for tool in tools.iter().copied().chain([&failing]) {
        let known = &tool["function_schema"]["parameters"]["properties"];
        let argument = ["text", "query"].into_iter().find(|name| known.get(*name).is_some());
        let arguments: serde_json::Map<String, Value> =
            argument.map(|name| (name.to_owned(), json!("Hi"))).into_iter().collect();
        for (number, fault) in [None, Some(Fault::status(400))].into_iter().enumerate() {
            if let Some(fault) = fault {
                world.twilio.inject(fault);
            }
            world.llm.script([call(&named(tool), json!(arguments)), Turn::text("That is it.")]);
            world.chat(&format!("{} {number}", named(tool))).await.expect(200);
        }
        world.twilio.clear_faults();
    }
    world.llm.script([call("pay_list", json!({})), Turn::text("That is it.")]);
    world.chat("Which payments are there to list?").await.expect(200);
    world.llm.script([call("ask_first", json!({"text": "Hi"}))]);
    let waits = world.chat("Hi").await.expect(200);
    world.llm.script([Turn::text("All right.")]);
    let id = &waits["metadata"]["pending_action"]["id"];
    world.chat_with(&json!({"metadata": {"consent": {"id": id, "approved": true}}})).await.expect(200);
    let uuid = "0193aa11-4d5e-7f60-8a71-8294a1b2c3d4";
    world.llm.script([Turn::text(r#"{"tool": "none"}"#), Turn::text("Hello!")]);
    let body = json!({"message": "Hi", "thread_id": uuid});
    let event = Event::post("/agent/chat", &body).user(&world.home.user_id).header("x-organization", &world.home.slug);
    world.send("chat", &event).await.expect(200);
    let user = world.home.user_id.clone();
    for (method, path, status) in [
        ("GET", String::new(), 200),
        ("GET", format!("/{uuid}"), 200),
        ("DELETE", format!("/{uuid}"), 204),
        ("DELETE", "/default".to_owned(), 204),
    ] {
        assert_eq!(world.threads(&user, method, &path).await.status, status, "{method} {path}");
    }
    // With the organization's own LLM key, whose address has no server.
    let before = own_llm(world);
    assert!(world.chat("Hi").await.status >= 500);
    world.aws.change("organizations", &world.home.organization_id, json!({"own_keys": before}));
    note(asked, "chat", world);
}

/// A definition that needs no other service.
pub(super) fn definition(name: &str) -> Value {
    json!({
        "name": name, "trigger_type": "webhook", "trigger_config": {"service": "Slack", "event_type": "reaction_added"},
        "fingerprints": {"current_time": "built-in"}, "actions": [{"id": "now", "tool": "current_time", "parameters": {}}],
    })
}

/// External agents find tools, deploy automations and call tools.
pub(super) async fn mcp(asked: &mut Permissions, world: &mut World, tools: &[&Value]) {
    let sms = world.tool(&sms_without_call(&world.home)).await;
    let tools = [&[&sms], tools].concat();
    let ids: Vec<&Value> = tools.iter().map(|tool| &tool["id"]).collect();
    pay_service(world);
    world.slack_service();
    let paid = json!({"name": "pay_list", "fingerprint": world.fingerprint("pay_list"), "arguments": {}});
    let voice = world.voice_token().await;
    let mut later = ai_sms();
    later["async"] = json!(true);
    let (spoken, later) = (world.attached(&ai_sms()).await, world.attached(&later).await);
    world.restart();
    world.aws.clear_operations();
    let called = world.home.phone_number.clone();
    for tool in [&spoken, &later] {
        let call = [("x-call-id", "conv-1"), ("x-caller-number", "+14155550101"), ("x-called-number", called.as_str())];
        let event = world.voice_call(&voice, &call, tool["name"].as_str().unwrap(), &json!({"text": "Hi"}));
        world.send("mcp", &event).await.expect(200);
    }
    world.call_context(&voice, &json!({"call_id": "conv-1", "called_phone_number": called})).await.expect(200);
    let overview = json!({"services": ["Slack", "Twilio", "Slakc"]});
    world.mcp_call("initial_md_fetch", &overview).await;
    world.mcp_call("search_tools", &json!({"q": "message"})).await;
    let read = world.mcp_call("fetch_tool_data", &json!({"tool_names": ids})).await;
    world.twilio.inject(Fault::status(400));
    for tool in read["structuredContent"]["tools"].as_array().unwrap() {
        let known = &tool["parameters"]["properties"];
        let named = ["text", "query"].into_iter().find(|name| known.get(*name).is_some());
        let arguments: serde_json::Map<String, Value> =
            named.map(|name| (name.to_owned(), json!("Hi"))).into_iter().collect();
        let call = json!({"name": tool["id"], "fingerprint": tool["fingerprint"], "arguments": arguments});
        world.mcp_call("call_tool", &call).await;
    }
    world.mcp_call("call_tool", &paid).await;
    for _again in 0..2 {
        let result = world.mcp_call("deploy_automation", &json!({"automation": definition("Over MCP")})).await;
        assert!(!said(&result).0, "{result}");
    }
    let listed = world.mcp_call("list_automations", &json!({})).await;
    let id = listed["structuredContent"]["items"][0]["id"].clone();
    let mut changed = definition("Over MCP");
    changed["description"] = json!("Changed.");
    let change = json!({"id": id, "revision": 1, "automation": changed});
    for (tool, arguments) in [("get_automation", json!({"id": id})), ("update_automation", change)] {
        let result = world.mcp_call(tool, &arguments).await;
        assert!(!said(&result).0, "{result}");
    }
    let start = json!({"id": id, "dry_run": true, "idempotency_key": "one"});
    world.aws.inject(tests::Fault::new("SendMessage", "runs", Trouble::Error("ServiceUnavailable")).times(3));
    world.mcp_call("run_automation", &start).await;
    let run = world.mcp_call("run_automation", &start).await;
    let read = world.mcp_call("get_run", &json!({"id": run["structuredContent"]["id"]})).await;
    assert!(!said(&read).0, "{run} {read}");
    note(asked, "mcp", world);
}

pub(super) async fn building_agent(asked: &mut Permissions, world: &mut World) {
    let calls = format!(
        "return initial_md_fetch([\"Slack\"]);\nreturn search_tools(\"message\");\nreturn pay_list();\nreturn deploy_automation({{automation: {}}});",
        definition("In a run")
    );
    pay_service(world);
    world.slack_service();
    world.service_with("SMS", &json!({"connection": {"type": "phone_number"}}));
    world.service_tool("SMS", "sms_send", "Sends.", &["text"]);
    world.restart();
    world.aws.clear_operations();
    // Rejected, after the accounts of the tools were read.
    let named = json!(["pay_list", "slack_post_message", "sms_send", "no_such_tool"]);
    world.start_run(&json!({"prompt": "Build it", "tools": named})).await;
    note(asked, "runs", world);
    let tools = json!(["initial_md_fetch", "search_tools", "deploy_automation", "pay_list"]);
    for _again in 0..2 {
        world.llm.script(
            [block(&calls), block("return finalResponse();"), "\"Done\"".to_owned()]
                .iter()
                .map(|text| Turn::text(text)),
        );
        world.start_run(&json!({"prompt": "Build it", "tools": tools})).await.expect(202);
        world.restart();
        world.aws.clear_operations();
        world.run_loop(AMPLE).await;
        note(asked, "run-loop", world);
    }
}

/// Searches on each route, and every way to connect and disconnect a service.
pub(super) async fn discover(asked: &mut Permissions, world: &mut World) {
    let fields = json!([{"name": "api_key", "description": "Under Developers."}]);
    world.service("Slack", Some("slack"));
    world.service_tool("Slack", "slack_post_message", "Posts a message.", &["text"]);
    world.service_with("Stripe", &json!({"connection": {"type": "credential", "fields": fields}}));
    world.service_with("Twilio", &json!({"connection": {"type": "phone_number"}}));
    let sms = world.tool(&ai_sms()).await["id"].clone();
    world.restart();
    world.aws.clear_operations();
    let names = json!({"tool_names": ["slack_post_message", sms, "slack_post_mesage"]});
    ask(world, "discover", "POST", "discover/fetch_tool_data", &names).await.expect(200);
    ask(world, "discover", "POST", "discover/search", &json!({"q": "message"})).await.expect(200);
    ask(world, "discover", "GET", "services", &Value::Null).await.expect(200);
    let overview = Event::get(&format!("/api/{}/discover/initial_md_fetch", world.home.slug)).user(&world.home.user_id);
    let overview = overview.query("service", "slack").query("service", "twilio").query("service", "slakc");
    world.send("discover", &overview).await.expect(200);
    // The second credential replaces the first.
    for _credential in 0..2 {
        ask(world, "discover", "POST", "services/stripe/connect", &json!({"api_key": "sk_1"})).await.expect(200);
    }
    for service in ["stripe", "slack"] {
        ask(world, "discover", "DELETE", &format!("services/{service}/connection"), &Value::Null).await.expect(204);
    }
    ask(world, "discover", "POST", "services/slack/connect", &json!({})).await.expect(200);
    // The organization's row is not cached, so it is read again.
    note(asked, "discover", world);
    world.pipedream.connect(&world.home.slack_account, &world.home.organization_id, "slack");
}
