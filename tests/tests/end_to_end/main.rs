//! End-to-end test of the whole deployed system on the local stack.
//!
//! Covers the template, the binaries, the HTTP API with its authorizer, and the functions' roles.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test says what is wrong and stops"
)]

mod binaries;
mod chat;
mod chat_clients;
mod console_automations;
mod console_forms;
mod console_operator;
mod console_page;
mod console_states;
mod conversation;
mod copilotkit_page;
mod edge;
mod events;
mod pages;

use local::{Options, Ports, Progress, Stack};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tests::browser::Browser;
use uuid::Uuid;

use crate::conversation::Chat;

struct User<'a> {
    http: reqwest::Client,
    stack: &'a Stack,
}

impl User<'_> {
    async fn send(&self, method: Method, path: &str, token: Option<&str>, body: Option<&Value>) -> (StatusCode, Value) {
        let mut request = self.http.request(method, format!("{}{path}", self.stack.description.api_url));
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        if let Some(body) = body {
            request = request.json(body);
        }
        let answer = request.send().await.unwrap();
        (answer.status(), answer.json().await.unwrap_or_default())
    }

    /// Creates a tool and attaches it to the demo's agent.
    async fn attached(&self, config: &Value) -> Value {
        let about = &self.stack.description;
        let token = Some(about.token.as_str());
        let (status, tool) = self.send(Method::POST, &format!("/api/{}/tools", about.slug), token, Some(config)).await;
        assert_eq!(status, 201, "{tool}");
        let path = format!("/api/{}/agents/{}/tools/attach", about.slug, about.agent_id);
        let (status, row) = self.send(Method::POST, &path, token, Some(&json!({"tool_id": tool["id"]}))).await;
        assert_eq!(status, 201, "{row}");
        tool
    }

    /// Lets VAPI call a tool; returns the body of our response.
    async fn call(&self, tool: &Value, arguments: Value) -> Value {
        self.call_in(&Uuid::now_v7().to_string(), tool, arguments).await
    }

    /// As [`User::call`], in this call.
    async fn call_in(&self, call_id: &str, tool: &Value, arguments: Value) -> Value {
        let about = &self.stack.description;
        let call = json!({
            "assistant_id": about.assistant_id, "tool_name": tool["name"], "arguments": arguments,
            "customer_number": "+14155550199", "phone_number": about.phone_number, "call_id": call_id,
        });
        let answer =
            self.http.post(format!("{}/simulate/tool-call", about.standins.vapi)).json(&call).send().await.unwrap();
        let answer: Value = answer.json().await.unwrap();
        assert_eq!(answer["response"]["status"], 200, "{answer}");
        answer["response"]["body"].clone()
    }
}

/// Assistant and number can be registered only once, and again after their removal.
async fn belongings(user: &User<'_>, tool: &Value) {
    let about = &user.stack.description;
    let token = Some(about.token.as_str());
    let (agents, numbers) = (format!("/api/{}/agents", about.slug), format!("/api/{}/phone-numbers", about.slug));
    let agent = json!({"external_assistant_id": about.assistant_id});
    let (status, refused) = user.send(Method::POST, &agents, token, Some(&agent)).await;
    assert_eq!(status, 409, "{refused}");
    let (status, refused) = user.send(Method::DELETE, &format!("{agents}/{}", about.agent_id), token, None).await;
    assert!(status == 409 && refused["detail"].as_str().unwrap().contains(&about.phone_number), "{refused}");

    let mut number = json!({
        "number": about.phone_number, "label": "Main line", "agent_id": about.agent_id,
        "twilio": {"account_sid": about.twilio_account_sid, "auth_token": "wrong"},
    });
    let (status, refused) = user.send(Method::POST, &numbers, token, Some(&number)).await;
    assert_eq!((status.as_u16(), &refused["errors"][0]["field"]), (422, &json!("twilio.auth_token")), "{refused}");
    number["twilio"]["auth_token"] = json!(about.twilio_auth_token);
    let (status, refused) = user.send(Method::POST, &numbers, token, Some(&number)).await;
    assert_eq!(status, 409, "{refused}");

    let seeded = format!("{numbers}/{}", about.phone_number_id);
    let change = json!({"twilio": number["twilio"], "label": "Reception"});
    let (status, row) = user.send(Method::PATCH, &seeded, token, Some(&change)).await;
    assert_eq!((status.as_u16(), &row["label"]), (200, &json!("Reception")), "{row}");
    let (status, gone) = user.send(Method::DELETE, &seeded, token, None).await;
    assert_eq!(status, 200, "{gone}");
    let (status, gone) = user.send(Method::DELETE, &seeded, token, None).await;
    assert_eq!(status, 404, "{gone}");
    let (status, row) = user.send(Method::POST, &numbers, token, Some(&number)).await;
    assert_eq!(status, 201, "{row}");
    assert!(row.get("credentials_secret").is_none() && row.get("twilio").is_none(), "{row}");
    let (status, page) = user.send(Method::GET, &numbers, token, None).await;
    assert_eq!((status.as_u16(), &page["items"]), (200, &json!([row])), "{page}");

    // The SMS is sent with the new number's credentials.
    let answer = user.call(tool, json!({"text": "From the number that was registered again"})).await;
    assert_eq!(answer["success"], true, "{answer}");
    assert_eq!(user.stack.twilio.messages().last().unwrap().from, about.phone_number);
}

