//! Budgets: runs and executions within an hour, cost within a month, the platform's key.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::large_futures,
    reason = "a test says what is wrong and stops"
)]

mod days;
mod models;

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::{Value, json};
use shared::models::{RunLimits, RunStatus, Timestamp};
use tests::{
    Answer, Event, Fault, Tenant, Trouble, World, ai_sms,
    automation::{AMPLE, RunSpec, begin, whole},
    logs::Logs,
    sms_without_call,
    standins::{llm::Turn, vapi::ToolCall},
    within_one_hour,
};

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is not text"))
}

/// A world whose home organization has budgets of its own.
async fn with_budgets(budgets: Value) -> World {
    within_one_hour().await;
    let world = World::start().await;
    world.aws.change("organizations", &world.home.organization_id, json!({"budgets": budgets}));
    world
}

async fn usage_as(world: &World, tenant: &Tenant) -> Value {
    let event = Event::get(&format!("/api/{}/usage", tenant.slug)).user(&tenant.user_id);
    world.send("usage", &event).await.expect(200)
}

async fn usage(world: &World) -> Value {
    usage_as(world, &world.home).await
}

async fn start(world: &World) -> Answer {
    world.start_run(&json!({"prompt": "Hello"})).await
}

#[track_caller]
fn assert_over(answer: &Answer, budget: &str, limit: &Value) {
    assert_eq!((answer.status, &answer.content_type[..]), (429, "application/problem+json"), "{}", answer.body);
    let told = (&answer.body["code"], &answer.body["budget"], &answer.body["limit"]);
    assert_eq!(told, (&json!("over_budget"), &json!(budget), limit), "{}", answer.body);
    let until: Timestamp = text(&answer.body["until"]).parse().unwrap();
    let left = (until.as_millis() - Timestamp::now().as_millis()) / 1_000;
    let wait: i64 = answer.retry_after.as_ref().unwrap().parse().unwrap();
    assert!((left..=left + 2).contains(&wait), "{wait} s, and {left} s are left");
    let detail = text(&answer.body["detail"]);
    assert!(detail.contains(budget) && detail.contains(text(&answer.body["until"])), "{detail}");
}

/// A model's answer with this cost.
fn costing(cost: f64, said: &str) -> Turn {
    Turn {
        body: Some(json!({
            "id": "gen-1", "object": "chat.completion", "created": 1, "model": "m",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": said}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15, "cost": cost},
        })),
        ..Turn::default()
    }
}

const FINISH: &str = "````tool\nreturn finalResponse();\n````";

/// Another tool call in the same conversation.
fn again(call: &ToolCall, said: &str) -> ToolCall {
    let Value::Object(arguments) = json!({"text": said}) else { unreachable!() };
    ToolCall { arguments, ..call.clone() }
}

// ----------------------------------------------------------------------------------------------------------- runs

#[tokio::test]
async fn runs_beyond_those_of_the_hour_are_refused_and_not_counted() {
    let world = with_budgets(json!({"runs_per_hour": 2})).await;
    let body = json!({"prompt": "Hello"});
    world.start_run_once("one", &body).await.expect(202);
    world.start_run_once("one", &body).await.expect(200);
    assert_eq!(world.start_run(&json!({"prompt": ""})).await.status, 422);
    assert_eq!(usage(&world).await["runs_per_hour"]["used"], 1, "neither a repeat nor what is wrong counts");
    start(&world).await.expect(202);
    // The message that is sent before a run's row is dropped if there is no run.
    let waiting = || {
        let rows = world.aws.rows("automation_runs");
        let messages = world.aws.messages("runs").into_iter();
        messages.filter(|message| rows.iter().any(|row| row["id"] == message["run_id"])).count()
    };
    let before = waiting();
    for _ in 0..2 {
        assert_over(&start(&world).await, "runs_per_hour", &json!(2));
    }
    assert_eq!(waiting(), before, "nothing was queued");
    assert_eq!(world.runs("").await.expect(200)["items"].as_array().unwrap().len(), 2);
    assert_eq!(usage(&world).await["runs_per_hour"]["used"], 2);
    world.start_run_once("one", &body).await.expect(200);
    world.start_run_as(&world.other, &body).await.expect(202);

    // The next hour begins at zero: this hour's count is moved into another hour.
    for row in world.aws.rows("usage") {
        world.aws.delete("usage", text(&row["id"]));
    }
    start(&world).await.expect(202);
}

