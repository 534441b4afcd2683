//! The system under load: a world, its functions as processes, and the queues' deliveries.

use std::{
    collections::{BTreeMap, HashMap},
    path::PathBuf,
    process::Command,
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use axum::{
    Json, Router,
    extract::{Path, State},
    routing::any,
};
use serde_json::{Value, json};
use tests::{
    Options, World,
    functions::Function,
    lambda::{Answer, Answers, Configuration},
    standins::{
        Standin,
        llm::{self, Llm},
    },
};
use tokio::{
    net::TcpListener,
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinHandle,
    time::sleep,
};

/// The functions under load.
pub(crate) const FUNCTIONS: [&str; 7] =
    ["execute", "call-start", "run-tool", "trigger", "run-loop", "schedule", "stream"];
/// Queue, function, messages of a batch and batches at the same time, as in `infra/template.yaml`.
const SOURCES: [(&str, &str, usize, usize); 4] = [
    ("start-tools", "run-tool", 10, 8),
    ("executions", "run-tool", 10, 12),
    ("runs", "run-loop", 3, 15),
    ("scheduled", "schedule", 5, 8),
];
/// Processes of one function. On Lambda the account's concurrent executions are the bound; further requests wait here.
const MOST_PROCESSES: usize = 100;
const POLL: Duration = Duration::from_millis(5);
/// How long the queues may take to become empty.
const PATIENCE: Duration = Duration::from_secs(120);
/// In seconds. Only the message for a successor of a run's process waits longer.
const LONG_DELAY: i64 = 60;
/// Key that [`World::model_at`] gives to the model.
const MODEL_KEY: &str = "paced";

/// A function whose requests wait while it has no process left.
struct Bounded {
    function: Function,
    processes: Arc<Semaphore>,
}

impl Bounded {
    async fn process(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.processes).acquire_owned().await.ok()
    }
}

/// Books that record each POST with its time.
#[derive(Clone, Default)]
pub(crate) struct Ledger(Arc<Mutex<HashMap<String, Vec<Instant>>>>);

impl Ledger {
    pub(crate) fn entries(&self) -> HashMap<String, Vec<Instant>> {
        self.0.lock().map(|entries| entries.clone()).unwrap_or_default()
    }
}

pub(crate) struct Stack {
    pub(crate) world: World,
    pub(crate) ledger: Ledger,
    /// A model that answers the chat without a script.
    _model: Standin<Llm>,
    functions: BTreeMap<&'static str, Bounded>,
    /// Batches of messages on their way.
    batches: AtomicUsize,
    /// Messages with a long delay are due, too.
    hastens: AtomicBool,
    tasks: Mutex<Vec<JoinHandle<()>>>,
}

impl Stack {
    pub(crate) async fn start(programs: &BTreeMap<String, PathBuf>) -> crate::Result<Arc<Self>> {
        let ledger = Ledger::default();
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let books = Router::new().route("/ledger/{entry}", any(post)).with_state(ledger.clone());
        let books = tokio::spawn(async move {
            let _ended = axum::serve(listener, books).await;
        });
        let model = llm::Options { api_key: MODEL_KEY.to_owned(), plain: true, ..llm::Options::default() };
        let model = llm::start("127.0.0.1:0".parse()?, model)?;
        let open_hosts = vec![address.to_string(), model.address().to_string()];
        let mut world = World::with(Options { open_hosts, ..Options::default() }).await;
        world.model_at(&model.url);
        world.ledger_service(&format!("http://{address}"));
        let budgets = json!({"runs_per_hour": 1_000_000_000, "executions_per_hour": 1_000_000_000});
        for tenant in [&world.home, &world.other] {
            world.aws.change("organizations", &tenant.organization_id, json!({"budgets": budgets}));
        }
        let mut functions = BTreeMap::new();
        for name in FUNCTIONS {
            let program = programs.get(name).ok_or_else(|| format!("there is no program {name}"))?;
            functions.insert(name, bounded(&world, name, program));
        }
        let (batches, hastens, tasks) = (AtomicUsize::new(0), AtomicBool::new(false), Mutex::new(vec![books]));
        let stack = Arc::new(Self { world, ledger, _model: model, functions, batches, hastens, tasks });
        for source in SOURCES {
            let delivery = tokio::spawn(deliver(Arc::downgrade(&stack), source));
            if let Ok(mut tasks) = stack.tasks.lock() {
                tasks.push(delivery);
            }
        }
        Ok(stack)
    }

    fn function(&self, name: &str) -> crate::Result<&Bounded> {
        Ok(self.functions.get(name).ok_or_else(|| format!("no function {name} is under load"))?)
    }

