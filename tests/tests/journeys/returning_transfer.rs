//! A transfer with `if_unanswered`: the caller's line is moved at Twilio, and returns to the agent if nobody answers.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

mod answered;
mod background_results;
mod deleted_calls;
mod earlier_effects;
mod handoff;
mod slow_writes;
mod unrequested;

use std::time::Duration;

use serde_json::{Value, json};
use tests::{
    Answer, Event, Options, World, aws, distant_weekday,
    metrics::Metrics,
    phone,
    standins::{
        Effect, Fault, Standin,
        twilio::{self, Heard, IncomingCall, Line, Rings, SignedForm, Twilio},
        vapi::ToolCall,
    },
    vapi_openapi::vapi_takes,
};

const DESK: &str = "+14155550199";
const NIGHT: &str = "+14155550188";
const SORRY: &str = "Nobody is at the desk.";

/// A call that came in through us, and a tool that transfers it to the desk.
struct Transfer {
    world: World,
    tool: Value,
    call: IncomingCall,
    /// VAPI's id of the call.
    id: String,
}

fn config(rule: &Value) -> Value {
    json!({
        "type": "transfer_call", "label": "Front desk", "target": {"type": "number", "number": DESK},
        "messageStrategy": "summary", "if_unanswered": rule,
    })
}

impl Transfer {
    async fn of(rule: &Value) -> Self {
        Self::in_world(World::start().await, rule).await
    }

    async fn in_world(world: World, rule: &Value) -> Self {
        let caller = phone(1);
        Self::of_caller(world, rule, &caller).await
    }

    async fn of_caller(world: World, rule: &Value, caller: &str) -> Self {
        let tool = world.attached(&config(rule)).await;
        let call = world.caller(caller);
        world.twilio.begin_line(&call);
        let id = stream_of(&world.send("call-start", &world.incoming(&call)).await);
        Self { world, tool, call, id }
    }

    async fn asked(&self) -> Answer {
        self.asked_with("Ana asks about invoice 42.").await
    }

    async fn asked_with(&self, summary: &str) -> Answer {
        let call = self.world.call(&self.tool, json!({"summary": summary}));
        self.world.call_tool(&ToolCall { call_id: Some(self.id.clone()), ..call }).await
    }

    async fn texts(&self, call: &str, tool: &Value, text: &str) -> Answer {
        let asked = self.world.call(tool, json!({"text": text}));
        self.world.call_tool(&ToolCall { call_id: Some(call.to_owned()), ..asked }).await
    }

    fn line(&self) -> Line {
        self.world.twilio.line(&self.call.call_sid).unwrap()
    }

    /// Twilio carries out the TwiML of the address to which the line was moved. At VAPI the call ends with its media.
    async fn follow(&self, rings: &[Rings]) -> Vec<Heard> {
        self.world.vapi.end_call(&self.id);
        let line = self.line();
        assert_eq!(line.moved_to.len(), 1, "{:?}", line.moved_to);
        line.follow(&line.moved_to[0], rings, async |form| twiml(&self.post(&form).await)).await.unwrap()
    }

    async fn post(&self, form: &SignedForm) -> Answer {
        self.world.send("call-start", &event(&self.world, form)).await
    }

    /// VAPI reports the end of the first call.
    async fn reported(&self) {
        self.world.vapi.end_call(&self.id);
        let report = json!({"message": {"type": "end-of-call-report", "cost": 0.1, "call": {"id": self.id}}});
        let bearer = format!("Bearer {}", self.world.options.webhook_bearer.as_ref().unwrap());
        let event = Event::post("/api/vapi/events", &report).header("authorization", &bearer);
        self.world.send("calls", &event).await.expect(200);
    }

    fn row(&self) -> Value {
        self.world.aws.row("calls", &self.id).unwrap()
    }

    /// The contents of the messages to the call; those of the next seconds are delivered now.
    async fn told(&self, call: &str) -> Vec<String> {
        for queue in ["start-tools", "executions"] {
            while let Some(batch) = self.world.aws.receive(queue, 5) {
                assert_eq!(self.world.run_batch(batch).await, 0);
            }
        }
        let heard = self.world.vapi.heard(call).into_iter();
        heard.map(|message| message["message"]["content"].as_str().unwrap().to_owned()).collect()
    }
}

