//! One small world per test: two organizations, each with a user, an agent, a phone number and connected accounts; AWS and
//! the vendors' stand-ins around the real handlers. Nothing is shared between worlds and no port is fixed.

use std::time::Duration;

use lambda_http::Request;
use local::standins::{
    Standin,
    llm::{self, Llm},
    pipedream::{self, Pipedream},
    site::{self, Site},
    twilio::{self, IncomingCall, Twilio},
    vapi::{self, ToolCall, Vapi},
};
use serde_json::{Map, Value, json};
use shared::{Deadline, clients, models::Timestamp, queue};
use uuid::Uuid;

use crate::{Answer, Aws, Event, Template, aws::Received, event, logs, process::Process};

/// Where VAPI reaches us, as far as the tools made in a world say.
const PUBLIC_URL: &str = "https://api.switchboard.example";
pub(crate) const TOOL_TOKEN_SECRET: &str = "switchboard/tool-token";
pub(crate) const VAPI_SECRET: &str = "switchboard/vapi";
pub(crate) const LLM_SECRET: &str = "switchboard/llm";
pub(crate) const LLM_MODEL: &str = "stand-in/model";
pub(crate) const PIPEDREAM_SECRET: &str = "switchboard/pipedream";
pub(crate) const TWILIO_SECRETS: &str = "switchboard/twilio/";
pub(crate) const ORGANIZATION_SECRETS: &str = "switchboard/organizations/";
/// VAPI's key of the platform, which every organization uses that has none of its own.
pub const PLATFORM_KEY: &str = "vapi-private-key";
/// Another key of the platform's account.
pub const SECOND_PLATFORM_KEY: &str = "vapi-private-key-2";
/// Keys of two more accounts at VAPI: two of the one, one of the other.
pub const OWN_KEYS: [&str; 2] = ["own-vapi-key", "own-vapi-key-2"];
pub const ANOTHER_KEY: &str = "another-vapi-key";
/// VAPI's credential with which it can call us without a tool's token.
const CREDENTIAL: &str = "9f0c5b7e-0000-4000-8000-00000000c0de";

/// What may differ between worlds.
#[derive(Debug, Clone)]
pub struct Options {
    /// For how long the same effect is answered from the record.
    pub window: Duration,
    /// Hosts (`name:port`) the outbound guard lets through.
    pub open_hosts: Vec<String>,
    /// `{"current", "previous"}`
    pub token_secret: Value,
    /// The bearer of VAPI's credential, if one is set up.
    pub webhook_bearer: Option<String>,
    /// Where VAPI and Twilio reach us.
    pub public_url: String,
    pub home: Tenant,
    pub other: Tenant,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            window: Duration::from_secs(120),
            open_hosts: Vec::new(),
            token_secret: json!({"current": "key-of-the-tool-tokens"}),
            webhook_bearer: Some("bearer-of-vapis-credential".to_owned()),
            public_url: PUBLIC_URL.to_owned(),
            home: Tenant::new("harbour-dental", "+15005550006"),
            other: Tenant::new("lakeside-garage", "+15005550007"),
        }
    }
}

/// An organization and what it owns; all ids as text.
#[derive(Debug, Clone)]
pub struct Tenant {
    pub organization_id: String,
    pub slug: String,
    /// `sub` of its one member.
    pub user_id: String,
    pub agent_id: String,
    /// The agent's assistant at VAPI.
    pub assistant_id: String,
    pub phone_number_id: String,
    pub phone_number: String,
    pub twilio_sid: String,
    pub twilio_token: String,
    /// Connected Slack and Gmail accounts at Pipedream.
    pub slack_account: String,
    pub gmail_account: String,
}

