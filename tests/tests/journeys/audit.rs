//! The audit log as its readers see it.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::large_futures,
    reason = "a test says what is wrong and stops"
)]

use serde_json::{Value, json};
use tests::{Answer, Event, Tenant, World, ai_sms, phone};

async fn audit_as(world: &World, tenant: &Tenant, query: &[(&str, &str)]) -> Answer {
    let event = Event::get(&format!("/api/{}/audit", tenant.slug)).user(&tenant.user_id);
    let event = query.iter().fold(event, |event, (name, value)| event.query(name, value));
    world.send("members", &event).await
}

async fn audit(world: &World, query: &[(&str, &str)]) -> Vec<Value> {
    audit_as(world, &world.home, query).await.expect(200)["items"].as_array().unwrap().clone()
}

fn of(entry: &Value) -> String {
    ["action", "noun", "name"].map(|field| entry[field].as_str().unwrap_or("-")).join(" ")
}

fn all_of(entries: &[Value]) -> Vec<String> {
    entries.iter().map(of).collect()
}

async fn automation(world: &World, method: &str, path: &str, body: &Value) -> Value {
    let event = Event::new(method, &format!("/api/{}/automations{path}", world.home.slug)).user(&world.home.user_id);
    let event = event.header("if-match", "*");
    let event = if body.is_null() { event } else { event.text(body.to_string()) };
    let answer = world.send("deploy", &event).await;
    assert!(answer.status < 300, "{}", answer.body);
    answer.body
}

#[tokio::test]
async fn the_life_of_an_automation_is_told_newest_first() {
    let world = World::start().await;
    let definition = |prompt: &str| json!({"name": "Digest", "trigger_type": "manual", "prompt": prompt});
    let made = automation(&world, "POST", "", &definition("One")).await;
    let id = made["automation"]["id"].as_str().unwrap().to_owned();
    automation(&world, "POST", "", &definition("One")).await;
    automation(&world, "PUT", &format!("/{id}"), &definition("Two")).await;
    automation(&world, "POST", &format!("/{id}/activate"), &json!({"version": 2})).await;
    let run = automation(&world, "POST", &format!("/{id}/run"), &Value::Null).await;
    automation(&world, "POST", &format!("/{id}/rollback"), &json!({"version": 1})).await;
    automation(&world, "POST", &format!("/{id}/pause"), &Value::Null).await;
    automation(&world, "POST", &format!("/{id}/pause"), &Value::Null).await;
    automation(&world, "DELETE", &format!("/{id}"), &Value::Null).await;
    let entries = audit(&world, &[]).await;
    let told = all_of(&entries);
    let digest = |action: &str| format!("{action} automation Digest");
    let expected = [
        digest("deleted"),
        digest("paused"),
        digest("rolled_back"),
        "started run -".to_owned(),
        digest("activated"),
        digest("edited"),
        digest("created"),
    ];
    assert_eq!(told, expected, "the same again is no change");
    let run_of = entries.iter().find(|entry| entry["noun"] == "run").unwrap();
    assert_eq!((&run_of["id"], &run_of["details"]["automation_id"]), (&run["id"], &json!(id)));
    let activated = entries.iter().find(|entry| entry["action"] == "activated").unwrap();
    assert_eq!(
        (&activated["details"], &activated["role"], &activated["via"]),
        (&json!({"version": 2}), &json!("owner"), &Value::Null)
    );
}

