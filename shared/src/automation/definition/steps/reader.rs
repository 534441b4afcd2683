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

/// Reads the steps of one definition.
pub(in crate::automation::definition) struct StepReader<'v> {
    variables: &'v Map<String, Value>,
    ids: BTreeSet<String>,
    count: usize,
    /// Within a `catch`.
    catching: bool,
}

impl<'v> StepReader<'v> {
    pub(in crate::automation::definition) const fn of(variables: &'v Map<String, Value>) -> Self {
        Self { variables, ids: BTreeSet::new(), count: 0, catching: false }
    }

    /// The actions of the definition, and those after a failure; each list with its pointer.
    pub(in crate::automation::definition) fn read(
        &mut self,
        (value, pointer): (&Value, &str),
        catch: Option<(&Value, &str)>,
        diagnostics: &mut Diagnostics,
    ) -> (Vec<Step>, Vec<Step>) {
        let mut names = BTreeSet::new();
        let steps = self.list(value, pointer, false, 0, &mut names, diagnostics);
        let catch = catch.map(|(catch, place)| self.catch(catch, place, 0, &names, diagnostics)).unwrap_or_default();
        if self.count > MOST_ACTIONS {
            let message = format!(
                "The definition has {} actions with those in loops and branches; the limit is {MOST_ACTIONS}.",
                self.count
            );
            let hint = "Split the automation, or let a prompt with tools do the work.";
            diagnostics.push(Diagnostic::error(Code::TooLarge, pointer, message, hint));
        }
        (steps, catch)
    }

    /// Actions after a failure, which see it as `error`.
    fn catch(
        &mut self,
        value: &Value,
        place: &str,
        depth: usize,
        names: &BTreeSet<String>,
        diagnostics: &mut Diagnostics,
    ) -> Vec<Step> {
        let mut inner = names.clone();
        // In a catch within a catch the name is the inner failure's.
        if self.variables.contains_key(ERROR) || (!self.catching && !inner.insert(ERROR.to_owned())) {
            let message =
                format!("In catch {ERROR} is the failure, but it is the name of a variable or an output, too.");
            let hint = "Give the variable or output another name.";
            diagnostics.push(Diagnostic::error(Code::DuplicateName, place, message, hint));
        }
        let outer = std::mem::replace(&mut self.catching, true);
        let steps = self.list(value, place, false, depth + 1, &mut inner, diagnostics);
        self.catching = outer;
        steps
    }

    /// The `catch` of a loop or choice.
    fn catch_of(&mut self, members: &mut Members<'_, '_>, depth: usize, names: &BTreeSet<String>) -> Vec<Step> {
        let place = members.path("catch");
        let Some(catch) = members.get("catch") else { return Vec::new() };
        self.catch(catch, &place, depth, names, members.report)
    }

    /// `depth`: the number of steps around the list. `names`: outputs and items that can be seen there.
    fn list(
        &mut self,
        value: &Value,
        pointer: &str,
        may_be_empty: bool,
        depth: usize,
        names: &mut BTreeSet<String>,
        diagnostics: &mut Diagnostics,
    ) -> Vec<Step> {
        let list = match value.as_array() {
            Some(list) if !list.is_empty() => list,
            Some(_) if may_be_empty => return Vec::new(),
            Some(_) => {
                let hint = "Add \"actions\": [{\"id\", \"tool\", \"parameters\"}].";
                diagnostics.push(Diagnostic::error(Code::WrongBody, pointer, "There are no actions.", hint));
                return Vec::new();
            }
            None => {
                let example = "[{\"id\", \"tool\", \"parameters\"}]";
                diagnostics.push(wrong_type(pointer, value, "a list of actions", example));
                return Vec::new();
            }
        };
        if depth > DEEPEST_STEPS {
            let message =
                format!("There are {depth} loops and branches around these actions; the limit is {DEEPEST_STEPS}.");
            let hint = "Move them out: let an earlier action prepare the list, or split the automation.";
            diagnostics.push(Diagnostic::error(Code::TooLarge, pointer, message, hint));
            return Vec::new();
        }
        self.count += list.len();
        let mut steps = Vec::new();
        for (index, value) in list.iter().enumerate() {
            let pointer = child(pointer, index.to_string());
            steps.extend(self.step(value, pointer, index, depth, names, diagnostics));
        }
        steps
    }

