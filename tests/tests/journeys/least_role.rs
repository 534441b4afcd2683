//! A tool with `chat.least_role`: people with a lesser role cannot have it called, whatever way they name it.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::large_futures,
    reason = "a test says what is wrong and stops"
)]

use serde_json::{Value, json};
use tests::{
    Answer, Event, Options, World, api_request,
    automation::{AMPLE, calls},
    said, sms_without_call,
    standins::llm::Turn,
};

async fn world() -> World {
    World::with(Options { variables: vec![("MCP_CALL_TOOL", "true".to_owned())], ..Options::default() }).await
}

/// An SMS that only administrators have sent.
async fn held(world: &World) -> Value {
    let mut config = sms_without_call(&world.home);
    config["chat"] = json!({"least_role": "admin"});
    world.tool(&config).await
}

async fn asked(world: &World, user: &str, function: &str, path: &str, body: &Value) -> Answer {
    world.send(function, &Event::post(&format!("/api/{}/{path}", world.home.slug), body).user(user)).await
}

#[tokio::test]
async fn a_member_cannot_have_it_called_and_an_admin_can() {
    let world = world().await;
    let tool = held(&world).await;
    let name = tool["name"].as_str().unwrap().replace('-', "_");
    let [member, admin] = ["member", "admin"].map(|role| world.member(&world.home, Some(role)));
    let data = world.mcp_call("fetch_tool_data", &json!({"tool_names": [name]})).await;
    let fingerprint = &data["structuredContent"]["tools"][0]["fingerprint"];
    let call = json!({"name": name, "fingerprint": fingerprint, "arguments": {"text": "Hi"}});
    let run = json!({"prompt": "Text Ada.", "tools": [tool["id"]]});
    let trial = json!({"tool_id": tool["id"], "arguments": {"text": "Hi"}, "dry_run": false});
    let dry = json!({"tool_id": tool["id"], "arguments": {"text": "Hi"}});

    let refused = world.mcp_call_of(&member, "call_tool", &call).await;
    assert_eq!(said(&refused), (true, &*format!("The tool {name} needs the role admin in this organization.")));
    let refused = asked(&world, &member, "mcp", "agent-tools/call_tool", &call).await.expect(200);
    assert_eq!(refused["success"], false, "{refused}");
    let refused = asked(&world, &member, "runs", "runs", &run).await;
    assert_eq!(refused.wrong_fields(), ["tools[0]"]);
    assert!(refused.body.to_string().contains("needs the role admin in this organization"), "{}", refused.body);
    let refused = asked(&world, &member, "tools-test", "tools/test", &trial).await.expect(403);
    assert!(refused["detail"].to_string().contains("role admin"), "{refused}");
    asked(&world, &member, "tools-test", "tools/test", &dry).await.expect(200);
    assert_eq!(world.twilio.messages().len(), 0);

    assert!(!said(&world.mcp_call_of(&admin, "call_tool", &call).await).0);
    asked(&world, &admin, "tools-test", "tools/test", &trial).await.expect(200);
    let text = Turn::text(&calls(&format!("return {name}({{text: \"Hi\"}});")));
    world.llm.script([text, Turn::text(&calls("return finalResponse();")), Turn::text("\"done\"")]);
    asked(&world, &admin, "runs", "runs", &run).await.expect(202);
    assert_eq!(world.run_loop(AMPLE).await, 0);
    assert_eq!(world.twilio.messages().len(), 3);
}

#[tokio::test]
async fn an_active_automation_calls_it_for_a_member() {
    let world = world().await;
    let tool = held(&world).await;
    let name = tool["name"].as_str().unwrap();
    let automation = world
        .activate(&json!({
            "name": "Text Ada", "trigger_type": "manual", "fingerprints": {name: "v0"},
            "actions": [{"id": "text", "tool": name, "parameters": {"text": "Hi"}}],
        }))
        .await;
    let member = world.member(&world.home, Some("member"));
    let path = format!("automations/{}/run", automation.id);
    asked(&world, &member, "deploy", &path, &json!({})).await.expect(202);
    world.deliver_runs().await;
    assert_eq!(world.twilio.messages().len(), 1);
}

/// An address that answers the opening hours, for people of this role.
async fn read(world: &World, least_role: &str) -> Value {
    let mut config = api_request("GET", &format!("{}/opening-hours", world.site.url));
    config["chat"] = json!({"least_role": least_role});
    world.tool(&config).await
}

#[tokio::test]
async fn a_members_dry_run_of_a_draft_reads_with_a_members_tool_only() {
    for (least_role, requests) in [("viewer", 1), ("member", 1), ("admin", 0)] {
        let world = world().await;
        let tool = read(&world, least_role).await;
        let name = tool["name"].as_str().unwrap();
        let member = world.member(&world.home, Some("member"));
        let definition = json!({
            "name": "Read", "trigger_type": "manual", "fingerprints": {name: "v0"},
            "actions": [{"id": "read", "tool": name, "parameters": {}}],
        });
        let saved = asked(&world, &member, "deploy", "automations", &definition).await.expect(201);
        let path = format!("automations/{}/run", saved["automation"]["id"].as_str().unwrap());
        asked(&world, &member, "deploy", &path, &json!({"dry_run": true})).await.expect(202);
        world.deliver_runs().await;
        let runs = world.runs("").await.expect(200);
        let run = world.run(runs["items"][0]["id"].as_str().unwrap()).await.expect(200);
        let is_only_shown = run["actions"][0]["output"].to_string().contains("Nothing was sent.");
        assert_eq!((is_only_shown, world.site.requests().len()), (requests == 0, requests), "{least_role}: {run}");
    }
}

#[tokio::test]
async fn a_member_who_saves_a_polling_trigger_does_not_have_it_called() {
    let world = world().await;
    let tool = read(&world, "admin").await;
    let name = tool["name"].as_str().unwrap();
    let [member, admin] = ["member", "admin"].map(|role| world.member(&world.home, Some(role)));
    let mut definition = json!({
        "name": "Poll", "trigger_type": "polling", "trigger_config": {"source_tool": name}, "prompt": "Tell of it",
        "tools": [], "fingerprints": {name: "v0"},
    });
    let saved = asked(&world, &member, "deploy", "automations", &definition).await.expect(201);
    assert!(saved["diagnostics"].to_string().contains("was not called for a sample answer"), "{saved}");
    assert!(world.site.requests().is_empty());

    definition["name"] = json!("Poll for an admin");
    asked(&world, &admin, "deploy", "automations", &definition).await.expect(201);
    assert_eq!(world.site.requests().len(), 1);
}
