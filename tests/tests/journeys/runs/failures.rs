//! Faults in runs: a busy model, a throttled table, a killed function.

use std::time::Duration;

use axum::{Json, Router, routing::post};
use local::standins::{
    self,
    llm::{self, Turn},
};
use serde_json::{Value, json};
use shared::models::{AutomationRun, RunLimits, RunStatus, Timestamp};
use tests::{
    Fault, Options, Trouble, World,
    automation::{AMPLE, RunSpec, begin, calls, whole},
    clients::until,
    http_server::Server,
    logs::Logs,
    metrics::Metrics,
    sms_without_call,
};

use super::{answer, bakery, done};

#[tokio::test]
async fn a_model_that_is_busy_is_asked_again_when_it_says() {
    let (world, _site) = bakery().await;
    world.llm.script([done(), answer()]);
    world.llm.inject(standins::Fault::status(429).with_header("Retry-After", "300"));
    let id = begin(&world, RunSpec::default()).await;
    assert_eq!(world.run_loop(AMPLE).await, 0);
    let run = whole(&world, id).await.run;
    assert_eq!((run.status, run.attempts, run.lease_until), (RunStatus::Running, 1, None));
    // The view names the reason of the wait.
    let waits = world.run(&id.to_string()).await.expect(200)["waits_for"].clone();
    assert_eq!((&waits["what"], &waits["id"]), (&json!("model"), &Value::Null), "{waits}");
    assert!(waits["error"].as_str().unwrap().contains("the LLM allows no more requests"), "{waits}");
    let until: Timestamp = waits["until"].as_str().unwrap().parse().unwrap();
    let seconds = (until.as_millis() - Timestamp::now().as_millis()) / 1000;
    assert!((290..=300).contains(&seconds), "{waits}");
    // The message for a successor comes earlier, and leaves the run alone.
    let early = world.aws.receive("runs", 299).unwrap();
    assert_eq!(world.run_loop_batch(early, AMPLE).await, 0);
    assert_eq!(world.llm.requests().len(), 1, "it is not asked before");
    world.later();
    let due = world.aws.receive("runs", 301).unwrap();
    assert_eq!(world.run_loop_batch(due, AMPLE).await, 0);
    assert_eq!(whole(&world, id).await.run.status, RunStatus::Completed);
    assert_eq!(world.run(&id.to_string()).await.expect(200)["waits_for"], Value::Null);
}

#[tokio::test]
async fn a_model_that_declines_for_good_ends_the_run_with_a_sentence() {
    let (world, _site) = bakery().await;
    for (status, sentence) in [(404, "no such model"), (413, "too long")] {
        world
            .llm
            .inject(standins::Fault::status(status).with_body(json!({"error": {"code": status, "message": "no"}})));
        let id = begin(&world, RunSpec::default()).await;
        assert_eq!(world.run_loop(AMPLE).await, 0);
        let run = whole(&world, id).await.run;
        assert_eq!(run.status, RunStatus::Failed);
        let error = run.error.unwrap();
        assert!(error.contains(sentence), "{error}");
    }
}

#[tokio::test]
async fn a_run_that_gets_nowhere_is_given_up() {
    let (world, _site) = bakery().await;
    let (metrics, logs) = (Metrics::capture(), Logs::capture());
    let id = begin(&world, RunSpec::default()).await;
    let message = world.aws.messages("runs").remove(0).to_string();
    for _ in 0..6 {
        world.llm.clear_faults();
        world.llm.inject(standins::Fault::status(503).with_header("Retry-After", "600").times(9));
        world.aws.post("runs", &message);
        world.run_loop(AMPLE).await;
        world.later();
    }
    let run = whole(&world, id).await.run;
    assert_eq!(run.status, RunStatus::Failed);
    assert!(run.error.unwrap().contains("LLM"));
    assert_eq!((metrics.sum("RunsGivenUp"), metrics.sum("PlatformRefusals")), (1.0, 0.0));
    assert!(logs.text().contains("a run was given up because of an outage"));
}

