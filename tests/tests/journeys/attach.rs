//! POST /api/{slug}/agents/{id}/tools/attach: VAPI and the table agree, also under concurrency.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use shared::models::Timestamp;
use tests::{
    Answer, Event, Fault, Trouble, World, ai_sms, automation::AMPLE, clients::until, standins, vapi_differences,
    vapi_openapi::vapi_takes,
};
use uuid::Uuid;

fn on_call_start() -> Value {
    json!({
        "type": "sms", "label": "Welcome", "from": {"type": "called_number"}, "text": "Welcome",
        "recipients": {"mode": "fixed", "value": "{{caller_phone_number}}"},
        "attach_to_agent": false, "execute_on_call_start": true,
    })
}

fn id(row: &Value) -> &str {
    row["id"].as_str().unwrap()
}

fn external(tool: &Value) -> String {
    tool["external_tool_id"].as_str().unwrap().to_owned()
}

fn attach_event(world: &World, tool: &Value) -> Event {
    let path = format!("/api/{}/agents/{}/tools/attach", world.home.slug, world.home.agent_id);
    Event::post(&path, &json!({"tool_id": tool["id"]})).user(&world.home.user_id)
}

/// Attaches beside many others, which a busy machine carries out one after another.
async fn attach_among_many(world: &World, tool: &Value) -> Answer {
    world.send("attach", &attach_event(world, tool).within(AMPLE)).await
}

fn leased(world: &World) -> bool {
    world.aws.row("agents", &world.home.agent_id).unwrap().get("lease_token").is_some()
}

#[tokio::test]
async fn a_tool_is_attached_on_both_sides() {
    let world = World::start().await;
    let tool = world.tool(&ai_sms()).await;
    let row = world.attach(id(&tool)).await.expect(201);
    let mut columns: Vec<&str> = row.as_object().unwrap().keys().map(String::as_str).collect();
    columns.sort_unstable();
    assert_eq!(
        columns,
        ["agent_id", "created_at", "id", "is_vapi_attached", "organization_id", "tool_id", "updated_at"]
    );
    assert_eq!((&row["tool_id"], &row["agent_id"]), (&tool["id"], &json!(world.home.agent_id)));
    assert_eq!(row["is_vapi_attached"], true);
    assert_eq!(world.aws.rows("agent_tools"), [row]);
    assert_eq!(world.tool_ids(), [external(&tool)]);
    assert!(!leased(&world));
}

#[tokio::test]
async fn a_tool_for_call_start_is_attached_in_the_table_alone() {
    let world = World::start().await;
    let tool = world.tool(&on_call_start()).await;
    let row = world.attach(id(&tool)).await.expect(201);
    assert_eq!(row["is_vapi_attached"], false);
    assert_eq!(world.aws.rows("agent_tools"), [row]);
    assert!(world.vapi.requests().is_empty(), "VAPI was asked nothing");
    assert!(!leased(&world));
}

/// A row without the time of its last request: a repetition changes only that.
fn timeless(row: &Value) -> Value {
    let mut row = row.clone();
    row.as_object_mut().unwrap().remove("updated_at");
    row
}

#[tokio::test]
async fn attaching_again_changes_nothing() {
    let world = World::start().await;
    for config in [ai_sms(), on_call_start()] {
        let tool = world.tool(&config).await;
        let row = world.attach(id(&tool)).await.expect(201);
        world.vapi.clear_requests();
        assert_eq!(timeless(&world.attach(id(&tool)).await.expect(200)), timeless(&row));
        assert!(world.vapi.requests().iter().all(|request| request.method == "GET"), "nothing to change at VAPI");
    }
    assert_eq!(world.tool_ids().len(), 1);
    assert_eq!(world.aws.rows("agent_tools").len(), 2);
    assert!(!leased(&world));
}

#[tokio::test]
async fn attaching_again_repairs_an_assistant_that_lost_the_tool() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    let mut model = world.model();
    model["toolIds"] = json!([]);
    world.at_vapi("PATCH", &format!("/assistant/{}", world.home.assistant_id), &json!({"model": model})).await;
    world.attach(id(&tool)).await.expect(200);
    assert_eq!(world.tool_ids(), [external(&tool)]);
}