    fn step(
        &mut self,
        value: &Value,
        pointer: String,
        index: usize,
        depth: usize,
        names: &mut BTreeSet<String>,
        diagnostics: &mut Diagnostics,
    ) -> Option<Step> {
        let has = |name: &str| value.get(name).is_some_and(|value| !value.is_null());
        if !["tool", "for_each", "choose", "wait"].into_iter().any(has) {
            let mut others =
                OTHER_STEPS.iter().flat_map(|(meant, others)| others.iter().map(move |other| (meant, other)));
            if let Some((meant, other)) = others.find(|(_, other)| has(other)) {
                let message = format!("There is no field {other} here.");
                let example = match *meant {
                    "for_each" => A_LOOP,
                    "wait" => A_PAUSE,
                    _ => A_CHOICE,
                };
                let error = Diagnostic::error(
                    Code::UnknownField,
                    child(&pointer, other),
                    message,
                    format!("A step of this kind is {example}."),
                );
                diagnostics.push(error.meaning(Some(meant)));
                // The step as a whole was not understood.
                diagnostics.push(Diagnostic::error(
                    Code::MissingField,
                    pointer,
                    "The step has neither a tool nor for_each, choose or wait.",
                    "Write one of them.",
                ));
                return None;
            }
        }
        let members = Members::of(value, &pointer, diagnostics)?;
        if has("for_each") {
            self.for_each(members, pointer, index, depth, names).map(Step::ForEach)
        } else if has("choose") {
            self.choose(members, pointer, index, depth, names).map(Step::Choose)
        } else if has("wait") {
            self.wait(members, pointer, index, names).map(Step::Wait)
        } else {
            let mut action = Self::action(members, pointer, index);
            if let Some(id) = &action.id {
                self.take_id(id, &action.pointer, index, diagnostics);
            }
            if let Some(output) = &action.output_as {
                let place = child(&action.pointer, "output_as");
                self.take_name(output, (&place, "output"), index, names, diagnostics);
            }
            if let Some(catch) = value.get("catch").filter(|catch| !catch.is_null()) {
                let place = child(&action.pointer, "catch");
                action.catch = self.catch(catch, &place, depth, names, diagnostics);
            }
            Some(Step::Action(action))
        }
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
    fn take_id(&mut self, id: &str, pointer: &str, index: usize, diagnostics: &mut Diagnostics) {
        if self.ids.insert(id.to_owned()) {
            return;
        }
        let free = format!("{id}_{}", index + 1);
        let hint = format!("Give it an id of its own, for example \"{free}\".");
        let message = format!("An earlier action already has the id {id}.");
        let error = Diagnostic::error(Code::DuplicateId, child(pointer, "id"), message, hint);
        diagnostics.push(error.found(&id.into()).instead(free));
    }

    /// Reports a name of an output or item that is reserved or taken.
    fn take_name(
        &self,
        name: &str,
        (pointer, what): (&str, &str),
        index: usize,
        names: &mut BTreeSet<String>,
        diagnostics: &mut Diagnostics,
    ) {
        check_name(name, pointer, what, diagnostics);
        let taken = if self.variables.contains_key(name) { Some("a variable") } else { None };
        let taken = if names.insert(name.to_owned()) { taken } else { Some("the output of an earlier action") };
        if let Some(taken) = taken {
            let message = format!("{name} is already the name of {taken}.");
            let hint = format!("Choose another name, for example \"{name}_{}\".", index + 1);
            diagnostics.push(Diagnostic::error(Code::DuplicateName, pointer, message, hint));
        }
    }

    fn action(mut members: Members<'_, '_>, pointer: String, index: usize) -> Action {
        let id = Self::id(&mut members, index);
        let tool = members.required_text("tool", LONGEST_TOOL, "\"slack_post_message\"");
        let (parameters_field, parameters) = members.get_either("parameters", "params");
        let parameters = parameters
            .and_then(|value| members.as_object(parameters_field, value, "{\"channel\": \"C024BE91L\"}"))
            .cloned()
            .unwrap_or_default();
        let output_as = members.text("output_as", LONGEST_ID, "\"found_rows\"");
        let condition = condition(&mut members);
        let approval = limits::approval(&mut members);
        let timeout_seconds = members.whole("timeout_seconds", &(1..=LONGEST_TIMEOUT), "60").unwrap_or(USUAL_TIMEOUT);
        let on_error = on_error(&mut members);
        let retries = members.whole("retries", &(0..=MOST_RETRIES), "2").unwrap_or_default();
        let retries = u32::try_from(retries).unwrap_or_default();
        // Read after the action's own fields.
        members.get("catch");
        members.finish();
        Action {
            pointer,
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
            catch: Vec::new(),
        }
    }

    fn for_each(
        &mut self,
        mut members: Members<'_, '_>,
        pointer: String,
        index: usize,
        depth: usize,
        names: &mut BTreeSet<String>,
    ) -> Option<ForEach> {
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
        let condition = condition(&mut members);
        for field in ["tool", "parameters", "params"] {
            members.refuse(field, "a loop calls tools in its actions");
        }
        let steps = members.required("actions", "[{\"id\", \"tool\", \"parameters\"}]");
        if let Some(id) = &id {
            self.take_id(id, &pointer, index, members.report);
        }
        let mut inner = names.clone();
        let as_place = child(&pointer, "as");
        let item = item.unwrap_or_else(|| USUAL_ITEM.to_owned());
        self.take_name(&item, (&as_place, "item"), index, &mut inner, members.report);
        if let Some(output) = &output_as {
            let place = child(&pointer, "output_as");
            self.take_name(output, (&place, "output"), index, names, members.report);
            inner.insert(output.clone());
        }
        let place = members.path("actions");
        let steps = steps
            .map(|steps| self.list(steps, &place, false, depth + 1, &mut inner, members.report))
            .unwrap_or_default();
        let catch = self.catch_of(&mut members, depth, names);
        members.finish();
        let max_items = usize::try_from(max_items).unwrap_or_default();
        Some(ForEach {
            pointer,
            id: id?,
            list: list?,
            item,
            key,
            steps,
            max_items,
            at_once: usize::try_from(at_once).unwrap_or(1),
            on_error,
            output_as,
            condition,
            catch,
        })
    }

    fn choose(
        &mut self,
        mut members: Members<'_, '_>,
        pointer: String,
        index: usize,
        depth: usize,
        names: &mut BTreeSet<String>,
    ) -> Option<Choose> {
        const BRANCHES: &str = "[{\"when\": {\"path\", \"op\", \"value\"}, \"actions\": [...]}]";
        let id = Self::id(&mut members, index);
        for field in ["tool", "parameters", "params", "output_as"] {
            members.refuse(field, "a choice has them in its actions");
        }
        members.refuse("condition", "each branch has its own condition in when");
        let branches = members.required("choose", BRANCHES);
        let otherwise = members.get("otherwise");
        if let Some(id) = &id {
            self.take_id(id, &pointer, index, members.report);
        }
        let before = names.clone();
        let place = members.path("choose");
        let listed = match branches.map(|branches| (branches, branches.as_array())) {
            Some((_, Some(list))) if !list.is_empty() && list.len() <= MOST_BRANCHES => list.as_slice(),
            Some((branches, _)) => {
                let expected = format!("a list of 1 to {MOST_BRANCHES} branches");
                members.report.push(wrong_type(&place, branches, &expected, BRANCHES));
                return None;
            }
            None => return None,
        };
        let mut read = Vec::new();
        for (number, branch) in listed.iter().enumerate() {
            let pointer = child(&place, number.to_string());
            let mut inner = before.clone();
            let Some(mut branch) = Members::of(branch, &pointer, members.report) else { continue };
            let when = branch.required("when", "{\"path\": \"event.kind\", \"op\": \"==\", \"value\": \"bug\"}");
            let when_place = branch.path("when");
            let when = when.and_then(|when| Condition::read(when, &when_place, branch.report));
            let steps = branch.required("actions", "[{\"id\", \"tool\", \"parameters\"}]");
            let steps_place = branch.path("actions");
            let steps = steps
                .map(|steps| self.list(steps, &steps_place, true, depth + 1, &mut inner, branch.report))
                .unwrap_or_default();
            branch.finish();
            names.extend(inner);
            read.extend(when.map(|when| Branch { when, steps }));
        }
        let place = members.path("otherwise");
        let mut inner = before;
        let otherwise = otherwise
            .map(|steps| self.list(steps, &place, true, depth + 1, &mut inner, members.report))
            .unwrap_or_default();
        names.extend(inner);
        let catch = self.catch_of(&mut members, depth, names);
        members.finish();
        Some(Choose { pointer, id: id?, branches: read, otherwise, catch })
    }
}

impl StepReader<'_> {
    fn wait(
        &mut self,
        mut members: Members<'_, '_>,
        pointer: String,
        index: usize,
        names: &mut BTreeSet<String>,
    ) -> Option<Wait> {
        let id = Self::id(&mut members, index);
        let condition = condition(&mut members);
        for field in ["tool", "parameters", "params"] {
            members.refuse(field, "a pause calls no tool");
        }
        let place = members.path("wait");
        let value = members.required("wait", "{\"minutes\": 30}");
        let awaits_event = value.and_then(|value| value.get("for_event")).is_some_and(|event| !event.is_null());
        let until = value.and_then(|value| wait_until(value, &place, members.report));
        let output_as = if awaits_event {
            members.text("output_as", LONGEST_ID, "\"payment\"")
        } else {
            members.refuse("output_as", "only the event of for_event is an output");
            None
        };
        if let Some(output) = &output_as {
            let place = child(&pointer, "output_as");
            self.take_name(output, (&place, "output"), index, names, members.report);
        }
        if let Some(id) = &id {
            self.take_id(id, &pointer, index, members.report);
        }
        members.finish();
        Some(Wait { pointer, id: id?, until: until?, output_as, condition })
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
    let event_place = members.path("for_event");
    let event = event.map(|event| awaited_event(event, &event_place, members.report));
    let given = ["minutes", "until", "for_event"].into_iter().filter(|name| members.given(name).is_some()).count();
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
    if members.given("hook").is_none() {
        members.refuse("params", "a wait deploys no trigger");
    }
    let trigger = webhook(&mut members);
    if members.given("timeout").is_none() {
        members.missing("timeout", "1440");
    }
    let timeout = members.whole("timeout", &(1..=LONGEST_WAIT), "1440");
    let written_filters = members.given("filters").cloned();
    members.finish();
    let Trigger::Webhook { service, event_type, filters, .. } = trigger? else { return None };
    let written_filters = written_filters.filter(|_| filters.is_some());
    Some(AwaitedEvent { service, event_type, filters, written_filters, timeout: timeout? })
}

fn condition(members: &mut Members<'_, '_>) -> Option<Condition> {
    let condition = members.get("condition");
    let place = members.path("condition");
    condition.and_then(|condition| Condition::read(condition, &place, members.report))
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
            let place = members.path("for_each");
            members.report.push(wrong_type(&place, value, "a template for a list, or a list", EXAMPLE));
            None
        }
    }
}
