//! Runs of automations in run-loop, with a scripted model.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::needless_raw_string_hashes,
    reason = "a test says what is wrong and stops"
)]

mod failures;

use std::time::Duration;

use axum::{Router, extract::Path, http::StatusCode, routing::get};
use local::standins::{self, llm::Turn};
use serde_json::{Value, json};
use shared::{
    Error,
    models::{CallOutcome, RunLimits, RunStatus},
};
use tests::{
    Fault, Options, Trouble, World, api_request,
    automation::{AMPLE, RunSpec, begin, calls, conversations, organization, told, whole},
    http_server::Server,
    phone, sms_without_call,
};

/// A site with a page for every path, and a world whose functions may reach it.
async fn bakery() -> (World, Server) {
    let page = |Path(path): Path<String>| async move {
        match path.as_str() {
            "missing" => (StatusCode::NOT_FOUND, "no such page".to_owned()),
            "long" => (StatusCode::OK, "x".repeat(200_000)),
            path => (StatusCode::OK, format!("This is {path}. Sundays from 8 (until noon).")),
        }
    };
    let site = Server::start(Router::new().route("/{*path}", get(page))).await;
    let open_hosts = vec![site.url.trim_start_matches("http://").to_owned()];
    (World::with(Options { open_hosts, ..Options::default() }).await, site)
}

fn done() -> Turn {
    Turn::text(&calls("return finalResponse();"))
}

