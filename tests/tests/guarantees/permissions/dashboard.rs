//! Requests of the dashboard's functions.

use serde_json::{Value, json};
use shared::models::Timestamp;
use tests::{
    Answer, Event, OWN_KEYS, SECOND_PLATFORM_KEY, SLACK_SECRET, World, ai_sms, phone, slack_message,
    standins::{
        Standin,
        llm::{Llm, Turn},
    },
    webhooks::Signer,
};

use super::{Permissions, ask, note, own_llm};

/// Adds, lists, changes and removes a member; an owner leaves.
pub(super) async fn members(world: &World) {
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
pub(super) async fn calls(world: &World, claims: &Standin<Llm>) {
    world.executions_of_call("unknown").await.expect(404);
    world.incoming_call(&world.home, "call-1", &phone(1));
    let bearer = format!("Bearer {}", world.options.webhook_bearer.clone().unwrap());
    for status in ["in-progress", "ended"] {
        let message = json!({"message": {"type": "status-update", "status": status, "call": {"id": "call-1"}}});
        let event = Event::post("/api/vapi/events", &message).header("authorization", &bearer);
        world.send("calls", &event).await.expect(200);
    }
    let said = json!({"messages": [{"role": "user", "message": "Please stop calling me."}]});
    let report = json!({"message": {"type": "end-of-call-report", "artifact": said, "call": {"id": "call-1"}}});
    world.send("calls", &Event::post("/api/vapi/events", &report).header("authorization", &bearer)).await.expect(200);
    // A placed call whose row is missing.
    let name = uuid::Uuid::now_v7().to_string();
    let home = &world.home;
    world.aws.put(
        "calls",
        &json!({
            "id": format!("placing-{name}"), "organization_id": home.organization_id, "agent_id": home.agent_id,
            "caller_phone_number": phone(3), "called_phone_number": home.phone_number,
            "phone_number_id": home.phone_number_id, "call_expires_at": 4_000_000_000_i64, "expires_at": 4_000_000_000_i64,
        }),
    );
    let call = json!({"id": "call-3", "type": "outboundPhoneCall", "name": name});
    let ringing = json!({"message": {"type": "status-update", "status": "ringing", "call": call}});
    world.send("calls", &Event::post("/api/vapi/events", &ringing).header("authorization", &bearer)).await.expect(200);
    world.calls("").await.expect(200);
    assert_eq!(world.calls("/call-1").await.expect(200)["status"], "ended");
    let organization = &world.home.organization_id;
    world.aws.put(
        "executions",
        &json!({
            "id": uuid::Uuid::now_v7().to_string(), "organization_id": organization, "tool_id": organization,
            "call_id": "call-1", "organization_call": format!("{organization}#call-1"), "status": "succeeded",
            "result": {"recipients": [{"to": "[1]", "state": "sent", "sid": "SM9"}]},
            "started_at": Timestamp::now(), "duration_ms": 7, "expires_at": Timestamp::now().as_seconds() + 86_400,
        }),
    );
    assert_eq!(world.calls("/call-1/receipt").await.expect(200)["done"][0]["tool"], Value::Null);

    world.incoming_call(&world.home, "call-2", &phone(1));
    let before = own_llm(world);
    let mut own = world.aws.row("organizations", organization).unwrap()["own_keys"].clone();
    own["llm"]["verifies_claims"] = json!(true);
    world.aws.change("organizations", organization, json!({"own_keys": own}));
    let name = format!("switchboard/organizations/llm/{organization}/{}", own["llm"]["id"].as_str().unwrap());
    world.aws.put_secret(&name, &json!({"api_key": "own", "base_url": claims.url}));
    claims.script([Turn::tool("report_claims", json!({"claims": []}))]);
    let said = json!({"messages": [{"role": "bot", "message": "Goodbye."}]});
    let report = json!({"message": {"type": "end-of-call-report", "artifact": said, "call": {"id": "call-2"}}});
    world.send("calls", &Event::post("/api/vapi/events", &report).header("authorization", &bearer)).await.expect(200);
    assert_eq!(world.calls("/call-2").await.expect(200)["claim_check"]["status"], "checked");
    world.aws.change("organizations", organization, json!({"own_keys": before}));
}

pub(super) async fn tools_test(world: &World, saved: [&Value; 5]) {
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

pub(super) async fn agents(world: &World) {
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

pub(super) async fn phone_numbers(world: &World) {
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
    for number in [1, 2] {
        let body = json!({"phone_number": phone(number)});
        for _twice in 0..2 {
            ask(world, "phone-numbers", "POST", "do-not-call", &body).await;
        }
    }
    let listed = ask(world, "phone-numbers", "GET", "do-not-call", &Value::Null).await.expect(200);
    let entry = format!("do-not-call/{}", listed["items"][0]["id"].as_str().unwrap());
    ask(world, "phone-numbers", "DELETE", &entry, &Value::Null).await.expect(200);
    let at_vapi = world.vapi.set_number(&home.phone_number, &home.assistant_id).unwrap();
    let change = json!({"agent_id": null, "vapi_phone_number_id": at_vapi, "twilio": body["twilio"]});
    ask(world, "phone-numbers", "PATCH", &path, &change).await.expect(200);
}

async fn patch_hook(world: &World, path: &str, body: Value) -> Answer {
    world.hooks(&world.home, "PATCH", path, &body).await
}

/// Creates, changes and deletes hooks; their events arrive, fail and repeat.
#[expect(clippy::too_many_lines, reason = "it is a list of requests")]
pub(super) async fn hooks(asked: &mut Permissions, world: &mut World) {
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
    let texts = world.hook(&json!({"service": "Twilio", "secret": "of-twilio"})).await;
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
    let stop = json!({"MessageSid": "SM1", "From": phone(3), "To": world.home.phone_number, "Body": "STOP"});
    assert_eq!(world.deliver_signed(&texts, Signer::Twilio("of-twilio"), &stop).await.status, 200);
    let text = json!({"MessageSid": "SM2", "AccountSid": world.home.twilio_sid, "From": phone(3), "To": world.home.phone_number, "Body": "Hi"});
    let text = world.signed("/api/hooks/twilio", Signer::Twilio(&world.home.twilio_token), &text);
    assert_eq!(world.send("trigger", &text).await.status, 200);
    let status = json!({
        "MessageSid": "SM3", "MessageStatus": "undelivered", "AccountSid": world.home.twilio_sid, "From": world.home.phone_number,
        "To": phone(3),
    });
    let status = world.signed("/api/hooks/twilio/statuses", Signer::Twilio(&world.home.twilio_token), &status);
    assert_eq!(world.send("trigger", &status).await.status, 200);
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
    world.catalogue_service("calls");
    let after_calls = world
        .active(&json!({
            "name": "After calls", "trigger_type": "webhook",
            "trigger_config": {"service": "Calls", "event_type": "call.ended"},
            "actions": [{"id": "now", "tool": "current_time", "parameters": {}}],
            "fingerprints": {"current_time": "built-in"},
        }))
        .await;
    // Twilio never asked about its transfer.
    let transfer = json!({
        "execution_id": uuid::Uuid::now_v7().to_string(), "at": "2026-01-01T00:00:00.000Z", "ring_seconds": 20,
        "returns": true, "rung": [],
    });
    world.aws.change("calls", "call-1", json!({"transfer": transfer}));
    let ended =
        json!({"organization_id": world.home.organization_id, "call_id": "call-1", "unrequested_transfer": true});
    world.aws.post("scheduled", &ended.to_string());
    // A run waits for the same event.
    let organization = &world.home.organization_id;
    world.aws.put(
        "event_waits",
        &json!({
            "trigger_key": format!("{organization}#calls#call.ended"), "place": format!("{}#step", uuid::Uuid::now_v7()),
            "organization_id": organization, "run_id": uuid::Uuid::now_v7().to_string(), "automation_id": after_calls,
            "filled": "[]", "until": "2096-01-01T00:00:00.000Z", "created_at": "2026-01-01T00:00:00.000Z",
            "expires_at": 4_000_000_000_u64,
        }),
    );
    // A tool failed, too.
    let failures = world
        .active(&json!({
            "name": "Failures", "trigger_type": "webhook",
            "trigger_config": {"service": "Calls", "event_type": "tool.failed"},
            "actions": [{"id": "now", "tool": "current_time", "parameters": {}}],
            "fingerprints": {"current_time": "built-in"},
        }))
        .await;
    let failed = uuid::Uuid::now_v7().to_string();
    let row = json!({
        "id": failed, "organization_id": organization, "tool_id": uuid::Uuid::now_v7().to_string(), "status": "failed",
        "started_at": Timestamp::now(), "duration_ms": 7, "expires_at": 4_000_000_000_i64,
    });
    world.aws.put("executions", &row);
    world.aws.post("scheduled", &json!({"organization_id": organization, "failed_execution_id": failed}).to_string());
    assert_eq!(world.aws.messages("scheduled").len(), 3);
    world.restart();
    world.aws.clear_operations();
    assert_eq!(world.run_scheduled().await, 0);
    assert_eq!((world.runs_of(&after_calls).len(), world.runs_of(&failures).len()), (1, 1));
    note(asked, "schedule", world);

    patch_hook(world, &format!("/{}", notion["id"].as_str().unwrap()), json!({"reveal": true})).await.expect(200);
    let events = world.events("").await.expect(200);
    world.events("?matched=false").await.expect(200);
    let event = events["items"][0]["id"].as_str().unwrap();
    world.events(&format!("/{event}")).await.expect(200);
    let replay = format!("/api/{}/events/{event}/replay", world.home.slug);
    let replay = Event::post(&replay, &json!({"automation_id": automation})).user(&world.home.user_id);
    world.aws.inject(tests::Fault::throttled("SendMessage", "runs"));
    let again = replay.header("idempotency-key", "one");
    assert_eq!(world.send("hooks", &again).await.status, 503);
    world.send("hooks", &again).await.expect(202);
    let plans = [json!({}), json!({"only_failed": true}), json!({"automation_id": automation})];
    for (number, filter) in plans.iter().enumerate() {
        let plan = world.replays(&world.home, "POST", "", filter).await.expect(201);
        let plan = format!("/{}", plan["id"].as_str().unwrap());
        world.replays(&world.home, "GET", &plan, &Value::Null).await.expect(200);
        world.replays(&world.home, "POST", &format!("{plan}/start"), &Value::Null).await.expect(202);
        if number == 0 {
            world.replays(&world.home, "POST", &format!("{plan}/cancel"), &Value::Null).await.expect(200);
        } else {
            note(asked, "hooks", world);
            // Its progress is lost: the batch comes again, and finds its runs.
            world.aws.inject(tests::Fault::throttled("UpdateItem", "replays"));
            world.run_scheduled().await;
            world.run_scheduled().await;
            note(asked, "schedule", world);
        }
    }
    world.replays(&world.home, "GET", "", &Value::Null).await.expect(200);
    world.hooks(&world.home, "DELETE", &path, &Value::Null).await.expect(200);
    note(asked, "hooks", world);
}

/// Replaces the key, changes to another account while VAPI holds nothing, and returns to the platform's.
pub(super) async fn keys(world: &World) -> Answer {
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
