//! The error type of all endpoints, by its meaning for the caller.
//!
//! `Display` is public. The cause stays in `source()`, is logged once where the request ends ([`crate::http::serve`]),
//! and never reaches an answer.

pub mod upstream;

use serde::Serialize;

pub type Result<T, E = Error> = std::result::Result<T, E>;

pub type Cause = Box<dyn std::error::Error + Send + Sync>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// 401: the caller is unknown.
    #[error("authentication is required; send a valid token as Authorization: Bearer …")]
    Unauthenticated,
    /// 403: the caller is known and may not do this.
    #[error("{0}")]
    Forbidden(&'static str),
    /// 404: it does not exist, or belongs to another tenant.
    #[error("{0} not found")]
    NotFound(&'static str),
    /// 400: the request cannot be read.
    #[error("{0}")]
    Malformed(String),
    /// 422: these fields of the request are wrong.
    #[error("{0}")]
    Invalid(Problems),
    /// 409: the request conflicts with the present state.
    #[error("{0}")]
    Conflict(String),
    /// 409: a consent that was decided elsewhere, or is not awaited any more. `decided` is the word for programs.
    #[error("{sentence}")]
    ConsentDecided { decided: &'static str, sentence: &'static str },
    /// As `error`, after part of the work: `done` and `left` list the agents.
    #[error("{error}; {} agents are done, {} are left, which will be done later", .done.len(), .left.len())]
    Partly {
        #[source]
        error: Box<Error>,
        done: Vec<String>,
        left: Vec<String>,
    },
    /// As `error`, with headers that a protocol prescribes, and further members of the problem document.
    #[error("{error}")]
    WithHeaders {
        #[source]
        error: Box<Error>,
        headers: Vec<(&'static str, String)>,
        members: Vec<(&'static str, String)>,
    },
    /// 429: one of the organization's budgets is used up.
    #[error("{0}")]
    OverBudget(OverBudget),
    /// 502, 503 or 504: a service we depend on failed.
    #[error("{}", .0.public())]
    Upstream(#[source] upstream::Error),
    /// 503: our own database or secrets are unavailable or throttled.
    #[error("{0} is unavailable, try again")]
    Unavailable(&'static str, #[source] Cause),
    /// 503: a row that this version cannot read, probably written by a newer one. `row` is its kind, `key` its key.
    #[error("{row} {key} was written by a newer version of this service, or is damaged; try again in a few minutes")]
    Unreadable { row: &'static str, key: String },
    /// 500: a fault of ours.
    #[error("internal error")]
    Internal(#[source] Cause),
}

impl Error {
    pub fn internal(cause: impl Into<Cause>) -> Self {
        Self::Internal(cause.into())
    }

    pub fn invalid(field: impl Into<String>, problem: impl Into<String>) -> Self {
        let mut problems = Problems::default();
        problems.add(field, problem);
        Self::Invalid(problems)
    }

    #[must_use]
    pub fn with_headers(self, more: Vec<(&'static str, String)>) -> Self {
        match self {
            Self::WithHeaders { error, mut headers, members } => {
                headers.extend(more);
                Self::WithHeaders { error, headers, members }
            }
            error => Self::WithHeaders { error: Box::new(error), headers: more, members: Vec::new() },
        }
    }

    #[must_use]
    pub fn with_members(self, more: Vec<(&'static str, String)>) -> Self {
        match self {
            Self::WithHeaders { error, headers, mut members } => {
                members.extend(more);
                Self::WithHeaders { error, headers, members }
            }
            error => Self::WithHeaders { error: Box::new(error), headers: Vec::new(), members: more },
        }
    }

    /// Whether a retry may succeed: something we depend on is unavailable.
    pub const fn is_outage(&self) -> bool {
        match self {
            Self::WithHeaders { error, .. } => error.is_outage(),
            _ => matches!(self, Self::Unavailable(..) | Self::Unreadable { .. } | Self::Upstream(_)),
        }
    }

    /// The failed vendor, for `upstream.service` of a log line.
    pub const fn upstream_service(&self) -> Option<&'static str> {
        match self {
            Self::Upstream(error) => Some(error.service.as_str()),
            Self::Partly { error, .. } | Self::WithHeaders { error, .. } => error.upstream_service(),
            _ => None,
        }
    }

    pub const fn status(&self) -> u16 {
        match self {
            Self::Malformed(_) => 400,
            Self::Unauthenticated => 401,
            Self::Forbidden(_) => 403,
            Self::NotFound(_) => 404,
            Self::Conflict(_) | Self::ConsentDecided { .. } => 409,
            Self::Invalid(_) => 422,
            Self::OverBudget(_) => 429,
            Self::Internal(_) => 500,
            Self::Partly { error, .. } | Self::WithHeaders { error, .. } => error.status(),
            Self::Upstream(error) => error.status_for_our_caller(),
            Self::Unavailable(..) | Self::Unreadable { .. } => 503,
        }
    }

    /// A stable word for programs: the `code` of a problem document.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Malformed(_) => "malformed",
            Self::Unauthenticated => "unauthenticated",
            Self::Forbidden(_) => "forbidden",
            Self::NotFound(_) => "not_found",
            Self::Conflict(_) => "conflict",
            Self::ConsentDecided { .. } => "consent_decided",
            Self::Invalid(_) => "invalid",
            Self::OverBudget(_) => "over_budget",
            Self::Internal(_) => "internal",
            Self::Partly { error, .. } | Self::WithHeaders { error, .. } => error.code(),
            Self::Upstream(_) => "upstream",
            Self::Unavailable(..) | Self::Unreadable { .. } => "unavailable",
        }
    }
}

impl From<OverBudget> for Error {
    fn from(over: OverBudget) -> Self {
        Self::OverBudget(over)
    }
}

impl From<upstream::Error> for Error {
    fn from(error: upstream::Error) -> Self {
        Self::Upstream(error)
    }
}

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("the organization's budget {budget} of {limit} is used up until {until}; {next_step}")]
pub struct OverBudget {
    /// `runs_per_hour`
    pub budget: &'static str,
    pub limit: serde_json::Number,
    /// The start of the next window, as ISO 8601 text.
    pub until: String,
    /// Seconds until then, at least 1.
    pub retry_after: u64,
    pub next_step: &'static str,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Problems(Vec<Problem>);

/// A wrong field: its path in the request (`recipients.fixedValues[0]`), and the correction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    pub field: String,
    pub problem: String,
}

impl Problems {
    pub fn add(&mut self, field: impl Into<String>, problem: impl Into<String>) {
        self.0.push(Problem { field: field.into(), problem: problem.into() });
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Problem> {
        self.0.iter()
    }

    /// The same problems for a value at `path` of the request.
    #[must_use]
    pub fn below(mut self, path: &str) -> Self {
        for problem in &mut self.0 {
            problem.field = match problem.field.as_str() {
                "" => path.to_owned(),
                field => format!("{path}.{field}"),
            };
        }
        self
    }

    pub fn into_result<T>(mut self, value: Option<T>) -> Result<T> {
        match value {
            Some(value) if self.is_empty() => Ok(value),
            // Every refusal must name a field: this body's reader forgot to.
            None if self.is_empty() => {
                self.add("body", "cannot be read");
                Err(Error::Invalid(self))
            }
            _ => Err(Error::Invalid(self)),
        }
    }
}

impl std::fmt::Display for Problems {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, Problem { field, problem }) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(f, "{separator}{field}: {problem}")?;
        }
        Ok(())
    }
}

/// Maps [`Error::NotFound`] to `None`.
pub fn found<T>(read: Result<T>) -> Result<Option<T>> {
    match read {
        Ok(found) => Ok(Some(found)),
        Err(Error::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

pub fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let line = cause.to_string();
        // A cause that repeats the text and adds to it replaces it.
        if line.starts_with(&text) {
            text = line;
        } else if !text.ends_with(&line) {
            text.push_str(": ");
            text.push_str(&line);
        }
        source = cause.source();
    }
    text
}
