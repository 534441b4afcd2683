//! Tools of services in a run: account, effects, version, secrets.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test says what is wrong and stops")]

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use axum::{Router, http::StatusCode, routing::post};
use local::standins::llm::Turn;
use serde_json::{Value, json};
use shared::{
    Deadline,
    connections::{Connecting, Connection},
    models::{
        ActionStatus, Binding, BodyFormat, ConnectionKind, CredentialField, KeyPlace, RequestAuth, RequestTemplate,
        Service, ServiceId, ServiceTool, Timestamp, ToolEffect, service_tool_id,
    },
    store::Services,
};
use tests::{
    Event, Options, World,
    automation::{AMPLE, calls, organization, whole},
    http_server::Server,
    phone, said,
};

const KEY: &str = "sk_test_4eC39HqLyjWDarjtT1zdp7dc";

fn services(world: &World) -> &Services {
    &world.process.runs.catalogue.services
}

fn service(name: &str, connection: ConnectionKind) -> Service {
    let now = Timestamp::now();
    Service {
        id: ServiceId::of_name(name),
        name: name.to_owned(),
        description: String::new(),
        categories: Vec::new(),
        connection,
        is_active: true,
        tools: 1,
        edition: "1".to_owned(),
        created_at: now,
        updated_at: now,
    }
}

fn tool(service: &Service, name: &str, parameters: Value, binding: Binding) -> ServiceTool {
    let now = Timestamp::now();
    ServiceTool {
        id: service_tool_id(name),
        name: name.to_owned(),
        title: name.to_owned(),
        description: format!("Does {name}."),
        service_id: service.id,
        service_name: service.name.clone(),
        category: "write".to_owned(),
        fingerprint: ServiceTool::fingerprint_of(name, &parameters, "", &binding),
        parameter_names: Vec::new(),
        keywords: Vec::new(),
        parameters,
        returns: String::new(),
        is_active: true,
        binding,
        version: "1".to_owned(),
        effect: true,
        acts_as: ToolEffect::Message,
        destructive: false,
        examples: Vec::new(),
        previous: None,
        created_at: now,
        updated_at: now,
    }
}

fn slack() -> (Service, ServiceTool) {
    let service = service("Slack", ConnectionKind::Pipedream { app: "slack".to_owned() });
    let parameters = json!({
        "type": "object",
        "properties": {"conversation": {"type": "string"}, "text": {"type": "string"}},
        "required": ["conversation", "text"],
        "additionalProperties": false,
    });
    let binding = Binding::Pipedream {
        component: "slack-send-message".to_owned(),
        version: "0.1.3".to_owned(),
        app_prop: "slack".to_owned(),
        fixed: json!({"mrkdwn": false}).as_object().cloned().unwrap(),
    };
    let tool = tool(&service, "slack_post_message", parameters, binding);
    (service, tool)
}

fn payments(url: &str) -> (Service, ServiceTool) {
    let field = |name: &str, secret| CredentialField {
        name: name.to_owned(),
        description: "In the dashboard, under Developers.".to_owned(),
        secret,
        in_address: false,
    };
    let fields = vec![field("account", false), field("api_key", true)];
    let service = service("Payments", ConnectionKind::Credential { fields });
    let parameters = json!({
        "type": "object",
        "properties": {
            "customer": {"type": "string"},
            "amount": {"type": "integer", "minimum": 1},
            "metadata": {"type": "object", "additionalProperties": {"type": "string"}},
        },
        "required": ["customer", "amount"],
        "additionalProperties": false,
    });
    let binding = Binding::ApiRequest(RequestTemplate {
        method: "POST".to_owned(),
        url: format!("{url}/v1/customers/{{customer}}/charges"),
        query: Vec::new(),
        headers: [("Api-Version".to_owned(), "2026-01-01".to_owned())].into(),
        body: BodyFormat::Form,
        fixed: json!({"currency": "eur"}).as_object().cloned().unwrap(),
        auth: RequestAuth::Bearer { field: "api_key".to_owned() },
        idempotency_key: Some(KeyPlace::Header { name: "Idempotency-Key".to_owned() }),
        refused_by: Vec::new(),
    });
    let tool = tool(&service, "payments_charge", parameters, binding);
    (service, tool)
}