/// A run of an active automation that asks the model.
async fn prompted(world: &World) -> AutomationRun {
    let definition =
        json!({"name": "Ask", "trigger_type": "manual", "prompt": "Say hello.", "tools": [], "fingerprints": {}});
    let automation = world.activate(&definition).await;
    world.start_automation(&automation, "once", &json!({})).await
}

async fn failures_of(world: &World, run: &AutomationRun) -> u32 {
    world.automation_row(&run.automation_id.unwrap().to_string()).await.failures_in_a_row
}

#[tokio::test]
async fn a_refusal_of_the_platforms_account_is_an_outage_that_the_operator_hears_of() {
    for status in [401, 402, 403] {
        let (world, _site) = bakery().await;
        let (metrics, logs) = (Metrics::capture(), Logs::capture());
        world.llm.inject(standins::Fault::status(status).times(99));
        let run = prompted(&world).await;
        world.deliver_runs_without_pauses().await;
        let run = whole(&world, run.id).await.run;
        assert_eq!((run.status, run.outage), (RunStatus::Failed, true), "{status}");
        let error = "the LLM refused the platform's account, which its operator has to repair; try again later";
        assert_eq!(run.error.as_deref(), Some(error), "{status}");
        assert_eq!(failures_of(&world, &run).await, 0, "{status}");
        let refused = f64::from(u32::try_from(world.llm.requests().len()).unwrap());
        assert!(refused >= 5.0, "each attempt asked: {refused}");
        assert_eq!((metrics.sum("RunsGivenUp"), metrics.sum("PlatformRefusals")), (1.0, refused), "{status}");
        let told = logs.at("ERROR").into_iter().find(|line| line["upstream.service"] == "the LLM");
        assert!(told.unwrap()["message"].as_str().unwrap().starts_with("the platform's account was refused"));
    }
}

#[tokio::test]
async fn a_refusal_of_an_organizations_own_key_is_a_failure_of_its_automation_alone() {
    let options = llm::Options { api_key: "own".into(), ..llm::Options::default() };
    let own = llm::start("127.0.0.1:0".parse().unwrap(), options).unwrap();
    let open_hosts = vec![own.address().to_string()];
    let mut world = World::with(Options { open_hosts, ..Options::default() }).await;
    let key = json!({"api_key": "own", "base_url": own.url, "model": "their/model"});
    world.keys(&world.home, "PUT", "/llm", &key).await.expect(200);
    world.restart();
    let metrics = Metrics::capture();
    own.inject(standins::Fault::status(401));
    let run = prompted(&world).await;
    assert_eq!(world.run_loop(AMPLE).await, 0);
    let run = whole(&world, run.id).await.run;
    assert_eq!((run.status, run.outage), (RunStatus::Failed, false));
    assert_eq!(run.error.as_deref(), Some("the LLM refused our credentials; check its key"));
    assert_eq!(failures_of(&world, &run).await, 1);
    assert_eq!((metrics.sum("RunsGivenUp"), metrics.sum("PlatformRefusals")), (0.0, 0.0));
}

#[tokio::test]
async fn outages_between_steps_do_not_add_up() {
    let (world, site) = bakery().await;
    let id = begin(&world, RunSpec::default()).await;
    let message = world.aws.messages("runs").remove(0).to_string();
    for page in 0..6 {
        world.llm.clear_faults();
        world.llm.script([Turn::text(&calls(&format!("return wget(\"{}/page{page}\", 5000);", site.url)))]);
        world.llm.inject(standins::Fault::delay(0));
        world.llm.inject(standins::Fault::status(503).with_header("Retry-After", "600").times(9));
        world.aws.post("runs", &message);
        assert_eq!(world.run_loop(AMPLE).await, 0);
        let run = whole(&world, id).await;
        assert_eq!((run.run.status, run.run.attempts, run.replies.len()), (RunStatus::Running, 0, page + 1));
        assert!(run.run.resume_at.is_some(), "it is put off");
        world.later();
    }
}

