//! Retries of runs with loops and branches: results are kept by their place, `each[42].notify`.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{RetryAction, Step, Version, again, keep, runs, unknown};
use crate::{
    Result,
    automation::{
        definition::{
            Action, Definition,
            steps::{Branch, Choose, ForEach, Step as DefinedStep},
        },
        running::action_run::Next,
    },
    models::{ActionResult, ActionStatus, KeptAction, StepKind, Timestamp},
};

/// Added to the number of a kept result: it gets another one in the new run, which must not be mistaken for this.
const KEPT: u32 = 1_000_000;

/// The places at which the earlier run ended without a result, in a call of a tool. In a loop whose items ran at the same time
/// there may be several.
pub(super) fn stopped_at(earlier: &Version, results: &[ActionResult]) -> Result<Vec<String>> {
    let run = earlier.resumed(results)?;
    let mut stopped_at: Vec<String> = results.iter().flat_map(|result| &result.under_way).cloned().collect();
    let mut passed = Vec::new();
    loop {
        match run.next_beside(&passed, Timestamp::now()) {
            Next::Call(planned) => {
                passed.push(planned.id.clone());
                stopped_at.push(planned.id);
            }
            Next::Settled(result) if result.kind != StepKind::ForEachEnd => passed.push(result.place().to_owned()),
            Next::Settled(end) => {
                stopped_at.extend(end.under_way);
                return Ok(stopped_at);
            }
            _ => return Ok(stopped_at),
        }
    }
}

/// The treatment of each result of the earlier run, and of the steps without one.
pub(super) fn plan(
    definition: &Definition,
    earlier: &Definition,
    results: &BTreeMap<u32, ActionResult>,
    stopped_at: &[String],
) -> (Vec<RetryAction>, Vec<KeptAction>) {
    let (mut loops, mut loops_before) = (HashMap::new(), HashMap::new());
    loops_around(definition.steps(), &Vec::new(), &mut loops);
    loops_around(earlier.steps(), &Vec::new(), &mut loops_before);
    loops_around(&definition.catch, &Vec::new(), &mut loops);
    loops_around(&earlier.catch, &Vec::new(), &mut loops_before);
    let (caught, caught_before) = (definition.caught_ids(), earlier.caught_ids());
    let (steps, earlier) = (definition.all_steps(), earlier.all_steps());
    let of_id = |steps: &[&DefinedStep], id: &str| steps.iter().copied().find(|step| step.id() == Some(id)).cloned();
    let (mut planned, mut kept) = (Vec::new(), Vec::new());
    let mut seen = HashSet::new();
    let mut reached = HashSet::new();
    let mut before_failures = true;
    for (number, result) in results {
        let is_new = seen.insert((result.place().to_owned(), result.kind));
        if result.kind == StepKind::ForEachEnd || !is_new {
            continue;
        }
        reached.insert(result.action_id.clone());
        let Some(step) = of_id(&steps, &result.action_id) else { continue };
        let id = &*result.action_id;
        let in_catch = (caught.contains(id), caught_before.contains(id));
        let has_its_place = loops.get(id) == loops_before.get(id) && in_catch.0 == in_catch.1;
        let same = has_its_place && of_id(&earlier, id).is_some_and(|before| is_same(&before, &step));
        let keeping = KeptAction { index: KEPT.saturating_add(*number), from: *number };
        let again = if in_catch == (true, true) {
            of_a_catch(result, keeping)
        } else if result.kind == StepKind::Action {
            again(result, same, before_failures, keeping)
        } else {
            of_a_step_around(result, same, before_failures, keeping)
        };
        before_failures &= matches!(result.status, ActionStatus::Succeeded | ActionStatus::Skipped);
        kept.extend(again.kept);
        planned.push(shown(result.place(), &step, again));
    }
    for place in stopped_at {
        let id = place.rsplit_once("].").map_or(place.as_str(), |(_, id)| id);
        reached.insert(id.to_owned());
        if let Some(step) = of_id(&steps, id) {
            planned.push(shown(place, &step, unknown("The run ended here without a result; it may have acted.")));
        }
    }
    for step in steps {
        let id = step.id().unwrap_or_default();
        if !reached.contains(id) {
            let is_known = of_id(&earlier, id).is_some();
            let why = if is_known { "It was not reached." } else { "It is new in this version." };
            planned.push(shown(id, step, runs(why)));
        }
    }
    (planned, kept)
}

