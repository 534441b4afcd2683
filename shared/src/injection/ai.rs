//! A prompt with tools in one call, for an automation written in Rust that needs nothing written down in between.

use std::{convert::Infallible, ops::ControlFlow, sync::Arc, time::Duration};

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{
    Dialogue, Ended, Ending, FeedbackLoop, FinalFormat, Journal, Model, feedback::SAVE_RESERVE, system_prompt,
};
use crate::{
    Deadline, Error,
    accounts::LlmInUse,
    clients::{
        self, Llm,
        llm::{Completion, Message, Request},
    },
    models::{RunAnswer, RunLimits, RunPrompt, RunReply, RunStatus, Spent, Timestamp},
    tool::{CallContext, Tool, Toolbox},
};

/// What an answer may hold at most, in tokens.
const LONGEST_ANSWER: u32 = 8_192;

/// Less than this is no time for a step.
const STEP_NEEDS: Duration = SAVE_RESERVE.saturating_add(Duration::from_secs(5));

/// An LLM as a run uses it.
pub struct LlmModel<'a> {
    pub llm: &'a Llm,
    pub account: LlmInUse<'a>,
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
        self.llm.complete(&self.account.now().await?, &request, deadline).await
    }
}

/// A prompt with tools.
pub struct WithTools<'a, M> {
    pub client: &'a M,
    pub base_prompt: &'a str,
    pub user_prompt: &'a str,
    /// What may be called beside `finalResponse`.
    pub tools: Vec<Arc<dyn Tool>>,
    /// JSON schema of the result; any JSON without one.
    pub schema: Option<&'a Value>,
    pub limits: RunLimits,
    /// The effects of tools happen once for its subject: whoever asks again for the same must name the same.
    pub context: CallContext<'a>,
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
struct NoJournal;

impl Journal for NoJournal {
    type Stop = Infallible;

    async fn answered(&mut self, _: &RunAnswer, _: &Dialogue) -> crate::Result<ControlFlow<Infallible>> {
        Ok(ControlFlow::Continue(()))
    }

    async fn replied(&mut self, _: &RunReply, _: &Dialogue) -> crate::Result<ControlFlow<Infallible>> {
        Ok(ControlFlow::Continue(()))
    }
}

