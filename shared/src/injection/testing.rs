//! Tools for tests.

use std::{sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};

use super::{CallContext, ToolDefinition, ToolImplementation, ToolOutput, ToolParameter};
use crate::{
    Deadline, Result,
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
