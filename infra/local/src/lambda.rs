//! Runs a function's program as Lambda does.
//!
//! A process serves one request at a time, is reused while it is idle, and another one starts when none is. A process
//! that exceeds the function's time-out is killed. A function never learns that its client has left.

mod connection;
mod environments;
mod head;
mod process;
mod runtime_api;

use std::{net::TcpListener, sync::Arc, time::Duration};

use axum::{Router, body::Bytes};
use shared::models::Timestamp;
use tokio::{sync::oneshot, task::JoinHandle};
use uuid::Uuid;

pub use environments::{Answer, Launch, Log};
pub use head::Head;
pub use process::{as_lambda, follow, run, spawn};

use crate::{Error, Result, ports};
use connection::Prompt;
use environments::{Environments, Invocation};
use runtime_api::Api;

/// The settings of a function.
#[derive(Debug, Clone, Default)]
pub struct Configuration {
    pub name: String,
    pub arn: String,
    /// In megabytes.
    pub memory: u64,
    /// Of an invocation.
    pub time_out: Duration,
    pub answers: Answers,
}

/// The form of a function's answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Answers {
    /// A head, eight NULs, and the pieces of the body as they come.
    #[default]
    Streamed,
    /// One JSON value.
    Whole,
}

/// A function with its processes. Dropping it ends them.
pub struct Lambda {
    runtime_api: JoinHandle<()>,
    environments: Arc<Environments>,
}

impl std::fmt::Debug for Lambda {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lambda").finish_non_exhaustive()
    }
}

impl Lambda {
    /// Serves the runtime API; processes start with the first invocations.
    ///
    /// # Errors
    /// If no port can be listened on.
    pub fn start(configuration: &Configuration, launch: Box<dyn Launch>, log: Log) -> Result<Self> {
        let failed = || Error::file("listen for the runtime API");
        let listener = ports::listen(0, "the runtime API")?;
        let address = format!("http://{}", listener.local_addr().map_err(failed())?);
        let environments = Environments::new(launch, configuration.time_out, address, log);
        let (arn, answers) = (configuration.arn.as_str().into(), configuration.answers);
        let router = runtime_api::router(Api { environments: Arc::clone(&environments), arn, answers });
        Ok(Self { runtime_api: serve(listener, router).map_err(failed())?, environments })
    }

    /// The answer to an event; `None` if the function failed. The invocation goes on even if its client stops waiting.
    pub async fn invoke(&self, event: Bytes, trace: String) -> Option<Answer> {
        let (client, answer) = oneshot::channel();
        let invocation = Invocation { request_id: Uuid::new_v4().to_string(), event, trace, client };
        let environments = Arc::clone(&self.environments);
        tokio::spawn(async move { environments.invoke(invocation).await });
        answer.await.ok()
    }

    /// Starts a process before there is an event for it.
    pub async fn provision(&self) {
        self.environments.start(None).await;
    }

    /// Waits until every process has asked for its next event; false if there is none, because all have ended.
    pub async fn rest(&self) -> bool {
        self.environments.rest().await
    }

    /// The number of its processes.
    pub fn processes(&self) -> usize {
        self.environments.count()
    }

    /// Ends its processes.
    pub fn end_all(&self) {
        self.environments.end_all();
    }
}

impl Drop for Lambda {
    fn drop(&mut self) {
        self.runtime_api.abort();
        self.end_all();
    }
}

/// Serves small pieces without delay.
pub(crate) fn serve(listener: TcpListener, router: Router) -> std::io::Result<JoinHandle<()>> {
    listener.set_nonblocking(true)?;
    let listener = Prompt(tokio::net::TcpListener::from_std(listener)?);
    Ok(tokio::spawn(async move {
        // The server runs until it is aborted; a broken connection is the caller's problem.
        let _ended = axum::serve(listener, router).await;
    }))
}

/// An unsampled trace in X-Ray's format.
pub fn trace() -> String {
    let seconds = Timestamp::now().as_millis() / 1000;
    let (root, parent) = (Uuid::new_v4().simple().to_string(), Uuid::new_v4().simple().to_string());
    let (root, parent) = (root.get(..24).unwrap_or_default(), parent.get(..16).unwrap_or_default());
    format!("Root=1-{seconds:08x}-{root};Parent={parent};Sampled=0")
}