/// The MCP server with the official TypeScript SDK; skipped, with a message, without Node.
fn official_mcp_client(stack: &Stack) {
    let client = concat!(env!("CARGO_MANIFEST_DIR"), "/mcp_client");
    let about = &stack.description;
    if !std::path::Path::new(client).join("node_modules/made-from").is_file() {
        return println!("skipped: the official MCP SDK is not there; tests/mcp_client/install installs it");
    }
    let run = std::process::Command::new("node")
        .arg("check.mjs")
        .current_dir(client)
        .envs([("API", &about.api_url), ("SLUG", &about.slug), ("TOKEN", &about.token)])
        .output();
    let Ok(run) = run else { return println!("skipped: there is no Node to run the official MCP SDK with") };
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let seen: Value = serde_json::from_slice(&run.stdout).unwrap();
    let path = format!("/api/{}/mcp", about.slug);
    let refused = json!({
        "status": 401, "metadata": format!("{}/.well-known/oauth-protected-resource{path}", about.api_url),
        "resource": format!("{}{path}", about.api_url),
    });
    assert_eq!(seen["refused"], refused);
    assert_eq!(
        (&seen["server"], &seen["listChanged"], &seen["onePage"]),
        (&json!("switchboard"), &json!(false), &json!(true))
    );
    let tools = json!([
        "initial_md_fetch",
        "fetch_tool_data",
        "search_tools",
        "deploy_automation",
        "list_automations",
        "get_automation",
        "update_automation",
        "run_automation",
        "get_run",
    ]);
    assert_eq!(seen["tools"], tools);
    assert_eq!(seen["automations"], json!({"isError": false, "listed": true}));
    assert_eq!(seen["overview"], json!({"isError": false, "begins": "Available Slack tools:"}));
    assert_eq!(seen["wrong"], json!({"isError": true, "text": "The argument \"services\" must be a list, not text."}));
    assert_eq!(seen["unknown"], -32602);
}

