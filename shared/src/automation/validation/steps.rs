//! Validates steps: each with the outputs that it can see, at any depth.

use std::{sync::LazyLock, time::Duration};

use jiff::tz::TimeZone;
use serde_json::{Map, Value, json};

use super::{
    check_compared, check_condition, check_request, event_data, is_literal,
    known::{CalledAutomation, Known, KnownService, KnownTool, Purpose},
    parameters,
    scope::{Item, Knowledge, Output, Scope},
    service::{Listener, check_listener},
};
use crate::{
    automation::DEEPEST_CALLS,
    automation::definition::{
        Action, Definition,
        diagnostics::{Code, Diagnostic, Diagnostics, Severity, child},
        steps::{AwaitedEvent, Choose, ERROR, ForEach, Step, Wait, WaitUntil, moment},
        trigger::Trigger,
    },
    injection::{AUTOMATION_ID, CALL_AUTOMATION, LLM_AGENT},
    models::AutomationId,
    tool::arguments::is_absent,
};

/// No zone is further from UTC.
const A_DAY: Duration = Duration::from_secs(24 * 60 * 60);

static OF_A_LOOP: LazyLock<Value> = LazyLock::new(|| {
    json!({"type": "array", "items": {"type": "object", "additionalProperties": false, "properties": {
        "key": {"type": "string"}, "succeeded": {"type": "boolean"}, "error": {"type": "string"}, "outputs": {"type": "object"},
    }}})
});

/// The failure in the `catch` of an action, and in that of the automation.
static OF_A_FAILURE: LazyLock<Value> = LazyLock::new(|| {
    let text = json!({"type": "string"});
    json!({"type": "object", "additionalProperties": false, "properties": {
        "message": text, "action": text, "place": text, "tool": text, "status": text,
    }})
});
static OF_A_FAILED_RUN: LazyLock<Value> = LazyLock::new(|| {
    json!({"type": "object", "additionalProperties": false, "properties": {
        "message": {"type": "string"}, "places": {"type": "array", "items": {"type": "string"}},
    }})
});

static NO_VARIABLES: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);

struct Checks<'a, 'd> {
    definition: &'a Definition,
    known: &'a Known,
    diagnostics: &'d mut Diagnostics,
}

pub(super) fn check_steps<'a>(
    definition: &'a Definition,
    steps: &'a [Step],
    mut scope: Scope<'a>,
    known: &'a Known,
    diagnostics: &mut Diagnostics,
) {
    // A step that could not be parsed may define an output.
    let may_define = |place: &String| {
        may_hold_steps(place) || place.ends_with("/output_as") || place.ends_with("/wait") || place.contains("/wait/")
    };
    scope.unsure |= definition.unreadable.iter().any(may_define);
    let mut checks = Checks { definition, known, diagnostics };
    checks.steps(steps, &mut scope);
    checks.catch(&definition.catch, &OF_A_FAILED_RUN, &scope);
}

/// Whether steps may be at this pointer: `/actions`, `/actions/0`, `/actions/0/choose/1/actions/2`.
pub(super) fn may_hold_steps(place: &str) -> bool {
    let Some(below) = place.strip_prefix("/actions").or_else(|| place.strip_prefix("/catch")) else { return false };
    let number = |step: &str| !step.is_empty() && step.bytes().all(|byte| byte.is_ascii_digit());
    below.split('/').skip(1).all(|step| number(step) || ["actions", "choose", "otherwise", "catch"].contains(&step))
}