async fn load(world: &World, (service, tool): &(Service, ServiceTool)) {
    services(world).put_tool(tool).await.unwrap();
    services(world).put(service).await.unwrap();
}

async fn connect(world: &World, service: &Service, body: Value) -> shared::Result<Connecting> {
    let connections = &world.process.runs.catalogue.connections;
    connections.connect(organization(world), service, &body, Deadline::after(AMPLE)).await
}

/// Starts a run with these tools, which makes these calls and ends; the run as it is shown.
async fn run(world: &World, tools: Value, statements: &str) -> Value {
    run_in_turns(world, tools, &[statements]).await
}

async fn run_in_turns(world: &World, tools: Value, turns: &[&str]) -> Value {
    let turns = turns.iter().chain(&["return finalResponse();"]).map(|statements| Turn::text(&calls(statements)));
    world.llm.script(turns.chain([Turn::text("Done.")]));
    let started = world.start_run(&json!({"prompt": "Do it.", "tools": tools})).await;
    assert_eq!(started.status, 202, "{}", started.body);
    assert_eq!(world.run_loop(AMPLE).await, 0);
    let id = started.body["id"].as_str().unwrap();
    world.run(id).await.body
}

async fn refused(world: &World, tools: Value) -> String {
    let answer = world.start_run(&json!({"prompt": "Do it.", "tools": tools})).await;
    assert_eq!(answer.status, 422, "{}", answer.body);
    answer.body["errors"].to_string()
}

#[tokio::test]
async fn a_component_runs_with_the_organizations_account_at_the_version_that_was_read() {
    let world = World::start().await;
    let slack = slack();
    load(&world, &slack).await;
    let call = "return slack_post_message({conversation: \"C1\", text: \"Hello\", mrkdwn: true});";
    let shown = run(&world, json!(["slack_post_message"]), call).await;
    // An argument that the tool does not have is refused, and the model is told.
    assert!(world.pipedream.runs().is_empty(), "{shown}");
    let call = "slack_post_message({conversation: \"C1\", text: \"Hello\"});\nslack_post_message({text: \"Hello\", conversation: \"C1\"});";
    let shown = run(&world, json!(["slack_post_message"]), call).await;
    let runs = world.pipedream.runs();
    assert_eq!(runs.len(), 1, "the same effect happens once: {shown}");
    assert_eq!(runs[0].external_user_id, world.home.organization_id);
    let account = json!({"authProvisionId": world.home.slack_account});
    let props = json!({"slack": account, "conversation": "C1", "text": "Hello", "mrkdwn": false});
    assert_eq!(runs[0].configured_props, props);
    let request = world.pipedream.requests().into_iter().rfind(|request| request.path.ends_with("/actions/run"));
    assert_eq!(request.unwrap().body["version"], "0.1.3");
    assert_eq!(shown["tools"][0]["fingerprint"], json!(slack.1.fingerprint));
}

#[tokio::test]
async fn the_same_call_of_one_user_in_two_organizations_is_an_effect_in_each() {
    let variables = vec![("MCP_CALL_TOOL", "true".to_owned())];
    let world = World::with(Options { variables, ..Options::default() }).await;
    let slack = slack();
    load(&world, &slack).await;
    let user = &world.home.user_id;
    let row = json!({"user_id": user, "organization_id": world.other.organization_id, "role": "member"});
    world.aws.put("organization_members", &row);
    let arguments = json!({"conversation": "C1", "text": "Hello"});
    let call = json!({"name": slack.1.name, "fingerprint": slack.1.fingerprint, "arguments": arguments});
    let mut keyed = call.clone();
    keyed["idempotency_key"] = json!("of the user");
    for call in [call, keyed] {
        let message = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "call_tool", "arguments": call},
        });
        for _twice in 0..2 {
            for tenant in [&world.home, &world.other] {
                let path = format!("/api/{}/mcp", tenant.slug);
                let answer = world.send("mcp", &Event { path, ..world.mcp_event_of(user, &message) }).await;
                let answer = answer.expect(200);
                assert!(!said(&answer["result"]).0, "{answer}");
            }
        }
    }
    let runs = world.pipedream.runs();
    let acted: Vec<&String> = runs.iter().map(|run| &run.external_user_id).collect();
    let (home, other) = (&world.home.organization_id, &world.other.organization_id);
    assert_eq!(acted, [home, other, home, other]);
}

