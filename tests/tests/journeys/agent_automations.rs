//! Automations over MCP: an agent finds, reads, changes, starts and follows them.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::large_futures,
    reason = "a test says what is wrong and stops"
)]

use serde_json::{Value, json};
use shared::automation::{Operator, TRIGGER_TYPES};
use tests::{Event, World, automation::AMPLE, said};

/// By hand, with this name.
fn definition(name: &str) -> Value {
    json!({
        "name": name, "trigger_type": "manual", "fingerprints": {"current_time": "built-in"},
        "actions": [{"id": "now", "tool": "current_time", "parameters": {}, "output_as": "time"}],
    })
}

async fn deployed(world: &World, name: &str) -> String {
    let saved = world.mcp_call("deploy_automation", &json!({"automation": definition(name)})).await;
    assert!(!said(&saved).0, "{saved}");
    saved["structuredContent"]["automation"]["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn an_agent_lists_reads_and_changes_automations() {
    let world = World::start().await;
    let morning = deployed(&world, "Morning").await;
    let evening = deployed(&world, "Evening").await;
    world.automation("POST", &format!("/{evening}/activate"), &json!({"version": 1})).await.expect(200);

    let listed = world.mcp_call("list_automations", &json!({})).await;
    let items = listed["structuredContent"]["items"].as_array().unwrap_or_else(|| panic!("{listed}"));
    assert_eq!(items.len(), 2);
    assert!(said(&listed).1.contains(&morning) && said(&listed).1.contains("Morning"), "{listed}");
    let active = world.mcp_call("list_automations", &json!({"status": "active", "limit": 10})).await;
    let items = active["structuredContent"]["items"].as_array().unwrap();
    assert_eq!((items.len(), &items[0]["id"], &items[0]["revision"]), (1, &json!(evening), &json!(2)));
    let wrong = world.mcp_call("list_automations", &json!({"status": "sleeping"})).await;
    assert!(said(&wrong).0 && said(&wrong).1.contains("pending_review"), "{wrong}");

    let read = world.mcp_call("get_automation", &json!({"id": morning})).await;
    let automation = &read["structuredContent"];
    assert_eq!(automation["definition"]["actions"][0]["tool"], "current_time", "{read}");
    assert_eq!((&automation["revision"], &automation["waits_for"]), (&json!(1), &Value::Null));
    // As the route shows it.
    let shown = world.automation("GET", &format!("/{morning}"), &Value::Null).await.expect(200);
    assert_eq!(*automation, shown);

    let mut nine = automation["definition"].clone();
    nine["description"] = json!("At 9 o'clock.");
    let change = json!({"id": morning, "revision": 1, "automation": nine});
    let only_checked = json!({"id": morning, "revision": 1, "automation": nine, "dry_run": true});
    let checked = world.mcp_call("update_automation", &only_checked).await;
    assert!(!said(&checked).0 && checked["structuredContent"]["automation"].is_null(), "{checked}");
    let changed = world.mcp_call("update_automation", &change).await;
    let after = &changed["structuredContent"]["automation"];
    assert_eq!((&after["id"], &after["version"]), (&json!(morning), &json!(2)), "{changed}");
    assert_eq!(world.aws.rows("automations").len(), 2, "none is made anew");
    // A repetition is no second change; a change of an outdated state is refused.
    let again = world.mcp_call("update_automation", &change).await;
    assert_eq!(again["structuredContent"]["automation"]["version"], 2, "{again}");
    nine["description"] = json!("At 10 o'clock.");
    let late = world.mcp_call("update_automation", &json!({"id": morning, "revision": 1, "automation": nine})).await;
    assert!(said(&late).0 && said(&late).1.contains("was changed"), "{late}");
    let broken = json!({"id": morning, "revision": 2, "automation": {"name": "Morning"}});
    let broken = world.mcp_call("update_automation", &broken).await;
    assert_eq!((said(&broken).0, &broken["structuredContent"]["result"]), (true, &json!("failed")), "{broken}");
}

#[tokio::test]
async fn an_agent_starts_a_run_and_follows_it() {
    let world = World::start().await;
    let id = deployed(&world, "By hand").await;
    let early = world.mcp_call("run_automation", &json!({"id": id})).await;
    assert!(said(&early).0 && said(&early).1.contains("activate"), "{early}");
    let dry = world.mcp_call("run_automation", &json!({"id": id, "dry_run": true})).await;
    assert_eq!((said(&dry).0, &dry["structuredContent"]["dry_run"]), (false, &json!(true)), "{dry}");
    world.automation("POST", &format!("/{id}/activate"), &json!({"version": 1})).await.expect(200);
    let start = json!({"id": id, "trigger_data": {"who": "Ana"}, "idempotency_key": "one"});
    let run = world.mcp_call("run_automation", &start).await;
    let run_id = run["structuredContent"]["id"].as_str().unwrap_or_else(|| panic!("{run}")).to_owned();
    assert!(said(&run).1.contains(&run_id) && said(&run).1.contains("get_run"), "{run}");
    let again = world.mcp_call("run_automation", &start).await;
    assert_eq!(again["structuredContent"]["id"], json!(run_id), "{again}");
    world.run_loop(AMPLE).await;
    let read = world.mcp_call("get_run", &json!({"id": run_id})).await;
    let shown = &read["structuredContent"];
    assert_eq!((&shown["status"], &shown["trigger_data"]["who"]), (&json!("completed"), &json!("Ana")), "{read}");
    assert_eq!(shown["actions"][0]["tool"], "current_time");
    assert_eq!(
        *shown,
        world.get_as("runs", &world.home, &format!("/runs/{run_id}")).await.expect(200),
        "as the route shows it"
    );
    assert!(said(&read).1.contains("completed") && said(&read).1.contains("current_time"), "{read}");
    for wrong in [json!({"id": id, "trigger_data": "x"}), json!({"id": "1"}), json!({})] {
        assert!(said(&world.mcp_call("run_automation", &wrong).await).0, "{wrong}");
    }
}

#[tokio::test]
async fn roles_and_tenants_hold_for_automations_over_mcp_as_over_http() {
    let world = World::start().await;
    let theirs = world.automation_as(&world.other, "POST", "", &definition("Theirs")).await.expect(201);
    let theirs = theirs["automation"]["id"].clone();
    let not_found = |answer: &Value| said(answer) == (true, "Automation not found.");
    let read = world.mcp_call("get_automation", &json!({"id": theirs})).await;
    assert!(not_found(&read), "{read}");
    let change = json!({"id": theirs, "revision": 1, "automation": definition("Ours")});
    let changed = world.mcp_call("update_automation", &change).await;
    assert!(not_found(&changed), "{changed}");
    let run = world.mcp_call("run_automation", &json!({"id": theirs, "dry_run": true})).await;
    assert!(not_found(&run), "{run}");
    let path = format!("/{}/run", theirs.as_str().unwrap());
    let run = world.automation_as(&world.other, "POST", &path, &json!({"dry_run": true})).await.expect(202);
    let run = world.mcp_call("get_run", &json!({"id": run["id"]})).await;
    assert_eq!(said(&run), (true, "Run not found."));
    assert_eq!(world.mcp_call("list_automations", &json!({})).await["structuredContent"]["items"], json!([]));

    let id = deployed(&world, "Ours").await;
    let viewer = world.member(&world.home, Some("viewer"));
    for (tool, arguments, may) in [
        ("list_automations", json!({}), true),
        ("get_automation", json!({"id": id}), true),
        ("update_automation", json!({"id": id, "revision": 1, "automation": definition("Ours")}), false),
        ("run_automation", json!({"id": id, "dry_run": true}), false),
    ] {
        let answer = world.mcp_call_of(&viewer, tool, &arguments).await;
        assert_eq!(said(&answer).0, !may, "{tool}: {answer}");
        assert!(may || said(&answer).1.contains("role member"), "{tool}: {answer}");
    }
    // A member runs the active version; administrators may run another one.
    world.automation("POST", &format!("/{id}/activate"), &json!({"version": 1})).await.expect(200);
    let mut second = definition("Ours");
    second["description"] = json!("Another.");
    world.mcp_call("update_automation", &json!({"id": id, "revision": 2, "automation": second})).await;
    let member = world.member(&world.home, Some("member"));
    let run = world.mcp_call_of(&member, "run_automation", &json!({"id": id, "version": 2})).await;
    assert!(said(&run).0 && said(&run).1.contains("role admin"), "{run}");
    assert!(!said(&world.mcp_call_of(&member, "run_automation", &json!({"id": id})).await).0);
}

#[tokio::test]
async fn the_same_name_again_names_the_other_and_the_tool_that_changes_it() {
    let world = World::start().await;
    let first = deployed(&world, "Morning").await;
    let mut second = definition("Morning");
    second["description"] = json!("At 9 o'clock.");
    let saved = world.mcp_call("deploy_automation", &json!({"automation": second})).await;
    let (failed, text) = said(&saved);
    assert!(!failed && text.contains(&first) && text.contains("update_automation"), "{text}");
    assert_eq!(saved["structuredContent"]["diagnostics"][0]["code"], "same_name");
}

#[tokio::test]
async fn a_definition_given_as_json_text_is_read() {
    let world = World::start().await;
    let text = serde_json::to_string_pretty(&definition("Text")).unwrap();
    let saved = world.mcp_call("deploy_automation", &json!({"automation": text})).await;
    assert!(!said(&saved).0, "{saved}");
    let id = saved["structuredContent"]["automation"]["id"].clone();
    let change = text.replace("\"Text\"", "\"Other\"");
    let change = json!({"id": id, "revision": 1, "automation": change});
    assert!(!said(&world.mcp_call("update_automation", &change).await).0);
    for (broken, sentence) in [
        ("{\"name\": \"x\",", "line 1"),
        ("name: Text", "JSON"),
        ("", "\"automation\" is missing"),
        ("[]", "object"),
        ("{\"name\": \"a\", \"name\": \"b\"}", "appears twice"),
    ] {
        let refused = world.mcp_call("deploy_automation", &json!({"automation": broken})).await;
        assert!(said(&refused).0 && said(&refused).1.contains(sentence), "{broken}: {refused}");
    }
}

#[tokio::test]
async fn the_schema_of_a_definition_is_complete() {
    let world = World::start().await;
    let event = Event::get(&format!("/api/{}/agent-tools", world.home.slug)).user(&world.home.user_id);
    let tools = world.send("mcp", &event).await.expect(200);
    let tools = tools["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    for name in ["list_automations", "get_automation", "update_automation", "run_automation", "get_run"] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    for name in ["deploy_automation", "update_automation"] {
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
        let schema = &tool["parameters"]["properties"]["automation"];
        let properties = &schema["properties"];
        let types: Vec<&str> =
            properties["trigger_type"]["enum"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
        assert_eq!(types, TRIGGER_TYPES, "{name}");
        let action = &properties["actions"]["items"]["properties"];
        for member in
            ["id", "tool", "parameters", "output_as", "condition", "approval", "timeout_seconds", "on_error", "retries"]
        {
            assert!(action[member]["description"].is_string(), "{name}: {member}");
        }
        for member in [
            "service",
            "event_type",
            "params",
            "filters",
            "source_tool",
            "tool_params",
            "polling_interval_minutes",
            "filter",
            "aggregation_mode",
            "missed",
            "run_at",
            "timezone",
            "interval",
            "time_of_day",
            "day_of_week",
        ] {
            assert!(properties["trigger_config"]["properties"][member]["description"].is_string(), "{name}: {member}");
        }
        for member in ["variables", "fingerprints", "quotas", "approvals", "prompt", "tools", "schema", "limits"] {
            assert!(properties[member]["description"].is_string(), "{name}: {member}");
        }
        let text = schema.to_string();
        for operator in Operator::ALL {
            assert!(text.contains(&format!("\"{}\"", operator.as_str())), "{name}: {}", operator.as_str());
        }
        for word in ["runs_per_hour", "effects_per_run", "messages_per_day", "expires_in_minutes", "outside", "stop"] {
            assert!(text.contains(&format!("\"{word}\"")), "{name}: {word}");
        }
        assert!(text.len() < 22_000, "{name}: {} bytes", text.len());
    }
}
