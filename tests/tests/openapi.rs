//! `docs/openapi.yaml` against the real handlers: every answer they give is described there, every answer described there is
//! given, and every example is accepted.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

mod belongings;
mod document;

use std::{collections::BTreeSet, thread::JoinHandle, time::Duration};

use document::{Document, Operation, objects};
use local::standins::Fault as Standin;
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use shared::clients::Secrets;
use tests::{Answer, Event, Fault, Template, Trouble, World, ai_sms, slack_action};
use tokio::net::TcpListener;

const NOBODY: &str = "00000000-0000-4000-8000-000000000000";
const LATE: u64 = 60_000;

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn on_call_start() -> Value {
    let mut tool = ai_sms();
    tool["text"] = json!("Thank you for calling.");
    tool["attach_to_agent"] = json!(false);
    tool["execute_on_call_start"] = json!(true);
    tool
}

/// A route of the dashboard's as the home organization's user asks for it.
fn asked(world: &World, method: &str, path: &str) -> Event {
    Event::new(method, &format!("/api/{}{path}", world.home.slug)).user(&world.home.user_id)
}

fn creating(world: &World, tool: &Value) -> Event {
    asked(world, "POST", "/tools").text(tool.to_string())
}

fn attaching(world: &World, tool: &str) -> Event {
    asked(world, "POST", &format!("/agents/{}/tools/attach", world.home.agent_id))
        .text(json!({"tool_id": tool}).to_string())
}

/// A request that would succeed, for each operation of the dashboard's.
fn dashboard(world: &World, tool: &str) -> [(&'static str, &'static str, Event); 5] {
    [
        ("createTool", "create", creating(world, &ai_sms())),
        ("listTools", "list", asked(world, "GET", "/tools")),
        ("getTool", "list", asked(world, "GET", &format!("/tools/{tool}"))),
        ("listAgentTools", "list", asked(world, "GET", &format!("/agents/{}/tools", world.home.agent_id))),
        ("attachTool", "attach", attaching(world, tool)),
    ]
}

/// Answers, each with its operation and the status it must have.
#[derive(Default)]
struct Given(Vec<(&'static str, u16, Answer)>);

impl Given {
    fn note(&mut self, operation: &'static str, status: u16, answer: &Answer) {
        self.0.push((operation, status, answer.clone()));
    }
}

/// Runs a part of the test on a thread and a runtime of its own: beside each other, because some wait for time to pass, and
/// none holding another up.
fn part<F: Future<Output = Given>>(begin: impl FnOnce() -> F + Send + 'static) -> JoinHandle<Given> {
    std::thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(begin())
    })
}

#[test]
fn what_the_functions_answer_and_what_is_described_are_the_same() {
    let mut document = Document::read();
    let parts = [
        part(successes),
        part(refusals),
        part(outages),
        part(|| vapi_fails("createTool", "create")),
        part(|| vapi_fails("attachTool", "attach")),
        part(runs),
    ];
    let given = parts.into_iter().chain(belongings::parts()).flat_map(|part| part.join().unwrap().0);
    for (operation, status, answer) in given {
        assert_eq!(answer.status, status, "{operation}: {}", answer.body);
        document.check(operation, &answer);
    }
    let unseen = document.unseen();
    assert!(unseen.is_empty(), "described, and never answered: {unseen:#?}");
}

async fn successes() -> Given {
    let mut given = Given::default();
    let world = World::start().await;
    for body in [ai_sms(), on_call_start(), slack_action(&world.home)] {
        let created = world.create(&body).await;
        given.note("createTool", 201, &created);
        let id = text(&created.body["id"]);
        given.note("getTool", 200, &world.list(&format!("/tools/{id}")).await);
        given.note("attachTool", 201, &world.attach(id).await);
        given.note("attachTool", 200, &world.attach(id).await);
    }
    let first = world.list("/tools?limit=2").await;
    given.note("listTools", 200, &first);
    let rest = world.list(&format!("/tools?cursor={}", text(&first.body["next_cursor"]))).await;
    given.note("listTools", 200, &rest);
    assert_eq!((first.body["items"].as_array().unwrap().len(), rest.body["items"].as_array().unwrap().len()), (2, 1));
    let attached = world.list(&format!("/agents/{}/tools", world.home.agent_id)).await;
    given.note("listAgentTools", 200, &attached);
    assert_eq!(attached.body["items"].as_array().unwrap().len(), 3);
    given
}

