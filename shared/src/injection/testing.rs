//! Tools for tests, and a model that says what a script tells it to.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};

use super::{CallContext, Model, ToolDefinition, ToolImplementation, ToolOutput, ToolParameter};
use crate::{
    Deadline, Result,
    clients::{
        self,
        llm::{Completion, Finish, Message, Usage},
    },
    models::{OrganizationId, RunId},
};

/// Says what it was called with.
struct Echo;

impl ToolImplementation for Echo {
    fn call<'a>(&'a self, arguments: Map<String, Value>, _: &'a CallContext<'a>) -> BoxFuture<'a, Result<ToolOutput>> {
        Box::pin(async move { Ok(ToolOutput::of(Value::Object(arguments))) })
    }
}

/// A tool that takes a text and only reads.
pub(super) fn tool(name: &str) -> ToolDefinition {
    ToolDefinition {
        name: name.to_owned(),
        description: format!("Says what {name} was called with."),
        parameters: vec![ToolParameter {
            name: "text".to_owned(),
            schema: json!({"type": "string", "description": "what is said"}),
            required: true,
        }],
        returns: "string",
        examples: ["one", "two", "three"].map(|text| format!("return {name}(\"{text}\");")).into(),
        read_only: true,
        implementation: Arc::new(Echo),
    }
}

/// Does what it was made with.
struct Doing<F>(F);

impl<F, T> ToolImplementation for Doing<F>
where
    F: Fn(String, Deadline) -> T + Send + Sync,
    T: Future<Output = Result<ToolOutput>> + Send + 'static,
{
    fn call<'a>(
        &'a self,
        mut arguments: Map<String, Value>,
        context: &'a CallContext<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput>> {
        let Some(Value::String(text)) = arguments.remove("text") else { panic!("no text in {arguments:?}") };
        Box::pin((self.0)(text, context.deadline))
    }
}

/// As [`tool`], and does this with the text that it is given.
pub(super) fn doing<F, T>(name: &str, act: F) -> ToolDefinition
where
    F: Fn(String, Deadline) -> T + Send + Sync + 'static,
    T: Future<Output = Result<ToolOutput>> + Send + 'static,
{
    ToolDefinition { implementation: Arc::new(Doing(act)), ..tool(name) }
}

/// For nobody in particular, with more time than a test takes.
pub(super) fn context() -> CallContext<'static> {
    CallContext {
        organization: OrganizationId::generate(),
        user: None,
        run: RunId::generate(),
        deadline: Deadline::after(Duration::from_secs(300)),
    }
}

/// A message with a block of calls.
pub(super) fn calling(statements: &str) -> String {
    format!("I need this:\n\n````tool\n{statements}\n````\n")
}

/// A whole answer that cost nothing.
pub(super) fn completion(text: impl Into<String>) -> Completion {
    Completion {
        text: text.into(),
        tool_calls: Vec::new(),
        finish: Finish::Stop,
        usage: Usage::default(),
        model: "scripted".to_owned(),
        id: None,
    }
}

/// A model that gives prepared answers, one after the other.
#[derive(Default)]
pub(super) struct Scripted {
    answers: Mutex<VecDeque<Result<Completion, clients::Error>>>,
    asked: Mutex<Vec<(Vec<Message>, f64)>>,
    had: Mutex<Vec<Duration>>,
}

impl Scripted {
    pub(super) fn new(answers: impl IntoIterator<Item = Result<Completion, clients::Error>>) -> Self {
        Self { answers: Mutex::new(answers.into_iter().collect()), ..Self::default() }
    }

    pub(super) fn saying<T: Into<String>>(answers: impl IntoIterator<Item = T>) -> Self {
        Self::new(answers.into_iter().map(|text| Ok(completion(text))))
    }

    /// The conversations that it was asked to go on with, each with its temperature.
    pub(super) fn asked(&self) -> Vec<(Vec<Message>, f64)> {
        self.asked.lock().unwrap().clone()
    }

    /// The time that it had for each answer.
    pub(super) fn had(&self) -> Vec<Duration> {
        self.had.lock().unwrap().clone()
    }

    /// How many answers nobody asked for.
    pub(super) fn left(&self) -> usize {
        self.answers.lock().unwrap().len()
    }
}

impl Model for Scripted {
    async fn answer(
        &self,
        messages: &[Message],
        temperature: f64,
        deadline: Deadline,
    ) -> Result<Completion, clients::Error> {
        self.asked.lock().unwrap().push((messages.to_vec(), temperature));
        self.had.lock().unwrap().push(deadline.remaining());
        let next = self.answers.lock().unwrap().pop_front();
        next.unwrap_or_else(|| panic!("the script is over, and was asked to answer {:?}", messages.last()))
    }
}
