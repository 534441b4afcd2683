//! Filters of the lists of calls and runs, each one query of an index.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

use serde_json::{Value, json};
use shared::models::Timestamp;
use tests::{Answer, Event, World, ai_sms, aws, phone, standins::Fault};

const TABLES: [(&str, &str); 2] = [("calls", "calls"), ("runs", "automation_runs")];

async fn asked(world: &World, list: &str, query: &[(&str, &str)]) -> Answer {
    let event = Event::get(&format!("/api/{}/{list}", world.home.slug)).user(&world.home.user_id);
    world.send(list, &query.iter().fold(event, |event, (name, value)| event.query(name, value))).await
}

async fn ids(world: &World, list: &str, query: &[(&str, &str)]) -> Vec<String> {
    let page = asked(world, list, query).await.expect(200);
    page["items"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
}

fn at(minute: i64) -> String {
    Timestamp::from_millis(1_795_000_000_000 + minute * 60_000).to_string()
}

/// Rows of `number` calls or runs, one a minute; `more` gives further members of each.
fn put(world: &World, list: &str, number: i64, more: impl Fn(i64) -> Value) -> Vec<String> {
    let table = TABLES.into_iter().find(|(name, _)| *name == list).unwrap().1;
    let put_one = |minute: i64| {
        let id = format!("0193a9f0-0000-7000-8000-{minute:012}");
        let mut row = json!({
            "id": id, "organization_id": world.home.organization_id, "created_at": at(minute), "updated_at": at(minute),
            "expires_at": 4_000_000_000_i64,
        });
        let kind = match list {
            "calls" => json!({"caller_phone_number": phone(1), "called_phone_number": world.home.phone_number}),
            _ => {
                json!({"part": "run", "status": "completed", "trigger_type": "manual", "limits": {}, "dry_run": false})
            }
        };
        for members in [kind, more(minute)] {
            row.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        }
        world.aws.put(table, &row);
        id
    };
    (0..number).map(put_one).collect()
}

#[tokio::test]
async fn calls_are_filtered_by_time_number_agent_status_and_failed_tools() {
    let world = World::start().await;
    let all = put(&world, "calls", 6, |minute| {
        json!({
            "caller_phone_number": phone(if minute < 2 { 1 } else { 2 }),
            "agent_id": if minute % 2 == 0 { json!(world.home.agent_id) } else { Value::Null },
            "status": if minute == 5 { "in-progress" } else { "ended" },
        })
    });
    let newest = |picked: &[usize]| picked.iter().map(|at| all[*at].clone()).collect::<Vec<_>>();
    let (one, two) = (phone(1), phone(2));
    let (second, fourth) = (at(1), at(3));
    for (query, expected) in [
        (vec![], vec![5, 4, 3, 2, 1, 0]),
        (vec![("since", &*fourth)], vec![5, 4, 3]),
        (vec![("until", &second)], vec![1, 0]),
        (vec![("since", &second), ("until", &fourth)], vec![3, 2, 1]),
        (vec![("number", &one)], vec![1, 0]),
        (vec![("number", &world.home.phone_number)], vec![5, 4, 3, 2, 1, 0]),
        (vec![("agent_id", &world.home.agent_id)], vec![4, 2, 0]),
        (vec![("status", "in-progress")], vec![5]),
        (vec![("number", &two), ("agent_id", &world.home.agent_id), ("until", &fourth)], vec![2]),
        (vec![("failed", "true")], vec![]),
        (vec![("failed", "false")], vec![5, 4, 3, 2, 1, 0]),
    ] {
        assert_eq!(ids(&world, "calls", &query).await, newest(&expected), "{query:?}");
    }
    for (name, value) in
        [("since", "yesterday"), ("number", "555"), ("agent_id", "x"), ("status", "levitating"), ("failed", "yes")]
    {
        let refused = asked(&world, "calls", &[(name, value)]).await;
        assert_eq!((refused.status, &refused.body["errors"][0]["field"]), (422, &json!(name)), "{}", refused.body);
    }
    let backwards = asked(&world, "calls", &[("since", &fourth), ("until", &second)]).await;
    assert_eq!(backwards.expect(422)["errors"][0]["field"], "until");
}

#[tokio::test]
async fn runs_are_filtered_by_time_automation_status_failure_and_dry_run() {
    let world = World::start().await;
    let automation = "01930f5e-0000-7000-8000-0000000000e9";
    let statuses = ["completed", "failed", "partial_failure", "running", "cost_limit", "cancelled"];
    let all = put(&world, "runs", 6, |minute| {
        let mut row = json!({"status": statuses[usize::try_from(minute).unwrap()], "dry_run": minute == 1});
        if minute < 3 {
            row["automation_id"] = json!(automation);
        }
        row
    });
    let third = at(2);
    for (query, expected) in [
        (vec![], vec![5, 4, 3, 2, 1, 0]),
        (vec![("failed", "true")], vec![4, 2, 1]),
        (vec![("status", "running")], vec![3]),
        (vec![("dry_run", "true")], vec![1]),
        (vec![("dry_run", "false"), ("failed", "true")], vec![4, 2]),
        (vec![("automation_id", automation)], vec![2, 1, 0]),
        (vec![("automation_id", automation), ("since", &*third)], vec![2]),
        (vec![("automation_id", automation), ("failed", "true"), ("limit", "1")], vec![2]),
    ] {
        let picked: Vec<_> = expected.into_iter().map(|at: usize| all[at].clone()).collect();
        assert_eq!(ids(&world, "runs", &query).await, picked, "{query:?}");
    }
    assert_eq!(asked(&world, "runs", &[("status", "done")]).await.status, 422);
}

#[tokio::test]
async fn pages_of_a_narrow_filter_hold_every_item_once_in_few_reads() {
    let world = World::start().await;
    let all =
        put(&world, "calls", 500, |minute| json!({"status": if minute % 100 == 7 { "ringing" } else { "ended" }}));
    let expected: Vec<String> = [407, 307, 207, 107, 7].iter().map(|at| all[*at].clone()).collect();
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        world.aws.clear_operations();
        let mut query = vec![("status", "ringing"), ("limit", "2")];
        if !cursor.is_empty() {
            query.push(("cursor", &cursor));
        }
        let page = asked(&world, "calls", &query).await.expect(200);
        let reads = world.aws.operations().iter().filter(|read| read.on.iter().any(|table| table == "calls")).count();
        assert!(reads <= 3, "{reads} reads");
        let items = page["items"].as_array().unwrap();
        assert!(items.len() <= 2, "{page}");
        found.extend(items.iter().map(|row| row["id"].as_str().unwrap().to_owned()));
        match page["next_cursor"].as_str() {
            Some(next) => next.clone_into(&mut cursor),
            None => break,
        }
    }
    assert_eq!(found, expected);
}

