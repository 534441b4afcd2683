//! Validates a definition against [`Known`]. Pure: the caller reads all rows first.

pub(super) mod known;
mod names;
pub(super) mod parameters;
pub(super) mod scope;
mod service;
mod steps;
pub(super) mod values_in_words;

use serde_json::{Map, Value};

use self::{
    known::{Known, KnownService, KnownTool, Preflight, Purpose, UsableTool, changes, summary},
    scope::{Item, Knowledge, Sample, Scope, TriggerData},
    service::{check_connection, check_service},
    steps::{check_steps, may_hold_steps},
};
use super::{
    definition::{
        AutomationBody, Definition,
        diagnostics::{Code, Diagnostic, Diagnostics, child},
        trigger::{Polling, Trigger, check_time},
    },
    expressions::{
        conditions::{Clause, Condition, Operator, is_number},
        data::ITEM,
        templates::texts_of,
    },
    nearest,
    running::run_request::{NamedTool, RunRequest},
    triggers::polling::list_in,
};
use crate::{
    error::Problems,
    injection::{FEED_ENTRIES, FEED_ENTRY_ID, READ_FEED},
    models::{RunCeilings, ServiceCapabilities, ToolRef, WebhookPayload, folded_name},
};

pub fn validate(definition: &Definition, known: &Known, diagnostics: &mut Diagnostics) {
    if known.purpose != Purpose::Resumption {
        if let Some(trigger) = &definition.trigger {
            check_time(trigger, known.now, diagnostics);
        }
        names::check(definition, diagnostics);
    }
    check_service(definition, known, diagnostics);
    check_tools(definition, known, diagnostics);
    let mut scope = Scope::of(&definition.variables, trigger_data(definition, known));
    scope.unsure = definition.unreadable.contains("/variables");
    if let Some(Trigger::Polling(polling)) = &definition.trigger {
        check_source(definition, polling, &Scope { trigger: TriggerData::None, ..scope.clone() }, known, diagnostics);
    }
    check_condition(definition.trigger.as_ref().and_then(Trigger::filter), &scope, diagnostics);
    // The filter sees each item; the actions see them grouped.
    let scope = match &definition.trigger {
        Some(Trigger::Polling(Polling { aggregation_mode: mode @ ("batch" | "summary"), .. })) => {
            Scope { trigger: TriggerData::Several { summary: *mode == "summary" }, ..scope }
        }
        _ => scope,
    };
    match &definition.body {
        AutomationBody::Actions(steps) => check_steps(definition, steps, scope, known, diagnostics),
        AutomationBody::Prompt(prompt) => check_prompt(prompt, &scope, known, diagnostics),
    }
}

// ------------------------------------------------------------------------------------------------------- the trigger

fn trigger_data<'a>(definition: &'a Definition, known: &'a Known) -> TriggerData<'a> {
    match (&definition.trigger, &known.trigger_service) {
        (Some(Trigger::ScheduleOnce { .. } | Trigger::ScheduleRecurring { .. }), _) => TriggerData::None,
        (Some(Trigger::Manual), _) => TriggerData::Given,
        (Some(Trigger::Webhook { event_type, .. }), service) => event_data(event_type, service, &known.events),
        (Some(Trigger::Polling(polling)), _) => match &known.preflight {
            Preflight::Answered(answer) => items_of(polling, answer, known).map_or(TriggerData::Unknown, |items| {
                TriggerData::Items { of: Sample::Answer(&polling.source_tool), items }
            }),
            _ => TriggerData::Unknown,
        },
        _ => TriggerData::Unknown,
    }
}

fn event_data<'a>(event_type: &'a str, service: &'a KnownService, samples: &'a [Value]) -> TriggerData<'a> {
    let described = match service {
        KnownService::Here { capabilities: Some(capabilities), .. } => {
            capabilities.webhook_payload_schemas.get(event_type)
        }
        _ => None,
    };
    match described {
        Some(WebhookPayload { trigger_data_fields, example, .. }) if !trigger_data_fields.is_empty() => {
            TriggerData::Fields { of: event_type, fields: trigger_data_fields, example: example.as_ref() }
        }
        _ if samples.iter().any(Value::is_object) => {
            TriggerData::Items { of: Sample::Events(event_type), items: samples }
        }
        _ => TriggerData::Unknown,
    }
}

