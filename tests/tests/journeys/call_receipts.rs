//! Receipts of calls, and the event `call.ended`.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

mod repeated_reports;

use std::time::Duration;

use serde_json::{Value, json};
use shared::models::{CallerHash, Timestamp};
use tests::{Answer, Event, Fault, World, ai_sms, api_request, phone, webhooks::Signer};
use uuid::Uuid;

const CALL: &str = "call-1";

/// Seconds within which the message of an ended call is due.
const SOON: i64 = 20;

/// A world with a call of the home organization, and two tools: an SMS and a lookup.
async fn world() -> (World, String, String) {
    let world = World::start().await;
    world.incoming_call(&world.home, CALL, &phone(1));
    let mut ids = Vec::new();
    for tool in [ai_sms(), api_request("GET", "https://crm.example/customers")] {
        ids.push(world.create(&tool).await.expect(201)["id"].as_str().unwrap().to_owned());
    }
    let [sms, lookup] = ids.try_into().unwrap();
    (world, sms, lookup)
}

/// A row of an execution in the call; gives its id.
fn execution(world: &World, tool: &str, status: &str, more: &Value) -> String {
    let id = Uuid::now_v7().to_string();
    let organization = &world.home.organization_id;
    let mut row = json!({
        "id": id, "organization_id": organization, "tool_id": tool, "call_id": CALL,
        "organization_call": format!("{organization}#{CALL}"), "trigger": "conversation", "status": status,
        "arguments": {}, "started_at": Timestamp::now(), "duration_ms": 7,
        "expires_at": Timestamp::now().as_seconds() + 86_400,
    });
    row.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    world.aws.put("executions", &row);
    id
}

async fn receipt(world: &World) -> Value {
    world.calls(&format!("/{CALL}/receipt")).await.expect(200)
}

fn ids(lines: &Value) -> Vec<&str> {
    lines.as_array().unwrap().iter().map(|line| line["execution_id"].as_str().unwrap()).collect()
}

async fn report(world: &World, message: &Value) -> Answer {
    report_within(world, message, Duration::from_secs(20)).await
}

async fn report_within(world: &World, message: &Value, time: Duration) -> Answer {
    let bearer = format!("Bearer {}", world.options.webhook_bearer.as_ref().unwrap());
    let event = Event::post("/api/vapi/events", message).header("authorization", &bearer).within(time);
    world.send("calls", &event).await
}

/// The call ends: VAPI's update and its report.
async fn end(world: &World) {
    let update =
        json!({"type": "status-update", "status": "ended", "endedReason": "customer-ended-call", "call": {"id": CALL}});
    let cost = json!({"type": "end-of-call-report", "cost": 0.12, "call": {"id": CALL}});
    for message in [update, cost] {
        report(world, &json!({"message": message})).await.expect(200);
    }
}

/// An automation that texts callers whose call did not send a message; gives its id.
async fn listener(world: &World) -> String {
    world.catalogue_service("calls");
    let definition = json!({
        "name": "Nothing sent", "trigger_type": "webhook",
        "trigger_config": {
            "service": "Calls", "event_type": "call.ended",
            "filters": {"operator": "AND", "clauses": [
                {"path": "receipt.tools_done", "op": "not_contains", "value": "send_the_menu"},
                {"path": "receipt.done", "op": "none", "value": {"path": "item.tool", "op": "in", "value": ["send_the_menu"]}},
                {"path": "call.caller_phone_number", "op": "starts_with", "value": "+"},
            ]},
        },
        "actions": [{"id": "now", "tool": "current_time", "parameters": {}}],
        "fingerprints": {"current_time": "built-in"},
    });
    world.active(&definition).await
}

fn given(world: &World) -> Value {
    let plan = world.aws.rows("automation_runs").into_iter().find(|row| row["part"] == "plan").unwrap();
    serde_json::from_str(plan["trigger_data"].as_str().unwrap()).unwrap()
}

