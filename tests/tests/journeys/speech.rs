//! The sentences of the agent while a tool runs.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test says what is wrong and stops")]

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use shared::models::Timestamp;
use tests::{
    World, ai_sms, phone,
    standins::{Fault, vapi::ToolCall},
    vapi_differences,
};

fn messages(world: &World, tool: &Value) -> Value {
    world.vapi.tool(tool["external_tool_id"].as_str().unwrap()).unwrap()["messages"].clone()
}

fn automatic(text: &str) -> Value {
    json!([{"type": "text", "text": text, "language": "en"}])
}

fn silent_start() -> Value {
    json!([
        {"type": "request-start", "content": ""},
        {"type": "request-response-delayed", "contents": automatic("This is taking a moment."), "timingMilliseconds": 1_000},
    ])
}

fn spoken_start() -> Value {
    json!([
        {"type": "request-start", "contents": automatic("One moment, please.")},
        {"type": "request-response-delayed", "contents": automatic("This is taking a moment."), "timingMilliseconds": 4_000},
    ])
}

/// Executions in the tool's record, in milliseconds.
fn ran(world: &World, tool: &Value, took: &[u64]) {
    for (number, took) in took.iter().enumerate() {
        let id = format!("0193aa11-2b3c-7d4e-8f50-{number:08}{:04}", took % 10_000);
        let row = json!({
            "id": id, "organization_id": world.home.organization_id, "tool_id": tool["id"], "status": "succeeded",
            "trigger": "conversation", "arguments": {}, "started_at": "2026-11-20T16:20:52.123Z", "duration_ms": took,
            "expires_at": 4_000_000_000_u64,
        });
        world.aws.put("executions", &row);
    }
}

#[tokio::test]
async fn the_authors_words_go_to_vapi_and_silence_is_silent() {
    let world = World::start().await;
    let mut config = ai_sms();
    config["speech"] =
        json!({"start": {"en": "Sending it.", "de": "Ich sende sie."}, "delayed": "", "failed": "That failed."});
    let tool = world.attached(&config).await;
    let expected = json!([
        {"type": "request-start", "contents": [
            {"type": "text", "text": "Ich sende sie.", "language": "de"}, {"type": "text", "text": "Sending it.", "language": "en"},
        ]},
        {"type": "request-response-delayed", "content": "", "timingMilliseconds": 4_000},
        {"type": "request-failed", "content": "That failed."},
    ]);
    assert_eq!(messages(&world, &tool), expected);
    assert_eq!(tool["config_metadata"]["speech"], config["speech"]);

    let edited =
        world.update(&tool, &json!({"speech": {"start": "Texting {{caller_phone_number}}.", "delayed": "auto"}})).await;
    let edited = edited.expect(200);
    let expected = json!([
        {"type": "request-start", "content": "Texting {{ customer.number }}."},
        {"type": "request-response-delayed", "contents": automatic("This is taking a moment."), "timingMilliseconds": 4_000},
    ]);
    assert_eq!(messages(&world, &edited), expected);
    let edited = world.update(&tool, &json!({"speech": null})).await.expect(200);
    assert_eq!(messages(&world, &edited), spoken_start());
    assert!(edited["config_metadata"].get("speech").is_none(), "{edited}");
    assert_eq!(vapi_differences::differences(&world), [""; 0]);

    for (speech, field) in [
        (json!("hush"), "speech"),
        (json!({"begin": "x"}), "speech.begin"),
        (json!({"start": 7}), "speech.start"),
        (json!({"start": "x".repeat(1_001)}), "speech.start"),
        (json!({"start": {}}), "speech.start"),
        (json!({"delayed": {"english": "x"}}), "speech.delayed"),
        (json!({"failed": {"en": ""}}), "speech.failed"),
    ] {
        assert_eq!(world.update(&tool, &json!({"speech": speech})).await.wrong_fields(), [field], "{speech}");
    }
}