/// Per answer.
const MOST_ITEMS: usize = 100;

/// The items of an answer, at the place stated in the service's capabilities.
fn items_of<'a>(polling: &Polling, answer: &'a Value, known: &Known) -> Option<&'a [Value]> {
    let capabilities = match &known.trigger_service {
        KnownService::Here { capabilities: Some(capabilities), .. } => Some(capabilities.as_ref()),
        _ => None,
    };
    let list = list_in(answer, PolledPlaces::of(polling, capabilities).items);
    let items = list.as_array().map_or(std::slice::from_ref(list), Vec::as_slice);
    let items = items.get(..items.len().min(MOST_ITEMS)).unwrap_or_default();
    items.iter().any(Value::is_object).then_some(items)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PolledPlaces<'a> {
    pub(super) items: Option<&'a str>,
    pub(super) id: Option<&'a str>,
}

impl<'a> PolledPlaces<'a> {
    /// As the trigger says, else the tool, else the service.
    pub(super) fn of(polling: &'a Polling, capabilities: Option<&'a ServiceCapabilities>) -> Self {
        let described = capabilities.and_then(|capabilities| endpoint(polling, capabilities));
        let at = |field: &str| described.and_then(|endpoint| endpoint.get(field)?.as_str());
        let of_feed = polling.source_tool == READ_FEED;
        let items = polling.items.as_deref().or_else(|| if of_feed { Some(FEED_ENTRIES) } else { at("items") });
        let id = polling.id.as_deref().or_else(|| if of_feed { Some(FEED_ENTRY_ID) } else { at("id") });
        Self { items, id: id.filter(|id| !id.is_empty()) }
    }
}

/// The endpoint in a service's capabilities for the polled tool: `{"source_tool", "items", "id", …}`.
fn endpoint<'k>(polling: &Polling, capabilities: &'k ServiceCapabilities) -> Option<&'k Value> {
    let endpoints = &capabilities.polling_endpoints;
    let of_tool = |endpoint: &&Value| endpoint.get("source_tool").is_some_and(|tool| *tool == polling.source_tool);
    let of_event = polling.event_type.as_ref().and_then(|event| endpoints.get(event)).filter(of_tool);
    of_event.or_else(|| endpoints.values().find(of_tool))
}

