//! Tool calls within a turn.

use std::fmt::Write as _;

use serde_json::{Map, Value};
use uuid::Uuid;

use super::{Plan, PlannedCall, Turn, TurnEnd, Unanswered};
use crate::{
    Error,
    cut::fit,
    models::{Delivered, ExecutionStatus, OfferedTool, PendingCall, Timestamp, ToolResult, TurnCall, WaitsFor},
    planner::{
        Observer, PendingResolution, PlannerModel, TurnEvent, TurnStep, Widget, consent::shows, state::Question,
    },
    redaction::SECRET,
    tool::{Bound, NotBound, Offered, RecipientOutcome, ToolOutcome, Toolbox},
};

/// One call's result as given to the model, in bytes.
const LONGEST_RESULT: usize = 32 * 1024;

impl<M: PlannerModel, O: Observer> Turn<'_, '_, '_, M, O> {
    /// Makes the calls of a plan in order. Returns the first that must wait for the person or the front end; the calls
    /// after it stay in the state until the decision.
    pub(super) async fn execute(&mut self, plan: Plan) -> Result<Option<Question>, Unanswered> {
        self.step(TurnStep::Execute);
        let toolbox = self.planner.toolbox;
        let calls: Vec<PlannedCall> = plan.calls.into_iter().map(|call| with_reference(call, toolbox)).collect();
        let mut calls = calls.into_iter();
        while let Some(planned) = calls.next() {
            self.state.rest = calls.as_slice().to_vec();
            let made = match self.may_go_on() {
                Ok(()) => self.take_up(planned.clone()).await,
                Err(unanswered) => {
                    self.leave([planned], "Not called: the turn ended before it.");
                    Err(unanswered)
                }
            };
            match made {
                Ok(None) => {}
                Ok(question) => return Ok(question),
                Err(unanswered) => {
                    let rest = std::mem::take(&mut self.state.rest);
                    self.leave(rest, "Not called: the turn ended before it.");
                    return Err(unanswered);
                }
            }
        }
        Ok(None)
    }

    /// Makes a call, or notes why not, or returns it as waiting.
    async fn take_up(&mut self, planned: PlannedCall) -> Result<Option<Question>, Unanswered> {
        let toolbox = self.planner.toolbox;
        if let Some(why) = replaced(&planned, toolbox) {
            self.leave([planned], why);
            return Ok(None);
        }
        let PlannedCall { tool, reason, arguments, .. } = planned;
        let bound = match toolbox.check(&tool, &arguments) {
            Ok(bound) => bound,
            Err(NotBound::Unknown(why) | NotBound::Invalid(why)) => {
                self.not_called(&tool, &arguments, &format!("Not called: {why}"));
                return Ok(None);
            }
        };
        let (label, effect) = (bound.offered().label().to_owned(), bound.spec().acts());
        if self.calls >= self.planner.limits.calls {
            self.not_called(&tool, &arguments, "Not called: this turn has had all its calls.");
            return Ok(None);
        }
        if effect && self.unconfirmed.contains(&tool) && !self.is_planned_before(&tool, &arguments) {
            let why = "Not called: an earlier call of this tool was broken off, and may have acted. Say so, and ask the person first.";
            self.not_called(&tool, &arguments, why);
            return Ok(None);
        }
        if bound.offered().is_of_front_end() {
            let (tool, arguments) = (OfferedTool::of_front_end(&tool), bound.arguments);
            let waits_for = WaitsFor::FrontEnd;
            return Ok(Some(Question { waits_for, tool, label, effect, arguments, shows: Vec::new(), reason }));
        }
        if bound.offered().chat_rules().consent {
            let Some(reference) = bound.offered().reference().cloned() else {
                self.not_called(&tool, &arguments, "Not called: the tool cannot be found any more.");
                return Ok(None);
            };
            let preview = match bound.preview(&self.planner.context).await {
                Ok(Ok(preview)) => preview,
                Ok(Err(why)) => {
                    self.not_called(&tool, &arguments, &format!("Not called: {why}"));
                    return Ok(None);
                }
                Err(outage) => {
                    self.not_called(&tool, &arguments, "Not called: what it would send could not be looked up.");
                    return Err(outage.into());
                }
            };
            let Some(shows) = shows(&preview, &bound.arguments) else {
                let why = "Not called: its content is too large to be shown to the person, who must see all of it. Send less.";
                self.not_called(&tool, &arguments, why);
                return Ok(None);
            };
            let (arguments, waits_for) = (bound.arguments, WaitsFor::Consent);
            return Ok(Some(Question { waits_for, tool: reference, label, effect, arguments, shows, reason }));
        }
        self.call(&tool, bound).await?;
        Ok(None)
    }

    fn is_planned_before(&self, tool: &str, arguments: &Map<String, Value>) -> bool {
        self.planned_before.iter().any(|planned| planned.tool == tool && planned.arguments == *arguments)
    }

    /// Carries out the decision about a waiting call: makes it, notes the refusal, or takes the front end's result.
    /// Returns the remaining calls of the plan.
    pub(super) async fn decided(
        &mut self,
        pending: &PendingCall,
        decided: PendingResolution<'_>,
    ) -> Result<Vec<PlannedCall>, Unanswered> {
        let (tool, arguments) = (&pending.tool.name, &pending.arguments);
        self.state.rest.clone_from(&pending.rest);
        match decided {
            PendingResolution::Refused => {
                let told = "The person was asked and said no. It was not carried out.";
                self.note(ToolResult {
                    effect: true,
                    ..self.result_of(tool, arguments, TurnCall::Refused, told.into())
                });
                // The remaining calls may depend on the refused one, and effects cannot be undone.
                let rest = std::mem::take(&mut self.state.rest);
                let why = "Not called: the person said no to the call before it. Ask whether it is still wanted.";
                self.leave(rest, why);
                return Ok(Vec::new());
            }
            PendingResolution::Gave { content, failed } => {
                self.calls += 1;
                let outcome = if failed { TurnCall::Failed } else { TurnCall::Succeeded };
                let told = serde_json::from_str(content).unwrap_or_else(|_no_json| content.into());
                let result = self.result_of(tool, arguments, outcome, fit(told, LONGEST_RESULT));
                self.note(ToolResult { label: pending.label().to_owned(), effect: false, ..result });
            }
            PendingResolution::Approved => match self.planner.toolbox.check(tool, arguments) {
                Ok(bound) => {
                    if let Err(unanswered) = self.call(tool, bound).await {
                        let rest = std::mem::take(&mut self.state.rest);
                        self.leave(rest, "Not called: the turn ended before it.");
                        return Err(unanswered);
                    }
                }
                Err(NotBound::Unknown(why) | NotBound::Invalid(why)) => {
                    self.not_called(tool, arguments, &format!("Not called: {why}"));
                }
            },
        }
        Ok(std::mem::take(&mut self.state.rest))
    }

    /// Makes a call. A call that acts is recorded before it is made, and again with its outcome.
    async fn call(&mut self, tool: &str, bound: Bound<'_>) -> Result<(), Unanswered> {
        self.calls += 1;
        let (at, effect) = (self.state.tool_results.len(), bound.spec().acts());
        let arguments = bound.arguments.clone();
        let mut call = self.result_of(tool, &arguments, TurnCall::Running, Value::Null);
        // Unique: a repeated turn may make another call at the same place.
        call.id = format!("call_{}", Uuid::now_v7().simple());
        let id = call.id.clone();
        self.note(call.clone());
        if effect && let Err(error) = self.observer.record(self.state).await {
            self.state.tool_results.truncate(at);
            self.not_called(tool, &arguments, "Not called: that it begins could not be written down.");
            return Err(Unanswered::Failed(error));
        }
        self.observer.event(TurnEvent::ToolCall { id: &id, tool, arguments: &arguments });
        let outcome = match bound.call(&self.planner.context).await {
            Ok(outcome) => outcome,
            // Nothing has happened; the answer reports the failure.
            Err(outage) => {
                tracing::warn!(tool.name = tool, "a call in a turn failed: {}", crate::error::chain(&outage));
                ToolOutcome::failed("The tool cannot be reached just now; it was not carried out. Try again soon.")
            }
        };
        call.outcome = match outcome.status {
            ExecutionStatus::Unknown => TurnCall::Unconfirmed,
            _ if outcome.is_failed() => TurnCall::Failed,
            _ => TurnCall::Succeeded,
        };
        if let Some(widget) = outcome.answer.get("result").and_then(Widget::in_result) {
            self.observer.event(TurnEvent::Widget(&widget));
            self.state.widget = Some(widget);
        }
        call.repeats = outcome.repeats;
        call.recipients = self.recipients(tool, &arguments, &outcome).await;
        call.result = fit(outcome.into_model_value(), LONGEST_RESULT);
        self.state.tool_results.truncate(at);
        self.note(call);
        if effect {
            match self.observer.record(self.state).await {
                Ok(()) => {}
                // Another request has taken over the turn.
                Err(error @ Error::Conflict(_)) => return Err(Unanswered::Failed(error)),
                Err(error) => tracing::warn!("the outcome of a call is recorded late: {}", crate::error::chain(&error)),
            }
        }
        if let Some(result) = self.state.tool_results.last() {
            self.observer.event(TurnEvent::ToolResult { id: &id, result });
        }
        Ok(())
    }

    /// The state of each recipient. The answer to a repeated call hides the numbers that the tool's author fixed; the person
    /// sees those of the preview.
    async fn recipients(&self, tool: &str, arguments: &Map<String, Value>, outcome: &ToolOutcome) -> Vec<Delivered> {
        let delivered = |one: &RecipientOutcome| Delivered { to: one.to.clone(), state: one.state };
        let mut told: Vec<Delivered> = outcome.recipients.iter().map(delivered).collect();
        if told.iter().any(|one| one.to.contains(SECRET))
            && let Ok(bound) = self.planner.toolbox.check(tool, arguments)
            && let Ok(Ok(preview)) = bound.preview(&self.planner.context).await
            && let Some(shown) = preview.get("recipients").and_then(Value::as_array)
            && shown.len() == told.len()
        {
            for (one, shown) in told.iter_mut().zip(shown) {
                if let Some(to) = shown.get("to").and_then(Value::as_str) {
                    to.clone_into(&mut one.to);
                }
            }
        }
        told
    }

    pub(super) fn leave(&mut self, calls: impl IntoIterator<Item = PlannedCall>, why: &str) {
        for PlannedCall { tool, arguments, .. } in calls {
            self.not_called(&tool, &arguments, why);
        }
    }

    fn not_called(&mut self, tool: &str, arguments: &Map<String, Value>, why: &str) {
        tracing::info!("a plan asked for a call that was not made");
        self.note(self.result_of(tool, arguments, TurnCall::NotCalled, why.into()));
    }

    fn result_of(&self, tool: &str, arguments: &Map<String, Value>, outcome: TurnCall, result: Value) -> ToolResult {
        let offered = self.planner.toolbox.get(tool);
        ToolResult {
            id: String::new(),
            tool: tool.to_owned(),
            label: offered.map(|offered| offered.label().to_owned()).unwrap_or_default(),
            arguments: arguments.clone(),
            outcome,
            effect: offered.is_some_and(|offered| offered.spec().acts()),
            result,
            recipients: Vec::new(),
            repeats: false,
        }
    }

    fn note(&mut self, result: ToolResult) {
        self.state.tool_results.push(result);
    }

    pub(super) fn wait(&mut self, question: Question) -> TurnEnd {
        let expires_at = Timestamp::now().plus(self.planner.wait_within);
        let pending = question.pending(self.state, self.planner.turn, expires_at);
        let text = match pending.waits_for {
            WaitsFor::Consent => {
                self.step(TurnStep::Consent);
                self.observer.event(TurnEvent::Consent(&pending));
                asks(&pending)
            }
            WaitsFor::FrontEnd => {
                let PendingCall { id, tool, arguments, .. } = &pending;
                self.observer.event(TurnEvent::FrontEndCall { id, tool: &tool.name, arguments });
                String::new()
            }
        };
        self.state.pending = Some(pending);
        TurnEnd::Waiting(text)
    }
}

