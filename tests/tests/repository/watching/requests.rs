//! An error's request id appears in the API's access log and in the function's log; other lines name their message, number
//! and vendor.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use shared::models::RunId;
use tests::{Event, Template, World, ai_sms, automation::AMPLE, aws, logs::Logs, phone, standins::Fault};

use super::{resource, text};

/// The ids of a request by `tests::Event`: the gateway's and the invocation's.
const OF_DOOR: &str = "JKJaXmPLvHcESHA=";
const OF_LAMBDA: &str = "8476a536-e9f4-11e8-9739-2dfe598c3fcd";

/// The access log's line of a request, as far as event and answer determine it.
fn access_log(event: &Value, status: u16) -> Value {
    let template = Template::read();
    let [stage, settings] = match event.get("resource") {
        Some(_of_rest) => ["StreamStage", "AccessLogSetting"],
        None => ["ApiStage", "AccessLogSettings"],
    };
    let settings = &resource(&template, stage)["Properties"][settings];
    let fields: Value = serde_json::from_str(text(&settings["Format"])).unwrap();
    let filled = fields.as_object().unwrap().iter().map(|(name, variable)| {
        let value = match text(variable) {
            "$context.requestId" => event["requestContext"]["requestId"].clone(),
            // AWS: the integration's request id; for Lambda, the invocation's id.
            "$context.integration.requestId" => json!(OF_LAMBDA),
            "$context.status" => json!(status.to_string()),
            "$context.routeKey"
            | "$context.httpMethod $context.resourcePath"
            | "$context.responseLatency"
            | "$context.integration.latency"
            | "$context.integration.error"
            | "$context.integrationLatency"
            | "$context.integrationErrorMessage"
            | "$context.authorizer.error"
            | "$context.error.message" => json!("-"),
            other => panic!("{other} is new in the access log: may it stand there, with nothing of a caller in it?"),
        };
        (name.clone(), value)
    });
    Value::Object(filled.collect())
}

/// The lines of our programs.
fn lines(logs: &Logs) -> Vec<Value> {
    let all = logs.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>().into_iter();
    all.filter(|line| line["level"] != "DEBUG" && line["target"].as_str().is_some_and(of_ours)).collect()
}

/// The line whose message begins so.
pub(super) fn line(logs: &Logs, begin: &str) -> Value {
    let found = lines(logs).into_iter().find(|line| text(&line["message"]).starts_with(begin));
    found.unwrap_or_else(|| panic!("no line begins with {begin:?}: {}", logs.text()))
}

/// The messages that lines are about.
fn messages(logs: &Logs) -> BTreeSet<String> {
    let of = |line: &Value| text(line.get("message.id").unwrap_or(&line["span"]["message.id"])).to_owned();
    lines(logs).iter().map(of).collect()
}

/// The lines of a request in its function's log.
fn lines_of(logs: &Logs, id: &Value) -> usize {
    let names = |line: &&Value| {
        let named = (&line["span"]["request.id"], &line["span"]["lambda.request_id"]);
        named == (id, &json!(OF_LAMBDA)) || (&line["request.id"], &line["lambda.request_id"]) == (id, &json!(OF_LAMBDA))
    };
    let all = lines(logs);
    let (mine, others): (Vec<&Value>, Vec<&Value>) = all.iter().partition(names);
    assert!(others.is_empty(), "lines that name no request: {others:?}");
    mine.len()
}

fn of_ours(target: &str) -> bool {
    ["shared::", "create_tool", "execute", "call_start", "run_loop", "run_tool", "stream"]
        .iter()
        .any(|of| target.starts_with(of))
}

#[tokio::test]
async fn a_problem_is_found_in_the_access_log_and_in_the_functions() {
    let world = World::start().await;
    let path = format!("/api/{}/tools", world.home.slug);
    let create = |body: &Value| Event::post(&path, body).user(&world.home.user_id);
    world.vapi.inject(Fault::status(401).on("POST", "/tool"));
    for (event, status) in [
        (create(&json!({"type": "nonsense"})), 422),
        (create(&ai_sms()), 502),
        (Event::post("/api/nobody/tools", &ai_sms()).user("nobody"), 404),
    ] {
        let logs = Logs::capture();
        let problem = world.send("create-tool", &event).await.expect(status);
        let logged = access_log(&event.to_json(), status);
        assert_eq!((&problem["request_id"], &logged["request_id"]), (&json!(OF_DOOR), &json!(OF_DOOR)), "{problem}");
        assert_eq!(logged["lambda_request_id"], OF_LAMBDA);
        assert!(lines_of(&logs, &problem["request_id"]) > 0, "{status}: {}", logs.text());
    }
}