fn check_source(
    definition: &Definition,
    polling: &Polling,
    scope: &Scope<'_>,
    known: &Known,
    diagnostics: &mut Diagnostics,
) {
    const PLACE: &str = "/trigger_config/source_tool";
    let name = &polling.source_tool;
    let Some(KnownTool::Here(tool)) = known.tools.get(name) else {
        parameters::check_templates(&polling.tool_params, "/trigger_config/tool_params", scope, diagnostics);
        return;
    };
    if tool.effect {
        let message = format!("{name} changes something, but a source tool is called repeatedly.");
        let hint = "Use a tool that only reads, for example one that lists or searches.";
        diagnostics.push(Diagnostic::error(Code::SourceToolActs, PLACE, message, hint));
    }
    if let Some((service, _)) = &tool.service
        && folded_name(service) != folded_name(&polling.service)
    {
        let (other, instead) = match polling.service.as_str() {
            "" => ("no service".to_owned(), "a tool of the organization's own".to_owned()),
            written => (written.to_owned(), format!("a tool of {written}")),
        };
        let message = format!("{name} is a tool of {service}, and the trigger is of {other}.");
        let hint = format!("Write \"service\": \"{service}\", or use {instead}.");
        diagnostics.push(Diagnostic::error(Code::WrongService, PLACE, message, hint));
    }
    let is_built_in = matches!(tool.reference, ToolRef::BuiltIn(_)) && name != READ_FEED;
    if is_built_in && polling.service.is_empty() {
        let message = format!("{name} lists nothing, so it cannot be polled.");
        let hint = "Use read_feed, a tool of the organization's own, or a service's tool with its service.";
        diagnostics.push(Diagnostic::error(Code::WrongService, PLACE, message, hint));
    }
    if is_built_in
        && let KnownService::Here { name: service, capabilities: Some(capabilities), .. } = &known.trigger_service
        && endpoint(polling, capabilities).is_none()
    {
        let message = format!("{name} is not one of the polled tools of {service}.");
        let hint = format!("Use a tool of {service} that lists or searches; initial_md_fetch names them.");
        diagnostics.push(Diagnostic::error(Code::WrongService, PLACE, message, hint));
    }
    // Parameters written for an older version of the tool are not checked against the new one.
    let drifted = diagnostics.has_errors_at(&child("/fingerprints", name));
    let unreadable = definition.unreadable.contains("/trigger_config/tool_params");
    if !drifted && !unreadable && !diagnostics.has_errors_at(PLACE) {
        let of_tool = (name.as_str(), tool.as_ref());
        parameters::check(of_tool, &polling.tool_params, "/trigger_config/tool_params", scope, diagnostics);
    } else {
        parameters::check_templates(&polling.tool_params, "/trigger_config/tool_params", scope, diagnostics);
    }
    let stands_against = drifted || diagnostics.has_errors_at("/trigger_config") || !can_act(tool);
    check_preflight(polling, stands_against, known, diagnostics);
}

fn can_act(tool: &UsableTool) -> bool {
    tool.service.as_ref().is_none_or(|(_, connection)| connection.can_act())
}

fn check_preflight(polling: &Polling, stands_against: bool, known: &Known, diagnostics: &mut Diagnostics) {
    const PLACE: &str = "/trigger_config/source_tool";
    let name = &polling.source_tool;
    let unchecked = match &known.preflight {
        Preflight::NotAsked if stands_against || known.purpose != Purpose::Saving => return,
        Preflight::NotAsked => {
            format!("{name} was not called for a sample answer, so paths into trigger_data are not checked.")
        }
        Preflight::Failed(sentence) => {
            let message = format!("{name} was called once for a sample answer, and failed: {sentence}");
            let hint = "Look at tool_params; paths into trigger_data are not checked.";
            diagnostics.push(Diagnostic::warning(Code::PreflightFailed, PLACE, message, hint));
            return;
        }
        Preflight::Answered(answer) if items_of(polling, answer, known).is_none() => {
            let found = match answer {
                Value::Array(items) if !items.is_empty() => "answered a list of values without fields",
                Value::Array(_) | Value::Object(_) | Value::Null => "found nothing",
                Value::String(_) => "answered text, which has no fields",
                _ => "answered a value without fields",
            };
            format!("{name} was called once and {found}, so paths into trigger_data are not checked.")
        }
        Preflight::Answered(_) => return,
    };
    let hint = "Check the paths against the tool's result.";
    diagnostics.push(Diagnostic::warning(Code::NotChecked, PLACE, unchecked, hint));
}

// --------------------------------------------------------------------------------------------------------- the tools

