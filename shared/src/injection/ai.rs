//! A prompt with tools in one call, for an automation written in Rust that needs nothing written down in between.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{
    CallContext, Dialogue, Ended, Ending, FeedbackLoop, FinalFormat, Flow, Journal, Model, ToolDefinition,
    ToolExecutor, system_prompt,
};
use crate::{
    Deadline, Error,
    clients::{
        self, Llm,
        llm::{Account, Completion, Message, Request},
    },
    models::{OrganizationId, RunAnswer, RunId, RunLimits, RunPrompt, RunReply, RunStatus, Spent, Timestamp, UserId},
};

/// What an answer may hold at most, in tokens.
const LONGEST_ANSWER: u32 = 8_192;

/// Less than this is no time for a step.
const STEP_NEEDS: Duration = Duration::from_secs(1);

/// An LLM as a run uses it.
pub struct LlmModel<'a> {
    pub llm: &'a Llm,
    pub account: &'a Account,
    /// In place of the account's or the platform's.
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
        self.llm.complete(self.account, &request, deadline).await
    }
}

/// A prompt with tools.
pub struct WithTools<'a, M> {
    pub client: &'a M,
    pub base_prompt: &'a str,
    pub user_prompt: &'a str,
    /// What may be called; `finalResponse` need not be among them.
    pub tools: Vec<ToolDefinition>,
    /// JSON schema of the result; any JSON without one.
    pub schema: Option<&'a Value>,
    pub limits: RunLimits,
    pub organization: OrganizationId,
    pub user: Option<&'a UserId>,
    pub deadline: Deadline,
}

/// What came of it.
#[derive(Debug)]
pub struct AiResult<T> {
    pub value: T,
    /// [`RunStatus::Completed`], or the limit at which this was the best answer.
    pub status: RunStatus,
    pub spent: Spent,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum AiError {
    #[error("the schema of the result cannot be used")]
    Schema(#[source] Error),
    #[error("{}", .0.error.as_deref().unwrap_or("the run ended without a result"))]
    NoResult(Ending),
    #[error("there was not enough time")]
    OutOfTime,
    /// The model, or something of ours, is out of reach.
    #[error("{0}")]
    Outage(#[source] Error),
    #[error("the result fits the schema and not the type that was asked for")]
    Type(#[source] serde_json::Error),
}

/// Nothing is written down; what was begun and not ended is lost with the process.
struct Unwritten;

impl Journal for Unwritten {
    async fn answered(&mut self, _: &RunAnswer, _: &Dialogue) -> crate::Result<Flow> {
        Ok(Flow::GoOn)
    }

    async fn replied(&mut self, _: &RunReply, _: &Dialogue) -> crate::Result<Flow> {
        Ok(Flow::GoOn)
    }
}

/// Asks the model, runs the tools it calls and corrects what it gets wrong, until it gives a result that fits the schema.
pub async fn use_tools_with_ai<T: DeserializeOwned, M: Model>(asked: WithTools<'_, M>) -> Result<AiResult<T>, AiError> {
    let format = FinalFormat::new(asked.schema).map_err(AiError::Schema)?;
    let mut executor = ToolExecutor::default();
    for tool in asked.tools {
        executor.offer(tool);
    }
    let prompt = RunPrompt {
        system_prompt: system_prompt(asked.base_prompt, executor.offered()),
        prompt: asked.user_prompt.to_owned(),
        schema: None,
        tools: Vec::new(),
    };
    let mut dialogue = Dialogue::new(&prompt);
    let feedback = FeedbackLoop {
        model: asked.client,
        executor: &executor,
        format: &format,
        limits: asked.limits,
        ends_at: Timestamp::now().plus(Duration::from_secs(asked.limits.seconds)),
        context: CallContext {
            organization: asked.organization,
            user: asked.user,
            run: RunId::generate(),
            deadline: asked.deadline,
        },
        step_needs: STEP_NEEDS,
    };
    match feedback.run(&mut dialogue, &mut Unwritten).await {
        Ended::Over(Ending { status, result: Some(result), .. }) => {
            let value = serde_json::from_value(result).map_err(AiError::Type)?;
            Ok(AiResult { value, status, spent: *dialogue.spent() })
        }
        Ended::Over(ending) => Err(AiError::NoResult(ending)),
        Ended::OutOfTime | Ended::Stopped => Err(AiError::OutOfTime),
        Ended::Outage(error) => Err(AiError::Outage(error)),
    }
}
