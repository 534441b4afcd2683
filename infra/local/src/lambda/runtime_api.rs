//! Lambda's runtime API, under a separate path for each process of the function.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    body::to_bytes,
    extract::{Path, Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio::{sync::oneshot, time::sleep};

use super::{
    Answers,
    environments::{Answer, Environment, Environments},
    head::{Head, HeadReader},
};

/// The limit of a streamed answer, in bytes.
const LARGEST_ANSWER: usize = 200 * 1024 * 1024;

/// This many bytes of an answer go out at full speed, the rest at [`BANDWIDTH`] bytes a second.
const FAST_PART: usize = 6 * 1024 * 1024;
const BANDWIDTH: f64 = 2.0 * 1024.0 * 1024.0;

/// An error report holds a name and a sentence.
const LARGEST_REPORT: usize = 1024 * 1024;

const MODE: &str = "lambda-runtime-function-response-mode";
const STREAMING: &str = "streaming";
const HEAD_FIRST: &str = "application/vnd.awslambda.http-integration-response";

#[derive(Clone)]
pub(super) struct Api {
    pub(super) environments: Arc<Environments>,
    /// The function's ARN.
    pub(super) arn: Arc<str>,
    pub(super) answers: Answers,
}

pub(super) fn router(api: Api) -> Router {
    Router::new()
        .route("/{environment}/2018-06-01/runtime/invocation/next", get(next))
        .route("/{environment}/2018-06-01/runtime/invocation/{request}/response", post(respond))
        .route("/{environment}/2018-06-01/runtime/invocation/{request}/error", post(fail))
        .route("/{environment}/2018-06-01/runtime/init/error", post(fail_to_start))
        .with_state(api)
}

async fn next(State(api): State<Api>, Path(environment): Path<String>) -> Response {
    let Some(environment) = api.environments.find(&environment) else { return over() };
    match api.environments.next(&environment).await {
        Ok(handed) => {
            let headers = [
                ("lambda-runtime-aws-request-id", handed.request_id),
                ("lambda-runtime-deadline-ms", handed.deadline.to_string()),
                ("lambda-runtime-invoked-function-arn", api.arn.to_string()),
                ("lambda-runtime-trace-id", handed.trace),
                ("content-type", "application/json".to_owned()),
            ];
            let headers: HeaderMap = headers
                .into_iter()
                .filter_map(|(name, value)| Some((HeaderName::from_static(name), HeaderValue::from_str(&value).ok()?)))
                .collect();
            (headers, handed.event).into_response()
        }
        Err(why) => {
            // Lambda's own error is in the status; the sentence is for readers of the log.
            api.environments.end(&environment, &format!("The function {why}"));
            refused(StatusCode::FORBIDDEN, "InvalidStateTransition", why)
        }
    }
}

async fn respond(
    State(api): State<Api>,
    Path((environment, request_id)): Path<(String, String)>,
    request: Request,
) -> Response {
    let Some(environment) = api.environments.find(&environment) else { return over() };
    let Some((client, body)) = environment.begin_answer(&request_id) else {
        return refused(StatusCode::BAD_REQUEST, "InvalidRequestID", "Invalid request ID");
    };
    let mut unfinished = Unfinished { api: &api, environment: &environment, whole: false };
    let (confirm, confirmed) = oneshot::channel();
    let (mut reader, mut waiting) = (HeadReader::default(), Some((client, body.from, confirm)));
    let mut wrong = match api.answers {
        Answers::Streamed => not_streaming(request.headers()),
        Answers::Whole => {
            if let Some((client, body, confirm)) = waiting.take() {
                let _gone = client.send(Answer { head: Head::none(), body, confirm });
            }
            None
        }
    };
    let mut frames = request.into_body().into_data_stream();
    let mut sent = 0;
    while let Some(frame) = frames.next().await {
        // An incomplete answer is discarded, and the client's connection breaks like this one.
        let Ok(mut frame) = frame else { return StatusCode::BAD_REQUEST.into_response() };
        if wrong.is_some() {
            // The client stops waiting; the function may finish its answer.
            waiting = None;
            continue;
        }
        if let Some((client, from, confirm)) = waiting.take() {
            match reader.push(&frame) {
                Err(what) => {
                    wrong = Some(what);
                    continue;
                }
                Ok(None) => {
                    waiting = Some((client, from, confirm));
                    continue;
                }
                Ok(Some((head, rest))) => {
                    // The function goes on even if the client has left.
                    let _gone = client.send(Answer { head, body: from, confirm });
                    frame = rest;
                }
            }
        }
        sent += frame.len();
        if sent > LARGEST_ANSWER {
            wrong = Some(format!("is larger than {LARGEST_ANSWER} bytes"));
            break;
        }
        if sent > FAST_PART {
            #[expect(clippy::cast_precision_loss, reason = "a frame is small")]
            sleep(Duration::from_secs_f64(frame.len() as f64 / BANDWIDTH)).await;
        }
        if !frame.is_empty() {
            let _gone = body.into.send(Ok(frame));
        }
    }
    if waiting.take().is_some() && wrong.is_none() {
        wrong = Some("has no eight NULs after its head".to_owned());
    }
    if let Some(what) = &wrong {
        api.environments.log(&format!("The answer to RequestId: {request_id} {what}"));
    }
    if sent > LARGEST_ANSWER {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    }
    unfinished.whole = true;
    environment.end_answer();
    drop(body.into);
    // Dropped, too, is a confirmation.
    let _confirmed = confirmed.await;
    accepted()
}

/// Why the answer is not a streamed one with a head; `None` if it is.
fn not_streaming(headers: &HeaderMap) -> Option<String> {
    let says = |name: &str, value: &str| headers.get(name).is_some_and(|said| said == value);
    match (says(MODE, STREAMING), says("content-type", HEAD_FIRST)) {
        (true, true) => None,
        (false, _) => Some(format!("does not stream: it lacks the header {MODE}: {STREAMING}")),
        (_, false) => Some(format!("is not of the type {HEAD_FIRST}")),
    }
}

/// A function's unfinished answer; if it breaks off, the environment ends.
struct Unfinished<'a> {
    api: &'a Api,
    environment: &'a Arc<Environment>,
    whole: bool,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if !self.whole {
            self.api.environments.end(self.environment, "The function's answer broke off");
        }
    }
}

