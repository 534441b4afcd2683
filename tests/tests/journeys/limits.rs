//! A tool's limits: its executions and its recipients, against the model's will.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use shared::{
    Deadline,
    store::{Counted, Database, Quotas, Room, Taken, Window},
};
use tests::{
    Answer, Fault, Options, Trouble, World, ai_sms, api_request,
    aws::{TABLE_PREFIX, sdk_config},
    metrics::Metrics,
    phone,
    standins::{self, twilio, vapi::ToolCall},
    within_one_hour,
};
use uuid::Uuid;

fn limited(limits: Value) -> Value {
    let mut config = ai_sms();
    config["limits"] = limits;
    config
}

/// The model says who gets it.
fn to_whomever(allowed: Value) -> Value {
    let mut config = ai_sms();
    config["recipients"] = json!({"mode": "ai", "prompt": "Who gets it"});
    config["allowed_recipients"] = allowed;
    config
}

/// Another tool call in the same conversation.
fn again(call: &ToolCall, text: &str) -> ToolCall {
    let Value::Object(arguments) = json!({"text": text}) else { unreachable!() };
    ToolCall { arguments, ..call.clone() }
}

fn counts(world: &World) -> Vec<Value> {
    let rows = world.aws.rows("idempotency").into_iter();
    rows.filter(|row| row["id"].as_str().unwrap().starts_with("quota#")).collect()
}

fn statuses(world: &World) -> Vec<String> {
    world.executions().iter().map(|row| row["status"].as_str().unwrap().to_owned()).collect()
}

fn sent_to(world: &World) -> Vec<String> {
    let mut to: Vec<String> = world.twilio.messages().into_iter().map(|message| message.to).collect();
    to.sort();
    to
}

fn sent(answers: &[Answer]) -> usize {
    answers.iter().filter(|answer| answer.body["success"] == true).count()
}

#[tokio::test]
async fn beyond_its_limit_a_conversation_gets_a_sentence() {
    let world = World::start().await;
    let tool = world.attached(&limited(json!({"per_call": 2}))).await;
    let call = world.call(&tool, json!({"text": "One"}));
    world.call_tool(&call).await.result();
    world.call_tool(&again(&call, "Two")).await.result();
    let third = world.call_tool(&again(&call, "Three")).await;
    assert!(third.sentence().contains("as often as is allowed in this call"), "{}", third.sentence());
    assert_eq!(world.twilio.messages().len(), 2);
    assert_eq!(statuses(&world), ["succeeded", "succeeded", "limited"]);

    // The limit does not affect the next caller, and the refused run leaves no trace.
    world.call_tool(&world.call(&tool, json!({"text": "Three"}))).await.result();
    assert_eq!(world.call_tool(&again(&call, "Three")).await.sentence(), third.sentence());
    assert_eq!(world.twilio.messages().len(), 3);
}

#[tokio::test]
async fn an_hour_is_one_limit_for_all_conversations_of_one_tool() {
    within_one_hour().await;
    let world = World::start().await;
    let tool = world.attached(&limited(json!({"per_hour": 2}))).await;
    let other = world.attached(&limited(json!({"per_hour": 2}))).await;
    for number in 0..2 {
        world.call_tool(&world.call(&tool, json!({"text": number.to_string()}))).await.result();
    }
    let refused = world.call_tool(&world.call(&tool, json!({"text": "three"}))).await;
    assert!(refused.sentence().contains("within one hour"), "{}", refused.sentence());
    world.call_tool(&world.call(&other, json!({"text": "three"}))).await.result();

    // The next hour has its own count: this hour's is moved into another hour.
    for row in counts(&world) {
        world.aws.delete("idempotency", row["id"].as_str().unwrap());
    }
    world.call_tool(&world.call(&tool, json!({"text": "three"}))).await.result();
}

