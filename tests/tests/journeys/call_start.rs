//! POST /api/phone-number/{id}/incoming: a call comes in, and its tools inform the model.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

mod fallback;
mod lost_answers;
mod queues;

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};
use tests::{
    Answer, Event, Options, Tenant, World, aws,
    clients::until,
    logs::Logs,
    phone, preemptive_sms,
    standins::{
        Effect, Fault, Standin,
        twilio::{self, IncomingCall, SignedForm},
    },
};

const HEADING: &str = "Customer context from CRM lookup:";

/// Any HTTP address: gives the prepared answers, otherwise 404.
type Crm = Standin<twilio::Twilio>;

fn crm() -> Crm {
    twilio::start("127.0.0.1:0".parse().unwrap(), twilio::Options::default()).unwrap()
}

async fn world(crm: &Crm) -> World {
    World::with(Options { open_hosts: vec![crm.address().to_string()], ..Options::default() }).await
}

/// A lookup at the start of a call, attached to the agent.
async fn lookup(world: &World, crm: &Crm, name: &str) -> Value {
    let url = format!("{}/{name}?phone={{{{caller_phone_number}}}}", crm.url);
    let config = json!({
        "type": "api_request", "label": name, "method": "GET", "url": url, "attach_to_agent": false, "execute_on_call_start": true,
    });
    world.attached(&config).await
}

fn answers(crm: &Crm, name: &str, body: &Value) {
    crm.inject(Fault::status(200).with_body(body.clone()).on("GET", &format!("/{name}")));
}

/// VAPI's id of the call behind a TwiML.
#[track_caller]
fn call_id(answer: &Answer) -> String {
    assert_eq!((answer.status, answer.content_type.as_str()), (200, "text/xml"), "{}", answer.body);
    let twiml = answer.body.as_str().unwrap();
    let (before, _) = twiml.split_once("/transport").unwrap_or_else(|| panic!("{twiml}"));
    before.rsplit('/').next().unwrap().to_owned()
}

/// The contents of the messages to the call.
fn told(world: &World, call: &str) -> Vec<String> {
    let content = |message: Value| {
        assert_eq!((&message["type"], &message["triggerResponseEnabled"]), (&json!("add-message"), &json!(false)));
        assert_eq!(message["message"]["role"], "system");
        message["message"]["content"].as_str().unwrap().to_owned()
    };
    world.vapi.heard(call).into_iter().map(content).collect()
}

/// The deadline for sending the results so far.
async fn due(world: &World) {
    let batch = world.aws.receive("start-tools", 3).unwrap();
    assert_eq!(world.run_batch(batch).await, 0);
}

fn asked_for_twiml(world: &World) -> usize {
    world.vapi.requests().iter().filter(|request| request.path == "/twilio/inbound_call").count()
}

#[tokio::test]
async fn a_caller_is_known_before_the_agent_speaks() {
    let crm = crm();
    let world = world(&crm).await;
    lookup(&world, &crm, "customer").await;
    let sms = world.attached(&preemptive_sms()).await;
    let incoming = world.incoming(&world.caller(&phone(1)));
    let answer = world.send("call-start", &incoming).await;
    let call = call_id(&answer);
    let forwarded = world.vapi.requests().into_iter().find(|request| request.path == "/twilio/inbound_call").unwrap();
    assert_eq!(forwarded.headers["content-type"], "application/x-www-form-urlencoded");
    assert!(!forwarded.headers.contains_key("authorization"));

    let row = world.aws.row("calls", &call).unwrap();
    assert_eq!((&row["agent_id"], &row["caller_phone_number"]), (&json!(world.home.agent_id), &json!(phone(1))));
    assert_eq!(row["on_call_start"].as_array().unwrap().len(), 2);
    assert!(row["control_url"].as_str().unwrap().ends_with(&format!("/{call}/control")), "{row}");

    answers(&crm, "customer", &json!({"name": "Ana Ruiz", "since": 2019}));
    assert_eq!(world.run_queued().await, 0);
    let asked = crm.requests().pop().unwrap();
    assert_eq!(asked.query, [("phone".to_owned(), phone(1))]);
    let [message] = &told(&world, &call)[..] else { panic!("{:?}", told(&world, &call)) };
    let lines: Vec<&str> = message.lines().collect();
    assert_eq!(lines[..2], [HEADING, "customer: {\"name\":\"Ana Ruiz\",\"since\":2019}"]);
    assert!(lines[2].starts_with(&format!("{}: {{", sms["label"].as_str().unwrap())), "{message}");
    assert_eq!(world.twilio.messages().len(), 1);

    // After the results were sent, the deadline message sends nothing.
    due(&world).await;
    assert_eq!(told(&world, &call).len(), 1);
    let row = world.aws.row("calls", &call).unwrap();
    assert!(row["context_injected_at"].is_string() && row.get("context_error").is_none(), "{row}");
    let runs = world.executions();
    assert!(runs.iter().all(|run| run["trigger"] == "call_start" && run["call_id"] == json!(call)), "{runs:?}");
}

