//! `place_call`: an agent calls a person; the rules before the call, and the do-not-call list.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

use serde_json::{Value, json};
use shared::models::Timestamp;
use tests::{
    Answer, Event, World,
    automation::AMPLE,
    aws, distant_weekday,
    logs::Logs,
    phone,
    standins::{DropAt, Fault, llm::Turn},
    webhooks::Signer,
    within_one_hour,
};

/// A world whose number can place calls.
async fn world() -> World {
    within_one_hour().await;
    let world = World::start().await;
    can_call(&world);
    world
}

pub(crate) fn can_call(world: &World) {
    let at_vapi = world.vapi.set_number(&world.home.phone_number, &world.home.assistant_id).unwrap();
    world.aws.change("phone_numbers", &world.home.phone_number_id, json!({"vapi_phone_number_id": at_vapi}));
}

/// A tool that may call at any time.
pub(crate) fn call_back(world: &World, changes: &Value) -> Value {
    let mut config = json!({
        "type": "place_call", "label": "Call back", "phone_number_id": world.home.phone_number_id,
        "to": {"mode": "ai", "prompt": "The number to call"},
        "reason": {"mode": "ai", "prompt": "Why", "required": false},
        "variables": {"order": {"mode": "ai", "prompt": "The order", "required": false}},
        "hours": {"from": "00:00", "until": "24:00"},
    });
    config.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    config
}

async fn tool(world: &World, changes: &Value) -> Value {
    world.tool(&call_back(world, changes)).await
}

async fn place(world: &World, tool: &Value, arguments: &Value) -> Answer {
    world.try_tool(&json!({"tool_id": tool["id"], "arguments": arguments, "dry_run": false})).await
}

/// The bodies with which calls were placed.
pub(crate) fn placed(world: &World) -> Vec<Value> {
    let posts = world.vapi.requests().into_iter().filter(|request| request.method == "POST" && request.path == "/call");
    posts.map(|request| request.body).collect()
}

fn outbound(world: &World) -> Vec<Value> {
    world.aws.rows("calls").into_iter().filter(|row| row["direction"] == "outbound").collect()
}

#[track_caller]
fn sentence(answer: &Answer) -> String {
    assert_eq!(answer.status, 200, "{}", answer.body);
    let told = &answer.body["answer"];
    assert_eq!(told["success"], false, "{}", answer.body);
    told["error"].as_str().unwrap().to_owned()
}

async fn report(world: &World, message: &Value) {
    let bearer = format!("Bearer {}", world.options.webhook_bearer.as_ref().unwrap());
    let event = Event::post("/api/vapi/events", &json!({"message": message})).header("authorization", &bearer);
    world.send("calls", &event).await.expect(200);
}

#[tokio::test]
async fn an_agent_calls_one_person_with_its_reason_and_variables() {
    let (world, logs) = (world().await, Logs::capture());
    let machine = json!({"answering_machine": {"do": "leave_message", "message": "We call again."}});
    let tool = tool(&world, &machine).await;
    let arguments = json!({"to": "+1 (415) 555-0101", "reason": "{{ customer.number }} <b>late</b>", "order": "A-1"});
    let answer = place(&world, &tool, &arguments).await.expect(200);
    assert_eq!(answer["answer"]["success"], true, "{answer}");
    let id = answer["answer"]["result"]["call_id"].as_str().unwrap();
    let call = world.vapi.call(id).unwrap();
    assert_eq!((&call["type"], &call["customer"]["number"]), (&json!("outboundPhoneCall"), &json!(phone(1))));
    let overrides = &placed(&world)[0]["assistantOverrides"];
    assert_eq!(
        overrides["variableValues"],
        json!({"call_reason": "{ { customer.number } } ‹b›late‹/b›", "order": "A-1"})
    );
    assert_eq!(overrides["voicemailMessage"], "We call again.");

    let shown = world.calls(&format!("/{id}")).await.expect(200);
    assert_eq!(
        (&shown["direction"], &shown["caller_phone_number"], &shown["called_phone_number"]),
        (&json!("outbound"), &json!(world.home.phone_number), &json!(phone(1)))
    );
    assert_eq!((&shown["timeline"][0]["event"], &shown["status"]), (&json!("call_placed"), &json!("queued")));
    let execution = world.aws.rows("executions").into_iter().find(|row| row["tool_id"] == tool["id"]).unwrap();
    assert!(!execution.to_string().contains("4155550101"), "{execution}");
    assert!(!logs.text().contains("5550101"), "{}", logs.text());
}

