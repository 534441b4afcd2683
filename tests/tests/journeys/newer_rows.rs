//! Rows of a newer version in every table, and rows of an older one.
//!
//! The known part of a newer row works and the rest stays. An unreadable row is reported and affects only itself. Rows of an
//! older version may exceed today's limits.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::large_futures,
    reason = "a test says what is wrong and stops"
)]

use std::time::Duration;

use local::standins::llm::Turn;
use serde_json::{Value, json};
use shared::models::Timestamp;
use tests::{
    Answer, Event, Template, World, ai_sms, api_request, logs::Logs, phone, preemptive_sms, slack_action,
    sms_without_call,
};
use uuid::Uuid;

/// Content of rows that must appear in no answer and no log line.
const CONTENT: &str = "only-a-newer-version-knows";

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is not text"))
}

/// A GET below `/api/{slug}` as the home organization's user.
async fn get(world: &World, function: &str, path: &str) -> Answer {
    let event = Event::get(&format!("/api/{}{path}", world.home.slug)).user(&world.home.user_id);
    world.send(function, &event).await
}

async fn patch(world: &World, function: &str, path: &str, body: &Value) -> Answer {
    let event = Event::new("PATCH", &format!("/api/{}{path}", world.home.slug)).text(body.to_string());
    world.send(function, &event.user(&world.home.user_id)).await
}

fn extended(mut row: Value, attributes: &Value) -> Value {
    row.as_object_mut().unwrap().extend(attributes.as_object().unwrap().clone());
    row
}

/// Gives a row an attribute of a newer version.
fn mark(world: &World, table: &str, id: &str) {
    world.aws.change(table, id, json!({"newer": {"deep": [CONTENT]}}));
}

#[track_caller]
fn assert_marked(world: &World, table: &str, id: &str) {
    assert_eq!(
        world.aws.row(table, id).unwrap()["newer"]["deep"][0],
        CONTENT,
        "{table} lost what a newer version wrote"
    );
}

/// The log lines that report skipped rows. Only a row's key is in the log.
#[track_caller]
fn reported(logs: &Logs) -> Vec<String> {
    assert!(!logs.text().contains(CONTENT), "{}", logs.text());
    let lines = logs.at("WARN").into_iter().map(|line| text(&line["message"]).to_owned());
    lines.filter(|line| line.starts_with("a row is left out: ")).collect()
}

