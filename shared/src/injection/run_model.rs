//! The LLM of a run.

use super::Model;
use crate::{
    Deadline,
    accounts::LlmInUse,
    clients::{
        self, Llm,
        llm::{Completion, Message, Request},
    },
};

/// Tokens.
const LONGEST_ANSWER: u32 = 8_192;

/// The LLM of a run, on the organization's or the platform's account.
pub struct LlmModel<'a> {
    pub llm: &'a Llm,
    pub account: LlmInUse<'a>,
    /// Overrides the account's model.
    pub model: Option<&'a str>,
}

impl Model for LlmModel<'_> {
    async fn answer(
        &self,
        messages: &[Message],
        temperature: f64,
        deadline: Deadline,
    ) -> Result<Completion, clients::Error> {
        let request =
            Request { model: self.model, temperature, max_tokens: Some(LONGEST_ANSWER), ..Request::new(messages) };
        self.llm.complete(&self.account.now().await?, &request, deadline).await
    }
}
