//! Requests of automations: saving, running, schedules.

use std::time::Duration;

use serde_json::{Value, json};
use shared::models::{Binding, CallOutcome, CallerHash, RunStatus, ServiceId, Timestamp};
use tests::{
    Trouble, World,
    automation::{AMPLE, RunSpec, begin, calls as block, whole},
    automation_event,
    aws::TABLE_PREFIX,
    phone, sms_without_call,
    standins::{Fault, llm::Turn},
    webhooks::Signer,
};

use super::conversations::{building_agent, chat, discover, mcp};
use super::{Permissions, ask, note, streams};

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
        let of_call = format!("{}#{call}", world.home.organization_id);
        execution(json!({"organization_call": of_call, "status": "failed", "trigger": "conversation"}));
    }
    world.aws.put(
        "events",
        &json!({
            "id": uuid::Uuid::now_v7().to_string(), "organization_id": world.home.organization_id, "data": phone(8),
            "created_at": now, "expires_at": 4_000_000_000_u64,
        }),
    );
    world.aws.put(
        "automation_memory",
        &json!({"organization_id": world.home.organization_id, "place": "a#k", "key": "k", "value": phone(8)}),
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
        json!({"calls": 1, "executions": 3, "runs": 1, "events": 1, "threads": 2, "remembered": 1}),
        "{erased}"
    );
    note(asked, "erasures", world);
}

pub(super) async fn automations(asked: &mut Permissions, world: &mut World, tools: &[&Value]) {
    run_loop(asked, world, tools).await;
    runs(asked, world, tools).await;
    privacy(asked, world, tools[0]).await;
    ask(world, "usage", "GET", "usage", &Value::Null).await.expect(200);
    note(asked, "usage", world);
    discover(asked, world).await;
    mcp(asked, world, tools).await;
    building_agent(asked, world).await;
    automation_runs(asked, world).await;
    memory(asked, world).await;
    long_pause(asked, world).await;
    called_automation(asked, world).await;
    awaited_event(asked, world).await;
    chat(asked, world, tools).await;
    Box::pin(streams::stream(asked, world, tools)).await;
}

/// A pause longer than a message may wait has a schedule.
async fn long_pause(asked: &mut Permissions, world: &mut World) {
    let pause = json!([{"id": "pause", "wait": {"minutes": 600}}, {"id": "read", "tool": "recall", "parameters": {"key": "k"}}]);
    let automation = world.activate(&world.manual(&pause)).await;
    world.start_automation(&automation, "pause", &json!({})).await;
    world.restart();
    world.aws.clear_operations();
    assert_eq!(world.run_loop(AMPLE).await, 0);
    note(asked, "run-loop", world);
}

/// A run starts a run of another automation.
async fn called_automation(asked: &mut Permissions, world: &mut World) {
    let inner =
        world.manual(&json!([{"id": "read", "tool": "recall", "parameters": {"key": "k"}, "output_as": "read"}]));
    let inner = world.activate(&inner).await;
    world.restart();
    world.aws.clear_operations();
    let call = json!([{"id": "call", "tool": "call_automation", "parameters": {"automation_id": inner.id}}]);
    let outer = world.activate(&world.manual(&call)).await;
    note(asked, "deploy", world);
    let run = world.start_automation(&outer, "calls", &json!({})).await;
    world.restart();
    world.aws.clear_operations();
    assert_eq!(world.run_loop(AMPLE).await, 0);
    assert_eq!(whole(world, run.id).await.run.status, RunStatus::Completed);
    note(asked, "run-loop", world);
}

/// A run waits for an event of an own hook, which comes; another is cancelled while it waits.
async fn awaited_event(asked: &mut Permissions, world: &mut World) {
    let hook = world.hook(&json!({"service": "harbour"})).await;
    let wait = json!([{"id": "paid", "wait": {"for_event": {"hook": "harbour", "timeout": 600}}, "output_as": "paid"}]);
    let automation = world.activate(&world.manual(&wait)).await;
    world.start_automation(&automation, "comes", &json!({})).await;
    world.restart();
    world.aws.clear_operations();
    assert_eq!(world.run_loop(AMPLE).await, 0);
    note(asked, "run-loop", world);
    let signer = Signer::StandardWebhooks(hook["secret"].as_str().unwrap());
    world.deliver_signed(&hook, signer, &json!({"type": "paid"})).await.expect(200);
    note(asked, "trigger", world);
    assert_eq!(world.run_loop(AMPLE).await, 0);
    assert!(world.aws.rows("event_waits").is_empty());
    note(asked, "run-loop", world);
    let run = world.start_automation(&automation, "cancelled", &json!({})).await;
    assert_eq!(world.run_loop(AMPLE).await, 0);
    world.restart();
    world.aws.clear_operations();
    world.cancel_run(&run.id.to_string()).await.expect(200);
    note(asked, "runs", world);
}

