//! Stored conversations: each its user's own, turns in sequence, of any length.

use futures_util::future::join_all;
use serde_json::{Value, json};
use shared::models::{OrganizationId, ThreadId, Timestamp, UserId};
use tests::{
    Event, Options, World, aws, run_input, sms_without_call,
    standins::{Fault as Standin, llm::Turn},
};

use super::{Way, said, send, sent, text};

const UUID: &str = "0193aa11-4d5e-7f60-8a71-8294a1b2c3d4";

async fn say(world: &World, user: &str, thread: &str, message: &str) -> Value {
    world.llm.script([Way::Written.none(), Turn::text(&format!("You said: {message}"))]);
    world.chat_as(user, &json!({"message": message, "thread_id": thread})).await.expect(200)
}

fn contents(shown: &Value) -> Vec<String> {
    shown["items"].as_array().unwrap().iter().map(|item| text(&item["content"]).to_owned()).collect()
}

#[tokio::test]
async fn a_thread_is_its_users_own() {
    let world = World::start().await;
    let (ada, bob) = (world.home.user_id.clone(), world.member(&world.home, Some("owner")));
    say(&world, &ada, UUID, "My secret is blue").await;
    say(&world, &ada, "main", "My secret is red").await;
    // A thread with an unguessable name is not found for another user.
    for user in [&bob, &world.other.user_id] {
        for method in ["GET", "DELETE"] {
            assert_eq!(world.threads(user, method, &format!("/{UUID}")).await.status, 404);
        }
        world.llm.clear_requests();
        let refused = world.chat_as(user, &json!({"message": "What is the secret?", "thread_id": UUID})).await;
        assert_eq!((refused.status, text(&refused.body["detail"])), (404, "thread not found"), "{}", refused.body);
        assert_eq!(world.asked_of_model().len(), 0);
        // A common name is each user's own thread.
        say(&world, user, "main", "Hello").await;
        let told = said(&world.asked_of_model()[0]).join("\n");
        assert!(!told.contains("secret is red"), "{told}");
        assert_eq!(world.threads(user, "GET", "").await.expect(200)["items"].as_array().unwrap().len(), 1);
    }
    let shown = world.threads(&ada, "GET", "/main").await.expect(200);
    assert_eq!(contents(&shown), ["You said: My secret is red", "My secret is red"]);
}

#[tokio::test]
async fn a_thread_whose_first_turn_failed_has_a_title_all_the_same() {
    let world = World::start().await;
    let user = world.home.user_id.clone();
    world.llm.inject(Standin::status(402).times(9));
    let asked = json!({"message": "What does a house cost?", "thread_id": "t"});
    assert!(world.chat_as(&user, &asked).await.status >= 400);
    let listed = world.threads(&user, "GET", "").await.expect(200);
    assert_eq!((&listed["items"][0]["title"], &listed["items"][0]["turns"]), (&asked["message"], &json!(0)));
}

