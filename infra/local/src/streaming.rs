//! Serves the function `stream` as its REST API does on AWS; the local AWS buffers answers.
//!
//! Runs the deployed program behind a runtime API of its own and forwards each piece of an answer at once. As strict
//! as Lambda: one request per process at a time, the function's time-out, 6 MB per request. A function that does not
//! stream, fails, or sends a head that AWS would reject yields 502; a process that dies midway breaks the connection.
//! A function never learns that its client has left. Function, variables, time-out, routes and stage are read from
//! the deployment. The API's throttles are not enforced: they limit an account's executions, and one machine has no
//! such limit.

mod connection;
mod environments;
mod event;
mod function;
mod head;
mod program;
mod routes;
mod runtime_api;
#[cfg(test)]
mod tests;

use std::{net::TcpListener, path::Path, sync::Arc};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{Request, State},
    http::{HeaderValue, StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
};
use futures_util::{StreamExt, stream};
use shared::models::Timestamp;
use tokio::{sync::oneshot, task::JoinHandle};
use uuid::Uuid;

use crate::{Error, Result, aws::Aws, function_logs::LogFile, ports, programs::Package};
use connection::Prompt;
use environments::{Answer, Environments, Invocation, Launch, Log};
use event::LARGEST_EVENT;
use function::Function;
use program::Program;
use routes::{Matched, Target};
use runtime_api::Api;

pub(crate) const FUNCTION: &str = "stream";

/// The API's stage: the first segment of every path.
pub(crate) const STAGE: &str = "live";

/// Bytes of a request beyond this number are not read.
const FARTHEST_READ: usize = 64 * 1024 * 1024;

pub(crate) const SERVICE: &str = "the streamed answers";

/// A running streaming API. Dropping it closes it and ends the function's processes.
pub(crate) struct StreamingApi {
    tasks: [JoinHandle<()>; 2],
    environments: Arc<Environments>,
}

impl std::fmt::Debug for StreamingApi {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamingApi").finish_non_exhaustive()
    }
}

struct Gateway {
    function: Arc<Function>,
    environments: Arc<Environments>,
}

impl StreamingApi {
    /// Serves the streaming function on `listener` from its package, unpacked into `directory`. `None` if the
    /// template has no REST API for it.
    pub(crate) async fn open(
        listener: TcpListener,
        aws: &Aws,
        packages: &[Package],
        directory: &Path,
        log: LogFile,
    ) -> Result<Option<Self>> {
        let Some(package) = packages.iter().find(|package| package.function == FUNCTION) else { return Ok(None) };
        let Some(function) = Function::deployed(aws, FUNCTION).await? else { return Ok(None) };
        let log: Log = Arc::new(move |line| log.write(FUNCTION, line));
        let function = Arc::new(function);
        let program = Program::unpack(package, directory, aws, Arc::clone(&function), Arc::clone(&log))?;
        Self::serve(listener, function, Box::new(program), log).map(Some)
    }

    fn serve(listener: TcpListener, function: Arc<Function>, launch: Box<dyn Launch>, log: Log) -> Result<Self> {
        let failed = || Error::file("listen for the streamed answers");
        let api = ports::listen(0, "the runtime API")?;
        let address = format!("http://{}", api.local_addr().map_err(failed())?);
        let environments = Environments::new(launch, function.time_out, address, log);
        let runtime_api =
            runtime_api::router(Api { environments: Arc::clone(&environments), arn: function.arn.as_str().into() });
        let gateway = Arc::new(Gateway { function, environments: Arc::clone(&environments) });
        let gateway = Router::new().fallback(receive).with_state(gateway);
        let tasks = [serve(listener, gateway).map_err(failed())?, serve(api, runtime_api).map_err(failed())?];
        Ok(Self { tasks, environments })
    }
}

impl Drop for StreamingApi {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
        self.environments.end_all();
    }
}

fn serve(listener: TcpListener, router: Router) -> std::io::Result<JoinHandle<()>> {
    listener.set_nonblocking(true)?;
    let listener = Prompt(tokio::net::TcpListener::from_std(listener)?);
    Ok(tokio::spawn(async move {
        // The server runs until it is aborted; a broken connection is the caller's problem.
        let _ended = axum::serve(listener, router).await;
    }))
}

