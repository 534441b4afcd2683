//! /api/{slug}/keys: an organization's own accounts, and the separation from all others.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::large_futures,
    reason = "a test says what is wrong and stops"
)]

use std::time::Duration;

use futures_util::join;
use serde_json::{Value, json};
use shared::{
    Deadline, Error,
    clients::{
        Llm, http_client,
        llm::{CompletionRequest, Message},
    },
    models::KeyService,
};
use tests::{
    ANOTHER_KEY, Answer, Event, Fault, OWN_KEYS, Options, PLATFORM_KEY, SECOND_PLATFORM_KEY, Tenant, Trouble, World,
    ai_sms, logs::Logs, standins,
};
use uuid::Uuid;

const SECRETS: &str = "switchboard/organizations/";

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// A world whose home organization has nothing at VAPI yet.
async fn empty() -> World {
    let world = World::start().await;
    world.aws.delete("agents", &world.home.agent_id);
    world.aws.delete("phone_numbers", &world.home.phone_number_id);
    world
}

async fn put(world: &World, key: &str) -> Answer {
    world.keys(&world.home, "PUT", "/vapi", &json!({"api_key": key})).await
}

async fn remove(world: &World, service: &str) -> Answer {
    world.keys(&world.home, "DELETE", &format!("/{service}"), &Value::Null).await
}

/// The home organization's services with an own key, as the API shows them.
async fn own(world: &World) -> Vec<String> {
    let shown = world.keys(&world.home, "GET", "", &Value::Null).await.expect(200);
    let items = shown["items"].as_array().unwrap().clone();
    assert!(items.iter().all(|item| item["own"] == item["updated_at"].is_string()), "{shown}");
    items.iter().filter(|item| item["own"] == true).map(|item| text(&item["service"]).to_owned()).collect()
}

/// The keys that VAPI has seen, each once, in order; clears the list.
fn shown_to_vapi(world: &World) -> Vec<String> {
    let mut keys: Vec<String> = Vec::new();
    for request in world.vapi.requests() {
        let key = request.headers["authorization"].strip_prefix("Bearer ").unwrap().to_owned();
        if keys.last() != Some(&key) {
            keys.push(key);
        }
    }
    world.vapi.clear_requests();
    keys
}

/// Registers an agent of the organization; its assistant is made with this key.
async fn agent(world: &World, tenant: &Tenant, key: &str) -> Answer {
    let event = registration(world, tenant, key).await;
    world.send("agents", &event).await
}

async fn registration(world: &World, tenant: &Tenant, key: &str) -> Event {
    let assistant = json!({"name": "Nights", "model": {"provider": "openai", "model": "gpt-4o"}});
    let assistant = world.at_vapi_with(key, "POST", "/assistant", &assistant).await;
    if key == PLATFORM_KEY {
        world.prove(tenant, text(&assistant["id"])).await;
    }
    world.vapi.clear_requests();
    let body = json!({"external_assistant_id": assistant["id"]});
    Event::post(&format!("/api/{}/agents", tenant.slug), &body).user(&tenant.user_id)
}

async fn remove_agent(world: &World, id: &str) -> Answer {
    let path = format!("/api/{}/agents/{id}", world.home.slug);
    world.send("agents", &Event::new("DELETE", &path).user(&world.home.user_id)).await
}

#[tokio::test]
async fn an_organization_with_a_key_uses_its_own_account_for_everything_and_the_others_the_platforms() {
    let world = empty().await;
    let answer = put(&world, OWN_KEYS[0]).await.expect(200);
    assert_eq!((&answer["service"], &answer["own"]), (&json!("vapi"), &json!(true)));
    assert_eq!(own(&world).await, ["vapi"]);
    assert_eq!(shown_to_vapi(&world), [OWN_KEYS[0]]);

    let foreign = agent(&world, &world.home, PLATFORM_KEY).await;
    assert_eq!(foreign.wrong_fields(), ["external_assistant_id"], "an assistant of the platform's is none of theirs");
    let agent = agent(&world, &world.home, OWN_KEYS[0]).await.expect(201);
    let (agent, tool) = (text(&agent["id"]).to_owned(), world.tool(&ai_sms()).await);
    let at_vapi = world.vapi.tool(text(&tool["external_tool_id"])).unwrap();
    assert_eq!(at_vapi["orgId"], "own");
    world.attach_as(&world.home, &agent, text(&tool["id"])).await.expect(201);
    world.update(&tool, &json!({"description": "Another one"})).await.expect(200);
    let listed = world.list(&format!("/agents/{agent}/tools")).await.expect(200);
    assert_eq!((&listed["synced"], listed["items"].as_array().unwrap().len()), (&json!(true), 1));
    world.detach_as(&world.home, &agent, text(&tool["id"])).await.expect(200);
    world.attach_as(&world.home, &agent, text(&tool["id"])).await.expect(201);
    world.delete(&tool).await.expect(200);
    remove_agent(&world, &agent).await.expect(200);
    assert_eq!(shown_to_vapi(&world), [OWN_KEYS[0]]);

    let theirs = world.create_as(&world.other, &ai_sms()).await.expect(201);
    world.attach_as(&world.other, &world.other.agent_id, text(&theirs["id"])).await.expect(201);
    assert_eq!(shown_to_vapi(&world), [PLATFORM_KEY]);
}

