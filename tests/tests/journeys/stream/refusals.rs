//! Refusals come before the head: with a status, and without effects.

use serde_json::{Value, json};
use tests::{Event, Options, World, run_input, standins::llm::Turn};

use crate::chat::Way;

const RUN: &str = "/copilotkit/agent/default/run";

#[tokio::test]
async fn a_token_is_needed_and_says_who_asks() {
    let world = World::start().await;
    let user = &world.home.user_id;
    let input = run_input("t1", "u1", "Hi");
    let claims = |changes: Value| {
        let mut claims = world.issuer.claims(user);
        for (name, value) in changes.as_object().unwrap() {
            claims[name.as_str()] = value.clone();
        }
        world.issuer.signed("es256", &claims)
    };
    let expired = claims(json!({"exp": 1}));
    let of_others = claims(json!({"aud": "somebody"}));
    let of_another = claims(json!({"iss": "https://evil.example"}));
    let (good, another) = (world.issuer.token(user), world.issuer.token("somebody"));
    let (said, signature) = (good.rsplit_once('.').unwrap().0, another.rsplit_once('.').unwrap().1);
    let tampered = format!("{said}.{signature}");
    for (token, why) in [
        (None, None),
        (Some(expired), Some("the token has expired")),
        (Some(of_others), Some("the token was made for another audience")),
        (Some(of_another), Some("the token is of another issuer")),
        (Some(tampered), Some("the token's signature is wrong")),
        (Some("not.a.token".to_owned()), Some("the token cannot be read")),
    ] {
        let event = Event::post(RUN, &input);
        // An authorizer's claims do not count here: anybody can reach this function.
        let event = event.user(user);
        let event = match &token {
            Some(token) => event.header("authorization", &format!("Bearer {token}")),
            None => event,
        };
        let refused = world.send("stream", &event).await;
        assert_eq!((refused.status, &refused.body["code"]), (401, &json!("unauthenticated")), "{why:?}");
        let challenge = &refused.headers["www-authenticate"];
        match why {
            None => assert_eq!(challenge, "Bearer"),
            Some(why) => assert!(
                challenge.starts_with("Bearer error=\"invalid_token\"") && challenge.contains(why),
                "{challenge}"
            ),
        }
    }
    assert_eq!((world.asked_of_model().len(), world.aws.rows("threads").len()), (0, 0));

    // The issuer's keys are out of reach: that is nobody's fault who asks.
    let mut world = World::start().await;
    world.issuer.breaks(true);
    world.restart();
    let refused = world.send("stream", &world.stream_event(&world.home.user_id, RUN, &input)).await;
    assert!(refused.status >= 500, "{}", refused.body);
}

#[tokio::test]
async fn the_address_of_the_api_is_an_audience_of_its_own() {
    let world = World::start().await;
    let mut claims = world.issuer.claims(&world.home.user_id);
    for (address, status) in [
        ("https://stream.switchboard.example/live", 200),
        ("https://stream.switchboard.example", 401),
        ("https://api.switchboard.example", 401),
    ] {
        claims["aud"] = json!(address);
        let token = world.issuer.signed("es256", &claims);
        let event = Event::get("/copilotkit/info").header("authorization", &format!("Bearer {token}"));
        world.send("stream", &event).await.expect(status);
    }
}

#[tokio::test]
async fn the_endpoint_of_the_api_stays_an_audience_beside_a_public_address() {
    let variables = vec![("STREAM_PUBLIC_URL", "https://chat.acme.example".to_owned())];
    let world = World::with(Options { variables, ..Options::default() }).await;
    let mut claims = world.issuer.claims(&world.home.user_id);
    for (address, status) in [
        ("https://chat.acme.example", 200),
        ("https://stream.switchboard.example/live", 200),
        ("https://elsewhere.example", 401),
    ] {
        claims["aud"] = json!(address);
        let token = world.issuer.signed("es256", &claims);
        let event = Event::get("/copilotkit/info").header("authorization", &format!("Bearer {token}"));
        world.send("stream", &event).await.expect(status);
    }
}

