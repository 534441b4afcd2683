//! Attaching knowledge bases: the query tool comes with the first agent and goes with the last.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

use futures_util::{future::join_all, join};
use serde_json::{Value, json};
use tests::{Answer, Event, Fault, Tenant, Trouble, World, ai_sms, standins, vapi_differences};
use uuid::Uuid;

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

async fn base(world: &World) -> String {
    let fields = json!([{"name": "city", "type": "text"}, {"name": "price", "type": "number"}]);
    let entries = json!([{"city": "Porto", "price": 5, "text": "House by the river"}]);
    text(&world.knowledge_base(&fields, &entries).await["id"]).to_owned()
}

async fn attach(world: &World, agent: &str, base: &str) -> Answer {
    world.knowledge_of(agent, "attach", base).await
}

async fn detach(world: &World, agent: &str, base: &str) -> Answer {
    world.knowledge_of(agent, "detach", base).await
}

fn by_hand(base: &str) -> Value {
    json!({"type": "query", "label": "Find a home", "description": "Finds homes.", "knowledge_base_id": base})
}

async fn shown(world: &World, base: &str) -> Value {
    world.knowledge("GET", &format!("/{base}"), &Value::Null).await.expect(200)
}

async fn remove_agent(world: &World, agent: &str) -> Answer {
    let event = Event::new("DELETE", &format!("/api/{}/agents/{agent}", world.home.slug)).user(&world.home.user_id);
    world.send("agents", &event).await
}

/// Requests to VAPI with this method and path prefix.
fn asked_of_vapi(world: &World, method: &str, path: &str) -> usize {
    let requests = world.vapi.requests();
    requests.iter().filter(|request| request.method == method && request.path.starts_with(path)).count()
}

fn agree(world: &World) {
    assert_eq!(vapi_differences::differences(world), [""; 0]);
}

#[tokio::test]
async fn attaching_a_base_gives_the_agent_a_tool_that_finds_things() {
    let world = World::start().await;
    let (base, agent) = (base(&world).await, &world.home.agent_id);
    let answer = attach(&world, agent, &base).await.expect(201);
    let (tool, row) = (&answer["tool"], &answer["attachment"]);
    assert_eq!((&tool["type"], &tool["automatic_for"]), (&json!("query"), &json!(base)));
    assert_eq!((&tool["label"], &tool["name"]), (&json!("Search Homes for sale"), &json!("search_homes_for_sale")));
    assert!(text(&tool["function_schema"]["description"]).contains("Homes for sale"), "{tool}");
    assert!(tool["function_schema"]["parameters"]["properties"]["price_at_most"].is_object(), "{tool}");
    assert_eq!((&row["agent_id"], &row["tool_id"]), (&json!(agent), &tool["id"]));
    assert_eq!(world.tool_ids(), [text(&tool["external_tool_id"])]);
    agree(&world);

    let found = world.call_tool(&world.call(tool, json!({"query": "river", "price_at_most": 9}))).await;
    assert_eq!(found.result()["matched"], 1);

    let again = attach(&world, agent, &base).await.expect(200);
    assert_eq!((&again["attachment"]["id"], &again["tool"]["id"]), (&row["id"], &tool["id"]));
    assert_eq!(world.tools().len(), 1);
    assert_eq!(shown(&world, &base).await["agent_ids"], json!([agent]));
    agree(&world);
}

#[tokio::test]
async fn the_tool_is_shared_and_goes_with_the_last_agent() {
    let world = World::start().await;
    let (base, one) = (base(&world).await, world.home.agent_id.clone());
    let others = world.agents(2).await;
    let tool = attach(&world, &one, &base).await.expect(201)["tool"].clone();
    for agent in &others {
        assert_eq!(attach(&world, agent, &base).await.expect(201)["tool"]["id"], tool["id"]);
    }
    assert_eq!(shown(&world, &base).await["agent_ids"].as_array().unwrap().len(), 3);
    for agent in [&one, &others[0]] {
        let answer = detach(&world, agent, &base).await.expect(200);
        assert_eq!((&answer["query_tool"], &answer["tool_id"]), (&json!("kept"), &tool["id"]));
        agree(&world);
    }
    assert_eq!(world.tool_ids(), [""; 0]);
    let kept = world.aws.row("knowledge_bases", &base).unwrap();
    assert_eq!(kept["agent_ids"], json!([others[1]]), "those that no longer have it are forgotten");
    let answer = detach(&world, &others[1], &base).await.expect(200);
    assert_eq!(answer["query_tool"], "deleted");
    assert!(world.tools().is_empty() && world.vapi.tools().is_empty());
    assert_eq!(shown(&world, &base).await["agent_ids"], json!([]));
    agree(&world);

    let new = attach(&world, &one, &base).await.expect(201)["tool"].clone();
    assert_eq!(new["name"], tool["name"], "the name is free again");
    assert_ne!(new["id"], tool["id"]);
    agree(&world);
}

