//! Reads the steps of a definition, and reports each mistake at its place.

use std::collections::BTreeSet;

use jiff::tz::TimeZone;
use serde_json::{Map, Value};

use super::{
    super::{
        Action, LONGEST_ID, LONGEST_TIMEOUT, LONGEST_TOOL, MOST_ACTIONS, MOST_RETRIES, OnError, USUAL_TIMEOUT,
        check_name,
        diagnostics::{Code, Diagnostic, Diagnostics, child},
        fields::{Members, wrong_type},
        limits,
        trigger::{Trigger, webhook},
    },
    AwaitedEvent, Branch, Choose, DEEPEST_STEPS, ERROR, ForEach, LONGEST_WAIT, MOST_AT_ONCE, MOST_ITEMS, Step, Wait,
    WaitUntil, moment,
};
use crate::automation::expressions::{conditions::Condition, path::Path, templates::Template};

/// Items of a loop unless `max_items` says otherwise.
const USUAL_ITEMS: u64 = 100;
const MOST_BRANCHES: usize = 20;
const LONGEST_KEY: usize = 500;
/// The item's name in a loop without `as`.
const USUAL_ITEM: &str = "item";

/// Each kind of step with its fields in other languages, for hints.
const OTHER_STEPS: [(&str, &[&str]); 3] = [
    ("for_each", &["foreach", "forEach", "for", "loop", "each", "iterate"]),
    ("choose", &["if", "switch", "branch", "branches", "choice", "case", "cases", "when"]),
    ("wait", &["sleep", "delay", "pause"]),
];

const A_LOOP: &str = "{\"id\": \"each\", \"for_each\": \"{{rows}}\", \"as\": \"row\", \"actions\": [{\"id\", \"tool\", \"parameters\"}]}";
const A_CHOICE: &str = "{\"id\": \"decide\", \"choose\": [{\"when\": {\"path\", \"op\", \"value\"}, \"actions\": [...]}], \"otherwise\": [...]}";

const A_PAUSE: &str = "{\"id\": \"pause\", \"wait\": {\"minutes\": 30}}";

type SeenNames = BTreeSet<String>;

pub(in crate::automation::definition) struct StepReader<'v> {
    variables: &'v Map<String, Value>,
    ids: BTreeSet<String>,
    count: usize,
    /// The number of steps around the list.
    depth: usize,
    /// Within a `catch`.
    catching: bool,
}

impl<'v> StepReader<'v> {
    pub(in crate::automation::definition) const fn of(variables: &'v Map<String, Value>) -> Self {
        Self { variables, ids: BTreeSet::new(), count: 0, depth: 0, catching: false }
    }

    /// The `actions` of the definition, and its `catch`.
    pub(in crate::automation::definition) fn read(&mut self, members: &mut Members<'_, '_>) -> (Vec<Step>, Vec<Step>) {
        let mut names = SeenNames::new();
        let steps = self.list(members, "actions", false, &mut names);
        // A catch counts as a step around its list.
        self.depth = 1;
        let catch = self.catch(members, &names);
        if self.count > MOST_ACTIONS {
            let message = format!(
                "The definition has {} actions with those in loops and branches; the limit is {MOST_ACTIONS}.",
                self.count
            );
            let hint = "Split the automation, or let a prompt with tools do the work.";
            members.report.push(Diagnostic::error(Code::TooLarge, members.path("actions"), message, hint));
        }
        (steps, catch)
    }

    /// Actions after a failure, which see it as `error`.
    fn catch(&mut self, members: &mut Members<'_, '_>, names: &SeenNames) -> Vec<Step> {
        if members.get("catch").is_none() {
            return Vec::new();
        }
        let mut inner = names.clone();
        // In a catch within a catch the name is the inner failure's.
        if self.variables.contains_key(ERROR) || (!self.catching && !inner.insert(ERROR.to_owned())) {
            let message =
                format!("In catch {ERROR} is the failure, but it is the name of a variable or an output, too.");
            let hint = "Give the variable or output another name.";
            members.report.push(Diagnostic::error(Code::DuplicateName, members.path("catch"), message, hint));
        }
        let outer = std::mem::replace(&mut self.catching, true);
        let steps = self.list(members, "catch", false, &mut inner);
        self.catching = outer;
        steps
    }