fn check_tools(definition: &Definition, known: &Known, diagnostics: &mut Diagnostics) {
    let used = definition.tools();
    for (name, place) in &used {
        match known.tools.get(name) {
            Some(KnownTool::Here(tool)) => {
                let unreadable = &definition.unreadable;
                if !unreadable.contains("/fingerprints") && !unreadable.contains(&child("/fingerprints", name)) {
                    let read = definition.fingerprints.get(name).map(String::as_str);
                    check_fingerprint(name, tool, read, place, known, diagnostics);
                }
                if let Some((service, connection)) = &tool.service {
                    check_connection(service, connection, known.purpose, place, diagnostics);
                }
                if tool.schema.is_none() {
                    let message = format!("The schema of {name} cannot be checked in full.");
                    let hint = "Compare its parameters with the schema that fetch_tool_data gives.";
                    diagnostics.push(Diagnostic::warning(Code::NotChecked, place, message, hint));
                }
            }
            Some(missing) => missing_tool(name, missing, place).into_iter().for_each(|error| diagnostics.push(error)),
            None => {}
        }
    }
    // The tool may be in a part that could not be parsed.
    if definition.unreadable.iter().any(|place| names_a_tool(place)) {
        return;
    }
    for name in definition.fingerprints.keys().filter(|name| !used.contains_key(*name)) {
        let message = format!("The automation does not use {name}.");
        let place = child("/fingerprints", name);
        let hint = "Remove the fingerprint, or use exactly this name where the tool is used.";
        diagnostics.push(Diagnostic::warning(Code::UnusedFingerprint, place, message, hint));
    }
}

/// Whether a tool may be named at this pointer: a step or its tool, `/tools/0/built_in`, the trigger.
fn names_a_tool(place: &str) -> bool {
    let steps: Vec<&str> = place.split('/').skip(1).collect();
    match steps[..] {
        ["trigger_type" | "tools" | "trigger_config"] | ["tools", _] => true,
        ["trigger_config", name] => name == "source_tool",
        _ => place.ends_with("/tool") || may_hold_steps(place),
    }
}

fn missing_tool(name: &str, missing: &KnownTool, place: &str) -> Option<Diagnostic> {
    Some(match missing {
        KnownTool::Here(_) => return None,
        KnownTool::NotFound { others, not_searched } => {
            let message = format!("There is no tool {}.", crate::cut::cut(name.to_owned(), 60));
            let hint = "Find the tool with search_tools or initial_md_fetch, and read it with fetch_tool_data.";
            let hint = not_searched.map_or_else(|| hint.to_owned(), |not_searched| format!("{hint} {not_searched}"));
            let meant = nearest(name, others.iter().map(String::as_str));
            Diagnostic::error(Code::UnknownTool, place, message, hint).found(&name.into()).meaning(meant)
        }
        KnownTool::Inactive { service } => {
            let message = format!("{name} is switched off, or its service {service} is.");
            let hint = "Use another tool; search_tools lists the usable ones.";
            Diagnostic::error(Code::InactiveTool, place, message, hint)
        }
        KnownTool::Ambiguous { ids } => {
            let message = format!("Several tools of the organization are called {name}.");
            let error = Diagnostic::error(Code::AmbiguousTool, place, message, "Name the tool by its id.");
            error.allowed(ids.iter().map(String::as_str))
        }
        KnownTool::NeedsCall(reason) => {
            let message = format!("{name} {reason}, so it works in phone calls only.");
            let hint = "Leave it out, or use a tool that needs no call.";
            Diagnostic::error(Code::ToolNeedsCall, place, message, hint)
        }
        KnownTool::Unusable(reason) => {
            let message = format!("{name} {reason}.");
            Diagnostic::error(Code::UnknownTool, place, message, "Use another tool, or try again later.")
        }
    })
}

fn check_fingerprint(
    name: &str,
    tool: &UsableTool,
    read: Option<&str>,
    place: &str,
    known: &Known,
    diagnostics: &mut Diagnostics,
) {
    let hint = format!(
        "Call fetch_tool_data([\"{name}\"]) and put its fingerprint into \"fingerprints\": {{\"{name}\": \"...\"}}."
    );
    let Some(read) = read else {
        let message = format!("The schema of {name} was not read before it was used.");
        diagnostics.push(Diagnostic::error(Code::SchemaNotRead, place, message, hint));
        return;
    };
    if read == tool.fingerprint {
        return;
    }
    let now = summary(&tool.parameters);
    let before = match (&tool.previous, known.earlier.get(name)) {
        (Some((fingerprint, parameters)), _) if fingerprint == read => Some(summary(parameters)),
        (_, Some(earlier)) if earlier.fingerprint == read => Some(earlier.parameters.clone()),
        _ => None,
    };
    let of_another = known.tools.iter().find_map(|(other, tool)| match tool {
        KnownTool::Here(tool) if tool.fingerprint == read && other != name => Some(other),
        _ => None,
    });
    let message = match (before.map(|before| changes(&before, &now)), of_another) {
        (_, Some(other)) => format!("This is the fingerprint of {other}, not that of {name}."),
        (Some(changes), None) if !changes.is_empty() => {
            format!("{name} has changed since its schema was read: {}.", changes.join("; "))
        }
        (Some(_), None) => format!(
            "{name} has changed since its schema was read: its parameters are the same, but its details or its implementation have changed."
        ),
        (None, None) => format!("{name} has changed since its schema was read, or this was never its fingerprint."),
    };
    let place = child("/fingerprints", name);
    diagnostics.push(Diagnostic::error(Code::ToolChanged, place, message, hint).found(&read.into()));
}

