//! Calls of tools within a turn.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::{Ended, Plan, Turn, Unanswered};
use crate::{
    cut::{cut, fit},
    models::{ExecutionStatus, OfferedTool, PendingCall, Timestamp, ToolResult, TurnCall, WaitsFor},
    planner::{Decided, Event, Observer, PlannerModel, Step, Widget, plan::PlannedCall, state::Question},
    tool::{Bound, NotBound, ToolOutcome},
};

/// What a model is given back of one call, in bytes.
const LONGEST_RESULT: usize = 32 * 1024;
/// Of an argument, what a person who is asked is shown, in bytes.
const LONGEST_SHOWN: usize = 1_000;

impl<M: PlannerModel, O: Observer> Turn<'_, '_, '_, M, O> {
    /// Makes the calls of a plan, one after the other. Gives the first that must wait, for the person or for the front end; what
    /// comes behind it waits for the next plan.
    pub(super) async fn execute(&mut self, plan: Plan) -> Result<Option<Question>, Unanswered> {
        self.step(Step::Execute);
        for PlannedCall { tool, reason, arguments } in plan.calls {
            self.may_go_on()?;
            let offered = self.planner.offered;
            let bound = match offered.toolbox.check(&tool, &arguments) {
                Ok(bound) => bound,
                Err(NotBound::Unknown(why) | NotBound::Invalid(why)) => {
                    self.not_called(&tool, arguments, &format!("Not called: {why}"));
                    continue;
                }
            };
            let effect = bound.spec().effect;
            if self.calls >= self.planner.limits.calls {
                self.not_called(&tool, arguments, "Not called: this turn has had all its calls.");
                continue;
            }
            if offered.front_end.contains(&tool) {
                let tool = OfferedTool::of_front_end(&tool);
                return Ok(Some(Question { waits_for: WaitsFor::FrontEnd, tool, arguments: bound.arguments, reason }));
            }
            if offered.rules.get(&tool).is_some_and(|rules| rules.consent) {
                let Some(tool) = offered.references.get(&tool).cloned() else { continue };
                return Ok(Some(Question { waits_for: WaitsFor::Consent, tool, arguments: bound.arguments, reason }));
            }
            self.call(&tool, bound, effect).await?;
        }
        Ok(None)
    }

    /// Carries out what the person consented to, or notes that they did not, or what the front end gave.
    pub(super) async fn decided(&mut self, pending: &PendingCall, decided: Decided<'_>) -> Result<(), Unanswered> {
        let (tool, arguments) = (&pending.tool.name, &pending.arguments);
        match decided {
            Decided::Refused => {
                let told = "The person was asked and said no. It was not carried out.";
                self.note(tool, arguments.clone(), TurnCall::Refused, true, told.into());
                return Ok(());
            }
            Decided::Gave { content, failed } => {
                self.calls += 1;
                let outcome = if failed { TurnCall::Failed } else { TurnCall::Succeeded };
                let told = serde_json::from_str(content).unwrap_or_else(|_no_json| content.into());
                self.note(tool, arguments.clone(), outcome, false, fit(told, LONGEST_RESULT));
                return Ok(());
            }
            Decided::Approved => {}
        }
        match self.planner.offered.toolbox.check(tool, arguments) {
            Ok(bound) => {
                let effect = bound.spec().effect;
                self.call(tool, bound, effect).await
            }
            Err(NotBound::Unknown(why) | NotBound::Invalid(why)) => {
                self.not_called(tool, arguments.clone(), &format!("Not called: {why}"));
                Ok(())
            }
        }
    }

    async fn call(&mut self, tool: &str, bound: Bound<'_>, effect: bool) -> Result<(), Unanswered> {
        self.calls += 1;
        let id = format!("call_{}_{}", self.planner.turn, self.state.tool_results.len() + 1);
        let arguments = bound.arguments.clone();
        self.observer.event(Event::ToolCall { id: &id, tool, arguments: &arguments });
        let outcome = match bound.call(&self.planner.context).await {
            Ok(outcome) => outcome,
            // Nothing has happened; the answer says that it could not be done.
            Err(outage) => {
                tracing::warn!(tool.name = tool, "a call in a turn failed: {}", crate::error::chain(&outage));
                ToolOutcome::failed("The tool cannot be reached just now; it was not carried out. Try again soon.")
            }
        };
        let status = match outcome.status {
            ExecutionStatus::Unknown => TurnCall::Unconfirmed,
            _ if outcome.is_failed() => TurnCall::Failed,
            _ => TurnCall::Succeeded,
        };
        if let Some(widget) = outcome.answer.get("result").and_then(Widget::in_result) {
            self.observer.event(Event::Widget(&widget));
            self.state.widget = Some(widget);
        }
        let told = fit(outcome.into_told(), LONGEST_RESULT);
        self.note(tool, arguments, status, effect, told);
        if let Some(result) = self.state.tool_results.last() {
            self.observer.event(Event::ToolResult { id: &id, result });
        }
        Ok(())
    }

    fn not_called(&mut self, tool: &str, arguments: Map<String, Value>, why: &str) {
        tracing::info!("a plan asked for a call that was not made");
        self.note(tool, arguments, TurnCall::NotCalled, false, why.into());
    }

    fn note(&mut self, tool: &str, arguments: Map<String, Value>, outcome: TurnCall, effect: bool, result: Value) {
        let result = ToolResult { tool: tool.to_owned(), arguments, outcome, effect, result };
        self.state.tool_results.push(result);
    }

    /// Leaves a call to whoever it waits for.
    pub(super) fn wait(&mut self, question: Question) -> Ended {
        let expires_at = Timestamp::now().plus(self.planner.wait_within);
        let pending = question.pending(self.state, self.planner.turn, expires_at);
        let text = match pending.waits_for {
            WaitsFor::Consent => self.ask_consent(&pending),
            WaitsFor::FrontEnd => {
                let PendingCall { id, tool, arguments, .. } = &pending;
                self.observer.event(Event::FrontEndCall { id, tool: &tool.name, arguments });
                String::new()
            }
        };
        self.state.pending = Some(pending);
        Ended::Waiting(text)
    }

    /// Asks the person, in words that no model chose: what they consent to is what is carried out.
    fn ask_consent(&mut self, pending: &PendingCall) -> String {
        self.step(Step::Consent);
        let mut text = format!("I need your consent before I call {}", pending.tool.name);
        if pending.arguments.is_empty() {
            text.push('.');
        } else {
            text.push_str(" with:");
        }
        for (name, value) in &pending.arguments {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            // Writing to a string cannot fail.
            let _ = write!(text, "\n- {name}: {}", cut(value, LONGEST_SHOWN));
        }
        text.push_str("\nNothing has been done yet. Shall I do it?");
        self.observer.event(Event::Consent(pending));
        self.observer.event(Event::Message(&text));
        text
    }
}
