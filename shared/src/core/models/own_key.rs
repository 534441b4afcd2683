//! An organization's own accounts at services, used in place of the platform's.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{SecretId, Timestamp};
use crate::{described::Described, names::Names};

/// A service at which an organization may have an account of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Described, Names)]
#[serde(rename_all = "snake_case")]
pub enum KeyService {
    Vapi,
    Llm,
}

/// The reference to a stored key, which is only in Secrets Manager.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnKey {
    /// End of the secret's name. Each stored key gets a new one, so a secret's content never changes.
    pub id: SecretId,
    pub updated_at: Timestamp,
    /// The LLM account compares the words of agents with the effects of their tools.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub verifies_claims: bool,
    #[serde(flatten)]
    pub settings: KeySettings,
}

/// The parts of a key that are no secrets, to be sent again with the next key. Keys of earlier versions have none.
#[declare::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, Described)]
pub struct KeySettings {
    /// Of `llm`.
    pub base_url: Option<String>,
    /// Of `llm`.
    pub model: Option<String>,
    /// Of an OAuth client.
    pub token_url: Option<String>,
    /// Of an OAuth client.
    pub scope: Option<String>,
    /// Of an OAuth client.
    pub audience: Option<String>,
    /// Of `vapi`; absent: unknown.
    pub has_webhook_bearer: Option<bool>,
}

/// `organizations.own_keys`: `{"vapi": {"id", "updated_at"}, "llm": …}`. Absent services use the platform's account.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnKeys {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    vapi: Option<OwnKey>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    llm: Option<OwnKey>,
    /// Services known only to a newer version.
    #[serde(flatten)]
    others: BTreeMap<String, Value>,
}

impl OwnKeys {
    pub fn get(&self, service: KeyService) -> Option<&OwnKey> {
        match service {
            KeyService::Vapi => self.vapi.as_ref(),
            KeyService::Llm => self.llm.as_ref(),
        }
    }

    #[must_use]
    pub fn with(mut self, service: KeyService, key: Option<OwnKey>) -> Self {
        match service {
            KeyService::Vapi => self.vapi = key,
            KeyService::Llm => self.llm = key,
        }
        self
    }
}
