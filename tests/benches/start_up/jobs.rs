//! The measured requests: each function's main job on a small world.
//!
//! Every repetition is the same request and reads the tables.

use std::collections::BTreeMap;

use axum::{Router, http::header::CONTENT_TYPE, routing::get};
use serde_json::{Value, json};
use tests::{
    Event, Options, World, ai_sms,
    automation::{self, RunSpec},
    http_server::Server,
    phone,
    standins::{llm::Turn, twilio::IncomingCall},
};
use tokio::runtime::{Handle, Runtime};

use crate::Result;

/// The runtime alone: `reference.rs` repeats its input.
pub(crate) const ECHO: &str = "--echo";
/// Mode of the same program that only makes the calls of a run of `execute`.
pub(crate) const CALLS: &str = "--calls";
/// The programs of `tests/benches/node`.
pub(crate) const NODE_EXECUTE: &str = "node execute";
pub(crate) const NODE_LIST_TOOLS: &str = "node list-tools";

/// An address that can be saved but not called: the guard refuses it before it sends anything.
const REFUSED: &str = "127.0.0.1:9";

const PATH: &str = "/customers/1";
const GET_OF_AN_API: &str = "GET of an API";

pub(crate) struct Job<'a> {
    pub(crate) function: &'static str,
    /// Its description in the table.
    pub(crate) name: &'static str,
    event: Box<dyn Fn(u32) -> Value + 'a>,
    check: Box<dyn Fn(&Value) -> bool + 'a>,
}

impl<'a> Job<'a> {
    /// An HTTP request that must be answered with `status`.
    fn new(function: &'static str, name: &'static str, status: u16, event: impl Fn(u32) -> Event + 'a) -> Self {
        Self {
            function,
            name,
            event: Box::new(move |number| event(number).to_json()),
            check: Box::new(move |response| response["statusCode"] == status),
        }
    }

    /// A run of a tool whose outcome is in the answer.
    fn run_of_tool(
        function: &'static str,
        name: &'static str,
        success: bool,
        event: impl Fn(u32) -> Event + 'a,
    ) -> Self {
        let outcome = move |response: &Value| {
            let body: Value = serde_json::from_str(response["body"].as_str().unwrap_or_default()).unwrap_or_default();
            response["statusCode"] == 200 && body["success"] == success
        };
        Self { check: Box::new(outcome), ..Self::new(function, name, 200, event) }
    }

    /// A reading of `tool`, which is in the answer.
    fn reading_of(tool: &'a Value, function: &'static str, event: Event) -> Self {
        let is_the_tool = move |response: &Value| {
            let body: Value = serde_json::from_str(response["body"].as_str().unwrap_or_default()).unwrap_or_default();
            response["statusCode"] == 200
                && ["id", "name", "static_config", "created_at"].iter().all(|it| body[it] == tool[it])
                && response["headers"]["etag"].is_string()
        };
        Self { check: Box::new(is_the_tool), ..Self::new(function, "one tool", 200, move |_| event.clone()) }
    }

    /// Whether it is a request to a function of the project.
    pub(crate) fn is_ours(&self) -> bool {
        ![CALLS, ECHO, NODE_EXECUTE, NODE_LIST_TOOLS].contains(&self.function)
    }

    /// In tables.
    pub(crate) fn shown_function(&self) -> &'static str {
        self.function.trim_start_matches('-')
    }

    /// The `number`th request, as Lambda passes it on.
    pub(crate) fn event(&self, number: u32) -> String {
        (self.event)(number).to_string()
    }

    /// # Errors
    /// If the answer is not the job's, because its figures would be meaningless.
    pub(crate) fn check(&self, response: &Value) -> std::result::Result<(), String> {
        if (self.check)(response) {
            return Ok(());
        }
        Err(format!("{} ({}) answered {response}", self.function, self.name))
    }
}

/// The services and rows that the requests need.
pub(crate) struct Setting {
    runtime: Runtime,
    world: World,
    /// A service on the public Internet, as far as the outbound guard knows.
    service: Server,
    looked_up: Value,
    refused: Value,
}