#[tokio::test]
async fn a_wrong_configuration_names_every_field() {
    let world = world().await;
    let wrong = json!({
        "to": {"mode": "array_extendable", "fixedValues": ["+14155550101"]}, "hours": {"from": "20:00", "until": "9:00"},
        "time_zone": "Mars/Base", "answering_machine": {"do": "sing"}, "per_day": 0, "per_person_and_day": 11,
        "variables": {"customer": "x", "call_reason": "x", "2nd": "x"},
    });
    let refused = world.create(&call_back(&world, &wrong)).await;
    assert_eq!(
        refused.wrong_fields(),
        [
            "answering_machine.do",
            "hours.until",
            "per_day",
            "per_person_and_day",
            "time_zone",
            "to.mode",
            "variables.2nd",
            "variables.call_reason",
            "variables.customer",
        ]
    );
    let theirs = json!({"phone_number_id": world.other.phone_number_id, "agent_id": world.other.agent_id});
    assert_eq!(world.create(&call_back(&world, &theirs)).await.wrong_fields(), ["agent_id", "phone_number_id"]);
    let says = |message: &str| json!({"answering_machine": {"do": "leave_message", "message": message}});
    let unknown = world.create(&call_back(&world, &says("Hello {{caller_name}}"))).await;
    assert_eq!(unknown.wrong_fields(), ["answering_machine.message"]);
    let known = says("{{ order | upcase }}, {{call_reason}}, {{ phoneNumber.number }}");
    assert_eq!(world.create(&call_back(&world, &known)).await.status, 201);
    world.aws.change("phone_numbers", &world.home.phone_number_id, json!({"vapi_phone_number_id": null}));
    assert_eq!(world.create(&call_back(&world, &json!({}))).await.wrong_fields(), ["phone_number_id"]);
}

#[tokio::test]
async fn nobody_is_called_against_a_rule_and_the_answer_names_it() {
    let world = world().await;
    let any = tool(&world, &json!({})).await;
    let own = world.home.phone_number.clone();
    for (to, why) in [
        ("5550101", "international form"),
        ("+266696687", "international form"),
        ("+19115550100", "emergency"),
        ("+19005550100", "premium-rate"),
        ("+8816234567890", "satellite"),
        ("+999123456789", "Set time_zone in the tool"),
        (&own, "the number to call from"),
    ] {
        let told = sentence(&place(&world, &any, &json!({"to": to})).await);
        assert!(told.contains(why), "{to}: {told}");
    }
    let hours = json!({"hours": {"from": "00:00", "until": "24:00", "days": [distant_weekday()]}});
    let closed = tool(&world, &hours).await;
    let told = sentence(&place(&world, &closed, &json!({"to": phone(1)})).await);
    assert!(told.contains("America/Los_Angeles") && told.contains("from 00:00 to 24:00 on"), "{told}");
    let known = tool(&world, &json!({"time_zone": "Europe/Lisbon"})).await;
    assert_eq!(placed(&world).len(), 0);
    place(&world, &known, &json!({"to": "+999123456789"})).await.expect(200);
    assert_eq!(placed(&world).len(), 1);
}

/// Two hours around now on one day of one of the zones, which have no daylight saving, and this zone.
fn two_hours(zones: [(&str, i64); 2]) -> (Value, &str) {
    let hour = |offset: i64| (Timestamp::now().as_seconds() / 3_600 + offset).rem_euclid(24);
    let (zone, from) =
        zones.map(|(zone, offset)| (zone, hour(offset))).into_iter().find(|(_, hour)| *hour < 22).unwrap();
    (json!({"from": format!("{from:02}:00"), "until": format!("{:02}:00", from + 2)}), zone)
}