#[tokio::test]
async fn the_same_call_again_gets_the_same_twiml_and_starts_nothing_twice() {
    let crm = crm();
    let world = world(&crm).await;
    lookup(&world, &crm, "customer").await;
    let incoming = world.incoming(&world.caller(&phone(1)));
    let (one, other) = tokio::join!(world.send("call-start", &incoming), world.send("call-start", &incoming));
    let again = world.send("call-start", &incoming).await;
    assert_eq!((&one.body, &other.body), (&again.body, &again.body));
    assert_eq!((asked_for_twiml(&world), world.aws.messages("start-tools").len()), (1, 2));
    // Another call is another one.
    let another = world.send("call-start", &world.incoming(&world.caller(&phone(1)))).await;
    assert_ne!(call_id(&another), call_id(&one));
}

#[tokio::test]
async fn a_request_without_twilios_signature_learns_and_starts_nothing() {
    let crm = crm();
    let world = world(&crm).await;
    lookup(&world, &crm, "customer").await;
    let incoming = world.incoming(&world.caller(&phone(1)));
    let mut changed = incoming.clone();
    changed.body = changed.body.map(|body| body.replace("5550101", "5550102"));
    let mut unsigned = incoming.clone();
    unsigned.headers.remove("x-twilio-signature");
    let mut theirs = incoming.clone();
    theirs.path = theirs.path.replace(&world.home.phone_number_id, &world.other.phone_number_id);
    let nonsense = incoming.clone().header("x-twilio-signature", "é nonsense");
    let mut problems = BTreeSet::new();
    // An unsigned request learns nothing about the form.
    let (short, unsigned_short) = (incoming.clone().text("CallSid=CA1"), unsigned.clone().text("CallSid=CA1"));
    let refused = [&changed, &unsigned, &theirs, &nonsense, &incoming.clone().query("a", "b"), &short, &unsigned_short];
    for event in refused {
        let refused = world.send("call-start", event).await;
        assert_eq!(refused.status, 403, "{}", refused.body);
        problems.insert(refused.body["detail"].to_string());
    }
    assert_eq!(problems.len(), 1);
    let missing = signed(&world, &world.home, &[("CallSid".to_owned(), "CA1".to_owned())]);
    assert_eq!(world.send("call-start", &missing).await.wrong_fields(), ["From"]);
    assert_eq!((asked_for_twiml(&world), world.aws.messages("start-tools").len()), (0, 0));
    assert!(world.aws.rows("calls").is_empty() && world.aws.rows("idempotency").is_empty());
    // Refused requests do not block Twilio's own.
    call_id(&world.send("call-start", &incoming).await);
}

/// A form to the number of an organization, signed with the organization's own auth token.
fn signed(world: &World, tenant: &Tenant, form: &[(String, String)]) -> Event {
    let path = format!("/api/phone-number/{}/incoming", tenant.phone_number_id);
    let signed = SignedForm::new(&format!("{}{path}", world.options.public_url), form, &tenant.twilio_token);
    signed
        .headers
        .iter()
        .fold(Event::new("POST", &path).text(signed.body), |event, (name, value)| event.header(name, value))
}