#[tokio::test]
async fn twenty_at_once_over_a_budget_of_five_are_exactly_five() {
    let world = with_budgets(json!({"runs_per_hour": 5})).await;
    let answers = join_all((0..20).map(|_| start(&world))).await;
    let count = |status: u16| answers.iter().filter(|answer| answer.status == status).count();
    assert_eq!((count(202), count(429)), (5, 15));
    assert_eq!(usage(&world).await["runs_per_hour"]["used"], 5);
}

#[tokio::test]
async fn a_budget_of_nothing_allows_nothing() {
    let world = with_budgets(json!({"runs_per_hour": 0})).await;
    assert_over(&start(&world).await, "runs_per_hour", &json!(0));
}

#[tokio::test]
async fn a_run_waits_for_a_count_that_another_run_makes() {
    let world = World::start().await;
    let busy = Fault::new("TransactWriteItems", "usage", Trouble::TransactionConflict).times(8);
    world.aws.inject(busy);
    start(&world).await.expect(202);
    assert_eq!(world.aws.faults_left(), 0);
    assert_eq!(usage(&world).await["runs_per_hour"]["used"], 1);
}

#[tokio::test]
async fn the_dry_runs_of_all_automations_count_together() {
    let world = with_budgets(json!({})).await;
    let mut automations = Vec::new();
    for name in ["One", "Two"] {
        let definition = json!({
            "name": name, "trigger_type": "manual", "quotas": {"runs_per_hour": 1},
            "actions": [{"id": "now", "tool": "current_time"}], "fingerprints": {"current_time": "built-in"},
        });
        automations.push(world.activate(&definition).await.id.to_string());
    }
    let dry = json!({"dry_run": true});
    for id in automations.iter().chain(&automations) {
        assert_eq!(world.run_by_hand(id, &dry).await.expect(202)["status"], "queued");
    }
    let mut counts = world.aws.rows("idempotency");
    counts.retain(|row| text(&row["id"]).contains("#dry-runs#"));
    assert_eq!((counts.len(), &counts[0]["count"]), (1, &json!(4)));
    world.aws.change("idempotency", text(&counts[0]["id"]), json!({"count": 1_000}));
    for id in &automations {
        let refused = world.run_by_hand(id, &dry).await.expect(202);
        assert_eq!(refused["status"], "run_limit", "{refused}");
        assert!(
            text(&refused["error"]).contains("the organization has reached its limit of 1000 dry runs"),
            "{refused}"
        );
    }
    assert_eq!(world.run_by_hand(&automations[0], &json!({})).await.expect(202)["status"], "queued");
}

// ---------------------------------------------------------------------------------------------------------- money

#[tokio::test]
async fn a_run_over_the_months_budget_ends_before_the_next_request() {
    let world = with_budgets(json!({"platform_cost_per_month": 0.4})).await;
    let run = start(&world).await.expect(202);
    world.llm.script([costing(0.5, FINISH)]);
    assert_eq!(world.run_loop(AMPLE).await, 0);
    let shown = world.run(text(&run["id"])).await.expect(200);
    assert_eq!((&shown["status"], &shown["result"]), (&json!("cost_limit"), &Value::Null), "{shown}");
    let until = text(&usage(&world).await["platform_cost_per_month"]["until"]).to_owned();
    let error = text(&shown["error"]);
    assert!(error.contains("platform_cost_per_month") && error.contains(&until), "{error}");
    assert_eq!(world.llm.requests().len(), 1);
    assert_eq!(usage(&world).await["platform_cost_per_month"]["used"], 0.5);

    assert_over(&start(&world).await, "platform_cost_per_month", &json!(0.4));
    // An own key has a budget of its own.
    world.keys(&world.home, "PUT", "/llm", &json!({"api_key": "sk-1"})).await.expect(200);
    assert_eq!(start(&world).await.status, 202);
}

#[tokio::test]
async fn an_answer_that_was_paid_for_is_used() {
    let world = with_budgets(json!({"platform_cost_per_month": 0.4})).await;
    let run = start(&world).await.expect(202);
    world.llm.script([costing(0.1, FINISH), costing(0.5, "\"done\"")]);
    assert_eq!(world.run_loop(AMPLE).await, 0);
    let shown = world.run(text(&run["id"])).await.expect(200);
    assert_eq!((&shown["status"], &shown["result"]), (&json!("completed"), &json!("done")), "{shown}");
}

