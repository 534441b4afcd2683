//! Consent of a person, and tools beyond a person's role.

use serde_json::{Value, json};
use shared::models::Timestamp;
use tests::{Answer, Event, Fault, World, sms_without_call, standins::llm::Turn};

use super::{WAYS, Way, said, sent, text};

/// A tool with an effect that needs consent.
async fn asked_first(world: &World) -> Value {
    let mut config = sms_without_call(&world.home);
    config["chat"] = json!({"consent": true});
    world.tool(&config).await
}

/// Asks for an SMS; returns the question to the person.
async fn ask(world: &World, way: Way) -> Value {
    world.llm.script([way.call("send_confirmation", json!({"text": "See you at nine"}))]);
    let answer = world.chat("Send her: see you at nine").await.expect(200);
    assert_eq!((sent(world), world.llm.script_left().len()), (0, 0), "{answer}");
    answer
}

/// As if the hour for the decision were over.
fn expire(world: &World) {
    let mut row = world.aws.rows("threads").into_iter().find(|item| item.get("pending").is_some()).unwrap();
    let mut pending: Value = serde_json::from_str(text(&row["pending"])).unwrap();
    pending["expires_at"] = json!(Timestamp::from_millis(0));
    row["pending"] = json!(pending.to_string());
    world.aws.put("threads", &row);
}

fn decision(id: &Value, approved: bool) -> Value {
    json!({"metadata": {"consent": {"id": id, "approved": approved}}})
}

async fn decide(world: &World, id: &Value, approved: bool) -> Answer {
    world.chat_with(&decision(id, approved)).await
}

async fn approve_with_key(world: &World, id: &Value, key: &str) -> Answer {
    let event = Event::post("/agent/chat", &decision(id, true)).user(&world.home.user_id);
    world.send("chat", &event.header("idempotency-key", key)).await
}

#[tokio::test]
async fn an_effect_waits_for_the_persons_consent_and_happens_once() {
    for way in WAYS {
        let world = way.world().await;
        asked_first(&world).await;
        let question = ask(&world, way).await;
        let pending = &question["metadata"]["pending_action"];
        assert_eq!(
            (&pending["tool"], &pending["arguments"]),
            (&json!("send_confirmation"), &json!({"text": "See you at nine"}))
        );
        assert_eq!(question["metadata"]["current_step"], "consent");
        let asked = text(&question["message"]);
        assert!(asked.contains("- Text: See you at nine") && asked.contains("- Recipients: +14155550101"), "{asked}");
        assert_eq!(pending["label"], "Send confirmation");
        assert_eq!(question["metadata"]["receipt"]["entries"][0]["state"], "waiting");
        let shown = world.threads(&world.home.user_id, "GET", "/default").await.expect(200);
        assert_eq!(&shown["pending_action"], pending);

        world.llm.script([Turn::text("I have sent the message.")]);
        let done = decide(&world, &pending["id"], true).await.expect(200);
        assert_eq!(done["message"], "I have sent the message.");
        assert_eq!(
            done["metadata"]["tools"],
            json!([{"tool": "send_confirmation", "outcome": "succeeded"}]),
            "{way:?}"
        );
        let request = world.twilio.requests().pop().unwrap();
        assert!(request.body.to_string().contains("See you at nine"), "{:?}", request.body);
        // The same consent again is the same answer, without another message or question.
        let again = decide(&world, &pending["id"], true).await.expect(200);
        assert_eq!((&again["message"], &again["metadata"]), (&done["message"], &done["metadata"]));
        assert_eq!((sent(&world), decide(&world, &pending["id"], false).await.status), (1, 409));
    }
}