#[tokio::test]
async fn a_valid_signature_does_not_open_another_accounts_number() {
    let crm = crm();
    let world = world(&crm).await;
    lookup(&world, &crm, "customer").await;
    let (home, other) = (&world.home, &world.other);
    let form = |account: &str, to: &str| IncomingCall::new(account, &phone(1), to).form();
    for (account, to) in [
        (&other.twilio_sid, &home.phone_number),
        (&home.twilio_sid, &home.phone_number),
        (&home.twilio_sid, &other.phone_number),
    ] {
        let refused = world.send("call-start", &signed(&world, other, &form(account, to))).await;
        assert_eq!(refused.status, 403, "{account} {to}: {}", refused.body);
    }
    // VAPI might read the second value, or another name for the number.
    let mut without = form(&other.twilio_sid, &other.phone_number);
    without.retain(|(name, _)| name != "AccountSid");
    assert_eq!(world.send("call-start", &signed(&world, other, &without)).await.status, 403);
    for name in ["To", "to", "To[]", "Called"] {
        let mut twice = form(&other.twilio_sid, &other.phone_number);
        twice.push((name.to_owned(), home.phone_number.clone()));
        assert_eq!(world.send("call-start", &signed(&world, other, &twice)).await.status, 422, "{name}");
    }
    let mut called = form(&other.twilio_sid, &other.phone_number);
    called.iter_mut().filter(|(name, _)| name == "Called").for_each(|(_, value)| value.clone_from(&home.phone_number));
    assert_eq!(world.send("call-start", &signed(&world, other, &called)).await.wrong_fields(), ["Called"]);
    assert_eq!((asked_for_twiml(&world), world.aws.messages("start-tools").len()), (0, 0));
    assert!(world.aws.rows("calls").is_empty() && world.aws.rows("idempotency").is_empty());

    let theirs = form(&other.twilio_sid, &other.phone_number);
    call_id(&world.send("call-start", &signed(&world, other, &theirs)).await);
}

#[tokio::test]
async fn responses_do_not_reveal_registered_numbers() {
    let world = World::start().await;
    let call = world.caller(&phone(1));
    let right = world.incoming(&call);
    let of = |id: &str| {
        let mut event = right.clone();
        event.path = event.path.replace(&world.home.phone_number_id, id);
        event
    };
    let mut unsigned = right.clone();
    unsigned.headers.remove("x-twilio-signature");
    let mut answers = BTreeSet::new();
    for event in [
        of("0192f0c1-0000-7000-8000-00000000dead"),
        of("no-id"),
        of("%00"),
        of(&world.other.phone_number_id),
        unsigned,
        right.clone().header("x-twilio-signature", "bm90IGl0cw=="),
    ] {
        let began = Instant::now();
        let mut refused = world.send("call-start", &event).await;
        assert!(refused.at.duration_since(began) >= Duration::from_millis(200), "{}", event.path);
        refused.body["request_id"] = Value::Null;
        answers.insert((refused.status, refused.content_type, refused.body.to_string()));
    }
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert_eq!(answers.first().unwrap().0, 403);
}

/// Makes all records in `idempotency` older.
fn hours_pass(world: &World, hours: i64) {
    for row in world.aws.rows("idempotency") {
        let earlier = |name: &str, unit: i64| row[name].as_i64().map(|at| (name.to_owned(), json!(at - hours * unit)));
        let seconds = ["expires_at", "done_until", "window_until"].map(|name| earlier(name, 3_600));
        let times = seconds.into_iter().chain([earlier("lease_until", 3_600_000)]);
        let id = row["id"].as_str().unwrap();
        world.aws.change("idempotency", id, Value::Object(times.flatten().collect()));
    }
}

