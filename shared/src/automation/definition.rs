//! The definition of an automation: a trigger, and actions or a prompt with tools.
//!
//! Definitions are read strictly: an unknown field is an error at its place, never dropped. `docs/automations.md` is the
//! reference.

pub(super) mod diagnostics;
pub(super) mod fields;
pub(super) mod limits;
pub(super) mod repair;
pub(super) mod schedule;
pub(super) mod steps;
pub(super) mod trigger;

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde_json::{Map, Value};

use self::{
    diagnostics::{Code, Diagnostic, Diagnostics, Severity, child},
    fields::{Members, wrong_type},
    steps::{Step, StepReader, all_actions, all_steps, check_same_time},
    trigger::Trigger,
};
use super::expressions::{conditions::Condition, data};
use crate::{
    Error, Result,
    injection::{AUTOMATION_ID, CALL_AUTOMATION, LLM_AGENT},
    json_schema::extent,
    models::{ApprovalRequest, ApprovalRule, AutomationId, AutomationQuotas, AutomationVersion},
    telemetry,
};

/// Bytes of JSON: a definition is stored in one item, and DynamoDB allows 400 KB.
pub const LARGEST_DEFINITION: usize = 250_000;
pub const MOST_ACTIONS: usize = 200;
const DEEPEST: usize = 40;
/// Bytes of a JSON pointer to any value; diagnostics and differences repeat pointers.
const LONGEST_POINTER: usize = 1_000;
const MOST_PROMPT_TOOLS: usize = 50;

const LONGEST_NAME: usize = 200;
const LONGEST_DESCRIPTION: usize = 4_000;
const LONGEST_ID: usize = 100;
const LONGEST_TOOL: usize = 100;
const LONGEST_FINGERPRINT: usize = 100;
const MOST_VARIABLES: usize = 200;

/// In seconds, per tool call.
const USUAL_TIMEOUT: u64 = 30;
const LONGEST_TIMEOUT: u64 = 300;
const MOST_RETRIES: u64 = 3;