#[tokio::test]
async fn a_tool_that_cannot_be_called_is_not_offered_and_the_reason_names_the_next_step() {
    let world = World::start().await;
    let (service, tool) = slack();
    assert!(refused(&world, json!(["slack_post_message"])).await.contains("discover/search"));
    load(&world, &(service.clone(), ServiceTool { is_active: false, ..tool.clone() })).await;
    assert!(refused(&world, json!(["slack_post_message"])).await.contains("is not a tool"));
    load(&world, &(Service { is_active: false, ..service.clone() }, tool.clone())).await;
    assert!(refused(&world, json!(["slack_post_message"])).await.contains("is not a tool"));
    let newer = ConnectionKind::Pipedream { app: "slack_v2".to_owned() };
    load(&world, &(Service { connection: newer, ..service.clone() }, tool.clone())).await;
    // An account of the older app is none of the newer one's.
    assert!(refused(&world, json!(["slack_post_message"])).await.contains("services/slack/connect"));
    world.pipedream.inject(tests::standins::Fault::status(503).times(9));
    let connection = ConnectionKind::Pipedream { app: "slack_v3".to_owned() };
    load(&world, &(Service { connection, ..service }, tool)).await;
    let other = json!({"prompt": "Do it.", "tools": ["slack_post_message"]});
    let answer = world.start_run_as(&world.other, &other).await;
    assert!(answer.body["errors"].to_string().contains("cannot be looked up"), "{}", answer.body);
}

#[tokio::test]
async fn a_link_lets_a_person_connect_and_the_account_acts_soon_after() {
    let world = World::start().await;
    let (service, tool) = slack();
    let service = Service { connection: ConnectionKind::Pipedream { app: "notion".to_owned() }, ..service };
    load(&world, &(service.clone(), tool)).await;
    assert!(refused(&world, json!(["slack_post_message"])).await.contains("needs an account at Slack"));
    let Connecting::Open { url, expires_at } = connect(&world, &service, json!({})).await.unwrap() else { panic!() };
    assert!(url.contains("app=notion") && expires_at.starts_with("20"), "{url} {expires_at}");
    world.pipedream.connect("apn_new", &world.home.organization_id, "notion");
    let connections = &world.process.runs.catalogue.connections;
    let of = connections.of(organization(&world), std::slice::from_ref(&service), Deadline::after(AMPLE)).await;
    assert_eq!(of[&service.id].account().unwrap().id, "apn_new");
    let wrong = connect(&world, &service, json!({"redirect_url": "http://x", "app": "slack"})).await.unwrap_err();
    let wrong = format!("{wrong:?}");
    assert!(wrong.contains("redirect_url") && wrong.contains("app"), "{wrong}");
    connections.disconnect(organization(&world), &service, None, Deadline::after(AMPLE)).await.unwrap();
    assert!(refused(&world, json!(["slack_post_message"])).await.contains("needs an account at Slack"));
    let again = connections.disconnect(organization(&world), &service, None, Deadline::after(AMPLE)).await;
    assert!(matches!(again, Err(shared::Error::NotFound(_))));
}

#[tokio::test]
async fn a_tool_that_only_reads_may_be_asked_again_after_a_failure() {
    let world = World::start().await;
    let (service, tool) = slack();
    for (effect, told) in [(false, "try again in a moment"), (true, "Do not try again")] {
        load(&world, &(service.clone(), ServiceTool { effect, ..tool.clone() })).await;
        world.pipedream.clear_faults();
        world
            .pipedream
            .inject(tests::standins::Fault::status(500).on("POST", "/v1/connect/proj_local1/actions/run").times(9));
        let call = format!("return slack_post_message({{conversation: \"C1\", text: \"{effect}\"}});");
        let shown = run(&world, json!(["slack_post_message"]), &call).await;
        assert!(shown.to_string().contains(told), "{told}: {shown}");
    }
}

