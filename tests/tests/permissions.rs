//! The roles of `infra/template.yaml` against what the functions really ask of AWS: nothing is missing, which would only
//! show on AWS, and nothing is granted that no path needs.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::large_futures,
    reason = "a test says what is wrong and stops"
)]

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use shared::models::Timestamp;
use tests::{
    Answer, Template, World, ai_sms, api_request,
    aws::{Operation, TABLE_PREFIX},
    phone, preemptive_sms, slack_action,
    standins::Fault,
};

const STACK: &str = "switchboard";

/// Per function, the permissions as `dynamodb:Query tools/index/by_organization`.
type Permissions = BTreeMap<&'static str, BTreeSet<String>>;

/// What an operation needs, as IAM names it.
fn needed(operation: &Operation) -> Vec<String> {
    let Operation { action, body, .. } = operation;
    let table = |name: &Value| name.as_str().unwrap().strip_prefix(TABLE_PREFIX).unwrap().to_owned();
    match action.as_str() {
        secret if secret.contains("Secret") => {
            let name = body["SecretId"].as_str().or_else(|| body["Name"].as_str());
            vec![format!("secretsmanager:{action} {}", name.unwrap())]
        }
        "TransactWriteItems" => {
            let items = body["TransactItems"].as_array().unwrap().iter().flat_map(|item| item.as_object().unwrap());
            let named = |kind: &str| match kind {
                "ConditionCheck" => "ConditionCheckItem".to_owned(),
                other => format!("{other}Item"),
            };
            items.map(|(kind, item)| format!("dynamodb:{} {}", named(kind), table(&item["TableName"]))).collect()
        }
        "BatchGetItem" | "BatchWriteItem" => {
            let tables = body["RequestItems"].as_object().unwrap().keys();
            tables.map(|name| format!("dynamodb:{action} {}", table(&json!(name)))).collect()
        }
        _ => {
            let index = body["IndexName"].as_str().map(|index| format!("/index/{index}")).unwrap_or_default();
            vec![format!("dynamodb:{action} {}{index}", table(&body["TableName"]))]
        }
    }
}

/// What a role grants, in the same words; logs apart.
fn granted(template: &Template, function: &str) -> BTreeSet<String> {
    let words = function.split('-').map(|word| format!("{}{}", word[..1].to_ascii_uppercase(), &word[1..]));
    let role = format!("{}Role", words.collect::<String>());
    let policies = &template.resources("AWS::IAM::Role")[role.as_str()]["Policies"];
    let list = |value: &Value| value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]);
    let mut granted = BTreeSet::new();
    for statement in policies.as_array().unwrap().iter().flat_map(|policy| list(&policy["PolicyDocument"]["Statement"]))
    {
        assert_eq!(statement["Effect"], "Allow");
        for action in list(&statement["Action"]).iter().map(|action| action.as_str().unwrap().to_owned()) {
            if !action.starts_with("logs:") {
                let on = list(&statement["Resource"]);
                granted.extend(on.iter().map(|resource| format!("{action} {}", resource_name(template, resource))));
            }
        }
    }
    granted
}

fn resource_name(template: &Template, resource: &Value) -> String {
    let of_stack = |text: &str| text.replace("${AWS::StackName}", STACK);
    let table = |id: &str| {
        let name = &template.resources("AWS::DynamoDB::Table")[id]["TableName"]["Fn::Sub"];
        of_stack(name.as_str().unwrap()).strip_prefix(TABLE_PREFIX).unwrap().to_owned()
    };
    if let Some(attribute) = resource["Fn::GetAtt"].as_str() {
        return match attribute.split_once('.').unwrap() {
            (id, "Arn") => table(id),
            (id, "Id") => {
                let name = &template.resources("AWS::SecretsManager::Secret")[id]["Name"]["Fn::Sub"];
                of_stack(name.as_str().unwrap())
            }
            _ => panic!("{attribute}"),
        };
    }
    let text = resource["Fn::Sub"].as_str().unwrap();
    match text.strip_prefix("${").and_then(|rest| rest.split_once(".Arn}")) {
        Some((id, rest)) => format!("{}{rest}", table(id)),
        None => of_stack(text.split_once(":secret:").unwrap().1),
    }
}

/// Whether the resource of a grant, which may end in `*`, is that of a need.
fn allows(grant: &str, need: &str) -> bool {
    grant.strip_suffix('*').map_or(grant == need, |start| need.starts_with(start))
}

/// Writes down what was asked since the last time, and begins with the next function.
fn note(permissions: &mut Permissions, function: &'static str, world: &mut World) {
    let needs = world.aws.operations().iter().flat_map(needed).collect::<Vec<_>>();
    permissions.entry(function).or_default().extend(needs);
    // The next function knows nothing yet: on Lambda it is another process.
    world.restart();
    world.aws.clear_operations();
}

