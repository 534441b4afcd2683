//! What is asked.

use futures_util::{StreamExt, pin_mut};

use crate::{
    Deadline,
    accounts::LlmInUse,
    clients::{
        self, Failure, Llm, Service,
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

/// A model of an account's.
pub struct LlmModel<'a> {
    pub llm: &'a Llm,
    pub account: LlmInUse<'a>,
    /// The account's, if absent.
    pub model: Option<&'a str>,
}

impl PlannerModel for LlmModel<'_> {
    async fn answer(
        &self,
        request: &Request<'_>,
        tokens: Option<Tokens<'_>>,
        deadline: Deadline,
    ) -> Result<Completion, clients::Error> {
        let request = Request { model: self.model, ..*request };
        let account = self.account.now().await?;
        let Some(tokens) = tokens else { return self.llm.complete(&account, &request, deadline).await };
        let deltas = self.llm.stream(&account, &request, deadline).await?;
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