#[tokio::test]
async fn the_account_that_was_chosen_acts() {
    let world = World::start().await;
    let slack = slack();
    load(&world, &slack).await;
    world.pipedream.connect("apn_second", &world.home.organization_id, "slack");
    let connections = &world.process.runs.catalogue.connections;
    let choose = async |account: &str| {
        let account = (!account.is_empty()).then(|| account.to_owned());
        connections.choose(organization(&world), &slack.0, account, Deadline::after(AMPLE)).await
    };
    for account in ["apn_second", &world.home.slack_account] {
        assert_eq!(choose(account).await.unwrap().account().unwrap().id, *account);
        let call = format!("return slack_post_message({{conversation: \"C1\", text: \"for {account}\"}});");
        run(&world, json!(["slack_post_message"]), &call).await;
        let runs = world.pipedream.runs();
        assert_eq!(runs.last().unwrap().configured_props["slack"]["authProvisionId"], *account);
    }
    // Another organization's account is none of this one's.
    let foreign = choose(&world.other.slack_account).await.unwrap_err();
    assert!(format!("{foreign:?}").contains("account_id"), "{foreign:?}");
    // No other account replaces a chosen one that is gone.
    choose("apn_second").await.unwrap();
    world.pipedream.expire("apn_second");
    let first = slack.0.clone();
    let of = async || {
        let services = std::slice::from_ref(&first);
        connections.of(organization(&world), services, Deadline::after(AMPLE)).await[&first.id].clone()
    };
    choose("apn_second").await.unwrap_err();
    assert!(matches!(of().await, Connection::Expired { .. }), "{:?}", of().await);
    choose("").await.unwrap();
    assert_eq!(of().await.account().unwrap().id, world.home.slack_account);
}

