//! Receipts of calls, the check of the agent's words, and the events that calls were answered or ended.

use super::{Platform, Result};
use crate::{
    automation::{AnsweredCallQueue, AnsweredCalls, EndedCallQueue, EndedCalls},
    receipts::Receipts,
    spoken_claims::ClaimChecks,
    store::Calls,
};

impl Platform {
    pub fn receipts(&self) -> Result<Receipts> {
        self.database().map(Receipts::new)
    }

    pub fn ended_call_queue(&self) -> Result<EndedCallQueue> {
        self.scheduled_queue().map(EndedCallQueue::new)
    }

    pub fn answered_call_queue(&self) -> Result<AnsweredCallQueue> {
        self.scheduled_queue().map(AnsweredCallQueue::new)
    }

    pub fn answered_calls(&self) -> Result<AnsweredCalls> {
        Ok(AnsweredCalls::new(Calls::new(self.database()?), self.dispatch()?, self.history()?))
    }

    pub fn claim_checks(&self) -> Result<ClaimChecks> {
        Ok(ClaimChecks::new(self.database()?, self.llm()?, self.llm_model(), self.accounts()?, self.budgets()?.clone()))
    }

    pub fn ended_calls(&self) -> Result<EndedCalls> {
        Ok(EndedCalls::new(self.receipts()?, self.dispatch()?, self.ended_call_queue()?, self.history()?))
    }
}
