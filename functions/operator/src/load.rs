//! Loads the files into the tables.
//!
//! A load holds the catalogue's lease, so loads never mix. It writes a service's tools first, then the capabilities, then the
//! service's row: a reader of the new edition finds all of its rows. Unchanged rows are not written, so the next load completes
//! an interrupted one, which reports its writes.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    time::Duration,
};

use futures_util::future::join_all;
use serde::Serialize;
use serde_json::{Map, Value, json};
use shared::{
    Deadline, Error, Result,
    error::{self, Problems},
    models::{
        Binding, PreviousTool, Service, ServiceCapabilities, ServiceId, ServiceTool, Timestamp, ToolId, folded_name,
    },
};

use crate::{
    Deps,
    capabilities::check_polling,
    file::{self, Entry},
};

const MOST_TOLD: usize = 500;
/// Parallel writes.
const WRITES: usize = 16;
/// Kept back for this load while it waits for another one.
const FOR_THE_LOAD: Duration = Duration::from_secs(30);
/// The least time to begin a load.
const LEAST_TO_BEGIN: Duration = Duration::from_secs(15);
/// The least time to begin a service: a killed load could not report its writes.
const LEAST_FOR_A_SERVICE: Duration = Duration::from_secs(5);
/// Columns that do not count as a change.
const TIMES: [&str; 2] = ["created_at", "updated_at"];

/// The changes that a load made, or would make.
#[derive(Debug, Serialize)]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum Report {
    Refused {
        refused: Vec<Refusal>,
        /// Refusals beyond those listed.
        more: usize,
    },
    Loaded(Changes),
    /// A failure after some writes. The next load of the same files completes them.
    BrokeOff {
        problem: String,
        written: Written,
    },
    /// A dry run.
    Checked(Changes),
}

#[derive(Debug, Serialize)]
pub struct Refusal {
    pub file: String,
    /// JSON pointer of its place in the file.
    pub pointer: String,
    pub problem: String,
}

#[derive(Debug, Default, Serialize)]
pub struct Written {
    pub tools: Vec<String>,
    /// Services whose capabilities were written.
    pub capabilities: Vec<String>,
    /// Services written completely, their own row last.
    pub services: Vec<String>,
}

/// By the displayed name of the service. Unchanged services have no entry.
#[derive(Debug, Default, Serialize)]
pub struct Changes {
    pub services: BTreeMap<String, ServiceChanges>,
    pub services_unchanged: usize,
    pub tools_unchanged: usize,
}

#[derive(Debug, Default, Serialize)]
pub struct ServiceChanges {
    /// `added`, `reactivated`, `deactivated`, `changed` or `unchanged`, apart from the edition.
    pub service: &'static str,
    /// Changed columns of the service's row and of its capabilities.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<Changed>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deactivated: Vec<String>,
    pub unchanged: usize,
}

#[derive(Debug, Serialize)]
pub struct Changed {
    pub name: String,
    /// Changed columns of the tool's row. A changed `fingerprint` invalidates earlier reads of the tool.
    pub fields: Vec<String>,
}

pub(crate) async fn load(
    deps: &Deps,
    files: Vec<(&String, &Value)>,
    dry_run: bool,
    deadline: Deadline,
) -> Result<Report> {
    let entries = match read_all(files) {
        Ok(entries) => entries,
        Err(refused) => return Ok(refused),
    };
    if dry_run {
        let plan = Plan::of(entries, deps.services.loaded().await?);
        return Ok(Report::Checked(plan.changes));
    }
    let lease = deps.services.lease(deadline.reserving(FOR_THE_LOAD)).await?;
    let loaded = async {
        let plan = Plan::of(entries, deps.services.loaded().await?);
        if deadline.remaining() < LEAST_TO_BEGIN {
            return Err(Error::Conflict(
                "too little time is left for a load, and nothing was written; load again".into(),
            ));
        }
        Ok(plan.write(deps, deadline).await)
    };
    let loaded = loaded.await;
    if let Err(error) = lease.release().await {
        // It expires.
        tracing::warn!("the lease of the catalogue could not be released: {}", error::chain(&error));
    }
    loaded
}