/// The valid parts of a definition.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    pub name: String,
    pub description: String,
    pub trigger: Option<Trigger>,
    pub body: AutomationBody,
    pub variables: Map<String, Value>,
    pub fingerprints: BTreeMap<String, String>,
    pub quotas: AutomationQuotas,
    /// Rules that require approval, for all actions.
    pub approvals: Vec<ApprovalRule>,
    /// Run if an action failed.
    pub catch: Vec<Step>,
    /// Pointers of fields with errors: mistakes that only follow from these are not reported.
    pub(super) unreadable: BTreeSet<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum AutomationBody {
    Actions(Vec<Step>),
    /// The body of `POST /api/{slug}/runs`: `prompt`, `system_prompt`, `tools`, `schema`, `model` and `limits`.
    Prompt(Map<String, Value>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Action {
    /// JSON pointer into the definition.
    pub pointer: String,
    pub id: Option<String>,
    pub tool: Option<String>,
    /// `parameters`, or its alias as written.
    pub parameters_field: &'static str,
    pub parameters: Map<String, Value>,
    pub output_as: Option<String>,
    pub condition: Option<Condition>,
    pub approval: Option<ApprovalRequest>,
    /// Per tool call.
    pub timeout_seconds: u64,
    pub on_error: OnError,
    /// Further attempts after a failure without effect.
    pub retries: u32,
    /// Run if it failed.
    pub catch: Vec<Step>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnError {
    Continue,
    Stop,
}

pub const PROMPT_FIELDS: [&str; 6] = ["prompt", "system_prompt", "tools", "schema", "model", "limits"];

/// Root names with a fixed meaning; outputs and variables must not use them.
const RESERVED: [&str; 3] = ["trigger_data", "user", "event_data"];

impl Definition {
    /// Parses a definition, and reports all mistakes in its shape. A definition that is too large is not read at all.
    pub fn read(value: &Value, diagnostics: &mut Diagnostics) -> Option<Self> {
        if let Some(too_large) = too_large(value) {
            diagnostics.push(too_large);
            return None;
        }
        let mut members = Members::of(value, "", diagnostics)?;
        let name = members.required_text("name", LONGEST_NAME, "\"Urgent messages\"").unwrap_or_default();
        let description = match members.get("description") {
            Some(Value::String(text)) if text.trim().is_empty() => String::new(),
            Some(value) => {
                let example = "\"Tells the team of urgent messages.\"";
                members.as_text("description", value, LONGEST_DESCRIPTION, example).unwrap_or_default()
            }
            None => String::new(),
        };
        let trigger = Trigger::read(&mut members);
        let variables = variables(&mut members);
        let fingerprints = fingerprints(&mut members);
        let (body, catch) = body(&mut members, &variables);
        let quotas = limits::quotas(&mut members);
        let approvals = limits::approvals(&mut members, matches!(body, AutomationBody::Prompt(_)));
        if let AutomationBody::Actions(steps) = &body {
            for steps in [steps, &catch] {
                check_same_time(steps, !approvals.is_empty(), members.report);
            }
        }
        // An option of the request, not stored.
        members.boolean("dry_run");
        members.finish();
        let errors = diagnostics.iter().filter(|one| one.severity == Severity::Error);
        let unreadable = errors.map(|error| error.pointer.clone()).collect();
        Some(Self { name, description, trigger, body, variables, fingerprints, quotas, approvals, catch, unreadable })
    }

    /// Parses a saved version.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if the version has anything unknown: fields written by a newer program must not be ignored.
    pub fn stored(version: &AutomationVersion) -> Result<Self> {
        let unreadable = || {
            telemetry::unreadable_row("version");
            let key = format!("{} of automation {}", version.version, version.automation_id);
            Error::Unreadable { row: "version", key }
        };
        let value: Value = serde_json::from_str(&version.definition).map_err(|_no_json| unreadable())?;
        let mut diagnostics = Diagnostics::default();
        let definition = Self::read(&value, &mut diagnostics);
        definition.filter(|_| diagnostics.iter().all(|one| one.severity != Severity::Error)).ok_or_else(unreadable)
    }

    /// The stored form: aliases replaced by field names, null fields dropped. Nulls in parameters, variables and schemas stay.
    pub fn canonical(value: &Value) -> Value {
        let mut value = value.clone();
        if let Some(config) = value.get_mut("trigger_config") {
            for name in ["filter", "filters"] {
                config.get_mut(name).into_iter().for_each(without_nulls);
            }
            drop_nulls(config);
        }
        for name in ["limits", "quotas"] {
            value.get_mut(name).into_iter().for_each(drop_nulls);
        }
        for name in ["tools", "approvals"] {
            if let Some(items) = value.get_mut(name).and_then(Value::as_array_mut) {
                items.iter_mut().for_each(drop_nulls);
            }
        }
        for name in ["actions", "catch"] {
            value.get_mut(name).into_iter().for_each(canonical_steps);
        }
        if let Some(members) = value.as_object_mut() {
            members.remove("dry_run");
        }
        drop_nulls(&mut value);
        value
    }

    /// All tools in use, each with the first pointer that names it.
    pub fn tools(&self) -> BTreeMap<String, String> {
        let mut tools = BTreeMap::new();
        if let Some(Trigger::Polling(polling)) = &self.trigger {
            tools.insert(polling.source_tool.clone(), "/trigger_config/source_tool".to_owned());
        }
        match &self.body {
            AutomationBody::Actions(steps) => {
                for action in all_actions(steps).chain(all_actions(&self.catch)) {
                    if let Some(tool) = &action.tool {
                        tools.entry(tool.clone()).or_insert_with(|| child(&action.pointer, "tool"));
                    }
                    if action.tool.as_deref() == Some(LLM_AGENT) {
                        let place = child(&child(&action.pointer, action.parameters_field), "tools");
                        add_named(action.parameters.get("tools"), &place, &mut tools);
                    }
                }
            }
            AutomationBody::Prompt(prompt) => {
                add_named(prompt.get("tools"), "/tools", &mut tools);
            }
        }
        tools
    }

    pub fn steps(&self) -> &[Step] {
        match &self.body {
            AutomationBody::Actions(steps) => steps,
            AutomationBody::Prompt(_) => &[],
        }
    }

    /// All its steps at any depth, those of its `catch` last.
    pub(super) fn all_steps(&self) -> Vec<&Step> {
        all_steps(self.steps()).into_iter().chain(all_steps(&self.catch)).collect()
    }

    pub fn caught_ids(&self) -> HashSet<&str> {
        let of_steps = all_steps(self.steps()).into_iter().flat_map(|step| all_steps(step.catch()));
        of_steps.chain(all_steps(&self.catch)).filter_map(Step::id).collect()
    }

    /// The ids of the automations that its actions run, each with its pointer. An id that is no literal is `None`.
    pub fn called_automations(&self) -> Vec<(String, Option<AutomationId>)> {
        let AutomationBody::Actions(steps) = &self.body else { return Vec::new() };
        let calls = all_actions(steps).chain(all_actions(&self.catch));
        calls
            .filter(|action| action.tool.as_deref() == Some(CALL_AUTOMATION))
            .filter_map(|action| {
                let id = action.parameters.get(AUTOMATION_ID)?;
                let place = child(&child(&action.pointer, action.parameters_field), AUTOMATION_ID);
                Some((place, id.as_str().and_then(|id| id.trim().parse().ok())))
            })
            .collect()
    }
}

fn add_named(list: Option<&Value>, place: &str, tools: &mut BTreeMap<String, String>) {
    for (index, named) in list.and_then(Value::as_array).into_iter().flatten().enumerate() {
        let name = named.as_str().or_else(|| named.get("built_in")?.as_str()).map(str::trim);
        // An entry that is no name has its own diagnostic.
        if let Some(name) = name.filter(|name| !name.is_empty() && !name.contains("{{")) {
            tools.entry(name.to_owned()).or_insert_with(|| child(place, index.to_string()));
        }
    }
}

fn canonical_steps(steps: &mut Value) {
    let Some(steps) = steps.as_array_mut() else { return };
    steps.iter_mut().for_each(drop_nulls);
    for step in steps.iter_mut().filter_map(Value::as_object_mut) {
        step.get_mut("condition").into_iter().for_each(without_nulls);
        step.get_mut("approval").into_iter().for_each(drop_nulls);
        for (alias, name) in [("params", "parameters"), ("action_id", "id")] {
            if let Some(value) = step.remove(alias) {
                step.entry(name).or_insert(value);
            }
        }
        for branch in step.get_mut("choose").and_then(Value::as_array_mut).into_iter().flatten() {
            drop_nulls(branch);
            branch.get_mut("when").into_iter().for_each(without_nulls);
            branch.get_mut("actions").into_iter().for_each(canonical_steps);
        }
        for name in ["actions", "otherwise", "catch"] {
            step.get_mut(name).into_iter().for_each(canonical_steps);
        }
    }
}

fn drop_nulls(value: &mut Value) {
    if let Some(members) = value.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
}

/// Drops null fields but keeps the null values of clauses, which authors write on purpose.
fn without_nulls(condition: &mut Value) {
    drop_nulls(condition);
    if let Some(clauses) = condition.get_mut("clauses").and_then(Value::as_array_mut) {
        clauses.iter_mut().for_each(without_nulls);
    }
}

/// Must run before any parsing, copying or recursion.
fn too_large(value: &Value) -> Option<Diagnostic> {
    let refuse =
        |pointer: &str, message: String, hint: &str| Some(Diagnostic::error(Code::TooLarge, pointer, message, hint));
    if let Some(actions) = value.get("actions").and_then(Value::as_array)
        && actions.len() > MOST_ACTIONS
    {
        let message = format!("The definition has {} actions; the limit is {MOST_ACTIONS}.", actions.len());
        return refuse("/actions", message, "Split the automation, or let a prompt with tools do the work.");
    }
    if let Some(tools) = value.get("tools").and_then(Value::as_array)
        && tools.len() > MOST_PROMPT_TOOLS
    {
        let message = format!("The prompt has {} tools; the limit is {MOST_PROMPT_TOOLS}.", tools.len());
        return refuse("/tools", message, "Name only the tools that the prompt needs.");
    }
    let (deepest, about) = extent(value);
    if deepest > DEEPEST {
        let message = format!("Lists and objects are nested {deepest} levels deep; the limit is {DEEPEST}.");
        return refuse("", message, "Make the definition flatter.");
    }
    if about > LARGEST_DEFINITION {
        return Some(too_many_bytes(about));
    }
    if has_long_pointer(value) {
        let message =
            format!("The names of fields on the way to a value have more than {LONGEST_POINTER} bytes together.");
        return refuse("", message, "Shorten the names of members.");
    }
    // Measured as stored: with escapes and all digits.
    let bytes = value.to_string().len();
    (bytes > LARGEST_DEFINITION).then(|| too_many_bytes(bytes))
}

/// Uses neither recursion nor the pointers themselves: the value is unchecked input.
fn has_long_pointer(value: &Value) -> bool {
    let mut ahead = vec![(value, 0)];
    while let Some((value, length)) = ahead.pop() {
        if length > LONGEST_POINTER {
            return true;
        }
        match value {
            Value::Array(items) => {
                let digits = items.len().to_string().len();
                ahead.extend(items.iter().map(|item| (item, length + 1 + digits)));
            }
            Value::Object(members) => {
                ahead.extend(members.iter().map(|(name, member)| (member, length + 1 + name.len())));
            }
            _ => {}
        }
    }
    false
}

pub(super) fn too_many_bytes(bytes: usize) -> Diagnostic {
    let message = format!("The definition has about {bytes} bytes; the limit is {LARGEST_DEFINITION}.");
    let hint = "Keep data out of the definition: let an action fetch it.";
    Diagnostic::error(Code::TooLarge, "", message, hint)
}

/// For a definition that exceeds the limit only together with the parameters of its tools.
pub(super) fn too_large_with_tools(bytes: usize, most: usize) -> Diagnostic {
    let message =
        format!("The definition and the parameters of its tools have {bytes} bytes together; the limit is {most}.");
    let hint = "Keep data out of the definition, or split the automation so that each part uses fewer tools.";
    Diagnostic::error(Code::TooLarge, "", message, hint)
}

fn variables(members: &mut Members<'_, '_>) -> Map<String, Value> {
    let Some(variables) = members.object("variables", "{\"channel\": \"C024BE91L\"}") else { return Map::new() };
    if variables.len() > MOST_VARIABLES {
        let message = format!("The definition has {} variables; the limit is {MOST_VARIABLES}.", variables.len());
        members.error(Code::TooLarge, "variables", message, "Remove the unused ones.");
        return Map::new();
    }
    let place = members.path("variables");
    for (name, value) in variables {
        check_name(name, &child(&place, name), "variable", members.report);
        if holds_template(value) {
            let message =
                format!("The variable {name} holds a template, but templates in variables are not filled in.");
            let hint = "Write the value itself, or use the path where the variable is used.";
            let error = Diagnostic::error(Code::TemplateNotAllowed, child(&place, name), message, hint);
            members.report.push(error.found(value));
        }
    }
    variables.clone()
}

fn holds_template(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains("{{"),
        Value::Array(items) => items.iter().any(holds_template),
        Value::Object(members) => members.values().any(holds_template),
        _ => false,
    }
}

fn check_name(name: &str, pointer: &str, what: &str, diagnostics: &mut Diagnostics) {
    let begins = name.chars().next().is_some_and(|letter| letter.is_alphabetic() || letter == '_');
    let plain = name.chars().all(|letter| letter.is_alphanumeric() || letter == '_' || letter == '-');
    if !begins || !plain || name.chars().count() > LONGEST_ID {
        let message = format!("The name of a {what} has only letters, digits, - and _, and begins with a letter.");
        let hint = "Choose another name, for example \"found_rows\".";
        diagnostics.push(Diagnostic::error(Code::InvalidValue, pointer, message, hint).found(&name.into()));
    } else if RESERVED.contains(&name) || data::is_date(name) {
        let message = format!("{name} is a reserved name: no {what} can have it.");
        let hint = format!("Choose another name, for example \"my_{name}\".");
        diagnostics.push(Diagnostic::error(Code::DuplicateName, pointer, message, hint));
    }
}

fn fingerprints(members: &mut Members<'_, '_>) -> BTreeMap<String, String> {
    const EXAMPLE: &str = "{\"slack_post_message\": \"the fingerprint from fetch_tool_data\"}";
    let Some(given) = members.object("fingerprints", EXAMPLE) else { return BTreeMap::new() };
    let place = members.path("fingerprints");
    let mut fingerprints = BTreeMap::new();
    for (tool, value) in given {
        let fingerprint = value.as_str().map(str::trim);
        if let Some(fingerprint) = fingerprint.filter(|text| !text.is_empty() && text.len() <= LONGEST_FINGERPRINT) {
            fingerprints.insert(tool.clone(), fingerprint.to_owned());
        } else {
            let expected = "the fingerprint that fetch_tool_data gave";
            members.report.push(wrong_type(&child(&place, tool), value, expected, "\"9f86d081884c7d65\""));
        }
    }
    fingerprints
}

fn body(members: &mut Members<'_, '_>, variables: &Map<String, Value>) -> (AutomationBody, Vec<Step>) {
    let actions = members.get("actions");
    if actions.is_none() {
        members.refuse(&["catch"], "a prompt has no actions that could fail");
    }
    members.know("catch");
    let prompt: Map<String, Value> = PROMPT_FIELDS
        .into_iter()
        .filter_map(|name| members.get(name).map(|value| (name.to_owned(), value.clone())))
        .collect();
    match actions {
        None if prompt.is_empty() => {
            let message = "There is nothing to do: neither actions nor a prompt.";
            let hint = "Add \"actions\": [{\"id\", \"tool\", \"parameters\"}], or \"prompt\" with \"tools\".";
            members.report.push(Diagnostic::error(Code::WrongBody, "", message, hint));
            // Keeps an empty body, so that mistakes elsewhere are still reported.
            (AutomationBody::Actions(Vec::new()), Vec::new())
        }
        None => {
            members.unlist(["actions"]);
            (AutomationBody::Prompt(prompt), Vec::new())
        }
        Some(_) => {
            members.unlist(PROMPT_FIELDS);
            if let Some(name) = prompt.keys().next() {
                let message =
                    format!("An automation has either actions or a prompt, but this one has actions and {name}.");
                members.error(Code::WrongBody, name, message, "Remove one of the two.");
            }
            let (steps, catch) = StepReader::of(variables).read(members);
            (AutomationBody::Actions(steps), catch)
        }
    }
}
