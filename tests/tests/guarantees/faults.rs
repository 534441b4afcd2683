//! Faults during creation and execution of a tool: nothing remains beyond the answer's statement.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

use std::time::Duration;

use serde_json::{Value, json};
use shared::models::Timestamp;
use tests::{
    Answer, Event, Fault, Trouble, World, ai_sms,
    logs::Logs,
    slack_action,
    standins::{self, Effect},
};

fn event(world: &World) -> Event {
    Event::post(&format!("/api/{}/tools", world.home.slug), &ai_sms()).user(&world.home.user_id)
}

#[track_caller]
fn nothing_is_left(world: &World, when: &str) {
    assert_eq!(world.vapi.tools(), Vec::<Value>::new(), "VAPI keeps a tool: {when}");
    let mut kept = world.aws.rows("tools");
    kept.retain(|row| row["id"] != "reissue");
    assert_eq!(kept, Vec::<Value>::new(), "the table keeps a row or a name: {when}");
}

#[tokio::test]
async fn vapi_failing_leaves_nothing_on_either_side() {
    let world = World::start().await;
    for (fault, status) in [
        (standins::Fault::status(400), 502),
        (standins::Fault::status(401), 502),
        (standins::Fault::status(500), 502),
        (standins::Fault::status(500).with_effect(Effect::First), 502),
        (standins::Fault::status(503).with_effect(Effect::First), 502),
        (standins::Fault::drop_before(), 504),
        (standins::Fault::drop_after(), 504),
        (standins::Fault::body(json!("not JSON")).with_effect(Effect::First), 502),
        (standins::Fault::body(json!({"name": "no id"})).with_effect(Effect::First), 502),
        (standins::Fault::status(429).times(9), 503),
    ] {
        world.vapi.inject(fault.clone().on("POST", "/tool"));
        let answer = world.create(&ai_sms()).await;
        assert_eq!(answer.status, status, "{fault:?}: {}", answer.body);
        assert_eq!(answer.body["code"], "upstream");
        world.vapi.clear_faults();
        nothing_is_left(&world, &format!("{fault:?}"));
    }
    assert_eq!(world.tool(&ai_sms()).await["name"], "send_confirmation", "the name is free again");
}

#[tokio::test]
async fn a_vapi_that_answers_too_late_leaves_nothing() {
    let world = World::start().await;
    world.vapi.inject(standins::Fault::delay(60_000).on("POST", "/tool"));
    let answer = world.send("create-tool", &event(&world).within(Duration::from_secs(7))).await;
    assert_eq!(answer.status, 504, "{}", answer.body);
    nothing_is_left(&world, "late");
}

#[tokio::test]
async fn vapis_too_many_requests_are_waited_out() {
    let world = World::start().await;
    world.vapi.inject(standins::Fault::status(429).on("POST", "/tool").times(2));
    world.tool(&ai_sms()).await;
    assert_eq!((world.vapi.tools().len(), world.tools().len()), (1, 1));
}

#[tokio::test]
async fn a_failed_rollback_is_logged() {
    let logs = Logs::capture();
    let world = World::start().await;
    for method in ["DELETE", "GET"] {
        world.vapi.inject(standins::Fault::drop_after().on("POST", "/tool"));
        world.vapi.inject(standins::Fault::status(400).on(method, "/tool").times(9));
        world.create(&ai_sms()).await.expect(504);
        world.vapi.clear_faults();
        assert_eq!(world.aws.rows("intents").len(), 1, "the difference is on record");
        world.later();
        world.settle().await;
        assert!(logs.at("ERROR").iter().any(|line| line["message"].as_str().unwrap().contains("VAPI")), "{method}");
    }
    assert_eq!(tests::vapi_differences::differences(&world), [""; 0]);
    assert!(logs.at("ERROR").len() >= 4, "{:?}", logs.at("ERROR"));
}

/// If settling fails as well, the user gets the first failure, and the log names it first.
#[tokio::test]
async fn an_error_while_settling_never_takes_the_place_of_the_first() {
    let logs = Logs::capture();
    let world = World::start().await;
    let settling_fails: [fn(&World); 4] = [
        |world| world.aws.inject(Fault::throttled("GetItem", "tools")),
        |world| world.aws.inject(Fault::throttled("DeleteItem", "tools")),
        |world| world.aws.inject(Fault::throttled("DeleteItem", "intents")),
        |world| world.vapi.inject(standins::Fault::status(401).on("GET", "/tool")),
    ];
    for (number, fail) in settling_fails.into_iter().enumerate() {
        world.vapi.inject(standins::Fault::status(422).on("POST", "/tool"));
        fail(&world);
        let before = logs.at("ERROR").len();
        let answer = world.create(&ai_sms()).await.expect(502);
        assert_eq!(answer["code"], "upstream", "{number}");
        let line = logs.at("ERROR")[before]["message"].as_str().unwrap().to_owned();
        let (cause, left) = line.split_once("; left to settle: ").unwrap();
        assert!(cause.starts_with("create_tool failed: ") && cause.contains("422"), "{line}");
        assert!(!left.contains("status 422"), "{line}");
        assert_eq!(world.aws.rows("intents").len(), 1, "{number}: it is on record");
        world.later();
        assert_eq!(world.settle().await["left"], json!([]));
        nothing_is_left(&world, &number.to_string());
    }
}