impl Tenant {
    pub fn new(slug: &str, phone_number: &str) -> Self {
        let id = || Uuid::new_v4().to_string();
        Self {
            organization_id: id(),
            slug: slug.to_owned(),
            user_id: format!("user|{slug}"),
            agent_id: id(),
            assistant_id: id(),
            phone_number_id: id(),
            phone_number: phone_number.to_owned(),
            twilio_sid: format!("AC{}", Uuid::new_v4().simple()),
            twilio_token: Uuid::new_v4().simple().to_string(),
            slack_account: format!("apn_slack{}", &slug[..1]),
            gmail_account: format!("apn_gmail{}", &slug[..1]),
        }
    }

    fn twilio_secret(&self) -> String {
        format!("{TWILIO_SECRETS}{}", self.phone_number_id)
    }
}

pub struct World {
    pub options: Options,
    pub home: Tenant,
    pub other: Tenant,
    pub template: Template,
    /// On the heap: a test's futures hold worlds, and stacks are small.
    pub process: Box<Process>,
    pub aws: Aws,
    pub vapi: Standin<Vapi>,
    pub twilio: Standin<Twilio>,
    pub pipedream: Standin<Pipedream>,
    pub llm: Standin<Llm>,
    /// A public web site: the outbound guard lets it through.
    pub site: Standin<Site>,
    http: reqwest::Client,
}

impl World {
    pub async fn start() -> Self {
        Self::with(Options::default()).await
    }

    pub async fn with(options: Options) -> Self {
        // On the heap: with all functions at once it is large.
        Box::pin(Self::begin(options)).await
    }

    async fn begin(mut options: Options) -> Self {
        logs::install();
        let template = Template::read();
        let (home, other) = (options.home.clone(), options.other.clone());
        let aws = Aws::start(&template);
        let any = "127.0.0.1:0".parse().expect("an address");

        let mut at_vapi =
            vapi::Options::default().with_assistant(&home.assistant_id).with_assistant(&other.assistant_id);
        if let Some(bearer) = &options.webhook_bearer {
            at_vapi = at_vapi.with_credential(CREDENTIAL, "Authorization", &format!("Bearer {bearer}"));
        }
        let platform = at_vapi.org_id.clone();
        at_vapi = at_vapi.with_key(SECOND_PLATFORM_KEY, &platform);
        for (key, account) in [(OWN_KEYS[0], "own"), (OWN_KEYS[1], "own"), (ANOTHER_KEY, "another")] {
            at_vapi = at_vapi.with_key(key, account);
        }
        let mut at_twilio = twilio::Options::default();
        let mut at_pipedream = pipedream::Options::default();
        for tenant in [&home, &other] {
            at_vapi = at_vapi.with_number(&tenant.phone_number, &tenant.assistant_id);
            at_twilio = at_twilio.with_account(&tenant.twilio_sid, &tenant.twilio_token, &[&tenant.phone_number]);
            at_pipedream = at_pipedream
                .with_account(&tenant.slack_account, &tenant.organization_id, "slack")
                .with_account(&tenant.gmail_account, &tenant.organization_id, "gmail");
        }
        let key = at_vapi.api_key.clone();
        let vapi = vapi::start(any, at_vapi).expect("VAPI's stand-in starts");
        let twilio = twilio::start(any, at_twilio).expect("Twilio's stand-in starts");
        let pipedream = pipedream::start(any, at_pipedream).expect("Pipedream's stand-in starts");
        let site = site::start(any).expect("the web site starts");
        options.open_hosts.push(site.address().to_string());

        let at_llm = llm::Options::default();
        let llm_key = at_llm.api_key.clone();
        let llm = llm::start(any, at_llm).expect("the LLM's stand-in starts");

        aws.put_secret(LLM_SECRET, &json!({"api_key": llm_key, "base_url": llm.url}));
        aws.put_secret(TOOL_TOKEN_SECRET, &options.token_secret);
        aws.put_secret(VAPI_SECRET, &json!({"api_key": key, "webhook_bearer": options.webhook_bearer}));
        let project = json!({"client_id": "pd-client", "client_secret": "pd-secret", "project_id": "proj_local1", "environment": "development"});
        aws.put_secret(PIPEDREAM_SECRET, &project);
        seed(&aws, &home);
        seed(&aws, &other);

        let http = clients::http_client().expect("an HTTP client");
        let process = Process::connect(&options, &aws, [&vapi.url, &twilio.url, &pipedream.url]);
        process.tokens.warm().await.expect("the token secret can be read");
        let world = Self { options, home, other, template, process, aws, vapi, twilio, pipedream, llm, site, http };
        world.aws.clear_operations();
        world
    }