#[tokio::test]
async fn entries_are_filtered_and_paged_and_another_organizations_are_not_shown() {
    let world = World::start().await;
    let first = world.attached(&ai_sms()).await;
    let second = world.tool(&ai_sms()).await;
    world.knowledge_base(&json!([]), &json!([{"text": "House"}, {"text": "Flat"}])).await;
    world.create_as(&world.other, &ai_sms()).await.expect(201);
    let all = audit(&world, &[]).await;
    assert_eq!(
        all.iter().map(|entry| entry["noun"].as_str().unwrap()).collect::<Vec<_>>(),
        ["knowledge_base", "knowledge_base", "tool", "tool", "tool"]
    );
    assert_eq!(all[0]["details"], json!({"rows": 2}));
    let attached = &all[3];
    assert_eq!(
        (&attached["action"], &attached["details"]["agent_id"]),
        (&json!("attached"), &json!(world.home.agent_id))
    );

    // Page by page.
    let (mut paged, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let query: Vec<(&str, &str)> =
            [("limit", "2")].into_iter().chain(cursor.as_deref().map(|it| ("cursor", it))).collect();
        let page = audit_as(&world, &world.home, &query).await.expect(200);
        paged.extend(page["items"].as_array().unwrap().clone());
        match page["next_cursor"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => break,
        }
    }
    assert_eq!(paged, all);

    let text = |value: &Value| value.as_str().unwrap().to_owned();
    assert_eq!(audit(&world, &[("id", &text(&second["id"]))]).await, [all[2].clone()]);
    assert_eq!(audit(&world, &[("id", &text(&first["id"])), ("noun", "tool")]).await, all[3..]);
    assert_eq!(audit(&world, &[("noun", "knowledge_base")]).await, all[..2]);
    assert_eq!(audit(&world, &[("actor", &world.home.user_id)]).await, all);
    assert_eq!(audit(&world, &[("actor", "nobody")]).await, Vec::<Value>::new());
    let at = text(&all[2]["at"]);
    let is = |entry: &&Value, since: bool| (text(&entry["at"]) >= at) == since;
    assert_eq!(
        audit(&world, &[("since", &at)]).await,
        all.iter().filter(|it| is(it, true)).cloned().collect::<Vec<_>>()
    );
    assert_eq!(
        audit(&world, &[("until", &at)]).await,
        all.iter().filter(|it| is(it, false)).cloned().collect::<Vec<_>>()
    );
    for (query, field) in [
        ([("noun", "bicycle"), ("limit", "2")], "noun"),
        ([("since", "yesterday"), ("limit", "2")], "since"),
        ([("since", "2026-02-01T00:00:00Z"), ("until", "2026-01-01T00:00:00Z")], "until"),
    ] {
        assert_eq!(audit_as(&world, &world.home, &query).await.wrong_fields(), [field]);
    }
    assert_eq!(audit_as(&world, &world.other, &[]).await.expect(200)["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_change_by_an_agent_names_the_agent() {
    let world = World::start().await;
    let definition = json!({"name": "By a model", "trigger_type": "manual", "prompt": "Hello"});
    let result = world.mcp_call("deploy_automation", &json!({"automation": definition})).await;
    assert_eq!(result["isError"], false, "{result}");
    let entries = audit(&world, &[]).await;
    assert_eq!(all_of(&entries), ["created automation By a model"]);
    assert_eq!((&entries[0]["actor"], &entries[0]["via"]), (&json!(world.home.user_id), &json!("agent")));
}

#[tokio::test]
async fn a_credential_and_a_key_leave_entries_without_their_values() {
    let world = World::start().await;
    let fields = json!([{"name": "api_key", "description": "Under Developers."}]);
    world.service_with("Stripe", &json!({"connection": {"type": "credential", "fields": fields}}));
    let path = format!("/api/{}/services/stripe/connect", world.home.slug);
    let connect = Event::post(&path, &json!({"api_key": "sk_live_secret"})).user(&world.home.user_id);
    world.send("discover", &connect).await.expect(200);
    let path = format!("/api/{}/services/stripe/connection", world.home.slug);
    world.send("discover", &Event::new("DELETE", &path).user(&world.home.user_id)).await.expect(204);
    world.keys(&world.home, "PUT", "/llm", &json!({"api_key": "sk-llm-secret"})).await.expect(200);
    world.keys(&world.home, "DELETE", "/llm", &Value::Null).await.expect(200);
    let entries = audit(&world, &[]).await;
    assert_eq!(
        all_of(&entries),
        ["deleted key -", "edited key -", "disconnected service Stripe", "connected service Stripe"]
    );
    assert_eq!(entries[0]["id"], "llm");
    assert!(!json!(world.aws.rows("audit_entries")).to_string().contains("secret"), "{entries:?}");
}

#[tokio::test]
async fn an_erasure_is_one_entry_and_takes_the_number_out_of_the_others() {
    let world = World::start().await;
    let mut named = ai_sms();
    named["label"] = json!(format!("Write to {}", phone(1)));
    let tool = world.tool(&named).await;
    world.tool(&ai_sms()).await;
    world.incoming_call(&world.home, "call-1", &phone(1));
    let path = format!("/api/{}/erasures", world.home.slug);
    let erase = Event::post(&path, &json!({"phone_number": phone(1)})).user(&world.home.user_id);
    let erased = world.send("erasures", &erase).await.expect(200);
    assert_eq!((&erased["complete"], &erased["deleted"]["calls"]), (&json!(true), &json!(1)));
    let entries = audit(&world, &[]).await;
    let told: Vec<(&str, &str)> =
        entries.iter().map(|entry| (entry["action"].as_str().unwrap(), entry["noun"].as_str().unwrap())).collect();
    assert_eq!(told, [("erased", "erasure"), ("created", "tool"), ("created", "tool")], "none of the call's");
    assert_eq!((&entries[2]["id"], &entries[2]["name"]), (&tool["id"], &Value::Null));
    assert!(entries[1]["name"].is_string());
    assert!(!json!(world.aws.rows("audit_entries")).to_string().contains(&phone(1)[2..]), "{entries:?}");
}
