//! Why a tool cannot be called: sentences for its author and for a model.

use crate::models::{Role, folded_name};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unavailable {
    NotFound,
    /// The tool has changed since it was offered.
    Changed,
    /// The tool works in a phone call only. The reason follows the words "this tool".
    NeedsCall(String),
    NotConnected {
        service: String,
        /// If the service refuses the account: the next step, a clause.
        renewal: Option<String>,
    },
    Unreachable {
        service: String,
    },
    /// This program cannot read the tool's row, but another version may.
    Unreadable,
    /// No version can make a tool of the row.
    Unusable,
    NeedsRole(Role),
}

impl Unavailable {
    /// The problem with a reference, to follow the name of its field.
    pub fn for_author(&self) -> String {
        match self {
            Self::NotFound => "is not a tool of this organization, of a service, or built in; search for one (GET \
                               /api/{slug}/discover/search?q=…)"
                .to_owned(),
            Self::Changed => "is not the present version of the tool".to_owned(),
            Self::NeedsCall(reason) => {
                format!("{reason}, so it works in phone calls only; leave it out, or give it to an agent")
            }
            Self::NotConnected { service, renewal: None } => format!(
                "needs an account at {service}; an administrator connects one (POST /api/{{slug}}/services/{}/connect)",
                folded_name(service)
            ),
            Self::NotConnected { service, renewal: Some(renewal) } => {
                format!("has an account at {service} that does not work any more; {renewal}")
            }
            Self::Unreachable { service } => {
                format!("cannot be used just now: whether {service} is connected cannot be looked up; try again soon")
            }
            Self::Unreadable => {
                "was written by a newer version of this service, or is damaged; try again in a few minutes".to_owned()
            }
            Self::Unusable => "does not work as the catalogue describes it, which the operator must correct".to_owned(),
            Self::NeedsRole(least) => format!("needs the role {} in this organization", least.as_str()),
        }
    }

    pub fn for_model(&self) -> String {
        let sentence = match self {
            Self::NotFound => "this tool was deleted; do without it.",
            Self::Changed => "this tool was changed while the run was under way; do without it.",
            Self::NeedsCall(_) => "this tool works in phone calls only; do without it.",
            Self::NotConnected { service, .. } => {
                return format!("no account at {service} is connected that works; do without it, and say so.");
            }
            Self::Unusable => "this tool cannot be used; do without it.",
            Self::Unreadable | Self::Unreachable { .. } => "this tool cannot be used just now; do without it.",
            Self::NeedsRole(least) => {
                return format!("it needs the role {} in this organization, which the person has not.", least.as_str());
            }
        };
        sentence.to_owned()
    }
}
