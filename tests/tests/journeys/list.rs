//! GET of tools: one tool, pages of all tools, an agent's tools.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

use serde_json::{Value, json};
use tests::{Event, World, ai_sms};
use uuid::Uuid;

/// Rows of an organization's tools, made a second apart.
fn many(world: &World, organization: &str, count: usize) {
    for index in 0..count {
        let id = Uuid::now_v7().to_string();
        let at = format!("2026-01-01T{:02}:{:02}:{:02}.000Z", index / 3600, index / 60 % 60, index % 60);
        let row = json!({
            "id": id, "organization_id": organization, "name": format!("tool_{index}"), "label": format!("Tool {index}"),
            "type": "query", "function_schema": {}, "created_at": at, "updated_at": at,
        });
        world.aws.put("tools", &row);
    }
}

async fn all(world: &World, limit: usize) -> Vec<Value> {
    let mut items: Vec<Value> = Vec::new();
    let mut path = format!("/tools?limit={limit}");
    loop {
        let page = world.list(&path).await.expect(200);
        let found = page["items"].as_array().unwrap();
        assert!(found.len() <= limit);
        items.extend(found.iter().cloned());
        match page["next_cursor"].as_str() {
            Some(cursor) => path = format!("/tools?limit={limit}&cursor={cursor}"),
            None => return items,
        }
    }
}

#[tokio::test]
async fn an_organization_without_tools_has_an_empty_list() {
    let world = World::start().await;
    assert_eq!(world.list("/tools").await.expect(200), json!({"items": [], "next_cursor": null}));
}

#[tokio::test]
async fn more_than_a_hundred_tools_come_by_pages_each_once_and_newest_first() {
    let world = World::start().await;
    many(&world, &world.home.organization_id, 130);
    many(&world, &world.other.organization_id, 10);
    for limit in [7, 50, 130, 200] {
        let items = all(&world, limit).await;
        let names: Vec<&str> = items.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        let expected: Vec<String> = (0..130).rev().map(|index| format!("tool_{index}")).collect();
        assert_eq!(names, expected, "limit {limit}");
    }
    let usual = world.list("/tools").await.expect(200);
    assert_eq!(usual["items"].as_array().unwrap().len(), 50);
}

#[tokio::test]
async fn the_reserved_names_of_tools_are_not_tools() {
    let world = World::start().await;
    world.tool(&ai_sms()).await;
    assert_eq!(world.aws.rows("tools").len(), 2, "the row and the guard of its name");
    let items = world.list("/tools").await.expect(200)["items"].clone();
    assert_eq!(items.as_array().unwrap().len(), 1);
    assert_eq!(items[0]["name"], "send_confirmation");
}

#[tokio::test]
async fn a_cursor_of_another_organization_opens_nothing_of_theirs() {
    let world = World::start().await;
    many(&world, &world.home.organization_id, 3);
    many(&world, &world.other.organization_id, 3);
    let theirs = world.list_as(&world.other, "/tools?limit=1").await.expect(200);
    let cursor = theirs["next_cursor"].as_str().unwrap();
    let page = world.list(&format!("/tools?cursor={cursor}")).await.expect(200);
    for tool in page["items"].as_array().unwrap() {
        assert_eq!(tool["organization_id"], world.home.organization_id);
    }
}

#[tokio::test]
async fn a_wrong_limit_or_cursor_is_named() {
    let world = World::start().await;
    for limit in ["0", "201", "-1", "many", "1.5"] {
        assert_eq!(world.list(&format!("/tools?limit={limit}")).await.wrong_fields(), ["limit"], "{limit}");
    }
    for cursor in ["x", "!!!", "YWJj", "MjAyNi0wMS0wMVQwMDowMDowMFogbm8gaWQh"] {
        assert_eq!(world.list(&format!("/tools?cursor={cursor}")).await.wrong_fields(), ["cursor"], "{cursor}");
    }
}

#[tokio::test]
async fn a_cursor_with_a_made_up_time_is_no_fault_of_ours() {
    let world = World::start().await;
    many(&world, &world.home.organization_id, 3);
    // base64url of "tomorrow <a uuid>"
    let cursor = "dG9tb3Jyb3cgMDE5MmYwYzEtMDAwMC03MDAwLTgwMDAtMDAwMDAwMDAwMDAx";
    let answer = world.list(&format!("/tools?cursor={cursor}")).await;
    assert!(answer.status < 500, "{}", answer.body);
}

#[tokio::test]
async fn an_unknown_tool_is_404_for_any_id() {
    let world = World::start().await;
    let theirs = world.create_as(&world.other, &ai_sms()).await.expect(201);
    let unknown = world.list(&format!("/tools/{}", Uuid::new_v4())).await.expect(404);
    for id in [theirs["id"].as_str().unwrap(), "not-a-uuid", "name%23x", "%00"] {
        assert_eq!(world.list(&format!("/tools/{id}")).await.expect(404), unknown, "{id}");
    }
}

