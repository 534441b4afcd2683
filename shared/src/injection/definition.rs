//! What a tool is, whoever calls it.

use std::{fmt, sync::Arc};

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

use crate::{
    Deadline, Result,
    models::{OrganizationId, RunId, UserId},
};

/// A tool that a model can be offered.
#[derive(Clone)]
pub struct ToolDefinition {
    /// As it is called: letters, digits and `_`, not beginning with a digit.
    pub name: String,
    /// What it does and when to use it, for the model.
    pub description: String,
    /// In the order of positional arguments; the required ones first.
    pub parameters: Vec<ToolParameter>,
    /// What it gives back, as a TypeScript type.
    pub returns: &'static str,
    /// Whole calls, `wget("https://example.com", 5000)`; at least three.
    pub examples: Vec<String>,
    /// It changes nothing: the same call in the same run may be answered from the run's record.
    pub read_only: bool,
    pub implementation: Arc<dyn ToolImplementation>,
}

/// An argument that a tool takes.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolParameter {
    pub name: String,
    /// JSON schema, with its `type` and a `description`: what a `function_schema` has as a property.
    pub schema: Value,
    pub required: bool,
}

/// What a tool does when it is called.
pub trait ToolImplementation: Send + Sync {
    /// Acts on arguments that fit the definition. What goes wrong with the tool is an output, which the model can act on.
    ///
    /// # Errors
    /// An outage of our own before anything was done: the call may be made again.
    fn call<'a>(
        &'a self,
        arguments: Map<String, Value>,
        context: &'a CallContext<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput>>;
}

/// For whom a tool is called, and until when.
#[derive(Debug, Clone, Copy)]
pub struct CallContext<'a> {
    pub organization: OrganizationId,
    /// Who began the run; nobody, if something else did.
    pub user: Option<&'a UserId>,
    pub run: RunId,
    pub deadline: Deadline,
}

/// What the model is told.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutput {
    /// Text stands as it is; anything else as JSON.
    pub value: Value,
    pub failed: bool,
}

impl ToolOutput {
    pub fn of(value: impl Into<Value>) -> Self {
        Self { value: value.into(), failed: false }
    }

    /// It did not work: one sentence that says why, and what to do.
    pub fn failed(sentence: impl Into<String>) -> Self {
        Self { value: Value::String(sentence.into()), failed: true }
    }
}

impl fmt::Debug for ToolDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolDefinition").field("name", &self.name).finish_non_exhaustive()
    }
}
