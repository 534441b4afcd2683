//! `confirm: "read_back"`: an effect counts once the caller has heard it and spoken.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

use std::time::Duration;

use serde_json::{Value, json};
use shared::models::Timestamp;
use tests::{Answer, Event, World, ai_sms, aws, phone, standins::Fault};

use crate::place_call::{call_back, can_call, placed};

/// Of each slip nothing may come. `T` and `U` are calls of the tool with different arguments, `A` and `a` the agent's speech as
/// it starts and stops, `C` and `c` the caller's.
const SLIPS: [&str; 36] = [
    // Nobody said yes.
    "T",
    "TT",
    "TTT",
    "TAT",
    "TAaT",
    "TAaAT",
    "TAaAaT",
    "TAaaT",
    "TcT",
    "TaT",
    // A yes before the sentence, or in the middle of it.
    "CcTT",
    "AaCcTT",
    "TCT",
    "TCcT",
    "TCcAaT",
    "TCAaT",
    "TACT",
    "TACcT",
    "TACcaT",
    "TACcCcT",
    "TaCT",
    "TaCcT",
    "AaTCcT",
    "ATaCcT",
    // A yes to another question.
    "TAaCcAaCcT",
    "TAaCAaCT",
    "TAaCcAaCcAaCcT",
    "TAaTCcT",
    // Other arguments.
    "TAaCcU",
    "TAaCcUU",
    "TUAaCcT",
    "TAaUCcT",
    "UTAaCcU",
    "TAaCcUT",
    "TAaCcUTU",
    "TAaCcUAaT",
];

/// One effect, however often it is asked for.
const DONE: [&str; 10] = [
    "TAaCT",
    "TAaCcT",
    "TTAaCcT",
    "TAaAaCcT",
    "TAaCcCcT",
    "TAaCcAaT",
    "TAaCcTT",
    "TAaCcTAaCcT",
    "TAaCcTTTT",
    "TAaCcUAaCcU",
];

/// A wish confirmed again after another one, and how often something was done.
const CHANGED: [(&str, usize); 6] = [
    ("TAaCcTUAaCcUTAaCcT", 3),
    ("TAaCcTUAaCcUTAaCcTTT", 3),
    ("TAaCcTUAaCcUTAaCcTUAaCcU", 4),
    // The other wish was not confirmed.
    ("TAaCcTUTAaCcT", 1),
    ("TAaCcTUAaCcUTUAaCcU", 2),
    ("TAaCcTUAaCcUTAaCT", 3),
];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Manner {
    /// VAPI's `apiRequest`.
    Plain,
    /// VAPI's `tool-calls`, and each message about speech twice.
    Twice,
    /// The same arguments in another spelling each time.
    Spelled,
}

async fn confirmed(world: &World) -> Value {
    let mut config = ai_sms();
    config["confirm"] = json!("read_back");
    world.attached(&config).await
}

async fn speech(world: &World, call: &str, step: char) {
    let role = if step.eq_ignore_ascii_case(&'a') { "assistant" } else { "user" };
    let status = if step.is_ascii_uppercase() { "started" } else { "stopped" };
    let message = json!({"message": {
        "type": "speech-update", "role": role, "status": status, "timestamp": Timestamp::now().as_millis(), "call": {"id": call},
    }});
    let bearer = format!("Bearer {}", world.options.webhook_bearer.clone().unwrap());
    world.send("calls", &Event::post("/api/vapi/events", &message).header("authorization", &bearer)).await.expect(200);
}

fn tool_calls(world: &World, tool: &Value, call: &str, id: &str, text: &str) -> Event {
    let message = json!({"message": {
        "type": "tool-calls",
        "toolCallList": [{"id": id, "type": "function", "function": {"name": tool["name"], "arguments": {"text": text}}}],
        "call": {"id": call}, "customer": {"number": phone(1)}, "phoneNumber": {"number": world.home.phone_number},
    }});
    let bearer = format!("Bearer {}", world.options.webhook_bearer.clone().unwrap());
    let path = format!("/api/tools/{}/execute", tool["id"].as_str().unwrap());
    Event::post(&path, &message).header("authorization", &bearer)
}

