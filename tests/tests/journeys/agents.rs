//! /api/{slug}/agents: an assistant is registered once, and its removal leaves nothing behind.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

use futures_util::future::join_all;
use serde_json::{Value, json};
use tests::{Answer, Event, Fault, Tenant, Trouble, World, ai_sms, clients::until, logs::Logs, standins};
use uuid::Uuid;

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

async fn ask(world: &World, tenant: &Tenant, method: &str, path: &str, body: Option<&Value>) -> Answer {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let mut event = Event::new(method, &format!("/api/{}/agents{path}", tenant.slug)).user(&tenant.user_id);
    for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
        event = event.query(name, value);
    }
    if let Some(body) = body {
        event = event.text(body.to_string());
    }
    world.send("agents", &event).await
}

async fn register(world: &World, body: &Value) -> Answer {
    ask(world, &world.home, "POST", "", Some(body)).await
}

async fn remove(world: &World, id: &str) -> Answer {
    ask(world, &world.home, "DELETE", &format!("/{id}"), None).await
}

/// A new assistant at VAPI.
async fn assistant(world: &World, name: Option<&str>) -> String {
    let mut body = json!({"model": {"provider": "openai", "model": "gpt-4o-mini"}});
    if let Some(name) = name {
        body["name"] = json!(name);
    }
    let assistant = text(&world.at_vapi("POST", "/assistant", &body).await["id"]).to_owned();
    world.prove(&world.home, &assistant).await;
    assistant
}

/// A registered agent without a phone number.
async fn agent(world: &World) -> Value {
    let assistant = assistant(world, Some("Night shift")).await;
    register(world, &json!({"external_assistant_id": assistant})).await.expect(201)
}

/// An agent with this many tools attached.
async fn agent_with_tools(world: &World, count: usize) -> (Value, Vec<Value>) {
    let agent = agent(world).await;
    let mut tools = Vec::new();
    for _ in 0..count {
        let tool = world.tool(&ai_sms()).await;
        world.attach_as(&world.home, text(&agent["id"]), text(&tool["id"])).await.expect(201);
        tools.push(tool);
    }
    (agent, tools)
}

fn tool_ids(world: &World, agent: &Value) -> Vec<String> {
    let assistant = world.vapi.assistant(text(&agent["external_assistant_id"])).unwrap();
    let ids = assistant["model"]["toolIds"].as_array().cloned().unwrap_or_default();
    ids.iter().map(|id| text(id).to_owned()).collect()
}

fn attachments(world: &World, agent: &Value) -> usize {
    world.aws.rows("agent_tools").iter().filter(|row| row["agent_id"] == agent["id"]).count()
}

/// Items of `agents`, the guards among them.
fn items(world: &World) -> usize {
    world.aws.rows("agents").len()
}

#[tokio::test]
async fn an_assistant_becomes_an_agent_and_can_be_given_a_tool() {
    let world = World::start().await;
    let assistant = assistant(&world, Some("Night shift")).await;
    let row = register(&world, &json!({"external_assistant_id": assistant.to_uppercase()})).await.expect(201);
    let mut columns: Vec<&str> = row.as_object().unwrap().keys().map(String::as_str).collect();
    columns.sort_unstable();
    let known =
        ["created_at", "external_assistant_id", "id", "name", "organization_id", "updated_at", "voice_token_at"];
    assert_eq!(columns, known);
    assert_eq!((&row["name"], &row["external_assistant_id"]), (&json!("Night shift"), &json!(assistant)));
    assert_eq!(row["organization_id"], world.home.organization_id);
    let mut stored = world.aws.row("agents", text(&row["id"])).unwrap();
    stored["voice_token_at"] = Value::Null;
    assert_eq!(stored, row);
    assert_eq!(ask(&world, &world.home, "GET", &format!("/{}", text(&row["id"])), None).await.expect(200), row);

    let tool = world.tool(&ai_sms()).await;
    world.attach_as(&world.home, text(&row["id"]), text(&tool["id"])).await.expect(201);
    assert_eq!(tool_ids(&world, &row), [text(&tool["external_tool_id"])]);
}

#[tokio::test]
async fn the_name_is_the_assistants_unless_another_is_given() {
    let world = World::start().await;
    let named = assistant(&world, Some("Night shift")).await;
    let row = register(&world, &json!({"external_assistant_id": named, "name": " Reception "})).await.expect(201);
    assert_eq!(row["name"], "Reception");
    let nameless = assistant(&world, None).await;
    let body = json!({"external_assistant_id": nameless});
    assert_eq!(register(&world, &body).await.wrong_fields(), ["name"]);
    register(&world, &json!({"external_assistant_id": nameless, "name": "Reception"})).await.expect(201);
}

