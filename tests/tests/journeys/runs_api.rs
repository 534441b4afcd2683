//! Runs over the API: started, listed, shown step by step, cancelled. `runs.rs` covers their execution.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::large_futures,
    reason = "a test says what is wrong and stops"
)]

mod list_and_show;

use std::{collections::BTreeSet, time::Duration};

use axum::{Router, http::StatusCode, response::IntoResponse, routing::get};
use futures_util::join;
use serde_json::{Value, json};
use shared::models::{RunLimits, Timestamp};
use tests::{
    Answer, Fault, Options, Trouble, World, ai_sms, http_server::Server, logs::Logs, phone, sms_without_call,
    standins::llm::Turn,
};
use uuid::Uuid;

const NOBODY: &str = "00000000-0000-4000-8000-000000000000";
/// Lambda's limit for an answer.
const SIX_MEGABYTES: usize = 6 * 1_024 * 1_024;

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is not text"))
}

fn names(object: &Value) -> Vec<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}

fn field<'a>(answer: &'a Answer, name: &str) -> &'a str {
    let errors = answer.body["errors"].as_array().unwrap_or_else(|| panic!("{}", answer.body));
    let found = errors.iter().find(|error| error["field"] == name);
    text(&found.unwrap_or_else(|| panic!("{name} is not named: {}", answer.body))["problem"])
}

/// A tool that finds patients; query and result are marked.
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

/// Runs on the queue; one without an idempotency key has a later message, too.
fn waiting(world: &World) -> usize {
    let runs: BTreeSet<String> = world.aws.messages("runs").iter().map(Value::to_string).collect();
    runs.len()
}

async fn carry_on(world: &World) {
    assert_eq!(world.run_loop(Duration::from_secs(60)).await, 0);
}

fn not_sent() -> Fault {
    Fault::new("SendMessage", "runs", Trouble::Error("ServiceUnavailable")).times(3)
}

// ---------------------------------------------------------------------------------------------------------- starting

#[tokio::test]
async fn a_prompt_is_enough_for_a_run() {
    let world = World::start().await;
    let logs = Logs::capture();
    let run = world.start_run(&json!({"prompt": "Call Ada Lovelace back."})).await.expect(202);
    let shown = [
        "actions_executed",
        "actions_failed",
        "automation_id",
        "automation_version",
        "cancel_requested_at",
        "created_at",
        "dry_run",
        "duration_ms",
        "error",
        "event_id",
        "finished_at",
        "id",
        "limits",
        "model",
        "parent_run_id",
        "retried_by",
        "retry_of",
        "scheduled_for",
        "spent",
        "started_at",
        "status",
        "trigger_type",
        "updated_at",
        "user_id",
        "waits_for",
    ];
    let mut shown_now = names(&run);
    shown_now.sort_unstable();
    assert_eq!(shown_now, shown);
    assert_eq!((&run["status"], &run["trigger_type"]), (&json!("queued"), &json!("manual")));
    assert_eq!(run["user_id"], world.home.user_id);
    assert_eq!(run["limits"], json!(RunLimits::default()));
    assert_eq!((&run["spent"]["tokens"], &run["duration_ms"]), (&json!(0), &Value::Null));

    let message = json!({"organization_id": world.home.organization_id, "run_id": run["id"]});
    assert!(world.aws.messages("runs").contains(&message));
    assert_eq!(waiting(&world), 1);
    let prompt = part(&world, &run, "prompt").unwrap();
    assert_eq!(prompt["prompt"], "Call Ada Lovelace back.");
    let offered: Vec<&str> = prompt["tools"].as_array().unwrap().iter().map(|tool| text(&tool["name"])).collect();
    let built_in: Vec<&str> = world.process.runs.catalogue.built_in.names().collect();
    assert_eq!(offered, built_in, "all built-in tools, unless some are named");
    let kept = prompt["expires_at"].as_i64().unwrap() - Timestamp::now().as_seconds();
    assert!((29 * 86_400..=30 * 86_400).contains(&kept), "{kept} s");
    assert!(!logs.text().contains("Lovelace"), "{}", logs.text());
}

#[tokio::test]
async fn the_prompt_of_a_run_is_made_once() {
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
    let offered = json!([{
        "name": "find_patients", "tool_id": tool["id"], "version": tool["version"], "fingerprint": null, "allowed_hosts": [],
    }]);
    assert_eq!(shown["tools"], offered);
}

