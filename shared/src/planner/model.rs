//! What is asked.

use futures_util::{StreamExt, pin_mut};

use crate::{
    Deadline,
    accounts::LlmModel,
    clients::{
        self, Failure, Service,
        llm::{Completion, Delta, Request},
    },
};

/// Takes parts of an answer.
pub type Tokens<'a> = &'a mut (dyn FnMut(&str) + Send);

/// A model that answers.
pub trait PlannerModel: Sync {
    /// The answer as a whole; its parts go to `tokens` while it comes, if somebody wants them.
    fn answer(
        &self,
        request: &Request<'_>,
        tokens: Option<Tokens<'_>>,
        deadline: Deadline,
    ) -> impl Future<Output = Result<Completion, clients::Error>> + Send;
}

impl PlannerModel for LlmModel<'_> {
    async fn answer(
        &self,
        request: &Request<'_>,
        tokens: Option<Tokens<'_>>,
        deadline: Deadline,
    ) -> Result<Completion, clients::Error> {
        let Some(tokens) = tokens else { return self.complete(request, deadline).await };
        let request = Request { model: self.model, ..*request };
        let deltas = self.llm.stream(&self.account.now().await?, &request, deadline).await?;
        pin_mut!(deltas);
        while let Some(delta) = deltas.next().await {
            match delta? {
                Delta::Text(text) => tokens(&text),
                Delta::Done(completion) => return Ok(*completion),
            }
        }
        Err(clients::Error::new(Service::Llm, Failure::Undecodable("the stream ended without an answer".into())))
    }
}
