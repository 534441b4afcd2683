//! Loops whose items run at the same time have only steps that never wait: a run waits for one thing at a time.

use super::{
    super::diagnostics::{Code, Diagnostic, Diagnostics, child},
    ForEach, Step, all_steps,
};
use crate::injection::{CALL_AUTOMATION, LLM_AGENT};

/// `asks`: the automation has approval rules.
pub(in crate::automation::definition) fn check_same_time(steps: &[Step], asks: bool, diagnostics: &mut Diagnostics) {
    for step in all_steps(steps) {
        let Step::ForEach(each) = step else { continue };
        if each.at_once == 1 {
            continue;
        }
        let why = if asks {
            Some("the automation has approval rules, and a run asks for one approval at a time".to_owned())
        } else {
            all_steps(&each.steps).into_iter().find_map(waits)
        };
        if let Some(why) = why {
            let message = format!("The items of this loop cannot run at the same time: {why}.");
            let hint = "Leave at_once out; then the items run one after the other.";
            let error = Diagnostic::error(Code::InvalidValue, child(&each.pointer, "at_once"), message, hint);
            diagnostics.push(error.instead(1));
        }
    }
}

/// The reason why a step in a loop may make the run wait.
fn waits(step: &Step) -> Option<String> {
    let id = step.id().unwrap_or_default();
    match step {
        Step::Wait(_) => Some(format!("{id} is a pause")),
        Step::ForEach(ForEach { at_once: 2.., .. }) => Some(format!("{id} is a loop with at_once, too")),
        Step::Action(action) if action.approval.is_some() => Some(format!("{id} waits for an approval")),
        Step::Action(action) => {
            let tool = action.tool.as_deref().filter(|tool| [LLM_AGENT, CALL_AUTOMATION].contains(tool))?;
            Some(format!("{id} waits for a run of its own ({tool})"))
        }
        Step::ForEach(_) | Step::Choose(_) => None,
    }
}