#[tokio::test]
async fn an_assistant_that_vapi_does_not_have_is_not_registered() {
    let world = World::start().await;
    let before = items(&world);
    let unknown = json!({"external_assistant_id": Uuid::new_v4()});
    assert_eq!(register(&world, &unknown).await.wrong_fields(), ["external_assistant_id"]);
    assert_eq!(
        register(&world, &json!({"external_assistant_id": "front-desk"})).await.wrong_fields(),
        ["external_assistant_id"]
    );

    let body = json!({"external_assistant_id": assistant(&world, Some("Night shift")).await});
    for (fault, status) in [
        (standins::Fault::status(500), 502),
        (standins::Fault::status(401), 502),
        (standins::Fault::body(json!("<html>")), 502),
        (standins::Fault::status(429).with_header("Retry-After", "600"), 503),
    ] {
        world.vapi.inject(fault.times(20));
        assert_eq!(register(&world, &body).await.status, status);
        world.vapi.clear_faults();
    }
    assert_eq!(items(&world), before, "nothing is stored");
    register(&world, &body).await.expect(201);
}

#[tokio::test]
async fn an_assistant_is_registered_once_and_the_refusal_says_nothing_of_whose_it_is() {
    let world = World::start().await;
    let (ours, theirs) = (&world.home, &world.other);
    let again = register(&world, &json!({"external_assistant_id": ours.assistant_id})).await;
    // The user can write to both organizations' assistants.
    world.prove(ours, &theirs.assistant_id).await;
    let foreign = register(&world, &json!({"external_assistant_id": theirs.assistant_id, "name": "Mine"})).await;
    assert_eq!((again.status, foreign.status), (409, 409));
    assert_eq!(again.body["detail"], foreign.body["detail"]);
    assert!(again.body["detail"].as_str().unwrap().contains("which must first remove its agent"), "{}", again.body);
    for hidden in [&theirs.organization_id, &theirs.slug, &theirs.agent_id] {
        assert!(!foreign.body.to_string().contains(hidden.as_str()), "{}", foreign.body);
    }

    let body = json!({"external_assistant_id": assistant(&world, Some("Night shift")).await});
    let before = items(&world);
    let answers = join_all((0..10).map(|_| register(&world, &body))).await;
    let mut statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses[0], 201);
    // Conflicting transactions fail, too.
    assert!(statuses[1..].iter().all(|status| [409, 503].contains(status)), "{statuses:?}");
    assert_eq!(items(&world), before + 2, "a row and its guard");
}

#[tokio::test]
async fn an_assistant_of_the_shared_account_is_registered_by_whoever_can_write_to_it() {
    let mut world = World::start().await;
    let path = |assistant: &str| format!("/assistant/{assistant}");
    let made = world.at_vapi("POST", "/assistant", &json!({"name": "Night shift"})).await;
    let assistant = text(&made["id"]).to_owned();
    let body = json!({"external_assistant_id": assistant});
    let before = items(&world);
    let told = async |world: &World, tenant: &Tenant| {
        let refused = ask(world, tenant, "POST", "", Some(&body)).await;
        assert_eq!(refused.wrong_fields(), ["external_assistant_id"]);
        let problem = text(&refused.body["errors"][0]["problem"]).to_owned();
        assert!(!problem.contains("Night shift"), "{problem}");
        let (_, rest) = problem.split_once("set metadata.switchboard of the assistant at VAPI to \"").unwrap();
        rest.split_once('"').unwrap().0.to_owned()
    };
    let (ours, theirs) = (told(&world, &world.home).await, told(&world, &world.other).await);
    assert_ne!(ours, theirs);
    // The proof of another organization, or of another assistant, is no proof.
    let (other, wrong) = (world.home.assistant_id.clone(), [json!(theirs), json!(""), json!(7), json!({"a": ours})]);
    for value in wrong {
        world.at_vapi("PATCH", &path(&assistant), &json!({"metadata": {"switchboard": value}})).await;
        assert_eq!(told(&world, &world.home).await, ours);
    }
    let elsewhere = world.vapi.assistant(&other).unwrap()["metadata"].clone();
    world.at_vapi("PATCH", &path(&assistant), &json!({"metadata": elsewhere})).await;
    told(&world, &world.home).await;
    assert_eq!(items(&world), before);

    // The proof holds under a new key and beside other metadata.
    let metadata = json!({"metadata": {"crm": 7, "switchboard": ours}});
    world.at_vapi("PATCH", &path(&assistant), &metadata).await;
    world.aws.put_secret("switchboard/tool-token", &json!({"current": "another-key"}));
    world.restart();
    assert_eq!(ask(&world, &world.other, "POST", "", Some(&body)).await.status, 422);
    register(&world, &body).await.expect(201);
}

