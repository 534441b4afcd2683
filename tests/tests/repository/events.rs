//! `events/<function>.json`: a real API Gateway event per function, on the demo data of `infra/local`.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

use secrecy::ExposeSecret;
use serde_json::{Value, json};
use tests::{Answer, Options, Template, Tenant, World, standins::llm::Turn};

fn read(path: &str) -> Value {
    let path = format!("{}/../{path}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn event(function: &str) -> Value {
    read(&format!("events/{function}.json"))
}

fn functions() -> Vec<String> {
    let mut functions: Vec<String> = Template::read().routes().into_iter().map(|route| route.function).collect();
    functions.sort();
    functions.dedup();
    functions
}

fn body(event: &Value) -> Value {
    serde_json::from_str(event["body"].as_str().unwrap()).unwrap()
}

/// The demo organization as the local stack seeds it, with the events' user as a member.
async fn demo() -> World {
    let data = read("infra/local/demo.json");
    let text = |path: &str| data.pointer(path).and_then(Value::as_str).unwrap_or_else(|| panic!("{path}")).to_owned();
    let user = event("list-tools")["requestContext"]["authorizer"]["jwt"]["claims"]["sub"].as_str().unwrap().to_owned();
    let home = Tenant {
        organization_id: text("/organization/id"),
        user_id: user,
        agent_id: text("/agent/id"),
        phone_number_id: text("/phone_number/id"),
        twilio_sid: text("/twilio/account_sid"),
        twilio_token: text("/twilio/auth_token"),
        ..Tenant::new(&text("/organization/slug"), &text("/phone_number/number"))
    };
    let token_secret = json!({"current": text("/tool_token_key")});
    // The event's signature covers this address: the local stack on its default ports.
    let public_url = "http://127.0.0.1:4500".to_owned();
    let world = World::with(Options { home, token_secret, public_url, ..Options::default() }).await;
    for tool in data["tools"].as_array().unwrap() {
        world.aws.put("tools", tool);
    }
    let (hook, organization) = (&data["hook"], &world.home.organization_id);
    let now = shared::models::Timestamp::now();
    world.aws.put(
        "hooks",
        &json!({
            "id": hook["id"], "organization_id": organization, "service": hook["service"], "status": "active",
            "secrets": [{"id": hook["secret_id"], "created_at": now}], "revision": 0, "created_at": now, "updated_at": now,
        }),
    );
    let (id, secret) = (hook["id"].as_str().unwrap(), hook["secret_id"].as_str().unwrap());
    let name = format!("switchboard/organizations/hooks/{organization}/{id}/{secret}");
    world.aws.put_secret(&name, &json!({"secret": hook["secret"]}));
    world
}

/// Sends a function its event, completed with a currently valid token and the model's answers.
async fn answer(world: &World, function: &str) -> Answer {
    let mut event = event(function);
    if ["mcp", "stream"].contains(&function) {
        // Without an authorizer the function checks the token itself.
        let bearer = format!("Bearer {}", world.issuer.token(&world.home.user_id));
        event["headers"]["authorization"] = bearer.into();
    }
    if ["chat", "stream"].contains(&function) {
        world.llm.script([Turn::text(r#"{"tool": "none"}"#), Turn::text("Three.")]);
    }
    world.send_json(function, &event).await
}

#[tokio::test]
async fn every_functions_event_is_answered_with_success() {
    for function in functions().into_iter().chain(["stream".to_owned()]) {
        let world = demo().await;
        if function == "detach" {
            world.send_json("attach", &event("attach")).await.expect(201);
        }
        if function == "calls" {
            world.send_json("execute", &event("execute")).await.result();
        }
        let answer = answer(&world, &function).await;
        assert!((200..300).contains(&answer.status), "{function}: {} {}", answer.status, answer.body);
        assert!(function != "call-start" || answer.content_type == "text/xml", "{}", answer.content_type);
        assert!(answer.body.get("success").is_none_or(|success| success == true), "{function}: {}", answer.body);
    }
}

#[tokio::test]
async fn the_events_can_be_sent_in_any_order_and_again() {
    // These requests succeed only once.
    const ONCE: [&str; 2] = ["delete", "detach"];
    let world = demo().await;
    let mut all: Vec<String> = functions().into_iter().chain(["stream".to_owned()]).collect();
    // Some events need the results of others.
    all.sort_by_key(|function| !["attach", "execute"].contains(&function.as_str()));
    for function in &all {
        let answer = answer(&world, function).await;
        assert!((200..300).contains(&answer.status), "{function}: {} {}", answer.status, answer.body);
    }
    for function in all.iter().rev() {
        let answer = answer(&world, function).await;
        let gone = answer.status == 404 && ONCE.contains(&function.as_str());
        assert!(gone || (200..300).contains(&answer.status), "{function} again: {} {}", answer.status, answer.body);
    }
}

#[tokio::test]
async fn every_event_is_for_a_route_of_its_function() {
    let routes = Template::read().routes();
    for function in functions() {
        let event = event(&function);
        let key = event["routeKey"].as_str().unwrap();
        let route = routes.iter().find(|route| format!("{} {}", route.method, route.path) == key);
        let route = route.unwrap_or_else(|| panic!("events/{function}.json: no route {key}"));
        assert_eq!(route.function, function);
        let path =
            event["pathParameters"].as_object().unwrap().iter().fold(route.path.clone(), |path, (name, value)| {
                path.replace(&format!("{{{name}}}"), value.as_str().unwrap())
            });
        assert_eq!(event["rawPath"], path);
        assert_eq!(
            (&event["requestContext"]["http"]["path"], &event["requestContext"]["routeKey"]),
            (&json!(path), &json!(key))
        );
        assert_eq!(event["requestContext"]["authorizer"]["jwt"].is_object(), route.jwt);
        assert_eq!((&event["version"], &event["isBase64Encoded"]), (&json!("2.0"), &json!(false)));
    }
}

#[tokio::test]
async fn the_execute_event_sends_one_sms_to_its_caller() {
    let world = demo().await;
    let event = event("execute");
    for _ in 0..2 {
        world.send_json("execute", &event).await.result();
    }
    let messages = world.twilio.messages();
    assert_eq!(messages.len(), 1);
    assert_eq!(messages[0].to, body(&event)["metadata"]["callerPhoneNumber"]);
    assert_eq!(messages[0].from, world.home.phone_number);
}

#[tokio::test]
async fn the_run_tool_event_sends_one_sms_to_its_caller() {
    let world = demo().await;
    let event = event("run-tool");
    let run: Value = serde_json::from_str(event["Records"][0]["body"].as_str().unwrap()).unwrap();
    for _ in 0..2 {
        world.aws.post("executions", &run.to_string());
        assert_eq!(world.run_queued().await, 0);
    }
    let messages = world.twilio.messages();
    assert_eq!((messages.len(), messages[0].to.as_str()), (1, run["caller"].as_str().unwrap()));
    assert_eq!(world.executions()[0]["id"], run["execution_id"]);
}

#[tokio::test]
async fn the_execute_events_token_is_that_of_its_tool_under_the_local_key() {
    let world = demo().await;
    let event = event("execute");
    let tool = event["pathParameters"]["id"].as_str().unwrap().parse().unwrap();
    let token = world.process.tokens.issue(tool).await.unwrap();
    assert_eq!(body(&event)["metadata"]["token"], token.expose_secret());
}

#[tokio::test]
async fn the_attach_event_attaches_the_demo_tool() {
    let world = demo().await;
    let event = event("attach");
    let row = world.send_json("attach", &event).await.expect(201);
    assert_eq!(row["tool_id"], body(&event)["tool_id"]);
    assert_eq!(row["agent_id"], world.home.agent_id);
}