/// Reads every file, and applies the rules over all files.
fn read_all(files: Vec<(&String, &Value)>) -> Result<Vec<Entry>, Report> {
    let mut refused = Vec::new();
    let mut entries = Vec::new();
    let mut refuse = |file: &str, problems: Problems| {
        let refusals = problems.iter().map(|problem| Refusal {
            file: file.to_owned(),
            pointer: problem.field.clone(),
            problem: problem.problem.clone(),
        });
        refused.extend(refusals);
    };
    let (mut services, mut tools) = (HashMap::new(), HashMap::new());
    for (file, content) in files {
        let mut problems = Problems::default();
        let entry = file::read(content, &mut problems);
        if let Some(entry) = entry {
            if let Some(other) = services.insert(entry.service.id, file) {
                problems.add("/name", format!("is the name of the service in {other}, whatever its case"));
            }
            for (index, tool) in tool_names(content) {
                if let Some(other) = tools.insert(tool.to_lowercase(), file) {
                    problems.add(format!("/tools/{index}/name"), format!("is the name of another tool, in {other}"));
                }
            }
            check_polling(&entry.capabilities, &entry.tools, &mut problems);
            entries.push(entry);
        }
        refuse(file, problems);
    }
    if refused.is_empty() {
        return Ok(entries);
    }
    let more = refused.len().saturating_sub(MOST_TOLD);
    refused.truncate(MOST_TOLD);
    Err(Report::Refused { refused, more })
}

/// Names of a file's tools, including refused tools.
fn tool_names(file: &Value) -> impl Iterator<Item = (usize, &str)> {
    let tools = file.get("tools").and_then(Value::as_array).into_iter().flatten().enumerate();
    tools.filter_map(|(index, tool)| Some((index, tool.get("name")?.as_str()?)))
}

/// Rows to be written, by service.
#[derive(Default)]
struct Plan {
    services: Vec<Step>,
    changes: Changes,
}

struct Step {
    service: Option<Service>,
    tools: Vec<ServiceTool>,
    capabilities: Option<ServiceCapabilities>,
}

impl Step {
    async fn write(&self, deps: &Deps, deadline: Deadline, written: &mut Written) -> Result<()> {
        for batch in self.tools.chunks(WRITES) {
            if deadline.remaining() < LEAST_FOR_A_SERVICE {
                return Err(Error::Conflict("the time of the load was up; load again".into()));
            }
            let mut writes = Vec::with_capacity(WRITES);
            for tool in batch {
                writes.push(deps.services.put_tool(tool));
            }
            // All writes finish, so that each result is known.
            let mut failed = None;
            for (tool, result) in batch.iter().zip(join_all(writes).await) {
                match result {
                    Ok(()) => written.tools.push(tool.name.clone()),
                    Err(error) => failed = Some(error),
                }
            }
            if let Some(error) = failed {
                return Err(error);
            }
        }
        if let Some(capabilities) = &self.capabilities {
            deps.services.put_capabilities(capabilities).await?;
            written.capabilities.push(capabilities.service_name.clone());
        }
        if let Some(service) = &self.service {
            deps.services.put(service).await?;
            written.services.push(service.name.clone());
        }
        Ok(())
    }
}

type Loaded = (Vec<Service>, Vec<ServiceTool>, Vec<ServiceCapabilities>);

impl Plan {
    fn of(entries: Vec<Entry>, (services, tools, capabilities): Loaded) -> Self {
        let now = Timestamp::now();
        let mut plan = Self::default();
        let mut old = Old {
            services: services.into_iter().map(|row| (row.id, row)).collect(),
            tools: tools.into_iter().map(|row| (row.id, row)).collect(),
            capabilities: capabilities.into_iter().map(|row| (row.service_name.clone(), row)).collect(),
        };
        // A tool that moves to another service must not be deactivated under its old one.
        let kept: BTreeSet<ToolId> = entries.iter().flat_map(|entry| &entry.tools).map(|tool| tool.id).collect();
        for entry in entries {
            plan.add(entry, &mut old, &kept, now);
        }
        let mut gone: Vec<Service> = old.services.drain().map(|(_, service)| service).collect();
        gone.sort_by(|one, other| one.name.cmp(&other.name));
        for service in gone {
            plan.deactivate(service, &mut old, &kept, now);
        }
        // An interrupted first load leaves tools of a service without a row.
        let mut orphans: Vec<ServiceTool> = old.tools.into_values().filter(|tool| tool.is_active).collect();
        orphans.sort_by(|one, other| one.name.cmp(&other.name));
        for tool in orphans {
            let changes = ServiceChanges {
                service: "unchanged",
                deactivated: vec![tool.name.clone()],
                ..ServiceChanges::default()
            };
            let name = format!("{} ({})", tool.service_name, tool.name);
            let tool = ServiceTool { is_active: false, updated_at: now, ..tool };
            plan.push(name, Step { service: None, tools: vec![tool], capabilities: None }, changes);
        }
        plan
    }

