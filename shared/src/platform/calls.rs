//! What becomes of calls: receipts, the events of their ends, and the check of the agent's words.

use super::{Platform, Result};
use crate::{
    automation::{EndedCallQueue, EndedCalls},
    claims::ClaimChecks,
    receipts::Receipts,
};

impl Platform {
    pub fn receipts(&self) -> Result<Receipts> {
        self.database().map(Receipts::new)
    }

    pub fn ended_call_queue(&self) -> Result<EndedCallQueue> {
        self.scheduled_queue().map(EndedCallQueue::new)
    }

    pub fn ended_calls(&self) -> Result<EndedCalls> {
        Ok(EndedCalls::new(self.receipts()?, self.dispatch()?, self.ended_call_queue()?, self.history()?))
    }

    pub fn claim_checks(&self) -> Result<ClaimChecks> {
        Ok(ClaimChecks::new(self.database()?, self.llm()?, self.llm_model(), self.accounts()?, self.budgets()?.clone()))
    }
}
