//! Stand-in for Pipedream Connect: client credentials, catalogue of actions, and runs.
//!
//! A run needs a known action, an account of the request's external user, and props of the declared names and types.
//! The stand-in records runs (`GET /runs`, `DELETE /runs`, [`Standin::runs`]) and deployed triggers (`GET /triggers`,
//! [`Standin::triggers`]).

mod catalogue;
mod components;
mod triggers;

pub use catalogue::{Action, Trouble};
pub use triggers::{DeployedTrigger, Webhook};

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    net::SocketAddr,
    sync::{Mutex, atomic::AtomicBool},
};

use serde::Serialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{
    Standin, clock,
    exchange::{Answer, Request},
    locked,
    server::{self, Service},
};

const PAGE: usize = 10;
const LARGEST_PAGE: usize = 100;
const LONGEST_USER_ID: usize = 250;
/// The declared lifetime of a token, in seconds.
const TOKEN_LIFE: u32 = 3600;

#[derive(Clone, Debug)]
pub struct Options {
    pub client_id: String,
    pub client_secret: String,
    /// `proj_` and letters and digits.
    pub project_id: String,
    pub accounts: Vec<Account>,
    pub actions: Vec<Action>,
    /// Deployable components.
    pub triggers: Vec<Action>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            client_id: "pd-client".to_owned(),
            client_secret: "pd-secret".to_owned(),
            project_id: "proj_local1".to_owned(),
            accounts: Vec::new(),
            actions: catalogue::actions(),
            triggers: Vec::new(),
        }
    }
}

impl Options {
    #[must_use]
    pub fn with_account(mut self, id: &str, external_user_id: &str, app: &str) -> Self {
        self.accounts.push(Account {
            id: id.to_owned(),
            external_user_id: external_user_id.to_owned(),
            app: app.to_owned(),
            healthy: true,
        });
        self
    }
}

/// The connected account of an external user.
#[derive(Clone, Debug)]
pub struct Account {
    /// `apn_…`.
    pub id: String,
    pub external_user_id: String,
    /// The app's slug, `google_sheets`.
    pub app: String,
    /// Whether the app still accepts the account.
    pub healthy: bool,
}

impl Account {
    /// The account's name at its app.
    fn name(&self) -> String {
        format!("{}@{}.example", self.id.trim_start_matches("apn_"), self.app)
    }
}

/// An action that was run, even if it failed at its service.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Run {
    /// The action's key.
    pub id: String,
    pub external_user_id: String,
    pub configured_props: Value,
    /// `development` or `production`.
    pub environment: String,
    /// The error that the action itself reported in `os`.
    pub error: Option<String>,
    /// The time of the run, ISO 8601.
    pub at: String,
}

#[derive(Debug)]
pub struct Pipedream {
    options: Options,
    tokens: Mutex<BTreeSet<String>>,
    accounts: Mutex<Vec<Account>>,
    /// External users by the token of their Connect link.
    links: Mutex<BTreeMap<String, String>>,
    runs: Mutex<Vec<Run>>,
    deployed: Mutex<Vec<DeployedTrigger>>,
    /// If set, only a regeneration reveals a signing key.
    hides_keys: AtomicBool,
    renews_webhooks: AtomicBool,
}

pub fn start(address: SocketAddr, options: Options) -> io::Result<Standin<Pipedream>> {
    let accounts = Mutex::new(options.accounts.clone());
    let service = Pipedream {
        options,
        tokens: Mutex::default(),
        accounts,
        links: Mutex::default(),
        runs: Mutex::default(),
        deployed: Mutex::default(),
        hides_keys: AtomicBool::default(),
        renews_webhooks: AtomicBool::default(),
    };
    server::serve(address, service)
}

impl Standin<Pipedream> {
    /// The runs in order.
    pub fn runs(&self) -> Vec<Run> {
        locked(&self.service.runs).clone()
    }

    pub fn clear_runs(&self) {
        locked(&self.service.runs).clear();
    }