async fn asked(world: &World, tool: &Value, call: &str, text: &str) -> Answer {
    let mut asked = world.call(tool, json!({"text": text}));
    asked.call_id = Some(call.to_owned());
    world.call_tool(&asked).await
}

/// Plays a script in a call of its own; returns the messages that were sent.
async fn played(world: &World, tool: &Value, script: &str, manner: Manner) -> usize {
    let call = format!("{script}-{manner:?}");
    world.incoming_call(&world.home, &call, &phone(1));
    let before = world.twilio.messages().len();
    for (number, step) in script.chars().enumerate() {
        tokio::time::sleep(Duration::from_millis(2)).await;
        let text = match (step, manner) {
            ('T', Manner::Spelled) if number % 2 == 1 => " Tuesday at nine ",
            ('T', _) => "Tuesday at nine",
            ('U', _) => "Tuesday at ten",
            _ => {
                speech(world, &call, step).await;
                if manner == Manner::Twice {
                    speech(world, &call, step).await;
                }
                continue;
            }
        };
        if manner == Manner::Twice {
            let event = tool_calls(world, tool, &call, &format!("{call}-{number}"), text);
            world.send("execute", &event).await.expect(200);
        } else {
            asked(world, tool, &call, text).await.expect(200);
        }
    }
    world.twilio.messages().len() - before
}

#[tokio::test]
async fn a_hundred_slips_have_no_effect() {
    let world = World::start().await;
    let tool = confirmed(&world).await;
    let mut slips = 0;
    for manner in [Manner::Plain, Manner::Twice, Manner::Spelled] {
        for script in SLIPS {
            // A message that comes twice is no second turn.
            assert_eq!(played(&world, &tool, script, manner).await, 0, "{script} {manner:?}");
            slips += 1;
        }
    }
    assert!(slips >= 100);
}

#[tokio::test]
async fn a_confirmed_request_acts_once() {
    let world = World::start().await;
    let tool = confirmed(&world).await;
    for manner in [Manner::Plain, Manner::Twice, Manner::Spelled] {
        for script in DONE {
            assert_eq!(played(&world, &tool, script, manner).await, 1, "{script} {manner:?}");
        }
    }
}

#[tokio::test]
async fn a_wish_confirmed_again_after_another_acts_again() {
    let world = World::start().await;
    let tool = confirmed(&world).await;
    for manner in [Manner::Plain, Manner::Twice, Manner::Spelled] {
        for (script, done) in CHANGED {
            assert_eq!(played(&world, &tool, script, manner).await, done, "{script} {manner:?}");
        }
    }
}

/// Asks, hears the caller and asks again; returns the last request and its answer.
async fn wished(world: &World, tool: &Value, id: &str, arguments: &Value) -> (Event, Value) {
    let [asks, acts] = ["asks", "acts"].map(|step| {
        let event = tool_calls(world, tool, "call-1", &format!("{id}-{step}"), "");
        let mut body: Value = serde_json::from_str(event.to_json()["body"].as_str().unwrap()).unwrap();
        body["message"]["toolCallList"][0]["function"]["arguments"] = arguments.clone();
        event.text(body.to_string())
    });
    let told = world.send("execute", &asks).await.expect(200).to_string();
    assert!(told.contains("Nothing has been done yet"), "{told}");
    for step in "AaCc".chars() {
        tokio::time::sleep(Duration::from_millis(2)).await;
        speech(world, "call-1", step).await;
    }
    let answer = world.send("execute", &acts).await.expect(200);
    (acts, answer)
}

#[tokio::test]
async fn a_redelivered_wish_that_was_confirmed_again_is_answered_from_the_record() {
    let world = World::start().await;
    let tool = confirmed(&world).await;
    world.incoming_call(&world.home, "call-1", &phone(1));
    for (number, text) in ["Tuesday", "Wednesday", "Tuesday"].into_iter().enumerate() {
        let (event, answer) = wished(&world, &tool, &number.to_string(), &json!({"text": text})).await;
        assert_eq!(world.send("execute", &event).await.expect(200), answer);
        assert_eq!(world.twilio.messages().len(), number + 1);
    }
}

