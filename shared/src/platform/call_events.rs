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
    AnsweredCalls = Ok(AnsweredCalls {
        calls: platform.part()?,
        dispatch: platform.dispatch()?,
        kept: platform.history()?,
    });
    ClaimChecks = Ok(ClaimChecks {
        llm: platform.llm()?,
        model: platform.llm_model(),
        accounts: platform.accounts()?,
        budgets: platform.part()?,
        quotas: platform.part()?,
        receipts: platform.part()?,
        calls: platform.part()?,
        attachments: platform.part()?,
        tools: platform.part()?,
    });
    EndedCallQueue = platform.scheduled_queue().map(EndedCallQueue::new);
    EndedCalls = Ok(EndedCalls {
        calls: platform.part()?,
        receipts: platform.part()?,
        dispatch: platform.dispatch()?,
        queue: platform.part()?,
        kept: platform.history()?,
    });
    FailedTools = Ok(FailedTools {
        executions: platform.part()?,
        tools: platform.part()?,
        quotas: platform.part()?,
        kept: platform.history()?,
    });
}
