//! Calls as their organization sees them, and VAPI's reports on them.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

use serde_json::{Value, json};
use shared::models::Timestamp;
use tests::{Answer, Event, Tenant, World, ai_sms, logs::Logs, phone};
use uuid::Uuid;

/// The call of VAPI's example messages.
const CALL: &str = "55555555-5555-4555-8555-555555555555";

fn fixture(name: &str) -> Value {
    let path = format!("{}/fixtures/vapi/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn in_progress() -> Value {
    fixture("webhook_status_update")
}

fn ended() -> Value {
    let mut message = in_progress();
    message["message"]["status"] = json!("ended");
    message["message"]["endedReason"] = json!("customer-ended-call");
    message
}

fn report() -> Value {
    fixture("webhook_end_of_call_report")
}

/// A message of VAPI's with the bearer of its credential.
fn told(world: &World, message: &Value) -> Event {
    let bearer = format!("Bearer {}", world.options.webhook_bearer.as_ref().unwrap());
    Event::post("/api/vapi/events", message).header("authorization", &bearer)
}

async fn tell(world: &World, message: &Value) {
    let answer = world.send("calls", &told(world, message)).await.expect(200);
    assert_eq!(answer, json!({}));
}

/// A world with the call of the example messages, which came in for the home organization.
async fn world() -> World {
    let world = World::start().await;
    world.incoming_call(&world.home, CALL, &phone(1));
    world
}

fn row(world: &World) -> Value {
    world.aws.row("calls", CALL).unwrap()
}

async fn shown(world: &World) -> Value {
    world.calls(&format!("/{CALL}")).await.expect(200)
}

fn events(call: &Value) -> Vec<&str> {
    call["timeline"].as_array().unwrap().iter().map(|moment| moment["event"].as_str().unwrap()).collect()
}

/// `millis` milliseconds from now.
fn at(millis: i64) -> String {
    Timestamp::from_millis(Timestamp::now().as_millis() + millis).to_string()
}

/// An execution in the call, as a row.
fn run(world: &World, of: &Tenant, call: &str, more: &Value) {
    let mut row = json!({
        "id": Uuid::now_v7().to_string(), "organization_id": of.organization_id, "tool_id": Uuid::new_v4().to_string(),
        "call_id": call, "organization_call": format!("{}#{call}", of.organization_id), "trigger": "conversation",
        "status": "succeeded", "arguments": {}, "started_at": at(0), "duration_ms": 7,
        "expires_at": Timestamp::now().as_seconds() + 86_400,
    });
    row.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    world.aws.put("executions", &row);
}

// ------------------------------------------------------------------------------------------------ VAPI's reports

#[tokio::test]
async fn the_state_of_a_call_follows_vapis_events() {
    let world = world().await;
    tell(&world, &in_progress()).await;
    let call = row(&world);
    assert_eq!(call["status"], "in-progress");
    assert_eq!(call["control_url"], in_progress()["message"]["call"]["monitor"]["controlUrl"]);
    tell(&world, &ended()).await;
    let call = shown(&world).await;
    assert_eq!((&call["status"], &call["ended_reason"]), (&json!("ended"), &json!("customer-ended-call")));
    assert!(call["ended_at"].is_string() && call["cost"].is_null(), "{call}");
    tell(&world, &report()).await;
    let call = shown(&world).await;
    assert_eq!(call["ended_at"], report()["message"]["endedAt"]);
    assert_eq!((&call["duration_seconds"], &call["cost"]), (&json!(300.0), &json!(0.12)));
    assert_eq!(events(&call).iter().filter(|event| **event == "call_ended").count(), 1);
}

#[tokio::test]
async fn messages_may_come_twice_and_in_any_order() {
    let mut ringing = in_progress();
    ringing["message"]["status"] = json!("ringing");
    let all = [in_progress(), ended(), report(), ringing];
    for order in [[0, 1, 2, 3], [2, 1, 0, 3], [1, 0, 3, 2], [3, 2, 0, 1], [2, 2, 1, 1]] {
        let world = world().await;
        for message in order {
            tell(&world, &all[message]).await;
            tell(&world, &all[message]).await;
        }
        let call = shown(&world).await;
        let end = (&call["status"], &call["ended_reason"]);
        assert_eq!(end, (&json!("ended"), &json!("customer-ended-call")), "{order:?}");
        assert_eq!(call["ended_at"], report()["message"]["endedAt"], "{order:?}");
        assert_eq!((&call["duration_seconds"], &call["cost"]), (&json!(300.0), &json!(0.12)), "{order:?}");
    }
}

#[tokio::test]
async fn a_call_that_has_begun_does_not_ring_again() {
    let world = world().await;
    let mut ringing = in_progress();
    ringing["message"]["status"] = json!("ringing");
    tell(&world, &ringing).await;
    assert_eq!(row(&world)["status"], "ringing", "and it could, before");
    tell(&world, &in_progress()).await;
    tell(&world, &ringing).await;
    assert_eq!(row(&world)["status"], "in-progress");
    let mut forwarding = in_progress();
    forwarding["message"]["status"] = json!("forwarding");
    for message in [&forwarding, &in_progress()] {
        tell(&world, message).await;
        assert_eq!(row(&world)["status"], message["message"]["status"], "a transfer may fail");
    }
}

#[tokio::test]
async fn the_control_url_of_the_twiml_stays_and_an_invalid_one_is_left_out() {
    let world = world().await;
    let mut odd = in_progress();
    odd["message"]["call"]["monitor"]["controlUrl"] = json!("https://x.vapi.ai/listen");
    tell(&world, &odd).await;
    let call = row(&world);
    assert_eq!((call.get("control_url"), &call["status"]), (None, &json!("in-progress")));
    let ours = "https://phone.vapi.ai/call/control";
    world.aws.change("calls", CALL, json!({"control_url": ours}));
    tell(&world, &in_progress()).await;
    assert_eq!(row(&world)["control_url"], ours);
}

#[tokio::test]
async fn nothing_else_of_a_message_is_kept_or_logged() {
    let world = world().await;
    let logs = Logs::capture();
    let mut report = report();
    report["message"]["artifact"]["transcript"] = json!("AI: My password is swordfish");
    for message in [&in_progress(), &report] {
        tell(&world, message).await;
        let mut refused = told(&world, message);
        refused.headers.retain(|name, _| name != "authorization");
        world.send("calls", &refused).await.expect(401);
    }
    for known in [row(&world).to_string(), logs.text()] {
        for hidden in ["swordfish", "Caller booked", "rec.wav", "You answer the phone", "+15550100001"] {
            assert!(!known.contains(hidden), "{hidden} in {known}");
        }
    }
}

#[tokio::test]
async fn an_unusable_event_is_accepted_and_changes_nothing() {
    let world = world().await;
    let before = row(&world);
    let mut unknown = report();
    unknown["message"]["call"]["id"] = json!(Uuid::new_v4().to_string());
    let of = |more: &Value| {
        let mut message = json!({"call": {"id": CALL}});
        message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"message": message})
    };
    for message in [
        unknown,
        of(&json!({"type": "speech-update", "status": "ended"})),
        of(&json!({"type": "conversation-update", "messages": []})),
        of(&json!({"type": "status-update", "status": "levitating"})),
        of(&json!({"type": "status-update"})),
        of(&json!({"type": 7})),
        of(&json!({})),
        json!({"message": {"type": "status-update", "status": "ended"}}),
        json!({"message": {"type": "status-update", "status": "ended", "call": {"id": "../x"}}}),
    ] {
        tell(&world, &message).await;
    }
    assert_eq!((row(&world), world.aws.rows("calls").len()), (before, 1));
}