#[tokio::test]
async fn a_background_wish_confirmed_again_acts_again() {
    let world = World::start().await;
    let mut config = ai_sms();
    config["confirm"] = json!("read_back");
    config["async"] = json!(true);
    let tool = world.attached(&config).await;
    world.incoming_call(&world.home, "call-1", &phone(1));
    for (number, text) in ["Tuesday", "Wednesday", "Tuesday"].into_iter().enumerate() {
        let (event, _) = wished(&world, &tool, &number.to_string(), &json!({"text": text})).await;
        world.send("execute", &event).await.expect(200);
        world.run_queued().await;
        assert_eq!(world.twilio.messages().len(), number + 1);
    }
}

/// The process that placed the call ended before it recorded that.
#[tokio::test]
async fn a_confirmed_call_that_vapi_shows_is_placed_once_however_often_it_is_delivered() {
    let world = World::start().await;
    can_call(&world);
    let tool = world.attached(&call_back(&world, &json!({"confirm": "read_back", "per_person_and_day": 10}))).await;
    world.incoming_call(&world.home, "call-1", &phone(1));
    let mut acts = Vec::new();
    for (number, person) in [2, 3, 2].into_iter().enumerate() {
        let (event, _) = wished(&world, &tool, &number.to_string(), &json!({"to": phone(person)})).await;
        assert_eq!(placed(&world).len(), number + 1);
        acts.push(event);
    }
    let mut rows = world.aws.rows("idempotency");
    rows.retain(|row| row["deliveries"].to_string().contains("2-acts"));
    assert_eq!(rows.len(), 1, "{rows:?}");
    let lapsed = Timestamp::now().as_millis() - 1;
    let interrupted = json!({"status": "in_progress", "lease_until": lapsed, "confirmed_after": 1});
    world.aws.change("idempotency", rows[0]["id"].as_str().unwrap(), interrupted);
    for _delivery in 0..3 {
        let answer = world.send("execute", &acts[2]).await.expect(200).to_string();
        assert!(answer.contains("is being called"), "{answer}");
        assert_eq!(placed(&world).len(), 3);
    }
}

#[tokio::test]
async fn a_confirmed_longer_list_reaches_only_its_new_recipients() {
    let world = World::start().await;
    let mut config = ai_sms();
    config["confirm"] = json!("read_back");
    config["recipients"]["aiExtension"] = json!({"enabled": true, "prompt": "Others", "required": false});
    let tool = world.attached(&config).await;
    world.incoming_call(&world.home, "call-1", &phone(1));
    for (text, others, sent) in [
        ("Tuesday", vec![phone(2)], 2),
        ("Tuesday", vec![phone(2), phone(3)], 3),
        ("Tuesday", vec![phone(2), phone(3), phone(4)], 4),
        ("Wednesday", vec![phone(2)], 6),
        ("Tuesday", vec![phone(2)], 8),
    ] {
        let id = format!("{text}-{sent}");
        wished(&world, &tool, &id, &json!({"text": text, "recipients": others})).await;
        assert_eq!(world.twilio.messages().len(), sent, "{id}");
    }
}

#[tokio::test]
async fn a_message_that_reached_some_is_sent_to_them_again_if_confirmed_after_another() {
    let world = World::start().await;
    let mut config = ai_sms();
    config["confirm"] = json!("read_back");
    config["recipients"]["aiExtension"] = json!({"enabled": true, "prompt": "Others", "required": false});
    let tool = world.attached(&config).await;
    world.incoming_call(&world.home, "call-1", &phone(1));
    let refusal = json!({"code": 21211, "message": "invalid", "status": 400});
    world.twilio.inject(Fault::status(400).with_body(refusal));
    for (text, sent) in [("Tuesday", 1), ("Wednesday", 3), ("Tuesday", 5)] {
        let id = format!("{text}-{sent}");
        wished(&world, &tool, &id, &json!({"text": text, "recipients": [phone(2)]})).await;
        assert_eq!(world.twilio.messages().len(), sent, "{id}");
    }
}

