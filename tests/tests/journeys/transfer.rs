//! POST /api/tools/{id}/execute for transfers: destinations, messages, the call's owner.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

mod opening_hours;

use serde_json::{Value, json};
use tests::{
    Answer, Event, Tenant, World,
    clients::until,
    logs::Logs,
    phone,
    standins::{
        Fault, twilio,
        vapi::{PhoneCall, ToolCall},
    },
    vapi_openapi::vapi_takes,
};
use uuid::Uuid;

const DESK: &str = "+14155550199";

fn transfer(changes: &Value) -> Value {
    let mut config = json!({"type": "transfer_call", "label": "Connect", "target": {"type": "number", "number": DESK}});
    config.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    config
}

/// A tool that may hand a call to three.
fn directory() -> Value {
    json!({
        "type": "transfer_call",
        "label": "Connect to a person",
        "destinations": [
            {"type": "number", "number": DESK, "label": "Front desk"},
            {"type": "number", "number": "+14155550188", "label": "Billing", "description": "questions about invoices"},
            {"type": "sip", "sipUri": "sip:night@pbx.example.com", "label": "Night shift"},
        ],
    })
}

fn id(call: &ToolCall) -> &str {
    call.call_id.as_ref().unwrap()
}

/// The messages at the call's control URL.
fn heard(world: &World, call: &ToolCall) -> Vec<Value> {
    world.vapi.heard(id(call))
}

/// How often any control URL was asked.
fn asked(world: &World) -> usize {
    world.vapi.requests().iter().filter(|request| request.path.ends_with("/control")).count()
}

/// How often VAPI was asked about a call.
fn looked_up(world: &World) -> usize {
    world.vapi.requests().iter().filter(|request| request.path.starts_with("/call/")).count()
}

/// The call came in through us, with the control URL that VAPI gave.
fn came_in(world: &World, tenant: &Tenant, call: &ToolCall) {
    world.vapi_event(call);
    world.incoming_call(tenant, id(call), &phone(1));
    let url = world.vapi.call(id(call)).unwrap()["monitor"]["controlUrl"].clone();
    world.aws.change("calls", id(call), json!({"control_url": url, "status": "in-progress"}));
}

/// The same event of another call.
fn with_call(event: Event, call_id: Option<&str>) -> Event {
    let mut body: Value = serde_json::from_str(event.body.as_ref().unwrap()).unwrap();
    body["metadata"]["callId"] = json!(call_id);
    event.text(body.to_string())
}

/// Nothing was transferred, and the model can say something about it; gives the sentence.
#[track_caller]
fn refused(answer: &Answer) -> String {
    let sentence = answer.sentence().to_owned();
    assert!(sentence.ends_with('.') && !sentence.contains('\n'), "{sentence}");
    for hidden in ["http", "control", "Control", DESK] {
        assert!(!sentence.contains(hidden), "{hidden} in {sentence}");
    }
    sentence
}

