//! Lambda's runtime API (version 2018-06-01) for one process, controlled by the benchmark.
//!
//! The benchmark decides when the process gets an event and when it continues after an answer; in between, the
//! process can be measured.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Mutex, PoisonError,
        mpsc::{self, Receiver, Sender},
    },
    time::Duration,
};

use serde_json::Value;
use shared::models::Timestamp;

use crate::http_server::{Request, Response, Server};

/// The time of an invocation: the template's time-out of run-loop, which stops shortly before its end.
const TIME: Duration = Duration::from_secs(300);

pub(crate) enum Report {
    /// It asked for the next event and waits for it.
    Waits,
    /// It answered an event and waits for the acknowledgement.
    Answered(Value),
    /// It failed to start or to answer.
    Failed(String),
}

pub(crate) struct RuntimeApi {
    server: Server,
    pub(crate) reports: Receiver<Report>,
    /// Events for the waiting process.
    pub(crate) events: Sender<String>,
    /// One message per acknowledged answer.
    pub(crate) taken: Sender<()>,
}

impl RuntimeApi {
    pub(crate) fn start() -> io::Result<Self> {
        let (report, reports) = mpsc::channel();
        let (events, next) = mpsc::channel();
        let (taken, take) = mpsc::channel();
        let (next, take) = (Mutex::new(next), Mutex::new(take));
        let server = Server::start(move |request| answer(request, &report, &next, &take))?;
        Ok(Self { server, reports, events, taken })
    }

    /// For `AWS_LAMBDA_RUNTIME_API`.
    pub(crate) fn address(&self) -> SocketAddr {
        self.server.address
    }
}

fn answer(
    request: &Request,
    report: &Sender<Report>,
    next: &Mutex<Receiver<String>>,
    take: &Mutex<Receiver<()>>,
) -> Response {
    let path = request.path.strip_prefix("/2018-06-01/runtime").unwrap_or_default();
    let reported = match (request.method.as_str(), path) {
        ("GET", "/invocation/next") => report.send(Report::Waits),
        ("POST", path) if path.ends_with("/response") => {
            report.send(Report::Answered(serde_json::from_slice(&request.body).unwrap_or_default()))
        }
        ("POST", path) if path.ends_with("/error") => {
            report.send(Report::Failed(String::from_utf8_lossy(&request.body).into_owned()))
        }
        _ => return Response::new(404, ""),
    };
    // The benchmark has ended, or ends while the process waits.
    let gone = || Response::new(410, "");
    if reported.is_err() {
        return gone();
    }
    if path.ends_with("/response") {
        return match take.lock().unwrap_or_else(PoisonError::into_inner).recv() {
            Ok(()) => Response::new(202, ""),
            Err(_) => gone(),
        };
    }
    if path.ends_with("/error") {
        return Response::new(202, "");
    }
    let Ok(event) = next.lock().unwrap_or_else(PoisonError::into_inner).recv() else { return gone() };
    let headers = vec![
        ("lambda-runtime-aws-request-id", "8476a536-e9f4-11e8-9739-2dfe598c3fcd".to_owned()),
        ("lambda-runtime-deadline-ms", Timestamp::now().plus(TIME).as_millis().to_string()),
        (
            "lambda-runtime-invoked-function-arn",
            "arn:aws:lambda:eu-central-1:123456789012:function:switchboard".to_owned(),
        ),
        (
            "lambda-runtime-trace-id",
            "Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700;Parent=9a9197af755a6419;Sampled=0".to_owned(),
        ),
    ];
    Response { headers, ..Response::new(200, event) }
}