    /// A new process with empty caches and new connections, as after a cold start.
    pub fn restart(&mut self) {
        self.process =
            Process::connect(&self.options, &self.aws, [&self.vapi.url, &self.twilio.url, &self.pipedream.url]);
    }

    /// Sends an event to a function by its name, and does what follows the answer.
    pub async fn send(&self, function: &str, event: &Event) -> Answer {
        self.deliver(function, event.to_request()).await
    }

    /// As [`World::send`], for a whole event of API Gateway's.
    pub async fn send_json(&self, function: &str, event: &Value) -> Answer {
        self.deliver(function, event::request(event, Duration::from_secs(28))).await
    }

    async fn deliver(&self, function: &str, request: Request) -> Answer {
        let (response, afterwards) = self.process.answer(function, request).await;
        let answer = Answer::read(&response);
        if let Some(afterwards) = afterwards {
            afterwards.await;
        }
        answer
    }

    /// `POST /api/{slug}/tools` as the home organization's user.
    pub async fn create(&self, body: &Value) -> Answer {
        self.create_as(&self.home, body).await
    }

    pub async fn create_as(&self, tenant: &Tenant, body: &Value) -> Answer {
        let event = Event::post(&format!("/api/{}/tools", tenant.slug), body).user(&tenant.user_id);
        self.send("create", &event).await
    }

    /// Attaches a tool to the home organization's agent, as its user.
    pub async fn attach(&self, tool_id: &str) -> Answer {
        self.attach_as(&self.home, &self.home.agent_id, tool_id).await
    }

    pub async fn attach_as(&self, tenant: &Tenant, agent_id: &str, tool_id: &str) -> Answer {
        let path = format!("/api/{}/agents/{agent_id}/tools/attach", tenant.slug);
        self.send("attach", &Event::post(&path, &json!({"tool_id": tool_id})).user(&tenant.user_id)).await
    }

    /// Takes a tool from the home organization's agent, as its user.
    pub async fn detach(&self, tool_id: &str) -> Answer {
        self.detach_as(&self.home, &self.home.agent_id, tool_id).await
    }

    pub async fn detach_as(&self, tenant: &Tenant, agent_id: &str, tool_id: &str) -> Answer {
        let path = format!("/api/{}/agents/{agent_id}/tools/detach", tenant.slug);
        self.send("detach", &Event::post(&path, &json!({"tool_id": tool_id})).user(&tenant.user_id)).await
    }

    /// `PATCH /api/{slug}/tools/{id}` as the home organization's user.
    pub async fn update(&self, tool: &Value, changes: &Value) -> Answer {
        self.update_as(&self.home, tool, changes).await
    }

    pub async fn update_as(&self, tenant: &Tenant, tool: &Value, changes: &Value) -> Answer {
        self.send("update", &edit(tenant, tool, changes)).await
    }

    /// As [`World::update`], with `If-Match`.
    pub async fn update_seen(&self, tool: &Value, seen: &str, changes: &Value) -> Answer {
        self.send("update", &edit(&self.home, tool, changes).header("if-match", seen)).await
    }

    /// `DELETE /api/{slug}/tools/{id}` as the home organization's user.
    pub async fn delete(&self, tool: &Value) -> Answer {
        self.delete_as(&self.home, tool).await
    }

