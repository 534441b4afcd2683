//! Text messages to the organizations' numbers, and tools that fail in calls: the events `sms.received` and `tool.failed`.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test says what is wrong and stops")]

use serde_json::{Value, json};
use tests::{Answer, Event, Fault, World, ai_sms, automation::AMPLE, aws::Trouble, phone, webhooks::Signer};
use uuid::Uuid;

use crate::{
    catalogue::{files, load},
    claims::example,
    place_call::{call_back, can_call, placed},
};

const SHARED: &str = "/api/hooks/twilio";

/// An automation that listens to an event of the service `Calls`; gives its id.
pub(crate) async fn listener(world: &World, event_type: &str, filters: &Value) -> String {
    world.catalogue_service("calls");
    let mut trigger = json!({"service": "Calls", "event_type": event_type});
    if !filters.is_null() {
        trigger["filters"] = filters.clone();
    }
    let definition = json!({
        "name": event_type, "trigger_type": "webhook", "trigger_config": trigger,
        "actions": [{"id": "now", "tool": "current_time", "parameters": {}}],
        "fingerprints": {"current_time": "built-in"},
    });
    world.active(&definition).await
}

pub(crate) fn given(world: &World) -> Value {
    let plan = world.aws.rows("automation_runs").into_iter().find(|row| row["part"] == "plan").unwrap();
    serde_json::from_str(plan["trigger_data"].as_str().unwrap()).unwrap()
}

/// Twilio's form about a message to the home organization's number.
fn text(world: &World, sid: &str, body: &str) -> Value {
    json!({
        "MessageSid": sid, "SmsSid": sid, "SmsStatus": "received", "AccountSid": world.home.twilio_sid,
        "From": phone(1), "To": world.home.phone_number, "Body": body, "NumMedia": "1", "NumSegments": "1",
    })
}

async fn post(world: &World, token: &str, form: &Value) -> Answer {
    world.send("trigger", &world.signed(SHARED, Signer::Twilio(token), form)).await
}

fn runs(world: &World, automation: &str) -> usize {
    world.runs_of(automation).len()
}

#[tokio::test]
async fn a_text_to_a_number_starts_its_automations_once() {
    let world = World::start().await;
    let automation = listener(&world, "sms.received", &Value::Null).await;
    let token = world.home.twilio_token.clone();
    for _twice in 0..2 {
        let answer = post(&world, &token, &text(&world, "SM1", "Can I come at ten?")).await.expect(200);
        assert_eq!(answer, json!("<Response/>"), "Twilio reads TwiML");
    }
    assert_eq!(runs(&world, &automation), 1);
    let data = given(&world);
    let sms = json!({
        "id": "SM1", "from": phone(1), "to": world.home.phone_number, "number_id": world.home.phone_number_id,
        "agent_id": world.home.agent_id, "body": "Can I come at ten?", "media_count": 1, "opt_out": false,
        "received_at": data["sms"]["received_at"],
    });
    assert_eq!(data, json!({"sms": sms}));
    let listed = world.events("").await.expect(200);
    assert_eq!((listed["items"].as_array().unwrap().len(), &listed["items"][0]["service"]), (1, &json!("calls")));
    assert_eq!(world.aws.rows("do_not_call"), [] as [Value; 0]);
    // A message's status is another event, and the message of another id another message.
    let mut delivered = text(&world, "SM1", "");
    (delivered["From"], delivered["To"]) = (json!(world.home.phone_number), json!(phone(1)));
    delivered["MessageStatus"] = json!("delivered");
    post(&world, &token, &delivered).await.expect(200);
    post(&world, &token, &text(&world, "SM2", "Hello?")).await.expect(200);
    assert_eq!(runs(&world, &automation), 2);
}

