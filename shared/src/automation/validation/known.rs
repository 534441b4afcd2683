//! Tools, services and earlier checks that a definition is validated against.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use serde_json::{Map, Value};

use super::scope::types;
use crate::{
    automation::definition::diagnostics::Severity,
    connections::Connection,
    json_schema::JsonSchema,
    models::{AutomationId, CheckedTool, RunCeilings, ServiceCapabilities, Timestamp, ToolRef},
};

pub const BUILT_IN_FINGERPRINT: &str = "built-in";

/// The input of the validation, read by [`crate::automation::Deployment`] or built by a test.
pub struct Known {
    pub tools: HashMap<String, KnownTool>,
    pub trigger_service: KnownService,
    pub preflight: Preflight,
    /// The newest events that the trigger listens to, where no description has their fields.
    pub events: Vec<Value>,
    /// The events that runs wait for, by [`crate::automation::AwaitedEvent::key`].
    pub awaited: HashMap<(String, String), KnownEvent>,
    /// The automations that actions run.
    pub called: HashMap<AutomationId, CalledAutomation>,
    /// The latest check of each tool by earlier versions.
    pub earlier: BTreeMap<String, CheckedTool>,
    pub built_in: crate::catalogue::BuiltInTools,
    /// The ceilings of runs on the platform's LLM key; `None` if the organization has its own.
    pub ceilings: Option<RunCeilings>,
    pub now: Timestamp,
    pub purpose: Purpose,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Preflight {
    NotAsked,
    Answered(Value),
    Failed(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Saved for review; the reviewer can still connect missing services.
    Saving,
    Activation,
    /// Resumed after a pause; a one-time moment may have passed meanwhile.
    Resumption,
}

impl Purpose {
    /// Of a mistake that the reviewer can still repair.
    pub(super) fn severity(self) -> Severity {
        if self == Self::Saving { Severity::Warning } else { Severity::Error }
    }
}

/// An event that a run waits for.
pub struct KnownEvent {
    pub service: KnownService,
    /// The newest events of this type, where no description has their fields.
    pub events: Vec<Value>,
}

/// An automation that an action runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CalledAutomation {
    Here,
    NotFound,
    /// It has no active version, or it is paused.
    Inactive {
        name: String,
    },
    /// The names of the automations from this one back to itself.
    InCircle {
        names: Vec<String>,
    },
    /// More than [`crate::automation::DEEPEST_CALLS`] automations run each other: their names.
    TooDeep {
        names: Vec<String>,
    },
}

pub enum KnownTool {
    Here(Box<UsableTool>),
    NotFound {
        others: Vec<String>,
        /// Why no similar names were searched, and the next step.
        not_searched: Option<&'static str>,
    },
    Inactive {
        service: String,
    },
    /// Several tools of the organization have this name: their ids.
    Ambiguous {
        ids: Vec<String>,
    },
    /// With the reason, to follow "this tool".
    NeedsCall(String),
    /// Unreadable or not executable; with the reason, to follow "this tool".
    Unusable(String),
}

pub struct UsableTool {
    pub reference: ToolRef,
    pub parameters: Value,
    pub schema: Option<Arc<JsonSchema>>,
    /// JSON schema of the result; `{}` if unknown.
    pub returns: Value,
    pub effect: bool,
    pub fingerprint: String,
    pub service: Option<(String, Connection)>,
    /// Fingerprint and parameters before the latest change.
    pub previous: Option<(String, Value)>,
}

pub enum KnownService {
    NotNamed,
    Here {
        name: String,
        connection: Connection,
        /// `None` if the look-up failed.
        capabilities: Option<Box<ServiceCapabilities>>,
    },
    Inactive {
        name: String,
    },
    /// A hook of the organization's own, by its name, and the names of all of them.
    OwnHook {
        name: String,
        all: Vec<String>,
    },
    /// With the names of existing services; empty if the look-up failed.
    Unknown {
        others: Vec<String>,
    },
}

impl UsableTool {
    /// The record stored with each version checked against this tool.
    pub fn checked(&self) -> CheckedTool {
        let tool_id = match &self.reference {
            ToolRef::Organization { id, .. } => Some(*id),
            ToolRef::BuiltIn(_) | ToolRef::Service { .. } => None,
        };
        CheckedTool { fingerprint: self.fingerprint.clone(), tool_id, parameters: summary(&self.parameters) }
    }
}

/// Each parameter in brief (`text, required`), enough to describe later changes.
pub(super) fn summary(parameters: &Value) -> BTreeMap<String, String> {
    let required: Vec<&str> =
        parameters.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let described = |(name, schema): (&String, &Value)| {
        let kind = match types(schema)[..] {
            [] => "any value".to_owned(),
            ref kinds => kinds.join(" or "),
        };
        let options = schema.get("enum").and_then(Value::as_array).map(|options| {
            let options: Vec<String> = options.iter().take(20).map(Value::to_string).collect();
            format!(" of {}", options.join(", "))
        });
        let needed = if required.contains(&name.as_str()) { ", required" } else { "" };
        (name.clone(), format!("{kind}{}{needed}", options.unwrap_or_default()))
    };
    let properties = parameters.get("properties").and_then(Value::as_object);
    properties.unwrap_or(&Map::new()).iter().map(described).collect()
}

/// Changes between two summaries, in words; empty if the summaries do not show them.
pub(super) fn changes(before: &BTreeMap<String, String>, now: &BTreeMap<String, String>) -> Vec<String> {
    let mut changes = Vec::new();
    for (name, is) in now {
        match before.get(name) {
            None => changes.push(format!("{name} is new ({is})")),
            Some(was) if was != is => changes.push(format!("{name} was {was} and is {is}")),
            Some(_) => {}
        }
    }
    changes.extend(before.keys().filter(|name| !now.contains_key(*name)).map(|name| format!("{name} is gone")));
    changes
}
