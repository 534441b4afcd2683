//! Checks of definitions beyond names and types, and repeated changes.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test says what is wrong and stops")]

use serde_json::{Value, json};
use tests::World;

async fn world() -> World {
    let world = World::start().await;
    world.slack_service();
    world.slack_hook().await;
    world
}

/// The diagnostics, as `severity pointer code`.
fn told(body: &Value) -> Vec<String> {
    let text = |one: &Value, name: &str| one[name].as_str().unwrap().to_owned();
    let one = |one: &Value| format!("{} {} {}", text(one, "severity"), text(one, "pointer"), text(one, "code"));
    body["diagnostics"].as_array().unwrap().iter().map(one).collect()
}

/// A definition that polls `current_time` of the service Clock, and posts this text.
fn polling(world: &World, config: &Value, text: &str) -> Value {
    let mut definition = json!({
        "name": "Weekday", "trigger_type": "polling", "dry_run": true,
        "trigger_config": {"service": "Clock", "source_tool": "current_time", "tool_params": {}},
        "actions": [{"id": "a", "tool": "slack_post_message", "parameters": {"channel": "C", "text": text}}],
        "fingerprints": {"current_time": "built-in", "slack_post_message": world.fingerprint("slack_post_message")},
    });
    definition["trigger_config"].as_object_mut().unwrap().extend(config.as_object().unwrap().clone());
    definition
}

#[tokio::test]
async fn a_put_that_is_sent_again_is_the_version_that_it_made() {
    let world = world().await;
    let first = world.deploy(&world.urgent_messages()).await;
    let etag = first.headers["etag"].clone();
    let id = first.expect(201)["automation"]["id"].as_str().unwrap().to_owned();
    let mut second = world.urgent_messages();
    second["variables"]["team"] = json!("C0TEAM");
    // The answer is lost on the way, so the caller knows nothing of the new revision.
    for _try in 0..2 {
        let put = world.put_automation(&id, &etag, &second).await.expect(200);
        assert_eq!(put["automation"]["version"], 2);
    }
    assert_eq!(world.aws.rows("automation_versions").len(), 2);
    let mut third = world.urgent_messages();
    third["variables"]["team"] = json!("C0OTHER");
    world.put_automation(&id, &etag, &third).await.expect(409);
}

#[tokio::test]
async fn names_that_mislead_and_secrets_in_variables_are_refused_with_the_next_step() {
    let world = world().await;
    let mut definition = world.urgent_messages();
    definition["name"] = json!("Urgent\u{202E}segassem");
    definition["actions"][0]["output_as"] = json!("__proto__");
    definition["variables"] = json!({
        "team": "C0TEAM", "max_tokens": 5, "api_key": "sk-123", "crm": {"password": "hunter2", "url": "https://crm.example"},
        "constructor": "x",
    });
    let refused = world.deploy(&definition).await.expect(422);
    let told = told(&refused);
    for wanted in [
        "error /name invalid_value",
        "error /actions/0/output_as invalid_value",
        "error /variables/api_key secret_in_variable",
        "error /variables/crm/password secret_in_variable",
        "error /variables/constructor invalid_value",
    ] {
        assert!(told.iter().any(|told| told == wanted), "{wanted}: {told:?}");
    }
    assert!(!told.iter().any(|told| told.contains("max_tokens") || told.contains("/team")), "{told:?}");
    let text = refused.to_string();
    assert!(text.contains("Put it into the tool that needs it") && !text.contains("hunter2"), "{text}");
    let mut nul = world.urgent_messages();
    nul["name"] = json!("a\0b");
    assert!(self::told(&world.deploy(&nul).await.expect(422)).contains(&"error /name invalid_value".to_owned()));
}

#[tokio::test]
async fn only_the_content_that_was_seen_is_made_to_run() {
    let world = world().await;
    let saved = world.deploy(&world.urgent_messages()).await.expect(201);
    let (id, hash) = (saved["automation"]["id"].as_str().unwrap(), saved["automation"]["content_hash"].clone());
    let other = "0".repeat(64);
    let post = async |verb: &str, body: Value| world.automation("POST", &format!("/{id}/{verb}"), &body).await;
    let refused = post("activate", json!({"version": 1, "content_hash": other})).await.expect(409);
    assert!(refused["detail"].as_str().unwrap().contains(hash.as_str().unwrap()), "{refused}");
    assert_eq!(world.aws.rows("automations")[0]["status"], "pending_review");
    post("activate", json!({"version": 1, "content_hash": hash})).await.expect(200);
    let mut second = world.urgent_messages();
    second["variables"]["team"] = json!("C0TEAM");
    world.put_automation(id, "*", &second).await.expect(200);
    post("activate", json!({"version": 2})).await.expect(200);
    post("rollback", json!({"version": 1, "content_hash": other})).await.expect(409);
    assert_eq!(world.aws.rows("automations")[0]["active_version"], 2);
    post("rollback", json!({"version": 1, "content_hash": hash})).await.expect(200);
    assert_eq!(world.aws.rows("automations")[0]["active_version"], 1);
}

#[tokio::test]
async fn items_of_a_polled_answer_stand_where_the_service_says() {
    let world = world().await;
    world.service("Clock", None);
    let endpoint = |items: &str| {
        json!({
            "supports_polling": true, "polling_endpoints": {"tick": {"source_tool": "current_time", "items": items}},
        })
    };
    let deploy = async |text: &str| {
        let definition = polling(&world, &json!({"event_type": "tick"}), text);
        told(&world.deploy(&definition).await.expect(200))
    };
    world.service_capabilities("Clock", &endpoint(""));
    assert_eq!(deploy("{{trigger_data.weekday}}").await, [""; 0]);
    // The weekday is text, without items or fields.
    world.service_capabilities("Clock", &endpoint("weekday"));
    let wrong = deploy("{{trigger_data.weekday}}").await;
    assert_eq!(wrong.len(), 1, "{wrong:?}");
}