/// Asks the model, runs the tools it calls and corrects what it gets wrong, until it gives a result that fits the schema.
pub async fn use_tools_with_ai<T: DeserializeOwned, M: Model>(
    request: WithTools<'_, M>,
) -> Result<AiResult<T>, AiError> {
    let format = FinalFormat::new(request.schema).map_err(AiError::Schema)?;
    let mut toolbox = Toolbox::default();
    for tool in request.tools {
        toolbox.offer(tool);
    }
    let prompt = RunPrompt {
        system_prompt: system_prompt(request.base_prompt, toolbox.specs()),
        prompt: request.user_prompt.to_owned(),
        schema: None,
        tools: Vec::new(),
    };
    let mut dialogue = Dialogue::new(&prompt);
    let feedback = FeedbackLoop {
        model: request.client,
        toolbox: &toolbox,
        format: &format,
        limits: request.limits,
        ends_at: Timestamp::now().plus(Duration::from_secs(request.limits.seconds)),
        context: request.context,
        step_needs: STEP_NEEDS,
    };
    match feedback.run(&mut dialogue, &mut NoJournal).await {
        Ended::Over(Ending { status, result: Some(result), .. }) => {
            let value = serde_json::from_value(result).map_err(AiError::Type)?;
            Ok(AiResult { value, status, spent: *dialogue.spent() })
        }
        Ended::Over(ending) => Err(AiError::NoResult(ending)),
        Ended::OutOfTime => Err(AiError::OutOfTime),
        Ended::Stopped(never) => match never {},
        Ended::Outage(error) => Err(AiError::Outage(error)),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;
    use crate::{
        clients::{Failure, Service},
        injection::testing::{Scripted, calling, context, tool},
    };

    const DONE: &str = "```tool\nreturn finalResponse();\n```";

    #[derive(Debug, PartialEq, Deserialize)]
    struct Hours {
        opens: u8,
        closes: Option<u8>,
    }

    fn schema() -> Value {
        json!({"type": "object", "properties": {"opens": {"type": "integer"}}, "required": ["opens"]})
    }

    fn asked<'a>(client: &'a Scripted, schema: Option<&'a Value>) -> WithTools<'a, Scripted> {
        WithTools {
            client,
            base_prompt: "You answer for a bakery.",
            user_prompt: "When does it open?",
            tools: vec![Arc::new(tool("look"))],
            schema,
            limits: RunLimits::default(),
            context: context(),
        }
    }

    #[tokio::test]
    async fn a_prompt_with_tools_ends_in_a_value_of_the_type_that_is_asked_for() {
        let schema = schema();
        let look = calling("return look('hours');\nreturn find('hours');");
        let model = Scripted::saying([look.as_str(), DONE, r#"{"opens": "8"}"#, r#"It is {"opens": 8}."#]);
        let AiResult { value, status, spent } =
            use_tools_with_ai::<Hours, _>(asked(&model, Some(&schema))).await.unwrap();
        assert_eq!((value, status), (Hours { opens: 8, closes: None }, RunStatus::Completed));
        assert_eq!((spent.iterations, spent.calls, model.left()), (2, 1, 0));
        let conversations = model.asked();
        let first = &conversations[0].0;
        assert!(first[0].content.starts_with("You answer for a bakery.\n\n# Tools\n"), "{}", first[0].content);
        assert_eq!(first[0].content.matches("\nfinalResponse(").count(), 1);
        assert_eq!(first[1..], [Message::user("When does it open?")]);
        let told = &conversations[1].0.last().unwrap().content;
        assert!(told.contains(r#"{"text":"hours"}"#) && told.contains("The tools are look, finalResponse."), "{told}");
    }

    #[tokio::test]
    async fn the_best_answer_at_a_limit_is_a_value_too() {
        let schema = schema();
        let model = Scripted::saying([calling("look('hours');").as_str(), r#"{"opens": 7, "closes": 19}"#]);
        let limits = RunLimits { iterations: 1, ..RunLimits::default() };
        let best = use_tools_with_ai::<Hours, _>(WithTools { limits, ..asked(&model, Some(&schema)) }).await.unwrap();
        assert_eq!((best.value, best.status), (Hours { opens: 7, closes: Some(19) }, RunStatus::IterationLimit));
    }

    #[tokio::test]
    async fn a_schema_that_cannot_be_used_is_refused_before_the_model_is_asked() {
        let (model, schema) = (Scripted::saying(["never"]), json!({"type": "hours"}));
        let error = use_tools_with_ai::<Value, _>(asked(&model, Some(&schema))).await.unwrap_err();
        let AiError::Schema(Error::Invalid(problems)) = &error else { panic!("{error:?}") };
        assert!(problems.to_string().contains("schema.type"), "{problems}");
        assert_eq!(error.to_string(), "the schema of the result cannot be used");
        assert_eq!(model.asked().len(), 0);
    }

    #[tokio::test]
    async fn no_result_says_why() {
        let schema = schema();
        let model = Scripted::saying([DONE, "{}", "{}", "{}"]);
        let error = use_tools_with_ai::<Hours, _>(asked(&model, Some(&schema))).await.unwrap_err();
        assert!(error.to_string().starts_with("The final answer cannot be used, also after 2 corrections."), "{error}");
        let AiError::NoResult(ending) = error else { panic!("{error:?}") };
        assert_eq!((ending.status, ending.result), (RunStatus::Failed, None));
    }

    #[tokio::test]
    async fn a_result_that_fits_the_schema_and_not_the_type_is_a_fault_of_whoever_asked() {
        let schema = schema();
        let model = Scripted::saying([DONE, r#"{"opens": 800}"#]);
        let error = use_tools_with_ai::<Hours, _>(asked(&model, Some(&schema))).await.unwrap_err();
        assert!(matches!(error, AiError::Type(_)), "{error:?}");
        // Without a schema it is for the type alone to say.
        let model = Scripted::saying([DONE, "[8, 19]"]);
        let hours = use_tools_with_ai::<(u8, u8), _>(asked(&model, None)).await.unwrap();
        assert_eq!(hours.value, (8, 19));
    }

    #[tokio::test]
    async fn what_may_work_later_is_told_apart() {
        let gone = clients::Error::new(Service::Llm, Failure::Unreachable);
        let error = use_tools_with_ai::<Value, _>(asked(&Scripted::new([Err(gone)]), None)).await.unwrap_err();
        assert!(matches!(error, AiError::Outage(Error::Upstream(_))), "{error:?}");
        assert_eq!(error.to_string(), "the LLM cannot be reached; try again in a moment");
        let model = Scripted::saying(["never"]);
        let context = context().until(Deadline::after(Duration::ZERO));
        let late = WithTools { context, ..asked(&model, None) };
        let error = use_tools_with_ai::<Value, _>(late).await.unwrap_err();
        assert!(matches!(error, AiError::OutOfTime), "{error:?}");
    }
}