    /// The steps in a field, if it is given. `names`: outputs and items that can be seen there.
    fn list(
        &mut self,
        members: &mut Members<'_, '_>,
        field: &str,
        may_be_empty: bool,
        names: &mut SeenNames,
    ) -> Vec<Step> {
        let Some(value) = members.present(field) else { return Vec::new() };
        let place = members.path(field);
        let list = match value.as_array() {
            Some(list) if !list.is_empty() => list,
            Some(_) if may_be_empty => return Vec::new(),
            Some(_) => {
                let hint = "Add \"actions\": [{\"id\", \"tool\", \"parameters\"}].";
                members.report.push(Diagnostic::error(Code::WrongBody, place, "There are no actions.", hint));
                return Vec::new();
            }
            None => {
                let example = "[{\"id\", \"tool\", \"parameters\"}]";
                members.report.push(wrong_type(&place, value, "a list of actions", example));
                return Vec::new();
            }
        };
        let depth = self.depth;
        if depth > DEEPEST_STEPS {
            let message =
                format!("There are {depth} loops and branches around these actions; the limit is {DEEPEST_STEPS}.");
            let hint = "Move them out: let an earlier action prepare the list, or split the automation.";
            members.report.push(Diagnostic::error(Code::TooLarge, place, message, hint));
            return Vec::new();
        }
        self.count += list.len();
        self.depth += 1;
        let mut steps = Vec::new();
        for (index, value) in list.iter().enumerate() {
            let step = Members::of(value, &child(&place, index.to_string()), members.report);
            steps.extend(step.and_then(|step| self.step(step, index, names)));
        }
        self.depth -= 1;
        steps
    }

    fn step(&mut self, members: Members<'_, '_>, index: usize, names: &mut SeenNames) -> Option<Step> {
        let has = |name: &str| members.present(name).is_some();
        if has("for_each") {
            return self.for_each(members, index, names).map(Step::ForEach);
        }
        if has("choose") {
            return self.choose(members, index, names).map(Step::Choose);
        }
        if has("wait") {
            return self.wait(members, index, names).map(Step::Wait);
        }
        let mut others = OTHER_STEPS.iter().flat_map(|(meant, others)| others.iter().map(move |other| (meant, other)));
        let Some((meant, other)) = others.find(|(_, other)| !has("tool") && has(other)) else {
            return Some(Step::Action(self.action(members, index, names)));
        };
        let message = format!("There is no field {other} here.");
        let example = match *meant {
            "for_each" => A_LOOP,
            "wait" => A_PAUSE,
            _ => A_CHOICE,
        };
        let hint = format!("A step of this kind is {example}.");
        let error = Diagnostic::error(Code::UnknownField, members.path(other), message, hint);
        members.report.push(error.meaning(Some(meant)));
        // The step as a whole was not understood.
        let message = "The step has neither a tool nor for_each, choose or wait.";
        members.report.push(Diagnostic::error(Code::MissingField, members.place(), message, "Write one of them."));
        None
    }

    fn id(members: &mut Members<'_, '_>, index: usize) -> Option<String> {
        let example = format!("\"step_{}\"", index + 1);
        let (field, id) = members.get_either("id", "action_id");
        if let Some(id) = id {
            return members.as_text(field, id, LONGEST_ID, &example);
        }
        members.missing("id", &example);
        None
    }

    /// Reports an id that another step has.
    fn take_id(&mut self, id: Option<&String>, index: usize, members: &mut Members<'_, '_>) {
        let Some(id) = id.filter(|id| !self.ids.insert((*id).clone())) else { return };
        let free = format!("{id}_{}", index + 1);
        let hint = format!("Give it an id of its own, for example \"{free}\".");
        let message = format!("An earlier action already has the id {id}.");
        let error = Diagnostic::error(Code::DuplicateId, members.path("id"), message, hint);
        members.report.push(error.found(&id.as_str().into()).instead(free));
    }