async fn refusals() -> Given {
    let mut given = Given::default();
    let world = World::start().await;
    let tool = world.tool(&ai_sms()).await;
    let tool = text(&tool["id"]);
    for (operation, function, event) in dashboard(&world, tool) {
        let mut nobody = event.clone();
        nobody.user = None;
        given.note(operation, 401, &world.send(function, &nobody).await);
        let stranger = event.clone().user(&world.other.user_id);
        given.note(operation, 404, &world.send(function, &stranger).await);
        let mut nowhere = event.clone();
        nowhere.path = event.path.replace(&world.home.slug, "no-such-organization");
        given.note(operation, 404, &world.send(function, &nowhere).await);
        if event.body.is_some() {
            for unreadable in ["", "{", "\u{0}"] {
                given.note(operation, 400, &world.send(function, &event.clone().text(unreadable)).await);
            }
            for wrong in ["[]", "{}", "null", r#"{"tool_id": 7, "label": "x", "type": "fax"}"#] {
                given.note(operation, 422, &world.send(function, &event.clone().text(wrong)).await);
            }
        }
    }
    for id in [NOBODY, "no-id"] {
        given.note("getTool", 404, &world.list(&format!("/tools/{id}")).await);
        given.note("listAgentTools", 404, &world.list(&format!("/agents/{id}/tools")).await);
        given.note("attachTool", 404, &world.attach_as(&world.home, id, tool).await);
    }
    given.note("attachTool", 404, &world.attach(NOBODY).await);
    for query in ["limit=0", "limit=201", "limit=ten", "cursor=x"] {
        given.note("listTools", 422, &world.list(&format!("/tools?{query}")).await);
    }

    let mut foreign = ai_sms();
    foreign["from"] = json!({"type": "specific_number", "phone_number_id": world.other.phone_number_id});
    given.note("createTool", 422, &world.create(&foreign).await);
    let mut unknown = slack_action(&world.home);
    unknown["pipedreamMetadata"]["actionKey"] = json!("slack-no-such-action");
    given.note("createTool", 422, &world.create(&unknown).await);

    world.aws.inject(Fault::new("PutItem", "tools", Trouble::Error("ConditionalCheckFailedException")).times(6));
    given.note("createTool", 409, &world.create(&ai_sms()).await);
    world.aws.clear_faults();
    world.vapi.inject(Standin::status(404).on("GET", "/assistant/"));
    given.note("attachTool", 409, &world.attach(tool).await);
    given
}

async fn outages() -> Given {
    let mut given = Given::default();
    let world = World::start().await;
    let tool = world.tool(&ai_sms()).await;
    let tool = text(&tool["id"]);
    for (operation, function, event) in dashboard(&world, tool) {
        world.aws.inject(Fault::throttled("Query", "organizations"));
        given.note(operation, 503, &world.send(function, &event).await);
        assert_eq!(world.aws.faults_left(), 0, "{operation}");
    }
    // A row that cannot be read is a fault of ours.
    world.aws.put("organizations", &json!({"id": world.home.organization_id, "slug": world.home.slug}));
    for (operation, function, event) in dashboard(&world, tool) {
        given.note(operation, 500, &world.send(function, &event).await);
    }
    given
}

/// Whatever VAPI does, nothing is left there.
async fn vapi_fails(operation: &'static str, function: &'static str) -> Given {
    let mut given = Given::default();
    let world = World::start().await;
    let tool = world.tool(&ai_sms()).await;
    let (event, route) = match function {
        "create" => (creating(&world, &ai_sms()), ("POST", "/tool")),
        _ => (attaching(&world, text(&tool["id"])), ("PATCH", "/assistant/")),
    };
    for (fault, status) in [
        (Standin::status(500), 502),
        (Standin::status(401), 502),
        (Standin::body(json!("<html>")), 502),
        (Standin::status(429).with_header("Retry-After", "600"), 503),
    ] {
        world.vapi.inject(fault.times(20));
        given.note(operation, status, &world.send(function, &event).await);
        world.vapi.clear_faults();
    }
    world.vapi.inject(Standin::delay(LATE).on(route.0, route.1));
    given.note(operation, 504, &world.send(function, &event.within(Duration::from_secs(8))).await);
    assert_eq!((world.vapi.tools().len(), world.tool_ids().len()), (1, 0), "{operation} leaves something at VAPI");
    given
}