/// The table decides, even if the repair fails.
#[tokio::test]
async fn attaching_again_never_ends_against_the_table() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    let path = format!("/assistant/{}", world.home.assistant_id);
    for (refusals, on_record) in [(1, 0), (2, 1)] {
        let mut model = world.model();
        model["toolIds"] = json!([]);
        world.at_vapi("PATCH", &path, &json!({"model": model})).await;
        world.vapi.inject(standins::Fault::status(400).on("PATCH", "/assistant").times(refusals));
        let answer = world.attach(id(&tool)).await.expect(502);
        assert_eq!(answer["code"], "upstream");
        assert_eq!(world.aws.rows("intents").len(), on_record, "{refusals}");
        assert!(!leased(&world));
        world.later();
        world.settle().await;
        assert_eq!(world.tool_ids(), [external(&tool)], "{refusals}");
        assert_eq!(vapi_differences::differences(&world), [""; 0]);
    }
}

#[tokio::test]
async fn the_assistants_model_keeps_everything_else() {
    let world = World::start().await;
    let path = format!("/assistant/{}", world.home.assistant_id);
    let foreign = world.at_vapi("POST", "/tool", &json!({"type": "sms"})).await;
    let mut before = world.model();
    before["toolIds"] = json!([foreign["id"]]);
    before["temperature"] = json!(0.1);
    before["messages"] = json!([{"role": "system", "content": "Speak like a pirate.\nAlways."}]);
    world.at_vapi("PATCH", &path, &json!({"model": before})).await;
    let assistant = world.vapi.assistant(&world.home.assistant_id).unwrap();

    let tool = world.attached(&ai_sms()).await;
    let mut after = world.vapi.assistant(&world.home.assistant_id).unwrap();
    assert_eq!(after["model"]["toolIds"], json!([foreign["id"], tool["external_tool_id"]]));
    after["model"]["toolIds"] = assistant["model"]["toolIds"].clone();
    after["updatedAt"] = assistant["updatedAt"].clone();
    assert_eq!(after, assistant);
    let patch = world.vapi.requests().into_iter().rfind(|request| request.method == "PATCH").unwrap();
    vapi_takes("UpdateAssistantDTO", &patch.body);
}

#[tokio::test]
async fn two_tools_attached_at_once_are_both_there() {
    let world = World::start().await;
    let tools = [world.tool(&ai_sms()).await, world.tool(&ai_sms()).await];
    let [one, two] = [id(&tools[0]), id(&tools[1])].map(|tool| world.attach(tool));
    let answers = futures_util::join!(one, two);
    assert_eq!((answers.0.status, answers.1.status), (201, 201));
    let mut ids = world.tool_ids();
    ids.sort();
    let mut expected: Vec<String> = tools.iter().map(external).collect();
    expected.sort();
    assert_eq!(ids, expected);
}

#[tokio::test]
async fn twenty_tools_attached_at_once_are_all_there() {
    let world = World::start().await;
    let config = ai_sms();
    let mut tools = Vec::new();
    for _ in 0..20 {
        tools.push(world.tool(&config).await);
    }
    let answers = join_all(tools.iter().map(|tool| attach_among_many(&world, tool))).await;
    for answer in &answers {
        assert_eq!(answer.status, 201, "{}", answer.body);
    }
    let mut ids = world.tool_ids();
    ids.sort();
    let mut expected: Vec<String> = tools.iter().map(external).collect();
    expected.sort();
    assert_eq!(ids, expected);
    assert_eq!(world.aws.rows("agent_tools").len(), 20);
    assert!(!leased(&world));
}

#[tokio::test]
async fn one_tool_attached_ten_times_at_once_is_attached_once() {
    let world = World::start().await;
    let tool = world.tool(&ai_sms()).await;
    let answers = join_all((0..10).map(|_| attach_among_many(&world, &tool))).await;
    let mut statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 200, 200, 200, 200, 200, 200, 200, 200, 201]);
    let same = |answer: &Answer| timeless(&answer.body) == timeless(&answers[0].body);
    assert!(answers.iter().all(same), "all are told of the one row");
    assert_eq!(world.tool_ids(), [external(&tool)]);
    assert_eq!(world.aws.rows("agent_tools").len(), 1);
}