    fn add(&mut self, entry: Entry, old: &mut Old, kept: &BTreeSet<ToolId>, now: Timestamp) {
        let Entry { service, tools, capabilities } = entry;
        let mut changes = ServiceChanges::default();
        let mut step = Step { service: None, tools: Vec::new(), capabilities: None };
        let mut content = Vec::new();
        for tool in tools {
            let before = old.tools.remove(&tool.id);
            let tool = succeed(tool, before.as_ref(), now);
            content.push(essence(&tool));
            let Some(before) = before else {
                changes.added.push(tool.name.clone());
                step.tools.push(tool);
                continue;
            };
            let fields = differences(&before, &tool);
            if fields.is_empty() {
                changes.unchanged += 1;
            } else {
                changes.changed.push(Changed { name: tool.name.clone(), fields });
                step.tools.push(ServiceTool { updated_at: now, ..tool });
            }
        }
        self.changes.tools_unchanged += changes.unchanged;
        step.tools.extend(old.gone(service.id, kept, now));
        let inactive = step.tools.iter().filter(|tool| !tool.is_active).map(|tool| tool.name.clone());
        changes.deactivated.extend(inactive);
        let before = old.capabilities.remove(&capabilities.service_name);
        let of_capabilities = before.as_ref().map(|before| differences(before, &capabilities));
        content.push(essence(&capabilities));
        if before.as_ref() != Some(&capabilities) {
            step.capabilities = Some(capabilities);
        }
        content.push(essence(&service));
        let edition = Service::edition_of(&json!(content));
        let before = old.services.remove(&service.id);
        let created_at = before.as_ref().map_or(now, |before| before.created_at);
        let service = Service { edition, created_at, updated_at: now, ..service };
        let own = before.as_ref().map(|before| differences(before, &service));
        changes.service = match (&before, &own) {
            (None, _) => "added",
            (Some(before), _) if !before.is_active => "reactivated",
            (_, Some(own)) if own.iter().all(|field| field == "edition") => "unchanged",
            _ => "changed",
        };
        let fields = own.clone().into_iter().chain(of_capabilities).flatten().filter(|field| field != "edition");
        changes.fields = fields.collect();
        // The row may still lack changes although everything else was written by an interrupted load.
        if own.is_none_or(|own| !own.is_empty()) {
            step.service = Some(service.clone());
        }
        self.push(service.name, step, changes);
    }

    /// A service that is in no file any more.
    fn deactivate(&mut self, service: Service, old: &mut Old, kept: &BTreeSet<ToolId>, now: Timestamp) {
        let tools = old.gone(service.id, kept, now);
        let deactivated = tools.iter().map(|tool| tool.name.clone()).collect();
        let mut step = Step { service: None, tools, capabilities: None };
        let was_active = service.is_active;
        let changes = ServiceChanges {
            service: if was_active { "deactivated" } else { "unchanged" },
            deactivated,
            ..ServiceChanges::default()
        };
        let name = service.name.clone();
        if was_active {
            let edition = Service::edition_of(&json!([folded_name(&name), "inactive", service.edition]));
            step.service = Some(Service { is_active: false, tools: 0, edition, updated_at: now, ..service });
        }
        self.push(name, step, changes);
    }

    fn push(&mut self, name: String, step: Step, changes: ServiceChanges) {
        if step.service.is_none() && step.tools.is_empty() && step.capabilities.is_none() {
            self.changes.services_unchanged += 1;
            return;
        }
        self.services.push(step);
        self.changes.services.insert(name, changes);
    }

    async fn write(self, deps: &Deps, deadline: Deadline) -> Report {
        let mut written = Written::default();
        for step in &self.services {
            if let Err(error) = step.write(deps, deadline, &mut written).await {
                tracing::error!("loading the catalogue failed: {}", error::chain(&error));
                return Report::BrokeOff { problem: error.to_string(), written };
            }
        }
        Report::Loaded(self.changes)
    }
}

/// Stored rows that no file has claimed yet.
struct Old {
    services: HashMap<ServiceId, Service>,
    tools: HashMap<ToolId, ServiceTool>,
    capabilities: HashMap<String, ServiceCapabilities>,
}

impl Old {
    /// Active tools of a service that are in no file any more, deactivated, by name.
    fn gone(&mut self, service: ServiceId, kept: &BTreeSet<ToolId>, now: Timestamp) -> Vec<ServiceTool> {
        let is_gone = |id: &ToolId, tool: &mut ServiceTool| tool.service_id == service && !kept.contains(id);
        let gone = self.tools.extract_if(is_gone).map(|(_, tool)| tool).filter(|tool| tool.is_active);
        let mut gone: Vec<ServiceTool> =
            gone.map(|tool| ServiceTool { is_active: false, updated_at: now, ..tool }).collect();
        gone.sort_by(|one, other| one.name.cmp(&other.name));
        gone
    }
}