#[tokio::test]
async fn twenty_at_once_over_a_limit_of_five_are_exactly_five() {
    within_one_hour().await;
    for limits in [json!({"per_call": 5}), json!({"per_hour": 5}), json!({"per_call": 5, "per_hour": 5})] {
        let world = World::start().await;
        let tool = world.attached(&limited(limits.clone())).await;
        let call = world.call(&tool, json!({"text": "0"}));
        let calls: Vec<ToolCall> = (0..20).map(|number| again(&call, &number.to_string())).collect();
        let answers = join_all(calls.iter().map(|call| world.call_tool(call))).await;
        assert_eq!((sent(&answers), world.twilio.messages().len()), (5, 5), "{limits}");
        assert!(counts(&world).iter().all(|row| row["count"] == 5), "{limits}: {:?}", counts(&world));
    }
}

#[tokio::test]
async fn a_run_refused_by_one_limit_is_not_counted_by_the_other() {
    within_one_hour().await;
    let world = World::start().await;
    let tool = world.attached(&limited(json!({"per_call": 1, "per_hour": 2}))).await;
    let call = world.call(&tool, json!({"text": "One"}));
    world.call_tool(&call).await.result();
    for text in ["Two", "Three", "Four"] {
        assert!(world.call_tool(&again(&call, text)).await.sentence().contains("in this call"));
    }
    world.call_tool(&world.call(&tool, json!({"text": "One"}))).await.result();
    let other = world.call(&tool, json!({"text": "One"}));
    assert!(world.call_tool(&other).await.sentence().contains("within one hour"));
    let of_other =
        counts(&world).iter().any(|row| row["id"].as_str().unwrap().ends_with(other.call_id.as_ref().unwrap()));
    assert!(!of_other, "the call that came too late has no count");
}

#[tokio::test]
async fn a_transaction_that_met_another_is_tried_again() {
    let world = World::start().await;
    let tool = world.attached(&limited(json!({"per_call": 1, "per_hour": 5}))).await;
    world.aws.inject(Fault::new("TransactWriteItems", "idempotency", Trouble::TransactionConflict).times(8));
    world.call_tool(&world.call(&tool, json!({"text": "One"}))).await.result();
    assert_eq!(world.aws.faults_left(), 0);
    assert!(counts(&world).iter().all(|row| row["count"] == 1));
}

#[tokio::test]
async fn a_count_whose_answer_was_lost_is_counted_once() {
    within_one_hour().await;
    for limits in [json!({"per_call": 1}), json!({"per_call": 1, "per_hour": 1})] {
        let world = World::start().await;
        let tool = world.attached(&limited(limits.clone())).await;
        let call = world.call(&tool, json!({"text": "One"}));
        // The claim is an update too, and comes first.
        let action = if limits["per_hour"].is_null() { "UpdateItem" } else { "TransactWriteItems" };
        let skipped = u32::from(action == "UpdateItem");
        world.aws.inject(Fault::new(action, "idempotency", Trouble::DropAfter).after(skipped));
        world.call_tool(&call).await.result();
        assert_eq!(world.aws.faults_left(), 0, "{limits}");
        assert!(counts(&world).iter().all(|row| row["count"] == 1), "{limits}: {:?}", counts(&world));
        world.call_tool(&again(&call, "Two")).await.sentence();
    }
}

#[tokio::test]
async fn a_replay_does_not_count_and_neither_do_wrong_arguments() {
    let world = World::start().await;
    let tool = world.attached(&limited(json!({"per_call": 2}))).await;
    let call = world.call(&tool, json!({"text": "One"}));
    for _ in 0..4 {
        world.call_tool(&call).await.result();
    }
    let wrong = ToolCall { arguments: json!({"text": 7}).as_object().unwrap().clone(), ..call.clone() };
    assert!(world.call_tool(&wrong).await.sentence().contains("\"text\""));
    world.call_tool(&again(&call, "Two")).await.result();
    assert_eq!(world.twilio.messages().len(), 2);
    assert!(world.call_tool(&again(&call, "Three")).await.sentence().contains("in this call"));
}

#[tokio::test]
async fn an_effect_whose_limit_cannot_be_counted_is_not_sent() {
    let world = World::start().await;
    let tool = world.attached(&limited(json!({"per_call": 1}))).await;
    let call = world.call(&tool, json!({"text": "One"}));
    // The claim succeeds; each try of the count fails.
    world.aws.inject(Fault::throttled("UpdateItem", "idempotency").after(1));
    let refused = world.call_tool(&call).await;
    assert!(refused.sentence().contains("not available just now"), "{}", refused.sentence());
    assert!(world.twilio.requests().is_empty());
    world.call_tool(&call).await.result();
    assert_eq!(world.twilio.messages().len(), 1, "nothing is held against the next try");
}

