//! One small world per test: two organizations, AWS, and the vendors' stand-ins around the real handlers.
//!
//! Each organization has a user, an agent, a phone number and connected accounts. Worlds share nothing, and no port
//! is fixed. Requests without a tenant argument are those of the home organization's user.

mod accounts;
mod automations;
mod chat;
mod hooks;
mod knowledge;
mod mcp;
mod phone_calls;
mod queues;
mod runs;
mod seed;
mod services;
mod stream;
mod tool_calls;
mod tool_configs;
mod tools;

use std::{collections::BTreeMap, time::Duration};

use lambda_http::Request;
use local::standins::{
    Standin,
    llm::{self, Llm},
    pipedream::{self, Pipedream},
    site::{self, Site},
    twilio::{self, Twilio},
    vapi::{self, Vapi},
};
use serde_json::{Value, json};
use shared::{clients, models::Timestamp};
use uuid::Uuid;

pub use automations::automation_event;
pub use hooks::{SLACK_SECRET, SLACK_TENANT, slack_message};
pub use mcp::{PROTOCOL, said};
use seed::seed;
pub use stream::run_input;
pub use tool_configs::{ai_sms, api_request, preemptive_sms, slack_action, sms_without_call};

use crate::{
    Answer, Aws, Event, Template, event,
    issuer::Issuer,
    logs,
    process::{self, Process},
};

/// The public address in the tools of a world.
const PUBLIC_URL: &str = "https://api.switchboard.example";
pub(crate) const TOOL_TOKEN_SECRET: &str = "switchboard/tool-token";
pub(crate) const VAPI_SECRET: &str = "switchboard/vapi";
pub(crate) const LLM_SECRET: &str = "switchboard/llm";
pub(crate) const LLM_MODEL: &str = "stand-in/model";
/// A run may name it on the platform's key.
pub(crate) const OTHER_MODEL: &str = "stand-in/other";
pub(crate) const PIPEDREAM_SECRET: &str = "switchboard/pipedream";
pub(crate) const TWILIO_SECRETS: &str = "switchboard/twilio/";
pub(crate) const ORGANIZATION_SECRETS: &str = "switchboard/organizations/";
/// The platform's VAPI key, used by every organization without its own.
pub const PLATFORM_KEY: &str = "vapi-private-key";
pub const SECOND_PLATFORM_KEY: &str = "vapi-private-key-2";
/// Keys of two more VAPI accounts: two of one, one of the other.
pub const OWN_KEYS: [&str; 2] = ["own-vapi-key", "own-vapi-key-2"];
pub const ANOTHER_KEY: &str = "another-vapi-key";
/// VAPI's credential for calls without a tool's token.
const CREDENTIAL: &str = "9f0c5b7e-0000-4000-8000-00000000c0de";

#[derive(Debug, Clone)]
pub struct Options {
    /// How long a repeated effect is answered from the record.
    pub window: Duration,
    /// Hosts (`name:port`) that the outbound guard allows.
    pub open_hosts: Vec<String>,
    /// `{"current", "previous"}`
    pub token_secret: Value,
    /// The bearer of VAPI's credential, if configured.
    pub webhook_bearer: Option<String>,
    /// The public address for VAPI and Twilio.
    pub public_url: String,
    /// Additional variables of the functions; they override the usual ones.
    pub variables: Vec<(&'static str, String)>,
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
            variables: Vec::new(),
            home: Tenant::new("harbour-dental", "+15005550006"),
            other: Tenant::new("lakeside-garage", "+15005550007"),
        }
    }
}