/// Every path of every function that asks something else of AWS.
async fn asked() -> Permissions {
    let mut asked = Permissions::new();
    let mut world = World::start().await;
    world.restart();

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
    let sms = world.tool(&ai_sms()).await;
    let mut specific = ai_sms();
    specific["from"] = json!({"type": "specific_number", "phone_number_id": world.home.phone_number_id});
    let specific = world.tool(&specific).await;
    let slack = world.tool(&slack_action(&world.home)).await;
    let lookup = world.tool(&api_request("GET", "https://127.0.0.1/")).await;
    world.vapi.inject(Fault::status(400));
    world.create(&ai_sms()).await.expect(502);
    note(&mut asked, "create", &mut world);

    for tool in [&sms, &specific, &slack, &lookup, &query, &sms] {
        let answer: Answer = world.attach(tool["id"].as_str().unwrap()).await;
        assert!(answer.status < 300, "{}", answer.body);
    }
    note(&mut asked, "attach", &mut world);

    world.knowledge("DELETE", &at(&base, ""), &Value::Null).await.expect(409);
    note(&mut asked, "knowledge", &mut world);

    detach_update_delete(&mut asked, &mut world).await;
    world.attach(sms["id"].as_str().unwrap()).await;
    settle(&mut asked, &mut world, &sms).await;

    // Looking at an agent's tools repairs what differs: one is missing in the table, one at VAPI.
    let (missing, stale) = (world.tool(&ai_sms()).await, world.attached(&ai_sms()).await);
    let mut model = world.model();
    model["toolIds"] = json!([sms["external_tool_id"], missing["external_tool_id"]]);
    world.at_vapi("PATCH", &format!("/assistant/{}", world.home.assistant_id), &json!({"model": model})).await;
    assert!(world.aws.rows("agent_tools").iter().any(|row| row["tool_id"] == stale["id"]));
    world.restart();
    world.aws.clear_operations();
    let agent = format!("/agents/{}/tools", world.home.agent_id);
    let tool = format!("/tools/{}", sms["id"].as_str().unwrap());
    for path in ["/tools", &tool, &format!("{tool}/executions"), &agent] {
        world.list(path).await.expect(200);
    }
    note(&mut asked, "list", &mut world);
    world.executions_of_call("unknown").await.expect(404);
    note(&mut asked, "calls", &mut world);
    for tool in [&specific, &slack, &lookup, &query] {
        world.attach(tool["id"].as_str().unwrap()).await.expect(201);
    }
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
    world.twilio.inject(Fault::status(400));
    world.call_tool(&world.call(&sms, json!({"text": "Refused"}))).await.sentence();
    world.function_tool(&sms).await;
    let bearer = format!("Bearer {}", world.options.webhook_bearer.clone().unwrap());
    let path = format!("/api/tools/{}/execute", sms["id"].as_str().unwrap());
    let message = json!({"message": {"type": "tool-calls", "toolCallList": []}});
    world.send("execute", &tests::Event::post(&path, &message).header("authorization", &bearer)).await.expect(200);
    note(&mut asked, "execute", &mut world);

    agents(&world).await;
    note(&mut asked, "agents", &mut world);
    phone_numbers(&world).await;
    note(&mut asked, "phone-numbers", &mut world);
    asked
}

async fn detach_update_delete(asked: &mut Permissions, world: &mut World) {
    let (one, other) = (world.attached(&ai_sms()).await, world.attached(&ai_sms()).await);
    let mut specific = ai_sms();
    specific["from"] = json!({"type": "specific_number", "phone_number_id": world.home.phone_number_id});
    let slack = world.tool(&slack_action(&world.home)).await;
    let attached = world.attached(&ai_sms()).await;
    let base = world.knowledge_base(&json!([{"name": "city", "type": "text"}]), &json!([{"city": "Porto"}])).await;
    let query = world.tool(&json!({"type": "query", "label": "Find", "knowledge_base_id": base["id"]})).await;
    world.restart();
    world.aws.clear_operations();

    let id = |tool: &Value| tool["id"].as_str().unwrap().to_owned();
    world.detach(&id(&other)).await.expect(200);
    world.detach(&id(&other)).await.expect(404);
    note(asked, "detach", world);

    world.update(&slack, &json!({"label": "Another"})).await.expect(200);
    world.update(&query, &json!({"label": "Another"})).await.expect(200);
    world.update(&one, &json!({"name": "one", "from": specific["from"]})).await.expect(200);
    world.update(&one, &preemptive_sms()).await.expect(200);
    world.vapi.inject(Fault::status(400));
    world.update(&one, &json!({"name": "two", "attach_to_agent": true})).await.expect(502);
    note(asked, "update", world);

    world.delete(&one).await.expect(200);
    world.delete(&other).await.expect(200);
    world.delete(&attached).await.expect(200);
    note(asked, "delete", world);
}