#[tokio::test]
async fn a_look_up_that_cannot_be_counted_is_answered_all_the_same() {
    let crm = twilio::start("127.0.0.1:0".parse().unwrap(), twilio::Options::default()).unwrap();
    crm.inject(standins::Fault::body(json!({"name": "Ana"})).times(9));
    let world = World::with(Options { open_hosts: vec![crm.address().to_string()], ..Options::default() }).await;
    let mut config = api_request("GET", &crm.url);
    config["limits"] = json!({"per_call": 1});
    let tool = world.attached(&config).await;
    let call = world.call(&tool, json!({}));
    world.aws.inject(Fault::throttled("UpdateItem", "idempotency"));
    let metrics = Metrics::capture();
    world.call_tool(&call).await.result();
    assert!(metrics.seen().iter().all(|(name, _)| name != "ToolFaults"), "it ran");
    world.call_tool(&call).await.result();
    assert!(world.call_tool(&call).await.sentence().contains("in this call"), "the second one was counted");
    assert_eq!(crm.requests().len(), 2);
}

#[tokio::test]
async fn a_run_that_an_outage_of_ours_stopped_is_not_counted() {
    let world = World::start().await;
    let mut config = limited(json!({"per_call": 1, "per_hour": 1}));
    config["from"] = json!({"type": "specific_number", "phone_number_id": world.home.phone_number_id});
    let tool = world.attached(&config).await;
    let call = world.call(&tool, json!({"text": "One"}));
    world.aws.inject(Fault::throttled("GetItem", "phone_numbers"));
    assert!(world.call_tool(&call).await.sentence().contains("not available just now"));
    assert!(counts(&world).iter().all(|row| row["count"] == 0), "{:?}", counts(&world));
    world.call_tool(&call).await.result();
}

#[tokio::test]
async fn not_naming_the_call_is_no_way_round_a_limit() {
    within_one_hour().await;
    let world = World::start().await;
    let tool = world.attached(&limited(json!({"per_call": 1}))).await;
    let nameless = |text: &str, customer: u32| {
        let call = ToolCall { customer_number: phone(customer), ..world.call(&tool, json!({"text": text})) };
        let event = world.vapi_event(&call);
        let mut body: Value = serde_json::from_str(event.body.as_ref().unwrap()).unwrap();
        body["metadata"].as_object_mut().unwrap().remove("callId");
        event.text(body.to_string())
    };
    world.send("execute", &nameless("One", 1)).await.result();
    assert!(world.send("execute", &nameless("Two", 1)).await.sentence().contains("in this call"));
    world.send("execute", &nameless("One", 2)).await.result();
    let stored = json!(counts(&world)).to_string();
    assert!(!stored.contains(&phone(1)[1..]), "no number stands in a count: {stored}");
}

#[tokio::test]
async fn an_asynchronous_run_is_counted_where_it_runs() {
    let world = World::start().await;
    let mut config = limited(json!({"per_call": 1}));
    config["async"] = json!(true);
    let tool = world.attached(&config).await;
    let call = world.call(&tool, json!({"text": "One"}));
    for text in ["One", "Two"] {
        world.call_tool(&again(&call, text)).await.result();
    }
    assert!(counts(&world).is_empty(), "only queued");
    assert_eq!(world.run_queued().await, 0);
    assert_eq!(world.twilio.messages().len(), 1);
    let mut statuses = statuses(&world);
    statuses.sort();
    assert_eq!(statuses, ["limited", "succeeded"]);
}

#[tokio::test]
async fn a_tool_without_limits_asks_for_no_count() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    world.call_tool(&world.call(&tool, json!({"text": "One"}))).await.result();
    assert!(counts(&world).is_empty());
}