async fn runs() -> Given {
    let mut given = Given::default();
    let mut world = World::start().await;
    let sms = world.attached(&ai_sms()).await;
    let slack = world.attached(&slack_action(&world.home)).await;
    let id = text(&sms["id"]).to_owned();

    let sent = world.call_tool(&world.call(&sms, json!({"text": "Hi", "colour": "red"}))).await;
    given.note("executeTool", 200, &sent);
    assert!(sent.body["logs"].is_array(), "{}", sent.body);
    let told = world.call_tool(&world.call(&slack, json!({"text": "Hi"}))).await;
    given.note("executeTool", 200, &told);
    assert!(told.body["exports"].is_object(), "{}", told.body);
    for arguments in [json!({}), json!({"text": 7})] {
        let failed = world.call_tool(&world.call(&sms, arguments)).await;
        given.note("executeTool", 200, &failed);
        failed.sentence();
    }
    world.twilio.inject(Standin::drop_after());
    let unknown = world.call_tool(&world.call(&sms, json!({"text": "Again"}))).await;
    given.note("executeTool", 200, &unknown);
    unknown.sentence();

    let wire = world.wire(&world.call(&sms, json!({"text": "Hi"})));
    given.note("executeTool", 400, &world.send("execute", &wire.clone().text("{")).await);
    given.note("executeTool", 400, &world.send("execute", &wire.clone().text("[]")).await);
    given.note("executeTool", 401, &world.execute(&id, &json!({"text": "Hi"})).await);
    let wrong = json!({"text": "Hi", "metadata": {"token": "d3Jvbmc"}});
    given.note("executeTool", 401, &world.execute(&id, &wrong).await);
    given.note("executeTool", 401, &world.execute(NOBODY, &wrong).await);
    given.note("executeTool", 404, &world.execute("no-id", &wrong).await);

    // The same run as VAPI's other message, with the bearer of its credential.
    let bearer = format!("Bearer {}", world.options.webhook_bearer.clone().unwrap());
    let message = |id: &str, arguments: Value| {
        let call =
            json!({"id": "call_1", "type": "function", "function": {"name": sms["name"], "arguments": arguments}});
        let from = json!({"number": "+14155550101"});
        let body = json!({"message": {"type": "tool-calls", "toolCallList": [call], "customer": from,
            "phoneNumber": {"number": world.home.phone_number}, "call": {"id": "0193aa11-2b3c-7d4e-8f50-617283940a1e"}}});
        Event::post(&format!("/api/tools/{id}/execute"), &body).header("authorization", &bearer)
    };
    let (done, declined) = (message(&id, json!({"text": "Hello"})), message(&id, json!({})));
    let gone = message(NOBODY, json!({"text": "Hello"}));
    let done_answer = world.send("execute", &done).await;
    given.note("executeTool", 200, &done_answer);
    assert!(done_answer.body["results"][0]["result"].is_string(), "{}", done_answer.body);
    let declined = world.send("execute", &declined).await;
    given.note("executeTool", 200, &declined);
    assert!(declined.body["results"][0]["error"].is_string(), "{}", declined.body);
    given.note("executeTool", 404, &world.send("execute", &gone).await);

    world.restart();
    world.aws.inject(Fault::new("GetSecretValue", "switchboard/vapi", Trouble::Error("ResourceNotFoundException")));
    given.note("executeTool", 502, &world.send("execute", &done).await);
    world.aws.inject(Fault::new("GetSecretValue", "switchboard/tool-token", Trouble::DropBefore).times(9));
    given.note("executeTool", 503, &world.send("execute", &wire).await);
    world.aws.clear_faults();
    world.aws.put_secret("switchboard/tool-token", &json!({"current": ""}));
    given.note("executeTool", 500, &world.send("execute", &wire).await);

    let silence = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let mut config = world.aws.config();
    config.endpoint_url = Some(format!("http://{}", silence.local_addr().unwrap()));
    world.process.execute.secrets = Secrets::new(&config);
    given.note("executeTool", 504, &world.send("execute", &done).await);
    given
}