/// A list with one readable row, beside a copy from a newer version: `spoil` is its unreadable part.
async fn list_of(world: &World, table: &str, function: &str, path: &str, spoil: &Value) {
    let list = get(world, function, path).await.expect(200);
    assert_eq!(list["items"].as_array().unwrap().len(), 1, "{table}: {list}");
    let good = text(&list["items"][0]["id"]).to_owned();
    let row = world.aws.rows(table).into_iter().find(|row| row["id"] == good && row.get("organization_id").is_some());
    let row = row.unwrap();
    let bad = Uuid::now_v7().to_string();
    world.aws.put(table, &extended(extended(row.clone(), spoil), &json!({"id": bad})));
    world.aws.put(table, &extended(row, &json!({"newer": CONTENT})));

    let logs = Logs::capture();
    let list = get(world, function, path).await.expect(200);
    let shown: Vec<&str> = list["items"].as_array().unwrap().iter().map(|item| text(&item["id"])).collect();
    assert_eq!((shown, &list["next_cursor"]), (vec![good.as_str()], &Value::Null), "{table}");
    assert!(!list.to_string().contains(CONTENT), "{table}: {list}");
    let keys = reported(&logs);
    assert_eq!(keys.len(), 1, "{table}: reported once: {keys:?}");
    assert!(keys[0].contains(&bad), "{table}: {keys:?}");
    drop(logs);
    if table == "executions" || table == "knowledge_entries" {
        return;
    }

    assert_eq!(get(world, function, &format!("{path}/{good}")).await.status, 200, "{table}");
    let direct = get(world, function, &format!("{path}/{bad}")).await;
    assert_eq!((direct.status, &direct.body["code"]), (503, &json!("unavailable")), "{table}: {}", direct.body);
    assert!(text(&direct.body["detail"]).contains("newer version") && text(&direct.body["detail"]).contains(&bad));
    assert!(!direct.body.to_string().contains(CONTENT), "{}", direct.body);
    let other = Event::get(&format!("/api/{}{path}/{bad}", world.other.slug)).user(&world.other.user_id);
    let other = world.send(function, &other).await.status;
    assert_eq!(other, if table == "calls" { 503 } else { 404 }, "{table}: another tenant's");
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "it is a list of tables")]
async fn every_table_takes_rows_of_a_newer_version() {
    let unknown = json!({"of": CONTENT});
    for (table, _) in Template::read().tables("stack") {
        let table = text(&table["TableName"]).trim_start_matches("stack-").to_owned();
        let world = &World::start().await;
        let home = &world.home;
        match table.as_str() {
            "agents" => {
                let (spoil, path) = (json!({"external_assistant_id": unknown}), "/agents");
                list_of(world, &table, "agents", path, &spoil).await;
                mark(world, &table, &home.agent_id);
                world.attached(&ai_sms()).await;
                assert_marked(world, &table, &home.agent_id);
            }
            "phone_numbers" => {
                let (spoil, path) = (json!({"credentials_secret": unknown}), "/phone-numbers");
                list_of(world, &table, "phone-numbers", path, &spoil).await;
                mark(world, &table, &home.phone_number_id);
                let one = format!("{path}/{}", home.phone_number_id);
                patch(world, "phone-numbers", &one, &json!({"label": "Nights"})).await.expect(200);
                assert_marked(world, &table, &home.phone_number_id);
            }
            "tools" => {
                world.tool(&ai_sms()).await;
                list_of(world, &table, "list-tools", "/tools", &json!({"type": CONTENT})).await;
            }
            "knowledge_bases" => a_base(world).await,
            "knowledge_entries" => {
                let base =
                    world.knowledge_base(&json!([{"name": "city", "type": "text"}]), &json!([{"city": "Porto"}])).await;
                let path = format!("/knowledge-bases/{}/entries", text(&base["id"]));
                list_of(world, &table, "knowledge", &path, &json!({"values": {"city": [CONTENT]}})).await;
                let query = json!({"type": "query", "label": "Find", "knowledge_base_id": base["id"]});
                let tool = world.attached(&query).await;
                let found = world.call_tool(&world.call(&tool, json!({"query": "Porto"}))).await;
                assert_eq!(found.result()["matched"], 1);
            }
            "calls" => {
                world.incoming_call(home, "call-1", &phone(1));
                list_of(world, &table, "calls", "/calls", &json!({"called_phone_number": unknown})).await;
                // VAPI adds words: an unknown one is no reason to lose the call.
                world.aws.change(&table, "call-1", json!({"status": "levitating"}));
                assert_eq!(get(world, "calls", "/calls/call-1").await.expect(200)["status"], "other");
                mark(world, &table, "call-1");
                let bearer = format!("Bearer {}", world.options.webhook_bearer.as_ref().unwrap());
                let ended = json!({"message": {"type": "end-of-call-report", "call": {"id": "call-1"}}});
                let event = Event::post("/api/vapi/events", &ended).header("authorization", &bearer);
                world.send("calls", &event).await.expect(200);
                assert_marked(world, &table, "call-1");
            }
            "executions" => {
                let tool = world.attached(&ai_sms()).await;
                let mut call = world.call(&tool, json!({"text": "Hello"}));
                call.call_id = Some("call-1".to_owned());
                world.call_tool(&call).await.result();
                for spoil in [json!({"trigger": CONTENT}), json!({"status": CONTENT})] {
                    let path = format!("/tools/{}/executions", text(&tool["id"]));
                    list_of(world, &table, "list-tools", &path, &spoil).await;
                    let bad = world.executions().pop().unwrap();
                    world.aws.delete(&table, text(&bad["id"]));
                    list_of(world, &table, "calls", "/calls/call-1/executions", &spoil).await;
                    let timeline = get(world, "calls", "/calls/call-1").await.expect(200);
                    assert_eq!(timeline["timeline"].as_array().unwrap().len(), 2, "{timeline}");
                    let bad = world.executions().pop().unwrap();
                    world.aws.delete(&table, text(&bad["id"]));
                }
            }
            "services" | "service_tools" | "service_capabilities" => a_catalogue(world, &table).await,
            "automation_runs" => a_run(world).await,
            "approvals" => {
                let now = Timestamp::now();
                let row = json!({
                    "id": Uuid::now_v7().to_string(), "organization_id": home.organization_id, "run_id": Uuid::now_v7().to_string(),
                    "action_id": "tell", "tool": "slack_post_message", "arguments": "{}", "arguments_hash": "00", "status": "pending",
                    "valid_until": "2096-01-01T00:00:00.000Z", "created_at": now, "updated_at": now,
                    "expires_at": 4_000_000_000_u64,
                });
                world.aws.put(&table, &row);
                list_of(world, &table, "approvals", "/approvals", &json!({"status": CONTENT})).await;
            }
            "threads" => a_thread(world).await,
            "automations" => {
                world.slack_service();
                world.deploy(&world.urgent_messages()).await.expect(201);
                list_of(world, &table, "deploy", "/automations", &json!({"status": CONTENT})).await;
            }
            "automation_versions" => {
                world.slack_service();
                let saved = world.deploy(&world.urgent_messages()).await;
                let path = format!("/automations/{}/versions", text(&saved.body["automation"]["id"]));
                let row = world.aws.rows(&table).remove(0);
                world.aws.put(&table, &extended(row.clone(), &json!({"newer": CONTENT})));
                get(world, "deploy", &format!("{path}/1")).await.expect(200);
                world.aws.put(&table, &extended(row, &json!({"content_hash": [CONTENT]})));
                assert_eq!(get(world, "deploy", &path).await.expect(200)["items"], json!([]));
                assert_eq!(get(world, "deploy", &format!("{path}/1")).await.status, 503);
            }
            "schedules" => a_schedule(world).await,
            "deployed_triggers" => a_deployed_trigger(world).await,
            "agent_tools" => an_attachment(world).await,
            "organizations" => an_organization(world).await,
            "organization_members" => {
                a_member(world).await;
                let mut row =
                    world.aws.rows(&table).into_iter().find(|row| row["user_id"] == home.user_id.as_str()).unwrap();
                row = extended(row, &json!({"role": CONTENT, "newer": CONTENT}));
                world.aws.put(&table, &row);
                assert_eq!(get(world, "list-tools", "/tools").await.status, 200, "a member by whatever name");
                // Nor does an unreadable membership affect another one.
                world.aws.put(&table, &json!({"user_id": home.user_id, "organization_id": "no organization's id"}));
                assert_eq!(get(world, "list-tools", "/tools").await.status, 200);
            }
            "intents" => intents(world).await,
            "hooks" => {
                world.slack_hook().await;
                list_of(world, &table, "hooks", "/hooks", &json!({"status": CONTENT})).await;
                let hook = get(world, "hooks", "/hooks").await.expect(200)["items"][0].clone();
                let path = format!("/hooks/{}", text(&hook["id"]));
                patch(world, "hooks", &path, &json!({"label": "Ours"})).await.expect(200);
                assert_eq!(world.aws.row(&table, text(&hook["id"])).unwrap()["newer"], CONTENT);
                world.slack_says(&hook, "Ev1", "Hello").await.expect(200);
            }
            "events" => {
                let hook = world.slack_hook().await;
                world.slack_says(&hook, "Ev1", "Hello").await.expect(200);
                list_of(world, &table, "hooks", "/events", &json!({"status": CONTENT})).await;
                let id = get(world, "hooks", "/events").await.expect(200)["items"][0]["id"].clone();
                // Another version has received it, and this one continues.
                world.aws.change(&table, text(&id), json!({"status": "received"}));
                world.slack_says(&hook, "Ev1", "Hello").await.expect(200);
                let row = world.aws.row(&table, text(&id)).unwrap();
                assert_eq!((&row["status"], &row["newer"]), (&json!("dispatched"), &json!(CONTENT)));
            }
            "audit_entries" => {
                let tool = world.tool(&ai_sms()).await;
                let entry = world.aws.rows(&table).remove(0);
                world.aws.put(&table, &extended(entry.clone(), &json!({"noun": "bicycle", "newer": CONTENT})));
                let shown = get(world, "members", "/audit").await.expect(200);
                assert_eq!((&shown["items"][0]["id"], &shown["items"][0]["noun"]), (&tool["id"], &json!("other")));
                assert!(!shown.to_string().contains(CONTENT));
                world
                    .aws
                    .put(&table, &extended(entry, &json!({"place": "2026-01-01T00:00:00.000Z#7", "actor": [CONTENT]})));
                let logs = Logs::capture();
                assert_eq!(get(world, "members", "/audit").await.expect(200)["items"], shown["items"]);
                assert_eq!(reported(&logs).len(), 1);
            }
            "usage" => a_count(world).await,
            "idempotency" => {
                let tool = world.attached(&ai_sms()).await;
                let call = world.call(&tool, json!({"text": "Hello"}));
                world.call_tool(&call).await.result();
                let claim = world.aws.rows(&table).remove(0);
                world.aws.put(&table, &extended(claim.clone(), &json!({"newer": CONTENT})));
                assert_eq!(world.call_tool(&call).await.result()["sent"], 1, "answered from the record");
                // An unreadable outcome is no outcome: nothing is sent again.
                world.aws.put(&table, &extended(claim, &json!({"status": CONTENT})));
                assert!(world.call_tool(&call).await.sentence().contains("not available just now"));
                assert_eq!(world.twilio.requests().len(), 1);
            }
            other => panic!("no test says what becomes of a row of {other} that a newer version wrote"),
        }
    }
}

