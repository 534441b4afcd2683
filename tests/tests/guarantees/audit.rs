//! Every change of a member's leaves an audit entry, in the same transaction.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test says what is wrong and stops")]

use std::time::Duration;

use serde_json::{Value, json};
use shared::models::Timestamp;
use tests::{Answer, Event, Fault, Trouble, World, ai_sms, declared, template::Route};

use super::access::{APPROVAL, AUTOMATION, BASE, REPLAY, RUN, by, request, routes, world_with_tools};

/// Routes that write and leave no entry of their own.
const NONE: &[(&str, &str)] = &[
    ("POST /agent/chat", "a turn; a change by its tools has an entry"),
    ("POST /agent/stream", "a turn"),
    ("POST /copilotkit/action", "a turn"),
    ("POST /copilotkit/stream", "a turn"),
    ("POST /copilotkit", "a turn, or a question about the chat"),
    ("POST /copilotkit/agent/{id}/run", "a turn"),
    ("POST /copilotkit/agent/{id}/connect", "reads a conversation"),
    ("POST /copilotkit/agent/{id}/stop/{thread}", "stops one's own turn"),
    ("DELETE /agent/threads/{id}", "one's own conversation, which nobody else sees"),
    ("POST /api/{slug}/mcp", "the function that is called leaves its entry"),
    ("DELETE /api/{slug}/mcp", "ends a session, which has no state"),
    ("POST /api/{slug}/agent-tools/{name}", "the function that is called leaves its entry"),
    ("POST /api/{slug}/discover/fetch_tool_data", "reads"),
    ("POST /api/{slug}/discover/search", "reads"),
    ("POST /api/{slug}/tools/test", "a trial, which is recorded as an execution"),
    ("POST /api/{slug}/events/replays", "a plan, which starts nothing; its start has an entry"),
    (
        "POST /api/{slug}/services/{name}/connect",
        "a link changes nothing; a credential has an entry (journeys/audit.rs)",
    ),
];

fn entries(world: &World) -> Vec<Value> {
    world.aws.rows("audit_entries")
}

async fn send(world: &World, function: &str, method: &str, path: &str, body: &Value) -> Answer {
    let event = Event::new(method, &format!("/api/{}/{path}", world.home.slug)).user(&world.home.user_id);
    let event = if body.is_null() { event } else { event.text(body.to_string()) };
    world.send(function, &event).await
}

/// Makes the route's usual request a change that succeeds.
async fn prepared(world: &World, route: &Route, tool: &str) -> Event {
    let home = &world.home;
    let usual = request(route, home, tool, &home.agent_id);
    let changed = |path: &str, id: &str, attributes: Value| world.aws.change(path, id, attributes);
    match format!("{} {}", route.method, route.path).as_str() {
        "POST /api/{slug}/agents" => {
            let assistant = world.at_vapi("POST", "/assistant", &json!({"name": "Nights"})).await;
            world.prove(home, assistant["id"].as_str().unwrap()).await;
            return usual.text(json!({"external_assistant_id": assistant["id"]}).to_string());
        }
        "DELETE /api/{slug}/agents/{id}" => {
            changed("phone_numbers", &home.phone_number_id, json!({"agent_id": null}));
        }
        "POST /api/{slug}/phone-numbers" => {
            let path = format!("phone-numbers/{}", home.phone_number_id);
            send(world, "phone-numbers", "DELETE", &path, &Value::Null).await.expect(200);
        }
        "POST /api/{slug}/agents/{id}/tools/attach" => {
            let new = world.tool(&ai_sms()).await;
            return usual.text(json!({"tool_id": new["id"]}).to_string());
        }
        "POST /api/{slug}/agents/{id}/knowledge-bases/detach" => {
            world.knowledge_of(&home.agent_id, "attach", BASE).await.expect(201);
        }
        "POST /api/{slug}/runs/{id}/retry" => {
            let path = format!("/api/{}/runs/{}/retry", home.slug, world.failed_run().await.id);
            return Event::post(&path, &json!({"dry_run": false}));
        }
        "DELETE /api/{slug}/runs/{id}" => drop(world.cancel_run(RUN).await.expect(200)),
        "PUT /api/{slug}/automations/{id}" => return usual.header("if-match", "*"),
        "POST /api/{slug}/automations/{id}/pause" => {
            changed("automations", AUTOMATION, json!({"status": "active", "active_version": 1}));
        }
        "POST /api/{slug}/automations/{id}/rollback" => {
            changed("automations", AUTOMATION, json!({"status": "active", "active_version": 2, "version": 2}));
        }
        "POST /api/{slug}/automations" => {
            return usual.text(json!({"name": "Bye", "trigger_type": "manual", "prompt": "Bye"}).to_string());
        }
        // A key of VAPI's would need its own tools.
        "PUT /api/{slug}/keys/{service}" => {
            return Event::new("PUT", &format!("/api/{}/keys/llm", home.slug))
                .text(json!({"api_key": "sk-1"}).to_string());
        }
        "DELETE /api/{slug}/keys/{service}" => {
            let path = format!("/api/{}/keys/llm", home.slug);
            world.keys(home, "PUT", "/llm", &json!({"api_key": "sk-1"})).await.expect(200);
            return Event::new("DELETE", &path);
        }
        _ => {}
    }
    usual
}