fn event(world: &World, form: &SignedForm) -> Event {
    let path = form.url.strip_prefix(&world.options.public_url).unwrap();
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let query = query.split('&').filter_map(|pair| pair.split_once('='));
    let event = query.fold(Event::new("POST", path), |event, (name, value)| event.query(name, value));
    form.headers.iter().fold(event.text(form.body.clone()), |event, (name, value)| event.header(name, value))
}

fn twiml(answer: &Answer) -> Result<String, String> {
    let taken = answer.status == 200 && answer.content_type == "text/xml";
    if taken { Ok(answer.body.as_str().unwrap().to_owned()) } else { Err(format!("{} {}", answer.status, answer.body)) }
}

#[track_caller]
fn stream_of(answer: &Answer) -> String {
    id_of(answer.body.as_str().unwrap_or_else(|| panic!("{}", answer.body)))
}

#[track_caller]
fn id_of(stream: &str) -> String {
    let (before, _) = stream.split_once("/transport").unwrap_or_else(|| panic!("{stream}"));
    before.rsplit('/').next().unwrap().to_owned()
}

fn rang(to: &str, seconds: u32) -> Heard {
    Heard::Rang { to: to.to_owned(), seconds }
}

fn said(text: &str) -> Heard {
    Heard::Said(text.to_owned())
}

/// Hours on a day that it is nowhere.
fn closed_now() -> Value {
    json!({"from": "09:00", "until": "17:00", "days": [distant_weekday()]})
}

#[tokio::test]
async fn wrong_fields_are_named() {
    let world = World::start().await;
    let desk = json!({"type": "number", "number": DESK});
    let assistant = json!({"type": "assistant", "assistantId": world.home.assistant_id});
    for (rule, fields) in [
        (json!("yes"), vec!["if_unanswered"]),
        (json!({"after_seconds": 4}), vec!["if_unanswered.after_seconds"]),
        (json!({"return": "no", "colour": 1}), vec!["if_unanswered.colour", "if_unanswered.return"]),
        (json!({"then": [desk, {"type": "number", "number": "911"}]}), vec!["if_unanswered.then[1].number"]),
        (json!({"then": vec![desk.clone(); 5]}), vec!["if_unanswered.then"]),
        (json!({"then": [assistant]}), vec!["if_unanswered.then[0].type"]),
        (
            json!({"then": [{"type": "number", "number": DESK, "hours": closed_now(), "time_zone": "Mars/Base"}]}),
            vec!["if_unanswered.then[0].time_zone"],
        ),
    ] {
        let mut named = world.create(&config(&rule)).await.wrong_fields();
        named.sort();
        assert_eq!(named, fields, "{rule}");
    }
    let mut to_assistant = config(&json!({}));
    to_assistant["target"] = assistant;
    assert_eq!(world.create(&to_assistant).await.wrong_fields(), ["target.assistantId"]);
}

#[tokio::test]
async fn a_caller_whom_nobody_answers_is_back_with_the_agent_who_knows_why() {
    let transfer = Transfer::of(&json!({"after_seconds": 25, "say": SORRY})).await;
    let result = transfer.asked().await.result().clone();
    assert!(result.as_str().unwrap().contains("returns to you"), "{result}");
    let control = transfer.world.vapi.requests().into_iter().filter(|request| request.path.ends_with("/control"));
    assert_eq!(control.count(), 0, "VAPI has no part in it");
    let heard = transfer.follow(&[Rings::NoAnswer]).await;
    let [first, second, Heard::Streamed(stream)] = heard.as_slice() else { panic!("{heard:?}") };
    assert_eq!((first, second), (&rang(DESK, 25), &said(SORRY)));
    let again = id_of(stream);
    assert_ne!(again, transfer.id);

    let told = transfer.told(&again).await;
    assert!(told.len() == 1 && told[0].contains("nobody answered") && told[0].contains("invoice 42"), "{told:?}");
    assert!(!told[0].contains("Already done"), "the transfer itself may be repeated: {told:?}");
    let (before, after) = (transfer.row(), transfer.world.aws.row("calls", &again).unwrap());
    assert_eq!((&before["transfer"]["returned_as"], &after["returned_from"]), (&json!(again), &json!(transfer.id)));
    let stored = before["transfer"].to_string();
    assert!(!stored.contains(DESK) && !stored.contains("invoice"), "{stored}");
    assert_eq!(after["agent_id"], json!(transfer.world.home.agent_id));

    let shown = transfer.world.calls(&format!("/{}", transfer.id)).await.expect(200).clone();
    let events: Vec<&str> =
        shown["timeline"].as_array().unwrap().iter().map(|moment| moment["event"].as_str().unwrap()).collect();
    assert!(events.contains(&"destination_rang") && events.contains(&"transfer_ended"), "{events:?}");
    let receipt = transfer.world.calls(&format!("/{}/receipt", transfer.id)).await.expect(200).clone();
    assert_eq!((&receipt["transfers"][0]["outcome"], &receipt["returned_as"]), (&json!("no_answer"), &json!(again)));
}