#[tokio::test]
async fn every_wrong_destination_is_named_at_once() {
    let world = World::start().await;
    let desk = json!({"type": "number", "number": DESK, "label": "Desk"});
    let many: Vec<Value> =
        (0..21).map(|number| json!({"type": "sip", "sipUri": "sip:x", "label": number.to_string()})).collect();
    let day = json!({"from": "09:00", "until": "17:00"});
    let bad = json!([
        {"type": "number", "number": "911", "label": "Emergency"},
        {"type": "sip", "sipUri": "tel:x", "label": "Desk"},
        {"type": "sip", "sipUri": "sip:y"},
        {"type": "fax", "label": "Fax"},
        {"type": "assistant", "assistantId": "x", "label": "Bot", "colour": "red"},
        "sip:z",
        {"type": "sip", "sipUri": "sip:y", "label": "Night", "description": "x".repeat(201)},
        {"type": "sip", "sipUri": "sip:y", "label": "A", "hours": day, "time_zone": "Mars/Base"},
        {"type": "sip", "sipUri": "sip:y", "label": "B", "hours": day},
        {"type": "sip", "sipUri": "sip:y", "label": "C", "time_zone": "Europe/Lisbon"},
        {"type": "sip", "sipUri": "sip:y", "label": "D", "hours": {"from": "9"}, "time_zone": 1},
    ]);
    let named = [
        "destinations[0].number",
        "destinations[10].hours.from",
        "destinations[10].hours.until",
        "destinations[10].time_zone",
        "destinations[1].sipUri",
        "destinations[2].label",
        "destinations[3].type",
        "destinations[4].assistantId",
        "destinations[4].colour",
        "destinations[5]",
        "destinations[6].description",
        "destinations[7].time_zone",
        "destinations[8].time_zone",
        "destinations[9].time_zone",
    ];
    for (changes, fields) in [
        (json!({"target": null}), vec!["target"]),
        (json!({"target": "me"}), vec!["target"]),
        (json!({"destinations": [desk]}), vec!["destinations"]),
        (json!({"target": null, "destinations": []}), vec!["destinations"]),
        (json!({"target": null, "destinations": many}), vec!["destinations"]),
        (json!({"target": null, "destinations": {"desk": desk}}), vec!["destinations"]),
        (json!({"target": null, "destinations": bad}), named.to_vec()),
        (
            json!({"target": null, "destinations": [desk, {"type": "sip", "sipUri": "sip:y", "label": " desk"}]}),
            vec!["destinations[1].label"],
        ),
        (
            json!({"target": null, "destinations": [desk], "messageStrategy": "summary", "execute_on_call_start": true}),
            vec!["destinations", "messageStrategy"],
        ),
    ] {
        assert_eq!(world.create(&transfer(&changes)).await.wrong_fields(), fields, "{changes}");
    }
    assert!(world.vapi.requests().is_empty());
}

#[tokio::test]
async fn each_kind_of_target_gets_its_own_message() {
    let world = World::start().await;
    for (target, message) in [
        (json!({"type": "number", "number": "+1 (415) 555-0199"}), "transfer"),
        (json!({"type": "sip", "sipUri": "sip:desk@pbx.example.com"}), "transfer"),
        (json!({"type": "assistant", "assistantId": world.home.assistant_id}), "handoff"),
    ] {
        let tool = world.attached(&transfer(&json!({"target": target}))).await;
        let call = world.call(&tool, json!({}));
        came_in(&world, &world.home, &call);
        let result = world.call_tool(&call).await.result().clone();
        assert!(result.as_str().unwrap().contains("being transferred"), "{result}");
        let mut destination = target.clone();
        if target["type"] == "number" {
            destination["number"] = json!(DESK);
        }
        let sent = heard(&world, &call);
        assert_eq!(sent, [json!({"type": message, "destination": destination})]);
        if message == "transfer" {
            vapi_takes("ClientInboundMessageTransfer", &sent[0]);
            let at_vapi = world.vapi.call(id(&call)).unwrap();
            assert_eq!((&at_vapi["status"], &at_vapi["destination"]), (&json!("forwarding"), &destination));
        } else {
            vapi_takes("HandoffDestinationAssistant", &sent[0]["destination"]);
        }
    }
    assert_eq!(looked_up(&world), 0, "the row says where the call is");
}

#[tokio::test]
async fn a_transfer_message_reaches_the_destination() {
    let world = World::start().await;
    let message = json!({"message": "A caller from {{caller_phone_number}}.", "messageStrategy": "message"});
    let told = format!("A caller from {}.", phone(1));
    for target in
        [json!({"type": "number", "number": DESK}), json!({"type": "sip", "sipUri": "sips:desk@pbx.example.com"})]
    {
        let tool = world.attached(&transfer(&json!({"target": target}))).await;
        world.update(&tool, &message).await.expect(200);
        let call = world.call(&tool, json!({}));
        world.call_tool(&call).await.result();
        let sent = heard(&world, &call);
        let plan = json!({"mode": "warm-transfer-say-message", "message": told});
        assert_eq!((sent.len(), &sent[0]["destination"]["transferPlan"]), (1, &plan));
        assert!(sent[0].get("content").is_none(), "that would be said to the caller");
        vapi_takes("ClientInboundMessageTransfer", &sent[0]);
    }
    let mut config = transfer(&message);
    config["target"] = json!({"type": "assistant", "assistantId": world.home.assistant_id});
    let tool = world.attached(&config).await;
    let call = world.call(&tool, json!({}));
    world.call_tool(&call).await.result();
    let sent = heard(&world, &call);
    let added =
        json!({"type": "add-message", "message": {"role": "system", "content": told}, "triggerResponseEnabled": false});
    assert_eq!((sent.len(), &sent[0], &sent[1]["type"]), (2, &added, &json!("handoff")));
    vapi_takes("ClientInboundMessageAddMessage", &sent[0]);
}