#[tokio::test]
async fn an_agent_shows_its_tools_in_the_order_they_were_attached() {
    let world = World::start().await;
    let path = format!("/agents/{}/tools", world.home.agent_id);
    assert_eq!(
        world.list(&path).await.expect(200),
        json!({"items": [], "next_cursor": null, "synced": true, "unmanaged": [], "dead": []})
    );
    let first = world.attached(&ai_sms()).await;
    let mut on_start = ai_sms();
    on_start["label"] = json!("On start");
    on_start["text"] = json!({"mode": "fixed", "value": "Welcome"});
    on_start["attach_to_agent"] = json!(false);
    on_start["execute_on_call_start"] = json!(true);
    let second = world.attached(&on_start).await;
    world.tool(&ai_sms()).await;

    let items = world.list(&path).await.expect(200)["items"].clone();
    let shown: Vec<(&Value, &Value)> =
        items.as_array().unwrap().iter().map(|tool| (&tool["id"], &tool["is_vapi_attached"])).collect();
    assert_eq!(shown, [(&first["id"], &json!(true)), (&second["id"], &json!(false))]);
    assert_eq!(items[0]["function_schema"], first["function_schema"], "each comes whole");
}

#[tokio::test]
async fn an_agent_with_more_tools_than_one_batch_shows_all() {
    let world = World::start().await;
    many(&world, &world.home.organization_id, 120);
    for tool in world.tools() {
        let at = tool["created_at"].clone();
        let row = json!({
            "id": Uuid::new_v4().to_string(), "organization_id": world.home.organization_id, "agent_id": world.home.agent_id,
            "tool_id": tool["id"], "is_vapi_attached": false, "created_at": at, "updated_at": at,
        });
        world.aws.put("agent_tools", &row);
    }
    let items = world.list(&format!("/agents/{}/tools", world.home.agent_id)).await.expect(200)["items"].clone();
    assert_eq!(items.as_array().unwrap().len(), 120);
    assert_eq!(items[0]["name"], "tool_0");
}

#[tokio::test]
async fn rows_of_an_older_version_still_show() {
    let world = World::start().await;
    // Only attributes that every version wrote.
    let id = Uuid::new_v4().to_string();
    let at = "2025-01-01T00:00:00.000Z";
    world.aws.put("tools", &json!({
        "id": id, "organization_id": world.home.organization_id, "name": "old", "label": "Old", "type": "externalApp",
        "function_schema": {"name": "old"}, "created_at": at, "updated_at": at, "some_later_column": 1,
    }));
    let tool = world.list(&format!("/tools/{id}")).await.expect(200);
    assert_eq!((&tool["type"], &tool["attach_to_agent"]), (&json!("pipedream_action"), &json!(true)));
}

#[tokio::test]
async fn an_unknown_route_is_404() {
    let world = World::start().await;
    for path in ["/api", "/api/x", "/", "/api/harbour-dental/agents", "/api/harbour-dental/tools/x/y"] {
        let answer = world.send("list-tools", &Event::get(path).user(&world.home.user_id)).await;
        assert_eq!(answer.status, 404, "{path}");
    }
}

#[tokio::test]
async fn an_unknown_query_parameter_is_refused() {
    let world = World::start().await;
    for (path, named, next) in [
        ("/tools?limt=5", vec!["limt"], "known are"),
        ("/tools?limit=5&a=1&b=2&a=3", vec!["a", "b"], "known are"),
        ("/tools/0192f0c1-0000-7000-8000-00000000dead?limit=5", vec!["limit"], "leave it out"),
    ] {
        let refused = world.list(path).await;
        assert_eq!(refused.wrong_fields(), named, "{path}");
        assert!(refused.body["errors"][0]["problem"].as_str().unwrap().contains(next), "{}", refused.body);
    }
    world.list("/tools?limit=5&cursor=").await.expect(200);
}

#[tokio::test]
async fn tools_are_listed_by_type_and_by_whether_anybody_has_them() {
    let world = World::start().await;
    let attached = world.attached(&ai_sms()).await;
    let (spare, lookup) =
        (world.tool(&ai_sms()).await, world.tool(&tests::api_request("GET", "https://a.example/")).await);
    for (query, expected) in [
        ("type=sms", vec![&spare, &attached]),
        ("type=apiRequest&attached=", vec![&lookup]),
        ("attached=true", vec![&attached]),
        ("attached=false", vec![&lookup, &spare]),
        ("attached=false&type=sms", vec![&spare]),
        ("type=query", vec![]),
    ] {
        let found = world.list(&format!("/tools?{query}")).await.expect(200);
        let ids: Vec<&Value> = found["items"].as_array().unwrap().iter().map(|tool| &tool["id"]).collect();
        let expected: Vec<&Value> = expected.into_iter().map(|tool| &tool["id"]).collect();
        assert_eq!(ids, expected, "{query}");
    }
    assert_eq!(world.list("/tools?type=fax&attached=maybe").await.wrong_fields(), ["type"]);
    assert_eq!(world.list("/tools?attached=maybe").await.wrong_fields(), ["attached"]);
}

#[tokio::test]
async fn which_agents_have_a_tool_is_shown() {
    let world = World::start().await;
    let (attached, spare) = (world.attached(&ai_sms()).await, world.tool(&ai_sms()).await);
    let agents = async |tool: &Value| {
        let path = format!("/tools/{}/agents", tool["id"].as_str().unwrap());
        world.list(&path).await.expect(200)
    };
    let found = agents(&attached).await;
    assert_eq!(
        (&found["items"][0]["id"], &found["items"][0]["is_vapi_attached"]),
        (&json!(world.home.agent_id), &json!(true))
    );
    assert_eq!(agents(&spare).await, json!({"items": [], "next_cursor": null}));
    let theirs = world.create_as(&world.other, &ai_sms()).await.expect(201);
    world.list(&format!("/tools/{}/agents", theirs["id"].as_str().unwrap())).await.expect(404);
}
