//! Answers.

use std::{
    borrow::Cow,
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame};
use lambda_http::{
    Response,
    http::{HeaderMap, HeaderName, HeaderValue},
};
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    events::{Frames, ServerSentEvents},
    request_ids::RequestIds,
};
use crate::{Error, Result, error, telemetry};

/// Work after the answer, which it neither delays nor changes.
pub type Afterwards = Pin<Box<dyn Future<Output = ()> + Send>>;

pub struct Reply {
    status: u16,
    content_type: Cow<'static, str>,
    body: ReplyBody,
    headers: Vec<(&'static str, String)>,
    cache_control: &'static str,
    afterwards: Option<Afterwards>,
}

pub enum ReplyBody {
    Whole(Vec<u8>),
    Events(Box<ServerSentEvents>),
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(body) if body.is_empty() => Poll::Ready(None),
            Self::Whole(body) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(body).into())))),
            Self::Events(events) => Pin::new(&mut **events).poll_frame(context),
        }
    }
}

impl Reply {
    pub fn ok(body: &impl Serialize) -> Result<Self> {
        Self::json(200, body)
    }

    pub fn accepted(body: &impl Serialize) -> Result<Self> {
        Self::json(202, body)
    }

    pub fn no_content() -> Self {
        Self::of(204, "application/json", Vec::new())
    }

    pub fn not_modified() -> Self {
        Self::of(304, "", Vec::new())
    }

    /// The content of an answer of 200 that has no tag yet.
    pub(super) fn content_to_tag(&self) -> Option<&[u8]> {
        match &self.body {
            ReplyBody::Whole(content) if self.status == 200 && self.headers.iter().all(|(name, _)| *name != "etag") => {
                Some(content)
            }
            _ => None,
        }
    }

    /// 304 with the headers and the later work of this answer.
    pub(super) fn without_content(self) -> Self {
        let Self { headers, cache_control, afterwards, .. } = self;
        Self { headers, cache_control, afterwards, ..Self::not_modified() }
    }

    /// TwiML. Twilio accepts only `text/xml`.
    pub fn twiml(twiml: String) -> Self {
        Self::of(200, "text/xml", twiml.into_bytes())
    }

    /// Text, on request ([`super::accepted_text`]).
    pub fn text(content_type: &'static str, text: String) -> Self {
        Self::of(200, content_type, text.into_bytes())
    }

    /// Server-sent events, written by `work` into `frames` while the answer is being sent, including the last event. If the work
    /// fails or panics, `last_words` writes the last event. Requires [`super::serve_streaming`]; refuse requests before.
    pub fn events(
        frames: Frames,
        work: impl Future<Output = Result<()>> + Send + 'static,
        last_words: impl FnOnce(&Frames, &Error) + Send + 'static,
    ) -> Self {
        let events = Box::new(ServerSentEvents::new(frames, work, last_words));
        let reply = Self { body: ReplyBody::Events(events), ..Self::of(200, "text/event-stream", Vec::new()) };
        // Stops a proxy (nginx) from buffering the stream.
        reply.with_headers([("x-accel-buffering", "no".to_owned())])
    }

    pub fn json(status: u16, body: &impl Serialize) -> Result<Self> {
        let body = serde_json::to_vec(body).map_err(Error::internal)?;
        Ok(Self::of(status, "application/json", body))
    }

    pub fn of(status: u16, content_type: impl Into<Cow<'static, str>>, body: Vec<u8>) -> Self {
        Self {
            status,
            content_type: content_type.into(),
            body: ReplyBody::Whole(body),
            headers: Vec::new(),
            cache_control: "no-store",
            afterwards: None,
        }
    }