#[tokio::test]
async fn a_key_is_in_its_secret_alone() {
    let logs = Logs::capture();
    let world = empty().await;
    let body = json!({"api_key": OWN_KEYS[0], "webhook_bearer": "what-vapi-sends"});
    let stored = world.keys(&world.home, "PUT", "/vapi", &body).await.expect(200);
    let [name] = &world.aws.secret_names(SECRETS)[..] else { panic!("one secret") };
    assert!(name.starts_with(&format!("{SECRETS}vapi/{}/", world.home.organization_id)), "{name}");
    assert_eq!(world.aws.secret(name), Some(body));
    let shown = world.keys(&world.home, "GET", "", &Value::Null).await.expect(200);
    let tables = json!([world.aws.rows("organizations"), world.aws.rows("intents")]);
    world.vapi.inject(standins::Fault::status(500).times(9));
    put(&world, OWN_KEYS[1]).await.expect(502);
    for hidden in [OWN_KEYS[0], "what-vapi-sends"] {
        for seen in [&stored, &shown, &tables] {
            assert!(!seen.to_string().contains(hidden), "{seen}");
        }
        assert!(!format!("{:?}", logs.ours()).contains(hidden));
    }
}

#[tokio::test]
async fn a_replaced_key_shows_its_new_settings_and_none_of_its_secrets() {
    let world = empty().await;
    let unknown = json!({"api_key": OWN_KEYS[0], "webhook_bearer": "stored-by-an-earlier-version"});
    world.own_key(&world.home, &unknown);
    let shown = async |place: usize| {
        let mut item = world.keys(&world.home, "GET", "", &Value::Null).await.expect(200)["items"][place].clone();
        for known in ["service", "own", "updated_at", "verify_claims"] {
            item.as_object_mut().unwrap().remove(known).unwrap();
        }
        item
    };
    assert_eq!((shown(0).await, shown(1).await), (json!({}), json!({})));
    for bearer in [json!("what-vapi-sends"), Value::Null] {
        let body = json!({"api_key": OWN_KEYS[0], "webhook_bearer": bearer});
        world.keys(&world.home, "PUT", "/vapi", &body).await.expect(200);
        assert_eq!(shown(0).await, json!({"has_webhook_bearer": !bearer.is_null()}));
    }
    let elsewhere = json!({"base_url": "https://llm.example.com/v1", "model": "small"});
    let mut client = elsewhere.clone();
    client.as_object_mut().unwrap().extend([
        ("token_url".to_owned(), json!("https://id.example.com/token")),
        ("scope".to_owned(), json!("chat")),
        ("audience".to_owned(), json!("https://llm.example.com")),
    ]);
    let openrouter = json!({"base_url": "https://openrouter.ai/api/v1"});
    for (secrets, given, expected) in [
        (json!({"api_key": "sk-1"}), &elsewhere, &elsewhere),
        (json!({"client_id": "us", "client_secret": "s"}), &client, &client),
        (json!({"api_key": "sk-2"}), &json!({}), &openrouter),
    ] {
        let mut body = secrets;
        body.as_object_mut().unwrap().extend(given.as_object().unwrap().clone());
        world.keys(&world.home, "PUT", "/llm", &body).await.expect(200);
        assert_eq!(&shown(1).await, expected);
    }
    assert_eq!(shown(0).await, json!({"has_webhook_bearer": false}), "another service's key keeps its settings");
}

