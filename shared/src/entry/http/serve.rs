//! The request cycle of every function: ids, problem documents, log, metrics, work afterwards.
//!
//! [`serve`] sends whole answers, [`serve_streaming`] also streams.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use lambda_http::{Body, Request, RequestExt, Response, StreamAdapter};
use lambda_runtime::{LambdaInvocation, tower::Layer};
use tower::{Service, service_fn};
use tracing::Instrument;

use super::{
    events::RequestOfStream,
    reply::{self, Afterwards, Reply, ReplyBody},
    request_ids::RequestIds,
};
use crate::{Deadline, Error, Result, invocation, models::Timestamp, telemetry};

/// Reserved to serialize and send the answer.
const RESERVE: Duration = Duration::from_millis(500);

/// Default when Lambda gives no deadline (tests, emulators).
const USUAL: Duration = Duration::from_secs(20);

pub async fn serve<D, F, Fut>(function: &'static str, deps: D, handle: F) -> Result<(), lambda_http::Error>
where
    D: Sync + 'static,
    F: Fn(&'static D, Request) -> Fut + Copy + Send + Sync + 'static,
    Fut: Future<Output = Result<Reply>> + Send + 'static,
{
    let deps: &'static D = Box::leak(Box::new(deps));
    let pending = Pending::default();
    let service =
        service(pending.clone(), move |request| answer(function, request, move |request| handle(deps, request)));
    lambda_runtime::Runtime::new(lambda_http::Adapter::from(service)).layer(FinishPending(pending)).run().await
}

/// Like [`serve`], also for [`Reply::events`]: the head is sent when `handle` returns, each event when written. Requires a
/// streaming integration.
pub async fn serve_streaming<D, F, Fut>(function: &'static str, deps: D, handle: F) -> Result<(), lambda_http::Error>
where
    D: Sync + 'static,
    F: Fn(&'static D, Request) -> Fut + Copy + Send + Sync + 'static,
    Fut: Future<Output = Result<Reply>> + Send + 'static,
{
    let deps: &'static D = Box::leak(Box::new(deps));
    let pending = Pending::default();
    let service = service(pending.clone(), move |request| {
        answer_streaming(function, request, move |request| handle(deps, request))
    });
    // The runtime API answers the post of a stream at its end, so work afterwards follows the last event.
    lambda_runtime::Runtime::new(StreamAdapter::from(service)).layer(FinishPending(pending)).run().await
}

/// Collects the work afterwards of each answer in `pending`.
fn service<F, Fut, B>(
    pending: Pending,
    answer: F,
) -> impl Service<Request, Response = Response<B>, Error = Infallible, Future: Send>
where
    F: Fn(Request) -> Fut,
    Fut: Future<Output = (Response<B>, Option<Afterwards>)> + Send,
    B: Send,
{
    service_fn(move |request| {
        let (pending, answered) = (pending.clone(), answer(request));
        async move {
            let (response, afterwards) = answered.await;
            pending.add(afterwards);
            Ok(response)
        }
    })
}

pub async fn answer<F, Fut>(function: &'static str, request: Request, handle: F) -> (Response<Body>, Option<Afterwards>)
where
    F: FnOnce(Request) -> Fut,
    Fut: Future<Output = Result<Reply>>,
{
    let (response, afterwards) = answer_streaming(function, request, handle).await;
    let whole = response.map(|body| match body {
        ReplyBody::Whole(body) => Body::from(body),
        ReplyBody::Events(_) => {
            reply::log(
                function,
                &RequestIds::default(),
                &Error::internal("this function is not served by serve_streaming"),
            );
            Body::Empty
        }
    });
    (whole, afterwards)
}

pub async fn answer_streaming<F, Fut>(
    function: &'static str,
    request: Request,
    handle: F,
) -> (Response<ReplyBody>, Option<Afterwards>)
where
    F: FnOnce(Request) -> Fut,
    Fut: Future<Output = Result<Reply>>,
{
    let started = Instant::now();
    let ids = RequestIds::of(&request);
    let span = ids.span();
    // Boxed: the nested futures reach the compiler's limits.
    let reply = Box::pin(invocation::run(handle(request))).instrument(span.clone()).await.map_err(|error| {
        reply::log(function, &ids, &error);
        telemetry::request(function, error.code(), started.elapsed());
        Reply::problem(&error, &ids.request)
    });
    let succeeded = reply.is_ok();
    let (Ok(reply) | Err(reply)) = reply;
    let (mut response, afterwards) = reply.into_response().unwrap_or_else(|error| {
        reply::log(function, &ids, &error);
        let mut response = Response::new(ReplyBody::Whole(Vec::new()));
        *response.status_mut() = lambda_http::http::StatusCode::INTERNAL_SERVER_ERROR;
        reply::not_sniffed(response.headers_mut());
        (response, None)
    });
    match response.body_mut() {
        // The outcome is known at the end of the stream.
        ReplyBody::Events(events) => events.answers(RequestOfStream { function, ids, started }),
        ReplyBody::Whole(_) if succeeded => telemetry::request(function, "ok", started.elapsed()),
        ReplyBody::Whole(_) => {}
    }
    let afterwards = afterwards.map(|work| -> Afterwards { Box::pin(work.instrument(span)) });
    (response, afterwards)
}

/// Lambda's deadline for the request, less the time to send the answer.
pub(super) fn deadline(request: &Request) -> Deadline {
    let at = request.lambda_context_ref().map_or(0, |context| context.deadline);
    let left = i64::try_from(at).unwrap_or(0) - Timestamp::now().as_millis();
    match u64::try_from(left) {
        Ok(left) if at > 0 => Deadline::after(Duration::from_millis(left)).reserving(RESERVE),
        _ => Deadline::after(USUAL),
    }
}

#[derive(Clone, Default)]
struct Pending(Arc<Mutex<Vec<Afterwards>>>);

impl Pending {
    fn add(&self, work: Option<Afterwards>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(work);
    }

    fn take(&self) -> Vec<Afterwards> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Runs the pending work after the answer was posted and before the next event is requested: Lambda freezes the process only
/// then, so the caller does not wait and no work is lost.
struct FinishPending(Pending);

impl<S> Layer<S> for FinishPending {
    type Service = Finishing<S>;

    fn layer(&self, inner: S) -> Finishing<S> {
        Finishing { inner, pending: self.0.clone() }
    }
}

struct Finishing<S> {
    inner: S,
    pending: Pending,
}

impl<S> Service<LambdaInvocation> for Finishing<S>
where
    S: Service<LambdaInvocation>,
    S::Future: Send + 'static,
    S::Response: Send,
    S::Error: Send,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, invocation: LambdaInvocation) -> Self::Future {
        let answered = self.inner.call(invocation);
        let pending = self.pending.clone();
        Box::pin(async move {
            let outcome = answered.await;
            for work in pending.take() {
                work.await;
            }
            outcome
        })
    }
}
