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

mod catalogue;
mod memory;
mod runs;
mod tools;
mod turns;
mod waits;

use catalogue::{a_catalogue, an_organization, intents};
use memory::a_remembered_value;
use std::time::Duration;
use waits::a_wait;

use local::standins::llm::Turn;
use serde_json::{Value, json};
use shared::models::Timestamp;
use tests::{Answer, Event, Template, World, ai_sms, logs::Logs, phone, preemptive_sms};
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
            "automation_memory" => a_remembered_value(world).await,
            "event_waits" => a_wait(world).await,
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
            "replays" => {
                let plan = world.replays(home, "POST", "", &json!({})).await.expect(201);
                mark(world, &table, text(&plan["id"]));
                world.aws.change(&table, text(&plan["id"]), json!({"skipped": {CONTENT: 2}}));
                let path = format!("/{}/start", text(&plan["id"]));
                let started = world.replays(home, "POST", &path, &Value::Null).await.expect(202);
                assert_eq!(started["skipped"][0]["reason"], "other");
                assert_eq!(world.run_scheduled().await, 0);
                assert_marked(world, &table, text(&plan["id"]));
                assert_eq!(world.aws.row(&table, text(&plan["id"])).unwrap()["skipped"], json!({CONTENT: 2}));
                list_of(world, &table, "hooks", "/events/replays", &json!({"filter": CONTENT})).await;
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
            "do_not_call" => {
                let path = format!("/api/{}/do-not-call", world.home.slug);
                let add = Event::post(&path, &json!({"phone_number": phone(5)})).user(&world.home.user_id);
                let added = world.send("phone-numbers", &add).await.expect(201);
                let entry = world.aws.rows(&table).remove(0);
                world.aws.put(&table, &extended(entry.clone(), &json!({"newer": CONTENT})));
                world.aws.put(&table, &extended(entry, &json!({"id": "0".repeat(64), "created_at": [CONTENT]})));
                let logs = Logs::capture();
                let shown = get(world, "phone-numbers", "/do-not-call").await.expect(200);
                let ids: Vec<&str> = shown["items"].as_array().unwrap().iter().map(|item| text(&item["id"])).collect();
                assert_eq!(ids, [text(&added["id"])]);
                assert_eq!((reported(&logs).len(), shown.to_string().contains(CONTENT)), (1, false));
            }
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
    tests::within_one_hour().await;
    let body = json!({"prompt": "Hello"});
    world.start_run(&body).await.expect(202);
    let row = world.aws.rows("usage").remove(0);
    world.aws.put("usage", &extended(row.clone(), &json!({"newer": CONTENT})));
    world.start_run(&body).await.expect(202);
    assert_eq!(get(world, "usage", "/usage").await.expect(200)["runs_per_hour"]["used"], 2);
    assert_eq!(world.aws.rows("usage")[0]["newer"], CONTENT);
    // An unreadable row is left out of the view.
    world.aws.put("usage", &extended(row.clone(), &json!({hour_of(&row): CONTENT})));
    assert_eq!(get(world, "usage", "/usage").await.expect(200)["runs_per_hour"]["used"], 0);
}

/// The attribute that counts the hour.
fn hour_of(row: &Value) -> String {
    row.as_object().unwrap().keys().find(|name| name.starts_with("hour_")).unwrap().clone()
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
async fn a_thread_of_a_newer_version_continues() {
    a_thread(&World::start().await).await;
}