    /// Connects an account, as a person does on the page of a Connect link.
    pub fn connect(&self, id: &str, external_user_id: &str, app: &str) {
        let account = Account {
            id: id.to_owned(),
            external_user_id: external_user_id.to_owned(),
            app: app.to_owned(),
            healthy: true,
        };
        locked(&self.service.accounts).push(account);
    }

    /// From now on the app rejects the account.
    pub fn expire(&self, id: &str) {
        let mut accounts = locked(&self.service.accounts);
        accounts.iter_mut().filter(|account| account.id == id).for_each(|account| account.healthy = false);
    }

    /// Invalidates every token issued so far.
    pub fn revoke_tokens(&self) {
        locked(&self.service.tokens).clear();
    }
}

impl Service for Pipedream {
    async fn answer(&self, request: &Request) -> Answer {
        let segments = request.segments();
        let answer = match (request.method.as_str(), segments.as_slice()) {
            ("POST", ["v1", "oauth", "token"]) => self.token(request),
            (method, ["v1", "connect", project, "actions", rest @ ..]) => {
                self.let_in(project, request).and_then(|environment| match (method, rest) {
                    ("GET", []) => self.list(request),
                    ("GET", [key]) => self.action(key),
                    ("POST", ["run"]) => self.run(request, &environment),
                    _ => Err(Problem::new(404, "not_found", "Not found")),
                })
            }
            ("POST", ["v1", "connect", project, "triggers", "deploy"]) => {
                self.let_in(project, request).and_then(|_environment| self.deploy(request))
            }
            (method, ["v1", "connect", project, "deployed-triggers", rest @ ..]) => {
                self.let_in(project, request).and_then(|_environment| match (method, rest) {
                    ("GET", []) => self.deployed(request),
                    ("GET", [id, "webhooks"]) => self.webhooks(id, request),
                    ("PUT", [id, "webhooks"]) => self.set_webhooks(id, request),
                    ("POST", [id, "webhooks", webhook, "regenerate_signing_key"]) => {
                        self.regenerate_key(id, webhook, request)
                    }
                    ("DELETE", [id]) => self.undeploy(id, request),
                    _ => Err(Problem::new(404, "not_found", "Not found")),
                })
            }
            ("GET", ["v1", "connect", project, "accounts"]) => {
                self.let_in(project, request).and_then(|_environment| self.connected(request))
            }
            ("DELETE", ["v1", "connect", project, "accounts", id]) => {
                self.let_in(project, request).and_then(|_environment| self.disconnect(id))
            }
            ("POST", ["v1", "connect", project, "tokens"]) => {
                self.let_in(project, request).and_then(|_environment| self.link(request))
            }
            _ => Err(Problem::new(404, "not_found", "Not found")),
        };
        answer.unwrap_or_else(Problem::answer)
    }

    fn failure(&self, status: u16) -> Answer {
        match status {
            429 => Answer::json(429, &json!({ "error": "Too many requests" })),
            status => {
                let reason = axum::http::StatusCode::from_u16(status).ok().and_then(|it| it.canonical_reason());
                Answer::json(status, &json!({ "error": reason.unwrap_or("error") }))
            }
        }
    }

    async fn control(&self, request: &Request) -> Option<Answer> {
        if let ("POST", ["connect", token]) = (request.method.as_str(), request.segments().as_slice()) {
            return Some(self.let_in_by_person(token, request));
        }
        match (request.method.as_str(), request.path.as_str()) {
            ("GET", "/triggers") => Some(Answer::json(200, &json!(*locked(&self.deployed)))),
            ("GET", "/runs") => Some(Answer::json(200, &json!(*locked(&self.runs)))),
            ("DELETE", "/runs") => {
                locked(&self.runs).clear();
                Some(Answer::empty(204))
            }
            _ => None,
        }
    }
}

