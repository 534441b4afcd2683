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

pub trait CallableTool: Send + Sync {
    fn spec(&self) -> &ToolSpec;

    /// # Errors
    /// One sentence that names the argument.
    fn check(&self, arguments: &Map<String, Value>) -> Result<arguments::Checked, String> {
        arguments::check(self.spec().parameters.schema(), arguments)
    }

    /// Carries out the call. The arguments fit the spec. A failure of the tool is an outcome, not an error.
    ///
    /// # Errors
    /// Before anything happened. After an outage ([`crate::Error::is_outage`]) the call may be repeated; the model
    /// hears of any other error as a failed call.
    fn call<'a>(
        &'a self,
        arguments: Map<String, Value>,
        context: &'a CallContext<'a>,
    ) -> BoxFuture<'a, Result<ToolOutcome>>;

    fn label(&self) -> &str {
        &self.spec().name
    }

    /// The request that the call would send, for the person who is asked: with the author's fixed values, secrets masked.
    /// Otherwise the sentence for the model.
    ///
    /// # Errors
    /// Only an outage of our own.
    fn preview<'a>(
        &'a self,
        arguments: &'a Map<String, Value>,
        _context: &'a CallContext<'a>,
    ) -> BoxFuture<'a, Result<Result<Value, String>>> {
        Box::pin(ready(Ok(Ok(Value::Object(arguments.clone())))))
    }

    /// Whether a refused call ([`CallContext::refused`]) returns the outcome of an earlier delivery.
    fn knows_deliveries(&self) -> bool {
        false
    }

    fn chat_rules(&self) -> ChatRules {
        ChatRules::default()
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