#[tokio::test]
async fn destinations_ring_in_turn_and_who_answers_hears_the_summary() {
    let then =
        json!({"then": [{"type": "sip", "sipUri": "sip:a&b@pbx.example.com"}, {"type": "number", "number": NIGHT}]});
    let transfer = Transfer::of(&then).await;
    transfer.asked().await.result();
    let heard = transfer.follow(&[Rings::Busy, Rings::Failed, Rings::Answered]).await;
    let briefed = Heard::Briefed("Ana asks about invoice 42.".into());
    let rung = [rang(DESK, 20), rang("sip:a&b@pbx.example.com", 20), rang(NIGHT, 20)];
    assert_eq!(heard, [rung.as_slice(), &[briefed, Heard::HungUp]].concat());
    let transfer = &transfer.row()["transfer"];
    assert_eq!((&transfer["outcome"], transfer.get("returned_as")), (&json!("answered"), None));
    let outcomes: Vec<&Value> = transfer["rung"].as_array().unwrap().iter().map(|rung| &rung["outcome"]).collect();
    assert_eq!(outcomes, [&json!("busy"), &json!("failed"), &json!("answered")]);
}

#[tokio::test]
async fn a_callee_who_hangs_up_at_the_briefing_has_declined() {
    let transfer = Transfer::of(&json!({"then": [{"type": "number", "number": NIGHT}]})).await;
    transfer.asked().await.result();
    let heard = transfer.follow(&[Rings::Declined]).await;
    let briefed = Heard::Briefed("Ana asks about invoice 42.".into());
    let [before @ .., Heard::Streamed(stream)] = heard.as_slice() else { panic!("{heard:?}") };
    assert_eq!(before, [rang(DESK, 20), briefed.clone(), rang(NIGHT, 20), briefed]);
    let told = transfer.told(&id_of(stream)).await;
    assert!(told.len() == 1 && told[0].contains("hung up before the caller was connected"), "{told:?}");
    assert_eq!(transfer.row()["transfer"]["outcome"], "declined");
}

#[tokio::test]
async fn a_caller_who_hangs_up_during_the_briefing_is_not_called_back() {
    let transfer = Transfer::of(&json!({})).await;
    transfer.asked().await.result();
    let (world, line) = (&transfer.world, transfer.line());
    transfer.post(&SignedForm::new(&line.moved_to[0], &line.after(Rings::Declined), &world.home.twilio_token)).await;
    let mut form = line.after(Rings::Declined);
    form.retain(|(name, _)| name != "CallStatus");
    form.push(("CallStatus".to_owned(), "completed".to_owned()));
    let after = format!("{}?rang=1", line.moved_to[0]);
    twiml(&transfer.post(&SignedForm::new(&after, &form, &world.home.twilio_token)).await).unwrap();
    assert_eq!(transfer.row()["transfer"]["outcome"], "caller_hung_up");
    assert_eq!(world.aws.rows("calls").len(), 1);
}

/// A request without `DialBridged`.
#[tokio::test]
async fn a_completed_dial_counts_as_answered_if_twilio_does_not_say_otherwise() {
    let transfer = Transfer::of(&json!({})).await;
    transfer.asked().await.result();
    let (world, line) = (&transfer.world, transfer.line());
    transfer.post(&SignedForm::new(&line.moved_to[0], &line.after(Rings::Answered), &world.home.twilio_token)).await;
    let mut form = line.after(Rings::Answered);
    form.retain(|(name, _)| name != "DialBridged");
    let after = format!("{}?rang=1", line.moved_to[0]);
    twiml(&transfer.post(&SignedForm::new(&after, &form, &world.home.twilio_token)).await).unwrap();
    assert_eq!(transfer.row()["transfer"]["outcome"], "answered");
}