#[tokio::test]
async fn the_time_in_a_tools_descriptions_is_that_of_the_runs_start() {
    let world = World::start().await;
    let mut config = sms_without_call(&world.home);
    config["description"] = json!("Confirms the visit. Today is {{now}}.");
    config["text"]["prompt"] = json!("The text, written at {{now}}");
    let tool = world.tool(&config).await;
    let before = Timestamp::now();
    let run = world.start_run(&json!({"prompt": "Confirm it.", "tools": [tool["id"]]})).await.expect(202);
    let system = text(&part(&world, &run, "prompt").unwrap()["system_prompt"]).to_owned();
    for before_it in ["Today is ", "written at "] {
        let (_, rest) = system.split_once(before_it).unwrap();
        let time: Timestamp = rest.split_whitespace().next().unwrap().trim_end_matches('.').parse().unwrap();
        assert!(before <= time && time <= Timestamp::now(), "{system}");
    }
    world.llm.script([
        calls("return send_confirmation(\"Nine\");"),
        calls("return finalResponse();"),
        Turn::text("Done"),
    ]);
    carry_on(&world).await;
    assert_eq!(world.twilio.messages()[0].body, "Nine");
    assert!(world.llm.requests().iter().all(|request| request.body["messages"][0]["content"] == system));
}