async fn fail(
    State(api): State<Api>,
    Path((environment, request_id)): Path<(String, String)>,
    request: Request,
) -> Response {
    let Some(environment) = api.environments.find(&environment) else { return over() };
    let Some(_client) = environment.begin_answer(&request_id) else {
        return refused(StatusCode::BAD_REQUEST, "InvalidRequestID", "Invalid request ID");
    };
    api.environments.log(&format!("[ERROR] RequestId: {request_id} {}", report(request).await));
    environment.end_answer();
    accepted()
}

async fn fail_to_start(State(api): State<Api>, Path(environment): Path<String>, request: Request) -> Response {
    let Some(environment) = api.environments.find(&environment) else { return over() };
    let report = report(request).await;
    api.environments.end(&environment, &format!("[ERROR] the function did not start: {report}"));
    accepted()
}

/// The error report of a process, as one line.
async fn report(request: Request) -> String {
    let body = to_bytes(request.into_body(), LARGEST_REPORT).await.unwrap_or_default();
    let report: Value = serde_json::from_slice(&body).unwrap_or_default();
    let text = |field| report.get(field).and_then(Value::as_str);
    match (text("errorType"), text("errorMessage")) {
        (Some(kind), Some(message)) => format!("{kind}: {message}"),
        _ => String::from_utf8_lossy(&body).into_owned(),
    }
}

fn accepted() -> Response {
    (StatusCode::ACCEPTED, axum::Json(json!({"status": "OK"}))).into_response()
}

/// The response to a process that should have ended.
fn over() -> Response {
    refused(StatusCode::GONE, "Runtime.Ended", "this execution environment is over")
}

fn refused(status: StatusCode, kind: &str, message: &str) -> Response {
    (status, axum::Json(json!({"errorType": kind, "errorMessage": message}))).into_response()
}
