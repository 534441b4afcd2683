//! The same steps on the real tables and VAPI's stand-in, and then the real `settle`.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Value, json};
use shared::{
    Deadline,
    clients::{
        self, Vapi,
        vapi::{Account, AssistantModel},
    },
    models::{Agent, AgentId, Change, Intent, OrganizationId, Timestamp, Tool, ToolAttachment},
    store::{Agents, Database, Intents, Lease, ToolAttachments, Tools},
};
use tests::{
    PLATFORM_KEY, World,
    aws::{TABLE_PREFIX, sdk_config},
    vapi_differences::differences,
};

use super::{Action, Changes, JOBS, Job, Phase, State, WORKERS, Written};
use crate::walks::Walk;

/// For each pair of jobs.
const WALKS: u64 = 12;
const LONGEST: usize = 24;
const OWNERSHIP: Duration = Duration::from_secs(60);

struct Real {
    world: World,
    organization: OrganizationId,
    agent: AgentId,
    tools: Vec<Tool>,
    agents: Agents,
    attachments: ToolAttachments,
    intents: Intents,
    vapi: Vapi,
    account: Account,
}

#[derive(Default)]
struct Process {
    held: Option<(Agent, Lease)>,
    model: Option<AssistantModel>,
}

struct Taking<'a> {
    real: &'a Real,
    changes: &'a Changes,
    processes: [Process; WORKERS + 1],
    intents: [Option<Intent>; WORKERS],
    holders: BTreeMap<String, usize>,
}

/// What the model and the systems must agree in: the lease, VAPI, the rows, the intents.
type Seen = (Option<(usize, bool)>, u8, u8, [Option<bool>; WORKERS]);

fn soon() -> Deadline {
    Deadline::after(Duration::from_secs(20))
}

impl Real {
    async fn start() -> Self {
        let world = World::start().await;
        let organization = world.home.organization_id.parse().unwrap();
        let database = Database::connect(&sdk_config(&world.aws.url), TABLE_PREFIX);
        let mut tools = Vec::new();
        for label in ["The first", "The second"] {
            let mut body = tests::ai_sms();
            body["label"] = json!(label);
            let tool = world.tool(&body).await["id"].as_str().unwrap().parse().unwrap();
            tools.push(Tools::new(&database).get(organization, tool).await.unwrap());
        }
        Self {
            organization,
            agent: world.home.agent_id.parse().unwrap(),
            tools,
            agents: Agents::new(&database),
            attachments: ToolAttachments::new(&database),
            intents: Intents::new(&database),
            vapi: Vapi::new(clients::http_client().unwrap(), world.vapi.url.clone()),
            account: Account::new(PLATFORM_KEY.into(), None),
            world,
        }
    }

    fn tool(&self, bit: u8) -> &Tool {
        &self.tools[usize::from(bit >> 1)]
    }

    fn bits<'t>(&self, ids: impl Iterator<Item = &'t str>, id: impl Fn(&Tool) -> String) -> u8 {
        let bit = |wanted: &str| self.tools.iter().position(|tool| id(tool) == wanted).map_or(0, |place| 1 << place);
        ids.map(bit).sum()
    }

    fn vapi(&self) -> u8 {
        let ids = self.world.tool_ids();
        self.bits(ids.iter().map(String::as_str), |tool| tool.external_tool_id.clone().unwrap())
    }

    fn rows(&self) -> u8 {
        let rows = self.world.aws.rows("agent_tools");
        self.bits(rows.iter().map(|row| row["tool_id"].as_str().unwrap()), |tool| tool.id.to_string())
    }

    /// Makes just these tools attached, by the routes.
    async fn reset(&self, attached: u8) {
        let at_once = Deadline::after(Duration::ZERO);
        let (_, lease) = self.agents.acquire(self.organization, self.agent, at_once).await.expect("it is free");
        lease.release().await.expect("the table answers");
        let rows = self.rows();
        for bit in [1, 2] {
            let id = self.tool(bit).id.to_string();
            match (attached & bit != 0, rows & bit != 0) {
                (true, false) => drop(self.world.attach(&id).await.expect(201)),
                (false, true) => drop(self.world.detach(&id).await),
                _ => {}
            }
        }
    }

    /// The first difference between a walk and the systems.
    async fn differs(&self, changes: &Changes, walk: &Walk<Changes>) -> Option<String> {
        self.reset(changes.attached()).await;
        let mut taking = Taking {
            real: self,
            changes,
            processes: Default::default(),
            intents: Default::default(),
            holders: BTreeMap::new(),
        };
        let mut before = &walk.start;
        let mut difference = None;
        for (number, (action, after)) in walk.steps.iter().enumerate() {
            taking.take(*action, before, after).await;
            let lease = after.lease.map(|lease| (lease.holder, lease.over));
            let (seen, expected) = (taking.seen(), (lease, after.vapi, after.rows, after.intents));
            if seen != expected {
                let taken: Vec<&Action> = walk.steps[..=number].iter().map(|(action, _)| action).collect();
                difference = Some(format!("{taken:?}: the systems have {seen:?}, the model {expected:?}"));
                break;
            }
            before = after;
        }
        // Every process dies, and the real code settles what it left, from whichever state.
        drop(taking);
        self.world.later();
        self.world.settle().await;
        let left = differences(&self.world);
        if difference.is_none() && !left.is_empty() {
            difference = Some(format!("{:?}: settling leaves {left:?}", walk.steps.last()));
        }
        difference
    }
}