impl Pipedream {
    fn token(&self, request: &Request) -> Result<Answer, Problem> {
        if !request.is_json() {
            return Err(Problem::new(400, "invalid_request", "the body must be application/json"));
        }
        let body = request.json().map_err(|error| Problem::new(400, "invalid_request", error.to_string()))?;
        let field = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default();
        if field("grant_type") != "client_credentials" {
            return Err(Problem::new(400, "unsupported_grant_type", "grant_type must be client_credentials"));
        }
        if field("client_id") != self.options.client_id || field("client_secret") != self.options.client_secret {
            return Err(Problem::new(401, "invalid_client", "Client authentication failed"));
        }
        let token = format!("pd_at_{}", Uuid::new_v4().simple());
        locked(&self.tokens).insert(token.clone());
        Ok(Answer::json(200, &json!({ "access_token": token, "token_type": "Bearer", "expires_in": TOKEN_LIFE })))
    }

    /// The requested environment, if token, project and environment are valid.
    fn let_in(&self, project: &str, request: &Request) -> Result<String, Problem> {
        let known = request.bearer().is_some_and(|token| locked(&self.tokens).contains(token));
        if !known {
            return Err(Problem::new(401, "unauthorized", "Unauthorized"));
        }
        if project != self.options.project_id {
            return Err(Problem::new(404, "not_found", "project not found"));
        }
        let environment = request.header("x-pd-environment").unwrap_or_default().to_ascii_lowercase();
        if !matches!(environment.as_str(), "development" | "production") {
            let message = "x-pd-environment must be development or production";
            return Err(Problem::new(400, "invalid_environment", message));
        }
        Ok(environment)
    }

    /// The newest version of an action, the last in the list.
    fn find(&self, key: &str) -> Result<&Action, Problem> {
        let found = self.options.actions.iter().rfind(|action| action.key == key);
        found.ok_or_else(|| Problem::new(404, "component_not_found", format!("no action with key {key}")))
    }

    /// The accounts of one external user, or of all.
    fn connected(&self, request: &Request) -> Result<Answer, Problem> {
        let limit = limit(request)?;
        let (user, app) = (request.parameter("external_user_id"), request.parameter("app"));
        let accounts = locked(&self.accounts);
        let mut matching = accounts.iter().filter(|account| {
            user.is_none_or(|user| account.external_user_id == user) && app.is_none_or(|app| account.app == app)
        });
        let total = matching.clone().count();
        if let Some(cursor) = request.parameter("after")
            && !matching.by_ref().any(|account| account.id == cursor)
        {
            return Err(Problem::new(400, "invalid_cursor", "after is no cursor of this list"));
        }
        let page: Vec<_> = matching.take(limit).collect();
        let data: Vec<Value> = page
            .iter()
            .map(|account| {
                json!({
                    "id": account.id, "name": account.name(), "external_id": account.external_user_id,
                    "healthy": account.healthy, "dead": false, "app": {"name_slug": account.app}, "created_at": "2026-11-20T16:00:00.000Z", "error": null,
                })
            })
            .collect();
        let page_info = json!({
            "count": page.len(),
            "total_count": total,
            "start_cursor": page.first().map(|account| &account.id),
            "end_cursor": page.last().map(|account| &account.id),
        });
        Ok(Answer::json(200, &json!({ "data": data, "page_info": page_info })))
    }

    fn disconnect(&self, id: &str) -> Result<Answer, Problem> {
        let mut accounts = locked(&self.accounts);
        let before = accounts.len();
        accounts.retain(|account| account.id != id);
        if accounts.len() == before {
            Err(Problem::new(404, "not_found", "account not found"))
        } else {
            Ok(Answer::empty(204))
        }
    }