/// More than 0.4 of the platform's money in this month.
fn use_up_the_money(world: &World) {
    let month = &Timestamp::now().to_string()[..7];
    let key = format!("{}#platform_cost_per_month#{month}", world.home.organization_id);
    world.aws.put("usage", &json!({"id": key, "used": 0.5, "expires_at": 4_000_000_000_u64}));
}

#[tokio::test]
async fn a_run_that_was_queued_before_the_money_was_gone_asks_nothing() {
    let world = with_budgets(json!({"platform_cost_per_month": 0.4})).await;
    let run = start(&world).await.expect(202);
    use_up_the_money(&world);
    assert_eq!(world.run_loop(AMPLE).await, 0);
    assert_eq!(world.run(text(&run["id"])).await.expect(200)["status"], "cost_limit");
    assert!(world.llm.requests().is_empty());
}

#[tokio::test]
async fn cost_that_cannot_be_counted_is_counted_with_the_next() {
    let world = World::start().await;
    let run = start(&world).await.expect(202);
    world.llm.script([costing(0.25, FINISH), costing(0.5, "\"done\"")]);
    let logs = Logs::capture();
    world.aws.inject(Fault::throttled("UpdateItem", "usage"));
    assert_eq!(world.run_loop(AMPLE).await, 0);
    assert!(logs.text().contains("was not counted"), "{}", logs.text());
    assert_eq!(world.run(text(&run["id"])).await.expect(200)["status"], "completed");
    assert_eq!(usage(&world).await["platform_cost_per_month"]["used"], 0.75);
}

#[tokio::test]
async fn a_cost_whose_answer_was_lost_is_counted_once() {
    let world = World::start().await;
    start(&world).await.expect(202);
    world.llm.script([costing(0.25, FINISH), costing(0.25, "\"done\"")]);
    world.aws.inject(Fault::new("UpdateItem", "usage", Trouble::DropAfter));
    assert_eq!(world.run_loop(AMPLE).await, 0);
    assert_eq!((world.aws.faults_left(), &usage(&world).await["platform_cost_per_month"]["used"]), (0, &json!(0.5)));
}

// ----------------------------------------------------------------------------------------------- the platform's key

#[tokio::test]
async fn on_the_platforms_key_a_run_has_ceilings_and_on_its_own_it_has_none() {
    let world = World::start().await;
    let body = json!({"prompt": "Hello", "limits": {"cost": 6, "seconds": 3_601}});
    let refused = world.start_run(&body).await;
    assert_eq!(refused.wrong_fields(), ["limits.cost", "limits.seconds"]);
    let problems = refused.body["errors"].to_string();
    assert!(problems.contains("at most 5 ") && problems.contains("at most 3600 "), "{problems}");
    assert!(problems.contains("/keys/llm"), "{problems}");
    world.start_run(&json!({"prompt": "Hello", "limits": {"cost": 5, "seconds": 3_600}})).await.expect(202);
    world.keys(&world.home, "PUT", "/llm", &json!({"api_key": "sk-1"})).await.expect(200);
    world.start_run(&body).await.expect(202);
}

#[tokio::test]
async fn a_run_that_comes_to_the_platforms_key_is_held_to_its_ceilings() {
    let world = World::start().await;
    let limits = RunLimits { cost: 50.0, ..RunLimits::default() };
    let id = begin(&world, RunSpec { limits, schema: None, ..RunSpec::default() }).await;
    world.llm.script([costing(5.5, "Hm."), Turn::text("\"done\"")]);
    assert_eq!(world.run_loop(AMPLE).await, 0);
    let run = whole(&world, id).await;
    assert_eq!((run.run.status, run.result), (RunStatus::CostLimit, Some(json!("done"))));
}

// ----------------------------------------------------------------------------------------------------- executions