#[tokio::test]
async fn a_person_sees_all_that_will_be_sent_and_no_secret() {
    let twilio = tests::standins::twilio::Options::default();
    let service = tests::standins::twilio::start("127.0.0.1:0".parse().unwrap(), twilio).unwrap();
    service.inject(tests::standins::Fault::body(json!({"paid": true})).times(9));
    let options = tests::Options { open_hosts: vec![service.address().to_string()], ..tests::Options::default() };
    let world = World::with(options).await;
    let mut config = tests::api_request("POST", &service.url);
    config["label"] = json!("Charge card");
    config["chat"] = json!({"consent": true});
    config["headers"] = json!({"Authorization": {"mode": "fixed", "value": "Bearer s3cret-of-the-bank"}});
    config["body"] = json!({"amount": {"mode": "fixed", "value": 40}, "note": {"mode": "ai", "prompt": "Why"}});
    world.tool(&config).await;
    world.llm.script([Way::Written.call("charge_card", json!({"body_note": "Dinner"}))]);
    let asked = world.chat("Charge her").await.expect(200);
    let pending = &asked["metadata"]["pending_action"];
    let shows = pending["shows"].as_array().unwrap();
    for (name, value, fixed) in [
        ("Body amount", "40", true),
        ("Body note", "Dinner", false),
        ("Headers authorization", "[secret]", true),
        ("Method", "POST", true),
    ] {
        assert!(shows.contains(&json!({"name": name, "value": value, "fixed": fixed})), "{name}: {pending}");
    }
    let address = shows.iter().find(|shown| shown["name"] == "Address").unwrap();
    assert!(text(&address["value"]).starts_with(&service.url) && address["fixed"] == true, "{address}");
    assert!(text(&asked["message"]).starts_with("I need your consent before I carry out \"Charge card\":"), "{asked}");
    assert!(!asked.to_string().contains("s3cret"), "{asked}");
    world.llm.script([Turn::text("Charged.")]);
    let done = decide(&world, &pending["id"], true).await.expect(200);
    assert_eq!(done["metadata"]["receipt"]["entries"][0]["text"], "Charge card: done.");
    let request = service.requests().pop().unwrap();
    assert_eq!(request.body, json!({"amount": 40, "note": "Dinner"}), "what was shown is what is carried out");
}

#[tokio::test]
async fn a_request_too_large_to_be_shown_is_neither_asked_about_nor_made() {
    for way in WAYS {
        let world = way.world().await;
        let mut config = tests::api_request("POST", "https://bank.example/charge");
        config["label"] = json!("Charge card");
        config["chat"] = json!({"consent": true});
        config["body"] = json!({"note": {"mode": "ai", "prompt": "Why"}});
        world.tool(&config).await;
        let call = way.call("charge_card", json!({"body_note": "x".repeat(33_000)}));
        world.llm.script([call, Turn::text("The note is too long to be shown to you.")]);
        let answer = world.chat("Charge her").await.expect(200);
        assert_eq!(answer["metadata"]["pending_action"], Value::Null, "{way:?}");
        assert_eq!(answer["metadata"]["tools"], json!([{"tool": "charge_card", "outcome": "not_called"}]), "{way:?}");
        let told = said(world.asked_of_model().last().unwrap()).join("\n");
        assert!(told.contains("too large to be shown to the person"), "{way:?}");
    }
}

/// A row of the previous version has no label and nothing to show.
#[tokio::test]
async fn a_question_of_an_older_version_is_shown_and_decided() {
    let world = World::start().await;
    asked_first(&world).await;
    let id = ask(&world, Way::Written).await["metadata"]["pending_action"]["id"].clone();
    let mut row = world.aws.rows("threads").into_iter().find(|item| item.get("pending").is_some()).unwrap();
    let mut pending: Value = serde_json::from_str(text(&row["pending"])).unwrap();
    for newer in ["label", "shows", "effect", "rest"] {
        pending.as_object_mut().unwrap().remove(newer);
    }
    row["pending"] = json!(pending.to_string());
    world.aws.put("threads", &row);
    let shown = world.threads(&world.home.user_id, "GET", "/default").await.expect(200);
    let pending = &shown["pending_action"];
    let text = json!([{"name": "Text", "value": "See you at nine", "fixed": false}]);
    assert_eq!((&pending["label"], &pending["shows"]), (&json!("send_confirmation"), &text));
    world.llm.script([Turn::text("I have sent it.")]);
    decide(&world, &id, true).await.expect(200);
    assert_eq!(sent(&world), 1);
}

#[tokio::test]
async fn a_no_is_a_no() {
    for way in WAYS {
        let world = way.world().await;
        asked_first(&world).await;
        let id = ask(&world, way).await["metadata"]["pending_action"]["id"].clone();
        world.llm.script([Turn::text("All right, I did not send it.")]);
        let answer = decide(&world, &id, false).await.expect(200);
        assert_eq!(answer["metadata"]["tools"], json!([{"tool": "send_confirmation", "outcome": "refused"}]));
        let told = said(world.asked_of_model().last().unwrap()).join("\n");
        assert!(told.contains("said no"), "{told}");
        let late = decide(&world, &id, true).await;
        assert_eq!((sent(&world), late.status, &late.body["decided"]), (0, 409, &json!("refused")));
    }
}

