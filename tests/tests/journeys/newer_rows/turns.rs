//! Turns of a chat that a newer version began.

use serde_json::{Value, json};
use tests::{Event, World, phone, run_input, sms_without_call, standins::llm::Turn};

use super::{CONTENT, text};

fn row(world: &World) -> Value {
    world.aws.rows("threads").into_iter().find(|item| item["part"] == "thread").unwrap()
}

/// Stores the row with this part, which this version cannot read, and expects that no message is answered, but the thread deleted.
async fn refuses(world: &World, part: &str, unreadable: &Value) {
    let mut spoiled = row(world);
    spoiled[part] = json!(unreadable.to_string());
    world.aws.put("threads", &spoiled);
    let sent = world.twilio.requests().len();
    let named = Event::post("/agent/chat", &json!({"message": "Send two"})).user(&world.home.user_id);
    for answer in [world.chat("Send two").await, world.send("chat", &named.header("idempotency-key", "u1")).await] {
        assert_eq!((answer.status, &answer.body["code"]), (503, &json!("unavailable")), "{part}: {}", answer.body);
        assert!(!answer.body.to_string().contains(CONTENT), "{}", answer.body);
    }
    let kept = row(world);
    for attribute in ["running", "pending", "turns", "messages", "updated_at"] {
        assert_eq!(kept.get(attribute), spoiled.get(attribute), "{part}: {attribute}");
    }
    assert_eq!(world.twilio.requests().len(), sent, "{part}");
    is_deleted(world).await;
}

/// Expects that the person deletes the thread with this row, and an erasure too. Afterwards it is there again.
async fn is_deleted(world: &World) {
    let mut stored = world.aws.rows("threads");
    for row in stored.iter_mut().filter(|row| row["part"] == "thread") {
        row["title"] = json!(format!("Text {}", phone(7)));
    }
    let restore = || stored.iter().for_each(|row| world.aws.put("threads", row));
    restore();
    assert_eq!(world.threads(&world.home.user_id, "DELETE", "/default").await.status, 204);
    assert_eq!(world.aws.rows("threads"), Vec::<Value>::new());
    restore();
    let path = format!("/api/{}/erasures", world.home.slug);
    let erasure = Event::post(&path, &json!({"phone_number": phone(7)})).user(&world.home.user_id);
    let done = world.send("erasures", &erasure).await.expect(200);
    assert_eq!((&done["deleted"]["threads"], &done["complete"]), (&json!(1), &json!(true)), "{done}");
    assert_eq!(world.aws.rows("threads"), Vec::<Value>::new());
    restore();
}

#[tokio::test]
async fn an_unreadable_turn_is_not_begun_again() {
    let world = World::start().await;
    world.tool(&sms_without_call(&world.home)).await;
    let call = |words: &str| json!({"tool": "send_confirmation", "arguments": {"text": words}});
    world.llm.script([Turn::text(&json!([call("One"), call("Two")]).to_string())]);
    let mut stream = world.run_agent(&run_input("default", "u1", "Send two")).await;
    stream.until_type("TOOL_CALL_RESULT").await;
    drop(stream);
    let mut interrupted = row(&world);
    interrupted["lease_until"] = json!(0);
    world.aws.put("threads", &interrupted);

    let mut running: Value = serde_json::from_str(text(&interrupted["running"])).unwrap();
    running["since"] = json!({"of": CONTENT});
    refuses(&world, "running", &running).await;
    // A program that can read the turn continues it.
    world.aws.put("threads", &interrupted);
    world.llm.script([Turn::text("Both are sent.")]);
    let answer = world.chat("Send two").await.expect(200);
    assert_eq!(answer["message"], "Both are sent.");
    assert_eq!(world.twilio.requests().iter().filter(|request| request.method == "POST").count(), 2);

    refuses(&world, "pending", &json!({"id": {"of": CONTENT}})).await;
}