impl Setting {
    pub(crate) fn start() -> Result<Self> {
        // The services go on while this thread waits for a process.
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let (service, world, looked_up, refused) = runtime.block_on(async {
            let customer = r#"{"name":"Ada","balance":12.5,"open_invoices":[]}"#;
            let customer = get(async move || ([(CONTENT_TYPE, "application/json")], customer));
            let service = Server::start(Router::new().route(PATH, customer)).await;
            // The measured functions allow only the service, so they refuse an address that this world could save.
            let open_hosts = vec![service.address.to_string(), REFUSED.to_owned()];
            let world = World::with(Options { open_hosts, ..Options::default() }).await;
            // The measurement exceeds any usual budget.
            let budgets = json!({"runs_per_hour": 1_000_000_000, "executions_per_hour": 1_000_000_000});
            world.aws.change("organizations", &world.home.organization_id, json!({"budgets": budgets}));
            let looked_up = attached_tool(&world, "Look up", &format!("http://{}{PATH}", service.address)).await;
            let refused = attached_tool(&world, "Refused", &format!("http://{REFUSED}/")).await;
            (service, world, looked_up, refused)
        });
        let setting = Self { runtime, world, service, looked_up, refused };
        setting.forget();
        Ok(setting)
    }

    pub(crate) fn runtime(&self) -> &Handle {
        self.runtime.handle()
    }