#[tokio::test]
async fn the_automatic_start_follows_the_tools_own_record() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    assert_eq!(messages(&world, &tool), spoken_start(), "nothing is known of it");
    ran(&world, &tool, &[200, 200, 300, 200, 8_000]);
    let fast = world.update(&tool, &json!({"label": "Text"})).await.expect(200);
    assert_eq!(messages(&world, &fast), silent_start());
    let shown = world.list(&format!("/tools/{}", tool["id"].as_str().unwrap())).await.expect(200);
    let choice = &shown["spoken_at_start"];
    assert_eq!(
        (&choice["speaks"], &choice["usual_ms"], &choice["executions"]),
        (&json!(false), &json!(300), &json!(5))
    );
    ran(&world, &tool, &[2_000, 2_001, 2_002, 2_003, 2_004, 2_005]);
    let slow = world.update(&tool, &json!({"label": "Text them"})).await.expect(200);
    assert_eq!(messages(&world, &slow), spoken_start());

    let mut background = ai_sms();
    background["label"] = json!("Text later");
    background["async"] = json!(true);
    let tool = world.attached(&background).await;
    assert_eq!(messages(&world, &tool), silent_start(), "the caller waits for a queue");
}

/// Executions that contradict the choice leave an intent, and `settle` tells VAPI.
#[tokio::test]
async fn a_record_that_changes_is_heard_without_an_edit() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    let id = tool["id"].as_str().unwrap();
    world.aws.change("tools", id, json!({"created_at": "2026-01-01T00:00:00.000Z"}));
    let mut executions = 0;
    while world.aws.rows("intents").is_empty() {
        world.call_tool(&world.call(&tool, json!({"text": "Hello"}))).await.result();
        executions += 1;
        assert!(executions < 400, "no execution was looked at");
    }
    assert_eq!(messages(&world, &tool), spoken_start());
    world.vapi.clear_requests();
    world.settle().await;
    let listed = world.vapi.requests().iter().any(|request| request.method == "GET" && request.path == "/tool");
    assert!(!listed, "no tool was created, so none is searched");
    assert!(world.aws.rows("intents").is_empty());
    assert_eq!(messages(&world, &tool), silent_start());
    let row = world.aws.row("tools", id).unwrap();
    assert_eq!((&row["version"], &row["spoken_at_start"]["speaks"]), (&json!(0), &json!(false)));
    assert_eq!(vapi_differences::differences(&world), [""; 0]);
    // It fits now.
    for _ in 0..40 {
        world.call_tool(&world.call(&tool, json!({"text": "Hello"}))).await.result();
    }
    assert!(world.aws.rows("intents").is_empty());
}

#[tokio::test]
async fn words_that_did_not_reach_vapi_are_settled() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    let path = format!("/tool/{}", tool["external_tool_id"].as_str().unwrap());
    // VAPI takes the edit, and its answer is lost, as are those of the attempts to set it right.
    world.vapi.inject(Fault::drop_after().on("PATCH", &path).times(40));
    let speech = json!({"speech": {"start": "Right away."}});
    let failed = world
        .send(
            "update-tool",
            &tests::Event::new("PATCH", &format!("/api/{}/tools/{}", world.home.slug, tool["id"].as_str().unwrap()))
                .user(&world.home.user_id)
                .text(speech.to_string())
                .header("content-type", "application/json")
                .within(Duration::from_secs(7)),
        )
        .await;
    assert!(failed.status >= 500, "{}", failed.body);
    world.vapi.clear_faults();
    world.later();
    world.settle().await;
    assert_eq!(messages(&world, &tool), spoken_start(), "the row has no such words");
    assert_eq!(vapi_differences::differences(&world), [""; 0]);
}

fn spoken(world: &World, call: &ToolCall) -> Vec<(String, String)> {
    let all = world.vapi.spoken(call.call_id.as_deref().unwrap());
    all.into_iter().map(|said| (said.message, said.text)).collect()
}

/// A new call and its sentences; that about a delay is left out if the answer took longer than `seconds` on a busy machine.
async fn answered(world: &World, tool: &Value, seconds: u64) -> (ToolCall, Vec<(String, String)>) {
    let call = world.call(tool, json!({"text": "Hello"}));
    let begun = Instant::now();
    world.call_tool(&call).await.result();
    let late = begun.elapsed() >= Duration::from_secs(seconds);
    let mut heard = spoken(world, &call);
    heard.retain(|(message, _)| !(late && message == "request-response-delayed"));
    (call, heard)
}

fn sentence(message: &str, text: &str) -> (String, String) {
    (message.to_owned(), text.to_owned())
}