#[tokio::test]
async fn a_body_that_is_no_message_is_400() {
    let world = world().await;
    for body in ["", "{", "[]", "{}", "null", r#"{"message": "ended"}"#] {
        let answer = world.send("calls", &told(&world, &Value::Null).text(body)).await.expect(400);
        assert_eq!(answer["code"], "malformed", "{body}");
        // Nobody else hears of it.
        let stranger = Event::new("POST", "/api/vapi/events").header("authorization", "Bearer guessed").text(body);
        assert_eq!(world.send("calls", &stranger).await.status, 401, "{body}");
        assert_eq!(world.send("calls", &Event::new("POST", "/api/vapi/events").text(body)).await.status, 401, "{body}");
    }
}

#[tokio::test]
async fn a_message_with_a_whole_conversation_in_it_is_taken() {
    let world = world().await;
    let mut report = report();
    report["message"]["artifact"]["transcript"] = json!("word ".repeat(1_000_000));
    tell(&world, &report).await;
    assert_eq!(row(&world)["status"], "ended");
}

/// 401 for every call, in the same words and after the same reads.
#[tokio::test]
async fn only_the_bearer_of_the_calls_account_lets_in() {
    let world = world().await;
    let own = json!({"api_key": tests::OWN_KEYS[0], "webhook_bearer": "bearer-of-their-own"});
    world.own_key(&world.other, &own);
    let (theirs, unknown) = (Uuid::new_v4().to_string(), Uuid::new_v4().to_string());
    world.incoming_call(&world.other, &theirs, &phone(2));
    let platforms = world.options.webhook_bearer.clone().unwrap();
    let send = async |call: &str, name: &str, value: &str| -> Answer {
        let mut message = report();
        message["message"]["call"]["id"] = json!(call);
        world.aws.clear_operations();
        world.send("calls", &Event::post("/api/vapi/events", &message).header(name, value)).await
    };
    let reads = || -> Vec<String> {
        let asked = world.aws.dynamodb();
        asked.iter().map(|it| format!("{} {}", it.action, it.body["TableName"].as_str().unwrap())).collect()
    };
    let own = "bearer-of-their-own";
    let mut refusals = Vec::new();
    for (call, wrong) in [(CALL, own), (theirs.as_str(), platforms.as_str()), (unknown.as_str(), own)] {
        for bearer in [wrong, "wrong", &wrong[1..]] {
            for (name, value) in [("authorization", format!("Bearer {bearer}")), ("x-vapi-secret", bearer.to_owned())] {
                let mut refused = send(call, name, &value).await.expect(401);
                refused["request_id"] = Value::Null;
                refusals.push((refused, reads()));
            }
        }
    }
    refusals.dedup();
    assert_eq!(refusals.len(), 1, "{refusals:#?}");
    assert!(world.aws.rows("calls").iter().all(|row| row.get("ended_at").is_none()));
    send(&theirs, "x-vapi-secret", own).await.expect(200);
    send(CALL, "authorization", &format!("bearer {platforms}")).await.expect(200);
    send(&unknown, "x-vapi-secret", &platforms).await.expect(200);
    assert!(world.aws.rows("calls").iter().all(|row| row["status"] == "ended"));
}