    /// A link for connecting an account; `POST /connect/<token>?app=<slug>` at this stand-in completes it.
    fn link(&self, request: &Request) -> Result<Answer, Problem> {
        const FIELDS: [&str; 6] = [
            "external_user_id",
            "allowed_origins",
            "success_redirect_uri",
            "error_redirect_uri",
            "webhook_uri",
            "scope",
        ];
        if !request.is_json() {
            return Err(Problem::new(400, "invalid_request", "the body must be application/json"));
        }
        let body = request.json().map_err(|error| Problem::new(400, "invalid_request", error.to_string()))?;
        let body =
            body.as_object().ok_or_else(|| Problem::new(400, "invalid_request", "the body must be an object"))?;
        if let Some(unknown) = body.keys().find(|name| !FIELDS.contains(&name.as_str())) {
            return Err(Problem::new(400, "invalid_request", format!("unknown field: {unknown}")));
        }
        let user = body.get("external_user_id").and_then(Value::as_str).filter(|user| !user.is_empty());
        let user = user.ok_or_else(|| Problem::new(400, "invalid_request", "external_user_id is required"))?;
        let token = format!("ctok_{}", Uuid::new_v4().simple());
        locked(&self.links).insert(token.clone(), user.to_owned());
        let host = request.header("host").unwrap_or("pipedream.example");
        let expires_at = clock::iso(clock::now() + jiff::SignedDuration::from_hours(4));
        Ok(Answer::json(
            200,
            &json!({
                "token": token, "expires_at": expires_at, "connect_link_url": format!("http://{host}/connect/{token}?connectLink=true"),
            }),
        ))
    }

    /// Connects the account, as a person does on the link's page.
    fn let_in_by_person(&self, token: &str, request: &Request) -> Answer {
        let Some(user) = locked(&self.links).remove(token) else {
            return Answer::json(404, &json!({"error": "this link was used, or is none"}));
        };
        let Some(app) = request.parameter("app") else {
            return Answer::json(400, &json!({"error": "the link names no app"}));
        };
        let id = format!("apn_{}", &Uuid::new_v4().simple().to_string()[..7]);
        let account = Account { id: id.clone(), external_user_id: user, app: app.to_owned(), healthy: true };
        locked(&self.accounts).push(account);
        Answer::json(200, &json!({"id": id}))
    }

    fn list(&self, request: &Request) -> Result<Answer, Problem> {
        let limit = limit(request)?;
        let wanted = request.parameter("q").unwrap_or_default().to_lowercase();
        let app = request.parameter("app");
        let newest = |action: &Action| self.find(&action.key).is_ok_and(|newest| newest.version == action.version);
        let mut matching = self.options.actions.iter().filter(|action| newest(action)).filter(|action| {
            let text = format!("{} {} {}", action.key, action.name, action.description).to_lowercase();
            app.is_none_or(|app| action.app == app) && text.contains(&wanted)
        });
        let total = matching.clone().count();
        if let Some(cursor) = request.parameter("after") {
            let before = matching.by_ref();
            if !before.any(|action| action.key == cursor) {
                return Err(Problem::new(400, "invalid_cursor", "after is no cursor of this list"));
            }
        }
        let page: Vec<_> = matching.take(limit).collect();
        let body = json!({
            "data": page.iter().map(|action| action.brief()).collect::<Vec<_>>(),
            "page_info": {
                "count": page.len(),
                "total_count": total,
                "start_cursor": page.first().map(|action| &action.key),
                "end_cursor": page.last().map(|action| &action.key),
            },
        });
        Ok(Answer::json(200, &body))
    }

    fn action(&self, key: &str) -> Result<Answer, Problem> {
        Ok(Answer::json(200, &json!({ "data": self.find(key)?.whole() })))
    }