/// Settles an intent of each kind, made by hand.
async fn settle(asked: &mut Permissions, world: &mut World, tool: &Value) {
    let unknown = uuid::Uuid::now_v7().to_string();
    let (agent, external) = (world.home.agent_id.clone(), tool["external_tool_id"].clone());
    let gone = world.attached(&ai_sms()).await;
    let lost = world.tool(&ai_sms()).await;
    world.at_vapi("DELETE", &format!("/tool/{}", lost["external_tool_id"].as_str().unwrap()), &json!({})).await;
    world.restart();
    world.aws.clear_operations();
    for (number, change) in [
        json!({"change": "create_tool", "tool_id": unknown, "name": "lost"}),
        json!({"change": "update_tool", "tool_id": tool["id"], "name": "reserved"}),
        json!({"change": "update_tool", "tool_id": lost["id"]}),
        json!({"change": "attach_tool", "agent_id": agent, "tool_id": tool["id"], "external_tool_id": external}),
        json!({"change": "detach_tool", "agent_id": agent, "tool_id": tool["id"], "external_tool_id": external}),
        json!({"change": "delete_tool", "tool_id": gone["id"]}),
    ]
    .into_iter()
    .enumerate()
    {
        let mut row = change;
        row["id"] = json!(uuid::Uuid::now_v7().to_string());
        row["organization_id"] = json!(world.home.organization_id);
        row["created_at"] = json!(format!("2026-01-01T00:00:0{number}.000Z"));
        row["owner_until"] = json!(1);
        world.aws.put("intents", &row);
    }
    let report = world.settle().await;
    assert_eq!((report["settled"].as_array().map(Vec::len), &report["left"]), (Some(6), &json!([])), "{report}");
    note(asked, "settle", world);
}

/// Asks as the home organization's user.
async fn ask(world: &World, function: &str, method: &str, path: &str, body: &Value) -> Answer {
    let event = tests::Event::new(method, &format!("/api/{}/{path}", world.home.slug)).user(&world.home.user_id);
    world.send(function, &if body.is_null() { event } else { event.text(body.to_string()) }).await
}

async fn agents(world: &World) {
    let assistant = world.at_vapi("POST", "/assistant", &json!({"name": "Nights"})).await;
    let body = json!({"external_assistant_id": assistant["id"]});
    let agent = ask(world, "agents", "POST", "agents", &body).await.expect(201);
    let new = format!("agents/{}", agent["id"].as_str().unwrap());
    let seeded = format!("agents/{}", world.home.agent_id);
    ask(world, "agents", "GET", "agents", &Value::Null).await.expect(200);
    ask(world, "agents", "GET", &new, &Value::Null).await.expect(200);
    ask(world, "agents", "DELETE", &seeded, &Value::Null).await.expect(409);
    world.aws.change("phone_numbers", &world.home.phone_number_id, json!({"agent_id": null}));
    ask(world, "agents", "DELETE", &seeded, &Value::Null).await.expect(200);
}

async fn phone_numbers(world: &World) {
    let home = &world.home;
    let seeded = format!("phone-numbers/{}", home.phone_number_id);
    world.aws.inject(tests::Fault::throttled("TransactWriteItems", "phone_numbers"));
    ask(world, "phone-numbers", "DELETE", &seeded, &Value::Null).await.expect(503);
    ask(world, "phone-numbers", "DELETE", &seeded, &Value::Null).await.expect(200);
    let now = Timestamp::now();
    world.aws.put(
        "agents",
        &json!({
            "id": home.agent_id, "organization_id": home.organization_id, "name": "Nights",
            "external_assistant_id": home.assistant_id, "created_at": now, "updated_at": now,
        }),
    );
    let body = json!({
        "number": home.phone_number, "label": "Main line", "agent_id": home.agent_id,
        "twilio": {"account_sid": home.twilio_sid, "auth_token": home.twilio_token},
    });
    let row = ask(world, "phone-numbers", "POST", "phone-numbers", &body).await.expect(201);
    let path = format!("phone-numbers/{}", row["id"].as_str().unwrap());
    ask(world, "phone-numbers", "GET", "phone-numbers", &Value::Null).await.expect(200);
    ask(world, "phone-numbers", "GET", &path, &Value::Null).await.expect(200);
    let change = json!({"agent_id": null, "twilio": body["twilio"]});
    ask(world, "phone-numbers", "PATCH", &path, &change).await.expect(200);
}

#[tokio::test]
async fn a_role_grants_what_its_function_asks_for_and_nothing_else() {
    let template = Template::read();
    for (function, needs) in asked().await {
        let grants = granted(&template, function);
        let missing: Vec<_> = needs.iter().filter(|need| !grants.iter().any(|grant| allows(grant, need))).collect();
        assert!(missing.is_empty(), "{function} would be refused on AWS: {missing:#?}");
        let unused: Vec<_> = grants.iter().filter(|grant| !needs.iter().any(|need| allows(grant, need))).collect();
        assert!(unused.is_empty(), "{function} may do what it never does: {unused:#?}");
    }
}
