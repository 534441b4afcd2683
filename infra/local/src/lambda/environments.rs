//! Execution environments: processes of the function, each serving one request at a time.
//!
//! They are started on demand and reused when idle.

use std::{
    collections::HashMap,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use axum::body::Bytes;
use futures_util::future::BoxFuture;
use shared::models::Timestamp;
use tokio::{
    sync::{Notify, mpsc, oneshot},
    task::{AbortHandle, JoinHandle},
    time::{sleep, timeout},
};
use uuid::Uuid;

use super::head::Head;

/// How long an environment may take before it asks for its first event.
const LONGEST_START: Duration = Duration::from_secs(10);

/// An environment idle for this long is ended.
const LONGEST_IDLE: Duration = Duration::from_mins(10);

/// An older environment is not reused, because its credentials expire.
const OLDEST: Duration = Duration::from_hours(6);

/// Receives log lines.
pub type Log = Arc<dyn Fn(&str) + Send + Sync>;

pub trait Launch: Send + Sync {
    /// Starts a process whose runtime API is at `runtime_api`. The task ends with the process and returns how it
    /// ended; aborting the task kills the process.
    fn launch(&self, runtime_api: String) -> BoxFuture<'_, Result<JoinHandle<String>, String>>;
}

/// The function's answer to a request.
#[derive(Debug)]
pub struct Answer {
    /// 200 without headers for an answer that is not streamed.
    pub head: Head,
    pub body: mpsc::UnboundedReceiver<io::Result<Bytes>>,
    /// Until this is sent to or dropped, the process waits for the confirmation of its whole answer.
    pub confirm: oneshot::Sender<()>,
}

impl Answer {
    /// The whole body; `None` if the function ended in the middle of it.
    pub async fn whole(mut self) -> Option<Bytes> {
        read(&mut self.body).await
    }

    /// The whole body, while the process still waits for the confirmation.
    pub async fn unconfirmed(mut self) -> Option<(Bytes, oneshot::Sender<()>)> {
        Some((read(&mut self.body).await?, self.confirm))
    }
}

async fn read(body: &mut mpsc::UnboundedReceiver<io::Result<Bytes>>) -> Option<Bytes> {
    let mut whole = Vec::new();
    while let Some(piece) = body.recv().await {
        whole.extend_from_slice(&piece.ok()?);
    }
    Some(Bytes::from(whole))
}

/// A request on its way to the function. `client` is dropped if no answer comes.
pub(super) struct Invocation {
    pub(super) request_id: String,
    pub(super) event: Bytes,
    pub(super) trace: String,
    pub(super) client: oneshot::Sender<Answer>,
}

/// The event that `next` returns to a process.
pub(super) struct Handed {
    pub(super) request_id: String,
    pub(super) event: Bytes,
    pub(super) trace: String,
    /// The invocation's deadline, in milliseconds since 1970.
    pub(super) deadline: i64,
}

pub(super) struct Environments {
    launch: Box<dyn Launch>,
    /// The function's time-out per invocation.
    time_out: Duration,
    /// Base address of the runtime API; an environment's id is appended.
    runtime_api: String,
    log: Log,
    pool: Mutex<Pool>,
    /// An environment became idle or ended.
    rested: Notify,
}

#[derive(Default)]
struct Pool {
    all: HashMap<String, Arc<Environment>>,
    idle: Vec<Arc<Environment>>,
}

pub(super) struct Environment {
    id: String,
    started: Instant,
    phase: Mutex<Phase>,
    offered: Notify,
    process: Mutex<Option<AbortHandle>>,
}

enum Phase {
    /// Takes the invocation, if there is one, when it first asks for an event.
    Starting {
        invocation: Option<Invocation>,
        _limit: Timer,
    },
    Idle,
    /// About to take the invocation.
    Offered(Invocation),
    Busy(Busy),
    Ended,
}

/// A running invocation; it ends when the process asks for the next one.
struct Busy {
    request_id: String,
    since: Instant,
    /// Receives the head.
    client: Option<oneshot::Sender<Answer>>,
    /// Receives the body.
    body: Option<mpsc::UnboundedSender<io::Result<Bytes>>>,
    answered: bool,
    _time_out: Timer,
}

/// A delayed action; dropping the timer cancels it.
struct Timer(AbortHandle);

impl Drop for Timer {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Environments {
    pub(super) fn new(launch: Box<dyn Launch>, time_out: Duration, runtime_api: String, log: Log) -> Arc<Self> {
        Arc::new(Self { launch, time_out, runtime_api, log, pool: Mutex::default(), rested: Notify::new() })
    }

    /// Passes `invocation` to an idle environment or to a new one.
    pub(super) async fn invoke(self: &Arc<Self>, mut invocation: Invocation) {
        loop {
            let idle = self.pool().idle.pop();
            let Some(environment) = idle else { break };
            match environment.offer(invocation) {
                None => return,
                Some(not_taken) => invocation = not_taken,
            }
        }
        self.start(Some(invocation)).await;
    }

    /// Waits until every environment is idle; false if there is none.
    pub(super) async fn rest(&self) -> bool {
        loop {
            let rested = self.rested.notified();
            {
                let pool = self.pool();
                if pool.idle.len() == pool.all.len() {
                    return !pool.all.is_empty();
                }
            }
            rested.await;
        }
    }

    /// Starts an environment, with its first invocation or to wait for one.
    pub(super) async fn start(self: &Arc<Self>, invocation: Option<Invocation>) {
        let id = Uuid::now_v7().simple().to_string();
        let environment = Arc::new_cyclic(|own| {
            let (all, own) = (Arc::clone(self), own.clone());
            let timer = later(LONGEST_START, move || {
                if let Some(environment) = own.upgrade() {
                    all.end(&environment, &format!("asked for no event within {} s", LONGEST_START.as_secs()));
                }
            });
            Environment {
                id: id.clone(),
                started: Instant::now(),
                phase: Mutex::new(Phase::Starting { invocation, _limit: timer }),
                offered: Notify::new(),
                process: Mutex::default(),
            }
        });
        self.pool().all.insert(id.clone(), Arc::clone(&environment));
        match self.launch.launch(format!("{}/{id}", self.runtime_api)).await {
            Ok(process) => {
                *locked(&environment.process) = Some(process.abort_handle());
                if matches!(*environment.phase(), Phase::Ended) {
                    process.abort();
                }
                let all = Arc::clone(self);
                tokio::spawn(async move {
                    if let Ok(how) = process.await {
                        all.end(&environment, &how);
                    }
                });
            }
            Err(why) => self.end(&environment, &why),
        }
    }

    pub(super) fn find(&self, id: &str) -> Option<Arc<Environment>> {
        self.pool().all.get(id).cloned()
    }

    /// The next event of an environment; waits until there is one.
    ///
    /// # Errors
    /// With the reason if it may not ask: its last invocation is unanswered, or it has ended.
    pub(super) async fn next(self: &Arc<Self>, environment: &Arc<Environment>) -> Result<Handed, &'static str> {
        loop {
            let step = self.step(environment)?;
            if let Some(handed) = step {
                (self.log)(&format!("START RequestId: {} Version: $LATEST", handed.request_id));
                return Ok(handed);
            }
            if timeout(LONGEST_IDLE, environment.offered.notified()).await.is_err()
                && matches!(*environment.phase(), Phase::Idle)
            {
                self.end(environment, "");
            }
        }
    }

    fn step(self: &Arc<Self>, environment: &Arc<Environment>) -> Result<Option<Handed>, &'static str> {
        let mut phase = environment.phase();
        match std::mem::replace(&mut *phase, Phase::Idle) {
            Phase::Starting { invocation: None, .. } => {
                drop(phase);
                self.rests(environment);
                Ok(None)
            }
            Phase::Starting { invocation: Some(invocation), .. } | Phase::Offered(invocation) => {
                let (busy, handed) = self.hand_out(environment, invocation);
                *phase = Phase::Busy(busy);
                Ok(Some(handed))
            }
            Phase::Busy(busy) if !busy.answered => {
                *phase = Phase::Busy(busy);
                Err("asked for the next event before it had answered the last one")
            }
            Phase::Busy(busy) => {
                self.report(&busy);
                drop(phase);
                if environment.started.elapsed() > OLDEST {
                    self.end(environment, "");
                } else {
                    self.rests(environment);
                }
                Ok(None)
            }
            Phase::Idle => Ok(None),
            Phase::Ended => {
                *phase = Phase::Ended;
                Err("is over")
            }
        }
    }

    fn rests(&self, environment: &Arc<Environment>) {
        self.pool().idle.push(Arc::clone(environment));
        self.rested.notify_waiters();
    }

    fn hand_out(self: &Arc<Self>, environment: &Arc<Environment>, invocation: Invocation) -> (Busy, Handed) {
        let Invocation { request_id, event, trace, client } = invocation;
        let time_out = i64::try_from(self.time_out.as_millis()).unwrap_or(i64::MAX);
        let deadline = Timestamp::now().as_millis().saturating_add(time_out);
        let (all, own, late) = (Arc::clone(self), Arc::downgrade(environment), request_id.clone());
        let time_out = later(self.time_out, move || {
            if let Some(environment) = own.upgrade() {
                let limit = all.time_out.as_secs_f64();
                all.end(&environment, &format!("RequestId: {late} Task timed out after {limit:.2} seconds"));
            }
        });
        let busy = Busy {
            request_id: request_id.clone(),
            since: Instant::now(),
            client: Some(client),
            body: None,
            answered: false,
            _time_out: time_out,
        };
        (busy, Handed { request_id, event, trace, deadline })
    }

    fn report(&self, busy: &Busy) {
        let (id, duration) = (&busy.request_id, busy.since.elapsed().as_millis());
        (self.log)(&format!("END RequestId: {id}"));
        (self.log)(&format!("REPORT RequestId: {id}\tDuration: {duration} ms"));
    }

    /// Kills an environment in any phase and breaks its client's connection. Repeated calls do nothing.
    pub(super) fn end(&self, environment: &Arc<Environment>, why: &str) {
        let was = std::mem::replace(&mut *environment.phase(), Phase::Ended);
        if matches!(was, Phase::Ended) {
            return;
        }
        if !why.is_empty() {
            (self.log)(why);
        }
        if let Some(process) = locked(&environment.process).take() {
            process.abort();
        }
        let mut pool = self.pool();
        pool.all.remove(&environment.id);
        pool.idle.retain(|idle| idle.id != environment.id);
        drop(pool);
        self.rested.notify_waiters();
        environment.offered.notify_one();
        if let Phase::Busy(busy) = was {
            self.report(&busy);
            if let Some(body) = busy.body {
                // A client that has left cannot receive the error.
                let _gone = body.send(Err(io::Error::other("the function ended in the middle of its answer")));
            }
        }
    }

    pub(super) fn end_all(&self) {
        let all: Vec<Arc<Environment>> = self.pool().all.values().cloned().collect();
        for environment in all {
            self.end(&environment, "");
        }
    }

    pub(super) fn log(&self, line: &str) {
        (self.log)(line);
    }

    /// The number of environments.
    pub(super) fn count(&self) -> usize {
        self.pool().all.len()
    }

    fn pool(&self) -> MutexGuard<'_, Pool> {
        locked(&self.pool)
    }
}