/// A member with a newer version's role and attributes; and a member with unreadable times.
async fn a_member(world: &World) {
    let (table, home) = ("organization_members", &world.home);
    let row = |user: &str| json!({"user_id": user, "organization_id": home.organization_id, "role": "admin", "newer": CONTENT});
    world
        .aws
        .put(table, &extended(row("a"), &json!({"role": CONTENT, "name": {"of": CONTENT}, "email": "a@example.com"})));
    world.aws.put(table, &extended(row("b"), &json!({"created_at": [CONTENT]})));
    let logs = Logs::capture();
    let list = get(world, "members", "/members").await.expect(200);
    let shown: Vec<&Value> = list["items"].as_array().unwrap().iter().map(|item| &item["user_id"]).collect();
    assert_eq!(shown, [&json!("a"), &json!(home.user_id)], "{list}");
    assert_eq!((&list["items"][0]["role"], &list["items"][0]["name"]), (&json!("viewer"), &Value::Null));
    assert_eq!(reported(&logs).len(), 1);
    drop(logs);
    assert_eq!(get(world, "members", "/members/b").await.status, 503);
    let stored = || world.aws.rows(table).into_iter().find(|row| row["user_id"] == "a").unwrap();
    patch(world, "members", "/members/a", &json!({"phone": phone(1)})).await.expect(200);
    assert_eq!((&stored()["role"], &stored()["phone"]), (&json!(CONTENT), &json!(phone(1))));
    patch(world, "members", "/members/a", &json!({"role": "member"})).await.expect(200);
    let row = stored();
    assert_eq!((&row["role"], &row["newer"], &row["name"]["of"]), (&json!("member"), &json!(CONTENT), &json!(CONTENT)));
}