    #[must_use]
    pub fn with_headers(mut self, headers: impl IntoIterator<Item = (&'static str, String)>) -> Self {
        self.headers.extend(headers);
        self
    }

    /// Sets `Cache-Control`; the default is `no-store`.
    #[must_use]
    pub fn cache_control(mut self, directives: &'static str) -> Self {
        self.cache_control = directives;
        self
    }

    /// RFC 9457, with `code`, `request_id` and, for invalid fields, `errors: [{field, problem}]`.
    pub(super) fn problem(error: &Error, request_id: &str) -> Self {
        let (error, prescribed, members) = match error {
            Error::WithHeaders { error, headers, members } => (&**error, headers.clone(), members.clone()),
            error => (error, Vec::new(), Vec::new()),
        };
        let status = error.status();
        let mut problem = json!({
            "type": "about:blank",
            "title": title(status),
            "status": status,
            "detail": error.to_string(),
            "code": error.code(),
            "request_id": request_id,
        });
        if let Value::Object(problem) = &mut problem {
            match error {
                Error::Invalid(problems) => {
                    problem.insert("errors".into(), json!(problems));
                }
                Error::ConsentDecided { decided, .. } => {
                    problem.insert("decided".into(), (*decided).into());
                }
                Error::Partly { done, left, .. } => {
                    problem.insert("agents_done".into(), json!(done));
                    problem.insert("agents_left".into(), json!(left));
                }
                Error::OverBudget(over) => {
                    problem.insert("budget".into(), over.budget.into());
                    problem.insert("limit".into(), over.limit.clone().into());
                    problem.insert("until".into(), over.until.as_str().into());
                }
                _ => {}
            }
            problem.extend(members.into_iter().map(|(name, text)| (name.to_owned(), text.into())));
        }
        let headers = match error {
            Error::OverBudget(over) => vec![("retry-after", over.retry_after.to_string())],
            _ => Vec::new(),
        };
        let reply = Self::of(status, "application/problem+json", problem.to_string().into_bytes());
        reply.with_headers(headers).with_headers(prescribed)
    }

    /// Adds work after the answer. On Lambda the function stays awake for it; the caller must not depend on it.
    #[must_use]
    pub fn afterwards(mut self, work: impl Future<Output = ()> + Send + 'static) -> Self {
        self.afterwards = Some(match self.afterwards.take() {
            None => Box::pin(work),
            Some(earlier) => Box::pin(async move {
                earlier.await;
                work.await;
            }),
        });
        self
    }

    /// The HTTP response and the remaining work. Headers must be unique: a streaming runtime turns repeated ones into a list.
    pub(super) fn into_response(self) -> Result<(Response<ReplyBody>, Option<Afterwards>)> {
        let content_type =
            (!matches!(&self.body, ReplyBody::Whole(body) if body.is_empty())).then_some(self.content_type);
        let mut response = Response::builder().status(self.status).body(self.body).map_err(Error::internal)?;
        let headers = response.headers_mut();
        headers.insert("cache-control", HeaderValue::from_static(self.cache_control));
        not_sniffed(headers);
        if let Some(content_type) = content_type {
            headers.insert("content-type", content_type.parse().map_err(Error::internal)?);
        }
        for (name, value) in self.headers {
            headers.insert(HeaderName::from_static(name), value.parse().map_err(Error::internal)?);
        }
        Ok((response, self.afterwards))
    }
}

pub(super) fn not_sniffed(headers: &mut HeaderMap) {
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
}

fn title(status: u16) -> &'static str {
    lambda_http::http::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason()).unwrap_or("Error")
}

/// Logs a failed request in one line, with everything the caller is not told, and counts faults.
pub(super) fn log(function: &str, ids: &RequestIds, error: &Error) {
    let (status, code, chain) = (error.status(), error.code(), error::chain(error));
    let RequestIds { request, invocation } = ids;
    if status >= 500 {
        tracing::error!(
            function,
            request.id = request,
            lambda.request_id = invocation,
            http.status = status,
            code,
            upstream.service = error.upstream_service(),
            "request failed: {chain}"
        );
        telemetry::fault(function);
    } else {
        tracing::info!(
            function,
            request.id = request,
            lambda.request_id = invocation,
            http.status = status,
            code,
            "request refused: {code}"
        );
    }
}