/// A tool of a voice agent, called by the official SDK as a voice platform would; skipped, with a message, without Node.
async fn official_voice_client(user: &User<'_>) {
    let client = concat!(env!("CARGO_MANIFEST_DIR"), "/mcp_client");
    let about = &user.stack.description;
    if !std::path::Path::new(client).join("node_modules/made-from").is_file() {
        return println!("skipped: the official MCP SDK is not there; tests/mcp_client/install installs it");
    }
    let path = format!("/api/{}/agents/{}/voice-token", about.slug, about.agent_id);
    let (status, issued) = user.send(Method::POST, &path, Some(&about.token), None).await;
    assert_eq!(status, 201, "{issued}");
    let tool = user.attached(&tests::ai_sms()).await;
    let run = tokio::process::Command::new("node")
        .arg("voice.mjs")
        .current_dir(client)
        .envs([
            ("API", about.api_url.as_str()),
            ("SLUG", &about.slug),
            ("VOICE_TOKEN", issued["token"].as_str().unwrap()),
            ("NUMBER", &about.phone_number),
            ("TOOL", tool["name"].as_str().unwrap()),
            ("ARGUMENTS", r#"{"text": "Soup, then plaice"}"#),
        ])
        .output();
    let Ok(run) = run.await else { return println!("skipped: there is no Node to run the official MCP SDK with") };
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let seen: Value = serde_json::from_slice(&run.stdout).unwrap();
    assert_eq!((&seen["refused"], &seen["listed"]), (&json!(401), &json!(true)), "{seen}");
    let calls = seen["calls"].as_array().unwrap();
    assert!(calls.iter().all(|call| call["isError"] == false && call == &calls[0]), "{seen}");
    let sent = user.stack.twilio.messages().into_iter().filter(|message| message.to == "+14155550171").count();
    assert_eq!(sent, 1, "the second call of the tool is the same effect");
    let path = format!("/api/{}/tools/{}", about.slug, tool["id"].as_str().unwrap());
    let (status, gone) = user.send(Method::DELETE, &path, Some(&about.token), None).await;
    assert_eq!(status, 200, "{gone}");
}

/// The chat with other projects' front ends and with the console.
async fn chats(stack: &Stack, user: &User<'_>, front_end: &edge::FrontEnd) {
    let chat = Chat::with_tools(serde_json::to_value(&stack.description).unwrap()).await;
    let browser = Browser::start().await;
    if let Some(browser) = &browser {
        console_page::serves_a_person(&chat, browser).await;
        console_operator::is_served(user, &chat, browser).await;
        console_forms::are_filled_in(user, &chat, browser).await;
        console_automations::are_written(user, &chat, browser).await;
        console_states::can_be_used(&chat, browser).await;
    }
    chat_clients::are_served(&chat);
    let Some(browser) = browser else { return };
    copilotkit_page::is_served(&chat, &browser, front_end).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_system_as_it_is_deployed_does_its_main_job() {
    let state = std::env::temp_dir().join(format!("switchboard-{}", Uuid::now_v7()));
    let front_end = edge::FrontEnd::serve().await;
    let options = Options {
        state_dir: state.clone(),
        ports: Ports::free(),
        open_hosts: Vec::new(),
        origins: vec![front_end.origin()],
        llm: None,
        beside_tests: true,
    };
    let progress = Progress::new(local::stack::STEPS + local::demo::ACTS, |line| println!("{line}"));
    let stack = Stack::start(&options, &progress).await.unwrap();
    let about = &stack.description;
    let user = User { http: shared::clients::http_client().unwrap(), stack: &stack };
    binaries::have_no_prose();

    // A tool is created, attached and called; an SMS goes out once, despite a repeated call.
    let played = local::demo::play(&stack, &progress).await.unwrap();

    official_mcp_client(&stack);

    // A person signs in at the console and chats.
    let token = chat::sign_in(&user.http, &stack).await;
    chat::stream(&user.http, &stack, &token).await;

    // Access is refused without a token, with another organization's token, and to tool calls with a wrong token.
    let tools = format!("/api/{}/tools", about.slug);
    assert_eq!(user.send(Method::GET, &tools, None, None).await.0, 401);
    assert_eq!(user.send(Method::GET, &tools, Some("broken"), None).await.0, 401);
    let (status, problem) = user.send(Method::GET, &tools, Some(&about.other_token), None).await;
    assert_eq!((status, &problem["code"]), (StatusCode::NOT_FOUND, &json!("not_found")));
    // Creating a tool needs a sufficient role.
    for (token, role) in [(&about.member_token, "member"), (&about.viewer_token, "viewer")] {
        assert_eq!(user.send(Method::GET, &tools, Some(token), None).await.0, 200, "{role}");
        assert_eq!(user.send(Method::POST, &tools, Some(token), Some(&json!({}))).await.0, 403, "{role}");
    }
    let trial = (format!("{tools}/test"), json!({"tool_id": played.tool_id}));
    for (token, status) in [(&about.member_token, 200), (&about.viewer_token, 403)] {
        assert_eq!(user.send(Method::POST, &trial.0, Some(token), Some(&trial.1)).await.0, status);
    }
    let execute = format!("/api/tools/{}/execute", played.tool_id);
    let wrong = json!({"text": "x", "metadata": {"token": "wrong"}});
    assert_eq!(user.send(Method::POST, &execute, None, Some(&wrong)).await.0, 401);

    // The created tool is listed.
    let (status, page) = user.send(Method::GET, &tools, Some(&about.token), None).await;
    assert_eq!(status, 200);
    assert!(page["items"].as_array().unwrap().iter().any(|tool| tool["id"] == json!(played.tool_id)), "{page}");
    let attached = format!("/api/{}/agents/{}/tools", about.slug, about.agent_id);
    let (status, page) = user.send(Method::GET, &attached, Some(&about.token), None).await;
    assert_eq!(status, 200);
    assert!(page["items"].as_array().unwrap().iter().any(|tool| tool["is_vapi_attached"] == true), "{page}");

    // The other tool types, under the template's roles.
    let request = json!({
        "type": "api_request", "label": "Read messages", "method": "GET", "url": format!("{}/messages", about.standins.twilio),
    });
    let answer = user.call(&user.attached(&request).await, json!({})).await;
    let sent = stack.twilio.messages().len();
    assert!(sent > 0 && answer["result"].as_array().map(Vec::len) == Some(sent), "{answer}");

    let action = json!({
        "type": "pipedream_action", "label": "Tell the team",
        "pipedreamMetadata": {"app": "slack", "appName": "Slack", "accountId": "apn_slack1", "actionKey": "slack-send-message"},
        "params": {"conversation": {"mode": "fixed", "value": "C1"}, "text": {"mode": "ai", "prompt": "What to tell them"}},
    });
    let before = stack.pipedream.runs().len();
    let answer = user.call(&user.attached(&action).await, json!({"text": "A caller waits"})).await;
    assert_eq!(answer["success"], true, "{answer}");
    assert_eq!(stack.pipedream.runs().len(), before + 1);

    // The call did not come in through Switchboard, so VAPI is asked for it.
    let desk = json!({"type": "number", "number": "+14155550188"});
    let transfer = json!({"type": "transfer_call", "label": "Connect", "target": desk});
    let answer = user.call(&user.attached(&transfer).await, json!({})).await;
    assert_eq!(answer["success"], true, "{answer}");
    let sent = stack.vapi.requests().into_iter().rfind(|request| request.path.ends_with("/control")).unwrap();
    assert_eq!((sent.status, &sent.body["destination"]), (Some(200), &desk));

    edge::holds(&stack, &front_end).await;
    chats(&stack, &user, &front_end).await;
    events::are_answered(&stack, &user.http).await;
    belongings(&user, &json!({"name": played.tool_name})).await;
    official_voice_client(&user).await;
    pages::do_as_they_say(&stack).await;

    // `stack.json` has all addresses for testers.
    let written: Value = serde_json::from_slice(&std::fs::read(state.join("stack.json")).unwrap()).unwrap();
    for name in [
        "api_url",
        "token",
        "member_token",
        "viewer_token",
        "other_token",
        "slug",
        "agent_id",
        "phone_number_id",
        "phone_number",
        "twilio_auth_token",
        "execute_token_hint",
    ] {
        assert!(written[name].as_str().is_some_and(|text| !text.is_empty()), "{name}");
    }
    for name in ["vapi", "twilio", "pipedream", "llm"] {
        assert!(written["standins"][name].as_str().is_some_and(|url| url.starts_with("http://127.0.0.1:")), "{name}");
    }
    assert_eq!(written["llm_url"], json!(format!("{}/v1", stack.llm.url)), "no real LLM is asked in a test");
    drop(stack);
    std::fs::remove_dir_all(&state).unwrap();
}