#[tokio::test]
async fn a_message_whose_variable_is_unknown_is_no_transfer() {
    let world = World::start().await;
    let tool = world.attached(&transfer(&json!({"message": "From {{caller_phone_number}}."}))).await;
    let call = ToolCall { customer_number: String::new(), ..world.call(&tool, json!({})) };
    assert!(refused(&world.call_tool(&call).await).contains("the caller's number is not known"));
    assert_eq!(asked(&world), 0);
}

#[tokio::test]
async fn a_summary_is_the_models_and_follows_the_message() {
    let world = World::start().await;
    let config = json!({"messageStrategy": "summary", "message": "From {{called_phone_number}}:"});
    let tool = world.attached(&transfer(&config)).await;
    assert_eq!(tool["function_schema"]["parameters"]["required"], json!(["summary"]));
    let call = world.call(&tool, json!({"summary": " Ana wants to move {{caller_phone_number}} her appointment. "}));
    world.call_tool(&call).await.result();
    let said = heard(&world, &call)[0]["destination"]["transferPlan"].clone();
    let expected =
        format!("From {}: Ana wants to move {{{{caller_phone_number}}}} her appointment.", world.home.phone_number);
    assert_eq!(said, json!({"mode": "warm-transfer-say-message", "message": expected}), "only the author's variables");

    for (arguments, said) in
        [(json!({}), "\"summary\" is missing"), (json!({"summary": "x".repeat(1_001)}), "shorten it")]
    {
        let call = world.call(&tool, arguments);
        assert!(refused(&world.call_tool(&call).await).contains(said));
        assert_eq!(heard(&world, &call), [json!(null); 0]);
    }
}

#[tokio::test]
async fn the_model_picks_one_of_the_tools_own_destinations() {
    let world = World::start().await;
    let tool = world.attached(&directory()).await;
    let argument = &tool["function_schema"]["parameters"]["properties"]["destination"];
    assert_eq!(argument["enum"], json!(["Front desk", "Billing", "Night shift"]));
    assert!(argument["description"].as_str().unwrap().contains("Billing (questions about invoices)"));
    assert!(!tool["function_schema"].to_string().contains("4155550"), "numbers are none of the model's business");
    assert_eq!(tool["static_config"]["destinations"].as_array().unwrap().len(), 3);
    for (label, destination) in [
        ("Billing", json!({"type": "number", "number": "+14155550188"})),
        ("Night shift", json!({"type": "sip", "sipUri": "sip:night@pbx.example.com"})),
    ] {
        let call = world.call(&tool, json!({"destination": label}));
        let result = world.call_tool(&call).await.result().clone();
        assert!(result.as_str().unwrap().contains(label), "{result}");
        assert_eq!(heard(&world, &call), [json!({"type": "transfer", "destination": destination})]);
    }
}

#[tokio::test]
async fn a_target_becomes_a_choice_and_a_choice_a_target() {
    let world = World::start().await;
    let tool = world.attached(&transfer(&json!({}))).await;
    let destinations = directory()["destinations"].clone();
    let both = world.update(&tool, &json!({"destinations": destinations})).await;
    assert_eq!(both.wrong_fields(), ["destinations"]);
    let several = world.update(&tool, &json!({"target": null, "destinations": destinations})).await.expect(200);
    assert_eq!(several["function_schema"]["parameters"]["required"], json!(["destination"]));
    let call = world.call(&several, json!({"destination": "Billing"}));
    world.call_tool(&call).await.result();
    assert_eq!(heard(&world, &call)[0]["destination"]["number"], "+14155550188");
    let one = json!({"destinations": null, "target": {"type": "number", "number": DESK}});
    let one = world.update(&tool, &one).await.expect(200);
    let call = world.call(&one, json!({}));
    world.call_tool(&call).await.result();
    assert_eq!(heard(&world, &call)[0]["destination"]["number"], DESK);
}