/// The tool as the successor of its old row: same age, next version, and the previous description after a change. New prose and
/// more optional parameters keep the fingerprint, which automations name.
fn succeed(tool: ServiceTool, before: Option<&ServiceTool>, now: Timestamp) -> ServiceTool {
    let counted = |version: u64| match &tool.binding {
        Binding::Pipedream { version, .. } => version.clone(),
        _ => version.to_string(),
    };
    let Some(before) = before else {
        return ServiceTool { version: counted(1), created_at: now, updated_at: now, ..tool };
    };
    let (created_at, updated_at) = (before.created_at, before.updated_at);
    let loses_parameters = loses_parameters(before, &tool);
    let is_same = before.fingerprint == tool.fingerprint
        || contract(before, &before.parameters) == contract(&tool, &known_before(before, &tool));
    if is_same && !loses_parameters {
        let (fingerprint, version) = (before.fingerprint.clone(), before.version.clone());
        return ServiceTool { fingerprint, version, previous: before.previous.clone(), created_at, updated_at, ..tool };
    }
    let previous = PreviousTool {
        fingerprint: before.fingerprint.clone(),
        version: before.version.clone(),
        parameters: before.parameters.clone(),
        returns: before.returns.clone(),
    };
    let version = counted(before.version.parse().unwrap_or(0) + 1);
    // The file's fingerprint may be one that automations named when the lost parameters were there.
    let fingerprint = if loses_parameters {
        ServiceTool::fingerprint_of(&tool.name, &tool.parameters, &before.fingerprint, &tool.binding)
    } else {
        tool.fingerprint.clone()
    };
    ServiceTool { fingerprint, version, previous: Some(previous), created_at, updated_at, ..tool }
}

/// Whether the new schema lacks a parameter of the old one.
fn loses_parameters(before: &ServiceTool, after: &ServiceTool) -> bool {
    let [known, kept] = [before, after].map(|tool| tool.parameters.get("properties").and_then(Value::as_object));
    known.is_some_and(|known| known.keys().any(|name| !kept.is_some_and(|kept| kept.contains_key(name))))
}

/// The fingerprint that the tool would have with these parameters and without prose.
fn contract(tool: &ServiceTool, parameters: &Value) -> String {
    ServiceTool::fingerprint_of(&tool.name, &without_prose(parameters), "", &tool.binding)
}

/// The new parameters without further optional ones, which automations that were checked before do not use.
fn known_before(before: &ServiceTool, after: &ServiceTool) -> Value {
    let mut parameters = after.parameters.clone();
    let known = before.parameters.get("properties").and_then(Value::as_object);
    let properties = parameters.get_mut("properties").and_then(Value::as_object_mut);
    if let (Some(known), Some(properties)) = (known, properties) {
        properties.retain(|name, _| known.contains_key(name));
    }
    parameters
}

/// A schema without its titles and descriptions. Those are text; a property called `title` is a schema.
fn without_prose(schema: &Value) -> Value {
    match schema {
        Value::Object(members) => {
            let is_prose = |name: &str, value: &Value| matches!(name, "title" | "description") && value.is_string();
            let is_data = |name: &str| matches!(name, "const" | "default" | "enum" | "examples");
            let kept = members
                .iter()
                .filter(|(name, value)| !is_prose(name, value))
                .map(|(name, value)| (name.clone(), if is_data(name) { value.clone() } else { without_prose(value) }));
            Value::Object(kept.collect())
        }
        Value::Array(items) => items.iter().map(without_prose).collect(),
        other => other.clone(),
    }
}

/// A row as it is stored, without times and edition.
fn essence<T: Serialize>(row: &T) -> Value {
    let mut row = columns(row);
    row.remove("edition");
    Value::Object(row)
}

fn columns<T: Serialize>(row: &T) -> Map<String, Value> {
    let Ok(Value::Object(mut row)) = serde_json::to_value(row) else { return Map::new() };
    row.retain(|name, _| !TIMES.contains(&name.as_str()));
    row
}

/// The columns in which two rows differ, without times.
fn differences<T: Serialize>(before: &T, after: &T) -> Vec<String> {
    let (before, after) = (columns(before), columns(after));
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    names.into_iter().filter(|name| before.get(*name) != after.get(*name)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_of_a_schema_is_text_beside_its_rules() {
        let schema = json!({
            "type": "object", "description": "All.",
            "properties": {
                "title": {"type": "string", "title": "Title", "description": "A title."},
                "list": {"items": [{"description": "One.", "minimum": 1}], "default": {"title": "Hello"}},
            },
            "required": ["title"],
        });
        let expected = json!({
            "type": "object",
            "properties": {
                "title": {"type": "string"},
                "list": {"items": [{"minimum": 1}], "default": {"title": "Hello"}},
            },
            "required": ["title"],
        });
        assert_eq!(without_prose(&schema), expected);
    }
}
