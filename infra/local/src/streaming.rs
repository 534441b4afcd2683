//! Serves the function `stream` as its REST API does on AWS; the local AWS buffers answers.
//!
//! Runs the deployed program behind a runtime API of its own and forwards each piece of an answer at once. As strict
//! as Lambda: one request per process at a time, the function's time-out, 6 MB per request. A function that does not
//! stream, fails, or sends a head that AWS would reject yields 502; a process that dies midway breaks the connection.
//! A function never learns that its client has left. Function, variables, time-out, routes and stage are read from
//! the deployment. The API's throttles are not enforced: they limit an account's executions, and one machine has no
//! such limit.

mod event;
mod function;
mod program;
mod routes;
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
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::{
    Error, Result,
    aws::Aws,
    function_logs::LogFile,
    lambda::{self, Answer, Lambda, Launch, Log},
    programs::Package,
};
use event::LARGEST_EVENT;
use function::Function;
use program::Program;
use routes::{Matched, Target};

pub(crate) const FUNCTION: &str = "stream";

/// The API's stage: the first segment of every path.
pub(crate) const STAGE: &str = "live";

/// Bytes of a request beyond this number are not read.
const FARTHEST_READ: usize = 64 * 1024 * 1024;

pub(crate) const SERVICE: &str = "the streamed answers";

/// A running streaming API. Dropping it closes it and ends the function's processes.
pub(crate) struct StreamingApi {
    gateway: JoinHandle<()>,
    lambda: Arc<Lambda>,
}

impl std::fmt::Debug for StreamingApi {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamingApi").finish_non_exhaustive()
    }
}

struct Gateway {
    function: Arc<Function>,
    lambda: Arc<Lambda>,
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
        let lambda = Arc::new(Lambda::start(&function.configuration, launch, log)?);
        let gateway = Arc::new(Gateway { function, lambda: Arc::clone(&lambda) });
        let gateway = Router::new().fallback(receive).with_state(gateway);
        let gateway = lambda::serve(listener, gateway).map_err(Error::file("listen for the streamed answers"))?;
        Ok(Self { gateway, lambda })
    }
}

impl Drop for StreamingApi {
    fn drop(&mut self) {
        self.gateway.abort();
        self.lambda.end_all();
    }
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
        let trace = lambda::trace();
        let event = event::event(&parts, route, &body, &self.function.stage, request_id, &trace);
        let event = Bytes::from(event.to_string());
        // Lambda limits the event, which holds the body as a JSON string and each header twice.
        if event.len() > LARGEST_EVENT {
            return too_large();
        }
        // Lambda's request id differs from the gateway's.
        let Some(Answer { head, mut body, .. }) = self.lambda.invoke(event, trace).await else {
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
