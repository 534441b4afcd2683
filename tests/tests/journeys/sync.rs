//! GET /api/{slug}/agents/{id}/tools: the table follows the assistant's `toolIds`.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

use std::time::Duration;

use futures_util::future::join_all;
use local::standins::Fault;
use serde_json::{Value, json};
use tests::{Event, World, ai_sms, automation::AMPLE, preemptive_sms, vapi_differences};

async fn tools_of_agent(world: &World) -> Value {
    world.list(&format!("/agents/{}/tools", world.home.agent_id)).await.expect(200)
}

async fn set_tool_ids(world: &World, ids: Value) {
    let mut model = world.model();
    model["toolIds"] = ids;
    world.at_vapi("PATCH", &format!("/assistant/{}", world.home.assistant_id), &json!({"model": model})).await;
}

#[tokio::test]
async fn a_tool_at_vapi_that_the_table_lacks_is_inserted() {
    let world = World::start().await;
    let tool = world.tool(&ai_sms()).await;
    set_tool_ids(&world, json!([tool["external_tool_id"]])).await;
    let listed = tools_of_agent(&world).await;
    assert_eq!((&listed["synced"], &listed["items"][0]["id"]), (&json!(true), &tool["id"]));
    assert_eq!(listed["items"][0]["is_vapi_attached"], true);
    assert_eq!(vapi_differences::differences(&world), [""; 0]);
}

#[tokio::test]
async fn stale_rows_are_removed_and_preemptive_ones_stay() {
    let world = World::start().await;
    let (stale, preemptive) = (world.attached(&ai_sms()).await, world.attached(&preemptive_sms()).await);
    let kept = world.attached(&ai_sms()).await;
    set_tool_ids(&world, json!([kept["external_tool_id"]])).await;
    let listed = tools_of_agent(&world).await;
    let ids: Vec<&Value> = listed["items"].as_array().unwrap().iter().map(|tool| &tool["id"]).collect();
    assert_eq!(ids, [&preemptive["id"], &kept["id"]]);
    assert!(!ids.contains(&&stale["id"]));
    assert_eq!(vapi_differences::differences(&world), [""; 0]);
}

#[tokio::test]
async fn a_foreign_tool_is_reported_and_left_alone() {
    let world = World::start().await;
    let foreign = world
        .at_vapi(
            "POST",
            "/tool",
            &json!({"type": "function", "function": {"name": "theirs"}, "server": {"url": "https://x.example.com"}}),
        )
        .await;
    let of_other = world.create_as(&world.other, &ai_sms()).await.expect(201);
    set_tool_ids(&world, json!([foreign["id"], of_other["external_tool_id"]])).await;
    let listed = tools_of_agent(&world).await;
    assert_eq!(
        (&listed["items"], &listed["unmanaged"]),
        (&json!([]), &json!([foreign["id"], of_other["external_tool_id"]]))
    );
    assert_eq!(world.tool_ids().len(), 2);
    assert!(world.aws.rows("agent_tools").is_empty());
}

#[tokio::test]
async fn a_failed_read_from_vapi_deletes_nothing() {
    for fault in [Fault::status(500).times(9), Fault::status(404), Fault::status(401), Fault::drop_before().times(9)] {
        let world = World::start().await;
        let tool = world.attached(&ai_sms()).await;
        world.vapi.inject(fault.on("GET", "/assistant/"));
        let listed = tools_of_agent(&world).await;
        assert_eq!((&listed["synced"], &listed["items"][0]["id"]), (&json!(false), &tool["id"]));
        assert_eq!(world.aws.rows("agent_tools").len(), 1);
        world.vapi.clear_faults();
        assert_eq!(tools_of_agent(&world).await["synced"], true);
    }
}

/// An answer of 200 whose lists are none: it says nothing of which tools the assistant has.
#[tokio::test]
async fn lists_of_vapis_that_cannot_be_read_delete_nothing() {
    for (list, unreadable) in [("toolIds", json!("oops")), ("toolIds", json!([7])), ("toolRefs", json!({}))] {
        let world = World::start().await;
        let tool = world.attached(&ai_sms()).await;
        let mut model = world.model();
        model[list] = unreadable;
        let body = json!({"id": world.home.assistant_id, "model": model});
        world.vapi.inject(Fault::body(body).on("GET", "/assistant/").times(9));
        let listed = tools_of_agent(&world).await;
        assert_eq!((&listed["synced"], &listed["items"][0]["id"]), (&json!(false), &tool["id"]), "{list}");
        assert_eq!(world.aws.rows("agent_tools").len(), 1, "{list}");
    }
}