#[tokio::test]
async fn the_sentence_names_the_arguments_and_the_history_says_that_nothing_happened() {
    let world = World::start().await;
    let tool = confirmed(&world).await;
    world.incoming_call(&world.home, "call-1", &phone(1));
    let told = asked(&world, &tool, "call-1", "Tuesday at nine").await.result().clone();
    let told = told.as_str().unwrap();
    assert!(
        told.starts_with("Nothing has been done yet.") && told.contains("{\"text\":\"Tuesday at nine\"}"),
        "{told}"
    );
    let [run] = &world.executions()[..] else { panic!("one execution") };
    assert_eq!((&run["status"], run.get("result")), (&json!("read_back"), None));
    assert!(world.aws.rows("idempotency").is_empty(), "nothing is claimed");
    let messages = world.vapi.tool(tool["external_tool_id"].as_str().unwrap()).unwrap()["messages"].clone();
    assert_eq!(messages, silence(), "the agent reads back at once");
    let timeline = world.calls("/call-1").await.expect(200)["timeline"].clone();
    assert!(timeline.as_array().unwrap().iter().any(|moment| moment["status"] == "read_back"), "{timeline}");
}

/// VAPI's sentence would be the one that the caller answers.
fn silence() -> Value {
    json!([
        {"type": "request-start", "content": ""},
        {"type": "request-response-delayed", "content": "", "timingMilliseconds": 1_000},
    ])
}

#[tokio::test]
async fn vapi_says_nothing_while_a_request_is_read_back() {
    let world = World::start().await;
    let worded = json!({"start": "One moment.", "delayed": {"en": "Still here."}, "failed": "That failed."});
    let named = ["speech.delayed", "speech.failed", "speech.start"];
    let mut config = ai_sms();
    (config["confirm"], config["speech"]) = (json!("read_back"), worded.clone());
    let event = Event::post(&format!("/api/{}/tools", world.home.slug), &config).user(&world.home.user_id);
    assert_eq!(world.send("create-tool", &event).await.wrong_fields(), named);
    let tool = world.attached(&ai_sms()).await;
    let both = json!({"confirm": "read_back", "speech": worded});
    assert_eq!(world.update(&tool, &both).await.wrong_fields(), named);
    let quiet = json!({"confirm": "read_back", "speech": {"start": "", "delayed": "auto"}});
    let tool = world.update(&tool, &quiet).await.expect(200);
    let at_vapi = || world.vapi.tool(tool["external_tool_id"].as_str().unwrap()).unwrap()["messages"].clone();
    assert_eq!(at_vapi(), silence());

    // A tool of an earlier version has words in its row and at VAPI, until it is compared.
    let id = tool["id"].as_str().unwrap();
    let mut stored = world.aws.row("tools", id).unwrap()["config_metadata"].clone();
    stored["speech"] = worded;
    world.aws.change("tools", id, json!({"config_metadata": stored}));
    let said = json!({"messages": [{"type": "request-start", "content": "One moment."}]});
    world.at_vapi("PATCH", &format!("/tool/{}", tool["external_tool_id"].as_str().unwrap()), &said).await;
    world.settle().await;
    world.aws.change("tools", "reissue", json!({"seen_at": "2026-01-01T00:00:00.000Z"}));
    world.settle().await;
    assert_eq!(at_vapi(), silence());
}

