//! Answers.

use std::pin::Pin;

use lambda_http::{Body, Response};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{Error, Result, error};

/// Work that follows the answer: it neither delays nor replaces it.
pub type Afterwards = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What a handler answers: a status and a JSON body, and what is still to be done once the caller has it.
pub struct Reply {
    status: u16,
    content_type: &'static str,
    body: Vec<u8>,
    /// Seconds, for the header `Retry-After`.
    retry_after: Option<u64>,
    afterwards: Option<Afterwards>,
}

impl Reply {
    pub fn ok(body: &impl Serialize) -> Result<Self> {
        Self::json(200, body)
    }

    /// Taken on; what is left of it happens by itself.
    pub fn accepted(body: &impl Serialize) -> Result<Self> {
        Self::json(202, body)
    }

    pub fn created(body: &impl Serialize) -> Result<Self> {
        Self::json(201, body)
    }

    /// 204: it is done, and there is nothing to show.
    pub fn no_content() -> Self {
        Self { status: 204, content_type: "application/json", body: Vec::new(), retry_after: None, afterwards: None }
    }

    /// TwiML, for Twilio: another content type than `text/xml` is an error to it.
    pub fn twiml(twiml: String) -> Self {
        Self { status: 200, content_type: "text/xml", body: twiml.into_bytes(), retry_after: None, afterwards: None }
    }

    /// A text, for whoever asked for one ([`super::accepted_text`]).
    pub fn text(content_type: &'static str, text: String) -> Self {
        Self { status: 200, content_type, body: text.into_bytes(), retry_after: None, afterwards: None }
    }

    fn json(status: u16, body: &impl Serialize) -> Result<Self> {
        let body = serde_json::to_vec(body).map_err(Error::internal)?;
        Ok(Self { status, content_type: "application/json", body, retry_after: None, afterwards: None })
    }

    /// RFC 9457, with `code`, `request_id` and, for wrong fields, `errors: [{field, problem}]`.
    pub(super) fn problem(error: &Error, request_id: &str) -> Self {
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
        }
        let retry_after = if let Error::OverBudget(over) = error { Some(over.retry_after) } else { None };
        Self {
            status,
            content_type: "application/problem+json",
            body: problem.to_string().into_bytes(),
            retry_after,
            afterwards: None,
        }
    }

    /// Adds work to be done after the answer has been given. On Lambda the function stays awake for it; what it must not
    /// do is matter to the caller.
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

    /// The HTTP response, and what remains to be done.
    pub(super) fn into_response(self) -> Result<(Response<Body>, Option<Afterwards>)> {
        let mut response = Response::builder().status(self.status).header("cache-control", "no-store");
        if !self.body.is_empty() {
            response = response.header("content-type", self.content_type);
        }
        if let Some(seconds) = self.retry_after {
            response = response.header("retry-after", seconds);
        }
        Ok((response.body(Body::from(self.body)).map_err(Error::internal)?, self.afterwards))
    }
}

fn title(status: u16) -> &'static str {
    lambda_http::http::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason()).unwrap_or("Error")
}

/// One line for the log about a request that failed: everything the caller is not told.
pub(super) fn log(function: &str, request_id: &str, error: &Error) {
    let (status, code, chain) = (error.status(), error.code(), error::chain(error));
    if status >= 500 {
        tracing::error!(function, request.id = request_id, http.status = status, code, "request failed: {chain}");
    } else {
        tracing::info!(function, request.id = request_id, http.status = status, code, "request refused: {code}");
    }
}