async fn receive(State(gateway): State<Arc<Gateway>>, request: Request) -> Response {
    let request_id = Uuid::new_v4().to_string();
    let mut response = gateway.route(request, &request_id).await;
    if let Ok(request_id) = HeaderValue::from_str(&request_id) {
        response.headers_mut().insert("x-amzn-requestid", request_id);
    }
    response
}

impl Gateway {
    async fn route(&self, request: Request, request_id: &str) -> Response {
        let (parts, body) = request.into_parts();
        let within = parts.uri.path().strip_prefix('/').and_then(|path| path.strip_prefix(STAGE));
        let Some(path) = within.filter(|path| path.starts_with('/')).map(str::to_owned) else {
            return refusal(StatusCode::FORBIDDEN, "Forbidden");
        };
        match self.function.routes.target(parts.method.as_str(), &path) {
            Target::Preflight => self.function.cors.preflight_of_stage(&parts.headers),
            // API Gateway's message for an unknown route.
            Target::Nobody => refusal(StatusCode::FORBIDDEN, "Missing Authentication Token"),
            Target::Function(matched) if !self.may_invoke(parts.method.as_str(), &matched.resource) => {
                refusal(StatusCode::INTERNAL_SERVER_ERROR, "Internal server error")
            }
            Target::Function(matched) => self.answer(parts, body, (&path, &matched), request_id).await,
        }
    }

    fn may_invoke(&self, method: &str, resource: &str) -> bool {
        self.function.granted.iter().any(|pattern| like(pattern, &format!("{method}{resource}")))
    }

    async fn answer(&self, parts: Parts, body: Body, route: (&str, &Matched), request_id: &str) -> Response {
        let too_large = || refusal(StatusCode::PAYLOAD_TOO_LARGE, "Request Too Long");
        let Some(body) = read(body).await else { return too_large() };
        let trace = trace();
        let event = event::event(&parts, route, &body, &self.function.stage, request_id, &trace);
        let event = runtime_api::written(&event);
        // Lambda limits the event, which holds the body as a JSON string and each header twice.
        if event.len() > LARGEST_EVENT {
            return too_large();
        }
        let (client, answer) = oneshot::channel();
        // Lambda's request id differs from the gateway's.
        let invocation = Invocation { request_id: Uuid::new_v4().to_string(), event, trace, client };
        // On a separate task: the invocation goes on even if the client leaves.
        let environments = Arc::clone(&self.environments);
        tokio::spawn(async move { environments.invoke(invocation).await });
        let Ok(Answer { head, mut body }) = answer.await else {
            return refusal(StatusCode::BAD_GATEWAY, "Internal server error");
        };
        let mut response = Response::new(Body::from_stream(stream::poll_fn(move |context| body.poll_recv(context))));
        *response.status_mut() = head.status;
        *response.headers_mut() = head.headers;
        response
    }
}

/// A request's body, or `None` if it is too large. The body is read first, because a client that still sends does not
/// read a refusal.
async fn read(body: Body) -> Option<Bytes> {
    let (mut read, mut size) = (Vec::new(), 0);
    let mut frames = body.into_data_stream();
    while size <= FARTHEST_READ
        && let Some(frame) = frames.next().await
    {
        let frame = frame.ok()?;
        size += frame.len();
        if size <= LARGEST_EVENT {
            read.extend_from_slice(&frame);
        }
    }
    (size <= LARGEST_EVENT).then(|| Bytes::from(read))
}

/// An error of the API itself; pages of any origin may read it.
fn refusal(status: StatusCode, message: &str) -> Response {
    let headers = [(header::ACCESS_CONTROL_ALLOW_ORIGIN, "*")];
    (status, headers, axum::Json(serde_json::json!({"message": message}))).into_response()
}

/// IAM's `ArnLike` within one component: `*` matches any text, slashes included.
fn like(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((start, rest)) => text.strip_prefix(start).is_some_and(|text| {
            like(rest, "") || text.char_indices().any(|(at, _)| text.get(at..).is_some_and(|text| like(rest, text)))
        }),
    }
}

/// An unsampled trace in X-Ray's format.
fn trace() -> String {
    let seconds = Timestamp::now().as_millis() / 1000;
    let (root, parent) = (Uuid::new_v4().simple().to_string(), Uuid::new_v4().simple().to_string());
    let (root, parent) = (root.get(..24).unwrap_or_default(), parent.get(..16).unwrap_or_default());
    format!("Root=1-{seconds:08x}-{root};Parent={parent};Sampled=0")
}
