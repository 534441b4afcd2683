//! Runs of automations over the API: started, listed, shown step by step, cancelled. How a run goes on is for
//! `journeys_runs.rs`.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::large_futures,
    reason = "a test says what is wrong and stops"
)]

use std::time::Duration;

use futures_util::join;
use serde_json::{Value, json};
use shared::models::{RunLimits, Timestamp};
use tests::{
    Answer, Fault, Options, Trouble, World, ai_sms, api_request,
    logs::Logs,
    phone,
    secret_names::{HARMLESS, SECRET, assert_shown, texts},
    standins::{self, llm::Turn, twilio},
};
use uuid::Uuid;

const NOBODY: &str = "00000000-0000-4000-8000-000000000000";
/// What Lambda sends at most.
const SIX_MEGABYTES: usize = 6 * 1_024 * 1_024;

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text"))
}

fn names(object: &Value) -> Vec<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}

fn field<'a>(answer: &'a Answer, name: &str) -> &'a str {
    let errors = answer.body["errors"].as_array().unwrap_or_else(|| panic!("{}", answer.body));
    let found = errors.iter().find(|error| error["field"] == name);
    text(&found.unwrap_or_else(|| panic!("{name} is not named: {}", answer.body))["problem"])
}

/// A tool that finds patients; what is searched for, and what is found, are marked.
async fn patients(world: &World) -> Value {
    let fields = json!([{"name": "patient", "type": "text"}]);
    let entries = json!([
        {"id": "e1", "patient": "Ada Lovelace", "text": "Brace is here. +1 415 555 0101, ada@example.com"},
        {"id": "e2", "patient": "Grace Hopper", "text": "Brace is late"},
    ]);
    let base = world.knowledge_base(&fields, &entries).await;
    let marks = json!(["query", "result.entries"]);
    world
        .tool(&json!({"type": "query", "label": "Find patients", "knowledge_base_id": base["id"], "redact": marks}))
        .await
}

fn calls(lines: &str) -> Turn {
    Turn::text(&format!("````tool\n{lines}\n````"))
}

/// The items of a run, by their part.
fn part(world: &World, run: &Value, part: &str) -> Option<Value> {
    world.aws.rows("automation_runs").into_iter().find(|row| row["id"] == run["id"] && row["part"] == part)
}

/// Changes attributes of a run's row.
fn change(world: &World, run: &Value, attributes: &Value) {
    let mut row = part(world, run, "run").unwrap();
    row.as_object_mut().unwrap().extend(attributes.as_object().unwrap().clone());
    world.aws.put("automation_runs", &row);
}

fn waiting(world: &World) -> usize {
    world.aws.messages("automation-runs").len()
}

async fn carry_on(world: &World) {
    assert_eq!(world.run_loop(Duration::from_secs(60)).await, 0);
}

fn not_sent() -> Fault {
    Fault::new("SendMessage", "automation-runs", Trouble::Error("ServiceUnavailable")).times(3)
}

// ---------------------------------------------------------------------------------------------------------- starting

#[tokio::test]
async fn a_prompt_is_enough_for_a_run() {
    let world = World::start().await;
    let logs = Logs::capture();
    let run = world.start_run(&json!({"prompt": "Call Ada Lovelace back."})).await.expect(202);
    let shown = [
        "cancel_requested_at",
        "created_at",
        "duration_ms",
        "error",
        "finished_at",
        "id",
        "limits",
        "model",
        "spent",
        "started_at",
        "status",
        "trigger_type",
        "updated_at",
        "user_id",
    ];
    let mut shown_now = names(&run);
    shown_now.sort_unstable();
    assert_eq!(shown_now, shown);
    assert_eq!((&run["status"], &run["trigger_type"]), (&json!("queued"), &json!("manual")));
    assert_eq!(run["user_id"], world.home.user_id);
    assert_eq!(run["limits"], json!(RunLimits::default()));
    assert_eq!((&run["spent"]["tokens"], &run["duration_ms"]), (&json!(0), &Value::Null));

    let message = json!({"organization_id": world.home.organization_id, "run_id": run["id"]});
    assert_eq!(world.aws.messages("automation-runs"), [message]);
    let prompt = part(&world, &run, "prompt").unwrap();
    assert_eq!(prompt["prompt"], "Call Ada Lovelace back.");
    let offered: Vec<&str> = prompt["tools"].as_array().unwrap().iter().map(|tool| text(&tool["name"])).collect();
    let built_in: Vec<&str> = world.process.runs.registry.get_all().map(|tool| tool.name.as_str()).collect();
    assert_eq!(offered, built_in, "all built-in tools, unless some are named");
    let kept = prompt["expires_at"].as_i64().unwrap() - Timestamp::now().as_seconds();
    assert!((29 * 86_400..=30 * 86_400).contains(&kept), "{kept} s");
    assert!(!logs.text().contains("Lovelace"), "{}", logs.text());
}