#[tokio::test]
async fn limits_are_edited_and_taken_away() {
    let world = World::start().await;
    let tool = world.attached(&limited(json!({"per_call": 1}))).await;
    assert_eq!(tool["config_metadata"]["limits"], json!({"per_call": 1}));
    let call = world.call(&tool, json!({"text": "One"}));
    world.call_tool(&call).await.result();
    world.call_tool(&again(&call, "Two")).await.sentence();
    let edited = world.update(&tool, &json!({"limits": {"per_call": 2, "per_hour": 9}})).await.expect(200);
    assert_eq!(edited["config_metadata"]["limits"], json!({"per_call": 2, "per_hour": 9}));
    world.call_tool(&again(&call, "Two")).await.result();
    world.call_tool(&again(&call, "Three")).await.sentence();
    let edited = world.update(&tool, &json!({"limits": null})).await.expect(200);
    assert!(edited["config_metadata"].get("limits").is_none(), "{edited}");
    world.call_tool(&again(&call, "Three")).await.result();
}

#[tokio::test]
async fn wrong_limits_are_named_field_by_field() {
    let world = World::start().await;
    for (limits, wrong) in [
        (json!({"per_call": 0, "per_hour": 10_001}), vec!["limits.per_call", "limits.per_hour"]),
        (json!({"per_call": "5", "per_hour": 1.5}), vec!["limits.per_call", "limits.per_hour"]),
        (json!({"per_call": -1, "per_day": 5}), vec!["limits.per_call", "limits.per_day"]),
        (json!(5), vec!["limits"]),
    ] {
        assert_eq!(world.create(&limited(limits.clone())).await.wrong_fields(), wrong, "{limits}");
    }
    let mut other = api_request("GET", "https://api.example.com/");
    other["allowed_recipients"] = json!("caller_only");
    assert_eq!(world.create(&other).await.wrong_fields(), ["allowed_recipients"], "of an sms only");
    assert_eq!(world.create(&to_whomever(json!("anybody"))).await.wrong_fields(), ["allowed_recipients"]);
    let wrong = world.create(&to_whomever(json!(["+15550100001", "5550100"]))).await.wrong_fields();
    assert_eq!(wrong, ["allowed_recipients[1]"]);
}

// --------------------------------------------------------------------------------------------- whom it writes to

#[tokio::test]
async fn a_number_with_a_changed_digit_is_refused_with_the_reason() {
    let world = World::start().await;
    let tool = world.attached(&to_whomever(json!("caller_only"))).await;
    let arguments = json!({"text": "Hello", "recipients": [phone(2)]});
    let refused = world.call_tool(&world.call(&tool, arguments)).await;
    let sentence = refused.sentence();
    assert!(sentence.contains(&phone(2)) && sentence.contains("only send to the number of the caller"), "{sentence}");
    assert!(!sentence.contains(&phone(1)), "{sentence}");
    assert!(world.twilio.requests().is_empty());
    assert_eq!(refused.body["result"]["recipients"][0]["state"], "not_sent");
}

#[tokio::test]
async fn the_others_are_still_sent_to() {
    let world = World::start().await;
    let tool = world.attached(&to_whomever(json!(["{{caller_phone_number}}", phone(7)]))).await;
    let arguments = json!({"text": "Hello", "recipients": [phone(1), phone(2), "+1 (415) 555-0107"]});
    let call = world.call(&tool, arguments);
    let answer = world.call_tool(&call).await;
    let sentence = answer.sentence();
    assert!(sentence.contains(&format!("not sent to {}", phone(2))), "{sentence}");
    assert_eq!(sent_to(&world), [phone(1), phone(7)]);
    assert_eq!(statuses(&world), ["partial"]);
    world.call_tool(&call).await;
    assert_eq!(sent_to(&world).len(), 2, "asked again, nobody gets it twice");
}

#[tokio::test]
async fn a_released_execution_returns_its_room() {
    let world = World::start().await;
    let tool = world.attached(&to_whomever(json!([phone(7), phone(8)]))).await;
    let arguments = json!({"text": "Hello", "recipients": [phone(2), phone(7)]});
    let answer = world.call_tool(&world.call(&tool, arguments)).await;
    assert!(answer.sentence().contains("numbers that were set up for it"));
    let told = answer.body.to_string();
    assert!(told.contains(&phone(7)), "the model gave it");
    assert!(!told.contains(&phone(8)), "{told}");
    assert!(!tool["function_schema"].to_string().contains(&phone(8)));
}