/// The oldest number sends unless the tool is given another one of the organization.
#[tokio::test]
async fn a_text_is_answered_from_the_number_that_it_came_to() {
    let world = World::start().await;
    let files = files();
    load(&world, &json!({"calls.json": files["calls.json"], "twilio.json": files["twilio.json"]})).await;
    let newer = world.other.phone_number.clone();
    let texts = |name: &str, trigger: &Value, parameters: &Value| {
        let mut definition = json!({
            "name": name, "actions": [{"id": "text", "tool": "twilio_send_sms", "parameters": parameters}],
            "fingerprints": {"twilio_send_sms": world.fingerprint("twilio_send_sms")},
        });
        definition.as_object_mut().unwrap().extend(trigger.as_object().unwrap().clone());
        definition
    };
    let theirs = json!({"recipients": [phone(1)], "from": newer, "text": "Hi."});
    let by_hand = world.active(&texts("By hand", &json!({"trigger_type": "manual"}), &theirs)).await;
    let run = world.run_by_hand(&by_hand, &json!({})).await.expect(202);
    assert_eq!(world.run_loop(AMPLE).await, 0);
    let shown = world.run(run["id"].as_str().unwrap()).await.expect(200);
    let error = shown["actions"][0]["error"].as_str().unwrap();
    assert!(error.contains("\"from\" must be one of the organization's registered phone numbers"), "{error}");
    assert!(world.twilio.requests().is_empty());

    let home = json!({
        "organization_id": world.home.organization_id, "agent_id": world.home.agent_id, "created_at": "2099-01-01T00:00:00.000Z",
    });
    world.aws.change("phone_numbers", &world.other.phone_number_id, home);
    let trigger = json!({
        "trigger_type": "webhook", "trigger_config": {"service": "Calls", "event_type": "sms.received"},
    });
    let answer = json!({"recipients": ["{{sms.from}}"], "from": "{{sms.to}}", "text": "Thank you."});
    world.active(&texts("Answer texts", &trigger, &answer)).await;
    let mut form = text(&world, "SM1", "Hello?");
    (form["AccountSid"], form["To"]) = (json!(world.other.twilio_sid), json!(newer));
    post(&world, &world.other.twilio_token.clone(), &form).await.expect(200);
    assert_eq!(world.run_loop(AMPLE).await, 0);
    let sent = world.twilio.messages();
    let numbers: Vec<_> = sent.iter().map(|message| (message.from.as_str(), message.to.as_str())).collect();
    assert_eq!(numbers, [(newer.as_str(), phone(1).as_str())]);
}

#[tokio::test]
async fn a_text_starts_its_automations_after_a_crash_although_twilio_sends_it_once() {
    let world = World::start().await;
    let automation = listener(&world, "sms.received", &Value::Null).await;
    let token = world.home.twilio_token.clone();
    world.aws.inject(Fault::new("PutItem", "events", Trouble::StallAfter));
    let message = text(&world, "SM1", "Can I come at ten?");
    tokio::select! {
        _ = post(&world, &token, &message) => panic!("it is not killed"),
        () = world.aws.stalled() => {}
    }
    world.aws.clear_faults();
    assert_eq!(runs(&world, &automation), 0);
    for _twice in 0..2 {
        assert_eq!(world.run_scheduled_within(60).await, 0);
    }
    assert_eq!((runs(&world, &automation), &given(&world)["sms"]["id"]), (1, &json!("SM1")));
    assert_eq!(world.events("").await.expect(200)["items"][0]["status"], "dispatched");
}

#[tokio::test]
async fn stop_fills_the_do_not_call_list_and_is_an_event() {
    let world = World::start().await;
    let stops = json!({"path": "sms.opt_out", "op": "==", "value": true});
    let automation = listener(&world, "sms.received", &stops).await;
    let token = world.home.twilio_token.clone();
    post(&world, &token, &text(&world, "SM1", "Please do not stop")).await.expect(200);
    assert_eq!((world.aws.rows("do_not_call").len(), runs(&world, &automation)), (0, 0));
    for _twice in 0..2 {
        post(&world, &token, &text(&world, "SM2", " Stop. ")).await.expect(200);
    }
    assert_eq!((world.aws.rows("do_not_call").len(), runs(&world, &automation)), (1, 1));
    assert_eq!(world.aws.rows("do_not_call")[0]["source"], "sms");
    assert_eq!(given(&world)["sms"]["opt_out"], true);
}