#[tokio::test]
async fn a_signed_request_repeated_hours_later_begins_nothing() {
    let crm = crm();
    let world = world(&crm).await;
    lookup(&world, &crm, "customer").await;
    let incoming = world.incoming(&world.caller(&phone(1)));
    let first = world.send("call-start", &incoming).await;
    call_id(&first);
    let begun = |world: &World| {
        (asked_for_twiml(world), world.aws.rows("calls").len(), world.aws.messages("start-tools").len())
    };
    assert_eq!(begun(&world), (1, 1, 2));
    for hours in [1, 30, 24 * 50] {
        hours_pass(&world, hours);
        assert_eq!(world.send("call-start", &incoming).await.body, first.body, "after {hours} hours more");
        assert_eq!(begun(&world), (1, 1, 2), "after {hours} hours more");
    }
}

#[tokio::test]
async fn a_call_whose_answer_is_not_known_is_taken_again_at_once_and_never_later() {
    let crm = crm();
    let world = world(&crm).await;
    lookup(&world, &crm, "customer").await;
    let incoming = world.incoming(&world.caller(&phone(1)));
    // The answer cannot be recorded, as after a crash.
    let fault = aws::Fault::new("UpdateItem", "idempotency", aws::Trouble::Error("AccessDeniedException"));
    world.aws.inject(fault.after(1).times(9));
    call_id(&world.send("call-start", &incoming).await);
    world.aws.clear_faults();
    // Twilio tries again while the caller is on the line.
    let at_once = world.send("call-start", &incoming.clone().within(Duration::from_secs(6))).await;
    call_id(&at_once);
    assert_eq!((asked_for_twiml(&world), world.aws.messages("start-tools").len()), (2, 2));
    for hours in [1, 30, 24 * 50] {
        hours_pass(&world, hours);
        let late = world.send("call-start", &incoming).await;
        assert_eq!((late.status, late.content_type.as_str()), (200, "text/xml"));
        assert!(late.body.as_str().unwrap().contains("<Say>"), "{}", late.body);
        assert_eq!((asked_for_twiml(&world), world.aws.messages("start-tools").len()), (2, 2), "after {hours} hours");
    }
}

#[tokio::test]
async fn no_outage_of_ours_keeps_the_twiml_from_the_caller() {
    let crm = crm();
    let world = world(&crm).await;
    lookup(&world, &crm, "customer").await;
    for (action, on, reaches_vapi) in [
        ("GetItem", "phone_numbers", false),
        ("UpdateItem", "idempotency", true),
        ("Query", "agent_tools", true),
        ("BatchGetItem", "tools", true),
        ("PutItem", "calls", true),
        ("SendMessageBatch", "start-tools", true),
    ] {
        let code = if on == "start-tools" { "ServiceUnavailable" } else { "ProvisionedThroughputExceededException" };
        world.aws.inject(aws::Fault::new(action, on, aws::Trouble::Error(code)).times(9));
        let logs = Logs::capture();
        let answer = world.send("call-start", &world.incoming(&world.caller(&phone(1)))).await;
        assert_eq!((answer.status, answer.content_type.as_str()), (200, "text/xml"), "{action} {on}: {}", answer.body);
        assert_eq!(answer.body.as_str().unwrap().contains("<Stream"), reaches_vapi, "{action} {on}: {}", answer.body);
        assert!(logs.text().contains("\"level\":\"ERROR\""), "{action} {on} leaves a line");
        world.aws.clear_faults();
    }
}

#[tokio::test]
async fn sqs_refusing_half_a_batch_is_asked_again_for_that_half() {
    let crm = crm();
    let world = world(&crm).await;
    for name in ["a", "b", "c", "d", "e"] {
        lookup(&world, &crm, name).await;
    }
    world.aws.refuse_messages(3);
    let call = call_id(&world.send("call-start", &world.incoming(&world.caller(&phone(1)))).await);
    assert_eq!(world.aws.messages("start-tools").len(), 6);
    for name in ["a", "b", "c", "d", "e"] {
        answers(&crm, name, &json!(name));
    }
    assert_eq!(world.run_queued().await, 0);
    assert_eq!(told(&world, &call), [format!("{HEADING}\na: \"a\"\nb: \"b\"\nc: \"c\"\nd: \"d\"\ne: \"e\"")]);
}