#[tokio::test]
async fn a_key_that_vapi_refuses_or_cannot_try_is_not_stored() {
    let world = empty().await;
    let wrong = put(&world, "no-key-of-anybodys").await;
    assert_eq!(wrong.wrong_fields(), ["api_key"]);
    for (fault, status) in [
        (standins::Fault::status(500), 502),
        (standins::Fault::body(json!({"message": "maintenance"})), 502),
        (standins::Fault::status(429).with_header("Retry-After", "600"), 503),
    ] {
        world.vapi.inject(fault.times(20));
        assert_eq!(put(&world, OWN_KEYS[0]).await.status, status);
        world.vapi.clear_faults();
    }
    assert_eq!(own(&world).await, [""; 0]);
    assert_eq!((world.aws.secret_names(SECRETS).len(), world.aws.rows("intents").len()), (0, 0));
}

#[tokio::test]
async fn another_account_is_refused_while_agents_are_at_the_old_one() {
    let world = World::start().await;
    let refused = put(&world, OWN_KEYS[0]).await;
    assert_eq!((refused.status, &refused.body["code"]), (409, &json!("conflict")));
    let detail = text(&refused.body["detail"]);
    assert!(detail.contains("\"Front desk\"") && detail.contains("remove the agents"), "{detail}");
    assert!(world.aws.secret_names(SECRETS).is_empty());

    // Another key of the same account is no change of account.
    let tool = world.attached(&ai_sms()).await;
    put(&world, SECOND_PLATFORM_KEY).await.expect(200);
    world.vapi.clear_requests();
    world.update(&tool, &json!({"description": "Another one"})).await.expect(200);
    assert_eq!(shown_to_vapi(&world), [SECOND_PLATFORM_KEY]);
    put(&world, ANOTHER_KEY).await.expect(409);
    // And back to the platform's, which sees them too.
    remove(&world, "vapi").await.expect(200);
    assert_eq!(own(&world).await, [""; 0]);
    world.delete(&tool).await.expect(200);
}

#[tokio::test]
async fn another_account_is_refused_while_tools_are_at_the_old_one() {
    let world = empty().await;
    let tool = world.tool(&ai_sms()).await;
    let refused = put(&world, OWN_KEYS[0]).await.expect(409);
    assert!(text(&refused["detail"]).contains("delete the tools"), "{refused}");
    put(&world, SECOND_PLATFORM_KEY).await.expect(200);
    world.delete(&tool).await.expect(200);
    // A tool for call start only is at no account.
    world.tool(&tests::preemptive_sms()).await;
    put(&world, OWN_KEYS[0]).await.expect(200);

    let tool = world.tool(&ai_sms()).await;
    remove(&world, "vapi").await.expect(409);
    put(&world, ANOTHER_KEY).await.expect(409);
    world.delete(&tool).await.expect(200);
    remove(&world, "vapi").await.expect(200);
}

#[tokio::test]
async fn another_account_is_refused_while_phone_numbers_have_ids_of_the_old_one() {
    let world = World::start().await;
    world.aws.delete("agents", &world.home.agent_id);
    let number = &world.home.phone_number;
    let known_as = |id: &Value| {
        world.aws.change("phone_numbers", &world.home.phone_number_id, json!({"vapi_phone_number_id": id}));
    };
    let assert_named = |refused: &Value| {
        let detail = text(&refused["detail"]);
        assert!(detail.contains(number.as_str()) && detail.contains("set vapi_phone_number_id"), "{detail}");
    };
    known_as(&json!(world.vapi.set_number(number, &world.home.assistant_id).unwrap()));
    assert_named(&put(&world, OWN_KEYS[0]).await.expect(409));
    assert!(world.aws.secret_names(SECRETS).is_empty());
    put(&world, SECOND_PLATFORM_KEY).await.expect(200);
    known_as(&Value::Null);
    put(&world, OWN_KEYS[0]).await.expect(200);

    let assistant = json!({"name": "Nights", "model": {"provider": "openai", "model": "gpt-4o"}});
    let assistant = world.at_vapi_with(OWN_KEYS[0], "POST", "/assistant", &assistant).await;
    known_as(&json!(world.vapi.set_number(number, text(&assistant["id"])).unwrap()));
    assert_named(&remove(&world, "vapi").await.expect(409));
    assert_named(&put(&world, ANOTHER_KEY).await.expect(409));
    known_as(&Value::Null);
    remove(&world, "vapi").await.expect(200);
}