    /// Reports a name of an output or item that is reserved or taken.
    fn take_name(
        &self,
        name: Option<&String>,
        field: &str,
        index: usize,
        names: &mut SeenNames,
        members: &mut Members<'_, '_>,
    ) {
        let Some(name) = name else { return };
        let place = members.path(field);
        check_name(name, &place, if field == "as" { "item" } else { "output" }, members.report);
        let taken = if self.variables.contains_key(name) { Some("a variable") } else { None };
        let taken = if names.insert(name.clone()) { taken } else { Some("the output of an earlier action") };
        if let Some(taken) = taken {
            let message = format!("{name} is already the name of {taken}.");
            let hint = format!("Choose another name, for example \"{name}_{}\".", index + 1);
            members.report.push(Diagnostic::error(Code::DuplicateName, place, message, hint));
        }
    }

    fn action(&mut self, mut members: Members<'_, '_>, index: usize, names: &mut SeenNames) -> Action {
        let id = Self::id(&mut members, index);
        let tool = members.required_text("tool", LONGEST_TOOL, "\"slack_post_message\"");
        let (parameters_field, parameters) = members.get_either("parameters", "params");
        let parameters = parameters
            .and_then(|value| members.as_object(parameters_field, value, "{\"channel\": \"C024BE91L\"}"))
            .cloned()
            .unwrap_or_default();
        let output_as = members.text("output_as", LONGEST_ID, "\"found_rows\"");
        let condition = condition(&mut members, "condition");
        let approval = limits::approval(&mut members);
        let timeout_seconds = members.whole("timeout_seconds", &(1..=LONGEST_TIMEOUT), "60").unwrap_or(USUAL_TIMEOUT);
        let on_error = on_error(&mut members);
        let retries = members.whole("retries", &(0..=MOST_RETRIES), "2").unwrap_or_default();
        let retries = u32::try_from(retries).unwrap_or_default();
        members.know("catch");
        members.finish();
        self.take_id(id.as_ref(), index, &mut members);
        self.take_name(output_as.as_ref(), "output_as", index, names, &mut members);
        let catch = self.catch(&mut members, names);
        Action {
            pointer: members.place().to_owned(),
            id,
            tool,
            parameters_field,
            parameters,
            output_as,
            condition,
            approval,
            timeout_seconds,
            on_error,
            retries,
            catch,
        }
    }

    fn for_each(&mut self, mut members: Members<'_, '_>, index: usize, names: &mut SeenNames) -> Option<ForEach> {
        let id = Self::id(&mut members, index);
        let list = list_of_items(&mut members);
        let item = members.text("as", LONGEST_ID, "\"row\"");
        let key = members.text("key", LONGEST_KEY, "\"{{row.id}}\"");
        if let Some(key) = key.as_ref().filter(|key| !key.contains("{{")) {
            let message = format!("{key} is the same for every item, so it identifies none.");
            let hint = format!(
                "Write a template, for example \"key\": \"{{{{{}.id}}}}\".",
                item.as_deref().unwrap_or(USUAL_ITEM)
            );
            members.error(Code::InvalidValue, "key", message, hint);
        }
        let max_items = members.whole("max_items", &(1..=MOST_ITEMS), "100").unwrap_or(USUAL_ITEMS);
        let at_once = members.whole("at_once", &(1..=MOST_AT_ONCE), "5").unwrap_or(1);
        let on_error = on_error(&mut members);
        let output_as = members.text("output_as", LONGEST_ID, "\"answers\"");
        let condition = condition(&mut members, "condition");
        members.refuse(&["tool", "parameters", "params"], "a loop calls tools in its actions");
        members.required("actions", "[{\"id\", \"tool\", \"parameters\"}]");
        self.take_id(id.as_ref(), index, &mut members);
        let mut inner = names.clone();
        let item = item.unwrap_or_else(|| USUAL_ITEM.to_owned());
        self.take_name(Some(&item), "as", index, &mut inner, &mut members);
        self.take_name(output_as.as_ref(), "output_as", index, names, &mut members);
        inner.extend(output_as.clone());
        let steps = self.list(&mut members, "actions", false, &mut inner);
        let catch = self.catch(&mut members, names);
        members.finish();
        Some(ForEach {
            pointer: members.place().to_owned(),
            id: id?,
            list: list?,
            item,
            key,
            steps,
            max_items: usize::try_from(max_items).unwrap_or_default(),
            at_once: usize::try_from(at_once).unwrap_or(1),
            on_error,
            output_as,
            condition,
            catch,
        })
    }

