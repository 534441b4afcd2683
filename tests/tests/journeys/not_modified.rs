//! Lists and details that a client polls: an unchanged one is a 304 without content.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

use serde_json::{Value, json};
use tests::{Answer, Event, World, ai_sms};

async fn read(world: &World, function: &str, path: &str, known: &str) -> Answer {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let event = Event::get(&format!("/api/{}{path}", world.home.slug)).user(&world.home.user_id);
    let event = query.split_once('=').map_or(event.clone(), |(name, value)| event.query(name, value));
    let event = if known.is_empty() { event } else { event.header("if-none-match", known) };
    world.send(function, &event).await
}

fn tag(answer: &Answer) -> String {
    answer.headers["etag"].clone()
}

#[tokio::test]
async fn an_unchanged_list_is_a_304_and_a_changed_one_is_sent() {
    let world = World::start().await;
    let sms = world.attached(&ai_sms()).await;
    world.call_tool(&world.call(&sms, json!({"text": "Hello"}))).await.result();

    let first = read(&world, "list-tools", "/executions", "").await;
    assert_eq!((first.status, &*first.headers["cache-control"]), (200, "no-store"));
    let weak = format!("W/{}", tag(&first));
    for known in [tag(&first), weak, format!("\"other\", {}", tag(&first)), "*".to_owned()] {
        let same = read(&world, "list-tools", "/executions", &known).await;
        assert_eq!((same.status, &same.body, tag(&same)), (304, &Value::Null, tag(&first)), "{known}");
    }
    let other = format!("\"{}", tag(&first));
    for unknown in ["\"other\"", "", &other] {
        assert_eq!(read(&world, "list-tools", "/executions", unknown).await.expect(200), first.body, "{unknown}");
    }
    // Another query is another answer.
    let filtered = read(&world, "list-tools", "/executions?status=failed", &tag(&first)).await;
    assert_eq!(filtered.expect(200)["items"], json!([]));

    world.call_tool(&world.call(&sms, json!({"text": "Again"}))).await.result();
    let changed = read(&world, "list-tools", "/executions", &tag(&first)).await;
    assert_ne!(tag(&changed), tag(&first));
    assert_eq!(changed.expect(200)["items"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_tag_opens_nothing_and_hides_no_error() {
    let world = World::start().await;
    let sms = world.attached(&ai_sms()).await;
    let path = format!("/tools/{}", sms["id"].as_str().unwrap());
    let tag = tag(&read(&world, "list-tools", &path, "").await);
    let foreign = Event::get(&format!("/api/{}{path}", world.home.slug)).user("auth0|stranger");
    assert_eq!(world.send("list-tools", &foreign.header("if-none-match", &tag)).await.status, 404);
    assert_eq!(read(&world, "list-tools", "/tools/none", "*").await.status, 404);
    assert_eq!(read(&world, "list-tools", "/tools?limit=0", "*").await.status, 422);
}

#[tokio::test]
async fn the_revision_of_an_automation_is_no_tag_of_its_content() {
    let world = World::start().await;
    let definition = json!({"name": "Digest", "trigger_type": "manual", "prompt": "Sum up", "tools": []});
    let id = world.activate(&definition).await.id.to_string();
    let path = format!("/automations/{id}");
    let shown = read(&world, "deploy", &path, "").await;
    assert_eq!(read(&world, "deploy", &path, &tag(&shown)).await.status, 200);
}
