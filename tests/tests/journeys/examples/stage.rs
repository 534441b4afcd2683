//! A world for one example: its services from the catalogue, connected, with a server of the test behind their tools.

use std::{
    collections::BTreeSet,
    fs,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Json, Router,
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::post,
};
use serde_json::{Map, Value, json};
use shared::models::{Automation, Timestamp};
use tests::{Event, Options, World, ai_sms, automation::AMPLE, http_server::Server, phone, webhooks::Signer};
use uuid::Uuid;

use crate::{
    catalogue::{files, load, registry::connect_all},
    events::services::{by_hook, hook_of},
};

/// Answers of tools by their names; one with `$status` has that status.
type Answers = Arc<Mutex<Map<String, Value>>>;

pub(super) struct Stage {
    pub(super) world: World,
    server: Server,
    answers: Answers,
    hooks: Mutex<Map<String, Value>>,
    /// How many effects earlier steps had: requests, then messages.
    told: Mutex<(usize, usize)>,
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &PathBuf) -> Value {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The names of the examples, sorted.
pub(super) fn names() -> Vec<String> {
    let entries = fs::read_dir(root().join("../docs/examples")).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.filter(|path| path.extension().is_some_and(|end| end == "json"));
    let mut names: Vec<String> = files.map(|path| path.file_stem().unwrap().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

pub(super) fn example(name: &str) -> Value {
    read(&root().join(format!("../docs/examples/{name}.json")))
}

/// The steps of an example's test, with days for `@day+20` and seconds since 1970 for `@seconds-60`.
pub(super) fn script(name: &str) -> Value {
    let mut script = read(&root().join(format!("fixtures/examples/{name}.json")));
    with_days(&mut script);
    script
}

fn with_days(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Some(days) = text.strip_prefix("@day").and_then(|days| days.parse::<i64>().ok()) {
                let at = Timestamp::from_millis(Timestamp::now().as_millis() + days * 86_400_000).to_string();
                at[..10].clone_into(text);
            } else if let Some(seconds) = text.strip_prefix("@seconds").and_then(|seconds| seconds.parse::<i64>().ok())
            {
                *value = json!(Timestamp::now().as_seconds() + seconds);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(with_days),
        Value::Object(members) => members.values_mut().for_each(with_days),
        _ => {}
    }
}

/// Every value of this member, at any depth.
fn named<'v>(value: &'v Value, name: &str, found: &mut BTreeSet<&'v str>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| named(item, name, found)),
        Value::Object(members) => {
            found.extend(members.get(name).and_then(Value::as_str));
            members.values().for_each(|member| named(member, name, found));
        }
        _ => {}
    }
}

/// The catalogue's files of the services that a definition uses.
fn files_of(definition: &Value) -> Value {
    let (mut tools, mut services) = (BTreeSet::new(), BTreeSet::new());
    named(definition, "tool", &mut tools);
    named(definition, "source_tool", &mut tools);
    named(definition, "service", &mut services);
    let all = files();
    let uses = |file: &Value| {
        services.contains(file["name"].as_str().unwrap())
            || file["tools"].as_array().unwrap().iter().any(|tool| tools.contains(tool["name"].as_str().unwrap()))
    };
    let used = all.as_object().unwrap().iter().filter(|(_, file)| uses(file));
    used.map(|(name, file)| (name.clone(), file.clone())).collect::<Map<_, _>>().into()
}

async fn answer(State(answers): State<Answers>, Path(tool): Path<String>) -> Response {
    let mut answer = answers.lock().unwrap().get(&tool).cloned().unwrap_or_else(|| json!({}));
    let status = answer.as_object_mut().and_then(|answer| answer.remove("$status")).and_then(|status| status.as_u64());
    let status = StatusCode::from_u16(u16::try_from(status.unwrap_or(200)).unwrap()).unwrap();
    (status, Json(answer)).into_response()
}

impl Stage {
    pub(super) async fn of(definition: &Value, answers: &Value) -> Self {
        let answers: Answers = Arc::new(Mutex::new(answers.as_object().cloned().unwrap_or_default()));
        let server = Server::start(Router::new().route("/{tool}", post(answer)).with_state(answers.clone())).await;
        let open_hosts = vec![server.address.to_string()];
        let world = World::with(Options { open_hosts, ..Options::default() }).await;
        load(&world, &files_of(definition)).await;
        let services = world.process.runs.catalogue.services.all().await.unwrap();
        connect_all(&world, &services).await;
        for mut row in world.aws.rows("service_tools") {
            if row["binding"]["type"] != "built_in" {
                let url = format!("{}/{}", server.url, row["name"].as_str().unwrap());
                row["binding"] = json!({"type": "api_request", "method": "POST", "url": url, "body": "json"});
                world.aws.put("service_tools", &row);
            }
        }
        Self { world, server, answers, hooks: Mutex::default(), told: Mutex::default() }
    }

    /// The definition with the fingerprints of this catalogue.
    pub(super) fn with_fingerprints(&self, mut definition: Value) -> Value {
        for (tool, fingerprint) in definition["fingerprints"].as_object_mut().unwrap() {
            if *fingerprint != "built-in" {
                *fingerprint = self.world.fingerprint(tool).into();
            }
        }
        definition
    }

    /// Makes the hooks that bring the definition's events.
    pub(super) async fn make_hooks(&self, definition: &Value) {
        let (mut own, mut services) = (BTreeSet::new(), BTreeSet::new());
        named(definition, "hook", &mut own);
        let mut config = definition["trigger_config"].clone();
        if definition["trigger_type"] == "polling" || config.get("params").is_some() {
            config = Value::Null;
        }
        named(&config, "service", &mut services);
        named(&definition["actions"], "service", &mut services);
        for service in services.into_iter().filter(|service| *service != "Calls" && *service != "Google Calendar") {
            let hook = hook_of(&self.world, service).await;
            self.hooks.lock().unwrap().insert(service.to_owned(), hook);
        }
        for name in own {
            let hook = self.world.hook(&json!({"service": name})).await;
            self.hooks.lock().unwrap().insert(name.to_owned(), hook);
        }
    }

    pub(super) fn set_answers(&self, answers: &Value) -> Map<String, Value> {
        let mut present = self.answers.lock().unwrap();
        let before = present.clone();
        present.extend(answers.as_object().into_iter().flatten().map(|(tool, answer)| (tool.clone(), answer.clone())));
        before
    }

    pub(super) fn restore(&self, answers: Map<String, Value>) {
        *self.answers.lock().unwrap() = answers;
    }

    /// Lets one thing happen, as often as the second time shows, and carries out the runs.
    pub(super) async fn happens(&self, automation: &Automation, step: &Value) {
        let world = &self.world;
        let id = automation.id.to_string();
        if let Some(data) = step.get("manual") {
            world.start_automation(automation, &data.to_string(), data).await;
        } else if let Some(event) = step["event"].as_str() {
            let (service, event) = event.rsplit_once(' ').unwrap();
            let body = Self::body(step, service, event);
            if let (Some(to), Some(from), Some(text)) =
                (body["To"].as_str(), body["From"].as_str(), body["Body"].as_str())
                && service == "Twilio"
            {
                world.twilio.take_message(to, from, text);
            }
            let hook = self.hooks.lock().unwrap()[service].clone();
            by_hook(world, &hook, service, event, &body).await.expect(200);
        } else if let Some(event) = step["deployed"].as_str() {
            let (service, event) = event.rsplit_once(' ').unwrap();
            let present = self.hooks.lock().unwrap().get("deployed").cloned();
            let hook = match present {
                Some(hook) => hook,
                None => world.pipedream_hook(&id, "whsk_1").await,
            };
            self.hooks.lock().unwrap().insert("deployed".to_owned(), hook.clone());
            let body = Self::body(step, service, event);
            world.deliver_signed(&hook, Signer::Pipedream("whsk_1"), &body).await.expect(200);
        } else if let Some(name) = step["hook"].as_str() {
            let hook = self.hooks.lock().unwrap()[name].clone();
            let signer = Signer::StandardWebhooks(hook["secret"].as_str().unwrap());
            world.deliver_signed(&hook, signer, &step["body"]).await.expect(200);
        } else if let Some(call) = step["call"].as_str() {
            self.call_ends(call, &step["row"], step["done"].as_str()).await;
        } else if step.get("time_comes").is_some() {
            self.time_comes();
        } else if step.get("approve").is_some() || step.get("refuse").is_some() {
            self.decide(step).await;
        } else {
            assert!(step.get("occurs").is_some() || step.get("polls").is_some(), "nobody knows this step: {step}");
            self.occurs().await;
        }
        self.carry_out().await;
    }

    pub(super) async fn carry_out(&self) {
        for _ in 0..50 {
            let Some(batch) = self.world.aws.receive("runs", 30) else { return };
            assert_eq!(self.world.run_loop_batch(batch, AMPLE).await, 0);
        }
    }

    /// The catalogue's example of an event, with the step's changes.
    fn body(step: &Value, service: &str, event: &str) -> Value {
        let (service, like) = step["like"].as_str().map_or((service, event), |like| like.rsplit_once(' ').unwrap());
        let all = files();
        let file = all.as_object().unwrap().values().find(|file| file["name"] == service).unwrap();
        let mut body = file["capabilities"]["webhook_payload_schemas"][like]["example"].clone();
        merge(&mut body, &step["with"]);
        if service == "Stripe" {
            body["type"] = json!(event);
        }
        body
    }

    /// A call with these attributes ends in which this tool did something.
    async fn call_ends(&self, call: &str, attributes: &Value, done: Option<&str>) {
        let world = &self.world;
        if world.aws.row("calls", call).is_none() {
            world.incoming_call(&world.home, call, &phone(1));
            world.aws.change("calls", call, json!({"direction": "inbound"}));
            if !attributes.is_null() {
                world.aws.change("calls", call, attributes.clone());
            }
            if let Some(done) = done {
                let tool = world.create(&ai_sms()).await.expect(201)["id"].as_str().unwrap().to_owned();
                world.aws.change("tools", &tool, json!({"name": done}));
                let (id, organization) = (Uuid::now_v7().to_string(), &world.home.organization_id);
                let row = json!({
                    "id": id, "organization_id": organization, "tool_id": tool, "call_id": call,
                    "organization_call": format!("{organization}#{call}"), "trigger": "conversation",
                    "status": "succeeded", "arguments": {}, "started_at": Timestamp::now(), "duration_ms": 7,
                    "expires_at": Timestamp::now().as_seconds() + 86_400,
                });
                world.aws.put("executions", &row);
            }
        }
        let bearer = format!("Bearer {}", world.options.webhook_bearer.as_ref().unwrap());
        let ended = json!({"message": {"type": "end-of-call-report", "call": {"id": call}}});
        let event = Event::post("/api/vapi/events", &ended).header("authorization", &bearer);
        world.send("calls", &event).await.expect(200);
        assert_eq!(world.run_scheduled_within(60).await, 0);
    }

    fn time_comes(&self) {
        for mut row in self.world.aws.rows("automation_runs").into_iter().filter(|row| row["part"] == "run") {
            if row["status"] == "running" && row["pause"]["until"].is_string() {
                row["pause"]["until"] = json!("2026-01-01T00:00:00.000Z");
                self.world.aws.put("automation_runs", &row);
                let message = json!({"organization_id": row["organization_id"], "run_id": row["id"]});
                self.world.aws.post("runs", &message.to_string());
            }
        }
    }

    /// Decides the one open approval, if there is one.
    async fn decide(&self, step: &Value) {
        let Some(asked) = self.world.asked().await.pop() else { return };
        let (verb, body) = match step.get("refuse") {
            Some(reason) => ("refuse", json!({"reason": reason})),
            None => ("approve", Value::Null),
        };
        let path = format!("/{}/{verb}", asked["id"].as_str().unwrap());
        self.world.approvals("POST", &path, &body).await.expect(200);
    }

    /// The next occurrence comes, and its message twice.
    async fn occurs(&self) {
        let ages = Timestamp::now().plus(Duration::from_secs(100 * 366 * 24 * 3_600));
        self.world.aws.fire_schedules(ages);
        let messages = self.world.aws.messages("scheduled");
        assert_eq!(self.world.run_scheduled_within(900).await, 0);
        for message in messages {
            self.world.aws.post("scheduled", &message.to_string());
        }
        assert_eq!(self.world.run_scheduled().await, 0);
    }

    /// The effects since the last look: `{tool: arguments}` of the tools with an effect, then `{"sms", "to"}`.
    pub(super) fn effects(&self) -> Vec<Value> {
        let rows = self.world.aws.rows("service_tools");
        let acts = |tool: &str| rows.iter().any(|row| row["name"] == tool && row["effect"] == true);
        let mut told = self.told.lock().unwrap();
        let (seen, messages) = (self.server.seen(), self.world.twilio.messages());
        let requests = seen.iter().skip(told.0).filter_map(|request| {
            let tool = request.target.trim_start_matches('/');
            acts(tool).then(|| json!({tool: serde_json::from_str::<Value>(&request.body).unwrap_or_default()}))
        });
        let texts = messages.iter().skip(told.1).map(|message| json!({"sms": message.body, "to": message.to}));
        let effects = requests.chain(texts).collect();
        *told = (seen.len(), messages.len());
        effects
    }
}

fn merge(value: &mut Value, changes: &Value) {
    match (value, changes) {
        (Value::Object(members), Value::Object(changes)) => {
            for (name, change) in changes {
                merge(members.entry(name.clone()).or_insert(Value::Null), change);
            }
        }
        (_, Value::Null) => {}
        (value, change) => *value = change.clone(),
    }
}
