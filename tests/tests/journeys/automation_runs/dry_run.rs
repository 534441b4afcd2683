//! Dry runs: requests are shown, not sent.

use local::standins::llm::Turn;
use serde_json::{Value, json};
use shared::models::RunStatus;
use tests::{
    automation::{AMPLE, calls, whole},
    sms_without_call,
};

use super::{and, books, entered, post, shown};

#[tokio::test]
async fn nothing_is_sent_and_everything_is_shown() {
    let (world, books) = books().await;
    let sms = world.tool(&sms_without_call(&world.home)).await;
    let name = sms["name"].as_str().unwrap();
    let actions = json!([
        {"id": "read", "tool": "ledger_read", "parameters": {"entry": "rows"}, "output_as": "found"},
        and(post("write", "{{found.rows[0].name}}"), json!({"output_as": "written", "condition": {"path": "found.open", "op": "exists"}})),
        {"id": "never", "tool": "ledger_post", "parameters": {"entry": "x"}, "condition": {"path": "found.gone", "op": "exists"}},
        {"id": "tell", "tool": name, "parameters": {"text": "{{written.entered}} {{found.rows[1].name}}"}},
    ]);
    let automation = world.activate(&world.manual(&actions)).await;
    world.twilio.clear_requests();
    let run = world.start_automation_with(&automation, "dry", &json!({}), true).await;
    assert_eq!(world.run_loop(AMPLE).await, 0);
    assert!(entered(&books).is_empty() && world.twilio.requests().is_empty(), "nothing was sent");
    assert_eq!(books.seen().len(), 1, "what reads is called");
    let run = whole(&world, run.id).await.run;
    assert_eq!((run.status, run.error.as_ref(), run.actions_executed), (RunStatus::Completed, None, 1));
    let shown = shown(&world, &run).await;
    assert_eq!(shown["dry_run"], json!(true));
    let [read, write, never, tell] = &shown["actions"].as_array().unwrap()[..] else { panic!("{shown}") };
    assert_eq!(
        (&read["status"], &write["status"], &tell["status"]),
        (&json!("succeeded"), &json!("not_sent"), &json!("not_sent"))
    );
    let request = &write["output"]["would_send"];
    assert_eq!((&request["method"], &write["execution_id"]), (&json!("POST"), &Value::Null));
    assert!(request["url"].as_str().unwrap().ends_with("/ledger/Ada"), "{request}");
    assert_eq!(never["condition_result"]["clauses"][0]["text"], "found.gone exists: no, there was nothing");
    // An unsent action has no output.
    assert_eq!(tell["arguments"]["text"], "[No available data] Bob");
    assert!(tell["output"]["would_send"].to_string().contains("Bob"), "{tell}");
    // The dry run's claims do not block a real run.
    world.start_automation(&automation, "meant", &json!({})).await;
    assert_eq!(world.run_loop(AMPLE).await, 0);
    assert_eq!((entered(&books).len(), world.twilio.messages().len()), (1, 1));
}

#[tokio::test]
async fn the_tools_of_a_prompt_send_nothing_either() {
    let (world, books) = books().await;
    let fingerprint = world.fingerprint("ledger_post");
    let definition = json!({
        "name": "Prompted", "trigger_type": "manual", "prompt": "Enter {{trigger_data.entry}}.", "tools": ["ledger_post"],
        "fingerprints": {"ledger_post": fingerprint},
    });
    let automation = world.activate(&definition).await;
    world.llm.script([
        Turn::text(&calls("return ledger_post({entry: \"one\"});")),
        Turn::text(&calls("return finalResponse();")),
        Turn::text("\"Done\""),
    ]);
    let run = world.start_automation_with(&automation, "dry", &json!({"entry": "one"}), true).await;
    assert_eq!(world.run_loop(AMPLE).await, 0);
    let run = whole(&world, run.id).await;
    assert_eq!((run.run.status, entered(&books).len()), (RunStatus::Completed, 0));
    assert!(run.replies[0].text.contains("Nothing was sent."), "{}", run.replies[0].text);
}