#[tokio::test]
async fn one_of_five_tools_hangs_and_the_others_are_told_in_time() {
    let crm = crm();
    let world = world(&crm).await;
    for name in ["a", "b", "c", "d", "e"] {
        lookup(&world, &crm, name).await;
    }
    let call = call_id(&world.send("call-start", &world.incoming(&world.caller(&phone(1)))).await);
    let hanging = world.aws.messages("start-tools")[2].to_string();
    for name in ["a", "b", "d", "e"] {
        answers(&crm, name, &json!(name));
    }
    // The third result is not back at the deadline.
    crm.inject(Fault::held().on("GET", "/c").with_body(json!("c")));
    let late = async {
        until(|| world.aws.row("calls", &call).unwrap()["results"].as_object().is_some_and(|known| known.len() == 4))
            .await;
        due(&world).await;
        let told = told(&world, &call);
        crm.release();
        told
    };
    let (failed, in_time) = tokio::join!(world.run_queued(), late);
    assert_eq!(failed, 0);
    assert_eq!(in_time, [format!("{HEADING}\na: \"a\"\nb: \"b\"\nd: \"d\"\ne: \"e\"")]);
    // It follows on its own, once.
    world.aws.post("start-tools", &hanging);
    assert_eq!(world.run_queued().await, 0);
    assert_eq!(told(&world, &call)[1..], [format!("{HEADING}\nc: \"c\"")]);
    let timeline = world.calls(&format!("/{call}")).await.expect(200)["timeline"].clone();
    let late: Vec<&Value> =
        timeline.as_array().unwrap().iter().filter(|entry| entry["event"] == "result_injected").collect();
    assert_eq!((late.len(), &late[0]["label"]), (1, &json!("c")), "{timeline}");
}

#[tokio::test]
async fn messages_delivered_twice_at_the_same_time_tell_once() {
    let crm = crm();
    let world = world(&crm).await;
    lookup(&world, &crm, "customer").await;
    world.attached(&preemptive_sms()).await;
    let call = call_id(&world.send("call-start", &world.incoming(&world.caller(&phone(1)))).await);
    for message in world.aws.messages("start-tools") {
        answers(&crm, "customer", &json!({"name": "Ana"}));
        if message["kind"] == "run" {
            world.aws.post("start-tools", &message.to_string());
        } else {
            let twice = json!({"kind": "context_due", "organization_id": world.home.organization_id, "call_id": call});
            assert_eq!(message, twice);
        }
    }
    let (one, rest) = (world.aws.receive("start-tools", 0).unwrap(), world.aws.messages("start-tools").len());
    assert_eq!((world.run_batch(one).await, rest), (0, 1));
    assert_eq!((told(&world, &call).len(), world.twilio.messages().len()), (1, 1));
    let due_again = world.aws.messages("start-tools")[0].to_string();
    world.aws.post("start-tools", &due_again);
    due(&world).await;
    assert_eq!(told(&world, &call).len(), 1);
}

#[tokio::test]
async fn a_control_url_that_does_not_answer_yet_or_fails_is_asked_again() {
    let crm = crm();
    let world = world(&crm).await;
    lookup(&world, &crm, "customer").await;
    let call = call_id(&world.send("call-start", &world.incoming(&world.caller(&phone(1)))).await);
    answers(&crm, "customer", &json!({"name": "Ana"}));
    world.vapi.inject(Fault::status(500).on("POST", &format!("/{call}/control")).times(3));
    assert_eq!(world.run_queued().await, 0);
    assert_eq!(told(&world, &call), [format!("{HEADING}\ncustomer: {{\"name\":\"Ana\"}}")]);
    assert!(world.aws.row("calls", &call).unwrap()["context_injected_at"].is_string());
}

#[tokio::test]
async fn a_call_that_is_over_is_told_nothing_and_that_is_on_record() {
    let crm = crm();
    let world = world(&crm).await;
    lookup(&world, &crm, "customer").await;
    let call = call_id(&world.send("call-start", &world.incoming(&world.caller(&phone(1)))).await);
    answers(&crm, "customer", &json!({"name": "Ana"}));
    world.vapi.end_call(&call);
    world.aws.change("calls", &call, json!({"status": "ended", "ended_at": "2026-11-20T17:20:52.000Z"}));
    assert_eq!(world.run_queued().await, 0);
    assert!(told(&world, &call).is_empty());
    assert_eq!(world.aws.row("calls", &call).unwrap()["context_error"], "the call is over");
}