/// Toll fraud, changed digits: the model can reach only numbers on the list.
#[tokio::test]
async fn a_number_that_is_not_on_the_list_is_never_called() {
    let world = World::start().await;
    let tool = world.attached(&directory()).await;
    for wrong in ["+19005550123", "+14155550189", DESK, "billing", "Billing ", "sip:evil@example.com", "*"] {
        let call = world.call(&tool, json!({"destination": wrong}));
        let answer = world.call_tool(&call).await;
        for choice in ["Front desk", "Billing", "Night shift"] {
            assert!(answer.sentence().contains(choice), "{wrong}: {}", answer.body);
        }
    }
    for arguments in [json!({}), json!({"destination": ["Billing"]}), json!({"destination": {"number": DESK}})] {
        assert!(world.call_tool(&world.call(&tool, arguments)).await.sentence().contains("destination"));
    }
    assert_eq!(asked(&world), 0, "nothing was sent");

    // A number beside the choice is dropped, and said so.
    let arguments = json!({"destination": "Billing", "number": "+19005550123", "target": {"number": "+19005550123"}});
    let call = world.call(&tool, arguments);
    let answer = world.call_tool(&call).await;
    answer.result();
    assert!(answer.body["logs"].to_string().contains("number"), "{}", answer.body);
    assert_eq!(heard(&world, &call)[0]["destination"], json!({"type": "number", "number": "+14155550188"}));
    // And a tool with a target has no choice at all.
    let tool = world.attached(&transfer(&json!({}))).await;
    let call = world.call(&tool, json!({"destination": "+19005550123"}));
    world.call_tool(&call).await.result();
    assert_eq!(heard(&world, &call)[0]["destination"]["number"], DESK);
}

#[tokio::test]
async fn a_call_that_did_not_come_through_us_is_asked_for_at_vapi() {
    let world = World::start().await;
    let tool = world.attached(&transfer(&json!({}))).await;
    let call = world.call(&tool, json!({}));
    world.call_tool(&call).await.result();
    assert_eq!((heard(&world, &call).len(), looked_up(&world)), (1, 1));

    // Ours by its row, which has no control URL: it was written by an older version.
    let call = world.call(&tool, json!({}));
    world.incoming_call(&world.home, id(&call), &phone(1));
    world.call_tool(&call).await.result();
    assert_eq!((heard(&world, &call).len(), looked_up(&world)), (1, 2));
}

#[tokio::test]
async fn another_organizations_call_is_not_transferred() {
    let logs = Logs::capture();
    let world = World::start().await;
    let tool = world.attached(&transfer(&json!({}))).await;
    let event = world.vapi_event(&world.call(&tool, json!({})));

    // Known to VAPI, where their assistant answers it; with an assistant of its own, it is nobody's.
    for assistant in [Some(world.other.assistant_id.clone()), None] {
        let begun = PhoneCall {
            assistant_id: assistant,
            customer_number: phone(2),
            phone_number: world.other.phone_number.clone(),
            ..PhoneCall::default()
        };
        let theirs = world.vapi.begin_call(&begun).unwrap()["id"].as_str().unwrap().to_owned();
        let answer = world.send("execute", &with_call(event.clone(), Some(&theirs))).await;
        let said = refused(&answer);
        let unknown = Uuid::now_v7().to_string();
        let answer = world.send("execute", &with_call(event.clone(), Some(&unknown))).await;
        assert_eq!(said, refused(&answer), "theirs is as good as unknown");
        assert!(world.vapi.heard(&theirs).is_empty());
    }
    // A guard that leads to an agent of theirs.
    let guard = format!("assistant#{}", world.home.assistant_id);
    world.aws.change("agents", &guard, json!({"agent_id": world.other.agent_id}));
    refused(&world.send("execute", &event).await);
    world.aws.change("agents", &guard, json!({"agent_id": world.home.agent_id}));

    // Known to us: it came in for them.
    let call = world.call(&tool, json!({}));
    came_in(&world, &world.other, &call);
    refused(&world.call_tool(&call).await);
    assert_eq!((heard(&world, &call).len(), asked(&world)), (0, 0));
    let warned = logs.at("WARN");
    assert!(warned.iter().any(|line| line.to_string().contains("no agent of the organization")), "{warned:?}");
}

