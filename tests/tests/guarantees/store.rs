//! The store under partial answers of DynamoDB: pages, and batches with unprocessed items.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use shared::{Deadline, Error, error, models::ToolId};
use tests::{Event, Fault, Trouble, World, aws::Operation, logs::Logs, preemptive_sms};

/// A quarter of DynamoDB's page size, in bytes.
const LARGE: usize = 256 * 1024;

async fn tools_of_agent(world: &World) -> Value {
    world.list(&format!("/agents/{}/tools", world.home.agent_id)).await.expect(200)
}

async fn attached(world: &World, count: usize) -> Vec<Value> {
    let mut tools = Vec::new();
    for number in 0..count {
        let mut tool = preemptive_sms();
        tool["label"] = json!(format!("Welcome {number}"));
        tools.push(world.attached(&tool).await);
    }
    tools
}

fn ids(tools: &[Value]) -> Vec<ToolId> {
    tools.iter().map(|tool| tool["id"].as_str().unwrap().parse().unwrap()).collect()
}

fn named(world: &World, action: &str, table: &str) -> Vec<Operation> {
    let on = |operation: &Operation| operation.action == action && operation.on.iter().any(|name| name == table);
    world.aws.dynamodb().into_iter().filter(on).collect()
}

fn unprocessed(action: &str, table: &str, times: u32) -> Fault {
    Fault::new(action, table, Trouble::Unprocessed).times(times)
}

#[tokio::test]
async fn a_write_that_met_another_transaction_is_sent_again() {
    let world = World::start().await;
    let tool = world.tool(&preemptive_sms()).await;
    let id = tool["id"].as_str().unwrap();
    // The lease is waited for beyond the attempts of one write.
    world.aws.inject(Fault::new("UpdateItem", "agents", Trouble::TransactionConflict).times(8));
    world.aws.inject(Fault::new("TransactWriteItems", "agent_tools", Trouble::TransactionConflict).times(3));
    world.attach(id).await.expect(201);
    assert_eq!((world.aws.faults_left(), world.aws.rows("agent_tools").len()), (0, 1));

    world.aws.inject(Fault::new("TransactWriteItems", "agent_tools", Trouble::TransactionConflict).times(99));
    assert_eq!(world.detach(id).await.status, 503);
    world.aws.clear_faults();
    let agent = world.aws.row("agents", &world.home.agent_id).unwrap();
    assert!(agent.get("lease_token").is_none(), "{agent}");
    world.detach(id).await.expect(200);
}

#[tokio::test]
async fn all_pages_of_a_query_are_read() {
    let world = World::start().await;
    let tools = attached(&world, 7).await;
    for mut row in world.aws.rows("agent_tools") {
        row["of_a_later_version"] = json!("x".repeat(LARGE));
        world.aws.put("agent_tools", &row);
    }
    world.aws.clear_operations();
    let listed = tools_of_agent(&world).await;
    let listed = ids(listed["items"].as_array().unwrap());
    assert_eq!(listed, ids(&tools));
    let pages = named(&world, "Query", "agent_tools");
    assert!(pages.len() > 1, "{} queries", pages.len());
    assert!(pages[1].body["ExclusiveStartKey"].is_object(), "{}", pages[1].body);
}

#[tokio::test]
async fn all_pages_of_a_scan_are_read() {
    let world = World::start().await;
    for number in 0..7 {
        world.aws.put(
            "intents",
            &json!({
                "id": format!("0192f0c1-0000-7000-8000-00000000000{number}"), "organization_id": world.home.organization_id,
                "change": "delete_tool", "tool_id": "0192f0c1-0000-7000-8000-0000000000ff",
                "created_at": "2026-11-20T16:20:52.123Z", "owner_until": 0, "of_a_later_version": "x".repeat(LARGE),
            }),
        );
    }
    let report = world.settle().await;
    assert_eq!(report["settled"].as_array().unwrap().len(), 7, "{report}");
    assert!(named(&world, "Scan", "intents").len() > 1);
    assert_eq!(world.aws.rows("intents"), [] as [Value; 0]);
}

