//! One model request within a turn: its permission, its cost, and the recipient of its words.

use std::{ops::ControlFlow, time::Duration};

use serde_json::Value;

use super::Turn;
use crate::{
    Error,
    clients::{
        self,
        llm::{Completion, CompletionRequest, Message},
    },
    models::Spent,
    planner::{Observer, PlannerModel, Stop, StopSignal, TurnEvent, answer_text::AnswerText},
};

/// Reserved at the end of a turn for recording it.
const SAVE_RESERVE: Duration = Duration::from_secs(2);
const LONGEST_ANSWER: u32 = 4_000;

pub(super) enum Unanswered {
    Failed(Error),
    Stopped(Stop),
}

impl<M: PlannerModel, O: Observer> Turn<'_, '_, '_, M, O> {
    /// Asks the model. `aloud`: the reply is the answer to the person, and may be streamed.
    pub(super) async fn ask(
        &mut self,
        messages: &[Message],
        temperature: f64,
        tools: &[Value],
        aloud: bool,
    ) -> Result<Completion, Unanswered> {
        self.may_go_on()?;
        let request = CompletionRequest {
            temperature,
            max_tokens: Some(LONGEST_ANSWER),
            tools,
            ..CompletionRequest::new(messages)
        };
        let deadline = self.planner.context.deadline.reserving(SAVE_RESERVE);
        let stop = &self.planner.stop;
        let answered = if aloud && self.observer.wants_tokens() {
            let (observer, said) = (&mut *self.observer, &mut self.said);
            let mut words = AnswerText::default();
            let mut tell = |text: &str| {
                if !text.is_empty() {
                    said.push_str(text);
                    observer.event(TurnEvent::Token(text));
                }
            };
            let mut token = |text: &str| tell(&words.push(text));
            let answered = unless_stopped(stop, self.planner.model.answer(&request, Some(&mut token), deadline)).await;
            if answered.is_ok() {
                tell(&words.finish().0);
            }
            answered
        } else {
            unless_stopped(stop, self.planner.model.answer(&request, None, deadline)).await
        };
        let completion = answered?;
        let spent = Spent { iterations: 1, ..completion.usage.into() };
        self.state.spent += spent;
        if let ControlFlow::Break(stop) = self.observer.spent(spent.cost).await {
            self.stop = Some(stop);
        }
        Ok(completion)
    }

    pub(super) fn may_go_on(&self) -> Result<(), Unanswered> {
        if self.planner.stop.is_given() {
            return Err(Unanswered::Stopped(Stop::Requested));
        }
        self.stop.clone().map_or(Ok(()), |stop| Err(Unanswered::Stopped(stop)))
    }
}

async fn unless_stopped(
    stop: &StopSignal,
    answer: impl Future<Output = Result<Completion, clients::Error>>,
) -> Result<Completion, Unanswered> {
    tokio::select! {
        biased;
        () = stop.given() => Err(Unanswered::Stopped(Stop::Requested)),
        answered = answer => answered.map_err(|error| Unanswered::Failed(error.into())),
    }
}
