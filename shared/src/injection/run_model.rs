//! The LLM of a run, on the organization's or the platform's account.

use super::Model;
use crate::{
    Deadline,
    accounts::LlmModel,
    clients::{
        self,
        llm::{Completion, CompletionRequest, Message},
    },
};

/// Tokens.
const LONGEST_ANSWER: u32 = 8_192;

impl Model for LlmModel<'_> {
    async fn answer(
        &self,
        messages: &[Message],
        temperature: f64,
        deadline: Deadline,
    ) -> Result<Completion, clients::Error> {
        let request =
            CompletionRequest { temperature, max_tokens: Some(LONGEST_ANSWER), ..CompletionRequest::new(messages) };
        self.complete(&request, deadline).await
    }
}