#[tokio::test]
async fn a_call_says_how_many_of_its_tools_failed() {
    let world = World::start().await;
    let sms = world.attached(&ai_sms()).await;
    for call in ["call-1", "call-2"] {
        world.incoming_call(&world.home, call, &phone(1));
    }
    let failed = async |call: &str| {
        let event = Event::get(&format!("/api/{}/calls/{call}", world.home.slug)).user(&world.home.user_id);
        world.send("calls", &event).await.expect(200)["failed_tools"].clone()
    };
    let mut call = world.call(&sms, json!({"text": "Hello"}));
    call.call_id = Some("call-1".to_owned());
    world.call_tool(&call).await.result();
    assert_eq!((failed("call-1").await, ids(&world, "calls", &[("failed", "true")]).await), (json!(0), vec![]));
    for text in ["One", "Two"] {
        world.twilio.inject(Fault::status(400));
        call.arguments = json!({"text": text}).as_object().unwrap().clone();
        world.call_tool(&call).await.sentence();
    }
    assert_eq!((failed("call-1").await, failed("call-2").await), (json!(2), json!(0)));
    assert_eq!(ids(&world, "calls", &[("failed", "true")]).await, ["call-1"]);
    // A call without a row gets none.
    call.call_id = Some("call-3".to_owned());
    world.twilio.inject(Fault::status(400));
    call.arguments = json!({"text": "Three"}).as_object().unwrap().clone();
    world.call_tool(&call).await.sentence();
    assert_eq!(world.aws.row("calls", "call-3"), None);
}

#[tokio::test]
async fn a_tool_of_unknown_outcome_that_succeeded_later_counts_as_failed_no_more() {
    let world = World::start().await;
    let mut config = ai_sms();
    config["async"] = json!(true);
    let tool = world.attached(&config).await;
    world.incoming_call(&world.home, "call-1", &phone(1));
    let mut call = world.call(&tool, json!({"text": "Hello"}));
    call.call_id = Some("call-1".to_owned());
    // The queue took the message, and its answer was lost.
    world.aws.inject(aws::Fault::new("SendMessage", "executions", aws::Trouble::DropAfter).times(9));
    world.call_tool(&call).await.sentence();
    world.aws.clear_faults();
    assert_eq!(ids(&world, "calls", &[("failed", "true")]).await, ["call-1"]);
    assert_eq!(world.run_queued().await, 0);
    assert_eq!(world.executions()[0]["status"], "succeeded");
    assert_eq!(ids(&world, "calls", &[("failed", "true")]).await, [""; 0]);
}