#[tokio::test]
async fn many_agents_at_the_same_moment_get_one_tool() {
    let world = World::start().await;
    let base = base(&world).await;
    let agents = world.agents(8).await;
    world.vapi.clear_requests();
    let answers = join_all(agents.iter().map(|agent| attach(&world, agent, &base))).await;
    let tools: Vec<Value> = answers.into_iter().map(|answer| answer.expect(201)["tool"]["id"].clone()).collect();
    assert!(tools.iter().all(|tool| *tool == tools[0]), "{tools:?}");
    assert_eq!(asked_of_vapi(&world, "POST", "/tool"), 1);
    agree(&world);

    let answers = join_all(agents.iter().map(|agent| detach(&world, agent, &base))).await;
    let mut fates: Vec<Value> = answers.into_iter().map(|answer| answer.expect(200)["query_tool"].clone()).collect();
    fates.sort_by_key(ToString::to_string);
    assert_eq!((&fates[0], &fates[1], &fates[7]), (&json!("deleted"), &json!("kept"), &json!("kept")));
    assert!(world.tools().is_empty() && world.vapi.tools().is_empty());
    agree(&world);
}

#[tokio::test]
async fn one_agent_asked_twice_at_once_has_it_once() {
    let world = World::start().await;
    let (base, agent) = (base(&world).await, &world.home.agent_id);
    let (one, other) = join!(attach(&world, agent, &base), attach(&world, agent, &base));
    let mut statuses = [one.status, other.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 201]);
    assert_eq!(one.body["attachment"]["id"], other.body["attachment"]["id"]);
    agree(&world);
}

#[tokio::test]
async fn a_base_detached_here_and_attached_there_at_once_is_there() {
    let world = World::start().await;
    let (base, here) = (base(&world).await, &world.home.agent_id);
    let there = &world.agents(1).await[0];
    for _ in 0..10 {
        attach(&world, here, &base).await.expect(201);
        let (detached, attached) = join!(detach(&world, here, &base), attach(&world, there, &base));
        detached.expect(200);
        let tool = attached.expect(201)["tool"].clone();
        assert_eq!(world.tools()[0]["id"], tool["id"]);
        agree(&world);
        detach(&world, there, &base).await.expect(200);
    }
}

/// Through the tool's own route, without the base's lease.
#[tokio::test]
async fn a_tool_that_is_attached_by_itself_while_its_base_is_detached_is_whole_or_gone() {
    let world = World::start().await;
    let (base, here) = (base(&world).await, &world.home.agent_id);
    let there = &world.agents(1).await[0];
    for round in 0..12 {
        let tool = attach(&world, here, &base).await.expect(201)["tool"]["id"].clone();
        let by_itself = async {
            // Hits another moment of the detachment in each round.
            tokio::time::sleep(std::time::Duration::from_millis(round * 3)).await;
            world.attach_as(&world.home, there, text(&tool)).await
        };
        let (detached, attached) = join!(detach(&world, here, &base), by_itself);
        let fate = detached.expect(200)["query_tool"].clone();
        match attached.status {
            201 => {
                assert_eq!(fate, "kept");
                assert_eq!(shown(&world, &base).await["agent_ids"], json!([there]));
                detach(&world, there, &base).await.expect(200);
            }
            // Refused, or too late.
            404 | 409 | 503 => assert_eq!(fate, "deleted", "{}", attached.body),
            other => panic!("{other}: {}", attached.body),
        }
        assert!(world.tools().is_empty() && world.vapi.tools().is_empty());
        agree(&world);
    }
}

