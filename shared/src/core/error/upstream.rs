//! Failures of calls to external services.

use std::{fmt, time::Duration};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpstreamService {
    Vapi,
    CallControl,
    Twilio,
    Pipedream,
    /// An OpenAI-compatible LLM gateway: the platform's, or an organization's own.
    Llm,
    SecretsManager,
    Sqs,
    Scheduler,
    /// An address chosen by a tool's author or a model.
    Outbound,
}

impl UpstreamService {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Vapi => "VAPI",
            Self::CallControl => "VAPI's call control",
            Self::Twilio => "Twilio",
            Self::Pipedream => "Pipedream",
            Self::Llm => "the LLM",
            Self::SecretsManager => "Secrets Manager",
            Self::Sqs => "SQS",
            Self::Scheduler => "EventBridge Scheduler",
            Self::Outbound => "the address called",
        }
    }
}

impl fmt::Display for UpstreamService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The kind of failure, distinguished by whether the effect may have happened.
#[derive(Debug)]
pub enum Failure {
    /// No connection was made: nothing was sent.
    Unreachable,
    /// Our own guard refused the address, with a sentence. Nothing was sent.
    Refused(String),
    /// No answer in time, or the connection broke after the request was sent.
    NoAnswer,
    /// The connection broke in the middle of the answer.
    BrokenOff,
    /// 429 or its equivalent: not processed.
    RateLimited,
    /// Another status below 500, mostly a 4xx ([`StatusEffect`]). `excerpt` is cleaned; see [`Error::said`].
    Rejected { status: u16, excerpt: String },
    /// 5xx or its equivalent: the service may have acted.
    Broken { status: u16, excerpt: String },
    /// A success with an unusable body.
    Undecodable(String),
    /// An answer of more than this many bytes.
    TooLarge(usize),
}

/// The effect of a request, judged by the status of its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusEffect {
    /// 2xx; also 302 and 303, with which many services answer a form.
    Happened,
    /// 4xx: the service understood and declined.
    Refused,
    /// Other redirects; 408, 409 and 425, which concern another request or time; 5xx; invalid statuses.
    Unknown,
}

impl StatusEffect {
    pub const fn of(status: u16) -> Self {
        match status {
            200..=299 | 302 | 303 => Self::Happened,
            408 | 409 | 425 => Self::Unknown,
            400..=499 => Self::Refused,
            _ => Self::Unknown,
        }
    }
}

/// Why a service declined, where the caller can act on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The key or client is unknown, or lacks a permission.
    Credentials,
    NoCredit,
    /// The conversation exceeds the model's context.
    TooLong,
    /// The service's moderation refused the content.
    Moderated,
    /// No such model, or another kind of service at this address.
    UnknownModel,
    Unsupported(ModelParameter),
}

/// Parameters that only some models support.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ModelParameter {
    Temperature,
    MaxTokens,
    /// `max_tokens`, under this former name only.
    MaxTokensByThatName,
    StreamOptions,
}

#[derive(Debug)]
pub struct Error {
    pub service: UpstreamService,
    pub failure: Failure,
    /// Of a request with the deployment's own account.
    pub of_platform: bool,
    pub(crate) reason: Option<Reason>,
    pub(crate) retry_after: Option<Duration>,
    /// An earlier attempt of the same request may have had its effect.
    pub(crate) acted_before: bool,
    pub(crate) source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    pub fn new(service: UpstreamService, failure: Failure) -> Self {
        Self {
            service,
            failure,
            of_platform: false,
            reason: None,
            retry_after: None,
            acted_before: false,
            source: None,
        }
    }

    pub(crate) fn because(
        service: UpstreamService,
        failure: Failure,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self { source: Some(source.into()), ..Self::new(service, failure) }
    }

    pub const fn status(&self) -> Option<u16> {
        match self.failure {
            Failure::Rejected { status, .. } | Failure::Broken { status, .. } => Some(status),
            Failure::RateLimited => Some(429),
            _ => None,
        }
    }

    /// The service's reason, cleaned of secrets, personal data and our input. `None` if it concerns our credentials.
    pub fn said(&self) -> Option<&str> {
        match &self.failure {
            Failure::Rejected { status, excerpt } if !matches!(status, 401 | 403) && !excerpt.is_empty() => {
                Some(excerpt)
            }
            _ => None,
        }
    }

    pub const fn reason(&self) -> Option<Reason> {
        self.reason
    }