#[tokio::test]
async fn what_the_model_is_told_is_made_once_and_stays() {
    let world = World::start().await;
    let tool = patients(&world).await;
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    let body = json!({
        "prompt": "Where is the practice?", "system_prompt": "You know the town.", "tools": [tool["id"]], "schema": schema,
        "model": "stand-in/other", "limits": {"iterations": 3, "cost": 0.5, "seconds": null},
    });
    let run = world.start_run(&body).await.expect(202);
    let limits = RunLimits { iterations: 3, cost: 0.5, ..RunLimits::default() };
    assert_eq!((&run["limits"], &run["model"]), (&json!(limits), &json!("stand-in/other")));
    let prompt = part(&world, &run, "prompt").unwrap();
    let system = text(&prompt["system_prompt"]);
    assert!(system.starts_with("You know the town.\n\n# Tools"), "{system}");
    assert!(system.contains("find_patients(") && system.contains("finalResponse("), "{system}");

    world.llm.script([calls("return find_patients(\"brace\");"), calls("return finalResponse();"), Turn::text("{}")]);
    carry_on(&world).await;
    assert!(world.llm.script_left().is_empty(), "{:?}", world.llm.script_left());
    for request in world.llm.requests() {
        assert_eq!(request.body["messages"][0]["content"], system);
        assert_eq!(request.body["model"], "stand-in/other");
    }
    let shown = world.run(text(&run["id"])).await.expect(200);
    assert_eq!((&shown["status"], &shown["result"]), (&json!("completed"), &json!({})), "{shown:#}");
    assert_eq!(shown["schema"], schema);
    let offered = json!([{"name": "find_patients", "tool_id": tool["id"], "version": tool["version"]}]);
    assert_eq!(shown["tools"], offered);
}

#[tokio::test]
async fn every_wrong_field_is_named_at_once() {
    let world = World::start().await;
    let theirs = world.create_as(&world.other, &ai_sms()).await.expect(201);
    let target = json!({"type": "number", "number": phone(9)});
    let transfer = world.tool(&json!({"type": "transfer_call", "label": "Connect", "target": target})).await;
    let ours = world.tool(&ai_sms()).await;
    let body = json!({
        "prompt": 7, "system_prompt": [], "model": "x".repeat(201), "colour": "red",
        "tools": ["wgett", theirs["id"], NOBODY, transfer["id"], ours["id"], ours["id"], 7],
        "limits": {"iterations": 101, "calls_per_iteration": 0, "calls": 1.5, "tokens": 5_000_001, "cost": 100.5,
            "seconds": "soon", "days": 1},
    });
    let refused = world.start_run(&body).await;
    let expected = [
        "colour",
        "limits.calls",
        "limits.calls_per_iteration",
        "limits.cost",
        "limits.days",
        "limits.iterations",
        "limits.seconds",
        "limits.tokens",
        "model",
        "prompt",
        "system_prompt",
        "tools[0]",
        "tools[1]",
        "tools[2]",
        "tools[3]",
        "tools[5]",
        "tools[6]",
    ];
    assert_eq!(refused.wrong_fields(), expected);
    let unknown = field(&refused, "tools[0]");
    for tool in world.process.runs.registry.get_all() {
        assert!(unknown.contains(&tool.name), "{unknown}");
    }
    assert!(unknown.contains("by its id"), "{unknown}");
    assert_eq!(field(&refused, "tools[1]"), field(&refused, "tools[2]"), "another organization's is as good as none");
    assert!(field(&refused, "tools[3]").contains("transfers a call"), "{}", refused.body);
    for (body, wrong) in [
        (json!({}), "prompt"),
        (json!({"prompt": "\n"}), "prompt"),
        (json!([]), "body"),
        (json!({"prompt": "x", "tools": "wget"}), "tools"),
        (json!({"prompt": "x", "tools": vec!["x"; 51]}), "tools"),
        (json!({"prompt": "x", "limits": 5}), "limits"),
    ] {
        assert_eq!(world.start_run(&body).await.wrong_fields(), [wrong], "{body}");
    }
    assert_eq!((world.aws.rows("automation_runs").len(), waiting(&world)), (0, 0));
}