#[tokio::test]
async fn an_sms_to_a_caller_without_a_number_is_refused() {
    let world = World::start().await;
    let tool = world.attached(&to_whomever(json!("caller_only"))).await;
    let call = ToolCall {
        customer_number: String::new(),
        ..world.call(&tool, json!({"text": "Hello", "recipients": [phone(2)]}))
    };
    assert!(world.call_tool(&call).await.sentence().contains("the number of the caller"));
    assert!(world.twilio.requests().is_empty());
}

/// A caller who withholds a number may have the model claim somebody else's.
#[tokio::test]
async fn a_caller_whom_the_model_names_is_not_the_caller() {
    let world = World::start().await;
    let tool = world.attached(&to_whomever(json!("caller_only"))).await;
    let call =
        ToolCall { customer_number: phone(2), ..world.call(&tool, json!({"text": "Hello", "recipients": [phone(2)]})) };
    let by_vapi = world.vapi_event(&call);
    let with_token: Value = serde_json::from_str(by_vapi.body.as_ref().unwrap()).unwrap();
    let mut claimed = with_token.clone();
    claimed["metadata"].as_object_mut().unwrap().remove("token").unwrap();
    let bearer = format!("Bearer {}", world.options.webhook_bearer.clone().unwrap());
    let message = |arguments: &[&Value], caller: Option<String>| {
        let function = |arguments: &&Value| json!({"name": tool["name"], "arguments": arguments});
        let item = |function: Value| json!({"id": Uuid::now_v7(), "function": function});
        let list: Vec<Value> = arguments.iter().map(function).map(item).collect();
        let message = json!({"message": {
            "type": "tool-calls", "toolCallList": list, "call": {"id": "withheld"}, "customer": {"number": caller},
            "phoneNumber": {"number": world.home.phone_number},
        }});
        by_vapi.clone().text(message.to_string()).header("authorization", &bearer)
    };
    for caller in [None, Some(String::new()), Some(phone(1))] {
        let answer = world.send("execute", &message(&[&claimed], caller.clone())).await.expect(200);
        let error = answer["results"][0]["error"].as_str().unwrap_or_default();
        assert!(error.contains("the number of the caller"), "{caller:?}: {answer}");
    }
    assert!(world.twilio.requests().is_empty());
    // VAPI adds the token with the numbers that it knows, whatever the model says in another call of the message.
    claimed["metadata"]["callerPhoneNumber"] = json!(phone(3));
    claimed["recipients"] = json!([phone(3)]);
    let answer = world.send("execute", &message(&[&with_token, &claimed], None)).await.expect(200);
    assert!(answer["results"][0]["result"].is_string() && answer["results"][1]["error"].is_string(), "{answer}");
    assert_eq!(sent_to(&world), [phone(2)]);
    let said = json!({"text": "Hello", "recipients": [phone(4)]});
    let as_api_request = ToolCall { customer_number: phone(4), ..world.call(&tool, said) };
    world.call_tool(&as_api_request).await.result();
    assert_eq!(sent_to(&world), [phone(2), phone(4)]);
}

#[tokio::test]
async fn recipients_of_the_authors_own_must_be_allowed() {
    let world = World::start().await;
    let mut config = ai_sms();
    config["recipients"]["fixedValues"] = json!(["{{ caller_phone_number }}", phone(7)]);
    config["allowed_recipients"] = json!("caller_only");
    assert_eq!(world.create(&config).await.wrong_fields(), ["recipients.fixedValues[1]"]);
    config["allowed_recipients"] = json!(["{{caller_phone_number}}", "+1 415 555 0107"]);
    let tool = world.attached(&config).await;
    world.call_tool(&world.call(&tool, json!({"text": "Hello"}))).await.result();
    assert_eq!(sent_to(&world), [phone(1), phone(7)]);

    let wrong = world.update(&tool, &json!({"allowed_recipients": [phone(7)]})).await;
    assert_eq!(wrong.wrong_fields(), ["recipients.fixedValues[0]"]);
    let edited = world.update(&tool, &json!({"allowed_recipients": null})).await.expect(200);
    assert!(edited["config_metadata"].get("allowed_recipients").is_none());
}

