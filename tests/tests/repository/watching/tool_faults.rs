//! Which failures of tools raise an alarm: those of calls and of their starts, after the last attempt.

use serde_json::{Value, json};
use tests::{
    Answer, Options, Template, World, ai_sms, api_request, aws,
    logs::Logs,
    metrics::Metrics,
    phone, preemptive_sms, sms_without_call,
    standins::{Fault, llm::Turn},
};

use super::{alarms::watched, requests::line, text};

/// The alarms whose metrics were written.
fn raised(metrics: &Metrics) -> Vec<String> {
    let written = metrics.seen();
    let watched = watched(&Template::read()).into_iter();
    watched.filter(|(_, metric)| written.contains(metric)).map(|(alarm, _)| alarm).collect()
}

/// VAPI's id of a call that begins.
async fn begins(world: &World) -> String {
    let answer: Answer = world.send("call-start", &world.incoming(&world.caller(&phone(1)))).await;
    let (before, _) = text(&answer.body).split_once("/transport").unwrap();
    before.rsplit('/').next().unwrap().to_owned()
}

/// A look-up at the start of a call, with a secret of its own.
fn secret_lookup() -> Value {
    let mut tool = api_request("GET", "https://crm.example/customer");
    tool["headers"] = json!({"Authorization": "Bearer s3cret"});
    tool["attach_to_agent"] = json!(false);
    tool["execute_on_call_start"] = json!(true);
    tool
}

#[tokio::test]
async fn a_start_tool_that_cannot_be_claimed_for_seconds_raises_an_alarm_and_names_its_call() {
    let world = World::start().await;
    let tool = world.attached(&preemptive_sms()).await;
    let call = begins(&world).await;
    world.aws.inject(aws::Fault::throttled("UpdateItem", "idempotency").times(99));
    let (metrics, logs) = (Metrics::capture(), Logs::capture());
    assert_eq!(world.run_queued().await, 1);
    assert_eq!((raised(&metrics), metrics.sum("ToolFaults")), (vec!["ToolFaultsAlarm".to_owned()], 1.0));
    let failed = line(&logs, "an execution failed");
    assert_eq!((&failed["call.id"], &failed["tool.id"]), (&json!(call), &tool["id"]));
    assert_eq!(failed["organization.id"], world.home.organization_id);
}

#[tokio::test]
async fn a_start_tool_whose_secret_may_not_be_read_raises_an_alarm() {
    for (tool, failures) in [(preemptive_sms(), 0), (secret_lookup(), 1)] {
        let mut world = World::start().await;
        world.attached(&tool).await;
        let call = begins(&world).await;
        world.restart();
        let denied = aws::Trouble::Error("AccessDeniedException");
        world.aws.inject(aws::Fault::new("GetSecretValue", "*", denied).times(99));
        let (metrics, logs) = (Metrics::capture(), Logs::capture());
        assert_eq!(world.run_queued().await, failures, "{}", tool["type"]);
        assert_eq!(raised(&metrics), ["ToolFaultsAlarm"], "{}", tool["type"]);
        let failed = line(&logs, if failures == 0 { "an execution did not succeed" } else { "an execution failed" });
        assert_eq!((&failed["call.id"], &failed["upstream.service"]), (&json!(call), &json!("Secrets Manager")));
        if failures > 0 {
            assert_eq!(line(&logs, "message failed")["upstream.service"], "Secrets Manager");
        }
    }
}

/// Its function may have died at the first delivery.
#[tokio::test]
async fn a_start_tool_that_comes_too_late_raises_an_alarm() {
    let world = World::start().await;
    world.attached(&preemptive_sms()).await;
    begins(&world).await;
    let mut run = world.aws.messages("start-tools").remove(0);
    while world.aws.receive("start-tools", 3).is_some() {}
    run["queued_at"] = json!("2026-01-01T00:00:00.000Z");
    world.aws.post("start-tools", &run.to_string());
    let metrics = Metrics::capture();
    assert_eq!(world.run_queued().await, 0);
    assert_eq!(raised(&metrics), ["ToolFaultsAlarm"]);
}

#[tokio::test]
async fn a_call_that_refuses_its_results_raises_an_alarm_unless_it_is_over_or_its_assistant_wants_a_key() {
    let world = World::start().await;
    world.attached(&preemptive_sms()).await;
    let alarm = vec!["CallIncompleteAlarm".to_owned()];
    for (status, is_over, alarms) in [(403, false, alarm), (403, true, Vec::new()), (401, false, Vec::new())] {
        let call = begins(&world).await;
        if is_over {
            world.aws.change("calls", &call, json!({"status": "ended", "ended_at": "2026-11-20T17:20:52.000Z"}));
        }
        world.vapi.inject(Fault::status(status).on("POST", &format!("/{call}/control")));
        let (metrics, logs) = (Metrics::capture(), Logs::capture());
        assert_eq!(world.run_queued().await, 0);
        assert!(world.aws.row("calls", &call).unwrap()["context_error"].is_string());
        assert_eq!(raised(&metrics), alarms, "{status}");
        if !is_over {
            let untold = line(&logs, "a message could not be sent to a call");
            let whose = json!([untold["call.id"], untold["organization.id"], untold["agent.id"]]);
            assert_eq!(whose, json!([call, world.home.organization_id, world.home.agent_id]));
        }
    }
}

#[tokio::test]
async fn an_async_tool_that_succeeds_at_the_second_attempt_is_no_fault() {
    let world = World::start().await;
    let mut later = ai_sms();
    later["async"] = json!(true);
    let tool = world.attached(&later).await;
    world.call_tool(&world.call(&tool, json!({"text": "Hello"}))).await.result();
    world.aws.inject(aws::Fault::throttled("UpdateItem", "idempotency"));
    let metrics = Metrics::capture();
    assert_eq!(world.run_queued().await, 0);
    assert_eq!((world.aws.faults_left(), world.twilio.messages().len()), (0, 1));
    assert!(metrics.seen().iter().all(|(name, _)| name != "ToolFaults"), "{:?}", metrics.seen());
}

#[tokio::test]
async fn a_fault_of_a_chats_tool_is_none_of_a_call() {
    let variables = vec![("PLANNER_FUNCTION_CALLING", "true".to_owned())];
    let world = World::with(Options { variables, ..Options::default() }).await;
    world.tool(&sms_without_call(&world.home)).await;
    world.llm.script([Turn::tool("send_confirmation", json!({"text": "Hi"})), Turn::text("It could not be sent.")]);
    world.aws.inject(aws::Fault::throttled("GetItem", "phone_numbers").times(99));
    let metrics = Metrics::capture();
    world.chat("Send Hi").await;
    let triggers = metrics.seen().into_iter().filter(|(name, _)| name == "ToolFaults");
    let triggers: Vec<String> = triggers.map(|(_, dimensions)| dimensions["Trigger"].clone()).collect();
    assert_eq!((triggers, raised(&metrics)), (vec!["chat".to_owned()], Vec::new()));
}