#[tokio::test]
async fn a_receipt_has_a_group_for_each_outcome() {
    let (world, sms, lookup) = world().await;
    let sent = execution(&world, &sms, "succeeded", &json!({"arguments": {"text": "Hi"}}));
    let some = execution(&world, &sms, "partial", &json!({"error": "One of two numbers cannot get messages."}));
    execution(&world, &sms, "replayed", &json!({"arguments": {"text": "Hi "}}));
    let failed = execution(&world, &sms, "failed", &json!({"error": "The number is wrong.", "fault": "model"}));
    let limited = execution(&world, &sms, "limited", &json!({"error": "One message in a call."}));
    let unknown = execution(&world, &sms, "unknown", &json!({"error": "Twilio did not answer."}));
    let found = execution(&world, &lookup, "succeeded", &json!({}));
    let lookup_failed = execution(&world, &lookup, "failed", &json!({"error": "404"}));
    let deleted = execution(&world, &Uuid::new_v4().to_string(), "succeeded", &json!({}));
    let answer = receipt(&world).await;
    assert_eq!(ids(&answer["done"]), [&sent, &some, &deleted]);
    assert_eq!(ids(&answer["failed"]), [&failed, &limited, &lookup_failed]);
    assert_eq!((ids(&answer["unknown"]), ids(&answer["looked_up"])), (vec![&*unknown], vec![&*found]));
    assert_eq!((&answer["not_done"], &answer["final"], &answer["complete"]), (&json!([]), &json!(false), &json!(true)));
    let name = world.aws.row("tools", &sms).unwrap()["name"].clone();
    let line = &answer["done"][0];
    assert_eq!((&line["tool"], &line["effect"], &line["arguments"]), (&name, &json!("sms"), &json!({"text": "Hi"})));
    assert_eq!((&answer["done"][2]["tool"], &answer["done"][2]["effect"]), (&Value::Null, &Value::Null));
    assert_eq!(answer["tools_done"], json!([name]));
    assert_eq!(answer["failed"][0]["reason"], "The number is wrong.");
    assert!(answer["failed"][0]["next_step"].as_str().unwrap().contains("parameters"));
}

#[tokio::test]
async fn an_effect_whose_own_row_is_lost_stands_in_the_receipt_once() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    let call = tests::standins::vapi::ToolCall {
        call_id: Some(CALL.to_owned()),
        ..world.call(&tool, json!({"text": "See you at nine"}))
    };
    world.incoming_call(&world.home, CALL, &phone(1));
    world.aws.inject(Fault::throttled("PutItem", "executions"));
    world.call_tool(&call).await.result();
    assert_eq!(world.executions().len(), 0);
    for _ in 0..2 {
        world.call_tool(&call).await.result();
    }
    let receipt = receipt(&world).await;
    assert_eq!((world.twilio.messages().len(), ids(&receipt["done"]).len()), (1, 1), "{receipt}");
    assert_eq!(receipt["tools_done"], json!([tool["name"]]));
}

/// Twilio's status of a message that the organization's number sent.
async fn status(world: &World, sid: &Value, status: &str) {
    let home = &world.home;
    let form = json!({
        "MessageSid": sid, "MessageStatus": status, "AccountSid": home.twilio_sid, "From": home.phone_number, "To": phone(1),
        "ErrorCode": if status == "delivered" { "" } else { "30003" },
    });
    let signed = world.signed("/api/hooks/twilio/statuses", Signer::Twilio(&home.twilio_token), &form);
    world.send("trigger", &signed).await.expect(200);
}