    pub async fn delete_as(&self, tenant: &Tenant, tool: &Value) -> Answer {
        let path = format!("/api/{}/tools/{}", tenant.slug, id(tool));
        self.send("delete", &Event::new("DELETE", &path).user(&tenant.user_id)).await
    }

    /// Delivers the messages of the queue of tool runs that are due at once, in batches as they come, until none is left that
    /// has not been tried; gives how many failed.
    pub async fn run_queued(&self) -> usize {
        let mut failed = 0;
        let mut batches = Vec::new();
        while let Some(batch) = self.aws.receive("runs", 0) {
            batches.push(batch);
        }
        for batch in batches {
            failed += self.run_batch(batch).await;
        }
        failed
    }

    /// Delivers one batch to `run-tool`; gives how many of its messages failed.
    pub async fn run_batch(&self, batch: Received) -> usize {
        let event = serde_json::from_value(batch.event()).expect("an event of SQS's");
        let deadline = Deadline::after(Duration::from_secs(60));
        let run_tool = &self.process.run_tool;
        let handle = |message| run_tool::handle(run_tool, message, deadline);
        let report = Box::pin(queue::answer("run-tool", event, handle)).await;
        batch.answered(&serde_json::to_value(report).expect("a report is JSON"))
    }

    /// Delivers the messages of the queue of automations' runs that are due, until none is, each with so much time; gives how
    /// many failed.
    pub async fn run_loop(&self, within: Duration) -> usize {
        let mut failed = 0;
        while let Some(batch) = self.aws.receive("automation-runs", 0) {
            failed += self.run_loop_batch(batch, within).await;
        }
        failed
    }

    /// Delivers one batch to `run-loop`; gives how many of its messages failed.
    pub async fn run_loop_batch(&self, batch: Received, within: Duration) -> usize {
        let event = serde_json::from_value(batch.event()).expect("an event of SQS's");
        let run_loop = &self.process.run_loop;
        let handle = |message| run_loop::handle(run_loop, message, Deadline::after(within));
        let report = Box::pin(queue::answer("run-loop", event, handle)).await;
        batch.answered(&serde_json::to_value(report).expect("a report is JSON"))
    }

    /// A run of `settle`; gives its report.
    pub async fn settle(&self) -> Value {
        let report = settle::handle(&self.process.settle, Deadline::after(Duration::from_secs(200))).await;
        serde_json::to_value(report.expect("settle runs")).expect("a report is JSON")
    }

    /// Time passes: leases and the ownership of intents and names run out.
    pub fn later(&self) {
        let limits = [
            ("intents", "owner_until"),
            ("agents", "lease_until"),
            ("knowledge_bases", "lease_until"),
            ("tools", "lease_until"),
            ("tools", "reserved_until"),
        ];
        for (table, attribute) in limits {
            for row in self.aws.rows(table).iter().filter(|row| row.get(attribute).is_some()) {
                self.aws.change(table, id(row), json!({attribute: 1}));
            }
        }
        for mut run in self.aws.rows("automation_runs") {
            for attribute in ["lease_until", "resume_at"] {
                if run.get(attribute).is_some() {
                    run[attribute] = json!(1);
                    self.aws.put("automation_runs", &run);
                }
            }
        }
    }

    /// More agents of the home organization, each with an assistant at VAPI; gives their ids.
    pub async fn agents(&self, count: usize) -> Vec<String> {
        let mut agents = Vec::new();
        for number in 0..count {
            let assistant =
                json!({"name": format!("Agent {number}"), "model": {"provider": "openai", "model": "gpt-4o"}});
            let assistant = self.at_vapi("POST", "/assistant", &assistant).await;
            let now = Timestamp::now().to_string();
            let agent = Uuid::new_v4().to_string();
            self.aws.put(
                "agents",
                &json!({
                    "id": agent, "organization_id": self.home.organization_id, "name": format!("Agent {number}"),
                    "external_assistant_id": assistant["id"], "created_at": now, "updated_at": now,
                }),
            );
            agents.push(agent);
        }
        agents
    }