/// Remembers a value when the memory is counted anew, recalls it, and deletes the automation with its memory.
async fn memory(asked: &mut Permissions, world: &mut World) {
    let automation = world
        .activate(&world.manual(&json!([
            {"id": "read", "tool": "recall", "parameters": {"key": "k"}},
            {"id": "write", "tool": "remember", "parameters": {"key": "k"}},
        ])))
        .await;
    let of = |place: String, more: Value| {
        let mut row = json!({"organization_id": world.home.organization_id, "place": place});
        row.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        world.aws.put("automation_memory", &row);
    };
    of(automation.id.to_string(), json!({"keys": 256}));
    of(format!("{}#old", automation.id), json!({"key": "old", "expires_at": 1}));
    world.start_automation(&automation, "memory", &json!({})).await;
    world.restart();
    world.aws.clear_operations();
    assert_eq!(world.run_loop(AMPLE).await, 0);
    assert_eq!(world.aws.rows("automation_memory").len(), 2);
    note(asked, "run-loop", world);
    world.automation("DELETE", &format!("/{}", automation.id), &Value::Null).await.expect(204);
    assert!(world.aws.rows("automation_memory").is_empty());
    note(asked, "deploy", world);
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
pub(super) fn approval(world: &World, run: &Value) -> String {
    let id = uuid::Uuid::now_v7().to_string();
    world.aws.put("approvals", &json!({
        "id": id, "organization_id": world.home.organization_id, "run_id": run, "action_id": "a", "tool": "current_time",
        "arguments": "{}", "arguments_hash": "00", "status": "pending", "valid_until": "2096-01-01T00:00:00.000Z",
        "open": "open", "wake_at": "2026-01-01T00:00:00.000Z", "created_at": "2026-01-01T00:00:00.000Z",
        "updated_at": "2026-01-01T00:00:00.000Z", "expires_at": 4_000_000_000_u64,
    }));
    id
}

/// Executes a run that calls each of these tools, and one with the organization's own model, which is unreachable.
pub(super) async fn run_loop(asked: &mut Permissions, world: &mut World, tools: &[&Value]) {
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
pub(super) async fn runs(asked: &mut Permissions, world: &mut World, tools: &[&Value]) {
    let body = json!({"prompt": "Hello", "tools": tools.iter().map(|tool| &tool["id"]).collect::<Vec<_>>()});
    world.aws.inject(tests::Fault::new("SendMessage", "runs", Trouble::Error("ServiceUnavailable")).times(3));
    world.start_run_once("one", &body).await.expect(503);
    let run = world.start_run_once("one", &body).await.expect(200)["id"].clone();
    world.runs("").await.expect(200);
    world.runs("?automation_id=01930f5e-0000-7000-8000-0000000000e9").await.expect(200);
    world.run(run.as_str().unwrap()).await.expect(200);
    let waits_for = approval(world, &run);
    let mut row =
        world.aws.rows("automation_runs").into_iter().find(|row| row["id"] == run && row["part"] == "run").unwrap();
    row["waits_for_approval"] = json!(waits_for);
    world.aws.put("automation_runs", &row);
    world.cancel_run(run.as_str().unwrap()).await.expect(200);
    note(asked, "runs", world);
    let failed = world.failed_run().await.id;
    world.restart();
    world.aws.clear_operations();
    for status in [202, 200] {
        ask(world, "runs", "POST", &format!("runs/{failed}/retry"), &json!({"dry_run": false})).await.expect(status);
    }
    note(asked, "runs", world);
}

/// A service whose tool uses a credential that the organization stored.
pub(super) fn pay_service(world: &World) {
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
pub(super) async fn deploying(world: &World, query: &Value, lookup: &Value) -> Value {
    world.slack_service();
    world.service_with("SMS", &json!({"connection": {"type": "phone_number"}}));
    world.service_tool("SMS", "sms_send", "Sends.", &["text"]);
    pay_service(world);
    world.aws.clear_operations();

    let saved = world.deploy(&world.urgent_messages()).await.expect(201);
    let id = saved["automation"]["id"].as_str().unwrap();
    world.deploy(&world.urgent_messages()).await.expect(200);
    let mut own_hook = world.urgent_messages();
    (own_hook["trigger_config"], own_hook["dry_run"]) = (json!({"hook": "acme"}), json!(true));
    world.deploy(&own_hook).await.expect(200);
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
    world.aws.inject(tests::Fault::new("SendMessage", "runs", Trouble::Error("ServiceUnavailable")).after(1).times(3));
    assert_eq!(world.run_by_hand(id, &json!({"dry_run": true})).await.status, 503);
    let by_hand = automation_event(&world.home, "POST", &format!("/{id}/run"), &json!({"dry_run": true}));
    let by_hand = by_hand.header("idempotency-key", "once");
    let run = world.send("deploy", &by_hand).await.expect(202);
    world.send("deploy", &by_hand).await.expect(200);
    world.automation("GET", &format!("/{id}/runs"), &Value::Null).await.expect(200);
    world.remembers_offer(&world.home, id);
    world.automation("GET", &format!("/{id}/memory"), &Value::Null).await.expect(200);
    world.automation("POST", &format!("/{id}/memory/forget"), &json!({"key": "offer"})).await.expect(204);
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

pub(super) async fn approvals(world: &World, run: &Value) {
    let id = approval(world, run);
    for (method, path) in [("GET", String::new()), ("GET", format!("/{id}")), ("POST", format!("/{id}/approve"))] {
        world.approvals(method, &path, &Value::Null).await.expect(200);
    }
}

/// Automations with schedules and polls; their schedules are created, removed and settled.
pub(super) async fn by_the_clock(asked: &mut Permissions, world: &mut World, query: &Value, lookup: &Value) {
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
pub(super) async fn activated(world: &World, definition: &Value) -> String {
    let saved = world.deploy(definition).await.expect(201);
    let id = saved["automation"]["id"].as_str().unwrap().to_owned();
    world.automation("POST", &format!("/{id}/activate"), &json!({"version": 1})).await.expect(200);
    id
}

/// The permissions that Lambda's poller needs for a queue; the function itself does not use them.
pub(super) fn polled(asked: &mut Permissions, function: &'static str, queue: &str) {
    let needs = ["ReceiveMessage", "DeleteMessage", "GetQueueAttributes"];
    let needs = needs.map(|action| format!("sqs:{action} {TABLE_PREFIX}{queue}"));
    asked.entry(function).or_default().extend(needs);
}