    fn choose(&mut self, mut members: Members<'_, '_>, index: usize, names: &mut SeenNames) -> Option<Choose> {
        const BRANCHES: &str = "[{\"when\": {\"path\", \"op\", \"value\"}, \"actions\": [...]}]";
        let id = Self::id(&mut members, index);
        members.refuse(&["tool", "parameters", "params", "output_as"], "a choice has them in its actions");
        members.refuse(&["condition"], "each branch has its own condition in when");
        let branches = members.required("choose", BRANCHES);
        members.know("otherwise");
        self.take_id(id.as_ref(), index, &mut members);
        let before = names.clone();
        let (place, branches) = (members.path("choose"), branches?);
        let listed = branches.as_array().filter(|list| !list.is_empty() && list.len() <= MOST_BRANCHES);
        let Some(listed) = listed else {
            let expected = format!("a list of 1 to {MOST_BRANCHES} branches");
            members.report.push(wrong_type(&place, branches, &expected, BRANCHES));
            return None;
        };
        let mut read = Vec::new();
        for (number, branch) in listed.iter().enumerate() {
            let pointer = child(&place, number.to_string());
            let mut inner = before.clone();
            let Some(mut branch) = Members::of(branch, &pointer, members.report) else { continue };
            branch.required("when", "{\"path\": \"event.kind\", \"op\": \"==\", \"value\": \"bug\"}");
            let when = condition(&mut branch, "when");
            branch.required("actions", "[{\"id\", \"tool\", \"parameters\"}]");
            let steps = self.list(&mut branch, "actions", true, &mut inner);
            branch.finish();
            names.extend(inner);
            read.extend(when.map(|when| Branch { when, steps }));
        }
        let mut inner = before;
        let otherwise = self.list(&mut members, "otherwise", true, &mut inner);
        names.extend(inner);
        let catch = self.catch(&mut members, names);
        members.finish();
        Some(Choose { pointer: members.place().to_owned(), id: id?, branches: read, otherwise, catch })
    }

    fn wait(&mut self, mut members: Members<'_, '_>, index: usize, names: &mut SeenNames) -> Option<Wait> {
        let id = Self::id(&mut members, index);
        let condition = condition(&mut members, "condition");
        members.refuse(&["tool", "parameters", "params"], "a pause calls no tool");
        let value = members.required("wait", "{\"minutes\": 30}");
        let awaits_event = value.and_then(|value| value.get("for_event")).is_some_and(|event| !event.is_null());
        let until = value.and_then(|value| wait_until(value, &members.path("wait"), members.report));
        let output_as = if awaits_event {
            members.text("output_as", LONGEST_ID, "\"payment\"")
        } else {
            members.refuse(&["output_as"], "only the event of for_event is an output");
            None
        };
        self.take_name(output_as.as_ref(), "output_as", index, names, &mut members);
        self.take_id(id.as_ref(), index, &mut members);
        members.finish();
        Some(Wait { pointer: members.place().to_owned(), id: id?, until: until?, output_as, condition })
    }
}

