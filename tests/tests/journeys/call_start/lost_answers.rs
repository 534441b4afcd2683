//! Outages of the database and of VAPI, and answers that are lost, while a call starts.

use futures_util::future::join_all;

use super::*;

/// The SDK repeats an update whose answer is lost.
#[tokio::test]
async fn a_lost_answer_of_the_database_tells_the_context_once() {
    for operation in 0..4 {
        let crm = crm();
        let world = world(&crm).await;
        lookup(&world, &crm, "customer").await;
        let call = call_id(&world.send("call-start", &world.incoming(&world.caller(&phone(1)))).await);
        answers(&crm, "customer", &json!({"name": "Ana"}));
        world.aws.inject(tests::Fault::new("UpdateItem", "calls", tests::Trouble::DropAfter).after(operation));
        assert_eq!(world.run_queued().await, 0);
        assert_eq!(told(&world, &call).len(), 1, "update {operation}");
        assert!(world.aws.row("calls", &call).unwrap()["context_injected_at"].is_string(), "update {operation}");
    }
}

/// The other results were sent before; nobody else tells the late one.
#[tokio::test]
async fn a_lost_answer_of_the_database_tells_a_late_result_once() {
    for operation in 0..3 {
        let crm = crm();
        let world = world(&crm).await;
        lookup(&world, &crm, "customer").await;
        let call = call_id(&world.send("call-start", &world.incoming(&world.caller(&phone(1)))).await);
        let late = world.aws.receive("start-tools", 0).unwrap();
        due(&world).await;
        assert_eq!(told(&world, &call), [""; 0]);
        answers(&crm, "customer", &json!({"name": "Ana"}));
        world.aws.inject(tests::Fault::new("UpdateItem", "calls", tests::Trouble::DropAfter).after(operation));
        assert_eq!(world.run_batch(late).await, 0);
        assert_eq!((world.aws.faults_left(), told(&world, &call).len()), (0, 1), "update {operation}");
    }
}

/// Twilio would give up while the read is still tried.
#[tokio::test]
async fn a_caller_hears_the_fallback_in_time_when_the_agent_cannot_be_read() {
    let world = World::start().await;
    bypassed(&world);
    world.aws.inject(tests::Fault::new("GetItem", "agents", tests::Trouble::StallBefore).times(9));
    let incoming = world.incoming(&world.caller(&phone(1))).within(Duration::from_secs(3));
    let answer = world.send("call-start", &incoming).await;
    assert_eq!(answer.status, 200);
    assert!(answer.body.as_str().unwrap().contains("<Say>"), "{}", answer.body);
    let tries = world.aws.dynamodb().into_iter().filter(|done| done.action == "GetItem" && done.on == ["agents"]);
    assert!(tries.count() < 3, "the SDK makes three");
}

/// A redelivery would come too late for the call.
#[tokio::test]
async fn an_outage_in_which_a_tool_cannot_begin_costs_the_call_no_result() {
    let crm = crm();
    let world = world(&crm).await;
    lookup(&world, &crm, "customer").await;
    let call = call_id(&world.send("call-start", &world.incoming(&world.caller(&phone(1)))).await);
    answers(&crm, "customer", &json!({"name": "Ana"}));
    world.aws.inject(tests::Fault::throttled("GetItem", "tools"));
    assert_eq!(world.run_queued().await, 0);
    assert_eq!(world.aws.faults_left(), 0);
    let told = told(&world, &call);
    assert!(told.len() == 1 && told[0].contains("Ana"), "{told:?}");
}

/// The SDK repeats a write whose answer is lost, and the history refuses it.
#[tokio::test]
async fn a_lost_answer_of_the_history_keeps_no_failure_from_the_call() {
    let crm = crm();
    let world = world(&crm).await;
    lookup(&world, &crm, "customer").await;
    let call = call_id(&world.send("call-start", &world.incoming(&world.caller(&phone(1)))).await);
    world.aws.inject(tests::Fault::new("PutItem", "executions", tests::Trouble::DropAfter));
    assert_eq!(world.run_queued().await, 0);
    assert_eq!(world.aws.faults_left(), 0);
    let run = world.executions().remove(0);
    assert_eq!((&run["status"], &run["trigger"]), (&json!("failed"), &json!("call_start")));
    assert_eq!(world.aws.row("calls", &call).unwrap()["failed_executions"], json!([run["id"]]));
}

#[tokio::test]
async fn a_call_at_which_vapi_hangs_once_reaches_the_agent() {
    let attempts = [(false, Effect::First, 2), (true, Effect::First, 1), (true, Effect::None, 2)];
    let reached = async |(bypass, effect, posts): (bool, Effect, usize)| {
        let world = World::start().await;
        if bypass {
            bypassed(&world);
        }
        world.vapi.inject(Fault::delay(60_000).with_effect(effect).on("POST", "/"));
        let incoming = world.incoming(&world.caller(&phone(1))).within(Duration::from_secs(9));
        call_id(&world.send("call-start", &incoming).await);
        let posted = world.vapi.requests().into_iter().filter(|request| request.method == "POST").count();
        assert_eq!((world.vapi.calls_begun(), posted), (1, posts), "{bypass} {effect:?}");
    };
    join_all(attempts.map(reached)).await;
}

/// The attempt that begins beside it takes as long.
#[tokio::test]
async fn a_call_at_which_vapi_is_slow_reaches_the_agent() {
    let world = World::start().await;
    world.vapi.inject(Fault::delay(7_000).with_effect(Effect::First).on("POST", "/").times(2));
    let incoming = world.incoming(&world.caller(&phone(1))).within(Duration::from_secs(12));
    call_id(&world.send("call-start", &incoming).await);
    assert_eq!(world.vapi.calls_begun(), 1);
}