#[tokio::test]
async fn a_query_tool_that_somebody_made_is_left_alone() {
    let world = World::start().await;
    let (base, agent) = (base(&world).await, &world.home.agent_id);
    let own = world.attached(&by_hand(&base)).await;
    let unused = world.tool(&by_hand(&base)).await;
    detach(&world, agent, &base).await.expect(404);
    let made = attach(&world, agent, &base).await.expect(201)["tool"].clone();
    assert!(![&own["id"], &unused["id"]].contains(&&made["id"]));
    assert_eq!(detach(&world, agent, &base).await.expect(200)["query_tool"], "deleted");
    let mut left: Vec<Value> = world.tools().iter().map(|tool| tool["id"].clone()).collect();
    left.sort_by_key(ToString::to_string);
    assert_eq!(left, [own["id"].clone(), unused["id"].clone()]);
    assert_eq!(world.tool_ids(), [text(&own["external_tool_id"])]);
    agree(&world);
}

#[tokio::test]
async fn an_automatic_tool_that_was_edited_stays_one_unless_it_searches_another_base() {
    let world = World::start().await;
    let (one, other, agent) = (base(&world).await, base(&world).await, &world.home.agent_id);
    let tool = attach(&world, agent, &one).await.expect(201)["tool"].clone();
    let edited = world.update(&tool, &json!({"description": "Says what is for sale."})).await.expect(200);
    assert_eq!(edited["automatic_for"], json!(one));
    assert_eq!(attach(&world, agent, &one).await.expect(200)["tool"]["description"], "Says what is for sale.");

    let change = json!({"knowledge_base_id": other, "filters": null});
    let edited = world.update(&tool, &change).await.expect(200);
    assert_eq!(edited.get("automatic_for"), Some(&Value::Null), "{edited}");
    detach(&world, agent, &one).await.expect(404);
    let new = attach(&world, agent, &one).await.expect(201)["tool"].clone();
    assert_ne!(new["id"], tool["id"]);
    assert_eq!(detach(&world, agent, &one).await.expect(200)["query_tool"], "deleted");
    assert_eq!(world.tools()[0]["id"], tool["id"]);
    agree(&world);
}

#[tokio::test]
async fn an_automatic_tool_that_somebody_deleted_is_made_again() {
    let world = World::start().await;
    let (base, agent) = (base(&world).await, &world.home.agent_id);
    let other = &world.agents(1).await[0];
    let tool = attach(&world, other, &base).await.expect(201)["tool"].clone();
    world.delete(&tool).await.expect(200);
    detach(&world, other, &base).await.expect(404);
    assert_eq!(shown(&world, &base).await["agent_ids"], json!([]));
    let new = attach(&world, agent, &base).await.expect(201)["tool"].clone();
    assert_ne!(new["id"], tool["id"]);
    assert_eq!(world.aws.row("knowledge_bases", &base).unwrap()["agent_ids"], json!([agent]));
    agree(&world);
}

#[tokio::test]
async fn an_assistant_that_was_given_the_tool_at_vapi_keeps_it() {
    let world = World::start().await;
    let (base, agent) = (base(&world).await, world.agents(1).await.remove(0));
    let tool = attach(&world, &agent, &base).await.expect(201)["tool"].clone();
    let mut model = world.model();
    model["toolIds"] = json!([tool["external_tool_id"]]);
    world.at_vapi("PATCH", &format!("/assistant/{}", world.home.assistant_id), &json!({"model": model})).await;
    world.list(&format!("/agents/{}/tools", world.home.agent_id)).await.expect(200);
    assert_eq!(detach(&world, &agent, &base).await.expect(200)["query_tool"], "kept");
    assert_eq!(shown(&world, &base).await["agent_ids"], json!([world.home.agent_id]));
    agree(&world);
}

#[tokio::test]
async fn a_base_that_is_not_attached_cannot_be_detached() {
    let world = World::start().await;
    let (base, agent) = (base(&world).await, &world.home.agent_id);
    let other = &world.agents(1).await[0];
    let refused = detach(&world, agent, &base).await.expect(404);
    assert_eq!(refused["detail"], "attached knowledge base not found");
    attach(&world, other, &base).await.expect(201);
    let refused = detach(&world, agent, &base).await.expect(404);
    assert_eq!(refused["detail"], "attached knowledge base not found");
    agree(&world);
}