#[tokio::test]
async fn every_wrong_field_is_named_at_once() {
    let world = World::start().await;
    let theirs = world.create_as(&world.other, &ai_sms()).await.expect(201);
    let target = json!({"type": "number", "number": phone(9)});
    let transfer = world.tool(&json!({"type": "transfer_call", "label": "Connect", "target": target})).await;
    let ours = world.tool(&sms_without_call(&world.home)).await;
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
    for name in world.process.runs.catalogue.built_in.names() {
        assert!(unknown.contains(name), "{unknown}");
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

/// And only they: neither another host nor where an allowed one redirects to.
#[tokio::test]
async fn wget_goes_to_the_hosts_that_a_run_names() {
    let page = Server::start(Router::new().route("/{*path}", get(|| async { "elsewhere" }))).await;
    let target = format!("{}/there", page.url);
    let site = Router::new().route("/page", get(|| async { "at home" })).route(
        "/moved",
        get(move || async move { (StatusCode::FOUND, [("location", target.clone())]).into_response() }),
    );
    let site = Server::start(site).await;
    let host = |server: &Server| server.url.trim_start_matches("http://").to_owned();
    let open_hosts = vec![host(&site), host(&page)];
    let world = World::with(Options { open_hosts, ..Options::default() }).await;
    let held = json!({"built_in": "wget", "allowed_hosts": [host(&site)]});
    let run = world.start_run(&json!({"prompt": "Look", "tools": [held]})).await.expect(202);
    world.llm.script([
        calls(&format!("wget(\"{0}/page\");\nwget(\"{1}/page\");\nwget(\"{0}/moved\");", site.url, page.url)),
        calls("finalResponse();"),
        Turn::text("{}"),
    ]);
    assert_eq!(world.run_loop(Duration::from_secs(60)).await, 0);
    let shown = world.run(text(&run["id"])).await.expect(200);
    assert_eq!(shown["tools"][0]["allowed_hosts"], json!([host(&site)]));
    assert!(text(&shown["system_prompt"]).contains(&format!("Only from {}.", host(&site))), "{shown:#}");
    let outcomes: Vec<&str> =
        shown["steps"][0]["calls"].as_array().unwrap().iter().map(|it| text(&it["outcome"])).collect();
    assert_eq!(outcomes, ["succeeded", "failed", "failed"], "{shown:#}");
    for call in [1, 2] {
        let told = text(&shown["steps"][0]["calls"][call]["result"]);
        assert!(told.contains("is not one of those that are allowed"), "{told}");
    }
    assert!(page.seen().is_empty());

    let refused = json!({"prompt": "x", "tools": [{"built_in": "current_time", "allowed_hosts": ["a.example"]}]});
    assert_eq!(world.start_run(&refused).await.wrong_fields(), ["tools[0].allowed_hosts"]);
}

#[tokio::test]
async fn a_tool_that_needs_a_phone_call_is_refused_with_the_reason() {
    let world = World::start().await;
    let free = sms_without_call(&world.home);
    let with = |change: &dyn Fn(&mut Value)| {
        let mut config = free.clone();
        change(&mut config);
        config
    };
    let number = json!({"type": "number", "number": phone(9)});
    let lookup = json!({"mode": "fixed", "value": "https://crm.example.com/?phone={{caller_phone_number}}"});
    for (config, reason) in [
        (with(&|config| config["from"] = json!({"type": "called_number"})), "sends from the number that was called"),
        (
            with(&|config| config["text"] = json!({"mode": "fixed", "value": "From {{called_phone_number}}"})),
            "uses {{called_phone_number}}",
        ),
        (
            with(&|config| config["text"]["prompt"] = json!("Greet {{ caller_phone_number }}")),
            "uses {{caller_phone_number}}",
        ),
        (
            with(&|config| config["allowed_recipients"] = json!([phone(1), "{{caller_phone_number}}"])),
            "uses {{caller_phone_number}}",
        ),
        (
            json!({"type": "api_request", "label": "Look up", "method": "GET", "url": lookup}),
            "uses {{caller_phone_number}}",
        ),
        (json!({"type": "transfer_call", "label": "Connect", "target": number}), "transfers a call"),
    ] {
        let tool = world.tool(&config).await;
        let refused = world.start_run(&json!({"prompt": "x", "tools": [tool["id"]]})).await;
        let expected = format!("{reason}, so it works in phone calls only; leave it out, or give it to an agent");
        assert_eq!(field(&refused, "tools[0]"), expected);
    }
    assert_eq!(waiting(&world), 0);
    let tool = world.tool(&free).await;
    world.start_run(&json!({"prompt": "x", "tools": [tool["id"]]})).await.expect(202);
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

    // The tools' descriptions for the model count, too.
    let mut wordy = world.tool(&sms_without_call(&world.home)).await;
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
        let tool = world.tool(&sms_without_call(&world.home)).await;
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
async fn a_repeated_key_finds_its_run_after_its_tools_changed() {
    let world = World::start().await;
    let tool = world.tool(&sms_without_call(&world.home)).await;
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
    // Without the message before its row there is no run.
    world.aws.inject(not_sent());
    world.start_run(&json!({"prompt": "Hello"})).await.expect(503);
    assert_eq!(world.runs("").await.expect(200)["items"], json!([]));
    world.aws.inject(not_sent().after(1));
    let refused = world.start_run(&json!({"prompt": "Hello"})).await;
    assert_eq!((refused.status, &refused.body["code"]), (503, &json!("unavailable")), "{}", refused.body);
    let runs = world.runs("").await.expect(200);
    let run = &runs["items"][0];
    assert_eq!((&run["status"], &run["started_at"]), (&json!("failed"), &Value::Null));
    assert!(text(&run["error"]).contains("queue") && run["finished_at"].is_string(), "{run}");
    assert_eq!(world.cancel_run(text(&run["id"])).await.status, 409);
}

#[tokio::test]
async fn a_run_is_carried_out_after_a_crash_before_its_message() {
    let world = World::start().await;
    world.aws.inject(Fault::new("TransactWriteItems", "automation_runs", Trouble::StallAfter));
    let body = json!({"prompt": "Hello"});
    tokio::select! {
        _ = world.start_run(&body) => panic!("it is not killed"),
        () = world.aws.stalled() => {}
    }
    world.aws.clear_faults();
    world.llm.script([calls("return finalResponse();"), Turn::text("1")]);
    world.deliver_runs().await;
    assert_eq!(world.runs("").await.expect(200)["items"][0]["status"], "completed");
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
    assert!(logs.text().contains("a run is queued, but its message was not sent"), "{}", logs.text());
    assert_eq!((&world.runs("").await.body["items"][0]["status"], waiting(&world)), (&json!("queued"), 0));
    let run = world.start_run_once("one", &body).await.expect(200);
    assert_eq!((&run["status"], waiting(&world)), (&json!("queued"), 1));
}

/// The message is there although the answer was lost, and somebody is at the run by now.
#[tokio::test]
async fn a_repeated_start_shows_a_run_that_is_already_leased() {
    let world = World::start().await;
    let body = json!({"prompt": "Hello"});
    let run = world.start_run_once("one", &body).await.expect(202);
    let later = Timestamp::now().as_millis() + 60_000;
    change(&world, &run, &json!({"lease_token": "somebody", "lease_until": later}));
    world.aws.inject(not_sent());
    let shown = world.start_run_once("one", &body).await.expect(200);
    assert_eq!(shown["status"], "queued");
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
    // The invocation with the lease died.
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
