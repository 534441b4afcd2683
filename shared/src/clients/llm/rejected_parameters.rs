//! Learns which parameters a model rejects.
//!
//! Reasoning models take no temperature, and have another name for `max_tokens`; Mistral takes no `stream_options`. The first
//! rejection is remembered.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, PoisonError},
};

use super::{
    super::{Error, ModelParameter, Reason},
    Account, Body,
};

type AddressAndModel = (String, String);

#[derive(Clone, Default)]
pub(super) struct RejectedByModel(Arc<Mutex<HashMap<AddressAndModel, HashSet<ModelParameter>>>>);

impl RejectedByModel {
    pub(super) fn of(&self, account: &Account, model: &str) -> HashSet<ModelParameter> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&(account.base_url.clone(), model.to_owned())).cloned().unwrap_or_default()
    }

    /// Remembers a rejected parameter. Returns whether to retry without it: only if the request had it.
    pub(super) fn learn(&self, account: &Account, body: &Body<'_>, refused: &Error) -> bool {
        let Some(Reason::Unsupported(parameter)) = refused.reason() else { return false };
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let without = known.entry((account.base_url.clone(), body.model.to_owned())).or_default();
        let is_new = match parameter {
            ModelParameter::Temperature => body.temperature.is_some(),
            ModelParameter::MaxTokensByThatName => body.max_tokens.is_some(),
            ModelParameter::MaxTokens => body.max_tokens.or(body.max_completion_tokens).is_some(),
            ModelParameter::StreamOptions => body.stream_options.is_some(),
        };
        without.insert(parameter);
        if is_new {
            tracing::info!(
                llm.model = body.model,
                "a model refused a parameter; the request is repeated without it: {parameter:?}"
            );
        }
        is_new
    }
}