/// A program deletes an automation's trigger although it knows only a part of its row.
async fn a_deployed_trigger(world: &World) {
    world.catalogue_service("gmail.json");
    world.service("Gmail", Some("gmail"));
    let definition = json!({
        "name": "Mail", "trigger_type": "webhook", "prompt": "Look", "tools": [],
        "trigger_config": {"service": "Gmail", "event_type": "message.received"},
    });
    let id = world.active(&definition).await;
    world.aws.change("deployed_triggers", &id, json!({"newer": CONTENT}));
    world.automation("POST", &format!("/{id}/pause"), &Value::Null).await.expect(200);
    assert_eq!((world.aws.rows("deployed_triggers").len(), world.pipedream.triggers().len()), (0, 0));
}

async fn a_schedule(world: &World) {
    let config = json!({"interval": "daily", "time_of_day": "09:00", "timezone": "Europe/Berlin"});
    let definition = |name: &str| json!({"name": name, "trigger_type": "schedule_recurring", "trigger_config": config, "prompt": "Hi", "tools": []});
    let mut ids = Vec::new();
    for name in ["One", "Other"] {
        let saved = world.deploy(&definition(name)).await.expect(201);
        let id = text(&saved["automation"]["id"]).to_owned();
        world.automation("POST", &format!("/{id}/activate"), &json!({"version": 1})).await.expect(200);
        ids.push(id);
    }
    mark(world, "schedules", &ids[0]);
    let late = json!({"next_run_at": "2026-01-01T00:00:00.000Z"});
    for id in &ids {
        world.aws.change("schedules", id, late.clone());
    }
    world.aws.change("schedules", &ids[1], json!({"rule": {"of": CONTENT}}));
    // The sweep skips unreadable rows and handles the others.
    let logs = Logs::capture();
    world.settle().await;
    assert_eq!(reported(&logs).len(), 1);
    drop(logs);
    assert_eq!(world.run_scheduled().await, 0);
    assert_marked(world, "schedules", &ids[0]);
    assert_ne!(world.aws.row("schedules", &ids[0]).unwrap()["next_run_at"], late["next_run_at"]);
    let direct = world.automation("GET", &format!("/{}", ids[1]), &Value::Null).await;
    assert_eq!((direct.status, &direct.body["code"]), (503, &json!("unavailable")));
    world.automation("GET", &format!("/{}", ids[0]), &Value::Null).await.expect(200);
}

