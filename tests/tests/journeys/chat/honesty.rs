//! Honest answers: effects happen once, costs are bounded, and answers report exactly the effects.

use serde_json::json;
use tests::{
    Event, Fault, World,
    standins::{Fault as Standin, llm::Turn},
};

use super::{WAYS, Way, find, said, send, sent, text};

fn messages(world: &World) -> usize {
    world.aws.rows("threads").iter().filter(|item| text(&item["part"]).starts_with("m#")).count()
}

#[tokio::test]
async fn a_receipt_is_made_from_the_record_and_never_from_words() {
    // Ten ways to boast, three of them in other languages, and one sentence that boasts of nothing.
    for answer in [
        "SMS sent to Ana!",
        "Sent.",
        "✅ SMS sent",
        "Your booking is confirmed",
        "C'est envoyé.",
        "Mensaje enviado.",
        "Ich habe ihr geschrieben.",
        "We launched the service in 2020",
    ] {
        let world = Way::Written.world().await;
        send(&world).await;
        world.llm.script([Way::Written.none(), Turn::text(answer)]);
        let told = world.chat("Tell Ana I am late").await.expect(200);
        let receipt = json!({"entries": [], "no_action": true});
        assert_eq!((&told["message"], &told["metadata"]["receipt"]), (&json!(answer), &receipt));
        assert_eq!((sent(&world), world.asked_of_model().len()), (0, 2), "no words are held against any list");
    }
    for way in WAYS {
        let world = way.world().await;
        send(&world).await;
        world.llm.script([way.call("send_confirmation", json!({"text": "Late"})), Turn::text("Nada.")]);
        let told = world.chat("Send it now").await.expect(200);
        let entry = &told["metadata"]["receipt"]["entries"][0];
        assert_eq!(
            (&entry["state"], &entry["text"]),
            (&json!("done"), &json!("Send confirmation: sent to +14155550101."))
        );
        assert_eq!(entry["recipients"], json!([{"to": "+14155550101", "state": "sent"}]));
        let shown = world.threads(&world.home.user_id, "GET", "/default").await.expect(200);
        assert_eq!(shown["items"][0]["metadata"]["receipt"], told["metadata"]["receipt"], "{way:?}");

        world.twilio.inject(Standin::status(400));
        world.llm.script([way.call("send_confirmation", json!({"text": "Later"})), Turn::text("Sent!")]);
        let told = world.chat("And again").await.expect(200);
        assert_eq!(told["metadata"]["receipt"]["entries"][0]["state"], "failed", "{told}");
        // A page that shows text alone has the receipt below the text.
        world.llm.script([way.call("send_confirmation", json!({"text": "Now"})), Turn::text("Hecho.")]);
        let body = json!({"action": "chat", "message": "Once more"});
        let acted = world.send("chat", &Event::post("/copilotkit/action", &body).user(&world.home.user_id)).await;
        let content = &acted.expect(200)["result"]["content"];
        assert_eq!(content, "Hecho.\n\nSend confirmation: sent to +14155550101.", "{way:?}");
    }
}