#[tokio::test]
async fn keys_that_a_batch_leaves_out_are_asked_for_again_after_ever_longer_pauses() {
    let world = World::start().await;
    let tools = attached(&world, 4).await;
    world.aws.clear_operations();
    world.aws.inject(unprocessed("BatchGetItem", "tools", 3));
    let listed = tools_of_agent(&world).await;
    assert_eq!(ids(listed["items"].as_array().unwrap()), ids(&tools), "none is missing");
    let asked = named(&world, "BatchGetItem", "tools");
    let keys =
        |operation: &Operation| operation.body["RequestItems"]["switchboard-tools"]["Keys"].as_array().unwrap().len();
    assert_eq!(asked.iter().map(keys).collect::<Vec<_>>(), [4, 3, 2, 1], "only what was left out");
    let pauses: Vec<Duration> = asked.windows(2).map(|pair| pair[1].started - pair[0].ended).collect();
    for (pause, least) in pauses.iter().zip([25, 50, 100]) {
        assert!(*pause >= Duration::from_millis(least), "{pauses:?}");
    }
}

#[tokio::test]
async fn a_batch_that_is_never_complete_ends_at_the_deadline_and_says_so() {
    let world = World::start().await;
    let tools = attached(&world, 12).await;
    world.aws.clear_operations();
    world.aws.inject(unprocessed("BatchGetItem", "tools", 99));
    let (organization, within) = (world.home.organization_id.parse().unwrap(), Duration::from_secs(3));
    let started = Instant::now();
    let found = world.process.list_tools.tools.get_many(organization, &ids(&tools), Deadline::after(within)).await;
    let error = found.unwrap_err();
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    assert!(matches!(error, Error::Unavailable(..)) && error.status() == 503);
    let cause = error::chain(&error);
    assert!(cause.contains("unprocessed at the deadline") && cause.contains("of 12 keys"), "{cause}");
    let asked = named(&world, "BatchGetItem", "tools").len();
    // The shortest pauses double from 25 ms to 800 ms: the eighth would end after 3,175 ms.
    assert!((2..=8).contains(&asked), "{asked} requests in {within:?}");
}

#[tokio::test]
async fn a_request_whose_batch_is_never_complete_is_503_in_time() {
    let logs = Logs::capture();
    let world = World::start().await;
    attached(&world, 12).await;
    world.aws.inject(unprocessed("BatchGetItem", "tools", 99));
    let event = Event::get(&format!("/api/{}/agents/{}/tools", world.home.slug, world.home.agent_id));
    let event = event.user(&world.home.user_id).within(Duration::from_secs(3));
    let answer = world.send("list-tools", &event).await;
    assert_eq!((answer.status, &answer.body["code"]), (503, &json!("unavailable")), "{}", answer.body);
    let errors = logs.at("ERROR");
    assert!(errors.iter().any(|line| line.to_string().contains("unprocessed at the deadline")), "{errors:?}");
}

#[tokio::test]
async fn deletions_that_a_batch_leaves_out_are_sent_again() {
    let world = World::start().await;
    let entries: Vec<Value> = (0..6).map(|number| json!({"id": format!("e{number}"), "text": "x"})).collect();
    let base = world.knowledge_base(&json!([]), &json!(entries)).await;
    world.aws.inject(unprocessed("BatchWriteItem", "knowledge_entries", 3));
    world.knowledge("DELETE", &format!("/{}", base["id"].as_str().unwrap()), &Value::Null).await.expect(200);
    assert_eq!(world.aws.rows("knowledge_entries"), [] as [Value; 0]);
    assert_eq!(world.aws.faults_left(), 0);
}

#[tokio::test]
async fn an_entry_that_a_batch_left_out_is_not_taken_for_new() {
    let world = World::start().await;
    let entries = json!([{"id": "a", "text": "x"}, {"id": "b", "text": "y"}, {"id": "c", "text": "z"}]);
    let base = world.knowledge_base(&json!([]), &entries).await;
    world.aws.inject(unprocessed("BatchGetItem", "knowledge_entries", 2));
    let path = format!("/{}", base["id"].as_str().unwrap());
    world.knowledge("POST", &format!("{path}/entries"), &json!({"entries": entries})).await.expect(200);
    let row = world.knowledge("GET", &path, &Value::Null).await.expect(200);
    assert_eq!((&row["entries"], world.aws.rows("knowledge_entries").len()), (&json!(3), 3), "counted once");
    assert_eq!(world.aws.faults_left(), 0);
}