async fn a_base(world: &World) {
    let base = world.knowledge_base(&json!([]), &json!([{"text": "a lake"}])).await;
    let fields = json!([{"name": "price", "type": CONTENT}]);
    list_of(world, "knowledge_bases", "knowledge", "/knowledge-bases", &json!({"fields": fields})).await;
    mark(world, "knowledge_bases", text(&base["id"]));
    let entries = format!("/{}/entries", text(&base["id"]));
    world.knowledge("POST", &entries, &json!({"entries": [{"text": "a river"}]})).await.expect(200);
    assert_marked(world, "knowledge_bases", text(&base["id"]));
}

async fn a_count(world: &World) {
    let body = json!({"prompt": "Hello"});
    world.start_run(&body).await.expect(202);
    let row = world.aws.rows("usage").remove(0);
    world.aws.put("usage", &extended(row.clone(), &json!({"newer": CONTENT})));
    world.start_run(&body).await.expect(202);
    assert_eq!(get(world, "usage", "/usage").await.expect(200)["runs_per_hour"]["used"], 2);
    assert_eq!(world.aws.rows("usage")[0]["newer"], CONTENT);
    // An unreadable row is left out of the view.
    world.aws.put("usage", &extended(row, &json!({"used": CONTENT})));
    assert_eq!(get(world, "usage", "/usage").await.expect(200)["runs_per_hour"]["used"], 0);
}

async fn a_run(world: &World) {
    let body = json!({"prompt": "Hello", "schema": {"type": "object"}});
    let run = world.start_run(&body).await.expect(202);
    let organization = &json!(world.home.organization_id);
    for spoil in [json!({"limits": CONTENT}), json!({"status": CONTENT})] {
        list_of(world, "automation_runs", "runs", "/runs", &spoil).await;
        let bad = world
            .aws
            .rows("automation_runs")
            .into_iter()
            .find(|row| row["id"] != run["id"] && row["organization_id"] == *organization)
            .unwrap();
        while world.aws.receive("runs", 0).is_some() {}
        // Its message is redelivered until a version can read the run, so the run is not lost.
        let message = json!({"organization_id": world.home.organization_id, "run_id": bad["id"]});
        world.aws.post("runs", &message.to_string());
        let kept = world.aws.rows("automation_runs").len();
        let batch = world.aws.receive("runs", 0).unwrap();
        assert_eq!(world.run_loop_batch(batch, Duration::from_secs(60)).await, 1);
        assert_eq!(world.aws.rows("automation_runs").len(), kept);
        let key = json!({"id": bad["id"], "part": "run", "organization_id": world.other.organization_id});
        world.aws.put("automation_runs", &key);
    }
    // A run that this version continues keeps its unknown part.
    let mut row =
        world.aws.rows("automation_runs").into_iter().find(|row| row["id"] == run["id"] && row["part"] == "run");
    let row = extended(row.take().unwrap(), &json!({"newer": {"deep": [CONTENT]}}));
    world.aws.put("automation_runs", &row);
    let message = json!({"organization_id": world.home.organization_id, "run_id": run["id"]});
    world.aws.post("runs", &message.to_string());
    world.llm.script([Turn::text("````tool\nreturn finalResponse();\n````"), Turn::text("{}")]);
    world.run_loop(Duration::from_secs(60)).await;
    let shown = world.run(text(&run["id"])).await.expect(200);
    assert_eq!(shown["status"], "completed", "{shown}");
    let rows = world.aws.rows("automation_runs");
    let row = rows.iter().find(|row| row["id"] == run["id"] && row["part"] == "run").unwrap();
    assert_eq!(row["newer"]["deep"][0], CONTENT);
    // An unreadable step: the run cannot be shown whole, and says so.
    let step = rows.iter().find(|row| row["part"] == "0001#reply").unwrap().clone();
    world.aws.put("automation_runs", &extended(step, &json!({"phase": CONTENT})));
    let shown = world.run(text(&run["id"])).await;
    assert_eq!((shown.status, &shown.body["code"]), (503, &json!("unavailable")));
    assert_eq!(world.runs_as(&world.other, &format!("/{}", text(&run["id"]))).await.status, 404);
}