#[tokio::test]
async fn without_a_credential_every_request_is_refused() {
    let world = World::with(tests::Options { webhook_bearer: None, ..tests::Options::default() }).await;
    world.incoming_call(&world.home, CALL, &phone(1));
    for bearer in ["", "x", "null"] {
        let event = Event::post("/api/vapi/events", &report()).header("authorization", &format!("Bearer {bearer}"));
        world.send("calls", &event).await.expect(401);
    }
}

/// A message of VAPI's about the call, `millis` milliseconds from now.
fn message(kind: &str, millis: i64, more: &Value) -> Value {
    let timestamp = Timestamp::now().as_millis() + millis;
    let mut message = json!({"type": kind, "timestamp": timestamp, "call": {"id": CALL}});
    message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"message": message})
}

/// The timeline's events from VAPI's reports.
fn reported(call: &Value) -> Vec<&str> {
    let ours = ["call_received", "twiml_answered"];
    events(call).into_iter().filter(|event| !ours.contains(event)).collect()
}

#[tokio::test]
async fn events_of_vapi_are_in_the_timeline_without_the_transcript() {
    let world = world().await;
    let created = json!({"created_at": at(-100_000)});
    world.aws.change("calls", CALL, created.clone());
    let speech = |millis, role: &str, status: &str| {
        message("speech-update", millis, &json!({"role": role, "status": status, "turn": 1}))
    };
    let mut connected = in_progress();
    connected["message"]["timestamp"] = json!(Timestamp::now().as_millis() - 90_000);
    let said = json!({"transcript": "My number is swordfish", "role": "user", "transcriptType": "final"});
    let desk = json!({"destination": {"type": "number", "number": "+14155550177"}});
    let mut forwarding = in_progress();
    forwarding["message"]["status"] = json!("forwarding");
    forwarding["message"]["timestamp"] = json!(Timestamp::now().as_millis() - 39_000);
    let mut all = vec![
        connected,
        speech(-80_000, "assistant", "started"),
        speech(-79_000, "assistant", "stopped"),
        speech(-78_000, "user", "started"),
        message("hang", -70_000, &json!({})),
        message("transcript", -60_000, &said),
        message("transfer-update", -40_000, &desk),
        forwarding,
    ];
    for number in 0..20 {
        all.push(speech(-50_000 + number, "assistant", "started"));
        all.push(message("hang", -50_000 + number, &json!({})));
    }
    let mut report = report();
    let costs = json!([
        {"type": "model", "cost": 0.04}, {"type": "model", "cost": 0.01}, {"type": "voice", "cost": 0.03},
        {"type": "vapi", "cost": 0.04}, {"type": "of-tomorrow", "cost": 9}, {"type": "transport", "cost": "much"},
    ]);
    report["message"]["costs"] = costs;
    report["message"]["endedAt"] = json!(at(-10_000));
    report["message"]["timestamp"] = json!(Timestamp::now().as_millis() - 5_000);
    all.push(report);
    let expected = [
        "call_connected",
        "agent_spoke",
        "caller_spoke",
        "agent_hung",
        "call_transferred",
        "call_ended",
        "cost_reported",
    ];
    let mut timelines = Vec::new();
    // In order and backwards, each twice: a late message does not revive an ended call.
    for backwards in [false, true] {
        world.incoming_call(&world.home, CALL, &phone(1));
        world.aws.change("calls", CALL, created.clone());
        if backwards {
            all.reverse();
        }
        for message in &all {
            tell(&world, message).await;
            tell(&world, message).await;
        }
        let call = shown(&world).await;
        assert_eq!(call["status"], "ended", "backwards: {backwards}");
        timelines.push(call);
    }
    let moments = timelines[0]["timeline"].as_array().unwrap();
    assert_eq!(reported(&timelines[0]), expected, "{moments:#?}");
    // Events of a call's start are not recorded after its end.
    let late: Vec<&str> = reported(&timelines[1]);
    assert_eq!(late, expected[1..], "{:#}", timelines[1]);
    let of = |event: &str| moments.iter().find(|moment| moment["event"] == event).unwrap();
    assert_eq!(of("call_transferred")["to"], "number");
    assert_eq!(of("cost_reported")["cost"], 0.12);
    assert_eq!(of("cost_reported")["parts"], json!({"llm": 0.05, "tts": 0.03, "vapi": 0.04}));
    for hidden in ["swordfish", "0177"] {
        assert!(!row(&world).to_string().contains(hidden));
    }
}