#[tokio::test]
async fn a_text_is_taken_only_from_the_account_of_its_number() {
    let world = World::start().await;
    let automation = listener(&world, "sms.received", &Value::Null).await;
    let (token, theirs) = (world.home.twilio_token.clone(), world.other.twilio_token.clone());
    let good = text(&world, "SM1", "STOP");
    let with = |name: &str, value: &str| {
        let mut changed = good.clone();
        changed[name] = json!(value);
        changed
    };
    let mut without = good.clone();
    without.as_object_mut().unwrap().remove("AccountSid");
    let mut twice = world.signed(SHARED, Signer::Twilio(&token), &good);
    twice.body.as_mut().unwrap().push_str("&To=%2B15005550006");
    for (name, event) in [
        ("unsigned", world.signed(SHARED, Signer::Unsigned, &good)),
        ("another secret", world.signed(SHARED, Signer::Twilio("guess"), &good)),
        ("another organization's token", world.signed(SHARED, Signer::Twilio(&theirs), &good)),
        ("another account", world.signed(SHARED, Signer::Twilio(&token), &with("AccountSid", &world.other.twilio_sid))),
        ("no account", world.signed(SHARED, Signer::Twilio(&token), &without)),
        ("another's number", world.signed(SHARED, Signer::Twilio(&token), &with("To", &world.other.phone_number))),
        ("nobody's number", world.signed(SHARED, Signer::Twilio(&token), &with("To", "+14155559999"))),
        ("no number", world.signed(SHARED, Signer::Twilio(&token), &with("To", "acme"))),
        ("two numbers", twice),
    ] {
        let refused = world.send("trigger", &event).await;
        assert_eq!((refused.status, &refused.body), (401, &Value::Null), "{name}");
    }
    assert_eq!((world.aws.rows("do_not_call").len(), world.aws.rows("events").len()), (0, 0));
    assert_eq!(runs(&world, &automation), 0);
}

#[tokio::test]
async fn a_text_to_which_nothing_listens_leaves_no_event() {
    let world = World::start().await;
    world.catalogue_service("calls");
    let token = world.home.twilio_token.clone();
    post(&world, &token, &text(&world, "SM1", "Hello?")).await.expect(200);
    assert_eq!(world.aws.rows("events"), [] as [Value; 0]);
}

#[tokio::test]
async fn a_text_whose_run_could_not_be_started_is_taken_again() {
    let world = World::start().await;
    let automation = listener(&world, "sms.received", &Value::Null).await;
    let token = world.home.twilio_token.clone();
    world.aws.inject(Fault::throttled("TransactWriteItems", "automation_runs").times(10));
    assert_eq!(post(&world, &token, &text(&world, "SM1", "Hello?")).await.status, 503);
    world.aws.clear_faults();
    post(&world, &token, &text(&world, "SM1", "Hello?")).await.expect(200);
    assert_eq!(runs(&world, &automation), 1);
}

#[tokio::test]
async fn a_text_that_comes_to_a_hook_is_the_same_event() {
    let world = World::start().await;
    let automation = listener(&world, "sms.received", &Value::Null).await;
    let hook = world.hook(&json!({"service": "Twilio", "secret": "of-twilio"})).await;
    let theirs = json!({"service": "Twilio", "secret": "of-others"});
    let theirs = world.hooks(&world.other, "POST", "", &theirs).await.expect(201);
    let form = text(&world, "SM1", "Hello?");
    world.deliver_signed(&theirs, Signer::Twilio("of-others"), &form).await.expect(200);
    assert_eq!(runs(&world, &automation), 0, "another organization's hook proves nothing about our number");
    world.deliver_signed(&hook, Signer::Twilio("of-twilio"), &form).await.expect(200);
    post(&world, &world.home.twilio_token.clone(), &form).await.expect(200);
    assert_eq!(runs(&world, &automation), 1);
}