    fn run(&self, request: &Request, environment: &str) -> Result<Answer, Problem> {
        if !request.is_json() {
            return Err(Problem::new(400, "invalid_request", "the body must be application/json"));
        }
        let body = request.json().map_err(|error| Problem::new(400, "invalid_request", error.to_string()))?;
        let body =
            body.as_object().ok_or_else(|| Problem::new(400, "invalid_request", "the body must be an object"))?;
        let (key, user) = asked(body)?;
        let mut action = self.find(key)?;
        if let Some(version) = body.get("version") {
            let mut all = self.options.actions.iter();
            let found = all.find(|action| action.key == key && version.as_str() == Some(&action.version));
            let missing = || Problem::new(404, "component_not_found", format!("no version {version} of action {key}"));
            action = found.ok_or_else(missing)?;
        }
        let props = body.get("configured_props").cloned().unwrap_or_else(|| json!({}));
        let given = props.as_object();
        let given = given.ok_or_else(|| Problem::new(400, "invalid_request", "configured_props must be an object"))?;
        let mut problems = action.problems(given);
        for (prop, account) in action.accounts(given) {
            let known = locked(&self.accounts);
            if !known.iter().any(|it| it.id == account && it.external_user_id == user && it.app == action.app) {
                let message = format!("account {account} is not connected to {} for this user", action.app);
                problems.insert(prop.to_owned(), Value::String(message));
            }
        }
        if !problems.is_empty() {
            let details = Value::Object(problems);
            return Err(Problem { details, ..Problem::new(400, "invalid_props", "configured_props are not valid") });
        }
        let error = action.trouble(given).map(str::to_owned);
        let answer = match &error {
            None => json!({ "exports": { "$summary": action.summary(given) }, "os": [], "ret": action.ret }),
            Some(message) => failed_inside(message),
        };
        locked(&self.runs).push(Run {
            id: key.to_owned(),
            external_user_id: user.to_owned(),
            configured_props: props.clone(),
            environment: environment.to_owned(),
            error,
            at: clock::iso(clock::now()),
        });
        Ok(Answer::json(200, &answer))
    }
}

/// The requested number of list items.
fn limit(request: &Request) -> Result<usize, Problem> {
    match request.parameter("limit").map(str::parse::<usize>) {
        None => Ok(PAGE),
        Some(Ok(limit)) if (1..=LARGEST_PAGE).contains(&limit) => Ok(limit),
        Some(_) => Err(Problem::new(400, "invalid_limit", "limit must be 1 to 100")),
    }
}

/// The action's key and the external user of a valid body; unknown fields are rejected.
fn asked(body: &Map<String, Value>) -> Result<(&str, &str), Problem> {
    asked_of(body, &["id", "external_user_id", "version", "configured_props", "dynamic_props_id", "stash_id"])
}

/// Like [`asked`], for a body with these fields.
fn asked_of<'b>(body: &'b Map<String, Value>, fields: &[&str]) -> Result<(&'b str, &'b str), Problem> {
    if let Some(unknown) = body.keys().find(|name| !fields.contains(&name.as_str())) {
        return Err(Problem::new(400, "invalid_request", format!("unknown field: {unknown}")));
    }
    let field = |name: &str| body.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let missing = |name: &str| Problem::new(400, "invalid_request", format!("{name} is required"));
    let key = field("id").ok_or_else(|| missing("id"))?;
    let user = field("external_user_id").ok_or_else(|| missing("external_user_id"))?;
    if user.chars().count() > LONGEST_USER_ID {
        return Err(Problem::new(400, "invalid_request", "external_user_id is longer than 250 characters"));
    }
    Ok((key, user))
}

/// An action that failed at its service: status 200, with the error among the observations.
fn failed_inside(message: &str) -> Value {
    let now = clock::now().as_millisecond();
    json!({
        "exports": {},
        "os": [
            { "ts": now, "k": "console.log", "msg": "running" },
            { "ts": now, "k": "error", "err": { "name": "Error", "message": message, "stack": format!("Error: {message}") } },
        ],
        "ret": null,
    })
}

struct Problem {
    status: u16,
    code: &'static str,
    message: String,
    details: Value,
}

impl Problem {
    fn new(status: u16, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), details: json!({}) }
    }

    fn answer(self) -> Answer {
        Answer::json(self.status, &json!({ "error": self.message, "code": self.code, "details": self.details }))
    }
}
