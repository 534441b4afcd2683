//! The metrics of alarms and dashboard, against the metrics that the handlers write.

use std::{collections::BTreeSet, time::Duration};

use serde_json::{Value, json};
use shared::{
    automation::MOST_FAILURES,
    models::{IntentId, RunStatus, Timestamp},
};
use tests::{
    Event, Options, Template, World, ai_sms,
    automation::AMPLE,
    aws,
    metrics::{Metric, Metrics},
    phone, preemptive_sms,
    standins::{
        Fault, Standin,
        llm::{self, Turn},
    },
};

use super::{alarms::watched, dashboard::shown, text};

fn calls(metrics: &Metrics) -> Vec<String> {
    let answers = metrics.values().into_iter().filter(|((name, _), _)| name == "Calls");
    answers.map(|((_, dimensions), _)| dimensions["Answer"].clone()).collect()
}

async fn incoming(world: &World, caller: u32) -> Vec<String> {
    let metrics = Metrics::capture();
    let answer = world.send("call-start", &world.incoming(&world.caller(&phone(caller)))).await;
    assert_eq!((answer.status, answer.content_type.as_str()), (200, "text/xml"), "{}", answer.body);
    calls(&metrics)
}

#[tokio::test]
async fn a_call_counts_by_the_callers_outcome() {
    let world = World::start().await;
    world.attached(&preemptive_sms()).await;
    assert_eq!(incoming(&world, 1).await, ["agent"]);

    world.vapi.inject(Fault::status(404));
    assert_eq!(incoming(&world, 2).await, ["fallback"]);
    world.vapi.clear_faults();

    for (action, on, answer) in [
        ("GetItem", "phone_numbers", "fallback"),
        ("UpdateItem", "idempotency", "incomplete"),
        ("Query", "agent_tools", "incomplete"),
        ("PutItem", "calls", "incomplete"),
        ("SendMessageBatch", "start-tools", "incomplete"),
    ] {
        let code = if on == "start-tools" { "ServiceUnavailable" } else { "ProvisionedThroughputExceededException" };
        world.aws.inject(aws::Fault::new(action, on, aws::Trouble::Error(code)).times(9));
        assert_eq!(incoming(&world, 3).await, [answer], "{action} {on}");
        world.aws.clear_faults();
    }

    // The same request again is the same call and gets the same answer.
    let again = world.incoming(&world.caller(&phone(4)));
    let metrics = Metrics::capture();
    for _ in 0..3 {
        world.send("call-start", &again).await;
    }
    assert_eq!(calls(&metrics), ["agent"]);
}

#[tokio::test]
async fn settle_reports_open_changes_and_failures() {
    let world = World::start().await;
    let settled = async || {
        let metrics = Metrics::capture();
        world.settle().await;
        (metrics.sum("OpenIntents"), metrics.sum("SettleFailures"))
    };
    assert_eq!(settled().await, (0.0, 0.0));
    // An old intent of another version, a new one, and an old one whose turn comes later.
    let intent = |minutes: u64, owner_until: i64| {
        let begun = Timestamp::from_millis(Timestamp::now().as_millis() - i64::try_from(minutes * 60_000).unwrap());
        json!({
            "id": IntentId::generate().to_string(), "organization_id": world.home.organization_id,
            "change": "of_a_newer_version", "created_at": begun.to_string(), "owner_until": owner_until,
        })
    };
    let later = Timestamp::now().plus(Duration::from_secs(3_600)).as_millis();
    world.aws.put("intents", &intent(1, later));
    assert_eq!(settled().await, (0.0, 0.0));
    world.aws.put("intents", &intent(20, later));
    assert_eq!(settled().await, (1.0, 0.0));
    world.aws.put("intents", &intent(20, 1));
    assert_eq!(settled().await, (2.0, 1.0));
    // A failing part of `settle` does not stop the others.
    world.aws.inject(aws::Fault::new("Scan", "approvals", aws::Trouble::Error("AccessDeniedException")).times(9));
    world.aws.inject(aws::Fault::new("Query", "approvals", aws::Trouble::Error("AccessDeniedException")).times(9));
    assert_eq!(settled().await, (2.0, 2.0));
}

async fn over_its_budget(world: &World, model: &Standin<llm::Llm>) {
    let budgets = json!({"budgets": {"platform_cost_per_month": 0.7}});
    world.aws.change("organizations", &world.home.organization_id, budgets);
    let finish = "````tool\nreturn finalResponse();\n````";
    let answer = json!({
        "id": "gen-1", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": finish}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15, "cost": 0.5},
    });
    for run in 0..2 {
        world.start_run(&json!({"prompt": format!("Hello {run}")})).await.expect(202);
        model.script([Turn { body: Some(answer.clone()), ..Turn::default() }]);
        assert_eq!(world.run_loop(AMPLE).await, 0);
    }
}

#[tokio::test]
async fn a_budget_counts_as_used_up_once() {
    let world = World::start().await;
    let metrics = Metrics::capture();
    over_its_budget(&world, &world.llm).await;
    let spent: Vec<f64> =
        metrics.values().iter().filter(|((name, _), _)| name == "LlmCost").map(|(_, value)| *value).collect();
    assert_eq!((spent, metrics.sum("BudgetsUsedUp")), (vec![0.5, 0.5], 1.0));
}

