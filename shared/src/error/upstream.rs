//! How a call to somebody else's service fails.

use std::{fmt, time::Duration};

/// Whose service failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    Vapi,
    /// The control URL of a live call of VAPI's.
    CallControl,
    Twilio,
    Pipedream,
    /// An OpenAI-compatible LLM gateway: the platform's, or an organization's own.
    Llm,
    SecretsManager,
    Sqs,
    /// `EventBridge` Scheduler.
    Scheduler,
    /// An address a tool's author or a model chose.
    Outbound,
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Vapi => "VAPI",
            Self::CallControl => "VAPI's call control",
            Self::Twilio => "Twilio",
            Self::Pipedream => "Pipedream",
            Self::Llm => "the LLM",
            Self::SecretsManager => "Secrets Manager",
            Self::Sqs => "SQS",
            Self::Scheduler => "EventBridge Scheduler",
            Self::Outbound => "the address called",
        })
    }
}

/// What went wrong, told apart by what it says of the effect.
#[derive(Debug)]
pub enum Failure {
    /// No connection was made: nothing left the building.
    Unreachable,
    /// Our own guard refused the address; the sentence says why. Nothing left the building.
    Refused(String),
    /// No answer in time, or the connection broke after the request was sent.
    NoAnswer,
    /// The connection broke in the middle of the answer.
    BrokenOff,
    /// 429, or what a service says means as much: not processed.
    RateLimited,
    /// Any other status below 500: mostly a 4xx, with which the service declined ([`StatusEffect`]). `excerpt` is cleaned; [`Error::said`] tells
    /// who may read it.
    Rejected { status: u16, excerpt: String },
    /// 5xx, or what a service says means as much: it may or may not have acted.
    Broken { status: u16, excerpt: String },
    /// A success whose body we cannot use.
    Undecodable(String),
}

/// What the status of an answer says of the effect of its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusEffect {
    /// 2xx; 302 and 303, with which many services answer a form: the place of its result.
    Happened,
    /// 4xx: the service understood and declined.
    Refused,
    /// Another redirect, which may come before or after the service acted; 408, 409 and 425, which speak of another request of the
    /// same kind or of time; 5xx; and what is no status at all.
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

/// Why a service declined, where it tells and somebody can do something about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The key, or the client that asked for a token, is not known or not allowed to do this.
    Credentials,
    /// The account is used up.
    NoCredit,
    /// The conversation is longer than the model takes.
    TooLong,
    /// The service does not want to talk of this.
    Moderated,
    /// No such model, or nothing of the kind at this address.
    UnknownModel,
    /// The model takes no such parameter.
    Unsupported(Parameter),
}

/// What some models take, and others refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parameter {
    Temperature,
    MaxTokens,
    /// `max_tokens`, by its former name only.
    MaxTokensByThatName,
}

/// A failed call.
#[derive(Debug)]
pub struct Error {
    pub service: Service,
    pub failure: Failure,
    pub(crate) reason: Option<Reason>,
    pub(crate) retry_after: Option<Duration>,
    /// An earlier try of the same request may have had its effect.
    pub(crate) acted_before: bool,
    pub(crate) source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    pub fn new(service: Service, failure: Failure) -> Self {
        Self { service, failure, reason: None, retry_after: None, acted_before: false, source: None }
    }

    pub(crate) fn because(
        service: Service,
        failure: Failure,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self { source: Some(source.into()), ..Self::new(service, failure) }
    }

    /// The HTTP status the service answered with, if it did.
    pub const fn status(&self) -> Option<u16> {
        match self.failure {
            Failure::Rejected { status, .. } | Failure::Broken { status, .. } => Some(status),
            Failure::RateLimited => Some(429),
            _ => None,
        }
    }

    /// In its words why the service declined, cleaned of secrets, of personal data and of what it was sent. None for what it says
    /// of our credentials, which is nobody's business.
    pub fn said(&self) -> Option<&str> {
        match &self.failure {
            Failure::Rejected { status, excerpt } if !matches!(status, 401 | 403) && !excerpt.is_empty() => {
                Some(excerpt)
            }
            _ => None,
        }
    }

    /// Why the service declined, if it said so in words that we know.
    pub const fn reason(&self) -> Option<Reason> {
        self.reason
    }

    /// Whether the request may have had its effect although we know nothing of it.
    pub const fn effect_possible(&self) -> bool {
        let by_this_try = match self.failure {
            Failure::NoAnswer | Failure::BrokenOff | Failure::Broken { .. } | Failure::Undecodable(_) => true,
            Failure::Rejected { status, .. } => !matches!(StatusEffect::of(status), StatusEffect::Refused),
            Failure::Unreachable | Failure::Refused(_) | Failure::RateLimited => false,
        };
        by_this_try || self.acted_before
    }

    /// Whether the same request may be sent again if sending it twice does no harm.
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

    /// Whether the same request may be sent again although it must not act twice.
    pub(crate) const fn never_processed(&self) -> bool {
        matches!(self.failure, Failure::Unreachable | Failure::RateLimited)
    }

    /// How long the service asked us to wait before the same request is sent again; it may be any length.
    pub const fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Status for whoever called us: 504 for silence, 503 when trying again helps, 502 otherwise.
    pub(crate) const fn status_for_our_caller(&self) -> u16 {
        match self.failure {
            Failure::NoAnswer => 504,
            Failure::Unreachable | Failure::RateLimited => 503,
            _ => 502,
        }
    }

    /// Whether its reasons are for whoever works with it through us.
    const fn is_told(&self) -> bool {
        matches!(self.service, Service::Vapi | Service::CallControl | Service::Twilio | Service::Pipedream)
    }

    /// A sentence anybody may read: the service, the kind of failure, and of a request that VAPI, Twilio or Pipedream refused why.
    pub fn public(&self) -> String {
        let service = self.service;
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
        }
    }
}

/// For the log: what the service said too, cut short.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.public())?;
        match &self.failure {
            // It stands there already.
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