#[tokio::test]
async fn a_plan_is_never_an_answer() {
    let call = |text: &str| json!({"tool": "send_confirmation", "arguments": {"text": text}}).to_string();
    let send_sms = |text: &str| Turn::text(&call(text));
    // "None" followed by a plan is a plan.
    let world = World::start().await;
    send(&world).await;
    world.llm.script([Way::Written.none(), send_sms("Hi"), Turn::text("It is sent.")]);
    let answer = world.chat("Send Hi").await.expect(200);
    assert_eq!((&answer["message"], sent(&world)), (&json!("It is sent."), 1));

    // A second plan with an unknown tool.
    let teleport = r#"{"tool": "teleport", "reason": "r", "arguments": {}}"#;
    world.llm.script([send_sms("One"), Turn::text(teleport), Turn::text("I cannot teleport.")]);
    let answer = world.chat("Send One and teleport").await.expect(200);
    let states: Vec<&str> = answer["metadata"]["receipt"]["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| text(&entry["state"]))
        .collect();
    assert_eq!((text(&answer["message"]), states), ("I cannot teleport.", vec!["done", "not_called"]), "{answer}");

    // The last iteration asks once more, for words; a model without words gets ours.
    for (last, said) in
        [("That is all.", "That is all."), (teleport, "I have no answer to this. Please put it in other words.")]
    {
        let world = World::start().await;
        find(&world).await;
        let again = json!({"tool": "find", "arguments": {"query": "more"}}).to_string();
        let script = vec![Turn::text(&again); 7].into_iter().chain([Turn::text(last)]);
        world.llm.script(script);
        let answer = world.chat("Tell me everything").await.expect(200);
        assert_eq!((text(&answer["message"]), world.llm.script_left().len()), (said, 0), "{answer}");
        assert_eq!(answer["metadata"]["receipt"]["entries"][0]["state"], "not_called", "{answer}");
    }

    // Over the token limit, and beside other words.
    let variables = vec![("TURN_COST", "0.2".to_owned())];
    let world = World::with(tests::Options { variables, ..tests::Options::default() }).await;
    send(&world).await;
    world.llm.script([Turn { cost: Some(0.3), ..send_sms("Hi") }, send_sms("Again")]);
    let answer = world.chat("Send Hi").await.expect(200);
    assert_eq!((text(&answer["message"]).contains('{'), sent(&world)), (false, 1), "{answer}");
    let world = World::start().await;
    send(&world).await;
    world.llm.script([Way::Written.none(), Turn::text(&format!("On it!\n\n```json\n{}\n```", call("Hi")))]);
    let answer = world.chat("Send Hi").await.expect(200);
    assert_eq!((&answer["message"], sent(&world)), (&json!("On it!"), 0));
    assert_eq!(answer["metadata"]["receipt"]["entries"][0]["state"], "not_called", "{answer}");
}

#[tokio::test]
async fn a_refusal_followed_by_the_same_plan_is_not_an_answer() {
    let world = World::start().await;
    let mut config = tests::sms_without_call(&world.home);
    config["chat"] = json!({"consent": true});
    world.tool(&config).await;
    let plan = || Way::Written.call("send_confirmation", json!({"text": "Hi"}));
    world.llm.script([plan()]);
    let id = world.chat("Send Hi").await.expect(200)["metadata"]["pending_action"]["id"].clone();
    world.llm.script([plan(), Turn::text("All right, I leave it.")]);
    let answer = world.chat_with(&json!({"metadata": {"consent": {"id": id, "approved": false}}})).await.expect(200);
    assert_eq!((&answer["message"], sent(&world)), (&json!("All right, I leave it."), 0), "{answer}");
}

#[tokio::test]
async fn a_plan_with_too_many_calls_is_refused_as_a_whole() {
    let world = World::start().await;
    send(&world).await;
    let call = |number: u32| json!({"tool": "send_confirmation", "arguments": {"text": format!("Message {number}")}});
    let plan =
        |numbers: std::ops::RangeInclusive<u32>| Turn::text(&json!(numbers.map(call).collect::<Vec<_>>()).to_string());
    world.llm.script([plan(1..=7), plan(1..=5), plan(6..=7), Turn::text("All seven are sent.")]);
    let answer = world.chat("Send all seven").await.expect(200);
    let refused = said(&world.asked_of_model()[1]).pop().unwrap();
    assert!(refused.contains("The plan has 7 calls") && refused.contains("None of them was made"), "{refused}");
    assert_eq!((sent(&world), answer["metadata"]["receipt"]["entries"].as_array().unwrap().len()), (7, 7), "{answer}");

    // A model that insists is told, and so is the person.
    world.llm.clear_requests();
    world.llm.script([plan(11..=16), plan(11..=16), Turn::text("I have sent all six.")]);
    let answer = world.chat("Send six more").await.expect(200);
    let entries = answer["metadata"]["receipt"]["entries"].as_array().unwrap();
    assert!(entries.len() == 6 && entries.iter().all(|entry| entry["state"] == "not_called"), "{answer}");
    assert_eq!(sent(&world), 7);
    assert!(said(&world.asked_of_model()[2]).join("\n").contains("None of them was made"));

    // More than the turn has left.
    world.llm.script([plan(21..=25), plan(26..=30), plan(31..=33), plan(31..=32), Turn::text("Twelve are sent.")]);
    world.chat("Send thirteen more").await.expect(200);
    assert_eq!(sent(&world), 19);
}

#[tokio::test]
async fn an_answer_that_was_cut_says_so() {
    let world = World::start().await;
    world.llm.script([
        Way::Written.none(),
        Turn { finish_reason: Some("length".to_owned()), ..Turn::text("It was a dark and") },
    ]);
    let answer = world.chat("Tell me a story").await.expect(200);
    assert_eq!((&answer["message"], &answer["metadata"]["incomplete"]), (&json!("It was a dark and"), &json!(true)));
}

#[tokio::test]
async fn a_turn_that_died_after_its_effect_does_not_repeat_it() {
    for way in WAYS {
        let world = way.world().await;
        send(&world).await;
        let turns = || [way.call("send_confirmation", json!({"text": "Hi"})), Turn::text("I have sent it.")];
        world.aws.inject(Fault::throttled("TransactWriteItems", "threads").after(1).times(9));
        world.llm.script(turns());
        let answer = world.chat("Send Hi").await;
        assert_eq!((answer.status, sent(&world), messages(&world)), (503, 1, 0), "{}", answer.body);
        world.aws.clear_faults();
        // It continues after the finished calls.
        world.llm.script([Turn::text("I have sent it.")]);
        let answer = world.chat("Send Hi").await.expect(200);
        assert_eq!(world.llm.script_left(), []);
        assert_eq!(answer["metadata"]["tools"], json!([{"tool": "send_confirmation", "outcome": "succeeded"}]));
        assert_eq!((sent(&world), messages(&world)), (1, 2));
        // A new request sends it again: it is another turn.
        world.llm.script(turns());
        world.chat("Send Hi once more").await.expect(200);
        assert_eq!(sent(&world), 2);
    }
}

#[tokio::test]
async fn the_same_call_twice_in_a_turn_acts_once() {
    let world = Way::Written.world().await;
    send(&world).await;
    let call = r#"{"tool": "send_confirmation", "arguments": {"text": "Hi"}}"#;
    world.llm.script([Turn::text(&format!("[{call}, {call}]")), Turn::text("I have sent it.")]);
    let answer = world.chat("Send Hi").await.expect(200);
    assert_eq!((answer["metadata"]["tools"].as_array().unwrap().len(), sent(&world)), (2, 1));
}

#[tokio::test]
async fn the_same_request_again_is_the_same_answer() {
    let world = World::start().await;
    let event = |message: &str| {
        let event = Event::post("/agent/chat", &json!({"message": message})).user(&world.home.user_id);
        event.header("idempotency-key", "turn-1")
    };
    world.llm.script([Way::Written.none(), Turn::text("Hello!")]);
    let first = world.send("chat", &event("Hi")).await.expect(200);
    assert_eq!(world.send("chat", &event("Hi")).await.expect(200), first);
    assert_eq!((world.asked_of_model().len(), messages(&world)), (2, 2));
    assert_eq!(world.send("chat", &event("Something else")).await.status, 409);
}

#[tokio::test]
async fn a_model_that_cannot_be_asked_leaves_nothing_behind_unless_something_was_done() {
    let world = World::start().await;
    send(&world).await;
    world.llm.inject(Standin::status(402));
    let failed = world.chat("Hi").await;
    assert!((500..600).contains(&failed.status), "{}", failed.body);
    assert_eq!(messages(&world), 0);
    // The message stays, with the reason for the missing answer.
    let shown = world.threads(&world.home.user_id, "GET", "/default").await.expect(200);
    let items: Vec<&str> = shown["items"].as_array().unwrap().iter().map(|item| text(&item["content"])).collect();
    assert!(items[0].starts_with("This message was not answered: ") && items[1] == "Hi", "{items:?}");
    assert_eq!((&shown["items"][0]["metadata"]["failed"], &shown["running"]), (&json!(true), &json!(null)));
    let thread = world.aws.rows("threads").remove(0);
    assert_eq!(thread.get("lease_token"), None, "the thread was let go of: {thread}");

    let refused = Turn {
        status: Some(402),
        body: Some(json!({"error": {"code": 402, "message": "no credits"}})),
        ..Turn::default()
    };
    world.llm.script([Way::Written.call("send_confirmation", json!({"text": "Hi"})), refused]);
    let answer = world.chat("Send Hi").await.expect(200);
    // The previous turn has its place in the thread now.
    assert_eq!((&answer["metadata"]["incomplete"], sent(&world), messages(&world)), (&json!(true), 1, 4), "{answer}");
    assert!(text(&answer["message"]).contains("- send_confirmation: succeeded"), "{answer}");
}

#[tokio::test]
async fn a_turn_is_paid_for_and_ends_with_the_money() {
    let world = World::start().await;
    find(&world).await;
    let costing = |turn: Turn| Turn { cost: Some(0.3), ..turn };
    world.aws.change(
        "organizations",
        &world.home.organization_id,
        json!({"budgets": {"platform_cost_per_month": 0.5}}),
    );
    world.llm.script([costing(Way::Written.none()), costing(Turn::text("Hello!"))]);
    world.chat("Hi").await.expect(200);
    let usage = Event::get(&format!("/api/{}/usage", world.home.slug)).user(&world.home.user_id);
    assert_eq!(world.send("usage", &usage).await.expect(200)["platform_cost_per_month"]["used"], 0.6);
    let over = world.chat("Hi again").await;
    assert_eq!((over.status, &over.body["budget"]), (429, &json!("platform_cost_per_month")), "{}", over.body);
    assert_eq!((world.asked_of_model().len(), messages(&world)), (2, 2), "nobody was asked");
}

#[tokio::test]
async fn a_turn_over_its_own_cost_gets_its_last_answer_without_tools() {
    for way in WAYS {
        let variables =
            vec![("TURN_COST", "0.2".to_owned()), ("PLANNER_FUNCTION_CALLING", (way == Way::Functions).to_string())];
        let world = World::with(tests::Options { variables, ..tests::Options::default() }).await;
        find(&world).await;
        let costly = Turn { cost: Some(0.3), ..way.call("find", json!({"query": "sales"})) };
        world.llm.script([costly, Turn::text("7 million.")]);
        world.chat("Sales?").await.expect(200);
        let last = world.asked_of_model().pop().unwrap();
        assert!(last.get("tools").is_none() && !last.to_string().contains("another tool is still needed"), "{last}");
    }
}