#[tokio::test]
async fn bases_and_agents_of_others_are_not_found_and_make_nothing() {
    let world = World::start().await;
    let ours = base(&world).await;
    let theirs = world.knowledge_as(&world.other, "POST", "", &json!({"name": "Theirs"})).await.expect(201);
    let (nobody, agent) = (Uuid::new_v4().to_string(), &world.home.agent_id);
    for what in ["attach", "detach"] {
        for base in [text(&theirs["id"]), &nobody] {
            let refused = world.knowledge_of(agent, what, base).await.expect(404);
            assert_eq!(refused["detail"], "knowledge base not found", "{what}");
        }
        for agent in [&world.other.agent_id, &nobody] {
            world.knowledge_of(agent, what, &ours).await.expect(404);
        }
        world.knowledge_of("no-id", what, &ours).await.expect(404);
        assert_eq!(world.knowledge_of(agent, what, "no-id").await.wrong_fields(), ["knowledge_base_id"]);
        let both = json!({"knowledge_base_id": ours, "tool_id": nobody});
        let path = format!("/api/{}/agents/{agent}/knowledge-bases/{what}", world.home.slug);
        let event = Event::post(&path, &both).user(&world.home.user_id);
        assert_eq!(world.send("knowledge", &event).await.wrong_fields(), ["tool_id"]);
    }
    assert!(world.tools().is_empty() && world.vapi.tools().is_empty());
    // The other organization's user with our ids, in the URL of their own.
    attach(&world, agent, &ours).await.expect(201);
    let Tenant { slug, user_id, agent_id, .. } = &world.other;
    let path = format!("/api/{slug}/agents/{agent_id}/knowledge-bases/detach");
    let event = Event::post(&path, &json!({"knowledge_base_id": ours})).user(user_id);
    world.send("knowledge", &event).await.expect(404);
    agree(&world);
}

#[tokio::test]
async fn when_the_agent_cannot_be_given_it_no_tool_is_left() {
    let world = World::start().await;
    let (base, agent) = (base(&world).await, &world.home.agent_id);
    for (fault, status) in [
        (standins::Fault::status(500).on("PATCH", "/assistant").times(9), 502),
        (standins::Fault::status(404).on("GET", "/assistant"), 409),
        (standins::Fault::status(400).on("POST", "/tool"), 502),
    ] {
        world.vapi.inject(fault);
        attach(&world, agent, &base).await.expect(status);
        world.vapi.clear_faults();
        assert!(world.tools().is_empty() && world.vapi.tools().is_empty());
        agree(&world);
    }
    // The base can be attached again at once: its lease was released.
    attach(&world, agent, &base).await.expect(201);
    // An attached tool stays even if the next agent's attachment fails.
    let other = &world.agents(1).await[0];
    world.vapi.inject(standins::Fault::status(500).on("PATCH", "/assistant").times(9));
    attach(&world, other, &base).await.expect(502);
    world.vapi.clear_faults();
    assert_eq!(world.tools().len(), 1);
    agree(&world);
}

#[tokio::test]
async fn a_tool_that_vapi_does_not_delete_yet_is_no_longer_the_bases() {
    let world = World::start().await;
    let (base, agent) = (base(&world).await, &world.home.agent_id);
    let tool = attach(&world, agent, &base).await.expect(201)["tool"].clone();
    world.vapi.inject(standins::Fault::status(500).on("DELETE", "/tool").times(20));
    let answer = detach(&world, agent, &base).await.expect(200);
    assert_eq!((&answer["detached"], &answer["query_tool"]), (&json!(true), &json!("pending")));
    assert_eq!(world.tool_ids(), [""; 0]);
    // Attached again in the meantime, it is a new tool, which the deletion of the first does not touch.
    let new = attach(&world, agent, &base).await.expect(201)["tool"].clone();
    assert_ne!(new["id"], tool["id"]);
    world.vapi.clear_faults();
    world.later();
    assert_eq!(world.settle().await["settled"][0]["change"], "delete_tool");
    assert_eq!(world.tools().len(), 1);
    assert_eq!(world.tool_ids(), [text(&new["external_tool_id"])]);
    agree(&world);
}

#[tokio::test]
async fn an_outage_between_detaching_and_deleting_is_settled() {
    let world = World::start().await;
    let (base, agent) = (base(&world).await, &world.home.agent_id);
    attach(&world, agent, &base).await.expect(201);
    // As long as one try lasts: the next is made at once.
    world.aws.inject(Fault::new("UpdateItem", "tools", Trouble::Error("ThrottlingException")).times(3));
    assert_eq!(detach(&world, agent, &base).await.expect(200)["query_tool"], "pending");
    assert!(world.tools().is_empty());
    agree(&world);

    attach(&world, agent, &base).await.expect(201);
    // Also the lease of each try is withdrawn in vain.
    world.aws.inject(Fault::new("UpdateItem", "tools", Trouble::Error("ThrottlingException")).times(99));
    assert_eq!(detach(&world, agent, &base).await.expect(200)["query_tool"], "pending");
    world.aws.clear_faults();
    assert_eq!(world.tools().len(), 1);
    world.later();
    assert_eq!(world.settle().await["settled"][0]["change"], "query_tool");
    assert!(world.tools().is_empty());
    agree(&world);
}