/// Names of headers as the client wrote them, repeated ones as lists beside the last value, a body of bytes, a path without its stage.
#[tokio::test]
async fn a_request_is_read_as_a_rest_api_hands_it_on() {
    let world = World::start().await;
    world.llm.script([Turn::text(r#"{"tool": "none"}"#), Turn::text("Hello!")]);
    let bearer = format!("Bearer {}", world.issuer.token(&world.home.user_id));
    let (home, other) = (&world.home.slug, &world.other.slug);
    let mut event = Event::new("POST", "/agent/stream").to_rest_json();
    event["headers"] = json!({"Authorization": bearer, "X-Organization": home, "Content-Type": "application/json"});
    event["multiValueHeaders"] = json!({
        "Authorization": [bearer], "X-Organization": [other, home], "Content-Type": ["application/json"],
    });
    event["queryStringParameters"] = json!({"x": "1"});
    event["multiValueQueryStringParameters"] = json!({"x": ["0", "1"]});
    // {"message": "Hello"}
    event["body"] = json!("eyJtZXNzYWdlIjogIkhlbGxvIn0=");
    event["isBase64Encoded"] = json!(true);
    let answer = world.send_json("stream", &event).await;
    assert_eq!((answer.status, answer.content_type.as_str()), (200, "text/event-stream"), "{}", answer.body);
    assert!(answer.body.as_str().unwrap().contains("Hello!"), "{}", answer.body);
    let asked = world.asked_of_model();
    assert!(asked.iter().any(|request| request.to_string().contains("Hello")), "{asked:?}");
}

#[tokio::test]
async fn the_person_is_who_the_token_says() {
    let world = World::start().await;
    let mut claims = world.issuer.claims(&world.home.user_id);
    claims["email"] = json!("ada@harbour.example");
    for (verified, known) in [(json!(null), true), (json!(true), true), (json!(false), false), (json!("false"), false)]
    {
        claims["email_verified"] = verified.clone();
        let token = world.issuer.signed("es256", &claims);
        let mut input = run_input(&format!("t {verified}"), "u1", "Hi");
        input["forwardedProps"] = json!({"user_id": "somebody", "email": "m@m.example"});
        let event = Event::post(RUN, &input).header("authorization", &format!("Bearer {token}"));
        world.llm.clear_requests();
        world.llm.script([Way::Written.none(), Turn::text("Hello!")]);
        assert_eq!(world.open_stream(&event).await.rest().await.last().unwrap()["type"], "RUN_FINISHED");
        let told = world.asked_of_model()[0].to_string();
        assert_eq!((told.contains("ada@harbour.example"), told.contains("m@m.example")), (known, false), "{verified}");
    }
}

#[tokio::test]
async fn the_organization_and_the_role_decide() {
    let world = World::start().await;
    let input = run_input("t1", "u1", "Hi");
    let viewer = world.member(&world.home, Some("viewer"));
    let refused = world.send("stream", &world.stream_event(&viewer, RUN, &input)).await;
    assert_eq!((refused.status, &refused.body["code"]), (403, &json!("forbidden")));
    for slug in [world.other.slug.as_str(), "nobody"] {
        let event = world.stream_event(&world.home.user_id, RUN, &input).header("x-organization", slug);
        let refused = world.send("stream", &event).await;
        assert_eq!((refused.status, &refused.body["detail"]), (404, &json!("organization not found")), "{slug}");
    }
    let row = json!({"user_id": world.home.user_id, "organization_id": world.other.organization_id, "role": "member"});
    world.aws.put("organization_members", &row);
    let refused = world.send("stream", &world.stream_event(&world.home.user_id, RUN, &input)).await;
    assert_eq!(refused.status, 400);
    let detail = refused.body["detail"].as_str().unwrap();
    assert!(detail.contains(&world.home.slug) && detail.contains(&world.other.slug), "{detail}");
    let event = world.stream_event(&world.home.user_id, RUN, &input).header("x-organization", &world.other.slug);
    world.llm.script([Way::Written.none(), Turn::text("Hello!")]);
    assert_eq!(world.open_stream(&event).await.rest().await.last().unwrap()["type"], "RUN_FINISHED");
}

#[tokio::test]
async fn a_thread_is_its_users_own() {
    let world = World::start().await;
    let thread = "5f0c1a7e-8f5c-4c0e-9f0e-000000000009";
    world.llm.script([Way::Written.none(), Turn::text("Hello!")]);
    world.run_agent(&run_input(thread, "u1", "A secret")).await.rest().await;
    let colleague = world.member(&world.home, Some("owner"));
    let input = run_input(thread, "u1", "Hi");
    let refused = world.send("stream", &world.stream_event(&colleague, RUN, &input)).await;
    assert_eq!((refused.status, &refused.body["detail"]), (404, &json!("thread not found")));
    // For a reader it is a thread without messages.
    let connect = json!({"threadId": thread, "runId": "r", "messages": []});
    let event = world.stream_event(&colleague, "/copilotkit/agent/default/connect", &connect);
    let mut stream = world.open_stream(&event).await;
    assert_eq!(super::types(&stream.rest().await), ["RUN_STARTED", "RUN_FINISHED"]);
    let path = format!("/copilotkit/agent/default/stop/{thread}");
    let stopped = world.send("stream", &world.stream_event(&colleague, &path, &json!({}))).await.expect(200);
    assert_eq!(stopped, json!({"stopped": false}));
}

#[tokio::test]
async fn a_body_that_cannot_be_used_is_named() {
    let world = World::start().await;
    let send = async |path: &str, body: &Value| {
        world.send("stream", &world.stream_event(&world.home.user_id, path, body)).await
    };
    for path in [RUN, "/copilotkit/stream", "/copilotkit/agent/default/connect"] {
        assert_eq!(
            send(path, &json!({"runId": "r"})).await.wrong_fields()[0],
            if path.ends_with("connect") { "threadId" } else { "messages" }
        );
    }
    let mut input = run_input("t1", "u1", "Hi");
    input["tools"] = json!([{"name": "no good name"}]);
    assert_eq!(send(RUN, &input).await.wrong_fields(), ["tools[0].name"]);
    assert_eq!(send("/agent/stream", &json!({"message": "x", "user": "y"})).await.wrong_fields(), ["user"]);
    for path in [RUN, "/copilotkit/stream", "/agent/stream", "/copilotkit"] {
        let event = world.stream_event(&world.home.user_id, path, &json!({})).text("{");
        assert_eq!(world.send("stream", &event).await.expect(400)["code"], "malformed", "{path}");
    }
    let called = json!({"method": "agent/run", "params": {"agentId": "default"}, "body": {"threadId": "t"}});
    assert_eq!(send("/copilotkit", &called).await.wrong_fields(), ["body.messages"]);
    for method in ["agent/dance", "", "transcribe"] {
        let refused = send("/copilotkit", &json!({"method": method})).await.expect(400);
        assert_eq!(refused["error"], "invalid_request", "{method}");
    }
    for path in ["/copilotkit/agent/other/run", "/copilotkit/agent/other/connect", "/copilotkit/agent/other/stop/t1"] {
        let refused = send(path, &run_input("t1", "u1", "Hi")).await.expect(404);
        assert_eq!(refused["error"], "Agent not found", "{path}");
    }
    assert_eq!(send("/copilotkit/agent/default/dance", &json!({})).await.expect(404)["detail"], "route not found");
    assert_eq!((world.asked_of_model().len(), world.aws.rows("threads").len()), (0, 0));
}

#[tokio::test]
async fn a_used_up_budget_is_reported_before_other_errors() {
    let world = World::start().await;
    world.aws.change(
        "organizations",
        &world.home.organization_id,
        json!({"budgets": {"platform_cost_per_month": 0.0}}),
    );
    let path = "/agent/stream";
    let refused = world.send("stream", &world.stream_event(&world.home.user_id, path, &json!({"message": "Hi"}))).await;
    assert_eq!((refused.status, refused.retry_after.is_some()), (429, true), "{}", refused.body);
}
