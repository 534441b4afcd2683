//! What happens once, what it costs, and that an answer says what was done and no more.

use serde_json::json;
use tests::{
    Event, Fault, World,
    standins::{Fault as Standin, llm::Turn},
};

use super::{WAYS, Way, find, said, send, sent, text};

fn messages(world: &World) -> usize {
    world.aws.rows("threads").iter().filter(|item| item["part"] != "thread").count()
}

#[tokio::test]
async fn an_answer_that_claims_what_no_tool_did_is_corrected() {
    for way in WAYS {
        let world = way.world().await;
        send(&world).await;
        world.llm.script([
            way.none(),
            Turn::text("Sure! I have sent the SMS to Ada."),
            Turn::text("I have not sent anything yet. Shall I?"),
        ]);
        let answer = world.chat("Tell Ada I am late").await.expect(200);
        assert_eq!(answer["message"], "I have not sent anything yet. Shall I?", "{way:?}");
        assert_eq!((&answer["metadata"]["corrected"], sent(&world)), (&json!(true), 0));
        let correction = said(&world.asked_of_model()[2]).pop().unwrap();
        assert!(
            correction.contains("I have sent the SMS to Ada") && correction.contains("none at all"),
            "{correction}"
        );

        // One that insists is marked.
        world.llm.script([way.none(), Turn::text("I have sent it."), Turn::text("But I've really sent it!")]);
        let answer = world.chat("Did you?").await.expect(200);
        assert!(text(&answer["message"]).contains("nothing of this kind was carried out"), "{answer}");
        // What was done may be said.
        world.llm.script([way.call("send_confirmation", json!({"text": "Late"})), Turn::text("I have sent the SMS.")]);
        let answer = world.chat("Send it now").await.expect(200);
        assert_eq!(
            (&answer["message"], &answer["metadata"]["corrected"]),
            (&json!("I have sent the SMS."), &json!(false))
        );
        assert_eq!(world.llm.script_left(), []);
    }
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
        world.llm.script(turns());
        let answer = world.chat("Send Hi").await.expect(200);
        assert_eq!(answer["metadata"]["tools"], json!([{"tool": "send_confirmation", "outcome": "succeeded"}]));
        assert_eq!((sent(&world), messages(&world)), (1, 2));
        // Asked for again, it is sent again: that is another turn.
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
    let thread = world.aws.rows("threads").remove(0);
    assert_eq!(thread.get("lease_token"), None, "the thread was let go of: {thread}");

    let refused = Turn {
        status: Some(402),
        body: Some(json!({"error": {"code": 402, "message": "no credits"}})),
        ..Turn::default()
    };
    world.llm.script([Way::Written.call("send_confirmation", json!({"text": "Hi"})), refused]);
    let answer = world.chat("Send Hi").await.expect(200);
    assert_eq!((&answer["metadata"]["incomplete"], sent(&world), messages(&world)), (&json!(true), 1, 2), "{answer}");
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