/// An organization with its resources; all ids as text.
#[derive(Debug, Clone)]
pub struct Tenant {
    pub organization_id: String,
    pub slug: String,
    /// The `sub` of its only member.
    pub user_id: String,
    pub agent_id: String,
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
    /// Boxed: a test's futures hold worlds, and stacks are small.
    pub process: Box<Process>,
    pub aws: Aws,
    pub vapi: Standin<Vapi>,
    pub twilio: Standin<Twilio>,
    pub pipedream: Standin<Pipedream>,
    pub llm: Standin<Llm>,
    /// A public web site; the outbound guard allows it.
    pub site: Standin<Site>,
    /// Issues the tokens of users on routes without an authorizer.
    pub issuer: Issuer,
    http: reqwest::Client,
}

impl World {
    pub async fn start() -> Self {
        Self::with(Options::default()).await
    }

    pub async fn with(options: Options) -> Self {
        // Boxed, because the future of all functions is large.
        Box::pin(Self::begin(options, None)).await
    }

    /// A world with other actions at Pipedream.
    pub async fn with_pipedream(pipedream: pipedream::Options) -> Self {
        Box::pin(Self::begin(Options::default(), Some(pipedream))).await
    }

    async fn begin(mut options: Options, pipedream: Option<pipedream::Options>) -> Self {
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
        let files = local::catalogue::files().expect("the catalogue's files can be read");
        let mut at_pipedream =
            pipedream.unwrap_or_else(|| pipedream::Options::default().with_components(files.values()));
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
        let issuer = Issuer::start().await;
        let process = Process::connect(&options, &aws, [&vapi.url, &twilio.url, &pipedream.url, &issuer.url]);
        process.tokens.warm().await.expect("the token secret can be read");
        let world =
            Self { options, home, other, template, process, aws, vapi, twilio, pipedream, llm, site, issuer, http };
        for tenant in [&world.home, &world.other] {
            world.prove(tenant, &tenant.assistant_id).await;
        }
        world.vapi.clear_requests();
        world.aws.clear_operations();
        world
    }

    /// Replaces the process by one with empty caches and new connections, as after a cold start.
    pub fn restart(&mut self) {
        self.process = self.another_process();
    }

    /// Another process over the same tables, secrets and vendors. Swapped with [`World::process`], it handles the
    /// requests.
    pub fn another_process(&self) -> Box<Process> {
        Process::connect(&self.options, &self.aws, self.others())
    }

    /// The functions' environment variables, without AWS's own, for programs that run beside the tests.
    pub fn variables(&self) -> BTreeMap<&'static str, String> {
        process::variables(&self.options, &self.aws, self.others())
    }

    fn others(&self) -> [&String; 4] {
        [&self.vapi.url, &self.twilio.url, &self.pipedream.url, &self.issuer.url]
    }

    /// Sends an event to a function by its name, and waits for the work after the answer.
    pub async fn send(&self, function: &str, event: &Event) -> Answer {
        self.deliver(function, event.to_request(function)).await
    }

    /// Like [`World::send`], for a complete event of API Gateway.
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

    pub async fn get_as(&self, function: &str, tenant: &Tenant, path: &str) -> Answer {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let mut event = Event::get(&format!("/api/{}{path}", tenant.slug)).user(&tenant.user_id);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            event = event.query(name, value);
        }
        self.send(function, &event).await
    }
}

#[track_caller]
fn id(row: &Value) -> &str {
    row["id"].as_str().expect("a row has an id")
}

pub fn phone(number: u32) -> String {
    format!("+1415555{:04}", 100 + number)
}

/// Waits for the next hour if this one ends within two minutes: the counts of an hour, and those of a day, begin anew with it.
pub async fn within_one_hour() {
    let left = 3_600 - Timestamp::now().as_seconds() % 3_600;
    if left < 120 {
        tokio::time::sleep(Duration::from_secs(left.unsigned_abs() + 1)).await;
    }
}

/// A day of the week that it is in no time zone.
pub fn distant_weekday() -> &'static str {
    let days = usize::try_from(Timestamp::now().as_seconds() / 86_400).expect("a day after 1970");
    // The first day of 1970 was a Thursday.
    ["thu", "fri", "sat", "sun", "mon", "tue", "wed"][(days + 3) % 7]
}