#[tokio::test]
async fn a_consent_holds_for_the_shown_call_and_a_limited_time() {
    let way = Way::Written;
    // Another message came in between.
    let world = way.world().await;
    asked_first(&world).await;
    let id = ask(&world, way).await["metadata"]["pending_action"]["id"].clone();
    assert_eq!(decide(&world, &json!("another"), true).await.status, 409);
    world.llm.script([way.none(), Turn::text("It has been a while.")]);
    world.chat("Never mind. How are you?").await.expect(200);
    assert_eq!(decide(&world, &id, true).await.body["decided"], "withdrawn");

    // Somebody else's consent finds nothing.
    let id = ask(&world, way).await["metadata"]["pending_action"]["id"].clone();
    let another = world.member(&world.home, Some("owner"));
    let body = json!({"metadata": {"consent": {"id": id, "approved": true}}});
    assert_eq!(world.chat_as(&another, &body).await.status, 409);

    // Its time is over.
    expire(&world);
    assert_eq!(decide(&world, &id, true).await.body["decided"], "expired");

    // The tool has changed meanwhile.
    let world = way.world().await;
    let tool = asked_first(&world).await;
    let id = ask(&world, way).await["metadata"]["pending_action"]["id"].clone();
    world.update(&tool, &json!({"recipients": ["+14155550199"]})).await.expect(200);
    let refused = decide(&world, &id, true).await;
    assert_eq!(refused.status, 409, "{}", refused.body);
    assert_eq!(sent(&world), 0);
}

#[tokio::test]
async fn a_consent_is_the_same_request_with_any_idempotency_key() {
    let world = Way::Written.world().await;
    asked_first(&world).await;
    let id = ask(&world, Way::Written).await["metadata"]["pending_action"]["id"].clone();
    world.llm.script([Turn::text("I have sent it.")]);
    let first = approve_with_key(&world, &id, "k1").await.expect(200);
    for again in [approve_with_key(&world, &id, "k2").await, decide(&world, &id, true).await] {
        assert_eq!(again.expect(200), first);
    }
    assert_eq!(sent(&world), 1);
}

#[tokio::test]
async fn a_consent_with_words_of_its_own_is_reported_as_it_was_decided() {
    for (approved, words, decided) in [(true, "Yes please", "approved"), (false, "Yes, but later", "refused")] {
        let world = World::start().await;
        asked_first(&world).await;
        let id = ask(&world, Way::Written).await["metadata"]["pending_action"]["id"].clone();
        let mut body = decision(&id, approved);
        body["message"] = json!(words);
        world.llm.script([Turn::text("All right.")]);
        world.chat_with(&body).await.expect(200);
        let again = decide(&world, &id, approved).await;
        assert_eq!((again.status, &again.body["decided"]), (409, &json!(decided)), "{}", again.body);
        assert_eq!(sent(&world), usize::from(approved));
        let shown = world.threads(&world.home.user_id, "GET", "/default").await.expect(200);
        assert!(text(&shown["items"][1]["content"]).ends_with(words), "{shown}");
    }
}

#[tokio::test]
async fn a_broken_consent_that_is_repeated_with_another_key_acts_once() {
    let world = Way::Written.world().await;
    asked_first(&world).await;
    let id = ask(&world, Way::Written).await["metadata"]["pending_action"]["id"].clone();
    world.aws.inject(Fault::throttled("TransactWriteItems", "threads").times(9));
    world.llm.script([Turn::text("I have sent it.")]);
    assert_eq!(approve_with_key(&world, &id, "k1").await.status, 503);
    world.aws.clear_faults();
    // The windows of the claims are over: only the turn's record knows of the effect.
    for claim in world.aws.rows("idempotency") {
        world.aws.change("idempotency", text(&claim["id"]), json!({"window_until": 1, "done_until": 1}));
    }
    world.llm.script([Turn::text("I have sent it.")]);
    approve_with_key(&world, &id, "k2").await.expect(200);
    assert_eq!(sent(&world), 1);
}