// --------------------------------------------------------------------------------------------------------- conditions

fn check_condition(condition: Option<&Condition>, scope: &Scope<'_>, diagnostics: &mut Diagnostics) {
    if let Some(condition) = condition {
        check_compared(condition, scope, None, diagnostics);
    }
}

/// `values`: the scope of the values, if it is another one than that of the paths.
fn check_compared(condition: &Condition, scope: &Scope<'_>, values: Option<&Scope<'_>>, diagnostics: &mut Diagnostics) {
    for clause in condition.clauses() {
        let place = child(&clause.pointer, "path");
        let knowledge = parameters::check_path(&clause.path, (&place, clause.path.as_str()), scope, diagnostics);
        if let Some(knowledge) = knowledge {
            check_operator(clause, knowledge, diagnostics);
        }
        if let Some(of_item) = &clause.of_item {
            let mut within = scope.clone();
            within.items.push((ITEM, knowledge.map_or(Item::Unknown, Knowledge::item)));
            check_compared(of_item, &within, values, diagnostics);
        } else {
            let place = child(&clause.pointer, "value");
            parameters::check_texts(&clause.value, &place, values.unwrap_or(scope), diagnostics);
        }
    }
}

fn is_literal(value: &Value) -> bool {
    !texts_of(value).iter().any(|text| text.contains("{{"))
}

fn check_operator(clause: &Clause, knowledge: Knowledge<'_>, diagnostics: &mut Diagnostics) {
    let types = knowledge.types();
    let [kind] = types[..] else { return };
    let operator = clause.operator;
    let literal = is_literal(&clause.value);
    let single = |value: &Value| !value.is_object() && !value.is_array();
    let contains = matches!(operator, Operator::Contains | Operator::ContainsAny | Operator::NotContains);
    if contains && literal && knowledge.is_list_of_objects() && clause.values().iter().all(single) {
        let path = clause.path.as_str();
        let message = format!("{path} is a list of objects, which never equals a text or a number.");
        let hint = format!(
            "Look through it: {{\"path\": \"{path}\", \"op\": \"any\", \"value\": {{\"path\": \"item.name\", \"op\": \"==\", \"value\": …}}}}, or compare a member of one of them, for example {path}[0].name."
        );
        let place = child(&clause.pointer, "op");
        diagnostics
            .push(Diagnostic::error(Code::OperatorMisfit, place, message, hint).found(&operator.as_str().into()));
        return;
    }
    if operator.orders() && literal && matches!(kind, "integer" | "number") && !is_number(&clause.value) {
        let message = format!(
            "{} is a number, but this value is not, so {} never holds.",
            clause.path.as_str(),
            operator.as_str()
        );
        let place = child(&clause.pointer, "value");
        diagnostics.push(
            Diagnostic::error(Code::OperatorMisfit, place, message, "Write a number to compare with.")
                .found(&clause.value),
        );
        return;
    }
    let (never, instead) = match operator {
        _ if operator.orders() && !matches!(kind, "integer" | "number" | "string" | "null") => (true, "==, or exists"),
        Operator::Contains | Operator::ContainsAny | Operator::NotContains
            if matches!(kind, "integer" | "number" | "boolean") =>
        {
            (false, "== or !=")
        }
        Operator::StartsWith | Operator::EndsWith | Operator::Matches if !matches!(kind, "string" | "null") => {
            (false, "==, or contains")
        }
        Operator::Any | Operator::All | Operator::None if !matches!(kind, "array" | "null") => (true, "==, or in"),
        Operator::Between if !matches!(kind, "integer" | "number" | "string" | "null") => (true, "==, or exists"),
        Operator::In if matches!(kind, "array") => (true, "any, or contains_any"),
        Operator::IsEmpty if matches!(kind, "integer" | "number" | "boolean") => (true, "exists, or =="),
        _ => return,
    };
    let (path, written) = (clause.path.as_str(), operator.as_str());
    let place = child(&clause.pointer, "op");
    let misfit = if never {
        let message = format!("{path} is of type {kind}, and {written} never holds for that.");
        Diagnostic::error(Code::OperatorMisfit, place, message, format!("Use {instead}."))
    } else {
        let message = format!("{path} is of type {kind}, and {written} compares it as text.");
        Diagnostic::warning(Code::OperatorMisfit, place, message, format!("Use {instead}, unless you want that."))
    };
    diagnostics.push(misfit.found(&operator.as_str().into()));
}