impl<'a> Checks<'a, '_> {
    /// Checks the steps in order, and adds their outputs to the scope.
    fn steps(&mut self, steps: &'a [Step], scope: &mut Scope<'a>) {
        for (index, step) in steps.iter().enumerate() {
            scope.later.push(steps.get(index..).unwrap_or_default());
            scope.action = step.id();
            if let Some(name) = step.output_as()
                && scope.has_field(name)
            {
                self.hides_a_field(name, &child(step.pointer(), "output_as"), scope);
            }
            match step {
                Step::Action(action) => self.action(action, scope),
                Step::ForEach(each) => self.for_each(each, scope),
                Step::Choose(choose) => self.choose(choose, scope),
                Step::Wait(wait) => self.wait(wait, scope),
            }
            scope.later.pop();
        }
    }

    fn action(&mut self, action: &'a Action, scope: &mut Scope<'a>) {
        let (known, diagnostics) = (self.known, &mut *self.diagnostics);
        check_condition(action.condition.as_ref(), scope, diagnostics);
        let place = child(&action.pointer, action.parameters_field);
        if action.tool.as_deref() == Some(LLM_AGENT) {
            check_model(action, &place, known, diagnostics);
            check_agent(action, &place, known, diagnostics);
        }
        if action.tool.as_deref() == Some(CALL_AUTOMATION) {
            check_called(action, &place, known, diagnostics);
        }
        let tool = action.tool.as_deref().and_then(|name| Some((name, known.tools.get(name)?)));
        let usable = match tool {
            Some((name, KnownTool::Here(tool))) => Some((name, tool.as_ref())),
            _ => None,
        };
        match usable {
            _ if self.definition.unreadable.contains(&place) => {}
            // Parameters written for an older version of the tool are not checked against the new one.
            Some((name, tool)) if !diagnostics.has_errors_at(&child("/fingerprints", name)) => {
                parameters::check((name, tool), &action.parameters, &place, scope, diagnostics);
            }
            _ => parameters::check_templates(&action.parameters, &place, scope, diagnostics),
        }
        let returns = usable
            .map(|(_, tool)| &tool.returns)
            .filter(|schema| schema.as_object().is_some_and(|schema| !schema.is_empty()));
        // A failed action has no output.
        self.catch(&action.catch, &OF_A_FAILURE, scope);
        add_output(action.output_as.as_deref(), returns, scope);
    }

    fn catch(&mut self, steps: &'a [Step], error: &'static Value, scope: &Scope<'a>) {
        if !steps.is_empty() {
            let mut within = scope.clone();
            within.items.push((ERROR, Item::Schema(error)));
            self.steps(steps, &mut within);
        }
    }

    fn for_each(&mut self, each: &'a ForEach, scope: &mut Scope<'a>) {
        check_condition(each.condition.as_ref(), scope, self.diagnostics);
        let place = child(&each.pointer, "for_each");
        let item = match &each.list {
            Value::String(text) => {
                let (template, knowledge) = parameters::check_text(text, &place, scope, self.diagnostics);
                let knowledge = knowledge.filter(|_| template.lone().is_some());
                if let Some(knowledge) = knowledge {
                    self.check_list(text, knowledge, &place);
                }
                knowledge.map_or(Item::Unknown, Knowledge::item)
            }
            list => {
                parameters::check_texts(list, &place, scope, self.diagnostics);
                Knowledge::Like(list).item()
            }
        };
        if scope.has_field(&each.item) {
            self.hides_a_field(&each.item, &child(&each.pointer, "as"), scope);
        }
        let mut within = scope.clone();
        within.items.push((&each.item, item));
        if let Some(key) = &each.key {
            parameters::check_text(key, &child(&each.pointer, "key"), &within, self.diagnostics);
        }
        self.steps(&each.steps, &mut within);
        add_output(each.output_as.as_deref(), Some(&OF_A_LOOP), scope);
        self.catch(&each.catch, &OF_A_FAILURE, scope);
    }

    fn check_list(&mut self, text: &str, knowledge: Knowledge<'_>, place: &str) {
        let types = knowledge.types();
        if types.is_empty() || types.contains(&"array") || types == ["null"] {
            return;
        }
        let message = format!("{text} is of type {}, but for_each needs a list.", types.join(" or "));
        let hint = "Write the path of a list, for example \"{{found.rows}}\".";
        self.diagnostics.push(Diagnostic::error(Code::WrongType, place, message, hint).expected("a list"));
    }

    fn choose(&mut self, choose: &'a Choose, scope: &mut Scope<'a>) {
        let before = scope.outputs.len();
        let mut given: Vec<Output<'a>> = Vec::new();
        let branches = choose.branches.iter().map(|branch| (Some(&branch.when), &branch.steps));
        for (when, steps) in branches.chain([(None, &choose.otherwise)]) {
            check_condition(when, scope, self.diagnostics);
            let mut within = scope.clone();
            self.steps(steps, &mut within);
            for output in within.outputs.drain(before..) {
                match given.iter_mut().find(|known| known.name == output.name) {
                    // Which branch gives it is unknown.
                    Some(known) => known.returns = None,
                    None => given.push(output),
                }
            }
        }
        scope.outputs.extend(given);
        self.catch(&choose.catch, &OF_A_FAILURE, scope);
    }

    fn wait(&mut self, wait: &'a Wait, scope: &mut Scope<'a>) {
        check_condition(wait.condition.as_ref(), scope, self.diagnostics);
        if let Some(awaited) = wait.awaited() {
            self.awaited(awaited, &wait.pointer, scope);
            add_output(wait.output_as.as_deref(), None, scope);
        }
        let WaitUntil::Moment(text) = &wait.until else { return };
        let place = child(&child(&wait.pointer, "wait"), "until");
        parameters::check_text(text, &place, scope, self.diagnostics);
        let is_over = moment(text, &TimeZone::UTC).is_some_and(|at| at.plus(A_DAY) < self.known.now);
        if is_over && self.known.purpose != Purpose::Resumption {
            let message = format!("{text} is over, so no run would wait for it.");
            let hint = "Write a moment in the future, or a template for one.";
            self.diagnostics.push(Diagnostic::error(Code::InThePast, place, message, hint));
        }
    }

    /// The paths of the filter lead into the event, and its templates into the data of the run.
    fn awaited(&mut self, awaited: &'a AwaitedEvent, pointer: &str, scope: &Scope<'a>) {
        let place = child(&child(pointer, "wait"), "for_event");
        let (service, event_type) = (awaited.service.clone(), awaited.event_type.clone());
        let trigger = Trigger::Webhook { service, event_type, params: Map::new(), filters: None };
        let known = self.known.awaited.get(&awaited.key());
        let (service, events) =
            known.map_or((&KnownService::NotNamed, [].as_slice()), |known| (&known.service, known.events.as_slice()));
        let listener = Listener { trigger: &trigger, service, events, place: &place, is_wait: true };
        check_listener(&listener, self.known.purpose, self.diagnostics);
        let Some(filters) = &awaited.filters else { return };
        let within = Scope::of(&NO_VARIABLES, event_data(&awaited.event_type, service, events));
        check_compared(filters, &within, Some(scope), self.diagnostics);
        for clause in filters.clauses().into_iter().filter(|clause| clause.path.first() == "user") {
            let message = "The filter of a wait looks at the event, which has no user of ours.";
            let hint = "Write a path of the event; use {{user.email}} as a value to compare with.";
            let place = child(&clause.pointer, "path");
            self.diagnostics.push(Diagnostic::error(Code::InvalidCondition, place, message, hint));
        }
    }

    /// Reports a name of a field of the trigger: later actions could no longer reach the field.
    fn hides_a_field(&mut self, name: &str, place: &str, scope: &Scope<'_>) {
        let message = format!("{name} is already a field of the trigger, which it would hide from later actions.");
        let hint = format!("Choose another name, for example \"{name}_output\".");
        let error = Diagnostic::error(Code::DuplicateName, place, message, hint);
        let severity = if scope.has_described_fields() { Severity::Error } else { Severity::Warning };
        self.diagnostics.push(Diagnostic { severity, ..error });
    }
}