#[tokio::test]
async fn a_call_that_cannot_be_transferred_is_said_so_and_logged() {
    let world = World::start().await;
    let logs = Logs::capture();
    let tool = world.attached(&transfer(&json!({}))).await;
    let (ended, forwarded, plain) =
        (world.call(&tool, json!({})), world.call(&tool, json!({})), world.call(&tool, json!({})));
    let events = [&ended, &forwarded, &plain].map(|call| world.vapi_event(call));
    world.vapi.end_call(id(&ended));
    let mut said = vec![refused(&world.send("execute", &events[0]).await)];
    assert!(said[0].contains("is over"));
    world.call_tool(&forwarded).await.result();
    // Another tool of the same agent, in the same call.
    let second = world.attached(&transfer(&json!({"label": "Again"}))).await;
    let again = ToolCall { call_id: forwarded.call_id.clone(), ..world.call(&second, json!({})) };
    said.push(refused(&world.call_tool(&again).await));
    assert!(said[1].contains("already"));
    assert_eq!(heard(&world, &forwarded).len(), 1);

    for unknown in [Some(Uuid::now_v7().to_string()), Some("no-uuid".to_owned()), None] {
        let event = with_call(events[2].clone(), unknown.as_deref());
        said.push(refused(&world.send("execute", &event).await));
        assert!(said.last().unwrap().contains("take a message"));
    }
    // The row knows that it is over, and VAPI is not asked.
    let before = looked_up(&world);
    let call = world.call(&tool, json!({}));
    came_in(&world, &world.home, &call);
    world.aws.change("calls", id(&call), json!({"status": "ended"}));
    said.push(refused(&world.call_tool(&call).await));
    assert_eq!(looked_up(&world), before);
    // VAPI gives no control URL.
    let path = format!("/assistant/{}", world.home.assistant_id);
    world.at_vapi("PATCH", &path, &json!({"monitorPlan": {"controlEnabled": false}})).await;
    said.push(refused(&world.call_tool(&world.call(&tool, json!({}))).await));
    assert_eq!(asked(&world), 1);
    let warned = logs.at("WARN");
    assert_eq!(warned.len(), said.len(), "one line each: {warned:#?}");
    assert!(warned.iter().all(|line| line["tool.id"].is_string()), "{warned:#?}");
    assert!(warned.last().unwrap().to_string().contains("monitorPlan.controlEnabled"), "what to do about it");
}