// ----------------------------------------------------------------------------------------------------------- a prompt

fn check_prompt(prompt: &Map<String, Value>, scope: &Scope<'_>, known: &Known, diagnostics: &mut Diagnostics) {
    for name in ["prompt", "system_prompt"] {
        if let Some(text) = prompt.get(name).and_then(Value::as_str) {
            parameters::check_text(text, &child("", name), scope, diagnostics);
        }
    }
    check_request(prompt, "", known.ceilings.as_ref(), known, diagnostics);
}

fn check_request(
    request: &Map<String, Value>,
    pointer: &str,
    ceilings: Option<&RunCeilings>,
    known: &Known,
    diagnostics: &mut Diagnostics,
) {
    let naming = |name: &str| {
        let built_in = known.built_in.has(name).then(|| ToolRef::BuiltIn(name.to_owned()));
        Ok(built_in.unwrap_or_else(|| ToolRef::Service { name: name.to_owned(), fingerprint: None }))
    };
    let mut problems = Problems::default();
    let body = Value::Object(request.clone());
    let (named, _) = RunRequest::read_named(&body, &known.built_in, &naming, ceilings, &mut problems);
    for NamedTool { place, tool, allowed_hosts } in &named {
        if let ToolRef::BuiltIn(name) = tool
            && known
                .built_in
                .get(name)
                .is_some_and(|tool| !allowed_hosts.is_empty() && tool.restricted_to_hosts(allowed_hosts).is_none())
        {
            problems
                .add(format!("{place}.allowed_hosts"), "does not apply: this tool fetches no addresses; leave it out");
        }
    }
    for problem in problems.iter() {
        let place = pointer_of(&problem.field);
        let said = problem.problem.as_str();
        let (code, hint) = if said == "is required" {
            (Code::MissingField, "Add it.")
        } else if said.starts_with("is not a known field") {
            (Code::UnknownField, "Leave it out.")
        } else if place.starts_with("/schema") {
            (Code::InvalidSchema, "Write a JSON Schema of draft 2020-12 with the keywords that docs/runs.md lists.")
        } else {
            (Code::InvalidValue, "Change it so.")
        };
        let place = format!("{pointer}{place}");
        diagnostics.push(Diagnostic::error(code, place, format!("{} {said}.", problem.field), hint));
    }
}

/// Turns `tools[0].allowed_hosts[1]` into `/tools/0/allowed_hosts/1`.
fn pointer_of(field: &str) -> String {
    if field == "body" {
        return String::new();
    }
    let steps = field.split(['.', '[', ']']).filter(|step| !step.is_empty());
    steps.fold(String::new(), |pointer, step| child(&pointer, step.trim_matches('"')))
}