/// A schema that cannot be used would fail the run at its end.
#[tokio::test]
async fn a_schema_that_cannot_be_used_is_refused_with_its_place() {
    let world = World::start().await;
    let wrong = json!({"type": "object", "properties": {"city": {"type": "strin"}}});
    let fields = world.start_run(&json!({"prompt": "x", "schema": wrong, "limits": 1})).await.wrong_fields();
    assert!(fields[0] == "limits" && fields[1].starts_with("schema.properties.city"), "{fields:?}");
    assert_eq!(waiting(&world), 0);
}

#[tokio::test]
async fn each_field_and_all_of_it_have_a_size() {
    let world = World::start().await;
    let body = json!({
        "prompt": "x".repeat(100_001), "system_prompt": "ä".repeat(25_001),
        "schema": {"description": "x".repeat(50_000)},
    });
    let refused = world.start_run(&body).await;
    assert_eq!(refused.wrong_fields(), ["prompt", "schema", "system_prompt"]);
    assert!(field(&refused, "prompt").contains("100000 bytes"), "{}", refused.body);

    // What the model is told of the tools counts, too.
    let mut wordy = world.tool(&ai_sms()).await;
    wordy["function_schema"]["parameters"]["properties"]["text"]["description"] = json!("x".repeat(150_000));
    world.aws.put("tools", &wordy);
    let mut second = wordy.clone();
    second["id"] = json!(Uuid::now_v7());
    world.aws.put("tools", &second);
    let refused = world.start_run(&json!({"prompt": "x", "tools": [wordy["id"], second["id"]]})).await;
    assert_eq!(refused.wrong_fields(), ["tools"]);
    assert!(field(&refused, "tools").contains("offer fewer"), "{}", refused.body);
    assert!(world.aws.rows("automation_runs").is_empty());

    let largest = json!({
        "prompt": "x".repeat(100_000), "system_prompt": "x".repeat(50_000), "tools": [],
        "schema": {"description": "x".repeat(49_000)},
    });
    world.start_run(&largest).await.expect(202);
}

#[tokio::test]
async fn tools_are_offered_under_names_that_a_model_can_tell_apart() {
    let world = World::start().await;
    let mut ids = Vec::new();
    for name in ["send-sms", "send_sms", "finalResponse", "2nd"] {
        let tool = world.tool(&ai_sms()).await;
        world.update(&tool, &json!({"name": name})).await.expect(200);
        ids.push(tool["id"].clone());
    }
    let run = world.start_run(&json!({"prompt": "x", "tools": ids})).await.expect(202);
    let shown = world.run(text(&run["id"])).await.expect(200);
    let tools: Vec<(&Value, &str)> =
        shown["tools"].as_array().unwrap().iter().map(|tool| (&tool["tool_id"], text(&tool["name"]))).collect();
    let named = ["send_sms", "send_sms_2", "finalResponse_2", "_2nd"];
    assert_eq!(tools, ids.iter().zip(named).collect::<Vec<_>>());
    assert!(shown["tools"].as_array().unwrap().iter().all(|tool| tool["version"] == 1), "{}", shown["tools"]);
    let prompt = part(&world, &run, "prompt").unwrap();
    for name in named {
        assert!(text(&prompt["system_prompt"]).contains(&format!("\n{name}(text: string)")), "{name}");
    }
}

// ------------------------------------------------------------------------------------------------- the same again