#[tokio::test]
async fn a_tool_or_agent_of_another_organization_is_not_found() {
    let world = World::start().await;
    let ours = world.tool(&ai_sms()).await;
    let theirs = world.create_as(&world.other, &ai_sms()).await.expect(201);
    world.vapi.clear_requests();
    let unknown_tool = world.attach(&Uuid::new_v4().to_string()).await.expect(404);
    assert_eq!(world.attach(id(&theirs)).await.expect(404), unknown_tool);
    let unknown_agent = world.attach_as(&world.home, &Uuid::new_v4().to_string(), id(&ours)).await.expect(404);
    assert_eq!(world.attach_as(&world.home, &world.other.agent_id, id(&ours)).await.expect(404), unknown_agent);
    assert_eq!(world.attach_as(&world.home, "agent-7", id(&ours)).await.expect(404), unknown_agent);
    assert!(world.vapi.requests().is_empty());
    assert!(world.aws.rows("agent_tools").is_empty());
    assert!(!leased(&world));
    let their_agent = world.aws.row("agents", &world.other.agent_id).unwrap();
    assert!(their_agent.get("lease_token").is_none(), "no lease was taken of theirs");
}

#[tokio::test]
async fn a_body_that_names_no_tool_is_refused() {
    let world = World::start().await;
    let path = format!("/api/{}/agents/{}/tools/attach", world.home.slug, world.home.agent_id);
    for (body, fields) in [
        (json!({}), vec!["tool_id"]),
        (json!({"tool_id": 5}), vec!["tool_id"]),
        (json!({"tool_id": "x", "agent_id": "y"}), vec!["agent_id", "tool_id"]),
        (json!([]), vec!["body"]),
    ] {
        let answer = world.send("attach", &Event::post(&path, &body).user(&world.home.user_id)).await;
        assert_eq!(answer.wrong_fields(), fields, "{body}");
    }
    let broken = Event::new("POST", &path).user(&world.home.user_id).text("{");
    world.send("attach", &broken).await.expect(400);
    assert!(!leased(&world));
}

#[tokio::test]
async fn a_row_that_cannot_be_written_leaves_nothing_at_vapi() {
    let world = World::start().await;
    let before = world.attached(&ai_sms()).await;
    let tool = world.tool(&ai_sms()).await;
    for trouble in ["ProvisionedThroughputExceededException", "InternalServerError"] {
        world.aws.inject(Fault::new("TransactWriteItems", "agent_tools", Trouble::Error(trouble)).times(3));
        world.attach(id(&tool)).await.expect(503);
        assert_eq!(world.aws.faults_left(), 0);
        assert_eq!(world.tool_ids(), [external(&before)], "{trouble}");
        assert_eq!(world.aws.rows("agent_tools").len(), 1);
        assert!(!leased(&world));
    }
    world.attach(id(&tool)).await.expect(201);
}

#[tokio::test]
async fn a_row_whose_writing_was_not_confirmed_is_not_undone() {
    let world = World::start().await;
    let tool = world.tool(&ai_sms()).await;
    world.aws.inject(Fault::new("TransactWriteItems", "agent_tools", Trouble::DropAfter));
    let answer = world.attach(id(&tool)).await;
    assert!(matches!(answer.status, 200 | 201), "{}", answer.body);
    assert_eq!(world.tool_ids(), [external(&tool)]);
    assert_eq!(world.aws.rows("agent_tools").len(), 1);
    assert!(!leased(&world));
}

#[tokio::test]
async fn a_row_whose_writing_was_never_confirmed_agrees_with_vapi() {
    let world = World::start().await;
    let tool = world.tool(&ai_sms()).await;
    world.aws.inject(Fault::new("TransactWriteItems", "agent_tools", Trouble::DropAfter).times(3));
    world.attach(id(&tool)).await.expect(201);
    assert_eq!(world.tool_ids(), [external(&tool)], "VAPI and the table agree");
    assert_eq!(world.aws.rows("agent_tools").len(), 1);
}

