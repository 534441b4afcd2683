//! Rows of services, organizations and intents that a newer version wrote.

use serde_json::{Value, json};
use shared::models::Timestamp;
use tests::{Event, World, ai_sms, logs::Logs};
use uuid::Uuid;

use super::{CONTENT, assert_marked, extended, get, mark, reported, text};

/// One row for each of three services: one extended by a newer version, one unreadable here.
pub(super) async fn a_catalogue(world: &World, table: &str) {
    let capabilities = json!({"supports_webhooks": true, "webhook_events": ["message"]});
    for (service, tool) in [("Slack", "slack_post"), ("Notion", "notion_post"), ("Gmail", "gmail_post")] {
        world.service(service, Some(&service.to_lowercase()));
        world.service_tool(service, tool, "Posts a message.", &["text"]);
        world.service_capabilities(service, &capabilities);
    }
    let row = |of: &str| {
        let named = |row: &Value| ["id", "name", "service_name"].iter().any(|key| row[*key] == of);
        let rows = world.aws.rows(table).into_iter();
        rows.into_iter().find(named).unwrap_or_else(|| panic!("no {of} in {table}"))
    };
    let (extended_one, spoiled_one, spoil) = match table {
        "services" => ("Slack", "Notion", json!({"connection": {"type": CONTENT}})),
        "service_tools" => ("slack_post", "notion_post", json!({"binding": {"type": CONTENT}})),
        _ => ("slack", "notion", json!({"webhook_events": CONTENT})),
    };
    world.aws.put(table, &extended(row(extended_one), &json!({"newer": CONTENT})));
    world.aws.put(table, &extended(row(spoiled_one), &spoil));

    let logs = Logs::capture();
    let services = get(world, "discover", "/services").await.expect(200);
    let overview = |service: &str| {
        let path = format!("/api/{}/discover/initial_md_fetch", world.home.slug);
        Event::get(&path).query("service", "Slack").query("service", service).user(&world.home.user_id)
    };
    let overview = world.send("discover", &overview("Notion")).await.expect(200);
    let path = format!("/api/{}/discover/fetch_tool_data", world.home.slug);
    let asked = Event::post(&path, &json!({"tool_names": ["slack_post", "notion_post", "gmail_post"]}));
    let data = world.send("discover", &asked.user(&world.home.user_id)).await.expect(200);
    let path = format!("/api/{}/discover/search", world.home.slug);
    let found = world.send("discover", &Event::post(&path, &json!({"q": "posts"})).user(&world.home.user_id)).await;
    let found = found.expect(200);
    let names =
        |list: &Value| list.as_array().into_iter().flatten().map(|of| text(&of["name"]).to_owned()).collect::<Vec<_>>();
    let (all, without) = (vec!["Gmail", "Notion", "Slack"], vec!["Gmail", "Slack"]);
    assert_eq!(names(&services["items"]), if table == "services" { without } else { all });
    assert_eq!(overview["services"][0]["name"], "Slack", "{overview}");
    assert_eq!(overview["services"][0]["capabilities"]["webhook_events"], json!(["message"]), "{overview}");
    for (tool, shown) in [("slack_post", true), ("gmail_post", true), ("notion_post", table == "service_capabilities")]
    {
        assert_eq!(names(&data["tools"]).iter().any(|name| name == tool), shown, "{table}: {data}");
        // Lists read the index, which has no binding.
        let listed = shown || table == "service_tools";
        assert_eq!(names(&found["items"]).iter().any(|name| name == tool), listed, "{table}: {found}");
    }
    if table == "service_capabilities" {
        assert_eq!(overview["services"][1]["capabilities"], Value::Null);
    }
    for answer in [&services, &overview, &data, &found] {
        assert!(!answer.to_string().contains(CONTENT), "{answer}");
    }
    let keys = reported(&logs);
    assert!(
        !keys.is_empty()
            && keys.iter().all(|line| line.contains(table) || line.contains(spoiled_one) || line.contains("Service")),
        "{keys:?}"
    );
}