fn add_output<'a>(name: Option<&'a str>, returns: Option<&'a Value>, scope: &mut Scope<'a>) {
    let Some(name) = name else { return };
    if scope.outputs.iter().all(|output| output.name != name) {
        scope.outputs.push(Output { name, returns });
    }
}

/// The automation that an action runs must be a literal id, so that circles are found before they run.
fn check_called(action: &Action, place: &str, known: &Known, diagnostics: &mut Diagnostics) {
    // A missing parameter has its own diagnostic.
    let Some(written) = action.parameters.get(AUTOMATION_ID) else { return };
    let place = child(place, AUTOMATION_ID);
    let read: Option<AutomationId> = written.as_str().and_then(|id| id.trim().parse().ok());
    let Some(id) = read else {
        let message = "The other automation must be a literal id, so that it can be checked.";
        let hint = "Write the id of an automation out; list_automations lists them.";
        diagnostics.push(Diagnostic::error(Code::TemplateNotAllowed, place, message, hint).found(written));
        return;
    };
    let diagnostic = match known.called.get(&id) {
        None | Some(CalledAutomation::Here) => return,
        Some(CalledAutomation::NotFound) => {
            let message = "The organization has no automation with this id.";
            let hint = "Use the id of one of its automations; list_automations lists them.";
            Diagnostic::error(Code::UnknownAutomation, place, message, hint)
        }
        Some(CalledAutomation::Inactive { name }) => {
            let message = format!("The automation \"{name}\" is not active, so this action would fail.");
            let hint = "Activate that automation first.";
            let error = Diagnostic::error(Code::InactiveAutomation, place, message, hint);
            Diagnostic { severity: known.purpose.severity(), ..error }
        }
        Some(CalledAutomation::InCircle { names }) => {
            let message = format!("Automations would run each other without end: {}.", in_order(names));
            let hint = "Leave one of these actions out, or move the shared actions to an automation of their own.";
            Diagnostic::error(Code::CircularRun, place, message, hint)
        }
        Some(CalledAutomation::TooDeep { names }) => {
            let message = format!("More than {DEEPEST_CALLS} automations would run each other: {}.", in_order(names));
            let hint = "Move actions of an inner automation into the one that runs it.";
            Diagnostic::error(Code::TooLarge, place, message, hint)
        }
    };
    diagnostics.push(diagnostic.found(written));
}

