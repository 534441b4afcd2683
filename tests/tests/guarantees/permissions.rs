//! The roles of `infra/template.yaml` grant exactly the functions' real AWS requests.
//!
//! A missing permission would show only on AWS; an unused one is too much.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::large_futures,
    reason = "a test says what is wrong and stops"
)]

mod iam;
mod streams;
mod triggers;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use iam::{allows, granted, needed, pascal};
use serde_json::{Value, json};
use shared::{
    Deadline,
    models::{Binding, CallOutcome, CallerHash, RunStatus, ServiceId, Timestamp},
};
use tests::{
    Answer, Event, OWN_KEYS, Options, SECOND_PLATFORM_KEY, SLACK_SECRET, Template, Trouble, World, ai_sms, api_request,
    automation::{AMPLE, RunSpec, begin, calls as block, whole},
    automation_event,
    aws::TABLE_PREFIX,
    phone, preemptive_sms, said, slack_action, slack_message, sms_without_call,
    standins::{Effect, Fault, llm::Turn, vapi::PhoneCall},
    webhooks::Signer,
};

const STACK: &str = "switchboard";

/// The permissions of each function, such as `dynamodb:Query tools/index/by_organization`.
type Permissions = BTreeMap<&'static str, BTreeSet<String>>;

/// Records the permissions of the last requests for `function`, and prepares the next one.
fn note(permissions: &mut Permissions, function: &'static str, world: &mut World) {
    let needs = world.aws.operations().iter().flat_map(needed).collect::<Vec<_>>();
    permissions.entry(function).or_default().extend(needs);
    // The next function runs in another process on Lambda, without these caches.
    world.restart();
    world.aws.clear_operations();
}

/// Every path of every function with different AWS requests, for an organization with its own VAPI account or on the
/// platform's.
#[expect(clippy::too_many_lines, reason = "it is a list of paths")]
async fn asked(own: bool) -> Permissions {
    let mut asked = Permissions::new();
    let call_tool = vec![
        ("MCP_CALL_TOOL", "true".to_owned()),
        // No server is there; only the earlier AWS requests matter.
        ("ALERT_HOOK_URL", "https://127.0.0.1/alerts".to_owned()),
        ("ALERT_SECRET", format!("{STACK}/alerts")),
    ];
    let mut world = World::with(Options { variables: call_tool, ..Options::default() }).await;
    if own {
        let secret = json!({"api_key": SECOND_PLATFORM_KEY, "webhook_bearer": world.options.webhook_bearer});
        world.own_key(&world.home, &secret);
    }
    world.restart();
    world.aws.clear_operations();

    let homes = json!([{"id": "h1", "text": "House by the river"}]);
    let (base, spare) =
        (world.knowledge_base(&json!([]), &homes).await, world.knowledge_base(&json!([]), &homes).await);
    let at = |base: &Value, rest: &str| format!("/{}{rest}", base["id"].as_str().unwrap());
    let replaced = json!({"entries": [{"id": "h1", "text": "House at the river"}, {"id": "h2", "text": "Flat"}]});
    world.knowledge("POST", &at(&base, "/entries"), &replaced).await.expect(200);
    for path in [String::new(), at(&base, ""), at(&base, "/entries")] {
        world.knowledge("GET", &path, &Value::Null).await.expect(200);
    }
    world.knowledge("DELETE", &at(&base, "/entries/h2"), &Value::Null).await.expect(200);
    world.knowledge("DELETE", &at(&spare, ""), &Value::Null).await.expect(200);
    note(&mut asked, "knowledge", &mut world);

    let query = json!({"type": "query", "label": "Find a home", "knowledge_base_id": base["id"]});
    let query = world.tool(&query).await;
    let transfer = world.tool(&connect()).await;
    let target = json!({"type": "assistant", "assistantId": world.home.assistant_id});
    world.tool(&json!({"type": "transfer_call", "label": "Hand over", "target": target})).await;
    let sms = world.tool(&ai_sms()).await;
    let mut specific = ai_sms();
    specific["from"] = json!({"type": "specific_number", "phone_number_id": world.home.phone_number_id});
    let specific = world.tool(&specific).await;
    let slack = world.tool(&slack_action(&world.home)).await;
    let lookup = world.tool(&with_secret()).await;
    world.vapi.inject(Fault::status(400));
    world.create(&with_secret()).await.expect(502);
    note(&mut asked, "create-tool", &mut world);

    for tool in [&sms, &specific, &slack, &lookup, &query, &sms] {
        let answer: Answer = world.attach(tool["id"].as_str().unwrap()).await;
        assert!(answer.status < 300, "{}", answer.body);
    }
    note(&mut asked, "attach", &mut world);

    knowledge_of_agents(&mut asked, &mut world).await;

    world.knowledge("DELETE", &at(&base, ""), &Value::Null).await.expect(409);
    note(&mut asked, "knowledge", &mut world);

    detach_update_delete(&mut asked, &mut world).await;
    world.attach(sms["id"].as_str().unwrap()).await;
    settle(&mut asked, &mut world, &sms).await;

    catalogue(&mut asked, &mut world).await;
    // Listing an agent's tools repairs differences: one tool is missing in the table, one at VAPI.
    let (missing, stale) = (world.tool(&ai_sms()).await, world.attached(&ai_sms()).await);
    let mut model = world.model();
    model["toolIds"] = json!([sms["external_tool_id"], missing["external_tool_id"]]);
    world.at_vapi("PATCH", &format!("/assistant/{}", world.home.assistant_id), &json!({"model": model})).await;
    assert!(world.aws.rows("agent_tools").iter().any(|row| row["tool_id"] == stale["id"]));
    world.restart();
    world.aws.clear_operations();
    let agent = format!("/agents/{}/tools", world.home.agent_id);
    let tool = format!("/tools/{}", sms["id"].as_str().unwrap());
    let home = &world.home.organization_id;
    let execution = json!({
        "id": uuid::Uuid::now_v7(), "organization_id": home, "history_of": home, "tool_id": sms["id"], "status": "failed",
        "started_at": "2026-11-20T16:20:52.123Z", "duration_ms": 7, "expires_at": 4_000_000_000_i64,
    });
    world.aws.put("executions", &execution);
    for path in
        ["/tools?attached=true", "/executions", &tool, &format!("{tool}/agents"), &format!("{tool}/executions"), &agent]
    {
        world.list(path).await.expect(200);
    }
    note(&mut asked, "list-tools", &mut world);
    calls(&world).await;
    note(&mut asked, "calls", &mut world);
    for tool in [&specific, &slack, &lookup, &query, &transfer] {
        world.attach(tool["id"].as_str().unwrap()).await.expect(201);
    }
    let mut later = ai_sms();
    later["async"] = json!(true);
    let later = world.attached(&later).await;
    world.restart();
    world.aws.clear_operations();

    let call = world.call(&sms, json!({"text": "Hi"}));
    world.incoming_call(&world.home, call.call_id.as_ref().unwrap(), &phone(1));
    world.call_tool(&call).await.result();
    world.call_tool(&call).await.result();
    world.call_tool(&world.call(&specific, json!({"text": "Hi"}))).await.result();
    world.call_tool(&world.call(&slack, json!({"text": "Hi"}))).await.result();
    world.call_tool(&world.call(&lookup, json!({}))).await.sentence();
    world.call_tool(&world.call(&query, json!({"query": "river"}))).await.result();
    world.call_tool(&world.call(&transfer, json!({}))).await.result();
    world.twilio.inject(Fault::status(400));
    world.call_tool(&world.call(&sms, json!({"text": "Refused"}))).await.sentence();
    world.function_tool(&sms).await;
    let bearer = format!("Bearer {}", world.options.webhook_bearer.clone().unwrap());
    let path = format!("/api/tools/{}/execute", sms["id"].as_str().unwrap());
    let message = json!({"message": {"type": "tool-calls", "toolCallList": []}});
    world.send("execute", &tests::Event::post(&path, &message).header("authorization", &bearer)).await.expect(200);
    world.call_tool(&world.call(&later, json!({"text": "Hi"}))).await.result();
    // An old choice of what callers hear is derived anew, if one of the tool's executions is looked at.
    let choice = |derived_at: &str| {
        let choice = json!({"speaks": true, "usual_ms": null, "executions": 0, "derived_at": derived_at});
        world.aws.change("tools", sms["id"].as_str().unwrap(), json!({"spoken_at_start": choice}));
    };
    choice("2026-01-01T00:00:00.000Z");
    while world.aws.rows("intents").is_empty() {
        world.call_tool(&world.call(&sms, json!({"text": "Hi"}))).await.result();
    }
    choice(&Timestamp::now().to_string());
    for intent in world.aws.rows("intents") {
        world.aws.delete("intents", intent["id"].as_str().unwrap());
    }
    note(&mut asked, "execute", &mut world);
    call_start(&mut asked, &mut world).await;
    run_tool(&mut asked, &mut world, &[&sms, &specific, &slack, &lookup, &query, &transfer]).await;
    automations(&mut asked, &mut world, &[&slack, &query, &lookup]).await;

    let run = deploying(&world, &query, &lookup).await;
    note(&mut asked, "deploy", &mut world);
    approvals(&world, &run).await;
    note(&mut asked, "approvals", &mut world);
    by_the_clock(&mut asked, &mut world, &query, &lookup).await;
    tools_test(&world, [&specific, &slack, &query, &lookup]).await;
    note(&mut asked, "tools-test", &mut world);
    agents(&world).await;
    note(&mut asked, "agents", &mut world);
    phone_numbers(&world).await;
    note(&mut asked, "phone-numbers", &mut world);
    keys(&world).await.expect(200);
    note(&mut asked, "keys", &mut world);
    members(&world).await;
    note(&mut asked, "members", &mut world);
    for path in ["/", "/console/settings.json"] {
        world.send("console", &Event::get(path)).await.expect(200);
    }
    note(&mut asked, "console", &mut world);
    hooks(&mut asked, &mut world).await;
    triggers::deployed_triggers(&mut asked, &mut world).await;
    asked
}