#[tokio::test]
async fn a_row_that_cannot_be_written_leaves_nothing_at_vapi() {
    let world = World::start().await;
    for trouble in ["ProvisionedThroughputExceededException", "InternalServerError", "AccessDeniedException"] {
        world.aws.inject(Fault::new("TransactWriteItems", "tools", Trouble::Error(trouble)).times(3));
        let answer = world.create(&ai_sms()).await;
        assert!(answer.status >= 500, "{}", answer.body);
        world.aws.clear_faults();
        nothing_is_left(&world, trouble);
    }
    world.aws.inject(Fault::new("TransactWriteItems", "tools", Trouble::DropBefore).times(3));
    world.create(&ai_sms()).await.expect(503);
    nothing_is_left(&world, "dropped");
}

#[tokio::test]
async fn a_row_whose_writing_was_not_confirmed_agrees_with_vapi() {
    for times in [1, 3] {
        let world = World::start().await;
        world.aws.inject(Fault::new("TransactWriteItems", "tools", Trouble::DropAfter).times(times));
        let answer = world.create(&ai_sms()).await;
        assert_eq!(world.tools().len(), world.vapi.tools().len(), "{times}: {}", answer.body);
        if let [row] = world.tools().as_slice() {
            assert_eq!(answer.status, 201, "{}", answer.body);
            assert_eq!(row["external_tool_id"], world.vapi.tools()[0]["id"]);
            assert_eq!(world.aws.rows("tools").len(), 2, "the name is kept");
        }
    }
}

#[tokio::test]
async fn a_reserved_name_whose_answer_was_lost_is_ours() {
    let world = World::start().await;
    world.aws.inject(Fault::new("PutItem", "tools", Trouble::DropAfter));
    assert_eq!(world.tool(&ai_sms()).await["name"], "send_confirmation");
}

#[tokio::test]
async fn a_name_left_reserved_by_a_crash_frees_itself() {
    let world = World::start().await;
    let guard = |until: i64| {
        let id = format!("name#{}#send_confirmation", world.home.organization_id);
        json!({"id": id, "tool_id": "0192f0c1-0000-7000-8000-0000000000ff", "reserved_until": until})
    };
    world.aws.put("tools", &guard(Timestamp::now().as_millis() + 60_000));
    assert_eq!(world.tool(&ai_sms()).await["name"], "send_confirmation_2");
    world.aws.put("tools", &guard(Timestamp::now().as_millis() - 1));
    assert_eq!(world.tool(&ai_sms()).await["name"], "send_confirmation");
}

#[tokio::test]
async fn a_database_that_is_away_is_503_and_nothing_is_made() {
    let world = World::start().await;
    for (action, table) in
        [("Query", "organizations"), ("Query", "organization_members"), ("TransactWriteItems", "tools")]
    {
        world.aws.inject(Fault::throttled(action, table));
        let answer = world.create(&ai_sms()).await;
        assert_eq!((answer.status, &answer.body["code"]), (503, &json!("unavailable")), "{table}: {}", answer.body);
        nothing_is_left(&world, table);
    }
    world.aws.inject(Fault::new("Query", "organizations", Trouble::Error("AccessDeniedException")));
    let answer = world.create(&ai_sms()).await;
    assert_eq!((answer.status, &answer.body["detail"]), (500, &json!("internal error")));
    assert!(!answer.body.to_string().contains("injected"));
}

#[tokio::test]
async fn secrets_that_cannot_be_read_leave_nothing() {
    let mut world = World::start().await;
    for secret in ["switchboard/vapi", "switchboard/tool-token"] {
        world.restart();
        world.aws.inject(Fault::new("GetSecretValue", secret, Trouble::Error("InternalServiceError")).times(9));
        let answer = world.create(&ai_sms()).await;
        assert!(answer.status >= 500, "{}", answer.body);
        assert!(!answer.body.to_string().contains(secret), "{}", answer.body);
        world.aws.clear_faults();
        nothing_is_left(&world, secret);
    }
}

#[tokio::test]
async fn pipedream_down_while_a_tool_is_made_leaves_nothing() {
    let world = World::start().await;
    for fault in [standins::Fault::status(500).times(9), standins::Fault::status(403).times(9)] {
        world.pipedream.inject(fault);
        let answer = world.create(&slack_action(&world.home)).await;
        assert!(matches!(answer.status, 502 | 503), "{}", answer.body);
        assert_eq!(answer.body["code"], "upstream");
        world.pipedream.clear_faults();
        nothing_is_left(&world, "Pipedream");
    }
    world.tool(&slack_action(&world.home)).await;
}