#[tokio::test]
async fn an_organization_sees_its_own_agents_only_in_pages() {
    let world = World::start().await;
    let mut made = Vec::new();
    for _ in 0..3 {
        made.push(agent(&world).await["id"].clone());
    }
    made.reverse();
    made.push(json!(world.home.agent_id));
    let mut seen: Vec<Value> = Vec::new();
    let mut path = "?limit=3".to_owned();
    loop {
        let page = ask(&world, &world.home, "GET", &path, None).await.expect(200);
        seen.extend(page["items"].as_array().unwrap().iter().map(|row| row["id"].clone()));
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        path = format!("?limit=3&cursor={cursor}");
    }
    assert_eq!(seen, made, "newest first, and no guards among them");
    let theirs = ask(&world, &world.other, "GET", "", None).await.expect(200);
    assert_eq!(theirs["items"].as_array().unwrap().len(), 1);
    assert_eq!(ask(&world, &world.home, "GET", "?limit=0", None).await.wrong_fields(), ["limit"]);

    for (method, id) in [("GET", &world.other.agent_id), ("DELETE", &world.other.agent_id)] {
        assert_eq!(ask(&world, &world.home, method, &format!("/{id}"), None).await.status, 404);
        assert_eq!(ask(&world, &world.home, method, "/no-id", None).await.status, 404);
    }
    assert!(world.aws.row("agents", &world.other.agent_id).is_some());
}

#[tokio::test]
async fn removing_an_agent_takes_our_tools_out_of_the_assistant_and_leaves_others() {
    let world = World::start().await;
    let before = items(&world);
    let (agent, tools) = agent_with_tools(&world, 2).await;
    let path = format!("/assistant/{}", text(&agent["external_assistant_id"]));
    let foreign = world.at_vapi("POST", "/tool", &json!({"type": "sms"})).await;
    let mut model = world.at_vapi("GET", &path, &Value::Null).await["model"].clone();
    model["toolIds"].as_array_mut().unwrap().insert(1, foreign["id"].clone());
    world.at_vapi("PATCH", &path, &json!({"model": model})).await;
    world.vapi.clear_requests();

    let answer = remove(&world, text(&agent["id"])).await;
    assert_eq!(answer.expect(200), json!({"status": "deleted"}));
    assert_eq!(tool_ids(&world, &agent), [text(&foreign["id"])]);
    let methods: Vec<String> = world.vapi.requests().into_iter().map(|request| request.method).collect();
    assert_eq!(methods, ["GET", "PATCH"]);
    assert_eq!((attachments(&world, &agent), items(&world)), (0, before));
    assert_eq!(world.tools().len(), tools.len(), "the tools stay");

    assert_eq!(remove(&world, text(&agent["id"])).await.status, 404, "removing twice");
    let again = json!({"external_assistant_id": agent["external_assistant_id"]});
    register(&world, &again).await.expect(201);
}

#[tokio::test]
async fn an_agent_without_tools_at_vapi_is_removed_without_asking_vapi() {
    let world = World::start().await;
    let agent = agent(&world).await;
    let mut tool = ai_sms();
    tool["text"] = json!("Welcome");
    tool["attach_to_agent"] = json!(false);
    tool["execute_on_call_start"] = json!(true);
    let tool = world.tool(&tool).await;
    world.attach_as(&world.home, text(&agent["id"]), text(&tool["id"])).await.expect(201);
    world.vapi.clear_requests();
    assert_eq!(remove(&world, text(&agent["id"])).await.status, 200);
    assert_eq!(attachments(&world, &agent), 0);
    assert!(world.vapi.requests().is_empty());
}

#[tokio::test]
async fn an_assistant_that_is_gone_at_vapi_does_not_keep_its_agent() {
    let world = World::start().await;
    let (agent, _) = agent_with_tools(&world, 1).await;
    world.at_vapi("DELETE", &format!("/assistant/{}", text(&agent["external_assistant_id"])), &Value::Null).await;
    assert_eq!(remove(&world, text(&agent["id"])).await.status, 200);
    assert_eq!(attachments(&world, &agent), 0);
    assert!(world.aws.row("agents", text(&agent["id"])).is_none());
}

