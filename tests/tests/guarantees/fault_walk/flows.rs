//! The flows: each asks for one effect, and says how it is counted and where its record stands.

use std::{collections::BTreeSet, sync::Mutex, time::Duration};

use serde_json::{Map, Value, json};
use shared::models::{Binding, RunId};
use tests::{
    Answer, World, ai_sms,
    automation::{AMPLE, RunSpec, begin, calls},
    phone, preemptive_sms, sms_without_call,
    standins::{llm::Turn, twilio::IncomingCall, vapi::ToolCall},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    /// A tool sends an SMS during a call.
    ToolOfACall,
    /// A tool of a call sends an SMS in the background, and the call is told.
    BackgroundTool,
    /// A call comes in, and a tool sends an SMS at its start.
    CallStart,
    /// An event starts an automation that posts a message.
    Event,
    /// As `Event`, with an approval before the message.
    Approval,
    /// An event starts an automation that places a call.
    PlacedCall,
    /// A person asks the assistant for an SMS.
    Chat,
    /// An agent's run sends an SMS.
    AgentRun,
}

/// The claim of an answer about the effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    /// Done, or accepted to be done.
    Done,
    Failed,
    /// The outcome is not known, or is still to come.
    Unclear,
    /// No answer.
    Nothing,
}

/// The claim of the stored record about the effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Record {
    Succeeded,
    Failed,
    /// The record says that the outcome is not known.
    Unclear,
    /// It says that something is still to come.
    Open,
    /// It ended, without a claim about the effect.
    Ended,
    Missing,
}

/// A repetition waits as long for a killed function that seems to be at work.
const REPETITION: Duration = Duration::from_secs(4);

pub(super) struct Scene {
    pub flow: Flow,
    pub world: World,
    tool: Value,
    hook: Value,
    automation: String,
    /// The number of the play; its effect is recognized by it.
    number: u32,
    call: ToolCall,
    incoming: IncomingCall,
    run: Option<RunId>,
    /// The messages that a function has received and not answered. SQS delivers them again.
    received: Mutex<Vec<(&'static str, String)>>,
    /// Ids of the executions and runs of earlier plays.
    earlier: BTreeSet<String>,
}

impl Flow {
    /// Whether an accepted request must have a record.
    pub(super) const fn is_certain(self) -> bool {
        matches!(self, Self::BackgroundTool | Self::Event | Self::Approval | Self::PlacedCall)
    }

    pub(super) async fn scene(self) -> Scene {
        let world = World::start().await;
        let (mut tool, mut hook, mut automation) = (Value::Null, Value::Null, String::new());
        match self {
            Self::ToolOfACall => tool = world.attached(&ai_sms()).await,
            Self::BackgroundTool => {
                let mut config = ai_sms();
                config["async"] = json!(true);
                tool = world.attached(&config).await;
            }
            Self::CallStart => tool = world.attached(&preemptive_sms()).await,
            Self::Chat | Self::AgentRun => tool = world.tool(&sms_without_call(&world.home)).await,
            Self::Event | Self::Approval => {
                world.slack_service();
                slack_at_pipedream(&world);
                let mut definition = world.urgent_messages();
                definition["actions"][0]["parameters"] = json!({"conversation": "{{team}}", "text": "{{event.text}}"});
                if self == Self::Approval {
                    definition["actions"][0]["approval"] = json!({"expires_in_minutes": 30, "reason": "It is public."});
                }
                automation = world.active(&definition).await;
                hook = world.slack_hook().await;
            }
            Self::PlacedCall => {
                world.slack_service();
                tool = placing(&world).await;
                let mut definition = world.urgent_messages();
                definition["actions"] =
                    json!([{"id": "call", "tool": tool["name"], "parameters": {"to": "{{event.user}}"}}]);
                definition["fingerprints"] = json!({tool["name"].as_str().unwrap(): format!("v{}", tool["version"])});
                automation = world.active(&definition).await;
                hook = world.slack_hook().await;
            }
        }
        let (call, incoming) = (ToolCall::default(), world.caller(&phone(0)));
        Scene {
            flow: self,
            world,
            tool,
            hook,
            automation,
            number: 0,
            call,
            incoming,
            run: None,
            received: Mutex::default(),
            earlier: BTreeSet::new(),
        }
    }
}

/// `slack_post_message` as a component of Pipedream.
fn slack_at_pipedream(world: &World) {
    let binding = Binding::Pipedream {
        component: "slack-send-message".to_owned(),
        version: "0.1.3".to_owned(),
        app_prop: "slack".to_owned(),
        fixed: Map::new(),
    };
    let parameters = json!({
        "type": "object", "properties": {"conversation": {"type": "string"}, "text": {"type": "string"}},
        "required": ["conversation", "text"], "additionalProperties": false,
    });
    world.service_tool_with("Slack", "slack_post_message", &json!({"parameters": parameters, "binding": binding}));
}

async fn placing(world: &World) -> Value {
    let at_vapi = world.vapi.set_number(&world.home.phone_number, &world.home.assistant_id).unwrap();
    world.aws.change("phone_numbers", &world.home.phone_number_id, json!({"vapi_phone_number_id": at_vapi}));
    let config = json!({
        "type": "place_call", "label": "Call back", "phone_number_id": world.home.phone_number_id,
        "to": {"mode": "ai", "prompt": "The number to call"}, "hours": {"from": "00:00", "until": "24:00"},
    });
    world.tool(&config).await
}

impl Scene {
    /// Prepares the next play.
    pub(super) async fn begin(&mut self) {
        self.number += 1;
        self.earlier = self.ids();
        self.incoming = self.world.caller(&phone(self.number));
        match self.flow {
            Flow::ToolOfACall | Flow::BackgroundTool => {
                self.call = self.world.call(&self.tool, json!({"text": self.text()}));
            }
            Flow::Chat => {
                let call = json!({"tool": self.tool["name"], "reason": "asked", "arguments": {"text": self.text()}});
                self.world.llm.script([Turn::text(&call.to_string()), Turn::text("I have looked after it.")]);
            }
            Flow::AgentRun => {
                let call = format!("return {}({:?});", self.tool["name"].as_str().unwrap(), self.text());
                let answer = r#"{"opens": "8:00"}"#.to_owned();
                // An answer that is lost is asked for once more.
                let turns = [calls(&call), calls("return finalResponse();"), answer.clone(), answer.clone(), answer];
                self.world.llm.script(turns.iter().map(|turn| Turn::text(turn)));
                let spec = RunSpec { built_in: Vec::new(), tools: vec![self.tool.clone()], ..RunSpec::default() };
                self.run = Some(begin(&self.world, spec).await);
            }
            Flow::Event | Flow::Approval | Flow::PlacedCall => self.resume().await,
            Flow::CallStart => {}
        }
    }

