//! Functions whose programs run in processes of their own, as on Lambda.

use std::{
    collections::{BTreeMap, VecDeque},
    ffi::OsString,
    future,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use axum::body::Bytes;
use futures_util::future::BoxFuture;
use local::lambda::{self, Answer, Configuration, Lambda, Launch, Log};
use serde_json::Value;
use tokio::{process::Command, task::JoinHandle};

/// Output lines that are kept for an error message.
const KEPT: usize = 20;

/// A function with its processes. Dropping it ends them. Needs a runtime of tokio.
pub struct Function {
    pub lambda: Lambda,
    output: Arc<Mutex<VecDeque<String>>>,
    /// The ids of all processes so far.
    started: Arc<Mutex<Vec<u32>>>,
}

impl Function {
    /// `program` runs with its arguments, and with only `environment` and Lambda's own variables.
    ///
    /// # Panics
    /// If no port can be listened on.
    pub fn start(
        program: &std::process::Command,
        environment: BTreeMap<&'static str, String>,
        configuration: Configuration,
    ) -> Self {
        let output = Arc::<Mutex<VecDeque<String>>>::default();
        let kept = Arc::clone(&output);
        let log: Log = Arc::new(move |line| {
            let mut kept = kept.lock().unwrap();
            kept.push_back(line.to_owned());
            if kept.len() > KEPT {
                kept.pop_front();
            }
        });
        let started = Arc::default();
        let launched = Program {
            path: Path::new(program.get_program()).to_owned(),
            arguments: program.get_args().map(ToOwned::to_owned).collect(),
            environment,
            configuration,
            log: Arc::clone(&log),
            started: Arc::clone(&started),
        };
        let configuration = launched.configuration.clone();
        let lambda = Lambda::start(&configuration, Box::new(launched), log).expect("a free port");
        Self { lambda, output, started }
    }

    /// The answer to an event; `None` if the function failed.
    pub async fn invoke(&self, event: &Value) -> Option<Answer> {
        self.lambda.invoke(Bytes::from(event.to_string()), lambda::trace()).await
    }

    /// The whole answer as JSON; `None` if the function failed.
    pub async fn ask(&self, event: &Value) -> Option<Value> {
        let answer = self.invoke(event).await?.whole().await?;
        serde_json::from_slice(&answer).ok()
    }

    /// The last lines of its output.
    pub fn said(&self) -> String {
        self.output.lock().unwrap().iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }

    /// The id of its newest process.
    pub fn newest_process(&self) -> Option<u32> {
        self.started.lock().unwrap().last().copied()
    }

    /// The number of processes that it has started.
    pub fn cold_starts(&self) -> usize {
        self.started.lock().unwrap().len()
    }
}

struct Program {
    path: PathBuf,
    arguments: Vec<OsString>,
    environment: BTreeMap<&'static str, String>,
    configuration: Configuration,
    log: Log,
    started: Arc<Mutex<Vec<u32>>>,
}

impl Launch for Program {
    fn launch(&self, runtime_api: String) -> BoxFuture<'_, Result<JoinHandle<String>, String>> {
        let mut command = Command::new(&self.path);
        command.args(&self.arguments).env_clear().envs(&self.environment);
        lambda::as_lambda(&mut command, &self.configuration, &runtime_api);
        let started = lambda::spawn(command).map(|child| {
            self.started.lock().unwrap().extend(child.id());
            lambda::follow(child, Arc::clone(&self.log))
        });
        let started = started.map_err(|error| format!("{} does not start: {error}", self.path.display()));
        Box::pin(future::ready(started))
    }
}