/// Deletes a call, a run and all data of a number.
async fn privacy(asked: &mut Permissions, world: &mut World, tool: &Value) {
    let now = Timestamp::now();
    let execution = |more: Value| {
        let mut row = json!({
            "id": uuid::Uuid::now_v7().to_string(), "organization_id": world.home.organization_id, "tool_id": tool["id"],
            "status": "succeeded", "started_at": now, "duration_ms": 1, "expires_at": 4_000_000_000_u64,
        });
        row.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        world.aws.put("executions", &row);
    };
    for call in ["call-2", "call-3"] {
        world.incoming_call(&world.home, call, &phone(8));
        execution(json!({"organization_call": format!("{}#{call}", world.home.organization_id)}));
    }
    world.aws.put(
        "events",
        &json!({
            "id": uuid::Uuid::now_v7().to_string(), "organization_id": world.home.organization_id, "data": phone(8),
            "created_at": now, "expires_at": 4_000_000_000_u64,
        }),
    );
    world.aws.put(
        "audit_entries",
        &json!({"organization_id": world.home.organization_id, "place": format!("{now}#1"), "name": phone(8)}),
    );
    let organization = world.home.organization_id.parse().unwrap();
    execution(json!({"caller": CallerHash::of(organization, &phone(8)).as_str()}));
    let mut runs = Vec::new();
    for prompt in ["Hello".to_owned(), format!("Call {}", phone(8))] {
        let run = world.start_run(&json!({"prompt": prompt})).await.expect(202)["id"].as_str().unwrap().to_owned();
        world.cancel_run(&run).await.expect(200);
        approval(world, &json!(run));
        execution(json!({"organization_call": format!("{}#run:{run}", world.home.organization_id)}));
        runs.push(run);
    }
    world.restart();
    world.aws.clear_operations();
    ask(world, "calls", "DELETE", "calls/call-2", &Value::Null).await.expect(204);
    note(asked, "calls", world);
    ask(world, "runs", "DELETE", &format!("runs/{}", runs[0]), &Value::Null).await.expect(204);
    note(asked, "runs", world);
    for thread in ["main", "0193aa11-4d5e-7f60-8a71-8294a1b2c3d5"] {
        world.llm.script([Turn::text(r#"{"tool": "none"}"#), Turn::text("I see.")]);
        let body = json!({"message": format!("Her number is {}", phone(8)), "thread_id": thread});
        world.chat_with(&body).await.expect(200);
    }
    world.restart();
    world.aws.clear_operations();
    let erased = ask(world, "erasures", "POST", "erasures", &json!({"phone_number": phone(8)})).await.expect(200);
    assert_eq!(
        erased["deleted"],
        json!({"calls": 1, "executions": 3, "runs": 1, "events": 1, "threads": 2}),
        "{erased}"
    );
    note(asked, "erasures", world);
}

fn connect() -> Value {
    json!({"type": "transfer_call", "label": "Connect", "target": {"type": "number", "number": phone(9)}})
}

fn with_secret() -> Value {
    let mut config = api_request("GET", "https://nobody.example/");
    config["headers"] = json!({"X-Api-Key": "s3cret-key", "X-Line": "s3cret-line"});
    config
}

/// Attaches and detaches knowledge bases; then attaches tools, removes an agent and settles with them.
async fn knowledge_of_agents(asked: &mut Permissions, world: &mut World) {
    let base = world.knowledge_base(&json!([]), &json!([{"text": "House"}])).await;
    let base = base["id"].as_str().unwrap();
    let (home, agents) = (world.home.agent_id.clone(), world.agents(2).await);
    world.restart();
    world.aws.clear_operations();

    let tool = world.knowledge_of(&home, "attach", base).await.expect(201)["tool"]["id"].clone();
    world.knowledge_of(&home, "attach", base).await.expect(200);
    world.knowledge("GET", &format!("/{base}"), &Value::Null).await.expect(200);
    world.knowledge_of(&agents[0], "attach", base).await.expect(201);
    assert_eq!(world.knowledge_of(&home, "detach", base).await.expect(200)["query_tool"], "kept");
    assert_eq!(world.knowledge_of(&agents[0], "detach", base).await.expect(200)["query_tool"], "deleted");
    world.vapi.inject(Fault::status(500).on("PATCH", "/assistant").times(9));
    world.knowledge_of(&home, "attach", base).await.expect(502);
    world.vapi.clear_faults();
    assert!(world.tools().iter().all(|row| row["id"] != tool));
    let tool = world.knowledge_of(&agents[0], "attach", base).await.expect(201)["tool"]["id"].clone();
    note(asked, "knowledge", world);

    world.attach_as(&world.home, &agents[1], tool.as_str().unwrap()).await.expect(201);
    note(asked, "attach", world);
    // A removal that fails and cannot be settled at once.
    world.vapi.inject(Fault::body(json!("not JSON")).with_effect(Effect::First).on("PATCH", "/assistant"));
    world.vapi.inject(Fault::status(400).on("PATCH", "/assistant"));
    ask(world, "agents", "DELETE", &format!("agents/{}", agents[0]), &Value::Null).await.expect(502);
    note(asked, "agents", world);
    world.later();
    world.settle().await;
    note(asked, "settle", world);
    for (agent, outcome) in agents.iter().zip(["agents have", "no query tool"]) {
        ask(world, "agents", "DELETE", &format!("agents/{agent}"), &Value::Null).await.expect(200);
        note(asked, "agents", world);
        world.later();
        world.restart();
        world.aws.clear_operations();
        let report = world.settle().await;
        assert!(report["settled"][0]["outcome"].as_str().unwrap().starts_with(outcome), "{report}");
        note(asked, "settle", world);
    }
}

async fn detach_update_delete(asked: &mut Permissions, world: &mut World) {
    let (one, other) = (world.attached(&ai_sms()).await, world.attached(&ai_sms()).await);
    let mut specific = ai_sms();
    specific["from"] = json!({"type": "specific_number", "phone_number_id": world.home.phone_number_id});
    let slack = world.tool(&slack_action(&world.home)).await;
    let attached = world.attached(&ai_sms()).await;
    let transfer = world.tool(&connect()).await;
    let base = world.knowledge_base(&json!([{"name": "city", "type": "text"}]), &json!([{"city": "Porto"}])).await;
    let query = world.tool(&json!({"type": "query", "label": "Find", "knowledge_base_id": base["id"]})).await;
    let lookup = world.attached(&with_secret()).await;
    world.restart();
    world.aws.clear_operations();

    let id = |tool: &Value| tool["id"].as_str().unwrap().to_owned();
    world.detach(&id(&other)).await.expect(200);
    world.detach(&id(&other)).await.expect(404);
    note(asked, "detach", world);

    world.update(&slack, &json!({"label": "Another"})).await.expect(200);
    let target = json!({"type": "assistant", "assistantId": world.home.assistant_id});
    world.update(&transfer, &json!({"target": target})).await.expect(200);
    world.update(&query, &json!({"label": "Another"})).await.expect(200);
    world.update(&one, &json!({"name": "one", "from": specific["from"]})).await.expect(200);
    world.update(&one, &preemptive_sms()).await.expect(200);
    let change = json!({"headers": {"X-Api-Key": "s3cret-new", "X-Line": "[secret]"}});
    world.update(&lookup, &change).await.expect(200);
    world.vapi.inject(Fault::status(400));
    world.update(&one, &json!({"name": "two", "attach_to_agent": true})).await.expect(502);
    note(asked, "update-tool", world);

    // An abandoned edit is left to settle, which is invoked.
    world.vapi.inject(Fault::status(500).on("PATCH", "/assistant/").times(9));
    world.update(&attached, &preemptive_sms()).await.expect(202);
    world.vapi.clear_faults();
    note(asked, "update-tool", world);

    world.vapi.inject(Fault::status(400).on("DELETE", "/tool/"));
    world.delete(&query).await.expect(502);
    world.delete(&one).await.expect(200);
    world.delete(&lookup).await.expect(200);
    world.delete(&other).await.expect(200);
    world.delete(&attached).await.expect(200);
    note(asked, "delete", world);
    let late = world.attached(&ai_sms()).await;
    world.attach(&id(&slack)).await.expect(201);
    world.restart();
    world.aws.clear_operations();
    world.delete(&late).await.expect(200);
    let hurried = Event::new("DELETE", &format!("/api/{}/tools/{}", world.home.slug, id(&slack)));
    let hurried = hurried.user(&world.home.user_id).within(Duration::from_secs(5));
    world.send("delete", &hurried).await.expect(202);
    note(asked, "delete", world);
    world.settle().await;
    note(&mut Permissions::new(), "settle", world);
}

/// Incoming calls, forwarded and bypassed, each also with a forged signature.
async fn call_start(asked: &mut Permissions, world: &mut World) {
    world.attached(&preemptive_sms()).await;
    let lookup = json!({
        "type": "api_request", "label": "Look up", "method": "GET", "url": "https://example.com/", "attach_to_agent": false,
        "execute_on_call_start": true,
    });
    world.attached(&lookup).await;
    let at_vapi = world.vapi.set_number(&world.home.phone_number, &world.home.assistant_id).unwrap();
    world.restart();
    world.aws.clear_operations();
    for bypass in [Value::Null, json!(at_vapi)] {
        world.aws.change("phone_numbers", &world.home.phone_number_id, json!({"vapi_phone_number_id": bypass}));
        let incoming = world.incoming(&world.caller(&phone(1)));
        world.send("call-start", &incoming).await.expect(200);
        let forged = world.incoming(&world.caller(&phone(1))).header("x-twilio-signature", "");
        world.send("call-start", &forged).await.expect(403);
    }
    // The lookup begins before the call, with VAPI there and without.
    world.aws.change("phone_numbers", &world.home.phone_number_id, json!({"wait_ms": 300}));
    for up in [true, false] {
        if !up {
            world.vapi.inject(Fault::status(404));
        }
        world.send("call-start", &world.incoming(&world.caller(&phone(1)))).await.expect(200);
    }
    note(asked, "call-start", world);
    assert_eq!(world.run_queued().await, 0);
    note(asked, "run-tool", world);
}

/// Delivers a queued execution of each of these tools.
async fn run_tool(asked: &mut Permissions, world: &mut World, tools: &[&Value]) {
    for tool in tools {
        let begun = PhoneCall {
            assistant_id: Some(world.home.assistant_id.clone()),
            customer_number: phone(1),
            phone_number: world.home.phone_number.clone(),
            ..PhoneCall::default()
        };
        let call = world.vapi.begin_call(&begun).unwrap();
        let run = json!({
            "kind": "run", "execution_id": uuid::Uuid::now_v7().to_string(), "organization_id": world.home.organization_id,
            "tool_id": tool["id"], "call_id": call["id"], "caller": phone(1),
            "called": world.home.phone_number, "arguments": {"text": "Hi", "query": "river"}, "trigger": "conversation",
            "queued_at": Timestamp::now(),
        });
        world.aws.post("executions", &run.to_string());
    }
    // The execution's tool was deleted in the meantime.
    let run = json!({
        "kind": "run", "execution_id": uuid::Uuid::now_v7().to_string(), "organization_id": world.home.organization_id,
        "tool_id": uuid::Uuid::now_v7().to_string(), "caller": phone(1), "arguments": {}, "trigger": "conversation",
        "queued_at": Timestamp::now(),
    });
    world.aws.post("executions", &run.to_string());
    world.twilio.inject(Fault::status(400));
    assert_eq!(world.run_queued().await, 0);
    note(asked, "run-tool", world);
    polled(asked, "run-tool", "executions");
}

async fn automations(asked: &mut Permissions, world: &mut World, tools: &[&Value]) {
    run_loop(asked, world, tools).await;
    runs(asked, world, tools).await;
    privacy(asked, world, tools[0]).await;
    ask(world, "usage", "GET", "usage", &Value::Null).await.expect(200);
    note(asked, "usage", world);
    discover(asked, world).await;
    mcp(asked, world, tools).await;
    building_agent(asked, world).await;
    automation_runs(asked, world).await;
    chat(asked, world, tools).await;
    Box::pin(streams::stream(asked, world, tools)).await;
}

/// Runs automations with actions and with a prompt; another is paused because its tool changed.
async fn automation_runs(asked: &mut Permissions, world: &mut World) {
    pay_service(world);
    world.restart();
    let classify = json!({"text": "Hi", "question": "What is it?", "options": ["a", "b"]});
    let automation = world
        .activate(&world.manual(&json!([
            {"id": "sort", "tool": "llm_classify", "parameters": classify},
            {"id": "pay", "tool": "pay_list", "parameters": {}},
        ])))
        .await;
    let tool = shared::models::service_tool_id("pay_list").to_string();
    for changed in [false, true] {
        if changed {
            world.aws.change("service_tools", &tool, json!({"fingerprint": "another"}));
        }
        world.llm.script([Turn::text(r#"{"answer": "a", "reasoning": "It is."}"#)]);
        world.start_automation(&automation, &format!("changed: {changed}"), &json!({})).await;
        world.restart();
        world.aws.clear_operations();
        world.run_loop(AMPLE).await;
        note(asked, "run-loop", world);
    }
    world.llm.script([]);
    assert_eq!(json!(world.automation_row(&automation.id.to_string()).await.status), json!("paused"));
    let asks = json!([{"id": "now", "tool": "current_time", "parameters": {}, "approval": true}]);
    let automation = world.activate(&world.manual(&asks)).await;
    world.start_automation(&automation, "asks", &json!({})).await;
    world.restart();
    world.aws.clear_operations();
    world.run_loop(AMPLE).await;
    note(asked, "run-loop", world);
    let approval = world.asked().await[0]["id"].as_str().unwrap().to_owned();
    world.approvals("POST", &format!("/{approval}/approve"), &Value::Null).await.expect(200);
    world.restart();
    world.aws.clear_operations();
    world.run_loop(AMPLE).await;
    note(asked, "run-loop", world);
    // Cancelled while a process held it that died.
    let run = world.start_automation(&automation, "cancelled", &json!({})).await;
    let rows = world.aws.rows("automation_runs");
    let mut row = rows.into_iter().find(|row| row["id"] == json!(run.id) && row["part"] == "run").unwrap();
    row["cancel_requested_at"] = json!(Timestamp::now());
    world.aws.put("automation_runs", &row);
    world.aws.clear_operations();
    world.run_loop(AMPLE).await;
    note(asked, "run-loop", world);
    world.aws.clear_operations();
}

/// Adds an approval of a run to its table.
fn approval(world: &World, run: &Value) -> String {
    let id = uuid::Uuid::now_v7().to_string();
    world.aws.put("approvals", &json!({
        "id": id, "organization_id": world.home.organization_id, "run_id": run, "action_id": "a", "tool": "current_time",
        "arguments": "{}", "arguments_hash": "00", "status": "pending", "valid_until": "2096-01-01T00:00:00.000Z",
        "open": "open", "wake_at": "2026-01-01T00:00:00.000Z", "created_at": "2026-01-01T00:00:00.000Z",
        "updated_at": "2026-01-01T00:00:00.000Z", "expires_at": 4_000_000_000_u64,
    }));
    id
}

/// Gives the home organization its own LLM key; returns its previous keys.
fn own_llm(world: &World) -> Value {
    let key = uuid::Uuid::now_v7().to_string();
    let home = &world.home.organization_id;
    let secret = json!({"api_key": "own", "base_url": "https://127.0.0.1"});
    world.aws.put_secret(&format!("switchboard/organizations/llm/{home}/{key}"), &secret);
    let before = world.aws.row("organizations", home).unwrap()["own_keys"].clone();
    let before = if before.is_object() { before } else { json!({}) };
    let mut own = before.clone();
    own["llm"] = json!({"id": key, "updated_at": Timestamp::now()});
    world.aws.change("organizations", home, json!({"own_keys": own}));
    before
}

/// Conversations: every kind of tool is called, one asks for consent, a thread is deleted.
async fn chat(asked: &mut Permissions, world: &mut World, tools: &[&Value]) {
    let mut config = sms_without_call(&world.home);
    config["label"] = json!("Ask first");
    config["chat"] = json!({"consent": true});
    world.tool(&config).await;
    let failing = world.tool(&sms_without_call(&world.home)).await;
    pay_service(world);
    world.restart();
    world.aws.clear_operations();
    let call = |name: &str, arguments: Value| Turn::text(&json!({"tool": name, "arguments": arguments}).to_string());
    let named = |tool: &Value| tool["name"].as_str().unwrap().replace('-', "_");
    for tool in tools.iter().copied().chain([&failing]) {
        let known = &tool["function_schema"]["parameters"]["properties"];
        let argument = ["text", "query"].into_iter().find(|name| known.get(*name).is_some());
        let arguments: serde_json::Map<String, Value> =
            argument.map(|name| (name.to_owned(), json!("Hi"))).into_iter().collect();
        for (number, fault) in [None, Some(Fault::status(400))].into_iter().enumerate() {
            if let Some(fault) = fault {
                world.twilio.inject(fault);
            }
            world.llm.script([call(&named(tool), json!(arguments)), Turn::text("That is it.")]);
            world.chat(&format!("{} {number}", named(tool))).await.expect(200);
        }
        world.twilio.clear_faults();
    }
    world.llm.script([call("pay_list", json!({})), Turn::text("That is it.")]);
    world.chat("Which payments are there to list?").await.expect(200);
    world.llm.script([call("ask_first", json!({"text": "Hi"}))]);
    let waits = world.chat("Hi").await.expect(200);
    world.llm.script([Turn::text("All right.")]);
    let id = &waits["metadata"]["pending_action"]["id"];
    world.chat_with(&json!({"metadata": {"consent": {"id": id, "approved": true}}})).await.expect(200);
    let uuid = "0193aa11-4d5e-7f60-8a71-8294a1b2c3d4";
    world.llm.script([Turn::text(r#"{"tool": "none"}"#), Turn::text("Hello!")]);
    let body = json!({"message": "Hi", "thread_id": uuid});
    let event = Event::post("/agent/chat", &body).user(&world.home.user_id).header("x-organization", &world.home.slug);
    world.send("chat", &event).await.expect(200);
    let user = world.home.user_id.clone();
    for (method, path, status) in [
        ("GET", String::new(), 200),
        ("GET", format!("/{uuid}"), 200),
        ("DELETE", format!("/{uuid}"), 204),
        ("DELETE", "/default".to_owned(), 204),
    ] {
        assert_eq!(world.threads(&user, method, &path).await.status, status, "{method} {path}");
    }
    // With the organization's own LLM key, whose address has no server.
    let before = own_llm(world);
    assert!(world.chat("Hi").await.status >= 500);
    world.aws.change("organizations", &world.home.organization_id, json!({"own_keys": before}));
    note(asked, "chat", world);
}

/// A definition that needs no other service.
fn definition(name: &str) -> Value {
    json!({
        "name": name, "trigger_type": "webhook", "trigger_config": {"service": "Slack", "event_type": "message"},
        "fingerprints": {"current_time": "built-in"}, "actions": [{"id": "now", "tool": "current_time", "parameters": {}}],
    })
}

/// External agents find tools, deploy automations and call tools.
async fn mcp(asked: &mut Permissions, world: &mut World, tools: &[&Value]) {
    let sms = world.tool(&sms_without_call(&world.home)).await;
    let tools = [&[&sms], tools].concat();
    let ids: Vec<&Value> = tools.iter().map(|tool| &tool["id"]).collect();
    pay_service(world);
    world.slack_service();
    let paid = json!({"name": "pay_list", "fingerprint": world.fingerprint("pay_list"), "arguments": {}});
    world.restart();
    world.aws.clear_operations();
    let overview = json!({"services": ["Slack", "Twilio", "Slakc"]});
    world.mcp_call("initial_md_fetch", &overview).await;
    world.mcp_call("search_tools", &json!({"q": "message"})).await;
    let read = world.mcp_call("fetch_tool_data", &json!({"tool_names": ids})).await;
    world.twilio.inject(Fault::status(400));
    for tool in read["structuredContent"]["tools"].as_array().unwrap() {
        let known = &tool["parameters"]["properties"];
        let named = ["text", "query"].into_iter().find(|name| known.get(*name).is_some());
        let arguments: serde_json::Map<String, Value> =
            named.map(|name| (name.to_owned(), json!("Hi"))).into_iter().collect();
        let call = json!({"name": tool["id"], "fingerprint": tool["fingerprint"], "arguments": arguments});
        world.mcp_call("call_tool", &call).await;
    }
    world.mcp_call("call_tool", &paid).await;
    for _again in 0..2 {
        let result = world.mcp_call("deploy_automation", &json!({"automation": definition("Over MCP")})).await;
        assert!(!said(&result).0, "{result}");
    }
    let listed = world.mcp_call("list_automations", &json!({})).await;
    let id = listed["structuredContent"]["items"][0]["id"].clone();
    let mut changed = definition("Over MCP");
    changed["description"] = json!("Changed.");
    let change = json!({"id": id, "revision": 1, "automation": changed});
    for (tool, arguments) in [("get_automation", json!({"id": id})), ("update_automation", change)] {
        let result = world.mcp_call(tool, &arguments).await;
        assert!(!said(&result).0, "{result}");
    }
    let start = json!({"id": id, "dry_run": true, "idempotency_key": "one"});
    world.aws.inject(tests::Fault::new("SendMessage", "runs", Trouble::Error("ServiceUnavailable")).times(3));
    world.mcp_call("run_automation", &start).await;
    let run = world.mcp_call("run_automation", &start).await;
    let read = world.mcp_call("get_run", &json!({"id": run["structuredContent"]["id"]})).await;
    assert!(!said(&read).0, "{run} {read}");
    note(asked, "mcp", world);
}

async fn building_agent(asked: &mut Permissions, world: &mut World) {
    let calls = format!(
        "return initial_md_fetch([\"Slack\"]);\nreturn search_tools(\"message\");\nreturn pay_list();\nreturn deploy_automation({{automation: {}}});",
        definition("In a run")
    );
    pay_service(world);
    world.slack_service();
    world.service_with("SMS", &json!({"connection": {"type": "phone_number"}}));
    world.service_tool("SMS", "sms_send", "Sends.", &["text"]);
    world.restart();
    world.aws.clear_operations();
    // Rejected, after the accounts of the tools were read.
    let named = json!(["pay_list", "slack_post_message", "sms_send", "no_such_tool"]);
    world.start_run(&json!({"prompt": "Build it", "tools": named})).await;
    note(asked, "runs", world);
    let tools = json!(["initial_md_fetch", "search_tools", "deploy_automation", "pay_list"]);
    for _again in 0..2 {
        world.llm.script(
            [block(&calls), block("return finalResponse();"), "\"Done\"".to_owned()]
                .iter()
                .map(|text| Turn::text(text)),
        );
        world.start_run(&json!({"prompt": "Build it", "tools": tools})).await.expect(202);
        world.restart();
        world.aws.clear_operations();
        world.run_loop(AMPLE).await;
        note(asked, "run-loop", world);
    }
}

/// Searches on each route, and every way to connect and disconnect a service.
async fn discover(asked: &mut Permissions, world: &mut World) {
    let fields = json!([{"name": "api_key", "description": "Under Developers."}]);
    world.service("Slack", Some("slack"));
    world.service_tool("Slack", "slack_post_message", "Posts a message.", &["text"]);
    world.service_with("Stripe", &json!({"connection": {"type": "credential", "fields": fields}}));
    world.service_with("Twilio", &json!({"connection": {"type": "phone_number"}}));
    let sms = world.tool(&ai_sms()).await["id"].clone();
    world.restart();
    world.aws.clear_operations();
    let names = json!({"tool_names": ["slack_post_message", sms, "slack_post_mesage"]});
    ask(world, "discover", "POST", "discover/fetch_tool_data", &names).await.expect(200);
    ask(world, "discover", "POST", "discover/search", &json!({"q": "message"})).await.expect(200);
    ask(world, "discover", "GET", "services", &Value::Null).await.expect(200);
    let overview = Event::get(&format!("/api/{}/discover/initial_md_fetch", world.home.slug)).user(&world.home.user_id);
    let overview = overview.query("service", "slack").query("service", "twilio").query("service", "slakc");
    world.send("discover", &overview).await.expect(200);
    // The second credential replaces the first.
    for _credential in 0..2 {
        ask(world, "discover", "POST", "services/stripe/connect", &json!({"api_key": "sk_1"})).await.expect(200);
    }
    for service in ["stripe", "slack"] {
        ask(world, "discover", "DELETE", &format!("services/{service}/connection"), &Value::Null).await.expect(204);
    }
    ask(world, "discover", "POST", "services/slack/connect", &json!({})).await.expect(200);
    // The organization's row is not cached, so it is read again.
    note(asked, "discover", world);
    world.pipedream.connect(&world.home.slack_account, &world.home.organization_id, "slack");
}

/// Executes a run that calls each of these tools, and one with the organization's own model, which is unreachable.
async fn run_loop(asked: &mut Permissions, world: &mut World, tools: &[&Value]) {
    let sms = world.tool(&sms_without_call(&world.home)).await;
    let tools = [&[&sms], tools].concat();
    world.restart();
    let wanted = || RunSpec {
        built_in: Vec::new(),
        tools: tools.iter().map(|tool| (*tool).clone()).collect(),
        ..RunSpec::default()
    };
    // Each tool takes one of these arguments; unknown ones are left out.
    let statements: Vec<String> = tools
        .iter()
        .map(|tool| {
            let known = &tool["function_schema"]["parameters"]["properties"];
            let named = ["text", "query"].into_iter().find(|name| known.get(*name).is_some());
            let arguments = named.map(|name| format!("{{{name}: \"Hi\"}}")).unwrap_or_default();
            format!("return {}({arguments});", tool["name"].as_str().unwrap())
        })
        .collect();
    let script = [block(&statements.join("\n")), block("return finalResponse();"), r#"{"opens": "8"}"#.to_owned()];
    world.llm.script(script.iter().map(|text| Turn::text(text)));
    let id = begin(world, wanted()).await;
    world.aws.clear_operations();
    world.twilio.inject(Fault::status(400));
    assert_eq!(world.run_loop(AMPLE).await, 0);
    note(asked, "run-loop", world);
    let run = whole(world, id).await;
    assert!(run.replies[0].calls.iter().all(|call| call.outcome != CallOutcome::Invalid), "{:?}", run.replies);
    assert_eq!(run.run.status, RunStatus::Completed);

    let key = uuid::Uuid::now_v7().to_string();
    let home = world.home.organization_id.clone();
    let secret = json!({"api_key": "own", "base_url": "https://127.0.0.1"});
    world.aws.put_secret(&format!("switchboard/organizations/llm/{home}/{key}"), &secret);
    let before = world.aws.row("organizations", &home).unwrap()["own_keys"].clone();
    let mut own = if before.is_object() { before.clone() } else { json!({}) };
    own["llm"] = json!({"id": key, "updated_at": Timestamp::now()});
    world.aws.change("organizations", &home, json!({"own_keys": own}));
    begin(world, wanted()).await;
    world.restart();
    world.aws.clear_operations();
    world.run_loop(AMPLE).await;
    note(asked, "run-loop", world);
    polled(asked, "run-loop", "runs");
    world.aws.change("organizations", &home, json!({"own_keys": if before.is_object() { before } else { json!({}) }}));
    world.restart();
    world.aws.clear_operations();
}

/// Starts runs, repeats a start, shows and cancels them.
async fn runs(asked: &mut Permissions, world: &mut World, tools: &[&Value]) {
    let body = json!({"prompt": "Hello", "tools": tools.iter().map(|tool| &tool["id"]).collect::<Vec<_>>()});
    world.aws.inject(tests::Fault::new("SendMessage", "runs", Trouble::Error("ServiceUnavailable")).times(3));
    world.start_run_once("one", &body).await.expect(503);
    let run = world.start_run_once("one", &body).await.expect(200)["id"].clone();
    world.runs("").await.expect(200);
    world.run(run.as_str().unwrap()).await.expect(200);
    let waits_for = approval(world, &run);
    let mut row =
        world.aws.rows("automation_runs").into_iter().find(|row| row["id"] == run && row["part"] == "run").unwrap();
    row["waits_for_approval"] = json!(waits_for);
    world.aws.put("automation_runs", &row);
    world.cancel_run(run.as_str().unwrap()).await.expect(200);
    note(asked, "runs", world);
}

/// A service whose tool uses a credential that the organization stored.
fn pay_service(world: &World) {
    let field = json!({"name": "api_key", "description": "The key", "secret": true});
    world.service_with("Pay", &json!({"connection": {"type": "credential", "fields": [field]}}));
    world.service_capabilities("Pay", &json!({"supports_polling": true}));
    let template = json!({
        "type": "api_request", "method": "GET", "url": "https://127.0.0.1/payments", "auth": {"type": "bearer", "field": "api_key"},
    });
    let binding: Binding = serde_json::from_value(template).unwrap();
    let (secret, pay) = (uuid::Uuid::new_v4().to_string(), ServiceId::of_name("Pay"));
    world.service_tool_with("Pay", "pay_list", &json!({"effect": false, "binding": binding}));
    let credentials = json!({pay.to_string(): {"id": secret, "name": "", "updated_at": Timestamp::now()}});
    world.aws.change("organizations", &world.home.organization_id, json!({"service_credentials": credentials}));
    let name = format!("switchboard/organizations/services/{}/{pay}/{secret}", world.home.organization_id);
    world.aws.put_secret(&name, &json!({"api_key": "k"}));
}

/// Saves, changes and deletes automations. Tools of every kind are resolved and, for polls, called once.
async fn deploying(world: &World, query: &Value, lookup: &Value) -> Value {
    world.slack_service();
    world.service_with("SMS", &json!({"connection": {"type": "phone_number"}}));
    world.service_tool("SMS", "sms_send", "Sends.", &["text"]);
    pay_service(world);
    world.aws.clear_operations();

    let saved = world.deploy(&world.urgent_messages()).await.expect(201);
    let id = saved["automation"]["id"].as_str().unwrap();
    world.deploy(&world.urgent_messages()).await.expect(200);
    let mut second = world.urgent_messages();
    second["actions"][0]["tool"] = json!("slack_post_mesage");
    second["trigger_config"]["service"] = json!("Slak");
    world.put_automation(id, "\"1\"", &second).await.expect(422);
    second["actions"][0] = json!({"id": "a", "tool": "sms_send", "parameters": {"text": "Hi"}});
    second["trigger_config"]["service"] = json!("Slack");
    second["fingerprints"] = json!({"sms_send": world.fingerprint("sms_send")});
    world.put_automation(id, "\"1\"", &second).await.expect(200);
    for path in ["/activate", "/pause"] {
        world.automation("POST", &format!("/{id}{path}"), &json!({"version": 1})).await.expect(200);
    }
    for path in [String::new(), format!("/{id}"), format!("/{id}/versions"), format!("/{id}/diff?from=1&to=2")] {
        world.automation("GET", &path, &Value::Null).await.expect(200);
    }
    world.aws.inject(tests::Fault::new("SendMessage", "runs", Trouble::Error("ServiceUnavailable")).times(3));
    assert_eq!(world.run_by_hand(id, &json!({"dry_run": true})).await.status, 503);
    let by_hand = automation_event(&world.home, "POST", &format!("/{id}/run"), &json!({"dry_run": true}));
    let by_hand = by_hand.header("idempotency-key", "once");
    let run = world.send("deploy", &by_hand).await.expect(202);
    world.send("deploy", &by_hand).await.expect(200);
    let event = uuid::Uuid::now_v7().to_string();
    world.aws.put("events", &json!({
        "id": event, "organization_id": world.home.organization_id, "hook_id": event, "service": "slack", "event_type": "message",
        "data": "{}", "status": "dispatched", "created_at": "2026-01-01T00:00:00.000Z",
        "updated_at": "2026-01-01T00:00:00.000Z", "expires_at": 4_000_000_000_u64,
    }));
    world.automation("GET", &format!("/{id}/runs"), &Value::Null).await.expect(200);
    let replay = format!("/api/{}/events/{event}/replay", world.home.slug);
    let replay = Event::post(&replay, &json!({"automation_id": id})).user(&world.home.user_id);
    world.send("deploy", &replay).await.expect(202);
    world.automation("DELETE", &format!("/{id}"), &Value::Null).await.expect(204);
    let (query, lookup) = (query["id"].as_str().unwrap(), lookup["id"].as_str().unwrap());
    let rows = world.aws.rows("tools");
    let version = |id: &str| {
        let row = rows.iter().find(|row| row["id"] == id).unwrap();
        format!("v{}", row["version"].as_u64().unwrap_or_default())
    };
    for (tool, fingerprint, parameters) in [
        (query, version(query), json!({"query": "house"})),
        (lookup, version(lookup), json!({})),
        ("pay_list", world.fingerprint("pay_list"), json!({})),
    ] {
        let polling = json!({
            "name": "Poll", "trigger_type": "polling", "dry_run": true, "prompt": "Look",
            "trigger_config": {"service": "Pay", "source_tool": tool, "tool_params": parameters},
            "tools": [], "fingerprints": {tool: fingerprint},
        });
        let answer = world.deploy(&polling).await.expect(200);
        assert_eq!(answer["result"], "ok", "{answer}");
    }
    run["id"].clone()
}

async fn approvals(world: &World, run: &Value) {
    let id = approval(world, run);
    for (method, path) in [("GET", String::new()), ("GET", format!("/{id}")), ("POST", format!("/{id}/approve"))] {
        world.approvals(method, &path, &Value::Null).await.expect(200);
    }
}

/// Automations with schedules and polls; their schedules are created, removed and settled.
async fn by_the_clock(asked: &mut Permissions, world: &mut World, query: &Value, lookup: &Value) {
    for service in ["SMS", "Slack"] {
        world.service_capabilities(service, &json!({"supports_polling": true}));
    }
    world.restart();
    world.aws.clear_operations();
    let daily = |name: &str| {
        json!({
            "name": name, "trigger_type": "schedule_recurring", "prompt": "Look", "tools": [],
            "trigger_config": {"interval": "daily", "time_of_day": "09:00", "timezone": "Europe/Berlin"},
        })
    };
    let mut ids = Vec::new();
    for name in ["Runs", "Goes"] {
        let id = activated(world, &daily(name)).await;
        for (path, body) in [("pause", Value::Null), ("activate", json!({"version": 1}))] {
            world.automation("POST", &format!("/{id}/{path}"), &body).await.expect(200);
        }
        ids.push(id);
    }
    let gone = activated(world, &daily("Gone")).await;
    world.automation("DELETE", &format!("/{gone}"), &Value::Null).await.expect(204);
    // Settle is invoked if Scheduler is unreachable.
    let throttled = || tests::Fault::new("CreateSchedule", "*", Trouble::Error("ThrottlingException"));
    world.aws.inject(throttled().times(6));
    let saved = world.deploy(&daily("Late")).await.expect(201);
    let late = saved["automation"]["id"].as_str().unwrap().to_owned();
    world.automation("POST", &format!("/{late}/activate"), &json!({"version": 1})).await.expect(200);
    let rows = world.aws.rows("tools");
    let own = |tool: &Value| {
        let row = rows.iter().find(|row| row["id"] == tool["id"]).unwrap();
        format!("v{}", row["version"].as_u64().unwrap_or_default())
    };
    let lookup_name = lookup["name"].as_str().unwrap();
    let mut polled = Vec::new();
    for (service, tool, fingerprint, parameters) in [
        ("SMS", query["id"].as_str().unwrap(), own(query), json!({"query": "house"})),
        ("Pay", lookup_name, own(lookup), json!({})),
        ("Pay", "pay_list", world.fingerprint("pay_list"), json!({})),
        ("Slack", query["id"].as_str().unwrap(), own(query), json!({"query": "house"})),
    ] {
        let polling = json!({
            "name": tool, "trigger_type": "polling", "prompt": "Look", "tools": [], "fingerprints": {tool: fingerprint},
            "trigger_config": {"service": service, "source_tool": tool, "tool_params": parameters},
        });
        polled.push(activated(world, &polling).await);
    }
    note(asked, "deploy", world);

    world.later();
    world.aws.delete("automations", &ids[1]);
    let row = json!({
        "id": uuid::Uuid::now_v7().to_string(), "organization_id": world.home.organization_id,
        "change": "automation_trigger", "automation_id": ids[1], "created_at": "2026-01-01T00:00:00.000Z", "owner_until": 1,
    });
    world.aws.put("intents", &row);
    world.aws.change("schedules", &ids[0], json!({"next_run_at": "2026-01-01T00:00:00.000Z"}));
    let report = world.settle().await;
    assert_eq!((report["settled"].as_array().map(Vec::len), &report["left"]), (Some(3), &json!([])), "{report}");
    note(asked, "settle", world);

    // The run is started, and started again after its queue refused the message.
    world.aws.inject(tests::Fault::new("SendMessage", "runs", Trouble::Error("InternalError")).times(9));
    world.run_scheduled().await;
    world.aws.clear_faults();
    world.run_scheduled().await;
    world.aws.fire_schedules(Timestamp::now().plus(Duration::from_secs(400 * 24 * 3_600)));
    world.aws.delete("service_tools", &shared::models::service_tool_id("pay_list").to_string());
    world.run_scheduled().await;
    while let Some(batch) = world.aws.receive("scheduled", 60) {
        world.run_scheduled_batch(batch).await;
    }
    assert_eq!(world.aws.row("automations", &polled[2]).unwrap()["status"], "paused");
    assert!(world.aws.row("schedules", &polled[0]).unwrap()["last_poll"].is_string());
    // The schedule lags behind the automation: the due occurrence is queued again.
    let due = Timestamp::now();
    world.aws.change("schedules", &ids[0], json!({"automation_version": 9, "next_run_at": due}));
    let message = json!({
        "organization_id": world.home.organization_id, "automation_id": ids[0], "scheduled_for": due,
    });
    world.aws.post("scheduled", &message.to_string());
    world.run_scheduled().await;
    // The automation was deleted before its schedule.
    world.aws.delete("automations", &late);
    world.aws.fire_schedules(Timestamp::now().plus(Duration::from_secs(400 * 24 * 3_600)));
    world.run_scheduled().await;
    assert_eq!(world.aws.row("schedules", &late), None);
    note(asked, "schedule", world);
    self::polled(asked, "schedule", "scheduled");
}

/// Deploys and activates an automation; returns its id.
async fn activated(world: &World, definition: &Value) -> String {
    let saved = world.deploy(definition).await.expect(201);
    let id = saved["automation"]["id"].as_str().unwrap().to_owned();
    world.automation("POST", &format!("/{id}/activate"), &json!({"version": 1})).await.expect(200);
    id
}

/// The permissions that Lambda's poller needs for a queue; the function itself does not use them.
fn polled(asked: &mut Permissions, function: &'static str, queue: &str) {
    let needs = ["ReceiveMessage", "DeleteMessage", "GetQueueAttributes"];
    let needs = needs.map(|action| format!("sqs:{action} {TABLE_PREFIX}{queue}"));
    asked.entry(function).or_default().extend(needs);
}

/// Settles a handmade intent of each kind.
async fn settle(asked: &mut Permissions, world: &mut World, tool: &Value) {
    let unknown = uuid::Uuid::now_v7().to_string();
    let (agent, external) = (world.home.agent_id.clone(), tool["external_tool_id"].clone());
    let gone = world.attached(&ai_sms()).await;
    let lost = world.tool(&ai_sms()).await;
    world.at_vapi("DELETE", &format!("/tool/{}", lost["external_tool_id"].as_str().unwrap()), &json!({})).await;
    world.restart();
    world.aws.clear_operations();
    for (number, change) in [
        json!({"change": "create_tool", "tool_id": unknown, "name": "lost"}),
        json!({"change": "update_tool", "tool_id": tool["id"], "name": "reserved"}),
        json!({"change": "update_tool", "tool_id": lost["id"]}),
        json!({"change": "attach_tool", "agent_id": agent, "tool_id": tool["id"], "external_tool_id": external}),
        json!({"change": "detach_tool", "agent_id": agent, "tool_id": tool["id"], "external_tool_id": external}),
        json!({"change": "delete_tool", "tool_id": gone["id"]}),
        json!({"change": "store_secret", "secret": format!("switchboard/twilio/{unknown}"), "of": {"phone_number": unknown}}),
        json!({
            "change": "store_secret", "secret": format!("switchboard/organizations/llm/{}/{unknown}", world.home.organization_id),
            "of": {"own_key": {"service": "llm", "id": unknown}},
        }),
        json!({
            "change": "store_secret", "of": {"tool": tool["id"]},
            "secret": format!(
                "switchboard/organizations/tools/{}/{}/lost", world.home.organization_id, tool["id"].as_str().unwrap(),
            ),
        }),
        json!({
            "change": "store_secret", "secret": format!("switchboard/organizations/hooks/{}/{unknown}/{unknown}", world.home.organization_id),
            "of": {"hook": {"hook": unknown, "id": unknown}},
        }),
    ]
    .into_iter()
    .enumerate()
    {
        let mut row = change;
        row["id"] = json!(uuid::Uuid::now_v7().to_string());
        row["organization_id"] = json!(world.home.organization_id);
        row["created_at"] = json!(format!("2026-01-01T00:00:0{number}.000Z"));
        row["owner_until"] = json!(1);
        world.aws.put("intents", &row);
    }
    approval(world, &json!(unknown));
    let report = world.settle().await;
    assert_eq!((report["settled"].as_array().map(Vec::len), &report["left"]), (Some(10), &json!([])), "{report}");
    // A new address: every tool is updated once all processes know it.
    world.aws.change("tools", "reissue", json!({"fingerprint": "another"}));
    world.settle().await;
    world.aws.change("tools", "reissue", json!({"seen_at": "2026-01-01T00:00:00.000Z"}));
    world.settle().await;
    // More work than time allows makes settle invoke itself again.
    let row = json!({
        "id": uuid::Uuid::now_v7().to_string(), "organization_id": world.home.organization_id, "change": "delete_tool",
        "tool_id": tool["id"], "created_at": "2026-01-01T00:00:00.000Z", "owner_until": 1,
    });
    world.aws.put("intents", &row);
    settle::handle(&world.process.settle, Deadline::after(Duration::from_secs(1))).await.unwrap();
    note(asked, "settle", world);
    polled(asked, "settle", "settle");
    world.aws.delete("intents", row["id"].as_str().unwrap());
}

/// A load, a load that removes entries, and an import.
async fn catalogue(asked: &mut Permissions, world: &mut World) {
    let invoke = async |event: Value| {
        let deadline = Deadline::after(Duration::from_secs(30));
        catalogue::handle(&world.process.catalogue, event, deadline).await.unwrap()
    };
    let mut files = tests::catalogue::files().unwrap();
    assert_eq!(invoke(json!({"files": files})).await["result"], "loaded");
    files.remove("slack.json");
    assert_eq!(invoke(json!({"files": files})).await["result"], "loaded");
    invoke(json!({"import": {"app": "slack_v2"}})).await;
    for (slug, owner) in [("harbour", "one"), (&world.home.slug[..], "another")] {
        invoke(json!({"organization": {"slug": slug, "owner": owner, "add_owner": true}})).await;
    }
    invoke(json!({"budgets": {"slug": "harbour", "runs_per_hour": 5}})).await;
    note(asked, "catalogue", world);
}

/// Sends a request as the home organization's user.
async fn ask(world: &World, function: &str, method: &str, path: &str, body: &Value) -> Answer {
    let event = tests::Event::new(method, &format!("/api/{}/{path}", world.home.slug)).user(&world.home.user_id);
    world.send(function, &if body.is_null() { event } else { event.text(body.to_string()) }).await
}

/// Adds, lists, changes and removes a member; an owner leaves.
async fn members(world: &World) {
    for (user, role) in [("one", "member"), ("two", "owner")] {
        ask(world, "members", "POST", "members", &json!({"user_id": user, "role": role})).await.expect(201);
    }
    ask(world, "members", "GET", "members", &Value::Null).await.expect(200);
    ask(world, "members", "GET", "members/one", &Value::Null).await.expect(200);
    ask(world, "members", "GET", "audit", &Value::Null).await.expect(200);
    ask(world, "members", "PATCH", "members/one", &json!({"role": "owner"})).await.expect(200);
    ask(world, "members", "DELETE", "members/one", &Value::Null).await.expect(200);
    ask(world, "members", "DELETE", &format!("members/{}", world.home.user_id), &Value::Null).await.expect(200);
    let row = json!({"user_id": world.home.user_id, "organization_id": world.home.organization_id, "role": "owner"});
    world.aws.put("organization_members", &row);
}

/// Reports on a call, and its timeline.
async fn calls(world: &World) {
    world.executions_of_call("unknown").await.expect(404);
    world.incoming_call(&world.home, "call-1", &phone(1));
    let bearer = format!("Bearer {}", world.options.webhook_bearer.clone().unwrap());
    for status in ["in-progress", "ended"] {
        let message = json!({"message": {"type": "status-update", "status": status, "call": {"id": "call-1"}}});
        let event = Event::post("/api/vapi/events", &message).header("authorization", &bearer);
        world.send("calls", &event).await.expect(200);
    }
    world.calls("").await.expect(200);
    assert_eq!(world.calls("/call-1").await.expect(200)["status"], "ended");
}

async fn tools_test(world: &World, saved: [&Value; 4]) {
    let arguments = json!({"text": "Hi", "query": "river"});
    let body = |dry_run: bool| json!({"arguments": arguments, "dry_run": dry_run, "called_phone_number": world.home.phone_number, "caller_phone_number": phone(1)});
    for tool in saved {
        for dry_run in [true, false] {
            let mut body = body(dry_run);
            body["tool_id"] = tool["id"].clone();
            world.try_tool(&body).await.expect(200);
        }
    }
    for limits in [json!({"per_hour": 1}), json!({"per_call": 1, "per_hour": 1})] {
        let mut config = ai_sms();
        config["limits"] = limits;
        let newest =
            json!({"config": config, "arguments": arguments, "dry_run": false, "caller_phone_number": phone(1)});
        world.try_tool(&newest).await.expect(200);
        world.try_tool(&newest).await.expect(200);
    }
    let transfer = json!({"type": "transfer_call", "label": "Hand over", "target": {"type": "assistant", "assistantId": world.home.assistant_id}});
    world.try_tool(&json!({"config": transfer, "dry_run": false})).await.expect(200);
}

async fn agents(world: &World) {
    let assistant = world.at_vapi("POST", "/assistant", &json!({"name": "Nights"})).await;
    let body = json!({"external_assistant_id": assistant["id"]});
    let refused = ask(world, "agents", "POST", "agents", &body).await;
    assert!([201, 422].contains(&refused.status), "with an account of its own it needs no proof");
    world.aws.rows("agents").iter().filter(|row| row["external_assistant_id"] == assistant["id"]).for_each(|row| {
        world.aws.delete("agents", row["id"].as_str().unwrap());
        world.aws.delete("agents", &format!("assistant#{}", assistant["id"].as_str().unwrap()));
    });
    world.prove(&world.home, assistant["id"].as_str().unwrap()).await;
    let agent = ask(world, "agents", "POST", "agents", &body).await.expect(201);
    let new = format!("agents/{}", agent["id"].as_str().unwrap());
    let seeded = format!("agents/{}", world.home.agent_id);
    ask(world, "agents", "GET", "agents", &Value::Null).await.expect(200);
    ask(world, "agents", "GET", &new, &Value::Null).await.expect(200);
    ask(world, "agents", "DELETE", &seeded, &Value::Null).await.expect(409);
    world.aws.change("phone_numbers", &world.home.phone_number_id, json!({"agent_id": null}));
    ask(world, "agents", "DELETE", &seeded, &Value::Null).await.expect(200);
}

async fn phone_numbers(world: &World) {
    let home = &world.home;
    let seeded = format!("phone-numbers/{}", home.phone_number_id);
    world.aws.inject(tests::Fault::throttled("TransactWriteItems", "phone_numbers"));
    ask(world, "phone-numbers", "DELETE", &seeded, &Value::Null).await.expect(503);
    ask(world, "phone-numbers", "DELETE", &seeded, &Value::Null).await.expect(200);
    let now = Timestamp::now();
    world.aws.put(
        "agents",
        &json!({
            "id": home.agent_id, "organization_id": home.organization_id, "name": "Nights",
            "external_assistant_id": home.assistant_id, "created_at": now, "updated_at": now,
        }),
    );
    let body = json!({
        "number": home.phone_number, "label": "Main line", "agent_id": home.agent_id,
        "twilio": {"account_sid": home.twilio_sid, "auth_token": home.twilio_token},
    });
    let row = ask(world, "phone-numbers", "POST", "phone-numbers", &body).await.expect(201);
    let path = format!("phone-numbers/{}", row["id"].as_str().unwrap());
    ask(world, "phone-numbers", "GET", "phone-numbers", &Value::Null).await.expect(200);
    ask(world, "phone-numbers", "GET", &path, &Value::Null).await.expect(200);
    let at_vapi = world.vapi.set_number(&home.phone_number, &home.assistant_id).unwrap();
    let change = json!({"agent_id": null, "vapi_phone_number_id": at_vapi, "twilio": body["twilio"]});
    ask(world, "phone-numbers", "PATCH", &path, &change).await.expect(200);
}

async fn patch_hook(world: &World, path: &str, body: Value) -> Answer {
    world.hooks(&world.home, "PATCH", path, &body).await
}

/// Creates, changes and deletes hooks; their events arrive, fail and repeat.
async fn hooks(asked: &mut Permissions, world: &mut World) {
    world.slack_service();
    let automation = world.active(&world.urgent_messages()).await;
    world.restart();
    world.aws.clear_operations();
    let hook = world.hook(&json!({"service": "slack", "secret": SLACK_SECRET, "tenant": tests::SLACK_TENANT})).await;
    let notion = world.hook(&json!({"service": "Notion"})).await;
    world.hooks(&world.home, "POST", "", &json!({"service": "Slakc"})).await.expect(422);
    let path = format!("/{}", hook["id"].as_str().unwrap());
    world.aws.inject(tests::Fault::throttled("TransactWriteItems", "hooks"));
    patch_hook(world, &path, json!({"secret": "lost"})).await.expect(503);
    patch_hook(world, &path, json!({"secret": "second"})).await.expect(200);
    patch_hook(world, &path, json!({"label": "x"})).await.expect(200);
    patch_hook(world, &path, json!({"remove_secret": hook["secrets"][0]["id"]})).await.expect(200);
    for path in ["", &path] {
        world.hooks(&world.home, "GET", path, &Value::Null).await.expect(200);
    }
    note(asked, "hooks", world);
    let bound = world.pipedream_hook(&automation, "whsk_1").await;
    world.restart();
    world.aws.clear_operations();

    let second = Signer::Slack("second");
    let urgent = slack_message("Ev1", "urgent");
    let shared = world.signed("/api/hooks/slack", second, &urgent);
    // The run is stored but its message is lost; then the event comes again.
    world.aws.inject(tests::Fault::throttled("SendMessage", "runs"));
    assert!(world.send("trigger", &shared).await.status >= 500);
    for _again in 0..2 {
        world.send("trigger", &shared).await.expect(200);
    }
    world.deliver_signed(&hook, second, &slack_message("Ev2", "lunch?")).await.expect(200);
    world.deliver_signed(&bound, Signer::Pipedream("whsk_1"), &urgent).await.expect(200);
    let token = json!({"verification_token": "secret_of_notion"});
    world.aws.inject(tests::Fault::throttled("TransactWriteItems", "hooks"));
    assert!(world.deliver_signed(&notion, Signer::Unsigned, &token).await.status >= 500);
    world.deliver_signed(&notion, Signer::Unsigned, &token).await.expect(200);
    // Slow filters are evaluated from the queue.
    let words: Vec<String> = (0..400).map(|number| format!("word {number}")).chain(["urgent".to_owned()]).collect();
    let filter = json!({"path": "event.text", "op": "contains_any", "value": words}).to_string();
    world.aws.change("automations", &automation, json!({"trigger_filter": filter}));
    let long = slack_message("Ev4", &format!("{} urgent", "x".repeat(60_000)));
    world.deliver_signed(&hook, second, &long).await.expect(200);
    let mut gone = slack_message("Ev3", "");
    gone["event"] = json!({"type": "app_uninstalled"});
    world.deliver_signed(&hook, second, &gone).await.expect(200);
    note(asked, "trigger", world);
    assert_eq!(world.aws.messages("scheduled").len(), 1);
    assert_eq!(world.run_scheduled().await, 0);
    note(asked, "schedule", world);

    patch_hook(world, &format!("/{}", notion["id"].as_str().unwrap()), json!({"reveal": true})).await.expect(200);
    let events = world.events("").await.expect(200);
    world.events("?matched=false").await.expect(200);
    world.events(&format!("/{}", events["items"][0]["id"].as_str().unwrap())).await.expect(200);
    world.hooks(&world.home, "DELETE", &path, &Value::Null).await.expect(200);
    note(asked, "hooks", world);
}

/// Replaces the key, changes to another account while VAPI holds nothing, and returns to the platform's.
async fn keys(world: &World) -> Answer {
    let put = async |key: &str| world.keys(&world.home, "PUT", "/vapi", &json!({"api_key": key})).await;
    world.aws.put(
        "agents",
        &json!({
            "id": world.home.agent_id, "organization_id": world.home.organization_id, "name": "Nights",
            "external_assistant_id": world.home.assistant_id, "created_at": Timestamp::now(), "updated_at": Timestamp::now(),
        }),
    );
    put(SECOND_PLATFORM_KEY).await.expect(200);
    put(OWN_KEYS[0]).await.expect(409);
    world.keys(&world.home, "GET", "", &Value::Null).await.expect(200);
    let rows = world.aws.rows("agents");
    for row in rows.iter().filter(|row| row["organization_id"] == world.home.organization_id) {
        world.aws.delete("agents", row["id"].as_str().unwrap());
    }
    put(SECOND_PLATFORM_KEY).await.expect(200);
    world.keys(&world.home, "PUT", "/llm", &json!({"api_key": "sk-1"})).await.expect(200);
    world.keys(&world.home, "DELETE", "/llm", &Value::Null).await.expect(200);
    world.keys(&world.home, "DELETE", "/vapi", &Value::Null).await
}

#[tokio::test]
async fn a_role_grants_exactly_the_requests_of_its_function() {
    let template = Template::read();
    let mut all = asked(false).await;
    for (function, needs) in asked(true).await {
        all.entry(function).or_default().extend(needs);
    }
    let functions = template.resources("AWS::Serverless::Function");
    let tried: BTreeSet<String> = all.keys().map(|function| format!("{}Function", pascal(function))).collect();
    assert_eq!(tried, functions.keys().map(ToString::to_string).collect(), "functions whose paths are tried here");
    let mut wrong = Vec::new();
    for (function, needs) in all {
        let grants = granted(&template, function);
        let missing: Vec<_> = needs.iter().filter(|need| !grants.iter().any(|grant| allows(grant, need))).collect();
        if !missing.is_empty() {
            wrong.push(format!("{function} would be refused on AWS: {missing:#?}"));
        }
        let unused: Vec<_> = grants.iter().filter(|grant| !needs.iter().any(|need| allows(grant, need))).collect();
        if !unused.is_empty() {
            wrong.push(format!("{function} may do what it never does: {unused:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