#[tokio::test]
async fn every_agent_counts_and_a_refusal_names_a_few() {
    let world = World::start().await;
    world.agents(12).await;
    let refused = put(&world, OWN_KEYS[0]).await.expect(409);
    let detail = text(&refused["detail"]);
    assert_eq!((detail.matches('"').count(), detail.contains("and others")), (10, true), "{detail}");
    put(&world, SECOND_PLATFORM_KEY).await.expect(200);
}

#[tokio::test]
async fn an_account_is_not_changed_under_a_change_that_has_not_ended() {
    let world = empty().await;
    world.aws.put(
        "intents",
        &json!({
            "id": Uuid::now_v7(), "organization_id": world.home.organization_id, "change": "create_tool",
            "tool_id": Uuid::now_v7(), "name": "lost", "created_at": "2026-01-01T00:00:00.000Z", "owner_until": 1,
        }),
    );
    let refused = put(&world, OWN_KEYS[0]).await.expect(409);
    assert!(text(&refused["detail"]).contains("try again in a few minutes"), "{refused}");
    world.settle().await;
    put(&world, OWN_KEYS[0]).await.expect(200);
}

#[tokio::test]
async fn a_new_key_is_used_at_once_by_functions_that_know_the_old_one() {
    let world = empty().await;
    put(&world, OWN_KEYS[0]).await.expect(200);
    let tool = world.tool(&ai_sms()).await;
    put(&world, OWN_KEYS[1]).await.expect(200);
    world.vapi.clear_requests();
    world.update(&tool, &json!({"description": "Another one"})).await.expect(200);
    assert_eq!(shown_to_vapi(&world), [OWN_KEYS[1]]);
    assert_eq!(world.aws.secret_names(SECRETS).len(), 1, "the old key is deleted");
    assert_eq!(world.aws.rows("intents").len(), 0);
}

#[tokio::test]
async fn a_removed_key_is_gone_and_another_can_follow() {
    let world = empty().await;
    assert_eq!(remove(&world, "vapi").await.status, 404);
    for _again in 0..2 {
        put(&world, OWN_KEYS[0]).await.expect(200);
        assert_eq!(remove(&world, "vapi").await.expect(200), json!({"status": "deleted"}));
        assert_eq!(remove(&world, "vapi").await.status, 404);
    }
    assert_eq!((own(&world).await.len(), world.aws.secret_names(SECRETS).len()), (0, 0));
    world.vapi.clear_requests();
    world.tool(&ai_sms()).await;
    assert_eq!(shown_to_vapi(&world), [PLATFORM_KEY]);
}

#[tokio::test]
async fn only_owners_and_admins_change_keys_and_every_member_sees_them() {
    let world = empty().await;
    let home = &world.home;
    for (role, status) in [("member", 403), ("viewer", 403), ("admin", 200), ("owner", 200)] {
        let row = json!({"user_id": home.user_id, "organization_id": home.organization_id, "role": role});
        world.aws.put("organization_members", &row);
        assert_eq!(put(&world, OWN_KEYS[0]).await.status, status, "{role}");
        assert_eq!(remove(&world, "vapi").await.status, status, "{role}");
        world.keys(home, "GET", "", &Value::Null).await.expect(200);
    }
    let row = json!({"user_id": home.user_id, "organization_id": home.organization_id});
    world.aws.put("organization_members", &row);
    let refused = put(&world, OWN_KEYS[0]).await.expect(403);
    assert_eq!(refused["code"], "forbidden");
}