#[tokio::test]
async fn the_time_zone_decides_for_a_number_that_tells_no_area() {
    let world = world().await;
    let (american, guam) = two_hours([("Pacific/Guam", 10), ("America/Phoenix", -7)]);
    let (australian, brisbane) = two_hours([("Australia/Brisbane", 10), ("Australia/Perth", 8)]);
    let (toll_free, mobile) = ("+18005550100", "+61412345678");
    for (to, hours, zone) in [
        (toll_free, &american, Value::Null),
        (toll_free, &american, json!("Europe/Berlin")),
        (mobile, &australian, Value::Null),
        (mobile, &australian, json!("Asia/Tokyo")),
    ] {
        let mut changes = json!({"label": format!("Call {to} in {zone}"), "hours": hours});
        if !zone.is_null() {
            changes["time_zone"] = zone;
        }
        let closed = tool(&world, &changes).await;
        let told = sentence(&place(&world, &closed, &json!({"to": to})).await);
        assert!(told.contains("too far apart") && told.contains("Set time_zone to one of them"), "{told}");
    }
    // The number's own area counts, not the tool's zone.
    let own = json!({"label": "Call Tokyo", "hours": &american, "time_zone": "Europe/Berlin"});
    let area = tool(&world, &own).await;
    let told = sentence(&place(&world, &area, &json!({"to": "+81312345678"})).await);
    assert!(told.contains("Asia/Tokyo"), "{told}");
    assert_eq!(placed(&world).len(), 0);
    for (to, hours, zone) in [(toll_free, &american, guam), (mobile, &australian, brisbane)] {
        let open = tool(&world, &json!({"label": format!("Call {to}"), "hours": hours, "time_zone": zone})).await;
        let answer = place(&world, &open, &json!({"to": to})).await.expect(200);
        assert_eq!(answer["answer"]["success"], true, "{answer}");
    }
    assert_eq!(placed(&world).len(), 2);
}

#[tokio::test]
async fn quotas_hold_for_the_number_and_for_the_person() {
    let world = world().await;
    let twice = tool(&world, &json!({"per_day": 2})).await;
    assert_eq!(place(&world, &twice, &json!({"to": phone(1)})).await.expect(200)["answer"]["success"], true);
    let again = sentence(&place(&world, &twice, &json!({"to": phone(1)})).await);
    assert!(again.contains("per_person_and_day: 1"), "{again}");
    // Another tool calls the same person no more either.
    let other = tool(&world, &json!({"label": "Call once more"})).await;
    assert!(sentence(&place(&world, &other, &json!({"to": phone(1)})).await).contains("per_person_and_day"));
    // A call that VAPI refuses counts for nobody.
    world.vapi.inject(Fault::status(400).on("POST", "/call"));
    let refused = sentence(&place(&world, &twice, &json!({"to": phone(2)})).await);
    assert!(refused.ends_with("do not place it again now."), "{refused}");
    assert_eq!(world.aws.rows("calls").len(), 1, "nothing is kept about the person");
    assert_eq!(place(&world, &twice, &json!({"to": phone(2)})).await.expect(200)["answer"]["success"], true);
    let full = sentence(&place(&world, &twice, &json!({"to": phone(3)})).await);
    assert!(full.contains("per_day: 2"), "{full}");
    assert_eq!(outbound(&world).len(), 2);
    let rows = world.aws.rows("executions");
    assert!(rows.iter().any(|row| row["status"] == "limited"), "{rows:?}");
}

