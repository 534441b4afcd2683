//! The one notion of a tool: what it is ([`ToolSpec`]), for whom it is called ([`CallContext`]), what came of it
//! ([`ToolOutcome`]), and the set of tools that somebody was offered ([`Toolbox`]).
//!
//! Whoever offers tools to a model does it through these, however the calls are written: as code in a prompt, as a plan, or
//! as a request of VAPI's. A tool is anything that implements [`Tool`]: a built-in one, or an action carried out by
//! [`crate::execution::Executor`]. [`crate::catalogue::Catalogue`] finds tools by reference.

pub mod arguments;
mod context;
mod examples;
mod outcome;
mod recipients;
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
    context::{CallContext, Conversation, Subject},
    examples::sample_arguments,
    outcome::{Effect, ToolOutcome},
    recipients::RecipientOutcome,
    spec::{Parameter, Parameters, ToolSpec, is_identifier, literal},
    toolbox::{Bound, CALL_WITHIN, NotBound, Offered, Origin, RECORDING, Toolbox},
    unavailable::Unavailable,
};

/// Something that can be called.
pub trait Tool: Send + Sync {
    fn spec(&self) -> &ToolSpec;

    /// Holds arguments against the spec.
    ///
    /// # Errors
    /// One sentence that names the argument.
    fn check(&self, arguments: &Map<String, Value>) -> Result<arguments::Checked, String> {
        arguments::check(self.spec().parameters.schema(), arguments)
    }

    /// Acts on arguments that fit the spec. What goes wrong with the tool is an outcome that says so.
    ///
    /// # Errors
    /// Before anything happened. An outage ([`crate::Error::is_outage`]) means that the call may be made again; any other
    /// error is told to the model as a failed call.
    fn call<'a>(
        &'a self,
        arguments: Map<String, Value>,
        context: &'a CallContext<'a>,
    ) -> BoxFuture<'a, Result<ToolOutcome>>;

    /// What people call it.
    fn label(&self) -> &str {
        &self.spec().name
    }

    /// What a call with these checked arguments would send, for the person who is asked about it: what the tool's author fixed,
    /// too, and secrets masked. Else the sentence a model would be told instead.
    ///
    /// # Errors
    /// Only for an outage of our own.
    fn preview<'a>(
        &'a self,
        arguments: &'a Map<String, Value>,
        _context: &'a CallContext<'a>,
    ) -> BoxFuture<'a, Result<Result<Value, String>>> {
        Box::pin(ready(Ok(Ok(Value::Object(arguments.clone())))))
    }

    /// What must be seen to before it is called for a person in a chat.
    fn chat_rules(&self) -> ChatRules {
        ChatRules::default()
    }

    /// The same, held to these hosts; none for a tool that goes to no address of a model's choice.
    fn held_to(&self, _hosts: &AllowedHosts) -> Option<Arc<dyn Tool>> {
        None
    }
}