#[tokio::test]
async fn a_message_that_twilio_does_not_deliver_is_not_done() {
    let world = World::start().await;
    let mut config = ai_sms();
    config["recipients"]["aiExtension"] = json!({"enabled": true, "prompt": "Others to tell", "required": false});
    let tool = world.attached(&config).await;
    let call = tests::standins::vapi::ToolCall {
        call_id: Some(CALL.to_owned()),
        ..world.call(&tool, json!({"text": "See you at nine", "recipients": [phone(2)]}))
    };
    world.incoming_call(&world.home, CALL, &phone(1));
    world.call_tool(&call).await.result();
    let row = world.executions().remove(0);
    let sids: Vec<Value> =
        row["result"]["recipients"].as_array().unwrap().iter().map(|recipient| recipient["sid"].clone()).collect();
    status(&world, &sids[0], "delivered").await;
    assert_eq!(receipt(&world).await["done"][0]["status"], "succeeded");
    for _twice in 0..2 {
        status(&world, &sids[1], "undelivered").await;
    }
    let partly = receipt(&world).await;
    let line = &partly["done"][0];
    let why = "1 of 2 messages were not delivered (Twilio: undelivered, error 30003).";
    assert_eq!((&line["status"], &line["reason"]), (&json!("partial"), &json!(why)));
    status(&world, &sids[0], "failed").await;
    let lost = receipt(&world).await;
    assert_eq!((&lost["done"], &lost["tools_done"]), (&json!([]), &json!([])));
    assert_eq!(
        (ids(&lost["failed"]), &lost["failed"][0]["status"]),
        (vec![row["id"].as_str().unwrap()], &json!("failed"))
    );
    let unknown = json!({
        "error": "It is not known whether it reached the second.",
        "result": {"recipients": [{"to": "[1]", "state": "sent", "sid": sids[0]}, {"to": "[2]", "state": "unknown"}]},
    });
    let partial = execution(&world, row["tool_id"].as_str().unwrap(), "partial", &unknown);
    let unclear = receipt(&world).await;
    assert_eq!(ids(&unclear["unknown"]), [&partial]);
    let why = unclear["unknown"][0]["reason"].as_str().unwrap();
    assert!(
        why.starts_with("It is not known") && why.ends_with("not delivered (Twilio: failed, error 30003)."),
        "{why}"
    );
    world.aws.delete("executions", &partial);
    // The entries are nobody's executions.
    assert_eq!(world.calls(&format!("/{CALL}/executions")).await.expect(200)["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_request_that_the_caller_did_not_confirm_is_not_done() {
    let (world, sms, _) = world().await;
    let asked = |text: &str| execution(&world, &sms, "read_back", &json!({"arguments": {"text": text}}));
    asked("at seven");
    let left = asked("at eight");
    asked("at nine");
    let anew = asked("at nine");
    let done = execution(&world, &sms, "succeeded", &json!({"arguments": {"text": "at seven"}}));
    let answer = receipt(&world).await;
    assert_eq!((ids(&answer["not_done"]), ids(&answer["done"])), (vec![&*left, &*anew], vec![&*done]));
    assert!(answer["not_done"][0]["reason"].as_str().unwrap().contains("confirm"));
}

#[tokio::test]
async fn a_request_that_the_caller_confirmed_in_another_spelling_is_done() {
    let (world, sms, _) = world().await;
    let transfer = json!({
        "type": "transfer_call", "label": "To the desk",
        "target": {"type": "number", "number": phone(5)}, "messageStrategy": "summary",
    });
    let transfer = world.create(&transfer).await.expect(201)["id"].as_str().unwrap().to_owned();
    let hash = |number: u32| CallerHash::of(world.home.organization_id.parse().unwrap(), &phone(number));
    let to = |numbers: &[u32]| numbers.iter().map(|number| hash(*number)).collect::<Vec<_>>();
    let ask = |tool: &str, arguments: Value, numbers: &[u32]| {
        execution(&world, tool, "read_back", &json!({"arguments": arguments, "recipients": to(numbers)}))
    };
    let act = |tool: &str, arguments: Value, numbers: &[u32]| {
        execution(&world, tool, "succeeded", &json!({"arguments": arguments, "recipients": to(numbers)}))
    };
    let hidden = "[phone number]";
    ask(&sms, json!({"text": "at seven", "recipients": [hidden, hidden]}), &[2, 3]);
    let sent = act(&sms, json!({"text": " at seven ", "recipients": [hidden, hidden], "extra": "[ignored]"}), &[3, 2]);
    ask(&transfer, json!({"summary": "Wants the desk"}), &[]);
    let passed = act(&transfer, json!({"summary": "The caller asks for the desk"}), &[]);
    let left = ask(&sms, json!({"text": "at eight", "recipients": [hidden]}), &[2]);
    act(&sms, json!({"text": "at eight", "recipients": [hidden]}), &[3]);
    let answer = receipt(&world).await;
    assert_eq!(ids(&answer["not_done"]), [&left], "{answer}");
    assert_eq!(ids(&answer["done"])[..2], [&sent, &passed], "{answer}");
}

#[tokio::test]
async fn a_tool_of_the_start_without_a_record_is_unknown() {
    let (world, sms, _) = world().await;
    let [lost, waiting] = [Uuid::now_v7().to_string(), execution(&world, &sms, "queued", &json!({}))];
    let started = |id: &str| json!({"execution_id": id, "tool_id": sms, "label": "Welcome"});
    world.aws.change("calls", CALL, json!({"on_call_start": [started(&lost), started(&waiting)]}));
    end(&world).await;
    let answer = receipt(&world).await;
    assert_eq!((ids(&answer["unknown"]), ids(&answer["not_done"])), (vec![&*lost], vec![&*waiting]));
    assert_eq!((&answer["final"], &answer["unknown"][0]["effect"]), (&json!(false), &json!("sms")));
}

#[tokio::test]
async fn a_receipt_is_for_its_organization_only() {
    let (world, sms, _) = world().await;
    execution(&world, &sms, "succeeded", &json!({}));
    let path = format!("/{CALL}/receipt");
    world.calls_as(&world.other, &path).await.expect(404);
    world.calls("/no-call/receipt").await.expect(404);
}

#[tokio::test]
async fn an_ended_call_starts_its_automations_once() {
    let (world, sms, _) = world().await;
    let automation = listener(&world).await;
    execution(&world, &sms, "succeeded", &json!({"arguments": {"text": "Hi"}}));
    end(&world).await;
    end(&world).await;
    assert_eq!(world.run_scheduled().await, 0);
    assert_eq!(world.runs_of(&automation), [] as [Value; 0], "executions are still being recorded");
    let message = world.aws.messages("scheduled")[0].clone();
    assert_eq!(world.run_scheduled_within(SOON).await, 0);
    assert_eq!(world.runs_of(&automation).len(), 1);
    let data = given(&world);
    let call = json!({
        "id": CALL, "direction": "inbound", "agent_id": world.home.agent_id, "caller_phone_number": phone(1),
        "called_phone_number": world.home.phone_number, "person_phone_number": phone(1), "ended_reason": "customer-ended-call", "cost": 0.12,
        "duration_seconds": null, "failed_tools": 0, "created_at": data["call"]["created_at"],
        "ended_at": data["call"]["ended_at"], "unproven_claims": null, "returned_as": null,
        "returned_from": null,
    });
    assert_eq!(data["call"], call);
    assert_eq!((&data["receipt"], &data["receipt"]["final"]), (&receipt(&world).await, &json!(true)));
    // The queue delivers at least once.
    world.aws.post("scheduled", &message.to_string());
    assert_eq!(world.run_scheduled().await, 0);
    assert_eq!(world.runs_of(&automation).len(), 1);
    let listed = world.events("").await.expect(200);
    let event = &listed["items"][0];
    assert_eq!((&event["service"], &event["event_type"]), (&json!("calls"), &json!("call.ended")));
    assert_eq!((&event["hook_id"], listed["items"].as_array().unwrap().len()), (&Value::Null, 1));
}

#[tokio::test]
async fn the_event_of_a_call_in_which_the_caller_is_back_names_the_call_before() {
    let (world, ..) = world().await;
    listener(&world).await;
    world.aws.change("calls", CALL, json!({"returned_from": "call-0"}));
    end(&world).await;
    assert_eq!(world.run_scheduled_within(SOON).await, 0);
    let call = given(&world)["call"].clone();
    assert_eq!((&call["returned_from"], &call["returned_as"]), (&json!("call-0"), &Value::Null));
}

#[tokio::test]
async fn the_end_of_a_call_waits_for_its_tools() {
    let (world, sms, _) = world().await;
    let automation = listener(&world).await;
    let id = execution(&world, &sms, "queued", &json!({}));
    end(&world).await;
    for waits in 1..=5 {
        assert_eq!(world.run_scheduled_within(70).await, 0);
        assert_eq!(world.aws.messages("scheduled")[0]["waits"], waits);
        assert_eq!(world.runs_of(&automation), [] as [Value; 0]);
    }
    world.aws.change("executions", &id, json!({"status": "succeeded"}));
    assert_eq!(world.run_scheduled_within(70).await, 0);
    assert_eq!(given(&world)["receipt"]["done"][0]["execution_id"], json!(id));
    assert_eq!(world.aws.messages("scheduled"), [] as [Value; 0]);
}

#[tokio::test]
async fn a_tool_that_never_ends_delays_the_event_by_minutes_only() {
    let (world, sms, _) = world().await;
    let automation = listener(&world).await;
    execution(&world, &sms, "queued", &json!({}));
    end(&world).await;
    for _ in 0..=5 {
        assert_eq!(world.run_scheduled_within(70).await, 0);
    }
    assert_eq!(world.runs_of(&automation).len(), 1);
    assert_eq!(given(&world)["receipt"]["final"], json!(false));
}

#[tokio::test]
async fn an_ended_call_to_which_nothing_listens_leaves_no_event() {
    let (world, ..) = world().await;
    end(&world).await;
    world.aws.clear_operations();
    assert_eq!(world.run_scheduled_within(SOON).await, 0);
    assert_eq!(world.aws.rows("events"), [] as [Value; 0]);
    assert_eq!(world.aws.operations().len(), 2, "the automations that listen and the runs that wait");
}

#[tokio::test]
async fn a_call_that_was_deleted_starts_nothing() {
    let (world, ..) = world().await;
    let automation = listener(&world).await;
    end(&world).await;
    world.aws.delete("calls", CALL);
    assert_eq!(world.run_scheduled_within(SOON).await, 0);
    assert_eq!(world.runs_of(&automation), [] as [Value; 0]);
}

#[tokio::test]
async fn a_deleted_call_takes_the_event_of_its_end_with_it() {
    let (world, ..) = world().await;
    listener(&world).await;
    end(&world).await;
    assert_eq!(world.run_scheduled_within(SOON).await, 0);
    assert_eq!(world.aws.rows("events").len(), 1);
    let path = format!("/api/{}/calls/{CALL}", world.other.slug);
    world.send("calls", &Event::new("DELETE", &path).user(&world.other.user_id)).await.expect(404);
    assert_eq!(world.aws.rows("events").len(), 1);
    let path = format!("/api/{}/calls/{CALL}", world.home.slug);
    world.send("calls", &Event::new("DELETE", &path).user(&world.home.user_id)).await.expect(204);
    assert_eq!(world.aws.rows("events"), [] as [Value; 0]);
}

#[tokio::test]
async fn a_request_that_was_not_confirmed_is_not_hidden_by_one_to_another_number() {
    let (world, sms, _) = world().await;
    let to = |number: u32| {
        let hash = CallerHash::of(world.home.organization_id.parse().unwrap(), &phone(number));
        json!({"arguments": {"to": "[number]", "text": "Hi"}, "recipients": [hash]})
    };
    let first = execution(&world, &sms, "read_back", &to(1));
    execution(&world, &sms, "read_back", &to(2));
    execution(&world, &sms, "succeeded", &to(2));
    assert_eq!(ids(&receipt(&world).await["not_done"]), [first.as_str()]);
}

#[tokio::test]
async fn an_end_that_could_not_be_queued_is_reported_again() {
    let (world, ..) = world().await;
    let automation = listener(&world).await;
    let message = json!({"message": {"type": "status-update", "status": "ended", "call": {"id": CALL}}});
    world.aws.inject(Fault::new("SendMessage", "scheduled", tests::aws::Trouble::Error("AccessDenied")).times(99));
    let refused = report_within(&world, &message, Duration::from_secs(1)).await;
    assert!(refused.status >= 500, "{}: VAPI sends the message again", refused.status);
    assert_eq!(world.aws.row("calls", CALL).unwrap()["ended_at"], Value::Null);
    world.aws.clear_faults();
    // Nothing depends on VAPI during a short outage.
    world.aws.inject(Fault::new("SendMessage", "scheduled", tests::aws::Trouble::Error("AccessDenied")).times(3));
    report(&world, &message).await.expect(200);
    assert_eq!(world.aws.faults_left(), 0);
    // The assistant sends no report.
    for runs in [0, 0, 1] {
        assert_eq!(world.run_scheduled_within(70).await, 0);
        assert_eq!(world.runs_of(&automation).len(), runs);
    }
}

#[tokio::test]
async fn a_start_that_failed_is_tried_again_with_the_message() {
    let (world, ..) = world().await;
    let automation = listener(&world).await;
    end(&world).await;
    world.aws.inject(Fault::throttled("TransactWriteItems", "automation_runs").times(99));
    assert_eq!(world.run_scheduled_within(SOON).await, 1);
    world.aws.clear_faults();
    assert_eq!(world.run_scheduled_within(600).await, 0);
    assert_eq!(world.runs_of(&automation).len(), 1);
}

#[tokio::test]
async fn the_event_is_not_brought_by_a_hook() {
    let (world, ..) = world().await;
    world.catalogue_service("calls");
    let refused = world.hooks(&world.home, "POST", "", &json!({"service": "Calls"})).await;
    assert_eq!(refused.wrong_fields(), ["service"]);
    assert!(refused.body.to_string().contains("Nothing has to be set up"), "{}", refused.body);
    let definition = json!({
        "name": "Calls", "trigger_type": "webhook", "dry_run": true,
        "trigger_config": {"service": "Calls", "event_type": "call.ended"},
        "actions": [{"id": "now", "tool": "current_time", "parameters": {}}],
        "fingerprints": {"current_time": "built-in"},
    });
    let checked = world.deploy(&definition).await.expect(200);
    assert!(!checked.to_string().contains("waits_for_hook"), "{checked}");
}

#[tokio::test]
async fn a_receipt_without_an_unreadable_execution_is_not_complete() {
    let (world, sms, _) = world().await;
    let sent = execution(&world, &sms, "succeeded", &json!({}));
    let other = execution(&world, &sms, "succeeded", &json!({}));
    assert_eq!(receipt(&world).await["complete"], true);
    world.aws.change("executions", &other, json!({"status": "delegated"}));
    let answer = receipt(&world).await;
    assert_eq!((ids(&answer["done"]), &answer["complete"]), (vec![sent.as_str()], &json!(false)));
    let call = world.calls(&format!("/{CALL}")).await.expect(200);
    assert_eq!(call["timeline_complete"], false);
}