pub(super) async fn an_organization(world: &World) {
    let home = &world.home;
    mark(world, "organizations", &home.organization_id);
    world.aws.change("organizations", &home.organization_id, json!({"own_keys": {"pipedream": {"deep": CONTENT}}}));
    world.keys(home, "PUT", "/llm", &json!({"api_key": "sk-1"})).await.expect(200);
    let row = world.aws.row("organizations", &home.organization_id).unwrap();
    assert_eq!(row["own_keys"]["pipedream"]["deep"], CONTENT, "another service's key was dropped");
    assert!(row["own_keys"]["llm"]["id"].is_string());
    assert_marked(world, "organizations", &home.organization_id);
    // Storing a credential does not remove a newer version's part of another one.
    let fields = json!([{"name": "key", "description": "There."}]);
    for service in ["Stripe", "Oura"] {
        world.service_with(service, &json!({"connection": {"type": "credential", "fields": fields}}));
        if service == "Oura" {
            let mut credentials =
                world.aws.row("organizations", &home.organization_id).unwrap()["service_credentials"].clone();
            for credential in credentials.as_object_mut().unwrap().values_mut() {
                credential["newer"] = json!({"deep": [CONTENT]});
            }
            world.aws.change("organizations", &home.organization_id, json!({"service_credentials": credentials}));
        }
        let path = format!("/api/{}/services/{service}/connect", home.slug);
        let event = Event::post(&path, &json!({"key": "k"})).user(&home.user_id);
        world.send("discover", &event).await.expect(200);
    }
    let row = world.aws.row("organizations", &home.organization_id).unwrap();
    let stored = row["service_credentials"].as_object().unwrap();
    let kept = stored.values().filter(|credential| credential["newer"]["deep"][0] == CONTENT).count();
    assert_eq!((stored.len(), kept), (2, 1), "{row}");
    // An unreadable key must not come to mean the platform's.
    world.aws.change("organizations", &home.organization_id, json!({"own_keys": {"vapi": {"vault": CONTENT}}}));
    world.vapi.clear_requests();
    let refused = world.create(&ai_sms()).await;
    assert_eq!((refused.status, &refused.body["code"]), (503, &json!("unavailable")));
    assert!(world.vapi.requests().is_empty() && !refused.body.to_string().contains(CONTENT));
    assert_eq!(world.create_as(&world.other, &ai_sms()).await.status, 201, "the others are not held up");
}

pub(super) async fn intents(world: &World) {
    let intent = |change: Value| {
        let id = Uuid::now_v7().to_string();
        let intent = json!({"id": id, "organization_id": world.home.organization_id, "created_at": Timestamp::now(), "owner_until": 1});
        extended(intent, &change)
    };
    let known =
        json!({"change": "create_tool", "tool_id": Uuid::now_v7().to_string(), "name": "never_made", "newer": CONTENT});
    let known = intent(known);
    let unknown = [
        intent(json!({"change": CONTENT, "automation_id": "x"})),
        intent(json!({"change": "store_secret", "secret": "a", "of": {CONTENT: "x"}})),
        intent(json!({"change": "delete_tool", "tool_id": Uuid::now_v7().to_string(), "created_at": {"at": CONTENT}})),
        intent(json!({"change": "delete_tool", "tool_id": Uuid::now_v7().to_string(), "owner_until": {"at": CONTENT}})),
    ];
    for intent in unknown.iter().chain([&known]) {
        world.aws.put("intents", intent);
    }
    let logs = Logs::capture();
    let report = world.settle().await;
    let settled: Vec<&Value> = report["settled"].as_array().unwrap().iter().map(|settled| &settled["intent"]).collect();
    assert_eq!(settled, [&known["id"]], "{report}");
    let left: Vec<&Value> = report["left"].as_array().unwrap().iter().map(|left| &left["intent"]).collect();
    assert!(left.len() == 2 && unknown[..2].iter().all(|intent| left.contains(&&intent["id"])), "{report}");
    let log = logs.text();
    assert!(unknown.iter().all(|intent| log.contains(text(&intent["id"]))) && !log.contains(CONTENT), "{log}");
    drop(logs);
    // They wait unchanged for the version that began them.
    for intent in &unknown {
        assert_eq!(world.aws.row("intents", text(&intent["id"])).as_ref(), Some(intent));
    }
    // Any open change blocks another VAPI account.
    let own = world.keys(&world.home, "PUT", "/vapi", &json!({"api_key": tests::SECOND_PLATFORM_KEY})).await;
    assert!(own.status == 503 || own.status == 409, "{}", own.body);
    for intent in &unknown[..2] {
        world.aws.delete("intents", text(&intent["id"]));
    }
    let own = world.keys(&world.home, "PUT", "/vapi", &json!({"api_key": tests::SECOND_PLATFORM_KEY})).await;
    assert_eq!(own.status, 503, "a change that cannot be read at all, too: {}", own.body);
}