    pub const fn effect_possible(&self) -> bool {
        let by_this_try = match self.failure {
            Failure::NoAnswer
            | Failure::BrokenOff
            | Failure::Broken { .. }
            | Failure::Undecodable(_)
            | Failure::TooLarge(_) => true,
            Failure::Rejected { status, .. } => !matches!(StatusEffect::of(status), StatusEffect::Refused),
            Failure::Unreachable | Failure::Refused(_) | Failure::RateLimited => false,
        };
        by_this_try || self.acted_before
    }

    /// Whether an idempotent request may be repeated.
    pub const fn transient(&self) -> bool {
        matches!(
            self.failure,
            Failure::Unreachable
                | Failure::NoAnswer
                | Failure::BrokenOff
                | Failure::RateLimited
                | Failure::Broken { .. }
        )
    }

    /// Whether the service refuses the deployment's own key, or finds no credit behind it. Only the operator can repair that.
    pub const fn refuses_platform(&self) -> bool {
        let by_status = matches!(self.failure, Failure::Rejected { status: 401..=403, .. });
        self.of_platform
            && match self.reason {
                Some(reason) => matches!(reason, Reason::Credentials | Reason::NoCredit),
                None => by_status,
            }
    }

    /// Whether the same request may succeed later, without a change by the organization.
    pub const fn is_outage(&self) -> bool {
        self.transient() || self.refuses_platform()
    }

    /// Whether a request may be repeated although it must not act twice.
    pub(crate) const fn never_processed(&self) -> bool {
        matches!(self.failure, Failure::Unreachable | Failure::RateLimited)
    }

    pub const fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// The status for our caller: 504 for silence, 503 if a retry may help, 502 otherwise.
    pub(crate) const fn status_for_our_caller(&self) -> u16 {
        match self.failure {
            Failure::NoAnswer => 504,
            Failure::Unreachable | Failure::RateLimited => 503,
            _ => 502,
        }
    }

    const fn is_told(&self) -> bool {
        matches!(
            self.service,
            UpstreamService::Vapi | UpstreamService::CallControl | UpstreamService::Twilio | UpstreamService::Pipedream
        )
    }

    /// A public sentence, with VAPI's, Twilio's or Pipedream's reason for a refusal.
    pub fn public(&self) -> String {
        let service = self.service;
        if self.refuses_platform() {
            return format!(
                "{service} refused the platform's account, which its operator has to repair; try again later"
            );
        }
        if let Some(reason) = self.reason {
            return match reason {
                Reason::Credentials => format!("{service} refused our credentials; check its key"),
                Reason::NoCredit => format!("{service}'s account has no credit left; add some, or store another key"),
                Reason::TooLong => {
                    "the conversation is too long for the model; shorten it, or choose a model that takes more".into()
                }
                Reason::Moderated => format!("{service} refused the conversation by its rules; word it otherwise"),
                Reason::UnknownModel => {
                    format!("{service} has no such model, or is not at this address; check model and base_url")
                }
                Reason::Unsupported(_) => format!("{service} refused a parameter of the request; choose another model"),
            };
        }
        match &self.failure {
            Failure::Unreachable => format!("{service} cannot be reached; try again in a moment"),
            Failure::Refused(why) => why.clone(),
            Failure::NoAnswer => format!("{service} did not answer in time"),
            Failure::BrokenOff => format!("{service} broke off in the middle of its answer; try again in a moment"),
            Failure::RateLimited => format!("{service} allows no more requests just now; try again in a moment"),
            Failure::Rejected { status: 401 | 403, .. } => format!("{service} refused our credentials; check its key"),
            Failure::Rejected { status, .. } => match self.said().filter(|_| self.is_told()) {
                Some(said) => format!("{service} refused the request (status {status}): {said}"),
                None => format!("{service} refused the request (status {status})"),
            },
            Failure::Broken { status, .. } => format!("{service} failed (status {status})"),
            Failure::Undecodable(_) => format!("{service} gave an answer that cannot be read"),
            Failure::TooLarge(limit) => format!("{service} gave an answer of more than {limit} bytes"),
        }
    }
}

/// For the log, with the service's words, cut.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.public())?;
        match &self.failure {
            // The words are included already.
            Failure::Rejected { .. } if self.is_told() && self.said().is_some() => Ok(()),
            Failure::Rejected { excerpt, .. } | Failure::Broken { excerpt, .. } | Failure::Undecodable(excerpt)
                if !excerpt.is_empty() =>
            {
                write!(f, ": {excerpt}")
            }
            _ => Ok(()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