/// The first look shows a difference; the second one, under the agent's lease, fails.
#[tokio::test]
async fn a_failed_second_read_gives_the_tables_list_and_changes_nothing() {
    for fault in [
        Fault::status(500).times(9),
        Fault::status(404),
        Fault::status(401),
        Fault::status(429).with_header("Retry-After", "600"),
        Fault::drop_before().times(9),
        Fault::delay(60_000),
    ] {
        let world = World::start().await;
        let (stale, missing) = (world.attached(&ai_sms()).await, world.tool(&ai_sms()).await);
        set_tool_ids(&world, json!([missing["external_tool_id"]])).await;
        world.vapi.inject(Fault::delay(0).on("GET", "/assistant/"));
        world.vapi.inject(fault.on("GET", "/assistant/"));
        let path = format!("/api/{}/agents/{}/tools", world.home.slug, world.home.agent_id);
        let event = Event::get(&path).user(&world.home.user_id).within(Duration::from_secs(3));
        let listed = world.send("list-tools", &event).await.expect(200);
        assert_eq!((&listed["synced"], &listed["unmanaged"]), (&json!(false), &json!([])));
        let ids: Vec<&Value> = listed["items"].as_array().unwrap().iter().map(|tool| &tool["id"]).collect();
        assert_eq!(ids, [&stale["id"]]);
        assert_eq!(world.aws.rows("agent_tools").len(), 1);
        // The lease was given back, and the next look repairs both.
        world.vapi.clear_faults();
        let listed = tools_of_agent(&world).await;
        assert_eq!((&listed["synced"], &listed["items"][0]["id"]), (&json!(true), &missing["id"]));
        assert_eq!(vapi_differences::differences(&world), [""; 0]);
    }
}

#[tokio::test]
async fn an_agent_that_somebody_else_goes_on_changing_is_shown_as_the_table_has_it() {
    let world = World::start().await;
    let stale = world.attached(&ai_sms()).await;
    set_tool_ids(&world, json!([])).await;
    let held = json!({"lease_token": "somebody-else", "lease_until": 9_999_999_999_999_u64});
    world.aws.change("agents", &world.home.agent_id, held);
    let path = format!("/api/{}/agents/{}/tools", world.home.slug, world.home.agent_id);
    let event = Event::get(&path).user(&world.home.user_id).within(Duration::from_secs(7));
    let listed = world.send("list-tools", &event).await.expect(200);
    assert_eq!((&listed["synced"], &listed["items"][0]["id"]), (&json!(false), &stale["id"]));
    assert_eq!(world.aws.rows("agent_tools").len(), 1);
}

#[tokio::test]
async fn nothing_is_written_when_both_sides_agree() {
    let world = World::start().await;
    world.attached(&ai_sms()).await;
    world.aws.clear_operations();
    tools_of_agent(&world).await;
    let written = |action: &str| ["PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems"].contains(&action);
    assert!(world.aws.operations().iter().all(|operation| !written(&operation.action)));
}

#[tokio::test]
async fn looking_while_tools_come_and_go_loses_none() {
    let world = World::start().await;
    let mut tools = Vec::new();
    for _ in 0..5 {
        tools.push(world.tool(&ai_sms()).await);
    }
    // A busy machine carries them out one after another.
    let path = format!("/api/{}/agents/{}/tools", world.home.slug, world.home.agent_id);
    let send = async |function, event: Event| {
        world.send(function, &event.user(&world.home.user_id).within(AMPLE)).await.status
    };
    let attach = |tool: &Value| Event::post(&format!("{path}/attach"), &json!({"tool_id": tool["id"]}));
    let attaching = join_all(tools.iter().map(|tool| send("attach", attach(tool))));
    let looking = join_all((0..8).map(|_| send("list-tools", Event::get(&path))));
    let (attached, looked) = tokio::join!(attaching, looking);
    assert!(attached.iter().chain(&looked).all(|status| *status < 300), "{attached:?} {looked:?}");
    assert_eq!(tools_of_agent(&world).await["items"].as_array().unwrap().len(), 5);
    assert_eq!(vapi_differences::differences(&world), [""; 0]);
}

#[tokio::test]
async fn a_tool_that_is_pinned_to_a_version_is_attached() {
    let world = World::start().await;
    let (here, new) = (world.attached(&ai_sms()).await, world.tool(&ai_sms()).await);
    world.vapi.keep_versions();
    let mut model = world.model();
    model["toolIds"] = json!([]);
    model["toolRefs"] = [&here, &new].map(|tool| json!({"toolId": tool["external_tool_id"], "version": "v1"})).into();
    world.at_vapi("PATCH", &format!("/assistant/{}", world.home.assistant_id), &json!({"model": model})).await;
    let listed = tools_of_agent(&world).await;
    let ids: Vec<&Value> = listed["items"].as_array().unwrap().iter().map(|tool| &tool["id"]).collect();
    assert_eq!((ids, &listed["dead"]), (vec![&here["id"], &new["id"]], &json!([])));
    assert_eq!(vapi_differences::differences(&world), [""; 0]);
}

#[tokio::test]
async fn dead_ids_of_an_assistant_are_reported() {
    let world = World::start().await;
    let (lost, kept) = (world.attached(&ai_sms()).await, world.attached(&ai_sms()).await);
    let foreign = world.at_vapi("POST", "/tool", &json!({"type": "sms"})).await;
    let ids = json!([lost["external_tool_id"], kept["external_tool_id"], foreign["id"]]);
    set_tool_ids(&world, ids).await;
    for tool in [&lost["external_tool_id"], &foreign["id"]] {
        world.at_vapi("DELETE", &format!("/tool/{}", tool.as_str().unwrap()), &json!({})).await;
    }
    let listed = tools_of_agent(&world).await;
    assert_eq!(listed["dead"], json!([lost["external_tool_id"], foreign["id"]]));
    assert_eq!((listed["items"].as_array().unwrap().len(), &listed["unmanaged"]), (2, &json!([foreign["id"]])));
    // That VAPI cannot be asked about them keeps nobody from the list.
    world.vapi.inject(Fault::status(500).on("GET", "/tool").times(9));
    let listed = tools_of_agent(&world).await;
    assert_eq!((&listed["synced"], &listed["dead"]), (&json!(true), &json!([])));
}