#[tokio::test]
async fn a_lost_answer_of_vapis_is_found_out_about() {
    let world = World::start().await;
    let tool = world.tool(&ai_sms()).await;
    world.vapi.inject(standins::Fault::drop_after().on("PATCH", "/assistant"));
    let answer = world.attach(id(&tool)).await;
    assert_eq!(answer.status, 201, "{}", answer.body);
    assert_eq!(world.tool_ids(), [external(&tool)]);
    assert_eq!(world.aws.rows("agent_tools").len(), 1);
}

#[tokio::test]
async fn vapi_down_attaches_nothing() {
    let world = World::start().await;
    let tool = world.tool(&ai_sms()).await;
    let short = Duration::from_millis(6_500);
    for (fault, status) in [
        (standins::Fault::status(500).times(40), 502),
        (standins::Fault::status(401).times(1), 502),
        (standins::Fault::status(429).times(40), 503),
        (standins::Fault::drop_before().times(40), 504),
        (standins::Fault::status(500).on("PATCH", "/assistant").times(4), 502),
        (standins::Fault::status(400).on("PATCH", "/assistant"), 502),
    ] {
        world.vapi.inject(fault.clone());
        let answer = world.send("attach", &attach_event(&world, &tool).within(short)).await;
        // A timeout counts as no answer.
        assert!([status, 504].contains(&answer.status), "{fault:?}: {}", answer.body);
        world.vapi.clear_faults();
        assert!(world.tool_ids().is_empty(), "{fault:?}");
        assert!(world.aws.rows("agent_tools").is_empty());
        assert!(!leased(&world));
    }
    world.attach(id(&tool)).await.expect(201);
}

#[tokio::test]
async fn a_patch_that_took_effect_and_answered_500_leaves_nothing() {
    let world = World::start().await;
    let tool = world.tool(&ai_sms()).await;
    let broken = standins::Fault::status(500).on("PATCH", "/assistant").with_effect(standins::Effect::First).times(4);
    world.vapi.inject(broken);
    world.attach(id(&tool)).await.expect(502);
    assert!(world.tool_ids().is_empty());
    assert!(world.aws.rows("agent_tools").is_empty());
}

#[tokio::test]
async fn a_missing_vapi_assistant_is_reported() {
    let world = World::start().await;
    let tool = world.tool(&ai_sms()).await;
    world.at_vapi("DELETE", &format!("/assistant/{}", world.home.assistant_id), &json!({})).await;
    let answer = world.attach(id(&tool)).await.expect(409);
    assert!(answer["detail"].as_str().unwrap().contains("assistant"), "{answer}");
    assert!(world.aws.rows("agent_tools").is_empty());
    assert!(!leased(&world));
}

#[tokio::test]
async fn a_tool_that_vapi_lost_is_said_so_and_saving_it_again_makes_it_anew() {
    let world = World::start().await;
    let (tool, there) = (world.tool(&ai_sms()).await, world.attached(&ai_sms()).await);
    world.at_vapi("DELETE", &format!("/tool/{}", external(&tool)), &json!({})).await;
    let answer = world.attach(id(&tool)).await.expect(409);
    assert!(answer["detail"].as_str().unwrap().contains("save it again"), "{answer}");
    assert_eq!((world.tool_ids(), world.aws.rows("agent_tools").len()), (vec![external(&there)], 1));
    assert!(world.aws.rows("intents").is_empty() && !leased(&world));

    world.update(&tool, &json!({"label": "Anew"})).await.expect(200);
    let again = world.aws.row("tools", id(&tool)).unwrap();
    assert_ne!(again["external_tool_id"], tool["external_tool_id"]);
    world.attach(id(&tool)).await.expect(201);
    assert_eq!(world.tool_ids(), [external(&there), external(&again)]);
}