    /// A GET below `/api/{slug}` as the home organization's user: `list("/tools?limit=5")`.
    pub async fn list(&self, path: &str) -> Answer {
        self.list_as(&self.home, path).await
    }

    pub async fn list_as(&self, tenant: &Tenant, path: &str) -> Answer {
        self.get_as("list", tenant, path).await
    }

    /// What became of the tools in a call, as the home organization's user sees it: `executions_of_call("<id>?limit=5")`.
    pub async fn executions_of_call(&self, call: &str) -> Answer {
        self.executions_of_call_as(&self.home, call).await
    }

    pub async fn executions_of_call_as(&self, tenant: &Tenant, call: &str) -> Answer {
        let (id, query) = call.split_once('?').unwrap_or((call, ""));
        self.get_as("calls", tenant, &format!("/calls/{id}/executions?{query}")).await
    }

    /// Calls as the home organization's user sees them: `calls("?limit=5")`, `calls("/<id>")`.
    pub async fn calls(&self, path: &str) -> Answer {
        self.calls_as(&self.home, path).await
    }

    pub async fn calls_as(&self, tenant: &Tenant, path: &str) -> Answer {
        self.get_as("calls", tenant, &format!("/calls{path}")).await
    }

    /// `POST /api/{slug}/runs` as the home organization's user.
    pub async fn start_run(&self, body: &Value) -> Answer {
        self.start_run_as(&self.home, body).await
    }

    pub async fn start_run_as(&self, tenant: &Tenant, body: &Value) -> Answer {
        let event = Event::post(&format!("/api/{}/runs", tenant.slug), body).user(&tenant.user_id);
        self.send("runs", &event).await
    }

    /// As [`World::start_run`], with an `Idempotency-Key`.
    pub async fn start_run_once(&self, key: &str, body: &Value) -> Answer {
        let event = Event::post(&format!("/api/{}/runs", self.home.slug), body).user(&self.home.user_id);
        self.send("runs", &event.header("idempotency-key", key)).await
    }

    /// A run with its steps, as the home organization's user sees it.
    pub async fn run(&self, id: &str) -> Answer {
        self.runs(&format!("/{id}")).await
    }

    /// Runs as the home organization's user sees them: `runs("?limit=5")`, `runs("/<id>")`.
    pub async fn runs(&self, path: &str) -> Answer {
        self.runs_as(&self.home, path).await
    }

    pub async fn runs_as(&self, tenant: &Tenant, path: &str) -> Answer {
        self.get_as("runs", tenant, &format!("/runs{path}")).await
    }

    /// `POST /api/{slug}/runs/{id}/cancel` as the home organization's user.
    pub async fn cancel_run(&self, id: &str) -> Answer {
        self.cancel_run_as(&self.home, id).await
    }

    pub async fn cancel_run_as(&self, tenant: &Tenant, id: &str) -> Answer {
        let event = Event::new("POST", &format!("/api/{}/runs/{id}/cancel", tenant.slug)).user(&tenant.user_id);
        self.send("runs", &event).await
    }