#[tokio::test]
async fn outages_before_a_step_do_not_count_after_it() {
    let (world, site) = bakery().await;
    let id = begin(&world, RunSpec::default()).await;
    let message = world.aws.messages("runs").remove(0).to_string();
    let down = || standins::Fault::status(503).with_header("Retry-After", "600").times(9);
    let attempt = async || {
        world.aws.post("runs", &message);
        assert_eq!(world.run_loop(AMPLE).await, 0);
        world.later();
        whole(&world, id).await
    };
    for attempts in 1..5 {
        world.llm.clear_faults();
        world.llm.inject(down());
        assert_eq!(attempt().await.run.attempts, attempts);
    }
    world.llm.clear_faults();
    world.llm.script([Turn::text(&calls(&format!("return wget(\"{}/page\", 5000);", site.url)))]);
    world.llm.inject(standins::Fault::delay(0));
    world.llm.inject(down());
    let run = attempt().await;
    assert_eq!((run.run.status, run.run.attempts, run.replies.len()), (RunStatus::Running, 0, 1));
}

#[tokio::test]
async fn a_run_whose_time_is_over_before_the_model_answers_is_ended() {
    let (world, _site) = bakery().await;
    world.llm.inject(standins::Fault::status(429).with_header("Retry-After", "600"));
    let limits = RunLimits { seconds: 300, ..RunLimits::default() };
    let id = begin(&world, RunSpec { limits, ..RunSpec::default() }).await;
    assert_eq!(world.run_loop(AMPLE).await, 0);
    let run = whole(&world, id).await.run;
    assert_eq!(run.status, RunStatus::TimeLimit);
    let error = run.error.unwrap();
    assert!(error.contains("time was over") && error.contains("LLM"), "{error}");
}

/// Fencing: somebody who was slow comes back to a run that another one has by now.
#[tokio::test]
async fn a_process_without_the_lease_writes_nothing_to_the_run() {
    let (world, _site) = bakery().await;
    world.llm.script([done(), answer()]);
    world.llm.inject(standins::Fault::held());
    let id = begin(&world, RunSpec::default()).await;
    let batch = world.aws.receive("runs", 0).unwrap();
    let another_takes_it = async {
        until(|| !world.llm.requests().is_empty()).await;
        let mut taken = world.aws.rows("automation_runs").into_iter().find(|row| row["part"] == "run").unwrap();
        taken["lease_token"] = json!("another");
        world.aws.put("automation_runs", &taken);
        world.llm.release();
    };
    let (failed, ()) = futures_util::join!(world.run_loop_batch(batch, AMPLE), another_takes_it);
    let run = whole(&world, id).await;
    assert_eq!((failed, run.run.status, run.answers.len()), (0, RunStatus::Running, 0));
    assert_eq!((run.run.spent.iterations, world.llm.script_left().len()), (0, 1), "it stopped at once");
    let row = world.aws.rows("automation_runs").into_iter().find(|row| row["part"] == "run").unwrap();
    assert_eq!(row["lease_token"], "another", "and let go of nothing that is not its own");
}

/// The process dies each time before a step is written: nobody is left to say so but the count on the run's row.
#[tokio::test]
async fn a_run_that_crashes_each_invocation_ends() {
    let (world, _site) = bakery().await;
    let id = begin(&world, RunSpec::default()).await;
    world.llm.script([done(), answer()]);
    for _ in 0..5 {
        assert!(world.kill_run(Fault::new("Query", "automation_runs", Trouble::StallBefore)).await);
        world.later();
    }
    world.deliver_runs().await;
    let run = whole(&world, id).await.run;
    assert_eq!(run.status, RunStatus::Failed);
    let error = run.error.unwrap();
    assert!(error.contains("5 times") && error.contains("has done nothing; start it again"), "{error}");
    assert_eq!(world.llm.script_left().len(), 2, "the model was not asked");
}