/// The call with a reference to its tool, so that a resumed turn calls the same one.
fn with_reference(call: PlannedCall, toolbox: &Toolbox) -> PlannedCall {
    if call.of_front_end || call.reference.is_some() {
        return call;
    }
    let offered = toolbox.get(&call.tool);
    let of_front_end = offered.is_some_and(Offered::is_of_front_end);
    PlannedCall { of_front_end, reference: offered.and_then(Offered::reference).cloned(), ..call }
}

/// Why the call is not made, if its name leads to another tool now.
fn replaced(call: &PlannedCall, toolbox: &Toolbox) -> Option<&'static str> {
    let offered = toolbox.get(&call.tool);
    if call.of_front_end {
        let is_there = offered.is_some_and(Offered::is_of_front_end);
        return (!is_there).then_some("Not called: the page does not offer this tool now.");
    }
    let (planned, offered) = (call.reference.as_ref()?, offered?);
    let is_same = offered.reference().is_some_and(|offered| offered.tool == planned.tool);
    (!is_same).then_some("Not called: the tool was changed since the call was planned.")
}

/// Asks for consent in fixed words: the person consents to exactly the call that is carried out.
fn asks(pending: &PendingCall) -> String {
    let mut text = format!("I need your consent before I carry out \"{}\"", pending.label());
    text.push_str(if pending.shows.is_empty() { "." } else { ":" });
    for shown in &pending.shows {
        // Writing to a string cannot fail.
        let _ = write!(text, "\n- {}: {}", shown.name, shown.value);
    }
    text.push_str("\nThis has not been done yet. Shall I do it?");
    text
}