#[tokio::test]
async fn every_route_that_changes_something_leaves_an_entry_or_is_explained() {
    let members = |route: &Route| declared::least_role(&route.method, &route.path).is_some();
    let routes: Vec<Route> = routes(&World::start().await).into_iter().filter(members).collect();
    let writes = |route: &&Route| !["GET", "OPTIONS"].contains(&route.method.as_str());
    let key = |route: &Route| format!("{} {}", route.method, route.path);
    let known: Vec<String> = routes.iter().map(key).collect();
    let unknown: Vec<&str> = NONE.iter().map(|(route, _)| *route).filter(|it| !known.contains(&(*it).into())).collect();
    assert!(unknown.is_empty(), "no such routes: {unknown:?}");
    let mut wrong = Vec::new();
    for route in routes.iter().filter(writes).filter(|route| !NONE.iter().any(|(none, _)| *none == key(route))) {
        let (world, tool, _) = world_with_tools().await;
        let event = prepared(&world, route, &tool).await;
        let before = entries(&world);
        let answer = world.send(&route.function, &by(&world, route, event, &world.home.user_id)).await;
        let mut left = entries(&world);
        left.retain(|row| !before.contains(row));
        let theirs = |row: &Value| {
            row["actor"] == world.home.user_id.as_str()
                && row["organization_id"] == world.home.organization_id.as_str()
                && row["role"] == "owner"
                && row["action"] != "other"
        };
        if answer.status >= 300 || left.len() != 1 || !left.iter().all(theirs) {
            wrong.push(format!("{}: {} {} left {left:?}", key(route), answer.status, answer.body));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The entry is in the transaction of the change: a table that fails takes both.
#[tokio::test]
async fn a_change_that_fails_leaves_no_entry_and_an_entry_that_fails_no_change() {
    let (world, _, _) = world_with_tools().await;
    let before = entries(&world).len();
    for (table, function, method, path, body) in [
        ("audit_entries", "knowledge", "POST", "knowledge-bases".to_owned(), json!({"name": "New"})),
        ("knowledge_bases", "knowledge", "POST", "knowledge-bases".to_owned(), json!({"name": "New"})),
        ("audit_entries", "approvals", "POST", format!("approvals/{APPROVAL}/approve"), json!({})),
        ("approvals", "approvals", "POST", format!("approvals/{APPROVAL}/approve"), json!({})),
        ("audit_entries", "runs", "POST", format!("runs/{RUN}/cancel"), Value::Null),
        ("audit_entries", "hooks", "POST", format!("events/replays/{REPLAY}/start"), Value::Null),
        ("replays", "hooks", "POST", format!("events/replays/{REPLAY}/start"), Value::Null),
        ("replays", "hooks", "POST", format!("events/replays/{REPLAY}/cancel"), Value::Null),
        ("audit_entries", "members", "POST", "members".to_owned(), json!({"user_id": "auth0|9", "role": "member"})),
    ] {
        let tables = ["knowledge_bases", "approvals", "automation_runs", "organization_members", "replays"];
        let state = || tables.map(|table| json!(world.aws.rows(table)).to_string());
        let unchanged = state();
        world.aws.inject(Fault::throttled("TransactWriteItems", table).times(9));
        let answer = send(&world, function, method, &path, &body).await;
        world.aws.clear_faults();
        assert_eq!(answer.status, 503, "{path} without {table}: {}", answer.body);
        assert_eq!(state(), unchanged, "{path} without {table}");
        assert_eq!(entries(&world).len(), before, "{path} without {table}");
    }
}

#[tokio::test]
async fn a_change_that_loses_its_condition_leaves_no_entry() {
    let (world, _, _) = world_with_tools().await;
    let (approve, refuse) = (format!("approvals/{APPROVAL}/approve"), format!("approvals/{APPROVAL}/refuse"));
    let no = json!({"reason": "No"});
    let (one, other) = futures_util::join!(
        send(&world, "approvals", "POST", &approve, &Value::Null),
        send(&world, "approvals", "POST", &refuse, &no),
    );
    let mut statuses = [one.status, other.status];
    statuses.sort_unstable();
    assert!(statuses[0] == 200 && statuses[1] >= 409, "{} {}", one.body, other.body);
    let left: Vec<Value> = entries(&world).into_iter().filter(|row| row["noun"] == "approval").collect();
    let decided = world.aws.row("approvals", APPROVAL).unwrap()["status"].clone();
    assert_eq!(left.iter().map(|row| row["action"].clone()).collect::<Vec<_>>(), [decided]);

    // The automation has another revision by now.
    let before = entries(&world).len();
    let path = format!("/api/{}/automations/{AUTOMATION}", world.home.slug);
    let late = Event::new("DELETE", &path).user(&world.home.user_id).header("if-match", "\"77\"");
    assert_eq!(world.send("deploy", &late).await.status, 409);
    assert_eq!(entries(&world).len(), before);
}

/// `settle` completes a deletion in the name of its user, with one entry however far it had come.
#[tokio::test]
async fn a_deletion_that_was_killed_has_one_entry_of_its_user_once_it_is_settled() {
    for step in 0..40 {
        for trouble in [Trouble::StallBefore, Trouble::StallAfter] {
            let world = World::start().await;
            let tool = world.attached(&ai_sms()).await;
            world.aws.inject(Fault::new("*", "*", trouble).after(step));
            let died = tokio::select! {
                biased;
                () = world.aws.stalled() => true,
                _ = world.delete(&tool) => false,
            };
            world.aws.clear_faults();
            world.later();
            tokio::time::timeout(Duration::from_secs(20), world.settle()).await.unwrap();
            let gone = world.tools().is_empty();
            let left = entries(&world).into_iter().filter(|row| row["action"] == "deleted").collect::<Vec<_>>();
            assert_eq!(left.len(), usize::from(gone), "step {step}: {left:?}");
            assert!(left.iter().all(|row| row["actor"] == world.home.user_id.as_str() && row["id"] == tool["id"]));
            if !died {
                assert!(gone && step > 4);
                return;
            }
        }
    }
    panic!("the deletion has more steps than this test tries");
}

#[tokio::test]
async fn an_entry_expires_after_a_year() {
    let (world, tool, _) = world_with_tools().await;
    let year = Timestamp::now().as_seconds() + 365 * 86_400;
    let entry = entries(&world).into_iter().find(|row| row["id"] == tool.as_str()).unwrap();
    assert!((year - 120..=year).contains(&entry["expires_at"].as_i64().unwrap()), "{entry}");
}