/// The beginning of toll fraud and of leaked conversations: a caller who may name the address hears every message to it.
#[tokio::test]
async fn a_control_url_in_the_request_is_ignored() {
    let world = World::start().await;
    let stranger = twilio::start("127.0.0.1:0".parse().unwrap(), twilio::Options::default()).unwrap();
    let url = format!("{}/x/control", stranger.url);
    let tool = world.attached(&transfer(&json!({}))).await;

    let call = world.call(&tool, json!({}));
    let event = world.vapi_event(&call);
    let mut body: Value = serde_json::from_str(event.body.as_ref().unwrap()).unwrap();
    for place in ["controlUrl", "control_url"] {
        body["metadata"][place] = json!(url);
        body[place] = json!(url);
    }
    body["call"] = json!({"monitor": {"controlUrl": url}});
    world.send("execute", &event.text(body.to_string())).await.result();
    assert_eq!(heard(&world, &call).len(), 1);

    world.function_tool(&tool).await;
    let second = world.attached(&transfer(&json!({"label": "By message"}))).await;
    world.function_tool(&second).await;
    let call = world.call(&second, json!({}));
    let outgoing = world.vapi_event(&call);
    let mut message = json!({"message": {"type": "tool-calls", "toolCallList": [
        {"id": "call_1", "type": "function", "function": {"name": second["name"], "arguments": {}}},
    ], "call": {"id": id(&call), "monitor": {"controlUrl": url}}, "phoneNumber": {"number": world.home.phone_number}}});
    let metadata: Value = serde_json::from_str(outgoing.body.as_ref().unwrap()).unwrap();
    message["message"]["toolCallList"][0]["function"]["arguments"]["metadata"] = metadata["metadata"].clone();
    let answer = world.send("execute", &outgoing.text(message.to_string())).await.expect(200);
    assert!(answer["results"][0]["result"].is_string(), "{answer}");
    assert_eq!(heard(&world, &call).len(), 1);

    // Not even the row may send us anywhere.
    let call = world.call(&tool, json!({}));
    came_in(&world, &world.home, &call);
    world.aws.change("calls", id(&call), json!({"control_url": url}));
    refused(&world.call_tool(&call).await);
    assert!(stranger.requests().is_empty());
}

#[tokio::test]
async fn an_assistant_of_another_organization_does_not_take_over() {
    let world = World::start().await;
    for assistant in [world.other.assistant_id.clone(), Uuid::new_v4().to_string()] {
        let target = json!({"type": "assistant", "assistantId": world.home.assistant_id});
        let tool = world.attached(&transfer(&json!({"target": target, "message": "Secrets of ours"}))).await;
        // As if it had been saved before anybody looked.
        let row = world.aws.row("tools", tool["id"].as_str().unwrap()).unwrap().to_string();
        world.aws.put("tools", &serde_json::from_str(&row.replace(&world.home.assistant_id, &assistant)).unwrap());
        let call = world.call(&tool, json!({}));
        came_in(&world, &world.home, &call);
        assert!(refused(&world.call_tool(&call).await).contains("not set up"));
    }
    assert_eq!(asked(&world), 0);
}

#[tokio::test]
async fn the_same_transfer_twice_is_one_transfer() {
    let world = World::start().await;
    let tool = world.attached(&directory()).await;
    let call = world.call(&tool, json!({"destination": "Billing"}));
    came_in(&world, &world.home, &call);
    let first = world.call_tool(&call).await.result().clone();
    assert_eq!(world.call_tool(&call).await.result(), &first);
    let (a, b) = futures_util::future::join(world.call_tool(&call), world.call_tool(&call)).await;
    assert_eq!((a.result(), b.result()), (&first, &first));
    assert_eq!((heard(&world, &call).len(), asked(&world)), (1, 1));
    let statuses: Vec<Value> = world.executions().iter().map(|row| row["status"].clone()).collect();
    assert_eq!(statuses, ["succeeded", "replayed", "replayed", "replayed"]);
}

#[tokio::test]
async fn a_summary_in_other_words_is_no_other_transfer() {
    let world = World::start().await;
    let tool = world.attached(&transfer(&json!({"messageStrategy": "summary"}))).await;
    let call = world.call(&tool, json!({"summary": "Ana wants a refund."}));
    came_in(&world, &world.home, &call);
    world.call_tool(&call).await.result();
    let again = world.call(&tool, json!({"summary": "A customer, Ana, asks for her money back."}));
    world.call_tool(&ToolCall { call_id: call.call_id.clone(), ..again }).await.result();
    assert_eq!(asked(&world), 1);
}

#[tokio::test]
async fn a_transfer_whose_outcome_is_unknown_is_not_repeated() {
    let statuses = [302, 409, 500].map(|status| (Fault::status(status), 0));
    for (fault, done) in [(Fault::drop_after(), 1), (Fault::drop_before(), 0)].into_iter().chain(statuses) {
        let world = World::start().await;
        let tool = world.attached(&transfer(&json!({}))).await;
        let call = world.call(&tool, json!({}));
        came_in(&world, &world.home, &call);
        world.vapi.inject(fault.on("POST", "/control"));
        for _ in 0..2 {
            assert!(refused(&world.call_tool(&call).await).contains("not known whether"));
        }
        assert_eq!((heard(&world, &call).len(), asked(&world)), (done, 1));
        let statuses: Vec<Value> = world.executions().iter().map(|row| row["status"].clone()).collect();
        assert_eq!(statuses, ["unknown", "replayed"]);
    }
}