/// Sent as they stand; only the token is the tool's real one, which nobody can know beforehand.
#[tokio::test]
async fn every_example_of_a_request_is_accepted() {
    let document = Document::read();
    let world = World::start().await;
    for (name, body) in document.request_examples("createTool") {
        let created = world.create(&body).await;
        assert_eq!(created.status, 201, "{name}: {}", created.body);
    }

    for (name, body) in document.request_examples("attachTool") {
        let mut row = world.tool(&ai_sms()).await;
        row["id"] = body["tool_id"].clone();
        world.aws.put("tools", &row);
        let attached = world.attach_as(&world.home, &world.home.agent_id, text(&body["tool_id"])).await;
        assert_eq!(attached.status, 201, "{name}: {}", attached.body);
    }

    let tool = world.tool(&document.request_examples("createTool")["sms"]).await;
    let tool_id = text(&tool["id"]);
    let token = world.process.tokens.issue(tool_id.parse().unwrap()).await.unwrap();
    let examples = document.request_examples("executeTool");
    for (name, mut body) in examples.clone() {
        let mut event = Event::post(&format!("/api/tools/{tool_id}/execute"), &Value::Null);
        if body["message"].is_object() {
            body["message"]["toolCallList"][0]["function"]["name"] = tool["name"].clone();
            event = event.header("authorization", &format!("Bearer {}", world.options.webhook_bearer.clone().unwrap()));
        } else {
            assert_eq!(text(&body["metadata"]["token"]).len(), token.expose_secret().len(), "{name}: a token's form");
            body["metadata"]["token"] = json!(token.expose_secret());
        }
        let answer = world.send("execute", &event.text(body.to_string())).await;
        assert_eq!(answer.status, 200, "{name}: {}", answer.body);
        let failed = answer.body["success"] == false || answer.body["results"][0]["error"].is_string();
        assert!(!failed, "{name}: {}", answer.body);
    }
    assert_eq!(world.twilio.messages().len(), examples.len(), "each example is a call of its own");
}

/// A configuration that the handler refuses should not be one that the document allows, nor the other way round.
#[tokio::test]
async fn the_schema_of_a_configuration_is_the_handlers() {
    let document = Document::read();
    let world = World::start().await;
    let schema = json!({"$ref": "#/components/schemas/ToolConfig"});
    let validator = document.validator(&schema);
    let sms = || document.request_examples("createTool")["sms"].clone();
    let api = || document.request_examples("createTool")["api_request_with_arguments"].clone();
    let transfer = || document.request_examples("createTool")["transfer_call"].clone();
    let changes: Vec<(Value, &str, Value)> = vec![
        (sms(), "/label", Value::Null),
        (sms(), "/label", json!("x".repeat(101))),
        (sms(), "/colour", json!("red")),
        (sms(), "/async", json!("yes")),
        (sms(), "/type", json!("fax")),
        (sms(), "/from", json!({"type": "specific_number"})),
        (sms(), "/from", json!({"type": "called_number", "number": "+15550100001"})),
        (sms(), "/text", json!({"mode": "ai"})),
        (sms(), "/text", json!({"mode": "fixed"})),
        (sms(), "/text", json!({"mode": "fixed", "value": ""})),
        (sms(), "/text", json!({"mode": "fixed", "value": "x".repeat(1_601)})),
        (sms(), "/text", json!({"mode": "ai", "prompt": "p", "schema": {"type": "integer"}})),
        (sms(), "/text", json!({"mode": "ai", "prompt": "p", "schema": {"minLength": 1}})),
        (sms(), "/text", json!({"mode": "sometimes"})),
        (sms(), "/text", json!({"mode": "array_extendable", "fixedValues": ["a"]})),
        (sms(), "/recipients", json!({"mode": "array_extendable"})),
        (
            sms(),
            "/recipients",
            json!({"mode": "array_extendable", "fixedValues": [], "aiExtension": {"enabled": false}}),
        ),
        (sms(), "/recipients", json!({"mode": "array_extendable", "aiExtension": {"enabled": true}})),
        (sms(), "/recipients", json!({"mode": "fixed", "value": []})),
        (sms(), "/recipients", json!({"mode": "fixed", "value": [7]})),
        (sms(), "/attach_to_agent", json!(false)),
        (api(), "/method", json!("BREW")),
        (api(), "/url", json!("ftp://example.com/")),
        (api(), "/url", json!("https://{{caller_phone_number}}.example.com/")),
        (api(), "/url", json!({"mode": "array_extendable", "fixedValues": ["https://example.com"]})),
        (api(), "/headers", json!({"X Key": "k"})),
        (api(), "/headers", json!({"X-Key": {"mode": "fixed", "value": 7}})),
        (api(), "/body", json!({"n": 7})),
        (
            api(),
            "/body",
            json!({"n": {"mode": "ai", "prompt": "p", "schema": {"type": "object", "properties": {"x": {}}}}}),
        ),
        (transfer(), "/target", json!({"type": "number"})),
        (transfer(), "/target", json!({"type": "sip", "sipUri": "tel:1"})),
        (transfer(), "/target", json!({"type": "assistant", "assistantId": "x"})),
        (transfer(), "/messageStrategy", json!("song")),
    ];
    for (mut body, pointer, value) in changes {
        let name = &pointer[1..];
        match value {
            Value::Null => drop(body.as_object_mut().unwrap().remove(name)),
            value => body[name] = value,
        }
        let answer = world.create(&body).await;
        assert_eq!(answer.status, 422, "{pointer}: {}\n{body:#}", answer.body);
        assert!(!validator.is_valid(&body), "the handler refuses what the document allows: {pointer}\n{body:#}");
    }
    let allowed: Vec<(Value, &str, Value)> = vec![
        (sms(), "/description", Value::Null),
        (sms(), "/text", json!("Hello {{caller_phone_number}}")),
        (sms(), "/recipients", json!("+15550100001")),
        (sms(), "/recipients", json!(["+15550100001", "{{called_phone_number}}"])),
        (sms(), "/recipients", json!({"mode": "fixed", "value": "+15550100001"})),
        (sms(), "/recipients", json!({"mode": "ai", "prompt": "Who gets it"})),
        (api(), "/method", json!("delete")),
        (api(), "/url", json!({"mode": "ai", "prompt": "The address"})),
        (api(), "/body", json!({"list": [1, 2], "deep": {"mode": "fixed", "value": {"a": [null, true]}}})),
        (transfer(), "/target", json!({"type": "assistant", "assistantId": NOBODY})),
    ];
    for (mut body, pointer, value) in allowed {
        body[&pointer[1..]] = value;
        document.hold(pointer, &schema, &body);
        let answer = world.create(&body).await;
        assert_eq!(answer.status, 201, "{pointer}: {}\n{body:#}", answer.body);
    }
}