#[tokio::test]
async fn long_results_are_cut_and_failed_ones_left_out() {
    let crm = crm();
    let world = world(&crm).await;
    for name in ["failing", "huge", "long", "short"] {
        lookup(&world, &crm, name).await;
    }
    let call = call_id(&world.send("call-start", &world.incoming(&world.caller(&phone(1)))).await);
    crm.inject(Fault::status(500).on("GET", "/failing"));
    answers(&crm, "huge", &json!("x".repeat(2 * 1024 * 1024)));
    let orders: Vec<Value> = (0..2_000).map(|order| json!({"order": order, "state": "shipped"})).collect();
    answers(&crm, "long", &json!(orders));
    answers(&crm, "short", &json!(true));
    assert_eq!(world.run_queued().await, 0);
    let [message] = &told(&world, &call)[..] else { panic!("{:?}", told(&world, &call)) };
    let lines: Vec<&str> = message.lines().collect();
    assert_eq!((lines.len(), lines[0], lines[2]), (3, HEADING, "short: true"));
    assert!(lines[1].starts_with("long: [{\"order\":0,") && lines[1].len() <= 2_048, "{} bytes", lines[1].len());
    assert!(message.contains("… (cut: "), "{message}");
}

#[tokio::test]
async fn with_vapis_id_of_the_number_the_call_is_created_for_the_agents_assistant() {
    let crm = crm();
    let world = world(&crm).await;
    lookup(&world, &crm, "customer").await;
    let at_vapi = world.vapi.set_number(&world.home.phone_number, &world.home.assistant_id).unwrap();
    world.aws.change("phone_numbers", &world.home.phone_number_id, json!({"vapi_phone_number_id": at_vapi}));
    let call = call_id(&world.send("call-start", &world.incoming(&world.caller(&phone(1)))).await);
    assert_eq!(asked_for_twiml(&world), 0);
    assert_eq!(world.vapi.call(&call).unwrap()["assistantId"], json!(world.home.assistant_id));
    answers(&crm, "customer", &json!("Ana"));
    assert_eq!(world.run_queued().await, 0);
    assert_eq!(told(&world, &call), [format!("{HEADING}\ncustomer: \"Ana\"")]);
}

/// The number is known to VAPI, so a call is created there for the agent's assistant.
fn bypassed(world: &World) {
    let at_vapi = world.vapi.set_number(&world.home.phone_number, &world.home.assistant_id).unwrap();
    world.aws.change("phone_numbers", &world.home.phone_number_id, json!({"vapi_phone_number_id": at_vapi}));
}

#[tokio::test]
async fn a_moment_of_trouble_at_vapi_costs_no_caller_the_call() {
    let crm = crm();
    for bypass in [false, true] {
        let world = world(&crm).await;
        lookup(&world, &crm, "customer").await;
        if bypass {
            bypassed(&world);
        }
        let troubles = [
            Fault::status(500),
            Fault::status(503).times(2),
            Fault::status(500).with_effect(Effect::First),
            Fault::drop_before().times(2),
            Fault::drop_after(),
            Fault::status(429),
        ];
        for (begun, trouble) in troubles.into_iter().enumerate() {
            world.vapi.inject(trouble.clone());
            let answer = world.send("call-start", &world.incoming(&world.caller(&phone(1)))).await;
            let call = call_id(&answer);
            assert!(world.vapi.faults().is_empty());
            // The call that VAPI began before its answer was lost is the call.
            assert_eq!(world.vapi.calls_begun(), begun + 1, "{trouble:?}");
            assert_eq!(world.aws.row("calls", &call).unwrap()["id"], json!(call));
            assert_eq!(world.aws.messages("start-tools").len(), 2 * (begun + 1), "{trouble:?}");
        }
    }
}