#[tokio::test]
async fn a_call_that_an_outage_postpones_is_placed_and_counted_once() {
    let world = world().await;
    let tool = world.attached(&call_back(&world, &json!({"async": true}))).await;
    world.call_tool(&world.call(&tool, json!({"to": phone(2)}))).await.result();
    world.aws.inject(aws::Fault::throttled("GetItem", "do_not_call").times(99));
    assert_eq!(world.run_queued().await, 1);
    world.aws.clear_faults();
    assert_eq!(placed(&world).len(), 0);
    assert_eq!(world.run_queued().await, 0);
    let rows = world.aws.rows("executions");
    assert_eq!((placed(&world).len(), &rows[0]["status"]), (1, &json!("succeeded")), "{rows:?}");
    let claims = world.aws.rows("idempotency");
    let counts: Vec<_> = claims.iter().filter_map(|row| row.get("count")).collect();
    assert_eq!(counts, [&json!(1), &json!(1)]);
}

#[tokio::test]
async fn a_listed_number_is_not_called_also_after_its_erasure() {
    let world = world().await;
    let tool = tool(&world, &json!({})).await;
    let path = format!("/api/{}/do-not-call", world.home.slug);
    let ask = async |event: Event| world.send("phone-numbers", &event.user(&world.home.user_id)).await;
    let entry = ask(Event::post(&path, &json!({"phone_number": "+1 415 555 0101"}))).await.expect(201);
    assert_eq!((&entry["ending"], &entry["source"]), (&json!("+…01"), &json!("member")));
    assert_eq!(ask(Event::post(&path, &json!({"phone_number": phone(1)}))).await.expect(200), entry);
    assert!(!json!(world.aws.rows("do_not_call")).to_string().contains("5550101"), "the number is not stored");
    let told = sentence(&place(&world, &tool, &json!({"to": phone(1)})).await);
    assert!(told.contains("do-not-call list"), "{told}");
    let dry = json!({"tool_id": tool["id"], "arguments": {"to": phone(1)}, "dry_run": true});
    let preview = world.try_tool(&dry).await.expect(200);
    assert!(preview.to_string().contains("do-not-call list"), "{preview}");

    let erasure = Event::post(&format!("/api/{}/erasures", world.home.slug), &json!({"phone_number": phone(1)}));
    world.send("erasures", &erasure.user(&world.home.user_id)).await.expect(200);
    sentence(&place(&world, &tool, &json!({"to": phone(1)})).await);
    assert_eq!(placed(&world).len(), 0);

    // A refused call has used no quota.
    let query = |number: &str| Event::get(&path).query("number", number);
    assert_eq!(ask(query(&phone(1))).await.expect(200)["items"], json!([entry]));
    assert_eq!(ask(query(&phone(2))).await.expect(200)["items"], json!([]));
    let theirs = format!("/api/{}/do-not-call", world.other.slug);
    let other = world.send("phone-numbers", &Event::get(&theirs).user(&world.other.user_id)).await.expect(200);
    assert_eq!(other["items"], json!([]));
    let one = format!("{path}/{}", entry["id"].as_str().unwrap());
    ask(Event::new("DELETE", &one)).await.expect(200);
    ask(Event::new("DELETE", &one)).await.expect(404);
    let audit = world.aws.rows("audit_entries");
    let of_list: Vec<_> =
        audit.iter().filter(|row| row["noun"] == "do_not_call").map(|row| row["action"].clone()).collect();
    assert_eq!(of_list, ["created", "deleted"], "{audit:?}");
    assert!(!json!(audit).to_string().contains("5550101"), "{audit:?}");
    assert_eq!(place(&world, &tool, &json!({"to": phone(1)})).await.expect(200)["answer"]["success"], true);
}

