//! `docs/openapi.yaml` against the real handlers.
//!
//! Every answer is described, every described answer occurs, and every example is accepted.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

mod agents_and_phone_numbers;
mod automation_control;
mod automations;
mod calls;
mod changes;
mod chat;
mod console;
mod discovery;
mod event_replays;
mod examples;
mod hooks;
mod keys;
mod known_fields;
mod mcp;
mod members;
mod privacy_and_budgets;
mod refusals;
mod runs;
mod specification;
mod stream;
mod tools_test;
mod wrong_fields;

use refusals::{documented_role, lesser_roles, outages, refusals, vapi_fails};
use std::{collections::BTreeSet, thread::JoinHandle, time::Duration};

use local::standins::Fault as Standin;
use serde_json::{Value, json};
use specification::{Document, Operation, objects};
use tests::{Answer, Event, Template, World, ai_sms, declared, preemptive_sms, slack_action};

const NOBODY: &str = "00000000-0000-4000-8000-000000000000";
const LATE: u64 = 60_000;

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// A dashboard request of the home organization's user.
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

fn detaching(world: &World, tool: &str) -> Event {
    asked(world, "POST", &format!("/agents/{}/tools/detach", world.home.agent_id))
        .text(json!({"tool_id": tool}).to_string())
}

fn attaching_knowledge(world: &World, what: &str, base: &str) -> Event {
    asked(world, "POST", &format!("/agents/{}/knowledge-bases/{what}", world.home.agent_id))
        .text(json!({"knowledge_base_id": base}).to_string())
}

fn updating(world: &World, tool: &str) -> Event {
    asked(world, "PATCH", &format!("/tools/{tool}")).text(json!({"label": "Text the caller"}).to_string())
}

fn deleting(world: &World, tool: &str) -> Event {
    asked(world, "DELETE", &format!("/tools/{tool}"))
}