/// Also lines during the request, and lines of handlers that do not answer with problem documents.
#[tokio::test]
async fn every_line_about_a_request_names_it() {
    let world = World::start().await;
    world.vapi.inject(Fault::status(404));
    let logs = Logs::capture();
    world.send("call-start", &world.incoming(&world.caller(&tests::phone(1)))).await;
    assert!(lines_of(&logs, &json!(OF_DOOR)) > 0, "{}", logs.text());
}

#[tokio::test]
async fn every_line_about_a_message_names_it() {
    let world = World::start().await;
    let mut later = ai_sms();
    later["async"] = json!(true);
    let tool = world.attached(&later).await;
    for text in ["One", "Two"] {
        world.call_tool(&world.call(&tool, json!({ "text": text }))).await.result();
        let unknown = json!({"organization_id": world.home.organization_id, "run_id": RunId::generate()});
        world.aws.post("runs", &unknown.to_string());
    }
    world.aws.delete("tools", text(&tool["id"]));
    for (function, says) in [("run-tool", "a queued execution is dropped"), ("run-loop", "a message is dropped")] {
        let logs = Logs::capture();
        let failures = if function == "run-tool" { world.run_queued().await } else { world.run_loop(AMPLE).await };
        assert_eq!(failures, 0, "{function}");
        line(&logs, says);
        assert_eq!(messages(&logs).len(), 2, "{function}: {}", logs.text());
    }
}

#[tokio::test]
async fn every_line_about_a_callers_fallback_names_the_number() {
    let world = World::start().await;
    for (action, table) in [("GetItem", "phone_numbers"), ("UpdateItem", "idempotency")] {
        world.aws.inject(aws::Fault::throttled(action, table).times(9));
        let logs = Logs::capture();
        world.send("call-start", &world.incoming(&world.caller(&phone(1)))).await.expect(200);
        let mut errors = lines(&logs);
        errors.retain(|line| line["level"] == "ERROR" && line["target"] == "call_start");
        let named = errors.iter().all(|line| line["phone_number.id"] == *world.home.phone_number_id);
        assert!(!errors.is_empty() && named, "{table}: {errors:#?}");
        world.aws.clear_faults();
    }
}

#[tokio::test]
async fn a_line_about_a_vendors_fault_names_the_vendor() {
    let world = World::start().await;
    world.vapi.inject(Fault::status(503).on("POST", "/tool").times(9));
    let logs = Logs::capture();
    assert!(world.create(&ai_sms()).await.status >= 500);
    world.vapi.clear_faults();
    world.vapi.inject(Fault::status(404));
    world.send("call-start", &world.incoming(&world.caller(&phone(1)))).await.expect(200);
    for says in ["request failed", "VAPI could not take a call"] {
        assert_eq!(line(&logs, says)["upstream.service"], "VAPI", "{says}");
    }
    world.start_run(&json!({"prompt": "Hello"})).await.expect(202);
    world.llm.inject(Fault::status(503).with_header("Retry-After", "600").times(9));
    let logs = Logs::capture();
    world.run_loop(AMPLE).await;
    assert_eq!(line(&logs, "a run cannot continue now")["upstream.service"], "the LLM");
}

#[tokio::test]
async fn a_problem_at_the_streaming_door_is_found_in_its_access_log_and_in_its_functions() {
    let world = World::start().await;
    let event = Event::post("/agent/stream", &json!({"message": "Hello"})).to_rest_json();
    let logs = Logs::capture();
    let problem = world.send_json("stream", &event).await.expect(401);
    let logged = access_log(&event, 401);
    assert_eq!((&problem["request_id"], &logged["request_id"]), (&json!(OF_DOOR), &json!(OF_DOOR)), "{problem}");
    assert_eq!(logged["lambda_request_id"], OF_LAMBDA);
    assert!(lines_of(&logs, &problem["request_id"]) > 0, "{}", logs.text());
}

/// Without a gateway, as in a direct invocation, the answer has Lambda's id.
#[tokio::test]
async fn a_request_without_a_door_is_told_lambdas_id() {
    let world = World::start().await;
    let mut event = Event::post(&format!("/api/{}/tools", world.home.slug), &json!({})).to_json();
    event["requestContext"].as_object_mut().unwrap().remove("requestId");
    let problem = world.send_json("create-tool", &event).await;
    assert_eq!(problem.body["request_id"], OF_LAMBDA, "{}", problem.body);
}