#[tokio::test]
async fn executions_beyond_those_of_the_hour_are_a_sentence_and_nothing_is_sent() {
    let world = with_budgets(json!({"executions_per_hour": 2})).await;
    let (tool, other) = (world.attached(&ai_sms()).await, world.attached(&ai_sms()).await);
    let call = world.call(&tool, json!({"text": "One"}));
    world.call_tool(&call).await.result();
    world.call_tool(&call).await.result();
    assert_eq!(usage(&world).await["executions_per_hour"]["used"], 1, "a replay does not count");
    world.call_tool(&again(&call, "Two")).await.result();
    for refused in [again(&call, "Three"), world.call(&other, json!({"text": "Three"}))] {
        let refused = world.call_tool(&refused).await;
        assert!(refused.sentence().contains("within one hour"), "{}", refused.sentence());
    }
    world.call_tool(&call).await.result();
    assert_eq!(world.twilio.messages().len(), 2);
    let statuses: Vec<Value> = world.executions().iter().map(|row| row["status"].clone()).collect();
    assert_eq!(statuses.iter().filter(|status| **status == "limited").count(), 2, "{statuses:?}");
    assert_eq!(usage(&world).await["executions_per_hour"]["used"], 2);

    // Without a caller on the line it is the budget's own answer.
    let trial = json!({"tool_id": tool["id"], "arguments": {"text": "Hi"}, "caller_phone_number": "+14155550101", "dry_run": false});
    assert_over(&world.try_tool(&trial).await, "executions_per_hour", &json!(2));
    let mut dry = trial.clone();
    dry["dry_run"] = json!(true);
    world.try_tool(&dry).await.expect(200);
    let theirs = world.create_as(&world.other, &ai_sms()).await.expect(201);
    world.attach_as(&world.other, &world.other.agent_id, text(&theirs["id"])).await.expect(201);
    let mut elsewhere = world.call(&theirs, json!({"text": "Hello"}));
    elsewhere.phone_number.clone_from(&world.other.phone_number);
    elsewhere.assistant_id.clone_from(&world.other.assistant_id);
    world.call_tool(&elsewhere).await.result();
}

#[tokio::test]
async fn a_repeated_test_of_a_tool_is_answered_when_the_budget_is_used_up() {
    let world = with_budgets(json!({"executions_per_hour": 1})).await;
    let tool = world.tool(&ai_sms()).await;
    let trial = json!({"tool_id": tool["id"], "arguments": {"text": "Hi"}, "caller_phone_number": "+14155550101", "dry_run": false});
    let tried = async |key: &str| {
        let event = Event::post(&format!("/api/{}/tools/test", world.home.slug), &trial).user(&world.home.user_id);
        world.send("tools-test", &event.header("idempotency-key", key)).await
    };
    let first = tried("one").await.expect(200);
    let again = tried("one").await.expect(200);
    assert_eq!((&again["status"], &again["answer"]), (&json!("replayed"), &first["answer"]));
    assert_over(&tried("two").await, "executions_per_hour", &json!(1));
    assert_eq!(world.twilio.messages().len(), 1);
}