impl Environment {
    /// Offers the environment an invocation; returns it if the environment is no longer idle.
    fn offer(&self, invocation: Invocation) -> Option<Invocation> {
        let mut phase = self.phase();
        if !matches!(*phase, Phase::Idle) {
            return Some(invocation);
        }
        *phase = Phase::Offered(invocation);
        drop(phase);
        self.offered.notify_one();
        None
    }

    /// The waiting client and the body's channel. `None` if the environment has another request or has answered
    /// already.
    pub(super) fn begin_answer(&self, request_id: &str) -> Option<(oneshot::Sender<Answer>, Body)> {
        let mut phase = self.phase();
        let Phase::Busy(busy) = &mut *phase else { return None };
        if busy.request_id != request_id {
            return None;
        }
        let client = busy.client.take()?;
        let (into, from) = mpsc::unbounded_channel();
        busy.body = Some(into.clone());
        Some((client, Body { into, from }))
    }

    /// Completes the answer.
    pub(super) fn end_answer(&self) {
        if let Phase::Busy(busy) = &mut *self.phase() {
            busy.body = None;
            busy.client = None;
            busy.answered = true;
        }
    }

    fn phase(&self) -> MutexGuard<'_, Phase> {
        locked(&self.phase)
    }
}

/// Both ends of the channel that carries an answer's body from the function to the client.
pub(super) struct Body {
    pub(super) into: mpsc::UnboundedSender<io::Result<Bytes>>,
    pub(super) from: mpsc::UnboundedReceiver<io::Result<Bytes>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn later(after: Duration, what: impl FnOnce() + Send + 'static) -> Timer {
    let task = tokio::spawn(async move {
        sleep(after).await;
        what();
    });
    Timer(task.abort_handle())
}
