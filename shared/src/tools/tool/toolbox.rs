//! The tools of one run, turn or call: only these can be called.

use std::{
    collections::BTreeMap,
    panic::AssertUnwindSafe,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::FutureExt;
use serde_json::{Map, Value};

use super::{CallContext, CallableTool, ToolOutcome, ToolSpec, Unavailable};
use crate::{
    Result, error,
    models::{ChatRules, OfferedTool, ToolEffect},
};

/// The longest time for one call: the longest time-out of a built-in tool and a little more.
pub const CALL_WITHIN: Duration = Duration::from_secs(62);
/// Additional time for a tool to record its effect before the call is broken off.
pub const RECORDING: Duration = Duration::from_secs(3);

/// Tools by name, unavailable ones included.
#[derive(Clone, Default)]
pub struct Toolbox {
    entries: BTreeMap<String, Result<Offered, Unavailable>>,
}

#[derive(Clone)]
pub struct Offered {
    tool: Arc<dyn CallableTool>,
    origin: Origin,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub enum Origin {
    /// The program alone: no reference leads to it.
    #[default]
    Program,
    /// The catalogue: the reference finds the same tool again.
    Catalogue(OfferedTool),
    FrontEnd,
}

pub struct Bound<'a> {
    offered: &'a Offered,
    pub arguments: Map<String, Value>,
}

/// Why a call cannot be made: a sentence for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotBound {
    /// No such tool, or it is unavailable now.
    Unknown(String),
    Invalid(String),
}

impl Toolbox {
    pub fn offer(&mut self, tool: Arc<dyn CallableTool>) {
        self.offer_from(tool, Origin::Program);
    }

    pub fn offer_from(&mut self, tool: Arc<dyn CallableTool>, origin: Origin) {
        self.entries.insert(tool.spec().name.clone(), Ok(Offered { tool, origin }));
    }

    /// Notes why a tool cannot be called. A call of it is answered with that.
    pub fn withhold(&mut self, name: impl Into<String>, why: Unavailable) {
        self.entries.insert(name.into(), Err(why));
    }

    pub fn wrap_each(&mut self, wrap: impl Fn(Arc<dyn CallableTool>) -> Arc<dyn CallableTool>) {
        for offered in self.entries.values_mut().flatten() {
            offered.tool = wrap(offered.tool.clone());
        }
    }

    /// Whether the name is known, unavailable tools included.
    pub fn has(&self, name: &str) -> bool {
        self.entries.contains_key(name)
    }

    pub fn get(&self, name: &str) -> Option<&Offered> {
        self.entries.get(name)?.as_ref().ok()
    }

    pub fn unavailability(&self, name: &str) -> Option<&Unavailable> {
        self.entries.get(name)?.as_ref().err()
    }

    pub fn offered(&self) -> impl Iterator<Item = &Offered> {
        self.entries.values().flatten()
    }

    pub fn specs(&self) -> impl Iterator<Item = &ToolSpec> {
        self.offered().map(Offered::spec)
    }

    pub fn unavailable(&self) -> impl Iterator<Item = (&str, &Unavailable)> {
        self.entries.iter().filter_map(|(name, entry)| Some((name.as_str(), entry.as_ref().err()?)))
    }

    /// Checks a call against the offered tools. Arguments that the tool does not have are refused, at any depth.
    ///
    /// # Errors
    /// A sentence for the model.
    pub fn check(&self, name: &str, arguments: &Map<String, Value>) -> Result<Bound<'_>, NotBound> {
        let offered = match self.entries.get(name) {
            Some(Ok(offered)) => offered,
            Some(Err(why)) => return Err(NotBound::Unknown(why.for_model())),
            None => return Err(NotBound::Unknown("there is no tool of this name.".to_owned())),
        };
        let checked = offered.tool.check(arguments).map_err(NotBound::Invalid)?;
        if !checked.ignored.is_empty() {
            return Err(NotBound::Invalid(format!("There is no member {}.", checked.ignored.join(", "))));
        }
        Ok(Bound { offered, arguments: checked.arguments })
    }
}

impl Offered {
    pub fn spec(&self) -> &ToolSpec {
        self.tool.spec()
    }

    pub fn label(&self) -> &str {
        self.tool.label()
    }

    pub fn chat_rules(&self) -> ChatRules {
        self.tool.chat_rules()
    }

    pub fn effect(&self) -> Option<ToolEffect> {
        Some(self.spec().effect).filter(|effect| effect.acts())
    }

    /// The reference that finds the same tool again; none for a tool that is not in the catalogue.
    pub fn reference(&self) -> Option<&OfferedTool> {
        match &self.origin {
            Origin::Catalogue(reference) => Some(reference),
            Origin::Program | Origin::FrontEnd => None,
        }
    }

    pub fn redact(&self) -> &[String] {
        self.reference().map(|reference| reference.redact.as_slice()).unwrap_or_default()
    }

    pub fn is_of_front_end(&self) -> bool {
        self.origin == Origin::FrontEnd
    }
}

impl<'a> Bound<'a> {
    pub fn offered(&self) -> &'a Offered {
        self.offered
    }

    pub fn spec(&self) -> &'a ToolSpec {
        self.offered.spec()
    }

    pub fn knows_deliveries(&self) -> bool {
        self.offered.tool.knows_deliveries()
    }

    /// Only an outage of our own.
    pub async fn preview(&self, context: &CallContext<'_>) -> Result<Result<Value, String>> {
        self.offered.tool.preview(&self.arguments, context).await
    }

    /// Makes the call within [`CALL_WITHIN`]. A tool that panics or returns an error has failed.
    ///
    /// # Errors
    /// An outage of ours before anything happened: the call may be repeated.
    pub async fn call(self, context: &CallContext<'_>) -> Result<ToolOutcome> {
        self.call_within(CALL_WITHIN, context).await
    }

    /// As [`Bound::call`], with this time limit.
    pub async fn call_within(self, limit: Duration, context: &CallContext<'_>) -> Result<ToolOutcome> {
        let (spec, started) = (self.spec(), Instant::now());
        let deadline = context.deadline.at_most(limit);
        let context = context.until(deadline);
        // Inside the future, because a tool may also panic before it returns one.
        let call = AssertUnwindSafe(async { self.offered.tool.call(self.arguments, &context).await }).catch_unwind();
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