#[tokio::test]
async fn a_repeated_message_is_answered_when_the_money_is_gone() {
    let world = with_budgets(json!({"platform_cost_per_month": 0.4})).await;
    let said = async |key: &str, thread: &str| {
        let event = Event::post("/agent/chat", &json!({"message": "Hello", "thread_id": thread}));
        world.send("chat", &event.user(&world.home.user_id).header("idempotency-key", key)).await
    };
    world.llm.script([Turn::text(r#"{"tool": "none", "reason": "a greeting", "arguments": {}}"#), Turn::text("Hi!")]);
    let first = said("one", "main").await.expect(200);
    use_up_the_money(&world);
    let asked = world.llm.requests().len();
    assert_eq!(said("one", "main").await.expect(200), first);
    for thread in ["main", "another"] {
        assert_over(&said("two", thread).await, "platform_cost_per_month", &json!(0.4));
    }
    assert_eq!(world.llm.requests().len(), asked);
    let threads: Vec<Value> = world.aws.rows("threads").into_iter().filter(|row| row["part"] == "thread").collect();
    assert_eq!((threads.len(), threads[0].get("lease_token")), (1, None), "{threads:?}");
    // Nobody waits for another turn only to be refused then.
    let mut held = threads[0].clone();
    held["lease_token"] = json!("of another");
    held["lease_until"] = json!(Timestamp::now().plus(Duration::from_secs(600)).as_millis());
    world.aws.put("threads", &held);
    let began = Instant::now();
    assert_over(&said("three", "main").await, "platform_cost_per_month", &json!(0.4));
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
}

/// A process knows only its own counts: the price of no round trip before the effect.
#[tokio::test]
async fn a_new_process_lets_one_through_and_knows_then() {
    let mut world = with_budgets(json!({"executions_per_hour": 1})).await;
    let tool = world.attached(&ai_sms()).await;
    let call = world.call(&tool, json!({"text": "One"}));
    world.call_tool(&call).await.result();
    world.call_tool(&again(&call, "Two")).await.sentence();
    world.restart();
    world.call_tool(&again(&call, "Two")).await.result();
    world.call_tool(&again(&call, "Three")).await.sentence();
    assert_eq!((world.twilio.messages().len(), &usage(&world).await["executions_per_hour"]["used"]), (2, &json!(2)));
}

#[tokio::test]
async fn without_a_call_a_new_process_reads_the_used_up_budget_at_once() {
    let mut world = with_budgets(json!({"executions_per_hour": 1})).await;
    let mut later = ai_sms();
    later["async"] = json!(true);
    let tool = world.attached(&later).await;
    world.call_tool(&world.call(&tool, json!({"text": "One"}))).await.result();
    assert_eq!(world.run_queued().await, 0);
    world.call_tool(&world.call(&tool, json!({"text": "Two"}))).await.result();
    world.restart();
    assert_eq!(world.run_queued().await, 0);
    assert_eq!(world.twilio.messages().len(), 1);
    world.restart();
    let trial = json!({"tool_id": tool["id"], "arguments": {"text": "Hi"}, "caller_phone_number": "+14155550101", "dry_run": false});
    assert_over(&world.try_tool(&trial).await, "executions_per_hour", &json!(1));
}

/// The SDK alone would try for seconds, while a caller waits for the tools of the start.
#[tokio::test]
async fn a_budget_that_is_read_slowly_does_not_delay_a_tool() {
    let world = World::start().await;
    let mut later = ai_sms();
    later["async"] = json!(true);
    let tool = world.attached(&later).await;
    world.call_tool(&world.call(&tool, json!({"text": "One"}))).await.result();
    world.aws.clear_operations();
    world.aws.inject(Fault::new("BatchGetItem", "usage", Trouble::StallBefore).times(9));
    assert_eq!(world.run_queued().await, 0);
    let tries = world.aws.dynamodb().into_iter().filter(|done| done.action == "BatchGetItem" && done.on == ["usage"]);
    assert!(tries.count() < 3, "the SDK makes three");
    assert_eq!(world.twilio.messages().len(), 1);
}

#[tokio::test]
async fn a_run_hears_of_the_budget_of_executions_and_goes_on() {
    let world = with_budgets(json!({"executions_per_hour": 1})).await;
    let sms = world.tool(&sms_without_call(&world.home)).await;
    let call =
        |said: &str| Turn::text(&format!("````tool\nreturn {}({{text: \"{said}\"}});\n````", text(&sms["name"])));
    world.llm.script([call("One"), call("Two"), Turn::text(FINISH), Turn::text("\"done\"")]);
    let run = world.start_run(&json!({"prompt": "Text Ada.", "tools": [sms["id"]]})).await.expect(202);
    assert_eq!(world.run_loop(AMPLE).await, 0);
    let shown = world.run(text(&run["id"])).await.expect(200);
    assert_eq!(shown["status"], "completed", "{shown}");
    assert!(shown["steps"][1]["calls"][0]["result"].to_string().contains("within one hour"), "{shown}");
    assert_eq!(world.twilio.messages().len(), 1);
}

#[tokio::test]
async fn a_call_of_a_built_in_tool_that_fetches_an_address_is_an_execution() {
    let world = with_budgets(json!({"executions_per_hour": 1})).await;
    let get = |hours: u8| {
        let uri = format!("{}/opening-hours?{hours}", world.site.url);
        Turn::text(&format!("````tool\nreturn wget(\"{uri}\");\n````"))
    };
    let now = Turn::text("````tool\nreturn current_time();\n````");
    world.llm.script([get(1), get(2), now, Turn::text(FINISH), Turn::text("\"done\"")]);
    let run = world.start_run(&json!({"prompt": "When?", "tools": ["wget", "current_time"]})).await.expect(202);
    assert_eq!(world.run_loop(AMPLE).await, 0);
    let shown = world.run(text(&run["id"])).await.expect(200);
    let outcomes = (0..3).map(|step| text(&shown["steps"][step]["calls"][0]["outcome"])).collect::<Vec<_>>();
    assert_eq!(outcomes, ["succeeded", "failed", "succeeded"], "{shown}");
    assert!(shown["steps"][1]["calls"][0]["result"].to_string().contains("within one hour"), "{shown}");
    assert_eq!((world.site.requests().len(), &usage(&world).await["executions_per_hour"]["used"]), (1, &json!(1)));
}

#[tokio::test]
async fn a_question_of_a_built_in_tool_to_a_model_is_an_execution() {
    let world = with_budgets(json!({"executions_per_hour": 1})).await;
    let ask = |id: &str| {
        let parameters = json!({"text": "Guten Morgen", "instruction": "Translate it"});
        json!({"id": id, "tool": "llm_transform", "parameters": parameters})
    };
    let definition = json!({
        "name": "Twice", "trigger_type": "manual", "actions": [ask("one"), ask("two")],
        "fingerprints": {"llm_transform": "built-in"},
    });
    let automation = world.activate(&definition).await;
    world.llm.script([Turn::text("Good morning")]);
    let run = world.start_automation(&automation, "once", &json!({})).await;
    world.deliver_runs().await;
    let shown = world.run(&run.id.to_string()).await.expect(200);
    let statuses = (0..2).map(|action| text(&shown["actions"][action]["status"])).collect::<Vec<_>>();
    assert_eq!(statuses, ["succeeded", "failed"], "{shown}");
    assert!(text(&shown["actions"][1]["error"]).contains("within one hour"), "{shown}");
    assert_eq!((world.llm.requests().len(), &usage(&world).await["executions_per_hour"]["used"]), (1, &json!(1)));
}

#[tokio::test]
async fn an_execution_that_cannot_be_counted_is_answered_all_the_same() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    world.aws.inject(Fault::throttled("UpdateItem", "usage"));
    world.call_tool(&world.call(&tool, json!({"text": "One"}))).await.result();
    assert_eq!((world.aws.faults_left(), world.executions().len()), (0, 1));
}

// ---------------------------------------------------------------------------------------------------------- usage

#[tokio::test]
async fn usage_shows_the_used_part_of_each_budget_and_its_end() {
    let world = with_budgets(json!({"executions_per_hour": 7, "runs_per_hour": "many", "newer": {"a": 1}})).await;
    let home = &world.home;
    let row = json!({"user_id": home.user_id, "organization_id": home.organization_id, "role": "member"});
    world.aws.put("organization_members", &row);
    start(&world).await.expect(202);
    let shown = usage(&world).await;
    let budgets: Vec<&str> = shown.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(budgets.len(), 4, "{budgets:?}");
    let of = |name: &str| (&shown[name]["used"], &shown[name]["limit"]);
    assert_eq!(of("runs_per_hour"), (&json!(1), &json!(100)), "what cannot be read is the deployment's");
    assert_eq!(of("executions_per_hour"), (&json!(0), &json!(7)));
    assert_eq!(of("platform_cost_per_month"), (&json!(0), &json!(50.0)));
    let now = Timestamp::now().to_string();
    for (name, hour) in [("runs_per_hour", true), ("own_cost_per_month", false)] {
        let (from, until) = (text(&shown[name]["from"]), text(&shown[name]["until"]));
        assert!(from <= now.as_str() && now.as_str() < until, "{name}: {shown}");
        let round = if hour { ":00:00.000Z" } else { "-01T00:00:00.000Z" };
        assert!(from.ends_with(round) && until.ends_with(round), "{name}: {shown}");
    }
    assert_eq!(usage_as(&world, &world.other).await["runs_per_hour"]["used"], 0);
    for row in world.aws.rows("usage") {
        assert!(row["expires_at"].as_i64().unwrap() > Timestamp::now().as_seconds(), "{row}");
        assert!(
            row.as_object().unwrap().keys().all(|name| {
                ["id", "used", "day", "expires_at", "since"].contains(&name.as_str())
                    || name.starts_with("day_")
                    || name.starts_with("hour_")
            }),
            "{row}"
        );
    }
}