/// The same after an effect: the error says that it happened, before anybody starts the run again.
#[tokio::test]
async fn a_run_given_up_after_an_effect_reports_the_effect() {
    // Killed before the result of its call is written, and after that.
    for (step, told) in [(1, "may have happened"), (2, "One of its steps is done")] {
        let world = World::start().await;
        let sms = world.tool(&sms_without_call(&world.home)).await;
        let name = sms["name"].as_str().unwrap();
        world.llm.script([Turn::text(&calls(&format!("return {name}({{text: \"Hi\"}});"))), done(), answer()]);
        let id = begin(&world, RunSpec { built_in: Vec::new(), tools: vec![sms.clone()], ..RunSpec::default() }).await;
        let after = Fault::new("TransactWriteItems", "automation_runs", Trouble::StallBefore).after(step);
        assert!(world.kill_run(after).await);
        assert_eq!(world.twilio.messages().len(), 1);
        let attempts = || world.aws.rows("automation_runs").iter().find_map(|row| row["attempts"].as_i64()).unwrap();
        while attempts() < 5 {
            world.later();
            assert!(world.kill_run(Fault::new("Query", "automation_runs", Trouble::StallBefore)).await);
        }
        world.later();
        world.deliver_runs().await;
        let run = whole(&world, id).await.run;
        let error = run.error.unwrap();
        assert!(error.contains("5 times") && error.contains(told) && error.contains("look at its steps"), "{error}");
    }
}

#[tokio::test]
async fn one_message_of_a_batch_that_fails_comes_again_and_its_neighbours_do_not() {
    let (world, _site) = bakery().await;
    let (first, second) = (begin(&world, RunSpec::default()).await, begin(&world, RunSpec::default()).await);
    world.aws.post("runs", "{\"run_id\": 7}");
    world.llm.script([done(), done(), answer(), answer()]);
    let batch = world.aws.receive("runs", 0).unwrap();
    assert_eq!(world.run_loop_batch(batch, AMPLE).await, 1);
    for id in [first, second] {
        assert_eq!(whole(&world, id).await.run.status, RunStatus::Completed);
    }
}

#[tokio::test]
async fn a_short_outage_before_the_steps_does_not_put_the_run_back() {
    for (action, on, after) in [
        ("GetItem", "automation_runs", 0),
        ("SendMessage", "runs", 0),
        ("UpdateItem", "automation_runs", 0),
        ("UpdateItem", "automation_runs", 1),
        ("Query", "automation_runs", 0),
    ] {
        let (world, _site) = bakery().await;
        world.llm.script([done(), answer()]);
        let id = begin(&world, RunSpec::default()).await;
        world.aws.inject(Fault::throttled(action, on).after(after));
        let batch = world.aws.receive("runs", 0).unwrap();
        assert_eq!(world.run_loop_batch(batch, AMPLE).await, 0, "{action} {on} {after}");
        assert_eq!(world.aws.faults_left(), 0, "{action} {on} {after}");
        assert_eq!(whole(&world, id).await.run.status, RunStatus::Completed, "{action} {on} {after}");
    }
}

/// SQS would bring the message back after 33 minutes.
#[tokio::test]
async fn a_long_outage_before_the_steps_puts_the_run_off_for_half_a_minute() {
    let (world, _site) = bakery().await;
    world.llm.script([done(), answer()]);
    let id = begin(&world, RunSpec::default()).await;
    world.aws.inject(Fault::throttled("GetItem", "automation_runs").times(999));
    let batch = world.aws.receive("runs", 0).unwrap();
    assert_eq!(world.run_loop_batch(batch, Duration::from_secs(2)).await, 0);
    assert!(world.aws.receive("runs", 29).is_none());
    let again = world.aws.receive("runs", 30).unwrap();
    world.aws.clear_faults();
    assert_eq!(world.run_loop_batch(again, AMPLE).await, 0);
    assert_eq!(whole(&world, id).await.run.status, RunStatus::Completed);
    // An outage without end has the message put aside, where it is seen.
    world.aws.inject(Fault::throttled("GetItem", "automation_runs").times(999));
    let (organization, last) = (&world.home.organization_id, 20);
    let message = json!({"organization_id": organization, "run_id": id, "put_off": last});
    world.aws.post("runs", &message.to_string());
    let batch = world.aws.receive("runs", 0).unwrap();
    assert_eq!(world.run_loop_batch(batch, Duration::from_secs(1)).await, 1);
}