#[tokio::test]
async fn a_call_with_another_reason_is_read_back_again() {
    let world = World::start().await;
    let at_vapi = world.vapi.set_number(&world.home.phone_number, &world.home.assistant_id).unwrap();
    world.aws.change("phone_numbers", &world.home.phone_number_id, json!({"vapi_phone_number_id": at_vapi}));
    let config = json!({
        "type": "place_call", "label": "Call back", "phone_number_id": world.home.phone_number_id,
        "confirm": "read_back", "to": {"mode": "ai", "prompt": "The number to call"},
        "reason": {"mode": "ai", "prompt": "Why"}, "hours": {"from": "00:00", "until": "24:00"},
    });
    let tool = world.attached(&config).await;
    world.incoming_call(&world.home, "call-1", &phone(1));
    let mut told = Vec::new();
    for (to, reason) in [
        (phone(7), "The order is late."),
        (phone(7), "The order is lost."),
        ("+1 (415) 555-0107".to_owned(), " The order is lost. "),
    ] {
        let mut asked = world.call(&tool, json!({"to": to, "reason": reason}));
        asked.call_id = Some("call-1".to_owned());
        told.push(world.call_tool(&asked).await.result().to_string());
        for step in "AaCc".chars() {
            tokio::time::sleep(Duration::from_millis(2)).await;
            speech(&world, "call-1", step).await;
        }
    }
    let read_back: Vec<bool> = told.iter().map(|told| told.contains("Nothing has been done yet")).collect();
    assert_eq!(read_back, [true, true, false], "{told:?}");
    let requests = world.vapi.requests();
    let placed: Vec<_> = requests.iter().filter(|one| one.method == "POST" && one.path == "/call").collect();
    let [placed] = placed[..] else { panic!("one call") };
    let reason = &placed.body["assistantOverrides"]["variableValues"]["call_reason"];
    assert_eq!(reason.as_str().unwrap().trim(), "The order is lost.");
}

#[tokio::test]
async fn a_redelivery_is_no_second_request() {
    let world = World::start().await;
    let tool = confirmed(&world).await;
    world.incoming_call(&world.home, "call-1", &phone(1));
    let first = tool_calls(&world, &tool, "call-1", "first", "Tuesday");
    let second = tool_calls(&world, &tool, "call-1", "second", "Tuesday");
    let one = world.send("execute", &first).await.expect(200);
    for step in "AaCc".chars() {
        tokio::time::sleep(Duration::from_millis(2)).await;
        speech(&world, "call-1", step).await;
    }
    // The first request comes again, after the caller has spoken.
    assert_eq!(world.send("execute", &first).await.expect(200), one);
    assert!(world.twilio.messages().is_empty());
    let done = world.send("execute", &second).await.expect(200);
    assert_eq!(world.twilio.messages().len(), 1);
    // So does the second one, long after the window of a repetition.
    world.age_claims(600);
    let mut row = world.aws.row("calls", "call-1").unwrap()["read_back"].clone();
    row["acted_at"] = json!("2026-01-01T00:00:00.000Z");
    world.aws.change("calls", "call-1", json!({"read_back": row}));
    assert_eq!(world.send("execute", &second).await.expect(200), done);
    assert_eq!(world.twilio.messages().len(), 1);
    // A new wish for the same is a new request.
    let third = tool_calls(&world, &tool, "call-1", "third", "Tuesday");
    assert!(world.send("execute", &third).await.body.to_string().contains("Nothing has been done yet"));
}

#[tokio::test]
async fn a_confirmed_request_twice_in_one_message_acts_once_and_stays_done() {
    let world = World::start().await;
    let tool = confirmed(&world).await;
    for manner in ["one-message", "two-requests"] {
        let sent = world.twilio.messages().len();
        world.incoming_call(&world.home, manner, &phone(1));
        let text = format!("Tuesday, {manner}");
        let first = tool_calls(&world, &tool, manner, "first", &text);
        world.send("execute", &first).await.expect(200);
        for step in "AaCc".chars() {
            tokio::time::sleep(Duration::from_millis(2)).await;
            speech(&world, manner, step).await;
        }
        let [second, third] = ["second", "third"].map(|id| tool_calls(&world, &tool, manner, id, &text));
        let body = |event: &Event| serde_json::from_str(event.to_json()["body"].as_str().unwrap()).unwrap();
        let answers = if manner == "one-message" {
            let mut both: Value = body(&second);
            let other: Value = body(&third);
            both["message"]["toolCallList"].as_array_mut().unwrap().push(other["message"]["toolCallList"][0].clone());
            vec![world.send("execute", &second.clone().text(both.to_string())).await.expect(200)]
        } else {
            let (second, third) = tokio::join!(world.send("execute", &second), world.send("execute", &third));
            vec![second.expect(200), third.expect(200)]
        };
        for answer in answers {
            let answer = answer.to_string();
            assert!(!answer.contains("Nothing has been done") && !answer.contains("error"), "{manner}: {answer}");
        }
        assert_eq!(world.twilio.messages().len(), sent + 1, "{manner}");
        let row = world.aws.row("calls", manner).unwrap()["read_back"].clone();
        assert!(row["acted_at"].is_string(), "{manner}: {row}");
    }
}