/// A service that fails the first of two requests, and knows its keys.
async fn payment_server() -> (Server, World) {
    let failed = Arc::new(AtomicUsize::new(0));
    let charge = move || {
        let first = failed.fetch_add(1, Ordering::SeqCst) == 0;
        async move { if first { (StatusCode::INTERNAL_SERVER_ERROR, "{}") } else { (StatusCode::OK, r#"{"id": "ch_1"}"#) } }
    };
    let server = Server::start(Router::new().route("/v1/customers/{customer}/charges", post(charge))).await;
    let open_hosts = vec![server.url.trim_start_matches("http://").to_owned()];
    let world = World::with(Options { open_hosts, ..Options::default() }).await;
    (server, world)
}

#[tokio::test]
async fn money_moves_once_under_a_key_of_the_execution_and_with_the_organizations_credential() {
    let (server, world) = payment_server().await;
    let payments = payments(&server.url);
    load(&world, &payments).await;
    assert!(refused(&world, json!(["payments_charge"])).await.contains("services/payments/connect"));
    let credential = json!({"account": "acct_1", "api_key": KEY});
    let Connecting::Connected { accounts } = connect(&world, &payments.0, credential).await.unwrap() else { panic!() };
    assert_eq!(accounts[0].name, "acct_1");
    let call = "return payments_charge({customer: \"cus/1\", amount: \"500\", metadata: {order: \"7\"}});";
    let shown = run(&world, json!(["payments_charge"]), call).await;
    assert!(shown.to_string().contains("ch_1"), "{shown}");
    let seen = server.seen();
    assert_eq!(seen.len(), 2, "the first failed, and the key makes it safe to ask again");
    assert_eq!(seen[0].target, "/v1/customers/cus%2F1/charges");
    assert_eq!(seen[0].body, "amount=500&currency=eur&metadata%5Border%5D=7");
    assert_eq!(seen[0].headers["authorization"], format!("Bearer {KEY}"));
    assert_eq!(seen[0].headers["api-version"], "2026-01-01");
    assert!(!seen[0].headers["idempotency-key"].is_empty());
    assert_eq!(seen[0].headers["idempotency-key"], seen[1].headers["idempotency-key"]);
    // The key is in the secret, and nowhere else.
    for table in ["organizations", "executions", "automation_runs", "idempotency", "intents"] {
        let rows = world.aws.rows(table);
        assert!(!json!(rows).to_string().contains(KEY), "{table}");
    }
    // Another organization has no credential by this one's.
    let body = json!({"prompt": "Do it.", "tools": ["payments_charge"]});
    let answer = world.start_run_as(&world.other, &body).await;
    assert!(answer.body["errors"].to_string().contains("needs an account at Payments"), "{}", answer.body);
}

#[tokio::test]
async fn a_credential_is_replaced_and_taken_away_with_its_secret() {
    let (server, world) = payment_server().await;
    let payments = payments(&server.url);
    load(&world, &payments).await;
    let missing = connect(&world, &payments.0, json!({"api_key": ""})).await.unwrap_err();
    assert!(format!("{missing:?}").contains("Developers"), "{missing:?}");
    let secrets = || world.aws.secret_names("switchboard/organizations/services/").len();
    connect(&world, &payments.0, json!({"account": "a", "api_key": "first-key-of-it"})).await.unwrap();
    connect(&world, &payments.0, json!({"account": "b", "api_key": KEY})).await.unwrap();
    assert_eq!(secrets(), 1, "the one that was replaced is gone");
    let connections = &world.process.runs.catalogue.connections;
    connections.disconnect(organization(&world), &payments.0, None, Deadline::after(AMPLE)).await.unwrap();
    assert_eq!((secrets(), world.aws.rows("intents").len()), (0, 0));
    assert!(refused(&world, json!(["payments_charge"])).await.contains("needs an account"));
}

#[tokio::test]
async fn a_message_goes_out_from_the_organizations_own_number() {
    let world = World::start().await;
    let service = service("Twilio", ConnectionKind::PhoneNumber);
    let parameters = json!({
        "type": "object",
        "properties": {"recipients": {"type": "array", "items": {"type": "string"}}, "text": {"type": "string"}},
        "required": ["recipients", "text"],
        "additionalProperties": false,
    });
    let tool = tool(&service, "twilio_send_sms", parameters, Binding::BuiltIn { name: "sms".to_owned() });
    load(&world, &(service, tool)).await;
    let call = "return twilio_send_sms({recipients: \"+14155550199\", text: \"Ready.\"});";
    let shown = run(&world, json!(["twilio_send_sms"]), call).await;
    let messages = world.twilio.messages();
    assert_eq!(messages.len(), 1, "{shown}");
    assert_eq!(
        (messages[0].from.as_str(), messages[0].to.as_str()),
        (world.home.phone_number.as_str(), "+14155550199")
    );
}

#[tokio::test]
async fn a_list_of_recipients_that_the_model_corrects_reaches_each_once_in_a_run() {
    let world = World::start().await;
    let service = service("Twilio", ConnectionKind::PhoneNumber);
    let parameters = json!({
        "type": "object",
        "properties": {"recipients": {"type": "array", "items": {"type": "string"}}, "text": {"type": "string"}},
        "required": ["recipients", "text"],
        "additionalProperties": false,
    });
    let tool = tool(&service, "twilio_send_sms", parameters, Binding::BuiltIn { name: "sms".to_owned() });
    load(&world, &(service, tool)).await;
    // Twilio refuses a message from a number to itself.
    let refused = world.home.phone_number.clone();
    let send = |to: [&str; 2]| calls(&format!("return twilio_send_sms({{recipients: {to:?}, text: \"Ready.\"}});"));
    world.llm.script([
        Turn::text(&send([&refused, &phone(2)])),
        Turn::text(&send([&phone(2), &phone(3)])),
        Turn::text(&calls("return finalResponse();")),
        Turn::text("Done."),
    ]);
    let started = world.start_run(&json!({"prompt": "Tell them.", "tools": ["twilio_send_sms"]})).await.expect(202);
    assert_eq!(world.run_loop(AMPLE).await, 0);
    let shown = world.run(started["id"].as_str().unwrap()).await.body.to_string();
    assert!(shown.contains("already sent to"), "{shown}");
    let mut to: Vec<String> = world.twilio.messages().into_iter().map(|message| message.to).collect();
    to.sort();
    assert_eq!(to, [phone(2), phone(3)], "each once: {shown}");
}

#[tokio::test]
async fn a_tool_that_changed_since_it_was_offered_is_not_called() {
    let world = World::start().await;
    let (service, tool) = slack();
    load(&world, &(service.clone(), tool.clone())).await;
    let turns = ["return slack_post_message({conversation: \"C1\", text: \"Hello\"});", "return finalResponse();"];
    world.llm.script(turns.map(|turn| Turn::text(&calls(turn))).into_iter().chain([Turn::text("Done.")]));
    let started = world.start_run(&json!({"prompt": "Do it.", "tools": ["slack_post_message"]})).await;
    load(&world, &(service, ServiceTool { fingerprint: "another".to_owned(), ..tool })).await;
    assert_eq!(world.run_loop(AMPLE).await, 0);
    assert!(world.pipedream.runs().is_empty());
    let shown = world.run(started.body["id"].as_str().unwrap()).await.body;
    assert!(shown.to_string().contains("was changed while the run was under way"), "{shown}");
}

/// The tool of the catalogue, with its requests sent to `url` in place of its own host.
async fn of_the_catalogue(world: &World, name: &str, host: &str, url: &str) -> Service {
    let event = json!({"files": tests::catalogue::files().unwrap()});
    Box::pin(operator::handle(&world.process.operator, event, Deadline::after(AMPLE))).await.unwrap();
    let row = world.aws.rows("service_tools").into_iter().find(|row| row["name"] == name).unwrap();
    let mut tool: ServiceTool = serde_json::from_value(row).unwrap();
    let Binding::ApiRequest(template) = &mut tool.binding else { panic!("{name}") };
    assert!(template.url.starts_with(host), "{}", template.url);
    template.url = template.url.replace(host, url);
    services(world).put_tool(&tool).await.unwrap();
    services(world).all().await.unwrap().into_iter().find(|service| service.id == tool.service_id).unwrap()
}

#[tokio::test]
async fn a_message_of_a_service_goes_out_once_from_the_connected_account() {
    let answer = || async { (StatusCode::OK, r#"{"messages": [{"id": "wamid.1"}]}"#) };
    let fails = || async { (StatusCode::INTERNAL_SERVER_ERROR, "{}") };
    let router = Router::new()
        .route("/v23.0/106540352242922/messages", post(answer))
        .route("/api/v10/channels/{channel}/messages", post(fails));
    let server = Server::start(router).await;
    let open_hosts = vec![server.url.trim_start_matches("http://").to_owned()];
    let world = World::with(Options { open_hosts, ..Options::default() }).await;

    let whatsapp = of_the_catalogue(&world, "whatsapp_send_text", "https://graph.facebook.com", &server.url).await;
    let credential = |number: &str| json!({"phone_number_id": number, "access_token": KEY});
    let refused = connect(&world, &whatsapp, credential("1/../2")).await.unwrap_err();
    assert!(format!("{refused:?}").contains("phone_number_id"), "{refused:?}");
    let connected = connect(&world, &whatsapp, credential("106540352242922")).await.unwrap();
    let Connecting::Connected { accounts } = connected else { panic!() };
    assert_eq!(accounts[0].name, "106540352242922");
    let text = "return whatsapp_send_text({to: \"+34600000000\", text: {body: \"Your table is ready.\"}});";
    let shown = run(&world, json!(["whatsapp_send_text"]), text).await;
    assert!(shown.to_string().contains("wamid.1"), "{shown}");
    let seen = server.seen();
    assert_eq!((seen.len(), seen[0].target.as_str()), (1, "/v23.0/106540352242922/messages"));
    assert_eq!(seen[0].headers["authorization"], format!("Bearer {KEY}"));
    let sent: Value = serde_json::from_str(&seen[0].body).unwrap();
    let expected = json!({
        "messaging_product": "whatsapp", "recipient_type": "individual", "type": "text",
        "to": "+34600000000", "text": {"body": "Your table is ready."},
    });
    assert_eq!(sent, expected);

    let discord = of_the_catalogue(&world, "discord_send_message", "https://discord.com", &server.url).await;
    connect(&world, &discord, json!({"account_name": "Reception", "bot_token": KEY})).await.unwrap();
    let text = "return discord_send_message({channel_id: \"7\", content: \"A caller asks for Ana.\"});";
    let shown = run(&world, json!(["discord_send_message"]), text).await;
    let seen = server.seen();
    assert_eq!(seen.len(), 2, "nobody knows whether it went, so it is not sent again: {shown}");
    assert_eq!(seen[1].headers["authorization"], format!("Bot {KEY}"));
}

#[tokio::test]
async fn a_refusal_with_the_status_of_a_success_fails_the_call_and_frees_its_claim() {
    let asked = Arc::new(AtomicUsize::new(0));
    let customer = move || {
        let body = match asked.fetch_add(1, Ordering::SeqCst) {
            0 => r#"{"data": {"customerCreate": {"customer": null, "userErrors": [{"message": "E-mail is taken"}]}}}"#,
            _ => r#"{"data": {"customerCreate": {"customer": {"id": "gid-1"}, "userErrors": []}}}"#,
        };
        async move { (StatusCode::OK, body) }
    };
    let in_part = r#"{"data": {"create_item": {"id": "1"}}, "errors": [{"message": "No"}]}"#;
    let item = move || async move { (StatusCode::OK, in_part) };
    let router = Router::new().route("/admin/api/{version}/graphql.json", post(customer)).route("/v2", post(item));
    let server = Server::start(router).await;
    let open_hosts = vec![server.url.trim_start_matches("http://").to_owned()];
    let world = World::with(Options { open_hosts, ..Options::default() }).await;

    let name = "shopify_create_customer";
    let shopify = of_the_catalogue(&world, name, "https://{shop}.myshopify.com", &server.url).await;
    connect(&world, &shopify, json!({"shop": "acme", "access_token": KEY})).await.unwrap();
    let call = "return shopify_create_customer({variables: {input: {firstName: \"Ana\"}}});";
    let shown = run_in_turns(&world, json!([name]), &[call, call]).await.to_string();
    assert!(shown.contains("The service refused it: E-mail is taken"), "{shown}");
    assert!(server.seen().len() == 2 && shown.contains("gid-1"), "the refused effect is tried again: {shown}");

    let monday = of_the_catalogue(&world, "monday_create_item", "https://api.monday.com", &server.url).await;
    connect(&world, &monday, json!({"account_name": "acme", "api_token": KEY})).await.unwrap();
    let call = "return monday_create_item({variables: {board: \"1\", name: \"Ana\"}});";
    let shown = run_in_turns(&world, json!(["monday_create_item"]), &[call, call]).await.to_string();
    assert!(shown.contains("It is not known whether it was done"), "{shown}");
    assert_eq!(server.seen().len(), 3, "an error beside data leaves the effect open: {shown}");
}

/// The process dies at the effect, and the account is disconnected before the run goes on.
#[tokio::test]
async fn an_action_that_may_have_acted_stays_unknown_when_its_account_is_gone() {
    let mut world = World::start().await;
    let slack = slack();
    load(&world, &slack).await;
    let say =
        |id: &str| json!({"id": id, "tool": "slack_post_message", "parameters": {"conversation": "C1", "text": id}});
    let automation = world.activate(&world.manual(&json!([say("a"), say("b")]))).await;
    let run = world.start_automation(&automation, "once", &json!({})).await;
    world.pipedream.inject(tests::standins::Fault::held().on("POST", "/actions/run"));
    let batch = world.aws.receive("runs", 900).unwrap();
    tokio::select! {
        _ = world.run_loop_batch(batch, AMPLE) => panic!("it waits for its answer"),
        () = tests::clients::until(|| !world.pipedream.runs().is_empty()) => {}
    }
    world.pipedream.clear_faults();
    world.later();
    for row in world.aws.rows("idempotency").iter().filter(|row| row.get("lease_until").is_some()) {
        world.aws.change("idempotency", row["id"].as_str().unwrap(), json!({"lease_until": 1}));
    }
    let connections = &world.process.runs.catalogue.connections;
    connections.disconnect(organization(&world), &slack.0, None, Deadline::after(AMPLE)).await.unwrap();
    world.restart();
    world.deliver_runs().await;
    let actions = whole(&world, run.id).await.actions;
    let statuses: Vec<_> = actions.iter().map(|action| (action.action_id.as_str(), action.status)).collect();
    assert_eq!(statuses, [("a", ActionStatus::Unknown), ("b", ActionStatus::Failed)], "{actions:?}");
    assert!(actions[1].error.as_deref().unwrap().contains("needs an account at Slack"), "{actions:?}");
    assert_eq!(world.pipedream.runs().len(), 1);
}
