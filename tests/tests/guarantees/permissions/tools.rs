//! Requests of tools in calls, of their changes and of settling.

use std::time::Duration;

use serde_json::{Value, json};
use shared::{
    Deadline,
    models::{AutomationRun, RunId, RunLimits, RunTrigger, Timestamp},
};
use tests::{
    Event, World, ai_sms, phone, preemptive_sms, slack_action,
    standins::{Effect, Fault, vapi::PhoneCall},
};

use super::automations::{approval, polled};
use super::{Permissions, ask, connect, note, with_secret};

/// Attaches and detaches knowledge bases; then attaches tools, removes an agent and settles with them.
pub(super) async fn knowledge_of_agents(asked: &mut Permissions, world: &mut World) {
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

pub(super) async fn detach_update_delete(asked: &mut Permissions, world: &mut World) {
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
pub(super) async fn call_start(asked: &mut Permissions, world: &mut World) {
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

/// Delivers a queued execution of each of these tools, and one whose result another tool sends after the call.
pub(super) async fn run_tool(asked: &mut Permissions, world: &mut World, tools: &[&Value]) {
    let (sms, base) = (
        world.tool(&ai_sms()).await,
        world.knowledge_base(&json!([{"name": "title", "type": "text"}]), &json!([{"title": "river"}])).await,
    );
    let lookup = json!({
        "type": "query", "label": "Look up", "knowledge_base_id": base["id"], "async": true,
        "if_call_over": {"tool": sms["id"]},
    });
    let lookup = world.tool(&lookup).await;
    world.incoming_call(&world.home, "over", &phone(1));
    world.aws.change("calls", "over", json!({"ended_at": Timestamp::now()}));
    let home = world.home.organization_id.clone();
    // A caller who returned after a transfer: the new agent is told the effects of the call before.
    world.incoming_call(&world.home, "returned", &phone(1));
    world.aws.change("calls", "returned", json!({"returned_from": "over", "preface": "The caller is back."}));
    let done = json!({
        "id": uuid::Uuid::now_v7(), "organization_id": home, "history_of": home, "organization_call": format!("{home}#over"),
        "tool_id": sms["id"], "status": "succeeded", "started_at": "2026-11-20T16:20:52.123Z", "duration_ms": 7,
        "expires_at": 4_000_000_000_i64,
        "result": {"recipients": [{"to": "[1]", "state": "sent", "sid": "SM9"}]},
    });
    world.aws.put("executions", &done);
    world.restart();
    world.aws.clear_operations();
    let due = json!({"kind": "context_due", "organization_id": home, "call_id": "returned"});
    world.aws.post("executions", &due.to_string());
    let run = json!({
        "kind": "run", "execution_id": uuid::Uuid::now_v7().to_string(), "organization_id": world.home.organization_id,
        "tool_id": lookup["id"], "call_id": "over", "caller": phone(1), "called": world.home.phone_number,
        "arguments": {"query": "river"}, "trigger": "conversation", "queued_at": Timestamp::now(),
    });
    world.aws.post("executions", &run.to_string());
    assert_eq!(world.run_queued().await, 0);
    assert!(world.aws.messages("executions").iter().any(|message| message["tool_id"] == sms["id"]));
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
    polled(asked, "run-tool", "start-tools");
}

/// Settles a handmade intent of each kind.
pub(super) async fn settle(asked: &mut Permissions, world: &mut World, tool: &Value) {
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
    let limits = RunLimits::default();
    let organization = world.home.organization_id.parse().unwrap();
    let waits = AutomationRun::queued(RunId::generate(), organization, RunTrigger::Manual, limits, 4_000_000_000);
    approval(world, &json!(waits.id));
    let mut row = json!(waits);
    row["part"] = json!("run");
    world.aws.put("automation_runs", &row);
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
    assert!(world.aws.receive("runs", 900).is_some(), "the run that waits is woken");
    world.aws.delete("intents", row["id"].as_str().unwrap());
}

/// A load, a load that removes entries, and an import.
pub(super) async fn catalogue(asked: &mut Permissions, world: &mut World) {
    let invoke = async |event: Value| {
        let deadline = Deadline::after(Duration::from_secs(30));
        operator::handle(&world.process.operator, event, deadline).await.unwrap()
    };
    let mut files = tests::catalogue::files().unwrap();
    assert_eq!(invoke(json!({"files": files})).await["result"], "loaded");
    files.remove("slack.json");
    assert_eq!(invoke(json!({"files": files})).await["result"], "loaded");
    invoke(json!({"import": {"app": "slack_v2"}})).await;
    invoke(json!({"organization": {"slug": "harbour", "owner": "one"}})).await;
    for slug in ["harbour", &world.home.slug] {
        invoke(json!({"organization": {"slug": slug, "owner": "another", "add_owner": true}})).await;
    }
    invoke(json!({"budgets": {"slug": "harbour", "runs_per_hour": 5}})).await;
    note(asked, "operator", world);
}