#[tokio::test]
async fn the_llms_account_is_kept_for_who_speaks_to_it() {
    let world = World::start().await;
    let llm = async |body: &Value| world.keys(&world.home, "PUT", "/llm", body).await;
    llm(&json!({"api_key": "sk-1", "model": "small"})).await.expect(200);
    assert_eq!(own(&world).await, ["llm"]);
    let organization = world.home.organization_id.parse().unwrap();
    let read = async || world.process.execute.accounts.own::<Value>(organization, KeyService::Llm).await.unwrap();
    let stored = json!({"api_key": "sk-1", "base_url": "https://openrouter.ai/api/v1", "model": "small"});
    assert_eq!(read().await, Some(stored));
    let other = world.other.organization_id.parse().unwrap();
    assert_eq!(world.process.execute.accounts.own::<Value>(other, KeyService::Llm).await.unwrap(), None);

    let client = json!({
        "client_id": "us", "client_secret": "s3cret", "token_url": "https://id.example.com/token",
        "base_url": "https://llm.example.com/v1",
    });
    llm(&client).await.expect(200);
    assert_eq!(read().await, Some(client.clone()));
    for (pointer, field) in [("/token_url", "token_url"), ("/base_url", "base_url")] {
        let mut private = client.clone();
        *private.pointer_mut(pointer).unwrap() = json!("https://169.254.169.254/");
        assert_eq!(llm(&private).await.wrong_fields(), [field]);
    }
    assert!(world.vapi.requests().is_empty(), "an LLM's key has nothing to do with VAPI's account");
    remove(&world, "llm").await.expect(200);
    assert_eq!(read().await, None);
    assert!(world.aws.secret_names(SECRETS).is_empty());
}

/// The answer of the organization's LLM, as a function asks it.
async fn ask(world: &World, tenant: &Tenant) -> Result<String, Error> {
    let accounts = world.process.keys.accounts.clone().with_llm("switchboard/llm", "the/default");
    let client = Llm::new(http_client()?, world.process.keys.outbound.clone());
    let account = accounts.llm(tenant.organization_id.parse().unwrap()).await?;
    let messages = [Message::user("Who are you?")];
    let deadline = Deadline::after(Duration::from_secs(30));
    Ok(client.complete(&account, &CompletionRequest::new(&messages), deadline).await?.text)
}

/// The organization's own LLM answers, otherwise the platform's, otherwise a sentence says how to get a key.
#[tokio::test]
async fn an_organizations_llm_serves_that_organization_only() {
    let [own, platforms] = ["own-key", "platforms-key"].map(|api_key| {
        let options = standins::llm::Options { api_key: api_key.to_owned(), ..Default::default() };
        standins::llm::start(([127, 0, 0, 1], 0).into(), options).unwrap()
    });
    let text = standins::llm::Turn::text;
    let mut world = World::with(Options { open_hosts: vec![own.address().to_string()], ..Options::default() }).await;
    world.aws.put_secret("switchboard/llm", &json!({"api_key": "", "base_url": platforms.url}));
    let missing = ask(&world, &world.home).await.unwrap_err();
    assert_eq!(missing.status(), 409);
    for way in ["PUT /api/{slug}/keys/llm", "LlmApiKey"] {
        assert!(missing.to_string().contains(way), "{missing}");
    }
    let key = json!({"api_key": "own-key", "base_url": own.url, "model": "small"});
    world.keys(&world.home, "PUT", "/llm", &key).await.expect(200);
    own.script([text("yours")]);
    assert_eq!(ask(&world, &world.home).await.unwrap(), "yours");
    assert_eq!(own.requests()[0].body["model"], "small");
    assert_eq!(ask(&world, &world.other).await.unwrap_err().status(), 409, "another organization's key is nobody's");

    world.aws.put_secret("switchboard/llm", &json!({"api_key": "platforms-key", "base_url": platforms.url}));
    world.restart();
    platforms.script([text("everybody's"), text("everybody's")]);
    assert_eq!(ask(&world, &world.other).await.unwrap(), "everybody's");
    remove(&world, "llm").await.expect(200);
    assert_eq!(ask(&world, &world.home).await.unwrap(), "everybody's");
    assert_eq!(platforms.requests()[0].body["model"], "the/default");
    assert!(own.script_left().is_empty() && platforms.script_left().is_empty());
}

