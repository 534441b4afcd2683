//! An agent that deploys automations over MCP.

use serde_json::{Value, json};
use tests::{Event, Options, automation::AMPLE, said, standins::llm::Turn};

use super::world;

// ---------------------------------------------------------------------------------------------------------- deploying

/// "Alert me when someone posts 'urgent' in Slack", as far as the fingerprint of the tool is known.
fn urgent(fingerprint: &Value) -> Value {
    json!({
        "name": "Urgent in Slack", "trigger_type": "webhook",
        "trigger_config": {"service": "Slack", "event_type": "message"},
        "fingerprints": {"slack_post_message": fingerprint},
        "actions": [{
            "id": "alert", "tool": "slack_post_message",
            "parameters": {"channel": "C024BE91L", "text": "Urgent, from {{event.user}}: {{event.text}}"},
            "condition": {"path": "event.text", "op": "contains", "value": "urgent", "case_insensitive": true},
        }],
    })
}

#[tokio::test]
async fn an_agent_deploys_from_the_schemas_it_read_and_repairs_refusals() {
    let world = world(Options::default()).await;
    let data = world.mcp_call("fetch_tool_data", &json!({"tool_names": ["slack_post_message"]})).await;
    let right = urgent(&data["structuredContent"]["tools"][0]["fingerprint"]);

    let mut wrong = right.clone();
    wrong["actions"][0]["parameters"]["text"] = json!("{{event.txt}}");
    wrong["actions"][0]["condition"]["op"] = json!("includes");
    let refused = world.mcp_call("deploy_automation", &json!({"automation": wrong})).await;
    let (failed, text) = said(&refused);
    assert!(failed && text.contains("event.text") && text.contains("contains"), "{text}");
    assert_eq!(refused["structuredContent"]["result"], "failed");
    let pointers = refused["structuredContent"]["diagnostics"].as_array().unwrap().iter();
    let pointers: Vec<&str> =
        pointers.filter(|it| it["severity"] == "error").map(|it| it["pointer"].as_str().unwrap()).collect();
    assert!(
        pointers.contains(&"/actions/0/parameters/text") && pointers.contains(&"/actions/0/condition/op"),
        "{pointers:?}"
    );
    assert!(world.aws.rows("automations").is_empty());

    // A viewer finds and reads, but does not deploy, and gets the reason.
    let viewer = world.member(&world.home, Some("viewer"));
    let by_viewer = world.mcp_call_of(&viewer, "deploy_automation", &json!({"automation": right})).await;
    assert_eq!(
        said(&by_viewer),
        (true, "This needs at least the role member in this organization; ask one of its owners for it.")
    );

    let checked = world.mcp_call("deploy_automation", &json!({"automation": right, "dry_run": true})).await;
    assert!(!said(&checked).0, "{checked}");
    assert!(world.aws.rows("automations").is_empty());

    let deployed = world.mcp_call("deploy_automation", &json!({"automation": right})).await;
    assert!(!said(&deployed).0, "{deployed}");
    let automation = &deployed["structuredContent"]["automation"];
    assert_eq!((&automation["status"], &automation["version"]), (&json!("pending_review"), &json!(1)));
    // An agent without an answer repeats the call.
    let again = world.mcp_call("deploy_automation", &json!({"automation": right})).await;
    assert_eq!(again["structuredContent"]["automation"]["id"], automation["id"]);
    let rows = world.aws.rows("automations");
    assert_eq!((rows.len(), &rows[0]["created_by"]), (1, &json!(world.home.user_id)), "{rows:?}");

    // The same over function calling.
    let called =
        world.agent_tool_of(&world.home.user_id, "deploy_automation", &json!({"automation": wrong})).await.expect(200);
    assert_eq!((&called["success"], &called["data"]["result"]), (&json!(false), &json!("failed")), "{called}");
}