/// Loops around a step, the outermost first: each one's id and the template of its items' keys. Places consist of them, so a
/// result is found again only if they are unchanged.
type Loops<'a> = Vec<(&'a str, Option<&'a str>)>;

fn loops_around<'a>(steps: &'a [DefinedStep], around: &Loops<'a>, found: &mut HashMap<&'a str, Loops<'a>>) {
    for step in steps {
        found.insert(step.id().unwrap_or_default(), around.clone());
        let mut within = around.clone();
        if let DefinedStep::ForEach(each) = step {
            within.push((&each.id, each.key.as_deref()));
        }
        for inner in step.inner() {
            loops_around(inner, &within, found);
        }
    }
}

/// A `catch` belongs to one failure, so nothing in it is kept; what may have acted needs a confirmation nevertheless.
fn of_a_catch(result: &ActionResult, kept: KeptAction) -> Step {
    match result.status {
        ActionStatus::Failed | ActionStatus::Unknown if result.kind == StepKind::Action => {
            again(result, false, false, kept)
        }
        _ => runs("It answered the earlier failure, and runs again after a new one."),
    }
}

/// A loop keeps its list, and a choice its branch.
fn of_a_step_around(result: &ActionResult, same: bool, before_failures: bool, kept: KeptAction) -> Step {
    match result.status {
        ActionStatus::Succeeded if same => {
            let reason = match result.kind {
                StepKind::ForEach => "Its list is kept.",
                StepKind::Wait => "It has waited.",
                _ => "Its branch is kept.",
            };
            keep(kept, reason)
        }
        ActionStatus::Skipped if same && before_failures => keep(kept, "It was skipped."),
        ActionStatus::Succeeded => runs("This version defines it differently."),
        _ => runs("It is decided again."),
    }
}

fn shown(place: &str, step: &DefinedStep, again: Step) -> RetryAction {
    let Step { step: becomes, reason, .. } = again;
    RetryAction { action_id: place.to_owned(), tool: tool_of(step), step: becomes, reason, arguments: None }
}

/// Whether two steps do the same, apart from the steps within them.
pub(super) fn is_same(one: &DefinedStep, other: &DefinedStep) -> bool {
    match (one, other) {
        (DefinedStep::Action(one), DefinedStep::Action(other)) => {
            let placeless = |action: &Action| Action { pointer: String::new(), catch: Vec::new(), ..action.clone() };
            placeless(one) == placeless(other)
        }
        (DefinedStep::ForEach(one), DefinedStep::ForEach(other)) => {
            let placeless = |each: &ForEach| {
                let (pointer, steps, catch) = (String::new(), Vec::new(), Vec::new());
                ForEach { pointer, steps, catch, at_once: 1, ..each.clone() }
            };
            placeless(one) == placeless(other)
        }
        (DefinedStep::Wait(one), DefinedStep::Wait(other)) => {
            one.until == other.until && one.output_as == other.output_as && one.condition == other.condition
        }
        (DefinedStep::Choose(one), DefinedStep::Choose(other)) => {
            let conditions = |choose: &Choose| -> Vec<_> {
                choose.branches.iter().map(|Branch { when, .. }| when.clone()).collect()
            };
            conditions(one) == conditions(other) && one.otherwise.is_empty() == other.otherwise.is_empty()
        }
        _ => false,
    }
}

/// The tool of a step; for a loop or a choice its kind.
pub(super) fn tool_of(step: &DefinedStep) -> Option<String> {
    match step {
        DefinedStep::Action(action) => action.tool.clone(),
        DefinedStep::ForEach(_) => Some("for_each".to_owned()),
        DefinedStep::Choose(_) => Some("choose".to_owned()),
        DefinedStep::Wait(_) => Some("wait".to_owned()),
    }
}