/// A message comes with every sentence: only news is written.
#[tokio::test]
async fn speech_that_is_known_writes_nothing() {
    let world = world().await;
    let speech = message("speech-update", 0, &json!({"role": "assistant", "status": "started"}));
    let writes = async || {
        world.aws.clear_operations();
        tell(&world, &speech).await;
        world.aws.dynamodb().iter().filter(|asked| asked.action == "UpdateItem").count()
    };
    assert_eq!(writes().await, 1);
    for _ in 0..5 {
        assert_eq!(writes().await, 0);
    }
}

/// The end of a call is recorded beside all other messages, and transfers cannot grow a row without bound.
#[tokio::test]
async fn transfers_are_bounded_and_those_at_the_same_time_are_not_lost() {
    let world = world().await;
    world.aws.change("calls", CALL, json!({"created_at": at(-1_000_000)}));
    let transfer = |number: i64| {
        message("transfer-update", -900_000 + 20_000 * number, &json!({"toAssistant": {"name": "Nights"}}))
    };
    let (one, other) = (transfer(0), transfer(1));
    futures_util::join!(tell(&world, &one), tell(&world, &other));
    assert_eq!(row(&world)["transfers"].as_array().unwrap().len(), 2);
    for number in 2..20 {
        tell(&world, &transfer(number)).await;
    }
    tell(&world, &report()).await;
    let call = row(&world);
    assert_eq!((call["transfers"].as_array().unwrap().len(), &call["status"]), (10, &json!("ended")));
    assert_eq!(call["transfers"][0]["to"], "assistant");
}

// ------------------------------------------------------------------------------------------------ views

