//! Access to the chat, the choice of the organization, and the second route.

use serde_json::{Value, json};
use tests::{Event, World, standins::llm::Turn};

use super::{Way, find, said, text};

fn script(world: &World) {
    world.llm.script([Way::Written.none(), Turn::text("Hello!")]);
}

#[tokio::test]
async fn the_organization_is_the_only_one_or_the_one_that_is_named() {
    let world = World::start().await;
    let (home, other) = (&world.home, &world.other);
    script(&world);
    world.chat("Hi").await.expect(200);
    let named = |slug: &str, user: &str| {
        Event::post("/agent/chat", &json!({"message": "Hi"})).user(user).header("x-organization", slug)
    };
    script(&world);
    world.send("chat", &named(&home.slug, &home.user_id)).await.expect(200);
    // Another organization and a missing one get the same answer.
    for slug in [other.slug.as_str(), "nobody", "*"] {
        let refused = world.send("chat", &named(slug, &home.user_id)).await;
        assert_eq!((refused.status, text(&refused.body["detail"])), (404, "organization not found"), "{slug}");
    }
    let row = json!({"user_id": home.user_id, "organization_id": other.organization_id, "role": "member"});
    world.aws.put("organization_members", &row);
    let which = world.chat("Hi").await;
    assert_eq!((which.status, &which.body["code"]), (400, &json!("malformed")));
    let mut slugs = [home.slug.clone(), other.slug.clone()];
    slugs.sort();
    let detail = text(&which.body["detail"]);
    assert!(detail.contains("X-Organization") && detail.ends_with(&slugs.join(", ")), "{detail}");
    // The same name is another thread in the other organization.
    script(&world);
    let answer = world.send("chat", &named(&other.slug, &home.user_id)).await.expect(200);
    assert_eq!(answer["thread_id"], "default");
    assert_eq!(world.aws.rows("threads").iter().filter(|item| item["part"] == "thread").count(), 2);
    let stranger = world.chat_as("user|nobody", &json!({"message": "Hi"})).await;
    assert_eq!((stranger.status, text(&stranger.body["detail"])), (404, "organization not found"));
}

#[tokio::test]
async fn the_user_is_the_subject_of_the_token() {
    let world = World::start().await;
    find(&world).await;
    for body in [json!({"message": "Hi", "user_id": "user|somebody"}), json!({"message": "Hi", "user_context": {}})] {
        assert_eq!(world.chat_with(&body).await.status, 422, "{body}");
    }
    let mut event = Event::post("/agent/chat", &json!({"message": "Hi", "metadata": {"user_email": "m@m.example"}}))
        .user(&world.home.user_id)
        .header("x-user-id", "user|somebody")
        .header("x-user-role", "owner")
        .to_json();
    event["requestContext"]["authorizer"]["jwt"]["claims"]["email"] = json!("ada@harbour.example");
    script(&world);
    world.send_json("chat", &event).await.expect(200);
    let row = world.aws.rows("threads").into_iter().find(|item| item["part"] == "thread").unwrap();
    assert_eq!(row["user_id"], json!(world.home.user_id));
    let told = said(&world.asked_of_model()[0]).join("\n");
    assert!(told.contains("e-mail ada@harbour.example") && !told.contains("m@m.example"), "{told}");
    // An unverified address does not count.
    event["requestContext"]["authorizer"]["jwt"]["claims"]["email_verified"] = json!("false");
    world.llm.clear_requests();
    script(&world);
    world.send_json("chat", &event).await.expect(200);
    assert!(!said(&world.asked_of_model()[0]).join("\n").contains("ada@harbour.example"));
}

