//! Tools: the specification ([`ToolSpec`]), the context of a call ([`CallContext`]), its outcome ([`ToolOutcome`]),
//! and the tools offered to a caller ([`Toolbox`]).
//!
//! All callers use these types. Built-in tools implement [`CallableTool`], and so do actions that [`crate::execution::Executor`] carries
//! out. [`crate::catalogue::Catalogue`] finds tools by reference.

pub mod arguments;
mod context;
mod examples;
mod outcome;
mod recipients;
pub mod result_variables;
mod source_poll;
mod spec;
mod toolbox;
mod unavailable;

use std::{future::ready, sync::Arc};

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

use crate::{
    Result,
    models::{AllowedHosts, ChatRules},
};

pub use self::{
    context::{CALL_NEEDS, CallContext, Conversation, Subject},
    examples::sample_arguments,
    outcome::{Effect, ToolOutcome},
    recipients::RecipientOutcome,
    source_poll::SourcePoll,
    spec::{ParameterSpec, Parameters, ToolSpec, is_identifier, literal},
    toolbox::{Bound, CALL_WITHIN, NotBound, Offered, Origin, RECORDING, Toolbox},
    unavailable::Unavailable,
};

pub type ToolFuture<'a, T = ToolOutcome> = BoxFuture<'a, Result<T>>;

pub trait CallableTool: Send + Sync {
    fn spec(&self) -> &ToolSpec;

    /// The wrapped tool, whose answers are the defaults of `check`, `label`, `preview`, `knows_deliveries` and `chat_rules`.
    fn inner(&self) -> Option<&dyn CallableTool> {
        None
    }

    /// # Errors
    /// One sentence that names the argument.
    fn check(&self, arguments: &Map<String, Value>) -> Result<arguments::Checked, String> {
        match self.inner() {
            Some(inner) => inner.check(arguments),
            None => arguments::check(self.spec().parameters.schema(), arguments),
        }
    }

    /// Carries out the call. The arguments fit the spec. A failure of the tool is an outcome, not an error.
    ///
    /// # Errors
    /// Before anything happened. After an outage ([`crate::Error::is_outage`]) the call may be repeated; the model
    /// hears of any other error as a failed call.
    fn call<'a>(&'a self, arguments: Map<String, Value>, context: &'a CallContext<'a>) -> ToolFuture<'a>;

    fn label(&self) -> &str {
        self.inner().map_or(self.spec().name.as_str(), CallableTool::label)
    }

    /// The request that the call would send, for the person who is asked: with the author's fixed values, secrets masked.
    /// Otherwise the sentence for the model.
    ///
    /// # Errors
    /// Only an outage of our own.
    fn preview<'a>(
        &'a self,
        arguments: &'a Map<String, Value>,
        context: &'a CallContext<'a>,
    ) -> ToolFuture<'a, Result<Value, String>> {
        match self.inner() {
            Some(inner) => inner.preview(arguments, context),
            None => Box::pin(ready(Ok(Ok(Value::Object(arguments.clone()))))),
        }
    }

    /// Whether a refused call ([`CallContext::refused`]) returns the outcome of an earlier delivery.
    fn knows_deliveries(&self) -> bool {
        self.inner().is_some_and(CallableTool::knows_deliveries)
    }

    fn chat_rules(&self) -> ChatRules {
        self.inner().map_or_else(ChatRules::default, CallableTool::chat_rules)
    }

    /// Whether a built-in tool calls an address or a model: each call is then an execution of the organization's budget.
    fn calls_out(&self) -> bool {
        false
    }

    /// The same tool restricted to these hosts; `None` for a tool that calls no address chosen by a model.
    fn restricted_to_hosts(&self, _hosts: &AllowedHosts) -> Option<Arc<dyn CallableTool>> {
        None
    }
}
