//! The roles of `infra/template.yaml` grant exactly the functions' real AWS requests.
//!
//! A missing permission would show only on AWS; an unused one is too much.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::large_futures,
    reason = "a test says what is wrong and stops"
)]

mod automations;
mod conversations;
mod dashboard;
mod iam;
mod streams;
mod tools;
mod triggers;

use automations::{approvals, automations, by_the_clock, deploying};
use dashboard::{agents, calls, hooks, keys, members, phone_numbers, tools_test};
use std::collections::{BTreeMap, BTreeSet};
use tools::{call_start, catalogue, detach_update_delete, knowledge_of_agents, run_tool, settle};

use iam::{allows, granted, needed, pascal};
use serde_json::{Value, json};
use shared::models::Timestamp;
use tests::{
    Answer, Event, Options, SECOND_PLATFORM_KEY, Template, World, ai_sms, api_request, phone, slack_action,
    standins::{Fault, llm},
};

const STACK: &str = "switchboard";

/// The permissions of each function, such as `dynamodb:Query tools/index/by_organization`.
type Permissions = BTreeMap<&'static str, BTreeSet<String>>;

/// Records the permissions of the last requests for `function`, and prepares the next one.
fn note(permissions: &mut Permissions, function: &'static str, world: &mut World) {
    let needs = world.aws.operations().iter().flat_map(needed).collect::<Vec<_>>();
    permissions.entry(function).or_default().extend(needs);
    // The next function runs in another process on Lambda, without these caches.
    world.restart();
    world.aws.clear_operations();
}