#[tokio::test]
async fn an_unclear_call_is_looked_for_and_never_placed_again() {
    let world = world().await;
    let tool = tool(&world, &json!({"per_person_and_day": 10})).await;
    // Made, but the answer was lost: VAPI shows the call.
    world.vapi.inject(Fault { drop: Some(DropAt::After), ..Fault::default() }.on("POST", "/call"));
    let found = place(&world, &tool, &json!({"to": phone(1)})).await.expect(200);
    assert_eq!(found["answer"]["success"], true, "{found}");
    assert_eq!((world.vapi.calls_begun(), outbound(&world).len()), (1, 1));

    // Not there: it stays unknown, and the same request of the same run places no other call.
    world.vapi.inject(Fault::status(500).on("POST", "/call"));
    let definition = world.manual(&json!([{"id": "a", "tool": tool["name"], "parameters": {"to": phone(2)}}]));
    let automation = world.active(&definition).await;
    world.automation("POST", &format!("/{automation}/run"), &json!({})).await.expect(202);
    assert_eq!(world.run_loop(AMPLE).await, 0);
    let rows = world.aws.rows("executions");
    assert!(rows.iter().any(|row| row["status"] == "unknown"), "{rows:?}");
    assert_eq!((placed(&world).len(), world.vapi.calls_begun()), (2, 1));
}

#[tokio::test]
async fn vapi_is_asked_for_an_unknown_call_before_anything_is_repeated() {
    let mut world = world().await;
    let tool = tool(&world, &json!({"per_person_and_day": 10})).await;
    world.attach(tool["id"].as_str().unwrap()).await.expect(201);
    let request = world.call(&tool, json!({"to": phone(2), "reason": "Your order"}));
    // The call is placed, and neither the answer nor the searches come through.
    world.vapi.inject(Fault { drop: Some(DropAt::After), ..Fault::default() }.on("POST", "/call"));
    world.vapi.inject(Fault { times: 4, ..Fault::status(503) }.on("GET", "/call"));
    let answer = world.call_tool(&request).await;
    let told = answer.sentence();
    assert!(told.contains("not known whether the person is being called"), "{told}");
    assert_eq!((placed(&world).len(), outbound(&world).len()), (1, 0));

    // Another process: the repetition asks VAPI, in other words for the same person.
    world.restart();
    let mut again = world.call(&tool, json!({"to": phone(2), "reason": "The order is late"}));
    again.call_id.clone_from(&request.call_id);
    for _twice in 0..2 {
        let answer = world.call_tool(&again).await;
        let told = answer.result().to_string();
        assert!(told.contains("is being called"), "{told}");
    }
    assert_eq!(placed(&world).len(), 1);
    let row = outbound(&world).remove(0);
    assert_eq!((&row["caller_phone_number"], &row["status"]), (&json!(phone(2)), &json!("queued")));
}

/// A call at VAPI that has no row: the answer and the searches were lost.
async fn lost(world: &World) -> Value {
    let tool = tool(world, &json!({"per_person_and_day": 10})).await;
    world.vapi.inject(Fault { drop: Some(DropAt::After), ..Fault::default() }.on("POST", "/call"));
    world.vapi.inject(Fault { times: 4, ..Fault::status(503) }.on("GET", "/call"));
    let told = sentence(&place(world, &tool, &json!({"to": phone(2)})).await);
    assert!(told.contains("not known whether the person is being called"), "{told}");
    assert_eq!(outbound(world).len(), 0);
    world.vapi.clear_faults();
    world.at_vapi("GET", "/call", &Value::Null).await[0].clone()
}