    /// A function's environment: the world's, with AWS's own variables and only the measured hosts open.
    pub(crate) fn environment(&self) -> BTreeMap<&'static str, String> {
        let mut variables = self.world.variables();
        variables.extend([
            ("AWS_REGION", "eu-central-1".to_owned()),
            ("AWS_ACCESS_KEY_ID", "bench".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "bench".to_owned()),
            ("AWS_SESSION_TOKEN", "bench".to_owned()),
            ("OUTBOUND_OPEN_HOSTS", format!("{},{}", self.service.address, self.world.llm.address())),
        ]);
        variables
    }

    /// The jobs; a function's start is measured with its first job.
    pub(crate) fn jobs(&self) -> Vec<Job<'_>> {
        let home = self.world.home.clone();
        let (tools, user) = (format!("/api/{}/tools", home.slug), home.user_id.clone());
        let attach = format!("/api/{}/agents/{}/tools/attach", home.slug, home.agent_id);
        let tool_id = json!({"tool_id": self.looked_up["id"]});
        let (look_up, refused) = (self.run_of(&self.looked_up), self.run_of(&self.refused));
        let attach = Event::post(&attach, &tool_id).user(&user);
        let create = move |number| {
            let mut tool = ai_sms();
            tool["label"] = json!(format!("Confirmation {number}"));
            Event::post(&tools, &tool).user(&user)
        };
        let slug = home.slug.clone();
        let by = home.user_id.clone();
        let ask = move |method: &'static str, path: &str| {
            let event = Event::new(method, &format!("/api/{slug}{path}")).user(&by);
            move |_| event.clone()
        };
        let nobody = "0192f0c1-0000-7000-8000-00000000dead";
        let detach = ask("POST", &format!("/agents/{}/tools/detach", home.agent_id))(0)
            .text(json!({"tool_id": nobody}).to_string());
        let edit = ask("PATCH", &format!("/tools/{}", self.looked_up["id"].as_str().unwrap_or_default()))(0);
        let dry_run = ask("POST", "/tools/test")(0).text(json!({"tool_id": self.looked_up["id"]}).to_string());
        let erasure = ask("POST", "/erasures")(0).text(json!({"phone_number": "+14155559999"}).to_string());
        let run_of_automation = ask("POST", "/runs")(0).text(json!({"prompt": "Hello", "tools": ["wget"]}).to_string());
        let incoming = {
            let path = format!("/api/phone-number/{}/incoming", home.phone_number_id);
            let url = format!("{}{path}", self.world.options.public_url);
            move |number| {
                let call = IncomingCall::new(&home.twilio_sid, &phone(number), &home.phone_number);
                let signed = call.signed(&url, &home.twilio_token);
                let event = Event::new("POST", &path).text(signed.body);
                signed.headers.iter().fold(event, |event, (name, value)| event.header(name, value))
            }
        };
        vec![
            Job::new("agents", "a page", 200, ask("GET", "/agents")),
            Job::new("call-start", "a call, to its TwiML", 200, incoming),
            Job::new("calls", "a page", 200, ask("GET", "/calls")),
            Job::new("delete", "a tool that is not there", 404, ask("DELETE", &format!("/tools/{nobody}"))),
            Job::new("detach", "a tool that is not there", 404, move |_| detach.clone()),
            Job::new("erasures", "of a number nobody knows", 200, move |_| erasure.clone()),
            Job::new("keys", "all", 200, ask("GET", "/keys")),
            Job::new("knowledge", "a page", 200, ask("GET", "/knowledge-bases")),
            Job::new("phone-numbers", "a page", 200, ask("GET", "/phone-numbers")),
            Job::new("runs", "a run, to the queue", 202, move |_| run_of_automation.clone()),
            Job::new("tools-test", "a dry run", 200, move |_| dry_run.clone()),
            Job::new("usage", "all", 200, ask("GET", "/usage")),
            Job::new("update-tool", "a description, at VAPI too", 200, move |number| {
                edit.clone().text(json!({"description": format!("Number {number}")}).to_string())
            }),
            Job::new("attach", "a tool that is there", 200, move |_| attach.clone()),
            Job::new("create-tool", "an SMS tool, at VAPI too", 201, create),
            Job::run_of_tool("execute", GET_OF_AN_API, true, move |_| look_up.clone()),
            Job::run_of_tool("execute", "GET the guard refuses", false, move |_| refused.clone()),
            Job::reading_of(&self.looked_up, "list-tools", self.reading()),
            Job {
                function: "run-loop",
                name: "a run of two answers, to its end",
                event: Box::new(|_| self.queued_run()),
                // If the script was played to its end, the run has its result.
                check: Box::new(|report| {
                    report["batchItemFailures"] == json!([]) && self.world.llm.script_left().is_empty()
                }),
            },
        ]
    }

    /// The requests of `execute` and `list-tools`, to the functions on Node.
    pub(crate) fn node_jobs(&self) -> [Job<'_>; 2] {
        let look_up = self.run_of(&self.looked_up);
        [
            Job::run_of_tool(NODE_EXECUTE, GET_OF_AN_API, true, move |_| look_up.clone()),
            Job::reading_of(&self.looked_up, NODE_LIST_TOOLS, self.reading()),
        ]
    }

    fn run_of(&self, tool: &Value) -> Event {
        self.world.vapi_event(&self.world.call(tool, json!({})))
    }

    fn reading(&self) -> Event {
        let home = &self.world.home;
        let tool = self.looked_up["id"].as_str().unwrap_or_default();
        Event::get(&format!("/api/{}/tools/{tool}", home.slug)).user(&home.user_id)
    }

    /// The requests to AWS since the last [`Setting::forget`], sorted: the action, and the table or secret.
    pub(crate) fn requests(&self) -> Vec<String> {
        let operations = self.world.aws.operations();
        let mut requests: Vec<String> = operations
            .into_iter()
            .map(|operation| format!("{} {}", operation.action, operation.on.join(" ")))
            .collect();
        requests.sort();
        requests
    }

    /// SQS's event for a new run; the model has its answers ready.
    fn queued_run(&self) -> Value {
        // Drops the runs that another function was asked to start.
        while self.world.aws.receive("runs", 0).is_some() {}
        self.world
            .llm
            .script([Turn::text(&automation::calls("return finalResponse();")), Turn::text(r#"{"opens": "8:00"}"#)]);
        self.runtime.block_on(automation::begin(&self.world, RunSpec::default()));
        self.world.aws.receive("runs", 0).map(|batch| batch.event()).unwrap_or_default()
    }

    pub(crate) fn references(&self) -> [Job<'_>; 2] {
        let home = &self.world.home;
        let run = json!({
            "organization": home.organization_id, "tool": self.looked_up["id"], "number": home.phone_number,
            "call": "0192f0c1-0000-7000-8000-0000000000ca", "url": format!("http://{}{PATH}", self.service.address),
        });
        let calls = Event::post("/calls", &run);
        let echo = Event::post("/echo", &json!({"text": "hello"}));
        [
            Job::new(ECHO, "the runtime alone", 200, move |_| echo.clone()),
            Job::new(CALLS, "what execute reads and GETs", 200, move |_| calls.clone()),
        ]
    }

    /// Clears the request logs, which would otherwise only grow.
    pub(crate) fn forget(&self) {
        self.world.aws.clear_operations();
        self.world.vapi.clear_requests();
        self.world.llm.clear_requests();
    }
}

async fn attached_tool(world: &World, label: &str, url: &str) -> Value {
    let url = json!({"mode": "fixed", "value": url});
    world.attached(&json!({"type": "api_request", "label": label, "method": "GET", "url": url})).await
}