    /// A person activates an automation that was paused because its runs failed.
    async fn resume(&self) {
        let row = self.world.aws.row("automations", &self.automation);
        if row.is_none_or(|row| row["status"] != "active") {
            let path = format!("/{}/activate", self.automation);
            self.world.automation("POST", &path, &json!({"version": 1})).await.expect(200);
        }
    }

    fn text(&self) -> String {
        format!("Urgent: play {} of the walk.", self.number)
    }

    /// One request from outside, and the work that it leaves.
    pub(super) async fn play(&self) -> Told {
        let told = self.ask(Duration::from_secs(28)).await;
        self.work().await;
        told
    }

    /// What the sender does after this answer: VAPI and services send again; a person asks nothing twice.
    pub(super) async fn repeated(&self, told: Told) -> Told {
        match self.flow {
            Flow::ToolOfACall | Flow::BackgroundTool => self.ask(REPETITION).await,
            Flow::Event | Flow::Approval | Flow::PlacedCall if told != Told::Done => self.ask(REPETITION).await,
            _ => told,
        }
    }

    async fn ask(&self, within: Duration) -> Told {
        let world = &self.world;
        match self.flow {
            Flow::ToolOfACall | Flow::BackgroundTool => {
                of_tool(&world.send("execute", &world.vapi_event(&self.call).within(within)).await)
            }
            Flow::CallStart => {
                let answer = world.send("call-start", &world.incoming(&self.incoming)).await;
                assert_ne!(answer.status, 500, "{}", answer.body);
                Told::Unclear
            }
            Flow::Event | Flow::Approval | Flow::PlacedCall => {
                let mut body = tests::slack_message(&format!("Ev{}", self.number), &self.text());
                body["event"]["user"] = json!(phone(self.number));
                let signer = tests::webhooks::Signer::Slack(tests::SLACK_SECRET);
                let answer = world.deliver_signed(&self.hook, signer, &body).await;
                if answer.status < 300 { Told::Done } else { Told::Unclear }
            }
            Flow::Chat => {
                let answer = world.chat_with(&json!({"message": "Send it.", "thread_id": self.thread()})).await;
                match answer.body["metadata"]["tools"][0]["outcome"].as_str() {
                    Some("succeeded") => Told::Done,
                    Some("failed") => Told::Failed,
                    _ => Told::Unclear,
                }
            }
            Flow::AgentRun => Told::Unclear,
        }
    }

    fn thread(&self) -> String {
        format!("walk-{}", self.number)
    }