#[tokio::test]
async fn only_the_open_ones_of_the_list_ring() {
    let open = json!({"hours": {"from": "00:00", "until": "24:00"}, "time_zone": "UTC"});
    let closed = json!({"hours": closed_now(), "time_zone": "UTC"});
    let target = |number: &str, hours: &Value| {
        let mut target = json!({"type": "number", "number": number});
        target.as_object_mut().unwrap().extend(hours.as_object().unwrap().clone());
        target
    };
    let transfer = Transfer::of(&json!({"then": [target(NIGHT, &closed), target("+14155550177", &open)]})).await;
    transfer.world.update(&transfer.tool, &json!({"target": target(DESK, &closed)})).await.expect(200);
    let told = transfer.asked().await.result().clone();
    assert!(told.as_str().unwrap().contains("because the destination is closed now"), "{told}");
    assert_eq!(transfer.follow(&[Rings::Answered]).await[0], rang("+14155550177", 20));
    assert_eq!(transfer.row()["transfer"]["rung"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_line_stays_where_it_is_if_everybody_is_closed() {
    let closed = json!({"type": "number", "number": NIGHT, "hours": closed_now(), "time_zone": "UTC"});
    let transfer = Transfer::of(&json!({"then": [closed]})).await;
    let desk = json!({"type": "number", "number": DESK, "hours": closed_now(), "time_zone": "UTC"});
    transfer.world.update(&transfer.tool, &json!({"target": desk})).await.expect(200);
    let before = (transfer.world.twilio.requests().len(), transfer.world.vapi.requests().len());
    let told = transfer.asked().await.sentence().to_owned();
    assert!(told.contains("so is everybody else") && told.contains("The first of them opens on"), "{told}");
    let after = (transfer.world.twilio.requests().len(), transfer.world.vapi.requests().len());
    assert_eq!((after, transfer.line().moved_to.len(), transfer.row().get("transfer")), (before, 0, None));
    // The agent may still transfer the call later.
    let open = json!({"type": "number", "number": DESK});
    transfer.world.update(&transfer.tool, &json!({"target": open})).await.expect(200);
    transfer.asked().await.result();
    assert_eq!(transfer.line().moved_to.len(), 1);
}

#[tokio::test]
async fn without_return_the_call_ends_after_the_sentence() {
    let transfer = Transfer::of(&json!({"say": SORRY, "return": false})).await;
    let world = &transfer.world;
    world.aws.change("phone_numbers", &world.home.phone_number_id, json!({"language": "pt-PT"}));
    transfer.asked().await.result();
    let sorry = Heard::Said(format!("pt-PT: {SORRY}"));
    assert_eq!(transfer.follow(&[Rings::Busy]).await, [rang(DESK, 20), sorry, Heard::HungUp]);
    assert_eq!(transfer.world.aws.rows("calls").len(), 1);
}

#[tokio::test]
async fn a_caller_who_hangs_up_while_it_rings_is_not_called_back() {
    let transfer = Transfer::of(&json!({"then": [{"type": "number", "number": NIGHT}]})).await;
    transfer.asked().await.result();
    assert_eq!(transfer.follow(&[Rings::CallerHangsUp]).await, [rang(DESK, 20)]);
    assert_eq!(transfer.row()["transfer"]["outcome"], "caller_hung_up");
    assert_eq!(transfer.world.aws.rows("calls").len(), 1);
}

#[tokio::test]
async fn a_created_call_begins_with_the_sentence_in_the_agents_voice() {
    let world = World::start().await;
    let at_vapi = world.vapi.set_number(&world.home.phone_number, &world.home.assistant_id).unwrap();
    world.aws.change("phone_numbers", &world.home.phone_number_id, json!({"vapi_phone_number_id": at_vapi}));
    let transfer = Transfer::in_world(world, &json!({"say": SORRY})).await;
    transfer.asked().await.result();
    let heard = transfer.follow(&[Rings::NoAnswer]).await;
    assert!(matches!(heard.as_slice(), [Heard::Rang { .. }, Heard::Streamed(_)]), "{heard:?}");
    let created = transfer.world.vapi.requests().into_iter().filter(|request| request.path == "/call");
    let created: Vec<Value> = created.map(|request| request.body).collect();
    assert_eq!(created.len(), 2);
    let mut published = created[1].clone();
    // VAPI documents it, and its document leaves it out.
    published.as_object_mut().unwrap().remove("phoneCallProviderBypassEnabled");
    vapi_takes("CreateCallDTO", &published);
    assert_eq!(created[1]["assistantOverrides"]["firstMessage"], SORRY);
    let names = (created[0]["name"].as_str().unwrap(), created[1]["name"].as_str().unwrap());
    assert!(names.1.starts_with(names.0) && names.0 != names.1 && names.1.len() <= 40, "{names:?}");
}

/// VAPI has only the media of such a call.
#[tokio::test]
async fn a_plain_transfer_of_a_created_call_moves_the_line() {
    let world = World::start().await;
    let at_vapi = world.vapi.set_number(&world.home.phone_number, &world.home.assistant_id).unwrap();
    world.aws.change("phone_numbers", &world.home.phone_number_id, json!({"vapi_phone_number_id": at_vapi}));
    let transfer = Transfer::in_world(world, &Value::Null).await;
    let world = &transfer.world;
    assert!(world.vapi.connect_media(&transfer.id));
    let assistant = json!({"type": "assistant", "assistantId": world.home.assistant_id});
    let to_assistant =
        world.attached(&json!({"type": "transfer_call", "label": "Colleague", "target": assistant})).await;
    let call = ToolCall { call_id: Some(transfer.id.clone()), ..world.call(&to_assistant, json!({})) };
    world.call_tool(&call).await.result();
    let heard = world.vapi.heard(&transfer.id);
    assert_eq!(heard.last().unwrap()["type"], "handoff", "assistants are VAPI's");

    let number = |id: &str| world.aws.change("calls", &transfer.id, json!({"phone_number_id": id}));
    number(&world.other.phone_number_id);
    let refused = transfer.asked().await;
    assert!(refused.sentence().contains("not ours to move"), "{}", refused.body);
    number(&world.home.phone_number_id);
    let result = transfer.asked().await.result().clone();
    assert!(result.as_str().unwrap().contains("the call ends"), "{result}");
    assert_eq!(world.vapi.heard(&transfer.id), heard, "VAPI has no part in it");
    let briefed = Heard::Briefed("Ana asks about invoice 42.".into());
    assert_eq!(transfer.follow(&[Rings::Answered]).await, [rang(DESK, 30), briefed, Heard::HungUp]);
    assert_eq!(transfer.row()["transfer"]["outcome"], "answered");
}

#[tokio::test]
async fn two_transfers_of_one_call_move_it_once() {
    let transfer = Transfer::of(&json!({})).await;
    let other = transfer.world.attached(&config(&json!({"say": SORRY}))).await;
    let call = transfer.world.call(&other, json!({"summary": "Ana asks about invoice 42."}));
    let call = ToolCall { call_id: Some(transfer.id.clone()), ..call };
    let (one, two) = tokio::join!(transfer.asked(), transfer.world.call_tool(&call));
    let answers = [one, two];
    let (moved, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.body["success"] == true);
    assert_eq!((moved.len(), refused.len(), transfer.line().moved_to.len()), (1, 1, 1), "{answers:?}");
    assert!(refused[0].sentence().contains("transferred already"), "{}", refused[0].body);
    // Neither does a transfer through VAPI.
    let by_vapi = json!({"type": "transfer_call", "label": "By VAPI", "target": {"type": "number", "number": NIGHT}});
    let by_vapi = transfer.world.attached(&by_vapi).await;
    let call = transfer.world.call(&by_vapi, json!({}));
    let call = ToolCall { call_id: Some(transfer.id.clone()), ..call };
    assert!(transfer.world.call_tool(&call).await.sentence().contains("transferred already"));
}

#[tokio::test]
async fn a_call_that_twilio_certainly_did_not_move_can_be_transferred_again() {
    let transfer = Transfer::of(&json!({})).await;
    transfer.world.twilio.end_line(&transfer.call.call_sid);
    assert!(transfer.asked().await.sentence().contains("nothing was changed"));
    assert!(transfer.row().get("transfer").is_none());
    transfer.world.twilio.begin_line(&transfer.call);
    transfer.asked().await.result();
    assert_eq!(transfer.line().moved_to.len(), 1);
}

#[tokio::test]
async fn a_lost_answer_of_twilios_moves_the_call_no_second_time() {
    let transfer = Transfer::of(&json!({})).await;
    let path = format!("/Calls/{}.json", transfer.call.call_sid);
    transfer.world.twilio.inject(Fault::status(500).on("POST", &path).with_effect(Effect::First));
    assert!(transfer.asked().await.sentence().contains("not known whether"));
    assert!(transfer.asked().await.body["success"] == false);
    assert_eq!(transfer.line().moved_to.len(), 1);
    // The line was moved all the same, and goes its way.
    assert!(matches!(transfer.follow(&[Rings::NoAnswer]).await.as_slice(), [_, Heard::Streamed(_)]));
}

#[tokio::test]
async fn a_claim_of_the_call_whose_answer_was_lost_is_its_own() {
    let transfer = Transfer::of(&json!({})).await;
    let lost = tests::aws::Fault::new("UpdateItem", "calls", tests::aws::Trouble::DropAfter);
    transfer.world.aws.inject(lost);
    transfer.asked().await.result();
    assert_eq!(transfer.line().moved_to.len(), 1);
}

#[tokio::test]
async fn a_transfer_whose_claim_got_no_answer_leaves_the_call_free_for_another() {
    let transfer = Transfer::of(&json!({})).await;
    let lost = tests::aws::Fault::new("UpdateItem", "calls", tests::aws::Trouble::DropAfter).times(3);
    transfer.world.aws.inject(lost);
    assert!(transfer.asked().await.sentence().contains("not available just now"));
    assert_eq!((transfer.world.aws.faults_left(), transfer.line().moved_to.len()), (0, 0));
    transfer.asked().await.result();
    assert_eq!(transfer.line().moved_to.len(), 1);
}

#[tokio::test]
async fn a_refused_transfer_is_told_where_the_call_cannot_be_released() {
    let transfer = Transfer::of(&json!({})).await;
    transfer.world.twilio.end_line(&transfer.call.call_sid);
    let denied = tests::aws::Trouble::Error("AccessDeniedException");
    transfer.world.aws.inject(tests::aws::Fault::new("UpdateItem", "calls", denied).after(1));
    assert!(transfer.asked().await.sentence().contains("nothing was changed"));
    assert_eq!(transfer.world.aws.faults_left(), 0);
}

#[tokio::test]
async fn a_returned_call_whose_row_is_written_late_is_told_why_all_the_same() {
    let transfer = Transfer::of(&json!({})).await;
    transfer.asked().await.result();
    let heard = transfer.follow(&[Rings::NoAnswer]).await;
    let [_, Heard::Streamed(stream)] = heard.as_slice() else { panic!("{heard:?}") };
    let (again, aws) = (id_of(stream), &transfer.world.aws);
    let row = aws.row("calls", &again).unwrap();
    aws.delete("calls", &again);
    let written = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        aws.put("calls", &row);
    };
    let (told, ()) = tokio::join!(transfer.told(&again), written);
    assert!(told.len() == 1 && told[0].contains("nobody answered"), "{told:?}");
}

#[tokio::test]
async fn a_repeated_request_of_twilios_gets_the_same_answer_and_begins_nothing() {
    let transfer = Transfer::of(&json!({"say": SORRY})).await;
    transfer.asked().await.result();
    transfer.world.vapi.end_call(&transfer.id);
    let line = transfer.line();
    let first = line.follow(&line.moved_to[0], &[Rings::NoAnswer], async |form| {
        let (one, two) = (transfer.post(&form).await, transfer.post(&form).await);
        assert_eq!(one.body, two.body, "{}", form.url);
        twiml(&one)
    });
    let first = first.await.unwrap();
    assert_eq!(first.len(), 3, "{first:?}");
    assert_eq!(
        (transfer.world.aws.rows("calls").len(), transfer.row()["transfer"]["rung"].as_array().unwrap().len()),
        (2, 1)
    );
}

#[tokio::test]
async fn a_caller_without_a_number_reaches_the_fallback_number_after_a_transfer() {
    let world = World::start().await;
    world.aws.change("phone_numbers", &world.home.phone_number_id, json!({"fallback_number": NIGHT}));
    let transfer = Transfer::of_caller(world, &json!({}), "client:browser").await;
    transfer.asked().await.result();
    transfer.world.vapi.inject(Fault::status(503).on("POST", "/twilio/inbound_call").times(20));
    let heard = transfer.follow(&[Rings::NoAnswer]).await;
    assert_eq!(heard, [rang(DESK, 20), rang(NIGHT, 30)]);
}

#[tokio::test]
async fn vapi_down_at_the_return_leaves_the_caller_with_the_fallback() {
    let transfer = Transfer::of(&json!({})).await;
    transfer.asked().await.result();
    transfer.world.vapi.inject(Fault::status(503).on("POST", "/twilio/inbound_call").times(20));
    let heard = transfer.follow(&[Rings::NoAnswer]).await;
    assert!(matches!(heard.last(), Some(Heard::HungUp)) && heard.len() == 3, "{heard:?}");
    assert_eq!(transfer.row()["transfer"]["outcome"], "no_answer");
}

#[tokio::test]
async fn a_return_whose_tools_cannot_be_read_counts_as_incomplete() {
    let transfer = Transfer::of(&json!({})).await;
    transfer.asked().await.result();
    transfer.world.aws.inject(aws::Fault::throttled("Query", "agent_tools").times(9));
    let metrics = Metrics::capture();
    let heard = transfer.follow(&[Rings::NoAnswer]).await;
    assert!(matches!(heard.last(), Some(Heard::Streamed(_))), "{heard:?}");
    let calls = metrics.values().into_iter().filter(|((name, _), _)| name == "Calls");
    let answers: Vec<Option<String>> = calls.map(|((_, mut by), _)| by.remove("Answer")).collect();
    assert_eq!(answers, [Some("incomplete".to_owned())]);
}

#[tokio::test]
async fn only_twilio_for_this_call_is_let_in() {
    let transfer = Transfer::of(&json!({})).await;
    transfer.asked().await.result();
    let (world, line) = (&transfer.world, transfer.line());
    let url = line.moved_to[0].clone();
    let form = line.after(Rings::NoAnswer);
    let stranger = IncomingCall::new(&world.home.twilio_sid, &phone(2), &world.home.phone_number);
    let elsewhere = url.replace(&world.home.phone_number_id, &world.other.phone_number_id);
    for (form, why) in [
        (SignedForm::new(&url, &form, "guessed"), "another token"),
        (SignedForm::new(&url, &stranger.form(), &world.home.twilio_token), "another call of the number"),
        (SignedForm::new(&elsewhere, &form, &world.other.twilio_token), "another organization's number"),
        (SignedForm::new(&format!("{url}/briefing"), &form, "guessed"), "a briefing for anybody"),
        (SignedForm::new(&format!("{elsewhere}/briefing"), &form, &world.other.twilio_token), "another's briefing"),
    ] {
        let refused = transfer.post(&form).await;
        assert_eq!(refused.status, 403, "{why}: {}", refused.body);
        assert!(!refused.body.to_string().contains("invoice"), "{why}");
    }
    assert_eq!(transfer.row()["transfer"]["rung"], json!([]));
}

#[tokio::test]
async fn a_call_that_did_not_come_in_through_us_cannot_return() {
    let world = World::start().await;
    let tool = world.attached(&config(&json!({}))).await;
    let call = world.call(&tool, json!({"summary": "x"}));
    world.vapi_event(&call);
    assert!(world.call_tool(&call).await.sentence().contains("not ours to move"));
}

#[tokio::test]
async fn tools_that_only_read_run_again_at_the_return() {
    let crm: Standin<Twilio> = twilio::start("127.0.0.1:0".parse().unwrap(), twilio::Options::default()).unwrap();
    let world = World::with(Options { open_hosts: vec![crm.address().to_string()], ..Options::default() }).await;
    for (method, label) in [("GET", "customer"), ("POST", "logbook")] {
        let config = json!({
            "type": "api_request", "label": label, "method": method, "url": format!("{}/{label}", crm.url),
            "attach_to_agent": false, "execute_on_call_start": true,
        });
        world.attached(&config).await;
        crm.inject(Fault::status(200).with_body(json!({"name": "Ana"})).on(method, &format!("/{label}")).times(20));
    }
    let transfer = Transfer::in_world(world, &json!({})).await;
    assert_eq!(transfer.world.run_queued().await, 0);
    transfer.asked().await.result();
    let heard = transfer.follow(&[Rings::NoAnswer]).await;
    let Some(Heard::Streamed(stream)) = heard.last() else { panic!("{heard:?}") };
    let told = transfer.told(&id_of(stream)).await;
    let told = told.join("\n");
    assert!(told.contains("nobody answered") && told.contains("customer: ") && !told.contains("logbook"), "{told}");
    let asked = |path: &str| crm.requests().into_iter().filter(|request| request.path == path).count();
    assert_eq!((asked("/customer"), asked("/logbook")), (2, 1));
}