    async fn get_as(&self, function: &str, tenant: &Tenant, path: &str) -> Answer {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let mut event = Event::get(&format!("/api/{}{path}", tenant.slug)).user(&tenant.user_id);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            event = event.query(name, value);
        }
        self.send(function, &event).await
    }

    /// `POST /api/{slug}/tools/test` as the home organization's user.
    pub async fn try_tool(&self, body: &Value) -> Answer {
        self.try_tool_as(&self.home, body).await
    }

    pub async fn try_tool_as(&self, tenant: &Tenant, body: &Value) -> Answer {
        let event = Event::post(&format!("/api/{}/tools/test", tenant.slug), body).user(&tenant.user_id);
        self.send("tools-test", &event).await
    }

    /// A request below `/api/{slug}/knowledge-bases` as the home organization's user; null is no body.
    pub async fn knowledge(&self, method: &str, path: &str, body: &Value) -> Answer {
        self.knowledge_as(&self.home, method, path, body).await
    }

    pub async fn knowledge_as(&self, tenant: &Tenant, method: &str, path: &str, body: &Value) -> Answer {
        let mut event =
            Event::new(method, &format!("/api/{}/knowledge-bases{path}", tenant.slug)).user(&tenant.user_id);
        if !body.is_null() {
            event = event.header("content-type", "application/json").text(body.to_string());
        }
        self.send("knowledge", &event).await
    }

    /// Gives a knowledge base to an agent of the home organization's, as its user, or takes it away: `attach` or `detach`.
    pub async fn knowledge_of(&self, agent_id: &str, what: &str, base_id: &str) -> Answer {
        let path = format!("/api/{}/agents/{agent_id}/knowledge-bases/{what}", self.home.slug);
        let event = Event::post(&path, &json!({"knowledge_base_id": base_id})).user(&self.home.user_id);
        self.send("knowledge", &event).await
    }

    /// A knowledge base of the home organization's with these entries, made over the API.
    pub async fn knowledge_base(&self, fields: &Value, entries: &Value) -> Value {
        let body = json!({"name": "Homes for sale", "fields": fields});
        let base = self.knowledge("POST", "", &body).await.expect(201);
        let report = self.knowledge("POST", &format!("/{}/entries", id(&base)), &json!({"entries": entries})).await;
        let refused = report.expect(200)["refused"].clone();
        assert_eq!(refused, json!([]));
        base
    }

    /// `POST /api/tools/{id}/execute` with a body of the test's own.
    pub async fn execute(&self, tool_id: &str, body: &Value) -> Answer {
        self.send("execute", &Event::post(&format!("/api/tools/{tool_id}/execute"), body)).await
    }

    /// A tool of the home organization, made over the API.
    pub async fn tool(&self, body: &Value) -> Value {
        self.create(body).await.expect(201)
    }

    /// A tool made and attached over the API.
    pub async fn attached(&self, body: &Value) -> Value {
        let tool = self.tool(body).await;
        self.attach(id(&tool)).await.expect(201);
        tool
    }

    /// A call of an attached tool's in a new phone call to the home organization's number.
    pub fn call(&self, tool: &Value, arguments: Value) -> ToolCall {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        ToolCall {
            assistant_id: self.home.assistant_id.clone(),
            tool_name: tool["name"].as_str().expect("a tool has a name").to_owned(),
            arguments,
            customer_number: phone(1),
            phone_number: self.home.phone_number.clone(),
            call_id: Some(Uuid::now_v7().to_string()),
            ..ToolCall::default()
        }
    }

    /// The exact request VAPI would send for a call, as API Gateway hands it on.
    #[track_caller]
    pub fn wire(&self, call: &ToolCall) -> Event {
        let outgoing = self.vapi.outgoing(call).expect("VAPI can call the tool");
        let path = outgoing.url.strip_prefix(&self.options.public_url).expect("the tool's URL is ours");
        let mut event = Event::new(&outgoing.method, path);
        for (name, value) in &outgoing.headers {
            event = event.header(name, value);
        }
        event.body = outgoing.body.map(|body| body.to_string());
        event
    }

    /// Lets VAPI call the tool.
    pub async fn call_tool(&self, call: &ToolCall) -> Answer {
        self.send("execute", &self.wire(call)).await
    }

    /// A `function` tool at VAPI that sends its `tool-calls` messages to this tool of ours, attached to the home
    /// organization's assistant. [`World::call_tool`] then uses VAPI's other shape.
    pub async fn function_tool(&self, tool: &Value) {
        let url = format!("{}/api/tools/{}/execute", self.options.public_url, id(tool));
        let function = json!({
            "type": "function",
            "function": tool["function_schema"],
            "server": {"url": url, "credentialId": CREDENTIAL},
        });
        let made = self.at_vapi("POST", "/tool", &function).await;
        let path = format!("/assistant/{}", self.home.assistant_id);
        let mut model = self.model();
        model["toolIds"].as_array_mut().expect("toolIds").push(made["id"].clone());
        self.at_vapi("PATCH", &path, &json!({"model": model})).await;
    }

    /// The model of the home organization's assistant.
    pub fn model(&self) -> Value {
        let assistant = self.vapi.assistant(&self.home.assistant_id).expect("the assistant");
        assistant["model"].clone()
    }

    /// `toolIds` of the home organization's assistant.
    pub fn tool_ids(&self) -> Vec<String> {
        let model = self.model();
        model["toolIds"].as_array().into_iter().flatten().map(|id| id.as_str().expect("an id").to_owned()).collect()
    }

    /// A request to VAPI's API of the test's own; gives the body of its success.
    pub async fn at_vapi(&self, method: &str, path: &str, body: &Value) -> Value {
        self.at_vapi_with(PLATFORM_KEY, method, path, body).await
    }

    /// As [`World::at_vapi`], with another key.
    pub async fn at_vapi_with(&self, key: &str, method: &str, path: &str, body: &Value) -> Value {
        let method = method.parse().expect("a method");
        let request = self.http.request(method, format!("{}{path}", self.vapi.url)).bearer_auth(key);
        let answer = request.json(body).send().await.expect("VAPI's stand-in answers");
        let status = answer.status();
        let body: Value = answer.json().await.expect("JSON");
        assert!(status.is_success(), "{body}");
        body
    }

    /// A call that comes in on the home organization's number.
    pub fn caller(&self, number: &str) -> IncomingCall {
        IncomingCall::new(&self.home.twilio_sid, number, &self.home.phone_number)
    }

    /// Twilio's request about it, signed, as API Gateway hands it on.
    pub fn incoming(&self, call: &IncomingCall) -> Event {
        let path = format!("/api/phone-number/{}/incoming", self.home.phone_number_id);
        let form = call.signed(&format!("{}{path}", self.options.public_url), &self.home.twilio_token);
        let mut event = Event::new("POST", &path).text(form.body);
        for (name, value) in &form.headers {
            event = event.header(name, value);
        }
        event
    }

    /// A row of `calls`: the call came in through us.
    pub fn incoming_call(&self, tenant: &Tenant, call_id: &str, caller: &str) {
        let now = Timestamp::now().to_string();
        let row = json!({
            "id": call_id,
            "organization_id": tenant.organization_id,
            "agent_id": tenant.agent_id,
            "caller_phone_number": caller,
            "called_phone_number": tenant.phone_number,
            "created_at": now,
            "updated_at": now,
        });
        self.aws.put("calls", &row);
    }

    /// A request below `/api/{slug}/keys` as this organization's user; null is no body.
    pub async fn keys(&self, tenant: &Tenant, method: &str, path: &str, body: &Value) -> Answer {
        let event = Event::new(method, &format!("/api/{}/keys{path}", tenant.slug)).user(&tenant.user_id);
        self.send("keys", &if body.is_null() { event } else { event.text(body.to_string()) }).await
    }

    /// Gives an organization this key of its own for VAPI, past the checks.
    pub fn own_key(&self, tenant: &Tenant, secret: &Value) {
        let key = Uuid::now_v7().to_string();
        let organization = &tenant.organization_id;
        self.aws.put_secret(&format!("{ORGANIZATION_SECRETS}vapi/{organization}/{key}"), secret);
        let own = json!({"vapi": {"id": key, "updated_at": Timestamp::now()}});
        self.aws.change("organizations", organization, json!({"own_keys": own}));
    }

    /// The history, oldest first.
    pub fn executions(&self) -> Vec<Value> {
        let mut rows = self.aws.rows("executions");
        rows.sort_by_key(|row| row["id"].as_str().unwrap_or_default().to_owned());
        rows
    }

    /// Rows of `tools` without the guards of names.
    pub fn tools(&self) -> Vec<Value> {
        self.aws.rows("tools").into_iter().filter(|row| row.get("label").is_some()).collect()
    }
}