    async fn work(&self) {
        match self.flow {
            Flow::ToolOfACall | Flow::Chat => {}
            Flow::BackgroundTool => self.deliver("executions", 30).await,
            Flow::CallStart => self.deliver("start-tools", 30).await,
            Flow::Event | Flow::PlacedCall | Flow::AgentRun => self.deliver("runs", 0).await,
            Flow::Approval => {
                self.deliver("runs", 0).await;
                self.approve().await;
                self.deliver("runs", 0).await;
            }
        }
    }

    /// Delivers the messages that are due within these seconds.
    pub(super) async fn deliver(&self, queue: &'static str, seconds: i64) {
        while let Some(batch) = self.world.aws.receive(queue, seconds) {
            let records = batch.event()["Records"].as_array().unwrap().clone();
            let bodies = records.iter().map(|record| (queue, record["body"].as_str().unwrap().to_owned()));
            self.received.lock().unwrap().extend(bodies);
            match queue {
                "start-tools" | "executions" => self.world.run_batch(batch).await,
                "runs" => self.world.run_loop_batch(batch, AMPLE).await,
                _ => self.world.run_scheduled_batch(batch).await,
            };
            self.received.lock().unwrap().clear();
        }
    }

    /// SQS delivers the messages of a killed function again.
    pub(super) fn put_back(&self) {
        for (queue, body) in self.received.lock().unwrap().drain(..) {
            self.world.aws.post(queue, &body);
        }
    }

    /// A person approves everything, and tries again if that fails.
    pub(super) async fn approve(&self) {
        if self.flow != Flow::Approval {
            return;
        }
        let list = async || self.world.approvals("GET", "?status=pending", &Value::Null).await;
        let mut pending = list().await;
        if pending.status >= 500 {
            pending = list().await;
        }
        for asked in pending.expect(200)["items"].as_array().unwrap() {
            let path = format!("/{}/approve", asked["id"].as_str().unwrap());
            for _ in 0..2 {
                let answer = self.world.approvals("POST", &path, &Value::Null).await;
                if answer.status < 500 {
                    break;
                }
            }
        }
    }

    /// How often the effect of this play happened.
    pub(super) fn effects(&self) -> usize {
        let (text, person) = (self.text(), phone(self.number));
        let world = &self.world;
        match self.flow {
            Flow::ToolOfACall | Flow::BackgroundTool | Flow::Chat | Flow::AgentRun => {
                world.twilio.messages().iter().filter(|message| message.body == text).count()
            }
            Flow::CallStart => world.twilio.messages().iter().filter(|message| message.to == person).count(),
            Flow::Event | Flow::Approval => {
                let runs = world.pipedream.runs().into_iter();
                runs.filter(|run| run.configured_props.to_string().contains(&text)).count()
            }
            Flow::PlacedCall => {
                world.vapi.calls().iter().filter(|call| call["customer"]["number"] == person.as_str()).count()
            }
        }
    }

    fn ids(&self) -> BTreeSet<String> {
        let runs = self.world.aws.rows("automation_runs").into_iter().filter(|row| row["part"] == "run");
        let rows = self.world.executions().into_iter().chain(runs);
        rows.map(|row| row["id"].as_str().unwrap().to_owned()).collect()
    }

    /// The claim of the rows that are new since the beginning of the play.
    pub(super) async fn record(&self) -> Record {
        let world = &self.world;
        let new: Vec<String> = self.ids().difference(&self.earlier).cloned().collect();
        if let Some(run) = self.run {
            let run = tests::automation::whole(world, run).await.run;
            return if run.status.is_over() { Record::Ended } else { Record::Open };
        }
        let mut claims = Vec::new();
        for id in new {
            let status = if let Some(row) = world.executions().into_iter().find(|row| row["id"] == id.as_str()) {
                row["status"].clone()
            } else {
                let run = world.run(&id).await.expect(200);
                let goes_on = ["queued", "running", "waiting_for_approval"].map(|status| run["status"] == status);
                if goes_on.contains(&true) { json!("queued") } else { run["actions"][0]["status"].clone() }
            };
            claims.push(match status.as_str() {
                Some("succeeded") => Record::Succeeded,
                Some("failed" | "not_sent") => Record::Failed,
                Some("queued") => Record::Open,
                // The effect is that of another row, or this is its only trace.
                Some("replayed") => Record::Ended,
                _ => Record::Unclear,
            });
        }
        for claim in [Record::Open, Record::Succeeded, Record::Unclear, Record::Failed, Record::Ended] {
            if claims.contains(&claim) {
                return claim;
            }
        }
        Record::Missing
    }
}

fn is_open(sentence: &str) -> bool {
    sentence.contains("not known") || sentence.contains("still being carried out")
}

fn of_tool(answer: &Answer) -> Told {
    match (&answer.body["success"], answer.body["error"].as_str()) {
        (Value::Bool(true), _) => Told::Done,
        (_, Some(sentence)) if answer.status == 200 && !is_open(sentence) => Told::Failed,
        _ => Told::Unclear,
    }
}