#[tokio::test]
async fn a_call_whose_answer_was_lost_gets_its_row_from_vapis_messages() {
    let world = world().await;
    let call = lost(&world).await;
    for _twice in 0..2 {
        report(&world, &json!({"type": "status-update", "status": "in-progress", "call": call})).await;
    }
    let row = outbound(&world).remove(0);
    assert_eq!((&row["id"], &row["status"]), (&call["id"], &json!("in-progress")));
    assert_eq!((&row["caller_phone_number"], &row["agent_id"]), (&json!(phone(2)), &json!(world.home.agent_id)));
    assert!(world.aws.messages("scheduled").iter().any(|message| message["answered_call_id"] == call["id"]));
    let said = json!({"messages": [{"role": "user", "message": "Please do not call me again."}]});
    report(&world, &json!({"type": "end-of-call-report", "artifact": said, "call": call})).await;
    assert!(world.aws.messages("scheduled").iter().any(|message| message["call_id"] == call["id"]));
    assert_eq!((outbound(&world).len(), world.aws.rows("do_not_call").len()), (1, 1));
    let shown = world.calls(&format!("/{}", call["id"].as_str().unwrap())).await.expect(200);
    assert_eq!((&shown["direction"], &shown["status"]), (&json!("outbound"), &json!("ended")));
    assert_eq!(world.calls("").await.expect(200)["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_placed_call_whose_row_could_not_be_written_gets_it_from_vapis_messages() {
    let world = world().await;
    let tool = tool(&world, &json!({})).await;
    // The first write of the table is the call's name.
    world.aws.inject(aws::Fault::new("PutItem", "calls", aws::Trouble::Error("InternalServerError")).after(1).times(9));
    let answer = place(&world, &tool, &json!({"to": phone(2)})).await.expect(200);
    world.aws.clear_faults();
    assert_eq!((&answer["answer"]["success"], outbound(&world).len()), (&json!(true), 0));
    let call = world.at_vapi("GET", "/call", &Value::Null).await[0].clone();
    report(&world, &json!({"type": "status-update", "status": "ended", "call": call})).await;
    assert_eq!(outbound(&world)[0]["id"], call["id"]);
}

#[tokio::test]
async fn a_later_message_does_not_write_a_deleted_call_again() {
    let world = world().await;
    let call = lost(&world).await;
    report(&world, &json!({"type": "status-update", "status": "ringing", "call": call})).await;
    let again = tool(&world, &json!({"label": "Call once more"})).await;
    place(&world, &again, &json!({"to": phone(1)})).await.expect(200);
    assert_eq!(world.aws.rows("calls").len(), 2, "one row for each call");
    for call in world.at_vapi("GET", "/call", &Value::Null).await.as_array().unwrap() {
        let path = format!("/api/{}/calls/{}", world.home.slug, call["id"].as_str().unwrap());
        world.send("calls", &Event::new("DELETE", &path).user(&world.home.user_id)).await.expect(204);
        report(&world, &json!({"type": "end-of-call-report", "call": call})).await;
    }
    assert_eq!((world.aws.rows("calls"), world.aws.messages("scheduled")), (vec![], vec![]));
}

#[tokio::test]
async fn an_erasure_counts_each_placed_call_once() {
    let world = world().await;
    // Of the call to this person there is only the name.
    lost(&world).await;
    let placed = tool(&world, &json!({"label": "Call once more"})).await;
    place(&world, &placed, &json!({"to": phone(1)})).await.expect(200);
    let call = json!({"id": outbound(&world)[0]["id"]});
    report(&world, &json!({"type": "end-of-call-report", "call": call})).await;
    for (person, calls) in [(1, 1), (2, 0)] {
        let path = format!("/api/{}/erasures", world.home.slug);
        let erasure = Event::post(&path, &json!({"phone_number": phone(person)})).user(&world.home.user_id);
        let erased = world.send("erasures", &erasure).await.expect(200);
        assert_eq!(erased["deleted"]["calls"], calls, "{erased}");
    }
    assert_eq!(world.aws.rows("calls"), [] as [Value; 0]);
}

#[tokio::test]
async fn only_the_bearer_of_its_organization_gives_a_lost_call_its_row() {
    let mut world = world().await;
    let call = lost(&world).await;
    world.own_key(&world.home, &json!({"api_key": tests::OWN_KEYS[0], "webhook_bearer": "bearer-of-their-own"}));
    world.restart();
    let message = |call: &Value| json!({"message": {"type": "status-update", "status": "in-progress", "call": call}});
    let platforms = world.options.webhook_bearer.clone().unwrap();
    let mut strange = call.clone();
    strange["name"] = json!("b5c7f7f0-0000-4000-8000-000000000000");
    for (bearer, call, status, rows) in [
        (platforms.as_str(), &call, 401, 0),
        (platforms.as_str(), &strange, 200, 0),
        ("bearer-of-their-own", &call, 200, 1),
    ] {
        let event =
            Event::post("/api/vapi/events", &message(call)).header("authorization", &format!("Bearer {bearer}"));
        world.send("calls", &event).await.expect(status);
        assert_eq!(outbound(&world).len(), rows, "{bearer}");
    }
}

#[tokio::test]
async fn a_person_who_says_stop_is_not_called_any_more() {
    let world = world().await;
    let tool = tool(&world, &json!({"per_person_and_day": 10})).await;
    let report_of = |id: &str, role: &str, said: &str| {
        json!({"type": "end-of-call-report", "call": {"id": id},
               "artifact": {"messages": [{"role": "bot", "message": "Hello"}, {"role": role, "message": said}]}})
    };
    world.incoming_call(&world.home, "call-1", &phone(1));
    let answer = place(&world, &tool, &json!({"to": phone(2)})).await.expect(200);
    let id = answer["answer"]["result"]["call_id"].as_str().unwrap();
    for (call, role, said, listed) in [
        ("call-1", "bot", "Shall we stop calling you?", 0),
        // A caller may mean the agent's speech.
        ("call-1", "user", "Stop.", 0),
        (id, "user", "Stop, I have another question.", 0),
        (id, "user", "Stop.", 1),
        ("call-1", "user", "No. Please do not call me again.", 2),
        ("call-1", "user", "No. Please do not call me again.", 2),
    ] {
        report(&world, &report_of(call, role, said)).await;
        assert_eq!(world.aws.rows("do_not_call").len(), listed, "{said}");
    }
    assert!(world.aws.rows("do_not_call").iter().all(|row| row["source"] == "call"));
    for person in [1, 2] {
        let told = sentence(&place(&world, &tool, &json!({"to": phone(person)})).await);
        assert!(told.contains("do-not-call list"), "{told}");
    }
}

#[tokio::test]
async fn an_automation_asks_for_approval_and_calls_once() {
    let world = world().await;
    let tool = tool(&world, &json!({})).await;
    let mut definition = world.manual(&json!([{"id": "a", "tool": tool["name"], "parameters": {"to": phone(1)}}]));
    definition["approvals"] = json!([{"effect": "call"}]);
    let automation = world.active(&definition).await;
    world.automation("POST", &format!("/{automation}/run"), &json!({})).await.expect(202);
    assert_eq!(world.run_loop(AMPLE).await, 0);
    assert_eq!(placed(&world).len(), 0);
    let asked = world.asked().await.remove(0);
    let path = format!("/{}/approve", asked["id"].as_str().unwrap());
    world.approvals("POST", &path, &Value::Null).await.expect(200);
    assert_eq!(world.run_loop(AMPLE).await, 0);
    assert_eq!(placed(&world).len(), 1);
    assert_eq!(outbound(&world)[0]["caller_phone_number"], phone(1).as_str());
}

#[tokio::test]
async fn a_person_in_the_chat_consents_to_the_call() {
    let world = world().await;
    tool(&world, &json!({"chat": {"consent": true}})).await;
    let arguments = json!({"to": phone(1), "order": "A-1"});
    world.llm.script([Turn::text(&json!({"tool": "call_back", "arguments": arguments}).to_string())]);
    let question = world.chat("Call Ana back").await.expect(200);
    let pending = &question["metadata"]["pending_action"];
    assert_eq!((&pending["tool"], placed(&world).len()), (&json!("call_back"), 0), "{question}");
    assert_eq!(
        pending["shows"],
        json!([
            {"name": "To", "value": phone(1), "fixed": false},
            {"name": "Agent id", "value": world.home.agent_id, "fixed": true},
            {"name": "Allowed", "value": "yes", "fixed": true},
            {"name": "From", "value": world.home.phone_number, "fixed": true},
            {"name": "Variables order", "value": "A-1", "fixed": false},
        ])
    );
    world.llm.script([Turn::text("She is being called.")]);
    let consent = json!({"metadata": {"consent": {"id": pending["id"], "approved": true}}});
    for _twice in 0..2 {
        world.chat_with(&consent).await.expect(200);
    }
    assert_eq!(placed(&world).len(), 1);
}

#[tokio::test]
async fn an_answered_and_an_ended_call_start_automations_once() {
    let world = world().await;
    world.catalogue_service("calls");
    let tool = tool(&world, &json!({})).await;
    let mut listeners = Vec::new();
    for event in ["call.answered", "call.ended"] {
        let definition = json!({
            "name": event, "trigger_type": "webhook", "trigger_config": {"service": "Calls", "event_type": event},
            "actions": [{"id": "now", "tool": "current_time", "parameters": {}}],
            "fingerprints": {"current_time": "built-in"},
        });
        listeners.push(world.active(&definition).await);
    }
    let answer = place(&world, &tool, &json!({"to": phone(1)})).await.expect(200);
    let id = answer["answer"]["result"]["call_id"].as_str().unwrap();
    let now = Timestamp::now().as_millis();
    let status =
        |status: &str| json!({"type": "status-update", "status": status, "timestamp": now, "call": {"id": id}});
    report(&world, &status("ringing")).await;
    assert_eq!(world.run_scheduled_within(60).await, 0);
    let runs = || listeners.iter().map(|listener| world.runs_of(listener).len()).collect::<Vec<_>>();
    assert_eq!(runs(), [0, 0]);
    for _twice in 0..2 {
        report(&world, &status("in-progress")).await;
        assert_eq!(world.run_scheduled_within(60).await, 0);
    }
    assert_eq!(runs(), [1, 0]);
    let call = json!({"id": id});
    report(&world, &json!({"type": "end-of-call-report", "endedReason": "voicemail", "call": call})).await;
    assert_eq!(world.run_scheduled_within(60).await, 0);
    assert_eq!(runs(), [1, 1]);
    let events = world.events("").await.expect(200);
    let event = world.events(&format!("/{}", events["items"][0]["id"].as_str().unwrap())).await.expect(200);
    assert!(event.to_string().contains("voicemail") && event.to_string().contains("outbound"), "{event}");
    let shown = world.calls(&format!("/{id}")).await.expect(200);
    let names: Vec<&Value> = shown["timeline"].as_array().unwrap().iter().map(|moment| &moment["event"]).collect();
    assert_eq!(names, ["call_placed", "call_connected", "call_ended"]);
    // The copies of both events go with the call.
    world
        .send("calls", &Event::new("DELETE", &format!("/api/{}/calls/{id}", world.home.slug)).user(&world.home.user_id))
        .await
        .expect(204);
    assert_eq!(world.events("").await.expect(200)["items"], json!([]));
}

#[tokio::test]
async fn a_sender_of_stop_is_not_called_any_more() {
    let world = world().await;
    let tool = tool(&world, &json!({})).await;
    let hook = world.hook(&json!({"service": "Twilio", "secret": "of-twilio"})).await;
    let text = |sid: &str, from: &str, body: &str| json!({"MessageSid": sid, "From": from, "To": world.home.phone_number, "Body": body});
    for (signer, message, listed) in [
        (Signer::Twilio("guess"), text("SM1", &phone(1), "STOP"), 0),
        (Signer::Twilio("of-twilio"), text("SM2", &phone(1), "Please do not stop calling"), 0),
        (Signer::Twilio("of-twilio"), text("SM3", &phone(1), " stop. "), 1),
        (Signer::Twilio("of-twilio"), text("SM3", &phone(1), " stop. "), 1),
        (Signer::Twilio("of-twilio"), text("SM4", &phone(1), "START"), 1),
    ] {
        world.deliver_signed(&hook, signer, &message).await;
        assert_eq!(world.aws.rows("do_not_call").len(), listed, "{message}");
    }
    assert_eq!(world.aws.rows("do_not_call")[0]["source"], "sms");
    sentence(&place(&world, &tool, &json!({"to": phone(1)})).await);
    assert_eq!(place(&world, &tool, &json!({"to": phone(2)})).await.expect(200)["answer"]["success"], true);
}