/// The `id` of a row.
#[track_caller]
fn id(row: &Value) -> &str {
    row["id"].as_str().expect("a row has an id")
}

fn edit(tenant: &Tenant, tool: &Value, changes: &Value) -> Event {
    let path = format!("/api/{}/tools/{}", tenant.slug, id(tool));
    Event::new("PATCH", &path).text(changes.to_string()).user(&tenant.user_id)
}

/// A phone number by its number.
pub fn phone(number: u32) -> String {
    format!("+1415555{:04}", 100 + number)
}

/// An SMS to the caller whose text the model writes.
pub fn ai_sms() -> Value {
    json!({
        "type": "sms",
        "label": "Send confirmation",
        "description": "Sends the caller a text message that confirms the appointment.",
        "from": {"type": "called_number"},
        "text": {"mode": "ai", "prompt": "The message to send"},
        "recipients": {"mode": "array_extendable", "fixedValues": ["{{caller_phone_number}}"], "aiExtension": {"enabled": false}},
    })
}

/// An SMS of fixed text that goes out when a call starts, and at no other time.
pub fn preemptive_sms() -> Value {
    let mut tool = ai_sms();
    tool["text"] = json!({"mode": "fixed", "value": "Welcome"});
    tool["attach_to_agent"] = json!(false);
    tool["execute_on_call_start"] = json!(true);
    tool
}