#[tokio::test]
async fn threads_are_listed_shown_and_deleted() {
    let world = World::start().await;
    let user = world.home.user_id.clone();
    for number in 1..=3 {
        say(&world, &user, &format!("t {number}"), &format!("Message {number}")).await;
    }
    say(&world, &user, "t 1", "Message 4").await;
    let answer = world.threads(&user, "GET", "?limit=2").await;
    // A page learns here which organization is meant, and what the person may do in it.
    let known =
        [answer.headers.get("x-organization"), answer.headers.get("x-role")].map(|value| value.map(String::as_str));
    assert_eq!(known, [Some(world.home.slug.as_str()), Some("owner")]);
    let first = answer.expect(200);
    let names = |page: &Value| -> Vec<String> {
        page["items"].as_array().unwrap().iter().map(|item| text(&item["thread_id"]).to_owned()).collect()
    };
    assert_eq!(names(&first), ["t 3", "t 2"]);
    let next = text(&first["next_cursor"]);
    let rest = world.threads(&user, "GET", &format!("?cursor={next}")).await.expect(200);
    assert_eq!((names(&rest), &rest["next_cursor"]), (vec!["t 1".to_owned()], &Value::Null));
    let row = &rest["items"][0];
    assert_eq!((&row["title"], &row["turns"], &row["messages"]), (&json!("Message 1"), &json!(2), &json!(4)));
    assert_eq!(world.threads(&user, "GET", "?limit=0").await.wrong_fields(), ["limit"]);

    let shown = world.threads(&user, "GET", "/t%201?limit=3").await.expect(200);
    assert_eq!(contents(&shown), ["You said: Message 4", "Message 4", "You said: Message 1"]);
    let next = text(&shown["next_cursor"]);
    let rest = world.threads(&user, "GET", &format!("/t%201?cursor={next}")).await.expect(200);
    assert_eq!((contents(&rest), &rest["next_cursor"]), (vec!["Message 1".to_owned()], &Value::Null));
    assert_eq!(world.threads(&user, "GET", "/t%201?cursor=x").await.wrong_fields(), ["cursor"]);

    assert_eq!(world.threads(&user, "DELETE", "/t%201").await.status, 204);
    for method in ["GET", "DELETE"] {
        assert_eq!(world.threads(&user, method, "/t%201").await.status, 404);
    }
    let left = world.aws.rows("threads").iter().filter(|item| item["part"] == "thread").count();
    assert_eq!((left, world.aws.rows("threads").len()), (2, 6));
    // The name begins a new one.
    say(&world, &user, "t 1", "Anew").await;
    assert_eq!(world.threads(&user, "GET", "/t%201").await.expect(200)["messages"], 2);
}