#[tokio::test]
async fn an_outage_of_writes_does_not_multiply_the_messages_of_a_run() {
    let (world, _site) = bakery().await;
    begin(&world, RunSpec::default()).await;
    world.aws.inject(Fault::throttled("UpdateItem", "automation_runs").times(9_999));
    for _delivery in 0..2 {
        let batch = world.aws.receive("runs", 30).unwrap();
        world.run_loop_batch(batch, Duration::from_secs(2)).await;
        let waiting = world.aws.messages("runs");
        let tries = waiting.iter().filter(|message| message["put_off"] != 20).count();
        assert_eq!(tries, 1, "others only stand in for it: {waiting:?}");
    }
}

#[tokio::test]
async fn a_table_that_is_throttled_fails_the_message_and_nothing_is_lost() {
    for (action, after) in [("TransactWriteItems", 0), ("TransactWriteItems", 1), ("TransactWriteItems", 2)] {
        let (world, _site) = bakery().await;
        world.llm.script([done(), answer()]);
        let id = begin(&world, RunSpec::default()).await;
        world.aws.inject(Fault::throttled(action, "automation_runs").after(after));
        let batch = world.aws.receive("runs", 0).unwrap();
        world.run_loop_batch(batch, AMPLE).await;
        assert_eq!(world.aws.faults_left(), 0, "{action} {after}");
        let run = whole(&world, id).await;
        assert!(!run.run.status.is_over(), "{action} {after}: {:?}", run.run.status);
        // The model answers again: an answer that was not stored was not given.
        world.llm.script([done(), answer()].into_iter().skip(run.answers.len()));
        world.later();
        world.deliver_runs().await;
        assert_eq!(whole(&world, id).await.run.status, RunStatus::Completed, "{action} {after}");
    }
}

/// A model whose answer depends on its input alone.
async fn steady_model(world: &World, answers: Vec<String>) -> Server {
    let answer = move |Json(request): Json<Value>| {
        let turn = (request["messages"].as_array().unwrap().len() - 2) / 2;
        let content = answers[turn.min(answers.len() - 1)].clone();
        async move {
            Json(json!({
                "id": "gen-1", "object": "chat.completion", "created": 1, "model": "m",
                "choices": [{"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
            }))
        }
    };
    let model = Server::start(Router::new().route("/chat/completions", post(answer))).await;
    world.aws.put_secret("switchboard/llm", &json!({"api_key": "k", "base_url": model.url}));
    model
}

/// Killed before and after each of its writes, a run ends as if nothing had been, and its effect happens once.
#[tokio::test]
async fn a_run_killed_at_any_step_resumes_and_repeats_no_effect() {
    for trouble in [Trouble::StallBefore, Trouble::StallAfter] {
        let mut kills = 0;
        for step in 0.. {
            let world = World::start().await;
            let sms = world.tool(&sms_without_call(&world.home)).await;
            let send = calls(&format!("return {}({{text: \"At nine\"}});", sms["name"].as_str().unwrap()));
            let answers = vec![send, calls("return finalResponse();"), r#"{"opens": "9:00"}"#.to_owned()];
            let _model = steady_model(&world, answers).await;
            let wanted = RunSpec { built_in: Vec::new(), tools: vec![sms], ..RunSpec::default() };
            let id = begin(&world, wanted).await;
            let fault = Fault::new("*", "*", trouble.clone()).after(step);
            if !world.kill_run(fault).await {
                break;
            }
            kills += 1;
            world.later();
            // Longer than the window in which the same call would be a repetition.
            world.age_claims(3_600);
            // SQS's redelivery, and the message for a successor.
            let message = json!({"organization_id": world.home.organization_id, "run_id": id});
            world.aws.post("runs", &message.to_string());
            world.deliver_runs().await;
            let run = whole(&world, id).await;
            assert_eq!(run.run.status, RunStatus::Completed, "{trouble:?} {step}: {:?}", run.run.error);
            assert_eq!((run.answers.len(), run.replies.len()), (3, 2), "{trouble:?} {step}");
            // Before its outcome is known it may have happened: then it is not repeated, and the model is told so.
            let sent = world.twilio.messages().len();
            let unknown = run.replies[0].text.contains("not known");
            assert!(sent == 1 || (sent == 0 && unknown), "{trouble:?} {step}: {sent} sent, {}", run.replies[0].text);
        }
        assert!(kills > 10, "{kills}");
    }
}