#[tokio::test]
async fn a_consent_whose_turn_could_not_be_written_down_acts_once() {
    // Also if its hour is over since, or its tool was changed.
    for since in ["nothing", "expiry", "change"] {
        let world = Way::Written.world().await;
        let tool = asked_first(&world).await;
        let id = ask(&world, Way::Written).await["metadata"]["pending_action"]["id"].clone();
        world.aws.inject(Fault::throttled("TransactWriteItems", "threads").times(9));
        world.llm.script([Turn::text("I have sent it.")]);
        assert_eq!(decide(&world, &id, true).await.status, 503);
        world.aws.clear_faults();
        match since {
            "expiry" => expire(&world),
            "change" => {
                world.update(&tool, &json!({"recipients": ["+14155550199"]})).await.expect(200);
            }
            _ => {}
        }
        world.llm.script([Turn::text("I have sent it.")]);
        decide(&world, &id, true).await.expect(200);
        assert_eq!(sent(&world), 1, "{since}");
    }
}

#[tokio::test]
async fn an_approval_whose_call_was_not_made_expires_after_its_hour() {
    let world = Way::Written.world().await;
    asked_first(&world).await;
    let id = ask(&world, Way::Written).await["metadata"]["pending_action"]["id"].clone();
    // The turn's beginning is written down, and that its call begins is not.
    world.aws.inject(Fault::throttled("UpdateItem", "threads").after(2));
    assert_eq!(decide(&world, &id, true).await.status, 503);
    assert_eq!((world.aws.faults_left(), sent(&world)), (0, 0));
    expire(&world);
    let late = decide(&world, &id, true).await.expect(409);
    assert_eq!((&late["decided"], sent(&world)), (&json!("expired"), 0), "{late}");
}

#[tokio::test]
async fn a_call_whose_request_cannot_be_looked_up_is_recorded_as_not_called() {
    let world = World::start().await;
    asked_first(&world).await;
    let plan = || Way::Written.call("send_confirmation", json!({"text": "See you at nine"}));
    world.aws.inject(Fault::throttled("GetItem", "phone_numbers"));
    world.llm.script([plan()]);
    assert_eq!(world.chat("Send her: see you at nine").await.status, 503);
    assert_eq!(world.aws.faults_left(), 0);
    let shown = world.threads(&world.home.user_id, "GET", "/default").await.expect(200);
    let entry = &shown["items"][0]["metadata"]["receipt"]["entries"][0];
    assert_eq!((&entry["tool"], &entry["state"]), (&json!("send_confirmation"), &json!("not_called")), "{shown}");
    // The same message is planned anew, because nothing was done.
    let asked = ask(&world, Way::Written).await;
    assert_eq!(asked["metadata"]["receipt"]["entries"].as_array().unwrap().len(), 1, "{asked}");
}

#[tokio::test]
async fn a_tool_may_demand_a_role() {
    for way in WAYS {
        let world = way.world().await;
        let mut config = sms_without_call(&world.home);
        config["chat"] = json!({"least_role": "admin"});
        world.tool(&config).await;
        let member = world.member(&world.home, Some("member"));
        let body = json!({"message": "Send Hi"});
        world.llm.script([
            way.call("send_confirmation", json!({"text": "Hi"})),
            Turn::text("You need the role admin for that."),
        ]);
        let answer = world.chat_as(&member, &body).await.expect(200);
        assert_eq!(
            answer["metadata"]["tools"],
            json!([{"tool": "send_confirmation", "outcome": "not_called"}]),
            "{way:?}"
        );
        let asked = world.asked_of_model();
        assert!(said(&asked[0]).join("\n").contains("send_confirmation (needs the role admin)"), "{way:?}");
        assert!(!asked[0]["tools"].to_string().contains("send_confirmation"), "it is not offered");
        assert_eq!(sent(&world), 0);
        let admin = world.member(&world.home, Some("admin"));
        world.llm.script([way.call("send_confirmation", json!({"text": "Hi"})), Turn::text("Done.")]);
        world.chat_as(&admin, &body).await.expect(200);
        assert_eq!(sent(&world), 1);
    }
    let world = World::start().await;
    let mut config = sms_without_call(&world.home);
    config["chat"] = json!({"least_role": "king", "consent": 1, "x": 1});
    assert_eq!(world.create(&config).await.wrong_fields(), ["chat.consent", "chat.least_role", "chat.x"]);
}