#[tokio::test]
async fn a_source_tool_that_drifted_or_asks_for_the_user_is_not_called() {
    let world = world().await;
    world.service("Clock", None);
    world.service_capabilities(
        "Clock",
        &json!({"supports_polling": true, "polling_endpoints": {"tick": {"source_tool": "current_time"}}}),
    );
    let mut drifted = polling(&world, &json!({}), "{{trigger_data.weekday}}");
    drifted["fingerprints"]["current_time"] = json!("v1");
    let drifted = told(&world.deploy(&drifted).await.expect(200));
    assert_eq!(drifted, ["error /fingerprints/current_time tool_changed"]);
    // The tool would refuse the value; without a diagnostic it was not called.
    let params = json!({"tool_params": {"timeZone": "{{user.timezone}}"}});
    let asks = told(&world.deploy(&polling(&world, &params, "x")).await.expect(200));
    assert!(asks.iter().all(|one| !one.contains("preflight")), "{asks:?}");
}

#[tokio::test]
async fn an_operator_that_compares_as_text_is_a_warning_and_one_that_never_holds_an_error() {
    let world = world().await;
    let with = async |path: &str, op: &str, value: Value| {
        let mut definition = world.urgent_messages();
        definition["dry_run"] = json!(true);
        definition["variables"] = json!({"team": "C024BE91L", "count": 5, "ok": true});
        definition["actions"][0]["condition"] = json!({"path": path, "op": op, "value": value});
        told(&world.deploy(&definition).await.expect(200))
    };
    assert_eq!(with("count", ">", json!(1)).await, [""; 0]);
    assert_eq!(with("count", "contains", json!("1")).await, ["warning /actions/0/condition/op operator_misfit"]);
    assert_eq!(with("ok", ">", json!(1)).await, ["error /actions/0/condition/op operator_misfit"]);
}

#[tokio::test]
async fn rules_of_a_tools_whole_schema_hold_for_its_parameters() {
    let world = world().await;
    world.service_tool_with(
        "Slack",
        "slack_find",
        &json!({
            "effect": false,
            "parameters": {
                "type": "object", "properties": {"id": {"type": "string"}, "name": {"type": "string"}},
                "oneOf": [{"required": ["id"]}, {"required": ["name"]}],
            },
        }),
    );
    let with = async |parameters: Value| {
        let definition = json!({
            "name": "Find", "trigger_type": "manual", "dry_run": true,
            "actions": [{"id": "find", "tool": "slack_find", "parameters": parameters}],
            "fingerprints": {"slack_find": world.fingerprint("slack_find")},
        });
        told(&world.deploy(&definition).await.expect(200))
    };
    assert_eq!(with(json!({"id": "C1"})).await, [""; 0]);
    for wrong in [json!({}), json!({"id": "C1", "name": "ops"})] {
        let told = with(wrong.clone()).await;
        assert!(told.iter().any(|one| one.starts_with("error /actions/0/parameters")), "{wrong}: {told:?}");
    }
}

#[tokio::test]
async fn a_tool_that_cannot_be_held_to_hosts_is_refused_with_its_place() {
    let world = world().await;
    let with = async |tool: &str| {
        let definition = json!({
            "name": "Look", "trigger_type": "manual", "dry_run": true, "prompt": "Look it up.",
            "tools": [{"built_in": tool, "allowed_hosts": ["example.com"]}], "fingerprints": {tool: "built-in"},
        });
        told(&world.deploy(&definition).await.expect(200))
    };
    assert_eq!(with("wget").await, [""; 0]);
    let refused = with("current_time").await;
    assert!(refused.len() == 1 && refused[0].starts_with("error /tools/0"), "{refused:?}");
}

#[tokio::test]
async fn params_of_an_event_fit_the_trigger_that_brings_it() {
    let world = world().await;
    let payload = |trigger: Value| {
        let mut payload = json!({"trigger_data_fields": {"event.text": "The text", "event.user": "Who"}});
        if !trigger.is_null() {
            payload["deployed_trigger"] = trigger;
        }
        json!({"supports_webhooks": true, "webhook_events": ["message"], "webhook_payload_schemas": {"message": payload}})
    };
    let with = async |params: Value| {
        let mut definition = world.urgent_messages();
        definition["dry_run"] = json!(true);
        definition["trigger_config"]["params"] = params;
        told(&world.deploy(&definition).await.expect(200))
    };
    world.service_capabilities("Slack", &payload(Value::Null));
    assert_eq!(with(json!({})).await, [""; 0]);
    assert_eq!(with(json!({"teamIds": ["T"]})).await, ["error /trigger_config/params unknown_field"]);
    let parameters = json!({
        "type": "object", "additionalProperties": false, "required": ["teamIds"],
        "properties": {"teamIds": {"type": "array", "items": {"type": "string"}}},
    });
    world.service_capabilities(
        "Slack",
        &payload(json!({
            "component": "slack_v2-new-message", "version": "1.0.0", "app_prop": "slack", "parameters": parameters,
        })),
    );
    assert_eq!(with(json!({"teamIds": ["T"]})).await, [""; 0]);
    assert_eq!(with(json!({"teamIds": [7]})).await, ["error /trigger_config/params/teamIds/0 invalid_value"]);
    assert_eq!(with(json!({})).await, ["error /trigger_config/params/teamIds invalid_value"]);
}