#[tokio::test]
async fn a_caller_hears_the_start_before_the_request_and_the_delay_after_its_time() {
    let world = World::start().await;
    let mut config = ai_sms();
    config["speech"] = json!({"start": "Texting {{caller_phone_number}}.", "failed": "That failed."});
    let tool = world.attached(&config).await;
    let (call, heard) = answered(&world, &tool, 4).await;
    let start = sentence("request-start", &format!("Texting {}.", phone(1)));
    assert_eq!(heard, std::slice::from_ref(&start));
    let at = world.vapi.spoken(call.call_id.as_deref().unwrap())[0].at.clone();
    let sent: Timestamp = world.twilio.messages().pop().unwrap().at.parse().unwrap();
    assert!(at.parse::<Timestamp>().unwrap() <= sent, "{at} {sent}");

    world.twilio.inject(Fault::delay(4_500).on("POST", "/Messages.json"));
    let slow = world.call(&tool, json!({"text": "Hello again"}));
    world.call_tool(&slow).await.result();
    assert_eq!(spoken(&world, &slow), [start, sentence("request-response-delayed", "This is taking a moment.")]);
    let after = world.vapi.spoken(slow.call_id.as_deref().unwrap())[1].after_ms;
    assert!(after >= 4_000, "{after} ms");
}

#[tokio::test]
async fn an_empty_sentence_is_silence_and_a_silent_start_is_not_silent_for_long() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    ran(&world, &tool, &[200, 200, 300, 200, 200]);
    let tool = world.update(&tool, &json!({"label": "Text"})).await.expect(200);
    assert_eq!(answered(&world, &tool, 1).await.1, []);
    world.twilio.inject(Fault::delay(1_500).on("POST", "/Messages.json"));
    let slow = world.call(&tool, json!({"text": "Hello again"}));
    world.call_tool(&slow).await.result();
    assert_eq!(spoken(&world, &slow), [sentence("request-response-delayed", "This is taking a moment.")]);
    let after = world.vapi.spoken(slow.call_id.as_deref().unwrap())[0].after_ms;
    assert!(after >= 1_000, "{after} ms");

    let quiet = json!({"speech": {"start": "", "delayed": "", "failed": "auto"}});
    let tool = world.update(&tool, &quiet).await.expect(200);
    world.twilio.inject(Fault::delay(1_500).on("POST", "/Messages.json"));
    let slow = world.call(&tool, json!({"text": "Hello once more"}));
    world.call_tool(&slow).await.result();
    assert_eq!(spoken(&world, &slow), []);
}

/// A tool that failed has an answer, which the model puts in words.
#[tokio::test]
async fn the_failure_is_spoken_only_if_the_tool_gave_no_answer() {
    let mut world = World::start().await;
    let mut config = ai_sms();
    config["speech"] = json!({"start": "", "delayed": "", "failed": "That failed."});
    let tool = world.attached(&config).await;
    world.twilio.inject(Fault::status(400).on("POST", "/Messages.json"));
    let refused = world.call(&tool, json!({"text": "Hello"}));
    assert_eq!(world.call_tool(&refused).await.expect(200)["success"], false);
    assert_eq!(spoken(&world, &refused), []);

    world.aws.forget_secret("switchboard/tool-token");
    world.restart();
    let down = world.call(&tool, json!({"text": "Hello again"}));
    assert!(world.call_tool(&down).await.status >= 500);
    assert_eq!(spoken(&world, &down), [sentence("request-failed", "That failed.")]);
}

#[tokio::test]
async fn a_caller_hears_the_language_of_the_assistant() {
    let world = World::start().await;
    let mut config = ai_sms();
    config["speech"] = json!({"start": {"en": "Sending it.", "de": "Ich sende sie."}, "delayed": ""});
    let tool = world.attached(&config).await;
    for (language, text, translated_to) in
        [("en-US", "Sending it.", None), ("de", "Ich sende sie.", None), ("fr", "Ich sende sie.", Some("fr"))]
    {
        let transcriber = json!({"transcriber": {"provider": "deepgram", "model": "nova-3", "language": language}});
        world.at_vapi("PATCH", &format!("/assistant/{}", world.home.assistant_id), &transcriber).await;
        let call = world.call(&tool, json!({"text": format!("Hello in {language}")}));
        world.call_tool(&call).await.result();
        let [said] = world.vapi.spoken(call.call_id.as_deref().unwrap()).try_into().unwrap();
        assert_eq!((said.text.as_str(), said.translated_to.as_deref()), (text, translated_to), "{language}");
    }
}