#[tokio::test]
async fn an_effect_that_cannot_be_confirmed_is_not_done() {
    let world = World::start().await;
    let tool = confirmed(&world).await;
    // A call that did not come in through Switchboard tells nobody who speaks.
    let told = asked(&world, &tool, "elsewhere", "Tuesday").await.sentence().to_owned();
    assert!(told.starts_with("Nothing was done"), "{told}");
    world.incoming_call(&world.home, "over", &phone(1));
    world.aws.change("calls", "over", json!({"ended_at": "2026-11-20T17:20:52.000Z"}));
    assert!(asked(&world, &tool, "over", "Tuesday").await.sentence().contains("the call is over"));

    world.incoming_call(&world.home, "call-1", &phone(1));
    asked(&world, &tool, "call-1", "Tuesday").await.result();
    for step in "AaCc".chars() {
        tokio::time::sleep(Duration::from_millis(2)).await;
        speech(&world, "call-1", step).await;
    }
    world.aws.inject(aws::Fault::new("UpdateItem", "calls", aws::Trouble::Error("AccessDeniedException")).times(9));
    asked(&world, &tool, "call-1", "Tuesday").await.sentence();
    world.aws.clear_faults();
    assert!(world.twilio.messages().is_empty());
    asked(&world, &tool, "call-1", "Tuesday").await.result();
    assert_eq!(world.twilio.messages().len(), 1, "the answer stands");
}

#[tokio::test]
async fn only_a_tool_with_an_effect_in_a_conversation_is_confirmed() {
    let world = World::start().await;
    let tool = world.attached(&ai_sms()).await;
    assert_eq!(world.update(&tool, &json!({"confirm": "twice"})).await.wrong_fields(), ["confirm"]);
    let edited = world.update(&tool, &json!({"confirm": "read_back"})).await.expect(200);
    assert_eq!(edited["config_metadata"]["confirm"], "read_back");
    let cleared = world.update(&edited, &json!({"confirm": null})).await.expect(200);
    assert!(cleared["config_metadata"].get("confirm").is_none());
    let create = async |mut config: Value| {
        config["confirm"] = json!("read_back");
        let event = Event::post(&format!("/api/{}/tools", world.home.slug), &config).user(&world.home.user_id);
        world.send("create-tool", &event).await.wrong_fields()
    };
    assert_eq!(create(tests::api_request("GET", "https://example.com/")).await, ["confirm"]);
    assert_eq!(create(tests::preemptive_sms()).await, ["confirm"]);
}

/// The request is being written again while the caller says yes to it.
#[tokio::test]
async fn a_second_request_does_not_erase_the_words_of_the_caller() {
    let world = World::start().await;
    let tool = confirmed(&world).await;
    world.incoming_call(&world.home, "call", &phone(1));
    asked(&world, &tool, "call", "Tuesday at nine").await.result();
    for step in ['A', 'a'] {
        tokio::time::sleep(Duration::from_millis(2)).await;
        speech(&world, "call", step).await;
    }
    world.aws.inject(aws::Fault::new("UpdateItem", "calls", aws::Trouble::StallBefore));
    let spoken = async {
        world.aws.stalled().await;
        speech(&world, "call", 'C').await;
    };
    let (done, ()) = tokio::join!(asked(&world, &tool, "call", "Tuesday at nine"), spoken);
    assert_eq!(done.result()["sent"], 1, "{}", done.body);
    assert_eq!(world.twilio.messages().len(), 1);
}