#[tokio::test]
async fn calls_are_listed_newest_first_page_by_page() {
    let world = World::start().await;
    for number in 0..5 {
        world.incoming_call(&world.home, &format!("call-{number}"), &phone(1));
        world.aws.change("calls", &format!("call-{number}"), json!({"created_at": at(1_000 * number)}));
    }
    world.incoming_call(&world.other, "call-of-others", &phone(1));
    let (mut seen, mut query) = (Vec::new(), "?limit=2".to_owned());
    loop {
        let page = world.calls(&query).await.expect(200);
        seen.extend(page["items"].as_array().unwrap().iter().map(|call| call["id"].as_str().unwrap().to_owned()));
        match page["next_cursor"].as_str() {
            Some(next) => query = format!("?limit=2&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen, ["call-4", "call-3", "call-2", "call-1", "call-0"]);
    for (query, named) in [("?limit=0", "limit"), ("?limit=201", "limit"), ("?cursor=x", "cursor")] {
        assert_eq!(world.calls(query).await.wrong_fields(), [named], "{query}");
    }
}

/// A call with a complete row; returns the ids of its slow and its fast execution.
fn rich(world: &World) -> (String, String) {
    world.incoming_call(&world.home, CALL, &phone(1));
    let (slow, fast, waiting) = (Uuid::now_v7().to_string(), Uuid::now_v7().to_string(), Uuid::now_v7().to_string());
    let tool =
        |run: &str, label: &str| json!({"execution_id": run, "tool_id": Uuid::new_v4().to_string(), "label": label});
    let started = [tool(&slow, "Orders"), tool(&fast, "CRM"), tool(&waiting, "Weather")];
    world.aws.change(
        "calls",
        CALL,
        json!({
            "call_sid": "CA1", "phone_number_id": world.home.phone_number_id, "status": "ended",
            "control_url": "https://phone.vapi.ai/secret-control-url/control",
            "created_at": at(0), "twiml_at": at(200), "on_call_start": started,
            "results": {fast.as_str(): "CRM: {\"name\":\"Ana Ruiz\"}", slow.as_str(): null},
            "context_taken_at": at(1_000), "context_injected_at": at(1_100),
            "ended_at": at(60_000), "ended_reason": "customer-ended-call", "duration_seconds": 58.5, "cost": 0.07,
        }),
    );
    run(
        world,
        &world.home,
        CALL,
        &json!({
            "id": slow, "tool_id": started[0]["tool_id"], "trigger": "call_start", "queued_at": at(210),
            "started_at": at(300), "duration_ms": 600, "status": "failed", "error": "The shop does not answer.",
        }),
    );
    run(
        world,
        &world.home,
        CALL,
        &json!({
            "id": fast, "tool_id": started[1]["tool_id"], "trigger": "call_start", "queued_at": at(210),
            "started_at": at(310), "duration_ms": 100, "result": {"name": "[kept]"},
        }),
    );
    run(world, &world.home, CALL, &json!({"started_at": at(30_000)}));
    (slow, fast)
}

#[tokio::test]
async fn the_timeline_tells_a_call_from_twilios_request_to_its_end() {
    let world = World::start().await;
    let (slow, fast) = rich(&world);
    let call = shown(&world).await;
    let expected = [
        "call_received",
        "twiml_answered",
        "tool_queued",
        "tool_queued",
        "tool_queued",
        "tool_started",
        "tool_started",
        "tool_finished",
        "tool_finished",
        "context_injected",
        "tool_started",
        "tool_finished",
        "call_ended",
        "cost_reported",
    ];
    assert_eq!(events(&call), expected, "{call:#}");
    let moments = call["timeline"].as_array().unwrap();
    let times: Vec<&str> = moments.iter().map(|moment| moment["at"].as_str().unwrap()).collect();
    assert!(times.is_sorted(), "{times:?}");
    assert_eq!((&moments[7]["execution_id"], &moments[7]["label"]), (&json!(fast), &json!("CRM")));
    assert_eq!((&moments[7]["status"], &moments[7]["duration_ms"]), (&json!("succeeded"), &json!(100)));
    assert!(moments[7]["error"].is_null() && moments[7].get("result").is_none());
    assert_eq!((&moments[8]["execution_id"], &moments[8]["trigger"]), (&json!(slow), &json!("call_start")));
    assert_eq!((&moments[8]["status"], &moments[8]["error"]), (&json!("failed"), &json!("The shop does not answer.")));
    assert_eq!((&moments[10]["trigger"], moments[10].get("label")), (&json!("conversation"), Some(&Value::Null)));
    assert_eq!(moments[12]["reason"], "customer-ended-call");
    assert_eq!(call["timeline_complete"], true);
}

/// The control URL lets anybody speak in the call.
#[tokio::test]
async fn no_answer_has_the_control_url_or_the_tools_results() {
    let world = World::start().await;
    rich(&world);
    let page = world.calls("").await.expect(200);
    let one = shown(&world).await;
    assert_eq!((&page["items"][0]["caller_phone_number"], &one["call_sid"]), (&json!(phone(1)), &json!("CA1")));
    for answer in [page.to_string(), one.to_string()] {
        for hidden in ["control", "results", "Ana Ruiz", "organization_id", "context_taken_at"] {
            assert!(!answer.contains(hidden), "{hidden} in {answer}");
        }
    }
}

#[tokio::test]
async fn a_tool_that_runs_in_a_call_stands_in_its_timeline() {
    let world = World::start().await;
    let mut later = ai_sms();
    later["async"] = json!(true);
    let later = world.attached(&later).await;
    let tool = world.attached(&ai_sms()).await;
    let call = world.call(&tool, json!({"text": "Hello"}));
    let id = call.call_id.clone().unwrap();
    world.incoming_call(&world.home, &id, &phone(1));
    world.call_tool(&call).await.result();
    let mut queued = world.call(&later, json!({"text": "Later"}));
    queued.call_id.clone_from(&call.call_id);
    world.call_tool(&queued).await.result();
    let of = async |tool: &Value| -> Vec<Value> {
        let seen = world.calls(&format!("/{id}")).await.expect(200);
        let moments = seen["timeline"].as_array().unwrap().iter().filter(|moment| moment["tool_id"] == tool["id"]);
        moments.map(|moment| moment["event"].clone()).collect()
    };
    assert_eq!(of(&tool).await, ["tool_started", "tool_finished"]);
    assert_eq!(of(&later).await, ["tool_queued"]);
    assert_eq!(world.run_queued().await, 0);
    // The row has no address at which the call takes messages.
    assert_eq!(of(&later).await, ["tool_queued", "tool_started", "tool_finished", "result_failed"]);
}

#[tokio::test]
async fn a_call_that_came_in_at_vapi_has_a_timeline_of_its_runs_and_no_more() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    let call = world.call(&tool, json!({"text": "Hello"}));
    let id = call.call_id.clone().unwrap();
    world.calls(&format!("/{id}")).await.expect(404);
    world.call_tool(&call).await.result();
    let seen = world.calls(&format!("/{id}")).await.expect(200);
    assert_eq!((&seen["id"], &seen["created_at"], &seen["status"]), (&json!(id), &Value::Null, &Value::Null));
    assert_eq!(events(&seen), ["tool_started", "tool_finished"]);
    assert_eq!(world.calls("").await.expect(200)["items"], json!([]));
    world.calls_as(&world.other, &format!("/{id}")).await.expect(404);
}

#[tokio::test]
async fn a_call_is_shown_to_its_organization_only_even_if_anothers_tool_ran_in_it() {
    let world = World::start().await;
    rich(&world);
    run(&world, &world.other, CALL, &json!({}));
    let unknown = world.calls_as(&world.other, "/no-such-call").await.expect(404);
    let refused = world.calls_as(&world.other, &format!("/{CALL}")).await.expect(404);
    assert_eq!(refused["detail"], unknown["detail"]);
    assert_eq!(world.calls_as(&world.other, "").await.expect(200)["items"], json!([]));
    let call = shown(&world).await;
    let finished = events(&call).into_iter().filter(|event| *event == "tool_finished").count();
    assert_eq!(finished, 3, "and the other's run is not in it");
}

#[tokio::test]
async fn a_timeline_reads_further_pages_and_reports_when_it_is_cut() {
    let world = world().await;
    for number in 0..250 {
        run(&world, &world.home, CALL, &json!({"started_at": at(number)}));
    }
    let call = shown(&world).await;
    assert_eq!((events(&call).len(), &call["timeline_complete"]), (501, &json!(true)));
    for number in 250..1_010 {
        run(&world, &world.home, CALL, &json!({"started_at": at(number)}));
    }
    let call = shown(&world).await;
    assert_eq!((events(&call).len(), &call["timeline_complete"]), (2_001, &json!(false)));
}
