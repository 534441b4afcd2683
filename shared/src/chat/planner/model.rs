//! The model that a planner asks.

use futures_util::{StreamExt, pin_mut};

use crate::{
    Deadline,
    accounts::LlmModel,
    clients::{
        self, Failure, UpstreamService,
        llm::{Completion, CompletionRequest, Delta},
    },
};

pub type Tokens<'a> = &'a mut (dyn FnMut(&str) + Send);

pub trait PlannerModel: Sync {
    /// Returns the whole answer. If `tokens` is given, it receives the parts as they arrive.
    fn answer(
        &self,
        request: &CompletionRequest<'_>,
        tokens: Option<Tokens<'_>>,
        deadline: Deadline,
    ) -> impl Future<Output = Result<Completion, clients::Error>> + Send;
}

impl PlannerModel for LlmModel<'_> {
    async fn answer(
        &self,
        request: &CompletionRequest<'_>,
        tokens: Option<Tokens<'_>>,
        deadline: Deadline,
    ) -> Result<Completion, clients::Error> {
        let Some(tokens) = tokens else { return self.complete(request, deadline).await };
        let request = CompletionRequest { model: self.model, ..*request };
        let deltas = self.llm.stream(&self.account.now().await?, &request, deadline).await?;
        pin_mut!(deltas);
        while let Some(delta) = deltas.next().await {
            match delta? {
                Delta::Text(text) => tokens(&text),
                Delta::Done(completion) => return Ok(*completion),
            }
        }
        Err(clients::Error::new(
            UpstreamService::Llm,
            Failure::Undecodable("the stream ended without an answer".into()),
        ))
    }
}