#[tokio::test]
async fn lost_answers_are_found_again_and_refusals_leave_nothing() {
    let world = empty().await;
    world.aws.inject(Fault::new("CreateSecret", "*", Trouble::DropAfter));
    world.aws.inject(Fault::new("TransactWriteItems", "organizations", Trouble::DropAfter).times(3));
    put(&world, OWN_KEYS[0]).await.expect(200);
    assert_eq!((own(&world).await, world.aws.secret_names(SECRETS).len()), (vec!["vapi".to_owned()], 1));

    world.aws.inject(Fault::throttled("TransactWriteItems", "organizations"));
    assert_eq!(put(&world, OWN_KEYS[1]).await.status, 503);
    world.aws.inject(Fault::new("CreateSecret", "*", Trouble::Error("AccessDeniedException")));
    assert_eq!(put(&world, OWN_KEYS[1]).await.status, 502);
    world.aws.inject(Fault::throttled("TransactWriteItems", "organizations"));
    assert_eq!(remove(&world, "vapi").await.status, 503);
    let [name] = &world.aws.secret_names(SECRETS)[..] else { panic!("one secret") };
    assert_eq!(world.aws.secret(name).unwrap()["api_key"], OWN_KEYS[0]);
    assert_eq!(world.aws.rows("intents").len(), 0);

    world.aws.inject(Fault::new("TransactWriteItems", "organizations", Trouble::DropAfter).times(3));
    remove(&world, "vapi").await.expect(200);
    assert_eq!((own(&world).await.len(), world.aws.secret_names(SECRETS).len()), (0, 0));
}

#[tokio::test]
async fn of_two_keys_at_once_one_is_stored_and_one_secret_is_left() {
    for _ in 0..5 {
        let world = empty().await;
        let (one, two) = join!(put(&world, OWN_KEYS[0]), put(&world, ANOTHER_KEY));
        let mut statuses = [one.status, two.status];
        statuses.sort_unstable();
        assert!(statuses == [200, 409] || statuses == [200, 200], "{statuses:?}");
        assert_eq!((world.aws.secret_names(SECRETS).len(), world.aws.rows("intents").len()), (1, 0));
    }
}

/// Sends a request that stalls at its transaction on this table, which the SDK sends again, and another meanwhile.
async fn overtaken(
    world: &World,
    table: &str,
    slow: impl Future<Output = Answer>,
    fast: impl Future<Output = Answer>,
) -> [Answer; 2] {
    world.aws.inject(Fault::new("TransactWriteItems", table, Trouble::StallBefore));
    let fast = async {
        world.aws.stalled().await;
        fast.await
    };
    join!(slow, fast).into()
}

#[tokio::test]
async fn of_a_registration_and_a_change_of_account_at_once_one_is_refused() {
    for change_is_slow in [true, false] {
        let world = empty().await;
        let event = registration(&world, &world.home, PLATFORM_KEY).await;
        let (change, register) = (put(&world, OWN_KEYS[0]), world.send("agents", &event));
        let answers = if change_is_slow {
            overtaken(&world, "organizations", change, register).await
        } else {
            overtaken(&world, "agents", register, change).await
        };
        one_is_refused(&answers);
    }
}

#[tokio::test]
async fn of_vapis_id_for_a_number_and_a_change_of_account_at_once_one_is_refused() {
    for change_is_slow in [true, false] {
        let world = World::start().await;
        world.aws.delete("agents", &world.home.agent_id);
        let at_vapi = world.vapi.set_number(&world.home.phone_number, &world.home.assistant_id).unwrap();
        let path = format!("/api/{}/phone-numbers/{}", world.home.slug, world.home.phone_number_id);
        let event = Event::new("PATCH", &path).text(json!({"vapi_phone_number_id": at_vapi}).to_string());
        let event = event.user(&world.home.user_id);
        let (change, register) = (put(&world, OWN_KEYS[0]), world.send("phone-numbers", &event));
        let answers = if change_is_slow {
            overtaken(&world, "organizations", change, register).await
        } else {
            overtaken(&world, "phone_numbers", register, change).await
        };
        one_is_refused(&answers);
    }
}

fn one_is_refused(answers: &[Answer; 2]) {
    let done = answers.iter().filter(|answer| [200, 201].contains(&answer.status)).count();
    let refused = answers.iter().filter(|answer| [409, 422].contains(&answer.status)).count();
    assert_eq!((done, refused), (1, 1), "{} {}", answers[0].body, answers[1].body);
}

/// A call of a tool with this bearer in place of its token.
async fn run(world: &World, tool: &str, bearer: &str) -> Answer {
    let body = json!({"text": "Hi", "metadata": {
        "callerPhoneNumber": "+14155550101", "calledPhoneNumber": world.home.phone_number, "callId": Uuid::now_v7(),
    }});
    let event = Event::post(&format!("/api/tools/{tool}/execute"), &body);
    world.send("execute", &event.header("authorization", &format!("Bearer {bearer}"))).await
}