#[tokio::test]
async fn a_removed_agent_takes_the_tool_along_if_it_was_the_last() {
    let world = World::start().await;
    let base = base(&world).await;
    let agents = world.agents(2).await;
    for agent in &agents {
        attach(&world, agent, &base).await.expect(201);
    }
    remove_agent(&world, &agents[0]).await.expect(200);
    world.later();
    let report = world.settle().await;
    assert_eq!(report["settled"][0]["outcome"], "agents have the query tool", "{report}");
    assert_eq!(shown(&world, &base).await["agent_ids"], json!([agents[1]]));
    agree(&world);

    remove_agent(&world, &agents[1]).await.expect(200);
    world.later();
    let report = world.settle().await;
    assert_eq!(report["settled"][0]["outcome"], "no query tool is left without an agent", "{report}");
    assert!(world.tools().is_empty() && world.vapi.tools().is_empty());
    agree(&world);

    // One without a base records nothing.
    let agent = world.agents(1).await.remove(0);
    let tool = world.tool(&ai_sms()).await;
    world.attach_as(&world.home, &agent, text(&tool["id"])).await.expect(201);
    remove_agent(&world, &agent).await.expect(200);
    assert!(world.aws.rows("intents").is_empty());
}

#[tokio::test]
async fn an_attached_base_is_not_deleted_and_names_the_next_step() {
    let world = World::start().await;
    let (base, agent) = (base(&world).await, &world.home.agent_id);
    let tool = attach(&world, agent, &base).await.expect(201)["tool"].clone();
    let path = format!("/{base}");
    let refused = world.knowledge("DELETE", &path, &Value::Null).await.expect(409);
    assert_eq!(refused["detail"], "the knowledge base is attached to Front desk; detach it first");
    agree(&world);

    // Detached by the tool's own route, the tool has no agent and goes with its base.
    world.detach(text(&tool["id"])).await.expect(200);
    let own = world.tool(&by_hand(&base)).await;
    let refused = world.knowledge("DELETE", &path, &Value::Null).await.expect(409);
    assert!(text(&refused["detail"]).contains("Find a home; delete them first"), "{refused}");
    assert_eq!(world.tools().len(), 2, "nothing is deleted when the base is not");
    world.delete(&own).await.expect(200);
    world.knowledge("DELETE", &path, &Value::Null).await.expect(200);
    assert!(world.tools().is_empty() && world.aws.rows("knowledge_bases").is_empty());
    agree(&world);
}

#[tokio::test]
async fn a_base_attached_while_it_is_deleted_is_attached_or_gone() {
    let world = World::start().await;
    for _ in 0..6 {
        let (base, agent) = (base(&world).await, &world.home.agent_id);
        let path = format!("/{base}");
        let (attached, deleted) = join!(attach(&world, agent, &base), world.knowledge("DELETE", &path, &Value::Null));
        match (attached.status, deleted.status) {
            (201, 409) => {
                detach(&world, agent, &base).await.expect(200);
            }
            (404 | 409, 200) => assert!(world.aws.row("knowledge_bases", &base).is_none()),
            other => panic!("{other:?}: {} {}", attached.body, deleted.body),
        }
        assert!(world.tools().is_empty());
        agree(&world);
    }
}

#[tokio::test]
async fn a_lease_left_by_a_crash_frees_itself() {
    let world = World::start().await;
    let (base, agent) = (base(&world).await, &world.home.agent_id);
    world.aws.change("knowledge_bases", &base, json!({"lease_token": "crashed", "lease_until": 9_999_999_999_999_u64}));
    let path = format!("/api/{}/agents/{agent}/knowledge-bases/attach", world.home.slug);
    let event = Event::post(&path, &json!({"knowledge_base_id": base})).user(&world.home.user_id);
    let refused = world.send("knowledge", &event.within(std::time::Duration::from_secs(6))).await.expect(409);
    assert!(text(&refused["detail"]).contains("try again"), "{refused}");
    // Loading and queries need no lease.
    world.knowledge("POST", &format!("/{base}/entries"), &json!({"entries": [{"text": "x"}]})).await.expect(200);
    world.later();
    attach(&world, agent, &base).await.expect(201);
    agree(&world);
}