/// `wait: {"minutes"}`, `{"until"}` or `{"for_event"}`
fn wait_until(value: &Value, place: &str, diagnostics: &mut Diagnostics) -> Option<WaitUntil> {
    let mut members = Members::of(value, place, diagnostics)?;
    let minutes = members.whole("minutes", &(1..=LONGEST_WAIT), "30");
    let until = members.text("until", LONGEST_KEY, "\"2027-01-31T09:00\"");
    if let Some(until) = until.as_ref().filter(|until| !until.contains("{{") && moment(until, &TimeZone::UTC).is_none())
    {
        let message = format!("{until} is no moment.");
        let hint = "Write a day or moment of ISO 8601, 2027-01-31T09:00, or one template for it, {{event.due}}.";
        members.error(Code::InvalidValue, "until", message, hint);
    }
    let event = members.get("for_event");
    let event = event.map(|event| awaited_event(event, &members.path("for_event"), members.report));
    let given = ["minutes", "until", "for_event"].into_iter().filter(|name| members.present(name).is_some()).count();
    if given != 1 {
        let message = if given == 0 {
            "Neither minutes, until nor for_event is given."
        } else {
            "Of minutes, until and for_event several are given."
        };
        let hint = "Write one of them: {\"minutes\": 30}, {\"until\": \"{{event.due}}\"} or {\"for_event\": {\"service\", \"event_type\", \"timeout\"}}.";
        members.report.push(Diagnostic::error(Code::MissingField, place, message, hint));
    }
    members.finish();
    match (minutes, until, event) {
        (Some(minutes), None, None) => Some(WaitUntil::Minutes(minutes)),
        (None, Some(until), None) => Some(WaitUntil::Moment(until)),
        (None, None, Some(event)) => event.map(|event| WaitUntil::Event(Box::new(event))),
        _ => None,
    }
}

/// `for_event: {"service", "event_type", "filters", "timeout"}`, or with `hook` in place of `service`.
fn awaited_event(value: &Value, place: &str, diagnostics: &mut Diagnostics) -> Option<AwaitedEvent> {
    let mut members = Members::of(value, place, diagnostics)?;
    if members.present("hook").is_none() {
        members.refuse(&["params"], "a wait deploys no trigger");
    }
    let trigger = webhook(&mut members);
    members.required("timeout", "1440");
    let timeout = members.whole("timeout", &(1..=LONGEST_WAIT), "1440");
    let written_filters = members.present("filters").cloned();
    members.finish();
    let Trigger::Webhook { service, event_type, filters, .. } = trigger? else { return None };
    let written_filters = written_filters.filter(|_| filters.is_some());
    Some(AwaitedEvent { service, event_type, filters, written_filters, timeout: timeout? })
}

fn condition(members: &mut Members<'_, '_>, name: &'static str) -> Option<Condition> {
    Condition::read(members.get(name)?, &members.path(name), members.report)
}

fn on_error(members: &mut Members<'_, '_>) -> OnError {
    match members.one_of("on_error", &["continue", "stop"]) {
        Some("stop") => OnError::Stop,
        _ => OnError::Continue,
    }
}

/// `for_each`: a template that is the whole text, or a list.
fn list_of_items(members: &mut Members<'_, '_>) -> Option<Value> {
    const EXAMPLE: &str = "\"{{rows}}\"";
    let value = members.required("for_each", EXAMPLE)?;
    match value {
        Value::Array(_) => Some(value.clone()),
        Value::String(text) => {
            let (template, faults) = Template::parse(text);
            if !faults.is_empty() || template.lone().is_some() || template.is_expression() {
                return Some(value.clone());
            }
            let message = "for_each is text, not a list.";
            let meant = Path::parse(text.trim()).ok().map(|path| format!("{{{{{}}}}}", path.as_str()));
            let hint = "Write one template that is the whole text, for example \"for_each\": \"{{found.rows}}\".";
            let error = Diagnostic::error(Code::WrongType, members.path("for_each"), message, hint);
            members.report.push(error.found(value).meaning(meant.as_deref()));
            None
        }
        value => {
            let expected = "a template for a list, or a list";
            members.report.push(wrong_type(&members.path("for_each"), value, expected, EXAMPLE));
            None
        }
    }
}