#[test]
fn the_document_holds_together() {
    let document = Document::read();
    assert!(text(&document.root["openapi"]).starts_with("3.1."));
    let references: Vec<&str> =
        objects(&document.root).into_iter().filter_map(|object| object["$ref"].as_str()).collect();
    for reference in &references {
        assert!(document.root.pointer(&reference[1..]).is_some(), "{reference} points to nothing");
    }
    for (kind, components) in document.root["components"].as_object().unwrap() {
        for name in components.as_object().unwrap().keys().filter(|_| kind != "securitySchemes") {
            let reference = format!("#/components/{kind}/{name}");
            assert!(references.contains(&reference.as_str()), "{reference} is never used");
        }
    }
    for (name, schema) in document.root["components"]["schemas"].as_object().unwrap() {
        assert!(jsonschema::draft202012::meta::is_valid(schema), "{name} is no JSON schema");
        document.validator(schema);
    }
    let operations = document.operations();
    let ids: BTreeSet<&String> = operations.iter().map(|operation| &operation.id).collect();
    assert_eq!(ids.len(), operations.len(), "an operationId is given twice");
    for operation in &operations {
        let mut wanted: Vec<&str> =
            operation.path.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}')).collect();
        let mut declared: Vec<String> = document.root["paths"][&operation.path]["parameters"]
            .as_array()
            .unwrap()
            .iter()
            .map(|parameter| text(&document.resolve(parameter)["name"]).to_owned())
            .collect();
        wanted.sort_unstable();
        declared.sort();
        assert_eq!(declared, wanted, "{}", operation.path);
        for scheme in
            operation.value["security"].as_array().into_iter().flatten().flat_map(|it| it.as_object().unwrap())
        {
            assert!(document.root["components"]["securitySchemes"][scheme.0].is_object(), "{}", scheme.0);
        }
    }
}

#[test]
fn every_example_is_what_its_schema_says() {
    let document = Document::read();
    let mut held = 0;
    for content in objects(&document.root).into_iter().filter(|object| object["schema"].is_object()) {
        let examples = content["examples"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, example)| (name.as_str(), &example["value"]));
        for (name, example) in examples.chain(content.get("example").map(|example| ("example", example))) {
            document.hold(name, &content["schema"], example);
            held += 1;
        }
    }
    assert!(held > 15, "only {held} examples were found");
}

#[test]
fn the_document_and_the_template_have_the_same_routes() {
    let document = Document::read();
    let jwt = |operation: &Operation| {
        let security = operation.value.get("security").unwrap_or(&document.root["security"]).clone();
        security == json!([{"jwt": []}])
    };
    let mut described: Vec<(String, String, bool)> = document
        .operations()
        .iter()
        .map(|operation| (operation.method.clone(), operation.path.clone(), jwt(operation)))
        .collect();
    described.sort();
    let deployed: Vec<(String, String, bool)> =
        Template::read().routes().into_iter().map(|route| (route.method, route.path, route.jwt)).collect();
    assert_eq!(described, deployed, "method, path, and whether a JWT is asked for");
}