#[tokio::test]
async fn a_person_s_erasure_takes_their_texts_with_it() {
    let world = World::start().await;
    listener(&world, "sms.received", &Value::Null).await;
    post(&world, &world.home.twilio_token.clone(), &text(&world, "SM1", "Hello?")).await.expect(200);
    assert_eq!(world.aws.rows("events").len(), 1);
    let path = format!("/api/{}/erasures", world.home.slug);
    let erasure = Event::post(&path, &json!({"phone_number": phone(1)})).user(&world.home.user_id);
    world.send("erasures", &erasure).await.expect(200);
    assert_eq!(world.aws.rows("events"), [] as [Value; 0]);
}

/// A tool call in a call, with arguments that the tool does not take.
async fn fails(world: &World, tool: &Value, call: &str) -> Answer {
    let mut called = world.call(tool, json!({"text": 5}));
    called.call_id = Some(call.to_owned());
    world.call_tool(&called).await
}

#[tokio::test]
async fn a_tool_that_fails_in_a_call_starts_its_automations_once() {
    let world = World::start().await;
    let automation = listener(&world, "tool.failed", &Value::Null).await;
    let tool = world.attached(&ai_sms()).await;
    let answer = fails(&world, &tool, "call-1").await.expect(200);
    let execution = world.executions()[0].clone();
    assert_eq!((&answer["success"], &execution["status"]), (&json!(false), &json!("failed")));
    let message = world.aws.messages("scheduled")[0].clone();
    assert_eq!(
        message,
        json!({"organization_id": world.home.organization_id, "failed_execution_id": execution["id"]}),
        "ids alone"
    );
    for _twice in 0..2 {
        assert_eq!(world.run_scheduled().await, 0);
        // The queue delivers at least once.
        world.aws.post("scheduled", &message.to_string());
    }
    assert_eq!(runs(&world, &automation), 1);
    let data = given(&world);
    assert_eq!(data["tool"], json!({"id": tool["id"], "name": tool["name"], "label": tool["label"]}));
    let shown = world.list(&format!("/tools/{}/executions", tool["id"].as_str().unwrap())).await.expect(200);
    let shown = &shown["items"][0];
    for name in ["id", "call_id", "trigger", "status", "fault", "error", "next_step", "started_at", "duration_ms"] {
        assert_eq!(data["execution"][name], shown[name], "{name}");
    }
    assert_eq!(data["execution"]["fault"], "model");
    assert_eq!(data["execution"].as_object().unwrap().len(), 9, "no arguments, no result");
}

#[tokio::test]
async fn a_tool_that_succeeds_or_fails_outside_a_call_is_no_event() {
    let world = World::start().await;
    let automation = listener(&world, "tool.failed", &Value::Null).await;
    let tool = world.attached(&ai_sms()).await;
    world.call_tool(&world.call(&tool, json!({"text": "Hi"}))).await.expect(200);
    assert_eq!(world.aws.messages("scheduled"), [] as [Value; 0]);
    // The automation itself fails with the tool.
    world.aws.change("phone_numbers", &world.home.phone_number_id, json!({"credentials_secret": "gone"}));
    let mut specific = ai_sms();
    specific["from"] = json!({"type": "specific_number", "phone_number_id": world.home.phone_number_id});
    specific["recipients"] = json!({"mode": "fixed", "value": [phone(2)]});
    let own = world.tool(&specific).await;
    let name = own["name"].as_str().unwrap();
    let failing = world
        .active(&json!({
            "name": "Fails", "trigger_type": "webhook",
            "trigger_config": {"service": "Calls", "event_type": "tool.failed"},
            "actions": [{"id": "text", "tool": name, "parameters": {"text": "Hi"}}],
            "fingerprints": {name: "v0"},
        }))
        .await;
    fails(&world, &tool, "call-1").await.expect(200);
    assert_eq!(world.run_scheduled().await, 0);
    assert_eq!((runs(&world, &automation), runs(&world, &failing)), (1, 1));
    for _each in 0..4 {
        world.run_loop(std::time::Duration::from_secs(30)).await;
    }
    assert!(world.executions().iter().any(|row| row["trigger"] == "automation" && row["status"] != "succeeded"));
    assert_eq!(world.aws.messages("scheduled"), [] as [Value; 0]);
}

