//! What is known of the world that a definition names: tools, services, and what was checked before.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use serde_json::{Map, Value};

use super::scope::types;
use crate::{
    connections::Connection,
    json_schema::JsonSchema,
    models::{CheckedTool, RunCeilings, ServiceCapabilities, Timestamp, ToolRef},
};

/// The fingerprint of a tool that comes with the program.
pub const BUILT_IN_FINGERPRINT: &str = "built-in";

/// Everything that a definition is held against. Made by [`super::Deployment`]; a test makes its own.
pub struct Known {
    /// By the names that the definition uses.
    pub tools: HashMap<String, KnownTool>,
    /// The service that the trigger names.
    pub trigger_service: KnownService,
    pub preflight: Preflight,
    /// What earlier versions of the automation were checked against, by tool; the last one.
    pub earlier: BTreeMap<String, CheckedTool>,
    /// The names of built-in tools.
    pub built_in: crate::catalogue::BuiltInTools,
    /// What a run may use of the platform's key of an LLM; none if the organization has its own.
    pub ceilings: Option<RunCeilings>,
    pub now: Timestamp,
    pub purpose: Purpose,
}

/// What the tool that is polled gave back.
#[derive(Debug, Clone, PartialEq)]
pub enum Preflight {
    NotAsked,
    Answered(Value),
    /// A sentence.
    Failed(String),
}

/// What the validation is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// It is saved, to be looked at by a person: who may connect what is not connected yet.
    Saving,
    /// It is to run from now on.
    Activation,
    /// It is to go on after it was paused: a moment that it waited for may be over.
    Resumption,
}

/// What a name of a tool leads to.
pub enum KnownTool {
    Here(Box<UsableTool>),
    /// There is none; names that are near.
    NotFound {
        others: Vec<String>,
        /// Where no near name was looked for, and what to do about it.
        not_searched: Option<&'static str>,
    },
    /// It, or its service, is switched off.
    Inactive {
        service: String,
    },
    /// Several tools of the organization are called so: their ids.
    Ambiguous {
        ids: Vec<String>,
    },
    /// The reason, to follow "this tool".
    NeedsCall(String),
    /// It cannot be read or carried out; why, to follow "this tool".
    Unusable(String),
}

pub struct UsableTool {
    /// At the version that was found.
    pub reference: ToolRef,
    /// JSON schema of its arguments.
    pub parameters: Value,
    pub schema: Option<Arc<JsonSchema>>,
    /// JSON schema of what it gives back; `{}` where that is not known.
    pub returns: Value,
    pub effect: bool,
    pub fingerprint: String,
    /// The name of its service, and how the organization stands to it.
    pub service: Option<(String, Connection)>,
    /// Fingerprint and parameters of what it was before.
    pub previous: Option<(String, Value)>,
}

/// What is known of a service that a trigger names.
pub enum KnownService {
    /// The trigger names none.
    NotNamed,
    Here {
        name: String,
        connection: Connection,
        /// None: they could not be looked up.
        capabilities: Option<Box<ServiceCapabilities>>,
    },
    Inactive {
        name: String,
    },
    /// The names of those that there are; empty if that could not be looked up.
    Unknown {
        others: Vec<String>,
    },
}

impl UsableTool {
    /// What is kept of it with a version that was checked against it.
    pub fn checked(&self) -> CheckedTool {
        let tool_id = match &self.reference {
            ToolRef::Organization { id, .. } => Some(*id),
            ToolRef::BuiltIn(_) | ToolRef::Service { .. } => None,
        };
        CheckedTool { fingerprint: self.fingerprint.clone(), tool_id, parameters: summary(&self.parameters) }
    }
}

/// Each parameter in a few words: `text, required`. Enough to tell later what changed.
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

/// What changed between two summaries, in words; empty if that is not seen in them.
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
