//! Receipts of calls, the check of the agent's words, and the events of calls: they were answered or ended, or a tool failed.

use super::{Platform, Result};
use crate::{
    automation::{AnsweredCallQueue, AnsweredCalls, EndedCallQueue, EndedCalls, FailedTools},
    execution::Executor,
    receipts::Receipts,
    spoken_claims::ClaimChecks,
    store::{Calls, Executions, Quotas, Tools},
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

    /// Executes tools in calls, and announces those that fail.
    pub fn executor_in_calls(&self) -> Result<Executor> {
        Ok(Executor { failed_tools: Some(self.scheduled_queue()?), ..self.executor(self.idempotency()?)? })
    }

    pub fn failed_tools(&self) -> Result<FailedTools> {
        let database = self.database()?;
        let (executions, tools) = (Executions::new(database), Tools::new(database));
        Ok(FailedTools::new(executions, tools, Quotas::new(database), self.history()?))
    }

    pub fn claim_checks(&self) -> Result<ClaimChecks> {
        Ok(ClaimChecks::new(self.database()?, self.llm()?, self.llm_model(), self.accounts()?, self.budgets()?.clone()))
    }

    pub fn ended_calls(&self) -> Result<EndedCalls> {
        let (calls, queue) = (Calls::new(self.database()?), self.ended_call_queue()?);
        Ok(EndedCalls::new(calls, self.receipts()?, self.dispatch()?, queue, self.history()?))
    }
}