#[tokio::test]
async fn an_agent_that_numbers_ring_is_not_removed_and_the_numbers_are_named() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    let refused = remove(&world, &world.home.agent_id).await;
    assert_eq!(refused.status, 409);
    assert!(text(&refused.body["detail"]).contains(&world.home.phone_number), "{}", refused.body);
    assert_eq!(world.tool_ids(), [text(&tool["external_tool_id"])], "VAPI is as it was");
    let row = world.aws.row("agents", &world.home.agent_id).unwrap();
    assert!(row.get("lease_token").is_none(), "the lease is given back");

    world.aws.delete("phone_numbers", &world.home.phone_number_id);
    assert_eq!(remove(&world, &world.home.agent_id).await.status, 200);
}

#[tokio::test]
async fn no_number_comes_to_ring_an_agent_whose_tools_are_being_taken_away() {
    let world = World::start().await;
    let (agent, _) = agent_with_tools(&world, 1).await;
    let id = text(&agent["id"]);
    let path = format!("/api/{}/phone-numbers/{}", world.home.slug, world.home.phone_number_id);
    let ring = || {
        let event = Event::new("PATCH", &path).user(&world.home.user_id);
        event.text(json!({"agent_id": agent["id"]}).to_string())
    };
    // A removal that fails gives the agent back.
    world.vapi.inject(standins::Fault::status(400).on("PATCH", "/assistant").times(20));
    assert_eq!(remove(&world, id).await.status, 502);
    world.vapi.clear_faults();
    assert!(world.aws.row("agents", id).unwrap().get("removing_until").is_none());

    world.vapi.clear_requests();
    world.vapi.inject(standins::Fault::held().on("PATCH", "/assistant"));
    let while_it_is_changed = async {
        until(|| world.vapi.requests().iter().any(|request| request.method == "PATCH")).await;
        let refused = world.send("phone-numbers", &ring()).await;
        world.vapi.release();
        refused
    };
    let (removed, refused) = futures_util::join!(remove(&world, id), while_it_is_changed);
    assert_eq!((removed.status, refused.status), (200, 409), "{} {}", removed.body, refused.body);
    assert!(text(&refused.body["detail"]).contains("being removed"), "{}", refused.body);
    assert_eq!(tool_ids(&world, &agent), Vec::<String>::new());
    assert_eq!(world.send("phone-numbers", &ring()).await.status, 422);
}

#[tokio::test]
async fn a_number_that_comes_to_ring_an_agent_before_its_tools_are_touched_keeps_it() {
    let world = World::start().await;
    let (agent, tools) = agent_with_tools(&world, 1).await;
    let id = text(&agent["id"]);
    let path = format!("/api/{}/phone-numbers/{}", world.home.slug, world.home.phone_number_id);
    let ring = Event::new("PATCH", &path).user(&world.home.user_id).text(json!({"agent_id": id}).to_string());
    world.send("phone-numbers", &ring).await.expect(200);
    // The index by which the removal finds numbers does not show it yet.
    world.aws.inject(Fault::new("Query", "phone_numbers", Trouble::Lagging));
    let refused = remove(&world, id).await;
    assert_eq!((refused.status, world.aws.faults_left()), (409, 0), "{}", refused.body);
    assert!(text(&refused.body["detail"]).contains(&world.home.phone_number), "{}", refused.body);
    assert_eq!(tool_ids(&world, &agent), [text(&tools[0]["external_tool_id"])], "VAPI is as it was");
    assert_eq!(attachments(&world, &agent), 1);
}

#[tokio::test]
async fn more_attachments_than_one_transaction_takes_are_all_removed() {
    let world = World::start().await;
    let (agent, tools) = agent_with_tools(&world, 1).await;
    let mut row = world.aws.rows("agent_tools")[0].clone();
    for _ in 0..249 {
        row["tool_id"] = json!(Uuid::now_v7());
        world.aws.put("agent_tools", &row);
    }
    world.aws.clear_operations();
    assert_eq!(remove(&world, text(&agent["id"])).await.status, 200);
    let transactions: Vec<usize> = (world.aws.dynamodb().iter())
        .filter(|operation| operation.action == "TransactWriteItems")
        .map(|operation| operation.body["TransactItems"].as_array().unwrap().len())
        .collect();
    assert_eq!(transactions, [100, 100, 53, 3]);
    assert_eq!(attachments(&world, &agent), 0);
    assert_eq!(tool_ids(&world, &agent), Vec::<String>::new());
    assert_eq!(tools.len(), 1);
}