/// A request to `url` without parameters of the model's.
pub fn api_request(method: &str, url: &str) -> Value {
    json!({"type": "api_request", "label": "Look up customer", "method": method, "url": url})
}

/// A Slack message whose text the model writes.
pub fn slack_action(tenant: &Tenant) -> Value {
    json!({
        "type": "pipedream_action",
        "label": "Tell the team",
        "pipedreamMetadata": {"app": "slack", "appName": "Slack", "accountId": tenant.slack_account, "actionKey": "slack-send-message"},
        "preloadedParams": {"mrkdwn": true},
        "params": {"conversation": {"mode": "fixed", "value": "C123"}, "text": {"mode": "ai", "prompt": "What to tell"}},
    })
}

fn seed(aws: &Aws, tenant: &Tenant) {
    let now = Timestamp::now().to_string();
    let put = |table: &str, row: Value| {
        let Value::Object(mut row) = row else { panic!("a row is an object") };
        row.extend(Map::from_iter([("created_at".to_owned(), json!(now)), ("updated_at".to_owned(), json!(now))]));
        aws.put(table, &Value::Object(row));
    };
    let organization = &tenant.organization_id;
    put("organizations", json!({"id": organization, "name": tenant.slug, "slug": tenant.slug}));
    put("organization_members", json!({"user_id": tenant.user_id, "organization_id": organization, "role": "owner"}));
    put(
        "agents",
        json!({"id": tenant.agent_id, "organization_id": organization, "name": "Front desk", "external_assistant_id": tenant.assistant_id}),
    );
    aws.put("agents", &json!({"id": format!("assistant#{}", tenant.assistant_id), "agent_id": tenant.agent_id}));
    let guard = format!("number#{}", tenant.phone_number);
    aws.put("phone_numbers", &json!({"id": guard, "phone_number_id": tenant.phone_number_id}));
    let secret = tenant.twilio_secret();
    put(
        "phone_numbers",
        json!({
            "id": tenant.phone_number_id,
            "organization_id": organization,
            "number": tenant.phone_number,
            "label": "Main line",
            "agent_id": tenant.agent_id,
            "credentials_secret": secret,
        }),
    );
    aws.put_secret(&secret, &json!({"account_sid": tenant.twilio_sid, "auth_token": tenant.twilio_token}));
}