#[tokio::test]
async fn a_definition_that_is_no_good_is_refused_fast_and_stored_nowhere() {
    let world = world(Options::default()).await;
    let huge = json!({"name": "x".repeat(2_000_000), "trigger_type": "manual"});
    let many: Vec<Value> = (0..10_000).map(|id| json!({"id": format!("a{id}"), "tool": "current_time"})).collect();
    let many = json!({"name": "Many", "trigger_type": "manual", "actions": many});
    let mut deep = json!("{{event.text}}");
    for _ in 0..100 {
        deep = json!([deep]);
    }
    let deep = json!({"name": "Deep", "trigger_type": "manual", "variables": {"deep": deep}, "actions": []});
    for automation in [json!({}), huge, many, deep] {
        let result = world.mcp_call("deploy_automation", &json!({"automation": automation})).await;
        let (failed, text) = said(&result);
        assert!(failed && text.len() < 62_000, "{}", text.len());
        assert_eq!(result["structuredContent"]["result"], "failed", "{text}");
    }
    assert!(world.aws.rows("automations").is_empty());
}

// ------------------------------------------------------------------------------------------------------- a run's tools

#[tokio::test]
async fn a_run_that_names_them_builds_an_automation_in_its_users_name() {
    let world = world(Options::default()).await;
    let data = world.mcp_call("fetch_tool_data", &json!({"tool_names": ["slack_post_message"]})).await;
    let right = urgent(&data["structuredContent"]["tools"][0]["fingerprint"]);
    let mut wrong = right.clone();
    wrong["actions"][0]["parameters"]["text"] = json!("{{event.txt}}");
    let script =
        |definition: &Value| format!("````tool\nreturn deploy_automation({{automation: {definition}}});\n````");
    let turns = || {
        [
            "````tool\nreturn initial_md_fetch([\"slack\"]);\nreturn search_tools(\"post a message\");\n````"
                .to_owned(),
            "````tool\nreturn fetch_tool_data([\"slack_post_message\"]);\n````".to_owned(),
            script(&wrong),
            script(&right),
            "````tool\nreturn finalResponse();\n````".to_owned(),
            "\"It waits for you to activate it.\"".to_owned(),
        ]
        .map(|text| Turn::text(&text))
    };
    let tools = json!(["initial_md_fetch", "fetch_tool_data", "search_tools", "deploy_automation"]);
    world.llm.script(turns());
    let run = world.start_run(&json!({"prompt": "Alert me", "tools": tools})).await.expect(202);
    assert_eq!(world.run_loop(AMPLE).await, 0);
    let run = world.run(run["id"].as_str().unwrap()).await.expect(200);
    assert_eq!(
        (&run["status"], &run["result"]),
        (&json!("completed"), &json!("It waits for you to activate it.")),
        "{run}"
    );
    let calls: Vec<&Value> =
        run["steps"].as_array().unwrap().iter().flat_map(|step| step["calls"].as_array().unwrap()).collect();
    let outcomes: Vec<_> = calls.iter().map(|call| call["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["succeeded", "succeeded", "succeeded", "failed", "succeeded", "succeeded"], "{run}");
    assert!(calls[0]["result"].as_str().unwrap().starts_with("Available Slack tools:\n"), "{run}");
    assert!(calls[3]["result"].to_string().contains("event.text"), "{run}");
    let rows = world.aws.rows("automations");
    assert_eq!(
        (rows.len(), &rows[0]["created_by"], &rows[0]["status"]),
        (1, &json!(world.home.user_id), &json!("pending_review"))
    );

    // The user lost the role meanwhile.
    let member = world.member(&world.home, Some("member"));
    world.llm.script(turns());
    let event = Event::post(&format!("/api/{}/runs", world.home.slug), &json!({"prompt": "Alert me", "tools": tools}));
    let run = world.send("runs", &event.user(&member)).await.expect(202);
    let viewer = json!({"user_id": member, "organization_id": world.home.organization_id, "role": "viewer"});
    world.aws.put("organization_members", &viewer);
    assert_eq!(world.run_loop(AMPLE).await, 0);
    let run = world.run(run["id"].as_str().unwrap()).await.expect(200);
    assert!(run.to_string().contains("This needs at least the role member"), "{run}");
    assert_eq!(world.aws.rows("automations").len(), 1);
}