#[tokio::test]
async fn a_copilotkit_action_is_the_same_turn_in_its_own_shape() {
    let world = World::start().await;
    let act = async |body: &Value| {
        world.send("chat", &Event::post("/copilotkit/action", body).user(&world.home.user_id)).await
    };
    script(&world);
    let body = json!({"action": "chat", "parameters": {"message": "Hi", "conversation_id": "main"}});
    let answer = act(&body).await.expect(200);
    let result = &answer["result"];
    let told = (&result["type"], &result["content"], &result["role"]);
    assert_eq!(told, (&json!("response"), &json!("Hello!"), &json!("assistant")));
    let metadata = &result["metadata"];
    let told = (&metadata["conversation_id"], &metadata["iteration_count"], &metadata["current_step"]);
    assert_eq!(told, (&json!("main"), &json!(1), &json!("validate")));
    assert_eq!((answer.get("widget"), result.get("widget")), (Some(&Value::Null), None));
    world.threads(&world.home.user_id, "GET", "/main").await.expect(200);
    for unknown in [json!({"action": "dance", "message": "Hi"}), json!({"message": "Hi"}), json!({"action": 7})] {
        let refused = act(&unknown).await;
        assert_eq!((refused.status, &refused.body["code"]), (400, &json!("malformed")), "{unknown}");
    }
    assert_eq!(act(&json!({"action": "chat"})).await.wrong_fields(), ["message"]);
}

#[tokio::test]
async fn an_actions_list_of_messages_is_read_as_the_stream_reads_it() {
    let world = World::start().await;
    let act = async |body: &Value| {
        world.send("chat", &Event::post("/copilotkit/action", body).user(&world.home.user_id)).await
    };
    let parts = json!([{"type": "text", "text": "What are"}, {"type": "text", "text": "the sales?"}]);
    let messages = json!([{"role": "user", "content": parts}]);
    for body in [
        json!({"action": "chat", "messages": messages}),
        json!({"action": "chat", "parameters": {"message": "", "frontend": "x"}, "messages": messages}),
    ] {
        world.llm.clear_requests();
        script(&world);
        act(&body).await.expect(200);
        let told = said(&world.asked_of_model()[0]).join("\n");
        assert!(told.contains("What are\nthe sales?"), "{told}");
    }
    let long = json!({"action": "chat", "messages": [{"role": "user", "content": "x".repeat(32_001)}]});
    let refused = act(&long).await;
    assert_eq!(refused.wrong_fields(), ["messages[0].content"]);
    assert!(text(&refused.body["errors"][0]["problem"]).contains("at most 32000 characters"), "{}", refused.body);
}

/// The thread stands beside the action, as first-version clients send it.
#[tokio::test]
async fn threads_of_two_customers_never_meet_however_an_action_names_them() {
    let world = World::start().await;
    for (customer, body) in [
        ("a", json!({"action": "chat", "thread_id": "a", "parameters": {"message": "I am Ana"}})),
        ("b", json!({"action": "chat", "threadId": "b", "arguments": {"message": "I am Bo"}})),
        ("c", json!({"action": "chat", "conversation_id": "c", "message": "I am Cy"})),
    ] {
        world.llm.clear_requests();
        script(&world);
        let event = Event::post("/copilotkit/action", &body).user(&world.home.user_id);
        let answer = world.send("chat", &event).await.expect(200);
        assert_eq!(answer["result"]["metadata"]["conversation_id"], json!(customer), "{body}");
        let told = said(&world.asked_of_model()[0]).join("\n");
        assert_eq!(told.matches("I am ").count(), 1, "only its own words: {told}");
    }
    world.threads(&world.home.user_id, "GET", "/default").await.expect(404);
    let both = json!({"action": "chat", "thread_id": "a", "parameters": {"message": "x", "thread_id": "b"}});
    let refused = world.send("chat", &Event::post("/copilotkit/action", &both).user(&world.home.user_id)).await;
    assert_eq!(refused.wrong_fields(), ["thread_id"]);
}

#[tokio::test]
async fn wrong_fields_of_a_body_are_named() {
    let world = World::start().await;
    for (body, wrong) in [
        (json!({}), vec!["message"]),
        (json!({"message": " "}), vec!["message"]),
        (json!({"message": "x", "thread_id": "t".repeat(201)}), vec!["thread_id"]),
    ] {
        assert_eq!(world.chat_with(&body).await.wrong_fields(), wrong, "{body}");
    }
    let unreadable = Event::new("POST", "/agent/chat").user(&world.home.user_id).text("{");
    assert_eq!(world.send("chat", &unreadable).await.status, 400);
    assert!(world.aws.rows("threads").is_empty() && world.asked_of_model().is_empty());
}