const ROOM: Duration = Duration::from_secs(30);

/// The rooms of a person and a number, of `most` each, as the store counts them.
struct Rooms {
    world: World,
    quotas: Quotas,
    most: u32,
}

impl Rooms {
    async fn of(most: u32) -> Self {
        let world = World::start().await;
        let database = Database::connect(&sdk_config(&world.aws.url), TABLE_PREFIX);
        Self { quotas: Quotas::new(&database), world, most }
    }

    async fn take(&self, counted: &[Counted], name: &str) -> Option<Taken> {
        let wanted: Vec<_> = counted.iter().map(|&counted| (counted, Window::Call("ours"), self.most)).collect();
        let organization = self.world.home.organization_id.parse().unwrap();
        match self.quotas.take_each(organization, &wanted, Some(name), Deadline::after(ROOM)).await.unwrap() {
            Room::Taken(taken) => Some(taken),
            Room::None(_) => None,
        }
    }

    fn counts(&self) -> Vec<Value> {
        counts(&self.world).iter().map(|row| row["count"].clone()).collect()
    }
}

#[tokio::test]
async fn room_that_was_given_back_is_taken_again_under_the_same_name() {
    for counted in [&[Counted::PlacedCalls][..], &[Counted::PlacedCalls, Counted::ClaimChecks]] {
        let rooms = Rooms::of(1).await;
        for _ in 0..3 {
            let taken = rooms.take(counted, "one").await.expect("room");
            assert!(rooms.counts().iter().all(|count| count == 1), "{:?}", rooms.counts());
            rooms.quotas.release(taken).await.unwrap();
            assert!(rooms.counts().iter().all(|count| count == 0), "{:?}", rooms.counts());
        }
        // A repetition takes the same room, and another execution none.
        let _first = rooms.take(counted, "one").await.expect("room");
        let _again = rooms.take(counted, "one").await.expect("the same room");
        assert!(rooms.take(counted, "two").await.is_none());
        assert!(rooms.counts().iter().all(|count| count == 1), "{:?}", rooms.counts());
    }
}

#[tokio::test]
async fn a_repetition_after_another_execution_in_one_of_two_rooms_is_not_counted_again() {
    let both = [Counted::PlacedCalls, Counted::ClaimChecks];
    let rooms = Rooms::of(2).await;
    let _first = rooms.take(&both, "one").await.expect("room");
    let _other = rooms.take(&both[..1], "two").await.expect("room");
    let _again = rooms.take(&both, "one").await.expect("the same room");
    let mut counts = rooms.counts();
    counts.sort_by_key(ToString::to_string);
    assert_eq!(counts, [1, 2]);
}

/// The release fails at one of two counters.
#[tokio::test]
async fn room_that_was_given_back_in_part_is_completed() {
    for after in [0, 1] {
        let both = [Counted::PlacedCalls, Counted::ClaimChecks];
        let rooms = Rooms::of(1).await;
        let first = rooms.take(&both, "one").await.expect("room");
        rooms.world.aws.inject(Fault::new("UpdateItem", "idempotency", Trouble::Error("AccessDenied")).after(after));
        rooms.quotas.release(first).await.unwrap_err();
        let _again = rooms.take(&both, "one").await.expect("room");
        assert_eq!(rooms.counts(), [1, 1]);
    }
}

/// The SDK repeats an update whose answer is lost.
#[tokio::test]
async fn a_lost_answer_gives_room_back_once() {
    for names in [["one", "two"], ["two", "one"]] {
        let rooms = Rooms::of(2).await;
        let mut taken = Vec::new();
        for name in names {
            taken.push((name, rooms.take(&[Counted::PlacedCalls], name).await.expect("room")));
        }
        let (_, one) = taken.into_iter().find(|(name, _)| *name == "one").unwrap();
        rooms.world.aws.inject(Fault::new("UpdateItem", "idempotency", Trouble::DropAfter));
        rooms.quotas.release(one).await.unwrap();
        assert_eq!(rooms.counts(), [1], "{names:?}");
    }
}