/// A valid request for each dashboard operation.
fn dashboard(world: &World, tool: &str, base: &str) -> [(&'static str, &'static str, Event); 24] {
    let knowledge = |method: &str, path: &str| asked(world, method, &format!("/knowledge-bases{path}"));
    let (one, entries) = (format!("/{base}"), format!("/{base}/entries"));
    [
        ("createKnowledgeBase", "knowledge", knowledge("POST", "").text(r#"{"name": "Homes"}"#)),
        ("listKnowledgeBases", "knowledge", knowledge("GET", "")),
        ("getKnowledgeBase", "knowledge", knowledge("GET", &one)),
        ("deleteKnowledgeBase", "knowledge", knowledge("DELETE", &one)),
        ("loadKnowledgeEntries", "knowledge", knowledge("POST", &entries).text(r#"{"entries": [{"text": "x"}]}"#)),
        ("listKnowledgeEntries", "knowledge", knowledge("GET", &entries)),
        ("deleteKnowledgeEntry", "knowledge", knowledge("DELETE", &format!("{entries}/e1"))),
        ("createTool", "create-tool", creating(world, &ai_sms())),
        ("listTools", "list-tools", asked(world, "GET", "/tools")),
        ("getTool", "list-tools", asked(world, "GET", &format!("/tools/{tool}"))),
        ("listAgentTools", "list-tools", asked(world, "GET", &format!("/agents/{}/tools", world.home.agent_id))),
        ("listAgentsOfTool", "list-tools", asked(world, "GET", &format!("/tools/{tool}/agents"))),
        ("listToolExecutions", "list-tools", asked(world, "GET", &format!("/tools/{tool}/executions"))),
        ("listExecutions", "list-tools", asked(world, "GET", "/executions")),
        ("listCalls", "calls", asked(world, "GET", "/calls")),
        ("getCall", "calls", asked(world, "GET", "/calls/call-1")),
        ("getCallReceipt", "calls", asked(world, "GET", "/calls/call-1/receipt")),
        ("listCallExecutions", "calls", asked(world, "GET", "/calls/call-1/executions")),
        ("attachTool", "attach", attaching(world, tool)),
        ("detachTool", "detach", detaching(world, tool)),
        ("updateTool", "update-tool", updating(world, tool)),
        ("deleteTool", "delete", deleting(world, tool)),
        ("attachKnowledgeBase", "knowledge", attaching_knowledge(world, "attach", base)),
        ("detachKnowledgeBase", "knowledge", attaching_knowledge(world, "detach", base)),
    ]
}

/// Answers with their operation and expected status.
#[derive(Default)]
struct Given(Vec<(&'static str, u16, Answer)>);

impl Given {
    fn note(&mut self, operation: &'static str, status: u16, answer: &Answer) {
        self.0.push((operation, status, answer.clone()));
    }
}

/// Runs a part of the test on its own thread and runtime: the parts run in parallel, because some wait for time to
/// pass.
fn part<F: Future<Output = Given>>(begin: impl FnOnce() -> F + Send + 'static) -> JoinHandle<Given> {
    std::thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(begin())
    })
}

#[test]
fn answers_and_their_descriptions_are_the_same() {
    let mut document = Document::read();
    let parts = [
        part(successes),
        part(changes),
        part(refusals),
        part(outages),
        part(|| vapi_fails("createTool", "create-tool")),
        part(|| vapi_fails("attachTool", "attach")),
        part(|| vapi_fails("detachTool", "detach")),
        part(|| vapi_fails("updateTool", "update-tool")),
        part(|| vapi_fails("deleteTool", "delete")),
        part(|| vapi_fails("attachKnowledgeBase", "knowledge")),
        part(|| vapi_fails("detachKnowledgeBase", "knowledge")),
        part(comparisons),
        part(deletions),
        part(calls::runs_of_tools),
        part(calls::calls),
        part(calls::incoming),
        part(knowledge),
        part(lesser_roles),
    ];
    let given = parts.into_iter().chain(agents_and_phone_numbers::parts()).chain(keys::parts()).chain(runs::parts());
    let given = given
        .chain(tools_test::parts())
        .chain(privacy_and_budgets::parts())
        .chain(discovery::parts())
        .chain(mcp::parts())
        .chain(stream::parts());
    let given =
        given.chain(chat::parts()).chain(automations::parts()).chain(automation_control::parts()).chain(hooks::parts());
    let given = given.chain(event_replays::parts()).chain(console::parts()).chain(members::parts());
    let given = given.flat_map(|part| part.join().unwrap().0);
    for (operation, status, answer) in given {
        assert_eq!(answer.status, status, "{operation}: {}", answer.body);
        document.check(operation, &answer);
        // The tag of an answer is all that the 304 for it needs: journeys, not_modified.rs.
        if document.answers_304(operation) && answer.status == 200 && answer.headers.contains_key("etag") {
            let unchanged = Answer { status: 304, content_type: String::new(), body: Value::Null, ..answer };
            document.check(operation, &unchanged);
        }
    }
    let unseen = document.unseen();
    assert!(unseen.is_empty(), "described, and never answered: {unseen:#?}");
}

async fn successes() -> Given {
    let mut given = Given::default();
    let world = World::start().await;
    for body in [ai_sms(), preemptive_sms(), slack_action(&world.home)] {
        let created = world.create(&body).await;
        given.note("createTool", 201, &created);
        let id = text(&created.body["id"]);
        given.note("getTool", 200, &world.list(&format!("/tools/{id}")).await);
        given.note("attachTool", 201, &world.attach(id).await);
        given.note("attachTool", 200, &world.attach(id).await);
        given.note("listAgentsOfTool", 200, &world.list(&format!("/tools/{id}/agents")).await);
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

async fn changes() -> Given {
    let mut given = Given::default();
    let world = World::start().await;
    let row = world.attached(&ai_sms()).await;
    let tool = text(&row["id"]);
    given.note("updateTool", 200, &world.update_seen(&row, "\"0\"", &json!({"label": "Text the caller"})).await);
    given.note("updateTool", 200, &world.update(&row, &json!({"name": "text_the_caller", "version": 1})).await);
    world.vapi.inject(Standin::status(500).on("PATCH", "/assistant/").times(9));
    let followed_later = world.update(&row, &preemptive_sms()).await;
    given.note("updateTool", 202, &followed_later);
    assert_eq!(followed_later.body["version"], 3, "{}", followed_later.body);
    world.vapi.clear_faults();
    given.note("detachTool", 200, &world.detach(tool).await);
    given.note("detachTool", 404, &world.detach(tool).await);

    // Too little time to start with an agent, so all work is left.
    let row = world.attached(&ai_sms()).await;
    let late = deleting(&world, text(&row["id"])).within(Duration::from_secs(4));
    let begun = world.send("delete", &late).await;
    given.note("deleteTool", 202, &begun);
    assert_eq!(begun.body["agents_left"], json!([world.home.agent_id]), "{}", begun.body);
    given.note("deleteTool", 200, &world.delete(&row).await);
    given.note("deleteTool", 404, &world.delete(&row).await);
    given
}

/// An agent's tools, while VAPI has a tool that is missing in the table.
async fn comparisons() -> Given {
    let mut given = Given::default();
    let world = World::start().await;
    let path = format!("/agents/{}/tools", world.home.agent_id);
    let tool = world.tool(&ai_sms()).await;
    world.function_tool(&tool).await;
    let strange = world.list(&path).await;
    given.note("listAgentTools", 200, &strange);
    assert_eq!(strange.body["unmanaged"].as_array().unwrap().len(), 1, "{}", strange.body);
    world.vapi.inject(Standin::status(500).on("GET", "/assistant/").times(9));
    let unread = world.list(&path).await;
    given.note("listAgentTools", 200, &unread);
    assert_eq!(unread.body["synced"], false, "{}", unread.body);
    world.vapi.clear_faults();

    let mut model = world.model();
    model["toolIds"] = json!([tool["external_tool_id"]]);
    world.at_vapi("PATCH", &format!("/assistant/{}", world.home.assistant_id), &json!({"model": model})).await;
    let repaired = world.list(&path).await;
    given.note("listAgentTools", 200, &repaired);
    assert_eq!(repaired.body["items"][0]["id"], tool["id"], "{}", repaired.body);
    given
}

/// Deletes a tool that VAPI keeps, and one whose agent stays locked for too long.
async fn deletions() -> Given {
    let mut given = Given::default();
    let world = World::start().await;
    let row = world.tool(&ai_sms()).await;
    world.vapi.pin(text(&row["external_tool_id"]));
    given.note("deleteTool", 409, &world.delete(&row).await);

    let row = world.attached(&ai_sms()).await;
    hold(&world, "agents", &world.home.agent_id);
    let deleted = world.send("delete", &deleting(&world, text(&row["id"])).within(Duration::from_secs(8))).await;
    given.note("deleteTool", 409, &deleted);
    assert_eq!(deleted.body["agents_left"], json!([world.home.agent_id]), "{}", deleted.body);
    given
}

/// Holds the row's lease for somebody else.
fn hold(world: &World, table: &str, id: &str) {
    world.aws.change(table, id, json!({"lease_token": "somebody-else", "lease_until": 9_999_999_999_999_u64}));
}

async fn a_base(world: &World) -> String {
    let fields = json!([{"name": "city", "type": "text"}, {"name": "price", "type": "number"}]);
    let entries = json!([{"id": "e1", "city": "Porto", "price": 5}, {"id": "e2", "text": "x"}]);
    text(&world.knowledge_base(&fields, &entries).await["id"]).to_owned()
}

async fn knowledge() -> Given {
    let mut given = Given::default();
    let world = World::start().await;
    let base = a_base(&world).await;
    for (operation, function, event) in dashboard(&world, NOBODY, &base).into_iter().filter(|it| it.1 == "knowledge") {
        match operation {
            // Tested last, below.
            "deleteKnowledgeBase" => {}
            "createKnowledgeBase" | "attachKnowledgeBase" => {
                given.note(operation, 201, &world.send(function, &event).await);
            }
            _ => given.note(operation, 200, &world.send(function, &event).await),
        }
    }
    for (agent, what, operation, status) in [
        (&world.home.agent_id, "detach", "detachKnowledgeBase", 404),
        (&world.other.agent_id, "attach", "attachKnowledgeBase", 404),
        (&world.home.agent_id, "attach", "attachKnowledgeBase", 201),
        (&world.home.agent_id, "attach", "attachKnowledgeBase", 200),
    ] {
        given.note(operation, status, &world.knowledge_of(agent, what, &base).await);
    }
    let shown = world.knowledge("GET", &format!("/{base}"), &Value::Null).await;
    assert_eq!(shown.body["agent_ids"], json!([world.home.agent_id]));
    given.note("getKnowledgeBase", 200, &shown);
    given.note("deleteKnowledgeBase", 409, &world.knowledge("DELETE", &format!("/{base}"), &Value::Null).await);
    world.vapi.inject(Standin::status(500).on("DELETE", "/tool/").times(9));
    let pending = world.knowledge_of(&world.home.agent_id, "detach", &base).await;
    assert_eq!(pending.body["query_tool"], "pending");
    given.note("detachKnowledgeBase", 200, &pending);
    world.vapi.clear_faults();
    let entries = format!("/{base}/entries");
    let refused = json!({"entries": [{"price": "x", "colour": 1}, 5]});
    given.note("loadKnowledgeEntries", 200, &world.knowledge("POST", &entries, &refused).await);
    let tool = world.tool(&json!({"type": "query", "label": "Find", "knowledge_base_id": base})).await;
    given.note("deleteKnowledgeBase", 409, &world.knowledge("DELETE", &format!("/{base}"), &Value::Null).await);
    world.aws.delete("tools", text(&tool["id"]));
    for (operation, path) in [("listKnowledgeBases", String::new()), ("listKnowledgeEntries", entries.clone())] {
        for (name, value) in [("limit", "0"), ("limit", "ten"), ("cursor", "x")] {
            let event = asked(&world, "GET", &format!("/knowledge-bases{path}")).query(name, value);
            given.note(operation, 422, &world.send("knowledge", &event).await);
        }
    }
    world.aws.change("knowledge_bases", &base, json!({"deleting": true}));
    let row = json!({"entries": [{"text": "x"}]});
    given.note("loadKnowledgeEntries", 409, &world.knowledge("POST", &entries, &row).await);
    given.note("deleteKnowledgeBase", 200, &world.knowledge("DELETE", &format!("/{base}"), &Value::Null).await);
    given
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
            .into_iter()
            .flatten()
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
fn the_document_and_the_template_have_the_same_routes() {
    let document = Document::read();
    let jwt = |operation: &Operation| {
        let security = operation.value.get("security").unwrap_or(&document.root["security"]).clone();
        security[0]["jwt"].is_array()
    };
    let mut described: Vec<(String, String, bool)> = document
        .operations()
        .iter()
        .map(|operation| (operation.method.clone(), operation.path.clone(), jwt(operation)))
        .collect();
    described.sort();
    let template = Template::read();
    let routes = template.routes().into_iter().chain(template.rest_routes());
    let mut deployed: Vec<(String, String, bool)> = routes.map(|route| (route.method, route.path, route.jwt)).collect();
    deployed.sort();
    assert_eq!(described, deployed, "method, path, and whether a JWT is asked for");
}

#[test]
fn the_document_names_the_least_role_of_the_table_for_every_route() {
    let described: BTreeSet<(String, String, String)> = Document::read()
        .operations()
        .into_iter()
        .filter_map(|operation| {
            let role = documented_role(&operation)?;
            Some((operation.method, operation.path, role))
        })
        .collect();
    let table = declared::least_roles().into_iter();
    let table: BTreeSet<(String, String, String)> =
        table.map(|(method, path, role)| (method.into(), path.into(), role.as_str().into())).collect();
    assert_eq!(described, table);
}

/// A page of another origin reads a header only if the API exposes it.
#[test]
fn pages_may_read_the_headers_that_the_document_describes() {
    let (document, template) = (Document::read(), Template::read());
    let api = template.deployed(&[("DashboardOrigins", "https://app.example")]).properties("Api").unwrap();
    let exposed = api["CorsConfiguration"]["ExposeHeaders"].as_array().unwrap();
    let exposed: BTreeSet<&str> = exposed.iter().map(text).collect();
    let stages = template.resources("AWS::ApiGateway::Stage");
    let exposed_by_stream: BTreeSet<&str> =
        text(&stages["StreamStage"]["Variables"]["exposed_headers"]).split(',').collect();
    let streamed: BTreeSet<String> = template.rest_routes().into_iter().map(|route| route.path).collect();
    let mut described = BTreeSet::new();
    for operation in document.operations() {
        let exposed = if streamed.contains(&operation.path) { &exposed_by_stream } else { &exposed };
        for answer in operation.value["responses"].as_object().unwrap().values() {
            for name in document.resolve(answer)["headers"].as_object().into_iter().flat_map(|headers| headers.keys()) {
                let name = name.to_ascii_lowercase();
                assert!(exposed.contains(name.as_str()), "{}: pages may not read {name}", operation.id);
                described.insert(name);
            }
        }
    }
    assert!(described.contains("x-role") && described.contains("retry-after"), "{described:?}");
}

#[test]
fn the_document_names_the_query_parameters_of_the_table_for_every_route() {
    let document = Document::read();
    for operation in document.operations() {
        if !operation.path.starts_with("/api/{slug}/") {
            continue;
        }
        let described: BTreeSet<&str> = operation.value["parameters"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|parameter| document.resolve(parameter))
            .filter(|parameter| parameter["in"] == "query")
            .map(|parameter| text(&parameter["name"]))
            .collect();
        let known = declared::route(&operation.method, &operation.path).unwrap().known_in_query();
        let known: BTreeSet<&str> = known.iter().copied().collect();
        assert_eq!(described, known, "{}", operation.id);
    }
}
