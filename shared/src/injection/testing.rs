//! Tools for tests.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};

use super::{CallContext, ToolDefinition, ToolImplementation, ToolOutput, ToolParameter};
use crate::Result;

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