#[tokio::test]
async fn a_tool_that_fails_often_is_an_event_twenty_times_an_hour() {
    let world = World::start().await;
    let automation = listener(&world, "tool.failed", &Value::Null).await;
    let (often, once) = (world.attached(&ai_sms()).await, world.attached(&ai_sms()).await);
    let mut rows = Vec::new();
    for number in 0..30 {
        fails(&world, &often, &format!("call-{number}")).await.expect(200);
        rows.push(number);
    }
    fails(&world, &once, "call-x").await.expect(200);
    while !world.aws.messages("scheduled").is_empty() {
        assert_eq!(world.run_scheduled().await, 0);
    }
    assert_eq!(runs(&world, &automation), 21, "the other tool has its own twenty");
}

#[tokio::test]
async fn a_failure_to_which_nothing_listens_leaves_no_event() {
    let world = World::start().await;
    world.catalogue_service("calls");
    let tool = world.attached(&ai_sms()).await;
    fails(&world, &tool, "call-1").await.expect(200);
    world.aws.clear_operations();
    assert_eq!(world.run_scheduled().await, 0);
    assert_eq!(world.aws.rows("events"), [] as [Value; 0]);
    assert_eq!(world.aws.operations().len(), 2, "the automations that listen and the runs that wait");
}

#[tokio::test]
async fn a_failure_that_cannot_be_announced_changes_no_answer() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    let before = fails(&world, &tool, "call-1").await.expect(200);
    world.aws.inject(Fault::new("SendMessage", "scheduled", Trouble::Error("AccessDenied")).times(9));
    assert_eq!(fails(&world, &tool, "call-2").await.expect(200), before);
    assert_eq!(world.executions().len(), 2);
}

#[tokio::test]
async fn a_failure_that_turned_out_well_or_was_deleted_is_no_event() {
    let world = World::start().await;
    let automation = listener(&world, "tool.failed", &Value::Null).await;
    let tool = world.attached(&ai_sms()).await;
    fails(&world, &tool, "call-1").await.expect(200);
    fails(&world, &tool, "call-2").await.expect(200);
    let ids: Vec<String> = world.executions().iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect();
    world.aws.change("executions", &ids[0], json!({"status": "succeeded"}));
    world.aws.delete("executions", &ids[1]);
    let foreign = json!({"organization_id": world.other.organization_id, "failed_execution_id": Uuid::now_v7()});
    world.aws.post("scheduled", &foreign.to_string());
    assert_eq!(world.run_scheduled().await, 0);
    assert_eq!((runs(&world, &automation), world.aws.rows("events").len()), (0, 0));
}

#[tokio::test]
async fn a_deleted_call_takes_the_events_of_its_failures_with_it() {
    let world = World::start().await;
    listener(&world, "tool.failed", &Value::Null).await;
    let tool = world.attached(&ai_sms()).await;
    world.incoming_call(&world.home, "call-1", &phone(1));
    fails(&world, &tool, "call-1").await.expect(200);
    assert_eq!(world.run_scheduled().await, 0);
    assert_eq!(world.aws.rows("events").len(), 1);
    let path = format!("/api/{}/calls/call-1", world.home.slug);
    world.send("calls", &Event::new("DELETE", &path).user(&world.home.user_id)).await.expect(204);
    assert_eq!(world.aws.rows("events"), [] as [Value; 0]);
}

#[tokio::test]
async fn a_queued_tool_that_fails_or_was_deleted_is_an_event() {
    let world = World::start().await;
    let automation = listener(&world, "tool.failed", &Value::Null).await;
    let mut later = ai_sms();
    later["async"] = json!(true);
    let tool = world.attached(&later).await;
    world.call_tool(&world.call(&tool, json!({"text": "Hi"}))).await.expect(200);
    assert_eq!(world.aws.messages("scheduled"), [] as [Value; 0], "it only waits");
    world.twilio.inject(tests::standins::Fault::status(400));
    assert_eq!(world.run_queued().await, 0);
    assert_eq!(world.run_scheduled().await, 0);
    assert_eq!(runs(&world, &automation), 1);
    world.call_tool(&world.call(&tool, json!({"text": "Hi again"}))).await.expect(200);
    world.aws.delete("tools", tool["id"].as_str().unwrap());
    assert_eq!(world.run_queued().await, 0);
    assert_eq!(world.run_scheduled().await, 0);
    assert_eq!(runs(&world, &automation), 2);
}

