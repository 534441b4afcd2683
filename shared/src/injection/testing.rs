//! Test tools, and a model with scripted answers.

use std::{
    collections::VecDeque,
    future::ready,
    sync::{Arc, LazyLock, Mutex},
    time::Duration,
};

use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};

use super::Model;
use crate::{
    Deadline, Result,
    clients::{
        self,
        llm::{Completion, Finish, Message, Usage},
    },
    models::{ExecutionOrigin, OrganizationId, RunId, ToolEffect},
    tool::{CallContext, CallableTool, Conversation, Parameters, Subject, ToolFuture, ToolOutcome, ToolSpec, Toolbox},
};

type Act = Box<dyn Fn(Map<String, Value>, Deadline) -> ToolFuture<'static> + Send + Sync>;

pub(super) struct TestTool {
    pub(super) spec: ToolSpec,
    act: Act,
}

impl CallableTool for TestTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, arguments: Map<String, Value>, context: &'a CallContext<'a>) -> ToolFuture<'a> {
        (self.act)(arguments, context.deadline)
    }
}

impl TestTool {
    pub(super) fn with(mut self, change: impl FnOnce(&mut ToolSpec)) -> Self {
        change(&mut self.spec);
        self
    }

    pub(super) fn acting(self) -> Self {
        self.with(|spec| spec.effect = ToolEffect::Other)
    }
}

/// A read-only tool with one text parameter, which returns its arguments.
pub(super) fn tool(name: &str) -> TestTool {
    let spec = ToolSpec {
        name: name.to_owned(),
        description: format!("Says what {name} was called with."),
        parameters: Parameters::new([("text", json!({"type": "string", "description": "what is said"}), true)]),
        returns: json!({"type": "string"}),
        own_examples: ["one", "two", "three"].map(|text| format!("return {name}(\"{text}\");")).into(),
        effect: ToolEffect::None,
        repeatable: true,
    };
    let echo = |arguments, _| Box::pin(ready(Ok(ToolOutcome::succeeded(Value::Object(arguments))))) as BoxFuture<_>;
    TestTool { spec, act: Box::new(echo) }
}

/// As [`tool`], with an implementation.
pub(super) fn doing<F, T>(name: &str, act: F) -> TestTool
where
    F: Fn(String, Deadline) -> T + Send + Sync + 'static,
    T: Future<Output = Result<ToolOutcome>> + Send + 'static,
{
    let act = move |mut arguments: Map<String, Value>, deadline| {
        let Some(Value::String(text)) = arguments.remove("text") else { panic!("no text in {arguments:?}") };
        Box::pin(act(text, deadline)) as BoxFuture<_>
    };
    TestTool { act: Box::new(act), ..tool(name) }
}

pub(super) fn toolbox(tools: impl IntoIterator<Item = TestTool>) -> Toolbox {
    let mut toolbox = Toolbox::default();
    tools.into_iter().for_each(|tool| toolbox.offer(Arc::new(tool)));
    toolbox
}

static NO_CALL: LazyLock<Conversation> = LazyLock::new(Conversation::default);

pub(super) fn context() -> CallContext<'static> {
    CallContext {
        organization: OrganizationId::generate(),
        user: None,
        subject: Subject::Run(RunId::generate()),
        automation: None,
        delivery: None,
        conversation: &NO_CALL,
        trigger: ExecutionOrigin::Automation,
        refused: None,
        deadline: Deadline::after(Duration::from_secs(300)),
    }
}

pub(super) fn calling(statements: &str) -> String {
    format!("I need this:\n\n````tool\n{statements}\n````\n")
}

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

    pub(super) fn asked(&self) -> Vec<(Vec<Message>, f64)> {
        self.asked.lock().unwrap().clone()
    }

    /// Time allowed for each answer.
    pub(super) fn had(&self) -> Vec<Duration> {
        self.had.lock().unwrap().clone()
    }

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