#[tokio::test]
async fn the_same_key_is_the_same_run() {
    let world = World::start().await;
    let body = json!({"prompt": "Hello", "limits": {"calls": 1, "cost": 0.5}});
    let run = world.start_run_once("one", &body).await.expect(202);
    // The order of names does not matter.
    let reordered: Value = serde_json::from_str(r#"{"limits": {"cost": 0.5, "calls": 1}, "prompt": "Hello"}"#).unwrap();
    let again = world.start_run_once("one", &reordered).await.expect(200);
    assert_eq!(again, run);

    world.llm.script([calls("return finalResponse();"), Turn::text("\"done\"")]);
    carry_on(&world).await;
    assert!(world.llm.script_left().is_empty());
    let over = world.start_run_once("one", &body).await.expect(200);
    assert_eq!((&over["id"], &over["status"]), (&run["id"], &json!("completed")));
    carry_on(&world).await;

    let another = world.start_run_once("one", &json!({"prompt": "Goodbye"})).await;
    assert_eq!((another.status, &another.body["code"]), (409, &json!("conflict")));
    assert!(text(&another.body["detail"]).contains(text(&run["id"])), "{}", another.body);
    let other_key = world.start_run_once("two", &body).await.expect(202);
    assert_ne!(other_key["id"], run["id"]);
    let theirs = tests::Event::post(&format!("/api/{}/runs", world.other.slug), &body).user(&world.other.user_id);
    let theirs = world.send("runs", &theirs.header("idempotency-key", "one")).await.expect(202);
    assert_ne!(theirs["id"], run["id"], "a key is the organization's");
    for wrong in ["", "ä", &"x".repeat(201)] {
        assert_eq!(world.start_run_once(wrong, &body).await.wrong_fields(), ["Idempotency-Key"], "{wrong}");
    }
}

#[tokio::test]
async fn the_same_key_twice_at_once_is_one_run() {
    let world = World::start().await;
    let body = json!({"prompt": "Hello"});
    let (one, other) = join!(world.start_run_once("one", &body), world.start_run_once("one", &body));
    let mut statuses = [one.status, other.status];
    statuses.sort_unstable();
    assert_eq!((statuses, &one.body["id"]), ([200, 202], &other.body["id"]), "{} {}", one.body, other.body);
    world.llm.script([calls("return finalResponse();"), Turn::text("1")]);
    carry_on(&world).await;
    assert!(world.llm.script_left().is_empty(), "and it is carried out");
    assert_eq!(world.runs("").await.expect(200)["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_key_finds_its_run_whatever_became_of_its_tools() {
    let world = World::start().await;
    let tool = world.tool(&ai_sms()).await;
    let body = json!({"prompt": "Hello", "tools": [tool["id"]]});
    let run = world.start_run_once("one", &body).await.expect(202);
    world.delete(&tool).await.expect(200);
    assert_eq!(world.start_run_once("one", &body).await.expect(200)["id"], run["id"]);
}

#[tokio::test]
async fn a_key_of_a_run_that_is_being_dropped_is_a_conflict() {
    let world = World::start().await;
    let body = json!({"prompt": "Hello"});
    let run = world.start_run_once("one", &body).await.expect(202);
    change(&world, &run, &json!({"expires_at": 1}));
    let refused = world.start_run_once("one", &body).await;
    assert!(text(&refused.expect(409)["detail"]).contains("another"));
    world.run(text(&run["id"])).await.expect(404);
}

// ------------------------------------------------------------------------------------------------ the queue refuses

#[tokio::test]
async fn a_run_that_the_queue_does_not_take_is_over_and_says_so() {
    let world = World::start().await;
    world.aws.inject(not_sent());
    let refused = world.start_run(&json!({"prompt": "Hello"})).await;
    assert_eq!((refused.status, &refused.body["code"]), (503, &json!("unavailable")), "{}", refused.body);
    let runs = world.runs("").await.expect(200);
    let run = &runs["items"][0];
    assert_eq!((&run["status"], &run["started_at"]), (&json!("failed"), &Value::Null));
    assert!(text(&run["error"]).contains("queue") && run["finished_at"].is_string(), "{run}");
    assert_eq!(world.cancel_run(text(&run["id"])).await.status, 409);
}

#[tokio::test]
async fn a_repeat_with_the_key_tries_the_queue_again() {
    let world = World::start().await;
    let body = json!({"prompt": "Hello"});
    world.aws.inject(not_sent());
    world.start_run_once("one", &body).await.expect(503);
    world.aws.inject(not_sent());
    world.start_run_once("one", &body).await.expect(503);
    assert_eq!(waiting(&world), 0);
    let run = world.start_run_once("one", &body).await.expect(200);
    assert_eq!((&run["status"], &run["error"], &run["finished_at"]), (&json!("queued"), &Value::Null, &Value::Null));
    world.llm.script([calls("return finalResponse();"), Turn::text("1")]);
    carry_on(&world).await;
    let shown = world.run(text(&run["id"])).await.expect(200);
    assert_eq!((&shown["status"], &shown["result"]), (&json!("completed"), &json!(1)));
}

/// Neither the message nor the run's end could be written: the repeat finds a run that waits, and nobody knows of it.
#[tokio::test]
async fn a_first_try_that_died_on_the_way_to_the_queue_is_made_good_by_the_repeat() {
    let world = World::start().await;
    let body = json!({"prompt": "Hello"});
    world.aws.inject(not_sent());
    world.aws.inject(Fault::throttled("UpdateItem", "automation_runs"));
    let logs = Logs::capture();
    world.start_run_once("one", &body).await.expect(503);
    assert!(logs.text().contains("a run waits that nobody knows of"), "{}", logs.text());
    assert_eq!((&world.runs("").await.body["items"][0]["status"], waiting(&world)), (&json!("queued"), 0));
    let run = world.start_run_once("one", &body).await.expect(200);
    assert_eq!((&run["status"], waiting(&world)), (&json!("queued"), 1));
}

/// The message is there although the answer was lost, and somebody is at the run by now.
#[tokio::test]
async fn a_run_that_was_taken_up_all_the_same_goes_on() {
    let world = World::start().await;
    let body = json!({"prompt": "Hello"});
    let run = world.start_run_once("one", &body).await.expect(202);
    let later = Timestamp::now().as_millis() + 60_000;
    change(&world, &run, &json!({"lease_token": "somebody", "lease_until": later}));
    world.aws.inject(not_sent());
    let shown = world.start_run_once("one", &body).await.expect(200);
    assert_eq!(shown["status"], "queued");
}

// ------------------------------------------------------------------------------------------------------------ showing

#[tokio::test]
async fn runs_are_listed_by_page_newest_first_without_their_steps() {
    let world = World::start().await;
    let mut started = Vec::new();
    for number in 0..5 {
        let body = json!({"prompt": format!("Number {number}")});
        // The id of one with a key says nothing of when it was made.
        let key = format!("key {number}");
        let answer =
            if number % 2 == 0 { world.start_run(&body).await } else { world.start_run_once(&key, &body).await };
        started.insert(0, answer.expect(202));
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    world.start_run_as(&world.other, &json!({"prompt": "Theirs"})).await.expect(202);
    assert_eq!(world.runs("").await.expect(200), json!({"items": started, "next_cursor": null}));
    let (mut seen, mut query) = (Vec::new(), "?limit=2".to_owned());
    loop {
        let page = world.runs(&query).await.expect(200);
        seen.extend(page["items"].as_array().unwrap().clone());
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        let theirs = world.runs_as(&world.other, &format!("?cursor={cursor}")).await;
        assert!(theirs.status == 422 || theirs.body["items"].as_array().unwrap().len() <= 1, "{}", theirs.body);
        query = format!("?limit=2&cursor={cursor}");
    }
    assert_eq!(seen, started);
    for (query, field) in [("?limit=0", "limit"), ("?limit=201", "limit"), ("?cursor=x", "cursor")] {
        assert_eq!(world.runs(query).await.wrong_fields(), [field]);
    }
}

#[tokio::test]
async fn a_run_is_shown_step_by_step() {
    let world = World::start().await;
    let tool = world
        .tool(&json!({"type": "api_request", "label": "Look up", "method": "GET", "url": "https://127.0.0.1/"}))
        .await;
    let run = world.start_run(&json!({"prompt": "Look it up.", "tools": [tool["id"]]})).await.expect(202);
    let id = text(&run["id"]);
    let empty = world.run(id).await.expect(200);
    assert_eq!((&empty["steps"], &empty["result"], &empty["schema"]), (&json!([]), &Value::Null, &Value::Null));
    assert_eq!(empty["prompt"], "Look it up.");

    world.llm.script([
        Turn::text("I will look it up."),
        calls("return look_up();\nreturn no_such_tool(1);"),
        calls("return finalResponse();"),
        Turn::text("{\"found\": false}"),
    ]);
    carry_on(&world).await;
    let shown = world.run(id).await.expect(200);
    assert_eq!((&shown["status"], &shown["result"]), (&json!("completed"), &json!({"found": false})));
    assert!(shown["duration_ms"].is_u64() && shown["started_at"].is_string() && shown["finished_at"].is_string());
    let steps = shown["steps"].as_array().unwrap();
    let phases: Vec<&str> = steps.iter().map(|step| text(&step["phase"])).collect();
    assert_eq!(phases, ["tools", "tools", "tools", "final"]);
    assert_eq!(steps.iter().map(|step| step["step"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert_eq!(steps[0]["answer"], "I will look it up.");
    assert!(text(&steps[0]["reply"]).contains("no tool call"), "{}", steps[0]);
    let called = &steps[1]["calls"];
    assert_eq!((&called[0]["name"], &called[0]["outcome"]), (&json!("look_up"), &json!("failed")), "{called:#}");
    assert_eq!((&called[1]["name"], &called[1]["outcome"]), (&json!("no_such_tool"), &json!("unknown")));
    assert!(!text(&called[0]["result"]).is_empty() && called[0]["arguments"] == json!({}), "{called:#}");
    let reply = text(&steps[1]["reply"]);
    assert!(reply.contains("<error call=\"1\" tool=\"look_up\">\n…\n</error>"), "{reply}");
    assert!(!reply.contains(text(&called[0]["result"])), "a result stands with its call: {reply}");
    assert!(text(&steps[2]["calls"][0]["result"]).contains("final answer"), "{}", steps[2]);
    assert_eq!((&steps[3]["reply"], &steps[3]["calls"]), (&Value::Null, &json!([])));

    let sum = |name: &str| steps.iter().map(|step| step[name].as_u64().unwrap()).sum::<u64>();
    assert_eq!(shown["spent"]["prompt_tokens"], sum("prompt_tokens"));
    assert_eq!(shown["spent"]["tokens"], sum("prompt_tokens") + sum("completion_tokens"));
    let row = world.runs("").await.expect(200)["items"][0].clone();
    assert!(row.as_object().unwrap().iter().all(|(name, value)| shown[name] == *value), "{row} {shown}");
    for internal in ["organization_id", "lease_token", "lease_until", "attempts", "request_hash", "expires_at", "part"]
    {
        assert!(shown.get(internal).is_none() && row.get(internal).is_none(), "{internal}");
    }
}

#[tokio::test]
async fn steps_are_redacted_and_the_result_is_not() {
    let world = World::start().await;
    let tool = patients(&world).await;
    let prompt =
        "Is the brace of Ada Lovelace here? Mail ada@example.com, call +1 415 555 0101, api_key=blue-horse-seven.";
    let run = world.start_run(&json!({"prompt": prompt, "tools": [tool["id"]]})).await.expect(202);
    let result = json!({"patient": "Ada Lovelace", "phone": "+14155550101"});
    world.llm.script([
        calls("// Ada Lovelace, (415) 555-0101\nreturn find_patients({query: \"brace\\x20Lovelace\"});"),
        calls("return find_patients(\"Grace O\\'Hopper\" + 1);\nreturn find_people(\"Grace O\\'Hopper\");"),
        Turn::text("Ada Lovelace asked for \"brace Lovelace\"."),
        calls("return finalResponse();"),
        Turn::text(&result.to_string()),
    ]);
    carry_on(&world).await;
    assert!(world.llm.script_left().is_empty());
    let shown = world.run(text(&run["id"])).await.expect(200);
    assert_eq!(shown["result"], result, "the organization's own");
    let mut rest = shown.clone();
    rest["result"] = Value::Null;
    let rest = rest.to_string();
    for hidden in ["0101", "ada@example.com", "blue-horse", "brace Lovelace"] {
        assert!(!rest.contains(hidden), "{hidden}: {shown:#}");
    }
    for instead in ["[number]", "[email]", "[secret]", "[redacted]"] {
        assert!(rest.contains(instead), "{instead}: {shown:#}");
    }
    // In how many ways a call can be written: it is shown by its fields, or not at all.
    for escaped in ["x20", "Hopper"] {
        assert!(!rest.contains(escaped), "{escaped}: {shown:#}");
    }
    let answers: Vec<&str> = shown["steps"].as_array().unwrap().iter().map(|step| text(&step["answer"])).collect();
    assert_eq!(answers[..2], ["[redacted]"; 2]);
    assert!(answers[2].contains("asked for \"[redacted]\""), "{answers:?}");
    let results: Vec<&Value> =
        shown["steps"][1]["calls"].as_array().unwrap().iter().map(|call| &call["result"]).collect();
    assert_eq!(results, ["[redacted]", "[redacted]"]);
    let call = &shown["steps"][0]["calls"][0];
    assert_eq!(call["arguments"], json!({"query": "[redacted]"}));
    assert_eq!(call["result"], json!({"entries": "[redacted]", "matched": 1}), "field by field");
    let raw = part(&world, &run, "0001#reply").unwrap();
    assert!(text(&raw["text"]).contains("Ada Lovelace"), "the run itself goes on with all of it");
}

#[tokio::test]
async fn every_name_of_a_secret_hides_its_value() {
    let crm = twilio::start("127.0.0.1:0".parse().unwrap(), twilio::Options::default()).unwrap();
    let world = World::with(Options { open_hosts: vec![crm.address().to_string()], ..Options::default() }).await;
    for (names, expected) in [(&SECRET[..], false), (&HARMLESS[..], true)] {
        let (given, answered) = (texts(names, "given"), texts(names, "answered"));
        let mut config = api_request("POST", &crm.url);
        config["body"] = names.iter().map(|name| ((*name).to_owned(), json!({"mode": "ai", "prompt": "p"}))).collect();
        let tool = world.tool(&config).await;
        let run = world.start_run(&json!({"prompt": "Look it up.", "tools": [tool["id"]]})).await.expect(202);
        let arguments: Value = given.iter().map(|(name, text)| (format!("body_{name}"), text.clone())).collect();
        crm.inject(standins::Fault::status(200).with_body(json!(answered)));
        let name = text(&tool["name"]).replace('-', "_");
        world.llm.script([
            calls(&format!("return {name}({arguments});")),
            Turn::text(&format!("It was {}.", given.values().map(text).collect::<Vec<_>>().join(" "))),
            calls("return finalResponse();"),
            Turn::text("1"),
        ]);
        carry_on(&world).await;
        let shown = world.run(text(&run["id"])).await.expect(200);
        let call = &shown["steps"][0]["calls"][0];
        assert_eq!(
            (&call["outcome"], call["arguments"].as_object().unwrap().len()),
            (&json!("succeeded"), names.len()),
            "{call}"
        );
        assert_eq!(call["result"].as_object().unwrap().len(), names.len(), "{call}");
        assert_shown(call, &given, expected);
        assert_shown(call, &answered, expected);
        for step in [&shown["steps"][0]["answer"], &shown["steps"][1]["answer"]] {
            assert_shown(step, &given, expected);
        }
        assert_shown(&shown, &answered, expected);
    }
}

#[tokio::test]
async fn what_is_too_long_is_cut_and_says_so() {
    let world = World::start().await;
    let run = world.start_run(&json!({"prompt": "long ".repeat(15_000)})).await.expect(202);
    world.llm.script([
        Turn::text(&"word ".repeat(3_000)),
        calls("return finalResponse();"),
        Turn::text(&json!({"essay": "word ".repeat(3_000)}).to_string()),
    ]);
    carry_on(&world).await;
    let shown = world.run(text(&run["id"])).await.expect(200);
    let (answer, prompt) = (text(&shown["steps"][0]["answer"]), text(&shown["prompt"]));
    assert!(answer.ends_with(" of 15000 bytes)") && (4_000..4_200).contains(&answer.len()), "{} bytes", answer.len());
    assert!(
        prompt.contains("… (cut: the first ") && (12_000..17_000).contains(&prompt.len()),
        "{} bytes",
        prompt.len()
    );
    assert_eq!(text(&shown["result"]["essay"]).len(), 15_000, "the result is whole");
}

#[tokio::test]
async fn a_long_run_is_shown_within_what_lambda_can_send() {
    let world = World::start().await;
    let run = world.start_run(&json!({"prompt": "Hello"})).await.expect(202);
    let now = Timestamp::now();
    // Quotes double on their way out, and again.
    let words = "say \"so\" \\ ".repeat(1_500);
    for step in 1..=100 {
        let id = &run["id"];
        world.aws.put("automation_runs", &json!({
            "id": id, "part": format!("{step:04}#answer"), "step": step, "text": words, "started_at": now, "duration_ms": 5,
        }));
        let call = json!({"name": "x", "arguments": json!({"a": words[..3_000]}).to_string(), "outcome": "succeeded",
            "result_at": [0, words.len()], "duration_ms": 1});
        world.aws.put(
            "automation_runs",
            &json!({
                "id": id, "part": format!("{step:04}#reply"), "step": step, "text": words, "calls": vec![call; 45],
                "phase": {"phase": "tools", "reminded": false},
            }),
        );
    }
    let shown = world.run(text(&run["id"])).await.expect(200);
    let sent = json!({"statusCode": 200, "body": shown.to_string()}).to_string().len();
    assert!(sent < SIX_MEGABYTES, "{sent} bytes");
    assert!(sent > SIX_MEGABYTES / 12, "as much as will do: {sent} bytes");
    let steps = shown["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 100);
    let last = &steps[99];
    assert_eq!((last["calls"].as_array().unwrap().len(), &last["calls_left_out"]), (40, &json!(5)));
    assert!(text(&last["calls"][39]["result"]).ends_with(" bytes)"), "{}", last["calls"][39]);
    assert!(text(&last["answer"]).ends_with(" bytes)"), "{}", last["answer"]);
}

// ---------------------------------------------------------------------------------------------------------- cancelling

#[tokio::test]
async fn a_run_that_waits_is_cancelled_at_once() {
    let world = World::start().await;
    let run = world.start_run_once("one", &json!({"prompt": "Hello"})).await.expect(202);
    let id = text(&run["id"]);
    let cancelled = world.cancel_run(id).await.expect(200);
    assert_eq!(cancelled["status"], "cancelled");
    assert!(cancelled["cancel_requested_at"].is_string() && cancelled["finished_at"].is_string(), "{cancelled}");
    world.llm.script([Turn::text("never")]);
    carry_on(&world).await;
    assert_eq!(world.llm.script_left().len(), 1, "the message finds it over");
    let again = world.cancel_run(id).await.expect(409);
    assert!(text(&again["detail"]).contains("cancelled"), "{again}");
    let same = world.start_run_once("one", &json!({"prompt": "Hello"})).await.expect(200);
    assert_eq!((&same["status"], waiting(&world)), (&json!("cancelled"), 0), "and is not begun again");
}

#[tokio::test]
async fn a_run_that_somebody_is_at_is_asked_to_stop() {
    let world = World::start().await;
    let run = world.start_run(&json!({"prompt": "Hello"})).await.expect(202);
    let id = text(&run["id"]);
    let later = Timestamp::now().as_millis() + 60_000;
    let at_it =
        json!({"status": "running", "started_at": Timestamp::now(), "lease_token": "them", "lease_until": later});
    change(&world, &run, &at_it);
    let asked = world.cancel_run(id).await.expect(200);
    assert_eq!((&asked["status"], &asked["finished_at"]), (&json!("running"), &Value::Null));
    let at = asked["cancel_requested_at"].clone();
    assert!(at.is_string(), "{asked}");
    assert_eq!(world.cancel_run(id).await.expect(200)["cancel_requested_at"], at, "once is enough");
    // Whoever was at it died.
    change(&world, &run, &json!({"lease_until": 1}));
    assert_eq!(world.cancel_run(id).await.expect(200)["status"], "cancelled");
}

#[tokio::test]
async fn a_run_that_is_over_stays_as_it_ended() {
    let world = World::start().await;
    let run = world.start_run(&json!({"prompt": "Hello"})).await.expect(202);
    world.llm.script([calls("return finalResponse();"), Turn::text("1")]);
    carry_on(&world).await;
    let refused = world.cancel_run(text(&run["id"])).await.expect(409);
    assert!(text(&refused["detail"]).contains("completed"), "{refused}");
    assert_eq!(world.run(text(&run["id"])).await.expect(200)["status"], "completed");
}

#[tokio::test]
async fn another_organizations_run_is_not_found() {
    let world = World::start().await;
    let run = world.start_run(&json!({"prompt": "Hello"})).await.expect(202);
    let before = world.aws.rows("automation_runs");
    for id in [text(&run["id"]), NOBODY, "no-id"] {
        let shown = world.runs_as(&world.other, &format!("/{id}")).await.expect(404);
        assert_eq!(shown["detail"], "run not found");
        assert_eq!(world.cancel_run_as(&world.other, id).await.expect(404)["detail"], "run not found");
    }
    assert_eq!(world.runs_as(&world.other, "").await.expect(200)["items"], json!([]));
    assert_eq!(world.aws.rows("automation_runs"), before);
}