#[tokio::test]
async fn a_lost_call_is_not_looked_for_among_those_of_others() {
    let world = World::start().await;
    bypassed(&world);
    let one = call_id(&world.send("call-start", &world.incoming(&world.caller(&phone(1)))).await);
    world.vapi.inject(Fault::drop_before().on("POST", "/call"));
    let other = call_id(&world.send("call-start", &world.incoming(&world.caller(&phone(1)))).await);
    assert_ne!(one, other);
    // Neither found nor refused: it is made after the outage.
    world.vapi.inject(Fault::status(503).on("POST", "/call"));
    world.vapi.inject(Fault::status(503).on("GET", "/call"));
    call_id(&world.send("call-start", &world.incoming(&world.caller(&phone(1)))).await);
    assert_eq!(world.vapi.calls_begun(), 3);
}

#[tokio::test]
async fn a_caller_without_a_number_reaches_the_agent() {
    for bypass in [false, true] {
        let world = World::start().await;
        if bypass {
            bypassed(&world);
        }
        let long = format!("sip:{}@example.com", "a".repeat(80));
        for caller in ["anonymous", "+266696687", "sip:ana@example.com", "client:browser_1", "1234", &long] {
            let call = call_id(&world.send("call-start", &world.incoming(&world.caller(caller))).await);
            assert_eq!(world.aws.row("calls", &call).unwrap()["caller_phone_number"], caller);
            let customer = &world.vapi.call(&call).unwrap()["customer"];
            if bypass && caller.contains(':') {
                assert_eq!(customer["number"], "anonymous");
            } else {
                assert_eq!(customer["number"], caller);
            }
        }
    }
}

#[tokio::test]
async fn twenty_calls_five_at_once_all_get_their_twiml_and_their_context_once() {
    let crm = crm();
    let world = world(&crm).await;
    lookup(&world, &crm, "customer").await;
    let calls: Vec<_> = (0..20).map(|number| world.incoming(&world.caller(&phone(number)))).collect();
    // Twenty at once can use up the two seconds in which a call's tools are looked up.
    let sent = stream::iter(&calls).map(|incoming| world.send("call-start", incoming)).buffer_unordered(5);
    let answers_to: Vec<Answer> = sent.collect().await;
    let calls: BTreeSet<String> = answers_to.iter().map(call_id).collect();
    assert_eq!(calls.len(), 20);
    for _ in 0..20 {
        answers(&crm, "customer", &json!("Ana"));
    }
    assert_eq!(world.run_queued().await, 0);
    for call in &calls {
        assert_eq!(told(&world, call).len(), 1);
    }
}

#[tokio::test]
async fn an_execution_delayed_too_long_by_an_outage_is_not_done() {
    let world = World::start().await;
    let sms = world.attached(&preemptive_sms()).await;
    let call = call_id(&world.send("call-start", &world.incoming(&world.caller(&phone(1)))).await);
    let mut run = world.aws.messages("start-tools").remove(0);
    while world.aws.receive("start-tools", 3).is_some() {}
    run["queued_at"] = json!("2026-01-01T00:00:00.000Z");
    world.aws.post("start-tools", &run.to_string());
    assert_eq!(world.run_queued().await, 0);
    assert!(world.twilio.messages().is_empty() && told(&world, &call).is_empty());
    let [ran] = &world.executions()[..] else { panic!("one run is one row") };
    assert_eq!((&ran["tool_id"], &ran["status"]), (&sms["id"], &json!("failed")));
    assert!(ran["error"].as_str().unwrap().contains("too long ago"), "{ran}");
}

#[tokio::test]
async fn an_agent_without_tools_for_the_start_of_a_call_sets_nothing_off() {
    let world = World::start().await;
    world.attached(&tests::ai_sms()).await;
    let call = call_id(&world.send("call-start", &world.incoming(&world.caller("client:browser"))).await);
    assert!(world.aws.messages("start-tools").is_empty());
    assert_eq!(world.aws.row("calls", &call).unwrap()["caller_phone_number"], "client:browser");
}