    /// The whole answer of a function; `None` if it failed.
    pub(crate) async fn ask(&self, function: &str, event: &Value) -> Option<Value> {
        let bounded = self.function(function).ok()?;
        let _process = bounded.process().await?;
        let answer = bounded.function.ask(event).await;
        if answer.is_none() {
            println!("{function} failed; its log ends with:\n{}", bounded.function.said());
        }
        answer
    }

    /// The answer of the streaming function as it comes, with the permission for its process.
    pub(crate) async fn stream(&self, event: &Value) -> Option<(Answer, OwnedSemaphorePermit)> {
        let bounded = self.function("stream").ok()?;
        let process = bounded.process().await?;
        Some((bounded.function.invoke(event).await?, process))
    }

    pub(crate) fn cold_starts(&self, function: &str) -> usize {
        self.function(function).map_or(0, |bounded| bounded.function.cold_starts())
    }

    /// Waits until no message waits and none is being handled; tells what is left then, or after a while. The messages for
    /// successors of dead processes come at once, when nothing else is left.
    pub(crate) async fn settled(&self) -> Vec<String> {
        let until = Instant::now() + PATIENCE;
        let left = self.left(until).await;
        self.hastens.store(false, Ordering::SeqCst);
        left
    }

    async fn left(&self, until: Instant) -> Vec<String> {
        loop {
            let busy = self.batches.load(Ordering::SeqCst) > 0;
            if !busy && SOURCES.iter().all(|(queue, ..)| !self.world.aws.has_shorter(queue, LONG_DELAY)) {
                self.hastens.store(true, Ordering::SeqCst);
            }
            let waiting = self.world.aws.waiting();
            let over = !busy && waiting.iter().all(|(queue, _)| queue.ends_with("-dead"));
            if over || Instant::now() > until {
                let left = waiting.into_iter().map(|(queue, messages)| format!("{queue} has {messages} messages"));
                return left.chain(busy.then(|| "a message is still being handled".to_owned())).collect();
            }
            sleep(POLL * 10).await;
        }
    }

    /// Forgets the logs of requests, which would otherwise only grow.
    pub(crate) fn forget(&self) {
        self.world.aws.clear_operations();
        self.world.vapi.clear_requests();
        self.world.twilio.clear_requests();
        self.world.twilio.clear_messages();
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        for task in self.tasks.lock().iter().flat_map(|tasks| tasks.iter()) {
            task.abort();
        }
    }
}

fn bounded(world: &World, name: &'static str, program: &PathBuf) -> Bounded {
    let mut environment = world.variables();
    environment.extend([
        ("AWS_REGION", "eu-central-1".to_owned()),
        ("AWS_ACCESS_KEY_ID", "bench".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "bench".to_owned()),
        ("AWS_SESSION_TOKEN", "bench".to_owned()),
    ]);
    let configuration = Configuration {
        name: format!("switchboard-{name}"),
        arn: format!("arn:aws:lambda:eu-central-1:123456789012:function:switchboard-{name}"),
        memory: 256,
        time_out: world.template.time_out(name),
        answers: if name == "stream" { Answers::Streamed } else { Answers::Whole },
    };
    let function = Function::start(&Command::new(program), environment, configuration);
    Bounded { function, processes: Arc::new(Semaphore::new(MOST_PROCESSES)) }
}

async fn post(State(ledger): State<Ledger>, Path(entry): Path<String>) -> Json<Value> {
    if let Ok(mut entries) = ledger.0.lock() {
        entries.entry(entry).or_default().push(Instant::now());
    }
    Json(json!({"done": true}))
}

/// Delivers a queue's messages to its function, as Lambda's event source mapping does, while the stack exists.
async fn deliver(stack: Weak<Stack>, source: (&'static str, &'static str, usize, usize)) {
    let (queue, function, batch, at_once) = source;
    let mapping = Arc::new(Semaphore::new(at_once));
    while let (Ok(permit), Some(stack)) = (Arc::clone(&mapping).acquire_owned().await, stack.upgrade()) {
        stack.batches.fetch_add(1, Ordering::SeqCst);
        let hastened = stack.hastens.load(Ordering::SeqCst).then_some(LONG_DELAY);
        let Some(received) = stack.world.aws.receive_now(queue, batch, hastened) else {
            stack.batches.fetch_sub(1, Ordering::SeqCst);
            drop((permit, stack));
            sleep(POLL).await;
            continue;
        };
        tokio::spawn(async move {
            match stack.ask(function, &received.event()).await {
                Some(report) if report["batchItemFailures"].is_array() => drop(received.answered(&report)),
                _ => received.failed(),
            }
            stack.batches.fetch_sub(1, Ordering::SeqCst);
            drop(permit);
        });
    }
}