/// A call that ends after its agent confirmed what no tool did.
async fn unproven_claim(world: &World, model: &Standin<llm::Llm>) {
    world.incoming_call(&world.home, "call-1", &phone(4));
    model.script([Turn::tool("report_claims", json!({"claims": [{"sentence": 1, "tool": null, "line": null}]}))]);
    let report = json!({"message": {
        "type": "end-of-call-report", "call": {"id": "call-1"},
        "artifact": {"messages": [{"role": "bot", "message": "I booked it."}]},
    }});
    let bearer = format!("Bearer {}", world.options.webhook_bearer.as_ref().unwrap());
    let event = Event::post("/api/vapi/events", &report).header("authorization", &bearer);
    world.send("calls", &event).await.expect(200);
}

/// An incoming call, a tool call and an event of VAPI's, each with a wrong proof of its sender.
async fn refused_requests(world: &World, tool: &Value) {
    let unsigned = world.incoming(&world.caller(&phone(5))).header("x-twilio-signature", "nonsense");
    world.send("call-start", &unsigned).await.expect(403);
    let called = &world.home.phone_number;
    let metadata =
        json!({"callerPhoneNumber": phone(1), "calledPhoneNumber": called, "callId": "call-0", "token": "wrong"});
    world.execute(text(&tool["id"]), &json!({"text": "Hello", "metadata": metadata})).await.expect(401);
    let report = json!({"message": {"type": "end-of-call-report", "call": {"id": "call-0"}}});
    let event = Event::post("/api/vapi/events", &report).header("authorization", "Bearer wrong");
    world.send("calls", &event).await.expect(401);
}

/// A run that ends because the LLM refuses the platform's account.
async fn refused_account(world: &World) {
    world.llm.inject(Fault::status(401).times(99));
    world.start_run(&json!({"prompt": "Hello"})).await.expect(202);
    world.deliver_runs_without_pauses().await;
    world.llm.clear_faults();
}

/// The code writes every metric of ours that alarms and dashboard name. A misspelt name would have no values, and its
/// alarm would never fire.
#[tokio::test]
async fn the_watched_metrics_are_those_that_the_code_writes() {
    let variables = vec![
        // No server listens there.
        ("ALERT_HOOK_URL", "https://127.0.0.1/alerts".to_owned()),
        ("ALERT_SECRET", "switchboard/alerts".to_owned()),
    ];
    let own = llm::Options { api_key: "own".into(), ..llm::Options::default() };
    let own = llm::start("127.0.0.1:0".parse().unwrap(), own).unwrap();
    let open_hosts = vec![own.address().to_string()];
    let mut world = World::with(Options { variables, open_hosts, ..Options::default() }).await;
    let metrics = Metrics::capture();

    let tool = world.attached(&ai_sms()).await;
    let by_phone = async |caller| world.send("call-start", &world.incoming(&world.caller(&phone(caller)))).await;
    by_phone(1).await;
    world.vapi.inject(Fault::status(404));
    by_phone(2).await;
    world.vapi.clear_faults();
    world.aws.inject(aws::Fault::throttled("PutItem", "calls").times(9));
    by_phone(3).await;
    world.aws.clear_faults();

    world.aws.inject(aws::Fault::throttled("GetItem", "tools").times(9));
    let call = world.call(&tool, json!({"text": "Hello"}));
    assert_eq!(world.call_tool(&call).await.expect(200)["success"], false);
    world.aws.clear_faults();

    refused_requests(&world, &tool).await;

    world.settle().await;
    refused_account(&world).await;
    over_its_budget(&world, &world.llm).await;
    let key = json!({"api_key": "own", "base_url": own.url, "model": "their/model", "verify_claims": true});
    world.keys(&world.home, "PUT", "/llm", &key).await.expect(200);
    world.restart();
    unproven_claim(&world, &own).await;
    over_its_budget(&world, &own).await;

    world.ledger_service("https://ledger.example");
    let entry = json!([{"id": "a", "tool": "ledger_post", "parameters": {"entry": "one"}}]);
    let automation = world.activate(&world.manual(&entry)).await;
    for number in 0..MOST_FAILURES {
        let run = world.start_automation(&automation, &format!("cause {number}"), &json!({})).await;
        world.process.run_loop.watch.run_ends(&run, RunStatus::Failed).await;
    }
    world.aws.change("tools", text(&tool["id"]), json!({"type": "of_a_newer_version"}));
    world.list("/tools").await;
    // Tokens can no longer be checked.
    world.aws.forget_secret("switchboard/tool-token");
    world.restart();
    let refused = world.call_tool(&call).await;
    assert!(refused.status >= 500, "{}", refused.body);

    let written = metrics.seen();
    let template = Template::read();
    let watched = watched(&template).into_iter().chain(shown(&template));
    let missing: Vec<(String, Metric)> = watched.filter(|(_, metric)| !is_written(metric, &written)).collect();
    assert!(missing.is_empty(), "nothing writes these: {missing:#?}\nthese are written: {written:#?}");
}

/// Whether a metric of that name and dimensions is written; one status of a run stands for all.
fn is_written(metric: &Metric, written: &BTreeSet<Metric>) -> bool {
    let (name, dimensions) = metric;
    written.contains(metric)
        || dimensions.get("Status").is_some_and(|status| {
            let known = serde_json::from_value::<RunStatus>(Value::from(status.as_str())).is_ok();
            known && written.iter().any(|(other, of)| other == name && of.keys().eq(dimensions.keys()))
        })
}