async fn an_attachment(world: &World) {
    let (good, bad) = (world.attached(&ai_sms()).await, world.attached(&preemptive_sms()).await);
    for row in world.aws.rows("agent_tools") {
        let spoil = if row["tool_id"] == bad["id"] { json!({"is_vapi_attached": CONTENT}) } else { json!({}) };
        world.aws.put("agent_tools", &extended(extended(row, &spoil), &json!({"newer": CONTENT})));
    }
    let logs = Logs::capture();
    let path = format!("/agents/{}/tools", world.home.agent_id);
    let list = get(world, "list-tools", &path).await.expect(200);
    let shown: Vec<&Value> = list["items"].as_array().unwrap().iter().map(|item| &item["id"]).collect();
    assert_eq!((shown, &list["synced"]), (vec![&good["id"]], &json!(true)));
    let keys = reported(&logs);
    let row = world.aws.rows("agent_tools").into_iter().find(|row| row["tool_id"] == bad["id"]).unwrap();
    assert!(keys.len() == 1 && keys[0].contains(text(&row["id"])), "{keys:?}");
    assert_eq!(world.aws.rows("agent_tools").len(), 2, "what cannot be read is not removed");
    let answer = world.send("call-start", &world.incoming(&world.caller(&phone(1)))).await;
    assert_eq!(answer.content_type, "text/xml");
    assert!(answer.body.as_str().unwrap().contains("<Stream"), "{}", answer.body);
    assert_eq!(world.detach(text(&good["id"])).await.status, 200);
}

/// One row for each of three services: one extended by a newer version, one unreadable here.
async fn a_catalogue(world: &World, table: &str) {
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

async fn an_organization(world: &World) {
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

async fn intents(world: &World) {
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

/// A thread with unknown members: its turns go on, and an unreadable message affects only itself.
async fn a_thread(world: &World) {
    let user = &world.home.user_id;
    let none = || Turn::text(r#"{"tool": "none"}"#);
    world.llm.script([none(), Turn::text("Hello!")]);
    world.chat("Hi").await.expect(200);
    let items = world.aws.rows("threads");
    for item in &items {
        let spoil = match text(&item["part"]) {
            "thread" => json!({"newer": CONTENT}),
            "m#000001" => json!({"newer": CONTENT, "role": "moderator"}),
            _ => json!({"content": [CONTENT]}),
        };
        world.aws.put("threads", &extended(item.clone(), &spoil));
    }
    let logs = Logs::capture();
    let shown = world.threads(user, "GET", "/default").await.expect(200);
    assert_eq!(shown["items"].as_array().unwrap().len(), 1, "{shown}");
    assert_eq!(shown["items"][0]["role"], "unknown");
    assert_eq!(reported(&logs).len(), 1);
    drop(logs);
    world.llm.script([none(), Turn::text("Hello again!")]);
    world.chat("Hi").await.expect(200);
    let row = world.aws.rows("threads").into_iter().find(|item| item["part"] == "thread").unwrap();
    assert_eq!((&row["newer"], &row["turns"]), (&json!(CONTENT), &json!(2)), "what a newer version wrote stays");
    // An unreadable row affects only its thread.
    world.aws.put("threads", &extended(row, &json!({"name": [CONTENT]})));
    assert_eq!(world.threads(user, "GET", "").await.expect(200)["items"], json!([]));
    assert_eq!(world.threads(user, "GET", "/default").await.status, 503);
    assert_eq!(world.chat("Hi").await.status, 503);
}

#[tokio::test]
async fn a_conversation_of_a_newer_version_goes_on() {
    a_thread(&World::start().await).await;
}