fn answer() -> Turn {
    Turn::text(r#"{"opens": "8:00"}"#)
}

async fn carried_out(world: &World, wanted: RunSpec) -> shared::models::WholeRun {
    let id = begin(world, wanted).await;
    assert_eq!(world.run_loop(AMPLE).await, 0);
    assert_eq!(world.llm.script_left(), [], "the script was played to its end");
    whole(world, id).await
}

#[tokio::test]
async fn a_run_calls_a_tool_and_ends_with_the_requested_result() {
    let (world, site) = bakery().await;
    let fetch = format!("return wget(\"{}/hours_(sunday)\", 5000);", site.url);
    world.llm.script([Turn::text(&calls(&fetch)), done(), answer()]);
    let run = carried_out(&world, RunSpec::default()).await;
    assert_eq!((run.run.status, run.run.error), (RunStatus::Completed, None));
    assert_eq!(run.result, Some(json!({"opens": "8:00"})));
    assert_eq!(site.seen().len(), 1);
    assert_eq!(site.seen()[0].target, "/hours_(sunday)");
    assert_eq!((run.answers.len(), run.replies.len()), (3, 2));
    let call = &run.replies[0].calls[0];
    assert_eq!((call.name.as_str(), call.outcome), ("wget", CallOutcome::Succeeded));
    assert!(run.replies[0].text.contains("Sundays from 8 (until noon)."), "{}", run.replies[0].text);
    assert!(run.replies[1].text.contains(r#""opens""#), "the schema is the format: {}", run.replies[1].text);
    let spent = run.run.spent;
    assert_eq!((spent.iterations, spent.calls), (2, 1));
    assert_eq!(spent.prompt_tokens, run.answers.iter().map(|answer| answer.prompt_tokens).sum::<u64>());
    assert!(spent.completion_tokens > 0);
    assert!(run.run.started_at.is_some() && run.run.finished_at.is_some() && run.run.lease_until.is_none());
    // The message for a successor is useless now, and harmless.
    world.later();
    assert_eq!(world.run_loop(AMPLE).await, 0);
}

/// The provider caches unchanged text.
#[tokio::test]
async fn the_system_prompt_is_the_same_in_every_request() {
    let (world, site) = bakery().await;
    let fetch = format!("return wget(\"{}/a\");", site.url);
    world.llm.script([Turn::text("Hm."), Turn::text(&calls(&fetch)), done(), Turn::text("What?"), answer()]);
    let id = begin(&world, RunSpec::default()).await;
    // With a crash after each of the first steps.
    for _ in 0..4 {
        world.kill_run(Fault::new("TransactWriteItems", "automation_runs", Trouble::StallAfter)).await;
        world.later();
    }
    world.deliver_runs().await;
    assert_eq!(whole(&world, id).await.run.status, RunStatus::Completed);
    let conversations = conversations(&world);
    assert_eq!(conversations.len(), 5);
    for (earlier, later) in conversations.iter().zip(&conversations[1..]) {
        assert_eq!(earlier[0].0, "system");
        assert_eq!(&later[..earlier.len()], &earlier[..], "the conversation only grows");
    }
}

#[tokio::test]
async fn a_malformed_call_is_told_in_every_turn_and_is_never_the_answer() {
    let (world, site) = bakery().await;
    let bad =
        calls(&format!("return wget(\"{0}/b\");\nreturn wget(\"{0}/a\" 5000);\nreturn wget(\"{0}/c\");", site.url));
    world.llm.script([Turn::text(&bad), Turn::text(&bad), done(), answer()]);
    let run = carried_out(&world, RunSpec::default()).await;
    assert_eq!(run.run.status, RunStatus::Completed);
    for reply in &run.replies[..2] {
        let outcomes: Vec<CallOutcome> = reply.calls.iter().map(|call| call.outcome).collect();
        let first = if reply.step == 1 { CallOutcome::Succeeded } else { CallOutcome::Repeated };
        assert_eq!(outcomes, [first, CallOutcome::Invalid], "the good call before it runs, and none behind it");
        assert!(reply.text.contains("line 5, column"), "where it went wrong: {}", reply.text);
        assert!(reply.text.contains("5000"), "what is concerned: {}", reply.text);
    }
    assert_eq!(site.seen().len(), 1);
}

#[tokio::test]
async fn final_response_waits_for_the_other_calls() {
    let (world, site) = bakery().await;
    let both = calls(&format!("return finalResponse();\nreturn wget(\"{}/a\");", site.url));
    world.llm.script([Turn::text(&both), answer()]);
    let run = carried_out(&world, RunSpec::default()).await;
    assert_eq!(run.run.status, RunStatus::Completed);
    assert_eq!(site.seen().len(), 1);
    let told = told(&world);
    assert!(told.contains("This is a.") && told.find("This is a.") < told.find("Give the final answer now"), "{told}");
}

#[tokio::test]
async fn an_answer_in_final_response_is_taken_if_it_fits() {
    let (world, site) = bakery().await;
    let given = calls(r#"return finalResponse({opens: "8:00"});"#);
    world.llm.script([Turn::text(&given)]);
    let run = carried_out(&world, RunSpec::default()).await;
    assert_eq!((run.run.status, run.result), (RunStatus::Completed, Some(json!({"opens": "8:00"}))));

    let unfit = calls("return finalResponse({opens: 8});");
    let beside = calls(&format!("return wget(\"{}/a\", \"soon\");\nreturn finalResponse();", site.url));
    world.llm.script([Turn::text(&beside), Turn::text(&unfit), answer()]);
    let run = carried_out(&world, RunSpec::default()).await;
    assert_eq!(run.run.status, RunStatus::Completed);
    let [first, second] = &run.replies[..] else { panic!("two replies") };
    assert!(
        first.text.contains("timeoutMs") && first.text.contains("finalResponse was not carried out"),
        "{}",
        first.text
    );
    assert!(second.text.contains("cannot be taken") && second.text.contains("opens"), "{}", second.text);
    assert!(site.seen().is_empty());
}

#[tokio::test]
async fn a_format_in_final_response_is_never_the_result() {
    let (world, _site) = bakery().await;
    let texts = json!({"type": "object", "additionalProperties": {"type": "string"}});
    for (format, schema) in [
        (r#"'{"opens": "string", "degrees": "number"}'"#, None),
        (r#"[{opens: "string"}]"#, None),
        (r#"{opens: "8:00"}"#, None),
        (r#"{type: "object", properties: {opens: {type: "string"}}}"#, Some(texts.clone())),
        (r#"{format: {opens: "<time>"}}"#, Some(texts.clone())),
        (r#"{opens: "HH:MM"}"#, Some(texts)),
        (r#""a time such as 8:00""#, Some(json!({"type": ["string", "object"]}))),
    ] {
        world.llm.script([Turn::text(&calls(&format!("return finalResponse({format});"))), answer()]);
        let run = carried_out(&world, RunSpec { schema, ..RunSpec::default() }).await;
        assert_eq!((run.run.status, run.result), (RunStatus::Completed, Some(json!({"opens": "8:00"}))), "{format}");
        assert!(run.replies[0].text.contains("Give the final answer now"), "{format}: {}", run.replies[0].text);
    }
    // Also for the request of the final answer.
    let format = Turn::text(&calls(r#"return finalResponse({opens: "string"});"#));
    world.llm.script([format.clone(), format, answer()]);
    let run = carried_out(&world, RunSpec { schema: None, ..RunSpec::default() }).await;
    assert_eq!((run.run.status, run.result), (RunStatus::Completed, Some(json!({"opens": "8:00"}))));
}

#[tokio::test]
async fn a_tool_that_was_not_offered_cannot_be_called() {
    let (world, site) = bakery().await;
    let fetch = format!("return wget(\"{}/a\");", site.url);
    world.llm.script([Turn::text(&calls(&fetch)), done(), answer()]);
    let run = carried_out(&world, RunSpec { built_in: Vec::new(), ..RunSpec::default() }).await;
    assert!(site.seen().is_empty());
    assert_eq!(run.replies[0].calls[0].outcome, CallOutcome::Unknown);
    assert!(
        run.replies[0].text.contains("no tool of this name. The tools are finalResponse."),
        "{}",
        run.replies[0].text
    );
}

#[tokio::test]
async fn the_schema_of_the_automation_is_enforced() {
    let (world, _site) = bakery().await;
    let fenced = Turn::text("Here you are:\n```json\n{\"opens\": \"8:00\"}\n```");
    world.llm.script([done(), Turn::text(r#"{"opens": 8}"#), Turn::text("At eight."), fenced]);
    let run = carried_out(&world, RunSpec::default()).await;
    assert_eq!((run.run.status, &run.result), (RunStatus::Completed, &Some(json!({"opens": "8:00"}))));
    assert!(run.replies[1].text.contains("opens") && run.replies[1].text.contains("text"), "{}", run.replies[1].text);

    world.llm.script([done(), Turn::text("1"), Turn::text("2"), Turn::text("3")]);
    let run = carried_out(&world, RunSpec::default()).await;
    assert_eq!((run.run.status, run.result), (RunStatus::Failed, None));
    assert!(run.run.error.unwrap().contains("after 2 corrections"));
}

#[tokio::test]
async fn at_the_limit_the_best_answer_is_asked_for_once() {
    let (world, site) = bakery().await;
    let fetch = |page: &str| Turn::text(&calls(&format!("return wget(\"{}/{page}\");", site.url)));
    let limits = RunLimits { iterations: 2, ..RunLimits::default() };
    world.llm.script([fetch("a"), fetch("b"), answer()]);
    let run = carried_out(&world, RunSpec { limits, ..RunSpec::default() }).await;
    assert_eq!((run.run.status, run.result), (RunStatus::IterationLimit, Some(json!({"opens": "8:00"}))));
    let told = told(&world);
    assert!(told.contains("This is b.") && told.contains("No more tools can be called"), "{told}");

    // The last answer is final: no repairs follow.
    world.llm.script([fetch("a"), fetch("b"), Turn::text("Eight!")]);
    let run = carried_out(&world, RunSpec { limits, ..RunSpec::default() }).await;
    assert_eq!((run.run.status, run.result), (RunStatus::IterationLimit, None));
    assert!(run.run.error.unwrap().contains("cannot be used"));
}

#[tokio::test]
async fn every_limit_ends_a_run_with_a_status_of_its_own() {
    let (world, site) = bakery().await;
    let pages = |pages: &[&str]| {
        let calls_of: Vec<String> = pages.iter().map(|page| format!("return wget(\"{}/{page}\");", site.url)).collect();
        Turn::text(&calls(&calls_of.join("\n")))
    };
    let defaults = RunLimits::default();
    for (limits, status) in [
        (RunLimits { calls: 2, ..defaults }, RunStatus::CallLimit),
        (RunLimits { tokens: 1, ..defaults }, RunStatus::TokenLimit),
        (RunLimits { seconds: 0, ..defaults }, RunStatus::TimeLimit),
        (RunLimits { iterations: 1, ..defaults }, RunStatus::IterationLimit),
    ] {
        world.llm.script([pages(&["a", "b", "c"]), answer()]);
        let run = carried_out(&world, RunSpec { limits, ..RunSpec::default() }).await;
        assert_eq!((run.run.status, run.result.is_some()), (status, true));
        let not_run = run.replies[0].calls.iter().filter(|call| call.outcome == CallOutcome::NotRun).count();
        assert_eq!(not_run, usize::from(status == RunStatus::CallLimit));
    }
    let costly = Turn {
        body: Some(json!({
            "id": "gen-1", "object": "chat.completion", "created": 1, "model": "m",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hm."}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15, "cost": 0.5},
        })),
        ..Turn::default()
    };
    world.llm.script([costly, answer()]);
    let run = carried_out(&world, RunSpec { limits: RunLimits { cost: 0.4, ..defaults }, ..RunSpec::default() }).await;
    assert_eq!(run.run.status, RunStatus::CostLimit);
    assert!(run.run.spent.cost >= 0.5);
}

#[tokio::test]
async fn calls_beyond_those_of_one_message_are_told_to_wait() {
    let (world, site) = bakery().await;
    let many: Vec<String> = (0..12).map(|page| format!("wget(\"{}/{page}\")", site.url)).collect();
    world.llm.script([Turn::text(&calls(&many.join(";\n"))), done(), answer()]);
    let run = carried_out(&world, RunSpec::default()).await;
    assert_eq!((site.seen().len(), run.run.spent.calls), (10, 10));
    let last = run.replies[0].calls.last().unwrap();
    assert_eq!(last.outcome, CallOutcome::NotRun);
    let (at, length) = last.result_at;
    assert!(run.replies[0].text[at..at + length].contains("in your next message"), "{}", run.replies[0].text);
}

#[tokio::test]
async fn no_call_at_all_gets_one_reminder() {
    let (world, _site) = bakery().await;
    world.llm.script([Turn::text("I think it opens at eight."), Turn::text("At eight."), answer()]);
    let run = carried_out(&world, RunSpec::default()).await;
    assert_eq!(run.run.status, RunStatus::Completed);
    assert!(run.replies[0].text.contains("````tool"), "{}", run.replies[0].text);
    assert!(run.replies[1].text.contains("Give the final answer now"), "{}", run.replies[1].text);
}

#[tokio::test]
async fn the_same_reading_call_is_answered_from_the_record() {
    let (world, site) = bakery().await;
    let fetch = Turn::text(&calls(&format!("return wget(\"{}/a\");", site.url)));
    let named =
        Turn::text(&calls(&format!("return wget({{uri: '{}/a'}});\nreturn wget(\"{}/a\");", site.url, site.url)));
    world.llm.script([fetch, named, done(), answer()]);
    let id = begin(&world, RunSpec::default()).await;
    // Also in an invocation after the one that made it.
    world.kill_run(Fault::new("TransactWriteItems", "automation_runs", Trouble::StallAfter).after(1)).await;
    world.later();
    world.deliver_runs().await;
    let run = whole(&world, id).await;
    assert_eq!(run.run.status, RunStatus::Completed);
    assert_eq!(site.seen().len(), 1);
    assert!(run.replies[1].calls.iter().all(|call| call.outcome == CallOutcome::Repeated), "{:?}", run.replies);
    assert_eq!(run.replies[1].text.matches("This is a.").count(), 2, "{}", run.replies[1].text);
    assert_eq!(run.run.spent.calls, 1);
}

#[tokio::test]
async fn results_are_cut_so_that_no_item_outgrows_the_table() {
    let (world, site) = bakery().await;
    let many: Vec<String> = (0..10).map(|page| format!("wget(\"{}/long\", {})", site.url, 1000 + page)).collect();
    world.llm.script([Turn::text(&calls(&many.join("\n"))), done(), answer()]);
    let run = carried_out(&world, RunSpec::default()).await;
    assert_eq!(run.run.status, RunStatus::Completed);
    assert!(run.replies[0].text.len() < 270_000, "{}", run.replies[0].text.len());
    assert!(run.replies[0].text.contains("cut"));
}

#[tokio::test]
async fn an_effect_happens_once_in_a_run() {
    let world = World::start().await;
    let sms = world.tool(&sms_without_call(&world.home)).await;
    let name = sms["name"].as_str().unwrap();
    let send = Turn::text(&calls(&format!("return {name}({{text: \"See you at nine\"}});")));
    world.llm.script([send.clone(), send, done(), answer()]);
    let run = carried_out(&world, RunSpec { built_in: Vec::new(), tools: vec![sms], ..RunSpec::default() }).await;
    assert_eq!(run.run.status, RunStatus::Completed, "{:?}", run.replies);
    let sent = world.twilio.messages();
    assert_eq!(sent.len(), 1, "{:?}", run.replies);
    assert_eq!((sent.len(), sent[0].to.as_str(), sent[0].body.as_str()), (1, phone(1).as_str(), "See you at nine"));
    // Its history is the tool's, too.
    let history = world.executions();
    assert!(history.iter().all(|row| row["trigger"] == "automation"), "{history:?}");
}

#[tokio::test]
async fn a_repeatable_read_is_asked_again_in_a_run() {
    let (world, site) = bakery().await;
    for (repeatable, again) in [(true, CallOutcome::Repeated), (false, CallOutcome::Succeeded)] {
        let mut config = api_request("GET", &format!("{}/stock", site.url));
        config["repeatable"] = json!(repeatable);
        let tool = world.tool(&config).await;
        let name = tool["name"].as_str().unwrap().replace('-', "_");
        assert_eq!(tool["config_metadata"]["repeatable"].as_bool().unwrap_or(true), repeatable);
        let look = Turn::text(&calls(&format!("return {name}();")));
        world.llm.script([look.clone(), look, done(), answer()]);
        let run = carried_out(&world, RunSpec { built_in: Vec::new(), tools: vec![tool], ..RunSpec::default() }).await;
        let outcomes: Vec<CallOutcome> = run.replies[..2].iter().map(|reply| reply.calls[0].outcome).collect();
        assert_eq!(outcomes, [CallOutcome::Succeeded, again], "repeatable: {repeatable}");
    }
}

#[tokio::test]
async fn a_tool_that_was_changed_or_deleted_since_is_not_run() {
    let world = World::start().await;
    let config = sms_without_call(&world.home);
    let (changed, deleted) = (world.tool(&config).await, world.tool(&config).await);
    let call = |tool: &Value| format!("return {}({{text: \"Hi\"}});", tool["name"].as_str().unwrap());
    world.llm.script([Turn::text(&calls(&[call(&changed), call(&deleted)].join("\n"))), done(), answer()]);
    let tools = vec![changed.clone(), deleted.clone()];
    let id = begin(&world, RunSpec { built_in: Vec::new(), tools, ..RunSpec::default() }).await;
    world.update(&changed, &json!({"recipients": ["+14155550199"]})).await.expect(200);
    world.delete(&deleted).await.expect(200);
    world.run_loop(AMPLE).await;
    let run = whole(&world, id).await;
    assert!(world.twilio.messages().is_empty());
    assert!(run.replies[0].text.contains("was changed") && run.replies[0].text.contains("was deleted"));
    assert_eq!(run.run.status, RunStatus::Completed);
}

#[tokio::test]
async fn a_run_is_carried_on_once_however_often_its_message_comes() {
    let (world, site) = bakery().await;
    let fetch = Turn::text(&calls(&format!("return wget(\"{}/a\");", site.url)));
    world.llm.script([fetch, done(), answer()]);
    let id = begin(&world, RunSpec::default()).await;
    let message = world.aws.messages("runs").remove(0).to_string();
    for _ in 0..4 {
        world.aws.post("runs", &message);
    }
    assert_eq!(world.run_loop(AMPLE).await, 0);
    world.aws.post("runs", &message);
    assert_eq!(world.run_loop(AMPLE).await, 0);
    assert_eq!(world.llm.script_left(), []);
    assert_eq!((world.llm.requests().len(), site.seen().len()), (3, 1));
    assert_eq!(whole(&world, id).await.run.status, RunStatus::Completed);
}

#[tokio::test]
async fn close_to_the_deadline_a_run_puts_itself_back_and_goes_on() {
    let (world, _site) = bakery().await;
    world.llm.script([done(), answer()]);
    let id = begin(&world, RunSpec::default()).await;
    let batch = world.aws.receive("runs", 0).unwrap();
    // Less than a step needs.
    assert_eq!(world.run_loop_batch(batch, Duration::from_secs(4)).await, 0);
    assert!(world.llm.requests().is_empty());
    let run = whole(&world, id).await.run;
    assert_eq!((run.status, run.lease_until), (RunStatus::Running, None));
    assert_eq!(world.run_loop(AMPLE).await, 0);
    assert_eq!(whole(&world, id).await.run.status, RunStatus::Completed);
}

#[tokio::test]
async fn the_organizations_own_model_is_asked_with_its_own_key() {
    let own = standins::llm::start(
        "127.0.0.1:0".parse().unwrap(),
        standins::llm::Options { api_key: "own".into(), ..Default::default() },
    )
    .unwrap();
    let open_hosts = vec![own.url.trim_start_matches("http://").to_owned()];
    let world = World::with(Options { open_hosts, ..Options::default() }).await;
    let key = json!({"api_key": "own", "base_url": own.url, "model": "their/model"});
    world.keys(&world.home, "PUT", "/llm", &key).await.expect(200);
    own.script([done(), answer()]);
    let id = begin(&world, RunSpec::default()).await;
    world.run_loop(AMPLE).await;
    assert_eq!(whole(&world, id).await.run.status, RunStatus::Completed);
    assert!(world.llm.requests().is_empty());
    assert!(own.requests().iter().all(|request| request.body["model"] == "their/model"));
}

// ---------------------------------------------------------------------------------------------------- cancelling

#[tokio::test]
async fn a_run_that_waits_is_cancelled_at_once() {
    let (world, _site) = bakery().await;
    let id = begin(&world, RunSpec::default()).await;
    let runs = &world.process.run_loop.runs;
    assert_eq!(runs.cancel(organization(&world), id, None).await.unwrap().status, RunStatus::Cancelled);
    world.run_loop(AMPLE).await;
    assert!(world.llm.requests().is_empty());
    assert!(matches!(runs.cancel(organization(&world), id, None).await, Err(Error::Conflict(_))));
    let theirs = world.other.organization_id.parse().unwrap();
    assert!(matches!(runs.cancel(theirs, id, None).await, Err(Error::NotFound(_))));
}

#[tokio::test]
async fn a_run_under_way_stops_at_its_next_step() {
    let (world, site) = bakery().await;
    let fetch = Turn::text(&calls(&format!("return wget(\"{}/a\");", site.url)));
    world.llm.script([fetch]);
    world.llm.inject(standins::Fault::held());
    let id = begin(&world, RunSpec::default()).await;
    let cancel = async {
        tests::clients::until(|| !world.llm.requests().is_empty()).await;
        let run = world.process.run_loop.runs.cancel(organization(&world), id, None).await.unwrap();
        assert_eq!(run.status, RunStatus::Running);
        assert!(run.cancel_requested_at.is_some());
        world.llm.release();
    };
    tokio::join!(world.run_loop(AMPLE), cancel);
    let run = whole(&world, id).await;
    assert_eq!((run.run.status, run.answers.len()), (RunStatus::Cancelled, 1));
    assert!(site.seen().is_empty(), "the calls of the answer are not made");
}