#[tokio::test]
async fn pages_with_a_failed_turn_have_no_more_than_their_limit() {
    let world = World::start().await;
    let user = world.home.user_id.clone();
    say(&world, &user, "t", "Hello").await;
    world.llm.inject(Standin::status(402).times(9));
    assert!(world.chat_as(&user, &json!({"message": "And now?", "thread_id": "t"})).await.status >= 400);
    for limit in 1..=5 {
        let (mut numbers, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = world.threads(&user, "GET", &format!("/t?limit={limit}{cursor}")).await.expect(200);
            let items = page["items"].as_array().unwrap();
            assert!(items.len() <= limit, "{limit}: {page:#}");
            numbers.extend(items.iter().map(|item| item["number"].as_u64().unwrap()));
            let Some(next) = page["next_cursor"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        assert_eq!(numbers, [4, 3, 2, 1], "{limit}");
    }
}

#[tokio::test]
async fn a_new_thread_has_a_name_that_can_stand_in_a_path() {
    let world = World::start().await;
    let user = world.home.user_id.clone();
    for name in ["a/b", "a?b", "a#b", "50%", ".", ".."] {
        let asked = |path: &str, body: &Value| Event::post(path, body).user(&user);
        let chat = asked("/agent/chat", &json!({"message": "Hi", "thread_id": name}));
        let action = json!({"action": "chat", "parameters": {"message": "Hi", "conversation_id": name}});
        let action = asked("/copilotkit/action", &action);
        for (event, field) in [(chat, "thread_id"), (action, "parameters.conversation_id")] {
            assert_eq!(world.send("chat", &event).await.wrong_fields(), [field], "{name}");
        }
        let run = run_input(name, "u1", "Hi");
        let call = json!({"method": "agent/run", "params": {"agentId": "default"}, "body": run});
        let streams = [
            ("/agent/stream", json!({"message": "Hi", "thread_id": name}), "thread_id"),
            ("/copilotkit/stream", run, "threadId"),
            ("/copilotkit", call, "body.threadId"),
        ];
        for (path, body, field) in streams {
            let refused = world.send("stream", &world.stream_event(&user, path, &body)).await;
            assert_eq!(refused.wrong_fields(), [field], "{path} {name}");
        }
    }
    assert!(world.aws.rows("threads").is_empty());
}

#[tokio::test]
async fn a_thread_of_an_earlier_version_goes_on_with_its_name() {
    let world = World::start().await;
    let user = world.home.user_id.clone();
    for name in ["a%41", "aA"] {
        stored_thread(&world, name, 2);
    }
    say(&world, &user, "a%41", "Hello").await;
    // API Gateway decodes the path; the local stack does not.
    for path in ["/a%41", "/a%2541"] {
        let shown = world.threads(&user, "GET", path).await.expect(200);
        assert_eq!((&shown["thread_id"], &shown["messages"]), (&json!("a%41"), &json!(4)), "{path}");
    }
    assert_eq!(world.threads(&user, "DELETE", "/a%41").await.status, 204);
    let listed = world.threads(&user, "GET", "").await.expect(200);
    let names: Vec<&Value> = listed["items"].as_array().unwrap().iter().map(|item| &item["thread_id"]).collect();
    assert_eq!(names, [&json!("aA")]);
}

#[tokio::test]
async fn a_limit_of_a_thread_holds_as_long_as_the_thread() {
    let world = World::start().await;
    let mut config = sms_without_call(&world.home);
    config["limits"] = json!({"per_call": 1});
    world.tool(&config).await;
    world.llm.script([Way::Written.call("send_confirmation", json!({"text": "Hi"})), Turn::text("I have sent it.")]);
    world.chat("Send Hi").await.expect(200);
    let rows = world.aws.rows("idempotency");
    let count = rows.iter().find(|row| text(&row["id"]).contains("#call#thread:")).unwrap();
    let thread = world.aws.rows("threads").into_iter().find(|item| item["part"] == "thread").unwrap();
    assert_eq!((sent(&world), &count["count"]), (1, &json!(1)));
    assert!(count["expires_at"].as_i64() > thread["expires_at"].as_i64(), "{count}");
}

#[tokio::test]
async fn an_idle_thread_expires() {
    let world = World::start().await;
    let user = world.home.user_id.clone();
    say(&world, &user, "main", "Hello").await;
    let day = 24 * 60 * 60;
    let items = world.aws.rows("threads");
    for item in &items {
        let kept = item["expires_at"].as_i64().unwrap() - Timestamp::now().as_seconds();
        assert!((90 * day - 60..=90 * day).contains(&kept), "{item}");
    }
    // Expired, but not dropped by DynamoDB yet.
    for mut item in items {
        item["expires_at"] = json!(Timestamp::now().as_seconds() - day);
        world.aws.put("threads", &item);
    }
    assert_eq!(world.threads(&user, "GET", "/main").await.status, 404);
    assert_eq!(world.threads(&user, "GET", "").await.expect(200)["items"], json!([]));
    world.llm.clear_requests();
    say(&world, &user, "main", "Hello again").await;
    assert_eq!(said(&world.asked_of_model()[0]).len(), 2, "the system's message and the new one");
    assert_eq!(world.threads(&user, "GET", "/main").await.expect(200)["messages"], 2);
}

#[tokio::test]
async fn an_expired_message_of_a_thread_that_goes_on_is_hidden() {
    let world = World::start().await;
    let user = world.home.user_id.clone();
    say(&world, &user, "main", "My secret is blue").await;
    // Expired, but not dropped by DynamoDB yet.
    for mut item in world.aws.rows("threads").into_iter().filter(|item| item["part"] != "thread") {
        item["expires_at"] = json!(Timestamp::now().as_seconds() - 1);
        world.aws.put("threads", &item);
    }
    world.llm.clear_requests();
    say(&world, &user, "main", "Hello").await;
    assert!(!world.asked_of_model()[0].to_string().contains("blue"));
    let shown = world.threads(&user, "GET", "/main").await.expect(200);
    assert_eq!(contents(&shown), ["You said: Hello", "Hello"]);
}

#[tokio::test]
async fn two_messages_at_the_same_moment_are_answered_one_after_the_other() {
    let world = World::start().await;
    // The first request takes the first two turns of the script.
    let turn = |number: u32| [Way::Written.none(), Turn::text(&format!("Answer {number}"))];
    world.llm.script((1..=3).flat_map(turn));
    let bodies = [1, 2, 3].map(|number| json!({"message": format!("Message {number}")}));
    let answers = join_all(bodies.iter().map(|body| world.chat_with(body))).await;
    assert!(answers.iter().all(|answer| answer.status == 200), "{answers:?}");
    let shown = world.threads(&world.home.user_id, "GET", "/default").await.expect(200);
    let mut said: Vec<String> = contents(&shown);
    said.reverse();
    assert_eq!((said.len(), &shown["turns"]), (6, &json!(3)));
    assert_eq!([&said[1], &said[3], &said[5]], ["Answer 1", "Answer 2", "Answer 3"]);
    assert!([0, 2, 4].iter().all(|at| said[*at].starts_with("Message ")), "{said:?}");
}

#[tokio::test]
async fn messages_to_an_expired_thread_at_the_same_moment_are_all_answered_in_a_new_one() {
    let world = World::start().await;
    let user = world.home.user_id.clone();
    for round in 0..3 {
        say(&world, &user, "default", "Hello").await;
        let expire = || {
            for mut item in world.aws.rows("threads") {
                item["expires_at"] = json!(Timestamp::now().as_seconds() - 1);
                world.aws.put("threads", &item);
            }
        };
        expire();
        // A deletion that stops halfway lets go of the thread.
        world.aws.inject(aws::Fault::throttled("BatchWriteItem", "threads"));
        assert_eq!(world.chat("Hello").await.status, 503);
        assert!(world.aws.rows("threads").iter().all(|row| row.get("lease_token").is_none()));

        let turn = |number: u32| [Way::Written.none(), Turn::text(&format!("Answer {number}"))];
        world.llm.script((1..=3).flat_map(turn));
        let bodies = [1, 2, 3].map(|number| json!({"message": format!("Message {number}")}));
        let answers = join_all(bodies.iter().map(|body| world.chat_with(body))).await;
        assert!(answers.iter().all(|answer| answer.status == 200), "{round}: {answers:?}");
        let shown = world.threads(&user, "GET", "/default").await.expect(200);
        assert_eq!((shown["items"].as_array().unwrap().len(), &shown["turns"]), (6, &json!(3)), "{round}");
        expire();
    }
}

/// A thread of this name with messages, as turns would have stored them.
fn stored_thread(world: &World, name: &str, messages: u32) {
    let organization: OrganizationId = world.home.organization_id.parse().unwrap();
    let user = UserId::new(&world.home.user_id);
    let id = ThreadId::of_name(organization, &user, name);
    let now = Timestamp::now();
    let later = now.as_seconds() + 1_000_000;
    world.aws.put(
        "threads",
        &json!({
            "id": id, "part": "thread", "owner": format!("{organization}#{user}"), "organization_id": organization,
            "user_id": user, "name": name, "title": "x", "turns": messages / 2, "messages": messages,
            "created_at": now, "updated_at": now, "expires_at": later,
        }),
    );
    for number in 1..=messages {
        let role = if number % 2 == 1 { "user" } else { "assistant" };
        world.aws.put(
            "threads",
            &json!({
                "id": id, "part": format!("m#{number:06}"), "number": number, "turn": number.div_ceil(2), "role": role,
                "content": format!("Message {number}"), "created_at": now, "expires_at": later,
            }),
        );
    }
}

#[tokio::test]
async fn a_long_conversation_is_summarized_once_and_nothing_is_lost() {
    let world = World::start().await;
    stored_thread(&world, "long", 70);
    let user = world.home.user_id.clone();
    world.llm.script([Turn::text("They spoke of 54 things."), Way::Written.none(), Turn::text("Yes.")]);
    let body = json!({"message": "Do you remember?", "thread_id": "long"});
    let answer = world.chat_with(&body).await.expect(200);
    assert_eq!((&answer["message"], &answer["metadata"]["summarized"]), (&json!("Yes."), &json!(true)));
    let asked = world.asked_of_model();
    assert!(said(&asked[0]).join("\n").contains("Message 54") && !said(&asked[0]).join("\n").contains("Message 55"));
    let plan = said(&asked[1]);
    let marker = "\n\n[Summary of the earlier messages of this conversation]\nThey spoke of 54 things.";
    assert!(plan[0].starts_with("system: ") && plan[0].contains(marker), "{plan:#?}");
    assert!(plan.contains(&"user: Message 55".to_owned()) && !plan.contains(&"assistant: Message 54".to_owned()));
    let shown = world.threads(&user, "GET", "/long?limit=200").await.expect(200);
    assert_eq!((shown["items"].as_array().unwrap().len(), &shown["summary"]["until"]), (72, &json!(54)));
    // The next turn has it already.
    world.llm.clear_requests();
    world.llm.script([Way::Written.none(), Turn::text("Still.")]);
    let answer = world.chat_with(&body).await.expect(200);
    assert_eq!((&answer["metadata"]["summarized"], world.asked_of_model().len()), (&json!(false), 2));
    assert!(said(&world.asked_of_model()[0])[0].contains(marker));
}

/// Each attempt is paid for.
#[tokio::test]
async fn an_unusable_summary_replaces_nothing_and_is_asked_for_again_16_messages_later() {
    let ended = |reason: &str| Turn { finish_reason: Some(reason.to_owned()), ..Turn::text("They spoke of") };
    let refusal =
        json!({"choices": [{"message": {"content": null, "refusal": "I will not."}, "finish_reason": "stop"}]});
    let refused = Turn { body: Some(refusal), ..Turn::default() };
    for unusable in [ended("length"), ended("content_filter"), refused, Turn::text(" ")] {
        let world = World::start().await;
        stored_thread(&world, "long", 70);
        let user = world.home.user_id.clone();
        world.llm.script([unusable, Way::Written.none(), Turn::text("Yes.")]);
        let body = json!({"message": "Do you remember?", "thread_id": "long"});
        let answer = world.chat_with(&body).await.expect(200);
        assert_eq!((&answer["message"], &answer["metadata"]["summarized"]), (&json!("Yes."), &json!(false)));
        assert!(said(&world.asked_of_model()[1]).contains(&"user: Message 1".to_owned()));
        let row = world.aws.rows("threads").into_iter().find(|row| row["part"] == "thread").unwrap();
        assert_eq!(row.get("summary"), None, "{row}");
        for turn in 2..=8 {
            world.llm.clear_requests();
            say(&world, &user, "long", &format!("Message of turn {turn}")).await;
            assert_eq!(world.asked_of_model().len(), 2, "{turn}");
        }
        world.llm.script([Turn::text("They spoke of 70 things."), Way::Written.none(), Turn::text("Yes.")]);
        assert_eq!(world.chat_with(&body).await.expect(200)["metadata"]["summarized"], true);
    }
}

#[tokio::test]
async fn a_summary_that_does_not_come_in_time_is_put_off_and_one_refused_for_a_moment_is_not() {
    let status = |status: u16| Standin::status(status).with_header("retry-after", "600");
    for (fault, unused, is_put_off) in [
        (Standin::delay(3_000), Some(Turn::text("They spoke of 54 things.")), true),
        (status(504), None, true),
        (status(503), None, false),
        (status(429), None, false),
    ] {
        // Two of the ten seconds are the summary's.
        let world =
            World::with(Options { variables: vec![("TURN_SECONDS", "10".to_owned())], ..Options::default() }).await;
        stored_thread(&world, "long", 70);
        world.llm.inject(fault.clone());
        world.llm.script(unused.into_iter().chain([Way::Written.none(), Turn::text("Yes.")]));
        let body = json!({"message": "Do you remember?", "thread_id": "long"});
        let answer = world.chat_with(&body).await.expect(200);
        assert_eq!(
            (&answer["message"], &answer["metadata"]["summarized"]),
            (&json!("Yes."), &json!(false)),
            "{fault:?}"
        );
        let asked = world.asked_of_model().len();
        assert_eq!(asked, 3, "{fault:?}");

        let summary = (!is_put_off).then(|| Turn::text("They spoke of 56 things."));
        world.llm.script(summary.into_iter().chain([Way::Written.none(), Turn::text("Still.")]));
        let answer = world.chat_with(&json!({"message": "And now?", "thread_id": "long"})).await.expect(200);
        let wanted = (&json!("Still."), &json!(!is_put_off));
        assert_eq!((&answer["message"], &answer["metadata"]["summarized"]), wanted, "{fault:?}");
        assert_eq!(world.asked_of_model().len() - asked, 2 + usize::from(!is_put_off), "{fault:?}");
    }
}

#[tokio::test]
async fn a_repeated_request_gets_its_answer_when_its_message_is_summarized() {
    let world = World::start().await;
    send(&world).await;
    let event = |message: &str| {
        let event = Event::post("/agent/chat", &json!({"message": message, "thread_id": "long"}));
        event.user(&world.home.user_id).header("idempotency-key", "k1")
    };
    world.llm.script([Way::Written.call("send_confirmation", json!({"text": "Hi"})), Turn::text("It is sent.")]);
    let first = world.send("chat", &event("Send Hi")).await.expect(200);
    let rows = world.aws.rows("threads");
    let part = |name: &str| rows.iter().find(|row| row["part"] == name).unwrap().clone();
    for number in 3..=40 {
        let mut message = part("m#000001");
        message.as_object_mut().unwrap().remove("request");
        message["part"] = json!(format!("m#{number:06}"));
        message["number"] = json!(number);
        world.aws.put("threads", &message);
    }
    let mut thread = part("thread");
    thread["messages"] = json!(40);
    thread["summary"] = json!({"text": "They sent Hi.", "until": 30, "at": thread["created_at"]});
    world.aws.put("threads", &thread);

    let asked = world.asked_of_model().len();
    assert_eq!(world.send("chat", &event("Send Hi")).await.expect(200), first);
    assert_eq!((world.asked_of_model().len(), sent(&world)), (asked, 1));
    assert_eq!(world.send("chat", &event("Send Hello")).await.status, 409);
    // The name goes with the thread.
    assert_eq!(world.threads(&world.home.user_id, "DELETE", "/long").await.status, 204);
    assert_eq!(world.aws.rows("threads"), Vec::<Value>::new());
}

#[tokio::test]
async fn a_turn_that_meets_other_transactions_goes_on() {
    let world = World::start().await;
    let user = world.home.user_id.clone();
    say(&world, &user, "main", "Hello").await;
    for action in ["UpdateItem", "TransactWriteItems"] {
        world.aws.inject(aws::Fault::new(action, "threads", aws::Trouble::TransactionConflict).times(3));
        say(&world, &user, "main", "Hello again").await;
        assert_eq!(world.aws.faults_left(), 0, "{action}");
    }
    assert_eq!(world.threads(&user, "GET", "/main").await.expect(200)["messages"], 6);
}

#[tokio::test]
async fn a_lease_whose_answer_was_lost_is_withdrawn() {
    let world = World::start().await;
    let user = world.home.user_id.clone();
    say(&world, &user, "main", "Hello").await;
    // Each attempt of the SDK.
    world.aws.inject(aws::Fault::new("UpdateItem", "threads", aws::Trouble::DropAfter).times(3));
    let lost = world.chat_as(&user, &json!({"message": "Hello again", "thread_id": "main"})).await;
    assert_eq!((lost.status, world.aws.faults_left()), (503, 0), "{}", lost.body);
    let rows = world.aws.rows("threads");
    assert!(rows.iter().all(|row| row.get("lease_token").is_none()), "{rows:?}");
    say(&world, &user, "main", "Hello again").await;
}

#[tokio::test]
async fn five_hundred_messages_are_one_query() {
    let world = World::start().await;
    stored_thread(&world, "long", 500);
    world.aws.clear_operations();
    world.llm.script([Turn::text("Much."), Way::Written.none(), Turn::text("Yes.")]);
    world.chat_with(&json!({"message": "Hi", "thread_id": "long"})).await.expect(200);
    let queries = world.aws.dynamodb().into_iter().filter(|operation| {
        let operation = format!("{operation:?}");
        operation.contains("Query") && operation.contains("-threads")
    });
    assert_eq!(queries.count(), 1);
}

#[tokio::test]
async fn messages_older_than_a_snapshot_are_pages_of_the_thread() {
    let world = World::start().await;
    stored_thread(&world, "long", 230);
    let events = world.connect("long").await.rest().await;
    let snapshot = events.iter().find(|event| event["type"] == "MESSAGES_SNAPSHOT").unwrap();
    let shown = snapshot["messages"].as_array().unwrap();
    assert_eq!((shown.len(), &shown[0]["role"], &shown[1]["content"]), (201, &json!("system"), &json!("Message 31")));
    let cursor = text(&shown[0]["metadata"]["next_cursor"]);
    let older = world.threads(&world.home.user_id, "GET", &format!("/long?cursor={cursor}")).await.expect(200);
    let numbers: Vec<u64> =
        older["items"].as_array().unwrap().iter().map(|item| item["number"].as_u64().unwrap()).collect();
    assert_eq!((numbers, &older["next_cursor"]), ((1..=30).rev().collect(), &Value::Null));
}
