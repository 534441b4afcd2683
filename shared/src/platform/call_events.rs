//! Receipts of calls, the check of the agent's words, and the events of calls: they were answered or ended, or a tool failed.

use super::{
    Platform, Result,
    parts::{PlatformPart, parts},
};
use crate::{
    automation::{AnsweredCallQueue, AnsweredCalls, EndedCallQueue, EndedCalls, FailedTools},
    execution::Executor,
    spoken_claims::ClaimChecks,
};

impl Platform {
    /// Executes tools in calls, and announces those that fail.
    pub fn executor_in_calls(&self) -> Result<Executor> {
        Ok(Executor { failed_tools: Some(self.scheduled_queue()?), ..self.executor(self.idempotency()?)? })
    }
}

parts! { platform:
    AnsweredCallQueue = platform.scheduled_queue().map(AnsweredCallQueue::new);
    AnsweredCalls = Ok(AnsweredCalls::new(platform.part()?, platform.dispatch()?, platform.history()?));
    ClaimChecks = Ok(ClaimChecks::new(
        platform.database()?,
        platform.llm()?,
        platform.llm_model(),
        platform.accounts()?,
        platform.budgets()?.clone(),
    ));
    EndedCallQueue = platform.scheduled_queue().map(EndedCallQueue::new);
    EndedCalls = Ok(EndedCalls::new(
        platform.part()?,
        platform.part()?,
        platform.dispatch()?,
        platform.part()?,
        platform.history()?,
    ));
    FailedTools =
        Ok(FailedTools::new(platform.part()?, platform.part()?, platform.part()?, platform.history()?));
}