/// Every path of every function with different AWS requests, for an organization with its own VAPI account or on the
/// platform's.
#[expect(clippy::too_many_lines, reason = "it is a list of paths")]
async fn asked(own: bool) -> Permissions {
    let mut asked = Permissions::new();
    let mut variables = vec![
        ("MCP_CALL_TOOL", "true".to_owned()),
        // No server is there; only the earlier AWS requests matter.
        ("ALERT_HOOK_URL", "https://127.0.0.1/alerts".to_owned()),
        ("ALERT_SECRET", format!("{STACK}/alerts")),
    ];
    if own {
        // Its program is ahead of its variables, or is the one before: a start goes to the queue of `async` tools.
        variables.push(("START_TOOLS_QUEUE_URL", String::new()));
    }
    // The organization's own LLM.
    let own_llm = llm::Options { api_key: "own".to_owned(), ..llm::Options::default() };
    let claims = llm::start("127.0.0.1:0".parse().unwrap(), own_llm).unwrap();
    let open_hosts = vec![claims.address().to_string()];
    let mut world = World::with(Options { variables, open_hosts, ..Options::default() }).await;
    if own {
        let secret = json!({"api_key": SECOND_PLATFORM_KEY, "webhook_bearer": world.options.webhook_bearer});
        world.own_key(&world.home, &secret);
    }
    world.restart();
    world.aws.clear_operations();

    let homes = json!([{"id": "h1", "text": "House by the river"}]);
    let (base, spare) =
        (world.knowledge_base(&json!([]), &homes).await, world.knowledge_base(&json!([]), &homes).await);
    let at = |base: &Value, rest: &str| format!("/{}{rest}", base["id"].as_str().unwrap());
    let replaced = json!({"entries": [{"id": "h1", "text": "House at the river"}, {"id": "h2", "text": "Flat"}]});
    world.knowledge("POST", &at(&base, "/entries"), &replaced).await.expect(200);
    for path in [String::new(), at(&base, ""), at(&base, "/entries")] {
        world.knowledge("GET", &path, &Value::Null).await.expect(200);
    }
    world.knowledge("DELETE", &at(&base, "/entries/h2"), &Value::Null).await.expect(200);
    world.knowledge("DELETE", &at(&spare, ""), &Value::Null).await.expect(200);
    note(&mut asked, "knowledge", &mut world);

    let query = json!({"type": "query", "label": "Find a home", "knowledge_base_id": base["id"]});
    let query = world.tool(&query).await;
    let at_vapi = world.vapi.set_number(&world.home.phone_number, &world.home.assistant_id).unwrap();
    world.aws.change("phone_numbers", &world.home.phone_number_id, json!({"vapi_phone_number_id": at_vapi}));
    let (place, place_later) = (world.tool(&place_call(&world, 21)).await, world.tool(&place_call(&world, 22)).await);
    let transfer = world.tool(&connect()).await;
    let target = json!({"type": "assistant", "assistantId": world.home.assistant_id});
    world.tool(&json!({"type": "transfer_call", "label": "Hand over", "target": target})).await;
    let sms = world.tool(&ai_sms()).await;
    let mut specific = ai_sms();
    specific["from"] = json!({"type": "specific_number", "phone_number_id": world.home.phone_number_id});
    let specific = world.tool(&specific).await;
    let slack = world.tool(&slack_action(&world.home)).await;
    let lookup = world.tool(&with_secret()).await;
    world.vapi.inject(Fault::status(400));
    world.create(&with_secret()).await.expect(502);
    note(&mut asked, "create-tool", &mut world);

    for tool in [&sms, &specific, &slack, &lookup, &query, &sms] {
        let answer: Answer = world.attach(tool["id"].as_str().unwrap()).await;
        assert!(answer.status < 300, "{}", answer.body);
    }
    note(&mut asked, "attach", &mut world);

    knowledge_of_agents(&mut asked, &mut world).await;

    world.knowledge("DELETE", &at(&base, ""), &Value::Null).await.expect(409);
    note(&mut asked, "knowledge", &mut world);

    detach_update_delete(&mut asked, &mut world).await;
    world.attach(sms["id"].as_str().unwrap()).await;
    settle(&mut asked, &mut world, &sms).await;

    catalogue(&mut asked, &mut world).await;
    // Listing an agent's tools repairs differences: one tool is missing in the table, one at VAPI.
    let (missing, stale) = (world.tool(&ai_sms()).await, world.attached(&ai_sms()).await);
    let mut model = world.model();
    model["toolIds"] = json!([sms["external_tool_id"], missing["external_tool_id"]]);
    world.at_vapi("PATCH", &format!("/assistant/{}", world.home.assistant_id), &json!({"model": model})).await;
    assert!(world.aws.rows("agent_tools").iter().any(|row| row["tool_id"] == stale["id"]));
    world.restart();
    world.aws.clear_operations();
    let agent = format!("/agents/{}/tools", world.home.agent_id);
    let tool = format!("/tools/{}", sms["id"].as_str().unwrap());
    let home = &world.home.organization_id;
    let execution = json!({
        "id": uuid::Uuid::now_v7(), "organization_id": home, "history_of": home, "tool_id": sms["id"], "status": "failed",
        "started_at": "2026-11-20T16:20:52.123Z", "duration_ms": 7, "expires_at": 4_000_000_000_i64,
    });
    world.aws.put("executions", &execution);
    for path in
        ["/tools?attached=true", "/executions", &tool, &format!("{tool}/agents"), &format!("{tool}/executions"), &agent]
    {
        world.list(path).await.expect(200);
    }
    note(&mut asked, "list-tools", &mut world);
    calls(&world, &claims).await;
    note(&mut asked, "calls", &mut world);
    for tool in [&specific, &slack, &lookup, &query, &transfer, &place] {
        world.attach(tool["id"].as_str().unwrap()).await.expect(201);
    }
    let mut later = ai_sms();
    later["async"] = json!(true);
    let later = world.attached(&later).await;
    world.restart();
    world.aws.clear_operations();

    let call = world.call(&sms, json!({"text": "Hi"}));
    world.incoming_call(&world.home, call.call_id.as_ref().unwrap(), &phone(1));
    world.call_tool(&call).await.result();
    world.call_tool(&call).await.result();
    world.call_tool(&world.call(&specific, json!({"text": "Hi"}))).await.result();
    world.call_tool(&world.call(&slack, json!({"text": "Hi"}))).await.result();
    world.call_tool(&world.call(&lookup, json!({}))).await.sentence();
    world.call_tool(&world.call(&query, json!({"query": "river"}))).await.result();
    world.call_tool(&world.call(&transfer, json!({}))).await.result();
    world.call_tool(&world.call(&place, json!({}))).await.result();
    world.twilio.inject(Fault::status(400));
    world.call_tool(&world.call(&sms, json!({"text": "Refused"}))).await.sentence();
    world.function_tool(&sms).await;
    let bearer = format!("Bearer {}", world.options.webhook_bearer.clone().unwrap());
    let path = format!("/api/tools/{}/execute", sms["id"].as_str().unwrap());
    let message = json!({"message": {"type": "tool-calls", "toolCallList": []}});
    world.send("execute", &tests::Event::post(&path, &message).header("authorization", &bearer)).await.expect(200);
    world.call_tool(&world.call(&later, json!({"text": "Hi"}))).await.result();
    // An old choice of what callers hear is derived anew, if one of the tool's executions is looked at.
    let choice = |derived_at: &str| {
        let choice = json!({"speaks": true, "usual_ms": null, "executions": 0, "derived_at": derived_at});
        world.aws.change("tools", sms["id"].as_str().unwrap(), json!({"spoken_at_start": choice}));
    };
    choice("2026-01-01T00:00:00.000Z");
    while world.aws.rows("intents").is_empty() {
        world.call_tool(&world.call(&sms, json!({"text": "Hi"}))).await.result();
    }
    choice(&Timestamp::now().to_string());
    for intent in world.aws.rows("intents") {
        world.aws.delete("intents", intent["id"].as_str().unwrap());
    }
    note(&mut asked, "execute", &mut world);
    call_start(&mut asked, &mut world).await;
    run_tool(&mut asked, &mut world, &[&sms, &specific, &slack, &lookup, &query, &transfer, &place]).await;
    automations(&mut asked, &mut world, &[&slack, &query, &lookup, &place_later]).await;

    let run = deploying(&world, &query, &lookup).await;
    note(&mut asked, "deploy", &mut world);
    approvals(&world, &run).await;
    note(&mut asked, "approvals", &mut world);
    by_the_clock(&mut asked, &mut world, &query, &lookup).await;
    tools_test(&world, [&specific, &slack, &query, &lookup, &place]).await;
    note(&mut asked, "tools-test", &mut world);
    agents(&world).await;
    note(&mut asked, "agents", &mut world);
    phone_numbers(&world).await;
    note(&mut asked, "phone-numbers", &mut world);
    keys(&world).await.expect(200);
    note(&mut asked, "keys", &mut world);
    members(&world).await;
    note(&mut asked, "members", &mut world);
    for path in ["/", "/console/settings.json"] {
        world.send("console", &Event::get(path)).await.expect(200);
    }
    note(&mut asked, "console", &mut world);
    hooks(&mut asked, &mut world).await;
    triggers::deployed_triggers(&mut asked, &mut world).await;
    asked
}

