//! The tools that somebody was offered: these can be called, and nothing else.

use std::{
    collections::BTreeMap,
    panic::AssertUnwindSafe,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::FutureExt;
use serde_json::{Map, Value};

use super::{CallContext, Tool, ToolOutcome, ToolSpec};
use crate::{Result, error, models::ChatRules};

/// What one call gets at most: the longest time-out of a built-in tool and a little more.
pub const CALL_WITHIN: Duration = Duration::from_secs(62);
/// Beyond it, for a tool to write down what became of its effect before it is broken off.
pub const RECORDING: Duration = Duration::from_secs(3);

/// Tools by name.
#[derive(Clone, Default)]
pub struct Toolbox {
    tools: BTreeMap<String, Offered>,
}

#[derive(Clone)]
enum Offered {
    Here(Arc<dyn Tool>),
    /// It was offered once; the sentence says what became of it.
    Gone(String),
}

/// A call that can be made.
pub struct Bound<'a> {
    tool: &'a dyn Tool,
    pub arguments: Map<String, Value>,
}

/// Why a call cannot be made: a sentence for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotBound {
    /// There is no such tool, or not any more.
    Unknown(String),
    /// The arguments do not fit.
    Invalid(String),
}

impl Toolbox {
    /// Offers a tool under the name of its spec.
    pub fn offer(&mut self, tool: Arc<dyn Tool>) {
        self.tools.insert(tool.spec().name.clone(), Offered::Here(tool));
    }

    /// Puts something else in the place of each tool that can be called.
    pub fn replace_each(&mut self, with: impl Fn(Arc<dyn Tool>) -> Arc<dyn Tool>) {
        for offered in self.tools.values_mut() {
            if let Offered::Here(tool) = offered {
                *tool = with(tool.clone());
            }
        }
    }

    /// A tool that was offered, and cannot be called any more.
    pub fn gone(&mut self, name: impl Into<String>, sentence: impl Into<String>) {
        self.tools.insert(name.into(), Offered::Gone(sentence.into()));
    }

    /// What can be called, by name.
    pub fn specs(&self) -> impl Iterator<Item = &ToolSpec> {
        self.tools.values().filter_map(|offered| match offered {
            Offered::Here(tool) => Some(tool.spec()),
            Offered::Gone(_) => None,
        })
    }

    /// The tool of this name.
    ///
    /// # Errors
    /// A sentence that says what became of it, or `None` if it was never offered.
    pub fn spec(&self, name: &str) -> Result<&ToolSpec, Option<&str>> {
        match self.tools.get(name) {
            Some(Offered::Here(tool)) => Ok(tool.spec()),
            Some(Offered::Gone(sentence)) => Err(Some(sentence)),
            None => Err(None),
        }
    }

    /// What people call the tool of this name, and whether it changes something outside, if it was offered.
    pub fn known(&self, name: &str) -> Option<(&str, bool)> {
        match self.tools.get(name)? {
            Offered::Here(tool) => Some((tool.label(), tool.spec().acts())),
            Offered::Gone(_) => None,
        }
    }

    /// Holds a call against what was offered. Members that the tool does not have are refused, at any depth.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self, name: &str, arguments: &Map<String, Value>) -> Result<Bound<'_>, NotBound> {
        let tool = match self.tools.get(name) {
            Some(Offered::Here(tool)) => tool.as_ref(),
            Some(Offered::Gone(sentence)) => return Err(NotBound::Unknown(sentence.clone())),
            None => return Err(NotBound::Unknown("there is no tool of this name.".to_owned())),
        };
        let checked = tool.check(arguments).map_err(NotBound::Invalid)?;
        if !checked.ignored.is_empty() {
            return Err(NotBound::Invalid(format!("There is no member {}.", checked.ignored.join(", "))));
        }
        Ok(Bound { tool, arguments: checked.arguments })
    }
}

impl<'a> Bound<'a> {
    pub fn spec(&self) -> &'a ToolSpec {
        self.tool.spec()
    }

    pub fn chat_rules(&self) -> ChatRules {
        self.tool.chat_rules()
    }

    pub fn label(&self) -> &'a str {
        self.tool.label()
    }

    /// As [`Tool::preview`].
    ///
    /// # Errors
    /// Only for an outage of our own.
    pub async fn preview(&self, context: &CallContext<'_>) -> Result<Result<Value, String>> {
        self.tool.preview(&self.arguments, context).await
    }

    /// Makes the call, within its share of the time. A tool that panics, or fails for a reason of its own, has failed.
    ///
    /// # Errors
    /// An outage of ours before anything happened: the call may be made again.
    pub async fn call(self, context: &CallContext<'_>) -> Result<ToolOutcome> {
        self.call_within(CALL_WITHIN, context).await
    }

    /// As [`Bound::call`], with so much time at most.
    ///
    /// # Errors
    /// As [`Bound::call`].
    pub async fn call_within(self, limit: Duration, context: &CallContext<'_>) -> Result<ToolOutcome> {
        let (spec, started) = (self.tool.spec(), Instant::now());
        let deadline = context.deadline.at_most(limit);
        let context = context.until(deadline);
        // Within the future, for a tool may also panic before it gives one.
        let call = AssertUnwindSafe(async { self.tool.call(self.arguments, &context).await }).catch_unwind();
        match tokio::time::timeout(deadline.remaining() + RECORDING, call).await {
            Ok(Ok(Ok(outcome))) => Ok(outcome),
            Ok(Ok(Err(outage))) if outage.is_outage() => Err(outage),
            Ok(Ok(Err(error))) => {
                tracing::error!(tool.name = spec.name, code = error.code(), "a tool failed: {}", error::chain(&error));
                Ok(ToolOutcome::failed(format!("The tool failed: {error}.")))
            }
            Ok(Err(_panic)) => {
                tracing::error!(tool.name = spec.name, "a tool panicked");
                Ok(ToolOutcome::failed("The tool failed for a fault of its own; do not call it again."))
            }
            Err(_elapsed) => Ok(late(spec, started.elapsed())),
        }
    }
}

fn late(spec: &ToolSpec, after: Duration) -> ToolOutcome {
    let seconds = after.as_secs();
    if spec.acts() {
        ToolOutcome::unknown(format!(
            "The tool did not answer within {seconds} s. It may have acted all the same; do not repeat the call."
        ))
    } else {
        ToolOutcome::failed(format!("The tool did not answer within {seconds} s; try again, or do without it."))
    }
}