async fn running(world: &World, tool: &Value) -> Answer {
    world.call_tool(&world.call(tool, json!({"text": "Hello"}))).await
}

#[tokio::test]
async fn reads_that_fail_before_an_effect_are_told_and_cause_none() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    for (action, table) in [("GetItem", "tools"), ("GetItem", "calls"), ("Query", "phone_numbers")] {
        for trouble in ["ProvisionedThroughputExceededException", "InternalServerError"] {
            world.aws.inject(Fault::new(action, table, Trouble::Error(trouble)).times(3));
            let answer = running(&world, &tool).await;
            assert!(answer.sentence().contains("not available"), "{table}: {}", answer.body);
            assert_eq!(world.aws.faults_left(), 0);
            assert!(world.twilio.requests().is_empty(), "{table}");
            assert!(world.aws.rows("idempotency").is_empty(), "{table}: the claim was given back");
        }
    }
    running(&world, &tool).await.result();
}

#[tokio::test]
async fn a_short_hiccup_of_the_database_is_not_noticed() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    world.aws.inject(Fault::new("GetItem", "tools", Trouble::Error("ThrottlingException")).times(2));
    world.aws.inject(Fault::new("UpdateItem", "idempotency", Trouble::DropBefore));
    world.aws.inject(Fault::new("UpdateItem", "idempotency", Trouble::DropAfter).after(1));
    let call = world.call(&tool, json!({"text": "Hello"}));
    let first = world.call_tool(&call).await;
    first.result();
    assert_eq!(world.aws.faults_left(), 0);
    assert_eq!(world.call_tool(&call).await.body, first.body, "the outcome was recorded all the same");
    assert_eq!(world.twilio.messages().len(), 1);
}

#[tokio::test]
async fn a_secret_store_that_is_away_is_no_wrong_token() {
    let mut world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    let wire = world.vapi_event(&world.call(&tool, json!({"text": "Hello"})));
    world.restart();
    world.aws.inject(
        Fault::new("GetSecretValue", "switchboard/tool-token", Trouble::Error("InternalServiceError")).times(9),
    );
    let answer = world.send("execute", &wire).await;
    assert_eq!((answer.status, &answer.body["code"]), (503, &json!("unavailable")), "{}", answer.body);
    world.aws.clear_faults();
    world.send("execute", &wire).await.result();
}

#[tokio::test]
async fn a_numbers_credentials_that_cannot_be_read_send_nothing_and_may_be_tried_again() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    let call = world.call(&tool, json!({"text": "Hello"}));
    for trouble in ["ResourceNotFoundException", "AccessDeniedException", "InternalServiceError"] {
        world.aws.inject(Fault::new("GetSecretValue", "*", Trouble::Error(trouble)).times(9));
        assert!(world.call_tool(&call).await.sentence().contains("not available"), "{trouble}");
        world.aws.clear_faults();
    }
    assert!(world.aws.rows("idempotency").is_empty());
    world.call_tool(&call).await.result();
}

#[tokio::test]
async fn a_history_that_cannot_be_written_changes_no_answer_and_is_logged() {
    let logs = Logs::capture();
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    world.aws.inject(Fault::throttled("PutItem", "executions"));
    running(&world, &tool).await.result();
    assert!(world.executions().is_empty());
    assert_eq!(logs.at("ERROR").len(), 1);
    assert!(logs.at("ERROR")[0]["message"].as_str().unwrap().contains("history"));
}

#[tokio::test]
async fn a_stored_configuration_that_cannot_be_read_runs_nothing_and_is_logged() {
    let logs = Logs::capture();
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    world.aws.change("tools", tool["id"].as_str().unwrap(), json!({"config_metadata": {"type": "sms"}}));
    assert!(running(&world, &tool).await.sentence().contains("not available"));
    assert!(world.twilio.requests().is_empty() && world.aws.rows("idempotency").is_empty());
    assert_eq!(logs.at("ERROR").len(), 1);
}

#[tokio::test]
async fn a_failed_request_is_logged_once_with_its_cause_and_answered_without() {
    let logs = Logs::capture();
    let world = World::start().await;
    world.vapi.inject(standins::Fault::status(401).on("POST", "/tool"));
    let answer = world.create(&ai_sms()).await.expect(502);
    let errors = logs.at("ERROR");
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(errors[0]["request.id"], answer["request_id"]);
    assert!(errors[0]["message"].as_str().unwrap().contains("Invalid Key"), "{errors:?}");
    assert!(!answer.to_string().contains("Invalid Key"), "{answer}");
}