#[tokio::test]
async fn a_transfer_that_certainly_did_not_happen_may_be_tried_again() {
    let world = World::start().await;
    let tool = world.attached(&transfer(&json!({}))).await;
    for fault in [
        Fault::status(404).on("POST", "/control"),
        Fault::status(400).on("POST", "/control"),
        Fault::status(500).on("GET", "/call/").times(9),
        Fault::status(401).on("GET", "/call/"),
    ] {
        let call = world.call(&tool, json!({}));
        world.vapi.inject(fault.clone());
        let sentence =
            refused(&world.send("execute", &world.vapi_event(&call).within(std::time::Duration::from_secs(3))).await);
        assert!(sentence.contains("take a message"), "{fault:?}: {sentence}");
        world.vapi.clear_faults();
        assert_eq!(heard(&world, &call), [json!(null); 0]);
        world.call_tool(&call).await.result();
        assert_eq!(heard(&world, &call).len(), 1, "{fault:?}");
    }
    // Of a handover the first half alone is nothing.
    let target = json!({"type": "assistant", "assistantId": world.home.assistant_id});
    let tool = world.attached(&transfer(&json!({"label": "Over", "target": target, "message": "Ana"}))).await;
    let call = world.call(&tool, json!({}));
    world.vapi.inject(Fault::drop_before().on("POST", "/control"));
    refused(&world.call_tool(&call).await);
    assert_eq!(heard(&world, &call), [json!(null); 0]);
    world.call_tool(&call).await.result();
    assert_eq!(heard(&world, &call).len(), 2);
}

#[tokio::test]
async fn a_call_that_ends_between_the_two_messages_of_a_handover_is_not_handed_over() {
    let world = World::start().await;
    let target = json!({"type": "assistant", "assistantId": world.home.assistant_id});
    let tool = world.attached(&transfer(&json!({"target": target, "message": "Ana"}))).await;
    let call = world.call(&tool, json!({}));
    came_in(&world, &world.home, &call);
    // The message is taken at once, and answered after the call's end.
    world.vapi.inject(Fault::held().on("POST", "/control"));
    let hangs_up = async {
        until(|| !heard(&world, &call).is_empty()).await;
        world.vapi.end_call(id(&call));
        world.vapi.release();
    };
    let (answer, ()) = tokio::join!(world.call_tool(&call), hangs_up);
    assert!(refused(&answer).contains("nothing was transferred"));
    assert_eq!((heard(&world, &call).len(), asked(&world)), (1, 2));
    assert_eq!(world.executions()[0]["status"], "failed");
}

#[tokio::test]
async fn a_control_url_is_in_no_log_no_answer_and_no_history() {
    let logs = Logs::capture();
    let world = World::start().await;
    let tool = world.attached(&transfer(&json!({"message": "About {{caller_phone_number}}"}))).await;
    let mut answers = String::new();
    for fault in [Fault::delay(0), Fault::status(404), Fault::status(500), Fault::drop_after()] {
        for ours in [true, false] {
            let call = world.call(&tool, json!({}));
            if ours {
                came_in(&world, &world.home, &call);
            }
            world.vapi.inject(fault.clone().on("POST", "/control"));
            answers += &world.call_tool(&call).await.body.to_string();
        }
    }
    let log: String = logs.ours().iter().map(Value::to_string).collect();
    assert!(log.contains("call control"), "the cause is logged: {log}");
    let history = json!(world.executions()).to_string();
    for hidden in [world.vapi.address().to_string().as_str(), "/control", "4155550", "vapi-private-key"] {
        for (what, text) in [("log", &log), ("answers", &answers), ("history", &history)] {
            assert!(!text.contains(hidden), "{hidden} in the {what}: {text}");
        }
    }
}