fn connect() -> Value {
    json!({"type": "transfer_call", "label": "Connect", "target": {"type": "number", "number": phone(9)}})
}

/// A tool that calls one person at any time.
fn place_call(world: &World, person: u32) -> Value {
    json!({
        "type": "place_call", "label": "Call", "phone_number_id": world.home.phone_number_id, "agent_id": world.home.agent_id,
        "to": phone(person), "hours": {"from": "00:00", "until": "24:00"}, "per_person_and_day": 10,
    })
}

fn with_secret() -> Value {
    let mut config = api_request("GET", "https://nobody.example/");
    config["headers"] = json!({"X-Api-Key": "s3cret-key", "X-Line": "s3cret-line"});
    config
}

/// Gives the home organization its own LLM key; returns its previous keys.
fn own_llm(world: &World) -> Value {
    let key = uuid::Uuid::now_v7().to_string();
    let home = &world.home.organization_id;
    let secret = json!({"api_key": "own", "base_url": "https://127.0.0.1"});
    world.aws.put_secret(&format!("switchboard/organizations/llm/{home}/{key}"), &secret);
    let before = world.aws.row("organizations", home).unwrap()["own_keys"].clone();
    let before = if before.is_object() { before } else { json!({}) };
    let mut own = before.clone();
    own["llm"] = json!({"id": key, "updated_at": Timestamp::now()});
    world.aws.change("organizations", home, json!({"own_keys": own}));
    before
}

/// Sends a request as the home organization's user.
async fn ask(world: &World, function: &str, method: &str, path: &str, body: &Value) -> Answer {
    let event = tests::Event::new(method, &format!("/api/{}/{path}", world.home.slug)).user(&world.home.user_id);
    world.send(function, &if body.is_null() { event } else { event.text(body.to_string()) }).await
}

#[tokio::test]
async fn a_role_grants_exactly_the_requests_of_its_function() {
    let template = Template::read();
    let mut all = asked(false).await;
    for (function, needs) in asked(true).await {
        all.entry(function).or_default().extend(needs);
    }
    let functions = template.resources("AWS::Serverless::Function");
    let tried: BTreeSet<String> = all.keys().map(|function| format!("{}Function", pascal(function))).collect();
    assert_eq!(tried, functions.keys().map(ToString::to_string).collect(), "functions whose paths are tried here");
    let mut wrong = Vec::new();
    for (function, needs) in all {
        let grants = granted(&template, function);
        let missing: Vec<_> = needs.iter().filter(|need| !grants.iter().any(|grant| allows(grant, need))).collect();
        if !missing.is_empty() {
            wrong.push(format!("{function} would be refused on AWS: {missing:#?}"));
        }
        let unused: Vec<_> = grants.iter().filter(|grant| !needs.iter().any(|need| allows(grant, need))).collect();
        if !unused.is_empty() {
            wrong.push(format!("{function} may do what it never does: {unused:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