/// "When a caller hangs up without a booking, text them." A call that we placed has no caller.
#[tokio::test]
async fn a_caller_who_hangs_up_without_a_booking_is_texted() {
    let world = World::start().await;
    load(&world, &json!({"twilio.json": files()["twilio.json"]})).await;
    // Their answer reaches another automation.
    let answers = listener(&world, "sms.received", &Value::Null).await;
    let mut recipe = example("\"Missed bookings\"");
    recipe["fingerprints"] = json!({"twilio_send_sms": world.fingerprint("twilio_send_sms")});
    let automation = world.active(&recipe).await;
    let bearer = format!("Bearer {}", world.options.webhook_bearer.as_ref().unwrap());
    for (call, direction) in [("call-1", "inbound"), ("call-2", "outbound")] {
        world.incoming_call(&world.home, call, &phone(1));
        world.aws.change("calls", call, json!({"direction": direction}));
        let over = json!({"message": {
            "type": "end-of-call-report", "endedReason": "customer-ended-call", "call": {"id": call},
        }});
        world.send("calls", &Event::post("/api/vapi/events", &over).header("authorization", &bearer)).await.expect(200);
        assert_eq!(world.run_scheduled_within(20).await, 0);
        assert_eq!(world.run_loop(AMPLE).await, 0);
        assert_eq!(runs(&world, &automation), 1, "{direction}");
    }
    let [sent] = &world.twilio.messages()[..] else { panic!("one message") };
    assert_eq!((&sent.to, &sent.from), (&phone(1), &world.home.phone_number));
    assert!(sent.body.contains("Sorry that we did not find a time"), "{}", sent.body);
    post(&world, &world.home.twilio_token.clone(), &text(&world, "SM9", "Ten, please")).await.expect(200);
    assert_eq!(runs(&world, &answers), 1);
}

/// VAPI's status comes half a minute before its report, which alone has the words of the call.
#[tokio::test]
async fn a_person_who_wants_no_more_calls_is_not_called_back_although_the_report_comes_late() {
    let world = World::start().await;
    can_call(&world);
    world.catalogue_service("calls");
    let tool = world.tool(&call_back(&world, &json!({}))).await;
    let name = tool["name"].as_str().unwrap();
    let automation = world
        .active(&json!({
            "name": "Call back", "trigger_type": "webhook",
            "trigger_config": {"service": "Calls", "event_type": "call.ended"},
            "actions": [{"id": "call", "tool": name, "parameters": {"to": "{{call.person_phone_number}}"}}],
            "fingerprints": {name: "v0"},
        }))
        .await;
    world.incoming_call(&world.home, "call-1", &phone(1));
    let said = json!({"messages": [{"role": "user", "message": "Please never call me again."}]});
    let bearer = format!("Bearer {}", world.options.webhook_bearer.as_ref().unwrap());
    for (message, expected) in [
        (json!({"type": "status-update", "status": "ended"}), 0),
        (json!({"type": "end-of-call-report", "cost": 0.12, "artifact": said}), 1),
    ] {
        let mut body = json!({"message": message});
        body["message"]["call"] = json!({"id": "call-1"});
        world.send("calls", &Event::post("/api/vapi/events", &body).header("authorization", &bearer)).await.expect(200);
        assert_eq!(world.run_scheduled_within(70).await, 0);
        assert_eq!(world.run_loop(AMPLE).await, 0);
        assert_eq!((runs(&world, &automation), placed(&world).len()), (expected, 0));
    }
    assert_eq!(given(&world)["call"]["cost"], 0.12);
    assert_eq!(world.aws.rows("do_not_call").len(), 1);
}