#[tokio::test]
async fn an_error_of_vapis_stops_the_removal_and_nothing_is_lost() {
    let world = World::start().await;
    let (agent, tools) = agent_with_tools(&world, 2).await;
    let id = text(&agent["id"]);
    let expected: Vec<&str> = tools.iter().map(|tool| text(&tool["external_tool_id"])).collect();
    for (fault, status) in [
        (standins::Fault::status(500).on("GET", "/assistant"), 502),
        (standins::Fault::status(400).on("PATCH", "/assistant"), 502),
        (standins::Fault::status(401).on("PATCH", "/assistant"), 502),
        (standins::Fault::status(429).on("PATCH", "/assistant").with_header("Retry-After", "600"), 503),
    ] {
        world.vapi.inject(fault.times(20));
        assert_eq!(remove(&world, id).await.status, status);
        world.vapi.clear_faults();
        assert_eq!(tool_ids(&world, &agent), expected);
        assert_eq!(attachments(&world, &agent), 2);
        let row = world.aws.row("agents", id).unwrap();
        assert!(row.get("lease_token").is_none(), "the lease is given back");
    }
    // Four times VAPI applies the change without confirming it; then VAPI is read, and the tools are put back.
    let fault = standins::Fault::status(500).on("PATCH", "/assistant").with_effect(standins::Effect::First);
    world.vapi.inject(fault.times(4));
    assert_eq!(remove(&world, id).await.status, 502);
    assert_eq!(tool_ids(&world, &agent), expected);

    assert_eq!(remove(&world, id).await.status, 200, "asked again, it goes through");
    assert_eq!(tool_ids(&world, &agent), Vec::<String>::new());
}

#[tokio::test]
async fn when_the_rows_cannot_be_removed_vapi_is_put_back() {
    let world = World::start().await;
    let (agent, tools) = agent_with_tools(&world, 2).await;
    let id = text(&agent["id"]);
    world.aws.inject(Fault::throttled("TransactWriteItems", "agent_tools"));
    assert_eq!(remove(&world, id).await.status, 503);
    let expected: Vec<&str> = tools.iter().map(|tool| text(&tool["external_tool_id"])).collect();
    assert_eq!(tool_ids(&world, &agent), expected);
    assert_eq!(attachments(&world, &agent), 2);

    // The last step: the attachments are gone on both sides, the agent is still there to be removed.
    world.aws.inject(Fault::throttled("TransactWriteItems", "agents").after(1));
    assert_eq!(remove(&world, id).await.status, 503);
    assert_eq!((tool_ids(&world, &agent).len(), attachments(&world, &agent)), (0, 0));
    assert!(world.aws.row("agents", id).is_some());
    assert_eq!(remove(&world, id).await.status, 200);
}

#[tokio::test]
async fn a_tool_attached_during_a_removal_is_consistent_on_both_sides() {
    let world = World::start().await;
    for _ in 0..5 {
        let (agent, _) = agent_with_tools(&world, 1).await;
        let tool = world.tool(&ai_sms()).await;
        let (removed, attached) = futures_util::join!(
            remove(&world, text(&agent["id"])),
            world.attach_as(&world.home, text(&agent["id"]), text(&tool["id"])),
        );
        assert_eq!(removed.status, 200, "{}", removed.body);
        assert!([201, 404].contains(&attached.status), "{}", attached.body);
        assert_eq!(tool_ids(&world, &agent), Vec::<String>::new());
        assert_eq!(attachments(&world, &agent), 0);
    }
}

#[tokio::test]
async fn an_answer_that_was_lost_is_found_again() {
    let world = World::start().await;
    let body = json!({"external_assistant_id": assistant(&world, Some("Night shift")).await});
    world.aws.inject(Fault::new("TransactWriteItems", "agents", Trouble::DropAfter));
    let row = register(&world, &body).await.expect(201);
    assert!(world.aws.row("agents", text(&row["id"])).is_some());
}

#[tokio::test]
async fn the_log_names_no_number_and_no_key() {
    let logs = Logs::capture();
    let world = World::start().await;
    remove(&world, &world.home.agent_id).await;
    world.vapi.inject(standins::Fault::status(500).times(20));
    register(&world, &json!({"external_assistant_id": Uuid::new_v4()})).await;
    let text = format!("{:?}", logs.ours());
    assert!(text.contains("request failed") && text.contains("request refused"), "{text}");
    for hidden in [world.home.phone_number.trim_start_matches('+'), "vapi-private-key"] {
        assert!(!text.contains(hidden), "{text}");
    }
}