#[tokio::test]
async fn an_assistant_that_pins_versions_gets_its_tools_pinned() {
    let world = World::start().await;
    let (pinned, tool) = (world.tool(&ai_sms()).await, world.tool(&ai_sms()).await);
    world.vapi.keep_versions();
    let refs = |tools: &[(&Value, &str)]| -> Value {
        tools.iter().map(|(tool, version)| json!({"toolId": tool["external_tool_id"], "version": version})).collect()
    };
    let mut model = world.model();
    model["toolRefs"] = refs(&[(&pinned, "v1")]);
    world.at_vapi("PATCH", &format!("/assistant/{}", world.home.assistant_id), &json!({"model": model})).await;

    // The assistant has one tool already, and gets the other in the list where it looks.
    world.attach(id(&pinned)).await.expect(201);
    world.attach(id(&tool)).await.expect(201);
    assert_eq!(world.model()["toolRefs"], refs(&[(&pinned, "v1"), (&tool, "v1")]));
    assert_eq!(world.model()["toolIds"], json!([]));
    world.attach(id(&tool)).await.expect(200);
    assert_eq!(world.model()["toolRefs"], refs(&[(&pinned, "v1"), (&tool, "v1")]));

    // An edit also reaches the agents with the tool.
    world.update(&tool, &json!({"description": "Sends a text message, and only that."})).await.expect(200);
    assert_eq!(world.model()["toolRefs"], refs(&[(&pinned, "v1"), (&tool, "v2")]));
    assert_eq!(vapi_differences::differences(&world), [""; 0]);

    world.detach(id(&pinned)).await.expect(200);
    assert_eq!(world.model()["toolRefs"], refs(&[(&tool, "v2")]));
    world.delete(&tool).await.expect(200);
    assert_eq!(world.model()["toolRefs"], json!([]));
}

#[tokio::test]
async fn a_lease_left_by_a_crash_frees_itself() {
    let world = World::start().await;
    let tool = world.tool(&ai_sms()).await;
    let lease = |until: i64| json!({"lease_token": "of-one-who-died", "lease_until": until});
    let now = Timestamp::now().as_millis();
    world.aws.change("agents", &world.home.agent_id, lease(now - 1));
    world.attach(id(&tool)).await.expect(201);
    assert!(!leased(&world));

    let other = world.tool(&ai_sms()).await;
    let until = Timestamp::now().as_millis() + 400;
    world.aws.change("agents", &world.home.agent_id, lease(until));
    world.attach(id(&other)).await.expect(201);
    assert!(Timestamp::now().as_millis() >= until, "it was waited for");
}

#[tokio::test]
async fn a_held_lease_is_respected_and_reported() {
    let world = World::start().await;
    let tool = world.tool(&ai_sms()).await;
    let until = Timestamp::now().as_millis() + 60_000;
    world.aws.change("agents", &world.home.agent_id, json!({"lease_token": "of-another", "lease_until": until}));
    world.vapi.clear_requests();
    let answer = world.send("attach", &attach_event(&world, &tool).within(Duration::from_secs(6))).await;
    assert_eq!(answer.status, 409, "{}", answer.body);
    assert!(world.vapi.requests().is_empty());
    let agent = world.aws.row("agents", &world.home.agent_id).unwrap();
    assert_eq!(agent["lease_token"], "of-another", "somebody else's lease is left alone");
}

#[tokio::test]
async fn an_owner_whose_lease_was_taken_over_writes_nothing() {
    let world = World::start().await;
    let tool = world.tool(&ai_sms()).await;
    // While VAPI is slow, the lease expires and another request acquires it.
    world.vapi.inject(standins::Fault::held().on("PATCH", "/assistant"));
    let slow = world.attach(id(&tool));
    let thief = async {
        until(|| world.vapi.requests().iter().any(|request| request.method == "PATCH")).await;
        let lease = json!({"lease_token": "of-another", "lease_until": Timestamp::now().as_millis() + 60_000});
        world.aws.change("agents", &world.home.agent_id, lease);
        world.vapi.release();
    };
    let (answer, ()) = futures_util::join!(slow, thief);
    assert_eq!(answer.status, 409, "{}", answer.body);
    assert!(world.aws.rows("agent_tools").is_empty());
    assert_eq!(world.aws.row("agents", &world.home.agent_id).unwrap()["lease_token"], "of-another");
}