impl Taking<'_> {
    fn seen(&self) -> Seen {
        let aws = &self.real.world.aws;
        let agent = aws.row("agents", &self.real.agent.to_string()).expect("the agent");
        let now = Timestamp::now().as_millis();
        let lease = agent["lease_token"].as_str().map(|token| {
            let holder = self.holders.get(token).copied().expect("a process acquired it");
            (holder, agent["lease_until"].as_i64().unwrap() < now)
        });
        let rows = aws.rows("intents");
        let over = |row: &Value| row["owner_until"].as_i64().unwrap() < now;
        let intents = [0, 1].map(|worker: usize| {
            let id = self.intents[worker].as_ref()?.id.to_string();
            rows.iter().find(|row| row["id"] == id.as_str()).map(over)
        });
        (lease, self.real.vapi(), self.real.rows(), intents)
    }

    fn intent(&self, worker: usize) -> &Intent {
        self.intents[worker].as_ref().expect("the change has begun")
    }

    async fn take(&mut self, action: Action, before: &State, after: &State) {
        let real = self.real;
        match action {
            Action::Acquire(process) => {
                let at_once = Deadline::after(Duration::ZERO);
                let acquired = real.agents.acquire(real.organization, real.agent, at_once).await.expect("it is free");
                self.processes[process].held = Some(acquired);
                let agent = real.world.aws.row("agents", &real.agent.to_string()).expect("the agent");
                self.holders.insert(agent["lease_token"].as_str().unwrap().to_owned(), process);
            }
            Action::Open(worker) => {
                let tool = real.tool(self.changes.jobs[worker].tool());
                let (agent_id, tool_id) = (real.agent, tool.id);
                let external_tool_id = tool.external_tool_id.clone().unwrap();
                let change = match self.changes.jobs[worker] {
                    Job::Attach(_) => Change::AttachTool { agent_id, tool_id, external_tool_id },
                    Job::Detach(_) => Change::DetachTool { agent_id, tool_id, external_tool_id },
                };
                let intent = Intent::new(real.organization, change, OWNERSHIP);
                real.intents.open(&intent).await.expect("the intent is written");
                self.intents[worker] = Some(intent);
            }
            Action::Read(process) | Action::Compare(process) => {
                let assistant = &real.world.home.assistant_id;
                let read = real.vapi.assistant_model(&real.account, assistant, soon()).await;
                self.processes[process].model = read.expect("VAPI answers");
            }
            Action::Patch(process, written) => {
                let attach = matches!(self.changes.jobs[process], Job::Attach(_));
                self.change_vapi(process, self.changes.jobs[process].tool(), attach, written).await;
            }
            Action::Correct(process, written) => {
                let Phase::Correct { of, wanted, .. } = before.processes[process] else { panic!("{before:?}") };
                self.change_vapi(process, self.changes.jobs[of].tool(), wanted, written).await;
            }
            Action::Commit(worker, written) => {
                if written != Written::Lost(false) {
                    let made = self.commit(worker).await;
                    let expected = after.processes[worker] == Phase::Gone;
                    assert!(written != Written::Yes || made == expected, "the transaction of {worker}: {made}");
                }
            }
            Action::Ask(worker) => {
                let (_, lease) = self.processes[worker].held.as_ref().expect("it held the lease");
                let held = lease.renew().await.expect("the table answers");
                assert_eq!(held, before.is_held_by(worker), "the lease of {worker}");
            }
            Action::TakeOver(worker) => {
                let abandoned = real.intents.abandoned().await.expect("the table answers");
                let intent = abandoned.into_iter().find(|intent| intent.id == self.intent(worker).id);
                let until = Timestamp::now().plus(OWNERSHIP);
                let intent = intent.expect("it is abandoned");
                assert!(real.intents.take_over(&intent, until).await.expect("the table answers"));
                assert!(!real.intents.take_over(&intent, until).await.expect("the table answers"), "only once");
            }
            Action::DeleteRow(process) => {
                let Phase::DeleteRow(of) = before.processes[process] else { panic!("{before:?}") };
                let tool = real.tool(self.changes.jobs[of].tool());
                let row = real.attachments.find(real.organization, real.agent, tool.id).await.expect("a read");
                if let Some(row) = row {
                    let (_, lease) = self.processes[process].held.as_ref().expect("it holds the lease");
                    let _refused = real.attachments.detach(&row, Some(tool), lease, None).await;
                }
            }
            Action::Close(process) => {
                let Phase::Close(of) = before.processes[process] else { panic!("{before:?}") };
                real.intents.close(self.intent(of).id).await.expect("the intent is closed");
            }
            Action::Release(process) => {
                let (_, lease) = self.processes[process].held.take().expect("it held the lease");
                lease.release().await.expect("the table answers");
            }
            Action::Crash(process) => self.processes[process] = Process::default(),
            Action::EndLease => real.world.aws.change("agents", &real.agent.to_string(), json!({"lease_until": 1})),
            Action::EndOwnership(worker) => {
                let id = self.intent(worker).id.to_string();
                real.world.aws.change("intents", &id, json!({"owner_until": 1}));
            }
        }
    }

    async fn change_vapi(&self, process: usize, tool: u8, attach: bool, written: Written) {
        let external = self.real.tool(tool).external_tool_id.as_deref().unwrap();
        let model = self.processes[process].model.as_ref().expect("it read the model");
        let changed = if attach { model.with_tool(external, None) } else { model.without_tool(external) };
        if written != Written::Lost(false) && changed != *model {
            let assistant = &self.real.world.home.assistant_id;
            let set = self.real.vapi.set_assistant_model(&self.real.account, assistant, &changed, soon());
            set.await.expect("VAPI answers");
        }
    }

    async fn commit(&self, worker: usize) -> bool {
        let (real, job, intent) = (self.real, self.changes.jobs[worker], self.intent(worker).id);
        let tool = real.tool(job.tool());
        let (_, lease) = self.processes[worker].held.as_ref().expect("it held the lease");
        let found = real.attachments.find(real.organization, real.agent, tool.id).await.expect("a read");
        let row = || ToolAttachment::new(real.organization, real.agent, tool.id, true);
        match (job, found) {
            (Job::Attach(_), Some(row)) => real.attachments.attach_again(row, lease, intent).await.is_ok(),
            (Job::Attach(_), None) => real.attachments.attach(&row(), tool, lease, Some(intent)).await.is_ok(),
            (Job::Detach(_), found) => {
                let row = found.unwrap_or_else(row);
                real.attachments.detach(&row, Some(tool), lease, Some(intent)).await.is_ok()
            }
        }
    }
}

#[tokio::test]
async fn the_tables_and_vapi_take_the_same_steps() {
    let real = Real::start().await;
    for (number, jobs) in JOBS.into_iter().enumerate() {
        let changes = Changes::of(jobs);
        for seed in 0..WALKS {
            let walk = Walk::new(&changes, seed, 3 + LONGEST * usize::try_from(seed).unwrap() / 12);
            assert_eq!(real.differs(&changes, &walk).await, None, "{jobs:?}, number {number}, seed {seed}");
        }
    }
}