fn in_order(names: &[String]) -> String {
    names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(" runs ")
}

fn check_model(action: &Action, place: &str, known: &Known, diagnostics: &mut Diagnostics) {
    let (Some(ceilings), Some(written)) = (&known.ceilings, action.parameters.get("model")) else { return };
    let model = written.as_str().map(str::trim).filter(|model| !model.is_empty() && !model.contains("{{"));
    if let Some(problem) = model.and_then(|model| ceilings.refused_model(model)) {
        let (place, message) = (child(place, "model"), format!("The agent's model {problem}."));
        diagnostics.push(Diagnostic::error(Code::InvalidValue, place, message, "Change it so.").found(written));
    }
}

fn check_agent(action: &Action, place: &str, known: &Known, diagnostics: &mut Diagnostics) {
    let tools = child(place, "tools");
    check_tools_of_agent(action, &tools, diagnostics);
    let tools_are_fine = !diagnostics.has_errors_at(&tools);
    // Wrong types and a missing prompt have their own diagnostics.
    let mut request = Map::from_iter([("prompt".to_owned(), "A prompt".into())]);
    for (name, value) in &action.parameters {
        let (is_read, value) = match (name.as_str(), value) {
            ("limits", Value::Object(limits)) => {
                let literal = limits.iter().filter(|(_, limit)| is_literal(limit));
                (true, literal.map(|(name, limit)| (name.clone(), limit.clone())).collect())
            }
            ("prompt" | "system_prompt" | "model", Value::String(_)) | ("schema", Value::Object(_)) => {
                (true, value.clone())
            }
            ("tools", _) => (tools_are_fine, value.clone()),
            _ => (false, Value::Null),
        };
        if is_read && is_literal(&value) && !is_absent(&value) {
            request.insert(name.clone(), value);
        }
    }
    check_request(&request, place, None, known, diagnostics);
}

/// An agent's tools must be literal, so that they can be checked, and must not include another agent.
fn check_tools_of_agent(action: &Action, place: &str, diagnostics: &mut Diagnostics) {
    let hint = "Write the names of the tools out: \"tools\": [\"wget\"].";
    match action.parameters.get("tools") {
        None | Some(Value::Null) => {}
        Some(Value::Array(tools)) => {
            for (index, tool) in tools.iter().enumerate() {
                let name = tool.as_str().or_else(|| tool.get("built_in")?.as_str()).unwrap_or_default();
                let place = child(place, index.to_string());
                if name.contains("{{") || name.trim().is_empty() {
                    let message = "An agent's tools must be literal names, so that they can be checked.";
                    diagnostics.push(Diagnostic::error(Code::TemplateNotAllowed, place, message, hint).found(tool));
                } else if name.trim() == LLM_AGENT {
                    let message = "An agent cannot start another agent.";
                    diagnostics.push(Diagnostic::error(Code::NotAllowed, place, message, "Leave it out.").found(tool));
                }
            }
        }
        Some(other) => {
            let message = "An agent's tools are a list of names.";
            diagnostics.push(Diagnostic::error(Code::TemplateNotAllowed, place, message, hint).found(other));
        }
    }
}