#[tokio::test]
async fn the_platforms_bearer_opens_no_tool_of_an_organization_with_an_account_of_its_own() {
    let world = World::start().await;
    let platforms = world.options.webhook_bearer.clone().unwrap();
    let tool = world.attached(&ai_sms()).await;
    let id = text(&tool["id"]);
    run(&world, id, &platforms).await.result();

    let body = json!({"api_key": SECOND_PLATFORM_KEY, "webhook_bearer": "their-own-bearer"});
    world.keys(&world.home, "PUT", "/vapi", &body).await.expect(200);
    let claims = world.aws.rows("idempotency").len();
    world.twilio.clear_requests();
    let refused = run(&world, id, &platforms).await;
    let wrong = run(&world, id, "no-bearer-of-anybodys").await;
    let nowhere = run(&world, &Uuid::now_v7().to_string(), "no-bearer-of-anybodys").await;
    for answer in [&refused, &wrong, &nowhere] {
        assert_eq!((answer.status, &answer.body), (401, &refused.body), "no refusal tells more than another");
    }
    assert!(world.twilio.requests().is_empty());
    assert_eq!(world.aws.rows("idempotency").len(), claims, "nothing is claimed for who was not let in");

    // An own bearer opens only its organization's tools; the tool's token still works.
    run(&world, id, "their-own-bearer").await.result();
    let theirs = world.create_as(&world.other, &ai_sms()).await.expect(201);
    assert_eq!(run(&world, text(&theirs["id"]), "their-own-bearer").await.status, 401);
    world.call_tool(&world.call(&tool, json!({"text": "Hi"}))).await.result();

    // Without an own bearer, no bearer opens it.
    put(&world, SECOND_PLATFORM_KEY).await.expect(200);
    for bearer in [platforms.as_str(), "their-own-bearer", "null", ""] {
        assert_eq!(run(&world, id, bearer).await.status, 401, "{bearer}");
    }
    remove(&world, "vapi").await.expect(200);
    run(&world, id, &platforms).await.result();
}

#[tokio::test]
async fn reads_for_a_bearer_do_not_reveal_whether_the_tool_exists() {
    let world = World::start().await;
    let tool = world.tool(&ai_sms()).await;
    let asked = async |id: &str| {
        world.aws.clear_operations();
        assert_eq!(run(&world, id, "no-bearer-of-anybodys").await.status, 401);
        world.aws.dynamodb().into_iter().map(|operation| (operation.action, operation.on)).collect::<Vec<_>>()
    };
    let there = asked(text(&tool["id"])).await;
    assert_eq!(there, asked(&Uuid::now_v7().to_string()).await);
    let read = |table: &str| ("GetItem".to_owned(), vec![table.to_owned()]);
    assert_eq!(there, [read("tools"), read("organizations")]);
}

#[tokio::test]
async fn settling_uses_the_account_of_each_intents_organization() {
    let mut world = World::start().await;
    world.own_key(&world.home, &json!({"api_key": OWN_KEYS[0]}));
    let made = async |key: &str, organization: &str| {
        let tool = Uuid::now_v7().to_string();
        let body = json!({
            "type": "apiRequest", "method": "POST", "name": "lost", "description": "Lost.",
            "url": format!("https://api.switchboard.example/api/tools/{tool}/execute"),
            "body": {"type": "object", "properties": {"text": {"type": "string"}}},
        });
        let at_vapi = world.at_vapi_with(key, "POST", "/tool", &body).await;
        world.aws.put(
            "intents",
            &json!({
                "id": Uuid::now_v7(), "organization_id": organization, "change": "create_tool", "tool_id": tool,
                "name": "lost", "created_at": "2026-01-01T00:00:00.000Z", "owner_until": 1,
            }),
        );
        text(&at_vapi["id"]).to_owned()
    };
    let (home, other) = (world.home.organization_id.clone(), world.other.organization_id.clone());
    let lost = [made(OWN_KEYS[0], &home).await, made(PLATFORM_KEY, &other).await];
    world.restart();
    let report = world.settle().await;
    for settled in report["settled"].as_array().unwrap() {
        assert_eq!(settled["outcome"], "the tool was deleted at VAPI", "{report}");
    }
    assert_eq!(lost.map(|id| world.vapi.tool(&id)), [None, None], "{report}");
}
